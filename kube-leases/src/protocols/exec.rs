//! The step between the watchdog and the command: a process that ties its life to the watchdog's, and
//! then becomes the command.
//!
//! When plugin, leash and watchdog are killed together, nothing is left that would end the command: so
//! the kernel does (`PR_SET_PDEATHSIG`). A process can ask for that only itself.

use std::{
    ffi::OsString,
    io::{self, PipeReader, Read as _, Write as _},
    os::{
        fd::{AsRawFd as _, RawFd},
        unix::process::CommandExt as _,
    },
    process::{Child, Command, ExitCode},
};

use nix::{
    fcntl::{FcntlArg, FdFlag, fcntl},
    sys::signal::{Signal, killpg},
    unistd::{Pid, getpgrp, getppid},
};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::watchdog::inherited;
use crate::{program::Program, signals};

/// The hidden subcommand that makes this binary the command.
pub(crate) const SUBCOMMAND: &str = "__exec";

/// Why the command could not be run: the shell's code for that, and the reason.
pub(super) type ExecFailure = (u8, String);

pub(super) fn failure(error: &io::Error) -> ExecFailure {
    (if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }, error.to_string())
}

/// A command that was started, in a process group of its own.
pub(super) struct Started {
    pub(super) process: Child,
    failure: PipeReader,
}

impl Started {
    /// Why the process ended without having become the command, if it did: to be asked when it has
    /// ended.
    pub(super) fn failure(mut self) -> Option<ExecFailure> {
        let mut text = String::new();
        self.failure.read_to_string(&mut text).ok()?;
        let (code, why) = text.split_once(' ')?;
        Some((code.parse().ok()?, why.to_owned()))
    }
}

/// Starts `command` as a process that the kernel kills when the calling thread ends. It has the signal
/// mask `blocked` and not the caller's, and of the environment not `without`.
pub(super) fn start(
    program: &Program,
    command: &[OsString],
    blocked: &str,
    without: &[String],
) -> io::Result<Started> {
    let (failure, theirs) = io::pipe()?;
    fcntl(&theirs, FcntlArg::F_SETFD(FdFlag::empty()))?;
    let mut process = program.command();
    process
        .arg(SUBCOMMAND)
        .arg(Pid::this().to_string())
        .arg(theirs.as_raw_fd().to_string())
        .arg(blocked)
        .args(command)
        .process_group(0);
    for name in without {
        process.env_remove(name);
    }
    Ok(Started { process: process.spawn()?, failure })
}

/// Becomes the command. `ARGS` are the watchdog's process, the pipe for a failure, the signals that
/// are blocked, and the command.
pub(crate) fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let refused = ExitCode::from(126);
    let mut args = args;
    let mut word = || args.next()?.into_string().ok();
    let (Some(watchdog), Some(failures), Some(blocked)) = (word(), word(), word()) else { return refused };
    let (Ok(watchdog), Ok(failures)) = (watchdog.parse().map(Pid::from_raw), failures.parse::<RawFd>())
    else {
        return refused;
    };
    let Some(program) = args.next() else { return refused };
    let Ok(mut failures) = inherited(failures, true) else { return refused };
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    // It may have died before the kernel was asked.
    if getppid() != watchdog {
        return refused;
    }
    let _ = signals::mask_from_word(&blocked).thread_set_mask();
    let error = Command::new(program).args(args).exec();
    let (code, why) = failure(&error);
    let _ = write!(failures, "{code} {why}");
    ExitCode::from(code)
}

/// The hidden subcommand that makes this binary die of a signal.
pub(crate) const DIE: &str = "__die";

/// Dies of a signal, together with the rest of the process group, to which it was not sent either: the
/// terminal was the command's. So a script ends by Ctrl-C, of which its shell sees that the command died.
/// Returns where that is not possible.
pub(crate) fn die_of(program: &Program, signal: i32) {
    // This process listens to the signal. What is executed does not, until it asks for that.
    let _ = program.command().arg(DIE).arg(signal.to_string()).exec();
}

/// Dies of the signal that `ARGS` name.
pub(crate) fn die(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let number = args.next().and_then(|word| word.to_str()?.parse::<i32>().ok());
    let Some(signal) = number.and_then(|number| Signal::try_from(number).ok()) else {
        return ExitCode::from(2);
    };
    // The command has left its memory already, where that is wanted.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = killpg(getpgrp(), signal);
    ExitCode::from(128_u8.saturating_add(u8::try_from(signal as i32).unwrap_or(u8::MAX)))
}
