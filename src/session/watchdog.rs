//! The watchdog: a process between the plugin and the command that runs under a lease.
//!
//! The plugin, which renews, may be stopped (SIGSTOP, a debugger, swap) or killed while the command
//! runs on. So the end of the command is this process's business: it is told over a pipe, at each
//! renewal, until when the lease is known to be ours. When that time has passed it ends the command
//! and everything that the command started, and at once when the pipe closes, which it does when the
//! plugin dies. It is the same binary, run again, under a name of its own: what kills the plugin by
//! name, or by what is on its command line, leaves the watchdog alone. It heeds no signal but those
//! that cannot be blocked, so that what signals every process (systemd's stop) leaves it to its work.
//! Its parent is the leash, which ends what this process guarded if it is killed together with the
//! plugin.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, BufRead as _, BufReader, Write as _},
    os::{fd::RawFd, unix::process::CommandExt as _},
    process::{Command, ExitCode},
    sync::mpsc,
    thread,
    time::Duration,
};

use nix::{
    errno::Errno,
    sys::{
        signal::{SigSet, Signal, killpg},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{Pid, close, getpgid, getpgrp, tcgetpgrp, tcsetpgrp},
};
use tokio::signal::unix::SignalKind;

use super::{
    broadcast::Broadcast,
    ending::{Due, Ending},
    exec,
    processes::{self, GLANCE},
};
use crate::{clock::BootInstant, signals};

/// The hidden subcommand that makes this binary a watchdog.
pub const SUBCOMMAND: &str = "__watchdog";

/// Its name among the processes.
const NAME: &std::ffi::CStr = c"lease-watchdog";

/// The clock that counts sleep has no timers here: it is looked at this often.
const LOOK: Duration = Duration::from_millis(50);

/// How long what the command left behind may take to end before it is spoken of, and how often it is
/// killed again from then on.
const LINGER: Duration = Duration::from_secs(1);

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
    /// The watchdog is this process.
    Watching(i32),
    /// The lease's time was over before the command could be started.
    TooLate,
    /// The command runs, as this process group.
    Started(i32),
    /// It could not be started; the shell's code for that, and why.
    NotStarted(u8, String),
    /// It ended by itself or by a signal, with this code.
    Ended(u8),
    /// Its time ran out, and it was ended.
    Expired,
    /// It was stopped because it wants the terminal, which it does not have.
    Background,
    /// It has ended, and these processes that it left behind could not be ended yet.
    Surviving(String),
    /// A signal for it could not be sent to any of these processes of it.
    Unheard(i32, String),
    /// Its time ran out, and these processes of it could not be ended.
    Survived(String),
}

impl Report {
    fn line(&self) -> String {
        match self {
            Self::Watching(id) => format!("watching {id}\n"),
            Self::TooLate => "late\n".to_owned(),
            Self::Started(group) => format!("started {group}\n"),
            Self::NotStarted(code, why) => format!("failed {code} {}\n", why.replace('\n', " ")),
            Self::Ended(code) => format!("ended {code}\n"),
            Self::Expired => "expired\n".to_owned(),
            Self::Background => "background\n".to_owned(),
            Self::Surviving(names) => format!("surviving {names}\n"),
            Self::Unheard(signal, names) => format!("unheard {signal} {names}\n"),
            Self::Survived(names) => format!("survived {names}\n"),
        }
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.trim_end().split_once(' ').unwrap_or((line.trim_end(), ""));
        let numbered = || rest.split_once(' ').map(|(number, text)| (number, text.to_owned()));
        match word {
            "watching" => rest.parse().ok().map(Self::Watching),
            "late" => Some(Self::TooLate),
            "started" => rest.parse().ok().map(Self::Started),
            "failed" => numbered().and_then(|(code, why)| Some(Self::NotStarted(code.parse().ok()?, why))),
            "ended" => rest.parse().ok().map(Self::Ended),
            "expired" => Some(Self::Expired),
            "background" => Some(Self::Background),
            "surviving" => Some(Self::Surviving(rest.to_owned())),
            "unheard" => {
                numbered().and_then(|(signal, names)| Some(Self::Unheard(signal.parse().ok()?, names)))
            }
            "survived" => Some(Self::Survived(rest.to_owned())),
            _ => None,
        }
    }
}

/// What the watchdog waits for.
enum Event {
    Order(Order),
    /// The plugin is gone.
    Orphaned,
    /// The command has ended, with this code.
    Ended(u8),
    /// The command was stopped because it wants the terminal, which it does not have.
    Background,
    /// Nothing descends from this process any more.
    Alone,
}

/// The process that will be a watchdog, with the leash's arguments and what it started with blocked.
pub(super) fn command(args: &[OsString], blocked: &SigSet) -> io::Result<Command> {
    let mut watchdog = Command::new(exec::this_program()?);
    watchdog
        .arg0(NAME.to_string_lossy().as_ref())
        .arg(SUBCOMMAND)
        .args(args)
        .arg(signals::mask_to_word(blocked))
        // What stops or kills the leash's process group leaves the watchdog alone.
        .process_group(0);
    Ok(watchdog)
}

/// The variable that has a word of the command.
pub(super) fn word_name(n: usize) -> String {
    format!("KUBECTL_LEASE_COMMAND_{n}")
}

/// The watchdog's whole life: `ARGS` are the two pipes' numbers, how many words the command has, the
/// plugin's process, and the signals that are blocked for the command. For itself all of them are.
pub fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let refused = ExitCode::from(2);
    let mut args = args.filter_map(|word| word.into_string().ok());
    let mut pipe = || args.next()?.parse::<RawFd>().ok();
    let (Some(orders), Some(reports)) = (pipe(), pipe()) else { return refused };
    let Some(count) = args.next().and_then(|count| count.parse::<usize>().ok()) else { return refused };
    let Some(plugin) = args.next().and_then(|id| id.parse().ok()).map(Pid::from_raw) else { return refused };
    let Some(blocked) = args.next() else { return refused };
    let names: Vec<String> = (0..count).map(word_name).collect();
    let command: Option<Vec<OsString>> = names.iter().map(std::env::var_os).collect();
    let Some(command) = command.filter(|command| !command.is_empty()) else { return refused };
    let (Ok(orders), Ok(mut reports)) = (inherited(orders, false), inherited(reports, true)) else {
        return refused;
    };
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_name(NAME);
    // Whatever the command starts stays our descendant, even when its own parent has ended.
    processes::adopt_orphans();

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
    let mut report =
        |report: &Report| reports.write_all(report.line().as_bytes()).and_then(|()| reports.flush()).is_ok();
    report(&Report::Watching(Pid::this().as_raw()));
    // Nothing is started before it is known until when it may run.
    let Ok(Event::Order(Order::Valid { terminate, kill })) = events.recv() else { return refused };
    if terminate.has_passed() {
        // The plugin was stopped between taking the lease and getting here.
        report(&Report::TooLate);
        return ExitCode::SUCCESS;
    }
    // By this thread, which lives as long as this process: with it, the command ends.
    let started = match exec::start(&command, &blocked, &names) {
        Ok(started) => started,
        Err(error) => {
            let (code, why) = exec::failure(&error);
            report(&Report::NotStarted(code, why));
            return ExitCode::SUCCESS;
        }
    };
    let group = Pid::from_raw(i32::try_from(started.process.id()).unwrap_or(i32::MAX));
    report(&Report::Started(group.as_raw()));
    let terminal = Terminal::hand_over(plugin, group);
    let handed_over = terminal.is_some();
    let reaper = sender.clone();
    thread::spawn(move || reap(group, handed_over, &reaper));
    let mut outcome = guard(group, &events, Ending::new(terminate, kill), terminal, &mut report);
    if let Report::Ended(_) = outcome
        && let Some((code, why)) = started.failure()
    {
        outcome = Report::NotStarted(code, why);
    }
    if !report(&outcome)
        && let Report::Survived(names) = outcome
    {
        // The plugin is not there to say it.
        let _ = writeln!(io::stderr(), "error: the plugin was killed, and {names} could not be ended");
    }
    drop(sender);
    ExitCode::SUCCESS
}

/// Until the command and everything that it started have ended, have been ended, or cannot be ended.
fn guard(
    group: Pid,
    events: &mpsc::Receiver<Event>,
    mut ending: Ending,
    mut terminal: Option<Terminal>,
    report: &mut impl FnMut(&Report) -> bool,
) -> Report {
    // The command's code and the time of its end; what it left behind is killed next at the other.
    let mut ended: Option<(u8, BootInstant)> = None;
    let mut kill_again = BootInstant::now();
    let mut spoken_of = String::new();
    let mut broadcast = Broadcast::new();
    loop {
        // While its first process is not reaped, the group's number cannot be another's.
        let alive = ended.is_none().then_some(group);
        let fresh = ended.is_some_and(|(_, since)| !(since + LINGER).has_passed());
        let event = events.recv_timeout(if fresh { GLANCE } else { LOOK });
        broadcast.read();
        match event {
            Ok(Event::Ended(code)) => {
                // What the command left running had the lease's protection too, and has it no longer.
                let _ = killpg(group, Signal::SIGKILL);
                ended = Some((code, BootInstant::now()));
                // Ctrl-C is for the plugin now.
                terminal = None;
                continue;
            }
            Ok(Event::Alone) => {
                let code = ended.map_or(1, |(code, _)| code);
                return if ending.has_begun() { Report::Expired } else { Report::Ended(code) };
            }
            Ok(Event::Order(Order::Valid { terminate, kill })) => ending.renewed(terminate, kill),
            Ok(Event::Order(Order::Signal(number))) => {
                if let (Some(group), Ok(signal)) = (alive, Signal::try_from(number)) {
                    if !broadcast.take(number) && killpg(group, signal) == Err(Errno::EPERM) {
                        report(&Report::Unheard(number, processes::names()));
                    }
                    // A command that is stopped, such as for want of the terminal, cannot hear it.
                    if signals::asks_to_end(number) {
                        let _ = killpg(group, Signal::SIGCONT);
                    }
                }
            }
            Ok(Event::Background) => {
                report(&Report::Background);
            }
            Ok(Event::Orphaned) => ending.orphaned(BootInstant::now()),
            Err(_) => {}
        }
        match ending.due(BootInstant::now()) {
            Due::Nothing => {}
            Due::Terminate => {
                // A command that is stopped cannot hear it.
                processes::signal_all(alive, Signal::SIGTERM);
                processes::signal_all(alive, Signal::SIGCONT);
            }
            Due::Kill => processes::signal_all(alive, Signal::SIGKILL),
            Due::GiveUp => {
                drop(terminal);
                return Report::Survived(processes::names());
            }
        }
        if let Some((_, since)) = ended
            && kill_again.has_passed()
        {
            processes::signal_all(None, Signal::SIGKILL);
            let fresh = !(since + LINGER).has_passed();
            kill_again = BootInstant::now() + if fresh { GLANCE } else { LINGER };
            if !fresh && !ending.has_begun() {
                let names = processes::names();
                if names != spoken_of {
                    report(&Report::Surviving(names.clone()));
                    spoken_of = names;
                }
            }
        }
    }
}

/// Says when the command ends, and when nothing that descends from this process is left.
fn reap(child: Pid, handed_over: bool, events: &mpsc::Sender<Event>) {
    let mut told = false;
    loop {
        // Any child: what the command has orphaned has come to us, and is not left a zombie.
        match waitpid(None, Some(WaitPidFlag::WUNTRACED)) {
            Ok(status) if status.pid() != Some(child) => {}
            Ok(WaitStatus::Exited(_, code)) => {
                let _ = events.send(Event::Ended(u8::try_from(code).unwrap_or(1)));
            }
            Ok(WaitStatus::Signaled(_, signal, _)) => {
                let _ = events.send(Event::Ended(128_u8.saturating_add(signal as u8)));
            }
            // Ctrl-Z: nobody could bring it back from here, and the lease would be held for nothing.
            Ok(WaitStatus::Stopped(_, Signal::SIGTSTP)) => {
                let _ = killpg(child, Signal::SIGCONT);
            }
            // It wanted the terminal before it had it.
            Ok(WaitStatus::Stopped(_, Signal::SIGTTIN | Signal::SIGTTOU)) if handed_over => {
                thread::sleep(LOOK);
                let _ = killpg(child, Signal::SIGCONT);
            }
            // Where it is never to have it, it waits, as anything in the background does.
            Ok(WaitStatus::Stopped(_, Signal::SIGTTIN | Signal::SIGTTOU)) if !told => {
                told = true;
                let _ = events.send(Event::Background);
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => {
                let _ = events.send(Event::Alone);
                return;
            }
        }
    }
}

/// A pipe that was inherited by number, as a file of our own that the command will not inherit.
pub(super) fn inherited(number: RawFd, write: bool) -> io::Result<File> {
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
    /// Hands the terminal over, if it is one and was the plugin's alone: what else is in its group,
    /// such as a pager at the other end of a pipe, would be in the background then, and would be
    /// stopped together with the plugin as soon as it reads a key.
    fn hand_over(plugin: Pid, group: Pid) -> Option<Self> {
        let tty = File::options().read(true).write(true).open("/dev/tty").ok()?;
        let owner = tcgetpgrp(&tty).ok()?;
        if owner != getpgid(Some(plugin)).unwrap_or_else(|_| getpgrp())
            || !processes::is_alone_on_terminal(plugin)
            // The background job of a script: the terminal is the script's.
            || signals::is_ignored(SignalKind::interrupt())
        {
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
        // Unless the shell has taken it already, as it does when the plugin is stopped.
        if !tcgetpgrp(&self.tty).is_ok_and(processes::is_foreign_group) {
            let _ = tcsetpgrp(&self.tty, self.owner);
        }
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
        let names = || "processes 12 (sleep), 13 (my (odd) name)".to_owned();
        for report in [
            Report::Watching(41),
            Report::TooLate,
            Report::Started(42),
            Report::Background,
            failed,
            Report::Ended(143),
            Report::Expired,
            Report::Surviving(names()),
            Report::Unheard(15, names()),
            Report::Survived(names()),
        ] {
            assert_eq!(Report::parse(&report.line()), Some(report));
        }
        assert_eq!(Report::parse("ended lots"), None);
    }
}
