use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    time::Duration,
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout_at},
};

use super::{
    AT_ONCE, Target, blocked, dry_run_note, in_the_way,
    run::{release, still_adopted, term},
    targets, tell_remarks, unrenewed_seconds, who, writing,
};
use crate::{
    cli::{self, Acquire, DryRun},
    cluster::{Cluster, Object, Refusal, single::Writing},
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
    session::{Claim, Held, Released, Took, Waiting, deleted, keep_patiently, persistently, within},
};

/// A lease that was written longer ago than this is renewed before it is told for how long it is held.
const FRESH: Duration = Duration::from_secs(2);

/// The seconds for which a command that waits for more holds what it has; it is renewed meanwhile.
const GATHERED: i32 = 60;

/// How long an outage may last, after the leases were taken, where nothing says for how long to wait.
pub const OUTAGE: Duration = Duration::from_secs(3);

/// After a refusal that may pass, the next attempt.
const REFUSED: Duration = Duration::from_millis(500);

/// An attempt that was begun gets so long, whatever is left of the time to wait: it may have been none.
const ATTEMPT: Duration = Duration::from_secs(1);

/// How long undoing may take before the rest is left to expire.
const UNDO: Duration = Duration::from_secs(30);

/// How long something may take that is done to so many leases.
fn for_all(count: usize) -> Duration {
    UNDO + Duration::from_millis(50) * u32::try_from(count).unwrap_or(u32::MAX)
}

pub async fn run(args: &Acquire, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    let seconds = unrenewed_seconds(args.duration, args.admin)?;
    let (who, mut targets) =
        tokio::try_join!(who(&args.identity, args.admin, cluster), targets(&args.nodes, cluster))?;
    tell_remarks(cluster, printer);
    let mut terms = terms(who, Rule::Command, args.reason.clone(), &args.taking);
    let asks = args.write.dry_run == DryRun::None;
    terms.replaces = replaces(args.yes, asks, &mut targets, &terms, cluster).await?;
    let claims = claims(targets, &terms, seconds, &args.wait, &writing(&args.write))?;
    if args.write.dry_run == DryRun::Client {
        return imagine(&claims, cluster, printer);
    }
    let taken = take_all(&claims, &args.wait, cluster, printer).await?;
    let told = tell(args, &taken, cluster, printer);
    // What cannot be told is not kept; a reader that went away (`… | head`) has what it wanted.
    if told.as_ref().is_err_and(|error| !error.is_silent()) && args.write.dry_run == DryRun::None {
        let held: Vec<Held> = taken.into_iter().map(|(held, _)| held).collect();
        release(&held, false, cluster, printer).await;
    }
    told.map(|()| ExitCode::Done)
}

/// What was acquired.
fn tell(args: &Acquire, taken: &[(Held, Standing)], cluster: &Cluster, printer: &mut Printer) -> Result<()> {
    let seconds = unrenewed_seconds(args.duration, args.admin)?;
    let note = dry_run_note(&args.write);
    for (held, before) in taken {
        let name = &held.at.name;
        let how = match before {
            Standing::Ours { .. } => "renewed, it was yours already".to_owned(),
            Standing::Expired { holder, .. } if held.who.is(holder) => {
                "acquired again, your time had run out".to_owned()
            }
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

/// A claim, and the lease as it was just read.
pub type Known = (Claim, Option<Object<Lease>>);

/// What is accepted, as typed.
pub fn terms(who: Who, rule: Rule, reason: Option<String>, taking: &cli::Taking) -> Terms {
    Terms {
        who,
        rule,
        adopts: None,
        adopts_term: None,
        renews: false,
        reason,
        replaces: Replaces::Nothing,
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
        let terms = match terms.rule {
            Rule::Process => terms.adopting(target.lease.as_ref().map(|lease| &*lease.value)),
            _ => terms.clone(),
        };
        let mut claim = Claim::on_node(target.node, terms, seconds);
        claim.writing = writing.clone();
        claim.waits = waits;
        (claim, target.lease)
    };
    Ok(targets.into_iter().map(claim).collect())
}

/// Which reasons of leases that are held already may be replaced: they may be those of a colleague who
/// shares this user and host. After a question, which may be open for long, medik8s' leases are read again:
/// one's own lease may have run out meanwhile, and the node be in medik8s' hands.
pub async fn replaces(
    yes: bool,
    asks: bool,
    targets: &mut [Target],
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
    for target in &*targets {
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
    if !confirmed.is_empty() {
        let read = async |target: &mut Target| {
            target.medik8s = cluster.medik8s_holder(&target.node.name).await?;
            Ok::<(), Error>(())
        };
        stream::iter(targets).map(Ok).try_for_each_concurrent(AT_ONCE, read).await?;
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
/// gets them all. Until a command has all of several it holds what it has under a name of its own, see
/// [`gathering`].
pub async fn take_all(
    claims: &[Known],
    wait: &cli::Wait,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<Vec<(Held, Standing)>> {
    if let Some(limit) = wait.wait {
        return wait_for_all(claims, limit, cluster, printer).await;
    }
    check_all(claims, cluster)?;
    let own = gathering(claims);
    let taken: RefCell<Vec<(Held, Standing)>> = RefCell::default();
    let progress = Progress::new(claims.len(), "taking leases");
    let stop = Cell::new(false);
    let taking = async {
        let take = async |(claim, (_, lease)): (&Claim, &Known)| {
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
        let mut all = own.iter().zip(claims);
        let Some(first) = all.next() else { return Ok(()) };
        take(first).await?;
        let mut outcomes = stream::iter(all).map(take).buffer_unordered(AT_ONCE);
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
                // A second one does not wait for the answer to what is under way.
                tokio::select! {
                    _ = tokio::time::timeout(UNDO, &mut taking) => {}
                    _ = interrupted() => {}
                }
                Err(interruption)
            }
            outcome = &mut taking => outcome,
        }
    };
    drop(progress);
    let mut taken = taken.into_inner();
    taken.sort_by(|(a, _), (b, _)| a.at.name.cmp(&b.at.name));
    let outcome = match outcome {
        Ok(()) => tokio::select! {
            biased;
            interruption = interrupted() => Err(interruption),
            outcome = settle(claims, &own, &mut taken, cluster) => outcome,
        },
        outcome => outcome,
    };
    if let Err(error) = outcome {
        undo(&own, cluster, printer).await;
        return Err(error);
    }
    Ok(taken)
}

/// Whether a command holds what it has of these under a name of its own until it has all of them.
fn gathers(claims: &[Known]) -> bool {
    claims.len() > 1
        && claims.iter().all(|(claim, _)| claim.terms.rule == Rule::Command && !claim.writing.dry_run)
}

/// The claims under which several leases are taken: until a command has all of them, it holds what it has
/// under a name of its own, and not for long. No other process of the same holder is told that it holds
/// them too, which would leave them held when this one gives up; and if it is killed they expire soon.
/// What its holder has already counts as had, and is left to whoever was told so until then.
fn gathering(claims: &[Known]) -> Vec<Claim> {
    let (gathers, suffix) = (gathers(claims), term());
    let own = |(claim, _): &Known| {
        let seconds = if claim.terms.who.is_admin() { GATHERED } else { claim.seconds.clamp(3, GATHERED) };
        if gathers { claim.gathering(&suffix, seconds) } else { claim.clone() }
    };
    claims.iter().map(own).collect()
}

/// Makes sure of what is told next: that the leases are held for as long as was asked for, and that the
/// nodes are still those that were looked at.
async fn settle(
    claims: &[Known],
    own: &[Claim],
    taken: &mut [(Held, Standing)],
    cluster: &Cluster,
) -> Result<()> {
    let deadline = Some(Instant::now() + OUTAGE);
    let mut lost = settle_owners(own, taken, deadline, cluster).await?;
    if lost.is_none() && gathers(claims) {
        lost = rename_all(claims, taken, deadline, cluster).await?;
    } else if lost.is_none() {
        renew_old(own, taken, deadline, cluster).await?;
    }
    lost.map_or(Ok(()), |(_, why)| Err(why))
}

/// Takes all of the leases or none, waiting for those that are held.
///
/// One is taken after the other in the order of their names, and one that is lost meanwhile is waited
/// for again without those that come after it: no two commands can then wait for each other.
async fn wait_for_all(
    claims: &[Known],
    limit: Option<Duration>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<Vec<(Held, Standing)>> {
    // One's own lease is not waited for: it may be a colleague's, which has to be told.
    for (claim, lease) in claims {
        if let Some(obstacle @ Obstacle::OtherReason { .. }) = claim.obstacle(cluster, lease.as_ref()) {
            let lease = lease.as_ref().map(|lease| &*lease.value);
            return Err(blocked(&claim.at.name, &obstacle, lease, cluster.server_time()));
        }
    }
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    let own = gathering(claims);
    let outcome = {
        let taking = gather(claims, &own, deadline, cluster, printer);
        tokio::pin!(taking);
        tokio::select! {
            biased;
            interruption = interrupted() => {
                // A second one does not wait for the answer to what is under way.
                tokio::select! {
                    _ = tokio::time::timeout(Duration::from_millis(500), &mut taking) => {}
                    _ = interrupted() => {}
                }
                Err(interruption)
            }
            outcome = &mut taking => outcome,
        }
    };
    if outcome.is_err() {
        undo(&own, cluster, printer).await;
    }
    // What would have been waited for, had there been the time.
    let is_over = deadline.is_some_and(|deadline| deadline <= Instant::now());
    outcome.map_err(|error| match error {
        error if is_over && error.is_transient() => {
            Error::TimedOut { message: format!("the leases could not be taken in time: {error}") }
        }
        error => error,
    })
}

/// Which of the leases was lost, and why.
type LostAgain = (usize, Error);

async fn gather(
    claims: &[Known],
    own: &[Claim],
    deadline: Option<Instant>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<Vec<(Held, Standing)>> {
    let progress = Progress::new(claims.len(), "taking leases");
    let mut taken: Vec<(Held, Standing)> = Vec::new();
    let mut had_one = false;
    // What was read at the start may be long ago after the first.
    let mut known =
        claims.first().map(|(_, lease)| lease).filter(|_| !own.iter().take(1).any(|claim| claim.waits));
    loop {
        let had = taken.len();
        let held: Vec<Held> =
            taken.iter().map(|(held, _)| held.clone()).filter(|held| !held.is_left()).collect();
        let next = own.get(had);
        let work = async {
            if let Some(claim) = next {
                let took = take_or_wait(claim, known.take(), had_one, deadline, cluster, printer).await?;
                taken.push(took);
                had_one = true;
                progress.one_done();
                return Ok(None);
            }
            // A moment at least is left to an outage, whatever the limit.
            let deadline = deadline.map(|deadline| deadline.max(Instant::now() + OUTAGE));
            if let Some(lost) = settle_owners(own, &mut taken, deadline, cluster).await? {
                return Ok(Some(lost));
            }
            ask_medik8s(own, deadline, cluster).await
        };
        let lost = if held.is_empty() || own.iter().any(|claim| claim.writing.dry_run) {
            work.await?
        } else {
            let seconds = own.first().map_or(1, |claim| claim.seconds);
            let schedule = Schedule::new(Duration::from_secs(u64::try_from(seconds).unwrap_or(1)));
            tokio::select! {
                outcome = work => outcome?,
                lost = keep_patiently(cluster, &held, schedule) => {
                    let n = own.iter().position(|claim| claim.at.name == lost.name()).unwrap_or(0);
                    Some((n, Error::LostRace { message: lost.to_string() }))
                }
            }
        };
        let lost = match lost {
            None if had < own.len() => continue,
            None if gathers(claims) => rename_all(claims, &mut taken, deadline, cluster).await?,
            None => match renew_old(own, &taken, deadline, cluster).await {
                Err(why @ Error::LostRace { .. }) => Some((0, why)),
                outcome => outcome.map(|()| None)?,
            },
            lost => lost,
        };
        let Some((n, why)) = lost else { return Ok(taken) };
        printer.warn(&format!("{why}; waiting again from {} on", own[n].at.name));
        // The one that was under way may have been written too.
        for claim in own.iter().take(taken.len() + 1).skip(n) {
            let withdrawn = persistently(deadline, async || claim.withdraw(cluster).await);
            let released = take_by(&claim.at.name, deadline, withdrawn).await?;
            tell_left(claim, released, printer);
        }
        taken.truncate(n);
    }
}

/// Gives all that was gathered the names that it was gathered for. If one was lost, all have to be
/// waited for again.
async fn rename_all(
    claims: &[Known],
    taken: &mut [(Held, Standing)],
    deadline: Option<Instant>,
    cluster: &Cluster,
) -> Result<Option<LostAgain>> {
    let deadline = deadline.map(|deadline| deadline.max(Instant::now() + for_all(claims.len())));
    let is_admin = claims.iter().any(|(claim, _)| claim.terms.who.is_admin());
    let look = async || {
        let nodes = persistently(deadline, async || cluster.nodes(None).await).await?;
        let exists = |claim: &Claim| nodes.iter().any(|node| node.name == claim.at.name);
        match claims.iter().find(|(claim, _)| !exists(claim)) {
            Some((claim, _)) => Err(deleted(&claim.at.name)),
            None => Ok(nodes),
        }
    };
    let work = async {
        let left = claims.iter().zip(&*taken).enumerate().filter(|(_, (_, (held, _)))| held.is_left());
        let left = stream::iter(left)
            .map(async |(n, ((claim, _), _))| (n, claim, claim.is_left(cluster).await))
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<_>>();
        for (n, claim, is_left) in left.await {
            if !is_left? {
                let message = format!("'{}' cannot be held by {} any more", claim.at.name, claim.terms.who);
                return Ok(Some((n, Error::LostRace { message })));
            }
        }
        // Else the owner stays, which was looked at a moment ago.
        let nodes = if is_admin { look().await? } else { Vec::new() };
        let renamed = stream::iter(claims.iter().zip(&*taken).enumerate())
            .map(async |(n, ((claim, _), (held, before)))| {
                if held.is_left() {
                    return (n, claim.take_left(cluster, held).await);
                }
                let owner = nodes.iter().find(|node| node.name == claim.at.name);
                (n, claim.rename(cluster, held, owner).await.map(|held| (held, before.clone())))
            })
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<_>>();
        let mut lost = None;
        for (n, renamed) in renamed.await {
            match renamed {
                Ok(renamed) => taken[n] = renamed,
                Err(why @ Error::LostRace { .. }) => lost = Some((0, why)),
                Err(error) => return Err(error),
            }
        }
        if lost.is_none() {
            let nodes = look().await?;
            let was_recreated = |held: &Held| {
                let metadata = &held.lease().value.metadata;
                nodes.iter().any(|node| metadata.belongs_to_predecessor_of(node))
            };
            if let Some((held, _)) = taken.iter().find(|(held, _)| was_recreated(held)) {
                let message = format!("node '{}' was recreated meanwhile", held.at.name);
                lost = Some((0, Error::LostRace { message }));
            }
        }
        if lost.is_some() {
            return Ok(lost);
        }
        let own: Vec<Claim> = claims.iter().map(|(claim, _)| claim.clone()).collect();
        match renew_old(&own, taken, deadline, cluster).await {
            Err(why @ Error::LostRace { .. }) => Ok(Some((0, why))),
            outcome => outcome.map(|()| None),
        }
    };
    let Some(deadline) = deadline else { return work.await };
    let late = |_| Error::TimedOut {
        message: "the leases could not be taken in time: the server is slow to answer".into(),
    };
    timeout_at(deadline, work).await.map_err(late)?
}

/// Whether medik8s has begun to work on a node while the others were waited for.
async fn ask_medik8s(
    own: &[Claim],
    deadline: Option<Instant>,
    cluster: &Cluster,
) -> Result<Option<LostAgain>> {
    if own.len() < 2 {
        return Ok(None);
    }
    let asked = stream::iter(own.iter().enumerate())
        .filter(|(_, claim)| std::future::ready(!claim.terms.ignore_medik8s))
        .map(async |(n, claim)| {
            let name = &claim.at.name;
            (n, persistently(deadline, async || cluster.medik8s_holder(name).await).await)
        })
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<_>>();
    let mut first = None;
    for (n, holder) in asked.await {
        if let Some(holder) = holder?
            && first.as_ref().is_none_or(|(before, _)| n < *before)
        {
            let why = blocked(&own[n].at.name, &Obstacle::Medik8s { holder }, None, cluster.server_time());
            first = Some((n, why));
        }
    }
    Ok(first)
}

/// Makes sure that the leases are held for as long as will be said.
async fn renew_old(
    own: &[Claim],
    taken: &[(Held, Standing)],
    deadline: Option<Instant>,
    cluster: &Cluster,
) -> Result<()> {
    let due = |(claim, (held, _)): &(&Claim, &(Held, Standing))| {
        // A process renews by itself, if it has the time.
        let fresh = if claim.terms.rule == Rule::Command {
            FRESH
        } else {
            Schedule::new(Duration::from_secs(u64::try_from(claim.seconds).unwrap_or(1))).renew
        };
        let is_due = held.is_shared() || (held.sent() + fresh).has_passed();
        !claim.writing.dry_run && is_due
    };
    let mut renewals = stream::iter(own.iter().zip(taken).filter(due))
        .map(async |(claim, (held, _))| {
            let renewal = async {
                // A command's has no end, but may have been released meanwhile.
                if held.who.is_admin() && claim.terms.rule == Rule::Command {
                    held.look(cluster).await
                } else {
                    held.renew(cluster, claim.seconds).await
                }
            };
            match deadline {
                Some(_) => within(UNDO, renewal).await,
                None => renewal.await,
            }
        })
        .buffer_unordered(AT_ONCE);
    while let Some(renewal) = renewals.next().await {
        renewal?;
    }
    Ok(())
}

/// Makes sure that each lease goes with its node as it is now: the node may have been deleted, or
/// recreated, since it was looked at, and the garbage collector deletes a lease whose owner is gone, also
/// one that was there before. The first that was lost by that, if any.
pub async fn settle_owners(
    own: &[Claim],
    taken: &mut [(Held, Standing)],
    deadline: Option<Instant>,
    cluster: &Cluster,
) -> Result<Option<LostAgain>> {
    // What was left as it was is looked at when it is taken.
    let is_ours = |n: &usize| !taken[*n].0.is_left() && !own[*n].writing.dry_run;
    let ours: Vec<usize> = (0..taken.len()).filter(is_ours).collect();
    let nodes: Vec<Metadata> = match &ours[..] {
        [] => return Ok(None),
        [n] => {
            let look = async || match cluster.node(&own[*n].at.name).await {
                Err(error) if error.is_not_found() => Ok(Vec::new()),
                node => node.map(|node| vec![node]),
            };
            persistently(deadline, look).await?
        }
        _ => persistently(deadline, async || cluster.nodes(None).await).await?,
    };
    let nodes: BTreeMap<&str, &Metadata> = nodes.iter().map(|node| (node.name.as_str(), node)).collect();
    for n in ours {
        let (claim, held) = (&own[n], taken[n].0.clone());
        let node = nodes.get(claim.at.name.as_str()).map(|node| (*node).clone());
        match claim.settle(cluster, held, node, deadline).await? {
            Took::Yes(held, _) => taken[n].0 = held,
            Took::No(obstacle, lease) => {
                let lease = lease.as_ref().map(|lease| &*lease.value);
                return Ok(Some((n, blocked(&claim.at.name, &obstacle, lease, cluster.server_time()))));
            }
        }
    }
    Ok(None)
}

/// Takes the next lease, waiting for it if need be. If we `had_one` before, a 401 or 403 may be that of a
/// server that has just been started.
async fn take_or_wait(
    claim: &Claim,
    known: Option<&Option<Object<Lease>>>,
    had_one: bool,
    deadline: Option<Instant>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<(Held, Standing)> {
    let mut refusal = Refusal::default();
    let first = async {
        match known {
            Some(lease) => claim.take(cluster, lease.clone()).await,
            None => loop {
                match claim.take_anew(cluster).await {
                    Err(error) if had_one && refusal.may_pass(&error) => sleep(REFUSED).await,
                    outcome => break outcome,
                }
            },
        }
    };
    match take_by(&claim.at.name, deadline, first).await {
        Ok(Took::Yes(held, before)) => return Ok((held, before)),
        Ok(Took::No(..)) => {}
        Err(error) if error.is_transient() => {}
        Err(error) => return Err(error),
    }
    loop {
        match wait_for(claim, deadline, cluster, printer).await {
            Err(error) if had_one && refusal.may_pass(&error) => sleep(REFUSED).await,
            outcome => return outcome,
        }
    }
}

/// Takes a lease, if that is done in time; otherwise what was written has to be withdrawn.
pub async fn take_by<T>(
    name: &str,
    deadline: Option<Instant>,
    taking: impl Future<Output = Result<T>>,
) -> Result<T> {
    let Some(deadline) = deadline.map(|deadline| deadline.max(Instant::now() + ATTEMPT)) else {
        return taking.await;
    };
    let late = |_| Error::TimedOut {
        message: format!("{name} could not be taken in time: the server is slow to answer"),
    };
    timeout_at(deadline, taking).await.map_err(late)?
}

/// Releases, or puts back, what these claims have written last. Ctrl-C leaves the rest.
pub async fn undo(claims: &[Claim], cluster: &Cluster, printer: &mut Printer) {
    if claims.is_empty() {
        return;
    }
    let deadline = Instant::now() + for_all(claims.len());
    let left = || deadline.saturating_duration_since(Instant::now());
    let undone = stream::iter(claims)
        .map(async |claim| (&claim.at.name, within(left(), claim.withdraw(cluster)).await))
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<_>>();
    let undone = tokio::select! {
        undone = undone => undone,
        _ = interrupted() => {
            let names: Vec<_> = claims.iter().map(|claim| claim.at.name.as_str()).collect();
            let names = names.join(" ");
            printer.warn(&format!(
                "interrupted while releasing what was taken: it may still be held ('kubectl lease maint status \
                 {names}' shows it)"
            ));
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
    for (claim, done) in claims.iter().filter_map(|claim| {
        undone.iter().find(|(name, _)| **name == claim.at.name).map(|(_, done)| (claim, done))
    }) {
        let name = &claim.at.name;
        let who = claim.terms.adopts.as_ref().unwrap_or(&claim.terms.who);
        match done {
            Ok(released) => tell_left(claim, *released, printer),
            Err(error) if who.is_admin() => {
                printer.warn(&format!(
                    "{name} may be held until it is released ('kubectl lease maint release {name} --admin --force' \
                     does it): {error}"
                ));
            }
            Err(error) => printer.warn(&format!("{name} may still be held: {error}")),
        }
    }
}

/// What stays held although it was given up: another process of the same holder uses it, or was told of it.
fn tell_left(claim: &Claim, released: Released, printer: &mut Printer) {
    let name = &claim.at.name;
    let who = claim.terms.adopts.as_ref().unwrap_or(&claim.terms.who);
    match released {
        Released::Shared => {
            printer.warn(&format!(
                "{name} is still held by {who}: another process of this holder has renewed it, or adopted it and put it back"
            ));
        }
        Released::Adopted => printer.warn(&still_adopted(name, who)),
        Released::Yes | Released::PutBack | Released::NotOurs | Released::Unanswered => {}
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
    let in_its_way: RefCell<Option<Obstacle>> = RefCell::default();
    let (refuse, mut refusals) = mpsc::channel(1);
    let waiting = Box::pin(claim.wait(cluster, |Waiting { obstacle, lease, lost }| {
        in_its_way.replace(obstacle.clone());
        let lease = lease.as_ref().map(|lease| &*lease.value);
        let now = cluster.server_time();
        // One's own lease is not waited for, also where it was put back for another reason meanwhile.
        if let Some(obstacle @ Obstacle::OtherReason { .. }) = obstacle {
            let _ = refuse.try_send(blocked(&name, obstacle, lease, now));
        }
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
    }));
    let waiting = async {
        tokio::select! {
            outcome = waiting => outcome,
            Some(refusal) = refusals.recv() => Err(refusal),
        }
    };
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
        let released = claim.withdraw(cluster).await?;
        Ok((released, cluster.lease(&claim.at).await?))
    };
    let state = match within(UNDO, last_look).await {
        Ok((released, lease)) => {
            tell_left(claim, released, printer);
            // What is in the way beside the lease is not seen in it.
            let beside = in_its_way.take().filter(|obstacle| matches!(obstacle, Obstacle::Medik8s { .. }));
            let obstacle = claim.obstacle(cluster, lease.as_ref()).or(beside);
            let lease = lease.as_ref().map(|lease| &*lease.value);
            obstacle.map_or_else(String::new, |obstacle| {
                format!(": it is {}", in_the_way(&obstacle, lease, cluster.server_time()))
            })
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
