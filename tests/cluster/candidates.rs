//! Coordinated elections on real control planes: the controller in the kube-apiserver elects, and
//! what we said before is compared with what it does.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    REAL, TEST_LABEL,
    elections::HANDOVER,
    harness::{
        ControlPlane, Shape, User,
        components::{Components, Entrant, announce},
        faults::{Fault, FaultProxy},
        players::{Mode, Player, World},
        random,
    },
    identity_lease,
    plugin::{Outcome, Plugin, wait_for},
    shared,
};

const SOON: Duration = Duration::from_secs(15);
const MANAGER: &str = "kube-controller-manager";

pub fn admin(plane: &ControlPlane) -> Plugin {
    Plugin::new(plane.kubeconfig(User::Admin, 0))
}

pub fn json_of(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap()
}

pub fn items(plugin: &Plugin, args: &[&str]) -> Vec<Value> {
    let args = [&["candidates", "-o", "json"], args].concat();
    json_of(&plugin.run(&args).expect(0))["items"].as_array().unwrap().clone()
}

pub fn named(items: &[Value], flag: &str) -> Vec<String> {
    let marked = items.iter().filter(|item| item[flag] == true);
    marked.map(|item| item["candidate"].as_str().unwrap().to_owned()).collect()
}

/// A candidate's name as a watch tells it.
fn short(name: &str) -> String {
    let (host, rest) = name.rsplit_once('_').unwrap();
    format!("{host}_{}", &rest[..8])
}

/// A namespace of a test's own.
pub fn namespace(plane: &ControlPlane) -> String {
    let namespace = format!("election-{}", random());
    plane.kubectl(&["create", "namespace", &namespace]);
    namespace
}

pub fn field(plane: &ControlPlane, namespace: &str, what: &str, name: &str, path: &str) -> String {
    plane.kubectl(&["get", what, name, "-n", namespace, "-o", &format!("jsonpath={path}")])
}

fn holder(plane: &ControlPlane, namespace: &str, lease: &str) -> String {
    field(plane, namespace, "lease", lease, "{.spec.holderIdentity}")
}

/// A candidate as an object, without what every write changes.
pub fn candidate_object(plane: &ControlPlane, namespace: &str, name: &str) -> Value {
    let text = plane.kubectl(&["get", "leasecandidate", name, "-n", namespace, "-o", "json"]);
    let mut object: Value = serde_json::from_str(&text).unwrap();
    object["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    for time in ["renewTime", "pingTime"] {
        object["spec"].as_object_mut().unwrap().remove(time);
    }
    object
}

/// The life of one component: three real kube-controller-managers.
#[test]
fn leadership_of_the_real_controller_manager_moves_where_it_was_forecast_to_move() {
    let mut plane = ControlPlane::start(&Shape { apiservers: 2, managers: 3, ..Shape::default() });
    let plugin = admin(&plane);
    let leader = || holder(&plane, "kube-system", MANAGER);
    wait_for(
        "three candidates and a leader",
        SOON * 2,
        || {
            let all = items(&plugin, &[]);
            all.len() == 3 && named(&all, "leader").len() == 1
        },
        String::new,
    );

    let all = items(&plugin, &[MANAGER]);
    assert_eq!(named(&all, "leader"), [leader()]);
    let next = named(&all, "next");
    assert_eq!(next.len(), 1, "started a second apart: {all:#?}");
    assert_eq!(all[0]["leaseCandidate"]["kind"], "LeaseCandidate");
    assert_eq!(all[0]["lease"]["metadata"]["name"], MANAGER);
    let words = plugin.run(&["candidates", "explain", MANAGER]).expect(0).stdout;
    assert!(words.contains(&format!("{} leads: renewed", leader())), "{words}");
    assert!(words.contains("The age of the candidates decides"), "{words}");
    assert!(words.contains(&format!("If the leader ends, {} leads next.", next[0])), "{words}");

    // The leader dies, and who was called next is elected.
    let watching = plugin.start(&["candidates", "-w"]);
    watching.until("the table", SOON, |text| text.contains("leader"));
    let first = leader();
    manager_of(&mut plane, &first).kill();
    let leader = || holder(&plane, "kube-system", MANAGER);
    watching.until("the election", Duration::from_secs(40), |text| {
        text.contains(&format!("{}   leads   ", short(&next[0])))
    });
    assert_eq!(leader(), next[0]);
    let told = watching.stdout();
    let line = |words: &str| {
        told.lines()
            .position(|line| line.contains(words))
            .unwrap_or_else(|| panic!("no '{words}' in\n{told}"))
    };
    let leads = line(&format!("{}   leads   there was no leader", short(&next[0])));
    assert!(line(&format!("{}   lost   its lease expired", short(&first))) < leads, "{told}");
    // The controller may ask the living only when the dead one's time is over, and elects within
    // milliseconds of the answers: the answer and the lead are then told in one line.
    assert!(line("acknowledged the ping in") <= leads, "{told}");

    // The third is preferred, and the lead moves to it while all are well.
    let all = items(&plugin, &[]);
    let third = named(&all, "next").first().cloned().unwrap();
    assert_ne!(third, first, "a candidate that does not answer is not counted on");
    let before = candidate_object(&plane, "kube-system", &third);
    let began = Instant::now();
    let set = plugin.run(&["candidates", "set-priority", &third, "100", "--yes", "--wait"]).expect(0);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert!(
        set.stdout.contains(&format!("{third} priority set to 100 (pinned by its emulation version)")),
        "{set:?}"
    );
    assert!(set.stdout.ends_with(&format!("{third} leads kube-system/{MANAGER}\n")), "{set:?}");
    assert!(set.stderr.contains(&format!("moves from {} to {third}", next[0])), "{set:?}");
    assert_eq!(leader(), third);
    let renewed = || field(&plane, "kube-system", "lease", MANAGER, "{.spec.renewTime}");
    let then = renewed();
    wait_for("it renews", SOON, || renewed() != then, String::new);
    watching
        .until("the handover is told", SOON, |text| text.contains(&format!("{}   leads   ", short(&third))));
    let asked = format!("{}   preferred   {} is asked to step down", short(&third), short(&next[0]));
    assert!(watching.stdout().contains(&asked), "{}", watching.stdout());

    let all = items(&plugin, &[]);
    let row = all.iter().find(|item| item["candidate"] == *third).unwrap();
    assert_eq!((&row["priority"], &row["priorityBy"]), (&json!(100), &json!("pinned")));
    assert_eq!(row["emulationVersion"], "1.37.0", "the true one");
    let words = plugin.run(&["candidates", "explain", MANAGER]).expect(0).stdout;
    assert!(words.contains("The priority decides"), "{words}");

    // It dies too: the native election goes on without anybody's help. Its manager comes back.
    manager_of(&mut plane, &third).kill();
    let leader = || holder(&plane, "kube-system", MANAGER);
    wait_for("somebody else leads", Duration::from_secs(40), || leader() != third, leader);

    // What is left of the priority goes, and nothing else of the object.
    plugin.run(&["candidates", "clear-priority", &third, "--yes"]).expect(0);
    assert_eq!(candidate_object(&plane, "kube-system", &third), before);
}

/// The server that runs this candidate: its host is called as the manager's.
fn manager_of<'a>(plane: &'a mut ControlPlane, candidate: &str) -> &'a mut crate::harness::Server {
    let number = candidate.strip_prefix("cp-").and_then(|rest| rest.split('_').next()).unwrap();
    let name = format!("manager-{number}");
    plane.managers.iter_mut().find(|manager| manager.name == name).unwrap()
}

/// A few numbers that are different each time, and told where it matters.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % sides as u64).unwrap()
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.roll(of.len())]
    }
}

/// Twenty elections with candidates of all sorts. Before each, its lease is somebody else's; then it
/// is given up, and the controller elects.
#[test]
fn the_real_controller_elects_the_candidate_that_we_name() {
    const ELECTIONS: usize = 20;
    // A failure names the seed that it can be repeated with.
    let seed = std::env::var("SEED")
        .map_or_else(|_| u64::from_str_radix(&random(), 16).unwrap(), |seed| seed.parse().unwrap());
    let mut dice = Dice(seed);
    let plane = shared();
    let namespace = namespace(plane);
    let _components = Components::answer(plane, &namespace);
    let mut batches: Vec<Vec<Entrant>> = vec![Vec::new(); 4];
    for election in 0..ELECTIONS {
        let foreign = dice.roll(6) == 0;
        for (n, batch) in batches.iter_mut().enumerate().take(2 + dice.roll(3)) {
            let (binary, emulation) = dice.pick(&[
                ("1.36.4", "1.36.0"),
                ("1.37.1", "1.36.0"),
                ("1.37.1", "1.37.0"),
                ("1.37.1", "1.37.0"),
                ("1.37.1", "1.37.0"),
                ("1.38.0", "1.37.0"),
                ("1.38.0", "1.38.0-alpha.1"),
            ]);
            let mut entrant = Entrant::new(&format!("e{election}-{n}"), &format!("lease-{election}"));
            (entrant.binary, entrant.emulation) = (binary, emulation);
            if foreign && dice.roll(2) == 0 {
                entrant.strategy = "example.com/other";
                // It need not say what it emulates.
                entrant.emulation = dice.pick(&[emulation, ""]);
            }
            entrant.priority = dice.pick(&[None, None, None, None, Some(1), Some(2)]);
            (entrant.renewed, entrant.pinged, entrant.alive) = dice.pick(&[
                (1, None, true),
                (60, None, true),
                (200, Some(220), true),
                (290, None, true),
                (1500, None, false),
                (120, Some(60), false),
                (1900, None, false),
            ]);
            batch.push(entrant);
        }
    }
    let blocked: Vec<_> =
        (0..ELECTIONS).map(|n| lease(&namespace, &format!("lease-{n}"), "somebody", 3600)).collect();
    plane.apply(&json!({ "apiVersion": "v1", "kind": "List", "items": blocked }));
    for batch in batches.iter().filter(|batch| !batch.is_empty()) {
        let began = Instant::now();
        announce(plane, &namespace, batch);
        // The age of candidates counts in seconds.
        std::thread::sleep(Duration::from_millis(1100).saturating_sub(began.elapsed()));
    }
    let mut predicted: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for item in items(&admin(plane), &["-n", &namespace]) {
        let next = predicted.entry(item["leaseName"].as_str().unwrap().to_owned()).or_default();
        if item["next"] == true {
            next.push(item["candidate"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(predicted.len(), ELECTIONS);

    let released: Vec<_> = (0..ELECTIONS).map(|n| lease(&namespace, &format!("lease-{n}"), "", 1)).collect();
    plane.apply(&json!({ "apiVersion": "v1", "kind": "List", "items": released }));
    let elected = || -> BTreeMap<String, String> {
        let all = plane.kubectl(&[
            "get",
            "leases",
            "-n",
            &namespace,
            "-o",
            "jsonpath={range .items[*]}{.metadata.name}={.spec.holderIdentity}{\"\\n\"}{end}",
        ]);
        all.lines()
            .filter_map(|line| line.split_once('='))
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .collect()
    };
    let expected = predicted.values().filter(|next| !next.is_empty()).count();
    wait_for(
        "the elections",
        Duration::from_secs(30),
        || elected().values().filter(|holder| !holder.is_empty()).count() >= expected,
        || {
            let rows = admin(plane).run(&["candidates", "-n", &namespace, "-o", "wide"]).stdout;
            format!("seed {seed}: predicted {predicted:?}, elected {:?}\n{rows}", elected())
        },
    );
    // Time enough for an election that was not expected.
    std::thread::sleep(Duration::from_secs(6));
    for (lease, holder) in elected() {
        let next = &predicted[&lease];
        let right = if holder.is_empty() { next.is_empty() } else { next.contains(&holder) };
        let rows = || admin(plane).run(&["candidates", &lease, "-n", &namespace]).stdout;
        assert!(right, "seed {seed}: {lease} went to '{holder}' instead of {next:?}\n{}", rows());
    }
    assert!(predicted.values().filter(|next| next.len() == 1).count() > ELECTIONS / 2, "seed {seed}");
    plane.kubectl(&["delete", "namespace", &namespace, "--wait=false"]);
}

/// A lease of coordinated election.
pub fn lease(namespace: &str, name: &str, holder: &str, seconds: i64) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": name, "namespace": namespace },
        "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": seconds, "strategy": "OldestEmulationVersion",
            "renewTime": format!("{:.6}", jiff::Timestamp::now()),
        },
    })
}

#[test]
fn a_list_of_candidates_costs_two_lists_whatever_there_is() {
    let plane = shared();
    let namespace = namespace(plane);
    let entrants: Vec<_> =
        (0..6).map(|n| Entrant::new(&format!("c{n}"), &format!("lease-{}", n / 2))).collect();
    announce(plane, &namespace, &entrants);
    let (user, kubeconfig) = plane.unique_admin();
    Plugin::new(kubeconfig).run(&["candidates"]).expect(0);
    let mut asked = plane.audited(&user);
    asked.sort();
    assert_eq!(
        asked,
        [
            "get /apis/coordination.k8s.io/v1",
            "list /apis/coordination.k8s.io/v1/leases?&fieldSelector=metadata.namespace%21%3Dkube-node-lease",
            "list /apis/coordination.k8s.io/v1beta1/leasecandidates?",
        ]
    );
}

/// Labels choose what is shown; who does not match takes part all the same.
#[test]
fn what_is_listed_is_what_was_asked_for() {
    let plane = shared();
    let (here, there) = (namespace(plane), namespace(plane));
    let _components = Components::answer(plane, &here);
    let mut first = Entrant::new("First_1", "same-name");
    first.emulation = "1.36.0";
    announce(plane, &here, &[first, Entrant::new("second_2", "same-name")]);
    announce(plane, &there, &[Entrant::new("third_3", "same-name")]);
    plane.kubectl(&["label", "leasecandidate", "-n", &here, "second_2", "shown=yes"]);
    let plugin = admin(plane);

    let both = plugin.run(&["candidates", "same-name", "--no-headers"]).expect(0);
    let leases: Vec<_> = both.rows().iter().map(|row| row[0].to_owned()).collect();
    let full = |namespace: &str| format!("{namespace}/same-name");
    assert!(leases.contains(&full(&here)) && leases.contains(&full(&there)), "{leases:?}");
    let labelled = plugin.run(&["candidates", "-n", &here, "-l", "shown=yes", "--no-headers"]).expect(0);
    assert_eq!(labelled.rows().len(), 1);
    assert_eq!(labelled.rows()[0][..2], ["same-name", "second"]);
    let all = items(&plugin, &["-n", &here, "-l", "shown=yes"]);
    assert_eq!(all[0]["leader"], false, "First_1 takes part, shown or not");
    let names = plugin.run(&["candidates", "-n", &here, "-o", "name"]).expect(0).stdout;
    assert_eq!(names.lines().next(), Some("leasecandidate.coordination.k8s.io/First_1"));
    let wide = plugin.run(&["candidates", "-A", "-n", &here, "-o", "wide"]).expect(0).stdout;
    assert!(wide.contains("STRATEGY") && wide.contains(&there), "-A goes before -n: {wide}");

    plugin
        .run(&["candidates", "nothing-like-it"])
        .expect(3)
        .says("there are no candidates for 'nothing-like-it'");
    plugin
        .run(&["candidates", "leader-election-controller"])
        .expect(3)
        .says("kubectl lease leaders leader-election-controller");
    plugin.run(&["candidates", "explain", "same-name"]).expect(2).says("-n says which one");
    plugin.run(&["candidates", "-n", "default"]).expect(0).says("there are no candidates in default");
    plugin.run(&["candidates", "-n", "nowhere"]).expect(3).says("there is no namespace 'nowhere'");
    plugin.run(&["leaders", "-n", "nowhere"]).expect(3).says("there is no namespace 'nowhere'");
    plugin
        .run(&["candidates", "-n", &here, "-l", "shown=no"])
        .expect(0)
        .says("no candidate matches the selector");
    plugin
        .run(&["candidates", "set-priority", "nobody", "1", "--yes"])
        .expect(3)
        .says("there is no candidate 'nobody'");
}

#[test]
fn candidates_that_are_equal_are_called_so() {
    let plane = shared();
    let namespace = namespace(plane);
    let _components = Components::answer(plane, &namespace);
    let created =
        |name: &str| field(plane, &namespace, "leasecandidate", name, "{.metadata.creationTimestamp}");
    // In the same second, in one of a few attempts; whether one of them is elected already or not, two are left.
    let round = (0..10).find(|round| {
        let names = ["a", "b", "c"].map(|name| format!("{name}{round}"));
        announce(plane, &namespace, &names.clone().map(|name| Entrant::new(&name, &format!("tied-{round}"))));
        names.iter().all(|name| created(name) == created(&names[0]))
    });
    let lease = format!("tied-{}", round.unwrap());
    let listed = admin(plane).run(&["candidates", &lease, "-n", &namespace, "--no-headers"]).expect(0);
    assert!(listed.stderr.contains("tie (same priority and versions"), "{listed:?}");
    let roles: Vec<_> = listed.rows().iter().map(|row| row[2].to_owned()).collect();
    assert!(roles.contains(&"next?".to_owned()) && !roles.contains(&"next".to_owned()), "{listed:?}");
    let words = admin(plane).run(&["candidates", "explain", &lease, "-n", &namespace]).expect(0).stdout;
    assert!(words.contains("Nothing decides between"), "{words}");
}

/// An election among candidates of the test's own, with somebody to answer for them.
struct Contest {
    namespace: String,
    _components: Components,
}

impl Contest {
    /// Three candidates, the oldest first; waits until the first is elected.
    fn start(plane: &ControlPlane) -> Self {
        let namespace = namespace(plane);
        let components = Components::answer(plane, &namespace);
        let mut oldest = Entrant::new("one_1", "contest");
        oldest.emulation = "1.36.0";
        announce(plane, &namespace, &[oldest, Entrant::new("two_2", "contest")]);
        let there = || plane.kubectl(&["get", "leases", "-n", &namespace, "-o", "name"]);
        wait_for("the lease", SOON, || there().contains("contest"), there);
        Self { namespace, _components: components }
    }
}

#[test]
fn a_priority_is_written_only_where_it_is_safe_and_agreed() {
    let plane = shared();
    let contest = Contest::start(plane);
    let namespace = contest.namespace.as_str();
    let plugin = admin(plane);
    let set = |more: &[&str]| {
        let args = ["candidates", "set-priority", "two", "7", "-n", namespace];
        plugin.run(&[&args, more].concat())
    };
    let before = candidate_object(plane, namespace, "two_2");

    set(&[]).expect(6).says("there is no terminal to ask on: nothing was changed").says("hint: --yes");
    set(&["--dry-run=client", "--yes"]).expect(0);
    let dry = set(&["--dry-run=server"]).expect(0);
    assert!(
        dry.stdout.contains("priority set to 7 (pinned by its emulation version) (server dry run)"),
        "{dry:?}"
    );
    for priority in ["0", "-1", "2147483648", "high"] {
        let args = ["candidates", "set-priority", "two", priority, "-n", namespace, "--yes"];
        plugin.run(&args).expect(2);
    }
    assert_eq!(candidate_object(plane, namespace, "two_2"), before, "none of this wrote anything");

    set(&["--yes"]).expect(0).says("two_2 gets priority 7.");
    let pinned = candidate_object(plane, namespace, "two_2");
    assert_eq!(pinned["spec"]["emulationVersion"], "0.0.2147483641-1.37.0.1");
    let annotations = &pinned["metadata"]["annotations"];
    assert_eq!(annotations["kubectl-lease.dev/original-emulation-version"], "1.37.0");
    assert_eq!(annotations["kubectl-lease.dev/priority"], "7");
    // A higher one beside it goes first, whatever the versions; a lower one does not.
    for (value, first) in [("8", "one_1"), ("6", "two_2")] {
        plugin.run(&["candidates", "set-priority", "one", value, "-n", namespace, "--yes"]).expect(0);
        let order = items(&plugin, &["-n", namespace]);
        assert_eq!(order[0]["candidate"], first, "{order:#?}");
    }
    plugin.run(&["candidates", "clear-priority", "--all", "-n", namespace]).expect(6);
    let cleared = plugin.run(&["candidates", "clear-priority", "--all", "-n", namespace, "--yes"]).expect(0);
    assert_eq!(cleared.stdout.lines().count(), 2, "{cleared:?}");
    assert_eq!(candidate_object(plane, namespace, "two_2"), before);
    let again = plugin.run(&["candidates", "clear-priority", "two", "-n", namespace]).expect(0);
    assert_eq!(again.stdout, "two_2 has no priority\n");

    plugin.run(&["candidates", "clear-priority", "-n", namespace]).expect(2);
    announce(
        plane,
        namespace,
        &[Entrant { alive: false, renewed: 200, ..Entrant::new("dead_3", "contest") }],
    );
    let args = ["candidates", "set-priority", "dead", "7", "-n", namespace, "--yes"];
    plugin.run(&args).expect(6).says("dead_3 does not acknowledge a ping").says("--force");
    plugin
        .run(&[&args[..], &["--force"]].concat())
        .expect(0)
        .says("warning: dead_3 does not acknowledge a ping");
}

#[test]
fn a_priority_for_a_time_is_cleared_when_it_is_over() {
    let plane = shared();
    let contest = Contest::start(plane);
    let namespace = contest.namespace.as_str();
    let plugin = admin(plane);
    let before = candidate_object(plane, namespace, "one_1");
    let set = ["candidates", "set-priority", "one", "9", "-n", namespace, "--yes"];

    let over = plugin.run(&[&set[..], &["--for", "2s"]].concat()).expect(0);
    assert!(over.stdout.ends_with("one_1 priority cleared\n"), "{over:?}");
    assert!(over.took > Duration::from_secs(2));
    assert_eq!(candidate_object(plane, namespace, "one_1"), before);

    for signal in ["-INT", "-TERM", "-HUP"] {
        let mut running = plugin.start(&[&set[..], &["--for", "1h"]].concat());
        running.until_stderr("it is kept", SOON, |text| text.contains("Ctrl-C clears it"));
        running.signal(signal);
        assert_eq!(running.wait(), 130, "{}", running.stderr());
        assert_eq!(candidate_object(plane, namespace, "one_1"), before);
    }
    // Somebody else clears it.
    let mut running = plugin.start(&[&set[..], &["--for", "1h"]].concat());
    running.until_stderr("it is kept", SOON, |text| text.contains("Ctrl-C clears it"));
    plugin.run(&["candidates", "clear-priority", "one", "-n", namespace, "--yes"]).expect(0);
    assert_eq!(running.wait(), 0);
    assert!(running.stderr().contains("another client has changed its priority"), "{}", running.stderr());

    // Left behind, and found again.
    plugin.run(&[&set[..], &["--for", "1s", "--detach"]].concat()).expect(0);
    std::thread::sleep(Duration::from_millis(2100));
    let listed = plugin.run(&["candidates", "-n", namespace]).expect(0).says("should have been cleared");
    assert!(listed.stdout.contains("9 pinned, overdue"), "{listed:?}");
    crate::elections::warned_by_doctor(&plugin, namespace, "the priority of one_1 should have been cleared");
    let cleared =
        plugin.run(&["candidates", "clear-priority", "--expired", "-n", namespace, "--yes"]).expect(0);
    assert_eq!(cleared.stdout, "one_1 priority cleared\n");
    assert_eq!(candidate_object(plane, namespace, "one_1"), before);
    plugin
        .run(&["candidates", "clear-priority", "--expired", "-n", namespace, "--yes"])
        .expect(0)
        .says("no candidate has a priority");
}

/// The entrants here never renew a lease: none of them comes to lead.
#[test]
fn a_wait_without_a_limit_ends_when_its_candidate_cannot_lead_any_more() {
    let plane = shared();
    let plugin = admin(plane);
    for more in [&[][..], &["--for", "1h"]] {
        let contest = Contest::start(plane);
        let namespace = contest.namespace.as_str();
        let set = ["candidates", "set-priority", "two", "9", "-n", namespace, "--yes", "--wait"];
        let mut waiting = plugin.start(&[&set[..], more].concat());
        waiting.until_stderr("it is elected", HANDOVER, |text| text.contains("two_2 is elected"));
        // With another priority it can lead as well.
        plugin.run(&["candidates", "set-priority", "two", "500", "-n", namespace, "--yes"]).expect(0);
        std::thread::sleep(Duration::from_secs(2));
        let deleted = Instant::now();
        plane.kubectl(&["delete", "leasecandidate", "two_2", "-n", namespace]);
        assert_eq!(waiting.wait(), 3, "{}", waiting.stderr());
        assert!(deleted.elapsed() < SOON, "{}", waiting.stderr());
        assert!(waiting.stderr().contains("the candidate two_2 is gone"), "{}", waiting.stderr());
    }
}

#[test]
fn a_wait_without_a_limit_ends_when_the_handover_comes_no_further() {
    let plane = shared();
    let contest = Contest::start(plane);
    let plugin = admin(plane);
    let set = ["candidates", "set-priority", "two", "9", "-n", &contest.namespace, "--yes", "--wait"];
    let mut waiting = plugin.start(&set);
    waiting.until_stderr("it is elected", HANDOVER, |text| text.contains("two_2 is elected"));
    std::thread::sleep(Duration::from_secs(30));
    assert_eq!(waiting.wait(), 124, "{}", waiting.stderr());
    assert!(waiting.stderr().contains("error: two_2 does not lead after "), "{}", waiting.stderr());
}

/// What is set for a time is not left behind, whatever happens.
#[test]
fn a_priority_for_a_time_is_taken_back_when_things_go_wrong() {
    let plane = shared();
    let contest = Contest::start(plane);
    let namespace = contest.namespace.as_str();
    let before = candidate_object(plane, namespace, "two_2");
    let set = ["candidates", "set-priority", "two", "9", "-n", namespace, "--yes", "--for"];
    let pinned = || {
        let object = candidate_object(plane, namespace, "two_2");
        object["metadata"]["annotations"]["kubectl-lease.dev/priority"].as_str().map(str::to_owned)
    };

    // The answer to the write is lost, and then the first attempts to clear it.
    let writes = std::sync::atomic::AtomicU32::new(0);
    let lossy = FaultProxy::start(plane, move |method, path| {
        if method != "PATCH" || !path.contains("/leasecandidates/two_2") || path.contains("dryRun") {
            return Fault::None;
        }
        // The ping is the first of them, where there is one.
        match writes.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            1 => Fault::CutAfter,
            2..4 => Fault::Refuse(503),
            _ => Fault::None,
        }
    });
    std::thread::sleep(Duration::from_secs(3));
    let lost = Plugin::new(&lossy.kubeconfig).run(&[&set[..], &["1h"]].concat()).expect(1);
    assert_eq!(lost.stdout, "two_2 priority cleared\n", "{lost:?}");
    assert!(lost.stderr.contains("cannot be cleared yet, trying again"), "{lost:?}");
    assert_eq!(candidate_object(plane, namespace, "two_2"), before);

    // Nobody reads what is printed.
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_kubectl-lease"))
        .args([&set[..], &["1h"]].concat())
        .env("KUBECONFIG", plane.kubeconfig(User::Admin, 0))
        .stdin(std::process::Stdio::null())
        .stdout(full)
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
    assert_eq!(candidate_object(plane, namespace, "two_2"), before);

    // What somebody else sets meanwhile is theirs.
    let plugin = admin(plane);
    let mut running = plugin.start(&[&set[..], &["1h"]].concat());
    running.until_stderr("it is kept", SOON, |text| text.contains("Ctrl-C clears it"));
    plugin.run(&["candidates", "set-priority", "two", "500", "-n", namespace, "--yes"]).expect(0);
    assert_eq!(running.wait(), 0, "{}", running.stderr());
    assert!(running.stderr().contains("another client has changed its priority"), "{}", running.stderr());
    assert_eq!(pinned().as_deref(), Some("500"));

    // A pin whose annotations are gone tells by itself what it stands for.
    let annotations =
        ["priority", "original-emulation-version"].map(|name| format!("kubectl-lease.dev/{name}-"));
    plane.kubectl(&[
        "annotate",
        "leasecandidate",
        "two_2",
        "-n",
        namespace,
        &annotations[0],
        &annotations[1],
    ]);
    plugin.run(&["candidates", "clear-priority", "two", "-n", namespace, "--yes"]).expect(0);
    assert_eq!(candidate_object(plane, namespace, "two_2"), before);
}

#[test]
fn what_changes_between_the_question_and_the_yes_is_noticed() {
    let plane = shared();
    let contest = Contest::start(plane);
    let namespace = contest.namespace.as_str();
    let plugin = admin(plane);
    let ask = || {
        let args = ["candidates", "set-priority", "two", "7", "-n", namespace];
        let terminal = plugin.start_on_terminal(&args, 24, 120);
        terminal.until("the question", SOON, |screen| screen.contains("Go on?"));
        terminal
    };
    let mut declined = ask();
    declined.types("no\r");
    assert_eq!(declined.wait(), 6);

    // Somebody else writes: what they wrote stays.
    let mut asked = ask();
    plane.kubectl(&["annotate", "leasecandidate", "-n", namespace, "two_2", "theirs=kept"]);
    asked.types("y");
    assert_eq!(asked.wait(), 0, "{}", asked.screen());
    let object = candidate_object(plane, namespace, "two_2");
    assert_eq!(object["metadata"]["annotations"]["theirs"], "kept");
    assert_eq!(object["metadata"]["annotations"]["kubectl-lease.dev/priority"], "7");
    plugin.run(&["candidates", "clear-priority", "two", "-n", namespace, "--yes"]).expect(0);

    // Somebody else sets another priority: that is not what was agreed on.
    let mut asked = ask();
    plugin.run(&["candidates", "set-priority", "two", "900", "-n", namespace, "--yes"]).expect(0);
    asked.types("y");
    assert_eq!(asked.wait(), 5, "{}", asked.screen());
    asked.until("why", SOON, |screen| screen.contains("another client has changed the priority"));
    let object = candidate_object(plane, namespace, "two_2");
    assert_eq!(object["metadata"]["annotations"]["kubectl-lease.dev/priority"], "900");
    let asked = ask();
    assert!(asked.screen().contains("It has priority 900 already, which is replaced."), "{}", asked.screen());
    drop(asked);
    plugin.run(&["candidates", "clear-priority", "two", "-n", namespace, "--yes"]).expect(0);

    // Another candidate of the same name is not the one that was agreed on.
    for comes_back in [false, true] {
        let mut asked = ask();
        plane.kubectl(&["delete", "leasecandidate", "-n", namespace, "two_2"]);
        if comes_back {
            announce(plane, namespace, &[Entrant::new("two_2", "contest")]);
        }
        asked.types("y");
        assert_eq!(asked.wait(), 3, "{}", asked.screen());
        asked.until("why", SOON, |screen| screen.contains("the candidate two_2 is gone"));
        if comes_back {
            let object = candidate_object(plane, namespace, "two_2");
            assert_eq!(object["spec"]["emulationVersion"], "1.37.0");
        } else {
            announce(plane, namespace, &[Entrant::new("two_2", "contest")]);
        }
    }
}

#[test]
fn a_write_that_always_conflicts_is_given_up_and_one_that_failed_once_is_not() {
    let plane = shared();
    let contest = Contest::start(plane);
    let args = ["candidates", "set-priority", "two", "7", "-n", &contest.namespace, "--yes", "--force"];
    let is_write = |method: &str, path: &str| {
        method == "PATCH" && path.contains("/leasecandidates/") && !path.contains("dryRun")
    };
    let always =
        FaultProxy::start(
            plane,
            move |method, path| {
                if is_write(method, path) { Fault::Refuse(409) } else { Fault::None }
            },
        );
    let before = candidate_object(plane, &contest.namespace, "two_2");
    let code = Plugin::new(&always.kubeconfig).run(&args).code;
    assert_eq!(code, 5);
    assert_eq!(candidate_object(plane, &contest.namespace, "two_2"), before);

    let count = std::sync::atomic::AtomicU32::new(0);
    let at_first = FaultProxy::start(plane, move |method, path| {
        let first = || count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 3;
        if is_write(method, path) && first() { Fault::Refuse(409) } else { Fault::None }
    });
    Plugin::new(&at_first.kubeconfig).run(&args).expect(0);
}

/// For a strategy of somebody else's the controller makes a lease whose holder is null, which no
/// kube-apiserver survives once that strategy changes.
#[test]
fn a_lease_whose_holder_is_null_is_left_alone_until_it_is_repaired() {
    let plane = shared();
    let namespace = namespace(plane);
    let _components = Components::answer(plane, &namespace);
    announce(
        plane,
        &namespace,
        &[Entrant { strategy: "example.com/mine", ..Entrant::new("one_1", "foreign") }],
    );
    let text = || plane.kubectl(&["get", "leases", "-n", &namespace, "-o", "json"]);
    wait_for("the lease", SOON, || text().contains("\"foreign\""), text);
    let lease = || -> Value {
        let mut all: Value = serde_json::from_str(&text()).unwrap();
        all["items"][0].take()
    };
    let before = lease();
    assert_eq!(before["spec"]["holderIdentity"], Value::Null, "{before:#?}");
    let plugin = admin(plane);
    plugin
        .run(&["candidates", "set-priority", "one", "5", "-n", &namespace, "--yes", "--force"])
        .expect(6)
        .says("the lease's holderIdentity is null");
    let explained = plugin.run(&["candidates", "explain", "foreign", "-n", &namespace]).expect(0).stdout;
    for words in [
        "There is no leader: the lease's holder is null.",
        "'example.com/mine', which Kubernetes leaves to another",
    ] {
        assert!(explained.contains(words), "{explained}");
    }
    assert_eq!(lease(), before, "and nobody touched it");
    let listed = items(&plugin, &["-n", &namespace]);
    assert_eq!(named(&listed, "next"), [""; 0]);

    // A later candidate can bring back the strategy of Kubernetes: it is warned of that, and repaired.
    plugin
        .run(&["candidates", "-n", &namespace])
        .expect(0)
        .says(
            "when a candidate with strategy OldestEmulationVersion joins, this can crash the kube-apiserver",
        )
        .says(&format!("'kubectl lease candidates repair foreign -n {namespace}' repairs it"));
    plugin.run(&["candidates", "repair", "foreign", "-n", &namespace, "--yes"]).expect(0);
    assert_eq!(lease()["spec"]["holderIdentity"], "");
    let again = plugin.run(&["candidates", "repair", "foreign", "-n", &namespace]).expect(0);
    assert!(again.stdout.contains("nothing to repair"), "{again:?}");
    announce(plane, &namespace, &[Entrant { binary: "1.38.0", ..Entrant::new("two_2", "foreign") }]);
    let elected = || lease()["spec"]["holderIdentity"] != "";
    wait_for("an election that nobody dies of", SOON, elected, text);
}

#[test]
fn without_rights_the_missing_one_is_named_and_with_the_documented_ones_all_works() {
    let plane = shared();
    let nobody = Plugin::new(plane.kubeconfig(User::Nobody, 0));
    for args in [
        &["candidates"][..],
        &["candidates", "-w"],
        &["candidates", "explain", MANAGER],
        &["candidates", "rehearse", MANAGER, "--to", "1.38"],
        &["candidates", "set-priority", "x", "1", "--yes"],
        &["candidates", "clear-priority", "--all", "--yes"],
        &["candidates", "repair", MANAGER, "--yes"],
        &["candidates", "prune", "--yes"],
    ] {
        nobody.run(args).expect(7).says("leasecandidates.coordination.k8s.io");
    }
    nobody.run(&["leaders"]).expect(7).says("leases.coordination.k8s.io");

    let contest = Contest::start(plane);
    let elector = Plugin::new(plane.kubeconfig(User::Elector, 0));
    announce(
        plane,
        &contest.namespace,
        &[Entrant { alive: false, renewed: 1900, ..Entrant::new("dead_9", "contest") }],
    );
    for args in [
        &["candidates"][..],
        &["candidates", "explain", "contest", "-n", &contest.namespace],
        &["candidates", "rehearse", "contest", "-n", &contest.namespace, "--to", "1.38"],
        &["candidates", "wait", MANAGER, "--leader", "cp-1"],
        &["leaders"],
        &["candidates", "set-priority", "two", "3", "-n", &contest.namespace, "--yes"],
        &["candidates", "clear-priority", "two", "-n", &contest.namespace, "--yes"],
        // Whoever is elected here does not renew: as soon as it is called stuck, it is repaired.
        &["candidates", "repair", "contest", "-n", &contest.namespace, "--yes"],
        &["candidates", "prune", "dead_9", "-n", &contest.namespace, "--yes"],
    ] {
        elector.run(args).expect(0);
    }
}

/// The versions of the API that servers have. Real ones: with the feature gate off nobody elects, but
/// the objects are served all the same.
#[test]
fn an_older_api_is_used_where_there_is_no_other() {
    let plane = ControlPlane::start(&Shape {
        features: "CoordinatedLeaderElection=false",
        apis: "coordination.k8s.io/v1alpha2=true,coordination.k8s.io/v1beta1=false",
        ..Shape::default()
    });
    let mut manifest = Entrant::new("one_1", "old").manifest("default");
    manifest["apiVersion"] = "coordination.k8s.io/v1alpha2".into();
    plane.apply(&manifest);
    let plugin = admin(&plane);
    let all = items(&plugin, &[]);
    assert_eq!(all[0]["leaseCandidate"]["apiVersion"], "coordination.k8s.io/v1alpha2");
    plugin.run(&["candidates"]).expect(0).says("no kube-apiserver runs the election controller");
    plugin.run(&["candidates", "-o", "name", "--exit-code"]).expect(4);
    plugin
        .run(&["candidates", "set-priority", "one", "5", "--yes"])
        .expect(6)
        .says("no kube-apiserver runs the election controller")
        .says("--force does it all the same");
    let explained = plugin.run(&["candidates", "explain", "old"]).expect(0).stdout;
    assert!(explained.contains("There is no leader: there is no lease yet."), "{explained}");
    let watching = plugin.start(&["candidates", "-w"]);
    watching.until("the table", SOON, |text| text.contains("one_1"));
}

/// What is listed is well, or it is not: the exit code says so for scripts, whatever is printed.
#[test]
fn with_exit_code_something_that_is_not_well_is_4() {
    let plane = shared();
    let (test, namespace) = (random(), format!("exit-{}", random()));
    let plugin = admin(plane);
    let code = |args: &[&str]| {
        let plain = plugin.run(args).expect(0);
        let asked = plugin.run(&[args, &["--exit-code"]].concat());
        assert_eq!(plain.stdout.lines().count(), asked.stdout.lines().count(), "{args:?}");
        asked.code
    };

    assert_eq!(code(&["apiservers", "-l", REAL]), 0);
    let host = format!("late-{test}");
    plane.apply(&identity_lease(&test, &host, &format!("{host}_1"), 45));
    assert_eq!(code(&["apiservers", "-l", &format!("{TEST_LABEL}={test}")]), 4);
    assert_eq!(code(&["apiservers", &host, "-o", "json"]), 4);

    plane.kubectl(&["create", "namespace", &namespace]);
    let world = World::start(plane, &namespace);
    let leases = ["-n", &namespace];
    assert_eq!(code(&["leaders", "-n", &namespace]), 0, "no lease is no lease without a leader");
    assert_eq!(code(&["candidates", "-n", &namespace]), 0);
    world.add(Player::new("one", "well", Mode::Exits));
    let led = || plugin.run(&["leaders", "well", "-n", &namespace, "--exit-code"]).code == 0;
    wait_for("the leader", SOON, led, String::new);
    assert_eq!(code(&[&["candidates"], &leases[..]].concat()), 0);
    // The best one does not answer, and the lease of nobody has run out.
    let dead = Entrant { emulation: "1.36.0", renewed: 700, alive: false, ..Entrant::new("two_2", "well") };
    announce(plane, &namespace, &[dead]);
    assert_eq!(code(&["candidates", "-n", &namespace]), 4);
    assert_eq!(code(&["candidates", "well", "-n", &namespace, "-o", "name"]), 4);
    assert_eq!(code(&["leaders", "-n", &namespace]), 0);
    plane.apply(&serde_json::json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "left", "namespace": namespace },
        "spec": { "holderIdentity": "", "leaseDurationSeconds": 1 },
    }));
    assert_eq!(code(&["leaders", "-n", &namespace]), 4);
    assert_eq!(code(&["leaders", "left", "-n", &namespace, "-o", "yaml"]), 4);
    plugin.run(&["leaders", "nothing", "-n", &namespace, "--exit-code"]).expect(3);
}
