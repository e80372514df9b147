//! What an election does next, said before and compared with what the real controller then does, among
//! components that behave as client-go's; and what keeps it from ending without a leader.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    candidates::{admin, candidate_object, field, items, json_of, named, namespace},
    harness::{
        ControlPlane,
        components::{Entrant, announce},
        faults::{Fault, FaultProxy},
        players::{Mode, Player, World},
    },
    plugin::{Plugin, wait_for},
    shared,
};

pub const SOON: Duration = Duration::from_secs(20);
/// More than a whole handover takes here.
pub const HANDOVER: Duration = Duration::from_secs(40);

/// One component after the other, a second apart: the first is the best.
pub fn line_up(world: &World, lease: &str, hosts: &[&str], mode: Mode) {
    for host in hosts {
        world.add(Player::new(host, lease, mode));
        world.catch_up();
        std::thread::sleep(Duration::from_millis(1100));
    }
}

pub fn until_leads(world: &World, lease: &str, host: &str, within: Duration) {
    let leads = || world.renewing(lease).is_some_and(|leader| leader == world.name(lease, host));
    wait_for(&format!("{host} leads {lease}"), within, leads, || format!("{:?}", world.lease(lease)));
}

pub fn explain(plugin: &Plugin, namespace: &str, lease: &str) -> Value {
    json_of(&plugin.run(&["candidates", "explain", lease, "-n", namespace, "-o", "json"]).expect(0))
}

fn wrongs(explained: &Value) -> String {
    let all = explained["wrong"].as_array().unwrap();
    let line = |wrong: &Value| format!("{} | {}\n", wrong["message"].as_str().unwrap(), wrong["hint"]);
    all.iter().map(line).collect::<Vec<_>>().concat()
}

/// Elections outside of kube-system are no failure of the cluster.
pub fn warned_by_doctor(plugin: &Plugin, namespace: &str, words: &str) {
    let report = json_of(&plugin.run(&["doctor", "-n", namespace, "-o", "json"]).expect(0));
    let all = report["items"].as_array().unwrap();
    let warned = |it: &Value| it["level"] == "warn" && it["message"].as_str().unwrap().contains(words);
    assert!(all.iter().any(|it| it["check"] == "elections" && warned(it)), "{words}: {report:#}");
}

/// A leader that was asked to step down does not renew. If it were the best again before another is elected,
/// and its process lived on, nobody would ever lead.
#[test]
fn a_priority_is_not_taken_back_in_the_middle_of_a_handover() {
    let plane = shared();
    let namespace = namespace(plane);
    let world = World::start(plane, &namespace);
    let plugin = admin(plane);
    let began = Instant::now();
    let leases = ["timed", "interrupted", "cleared", "left", "forced"];
    std::thread::scope(|scope| {
        for lease in leases {
            let world = &world;
            scope.spawn(move || {
                line_up(world, lease, &[&format!("a-{lease}"), &format!("b-{lease}")], Mode::Stays);
            });
        }
    });
    for lease in leases {
        until_leads(&world, lease, &format!("a-{lease}"), SOON);
    }
    let set = |lease: &str, more: &[&str]| {
        let host = format!("b-{lease}");
        let args = ["candidates", "set-priority", host.as_str(), "9", "-n", &namespace, "--yes"];
        [&args[..], more].concat().iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>()
    };
    let start = |args: Vec<String>| plugin.start(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let asked = |lease: &str| {
        let preferred = world.lease(lease).and_then(|lease| lease.spec.preferred_holder);
        preferred.is_some_and(|preferred| !preferred.is_empty())
    };

    let mut timed = start(set("timed", &["--for", "5m", "--wait", "1s"]));
    let mut interrupted = start(set("interrupted", &["--for", "5m"]));
    let mut left = start(set("left", &["--for", "5m"]));
    start(set("cleared", &[])).wait();
    start(set("forced", &[])).wait();
    wait_for("all are asked to step down", SOON, || leases.iter().all(|lease| asked(lease)), String::new);
    // Whoever knows better does not wait.
    plugin
        .run(&["candidates", "clear-priority", "b-forced", "-n", &namespace, "--yes", "--force"])
        .expect(0)
        .says("it may be left without a leader");
    assert!(asked("forced"));
    interrupted.signal("-INT");
    left.signal("-INT");
    let mut cleared =
        plugin.start(&["candidates", "clear-priority", "b-cleared", "-n", &namespace, "--yes", "--wait"]);
    left.until_stderr("it waits", SOON, |text| text.contains("the priority is cleared after the handover"));
    left.signal("-INT");
    assert_eq!(left.wait(), 130);
    let words = left.stderr();
    let name = world.name("left", "b-left");
    assert!(
        words.contains(&format!("'kubectl lease candidates clear-priority {name} -n {namespace}'")),
        "{words}"
    );

    for (running, code) in [(&mut timed, 124), (&mut interrupted, 130), (&mut cleared, 0)] {
        assert_eq!(running.wait(), code, "{}", running.stderr());
        let words = running.stderr();
        assert!(words.contains("after the handover"), "{words}");
        assert!(running.stdout().contains("priority cleared\n"), "{}", running.stdout());
    }
    // The handover was over first: then the versions decided again.
    for lease in ["timed", "interrupted", "cleared"] {
        until_leads(&world, lease, &format!("a-{lease}"), HANDOVER);
        let held = world.since(lease, began);
        let held: Vec<_> = held.iter().map(|(_, holder)| holder.split('_').next().unwrap()).collect();
        let (a, b) = (format!("a-{lease}"), format!("b-{lease}"));
        assert_eq!(held.iter().filter(|it| !it.is_empty()).collect::<Vec<_>>(), [&a, &b, &a], "{held:?}");
    }
    assert!(cleared.stdout().contains(&format!(" leads {namespace}/cleared")), "{}", cleared.stdout());
    until_leads(&world, "left", "b-left", HANDOVER);

    // Nor is the leader preferred that was just asked to step down.
    let mut back = start(set("left", &[]));
    assert_eq!(back.wait(), 0, "{}", back.stderr());
    // It is seen to the end for some seconds, in which the lead may have moved already.
    let mut clearing = plugin.start(&["candidates", "clear-priority", "b-left", "-n", &namespace, "--yes"]);
    wait_for("b is asked to step down", SOON, || asked("left"), || format!("{:?}", world.lease("left")));
    start(set("left", &[])).wait();
    assert_eq!(clearing.wait(), 0, "{}", clearing.stderr());
    let leads = || world.renewing("left").is_some();
    wait_for("there is a leader", HANDOVER, leads, || format!("{:?}", world.lease("left")));
}

/// Components that exit when they are asked to step down: there is nothing left to prefer when the handover is
/// over.
#[test]
fn a_leader_that_has_stepped_down_and_exited_gets_no_priority() {
    let plane = shared();
    let namespace = namespace(plane);
    let world = World::start(plane, &namespace);
    let plugin = admin(plane);
    line_up(&world, "exits", &["a", "b"], Mode::Restarts(Duration::from_secs(20)));
    until_leads(&world, "exits", "a", SOON);
    let old = world.name("exits", "a");
    let set = |host: &str, value: &str, more: &[&str]| {
        let args = ["candidates", "set-priority", host, value, "-n", &namespace, "--yes"];
        plugin.run(&[&args[..], more].concat())
    };
    set("b", "9", &[]).expect(0);
    let asked = || world.lease("exits").is_some_and(|lease| lease.spec.preferred_holder.is_some());
    wait_for("a is asked to step down", SOON, asked, || format!("{:?}", world.lease("exits")));
    // An interrupt while it waits, before anything is written, ends it at once.
    let args = ["candidates", "set-priority", &old, "20", "-n", &namespace, "--yes", "--wait"];
    let clear = ["candidates", "clear-priority", "b", "-n", &namespace, "--yes"];
    for (args, signal) in [(&args[..], "-INT"), (&args, "-TERM"), (&clear, "-INT")] {
        let mut waiting = plugin.start(args);
        waiting.until_stderr("it waits", SOON, |text| text.contains("after the handover"));
        let interrupted = Instant::now();
        waiting.signal(signal);
        assert_eq!(waiting.wait(), 130, "{}", waiting.stderr());
        assert!(interrupted.elapsed() < Duration::from_secs(2), "{}", waiting.stderr());
    }
    let set = set("a", "20", &["--wait"]).expect(3);
    assert!(set.stderr.contains("after the handover"), "{set:?}");
    assert!(set.stderr.contains(&format!("{old} has ended")), "{set:?}");
    assert!(set.stderr.contains(&format!("set-priority a 20 -n {namespace}'")), "{set:?}");
    assert_eq!(with_priority(&plugin, &namespace), [world.name("exits", "b")]);
}

/// Asks the leader to step down as the controller does when it has decided just before a write.
fn ask_to_step_down(plane: &ControlPlane, namespace: &str, lease: &str, preferred: &str) {
    let patch = json!({ "spec": { "preferredHolder": preferred } }).to_string();
    plane.kubectl(&["patch", "lease", lease, "-n", namespace, "--type=merge", "-p", &patch]);
}

/// The controller has pinged, and decides for b in the moment in which its priority is set: the leader is better.
#[test]
fn a_priority_that_is_set_in_the_middle_of_a_decision_leaves_a_leader() {
    let plane = shared();
    let namespace = namespace(plane);
    let world = World::start(plane, &namespace);
    let plugin = admin(plane);
    line_up(&world, "lowered", &["a", "b"], Mode::Stays);
    until_leads(&world, "lowered", "a", SOON);
    let (a, b) = (world.name("lowered", "a"), world.name("lowered", "b"));
    let set = |host: &str, value: &str| {
        let args = ["candidates", "set-priority", host, value, "-n", &namespace, "--yes"];
        plugin.start(&args)
    };
    assert_eq!(set("a", "5").wait(), 0);
    assert_eq!(set("b", "4").wait(), 0);
    let pinging = Pinging::start(plane, &namespace, &a);
    let mut lowered = set("b", "3");
    let is_lower = || items(&plugin, &["-n", &namespace]).iter().any(|it| it["priority"] == 3);
    wait_for("b has 3", SOON, is_lower, || lowered.stderr());
    ask_to_step_down(plane, &namespace, "lowered", &b);
    drop(pinging);
    assert_eq!(lowered.wait(), 0, "{}", lowered.stderr());
    let words = lowered.stderr();
    assert!(!words.contains(&format!("{b} was asked to step down")), "{words}");
    let is_asked = || world.lease("lowered").is_some_and(|lease| lease.spec.preferred_holder.is_some());
    let leads = || !is_asked() && world.renewing("lowered").is_some();
    wait_for("there is a leader", HANDOVER, leads, || format!("{words}\n{:?}", world.lease("lowered")));
}

/// Pings a candidate as the controller does before it decides.
fn ping(plane: &ControlPlane, namespace: &str, name: &str) {
    let ping = json!({ "spec": { "pingTime": format!("{:.6}", jiff::Timestamp::now()) } }).to_string();
    plane.kubectl(&["patch", "leasecandidate", name, "-n", namespace, "--type=merge", "-p", &ping]);
}

/// Pings one again and again, as the controller does in an election, however long a busy machine takes for what
/// is to happen meanwhile.
struct Pinging(Arc<AtomicBool>, Option<std::thread::JoinHandle<()>>);

impl Pinging {
    fn start(plane: &'static ControlPlane, namespace: &str, name: &str) -> Self {
        ping(plane, namespace, name);
        let ended = Arc::<AtomicBool>::default();
        let (given, namespace, name) = (Arc::clone(&ended), namespace.to_owned(), name.to_owned());
        let thread = std::thread::spawn(move || {
            while !given.load(Ordering::SeqCst) {
                ping(plane, &namespace, &name);
                std::thread::sleep(Duration::from_secs(1));
            }
        });
        Self(ended, Some(thread))
    }
}

impl Drop for Pinging {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
        self.1.take().map(std::thread::JoinHandle::join);
    }
}

/// A kube-apiserver that has just started refuses for a moment; a role that lacks the right does for good.
#[test]
fn an_election_that_may_not_be_repaired_is_no_success() {
    let plane = shared();
    let namespace = namespace(plane);
    let world = World::start(plane, &namespace);
    let plugin = admin(plane);
    let leases = ["moment", "forever"];
    std::thread::scope(|scope| {
        for lease in leases {
            let world = &world;
            scope.spawn(move || {
                line_up(world, lease, &[&format!("a-{lease}"), &format!("b-{lease}")], Mode::Stays);
            });
        }
    });
    for lease in leases {
        until_leads(&world, lease, &format!("a-{lease}"), SOON);
        for (host, value) in [("a", "9"), ("b", "3")] {
            let host = format!("{host}-{lease}");
            plugin.run(&["candidates", "set-priority", &host, value, "-n", &namespace, "--yes"]).expect(0);
        }
    }
    let first = std::sync::Mutex::new(None::<Instant>);
    let proxy = FaultProxy::start(plane, move |method, path| {
        let moment = || first.lock().unwrap().get_or_insert_with(Instant::now).elapsed().as_secs() < 3;
        let refused = method != "GET"
            && (path.contains("/leases/forever") || path.contains("/leases/moment") && moment());
        if refused { Fault::Refuse(403) } else { Fault::None }
    });
    let refused = Plugin::new(&proxy.kubeconfig);
    let mut clearing: Vec<_> = leases
        .iter()
        .map(|lease| {
            let (a, b) = (world.name(lease, &format!("a-{lease}")), world.name(lease, &format!("b-{lease}")));
            let pinging = Pinging::start(plane, &namespace, &a);
            let clearing = refused.start(&["candidates", "clear-priority", &b, "-n", &namespace, "--yes"]);
            clearing.until("it is cleared", SOON, |text| text.contains("priority cleared\n"));
            ask_to_step_down(plane, &namespace, lease, &b);
            drop(pinging);
            clearing
        })
        .collect();
    assert_eq!(clearing[0].wait(), 0, "{}", clearing[0].stderr());
    assert!(clearing[0].stderr().contains("got an empty holder"), "{}", clearing[0].stderr());
    until_leads(&world, "moment", "a-moment", SOON);
    assert_eq!(clearing[1].wait(), 7, "{}", clearing[1].stderr());
    let words = clearing[1].stderr();
    assert!(words.contains("candidates repair forever -n"), "{words}");
    assert_eq!(world.renewing("forever"), None);
}

/// As a lease is left when a priority is cleared with kubectl in the middle of a handover.
#[test]
fn a_stuck_election_is_recognised_and_repaired() {
    let plane = shared();
    let namespace = namespace(plane);
    let world = World::start(plane, &namespace);
    let plugin = admin(plane);
    line_up(&world, "stuck", &["a", "b"], Mode::Stays);
    until_leads(&world, "stuck", "a", SOON);
    let a = world.name("stuck", "a");
    let repair = |more: &[&str]| {
        plugin.run(&[&["candidates", "repair", "stuck", "-n", &namespace][..], more].concat())
    };
    let well = repair(&[]).expect(0);
    assert_eq!(well.stdout, format!("{namespace}/stuck: nothing to repair: {a} leads\n"));

    let b = world.name("stuck", "b");
    let patch = json!({ "spec": { "preferredHolder": b } }).to_string();
    plane.kubectl(&["patch", "lease", "stuck", "-n", &namespace, "--type=merge", "-p", &patch]);
    let explained = explain(&plugin, &namespace, "stuck");
    assert_eq!((&explained["forecast"], &explained["dependsOn"]), (&json!("open"), &json!("holder-ends")));
    let words = plugin.run(&["candidates", "explain", "stuck", "-n", &namespace]).expect(0).stdout;
    assert!(
        words.contains(&format!(
            "{b} is elected when the process of {a} has ended, and no candidate before that"
        )),
        "{words}"
    );
    let stuck = || explain(&plugin, &namespace, "stuck")["forecast"] == "stuck";
    wait_for("it is called stuck", HANDOVER, stuck, || explain(&plugin, &namespace, "stuck").to_string());
    assert_eq!(named(&items(&plugin, &["-n", &namespace]), "next"), [""; 0], "nobody is about to be elected");
    let command = format!("'kubectl lease candidates repair stuck -n {namespace}'");
    let listed = plugin.run(&["candidates", "-n", &namespace]).expect(0);
    for words in [&listed.stderr, &plugin.run(&["doctor", "-n", &namespace]).expect(0).stderr] {
        assert!(words.contains(&command), "{words}");
    }
    // As it was typed, so that it is not typed for another cluster.
    let flag = format!("--kubeconfig={}", plane.kubeconfig(crate::harness::User::Admin, 0).display());
    let command = format!("'kubectl lease {flag} candidates repair stuck -n {namespace}'");
    for args in [&["candidates"][..], &["doctor"], &["candidates", "explain", "stuck"]] {
        let told = plugin.run(&[args, &["-n", &namespace, &flag]].concat()).expect(0);
        assert!(told.stderr.contains(&command) || told.stdout.contains(&command), "{told:?}");
    }
    assert!(
        plugin
            .run(&["candidates", "explain", "stuck", "-n", &namespace, "-o", "json", &flag])
            .expect(0)
            .stdout
            .contains(&command)
    );
    let told = plugin.run(&["doctor", "-n", &namespace, "-o", "json"]).expect(0).stdout;
    assert!(told.contains(&format!("{namespace}/stuck: the election is stuck")), "{told}");

    let version = || field(plane, &namespace, "lease", "stuck", "{.metadata.resourceVersion}");
    let before = version();
    repair(&[]).expect(6).says("the election is stuck").says("there is no terminal to ask on");
    for dry in ["--dry-run", "--dry-run=server"] {
        assert!(repair(&[dry]).expect(0).stdout.contains("repaired ("), "{dry}");
    }
    let mut asked = plugin.start_on_terminal(&["candidates", "repair", "stuck", "-n", &namespace], 24, 120);
    asked.until("the question", SOON, |screen| screen.contains("Go on?"));
    asked.types("n\r");
    assert_eq!(asked.wait(), 6);
    assert_eq!(version(), before, "none of this wrote anything");
    assert!(stuck(), "and it does not pass");
    let repaired = repair(&["--confirm", "--wait"]).expect(0).says(&format!("{a} is then elected"));
    assert_eq!(repaired.stdout, format!("{namespace}/stuck repaired\n{a} leads {namespace}/stuck\n"));
    until_leads(&world, "stuck", "a", SOON);
    assert!(repair(&["-y"]).expect(0).stdout.contains("nothing to repair"));
    plugin.run(&["candidates", "repair", "nothing-like-it", "-n", &namespace]).expect(3);
}

/// Components are migrated one by one: the leader is still without.
#[test]
fn a_leader_without_coordinated_election_is_an_obstacle_and_not_about_to_go() {
    let plane = shared();
    let namespace = namespace(plane);
    let world = World::start(plane, &namespace);
    let plugin = admin(plane);
    let old = Player::new("old", "migrated", Mode::Uncoordinated);
    let now = format!("{:.6}", jiff::Timestamp::now());
    plane.apply(&json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "migrated", "namespace": namespace },
        "spec": { "holderIdentity": old.name, "leaseDurationSeconds": 6, "acquireTime": now, "renewTime": now },
    }));
    let old = world.add(old);
    line_up(&world, "migrated", &["a", "b"], Mode::Exits);
    // The controller wants it otherwise, and the leader writes over that.
    let has_strategy = || world.lease("migrated").is_some_and(|lease| lease.spec.strategy.is_some());
    wait_for("the controller is at it", SOON, has_strategy, || format!("{:?}", world.lease("migrated")));
    for _ in 0..5 {
        let explained = explain(&plugin, &namespace, "migrated");
        assert_eq!((&explained["forecast"], &explained["moving"]), (&json!("stays"), &json!(false)));
        assert_eq!(explained["next"], json!([world.name("migrated", "a")]));
        assert!(wrongs(&explained).contains("leads without coordinated election"), "{explained:#}");
        std::thread::sleep(Duration::from_millis(700));
    }
    let words = plugin.run(&["candidates", "explain", "migrated", "-n", &namespace]).expect(0).stdout;
    assert!(words.contains("is not asked to step down"), "{words}");
    let set = ["candidates", "set-priority", "b", "9", "-n", &namespace, "--yes", "--wait", "8s"];
    plugin.run(&set).expect(6).says(&format!("{old} leads without coordinated election")).says("--force");
    let forced = plugin.run(&[&set[..], &["--force"]].concat()).expect(0);
    assert!(forced.stderr.contains(&format!("{old} keeps leading {namespace}/migrated.")), "{forced:?}");
    assert!(forced.stderr.lines().count() < 8, "{forced:?}");
    assert_eq!(world.leader("migrated"), Some(old.clone()));
    // It goes, and who was called next leads.
    let next = explain(&plugin, &namespace, "migrated")["next"].clone();
    assert_eq!(next, json!([world.name("migrated", "b")]));
    world.kill("migrated", "old");
    until_leads(&world, "migrated", "b", HANDOVER);
}

/// The process that stepped down is back as the youngest.
#[test]
fn where_leadership_moves_when_a_priority_is_cleared_is_predicted_by_the_rule() {
    let plane = shared();
    let namespace = namespace(plane);
    let world = World::start(plane, &namespace);
    let plugin = admin(plane);
    let mode = Mode::Restarts(Duration::from_secs(1));
    for (lease, emulation) in [("same", "1.37.0"), ("older", "1.36.0")] {
        world.add(Player::new(&format!("a-{lease}"), lease, mode).versions("1.37.1", emulation));
    }
    std::thread::sleep(Duration::from_millis(2500));
    for lease in ["same", "older"] {
        world.add(Player::new(&format!("b-{lease}"), lease, mode));
        until_leads(&world, lease, &format!("a-{lease}"), SOON);
    }
    world.catch_up();
    std::thread::scope(|scope| {
        for (lease, words) in
            [("same", "keeps leading"), ("older", "leadership moves to a-older: a second failover")]
        {
            let (plugin, world, namespace) = (&plugin, &world, &namespace);
            scope.spawn(move || {
                // Until there is a leader again may take 15 seconds, after the time to step down.
                let host = format!("b-{lease}");
                let args = [
                    "candidates",
                    "set-priority",
                    &host,
                    "9",
                    "-n",
                    namespace,
                    "--yes",
                    "--wait",
                    "--for",
                    "25s",
                ];
                let set = plugin.run(&args).expect(0);
                assert!(set.stderr.contains("When that is cleared, "), "{set:?}");
                assert!(set.stderr.contains(words), "{set:?}");
                assert!(set.stdout.contains(&format!(" leads {namespace}/{lease}\n")), "{set:?}");
                let began = Instant::now();
                if lease == "older" {
                    until_leads(world, lease, "a-older", HANDOVER);
                } else {
                    std::thread::sleep(Duration::from_secs(12));
                    assert_eq!(world.since(lease, began).len(), 1, "{:?}", world.since(lease, began));
                    until_leads(world, lease, "b-same", SOON);
                }
            });
        }
    });
}

/// Names of candidates of a lease that were created in the same second, announced until there are such.
fn created_at_once(
    plane: &ControlPlane,
    namespace: &str,
    lease: &str,
    count: usize,
) -> (String, Vec<String>) {
    for round in 0..15 {
        let lease = format!("{lease}-{round}");
        let names: Vec<_> = (0..count).map(|n| format!("{lease}{n}_1")).collect();
        let entrants: Vec<_> = names
            .iter()
            .map(|name| Entrant { alive: false, renewed: 0, ..Entrant::new(name, &lease) })
            .collect();
        announce(plane, namespace, &entrants);
        let created: Vec<_> = names
            .iter()
            .map(|name| field(plane, namespace, "leasecandidate", name, "{.metadata.creationTimestamp}"))
            .collect();
        if created.iter().all(|time| *time == created[0]) {
            return (lease, names);
        }
    }
    panic!("never in one second");
}

#[test]
fn those_equal_to_the_leader_follow_it_and_only_several_are_a_tie() {
    let plane = shared();
    let namespace = namespace(plane);
    let _components = crate::harness::components::Components::answer(plane, &namespace);
    let plugin = admin(plane);
    let held = |lease: &str, holder: &str| {
        let patch = json!({ "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": 3600, "preferredHolder": null,
            "renewTime": format!("{:.6}", jiff::Timestamp::now()),
        } });
        let there = || plane.kubectl(&["get", "leases", "-n", &namespace, "-o", "name"]);
        wait_for("the lease", SOON, || there().contains(lease), there);
        plane.kubectl(&["patch", "lease", lease, "-n", &namespace, "--type=merge", "-p", &patch.to_string()]);
    };
    let answer = |names: &[String]| {
        for name in names {
            plane.kubectl(&[
                "label",
                "leasecandidate",
                "--overwrite",
                "-n",
                &namespace,
                name,
                "kubectl-lease.dev/alive=true",
            ]);
        }
    };
    for count in [2, 3] {
        let (lease, names) = created_at_once(plane, &namespace, &format!("equal{count}"), count);
        answer(&names);
        held(&lease, &names[0]);
        let rows = items(&plugin, &[&lease, "-n", &namespace]);
        assert_eq!(named(&rows, "leader"), [names[0].clone()], "{rows:#?}");
        assert_eq!(named(&rows, "next"), names[1..], "{rows:#?}");
        assert_eq!(named(&rows, "tied").len(), if count == 2 { 0 } else { 2 }, "{rows:#?}");
        // The controller may have asked the leader to step down meanwhile: then one of the others is preferred.
        let explained = explain(&plugin, &namespace, &lease);
        let preferable = if explained["preferredHolder"].is_null() { &names[..1] } else { &names[1..] };
        let told = wrongs(&explained);
        let set = |name: &String| {
            format!("'kubectl lease candidates set-priority {name} 1 -n {namespace}' breaks the tie")
        };
        assert!(preferable.iter().any(|name| told.contains(&set(name))), "{explained:#}");
        warned_by_doctor(&plugin, &namespace, &format!("{} tie (same priority", names.join(" and ")));
    }
    // A priority is all that holds the lead here: without it the lead may move.
    let (lease, names) = created_at_once(plane, &namespace, "pinned", 2);
    answer(&names);
    held(&lease, &names[0]);
    plugin
        .run(&["candidates", "set-priority", &names[0], "3", "-n", &namespace, "--yes", "--force"])
        .expect(0);
    held(&lease, &names[0]);
    // By force: otherwise it is waited for a handover that takes as long as this lease lasts.
    let cleared = plugin
        .run(&["candidates", "clear-priority", &names[0], "-n", &namespace, "--yes", "--force", "--wait"])
        .expect(0);
    let may = format!("may move from {} to {} at any time", names[0], names[1]);
    assert!(cleared.stderr.contains(&may) && !cleared.stderr.contains("does not move"), "{cleared:?}");
}

#[test]
fn candidates_that_were_left_behind_are_named_and_pruned() {
    let plane = shared();
    let namespace = namespace(plane);
    let world = World::start(plane, &namespace);
    let plugin = admin(plane);
    let dead = |name: &str, lease: &str, priority: Option<i32>, renewed: i64, pinged: Option<i64>| Entrant {
        alive: false,
        renewed,
        pinged,
        priority,
        ..Entrant::new(name, lease)
    };
    // Left behind by a restart, with a priority; and two more, better than the leader. Of another lease one
    // that is late, and one whose time an election is forced after.
    announce(
        plane,
        &namespace,
        &[
            dead("cp-1_old", "storm", Some(7), 100, Some(60)),
            dead("cp-8_old", "storm", None, 100, Some(60)),
            dead("cp-9_old", "calm", None, 1000, Some(900)),
        ],
    );
    std::thread::sleep(Duration::from_millis(1100));
    line_up(&world, "storm", &["cp-1", "cp-2"], Mode::Exits);
    world.add(Player::new("cp-1", "calm", Mode::Exits));
    until_leads(&world, "storm", "cp-1", SOON);
    until_leads(&world, "calm", "cp-1", SOON);
    let leader = world.name("storm", "cp-1");

    let explained = explain(&plugin, &namespace, "storm");
    assert_eq!(explained["forecast"], "stays");
    let told = wrongs(&explained);
    assert!(
        told.contains("cp-1_old and cp-8_old do not acknowledge pings: the controller pings all"),
        "{told}"
    );
    assert!(
        told.contains("cp-1_old does not acknowledge pings any more, and still has a priority"),
        "{told}"
    );
    assert!(told.contains(&format!("candidates prune storm -n {namespace}'")), "{told}");
    for words in [
        "storm: cp-1_old and cp-8_old do not acknowledge pings: the controller pings all",
        "storm: cp-1_old does not acknowledge pings any more, and still has a priority",
        "calm: cp-9_old does not acknowledge pings: the controller pings all",
    ] {
        warned_by_doctor(&plugin, &namespace, words);
    }
    let told = wrongs(&explain(&plugin, &namespace, "calm"));
    assert!(told.contains("cp-9_old does not acknowledge pings: the controller pings all"), "{told}");
    let pinged = || field(plane, &namespace, "leasecandidate", &leader, "{.spec.pingTime}");
    let first = pinged();
    wait_for("the controller pings again", SOON, || pinged() != first, pinged);

    // The priority that a restart left behind is that of the host.
    let clear = ["candidates", "clear-priority", "cp-1", "-n", &namespace, "--yes"];
    let cleared = plugin.run(&clear).expect(0);
    assert_eq!(cleared.stdout, "cp-1_old priority cleared\n");
    assert_eq!(candidate_object(plane, &namespace, "cp-1_old")["spec"]["emulationVersion"], "1.37.0");

    let prune = |more: &[&str]| plugin.run(&[&["candidates", "prune", "-n", &namespace][..], more].concat());
    let left = || -> Vec<String> {
        let all = plane.kubectl(&["get", "leasecandidates", "-n", &namespace, "-o", "name"]);
        all.lines()
            .map(|line| line.rsplit('/').next().unwrap().to_owned())
            .filter(|name| name.ends_with("old"))
            .collect()
    };
    let all = ["cp-1_old", "cp-8_old", "cp-9_old"];
    prune(&[]).expect(6).says("cp-1_old for ").says(&format!("{leader} of the same host came after it"));
    for dry in ["--dry-run", "--dry-run=server"] {
        let dry = prune(&[dry]).expect(0);
        assert_eq!(dry.stdout.lines().count(), 3, "{dry:?}");
    }
    prune(&[&leader, "--yes"]).expect(6).says("it leads");
    prune(&["nothing-like-it", "--yes"]).expect(3);
    let living = world.name("storm", "cp-2");
    prune(&[&living, "--yes"]).expect(6).says("it renews");
    assert_eq!(left(), all);
    // Its deletion leaves the lead where it is; that of one whose strategy keeps a better one out would not.
    let one = prune(&["cp-8_old", "--yes"]).expect(0);
    assert!(!one.stderr.contains("Leadership of"), "{one:?}");
    assert_eq!(one.stdout, "leasecandidate.coordination.k8s.io \"cp-8_old\" deleted\n");
    prune(&["calm", "--yes"]).expect(0);
    assert_eq!(left(), ["cp-1_old"]);
    prune(&["-y"]).expect(0);
    assert_eq!(left(), [""; 0]);
    prune(&["--confirm"]).expect(0).says("no candidate was left behind");
    assert!(world.runs(&leader) && world.renewing("storm") == Some(leader.clone()), "the lead stayed");
    assert_eq!(wrongs(&explain(&plugin, &namespace, "storm")), "");
}

/// A dead candidate with another strategy keeps the leader only until an election is forced.
#[test]
fn from_a_quarter_of_an_hour_on_an_election_is_forced() {
    let plane = shared();
    let namespace = namespace(plane);
    let world = World::start(plane, &namespace);
    let plugin = admin(plane);
    let dead = |lease: &str, renewed| Entrant {
        alive: false,
        renewed,
        pinged: Some(renewed - 10),
        strategy: "example.com/other",
        binary: "1.38.0",
        ..Entrant::new(&format!("dead-{lease}_1"), lease)
    };
    for lease in ["blocked", "forced"] {
        world.add(Player::new("a", lease, Mode::Exits));
    }
    until_leads(&world, "blocked", "a", SOON);
    until_leads(&world, "forced", "a", SOON);
    announce(plane, &namespace, &[dead("blocked", 300), dead("forced", 905)]);
    for lease in ["blocked", "forced"] {
        world.add(Player::new("b", lease, Mode::Exits).versions("1.37.1", "1.36.0"));
    }
    world.catch_up();
    let blocked = explain(&plugin, &namespace, "blocked");
    assert_eq!(blocked["forecast"], "stays", "{blocked:#}");
    assert!(
        wrongs(&blocked).contains("until the controller forces an election, 15 minutes after"),
        "{blocked:#}"
    );
    let forced = explain(&plugin, &namespace, "forced");
    assert!(!wrongs(&forced).contains("forces an election"), "{forced:#}");
    until_leads(&world, "forced", "b", HANDOVER);
    until_leads(&world, "blocked", "a", SOON);
}

#[test]
fn a_priority_that_no_version_can_stand_for_is_refused_before_it_is_tried() {
    let plane = shared();
    let namespace = namespace(plane);
    let _components = crate::harness::components::Components::answer(plane, &namespace);
    let plugin = admin(plane);
    let mut early = Entrant::new("early_1", "early");
    (early.binary, early.emulation) = ("0.0.5", "0.0.5");
    announce(plane, &namespace, &[early, Entrant::new("late_2", "early")]);
    let there = || plane.kubectl(&["get", "leases", "-n", &namespace, "-o", "name"]);
    wait_for("the lease", SOON, || there().contains("early"), there);
    let set = |host: &str, more: &[&str]| {
        plugin
            .run(&[&["candidates", "set-priority", host, "9", "-n", &namespace, "--yes"][..], more].concat())
    };
    set("early", &["--force"]).expect(6).says("the binary version of early_1 is 0.0.5");
    set("late", &[]).expect(6).says("the emulation version of early_1 is so low").says("--force");
    let words = plugin.run(&["candidates", "explain", "early", "-n", &namespace]).expect(0).stdout;
    assert!(
        words.contains("To change it: not by a priority, since early_1 comes before every pin"),
        "{words}"
    );
}

/// A host of the control plane has a candidate of every component.
#[test]
fn all_components_of_a_host_are_moved_as_one_and_a_lease_narrows_it() {
    let plane = shared();
    let namespace = namespace(plane);
    let world = World::start(plane, &namespace);
    let plugin = admin(plane);
    for lease in ["manager", "scheduler"] {
        world.add(Player::new("cp-1", lease, Mode::Exits));
    }
    std::thread::sleep(Duration::from_millis(2500));
    for lease in ["manager", "scheduler"] {
        world.add(Player::new("cp-2", lease, Mode::Exits));
        until_leads(&world, lease, "cp-1", SOON);
    }
    world.catch_up();
    let run = |args: &[&str]| plugin.run(&[&["candidates"][..], args, &["-n", &namespace]].concat());
    let pinned = || -> Vec<Value> {
        let all = items(&plugin, &["-n", &namespace]);
        all.iter().filter(|item| item["priority"] == 7).map(|item| item["leaseName"].clone()).collect()
    };
    run(&["set-priority", "cp-2", "7"]).expect(6);
    assert_eq!(pinned(), [""; 0]);
    run(&["set-priority", "cp-2", "7", "--lease", "scheduler", "--yes"]).expect(0);
    assert_eq!(pinned(), ["scheduler"]);
    until_leads(&world, "scheduler", "cp-2", HANDOVER);
    run(&["clear-priority", "cp-2", "--yes"]).expect(0);

    let mut timed = plugin.start(&[
        "candidates",
        "set-priority",
        "cp-2",
        "7",
        "--for",
        "5m",
        "--wait",
        "--yes",
        "-n",
        &namespace,
    ]);
    timed.until_stderr("it is kept", HANDOVER, |text| text.contains("have priority 7, Ctrl-C clears it"));
    assert_eq!(pinned(), ["manager", "scheduler"]);
    let told = timed.stderr();
    for lease in ["manager", "scheduler"] {
        assert!(told.contains(&format!("{} gets priority 7 for 5m.", world.name(lease, "cp-2"))), "{told}");
        until_leads(&world, lease, "cp-2", SOON);
    }
    timed.signal("-INT");
    assert_eq!(timed.wait(), 130);
    assert_eq!(pinned(), [""; 0]);
    run(&["set-priority", "cp-2", "7", "--yes"]).expect(0);
    assert_eq!(run(&["clear-priority", "cp-2", "--yes"]).expect(0).stdout.lines().count(), 2);
    assert_eq!(pinned(), [""; 0]);
}

/// Two candidates of one host whose leases are not renewed: it takes some seconds to see that clearing a
/// priority has left no leader behind.
fn unrenewed_components_of(plane: &ControlPlane, namespace: &str, host: &str) {
    let entrants = ["manager", "scheduler"].map(|lease| Entrant::new(&format!("{host}_{lease}"), lease));
    announce(plane, namespace, &entrants);
    let there = || plane.kubectl(&["get", "leases", "-n", namespace, "-o", "name"]);
    let both = || ["manager", "scheduler"].iter().all(|lease| there().contains(lease));
    wait_for("both leases", SOON, both, there);
}

/// The candidates of a namespace that have a priority.
fn with_priority(plugin: &Plugin, namespace: &str) -> Vec<String> {
    let all = items(plugin, &["-n", namespace]);
    let pinned = all.iter().filter(|item| !item["priority"].is_null());
    pinned.map(|item| item["candidate"].as_str().unwrap().to_owned()).collect()
}

/// Interrupted a second time while the first is seen to, the plugin still clears the other one, or says that it
/// stays.
#[test]
fn a_second_interrupt_leaves_no_priority_of_another_component_behind_silently() {
    let plane = shared();
    let namespace = namespace(plane);
    let _components = crate::harness::components::Components::answer(plane, &namespace);
    let plugin = admin(plane);
    unrenewed_components_of(plane, &namespace, "cp-2");
    let set =
        ["candidates", "set-priority", "cp-2", "7", "--for", "5m", "--yes", "--force", "-n", &namespace];
    let mut timed = plugin.start(&set);
    timed.until_stderr("both are kept", SOON, |text| text.contains("have priority 7, Ctrl-C clears it"));
    assert_eq!(with_priority(&plugin, &namespace).len(), 2);
    timed.signal("-INT");
    timed.until("the first is cleared", SOON, |text| text.contains("priority cleared\n"));
    timed.signal("-INT");
    assert_eq!(timed.wait(), 130, "{}", timed.stderr());
    let told = timed.stderr();
    for left in with_priority(&plugin, &namespace) {
        assert!(told.contains(&format!("{left} keeps its priority")), "{left} has one: {told}");
    }
}

#[test]
fn where_nothing_reads_the_output_the_priorities_of_all_components_are_cleared() {
    let plane = shared();
    let namespace = namespace(plane);
    let _components = crate::harness::components::Components::answer(plane, &namespace);
    let plugin = admin(plane);
    unrenewed_components_of(plane, &namespace, "cp-2");
    let piped = |lines: &str, args: &[&str]| {
        let script = format!("set -o pipefail; \"$@\" | head -{lines}");
        let shell = ["-c", &script, "bash", crate::plugin::BINARY, "candidates"];
        let mut piped = plugin.start_by("bash", &[&shell[..], args, &["--yes", "-n", &namespace]].concat());
        assert_eq!(piped.wait(), 0, "{}", piped.stderr());
    };
    piped("2", &["set-priority", "cp-2", "7", "--for", "3s", "--force"]);
    assert_eq!(with_priority(&plugin, &namespace), [""; 0]);
    // Nor does it end what was begun for several.
    piped("0", &["set-priority", "cp-2", "7", "--force"]);
    assert_eq!(with_priority(&plugin, &namespace).len(), 2);
    piped("0", &["clear-priority", "cp-2"]);
    assert_eq!(with_priority(&plugin, &namespace), [""; 0]);
}

/// A component that gives up its lease when it ends is followed before its candidate is pinged again: nothing
/// but its successor on the same host tells that it is gone.
#[test]
fn a_candidate_whose_host_has_a_later_one_is_not_called_next() {
    let plane = shared();
    let namespace = namespace(plane);
    let world = World::start(plane, &namespace);
    let plugin = admin(plane);
    world.add(Player::new("cp-2", "restarted", Mode::Exits).versions("1.37.1", "1.36.0"));
    until_leads(&world, "restarted", "cp-2", SOON);
    // The leader is better, so neither is pinged.
    announce(
        plane,
        &namespace,
        &[Entrant { alive: false, renewed: 8, ..Entrant::new("cp-1_old", "restarted") }],
    );
    std::thread::sleep(Duration::from_millis(1100));
    world.add(Player::new("cp-1", "restarted", Mode::Exits));
    world.catch_up();
    let back = world.name("restarted", "cp-1");
    let there = || explain(&plugin, &namespace, "restarted")["candidates"].as_array().unwrap().len() == 3;
    wait_for("all three", SOON, there, String::new);

    let explained = explain(&plugin, &namespace, "restarted");
    assert_eq!((&explained["forecast"], &explained["next"]), (&json!("stays"), &json!([back])));
    let words = plugin.run(&["candidates", "explain", "restarted", "-n", &namespace]).expect(0).stdout;
    assert!(words.contains("cp-1_old: a later candidate of its host"), "{words}");
    assert!(words.contains(&format!("set-priority {back} 1")), "{words}");
    assert_eq!(named(&items(&plugin, &["-n", &namespace]), "next"), std::slice::from_ref(&back));
    // Nor is it what a host stands for.
    let set = ["candidates", "set-priority", "cp-1", "3", "-n", &namespace, "--yes", "--dry-run=client"];
    assert!(plugin.run(&set).expect(0).stdout.starts_with(&format!("{back} priority set to 3")));
    world.kill("restarted", "cp-2");
    until_leads(&world, "restarted", "cp-1", HANDOVER);
}

/// client-go does not renew while there is any `preferredHolder`.
#[test]
fn a_leader_that_is_asked_to_step_down_for_itself_does_not_stay() {
    let plane = shared();
    let namespace = namespace(plane);
    let world = World::start(plane, &namespace);
    let plugin = admin(plane);
    line_up(&world, "itself", &["a", "b"], Mode::Exits);
    until_leads(&world, "itself", "a", SOON);
    let (a, b) = (world.name("itself", "a"), world.name("itself", "b"));
    let patch = json!({ "spec": { "preferredHolder": a } }).to_string();
    plane.kubectl(&["patch", "lease", "itself", "-n", &namespace, "--type=merge", "-p", &patch]);
    let explained = explain(&plugin, &namespace, "itself");
    assert_eq!((&explained["forecast"], &explained["dependsOn"]), (&json!("open"), &json!("holder-ends")));
    assert_eq!(explained["next"], json!([b]));
    until_leads(&world, "itself", "b", HANDOVER);
}
