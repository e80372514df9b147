//! The clocks of the kube-apiservers, compared by their identity leases.
//!
//! A kube-apiserver writes the `renewTime` of its identity lease by its own clock, every 10 seconds with
//! up to 4 % of jitter. A renewal in the future therefore shows, without waiting, a clock that is ahead
//! by at least that much. A renewal that is seen as it arrives shows the difference itself, but for the
//! time that the write and the event took, by which a clock looks late.
//!
//! Why it matters: a maintenance lease is expired when `renewTime + leaseDurationSeconds` and
//! [`GRACE`] have passed by the clock of the kube-apiserver that is asked, and `renewTime` was written
//! by the clock of the one that the holder asked. A process under `maint run` is gone a twelfth of the
//! duration (at most 30 seconds) before its end, by the holder's own count. So two can run at once only
//! if the first of these clocks is ahead of the second by more than the grace and that twelfth, less the
//! error of the two estimates: each is read from `Date` headers, to within a second and the round trip
//! (see [`super::time`]).

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{
    identity::{Identity, RENEW_INTERVAL},
    lease::Lease,
    maintenance::GRACE,
    time::ServerTime,
};

/// How long to watch for a renewal of each kube-apiserver: the interval, its jitter, and a little more.
pub const MEASURED_FOR: SignedDuration = SignedDuration::from_secs(RENEW_INTERVAL.as_secs() + 2);

/// What the clock of one kube-apiserver shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiserverClock {
    /// The host of the kube-apiserver, as [`Identity::called`] has it.
    pub host: String,
    /// By how much it is ahead of the server that was asked.
    pub ahead: SignedDuration,
}

/// What is known of the clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// From one list: those that are ahead, by at least so much.
    Ahead(Vec<ApiserverClock>),
    /// From renewals as they arrived.
    Measured {
        /// One for each kube-apiserver whose renewal was seen.
        clocks: Vec<ApiserverClock>,
        /// Those that did not renew meanwhile.
        unheard: Vec<String>,
    },
}

/// Two clocks that differ by too much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The host whose clock is ahead.
    pub ahead: String,
    /// By how much; in [`Clocks::Ahead`] at least by so much.
    pub by: SignedDuration,
    /// The host that it is ahead of; `None` for the server that was asked.
    pub of: Option<String>,
}

impl Clocks {
    /// From one list of identity leases.
    pub fn glance<'a>(identities: impl IntoIterator<Item = &'a Identity>, now: ServerTime) -> Self {
        let ahead = identities.into_iter().filter_map(|identity| {
            let ahead = -now.since(identity.renewed?);
            ahead.is_positive().then(|| ApiserverClock { host: identity.called().to_owned(), ahead })
        });
        Self::Ahead(ahead.collect())
    }

    /// The differences that matter, the largest first: those of the grace of maintenance leases and more.
    /// Measured clocks are compared with the slowest of them, whichever server was asked.
    pub fn differences(&self) -> Vec<Difference> {
        let (clocks, slowest) = match self {
            Self::Ahead(clocks) => (clocks, None),
            Self::Measured { clocks, .. } => (clocks, clocks.iter().min_by_key(|clock| clock.ahead)),
        };
        let base = slowest.map_or(SignedDuration::ZERO, |clock| clock.ahead);
        let mut differences: Vec<_> = clocks
            .iter()
            .map(|clock| Difference {
                ahead: clock.host.clone(),
                by: clock.ahead.saturating_sub(base),
                of: slowest.map(|clock| clock.host.clone()),
            })
            .filter(|difference| difference.by >= GRACE)
            .collect();
        differences.sort_by(|a, b| b.by.cmp(&a.by).then_with(|| a.ahead.cmp(&b.ahead)));
        differences
    }

    /// The largest difference of any two measured clocks; `None` with fewer than two.
    pub fn spread(&self) -> Option<SignedDuration> {
        let Self::Measured { clocks, .. } = self else { return None };
        let aheads = || clocks.iter().map(|clock| clock.ahead);
        let spread = aheads().max()?.saturating_sub(aheads().min()?);
        (clocks.len() > 1).then_some(spread)
    }
}

/// Renewals of identity leases, as they arrive.
#[derive(Clone, Debug, Default)]
pub struct Renewals(BTreeMap<String, ObservedRenewal>);

#[derive(Clone, Debug)]
struct ObservedRenewal {
    host: String,
    renewed: Option<Timestamp>,
    ahead: Option<SignedDuration>,
}

impl Renewals {
    /// Takes in a lease of a list: when it was renewed is known, but not when that arrived.
    pub fn listed(&mut self, lease: &Lease, now: ServerTime) {
        self.take(lease, now, false);
    }

    /// Takes in a lease that has just changed.
    pub fn changed(&mut self, lease: &Lease, now: ServerTime) {
        self.take(lease, now, true);
    }

    fn take(&mut self, lease: &Lease, now: ServerTime, just_now: bool) {
        let Some(identity) = Identity::from_lease(lease, now) else { return };
        let host = identity.called().to_owned();
        let known =
            self.0.entry(identity.lease_name).or_insert(ObservedRenewal { host, renewed: None, ahead: None });
        // Something else of the lease may have changed: an annotation, the holder of a new process.
        let ahead = identity.renewed.filter(|renewed| just_now && known.renewed != Some(*renewed));
        known.renewed = identity.renewed;
        if let Some(renewed) = ahead {
            // The one that took the shortest way tells best, and none makes a clock look too fast.
            let ahead = -now.since(renewed);
            known.ahead = Some(known.ahead.map_or(ahead, |before| before.max(ahead)));
        }
    }

    /// A lease was deleted: its kube-apiserver ends, or begins anew.
    pub fn gone(&mut self, lease: &Lease) {
        self.0.remove(&lease.metadata.name);
    }

    /// Whether there is a renewal of every kube-apiserver.
    pub fn is_complete(&self) -> bool {
        self.0.values().all(|renewal| renewal.ahead.is_some())
    }

    /// What was measured, and which kube-apiservers did not renew.
    pub fn clocks(self) -> Clocks {
        let (mut clocks, mut unheard) = (Vec::new(), Vec::new());
        for ObservedRenewal { host, ahead, .. } in self.0.into_values() {
            match ahead {
                Some(ahead) => clocks.push(ApiserverClock { host, ahead }),
                None => unheard.push(host),
            }
        }
        clocks.sort_by(|a, b| a.host.cmp(&b.host));
        unheard.sort();
        Clocks::Measured { clocks, unheard }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};
    use proptest::prelude::*;

    use super::{
        super::{deadline::Schedule, identity::LABEL, maintenance::expiry, time::ClockSkew},
        *,
    };

    fn at(seconds: f64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs_f64(1_000_000.0 + seconds)
    }

    fn ms(milliseconds: i64) -> SignedDuration {
        SignedDuration::from_millis(milliseconds)
    }

    /// The identity lease of a host, renewed at that time of its own clock.
    fn lease(host: &str, renewed: f64) -> Lease {
        let mut lease = Lease::default();
        lease.metadata.name = format!("apiserver-{host}");
        lease.metadata.labels.insert(LABEL.into(), "kube-apiserver".into());
        lease.metadata.labels.insert("kubernetes.io/hostname".into(), host.into());
        lease.spec.renew_time = Some(MicroTime(at(renewed)));
        lease
    }

    fn measured(clocks: &[(&str, i64)]) -> Clocks {
        let clock =
            |(host, ahead): &(&str, i64)| ApiserverClock { host: (*host).to_owned(), ahead: ms(*ahead) };
        Clocks::Measured { clocks: clocks.iter().map(clock).collect(), unheard: Vec::new() }
    }

    /// `a+3000>b` for a clock that is 3 seconds ahead of another, `a+3000` for one ahead of the server.
    fn words(clocks: &Clocks) -> String {
        let word = |difference: Difference| {
            let of = difference.of.map(|of| format!(">{of}")).unwrap_or_default();
            format!("{}+{}{of}", difference.ahead, difference.by.as_millis())
        };
        clocks.differences().into_iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn one_list_shows_only_clocks_that_are_ahead() {
        for (renewed, differences) in [
            (&[("a", 0.0), ("b", -10.4)][..], ""),
            (&[("a", 2.999)], ""),
            (&[("a", 3.0)], "a+3000"),
            (&[("a", 20.0), ("b", -1.0), ("c", 60.0)], "c+60000 a+20000"),
            (&[("a", -20.0), ("b", -3600.0)], ""), // late, dead or slow: that takes a renewal to tell
            (&[], ""),
        ] {
            let now = ServerTime(at(0.0));
            let identities: Vec<_> = renewed
                .iter()
                .filter_map(|(host, at)| Identity::from_lease(&lease(host, *at), now))
                .collect();
            let clocks = Clocks::glance(&identities, now);
            assert_eq!(words(&clocks), differences, "{renewed:?}");
            assert_eq!(clocks.spread(), None);
        }
        let now = ServerTime(at(0.0));
        let mut unrenewed = lease("a", 0.0);
        unrenewed.spec.renew_time = None;
        let identity = Identity::from_lease(&unrenewed, now).unwrap();
        assert_eq!(Clocks::glance([&identity], now), Clocks::Ahead(Vec::new()));
    }

    #[test]
    fn measured_clocks_are_compared_with_the_slowest() {
        for (clocks, differences, spread) in [
            (&[][..], "", None),
            (&[("a", 9000)], "", None), // nothing to compare it with
            (&[("a", 0), ("b", 100)], "", Some(100)),
            (&[("a", 0), ("b", 2999)], "", Some(2999)),
            (&[("a", 0), ("b", 3000)], "b+3000>a", Some(3000)),
            (&[("a", -2000), ("b", 0), ("c", 2000)], "c+4000>a", Some(4000)),
            (&[("a", 0), ("b", -20_000), ("c", 50)], "c+20050>b a+20000>b", Some(20_050)),
            (&[("a", 7000), ("b", 7100)], "", Some(100)), // whichever clock the asked server has
        ] {
            let clocks = measured(clocks);
            assert_eq!(words(&clocks), differences, "{clocks:?}");
            assert_eq!(clocks.spread(), spread.map(ms), "{clocks:?}");
        }
        let far = i64::MAX / 4;
        assert_eq!(words(&measured(&[("a", -far), ("b", far)])), format!("b+{}>a", 2 * far));
    }

    #[test]
    fn a_renewal_is_measured_when_it_arrives() {
        let latest = RENEW_INTERVAL * 104 / 100;
        assert!(MEASURED_FOR > latest && MEASURED_FOR < 2 * RENEW_INTERVAL, "one renewal of each");
        let mut renewals = Renewals::default();
        assert!(renewals.is_complete(), "there is nothing to wait for");
        let now = |seconds: f64| ServerTime(at(seconds));
        for host in ["a", "b", "c", "dead"] {
            renewals.listed(&lease(host, -5.0), now(0.0));
        }
        let mut other = Lease::default();
        other.metadata.name = "kube-controller-manager".into();
        renewals.changed(&other, now(0.0));
        assert!(!renewals.is_complete());
        // Not a renewal: only a label changed.
        renewals.changed(&lease("a", -5.0), now(1.0));
        renewals.changed(&lease("a", 2.0), now(2.1));
        renewals.changed(&lease("b", 23.0), now(3.0));
        renewals.changed(&lease("c", -40.0), now(4.0));
        // The second took less time.
        renewals.changed(&lease("a", 12.0), now(12.02));
        renewals.changed(&lease("b", 33.0), now(13.5));
        assert!(!renewals.is_complete(), "one did not renew");
        let unheard = vec!["dead".to_owned()];
        let Clocks::Measured { clocks, unheard: found } = renewals.clone().clocks() else { panic!() };
        let clocks: Vec<_> =
            clocks.iter().map(|clock| (clock.host.as_str(), clock.ahead.as_millis())).collect();
        assert_eq!(clocks, [("a", -20), ("b", 20_000), ("c", -44_000)]);
        assert_eq!(found, unheard);
        renewals.gone(&lease("dead", -5.0));
        assert!(renewals.is_complete());
        // A new process: its first renewal is as good as any.
        renewals.changed(&lease("dead", 14.0), now(14.0));
        assert!(renewals.is_complete());
    }

    /// A machine's idea of a kube-apiserver's clock, from one answer: when it was asked for by the
    /// machine's own clock, how long that took, and by how much the kube-apiserver's clock is ahead.
    fn learned(sent: Timestamp, latency: SignedDuration, served: f64, offset: SignedDuration) -> ClockSkew {
        let made = sent + SignedDuration::from_secs_f64(latency.as_secs_f64() * served) + offset;
        ClockSkew::default().observe(sent, sent + latency, Timestamp::from_second(made.as_second()).unwrap())
    }

    /// How long after the holder's process is gone the first look is that finds the lease expired, with
    /// the taker's kube-apiserver ahead of the holder's by `ahead`; negative if both run.
    #[allow(clippy::too_many_arguments)]
    fn margin(
        seconds: u32,
        ahead: SignedDuration,
        offsets: [SignedDuration; 2],
        latency: SignedDuration,
        phases: [SignedDuration; 2],
        served: [f64; 2],
    ) -> SignedDuration {
        // In true time the holder sends its renewal at 0; its kube-apiserver's clock shows true time.
        // The machines' own clocks are behind their kube-apiservers' by the offsets.
        let sent = at(0.0);
        let holders = learned(sent - phases[0] - offsets[0], latency, served[0], offsets[0]);
        let renewed = holders.server_time(sent - offsets[0]).0;
        let spec = LeaseSpec {
            renew_time: Some(MicroTime(renewed)),
            lease_duration_seconds: i32::try_from(seconds).ok(),
            ..LeaseSpec::default()
        };
        let expired = expiry(&spec).unwrap();
        let gone = sent + Schedule::new(Duration::from_secs(seconds.into())).kill;
        // What the taker thinks its kube-apiserver's clock shows at the moment that the process is gone.
        let own = gone + ahead - offsets[1];
        let takers = learned(own - phases[1], latency, served[1], offsets[1]);
        expired.duration_since(takers.server_time(own).0)
    }

    /// What `maint run` leaves of a duration: a twelfth, and at most 30 seconds.
    fn left(seconds: u32) -> SignedDuration {
        (SignedDuration::from_secs(seconds.into()) / 12).min(SignedDuration::from_secs(30))
    }

    /// Both machines may be wrong about their server by nearly a second, each in the worse direction.
    #[test]
    fn the_bound_is_as_wide_as_it_can_be() {
        let margin = |ahead: i64, phase: i64| {
            let (offsets, phases) = ([ms(990), ms(-990)], [ms(5), ms(phase)]);
            margin(36, ms(ahead), offsets, SignedDuration::ZERO, phases, [0.0; 2]).as_millis()
        };
        assert_eq!(margin(4000, 0), 20); // a second, and the 3 that are left of 36
        assert_eq!(margin(4100, 100), -80);
    }

    proptest! {
        /// What the README promises: with clocks of kube-apiservers that differ by no more than a second
        /// and what `maint run` leaves of the duration, less a round trip each, no two run at once.
        #[test]
        fn no_two_run_at_once_while_the_clocks_differ_by_less_than_the_bound(
            seconds in 3_u32..=3600,
            offset_ms in prop::array::uniform2(-1_500_i64..1_500),
            latency_ms in 0_i64..500,
            phase_ms in prop::array::uniform2(0_i64..5_000),
            served in prop::array::uniform2(0.0_f64..=1.0),
        ) {
            let bound = ms(1000) + left(seconds) - ms(2 * latency_ms);
            let margin = margin(seconds, bound, offset_ms.map(ms), ms(latency_ms), phase_ms.map(ms), served);
            prop_assert!(!margin.is_negative(), "{margin:?} with clocks {bound:?} apart");
        }

        /// And what it calls possible is: beyond the grace and the rest of the duration, with clocks that
        /// are known exactly.
        #[test]
        fn two_may_run_at_once_when_the_clocks_differ_by_more(seconds in 3_u32..=3600) {
            let left = left(seconds);
            let none = [SignedDuration::ZERO; 2];
            let margin = |ahead| margin(seconds, ahead, none, SignedDuration::ZERO, none, [0.0; 2]);
            prop_assert!(!margin(GRACE + left).is_negative());
            prop_assert!(margin(GRACE + left + ms(1)).is_negative());
        }
    }
}
