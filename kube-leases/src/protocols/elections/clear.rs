//! Clearing priorities.

use super::{
    super::Wait,
    ElectionFailure, ElectionProgress, ElectionStep, Intent, address_of,
    handover::{self, follow_all},
    keep, not_interrupted, not_interrupted_during, note,
    priority::write,
    report,
    rescue::rescue_all,
    settle::settle,
};
use crate::{
    client::{Cluster, Resource, single::Writing},
    interrupts::Interrupts,
    rules::{
        candidate::Candidate,
        plan::{CandidateChange, Plan},
        priority::{self, How},
    },
};

/// How priorities are to be cleared.
#[derive(Clone, Debug)]
pub struct ClearRequest {
    /// Whether handovers are not waited for, which can leave a lease without a leader.
    pub force: bool,
    /// Wait this long for the handovers that follow.
    pub wait: Wait,
    /// How it is written.
    pub writing: Writing,
}

/// What follows when the priorities of these candidates are cleared.
pub fn change(candidates: &[&Candidate]) -> impl Fn(&Candidate) -> Option<Candidate> + Sync {
    move |it| {
        let meant = candidates.iter().any(|candidate| candidate.metadata.uid == it.metadata.uid);
        meant.then(|| priority::imagine(it, None, How::Pinned))
    }
}

/// Clears the priorities of these candidates. `plans` is what follows for each of their elections.
pub async fn clear(
    cluster: &Cluster,
    resource: Resource,
    candidates: &[&Candidate],
    mut plans: Vec<Plan>,
    request: &ClearRequest,
    progress: &mut dyn ElectionProgress,
    interrupts: &Interrupts,
) -> Result<(), ElectionFailure> {
    let with_care = !request.writing.dry_run && !request.force;
    if with_care {
        let change = change(candidates);
        let settled = settle_all(cluster, plans, &change, progress);
        plans = not_interrupted_during(interrupts, settled).await?;
        not_interrupted(interrupts).await?;
    }
    let mut failure = None;
    // One that cannot be cleared is no reason to keep the others.
    for candidate in candidates {
        match write(cluster, resource, candidate, None, &request.writing).await {
            Ok(()) => {
                if let Err(error) = report(progress, ElectionStep::Cleared(candidate)) {
                    keep(&mut failure, error);
                }
            }
            Err(error) => {
                let earlier = failure.replace(error);
                if let Some(earlier) = earlier.filter(|earlier| !matches!(earlier, ElectionFailure::Unread)) {
                    note(progress, ElectionStep::Failed(earlier));
                }
            }
        }
    }
    if with_care {
        let plans: Vec<_> = plans.iter().collect();
        if let Err(error) = rescue_all(cluster, &plans, progress, interrupts).await {
            keep(&mut failure, error);
        }
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    let Some(wait) = request.wait.limit().filter(|_| !request.writing.dry_run) else { return Ok(()) };
    tokio::select! {
        followed = follow_all(cluster, &plans, wait, progress) => followed,
        _ = interrupts.next() => Err(ElectionFailure::Interrupted),
    }
}

/// Waits for the handovers that clearing would take back. What follows then is reported where it was not known
/// before.
async fn settle_all(
    cluster: &Cluster,
    plans: Vec<Plan>,
    change: CandidateChange<'_>,
    progress: &mut dyn ElectionProgress,
) -> Result<Vec<Plan>, ElectionFailure> {
    let mut settled = Vec::new();
    for plan in plans {
        let at = address_of(&plan);
        let waited = settle(cluster, &at, change, true, handover::USUAL, |plan| {
            note(progress, ElectionStep::Waiting { plan, to: Intent::Clear });
        });
        if !waited.await?.waited {
            settled.push(plan);
            continue;
        }
        let Some(found) = cluster.elections(Some(&at.namespace)).await? else { continue };
        if let Some(election) = found.of(&at) {
            let now = Plan::new(&election, change, cluster.server_time());
            note(progress, ElectionStep::Settled(&now));
            settled.push(now);
        }
    }
    Ok(settled)
}
