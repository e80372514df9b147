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
        taking::{Obstacle, Replaces, Rule, Terms},
        time::ServerTime,
    },
    error::{Error, Result},
    exit::ExitCode,
    output::{
        Printer,
        progress::{Progress, WaitLine},
        prompt,
    },
    session::{Claim, Held, Released, Took, Waiting, keep, within},
};

/// A lease that was written longer ago than this is renewed before it is told for how long it is held.
const FRESH: Duration = Duration::from_secs(2);

/// How long undoing may take before the rest is left to expire.
const UNDO: Duration = Duration::from_secs(30);

pub async fn run(args: &Acquire, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    let seconds = unrenewed_seconds(args.duration, args.admin)?;
    let (who, targets) =
        tokio::try_join!(who(&args.identity, args.admin, cluster), targets(&args.nodes, cluster))?;
    tell_remarks(cluster, printer);
    let mut terms = terms(who, Rule::Command, args.reason.clone(), &args.taking);
    let asks = args.write.dry_run == DryRun::None;
    terms.replaces = replaces(args.yes, asks, &targets, &terms, cluster)?;
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
            format!("for {}", age(held_for(held, seconds, cluster)))
        };
        printer.done(&format!("{name} {how}, held by {} {until}{note}", held.who))?;
    }
    Ok(ExitCode::Done)
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

/// A claim, and the lease as it was just read.
pub type Known = (Claim, Option<Object<Lease>>);

/// What is accepted, as typed.
pub fn terms(who: Who, rule: Rule, reason: Option<String>, taking: &cli::Taking) -> Terms {
    Terms {
        who,
        rule,
        adopts: None,
        reason,
        replaces: Replaces::Nothing,
        shortens: false,
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

/// Which reasons of leases that are held already may be replaced: they may be those of a colleague who
/// shares this user and host.
pub fn replaces(
    yes: bool,
    asks: bool,
    targets: &[Target],
    terms: &Terms,
    cluster: &Cluster,
) -> Result<Replaces> {
    if yes {
        return Ok(Replaces::Any);
    }
    if !asks || !prompt::possible() {
        return Ok(Replaces::Nothing);
    }
    let now = cluster.server_time();
    let mut confirmed = Vec::new();
    for target in targets {
        let lease = target.lease.as_ref().map(|lease| &*lease.value);
        if let Err(obstacle) = terms.judge(lease, false, now)
            && let Obstacle::OtherReason { reason, .. } = &obstacle
        {
            let words = in_the_way(&obstacle, lease, now);
            if !prompt::confirm(&format!("{} is {words}. Replace the reason?", target.node.name))? {
                return Err(Error::Refused { message: "nothing was acquired".into(), hint: None });
            }
            confirmed.push(reason.clone());
        }
    }
    Ok(Replaces::These(confirmed))
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
pub fn check_all(claims: &[Known], cluster: &Cluster) -> Result<()> {
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
            for (n, (claim, lease)) in claims.iter().enumerate() {
                // What was read at the start may be long ago after the first.
                let known = (n == 0 && !claim.waits).then_some(lease);
                let took = Box::pin(take_or_wait(claim, known, deadline, &taken, cluster, printer)).await?;
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
            biased;
            interruption = interrupted() => {
                stop.set(true);
                let patience = if wait.wait.is_some() { Duration::from_millis(500) } else { UNDO };
                // A second one does not wait for the answer to what is under way.
                tokio::select! {
                    _ = tokio::time::timeout(patience, &mut taking) => {}
                    _ = interrupted() => {}
                }
                Err(interruption)
            }
            outcome = &mut taking => outcome,
        }
    };
    drop(progress);
    let mut taken = taken.into_inner();
    let waited = wait.wait.is_some() && claims.len() > 1;
    let outcome = match outcome {
        Ok(()) => tokio::select! {
            biased;
            interruption = interrupted() => Err(interruption),
            outcome = settle(claims, &taken, waited, cluster) => outcome,
        },
        outcome => outcome,
    };
    if let Err(error) = outcome {
        undo(claims, cluster, printer).await;
        return Err(error);
    }
    taken.sort_by(|(a, _), (b, _)| a.at.name.cmp(&b.at.name));
    Ok(taken)
}

/// Makes sure of what is told next: that the leases are held for as long as was asked for, and that the
/// nodes are still those that were looked at.
async fn settle(claims: &[Known], taken: &[(Held, Standing)], waited: bool, cluster: &Cluster) -> Result<()> {
    let pairs: Vec<(&Claim, &Held)> = claims
        .iter()
        .filter_map(|(claim, _)| Some((claim, &taken.iter().find(|(held, _)| held.at == claim.at)?.0)))
        .collect();
    settle_owners(claims, taken, cluster).await?;
    if waited {
        let held = stream::iter(&pairs)
            .filter(|(claim, _)| std::future::ready(!claim.terms.ignore_medik8s))
            .map(async |(claim, _)| (&claim.at.name, cluster.medik8s_holder(&claim.at.name).await));
        let mut held = std::pin::pin!(held.buffer_unordered(AT_ONCE));
        while let Some((name, holder)) = held.next().await {
            if let Some(holder) = holder? {
                return Err(blocked(name, &Obstacle::Medik8s { holder }, None, cluster.server_time()));
            }
        }
    }
    // A process renews by itself.
    let due = |(claim, held): &&(&Claim, &Held)| {
        claim.terms.rule == Rule::Command
            && !claim.terms.who.is_admin()
            && !claim.writing.dry_run
            && (held.sent() + FRESH).has_passed()
    };
    let mut renewals = stream::iter(pairs.iter().filter(due))
        .map(async |(claim, held)| within(UNDO, held.renew(cluster, claim.seconds)).await)
        .buffer_unordered(AT_ONCE);
    while let Some(renewal) = renewals.next().await {
        renewal?;
    }
    Ok(())
}

/// Makes sure that each lease whose owner was written goes with its node as it is now: the node may
/// have been deleted, or recreated, since it was looked at.
async fn settle_owners(claims: &[Known], taken: &[(Held, Standing)], cluster: &Cluster) -> Result<()> {
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
    claim: &Claim,
    known: Option<&Option<Object<Lease>>>,
    deadline: Option<Instant>,
    taken: &RefCell<Vec<(Held, Standing)>>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<(Held, Standing)> {
    let taking = async {
        let first = async {
            match known {
                Some(lease) => claim.take(cluster, lease.clone()).await,
                None => claim.take_anew(cluster).await,
            }
        };
        match take_by(&claim.at.name, deadline, first).await {
            Ok(Took::Yes(held, before)) => return Ok((held, before)),
            Ok(Took::No(..)) => {}
            Err(error) if error.is_transient() => {}
            Err(error) => return Err(error),
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
    name: &str,
    deadline: Option<Instant>,
    taking: impl Future<Output = Result<Took>>,
) -> Result<Took> {
    let Some(deadline) = deadline else { return taking.await };
    let late = |_| Error::TimedOut {
        message: format!("{name} could not be taken in time: the server is slow to answer"),
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
    for (how, words) in [(Released::Yes, "released again"), (Released::PutBack, "held as before")] {
        let names: Vec<_> =
            undone.iter().filter(|(_, done)| done.as_ref().is_ok_and(|done| *done == how)).collect();
        match &names[..] {
            [] => {}
            [(name, _)] => printer.note(&format!("{words}: {name}")),
            several => printer.note(&format!("{words}: {} leases", several.len())),
        }
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
    let waited = humantime::format_duration(Duration::from_secs(
        (began.elapsed() + Duration::from_millis(500)).as_secs(),
    ));
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
