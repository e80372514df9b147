//! Taking a lease, and waiting for it.
//!
//! Read, judge, write with the resource version that was read. A conflict (409) means that another
//! writer came in between: read and judge again. A write whose answer never came may or may not have
//! been done, or may be done later: the lease is read back and recognised by what only that write
//! would have left there; and a claim that is given up leaves a newer version behind, which such a
//! write is then refused over.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep, timeout};

use super::{
    CONFLICT_ATTEMPTS,
    held::Held,
    log::{Log, LoggedWrite, ObjectVersion, version},
};
use crate::{
    client::{
        Cluster, Object, Refusal,
        leases::Notes,
        single::{Address, Writing},
    },
    clock::BootInstant,
    error::{Error, ObjectKind, Result},
    rules::{
        deadline::Schedule,
        holder::{Who, is_reserved},
        lease::{Lease, Metadata},
        maintenance::{self, MaintenanceStanding, Record},
        taking::{ClaimObstacle, TakingRule, Terms},
    },
};

pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// A lease that is wanted: its holder, and for how long.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Where it is.
    pub(crate) at: Address,
    /// The holder, and what is accepted.
    pub(crate) terms: Terms,
    /// The duration to write.
    pub(crate) seconds: i32,
    /// The node whose maintenance lease it is, as it was last seen.
    pub(crate) node: Option<Metadata>,
    /// Create the namespace where it is missing.
    pub(crate) create_namespace: bool,
    /// Something beside the lease is known to be in the way: it is waited for at once.
    pub(crate) waits: bool,
    /// How it is written.
    pub(crate) writing: Writing,
    /// What may be adopted counts as taken, and is left as it is.
    leaves_adopted: bool,
    pub(super) log: Log,
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub enum Took {
    /// It is ours, and stood so before.
    Yes(Held, MaintenanceStanding),
    /// It cannot be taken now.
    No(ClaimObstacle, Option<Object<Lease>>),
}

/// When the lease was first seen as it is now.
pub(super) struct Seen {
    pub lease: Option<Object<Lease>>,
    since: BootInstant,
}

impl Seen {
    pub fn new(lease: Option<Object<Lease>>) -> Self {
        Self { lease, since: BootInstant::now() }
    }

    fn version(&self) -> Option<ObjectVersion> {
        self.lease().map(version)
    }

    pub fn update(&mut self, lease: Option<Object<Lease>>) {
        if lease.as_ref().map(|lease| version(&lease.value)) != self.version() {
            *self = Self::new(lease);
        }
    }

    pub fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref().map(|lease| &*lease.value)
    }

    /// How long it has to be seen unchanged to count as expired.
    pub fn observed_expiry(&self) -> Option<BootInstant> {
        let seconds = self.lease()?.spec.lease_duration_seconds?;
        Some(self.since + Duration::from_secs(u64::try_from(seconds).ok()?))
    }
}

impl Claim {
    /// On any lease.
    pub fn new(at: Address, terms: Terms, seconds: i32) -> Self {
        Self {
            at,
            terms,
            seconds,
            node: None,
            create_namespace: false,
            waits: false,
            writing: Writing::default(),
            leaves_adopted: false,
            log: Log::default(),
        }
    }

    /// On the maintenance lease of a node.
    pub fn on_node(node: Metadata, terms: Terms, seconds: i32) -> Self {
        let at = Address::new(maintenance::NAMESPACE, &node.name);
        Self { node: Some(node), create_namespace: true, ..Self::new(at, terms, seconds) }
    }

    /// Written so.
    #[must_use]
    pub fn written(self, writing: Writing) -> Self {
        Self { writing, ..self }
    }

    /// The name of the lease.
    pub fn name(&self) -> &str {
        &self.at.name
    }

    /// The holder that it is wanted for.
    pub fn who(&self) -> &Who {
        &self.terms.who
    }

    /// The same claim for a process that gathers several leases: under a name of its own, and for so many
    /// seconds. What the holder of this claim has already is left as it is.
    #[must_use]
    pub fn gathering(&self, suffix: &str, seconds: i32) -> Self {
        let terms = self.terms.gathering(suffix);
        Self { terms, seconds, leaves_adopted: true, log: Log::default(), ..self.clone() }
    }

    /// Whether what was left as it was can still be taken by this claim; its time may have run out meanwhile.
    pub async fn is_left(&self, cluster: &Cluster) -> Result<bool> {
        let lease = persistently(None, || cluster.lease(&self.at)).await?;
        let judged = self.judge(cluster, &Seen::new(lease));
        Ok(judged.is_ok())
    }

    /// Renews under this claim's terms what was left as it was, and how it stood before. An outage is
    /// waited for, until the caller gives up.
    ///
    /// # Errors
    /// If it cannot be taken any more.
    pub async fn take_left(&self, cluster: &Cluster, left: &Held) -> Result<(Held, MaintenanceStanding)> {
        let claim = Self { log: left.log(), ..self.clone() };
        match persistently(None, || claim.take_anew(cluster)).await? {
            Took::Yes(held, before) => Ok((held, before)),
            Took::No(..) => Err(left.lost()),
        }
    }

    /// Goes on holding under this claim's terms what was gathered for it, `owner` being the node as it is
    /// now. An outage is waited for, until the caller gives up.
    ///
    /// # Errors
    /// If it is not ours any more.
    pub async fn rename(&self, cluster: &Cluster, held: &Held, owner: Option<&Metadata>) -> Result<Held> {
        // See `write`.
        let owner = owner.filter(|_| self.terms.who.is_admin());
        held.rename(cluster, &self.terms, self.seconds, owner, &self.writing).await
    }

    /// Takes the lease if that is possible now. `known` is the lease as it was just read.
    ///
    /// # Errors
    /// If a request fails, or after too many write conflicts.
    pub async fn take(&self, cluster: &Cluster, known: Option<Object<Lease>>) -> Result<Took> {
        self.take_seen(cluster, &mut Seen::new(known), self.node.as_ref()).await
    }

    /// Takes the lease if that is possible now, after a fresh look at it, at the node and at medik8s.
    ///
    /// # Errors
    /// If a request fails, or after too many write conflicts.
    pub async fn take_anew(&self, cluster: &Cluster) -> Result<Took> {
        let lease = cluster.lease(&self.at).await?;
        self.take_now(cluster, &mut Seen::new(lease)).await
    }

    async fn take_seen(&self, cluster: &Cluster, seen: &mut Seen, node: Option<&Metadata>) -> Result<Took> {
        let mut last = None;
        for _ in 0..CONFLICT_ATTEMPTS {
            // Our own count begins no later than the one that others will read: before the time that is
            // written is looked at, for this process may be stopped in between.
            let sent = BootInstant::now();
            // A write without an answer, done after all? If long ago, its time is made new.
            // But what is written to a lease that is being deleted is lost.
            let lasts = |lease: &&Object<Lease>| lease.value.metadata.deletion_timestamp.is_none();
            let done = seen.lease.as_ref().filter(lasts);
            let done = done.and_then(|lease| Some((lease, self.log.last_in(&lease.value)?)));
            let (record, before, undo) = match done {
                Some((lease, write)) if !self.is_due(&write) => {
                    self.log.done(&write.record);
                    return Ok(Took::Yes(self.held(lease.clone(), write.sent), write.before));
                }
                Some((_, write)) => {
                    let now = cluster.server_time();
                    let seconds = self.terms.seconds(&write.undo, self.seconds, now);
                    (write.record.renewal(seconds, now), write.before, write.undo)
                }
                None => match self.judge(cluster, seen) {
                    Err(obstacle) => return Ok(Took::No(obstacle, seen.lease.clone())),
                    Ok(standing) if self.leaves_adopted && standing.is_valid(cluster.server_time()) => {
                        let lease = seen.lease.clone().unwrap_or_else(Object::imagined);
                        let who = Who::exactly(lease.value.holder());
                        let left = Held::left(self.at.clone(), who, lease, self.log.clone());
                        return Ok(Took::Yes(left, standing));
                    }
                    Ok(standing) => {
                        let (lease, now) = (seen.lease(), cluster.server_time());
                        // It may be said only later, and time passes.
                        let standing = standing.as_of(lease.map(Lease::holder).unwrap_or_default(), now);
                        let record = self.terms.record(lease, self.seconds, now);
                        (record, standing, self.terms.undo(lease, now))
                    }
                },
            };
            self.log.push(LoggedWrite {
                record: record.clone(),
                over: seen.version(),
                sent,
                before: before.clone(),
                undo: undo.clone(),
                node: node.cloned(),
                open: true,
            });
            let adopted = undo.acquired().filter(|_| self.terms.rule == TakingRule::Process);
            let written = self.write(cluster, seen.lease(), node, &record, adopted).await;
            match written {
                Ok(lease) => {
                    self.log.done(&record);
                    return Ok(Took::Yes(self.held(lease, sent), before));
                }
                Err(error) if error.is_unclear() => {
                    sleep(error.pause(PAUSE)).await;
                    last = Some(error);
                }
                Err(error) => {
                    if error.is_conflict() {
                        self.log.stale(&record);
                    } else {
                        self.log.refused(&record);
                    }
                    if error.is_not_found() && seen.lease.is_none() {
                        // The namespace is missing.
                        if !self.create_namespace {
                            return Err(error);
                        }
                        cluster.create_namespace(&self.at.namespace, &self.writing).await?;
                        if self.writing.dry_run {
                            // The namespace was not really made: nothing more can be tried in it.
                            return Ok(Took::Yes(self.held(Object::imagined(), sent), before));
                        }
                    } else if !error.is_conflict() && !error.is_not_found() {
                        return Err(error);
                    }
                    last = Some(error);
                }
            }
            seen.update(cluster.lease(&self.at).await?);
        }
        Err(match last {
            Some(error) if error.is_unclear() => error,
            _ => Error::LostRace {
                message: format!(
                    "gave up taking '{}' after {CONFLICT_ATTEMPTS} write conflicts",
                    self.at.name
                ),
            },
        })
    }

    /// Whether so much of a write's time has passed that it would be renewed by now.
    fn is_due(&self, write: &LoggedWrite) -> bool {
        let duration = Duration::from_secs(u64::try_from(self.seconds).unwrap_or(1));
        (write.sent + Schedule::new(duration).renew).has_passed()
    }

    /// Why the lease, as it was read, cannot be taken now; `None` if it can.
    pub fn obstacle(&self, cluster: &Cluster, lease: Option<&Object<Lease>>) -> Option<ClaimObstacle> {
        self.judge(cluster, &Seen::new(lease.cloned())).err()
    }

    pub(super) fn judge(&self, cluster: &Cluster, seen: &Seen) -> Result<MaintenanceStanding, ClaimObstacle> {
        let observed = seen.observed_expiry().is_some_and(BootInstant::has_passed);
        self.terms.judge(seen.lease(), observed, cluster.server_time())
    }

    async fn write(
        &self,
        cluster: &Cluster,
        before: Option<&Lease>,
        node: Option<&Metadata>,
        record: &Record,
        adopted: Option<Timestamp>,
    ) -> Result<Object<Lease>> {
        let who = &self.terms.who;
        let reason = self.terms.reason.as_deref();
        let Some(lease) = before else {
            return cluster.create_lease(&self.at, record, reason, node, &self.writing).await;
        };
        // Renewed or adopted without a new reason, the old one still holds.
        let is_adopted = |plain: &Who| plain.is(lease.holder());
        let kept = who.is(lease.holder()) || self.terms.adopts.as_ref().is_some_and(is_adopted);
        let notes = Notes { reason: reason.or(lease.reason().filter(|_| kept)), adopted };
        // An administrator's lease goes with the node alone: otherwise a user with permission to write a free lease
        // could have the garbage collector delete it. A lease that still belongs to a deleted node of
        // the same name would be deleted from under its holder. Else the owner stays: some clusters
        // require permission to delete the lease to change it. There, a lease without an owner stays without.
        let metadata = &lease.metadata;
        let needed =
            |node: &&Metadata| is_reserved(&record.holder) || metadata.belongs_to_predecessor_of(node);
        let owner = node.filter(|node| needed(node) || metadata.owner_references.is_empty());
        let spec = record.spec();
        let written = cluster.write_lease(&self.at, lease, &spec, notes, owner, &self.writing).await;
        if matches!(written, Err(Error::Forbidden { .. })) && owner.is_some_and(|node| !needed(&node)) {
            return cluster.write_lease(&self.at, lease, &spec, notes, None, &self.writing).await;
        }
        written
    }

    pub(super) fn held(&self, lease: Object<Lease>, sent: BootInstant) -> Held {
        // What was adopted from an administrator is held as an administrator.
        let who = match lease.value.holder() {
            "" => self.terms.who.clone(),
            holder => Who::exactly(holder),
        };
        Held::taken(self.at.clone(), who, lease, sent, self.log.clone())
    }

    /// Makes sure that a lease that was just taken goes with the node as it is `now`, which may have been
    /// recreated since it was looked at: else the garbage collector would delete the lease. If it has
    /// done so already, the lease is taken anew. An outage is waited for until `deadline`.
    ///
    /// # Errors
    /// If there is no such node any more.
    pub async fn settle(
        &self,
        cluster: &Cluster,
        held: Held,
        now: Option<Metadata>,
        deadline: Option<Instant>,
    ) -> Result<Took> {
        let (mut held, mut now) = (held, now);
        if self.node.is_none() || self.writing.dry_run {
            return Ok(Took::Yes(held, MaintenanceStanding::Free));
        }
        for _ in 0..CONFLICT_ATTEMPTS {
            let Some(node) = &now else { return Err(deleted(&self.at.name)) };
            if !held.lease().value.metadata.belongs_to_predecessor_of(node) {
                return Ok(Took::Yes(held, MaintenanceStanding::Free));
            }
            let owned = persistently(deadline, || held.belong_to(cluster, node, &self.writing));
            match owned.await {
                // Unless it was recreated once more.
                Ok(()) => {}
                Err(error) if error.is_conflict() || error.is_not_found() => {
                    match persistently(deadline, || self.take_anew(cluster)).await? {
                        Took::Yes(anew, _) => held = anew,
                        no @ Took::No(..) => return Ok(no),
                    }
                }
                Err(error) => return Err(error),
            }
            now = match persistently(deadline, || cluster.node(&self.at.name)).await {
                Err(error) if error.is_not_found() => None,
                node => Some(node?),
            };
        }
        Err(Error::LostRace {
            message: format!(
                "gave up on '{}' after its node was recreated {CONFLICT_ATTEMPTS} times",
                self.at.name
            ),
        })
    }

    /// Takes the lease now that it is free, after a wait: the node may have been deleted or recreated
    /// meanwhile, and medik8s may have begun to work on it.
    pub(super) async fn take_now(&self, cluster: &Cluster, seen: &mut Seen) -> Result<Took> {
        let Some(node) = &self.node else { return self.take_seen(cluster, seen, None).await };
        let medik8s = async {
            if self.terms.ignore_medik8s { Ok(None) } else { cluster.medik8s_holder(&node.name).await }
        };
        let (node, medik8s) = tokio::try_join!(cluster.node(&node.name), medik8s)
            .map_err(|error| if error.is_not_found() { deleted(&node.name) } else { error })?;
        if let Some(holder) = medik8s {
            return Ok(Took::No(ClaimObstacle::Medik8s { holder }, seen.lease.clone()));
        }
        self.take_seen(cluster, seen, Some(&node)).await
    }
}

/// The error of a node that was there before.
pub fn deleted(node: &str) -> Error {
    Error::NotFound { kind: ObjectKind::Node, message: format!("node '{node}' was deleted meanwhile") }
}

/// Something that what was taken depends on: an outage is no reason to give it up before `deadline`, or
/// ever where there is none.
pub async fn persistently<T, F: Future<Output = Result<T>>>(
    deadline: Option<Instant>,
    work: impl Fn() -> F,
) -> Result<T> {
    let mut refusal = Refusal::default();
    loop {
        match work().await {
            Err(error)
                if (error.is_transient() || refusal.may_pass(&error))
                    && deadline.is_none_or(|deadline| Instant::now() < deadline) =>
            {
                sleep(error.pause(PAUSE * 5)).await;
            }
            outcome => return outcome,
        }
    }
}

/// Bounds what is left to do after giving up.
pub async fn within<T>(limit: Duration, work: impl Future<Output = Result<T>>) -> Result<T> {
    timeout(limit, work).await.unwrap_or_else(|_| {
        Err(Error::TimedOut { message: format!("no answer within {}", humantime::format_duration(limit)) })
    })
}
