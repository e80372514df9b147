//! A control plane to play with.
//!
//!   sandbox up      starts one in the background and says how to use it
//!   sandbox down    ends it
//!   sandbox run     runs one until Ctrl-C

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, clippy::zombie_processes)]

#[path = "mod.rs"]
mod harness;

use std::{
    fs,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use harness::{ControlPlane, Shape, User};

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

/// One sandbox for each checkout.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target").join("sandbox")
}

fn run() -> ! {
    fs::create_dir_all(folder()).unwrap();
    fs::write(folder().join("pid"), std::process::id().to_string()).unwrap();
    let plane = ControlPlane::start_in(&folder(), &Shape { apiservers: 3, managers: 3, ..Shape::default() });
    fs::write(folder().join("ready"), plane.assets.display().to_string()).unwrap();
    loop {
        std::thread::park();
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
        .stdin(Stdio::null())
        .stdout(fs::File::create(&log).unwrap())
        .stderr(fs::File::options().append(true).open(&log).unwrap())
        .process_group(0)
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while !folder.join("ready").exists() {
        if background.try_wait().unwrap().is_some() || Instant::now() > deadline {
            eprintln!("It did not start:\n{}", fs::read_to_string(&log).unwrap_or_default());
            return ExitCode::FAILURE;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let assets = fs::read_to_string(folder.join("ready")).unwrap();
    let kubeconfig = |user: User| folder.join(format!("{}-1.kubeconfig", user.name())).display().to_string();
    println!("The control plane is up: cp-1, cp-2 and cp-3. Use it with");
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
    let Ok(id) = fs::read_to_string(folder.join("pid")) else {
        eprintln!("No sandbox is running.");
        return ExitCode::FAILURE;
    };
    let _ = Command::new("kill").arg(id).status();
    let deadline = Instant::now() + Duration::from_secs(20);
    while folder.exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("The control plane has ended.");
    ExitCode::SUCCESS
}
