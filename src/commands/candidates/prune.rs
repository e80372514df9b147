//! `kubectl lease candidates prune`: deletes the candidates that components left behind.

use std::ops::ControlFlow;

use kube_leases::{
    client::Cluster,
    protocols::elections::{
        ElectionFailure,
        prune::{self, PruneOutcome, Silence},
    },
    rules::{
        candidate::Candidate,
        choice::{self, Chosen},
        election::CoordinatedElection,
        plan::Plan,
        priority,
        remains::{DeathReason, Remains, expired, remains},
        time::ServerTime,
    },
};

use super::{confirmation::agree, election::gather};
use crate::{
    cli::{DryRun, Prune},
    commands::dry_run_note,
    error::{Error, Result},
    exit::ExitCode,
    output::{
        Printer,
        words::election::{ago, called, failure, follows},
    },
};

/// A candidate that was left behind, as it was read last.
struct Dead<'e, 'a> {
    election: &'e CoordinatedElection<'a>,
    candidate: Candidate,
    why: DeathReason,
}

pub async fn run(
    args: &Prune,
    namespace: Option<&str>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let found = gather(namespace, cluster).await?;
    let all = found.all();
    let now = cluster.server_time();
    let mut dead: Vec<Dead<'_, '_>> = Vec::new();
    let mut suspected = Vec::new();
    for (Chosen { election, candidate }, by_name) in chosen(args, &all)? {
        let leader = election.outlook(now).leader.valid().map(str::to_owned);
        match remains(candidate, &election.candidates, leader.as_deref(), now) {
            Remains::Dead(why) => dead.push(Dead { election, candidate: candidate.clone(), why }),
            Remains::Suspected(why) => suspected.push((election, candidate, why)),
            Remains::Leader if by_name => {
                let why = format!("it leads {}", called(election.namespace, election.name));
                return Err(alive(candidate, &why));
            }
            Remains::No if by_name => return Err(alive(candidate, "it renews")),
            Remains::Leader | Remains::No => {}
        }
    }
    // A dry run does not even ping: what is late counts as dead there.
    let candidates: Vec<_> = suspected.iter().map(|(_, it, _)| *it).collect();
    let looks: Vec<Result<Silence, ElectionFailure>> = match args.write.dry_run {
        DryRun::None => prune::look_again(cluster, found.resource, &candidates).await,
        _ => candidates.iter().map(|it| Ok(Silence::Silent(Box::new(Candidate::clone(it))))).collect(),
    };
    for ((election, candidate, why), look) in suspected.into_iter().zip(looks) {
        match look {
            Ok(Silence::Silent(now)) => dead.push(Dead { election, candidate: *now, why }),
            Ok(Silence::Alive) if args.names.iter().any(|name| name == candidate.name()) => {
                return Err(alive(candidate, "it acknowledges a ping"));
            }
            Ok(Silence::Alive | Silence::Gone) => {}
            Err(failed) => return Err(failure(failed, None, cluster.flags())),
        }
    }
    if dead.is_empty() {
        printer.note("no candidate was left behind: all of them are alive");
        return Ok(ExitCode::Done);
    }

    dead.sort_by(|a, b| (a.election.key(), a.candidate.name()).cmp(&(b.election.key(), b.candidate.name())));
    let mut words: Vec<_> = dead.iter().map(|dead| line(dead, now)).collect();
    words.push(match dead.len() {
        1 => "This LeaseCandidate is deleted.".into(),
        count => format!("These {count} LeaseCandidates are deleted."),
    });
    words.extend(moves(&dead, now).iter().flat_map(|plan| follows(plan, false)));
    agree(&words, args.yes, args.write.dry_run, cluster, printer)?;

    let note = dry_run_note(&args.write);
    let candidates: Vec<_> = dead.iter().map(|dead| &dead.candidate).collect();
    let mut failed: Option<Error> = None;
    let mut report = |outcome: PruneOutcome<'_>| {
        let error = match outcome {
            PruneOutcome::Deleted(candidate) => {
                let done =
                    format!("leasecandidate.{} \"{}\" deleted{note}", found.resource.group, candidate.name());
                match printer.done(&done) {
                    Ok(()) => return ControlFlow::Continue(()),
                    Err(error) => {
                        failed = Some(error);
                        return ControlFlow::Break(());
                    }
                }
            }
            PruneOutcome::Failed(problem) => failure(problem, None, cluster.flags()),
        };
        if let Some(earlier) = failed.replace(error) {
            printer.error(&earlier);
        }
        ControlFlow::Continue(())
    };
    if args.write.dry_run == DryRun::Client {
        for candidate in candidates {
            if report(PruneOutcome::Deleted(candidate)).is_break() {
                break;
            }
        }
    } else {
        let dry_run = args.write.dry_run == DryRun::Server;
        prune::delete(cluster, found.resource, &candidates, dry_run, report).await;
    }
    failed.map_or(Ok(ExitCode::Done), Err)
}

/// Where leadership moves when these candidates are gone: one that does not acknowledge pings can keep a better one
/// from being elected, by its strategy.
fn moves(dead: &[Dead<'_, '_>], now: ServerTime) -> Vec<Plan> {
    let gone = |it: &Candidate| {
        let is_dead = dead.iter().any(|dead| dead.candidate.metadata.uid == it.metadata.uid);
        is_dead.then(|| expired(it))
    };
    let mut plans = Plan::all(dead.iter().map(|dead| dead.election), &gone, now);
    plans.retain(Plan::moves_by_the_change);
    plans
}

/// The candidates that are meant: of leases, by their names or hosts, or all; and whether it is by their own
/// names.
fn chosen<'e, 'a>(args: &Prune, all: &'e [CoordinatedElection<'a>]) -> Result<Vec<(Chosen<'e, 'a>, bool)>> {
    if args.names.is_empty() {
        return Ok(choice::of_lease(None, all).map(|one| (one, false)).collect());
    }
    let mut chosen: Vec<(Chosen<'e, 'a>, bool)> = Vec::new();
    for name in &args.names {
        let (found, by_name) = choice::find_all(name, all);
        if found.is_empty() {
            return Err(Error::NotFound {
                message: format!("there is no candidate '{name}', and no lease '{name}' that has candidates"),
                hint: Some("'kubectl lease candidates' lists them".into()),
            });
        }
        for one in found {
            let uid = &one.candidate.metadata.uid;
            if !chosen.iter().any(|(other, _)| other.candidate.metadata.uid == *uid) {
                chosen.push((one, by_name));
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

fn line(Dead { election, candidate, why }: &Dead<'_, '_>, now: ServerTime) -> String {
    let renewed = format!("last renewed {}", ago(candidate.spec.renew_time, now));
    let why = match why {
        DeathReason::Silent => format!("did not acknowledge a ping, {renewed}"),
        DeathReason::Overdue => renewed,
        DeathReason::Expired => format!("expired, {renewed}"),
        DeathReason::Superseded(newer) => format!("{newer} of the same host came after it, {renewed}"),
    };
    let priority = if priority::is_marked(candidate) { "; its priority goes with it" } else { "" };
    format!("{} for {}: {why}{priority}", candidate.name(), called(election.namespace, election.name))
}
