//! When a command that runs under a lease has to end: the rule that the watchdog goes by.

use std::time::Duration;

use crate::clock::BootInstant;

/// How long a process may take to end after SIGTERM when the plugin is gone and nothing is renewed.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long a process may take to be gone after SIGKILL. What lives longer cannot be ended from here:
/// it runs as another user, or hangs in the kernel.
pub(super) const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// By when the watchdog has ended everything, or given up, after the plugin is gone; with some time to
/// spare.
pub(super) const ALL_ENDED: Duration = Duration::from_millis(3500);

/// The times at which the command is ended, unless the lease is renewed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    terminate: BootInstant,
    kill: BootInstant,
    stage: EndingStage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndingStage {
    Valid,
    /// SIGTERM was due.
    Terminated,
    /// SIGKILL was due, first at this time.
    Killed(BootInstant),
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// SIGTERM, once.
    Terminate,
    /// SIGKILL, until everything is gone.
    Kill,
    /// What still lives cannot be ended.
    GiveUp,
}

impl Ending {
    pub(super) fn new(terminate: BootInstant, kill: BootInstant) -> Self {
        Self { terminate, kill, stage: EndingStage::Valid }
    }

    /// The lease is known to be held until later. A command that was asked to end is not asked to go on.
    pub(super) fn renewed(&mut self, terminate: BootInstant, kill: BootInstant) {
        if self.has_begun() {
            self.kill = self.kill.min(kill);
        } else {
            (self.terminate, self.kill) = (terminate, kill);
        }
    }

    /// Nothing renews the lease any more: as if the time had come.
    pub(super) fn orphaned(&mut self, now: BootInstant) {
        self.terminate = self.terminate.min(now);
        self.kill = self.kill.min(now + LAST_WORDS);
    }

    pub(super) fn has_begun(&self) -> bool {
        self.stage != EndingStage::Valid
    }

    pub(super) fn due(&mut self, now: BootInstant) -> Due {
        match self.stage {
            // From the first SIGKILL, not from its time: the machine may have slept over it.
            EndingStage::Killed(since) if since + KILL_TIMEOUT <= now => Due::GiveUp,
            EndingStage::Killed(_) => Due::Kill,
            _ if self.kill <= now => {
                self.stage = EndingStage::Killed(now);
                Due::Kill
            }
            EndingStage::Valid if self.terminate <= now => {
                self.stage = EndingStage::Terminated;
                Due::Terminate
            }
            EndingStage::Valid | EndingStage::Terminated => Due::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> BootInstant {
        BootInstant::from_millis(millis)
    }

    #[test]
    fn sigterm_once_then_sigkill_until_it_is_given_up() {
        let mut ending = Ending::new(at(10_000), at(13_000));
        assert_eq!(ending.due(at(9_999)), Due::Nothing);
        assert!(!ending.has_begun());
        assert_eq!(ending.due(at(10_000)), Due::Terminate);
        assert!(ending.has_begun());
        assert_eq!(ending.due(at(12_999)), Due::Nothing);
        assert_eq!(ending.due(at(13_000)), Due::Kill);
        assert_eq!(ending.due(at(14_999)), Due::Kill);
        assert_eq!(ending.due(at(15_000)), Due::GiveUp);
    }

    #[test]
    fn a_renewal_prolongs() {
        let mut ending = Ending::new(at(10_000), at(13_000));
        ending.renewed(at(15_000), at(18_000));
        assert_eq!(ending.due(at(14_999)), Due::Nothing);
        assert_eq!(ending.due(at(15_000)), Due::Terminate);
    }

    #[test]
    fn a_renewal_that_comes_after_sigterm_prolongs_nothing() {
        let mut ending = Ending::new(at(10_000), at(13_000));
        assert_eq!(ending.due(at(10_000)), Due::Terminate);
        ending.renewed(at(20_000), at(23_000));
        assert_eq!(ending.due(at(12_999)), Due::Nothing);
        assert_eq!(ending.due(at(13_000)), Due::Kill);
        ending.renewed(at(20_000), at(23_000));
        assert_eq!(ending.due(at(13_050)), Due::Kill);
        assert_eq!(ending.due(at(15_000)), Due::GiveUp);
    }

    #[test]
    fn a_lease_that_is_lost_shortens_what_is_left() {
        let mut ending = Ending::new(at(10_000), at(13_000));
        ending.renewed(at(5_000), at(6_000));
        assert_eq!(ending.due(at(5_000)), Due::Terminate);
        ending.renewed(at(5_500), at(5_500));
        assert_eq!(ending.due(at(5_500)), Due::Kill);
    }

    #[test]
    fn a_plugin_that_is_gone_leaves_a_second() {
        let mut ending = Ending::new(at(10_000), at(13_000));
        ending.orphaned(at(4_000));
        assert_eq!(ending.due(at(4_000)), Due::Terminate);
        assert_eq!(ending.due(at(4_999)), Due::Nothing);
        assert_eq!(ending.due(at(5_000)), Due::Kill);
        // Not more than was left anyway.
        let mut ending = Ending::new(at(10_000), at(13_000));
        ending.orphaned(at(12_500));
        assert_eq!(ending.due(at(12_500)), Due::Terminate);
        assert_eq!(ending.due(at(13_000)), Due::Kill);
    }

    #[test]
    fn what_slept_over_its_time_is_killed_before_it_is_given_up() {
        let mut ending = Ending::new(at(10_000), at(13_000));
        assert_eq!(ending.due(at(90_000)), Due::Kill);
        assert_eq!(ending.due(at(91_999)), Due::Kill);
        assert_eq!(ending.due(at(92_000)), Due::GiveUp);
    }
}
