//! The terminal, while it is the command's: so it can read what is typed and hear Ctrl-C.

use std::{
    fs::File,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use nix::{
    sys::signal::{SigSet, SigmaskHow, Signal, killpg},
    unistd::{Pid, getpgid, getpgrp, tcgetpgrp, tcsetpgrp},
};
use tokio::signal::unix::SignalKind;

use super::processes;
use crate::signals;

fn open() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/tty")
}

pub(super) struct Terminal {
    tty: File,
    /// The plugin's process group.
    owner: Pid,
    plugin: Pid,
    /// The command's process group.
    group: Pid,
    /// Whether it was the plugin's when it was last looked at.
    was_owners: bool,
    handed_over: Arc<AtomicBool>,
}

impl Terminal {
    /// The terminal of this session, if it has one.
    pub(super) fn new(plugin: Pid, group: Pid, handed_over: Arc<AtomicBool>) -> Option<Self> {
        let owner = getpgid(Some(plugin)).unwrap_or_else(|_| getpgrp());
        Some(Self { tty: open().ok()?, owner, plugin, group, was_owners: false, handed_over })
    }

    /// Hands the terminal over as soon as it is the plugin's (from the start, or by `fg`) and its alone:
    /// what else is in its group, such as a pager at the other end of a pipe, would be in the background
    /// then, and would be stopped together with the plugin as soon as it reads a key.
    pub(super) fn look(&mut self) {
        let is_owners = tcgetpgrp(&self.tty) == Ok(self.owner);
        if is_owners
            && !self.was_owners
            && processes::is_alone_on_terminal(self.plugin)
            // The background job of a script: the terminal is the script's.
            && !signals::is_ignored(SignalKind::interrupt())
            // Looking for others took time, in which a key may have ended the script: then the terminal is the
            // shell's again, and stays so.
            && tcgetpgrp(&self.tty) == Ok(self.owner)
            && tcsetpgrp(&self.tty, self.group).is_ok()
        {
            self.handed_over.store(true, Ordering::SeqCst);
            // It may have asked for input before it was allowed to, and have been stopped for that.
            let _ = killpg(self.group, Signal::SIGCONT);
        }
        self.was_owners = is_owners;
    }

    pub(super) fn is_commands(&self) -> bool {
        self.handed_over.load(Ordering::SeqCst)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Unless the shell has taken it already, as it does when the plugin is stopped.
        if self.is_commands() && !tcgetpgrp(&self.tty).is_ok_and(processes::is_foreign_group) {
            let _ = tcsetpgrp(&self.tty, self.owner);
        }
    }
}

/// For the plugin, when the watchdog is gone: takes the terminal back from the command's process group.
pub(super) fn take_back(group: Pid) {
    let Ok(tty) = open() else { return };
    // The terminal stops what does this from the background, unless it blocks the signal.
    let Ok(mask) = SigSet::from(Signal::SIGTTOU).thread_swap_mask(SigmaskHow::SIG_BLOCK) else { return };
    if tcgetpgrp(&tty) == Ok(group) {
        let _ = tcsetpgrp(&tty, getpgrp());
    }
    let _ = mask.thread_set_mask();
}
