//! After a priority was cleared or set: the controller may have decided before it saw that, and have asked the
//! leader to step down a moment later. The leader is the best again then, and the election would be stuck.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, sleep};

use super::{
    ElectionFailure, ElectionProgress, ElectionStep, address_of, duration_of, handover::USUAL, keep, note,
};
use crate::{
    client::{
        Cluster, Refusal,
        single::{Address, Writing},
    },
    interrupts::Interrupts,
    protocols::persistently,
    rules::{
        election::{CoordinatedElection, Outlook},
        forecast::Forecast,
        plan::Plan,
        time::ServerTime,
    },
};

/// How long the controller may take from its decision to the write of it: the time of a ping, and a look.
pub const DECIDED_WITHIN: Duration = Duration::from_secs(7);

/// Makes sure that clearing priorities has left none of these leases without a leader, until it is interrupted.
pub async fn rescue_all(
    cluster: &Cluster,
    plans: &[&Plan],
    progress: &mut dyn ElectionProgress,
    interrupts: &Interrupts,
) -> Result<(), ElectionFailure> {
    let all = async {
        let mut failure = None;
        for plan in plans {
            if let Err(error) = rescue(cluster, &address_of(plan), None, progress).await {
                keep(&mut failure, error);
            }
        }
        failure.map_or(Ok(()), Err)
    };
    let rescued = tokio::select! {
        rescued = all => Some(rescued),
        _ = interrupts.next() => None,
    };
    rescued.unwrap_or_else(|| {
        note(progress, ElectionStep::Unchecked(plans));
        Err(ElectionFailure::Interrupted)
    })
}

/// Makes sure that a priority that was cleared or set has not left a lease without a leader. Where it has, the
/// holder's process may end; if it does not, the election is repaired. `pinged` is the `pingTime` that this run
/// has written itself.
pub async fn rescue(
    cluster: &Cluster,
    at: &Address,
    pinged: Option<Timestamp>,
    progress: &mut dyn ElectionProgress,
) -> Result<(), ElectionFailure> {
    let began = Instant::now();
    let mut stranded = false;
    let mut refusal = Refusal::default();
    loop {
        let look = || cluster.elections(Some(&at.namespace));
        let Some(found) = persistently(Some(Instant::now() + USUAL), look).await? else { return Ok(()) };
        let Some(election) = found.of(at) else { return Ok(()) };
        let now = cluster.server_time();
        let outlook = election.outlook(now);
        // A holder that was not asked to step down has stopped renewing by itself.
        let was_asked = outlook.preferred.is_some();
        if !(was_asked && outlook.forecast.needs_the_holder_to_end()) {
            if stranded || began.elapsed() >= DECIDED_WITHIN || !is_electing(&election, &outlook, pinged, now)
            {
                return Ok(());
            }
        } else if !stranded {
            stranded = true;
            note(progress, ElectionStep::Stranded(at));
        }
        if let (true, Forecast::Stuck, Some(lease)) = (stranded, &outlook.forecast, election.lease) {
            match cluster.empty_holder(lease, &Writing::default()).await {
                Ok(()) => {
                    note(progress, ElectionStep::HolderEmptied(at));
                    return Ok(());
                }
                Err(error) if error.is_conflict() || error.is_transient() => {}
                Err(error) if refusal.may_pass(&error) => {}
                Err(error) => {
                    note(progress, ElectionStep::NoLeader(at));
                    return Err(error.into());
                }
            }
        }
        if began.elapsed() > USUAL.saturating_add(duration_of(election.lease)) {
            return Err(ElectionFailure::NoLeader { lease: at.clone() });
        }
        sleep(Duration::from_secs(1)).await;
    }
}

/// Whether the controller may be electing right now.
fn is_electing(
    election: &CoordinatedElection<'_>,
    outlook: &Outlook<'_>,
    ours: Option<Timestamp>,
    now: ServerTime,
) -> bool {
    let within = SignedDuration::try_from(DECIDED_WITHIN).unwrap_or_default();
    let was_pinged = election
        .candidates
        .iter()
        .filter_map(|candidate| candidate.spec.ping_time)
        .filter(|pinged| ours != Some(*pinged))
        .any(|pinged| now.since(pinged) < within);
    was_pinged || outlook.leader.valid().is_none() || outlook.preferred.is_some()
}
