//! `kubectl lease hold`.

use super::{holder::who, interrupts::interrupts, under};
use crate::{
    cli::{DryRun, Hold},
    error::{Error, Result},
    exit::ExitCode,
    output::{
        Printer,
        taking::TakingReport,
        words::leases::{blocked, holding, not_taken_error},
    },
};
use kube_leases::{
    client::{
        Cluster,
        single::{Address, Writing},
    },
    protocols::{Claim, NotTaken, acquire_observed, check_all, process_suffix},
    rules::{
        deadline::Schedule,
        maintenance::{self, MaintenanceStanding},
        node::HEARTBEATS,
        taking::{ClaimObstacle, Terms},
    },
};

pub async fn run(args: &Hold, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    let program = under::program()?;
    let at = Address::new(cluster.namespace(), &args.name);
    check_namespace(&at)?;
    let (who, lease) = tokio::try_join!(who(args.identity.holder(), false, cluster), async {
        Ok(cluster.lease(&at).await?)
    })?;
    if lease.as_ref().is_some_and(|lease| lease.value.spec.strategy.is_some()) {
        return Err(Error::Refused {
            message: format!(
                "'{}' is managed by coordinated leader election, which chooses its holder itself",
                args.name
            ),
            hint: Some("hold another lease".into()),
        });
    }
    let who = if args.identity.holder().is_some() { who } else { who.unique(&process_suffix()) };
    let seconds = i32::try_from(args.duration.as_secs()).unwrap_or(i32::MAX);
    let claim = Claim::new(at, Terms::observed(who), seconds)
        .written(Writing { dry_run: args.trial.dry_run == DryRun::Server, ..Writing::default() });
    if args.trial.dry_run == DryRun::Client {
        let known = [(claim, lease)];
        check_all(cluster, &known).map_err(|blocked| not_held(NotTaken::Blocked(blocked)))?;
        return under::imagine([args.name.as_str()].into_iter(), &args.command, args.trial.dry_run, printer);
    }
    let mut progress = TakingReport::new(printer);
    let held = acquire_observed(cluster, &claim, lease, args.wait.into(), interrupts(), &mut progress).await;
    let held = held.map_err(not_held)?;
    if args.trial.dry_run == DryRun::Server {
        return under::imagine([args.name.as_str()].into_iter(), &args.command, args.trial.dry_run, printer);
    }
    under::run(&[held], Schedule::new(args.duration), &program, &args.command, cluster, printer).await
}

/// Leases that are there for something else.
fn check_namespace(at: &Address) -> Result<()> {
    if at.namespace == HEARTBEATS {
        return Err(Error::Refused {
            message: format!(
                "the leases in {HEARTBEATS} are node heartbeats: renewing one would make a dead node look alive"
            ),
            hint: Some("'kubectl lease maint run NODE -- COMMAND' holds a node for maintenance".into()),
        });
    }
    if at.namespace == maintenance::NAMESPACE {
        return Err(Error::Refused {
            message: format!(
                "the leases in {} are those of nodes, which medik8s may hold too",
                maintenance::NAMESPACE
            ),
            hint: Some(format!("'kubectl lease maint run {} -- COMMAND' holds a node", at.name)),
        });
    }
    Ok(())
}

/// The error for a lease that was not taken.
fn not_held(why: NotTaken) -> Error {
    let NotTaken::Blocked(found) = why else { return not_taken_error(why) };
    let (name, obstacle, at) = (found.name(), found.obstacle(), found.at());
    if let ClaimObstacle::Standing(standing @ MaintenanceStanding::Malformed { .. }) = obstacle {
        return Error::Refused {
            message: format!("'{name}' is {}", holding(standing, found.lease(), at)),
            hint: Some("find out what that holder is, and delete the lease if it is gone".into()),
        };
    }
    let mut error = blocked(&format!("'{name}'"), obstacle, found.lease(), at);
    if let (ClaimObstacle::Standing(MaintenanceStanding::Ours { .. }), Error::Held { hint, .. }) =
        (obstacle, &mut error)
    {
        *hint = Some("--wait takes it when that command has ended; or use another --holder".into());
    }
    error
}
