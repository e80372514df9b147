//! The watchdog: a process between the plugin and the command that runs under a lease.
//!
//! The plugin, which renews, may be stopped (SIGSTOP, a debugger, swap) or killed while the command
//! runs on. So the end of the command is this process's business: it receives over a pipe, at each
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
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use nix::{
    errno::Errno,
    sys::signal::{SigSet, Signal, killpg},
    unistd::{Pid, close},
};
use rustix::process::{WaitOptions, WaitStatus};

use super::{
    broadcast::Broadcast,
    ending::{Due, Ending},
    exec,
    processes::{self, ChildState, GLANCE, wait_for_child},
    terminal::Terminal,
};
use crate::{clock::BootInstant, program::Program, signals};

/// The hidden subcommand that makes this binary a watchdog.
pub(crate) const SUBCOMMAND: &str = "__watchdog";

/// Its name among the processes.
const NAME: &std::ffi::CStr = c"lease-watchdog";

/// The clock that counts sleep has no timers here: it is looked at this often.
const LOOK: Duration = Duration::from_millis(50);

/// What has not looked for so long was stopped, or the machine slept.
const GAP: Duration = Duration::from_millis(250);

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
    /// It died of this signal, SIGINT or SIGQUIT, which it has from the terminal.
    Interrupted(i32),
    /// Its time ran out, and it was ended.
    Expired,
    /// It was stopped because it needs the terminal, which it does not have.
    Background,
    /// It has ended, and these processes that it left behind could not be ended yet.
    Surviving(String),
    /// A signal for it could not be sent to any of these processes of it.
    Unheard(i32, String),
    /// Its time ran out, and these processes of it could not be ended.
    Survived(String),
}

impl Report {
    pub(super) fn line(&self) -> String {
        match self {
            Self::Watching(id) => format!("watching {id}\n"),
            Self::TooLate => "late\n".to_owned(),
            Self::Started(group) => format!("started {group}\n"),
            Self::NotStarted(code, why) => format!("failed {code} {}\n", why.replace('\n', " ")),
            Self::Ended(code) => format!("ended {code}\n"),
            Self::Interrupted(signal) => format!("interrupted {signal}\n"),
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
            "interrupted" => rest.parse().ok().map(Self::Interrupted),
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
enum WatchdogEvent {
    Order(Order),
    /// The plugin is gone.
    Orphaned,
    /// The command has ended.
    Ended(WaitStatus),
    /// The command was stopped because it needs the terminal, which it does not have.
    Background,
    /// Nothing descends from this process any more.
    Alone,
}

/// The process that will be a watchdog, with the leash's arguments and what it started with blocked.
pub(super) fn command(program: &Program, args: &[OsString], blocked: &SigSet) -> Command {
    let mut watchdog = program.command();
    watchdog
        .arg0(NAME.to_string_lossy().as_ref())
        .arg(SUBCOMMAND)
        .args(args)
        .arg(signals::mask_to_word(blocked))
        // What stops or kills the leash's process group leaves the watchdog alone.
        .process_group(0);
    watchdog
}

/// The variable that has a word of the command.
pub(super) fn word_name(n: usize) -> String {
    format!("KUBECTL_LEASE_COMMAND_{n}")
}

/// The watchdog's whole life: `ARGS` are the two pipes' numbers, how many words the command has, the
/// plugin's process, and the signals that are blocked for the command. For itself all of them are.
pub(crate) fn run(program: &Program, args: impl Iterator<Item = OsString>) -> ExitCode {
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

    let mut report =
        |report: &Report| reports.write_all(report.line().as_bytes()).and_then(|()| reports.flush()).is_ok();
    let (sender, events) = mpsc::channel();
    let (begin, started) = mpsc::channel();
    let handed_over = Arc::new(AtomicBool::new(false));
    let threads = start_threads(orders, sender, started, Arc::clone(&handed_over));
    report(&Report::Watching(Pid::this().as_raw()));
    if let Err(error) = threads {
        let (code, why) = exec::failure(&error);
        report(&Report::NotStarted(code, format!("cannot start a thread: {why}")));
        return ExitCode::SUCCESS;
    }
    // Nothing is started before it is known until when it may run.
    let Ok(WatchdogEvent::Order(Order::Valid { terminate, kill })) = events.recv() else { return refused };
    if terminate.has_passed() {
        // The plugin was stopped between taking the lease and getting here.
        report(&Report::TooLate);
        return ExitCode::SUCCESS;
    }
    // By this thread, which lives as long as this process: with it, the command ends.
    let started = match exec::start(program, &command, &blocked, &names) {
        Ok(started) => started,
        Err(error) => {
            let (code, why) = exec::failure(&error);
            report(&Report::NotStarted(code, why));
            return ExitCode::SUCCESS;
        }
    };
    let group = Pid::from_raw(i32::try_from(started.process.id()).unwrap_or(i32::MAX));
    report(&Report::Started(group.as_raw()));
    let mut terminal = Terminal::new(plugin, group, handed_over);
    terminal.iter_mut().for_each(Terminal::look);
    let _ = begin.send(group);
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
    ExitCode::SUCCESS
}

/// Starts what reads the orders, and what reaps, as soon as the command is `started`. Before it is: where
/// no thread can be started, no command is.
fn start_threads(
    orders: File,
    events: mpsc::Sender<WatchdogEvent>,
    started: mpsc::Receiver<Pid>,
    handed_over: Arc<AtomicBool>,
) -> io::Result<()> {
    let orders_events = events.clone();
    thread::Builder::new().spawn(move || {
        for line in BufReader::new(orders).lines().map_while(Result::ok) {
            if let Some(order) = Order::parse(&line) {
                let _ = orders_events.send(WatchdogEvent::Order(order));
            }
        }
        let _ = orders_events.send(WatchdogEvent::Orphaned);
    })?;
    thread::Builder::new().spawn(move || {
        if let Ok(group) = started.recv() {
            reap(group, &handed_over, &events);
        }
    })?;
    Ok(())
}

/// Until the command and everything that it started have ended, have been ended, or cannot be ended.
fn guard(
    group: Pid,
    events: &mpsc::Receiver<WatchdogEvent>,
    mut ending: Ending,
    mut terminal: Option<Terminal>,
    report: &mut impl FnMut(&Report) -> bool,
) -> Report {
    // How the command ended, and when; what it left behind is killed next at the other time.
    let mut ended: Option<(Report, BootInstant)> = None;
    let mut kill_again = BootInstant::now();
    let mut spoken_of = String::new();
    let mut broadcast = Broadcast::new();
    let mut passed_on: Vec<i32> = Vec::new();
    let mut looked = BootInstant::now();
    loop {
        let fresh = ended.as_ref().is_some_and(|(_, since)| !(*since + LINGER).has_passed());
        let pause = if fresh || broadcast.holds_back() { GLANCE } else { LOOK };
        let first = events.recv_timeout(pause);
        if (looked + GAP).has_passed() {
            // What was sent meanwhile is still being read.
            thread::sleep(LOOK);
        }
        looked = BootInstant::now();
        let had_ended = ended.is_some();
        // All of it, before anything is ended: renewals may be among it, behind any number of signals.
        for event in first.into_iter().chain(events.try_iter()) {
            match event {
                WatchdogEvent::Ended(status) => {
                    // What the command left running had the lease's protection too, and has it no longer.
                    let _ = killpg(group, Signal::SIGKILL);
                    let on_terminal = terminal.as_ref().is_some_and(Terminal::is_commands);
                    ended = Some((end_of_command(status, on_terminal, &passed_on), BootInstant::now()));
                    // Ctrl-C is for the plugin now.
                    terminal = None;
                }
                WatchdogEvent::Alone => {
                    let end = ended.map_or(Report::Ended(1), |(end, _)| end);
                    return if ending.has_begun() { Report::Expired } else { end };
                }
                WatchdogEvent::Order(Order::Valid { terminate, kill }) => ending.renewed(terminate, kill),
                WatchdogEvent::Order(Order::Signal(number)) => broadcast.hold_back(number),
                WatchdogEvent::Background => {
                    report(&Report::Background);
                }
                WatchdogEvent::Orphaned => ending.orphaned(BootInstant::now()),
            }
        }
        // While its first process is not reaped, the group's number cannot be another's.
        let alive = ended.is_none().then_some(group);
        for (number, command_has_it) in broadcast.decided() {
            let (Some(group), Ok(signal)) = (alive, Signal::try_from(number)) else { continue };
            if !command_has_it {
                if !passed_on.contains(&number) {
                    passed_on.push(number);
                }
                if killpg(group, signal) == Err(Errno::EPERM) {
                    report(&Report::Unheard(number, processes::names()));
                }
            }
            // A command that is stopped, such as for want of the terminal, cannot hear it.
            if signals::asks_to_end(number) {
                let _ = killpg(group, Signal::SIGCONT);
            }
        }
        terminal.iter_mut().for_each(Terminal::look);
        if ended.is_some() && !had_ended {
            continue;
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
        if let Some((_, since)) = &ended
            && kill_again.has_passed()
        {
            processes::signal_all(None, Signal::SIGKILL);
            let fresh = !(*since + LINGER).has_passed();
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

/// What is reported of a command that has ended like this.
fn end_of_command(status: WaitStatus, on_terminal: bool, passed_on: &[i32]) -> Report {
    let from_terminal = [Signal::SIGINT, Signal::SIGQUIT].map(|signal| signal as i32);
    match status.terminating_signal() {
        Some(signal) if on_terminal && from_terminal.contains(&signal) && !passed_on.contains(&signal) => {
            Report::Interrupted(signal)
        }
        Some(signal) => Report::Ended(128_u8.saturating_add(u8::try_from(signal).unwrap_or(u8::MAX))),
        None => Report::Ended(status.exit_status().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
    }
}

/// Says when the command ends, and when nothing that descends from this process is left.
fn reap(child: Pid, handed_over: &AtomicBool, events: &mpsc::Sender<WatchdogEvent>) {
    const TSTP: i32 = Signal::SIGTSTP as i32;
    const STOP: i32 = Signal::SIGSTOP as i32;
    const TTIN: i32 = Signal::SIGTTIN as i32;
    const TTOU: i32 = Signal::SIGTTOU as i32;
    let mut reported = false;
    loop {
        // Any child: what the command has orphaned has come to us, and is not left a zombie.
        let status = match wait_for_child(WaitOptions::UNTRACED) {
            ChildState::Changed(changed, status) if changed == child => status,
            ChildState::Changed(..) | ChildState::Nothing => continue,
            ChildState::Alone => {
                let _ = events.send(WatchdogEvent::Alone);
                return;
            }
        };
        let on_terminal = handed_over.load(Ordering::SeqCst);
        match status.stopping_signal() {
            None => {
                let _ = events.send(WatchdogEvent::Ended(status));
            }
            // Ctrl-Z, or what a program does then, or by itself: there is no way to bring it back from here,
            // and the lease would be held for nothing.
            Some(signal) if signal == TSTP || signal == STOP && on_terminal => {
                let _ = killpg(child, Signal::SIGCONT);
            }
            // It wanted the terminal before it had it.
            Some(TTIN | TTOU) if on_terminal => {
                thread::sleep(LOOK);
                let _ = killpg(child, Signal::SIGCONT);
            }
            // Where it is not to have it, it waits, as anything in the background does.
            Some(TTIN | TTOU) if !reported => {
                reported = true;
                let _ = events.send(WatchdogEvent::Background);
            }
            Some(_) => {}
        }
    }
}

/// A pipe that was inherited by number, as a file of our own that the command will not inherit.
pub(super) fn inherited(number: RawFd, write: bool) -> io::Result<File> {
    let file = File::options().read(!write).write(write).open(format!("/dev/fd/{number}"))?;
    let _ = close(number);
    Ok(file)
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
            Report::Interrupted(2),
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
