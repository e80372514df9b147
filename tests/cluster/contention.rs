//! Several who want the same nodes: what one is told while another is half-way, and what is left when
//! they give up, are cut off, or lose what they had. On a real control plane; the faults are the proxy's.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    harness::{
        User,
        faults::{Fault, FaultProxy, Gate},
        random,
    },
    plugin::{Plugin, Running, wait_for},
    shared,
};

pub const NAMESPACE: &str = "kube-node-maintenance";
pub const MEDIK8S: &str = "medik8s-leases";
pub const SOON: Duration = Duration::from_secs(20);

pub fn plugin() -> Plugin {
    Plugin::new(shared().kubeconfig(User::Admin, 0))
}

fn make_node(name: &str) {
    shared().apply(&json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } }));
}

/// So many nodes, in the order in which they are taken.
pub fn nodes<const N: usize>() -> [String; N] {
    let prefix = format!("node-{}", random());
    std::array::from_fn(|n| {
        let name = format!("{prefix}-{n}");
        make_node(&name);
        name
    })
}

pub fn look(namespace: &str, name: &str) -> Value {
    let text = shared().kubectl(&["get", "lease", "-n", namespace, name, "--ignore-not-found", "-o", "json"]);
    serde_json::from_str(&text).unwrap_or_default()
}

pub fn lease(name: &str) -> Value {
    look(NAMESPACE, name)
}

pub fn holder(name: &str) -> String {
    lease(name)["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

/// Writes a lease as another client would: held for so long.
pub fn write(namespace: &str, name: &str, holder: &str, seconds: i64) {
    let now = format!("{:.6}", jiff::Timestamp::now());
    let object = |kind: &str, version: &str| json!({ "apiVersion": version, "kind": kind });
    let mut lease = object("Lease", "coordination.k8s.io/v1");
    lease["metadata"] = json!({ "name": name, "namespace": namespace });
    lease["spec"] = json!({
        "holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": 3,
        "acquireTime": now, "renewTime": now,
    });
    let mut home = object("Namespace", "v1");
    home["metadata"] = json!({ "name": namespace });
    shared().apply(&home);
    shared().apply(&lease);
}

fn patch(name: &str, patch: &Value) {
    shared().kubectl(&["patch", "lease", "-n", NAMESPACE, name, "--type=merge", "-p", &patch.to_string()]);
}

/// Only a finalizer keeps it from then on.
fn begin_deletion(name: &str) {
    patch(name, &json!({ "metadata": { "finalizers": ["example.org/keeps"] } }));
    shared().kubectl(&["delete", "lease", "-n", NAMESPACE, name, "--wait=false"]);
}

fn end_deletion(name: &str) {
    patch(name, &json!({ "metadata": { "finalizers": null } }));
}

pub fn delete_medik8s(node: &str) {
    shared().kubectl(&["delete", "lease", "-n", MEDIK8S, &format!("node-{node}")]);
}

pub fn is_lease_write(method: &str, path: &str) -> bool {
    matches!(method, "POST" | "PATCH") && path.contains("/leases")
}

/// Takes these leases for another holder.
pub fn others(names: &[&String]) {
    for name in names {
        plugin().run(&["maint", "acquire", name, "--holder", "other"]).expect(0);
    }
}

pub fn release_others(name: &str) {
    plugin().run(&["maint", "release", name, "--holder", "other"]).expect(0);
}

/// Starts to acquire nodes, and has the first when this returns.
pub fn gathering(plugin: &Plugin, names: &[&String], more: &[&str]) -> Running {
    let mut args = vec!["maint", "acquire", "--holder", "jane", "--wait"];
    args.extend(names.iter().map(|name| name.as_str()));
    args.extend(more);
    let running = plugin.start(&args);
    running.until_stderr("it waits", SOON, |text| text.contains("waiting for"));
    running
}

fn owner_is_the_node(name: &str) {
    let uid = shared().kubectl(&["get", "node", name, "-o", "jsonpath={.metadata.uid}"]);
    assert_eq!(lease(name)["metadata"]["ownerReferences"][0]["uid"], json!(uid), "{name}");
}

/// An administrator's create is late and given up, for a node that was recreated: what supersedes it must
/// not be collected before it arrives.
#[test]
fn what_supersedes_a_late_create_belongs_to_the_node_that_the_create_was_for() {
    let [node] = nodes();
    plugin().run(&["maint", "acquire", &node, "--holder", "jane"]).expect(0);
    let (looks, created) = (AtomicUsize::new(0), Arc::new(AtomicBool::new(false)));
    let (once, path) = (Arc::clone(&created), format!("/api/v1/nodes/{node}"));
    let recreated = Arc::new(AtomicBool::new(false));
    let there = Arc::clone(&recreated);
    let proxy = FaultProxy::start(shared(), move |method, asked| {
        if method == "POST" && is_lease_write(method, asked) && !once.swap(true, Ordering::SeqCst) {
            return Fault::Late(7000);
        }
        // It looks at the node when the lease is gone, and finds the new one.
        if method == "GET" && asked.starts_with(&path) && looks.fetch_add(1, Ordering::SeqCst) == 1 {
            wait_for("the new node", SOON, || there.load(Ordering::SeqCst), String::new);
        }
        Fault::None
    });
    let args = ["maint", "acquire", &node, "--holder", "ann", "--admin", "--wait"];
    let mut waiting = Plugin::new(&proxy.kubeconfig).start(&args);
    waiting.until_stderr("it waits", SOON, |text| text.contains("held by 'jane'"));
    shared().kubectl(&["delete", "node", &node]);
    make_node(&node);
    recreated.store(true, Ordering::SeqCst);
    wait_for("it once", SOON, || created.load(Ordering::SeqCst), || waiting.stderr());
    let began = Instant::now();
    waiting.signal("-TERM");
    assert_eq!(waiting.wait(), 130);
    thread::sleep(Duration::from_millis(8500).saturating_sub(began.elapsed()));
    assert_eq!(holder(&node), "");
}

#[test]
fn what_is_gathered_is_held_by_one_process_and_free_when_it_gives_up() {
    for admin in [&["--admin"][..], &[]] {
        let [a, b, c] = nodes();
        others(&[&b, &c]);
        let mut one = gathering(&plugin(), &[&a, &b], admin);
        let held = lease(&a);
        assert!(holder(&a).starts_with("jane#"), "{held}");
        assert!(held["spec"]["leaseDurationSeconds"].as_i64().unwrap() <= 60, "{held}");
        // Nobody else is told that it is theirs, also under the same name.
        for verb in ["acquire", "renew", "release"] {
            let args = [&["maint", verb, &a, "--holder", "jane"][..], admin].concat();
            plugin().run(&args).expect(4).says("held by 'jane#");
        }
        let mut other = gathering(&plugin(), &[&a, &c], admin);
        assert!(other.stderr().contains("held by 'jane#"), "{}", other.stderr());
        one.signal("-TERM");
        assert_eq!(one.wait(), 130);
        assert!(one.stderr().contains(&format!("released again: {a}")), "{}", one.stderr());
        other.until_stderr("it has the first", SOON, |text| text.contains(&format!("waiting for {c}")));
        other.signal("-TERM");
        assert_eq!(other.wait(), 130);
        assert_eq!(holder(&a), "", "{}", other.stderr());
    }
}

#[test]
fn what_was_gathered_gets_its_name_when_all_of_it_is_had() {
    let [a, b, c] = nodes();
    others(&[&b, &c]);
    let mut one = gathering(&plugin(), &[&a, &b], &["-d", "20m", "-r", "disk"]);
    release_others(&b);
    assert_eq!(one.wait(), 0, "{}", one.stderr());
    assert_eq!(
        one.stdout(),
        format!("{a} acquired, held by jane for 20m\n{b} acquired, held by jane for 20m\n")
    );
    for name in [&a, &b] {
        let lease = lease(name);
        assert_eq!(lease["spec"]["holderIdentity"], "jane");
        assert_eq!(lease["spec"]["leaseDurationSeconds"], 1200);
        assert_eq!(lease["metadata"]["annotations"]["kubectl-lease.dev/reason"], "disk");
        owner_is_the_node(name);
    }
    // What was held before goes on as it was.
    let before = [lease(&a), lease(&b)];
    let mut again = gathering(&plugin(), &[&a, &b, &c], &[]);
    assert!(again.stderr().contains(&format!("waiting for {c}")), "{}", again.stderr());
    again.signal("-TERM");
    assert_eq!(again.wait(), 130);
    assert_eq!([lease(&a), lease(&b)], before);
    let mut again = gathering(&plugin(), &[&a, &c], &["--admin"]);
    release_others(&c);
    assert_eq!(again.wait(), 0, "{}", again.stderr());
    assert!(again.stdout().contains("it was yours already, held by kubeadm:jane until released"));
    assert_eq!([holder(&a), holder(&c)], ["kubeadm:jane", "kubeadm:jane"]);
    owner_is_the_node(&c);
}

/// Another command of the same holder was told that it holds one of them.
#[test]
fn what_is_held_already_is_left_alone_until_the_others_are_had() {
    for admin in [&["--admin"][..], &[]] {
        let [a, b] = nodes();
        let own = |verb: &str| {
            let args = [&["maint", verb, &a, "--holder", "jane"][..], admin].concat();
            plugin().run(&args).expect(0);
        };
        own("acquire");
        others(&[&b]);
        let before = lease(&a);
        let mut killed = gathering(&plugin(), &[&a, &b], admin);
        assert!(killed.stderr().contains(&format!("waiting for {b}")), "{}", killed.stderr());
        killed.signal("-KILL");
        killed.wait();
        assert_eq!(lease(&a), before);
        let mut one = gathering(&plugin(), &[&a, &b], admin);
        own("renew");
        assert_eq!(lease(&a)["spec"]["acquireTime"], before["spec"]["acquireTime"]);
        own("release");
        assert_eq!(holder(&a), "");
        // By the time of the last it is another's: it is waited for again.
        plugin().run(&["maint", "acquire", &a, "--holder", "thief"]).expect(0);
        release_others(&b);
        one.until_stderr("it waits again", SOON, |text| text.contains("held by 'thief'"));
        assert_eq!(holder(&b), "", "{}", one.stderr());
        plugin().run(&["maint", "release", &a, "--holder", "thief"]).expect(0);
        assert_eq!(one.wait(), 0, "{}", one.stderr());
        let name = if admin.is_empty() { "jane" } else { "kubeadm:jane" };
        assert_eq!([holder(&a), holder(&b)], [name, name]);
    }
}

/// The names are given one by one: one was lost just then, or the connection.
#[test]
fn the_names_are_given_to_all_or_to_none() {
    for lost in [true, false] {
        let [a, b] = nodes();
        others(&[&b]);
        let (writes, since): (_, Mutex<Option<Instant>>) = (AtomicUsize::new(0), Mutex::default());
        let (second, other) = (format!("/leases/{b}?"), b.clone());
        let proxy = FaultProxy::start(shared(), move |method, path| {
            let mut since = since.lock().unwrap();
            let writes_second = is_lease_write(method, path) && path.contains(&second);
            // The first takes it, the next gives it its name.
            if writes_second && writes.fetch_add(1, Ordering::SeqCst) == 1 {
                if lost {
                    shared().kubectl(&[
                        "patch",
                        "lease",
                        "-n",
                        NAMESPACE,
                        &other,
                        "--type=merge",
                        "-p",
                        r#"{"spec":{"holderIdentity":"thief"}}"#,
                    ]);
                } else {
                    *since = Some(Instant::now());
                }
            }
            let down = since.is_some_and(|since| since.elapsed() < Duration::from_secs(5));
            if down { Fault::CutBefore } else { Fault::None }
        });
        let mut one = gathering(&Plugin::new(&proxy.kubeconfig), &[&a, &b], &["--admin"]);
        release_others(&b);
        if lost {
            one.until_stderr("it waits again", SOON, |text| text.contains("held by 'thief'"));
            assert!(holder(&a).starts_with("jane#"), "{} {}", holder(&a), one.stderr());
            patch(&b, &json!({ "spec": { "holderIdentity": "" } }));
        }
        assert_eq!(one.wait(), 0, "{}", one.stderr());
        assert_eq!([holder(&a), holder(&b)], ["kubeadm:jane", "kubeadm:jane"]);
    }
}

/// The names are on their way when the command is ended, and arrive before its release does.
#[test]
fn a_name_that_arrives_after_giving_up_is_taken_back() {
    for admin in [&["--admin"][..], &[]] {
        let [a, b] = nodes();
        others(&[&b]);
        let (late, renames) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (is_late, counted, second) = (Arc::clone(&late), Arc::clone(&renames), format!("/leases/{b}?"));
        let writes = AtomicUsize::new(0);
        let proxy = FaultProxy::start(shared(), move |method, path| {
            if method != "PATCH" || !is_lease_write(method, path) {
                return Fault::None;
            }
            // The first write to the second takes it; what follows are the names.
            if path.contains(&second) && writes.fetch_add(1, Ordering::SeqCst) == 0 {
                is_late.store(true, Ordering::SeqCst);
                return Fault::None;
            }
            if is_late.load(Ordering::SeqCst) {
                counted.fetch_add(1, Ordering::SeqCst);
                return Fault::Late(6000);
            }
            Fault::None
        });
        let mut one = gathering(&Plugin::new(&proxy.kubeconfig), &[&a, &b], admin);
        release_others(&b);
        wait_for("the names are sent", SOON, || renames.load(Ordering::SeqCst) >= 2, || one.stderr());
        thread::sleep(Duration::from_millis(100));
        one.signal("-TERM");
        assert_eq!(one.wait(), 130, "{}", one.stderr());
        thread::sleep(Duration::from_millis(6500));
        assert_eq!([holder(&a), holder(&b)], ["", ""], "{}", one.stderr());
    }
}

/// Something on the way sends every write twice, and its second answer, a conflict, is what is heard.
#[test]
fn a_write_that_was_done_twice_is_known_again() {
    let [a, b, c] = nodes();
    others(&[&b]);
    let proxy =
        FaultProxy::start(
            shared(),
            |method, path| {
                if is_lease_write(method, path) { Fault::Twice } else { Fault::None }
            },
        );
    let mut one = gathering(&Plugin::new(&proxy.kubeconfig), &[&a, &b], &[]);
    release_others(&b);
    assert_eq!(one.wait(), 0, "{}", one.stderr());
    assert_eq!([holder(&a), holder(&b)], ["jane", "jane"]);
    Plugin::new(&proxy.kubeconfig).run(&["maint", "run", &c, "--", "true"]).expect(0);
    assert_eq!(holder(&c), "");
}

/// Two commands of one holder took the same lease, and one of them is given up.
#[test]
fn what_another_process_renewed_is_reported_as_still_held() {
    let [a] = nodes();
    let written = Arc::new(AtomicBool::new(false));
    let once = Arc::clone(&written);
    let proxy = FaultProxy::start(shared(), move |method, path| {
        let first = is_lease_write(method, path) && !once.swap(true, Ordering::SeqCst);
        if first { Fault::HoldAnswer } else { Fault::None }
    });
    let mut given_up = Plugin::new(&proxy.kubeconfig).start(&["maint", "acquire", &a, "--holder", "jane"]);
    wait_for("it is held", SOON, || holder(&a) == "jane", || given_up.stderr());
    let other = plugin().run(&["maint", "acquire", &a, "--holder", "jane"]).expect(0);
    assert!(other.stdout.contains("it was yours already"), "{other:?}");
    given_up.signal("-INT");
    // A first interrupt waits for the answer.
    thread::sleep(Duration::from_secs(1));
    proxy.answer();
    assert_eq!(given_up.wait(), 130, "{}", given_up.stderr());
    let words = format!("{a} is still held by jane: another process of this holder has renewed it");
    assert!(given_up.stderr().contains(&words), "{}", given_up.stderr());
    assert_eq!(holder(&a), "jane");
}

/// The answer is late, and `maint renew` has shortened the lease by then.
#[test]
fn what_was_shortened_meanwhile_is_not_lengthened() {
    let [node] = nodes();
    let written = Arc::new(AtomicBool::new(false));
    let once = Arc::clone(&written);
    let proxy = FaultProxy::start(shared(), move |method, path| {
        let first = is_lease_write(method, path) && !once.swap(true, Ordering::SeqCst);
        if first { Fault::HoldAnswer } else { Fault::None }
    });
    let mut slow = Plugin::new(&proxy.kubeconfig).start(&["maint", "acquire", &node, "--holder", "jane"]);
    wait_for("it is held", SOON, || holder(&node) == "jane", || slow.stderr());
    plugin().run(&["maint", "renew", &node, "--holder", "jane", "-d", "60s"]).expect(0);
    let shortened = lease(&node);
    // So late that it would be renewed before it is told.
    thread::sleep(Duration::from_secs(3));
    proxy.answer();
    assert_eq!(slow.wait(), 0, "{}", slow.stderr());
    assert_eq!(lease(&node)["spec"], shortened["spec"]);
    assert!(!slow.stdout().contains("for 30m"), "{}", slow.stdout());
}

#[test]
fn a_late_renewal_that_is_given_up_leaves_the_lease_as_it_was() {
    let [node] = nodes();
    plugin().run(&["maint", "acquire", &node, "--holder", "jane"]).expect(0);
    let before = lease(&node);
    let writes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&writes);
    let proxy = FaultProxy::start(shared(), move |method, path| {
        let first = is_lease_write(method, path) && counted.fetch_add(1, Ordering::SeqCst) == 0;
        if first { Fault::Late(4000) } else { Fault::None }
    });
    let args = ["maint", "acquire", &node, "--holder", "jane", "--wait"];
    let mut running = Plugin::new(&proxy.kubeconfig).start(&args);
    wait_for("it writes", SOON, || writes.load(Ordering::SeqCst) > 0, || running.stderr());
    running.signal("-TERM");
    assert_eq!(running.wait(), 130);
    thread::sleep(Duration::from_millis(4500));
    assert_eq!(lease(&node)["spec"], before["spec"], "who wrote that has to know it again");
}

#[test]
fn maint_run_does_not_go_on_from_what_is_being_gathered() {
    let [a, b] = nodes();
    others(&[&b]);
    let mut one = gathering(&plugin(), &[&a, &b], &[]);
    plugin().run(&["maint", "run", &a, "--holder", "jane", "--", "true"]).expect(4).says("held by 'jane#");
    one.signal("-TERM");
    assert_eq!(one.wait(), 130);
    assert_eq!(holder(&a), "");
}

#[test]
fn what_has_run_out_is_not_renewed_over_medik8s() {
    let [node] = nodes();
    plugin().run(&["maint", "acquire", &node, "--holder", "jane", "-d", "1s"]).expect(0);
    thread::sleep(Duration::from_secs(5));
    write(MEDIK8S, &format!("node-{node}"), "node-maintenance", 60);
    plugin()
        .run(&["maint", "renew", &node, "--holder", "jane"])
        .expect(4)
        .says("medik8s")
        .says("your lease had expired");
    delete_medik8s(&node);
    let renewed = plugin().run(&["maint", "renew", &node, "--holder", "jane"]).expect(0);
    assert!(renewed.stdout.contains("your lease had expired"), "{renewed:?}");
}

/// The answer is late, or lost, and the lease is being deleted by then.
#[test]
fn a_lease_that_is_being_deleted_by_the_time_of_the_answer_is_not_acquired() {
    for slow in [true, false] {
        let [node] = nodes();
        write(NAMESPACE, &node, "", 1);
        let (once, gate) = (AtomicBool::new(false), Gate::default());
        let (held_up, path) = (gate.clone(), format!("/leases/{node}"));
        let proxy = FaultProxy::start(shared(), move |method, asked| {
            if is_lease_write(method, asked) && !once.swap(true, Ordering::SeqCst) {
                return if slow { Fault::HoldAnswer } else { Fault::CutAfter };
            }
            // Where the answer is lost it looks what became of the write.
            if method == "GET" && asked.ends_with(&path) && once.load(Ordering::SeqCst) && !slow {
                held_up.hold_first();
            }
            Fault::None
        });
        let args = ["maint", "acquire", &node, "--holder", "jane"];
        let mut running = Plugin::new(&proxy.kubeconfig).start(&args);
        wait_for("it writes", SOON, || holder(&node) == "jane", || running.stderr());
        begin_deletion(&node);
        if slow {
            // So late that it is renewed before it is told.
            thread::sleep(Duration::from_secs(3));
        }
        proxy.answer();
        gate.open();
        assert_eq!(running.wait(), if slow { 5 } else { 4 }, "slow {slow}: {}", running.stderr());
        end_deletion(&node);
    }
}

/// Nodes are recreated between the look and the write, and the garbage collector is faster than we are.
#[test]
fn a_lease_that_was_collected_with_the_node_of_before_is_taken_anew() {
    let collected = |names: Vec<String>| {
        let (written, settled) = (AtomicBool::new(false), AtomicBool::new(false));
        FaultProxy::start(shared(), move |method, path| {
            if is_lease_write(method, path) && !written.swap(true, Ordering::SeqCst) {
                for name in &names {
                    shared().kubectl(&["delete", "node", name]);
                    make_node(name);
                }
            }
            let looks = method == "GET" && path.starts_with("/api/v1/nodes");
            if looks && written.load(Ordering::SeqCst) && !settled.swap(true, Ordering::SeqCst) {
                wait_for(
                    "the garbage collector",
                    SOON,
                    || names.iter().all(|name| lease(name).is_null()),
                    String::new,
                );
            }
            Fault::None
        })
    };
    for several in [false, true] {
        let names: Vec<String> = if several { nodes::<2>().into() } else { nodes::<1>().into() };
        let proxy = collected(names.clone());
        let mut args = vec!["maint", "acquire", "--holder", "jane"];
        args.extend(names.iter().map(String::as_str));
        Plugin::new(&proxy.kubeconfig).run(&args).expect(0);
        for name in &names {
            assert_eq!(holder(name), "jane");
            owner_is_the_node(name);
        }
    }
}

/// A kube-apiserver that has just been started refuses what it will allow in a moment.
#[test]
fn a_refusal_that_passes_ends_neither_a_wait_nor_a_watch() {
    let blip = || {
        let refusing = Arc::new(AtomicBool::new(false));
        let refuses = Arc::clone(&refusing);
        let proxy = FaultProxy::start(shared(), move |_, _| {
            if refuses.load(Ordering::SeqCst) { Fault::Refuse(403) } else { Fault::None }
        });
        (proxy, refusing)
    };
    let refuse = |proxy: &FaultProxy, refusing: &AtomicBool| {
        refusing.store(true, Ordering::SeqCst);
        proxy.sever_watches(true);
        thread::sleep(Duration::from_millis(800));
        refusing.store(false, Ordering::SeqCst);
        proxy.sever_watches(false);
    };
    let [node] = nodes();
    others(&[&node]);
    let (proxy, refusing) = blip();
    let args = ["maint", "acquire", &node, "--holder", "jane", "--wait"];
    let mut waiting = Plugin::new(&proxy.kubeconfig).start(&args);
    waiting.until_stderr("it waits", SOON, |text| text.contains("held by 'other'"));
    // A watch is refused for good if it was never allowed: it is open by then.
    thread::sleep(Duration::from_secs(1));
    refuse(&proxy, &refusing);
    release_others(&node);
    assert_eq!(waiting.wait(), 0, "{}", waiting.stderr());

    // Just when the lease becomes free.
    let [node] = nodes();
    others(&[&node]);
    let once = AtomicBool::new(false);
    let proxy = FaultProxy::start(shared(), move |method, path| {
        let first = is_lease_write(method, path) && !once.swap(true, Ordering::SeqCst);
        if first { Fault::Refuse(403) } else { Fault::None }
    });
    let args = ["maint", "acquire", &node, "--holder", "jane", "--wait"];
    let mut waiting = Plugin::new(&proxy.kubeconfig).start(&args);
    waiting.until_stderr("it waits", SOON, |text| text.contains("held by 'other'"));
    release_others(&node);
    assert_eq!(waiting.wait(), 0, "{}", waiting.stderr());

    // A holder's: a theft is seen at once, and not when it is to be renewed after 40 seconds.
    let name = format!("contended-{}", random());
    let (proxy, refusing) = blip();
    let args = ["hold", &name, "-n", "default", "-d", "2m", "--", "sleep", "600"];
    let mut running = Plugin::new(&proxy.kubeconfig).start(&args);
    wait_for("held", SOON, || !look("default", &name).is_null(), || running.stderr());
    thread::sleep(Duration::from_secs(1));
    refuse(&proxy, &refusing);
    thread::sleep(Duration::from_secs(1));
    let began = Instant::now();
    let theft = json!({ "spec": { "holderIdentity": "thief", "leaseTransitions": 9 } }).to_string();
    shared().kubectl(&["patch", "lease", "-n", "default", &name, "--type=merge", "-p", &theft]);
    assert_eq!(running.wait(), 75, "{}", running.stderr());
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn an_outage_after_the_last_of_several_was_taken_ends_nothing() {
    let [a, b] = nodes();
    others(&[&b]);
    let (had, since): (_, Mutex<Option<Instant>>) = (AtomicBool::new(false), Mutex::default());
    let second = format!("/leases/{b}?");
    let proxy = FaultProxy::start(shared(), move |method, path| {
        let mut since = since.lock().unwrap();
        if is_lease_write(method, path) && path.contains(&second) {
            had.store(true, Ordering::SeqCst);
        } else if had.load(Ordering::SeqCst) && path.contains(MEDIK8S) && !path.contains("watch=true") {
            since.get_or_insert_with(Instant::now);
        }
        let down = since.is_some_and(|since| since.elapsed() < Duration::from_secs(4));
        if down { Fault::CutBefore } else { Fault::None }
    });
    let mut one = gathering(&Plugin::new(&proxy.kubeconfig), &[&a, &b], &[]);
    release_others(&b);
    assert_eq!(one.wait(), 0, "{}", one.stderr());
    assert_eq!([holder(&a), holder(&b)], ["jane", "jane"]);
}

/// The write that took the lease was done, and its answer and the connection were lost: who waits finds the
/// lease held, by nobody else.
#[test]
fn a_wait_knows_what_it_took_before_an_outage() {
    let [a, b, c] = nodes();
    let name = format!("contended-{}", random());
    for (last, args, taken) in [
        (&name, &["hold", &name, "-n", "default", "-d", "2m", "--wait", "--", "true"][..], ""),
        (&a, &["maint", "run", &a, "-d", "5m", "--wait", "--", "true"], ""),
        (&c, &["maint", "acquire", &b, &c, "--holder", "jane", "--wait"], "jane"),
    ] {
        let (since, writes): (Mutex<Option<Instant>>, _) = (Mutex::default(), format!("/leases/{last}?"));
        let home = if last == &name { "default" } else { NAMESPACE };
        write(home, last, "other", 600);
        let proxy = FaultProxy::start(shared(), move |method, path| {
            let mut since = since.lock().unwrap();
            match *since {
                None if is_lease_write(method, path) && path.contains(&writes) => {
                    *since = Some(Instant::now());
                    Fault::CutAfter
                }
                Some(since) if since.elapsed() < Duration::from_secs(3) => Fault::CutBefore,
                _ => Fault::None,
            }
        });
        let mut waiting = Plugin::new(&proxy.kubeconfig).start(args);
        waiting.until_stderr("it waits", SOON, |text| text.contains(&format!("waiting for {last}")));
        let began = Instant::now();
        write(home, last, "", 1);
        assert_eq!(waiting.wait(), 0, "{}", waiting.stderr());
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
        assert_eq!(look(home, last)["spec"]["holderIdentity"], taken);
    }
}

/// Its lease stays, and is what is gathered: nobody else would notice.
#[test]
fn a_node_that_is_deleted_while_another_is_waited_for_is_not_acquired() {
    let [a, b] = nodes();
    // What is there already is no new lease, of which the node would be looked at.
    others(&[&a, &b]);
    release_others(&a);
    let mut one = gathering(&plugin(), &[&a, &b], &["--admin"]);
    assert!(one.stderr().contains(&format!("waiting for {b}")), "{}", one.stderr());
    shared().kubectl(&["delete", "node", &a, "--cascade=orphan"]);
    release_others(&b);
    assert_eq!(one.wait(), 3, "{}", one.stderr());
    assert!(one.stderr().contains(&format!("node '{a}' was deleted meanwhile")), "{}", one.stderr());
    assert_eq!([holder(&a), holder(&b)], ["", ""]);
}

/// An administrator's leases do not run out, and neither does the wait for the rest of them.
#[test]
fn an_outage_while_several_are_waited_for_ends_nothing() {
    let [a, b] = nodes();
    others(&[&b]);
    let down = Arc::new(AtomicBool::new(false));
    let is_down = Arc::clone(&down);
    let proxy = FaultProxy::start(shared(), move |_, _| {
        if is_down.load(Ordering::SeqCst) { Fault::CutBefore } else { Fault::None }
    });
    let mut one = gathering(&Plugin::new(&proxy.kubeconfig), &[&a, &b], &["--admin", "-d", "3s"]);
    down.store(true, Ordering::SeqCst);
    proxy.sever_watches(true);
    thread::sleep(Duration::from_secs(5));
    down.store(false, Ordering::SeqCst);
    proxy.sever_watches(false);
    release_others(&b);
    assert_eq!(one.wait(), 0, "{}", one.stderr());
    assert_eq!([holder(&a), holder(&b)], ["kubeadm:jane", "kubeadm:jane"]);
}

/// The token was rotated: of several writes that are refused at once, one gets the new token for all.
#[test]
fn every_write_is_sent_again_after_the_token_was_renewed() {
    use std::os::unix::fs::PermissionsExt as _;
    let names: [String; 5] = nodes();
    let refused = Mutex::new(BTreeSet::new());
    let (count, paths) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let refusals = Arc::clone(&paths);
    for name in &names {
        write(NAMESPACE, name, "", 1);
    }
    let proxy = FaultProxy::start(shared(), move |method, path| {
        // The token is rotated after the first write.
        if is_lease_write(method, path)
            && count.fetch_add(1, Ordering::SeqCst) > 0
            && refused.lock().unwrap().insert(path.to_owned())
        {
            refusals.fetch_add(1, Ordering::SeqCst);
            return Fault::Refuse(401);
        }
        Fault::None
    });
    let (file, ran) = (
        shared().folder.join(format!("token-{}", names[0])),
        shared().folder.join(format!("ran-{}", names[0])),
    );
    let answer = r#"{"apiVersion":"client.authentication.k8s.io/v1","status":{"token":"%s"}}"#;
    let script = format!(
        "#!/bin/sh\ntoken=old\n[ ! -e {0} ] || token=new\ntouch {0}\nprintf '{answer}' $token\n",
        ran.display()
    );
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut config: Value =
        serde_json::from_str(&std::fs::read_to_string(&proxy.kubeconfig).unwrap()).unwrap();
    let exec = json!({ "apiVersion": "client.authentication.k8s.io/v1", "command": file });
    config["users"] = json!([{ "name": "exec", "user": { "exec": exec } }]);
    config["contexts"][0]["context"]["user"] = "exec".into();
    let kubeconfig = shared().folder.join(format!("exec-{}.kubeconfig", names[0]));
    std::fs::write(&kubeconfig, config.to_string()).unwrap();
    let mut args = vec!["maint", "acquire", "--holder", "jane"];
    args.extend(names.iter().map(String::as_str));
    Plugin::new(&kubeconfig).run(&args).expect(0);
    // The first node's is its second write, of its name.
    assert_eq!(paths.load(Ordering::SeqCst), 5);
}

#[test]
fn what_one_holds_as_an_administrator_is_adopted_as_such_and_given_back() {
    let [node] = nodes();
    plugin().run(&["maint", "acquire", &node, "--holder", "ann", "--admin", "-r", "disk"]).expect(0);
    let before = lease(&node);
    let script = "echo $KUBECTL_LEASE_HOLDER";
    plugin()
        .run(&["maint", "run", &node, "--holder", "ann", "--", "true"])
        .expect(4)
        .says("--admin keeps it");
    let args = ["maint", "run", &node, "--holder", "ann", "--admin", "--", "sh", "-c", script];
    let run = plugin().run(&args).expect(0);
    assert!(run.stdout.starts_with("kubeadm:ann#"), "{run:?}");
    plugin().run(&["fence", &node, "--confirm", "--holder", "ann"]).expect(0);
    plugin().run(&["fence", &node, "--undo", "--confirm", "--holder", "ann"]).expect(0);
    plugin().run(&["fence", &node, "--confirm", "--holder", "john"]).expect(4);
    let after = lease(&node);
    for field in ["holderIdentity", "renewTime", "acquireTime"] {
        assert_eq!(after["spec"][field], before["spec"][field], "{field}");
    }
    assert_eq!(after["metadata"]["annotations"], before["metadata"]["annotations"]);
    // One that nobody holds is not made an administrator's.
    let [free] = nodes();
    let args = ["maint", "run", &free, "--holder", "ann", "--admin", "--", "sh", "-c", script];
    let run = plugin().run(&args).expect(0);
    assert!(run.stdout.starts_with("ann#"), "{run:?}");
}

#[test]
fn a_hold_of_a_name_of_its_own_goes_on_after_a_crash() {
    let name = format!("contended-{}", random());
    let args = ["hold", &name, "-n", "default", "--holder", "cron", "-d", "8s", "--", "sleep", "600"];
    let mut crashed = plugin().start(&args);
    wait_for("held", SOON, || !look("default", &name).is_null(), || crashed.stderr());
    crashed.signal("-KILL");
    crashed.wait();
    let args = ["hold", &name, "-n", "default", "--holder", "cron", "-d", "8s", "--", "true"];
    plugin().run(&args).expect(4);
    thread::sleep(Duration::from_secs(13));
    plugin().run(&args).expect(0);
}

#[test]
fn medik8s_that_begins_on_one_of_several_is_waited_for_too() {
    let [a, b] = nodes();
    others(&[&b]);
    let mut one = gathering(&plugin(), &[&a, &b], &[]);
    write(MEDIK8S, &format!("node-{a}"), "node-maintenance", 120);
    release_others(&b);
    one.until_stderr("it waits for medik8s", SOON, |text| {
        text.contains(&format!("waiting for {a}, held by medik8s"))
    });
    assert_eq!([holder(&a), holder(&b)], ["", ""], "what comes after it is not kept from others");
    delete_medik8s(&a);
    assert_eq!(one.wait(), 0, "{}", one.stderr());
    assert_eq!([holder(&a), holder(&b)], ["jane", "jane"]);
}

#[test]
fn the_end_of_a_wait_says_what_was_in_the_way() {
    let [node] = nodes();
    write(MEDIK8S, &format!("node-{node}"), "node-maintenance", 60);
    let outcome =
        plugin().run(&["maint", "acquire", &node, "--wait=1s"]).expect(124).says("it is held by medik8s");
    assert!(!outcome.stderr.contains("it is free"), "{outcome:?}");
    delete_medik8s(&node);
    write(NAMESPACE, &node, "", 1);
    begin_deletion(&node);
    plugin().run(&["maint", "acquire", &node, "--wait=1s"]).expect(124).says("it is being deleted");
    // And so it is not free.
    let status = plugin().run(&["maint", "status", &node]).expect(4);
    assert!(status.stdout.contains("terminating"), "{status:?}");
    end_deletion(&node);
    plugin().run(&["maint", "status", &node]).expect(0);
}

#[test]
fn renew_makes_no_user_an_administrator() {
    let [node] = nodes();
    plugin().run(&["maint", "acquire", &node, "--holder", "jane"]).expect(0);
    let before = lease(&node);
    plugin().run(&["maint", "renew", &node, "--holder", "jane", "--admin"]).expect(6).says("administrator");
    assert_eq!(lease(&node), before);
    plugin().run(&["maint", "acquire", &node, "--holder", "jane", "--admin"]).expect(0);
    let renewed =
        plugin().run(&["maint", "renew", &node, "--holder", "jane", "--admin", "-d", "5h"]).expect(0);
    assert_eq!(renewed.stdout, format!("{node} renewed, held until released\n"));
}

#[test]
fn a_busy_server_is_given_the_time_that_it_asks_for() {
    let [node] = nodes();
    let (writes, since): (_, Mutex<Option<Instant>>) = (Arc::new(AtomicUsize::new(0)), Mutex::default());
    let counted = Arc::clone(&writes);
    let proxy = FaultProxy::start(shared(), move |method, path| {
        if !is_lease_write(method, path) {
            return Fault::None;
        }
        counted.fetch_add(1, Ordering::SeqCst);
        let began = *since.lock().unwrap().get_or_insert_with(Instant::now);
        if began.elapsed() < Duration::from_millis(2500) { Fault::Busy(1) } else { Fault::None }
    });
    Plugin::new(&proxy.kubeconfig).run(&["maint", "acquire", &node, "--holder", "jane"]).expect(0);
    let writes = writes.load(Ordering::SeqCst);
    assert!((2..=5).contains(&writes), "{writes}");
}

/// It may be a colleague's who shares the name.
#[test]
fn a_lease_that_was_taken_without_a_reason_is_given_none_without_a_yes() {
    let [node] = nodes();
    plugin().run(&["maint", "acquire", &node, "--holder", "shared"]).expect(0);
    let args = ["maint", "acquire", &node, "--holder", "shared", "-r", "reboot"];
    plugin().run(&args).expect(6).says("without a reason").says("--yes");
    assert_eq!(lease(&node)["metadata"]["annotations"], Value::Null);
    plugin().run(&[&args[..], &["--yes"]].concat()).expect(0);
}

#[test]
fn a_lease_that_outlived_its_node_is_listed_and_released_and_gets_an_owner_again() {
    let [node] = nodes();
    plugin().run(&["maint", "acquire", &node, "--holder", "ann", "--admin"]).expect(0);
    shared().kubectl(&["delete", "node", &node, "--cascade=orphan"]);
    let orphaned = || lease(&node)["metadata"]["ownerReferences"].is_null();
    wait_for("the garbage collector", SOON, orphaned, || lease(&node).to_string());
    let list = plugin().run(&["maint", "list"]).expect(0);
    let row = list.stdout.lines().find(|line| line.starts_with(&node)).unwrap_or_default();
    assert!(row.contains("admin, abandoned, node deleted"), "{list:?}");
    plugin().run(&["maint", "acquire", &node]).expect(3);
    plugin().run(&["maint", "release", &node]).expect(6);
    plugin().run(&["maint", "release", &node, "--holder", "ann", "--admin"]).expect(0);
    assert_eq!(holder(&node), "");
    make_node(&node);
    plugin().run(&["maint", "acquire", &node]).expect(0);
    owner_is_the_node(&node);
}
