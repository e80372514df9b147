//! Priorities for a time: set, kept, and cleared when their time is over, when it is interrupted, or when anything
//! fails. They were meant for a time, and are not left behind.

use std::{future::pending, time::Duration};

use futures::future::join_all;
use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::{
    ElectionFailure, ElectionProgress, ElectionStep, Gone, Intent, address_of,
    handover::follow_all,
    keep, note,
    priority::{Setting, plans_of},
    report,
    rescue::rescue_all,
    settle::settle,
};
use crate::{
    client::{
        Cluster, Object, Refusal,
        candidates::{address, vanished},
        watch::until,
    },
    interrupts::Interrupts,
    rules::{
        candidate::Candidate,
        priority::{self, How},
        remains::SILENT_FOR,
    },
};

const QUIET: Duration = Duration::from_secs(60);
/// How often at most an outage is reported while a priority cannot be cleared.
const REPORTED_EVERY: Duration = Duration::from_secs(60);

/// What became of a priority that was kept.
enum Kept {
    /// Its time is over.
    Over,
    /// There is nothing to clear any more.
    Gone(Gone),
    /// The candidate does not acknowledge pings.
    Silent,
}

pub(super) async fn set(
    cluster: &Cluster,
    settings: &mut [Setting<'_>],
    expires: Timestamp,
    wait: Option<Duration>,
    progress: &mut dyn ElectionProgress,
    interrupts: &Interrupts,
) -> Result<(), ElectionFailure> {
    let outcome = {
        let work = async {
            for setting in settings.iter_mut() {
                setting.write().await?;
                setting.see_that_it_is_not_asked(progress).await?;
                report(progress, ElectionStep::Set(setting.target))?;
            }
            if let Some(wait) = wait {
                // Also a wait without a limit ends with the priorities.
                let wait = wait.min(left(cluster, expires));
                tokio::select! {
                    biased;
                    followed = follow_all(cluster, plans_of(settings), wait, progress) => followed?,
                    lost = until_none_can_lead(settings) => return Err(lost),
                }
            }
            keep_until(cluster, settings, expires, progress).await
        };
        tokio::select! {
            // Listened for before anything is written.
            biased;
            _ = interrupts.next() => Err(ElectionFailure::Interrupted),
            outcome = work => outcome,
        }
    };
    let mut failure = None;
    for (n, setting) in settings.iter().enumerate() {
        let candidate = setting.candidate();
        if let Ok(Some(Kept::Gone(why))) = outcome.as_ref().map(|kept| kept.get(n)) {
            note(progress, ElectionStep::Gone { candidate, why: *why });
            continue;
        }
        let cleared = tokio::select! {
            cleared = clear(setting, progress) => cleared,
            _ = interrupts.next() => Err(ElectionFailure::Interrupted),
        };
        match cleared {
            // Whatever fails here, or interrupts it, the other priorities are cleared too.
            Ok(true) => {
                let reported = report(progress, ElectionStep::Cleared(candidate));
                let rescued = rescue_all(cluster, &[&setting.target.plan], progress, interrupts).await;
                for error in [rescued.err(), reported.err()].into_iter().flatten() {
                    keep(&mut failure, error);
                }
            }
            Ok(false) => {}
            Err(error) => {
                note(progress, ElectionStep::NotCleared(setting.target));
                keep(&mut failure, error);
            }
        }
    }
    let kept = outcome.unwrap_or_else(|error| {
        keep(&mut failure, error);
        Vec::new()
    });
    if let Some(failure) = failure {
        return Err(failure);
    }
    let silent = kept.iter().position(|kept| matches!(kept, Kept::Silent)).and_then(|n| settings.get(n));
    silent.map_or(Ok(()), |setting| Err(is_silent(setting)))
}

/// Waits until the time of the priorities is over, or none of them is left to keep.
async fn keep_until(
    cluster: &Cluster,
    settings: &[Setting<'_>],
    expires: Timestamp,
    progress: &mut dyn ElectionProgress,
) -> Result<Vec<Kept>, ElectionFailure> {
    let candidates: Vec<&Candidate> = settings.iter().map(Setting::candidate).collect();
    let priority = settings.first().map_or(0, |setting| setting.wish.value);
    let over = async {
        loop {
            let left = left(cluster, expires);
            if left.is_zero() {
                break;
            }
            note(progress, ElectionStep::Keeping { candidates: &candidates, priority, left });
            sleep(left.min(Duration::from_secs(1))).await;
        }
    };
    tokio::select! {
        ended = join_all(settings.iter().map(watch)) => ended.into_iter().collect(),
        () = over => Ok(settings.iter().map(|_| Kept::Over).collect()),
    }
}

/// The time until then, by the server's clock.
fn left(cluster: &Cluster, then: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(cluster.server_time().0)).unwrap_or_default()
}

fn is_silent(setting: &Setting<'_>) -> ElectionFailure {
    ElectionFailure::Silent { candidate: setting.candidate().name().to_owned() }
}

/// Waits until none of the candidates can come to lead any more, and says why. One whose priority another client
/// has changed still can. Without permission to watch candidates, that is not noticed.
pub(super) async fn until_none_can_lead(settings: &[Setting<'_>]) -> ElectionFailure {
    let reasons = settings.iter().map(async |setting| {
        let gone = watch_until(setting, |kept| !matches!(kept, Kept::Gone(Gone::Changed))).await;
        match gone {
            Ok(Kept::Gone(_)) => vanished(setting.candidate()).into(),
            Ok(_) => is_silent(setting),
            Err(_) => pending().await,
        }
    });
    let first = join_all(reasons).await.into_iter().next();
    match first {
        Some(reason) => reason,
        None => pending().await,
    }
}

/// Waits until there is nothing to keep any more.
async fn watch(setting: &Setting<'_>) -> Result<Kept, ElectionFailure> {
    watch_until(setting, |_| true).await
}

/// Waits until it ends in a way that counts.
async fn watch_until(
    setting: &Setting<'_>,
    counts: impl Fn(&Kept) -> bool + Send + Sync,
) -> Result<Kept, ElectionFailure> {
    let (cluster, candidate) = (setting.cluster, setting.candidate());
    let at = address(candidate);
    let judge = |now: Option<&Object<Candidate>>| {
        let Some(now) = now.filter(|now| now.value.metadata.uid == candidate.metadata.uid) else {
            return Some(Kept::Gone(Gone::Deleted));
        };
        if !setting.is_ours(&now.value) {
            return Some(Kept::Gone(Gone::Changed)).filter(&counts);
        }
        let time = cluster.server_time();
        let unanswered = now.value.spec.ping_time.filter(|_| now.value.owes_acknowledgement());
        let silent = unanswered.is_some_and(|pinged| time.since(pinged) > SILENT_FOR);
        (silent || now.value.is_overdue(time)).then_some(Kept::Silent)
    };
    Ok(until(cluster, setting.resource, &at, QUIET, judge).await?)
}

/// Clears what this run wrote, or may have written, once the handover is over that it began. `false` if there is
/// nothing of it. An outage is waited for, until the caller ends that.
async fn clear(setting: &Setting<'_>, progress: &mut dyn ElectionProgress) -> Result<bool, ElectionFailure> {
    let uid = &setting.candidate().metadata.uid;
    let change = |it: &Candidate| {
        let ours = it.metadata.uid == *uid && setting.is_ours(it);
        ours.then(|| priority::imagine(it, None, How::Pinned))
    };
    let at = address_of(&setting.target.plan);
    let mut refusal = Refusal::default();
    let mut reported: Option<Instant> = None;
    let mut settled = false;
    let mut looks = if setting.is_set { 1 } else { 2 };
    loop {
        let done = if settled {
            setting.clear_once().await
        } else {
            let over = settle(setting.cluster, &at, &change, true, Duration::MAX, |plan| {
                note(progress, ElectionStep::Waiting { plan, to: Intent::ClearOrLeave });
            });
            match over.await {
                Ok(_) => {
                    settled = true;
                    continue;
                }
                Err(error) => Err(error),
            }
        };
        let failure = match done {
            Ok(true) => return Ok(true),
            Ok(false) if looks == 1 => return Ok(false),
            // A write without an answer may still be on its way.
            Ok(false) => {
                looks -= 1;
                sleep(Duration::from_secs(1)).await;
                continue;
            }
            Err(failure) => failure,
        };
        // Before that, a refusal has been waited for. Other failures do not count towards how long.
        let may_pass = failure.may_pass()
            || matches!(&failure, ElectionFailure::Other(error) if settled && refusal.may_pass(error));
        if !may_pass {
            return Err(failure);
        }
        if reported.is_none_or(|reported| reported.elapsed() > REPORTED_EVERY) {
            reported = Some(Instant::now());
            note(progress, ElectionStep::NotClearedYet(&failure));
        }
        sleep(failure.pause(Duration::from_secs(1))).await;
    }
}
