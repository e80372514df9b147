//! Commands with a recording printer and a scripted server: what is asked of the server, what is said on which
//! stream, and the exit code.

use std::ffi::OsString;

use jiff::{SignedDuration, Timestamp};
use kubectl_lease::{cli, commands, output::Printer};
use serde_json::{Value, json};

use crate::scripted::{Expected, Scripted, conflict, found, listed, missing, on, refused, written};

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
