//! The clock by which a holder judges itself: it runs on while the machine sleeps.
//!
//! `CLOCK_MONOTONIC` stands still while a Linux machine sleeps: with it, a laptop's lid would make
//! two holders.

use std::{ops::Add, time::Duration};

/// An instant since the machine started; means nothing on another machine or after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootInstant(Duration);

impl BootInstant {
    /// This instant.
    #[cfg(unix)]
    pub fn now() -> Self {
        use nix::time::{ClockId, clock_gettime};
        #[cfg(any(target_os = "linux", target_os = "android"))]
        const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;
        // Both clocks exist wherever this compiles.
        Self(clock_gettime(CLOCK).map(Duration::from).unwrap_or_default())
    }

    /// This instant.
    #[cfg(not(unix))]
    pub fn now() -> Self {
        use std::{sync::LazyLock, time::Instant};
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        Self(START.elapsed())
    }

    /// How long until this instant; zero if it has passed.
    pub fn remaining(self) -> Duration {
        self.0.saturating_sub(Self::now().0)
    }

    /// Whether it is not in the future.
    pub fn has_passed(self) -> bool {
        self <= Self::now()
    }

    /// For another process of this machine.
    pub fn to_millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }

    /// What another process of this machine wrote.
    pub fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }
}

impl Add<Duration> for BootInstant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_forward() {
        let before = BootInstant::now();
        assert!(before.has_passed());
        let later = before + Duration::from_secs(60);
        assert!(!later.has_passed());
        assert!(later.remaining() <= Duration::from_secs(60));
        assert_eq!(before.remaining(), Duration::ZERO);
        assert_eq!(BootInstant::from_millis(1234).to_millis(), 1234);
    }
}
