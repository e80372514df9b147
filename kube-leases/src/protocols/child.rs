//! Running a command under leases: the plugin's side of the watchdog.

use std::{
    ffi::OsString,
    io::{self, BufRead as _, BufReader, PipeWriter, Write as _},
    os::fd::AsRawFd as _,
    process,
    sync::OnceLock,
    thread,
    time::Duration,
};

use nix::{
    fcntl::{FcntlArg, FdFlag, OFlag, fcntl},
    sys::signal::{Signal, kill, killpg},
    unistd::{Pid, getpgrp},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    time::sleep,
};

use super::{
    Held, Lost,
    ending::{ALL_ENDED, KILL_TIMEOUT},
    keep, leash,
    processes::{adopt_orphans, end_everything},
    terminal,
    watchdog::{Order, Report},
};
use crate::{
    client::Cluster,
    clock::BootInstant,
    error::{Error, Result},
    program::Program,
    rules::deadline::Schedule,
    signals::{asks_to_end, is_ignored},
};

/// How late the watchdog may be before it is done without, if the lease's duration leaves so much.
const LATENESS: Duration = Duration::from_millis(300);

/// How a command that ran under leases ended.
#[derive(Debug)]
pub enum CommandEnded {
    /// By itself, or by a signal: its code.
    Code(u8),
    /// Of this signal, which came from its terminal: what waits for this process has not received it.
    Interrupted(i32),
    /// It could not be started: the shell's code for that, and why.
    NotStarted(u8, String),
    /// It was not started: a lease was lost before.
    TooLate(Loss),
    /// A lease was lost, and it was ended.
    Lost(Loss),
    /// These processes of it could not be ended: the leases are not to be released.
    Survived {
        /// Their names.
        processes: String,
        /// Why it had to end; otherwise an interrupt came while its end was waited for.
        lost: Option<Loss>,
    },
}

/// Why a command has to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A lease was lost.
    Lease(Lost),
    /// The watchdog did not get a renewal in time.
    NotRenewed,
    /// The watchdog, which would end the command in time, was killed.
    WatchdogKilled,
}

/// What keeps a command from ending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// It was stopped, because it needs the terminal, which is not its own.
    WithoutTerminal,
    /// It has ended, and these processes that it left behind could not be ended yet.
    Surviving(String),
    /// This signal could not be sent to these processes: no permission.
    Unheard(i32, String),
}

/// Runs `command` until it and everything that it started have ended, or until one of the leases is
/// lost. Signals that ask a process to end or to do something are passed on to it. `warn` receives
/// what keeps it from ending.
pub async fn run(
    cluster: &Cluster,
    held: &[Held],
    schedule: Schedule,
    program: &Program,
    command: &[OsString],
    mut warn: impl FnMut(Warning) + Send,
) -> Result<CommandEnded> {
    let valid_since = || held.iter().map(Held::sent).min().unwrap_or_else(BootInstant::now);
    let lateness = LATENESS.min(schedule.spare() / 2);
    let mut signals = signals()?;
    // If leash and watchdog are killed, what they guarded comes to us.
    adopt_orphans();
    let (guard, mut reports) = Watchdog::start(program, command, &environment(held))?;
    guard.valid(valid_since(), schedule);

    let keeping = async {
        let lost = keep(cluster, held, schedule, |since| guard.valid(since, schedule)).await;
        // Another holder may begin to work any moment: nothing is left but last words.
        let now = BootInstant::now();
        if !matches!(lost, Lost::Unrenewed { .. }) {
            guard.order(Order::Valid { terminate: now, kill: now + schedule.last_words() });
        }
        lost
    };
    tokio::pin!(keeping);
    let mut lost: Option<Lost> = None;
    let mut group = None;
    // What does not end, and can be left behind by an interrupt.
    let mut stubborn: Option<String> = None;
    // When the watchdog should have done its work; it may have been stopped itself.
    let (mut overdue, mut given_up) = (BootInstant::now(), BootInstant::now());
    loop {
        let report = tokio::select! {
            report = reports.recv() => report,
            why = &mut keeping, if lost.is_none() => {
                let end = match why {
                    Lost::Unrenewed { .. } => valid_since() + schedule.kill,
                    Lost::Taken { .. } | Lost::Deleted { .. } => BootInstant::now() + schedule.last_words(),
                };
                (overdue, given_up) = (end + lateness, end + KILL_TIMEOUT + LATENESS * 2);
                lost = Some(why);
                continue;
            }
            () = sleep(overdue.remaining()), if lost.is_some() => {
                if let Some(group) = group {
                    let _ = killpg(group, Signal::SIGKILL);
                }
                // So that it can report, if it was stopped; if it does not, it is done without.
                guard.signal(if given_up.has_passed() { Signal::SIGKILL } else { Signal::SIGCONT });
                overdue = BootInstant::now() + lateness;
                continue;
            }
            Some(number) = signals.recv() => {
                if let Some(processes) = stubborn.take_if(|_| lost.is_none() && asks_to_end(number)) {
                    return Ok(CommandEnded::Survived { processes, lost: None });
                }
                guard.order(Order::Signal(number));
                if asks_to_end(number) {
                    // A watchdog that is stopped passes nothing on.
                    guard.signal(Signal::SIGCONT);
                }
                continue;
            }
        };
        let why = || lost.clone().map_or(Loss::NotRenewed, Loss::Lease);
        match report {
            Some(Report::Watching(number)) => {
                let _ = guard.process.set(Pid::from_raw(number));
            }
            Some(Report::TooLate) => return Ok(CommandEnded::TooLate(why())),
            Some(Report::Background) => warn(Warning::WithoutTerminal),
            Some(Report::Started(number)) => group = Some(Pid::from_raw(number)),
            Some(Report::NotStarted(code, why)) => return Ok(CommandEnded::NotStarted(code, why)),
            Some(Report::Ended(code)) if lost.is_none() => return Ok(CommandEnded::Code(code)),
            Some(Report::Interrupted(number)) if lost.is_none() => {
                return Ok(CommandEnded::Interrupted(number));
            }
            Some(Report::Ended(_) | Report::Interrupted(_) | Report::Expired) => {
                return Ok(CommandEnded::Lost(why()));
            }
            Some(Report::Surviving(processes)) => {
                warn(Warning::Surviving(processes.clone()));
                stubborn = Some(processes);
            }
            Some(Report::Unheard(number, processes)) => {
                warn(Warning::Unheard(number, processes.clone()));
                if asks_to_end(number) {
                    stubborn = Some(processes);
                }
            }
            Some(Report::Survived(processes)) => {
                return Ok(CommandEnded::Survived { processes, lost: Some(why()) });
            }
            // The watchdog itself was killed: nothing would end the command in time.
            None => {
                let why = lost.map_or(Loss::WatchdogKilled, Loss::Lease);
                return Ok(end_without_watchdog(group, why));
            }
        }
    }
}

fn end_without_watchdog(group: Option<Pid>, why: Loss) -> CommandEnded {
    if let Some(group) = group {
        terminal::take_back(group);
    }
    // Where everything can be found by descent, the group is not needed: the leash may have reaped its
    // first process, and the number be another's.
    match end_everything(group.filter(|_| !cfg!(target_os = "linux"))) {
        Some(processes) => CommandEnded::Survived { processes, lost: Some(why) },
        None => CommandEnded::Lost(why),
    }
}

/// The fencing token: what the command talks to can compare it, lease by lease in one order.
fn environment(held: &[Held]) -> Vec<(&'static str, String)> {
    let list = |value: &dyn Fn(&Held) -> String| held.iter().map(value).collect::<Vec<_>>().join(",");
    vec![
        ("KUBECTL_LEASE_NAMESPACE", list(&|held| held.at.namespace.clone())),
        ("KUBECTL_LEASE_NAME", list(&|held| held.at.name.clone())),
        ("KUBECTL_LEASE_UID", list(&|held| held.lease().value.metadata.uid.clone())),
        (
            "KUBECTL_LEASE_TRANSITIONS",
            list(&|held| held.lease().value.spec.lease_transitions.unwrap_or(0).to_string()),
        ),
        ("KUBECTL_LEASE_TOKEN", list(&|held| held.token.clone())),
        ("KUBECTL_LEASE_HOLDER", list(&|held| held.who.identity())),
    ]
}

struct Watchdog {
    /// The watchdog's parent.
    leash: process::Child,
    /// Once it has told.
    process: OnceLock<Pid>,
    /// Open as long as the command may run.
    orders: Option<PipeWriter>,
}

impl Watchdog {
    /// Starts one, and hears what it reports until it is gone.
    fn start(
        program: &Program,
        command: &[OsString],
        environment: &[(&'static str, String)],
    ) -> Result<(Self, mpsc::UnboundedReceiver<Report>)> {
        let broken = |error: io::Error| Error::Refused {
            message: format!(
                "cannot start the watchdog, which ends the command when the lease is lost: {error}"
            ),
        };
        let (their_orders, orders) = io::pipe().map_err(broken)?;
        let (reports, their_reports) = io::pipe().map_err(broken)?;
        // A watchdog that is stopped reads nothing: renewing does not wait for it.
        fcntl(&orders, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(|error| broken(error.into()))?;
        // Their ends go to the watchdog by number; ours stay ours.
        fcntl(&their_orders, FcntlArg::F_SETFD(FdFlag::empty())).map_err(|error| broken(error.into()))?;
        fcntl(&their_reports, FcntlArg::F_SETFD(FdFlag::empty())).map_err(|error| broken(error.into()))?;
        let (sender, receiver) = mpsc::unbounded_channel();
        let hear = move || {
            for line in BufReader::new(reports).lines().map_while(io::Result::ok) {
                if let Some(report) = Report::parse(&line) {
                    let _ = sender.send(report);
                }
            }
        };
        thread::Builder::new().spawn(hear).map_err(broken)?;
        let leash = leash::command(program, command, their_orders.as_raw_fd(), their_reports.as_raw_fd())
            .envs(environment.iter().map(|(name, value)| (*name, value)))
            .spawn()
            .map_err(broken)?;
        Ok((Self { leash, process: OnceLock::new(), orders: Some(orders) }, receiver))
    }

    /// Signals leash and watchdog.
    fn signal(&self, signal: Signal) {
        let leash = i32::try_from(self.leash.id()).ok().map(Pid::from_raw);
        for process in [leash, self.process.get().copied()].into_iter().flatten() {
            let _ = kill(process, signal);
        }
    }

    fn valid(&self, since: BootInstant, schedule: Schedule) {
        self.order(Order::Valid { terminate: since + schedule.terminate, kill: since + schedule.kill });
    }

    fn order(&self, order: Order) {
        // Where it is gone already, its silence says so.
        if let Some(mut orders) = self.orders.as_ref() {
            let _ = orders.write_all(order.line().as_bytes());
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // If the command still runs, this ends it.
        drop(self.orders.take());
        let limit = BootInstant::now() + ALL_ENDED;
        let ended = loop {
            match self.leash.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => break status.success(),
                // It was reaped by what has ended everything.
                Err(_) => return,
            }
            // If they were stopped; if a debugger keeps them from going on, they are done without.
            self.signal(if limit.has_passed() { Signal::SIGKILL } else { Signal::SIGCONT });
            thread::sleep(Duration::from_millis(1));
        };
        if !ended {
            // It did not see the end of the watchdog.
            let _ = end_everything(None);
        }
    }
}

/// The signals that are for the command, as they come. What this process was started to ignore, the
/// command ignores too.
fn signals() -> Result<mpsc::UnboundedReceiver<i32>> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
        SignalKind::quit(),
        SignalKind::user_defined1(),
        SignalKind::user_defined2(),
    ];
    for kind in kinds.into_iter().filter(|kind| !is_ignored(*kind)) {
        let mut stream = signal(kind).map_err(Error::System)?;
        let sender = sender.clone();
        tokio::spawn(async move {
            while stream.recv().await.is_some() {
                let _ = sender.send(kind.as_raw_value());
            }
        });
    }
    // Ctrl-Z on a pipeline would stop the renewals. The rest of it goes on, too.
    let stop = SignalKind::from_raw(Signal::SIGTSTP as i32);
    if !is_ignored(stop) {
        let mut stream = signal(stop).map_err(Error::System)?;
        tokio::spawn(async move {
            while stream.recv().await.is_some() {
                let _ = killpg(getpgrp(), Signal::SIGCONT);
            }
        });
    }
    // Except for this: where it is ignored, the kernel does not report how its children end. A process that
    // listens to it starts others with the default.
    drop(signal(SignalKind::child()).map_err(Error::System)?);
    Ok(receiver)
}
