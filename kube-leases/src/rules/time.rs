//! The time model, written down once.
//!
//! Two clocks matter and are never mixed:
//!
//! * **The server's wall clock** ([`ServerTime`]). Everything the API stores (`renewTime`,
//!   `creationTimestamp`) is compared with it. This machine's wall clock may be wrong by minutes;
//!   [`ClockSkew`] learns by how much from the `Date` header that every response carries.
//! * **The local monotonic clock** ([`std::time::Instant`]), for time-outs and for how long this
//!   process has waited. It never meets a timestamp of the API.
//!
//! A view of things that others report is only as good as the last report: [`judged_at`] says as of
//! when it may be judged.
//!
//! A `Date` header is cut to whole seconds and was made at an unknown moment between sending the
//! request and receiving the answer. So one response does not tell the offset but an interval that
//! holds it, and further responses narrow it. While that interval contains zero there is no
//! evidence that the clocks differ, and the local clock, which has the finer resolution, is used
//! as it is.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer, Serialize as _, Serializer, de::Error as _};

/// From this difference on, the user is told that the clocks disagree.
pub const SKEW_WORTH_A_WARNING: SignedDuration = SignedDuration::from_secs(3);

/// An instant of the API server's wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerTime(pub Timestamp);

impl ServerTime {
    /// How long ago `earlier` was; negative when it lies in the future.
    pub fn since(self, earlier: Timestamp) -> SignedDuration {
        self.0.duration_since(earlier)
    }
}

/// Reads a time of the API, where there is one.
///
/// The API takes every year up to 9999, and by way of time zones a little more; jiff ends two days
/// before that. One such time in one object is no reason to read none of the others, so it is read as
/// the last (or first) one there is.
pub fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let error = match text.parse() {
        Ok(time) => return Ok(Some(time)),
        Err(error) => error,
    };
    let year = text.trim_start_matches('-').split('-').next().and_then(|year| year.parse::<u32>().ok());
    match year {
        Some(_) if text.starts_with('-') => Ok(Some(Timestamp::MIN)),
        Some(9999..) => Ok(Some(Timestamp::MAX)),
        _ => Err(D::Error::custom(format!("{text:?}: {error}"))),
    }
}

/// Writes a time as the API writes it: with six digits always, so that a time that ends in a zero is the same text.
#[allow(clippy::ref_option)] // the signature is serde's
pub fn write<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| format!("{time:.6}")).serialize(serializer)
}

/// As of when a view may be judged whose sources last answered at `contacts`.
///
/// A source that is well answers again within `heard_within`. Beyond that the silence may be our own
/// (a connection that hangs, a process that was stopped), and nothing follows from it: time stands
/// still for the view until there is word from the source. A view without sources to wait for is
/// judged as of `now`.
pub fn judged_at(
    now: ServerTime,
    contacts: impl IntoIterator<Item = ServerTime>,
    heard_within: SignedDuration,
) -> ServerTime {
    let oldest = contacts.into_iter().min();
    let limit = oldest.and_then(|contact| contact.0.saturating_add(heard_within).ok());
    limit.map_or(now, |limit| now.min(ServerTime(limit)))
}

/// What is known of `server clock - local clock`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockSkew {
    bounds: Option<(SignedDuration, SignedDuration)>,
}

impl ClockSkew {
    /// Takes in one response: when it was asked for and received by the local wall clock, and the
    /// `Date` it carries.
    ///
    /// An interval that contradicts what was learned before means that a clock was set, or that
    /// another server answered: the newest one is then believed.
    #[must_use]
    pub fn observe(self, sent: Timestamp, received: Timestamp, date: Timestamp) -> Self {
        let low = date.duration_since(received);
        let high = date.duration_since(sent) + SignedDuration::from_secs(1);
        let narrowed = self.bounds.map(|(l, h)| (l.max(low), h.min(high)));
        Self {
            bounds: Some(match narrowed {
                Some((l, h)) if l <= h => (l, h),
                _ => (low, high),
            }),
        }
    }

    /// The best guess at `server clock - local clock`; zero without evidence of a difference.
    pub fn offset(self) -> SignedDuration {
        match self.bounds {
            Some((low, high)) if low > SignedDuration::ZERO || high < SignedDuration::ZERO => {
                (low + high) / 2
            }
            _ => SignedDuration::ZERO,
        }
    }

    /// The offset, if it is large enough to be worth a warning.
    pub fn worth_a_warning(self) -> Option<SignedDuration> {
        Some(self.offset()).filter(|offset| offset.abs() >= SKEW_WORTH_A_WARNING)
    }

    /// The server's time at the local instant `now`.
    pub fn server_time(self, now: Timestamp) -> ServerTime {
        // Saturating: a server that claims the year 9999 is wrong, not a reason to stop.
        ServerTime(now.saturating_add(self.offset()).unwrap_or(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: f64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs_f64(1_000_000.0 + seconds)
    }

    #[test]
    fn a_view_is_judged_no_later_than_its_sources_are_known() {
        for (now, contacts, judged) in [
            (100.0, &[][..], 100.0),
            (100.0, &[100.0], 100.0),
            (100.0, &[85.0], 100.0),
            (100.0, &[84.0], 99.0),
            (100.0, &[60.0], 75.0), // stopped for forty seconds
            (100.0, &[100.0, 60.0], 75.0),
            (100.0, &[84.0, 60.0, 99.0], 75.0),
            (100.0, &[110.0], 100.0), // the clock was set back
        ] {
            let contacts = contacts.iter().map(|contact| ServerTime(at(*contact)));
            let judged_at = judged_at(ServerTime(at(now)), contacts, SignedDuration::from_secs(15));
            assert_eq!(judged_at, ServerTime(at(judged)), "at {now}");
        }
    }

    #[test]
    fn times_beyond_all_reason_are_read() {
        let read = |text: &str| super::read(serde_json::Value::from(text)).ok();
        for (text, time) in [
            ("2026-01-02T03:04:05.000006Z", Some("2026-01-02T03:04:05.000006Z".parse().unwrap())),
            ("2026-01-02T03:04:05Z", Some("2026-01-02T03:04:05Z".parse().unwrap())),
            ("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z".parse().unwrap())),
            ("9999-12-31T23:59:59.000000Z", Some(Timestamp::MAX)),
            ("9999-12-31T23:59:59Z", Some(Timestamp::MAX)),
            ("10000-01-01T11:59:59.000000Z", Some(Timestamp::MAX)),
            ("-001-12-31T10:00:00.000000Z", Some(Timestamp::MIN)),
        ] {
            assert_eq!(read(text), Some(time), "{text}");
        }
        for text in ["", "tomorrow", "2026-13-01T00:00:00Z", "-"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(super::read(serde_json::Value::Null).unwrap(), None);
        // What is done with a time does not go wrong at the ends.
        for end in [Timestamp::MAX, Timestamp::MIN] {
            let since = ServerTime(at(0.0)).since(end);
            assert_eq!(since < SignedDuration::ZERO, end == Timestamp::MAX);
            assert!(!crate::rules::duration::age(since).is_empty());
            assert!(format!("{end:.6}").ends_with('Z'));
        }
    }

    #[test]
    fn clocks_that_may_agree_are_taken_to_agree() {
        let skew = ClockSkew::default().observe(at(0.4), at(0.5), at(0.0));
        assert_eq!(skew.offset(), SignedDuration::ZERO);
        assert_eq!(skew.worth_a_warning(), None);
    }

    #[test]
    fn an_hour_is_seen_and_warned_of() {
        for direction in [3600.0, -3600.0] {
            let skew = ClockSkew::default().observe(at(0.0), at(0.2), at(direction));
            let error = skew.offset().as_secs_f64() - direction;
            assert!(error.abs() <= 1.0, "off by {error}");
            assert!(skew.worth_a_warning().is_some());
        }
    }

    #[test]
    fn later_answers_narrow_the_interval() {
        let first = ClockSkew::default().observe(at(0.0), at(2.0), at(10.0));
        let second = first.observe(at(3.0), at(3.1), at(13.0));
        let narrow = Some((SignedDuration::from_millis(9_900), SignedDuration::from_secs(11)));
        assert_eq!(second.bounds, narrow);
        // One that took longer, or that was cut at another moment, takes nothing back.
        assert_eq!(second.observe(at(4.0), at(9.0), at(14.0)).bounds, narrow);
        let third = second.observe(at(6.0), at(6.0), at(16.4));
        assert_eq!(third.bounds, Some((SignedDuration::from_millis(10_400), SignedDuration::from_secs(11))));
        // Intervals that touch agree.
        let touching =
            ClockSkew::default().observe(at(0.0), at(0.0), at(0.0)).observe(at(1.0), at(1.0), at(2.0));
        assert_eq!(touching.bounds, Some((SignedDuration::from_secs(1), SignedDuration::from_secs(1))));
    }

    #[test]
    fn from_three_seconds_on_a_difference_is_told() {
        for (seconds, is_reported) in [(2.4, false), (2.5, true), (-3.4, false), (-3.5, true)] {
            // The interval is a second wide, and its middle is the guess.
            let skew = ClockSkew::default().observe(at(0.0), at(0.0), at(seconds));
            assert_eq!(skew.worth_a_warning().is_some(), is_reported, "{:?}", skew.offset());
            assert_eq!(skew.server_time(at(0.0)).0, at(seconds + 0.5));
        }
    }

    #[test]
    fn without_evidence_the_local_clock_is_believed() {
        assert_eq!(ClockSkew::default().offset(), SignedDuration::ZERO);
        // An interval that only touches zero may hold it.
        for date in [0.0, -1.0] {
            let skew = ClockSkew::default().observe(at(0.0), at(0.0), at(date));
            assert_eq!(skew.offset(), SignedDuration::ZERO, "{date}");
        }
        assert_eq!(ServerTime(at(5.0)).since(at(2.0)), SignedDuration::from_secs(3));
    }

    #[test]
    fn a_contradiction_starts_anew() {
        let skew =
            ClockSkew::default().observe(at(0.0), at(0.1), at(3600.0)).observe(at(1.0), at(1.1), at(1.0));
        assert_eq!(skew.offset(), SignedDuration::ZERO);
    }

    #[test]
    fn an_absurd_server_clock_does_not_overflow() {
        let skew = ClockSkew::default().observe(Timestamp::MIN, Timestamp::MIN, Timestamp::MAX);
        assert_eq!(skew.server_time(Timestamp::MAX).0, Timestamp::MAX);
    }

    proptest! {
        /// Whatever the true offset, the latency and the moment the server made its answer: the
        /// guess is within half a second and half the latency of the truth, and never a false alarm.
        #[test]
        fn the_guess_is_near_the_truth(
            offset_ms in -7_200_000_i64..7_200_000,
            latency_ms in 0_i64..2_000,
            made in 0.0_f64..1.0,
            start_ms in 0_i64..100_000,
        ) {
            let ms = |n: i64| SignedDuration::from_millis(n);
            let sent = at(0.0) + ms(start_ms);
            let received = sent + ms(latency_ms);
            #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
            let served = sent + ms((latency_ms as f64 * made) as i64) + ms(offset_ms);
            let date = Timestamp::from_second(served.as_second()).unwrap();
            let skew = ClockSkew::default().observe(sent, received, date);

            let (low, high) = skew.bounds.unwrap();
            prop_assert!(low <= ms(offset_ms) && ms(offset_ms) <= high);
            let error = (skew.offset() - ms(offset_ms)).abs();
            prop_assert!(error <= ms(1_000 + latency_ms), "off by {error:?}");
            if offset_ms == 0 {
                prop_assert_eq!(skew.offset(), SignedDuration::ZERO);
            }
        }
    }
}
