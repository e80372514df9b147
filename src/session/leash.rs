//! The leash: the process between the plugin and the watchdog.
//!
//! When plugin and watchdog are both killed, the kernel kills the command (see [`super::exec`]), but not
//! what the command started. As the parent of the watchdog this process adopts all of that, and ends
//! it. It does nothing else: so of plugin, leash and watchdog any two can be killed.

use std::{
    ffi::OsString,
    io::{self, Write as _},
    os::{fd::RawFd, unix::process::CommandExt as _},
    process::{Command, ExitCode, id},
};

use nix::{
    sys::signal::{SigSet, SigmaskHow},
    unistd::close,
};

use super::{
    exec,
    processes::{adopt_orphans, end_everything},
    watchdog,
};

/// The hidden subcommand that makes this binary the leash.
pub const SUBCOMMAND: &str = "__leash";

/// Its name among the processes: neither the plugin's nor the watchdog's, which can be killed by name.
const NAME: &std::ffi::CStr = c"lease-leash";

/// The process that will start a watchdog for `command`, which is told and reports over these pipes.
pub(super) fn command(command: &[OsString], orders: RawFd, reports: RawFd) -> io::Result<Command> {
    let mut leash = Command::new(exec::this_program()?);
    leash
        .arg0(NAME.to_string_lossy().as_ref())
        .arg(SUBCOMMAND)
        .args([orders.to_string(), reports.to_string(), command.len().to_string(), id().to_string()])
        // Not as arguments: what kills the command by its words (pkill -f) would kill leash and watchdog.
        .envs(command.iter().enumerate().map(|(n, word)| (watchdog::word_name(n), word)))
        // What stops or kills the plugin's process group leaves leash and watchdog alone.
        .process_group(0);
    Ok(leash)
}

/// The leash's whole life: `ARGS` are the watchdog's, of which the first two are its pipes.
pub fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let refused = ExitCode::from(2);
    let args: Vec<OsString> = args.collect();
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_name(NAME);
    // The watchdog inherits it. The terminal's signals too: the watchdog hands it to the command, and
    // takes it back, from the background.
    let Ok(blocked) = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK) else { return refused };
    adopt_orphans();
    let Ok(mut watchdog) = watchdog::command(&args, &blocked).and_then(|mut watchdog| watchdog.spawn())
    else {
        return refused;
    };
    // The plugin knows by their end that the watchdog is gone.
    for pipe in args.iter().take(2).filter_map(|pipe| pipe.to_str()?.parse::<RawFd>().ok()) {
        let _ = close(pipe);
    }
    if watchdog.wait().is_ok_and(|status| status.success()) {
        return ExitCode::SUCCESS;
    }
    // It was killed, and nothing else may be left that would end the command in time. A plugin that
    // is left does the same.
    if let Some(names) = end_everything(None) {
        let _ = writeln!(io::stderr(), "error: the watchdog was killed, and {names} could not be ended");
    }
    ExitCode::FAILURE
}
