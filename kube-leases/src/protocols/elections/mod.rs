//! What takes time in coordinated leader elections: pinging a candidate, following a handover, setting and
//! clearing priorities, repairing a stuck election, deleting candidates that were left behind, and waiting for a
//! leader.
//!
//! Each write carries the resource version of what was read, and is decided again on a conflict. What happens on
//! the way is reported through [`ElectionProgress`]; interrupts come from where the caller says: see [`Interrupts`].

pub mod clear;
pub mod handover;
pub mod leadership;
pub mod priority;
pub mod prune;
pub mod repair;
mod rescue;
mod settle;
mod timed;

use std::{ops::ControlFlow, time::Duration};

use jiff::SignedDuration;

use self::{
    handover::{Followed, HandoverStage},
    priority::PriorityTarget,
};
use crate::{
    client::single::Address,
    error::Error,
    interrupts::Interrupts,
    rules::{candidate::Candidate, lease::Lease, plan::Plan},
};

/// What happens on the way.
#[derive(Debug)]
pub enum ElectionStep<'s> {
    /// A handover is under way, and what is to be written waits until it is over. Reported each second.
    Waiting {
        /// What would follow from the write now.
        plan: &'s Plan,
        /// What is to be written.
        to: Intent,
    },
    /// That handover is over, and this is what follows now.
    Settled(&'s Plan),
    /// The candidate has ended, and gets its priority all the same.
    Ended {
        /// The candidate.
        candidate: &'s Candidate,
        /// Whether it was the leader, and has stepped down.
        led: bool,
    },
    /// The candidate has its priority.
    Set(&'s PriorityTarget),
    /// It is not known whether the write of the priority was done.
    Unclear(&'s PriorityTarget),
    /// The leader was asked to step down before it had the priority, which is cleared until that is over.
    ClearedForNow(&'s Candidate),
    /// Whether the leader was asked to step down just before is not known; `is_set` tells whether the priority is
    /// set now.
    Unwatched {
        /// The candidate, and its priority.
        target: &'s PriorityTarget,
        /// Whether the priority is set.
        is_set: bool,
    },
    /// The leader was asked to step down at the moment of a write: a leader is waited for.
    Stranded(&'s Address),
    /// The lease got an empty holder, so that a candidate is elected.
    HolderEmptied(&'s Address),
    /// The lease has no leader, and an empty holder could not be written.
    NoLeader(&'s Address),
    /// An interrupt came before it was known whether these leases have a leader.
    Unchecked(&'s [&'s Plan]),
    /// How far a handover has come, and for how long it has been waited for.
    Handover {
        /// What was foreseen.
        plan: &'s Plan,
        /// The candidates of which one is to lead.
        to: &'s [String],
        /// How far it has come.
        stage: &'s HandoverStage,
        /// The time since the wait began.
        elapsed: SignedDuration,
    },
    /// What came of it.
    Followed {
        /// What was foreseen.
        plan: &'s Plan,
        /// What came of it.
        outcome: &'s Followed,
    },
    /// An interrupt came during the handover to these; their priorities stay.
    Unfollowed(&'s [&'s Candidate]),
    /// The candidates have their priority for so long yet. Reported each second.
    Keeping {
        /// The candidates.
        candidates: &'s [&'s Candidate],
        /// Their priority.
        priority: i32,
        /// The time until it is cleared.
        left: Duration,
    },
    /// The candidate has no priority of this run any more.
    Gone {
        /// The candidate.
        candidate: &'s Candidate,
        /// Why there is nothing to clear.
        why: Gone,
    },
    /// The priority cannot be cleared yet; it is tried again until an interrupt. Reported each minute.
    NotClearedYet(&'s ElectionFailure),
    /// The priority is cleared.
    Cleared(&'s Candidate),
    /// The priority stays although its time is over, or it was meant to be cleared.
    NotCleared(&'s PriorityTarget),
    /// Something failed, and the rest went on.
    Failed(ElectionFailure),
}

/// What is waited with until a handover is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// A priority is to be set.
    Set,
    /// A priority is to be cleared.
    Clear,
    /// The same, until the next interrupt.
    ClearOrLeave,
}

/// Why there is nothing to clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// The candidate was deleted.
    Deleted,
    /// Another client has changed its priority.
    Changed,
}

/// Hears what happens on the way.
pub trait ElectionProgress: Send {
    /// [`ControlFlow::Break`] where there is no use in going on, since what was done cannot be told: priorities
    /// that are set for a time are then cleared, and what was begun for several candidates is completed.
    fn report(&mut self, step: ElectionStep<'_>) -> ControlFlow<()>;
}

/// Why it was not done, or not to the end.
#[derive(Debug, thiserror::Error)]
pub enum ElectionFailure {
    /// The candidate does not acknowledge a ping: no priority was set.
    #[error("{candidate} has ended: it {}does not acknowledge a ping", if *led { "has stepped down, and " } else { "" })]
    Ended {
        /// The name of the candidate.
        candidate: String,
        /// The namespace of the candidate.
        namespace: String,
        /// Whether it was the leader, and has stepped down.
        led: bool,
    },
    /// Another client has changed the priority, which was left so.
    #[error(
        "another client has changed the priority of {candidate} meanwhile, to {}; it was left so",
        priority.map_or("none".to_owned(), |priority| priority.to_string())
    )]
    Changed {
        /// The name of the candidate.
        candidate: String,
        /// The priority that it has now, if any.
        priority: Option<i32>,
    },
    /// Each attempt to write the object met a conflict (409).
    #[error("gave up after {attempts} write conflicts on {name}")]
    Conflicts {
        /// The name of the object.
        name: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// The candidate was written since it was read, and was not deleted.
    #[error("{candidate} was written meanwhile, and may be alive: not deleted")]
    Written {
        /// The name of the candidate.
        candidate: String,
    },
    /// A handover took longer than it was waited for.
    #[error("leadership of {}/{} is still moving after {}", lease.namespace, lease.name.escape_debug(), humantime::format_duration(*after))]
    StillMoving {
        /// The lease.
        lease: Address,
        /// How long it was waited for.
        after: Duration,
    },
    /// The lease is left without a leader.
    #[error("{}/{} has no leader", lease.namespace, lease.name.escape_debug())]
    NoLeader {
        /// The lease.
        lease: Address,
    },
    /// None of the candidates led in time.
    #[error("{} does not lead after {}{}", candidates.join(" or "), humantime::format_duration(*after), still(last.as_ref()))]
    NotLeading {
        /// The names of the candidates of which one was to lead.
        candidates: Vec<String>,
        /// How long it was waited for.
        after: Duration,
        /// How far the handover had come at the last look, if there was one.
        last: Option<HandoverStage>,
    },
    /// The candidate stopped acknowledging pings while it had a priority for a time.
    #[error("{candidate} does not acknowledge pings any more: its component has ended or restarted")]
    Silent {
        /// The name of the candidate.
        candidate: String,
    },
    /// An interrupt came.
    #[error("interrupted")]
    Interrupted,
    /// What was done could not be told: see [`ElectionProgress::report`].
    #[error("the report of what was done was not taken")]
    Unread,
    /// A request failed, or was refused.
    #[error(transparent)]
    Other(#[from] Error),
}

fn still(last: Option<&HandoverStage>) -> String {
    match last {
        Some(HandoverStage::Waiting { leader } | HandoverStage::SteppingDown { leader, .. }) => {
            format!(": {leader} still does")
        }
        Some(HandoverStage::Electing) => ": there is no leader".to_owned(),
        Some(HandoverStage::Elected) => ": it was elected, but does not renew".to_owned(),
        _ => String::new(),
    }
}

impl ElectionFailure {
    fn is_unclear(&self) -> bool {
        matches!(self, Self::Other(error) if error.is_unclear())
    }

    /// Whether clearing a priority is tried again after it: an outage, a conflict, or a credential plugin that asks
    /// for something that is not there now, such as a smart card.
    fn may_pass(&self) -> bool {
        match self {
            Self::Changed { .. } | Self::Conflicts { .. } => true,
            Self::Other(error) => {
                error.is_unclear() || error.is_conflict() || matches!(error, Error::Credential { .. })
            }
            _ => false,
        }
    }

    /// How long to wait before the next attempt.
    fn pause(&self, otherwise: Duration) -> Duration {
        match self {
            Self::Other(error) => error.pause(otherwise),
            _ => otherwise,
        }
    }
}

/// Keeps the first failure to end with; a real one goes before a report that was not taken.
fn keep(first: &mut Option<ElectionFailure>, failure: ElectionFailure) {
    let is_unread = |failure: &ElectionFailure| matches!(failure, ElectionFailure::Unread);
    if first.as_ref().is_none_or(|first| is_unread(first) && !is_unread(&failure)) {
        *first = Some(failure);
    }
}

/// Reports what was done, where it is of use only if the report is taken.
fn report(progress: &mut dyn ElectionProgress, step: ElectionStep<'_>) -> Result<(), ElectionFailure> {
    if progress.report(step).is_break() { Err(ElectionFailure::Unread) } else { Ok(()) }
}

/// Reports what is only good to know.
fn note(progress: &mut dyn ElectionProgress, step: ElectionStep<'_>) {
    let _ = progress.report(step);
}

/// Before something that is not to be begun after an interrupt.
async fn not_interrupted(interrupts: &Interrupts) -> Result<(), ElectionFailure> {
    interrupts.none_so_far().await.map_err(|_| ElectionFailure::Interrupted)
}

/// Something that takes its time, and has written nothing that an interrupt would leave behind.
async fn not_interrupted_during<T>(
    interrupts: &Interrupts,
    work: impl Future<Output = Result<T, ElectionFailure>>,
) -> Result<T, ElectionFailure> {
    tokio::select! {
        biased;
        _ = interrupts.next() => Err(ElectionFailure::Interrupted),
        done = work => done,
    }
}

/// Where the lease of a plan is.
pub fn address_of(plan: &Plan) -> Address {
    Address::new(&plan.namespace, &plan.lease)
}

/// For how long a holder has this lease without a renewal.
fn duration_of(lease: Option<&Lease>) -> Duration {
    let duration = lease.and_then(Lease::duration);
    duration.and_then(|duration| Duration::try_from(duration).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_failure_goes_before_a_report_that_was_not_taken() {
        let silent = || ElectionFailure::Silent { candidate: "a".into() };
        for (failures, first) in [
            (vec![ElectionFailure::Unread, silent()], "a does not acknowledge"),
            (vec![silent(), ElectionFailure::Unread], "a does not acknowledge"),
            (vec![silent(), ElectionFailure::Interrupted], "a does not acknowledge"),
            (vec![ElectionFailure::Unread, ElectionFailure::Unread], "the report"),
        ] {
            let mut kept = None;
            for failure in failures {
                keep(&mut kept, failure);
            }
            assert!(kept.unwrap().to_string().starts_with(first), "{first}");
        }
    }
}
