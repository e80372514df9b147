//! A signal that every process gets, as from systemd, which stops a service by a signal to each
//! process of its control group: the command has it then, and does not need it passed on.
//!
//! The watchdog blocks all signals; what it was sent tells. But `killall PATH` reaches the plugin and
//! its watchdog too, and not the command: so only a signal counts that was sent by an ancestor (the
//! service manager is one) or from outside of the container. A signal too many is better than none.

#[cfg(target_os = "linux")]
use nix::sys::{
    signal::{SigSet, Signal},
    signalfd::{SfdFlags, SignalFd},
};
use std::{thread, time::Duration};

#[cfg(target_os = "linux")]
use super::processes;
use crate::clock::BootInstant;

/// How much later than the plugin the watchdog may be sent the same signal.
const LATER: Duration = Duration::from_millis(50);
/// And how much earlier.
const EARLIER: Duration = Duration::from_millis(500);

/// The signals that this process was sent, and blocks.
#[derive(Default)]
pub(super) struct Broadcast {
    #[cfg(target_os = "linux")]
    signals: Option<SignalFd>,
    /// Each with its time.
    received: Vec<(i32, BootInstant)>,
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
        let mut broadcast = Self { signals, received: Vec::new() };
        broadcast.read();
        broadcast.received.clear();
        broadcast
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Reads what has come: to be called often, since a signal does not tell when it was sent.
    pub(super) fn read(&mut self) {
        let now = BootInstant::now();
        self.received.retain(|(_, time)| now < *time + EARLIER);
        #[cfg(target_os = "linux")]
        while let Some(Ok(Some(info))) = self.signals.as_ref().map(SignalFd::read_signal) {
            let sender = i32::try_from(info.ssi_pid).unwrap_or_default();
            if let Ok(number) = i32::try_from(info.ssi_signo)
                && (sender == 0 || processes::is_ancestor(sender))
            {
                self.received.push((number, now));
            }
        }
    }

    /// Whether a signal that the plugin has received was sent to every process. Each counts once.
    pub(super) fn take(&mut self, number: i32) -> bool {
        let limit = BootInstant::now() + if cfg!(target_os = "linux") { LATER } else { Duration::ZERO };
        loop {
            self.read();
            if let Some(at) = self.received.iter().position(|(received, _)| *received == number) {
                self.received.remove(at);
                return true;
            }
            if limit.has_passed() {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}
