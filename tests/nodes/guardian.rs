//! Nothing is left of nodes, whatever becomes of the process that started them.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    thread,
    time::Duration,
};

use crate::{
    harness::nodes::all_processes,
    stage::{Kind, Stage, eventually, plane},
};

crate::tests![nothing_is_left_of_nodes_whose_owner_was_killed];

/// The argument of a process that is going to be killed.
const ABANDON: &str = "abandon-nodes";

/// Two nodes with a pod each, of which one is frozen, and the other cut off with a hanging containerd.
pub fn abandon() -> Option<ExitCode> {
    (std::env::args().nth(1)? == ABANDON).then(|| {
        let mut stage = Stage::new();
        plane().apply(&stage.manifest(Kind::DaemonSet, "everywhere"));
        for node in stage.names() {
            stage.await_writer("everywhere", &node);
        }
        stage.a().freeze();
        stage.b().partition();
        stage.b().hang_runtime();
        let mut out = std::io::stdout();
        writeln!(out, "{}", plane().folder.display()).unwrap();
        out.flush().unwrap();
        thread::sleep(Duration::from_secs(600));
        ExitCode::FAILURE
    })
}

/// Processes whose command line mentions a folder, or that have a file of it open as their root.
fn processes(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let line = |id: &u32| {
        let arguments = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let root = fs::read_link(format!("/proc/{id}/root")).unwrap_or_default();
        let text = String::from_utf8_lossy(&arguments).replace('\0', " ");
        (text.contains(folder) || root.starts_with(folder)).then(|| format!("{id}: {text}"))
    };
    all_processes().iter().filter_map(line).collect()
}

fn mounts(folder: &Path) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let below =
        |line: &&str| line.split(' ').nth(4).is_some_and(|place| Path::new(place).starts_with(folder));
    mounts.lines().filter(below).map(str::to_owned).collect()
}

fn cgroups(name: &str) -> Vec<PathBuf> {
    let found = Command::new("find").args(["/sys/fs/cgroup", "-type", "d", "-name", name]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().lines().map(PathBuf::from).collect()
}

fn nothing_is_left_of_nodes_whose_owner_was_killed() {
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .arg(ABANDON)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(owner.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let folder = PathBuf::from(line.trim());
    assert!(folder.is_dir(), "it has not started: '{line}'");
    let cgroup = fs::read_to_string(folder.join("cgroup")).unwrap();
    let writers = || {
        let wrote = fs::read_dir(folder.join("disks")).into_iter().flatten().count();
        (processes(&folder), mounts(&folder), cgroups(&cgroup), wrote)
    };
    let (running, _, grouped, wrote) = writers();
    // Two machines with two shims, two pods and two containers at the least.
    assert!(running.len() > 12 && !grouped.is_empty() && wrote > 0, "{running:#?} {grouped:?}");
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually(
        "nothing is left",
        Duration::from_secs(20),
        || {
            let (running, mounted, grouped, _) = writers();
            running.is_empty() && mounted.is_empty() && grouped.is_empty() && !folder.exists()
        },
        || format!("{:#?}", writers()),
    );
}
