//! Setting priorities.
//!
//! While a handover is under way a priority is not cleared, nor set for the leader that steps down: it was asked
//! to, and if it were the best again no candidate would be elected. The write waits until the handover is over.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, sleep};

use super::{
    super::{CONFLICT_ATTEMPTS, Wait},
    ElectionFailure, ElectionProgress, ElectionStep, Intent, address_of,
    handover::{self, Acknowledgement, follow_all},
    not_interrupted, not_interrupted_during, note, report,
    rescue::{DECIDED_WITHIN, rescue},
    settle::{is_stranded, settle},
    timed,
};
use crate::{
    client::{
        Cluster, Resource,
        candidates::{Wish, vanished},
        single::Writing,
    },
    interrupts::Interrupts,
    rules::{
        candidate::Candidate,
        election::CoordinatedElection,
        forecast::{ELECTED_FOR, Forecast, after_clearing},
        plan::Plan,
        priority::{self, How, Priority},
        time::ServerTime,
    },
};

/// A candidate that is to have a priority.
#[derive(Debug)]
pub struct PriorityTarget {
    /// As it is after its ping.
    pub candidate: Candidate,
    /// That ping.
    pub pinged: Option<Timestamp>,
    /// How the server has a priority.
    pub how: How,
    /// What follows when the priority is set.
    pub plan: Plan,
    /// What follows when the priority is cleared again.
    pub cleared: Forecast,
}

/// How priorities are to be set.
#[derive(Clone, Debug)]
pub struct PriorityRequest {
    /// The priority.
    pub value: i32,
    /// For how long; until they are cleared where there is none.
    pub length: Option<Duration>,
    /// Whether their end is only recorded, and not waited for.
    pub detach: bool,
    /// Whether a candidate that has ended gets its priority all the same.
    pub force: bool,
    /// Wait this long for the handovers that follow.
    pub wait: Wait,
    /// How it is written.
    pub writing: Writing,
}

impl PriorityTarget {
    /// What follows from a priority of this candidate.
    pub fn new(
        election: &CoordinatedElection<'_>,
        answer: Acknowledgement,
        value: i32,
        how: How,
        now: ServerTime,
    ) -> Self {
        let Acknowledgement { candidate, pinged } = answer;
        let imagined = priority::imagine(&candidate, Some(value), how);
        let change = |it: &Candidate| (it.name() == candidate.name()).then(|| imagined.clone());
        let plan = Plan::new(election, &change, now);
        let with: Vec<Candidate> =
            election.candidates.iter().map(|it| change(it).unwrap_or_else(|| Candidate::clone(it))).collect();
        let with: Vec<&Candidate> = with.iter().collect();
        let from = plan.from.as_deref().filter(|from| *from != candidate.name());
        // A leader that was just elected and has not renewed yet does not end when it is asked to step down: it
        // may lead again.
        let just_elected =
            election.lease.is_some_and(|lease| lease.spec.lease_duration_seconds == Some(ELECTED_FOR));
        let cleared = if just_elected && from.is_some() {
            Forecast::Nothing
        } else {
            after_clearing(&with, &priority::imagine(&candidate, None, how), from, now)
        };
        Self { candidate, pinged, how, plan, cleared }
    }
}

/// Sets priorities: until they are cleared, or for a time.
pub async fn set(
    cluster: &Cluster,
    resource: Resource,
    mut targets: Vec<PriorityTarget>,
    request: &PriorityRequest,
    progress: &mut dyn ElectionProgress,
    interrupts: &Interrupts,
) -> Result<(), ElectionFailure> {
    if !request.writing.dry_run {
        let can_be_set = async {
            for target in &mut targets {
                let wanted = (request.value, request.force);
                let last = until_it_can_be_set(cluster, resource, target, wanted, progress).await?;
                // Another client may have written since what was agreed on.
                target.plan = last.unwrap_or_else(|| target.plan.clone());
            }
            Ok(())
        };
        not_interrupted_during(interrupts, can_be_set).await?;
    }
    // From now on: confirmation may have taken its time.
    let end = request.length.and_then(|length| cluster.server_time().0.checked_add(length).ok());
    let wish = Wish {
        value: request.value,
        // Whole seconds, and none too few.
        expires: end.and_then(|end| Timestamp::from_second(end.as_second() + 1).ok()),
    };
    let mut settings: Vec<_> = targets
        .iter()
        .map(|target| Setting {
            cluster,
            resource,
            target,
            wish: &wish,
            writing: &request.writing,
            is_set: false,
        })
        .collect();
    match wish.expires {
        Some(expires) if !request.detach && !request.writing.dry_run => {
            timed::set(cluster, &mut settings, expires, request.wait.limit(), progress, interrupts).await
        }
        _ => for_good(cluster, &mut settings, request, progress, interrupts).await,
    }
}

/// Sets priorities that stay until they are cleared.
async fn for_good(
    cluster: &Cluster,
    settings: &mut [Setting<'_>],
    request: &PriorityRequest,
    progress: &mut dyn ElectionProgress,
    interrupts: &Interrupts,
) -> Result<(), ElectionFailure> {
    let dry_run = request.writing.dry_run;
    if !dry_run {
        not_interrupted(interrupts).await?;
    }
    // What was begun for all is not left half done because what was done cannot be told.
    let mut failure = None;
    for setting in settings.iter_mut() {
        if let Err(error) = setting.write().await {
            if error.is_unclear() {
                note(progress, ElectionStep::Unclear(setting.target));
            }
            return Err(error);
        }
        let watched = tokio::select! {
            watched = setting.see_that_it_is_not_asked(progress) => watched,
            _ = interrupts.next() => Err(ElectionFailure::Interrupted),
        };
        let (target, is_set) = (setting.target, setting.is_set);
        if let Err(error) = watched {
            note(progress, ElectionStep::Unwatched { target, is_set });
            return Err(error);
        }
        failure = failure.or(report(progress, ElectionStep::Set(target)).err());
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    let Some(wait) = request.wait.limit().filter(|_| !dry_run) else { return Ok(()) };
    let plans = plans_of(settings);
    let followed = tokio::select! {
        biased;
        _ = interrupts.next() => None,
        followed = follow_all(cluster, plans, wait, progress) => Some(followed),
        lost = timed::until_none_can_lead(settings) => Some(Err(lost)),
    };
    followed.unwrap_or_else(|| {
        let candidates: Vec<_> = settings.iter().map(Setting::candidate).collect();
        note(progress, ElectionStep::Unfollowed(&candidates));
        Err(ElectionFailure::Interrupted)
    })
}

/// What was foreseen for each of them.
pub(super) fn plans_of<'s>(settings: &[Setting<'s>]) -> Vec<&'s Plan> {
    settings.iter().map(|setting| &setting.target.plan).collect()
}

/// Waits until a priority leaves no lease without a leader: how the election then stands. A leader that is only
/// about to be asked to step down is preferred in time, most likely. One that stepped down may have exited.
async fn until_it_can_be_set(
    cluster: &Cluster,
    resource: Resource,
    PriorityTarget { candidate, how, plan, .. }: &PriorityTarget,
    (value, force): (i32, bool),
    progress: &mut dyn ElectionProgress,
) -> Result<Option<Plan>, ElectionFailure> {
    let change = |it: &Candidate| {
        let same = it.metadata.uid == candidate.metadata.uid;
        same.then(|| priority::imagine(it, Some(value), *how))
    };
    let at = address_of(plan);
    let settled = settle(cluster, &at, &change, false, handover::USUAL, |plan| {
        note(progress, ElectionStep::Waiting { plan, to: Intent::Set });
    });
    let settled = settled.await?;
    // A renewal of a moment ago may be the last one of a leader that has exited since.
    let trusted = SignedDuration::ZERO;
    if settled.waited && handover::acknowledges(cluster, resource, candidate, trusted).await?.is_none() {
        let led = plan.from.as_deref() == Some(candidate.name());
        if !force {
            let (candidate, namespace) = (candidate.name().to_owned(), candidate.metadata.namespace.clone());
            return Err(ElectionFailure::Ended { candidate, namespace, led });
        }
        note(progress, ElectionStep::Ended { candidate, led });
    }
    Ok(settled.plan)
}

/// A priority that is being set.
pub(super) struct Setting<'s> {
    pub cluster: &'s Cluster,
    pub resource: Resource,
    /// The candidate as it was when the user agreed.
    pub target: &'s PriorityTarget,
    pub wish: &'s Wish,
    pub writing: &'s Writing,
    /// Whether it is known to be written.
    pub is_set: bool,
}

impl<'s> Setting<'s> {
    pub fn candidate(&self) -> &'s Candidate {
        &self.target.candidate
    }

    pub async fn write(&mut self) -> Result<(), ElectionFailure> {
        let wish = Some((self.wish, self.target.how));
        write(self.cluster, self.resource, self.candidate(), wish, self.writing).await?;
        self.is_set = true;
        Ok(())
    }

    /// The controller may have decided against a leader before it saw its priority. Where it has asked it to step
    /// down, that is left to happen first.
    pub async fn see_that_it_is_not_asked(
        &mut self,
        progress: &mut dyn ElectionProgress,
    ) -> Result<(), ElectionFailure> {
        let PriorityTarget { plan, candidate, .. } = self.target;
        if !plan.keeps_the_leader() || self.writing.dry_run {
            return Ok(());
        }
        // A priority that was lowered has another for the best, which clearing it does not change.
        let leads = plan.from.as_deref() == Some(candidate.name());
        let deadline = Instant::now() + DECIDED_WITHIN;
        while leads && plan.may_be_asked() && Instant::now() < deadline {
            sleep(Duration::from_secs(1)).await;
            if is_stranded(self.cluster, &address_of(plan)).await? {
                note(progress, ElectionStep::ClearedForNow(candidate));
                if self.clear_once().await? {
                    self.is_set = false;
                    let wanted = (self.wish.value, false);
                    until_it_can_be_set(self.cluster, self.resource, self.target, wanted, progress).await?;
                    self.write().await?;
                }
                return Ok(());
            }
        }
        rescue(self.cluster, &address_of(plan), self.target.pinged, progress).await
    }

    /// Whether a candidate has what this run wrote, and not what another client did.
    pub fn is_ours(&self, candidate: &Candidate) -> bool {
        let wanted = (self.wish.value, self.wish.expires);
        Priority::of(candidate).is_some_and(|priority| (priority.value, priority.expires) == wanted)
    }

    /// Clears what this run wrote; `false` if there is nothing of it.
    pub async fn clear_once(&self) -> Result<bool, ElectionFailure> {
        let now = match handover::read_again(self.cluster, self.resource, self.candidate()).await {
            Err(error) if error.is_not_found() => return Ok(false),
            now => now?,
        };
        if !self.is_ours(&now) {
            return Ok(false);
        }
        write(self.cluster, self.resource, &now, None, self.writing).await.map(|()| true)
    }
}

/// Sets or clears. A candidate writes its whole object at each renewal: on a conflict it is read and decided again,
/// and what was agreed on stands only if no other client has changed its priority.
pub(super) async fn write(
    cluster: &Cluster,
    resource: Resource,
    agreed: &Candidate,
    wish: Option<(&Wish, How)>,
    writing: &Writing,
) -> Result<(), ElectionFailure> {
    let mark = |it: &Candidate| (Priority::of(it), it.spec.emulation_version.clone());
    let mut before = agreed.clone();
    for _ in 0..CONFLICT_ATTEMPTS {
        if wish.is_none() && !priority::is_marked(&before) {
            return Ok(());
        }
        match cluster.set_priority(resource, &before, wish, writing).await {
            Ok(_) => return Ok(()),
            Err(error) if error.is_not_found() => return Err(vanished(agreed).into()),
            Err(error) if error.is_conflict() => {
                before = handover::read_again(cluster, resource, agreed).await?;
                if mark(&before) != mark(agreed) {
                    let priority = Priority::of(&before).map(|priority| priority.value);
                    return Err(ElectionFailure::Changed { candidate: agreed.name().to_owned(), priority });
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(ElectionFailure::Conflicts { name: agreed.name().to_owned(), attempts: CONFLICT_ATTEMPTS })
}
