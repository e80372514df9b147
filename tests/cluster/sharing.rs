//! Several processes of one holder: what one of them is told it holds, another neither uses nor leaves behind.
//! On a real control plane; what is late is the proxy's.

use std::{
    fs::File,
    path::PathBuf,
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
    harness::{
        User,
        faults::{Fault, FaultProxy, Gate},
        random,
    },
    plugin::{BINARY, Plugin, Running, wait_for},
    shared,
};

const NAMESPACE: &str = "kube-node-maintenance";
const SOON: Duration = Duration::from_secs(10);

fn plugin() -> Plugin {
    Plugin::new(shared().kubeconfig(User::Admin, 0))
}

/// Nodes in the order of their names.
fn nodes<const N: usize>() -> [String; N] {
    let prefix = random();
    std::array::from_fn(|n| {
        let name = format!("node-{prefix}-{n}");
        let labels = json!({ "sharing": prefix });
        shared().apply(
            &json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": labels } }),
        );
        name
    })
}

fn lease(name: &str) -> Value {
    let args = ["get", "lease", "-n", NAMESPACE, name, "--ignore-not-found", "-o", "json"];
    serde_json::from_str(&shared().kubectl(&args)).unwrap_or_default()
}

fn holder(name: &str) -> String {
    lease(name)["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

fn reason(name: &str) -> Value {
    lease(name)["metadata"]["annotations"]["kubectl-lease.dev/reason"].clone()
}

/// A lease of a minute that was last renewed so many seconds ago.
fn write(name: &str, holder: &str, ago: i64) {
    let renewed = format!("{:.6}", jiff::Timestamp::now() - jiff::SignedDuration::from_secs(ago));
    let spec = json!({
        "holderIdentity": holder, "leaseDurationSeconds": 60, "leaseTransitions": 3,
        "acquireTime": renewed, "renewTime": renewed,
    });
    shared().apply(&json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": name, "namespace": NAMESPACE }, "spec": spec,
    }));
}

/// Passes the first write of a lease on when the gate is opened.
fn late(node: &str) -> (FaultProxy, Gate) {
    let gate = Gate::default();
    let (held_up, node) = (gate.clone(), node.to_owned());
    let proxy = FaultProxy::start(shared(), move |method, path| {
        let is_its_create = method == "POST" && path.contains(NAMESPACE) && path.contains("/leases");
        let is_its_patch = method == "PATCH" && path.contains(&format!("/leases/{node}"));
        if is_its_create || is_its_patch {
            held_up.hold_first();
        }
        Fault::None
    });
    (proxy, gate)
}

/// jane's lease is released and acquired anew, by a colleague of the same name, while a run that would have
/// gone on from it is about to.
#[test]
fn maint_run_goes_on_only_from_the_lease_that_it_saw_at_the_start() {
    for waits in [false, true] {
        let [node] = nodes();
        plugin().run(&["maint", "acquire", &node, "--holder", "jane"]).expect(0);
        let (proxy, gate) = late(&node);
        let wait = if waits { &["--wait=10s"][..] } else { &[] };
        let args = [&["maint", "run", &node, "--holder", "jane"][..], wait, &["--", "echo", "ran"]].concat();
        let mut run = Plugin::new(&proxy.kubeconfig).start(&args);
        wait_for("it writes", SOON, || gate.has_come(), || run.stderr());
        plugin().run(&["maint", "release", &node, "--holder", "jane"]).expect(0);
        plugin().run(&["maint", "acquire", &node, "--holder", "jane", "-r", "new disk"]).expect(0);
        gate.open();
        assert_eq!(run.wait(), if waits { 124 } else { 4 }, "{}", run.stderr());
        assert_eq!((run.stdout().as_str(), holder(&node).as_str()), ("", "jane"), "{}", run.stderr());
        assert_eq!(reason(&node), "new disk");
    }
}

/// One that waits for another holder does not go on from what its own holder acquires then.
#[test]
fn maint_run_waits_for_a_lease_that_its_user_acquired_after_it_began_to_wait() {
    let [node] = nodes();
    plugin().run(&["maint", "acquire", &node, "--holder", "john"]).expect(0);
    let args = ["maint", "run", &node, "--holder", "jane", "--wait", "--", "echo", "ran"];
    let mut run = plugin().start(&args);
    run.until_stderr("it waits", SOON, |text| text.contains("waiting for"));
    let jane = json!({ "spec": { "holderIdentity": "jane", "leaseTransitions": 9 } }).to_string();
    shared().kubectl(&["patch", "lease", "-n", NAMESPACE, &node, "--type=merge", "-p", &jane]);
    run.until_stderr("it is jane's", SOON, |text| text.contains("held by 'jane'"));
    assert_eq!(run.stdout(), "");
    plugin().run(&["maint", "release", &node, "--holder", "jane"]).expect(0);
    assert_eq!(run.wait(), 0, "{}", run.stderr());
    assert_eq!(run.stdout(), "ran\n");
}

/// Two commands of one administrator want two nodes each, one of them the same; neither gets both.
#[test]
fn what_two_failed_commands_of_one_holder_wanted_is_free() {
    for admin in [&[][..], &["--admin"]] {
        let [shared_one, second, third] = nodes();
        write(&third, "john", 0);
        // The second is taken by another meanwhile.
        let (came, gate) = (AtomicBool::new(false), Gate::default());
        let held_up = gate.clone();
        let proxy = FaultProxy::start(shared(), move |method, path| {
            // The first node is written first, and alone.
            let write = method == "POST" && path.contains(NAMESPACE) && path.contains("/leases");
            if write && came.swap(true, Ordering::SeqCst) {
                held_up.hold_first();
            }
            Fault::None
        });
        let args = |one: &str, other: &str| {
            let args = ["maint", "acquire", one, other, "--holder", "jane"].map(str::to_owned);
            [args.to_vec(), admin.iter().map(|flag| (*flag).to_owned()).collect()].concat()
        };
        let a = args(&shared_one, &second);
        let mut a = Plugin::new(&proxy.kubeconfig).start(&a.iter().map(String::as_str).collect::<Vec<_>>());
        wait_for("A has the first", SOON, || !holder(&shared_one).is_empty(), || a.stderr());
        assert!(holder(&shared_one).starts_with("jane#"), "{}", holder(&shared_one));
        let b = args(&shared_one, &third);
        plugin().run(&b.iter().map(String::as_str).collect::<Vec<_>>()).expect(4);
        let run = [&["maint", "run", &shared_one, "--holder", "jane"][..], admin, &["--", "true"]].concat();
        plugin().run(&run).expect(4).says("held by 'jane#");
        write(&second, "john", 0);
        gate.open();
        assert_eq!(a.wait(), 4, "{}", a.stderr());
        assert_eq!(holder(&shared_one), "", "{admin:?}: {}", a.stderr());
    }
}

/// What was released, deleted or has run out while its renewal was under way is not taken by it.
#[test]
fn a_renewal_takes_nothing_anew() {
    for deleted in [false, true] {
        let [node] = nodes();
        plugin().run(&["maint", "acquire", &node, "--holder", "jane", "-r", "new disk"]).expect(0);
        let (proxy, gate) = late(&node);
        let mut renewal =
            Plugin::new(&proxy.kubeconfig).start(&["maint", "renew", &node, "--holder", "jane"]);
        wait_for("it writes", SOON, || gate.has_come(), || renewal.stderr());
        if deleted {
            shared().kubectl(&["delete", "lease", "-n", NAMESPACE, &node]);
        } else {
            plugin().run(&["maint", "release", &node, "--holder", "jane"]).expect(0);
        }
        gate.open();
        assert_eq!(renewal.wait(), 3, "{}", renewal.stderr());
        assert!(renewal.stderr().contains("there is nothing to renew"), "{}", renewal.stderr());
        assert_eq!(holder(&node), "");
    }
    // One's own whose time is over is taken anew; but not by a write that was given up.
    let [node] = nodes();
    write(&node, "jane", 100);
    let (proxy, gate) = late(&node);
    let mut renewal = Plugin::new(&proxy.kubeconfig).start(&["maint", "renew", &node, "--holder", "jane"]);
    wait_for("it writes", SOON, || gate.has_come(), || renewal.stderr());
    renewal.signal("-INT");
    assert_eq!(renewal.wait(), 130, "{}", renewal.stderr());
    gate.open();
    // It arrives.
    thread::sleep(Duration::from_secs(2));
    assert_eq!(holder(&node), "", "{}", renewal.stderr());
    plugin().run(&["maint", "acquire", &node, "--holder", "jane", "--admin"]).expect(0);
    plugin().run(&["maint", "renew", &node, "--holder", "jane"]).expect(4).says("--admin renews it");
    plugin().run(&["maint", "renew", &node, "--holder", "jane", "--admin"]).expect(0);
}

/// One of several could not be renewed, another is on its way when the command is interrupted.
#[test]
fn an_interrupted_renewal_says_what_was_not_renewed() {
    let [one, two, three] = nodes();
    plugin().run(&["maint", "acquire", &one, &two, &three, "--holder", "jane"]).expect(0);
    let before = lease(&two);
    let came = Arc::new([(); 2].map(|()| AtomicBool::new(false)));
    let (seen, paths) = (Arc::clone(&came), [&one, &two].map(|node| format!("/leases/{node}?")));
    let proxy = FaultProxy::start(shared(), move |method, path| {
        let which = paths.iter().position(|of| method == "PATCH" && path.contains(of));
        match which {
            Some(n) if seen[n].swap(true, Ordering::SeqCst) => Fault::None,
            Some(0) => Fault::Refuse(422),
            Some(_) => Fault::Late(10_000),
            None => Fault::None,
        }
    });
    let args = ["maint", "renew", &one, &two, &three, "--holder", "jane"];
    let mut renewal = Plugin::new(&proxy.kubeconfig).start(&args);
    let all_came = || came.iter().all(|came| came.load(Ordering::SeqCst));
    wait_for("it writes", SOON, all_came, || renewal.stderr());
    // It hears of the refusal.
    thread::sleep(Duration::from_secs(3));
    renewal.signal("-TERM");
    assert_eq!(renewal.wait(), 130, "{}", renewal.stderr());
    let said = renewal.stderr();
    assert!(said.contains("error: ") && said.contains(&format!("not renewed: {two}\n")), "{said}");
    assert!(!said.contains("another process"), "{said}");
    assert!(renewal.stdout().starts_with(&format!("{three} renewed")), "{}", renewal.stdout());
    assert_eq!(lease(&two)["spec"], before["spec"], "{said}");
}

/// Whoever acquires this node through the proxy has to wait for its last look at it; and `more` may say what
/// becomes of the other requests.
fn slow_to_settle(
    node: &str,
    more: impl Fn(&str, &str) -> Fault + Send + Sync + 'static,
) -> (FaultProxy, Gate) {
    let (gate, looks, path) = (Gate::default(), AtomicUsize::new(0), format!("/api/v1/nodes/{node}"));
    let passes = gate.clone();
    let proxy = FaultProxy::start(shared(), move |method, asked| {
        // The first look is at the start.
        if method == "GET" && asked == path && looks.fetch_add(1, Ordering::SeqCst) == 1 {
            passes.hold();
        }
        more(method, asked)
    });
    (proxy, gate)
}

fn is_patch_of(node: &str, method: &str, path: &str) -> bool {
    method == "PATCH" && path.contains(&format!("/leases/{node}?"))
}

/// Another process of the same holder renews the lease of a command that waits: it is held for as long as
/// that one was told, be it longer or shorter.
#[test]
fn what_another_process_was_told_is_not_renewed_for_another_time() {
    for (first, second, seconds) in
        [("3s", ["acquire", "30m"], 1800), ("30m", ["renew", "60s"], 60), ("3s", ["renew", "10m"], 600)]
    {
        let [node] = nodes();
        let (proxy, gate) = slow_to_settle(&node, |_, _| Fault::None);
        let args = ["maint", "acquire", &node, "--holder", "jane", "-d", first, "--wait"];
        let mut waiting = Plugin::new(&proxy.kubeconfig).start(&args);
        wait_for("it is held", SOON, || gate.came() > 0 && holder(&node) == "jane", || waiting.stderr());
        let [verb, duration] = second;
        plugin().run(&["maint", verb, &node, "--holder", "jane", "-d", duration]).expect(0);
        let told = lease(&node);
        assert_eq!(told["spec"]["leaseDurationSeconds"], seconds, "{told}");
        // Long enough for several renewals.
        thread::sleep(Duration::from_secs(4));
        assert_eq!(lease(&node)["spec"], told["spec"], "{first}: {}", waiting.stderr());
        gate.open();
        assert_eq!(waiting.wait(), 0, "{}", waiting.stderr());
        assert_eq!(lease(&node)["spec"], told["spec"], "{first}: {}", waiting.stderr());
        assert!(!waiting.stdout().contains(&format!("for {first}\n")), "{}", waiting.stdout());
    }
}

/// What another process of the same holder renewed, and then released, is not believed to be held: also where
/// no watch tells.
#[test]
fn what_another_process_renewed_and_released_is_waited_for_again() {
    let [node] = nodes();
    let watches = AtomicUsize::new(0);
    let (proxy, gate) = slow_to_settle(&node, move |_, path| {
        let first = path.contains("watch=true") && watches.fetch_add(1, Ordering::SeqCst) == 0;
        if first { Fault::StallWatch(0) } else { Fault::None }
    });
    let args = ["maint", "acquire", &node, "--holder", "jane", "-d", "3s", "--wait"];
    let mut waiting = Plugin::new(&proxy.kubeconfig).start(&args);
    wait_for("it is held", SOON, || gate.came() > 0 && holder(&node) == "jane", || waiting.stderr());
    plugin().run(&["maint", "acquire", &node, "--holder", "jane", "-d", "30m"]).expect(0);
    // It has seen that by now.
    thread::sleep(Duration::from_secs(4));
    plugin().run(&["maint", "release", &node, "--holder", "jane"]).expect(0);
    plugin().run(&["maint", "acquire", &node, "--holder", "thief"]).expect(0);
    gate.open();
    waiting.until_stderr("it waits again", SOON, |text| text.contains("held by 'thief'"));
    waiting.signal("-TERM");
    assert_eq!(waiting.wait(), 130, "{}", waiting.stderr());
    assert_eq!((waiting.stdout().as_str(), holder(&node).as_str()), ("", "thief"));
}

/// A renewal is under way over what another process of the same holder wrote.
#[test]
fn what_another_process_was_told_is_not_released_by_giving_up() {
    let [node] = nodes();
    let (patches, asked) = (Arc::new(AtomicUsize::new(0)), node.clone());
    let counted = Arc::clone(&patches);
    let (proxy, gate) = slow_to_settle(&node, move |method, path| {
        // The first meets what the other process wrote.
        let again = is_patch_of(&asked, method, path) && counted.fetch_add(1, Ordering::SeqCst) == 1;
        if again { Fault::Late(6000) } else { Fault::None }
    });
    let args = ["maint", "acquire", &node, "--holder", "jane", "--wait"];
    let mut given_up = Plugin::new(&proxy.kubeconfig).start(&args);
    wait_for("it is held", SOON, || gate.came() > 0 && holder(&node) == "jane", || given_up.stderr());
    plugin().run(&["maint", "renew", &node, "--holder", "jane", "-d", "10m"]).expect(0);
    let told = lease(&node);
    wait_for("it renews", SOON, || patches.load(Ordering::SeqCst) > 0, || given_up.stderr());
    thread::sleep(Duration::from_secs(2));
    given_up.signal("-TERM");
    assert_eq!(given_up.wait(), 130, "{}", given_up.stderr());
    assert_eq!(lease(&node)["spec"], told["spec"], "{}", given_up.stderr());
    let words = format!("{node} is still held by jane: another process of this holder has renewed it");
    assert!(given_up.stderr().contains(&words), "{}", given_up.stderr());
    thread::sleep(Duration::from_secs(6));
    assert_eq!(lease(&node)["spec"], told["spec"], "{}", given_up.stderr());
}

/// A command that runs until it is told to end.
struct Until(PathBuf);

impl Until {
    fn new() -> Self {
        Self(shared().folder.join(format!("until-{}", random())))
    }

    fn command(&self) -> String {
        format!("while [ ! -e {} ]; do sleep 0.1; done", self.0.display())
    }

    fn end(&self) {
        File::create(&self.0).unwrap();
    }
}

/// The first went on from what its user holds, and gives it back: the second goes on from that.
#[test]
fn maint_run_goes_on_from_what_another_run_of_its_user_puts_back() {
    for admin in [&[][..], &["--admin"]] {
        let [node] = nodes();
        let jane = [&["--holder", "jane"][..], admin].concat();
        let start =
            |verb: &str, more: &[&str]| plugin().start(&[&["maint", verb, &node], &jane[..], more].concat());
        assert_eq!(start("acquire", &["-r", "disk"]).wait(), 0);
        let before = lease(&node);
        let until = Until::new();
        let mut first = start("run", &["--", "sh", "-c", &until.command()]);
        wait_for("it runs", SOON, || holder(&node).contains("jane#"), || first.stderr());
        let mut waiting: Vec<_> =
            ["second", "third"].map(|word| start("run", &["--wait=30s", "--", "echo", word])).into();
        for waiting in &waiting {
            waiting.until_stderr("it waits", SOON, |text| text.contains("waiting for"));
        }
        until.end();
        assert_eq!(first.wait(), 0, "{}", first.stderr());
        for waiting in &mut waiting {
            assert_eq!(waiting.wait(), 0, "{admin:?}: {}", waiting.stderr());
        }
        let said: Vec<_> = waiting.iter().map(Running::stdout).collect();
        assert_eq!(said, ["second\n", "third\n"]);
        let after = lease(&node);
        for field in ["holderIdentity", "acquireTime", "renewTime", "leaseDurationSeconds"] {
            assert_eq!(after["spec"][field], before["spec"][field], "{field}");
        }
        assert_eq!(after["metadata"]["annotations"], before["metadata"]["annotations"]);
    }
}

/// What a run waits for was gathered by a command of its user, which was then told that it holds it.
#[test]
fn maint_run_waits_for_what_a_command_of_its_user_has_gathered() {
    let [one, two] = nodes();
    plugin().run(&["maint", "acquire", &two, "--holder", "john"]).expect(0);
    let mut gathering = plugin().start(&["maint", "acquire", &one, &two, "--holder", "jane", "--wait"]);
    wait_for("it has the first", SOON, || holder(&one).starts_with("jane#"), || gathering.stderr());
    let mut run = plugin().start(&["maint", "run", &one, "--holder", "jane", "--wait", "--", "echo", "ran"]);
    run.until_stderr("it waits", SOON, |text| text.contains("held by 'jane#"));
    plugin().run(&["maint", "release", &two, "--holder", "john"]).expect(0);
    assert_eq!(gathering.wait(), 0, "{}", gathering.stderr());
    run.until_stderr("it waits on", SOON, |text| text.contains("held by 'jane'"));
    assert_eq!((run.stdout().as_str(), holder(&one).as_str()), ("", "jane"));
    plugin().run(&["maint", "release", &one, "--holder", "jane"]).expect(0);
    assert_eq!(run.wait(), 0, "{}", run.stderr());
}

/// A run goes on from what a command has acquired that then fails: the run will put it back, and the command
/// says so.
#[test]
fn what_a_failed_command_leaves_to_a_run_is_reported_as_still_held() {
    let until = Until::new();
    let run = |node: &str| {
        let args = ["maint", "run", node, "--holder", "jane", "--admin", "--", "sh", "-c", &until.command()];
        plugin().start(&args)
    };
    let is_said = |stderr: &str, node: &str| {
        stderr.contains(&format!("{node} is still held by kubeadm:jane: another command"))
            && stderr.contains(&format!("'kubectl lease maint release {node} --admin'"))
    };
    // One of two is lost before it has its name; then the command fails, or waits for both again.
    let mut left = Vec::new();
    for waits in [false, true] {
        let [one, two] = nodes();
        let (gate, second) = (Gate::default(), two.clone());
        let passes = gate.clone();
        let proxy = FaultProxy::start(shared(), move |method, path| {
            if is_patch_of(&second, method, path) {
                passes.hold();
            }
            Fault::None
        });
        let args = ["maint", "acquire", &one, &two, "--holder", "jane", "--admin"];
        let wait = if waits { &["--wait"][..] } else { &[] };
        let mut failed = Plugin::new(&proxy.kubeconfig).start(&[&args[..], wait].concat());
        wait_for("it has the first", SOON, || holder(&one) == "kubeadm:jane", || failed.stderr());
        wait_for("it names the second", SOON, || gate.came() > 0, || failed.stderr());
        let first = run(&one);
        wait_for("it runs", SOON, || holder(&one).starts_with("kubeadm:jane#"), || first.stderr());
        plugin().run(&["maint", "release", &two, "--force", "--confirm"]).expect(0);
        plugin().run(&["maint", "acquire", &two, "--holder", "thief"]).expect(0);
        gate.open();
        if waits {
            failed.until_stderr("it waits again", SOON, |text| text.contains("waiting for"));
            failed.signal("-TERM");
        }
        assert_eq!(failed.wait(), if waits { 130 } else { 5 }, "{}", failed.stderr());
        assert!(is_said(&failed.stderr(), &one), "{waits} {}", failed.stderr());
        left.push((one, first));
    }

    // The answer is late, and the command is ended.
    let [node] = nodes();
    let proxy = FaultProxy::start(shared(), |method, path| {
        let created = method == "POST" && path.contains(NAMESPACE) && path.contains("/leases");
        if created { Fault::SlowAnswer(10_000) } else { Fault::None }
    });
    let args = ["maint", "acquire", &node, "--holder", "jane", "--admin"];
    let mut ended = Plugin::new(&proxy.kubeconfig).start(&args);
    wait_for("it is held", SOON, || holder(&node) == "kubeadm:jane", || ended.stderr());
    let second = run(&node);
    wait_for("it runs", SOON, || holder(&node).starts_with("kubeadm:jane#"), || second.stderr());
    ended.signal("-TERM");
    assert_eq!(ended.wait(), 130, "{}", ended.stderr());
    assert!(is_said(&ended.stderr(), &node), "{}", ended.stderr());

    until.end();
    left.push((node, second));
    for (node, mut run) in left {
        assert_eq!(run.wait(), 0, "{}", run.stderr());
        assert_eq!(holder(&node), "kubeadm:jane");
        plugin().run(&["maint", "release", &node, "--holder", "jane", "--admin"]).expect(0);
    }
}

/// A run, and an acquisition, wait for another run of the same holder, which puts back what was acquired for
/// another reason.
#[test]
fn a_command_does_not_wait_for_its_own_lease_that_is_held_for_another_reason() {
    let [node] = nodes();
    plugin().run(&["maint", "acquire", &node, "--holder", "jane", "--admin", "-r", "disk"]).expect(0);
    let until = Until::new();
    let of_jane = [node.as_str(), "--holder", "jane", "--admin"];
    let start = |verb: &str, more: &[&str]| plugin().start(&[&["maint", verb], &of_jane[..], more].concat());
    let mut first = start("run", &["--", "sh", "-c", &until.command()]);
    wait_for("it runs", SOON, || holder(&node).starts_with("kubeadm:jane#"), || first.stderr());
    let mut waiting = [
        start("run", &["-r", "reboot", "--wait", "--", "true"]),
        start("acquire", &["-r", "reboot", "--wait"]),
    ];
    for waiting in &waiting {
        waiting.until_stderr("it waits", SOON, |text| text.contains("waiting for"));
    }
    until.end();
    assert_eq!(first.wait(), 0, "{}", first.stderr());
    for refused in &mut waiting {
        let ended = || refused.stderr().contains("disk");
        wait_for("it is refused", SOON, ended, || refused.stderr());
        assert_eq!(refused.wait(), 6, "{}", refused.stderr());
    }
    assert_eq!(holder(&node), "kubeadm:jane");
    plugin().run(&["maint", "release", &node, "--holder", "jane", "--admin"]).expect(0);
}

fn patch(name: &str, patch: &Value) {
    shared().kubectl(&["patch", "lease", "-n", NAMESPACE, name, "--type=merge", "-p", &patch.to_string()]);
}

/// What is written to a lease that is being deleted does not last.
#[test]
fn a_lease_that_is_being_deleted_is_not_held_as_before_the_command() {
    let [node] = nodes();
    plugin().run(&["maint", "acquire", &node, "--holder", "jane"]).expect(0);
    let args = ["maint", "run", &node, "--holder", "jane", "--", "sleep", "600"];
    let mut run = plugin().start(&args);
    wait_for("it runs", SOON, || holder(&node).starts_with("jane#"), || run.stderr());
    patch(&node, &json!({ "metadata": { "finalizers": ["example.org/keeps"] } }));
    shared().kubectl(&["delete", "lease", "-n", NAMESPACE, &node, "--wait=false"]);
    assert_eq!(run.wait(), 75, "{}", run.stderr());
    assert!(!run.stderr().contains("held as before"), "{}", run.stderr());
    assert_eq!(holder(&node), "", "{}", run.stderr());
    patch(&node, &json!({ "metadata": { "finalizers": null } }));
    plugin().run(&["maint", "acquire", &node, "--holder", "john"]).expect(0);
}

/// It has a holder, and only part of what it would be judged by.
#[test]
fn a_malformed_lease_that_was_taken_in_vain_is_put_back_as_it_was() {
    for lacks in ["renewTime", "leaseDurationSeconds"] {
        let [one, two] = nodes();
        write(&one, "daemon", 0);
        patch(
            &one,
            &json!({
                "metadata": { "annotations": { "kubectl-lease.dev/reason": "firmware" } },
                "spec": { lacks: null, "acquireTime": null },
            }),
        );
        plugin().run(&["maint", "acquire", &two, "--holder", "john"]).expect(0);
        let before = lease(&one);
        let acquire = ["maint", "acquire", &one, &two, "--holder", "jane", "--take-malformed", "--wait=2s"];
        plugin().run(&acquire).expect(124).says(&format!("held as before: {one}"));
        let after = lease(&one);
        for field in ["holderIdentity", "acquireTime", "renewTime", "leaseDurationSeconds"] {
            assert_eq!(after["spec"][field], before["spec"][field], "{field}");
        }
        assert_eq!(after["spec"]["leaseTransitions"], 5, "it changed hands twice");
        assert_eq!(after["metadata"]["annotations"], before["metadata"]["annotations"]);
        // A command that cannot be run has used nothing.
        let run = ["maint", "run", &one, "--holder", "jane", "--take-malformed", "--"];
        plugin().run(&[&run[..], &["/no/such/command"]].concat()).expect(127);
        for field in ["holderIdentity", "acquireTime", "renewTime", "leaseDurationSeconds"] {
            assert_eq!(lease(&one)["spec"][field], before["spec"][field], "{field}");
        }
        // What was not in vain is released.
        plugin().run(&[&run[..], &["true"]].concat()).expect(0);
        assert_eq!(holder(&one), "");
    }
}

/// The answer comes so late that the time has to be made new: not for less than another process was told.
#[test]
fn what_is_held_already_is_not_shortened_after_a_lost_answer() {
    let [node] = nodes();
    plugin().run(&["maint", "acquire", &node, "--holder", "jane", "-d", "30m"]).expect(0);
    let (asked, writes) = (node.clone(), AtomicUsize::new(0));
    let proxy = FaultProxy::start(shared(), move |method, path| {
        let first = is_patch_of(&asked, method, path) && writes.fetch_add(1, Ordering::SeqCst) == 0;
        if first { Fault::HangAfter } else { Fault::None }
    });
    let acquire = ["maint", "acquire", &node, "--holder", "jane", "-d", "6s", "--request-timeout", "4s"];
    let told = Plugin::new(&proxy.kubeconfig).run(&acquire).expect(0);
    assert!(told.stdout.contains("renewed, it was yours already"), "{told:?}");
    let seconds = lease(&node)["spec"]["leaseDurationSeconds"].as_i64().unwrap();
    assert!(seconds > 1700, "{seconds} seconds: {told:?}");
}

/// A lease without an end is looked at once more too before it is told.
#[test]
fn an_administrators_lease_that_was_released_meanwhile_is_not_told_as_acquired() {
    let [node] = nodes();
    let (proxy, gate) = slow_to_settle(&node, |_, _| Fault::None);
    let args = ["maint", "acquire", &node, "--holder", "jane", "--admin"];
    let mut acquiring = Plugin::new(&proxy.kubeconfig).start(&args);
    wait_for(
        "it is held",
        SOON,
        || gate.came() > 0 && holder(&node) == "kubeadm:jane",
        || acquiring.stderr(),
    );
    plugin().run(&["maint", "release", &node, "--holder", "jane", "--admin"]).expect(0);
    plugin().run(&["maint", "acquire", &node, "--holder", "john"]).expect(0);
    thread::sleep(Duration::from_secs(2));
    gate.open();
    assert_eq!(acquiring.wait(), 5, "{}", acquiring.stderr());
    assert_eq!((acquiring.stdout().as_str(), holder(&node).as_str()), ("", "john"));
}

/// Somebody waits, and takes the lease before the release is looked at again.
#[test]
fn a_release_whose_answer_is_lost_is_not_said_to_have_released_nothing() {
    let [node] = nodes();
    plugin().run(&["maint", "acquire", &node, "--holder", "jane"]).expect(0);
    let mut next = plugin().start(&["maint", "acquire", &node, "--holder", "john", "--wait"]);
    next.until_stderr("it waits", SOON, |text| text.contains("waiting for"));
    let (asked, taken) = (node.clone(), Gate::default());
    let looks = taken.clone();
    let patched = AtomicBool::new(false);
    let proxy = FaultProxy::start(shared(), move |method, path| {
        if is_patch_of(&asked, method, path) {
            patched.store(true, Ordering::SeqCst);
            return Fault::CutAfter;
        }
        if patched.load(Ordering::SeqCst) {
            looks.hold();
        }
        Fault::None
    });
    let mut release = Plugin::new(&proxy.kubeconfig).start(&["maint", "release", &node, "--holder", "jane"]);
    wait_for("it is taken", SOON, || holder(&node) == "john", || next.stderr());
    taken.open();
    assert_eq!(next.wait(), 0, "{}", next.stderr());
    assert_eq!(release.wait(), 5, "{}", release.stderr());
    let said = release.stderr();
    assert!(
        said.contains(&format!("no answer to the release of {node}: it was released or has a new holder")),
        "{said}"
    );
    assert_eq!(holder(&node), "john");
}

/// It was ours when the command began to wait for another, and anyone's when it was taken.
#[test]
fn what_ran_out_during_a_wait_is_not_said_to_have_been_renewed() {
    let [one, two] = nodes();
    plugin().run(&["maint", "acquire", &two, "--holder", "john"]).expect(0);
    plugin().run(&["maint", "acquire", &one, "--holder", "jane", "-d", "3s"]).expect(0);
    let mut acquiring = plugin().start(&["maint", "acquire", &one, &two, "--holder", "jane", "--wait"]);
    acquiring.until_stderr("it waits", SOON, |text| text.contains("waiting for"));
    // A duration, and the 3 seconds of the proposal.
    thread::sleep(Duration::from_secs(7));
    plugin().run(&["maint", "release", &two, "--holder", "john"]).expect(0);
    assert_eq!(acquiring.wait(), 0, "{}", acquiring.stderr());
    let told = acquiring.stdout();
    assert!(told.starts_with(&format!("{one} acquired again, your lease had expired")), "{told}");
}

/// stdout cannot be written: no one would know of the leases.
#[test]
fn what_cannot_be_told_is_not_kept() {
    for admin in [&[][..], &["--admin"]] {
        let [one, two] = nodes();
        for nodes in [&[one.as_str()][..], &[one.as_str(), two.as_str()]] {
            let run = Command::new(BINARY)
                .args(["maint", "acquire", "--holder", "jane"])
                .args(nodes)
                .args(admin)
                .env("KUBECONFIG", shared().kubeconfig(User::Admin, 0))
                .stdin(Stdio::null())
                .stdout(File::options().write(true).open("/dev/full").unwrap())
                .stderr(Stdio::piped())
                .output()
                .unwrap();
            assert_eq!(run.status.code(), Some(1), "{run:?}");
            for node in nodes {
                assert_eq!(holder(node), "", "{run:?}");
            }
        }
    }
}

/// A reader that goes away has what it wanted: all is done, and kept.
#[test]
fn a_reader_that_goes_away_changes_nothing() {
    let [one, two] = nodes();
    let shell = |script: &str| {
        let run = plugin().env("LEASE", BINARY).env("ONE", &one).env("TWO", &two);
        let mut run = run.start_by("bash", &["-c", &format!("set -o pipefail; {script}")]);
        (run.wait(), run.stderr())
    };
    let holders = || [holder(&one), holder(&two)];
    let acquire = "$LEASE maint acquire $ONE $TWO --holder jane | true";
    assert_eq!(shell(acquire), (0, String::new()));
    assert_eq!(holders(), ["jane", "jane"]);
    // One's own, again: those that are left as they are until all are had.
    assert_eq!(shell(acquire), (0, String::new()));
    assert_eq!(holders(), ["jane", "jane"]);
    write(&two, "john", 0);
    let (code, said) = shell("$LEASE maint renew $ONE $TWO --holder jane | true");
    assert!(code == 4 && said.contains("held by 'john'"), "{code} {said}");
    write(&two, "jane", 0);
    assert_eq!(shell("$LEASE maint release $ONE $TWO --holder jane | true").0, 0);
    assert_eq!(holders(), ["", ""]);

    // A dry run writes nothing, whether or not it can be told.
    write(&one, "john", 100);
    let before = lease(&one);
    let (code, said) = shell("$LEASE maint acquire $ONE --holder jane --dry-run=server >/dev/full");
    assert_eq!((code, lease(&one)), (1, before), "{said}");
}

/// A run puts back what it went on from, when it has to wait for another one again; and goes on from it anew.
#[test]
fn maint_run_goes_on_again_from_what_it_has_put_back() {
    let [one, two, three] = nodes();
    plugin().run(&["maint", "acquire", &two, "--holder", "jane"]).expect(0);
    plugin().run(&["maint", "acquire", &three, "--holder", "john"]).expect(0);
    let args = [
        "maint",
        "run",
        &one,
        &two,
        &three,
        "--holder",
        "jane",
        "-d",
        "9s",
        "--wait=30s",
        "--",
        "echo",
        "ran",
    ];
    let mut run = plugin().start(&args);
    run.until_stderr("it waits", SOON, |text| text.contains(&format!("waiting for {three}")));
    plugin().run(&["maint", "release", &one, "--force", "--confirm"]).expect(0);
    run.until_stderr("it waits again", SOON, |text| text.contains(&format!("waiting again from {one} on")));
    plugin().run(&["maint", "release", &three, "--holder", "john"]).expect(0);
    assert_eq!(run.wait(), 0, "{}", run.stderr());
    assert_eq!((run.stdout().as_str(), holder(&two).as_str()), ("ran\n", "jane"), "{}", run.stderr());
}

/// With permission to list nodes and not to get one, as `-l` needs it.
#[test]
fn who_may_only_list_nodes_acquires_and_waits() {
    let user = format!("lister-{}", random());
    for (kind, name, rule) in [
        ("clusterrole", format!("{user}-nodes"), ["--verb=list", "--resource=nodes"]),
        (
            "clusterrole",
            format!("{user}-leases"),
            ["--verb=get,list,watch,create,update,patch", "--resource=leases.coordination.k8s.io"],
        ),
    ] {
        shared().kubectl(&["create", kind, &name, rule[0], rule[1]]);
        let role = format!("--clusterrole={name}");
        shared().kubectl(&["create", "clusterrolebinding", &name, &role, &format!("--user={user}")]);
    }
    let lister = |args: &[&str]| plugin().start(&[args, &["--as", &user, "--holder", "jane"]].concat());
    let [one, two] = nodes();
    let label = format!("sharing={}", one.trim_start_matches("node-").trim_end_matches("-0"));
    // One that is waited for, and two that are free.
    shared().kubectl(&["label", "node", &two, "sharing-"]);
    plugin().run(&["maint", "acquire", &one, "--holder", "john"]).expect(0);
    let mut waiting = lister(&["maint", "acquire", "-l", &label, "--wait"]);
    waiting.until_stderr("it waits", SOON, |text| text.contains("waiting for"));
    plugin().run(&["maint", "release", &one, "--holder", "john"]).expect(0);
    assert_eq!(waiting.wait(), 0, "{}", waiting.stderr());
    shared().kubectl(&["label", "node", &two, &label]);
    let mut both = lister(&["maint", "acquire", "-l", &label, "--wait"]);
    assert_eq!(both.wait(), 0, "{}", both.stderr());
    assert_eq!([holder(&one), holder(&two)], ["jane", "jane"]);
}

#[test]
fn not_to_wait_is_one_attempt_and_ones_own_other_reason_is_told() {
    let [node] = nodes();
    let acquire = |more: &[&str]| plugin().run(&[&["maint", "acquire", &node][..], more].concat());
    acquire(&["--holder", "jane", "-r", "new disk", "--wait=0s"]).expect(0);
    acquire(&["--holder", "john", "--wait=0s"]).expect(124).says("held by 'jane'");
    acquire(&["--holder", "jane", "-r", "reboot", "--wait"]).expect(6).says("--yes replaces the reason");
    let hold = ["hold", &node, "-n", NAMESPACE, "--", "true"];
    plugin().run(&hold).expect(6).says(&format!("kubectl lease maint run {node} -- COMMAND"));
}
