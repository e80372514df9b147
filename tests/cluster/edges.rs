//! At most one holder, also where requests are late, nodes are recreated, others share a name, and
//! commands are given up half-way. On a real control plane; the faults are the proxy's.

use std::{
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    MEDIK8S,
    harness::{
        ControlPlane, Shape, User,
        faults::{Fault, FaultProxy},
        random,
    },
    plugin::{Plugin, wait_for},
    shared,
};

const NAMESPACE: &str = "kube-node-maintenance";
const SOON: Duration = Duration::from_secs(10);

fn plugin() -> Plugin {
    Plugin::new(shared().kubeconfig(User::Admin, 0))
}

fn node(plane: &ControlPlane) -> String {
    let name = format!("node-{}", random());
    make_node(plane, &name);
    name
}

fn make_node(plane: &ControlPlane, name: &str) {
    plane.apply(&json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } }));
}

/// Two nodes, in the order in which they are taken.
fn two_nodes() -> (String, String) {
    let mut names = [node(shared()), node(shared())];
    names.sort();
    names.into()
}

/// A lease as it is now; null if there is none.
fn look(plane: &ControlPlane, namespace: &str, name: &str) -> Value {
    let text = plane.kubectl(&["get", "lease", "-n", namespace, name, "--ignore-not-found", "-o", "json"]);
    serde_json::from_str(&text).unwrap_or_default()
}

fn lease(name: &str) -> Value {
    look(shared(), NAMESPACE, name)
}

fn holder(lease: &Value) -> &str {
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default()
}

fn time(lease: &Value, field: &str) -> jiff::Timestamp {
    lease["spec"][field].as_str().unwrap_or_else(|| panic!("no {field} in {lease}")).parse().unwrap()
}

/// How many seconds a lease is held from now on, without the grace.
fn left(lease: &Value) -> i64 {
    let held = jiff::SignedDuration::from_secs(lease["spec"]["leaseDurationSeconds"].as_i64().unwrap());
    (time(lease, "renewTime") + held).duration_since(jiff::Timestamp::now()).as_secs()
}

fn ago(millis: i64) -> String {
    format!("{:.6}", jiff::Timestamp::now() - jiff::SignedDuration::from_millis(millis))
}

/// Writes a lease as another client would: held for a minute, last renewed so long ago.
fn write(namespace: &str, name: &str, holder: &str, renewed_millis_ago: i64) {
    let spec = json!({
        "holderIdentity": holder, "leaseDurationSeconds": 60, "leaseTransitions": 3,
        "acquireTime": ago(renewed_millis_ago), "renewTime": ago(renewed_millis_ago),
    });
    shared().apply(&json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": name, "namespace": namespace }, "spec": spec,
    }));
}

fn patch(namespace: &str, name: &str, patch: &Value) {
    shared().kubectl(&["patch", "lease", "-n", namespace, name, "--type=merge", "-p", &patch.to_string()]);
}

fn is_lease_write(method: &str, path: &str) -> bool {
    matches!(method, "POST" | "PATCH") && path.contains("/leases")
}

/// A, of the same user and host, has `first` while it waits for `second`: B is not told that it holds
/// `first`, which A releases when it gives up.
#[test]
fn giving_up_releases_nothing_that_another_process_of_the_same_holder_was_told_it_holds() {
    // At once, and after A has renewed it.
    for pause in [0, 5] {
        let (first, second) = two_nodes();
        plugin().run(&["maint", "acquire", &second, "--holder", "other"]).expect(0);
        let args = ["maint", "acquire", &first, &second, "--holder", "jane", "-d", "9s", "--wait"];
        let mut a = plugin().start(&args);
        a.until_stderr("it waits", SOON, |text| text.contains("waiting for"));
        let b = ["maint", "acquire", &first, "--holder", "jane", "-d", "30m"];
        plugin().run(&b).expect(4).says("held by 'jane#");
        thread::sleep(Duration::from_secs(pause));
        a.signal("-INT");
        assert_eq!(a.wait(), 130);
        assert_eq!(holder(&lease(&first)), "", "after {pause} s: {}", a.stderr());
        plugin().run(&b).expect(0);
        assert!(left(&lease(&first)) > 29 * 60, "after {pause} s: {}", lease(&first));
        plugin().run(&["maint", "acquire", &first, "--holder", "thief"]).expect(4);
    }
}

/// What was taken by a command that fails is as it was before, its own expired lease included.
#[test]
fn a_failed_acquisition_of_several_leaves_everything_as_it_was() {
    // One's own whose time is over is taken anew, and released again.
    let (first, second) = two_nodes();
    write(NAMESPACE, &first, "jane", 100_000);
    write(NAMESPACE, &second, "other", 0);
    let both = ["maint", "acquire", &first, &second, "--holder", "jane", "--wait=1s"];
    plugin().run(&both).expect(124).says("released again");
    assert_eq!(holder(&lease(&first)), "", "it had expired");
    plugin().run(&["maint", "acquire", &first, "--holder", "john"]).expect(0);

    // One's own that is still held is put back: the same end, the same reason.
    let (first, second) = two_nodes();
    let reason = ["--reason", "new disk"];
    plugin()
        .run(&[&["maint", "acquire", &first, "--holder", "jane", "-d", "10m"][..], &reason].concat())
        .expect(0);
    write(NAMESPACE, &second, "other", 0);
    let before = lease(&first);
    let both = ["maint", "acquire", &first, &second, "--holder", "jane", "-d", "1h", "--wait=1s"];
    plugin().run(&both).expect(124);
    let after = lease(&first);
    for field in ["holderIdentity", "renewTime", "acquireTime", "leaseDurationSeconds"] {
        assert_eq!(after["spec"][field], before["spec"][field], "{field}");
    }
    assert_eq!(after["metadata"]["annotations"], before["metadata"]["annotations"]);
}

#[test]
fn a_node_that_is_deleted_during_a_wait_ends_it() {
    let node = node(shared());
    plugin().run(&["maint", "acquire", &node, "--holder", "jane"]).expect(0);
    let mut waiting = plugin().start(&["maint", "acquire", &node, "--holder", "john", "--wait"]);
    waiting.until_stderr("it waits", SOON, |text| text.contains("waiting for"));
    shared().kubectl(&["delete", "node", &node]);
    // The lease goes with the node, and is free then: but there is nothing to hold.
    assert_eq!(waiting.wait(), 3, "{}", waiting.stderr());
    assert!(waiting.stderr().contains("was deleted meanwhile"), "{}", waiting.stderr());
    assert_eq!(holder(&lease(&node)), "");
}

/// What becomes of a node while its lease is written.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Deleted,
    /// So many times.
    Recreated(usize),
}

/// Acquires or renews the lease of a node that is deleted, or recreated, while it is written: the node, if it
/// is held then. It is there `before`.
fn write_while_the_node_goes(
    plane: &ControlPlane,
    verb: &str,
    fate: Fate,
    before: bool,
    flags: &[&str],
) -> Option<String> {
    let direct = Plugin::new(plane.kubeconfig(User::Admin, 0));
    let name = node(plane);
    if before {
        direct.run(&["maint", "acquire", &name]).expect(0);
    }
    if before && verb == "acquire" {
        direct.run(&["maint", "release", &name]).expect(0);
    }
    let (kubectl, kubeconfig) = (plane.assets.join("kubectl"), plane.kubeconfig(User::Admin, 0));
    let manifest = plane.folder.join(format!("{name}.json"));
    let object = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } });
    std::fs::write(&manifest, object.to_string()).unwrap();
    let (writes, node) = (AtomicUsize::new(0), name.clone());
    let times = if let Fate::Recreated(times) = fate { times } else { 1 };
    let proxy = FaultProxy::start(plane, move |method, path| {
        if is_lease_write(method, path) && writes.fetch_add(1, Ordering::SeqCst) < times {
            let kubectl = |args: &[&str]| {
                let mut run = Command::new(&kubectl);
                run.args(args).env("KUBECONFIG", &kubeconfig).stdout(Stdio::null());
                assert!(run.status().unwrap().success());
            };
            kubectl(&["delete", "node", &node]);
            if fate != Fate::Deleted {
                kubectl(&["create", "-f", manifest.to_str().unwrap()]);
            }
        }
        Fault::None
    });
    let args = [&["maint", verb, &name][..], flags].concat();
    let outcome = Plugin::new(&proxy.kubeconfig).run(&args);
    if fate == Fate::Deleted {
        outcome.expect(3).says("was deleted meanwhile");
        assert_eq!(holder(&look(plane, NAMESPACE, &name)), "");
        return None;
    }
    outcome.expect(0);
    Some(name)
}

/// The garbage collector deletes the lease of a node of before: from under its holder, if the node was
/// recreated while the lease was waited for, before the look, or between the look and the write.
#[test]
fn a_lease_is_never_left_to_a_node_that_is_no_more() {
    let mut plane = ControlPlane::start(&Shape { managers: 1, managers_wait: true, ..Shape::default() });
    let uid = |name: &str| plane.kubectl(&["get", "node", name, "-o", "jsonpath={.metadata.uid}"]);
    let owner = |name: &str| look(&plane, NAMESPACE, name)["metadata"]["ownerReferences"][0]["uid"].clone();
    let recreate = |name: &str| {
        plane.kubectl(&["delete", "node", name]);
        make_node(&plane, name);
        assert_ne!(owner(name), json!(uid(name)));
    };
    let direct = Plugin::new(plane.kubeconfig(User::Admin, 0));
    // The new owner is written together with the holder: in between, the lease could be collected.
    let writes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&writes);
    let proxy = FaultProxy::start(&plane, move |method, path| {
        counted.fetch_add(usize::from(is_lease_write(method, path)), Ordering::SeqCst);
        Fault::None
    });
    let once = |what: &str| assert_eq!(writes.swap(0, Ordering::SeqCst), 1, "{what}");
    let counting = Plugin::new(&proxy.kubeconfig);
    let mut taken = Vec::new();
    let old = node(&plane);
    direct.run(&["maint", "acquire", &old]).expect(0);
    direct.run(&["maint", "release", &old]).expect(0);
    recreate(&old);
    counting.run(&["maint", "acquire", &old]).expect(0);
    once("recreated before the look");
    taken.push(old);

    for admin in [&[][..], &["--admin"]] {
        let name = node(&plane);
        direct.run(&["maint", "acquire", &name, "--holder", "jane"]).expect(0);
        let args = [&["maint", "acquire", &name, "--holder", "john", "--wait"][..], admin].concat();
        let mut waiting = counting.start(&args);
        waiting.until_stderr("it waits", SOON, |text| text.contains("waiting for"));
        recreate(&name);
        let lease = look(&plane, NAMESPACE, &name);
        if admin.is_empty() {
            direct.run(&["maint", "release", &name, "--holder", "jane"]).expect(0);
        } else {
            plane.kubectl(&["delete", "lease", "-n", NAMESPACE, &name]);
        }
        assert_eq!(waiting.wait(), 0, "{}: {lease}", waiting.stderr());
        once("recreated during the wait");
        taken.push(name);
    }

    // One of several that are waited for, whose lease was there before.
    let [first, second] = [node(&plane), node(&plane)];
    direct.run(&["maint", "acquire", &first]).expect(0);
    direct.run(&["maint", "release", &first]).expect(0);
    direct.run(&["maint", "acquire", &second, "--holder", "jane"]).expect(0);
    let mut waiting = direct.start(&["maint", "acquire", &first, &second, "--holder", "john", "--wait"]);
    waiting.until_stderr("it waits", SOON, |text| text.contains(&format!("waiting for {second}")));
    recreate(&first);
    direct.run(&["maint", "release", &second, "--holder", "jane"]).expect(0);
    assert_eq!(waiting.wait(), 0, "{}", waiting.stderr());
    taken.extend([first, second]);

    // One that was there before has the owner that it had.
    for (verb, fate, before, flags) in [
        ("acquire", Fate::Recreated(1), false, &["--admin"][..]),
        ("acquire", Fate::Deleted, false, &["--admin"]),
        ("acquire", Fate::Recreated(1), true, &[]),
        ("acquire", Fate::Recreated(2), true, &[]),
        ("acquire", Fate::Recreated(1), true, &["--admin"]),
        ("acquire", Fate::Recreated(1), true, &["--wait=20s"]),
        ("acquire", Fate::Deleted, true, &[]),
        ("renew", Fate::Recreated(1), true, &[]),
    ] {
        taken.extend(write_while_the_node_goes(&plane, verb, fate, before, flags));
    }

    for name in &taken {
        assert_eq!(owner(name), json!(uid(name)));
    }
    // And so the garbage collector sees it; one that nothing owns any more shows that it has been at work.
    let orphan = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {
            "name": "orphan", "namespace": NAMESPACE,
            "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": "gone", "uid": "gone" }],
        },
    });
    plane.apply(&orphan);
    plane.managers[0].start();
    let collected = || look(&plane, NAMESPACE, "orphan").is_null();
    wait_for("the garbage collector", Duration::from_secs(60), collected, || plane.managers[0].log_tail());
    for name in &taken {
        assert!(!holder(&look(&plane, NAMESPACE, name)).is_empty(), "{name}");
    }
}

#[test]
fn medik8s_is_respected_at_the_end_of_a_wait_too_and_waited_for() {
    let node = node(shared());
    plugin().run(&["maint", "acquire", &node, "--holder", "jane"]).expect(0);
    let mut waiting = plugin().start(&["maint", "acquire", &node, "--holder", "john", "--wait"]);
    waiting.until_stderr("it waits", SOON, |text| text.contains("held by 'jane'"));
    let theirs = format!("node-{node}");
    // A few seconds ahead: its clock is not ours.
    write(MEDIK8S, &theirs, "node-maintenance", -5_000);
    plugin().run(&["maint", "release", &node, "--holder", "jane"]).expect(0);
    waiting.until_stderr("medik8s", SOON, |text| text.contains("held by medik8s ('node-maintenance')"));
    plugin().run(&["maint", "acquire", &node]).expect(4).says("held by medik8s ('node-maintenance'");
    plugin().run(&["maint", "acquire", &node, "--wait=1s"]).expect(124);
    assert_eq!(holder(&lease(&node)), "");
    shared().kubectl(&["delete", "lease", "-n", MEDIK8S, &theirs]);
    assert_eq!(waiting.wait(), 0, "{}", waiting.stderr());
    assert_eq!(holder(&lease(&node)), "john");
}

/// A write that arrives after it was given up is refused, or undone.
#[test]
fn a_write_that_arrives_after_giving_up_holds_nothing() {
    // All writes are late, or only the first: then what supersedes it overtakes it.
    for only_first in [false, true] {
        let late = || {
            let writes = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&writes);
            let proxy = FaultProxy::start(shared(), move |method, path| {
                let n = if is_lease_write(method, path) { counted.fetch_add(1, Ordering::SeqCst) } else { 9 };
                if n == 0 || (n < 9 && !only_first) { Fault::Late(4000) } else { Fault::None }
            });
            (proxy, writes)
        };
        let settled = |name: &str, what: &str| {
            // Whatever was on its way has arrived by then.
            thread::sleep(Duration::from_millis(4500));
            assert_eq!(holder(&lease(name)), "", "{what}, only the first is late: {only_first}");
        };
        // Ctrl-C during a create, by an administrator: such a lease would be held for ever. The
        // request itself is given up, too.
        let name = node(shared());
        let (proxy, writes) = late();
        let args = ["maint", "acquire", &name, "--admin", "--holder", "ann", "--request-timeout", "1s"];
        let mut running = Plugin::new(&proxy.kubeconfig).start(&args);
        wait_for("it writes", SOON, || writes.load(Ordering::SeqCst) > 0, || running.stderr());
        running.signal("-INT");
        let code = running.wait();
        assert!([130, 1].contains(&code), "{code} {}", running.stderr());
        settled(&name, "a create");

        // --wait runs out during a takeover.
        let name = node(shared());
        write(NAMESPACE, &name, "jane", 62_000);
        let (proxy, _) = late();
        Plugin::new(&proxy.kubeconfig)
            .run(&["maint", "acquire", &name, "--holder", "john", "--wait=2s"])
            .expect(124);
        settled(&name, "a takeover");
    }
}

#[test]
fn an_interrupted_hold_holds_nothing_when_its_create_arrives_late() {
    let name = format!("edge-{}", random());
    let writes = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&writes);
    let proxy = FaultProxy::start(shared(), move |method, path| {
        let write = is_lease_write(method, path);
        seen.fetch_or(write, Ordering::SeqCst);
        if write { Fault::Late(3000) } else { Fault::None }
    });
    let mut running =
        Plugin::new(&proxy.kubeconfig).start(&["hold", &name, "-n", "default", "-d", "10m", "--", "true"]);
    wait_for("it writes", SOON, || writes.load(Ordering::SeqCst), || running.stderr());
    running.signal("-TERM");
    assert_eq!(running.wait(), 130);
    thread::sleep(Duration::from_secs(3));
    assert_eq!(holder(&look(shared(), "default", &name)), "");
}

/// The connection goes for two seconds, or the writes conflict, just when the lease becomes free.
#[test]
fn a_wait_survives_an_outage_and_lost_races_at_the_takeover() {
    for (what, outage) in [("outage", true), ("conflicts", false)] {
        for hold in [false, true] {
            let node = node(shared());
            let name = if hold { format!("edge-{}", random()) } else { node };
            let namespace = if hold { "default" } else { NAMESPACE };
            write(namespace, &name, "jane", 0);
            let since: Mutex<Option<Instant>> = Mutex::new(None);
            let conflicts = AtomicUsize::new(0);
            let proxy = FaultProxy::start(shared(), move |method, path| {
                let writes = is_lease_write(method, path);
                let mut since = since.lock().unwrap();
                if writes {
                    since.get_or_insert_with(Instant::now);
                }
                let down = since.is_some_and(|since| since.elapsed() < Duration::from_millis(2500));
                match (outage, down) {
                    (true, true) => Fault::CutBefore,
                    (false, _) if writes && conflicts.fetch_add(1, Ordering::SeqCst) < 12 => {
                        Fault::Refuse(409)
                    }
                    _ => Fault::None,
                }
            });
            let args: &[&str] = if hold {
                &["hold", &name, "-n", "default", "--wait", "--", "true"]
            } else {
                &["maint", "acquire", &name, "--holder", "john", "--wait"]
            };
            let mut waiting = Plugin::new(&proxy.kubeconfig).start(args);
            waiting.until_stderr("it waits", SOON, |text| text.contains("held by 'jane'"));
            patch(namespace, &name, &json!({ "spec": { "holderIdentity": "", "leaseDurationSeconds": 1 } }));
            assert_eq!(waiting.wait(), 0, "{what}, hold {hold}: {}", waiting.stderr());
            assert_eq!(holder(&look(shared(), namespace, &name)), if hold { "" } else { "john" });
        }
    }
}

#[test]
fn the_token_grows_over_the_deletion_of_the_lease() {
    let name = format!("edge-{}", random());
    let script = "echo $KUBECTL_LEASE_TOKEN $KUBECTL_LEASE_TRANSITIONS";
    let mut last = 0;
    for round in 0..4 {
        let outcome = plugin().run(&["hold", &name, "-n", "default", "--", "sh", "-c", script]).expect(0);
        let (token, _) = outcome.stdout.trim().split_once(' ').unwrap();
        let token: u64 = token.parse().unwrap();
        assert!(token > last, "round {round}: {token} after {last}");
        last = token;
        if round % 2 == 1 {
            shared().kubectl(&["delete", "lease", "-n", "default", &name]);
        }
    }
    // One for each lease, in the order of the names.
    let (first, second) = two_nodes();
    let outcome = plugin().run(&["maint", "run", &first, &second, "--", "sh", "-c", script]).expect(0);
    let tokens: Vec<u64> =
        outcome.stdout.split(' ').next().unwrap().split(',').map(|token| token.parse().unwrap()).collect();
    assert_eq!(tokens.len(), 2);
}

/// Only a finalizer keeps it: whatever is written there is gone in a moment.
#[test]
fn a_lease_that_is_being_deleted_is_not_taken_and_is_lost_by_its_holder() {
    let node = node(shared());
    write(NAMESPACE, &node, "", 0);
    let delete = |namespace: &str, name: &str| {
        patch(namespace, name, &json!({ "metadata": { "finalizers": ["example.org/keeps"] } }));
        shared().kubectl(&["delete", "lease", "-n", namespace, name, "--wait=false"]);
    };
    let finish = |namespace: &str, name: &str| {
        patch(namespace, name, &json!({ "metadata": { "finalizers": null } }));
    };
    delete(NAMESPACE, &node);
    let old = lease(&node)["metadata"]["uid"].clone();
    for verb in ["acquire", "run"] {
        let end: &[&str] = if verb == "run" { &["--", "true"] } else { &[] };
        let args = [&["maint", verb, &node][..], end].concat();
        plugin().run(&args).expect(4).says("being deleted").says("example.org/keeps");
    }
    let other = format!("edge-{}", random());
    write("default", &other, "", 0);
    delete("default", &other);
    plugin().run(&["hold", &other, "-n", "default", "--", "true"]).expect(4).says("being deleted");
    finish("default", &other);
    let mut waiting = plugin().start(&["maint", "acquire", &node, "--holder", "john", "--wait"]);
    waiting.until_stderr("it waits", SOON, |text| text.contains("its lease is being deleted"));
    finish(NAMESPACE, &node);
    assert_eq!(waiting.wait(), 0, "{}", waiting.stderr());
    let new = lease(&node);
    assert_eq!(holder(&new), "john");
    assert_ne!(new["metadata"]["uid"], old);

    let name = format!("edge-{}", random());
    let mut running = plugin().start(&["hold", &name, "-n", "default", "-d", "60s", "--", "sleep", "600"]);
    wait_for("held", SOON, || !holder(&look(shared(), "default", &name)).is_empty(), || running.stderr());
    delete("default", &name);
    assert_eq!(running.wait(), 75, "{}", running.stderr());
    finish("default", &name);
}

#[test]
fn people_who_share_a_user_hold_under_names_of_their_own() {
    let node = node(shared());
    let as_user = |name: &str, login: &str| plugin().env(name, login);
    as_user("USER", "jane").run(&["maint", "acquire", &node]).expect(0);
    let held = holder(&lease(&node)).to_owned();
    assert!(held.starts_with("admin/jane@"), "{held}");
    as_user("USER", "john").run(&["maint", "acquire", &node]).expect(4).says(&format!("held by '{held}'"));
    as_user("USER", "john").run(&["maint", "release", &node]).expect(4);
    // By sudo she is root, and still herself.
    as_user("USER", "root").env("SUDO_USER", "jane").run(&["maint", "release", &node]).expect(0);
    assert_eq!(holder(&lease(&node)), "");
}

#[test]
fn a_lease_that_is_held_for_another_reason_is_not_renewed_without_a_yes() {
    let node = node(shared());
    let acquire = |more: &[&str]| {
        plugin().run(&[&["maint", "acquire", &node, "--holder", "shared"][..], more].concat())
    };
    let reason = || lease(&node)["metadata"]["annotations"]["kubectl-lease.dev/reason"].clone();
    acquire(&["-r", "new disk"]).expect(0);
    let before = lease(&node);
    acquire(&["-r", "reboot"]).expect(6).says("for another reason: new disk").says("--yes");
    assert_eq!(lease(&node), before);
    acquire(&["-r", "reboot", "--dry-run"]).expect(6);
    acquire(&["-r", "new disk"]).expect(0);
    acquire(&[]).expect(0);
    assert_eq!(reason(), "new disk");
    let args = ["maint", "acquire", &node, "--holder", "shared", "-r", "reboot"];
    for (answer, code, then) in [("n\r", 6, "new disk"), ("y\r", 0, "reboot")] {
        let mut terminal = plugin().start_on_terminal(&args, 20, 200);
        terminal.until("the question", SOON, |screen| screen.contains("Replace the reason?"));
        terminal.types(answer);
        assert_eq!(terminal.wait(), code);
        assert_eq!(reason(), then);
    }
    acquire(&["-r", "cable", "--yes"]).expect(0);
    assert_eq!(reason(), "cable");
}

/// By the time of the answer one's own lease has run out: it would be taken anew.
#[test]
fn medik8s_that_begins_while_a_question_is_open_is_respected() {
    let asked = [&["acquire"][..], &["run"]].map(|verb| {
        let node = node(shared());
        plugin().run(&["maint", "acquire", &node, "--holder", "jane", "-r", "disk", "-d", "10s"]).expect(0);
        let command = if verb == ["run"] { &["--", "echo", "ran"][..] } else { &[] };
        let args = [&["maint"], verb, &[&node, "--holder", "jane", "-r", "reboot"], command].concat();
        let terminal = plugin().start_on_terminal(&args, 20, 200);
        terminal.until("the question", SOON, |screen| screen.contains("Replace the reason?"));
        write(MEDIK8S, &format!("node-{node}"), "node-maintenance", 0);
        (node, terminal)
    });
    for (node, mut terminal) in asked {
        // With the grace.
        wait_for("its time is over", SOON * 2, || left(&lease(&node)) < -3, String::new);
        terminal.types("y\r");
        terminal.until("it is told", SOON, |screen| screen.contains("is held by medik8s"));
        assert_eq!(terminal.wait(), 4, "{}", terminal.output());
        assert_eq!(lease(&node)["spec"]["leaseDurationSeconds"], 10, "nothing was written");
    }
}

#[test]
fn ones_own_lease_that_has_run_out_is_not_ones_own_to_go_by() {
    let node = node(shared());
    let status = || plugin().run(&["maint", "status", &node, "--holder", "jane", "-o", "json"]);
    let state = |outcome: &crate::plugin::Outcome| {
        serde_json::from_str::<Value>(&outcome.stdout).unwrap()["state"].as_str().unwrap().to_owned()
    };
    write(NAMESPACE, &node, "jane", 0);
    assert_eq!(state(&status().expect(0)), "yours");
    // What is held is held, whatever medik8s writes.
    write(MEDIK8S, &format!("node-{node}"), "node-maintenance", 0);
    assert_eq!(state(&status().expect(0)), "yours");
    write(NAMESPACE, &node, "jane", 100_000);
    assert_eq!(state(&status().expect(4)), "medik8s");
    shared().kubectl(&["delete", "lease", "-n", MEDIK8S, &format!("node-{node}")]);
    assert_eq!(state(&status().expect(0)), "expired");
    let kubeadm = json!({ "spec": { "holderIdentity": "kubeadm:jane" } });
    patch(NAMESPACE, &node, &kubeadm);
    assert_eq!(state(&status().expect(0)), "yours", "an administrator's has no end");
}

/// There is no moment at which the node is free for others.
#[test]
fn maint_run_goes_on_from_the_users_own_lease_and_gives_it_back() {
    let node = node(shared());
    plugin().run(&["maint", "acquire", &node, "--reason", "disk"]).expect(0);
    let before = lease(&node);
    let script = "echo $KUBECTL_LEASE_HOLDER";
    let run = plugin().run(&["maint", "run", &node, "--", "sh", "-c", script]).expect(0);
    assert!(run.stdout.starts_with(&format!("{}#", holder(&before))), "{run:?}");
    let after = lease(&node);
    for field in ["holderIdentity", "renewTime", "acquireTime", "leaseDurationSeconds"] {
        assert_eq!(after["spec"][field], before["spec"][field], "{field}");
    }
    assert_eq!(after["metadata"]["annotations"], before["metadata"]["annotations"]);
    assert_eq!(after["spec"]["leaseTransitions"], 2, "two changes of hands");
    plugin().run(&["maint", "run", &node, "--holder", "john", "--", "true"]).expect(4);
    // It may be a colleague's who shares the user.
    plugin()
        .run(&["maint", "run", &node, "-r", "reboot", "--", "true"])
        .expect(6)
        .says("for another reason: disk");
    plugin().run(&["maint", "run", &node, "-r", "reboot", "--yes", "--", "true"]).expect(0);
    assert_eq!(lease(&node)["metadata"]["annotations"], before["metadata"]["annotations"]);
    plugin().run(&["maint", "release", &node]).expect(0);
    plugin().run(&["maint", "acquire", &node, "--holder", "team"]).expect(0);
    plugin().run(&["maint", "run", &node, "--holder", "team", "--", "true"]).expect(0);
    assert_eq!(holder(&lease(&node)), "team");
    plugin().run(&["maint", "release", &node, "--holder", "team"]).expect(0);

    // Its time runs out meanwhile: then there is nothing to give back.
    plugin().run(&["maint", "acquire", &node, "-d", "1s"]).expect(0);
    plugin().run(&["maint", "run", &node, "--", "sleep", "5"]).expect(0);
    assert_eq!(holder(&lease(&node)), "");
}

/// What others write is known only from the conflicts of our renewals: this user may not watch.
#[test]
fn without_permission_to_watch_a_renewal_notices_the_theft_and_leaves_it() {
    let name = format!("edge-{}", random());
    let blind = Plugin::new(shared().kubeconfig(User::Blind, 0));
    let mut running = blind.start(&["hold", &name, "-n", "default", "-d", "18s", "--", "sleep", "600"]);
    wait_for("held", SOON, || !holder(&look(shared(), "default", &name)).is_empty(), || running.stderr());
    let theft = json!({ "spec": { "holderIdentity": "thief", "leaseDurationSeconds": 600, "renewTime": ago(0), "leaseTransitions": 9 } });
    patch("default", &name, &theft);
    let stolen = look(shared(), "default", &name);
    let began = Instant::now();
    assert_eq!(running.wait(), 75, "{}", running.stderr());
    assert!(running.stderr().contains("'thief' took"), "{}", running.stderr());
    // It renews after 6 s, and would have to end the command after 12 s.
    assert!(began.elapsed() < Duration::from_secs(11), "{:?}", began.elapsed());
    assert_eq!(look(shared(), "default", &name), stolen, "nothing was written over it");
}

/// Its holder's clock is an hour behind: by its timestamps it has long expired.
#[test]
fn hold_never_takes_a_lease_by_its_timestamps() {
    let name = format!("edge-{}", random());
    let renew = |n: i64| {
        let spec = json!({
            "holderIdentity": "slow-clock", "leaseDurationSeconds": 8, "leaseTransitions": 1,
            "acquireTime": ago(4_000_000), "renewTime": ago(3_600_000 - n),
        });
        shared().apply(&json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": name, "namespace": "default" }, "spec": spec,
        }));
    };
    renew(0);
    let done = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let stop = Arc::clone(&done);
        let renewing = scope.spawn(move || {
            let mut n = 0;
            while !stop.load(Ordering::SeqCst) {
                n += 1;
                renew(n);
                thread::sleep(Duration::from_millis(500));
            }
        });
        let waited = plugin().run(&["hold", &name, "-n", "default", "--wait=12s", "--", "true"]);
        let at_once = plugin().run(&["hold", &name, "-n", "default", "--", "true"]);
        done.store(true, Ordering::SeqCst);
        renewing.join().unwrap();
        waited.expect(124);
        at_once.expect(4).says("the clock of the holder is wrong");
    });
    assert_eq!(holder(&look(shared(), "default", &name)), "slow-clock");
    plugin().run(&["hold", &name, "-n", "default", "--wait=30s", "--", "true"]).expect(0);
}

/// It looks expired, and the connection goes before it can be watched: nothing is known of its holder's clock.
#[test]
fn an_outage_is_no_wrong_clock() {
    let name = format!("edge-{}", random());
    write("default", &name, "gone", 3_600_000);
    patch("default", &name, &json!({ "spec": { "leaseDurationSeconds": 2 } }));
    let down = AtomicBool::new(false);
    let proxy = FaultProxy::start(shared(), move |_, path| {
        let is_down = down.fetch_or(path.contains("fieldSelector"), Ordering::SeqCst);
        if is_down { Fault::CutBefore } else { Fault::None }
    });
    let held = Plugin::new(&proxy.kubeconfig).run(&["hold", &name, "-n", "default", "--", "true"]);
    assert!(!held.stderr.contains("clock"), "{held:?}");
    held.expect(124);
}

/// A holder's time counts from before it asked, however late the answer comes.
#[test]
fn a_late_answer_to_a_renewal_does_not_prolong_the_hold() {
    let name = format!("edge-{}", random());
    let renewals = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&renewals);
    let cut = Arc::new(AtomicBool::new(false));
    let is_cut = Arc::clone(&cut);
    let proxy = FaultProxy::start(shared(), move |method, path| {
        let writes = is_lease_write(method, path);
        if is_cut.load(Ordering::SeqCst) {
            return Fault::CutBefore;
        }
        if writes && method == "PATCH" {
            // Its answer comes 2.3 s after the server has done it (4.7 s would be waited for); and it is
            // the last.
            is_cut.store(true, Ordering::SeqCst);
            seen.fetch_add(1, Ordering::SeqCst);
            return Fault::SlowAnswer(2300);
        }
        Fault::None
    });
    let beats = shared().folder.join(format!("beats-{name}"));
    let script = format!("while :; do date +%s%N >>{}; sleep 0.02; done", beats.display());
    let args = ["hold", &name, "-n", "default", "-d", "42s", "--", "sh", "-c", &script];
    let mut running = Plugin::new(&proxy.kubeconfig).start(&args);
    assert_eq!(running.wait(), 75, "{}", running.stderr());
    assert_eq!(renewals.load(Ordering::SeqCst), 1);
    let last: i128 = std::fs::read_to_string(&beats).unwrap().lines().last().unwrap().parse().unwrap();
    let last = jiff::Timestamp::from_nanosecond(last).unwrap();
    let lease = look(shared(), "default", &name);
    let lived = last.duration_since(time(&lease, "renewTime"));
    // SIGTERM comes 28 s after the renewal was sent; two seconds are for a busy machine.
    assert!(lived < jiff::SignedDuration::from_secs(30), "it lived for {lived:?} after its renewal");
    assert!(lived > jiff::SignedDuration::from_secs(22), "{lived:?}: renewed, it lives on");
}

#[test]
fn a_holder_renews_by_the_servers_clock() {
    let name = format!("edge-{}", random());
    let proxy = FaultProxy::start(shared(), |_, _| Fault::Clock(3600));
    let mut running = Plugin::new(&proxy.kubeconfig)
        .start(&["hold", &name, "-n", "default", "-d", "15s", "--", "sleep", "600"]);
    let renewed = || {
        let lease = look(shared(), "default", &name);
        !lease.is_null() && lease["spec"]["renewTime"] != lease["spec"]["acquireTime"]
    };
    wait_for("it is renewed", SOON, renewed, || running.stderr());
    let lease = look(shared(), "default", &name);
    for field in ["acquireTime", "renewTime"] {
        let ahead = time(&lease, field).duration_since(jiff::Timestamp::now()).as_secs();
        assert!((3590..3610).contains(&ahead), "{field} is {ahead} s ahead");
    }
    running.signal("-TERM");
    assert_eq!(running.wait(), 143);
    let lease = look(shared(), "default", &name);
    assert!(time(&lease, "renewTime").duration_since(jiff::Timestamp::now()).as_secs() > 3590);
}

/// Starts a command under the maintenance lease of a node, held for 12 s, by a kube-apiserver whose clock
/// is off by these seconds, and stops the plugin: the command is gone 1 s before the lease has expired.
/// Another waits for the node, by a kube-apiserver whose clock is off by those. How long after the end of
/// the first command the second began.
fn between_two_runs(first_clock: i64, second_clock: i64) -> jiff::SignedDuration {
    let node = node(shared());
    let proxy = |offset: i64| FaultProxy::start(shared(), move |_, _| Fault::Clock(offset));
    let file = |which: &str| shared().folder.join(format!("{which}-{node}"));
    let (first_beats, second_beats) = (file("first"), file("second"));
    let run = |proxy: &FaultProxy, holder: &str, script: &str| {
        let args =
            ["maint", "run", &node, "--holder", holder, "-d", "12s", "--wait", "--", "sh", "-c", script];
        Plugin::new(&proxy.kubeconfig).start(&args)
    };
    // SIGTERM does not end it.
    let beat = format!("trap '' TERM; while :; do date +%s%N >>{}; sleep 0.02; done", first_beats.display());
    let first_proxy = proxy(first_clock);
    let mut first = run(&first_proxy, "first", &beat);
    wait_for("the first runs", SOON, || first_beats.exists(), || first.stderr());
    first.signal("-STOP");
    let second_proxy = proxy(second_clock);
    let mut second = run(&second_proxy, "second", &format!("date +%s%N >{}", second_beats.display()));
    second.until_stderr("the second waits", SOON, |text| text.contains("held by 'first#"));
    assert_eq!(second.wait(), 0, "{}", second.stderr());
    first.signal("-CONT");
    assert_eq!(first.wait(), 75, "{}", first.stderr());
    let time = |line: &str| jiff::Timestamp::from_nanosecond(line.parse().unwrap()).unwrap();
    let read = |file: &std::path::Path| std::fs::read_to_string(file).unwrap();
    let ended = time(read(&first_beats).lines().last().unwrap());
    time(read(&second_beats).trim_end()).duration_since(ended)
}

/// The README's bound: 1 s and a twelfth of the duration. And what is far beyond it is not covered.
#[test]
fn two_commands_run_at_once_only_where_the_clocks_of_kube_apiservers_differ_by_more_than_the_bound() {
    thread::scope(|scope| {
        let within = scope.spawn(|| between_two_runs(-1, 1));
        let beyond = between_two_runs(-4, 4);
        let within = within.join().unwrap();
        assert!(within.is_positive(), "{within:?}");
        assert!(beyond.is_negative(), "{beyond:?}: this would notice nothing");
    });
}

/// What was seen before the connection went is no ground to take anything on.
#[test]
fn nothing_is_taken_while_the_connection_is_lost() {
    let name = format!("edge-{}", random());
    let renew = || {
        let spec = json!({ "holderIdentity": "jane", "leaseDurationSeconds": 10, "renewTime": ago(0) });
        shared().apply(&json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": name, "namespace": "default" }, "spec": spec,
        }));
    };
    renew();
    let (lost, writes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (is_lost, counted) = (Arc::clone(&lost), Arc::clone(&writes));
    // Reads fail; a write would arrive.
    let proxy = FaultProxy::start(shared(), move |method, path| {
        if is_lease_write(method, path) {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        if is_lost.load(Ordering::SeqCst) && method == "GET" { Fault::Refuse(503) } else { Fault::None }
    });
    let mut waiting =
        Plugin::new(&proxy.kubeconfig).start(&["hold", &name, "-n", "default", "--wait", "--", "true"]);
    waiting.until_stderr("it waits", SOON, |text| text.contains("held by 'jane'"));
    lost.store(true, Ordering::SeqCst);
    proxy.sever_watches(true);
    // For longer than it lasts.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(12) {
        renew();
        thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(writes.load(Ordering::SeqCst), 0, "{}", waiting.stderr());
    assert!(waiting.stderr().contains("connection lost"), "{}", waiting.stderr());
    lost.store(false, Ordering::SeqCst);
    proxy.sever_watches(false);
    assert_eq!(waiting.wait(), 0, "{}", waiting.stderr());
}

/// A 401 says that nothing was done: with a fresh token a write is sent again, too.
#[test]
fn a_write_is_sent_again_after_its_token_was_renewed() {
    let node = node(shared());
    let refused = Arc::new(AtomicBool::new(false));
    let once = Arc::clone(&refused);
    let proxy = FaultProxy::start(shared(), move |method, path| {
        let first = is_lease_write(method, path) && !once.swap(true, Ordering::SeqCst);
        if first { Fault::Refuse(401) } else { Fault::None }
    });
    let answer = r#"{"apiVersion":"client.authentication.k8s.io/v1","status":{"token":"%s"}}"#;
    let tokens = format!("printf '{answer}' $$");
    let mut config: Value =
        serde_json::from_str(&std::fs::read_to_string(&proxy.kubeconfig).unwrap()).unwrap();
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", tokens],
    });
    config["users"] = json!([{ "name": "exec", "user": { "exec": exec } }]);
    config["contexts"][0]["context"]["user"] = "exec".into();
    let kubeconfig = shared().folder.join(format!("exec-{node}.kubeconfig"));
    std::fs::write(&kubeconfig, config.to_string()).unwrap();
    Plugin::new(&kubeconfig).run(&["maint", "acquire", &node, "--holder", "jane"]).expect(0);
    assert!(refused.load(Ordering::SeqCst));
    assert_eq!(holder(&lease(&node)), "jane");
}

/// A signal that comes when nothing listens is not lost: what was not begun is not begun.
#[test]
fn an_interrupt_between_taking_and_acting_is_heeded() {
    // The node is looked at again after its lease was created: the signal comes then.
    let late = |name: &str| {
        let looks = Arc::new(AtomicUsize::new(0));
        let (counted, path) = (Arc::clone(&looks), format!("/api/v1/nodes/{name}"));
        let proxy = FaultProxy::start(shared(), move |method, asked| {
            let looks = method == "GET" && asked.starts_with(&path);
            let n = if looks { counted.fetch_add(1, Ordering::SeqCst) + 1 } else { 0 };
            if n == 2 { Fault::Late(6000) } else { Fault::None }
        });
        (proxy, looks)
    };
    let ran = shared().folder.join(format!("ran-{}", random()));
    let touch = ran.display().to_string();
    for args in [&["run", "--", "touch", &touch][..], &["acquire", "--admin"]] {
        let name = node(shared());
        let (proxy, looks) = late(&name);
        let args = [&["maint", args[0], &name][..], &args[1..]].concat();
        let mut running = Plugin::new(&proxy.kubeconfig).start(&args);
        wait_for("the second look", SOON, || looks.load(Ordering::SeqCst) == 2, || running.stderr());
        running.signal("-TERM");
        assert_eq!(running.wait(), 130, "{args:?}: {}", running.stderr());
        assert!(!ran.exists(), "{args:?}");
        assert_eq!(holder(&lease(&name)), "", "{args:?}");
    }
}

/// A second one does not wait for an answer, and leaves nothing behind either.
#[test]
fn a_second_interrupt_gives_up_the_answer_and_not_the_undoing() {
    let name = node(shared());
    let writes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&writes);
    let proxy = FaultProxy::start(shared(), move |method, path| {
        let first = is_lease_write(method, path) && counted.fetch_add(1, Ordering::SeqCst) == 0;
        if first { Fault::Late(8000) } else { Fault::None }
    });
    let mut running = Plugin::new(&proxy.kubeconfig).start(&["maint", "acquire", &name, "--admin"]);
    wait_for("it writes", SOON, || writes.load(Ordering::SeqCst) > 0, || running.stderr());
    let began = Instant::now();
    running.signal("-TERM");
    thread::sleep(Duration::from_millis(300));
    running.signal("-TERM");
    assert_eq!(running.wait(), 130);
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    thread::sleep(Duration::from_secs(8).saturating_sub(began.elapsed()) + Duration::from_millis(500));
    assert_eq!(holder(&lease(&name)), "");
}

/// It arrives between the look that found nothing and the write that would have superseded it: what
/// conflicts then is looked at once more.
#[test]
fn a_write_that_arrives_just_before_it_would_be_superseded_is_undone() {
    let name = node(shared());
    let writes = Arc::new(AtomicUsize::new(0));
    let (counted, lease_of) = (Arc::clone(&writes), name.clone());
    let proxy = FaultProxy::start(shared(), move |method, path| {
        let n = if is_lease_write(method, path) { counted.fetch_add(1, Ordering::SeqCst) + 1 } else { 0 };
        match n {
            1 => return Fault::Late(6000),
            2 => {
                let arrived = || !lease(&lease_of).is_null();
                wait_for("the first write", SOON, arrived, String::new);
            }
            _ => {}
        }
        Fault::None
    });
    let mut running = Plugin::new(&proxy.kubeconfig).start(&["maint", "acquire", &name, "--admin"]);
    wait_for("it writes", SOON, || writes.load(Ordering::SeqCst) > 0, || running.stderr());
    running.signal("-TERM");
    thread::sleep(Duration::from_millis(300));
    // Gives up the answer.
    running.signal("-TERM");
    assert_eq!(running.wait(), 130, "{}", running.stderr());
    let now = lease(&name);
    assert!(!now.is_null(), "it has arrived");
    assert_eq!(holder(&now), "", "{}", running.stderr());
    assert_eq!(writes.load(Ordering::SeqCst), 3, "taken, superseded in vain, released");
}

/// The connection goes just when what was begun is to be undone.
#[test]
fn undoing_waits_for_the_end_of_an_outage() {
    let name = node(shared());
    let since: Arc<Mutex<Option<Instant>>> = Arc::default();
    let begun = Arc::clone(&since);
    let proxy = FaultProxy::start(shared(), move |method, path| {
        let mut since = since.lock().unwrap();
        match *since {
            None if is_lease_write(method, path) => {
                *since = Some(Instant::now());
                Fault::Late(2000)
            }
            Some(since) if since.elapsed() < Duration::from_secs(4) => Fault::CutBefore,
            _ => Fault::None,
        }
    });
    let mut running = Plugin::new(&proxy.kubeconfig).start(&["maint", "acquire", &name, "--admin", "--wait"]);
    wait_for("it writes", SOON, || begun.lock().unwrap().is_some(), || running.stderr());
    running.signal("-TERM");
    assert_eq!(running.wait(), 130);
    // The write has arrived by now, if anything let it.
    let written_at = begun.lock().unwrap().unwrap();
    thread::sleep(Duration::from_secs(3).saturating_sub(written_at.elapsed()));
    assert_eq!(holder(&lease(&name)), "", "{}", running.stderr());
}

/// What was read at the start is long ago when the first of several has been waited for.
#[test]
fn every_node_is_looked_at_again_after_a_wait_for_another() {
    let (first, second) = two_nodes();
    plugin().run(&["maint", "acquire", &first, "--holder", "jane"]).expect(0);
    let mut waiting = plugin().start(&["maint", "acquire", &first, &second, "--holder", "john", "--wait"]);
    waiting.until_stderr("it waits", SOON, |text| text.contains("held by 'jane'"));
    write(MEDIK8S, &format!("node-{second}"), "node-maintenance", 0);
    plugin().run(&["maint", "release", &first, "--holder", "jane"]).expect(0);
    waiting.until_stderr("medik8s", SOON, |text| text.contains("held by medik8s"));
    waiting.signal("-INT");
    assert_eq!(waiting.wait(), 130, "{}", waiting.stderr());
    assert_eq!((holder(&lease(&first)), holder(&lease(&second))), ("", ""));

    // And so is whether it is still the same node.
    let (first, second) = two_nodes();
    plugin().run(&["maint", "acquire", &first, "--holder", "jane"]).expect(0);
    let mut waiting = plugin().start(&["maint", "acquire", &first, &second, "--holder", "john", "--wait"]);
    waiting.until_stderr("it waits", SOON, |text| text.contains("held by 'jane'"));
    shared().kubectl(&["delete", "node", &second]);
    make_node(shared(), &second);
    plugin().run(&["maint", "release", &first, "--holder", "jane"]).expect(0);
    assert_eq!(waiting.wait(), 0, "{}", waiting.stderr());
    let uid = shared().kubectl(&["get", "node", &second, "-o", "jsonpath={.metadata.uid}"]);
    assert_eq!(lease(&second)["metadata"]["ownerReferences"][0]["uid"], uid);
}

/// What is told is true when it is told.
#[test]
fn a_lease_is_held_for_as_long_as_is_said() {
    // The first was taken long before the last.
    let (first, second) = two_nodes();
    plugin().run(&["maint", "acquire", &second, "--holder", "jane"]).expect(0);
    let args = ["maint", "acquire", &first, &second, "--holder", "john", "-d", "60s", "--wait"];
    let mut waiting = plugin().start(&args);
    waiting.until_stderr("it waits", SOON, |text| text.contains("held by 'jane'"));
    thread::sleep(Duration::from_secs(6));
    plugin().run(&["maint", "release", &second, "--holder", "jane"]).expect(0);
    assert_eq!(waiting.wait(), 0);
    assert!(left(&lease(&first)) >= 55, "{}", lease(&first));

    // The answer comes when its time is over, and another has it.
    let name = node(shared());
    write(NAMESPACE, &name, "", 0);
    let written = Arc::new(AtomicBool::new(false));
    let once = Arc::clone(&written);
    let proxy = FaultProxy::start(shared(), move |method, path| {
        let first = is_lease_write(method, path) && !once.swap(true, Ordering::SeqCst);
        if first { Fault::SlowAnswer(8000) } else { Fault::None }
    });
    let args = ["maint", "acquire", &name, "--holder", "jane", "-d", "1s"];
    let mut slow = Plugin::new(&proxy.kubeconfig).start(&args);
    wait_for("it writes", SOON, || written.load(Ordering::SeqCst), || slow.stderr());
    plugin().run(&["maint", "acquire", &name, "--holder", "third", "--wait=7s"]).expect(0);
    assert_eq!(slow.wait(), 5, "{}", slow.stdout());
    assert_eq!(holder(&lease(&name)), "third");
}

/// Another process of the same holder may have been told that it is held for longer.
#[test]
fn what_is_held_already_is_not_shortened() {
    let node = node(shared());
    plugin().run(&["maint", "acquire", &node]).expect(0);
    let again = plugin().run(&["maint", "acquire", &node, "-d", "5s"]).expect(0);
    assert!(again.stdout.contains("it was yours already") && !again.stdout.contains("for 5s"), "{again:?}");
    assert!(left(&lease(&node)) > 29 * 60);
    // Also by a process that goes on from it, and is killed.
    let mut running = plugin().start(&["maint", "run", &node, "-d", "3s", "--", "sleep", "600"]);
    let renewed = || {
        let lease = lease(&node);
        holder(&lease).contains('#') && lease["spec"]["renewTime"] != lease["spec"]["acquireTime"]
    };
    wait_for("it is renewed", SOON, renewed, || running.stderr());
    running.signal("-KILL");
    running.wait();
    assert!(left(&lease(&node)) > 29 * 60, "{}", lease(&node));
    // Who says so shortens it.
    let other = self::node(shared());
    plugin().run(&["maint", "acquire", &other]).expect(0);
    plugin().run(&["maint", "renew", &other, "-d", "60s"]).expect(0);
    assert!(left(&lease(&other)) <= 60);
}

#[test]
fn a_release_does_not_wait_for_ever() {
    let name = node(shared());
    plugin().run(&["maint", "acquire", &name, "--holder", "jane"]).expect(0);
    let down = AtomicBool::new(false);
    let proxy = FaultProxy::start(shared(), move |method, path| {
        let writes = is_lease_write(method, path);
        if down.fetch_or(writes, Ordering::SeqCst) || writes { Fault::CutBefore } else { Fault::None }
    });
    let outcome =
        Plugin::new(&proxy.kubeconfig).run(&["maint", "release", &name, "--holder", "jane"]).expect(124);
    assert!(outcome.took < Duration::from_secs(20), "{outcome:?}");
    assert_eq!(holder(&lease(&name)), "jane");
}
