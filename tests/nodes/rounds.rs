//! Rounds of random faults, with an operator who follows the printed advice, in its order, and says yes to
//! everything below critical: there are never two writers of what should be one, and in the end every
//! workload is whole.
//!
//! A round has two nodes and several workloads. Nodes are cut off, crash, freeze, lose their runtime, their
//! kubelet or their object, and may recover by themselves. Meanwhile the operator asks `kubectl lease
//! partitions` what is stranded and `kubectl lease force-delete` about each pod, and does what is printed:
//! commands are typed as they are, with a yes where one is asked for; what is to be done to a machine is
//! done to it. Not everything is possible for everybody: some operators cannot repair a node, and take the
//! next way.
//!
//! The pods of a Deployment that recreates, of a Job that does not wait for the end of a pod, and those without
//! a controller are evicted from a node that is lost after some time, as all are by default: the next one would
//! be started at once, or none. An operator is told to keep them from it, and does that before anything else.
//! The clocks of the nodes are the machine's; where one is said to be wrong, the kube-apiserver rewrites the
//! times that its kubelet writes.
//!
//! ```text
//! KUBECTL_LEASE_SEED=7             what happens in the first round, and so in all; another each time
//! KUBECTL_LEASE_ROUNDS=30          how many; two that are shorter are part of the ordinary tests
//! KUBECTL_LEASE_ROUNDS_AT_ONCE=3   on so many pairs of nodes
//! KUBECTL_LEASE_OPERATOR=force     one who uses `kubectl delete --force`: is to be found out
//! ```
//!
//! Of a round that fails the seed is printed, and all that was typed is kept below `target/tmp`.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    fs::{self, File},
    io::Write as _,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    dice::{Kept, Random, number, seed},
    harness::{disk, nodes::Node},
    stage::{self, Kind, SOON, Stage, await_ready, condition, eventually, get, plane, pod_spec_of, shell},
};

crate::tests![who_follows_the_advice_has_one_writer, who_forces_is_found_out];

/// Those that need no nodes.
pub const PLAIN: &[crate::Test] = &[
    ("nodes::rounds::what_is_printed_is_read", what_is_printed_is_read),
    ("nodes::rounds::a_seed_has_one_plan_and_seeds_have_all", a_seed_has_one_plan_and_seeds_have_all),
];

/// For how long an operator watches something before looking again.
const WATCHED: Duration = Duration::from_secs(6);

/// For how long pods stay on a lost node whose eviction an operator is told to prevent, in seconds.
const EVICTED_AFTER: u32 = 30;

/// For how long an operator lets a line go on that ends what it begins, at most.
const CHAINED: u64 = 30_000;

/// No other command takes longer.
const TYPED: Duration = Duration::from_secs(60);

/// After the last fault, how long the operator works at least and at most; in a short round, and in others.
const AFTERWARDS_SHORT: (Duration, Duration) = (Duration::from_secs(40), Duration::from_secs(50));
const AFTERWARDS: (Duration, Duration) = (Duration::from_secs(45), Duration::from_secs(80));

/// What happens later than this is left out of a short round.
const SHORT: Duration = Duration::from_secs(12);

/// Everything is repaired: the controllers and kubelets need this, with their back-offs.
const WHOLE_WITHIN: Duration = Duration::from_secs(240);

/// How far ahead the clock of a node may be, in seconds.
const SKEWS: [i64; 4] = [-70, -12, 12, 45];

/// What happens to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Partition,
    Crash,
    Freeze,
    HangRuntime,
    StopKubelet,
    /// Of the node's object; its lease stays where the flag is set.
    DeleteNode {
        orphan: bool,
    },
    /// Whatever was wrong with the machine is over.
    Recover,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    at: Duration,
    /// The first or the second of the pair.
    node: usize,
    deed: Deed,
}

/// What an operator likes to do about a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    /// Yes to everything below critical, else as it is printed.
    Confirm,
    /// `--safe`, and if that does nothing, as it is printed.
    Safe,
    /// As it is printed.
    Advice,
    /// `kubectl delete --force`, whatever is printed.
    Force,
}

#[derive(Clone, Debug)]
struct Workload {
    kind: Kind,
    app: String,
    replicas: usize,
    /// The pods are not evicted from a node that is not ready or not reachable, or late enough to be kept
    /// from it.
    stays: bool,
    /// A Job that waits until a pod has ended before it starts the next one.
    waits: bool,
    habit: Habit,
}

impl Workload {
    /// Whether its pods must not be evicted from a lost node: another would be started beside them, or none
    /// when they have ended.
    fn is_to_be_kept(&self) -> bool {
        matches!(self.kind, Kind::Recreate | Kind::Job | Kind::Pod) && !self.waits
    }

    fn manifest(&self, stage: &Stage) -> Value {
        let mut manifest = stage.manifest(self.kind, &self.app);
        if matches!(self.kind, Kind::StatefulSet | Kind::Rolling) {
            manifest["spec"]["replicas"] = self.replicas.into();
        }
        if self.kind == Kind::Job {
            manifest["spec"]["backoffLimit"] = 1000.into();
            let policy = if self.waits { "Failed" } else { "TerminatingOrFailed" };
            manifest["spec"]["podReplacementPolicy"] = policy.into();
        }
        if self.stays {
            let tolerate = |key: &str| {
                let mut toleration = json!({ "key": key, "operator": "Exists", "effect": "NoExecute" });
                if self.is_to_be_kept() {
                    toleration["tolerationSeconds"] = EVICTED_AFTER.into();
                }
                toleration
            };
            pod_spec_of(&mut manifest)["tolerations"] =
                json!([tolerate("node.kubernetes.io/unreachable"), tolerate("node.kubernetes.io/not-ready")]);
        }
        manifest
    }
}

/// All that is decided before a round begins.
#[derive(Clone, Debug)]
struct Plan {
    workloads: Vec<Workload>,
    events: Vec<Event>,
    /// Of each node, whether the operator can bring it back or repair it.
    repairs: [bool; 2],
    /// Whether a node object that was deleted may be created again.
    creates: bool,
    /// By how many seconds the clock of a node is ahead.
    skews: [i64; 2],
    /// After the last fault, how long the operator works.
    afterwards: (Duration, Duration),
    /// When the operator presses Ctrl-C in a line that waits for the end of pods.
    patience: Duration,
}

impl Plan {
    fn short(seed: u64, forces: bool) -> Self {
        let mut plan = Self::new(seed, forces);
        plan.events.retain(|event| event.at < SHORT);
        plan.afterwards = AFTERWARDS_SHORT;
        plan
    }

    fn new(seed: u64, forces: bool) -> Self {
        let mut random = Random(seed);
        let habit = |random: &mut Random| match random.below(3) {
            _ if forces => Habit::Force,
            0 => Habit::Confirm,
            1 => Habit::Safe,
            _ => Habit::Advice,
        };
        let mut others = vec![
            (Kind::Recreate, false),
            (Kind::Rolling, false),
            (Kind::Job, false),
            (Kind::Job, true),
            (Kind::DaemonSet, false),
            (Kind::Pod, false),
        ];
        while others.len() > 4 {
            let which = usize::try_from(random.below(others.len() as u64)).unwrap();
            others.remove(which);
        }
        let kinds = std::iter::once((Kind::StatefulSet, false)).chain(others);
        let workload = |(kind, waits): (Kind, bool)| Workload {
            kind,
            app: format!("{kind:?}{}", if waits { "-waits" } else { "" }).to_lowercase(),
            replicas: match kind {
                Kind::StatefulSet => 1 + usize::from(random.percent(30)),
                Kind::Rolling | Kind::DaemonSet => 2,
                _ => 1,
            },
            stays: match kind {
                Kind::Recreate | Kind::Pod => true,
                Kind::Job if !waits => true,
                _ => random.percent(40),
            },
            waits,
            habit: habit(&mut random),
        };
        let workloads = kinds.map(workload).collect();
        Self {
            workloads,
            events: events(&mut random),
            repairs: [random.percent(60), random.percent(60)],
            creates: random.percent(70),
            skews: [(); 2].map(|()| if random.percent(25) { *random.of(&SKEWS) } else { 0 }),
            afterwards: AFTERWARDS,
            patience: random.millis(1000, CHAINED),
        }
    }
}

fn fault(random: &mut Random) -> Deed {
    match random.below(100) {
        0..30 => Deed::Partition,
        30..48 => Deed::Crash,
        48..63 => Deed::Freeze,
        63..78 => Deed::HangRuntime,
        78..90 => Deed::StopKubelet,
        _ => Deed::DeleteNode { orphan: random.percent(50) },
    }
}

/// One or two faults, and what follows from them.
fn events(random: &mut Random) -> Vec<Event> {
    let mut events = Vec::new();
    // Most pods are on the first.
    let first = usize::from(random.percent(20));
    let second = random.percent(60).then(|| if random.percent(70) { first } else { 1 - first });
    let mut at = random.millis(0, 4000);
    for node in std::iter::once(first).chain(second) {
        let deed = fault(random);
        events.push(Event { at, node, deed });
        if matches!(deed, Deed::Partition | Deed::Freeze | Deed::StopKubelet | Deed::Crash)
            && random.percent(20)
        {
            let orphan = random.percent(50);
            let later = at + random.millis(5000, 45000);
            events.push(Event { at: later, node, deed: Deed::DeleteNode { orphan } });
        }
        if random.percent(45) {
            events.push(Event { at: at + random.millis(8000, 60000), node, deed: Deed::Recover });
        }
        at += random.millis(8000, 50000);
    }
    events.sort_by_key(|event| event.at);
    events
}

/// What was seen in all rounds.
#[derive(Default)]
struct Tally(BTreeMap<String, u64>);

impl Tally {
    fn count(&mut self, what: &str) {
        *self.0.entry(what.to_owned()).or_default() += 1;
    }

    fn add(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what.clone()).or_default() += count;
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(what, count)| writeln!(to, "{count:6}  {what}"))
    }
}

/// What a command has said.
struct Said {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Said {
    #[track_caller]
    fn expect(&self, codes: &[i32]) {
        assert!(codes.contains(&self.code), "{}: {}{}", self.code, self.stdout, self.stderr);
    }
}

/// One way of those that are safer than force.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Way {
    what: String,
    command: Option<String>,
}

/// The verdict and the ways that `force-delete` has printed.
fn read(stderr: &str) -> Option<(String, Vec<Way>)> {
    let verdict = stderr.lines().find_map(|line| line.split_once("risk of force-deleting it: "))?.1;
    let mut ways: Vec<Way> = Vec::new();
    for line in stderr.lines().skip_while(|line| *line != "  safer").skip(1) {
        if let Some(command) = line.strip_prefix("       ") {
            ways.last_mut()?.command = Some(command.to_owned());
        } else if let Some((_, what)) = line.strip_prefix("  ").and_then(|line| line.split_once(". ")) {
            ways.push(Way { what: what.to_owned(), command: None });
        } else {
            break;
        }
    }
    Some((verdict.to_owned(), ways))
}

struct Round<'a> {
    stage: Stage,
    plan: Plan,
    due: VecDeque<Event>,
    began: Instant,
    transcript: RefCell<&'a mut File>,
    tally: &'a mut Tally,
    /// Machines that the operator has switched off and not declared yet, or whose pods are still there.
    kept_off: [bool; 2],
    fenced: [bool; 2],
    /// Nodes whose object was deleted, ever, and since the operator last looked.
    deleted_nodes: [bool; 2],
    called: bool,
    /// Pods that the operator has deleted or evicted.
    deleted: BTreeSet<String>,
    /// Pods that the operator has kept from being evicted.
    kept: BTreeSet<String>,
}

impl Round<'_> {
    fn note(&self, text: &str) {
        let now = disk::now();
        let (seconds, hundredths) = (now / 100, now % 100);
        let elapsed = self.began.elapsed().as_secs_f32();
        writeln!(self.transcript.borrow_mut(), "{elapsed:6.1} ({seconds}.{hundredths:02}) {text}").unwrap();
    }

    /// Does what is due.
    fn happen(&mut self) {
        while self.due.front().is_some_and(|event| event.at <= self.began.elapsed()) {
            let Event { node: n, deed, .. } = self.due.pop_front().unwrap();
            let kept_off = self.kept_off[n];
            let node = self.stage.node(n);
            let name = node.name.clone();
            let (well, on) = (node.is_well(), node.is_on());
            match deed {
                Deed::Partition if well => node.partition(),
                Deed::Freeze if well => node.freeze(),
                Deed::HangRuntime if well => node.hang_runtime(),
                Deed::StopKubelet if well => node.stop_kubelet(),
                Deed::Crash if on => node.crash(),
                Deed::Recover if !well && !kept_off => node.repair(),
                Deed::DeleteNode { orphan } => {
                    let cascade = if orphan { "--cascade=orphan" } else { "--cascade=background" };
                    plane().kubectl(&[
                        "delete",
                        "node",
                        &name,
                        cascade,
                        "--ignore-not-found",
                        "--wait=false",
                    ]);
                    self.deleted_nodes[n] = true;
                    self.called = true;
                }
                _ => {
                    self.note(&format!("{name}: {deed:?} has nothing to do"));
                    continue;
                }
            }
            self.note(&format!("{name}: {deed:?}"));
            let word = format!("{deed:?}");
            self.tally.count(&format!("fault {}", word.split(' ').next().unwrap()));
        }
    }

    /// Lets time pass.
    fn pass(&mut self, time: Duration) {
        let until = Instant::now() + time;
        loop {
            self.happen();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(Duration::from_millis(200)));
        }
    }

    /// Types a command, and presses Ctrl-C when it takes longer than that.
    fn types_for(&mut self, command: &str, limit: Duration) -> Said {
        let files = ["out", "err"].map(|name| self.stage.disk.folder.with_extension(name));
        let [out, err] = files.each_ref().map(|path| File::create(path).unwrap());
        let mut child = shell(command, limit).stdout(out).stderr(err).spawn().unwrap();
        self.note(&format!("$ {command}"));
        let status = loop {
            self.happen();
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            thread::sleep(Duration::from_millis(50));
        };
        let [stdout, stderr] = files.map(|path| fs::read_to_string(path).unwrap());
        let code = status.code().unwrap_or(-1);
        for line in stdout.lines().chain(stderr.lines()) {
            self.note(&format!("    {line}"));
        }
        self.note(&format!("    -> {code}"));
        let mut words = command.split_whitespace().filter(|word| !word.starts_with('-'));
        let verb = words.find(|word| !matches!(*word, "kubectl" | "lease")).unwrap_or_default();
        let verb = if command.contains("kubectl create -f -") { "create node" } else { verb };
        let flags: Vec<_> = command
            .split_whitespace()
            .filter(|word| {
                word.starts_with("--") && !word.starts_with("--timeout") && *word != "--no-headers"
            })
            .collect();
        self.tally.count(&format!("typed {verb} {} -> {code}", flags.join(" ")));
        Said { code, stdout, stderr }
    }

    fn types(&mut self, command: &str) -> Said {
        let began = Instant::now();
        let said = self.types_for(command, TYPED);
        assert!(began.elapsed() < TYPED, "it does not end: {command}\n{}", said.stderr);
        said
    }

    fn workload(&self, pod: &str) -> Workload {
        let matches = |workload: &&Workload| {
            pod == workload.app || pod.strip_prefix(&workload.app).is_some_and(|rest| rest.starts_with('-'))
        };
        // `job-waits-x` is not of `job`.
        let found = self.plan.workloads.iter().filter(matches).max_by_key(|workload| workload.app.len());
        found.unwrap().clone()
    }

    /// The pods of the round that are stranded, as `partitions` lists them.
    fn stranded(&mut self) -> Vec<String> {
        let table = self.types("kubectl lease partitions --no-headers");
        table.expect(&[0]);
        let ours = format!("{}/", self.stage.namespace);
        table
            .stdout
            .lines()
            .filter_map(|line| line.split_whitespace().find_map(|word| word.strip_prefix(&ours)))
            .map(str::to_owned)
            .collect()
    }

    /// And those that are Terminating.
    fn stranded_and_stuck(&mut self) -> Vec<String> {
        let mut found = self.stranded();
        for workload in &self.plan.workloads {
            let terminating = self.stage.pods(&workload.app).into_iter().filter(|pod| pod.terminating);
            found.extend(terminating.map(|pod| pod.name));
        }
        let mut known = BTreeSet::new();
        found.retain(|name| known.insert(name.clone()));
        found
    }

    /// Looks after the nodes and pods until there is nothing left to do.
    fn operate(&mut self) {
        let last = self.plan.events.last().unwrap().at;
        loop {
            self.called = false;
            let pods = self.stranded_and_stuck();
            let quiet = pods.is_empty() && self.due.is_empty();
            for pod in pods {
                self.keep_all();
                self.attend(&pod);
                // A node object that was deleted cannot wait for the other pods.
                if self.called {
                    break;
                }
            }
            self.release_machines();
            let since = self.began.elapsed().saturating_sub(last);
            let (patience, limit) = self.plan.afterwards;
            if (quiet && since > patience) || since > limit {
                return;
            }
            if !self.called {
                self.pass(Duration::from_secs(2));
            }
        }
    }

    /// A machine that was declared to be off stays off until pod GC has done what was announced.
    fn release_machines(&mut self) {
        let names = self.stage.names();
        for (n, name) in names.iter().enumerate() {
            if self.kept_off[n] && self.fenced[n] && !self.has_pods(name) {
                self.note(&format!("{name}: its pods are gone, and it may be switched on again"));
                self.kept_off[n] = false;
            }
        }
    }

    fn has_pods(&self, node: &str) -> bool {
        let on = format!("spec.nodeName={node}");
        let list = get(&["pods", "-n", &self.stage.namespace, "--field-selector", &on]);
        !list["items"].as_array().unwrap().is_empty()
    }

    /// Does what is printed to be done first for all pods that would be evicted, before anything that takes time.
    fn keep_all(&mut self) {
        for pod in self.stranded() {
            let workload = self.workload(&pod);
            let asks = workload.is_to_be_kept() && workload.habit != Habit::Force;
            if !asks || self.kept.contains(&pod) {
                continue;
            }
            let said =
                self.types(&format!("kubectl lease force-delete pod {pod} -n {}", self.stage.namespace));
            let Some((_, ways)) = read(&said.stderr) else { continue };
            let firsts = [
                "first change the tolerations",
                "first remove the out-of-service taint",
                "remove its out-of-service taint",
            ];
            let is_first = |way: &&Way| firsts.iter().any(|it| way.what.contains(it));
            for way in ways.iter().take_while(is_first) {
                self.follow(&pod, way);
            }
        }
    }

    /// Asks about a pod, and does something about it.
    fn attend(&mut self, pod: &str) {
        let workload = self.workload(pod);
        let place = format!("{pod} -n {}", self.stage.namespace);
        if workload.habit == Habit::Force {
            self.types(&format!(
                "kubectl delete pod {place} --force --grace-period=0 --wait=false --ignore-not-found"
            ));
            self.deleted.insert(pod.to_owned());
            return;
        }
        let ask = format!("kubectl lease force-delete pod {place}");
        let said = self.types(&ask);
        if said.code == 3 {
            return;
        }
        assert_eq!(said.code, 6, "{ask}: {}", said.stderr);
        let (verdict, ways) = read(&said.stderr).unwrap_or_else(|| panic!("no verdict: {}", said.stderr));
        self.tally.count(&format!("verdict {verdict} of {}", workload.app));
        match workload.habit {
            Habit::Confirm if verdict != "critical" => {
                let said = self.types(&format!("{ask} --confirm"));
                said.expect(&[0, 3, 5, 6]);
                if said.code == 0 {
                    self.deleted.insert(pod.to_owned());
                    return;
                }
            }
            Habit::Safe => {
                let said = self.types(&format!("{ask} --safe --confirm --wait={}s", WATCHED.as_secs()));
                said.expect(&[0, 3, 5, 6, 124]);
                if matches!(said.code, 0 | 124) {
                    self.deleted.insert(pod.to_owned());
                    return;
                }
            }
            _ => {}
        }
        for way in &ways {
            if self.follow(pod, way) {
                return;
            }
        }
    }

    /// Follows one of the ways, if that can be done and changes something.
    fn follow(&mut self, pod: &str, way: &Way) -> bool {
        let Way { what, command } = way;
        let says = |words: &str| what.contains(words);
        let command = command.as_deref().unwrap_or_default();
        let names = self.stage.names();
        let node = names.iter().position(|name| what.contains(name) || command.contains(&format!(" {name}")));
        self.note(&format!("# {what}"));
        if command.contains(" --undo") {
            let said = self.types(command);
            said.expect(&[0, 4, 5]);
            return said.code == 0;
        }
        if says("power off the machine of") {
            let n = node.unwrap();
            if self.stage.node(n).is_on() {
                self.stage.node(n).crash();
                self.note(&format!("{}: switched off by the operator", names[n]));
                self.tally.count("by hand: switched off");
            }
            self.kept_off[n] = true;
            if command.is_empty() {
                // Its object is gone: there is no node to mark out of service.
                self.fenced[n] = true;
            } else {
                self.declare(n, command);
            }
            return true;
        }
        if says("if the machine of") {
            let n = node.unwrap();
            if self.stage.node(n).is_on() {
                return false;
            }
            self.kept_off[n] = true;
            self.declare(n, command);
            return true;
        }
        if says("bring ") && !says("leave it") || says("repair what is wrong on") {
            let n = node.unwrap();
            // A machine that was switched off to be declared so stays off.
            if !self.plan.repairs[n] || self.kept_off[n] {
                return false;
            }
            self.stage.node(n).repair();
            self.note(&format!("{}: repaired by the operator", names[n]));
            self.tally.count("by hand: repaired");
            self.types_for(command, WATCHED);
            return true;
        }
        if says("create the node object again") {
            if !self.plan.creates {
                return false;
            }
            // Another pod may have been the reason to do it already.
            return self.types(command).code == 0;
        }
        // This operator does not look into nodes.
        if says("leave it")
            || says("crictl")
            || command.starts_with("crictl")
            || command.starts_with("journalctl")
        {
            return false;
        }
        if command.starts_with("kubectl describe ") || command.starts_with("kubectl get ") {
            self.types(command);
            return false;
        }
        if says("first change the tolerations of the pod") {
            // It may have gone by itself.
            let said = self.types(command);
            let is_gone = ["NotFound", "Conflict"].iter().any(|reason| said.stderr.contains(reason));
            assert!(said.code == 0 || is_gone, "{}", said.stderr);
            if said.code == 0 {
                self.kept.insert(pod.to_owned());
                self.tally.count("by hand: kept from being evicted");
            }
            return false;
        }
        if command.contains(" && ") {
            self.deleted.insert(pod.to_owned());
            self.types_for(command, self.plan.patience);
            return true;
        }
        if command.starts_with("kubectl wait ") || command.ends_with(" -w") {
            self.types_for(command, WATCHED);
            return true;
        }
        if command.ends_with(" --safe") {
            let said = self.types(&format!("{command} --confirm --wait={}s", WATCHED.as_secs()));
            said.expect(&[0, 3, 4, 5, 6, 124]);
            self.deleted.insert(pod.to_owned());
            return said.code == 0;
        }
        if command.starts_with("kubectl delete pod ") || command.starts_with("kubectl rollout restart ") {
            self.deleted.insert(pod.to_owned());
            // It may have gone by itself.
            let said = self.types(command);
            assert!(said.code == 0 || said.stderr.contains("NotFound"), "{}", said.stderr);
            return true;
        }
        panic!("this operator does not know how to follow: {way:?}");
    }

    /// Declares a machine to be off, which it is; that is refused as long as its last heartbeat is too new.
    fn declare(&mut self, n: usize, command: &str) {
        assert!(!self.stage.node(n).is_on(), "it was made sure of");
        let said = self.types(&format!("{command} --confirm --i-have-fenced"));
        said.expect(&[0, 3, 4, 5, 6]);
        self.fenced[n] |= said.code == 0;
    }

    /// Repairs all nodes, and takes them into service again.
    fn repair_all(&mut self) {
        self.note("everything is repaired");
        let names = self.stage.names();
        for (n, name) in names.iter().enumerate() {
            let labels = self.stage.labels(n);
            stage::unskew(name);
            self.stage.node(n).repair();
            let exists =
                || !plane().kubectl(&["get", "node", name, "--ignore-not-found", "-o", "name"]).is_empty();
            if !exists() {
                // A kubelet registers once, when it starts.
                self.stage.node(n).stop_kubelet();
                self.stage.node(n).start_kubelet();
                eventually("the node is registered", SOON * 2, exists, || self.stage.describe());
            }
            // One that was created by hand lacks them.
            let mut args = vec!["label", "node", name, "--overwrite"];
            args.extend(labels.iter().map(String::as_str));
            plane().kubectl(&args);
            await_ready(name);
            let deadline = Instant::now() + SOON;
            loop {
                let said = self.types(&format!("kubectl lease partitions {name} --no-headers"));
                said.expect(&[0]);
                let state = said.stdout.split_whitespace().nth(1).unwrap_or_default().to_owned();
                match state.as_str() {
                    "sends" => break, // "… sends heartbeats: not partitioned"
                    "back" => drop(self.types(&format!("kubectl lease fence {name} --undo"))),
                    _ => self.pass(Duration::from_secs(2)),
                }
                assert!(Instant::now() < deadline, "{name} is {state}");
            }
        }
    }

    /// What a workload lacks.
    fn lacks(&self, workload: &Workload) -> Option<String> {
        let app = &workload.app;
        let list = get(&["pods", "-n", &self.stage.namespace, "-l", &format!("app={app}")]);
        let pods: Vec<&Value> = list["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|pod| !matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded")))
            .collect();
        let excused = workload.kind == Kind::Pod
            && (self.deleted.contains(app)
                || self.fenced.contains(&true)
                || self.deleted_nodes.contains(&true));
        if excused && pods.is_empty() {
            return None;
        }
        let since = disk::now().saturating_sub(200);
        let writes = |uid: &Value| {
            let files = self.stage.disk.files();
            let mut lines = files
                .iter()
                .filter(|file| file.starts_with(app))
                .flat_map(|file| self.stage.disk.lines(file));
            lines.any(|line| line.uid == *uid && line.time > since)
        };
        let whole = |pod: &&&Value| {
            condition(pod, "Ready") == "True"
                && pod["metadata"]["deletionTimestamp"].is_null()
                && writes(&pod["metadata"]["uid"])
        };
        let good = pods.iter().filter(whole).count();
        (good != workload.replicas || pods.len() != workload.replicas)
            .then(|| format!("{app}: {good} of {} pods write, there are {}", workload.replicas, pods.len()))
    }

    fn await_whole(&self) {
        let lacking = || -> Vec<String> {
            self.plan.workloads.iter().filter_map(|workload| self.lacks(workload)).collect()
        };
        let took = eventually(
            "every workload is whole",
            WHOLE_WITHIN,
            || lacking().is_empty(),
            || format!("{:?}\n{}", lacking(), self.stage.describe()),
        );
        self.note(&format!("whole after {took:?}"));
    }

    fn play(&mut self) {
        for workload in &self.plan.workloads {
            plane().apply(&workload.manifest(&self.stage));
        }
        self.await_whole();
        let names = self.stage.names();
        for (name, skew) in names.iter().zip(self.plan.skews).filter(|(_, skew)| *skew != 0) {
            self.note(&format!("{name}: its clock is ahead by {skew} seconds"));
            self.tally.count("fault Skew");
            stage::skew(name, skew);
        }
        self.began = Instant::now();
        self.operate();
        self.due.clear();
        self.repair_all();
        self.bring_back();
        self.await_whole();
    }

    /// Brings back what lines that were interrupted have left without pods, as it is printed.
    fn bring_back(&mut self) {
        let said = self.types("kubectl lease partitions -o json");
        said.expect(&[0]);
        let list: Value = serde_json::from_str(&said.stdout).unwrap();
        for stopped in list["stopped"].as_array().unwrap() {
            if stopped["namespace"] == *self.stage.namespace {
                self.tally.count("by hand: brought back");
                self.types_for(stopped["command"].as_str().unwrap(), SOON * 2).expect(&[0]);
            }
        }
    }
}

/// One round: what the checker has found.
fn round(seed: u64, plan: Plan, tally: &mut Tally) -> Vec<String> {
    let kept = Kept::new("rounds", seed);
    let forces = plan.workloads.iter().any(|workload| workload.habit == Habit::Force);
    let mut transcript = File::create(kept.0.join("transcript")).unwrap();
    writeln!(transcript, "KUBECTL_LEASE_SEED={seed}\n{plan:#?}").unwrap();
    let mut round = Round {
        stage: Stage::new(),
        due: plan.events.iter().copied().collect(),
        plan,
        began: Instant::now(),
        transcript: RefCell::new(&mut transcript),
        tally,
        kept_off: [false; 2],
        fenced: [false; 2],
        deleted_nodes: [false; 2],
        called: false,
        deleted: BTreeSet::new(),
        kept: BTreeSet::new(),
    };
    let began = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| round.play()));
    let found = round.stage.disk.findings();
    let bad = outcome.is_err() || (!forces && !found.is_empty());
    if bad {
        for name in round.stage.names() {
            stage::unskew(&name);
        }
        round.note(&format!("{}\n{}", found.join("\n"), round.stage.disk.describe()));
        for node in [0, 1] {
            let Node { name, folder, .. } = round.stage.node(node);
            let _ = fs::copy(folder.join("kubelet/log"), kept.0.join(format!("{name}.log")));
        }
        if let Ok(state) = catch_unwind(AssertUnwindSafe(|| round.stage.describe())) {
            round.note(&state);
        }
    }
    eprintln!("seed {seed}: {:.0?}, {}", began.elapsed(), if bad { "FAILED" } else { "well" });
    round.tally.count("rounds");
    drop(round);
    match outcome {
        Err(panic) => resume_unwind(panic),
        Ok(()) => assert!(!bad, "seed {seed}: {}", found.join("\n")),
    }
    found
}

/// The rounds that follow from a seed, several at once; all of them, whatever becomes of one.
fn rounds(seed: u64, count: u64, at_once: u64, plan: impl Fn(u64) -> Plan + Sync) {
    let next = |seed: &u64| Some(Random(*seed).below(u64::MAX));
    let seeds = std::iter::successors(Some(seed), next).take(usize::try_from(count).unwrap());
    let left = Mutex::new(seeds);
    let all = Mutex::new((Tally::default(), Vec::new(), Vec::new()));
    thread::scope(|scope| {
        for _ in 0..at_once.min(count) {
            scope.spawn(|| {
                loop {
                    let Some(seed) = left.lock().unwrap().next() else { return };
                    let mut tally = Tally::default();
                    let outcome = catch_unwind(AssertUnwindSafe(|| round(seed, plan(seed), &mut tally)));
                    let (total, found, failed) = &mut *all.lock().unwrap();
                    total.add(&tally);
                    match outcome {
                        Ok(overlaps) => found.extend(overlaps),
                        Err(_) => failed.push(seed),
                    }
                }
            });
        }
    });
    let (total, found, failed) = all.into_inner().unwrap();
    eprintln!("{total}{:6}  moments with two writers\n{}", found.len(), found.join("\n"));
    assert!(failed.is_empty(), "seeds that failed, each for KUBECTL_LEASE_SEED: {failed:?}");
}

fn who_follows_the_advice_has_one_writer() {
    let forces = std::env::var("KUBECTL_LEASE_OPERATOR").is_ok_and(|operator| operator == "force");
    let at_once = number("KUBECTL_LEASE_ROUNDS_AT_ONCE").unwrap_or(2);
    match number("KUBECTL_LEASE_ROUNDS") {
        Some(count) => rounds(seed(), count, at_once, |seed| Plan::new(seed, forces)),
        None => rounds(seed(), 2, at_once, |seed| Plan::short(seed, forces)),
    }
}

/// The control of the rounds: without it, that they find nothing would say nothing.
fn who_forces_is_found_out() {
    let mut plan = Plan::short(1, true);
    plan.events = vec![Event { at: Duration::ZERO, node: 0, deed: Deed::Partition }];
    let found = round(1, plan, &mut Tally::default());
    eprintln!("kubectl delete --force: {}", found.join("\n"));
    assert!(!found.is_empty(), "an operator who forces was not found out");
}

fn what_is_printed_is_read() {
    let printed = "\
default/db-0, risk of force-deleting it: critical
  node    node-1, silent
  why
  - StatefulSet/db starts the next pod. At once
  safer
  1. bring node-1 back: its kubelet then terminates the pod in order
       kubectl lease partitions node-1 -w
  2. power off the machine of node-1
error: default/db-0 was not deleted
hint: --confirm
";
    let way =
        |what: &str, command: Option<&str>| Way { what: what.into(), command: command.map(str::to_owned) };
    let ways = vec![
        way(
            "bring node-1 back: its kubelet then terminates the pod in order",
            Some("kubectl lease partitions node-1 -w"),
        ),
        way("power off the machine of node-1", None),
    ];
    assert_eq!(read(printed), Some(("critical".to_owned(), ways)));
    assert_eq!(read("error: there is no pod 'x'"), None);
}

fn a_seed_has_one_plan_and_seeds_have_all() {
    let mut seen = BTreeSet::new();
    for seed in 0..300 {
        let plan = Plan::new(seed, false);
        assert_eq!(format!("{plan:?}"), format!("{:?}", Plan::new(seed, false)));
        seen.extend(plan.events.iter().map(|event| format!("{:?}", event.deed)));
        seen.extend(plan.workloads.iter().map(|workload| workload.app.clone()));
        seen.extend(plan.workloads.iter().map(|workload| format!("{:?}", workload.habit)));
        seen.extend(plan.skews.map(|skew| format!("skew {skew}")));
        // Kubernetes itself would start a second one.
        let early = |workload: &&Workload| matches!(workload.app.as_str(), "recreate" | "job");
        assert!(plan.workloads.iter().filter(early).all(|workload| workload.stays));
    }
    let (deeds, apps, habits, skews) = (8, 7, 3, 5);
    assert_eq!(seen.len(), deeds + apps + habits + skews, "{seen:?}");
}
