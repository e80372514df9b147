//! What a claim, and what keeps its lease, has written.
//!
//! Every write is logged before it is sent. So it is known afterwards whether the last write that a lease shows
//! is one of this claim's own, and only then is it undone: another process of the same holder may have renewed
//! the lease, and rely on it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::held::Released;
use crate::{
    clock::BootInstant,
    rules::{
        lease::{Lease, Metadata},
        maintenance::{MaintenanceStanding, Record, adopted},
        taking::Undo,
    },
};

/// Which version of an object: its uid and resource version.
pub(super) type ObjectVersion = (String, String);

pub(super) fn version(lease: &Lease) -> ObjectVersion {
    (lease.metadata.uid.clone(), lease.metadata.resource_version.clone())
}

/// A write that takes or renews a lease.
#[derive(Clone, Debug)]
pub(super) struct LoggedWrite {
    pub record: Record,
    /// The version that it carries; `None` for a create.
    pub over: Option<ObjectVersion>,
    pub sent: BootInstant,
    /// How the lease stood before this claim took it, and what takes it back.
    pub before: MaintenanceStanding,
    pub undo: Undo,
    /// The node that a create made the owner of the lease.
    pub node: Option<Metadata>,
    /// Whether the server has not said yet whether it was done.
    pub open: bool,
}

/// What a claim, and what keeps its lease, has written.
#[derive(Clone, Debug, Default)]
pub(super) struct Log(Arc<Mutex<Writes>>);

#[derive(Debug, Default)]
struct Writes {
    writes: Vec<LoggedWrite>,
    /// Another process of the same holder renewed the lease in the same term: it is no longer ours
    /// alone to release, and is held for as long as that one wrote.
    shared: bool,
}

impl Log {
    pub fn push(&self, write: LoggedWrite) {
        lock(&self.0).writes.push(write);
    }

    /// The write was done. What was sent before it carries an older version, and is refused if it
    /// arrives late.
    pub fn done(&self, record: &Record) {
        let mut log = lock(&self.0);
        log.writes.retain(|write| write.record == *record);
        log.writes.iter_mut().for_each(|write| write.open = false);
    }

    /// The write was refused: it has done nothing, and never will.
    pub fn refused(&self, record: &Record) {
        lock(&self.0).writes.retain(|write| write.record != *record);
    }

    /// The write met a newer version (409): it will not be done any more, but it may be what made that
    /// version, if something on the way has sent it twice.
    pub fn stale(&self, record: &Record) {
        let mut log = lock(&self.0);
        log.writes.iter_mut().filter(|write| write.record == *record).for_each(|write| write.open = false);
    }

    pub fn clear(&self) {
        *lock(&self.0) = Writes::default();
    }

    pub fn is_empty(&self) -> bool {
        lock(&self.0).writes.is_empty()
    }

    /// The write of ours that a lease shows as its last.
    pub fn last_in(&self, lease: &Lease) -> Option<LoggedWrite> {
        lock(&self.0).writes.iter().find(|write| write.record.is_in(&lease.spec)).cloned()
    }

    /// A write that would still be done if it arrived now.
    pub fn open_over(&self, now: Option<&ObjectVersion>) -> Option<LoggedWrite> {
        lock(&self.0).writes.iter().find(|write| write.open && write.over.as_ref() == now).cloned()
    }

    /// What has become of a lease that shows another's write as its last.
    pub fn left_to(&self, lease: &Lease) -> Released {
        let by_a_process = adopted(lease);
        let is_adopted = by_a_process.is_some();
        let spec = by_a_process.map_or_else(|| lease.spec.clone(), |adopted| adopted.spec);
        let ours = lock(&self.0).writes.iter().any(|write| write.record.is_acquisition_of(&spec));
        match (ours && !is_terminating(lease), is_adopted) {
            (true, true) => Released::Adopted,
            (true, false) => Released::Shared,
            (false, _) => Released::NotOurs,
        }
    }

    /// Whether a lease is released to supersede a write that may still arrive over this version of it. What
    /// another process of the same holder wrote is left as it is.
    pub fn frees(&self, open: &LoggedWrite, lease: &Lease) -> bool {
        open.undo == Undo::Release && self.left_to(lease) == Released::NotOurs
    }

    pub fn newest(&self) -> Option<LoggedWrite> {
        lock(&self.0).writes.last().cloned()
    }

    pub fn is_shared(&self) -> bool {
        lock(&self.0).shared
    }

    /// Takes in a look at the lease in our term.
    pub fn look(&self, lease: &Lease) {
        let mut log = lock(&self.0);
        log.shared |=
            !log.writes.is_empty() && !log.writes.iter().any(|write| write.record.is_in(&lease.spec));
    }
}

/// Whether only its finalizers keep a lease: nothing that is written to it lasts.
pub(super) fn is_terminating(lease: &Lease) -> bool {
    lease.metadata.deletion_timestamp.is_some()
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    use super::*;
    use crate::rules::maintenance::ADOPTED;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_000_000 + seconds)
    }

    fn record(renewed: i64) -> Record {
        Record { holder: "me".into(), seconds: 60, acquired: at(0), renewed: at(renewed), transitions: 1 }
    }

    fn lease(renewed: i64, seconds: i32) -> Lease {
        let mut lease = Lease {
            spec: LeaseSpec {
                holder_identity: Some("me".into()),
                acquire_time: Some(MicroTime(at(0))),
                renew_time: Some(MicroTime(at(renewed))),
                lease_duration_seconds: Some(seconds),
                lease_transitions: Some(1),
                ..LeaseSpec::default()
            },
            ..Lease::default()
        };
        lease.metadata.uid = "u".into();
        lease.metadata.resource_version = renewed.to_string();
        lease
    }

    fn write(renewed: i64, over: Option<&str>) -> LoggedWrite {
        LoggedWrite {
            record: record(renewed),
            over: over.map(|over| ("u".into(), over.into())),
            sent: BootInstant::now(),
            before: MaintenanceStanding::Free,
            undo: Undo::Release,
            node: None,
            open: true,
        }
    }

    #[test]
    fn a_write_is_ours_to_undo_only_while_it_is_the_last() {
        let log = Log::default();
        log.push(write(0, None));
        assert!(log.last_in(&lease(0, 60)).is_some());
        assert!(log.last_in(&lease(0, 1)).is_some(), "a duration that was patched is no renewal");
        assert!(log.last_in(&lease(5, 60)).is_none(), "another process renewed it");
        log.look(&lease(0, 1));
        assert!(!log.is_shared());
        log.look(&lease(5, 60));
        assert!(log.is_shared());
        let open = write(6, Some("5"));
        let left_to = |lease: &Lease| {
            let left_to = log.left_to(lease);
            assert_eq!(log.frees(&open, lease), left_to == Released::NotOurs, "{lease:?}");
            left_to
        };
        assert_eq!(left_to(&lease(5, 60)), Released::Shared, "the same term, renewed by another process");
        let mut put_back = lease(0, 60);
        put_back.spec.lease_transitions = Some(3);
        assert_eq!(left_to(&put_back), Released::Shared, "adopted and put back");
        let mut next = lease(5, 60);
        next.spec.acquire_time = Some(MicroTime(at(5)));
        assert_eq!(left_to(&next), Released::NotOurs);
        let mut adopted = next.clone();
        adopted.spec.holder_identity = Some("me#2e".into());
        assert_eq!(left_to(&adopted), Released::NotOurs);
        adopted.metadata.annotations.insert(ADOPTED.into(), format!("{:.6}", at(0)));
        assert_eq!(left_to(&adopted), Released::Adopted);
        for mut lease in [lease(5, 60), adopted] {
            lease.metadata.deletion_timestamp = Some(at(6));
            assert_eq!(left_to(&lease), Released::NotOurs, "it is being deleted");
        }
        log.clear();
        assert!(log.is_empty() && !log.is_shared(), "what is taken again is ours alone");
    }

    #[test]
    fn what_may_still_arrive_is_known_by_the_version_that_it_carries() {
        let log = Log::default();
        assert!(log.is_empty());
        log.push(write(0, None));
        log.push(write(1, Some("7")));
        let over = |version: Option<&str>| {
            log.open_over(version.map(|version| ("u".into(), version.into())).as_ref()).is_some()
        };
        assert!(over(None) && over(Some("7")) && !over(Some("8")));
        log.refused(&record(0));
        assert!(!over(None) && over(Some("7")));
        log.stale(&record(1));
        assert!(!over(Some("7")) && log.last_in(&lease(1, 60)).is_some(), "it may have been sent twice");
        log.push(write(2, Some("8")));
        log.done(&record(2));
        assert!(!over(Some("7")) && !over(Some("8")), "one that was done makes the earlier ones stale");
        assert!(log.last_in(&lease(2, 60)).is_some() && log.last_in(&lease(1, 60)).is_none());
    }
}
