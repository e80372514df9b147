//! What a test has to itself: two nodes, a namespace, and a disk that they share.
//!
//! The nodes come in pairs, which are used again by other tests: a machine takes seconds to boot. The
//! control plane is the same for all. A pod prefers the first node of its pair and never leaves the pair.
//!
//! A test runs a workload, does something to a node, has somebody act, and asks what the disk says:
//!
//! ```ignore
//! let mut stage = Stage::new();
//! let [a, b] = stage.names();
//! let first = stage.run(Kind::StatefulSet, "web");
//! stage.a().partition();
//! stage.await_unreachable(&a);
//! plugin().run(&["force-delete", "pod", &first.name, "-n", &stage.namespace, "--confirm"]).expect(6);
//! stage.a().heal();
//! stage.await_other_writer("web", &first.uid);
//! stage.assert_one_writer();
//! ```
//!
//! It is in the list `tests!` of its module, and the module's in `main`. `--nocapture` tells how long each
//! took; `KUBECTL_LEASE_KEEP=1` keeps everything for an hour where one has failed.

#![allow(dead_code)]

use std::{
    path::Path,
    process::{Command, Stdio},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    harness::{
        ControlPlane, Shape, User,
        disk::{self, Disk, Line},
        image::IMAGE,
        nodes::{self, Node},
        random,
    },
    plugin::{BINARY, Plugin},
};

/// What the control plane does within seconds where the machine is not busy.
pub const SOON: Duration = Duration::from_secs(60);

/// A node's label with the name of its pair.
const PAIR: &str = "kubectl-lease.dev/pair";

/// For how long the pods tolerate a node that is not ready or not reachable.
const TOLERATED_SECONDS: u32 = 2;

/// The control plane that tests share. It ends with the process, by the harness's guardian.
pub fn plane() -> &'static ControlPlane {
    static SHARED: OnceLock<ControlPlane> = OnceLock::new();
    SHARED.get_or_init(|| ControlPlane::start(&shape()))
}

/// One kube-apiserver, kube-controller-manager and kube-scheduler, at the pace of the nodes.
pub fn shape() -> Shape {
    Shape {
        managers: 1,
        controllers: nodes::CONTROLLERS,
        manager_flags: nodes::MANAGER_FLAGS,
        schedulers: 1,
        // Nothing waits for an election where there is one candidate.
        features: "CoordinatedLeaderElection=false",
        ..Shape::default()
    }
}

struct Pair {
    name: String,
    a: Node,
    b: Node,
}

static FREE: Mutex<Vec<Pair>> = Mutex::new(Vec::new());

impl Pair {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(1);
        let name = COUNT.fetch_add(1, Ordering::Relaxed).to_string();
        let label = format!("{PAIR}={name}");
        let node = |letter| Node::new(plane(), &format!("node-{name}{letter}"), std::slice::from_ref(&label));
        Self { a: node("a"), b: node("b"), name }
    }

    /// Two nodes that are ready, and that nothing keeps pods from.
    fn make_ready(&mut self) {
        for node in [&mut self.a, &mut self.b] {
            // A kubelet registers once, when it starts.
            let object = plane().kubectl(&["get", "node", &node.name, "--ignore-not-found", "-o", "name"]);
            if object.is_empty() && node.is_on() {
                node.crash();
            }
            node.repair();
            if !object.is_empty() {
                let patch = r#"{"spec":{"taints":null,"unschedulable":null}}"#;
                plane().kubectl(&["patch", "node", &node.name, "--type=merge", "-p", patch]);
            }
        }
        let selector = format!("{PAIR}={}", self.name);
        eventually(
            "both nodes are ready",
            SOON * 2,
            || {
                let list = get(&["nodes", "-l", &selector]);
                let items = list["items"].as_array().unwrap();
                items.len() == 2
                    && items
                        .iter()
                        .all(|node| condition(node, "Ready") == "True" && node["spec"]["taints"].is_null())
            },
            || {
                let nodes = plane().kubectl(&["describe", "nodes", "-l", &selector]);
                format!("{nodes}\n{}\n{}", self.a.logs(), self.b.logs())
            },
        );
    }
}

/// `kubectl get -o json`.
pub fn get(args: &[&str]) -> Value {
    let answer = plane().kubectl(&[&["get", "-o", "json"], args].concat());
    serde_json::from_str(&answer).unwrap()
}

/// The plugin, as the administrator.
pub fn plugin() -> Plugin {
    Plugin::new(plane().kubeconfig(User::Admin, 0))
}

/// A command as it is typed by the administrator, who presses Ctrl-C when it takes longer than that.
pub fn shell(command: &str, limit: Duration) -> Command {
    let mut shell = Command::new("timeout");
    shell.args(["--signal=INT", &limit.as_secs().to_string(), "sh", "-c", command]);
    let plugin = Path::new(BINARY).parent().unwrap();
    shell.env("PATH", format!("{}:{}:/usr/bin:/bin", plane().assets.display(), plugin.display()));
    shell.env("KUBECONFIG", plane().kubeconfig(User::Admin, 0)).env("HOME", &plane().folder);
    shell.stdin(Stdio::null());
    shell
}

/// Waits until a node is ready, and has the lease that its kubelet creates some seconds later: without one it would
/// be late after 40 seconds and not after 20.
pub fn await_ready(node: &str) {
    plane().kubectl(&["wait", "--for=condition=Ready", "--timeout=90s", "node", node]);
    let args = ["get", "lease", node, "-n", "kube-node-lease", "--ignore-not-found", "-o", "name"];
    eventually(&format!("{node} has a lease"), SOON, || !plane().kubectl(&args).is_empty(), String::new);
}

/// Waits until the plugin says this of a node: `silent`, `late`, `fenced`.
#[track_caller]
pub fn await_contact(node: &str, word: &str) {
    let said = || plugin().run(&["partitions", node, "--no-headers"]).stdout;
    let says = || said().split_whitespace().any(|said| said == word);
    eventually(&format!("{node} is {word}"), SOON * 2, says, said);
}

/// Has the kubelet of a node write times as if its clock were off by so many seconds, until `unskew`: the
/// clock is the machine's, and cannot be set for one node. It is the kube-apiserver that rewrites them.
pub fn skew(node: &str, seconds: i64) {
    let name = format!("skew-{node}");
    // A time with a fraction of six digits, and one without.
    let shifted = |time: &str, fraction: &str| {
        format!(
            r#"string(timestamp({time}.substring(0, 19) + "Z") + duration("{seconds}s")).substring(0, 19) + "{fraction}Z""#
        )
    };
    let lease = format!(
        r#"[JSONPatch{{op: "replace", path: "/spec/renewTime", value: {}}}]"#,
        shifted("object.spec.renewTime", ".000000")
    );
    let heartbeat = "object.status.conditions[n].lastHeartbeatTime";
    let status = format!(
        r#"[0, 1, 2, 3, 4, 5].filter(n, n < size(object.status.conditions)
           && object.status.conditions[n].type == "Ready"
           && !oldObject.?status.conditions.orValue([]).exists(old, old.type == "Ready"
             && old.lastHeartbeatTime == {heartbeat}))
         .map(n, JSONPatch{{op: "replace", path: "/status/conditions/" + string(n) + "/lastHeartbeatTime",
           value: {}}})"#,
        shifted(heartbeat, "")
    );
    for (resource, group, expression) in
        [("leases", "coordination.k8s.io", lease), ("nodes/status", "", status)]
    {
        let name = format!("{name}-{}", resource.replace('/', "-"));
        plane().apply(&json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
            "metadata": { "name": name },
            "spec": {
                "reinvocationPolicy": "Never",
                "matchConstraints": { "resourceRules": [{
                    "apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                    "resources": [resource], "resourceNames": [node],
                }] },
                "matchConditions": [
                    { "name": "kubelet", "expression": format!("request.userInfo.username == 'system:node:{node}'") },
                ],
                "mutations": [{ "patchType": "JSONPatch", "jsonPatch": { "expression": expression } }],
            },
        }));
        plane().apply(&json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
            "metadata": { "name": name }, "spec": { "policyName": name },
        }));
    }
    let times = || {
        let lease = get(&["lease", "-n", "kube-node-lease", node])["spec"]["renewTime"].clone();
        let object = get(&["node", node]);
        let conditions = object["status"]["conditions"].as_array().unwrap();
        let ready = conditions.iter().find(|condition| condition["type"] == "Ready").unwrap();
        [lease, ready["lastHeartbeatTime"].clone()]
    };
    let shifted = |time: &Value| {
        let time: jiff::Timestamp = time.as_str().unwrap().parse().unwrap();
        let ahead = time.duration_since(jiff::Timestamp::now()).as_secs();
        // It is written every five seconds.
        (seconds - 10..=seconds + 1).contains(&ahead)
    };
    eventually(
        &format!("{node} writes times that are {seconds} seconds ahead"),
        SOON,
        || times().iter().all(shifted),
        || format!("{:?}", times()),
    );
}

pub fn unskew(node: &str) {
    for kind in ["mutatingadmissionpolicybinding", "mutatingadmissionpolicy"] {
        for resource in ["leases", "nodes-status"] {
            plane().kubectl(&["delete", kind, &format!("skew-{node}-{resource}"), "--ignore-not-found"]);
        }
    }
}

/// The status of a condition of an object.
pub fn condition(object: &Value, name: &str) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == name);
    found.map_or_else(String::new, |condition| condition["status"].as_str().unwrap().to_owned())
}

/// Looks again and again, rarely enough to leave the machine to those that are looked at.
#[track_caller]
pub fn eventually(
    what: &str,
    within: Duration,
    condition: impl Fn() -> bool,
    state: impl Fn() -> String,
) -> Duration {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < within, "not within {within:?}: {what}\n{}", state());
        thread::sleep(Duration::from_millis(300));
    }
    began.elapsed()
}

/// What runs the pods, and which of them share a file because no two of them should run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file for each name of a pod.
    StatefulSet,
    /// A Deployment with the strategy Recreate: one file.
    Recreate,
    /// A Deployment whose pods may run beside each other: a file for each.
    Rolling,
    /// A file for each node.
    DaemonSet,
    /// One that does not end: one file.
    Job,
    /// Nothing: a file of its own.
    Pod,
}

impl Kind {
    /// The name of the file, as the shell in the pod works it out.
    fn file(self) -> &'static str {
        match self {
            Self::StatefulSet => "$POD_NAME",
            Self::Recreate | Self::Job | Self::Pod => "$APP",
            Self::Rolling => "$APP-$POD_UID",
            Self::DaemonSet => "$APP-$NODE_NAME",
        }
    }
}

/// The spec of the pods of a workload.
pub fn pod_spec_of(manifest: &mut Value) -> &mut Value {
    if manifest["kind"] == "Pod" { &mut manifest["spec"] } else { &mut manifest["spec"]["template"]["spec"] }
}

/// Has the pods of a workload ignore SIGTERM: they write until their grace period is over.
pub fn ignore_term(manifest: &mut Value, grace_seconds: u32) {
    let spec = pod_spec_of(manifest);
    spec["terminationGracePeriodSeconds"] = grace_seconds.into();
    let script = &mut spec["containers"][0]["command"][2];
    let mut ignoring = script.as_str().unwrap().to_owned();
    for code in [0, 1] {
        ignoring = ignoring.replacen(&format!("trap 'exit {code}' TERM"), "trap '' TERM", 1);
    }
    *script = ignoring.into();
}

/// A pod, as far as tests want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub name: String,
    pub uid: String,
    pub node: String,
    pub terminating: bool,
}

pub struct Stage {
    pub namespace: String,
    pub disk: Disk,
    pair: Option<Pair>,
}

impl Stage {
    /// Takes a pair of nodes that no test uses, and gives it back when it is dropped.
    pub fn new() -> Self {
        let free = FREE.lock().unwrap().pop();
        let mut pair = free.unwrap_or_else(Pair::new);
        pair.make_ready();
        for node in [&pair.a, &pair.b] {
            await_ready(&node.name);
        }
        let namespace = format!("nodes-{}", random());
        plane().kubectl(&["create", "namespace", &namespace]);
        let disk = Disk::new(&plane().folder.join("disks").join(&namespace));
        Self { namespace, disk, pair: Some(pair) }
    }

    /// The node that pods prefer.
    pub fn a(&mut self) -> &mut Node {
        &mut self.pair.as_mut().unwrap().a
    }

    /// The same, to look at.
    pub fn first(&self) -> &Node {
        &self.pair.as_ref().unwrap().a
    }

    pub fn b(&mut self) -> &mut Node {
        &mut self.pair.as_mut().unwrap().b
    }

    /// The first or the second of them.
    pub fn node(&mut self, n: usize) -> &mut Node {
        if n == 0 { self.a() } else { self.b() }
    }

    /// The labels that pods look for on a node, as `name=value`.
    pub fn labels(&self, n: usize) -> [String; 2] {
        let pair = &self.pair.as_ref().unwrap().name;
        [format!("{PAIR}={pair}"), format!("kubernetes.io/hostname={}", self.names()[n])]
    }

    /// The names of both.
    pub fn names(&self) -> [String; 2] {
        let pair = self.pair.as_ref().unwrap();
        [pair.a.name.clone(), pair.b.name.clone()]
    }

    /// kubectl, in the namespace.
    pub fn kubectl(&self, args: &[&str]) -> String {
        plane().kubectl(&[&["-n", &self.namespace], args].concat())
    }

    /// What writes lines to the disk until it is told to end: the spec of a pod.
    pub fn pod_spec(&self, app: &str, file: &str) -> Value {
        let pair = self.pair.as_ref().unwrap();
        let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
        let tolerate = |key: &str| {
            json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATED_SECONDS,
            })
        };
        let preferred = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": [pair.a.name] });
        json!({
            "hostNetwork": true,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": 5,
            "nodeSelector": { PAIR: pair.name },
            "affinity": { "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
                { "weight": 100, "preference": { "matchExpressions": [preferred] } },
            ] } },
            "tolerations": [tolerate("node.kubernetes.io/unreachable"), tolerate("node.kubernetes.io/not-ready")],
            "containers": [{
                "name": "writer", "image": IMAGE, "imagePullPolicy": "Never",
                "command": ["sh", "-c", disk::script(file)],
                "env": [
                    { "name": "APP", "value": app },
                    field("POD_NAME", "metadata.name"), field("POD_UID", "metadata.uid"),
                    field("NODE_NAME", "spec.nodeName"),
                ],
                "volumeMounts": [{ "name": "disk", "mountPath": "/disk" }],
            }],
            "volumes": [{ "name": "disk", "hostPath": { "path": self.disk.folder } }],
        })
    }

    /// A workload of one pod, to be changed before it is applied; its name is that of the label `app`.
    pub fn manifest(&self, kind: Kind, app: &str) -> Value {
        let spec = self.pod_spec(app, kind.file());
        let labels = json!({ "app": app });
        let metadata = json!({ "name": app, "namespace": self.namespace, "labels": labels });
        let template = json!({ "metadata": { "labels": labels }, "spec": spec });
        let selector = json!({ "matchLabels": labels });
        let (version, name, spec) = match kind {
            Kind::StatefulSet => (
                "apps/v1",
                "StatefulSet",
                json!({ "replicas": 1, "serviceName": app, "selector": selector, "template": template }),
            ),
            Kind::Recreate => (
                "apps/v1",
                "Deployment",
                json!({
                    "replicas": 1, "strategy": { "type": "Recreate" }, "selector": selector, "template": template,
                }),
            ),
            Kind::Rolling => (
                "apps/v1",
                "Deployment",
                json!({ "replicas": 1, "selector": selector, "template": template }),
            ),
            Kind::DaemonSet => {
                ("apps/v1", "DaemonSet", json!({ "selector": selector, "template": template }))
            }
            Kind::Job => {
                let mut template = template;
                template["spec"]["restartPolicy"] = "Never".into();
                // It does not count as done because it was ended.
                let script = &mut template["spec"]["containers"][0]["command"][2];
                *script = script.as_str().unwrap().replace("'exit 0' TERM", "'exit 1' TERM").into();
                ("batch/v1", "Job", json!({ "template": template }))
            }
            Kind::Pod => ("v1", "Pod", spec),
        };
        json!({ "apiVersion": version, "kind": name, "metadata": metadata, "spec": spec })
    }

    /// Applies a workload of one pod and waits until it writes, on the first node.
    pub fn run(&self, kind: Kind, app: &str) -> Seen {
        plane().apply(&self.manifest(kind, app));
        self.await_writer(app, &self.names()[0])
    }

    /// The pods of a workload.
    pub fn pods(&self, app: &str) -> Vec<Seen> {
        let list = get(&["pods", "-n", &self.namespace, "-l", &format!("app={app}")]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let seen = |pod: &Value| Seen {
            name: text(&pod["metadata"]["name"]),
            uid: text(&pod["metadata"]["uid"]),
            node: text(&pod["spec"]["nodeName"]),
            terminating: !pod["metadata"]["deletionTimestamp"].is_null(),
        };
        list["items"].as_array().unwrap().iter().map(seen).collect()
    }

    /// All that was written.
    fn lines(&self) -> Vec<Line> {
        self.disk.files().iter().flat_map(|file| self.disk.lines(file)).collect()
    }

    /// Waits until a pod of a workload writes on a node from now on, and is not Terminating.
    #[track_caller]
    pub fn await_writer(&self, app: &str, node: &str) -> Seen {
        let since = disk::now();
        let found = || {
            let lines = self.lines();
            let wrote = |pod: &Seen| {
                !pod.terminating
                    && pod.node == node
                    && lines.iter().any(|line| line.time >= since && line.uid == pod.uid && line.node == node)
            };
            // The disk is asked first: that costs nothing.
            if !lines.iter().any(|line| line.time >= since && line.node == node) {
                return None;
            }
            self.pods(app).into_iter().find(wrote)
        };
        eventually(
            &format!("a pod of {app} writes on {node}"),
            SOON,
            || found().is_some(),
            || self.describe(),
        );
        found().unwrap()
    }

    /// Waits until another pod of a workload than this writes, on whichever node.
    #[track_caller]
    pub fn await_other_writer(&self, app: &str, uid: &str) -> Seen {
        let found = || {
            let lines = self.lines();
            let wrote = |pod: &Seen| pod.uid != uid && lines.iter().any(|line| line.uid == pod.uid);
            let another = lines.iter().any(|line| line.uid != uid);
            if another { self.pods(app).into_iter().find(wrote) } else { None }
        };
        eventually(&format!("another pod of {app} writes"), SOON, || found().is_some(), || self.describe());
        found().unwrap()
    }

    /// Waits until a pod has not written for a second.
    #[track_caller]
    pub fn await_end_of(&self, uid: &str) {
        let last = || self.lines().into_iter().filter(|line| line.uid == uid).map(|line| line.time).max();
        eventually(
            &format!("pod {uid} does not write any more"),
            SOON,
            || last().is_none_or(|last| disk::now() > last + 100),
            || self.describe(),
        );
    }

    /// Waits until the node controller has given a node up.
    #[track_caller]
    pub fn await_unreachable(&self, node: &str) {
        let args = ["wait", "--for=condition=Ready=Unknown", "--timeout=90s", "node", node];
        plane().kubectl(&args);
        self.await_taint(node, "node.kubernetes.io/unreachable", "NoExecute");
    }

    #[track_caller]
    fn await_taint(&self, node: &str, key: &str, effect: &str) {
        let tainted = || {
            let taints = get(&["node", node])["spec"]["taints"].as_array().cloned().unwrap_or_default();
            taints.iter().any(|taint| taint["key"] == key && taint["effect"] == effect)
        };
        eventually(&format!("{node} is tainted {key}"), SOON, tainted, || self.describe());
    }

    /// Waits until a pod is Terminating.
    #[track_caller]
    pub fn await_terminating(&self, app: &str, uid: &str) {
        let terminating = || self.pods(app).iter().any(|pod| pod.uid == uid && pod.terminating);
        eventually(&format!("{uid} is Terminating"), SOON, terminating, || self.describe());
    }

    /// The checker finds no moment with two writers.
    #[track_caller]
    pub fn assert_one_writer(&self) {
        let found = self.disk.findings();
        assert!(found.is_empty(), "{}\n{}", found.join("\n"), self.describe());
        assert!(!self.lines().is_empty(), "nothing was written: there is nothing to find");
    }

    /// For the message of a failure.
    pub fn describe(&self) -> String {
        let all = self.kubectl(&["get", "all,events", "-o", "wide"]);
        let nodes = plane().kubectl(&["get", "nodes", "-o", "wide"]);
        let pair = self.pair.as_ref().unwrap();
        format!("{nodes}\n{all}\n{}\n{}\n{}", self.disk.describe(), pair.a.logs(), pair.b.logs())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if thread::panicking() && std::env::var_os("KUBECTL_LEASE_KEEP").is_some() {
            eprintln!("kept for an hour, to be looked at: {}", plane().folder.display());
            thread::sleep(Duration::from_secs(3600));
        }
        // Whatever became of it: the nodes are for others now.
        let _ = Command::new(plane().assets.join("kubectl"))
            .args(["delete", "namespace", &self.namespace, "--wait=false", "--request-timeout=10s"])
            .env("KUBECONFIG", plane().kubeconfig(User::Admin, 0))
            .stdout(Stdio::null())
            .status();
        let pair = self.pair.take().unwrap();
        for node in [&pair.a, &pair.b] {
            node.remove_static_pods();
        }
        FREE.lock().unwrap().push(pair);
    }
}
