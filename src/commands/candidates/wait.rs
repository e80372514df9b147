//! `candidates wait`: a condition for scripts.

use std::collections::BTreeSet;

use kube_leases::{
    protocols::elections::leadership::{LeadershipOutcome, LeadershipStep, TimedOut, Wanted, until_leads},
    rules::{duration::age, leading::LeaderStanding, lease::short},
};

use super::election::several;
use crate::{
    cli::WaitForLeader,
    commands::{interrupted, namespaces::no_namespace},
    connection::Reached,
    error::{Error, Result},
    exit::ExitCode,
    output::{Printer, progress::WaitLine, words::election::passed},
};

pub async fn run(
    args: &WaitForLeader,
    namespace: Option<&str>,
    cluster: &Reached,
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
    let wanted = Wanted {
        lease: &args.lease,
        namespace,
        leader: &args.leader,
        stable: args.stable,
        within: args.timeout,
    };
    let mut line = WaitLine::default();
    let waiting = until_leads(cluster, &wanted, |look| match look {
        LeadershipStep::NoCandidate(hosts) => {
            printer.note(&format!("{}; waiting for one", no_such_candidate(args, hosts)));
        }
        LeadershipStep::Standing { standing, namespace, elapsed } => {
            let (news, detail) = words(standing, &at(args, namespace));
            line.say(printer, &news, &format!("{detail}{}", passed(elapsed)));
        }
    });
    let outcome = tokio::select! {
        biased;
        error = interrupted() => return Err(error),
        outcome = waiting => outcome?,
    };
    drop(line);
    match outcome {
        LeadershipOutcome::Leads { leader, namespace } => {
            let stable = Some(args.stable).filter(|stable| !stable.is_zero());
            let stable = stable.map(|stable| format!(", for {}", humantime::format_duration(stable)));
            let stable = stable.unwrap_or_default();
            printer.done(&format!("{leader} leads {}{stable}", at(args, namespace.as_deref())))?;
            Ok(ExitCode::Done)
        }
        LeadershipOutcome::Several(namespaces) => {
            let namespaces: Vec<_> = namespaces.iter().map(String::as_str).collect();
            Err(several(&args.lease, &namespaces))
        }
        LeadershipOutcome::TimedOut(how) => Err(in_vain(args, namespace, &how)),
    }
}

/// The lease, with its namespace where it is there.
fn at(args: &WaitForLeader, namespace: Option<&str>) -> String {
    namespace.map_or_else(|| args.lease.clone(), |namespace| format!("{namespace}/{}", args.lease))
}

/// How the lease stands: what is news, and what only the passing of time changes.
fn words(standing: &LeaderStanding, at: &str) -> (String, String) {
    let plain = |words| (words, String::new());
    match standing {
        LeaderStanding::NoLease => plain(format!("there is no lease {at}")),
        LeaderStanding::Released => plain(format!("{at} has no leader")),
        LeaderStanding::Expired { holder } => {
            plain(format!("{at} has no leader: the lease of {} has expired", short(holder)))
        }
        LeaderStanding::Other { leader, preferred: None } | LeaderStanding::Leads { leader } => {
            plain(format!("{} leads {at}", short(leader)))
        }
        LeaderStanding::Other { leader, preferred: Some(preferred) }
        | LeaderStanding::SteppingDown { leader, preferred } => {
            plain(format!("{} leads {at}, and steps down for {}", short(leader), short(preferred)))
        }
        LeaderStanding::Elected { leader } => {
            plain(format!("{} holds {at}, waiting for a renewal", short(leader)))
        }
        LeaderStanding::Settling { leader, left } => {
            (format!("{} leads {at} and renews", short(leader)), format!(", {} more to wait", age(*left)))
        }
    }
}

/// The lease has candidates, and none of them is the one that is meant.
fn no_such_candidate(args: &WaitForLeader, hosts: &BTreeSet<String>) -> String {
    let names = hosts.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    format!("there is no candidate '{}' for {}, only {names}", args.leader, args.lease)
}

/// Why it timed out.
fn in_vain(args: &WaitForLeader, namespace: Option<&str>, how: &TimedOut) -> Error {
    let after = format!("after {}", humantime::format_duration(args.timeout));
    let Some((standing, found)) = &how.last else {
        return Error::TimedOut { message: format!("{} could not be watched {after}", args.lease) };
    };
    let (words, _) = words(standing, &at(args, found.as_deref()));
    match (standing, &how.only) {
        (LeaderStanding::NoLease, _) => match namespace {
            Some(namespace) if !how.has_namespace => no_namespace(namespace),
            _ => Error::NotFound {
                message: format!("{words} {after}"),
                hint: Some("'kubectl lease leaders' lists those that there are".into()),
            },
        },
        (LeaderStanding::Settling { .. }, _) => {
            let stable = humantime::format_duration(args.stable);
            Error::TimedOut { message: format!("{words}, but not for {stable} {after}") }
        }
        (
            LeaderStanding::Other { .. } | LeaderStanding::Released | LeaderStanding::Expired { .. },
            Some(hosts),
        ) => Error::NotFound {
            message: format!("{} {after}: {words}", no_such_candidate(args, hosts)),
            hint: Some("'kubectl lease candidates' lists them".into()),
        },
        _ => {
            let silent = if how.is_silent {
                format!("; the candidate of {} does not acknowledge pings", args.leader)
            } else {
                String::new()
            };
            Error::TimedOut { message: format!("{} does not lead {after}: {words}{silent}", args.leader) }
        }
    }
}
