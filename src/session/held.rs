//! A lease that is ours, and what was written to make it so.
//!
//! Every write is logged before it is sent. So it is known afterwards whether the last write that a
//! lease shows is one of this claim's own, and only then is it undone: another process of the same
//! holder may have renewed the lease, and been told that it holds it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::api::coordination::v1::LeaseSpec;
use tokio::time::sleep;

use super::claim::{ATTEMPTS, PAUSE, persistently};
use crate::{
    clock::BootInstant,
    cluster::{
        Cluster, Object, Refusal,
        leases::Notes,
        single::{Address, Writing},
    },
    domain::{
        holder::{Who, is_reserved},
        lease::{Lease, Metadata},
        maintenance::{Record, Standing, adopted, expiry, is_same_term},
        taking::{Terms, Undo},
        time::ServerTime,
    },
    error::{Error, Result},
};

/// How long a release is tried in an outage: not as long as its callers have patience, so that the reason
/// can be told.
const PATIENCE: Duration = Duration::from_secs(8);

/// Which version of an object: its uid and resource version.
pub(super) type Version = (String, String);

pub(super) fn version(lease: &Lease) -> Version {
    (lease.metadata.uid.clone(), lease.metadata.resource_version.clone())
}

/// A write that takes or renews a lease.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub record: Record,
    /// The version that it carries; `None` for a create.
    pub over: Option<Version>,
    pub sent: BootInstant,
    /// How the lease stood before this claim took it, and what takes it back.
    pub before: Standing,
    pub undo: Undo,
    /// The node that a create made the owner of the lease.
    pub node: Option<Metadata>,
    /// Whether the server has not said yet whether it was done.
    pub open: bool,
}

/// What a claim, and whoever keeps its lease, has written.
#[derive(Clone, Debug, Default)]
pub(super) struct Log(Arc<Mutex<Writes>>);

#[derive(Debug, Default)]
struct Writes {
    writes: Vec<Write>,
    /// Another process of the same holder renewed the lease in the same term: it is no longer ours
    /// alone to release, and is held for as long as that one was told.
    shared: bool,
}

impl Log {
    pub fn push(&self, write: Write) {
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
    pub fn last_in(&self, lease: &Lease) -> Option<Write> {
        lock(&self.0).writes.iter().find(|write| write.record.is_in(&lease.spec)).cloned()
    }

    /// A write that would still be done if it arrived now.
    pub fn open_over(&self, now: Option<&Version>) -> Option<Write> {
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
    pub fn frees(&self, open: &Write, lease: &Lease) -> bool {
        open.undo == Undo::Release && self.left_to(lease) == Released::NotOurs
    }

    fn newest(&self) -> Option<Write> {
        lock(&self.0).writes.last().cloned()
    }

    pub fn is_shared(&self) -> bool {
        lock(&self.0).shared
    }

    /// Takes in a look at the lease in our term.
    fn look(&self, lease: &Lease) {
        let mut log = lock(&self.0);
        log.shared |=
            !log.writes.is_empty() && !log.writes.iter().any(|write| write.record.is_in(&lease.spec));
    }
}

/// What a release did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    Yes,
    /// It is held again as it was before, by the holder whose lease was adopted or renewed.
    PutBack,
    /// It was not ours any more.
    NotOurs,
    /// It is not ours any more. Whether that is by this release, whose answer was lost, is not known.
    Unanswered,
    /// Another process of the same holder has renewed it, and goes on holding it.
    Shared,
    /// Another process of the same holder has adopted it, and will put it back.
    Adopted,
}

/// A lease that is ours. Clones know the same: who keeps it tells who releases it.
#[derive(Clone, Debug)]
pub struct Held {
    pub at: Address,
    pub who: Who,
    /// Grows with every change of hands, also when the lease is deleted in between: the resource
    /// version of the write that took it.
    pub token: String,
    known: Arc<Mutex<(Object<Lease>, BootInstant)>>,
    /// `None` for a lease that a look has found: it is released whoever of its holder renewed it.
    log: Option<Log>,
    /// It was the wanted holder's already, and nothing was written to it yet.
    left: bool,
}

impl Held {
    pub(super) fn taken(at: Address, who: Who, lease: Object<Lease>, sent: BootInstant, log: Log) -> Self {
        let token = lease.value.metadata.resource_version.clone();
        Self { at, who, token, known: Arc::new(Mutex::new((lease, sent))), log: Some(log), left: false }
    }

    /// A lease that counts as had and is left as it is, until its claim is renamed.
    pub(super) fn left(at: Address, who: Who, lease: Object<Lease>, log: Log) -> Self {
        Self { left: true, ..Self::taken(at, who, lease, BootInstant::now(), log) }
    }

    /// Whether it is not this claim's to keep or to undo.
    pub fn is_left(&self) -> bool {
        self.left
    }

    /// Whether another process of the same holder was seen to have renewed it: it is held for as long as that
    /// one was told.
    pub fn is_shared(&self) -> bool {
        self.log.as_ref().is_some_and(Log::is_shared)
    }

    pub(super) fn log(&self) -> Log {
        self.log.clone().unwrap_or_default()
    }

    /// A lease of `who`'s, as a look has just found it.
    pub fn found(at: Address, who: Who, lease: Object<Lease>) -> Self {
        let token = lease.value.metadata.resource_version.clone();
        Self {
            at,
            who,
            token,
            known: Arc::new(Mutex::new((lease, BootInstant::now()))),
            log: None,
            left: false,
        }
    }

    /// The lease, as it was last read or written.
    pub fn lease(&self) -> Object<Lease> {
        lock(&self.known).0.clone()
    }

    /// When the write that made or last renewed it was sent: its time counts from here.
    pub fn sent(&self) -> BootInstant {
        lock(&self.known).1
    }

    /// The renewal to write now, logged.
    pub(super) fn renewal(&self, seconds: i32, now: ServerTime, sent: BootInstant) -> Record {
        let lease = self.lease();
        let spec = &lease.value.spec;
        let mut seconds = seconds;
        let Some(log) = &self.log else {
            return self.record(spec, seconds, now);
        };
        let earlier = log.newest();
        if let Some(earlier) = &earlier {
            seconds = earlier.undo.lengthened(seconds, now);
        }
        let record = self.record(spec, seconds, now);
        if let Some(earlier) = earlier {
            let over = Some(version(&lease.value));
            log.push(Write { record: record.clone(), over, sent, open: true, ..earlier });
        }
        record
    }

    fn record(&self, spec: &LeaseSpec, seconds: i32, now: ServerTime) -> Record {
        let before = Record::of(spec, now);
        let before = before.unwrap_or_else(|| Record::new_term(Some(spec), &self.who, seconds, now));
        before.renewal(seconds, now)
    }

    pub(super) fn renewed(&self, record: &Record, lease: Object<Lease>, sent: BootInstant) {
        if let Some(log) = &self.log {
            log.done(record);
        }
        *lock(&self.known) = (lease, sent);
    }

    /// The same term, as a fresh look has found it.
    pub(super) fn seen(&self, lease: Object<Lease>) {
        if let Some(log) = &self.log {
            log.look(&lease.value);
        }
        lock(&self.known).0 = lease;
    }

    /// The same term, as the keeper finds it after a conflict. Whether it shows a renewal of ours that had no
    /// answer: its time counts from when that was sent.
    pub(super) fn found_renewed(&self, lease: Object<Lease>) -> bool {
        let last = self.log.as_ref().and_then(|log| log.last_in(&lease.value));
        // Others go by the duration that is written there, which may have been changed since.
        let lasts = |write: &Write| lease.value.spec.lease_duration_seconds >= Some(write.record.seconds);
        let Some(write) = last.filter(|write| write.sent > self.sent() && lasts(write)) else {
            self.seen(lease);
            return false;
        };
        self.renewed(&write.record, lease, write.sent);
        true
    }

    /// Lets a lease go that was used, or gives it back, if it is still in the term that we hold.
    pub async fn release(&self, cluster: &Cluster, writing: &Writing) -> Result<Released> {
        self.let_go(cluster, writing, Undo::after_use).await
    }

    /// Takes back what made the lease ours, if it is still in the term that we hold: for one that was not used.
    pub async fn undo(&self, cluster: &Cluster, writing: &Writing) -> Result<Released> {
        self.let_go(cluster, writing, |undo| undo).await
    }

    async fn let_go(
        &self,
        cluster: &Cluster,
        writing: &Writing,
        how: impl Fn(Undo) -> Undo,
    ) -> Result<Released> {
        let ours = self.lease();
        let mut lease = ours.clone();
        let mut unanswered: Vec<(LeaseSpec, Released)> = Vec::new();
        let mut last: Option<Error> = None;
        let mut refusal = Refusal::default();
        let patience = BootInstant::now() + PATIENCE;
        let mut conflicts = 0;
        // A conflict is an answer, however late: what made it may be ours.
        let is_outage = |last: &Option<Error>| last.as_ref().is_some_and(|error| !error.is_conflict());
        while conflicts < ATTEMPTS && !(is_outage(&last) && patience.has_passed()) {
            // A release of ours without an answer, done after all, is what we wanted.
            if let Some(done) = done_by(&unanswered, &lease.value) {
                return Ok(done);
            }
            // A write of ours that was still on its way, such as a rename, may have begun another term.
            let is_ours = |log: &Log| log.last_in(&lease.value).is_some();
            if !is_same_term(&lease.value, &ours.value) && !self.log.as_ref().is_some_and(is_ours) {
                let left_to = |log: &Log| log.left_to(&lease.value);
                return Ok(self.log.as_ref().map_or_else(|| gone(&unanswered), left_to));
            }
            let undo = match &self.log {
                None => Undo::Release,
                Some(log) => match log.last_in(&lease.value) {
                    Some(write) if !log.is_shared() => how(write.undo),
                    _ => return Ok(Released::Shared),
                },
            };
            // What is put back into a lease that is being deleted is not held.
            let is_lost = is_terminating(&lease.value) && undo != Undo::Release;
            let undo = if is_lost { Undo::Release } else { undo };
            let (spec, reason) = undo.spec(&lease.value, cluster.server_time());
            let done = match spec.holder_identity.as_deref() {
                _ if is_lost => Released::NotOurs,
                Some("") => Released::Yes,
                _ => Released::PutBack,
            };
            let notes = Notes { reason, ..Notes::default() };
            let failure = match cluster.write_lease(&self.at, &lease.value, &spec, notes, None, writing).await
            {
                Ok(_) => return Ok(done),
                Err(error) if error.is_not_found() => return Ok(gone(&unanswered)),
                Err(error) => error,
            };
            if failure.is_unclear() {
                unanswered.push((spec, done));
                sleep(failure.pause(PAUSE * 2)).await;
            } else if failure.is_conflict() {
                conflicts += 1;
            } else if self.log.is_some() && refusal.may_pass(&failure) {
                sleep(PAUSE * 5).await;
            } else {
                return Err(failure);
            }
            last = Some(failure);
            match self.read_again(cluster).await? {
                Some(now) => lease = now,
                None => return Ok(gone(&unanswered)),
            }
        }
        done_by(&unanswered, &lease.value).ok_or_else(|| self.given_up("releasing", last))
    }

    /// After so many attempts, of which the last failed like this.
    fn given_up(&self, doing: &str, last: Option<Error>) -> Error {
        last.filter(|error| !error.is_conflict()).unwrap_or_else(|| Error::LostRace {
            message: format!("gave up {doing} '{}' after {ATTEMPTS} write conflicts", self.at.name),
        })
    }

    /// The lease as it is now; an outage is waited for, as long as the caller has patience.
    async fn read_again(&self, cluster: &Cluster) -> Result<Option<Object<Lease>>> {
        persistently(None, async || cluster.lease(&self.at).await).await
    }

    /// Renews the lease once. If another process of the same holder has renewed it meanwhile, it is held
    /// for as long as that one was told, be it shorter. An outage is waited for, as long as the caller has
    /// patience.
    ///
    /// # Errors
    /// If it is not ours any more.
    pub async fn renew(&self, cluster: &Cluster, seconds: i32) -> Result<()> {
        let lost = || self.lost();
        let mut failure = None;
        let mut refusal = Refusal::default();
        let mut conflicts = 0;
        while conflicts < ATTEMPTS {
            if self.is_shared() {
                return self.look(cluster).await;
            }
            let (lease, sent) = (self.lease(), BootInstant::now());
            let record = self.renewal(seconds, cluster.server_time(), sent);
            match cluster.renew_lease(&self.at, &lease.value, &record).await {
                Ok(renewed) => {
                    self.renewed(&record, renewed, sent);
                    return Ok(());
                }
                Err(error) if error.is_not_found() => return Err(lost()),
                Err(error) if error.is_conflict() => {
                    conflicts += 1;
                    failure = Some(error);
                }
                Err(error) if error.is_unclear() || refusal.may_pass(&error) => {
                    sleep(error.pause(PAUSE * 5)).await;
                }
                Err(error) => return Err(error),
            }
            match self.read_again(cluster).await? {
                // It was done, without an answer.
                Some(now) if record.is_in(&now.value.spec) && !is_terminating(&now.value) => {
                    self.renewed(&record, now, sent);
                    return Ok(());
                }
                Some(now) if is_same_term(&now.value, &lease.value) && !is_terminating(&now.value) => {
                    self.seen(now);
                }
                _ => return Err(lost()),
            }
        }
        Err(self.given_up("renewing", failure))
    }

    /// Makes sure that it is still held, without a write: for a lease that another process of the same holder
    /// has renewed, and for an administrator's, which needs no renewal.
    ///
    /// # Errors
    /// If it is not ours any more.
    pub async fn look(&self, cluster: &Cluster) -> Result<()> {
        let now = self.read_again(cluster).await?.ok_or_else(|| self.lost())?;
        let is_held = is_reserved(now.value.holder())
            || expiry(&now.value.spec).is_ok_and(|until| cluster.server_time().0 <= until);
        if !is_held || is_terminating(&now.value) || !is_same_term(&now.value, &self.lease().value) {
            return Err(self.lost());
        }
        self.seen(now);
        Ok(())
    }

    pub(super) fn lost(&self) -> Error {
        Error::LostRace { message: format!("'{}' was lost before it was used", self.at.name) }
    }

    /// Goes on holding what was gathered under the terms that it was gathered for. An outage is waited
    /// for, as long as the caller has patience.
    ///
    /// # Errors
    /// If it is not ours any more.
    pub(super) async fn rename(
        &self,
        cluster: &Cluster,
        terms: &Terms,
        seconds: i32,
        owner: Option<&Metadata>,
        writing: &Writing,
    ) -> Result<Self> {
        let mut refusal = Refusal::default();
        loop {
            let (lease, sent) = (self.lease(), BootInstant::now());
            let Some((log, earlier)) = self.log.as_ref().and_then(|log| Some((log, log.newest()?))) else {
                return Err(self.lost());
            };
            let record = terms.gathered(&lease.value, seconds, cluster.server_time());
            let over = Some(version(&lease.value));
            log.push(Write { record: record.clone(), over, sent, open: true, ..earlier });
            let notes = Notes { reason: lease.value.reason(), ..Notes::default() };
            let renamed =
                |lease, sent| Self::taken(self.at.clone(), terms.who.clone(), lease, sent, log.clone());
            match cluster.write_lease(&self.at, &lease.value, &record.spec(), notes, owner, writing).await {
                Ok(lease) => {
                    log.done(&record);
                    return Ok(renamed(lease, sent));
                }
                Err(error) if error.is_unclear() => sleep(error.pause(PAUSE * 5)).await,
                Err(error) if error.is_conflict() => log.stale(&record),
                Err(error) => {
                    log.refused(&record);
                    if error.is_not_found() {
                        return Err(self.lost());
                    }
                    if !refusal.may_pass(&error) {
                        return Err(error);
                    }
                    sleep(PAUSE * 5).await;
                }
            }
            let now = self.read_again(cluster).await?.ok_or_else(|| self.lost())?;
            if is_terminating(&now.value) {
                return Err(self.lost());
            }
            match log.last_in(&now.value) {
                // It was done, without an answer.
                Some(write) if write.record.holder == record.holder => {
                    log.done(&write.record);
                    return Ok(renamed(now, write.sent));
                }
                _ if is_same_term(&now.value, &lease.value) => self.seen(now),
                _ => return Err(self.lost()),
            }
        }
    }

    /// Makes the lease go with this node, and nothing else.
    pub(super) async fn belong_to(
        &self,
        cluster: &Cluster,
        node: &Metadata,
        writing: &Writing,
    ) -> Result<()> {
        let lease = self.lease();
        let owned = cluster.own_lease(&self.at, &lease.value, node, writing).await?;
        self.seen(owned);
        Ok(())
    }
}

/// What a release did to a lease that is not ours any more.
fn gone(unanswered: &[(LeaseSpec, Released)]) -> Released {
    if unanswered.is_empty() { Released::NotOurs } else { Released::Unanswered }
}

/// What a release without an answer did, if it is the last that was written to the lease.
fn done_by(unanswered: &[(LeaseSpec, Released)], lease: &Lease) -> Option<Released> {
    let is_in = |spec: &LeaseSpec| {
        let of = |spec: &LeaseSpec| {
            let transitions = spec.lease_transitions.unwrap_or(0);
            (spec.holder_identity.clone(), spec.acquire_time.clone(), spec.renew_time.clone(), transitions)
        };
        of(spec) == of(&lease.spec)
    };
    unanswered.iter().find(|(spec, _)| is_in(spec)).map(|(_, done)| *done)
}

/// Whether only its finalizers keep a lease: nothing that is written to it lasts.
fn is_terminating(lease: &Lease) -> bool {
    lease.metadata.deletion_timestamp.is_some()
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    use super::*;
    use crate::domain::maintenance::ADOPTED;

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

    fn write(renewed: i64, over: Option<&str>) -> Write {
        Write {
            record: record(renewed),
            over: over.map(|over| ("u".into(), over.into())),
            sent: BootInstant::now(),
            before: Standing::Free,
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
    fn a_release_without_an_answer_did_what_was_written() {
        let released = Record { holder: String::new(), ..record(3) };
        let unanswered = [(record(1).spec(), Released::PutBack), (released.spec(), Released::Yes)];
        assert_eq!(done_by(&unanswered, &lease(1, 60)), Some(Released::PutBack));
        let mut free = lease(3, 1);
        free.spec.holder_identity = Some(String::new());
        assert_eq!(done_by(&unanswered, &free), Some(Released::Yes));
        assert_eq!(done_by(&unanswered, &lease(2, 60)), None);
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
