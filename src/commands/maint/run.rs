use super::{claims, confirm_reasons, targets, tell_remarks, terms, who};
use crate::{
    cli::{DryRun, Run},
    commands::{interrupts::interrupts, under},
    error::{Error, Result},
    exit::ExitCode,
    output::{
        Printer,
        taking::TakingReport,
        words::leases::{blocked, blocked_node, not_taken_error},
    },
};
use kube_leases::{
    client::{Cluster, single::Writing},
    protocols::{Held, NodeTarget, check_all, process_suffix, take_all},
    rules::{
        deadline::Schedule,
        holder::Who,
        maintenance::MaintenanceStanding,
        taking::{ClaimObstacle, Terms},
    },
};

pub async fn run(args: &Run, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    let typed = &args.acquiring;
    let program = under::program()?;
    let (who, mut targets) =
        tokio::try_join!(who(typed.identity.holder(), args.admin, cluster), targets(&typed.nodes, cluster))?;
    tell_remarks(cluster, printer);
    if !args.admin && !typed.wait.is_set() {
        targets.iter().try_for_each(|target| check_administrators(target, &who, cluster))?;
    }
    let mut terms = terms(Terms::of_process(who, &process_suffix(), typed.reason.clone()), &typed.taking);
    let asks = args.trial.dry_run == DryRun::None;
    terms.overwrites_reason =
        confirm_reasons(typed.yes, asks, &mut targets, &terms, cluster, printer).await?;
    let seconds = i32::try_from(args.duration.as_secs()).unwrap_or(i32::MAX);
    let claims = claims(
        targets,
        &terms,
        seconds,
        typed.wait.into(),
        &Writing { dry_run: args.trial.dry_run == DryRun::Server, ..Writing::default() },
    )?;
    if args.trial.dry_run == DryRun::Client {
        check_all(cluster, &claims).map_err(|blocked| blocked_node(&blocked))?;
        let names = claims.iter().map(|(claim, _)| claim.name());
        return under::imagine(names, &args.command, args.trial.dry_run, printer);
    }
    let taken =
        take_all(cluster, &claims, typed.wait.into(), interrupts(), &mut TakingReport::new(printer)).await;
    let held: Vec<Held> = taken.map_err(not_taken_error)?.into_iter().map(|(held, _)| held).collect();
    if args.trial.dry_run == DryRun::Server {
        return under::imagine(
            held.iter().map(|held| held.at.name.as_str()),
            &args.command,
            args.trial.dry_run,
            printer,
        );
    }
    under::run(&held, Schedule::new(args.duration), &program, &args.command, cluster, printer).await
}

/// A lease that one holds oneself as an administrator is in the way, too.
fn check_administrators(target: &NodeTarget, who: &Who, cluster: &Cluster) -> Result<()> {
    let Some(lease) = target.lease.as_ref().map(|lease| &*lease.value) else { return Ok(()) };
    if !who.holds_as_administrator(lease.holder()) {
        return Ok(());
    }
    let obstacle = ClaimObstacle::Standing(MaintenanceStanding::Admin { holder: lease.holder().to_owned() });
    let mut error = blocked(&target.node.name, &obstacle, Some(lease), cluster.server_time());
    if let Error::Held { hint, .. } = &mut error {
        *hint = Some("you hold it as an administrator: --admin keeps it, and restores it afterwards".into());
    }
    Err(error)
}
