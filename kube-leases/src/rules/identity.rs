//! kube-apiserver identities (KEP-1965): which leases are identities, and what their age tells.
//!
//! A kube-apiserver renews its identity lease every 10 seconds (with up to 4 % of jitter) but gives
//! it a duration of an hour, so that the records are not collected of a member that is merely slow.
//! 'Not yet expired' therefore says nothing about being alive: an apiserver that died fifty minutes
//! ago is still within its duration. The age of the last renewal, in renewals missed, does tell.
//!
//! A kube-apiserver writes `renewTime` by its own clock, and through itself, so that the times in
//! `managedFields` are by that clock too: nothing on the lease tells a wrong clock from a late renewal. So
//! from one look a renewal in the future says nothing, and one of a clock that is behind looks older than
//! it is. A watch sees the renewals arrive, and goes by that: see [`ApiserverRenewal`].
//!
//! A graceful shutdown deletes the lease, and so does a start, before it creates a new one: what
//! stays behind and grows old is a member that was killed, hangs, or lost its way to etcd.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{
    lease::Lease,
    time::{self, ServerTime},
};

/// Where kube-apiservers keep their identity leases, in every release.
pub const NAMESPACE: &str = "kube-system";

/// Marks identity leases since 1.26.
pub const LABEL: &str = "apiserver.kubernetes.io/identity";
const LABEL_BEFORE_1_26: &str = "k8s.io/component";
const NAME_PREFIX_BEFORE_1_26: &str = "kube-apiserver-";
/// The value of that label.
pub const COMPONENT: &str = "kube-apiserver";

const HOST_NAME_LABEL: &str = "kubernetes.io/hostname";
const PEER_ADDRESS_ANNOTATION: &str = "kubernetes.io/peer-advertise-address";

/// How often a kube-apiserver renews; not configurable since 1.26.
pub const RENEW_INTERVAL: SignedDuration = SignedDuration::from_secs(10);
/// Three renewals missed: something is wrong.
pub const LATE_AFTER: SignedDuration = SignedDuration::from_secs(3 * RENEW_INTERVAL.as_secs());
/// Renewed so far in the future: the clock of this kube-apiserver is ahead, and what its renewals say of
/// being alive is worth nothing.
pub const SKEWED_AFTER: SignedDuration = RENEW_INTERVAL;
/// Six renewals missed: longer than a restart takes.
pub const SILENT_AFTER: SignedDuration = SignedDuration::from_secs(6 * RENEW_INTERVAL.as_secs());

/// What the last renewal says about a kube-apiserver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ApiserverState {
    /// Renewed within the last three intervals.
    Alive,
    /// Missed three renewals or more: restarting, overloaded, or just killed.
    Late,
    /// Missed six or more: take it for down.
    Silent,
    /// Silent for longer than the lease's own duration: about to be collected.
    Expired,
    /// Its last renewal is in the future, by a clock that is ahead: whether it lives is seen by watching.
    Skewed,
    /// The lease has no renewal time, which no kube-apiserver writes.
    Unknown,
}

/// One kube-apiserver, as its identity lease describes it at a moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// The apiserver's id: its holder identity without the part that is new at every start.
    pub identity: String,
    /// The host it runs on, where the lease tells (since 1.26).
    pub hostname: Option<String>,
    /// Where its peers reach it, if it takes part in serving what others cannot.
    pub peer_address: Option<String>,
    /// When the lease was created. Releases that keep the lease over a restart show their first
    /// start here; newer ones delete it and so show the last.
    pub started: Option<Timestamp>,
    /// The last renewal.
    #[serde(serialize_with = "time::write")]
    pub renewed: Option<Timestamp>,
    /// How long ago that was: as it was seen, or else by what the lease says.
    #[serde(skip)]
    pub age: Option<SignedDuration>,
    /// What its last renewal says of it.
    pub state: ApiserverState,
    /// The part of the holder identity that is new at every start.
    pub holder_uuid: Option<String>,
    /// The name of the lease.
    #[serde(skip)]
    pub lease_name: String,
    /// The namespace of the lease.
    #[serde(skip)]
    pub namespace: String,
    /// The UID of the lease.
    #[serde(skip)]
    pub uid: String,
}

impl Identity {
    /// Reads an identity lease, by one look at it; `None` for a lease of any other kind.
    pub fn from_lease(lease: &Lease, now: ServerTime) -> Option<Self> {
        Self::observed(lease, None, now)
    }

    /// Reads an identity lease whose renewals are watched.
    pub fn observed(lease: &Lease, seen: Option<&ApiserverRenewal>, now: ServerTime) -> Option<Self> {
        if !is_identity(lease) {
            return None;
        }
        let meta = &lease.metadata;
        let holder = lease.spec.holder_identity.as_deref().unwrap_or_default();
        let (id, uuid) = match holder.rsplit_once('_') {
            Some((id, uuid)) => (id, Some(uuid.to_owned())),
            None => (holder, None),
        };
        Some(Self {
            identity: if id.is_empty() { meta.name.clone() } else { id.to_owned() },
            hostname: meta.labels.get(HOST_NAME_LABEL).cloned(),
            peer_address: meta.annotations.get(PEER_ADDRESS_ANNOTATION).cloned(),
            started: meta.creation_timestamp,
            renewed: lease.renewed(),
            age: age(lease, seen, now),
            state: state(lease, seen, now),
            holder_uuid: uuid,
            lease_name: meta.name.clone(),
            namespace: meta.namespace.clone(),
            uid: meta.uid.clone(),
        })
    }

    /// What a person calls this apiserver: its host name, or its id where that is not known.
    pub fn called(&self) -> &str {
        self.hostname.as_deref().unwrap_or(&self.identity)
    }

    /// Whether `name` means this one.
    pub fn answers_to(&self, name: &str) -> bool {
        name == self.lease_name || name == self.identity || self.hostname.as_deref() == Some(name)
    }

    /// By host name, then by lease name, so that the order is the same each time.
    pub fn order(&self) -> (&str, &str) {
        (self.called(), &self.lease_name)
    }
}

/// The last renewal of a lease that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiserverRenewal {
    uid: String,
    renewed: Option<Timestamp>,
    /// Since when the lease has looked like this, as far as it was seen.
    since: ServerTime,
    /// How much later than `renewTime` says renewals are, by one that was seen to arrive: by so much the
    /// clock of the kube-apiserver is behind. Unknown when a watch begins.
    offset: Option<SignedDuration>,
}

impl ApiserverRenewal {
    /// What is seen at the first look. `just_made`: it was not there a moment ago.
    pub fn first(lease: &Lease, just_made: bool, now: ServerTime) -> Self {
        let renewed = lease.renewed();
        let offset = renewed.filter(|_| just_made).map(|renewed| now.since(renewed));
        Self { uid: lease.metadata.uid.clone(), renewed, since: now, offset }
    }

    /// Takes in the next look. `gap`: what was renewed meanwhile was not seen to arrive.
    pub fn look(&mut self, lease: &Lease, gap: bool, now: ServerTime) {
        if self.uid == lease.metadata.uid && self.renewed == lease.renewed() {
            return;
        }
        let offset = self.offset.filter(|_| self.uid == lease.metadata.uid);
        *self = Self::first(lease, !gap, now);
        self.offset = self.offset.or(offset);
    }
}

/// What happened to a kube-apiserver between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiserverEvent {
    /// It has a lease now, and had none before.
    Joined,
    /// Its lease was deleted, or is not marked as one any more.
    Left,
    /// It is another process than before.
    Restarted,
    /// The same process, and its last renewal says something else of it.
    Became(ApiserverState),
}

impl ApiserverEvent {
    /// From one look to the next, if anything happened at all; an identity that was not there, or is
    /// no longer, is `None`.
    pub fn between(before: Option<&Identity>, after: Option<&Identity>) -> Option<Self> {
        match (before, after) {
            (None, None) => None,
            (None, Some(_)) => Some(Self::Joined),
            (Some(_), None) => Some(Self::Left),
            // Releases that keep the lease over a restart write a new holder into it.
            (Some(old), Some(new)) if old.uid != new.uid || old.holder_uuid != new.holder_uuid => {
                Some(Self::Restarted)
            }
            (Some(old), Some(new)) => (old.state != new.state).then_some(Self::Became(new.state)),
        }
    }
}

/// The identities among these leases, as of now. Those with permission to create leases in another namespace can
/// label one as an identity there.
pub fn among<'a>(leases: impl Iterator<Item = &'a Lease>, now: ServerTime) -> Vec<Identity> {
    leases
        .filter(|lease| lease.metadata.namespace == NAMESPACE)
        .filter_map(|lease| Identity::from_lease(lease, now))
        .collect()
}

/// Whether a lease is the identity of a kube-apiserver, of any release.
pub fn is_identity(lease: &Lease) -> bool {
    let meta = &lease.metadata;
    let label = |key| meta.labels.get(key).map(String::as_str) == Some(COMPONENT);
    label(LABEL) || (label(LABEL_BEFORE_1_26) && meta.name.starts_with(NAME_PREFIX_BEFORE_1_26))
}

/// How long ago a lease was renewed, at least: negative for a renewal in the future.
fn age(lease: &Lease, seen: Option<&ApiserverRenewal>, now: ServerTime) -> Option<SignedDuration> {
    let written = now.since(lease.renewed()?);
    let Some(seen) = seen else { return Some(written) };
    let unchanged = now.since(seen.since.0);
    Some(match seen.offset {
        Some(offset) => written.saturating_sub(offset).max(unchanged),
        // For so long it was not renewed, whatever it says.
        None if unchanged > LATE_AFTER => written.max(unchanged),
        None => written,
    })
}

fn state(lease: &Lease, seen: Option<&ApiserverRenewal>, now: ServerTime) -> ApiserverState {
    let Some(age) = age(lease, seen, now) else {
        return ApiserverState::Unknown;
    };
    let collectable = lease
        .spec
        .lease_duration_seconds
        .is_some_and(|seconds| age > SignedDuration::from_secs(seconds.into()) && age > SILENT_AFTER);
    match age {
        _ if collectable => ApiserverState::Expired,
        age if age > SILENT_AFTER => ApiserverState::Silent,
        age if age > LATE_AFTER => ApiserverState::Late,
        age if age < -SKEWED_AFTER => ApiserverState::Skewed,
        _ => ApiserverState::Alive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    fn instant(seconds: f64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs_f64(1_000_000.0 + seconds)
    }

    fn now() -> ServerTime {
        ServerTime(instant(0.0))
    }

    fn lease(age: f64) -> Lease {
        let mut lease = Lease::default();
        lease.metadata.name = "apiserver-abc".into();
        lease.metadata.labels.insert(LABEL.into(), COMPONENT.into());
        lease.spec.holder_identity = Some("apiserver-abc_0f8f".into());
        lease.spec.lease_duration_seconds = Some(3600);
        lease.spec.renew_time = Some(MicroTime(instant(-age)));
        lease
    }

    #[test]
    fn states_at_their_edges() {
        for (age, state) in [
            (-7200.0, ApiserverState::Skewed), // the renewing apiserver's clock is ahead
            (-10.001, ApiserverState::Skewed),
            (-10.0, ApiserverState::Alive),
            (-1.0, ApiserverState::Alive),
            (0.0, ApiserverState::Alive),
            (10.4, ApiserverState::Alive),
            (30.0, ApiserverState::Alive),
            (30.001, ApiserverState::Late),
            (60.0, ApiserverState::Late),
            (60.001, ApiserverState::Silent),
            (3000.0, ApiserverState::Silent), // dead for fifty minutes, and not yet expired
            (3600.0, ApiserverState::Silent),
            (3600.001, ApiserverState::Expired),
            (1e9, ApiserverState::Expired),
        ] {
            assert_eq!(super::state(&lease(age), None, now()), state, "renewed {age} s ago");
        }
    }

    /// A clock that is wrong by so many seconds, renewals by it at these times, and the states at others.
    #[test]
    fn a_watch_goes_by_the_renewals_that_arrive() {
        let at = |seconds: f64| ServerTime(instant(seconds));
        for (what, ahead, renewals, states) in [
            (
                "ahead, and alive",
                7200.0,
                &[-5.0, 5.0, 15.0, 25.0][..],
                &[
                    (0.0, ApiserverState::Skewed),
                    (4.9, ApiserverState::Skewed),
                    (5.0, ApiserverState::Alive),
                    (50.0, ApiserverState::Alive),
                    (55.1, ApiserverState::Late),
                    (85.1, ApiserverState::Silent),
                ][..],
            ),
            (
                "ahead, and dead",
                7200.0,
                &[-5.0],
                &[
                    (0.0, ApiserverState::Skewed),
                    (30.0, ApiserverState::Skewed),
                    (30.1, ApiserverState::Late),
                    (60.1, ApiserverState::Silent),
                    (3700.0, ApiserverState::Expired),
                ],
            ),
            (
                "behind, and alive",
                -70.0,
                &[-5.0, 5.0, 15.0, 25.0],
                &[
                    (0.0, ApiserverState::Silent),
                    (4.9, ApiserverState::Silent),
                    (5.0, ApiserverState::Alive),
                    (25.0, ApiserverState::Alive),
                    (55.1, ApiserverState::Late),
                ],
            ),
            (
                "right, and alive",
                0.0,
                &[-5.0, 5.0],
                &[
                    (0.0, ApiserverState::Alive),
                    (5.0, ApiserverState::Alive),
                    (35.0, ApiserverState::Alive),
                    (35.1, ApiserverState::Late),
                ],
            ),
            (
                "right, and dead for long",
                0.0,
                &[-4000.0],
                &[(0.0, ApiserverState::Expired), (9.0, ApiserverState::Expired)],
            ),
            // Late by the lease, before it is late by what was seen.
            (
                "right, and just died",
                0.0,
                &[-25.0],
                &[(0.0, ApiserverState::Alive), (5.1, ApiserverState::Late)],
            ),
        ] {
            let mut times: Vec<f64> = states.iter().map(|(time, _)| *time).collect();
            times.extend(renewals.iter().filter(|time| **time > 0.0));
            times.sort_by(f64::total_cmp);
            let mut seen: Option<ApiserverRenewal> = None;
            for time in times {
                let last =
                    renewals.iter().copied().filter(|renewal| *renewal <= time).fold(f64::MIN, f64::max);
                let lease = lease(-(last + ahead));
                match &mut seen {
                    Some(seen) => seen.look(&lease, false, at(time)),
                    None => seen = Some(ApiserverRenewal::first(&lease, false, at(time))),
                }
                let state = super::state(&lease, seen.as_ref(), at(time));
                for (_, expected) in states.iter().filter(|(of, _)| (of - time).abs() < 1e-9) {
                    assert_eq!(state, *expected, "{what}, at {time}");
                }
            }
        }
        // What was not there before has just been made.
        let new = lease(7200.0);
        assert_eq!(
            super::state(&new, Some(&ApiserverRenewal::first(&new, true, at(0.0))), at(1.0)),
            ApiserverState::Alive
        );
        // Another process of the same name.
        let mut seen = ApiserverRenewal::first(&new, false, at(0.0));
        let mut other = new.clone();
        other.metadata.uid = "2".into();
        seen.look(&other, false, at(9.0));
        assert_eq!(super::state(&other, Some(&seen), at(10.0)), ApiserverState::Alive);
    }

    /// Renewed once while there was no connection, and then no more.
    #[test]
    fn what_was_renewed_in_a_gap_was_not_seen_to_arrive() {
        let at = |seconds: f64| ServerTime(instant(seconds));
        for (ahead, known, state) in [
            (0.0, true, ApiserverState::Silent),
            (7200.0, true, ApiserverState::Silent),
            (-70.0, true, ApiserverState::Silent),
            (0.0, false, ApiserverState::Silent),
            (7200.0, false, ApiserverState::Skewed),
        ] {
            let renewed = |time: f64| lease(-(time + ahead));
            let mut seen = ApiserverRenewal::first(&renewed(-5.0), false, at(0.0));
            if known {
                seen.look(&renewed(5.0), false, at(5.0));
            }
            seen.look(&renewed(15.0), true, at(300.0));
            assert_eq!(super::state(&renewed(15.0), Some(&seen), at(300.0)), state, "{ahead} {known}");
            // Its next renewal tells, and whether its clock was set meanwhile does not matter.
            for clock in [ahead, 0.0, -70.0] {
                let mut seen = seen.clone();
                let next = lease(-(305.0 + clock));
                seen.look(&next, false, at(305.0));
                assert_eq!(
                    super::state(&next, Some(&seen), at(306.0)),
                    ApiserverState::Alive,
                    "{ahead} {clock}"
                );
            }
        }
    }

    #[test]
    fn what_happened_between_two_looks() {
        let look = |uid: &str, holder: &str, age: f64| {
            let mut lease = lease(age);
            lease.metadata.uid = uid.into();
            lease.spec.holder_identity = Some(format!("apiserver-abc_{holder}"));
            Identity::from_lease(&lease, now())
        };
        for (before, after, happened) in [
            (None, None, None),
            (None, look("1", "a", 0.0), Some(ApiserverEvent::Joined)),
            (None, look("1", "a", 99.0), Some(ApiserverEvent::Joined)),
            (look("1", "a", 0.0), None, Some(ApiserverEvent::Left)),
            (look("1", "a", 9.0), look("1", "a", 0.0), None),
            (look("1", "a", 9.0), look("1", "a", 31.0), Some(ApiserverEvent::Became(ApiserverState::Late))),
            (look("1", "a", 61.0), look("1", "a", 0.0), Some(ApiserverEvent::Became(ApiserverState::Alive))),
            // A new lease, as today's releases make; a new holder in the old one, as before.
            (look("1", "a", 61.0), look("2", "b", 0.0), Some(ApiserverEvent::Restarted)),
            (look("1", "a", 61.0), look("1", "b", 0.0), Some(ApiserverEvent::Restarted)),
            (look("1", "a", 0.0), look("2", "a", 0.0), Some(ApiserverEvent::Restarted)),
        ] {
            assert_eq!(
                ApiserverEvent::between(before.as_ref(), after.as_ref()),
                happened,
                "{before:?} {after:?}"
            );
        }
    }

    #[test]
    fn a_short_duration_does_not_make_a_living_apiserver_expired() {
        for (age, state) in
            [(5.0, ApiserverState::Alive), (60.0, ApiserverState::Late), (60.001, ApiserverState::Expired)]
        {
            let mut lease = lease(age);
            lease.spec.lease_duration_seconds = Some(1);
            assert_eq!(super::state(&lease, None, now()), state, "renewed {age} s ago");
        }
    }

    #[test]
    fn missing_fields_are_not_taken_for_life() {
        let mut lease = lease(0.0);
        lease.spec.renew_time = None;
        assert_eq!(super::state(&lease, None, now()), ApiserverState::Unknown);

        let mut lease = self::lease(1e6);
        lease.spec.lease_duration_seconds = None;
        assert_eq!(super::state(&lease, None, now()), ApiserverState::Silent);
    }

    #[test]
    fn the_extremes_of_time_do_not_panic() {
        for time in [Timestamp::MIN, Timestamp::MAX] {
            let mut lease = lease(0.0);
            lease.spec.renew_time = Some(MicroTime(time));
            lease.spec.lease_duration_seconds = Some(i32::MAX);
            for now in [Timestamp::MIN, Timestamp::MAX] {
                super::state(&lease, None, ServerTime(now));
            }
        }
    }

    #[test]
    fn only_identity_leases_are_identities() {
        let named = |name: &str, labels: &[(&str, &str)]| {
            let mut lease = Lease::default();
            lease.metadata.name = name.into();
            lease.metadata.labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            Identity::from_lease(&lease, now()).is_some()
        };
        assert!(named("apiserver-abc", &[(LABEL, COMPONENT)]));
        assert!(named("kube-apiserver-abc", &[(LABEL_BEFORE_1_26, COMPONENT)]));
        // Aggregated apiservers label their own leases with their own name.
        assert!(!named("apiserver-abc", &[(LABEL, "metrics-server")]));
        assert!(!named("my-app", &[(LABEL_BEFORE_1_26, COMPONENT)]));
        assert!(!named("kube-apiserver-abc", &[]));
        assert!(!named("kube-controller-manager", &[]));
    }

    #[test]
    fn an_identity_is_read_whole() {
        let mut lease = lease(5.0);
        lease.metadata.name = "apiserver-lease".into();
        lease.metadata.namespace = NAMESPACE.into();
        lease.metadata.creation_timestamp = Some(instant(-100.0));
        lease.metadata.labels.insert(HOST_NAME_LABEL.into(), "cp-1".into());
        lease.metadata.annotations.insert(PEER_ADDRESS_ANNOTATION.into(), "192.0.2.1:6443".into());
        let identity = Identity::from_lease(&lease, now()).unwrap();
        assert_eq!(identity.identity, "apiserver-abc");
        assert_eq!(identity.holder_uuid.as_deref(), Some("0f8f"));
        assert_eq!(identity.called(), "cp-1");
        assert_eq!(identity.peer_address.as_deref(), Some("192.0.2.1:6443"));
        assert_eq!(identity.started, Some(instant(-100.0)));
        assert_eq!(identity.order(), ("cp-1", "apiserver-lease"));
        for name in ["cp-1", "apiserver-abc", "apiserver-lease"] {
            assert!(identity.answers_to(name), "{name}");
        }
        assert!(!identity.answers_to("cp-2"));
        assert!(!identity.answers_to(""));
    }

    #[test]
    fn a_renewal_reads_as_in_the_lease_whatever_its_last_digits() {
        let identity = Identity::from_lease(&lease(0.5), now()).unwrap();
        let document = serde_json::to_value(identity).unwrap();
        assert_eq!(document["renewed"], "1970-01-12T13:46:39.500000Z");
    }

    #[test]
    fn a_lease_without_host_name_or_holder_is_called_by_its_name() {
        let mut lease = lease(5.0);
        lease.spec.holder_identity = None;
        let identity = Identity::from_lease(&lease, now()).unwrap();
        assert_eq!(identity.called(), "apiserver-abc");
        assert_eq!(identity.holder_uuid, None);
    }
}
