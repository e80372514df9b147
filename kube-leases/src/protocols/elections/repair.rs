//! Repairing an election that is stuck: one write, of an empty holder, gets it going again.

use super::{super::CONFLICT_ATTEMPTS, ElectionFailure, address_of};
use crate::{
    client::{Cluster, single::Writing},
    rules::{election::CoordinatedElection, lease::Lease, plan::Plan, time::ServerTime, trouble::Trouble},
};

/// What an empty holder repairs.
#[derive(Clone, Debug)]
pub struct Defect {
    /// What is wrong with the election.
    pub trouble: Trouble,
    /// The lease as it was read.
    pub lease: Lease,
    /// What follows when its holder is empty.
    pub plan: Plan,
}

/// What became of a repair.
#[derive(Clone, Debug)]
pub enum RepairOutcome {
    /// The lease has an empty holder, and this follows.
    Repaired(Plan),
    /// On a conflict there was nothing to repair any more.
    Fine,
}

impl Defect {
    /// What an empty holder would repair about an election, if there is anything.
    pub fn of(election: &CoordinatedElection<'_>, now: ServerTime) -> Option<Self> {
        let lease = election.lease?;
        let troubles = election.outlook(now).troubles;
        let trouble = troubles.into_iter().find(Trouble::is_repaired_by_an_empty_holder)?;
        Some(Self { trouble, lease: lease.clone(), plan: Plan::of_empty_holder(election, lease, now) })
    }
}

/// Empties the holder. On a conflict the election is read and judged again.
pub async fn repair(
    cluster: &Cluster,
    mut defect: Defect,
    writing: &Writing,
) -> Result<RepairOutcome, ElectionFailure> {
    let at = address_of(&defect.plan);
    for _ in 0..CONFLICT_ATTEMPTS {
        match cluster.empty_holder(&defect.lease, writing).await {
            Ok(()) => return Ok(RepairOutcome::Repaired(defect.plan)),
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(error.into()),
        }
        let Some(found) = cluster.elections(Some(&at.namespace)).await? else {
            return Ok(RepairOutcome::Fine);
        };
        let now = found.of(&at).and_then(|election| Defect::of(&election, cluster.server_time()));
        let Some(now) = now else { return Ok(RepairOutcome::Fine) };
        defect = now;
    }
    Err(ElectionFailure::Conflicts { name: at.name, attempts: CONFLICT_ATTEMPTS })
}
