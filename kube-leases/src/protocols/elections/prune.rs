//! Deleting the candidates that components left behind: each is looked at again, and deleted as it was then.

use std::ops::ControlFlow;

use futures::future::join_all;

use super::{ElectionFailure, handover};
use crate::{
    client::{Cluster, Resource, candidates::address, single::DeleteRequest},
    rules::candidate::Candidate,
};

/// What a second look at a candidate shows that may have been left behind.
#[derive(Debug)]
pub enum Silence {
    /// It does not acknowledge a ping; the candidate as it is after that.
    Silent(Box<Candidate>),
    /// It is alive.
    Alive,
    /// It was deleted meanwhile.
    Gone,
}

/// Pings candidates that may have been left behind, all at once.
pub async fn look_again(
    cluster: &Cluster,
    resource: Resource,
    suspected: &[&Candidate],
) -> Vec<Result<Silence, ElectionFailure>> {
    join_all(suspected.iter().map(|candidate| look(cluster, resource, candidate))).await
}

async fn look(
    cluster: &Cluster,
    resource: Resource,
    candidate: &Candidate,
) -> Result<Silence, ElectionFailure> {
    match ping(cluster, resource, candidate).await {
        Err(ElectionFailure::Other(error)) if error.is_not_found() => Ok(Silence::Gone),
        pinged => pinged,
    }
}

async fn ping(
    cluster: &Cluster,
    resource: Resource,
    candidate: &Candidate,
) -> Result<Silence, ElectionFailure> {
    if handover::acknowledges(cluster, resource, candidate, handover::FRESH).await?.is_some() {
        return Ok(Silence::Alive);
    }
    let now = handover::read_again(cluster, resource, candidate).await?;
    Ok(if now.owes_acknowledgement() { Silence::Silent(Box::new(now)) } else { Silence::Alive })
}

/// What became of a candidate that was to be deleted.
#[derive(Debug)]
pub enum PruneOutcome<'c> {
    /// It was deleted.
    Deleted(&'c Candidate),
    /// It was not deleted.
    Failed(ElectionFailure),
}

/// Deletes these candidates as they were read; one that was written meanwhile is left. `report` hears of each.
pub async fn delete(
    cluster: &Cluster,
    resource: Resource,
    candidates: &[&Candidate],
    dry_run: bool,
    mut report: impl FnMut(PruneOutcome<'_>) -> ControlFlow<()>,
) {
    for candidate in candidates {
        let deletion = DeleteRequest {
            uid: &candidate.metadata.uid,
            resource_version: &candidate.metadata.resource_version,
            grace_seconds: None,
            dry_run,
        };
        let outcome = match cluster.delete(resource, &address(candidate), &deletion).await {
            Ok(()) => PruneOutcome::Deleted(candidate),
            // The garbage collector was faster.
            Err(error) if error.is_not_found() => continue,
            Err(error) if error.is_conflict() => {
                PruneOutcome::Failed(ElectionFailure::Written { candidate: candidate.name().to_owned() })
            }
            Err(error) => PruneOutcome::Failed(error.into()),
        };
        if report(outcome).is_break() {
            return;
        }
    }
}
