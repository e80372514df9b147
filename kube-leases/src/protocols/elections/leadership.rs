//! Waiting until a process leads.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use jiff::SignedDuration;
use tokio::time::timeout;

use crate::{
    client::{Cluster, Object, candidates::leases_query, watch::until_all},
    error::Result,
    rules::{
        candidate::{Candidate, CandidateState},
        leader,
        leading::{LeaderStanding, LeaderWait, is_named},
        lease::Lease,
    },
};

/// A leader renews every few seconds; a silence of this length is looked into.
const QUIET: Duration = Duration::from_secs(15);

/// What is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'w> {
    /// The name of the lease.
    pub lease: &'w str,
    /// The namespace of the lease; all where there is none.
    pub namespace: Option<&'w str>,
    /// The process: see [`is_named`].
    pub leader: &'w str,
    /// How long it has to have led.
    pub stable: Duration,
    /// How long to wait.
    pub within: Duration,
}

/// What is reported on the way.
#[derive(Debug)]
pub enum LeadershipStep<'l> {
    /// There is no such candidate, but candidates of these hosts.
    NoCandidate(&'l BTreeSet<String>),
    /// How the lease stands, in this namespace where it is there, so long after the beginning.
    Standing {
        /// How the lease stands.
        standing: &'l LeaderStanding,
        /// Its namespace; `None` where there is no such lease.
        namespace: Option<&'l str>,
        /// The time since the wait began.
        elapsed: SignedDuration,
    },
}

/// What came of it.
#[derive(Debug)]
pub enum LeadershipOutcome {
    /// The process has led for as long as was wanted.
    Leads {
        /// The holder of the lease.
        leader: String,
        /// The namespace of the lease.
        namespace: Option<String>,
    },
    /// There are leases of this name in several namespaces.
    Several(Vec<String>),
    /// The time was over before that.
    TimedOut(TimedOut),
}

/// How it stood when the time was over.
#[derive(Debug)]
pub struct TimedOut {
    /// How the lease stood at the last look, and its namespace; `None` where it could not be watched.
    pub last: Option<(LeaderStanding, Option<String>)>,
    /// Whether the namespace is there, as far as that can be seen.
    pub has_namespace: bool,
    /// Where the lease has candidates, and none of them is the process that is waited for: their hosts.
    pub only: Option<BTreeSet<String>>,
    /// Whether the candidate that is waited for does not acknowledge pings.
    pub is_silent: bool,
}

/// Waits until a process has led for as long as is wanted.
pub async fn until_leads(
    cluster: &Cluster,
    wanted: &Wanted<'_>,
    mut report: impl FnMut(LeadershipStep<'_>),
) -> Result<LeadershipOutcome> {
    let began = Instant::now();
    if let Some(hosts) = only_others(wanted.leader, &candidates(cluster, wanted).await) {
        report(LeadershipStep::NoCandidate(&hosts));
    }
    let mut last = None;
    let left = wanted.within.saturating_sub(began.elapsed());
    if let Ok(waited) = timeout(left, follow(cluster, wanted, &mut report, &mut last)).await {
        return waited;
    }
    // A little more time, to tell what is wrong; not if the lease could not be watched.
    let extra = if last.is_some() { QUIET } else { Duration::ZERO };
    let looks = async { (has_namespace(cluster, wanted).await, candidates(cluster, wanted).await) };
    let (has_namespace, candidates) = timeout(extra, looks).await.unwrap_or((true, Vec::new()));
    Ok(LeadershipOutcome::TimedOut(TimedOut {
        last,
        has_namespace,
        only: only_others(wanted.leader, &candidates),
        is_silent: is_silent(cluster, wanted.leader, &candidates),
    }))
}

/// Follows the lease until the process leads.
async fn follow(
    cluster: &Cluster,
    wanted: &Wanted<'_>,
    report: &mut impl FnMut(LeadershipStep<'_>),
    last: &mut Option<(LeaderStanding, Option<String>)>,
) -> Result<LeadershipOutcome> {
    let mut query = leases_query(wanted.namespace);
    let named = format!("metadata.name={}", wanted.lease);
    query.fields = Some(query.fields.map_or(named.clone(), |fields| format!("{fields},{named}")));
    let stable = SignedDuration::try_from(wanted.stable).unwrap_or(SignedDuration::MAX);
    let mut wait = LeaderWait::new(wanted.leader, stable);
    let began = cluster.server_time();
    let key = |lease: &Lease| lease.metadata.namespace.clone();
    let judge = |leases: &BTreeMap<String, Object<Lease>>| {
        let mut leases = leases.values().filter(|lease| leader::is_leader_election(&lease.value));
        let (lease, another) = (leases.next(), leases.next());
        if let (Some(one), Some(another)) = (lease, another) {
            let namespaces = [one, another].map(|lease| lease.value.metadata.namespace.clone());
            return Some(LeadershipOutcome::Several(namespaces.to_vec()));
        }
        let now = cluster.server_time();
        let standing = wait.observe(lease.map(|lease| &*lease.value), now);
        let namespace = lease.map(|lease| lease.value.metadata.namespace.clone());
        let leads = match &standing {
            LeaderStanding::Leads { leader } => {
                Some(LeadershipOutcome::Leads { leader: leader.clone(), namespace: namespace.clone() })
            }
            standing => {
                let elapsed = now.since(began.0);
                report(LeadershipStep::Standing { standing, namespace: namespace.as_deref(), elapsed });
                None
            }
        };
        *last = Some((standing, namespace));
        leads
    };
    until_all(cluster, &query, QUIET, key, judge).await
}

/// The candidates for the lease; none where there are none, or they cannot be seen.
async fn candidates(cluster: &Cluster, wanted: &Wanted<'_>) -> Vec<Candidate> {
    cluster.candidates_for(wanted.lease, wanted.namespace).await.unwrap_or_default()
}

async fn has_namespace(cluster: &Cluster, wanted: &Wanted<'_>) -> bool {
    match wanted.namespace {
        Some(namespace) => cluster.has_namespace(namespace).await,
        None => true,
    }
}

/// The hosts of the candidates, where there are some and none of them is the process that is meant.
fn only_others(leader: &str, candidates: &[Candidate]) -> Option<BTreeSet<String>> {
    let is_there = candidates.iter().any(|candidate| is_named(candidate.name(), leader));
    let hosts = || candidates.iter().map(|candidate| candidate.host().to_owned()).collect();
    (!is_there && !candidates.is_empty()).then(hosts)
}

/// Whether the candidate that is waited for does not take part.
fn is_silent(cluster: &Cluster, leader: &str, candidates: &[Candidate]) -> bool {
    let now = cluster.server_time();
    let mut its_own = candidates.iter().filter(|candidate| is_named(candidate.name(), leader));
    let lives = |it: &Candidate| !matches!(it.state(now), CandidateState::Stale | CandidateState::Expired);
    !candidates.is_empty() && !its_own.any(lives)
}
