//! Deleting the candidates that components left behind: each is looked at again, and deleted as it was then.

use std::ops::ControlFlow;

use futures::future::join_all;

use super::{ElectionFailure, handover};
use crate::{
    client::{Cluster, Resource, candidates::address, single::DeleteRequest},
    rules::{
        candidate::Candidate,
        choice::Chosen,
        election::CoordinatedElection,
        remains::{DeathReason, Remains, remains},
        time::ServerTime,
    },
};

/// A candidate that was left behind, as it was read last.
#[derive(Debug)]
pub struct LeftBehind<'e, 'a> {
    /// The election that it is a candidate of.
    pub election: &'e CoordinatedElection<'a>,
    /// As it was read last.
    pub candidate: Candidate,
    /// What tells that its process has ended.
    pub why: DeathReason,
}

/// Why candidates are not deleted.
#[derive(Debug)]
pub enum NotPruned<'e, 'a> {
    /// One that was named leads.
    Leads(Chosen<'e, 'a>),
    /// One that was named renews.
    Renews(Chosen<'e, 'a>),
    /// One that was named acknowledges a ping.
    Acknowledges(Chosen<'e, 'a>),
    /// One could not be pinged.
    Failed(ElectionFailure),
}

/// Those of these candidates that were left behind, by election and name. Where only a ping tells, they are pinged,
/// all at once; without `pings`, for a dry run, what is late counts as dead. Beside each: whether it was named
/// itself. What was not, and is alive, is left out.
///
/// # Errors
/// If one that was named is alive, or one could not be pinged.
pub async fn left_behind<'e, 'a>(
    cluster: &Cluster,
    resource: Resource,
    chosen: &[(Chosen<'e, 'a>, bool)],
    pings: bool,
    now: ServerTime,
) -> Result<Vec<LeftBehind<'e, 'a>>, NotPruned<'e, 'a>> {
    let mut dead = Vec::new();
    let mut suspected = Vec::new();
    for &(one, is_named) in chosen {
        let Chosen { election, candidate } = one;
        let outlook = election.outlook(now);
        match remains(candidate, &election.candidates, outlook.leader.valid(), now) {
            Remains::Dead(why) => dead.push(LeftBehind { election, candidate: candidate.clone(), why }),
            Remains::Suspected(why) => suspected.push((one, is_named, why)),
            Remains::Leader if is_named => return Err(NotPruned::Leads(one)),
            Remains::No if is_named => return Err(NotPruned::Renews(one)),
            Remains::Leader | Remains::No => {}
        }
    }
    let look = async |(one, is_named, why): (Chosen<'e, 'a>, bool, DeathReason)| {
        let silence = if pings {
            look(cluster, resource, one.candidate).await
        } else {
            Ok(Silence::Silent(Box::new(one.candidate.clone())))
        };
        (one, is_named, why, silence)
    };
    for (one, is_named, why, silence) in join_all(suspected.into_iter().map(look)).await {
        match silence.map_err(NotPruned::Failed)? {
            Silence::Silent(candidate) => {
                dead.push(LeftBehind { election: one.election, candidate: *candidate, why });
            }
            Silence::Alive if is_named => return Err(NotPruned::Acknowledges(one)),
            Silence::Alive | Silence::Gone => {}
        }
    }
    dead.sort_by(|a, b| (a.election.key(), a.candidate.name()).cmp(&(b.election.key(), b.candidate.name())));
    Ok(dead)
}

/// What a second look at a candidate shows that may have been left behind.
enum Silence {
    /// It does not acknowledge a ping; the candidate as it is after that.
    Silent(Box<Candidate>),
    /// It is alive.
    Alive,
    /// It was deleted meanwhile.
    Gone,
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
