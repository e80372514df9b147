use std::{
    cell::{Cell, RefCell},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt as _, stream};
use tokio::time::{Instant, timeout_at};

use super::{
    AT_ONCE, Target, blocked, dry_run_note, holding, targets, tell_remarks, unrenewed_seconds, who, writing,
};
use crate::{
    cli::{self, Acquire, DryRun},
    cluster::{Cluster, Object, single::Address},
    commands::interrupted,
    domain::{
        deadline::Schedule,
        duration::age,
        lease::Lease,
        maintenance::{self, Standing},
    },
    error::{Error, Result},
    exit::ExitCode,
    output::{
        Printer,
        progress::{Progress, WaitLine},
    },
    session::{Claim, Held, Rule, Took, Waiting, keep},
};

/// How long undoing may take before the rest is left to expire.
const UNDO: Duration = Duration::from_secs(10);

pub async fn run(args: &Acquire, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    let seconds = unrenewed_seconds(args.duration, args.admin)?;
    let (who, targets) =
        tokio::try_join!(who(&args.identity, args.admin, cluster), targets(&args.nodes, cluster))?;
    tell_remarks(cluster, printer);
    let claims = claims(targets, &args.taking, |target| Claim {
        at: Address::new(maintenance::NAMESPACE, &target.node.name),
        who: who.clone(),
        seconds,
        reason: args.reason.clone(),
        owner: Some(target.node.clone()),
        rule: Rule::Command,
        take_malformed: args.taking.take_malformed,
        create_namespace: true,
        writing: writing(&args.write),
        attempts: Arc::default(),
    })?;
    let note = dry_run_note(&args.write);
    if args.write.dry_run == DryRun::Client {
        return imagine(&claims, cluster, printer);
    }
    let taken = take_all(&claims, &args.wait, cluster, printer).await?;
    for (held, before) in &taken {
        let name = &held.at.name;
        let how = match before {
            Standing::Ours { .. } => "renewed, it was yours already".to_owned(),
            Standing::Expired { holder, .. } => format!("taken over from '{holder}', whose time had run out"),
            _ => "acquired".to_owned(),
        };
        let until = if args.admin {
            "until released".to_owned()
        } else {
            format!("for {}", age(jiff::SignedDuration::from_secs(seconds.into())))
        };
        printer.done(&format!("{name} {how}, held by {} {until}{note}", held.who))?;
    }
    Ok(ExitCode::Done)
}

/// A claim, and the lease as it was just read.
pub type Known = (Claim, Option<Object<Lease>>);

/// The claims on these nodes; refused where medik8s is at work.
pub fn claims(
    targets: Vec<Target>,
    taking: &cli::Taking,
    claim: impl Fn(&Target) -> Claim,
) -> Result<Vec<Known>> {
    for target in &targets {
        if let (Some(holder), false) = (&target.medik8s, taking.ignore_medik8s) {
            return Err(Error::Held {
                message: format!(
                    "{} is held by medik8s ('{holder}', in {})",
                    target.node.name,
                    maintenance::MEDIK8S_NAMESPACE
                ),
                hint: Some("let it finish; --ignore-medik8s takes the node all the same".into()),
            });
        }
    }
    Ok(targets.into_iter().map(|target| (claim(&target), target.lease)).collect())
}

/// What would be done, by what is known here.
fn imagine(claims: &[Known], cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    check_all(claims, cluster)?;
    for (claim, _) in claims {
        printer.done(&format!("{} acquired, held by {} (dry run)", claim.at.name, claim.who))?;
    }
    Ok(ExitCode::Done)
}

/// Nothing is begun that what was just read says cannot be finished.
fn check_all(claims: &[Known], cluster: &Cluster) -> Result<()> {
    for (claim, lease) in claims {
        if let Some(standing) = claim.obstacle(cluster, lease.as_ref()) {
            let lease = lease.as_ref().map(|lease| &*lease.value);
            return Err(blocked(&claim.at.name, &standing, lease, cluster.server_time()));
        }
    }
    Ok(())
}

/// Takes all of the leases or none. Those taken are released again if one cannot be had, or on
/// Ctrl-C.
///
/// The first by name is taken before the others, so that of several who want the same nodes one
/// gets them all. Who waits takes one after the other in the order of their names: nobody can then
/// wait for somebody who waits for him.
pub async fn take_all(
    claims: &[Known],
    wait: &cli::Wait,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<Vec<(Held, Standing)>> {
    if wait.wait.is_none() {
        check_all(claims, cluster)?;
    }
    let taken: RefCell<Vec<(Held, Standing)>> = RefCell::default();
    let progress = Progress::new(claims.len(), "taking leases");
    let stop = Cell::new(false);
    let taking = async {
        if let Some(limit) = wait.wait {
            let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
            for known in claims {
                let took = take_or_wait(known, deadline, &taken, cluster, printer).await?;
                taken.borrow_mut().push(took);
                progress.one_done();
            }
            return Ok(());
        }
        let take = async |(claim, lease): &Known| {
            if stop.get() {
                return Ok(());
            }
            match claim.take(cluster, Some(lease.clone())).await? {
                Took::Yes(held, before) => {
                    taken.borrow_mut().push((held, before));
                    progress.one_done();
                    Ok(())
                }
                Took::No(standing, lease) => {
                    let lease = lease.as_ref().map(|lease| &*lease.value);
                    Err(blocked(&claim.at.name, &standing, lease, cluster.server_time()))
                }
            }
        };
        let Some((first, rest)) = claims.split_first() else { return Ok(()) };
        take(first).await?;
        let mut outcomes = stream::iter(rest).map(take).buffer_unordered(AT_ONCE);
        let mut failure = None;
        // After a failure no more is begun, but what is under way is brought to its end, so that it
        // is known what to undo.
        while let Some(outcome) = outcomes.next().await {
            if let Err(error) = outcome {
                stop.set(true);
                failure.get_or_insert(error);
            }
        }
        failure.map_or(Ok(()), Err)
    };
    let outcome = {
        tokio::pin!(taking);
        tokio::select! {
            outcome = &mut taking => outcome,
            interruption = interrupted() => {
                stop.set(true);
                let patience = if wait.wait.is_some() { Duration::from_millis(500) } else { UNDO };
                let _ = tokio::time::timeout(patience, &mut taking).await;
                Err(interruption)
            }
        }
    };
    drop(progress);
    if let Err(error) = outcome {
        undo(claims, cluster, printer).await;
        return Err(error);
    }
    let mut taken = taken.into_inner();
    taken.sort_by(|(a, _), (b, _)| a.at.name.cmp(&b.at.name));
    Ok(taken)
}

/// Takes the next lease, waiting for it if need be; those taken before are kept meanwhile.
async fn take_or_wait(
    (claim, lease): &Known,
    deadline: Option<Instant>,
    taken: &RefCell<Vec<(Held, Standing)>>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<(Held, Standing)> {
    let taking = async {
        match claim.take(cluster, Some(lease.clone())).await? {
            Took::Yes(held, before) => Ok((held, before)),
            Took::No(..) => wait_for(claim, deadline, cluster, printer).await,
        }
    };
    let held: Vec<Held> = taken.borrow().iter().map(|(held, _)| held.clone()).collect();
    if held.is_empty() || claim.writing.dry_run {
        return taking.await;
    }
    let schedule = Schedule::new(Duration::from_secs(u64::try_from(claim.seconds).unwrap_or(1)));
    tokio::select! {
        took = taking => took,
        lost = keep(cluster, &held, schedule, |_| ()) => {
            Err(Error::LostRace { message: format!("while waiting for {}: {lost}", claim.at.name) })
        }
    }
}

/// Releases what these claims, and nobody else, have taken.
async fn undo(claims: &[Known], cluster: &Cluster, printer: &mut Printer) {
    let undone = stream::iter(claims)
        .map(async |(claim, _)| (claim.at.name.clone(), claim.withdraw(cluster).await))
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<_>>();
    let Ok(undone) = tokio::time::timeout(UNDO, undone).await else {
        printer.warn("not everything that was taken could be released in time; see 'maint list'");
        return;
    };
    let released: Vec<_> =
        undone.iter().filter(|(_, done)| matches!(done, Ok(true))).map(|(name, _)| name.as_str()).collect();
    if !released.is_empty() {
        let what =
            if let [one] = released[..] { one.to_owned() } else { format!("{} nodes", released.len()) };
        printer.note(&format!("released again: {what}"));
    }
    for (name, done) in &undone {
        if let Err(error) = done {
            printer.warn(&format!("{name} could not be released again, see 'maint list': {error}"));
        }
    }
}

/// Waits for a lease, saying for whom.
pub async fn wait_for(
    claim: &Claim,
    deadline: Option<Instant>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<(Held, Standing)> {
    let began = Instant::now();
    let name = claim.at.name.clone();
    let mut line = WaitLine::default();
    let waiting = claim.wait(cluster, |Waiting { standing, lease, lost }| {
        let lease = lease.as_ref().map(|lease| &*lease.value);
        let holder = lease.map(Lease::holder).unwrap_or_default();
        let reason = lease.and_then(Lease::reason).map_or_else(String::new, |reason| format!(" ({reason})"));
        let news = match lost {
            Some(why) => format!("waiting for {name}; connection lost, trying again: {why}"),
            None => format!("waiting for {name}, held by '{holder}'{reason}"),
        };
        let now = cluster.server_time();
        let left = match standing {
            Standing::Held { until, .. } if claim.rule != Rule::Observed => {
                format!(", {} left", super::left(*until, now))
            }
            _ => String::new(),
        };
        line.say(printer, &news, &format!("{left}, {}s so far", began.elapsed().as_secs()));
    });
    let Some(deadline) = deadline else { return waiting.await };
    if let Ok(outcome) = timeout_at(deadline, waiting).await {
        return outcome;
    }
    drop(line);
    // The time is over: what else there is to do and to say is bounded, and not what it failed of.
    let last_look = async {
        claim.withdraw(cluster).await?;
        cluster.lease(&claim.at).await
    };
    let state = match tokio::time::timeout(UNDO, last_look).await {
        Ok(Ok(lease)) => {
            let lease = lease.as_ref().map(|lease| &*lease.value);
            let now = cluster.server_time();
            let standing = Standing::of(lease.map(|lease| &lease.spec), &claim.who, now);
            format!(": it is {}", holding(&standing, lease, now))
        }
        _ => String::new(),
    };
    let waited = humantime::format_duration(Duration::from_secs(began.elapsed().as_secs()));
    Err(Error::TimedOut { message: format!("{name} did not become free within {waited}{state}") })
}
