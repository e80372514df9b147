//! Waiting for one lease, and saying what for.

use std::{fmt, time::Duration};

use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout_at},
};

use super::{
    acquire::{
        Blocked, NotTaken, TakenLease, TakingProgress, TakingStep, Undone, Wait, holder_in_the_way, in_words,
        left_of, take_by,
    },
    claim::{Claim, PAUSE, Seen, Took, within},
    held::Held,
    undo::{UNDO, undo},
};
use crate::{
    client::{
        Cluster, LEASES, Object, Query, Refusal,
        watch::{Follow, Watch, WatchEvent},
    },
    clock::BootInstant,
    error::{Error, Result},
    interrupts::Interrupts,
    rules::{
        lease::Lease,
        maintenance::{self, MaintenanceStanding},
        taking::{ClaimObstacle, TakingRule},
    },
};

/// A lease that looks expired is watched for its duration without being told to wait, if that is short.
const SHORT: Duration = Duration::from_secs(60);
/// How long a last look may take.
const LOOK: Duration = Duration::from_secs(5);

/// How often the node, and what medik8s says of it, is read while only that is in the way and cannot
/// be watched.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The server sends a bookmark each minute: a longer silence is a dead connection.
const QUIET: Duration = Duration::from_secs(90);

/// What a waiting claim is waiting for.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// What is in the way, as far as that is known.
    pub(super) obstacle: Option<ClaimObstacle>,
    /// The lease, as it was last seen.
    pub(super) lease: Option<Object<Lease>>,
    /// Why nothing is known right now.
    pub(super) lost: Option<String>,
}

impl Waiting {
    /// The holder that is in the way, if that is it and as far as that is known.
    pub fn holder(&self) -> Option<&str> {
        holder_in_the_way(self.obstacle.as_ref()?, self.lease.as_ref())
    }

    /// The reason that the holder gives.
    pub fn reason(&self) -> Option<&str> {
        self.lease.as_ref().and_then(|lease| lease.value.reason())
    }

    /// Why nothing is known right now: the connection is lost, and is tried again.
    pub fn connection_lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// What is in the way, as far as that is known.
    #[cfg(feature = "internals")]
    pub fn obstacle(&self) -> Option<&ClaimObstacle> {
        self.obstacle.as_ref()
    }

    /// The lease, as it was last seen.
    #[cfg(feature = "internals")]
    pub fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref().map(|lease| &*lease.value)
    }
}

/// After the name of what is waited for.
impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.lost, &self.obstacle) {
            (Some(why), _) => write!(f, "cannot be seen, and is tried again: {why}"),
            (None, Some(obstacle)) => f.write_str(&in_words(obstacle, self.lease.as_ref())),
            (None, None) => f.write_str("is being taken"),
        }
    }
}

impl Claim {
    /// Takes the lease as soon as that is possible, watching it. `report` receives every change, and once
    /// a second. An outage on the way, or a lost race, is waited for too.
    pub async fn wait(
        &self,
        cluster: &Cluster,
        mut report: impl FnMut(&Waiting) + Send,
    ) -> Result<(Held, MaintenanceStanding)> {
        let named = |namespace: &str, name: &str| {
            Query::new(LEASES).namespace(namespace).select(None, Some(&format!("metadata.name={name}")))
        };
        let own = named(&self.at.namespace, &self.at.name);
        let medik8s = named(maintenance::MEDIK8S_NAMESPACE, &maintenance::medik8s_name(&self.at.name));
        // It ends when even its first look fails, which is no reason to look no more.
        let mut watch = Watch::of(
            cluster,
            EventSource::Own,
            own,
            Follow::quiet(QUIET).retry_after(LOOK_AGAIN, LOOK_AGAIN),
        );
        if self.node.is_some() && !self.terms.ignore_medik8s {
            watch = watch.and(EventSource::Medik8s, medik8s, Follow::quiet(QUIET));
        }
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
                event = watch.next() => Some(event),
                () = sleep(next_look) => None,
            };
            match event {
                // Where medik8s' lease cannot be watched, it is read once a second.
                None | Some((EventSource::Medik8s, _)) => {}
                Some((EventSource::Own, WatchEvent::Failed(error))) => {
                    // After a list it is the watch that is refused, or has been for long.
                    let again = !std::mem::take(&mut listed) && (seen.is_some() || lost.is_some());
                    if !(error.is_transient() || again && refusal.may_pass(&error)) {
                        return Err(error);
                    }
                    lost = Some(error.to_string());
                }
                Some((EventSource::Own, WatchEvent::Lost(error))) => lost = Some(error.to_string()),
                Some((EventSource::Own, WatchEvent::Snapshot(leases))) => {
                    (lost, listed) = (None, true);
                    let lease = leases.into_iter().next();
                    seen.get_or_insert_with(|| Seen::new(lease.clone())).update(lease);
                }
                Some((EventSource::Own, WatchEvent::Changed(lease))) => {
                    seen.get_or_insert_with(|| Seen::new(Some(lease.clone()))).update(Some(lease));
                }
                Some((EventSource::Own, WatchEvent::Gone(_))) => seen = Some(Seen::new(None)),
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
                        report(&Waiting {
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
            report(&Waiting { obstacle, lease: seen.lease.clone(), lost: lost.clone() });
        }
    }

    /// How long until the lease may be taken, if nothing happens to it.
    fn free_in(&self, cluster: &Cluster, seen: &Seen) -> Option<Duration> {
        if self.terms.rule == TakingRule::Observed {
            return seen.observed_expiry().map(BootInstant::remaining).filter(|left| !left.is_zero());
        }
        let until = match self.judge(cluster, seen).err()? {
            ClaimObstacle::Standing(MaintenanceStanding::Held { until, .. }) => until,
            ClaimObstacle::Standing(MaintenanceStanding::Ours { until, .. }) => until?,
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
enum EventSource {
    Own,
    Medik8s,
}

/// Waits for a lease until `deadline`.
pub(super) async fn wait_for(
    cluster: &Cluster,
    claim: &Claim,
    deadline: Option<Instant>,
    progress: &mut dyn TakingProgress,
) -> Result<TakenLease, NotTaken> {
    let began = Instant::now();
    let mut in_its_way: Option<ClaimObstacle> = None;
    let (refuse, mut refusals) = mpsc::channel(1);
    let report = |waiting: &Waiting| {
        in_its_way.clone_from(&waiting.obstacle);
        // One's own lease is not waited for, also where it was put back for another reason meanwhile.
        if let Some(obstacle @ ClaimObstacle::OtherReason { .. }) = &waiting.obstacle {
            let blocked = Blocked::new(cluster, &claim.at.name, obstacle.clone(), waiting.lease.clone());
            let _ = refuse.try_send(NotTaken::Blocked(blocked));
        }
        let (left, so_far) = (time_left(cluster, claim, waiting), began.elapsed());
        progress.step(TakingStep::Waiting { name: claim.name(), waiting, left, so_far });
    };
    let waiting = Box::pin(claim.wait(cluster, report));
    let waiting = async {
        tokio::select! {
            outcome = waiting => outcome.map_err(NotTaken::from),
            Some(refusal) = refusals.recv() => Err(refusal),
        }
    };
    let outcome = match deadline {
        None => Ok(waiting.await),
        Some(deadline) => timeout_at(deadline, waiting).await,
    };
    progress.step(TakingStep::Waited);
    if let Ok(outcome) = outcome {
        return outcome;
    }
    let waited = began.elapsed();
    // The time is over: what else there is to do and to say is bounded, and not what it failed of.
    let last_look = async {
        let released = claim.withdraw(cluster).await?;
        Ok((released, cluster.lease(&claim.at).await?))
    };
    let blocked = match within(UNDO, last_look).await {
        Ok((released, lease)) => {
            progress.step(TakingStep::GivenUp(&Undone::new(claim, Ok(released))));
            // What is in the way beside the lease is not seen in it.
            let beside = in_its_way.filter(|obstacle| matches!(obstacle, ClaimObstacle::Medik8s { .. }));
            let obstacle = claim.obstacle(cluster, lease.as_ref()).or(beside);
            obstacle.map(|obstacle| Blocked::new(cluster, &claim.at.name, obstacle, lease))
        }
        Err(_) => None,
    };
    Err(NotTaken::NotFree { name: claim.at.name.clone(), waited, blocked })
}

/// How long what is waited for is held without a renewal. By the rule of leader election its times tell nothing.
fn time_left(cluster: &Cluster, claim: &Claim, waiting: &Waiting) -> Option<Duration> {
    let obstacle = waiting.obstacle.as_ref().filter(|_| claim.terms.rule != TakingRule::Observed)?;
    left_of(obstacle, cluster.server_time())
}

/// Takes one lease that is no node's, by the rule of leader election: whether it is expired can only be
/// observed. `known` is the lease as it was just read. What was written is withdrawn if it fails.
///
/// # Errors
/// Why it was not taken.
pub async fn acquire_observed(
    cluster: &Cluster,
    claim: &Claim,
    known: Option<Object<Lease>>,
    wait: Wait,
    interrupts: &Interrupts,
    progress: &mut dyn TakingProgress,
) -> Result<Held, NotTaken> {
    let taken = tokio::select! {
        biased;
        interruption = interrupts.next() => Err(interruption.into()),
        taken = take_observed(cluster, claim, known, wait, progress) => taken,
    };
    if taken.is_err() {
        progress.step(TakingStep::Over);
        // A write may have been done without an answer, or still be under way.
        undo(cluster, std::slice::from_ref(claim), interrupts, progress).await;
    }
    taken
}

async fn take_observed(
    cluster: &Cluster,
    claim: &Claim,
    known: Option<Object<Lease>>,
    wait: Wait,
    progress: &mut dyn TakingProgress,
) -> Result<Held, NotTaken> {
    let deadline = wait.deadline();
    let (obstacle, lease) = match take_by(&claim.at.name, deadline, claim.take(cluster, known)).await {
        Ok(Took::Yes(held, _)) => return Ok(held),
        Ok(Took::No(obstacle, lease)) => (Some(obstacle), lease),
        Err(error) if wait.waits() && error.is_transient() => (None, None),
        Err(error) => return Err(error),
    };
    if wait.waits() {
        return wait_for(cluster, claim, deadline, progress).await.map(|(held, _)| held);
    }
    let obstacle = obstacle.unwrap_or(ClaimObstacle::Standing(MaintenanceStanding::Free));
    let now = cluster.server_time();
    // One's own is that of another process of the same name, which may have been killed.
    let looks_expired = match &obstacle {
        ClaimObstacle::Standing(MaintenanceStanding::Expired { .. }) => true,
        ClaimObstacle::Standing(ours @ MaintenanceStanding::Ours { until: Some(_), .. }) => {
            !ours.is_valid(now)
        }
        _ => false,
    };
    if !looks_expired {
        return Err(NotTaken::Blocked(Blocked::new(cluster, &claim.at.name, obstacle, lease)));
    }
    // It looks expired by its timestamps; that its holder is gone is known when it has not moved for as
    // long as its duration.
    let lease = lease.as_ref().map(|lease| &*lease.value);
    let seconds = lease.and_then(|lease| lease.spec.lease_duration_seconds).unwrap_or(1);
    let limit = Duration::from_secs(u64::try_from(seconds).unwrap_or(1)) + Duration::from_secs(2);
    if limit > SHORT {
        return Err(NotTaken::LooksExpired { name: claim.at.name.clone(), seconds });
    }
    match wait_for(cluster, claim, Some(Instant::now() + limit), progress).await {
        // Without a look at a renewal it may as well have been an outage.
        Err(NotTaken::NotFree { .. }) if was_renewed(cluster, claim, lease).await => {
            Err(NotTaken::HolderClockWrong { name: claim.at.name.clone() })
        }
        outcome => outcome.map(|(held, _)| held),
    }
}

/// Whether a lease was renewed since it was read.
async fn was_renewed(cluster: &Cluster, claim: &Claim, before: Option<&Lease>) -> bool {
    let now = within(LOOK, cluster.lease(&claim.at)).await;
    now.is_ok_and(|now| now.as_ref().and_then(|now| now.value.renewed()) != before.and_then(Lease::renewed))
}
