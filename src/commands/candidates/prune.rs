//! `kubectl lease candidates prune`: deletes the candidates that components left behind.

use std::ops::ControlFlow;

use kube_leases::{
    protocols::elections::prune::{self, LeftBehind, NotPruned, PruneOutcome},
    rules::{
        candidate::Candidate,
        choice::{self, Chosen},
        election::CoordinatedElection,
        plan::Plan,
        priority,
        remains::DeathReason,
        time::ServerTime,
    },
};

use super::{confirmation::agree, election::gather};
use crate::{
    cli::{DryRun, Prune},
    commands::dry_run_note,
    connection::Reached,
    error::{Error, Result},
    exit::ExitCode,
    output::{
        Printer,
        words::election::{ago, called, failure, follows},
    },
};

pub async fn run(
    args: &Prune,
    namespace: Option<&str>,
    cluster: &Reached,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let found = gather(namespace, cluster).await?;
    let all = found.all();
    let now = cluster.server_time();
    let chosen = chosen(args, &all)?;
    // A dry run does not even ping.
    let pings = args.write.dry_run == DryRun::None;
    let dead = prune::left_behind(cluster, found.resource, &chosen, pings, now).await;
    let dead = dead.map_err(|why| not_pruned(why, cluster.flags()))?;
    if dead.is_empty() {
        printer.note("no candidate was left behind: all of them are alive");
        return Ok(ExitCode::Done);
    }

    let gone: Vec<_> = dead.iter().map(|dead| &dead.candidate).collect();
    let moves = Plan::without(dead.iter().map(|dead| dead.election), &gone, now);
    let mut words: Vec<_> = dead.iter().map(|dead| line(dead, now)).collect();
    words.push(match dead.len() {
        1 => "This LeaseCandidate is deleted.".into(),
        count => format!("These {count} LeaseCandidates are deleted."),
    });
    words.extend(moves.iter().flat_map(|plan| follows(plan, false)));
    agree(&words, args.yes, args.write.dry_run, cluster, printer)?;

    let note = dry_run_note(args.write.dry_run);
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
        for candidate in gone {
            if report(PruneOutcome::Deleted(candidate)).is_break() {
                break;
            }
        }
    } else {
        let dry_run = args.write.dry_run == DryRun::Server;
        prune::delete(cluster, found.resource, &gone, dry_run, report).await;
    }
    failed.map_or(Ok(ExitCode::Done), Err)
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
            match chosen.iter_mut().find(|(other, _)| other.candidate.metadata.uid == *uid) {
                Some((_, is_named)) => *is_named |= by_name,
                None => chosen.push((one, by_name)),
            }
        }
    }
    Ok(chosen)
}

/// The error for candidates of which none is deleted.
fn not_pruned(why: NotPruned<'_, '_>, flags: &str) -> Error {
    match why {
        NotPruned::Leads(Chosen { election, candidate }) => {
            alive(candidate, &format!("it leads {}", called(election.namespace, election.name)))
        }
        NotPruned::Renews(one) => alive(one.candidate, "it renews"),
        NotPruned::Acknowledges(one) => alive(one.candidate, "it acknowledges a ping"),
        NotPruned::Failed(failed) => failure(failed, None, flags),
    }
}

fn alive(candidate: &Candidate, why: &str) -> Error {
    Error::Refused {
        message: format!("{} was not left behind: {why}", candidate.name()),
        hint: Some("only candidates whose processes are gone are deleted".into()),
    }
}

fn line(LeftBehind { election, candidate, why }: &LeftBehind<'_, '_>, now: ServerTime) -> String {
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
