//! Taking several leases: all or none.
//!
//! Until a command has all of several leases, it holds those that it has under a name of its own, for a
//! short time, and renews them: another process of the same holder does not take them for its own too,
//! which would leave them held when this one gives up. When it has all of them, it gives them the name
//! that they were taken for.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use futures::StreamExt as _;
use tokio::time::{Instant, sleep, timeout};

use super::{
    acquire::{
        Blocked, KnownClaim, NotTaken, TakenLease, TakingProgress, TakingStep, Undone, Wait, check_all,
        process_suffix, take_by,
    },
    claim::{Claim, Took, persistently},
    concurrent::for_each,
    held::Held,
    keeper::keep_until_taken,
    settle::{LostAgain, OUTAGE, ask_medik8s, gathers, rename_all, renew_old, settle, settle_owners},
    undo::{UNDO, undo},
    wait::wait_for,
};
use crate::{
    client::{Cluster, Object, Refusal},
    error::{Error, Result},
    interrupts::Interrupts,
    rules::{deadline::Schedule, lease::Lease, taking::ClaimObstacle},
};

/// The seconds for which a command that waits for more holds what it has; it is renewed meanwhile.
const GATHERED: i32 = 60;

/// After a refusal that may pass, the next attempt.
const REFUSED: Duration = Duration::from_millis(500);

/// Takes all of the leases or none. Those taken are released again if one cannot be taken, or on an
/// interrupt.
///
/// The first by name is taken before the others, so that of several processes that want the same nodes one
/// gets them all. Until a command has all of several it holds what it has under a name of its own, see
/// [`Claim::gathering`].
///
/// # Errors
/// Why they were not taken.
pub async fn take_all(
    cluster: &Cluster,
    claims: &[KnownClaim],
    wait: Wait,
    interrupts: &Interrupts,
    progress: &mut dyn TakingProgress,
) -> Result<Vec<TakenLease>, NotTaken> {
    if wait.waits() {
        return wait_for_all(cluster, claims, wait, interrupts, progress).await;
    }
    check_all(cluster, claims).map_err(NotTaken::Blocked)?;
    let own = gathering(claims);
    let mut taken: Vec<TakenLease> = Vec::new();
    progress.step(TakingStep::Begun(claims.len()));
    let stop = AtomicBool::new(false);
    let outcome = {
        let taking = take_each(cluster, claims, &own, &stop, &mut taken, progress);
        tokio::pin!(taking);
        tokio::select! {
            biased;
            interruption = interrupts.next() => {
                stop.store(true, Ordering::Relaxed);
                // A second one does not wait for the answer to what is under way.
                tokio::select! {
                    _ = timeout(UNDO, &mut taking) => {}
                    _ = interrupts.next() => {}
                }
                Err(interruption.into())
            }
            outcome = &mut taking => outcome,
        }
    };
    progress.step(TakingStep::Over);
    taken.sort_by(|(a, _), (b, _)| a.at.name.cmp(&b.at.name));
    let outcome = match outcome {
        Ok(()) => tokio::select! {
            biased;
            interruption = interrupts.next() => Err(interruption.into()),
            outcome = settle(cluster, claims, &own, &mut taken) => outcome,
        },
        outcome => outcome,
    };
    if let Err(error) = outcome {
        undo(cluster, &own, interrupts, progress).await;
        return Err(error);
    }
    Ok(taken)
}

/// Takes each of the leases as it is, the first before the others; none that was not begun before a failure
/// or a `stop`.
async fn take_each<'a>(
    cluster: &Cluster,
    claims: &'a [KnownClaim],
    own: &'a [Claim],
    stop: &AtomicBool,
    taken: &mut Vec<TakenLease>,
    progress: &mut dyn TakingProgress,
) -> Result<(), NotTaken> {
    let take = |(claim, (_, lease)): (&'a Claim, &'a KnownClaim)| async move {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match claim.take(cluster, lease.clone()).await? {
            Took::Yes(held, before) => Ok(Some((held, before))),
            Took::No(obstacle, lease) => {
                Err(NotTaken::Blocked(Blocked::new(cluster, &claim.at.name, obstacle, lease)))
            }
        }
    };
    let mut took = |one: Option<TakenLease>| {
        if let Some(one) = one {
            taken.push(one);
            progress.step(TakingStep::Taken);
        }
    };
    let mut all = own.iter().zip(claims);
    let Some(first) = all.next() else { return Ok(()) };
    took(take(first).await?);
    let mut outcomes = for_each(all, take);
    let mut failure = None;
    // After a failure no more is begun, but what is under way is brought to its end, so that it
    // is known what to undo.
    while let Some(outcome) = outcomes.next().await {
        match outcome {
            Ok(one) => took(one),
            Err(error) => {
                stop.store(true, Ordering::Relaxed);
                failure.get_or_insert(error);
            }
        }
    }
    failure.map_or(Ok(()), Err)
}

/// The claims under which several leases are taken: until a command has all of them, it holds what it has
/// under a name of its own, and not for long. No other process of the same holder takes them for its own
/// too, which would leave them held when this one gives up; and if it is killed they expire soon.
/// What its holder has already counts as taken, and is left as it is until then.
fn gathering(claims: &[KnownClaim]) -> Vec<Claim> {
    let (gathers, suffix) = (gathers(claims), process_suffix());
    let own = |(claim, _): &KnownClaim| {
        let seconds = if claim.terms.who.is_admin() { GATHERED } else { claim.seconds.clamp(3, GATHERED) };
        if gathers { claim.gathering(&suffix, seconds) } else { claim.clone() }
    };
    claims.iter().map(own).collect()
}

/// Takes all of the leases or none, waiting for those that are held.
///
/// One is taken after the other in the order of their names, and one that is lost meanwhile is waited
/// for again without those that come after it: no two commands can then wait for each other.
async fn wait_for_all(
    cluster: &Cluster,
    claims: &[KnownClaim],
    wait: Wait,
    interrupts: &Interrupts,
    progress: &mut dyn TakingProgress,
) -> Result<Vec<TakenLease>, NotTaken> {
    // One's own lease is not waited for: it may be held by a colleague with the same user and host.
    for (claim, lease) in claims {
        if let Some(obstacle @ ClaimObstacle::OtherReason { .. }) = claim.obstacle(cluster, lease.as_ref()) {
            return Err(NotTaken::Blocked(Blocked::new(cluster, &claim.at.name, obstacle, lease.clone())));
        }
    }
    let deadline = wait.deadline();
    let own = gathering(claims);
    let outcome = {
        let taking = gather(cluster, claims, &own, deadline, progress);
        tokio::pin!(taking);
        tokio::select! {
            biased;
            interruption = interrupts.next() => {
                // A second one does not wait for the answer to what is under way.
                tokio::select! {
                    _ = timeout(Duration::from_millis(500), &mut taking) => {}
                    _ = interrupts.next() => {}
                }
                Err(interruption.into())
            }
            outcome = &mut taking => outcome,
        }
    };
    progress.step(TakingStep::Over);
    if outcome.is_err() {
        undo(cluster, &own, interrupts, progress).await;
    }
    // What would have been waited for, had there been the time.
    let is_over = deadline.is_some_and(|deadline| deadline <= Instant::now());
    outcome.map_err(|error| match error {
        NotTaken::Failed(error) if is_over && error.is_transient() => NotTaken::OutOfTime(error),
        error => error,
    })
}

async fn gather(
    cluster: &Cluster,
    claims: &[KnownClaim],
    own: &[Claim],
    deadline: Option<Instant>,
    progress: &mut dyn TakingProgress,
) -> Result<Vec<TakenLease>, NotTaken> {
    progress.step(TakingStep::Begun(claims.len()));
    let mut taken: Vec<TakenLease> = Vec::new();
    let mut holds_one = false;
    // What was read at the start may be long ago after the first.
    let mut known =
        claims.first().map(|(_, lease)| lease).filter(|_| !own.iter().take(1).any(|claim| claim.waits));
    loop {
        let count = taken.len();
        let held: Vec<Held> =
            taken.iter().map(|(held, _)| held.clone()).filter(|held| !held.is_left()).collect();
        let next = own.get(count);
        let work = async {
            if let Some(claim) = next {
                let took = take_or_wait(cluster, claim, known.take(), holds_one, deadline, progress).await?;
                taken.push(took);
                holds_one = true;
                progress.step(TakingStep::Taken);
                return Ok(None);
            }
            // A moment at least is left to an outage, whatever the limit.
            let deadline = deadline.map(|deadline| deadline.max(Instant::now() + OUTAGE));
            if let Some(lost) = settle_owners(cluster, own, &mut taken, deadline).await? {
                return Ok(Some(lost));
            }
            ask_medik8s(cluster, own, deadline).await
        };
        let lost: Option<LostAgain> = if held.is_empty() || own.iter().any(|claim| claim.writing.dry_run) {
            work.await?
        } else {
            let seconds = own.first().map_or(1, |claim| claim.seconds);
            let schedule = Schedule::new(Duration::from_secs(u64::try_from(seconds).unwrap_or(1)));
            tokio::select! {
                outcome = work => outcome?,
                lost = keep_until_taken(cluster, &held, schedule) => {
                    let n = own.iter().position(|claim| claim.at.name == lost.name()).unwrap_or(0);
                    Some((n, Error::LostRace { message: lost.to_string() }.into()))
                }
            }
        };
        let lost = match lost {
            None if count < own.len() => continue,
            None if gathers(claims) => rename_all(cluster, claims, &mut taken, deadline).await?,
            None => match renew_old(cluster, own, &taken, deadline).await {
                Err(why @ Error::LostRace { .. }) => Some((0, why.into())),
                outcome => outcome.map(|()| None)?,
            },
            lost => lost,
        };
        let Some((n, why)) = lost else { return Ok(taken) };
        progress.step(TakingStep::Again { why: &why, from: &own[n].at.name });
        // The one that was under way may have been written too.
        for claim in own.iter().take(taken.len() + 1).skip(n) {
            let withdrawn = persistently(deadline, || claim.withdraw(cluster));
            let released = take_by(&claim.at.name, deadline, withdrawn).await?;
            progress.step(TakingStep::GivenUp(&Undone::new(claim, Ok(released))));
        }
        taken.truncate(n);
    }
}

/// Takes the next lease, waiting for it if need be. If one was taken before (`holds_one`), a 401 or 403 may be that of a
/// server that has just been started.
async fn take_or_wait(
    cluster: &Cluster,
    claim: &Claim,
    known: Option<&Option<Object<Lease>>>,
    holds_one: bool,
    deadline: Option<Instant>,
    progress: &mut dyn TakingProgress,
) -> Result<TakenLease, NotTaken> {
    let mut refusal = Refusal::default();
    let first = async {
        match known {
            Some(lease) => claim.take(cluster, lease.clone()).await,
            None => loop {
                match claim.take_anew(cluster).await {
                    Err(error) if holds_one && refusal.may_pass(&error) => sleep(REFUSED).await,
                    outcome => break outcome,
                }
            },
        }
    };
    match take_by(&claim.at.name, deadline, first).await {
        Ok(Took::Yes(held, before)) => return Ok((held, before)),
        Ok(Took::No(..)) => {}
        Err(error) if error.is_transient() => {}
        Err(error) => return Err(error),
    }
    loop {
        match wait_for(cluster, claim, deadline, progress).await {
            Err(NotTaken::Failed(error)) if holds_one && refusal.may_pass(&error) => sleep(REFUSED).await,
            outcome => return outcome,
        }
    }
}
