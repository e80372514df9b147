//! Taking a lease, and waiting for it.
//!
//! Read, judge, write with the resource version that was read. A conflict (409) means that another
//! writer came in between: read and judge again. A write whose answer never came may or may not have
//! been done, or may be done later: the lease is read back and recognised by what only that write
//! would have left there; and a claim that is given up leaves a newer version behind, which such a
//! write is then refused over.

use std::time::Duration;

use jiff::Timestamp;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout},
};

use super::held::{Held, Log, Released, Version, Write, version};
use crate::{
    clock::BootInstant,
    cluster::{
        Cluster, LEASES, Object, Query, Refusal,
        leases::Notes,
        single::{Address, Writing},
        watch::{Event, follow},
    },
    domain::{
        deadline::Schedule,
        holder::{Who, is_reserved},
        lease::{Lease, Metadata},
        maintenance::{self, Record, Standing},
        taking::{Obstacle, Rule, Terms, Undo},
    },
    error::{Error, Result},
};

/// After so many conflicts in a row, or failures without an answer, a write is given up.
pub(super) const ATTEMPTS: usize = 10;
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// How often the node, and what medik8s says of it, is read while only that is in the way and cannot
/// be watched.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The server sends a bookmark each minute: a longer silence is a dead connection.
const QUIET: Duration = Duration::from_secs(90);

/// What is wanted: a lease, for whom, how long.
#[derive(Clone, Debug)]
pub struct Claim {
    pub at: Address,
    pub terms: Terms,
    pub seconds: i32,
    /// The node whose maintenance lease it is, as it was last seen.
    pub node: Option<Metadata>,
    /// Create the namespace where it is missing.
    pub create_namespace: bool,
    /// Something beside the lease is known to be in the way: it is waited for at once.
    pub waits: bool,
    pub writing: Writing,
    /// What may be adopted counts as had, and is left as it is.
    leaves_adopted: bool,
    log: Log,
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub enum Took {
    /// It is ours, and stood so before.
    Yes(Held, Standing),
    /// It is not to be had now.
    No(Obstacle, Option<Object<Lease>>),
}

/// What a waiting claim is waiting for.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub obstacle: Option<Obstacle>,
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

    fn version(&self) -> Option<Version> {
        self.lease().map(version)
    }

    fn update(&mut self, lease: Option<Object<Lease>>) {
        if lease.as_ref().map(|lease| version(&lease.value)) != self.version() {
            *self = Self::new(lease);
        }
    }

    fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref().map(|lease| &*lease.value)
    }

    /// How long it has to be seen unchanged to count as expired.
    fn observed_expiry(&self) -> Option<BootInstant> {
        let seconds = self.lease()?.spec.lease_duration_seconds?;
        Some(self.since + Duration::from_secs(u64::try_from(seconds).ok()?))
    }
}

impl Claim {
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

    /// The same claim for a process that gathers several leases: under a name of its own, and for so many
    /// seconds. What the holder of this claim has already is left to whoever was told so.
    #[must_use]
    pub fn gathering(&self, suffix: &str, seconds: i32) -> Self {
        let terms = self.terms.gathering(suffix);
        Self { terms, seconds, leaves_adopted: true, log: Log::default(), ..self.clone() }
    }

    /// Whether what was left as it was is still to be had by this claim; its time may have run out meanwhile.
    pub async fn is_left(&self, cluster: &Cluster) -> Result<bool> {
        let lease = persistently(None, async || cluster.lease(&self.at).await).await?;
        let judged = self.judge(cluster, &Seen::new(lease));
        Ok(judged.is_ok())
    }

    /// Renews under this claim's terms what was left as it was, and how it stood before. An outage is
    /// waited for, as long as the caller has patience.
    ///
    /// # Errors
    /// If it is not to be had any more.
    pub async fn take_left(&self, cluster: &Cluster, left: &Held) -> Result<(Held, Standing)> {
        let claim = Self { log: left.log(), ..self.clone() };
        match persistently(None, async || claim.take_anew(cluster).await).await? {
            Took::Yes(held, before) => Ok((held, before)),
            Took::No(..) => Err(left.lost()),
        }
    }

    /// Goes on holding under this claim's terms what was gathered for it, `owner` being the node as it is
    /// now. An outage is waited for, as long as the caller has patience.
    ///
    /// # Errors
    /// If it is not ours any more.
    pub async fn rename(&self, cluster: &Cluster, held: &Held, owner: Option<&Metadata>) -> Result<Held> {
        // See `write`.
        let owner = owner.filter(|_| self.terms.who.is_admin());
        held.rename(cluster, &self.terms, self.seconds, owner, &self.writing).await
    }

    /// Takes the lease if it is to be had now. `known` is what a read just told.
    pub async fn take(&self, cluster: &Cluster, known: Option<Object<Lease>>) -> Result<Took> {
        self.take_seen(cluster, &mut Seen::new(known), self.node.as_ref()).await
    }

    /// Takes the lease if it is to be had now, after a fresh look at it, at the node and at medik8s.
    pub async fn take_anew(&self, cluster: &Cluster) -> Result<Took> {
        let lease = cluster.lease(&self.at).await?;
        self.take_now(cluster, &mut Seen::new(lease)).await
    }

    async fn take_seen(&self, cluster: &Cluster, seen: &mut Seen, node: Option<&Metadata>) -> Result<Took> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
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
                        // It may be told only later, and time passes.
                        let standing = standing.as_of(lease.map(Lease::holder).unwrap_or_default(), now);
                        let record = self.terms.record(lease, self.seconds, now);
                        (record, standing, self.terms.undo(lease, now))
                    }
                },
            };
            self.log.push(Write {
                record: record.clone(),
                over: seen.version(),
                sent,
                before: before.clone(),
                undo: undo.clone(),
                node: node.cloned(),
                open: true,
            });
            let adopted = undo.acquired().filter(|_| self.terms.rule == Rule::Process);
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
                message: format!("gave up taking '{}' after {ATTEMPTS} write conflicts", self.at.name),
            },
        })
    }

    /// Whether so much of a write's time has passed that it would be renewed by now.
    fn is_due(&self, write: &Write) -> bool {
        let duration = Duration::from_secs(u64::try_from(self.seconds).unwrap_or(1));
        (write.sent + Schedule::new(duration).renew).has_passed()
    }

    /// Why the lease, as it was read, cannot be taken now; `None` if it can.
    pub fn obstacle(&self, cluster: &Cluster, lease: Option<&Object<Lease>>) -> Option<Obstacle> {
        self.judge(cluster, &Seen::new(lease.cloned())).err()
    }

    fn judge(&self, cluster: &Cluster, seen: &Seen) -> Result<Standing, Obstacle> {
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
        // An administrator's lease goes with the node alone: otherwise whoever may write a free lease
        // could have the garbage collector delete it. A lease that still belongs to a deleted node of
        // the same name would be deleted from under its holder. Else the owner stays: some clusters
        // let only those change it who may delete the lease. There one that has no owner has to do without.
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

    fn held(&self, lease: Object<Lease>, sent: BootInstant) -> Held {
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
            return Ok(Took::Yes(held, Standing::Free));
        }
        for _ in 0..ATTEMPTS {
            let Some(node) = &now else { return Err(deleted(&self.at.name)) };
            if !held.lease().value.metadata.belongs_to_predecessor_of(node) {
                return Ok(Took::Yes(held, Standing::Free));
            }
            let owned = persistently(deadline, async || held.belong_to(cluster, node, &self.writing).await);
            match owned.await {
                // Unless it was recreated once more.
                Ok(()) => {}
                Err(error) if error.is_conflict() || error.is_not_found() => {
                    match persistently(deadline, async || self.take_anew(cluster).await).await? {
                        Took::Yes(anew, _) => held = anew,
                        no @ Took::No(..) => return Ok(no),
                    }
                }
                Err(error) => return Err(error),
            }
            now = match persistently(deadline, async || cluster.node(&self.at.name).await).await {
                Err(error) if error.is_not_found() => None,
                node => Some(node?),
            };
        }
        Err(Error::LostRace {
            message: format!("gave up on '{}' after its node was recreated {ATTEMPTS} times", self.at.name),
        })
    }

    /// Undoes what this claim's own writes have left behind, or may yet: for a claim that was given up.
    /// An outage is waited for, as long as the caller has patience.
    pub async fn withdraw(&self, cluster: &Cluster) -> Result<Released> {
        if self.writing.dry_run {
            return Ok(Released::NotOurs);
        }
        let mut last = None;
        let mut refusal = Refusal::default();
        let mut attempts = 0..ATTEMPTS;
        while attempts.next().is_some() {
            if self.log.is_empty() {
                return Ok(Released::NotOurs);
            }
            let lease = match cluster.lease(&self.at).await {
                Err(error) if error.is_transient() || refusal.may_pass(&error) => {
                    sleep(error.pause(PAUSE * 5)).await;
                    attempts = 0..ATTEMPTS;
                    continue;
                }
                lease => lease?,
            };
            let now = lease.as_ref().map(|lease| version(&lease.value));
            if let Some(lease) = lease.as_ref().filter(|lease| self.log.last_in(&lease.value).is_some()) {
                let held = self.held(lease.clone(), BootInstant::now());
                match held.undo(cluster, &self.writing).await {
                    Err(error) if error.is_unclear() => {
                        sleep(error.pause(PAUSE * 5)).await;
                        attempts = 0..ATTEMPTS;
                        continue;
                    }
                    released => {
                        let released = released?;
                        self.log.clear();
                        return Ok(released);
                    }
                }
            }
            let left_to = lease.as_ref().map_or(Released::NotOurs, |lease| self.log.left_to(&lease.value));
            let Some(open) = self.log.open_over(now.as_ref()) else {
                // Whatever is still on its way carries a version that is no more.
                self.log.clear();
                return Ok(left_to);
            };
            // What it would have renewed is still as it was, and no one else's doing.
            let is_as_before = match (&open.undo, &lease) {
                (Undo::PutBack { record, .. }, Some(lease)) => record.is_in(&lease.value.spec),
                _ => false,
            };
            match self.supersede(cluster, lease.as_ref(), &open).await {
                Ok(()) => {
                    self.log.clear();
                    return Ok(if is_as_before { Released::PutBack } else { left_to });
                }
                // In a namespace that is not there nothing can arrive.
                Err(error) if error.is_not_found() && lease.is_none() => return Ok(Released::NotOurs),
                Err(error) if error.is_conflict() || error.is_not_found() => last = Some(error),
                Err(error) if error.is_unclear() || refusal.may_pass(&error) => {
                    sleep(error.pause(PAUSE * 5)).await;
                    attempts = 0..ATTEMPTS;
                }
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| Error::LostRace {
            message: format!("gave up on '{}' after {ATTEMPTS} write conflicts", self.at.name),
        }))
    }

    /// Leaves a newer version behind than a write that may still arrive carries, so that it is refused.
    async fn supersede(&self, cluster: &Cluster, lease: Option<&Object<Lease>>, open: &Write) -> Result<()> {
        let now = cluster.server_time();
        let written = match lease {
            None => {
                let record = Record::release(&k8s_openapi::api::coordination::v1::LeaseSpec::default(), now);
                // Its owner is the one that the late lease would have: it lives as long as that would.
                cluster.create_lease(&self.at, &record, None, open.node.as_ref(), &self.writing).await
            }
            Some(lease) if self.log.frees(open, &lease.value) => {
                let spec = Record::release(&lease.value.spec, now).spec();
                let notes = Notes::default();
                cluster.write_lease(&self.at, &lease.value, &spec, notes, None, &self.writing).await
            }
            // It is held as it was: whoever wrote that has to know it again.
            Some(lease) => cluster.mark_lease(&self.at, &lease.value, now.0, &self.writing).await,
        };
        written.map(drop)
    }

    /// Takes the lease as soon as it is to be had, watching it. `told` hears of every change, and once
    /// a second. An outage on the way, or a lost race, is waited for too.
    pub async fn wait(&self, cluster: &Cluster, mut told: impl FnMut(&Waiting)) -> Result<(Held, Standing)> {
        let named = |namespace: &str, name: &str| {
            Query::new(LEASES).namespace(namespace).select(None, Some(&format!("metadata.name={name}")))
        };
        let own = named(&self.at.namespace, &self.at.name);
        let medik8s = named(maintenance::MEDIK8S_NAMESPACE, &maintenance::medik8s_name(&self.at.name));
        let (sender, mut events) = mpsc::channel(16);
        let waiting = async {
            let mut seen: Option<Seen> = None;
            let mut lost: Option<String> = None;
            // Once there was an answer, a 401 or 403 may be that of a server that has just been started.
            let mut refusal = Refusal::default();
            let mut listed = false;
            loop {
                let next_look = match &seen {
                    Some(seen) => self.free_in(cluster, seen).unwrap_or(Duration::MAX).min(LOOK_AGAIN),
                    None => Duration::MAX,
                };
                let event = tokio::select! {
                    event = events.recv() => event,
                    () = sleep(next_look) => None,
                };
                match event {
                    // Where medik8s' lease cannot be watched, it is read once a second.
                    None | Some((Source::Medik8s, _)) => {}
                    Some((Source::Own, Event::Failed(error))) => {
                        // After a list it is the watch that is refused, or has been for long.
                        let again = !std::mem::take(&mut listed) && (seen.is_some() || lost.is_some());
                        if !(error.is_transient() || again && refusal.may_pass(&error)) {
                            return Err(error);
                        }
                        lost = Some(error.to_string());
                    }
                    Some((Source::Own, Event::Lost(error))) => lost = Some(error.to_string()),
                    Some((Source::Own, Event::Snapshot(leases))) => {
                        (lost, listed) = (None, true);
                        let lease = leases.into_iter().next();
                        seen.get_or_insert_with(|| Seen::new(lease.clone())).update(lease);
                    }
                    Some((Source::Own, Event::Changed(lease))) => {
                        seen.get_or_insert_with(|| Seen::new(Some(lease.clone()))).update(Some(lease));
                    }
                    Some((Source::Own, Event::Gone(_))) => seen = Some(Seen::new(None)),
                }
                let Some(seen) = &mut seen else { continue };
                // A write of ours without an answer, done after all, is nothing to wait for.
                let is_ours = seen.lease().is_some_and(|lease| self.log.last_in(lease).is_some());
                let mut obstacle = self.judge(cluster, seen).err().filter(|_| !is_ours);
                // What was last seen before the connection went is no ground to take anything on.
                if lost.is_none() && obstacle.is_none() {
                    match self.take_now(cluster, seen).await {
                        Ok(Took::Yes(held, before)) => return Ok((held, before)),
                        Ok(Took::No(why, _)) => obstacle = Some(why),
                        Err(error) if error.is_transient() || refusal.may_pass(&error) => {
                            told(&Waiting {
                                obstacle: None,
                                lease: seen.lease.clone(),
                                lost: (!matches!(error, Error::LostRace { .. })).then(|| error.to_string()),
                            });
                            sleep(error.pause(PAUSE * 5)).await;
                            // A fresh look, or the news that there still is no connection.
                            match cluster.lease(&self.at).await {
                                Ok(lease) => seen.update(lease),
                                Err(error) if error.is_transient() || refusal.may_pass(&error) => continue,
                                Err(error) => return Err(error),
                            }
                            continue;
                        }
                        Err(error) => return Err(error),
                    }
                }
                told(&Waiting { obstacle, lease: seen.lease.clone(), lost: lost.clone() });
            }
        };
        // It ends when even its first look fails, which is no reason to look no more.
        let following = async {
            loop {
                follow(cluster, &own, QUIET, Source::Own, sender.clone()).await;
                sleep(LOOK_AGAIN).await;
            }
        };
        let following_medik8s = async {
            if self.node.is_some() && !self.terms.ignore_medik8s {
                follow(cluster, &medik8s, QUIET, Source::Medik8s, sender.clone()).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            outcome = waiting => outcome,
            () = following => Err(Error::Interrupted),
            () = following_medik8s => Err(Error::Interrupted),
        }
    }

    /// Takes the lease now that it is free, after a wait: the node may have been deleted or recreated
    /// meanwhile, and medik8s may have begun to work on it.
    async fn take_now(&self, cluster: &Cluster, seen: &mut Seen) -> Result<Took> {
        let Some(node) = &self.node else { return self.take_seen(cluster, seen, None).await };
        let medik8s = async {
            if self.terms.ignore_medik8s { Ok(None) } else { cluster.medik8s_holder(&node.name).await }
        };
        let (node, medik8s) = tokio::try_join!(cluster.node(&node.name), medik8s)
            .map_err(|error| if error.is_not_found() { deleted(&node.name) } else { error })?;
        if let Some(holder) = medik8s {
            return Ok(Took::No(Obstacle::Medik8s { holder }, seen.lease.clone()));
        }
        self.take_seen(cluster, seen, Some(&node)).await
    }

    /// How long until the lease may be taken, if nothing happens to it.
    fn free_in(&self, cluster: &Cluster, seen: &Seen) -> Option<Duration> {
        if self.terms.rule == Rule::Observed {
            return seen.observed_expiry().map(BootInstant::remaining).filter(|left| !left.is_zero());
        }
        let until = match self.judge(cluster, seen).err()? {
            Obstacle::Standing(Standing::Held { until, .. }) => until,
            Obstacle::Standing(Standing::Ours { until, .. }) => until?,
            _ => return None,
        };
        // Just after, not just before.
        Duration::try_from(until.duration_since(cluster.server_time().0))
            .ok()
            .map(|left| left + Duration::from_millis(2))
    }
}

/// What an event is about.
#[derive(Clone, Copy, Debug)]
enum Source {
    Own,
    Medik8s,
}

/// The error of a node that was there before.
pub fn deleted(node: &str) -> Error {
    Error::NotFound {
        message: format!("node '{node}' was deleted meanwhile"),
        hint: Some("'kubectl get nodes' lists them".into()),
    }
}

/// Something that what was taken depends on: an outage is no reason to give it up before `deadline`, or
/// ever where there is none.
pub async fn persistently<T>(deadline: Option<Instant>, work: impl AsyncFn() -> Result<T>) -> Result<T> {
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
