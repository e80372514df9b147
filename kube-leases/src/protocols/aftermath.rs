//! What follows on the deletion of pods: they are gone, and replaced.

use std::{collections::BTreeSet, ops::ControlFlow, time::Duration};

use tokio::time::Instant;

use super::{Wait, observe::until};
use crate::{
    client::{Cluster, PODS, Query, single::Addressed as _, surroundings, watch::WatchEvent},
    error::{Error, Result},
    rules::{
        advice::Safe,
        assessment::Assessment,
        deletion::{Choice, Judged},
        lease::Owner,
        pod::Pod,
        time::ServerTime,
    },
};

/// How long a replacement is looked for, and then the node that it is given to.
const REPLACED_WITHIN: Duration = Duration::from_secs(5);
const SCHEDULED_WITHIN: Duration = Duration::from_secs(2);
/// How long a first answer about what became of a pod may take.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);
/// How long pod GC may take that runs at all.
const COLLECTED_WITHIN: Duration = Duration::from_secs(120);

/// Receives what is waited for, where that takes longer.
pub trait AftermathProgress: Send {
    /// The end of this pod, or its replacement, is waited for.
    fn waiting(&mut self, pod: &Pod);
    /// It is not waited for any more.
    fn over(&mut self);
}

impl AftermathProgress for () {
    fn waiting(&mut self, _: &Pod) {}
    fn over(&mut self) {}
}

/// What became of a pod.
#[derive(Clone, Debug, Default)]
pub struct PodOutcome {
    /// The object is gone.
    pub gone: bool,
    /// The pod that came in its place.
    pub replacement: Option<Pod>,
    /// The controller that was to replace it.
    pub expected: Option<Owner>,
}

/// What follows on the deletion of several pods together.
#[derive(Debug)]
pub struct Aftermath {
    start: Instant,
    wait: Wait,
    /// What replaces one of them does not replace another.
    taken: BTreeSet<String>,
}

impl Aftermath {
    /// From now on.
    pub fn new(wait: Wait) -> Self {
        Self { start: Instant::now(), wait, taken: BTreeSet::new() }
    }

    /// Waits for what becomes of one that was deleted so at `began`.
    ///
    /// # Errors
    /// If that could not be followed.
    pub async fn of(
        &mut self,
        cluster: &Cluster,
        judged: &Judged,
        choice: Choice,
        began: ServerTime,
        progress: &mut dyn AftermathProgress,
    ) -> Result<PodOutcome> {
        let pod = &*judged.pod;
        let (expected, limit) = match choice {
            Choice::Force => (judged.is_replaced(), REPLACED_WITHIN),
            Choice::Safely(Safe::Replace) => (true, REPLACED_WITHIN),
            Choice::Safely(Safe::Await) => (false, COLLECTED_WITHIN + grace_left(pod, cluster)),
            Choice::Safely(Safe::Evict | Safe::Delete) => {
                (false, COLLECTED_WITHIN + Duration::try_from(pod.grace()).unwrap_or_default())
            }
        };
        let expected = pod.controller().filter(|_| expected).cloned();
        let goal = Goal {
            // It does not end before its node is back: its replacement is all there is to see.
            stays: choice == Choice::Safely(Safe::Replace),
            replacement: expected.as_ref().map(|owner| owner.uid.as_str()),
            ready: self.wait != Wait::No,
            taken: &self.taken,
            began,
        };
        let deadline = self.by(self.wait.limit().unwrap_or(limit));
        if deadline.is_none_or(|deadline| deadline > Instant::now() + REPLACED_WITHIN) {
            progress.waiting(pod);
        }
        let seen = observe(cluster, pod, &goal, deadline).await;
        progress.over();
        let outcome = PodOutcome { expected, ..seen? };
        self.taken.extend(outcome.replacement.as_ref().map(|new| new.metadata.uid.clone()));
        Ok(outcome)
    }

    /// Until when one of several is looked at: the time is that of all of them together, but each gets
    /// long enough for an answer.
    fn by(&self, limit: Duration) -> Option<Instant> {
        let all = self.start.checked_add(limit)?;
        Some(all.max(Instant::now() + limit.min(ANSWERED_WITHIN)))
    }
}

/// Judges a pod that should be gone once more, as it is now; `None` if it is.
///
/// # Errors
/// If it could not be read.
pub async fn still_there(cluster: &Cluster, pod: &Pod) -> Result<Option<(std::sync::Arc<Pod>, Assessment)>> {
    let Some(now) = cluster.get::<Pod>(PODS, &pod.address()).await? else { return Ok(None) };
    let around = surroundings::read(cluster, &[&now.value]).await?;
    let assessment = Assessment::of(&now.value, &around, cluster.server_time());
    Ok(Some((now.value, assessment)))
}

/// How much of its grace period a pod that is Terminating has left.
fn grace_left(pod: &Pod, cluster: &Cluster) -> Duration {
    let left = pod.overdue(cluster.server_time()).map(|overdue| -overdue);
    left.and_then(|left| Duration::try_from(left).ok()).unwrap_or_default()
}

/// What to look for after a deletion.
struct Goal<'a> {
    stays: bool,
    /// The uid of the controller that makes the replacement, if one is to be expected.
    replacement: Option<&'a str>,
    /// And until it is ready.
    ready: bool,
    taken: &'a BTreeSet<String>,
    began: ServerTime,
}

impl Goal<'_> {
    /// Whether this is what comes in the place of `pod`.
    fn is_replacement(&self, pod: &Pod, new: &Pod) -> bool {
        let owner = new.controller().map(|owner| owner.uid.as_str());
        new.metadata.uid != pod.metadata.uid
            && !self.taken.contains(&new.metadata.uid)
            && owner.is_some()
            && owner == self.replacement
            && new.metadata.creation_timestamp.is_some_and(|time| self.began.since(time).as_secs() <= 1)
    }

    fn is_reached(&self, seen: &PodOutcome) -> bool {
        let replaced = match (self.replacement, &seen.replacement) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(_), Some(new)) if self.ready => new.is_ready(),
            (Some(_), Some(new)) => new.is_scheduled(),
        };
        replaced && (seen.gone || self.stays)
    }
}

/// The pod, and what may replace it.
fn query(pod: &Pod, goal: &Goal<'_>) -> Query {
    let named = format!("metadata.name={}", pod.metadata.name);
    let labels: Vec<String> =
        pod.metadata.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    // What replaces a pod of these has its labels, and another name.
    let renamed = |kind: &str| matches!(kind, "ReplicaSet" | "DaemonSet" | "Job");
    let elsewhere = pod.controller().is_some_and(|owner| renamed(&owner.kind)) && !labels.is_empty();
    let query = Query::new(PODS).namespace(&pod.metadata.namespace).bare(true);
    if goal.replacement.is_some() && elsewhere {
        query.select(Some(&labels.join(",")), None)
    } else {
        query.select(None, Some(&named))
    }
}

/// Watches until the pod is gone and its replacement is there, or the time is over.
async fn observe(
    cluster: &Cluster,
    pod: &Pod,
    goal: &Goal<'_>,
    deadline: Option<Instant>,
) -> Result<PodOutcome> {
    let uid = &pod.metadata.uid;
    let mut seen = PodOutcome::default();
    let mut scheduled_by: Option<Instant> = None;
    let outcome = until(cluster, &query(pod, goal), deadline, |event: WatchEvent<Pod>| {
        match event {
            WatchEvent::Snapshot(pods) => {
                seen.gone = pods.iter().all(|pod| pod.value.metadata.uid != *uid);
                let mut pods = pods.iter().map(|pod| &*pod.value);
                seen.replacement = pods.find(|new| goal.is_replacement(pod, new)).cloned();
            }
            WatchEvent::Gone(old) => seen.gone |= old.value.metadata.uid == *uid,
            WatchEvent::Changed(new) => {
                let known = seen.replacement.as_ref().map(|known| known.metadata.uid.as_str());
                if goal.is_replacement(pod, &new.value)
                    && known.is_none_or(|known| known == new.value.metadata.uid)
                {
                    seen.replacement = Some((*new.value).clone());
                }
            }
            WatchEvent::Lost(_) | WatchEvent::Failed(_) => {}
        }
        if goal.is_reached(&seen) {
            return ControlFlow::Break(());
        }
        if seen.replacement.is_some() && !goal.ready {
            scheduled_by.get_or_insert_with(|| Instant::now() + SCHEDULED_WITHIN);
        }
        ControlFlow::Continue(scheduled_by)
    })
    .await;
    match outcome {
        // With permission to delete a pod but not to watch it, one look has to do.
        Err(Error::Forbidden { .. }) => {
            let now = cluster.get::<Pod>(PODS, &pod.address()).await?;
            Ok(PodOutcome {
                gone: now.is_none_or(|now| now.value.metadata.uid != *uid),
                ..PodOutcome::default()
            })
        }
        outcome => outcome.map(|_| seen),
    }
}
