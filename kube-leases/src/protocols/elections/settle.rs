//! Waiting until a handover is over that a write would take back.
//!
//! A leader that was asked to step down does not renew any more. If it became the best candidate again, no
//! candidate would be elected: the controller does not elect the holder of an expired lease again.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{ElectionFailure, address_of};
use crate::{
    client::{Cluster, Refusal, single::Address},
    error::Result,
    protocols::persistently,
    rules::{
        forecast::Strands,
        plan::{CandidateChange, Plan},
    },
};

/// How long a kube-apiserver may take to restart.
const RESTART: Duration = Duration::from_secs(10);

/// An election that a change does not leave without a leader.
pub struct Settled {
    /// Whether there was a handover to wait for.
    pub waited: bool,
    /// How it stood at the last look; `None` where there is no such election any more.
    pub plan: Option<Plan>,
}

/// Waits until a change leaves no lease without a leader: until the handover is over that it would take back. An
/// election is many objects, so it is read each second. A handover that is only about to begin is waited for
/// where `early` says so. It may take as long as the lease lasts, and `within` on top. An outage is waited for as
/// long as a kube-apiserver takes to restart.
pub async fn settle(
    cluster: &Cluster,
    at: &Address,
    change: CandidateChange<'_>,
    early: bool,
    within: Duration,
    mut waiting: impl FnMut(&Plan),
) -> Result<Settled, ElectionFailure> {
    let began = Instant::now();
    let mut waited = false;
    let mut lost: Option<Instant> = None;
    let mut refusal = Refusal::default();
    loop {
        let (plan, in_the_way) = match look(cluster, at, change, early).await {
            Err(error) if error.is_unclear() && lost.get_or_insert_with(Instant::now).elapsed() < RESTART => {
                sleep(error.pause(Duration::from_secs(1))).await;
                continue;
            }
            Err(error) if refusal.may_pass(&error) => {
                sleep(Duration::from_secs(1)).await;
                continue;
            }
            looked => looked?,
        };
        lost = None;
        let plan = match plan {
            Some(plan) if in_the_way => plan,
            plan => return Ok(Settled { waited, plan }),
        };
        let limit = within.saturating_add(plan.duration);
        if began.elapsed() >= limit {
            return Err(ElectionFailure::StillMoving { lease: address_of(&plan), after: limit });
        }
        waited = true;
        waiting(&plan);
        sleep(Duration::from_secs(1)).await;
    }
}

/// How the election stands, and whether a change would strand it.
async fn look(
    cluster: &Cluster,
    at: &Address,
    change: CandidateChange<'_>,
    early: bool,
) -> Result<(Option<Plan>, bool)> {
    let namespace = Some(at.namespace.as_str());
    let Some(found) = cluster.elections(namespace).await? else { return Ok((None, false)) };
    let plan = found.of(at).map(|election| Plan::new(&election, change, cluster.server_time()));
    let in_the_way = match plan.as_ref().and_then(|plan| plan.strands) {
        Some(Strands::AskedToStepDown) => true,
        // Without the controller nothing is about to happen.
        Some(Strands::AboutToBe) if early => !cluster.election_controller(&found, namespace).await?.is_down(),
        _ => false,
    };
    Ok((plan, in_the_way))
}

/// Whether a lease has no leader, or soon none, unless the process of its holder ends.
pub async fn is_stranded(cluster: &Cluster, at: &Address) -> Result<bool> {
    let look = || cluster.elections(Some(&at.namespace));
    let Some(found) = persistently(Some(Instant::now() + RESTART), look).await? else { return Ok(false) };
    let outlook = found.of(at).map(|election| election.outlook(cluster.server_time()));
    Ok(outlook.is_some_and(|outlook| outlook.forecast.needs_the_holder_to_end()))
}
