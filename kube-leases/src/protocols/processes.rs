//! The processes that descend from this one: how they are found, signalled, and named when they
//! cannot be ended.
//!
//! Whether one of them is left is asked of waitpid and not of /proc, which may not show the processes
//! of other users: this process adopts orphans, so everything that descends from it is a child of it
//! or has an ancestor that is.

use std::{thread, time::Duration};

use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};
use rustix::{
    io::Errno,
    process::{WaitOptions, WaitStatus, wait},
};

use super::ending::KILL_TIMEOUT;
use crate::clock::BootInstant;

/// Between two looks at what was killed.
pub(super) const GLANCE: Duration = Duration::from_millis(5);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    id: Pid,
    parent: Pid,
    group: Pid,
    name: String,
    zombie: bool,
}

impl Process {
    /// From /proc/PID/stat: pid (name) state parent group …, where the name may hold anything,
    /// parentheses and line breaks too.
    fn parse(stat: &str) -> Option<Self> {
        let (id, rest) = stat.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        let zombie = matches!(fields.next()?, "Z" | "X");
        let mut number = || fields.next()?.parse().ok().map(Pid::from_raw);
        let (parent, group) = (number()?, number()?);
        let plain = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
        let name = name.chars().map(plain).collect();
        Some(Self { id: Pid::from_raw(id.parse().ok()?), parent, group, name, zombie })
    }
}

/// Every process that can be seen.
fn processes() -> Vec<Process> {
    if !cfg!(target_os = "linux") {
        return Vec::new();
    }
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("stat")).ok())
        .filter_map(|stat| Process::parse(&String::from_utf8_lossy(&stat)))
        .collect()
}

fn descendants(ancestor: Pid, processes: &[Process]) -> Vec<&Process> {
    let mut family: Vec<&Process> = Vec::new();
    let mut parents = vec![ancestor];
    while let Some(parent) = parents.pop() {
        for process in processes.iter().filter(|process| process.parent == parent) {
            parents.push(process.id);
            family.push(process);
        }
    }
    family
}

/// A process, its parent, and so on, as far as they can be seen.
fn lineage(process: Pid, processes: &[Process]) -> Vec<Pid> {
    let mut lineage = vec![process];
    let parent = |id: Pid| processes.iter().find(|process| process.id == id).map(|process| process.parent);
    while let Some(parent) = lineage.last().and_then(|id| parent(*id)) {
        lineage.push(parent);
    }
    lineage
}

/// Whether this process descends from that one, which is not of the same session: a service manager's
/// are in sessions of their own, and what a script starts is in the session of its shell.
#[cfg(target_os = "linux")]
pub(super) fn is_manager(id: i32) -> bool {
    use nix::unistd::{getppid, getsid};
    let id = Pid::from_raw(id);
    id == Pid::from_raw(1)
        || getsid(Some(id)) != getsid(None) && lineage(getppid(), &processes()).contains(&id)
}

/// Whether another process of this one's group may be using the terminal: its ancestors there, such
/// as the shell of a script, wait for it.
fn shares_group(process: Pid, processes: &[Process]) -> bool {
    let found = processes.iter().find(|other| other.id == process);
    let Some(group) = found.map(|process| process.group) else { return true };
    let ancestors = lineage(process, processes);
    processes
        .iter()
        .any(|process| process.group == group && !process.zombie && !ancestors.contains(&process.id))
}

/// Whether a process is the only one of its group that uses the terminal.
pub(super) fn is_alone_on_terminal(process: Pid) -> bool {
    use std::io::{IsTerminal as _, stdin, stdout};
    if cfg!(target_os = "linux") {
        !shares_group(process, &processes())
    } else {
        // What is in a pipeline has at least one pipe.
        stdin().is_terminal() && stdout().is_terminal()
    }
}

/// Whether a process lives in this group that does not descend from this one.
pub(super) fn is_foreign_group(group: Pid) -> bool {
    let processes = processes();
    let family = descendants(Pid::this(), &processes);
    processes.iter().any(|process| process.group == group && !process.zombie && !family.contains(&process))
}

/// Has orphaned descendants come to this process instead of to init, so that they can be found.
pub(super) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_child_subreaper(true);
}

/// Signals a process group, whose leader has to be unreaped so that its number is still its own, and
/// where they can be found also the descendants that left it: the jobs of an interactive shell have
/// groups of their own.
pub(super) fn signal_all(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        let _ = killpg(group, signal);
    }
    let processes = processes();
    // No process is signalled twice: many a program takes a second SIGTERM for a demand to exit at once. Zombies are told
    // too: one may be the dead first thread of a process whose other threads live.
    for process in descendants(Pid::this(), &processes) {
        if Some(process.group) != group {
            let _ = kill(process.id, signal);
        }
    }
}

/// The descendants that live, for a message.
pub(super) fn names() -> String {
    let processes = processes();
    let family = descendants(Pid::this(), &processes);
    let names: Vec<String> = family
        .into_iter()
        .filter(|process| !process.zombie)
        .map(|process| format!("{} ({})", process.id, process.name))
        .collect();
    match names.len() {
        0 => "a process that /proc does not show".to_owned(),
        1 => format!("process {}", names[0]),
        _ => format!("processes {}", names.join(", ")),
    }
}

/// What there is to know of a child.
pub(super) enum ChildState {
    /// It has ended, or was stopped.
    Changed(Pid, WaitStatus),
    /// Nothing has changed.
    Nothing,
    /// There is no child, so that nothing descends from this process.
    Alone,
}

/// Waits for any child. (By rustix: nix's reaps a child that died of a real-time signal, and fails.)
pub(super) fn wait_for_child(options: WaitOptions) -> ChildState {
    loop {
        match wait(options) {
            Ok(Some((child, status))) => {
                return ChildState::Changed(Pid::from_raw(child.as_raw_nonzero().get()), status);
            }
            Ok(None) => return ChildState::Nothing,
            Err(Errno::CHILD) => return ChildState::Alone,
            Err(_) => thread::sleep(GLANCE),
        }
    }
}

/// Kills everything that descends from this process, and the process group where it is known, until
/// nothing is left: some of it may be starting more. Otherwise the names of what cannot be ended.
pub(super) fn end_everything(mut group: Option<Pid>) -> Option<String> {
    let limit = BootInstant::now() + KILL_TIMEOUT;
    loop {
        signal_all(group, Signal::SIGKILL);
        loop {
            match wait_for_child(WaitOptions::NOHANG) {
                ChildState::Changed(ended, _) => group = group.filter(|group| ended != *group),
                ChildState::Nothing => break,
                ChildState::Alone => return None,
            }
        }
        if limit.has_passed() {
            return Some(names());
        }
        thread::sleep(GLANCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(id: i32, parent: i32, group: i32) -> Process {
        let [id, parent, group] = [id, parent, group].map(Pid::from_raw);
        Process { id, parent, group, name: "sh".into(), zombie: false }
    }

    #[test]
    fn a_line_of_proc_is_read_whatever_the_name_is() {
        let sleeping = Process { name: "my (odd) name?".into(), ..process(12, 3, 4) };
        assert_eq!(Process::parse("12 (my (odd) name\n) S 3 4 5 0 -1 4194560"), Some(sleeping.clone()));
        let zombie = Process { zombie: true, ..sleeping };
        assert_eq!(Process::parse("12 (my (odd) name\u{fffd}) Z 3 4 5 0 -1"), Some(zombie));
        for broken in ["", "12", "12 (x", "12 (x) S", "12 (x) S 3", "x (x) S 3 4"] {
            assert_eq!(Process::parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn descendants_are_found_over_generations() {
        let all = [process(1, 0, 1), process(9, 7, 9), process(7, 5, 5), process(5, 1, 5), process(6, 1, 6)];
        let ids = |of: i32| {
            descendants(Pid::from_raw(of), &all).iter().map(|process| process.id.as_raw()).collect::<Vec<_>>()
        };
        assert_eq!(ids(5), [7, 9]);
        assert_eq!(ids(6), [0_i32; 0]);
    }

    /// 10 is an interactive shell, 20 a job of it.
    #[test]
    fn a_pipeline_shares_the_terminal_and_a_waiting_script_does_not() {
        let shell = [process(1, 0, 1), process(10, 1, 10)];
        let with = |job: &[Process]| [&shell[..], job].concat();
        let alone = with(&[process(20, 10, 20)]);
        assert!(!shares_group(Pid::from_raw(20), &alone));
        let pipeline = with(&[process(20, 10, 20), process(21, 10, 20)]);
        assert!(shares_group(Pid::from_raw(20), &pipeline));
        let ended = with(&[process(20, 10, 20), Process { zombie: true, ..process(21, 10, 20) }]);
        assert!(!shares_group(Pid::from_raw(20), &ended));
        let script = with(&[process(20, 10, 20), process(21, 20, 20)]);
        assert!(!shares_group(Pid::from_raw(21), &script));
        let pipeline_of_a_script = with(&[process(20, 10, 20), process(21, 20, 20), process(22, 20, 20)]);
        assert!(shares_group(Pid::from_raw(21), &pipeline_of_a_script));
        assert!(shares_group(Pid::from_raw(99), &alone), "nothing is known about it");
    }
}
