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

fn main() {
    // Cargo passes `--bench`, and runs this in `cargo test --benches` too: there it has nothing to do.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    eprintln!("Starting a control plane …");
    let plane = ControlPlane::start(&Shape::default());
    compare("one identity lease", &plane);
    eprintln!("Writing {MANY} identity leases …");
    write_leases(&plane);
    compare(&format!("{MANY} identity leases"), &plane);
}

/// A command to measure; all write to /dev/null.
struct Contender<'a> {
    name: &'a str,
    program: &'a Path,
    args: Vec<String>,
    times: Vec<Duration>,
    /// The most memory it took in any round, in bytes.
    memory: u64,
}

impl<'a> Contender<'a> {
    fn new(name: &'a str, program: &'a Path, args: &[&str]) -> Self {
        let args = args.iter().map(|argument| (*argument).to_owned()).collect();
        Self { name, program, args, times: Vec::new(), memory: 0 }
    }

    fn run(&mut self, kubeconfig: &Path) {
        let began = Instant::now();
        let mut child = Command::new(self.program)
            .args(&self.args)
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let used = child.wait4().unwrap();
        self.times.push(began.elapsed());
        assert!(used.status.success(), "{} failed", self.name);
        self.memory = self.memory.max(used.rusage.maxrss);
    }

    fn median(&self) -> f64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64()
    }
}

fn compare(case: &str, plane: &ControlPlane) {
    let kubeconfig = plane.kubeconfig(User::Admin, 0);
    let file = |name: &str| plane.folder.join(name).display().to_string();
    let url = format!("{}/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", plane.url(0));
    let kubectl = plane.assets.join("kubectl");
    let (ca, certificate, key) = (file("ca.crt"), file("admin.crt"), file("admin.key"));
    let mut contenders = [
        Contender::new(
            "kubectl lease apiservers",
            Path::new(env!("CARGO_BIN_EXE_kubectl-lease")),
            &["apiservers"],
        ),
        Contender::new(
            "curl",
            Path::new("curl"),
            &["--silent", "--cacert", &ca, "--cert", &certificate, "--key", &key, &url],
        ),
        Contender::new("kubectl get leases", &kubectl, &["get", "leases", "-n", "kube-system"]),
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
    println!("  {:26}{:>12}{:>10}{:>14}{:>10}", "", "wall time", "ratio", "peak memory", "ratio");
    let (time, memory) = (contenders[0].median(), contenders[0].memory);
    for contender in &contenders {
        println!(
            "  {:26}{:>9.1} ms{:>9.2}x{:>11.1} MB{:>9.2}x",
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

fn write_leases(plane: &ControlPlane) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let kubeconfig = Kubeconfig::read_from(plane.kubeconfig(User::Admin, 0)).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        let writes = stream::iter(0..MANY).map(|n| {
            let client = client.clone();
            async move {
                let now = format!("{:.6}", jiff::Timestamp::now());
                let lease = json!({
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
                });
                let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
                let request = http::Request::post(path).header("content-type", "application/json");
                let request = request.body(lease.to_string().into_bytes()).unwrap();
                client.request::<serde_json::Value>(request).await.unwrap();
            }
        });
        writes.buffer_unordered(20).collect::<Vec<_>>().await;
    });
}
