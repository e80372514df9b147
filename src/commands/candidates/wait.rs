//! `candidates wait`: a condition for scripts.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use jiff::SignedDuration;
use tokio::time::timeout;

use super::check_namespace;
use crate::{
    cli::WaitForLeader,
    cluster::{Cluster, Object, candidates::leases_query, watch::until_all},
    commands::interrupted,
    domain::{
        candidate::{Candidate, State},
        duration::age,
        leader,
        leading::{Standing, Wait, is_named},
        lease::{Lease, short},
    },
    error::{Error, Result},
    exit::ExitCode,
    output::{Printer, progress::WaitLine},
};

/// A leader renews every few seconds; a silence of this length is looked into.
const QUIET: Duration = Duration::from_secs(15);

pub async fn run(
    args: &WaitForLeader,
    namespace: Option<&str>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<ExitCode> {
    if args.stable >= args.timeout {
        return Err(Error::Usage {
            message: format!(
                "--stable {} is not shorter than --timeout {}",
                humantime::format_duration(args.stable),
                humantime::format_duration(args.timeout)
            ),
            hint: Some("the time that a handover takes comes on top of --stable".into()),
        });
    }
    let began = Instant::now();
    if let Some(message) = no_such_candidate(args, &candidates(args, namespace, cluster).await) {
        printer.note(&format!("{message}; waiting for one"));
    }
    let mut last = None;
    let left = args.timeout.saturating_sub(began.elapsed());
    let waited = tokio::select! {
        biased;
        error = interrupted() => return Err(error),
        waited = timeout(left, until_leads(args, namespace, cluster, printer, &mut last)) => waited,
    };
    match waited {
        Ok(leads) => {
            let (leader, at) = leads?;
            let stable = match args.stable {
                Duration::ZERO => String::new(),
                stable => format!(", for {}", humantime::format_duration(stable)),
            };
            printer.done(&format!("{leader} leads {at}{stable}"))?;
            Ok(ExitCode::Done)
        }
        Err(_) => Err(in_vain(args, namespace, last, cluster).await),
    }
}

/// Follows the lease until the process that is meant leads: who that is, and where the lease is.
async fn until_leads(
    args: &WaitForLeader,
    namespace: Option<&str>,
    cluster: &Cluster,
    printer: &mut Printer,
    last: &mut Option<(Standing, String)>,
) -> Result<(String, String)> {
    let mut query = leases_query(namespace);
    let named = format!("metadata.name={}", args.lease);
    query.fields = Some(query.fields.map_or(named.clone(), |fields| format!("{fields},{named}")));
    let stable = SignedDuration::try_from(args.stable).unwrap_or(SignedDuration::MAX);
    let mut wait = Wait::new(&args.leader, stable);
    let mut line = WaitLine::default();
    let began = cluster.server_time();
    let key = |lease: &Lease| lease.metadata.namespace.clone();
    let judge = |leases: &BTreeMap<String, Object<Lease>>| {
        let mut leases = leases.values().filter(|lease| leader::is_leader_election(&lease.value));
        let (lease, another) = (leases.next(), leases.next());
        if let (Some(one), Some(another)) = (lease, another) {
            let namespaces = [one, another].map(|lease| lease.value.metadata.namespace.as_str());
            return Some(Err(super::several(&args.lease, &namespaces)));
        }
        let now = cluster.server_time();
        let standing = wait.observe(lease.map(|lease| &*lease.value), now);
        let place = lease.map_or_else(String::new, |lease| format!("{}/", lease.value.metadata.namespace));
        let at = format!("{place}{}", args.lease);
        let leads = match &standing {
            Standing::Leads { leader } => Some(Ok((leader.clone(), at.clone()))),
            standing => {
                let (news, detail) = words(standing, &at);
                line.say(printer, &news, &format!("{detail} ({})", age(now.since(began.0))));
                None
            }
        };
        *last = Some((standing, at));
        leads
    };
    until_all(cluster, &query, QUIET, key, judge).await?
}

/// How the lead stands: what is news, and what only the passing of time changes.
fn words(standing: &Standing, at: &str) -> (String, String) {
    match standing {
        Standing::NoLease => (format!("there is no lease {at}"), String::new()),
        Standing::Released => (format!("{at} has no leader"), String::new()),
        Standing::Expired { holder } => {
            (format!("{at} has no leader: the lease of {} has expired", short(holder)), String::new())
        }
        Standing::Other { leader, preferred: None } => {
            (format!("{} leads {at}", short(leader)), String::new())
        }
        Standing::Other { leader, preferred: Some(preferred) }
        | Standing::SteppingDown { leader, preferred } => {
            (format!("{} leads {at}, and steps down for {}", short(leader), short(preferred)), String::new())
        }
        Standing::Elected { leader } => {
            (format!("{} holds {at}, waiting for a renewal", short(leader)), String::new())
        }
        Standing::Settling { leader, left } => {
            (format!("{} leads {at} and renews", short(leader)), format!(", {} more to wait", age(*left)))
        }
        Standing::Leads { leader } => (format!("{} leads {at}", short(leader)), String::new()),
    }
}

/// The candidates for the lease; none where there are none, or they cannot be seen.
async fn candidates(args: &WaitForLeader, namespace: Option<&str>, cluster: &Cluster) -> Vec<Candidate> {
    let all = cluster.candidates_for(&args.lease, namespace).await;
    all.unwrap_or_default()
}

/// What to say where the lease has candidates, and none of them is the one that is meant.
fn no_such_candidate(args: &WaitForLeader, candidates: &[Candidate]) -> Option<String> {
    let is_there = candidates.iter().any(|candidate| is_named(candidate.name(), &args.leader));
    let names: std::collections::BTreeSet<_> = candidates.iter().map(Candidate::host).collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    (!is_there && !candidates.is_empty())
        .then(|| format!("there is no candidate '{}' for {}, only {names}", args.leader, args.lease))
}

/// Why it did not come to it.
async fn in_vain(
    args: &WaitForLeader,
    namespace: Option<&str>,
    last: Option<(Standing, String)>,
    cluster: &Cluster,
) -> Error {
    let after = format!("after {}", humantime::format_duration(args.timeout));
    let Some((standing, at)) = last else {
        return Error::TimedOut { message: format!("{} could not be watched {after}", args.lease) };
    };
    // A little more time, to tell what is wrong.
    let looks =
        async { (check_namespace(namespace, cluster).await, candidates(args, namespace, cluster).await) };
    let (exists, candidates) = timeout(QUIET, looks).await.unwrap_or((Ok(()), Vec::new()));
    if let (Standing::NoLease, Err(error)) = (&standing, exists) {
        return error;
    }
    let (how, _) = words(&standing, &at);
    match (&standing, no_such_candidate(args, &candidates)) {
        (Standing::NoLease, _) => Error::NotFound {
            message: format!("{how} {after}"),
            hint: Some("'kubectl lease leaders' lists those that there are".into()),
        },
        (Standing::Settling { .. }, _) => {
            let stable = humantime::format_duration(args.stable);
            Error::TimedOut { message: format!("{how}, but not for {stable} {after}") }
        }
        (Standing::Other { .. } | Standing::Released | Standing::Expired { .. }, Some(message)) => {
            Error::NotFound {
                message: format!("{message} {after}: {how}"),
                hint: Some("'kubectl lease candidates' lists them".into()),
            }
        }
        _ => {
            let silent = silent(args, &candidates, cluster);
            Error::TimedOut { message: format!("{} does not lead {after}: {how}{silent}", args.leader) }
        }
    }
}

/// That the candidate which is waited for does not take part.
fn silent(args: &WaitForLeader, candidates: &[Candidate], cluster: &Cluster) -> String {
    let now = cluster.server_time();
    let mut its_own = candidates.iter().filter(|candidate| is_named(candidate.name(), &args.leader));
    let lives = |it: &Candidate| !matches!(it.state(now), State::Stale | State::Expired);
    if candidates.is_empty() || its_own.any(lives) {
        return String::new();
    }
    format!("; the candidate of {} does not answer pings", args.leader)
}
