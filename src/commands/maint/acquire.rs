use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    time::Duration,
};

use futures::{StreamExt as _, stream};
use tokio::time::{Instant, timeout_at};

use super::{
    AT_ONCE, Target, blocked, dry_run_note, holding, in_the_way, targets, tell_remarks, unrenewed_seconds,
    who, writing,
};
use crate::{
    cli::{self, Acquire, DryRun},
    cluster::{Cluster, Object, single::Writing},
    commands::interrupted,
    domain::{
        deadline::Schedule,
        duration::age,
        holder::Who,
        lease::{Lease, Metadata},
        maintenance::Standing,
        taking::{Obstacle, Rule, Terms},
        time::ServerTime,
    },
    error::{Error, Result},
    exit::ExitCode,
    output::{
        Printer,
        progress::{Progress, WaitLine},
        prompt,
    },
    session::{Claim, Held, Took, Waiting, keep, within},
};

/// How long undoing may take before the rest is left to expire.
const UNDO: Duration = Duration::from_secs(30);

pub async fn run(args: &Acquire, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    let seconds = unrenewed_seconds(args.duration, args.admin)?;
    let (who, targets) =
        tokio::try_join!(who(&args.identity, args.admin, cluster), targets(&args.nodes, cluster))?;
    tell_remarks(cluster, printer);
    let mut terms = terms(who, Rule::Command, args.reason.clone(), &args.taking);
    terms.replaces_reason = replaces_reason(args, &targets, &terms, cluster)?;
    let claims = claims(targets, &terms, seconds, &args.wait, &writing(&args.write))?;
    let note = dry_run_note(&args.write);
    if args.write.dry_run == DryRun::Client {
        return imagine(&claims, cluster, printer);
    }
    let began = cluster.server_time();
    let taken = take_all(&claims, &args.wait, cluster, printer).await?;
    for (held, before) in &taken {
        let name = &held.at.name;
        let how = match before {
            Standing::Ours { .. } if before.is_valid(began) => "renewed, it was yours already".to_owned(),
            Standing::Ours { .. } => "acquired again, your time had run out".to_owned(),
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

/// What is accepted, as typed.
pub fn terms(who: Who, rule: Rule, reason: Option<String>, taking: &cli::Taking) -> Terms {
    Terms {
        who,
        rule,
        adopts: None,
        reason,
        replaces_reason: false,
        take_malformed: taking.take_malformed,
        ignore_medik8s: taking.ignore_medik8s,
    }
}

/// The claims on these nodes; refused where medik8s holds one, unless that is waited for.
pub fn claims(
    targets: Vec<Target>,
    terms: &Terms,
    seconds: i32,
    wait: &cli::Wait,
    writing: &Writing,
) -> Result<Vec<Known>> {
    let held = |target: &Target| target.medik8s.clone().filter(|_| !terms.ignore_medik8s);
    for target in targets.iter().filter(|_| wait.wait.is_none()) {
        if let Some(holder) = held(target) {
            let now = ServerTime(jiff::Timestamp::UNIX_EPOCH);
            return Err(blocked(&target.node.name, &Obstacle::Medik8s { holder }, None, now));
        }
    }
    let claim = |target: Target| {
        let waits = held(&target).is_some();
        let mut claim = Claim::on_node(target.node, terms.clone(), seconds);
        claim.writing = writing.clone();
        claim.waits = waits;
        (claim, target.lease)
    };
    Ok(targets.into_iter().map(claim).collect())
}

/// Whether the reason of a lease that is held already may be replaced: it may be the reason of a
/// colleague who shares this user and host.
fn replaces_reason(args: &Acquire, targets: &[Target], terms: &Terms, cluster: &Cluster) -> Result<bool> {
    if args.yes || args.write.dry_run != DryRun::None || !prompt::possible() {
        return Ok(args.yes);
    }
    let now = cluster.server_time();
    for target in targets {
        let lease = target.lease.as_ref().map(|lease| &*lease.value);
        if let Err(obstacle @ Obstacle::OtherReason { .. }) = terms.judge(lease, false, now) {
            let question =
                format!("{} is {}. Replace the reason?", target.node.name, in_the_way(&obstacle, lease, now));
            if !prompt::confirm(&question)? {
                return Err(Error::Refused { message: "nothing was acquired".into(), hint: None });
            }
        }
    }
    Ok(true)
}

/// What would be done, by what is known here.
fn imagine(claims: &[Known], cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    check_all(claims, cluster)?;
    for (claim, _) in claims {
        printer.done(&format!("{} acquired, held by {} (dry run)", claim.at.name, claim.terms.who))?;
    }
    Ok(ExitCode::Done)
}

/// Nothing is begun that what was just read says cannot be finished.
fn check_all(claims: &[Known], cluster: &Cluster) -> Result<()> {
    for (claim, lease) in claims {
        if let Some(obstacle) = claim.obstacle(cluster, lease.as_ref()) {
            let lease = lease.as_ref().map(|lease| &*lease.value);
            return Err(blocked(&claim.at.name, &obstacle, lease, cluster.server_time()));
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
                let took = Box::pin(take_or_wait(known, deadline, &taken, cluster, printer)).await?;
                taken.borrow_mut().push(took);
                progress.one_done();
            }
            return Ok(());
        }
        let take = async |(claim, lease): &Known| {
            if stop.get() {
                return Ok(());
            }
            match claim.take(cluster, lease.clone()).await? {
                Took::Yes(held, before) => {
                    taken.borrow_mut().push((held, before));
                    progress.one_done();
                    Ok(())
                }
                Took::No(obstacle, lease) => {
                    let lease = lease.as_ref().map(|lease| &*lease.value);
                    Err(blocked(&claim.at.name, &obstacle, lease, cluster.server_time()))
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
    let mut taken = taken.into_inner();
    let outcome = match outcome {
        Ok(()) => settle(claims, &taken, cluster).await,
        outcome => outcome,
    };
    if let Err(error) = outcome {
        undo(claims, cluster, printer).await;
        return Err(error);
    }
    taken.sort_by(|(a, _), (b, _)| a.at.name.cmp(&b.at.name));
    Ok(taken)
}

/// Makes sure that each lease whose owner was written goes with its node as it is now: the node may
/// have been deleted, or recreated, since it was looked at.
async fn settle(claims: &[Known], taken: &[(Held, Standing)], cluster: &Cluster) -> Result<()> {
    let owned = |lease: &Lease| (lease.metadata.uid.clone(), lease.metadata.owner_references.clone());
    let new: Vec<(&Claim, &Held)> = claims
        .iter()
        .filter_map(|(claim, known)| {
            let (held, _) = taken.iter().find(|(held, _)| held.at == claim.at)?;
            let known = known.as_ref().map(|lease| owned(&lease.value));
            (known != Some(owned(&held.lease().value))).then_some((claim, held))
        })
        .collect();
    let nodes: Vec<Metadata> = match &new[..] {
        [] => return Ok(()),
        [(claim, _)] => match persistently(|| cluster.node(&claim.at.name)).await {
            Err(error) if error.is_not_found() => Vec::new(),
            node => vec![node?],
        },
        _ => persistently(|| cluster.nodes(None)).await?,
    };
    let nodes: BTreeMap<&str, &Metadata> = nodes.iter().map(|node| (node.name.as_str(), node)).collect();
    for (claim, held) in new {
        claim.settle(cluster, held, nodes.get(claim.at.name.as_str()).copied()).await?;
    }
    Ok(())
}

/// A read that what was taken depends on: an outage of a few seconds is no reason to give it up.
async fn persistently<T, F: Future<Output = Result<T>>>(read: impl Fn() -> F) -> Result<T> {
    for _ in 0..5 {
        match read().await {
            Err(error) if error.is_transient() => tokio::time::sleep(Duration::from_millis(500)).await,
            outcome => return outcome,
        }
    }
    read().await
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
        if !claim.waits {
            match take_by(claim, lease.clone(), deadline, cluster).await {
                Ok(Took::Yes(held, before)) => return Ok((held, before)),
                Ok(Took::No(..)) => {}
                Err(error) if error.is_transient() => {}
                Err(error) => return Err(error),
            }
        }
        wait_for(claim, deadline, cluster, printer).await
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

/// Takes a lease, if that is done in time; otherwise what was written has to be withdrawn.
pub async fn take_by(
    claim: &Claim,
    lease: Option<Object<Lease>>,
    deadline: Option<Instant>,
    cluster: &Cluster,
) -> Result<Took> {
    let taking = claim.take(cluster, lease);
    let Some(deadline) = deadline else { return taking.await };
    let late = |_| Error::TimedOut {
        message: format!("{} could not be taken in time: the server is slow to answer", claim.at.name),
    };
    timeout_at(deadline, taking).await.map_err(late)?
}

/// Releases, or puts back, what these claims have written last. Ctrl-C leaves the rest.
pub async fn undo(claims: &[Known], cluster: &Cluster, printer: &mut Printer) {
    let undone = stream::iter(claims)
        .map(async |(claim, _)| (claim.at.name.clone(), within(UNDO, claim.withdraw(cluster)).await))
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<_>>();
    let undone = tokio::select! {
        undone = undone => undone,
        _ = interrupted() => {
            printer.warn("interrupted while releasing what was taken: it may still be held");
            return;
        }
    };
    let released: Vec<_> =
        undone.iter().filter(|(_, done)| matches!(done, Ok(true))).map(|(name, _)| name.as_str()).collect();
    if !released.is_empty() {
        let what =
            if let [one] = released[..] { one.to_owned() } else { format!("{} leases", released.len()) };
        printer.note(&format!("released again: {what}"));
    }
    for (name, done) in &undone {
        if let Err(error) = done {
            printer.warn(&format!("{name} may still be held: {error}"));
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
    let waiting = claim.wait(cluster, |Waiting { obstacle, lease, lost }| {
        let lease = lease.as_ref().map(|lease| &*lease.value);
        let now = cluster.server_time();
        let news = match (lost, obstacle) {
            (Some(why), _) => format!("waiting for {name}; connection lost, retrying: {why}"),
            (None, Some(obstacle)) => format!("waiting for {name}, {}", waited_for(obstacle, lease)),
            (None, None) => format!("waiting for {name}"),
        };
        let left = match obstacle {
            Some(Obstacle::Standing(Standing::Held { until, .. })) if claim.terms.rule != Rule::Observed => {
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
    let waited = humantime::format_duration(Duration::from_secs(began.elapsed().as_secs()));
    // The time is over: what else there is to do and to say is bounded, and not what it failed of.
    let last_look = async {
        claim.withdraw(cluster).await?;
        cluster.lease(&claim.at).await
    };
    let state = match within(UNDO, last_look).await {
        Ok(lease) => {
            let lease = lease.as_ref().map(|lease| &*lease.value);
            let now = cluster.server_time();
            let standing = Standing::of(lease.map(|lease| &lease.spec), &claim.terms.who, now);
            format!(": it is {}", holding(&standing, lease, now))
        }
        Err(_) => String::new(),
    };
    Err(Error::TimedOut { message: format!("{name} did not become free within {waited}{state}") })
}

/// What a claim waits for, in words that do not change by the mere passing of time.
fn waited_for(obstacle: &Obstacle, lease: Option<&Lease>) -> String {
    let reason = lease.and_then(Lease::reason).map_or_else(String::new, |reason| format!(" ({reason})"));
    match obstacle {
        Obstacle::Standing(_) | Obstacle::OtherReason { .. } => {
            format!("held by '{}'{reason}", lease.map(Lease::holder).unwrap_or_default())
        }
        Obstacle::Terminating { .. } => "its lease is being deleted".to_owned(),
        Obstacle::Medik8s { holder } => format!("held by medik8s ('{holder}')"),
    }
}
