//! Node maintenance leases (KEP-1411): whether one may be taken, and what to write.
//!
//! A lease is judged by the server's clock. It is held until `renewTime + leaseDurationSeconds` and
//! three seconds more for clocks that differ; a holder that begins with `kubeadm` holds always. A
//! lease that has a holder but no `renewTime` or `leaseDurationSeconds` is malformed: neither free nor
//! known to be held, it is not taken unless the terms say so.
//!
//! Release is `holderIdentity: ""` with a duration of one second. The proposal's duration of zero
//! is refused by the API, and a null holderIdentity crashes some kube-apiservers.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};

use super::{
    holder::{self, Who},
    lease::Lease,
    time::ServerTime,
};

/// The namespace of maintenance leases.
pub const NAMESPACE: &str = "kube-node-maintenance";
/// Where medik8s (node maintenance and health check operators) keeps its own.
pub const MEDIK8S_NAMESPACE: &str = "medik8s-leases";
/// Why the holder holds it, in the holder's words.
pub const REASON: &str = "kubectl-lease.dev/reason";
/// When a write that may still have been on its way was superseded by a newer version.
pub const SUPERSEDED: &str = "kubectl-lease.dev/superseded";
/// The `acquireTime` of the lease of the same holder that a process has adopted and will put back.
pub const ADOPTED: &str = "kubectl-lease.dev/adopted-acquire-time";

/// Allowed for clocks that differ.
pub const GRACE: SignedDuration = SignedDuration::from_secs(3);
/// The longest duration for a lease that is not renewed.
pub const LONGEST_UNRENEWED: SignedDuration = SignedDuration::from_hours(1);
const ABANDONED_ADMIN: SignedDuration = SignedDuration::from_hours(24);

/// How a lease stands towards us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MaintenanceStanding {
    /// Not held: never was, or was released.
    Free,
    /// Ours; whether its time has run out matters only to others.
    Ours {
        /// The end of its time, if it has one.
        until: Option<Timestamp>,
        /// Whether it is held as an administrator.
        admin: bool,
    },
    /// Another's.
    Held {
        /// The other.
        holder: String,
        /// The end of its time.
        until: Timestamp,
    },
    /// An administrator's, for as long as the holder is written there.
    Admin {
        /// The administrator.
        holder: String,
    },
    /// Another's, whose time has run out.
    Expired {
        /// The other.
        holder: String,
        /// The end of its time.
        since: Timestamp,
    },
    /// Has a holder, but not what it could be judged by.
    Malformed {
        /// The holder.
        holder: String,
        /// The field that it lacks.
        lacks: &'static str,
    },
}

impl MaintenanceStanding {
    /// Judges a lease at a moment. `None` is a lease that does not exist.
    pub fn of(spec: Option<&LeaseSpec>, who: &Who, now: ServerTime) -> Self {
        let holder = spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
        let (Some(spec), false) = (spec, holder.is_empty()) else {
            return Self::Free;
        };
        let until = expiry(spec);
        let holder = holder.to_owned();
        match until {
            _ if who.is(&holder) => Self::Ours { until: until.ok(), admin: holder::is_reserved(&holder) },
            _ if holder::is_reserved(&holder) => Self::Admin { holder },
            Err(lacks) => Self::Malformed { holder, lacks },
            Ok(until) if now.0 > until => Self::Expired { holder, since: until },
            Ok(until) => Self::Held { holder, until },
        }
    }

    /// The same, where it matters whether the time of one's own had run out: then it is expired.
    #[must_use]
    pub fn as_of(self, holder: &str, now: ServerTime) -> Self {
        match self {
            Self::Ours { until, .. } if !self.is_valid(now) => {
                Self::Expired { holder: holder.to_owned(), since: until.unwrap_or(now.0) }
            }
            other => other,
        }
    }

    /// Whether it is held at this moment, by any holder.
    pub fn is_valid(&self, now: ServerTime) -> bool {
        match self {
            Self::Free | Self::Expired { .. } | Self::Malformed { .. } => false,
            Self::Ours { until, admin } => *admin || until.is_some_and(|until| now.0 <= until),
            Self::Held { .. } | Self::Admin { .. } => true,
        }
    }
}

/// The last moment at which a maintenance lease is held, including [`GRACE`]; or the field that it lacks. Leader
/// election has no such grace: see [`Lease::expires`].
pub fn expiry(spec: &LeaseSpec) -> Result<Timestamp, &'static str> {
    let renewed = spec.renew_time.as_ref().ok_or("renewTime")?.0;
    let seconds = spec.lease_duration_seconds.filter(|seconds| *seconds > 0).ok_or("leaseDurationSeconds")?;
    let length = SignedDuration::from_secs(seconds.into()) + GRACE;
    Ok(renewed.saturating_add(length).unwrap_or(Timestamp::MAX))
}

/// Whether two looks at a lease show one and the same term: the same holder since the same moment.
/// A holder's name alone does not tell: another process may use it too.
pub fn is_same_term(one: &Lease, other: &Lease) -> bool {
    one.metadata.uid == other.metadata.uid
        && one.spec.holder_identity == other.spec.holder_identity
        && one.spec.lease_transitions.unwrap_or(0) == other.spec.lease_transitions.unwrap_or(0)
        && one.spec.acquire_time == other.spec.acquire_time
}

/// Whether two looks at a lease show what one and the same command acquired, also if a process has held it in
/// between and put it back, which counts two changes of hands.
pub fn is_same_acquisition(one: &Lease, other: &Lease) -> bool {
    one.metadata.uid == other.metadata.uid
        && one.spec.holder_identity == other.spec.holder_identity
        && one.spec.acquire_time == other.spec.acquire_time
}

/// The lease that a process has adopted, as it will put it back: the same holder without the process's own
/// suffix, acquired when it was. `None` if it has adopted none.
pub fn adopted(lease: &Lease) -> Option<Lease> {
    let (holder, _) = lease.holder().rsplit_once('#')?;
    let acquired: Timestamp = lease.metadata.annotations.get(ADOPTED)?.parse().ok()?;
    let mut adopted = lease.clone();
    adopted.spec.holder_identity = Some(holder.to_owned());
    adopted.spec.acquire_time = Some(MicroTime(acquired));
    Some(adopted)
}

/// Whether a lease looks abandoned: expired without a release, held for over an hour without a
/// renewal, held by an administrator for over a day, or with times that no holder keeps it by: none, or over an hour
/// ahead.
pub fn is_abandoned(lease: &Lease, who: &Who, now: ServerTime) -> bool {
    let spec = &lease.spec;
    let since = |time: Option<Timestamp>| time.map(|time| now.since(time));
    let renewed = since(lease.renewed());
    let long_ago = renewed.is_some_and(|age| age > LONGEST_UNRENEWED || age < -LONGEST_UNRENEWED);
    match MaintenanceStanding::of(Some(spec), who, now) {
        MaintenanceStanding::Free => false,
        MaintenanceStanding::Expired { .. } | MaintenanceStanding::Malformed { .. } => true,
        MaintenanceStanding::Admin { .. } | MaintenanceStanding::Ours { admin: true, .. } => {
            let acquired = spec.acquire_time.as_ref().map(|time| time.0);
            let held = since(acquired.or(lease.renewed()).or(lease.metadata.creation_timestamp));
            held.is_some_and(|held| held > ABANDONED_ADMIN)
        }
        MaintenanceStanding::Ours { until, .. } => until.is_some_and(|until| now.0 > until) || long_ago,
        MaintenanceStanding::Held { .. } => long_ago,
    }
}

/// By how much medik8s' clock may be ahead of the server's before its lease is not believed. medik8s
/// itself ignores every `renewTime` ahead of its own clock.
const MEDIK8S_AHEAD: SignedDuration = SignedDuration::from_secs(60);

/// The holder of a medik8s lease, if medik8s itself would call it valid, allowing for its clock.
pub fn medik8s_holder(lease: &Lease, now: ServerTime) -> Option<&str> {
    let holder = lease.spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())?;
    let renewed = lease.renewed()?;
    let seconds = lease.spec.lease_duration_seconds?;
    let until = renewed.saturating_add(SignedDuration::from_secs(seconds.into())).ok()?;
    (now.since(renewed) >= -MEDIK8S_AHEAD && now.0 <= until).then_some(holder)
}

/// The name of the lease that medik8s uses for a node.
pub fn medik8s_name(node: &str) -> String {
    format!("node-{node}")
}

/// The fields of a lease, as one write sets them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// `holderIdentity`.
    pub holder: String,
    /// `leaseDurationSeconds`.
    pub seconds: i32,
    /// `acquireTime`.
    pub acquired: Timestamp,
    /// `renewTime`.
    pub renewed: Timestamp,
    /// `leaseTransitions`.
    pub transitions: i32,
}

impl Record {
    /// What to write to take a lease, or to renew one that is ours.
    pub fn acquisition(before: Option<&LeaseSpec>, who: &Who, seconds: i32, now: ServerTime) -> Self {
        let holder = before.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
        // From a person to the same person as an administrator is a change of hands too; and what has
        // expired may have been another's since.
        let valid = before.and_then(|spec| expiry(spec).ok()).is_some_and(|until| now.0 <= until);
        let again = holder == who.identity() && (valid || who.is_admin());
        let acquired = before.and_then(|spec| spec.acquire_time.as_ref()).map(|time| time.0);
        Self {
            acquired: acquired.filter(|_| again).unwrap_or(micros(now.0)),
            ..Self::takeover(before, who, seconds, now, !again)
        }
    }

    /// What to write to take a lease that is not validly held, for a process that runs under it:
    /// always a new term, even after a holder of the same name.
    pub fn new_term(before: Option<&LeaseSpec>, who: &Who, seconds: i32, now: ServerTime) -> Self {
        Self::takeover(before, who, seconds, now, true)
    }

    fn takeover(
        before: Option<&LeaseSpec>,
        who: &Who,
        seconds: i32,
        now: ServerTime,
        new_term: bool,
    ) -> Self {
        let transitions = before.and_then(|spec| spec.lease_transitions).unwrap_or(0).max(0);
        let grows = before.is_some() && new_term;
        Self {
            holder: who.identity(),
            seconds,
            acquired: micros(now.0),
            renewed: micros(now.0),
            transitions: if grows { transitions.saturating_add(1) } else { transitions },
        }
    }

    /// What to write to release it.
    pub fn release(before: &LeaseSpec, now: ServerTime) -> Self {
        Self {
            holder: String::new(),
            seconds: 1,
            acquired: micros(now.0),
            renewed: micros(now.0),
            transitions: before.lease_transitions.unwrap_or(0).max(0),
        }
    }

    /// What a lease says; `None` if it is not held, or lacks what it would be judged by. An
    /// administrator's needs no times.
    pub fn of(spec: &LeaseSpec, now: ServerTime) -> Option<Self> {
        let holder = spec.holder_identity.clone().filter(|holder| !holder.is_empty())?;
        let timeless = holder::is_reserved(&holder);
        let renewed = spec.renew_time.as_ref().map(|time| time.0).or(timeless.then_some(micros(now.0)))?;
        Some(Self {
            holder,
            seconds: spec.lease_duration_seconds.or(timeless.then_some(1))?,
            acquired: spec.acquire_time.as_ref().map_or(renewed, |time| time.0),
            renewed,
            transitions: spec.lease_transitions.unwrap_or(0).max(0),
        })
    }

    /// What to write to renew a lease; nothing else of it changes.
    #[must_use]
    pub fn renewal(&self, seconds: i32, now: ServerTime) -> Self {
        Self { seconds, renewed: micros(now.0), ..self.clone() }
    }

    /// What to write to give a lease back as it was. The count of changes of hands only grows.
    #[must_use]
    pub fn put_back_over(&self, now: &LeaseSpec) -> Self {
        let changes_hands = now.holder_identity.as_deref() != Some(&self.holder);
        let transitions = now.lease_transitions.unwrap_or(0).max(0);
        let transitions = if changes_hands { transitions.saturating_add(1) } else { transitions };
        Self { transitions, ..self.clone() }
    }

    /// The fields of a lease.
    pub fn spec(&self) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.holder.clone()),
            lease_duration_seconds: Some(self.seconds),
            acquire_time: Some(MicroTime(self.acquired)),
            renew_time: Some(MicroTime(self.renewed)),
            lease_transitions: Some(self.transitions),
            ..LeaseSpec::default()
        }
    }

    /// Whether a lease is what this record acquired or renewed, also if a process has adopted it and put it
    /// back, which counts two changes of hands.
    pub fn is_acquisition_of(&self, spec: &LeaseSpec) -> bool {
        spec.holder_identity.as_deref() == Some(&self.holder)
            && spec.acquire_time.as_ref().is_some_and(|time| time.0 == self.acquired)
    }

    /// Whether this record was the last that was written to a lease. Its duration may have been
    /// changed since, by a write that renewed nothing.
    pub fn is_in(&self, spec: &LeaseSpec) -> bool {
        self.is_term_of(spec) && spec.renew_time.as_ref().is_some_and(|time| time.0 == self.renewed)
    }

    /// Whether a lease is in the term that this record began or renewed, also if another process renewed it last.
    pub fn is_term_of(&self, spec: &LeaseSpec) -> bool {
        self.is_acquisition_of(spec) && spec.lease_transitions.unwrap_or(0) == self.transitions
    }
}

/// The API keeps microseconds: what is written is what will be read.
fn micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A lease of a holder who renewed it so many seconds ago.
    pub(in crate::rules) fn lease(holder: &str, renewed: i64, seconds: i32, now: ServerTime) -> Lease {
        let spec = LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            renew_time: Some(MicroTime(now.0 - SignedDuration::from_secs(renewed))),
            lease_duration_seconds: Some(seconds),
            ..LeaseSpec::default()
        };
        Lease { spec, ..Lease::default() }
    }

    fn at(seconds: f64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs_f64(1_000_000.0 + seconds)
    }

    fn now() -> ServerTime {
        ServerTime(at(0.0))
    }

    fn me() -> Who {
        Who::user("me", None, "host", false)
    }

    fn spec(holder: Option<&str>, renewed: Option<f64>, seconds: Option<i32>) -> LeaseSpec {
        LeaseSpec {
            holder_identity: holder.map(str::to_owned),
            renew_time: renewed.map(|ago| MicroTime(at(-ago))),
            lease_duration_seconds: seconds,
            ..LeaseSpec::default()
        }
    }

    /// Every combination of missing fields, and the edges of time.
    #[test]
    fn ones_own_that_has_run_out_is_expired() {
        let ours = |until: i64| MaintenanceStanding::Ours {
            until: Some(now().0 + SignedDuration::from_secs(until)),
            admin: false,
        };
        assert_eq!(ours(0).as_of("me@host", now()), ours(0));
        let since = now().0 - SignedDuration::from_secs(1);
        assert_eq!(
            ours(-1).as_of("me@host", now()),
            MaintenanceStanding::Expired { holder: "me@host".into(), since }
        );
        let admins = MaintenanceStanding::Ours { until: None, admin: true };
        assert_eq!(admins.clone().as_of("kubeadm:me@host", now()), admins);
    }

    #[test]
    fn standings() {
        let held = |until: f64| MaintenanceStanding::Held { holder: "x".into(), until: at(until) };
        let expired = |since: f64| MaintenanceStanding::Expired { holder: "x".into(), since: at(since) };
        let malformed = |lacks| MaintenanceStanding::Malformed { holder: "x".into(), lacks };
        let ours = |until: Option<f64>| MaintenanceStanding::Ours { until: until.map(at), admin: false };
        for (holder, renewed, seconds, standing) in [
            (None, None, None, MaintenanceStanding::Free),
            (None, Some(0.0), Some(60), MaintenanceStanding::Free),
            (Some(""), None, None, MaintenanceStanding::Free),
            (Some(""), Some(0.0), Some(60), MaintenanceStanding::Free),
            (Some("x"), Some(0.0), Some(60), held(63.0)),
            (Some("x"), Some(63.0), Some(60), held(0.0)), // the last moment of the grace
            (Some("x"), Some(63.000_001), Some(60), expired(-0.000_001)),
            (Some("x"), Some(-30.0), Some(60), held(93.0)), // a holder whose clock is ahead
            (Some("x"), None, None, malformed("renewTime")),
            (Some("x"), None, Some(60), malformed("renewTime")),
            (Some("x"), Some(0.0), None, malformed("leaseDurationSeconds")),
            (Some("x"), Some(0.0), Some(0), malformed("leaseDurationSeconds")),
            (Some("x"), Some(0.0), Some(-1), malformed("leaseDurationSeconds")),
            (Some("me@host"), Some(0.0), Some(60), ours(Some(63.0))),
            (Some("me@host"), Some(1e6), Some(60), ours(Some(63.0 - 1e6))),
            (Some("me@host"), None, None, ours(None)),
            (
                Some("me@host2"),
                None,
                None,
                MaintenanceStanding::Malformed { holder: "me@host2".into(), lacks: "renewTime" },
            ),
        ] {
            let spec = spec(holder, renewed, seconds);
            assert_eq!(MaintenanceStanding::of(Some(&spec), &me(), now()), standing, "{spec:?}");
        }
        assert_eq!(MaintenanceStanding::of(None, &me(), now()), MaintenanceStanding::Free);
    }

    #[test]
    fn an_administrator_holds_whatever_the_times_say() {
        for (renewed, seconds) in [(None, None), (Some(1e6), Some(1)), (Some(0.0), Some(60)), (None, Some(0))]
        {
            for holder in ["kubeadm", "kubeadm:jane@laptop", "kubeadmin", "kubeadm:me@other"] {
                let standing =
                    MaintenanceStanding::of(Some(&spec(Some(holder), renewed, seconds)), &me(), now());
                assert_eq!(standing, MaintenanceStanding::Admin { holder: holder.into() });
                assert!(standing.is_valid(now()));
            }
        }
        let mine = spec(Some("kubeadm:me@host"), None, None);
        assert_eq!(
            MaintenanceStanding::of(Some(&mine), &me(), now()),
            MaintenanceStanding::Admin { holder: "kubeadm:me@host".into() }
        );
        let admin = Who::user("me", None, "host", true);
        assert_eq!(
            MaintenanceStanding::of(Some(&mine), &admin, now()),
            MaintenanceStanding::Ours { until: None, admin: true }
        );
    }

    #[test]
    fn free_expired_and_malformed_leases_are_not_held() {
        let valid = |holder, renewed, seconds| {
            MaintenanceStanding::of(Some(&spec(holder, renewed, seconds)), &me(), now()).is_valid(now())
        };
        assert!(!valid(None, None, None));
        assert!(!valid(Some("x"), Some(100.0), Some(60)));
        assert!(!valid(Some("x"), None, Some(60)));
        assert!(!valid(Some("me@host"), Some(100.0), Some(60)));
        assert!(!valid(Some("me@host"), None, None));
        assert!(valid(Some("me@host"), Some(63.0), Some(60)));
        assert!(valid(Some("x"), Some(63.0), Some(60)));
    }

    #[test]
    fn acquiring_sets_every_field_and_counts_changes_of_holder() {
        let record = Record::acquisition(None, &me(), 60, now());
        assert_eq!((record.holder.as_str(), record.seconds, record.transitions), ("me@host", 60, 0));
        assert_eq!((record.acquired, record.renewed), (at(0.0), at(0.0)));

        let mut before = spec(Some("x"), Some(100.0), Some(60));
        before.lease_transitions = Some(4);
        before.acquire_time = Some(MicroTime(at(-500.0)));
        let record = Record::acquisition(Some(&before), &me(), 60, now());
        assert_eq!((record.transitions, record.acquired), (5, at(0.0)));

        before.holder_identity = Some(String::new());
        assert_eq!(Record::acquisition(Some(&before), &me(), 60, now()).transitions, 5);

        before.holder_identity = Some("me@host".into());
        let anew = Record::acquisition(Some(&before), &me(), 90, now());
        assert_eq!((anew.transitions, anew.acquired), (5, at(0.0)), "ours, but its time was over");
        before.renew_time = Some(MicroTime(at(-63.0)));
        let renewal = Record::acquisition(Some(&before), &me(), 90, now());
        assert_eq!((renewal.transitions, renewal.acquired, renewal.renewed), (4, at(-500.0), at(0.0)));
        assert_eq!(renewal.seconds, 90);

        let term = Record::new_term(Some(&before), &me(), 90, now());
        assert_eq!(
            (term.transitions, term.acquired),
            (5, at(0.0)),
            "a process never continues another's term"
        );

        before.lease_transitions = Some(i32::MAX);
        assert_eq!(Record::new_term(Some(&before), &me(), 90, now()).transitions, i32::MAX);
    }

    #[test]
    fn release_empties_the_holder_and_keeps_the_count() {
        let mut before = spec(Some("me@host"), Some(10.0), Some(60));
        before.lease_transitions = Some(7);
        let record = Record::release(&before, now());
        assert_eq!((record.holder.as_str(), record.seconds, record.transitions), ("", 1, 7));
        assert_eq!((record.acquired, record.renewed), (at(0.0), at(0.0)));
    }

    #[test]
    fn a_renewal_changes_the_duration_and_the_time_and_nothing_else() {
        let record = Record::acquisition(None, &me(), 60, now());
        let renewal = record.renewal(90, ServerTime(at(20.0)));
        assert_eq!(renewal, Record { seconds: 90, renewed: at(20.0), ..record });
    }

    #[test]
    fn a_term_is_a_holder_since_a_moment() {
        let mut one = Lease { spec: spec(Some("x"), Some(10.0), Some(60)), ..Lease::default() };
        one.metadata.uid = "u".into();
        one.spec.acquire_time = Some(MicroTime(at(-10.0)));
        let changed = |change: &dyn Fn(&mut Lease)| {
            let mut other = one.clone();
            change(&mut other);
            is_same_term(&one, &other)
        };
        assert!(changed(&|_| ()));
        assert!(changed(&|lease| lease.spec.renew_time = Some(MicroTime(at(0.0)))));
        assert!(changed(&|lease| lease.spec.lease_duration_seconds = Some(1)));
        assert!(changed(&|lease| lease.spec.lease_transitions = Some(0)));
        assert!(!changed(&|lease| lease.spec.lease_transitions = Some(1)));
        assert!(!changed(&|lease| lease.spec.holder_identity = Some("kubeadm:x".into())));
        assert!(!changed(&|lease| lease.spec.acquire_time = Some(MicroTime(at(0.0)))));
        assert!(!changed(&|lease| lease.metadata.uid = "v".into()));
    }

    #[test]
    fn abandoned_leases() {
        const HOUR: f64 = 3600.0;
        for (holder, renewed, seconds, abandoned) in [
            (None, Some(1e6), Some(60), false),
            (Some("x"), Some(10.0), Some(60), false),
            (Some("x"), Some(64.0), Some(60), true),
            (Some("x"), Some(HOUR), Some(7200), false),
            (Some("x"), Some(HOUR + 1.0), Some(7200), true),
            (Some("kubeadm:x"), Some(24.0 * HOUR), Some(60), false),
            (Some("kubeadm:x"), Some(24.0 * HOUR + 1.0), Some(60), true),
            (Some("kubeadm:x"), None, None, false),
            (Some("x"), None, Some(60), true),
            (Some("x"), Some(-HOUR), Some(60), false),
            (Some("x"), Some(-HOUR - 1.0), Some(60), true),
            (Some("me@host"), Some(-HOUR - 1.0), Some(60), true),
            (Some("me@host"), Some(64.0), Some(60), true),
            (Some("me@host"), Some(63.0), Some(60), false),
            (Some("me@host"), Some(10.0), Some(60), false),
            (Some("me@host"), Some(HOUR), Some(7200), false),
            (Some("me@host"), Some(HOUR + 1.0), Some(7200), true),
        ] {
            let lease = Lease { spec: spec(holder, renewed, seconds), ..Lease::default() };
            assert_eq!(is_abandoned(&lease, &me(), now()), abandoned, "{:?}", lease.spec);
        }
    }

    #[test]
    fn medik8s_leases_are_valid_by_medik8s_rule() {
        for (holder, renewed, seconds, valid) in [
            (Some("node-maintenance"), Some(0.0), Some(60), true),
            (Some("node-maintenance"), Some(60.0), Some(60), true),
            (Some("node-maintenance"), Some(60.1), Some(60), false), // no grace there
            (Some("node-maintenance"), Some(-60.0), Some(60), true), // its clock is ahead
            (Some("node-maintenance"), Some(-60.1), Some(60), false),
            (Some("node-maintenance"), None, Some(60), false),
            (Some("node-maintenance"), Some(0.0), None, false),
            (Some(""), Some(0.0), Some(60), false),
            (None, Some(0.0), Some(60), false),
        ] {
            let lease = Lease { spec: spec(holder, renewed, seconds), ..Lease::default() };
            assert_eq!(medik8s_holder(&lease, now()).is_some(), valid, "{:?}", lease.spec);
        }
        assert_eq!(medik8s_name("worker-1"), "node-worker-1");
    }

    proptest! {
        /// Whatever the clocks: what we have just written is ours, cannot be taken by others before
        /// its time and the grace are over, and can be taken right after.
        #[test]
        fn what_is_acquired_is_held_exactly_as_long_as_it_says(
            seconds in 1_i32..=i32::MAX, offset_us in -4_000_000_000_i64..4_000_000_000, transitions in any::<Option<i32>>(),
        ) {
            let now = ServerTime(at(0.0) + SignedDuration::from_micros(offset_us));
            let before = LeaseSpec { lease_transitions: transitions, ..LeaseSpec::default() };
            let record = Record::acquisition(Some(&before), &me(), seconds, now);
            prop_assert!(record.transitions > 0);
            let after = LeaseSpec {
                holder_identity: Some(record.holder.clone()),
                lease_duration_seconds: Some(record.seconds),
                acquire_time: Some(MicroTime(record.acquired)),
                renew_time: Some(MicroTime(record.renewed)),
                lease_transitions: Some(record.transitions),
                ..LeaseSpec::default()
            };
            prop_assert!(record.is_in(&after));
            prop_assert_eq!(Record::of(&after, now), Some(record.clone()));
            let renewed = LeaseSpec { renew_time: Some(MicroTime(at(9e9))), ..after.clone() };
            prop_assert!(!record.is_in(&renewed));
            let anothers = LeaseSpec { acquire_time: Some(MicroTime(at(9e9))), ..after.clone() };
            prop_assert!(!record.is_in(&anothers), "the same name, another term");
            let other = Who::user("other", None, "host", false);
            let end = expiry(&after).unwrap();
            let held = MaintenanceStanding::Held { holder: record.holder.clone(), until: end };
            prop_assert_eq!(MaintenanceStanding::of(Some(&after), &other, now), held.clone());
            prop_assert_eq!(MaintenanceStanding::of(Some(&after), &other, ServerTime(end)), held);
            if let Ok(later) = end.checked_add(SignedDuration::from_micros(1)) {
                prop_assert!(!MaintenanceStanding::of(Some(&after), &other, ServerTime(later)).is_valid(ServerTime(later)));
            }
        }

        #[test]
        fn nothing_panics(
            holder in any::<Option<String>>(), renewed in any::<Option<i64>>(), seconds in any::<Option<i32>>(), now in any::<i64>(),
        ) {
            let time = |us: i64| Timestamp::from_microsecond(us).unwrap_or(Timestamp::MAX);
            let spec = LeaseSpec {
                holder_identity: holder, lease_duration_seconds: seconds,
                renew_time: renewed.map(|us| MicroTime(time(us))), ..LeaseSpec::default()
            };
            let now = ServerTime(time(now));
            MaintenanceStanding::of(Some(&spec), &me(), now);
            Record::acquisition(Some(&spec), &me(), 1, now);
            is_abandoned(&Lease { spec: spec.clone(), ..Lease::default() }, &me(), now);
            medik8s_holder(&Lease { spec, ..Lease::default() }, now);
        }
    }
}
