use super::{Target, dry_run_note, holding, targets, who, writing};
use crate::{
    cli::{DryRun, Release},
    cluster::{Cluster, Object, leases::Address},
    domain::{
        holder::{self, Who},
        lease::Lease,
        maintenance::{self, Standing},
    },
    error::{Error, Result},
    exit::ExitCode,
    output::{Printer, prompt},
    session::{BootInstant, Held},
};

pub async fn run(args: &Release, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    let (who, targets) =
        tokio::try_join!(who(&args.identity, args.admin, cluster), targets(&args.nodes, cluster))?;
    // All are looked at, and asked about, before any is written.
    let mut releases: Vec<(Target, Object<Lease>, Who)> = Vec::new();
    for target in targets {
        let Some(lease) = target.lease.clone() else { continue };
        if let Some(whose) = allowed(args, &target.node.name, &lease.value, &who, cluster)? {
            releases.push((target, lease, whose));
        } else {
            printer.done(&format!("{} is free already", target.node.name))?;
        }
    }
    for (target, lease, whose) in releases {
        let name = &target.node.name;
        let note = dry_run_note(&args.write);
        if args.write.dry_run != DryRun::Client {
            let at = Address::new(maintenance::NAMESPACE, name);
            let held = Held { at, who: whose, lease, sent: BootInstant::now() };
            if !held.release(cluster, &writing(&args.write)).await? {
                return Err(Error::LostRace {
                    message: format!(
                        "{name} changed hands between the look and the write; nothing was released"
                    ),
                });
            }
        }
        printer.done(&format!("{name} released{note}"))?;
    }
    Ok(ExitCode::Done)
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
