//! When a process that holds a lease renews, gives up, and is gone.
//!
//! All instants are counted from the moment the last successful renewal was *sent*, by the local
//! clock that also counts the time the machine slept. No other count can have begun earlier:
//! others count from the `renewTime` that was written then, or from when they first saw it. So a
//! process that is gone before its own count is over is gone before another may take its place.

use std::time::Duration;

/// The moments in the life of one renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    duration: Duration,
    /// When to renew again.
    pub renew: Duration,
    /// When to tell the process to end: no renewal has succeeded, and none is waited for any more.
    pub terminate: Duration,
    /// When to end it.
    pub kill: Duration,
}

/// A shorter lease leaves no room for a renewal that fails and is tried again.
pub const SHORTEST: Duration = Duration::from_secs(3);

impl Schedule {
    /// For a lease of this duration: renewed at a third of it, and every twenty minutes at least
    /// (KEP-1411: a lease that is not renewed hourly is abandoned); at its end a twelfth of it (half a
    /// minute at most) is left untouched, and before that a quarter of it (likewise) is for the
    /// process to end by itself. With the 15 seconds of leader election that is 5 s, 10 s, 13.75 s.
    pub fn new(duration: Duration) -> Self {
        const MOST: Duration = Duration::from_secs(30);
        let kill = duration.saturating_sub((duration / 12).min(MOST));
        let renew = (duration / 3).min(Duration::from_secs(20 * 60));
        Self { duration, renew, terminate: kill.saturating_sub((duration / 4).min(MOST)), kill }
    }

    /// The duration to write.
    pub fn seconds(self) -> i32 {
        i32::try_from(self.duration.as_secs()).unwrap_or(i32::MAX)
    }

    /// What is left of the duration when the process is ended: by then it has to be gone.
    pub fn spare(self) -> Duration {
        self.duration.saturating_sub(self.kill)
    }

    /// How long a process whose lease is lost already may take to end by itself.
    pub fn last_words(self) -> Duration {
        self.kill.saturating_sub(self.terminate).min(Duration::from_secs(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn schedules() {
        let of = |seconds| Schedule::new(Duration::from_secs(seconds));
        let schedule = |seconds, renew: f64, terminate: f64, kill: f64| {
            let [renew, terminate, kill] = [renew, terminate, kill].map(Duration::from_secs_f64);
            Schedule { duration: Duration::from_secs(seconds), renew, terminate, kill }
        };
        assert_eq!(of(15), schedule(15, 5.0, 10.0, 13.75));
        assert_eq!(of(300), schedule(300, 100.0, 245.0, 275.0));
        assert_eq!(of(1800), schedule(1800, 600.0, 1740.0, 1770.0));
        assert_eq!(of(3), schedule(3, 1.0, 2.0, 2.75));
        assert_eq!(of(6 * 3600), schedule(6 * 3600, 1200.0, 21540.0, 21570.0));
        for (seconds, written, last_words) in [
            (3, 3, 0.75),
            (6, 6, 1.5),
            (8, 8, 2.0),
            (1800, 1800, 2.0), // a lost lease is not waited on for as long as an unrenewed one
            (u64::from(u32::MAX), i32::MAX, 2.0),
        ] {
            assert_eq!(of(seconds).seconds(), written);
            assert_eq!(of(seconds).last_words(), Duration::from_secs_f64(last_words), "{seconds}");
        }
    }

    proptest! {
        #[test]
        fn the_process_is_gone_before_the_lease(seconds in 1_u64..=u64::from(u32::MAX)) {
            let duration = Duration::from_secs(seconds);
            let schedule = Schedule::new(duration);
            prop_assert!(schedule.renew < schedule.terminate);
            prop_assert!(schedule.terminate < schedule.kill);
            prop_assert!(schedule.kill < duration);
            prop_assert!(schedule.kill + schedule.spare() == duration);
            prop_assert!(schedule.terminate + schedule.last_words() <= schedule.kill);
        }
    }
}
