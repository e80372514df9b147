//! `kubectl lease maint`.

mod acquire;
mod list;
mod release;
mod renew;
mod row;
mod run;
mod status;

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::SignedDuration;

use crate::{
    cli::{self, Maint},
    error::{Error, Result},
    exit::ExitCode,
    output::{
        Format, Printer, prompt,
        words::leases::{blocked_node, in_the_way},
    },
};
use kube_leases::{
    client::{Cluster, single::Writing},
    protocols::{self, KnownClaim, NodeTarget, Selection, Wait},
    rules::{
        holder::Who,
        maintenance,
        taking::{ClaimObstacle, OverwritesReason, Terms},
    },
};

use self::row::MaintenanceRow;
use super::{dry_run_note, holder::who, tell_remarks, writing};

/// How many nodes are asked about at once.
const AT_ONCE: usize = 32;

pub async fn run(verb: &Maint, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    match verb {
        Maint::Acquire(args) => acquire::run(args, cluster, printer).await,
        Maint::Renew(args) => renew::run(args, cluster, printer).await,
        Maint::Release(args) => release::run(args, cluster, printer).await,
        Maint::Status(args) => status::run(args, cluster, printer).await,
        Maint::List(args) => list::run(args, cluster, printer).await,
        Maint::Run(args) => run::run(args, cluster, printer).await,
    }
}

/// The nodes that are meant, with all that is known of them, by name.
async fn targets(which: &cli::Nodes, cluster: &Cluster) -> Result<Vec<NodeTarget>> {
    Ok(protocols::targets(cluster, &selection(which, false)?).await?)
}

/// As [`targets`], and of nodes that were deleted the leases that were left.
async fn remaining_targets(which: &cli::Nodes, cluster: &Cluster) -> Result<Vec<NodeTarget>> {
    Ok(protocols::targets(cluster, &selection(which, true)?).await?)
}

fn selection(which: &cli::Nodes, deleted_too: bool) -> Result<Selection> {
    if !which.are_named() && which.selector.is_none() && !which.all {
        return Err(Error::Usage {
            message: "no node is named".into(),
            hint: Some("name nodes, or use -l LABELS or --all".into()),
        });
    }
    Ok(Selection { names: which.names().to_vec(), labels: which.selector.clone(), deleted_too })
}

/// `-o`: how nodes stand after what was done, by the leases as they were written, or as they are read again. One that
/// was named is a document, all else a list.
fn report(
    rows: &[MaintenanceRow],
    format: Format,
    is_named: bool,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<()> {
    match rows {
        [one] if is_named => printer.single(one, format, true, cluster.server_time()),
        all => printer.listing(all, format, true, cluster.server_time()),
    }
}

/// How these nodes stand now.
async fn rows_of(names: Vec<String>, who: &Who, cluster: &Cluster) -> Result<Vec<MaintenanceRow>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let which = Selection { names, labels: None, deleted_too: true };
    let (targets, now) = (protocols::targets(cluster, &which).await?, cluster.server_time());
    Ok(targets.into_iter().map(|target| MaintenanceRow::new(target, who, now)).collect())
}

/// The seconds of a lease that is not renewed.
fn unrenewed_seconds(duration: Duration, admin: bool) -> Result<i32> {
    if !admin
        && SignedDuration::try_from(duration).is_ok_and(|duration| duration > maintenance::LONGEST_UNRENEWED)
    {
        return Err(Error::Usage {
            message: format!(
                "--duration {} is over 1h, the most without --admin for a lease that is not renewed",
                humantime::format_duration(duration)
            ),
            hint: Some(
                "'kubectl lease maint run NODE -- COMMAND' renews while a command runs; --admin holds until \
                 released"
                    .into(),
            ),
        });
    }
    Ok(i32::try_from(duration.as_secs()).unwrap_or(i32::MAX))
}

/// What is accepted beside, as typed.
fn terms(terms: Terms, taking: &cli::Taking) -> Terms {
    Terms { take_malformed: taking.take_malformed, ignore_medik8s: taking.ignore_medik8s, ..terms }
}

/// The claims on these nodes; refused where medik8s holds one, unless that is waited for.
fn claims(
    targets: Vec<NodeTarget>,
    terms: &Terms,
    seconds: i32,
    wait: Wait,
    writing: &Writing,
) -> Result<Vec<KnownClaim>> {
    protocols::claims(targets, terms, seconds, wait, writing).map_err(|blocked| blocked_node(&blocked))
}

/// Which reasons of leases that are held already may be overwritten: they may be those of a colleague
/// with the same user and host. After a question, which may be open for long, medik8s' leases are read again:
/// one's own lease may have run out meanwhile, and the node be in medik8s' hands.
async fn confirm_reasons(
    yes: bool,
    asks: bool,
    targets: &mut [NodeTarget],
    terms: &Terms,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<OverwritesReason> {
    if yes {
        return Ok(OverwritesReason::Any);
    }
    if !asks || !prompt::possible() {
        return Ok(OverwritesReason::None);
    }
    let now = cluster.server_time();
    let mut confirmed = Vec::new();
    for target in &*targets {
        let lease = target.lease.as_ref().map(|lease| &*lease.value);
        if let Err(obstacle) = terms.judge(lease, false, now)
            && let ClaimObstacle::OtherReason { reason, .. } = &obstacle
        {
            let words = in_the_way(&obstacle, lease, now);
            printer.note(&format!("{} is {words}", target.node.name));
            if !prompt::confirm("Replace the reason?")? {
                return Err(Error::Refused { message: "nothing was acquired".into(), hint: None });
            }
            confirmed.push(reason.clone());
        }
    }
    if !confirmed.is_empty() {
        let read = async |target: &mut NodeTarget| {
            target.medik8s = cluster.medik8s_holder(&target.node.name).await?;
            Ok::<(), Error>(())
        };
        stream::iter(targets).map(Ok).try_for_each_concurrent(AT_ONCE, read).await?;
    }
    Ok(OverwritesReason::These(confirmed))
}
