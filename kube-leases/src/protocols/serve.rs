//! What a [`Program`] does when it is executed again.

use std::{ffi::OsString, process::ExitCode};

use crate::program::Program;
#[cfg(unix)]
use crate::{
    client::detached,
    protocols::{exec, leash, watchdog},
};

impl Program {
    /// Does the work of such a process, if `args`, this process's own with its name before them, say that it
    /// is one. To be called before anything else: it blocks, and starts no runtime.
    #[cfg_attr(not(unix), expect(clippy::unused_self))]
    pub fn serve(&self, args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
        #[cfg(unix)]
        {
            let mut args = args.skip(1);
            match args.next()?.to_str()? {
                leash::SUBCOMMAND => Some(leash::run(self, args)),
                watchdog::SUBCOMMAND => Some(watchdog::run(self, args)),
                exec::SUBCOMMAND => Some(exec::run(args)),
                exec::DIE => Some(exec::die(args)),
                detached::SUBCOMMAND => Some(detached::run(args)),
                _ => None,
            }
        }
        #[cfg(not(unix))]
        {
            drop(args);
            None
        }
    }

    /// Dies of a signal, together with the rest of the process group, to which it was not sent either: the
    /// terminal was the command's. So a script ends by Ctrl-C, of which its shell sees that the command died.
    /// Returns where that is not possible.
    #[cfg(unix)]
    pub fn die_of(&self, signal: i32) {
        exec::die_of(self, signal);
    }
}
