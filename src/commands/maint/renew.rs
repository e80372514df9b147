use std::collections::BTreeMap;

use super::{dry_run_note, report, rows_of, targets, unrenewed_seconds, who, writing};
use crate::{
    cli::{DryRun, Renew},
    commands::interrupts::interrupts,
    error::{Error, Result},
    exit::ExitCode,
    output::{
        Printer,
        taking::TakingReport,
        words::leases::{blocked, not_taken_error},
    },
};
use kube_leases::{
    client::Cluster,
    protocols::{Claim, KnownClaim, NodeTarget, NotTaken, renew_all},
    rules::{
        duration::age,
        holder::{self, Who},
        lease::Lease,
        maintenance::MaintenanceStanding,
        renewal::{NotRenewable, judge_renewal},
        taking::{ClaimObstacle, Terms},
        time::ServerTime,
    },
};

pub async fn run(args: &Renew, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    let seconds = unrenewed_seconds(args.duration, args.admin)?;
    let (who, targets) =
        tokio::try_join!(who(args.identity.holder(), args.admin, cluster), targets(&args.nodes, cluster))?;
    let now = cluster.server_time();
    let mut targets = targets;
    if !args.nodes.are_named() {
        // Of a selection, what is ours is meant.
        let ours = |holder: &str| who.is(holder) && (!args.admin || holder::is_reserved(holder));
        targets.retain(|target| target.lease.as_ref().is_some_and(|lease| ours(lease.value.holder())));
        if targets.is_empty() {
            return Err(Error::NotFound { message: "none of these nodes is held by you".into(), hint: None });
        }
    }
    // All are looked at before any is written.
    for target in &targets {
        check(target, &who, now)?;
    }
    if args.output.output.is_some() {
        printer.keep_for_documents();
    }
    let terms = Terms { renews: true, ignore_medik8s: true, ..Terms::of_command(who.clone(), None) };
    let writing = writing(&args.write);
    let claim = |target: NodeTarget| {
        let claim = Claim::on_node(target.node, terms.clone(), seconds);
        (claim.written(writing.clone()), target.lease)
    };
    let claims: Vec<KnownClaim> = targets.into_iter().map(claim).collect();
    let outcomes: BTreeMap<String, Result<Option<MaintenanceStanding>>> = match args.write.dry_run {
        // It is only imagined how each stood before.
        DryRun::Client => claims.iter().map(|(claim, _)| (claim.name().to_owned(), Ok(None))).collect(),
        _ => renew_all(cluster, &claims, interrupts(), &mut TakingReport::new(printer))
            .await
            .into_iter()
            .map(|(name, outcome)| (name, outcome.map(Some).map_err(not_renewed)))
            .collect(),
    };

    let length = age(jiff::SignedDuration::from_secs(seconds.into()));
    let length = if args.admin { ", held until released".to_owned() } else { format!(" for {length}") };
    let note = dry_run_note(args.write.dry_run);
    // One that cannot be renewed is no reason to let the others run out.
    let mut failure = None;
    let names = claims.iter().map(|(claim, _)| claim.name());
    let interrupted: Vec<_> = names.filter(|name| !outcomes.contains_key(*name)).collect();
    let interrupted = interrupted.join(", ");
    let mut written = Ok(());
    let mut renewed = Vec::new();
    for (name, outcome) in outcomes {
        if outcome.is_ok() {
            renewed.push(name.clone());
        }
        match outcome {
            Ok(Some(before)) if !before.is_valid(now) => {
                let length = length.replacen(" for", ", held for", 1);
                let words = format!("{name} acquired again, your lease had expired{length}{note}");
                written = written.and(printer.done(&words));
            }
            Ok(_) => written = written.and(printer.done(&format!("{name} renewed{length}{note}"))),
            Err(error) => {
                if let Some(earlier) = failure.replace(error) {
                    printer.error(&earlier);
                }
            }
        }
    }
    if !interrupted.is_empty() {
        if let Some(earlier) = failure.replace(Error::Interrupted) {
            printer.error(&earlier);
        }
        printer.warn(&format!("interrupted, not renewed: {interrupted}"));
    }
    if let Some(format) = args.output.output {
        let rows = rows_of(renewed, &who, cluster).await;
        written =
            written.and_then(|()| report(&rows?, format, args.nodes.names().len() == 1, cluster, printer));
    }
    if let (Some(_), Err(unwritten)) = (&failure, &written) {
        printer.error(unwritten);
    }
    failure.map_or(written.map(|()| ExitCode::Done), Err)
}

/// The error for a lease that was not renewed.
fn not_renewed(why: NotTaken) -> Error {
    match why {
        NotTaken::Blocked(found) => not_to_renew(found.name(), found.obstacle(), found.lease(), found.at()),
        why => not_taken_error(why),
    }
}

/// As [`blocked`]; there is nothing to wait for.
fn not_to_renew(name: &str, obstacle: &ClaimObstacle, lease: Option<&Lease>, now: ServerTime) -> Error {
    let mut error = blocked(name, obstacle, lease, now);
    if let Error::Held { hint, .. } = &mut error {
        *hint = Some(format!("'kubectl lease maint status {name}' shows it"));
    }
    error
}

/// Whether a lease may be renewed as it was read.
fn check(target: &NodeTarget, who: &Who, now: ServerTime) -> Result<()> {
    let name = &target.node.name;
    let lease = target.lease.as_ref().map(|lease| &*lease.value);
    let Err(why) = judge_renewal(lease, target.medik8s.as_deref(), who, now) else { return Ok(()) };
    Err(match why {
        NotRenewable::NotAsAdministrator => Error::Refused {
            message: format!("{name} is held by you, but not as an administrator"),
            hint: Some(format!(
                "renew it without --admin; 'kubectl lease maint acquire {name} --admin' holds it until released"
            )),
        },
        NotRenewable::Medik8s { holder } => {
            let mut error = blocked(name, &ClaimObstacle::Medik8s { holder }, lease, now);
            if let Error::Held { message, hint } = &mut error {
                message.push_str(", and your lease had expired");
                *hint = Some(format!("'kubectl lease maint acquire {name} --wait' takes it after medik8s"));
            }
            error
        }
        NotRenewable::NotHeld { standing, as_administrator } => {
            let mut error = not_to_renew(name, &ClaimObstacle::Standing(standing), lease, now);
            if let (true, Error::Held { hint, .. }) = (as_administrator, &mut error) {
                *hint = Some("you hold it as an administrator: --admin renews it".into());
            }
            error
        }
    })
}
