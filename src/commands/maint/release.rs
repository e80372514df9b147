use futures::{StreamExt as _, stream};

use super::{AT_ONCE, Target, dry_run_note, holding, remaining_targets, run::RELEASE, who, writing};
use crate::{
    cli::{DryRun, Release},
    cluster::{Cluster, Object, single::Address},
    domain::{
        holder::{self, Who},
        lease::Lease,
        maintenance::{self, Standing},
    },
    error::{Error, Result},
    exit::ExitCode,
    output::{Printer, prompt},
    session::{Held, Released, within},
};

pub async fn run(args: &Release, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    let (who, targets) =
        tokio::try_join!(who(&args.identity, args.admin, cluster), remaining_targets(&args.nodes, cluster))?;
    // All are looked at, and asked about, before any is written.
    let mut planned: Vec<(Target, Object<Lease>, Who)> = Vec::new();
    for target in targets {
        let name = &target.node.name;
        let whose = match &target.lease {
            // Of a selection, what is ours is meant.
            Some(lease) if !args.nodes.are_named() && !args.force && !who.is(lease.value.holder()) => {
                continue;
            }
            Some(lease) => {
                allowed(args, name, &lease.value, &who, cluster)?.map(|whose| (lease.clone(), whose))
            }
            None => None,
        };
        match whose {
            Some((lease, whose)) => planned.push((target, lease, whose)),
            None if args.nodes.are_named() => printer.done(&format!("{name} is free already"))?,
            None => {}
        }
    }
    if planned.is_empty() && !args.nodes.are_named() {
        printer.note("none of these is yours: nothing to release");
    }
    let note = dry_run_note(&args.write);
    let writing = writing(&args.write);
    let mut outcomes = stream::iter(planned)
        .map(async |(target, lease, whose)| {
            let name = target.node.name;
            let at = Address::new(maintenance::NAMESPACE, &name);
            let held = Held::found(at, whose, lease);
            let released = match args.write.dry_run {
                DryRun::Client => Released::Yes,
                _ => within(RELEASE, held.release(cluster, &writing)).await?,
            };
            match released {
                Released::Yes => Ok(name),
                Released::Unanswered => Err(Error::LostRace {
                    message: format!(
                        "{name} was released, or has changed hands: the answer to its release was lost, and it is not held as it was"
                    ),
                }),
                _ => Err(Error::LostRace {
                    message: format!("{name} changed hands between the look and the write; nothing was released"),
                }),
            }
        })
        .buffered(AT_ONCE);
    // One that cannot be released is no reason to keep the others.
    let mut failure = None;
    let mut told = Ok(());
    while let Some(outcome) = outcomes.next().await {
        match outcome {
            // All are released, whether or not that can be told.
            Ok(name) => told = told.and(printer.done(&format!("{name} released{note}"))),
            Err(error) => {
                if let Some(earlier) = failure.replace(error) {
                    printer.error(&earlier);
                }
            }
        }
    }
    failure.map_or(told.map(|()| ExitCode::Done), Err)
}

/// Whose lease may be released, if any is held; or why not.
fn allowed(args: &Release, name: &str, lease: &Lease, who: &Who, cluster: &Cluster) -> Result<Option<Who>> {
    let now = cluster.server_time();
    let standing = Standing::of(Some(&lease.spec), who, now);
    if standing == Standing::Free {
        return Ok(None);
    }
    let words = format!("{name} is {}", holding(&standing, Some(lease), now));
    let reserved = holder::is_reserved(lease.holder());
    if reserved && !args.admin {
        return Err(Error::Refused {
            message: format!("{words}; an administrator's lease is released with --admin"),
            hint: None,
        });
    }
    if matches!(standing, Standing::Ours { .. }) {
        return Ok(Some(who.clone()));
    }
    if !args.force {
        return Err(Error::Held {
            message: words,
            hint: Some("--force releases what somebody else holds, after a confirmation".into()),
        });
    }
    if !args.confirm {
        if !prompt::possible() {
            return Err(Error::Refused {
                message: format!("{words}, and there is no terminal to ask on"),
                hint: Some("--force --confirm releases it without asking".into()),
            });
        }
        if !prompt::confirm(&format!("{words}. They will not be told. Release it?"))? {
            return Err(Error::Refused { message: "nothing was released".into(), hint: None });
        }
    }
    Ok(Some(Who::exactly(lease.holder())))
}
