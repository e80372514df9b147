//! Following an election: whether a candidate acknowledges a ping, and how leadership moves.

use std::{sync::Mutex, time::Duration};

use futures::future::try_join_all;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{
    super::{CONFLICT_ATTEMPTS, log::lock},
    ElectionFailure, ElectionProgress, ElectionStep, address_of, note, report,
};
use crate::{
    client::{
        Cluster, LEASES, Object, Resource,
        candidates::{address, vanished},
        single::{Address, Writing},
        watch::until,
    },
    rules::{
        candidate::{ACKNOWLEDGES_WITHIN, Candidate},
        forecast::{Doubt, Forecast},
        lease::Lease,
        plan::Plan,
        time::ServerTime,
    },
};

/// How long to wait for a handover where no time is given: one takes 17 to 22 seconds.
pub const USUAL: Duration = Duration::from_secs(60);
/// A leader renews every few seconds; a silence of this length is looked into.
const QUIET: Duration = Duration::from_secs(15);
/// A candidate that renewed so recently need not be pinged.
pub const FRESH: jiff::SignedDuration = jiff::SignedDuration::from_secs(2);

/// A candidate that is alive.
pub struct Acknowledgement {
    /// As it is after the ping.
    pub candidate: Candidate,
    /// The `pingTime` that was written to find that out; `None` where it had renewed just before.
    pub pinged: Option<jiff::Timestamp>,
}

impl Acknowledgement {
    /// As if it had acknowledged a ping: for a dry run.
    pub fn assumed(candidate: &Candidate) -> Self {
        Self { candidate: candidate.clone(), pinged: None }
    }
}

/// Whether a candidate acknowledges a ping in the time that the election controller would give it. One that has
/// renewed within `trusted` is not pinged.
pub async fn acknowledges(
    cluster: &Cluster,
    resource: Resource,
    candidate: &Candidate,
    trusted: jiff::SignedDuration,
) -> Result<Option<Acknowledgement>, ElectionFailure> {
    let fresh = |it: &Candidate, now: ServerTime| {
        !it.owes_acknowledgement() && it.spec.renew_time.is_some_and(|renewed| now.since(renewed) < trusted)
    };
    let mut pinged = candidate.clone();
    let mut attempt = 1;
    let asked = loop {
        // Pinged by the controller a moment ago, or renewed by itself.
        if fresh(&pinged, cluster.server_time()) {
            return Ok(Some(Acknowledgement { candidate: pinged, pinged: None }));
        }
        match cluster.ping(resource, &pinged, &Writing::default()).await {
            Ok(written) => break written.value.spec.ping_time,
            Err(error) if error.is_not_found() => return Err(vanished(candidate).into()),
            Err(error) if error.is_conflict() && attempt < CONFLICT_ATTEMPTS => {
                attempt += 1;
                pinged = read_again(cluster, resource, candidate).await?;
            }
            Err(error) if error.is_conflict() => {
                return Err(ElectionFailure::Conflicts {
                    name: candidate.name().to_owned(),
                    attempts: CONFLICT_ATTEMPTS,
                });
            }
            Err(error) => return Err(error.into()),
        }
    };
    let at = address(candidate);
    let answer = until(cluster, resource, &at, QUIET, |now: Option<&Object<Candidate>>| match now {
        None => Some(None),
        Some(now) => (!now.value.owes_acknowledgement()).then(|| Some(Candidate::clone(&now.value))),
    });
    match timeout(ACKNOWLEDGES_WITHIN.unsigned_abs(), answer).await {
        Err(_) => Ok(None),
        Ok(answer) => {
            let candidate = answer?.ok_or_else(|| vanished(candidate))?;
            Ok(Some(Acknowledgement { candidate, pinged: asked }))
        }
    }
}

/// Which of these candidates acknowledge a ping, all at once.
pub async fn acknowledgements_of(
    cluster: &Cluster,
    resource: Resource,
    candidates: &[&Candidate],
) -> Result<Vec<Option<Acknowledgement>>, ElectionFailure> {
    try_join_all(candidates.iter().map(|candidate| acknowledges(cluster, resource, candidate, FRESH))).await
}

/// The same candidate, not another of its name, as it is now.
pub async fn read_again(
    cluster: &Cluster,
    resource: Resource,
    before: &Candidate,
) -> crate::error::Result<Candidate> {
    let now: Option<Object<Candidate>> = cluster.get(resource, &address(before)).await?;
    let same = now.filter(|now| now.value.metadata.uid == before.metadata.uid);
    same.map(|now| Candidate::clone(&now.value)).ok_or_else(|| vanished(before))
}

/// How far a handover to a candidate has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandoverStage {
    /// Another leads, and has not been asked to step down.
    Waiting {
        /// The holder of the lease.
        leader: String,
    },
    /// The leader was asked, and stops renewing.
    SteppingDown {
        /// The holder of the lease.
        leader: String,
        /// The preferred holder.
        to: String,
        /// The time until the lease expires.
        left: jiff::SignedDuration,
    },
    /// There is no leader.
    Electing,
    /// Elected, and it has not renewed yet.
    Elected,
    /// It leads, and has renewed the lease itself.
    Leads,
}

impl HandoverStage {
    /// `renewed` is the first renewal seen under the name of one of these candidates: the controller's.
    fn of(
        lease: Option<&Lease>,
        candidates: &[String],
        renewed: &mut Option<jiff::Timestamp>,
        now: ServerTime,
    ) -> Self {
        let Some(lease) = lease.filter(|lease| !lease.holder().is_empty()) else { return Self::Electing };
        if candidates.iter().any(|candidate| candidate == lease.holder()) {
            let first = *renewed.get_or_insert(lease.renewed().unwrap_or(now.0));
            return if lease.renewed().is_some_and(|renewed| renewed > first) {
                Self::Leads
            } else {
                Self::Elected
            };
        }
        *renewed = None;
        let leader = lease.holder().to_owned();
        let left = lease.expires().map_or(jiff::SignedDuration::ZERO, |until| until.duration_since(now.0));
        match lease.spec.preferred_holder.clone().filter(|preferred| !preferred.is_empty()) {
            _ if left.is_negative() => Self::Electing,
            None => Self::Waiting { leader },
            Some(to) => Self::SteppingDown { leader, to, left },
        }
    }
}

impl HandoverStage {
    /// Whether it is another stage than the one before, or the same with another leader.
    fn is_further_than(&self, before: &Self) -> bool {
        match (self, before) {
            (
                Self::SteppingDown { leader, to, .. },
                Self::SteppingDown { leader: leader_before, to: to_before, .. },
            ) => (leader, to) != (leader_before, to_before),
            _ => self != before,
        }
    }

    /// The time until the lease of a leader that steps down expires.
    fn left(&self) -> Duration {
        match self {
            Self::SteppingDown { left, .. } => Duration::try_from(*left).unwrap_or_default(),
            _ => Duration::ZERO,
        }
    }
}

/// What came of a handover that was followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followed {
    /// The leader stays.
    Stays,
    /// Whether leadership moves cannot be foreseen: it is not waited for.
    Open,
    /// No candidate is elected: it is not waited for.
    NoneElected,
    /// This candidate leads, and renews.
    Leads(String),
}

/// Follows the leaders of several leases until they are those that they should be, all within this time.
pub async fn follow_all(
    cluster: &Cluster,
    plans: impl IntoIterator<Item = &Plan>,
    within: Duration,
    progress: &mut dyn ElectionProgress,
) -> Result<(), ElectionFailure> {
    let began = Instant::now();
    for plan in plans {
        let elapsed = if within == Duration::MAX { Duration::ZERO } else { began.elapsed() };
        follow(cluster, plan, within.saturating_sub(elapsed), progress).await?;
    }
    Ok(())
}

/// Follows the leader of a lease until it is the one that it should be.
pub async fn follow(
    cluster: &Cluster,
    plan: &Plan,
    within: Duration,
    progress: &mut dyn ElectionProgress,
) -> Result<(), ElectionFailure> {
    let to = match &plan.forecast {
        Forecast::Stays => {
            note(progress, ElectionStep::Followed { plan, outcome: &Followed::Stays });
            return Ok(());
        }
        Forecast::Open(Doubt::Tie | Doubt::JustEnded, _) => {
            note(progress, ElectionStep::Followed { plan, outcome: &Followed::Open });
            return Ok(());
        }
        Forecast::Moves(to) | Forecast::Elects(to) | Forecast::Open(_, to) if !to.is_empty() => to,
        _ => {
            note(progress, ElectionStep::Followed { plan, outcome: &Followed::NoneElected });
            return Ok(());
        }
    };
    let (at, began) = (address_of(plan), cluster.server_time());
    let leads = until_leads(cluster, &at, to, within, |stage| {
        let elapsed = cluster.server_time().since(began.0);
        note(progress, ElectionStep::Handover { plan, to, stage, elapsed });
    });
    let outcome = Followed::Leads(leads.await?);
    report(progress, ElectionStep::Followed { plan, outcome: &outcome })
}

/// Waits until one of these candidates leads and renews, and reports each stage: which one it is. Without a limit
/// ([`Duration::MAX`]) it is given up when it comes no further for longer than it usually takes.
pub async fn until_leads(
    cluster: &Cluster,
    lease: &Address,
    candidates: &[String],
    within: Duration,
    mut report: impl FnMut(&HandoverStage),
) -> Result<String, ElectionFailure> {
    let mut renewed = None;
    let mut last = None;
    let began = Instant::now();
    let stuck_at = Mutex::new(began + USUAL);
    let leads = until(cluster, LEASES, lease, QUIET, |lease: Option<&Object<Lease>>| {
        let lease = lease.map(|lease| &*lease.value);
        let stage = HandoverStage::of(lease, candidates, &mut renewed, cluster.server_time());
        report(&stage);
        if last.as_ref().is_none_or(|last| stage.is_further_than(last)) {
            *lock(&stuck_at) = Instant::now() + USUAL + stage.left();
        }
        let leads = stage == HandoverStage::Leads;
        last = Some(stage);
        lease.filter(|_| leads).map(|lease| lease.holder().to_owned())
    });
    let over = async {
        if within < Duration::MAX {
            return sleep(within).await;
        }
        loop {
            let stuck_at = *lock(&stuck_at);
            if stuck_at <= Instant::now() {
                return;
            }
            sleep_until(stuck_at).await;
        }
    };
    tokio::select! {
        biased;
        leads = leads => return Ok(leads?),
        () = over => {}
    }
    let waited = within.min(began.elapsed());
    let after = Duration::from_secs(waited.saturating_add(Duration::from_millis(500)).as_secs());
    Err(ElectionFailure::NotLeading { candidates: candidates.to_vec(), after, last })
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::{SignedDuration, Timestamp};
    use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};

    #[test]
    fn a_handover_comes_further() {
        let waiting = |leader: &str| HandoverStage::Waiting { leader: leader.into() };
        let stepping = |leader: &str, to: &str, left| HandoverStage::SteppingDown {
            leader: leader.into(),
            to: to.into(),
            left: SignedDuration::from_secs(left),
        };
        for (now, before, is_further) in [
            (waiting("a"), waiting("a"), false),
            (waiting("b"), waiting("a"), true),
            (stepping("a", "b", 9), waiting("a"), true),
            (stepping("a", "b", 8), stepping("a", "b", 9), false),
            (stepping("a", "c", 8), stepping("a", "b", 9), true),
            (HandoverStage::Electing, stepping("a", "b", 0), true),
            (HandoverStage::Electing, HandoverStage::Electing, false),
        ] {
            assert_eq!(now.is_further_than(&before), is_further, "{now:?} after {before:?}");
        }
        assert_eq!(stepping("a", "b", 9).left(), Duration::from_secs(9));
        assert_eq!(stepping("a", "b", -1).left(), Duration::ZERO);
    }

    #[test]
    fn a_handover_goes_through_its_stages() {
        let at = |seconds| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_000_000 + seconds);
        let lease = |holder: &str, renewed: i64, seconds: i32, preferred: Option<&str>| Lease {
            spec: LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                renew_time: Some(MicroTime(at(renewed))),
                lease_duration_seconds: Some(seconds),
                preferred_holder: preferred.map(str::to_owned),
                ..LeaseSpec::default()
            },
            ..Lease::default()
        };
        let leader = || "a".to_owned();
        let mut renewed = None;
        for (now, lease, stage) in [
            (1, Some(lease("a", 0, 15, None)), HandoverStage::Waiting { leader: leader() }),
            (1, Some(lease("a", 0, 15, Some(""))), HandoverStage::Waiting { leader: leader() }),
            (
                5,
                Some(lease("a", 0, 15, Some("b"))),
                HandoverStage::SteppingDown {
                    leader: leader(),
                    to: "b".into(),
                    left: SignedDuration::from_secs(10),
                },
            ),
            (16, Some(lease("a", 0, 15, Some("b"))), HandoverStage::Electing),
            (17, Some(lease("b", 17, 5, None)), HandoverStage::Elected),
            (18, Some(lease("b", 17, 5, None)), HandoverStage::Elected),
            (19, Some(lease("c", 19, 5, None)), HandoverStage::Waiting { leader: "c".into() }),
            (20, Some(lease("", 19, 5, None)), HandoverStage::Electing),
            (20, None, HandoverStage::Electing),
            (21, Some(lease("b", 21, 5, None)), HandoverStage::Elected),
            (22, Some(lease("b", 22, 15, None)), HandoverStage::Leads),
        ] {
            assert_eq!(
                HandoverStage::of(lease.as_ref(), &["b".to_owned()], &mut renewed, ServerTime(at(now))),
                stage,
                "at {now}"
            );
        }
    }
}
