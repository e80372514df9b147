//! Following an election: whether a candidate answers, and how the lead moves.

use std::time::Duration;

use tokio::time::timeout;

use crate::{
    cluster::{
        Cluster, LEASES, Object, Resource,
        candidates::{address, vanished},
        single::{Address, Writing},
        watch::until,
    },
    domain::{
        candidate::{ANSWER_WITHIN, Candidate},
        lease::Lease,
        time::ServerTime,
    },
    error::{Error, Result},
};

/// A leader renews every few seconds; a silence of this length is looked into.
const QUIET: Duration = Duration::from_secs(15);
/// Who renewed so recently need not be asked.
pub const FRESH: jiff::SignedDuration = jiff::SignedDuration::from_secs(2);
/// How often a ping is written anew when somebody else wrote in between.
const ATTEMPTS: u32 = 5;

/// A candidate that is alive.
pub struct Answer {
    /// As it then is.
    pub candidate: Candidate,
    /// The `pingTime` that was written to find that out; `None` where it had renewed just before.
    pub pinged: Option<jiff::Timestamp>,
}

/// Whether a candidate answers a ping in the time that the election controller would give it. One that has
/// renewed within `trusted` is not asked.
pub async fn answers(
    cluster: &Cluster,
    resource: Resource,
    candidate: &Candidate,
    trusted: jiff::SignedDuration,
) -> Result<Option<Answer>> {
    let fresh = |it: &Candidate, now: ServerTime| {
        !it.owes_an_answer() && it.spec.renew_time.is_some_and(|renewed| now.since(renewed) < trusted)
    };
    let mut pinged = candidate.clone();
    let mut attempt = 1;
    let asked = loop {
        // Pinged by the controller a moment ago, or renewed by itself.
        if fresh(&pinged, cluster.server_time()) {
            return Ok(Some(Answer { candidate: pinged, pinged: None }));
        }
        match cluster.ping(resource, &pinged, &Writing::default()).await {
            Ok(written) => break written.value.spec.ping_time,
            Err(error) if error.is_not_found() => return Err(vanished(candidate)),
            Err(error) if error.is_conflict() && attempt < ATTEMPTS => {
                attempt += 1;
                pinged = read_again(cluster, resource, candidate).await?;
            }
            Err(error) if error.is_conflict() => {
                let name = candidate.name();
                return Err(Error::LostRace { message: format!("{name} is written by others all the time") });
            }
            Err(error) => return Err(error),
        }
    };
    let at = address(candidate);
    let answer = until(cluster, resource, &at, QUIET, |now: Option<&Object<Candidate>>| match now {
        None => Some(None),
        Some(now) => (!now.value.owes_an_answer()).then(|| Some(Candidate::clone(&now.value))),
    });
    match timeout(ANSWER_WITHIN.unsigned_abs(), answer).await {
        Err(_) => Ok(None),
        Ok(answer) => {
            let candidate = answer?.ok_or_else(|| vanished(candidate))?;
            Ok(Some(Answer { candidate, pinged: asked }))
        }
    }
}

/// The same candidate, not another of its name, as it is now.
pub async fn read_again(cluster: &Cluster, resource: Resource, before: &Candidate) -> Result<Candidate> {
    let now: Option<Object<Candidate>> = cluster.get(resource, &address(before)).await?;
    let same = now.filter(|now| now.value.metadata.uid == before.metadata.uid);
    same.map(|now| Candidate::clone(&now.value)).ok_or_else(|| vanished(before))
}

/// How far the lead has moved to a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Another leads, and has not been asked to step down.
    Waiting { leader: String },
    /// The leader was asked, and lets its lease run out.
    Yielding { leader: String, to: String, left: jiff::SignedDuration },
    /// Nobody leads.
    Electing,
    /// Elected, and not yet heard of.
    Elected,
    /// It leads, and has renewed the lease itself.
    Leads,
}

impl Stage {
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
            Some(to) => Self::Yielding { leader, to, left },
        }
    }
}

/// Waits until one of these candidates leads and renews, telling of each stage: which one it is.
pub async fn until_leads(
    cluster: &Cluster,
    lease: &Address,
    candidates: &[String],
    within: Duration,
    mut told: impl FnMut(&Stage),
) -> Result<String> {
    let mut renewed = None;
    let mut last = None;
    let leads = until(cluster, LEASES, lease, QUIET, |lease: Option<&Object<Lease>>| {
        let lease = lease.map(|lease| &*lease.value);
        let stage = Stage::of(lease, candidates, &mut renewed, cluster.server_time());
        told(&stage);
        let leads = stage == Stage::Leads;
        last = Some(stage);
        lease.filter(|_| leads).map(|lease| lease.holder().to_owned())
    });
    match timeout(within, leads).await {
        Ok(leads) => leads,
        Err(_) => Err(Error::TimedOut {
            message: format!(
                "{} does not lead after {}{}",
                candidates.join(" or "),
                humantime::format_duration(Duration::from_secs(
                    within.saturating_add(Duration::from_millis(500)).as_secs()
                )),
                match &last {
                    Some(Stage::Waiting { leader } | Stage::Yielding { leader, .. }) =>
                        format!(": {leader} still does"),
                    Some(Stage::Electing) => ": nobody does".to_owned(),
                    Some(Stage::Elected) => ": it was elected, but does not renew".to_owned(),
                    _ => String::new(),
                }
            ),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::{SignedDuration, Timestamp};
    use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};

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
            (1, Some(lease("a", 0, 15, None)), Stage::Waiting { leader: leader() }),
            (1, Some(lease("a", 0, 15, Some(""))), Stage::Waiting { leader: leader() }),
            (
                5,
                Some(lease("a", 0, 15, Some("b"))),
                Stage::Yielding { leader: leader(), to: "b".into(), left: SignedDuration::from_secs(10) },
            ),
            (16, Some(lease("a", 0, 15, Some("b"))), Stage::Electing),
            (17, Some(lease("b", 17, 5, None)), Stage::Elected),
            (18, Some(lease("b", 17, 5, None)), Stage::Elected),
            (19, Some(lease("c", 19, 5, None)), Stage::Waiting { leader: "c".into() }),
            (20, Some(lease("", 19, 5, None)), Stage::Electing),
            (20, None, Stage::Electing),
            (21, Some(lease("b", 21, 5, None)), Stage::Elected),
            (22, Some(lease("b", 22, 15, None)), Stage::Leads),
        ] {
            assert_eq!(
                Stage::of(lease.as_ref(), &["b".to_owned()], &mut renewed, ServerTime(at(now))),
                stage,
                "at {now}"
            );
        }
    }
}
