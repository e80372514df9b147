//! The leash: the process between the plugin and the watchdog.
//!
//! When plugin and watchdog are both killed, the kernel kills the command (see [`super::exec`]), but not
//! what the command started. As the parent of the watchdog this process adopts all of that, and ends
//! it: so of plugin, leash and watchdog any two can be killed. And when the plugin is killed while the
//! watchdog is stopped, it continues the watchdog, or kills it.

use std::{
    ffi::OsString,
    io::{self, Write as _},
    os::{fd::RawFd, unix::process::CommandExt as _},
    process::{Child, Command, ExitCode, ExitStatus, id},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use nix::{
    sys::signal::{SigSet, SigmaskHow, Signal, kill},
    unistd::{Pid, close, getppid},
};
use rustix::{
    io::retry_on_intr,
    process::{WaitId, WaitIdOptions, waitid},
};

use super::{
    ending::ALL_ENDED,
    exec,
    processes::{adopt_orphans, end_everything},
    watchdog::{self, Report, inherited},
};
use crate::{clock::BootInstant, program::Program};

/// How often the plugin is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// The hidden subcommand that makes this binary the leash.
pub(crate) const SUBCOMMAND: &str = "__leash";

/// Its name among the processes: neither the plugin's nor the watchdog's, which can be killed by name.
const NAME: &std::ffi::CStr = c"lease-leash";

/// The process that will start a watchdog for `command`, which receives orders and reports over these pipes.
pub(super) fn command(program: &Program, command: &[OsString], orders: RawFd, reports: RawFd) -> Command {
    let mut leash = program.command();
    leash
        .arg0(NAME.to_string_lossy().as_ref())
        .arg(SUBCOMMAND)
        .args([orders.to_string(), reports.to_string(), command.len().to_string(), id().to_string()])
        // Not as arguments: what kills the command by its words (pkill -f) would kill leash and watchdog.
        .envs(command.iter().enumerate().map(|(n, word)| (watchdog::word_name(n), word)))
        // What stops or kills the plugin's process group leaves leash and watchdog alone.
        .process_group(0);
    leash
}

/// The leash's whole life: `ARGS` are the watchdog's, of which the first two are its pipes.
pub(crate) fn run(program: &Program, args: impl Iterator<Item = OsString>) -> ExitCode {
    let refused = ExitCode::from(2);
    let args: Vec<OsString> = args.collect();
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_name(NAME);
    // The watchdog inherits it. The terminal's signals too: the watchdog hands it to the command, and
    // takes it back, from the background.
    let Ok(blocked) = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK) else { return refused };
    adopt_orphans();
    let plugin = args.get(3).and_then(|id| id.to_str()?.parse().ok()).map(Pid::from_raw);
    let pipe = |n: usize| args.get(n).and_then(|pipe| pipe.to_str()?.parse::<RawFd>().ok());
    let (Some(plugin), Some(orders), Some(reports)) = (plugin, pipe(0), pipe(1)) else { return refused };
    let (end, ended) = mpsc::channel();
    let (begin, started) = mpsc::channel();
    let watchdog =
        start_waiting(started, end).and_then(|()| watchdog::command(program, &args, &blocked).spawn());
    let mut watchdog = match watchdog {
        Ok(watchdog) => watchdog,
        Err(error) => {
            let (code, why) = exec::failure(&error);
            let report = Report::NotStarted(code, format!("cannot start its watchdog: {why}"));
            let written = inherited(reports, true).and_then(|mut to| to.write_all(report.line().as_bytes()));
            return if written.is_ok() { ExitCode::SUCCESS } else { refused };
        }
    };
    let _ = begin.send(watchdog.id());
    // The plugin knows by their end that the watchdog is gone.
    for pipe in [orders, reports] {
        let _ = close(pipe);
    }
    if wait_for(&mut watchdog, &ended, plugin).is_ok_and(|status| status.success()) {
        return ExitCode::SUCCESS;
    }
    // It was killed, and nothing else may be left that would end the command in time. A plugin that
    // is left does the same.
    if let Some(names) = end_everything(None) {
        let _ = writeln!(io::stderr(), "error: the watchdog was killed, and {names} could not be ended");
    }
    ExitCode::FAILURE
}

/// Starts what tells that the watchdog has ended, and leaves it to be reaped: until then its number cannot
/// be another's.
fn start_waiting(started: mpsc::Receiver<u32>, end: mpsc::Sender<()>) -> io::Result<()> {
    let wait = move || {
        let watchdog =
            started.recv().ok().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(watchdog) = watchdog {
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let _ = retry_on_intr(|| waitid(WaitId::Pid(watchdog), ended));
        }
        drop(end);
    };
    thread::Builder::new().spawn(wait).map(drop)
}

/// Until the watchdog has ended. When the plugin has, the watchdog has to follow.
fn wait_for(watchdog: &mut Child, ended: &mpsc::Receiver<()>, plugin: Pid) -> io::Result<ExitStatus> {
    let process = Pid::from_raw(i32::try_from(watchdog.id()).unwrap_or(i32::MAX));
    let mut limit = None;
    while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        if getppid() != plugin {
            let limit: BootInstant = *limit.get_or_insert_with(|| BootInstant::now() + ALL_ENDED);
            // If it was stopped, it goes on; if a debugger keeps it from that, it is done without.
            let signal = if limit.has_passed() { Signal::SIGKILL } else { Signal::SIGCONT };
            let _ = kill(process, signal);
        }
    }
    watchdog.wait()
}
