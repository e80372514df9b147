//! Random line-ups of candidates, and what was said of each at some moment: it comes true, or was said to be
//! open. `KUBECTL_LEASE_LINE_UPS` says how many, `KUBECTL_LEASE_SEED` does the same ones again.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    candidates::{admin, field, namespace},
    dice::{Random, number, seed},
    elections::explain,
    harness::{
        ControlPlane,
        components::{Entrant, announce},
        players::{Mode, Player, World},
    },
    plugin::Plugin,
    shared,
};

const VERSIONS: [(&str, &str); 5] = [
    ("1.37.1", "1.37.0"),
    ("1.37.1", "1.37.0"),
    ("1.37.1", "1.36.0"),
    ("1.38.0", "1.37.0"),
    ("1.36.4", "1.36.0"),
];
/// A handover, an election of those that answer, and a look to spare.
const COMES_TRUE_WITHIN: Duration = Duration::from_secs(30);

/// What was said of a lease.
#[derive(Debug)]
struct Said {
    /// Before it was looked at, and after.
    looked: Instant,
    at: Instant,
    forecast: String,
    next: Vec<String>,
    holder: String,
}

fn said(plugin: &Plugin, namespace: &str, lease: &str) -> Said {
    let looked = Instant::now();
    let explained = explain(plugin, namespace, lease);
    let names = |value: &Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    Said {
        looked,
        at: Instant::now(),
        forecast: explained["forecast"].as_str().unwrap().to_owned(),
        next: names(&explained["next"]),
        holder: explained["leader"].as_str().unwrap_or_default().to_owned(),
    }
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Came {
    True,
    /// It was said that it depends.
    Open,
    /// Who was named had died, and nothing in the cluster told of it yet.
    Unnoticed,
    /// It changed while it was being looked at.
    TooClose,
    False,
}

fn judged(said: &Said, world: &World, lease: &str) -> Came {
    let after = world.since(lease, said.looked);
    let changes: Vec<_> = after
        .iter()
        .skip_while(|(_, holder)| *holder == said.holder || holder.is_empty())
        .filter(|(_, holder)| !holder.is_empty())
        .collect();
    let first = changes.first().map(|(at, holder)| (*at, holder.as_str()));
    let named = first.is_some_and(|(_, holder)| said.next.iter().any(|next| next == holder));
    let dead = |names: &[String]| !names.is_empty() && names.iter().all(|name| !world.runs(name));
    let led = world.runs(&said.holder) || said.holder.is_empty();
    let came = match (said.forecast.as_str(), first) {
        ("stuck" | "nothing", None) => Came::True,
        ("stays", None) if world.renewing(lease).as_ref() == Some(&said.holder) => Came::True,
        // Who led ended, and there was none to follow.
        ("stays", None) if !led && said.next.is_empty() => Came::True,
        // Who leads ended: then who was called next follows.
        ("stays", Some(_)) if !led && named => Came::True,
        ("moves" | "elects", Some(_)) if named => Came::True,
        // A released lease goes to the same one again.
        ("elects", None) if world.renewing(lease).is_some_and(|leader| said.next.contains(&leader)) => {
            Came::True
        }
        ("open", None) => Came::Open,
        ("open", Some(_)) if named => Came::Open,
        _ if dead(&said.next) || (said.next.len() > 1 && said.next.iter().any(|name| !world.runs(name))) => {
            Came::Unnoticed
        }
        _ => Came::False,
    };
    let close = first.is_some_and(|(at, _)| at < said.at + Duration::from_millis(700));
    if came == Came::False && close { Came::TooClose } else { came }
}

/// Random line-ups, and what was said of each at some moment.
#[test]
fn what_is_forecast_of_random_line_ups_comes_true_or_was_forecast_as_open() {
    const AT_ONCE: u64 = 25;
    let count = number("KUBECTL_LEASE_LINE_UPS").unwrap_or(10);
    let seed = seed();
    let mut random = Random(seed);
    let plane = shared();
    let mut outcomes: BTreeMap<(String, Came), usize> = BTreeMap::new();
    let mut number = 0;
    while number < count {
        let some = AT_ONCE.min(count - number);
        for (said, came, state) in batch(plane, &mut random, number, some) {
            if came == Came::False {
                eprintln!("{said:#?}\n{state}");
            }
            *outcomes.entry((said.forecast, came)).or_default() += 1;
        }
        number += some;
    }
    eprintln!("{count} line-ups: {outcomes:?}");
    let of =
        |came: Came| -> usize { outcomes.iter().filter(|((_, it), _)| *it == came).map(|(_, n)| n).sum() };
    let total: usize = outcomes.values().sum();
    assert_eq!(of(Came::False), 0, "KUBECTL_LEASE_SEED={seed}: {outcomes:?}");
    // The shares of a few are a matter of luck.
    if total >= 50 {
        assert!(of(Came::True) * 2 > total, "most is said for certain: {outcomes:?}");
        assert!((of(Came::TooClose) + of(Came::Unnoticed)) * 4 <= total, "{outcomes:?}");
    }
}

/// Some elections in a namespace of their own.
struct Batch {
    namespace: String,
    world: World,
    plugin: Plugin,
    numbers: std::ops::Range<u64>,
}

fn lease(number: u64) -> String {
    format!("line-{number}")
}

fn batch(plane: &ControlPlane, random: &mut Random, first: u64, count: u64) -> Vec<(Said, Came, String)> {
    let namespace = namespace(plane);
    let world = World::start(plane, &namespace);
    let batch = Batch { namespace, world, plugin: admin(plane), numbers: first..first + count };
    batch.leave_behind(plane, random);
    batch.line_up(random);
    std::thread::sleep(random.millis(4000, 12_000));
    // Each at its own time, and looked at soon after.
    let told: Vec<(u64, Said)> = std::thread::scope(|scope| {
        let one = |n: u64| {
            let (mut random, batch) = (Random(random.below(u64::MAX)), &batch);
            scope.spawn(move || {
                std::thread::sleep(random.millis(0, 8000));
                batch.disturb(n, plane, &mut random);
                std::thread::sleep(random.millis(0, 9000));
                (n, said(&batch.plugin, &batch.namespace, &lease(n)))
            })
        };
        let all: Vec<_> = batch.numbers.clone().map(one).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    std::thread::sleep(COMES_TRUE_WITHIN);
    batch.world.catch_up();
    let judged = told.into_iter().map(|(n, said)| {
        let came = judged(&said, &batch.world, &lease(n));
        let state = if came == Came::False { batch.state(n, &said) } else { String::new() };
        (said, came, state)
    });
    let judged = judged.collect();
    plane.kubectl(&["delete", "namespace", &batch.namespace, "--wait=false"]);
    judged
}

impl Batch {
    /// What was there before: candidates that have died, with or without a priority, and leaders of before the
    /// migration.
    fn leave_behind(&self, plane: &ControlPlane, random: &mut Random) {
        let (mut dead, mut leases) = (Vec::new(), Vec::new());
        for n in self.numbers.clone() {
            if random.percent(30) {
                let (binary, emulation) = *random.of(&VERSIONS);
                let (renewed, pinged) = *random.of(&[(100, Some(60)), (1000, Some(900)), (1900, None)]);
                let priority = *random.of(&[None, None, Some(3)]);
                let plain = Entrant::new(&format!("dead-{n}_0"), &lease(n));
                dead.push(Entrant { alive: false, renewed, pinged, priority, binary, emulation, ..plain });
            }
            if random.percent(15) {
                let old = Player::new("old", &lease(n), Mode::Uncoordinated);
                let now = format!("{:.6}", jiff::Timestamp::now());
                leases.push(json!({
                    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                    "metadata": { "name": lease(n), "namespace": self.namespace },
                    "spec": {
                        "holderIdentity": old.name, "leaseDurationSeconds": 6, "acquireTime": now, "renewTime": now,
                    },
                }));
                self.world.add(old);
            }
        }
        if !leases.is_empty() {
            plane.apply(&json!({ "apiVersion": "v1", "kind": "List", "items": leases }));
        }
        if !dead.is_empty() {
            announce(plane, &self.namespace, &dead);
        }
    }

    /// Some within one second, some later: to the second, that decides.
    fn line_up(&self, random: &mut Random) {
        let mut waves: Vec<Vec<Player>> = vec![Vec::new(); 3];
        for n in self.numbers.clone() {
            let mode = *random.of(&[Mode::Exits, Mode::Exits, Mode::Stays]);
            for host in ["a", "b", "c"].iter().take(2 + usize::try_from(random.below(2)).unwrap()) {
                let (binary, emulation) = *random.of(&VERSIONS);
                let wave = usize::try_from(random.below(3)).unwrap();
                waves[wave].push(Player::new(host, &lease(n), mode).versions(binary, emulation));
            }
        }
        for wave in waves {
            for player in wave {
                self.world.add(player);
            }
            self.world.catch_up();
            std::thread::sleep(Duration::from_millis(1100));
        }
    }

    /// What happens to one of them.
    fn disturb(&self, n: u64, plane: &ControlPlane, random: &mut Random) {
        let Self { namespace, world, .. } = self;
        let (one, other) = (*random.of(&["a", "b"]), *random.of(&["a", "b", "old"]));
        let name = world.name(&lease(n), one);
        let pin = kube_leases::rules::priority::pin(5, "1.37.0").unwrap();
        match random.below(7) {
            // A priority, cleared again by somebody with kubectl in the middle of the handover.
            0 | 1 => {
                let before = field(plane, namespace, "leasecandidate", &name, "{.spec.emulationVersion}");
                write(plane, namespace, &name, &pin);
                if random.percent(50) {
                    std::thread::sleep(random.millis(500, 2500));
                    write(plane, namespace, &name, &before);
                }
            }
            // The leader is asked to step down for another, who need not be the best.
            2 => {
                let patch =
                    json!({ "spec": { "preferredHolder": name, "strategy": "OldestEmulationVersion" } });
                let patch = patch.to_string();
                plane.kubectl(&["patch", "lease", &lease(n), "-n", namespace, "--type=merge", "-p", &patch]);
            }
            // A component ends, and is perhaps the leader.
            3 => world.kill(&lease(n), other),
            // In the middle of a handover.
            4 => {
                write(plane, namespace, &name, &pin);
                std::thread::sleep(random.millis(200, 2000));
                world.kill(&lease(n), other);
            }
            // A better one joins.
            5 => {
                world.add(Player::new("new", &lease(n), Mode::Exits).versions("1.36.4", "1.35.0"));
                world.catch_up();
            }
            _ => {}
        }
    }

    /// How one of them stands in the end.
    fn state(&self, n: u64, said: &Said) -> String {
        let words = self.plugin.run(&["candidates", "explain", &lease(n), "-n", &self.namespace]).stdout;
        let held: Vec<_> = self
            .world
            .since(&lease(n), said.at)
            .iter()
            .map(|(at, holder)| {
                let later = at.checked_duration_since(said.at).map_or(-1.0, |later| later.as_secs_f64());
                format!("{later:.1}s '{holder}'")
            })
            .collect();
        format!("then held: {held:?}\nlease {:?}\n{words}", self.world.lease(&lease(n)))
    }
}

/// Writes an emulation version, as somebody with kubectl does.
fn write(plane: &ControlPlane, namespace: &str, candidate: &str, version: &str) {
    let patch = json!({ "spec": { "emulationVersion": version } }).to_string();
    plane.kubectl(&["patch", "leasecandidate", candidate, "-n", namespace, "--type=merge", "-p", &patch]);
}
