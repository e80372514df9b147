//! Histories of contended leases: many real processes of the plugin, all kinds of faults, and a
//! checker that knows what a lease is (`tests/history/checker`).
//!
//! Workers acquire, renew and release leases of nodes, and run commands under those and under plain
//! leases. Of the processes some are stopped, interrupted and killed, and so are those that guard their
//! commands. Of three kube-apiservers two are killed and frozen; proxies cut, delay, repeat and refuse
//! requests, cut, delay and stall watches, and some claim another time.
//! Third parties delete leases and release them by force. What was run, when, and how it ended is
//! written down, and so is every sign of life of the commands. In the end porcupine says whether
//! there is an order in which all of it can have happened to a lease.
//!
//! The length is told by the environment; `make test-long` does a long one.
//!
//! ```text
//! KUBECTL_LEASE_SEED=7                    what the workers do; the default is another each time
//! KUBECTL_LEASE_HISTORY_SECONDS=300       for how long, in rounds of at most half a minute
//! KUBECTL_LEASE_HISTORY_OPERATIONS=10000  until so many invocations of the plugin are done
//! ```
//!
//! A history that fails is kept below `target/tmp`, and its path printed; with
//! `KUBECTL_LEASE_HISTORY_KEEP=1` so is one that passes. It has every version of the leases that a watch
//! saw. Judge it again with `"$(tests/history/build)" PATH`; the picture beside it is porcupine's.

use std::{
    collections::{HashMap, HashSet},
    fs,
    io::{BufRead as _, BufReader, Write as _},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};

use crate::{
    dice::{Kept, Random, number, seed},
    harness::{
        ControlPlane, Shape, User,
        faults::{Fault, FaultProxy},
        random,
    },
    plugin::wait_for,
};

const NODES: &str = "kube-node-maintenance";
const PLAIN: &str = "default";
const WORKERS: usize = 20;
/// Names that several processes use: of those who type commands, and of commands that run.
const SHARED: [&str; 2] = ["crew", "job"];
/// Which of the processes that guard a command are killed together.
const GUARDS: [&[&str]; 5] = [
    &["watchdog"],
    &["leash"],
    &["watchdog", "leash"],
    &["watchdog", "plugin"],
    &["watchdog", "leash", "plugin"],
];
/// How long the workers work on the same leases.
const ROUND: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_secs(22);
/// Maintenance leases are held for so long after their duration.
const GRACE: Duration = Duration::from_secs(3);
/// The exit code of a command that ended by itself.
const OWN_CODE: i32 = 40;
/// The longest that a request is kept back, and that a kube-apiserver is frozen.
const LATE_MILLIS: u64 = 4000;
const FROZEN_MILLIS: u64 = 3500;
/// How long a request may be on its way after its process has ended: kept back by a proxy, then by a
/// frozen server, then by a busy machine.
const LATE: Duration = Duration::from_secs(12);
/// How long after a write the watch tells of it at the latest, on a machine that is not busy.
const LAG: Duration = Duration::from_secs(1);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// How far, in milliseconds, the clocks of the two kube-apiservers that claim another time are off. All
/// clocks together may differ by less than the grace, and from whole seconds a clock is known to half a
/// second.
const CLOCKS: [[i64; 2]; 3] = [[2000, 2000], [-2000, -2000], [900, -900]];
const CLOCK_ERROR: Duration = Duration::from_millis(500);

/// The name that a process was given. `maint run` adds to it what makes it the process's own.
fn named(holder: &str) -> String {
    let is_own = |suffix: &str| suffix.len() == 8 && suffix.chars().all(|c| c.is_ascii_hexdigit());
    match holder.rsplit_once('#') {
        Some((name, suffix)) if is_own(suffix) => name.to_owned(),
        _ => holder.to_owned(),
    }
}

/// How a process reaches the control plane.
struct Way {
    kubeconfig: PathBuf,
    /// May list and watch.
    sees: bool,
    /// Which of the clocks that are off it reads, if it does.
    clock: Option<usize>,
}

/// What is common to all rounds.
struct Ground {
    ways: Vec<Way>,
    /// Kubeconfig that always works.
    steady: PathBuf,
    kubectl: PathBuf,
    /// Whether proxies do nothing to requests.
    calm: Arc<AtomicBool>,
    /// What some proxies claim of the clock, in milliseconds.
    clocks: [Arc<AtomicI64>; 2],
    /// What the proxies do.
    dice: Vec<Arc<Mutex<Random>>>,
    ids: AtomicUsize,
}

impl Ground {
    fn new(plane: &ControlPlane) -> Self {
        let calm = Arc::new(AtomicBool::new(true));
        let clocks = [Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0))];
        let mut all_dice = Vec::new();
        let servers = plane.apiservers.len();
        let way = |kubeconfig, sees, clock| Way { kubeconfig, sees, clock };
        let mut ways = Vec::new();
        for n in 0..servers {
            ways.push(way(plane.kubeconfig(User::Admin, n), true, None));
        }
        ways.push(way(plane.kubeconfig(User::Blind, 0), false, None));
        ways.push(way(plane.kubeconfig(User::Blind, 1 % servers), false, None));
        let mut proxy = |user, n, clock: Option<usize>| {
            let random = Arc::new(Mutex::new(Random(0)));
            all_dice.push(Arc::clone(&random));
            let (calm, off) = (Arc::clone(&calm), clock.is_some());
            let clock = clock.map(|clock| Arc::clone(&clocks[clock])).unwrap_or_default();
            FaultProxy::start_with_clock(plane, user, n, clock, move |method, path| {
                if calm.load(Ordering::SeqCst) {
                    return Fault::None;
                }
                let random = &mut *random.lock().unwrap();
                if path.contains("watch=true") {
                    of_watch(random, off)
                } else {
                    of_request(random, off, method)
                }
            })
            .kubeconfig
        };
        ways.push(way(proxy(User::Admin, 0, None), true, None));
        ways.push(way(proxy(User::Admin, 1 % servers, None), true, None));
        ways.push(way(proxy(User::Blind, 0, None), false, None));
        ways.push(way(proxy(User::Admin, 0, Some(0)), true, Some(0)));
        ways.push(way(proxy(User::Blind, 0, Some(1)), false, Some(1)));
        Self {
            ways,
            steady: plane.kubeconfig(User::Admin, 0),
            kubectl: plane.assets.join("kubectl"),
            calm,
            clocks,
            dice: all_dice,
            ids: AtomicUsize::new(1),
        }
    }

    /// Makes ready for a round: what its proxies do follows from its seed alone.
    fn reseed(&self, dice: &mut Random) {
        for (clock, offset) in self.clocks.iter().zip(*dice.of(&CLOCKS)) {
            clock.store(offset, Ordering::SeqCst);
        }
        for one in &self.dice {
            one.lock().unwrap().0 = dice.below(u64::MAX);
        }
    }

    /// By how much any process may be ahead of the server's clock.
    fn most_ahead(&self) -> Duration {
        self.ways.iter().map(|way| self.skew(way).0).max().unwrap()
    }

    /// By how much a process may be ahead of and behind the server's clock.
    fn skew(&self, way: &Way) -> (Duration, Duration) {
        let Some(clock) = way.clock else { return (Duration::ZERO, Duration::ZERO) };
        let offset = self.clocks[clock].load(Ordering::SeqCst);
        let off = Duration::from_millis(offset.unsigned_abs()) + CLOCK_ERROR;
        if offset > 0 { (off, CLOCK_ERROR) } else { (CLOCK_ERROR, off) }
    }
}

/// What a proxy does to a request. One with a wrong clock has fewer other faults, and none whose answer
/// comes late but in time: how wrong the clock seems would be another then.
fn of_request(random: &mut Random, off: bool, method: &str) -> Fault {
    match random.below(if off { 150 } else { 50 }) {
        0 => Fault::CutBefore,
        1 | 2 => Fault::CutAfter,
        3 => Fault::HangAfter,
        4 if !off => Fault::SlowAnswer(random.below(1500)),
        5 | 6 => {
            let least = if off { u64::try_from(REQUEST_TIMEOUT.as_millis()).unwrap() + 200 } else { 0 };
            Fault::Late(least + random.below(LATE_MILLIS - least))
        }
        7 => Fault::Twice,
        8 => Fault::Refuse(429),
        9 => Fault::Refuse(500),
        10 => Fault::Refuse(409),
        11..15 if method != "GET" => Fault::TwiceLate(random.below(LATE_MILLIS)),
        _ => Fault::None,
    }
}

/// What a proxy does to a watch.
fn of_watch(random: &mut Random, off: bool) -> Fault {
    match random.below(16) {
        0 => Fault::CutBefore,
        1 => Fault::Refuse(500),
        2 if !off => Fault::Late(random.below(LATE_MILLIS)),
        3..5 => Fault::CutWatch(random.below(5000)),
        5 => Fault::StallWatch(random.below(5000)),
        6..8 => Fault::DelayWatch(random.below(2000)),
        _ => Fault::None,
    }
}

/// A process of a plugin that guards its command: `leash` or `watchdog`.
fn guard(plugin: Pid, name: &str) -> Option<Pid> {
    let children = |parent: Pid| -> Vec<Pid> {
        let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        let numbers = lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        numbers.filter_map(|number| number.parse().ok().map(Pid::from_raw)).collect()
    };
    let runs = |process: &Pid, name: &str| {
        let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).nth(1) == Some(format!("__{name}").as_bytes())
    };
    let leash = children(plugin).into_iter().find(|child| runs(child, "leash"))?;
    if name == "leash" {
        return Some(leash);
    }
    children(leash).into_iter().find(|child| runs(child, name))
}

/// One invocation of the plugin.
struct Invocation<'a> {
    verb: &'static str,
    leases: Vec<&'a str>,
    holder: String,
    admin: bool,
    seconds: u64,
    /// `--wait=…`
    wait: Option<u64>,
    way: &'a Way,
    disturbance: Disturbance,
    /// For how long the command runs, in beats, and whether it ignores what asks it to end.
    beats: u64,
    stubborn: bool,
}

#[derive(Clone, Copy, Debug)]
enum Disturbance {
    None,
    Signal(Signal, Duration),
    /// Stopped after the first, for the second.
    Stop(Duration, Duration),
    /// Those that guard the command are killed: `leash`, `watchdog`, and maybe the `plugin` with them.
    KillGuards(&'static [&'static str], Duration),
    /// The watchdog is stopped after the first, for the second.
    StopWatchdog(Duration, Duration),
    /// A third party releases its lease.
    Evict(Duration),
}

impl Invocation<'_> {
    fn is_process(&self) -> bool {
        matches!(self.verb, "run" | "hold")
    }

    fn args(&self, script: &str) -> Vec<String> {
        let mut args: Vec<String> = Vec::new();
        let mut push = |words: &[&str]| args.extend(words.iter().map(|word| (*word).to_owned()));
        match self.verb {
            "hold" => push(&["hold", self.leases[0], "-n", PLAIN]),
            "force-release" => {
                push(&["maint", "release"]);
                push(&self.leases);
                push(&["--force", "--confirm"]);
            }
            verb => {
                push(&["maint", verb]);
                push(&self.leases);
            }
        }
        let timeout = format!("{}s", REQUEST_TIMEOUT.as_secs());
        push(&["--holder", &self.holder, "--request-timeout", &timeout]);
        if self.admin {
            push(&["--admin"]);
        }
        if !self.verb.ends_with("release") {
            push(&["-d", &format!("{}s", self.seconds)]);
        }
        if let Some(seconds) = self.wait {
            push(&[&format!("--wait={seconds}s")]);
        }
        if self.is_process() {
            push(&["--", "bash", "-c", script]);
        }
        args
    }
}

/// A process whose renewals are recognised by its name.
struct Named {
    id: usize,
    grace: Duration,
    ahead: Duration,
    plain: bool,
}

/// One round: some leases, and what happens to them.
struct Round<'a> {
    ground: &'a Ground,
    folder: &'a Path,
    nodes: Vec<String>,
    plain: Vec<String>,
    records: Mutex<Vec<Value>>,
    named: Mutex<HashMap<String, Named>>,
    /// What an administrator may hold, by lease.
    admins: Mutex<Vec<(String, String)>>,
    start: SystemTime,
    end: Instant,
}

impl<'a> Round<'a> {
    fn new(ground: &'a Ground, folder: &'a Path, plane: &ControlPlane, length: Duration) -> Self {
        let suffix = random();
        let names = |kind: &str| (1..=3).map(|n| format!("{kind}-{n}-{suffix}")).collect::<Vec<_>>();
        let nodes = names("node");
        let items: Vec<_> = nodes
            .iter()
            .map(|name| json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } }))
            .collect();
        plane.apply(&json!({ "apiVersion": "v1", "kind": "List", "items": items }));
        Self {
            ground,
            folder,
            nodes,
            plain: names("plain"),
            records: Mutex::default(),
            named: Mutex::default(),
            admins: Mutex::default(),
            start: SystemTime::now(),
            end: Instant::now() + length,
        }
    }

    /// Nanoseconds since the round began, by the clock that the commands read too.
    fn nanos(&self, time: SystemTime) -> i64 {
        let since = |a: SystemTime, b: SystemTime| a.duration_since(b).map(|it| it.as_nanos());
        match since(time, self.start) {
            Ok(nanos) => i64::try_from(nanos).unwrap(),
            Err(_) => -i64::try_from(since(self.start, time).unwrap()).unwrap(),
        }
    }

    fn now(&self) -> i64 {
        self.nanos(SystemTime::now())
    }

    /// The same in seconds, for people.
    fn elapsed(&self) -> f64 {
        self.start.elapsed().unwrap_or_default().as_secs_f64()
    }

    fn over(&self) -> bool {
        Instant::now() > self.end
    }

    fn record(&self, record: Value) {
        self.records.lock().unwrap().push(record);
    }

    fn note(&self, text: &str) {
        self.record(json!({ "kind": "note", "text": format!("{:.3}s {text}", self.elapsed()) }));
    }

    /// A command that says every 20 ms that it lives, without starting a process for it.
    fn script(&self, invocation: &Invocation) -> String {
        let trap = if invocation.stubborn { "trap '' TERM INT; " } else { "" };
        format!(
            r#"{trap}exec 9<> <(:); k=t; [ -z "$KUBECTL_LEASE_TOKEN" ] || k=T
            for ((i = 0; i < {}; i++)); do
              echo "$HISTORY_ID $EPOCHREALTIME $k ${{KUBECTL_LEASE_TOKEN:-$KUBECTL_LEASE_TRANSITIONS}} $KUBECTL_LEASE_NAME" >>{}
              read -t 0.02 -u 9
            done; exit {OWN_CODE}"#,
            invocation.beats,
            self.folder.join("beats").display(),
        )
    }

    /// Runs the plugin, disturbs it, and writes down what came of it.
    fn invoke(&self, worker: usize, invocation: &Invocation) -> i32 {
        let id = self.ground.ids.fetch_add(1, Ordering::SeqCst);
        let (ahead, behind) = self.ground.skew(invocation.way);
        let plain = invocation.verb == "hold";
        let grace = if plain { Duration::ZERO } else { GRACE };
        if invocation.is_process() {
            let named = Named { id, grace, ahead, plain };
            self.named.lock().unwrap().insert(invocation.holder.clone(), named);
        }
        if invocation.admin && invocation.verb == "acquire" {
            let mut admins = self.admins.lock().unwrap();
            admins.extend(
                invocation.leases.iter().map(|lease| ((*lease).to_owned(), invocation.holder.clone())),
            );
        }
        let said = self.folder.join(format!("said-{id}"));
        let args = invocation.args(&self.script(invocation));
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-lease"));
        command
            .args(&args)
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap())
            .env("KUBECONFIG", &invocation.way.kubeconfig)
            .env("HISTORY_ID", id.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&said).unwrap());
        let call = self.now();
        let mut child = command.spawn().unwrap();
        let (code, signal) = self.disturb(&mut child, invocation);
        let returned = self.now();
        let stderr = fs::read_to_string(&said).unwrap_or_default();
        let _ = fs::remove_file(&said);
        let unreleased = ["not released", "not be released"].iter().any(|words| stderr.contains(words));
        // For a lease that is judged by watching it no clock matters but one's own.
        let [ahead, behind] = if plain { [Duration::ZERO; 2] } else { [ahead, behind] };
        self.record(json!({
            "kind": "command", "id": id, "worker": worker, "verb": invocation.verb,
            "leases": invocation.leases, "holder": invocation.holder, "admin": invocation.admin,
            "duration": nanos(Duration::from_secs(invocation.seconds)), "grace": nanos(grace),
            "ahead": nanos(ahead), "behind": nanos(behind), "call": call, "return": returned,
            "code": code, "signal": signal, "shared": SHARED.contains(&invocation.holder.as_str()),
            "unreleased": unreleased,
            "said": stderr.trim().chars().take(400).collect::<String>(),
        }));
        code
    }

    /// Waits for the end of a process, and disturbs it as was planned: its code, and what was done.
    fn disturb(&self, child: &mut Child, invocation: &Invocation) -> (i32, String) {
        use std::os::unix::process::ExitStatusExt as _;
        let began = Instant::now();
        let process = Pid::from_raw(i32::try_from(child.id()).unwrap());
        // It has not been waited for, so the number is still its own.
        let send = |signal| kill(process, signal).unwrap();
        let mut plan: Vec<(Duration, &'static [&'static str], Signal)> = match invocation.disturbance {
            Disturbance::None | Disturbance::Evict(_) => vec![],
            Disturbance::Signal(signal, after) => vec![(after, &["plugin"], signal)],
            Disturbance::Stop(after, length) => {
                vec![(after + length, &["plugin"], Signal::SIGCONT), (after, &["plugin"], Signal::SIGSTOP)]
            }
            Disturbance::KillGuards(which, after) => vec![(after, which, Signal::SIGKILL)],
            Disturbance::StopWatchdog(after, length) => {
                vec![
                    (after + length, &["watchdog"], Signal::SIGCONT),
                    (after, &["watchdog"], Signal::SIGSTOP),
                ]
            }
        };
        let signal_all = |which: &[&str], signal| {
            let found: Vec<_> =
                which.iter().filter_map(|name| Some((*name, guard(process, name)?))).collect();
            for (_, guard) in &found {
                let _ = kill(*guard, signal);
            }
            if which.contains(&"plugin") {
                send(signal);
            }
            let names =
                found.iter().map(|(name, _)| *name).chain(which.contains(&"plugin").then_some("plugin"));
            format!("{signal} to {} at {:.3}s", names.collect::<Vec<_>>().join("+"), self.elapsed())
        };
        let mut eviction = match invocation.disturbance {
            Disturbance::Evict(after) => Some(after),
            _ => None,
        };
        let mut done: Vec<String> = Vec::new();
        let mut too_long = self.end + Duration::from_secs(5);
        too_long = too_long.max(began + Duration::from_secs(if self.over() { 40 } else { 0 }));
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap();
                return (code, done.join(" "));
            }
            // There are guards only while there is a command.
            let guarded = |which: &[&str]| which == ["plugin"] || guard(process, "watchdog").is_some();
            let due = plan.pop_if(|(after, which, _)| began.elapsed() >= *after && guarded(which));
            if let Some((_, which, signal)) = due {
                done.push(signal_all(which, signal));
            }
            if eviction.take_if(|after| began.elapsed() >= *after).is_some() {
                let namespace = if invocation.verb == "hold" { PLAIN } else { NODES };
                self.remove(namespace, invocation.leases[0], false);
                done.push(format!("evicted by {:.3}s", self.elapsed()));
            }
            if Instant::now() > too_long {
                // Of plugin and watchdog one has to run.
                signal_all(&["watchdog"], Signal::SIGCONT);
                send(Signal::SIGKILL);
                done.push("SIGKILL at the end".into());
                too_long += Duration::from_secs(60);
            }
            thread::sleep(Duration::from_millis(3));
        }
    }

    /// What a third party does to a lease, with kubectl.
    fn remove(&self, namespace: &str, lease: &str, delete: bool) {
        let call = self.now();
        let mut command = Command::new(&self.ground.kubectl);
        command.env("KUBECONFIG", &self.ground.steady).env("HOME", self.folder);
        if delete {
            command.args(["delete", "lease", "-n", namespace, lease, "--wait=false"]);
        } else {
            let patch = r#"{"spec":{"holderIdentity":"","leaseDurationSeconds":1}}"#;
            command.args(["patch", "lease", "-n", namespace, lease, "--type=merge", "-p", patch]);
        }
        let output = command.stdin(Stdio::null()).output().unwrap();
        let not_found = String::from_utf8_lossy(&output.stderr).contains("(NotFound)");
        let code = if not_found { 3 } else { output.status.code().unwrap_or(-1) };
        self.record(json!({
            "kind": "removal", "lease": lease, "deleted": delete, "call": call, "return": self.now(), "code": code,
        }));
    }

    /// What one worker does until the round is over.
    fn work(&self, worker: usize, mut random: Random) {
        while !self.over() {
            let node = random.of(&self.nodes).as_str();
            let plain = random.of(&self.plain).as_str();
            match random.below(100) {
                0..38 => self.by_name(worker, &mut random, node),
                38..58 => {
                    let invocation = self.process("run", vec![node], &mut random);
                    self.invoke(worker, &invocation);
                }
                58..82 => {
                    let invocation = self.process("hold", vec![plain], &mut random);
                    self.invoke(worker, &invocation);
                }
                82..86 => {
                    let mut two = vec![node, random.of(&self.nodes).as_str()];
                    two.dedup();
                    two.sort_unstable();
                    let invocation = self.process("run", two, &mut random);
                    self.invoke(worker, &invocation);
                }
                86..94 => {
                    // A stranger, who has nothing.
                    let verb = random.of(&["release", "release", "renew"]);
                    let invocation = self.by_hand(verb, vec![node], self.name(worker), &mut random);
                    self.invoke(worker, &invocation);
                }
                94..96 => {
                    let invocation =
                        self.by_hand("force-release", vec![node], self.name(worker), &mut random);
                    self.invoke(worker, &invocation);
                }
                96..98 => self.remove(PLAIN, plain, random.percent(50)),
                98 => self.remove(NODES, node, true),
                _ => thread::sleep(random.millis(0, 2000)),
            }
            thread::sleep(random.millis(0, 150));
        }
    }

    /// A name that no other has.
    fn name(&self, worker: usize) -> String {
        format!("w{worker}-{}", self.ground.ids.fetch_add(1, Ordering::SeqCst))
    }

    /// A lease of a node from its acquisition to its release, or until it is left to expire.
    fn by_name(&self, worker: usize, random: &mut Random, node: &str) {
        let admin = random.percent(12);
        // Some share a name, as the invocations of one person do.
        let holder = if !admin && random.percent(35) { SHARED[0].to_owned() } else { self.name(worker) };
        let mut nodes = vec![node];
        if !admin && random.percent(10) {
            nodes.push(random.of(&self.nodes).as_str());
            nodes.sort_unstable();
            nodes.dedup();
        }
        // Who waits for several has those that it has as a process of its own: to others of its name, and
        // to itself if it was killed, they are another's.
        let gathers = nodes.len() > 1;
        let run = |verb, random: &mut Random| {
            let mut invocation = self.by_hand(verb, nodes.clone(), holder.clone(), random);
            (invocation.admin, invocation.seconds) = (admin, if admin { 1 } else { invocation.seconds });
            if verb == "acquire"
                && !(gathers && holder == SHARED[0])
                && random.percent(if !invocation.way.sees {
                    5
                } else if admin {
                    70
                } else {
                    30
                })
            {
                invocation.wait = Some(1 + random.below(10));
            }
            self.invoke(worker, &invocation)
        };
        let code = run("acquire", random);
        if admin {
            // Some longer than anything else lasts. And nobody else could release it, ever.
            thread::sleep(if random.percent(40) {
                random.millis(4500, 7000)
            } else {
                random.millis(0, 1000)
            });
            for _ in 0..10 {
                if code == 4 || [0, 4].contains(&run("release", random)) {
                    break;
                }
                thread::sleep(Duration::from_millis(200));
            }
            return;
        }
        if code == 4 || (code != 0 && (gathers || random.percent(50))) {
            return;
        }
        for _ in 0..random.below(4) {
            thread::sleep(random.millis(0, 2000));
            let verb = random.of(&["renew", "renew", "acquire"]);
            let code = run(verb, random);
            if code == 4 || (code != 0 && gathers) {
                return;
            }
        }
        thread::sleep(random.millis(0, 1000));
        if random.percent(50) {
            run("release", random);
        }
    }

    fn by_hand<'b>(
        &'b self,
        verb: &'static str,
        leases: Vec<&'b str>,
        holder: String,
        random: &mut Random,
    ) -> Invocation<'b> {
        let disturbance = match random.below(100) {
            0..5 => Disturbance::Signal(Signal::SIGKILL, random.millis(0, 150)),
            5..12 => Disturbance::Signal(Signal::SIGINT, random.millis(0, 150)),
            12..15 => Disturbance::Signal(Signal::SIGTERM, random.millis(0, 150)),
            15..19 => Disturbance::Stop(random.millis(0, 150), random.millis(500, 9000)),
            _ => Disturbance::None,
        };
        Invocation {
            verb,
            way: self.way(&leases, random),
            leases,
            holder,
            admin: false,
            seconds: 1 + random.below(4),
            wait: None,
            disturbance,
            beats: 0,
            stubborn: false,
        }
    }

    fn process<'b>(
        &'b self,
        verb: &'static str,
        leases: Vec<&'b str>,
        random: &mut Random,
    ) -> Invocation<'b> {
        let disturbance = match random.below(100) {
            0..18 => Disturbance::Signal(Signal::SIGKILL, random.millis(0, 4000)),
            18..21 => Disturbance::Signal(Signal::SIGINT, random.millis(0, 3000)),
            21..24 => Disturbance::Signal(Signal::SIGTERM, random.millis(0, 3000)),
            24..42 => Disturbance::Stop(random.millis(0, 3000), random.millis(2000, 9000)),
            42..50 => Disturbance::Evict(random.millis(500, 2500)),
            50..57 => {
                let guards = *random.of(&GUARDS);
                Disturbance::KillGuards(guards, random.millis(300, 2500))
            }
            57..60 => Disturbance::StopWatchdog(random.millis(300, 3000), random.millis(1000, 6000)),
            _ => Disturbance::None,
        };
        // Those that share a name are others all the same, but their renewals cannot be told apart.
        let holder = if random.percent(30) { SHARED[1].to_owned() } else { self.name(0) };
        let mut way = self.way(&leases, random);
        let evicted = matches!(disturbance, Disturbance::Evict(_));
        while evicted && way.sees && leases.len() == 1 {
            // Who sees it ends the command at once; who does not, when it is to be renewed.
            way = self.way(&leases, random);
        }
        Invocation {
            verb,
            way,
            leases,
            holder,
            admin: false,
            seconds: 3 + random.below(3),
            wait: random.percent(if way.sees { 55 } else { 5 }).then(|| 1 + random.below(12)),
            disturbance,
            // Most are short; some have to be renewed a few times, and would outlive a loss.
            beats: if evicted {
                500
            } else if random.percent(60) {
                1 + random.below(100)
            } else {
                100 + random.below(400)
            },
            stubborn: random.percent(50),
        }
    }

    fn way(&self, leases: &[&str], random: &mut Random) -> &Way {
        loop {
            let way = random.of(&self.ground.ways);
            // Several nodes are listed.
            if way.sees || leases.len() == 1 {
                return way;
            }
        }
    }

    /// Every lease can be had again, and what an administrator holds is an administrator's doing. Who
    /// had which in the end, and what was wrong.
    fn close(&self, plane: &ControlPlane) -> (Vec<(String, String)>, Vec<String>) {
        let steady = Way { kubeconfig: self.ground.steady.clone(), sees: true, clock: None };
        let holder_of = |namespace: &str, lease: &str| {
            let path = "jsonpath={.spec.holderIdentity}";
            plane.kubectl(&["get", "lease", "-n", namespace, lease, "--ignore-not-found", "-o", path])
        };
        // Leaves a lease that is not released, if it can be had at once.
        let abandon = |verb: &'static str, lease: &str| {
            let mut invocation = self.by_hand(verb, vec![lease], self.name(0), &mut Random(0));
            (invocation.way, invocation.disturbance) = (&steady, Disturbance::None);
            (invocation.seconds, invocation.beats) = (1, 500);
            if verb == "hold" {
                // Soon after a renewal, which the next who waits has seen.
                let killed = Disturbance::Signal(Signal::SIGKILL, Duration::from_millis(2400));
                (invocation.seconds, invocation.disturbance) = (3, killed);
            }
            self.invoke(0, &invocation);
        };
        let close = |namespace: &str, lease: &str| {
            let mut codes = Vec::new();
            for attempt in 0..4 {
                if let Some(admin) = holder_of(namespace, lease).strip_prefix("kubeadm:") {
                    let known = (lease.to_owned(), admin.to_owned());
                    if !self.admins.lock().unwrap().contains(&known) {
                        return Err(format!("{lease} is held by an administrator {admin} who never was one"));
                    }
                    let mut invocation =
                        self.by_hand("release", vec![lease], admin.to_owned(), &mut Random(0));
                    (invocation.admin, invocation.disturbance) = (true, Disturbance::None);
                    invocation.way = &steady;
                    self.invoke(0, &invocation);
                }
                let verb = if namespace == PLAIN { "hold" } else { "acquire" };
                let mut invocation = self.by_hand(verb, vec![lease], self.name(0), &mut Random(0));
                (invocation.way, invocation.disturbance) = (&steady, Disturbance::None);
                (invocation.wait, invocation.beats) = (Some(12), 2);
                let code = thread::scope(|scope| {
                    if attempt == 0 {
                        // However little else there was, something expires.
                        scope.spawn(|| abandon(verb, lease));
                        thread::sleep(Duration::from_millis(500));
                    }
                    self.invoke(0, &invocation)
                });
                if code == if verb == "hold" { OWN_CODE } else { 0 } {
                    return Ok((lease.to_owned(), invocation.holder));
                }
                // What was still on its way may have come meanwhile.
                codes.push(code);
            }
            Err(format!("{lease} can no longer be had: {codes:?}, {}", holder_of(namespace, lease)))
        };
        let close = &close;
        thread::scope(|scope| {
            let nodes = self.nodes.iter().map(|node| (NODES, node));
            let all = nodes.chain(self.plain.iter().map(|plain| (PLAIN, plain)));
            let closing: Vec<_> =
                all.map(|(namespace, lease)| scope.spawn(move || close(namespace, lease))).collect();
            let (mut last, mut wrong) = (Vec::new(), Vec::new());
            for closed in
                closing.into_iter().map(|closing| closing.join().unwrap_or_else(|_| Err("see above".into())))
            {
                match closed {
                    Ok(one) => last.push(one),
                    Err(why) => wrong.push(why),
                }
            }
            (last, wrong)
        })
    }

    /// Adds what the commands wrote.
    fn gather_beats(&self) {
        let text = fs::read_to_string(self.folder.join("beats")).unwrap_or_default();
        let start = i128::try_from(self.start.duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap();
        for line in text.lines() {
            let words: Vec<_> = line.split(' ').collect();
            let [id, time, kind, tokens, leases] = words[..] else { panic!("a beat: {line}") };
            let (seconds, micros) = time.split_once('.').unwrap();
            let time =
                (seconds.parse::<i128>().unwrap() * 1_000_000 + micros.parse::<i128>().unwrap()) * 1000;
            // In the order of the leases that the plugin was given, which is by name.
            let names: Vec<_> = leases.split(',').collect();
            assert!(names.is_sorted(), "{line}");
            self.record(json!({
                "kind": "beat", "id": id.parse::<u64>().unwrap(), "time": i64::try_from(time - start).unwrap(),
                "tokens": tokens.split(',').collect::<Vec<_>>(), "fencing": kind == "T",
            }));
        }
    }

    /// Adds what a watch of the leases tells: their versions, who was seen there, and the renewals.
    fn gather_versions(&self, versions: &[(SystemTime, Value)]) {
        // Of each holder its terms: a lease that was deleted is another afterwards.
        let mut terms: HashMap<(String, String), HashSet<[Value; 3]>> = HashMap::new();
        let mut holders: HashMap<String, String> = HashMap::new();
        let mut freed: HashMap<(String, String), usize> = HashMap::new();
        for (_, event) in self.gather_renewals(versions) {
            let Value::Object(object) = &event["object"] else { continue };
            let (metadata, spec) = (&object["metadata"], &object["spec"]);
            let lease = metadata["name"].as_str().unwrap().to_owned();
            let holder = named(spec["holderIdentity"].as_str().unwrap_or_default());
            let term = [&metadata["uid"], &spec["acquireTime"], &spec["leaseTransitions"]].map(Value::clone);
            terms.entry((lease.clone(), holder.clone())).or_default().insert(term);
            let deleted = event["type"] == "DELETED";
            let now = if deleted { String::new() } else { holder };
            let before = holders.insert(lease.clone(), now.clone()).unwrap_or_default();
            if !before.is_empty() && now.is_empty() && !deleted {
                *freed.entry((lease, before)).or_default() += 1;
            }
        }
        for record in self.records.lock().unwrap().iter_mut().filter(|record| record["kind"] == "command") {
            let holder = record["holder"].as_str().unwrap();
            let holder =
                if record["admin"] == true { format!("kubeadm:{holder}") } else { holder.to_owned() };
            let leases: Vec<_> = record["leases"]
                .as_array()
                .unwrap()
                .iter()
                .map(|lease| lease.as_str().unwrap().to_owned())
                .collect();
            let count = |of: &dyn Fn(&(String, String)) -> Option<usize>| {
                let counts = leases.iter().map(|lease| {
                    (lease.clone(), json!(of(&(lease.clone(), holder.clone())).unwrap_or_default()))
                });
                Value::Object(counts.collect())
            };
            let seen = count(&|of| terms.get(of).map(HashSet::len));
            let freed = count(&|of| freed.get(of).copied());
            (record["seen"], record["freed"]) = (seen, freed);
        }
    }

    /// Adds the versions and the renewals; the versions that are of this round's leases.
    fn gather_renewals<'b>(&self, versions: &'b [(SystemTime, Value)]) -> Vec<&'b (SystemTime, Value)> {
        let is_ours = |(_, event): &&(SystemTime, Value)| {
            let name = &event["object"]["metadata"]["name"];
            self.nodes.iter().chain(&self.plain).any(|lease| name == lease)
        };
        let versions: Vec<_> = versions.iter().filter(is_ours).collect();
        let processes = self.named.lock().unwrap();
        let most_ahead = self.ground.most_ahead();
        for (seen, event) in &versions {
            let object = &event["object"];
            let name = object["metadata"]["name"].as_str().unwrap();
            let spec = &object["spec"];
            let seen = self.nanos(*seen);
            let time = |field: &str| {
                let time: jiff::Timestamp = spec[field].as_str()?.parse().ok()?;
                Some(self.nanos(SystemTime::from(time)))
            };
            let holder = spec["holderIdentity"].as_str().unwrap_or_default();
            let deleted = event["type"] == "DELETED";
            let seconds = Duration::from_secs(spec["leaseDurationSeconds"].as_u64().unwrap_or_default());
            let version =
                object["metadata"]["resourceVersion"].as_str().and_then(|it| it.parse::<u64>().ok());
            let plain = self.plain.iter().any(|plain| plain == name);
            let writer = named(holder);
            let writer = processes.get(&writer).filter(|_| !SHARED.contains(&writer.as_str()));
            self.record(json!({
                "kind": "version", "time": seen, "lease": name, "version": version, "deleted": deleted,
                "uid": object["metadata"]["uid"], "holder": holder, "transitions": spec["leaseTransitions"],
                "acquired": time("acquireTime"), "renewed": time("renewTime"), "duration": nanos(seconds),
                "grace": nanos(if plain { Duration::ZERO } else { GRACE }),
                "ahead": nanos(writer.map_or(most_ahead, |writer| writer.ahead)),
            }));
            let (Some(process), false) = (writer, deleted) else { continue };
            let (Some(acquired), Some(renewed)) = (time("acquireTime"), time("renewTime")) else { continue };
            if renewed <= acquired {
                continue;
            }
            let sent = renewed - nanos(process.ahead);
            // Others count from what is written; those who watch, from when it was written.
            let from = if process.plain { sent } else { renewed };
            self.record(json!({
                "kind": "renewal", "id": process.id, "lease": name, "call": sent, "return": seen.max(sent),
                "duration": nanos(seconds), "until": from + nanos(seconds + process.grace),
            }));
        }
        versions
    }

    /// Writes the history; where it is.
    fn write(&self, seed: u64, watched: bool, stalled: Duration) -> PathBuf {
        let path = self.folder.join("history.jsonl");
        let mut file = fs::File::create(&path).unwrap();
        let run = json!({
            "kind": "run", "seed": seed.to_string(), "late": nanos(LATE), "own_code": OWN_CODE, "watched": watched,
            "lag": nanos(LAG + stalled),
        });
        writeln!(file, "{run}").unwrap();
        for record in self.records.lock().unwrap().iter() {
            writeln!(file, "{record}").unwrap();
        }
        path
    }
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap()
}

/// All versions of all leases, as they come.
struct Watch {
    kubectl: Child,
    reader: Option<thread::JoinHandle<()>>,
    versions: Arc<Mutex<Vec<(SystemTime, Value)>>>,
}

impl Watch {
    fn start(ground: &Ground) -> Self {
        let mut kubectl = Command::new(&ground.kubectl)
            .args(["get", "--raw", "/apis/coordination.k8s.io/v1/leases?watch=true&timeoutSeconds=3600"])
            .env("KUBECONFIG", &ground.steady)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let versions = Arc::new(Mutex::new(Vec::new()));
        let (output, seen) = (BufReader::new(kubectl.stdout.take().unwrap()), Arc::clone(&versions));
        let reader = thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let now = SystemTime::now();
                let event: Value = serde_json::from_str(&line).unwrap_or_default();
                seen.lock().unwrap().push((now, event));
            }
        });
        Self { kubectl, reader: Some(reader), versions }
    }

    /// All that it saw, and whether that is all there was: until these holders had these leases.
    fn end(mut self, last: &[(String, String)]) -> (Vec<(SystemTime, Value)>, bool) {
        let saw = |(lease, holder): &(String, String)| {
            self.versions.lock().unwrap().iter().rev().any(|(_, event)| {
                let object = &event["object"];
                let found = object["spec"]["holderIdentity"].as_str().is_some_and(|it| named(it) == *holder);
                found && object["metadata"]["name"] == **lease
            })
        };
        let deadline = Instant::now() + Duration::from_secs(5);
        while !last.iter().all(saw) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(20));
        }
        let complete = last.iter().all(saw) && self.kubectl.try_wait().unwrap().is_none();
        self.kubectl.kill().unwrap();
        self.kubectl.wait().unwrap();
        self.reader.take().unwrap().join().unwrap();
        (std::mem::take(&mut self.versions.lock().unwrap()), complete)
    }
}

impl Watch {
    /// What comes before its begin is not seen. It begins with what there is: the kube-apiservers' own.
    fn await_begin(&self) {
        let began = || !self.versions.lock().unwrap().is_empty();
        wait_for("the watch begins", Duration::from_secs(30), began, String::new);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.kubectl.kill();
        let _ = self.kubectl.wait();
    }
}

/// Kills and freezes kube-apiservers, but never the first, until the round is over.
fn trouble(round: &Round, plane: &mut ControlPlane, random: &mut Random) {
    // One that is killed has to be up again in time for what comes after the round.
    let enough = Duration::from_secs(8);
    let pause =
        |length: Duration| thread::sleep(length.min(round.end.saturating_duration_since(Instant::now())));
    while plane.apiservers.len() > 2 && round.end.saturating_duration_since(Instant::now()) > enough {
        pause(random.millis(500, 4000));
        let victim = 1 + usize::try_from(random.below(2)).unwrap();
        let server = &plane.apiservers[victim];
        if random.percent(50) {
            round.note(&format!("{} is frozen", server.name));
            server.signal("-STOP");
            pause(random.millis(500, FROZEN_MILLIS));
            server.signal("-CONT");
            round.note(&format!("{} is no longer frozen", server.name));
        } else {
            round.note(&format!("{} is killed", server.name));
            plane.apiservers[victim].kill();
            pause(random.millis(0, 1500));
            plane.restart_apiserver(victim);
            round.note(&format!("{} is ready again", plane.apiservers[victim].name));
        }
    }
    pause(Duration::MAX);
}

/// The longest time for which a thread that wanted to run did not.
fn stalls(until: &AtomicBool) -> Duration {
    const NAP: Duration = Duration::from_millis(20);
    let mut longest = Duration::ZERO;
    while !until.load(Ordering::SeqCst) {
        let began = Instant::now();
        thread::sleep(NAP);
        longest = longest.max(began.elapsed().saturating_sub(NAP));
    }
    longest
}

/// One round, judged: its counts. Nothing if a clock was set meanwhile: such a history is worthless.
fn round(
    plane: &mut ControlPlane,
    ground: &Ground,
    checker: &Path,
    seed: u64,
    length: Duration,
) -> Option<HashMap<String, u64>> {
    let kept = Kept::new("history", seed);
    let mut dice = Random(seed);
    ground.reseed(&mut dice);
    let watch = Watch::start(ground);
    watch.await_begin();
    let round = Round::new(ground, &kept.0, plane, length);
    let clocks = (SystemTime::now(), Instant::now());
    ground.calm.store(false, Ordering::SeqCst);
    let done = AtomicBool::new(false);
    // A panic waits until the history is written.
    let (stalled, panicked) = thread::scope(|scope| {
        let round = &round;
        let stalled = scope.spawn(|| stalls(&done));
        let workers: Vec<_> = (1..=WORKERS)
            .map(|worker| {
                let random = Random(dice.below(u64::MAX));
                scope.spawn(move || round.work(worker, random))
            })
            .collect();
        let mut outcomes = vec![catch_unwind(AssertUnwindSafe(|| trouble(round, plane, &mut dice)))];
        outcomes.extend(workers.into_iter().map(thread::ScopedJoinHandle::join));
        ground.calm.store(true, Ordering::SeqCst);
        done.store(true, Ordering::SeqCst);
        (stalled.join().unwrap(), outcomes.into_iter().find_map(Result::err))
    });
    round.note(&format!("no thread had to wait longer than {stalled:?}"));
    let worked = round.elapsed();
    let (last, wrong) = round.close(plane);
    let closed = round.elapsed();
    let drift = clocks.0.elapsed().unwrap_or_default().abs_diff(clocks.1.elapsed());
    let (versions, complete) = watch.end(&last);
    let complete = complete && wrong.is_empty();
    round.gather_versions(&versions);
    let gathered = catch_unwind(AssertUnwindSafe(|| round.gather_beats()));
    let path = round.write(seed, complete, stalled);
    if let Some(panic) = panicked.or(gathered.err()) {
        resume_unwind(panic);
    }
    if drift > Duration::from_millis(100) {
        eprintln!("seed {seed}: the clock was set by {drift:?}");
        return None;
    }
    let judging = Instant::now();
    let verdict = Command::new(checker).arg(&path).output().unwrap();
    let text = String::from_utf8_lossy(&verdict.stdout).into_owned();
    eprintln!(
        "seed {seed}: worked for {worked:.1}s, closed by {closed:.1}s, judged in {:.1?}, longest stall {stalled:?}, {} watch; {text}",
        judging.elapsed(),
        if complete { "complete" } else { "INCOMPLETE" },
    );
    let error = String::from_utf8_lossy(&verdict.stderr).into_owned();
    assert!(verdict.status.success() && wrong.is_empty(), "seed {seed}: {wrong:?} {text}{error}");
    let counts = text.lines().find_map(|line| line.strip_prefix("counts: ")).unwrap();
    let mut counts: HashMap<String, u64> = serde_json::from_str(counts).unwrap();
    counts.insert("incomplete".into(), u64::from(!complete));
    Some(counts)
}

/// Of real processes under real faults, what they were told fits a lease: one holder at a time, no
/// takeover before its time, nothing that is another's released, nothing held for ever.
#[test]
fn what_processes_are_told_of_contended_leases_can_be_explained() {
    let seed = seed();
    let seconds = number("KUBECTL_LEASE_HISTORY_SECONDS").map(Duration::from_secs);
    let operations = number("KUBECTL_LEASE_HISTORY_OPERATIONS").unwrap_or(0);
    let length = seconds.unwrap_or(if operations > 0 { Duration::ZERO } else { SHORT });
    let checker = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/history/build"))
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(checker.status.success(), "the checker could not be built");
    let checker = PathBuf::from(String::from_utf8(checker.stdout).unwrap().trim());
    let mut plane = ControlPlane::start(&Shape { apiservers: 3, ..Shape::default() });
    let ground = Ground::new(&plane);
    // It is not to be linearizable because nothing happened: so much in the time of a short run, if the
    // machine is not busy with something else.
    let least: [(&str, u64); 10] = [
        ("acquired", 20),
        ("holders", 15),
        ("takeovers", 1),
        ("held", 30),
        ("released", 8),
        ("unclear", 10),
        ("terms", 8),
        ("beats", 500),
        ("renewals", 5),
        ("removals", 1),
    ];
    let times = (length.as_secs() / SHORT.as_secs()).max(operations / 300).max(1);
    let mut total: HashMap<String, u64> = HashMap::new();
    let lacks = |total: &HashMap<String, u64>| {
        least.iter().find(|(name, least)| total.get(*name).is_none_or(|count| *count < least * times))
    };
    let mut worked = Duration::ZERO;
    let mut next = seed;
    // If it is busy, there are two rounds more; and as many for those in which a clock was set.
    let (mut more, mut again) = (2, 2);
    let mut rounds = 0;
    loop {
        let this = if worked < length { ROUND.min(length.saturating_sub(worked)) } else { ROUND };
        let Some(counts) = round(&mut plane, &ground, &checker, next, this) else {
            assert!(again > 0, "the clock was set in three rounds");
            again -= 1;
            continue;
        };
        for (name, count) in counts {
            *total.entry(name).or_default() += count;
        }
        rounds += 1;
        worked += this;
        next = Random(next).below(u64::MAX);
        if worked < length || total["invocations"] < operations {
            continue;
        }
        if lacks(&total).is_none() || more == 0 {
            break;
        }
        more -= 1;
    }
    eprintln!("{worked:?}: {total:?}");
    assert_eq!(lacks(&total), None, "{total:?}");
    // What a watch did not see weakens the verdict. Without a complete one there are no takeovers.
    assert!(total["incomplete"] <= (rounds / 10).max(1), "{rounds} rounds: {total:?}");
}
