//! A signal that every process gets, as from systemd, which stops a service by a signal to each
//! process of its control group: the command has it then, and does not need it passed on.
//!
//! The watchdog blocks all signals; what it was sent tells. But `killall PATH`, or a script that knows
//! their numbers, reaches the plugin and its watchdog too, and not the command: so only a signal counts
//! that was sent by an ancestor of another session (the service manager is one) or from outside of the
//! container. A signal too many is better than none.

use std::time::Duration;

#[cfg(target_os = "linux")]
use nix::sys::{
    signal::{SigSet, Signal},
    signalfd::{SfdFlags, SignalFd},
};

#[cfg(target_os = "linux")]
use super::processes;
use crate::clock::BootInstant;

/// How much later than the plugin the watchdog may be sent the same signal.
const LATER: Duration = Duration::from_millis(50);
/// And how much earlier.
const EARLIER: Duration = Duration::from_millis(500);

/// The signals for the command, and those that this process was sent itself, and blocks.
#[derive(Default)]
pub(super) struct Broadcast {
    #[cfg(target_os = "linux")]
    signals: Option<SignalFd>,
    /// Each with its time.
    received: Vec<(i32, BootInstant)>,
    /// Each with the time at which it is passed on, unless it is received before.
    held_back: Vec<(i32, BootInstant)>,
}

impl Broadcast {
    /// To be called when the command has been started: it has nothing of what was sent before.
    #[cfg(target_os = "linux")]
    pub(super) fn new() -> Self {
        let passed_on = [
            Signal::SIGINT,
            Signal::SIGTERM,
            Signal::SIGHUP,
            Signal::SIGQUIT,
            Signal::SIGUSR1,
            Signal::SIGUSR2,
        ];
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        let signals = SignalFd::with_flags(&SigSet::from_iter(passed_on), flags).ok();
        let mut broadcast = Self { signals, ..Self::default() };
        broadcast.read();
        broadcast.received.clear();
        broadcast
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Reads what has come: to be called often, since a signal does not tell when it was sent.
    fn read(&mut self) {
        let now = BootInstant::now();
        self.received.retain(|(_, time)| now < *time + EARLIER);
        #[cfg(target_os = "linux")]
        while let Some(Ok(Some(info))) = self.signals.as_ref().map(SignalFd::read_signal) {
            let sender = i32::try_from(info.ssi_pid).unwrap_or_default();
            if let Ok(number) = i32::try_from(info.ssi_signo)
                && (sender == 0 || processes::is_manager(sender))
            {
                self.received.push((number, now));
            }
        }
    }

    /// A signal that the plugin has received. Like one that is pending, it is not counted.
    pub(super) fn hold_back(&mut self, number: i32) {
        let until = BootInstant::now() + if cfg!(target_os = "linux") { LATER } else { Duration::ZERO };
        if !self.held_back.iter().any(|(held_back, _)| *held_back == number) {
            self.held_back.push((number, until));
        }
    }

    pub(super) fn holds_back(&self) -> bool {
        !self.held_back.is_empty()
    }

    /// The signals that have been held back long enough, each with whether it was sent to every process,
    /// so that the command has it.
    pub(super) fn decided(&mut self) -> Vec<(i32, bool)> {
        self.read();
        let mut decided = Vec::new();
        self.held_back.retain(|(number, until)| {
            let sent_to_all = self.received.iter().position(|(received, _)| received == number);
            // Each counts once.
            sent_to_all.map(|at| self.received.remove(at));
            let is_decided = sent_to_all.is_some() || until.has_passed();
            if is_decided {
                decided.push((*number, sent_to_all.is_some()));
            }
            !is_decided
        });
        decided
    }
}
