//! Giving up what was taken: undoing it, or releasing it after use.

use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _, future::join_all};
use tokio::time::{Instant, timeout};

use super::{
    acquire::{TakingProgress, TakingStep, Undone},
    claim::{Claim, within},
    concurrent::{for_each, for_each_in_order},
    held::{Held, Released},
};
use crate::{
    client::{Cluster, single::Writing},
    error::Result,
    interrupts::Interrupts,
};

/// How long undoing may take before the rest is left to expire.
pub(super) const UNDO: Duration = Duration::from_secs(30);

/// How long a release may take at the end.
const RELEASE: Duration = Duration::from_secs(10);

/// How long it may still take after an interrupt.
const INTERRUPTED: Duration = Duration::from_secs(2);

/// How long something may take that is done to so many leases.
pub(super) fn for_all(count: usize) -> Duration {
    UNDO + Duration::from_millis(50) * u32::try_from(count).unwrap_or(u32::MAX)
}

/// Releases, or puts back, what these claims have written last. An interrupt leaves the rest.
pub async fn undo(
    cluster: &Cluster,
    claims: &[Claim],
    interrupts: &Interrupts,
    progress: &mut dyn TakingProgress,
) {
    if claims.is_empty() {
        return;
    }
    let deadline = Instant::now() + for_all(claims.len());
    let withdraw = |(place, claim)| async move {
        let left = deadline.saturating_duration_since(Instant::now());
        (place, Undone::new(claim, within(left, Claim::withdraw(claim, cluster)).await))
    };
    let undone = for_each(claims.iter().enumerate(), withdraw).collect::<Vec<_>>();
    let mut undone = tokio::select! {
        undone = undone => undone,
        _ = interrupts.next() => {
            let names: Vec<&str> = claims.iter().map(Claim::name).collect();
            progress.step(TakingStep::UndoInterrupted(&names));
            return;
        }
    };
    undone.sort_by_key(|(place, _)| *place);
    let undone: Vec<Undone<'_>> = undone.into_iter().map(|(_, undone)| undone).collect();
    progress.step(TakingStep::Undone(&undone));
}

/// Releases the leases, or where they were not used, puts them back as they were. An interrupt leaves it a
/// moment, and no more. The outcome of each lease.
///
/// # Errors
/// If that could not be done in time, or was interrupted: what became of them is not known.
pub async fn release_all<'a>(
    cluster: &Cluster,
    held: &'a [Held],
    used: bool,
    interrupts: &Interrupts,
) -> Result<Vec<Result<Released>>> {
    let writing = Writing::default();
    let release = |held: &'a Held| {
        async {
            if used { held.release(cluster, &writing).await } else { held.undo(cluster, &writing).await }
        }
        .boxed()
    };
    let released = join_all(held.iter().map(release).collect::<Vec<_>>()).map(Ok);
    let mut released = std::pin::pin!(within(RELEASE, released));
    tokio::select! {
        outcomes = &mut released => outcomes,
        interruption = interrupts.next() => {
            let moment = timeout(INTERRUPTED, &mut released).await;
            moment.unwrap_or(Err(interruption))
        }
    }
}

/// Releases leases that a look has found, each by itself: one that cannot be released is no reason to keep the
/// others. `report` receives the outcomes in their order.
pub async fn release_found(
    cluster: &Cluster,
    found: &[Held],
    writing: &Writing,
    mut report: impl FnMut(&Held, Result<Released>) + Send,
) {
    let release = |held| async move { (held, within(RELEASE, Held::release(held, cluster, writing)).await) };
    let mut outcomes = for_each_in_order(found.iter(), release);
    while let Some((held, outcome)) = outcomes.next().await {
        report(held, outcome);
    }
}
