//! `kubectl lease candidates prune`: deletes the candidates that components left behind.

use futures::future::join_all;

use super::{Election, agree, elections, gather, plan::Plan};
use crate::{
    cli::{DryRun, Prune},
    cluster::{Cluster, Resource, candidates::address, single::Deletion},
    commands::dry_run_note,
    domain::{
        candidate::Candidate,
        duration::age,
        forecast::Forecast,
        priority,
        remains::{Remains, Why, remains},
        time::ServerTime,
    },
    error::{Error, Result},
    exit::ExitCode,
    output::Printer,
    session::handover,
};

pub async fn run(
    args: &Prune,
    namespace: Option<&str>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let found = gather(namespace, cluster).await?;
    let all = elections(&found.parts);
    let now = cluster.server_time();
    let mut dead: Vec<(&Election<'_>, Candidate, Why)> = Vec::new();
    let mut suspected = Vec::new();
    for (election, candidate, by_name) in chosen(args, &all)? {
        let beside: Vec<&Candidate> = election.candidates.iter().map(|(it, _)| *it).collect();
        let leader = election.outlook(now).leader.valid().map(str::to_owned);
        match remains(candidate, &beside, leader.as_deref(), now) {
            Remains::Dead(why) => dead.push((election, candidate.clone(), why)),
            Remains::Suspected(why) => suspected.push((election, candidate, why)),
            Remains::Leader if by_name => {
                return Err(alive(candidate, &format!("it leads {}", election.called())));
            }
            Remains::No if by_name => return Err(alive(candidate, "it renews")),
            Remains::Leader | Remains::No => {}
        }
    }
    // A dry run does not even ping: what is late counts as dead there.
    let silent: Vec<Result<Option<Candidate>>> = match args.write.dry_run {
        DryRun::None => {
            join_all(suspected.iter().map(|(_, it, _)| silent(cluster, found.resource, it))).await
        }
        _ => suspected.iter().map(|(_, it, _)| Ok(Some(Candidate::clone(it)))).collect(),
    };
    for ((election, candidate, why), silent) in suspected.into_iter().zip(silent) {
        match silent {
            Ok(Some(now)) => dead.push((election, now, why)),
            Ok(None) if args.names.iter().any(|name| name == candidate.name()) => {
                return Err(alive(candidate, "it answers a ping"));
            }
            Ok(None) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    if dead.is_empty() {
        printer.note("no candidate was left behind: all of them are alive");
        return Ok(ExitCode::Done);
    }

    dead.sort_by(|(a, x, _), (b, y, _)| (a.called(), x.name()).cmp(&(b.called(), y.name())));
    let mut words: Vec<_> = dead.iter().map(|(election, it, why)| line(election, it, why, now)).collect();
    words.push(match dead.len() {
        1 => "This LeaseCandidate is deleted.".into(),
        count => format!("These {count} LeaseCandidates are deleted."),
    });
    words.extend(moves(&dead, now));
    agree(&words, args.yes, args.write.dry_run, cluster, printer)?;

    let note = dry_run_note(&args.write);
    let mut failure = None;
    for (_, candidate, _) in &dead {
        let deletion = Deletion {
            uid: &candidate.metadata.uid,
            resource_version: &candidate.metadata.resource_version,
            grace_seconds: None,
            dry_run: args.write.dry_run == DryRun::Server,
        };
        let deleted = match args.write.dry_run {
            DryRun::Client => Ok(()),
            _ => cluster.delete(found.resource, &address(candidate), &deletion).await,
        };
        let name = candidate.name();
        let error = match deleted {
            Ok(()) => {
                printer.done(&format!("leasecandidate.{} \"{name}\" deleted{note}", found.resource.group))?;
                continue;
            }
            // The garbage collector was faster.
            Err(error) if error.is_not_found() => continue,
            Err(error) if error.is_conflict() => Error::LostRace {
                message: format!("{name} was written meanwhile, and may be alive: not deleted"),
            },
            Err(error) => error,
        };
        if let Some(earlier) = failure.replace(error) {
            printer.error(&earlier);
        }
    }
    failure.map_or(Ok(ExitCode::Done), Err)
}

/// Where the lead moves when these candidates are gone: one that does not answer can keep a better one from
/// being elected, by its strategy.
fn moves(dead: &[(&Election<'_>, Candidate, Why)], now: ServerTime) -> Vec<String> {
    // An expired one counts for nothing, as one that is deleted.
    let gone = |it: &Candidate| {
        let is_dead = dead.iter().any(|(_, dead, _)| dead.metadata.uid == it.metadata.uid);
        is_dead.then(|| {
            let mut gone = it.clone();
            gone.spec.renew_time = None;
            gone
        })
    };
    let mut plans: Vec<Plan> = Vec::new();
    for (election, ..) in dead {
        if !plans.iter().any(|plan| plan.called == election.called()) {
            plans.push(Plan::new(election, &gone, now));
        }
    }
    let changes = |plan: &&Plan| !plan.is_moving && plan.forecast != Forecast::Stays;
    plans.iter().filter(changes).flat_map(|plan| plan.words(false)).collect()
}

/// A candidate as it is after a ping that it did not answer; `None` where it is alive.
async fn silent(cluster: &Cluster, resource: Resource, candidate: &Candidate) -> Result<Option<Candidate>> {
    if handover::answers(cluster, resource, candidate, handover::FRESH).await?.is_some() {
        return Ok(None);
    }
    let now = handover::read_again(cluster, resource, candidate).await?;
    Ok(now.owes_an_answer().then_some(now))
}

type Chosen<'e, 'a> = (&'e Election<'a>, &'a Candidate, bool);

/// The candidates that are meant: of leases, by their names or hosts, or all; and whether it is by their own
/// names.
fn chosen<'e, 'a>(args: &Prune, all: &'e [Election<'a>]) -> Result<Vec<Chosen<'e, 'a>>> {
    let every =
        || all.iter().flat_map(|election| election.candidates.iter().map(move |(it, _)| (election, *it)));
    if args.names.is_empty() {
        return Ok(every().map(|(election, it)| (election, it, false)).collect());
    }
    let mut chosen: Vec<Chosen<'e, 'a>> = Vec::new();
    for name in &args.names {
        let lease = every().filter(|(election, _)| election.name == name).map(|(e, it)| (e, it, false));
        let named = every().filter(|(_, it)| it.name() == name).map(|(e, it)| (e, it, true));
        let host = every().filter(|(_, it)| it.host() == name).map(|(e, it)| (e, it, false));
        let ways: [Vec<Chosen<'e, 'a>>; 3] = [lease.collect(), named.collect(), host.collect()];
        let Some(found) = ways.into_iter().find(|found| !found.is_empty()) else {
            return Err(Error::NotFound {
                message: format!("there is no candidate '{name}', and no lease '{name}' that has candidates"),
                hint: Some("'kubectl lease candidates' lists them".into()),
            });
        };
        for one in found {
            if !chosen.iter().any(|(_, it, _)| it.metadata.uid == one.1.metadata.uid) {
                chosen.push(one);
            }
        }
    }
    Ok(chosen)
}

fn alive(candidate: &Candidate, why: &str) -> Error {
    Error::Refused {
        message: format!("{} was not left behind: {why}", candidate.name()),
        hint: Some("only candidates whose processes are gone are deleted".into()),
    }
}

fn line(election: &Election<'_>, candidate: &Candidate, why: &Why, now: ServerTime) -> String {
    let ago =
        |time: Option<jiff::Timestamp>| time.map_or("never".into(), |time| age(now.since(time)) + " ago");
    let spec = &candidate.spec;
    let why = match why {
        Why::Silent => format!("did not answer a ping, last renewed {}", ago(spec.renew_time)),
        Why::Overdue => format!("last renewed {}", ago(spec.renew_time)),
        Why::Expired => format!("expired, last renewed {}", ago(spec.renew_time)),
        Why::Superseded(newer) => {
            format!("{newer} of the same host came after it, last renewed {}", ago(spec.renew_time))
        }
    };
    let priority = if priority::is_marked(candidate) { "; its priority goes with it" } else { "" };
    format!("{} for {}: {why}{priority}", candidate.name(), election.called())
}
