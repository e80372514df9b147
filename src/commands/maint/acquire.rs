use super::{
    claims, confirm_reasons, dry_run_note, report, row::MaintenanceRow, targets, tell_remarks, terms,
    unrenewed_seconds, who, writing,
};
use crate::{
    cli::{Acquire, DryRun},
    commands::interrupts::interrupts,
    error::Result,
    exit::ExitCode,
    output::{
        Printer,
        taking::{self, TakingReport},
        words::leases::{blocked_node, not_taken_error},
    },
};
use kube_leases::{
    client::Cluster,
    protocols::{Held, KnownClaim, NodeTarget, TakenLease, check_all, release_all, take_all},
    rules::{duration::age, holder::Who, maintenance::MaintenanceStanding, taking::Terms},
};

pub async fn run(args: &Acquire, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    let typed = &args.acquiring;
    let seconds = unrenewed_seconds(args.duration, args.admin)?;
    let (who, mut targets) =
        tokio::try_join!(who(typed.identity.holder(), args.admin, cluster), targets(&typed.nodes, cluster))?;
    tell_remarks(cluster, printer);
    if args.output.output.is_some() {
        printer.keep_for_documents();
    }
    let mut terms = terms(Terms::of_command(who.clone(), typed.reason.clone()), &typed.taking);
    let asks = args.write.dry_run == DryRun::None;
    terms.overwrites_reason =
        confirm_reasons(typed.yes, asks, &mut targets, &terms, cluster, printer).await?;
    let looked_at = targets.clone();
    let claims = claims(targets, &terms, seconds, typed.wait.into(), &writing(&args.write))?;
    if args.write.dry_run == DryRun::Client {
        imagine(&claims, cluster, printer)?;
        return document(args, looked_at, &[], &who, cluster, printer).map(|()| ExitCode::Done);
    }
    let taken =
        take_all(cluster, &claims, typed.wait.into(), interrupts(), &mut TakingReport::new(printer)).await;
    let taken = taken.map_err(not_taken_error)?;
    let written = print(args, &taken, cluster, printer)
        .and_then(|()| document(args, looked_at, &taken, &who, cluster, printer));
    // What cannot be printed is not kept; a reader that closed the pipe (`… | head`) has what it wanted.
    if written.as_ref().is_err_and(|error| !error.is_silent()) && args.write.dry_run == DryRun::None {
        let held: Vec<Held> = taken.into_iter().map(|(held, _)| held).collect();
        let outcomes = release_all(cluster, &held, false, interrupts()).await;
        taking::released(&held, outcomes, printer);
    }
    written.map(|()| ExitCode::Done)
}

/// `-o`: the nodes with the leases as they were written; if they were not, as they were read.
fn document(
    args: &Acquire,
    targets: Vec<NodeTarget>,
    taken: &[TakenLease],
    who: &Who,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<()> {
    let Some(format) = args.output.output else { return Ok(()) };
    let now = cluster.server_time();
    let row = |target: NodeTarget| {
        let held = taken.iter().map(|(held, _)| held).find(|held| held.at.name == target.node.name);
        let lease = held.map(Held::lease).or(target.lease);
        MaintenanceRow::new(NodeTarget { lease, ..target }, who, now)
    };
    let rows: Vec<_> = targets.into_iter().map(row).collect();
    report(&rows, format, args.acquiring.nodes.names().len() == 1, cluster, printer)
}

/// What was acquired.
fn print(args: &Acquire, taken: &[TakenLease], cluster: &Cluster, printer: &mut Printer) -> Result<()> {
    let seconds = unrenewed_seconds(args.duration, args.admin)?;
    let note = dry_run_note(args.write.dry_run);
    for (held, before) in taken {
        let name = &held.at.name;
        let how = match before {
            MaintenanceStanding::Ours { .. } => "renewed, it was yours already".to_owned(),
            MaintenanceStanding::Expired { holder, .. } if held.who.is(holder) => {
                "acquired again, your lease had expired".to_owned()
            }
            MaintenanceStanding::Expired { holder, .. } => {
                format!("taken over from '{holder}', whose lease had expired")
            }
            _ => "acquired".to_owned(),
        };
        let until = if args.admin {
            "until released".to_owned()
        } else {
            format!("for {}", age(held_for(held, seconds, cluster)))
        };
        printer.done(&format!("{name} {how}, held by {} {until}{note}", held.who))?;
    }
    Ok(())
}

/// For how long a lease is held that was just taken for so many seconds: one that was held already is not
/// shortened.
fn held_for(held: &Held, seconds: i32, cluster: &Cluster) -> jiff::SignedDuration {
    let asked = jiff::SignedDuration::from_secs(seconds.into());
    let until = held.lease().value.expires();
    let left = until.map_or(asked, |until| until.duration_since(cluster.server_time().0));
    // Not counting the moments since.
    if (asked - left).abs() <= jiff::SignedDuration::from_secs(2) { asked } else { left }
}

/// What would be done, by what is known here.
fn imagine(claims: &[KnownClaim], cluster: &Cluster, printer: &mut Printer) -> Result<()> {
    check_all(cluster, claims).map_err(|blocked| blocked_node(&blocked))?;
    for (claim, _) in claims {
        printer.done(&format!("{} acquired, held by {} (dry run)", claim.name(), claim.who()))?;
    }
    Ok(())
}
