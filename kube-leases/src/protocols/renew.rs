//! Renewing several leases of one holder, each by itself: one that cannot be renewed is no reason to let the
//! others expire.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use tokio::time::Instant;

use super::{
    acquire::{Blocked, KnownClaim, NotTaken, TakingProgress},
    claim::{Claim, Took},
    concurrent::for_each,
    settle::{OUTAGE, settle_owners},
    undo::undo,
};
use crate::{
    client::{Cluster, Object},
    error::Result,
    interrupts::Interrupts,
    rules::{lease::Lease, maintenance::MaintenanceStanding},
};

/// Renews the leases. How each stood before, or why it was not renewed, by name; what is missing was
/// interrupted. What failed is undone.
pub async fn renew_all<'a>(
    cluster: &Cluster,
    claims: &'a [KnownClaim],
    interrupts: &Interrupts,
    progress: &mut dyn TakingProgress,
) -> BTreeMap<String, Result<MaintenanceStanding, NotTaken>> {
    let mut outcomes = BTreeMap::new();
    let renew = |(claim, lease): &'a KnownClaim| async move {
        (claim.at.name.clone(), renew(cluster, claim, lease.clone()).await)
    };
    let mut renewing = for_each(claims.iter(), renew);
    loop {
        tokio::select! {
            biased;
            _ = interrupts.next() => break,
            renewed = renewing.next() => match renewed {
                Some((name, outcome)) => drop(outcomes.insert(name, outcome)),
                None => break,
            }
        }
    }
    drop(renewing);
    // A write that failed, or was interrupted, may still arrive.
    let failed = |(claim, _): &&KnownClaim| !matches!(outcomes.get(&claim.at.name), Some(Ok(_)));
    let failed: Vec<Claim> = claims.iter().filter(failed).map(|(claim, _)| claim.clone()).collect();
    undo(cluster, &failed, interrupts, progress).await;
    outcomes
}

async fn renew(
    cluster: &Cluster,
    claim: &Claim,
    lease: Option<Object<Lease>>,
) -> Result<MaintenanceStanding, NotTaken> {
    match claim.take(cluster, lease).await? {
        Took::Yes(held, before) => {
            let deadline = Some(Instant::now() + OUTAGE);
            let mut renewed = [(held, before.clone())];
            match settle_owners(cluster, std::slice::from_ref(claim), &mut renewed, deadline).await? {
                Some((_, lost)) => Err(lost),
                None => Ok(before),
            }
        }
        Took::No(obstacle, lease) => {
            Err(NotTaken::Blocked(Blocked::new(cluster, &claim.at.name, obstacle, lease)))
        }
    }
}
