//! Commands with a recording printer and a scripted server: what is asked of the server, what is said on which
//! stream, and the exit code.

use std::ffi::OsString;

use jiff::{SignedDuration, Timestamp};
use kubectl_lease::{cli, commands, output::Printer};
use serde_json::{Value, json};

use crate::scripted::{Expected, Request, Scripted, conflict, found, listed, missing, on, refused, written};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-maintenance/leases";
const MEDIK8S: &str = "/apis/coordination.k8s.io/v1/namespaces/medik8s-leases/leases/node-a";
const POD: &str = "/api/v1/namespaces/shop/pods/db-0";

struct Outcome {
    code: u8,
    stdout: String,
    stderr: String,
}

/// Runs a command as `main` does, in this process.
fn run(server: &Scripted, typed: &str) -> Outcome {
    let kubeconfig = server.stub.kubeconfig(&json!({ "token": "t" }));
    let words = ["kubectl-lease"].into_iter().chain(typed.split(' ')).map(OsString::from);
    let connection = [OsString::from("--kubeconfig"), kubeconfig.into()];
    let cli = cli::parse(words.chain(connection)).unwrap();
    let (mut printer, [stdout, stderr]) = Printer::recording();
    let exit = commands::run(cli, &mut printer).unwrap_or_else(|error| {
        printer.error(&error);
        error.exit_code()
    });
    Outcome { code: exit.code(), stdout: stdout.text(), stderr: stderr.text() }
}

fn node() -> Value {
    json!({ "metadata": { "name": "a", "uid": "node-a", "resourceVersion": "1" } })
}

fn time(seconds_ago: i64) -> String {
    format!("{:.6}", Timestamp::now() - SignedDuration::from_secs(seconds_ago))
}

fn lease(holder: &str) -> Value {
    json!({
        "metadata": {
            "name": "a", "uid": "lease-a", "resourceVersion": "41",
            "annotations": { "kubectl-lease.dev/reason": "a new disk" },
        },
        "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": 300,
            "acquireTime": time(10), "renewTime": time(10), "leaseTransitions": 4,
        },
    })
}

/// What John has taken over from Jane.
fn johns() -> Value {
    let mut lease = lease("john");
    lease["metadata"]["resourceVersion"] = json!("42");
    lease["spec"]["leaseTransitions"] = json!(5);
    lease
}

/// What is read of a node before its lease is taken.
fn looks(lease: Option<Value>) -> Vec<Expected> {
    let own = format!("GET {LEASES}/a");
    vec![
        on("GET /api/v1/nodes/a", found(node())),
        lease.map_or_else(|| on(&*own, missing()), |lease| on(&*own, found(lease))),
        on(format!("GET {MEDIK8S}"), missing()),
    ]
}

const ACQUIRE: &str = "maint acquire a --holder jane --duration 5m";

#[test]
fn acquiring_a_free_node_says_so_on_stdout_and_nothing_else() {
    let mut script = looks(None);
    script.push(on(format!("POST {LEASES}"), written(json!({ "metadata": { "uid": "lease-a" } }), "7")));
    script.push(on("GET /api/v1/nodes/a", found(node())));
    let server = Scripted::start(script);
    let outcome = run(&server, ACQUIRE);
    assert_eq!(outcome.stdout, "a acquired, held by jane for 5m\n");
    assert_eq!((outcome.code, &*outcome.stderr), (0, ""));
    let writes = server.writes();
    assert_eq!(writes.len(), 1);
    assert_eq!(writes[0].body["spec"]["holderIdentity"], "jane");
    assert!(writes[0].query.contains("fieldManager=kubectl-lease"), "{}", writes[0].query);
}

#[test]
fn acquiring_a_held_node_writes_nothing_and_says_who_holds_it_on_stderr() {
    let server = Scripted::start(looks(Some(lease("john"))));
    let outcome = run(&server, ACQUIRE);
    assert_eq!((outcome.code, &*outcome.stdout), (4, ""));
    let said = outcome.stderr.strip_prefix("error: ").unwrap();
    assert!(said.contains("held by 'john'") && said.contains("a new disk"), "{said}");
    assert!(said.contains("\nhint: "), "{said}");
    assert_eq!(server.writes().len(), 0);
}

#[test]
fn acquiring_a_node_that_is_taken_meanwhile_is_the_same_as_finding_it_held() {
    let mut script = looks(None);
    script.push(on(format!("POST {LEASES}"), conflict()));
    // To decide again; and to undo it, for a proxy may have sent the write twice.
    script.push(on(format!("GET {LEASES}/a"), found(lease("john"))));
    script.push(on(format!("GET {LEASES}/a"), found(lease("john"))));
    let server = Scripted::start(script);
    let outcome = run(&server, ACQUIRE);
    assert_eq!((outcome.code, &*outcome.stdout), (4, ""));
    assert!(outcome.stderr.contains("held by 'john'"), "{}", outcome.stderr);
    assert_eq!(server.writes().len(), 1);
}

#[test]
fn acquiring_without_permission_says_which_is_missing() {
    let mut script = looks(None);
    script.push(on(format!("POST {LEASES}"), refused(403, "Forbidden", "jane may not create leases")));
    let server = Scripted::start(script);
    let outcome = run(&server, ACQUIRE);
    assert_eq!((outcome.code, &*outcome.stdout), (7, ""));
    assert!(outcome.stderr.starts_with("error: jane may not create leases\nhint: "), "{}", outcome.stderr);
    for part in ["--verb=create", "leases.coordination.k8s.io", "kube-node-maintenance"] {
        assert!(outcome.stderr.contains(part), "{part}: {}", outcome.stderr);
    }
    assert_eq!(server.writes().len(), 1);
}

#[test]
fn a_dry_run_of_acquiring_only_reads() {
    let server = Scripted::start(looks(None));
    let outcome = run(&server, &format!("{ACQUIRE} --dry-run"));
    assert_eq!(outcome.stdout, "a acquired, held by jane (dry run)\n");
    assert_eq!((outcome.code, &*outcome.stderr), (0, ""));
    assert_eq!(server.writes().len(), 0);
}

/// The risk is for the person, what was done for the pipe.
#[test]
fn a_dry_run_of_force_deleting_shows_the_risk_on_stderr_and_deletes_nothing() {
    let pod = json!({
        "metadata": { "name": "db-0", "namespace": "shop", "uid": "pod-db-0", "resourceVersion": "77" },
        "spec": { "nodeName": "a", "containers": [] },
    });
    let mut node = node();
    node["status"] = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
    let whoami = json!({ "metadata": {}, "status": { "userInfo": { "username": "jane" } } });
    let server = Scripted::start(vec![
        on(format!("GET {POD}"), found(pod)),
        on("GET /api/v1/nodes/a", found(node)),
        on("GET /apis/coordination.k8s.io/v1/leases", listed(&[])),
        on("GET /apis/policy/v1/namespaces/shop/poddisruptionbudgets", listed(&[])),
        on("POST /apis/authentication.k8s.io/v1/selfsubjectreviews", found(whoami)),
    ]);
    let outcome = run(&server, "force-delete pod db-0 -n shop --dry-run=client");
    let writes = server.writes();
    assert_eq!(writes.len(), 1, "only who it is: {writes:#?}");
    assert_eq!(outcome.stdout, "shop/db-0 force-deleted, risk medium (dry run)\n");
    assert!(outcome.stderr.starts_with("shop/db-0, risk of force-deleting it: "), "{}", outcome.stderr);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
}

#[test]
fn a_pod_that_does_not_exist_costs_one_request() {
    let server = Scripted::start(vec![on(format!("GET {POD}"), missing())]);
    let outcome = run(&server, "force-delete pod db-0 -n shop --confirm");
    assert_eq!((outcome.code, &*outcome.stdout), (3, ""));
    assert!(
        outcome.stderr.starts_with("error: there is no pod 'db-0' in shop\nhint: "),
        "{}",
        outcome.stderr
    );
    server.done();
}

fn leaders(lease: &Value) -> Scripted {
    Scripted::start(vec![
        on("GET /apis/coordination.k8s.io/v1/leases", listed(std::slice::from_ref(lease))),
        on("GET /api/v1/pods", listed(&[])),
        on("GET /api/v1/nodes", listed(&[])),
    ])
}

#[test]
fn leaders_are_a_table_on_stdout() {
    let mut led = lease("pod-1");
    led["metadata"]["name"] = json!("my-controller");
    led["metadata"]["namespace"] = json!("default");
    let server = leaders(&led);
    let outcome = run(&server, "leaders --no-headers");
    let words: Vec<_> = outcome.stdout.split_whitespace().collect();
    assert!(words.contains(&"my-controller") && words.contains(&"pod-1"), "{}", outcome.stdout);
    assert_eq!((outcome.code, &*outcome.stderr), (0, ""));
    server.done();
}

#[test]
fn leaders_without_a_leader_are_an_exit_code_only_where_that_is_asked_for() {
    let mut vacant = lease("");
    vacant["metadata"]["name"] = json!("my-controller");
    vacant["metadata"]["namespace"] = json!("default");
    for (typed, code) in [("leaders", 0), ("leaders --exit-code", 4)] {
        let server = leaders(&vacant);
        assert_eq!(run(&server, typed).code, code, "{typed}");
        server.done();
    }
}

#[test]
fn releasing_what_gets_another_holder_meanwhile_releases_nothing() {
    let mut script = looks(Some(lease("jane")));
    script.push(on(format!("PATCH {LEASES}/a"), conflict()));
    script.push(on(format!("GET {LEASES}/a"), found(johns())));
    let server = Scripted::start(script);
    let outcome = run(&server, "maint release a --holder jane");
    assert_eq!((outcome.code, &*outcome.stdout), (5, ""));
    assert!(
        outcome.stderr.starts_with("error: conflict: the lease of a changed after it was read"),
        "{}",
        outcome.stderr
    );
    let writes = server.writes();
    assert_eq!(writes.len(), 1);
    assert_eq!(writes[0].body["metadata"]["resourceVersion"], "41");
}

#[test]
fn releasing_what_was_only_renewed_meanwhile_is_done_with_the_new_version() {
    let before = lease("jane");
    let mut renewed = before.clone();
    renewed["metadata"]["resourceVersion"] = json!("42");
    renewed["spec"]["renewTime"] = json!(time(1));
    let mut script = looks(Some(before));
    script.push(on(format!("PATCH {LEASES}/a"), conflict()));
    script.push(on(format!("GET {LEASES}/a"), found(renewed.clone())));
    script.push(on(format!("PATCH {LEASES}/a"), written(renewed, "43")));
    let server = Scripted::start(script);
    let outcome = run(&server, "maint release a --holder jane");
    assert_eq!((outcome.code, &*outcome.stdout, &*outcome.stderr), (0, "a released\n", ""));
    let versions: Vec<_> =
        server.writes().iter().map(|write| write.body["metadata"]["resourceVersion"].clone()).collect();
    assert_eq!(versions, ["41", "42"]);
}

#[test]
fn renewing_what_was_taken_meanwhile_writes_nothing_more_and_says_who_holds_it() {
    let mut script = looks(Some(lease("jane")));
    script.push(on(format!("PATCH {LEASES}/a"), conflict()));
    // To decide again; and to undo it, for a proxy may have sent the write twice.
    script.push(on(format!("GET {LEASES}/a"), found(johns())));
    script.push(on(format!("GET {LEASES}/a"), found(johns())));
    let server = Scripted::start(script);
    let outcome = run(&server, "maint renew a --holder jane --duration 5m");
    assert_eq!((outcome.code, &*outcome.stdout), (4, ""));
    assert!(outcome.stderr.contains("held by 'john'"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("hint: 'kubectl lease maint status a'"), "{}", outcome.stderr);
    assert_eq!(server.writes().len(), 1);
}

const CANDIDATES: &str = "/apis/coordination.k8s.io/v1beta1/namespaces/shop/leasecandidates";
const LED: &str = "/apis/coordination.k8s.io/v1/namespaces/shop/leases";

/// A candidate for the lease `till` that renewed so many seconds ago.
fn candidate(name: &str, renewed: i64, version: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "shop", "uid": format!("uid-{name}"), "resourceVersion": version,
            "creationTimestamp": format!("{:.0}", Timestamp::now() - SignedDuration::from_hours(2)),
        },
        "spec": {
            "leaseName": "till", "strategy": "OldestEmulationVersion",
            "binaryVersion": "1.37.1", "emulationVersion": "1.37.0",
            "renewTime": time(renewed), "pingTime": null,
        },
    })
}

/// With a priority that was set by a pin.
fn preferred(name: &str, version: &str) -> Value {
    let mut candidate = candidate(name, 10, version);
    candidate["metadata"]["annotations"] = json!({
        "kubectl-lease.dev/priority": "5", "kubectl-lease.dev/original-emulation-version": "1.37.0",
    });
    candidate
}

/// What is read of the elections in a namespace.
fn elections(candidates: &[Value]) -> Vec<Expected> {
    let lease = json!({
        "metadata": { "name": "till", "namespace": "shop", "uid": "till", "resourceVersion": "9" },
        "spec": {
            "holderIdentity": "b", "leaseDurationSeconds": 15, "renewTime": time(1), "acquireTime": time(60),
            "strategy": "OldestEmulationVersion",
        },
    });
    vec![
        // Whether candidates are served in v1.
        on("GET /apis/coordination.k8s.io/v1", found(json!({ "resources": [] }))),
        on(format!("GET {CANDIDATES}"), listed(candidates)),
        on(format!("GET {LED}"), listed(&[lease])),
    ]
}

#[test]
fn what_was_left_behind_is_deleted_as_it_was_read() {
    let mut script = elections(&[candidate("a", 2400, "7"), candidate("b", 10, "8")]);
    script
        .push(on(format!("DELETE {CANDIDATES}/a"), found(json!({ "kind": "Status", "status": "Success" }))));
    let server = Scripted::start(script);
    let outcome = run(&server, "candidates prune -n shop --yes");
    assert_eq!(
        (outcome.code, &*outcome.stdout),
        (0, "leasecandidate.coordination.k8s.io \"a\" deleted\n"),
        "{}",
        outcome.stderr
    );
    let writes = server.writes();
    assert_eq!(writes[0].body["preconditions"], json!({ "uid": "uid-a", "resourceVersion": "7" }));
}

#[test]
fn a_candidate_that_renews_is_not_deleted_by_its_name() {
    let server = Scripted::start(elections(&[candidate("a", 10, "7"), candidate("b", 10, "8")]));
    let outcome = run(&server, "candidates prune a -n shop --yes");
    assert_eq!((outcome.code, &*outcome.stdout), (6, ""));
    assert!(outcome.stderr.starts_with("error: a was not left behind: it renews"), "{}", outcome.stderr);
    assert_eq!(server.writes().len(), 0);
}

#[test]
fn one_that_leads_is_not_deleted_by_its_name() {
    let server = Scripted::start(elections(&[candidate("a", 10, "7"), candidate("b", 2400, "8")]));
    let outcome = run(&server, "candidates prune b -n shop --yes");
    assert_eq!(outcome.code, 6);
    assert!(outcome.stderr.contains("b was not left behind: it leads"), "{}", outcome.stderr);
    assert_eq!(server.writes().len(), 0);
}

#[test]
fn a_dry_run_of_pruning_pings_nothing() {
    // Late, but for half an hour yet it may be alive.
    let server = Scripted::start(elections(&[candidate("a", 600, "7"), candidate("b", 10, "8")]));
    let outcome = run(&server, "candidates prune -n shop --dry-run=client");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stdout.contains("\"a\" deleted (dry run)"), "{}", outcome.stdout);
    assert_eq!(server.writes().len(), 0);
}

#[test]
fn clearing_a_priority_is_decided_again_on_a_conflict() {
    let mut script = elections(&[preferred("a", "7"), candidate("b", 10, "8")]);
    script.push(on(format!("PATCH {CANDIDATES}/a"), conflict()));
    script.push(on(format!("GET {CANDIDATES}/a"), found(preferred("a", "8"))));
    script.push(on(format!("PATCH {CANDIDATES}/a"), written(preferred("a", "8"), "9")));
    let server = Scripted::start(script);
    let outcome = run(&server, "candidates clear-priority a -n shop --yes --force");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let versions: Vec<_> =
        server.writes().iter().map(|write| write.body["metadata"]["resourceVersion"].clone()).collect();
    assert_eq!(versions, ["7", "8"]);
}

#[test]
fn setting_a_priority_is_decided_again_on_a_conflict() {
    let mut script = elections(&[candidate("a", 10, "7"), candidate("b", 10, "8")]);
    let controller = json!({
        "metadata": { "name": "leader-election-controller", "namespace": "kube-system" },
        "spec": { "holderIdentity": "apiserver", "leaseDurationSeconds": 15, "renewTime": time(1) },
    });
    let system = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/leader-election-controller";
    script.push(on(format!("GET {system}"), found(controller)));
    // Whether this server has a field for priorities: it drops it.
    script.push(on(format!("PATCH {CANDIDATES}/a"), found(candidate("a", 10, "7"))));
    script.push(on(format!("PATCH {CANDIDATES}/a"), conflict()));
    script.push(on(format!("GET {CANDIDATES}/a"), found(candidate("a", 5, "8"))));
    script.push(on(format!("PATCH {CANDIDATES}/a"), written(candidate("a", 5, "8"), "9")));
    let server = Scripted::start(script);
    let outcome = run(&server, "candidates set-priority a 5 -n shop --yes --dry-run=server");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let writes = server.writes();
    let version = |write: &Request| write.body["metadata"]["resourceVersion"].clone();
    assert_eq!(writes.iter().map(version).collect::<Vec<_>>(), [json!(null), json!("7"), json!("8")]);
    assert!(writes.iter().all(|write| write.query.contains("dryRun=All")), "{writes:#?}");
}
