use futures::{StreamExt as _, stream};

use tokio::time::Instant;

use super::{
    AT_ONCE, Target,
    acquire::{OUTAGE, settle_owners},
    blocked, dry_run_note, targets, terms, unrenewed_seconds, who, writing,
};
use crate::{
    cli::{self, DryRun, Renew},
    cluster::Cluster,
    domain::{
        duration::age,
        holder::{self, Who},
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
    let writing = writing(&args.write);
    let mut outcomes = stream::iter(targets)
        .map(async |target| {
            let name = target.node.name.clone();
            if args.write.dry_run == DryRun::Client {
                return Ok((name, None));
            }
            let taking = cli::Taking { take_malformed: false, ignore_medik8s: true };
            let terms = Terms { shortens: true, ..terms(who.clone(), Rule::Command, None, &taking) };
            let mut claim = Claim::on_node(target.node, terms, seconds);
            claim.writing = writing.clone();
            match claim.take(cluster, target.lease).await? {
                Took::Yes(held, before) => {
                    let deadline = Some(Instant::now() + OUTAGE);
                    let mut renewed = [(held, before.clone())];
                    match settle_owners(&[claim], &mut renewed, deadline, cluster).await? {
                        Some((_, lost)) => Err(lost),
                        None => Ok((name, Some(before))),
                    }
                }
                Took::No(obstacle, lease) => {
                    let lease = lease.as_ref().map(|lease| &*lease.value);
                    Err(blocked(&name, &obstacle, lease, cluster.server_time()))
                }
            }
        })
        .buffered(AT_ONCE);
    let length = age(jiff::SignedDuration::from_secs(seconds.into()));
    // One that cannot be renewed is no reason to let the others run out.
    let mut failure = None;
    while let Some(outcome) = outcomes.next().await {
        let (name, before) = match outcome {
            Ok(renewed) => renewed,
            Err(error) => {
                if let Some(earlier) = failure.replace(error) {
                    printer.error(&earlier);
                }
                continue;
            }
        };
        let note = dry_run_note(&args.write);
        let length = if args.admin { "until released".to_owned() } else { format!("for {length}") };
        match before {
            Some(Standing::Ours { until, admin: false }) if until.is_some_and(|until| now.0 > until) => {
                printer
                    .done(&format!("{name} acquired again, your time had run out, held {length}{note}"))?;
                continue;
            }
            None | Some(Standing::Ours { .. }) => {}
            Some(before) => {
                // It was lost between the look and the write, and has been taken anew.
                let words = super::holding(&before, None, now);
                printer.warn(&format!("{name} was {words} meanwhile, and is yours again"));
            }
        }
        let held = if args.admin { ", held " } else { " " };
        printer.done(&format!("{name} renewed{held}{length}{note}"))?;
    }
    failure.map_or(Ok(ExitCode::Done), Err)
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
        Standing::Free => {
            return Err(Error::NotFound {
                message: format!("there is nothing to renew: {name} is free"),
                hint: Some(format!("'kubectl lease maint acquire {name}' takes it")),
            });
        }
        standing => {
            let mut error = blocked(name, &Obstacle::Standing(standing), lease, now);
            if let Error::Held { hint, .. } = &mut error {
                *hint = Some(format!("'kubectl lease maint status {name}' shows it"));
            }
            return Err(error);
        }
    }
    Ok(())
}
