//! `maint`, on a real control plane.

use std::{
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    MEDIK8S,
    dice::number,
    harness::{
        ControlPlane, Shape, User,
        faults::{Fault, FaultProxy},
        random,
    },
    plugin::{Outcome, Plugin, wait_for},
    shared,
};

const NAMESPACE: &str = "kube-node-maintenance";
const SOON: Duration = Duration::from_secs(10);

fn plugin() -> Plugin {
    Plugin::new(shared().kubeconfig(User::Admin, 0))
}

/// A node of this test's own.
fn node(plane: &ControlPlane) -> String {
    let name = format!("node-{}", random());
    plane.apply(&json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } }));
    name
}

fn lease(plane: &ControlPlane, name: &str) -> Value {
    serde_json::from_str(&plane.kubectl(&["get", "lease", "-n", NAMESPACE, name, "-o", "json"])).unwrap()
}

/// Writes a lease as somebody else would.
fn write(plane: &ControlPlane, namespace: &str, name: &str, spec: &Value) {
    plane.apply(&json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": name, "namespace": namespace }, "spec": spec,
    }));
}

fn time(field: &Value) -> jiff::Timestamp {
    field.as_str().unwrap().parse().unwrap()
}

fn ago(seconds: i64) -> String {
    format!("{:.6}", jiff::Timestamp::now() - jiff::SignedDuration::from_secs(seconds))
}

#[test]
fn acquiring_creates_the_lease_with_every_field_and_renewing_keeps_what_must_stay() {
    let node = node(shared());
    let outcome =
        plugin().run(&["maint", "acquire", &node, "--reason", "new disk", "--holder", "jane"]).expect(0);
    assert_eq!(outcome.stdout, format!("{node} acquired, held by jane for 30m\n"));
    let first = lease(shared(), &node);
    let spec = &first["spec"];
    assert_eq!((&spec["holderIdentity"], &spec["leaseDurationSeconds"]), (&json!("jane"), &json!(1800)));
    assert_eq!((&spec["leaseTransitions"], &spec["acquireTime"]), (&json!(0), &spec["renewTime"]));
    assert_eq!(first["metadata"]["annotations"]["kubectl-lease.dev/reason"], "new disk");
    let owner = &first["metadata"]["ownerReferences"][0];
    let uid = shared().kubectl(&["get", "node", &node, "-o", "jsonpath={.metadata.uid}"]);
    assert_eq!((&owner["kind"], &owner["name"], &owner["uid"]), (&json!("Node"), &json!(node), &json!(uid)));

    let outcome = plugin().run(&["maint", "acquire", &node, "--holder", "jane", "-d", "40m"]).expect(0);
    assert_eq!(outcome.stdout, format!("{node} renewed, it was yours already, held by jane for 40m\n"));
    plugin().run(&["maint", "renew", &node, "--holder", "jane", "-d", "20m"]).expect(0);
    let second = lease(shared(), &node);
    assert_eq!(second["spec"]["acquireTime"], spec["acquireTime"]);
    assert_ne!(second["spec"]["renewTime"], spec["renewTime"]);
    assert_eq!(
        (&second["spec"]["leaseTransitions"], &second["spec"]["leaseDurationSeconds"]),
        (&json!(0), &json!(1200))
    );
    assert_eq!(second["metadata"]["annotations"]["kubectl-lease.dev/reason"], "new disk", "still the reason");

    plugin().run(&["maint", "release", &node, "--holder", "jane"]).expect(0);
    let released = lease(shared(), &node);
    assert_eq!(released["spec"]["holderIdentity"], "");
    assert_eq!(released["spec"]["leaseDurationSeconds"], 1);
    assert!(released["metadata"]["annotations"]["kubectl-lease.dev/reason"].is_null());
    plugin().run(&["maint", "acquire", &node, "--holder", "jane"]).expect(0);
    assert_eq!(lease(shared(), &node)["spec"]["leaseTransitions"], 1, "from nobody to jane is a change");
}

#[test]
fn the_same_user_is_known_again() {
    let node = node(shared());
    plugin().run(&["maint", "acquire", &node]).expect(0);
    let holder = lease(shared(), &node)["spec"]["holderIdentity"].as_str().unwrap().to_owned();
    assert!(holder.starts_with("admin@"), "{holder}");
    plugin().run(&["maint", "status", &node]).expect(0);
    plugin().run(&["maint", "release", &node]).expect(0);
    let outcome = plugin().run(&["maint", "release", &node]).expect(0);
    assert_eq!(outcome.stdout, format!("{node} is free already\n"));
}

#[test]
fn what_another_holds_is_not_taken_renewed_or_released() {
    let node = node(shared());
    plugin().run(&["maint", "acquire", &node, "--holder", "jane", "--reason", "disk\u{202e}"]).expect(0);
    let before = lease(shared(), &node);
    for verb in ["acquire", "renew", "release"] {
        let outcome = plugin().run(&["maint", verb, &node, "--holder", "john"]).expect(4);
        let held = format!("error: {node} is held by 'jane' since ");
        let outcome = outcome.says(&held).says(" ago) until ").says(" left): disk\\u{202e}").says("hint: ");
        assert_eq!(outcome.stdout, "");
    }
    plugin()
        .run(&["maint", "release", &node, "--holder", "john", "--force"])
        .expect(6)
        .says("--force --confirm");
    plugin().run(&["maint", "status", &node, "--holder", "john"]).expect(4);
    assert_eq!(lease(shared(), &node), before, "nothing was written");
    plugin().run(&["maint", "release", &node, "--holder", "john", "--force", "--confirm"]).expect(0);
    assert_eq!(lease(shared(), &node)["spec"]["holderIdentity"], "");
}

/// What the terminal's library has for the exit code of a process that a signal has ended.
const BY_SIGNAL: u32 = 1;

#[test]
fn a_forced_release_asks_on_a_terminal() {
    let node = node(shared());
    plugin().run(&["maint", "acquire", &node, "--holder", "jane"]).expect(0);
    // A key alone is no answer, and a yes that is typed in full leaves nothing for the shell.
    for (answer, code, holder) in
        [("n\r", 6, "jane"), ("\r", 6, "jane"), ("\u{3}", BY_SIGNAL, "jane"), ("yes\r", 0, "")]
    {
        let mut terminal =
            plugin().start_on_terminal(&["maint", "release", &node, "--holder", "john", "--force"], 20, 200);
        terminal.until("the question", SOON, |screen| {
            screen.contains("held by 'jane'") && screen.contains("Release it?")
        });
        terminal.types(answer);
        assert_eq!(terminal.wait(), code, "{answer:?}");
        assert_eq!(lease(shared(), &node)["spec"]["holderIdentity"], holder);
        assert!(!terminal.hides_cursor(), "{answer:?}");
    }
}

#[test]
fn an_administrator_holds_until_released_with_admin() {
    let node = node(shared());
    plugin().run(&["maint", "acquire", &node, "--holder", "jane", "--admin", "-d", "5h"]).expect(0);
    assert_eq!(lease(shared(), &node)["spec"]["holderIdentity"], "kubeadm:jane");
    // Its time is long over, and it is held all the same.
    let patch = format!(r#"{{"spec":{{"renewTime":"{}"}}}}"#, ago(1_000_000));
    shared().kubectl(&["patch", "lease", "-n", NAMESPACE, &node, "--type=merge", "-p", &patch]);
    plugin()
        .run(&["maint", "acquire", &node, "--holder", "john"])
        .expect(4)
        .says("held by administrator 'kubeadm:jane'");
    plugin().run(&["maint", "release", &node, "--holder", "jane"]).expect(6).says("--admin");
    plugin().run(&["maint", "release", &node, "--holder", "john", "--force", "--confirm"]).expect(6);
    // Not even by herself, without --admin: an administrator's lease is not made a plain one.
    for args in
        [&["maint", "acquire", &node][..], &["maint", "renew", &node], &["maint", "run", &node, "--", "true"]]
    {
        let args = [&args[..3], &["--holder", "jane"], &args[3..]].concat();
        plugin().run(&args).expect(4).says("held by administrator 'kubeadm:jane'");
    }
    plugin().run(&["maint", "status", &node, "--holder", "jane"]).expect(0);
    plugin().run(&["maint", "release", &node, "--holder", "jane", "--admin"]).expect(0);
    plugin().run(&["maint", "acquire", &node, "--holder", "jane"]).expect(0);
    let before = lease(shared(), &node)["spec"]["leaseTransitions"].as_i64().unwrap();
    plugin().run(&["maint", "acquire", &node, "--holder", "jane", "--admin"]).expect(0);
    assert_eq!(lease(shared(), &node)["spec"]["leaseTransitions"], before + 1, "a change of hands");
}

/// What another process of the same name holds is not this one's to undo.
#[test]
fn only_what_a_command_took_itself_is_undone() {
    let (first, second) = {
        let (a, b) = (node(shared()), node(shared()));
        if a < b { (a, b) } else { (b, a) }
    };
    plugin().run(&["maint", "acquire", &first, "--holder", "jane"]).expect(0);
    let mut waiting = plugin().start(&["maint", "acquire", &first, &second, "--holder", "john", "--wait"]);
    waiting.until_stderr("it waits", SOON, |text| text.contains("waiting for"));
    plugin().run(&["maint", "acquire", &second, "--holder", "john"]).expect(0);
    waiting.signal("-INT");
    assert_eq!(waiting.wait(), 130);
    assert_eq!(holder(shared(), &second), "john");
}

/// What is taken is kept while the rest is waited for, however long that takes.
#[test]
fn what_is_taken_is_kept_while_the_rest_is_waited_for() {
    let (first, second) = {
        let (a, b) = (node(shared()), node(shared()));
        if a < b { (a, b) } else { (b, a) }
    };
    plugin().run(&["maint", "acquire", &second, "--holder", "jane"]).expect(0);
    let mut waiting =
        plugin().start(&["maint", "acquire", &first, &second, "--holder", "john", "-d", "18s", "--wait"]);
    waiting.until_stderr("it waits", SOON, |text| text.contains("waiting for"));
    // It would have expired, with the grace.
    thread::sleep(Duration::from_secs(23));
    plugin().run(&["maint", "acquire", &first, "--holder", "thief"]).expect(4);
    plugin().run(&["maint", "release", &second, "--holder", "jane"]).expect(0);
    assert_eq!(waiting.wait(), 0);
    assert_eq!((holder(shared(), &first), holder(shared(), &second)), ("john".into(), "john".into()));
}

#[test]
fn a_write_still_under_way_at_ctrl_c_is_undone() {
    let nodes = [(); 3].map(|()| node(shared()));
    let writes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&writes);
    let proxy = FaultProxy::start(shared(), move |method, path| {
        let write = matches!(method, "POST" | "PATCH") && path.contains("/leases");
        let n = if write { counted.fetch_add(1, Ordering::SeqCst) + 1 } else { 0 };
        if n == 2 { Fault::Late(5000) } else { Fault::None }
    });
    let names: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let args = [&["maint", "acquire", "--admin", "--holder", "dave"][..], &names].concat();
    let mut running = Plugin::new(&proxy.kubeconfig).start(&args);
    // The first is written, the second under way.
    wait_for("the second write", SOON, || writes.load(Ordering::SeqCst) >= 2, || running.stderr());
    running.signal("-INT");
    assert_eq!(running.wait(), 130);
    thread::sleep(Duration::from_millis(1500));
    for name in names {
        let path = "jsonpath={.spec.holderIdentity}";
        let holder =
            shared().kubectl(&["get", "lease", "-n", NAMESPACE, name, "--ignore-not-found", "-o", path]);
        assert_eq!(holder, "", "{name}");
    }
}

#[test]
fn what_may_not_be_seen_of_medik8s_is_said() {
    let node = node(shared());
    let reader = Plugin::new(shared().kubeconfig(User::Reader, 0));
    reader
        .run(&["maint", "acquire", &node])
        .expect(0)
        .says("warning: no permission to read the leases in medik8s-leases");
    reader.run(&["maint", "release", &node]).expect(0);
    for args in [&["maint", "status", &node][..], &["maint", "list"]] {
        let told = reader.run(args).expect(0);
        assert_eq!(
            told.stderr.matches("warning: no permission to read the leases in medik8s").count(),
            1,
            "{told:?}"
        );
    }
    assert!(reader.run(&["maint", "status", "--all"]).stderr.contains("medik8s-leases"));
}

#[test]
fn bad_input_is_refused_before_anything_is_asked_of_the_server() {
    let (user, kubeconfig) = shared().unique_admin();
    let plugin = Plugin::new(kubeconfig);
    for args in [
        &["maint", "acquire"][..],
        &["maint", "acquire", "n", "--duration", "0"],
        &["maint", "acquire", "n", "--duration=-1m"],
        &["maint", "acquire", "n", "--duration", "2h"],
        &["maint", "acquire", "n", "--duration", "-5m"],
        &["maint", "acquire", "n", "--duration", "1500ms"],
        &["maint", "acquire", "n", "--reason", "a\nb"],
        &["maint", "acquire", "../../../api/v1/secrets"],
        &["maint", "run", "n"],
        &["hold", "n", "--duration", "1s", "--", "true"],
    ] {
        plugin.run(args).expect(2);
    }
    for holder in ["", "kubeadm", "kubeadm-x", "a\nb"] {
        plugin.run(&["maint", "status", "n", "--holder", holder]).expect(2).says("--holder");
    }
    let asked = shared().audited(&user);
    assert!(
        asked.iter().all(|request| !request.starts_with("create") && !request.starts_with("patch")),
        "{asked:?}"
    );
}

#[test]
fn a_node_that_is_not_there_is_not_found() {
    plugin().run(&["maint", "acquire", "no-such-node"]).expect(3).says("there is no node 'no-such-node'");
    let one = node(shared());
    plugin()
        .run(&["maint", "acquire", &one, "no-such-node", "nor-this"])
        .expect(3)
        .says("'no-such-node', 'nor-this'");
    plugin().run(&["maint", "acquire", "-l", "no=such"]).expect(3);
    plugin().run(&["maint", "status", &one]).expect(0);
}

#[test]
fn a_malformed_lease_is_left_alone_unless_told() {
    for (spec, lacks) in [
        (json!({ "holderIdentity": "ghost" }), "renewTime"),
        (json!({ "holderIdentity": "ghost", "renewTime": ago(1_000_000) }), "leaseDurationSeconds"),
        (json!({ "holderIdentity": "ghost", "leaseDurationSeconds": 60 }), "renewTime"),
    ] {
        let node = node(shared());
        write(shared(), NAMESPACE, &node, &spec);
        let outcome = plugin().run(&["maint", "acquire", &node]).expect(6);
        outcome
            .says(&format!("malformed: holderIdentity is 'ghost' but {lacks} is not set"))
            .says("--take-malformed");
        plugin().run(&["maint", "status", &node]).expect(4);
        plugin().run(&["maint", "acquire", &node, "--take-malformed"]).expect(0);
        plugin().run(&["maint", "status", &node]).expect(0);
    }
}

#[test]
fn an_expired_lease_is_taken_over_and_a_fresh_one_not() {
    let node = node(shared());
    let spec = |age| json!({ "holderIdentity": "jane", "leaseDurationSeconds": 60, "renewTime": ago(age), "leaseTransitions": 7 });
    write(shared(), NAMESPACE, &node, &spec(50));
    plugin().run(&["maint", "acquire", &node]).expect(4);
    write(shared(), NAMESPACE, &node, &spec(70));
    let outcome = plugin().run(&["maint", "acquire", &node]).expect(0);
    assert!(outcome.stdout.contains("taken over from 'jane', whose lease had expired"), "{outcome:?}");
    assert_eq!(lease(shared(), &node)["spec"]["leaseTransitions"], 8);
}

#[test]
fn several_nodes_are_taken_all_or_nothing() {
    let mut nodes: Vec<_> = (0..5).map(|_| node(shared())).collect();
    nodes.sort();
    let names: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let held_by = |n: usize| {
        let text = shared().kubectl(&[
            "get",
            "lease",
            "-n",
            NAMESPACE,
            names[n],
            "--ignore-not-found",
            "-o",
            "json",
        ]);
        let lease: Value = serde_json::from_str(&text).unwrap_or_default();
        lease["spec"]["holderIdentity"].as_str().map(str::to_owned)
    };
    plugin().run(&["maint", "acquire", names[3], "--holder", "jane"]).expect(0);
    plugin().run(&["maint", "acquire", names[1], "--holder", "john"]).expect(0);
    let all = [&["maint", "acquire", "--holder", "john"][..], &names].concat();
    let outcome = plugin().run(&all).expect(4).says("held by 'jane'");
    assert!(!outcome.stderr.contains("released again"), "what cannot be finished is not begun: {outcome:?}");
    assert_eq!([held_by(0), held_by(2), held_by(4)], [None, None, None]);

    plugin().run(&["maint", "release", names[3], "--holder", "jane"]).expect(0);
    // Jane takes hers again after john has looked, before he writes.
    let (kubeconfig, contested) = (shared().kubeconfig(User::Admin, 0), names[3].to_owned());
    let proxy = FaultProxy::start(shared(), move |method, path| {
        if method == "PATCH" && path.contains(&contested) {
            Plugin::new(&kubeconfig).run(&["maint", "acquire", &contested, "--holder", "jane"]);
        }
        Fault::None
    });
    Plugin::new(&proxy.kubeconfig).run(&all).expect(4).says("held by 'jane'").says("released again: ");
    let after: Vec<_> = (0..5).map(|n| held_by(n).unwrap_or_default()).collect();
    assert_eq!(after, ["", "john", "", "jane", ""], "what was john's before is his still");

    plugin().run(&["maint", "release", names[3], "--holder", "jane"]).expect(0);
    let outcome = plugin().run(&all).expect(0);
    assert_eq!(outcome.stdout.lines().count(), 5);
    let status = [&["maint", "status", "--holder", "john"][..], &names].concat();
    plugin().run(&status).expect(0);
}

#[test]
fn waiting_takes_over_when_it_is_released_and_gives_up_in_time() {
    let node = node(shared());
    plugin().run(&["maint", "acquire", &node, "--holder", "jane", "--reason", "disk"]).expect(0);
    let outcome = plugin().run(&["maint", "acquire", &node, "--holder", "john", "--wait=1s"]).expect(124);
    outcome.says(&format!("waiting for {node}, held by 'jane' (disk)")).says("did not become free within 1s");

    let mut waiting = plugin().start(&["maint", "acquire", &node, "--holder", "john", "--wait", "1m"]);
    waiting.until_stderr("it waits", SOON, |text| text.contains("waiting for"));
    plugin().run(&["maint", "release", &node, "--holder", "jane"]).expect(0);
    let took = waiting.until("it takes over", SOON, |text| text.contains("acquired, held by john"));
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(waiting.wait(), 0);
}

#[test]
fn waiting_takes_over_when_the_time_runs_out_without_any_event() {
    let node = node(shared());
    let spec = json!({ "holderIdentity": "jane", "leaseDurationSeconds": 2, "renewTime": ago(0) });
    write(shared(), NAMESPACE, &node, &spec);
    let args = ["maint", "acquire", &node, "--holder", "john", "--wait"];
    plugin().run(&args).expect(0).says("waiting for");
    let (before, after) = (time(&spec["renewTime"]), time(&lease(shared(), &node)["spec"]["acquireTime"]));
    let waited = after.duration_since(before);
    assert!(waited > jiff::SignedDuration::from_secs(5), "the grace period is kept: {waited:?}");
}

#[test]
fn an_interrupted_wait_takes_nothing_and_undoes_what_was_taken() {
    let (first, second) = {
        let (a, b) = (node(shared()), node(shared()));
        if a < b { (a, b) } else { (b, a) }
    };
    plugin().run(&["maint", "acquire", &second, "--holder", "jane"]).expect(0);
    let mut waiting = plugin().start(&["maint", "acquire", &first, &second, "--holder", "john", "--wait"]);
    waiting.until_stderr("it waits", SOON, |text| text.contains("waiting for"));
    plugin().run(&["maint", "status", &first, "--holder", "jane"]).expect(4);
    waiting.signal("-INT");
    assert_eq!(waiting.wait(), 130);
    plugin().run(&["maint", "status", &first, "--holder", "jane"]).expect(0);
}

#[test]
fn medik8s_is_seen_and_not_disturbed() {
    let node = node(shared());
    let spec = json!({ "holderIdentity": "node-maintenance", "leaseDurationSeconds": 3600, "renewTime": ago(5), "acquireTime": ago(5) });
    write(shared(), MEDIK8S, &format!("node-{node}"), &spec);
    plugin()
        .run(&["maint", "acquire", &node])
        .expect(4)
        .says("held by medik8s ('node-maintenance'")
        .says("--ignore-medik8s");
    let outcome = plugin().run(&["maint", "status", &node, "--no-headers"]).expect(4);
    assert_eq!(outcome.rows()[0][..3], [node.as_str(), "medik8s", "node-maintenance"]);
    plugin().run(&["maint", "acquire", &node, "--ignore-medik8s"]).expect(0);
}

#[test]
fn the_list_shows_every_node_and_what_was_forgotten() {
    let [free, held, forgotten, admin] = [(); 4].map(|()| node(shared()));
    plugin().run(&["maint", "acquire", &held, "--holder", "jane", "--reason", "disk"]).expect(0);
    write(
        shared(),
        NAMESPACE,
        &forgotten,
        &json!({ "holderIdentity": "john", "leaseDurationSeconds": 60, "renewTime": ago(100) }),
    );
    write(
        shared(),
        NAMESPACE,
        &admin,
        &json!({ "holderIdentity": "kubeadm", "acquireTime": ago(100_000), "renewTime": ago(100_000) }),
    );
    let outcome = plugin().run(&["maint", "list"]).expect(0);
    let row = |name: &str| {
        let line = outcome
            .stdout
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap_or_else(|| panic!("{outcome:?}"));
        line[name.len()..].trim().to_owned()
    };
    assert!(row(&free).starts_with("free "), "{}", row(&free));
    assert!(row(&held).starts_with("held ") && row(&held).ends_with("disk"), "{}", row(&held));
    assert!(row(&forgotten).starts_with("expired, abandoned"), "{}", row(&forgotten));
    assert!(
        row(&admin).starts_with("admin, abandoned") && row(&admin).contains("until released"),
        "{}",
        row(&admin)
    );
    let place = |name: &str| outcome.stdout.lines().position(|line| line.starts_with(name)).unwrap();
    assert!(
        place(&held) < place(&free) && place(&admin) < place(&forgotten),
        "the held ones first: {outcome:?}"
    );

    let [malformed, ahead, deleted] = [(); 3].map(|()| node(shared()));
    let times = json!({ "holderIdentity": "john", "leaseDurationSeconds": 60 });
    write(shared(), NAMESPACE, &malformed, &times);
    let mut times = times;
    times["renewTime"] = "9999-01-01T00:00:00.000000Z".into();
    write(shared(), NAMESPACE, &ahead, &times);
    plugin().run(&["maint", "acquire", &deleted, "--holder", "jane"]).expect(0);
    shared().kubectl(&["delete", "node", &deleted, "--cascade=orphan"]);
    let listed = |args: &[&str], code| {
        let outcome = plugin().run(&[&["maint", "list", "-o", "json"], args].concat()).expect(code);
        let list: Value = serde_json::from_str(&outcome.stdout).unwrap();
        let names =
            list["items"].as_array().unwrap().iter().map(|item| item["node"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let has = |names: &[String], these: &[&String], others: &[&String]| {
        assert!(these.iter().all(|name| names.contains(name)), "{names:?} lacks one of {these:?}");
        assert!(!others.iter().any(|name| names.contains(name)), "{names:?} has one of {others:?}");
    };
    let left = [&forgotten, &admin, &malformed, &ahead, &deleted];
    has(&listed(&["--abandoned", "--exit-code"], 4), &left, &[&free, &held]);
    has(&listed(&["--abandoned"], 0), &left, &[&free, &held]);
    has(&listed(&["--held"], 0), &[&held, &admin, &ahead, &deleted], &[&free, &forgotten]);
    has(&listed(&["--mine", "--holder", "jane"], 0), &[&held, &deleted], &[&free, &admin, &ahead]);
    has(&listed(&["--mine", "--exit-code", "--holder", "nobody-else"], 0), &[], &left);
    let old = &["--mine", "--abandoned", "--exit-code", "--holder", "john"];
    has(&listed(old, 4), &[&forgotten], &[&admin, &held]);
    let process = json!({ "holderIdentity": "jane#1f2e", "leaseDurationSeconds": 60, "renewTime": ago(5) });
    write(shared(), NAMESPACE, &free, &process);
    has(&listed(&["--mine", "--holder", "jane"], 0), &[&held, &free], &[&forgotten]);
}

/// For programs: the lease as it was written, and what is for people on stderr.
#[test]
fn what_is_acquired_renewed_and_released_is_printed_as_a_document() {
    let [a, b] = [(); 2].map(|()| node(shared()));
    let run =
        |args: &[&str], code| plugin().run(&[&["maint"], args, &["--holder", "jane"]].concat()).expect(code);
    let parsed = |outcome: &Outcome| -> Value {
        serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{outcome:?}"))
    };

    let dry = parsed(&run(&["acquire", &a, "--dry-run=server", "-o", "json"], 0));
    assert_eq!([&dry["state"], &dry["lease"]["spec"]["holderIdentity"]], ["yours", "jane"], "{dry}");
    assert_eq!(parsed(&run(&["acquire", &a, "--dry-run", "-o", "json"], 0))["lease"], Value::Null);
    let acquired = run(&["acquire", &a, "-r", "disk", "-o", "json"], 0);
    assert!(acquired.stderr.contains(&format!("{a} acquired, held by jane")), "{acquired:?}");
    let document = parsed(&acquired);
    assert_eq!(
        [&document["kind"], &document["node"], &document["state"], &document["reason"]],
        ["NodeMaintenance", &a, "yours", "disk"]
    );
    assert_eq!(
        document["lease"]["metadata"]["resourceVersion"],
        lease(shared(), &a)["metadata"]["resourceVersion"]
    );

    let both = parsed(&run(&["acquire", &a, &b, "-o", "json"], 0));
    assert_eq!(
        [&both["kind"], &both["items"][1]["node"]],
        [&json!("NodeMaintenanceList"), &both["items"][1]["lease"]["metadata"]["name"]]
    );
    assert_eq!(both["items"].as_array().unwrap().len(), 2);
    let renewed = parsed(&run(&["renew", &a, "-d", "1h", "-o", "json"], 0));
    assert_eq!(renewed["lease"]["spec"]["leaseDurationSeconds"], 3600, "{renewed}");
    assert_eq!(run(&["renew", &a, "-o", "name"], 0).stdout, format!("node/{a}\n"));
    let released = parsed(&run(&["release", &a, "-o", "json"], 0));
    assert_eq!(
        [&released["state"], &released["lease"]["spec"]["holderIdentity"]],
        ["free", ""],
        "{released}"
    );
    assert_eq!(parsed(&run(&["release", &a, "-o", "json"], 0))["state"], "free", "already");
    // Nothing of another's, and no document of what was not done.
    let refused = plugin().run(&["maint", "acquire", &b, "--holder", "john", "-o", "json"]).expect(4);
    assert_eq!(refused.stdout, "", "{refused:?}");
}

/// Neither is anything written, nor the command run.
#[test]
fn a_dry_run_of_a_command_under_a_lease_shows_what_would_be_done() {
    let [free, held] = [(); 2].map(|()| node(shared()));
    plugin().run(&["maint", "acquire", &held, "--holder", "jane"]).expect(0);
    let before = lease(shared(), &held);
    let name = format!("dry-{}", random());
    for (strategy, note) in [("client", "dry run"), ("server", "server dry run")] {
        let dry_run = format!("--dry-run={strategy}");
        let run = |nodes: &[&str], code| {
            let words = [&["maint", "run"], nodes, &[&dry_run, "--holder", "john", "--", "echo", "ran it"]];
            plugin().run(&words.concat()).expect(code)
        };
        let outcome = run(&[&free], 0);
        assert_eq!(
            outcome.stdout,
            format!("{free} acquired ({note})\n'echo ran it' run under it ({note})\n")
        );
        assert_eq!(run(&[&free, &held], 4).says("held by 'jane'").stdout, "");
        let outcome = plugin().run(&["hold", &name, &dry_run, "--", "echo", "ran it"]).expect(0);
        assert_eq!(
            outcome.stdout,
            format!("{name} acquired ({note})\n'echo ran it' run under it ({note})\n")
        );
    }
    plugin()
        .run(&["maint", "run", &held, "--dry-run=server", "--wait=1s", "--holder", "john", "--", "true"])
        .expect(124);
    let leases = |namespace| shared().kubectl(&["get", "leases", "-n", namespace, "-o", "name"]);
    assert!(!leases(NAMESPACE).contains(&free) && !leases("default").contains(&name));
    assert_eq!(lease(shared(), &held), before);
}

/// As they are printed, and as kubectl's users write them.
#[test]
fn nodes_are_named_in_several_ways() {
    let [a, b] = [(); 2].map(|()| node(shared()));
    let run = |args: &[&str]| plugin().run(&[&["maint"], args, &["--holder", "jane"]].concat()).expect(0);
    run(&["acquire", &format!("{a},{b}")]);
    assert_eq!(run(&["status", "node", &a, &b, "--no-headers"]).rows().len(), 2);
    let released = run(&["release", &format!("node/{a}"), &format!("nodes/{b}")]).stdout;
    let both = |first, second| format!("{first} released\n{second} released\n");
    assert!([both(&a, &b), both(&b, &a)].contains(&released), "{released}");
}

#[test]
fn a_watched_list_tells_of_every_change_of_hands() {
    let node = node(shared());
    let watching = plugin().start(&["maint", "list", "-w"]);
    watching.until("the list", SOON, |text| text.contains(&node));
    plugin().run(&["maint", "acquire", &node, "--holder", "jane", "--reason", "disk"]).expect(0);
    watching.until("held", SOON, |text| text.contains(&format!("{node}   held   by 'jane': disk, was free")));
    plugin().run(&["maint", "release", &node, "--holder", "jane"]).expect(0);
    watching.until("free", SOON, |text| text.contains(&format!("{node}   free   was held by 'jane'")));
    shared().kubectl(&["delete", "node", &node]);
    watching.until("gone", SOON, |text| text.contains(&format!("{node}   left")));
}

#[test]
fn a_dry_run_changes_nothing() {
    let node = node(shared());
    for how in ["--dry-run", "--dry-run=client", "--dry-run=server"] {
        let outcome = plugin().run(&["maint", "acquire", &node, how]).expect(0);
        assert!(outcome.stdout.contains("dry run)"), "{outcome:?}");
    }
    let there =
        shared().kubectl(&["get", "lease", "-n", NAMESPACE, &node, "--ignore-not-found", "-o", "name"]);
    assert_eq!(there, "");
    plugin().run(&["maint", "acquire", &node, "--holder", "jane"]).expect(0);
    plugin().run(&["maint", "acquire", &node, "--dry-run"]).expect(4);
    let before = lease(shared(), &node);
    for verb in ["renew", "release"] {
        for how in ["--dry-run=client", "--dry-run=server"] {
            plugin().run(&["maint", verb, &node, "--holder", "jane", how]).expect(0);
        }
    }
    assert_eq!(lease(shared(), &node), before);
}

#[test]
fn acquiring_costs_a_read_and_a_write_for_the_node_which_is_looked_at_again() {
    let node = node(shared());
    plugin().run(&["maint", "acquire", &node]).expect(0);
    plugin().run(&["maint", "release", &node]).expect(0);
    let (user, kubeconfig) = shared().unique_admin();
    Plugin::new(kubeconfig).run(&["maint", "acquire", &node]).expect(0);
    let mut asked: Vec<_> =
        shared().audited(&user).into_iter().map(|uri| uri.split('?').next().unwrap().to_owned()).collect();
    asked.sort();
    let lease = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{node}");
    let mut expected = vec![
        "create /apis/authentication.k8s.io/v1/selfsubjectreviews".to_owned(),
        format!("get /api/v1/nodes/{node}"),
        // Once more when the lease is taken: it goes with the node as it is then.
        format!("get /api/v1/nodes/{node}"),
        format!("get /apis/coordination.k8s.io/v1/namespaces/medik8s-leases/leases/node-{node}"),
        format!("get {lease}"),
        format!("patch {lease}"),
    ];
    expected.sort();
    assert_eq!(asked, expected);
}

#[test]
fn the_documented_rights_are_enough_and_without_them_the_verb_is_named() {
    let node = node(shared());
    plugin().run(&["maint", "acquire", &node]).expect(0);
    plugin().run(&["maint", "release", &node]).expect(0);
    let reader = Plugin::new(shared().kubeconfig(User::Reader, 0));
    for args in [
        &["maint", "acquire", &node][..],
        &["maint", "renew", &node],
        &["maint", "status", &node],
        &["maint", "list"],
        &["maint", "release", &node],
        &["maint", "run", &node, "--", "true"],
        &["maint", "acquire", &node, "--wait=1s"],
        &["maint", "release", &node],
    ] {
        reader.run(args).expect(0);
    }
    let nobody = Plugin::new(shared().kubeconfig(User::Nobody, 0));
    for verb in ["acquire", "renew", "status", "release"] {
        nobody.run(&["maint", verb, &node]).expect(7).says("cannot get resource").says("--verb=get");
    }
    nobody.run(&["maint", "list"]).expect(7).says("cannot list resource");
}

/// The rule is the server's clock, whatever this machine's says.
#[test]
fn a_server_clock_an_hour_off_decides_and_is_warned_of() {
    for (offset, code) in [(3600, 0), (-3600, 4), (0, 4)] {
        let node = node(shared());
        let spec = json!({ "holderIdentity": "jane", "leaseDurationSeconds": 1800, "renewTime": ago(0) });
        write(shared(), NAMESPACE, &node, &spec);
        let proxy = FaultProxy::start(shared(), move |_, _| Fault::Clock(offset));
        let outcome = Plugin::new(&proxy.kubeconfig).run(&["maint", "acquire", &node]).expect(code);
        assert_eq!(outcome.stderr.contains("warning: this machine's clock is "), offset != 0, "{outcome:?}");
    }
}

#[test]
fn a_write_whose_answer_is_lost_is_read_back() {
    for fault in [Fault::CutAfter, Fault::CutBefore, Fault::Refuse(500), Fault::Refuse(504), Fault::HangAfter]
    {
        let node = node(shared());
        let writes = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&writes);
        let proxy = FaultProxy::start(shared(), move |method, path| {
            let lease = path.contains("/leases") && matches!(method, "POST" | "PATCH");
            if lease && counted.fetch_add(1, Ordering::SeqCst) == 0 { fault } else { Fault::None }
        });
        let outcome = Plugin::new(&proxy.kubeconfig)
            .run(&["maint", "acquire", &node, "--holder", "jane", "--request-timeout", "2s"])
            .expect(0);
        assert_eq!(outcome.stdout, format!("{node} acquired, held by jane for 30m\n"), "{fault:?}");
        let lease = lease(shared(), &node);
        assert_eq!(
            (&lease["spec"]["holderIdentity"], &lease["spec"]["leaseTransitions"]),
            (&json!("jane"), &json!(0))
        );
        // One that was done long ago is renewed, so that it is held for as long as is said.
        let expected = if fault == Fault::CutAfter { 1 } else { 2 };
        assert_eq!(writes.load(Ordering::SeqCst), expected, "{fault:?}: written once, not guessed");
    }
}

#[test]
fn a_conflict_is_read_and_judged_again() {
    let node = node(shared());
    plugin().run(&["maint", "acquire", &node, "--holder", "john"]).expect(0);
    plugin().run(&["maint", "release", &node, "--holder", "john"]).expect(0);
    let kubectl = shared().assets.join("kubectl");
    let kubeconfig = shared().kubeconfig(User::Admin, 0);
    let (name, done) = (node.clone(), AtomicBool::new(false));
    // Between our read and our write, somebody else takes it.
    let proxy = FaultProxy::start(shared(), move |method, _| {
        if method == "PATCH" && !done.swap(true, Ordering::SeqCst) {
            let patch = format!(
                r#"{{"spec":{{"holderIdentity":"jane","leaseDurationSeconds":600,"renewTime":"{}"}}}}"#,
                ago(0)
            );
            let taken = Command::new(&kubectl)
                .args(["patch", "lease", "-n", NAMESPACE, &name, "--type=merge", "-p", &patch])
                .env("KUBECONFIG", &kubeconfig)
                .stdout(Stdio::null())
                .status();
            assert!(taken.unwrap().success());
        }
        Fault::None
    });
    Plugin::new(&proxy.kubeconfig)
        .run(&["maint", "acquire", &node, "--holder", "john"])
        .expect(4)
        .says("held by 'jane'");
    assert_eq!(lease(shared(), &node)["spec"]["holderIdentity"], "jane");
}

#[test]
fn the_namespace_is_made_where_it_is_missing_and_nothing_is_taken_while_it_goes() {
    // Without a controller that cleans up, a namespace stays on its way out until told otherwise.
    let plane = ControlPlane::start(&Shape::default());
    let node = node(&plane);
    let plugin = Plugin::new(plane.kubeconfig(User::Admin, 0));
    let ends = || {
        plane.kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"]);
    };
    ends();
    plugin.run(&["maint", "acquire", &node]).expect(1).says("because it is being terminated");
    let finalize = plane.folder.join("finalize.json");
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE }, "spec": {} });
    std::fs::write(&finalize, namespace.to_string()).unwrap();
    let path = format!("/api/v1/namespaces/{NAMESPACE}/finalize");
    plane.kubectl(&["replace", "--raw", &path, "-f", finalize.to_str().unwrap()]);

    plugin.run(&["maint", "status", &node]).expect(0);
    plugin.run(&["maint", "list"]).expect(0);
    plugin.run(&["maint", "acquire", &node, "--dry-run=server"]).expect(0);
    assert_eq!(plane.kubectl(&["get", "namespace", NAMESPACE, "--ignore-not-found"]), "");
    plugin.run(&["maint", "acquire", &node]).expect(0);
    plugin.run(&["maint", "status", &node]).expect(0);
}

/// One round of a race: many processes, one node, one winner.
fn race(
    kubeconfigs: &[std::path::PathBuf],
    node: &str,
    processes: usize,
    request_timeout: &str,
) -> (usize, Vec<i32>) {
    let children: Vec<_> = (0..processes)
        .map(|n| {
            Command::new(env!("CARGO_BIN_EXE_kubectl-lease"))
                .args([
                    "maint",
                    "acquire",
                    node,
                    "--request-timeout",
                    request_timeout,
                    "--holder",
                    &format!("racer-{n}"),
                ])
                .env("KUBECONFIG", &kubeconfigs[n % kubeconfigs.len()])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let codes: Vec<i32> =
        children.into_iter().map(|mut child| child.wait().unwrap().code().unwrap_or(-1)).collect();
    (codes.iter().filter(|code| **code == 0).count(), codes)
}

/// Leaves the lease to a holder whose time is long over.
fn expire(plane: &ControlPlane, node: &str) {
    let spec = json!({
        "holderIdentity": "ghost", "leaseDurationSeconds": 60, "acquireTime": ago(4000), "renewTime": ago(4000),
    });
    patch(plane, node, &spec);
}

fn patch(plane: &ControlPlane, node: &str, spec: &Value) {
    let patch = json!({ "spec": spec }).to_string();
    plane.kubectl(&["patch", "lease", "-n", NAMESPACE, node, "--type=merge", "-p", &patch]);
}

/// Which of the processes in a race a holder is.
fn racer(holder: &str) -> usize {
    holder.strip_prefix("racer-").unwrap().parse().unwrap()
}

/// Who holds it now, by the server.
fn holder(plane: &ControlPlane, node: &str) -> String {
    lease(plane, node)["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

/// Every second round is for a lease that has expired. `KUBECTL_LEASE_RACES` says how many there are.
#[test]
fn of_32_processes_one_wins_every_round() {
    let rounds = usize::try_from(number("KUBECTL_LEASE_RACES").unwrap_or(60)).unwrap();
    let node = node(shared());
    let kubeconfigs: Vec<_> = (0..3).map(|n| shared().kubeconfig(User::Admin, n)).collect();
    for round in 0..rounds {
        let (winners, codes) = race(&kubeconfigs, &node, 32, "30s");
        assert_eq!(winners, 1, "round {round}: {codes:?}");
        assert_eq!(codes.iter().filter(|code| **code == 4).count(), 31, "round {round}: {codes:?}");
        let winner = codes.iter().position(|code| *code == 0).unwrap();
        if round % 2 == 0 {
            expire(shared(), &node);
        } else {
            plugin().run(&["maint", "release", &node, "--holder", &format!("racer-{winner}")]).expect(0);
        }
    }
    assert_eq!(
        lease(shared(), &node)["spec"]["leaseTransitions"],
        rounds - 1,
        "each round one change of hands"
    );
}

/// They see it expire at the same moment.
#[test]
fn of_16_processes_that_wait_for_a_lease_to_expire_one_takes_it() {
    let node = node(shared());
    let times = |renewed: &str| json!({ "acquireTime": ago(60), "renewTime": renewed });
    let held = json!({ "holderIdentity": "jane", "leaseDurationSeconds": 60, "leaseTransitions": 7 });
    write(shared(), NAMESPACE, &node, &held);
    patch(shared(), &node, &times(&ago(0)));
    let mut waiting: Vec<_> = (0..16)
        .map(|n| {
            let holder = format!("racer-{n}");
            Plugin::new(shared().kubeconfig(User::Admin, n % 3))
                .start(&["maint", "acquire", &node, "--holder", &holder, "--wait"])
        })
        .collect();
    for process in &waiting {
        process.until_stderr("it waits", SOON * 2, |text| text.contains("held by 'jane'"));
    }
    // With the grace period it expires in 2 seconds.
    patch(shared(), &node, &times(&ago(61)));
    let taken = || holder(shared(), &node) != "jane";
    wait_for("one takes it", SOON * 2, taken, || lease(shared(), &node).to_string());
    thread::sleep(Duration::from_secs(1));
    let winner = racer(&holder(shared(), &node));
    for (n, process) in waiting.iter_mut().enumerate() {
        if n != winner {
            process.signal("-INT");
        }
        let code = process.wait();
        assert_eq!(code, if n == winner { 0 } else { 130 }, "{n}: {}", process.stderr());
    }
    let lease = lease(shared(), &node);
    assert_eq!(racer(lease["spec"]["holderIdentity"].as_str().unwrap()), winner);
    assert_eq!(lease["spec"]["leaseTransitions"], 8);
}

/// The same while two of three kube-apiservers are killed and restarted: some processes fail for
/// want of a server, but never do two win, and who won holds.
#[test]
fn never_two_winners_while_apiservers_die() {
    const ROUNDS: usize = 20;
    let mut plane = ControlPlane::start(&Shape { apiservers: 3, ..Shape::default() });
    let node = node(&plane);
    let kubeconfigs: Vec<_> = (0..3).map(|n| plane.kubeconfig(User::Admin, n)).collect();
    let steady = Plugin::new(&kubeconfigs[0]);
    let mut wins = 0;
    for round in 0..ROUNDS {
        let victim = 1 + round % 2;
        let (racing, name) = (kubeconfigs.clone(), node.clone());
        let racers = thread::spawn(move || race(&racing, &name, 32, "5s"));
        thread::sleep(Duration::from_millis(u64::try_from(round * 23 % 300).unwrap()));
        plane.apiservers[victim].kill();
        let (winners, codes) = racers.join().unwrap();
        let held = holder(&plane, &node);
        assert!(winners <= 1, "round {round}: {codes:?}");
        assert!(codes.iter().all(|code| [0, 1, 4].contains(code)), "round {round}: {codes:?}");
        if winners == 1 {
            wins += 1;
            let winner = codes.iter().position(|code| *code == 0).unwrap();
            assert_eq!(held, format!("racer-{winner}"), "round {round}: {codes:?}");
        }
        assert!(held.starts_with("racer-"), "somebody asked a server that lives: {codes:?}");
        assert_ne!(codes[racer(&held)], 4, "round {round}: {held} was told that another holds it: {codes:?}");
        if round % 4 < 2 {
            expire(&plane, &node);
        } else {
            steady.run(&["maint", "release", &node, "--holder", &held]).expect(0);
        }
        plane.restart_apiserver(victim);
    }
    assert!(wins >= ROUNDS * 3 / 4, "{wins} of {ROUNDS} rounds had a winner");
}

/// The same with faults injected into one request in three.
#[test]
fn never_two_winners_while_requests_fail_in_every_way() {
    const ROUNDS: usize = 30;
    let node = node(shared());
    let count = AtomicUsize::new(0);
    let proxy = FaultProxy::start(shared(), move |_, _| {
        let n = count.fetch_add(1, Ordering::SeqCst);
        match (n * 2_654_435_761) >> 7 & 31 {
            0 | 1 => Fault::Refuse(409),
            2 | 3 => Fault::Refuse(429),
            4 | 5 => Fault::Refuse(500),
            6 | 7 => Fault::CutAfter,
            8 => Fault::CutBefore,
            9 => Fault::HangAfter,
            _ => Fault::None,
        }
    });
    let mut wins = 0;
    for round in 0..ROUNDS {
        let (winners, codes) = race(std::slice::from_ref(&proxy.kubeconfig), &node, 8, "5s");
        assert!(winners <= 1, "round {round}: {codes:?}");
        let lease = lease(shared(), &node);
        let held = lease["spec"]["holderIdentity"].as_str().unwrap().to_owned();
        if winners == 1 {
            wins += 1;
            let winner = codes.iter().position(|code| *code == 0).unwrap();
            assert_eq!(held, format!("racer-{winner}"), "round {round}: {codes:?}");
        }
        if held.starts_with("racer-") {
            assert_ne!(
                codes[racer(&held)],
                4,
                "round {round}: {held} was told that another holds it: {codes:?}"
            );
            // Whole, not half: a failed process may leave a lease held, to expire, but never a broken one.
            for field in ["renewTime", "acquireTime", "leaseDurationSeconds", "leaseTransitions"] {
                assert!(!lease["spec"][field].is_null(), "round {round}: {lease}");
            }
            if round % 2 == 0 {
                expire(shared(), &node);
            } else {
                plugin().run(&["maint", "release", &node, "--holder", &held]).expect(0);
            }
        }
    }
    assert!(wins >= ROUNDS * 3 / 4, "{wins} of {ROUNDS} rounds had a winner");
}
