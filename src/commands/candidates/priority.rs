//! `set-priority` and `clear-priority`.
//!
//! While the lead is moving a priority is not taken back: the leader was asked to step down, and if it were the
//! best again nobody would be elected. It is waited until the handover is over.

use std::{cell::Cell, time::Duration};

use futures::future::{join_all, try_join_all};
use tokio::time::{Instant, sleep};

use super::{
    Controller, Election, agree, elections, gather,
    obstacles::{obstacles, pass},
    plan::{Change, Plan, either, is_stranded, open, settle},
    rescue::{DECIDED_WITHIN, rescue, rescue_all},
    skew,
};
use crate::{
    cli::{ClearPriority, DryRun, SetPriority},
    cluster::{
        Cluster, Object, Refusal, Resource,
        candidates::{Wish, address, vanished},
        single::Writing,
        watch::until,
    },
    commands::{dry_run_note, interrupted, none_so_far, writing},
    domain::{
        candidate::{Candidate, State},
        duration::age,
        forecast::{Doubt, ELECTED_FOR, Forecast, Strands, after_clearing},
        lease::short,
        priority::{self, How, Priority},
        remains::{SILENT_FOR, is_superseded},
        rights::pasted,
        safer::with_flags,
        time::ServerTime,
    },
    error::{Error, Result},
    exit::ExitCode,
    output::{Printer, progress::WaitLine},
    session::handover::{self, Answer, Stage},
};

/// How long to wait for a handover where no time is given: one takes 17 to 22 seconds.
pub const HANDOVER: Duration = Duration::from_secs(60);
/// How often a write is decided again when somebody else wrote in between.
const ATTEMPTS: u32 = 10;
const QUIET: Duration = Duration::from_secs(60);
/// How often at most an outage is told of while a priority cannot be cleared.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// A candidate that is to have a priority.
struct Target {
    /// As it answered.
    candidate: Candidate,
    /// The ping by which that was found out.
    pinged: Option<jiff::Timestamp>,
    how: How,
    plan: Plan,
    /// What follows when the priority is cleared again.
    cleared: Forecast,
}

pub async fn set(
    args: &SetPriority,
    namespace: Option<&str>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let found = gather(namespace, cluster).await?;
    let controller = Controller::find(&found.parts, namespace, cluster).await?;
    let all = elections(&found.parts);
    let now = cluster.server_time();
    let chosen = find(&args.candidate, args.lease.as_deref(), &all, now)?;
    // Whatever else speaks against it is added here.
    for (election, candidate) in &chosen {
        let obstacles = obstacles(election, candidate, args.priority, &controller, now);
        pass(obstacles, args.force, cluster.flags(), printer)?;
        skew::check(election, candidate, &found.parts, args.force, cluster, printer).await?;
    }
    if controller == Controller::Unseen {
        printer
            .warn("you may not see whether the election controller is alive: without it nothing will happen");
    }

    // What is asked about is known before anybody is asked: whether the candidates are there, how this
    // server has priorities, and that we may write them. A dry run does not even ping.
    let resource = found.resource;
    let answers = try_join_all(chosen.iter().map(async |(_, candidate)| match args.write.dry_run {
        DryRun::None => handover::answers(cluster, resource, candidate, handover::FRESH).await,
        _ => Ok(Some(Answer { candidate: Candidate::clone(candidate), pinged: None })),
    }))
    .await?;
    let mut targets = Vec::new();
    for ((election, candidate), answered) in chosen.into_iter().zip(answers) {
        if answered.is_none() {
            let message = format!("{} does not answer a ping: it would not be elected", candidate.name());
            if !args.force {
                return Err(Error::Refused {
                    message,
                    hint: Some("see whether its process runs; --force sets the priority all the same".into()),
                });
            }
            printer.warn(&message);
        }
        let answer = answered.unwrap_or_else(|| Answer { candidate: candidate.clone(), pinged: None });
        targets.push(target(args, election, answer, resource, cluster).await?);
    }
    agree(&words(args, &targets), args.yes, args.write.dry_run, cluster, printer)?;

    let note = dry_run_note(&args.write);
    let done = |target: &Target| {
        let by = if target.how == How::Pinned { " (pinned by its emulation version)" } else { "" };
        format!("{} priority set to {}{by}{note}", target.candidate.name(), args.priority)
    };
    if args.write.dry_run == DryRun::Client {
        for target in &targets {
            printer.done(&done(target))?;
        }
        return Ok(ExitCode::Done);
    }
    if args.write.dry_run == DryRun::None {
        for target in &mut targets {
            let wanted = (args.priority, args.force);
            let last = until_it_can_be_set(cluster, resource, target, wanted, printer).await?;
            // Somebody may have written since what was agreed on.
            target.plan = last.unwrap_or_else(|| target.plan.clone());
        }
    }
    // From now on: the answer may have taken its time.
    let end = args.for_.and_then(|length| cluster.server_time().0.checked_add(length).ok());
    let wish = Wish {
        value: args.priority,
        // Whole seconds, and none too few.
        expires: end.and_then(|end| jiff::Timestamp::from_second(end.as_second() + 1).ok()),
    };
    let settings: Vec<_> = targets
        .iter()
        .map(|target| Setting { cluster, resource, target, wish: &wish, written: Cell::new(false) })
        .collect();
    if let (Some(expires), false, DryRun::None) = (wish.expires, args.detach, args.write.dry_run) {
        return for_a_time(&settings, expires, args, &done, printer).await;
    }
    for_good(&settings, args, &done, printer).await
}

/// Waits until a priority leaves nobody without a leader: how the election then stands. Who is only about to be
/// asked to step down is preferred in time, most likely. A leader that stepped down may have exited.
async fn until_it_can_be_set(
    cluster: &Cluster,
    resource: Resource,
    Target { candidate, how, plan, .. }: &Target,
    (value, force): (i32, bool),
    printer: &mut Printer,
) -> Result<Option<Plan>> {
    let change = |it: &Candidate| {
        let same = it.metadata.uid == candidate.metadata.uid;
        same.then(|| priority::imagine(it, Some(value), *how))
    };
    let mut line = WaitLine::default();
    let settled = settle(cluster, &plan.at, &change, false, HANDOVER, |plan| {
        line.say(printer, &in_the_way(plan, "the priority is set"), "");
    });
    let settled = settled.await?;
    drop(line);
    // A renewal of a moment ago may be the last one of a leader that has exited since.
    let asked = async || handover::answers(cluster, resource, candidate, jiff::SignedDuration::ZERO).await;
    if settled.waited && asked().await?.is_none() {
        let led = plan.from.as_deref() == Some(candidate.name());
        let error = ended(candidate, led, value, cluster.flags());
        if !force {
            return Err(error);
        }
        printer.warn(&error.to_string());
    }
    Ok(settled.plan)
}

/// The process of a candidate ended before it had the priority.
fn ended(candidate: &Candidate, led: bool, value: i32, flags: &str) -> Error {
    let led = if led { "it has stepped down, and " } else { "it " };
    let hint = format!(
        "a component that restarts comes back under a new name: 'kubectl lease candidates set-priority {} {value} \
         -n {}' prefers it then",
        pasted(candidate.host(), "HOST"),
        candidate.metadata.namespace
    );
    Error::NotFound {
        message: format!("{} has ended: {led}does not answer", candidate.name()),
        hint: Some(with_flags(&hint, flags)),
    }
}

/// How a priority would be had, and what follows from it.
async fn target(
    args: &SetPriority,
    election: &Election<'_>,
    Answer { candidate, pinged }: Answer,
    resource: Resource,
    cluster: &Cluster,
) -> Result<Target> {
    let how = match args.write.dry_run {
        DryRun::Client if election.candidates.iter().any(|(it, _)| it.spec.priority.is_some()) => How::Native,
        DryRun::Client => How::Pinned,
        _ => cluster.priority_by(resource, &candidate, args.priority).await?,
    };
    let imagined = priority::imagine(&candidate, Some(args.priority), how);
    let change = |it: &Candidate| (it.name() == candidate.name()).then(|| imagined.clone());
    let now = cluster.server_time();
    let plan = Plan::new(election, &change, now);
    let with: Vec<Candidate> = election
        .candidates
        .iter()
        .map(|(it, _)| change(it).unwrap_or_else(|| Candidate::clone(it)))
        .collect();
    let with: Vec<&Candidate> = with.iter().collect();
    let from = plan.from.as_deref().filter(|from| *from != candidate.name());
    // A leader that was just elected and has not renewed yet does not end when it is asked to step down: it
    // may have the lead again.
    let lease = election.lease.map(|(lease, _)| lease);
    let just_elected = lease.is_some_and(|lease| lease.spec.lease_duration_seconds == Some(ELECTED_FOR));
    let cleared = if just_elected && from.is_some() {
        Forecast::Nothing
    } else {
        after_clearing(&with, &priority::imagine(&candidate, None, how), from, now)
    };
    Ok(Target { candidate, pinged, how, plan, cleared })
}

/// What will happen, in words.
fn words(args: &SetPriority, targets: &[Target]) -> Vec<String> {
    let length = args.for_.map(|length| format!(" for {}", humantime::format_duration(length)));
    let length = length.unwrap_or_default();
    let mut words = Vec::new();
    for Target { candidate, plan, cleared, .. } in targets {
        words.push(format!("{} gets priority {}{length}.", candidate.name(), args.priority));
        if let Some(priority) = Priority::of(candidate) {
            let until = priority.expires.map_or_else(String::new, |end| format!(" until {end:.0}"));
            words.push(format!("It has priority {}{until} already, which is replaced.", priority.value));
        }
        if plan.strands == Some(Strands::Asked) {
            words
                .push(format!("It is set when the lead of {} has moved, which it is about to.", plan.called));
        }
        words.extend(plan.words(false));
        if args.for_.is_some() && plan.forecast.names() == [candidate.name().to_owned()] {
            words.push(when_cleared(candidate, plan.from.as_deref(), cleared));
        }
    }
    words.push("The priority is lost when the component restarts.".into());
    words
}

/// What follows when the priority of the new leader is cleared.
fn when_cleared(candidate: &Candidate, from: Option<&str>, cleared: &Forecast) -> String {
    let back = from.map_or_else(String::new, |from| {
        format!(
            ", where the instance on {} is back as the youngest candidate",
            crate::domain::lease::host(from)
        )
    });
    match cleared {
        Forecast::Stays => format!("When that is cleared, {} keeps the lead{back}.", candidate.name()),
        Forecast::Moves(names) => {
            format!("When that is cleared, the lead moves to {}: a second failover{back}.", either(names))
        }
        _ => format!("When that is cleared, it cannot be told where the lead goes{back}."),
    }
}

/// What is waited for before something is written.
fn in_the_way(plan: &Plan, what: &str) -> String {
    let from = plan.from.as_deref().map_or("the leader".to_owned(), short);
    format!("the lead of {} is moving from {from}: {what} when that is over", plan.called)
}

/// A priority that is being set.
struct Setting<'s> {
    cluster: &'s Cluster,
    resource: Resource,
    /// The candidate as it was when the user agreed.
    target: &'s Target,
    wish: &'s Wish,
    /// Whether it is known to be written.
    written: Cell<bool>,
}

impl Setting<'_> {
    fn candidate(&self) -> &Candidate {
        &self.target.candidate
    }

    async fn write(&self, writing: &Writing) -> Result<Candidate> {
        let wish = Some((self.wish, self.target.how));
        let written = write(self.cluster, self.resource, self.candidate(), wish, writing).await?;
        self.written.set(true);
        Ok(written)
    }

    /// The controller may have decided against a leader before it saw its priority. Where it has asked it to step
    /// down, that is left to happen first.
    async fn see_that_it_is_not_asked(&self, writing: &Writing, printer: &mut Printer) -> Result<()> {
        let Target { plan, candidate, .. } = self.target;
        if !plan.keeps_the_leader() || writing.dry_run {
            return Ok(());
        }
        // A priority that was lowered has another for the best, which clearing it does not change.
        let leads = plan.from.as_deref() == Some(candidate.name());
        let deadline = Instant::now() + DECIDED_WITHIN;
        while leads && plan.may_be_asked() && Instant::now() < deadline {
            sleep(Duration::from_secs(1)).await;
            if is_stranded(self.cluster, &plan.at).await? {
                printer.note(&format!(
                    "{} was asked to step down before it had the priority: it is cleared until that is over",
                    candidate.name()
                ));
                if self.take_back_once().await? {
                    self.written.set(false);
                    let wanted = (self.wish.value, false);
                    until_it_can_be_set(self.cluster, self.resource, self.target, wanted, printer).await?;
                    self.write(writing).await?;
                }
                return Ok(());
            }
        }
        rescue(self.cluster, &plan.at, self.target.pinged, printer).await
    }

    /// Whether a candidate has what this run wrote, and not what somebody else did.
    fn is_ours(&self, candidate: &Candidate) -> bool {
        let wanted = (self.wish.value, self.wish.expires);
        Priority::of(candidate).is_some_and(|priority| (priority.value, priority.expires) == wanted)
    }

    /// Takes back what this run wrote, or may have written, once the handover is over that it began.
    /// `false` if there is nothing of ours. An outage is waited for, until the caller has no patience.
    async fn take_back(&self, printer: &mut Printer) -> Result<bool> {
        let uid = &self.candidate().metadata.uid;
        let change = |it: &Candidate| {
            let ours = it.metadata.uid == *uid && self.is_ours(it);
            ours.then(|| priority::imagine(it, None, How::Pinned))
        };
        let mut refusal = Refusal::default();
        let mut told: Option<Instant> = None;
        let mut settled = false;
        let mut looks = if self.written.get() { 1 } else { 2 };
        loop {
            let done = if settled {
                self.take_back_once().await
            } else {
                let mut line = WaitLine::default();
                let over = settle(self.cluster, &self.target.plan.at, &change, true, Duration::MAX, |plan| {
                    let news = in_the_way(plan, "the priority is cleared");
                    line.say(printer, &format!("{news}; Ctrl-C leaves it"), "");
                });
                match over.await {
                    Ok(_) => {
                        settled = true;
                        continue;
                    }
                    Err(error) => Err(error),
                }
            };
            let error = match done {
                Ok(true) => return Ok(true),
                Ok(false) if looks == 1 => return Ok(false),
                // A write that got no answer may still be on its way.
                Ok(false) => {
                    looks -= 1;
                    sleep(Duration::from_secs(1)).await;
                    continue;
                }
                Err(error) => error,
            };
            // A credential plugin may be asking for something that is not there now, such as a smart card.
            let again = error.is_unclear()
                || error.is_conflict()
                || matches!(error, Error::LostRace { .. } | Error::Credential { .. });
            // Before that, it has been waited for.
            if !(again || settled && refusal.may_pass(&error)) {
                return Err(error);
            }
            if told.is_none_or(|told| told.elapsed() > TOLD_EVERY) {
                told = Some(Instant::now());
                printer
                    .warn(&format!("the priority cannot be cleared yet, trying again until Ctrl-C: {error}"));
            }
            sleep(error.pause(Duration::from_secs(1))).await;
        }
    }

    async fn take_back_once(&self) -> Result<bool> {
        let now = match handover::read_again(self.cluster, self.resource, self.candidate()).await {
            Err(error) if error.is_not_found() => return Ok(false),
            now => now?,
        };
        if !self.is_ours(&now) {
            return Ok(false);
        }
        write(self.cluster, self.resource, &now, None, &Writing::default()).await.map(|_| true)
    }

    /// Waits until there is nothing to keep any more.
    async fn keep(&self) -> Result<Kept> {
        let (cluster, candidate) = (self.cluster, self.candidate());
        let at = address(candidate);
        until(cluster, self.resource, &at, QUIET, |now: Option<&Object<Candidate>>| {
            let Some(now) = now.filter(|now| now.value.metadata.uid == candidate.metadata.uid) else {
                return Some(Kept::Gone("it is gone, and the priority with it"));
            };
            if !self.is_ours(&now.value) {
                return Some(Kept::Gone("somebody else has changed its priority; it was left so"));
            }
            let time = cluster.server_time();
            let unanswered = now.value.spec.ping_time.filter(|_| now.value.owes_an_answer());
            let silent = unanswered.is_some_and(|pinged| time.since(pinged) > SILENT_FOR);
            (silent || now.value.is_overdue(time)).then_some(Kept::Dead)
        })
        .await
    }
}

/// Sets priorities that stay until they are cleared.
async fn for_good(
    settings: &[Setting<'_>],
    args: &SetPriority,
    done: &dyn Fn(&Target) -> String,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let writing = writing(&args.write);
    if !writing.dry_run {
        none_so_far().await?;
    }
    // What was begun for all is not left half done because nothing reads the output.
    let mut failure = None;
    for setting in settings {
        let written = setting.write(&writing).await.inspect_err(|error| {
            if error.is_unclear() {
                let words = format!(
                    "it is not known whether the priority was set: 'kubectl lease candidates -n {}' shows it",
                    setting.target.plan.at.namespace
                );
                printer.warn(&with_flags(&words, setting.cluster.flags()));
            }
        });
        written?;
        let Target { candidate, plan, .. } = setting.target;
        tokio::select! {
            seen = setting.see_that_it_is_not_asked(&writing, printer) => seen,
            error = interrupted() => Err(error),
        }
        .inspect_err(|_| {
            let stands = if setting.written.get() {
                format!(
                    "has priority {}; whether the leader was asked to step down just before is not known",
                    args.priority
                )
            } else {
                "has no priority, which was cleared until it has stepped down".to_owned()
            };
            let words = format!(
                "{} {stands}: 'kubectl lease candidates explain {} -n {}' shows it",
                candidate.name(),
                pasted(&plan.at.name, "LEASE"),
                plan.at.namespace
            );
            printer.note(&with_flags(&words, setting.cluster.flags()));
        })?;
        if let Err(error) = printer.done(&done(setting.target)) {
            keep(&mut failure, error);
        }
    }
    if let Some(error) = failure {
        return Err(error);
    }
    let cluster = settings.first().map(|setting| setting.cluster);
    if let (Some(wait), Some(cluster), false) = (args.wait, cluster, writing.dry_run) {
        let names: Vec<_> = settings.iter().map(|it| pasted(it.candidate().name(), "CANDIDATE")).collect();
        let plans = settings.iter().map(|setting| &setting.target.plan);
        tokio::select! {
            seen = see_all_through(plans, wait.unwrap_or(HANDOVER), cluster, printer) => seen?,
            error = interrupted() => {
                let words = format!(
                    "the priority stays, and the lead goes on moving; 'kubectl lease candidates clear-priority \
                     {}' takes it away",
                    names.join(" ")
                );
                printer.note(&with_flags(&words, cluster.flags()));
                return Err(error);
            }
        }
    }
    Ok(ExitCode::Done)
}

/// Sets priorities, and clears them when their time is over: or when it is interrupted, or anything
/// fails. They were meant for a time, and are not left behind.
async fn for_a_time(
    settings: &[Setting<'_>],
    expires: jiff::Timestamp,
    args: &SetPriority,
    done: &dyn Fn(&Target) -> String,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let work = async {
        for setting in settings {
            setting.write(&Writing::default()).await?;
            setting.see_that_it_is_not_asked(&Writing::default(), printer).await?;
            printer.done(&done(setting.target))?;
        }
        let cluster = settings.first().map(|setting| setting.cluster);
        if let (Some(wait), Some(cluster)) = (args.wait, cluster) {
            let plans = settings.iter().map(|setting| &setting.target.plan);
            see_all_through(plans, wait.unwrap_or(HANDOVER), cluster, printer).await?;
        }
        keep_until(settings, expires, printer).await
    };
    let outcome = tokio::select! {
        // Listened for before anything is written.
        biased;
        error = interrupted() => Err(error),
        outcome = work => outcome,
    };
    let mut failure = None;
    for (n, setting) in settings.iter().enumerate() {
        let name = setting.candidate().name();
        if let Ok(Some(Kept::Gone(why))) = outcome.as_ref().map(|kept| kept.get(n)) {
            printer.note(&format!("{name}: {why}"));
            continue;
        }
        let cleared = tokio::select! {
            cleared = setting.take_back(printer) => cleared,
            error = interrupted() => Err(error),
        };
        match cleared {
            // Whatever fails here, and whoever interrupts it, the other priorities are cleared too.
            Ok(true) => {
                let told = printer.done(&format!("{name} priority cleared"));
                let rescued = rescue_all(setting.cluster, &[&setting.target.plan], printer).await;
                for error in [rescued.err(), told.err()].into_iter().flatten() {
                    keep(&mut failure, error);
                }
            }
            Ok(false) => {}
            Err(error) => {
                let words = format!(
                    "{name} keeps its priority: 'kubectl lease candidates clear-priority {} -n {}' clears it, and \
                     'kubectl lease candidates clear-priority --expired' when its time is over",
                    pasted(name, "CANDIDATE"),
                    setting.target.plan.at.namespace
                );
                printer.warn(&with_flags(&words, setting.cluster.flags()));
                keep(&mut failure, error);
            }
        }
    }
    let kept = outcome.unwrap_or_else(|error| {
        keep(&mut failure, error);
        Vec::new()
    });
    if let Some(error) = failure {
        return Err(error);
    }
    let dead = kept.iter().position(|kept| matches!(kept, Kept::Dead)).and_then(|n| settings.get(n));
    dead.map_or(Ok(ExitCode::Done), |dead| {
        Err(Error::NotFound {
            message: format!(
                "{} does not answer any more: its component has ended or restarted",
                dead.candidate().name()
            ),
            hint: Some("a component that restarts comes back under a new name, without the priority".into()),
        })
    })
}

/// Keeps the first error to end with; a real failure goes before an output that nothing reads.
fn keep(failure: &mut Option<Error>, error: Error) {
    let is_closed_output = |error: &Error| error.exit_code() == ExitCode::Done;
    if failure.as_ref().is_none_or(|first| is_closed_output(first) && !is_closed_output(&error)) {
        *failure = Some(error);
    }
}

pub async fn clear(
    args: &ClearPriority,
    namespace: Option<&str>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<ExitCode> {
    if args.candidates.is_empty() && !args.all && !args.expired {
        return Err(Error::Usage {
            message: "no candidate is named".into(),
            hint: Some("name candidates, or use --all or --expired".into()),
        });
    }
    let found = gather(namespace, cluster).await?;
    let all = elections(&found.parts);
    let now = cluster.server_time();
    let chosen = chosen(args, &all, now)?;
    let (marked, plain): (Vec<_>, Vec<_>) =
        chosen.into_iter().partition(|(_, candidate)| priority::is_marked(candidate));
    // That nothing reads the output is no reason to keep a priority.
    let mut failure = None;
    for (_, candidate) in &plain {
        if let Err(error) = printer.done(&format!("{} has no priority", candidate.name())) {
            keep(&mut failure, error);
        }
    }
    if marked.is_empty() {
        if plain.is_empty() {
            printer.note("no candidate has a priority that would be cleared");
        }
        return failure.map_or(Ok(ExitCode::Done), Err);
    }

    // What follows for each election from all that is cleared in it.
    let change = |it: &Candidate| {
        let meant = marked.iter().any(|(_, candidate)| candidate.metadata.uid == it.metadata.uid);
        meant.then(|| priority::imagine(it, None, How::Pinned))
    };
    let mut plans: Vec<Plan> = Vec::new();
    for (election, _) in &marked {
        if !plans.iter().any(|plan| plan.called == election.called()) {
            plans.push(Plan::new(election, &change, now));
        }
    }
    let names: Vec<_> = marked.iter().map(|(_, candidate)| candidate.name()).collect();
    let mut words = vec![format!("The priority of {} is cleared.", names.join(", "))];
    for plan in &plans {
        if plan.strands.is_some() && args.force {
            words.push(format!(
                "The lead of {} is moving: it may be left without a leader ('kubectl lease candidates repair {} -n {}' \
                 gets it going again).",
                plan.called,
                pasted(&plan.at.name, "LEASE"),
                plan.at.namespace
            ));
        } else if plan.strands.is_some() {
            words.push(format!(
                "The lead of {} is moving: the priority is cleared when that is over, and where the lead then goes is \
                 said then.",
                plan.called
            ));
        } else {
            words.extend(plan.words(!plan.is_moving));
        }
    }
    agree(&words, args.yes, args.write.dry_run, cluster, printer)?;
    if args.write.dry_run == DryRun::None && !args.force {
        plans = settle_all(plans, &change, cluster, printer).await?;
        none_so_far().await?;
    }

    let writing = writing(&args.write);
    let note = dry_run_note(&args.write);
    // One that cannot be cleared is no reason to keep the others.
    for (_, candidate) in &marked {
        let cleared = match args.write.dry_run {
            DryRun::Client => Ok(()),
            _ => write(cluster, found.resource, candidate, None, &writing).await.map(|_| ()),
        };
        match cleared {
            Ok(()) => {
                if let Err(error) = printer.done(&format!("{} priority cleared{note}", candidate.name())) {
                    keep(&mut failure, error);
                }
            }
            Err(error) => {
                if let Some(earlier) = failure.replace(error).filter(|earlier| !earlier.is_silent()) {
                    printer.error(&earlier);
                }
            }
        }
    }
    if args.write.dry_run == DryRun::None && !args.force {
        let plans: Vec<_> = plans.iter().collect();
        if let Err(error) = rescue_all(cluster, &plans, printer).await {
            keep(&mut failure, error);
        }
    }
    if let Some(error) = failure {
        return Err(error);
    }
    if let (Some(wait), DryRun::None) = (args.wait, args.write.dry_run) {
        tokio::select! {
            seen = see_all_through(plans.iter(), wait.unwrap_or(HANDOVER), cluster, printer) => seen?,
            error = interrupted() => return Err(error),
        }
    }
    Ok(ExitCode::Done)
}

/// Waits for the handovers that clearing would take back. What follows then is said again where it was not
/// known before.
async fn settle_all(
    plans: Vec<Plan>,
    change: Change<'_>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<Vec<Plan>> {
    let mut settled = Vec::new();
    for plan in plans {
        let mut line = WaitLine::default();
        let waited = settle(cluster, &plan.at, change, true, HANDOVER, |plan| {
            line.say(printer, &in_the_way(plan, "the priority is cleared"), "");
        })
        .await
        .map_err(|error| match error {
            Error::TimedOut { message } => {
                Error::TimedOut { message: format!("{message}: nothing was cleared; --force does not wait") }
            }
            error => error,
        })?;
        drop(line);
        if !waited.waited {
            settled.push(plan);
            continue;
        }
        let Some(found) = cluster.elections(Some(&plan.at.namespace)).await? else { continue };
        let all = elections(&found.parts);
        if let Some(election) = all.iter().find(|election| election.name == plan.at.name) {
            let now = Plan::new(election, change, cluster.server_time());
            for line in now.words(true) {
                printer.note(&with_flags(&line, cluster.flags()));
            }
            settled.push(now);
        }
    }
    Ok(settled)
}

type Chosen<'e, 'a> = (&'e Election<'a>, &'a Candidate);

fn chosen<'e, 'a>(
    args: &ClearPriority,
    all: &'e [Election<'a>],
    now: ServerTime,
) -> Result<Vec<Chosen<'e, 'a>>> {
    if !args.candidates.is_empty() {
        let mut chosen: Vec<Chosen<'e, 'a>> = Vec::new();
        for name in &args.candidates {
            for one in find_marked(name, args.lease.as_deref(), all, now)? {
                if !chosen.iter().any(|(_, it)| it.metadata.uid == one.1.metadata.uid) {
                    chosen.push(one);
                }
            }
        }
        return Ok(chosen);
    }
    let wanted = |candidate: &Candidate| {
        priority::is_marked(candidate) && (args.all || priority::is_overdue(candidate, now))
    };
    Ok(of_lease(args.lease.as_deref(), all).filter(|(_, candidate)| wanted(candidate)).collect())
}

fn of_lease<'e, 'a>(lease: Option<&str>, all: &'e [Election<'a>]) -> impl Iterator<Item = Chosen<'e, 'a>> {
    all.iter()
        .filter(move |election| lease.is_none_or(|lease| lease == election.name))
        .flat_map(|election| election.candidates.iter().map(move |(candidate, _)| (election, *candidate)))
}

/// The candidates whose priority is meant. A component that has restarted leaves its priority behind, on a
/// candidate of the same host that does not answer any more.
fn find_marked<'e, 'a>(
    wanted: &str,
    lease: Option<&str>,
    all: &'e [Election<'a>],
    now: ServerTime,
) -> Result<Vec<Chosen<'e, 'a>>> {
    let marked: Vec<_> = of_lease(lease, all)
        .filter(|(_, it)| priority::is_marked(it) && (it.name() == wanted || it.host() == wanted))
        .collect();
    if marked.is_empty() { find(wanted, lease, all, now) } else { Ok(marked) }
}

/// Whether a candidate is meant, and whether one of each lease can be.
type Way<'w> = (&'w dyn Fn(&Candidate) -> bool, bool);

/// The candidates that are meant, one of each lease: by the name, by the host, or by the beginning of the name.
/// Several components can run on one host.
fn find<'e, 'a>(
    wanted: &str,
    lease: Option<&str>,
    all: &'e [Election<'a>],
    now: ServerTime,
) -> Result<Vec<Chosen<'e, 'a>>> {
    let lives = |(election, candidate): &Chosen<'e, 'a>| {
        let beside: Vec<_> = election.candidates.iter().map(|(it, _)| *it).collect();
        !matches!(candidate.state(now), State::Stale | State::Expired) && !is_superseded(candidate, &beside)
    };
    let candidates: Vec<Chosen<'e, 'a>> = of_lease(lease, all).collect();
    let ways: [Way<'_>; 3] = [
        (&|candidate| candidate.name() == wanted, true),
        (&|candidate| candidate.host() == wanted, true),
        (&|candidate| candidate.name().starts_with(wanted), false),
    ];
    for (way, several) in ways {
        let mut found: Vec<_> = candidates.iter().filter(|(_, candidate)| way(candidate)).copied().collect();
        // What a component left behind when it restarted is not meant where it is back.
        let back: Vec<String> =
            found.iter().filter(|one| lives(one)).map(|(election, _)| election.called()).collect();
        found.retain(|one| lives(one) || !back.contains(&one.0.called()));
        let leases: std::collections::BTreeSet<_> =
            found.iter().map(|(election, _)| election.called()).collect();
        match found.len() {
            0 => {}
            1 => return Ok(found),
            count if several && count == leases.len() => return Ok(found),
            _ => return Err(ambiguous(wanted, &found)),
        }
    }
    Err(Error::NotFound {
        message: format!("there is no candidate '{wanted}'"),
        hint: Some(
            "'kubectl lease candidates' lists them; a component that restarts comes back under a new name"
                .into(),
        ),
    })
}

fn ambiguous(wanted: &str, found: &[Chosen<'_, '_>]) -> Error {
    let mut names: Vec<_> = found
        .iter()
        .map(|(election, candidate)| format!("{} for {}", candidate.name(), election.called()))
        .collect();
    if names.len() > 5 {
        let more = names.len() - 4;
        names.truncate(4);
        names.push(format!("one of {more} more"));
    }
    Error::Usage {
        message: format!("'{wanted}' can be {}", names.join(", or ")),
        hint: Some("give the whole name, or --lease or -n".into()),
    }
}

/// Sets or clears. A candidate writes its whole object at each renewal: where somebody wrote in
/// between it is read and decided again, and what was agreed on stands only if nobody else has
/// changed its priority.
async fn write(
    cluster: &Cluster,
    resource: Resource,
    agreed: &Candidate,
    wish: Option<(&Wish, How)>,
    writing: &Writing,
) -> Result<Candidate> {
    let mark = |it: &Candidate| (Priority::of(it), it.spec.emulation_version.clone());
    let mut before = agreed.clone();
    for _ in 0..ATTEMPTS {
        if wish.is_none() && !priority::is_marked(&before) {
            return Ok(before);
        }
        match cluster.set_priority(resource, &before, wish, writing).await {
            Ok(after) => return Ok(Candidate::clone(&after.value)),
            Err(error) if error.is_not_found() => return Err(vanished(agreed)),
            Err(error) if error.is_conflict() => {
                before = handover::read_again(cluster, resource, agreed).await?;
                if mark(&before) != mark(agreed) {
                    let now = Priority::of(&before).map_or("none".to_owned(), |now| now.value.to_string());
                    return Err(Error::LostRace {
                        message: format!(
                            "somebody else has changed the priority of {} meanwhile, to {now}; it was left so",
                            agreed.name()
                        ),
                    });
                }
            }
            Err(error) => return Err(error),
        }
    }
    Err(Error::LostRace {
        message: format!("{} is written by others all the time; its priority was not changed", agreed.name()),
    })
}

/// Follows several leads until they are where they should be, all within this time.
async fn see_all_through(
    plans: impl Iterator<Item = &Plan>,
    within: Duration,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<()> {
    let deadline = Instant::now() + within;
    for plan in plans {
        see_through(plan, deadline.saturating_duration_since(Instant::now()), cluster, printer).await?;
    }
    Ok(())
}

/// Follows the lead until it is where it should be.
pub async fn see_through(
    plan: &Plan,
    within: Duration,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<()> {
    let Plan { called, at, .. } = plan;
    let from = plan.from.as_deref().unwrap_or_default();
    let to = match &plan.forecast {
        Forecast::Stays => {
            printer.note(&format!("the lead of {called} does not move"));
            return Ok(());
        }
        Forecast::Open(doubt @ (Doubt::Tie | Doubt::JustEnded), names) => {
            printer.note(&format!("{} Not waiting for it.", open(*doubt, names, from, called)));
            return Ok(());
        }
        Forecast::Moves(to) | Forecast::Elects(to) | Forecast::Open(_, to) if !to.is_empty() => to,
        _ => {
            printer.note(&format!("no candidate is elected for {called}: not waiting for it"));
            return Ok(());
        }
    };
    let mut line = WaitLine::default();
    let began = cluster.server_time();
    let name = to.iter().map(|to| short(to)).collect::<Vec<_>>().join(" or ");
    let waiting = handover::until_leads(cluster, at, to, within, |stage| {
        let (news, detail) = match stage {
            Stage::Waiting { leader } => {
                (format!("{} leads and is about to be asked to step down", short(leader)), String::new())
            }
            Stage::Yielding { leader, to, left } => (
                format!("{} steps down for {}", short(leader), short(to)),
                format!(", its lease runs out in {}", age(*left)),
            ),
            Stage::Electing => (format!("nobody leads {called}, electing"), String::new()),
            Stage::Elected => (format!("{name} is elected, waiting for its first renewal"), String::new()),
            // Said below, on stdout.
            Stage::Leads => return,
        };
        let passed = format!("{detail} ({})", age(cluster.server_time().since(began.0)));
        line.say(printer, &news, &passed);
    });
    let leads = waiting.await?;
    drop(line);
    printer.done(&format!("{leads} leads {called}"))
}

enum Kept {
    /// Its time is over.
    Over,
    /// There is nothing of ours any more.
    Gone(&'static str),
    /// The candidate does not answer.
    Dead,
}

/// Waits until the time of the priorities is over, or none of them is left to keep.
async fn keep_until(
    settings: &[Setting<'_>],
    expires: jiff::Timestamp,
    printer: &mut Printer,
) -> Result<Vec<Kept>> {
    let Some(first) = settings.first() else { return Ok(Vec::new()) };
    let left =
        || Duration::try_from(expires.duration_since(first.cluster.server_time().0)).unwrap_or_default();
    let names: Vec<_> = settings.iter().map(|setting| short(setting.candidate().name())).collect();
    let verb = if names.len() == 1 { "has" } else { "have" };
    let news = format!("{} {verb} priority {}, Ctrl-C clears it", names.join(", "), first.wish.value);
    let over = async {
        let mut line = WaitLine::default();
        while left() > Duration::ZERO {
            let whole = Duration::from_secs(left().as_secs());
            line.say(printer, &news, &format!(" ({} left)", humantime::format_duration(whole)));
            sleep(left().min(Duration::from_secs(1))).await;
        }
    };
    tokio::select! {
        ended = join_all(settings.iter().map(Setting::keep)) => ended.into_iter().collect(),
        () = over => Ok(settings.iter().map(|_| Kept::Over).collect()),
    }
}
