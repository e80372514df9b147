//! Taking a lease, waiting for it, and letting it go.
//!
//! Read, judge, write with the resource version that was read. A 409 means that somebody else wrote
//! in between: read and judge again. A write whose answer never came may or may not have been done:
//! the lease is read back, and recognised by what only that write would have left there.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::mpsc, time::sleep};

use crate::{
    clock::BootInstant,
    cluster::{
        Cluster, LEASES, Object, Query,
        single::{Address, Writing},
        watch::{Event, follow},
    },
    domain::{
        holder::Who,
        lease::{Lease, Metadata},
        maintenance::{Record, Standing, is_same_term},
    },
    error::{Error, Result},
};

/// So many writers in a row who were faster, or failures without an answer, and we give up.
const ATTEMPTS: usize = 10;
const PAUSE: Duration = Duration::from_millis(100);
const SECOND_LOOK: Duration = Duration::from_secs(1);
/// The server sends a bookmark each minute: a longer silence is a dead connection.
const QUIET: Duration = Duration::from_secs(90);

/// By which rule a lease may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A maintenance lease, by one of a person's commands: what is ours is renewed.
    Command,
    /// A maintenance lease, for a process that runs under it: another process of the same holder
    /// is somebody else.
    Process,
    /// Leader election, as client-go has it: a lease is expired when it has been seen unchanged for
    /// its duration by our own clock. Its timestamps are the holder's, whose clock may be wrong.
    Observed,
}

/// What is wanted: a lease, for whom, how long.
#[derive(Clone, Debug)]
pub struct Claim {
    pub at: Address,
    pub who: Who,
    pub seconds: i32,
    pub reason: Option<String>,
    /// The node that a lease to be created belongs to.
    pub owner: Option<Metadata>,
    pub rule: Rule,
    /// Take a lease that cannot be judged.
    pub take_malformed: bool,
    /// Create the namespace where it is missing.
    pub create_namespace: bool,
    pub writing: Writing,
    /// The terms that this claim has begun or tried to: only those are its own to undo.
    pub attempts: Arc<Mutex<Vec<Attempt>>>,
}

/// A write that would begin a term.
#[derive(Clone, Debug)]
pub struct Attempt {
    record: Record,
    /// Whether there is no answer yet that settles it.
    open: bool,
}

/// A lease that is ours. Clones know the same: who keeps it tells who releases it.
#[derive(Clone, Debug)]
pub struct Held {
    pub at: Address,
    pub who: Who,
    known: Arc<Mutex<(Object<Lease>, BootInstant)>>,
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub enum Took {
    /// It is ours, and was this before.
    Yes(Held, Standing),
    /// It is not to be had now.
    No(Standing, Option<Object<Lease>>),
}

/// What a waiting claim is waiting for.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub standing: Standing,
    pub lease: Option<Object<Lease>>,
    /// Why nothing is known right now.
    pub lost: Option<String>,
}

/// When the lease was first seen as it is now.
struct Seen {
    lease: Option<Object<Lease>>,
    since: BootInstant,
}

impl Seen {
    fn new(lease: Option<Object<Lease>>) -> Self {
        Self { lease, since: BootInstant::now() }
    }

    fn update(&mut self, lease: Option<Object<Lease>>) {
        let version = |lease: &Option<Object<Lease>>| {
            lease.as_ref().map(|lease| {
                (lease.value.metadata.uid.clone(), lease.value.metadata.resource_version.clone())
            })
        };
        if version(&lease) != version(&self.lease) {
            *self = Self::new(lease);
        }
    }

    /// How long it has to be seen unchanged to count as expired.
    fn observed_expiry(&self) -> Option<BootInstant> {
        let seconds = self.lease.as_ref()?.value.spec.lease_duration_seconds?;
        Some(self.since + Duration::from_secs(u64::try_from(seconds).ok()?))
    }
}

impl Claim {
    /// Takes the lease if it is to be had now. `known` is what a read just told; without it the
    /// lease is read first.
    pub async fn take(&self, cluster: &Cluster, known: Option<Option<Object<Lease>>>) -> Result<Took> {
        let lease = match known {
            Some(lease) => lease,
            None => cluster.lease(&self.at).await?,
        };
        self.take_seen(cluster, &mut Seen::new(lease)).await
    }

    async fn take_seen(&self, cluster: &Cluster, seen: &mut Seen) -> Result<Took> {
        let mut sent: VecDeque<(Record, BootInstant, Standing)> = VecDeque::new();
        let mut last = None;
        for _ in 0..ATTEMPTS {
            if let Some(lease) = &seen.lease {
                // A write without an answer, done after all?
                let done = sent.iter().find(|(record, ..)| record.is_in(&lease.value.spec));
                if let Some((_, at, before)) = done {
                    return Ok(Took::Yes(self.held(lease.clone(), *at), before.clone()));
                }
            }
            let standing = self.judge(cluster, seen);
            if !self.may_take(&standing, seen, cluster) {
                return Ok(Took::No(standing, seen.lease.clone()));
            }
            // Our own count begins no later than the one that others will read.
            let now = BootInstant::now();
            let record = self.record(seen.lease.as_ref(), cluster);
            // Renewing what was ours before begins nothing that could be undone.
            let begins = self.rule != Rule::Command || !matches!(standing, Standing::Ours { .. });
            if begins {
                lock(&self.attempts).push(Attempt { record: record.clone(), open: true });
            }
            let written = self.write(cluster, seen.lease.as_ref(), &record).await;
            if begins && !written.as_ref().is_err_and(Error::is_unclear) {
                lock(&self.attempts).iter_mut().for_each(|attempt| attempt.open &= attempt.record != record);
            }
            match written {
                Ok(lease) => return Ok(Took::Yes(self.held(lease, now), standing)),
                Err(error) if error.is_conflict() => last = Some(error),
                Err(error) if error.is_unclear() => {
                    sent.push_back((record, now, standing));
                    last = Some(error);
                    sleep(PAUSE).await;
                }
                // The lease, or its namespace, is gone.
                Err(error) if error.is_not_found() => {
                    if seen.lease.is_none() {
                        if !self.create_namespace {
                            return Err(error);
                        }
                        cluster.create_namespace(&self.at.namespace, &self.writing).await?;
                        if self.writing.dry_run {
                            // The namespace was not really made: nothing more can be tried in it.
                            return Ok(Took::Yes(self.held(Object::imagined(), now), standing));
                        }
                    }
                    last = Some(error);
                }
                Err(error) => return Err(error),
            }
            seen.update(cluster.lease(&self.at).await?);
        }
        Err(match last {
            Some(error) if error.is_conflict() => Error::LostRace {
                message: format!(
                    "somebody was always faster at '{}': {ATTEMPTS} writes came too late",
                    self.at.name
                ),
            },
            Some(error) => error,
            None => Error::LostRace { message: String::new() },
        })
    }

    /// Why the lease, as it was read, cannot be taken now; `None` if it can.
    pub fn obstacle(&self, cluster: &Cluster, lease: Option<&Object<Lease>>) -> Option<Standing> {
        let seen = Seen::new(lease.cloned());
        let standing = self.judge(cluster, &seen);
        (!self.may_take(&standing, &seen, cluster)).then_some(standing)
    }

    fn judge(&self, cluster: &Cluster, seen: &Seen) -> Standing {
        Standing::of(seen.lease.as_ref().map(|lease| &lease.value.spec), &self.who, cluster.server_time())
    }

    fn may_take(&self, standing: &Standing, seen: &Seen, cluster: &Cluster) -> bool {
        let observed = || seen.observed_expiry().is_some_and(BootInstant::has_passed);
        match (self.rule, standing) {
            (_, Standing::Free) => true,
            (_, Standing::Admin { .. }) => false,
            (Rule::Observed, _) => observed(),
            (_, Standing::Malformed { .. }) => self.take_malformed,
            (Rule::Process, Standing::Ours { until, .. }) => {
                until.is_some_and(|until| cluster.server_time().0 > until)
            }
            (_, standing) => standing.is_takeable(),
        }
    }

    fn record(&self, before: Option<&Object<Lease>>, cluster: &Cluster) -> Record {
        let before = before.map(|lease| &lease.value.spec);
        let now = cluster.server_time();
        match self.rule {
            Rule::Command => Record::acquisition(before, &self.who, self.seconds, now),
            Rule::Process | Rule::Observed => Record::new_term(before, &self.who, self.seconds, now),
        }
    }

    async fn write(
        &self,
        cluster: &Cluster,
        before: Option<&Object<Lease>>,
        record: &Record,
    ) -> Result<Object<Lease>> {
        let reason = self.reason.as_deref();
        match before {
            Some(lease) => {
                // Renewed without a new reason, the old one still holds.
                let kept = lease.value.reason().filter(|_| self.who.is(lease.value.holder()));
                // An administrator's lease goes with the node alone: whoever may write a lease that nobody
                // holds could have it collected otherwise. Where it is nobody's to guard, the owner stays:
                // a cluster may allow changing it only to who may delete it.
                let owner = self.owner.as_ref().filter(|_| self.who.is_admin());
                let reason = reason.or(kept);
                cluster.write_lease(&self.at, &lease.value, record, reason, owner, &self.writing).await
            }
            None => cluster.create_lease(&self.at, record, reason, self.owner.as_ref(), &self.writing).await,
        }
    }

    fn held(&self, lease: Object<Lease>, sent: BootInstant) -> Held {
        Held::new(self.at.clone(), self.who.clone(), lease, sent)
    }

    /// Undoes what this claim's own writes have left behind, if anything; whether there was something.
    /// For a claim that was given up while a write may have been under way.
    pub async fn withdraw(&self, cluster: &Cluster) -> Result<bool> {
        let attempts = lock(&self.attempts).clone();
        if attempts.is_empty() || self.writing.dry_run {
            return Ok(false);
        }
        // A write without an answer may still be on its way: then there is a second look.
        let looks = if attempts.iter().any(|attempt| attempt.open) { 2 } else { 1 };
        for look in 1..=looks {
            let lease = cluster.lease(&self.at).await?;
            match lease {
                Some(lease) if attempts.iter().any(|attempt| attempt.record.began(&lease.value.spec)) => {
                    let held = Held::found(self.at.clone(), self.who.clone(), lease);
                    let released = held.release(cluster, &self.writing).await?;
                    lock(&self.attempts).clear();
                    return Ok(released);
                }
                Some(lease) if looks > 1 && lease.value.holder().is_empty() => {
                    // It carries the version that was read: let there be a newer one, and it will
                    // be refused.
                    let record = Record::release(&lease.value.spec, cluster.server_time());
                    let _ =
                        cluster.write_lease(&self.at, &lease.value, &record, None, None, &self.writing).await;
                }
                _ if look < looks => sleep(SECOND_LOOK).await,
                _ => {}
            }
        }
        lock(&self.attempts).clear();
        Ok(false)
    }

    /// Takes the lease as soon as it is to be had, watching it. `told` hears of every change, and
    /// once a second.
    pub async fn wait(&self, cluster: &Cluster, mut told: impl FnMut(&Waiting)) -> Result<(Held, Standing)> {
        let query = Query::new(LEASES)
            .namespace(&self.at.namespace)
            .select(None, Some(&format!("metadata.name={}", self.at.name)));
        let (sender, mut events) = mpsc::channel(16);
        let waiting = async {
            let mut seen: Option<Seen> = None;
            let mut lost: Option<String> = None;
            loop {
                let next_look = match &seen {
                    Some(seen) => {
                        self.free_in(cluster, seen).unwrap_or(Duration::MAX).min(Duration::from_secs(1))
                    }
                    None => Duration::MAX,
                };
                let event = tokio::select! {
                    event = events.recv() => event.map(|((), event)| event),
                    () = sleep(next_look) => None,
                };
                match event {
                    None => {}
                    Some(Event::Failed(error)) => return Err(error),
                    Some(Event::Lost(error)) => lost = Some(error.to_string()),
                    Some(Event::Snapshot(leases)) => {
                        lost = None;
                        let lease = leases.into_iter().next();
                        seen.get_or_insert_with(|| Seen::new(lease.clone())).update(lease);
                    }
                    Some(Event::Changed(lease)) => {
                        seen.get_or_insert_with(|| Seen::new(Some(lease.clone()))).update(Some(lease));
                    }
                    Some(Event::Gone(_)) => seen = Some(Seen::new(None)),
                }
                let Some(seen) = &mut seen else { continue };
                let standing = self.judge(cluster, seen);
                // What was last seen before the connection went is no ground to take anything on.
                if lost.is_none() && self.may_take(&standing, seen, cluster) {
                    match self.take_seen(cluster, seen).await? {
                        Took::Yes(held, before) => return Ok((held, before)),
                        Took::No(..) => continue,
                    }
                }
                told(&Waiting { standing, lease: seen.lease.clone(), lost: lost.clone() });
            }
        };
        let following = async {
            follow(cluster, &query, QUIET, (), sender).await;
            // Its last event says why it ended, and ends the other side.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            outcome = waiting => outcome,
            () = following => Err(Error::Interrupted),
        }
    }

    /// How long until the lease may be taken, if nothing happens to it.
    fn free_in(&self, cluster: &Cluster, seen: &Seen) -> Option<Duration> {
        if self.rule == Rule::Observed {
            return seen.observed_expiry().map(BootInstant::remaining).filter(|left| !left.is_zero());
        }
        let until = match self.judge(cluster, seen) {
            Standing::Held { until, .. } => until,
            Standing::Ours { until, .. } => until?,
            _ => return None,
        };
        // Just after, not just before.
        Duration::try_from(until.duration_since(cluster.server_time().0))
            .ok()
            .map(|left| left + Duration::from_millis(2))
    }
}

impl Held {
    fn new(at: Address, who: Who, lease: Object<Lease>, sent: BootInstant) -> Self {
        Self { at, who, known: Arc::new(Mutex::new((lease, sent))) }
    }

    /// A lease of `who`'s, as a look has just found it.
    pub fn found(at: Address, who: Who, lease: Object<Lease>) -> Self {
        Self::new(at, who, lease, BootInstant::now())
    }

    /// The lease, as it was last read or written.
    pub fn lease(&self) -> Object<Lease> {
        lock(&self.known).0.clone()
    }

    /// When the write that made or last renewed it was sent: its time counts from here.
    pub fn sent(&self) -> BootInstant {
        lock(&self.known).1
    }

    pub(super) fn renewed(&self, lease: Object<Lease>, sent: BootInstant) {
        *lock(&self.known) = (lease, sent);
    }

    /// The same term, as a fresh look has found it.
    pub(super) fn seen(&self, lease: Object<Lease>) {
        lock(&self.known).0 = lease;
    }

    /// Lets the lease go, if it is still in the term that we hold; whether it was.
    pub async fn release(&self, cluster: &Cluster, writing: &Writing) -> Result<bool> {
        let ours = self.lease();
        let mut lease = ours.clone();
        let mut unanswered: Vec<Record> = Vec::new();
        for _ in 0..ATTEMPTS {
            if !is_same_term(&lease.value, &ours.value) {
                // A release of ours without an answer, done after all, is what we wanted.
                return Ok(unanswered.iter().any(|record| record.is_in(&lease.value.spec)));
            }
            let record = Record::release(&lease.value.spec, cluster.server_time());
            let failure =
                match cluster.write_lease(&self.at, &lease.value, &record, None, None, writing).await {
                    Ok(_) => return Ok(true),
                    Err(error) if error.is_not_found() => return Ok(false),
                    Err(error) => error,
                };
            if failure.is_unclear() {
                unanswered.push(record);
                sleep(PAUSE).await;
            } else if !failure.is_conflict() {
                return Err(failure);
            }
            match cluster.lease(&self.at).await? {
                Some(now) => lease = now,
                None => return Ok(false),
            }
        }
        Err(Error::LostRace { message: format!("somebody was always faster at '{}'", self.at.name) })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
