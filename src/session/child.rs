//! Running a command under leases: the plugin's side of the watchdog.

use std::{
    ffi::OsString,
    io::{self, BufRead as _, BufReader, PipeWriter, Write as _},
    os::{fd::AsRawFd as _, unix::process::CommandExt as _},
    process, thread,
    time::Duration,
};

use nix::{
    fcntl::{FcntlArg, FdFlag, OFlag, fcntl},
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    time::sleep,
};

use super::{
    Held, Lost, keep,
    watchdog::{self, Order, Report},
};
use crate::{
    clock::BootInstant,
    cluster::Cluster,
    domain::deadline::Schedule,
    error::{Error, Result},
};

/// How late the watchdog may be before it is done without.
const LATENESS: Duration = Duration::from_millis(300);

/// How a command that ran under leases ended.
#[derive(Debug)]
pub enum Ended {
    /// By itself, or by a signal: its code.
    Code(u8),
    /// It could not be started: the shell's code for that, and why.
    NotStarted(u8, String),
    /// A lease was lost, and it was ended.
    Lost(String),
}

/// Runs `command` until it ends, or until one of the leases is lost. Signals that ask a process to
/// end or to do something are passed on to it.
pub async fn run(
    cluster: &Cluster,
    held: &[Held],
    schedule: Schedule,
    command: &[OsString],
) -> Result<Ended> {
    let valid_since = held.iter().map(Held::sent).min().unwrap_or_else(BootInstant::now);
    let mut signals = signals()?;
    // If the watchdog is killed, what it guarded comes to us.
    watchdog::adopt_orphans();
    let (guard, mut reports) = Watchdog::start(command, &environment(held))?;
    guard.valid(valid_since, schedule);

    let keeping = async {
        let lost = keep(cluster, held, schedule, |since| guard.valid(since, schedule)).await;
        // Whoever took it may begin any moment: nothing is left but last words.
        let now = BootInstant::now();
        if !matches!(lost, Lost::Unrenewed { .. }) {
            guard.order(Order::Valid { terminate: now, kill: now + schedule.last_words() });
        }
        lost
    };
    tokio::pin!(keeping);
    let mut lost: Option<Lost> = None;
    let mut group = None;
    // When the watchdog should have done its work; it may have been stopped itself.
    let mut overdue = BootInstant::now();
    loop {
        let report = tokio::select! {
            report = reports.recv() => report,
            why = &mut keeping, if lost.is_none() => {
                let left = match why {
                    Lost::Unrenewed { .. } => schedule.kill.saturating_sub(schedule.terminate),
                    Lost::Taken { .. } | Lost::Deleted { .. } => schedule.last_words(),
                };
                overdue = BootInstant::now() + left + LATENESS;
                lost = Some(why);
                continue;
            }
            () = sleep(overdue.remaining().max(LATENESS)), if lost.is_some() => {
                if overdue.has_passed() {
                    if let Some(group) = group {
                        let _ = killpg(group, Signal::SIGKILL);
                    }
                    guard.wake();
                }
                continue;
            }
            Some(number) = signals.recv() => {
                guard.order(Order::Signal(number));
                continue;
            }
        };
        let words = || {
            lost.as_ref().map_or_else(|| "its lease could not be renewed in time".to_owned(), Lost::to_string)
        };
        match report {
            Some(Report::Started(number)) => group = Some(Pid::from_raw(number)),
            Some(Report::NotStarted(code, why)) => return Ok(Ended::NotStarted(code, why)),
            Some(Report::Ended(code)) if lost.is_none() => return Ok(Ended::Code(code)),
            Some(Report::Ended(_) | Report::Expired) => return Ok(Ended::Lost(words())),
            // The watchdog itself was killed: nobody would end the command in time.
            None => {
                if let Some(group) = group {
                    watchdog::end_everything(group);
                }
                return Ok(Ended::Lost("the watchdog that guards the command was killed".into()));
            }
        }
    }
}

/// The fencing token: what whoever the command talks to can compare, lease by lease in one order.
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
    process: process::Child,
    /// Open as long as the command may run.
    orders: Option<PipeWriter>,
}

impl Watchdog {
    /// Starts one, and hears what it reports until it is gone.
    fn start(
        command: &[OsString],
        environment: &[(&'static str, String)],
    ) -> Result<(Self, mpsc::UnboundedReceiver<Report>)> {
        let broken = |error: io::Error| Error::Refused {
            message: format!(
                "cannot start the watchdog, without which nothing is run under a lease: {error}"
            ),
            hint: None,
        };
        let (their_orders, orders) = io::pipe().map_err(broken)?;
        let (reports, their_reports) = io::pipe().map_err(broken)?;
        // A watchdog that is stopped reads nothing: renewing does not wait for it.
        fcntl(&orders, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(|error| broken(error.into()))?;
        // Their ends go to the watchdog by number; ours stay ours.
        fcntl(&their_orders, FcntlArg::F_SETFD(FdFlag::empty())).map_err(|error| broken(error.into()))?;
        fcntl(&their_reports, FcntlArg::F_SETFD(FdFlag::empty())).map_err(|error| broken(error.into()))?;
        let process = process::Command::new(std::env::current_exe().map_err(broken)?)
            .arg(watchdog::SUBCOMMAND)
            .arg(their_orders.as_raw_fd().to_string())
            .arg(their_reports.as_raw_fd().to_string())
            .args(command)
            .envs(environment.iter().map(|(name, value)| (*name, value)))
            // What stops or kills the plugin's process group leaves the watchdog alone.
            .process_group(0)
            .spawn()
            .map_err(broken)?;
        let (sender, receiver) = mpsc::unbounded_channel();
        thread::spawn(move || {
            for line in BufReader::new(reports).lines().map_while(io::Result::ok) {
                if let Some(report) = Report::parse(&line) {
                    let _ = sender.send(report);
                }
            }
        });
        Ok((Self { process, orders: Some(orders) }, receiver))
    }

    /// So that it can report, if it was stopped.
    fn wake(&self) {
        if let Ok(id) = i32::try_from(self.process.id()) {
            let _ = kill(Pid::from_raw(id), Signal::SIGCONT);
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
        let _ = self.process.wait();
    }
}

/// The signals that are for the command, as they come.
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
    for kind in kinds {
        let mut stream = signal(kind).map_err(Error::Output)?;
        let sender = sender.clone();
        tokio::spawn(async move {
            while stream.recv().await.is_some() {
                let _ = sender.send(kind.as_raw_value());
            }
        });
    }
    Ok(receiver)
}
