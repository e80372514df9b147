use super::{dry_run_note, remaining_targets, report, rows_of, who, writing};
use crate::{
    cli::{DryRun, Release},
    error::{Error, Result},
    exit::ExitCode,
    output::{Printer, prompt, words::leases::holding},
};
use kube_leases::{
    client::{Cluster, Object, single::Address},
    protocols::{Held, NodeTarget, Released, release_found},
    rules::{
        holder::Who,
        lease::Lease,
        maintenance,
        release::{self as rule, judge_release},
    },
};

pub async fn run(args: &Release, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    let (who, targets) = tokio::try_join!(
        who(args.identity.holder(), args.admin, cluster),
        remaining_targets(&args.nodes, cluster)
    )?;
    if args.output.output.is_some() {
        printer.keep_for_documents();
    }
    // What is free in the end.
    let mut free = Vec::new();
    // All are looked at, and asked about, before any is written.
    let mut planned: Vec<(NodeTarget, Object<Lease>, Who)> = Vec::new();
    for target in targets {
        let name = &target.node.name;
        let whose = match &target.lease {
            // Of a selection, what is ours is meant.
            Some(lease) if !args.nodes.are_named() && !args.force && !who.is(lease.value.holder()) => {
                continue;
            }
            Some(lease) => {
                allowed(args, name, &lease.value, &who, cluster, printer)?.map(|whose| (lease.clone(), whose))
            }
            None => None,
        };
        match whose {
            Some((lease, whose)) => planned.push((target, lease, whose)),
            None if args.nodes.are_named() => {
                printer.done(&format!("{name} is free already"))?;
                free.push(name.clone());
            }
            None => {}
        }
    }
    if planned.is_empty() && !args.nodes.are_named() {
        printer.note("none of these is yours: nothing to release");
    }
    let note = dry_run_note(args.write.dry_run);
    let found = planned.into_iter().map(|(target, lease, whose)| {
        Held::found(Address::new(maintenance::NAMESPACE, &target.node.name), whose, lease)
    });
    let found: Vec<Held> = found.collect();
    let mut failure = None;
    let mut written = Ok(());
    let outcome = |held: &Held, outcome: kube_leases::Result<Released>| {
        let name = &held.at.name;
        let error = match outcome {
            // All are released, whether or not that can be printed.
            Ok(Released::Yes) => {
                free.push(name.clone());
                let words = format!("{name} released{note}");
                return written = std::mem::replace(&mut written, Ok(())).and(printer.done(&words));
            }
            Ok(Released::Unanswered) => Error::LostRace {
                message: format!("no answer to the release of {name}: it was released or has a new holder"),
            },
            Ok(_) => Error::LostRace {
                message: format!(
                    "conflict: the lease of {name} changed after it was read; nothing was released"
                ),
            },
            Err(error) => error.into(),
        };
        if let Some(earlier) = failure.replace(error) {
            printer.error(&earlier);
        }
    };
    match args.write.dry_run {
        DryRun::Client => {
            let mut outcome = outcome;
            for held in &found {
                outcome(held, Ok(Released::Yes));
            }
        }
        _ => release_found(cluster, &found, &writing(&args.write), outcome).await,
    }
    if let Some(format) = args.output.output {
        let rows = rows_of(free, &who, cluster).await;
        written =
            written.and_then(|()| report(&rows?, format, args.nodes.names().len() == 1, cluster, printer));
    }
    if let (Some(_), Err(unwritten)) = (&failure, &written) {
        printer.error(unwritten);
    }
    failure.map_or(written.map(|()| ExitCode::Done), Err)
}

/// The holder whose lease may be released, if it is held; or why not.
fn allowed(
    args: &Release,
    name: &str,
    lease: &Lease,
    who: &Who,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<Option<Who>> {
    let now = cluster.server_time();
    let words = |standing| format!("{name} is {}", holding(standing, Some(lease), now));
    let (words, holder) = match judge_release(lease, who, now) {
        rule::Release::Free => return Ok(None),
        rule::Release::Own(who) => return Ok(Some(who)),
        rule::Release::Administrators { standing } => {
            return Err(Error::Refused {
                message: format!("{}; an administrator's lease is released with --admin", words(&standing)),
                hint: None,
            });
        }
        rule::Release::Anothers { standing, holder } => (words(&standing), holder),
    };
    if !args.force {
        return Err(Error::Held {
            message: words,
            hint: Some("--force releases the lease of another holder, after a confirmation".into()),
        });
    }
    if !args.confirm {
        if !prompt::possible() {
            return Err(Error::Refused {
                message: format!("{words}, and there is no terminal to ask on"),
                hint: Some("--force --confirm releases it without asking".into()),
            });
        }
        printer.note(&format!("{words}. That holder is not notified."));
        if !prompt::confirm("Release it?")? {
            return Err(Error::Refused { message: "nothing was released".into(), hint: None });
        }
    }
    Ok(Some(holder))
}
