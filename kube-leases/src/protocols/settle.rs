//! Making sure of what is said next, when all of several leases were taken: that they are held under the
//! wanted name, for as long as was asked for, and go with their nodes as they are now.

use std::{collections::BTreeMap, time::Duration};

use futures::StreamExt as _;
use tokio::time::{Instant, timeout_at};

use super::{
    acquire::{Blocked, KnownClaim, NotTaken, TakenLease},
    claim::{Claim, Took, deleted, persistently, within},
    concurrent::for_each,
    held::Held,
    target::nodes_named,
    undo::{UNDO, for_all},
};
use crate::{
    client::Cluster,
    error::{Error, Result},
    rules::{
        deadline::Schedule,
        lease::Metadata,
        taking::{ClaimObstacle, TakingRule},
    },
};

/// A lease that was written longer ago than this is renewed before it is said for how long it is held.
const FRESH: Duration = Duration::from_secs(2);

/// How long an outage may last, after the leases were taken, where nothing says for how long to wait.
pub(super) const OUTAGE: Duration = Duration::from_secs(3);

/// Which of the leases was lost, and why.
pub(super) type LostAgain = (usize, NotTaken);

/// Makes sure of what is said next: that the leases are held for as long as was asked for, and that the
/// nodes are still those that were looked at.
pub(super) async fn settle(
    cluster: &Cluster,
    claims: &[KnownClaim],
    own: &[Claim],
    taken: &mut [TakenLease],
) -> Result<(), NotTaken> {
    let deadline = Some(Instant::now() + OUTAGE);
    let mut lost = settle_owners(cluster, own, taken, deadline).await?;
    if lost.is_none() && gathers(claims) {
        lost = rename_all(cluster, claims, taken, deadline).await?;
    } else if lost.is_none() {
        renew_old(cluster, own, taken, deadline).await?;
    }
    lost.map_or(Ok(()), |(_, why)| Err(why))
}

/// Whether a command holds what it has of these under a name of its own until it has all of them.
pub(super) fn gathers(claims: &[KnownClaim]) -> bool {
    claims.len() > 1
        && claims.iter().all(|(claim, _)| claim.terms.rule == TakingRule::Command && !claim.writing.dry_run)
}

/// Gives all that was gathered the names that it was gathered for. If one was lost, all have to be
/// waited for again.
pub(super) async fn rename_all<'a>(
    cluster: &Cluster,
    claims: &'a [KnownClaim],
    taken: &mut [TakenLease],
    deadline: Option<Instant>,
) -> Result<Option<LostAgain>, NotTaken> {
    let deadline = deadline.map(|deadline| deadline.max(Instant::now() + for_all(claims.len())));
    let is_admin = claims.iter().any(|(claim, _)| claim.terms.who.is_admin());
    let work = async {
        let left = claims.iter().zip(&*taken).enumerate().filter(|(_, (_, (held, _)))| held.is_left());
        let left: Vec<(usize, &Claim)> = left.map(|(n, ((claim, _), _))| (n, claim)).collect();
        let is_left = |(n, claim)| async move { (n, claim, Claim::is_left(claim, cluster).await) };
        for (n, claim, is_left) in for_each(left.into_iter(), is_left).collect::<Vec<_>>().await {
            if !is_left? {
                let message = format!("'{}' cannot be held by {} any more", claim.at.name, claim.terms.who);
                return Ok(Some((n, Error::LostRace { message })));
            }
        }
        // Else the owner stays, which was looked at a moment ago.
        let nodes = if is_admin { nodes_of(cluster, claims, deadline).await? } else { Vec::new() };
        let gathered: Vec<(&Claim, TakenLease)> =
            claims.iter().zip(&*taken).map(|((claim, _), taken)| (claim, taken.clone())).collect();
        let nodes = &nodes;
        let rename = |(n, (claim, (held, before))): (usize, (&'a Claim, TakenLease))| async move {
            if held.is_left() {
                return (n, claim.take_left(cluster, &held).await);
            }
            let owner = nodes.iter().find(|node| node.name == claim.at.name);
            (n, claim.rename(cluster, &held, owner).await.map(|held| (held, before)))
        };
        let renamed = for_each(gathered.into_iter().enumerate(), rename).collect::<Vec<_>>();
        let mut lost = None;
        for (n, renamed) in renamed.await {
            match renamed {
                Ok(renamed) => taken[n] = renamed,
                Err(why @ Error::LostRace { .. }) => lost = Some((0, why)),
                Err(error) => return Err(error),
            }
        }
        if lost.is_none() {
            let nodes = nodes_of(cluster, claims, deadline).await?;
            let was_recreated = |held: &Held| {
                let metadata = &held.lease().value.metadata;
                nodes.iter().any(|node| metadata.belongs_to_predecessor_of(node))
            };
            if let Some((held, _)) = taken.iter().find(|(held, _)| was_recreated(held)) {
                let message = format!("node '{}' was recreated meanwhile", held.at.name);
                lost = Some((0, Error::LostRace { message }));
            }
        }
        if lost.is_some() {
            return Ok(lost);
        }
        let own: Vec<Claim> = claims.iter().map(|(claim, _)| claim.clone()).collect();
        match renew_old(cluster, &own, taken, deadline).await {
            Err(why @ Error::LostRace { .. }) => Ok(Some((0, why))),
            outcome => outcome.map(|()| None),
        }
    };
    let outcome = match deadline {
        None => work.await,
        Some(deadline) => timeout_at(deadline, work).await.map_err(|_| NotTaken::TooSlow { name: None })?,
    };
    Ok(outcome?.map(|(n, why)| (n, why.into())))
}

/// The nodes as they are now.
///
/// # Errors
/// If one of those claimed does not exist any more.
async fn nodes_of(
    cluster: &Cluster,
    claims: &[KnownClaim],
    deadline: Option<Instant>,
) -> Result<Vec<Metadata>> {
    let names: Vec<&str> = claims.iter().map(|(claim, _)| claim.at.name.as_str()).collect();
    let nodes = persistently(deadline, || nodes_named(cluster, &names)).await?;
    let exists = |claim: &Claim| nodes.iter().any(|node| node.name == claim.at.name);
    match claims.iter().find(|(claim, _)| !exists(claim)) {
        Some((claim, _)) => Err(deleted(&claim.at.name)),
        None => Ok(nodes),
    }
}

/// Whether medik8s has begun to work on a node while the others were waited for.
pub(super) async fn ask_medik8s<'a>(
    cluster: &Cluster,
    own: &'a [Claim],
    deadline: Option<Instant>,
) -> Result<Option<LostAgain>, NotTaken> {
    if own.len() < 2 {
        return Ok(None);
    }
    let ask = |(n, claim): (usize, &'a Claim)| async move {
        (n, persistently(deadline, || cluster.medik8s_holder(&claim.at.name)).await)
    };
    let asked = own.iter().enumerate().filter(|(_, claim)| !claim.terms.ignore_medik8s);
    let asked = for_each(asked, ask).collect::<Vec<_>>();
    let mut first = None;
    for (n, holder) in asked.await {
        if let Some(holder) = holder?
            && first.as_ref().is_none_or(|(before, _)| n < *before)
        {
            let obstacle = ClaimObstacle::Medik8s { holder };
            first = Some((n, NotTaken::Blocked(Blocked::new(cluster, &own[n].at.name, obstacle, None))));
        }
    }
    Ok(first)
}

/// Makes sure that the leases are held for as long as will be said.
pub(super) async fn renew_old<'a>(
    cluster: &Cluster,
    own: &'a [Claim],
    taken: &'a [TakenLease],
    deadline: Option<Instant>,
) -> Result<()> {
    let due = |(claim, (held, _)): &(&Claim, &TakenLease)| {
        // A process renews by itself, if it has the time.
        let fresh = if claim.terms.rule == TakingRule::Command {
            FRESH
        } else {
            Schedule::new(Duration::from_secs(u64::try_from(claim.seconds).unwrap_or(1))).renew
        };
        let is_due = held.is_shared() || (held.sent() + fresh).has_passed();
        !claim.writing.dry_run && is_due
    };
    let renew = |(claim, (held, _)): (&'a Claim, &'a TakenLease)| async move {
        let renewal = async {
            // A command's has no end, but may have been released meanwhile.
            if held.who.is_admin() && claim.terms.rule == TakingRule::Command {
                held.look(cluster).await
            } else {
                held.renew(cluster, claim.seconds).await
            }
        };
        match deadline {
            Some(_) => within(UNDO, renewal).await,
            None => renewal.await,
        }
    };
    let mut renewals = for_each(own.iter().zip(taken).filter(due), renew);
    while let Some(renewal) = renewals.next().await {
        renewal?;
    }
    Ok(())
}

/// Makes sure that each lease goes with its node as it is now: the node may have been deleted, or
/// recreated, since it was looked at, and the garbage collector deletes a lease whose owner is gone, also
/// one that was there before. The first that was lost by that, if any.
pub(super) async fn settle_owners(
    cluster: &Cluster,
    own: &[Claim],
    taken: &mut [TakenLease],
    deadline: Option<Instant>,
) -> Result<Option<LostAgain>> {
    // What was left as it was is looked at when it is taken.
    let is_ours = |n: &usize| !taken[*n].0.is_left() && !own[*n].writing.dry_run;
    let ours: Vec<usize> = (0..taken.len()).filter(is_ours).collect();
    if ours.is_empty() {
        return Ok(None);
    }
    let names: Vec<&str> = ours.iter().map(|n| own[*n].at.name.as_str()).collect();
    let nodes = persistently(deadline, || nodes_named(cluster, &names)).await?;
    let nodes: BTreeMap<&str, &Metadata> = nodes.iter().map(|node| (node.name.as_str(), node)).collect();
    for n in ours {
        let (claim, held) = (&own[n], taken[n].0.clone());
        let node = nodes.get(claim.at.name.as_str()).map(|node| (*node).clone());
        match claim.settle(cluster, held, node, deadline).await? {
            Took::Yes(held, _) => taken[n].0 = held,
            Took::No(obstacle, lease) => {
                let why = Blocked::new(cluster, &claim.at.name, obstacle, lease);
                return Ok(Some((n, NotTaken::Blocked(why))));
            }
        }
    }
    Ok(None)
}
