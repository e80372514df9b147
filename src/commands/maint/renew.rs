use std::{cell::RefCell, collections::BTreeMap, slice};

use futures::{StreamExt as _, stream};
use tokio::time::Instant;

use super::{
    AT_ONCE, Target,
    acquire::{Known, OUTAGE, settle_owners},
    blocked, dry_run_note, targets, terms, undo, unrenewed_seconds, who, writing,
};
use crate::{
    cli::{self, DryRun, Renew},
    cluster::{Cluster, Object},
    commands::interrupted,
    domain::{
        duration::age,
        holder::{self, Who},
        lease::Lease,
        maintenance::Standing,
        taking::{Obstacle, Rule, Terms},
        time::ServerTime,
    },
    error::{Error, Result},
    exit::ExitCode,
    output::Printer,
    session::{Claim, Took},
};

pub async fn run(args: &Renew, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    let seconds = unrenewed_seconds(args.duration, args.admin)?;
    let (who, targets) =
        tokio::try_join!(who(&args.identity, args.admin, cluster), targets(&args.nodes, cluster))?;
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
        check(target, &who, args.admin, now)?;
    }
    let taking = cli::Taking { take_malformed: false, ignore_medik8s: true };
    let terms = Terms { renews: true, ..terms(who, Rule::Command, None, &taking) };
    let writing = writing(&args.write);
    let claim = |target: Target| {
        let mut claim = Claim::on_node(target.node, terms.clone(), seconds);
        claim.writing = writing.clone();
        (claim, target.lease)
    };
    let claims: Vec<Known> = targets.into_iter().map(claim).collect();
    let outcomes = renew_all(&claims, args.write.dry_run, cluster).await;
    // A write that failed, or was interrupted, may still arrive.
    let failed = |(claim, _): &&Known| !matches!(outcomes.get(&claim.at.name), Some(Ok(_)));
    let failed: Vec<Claim> = claims.iter().filter(failed).map(|(claim, _)| claim.clone()).collect();
    undo(&failed, cluster, printer).await;

    let length = age(jiff::SignedDuration::from_secs(seconds.into()));
    let length = if args.admin { ", held until released".to_owned() } else { format!(" for {length}") };
    let note = dry_run_note(&args.write);
    // One that cannot be renewed is no reason to let the others run out.
    let mut failure = None;
    let is_interrupted = |claim: &&Claim| !outcomes.contains_key(&claim.at.name);
    let interrupted: Vec<_> =
        failed.iter().filter(is_interrupted).map(|claim| claim.at.name.as_str()).collect();
    let mut told = Ok(());
    for (name, outcome) in outcomes {
        match outcome {
            Ok(Some(before)) if !before.is_valid(now) => {
                let length = length.replacen(" for", ", held for", 1);
                let words = format!("{name} acquired again, your time had run out{length}{note}");
                told = told.and(printer.done(&words));
            }
            Ok(_) => told = told.and(printer.done(&format!("{name} renewed{length}{note}"))),
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
        printer.warn(&format!("interrupted, not renewed: {}", interrupted.join(", ")));
    }
    failure.map_or(told.map(|()| ExitCode::Done), Err)
}

/// How each lease stood before it was renewed, by the names of the nodes; `None` where that was only
/// imagined. What is missing was interrupted.
async fn renew_all(
    claims: &[Known],
    dry_run: DryRun,
    cluster: &Cluster,
) -> BTreeMap<String, Result<Option<Standing>>> {
    let outcomes = RefCell::new(BTreeMap::new());
    let renewing = stream::iter(claims).for_each_concurrent(AT_ONCE, async |(claim, lease)| {
        let outcome = match dry_run {
            DryRun::Client => Ok(None),
            _ => renew(claim, lease.clone(), cluster).await.map(Some),
        };
        outcomes.borrow_mut().insert(claim.at.name.clone(), outcome);
    });
    tokio::select! {
        biased;
        _ = interrupted() => {}
        () = renewing => {}
    }
    outcomes.into_inner()
}

async fn renew(claim: &Claim, lease: Option<Object<Lease>>, cluster: &Cluster) -> Result<Standing> {
    match claim.take(cluster, lease).await? {
        Took::Yes(held, before) => {
            let deadline = Some(Instant::now() + OUTAGE);
            let mut renewed = [(held, before.clone())];
            match settle_owners(slice::from_ref(claim), &mut renewed, deadline, cluster).await? {
                Some((_, lost)) => Err(lost),
                None => Ok(before),
            }
        }
        Took::No(obstacle, lease) => {
            let lease = lease.as_ref().map(|lease| &*lease.value);
            Err(not_renewed(&claim.at.name, &obstacle, lease, cluster.server_time()))
        }
    }
}

/// As [`blocked`]; there is nothing to wait for.
fn not_renewed(name: &str, obstacle: &Obstacle, lease: Option<&Lease>, now: ServerTime) -> Error {
    let mut error = blocked(name, obstacle, lease, now);
    if let Error::Held { hint, .. } = &mut error {
        *hint = Some(format!("'kubectl lease maint status {name}' shows it"));
    }
    error
}

/// Whether a lease may be renewed as it was read.
fn check(target: &Target, who: &Who, admin: bool, now: ServerTime) -> Result<()> {
    let name = &target.node.name;
    let lease = target.lease.as_ref().map(|lease| &*lease.value);
    match Standing::of(lease.map(|lease| &lease.spec), who, now) {
        Standing::Ours { admin: false, .. } if admin => {
            return Err(Error::Refused {
                message: format!("{name} is held by you, but not as an administrator"),
                hint: Some(format!(
                    "renew it without --admin; 'kubectl lease maint acquire {name} --admin' holds it until released"
                )),
            });
        }
        // What has run out is taken anew, and so by the rules for that.
        standing @ Standing::Ours { .. } if !standing.is_valid(now) => {
            if let Some(holder) = target.medik8s.clone() {
                let mut error = blocked(name, &Obstacle::Medik8s { holder }, lease, now);
                if let Error::Held { message, hint } = &mut error {
                    message.push_str(", and your time had run out");
                    *hint =
                        Some(format!("'kubectl lease maint acquire {name} --wait' takes it after medik8s"));
                }
                return Err(error);
            }
        }
        Standing::Ours { .. } => {}
        standing => {
            let is_mine = lease.is_some_and(|lease| lease.holder() == who.administrator().identity());
            let mut error = not_renewed(name, &Obstacle::Standing(standing), lease, now);
            if let (true, Error::Held { hint, .. }) = (is_mine, &mut error) {
                *hint = Some("that is you: --admin renews it".into());
            }
            return Err(error);
        }
    }
    Ok(())
}
