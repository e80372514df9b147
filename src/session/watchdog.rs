//! The watchdog: a process between the plugin and the command that runs under a lease.
//!
//! The plugin, which renews, may be stopped (SIGSTOP, a debugger, swap) or killed while the command
//! runs on. So the end of the command is this process's business: it is told over a pipe, at each
//! renewal, until when the lease is known to be ours. When that time has passed it ends the
//! command's whole process group, and at once when the pipe closes, which it does when the plugin
//! dies. It is the same binary, run again.

use std::{
    ffi::OsString,
    fs::File,
    io::{BufRead as _, BufReader, Write as _},
    os::{fd::RawFd, unix::process::CommandExt as _},
    process::{Command, ExitCode},
    sync::mpsc,
    thread,
    time::Duration,
};

use nix::{
    sys::{
        signal::{SigSet, Signal, kill, killpg},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{Pid, close, getpgid, getpgrp, tcgetpgrp, tcsetpgrp},
};

use crate::clock::BootInstant;

/// The hidden subcommand that makes this binary a watchdog.
pub const SUBCOMMAND: &str = "__watchdog";

/// The clock that counts sleep has no timers here: it is looked at this often.
const LOOK: Duration = Duration::from_millis(50);

/// What the plugin tells, a line each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The lease is ours: end the command softly, and hard, at these times, unless told later ones.
    Valid { terminate: BootInstant, kill: BootInstant },
    /// Pass a signal on.
    Signal(i32),
}

impl Order {
    pub(super) fn line(self) -> String {
        match self {
            Self::Valid { terminate, kill } => {
                format!("valid {} {}\n", terminate.to_millis(), kill.to_millis())
            }
            Self::Signal(number) => format!("signal {number}\n"),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["valid", terminate, kill] => Some(Self::Valid {
                terminate: BootInstant::from_millis(terminate.parse().ok()?),
                kill: BootInstant::from_millis(kill.parse().ok()?),
            }),
            ["signal", number] => number.parse().ok().map(Self::Signal),
            _ => None,
        }
    }
}

/// What the watchdog reports, a line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The command runs, as this process group.
    Started(i32),
    /// It could not be started; the shell's code for that, and why.
    NotStarted(u8, String),
    /// It ended by itself or by a signal, with this code.
    Ended(u8),
    /// Its time ran out, and it was ended.
    Expired,
}

impl Report {
    fn line(&self) -> String {
        match self {
            Self::Started(group) => format!("started {group}\n"),
            Self::NotStarted(code, why) => format!("failed {code} {}\n", why.replace('\n', " ")),
            Self::Ended(code) => format!("ended {code}\n"),
            Self::Expired => "expired\n".to_owned(),
        }
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.trim_end().split_once(' ').unwrap_or((line.trim_end(), ""));
        match word {
            "started" => rest.parse().ok().map(Self::Started),
            "failed" => rest
                .split_once(' ')
                .and_then(|(code, why)| Some(Self::NotStarted(code.parse().ok()?, why.to_owned()))),
            "ended" => rest.parse().ok().map(Self::Ended),
            "expired" => Some(Self::Expired),
            _ => None,
        }
    }
}

/// What the watchdog waits for.
enum Event {
    Order(Order),
    /// The plugin is gone.
    Orphaned,
    Ended(u8),
}

/// The watchdog's whole life: `ARGS` are the two pipes' numbers and the command.
pub fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let mut args = args;
    let mut pipe = || args.next()?.to_str()?.parse::<RawFd>().ok();
    let (Some(orders), Some(reports)) = (pipe(), pipe()) else {
        return ExitCode::from(2);
    };
    let command: Vec<OsString> = args.collect();
    if command.is_empty() {
        return ExitCode::from(2);
    }
    let (Ok(orders), Ok(mut reports)) = (adopt(orders, false), adopt(reports, true)) else {
        return ExitCode::from(2);
    };
    // Whatever the command starts stays our descendant, even when its own parent has ended.
    adopt_orphans();
    // The terminal may be handed to the command and back by a process in the background.
    let mut blocked = SigSet::empty();
    blocked.add(Signal::SIGTTOU);
    let _ = blocked.thread_block();

    let (sender, events) = mpsc::channel();
    let orders_sender = sender.clone();
    thread::spawn(move || {
        for line in BufReader::new(orders).lines().map_while(Result::ok) {
            if let Some(order) = Order::parse(&line) {
                let _ = orders_sender.send(Event::Order(order));
            }
        }
        let _ = orders_sender.send(Event::Orphaned);
    });
    // Nothing is started before it is known until when it may run.
    let Ok(Event::Order(Order::Valid { terminate, kill })) = events.recv() else {
        return ExitCode::from(2);
    };
    let mut report = |report: &Report| {
        let _ = reports.write_all(report.line().as_bytes());
        let _ = reports.flush();
    };
    if terminate.has_passed() {
        // The plugin was stopped between taking the lease and getting here.
        report(&Report::Expired);
        return ExitCode::SUCCESS;
    }
    let child = match Command::new(&command[0]).args(&command[1..]).process_group(0).spawn() {
        Ok(child) => child,
        Err(error) => {
            let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
            report(&Report::NotStarted(code, error.to_string()));
            return ExitCode::SUCCESS;
        }
    };
    let group = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
    let terminal = Terminal::hand_over(group);
    report(&Report::Started(group.as_raw()));
    let handed_over = terminal.is_some();
    thread::spawn(move || {
        let _ = sender.send(Event::Ended(wait(group, handed_over)));
    });
    let outcome = guard(group, &events, terminate, kill);
    drop(terminal);
    // What the command left running had the lease's protection too, and has it no longer. Some of
    // it may be starting more: until there is nobody.
    end_everything(group);
    report(&outcome);
    ExitCode::SUCCESS
}

/// Until the command has ended, or has been ended.
fn guard(
    group: Pid,
    events: &mpsc::Receiver<Event>,
    mut terminate: BootInstant,
    mut kill: BootInstant,
) -> Report {
    let mut terminated = false;
    let mut expired = false;
    loop {
        match events.recv_timeout(LOOK) {
            Ok(Event::Ended(code)) => return if expired { Report::Expired } else { Report::Ended(code) },
            // A command that has been told to end is not told to go on.
            Ok(Event::Order(Order::Valid { kill: hard, .. })) if terminated => kill = kill.min(hard),
            Ok(Event::Order(Order::Valid { terminate: soft, kill: hard })) => {
                (terminate, kill) = (soft, hard);
            }
            Ok(Event::Order(Order::Signal(number))) => {
                if let Ok(signal) = Signal::try_from(number) {
                    let _ = killpg(group, signal);
                }
            }
            // Nobody renews any more: as if the time had come, with a moment for last words.
            Ok(Event::Orphaned) => {
                let now = BootInstant::now();
                terminate = terminate.min(now);
                kill = kill.min(now + Duration::from_secs(1));
            }
            Err(_) => {}
        }
        if kill.has_passed() {
            signal_all(group, Signal::SIGKILL);
            expired = true;
        } else if terminate.has_passed() && !terminated {
            // A command that is stopped cannot hear it.
            signal_all(group, Signal::SIGTERM);
            signal_all(group, Signal::SIGCONT);
            terminated = true;
            expired = true;
        }
    }
}

/// Kills the command's process group and everything that descends from this process, until there is
/// nobody: some of it may be starting more.
pub(super) fn end_everything(group: Pid) {
    for _ in 0..100 {
        signal_all(group, Signal::SIGKILL);
        if descendants().is_empty() {
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Has orphaned descendants come to this process instead of to init, so that they can be found.
pub(super) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_child_subreaper(true);
}

/// Signals the command's process group, and where it can be told also everything that left it: the
/// jobs of an interactive shell have groups of their own.
fn signal_all(group: Pid, signal: Signal) {
    let _ = killpg(group, signal);
    // Nobody is told twice: many a program takes a second SIGTERM for impatience.
    for (process, _) in descendants().into_iter().filter(|(_, of)| *of != group) {
        let _ = kill(process, signal);
    }
}

/// Every process that descends from this one and still lives, with its process group.
#[cfg(target_os = "linux")]
fn descendants() -> Vec<(Pid, Pid)> {
    struct Process {
        id: i32,
        parent: i32,
        group: i32,
    }
    // pid (name) state parent group …, where the name may hold anything, parentheses too.
    let parse = |stat: String| {
        let (id, rest) = stat.split_once(" (")?;
        let mut fields = rest.rsplit_once(')')?.1.split_whitespace();
        fields.next().filter(|state| *state != "Z")?;
        let mut number = || fields.next()?.parse::<i32>().ok();
        Some(Process { id: id.parse().ok()?, parent: number()?, group: number()? })
    };
    let processes: Vec<Process> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok())
        .filter_map(parse)
        .collect();
    let mut family: Vec<(Pid, Pid)> = Vec::new();
    let mut parents = vec![Pid::this().as_raw()];
    while let Some(parent) = parents.pop() {
        for process in processes.iter().filter(|process| process.parent == parent) {
            parents.push(process.id);
            family.push((Pid::from_raw(process.id), Pid::from_raw(process.group)));
        }
    }
    family
}

#[cfg(not(target_os = "linux"))]
fn descendants() -> Vec<(Pid, Pid)> {
    Vec::new()
}

/// The exit code of the command, 128 and the number for a signal.
fn wait(child: Pid, handed_over: bool) -> u8 {
    loop {
        // Any child: what the command has orphaned has come to us, and is not left a zombie.
        match waitpid(None, Some(WaitPidFlag::WUNTRACED)) {
            Ok(status) if status.pid() != Some(child) => {}
            Ok(WaitStatus::Exited(_, code)) => return u8::try_from(code).unwrap_or(1),
            Ok(WaitStatus::Signaled(_, signal, _)) => return 128_u8.saturating_add(signal as u8),
            // Ctrl-Z: nobody could bring it back from here, and the lease would be held for nothing.
            Ok(WaitStatus::Stopped(_, Signal::SIGTSTP)) => {
                let _ = killpg(child, Signal::SIGCONT);
            }
            // It wanted the terminal before it had it. Where it is never to have it, it waits, as
            // anything in the background does.
            Ok(WaitStatus::Stopped(_, Signal::SIGTTIN | Signal::SIGTTOU)) if handed_over => {
                thread::sleep(LOOK);
                let _ = killpg(child, Signal::SIGCONT);
            }
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(_) => return 1,
        }
    }
}

/// A pipe that was inherited by number, as a file of our own that the command will not inherit.
fn adopt(number: RawFd, write: bool) -> std::io::Result<File> {
    let file = File::options().read(!write).write(write).open(format!("/dev/fd/{number}"))?;
    let _ = close(number);
    Ok(file)
}

/// The terminal, while it is the command's: so it can read what is typed and hear Ctrl-C.
struct Terminal {
    tty: File,
    owner: Pid,
}

impl Terminal {
    /// Hands the terminal over, if it is one and was the plugin's to hand.
    fn hand_over(group: Pid) -> Option<Self> {
        let tty = File::options().read(true).write(true).open("/dev/tty").ok()?;
        let owner = tcgetpgrp(&tty).ok()?;
        let plugin = getpgid(Some(nix::unistd::getppid())).unwrap_or_else(|_| getpgrp());
        if owner != plugin {
            return None;
        }
        tcsetpgrp(&tty, group).ok()?;
        // It may have asked for input before it was allowed to, and have been stopped for that.
        let _ = killpg(group, Signal::SIGCONT);
        Some(Self { tty, owner })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = tcsetpgrp(&self.tty, self.owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_reports_survive_the_pipe() {
        let valid =
            Order::Valid { terminate: BootInstant::from_millis(1), kill: BootInstant::from_millis(2) };
        for order in [valid, Order::Signal(15)] {
            assert_eq!(Order::parse(&order.line()), Some(order));
        }
        for nonsense in ["", "valid", "valid 1", "valid x y", "signal", "signal x", "other 1"] {
            assert_eq!(Order::parse(nonsense), None);
        }
        let failed = Report::NotStarted(127, "No such file or directory (os error 2)".into());
        for report in [Report::Started(42), failed, Report::Ended(143), Report::Expired] {
            assert_eq!(Report::parse(&report.line()), Some(report));
        }
        assert_eq!(Report::parse("ended lots"), None);
    }
}
