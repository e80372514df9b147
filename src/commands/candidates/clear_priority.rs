//! `kubectl lease candidates clear-priority`.

use kube_leases::{
    protocols::elections::{
        ElectionFailure,
        clear::{self, ClearRequest},
    },
    rules::{
        choice::{self, Chosen},
        election::CoordinatedElection,
        plan::Plan,
        priority,
        time::ServerTime,
    },
};

use super::{candidate::unclear, confirmation::agree, election::gather, reporter::Reporter};
use crate::{
    cli::{ClearPriority, DryRun},
    commands::{dry_run_note, interrupts::interrupts, writing},
    connection::Reached,
    error::{Error, Result},
    exit::ExitCode,
    output::{
        Printer,
        words::election::{follows, named, of},
    },
};

pub async fn run(
    args: &ClearPriority,
    namespace: Option<&str>,
    cluster: &Reached,
    printer: &mut Printer,
) -> Result<ExitCode> {
    if args.candidates.is_empty() && !args.all && !args.expired {
        return Err(Error::Usage {
            message: "no candidate is named".into(),
            hint: Some("name candidates, or use --all or --expired".into()),
        });
    }
    let found = gather(namespace, cluster).await?;
    let all = found.all();
    let now = cluster.server_time();
    let (marked, plain): (Vec<_>, Vec<_>) =
        chosen(args, &all, now)?.into_iter().partition(|one| priority::is_marked(one.candidate));
    // That nothing reads the output is no reason to keep a priority: it is said in the end.
    let mut unwritten = None;
    for one in &plain {
        if let Err(error) = printer.done(&format!("{} has no priority", one.candidate.name())) {
            unwritten.get_or_insert(error);
        }
    }
    if marked.is_empty() {
        if plain.is_empty() {
            printer.note("no candidate has a priority that would be cleared");
        }
        return unwritten.map_or(Ok(ExitCode::Done), Err);
    }

    // What follows for each election from all that is cleared in it.
    let candidates: Vec<_> = marked.iter().map(|one| one.candidate).collect();
    let plans = Plan::all(marked.iter().map(|one| one.election), &clear::change(&candidates), now);
    let names: Vec<_> = candidates.iter().map(|candidate| candidate.name()).collect();
    let mut words = vec![format!("The priority of {} is cleared.", names.join(", "))];
    words.extend(plans.iter().flat_map(|plan| consequences(plan, args.force)));
    agree(&words, args.yes, args.write.dry_run, cluster, printer)?;

    let mut reporter = Reporter::new(printer, cluster.flags()).with_note(dry_run_note(args.write.dry_run));
    if args.write.dry_run == DryRun::Client {
        for candidate in candidates {
            let _ = reporter.cleared(candidate);
        }
        reporter.end(Ok(()))?;
    } else {
        let request =
            ClearRequest { force: args.force, wait: args.wait.into(), writing: writing(&args.write) };
        let cleared =
            clear::clear(cluster, found.resource, &candidates, plans, &request, &mut reporter, interrupts())
                .await;
        let still_moving = matches!(cleared, Err(ElectionFailure::StillMoving { .. }));
        reporter.end(cleared).map_err(|error| match error {
            Error::TimedOut { message } if still_moving => {
                Error::TimedOut { message: format!("{message}: nothing was cleared; --force does not wait") }
            }
            error => error,
        })?;
    }
    unwritten.map_or(Ok(ExitCode::Done), Err)
}

/// What follows for an election.
fn consequences(plan: &Plan, force: bool) -> Vec<String> {
    match plan.strands {
        Some(_) if force => vec![format!(
            "Leadership of {} is moving: it may be left without a leader ('kubectl lease candidates repair {}' gets it \
             going again).",
            of(plan),
            named(&plan.namespace, &plan.lease)
        )],
        Some(_) => vec![format!(
            "Leadership of {} is moving: the priority is cleared after the handover; the next leader is shown then.",
            of(plan)
        )],
        None => follows(plan, !plan.is_moving),
    }
}

fn chosen<'e, 'a>(
    args: &ClearPriority,
    all: &'e [CoordinatedElection<'a>],
    now: ServerTime,
) -> Result<Vec<Chosen<'e, 'a>>> {
    let lease = args.lease.as_deref();
    let mut chosen = Vec::new();
    for name in &args.candidates {
        let meant = choice::find_marked(name, lease, all, now).map_err(|why| unclear(name, &why))?;
        choice::add(&mut chosen, meant);
    }
    if args.candidates.is_empty() {
        chosen.extend(choice::of_lease(lease, all).filter(|Chosen { candidate, .. }| {
            priority::is_marked(candidate) && (args.all || priority::is_overdue(candidate, now))
        }));
    }
    Ok(chosen)
}
