//! A lease that is ours.

use std::{
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use k8s_openapi::api::coordination::v1::LeaseSpec;
use tokio::time::sleep;

use super::{
    CONFLICT_ATTEMPTS,
    claim::{PAUSE, persistently},
    keeper::Lost,
    log::{Log, LoggedWrite, is_terminating, lock, version},
};
use crate::{
    client::{
        Cluster, Object, Refusal,
        leases::Notes,
        single::{Address, Writing},
    },
    clock::BootInstant,
    error::{Error, Result},
    rules::{
        holder::{Who, is_reserved},
        lease::{Lease, Metadata},
        maintenance::{Record, expiry, is_same_term},
        taking::{Terms, Undo},
        time::ServerTime,
    },
};

/// How long a release is tried in an outage: less than its callers wait, so that the reason
/// can be shown.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(8);

/// What a release did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "internals"), non_exhaustive)]
pub enum Released {
    /// It is free.
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

/// A lease that is held. Clones share what is known of it: what renews it and what releases it are one.
#[derive(Clone, Debug)]
pub struct Held {
    /// Where it is.
    pub at: Address,
    /// Its holder.
    pub who: Who,
    /// Grows with every change of hands, also when the lease is deleted in between: the resource
    /// version of the write that took it.
    pub token: String,
    known: Arc<Mutex<(Object<Lease>, BootInstant)>>,
    /// `None` for a lease that was found by a read: it is released also if another process of its holder renewed it.
    log: Option<Log>,
    /// It was the wanted holder's already, and nothing was written to it yet.
    left: bool,
    lost: Arc<OnceLock<Lost>>,
}

impl Held {
    pub(super) fn taken(at: Address, who: Who, lease: Object<Lease>, sent: BootInstant, log: Log) -> Self {
        let token = lease.value.metadata.resource_version.clone();
        let known = Arc::new(Mutex::new((lease, sent)));
        Self { at, who, token, known, log: Some(log), left: false, lost: Arc::default() }
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
    /// one wrote.
    pub fn is_shared(&self) -> bool {
        self.log.as_ref().is_some_and(Log::is_shared)
    }

    /// Notes how it was lost while something ran under it.
    pub(super) fn note_lost(&self, how: &Lost) {
        self.lost.get_or_init(|| how.clone());
    }

    /// How it was lost while something ran under it.
    pub(super) fn known_lost(&self) -> Option<&Lost> {
        self.lost.get()
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
            lost: Arc::default(),
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
            log.push(LoggedWrite { record: record.clone(), over, sent, open: true, ..earlier });
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
        let lasts =
            |write: &LoggedWrite| lease.value.spec.lease_duration_seconds >= Some(write.record.seconds);
        let Some(write) = last.filter(|write| write.sent > self.sent() && lasts(write)) else {
            self.seen(lease);
            return false;
        };
        self.renewed(&write.record, lease, write.sent);
        true
    }

    /// Releases a lease that was used, or puts it back, if it is still in the term that we hold.
    pub async fn release(&self, cluster: &Cluster, writing: &Writing) -> Result<Released> {
        self.give_up(cluster, writing, Undo::after_use).await
    }

    /// Takes back what made the lease ours, if it is still in the term that we hold: for one that was not used.
    pub async fn undo(&self, cluster: &Cluster, writing: &Writing) -> Result<Released> {
        self.give_up(cluster, writing, |undo| undo).await
    }

    async fn give_up(
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
        let release_until = BootInstant::now() + RELEASE_TIMEOUT;
        let mut conflicts = 0;
        // A conflict is an answer, however late: what made it may be ours.
        let is_outage = |last: &Option<Error>| last.as_ref().is_some_and(|error| !error.is_conflict());
        while conflicts < CONFLICT_ATTEMPTS && !(is_outage(&last) && release_until.has_passed()) {
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
            message: format!("gave up {doing} '{}' after {CONFLICT_ATTEMPTS} write conflicts", self.at.name),
        })
    }

    /// The lease as it is now; an outage is waited for, until the caller gives up.
    async fn read_again(&self, cluster: &Cluster) -> Result<Option<Object<Lease>>> {
        persistently(None, || cluster.lease(&self.at)).await
    }

    /// Renews the lease once. If another process of the same holder has renewed it meanwhile, it is held
    /// for as long as that one wrote, be it shorter. An outage is waited for, until the caller
    /// gives up.
    ///
    /// # Errors
    /// If it is not ours any more.
    pub async fn renew(&self, cluster: &Cluster, seconds: i32) -> Result<()> {
        let lost = || self.lost();
        let mut failure = None;
        let mut refusal = Refusal::default();
        let mut conflicts = 0;
        while conflicts < CONFLICT_ATTEMPTS {
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
    /// for, until the caller gives up.
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
            log.push(LoggedWrite { record: record.clone(), over, sent, open: true, ..earlier });
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

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    use super::*;

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
}
