//! Priorities set and cleared, for a time or not, interrupted and killed, while components restart: for so many
//! seconds as `KUBECTL_LEASE_INTERLEAVING_SECONDS` says.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crate::{
    candidates::{admin, items, namespace},
    dice::{Random, number, seed},
    elections::{HANDOVER, SOON, line_up, until_leads},
    harness::players::{Mode, World},
    plugin::{Plugin, Running, wait_for},
    shared,
};

const HOSTS: [&str; 3] = ["a", "b", "c"];
/// Those of Kubernetes come back under a new name, others live on.
const LEASES: [(&str, Mode); 2] =
    [("restarts", Mode::Restarts(Duration::from_secs(2))), ("stays", Mode::Stays)];

/// People who know nothing of one another.
struct Operators<'a> {
    plugin: &'a Plugin,
    namespace: &'a str,
    world: &'a World,
    running: Vec<Running>,
    /// How many were killed, or ended with the words that a priority stays.
    deserted: usize,
    counts: BTreeMap<&'static str, usize>,
}

impl Operators<'_> {
    fn start(&mut self, lease: &str, words: &[&str]) {
        let common = ["-n", self.namespace, "--yes", "--lease", lease];
        self.running.push(self.plugin.start(&[&["candidates"], words, &common].concat()));
    }

    /// One of those that run, or have ended by themselves.
    fn one(&self, random: &mut Random) -> Option<usize> {
        (!self.running.is_empty()).then(|| usize::try_from(random.below(self.running.len() as u64)).unwrap())
    }

    fn do_something(&mut self, random: &mut Random) {
        let (lease, _) = *random.of(&LEASES);
        let host = *random.of(&HOSTS);
        let value = (1 + random.below(9)).to_string();
        let set = ["set-priority", host, value.as_str()];
        let what = match (random.below(10), self.one(random)) {
            (0 | 1, _) => {
                self.start(lease, &set);
                "set"
            }
            (2 | 3, _) => {
                self.start(lease, &[&set[..], &["--for", "6s"]].concat());
                "set for 6s"
            }
            (4, _) => {
                self.start(lease, &[&set[..], &["--for", "20s", "--wait", "3s"]].concat());
                "set for 20s, waiting for 3s"
            }
            (5, _) => {
                self.start(lease, &["clear-priority", host]);
                "clear"
            }
            (6, _) => {
                self.start(lease, &["clear-priority", "--all"]);
                "clear all"
            }
            (7, Some(one)) => {
                self.running[one].signal("-INT");
                "Ctrl-C"
            }
            (8, Some(one)) => {
                self.running.swap_remove(one).signal("-KILL");
                self.deserted += 1;
                "kill -9"
            }
            (9, _) if lease == "restarts" => {
                self.world.kill(lease, host);
                "restart"
            }
            _ => return,
        };
        *self.counts.entry(what).or_default() += 1;
    }

    fn end(&mut self) {
        for command in &self.running {
            command.signal("-INT");
        }
        for mut command in self.running.drain(..) {
            command.wait();
            // Interrupted once more while it waited for a handover to be over.
            self.deserted += usize::from(command.stderr().contains("keeps its priority"));
        }
    }

    /// How many candidates have a priority, and how many of those for a time.
    fn priorities(&self) -> (usize, usize) {
        let all = items(self.plugin, &["-n", self.namespace]);
        let with = |field: &str| all.iter().filter(|item| !item[field].is_null()).count();
        (with("priority"), with("priorityExpires"))
    }

    fn clear(&self, which: &str) {
        self.plugin.run(&["candidates", "clear-priority", which, "-n", self.namespace, "--yes"]).expect(0);
    }

    fn explain(&self) -> String {
        let one =
            |(lease, _)| self.plugin.run(&["candidates", "explain", lease, "-n", self.namespace]).stdout;
        format!("{:?}\n{}", self.counts, LEASES.map(one).join("\n"))
    }
}

#[test]
fn at_the_end_of_any_interleaving_there_is_a_leader_and_no_priority_is_left_behind() {
    let length = Duration::from_secs(number("KUBECTL_LEASE_INTERLEAVING_SECONDS").unwrap_or(30));
    let seed = seed();
    let mut random = Random(seed);
    let plane = shared();
    let (namespace, plugin) = (namespace(plane), admin(plane));
    let world = World::start(plane, &namespace);
    std::thread::scope(|scope| {
        for (lease, mode) in LEASES {
            let world = &world;
            scope.spawn(move || line_up(world, lease, &HOSTS, mode));
        }
    });
    for (lease, _) in LEASES {
        until_leads(&world, lease, "a", SOON);
    }
    let mut operators = Operators {
        plugin: &plugin,
        namespace: &namespace,
        world: &world,
        running: Vec::new(),
        deserted: 0,
        counts: BTreeMap::new(),
    };
    let leads = || LEASES.iter().all(|(lease, _)| world.renewing(lease).is_some());
    let (began, mut rounds) = (Instant::now(), 0);
    while began.elapsed() < length {
        let round = (Instant::now(), random.millis(4000, 12_000));
        while round.0.elapsed() < round.1 {
            operators.do_something(&mut random);
            std::thread::sleep(random.millis(100, 2000));
        }
        // All go home: nothing but what they wrote can have taken the leader away.
        operators.end();
        let told = || format!("KUBECTL_LEASE_SEED={seed}, round {rounds}, {}", operators.explain());
        wait_for("there is a leader of each", HANDOVER * 2, leads, told);
        rounds += 1;
    }
    let told = || format!("KUBECTL_LEASE_SEED={seed}, {}", operators.explain());

    // What was killed left its priority for the rest of its time, and nothing else did.
    let (_, left) = operators.priorities();
    assert!(left <= operators.deserted, "{left} of {}: {}", operators.deserted, told());
    let overdue = || {
        operators.clear("--expired");
        operators.priorities().1 == 0
    };
    wait_for("what was for a time is cleared when it is over", Duration::from_secs(40), overdue, told);
    operators.clear("--all");
    assert_eq!(operators.priorities(), (0, 0), "{}", told());
    wait_for("there is a leader of each", HANDOVER * 2, leads, told);
    eprintln!(
        "{rounds} rounds, {:?}; {} killed or interrupted twice left {left} priorities",
        operators.counts, operators.deserted
    );
}
