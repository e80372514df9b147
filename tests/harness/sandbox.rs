//! A control plane to play with.
//!
//!   sandbox up      starts one in the background and says how to use it
//!   sandbox down    ends it
//!   sandbox run     runs one until its standard input closes

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    clippy::zombie_processes
)]

#[path = "mod.rs"]
mod harness;

use std::{
    fs,
    io::Write as _,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use harness::{ControlPlane, Shape, User};
use jiff::{SignedDuration, Timestamp};
use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};
use serde_json::{Value, json};

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("up") => up(),
        Some("down") => down(),
        Some("run") => run(),
        _ => {
            eprintln!("usage: sandbox up|down|run");
            ExitCode::from(2)
        }
    }
}

/// Said by `up` to `run` once the control plane is up.
const STAY: &str = "stay\n";

/// One sandbox for each checkout.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target").join("sandbox")
}

fn run() -> ! {
    // Whoever started this holds the other end of our standard input, and either tells us to stay or
    // goes away, by Ctrl-C, a deadline or a crash. Then this goes too, and the guardian cleans up.
    std::thread::spawn(|| {
        let mut word = String::new();
        if !std::io::stdin().read_line(&mut word).is_ok_and(|_| word == STAY) {
            std::process::exit(1);
        }
    });
    fs::create_dir_all(folder()).unwrap();
    fs::write(folder().join("pid"), std::process::id().to_string()).unwrap();
    let plane = ControlPlane::start_in(&folder(), &Shape { apiservers: 3, managers: 3, ..Shape::default() });
    plane.kubectl(&["apply", "-f", concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guard.yaml")]);
    plane.apply(&nodes());
    fs::write(folder().join("ready"), plane.assets.display().to_string()).unwrap();
    loop {
        beat(&plane);
        std::thread::sleep(BEAT);
    }
}

/// As often as a kubelet.
const BEAT: Duration = Duration::from_secs(10);
/// There are no kubelets: this process beats for these, and lets one be dead.
const LIVING: [&str; 2] = ["node-1", "node-2"];
const DEAD: &str = "node-3";

fn nodes() -> Value {
    let node = |name: &str, ready: &str, heard: Timestamp| {
        let time = format!("{heard:.0}");
        json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
            "status": { "conditions": [{
                "type": "Ready", "status": ready, "reason": "Sandbox", "message": "",
                "lastHeartbeatTime": time, "lastTransitionTime": time,
            }] },
        })
    };
    let (now, long_ago) = (Timestamp::now(), Timestamp::now() - SignedDuration::from_mins(10));
    let mut items: Vec<Value> = LIVING.iter().map(|name| node(name, "True", now)).collect();
    items.extend([node(DEAD, "Unknown", long_ago), heartbeat(DEAD, long_ago)]);
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}

fn heartbeat(node: &str, time: Timestamp) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": node, "namespace": "kube-node-lease" },
        "spec": { "holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": format!("{time:.6}") },
    })
}

/// Renews the heartbeats, by whichever kube-apiserver is not just killed.
fn beat(plane: &ControlPlane) {
    let beats: Vec<Value> = LIVING.iter().map(|node| heartbeat(node, Timestamp::now())).collect();
    let file = folder().join("heartbeats.json");
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": beats });
    fs::write(&file, list.to_string()).unwrap();
    for n in 0..plane.apiservers.len() {
        let renewed = Command::new(plane.assets.join("kubectl"))
            .args(["apply", "--request-timeout=5s", "-f"])
            .arg(&file)
            .env("KUBECONFIG", plane.kubeconfig(User::Admin, n))
            .env("HOME", folder())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if renewed.is_ok_and(|status| status.success()) {
            break;
        }
    }
}

fn up() -> ExitCode {
    let folder = folder();
    if folder.exists() {
        eprintln!("A sandbox is there already, in {}. 'make sandbox-down' ends it.", folder.display());
        return ExitCode::FAILURE;
    }
    eprintln!("Starting etcd, 3 kube-apiservers and 3 kube-controller-managers …");
    let log = folder.with_extension("log");
    let mut background = Command::new(std::env::current_exe().unwrap())
        .arg("run")
        .stdin(Stdio::piped())
        .stdout(fs::File::create(&log).unwrap())
        .stderr(fs::File::options().append(true).open(&log).unwrap())
        .process_group(0)
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while !folder.join("ready").exists() {
        if background.try_wait().unwrap().is_some() || Instant::now() > deadline {
            eprintln!("It did not start:\n{}", fs::read_to_string(&log).unwrap_or_default());
            drop(background.stdin.take());
            let _ = background.wait();
            await_end(&folder);
            return ExitCode::FAILURE;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    background.stdin.take().unwrap().write_all(STAY.as_bytes()).unwrap();
    let assets = fs::read_to_string(folder.join("ready")).unwrap();
    let kubeconfig = |user: User| folder.join(format!("{}-1.kubeconfig", user.name())).display().to_string();
    println!("The control plane is up: cp-1, cp-2 and cp-3, with the nodes node-1, node-2, and node-3,");
    println!("which nobody has heard of for ten minutes. Use it with");
    println!();
    println!("  export KUBECONFIG={}", kubeconfig(User::Admin));
    println!("  export PATH={assets}:{}:$PATH", folder.with_file_name("release").display());
    println!();
    println!("As somebody without rights:  --kubeconfig {}", kubeconfig(User::Nobody));
    println!("Kill an apiserver:           kill -9 $(cat {}/cp-3/pid)", folder.display());
    println!("Start it again:              {}/cp-3/run >/dev/null 2>&1 &", folder.display());
    println!("End the control plane:       make sandbox-down");
    ExitCode::SUCCESS
}

fn down() -> ExitCode {
    let folder = folder();
    if !folder.exists() {
        eprintln!("No sandbox is running.");
        return ExitCode::FAILURE;
    }
    // A number in a file may be somebody else's by now, after a restart of the machine for one.
    let owner = fs::read_to_string(folder.join("pid")).unwrap_or_default();
    if is_running(&owner, "examples/sandbox") {
        let _ = kill(Pid::from_raw(owner.trim().parse().unwrap()), Signal::SIGTERM);
        await_end(&folder);
    }
    if folder.exists() {
        // Its guardian is gone: what it would have done.
        for server in fs::read_dir(&folder).unwrap().flatten() {
            for file in ["group", "pid"] {
                let id = fs::read_to_string(server.path().join(file)).unwrap_or_default();
                if is_running(&id, &folder.display().to_string()) {
                    let id = Pid::from_raw(id.trim().parse().unwrap());
                    if killpg(id, Signal::SIGKILL).is_err() {
                        let _ = kill(id, Signal::SIGKILL);
                    }
                }
            }
        }
        std::thread::sleep(Duration::from_millis(200));
        if let Err(error) = fs::remove_dir_all(&folder) {
            eprintln!("{} cannot be removed: {error}", folder.display());
            return ExitCode::FAILURE;
        }
    }
    println!("The control plane has ended.");
    ExitCode::SUCCESS
}

/// Waits until the guardian has cleaned up, or seems to be gone.
fn await_end(folder: &Path) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while folder.exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Whether a process runs, and is the one that was meant: its command line mentions `word`.
fn is_running(id: &str, word: &str) -> bool {
    let id = id.trim();
    if !id.parse::<i32>().is_ok_and(|id| id > 0) {
        return false;
    }
    let arguments = fs::read(format!("/proc/{id}/cmdline")).or_else(|_| {
        Command::new("ps").args(["-ww", "-o", "args=", "-p", id]).output().map(|output| output.stdout)
    });
    arguments.is_ok_and(|arguments| String::from_utf8_lossy(&arguments).contains(word))
}
