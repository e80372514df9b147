//! The binary that is executed again for what has to be a process of its own: the leash, the watchdog and the
//! step before a command that runs under leases, and the step before a credential plugin that must not use
//! the terminal.

use std::path::PathBuf;

/// A binary whose `main` begins with [`Program::serve`]. Nothing else is ever executed in its place: the
/// library does not look for the binary that it runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program(PathBuf);

impl Program {
    /// The binary at this path. On Linux `/proc/self/exe` is the one that runs, also when its file was
    /// replaced since, by an upgrade.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    #[cfg(unix)]
    pub(crate) fn command(&self) -> std::process::Command {
        std::process::Command::new(&self.0)
    }
}
