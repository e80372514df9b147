//! The step before a credential plugin that is run while a command has the terminal: a process that
//! leaves the terminal's session, and then becomes the plugin.
//!
//! What uses the terminal from the background is stopped, and its whole process group with it: that would
//! be this process, which renews the leases.

use std::{
    ffi::OsString,
    io,
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode},
};

use nix::unistd::setsid;

use crate::program::Program;

/// The hidden subcommand that makes this binary another program, without a terminal.
pub(crate) const SUBCOMMAND: &str = "__detached";

/// The program, to be started without a terminal.
pub(super) fn command(by: &Program, program: &str) -> Command {
    let mut command = by.command();
    command.arg(SUBCOMMAND).arg(program);
    command
}

/// Becomes the program that `ARGS` begin with.
pub(crate) fn run(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(program) = args.next() else { return ExitCode::from(2) };
    let _ = setsid();
    let error = Command::new(&program).args(args).exec();
    // Standard error is the user's.
    let _ = io::Write::write_fmt(
        &mut io::stderr(),
        format_args!("error: cannot run '{}': {error}\n", program.to_string_lossy()),
    );
    ExitCode::from(127)
}
