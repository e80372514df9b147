//! How long, and how much memory: the plugin, kubectl and curl, asking the same server for the same
//! in the same run. `make bench` runs it; the ratios are what counts, not this machine's numbers.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, clippy::cast_precision_loss)]

#[path = "../tests/harness/mod.rs"]
mod harness;

use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use futures::{StreamExt as _, stream};
use harness::{ControlPlane, Shape, User};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use wait4::Wait4 as _;

const ROUNDS: usize = 30;
const MANY: usize = 5_000;
const CANDIDATES: usize = 1_000;
/// For one lease.
const RIVALS: usize = 10;
const NODES: usize = 1_000;
/// As many as `maint acquire` writes at once.
const AT_ONCE: usize = 32;

fn main() {
    // Cargo passes `--bench`, and runs this in `cargo test --benches` too: there it has nothing to do.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    if std::env::args().any(|argument| argument == "partitions") {
        return partitions();
    }
    eprintln!("Starting a control plane …");
    let plane = ControlPlane::start(&Shape::default());
    start(&plane);
    apiservers("one identity lease", &plane);
    eprintln!("Writing {MANY} identity leases …");
    let raw = Raw::new(&plane);
    write_leases(&raw);
    apiservers(&format!("{MANY} identity leases"), &plane);
    eprintln!("Writing {CANDIDATES} candidates …");
    write_candidates(&raw);
    candidates(&format!("{CANDIDATES} candidates and {MANY} leases"), &plane);
    eprintln!("Writing {NODES} nodes …");
    acquire_all(&plane, &raw);
    waiter(&plane);
    drop(plane);
    partitions();
}

/// A command to measure; all write to /dev/null.
struct Contender<'a> {
    name: &'a str,
    program: &'a Path,
    args: Vec<String>,
    times: Vec<Duration>,
    /// What it took of the processor, in user and system time.
    processor: Vec<Duration>,
    /// The most memory it took in any round, in bytes.
    memory: u64,
}

impl<'a> Contender<'a> {
    fn new(name: &'a str, program: &'a Path, args: &[&str]) -> Self {
        let args = args.iter().map(|argument| (*argument).to_owned()).collect();
        Self { name, program, args, times: Vec::new(), processor: Vec::new(), memory: 0 }
    }

    fn run(&mut self, kubeconfig: &Path) {
        let began = Instant::now();
        let mut child = Command::new(self.program)
            .args(&self.args)
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let used = child.wait4().unwrap();
        self.times.push(began.elapsed());
        assert!(used.status.success(), "{} failed", self.name);
        self.processor.push(used.rusage.utime + used.rusage.stime);
        self.memory = self.memory.max(used.rusage.maxrss);
    }

    fn median(&self) -> f64 {
        median(&self.times)
    }
}

fn median(times: &[Duration]) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

/// Doing nothing but starting, and what the binary weighs.
fn start(plane: &ControlPlane) {
    let (ours, kubectl) = (Path::new(env!("CARGO_BIN_EXE_kubectl-lease")), plane.assets.join("kubectl"));
    let mut contenders = [
        Contender::new("kubectl-lease --version", ours, &["--version"]),
        Contender::new("kubectl version --client", &kubectl, &["version", "--client"]),
    ];
    for _ in 0..ROUNDS {
        for contender in &mut contenders {
            contender.run(&plane.kubeconfig(User::Admin, 0));
        }
    }
    let [ours_took, kubectl_took] = contenders.each_ref().map(|it| (it.median(), median(&it.processor)));
    let weight = std::fs::metadata(ours).unwrap().len() as f64 / 1e6;
    println!("\nstarting, median of {ROUNDS} runs");
    println!(
        "  kubectl-lease --version: {:.1} ms, of which {:.1} ms of the processor",
        ours_took.0 * 1e3,
        ours_took.1 * 1e3
    );
    println!(
        "  {:.1}x faster than kubectl version --client; the binary has {weight:.1} MB",
        kubectl_took.0 / ours_took.0
    );
    assert!(weight <= 10.0, "the binary is to have at most 10 MB");
}

fn apiservers(case: &str, plane: &ControlPlane) {
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    compare(case, plane, "apiservers", &[leases], &["get", "leases", "-n", "kube-system"]);
}

fn candidates(case: &str, plane: &ControlPlane) {
    let lists = ["/apis/coordination.k8s.io/v1beta1/leasecandidates", "/apis/coordination.k8s.io/v1/leases"];
    compare(case, plane, "candidates", &lists, &["get", "leasecandidates,leases", "-A"]);
}

/// The plugin's command, curl of what it has to read, and the kubectl command nearest to it.
fn compare(case: &str, plane: &ControlPlane, command: &str, paths: &[&str], kubectl_args: &[&str]) {
    let kubeconfig = plane.kubeconfig(User::Admin, 0);
    let file = |name: &str| plane.folder.join(name).display().to_string();
    let kubectl = plane.assets.join("kubectl");
    let (ca, certificate, key) = (file("ca.crt"), file("admin.crt"), file("admin.key"));
    let urls: Vec<_> = paths.iter().map(|path| plane.url(0) + path).collect();
    let mut curl = vec!["--silent", "--cacert", &ca, "--cert", &certificate, "--key", &key];
    curl.extend(urls.iter().map(String::as_str));
    let (our_name, kubectl_name) =
        (format!("kubectl lease {command}"), format!("kubectl {}", kubectl_args[..2].join(" ")));
    let mut contenders = [
        Contender::new(&our_name, Path::new(env!("CARGO_BIN_EXE_kubectl-lease")), &[command]),
        Contender::new("curl", Path::new("curl"), &curl),
        Contender::new(&kubectl_name, &kubectl, kubectl_args),
    ];
    // The first round only warms up; in the others they take turns, so that a disturbance hits all.
    for round in 0..=ROUNDS {
        for contender in &mut contenders {
            contender.run(&kubeconfig);
            if round == 0 {
                contender.times.clear();
            }
        }
    }
    println!("\n{case}, median of {ROUNDS} runs");
    println!("  {:36}{:>12}{:>10}{:>14}{:>10}", "", "wall time", "ratio", "peak memory", "ratio");
    let (time, memory) = (contenders[0].median(), contenders[0].memory);
    for contender in &contenders {
        println!(
            "  {:36}{:>9.1} ms{:>9.2}x{:>11.1} MB{:>9.2}x",
            contender.name,
            contender.median() * 1e3,
            contender.median() / time,
            contender.memory as f64 / 1e6,
            contender.memory as f64 / memory as f64,
        );
    }
    let [ours, curl, kubectl] = contenders.each_ref().map(Contender::median);
    println!("  {:.2}x the time of curl, {:.1}x faster than kubectl", ours / curl, kubectl / ours);
}

fn write_leases(raw: &Raw) {
    let lease = |n: usize| {
        let now = format!("{:.6}", jiff::Timestamp::now());
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {
                "name": format!("apiserver-bench-{n:05}"),
                "labels": {
                    "apiserver.kubernetes.io/identity": "kube-apiserver",
                    "kubernetes.io/hostname": format!("bench-{n:05}"),
                },
            },
            "spec": {
                "holderIdentity": format!("apiserver-bench-{n:05}_{n:036}"),
                "leaseDurationSeconds": 3600, "renewTime": now,
            },
        })
    };
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    raw.send((0..MANY).map(|n| post(leases, &lease(n))).collect());
}

/// Candidates for leases that the best of them holds, so that nothing is elected meanwhile.
fn write_candidates(raw: &Raw) {
    let now = || format!("{:.6}", jiff::Timestamp::now());
    let candidate = |n: usize| {
        let (lease, rival) = (n / RIVALS, n % RIVALS);
        json!({
            "apiVersion": "coordination.k8s.io/v1beta1", "kind": "LeaseCandidate",
            "metadata": { "name": format!("host-{rival}_{n:036}") },
            "spec": {
                "leaseName": format!("bench-{lease:03}"), "renewTime": now(), "binaryVersion": "1.37.1",
                "emulationVersion": format!("1.{}.0", 20 + rival), "strategy": "OldestEmulationVersion",
            },
        })
    };
    let lease = |n: usize| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": format!("bench-{n:03}") },
            "spec": {
                "holderIdentity": format!("host-0_{:036}", n * RIVALS), "leaseDurationSeconds": 3600,
                "renewTime": now(), "strategy": "OldestEmulationVersion",
            },
        })
    };
    let path = |version: &str, plural: &str| {
        format!("/apis/coordination.k8s.io/{version}/namespaces/default/{plural}")
    };
    let leases = path("v1", "leases");
    raw.send((0..CANDIDATES / RIVALS).map(|n| post(&leases, &lease(n))).collect());
    let candidates = path("v1beta1", "leasecandidates");
    raw.send((0..CANDIDATES).map(|n| post(&candidates, &candidate(n))).collect());
}

fn post(path: &str, body: &serde_json::Value) -> http::Request<Vec<u8>> {
    let request = http::Request::post(path).header("content-type", "application/json");
    request.body(body.to_string().into_bytes()).unwrap()
}

/// A client of our own, for raw writes.
struct Raw {
    runtime: tokio::runtime::Runtime,
    client: Client,
}

impl Raw {
    fn new(plane: &ControlPlane) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let kubeconfig = Kubeconfig::read_from(plane.kubeconfig(User::Admin, 0)).unwrap();
            let config =
                Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
            Client::try_from(config).unwrap()
        });
        Self { runtime, client }
    }

    /// Sends these requests, so many at once; how long it took.
    fn send(&self, requests: Vec<http::Request<Vec<u8>>>) -> Duration {
        let began = Instant::now();
        self.runtime.block_on(async {
            let sending =
                stream::iter(requests).map(|request| self.client.request::<serde_json::Value>(request));
            sending.buffer_unordered(AT_ONCE).for_each(async |answer| drop(answer.unwrap())).await;
        });
        began.elapsed()
    }
}

fn node_name(n: usize) -> String {
    format!("bench-{n:04}")
}

/// `maint acquire --all` beside the bare writes that it comes down to.
fn acquire_all(plane: &ControlPlane, raw: &Raw) {
    const ROUNDS: usize = 7;
    let node = |n| json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": node_name(n) } });
    raw.send((0..NODES).map(|n| post("/api/v1/nodes", &node(n))).collect());
    let plugin = |verb: &str| {
        let began = Instant::now();
        let output = Command::new(env!("CARGO_BIN_EXE_kubectl-lease"))
            .args(["maint", verb, "--all"])
            .env("KUBECONFIG", plane.kubeconfig(User::Admin, 0))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        began.elapsed()
    };
    plugin("acquire");
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plugin("release");
        ours.push(plugin("acquire"));
        let now = format!("{:.6}", jiff::Timestamp::now());
        let patch = json!({ "spec": {
            "holderIdentity": "bench", "leaseDurationSeconds": 1, "acquireTime": now, "renewTime": now, "leaseTransitions": 1,
        } });
        plugin("release");
        let requests = (0..NODES).map(|n| {
            let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-maintenance/leases";
            http::Request::patch(format!("{leases}/{}", node_name(n)))
                .header("content-type", "application/merge-patch+json")
                .body(patch.to_string().into_bytes())
                .unwrap()
        });
        bare.push(raw.send(requests.collect()));
        // What the bare writes took has to expire.
        std::thread::sleep(Duration::from_secs(5));
    }
    let median = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64() * 1e3
    };
    let (ours, bare) = (median(ours), median(bare));
    println!("\n{NODES} nodes, {AT_ONCE} at once, median of {ROUNDS} runs");
    println!("  {:34}{ours:>9.1} ms", "kubectl lease maint acquire --all");
    println!("  {:34}{bare:>9.1} ms", "the bare writes");
    println!("  {:.2}x the time of the bare writes", ours / bare);
}

/// From a release to the takeover by somebody who waits.
fn waiter(plane: &ControlPlane) {
    const ROUNDS: usize = 20;
    let node = node_name(0);
    let plugin = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-lease"));
        command
            .args(args)
            .env("KUBECONFIG", plane.kubeconfig(User::Admin, 0))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    let spec = || -> serde_json::Value {
        let text = plane.kubectl(&["get", "lease", "-n", "kube-node-maintenance", &node, "-o", "json"]);
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["spec"].clone()
    };
    let time = |value: &serde_json::Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let mut latencies: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            assert!(plugin(&["maint", "acquire", &node, "--holder", "a"]).status().unwrap().success());
            let mut waiting =
                plugin(&["maint", "acquire", &node, "--holder", "b", "--wait=1m"]).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(500));
            // Both times are of this machine's one clock.
            let released = jiff::Timestamp::now();
            assert!(plugin(&["maint", "release", &node, "--holder", "a"]).status().unwrap().success());
            assert!(waiting.wait().unwrap().success());
            let taken = time(&spec()["acquireTime"]);
            assert!(plugin(&["maint", "release", &node, "--holder", "b"]).status().unwrap().success());
            taken.duration_since(released).as_secs_f64() * 1e3
        })
        .collect();
    latencies.sort_by(f64::total_cmp);
    println!("\nfrom starting 'maint release' to the takeover by a waiter, {ROUNDS} runs");
    println!("  median {:.1} ms, worst {:.1} ms", latencies[ROUNDS / 2], latencies[ROUNDS - 1]);
}

/// `partitions` beside what shows the same pods without judging them: on a control plane of its own,
/// because it looks at all nodes. `cargo bench --bench compare -- partitions` runs it alone.
fn partitions() {
    const ROUNDS: usize = 7;
    const NODES: usize = 500;
    const PODS: usize = 15_000;
    const SILENT: usize = 5;
    eprintln!("Starting a control plane, and writing {NODES} nodes and {PODS} pods …");
    let plane = ControlPlane::start(&Shape::default());
    let raw = Raw::new(&plane);
    // Nobody renews them here, so that they are well for an hour; the silent ones were given up.
    let now = jiff::Timestamp::now();
    let beat = |n: usize| now + jiff::SignedDuration::from_mins(if n < SILENT { -60 } else { 60 });
    let node = |n: usize| {
        let status = if n < SILENT { "Unknown" } else { "True" };
        let time = format!("{:.0}", beat(n));
        json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": node_name(n) },
            "status": { "conditions": [
                { "type": "Ready", "status": status, "lastHeartbeatTime": time, "lastTransitionTime": time },
            ] },
        })
    };
    let lease = |n: usize| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": node_name(n) },
            "spec": {
                "holderIdentity": node_name(n), "leaseDurationSeconds": 40, "renewTime": format!("{:.6}", beat(n)),
            },
        })
    };
    let pod = |n: usize| {
        let env: Vec<_> =
            (0..6).map(|n| json!({ "name": format!("SETTING_{n}"), "value": "a value" })).collect();
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": format!("shop-7d9c6b5f4-{n:05}"),
                "labels": { "app.kubernetes.io/name": "shop", "pod-template-hash": "7d9c6b5f4" },
            },
            "spec": {
                "nodeName": node_name(n % NODES),
                "containers": [{
                    "name": "main", "image": "registry.example/shop:1.2.3", "env": env,
                    "resources": { "requests": { "cpu": "100m", "memory": "128Mi" } },
                    "volumeMounts": [{ "name": "config", "mountPath": "/etc/shop" }],
                }],
                "volumes": [{ "name": "config", "configMap": { "name": "shop" } }],
            },
        })
    };
    raw.send((0..NODES).map(|n| post("/api/v1/nodes", &node(n))).collect());
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    raw.send((0..NODES).map(|n| post(leases, &lease(n))).collect());
    raw.send((0..PODS).map(|n| post("/api/v1/namespaces/default/pods", &pod(n))).collect());

    let kubectl = plane.assets.join("kubectl");
    let plugin = Path::new(env!("CARGO_BIN_EXE_kubectl-lease"));
    let mut contenders = [
        Contender::new("kubectl lease partitions", plugin, &["partitions"]),
        Contender::new("kubectl get pods -A", &kubectl, &["get", "pods", "-A"]),
    ];
    for round in 0..=ROUNDS {
        for contender in &mut contenders {
            contender.run(&plane.kubeconfig(User::Admin, 0));
            if round == 0 {
                contender.times.clear();
            }
        }
    }
    println!("\n{NODES} nodes, {SILENT} of them silent, {PODS} pods, median of {ROUNDS} runs");
    for contender in &contenders {
        let (time, memory) = (contender.median() * 1e3, contender.memory as f64 / 1e6);
        println!("  {:26}{time:>9.1} ms{memory:>11.1} MB", contender.name);
    }
    let [ours, theirs] = &contenders;
    println!(
        "  {:.2}x the time of kubectl, {:.2}x its memory",
        ours.median() / theirs.median(),
        ours.memory as f64 / theirs.memory as f64
    );
}
