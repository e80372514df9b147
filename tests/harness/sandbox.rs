//! A control plane to play with, and real nodes where they are wanted.
//!
//!   sandbox up [NODES]             starts one in the background and says how to use it
//!   sandbox down                   ends it
//!   sandbox run [NODES]            runs one until its standard input closes
//!   sandbox missing                says what this machine lacks to run real nodes; fails if it lacks any
//!   sandbox histories FILE=NAME…   which pods wrote to files of the nodes' disk, side by side

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    clippy::zombie_processes
)]

#[path = "mod.rs"]
mod harness;

#[cfg(target_os = "linux")]
#[path = "machines.rs"]
mod machines;

/// There are none, and `missing` keeps them from being asked for.
#[cfg(not(target_os = "linux"))]
mod machines {
    use std::path::{Path, PathBuf};

    use crate::harness::{ControlPlane, Shape};

    pub fn missing(_: &Path) -> Option<String> {
        Some("containers need Linux".to_owned())
    }

    pub fn shape() -> Shape {
        Shape::default()
    }

    pub struct Machines;

    impl Machines {
        pub fn start(_: &ControlPlane, _: &[String]) -> Self {
            Self
        }

        pub fn heed_switches(&mut self) {}
    }

    pub fn disk_folder(sandbox: &Path) -> PathBuf {
        sandbox.join("disk")
    }

    pub fn usage(_: &Path, _: &[String]) -> String {
        String::new()
    }
}

use std::{
    fs,
    io::Write as _,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use harness::{ControlPlane, Shape, User, disk};
use jiff::{SignedDuration, Timestamp};
use machines::Machines;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(end) = harness::nodes::relay() {
        return end;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["up"] => up(0),
        ["run"] => run(0),
        [mode @ ("up" | "run"), count] => match count.parse() {
            Ok(count) if count <= MOST_NODES && mode == "up" => up(count),
            Ok(count) if count <= MOST_NODES => run(count),
            _ => {
                eprintln!("error: NODES is a number up to {MOST_NODES}, not '{count}'");
                ExitCode::from(2)
            }
        },
        ["down"] => down(),
        ["missing"] => match machines::missing(&folder()) {
            Some(missing) => {
                println!("{missing}");
                ExitCode::FAILURE
            }
            None => ExitCode::SUCCESS,
        },
        ["histories", ref files @ ..] if !files.is_empty() => histories(files),
        _ => {
            eprintln!("usage: sandbox up [NODES] | down | run [NODES] | missing | histories FILE=NAME…");
            ExitCode::from(2)
        }
    }
}

/// Each is a kubelet and a containerd, and all are on one machine.
const MOST_NODES: usize = 5;

/// Said by `up` to `run` once the control plane is up.
const STAY: &str = "stay\n";

/// One sandbox for each checkout.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target").join("sandbox")
}

fn run(nodes: usize) -> ! {
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
    let shape = if nodes > 0 { machines::shape() } else { Shape::default() };
    let shape = Shape { apiservers: 3, managers: 3, ..shape };
    let plane = ControlPlane::start_in(&folder(), &shape);
    plane.kubectl(&["apply", "-f", concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guard.yaml")]);
    plane.apply(&objects(nodes));
    let mut machines = (nodes > 0).then(|| Machines::start(&plane, &real(nodes)));
    fs::write(folder().join("ready"), plane.assets.display().to_string()).unwrap();
    loop {
        if let Some(machines) = &mut machines {
            machines.heed_switches();
            std::thread::sleep(LOOK);
        } else {
            beat(&plane);
            std::thread::sleep(BEAT);
        }
    }
}

/// As often as a kubelet.
const BEAT: Duration = Duration::from_secs(10);
/// How soon a machine that is switched off or on does so.
const LOOK: Duration = Duration::from_millis(200);
/// Without real nodes there are no kubelets: this process beats for these, and lets one be dead.
const LIVING: [&str; 2] = ["node-1", "node-2"];

/// The names of the real nodes.
fn real(nodes: usize) -> Vec<String> {
    (1..=nodes).map(|n| format!("node-{n}")).collect()
}

/// The node that is an object only, with an old heartbeat.
fn dead(nodes: usize) -> String {
    format!("node-{}", 1 + if nodes == 0 { LIVING.len() } else { nodes })
}

/// The nodes that are objects only.
fn objects(nodes: usize) -> Value {
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
    let living = LIVING.iter().filter(|_| nodes == 0).map(|name| node(name, "True", now));
    let dead = dead(nodes);
    let items: Vec<Value> =
        living.chain([node(&dead, "Unknown", long_ago), heartbeat(&dead, long_ago)]).collect();
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

fn up(nodes: usize) -> ExitCode {
    let folder = folder();
    if nodes > 0
        && let Some(missing) = machines::missing(&folder)
    {
        eprintln!("error: no real nodes on this machine: {missing}");
        return ExitCode::FAILURE;
    }
    if !owner_is_running(&folder) {
        // Its guardian may be at work.
        await_end(&folder);
    }
    if folder.exists() {
        eprintln!("A sandbox is there already, in {}. 'make sandbox-down' ends it.", folder.display());
        return ExitCode::FAILURE;
    }
    // Where they have to be built, this is told here and not in the log.
    harness::assets(harness::Release::Newest);
    if nodes > 0 {
        for name in ["kubelet", "kube-scheduler"] {
            harness::component(name);
        }
    }
    let more = if nodes > 0 { format!(", kube-scheduler and {nodes} kubelets") } else { String::new() };
    eprintln!("Starting etcd, 3 kube-apiservers, 3 kube-controller-managers{more} …");
    let log = folder.with_extension("log");
    let mut background = Command::new(std::env::current_exe().unwrap())
        .args(["run", &nodes.to_string()])
        .stdin(Stdio::piped())
        .stdout(fs::File::create(&log).unwrap())
        .stderr(fs::File::options().append(true).open(&log).unwrap())
        .process_group(0)
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(if nodes > 0 { 300 } else { 120 });
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
    let names = if nodes > 0 { real(nodes) } else { LIVING.map(str::to_owned).to_vec() };
    let kind = if nodes > 0 { "real nodes" } else { "node objects" };
    println!("The control plane is up: cp-1, cp-2 and cp-3, with the {kind} {}, and", names.join(", "));
    println!("{}, an object without a heartbeat for ten minutes. Use it with", dead(nodes));
    println!();
    println!("  export KUBECONFIG={}", kubeconfig(User::Admin));
    println!("  export PATH={assets}:{}:$PATH", folder.with_file_name("release").display());
    println!();
    println!("Without any permission:      --kubeconfig {}", kubeconfig(User::Nobody));
    println!("Kill an apiserver:           kill -9 $(cat {}/cp-3/pid)", folder.display());
    println!("Start it again:              {}/cp-3/run >/dev/null 2>&1 &", folder.display());
    if nodes > 0 {
        print!("{}", machines::usage(&folder, &names));
    }
    println!("End it all:                  make sandbox-down");
    ExitCode::SUCCESS
}

fn down() -> ExitCode {
    let folder = folder();
    if !folder.exists() {
        eprintln!("No sandbox is running.");
        return ExitCode::FAILURE;
    }
    if owner_is_running(&folder) {
        let owner = fs::read_to_string(folder.join("pid")).unwrap();
        let _ = kill(Pid::from_raw(owner.trim().parse().unwrap()), Signal::SIGTERM);
        await_end(&folder);
    }
    if folder.exists() {
        // Its guardian is gone: another one. A number in a file may be that of another process by now,
        // after a restart of the machine for one.
        let below = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path());
        for server in below(&folder).flat_map(|path| below(&path).chain([path.clone()]).collect::<Vec<_>>()) {
            for file in ["group", "pid"].map(|name| server.join(name)) {
                let id = fs::read_to_string(&file).unwrap_or_default();
                let ours = [&*folder.display().to_string(), RELAY].iter().any(|word| is_running(&id, word));
                if !ours {
                    let _ = fs::remove_file(file);
                }
            }
        }
        let mut guardian = harness::guard(&folder);
        drop(guardian.stdin.take());
        let _ = guardian.wait();
        if folder.exists() {
            eprintln!("error: {} could not be removed", folder.display());
            return ExitCode::FAILURE;
        }
    }
    println!("The control plane has ended.");
    ExitCode::SUCCESS
}

/// In the command line of the relay of a node.
const RELAY: &str = "examples/sandbox relay ";

fn owner_is_running(folder: &Path) -> bool {
    is_running(&fs::read_to_string(folder.join("pid")).unwrap_or_default(), "examples/sandbox run")
}

/// Prints which pods wrote to files, and for how long two did at once.
fn histories(files: &[&str]) -> ExitCode {
    let folder = machines::disk_folder(&folder());
    if !folder.is_dir() {
        eprintln!("error: no sandbox with real nodes is running");
        return ExitCode::FAILURE;
    }
    let disk = disk::Disk::new(&folder);
    let read = |file: &&str| {
        let (file, name) = file.split_once('=').unwrap_or((file, ""));
        let name = if name.is_empty() { file.to_owned() } else { format!("{file} ({name})") };
        (name, disk.lines(file))
    };
    let histories: Vec<_> = files.iter().map(read).collect();
    println!("{}", disk::side_by_side(&histories));
    for (name, lines) in &histories {
        match disk::at_once(lines) {
            Some(seconds) => println!("{name}: two pods wrote at once, for {seconds:.1} seconds"),
            None => println!("{name}: never two pods at once"),
        }
    }
    ExitCode::SUCCESS
}

/// Waits until the guardian has cleaned up, or seems to be gone.
fn await_end(folder: &Path) {
    let deadline = Instant::now() + Duration::from_secs(20);
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
    arguments.is_ok_and(|arguments| String::from_utf8_lossy(&arguments).replace('\0', " ").contains(word))
}
