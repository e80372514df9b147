//! `set-priority` and `clear-priority`.

use std::{cell::Cell, time::Duration};

use jiff::SignedDuration;
use tokio::time::{Instant, sleep};

use super::{Controller, Election, elections, gather, told};
use crate::{
    cli::{ClearPriority, DryRun, SetPriority},
    cluster::{
        Cluster, Object, Resource,
        candidates::{Wish, address, vanished},
        single::Writing,
        watch::until,
    },
    commands::{dry_run_note, interrupted, writing},
    domain::{
        candidate::{Candidate, State},
        duration::age,
        election::{Leader, Outlook, Strategy, Wrong},
        lease::{Lease, is_object_name, short},
        priority::{self, How, Priority},
        time::ServerTime,
    },
    error::{Error, Result},
    exit::ExitCode,
    output::{Printer, progress::WaitLine, prompt},
    session::handover::{self, Stage},
};

/// How long to wait for a handover where no time is given: one takes 17 to 22 seconds.
const HANDOVER: Duration = Duration::from_secs(60);
/// How often a write is decided again when somebody else wrote in between.
const ATTEMPTS: u32 = 10;
const QUIET: Duration = Duration::from_secs(60);
/// A candidate that has not answered for so long has ended: it is not only slow.
const SILENT_FOR: SignedDuration = SignedDuration::from_secs(20);
/// How long it is tried to take back what was meant for a time: an apiserver restarts in less.
const TAKE_BACK: Duration = Duration::from_secs(90);

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
    let (election, candidate) = find(&args.candidate, args.lease.as_deref(), &all, now)?;
    for obstacle in obstacles(election, candidate, &controller, now) {
        match obstacle {
            Obstacle::Hard(message, hint) => return Err(Error::Refused { message, hint: Some(hint) }),
            Obstacle::Soft(message, hint) if !args.force => {
                let hint = Some(format!("{hint}; --force does it all the same"));
                return Err(Error::Refused { message, hint });
            }
            Obstacle::Soft(message, _) => printer.warn(&message),
        }
    }
    if controller == Controller::Unseen {
        printer
            .warn("you may not see whether the election controller is alive: without it nothing will happen");
    }

    // What is asked about is known before anybody is asked: whether the candidate is there, how this
    // server has priorities, and that we may write them. A dry run does not even ping.
    let resource = found.resource;
    let answered = match args.write.dry_run {
        DryRun::None => handover::answers(cluster, resource, candidate).await?,
        _ => Some(candidate.clone()),
    };
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
    let candidate = answered.as_ref().unwrap_or(candidate);
    let how = match args.write.dry_run {
        DryRun::Client if election.candidates.iter().any(|(it, _)| it.spec.priority.is_some()) => How::Native,
        DryRun::Client => How::Pinned,
        _ => cluster.priority_by(resource, candidate, args.priority).await?,
    };
    let imagined = priority::imagine(candidate, Some(args.priority), how);
    let moves = Moves::between(election, &[&imagined], cluster.server_time());
    agree(&plan(args, election, candidate, &moves), args.yes, args.write.dry_run, printer)?;

    let note = dry_run_note(&args.write);
    let by = if how == How::Pinned { " (pinned by its emulation version)" } else { "" };
    let done = format!("{} priority set to {}{by}{note}", candidate.name(), args.priority);
    if args.write.dry_run == DryRun::Client {
        printer.done(&done)?;
        return Ok(ExitCode::Done);
    }
    // From now on: the answer may have taken its time.
    let end = args.for_.and_then(|length| cluster.server_time().0.checked_add(length).ok());
    let wish = Wish {
        value: args.priority,
        // Whole seconds, and none too few.
        expires: end.and_then(|end| jiff::Timestamp::from_second(end.as_second() + 1).ok()),
    };
    let setting = Setting { cluster, resource, candidate, wish: &wish, how };
    if let (Some(expires), false, DryRun::None) = (wish.expires, args.detach, args.write.dry_run) {
        return for_a_time(&setting, expires, args, election, &moves, &done, printer).await;
    }
    let written = setting.write(&writing(&args.write)).await.inspect_err(|error| {
        if error.is_unclear() {
            printer.warn("it is not known whether the priority was set: 'kubectl lease candidates' shows it");
        }
    });
    written?;
    printer.done(&done)?;
    if let (Some(wait), DryRun::None) = (args.wait, args.write.dry_run) {
        tokio::select! {
            seen = see_through(&moves, election, wait.unwrap_or(HANDOVER), cluster, printer) => seen?,
            error = interrupted() => {
                let name = candidate.name();
                printer.note(&format!(
                    "the priority stays, and the lead goes on moving; 'kubectl lease candidates clear-priority \
                     {name}' takes it away"
                ));
                return Err(error);
            }
        }
    }
    Ok(ExitCode::Done)
}

/// What will happen, in words.
fn plan(args: &SetPriority, election: &Election<'_>, candidate: &Candidate, moves: &Moves) -> Vec<String> {
    let length = args.for_.map(|length| format!(" for {}", humantime::format_duration(length)));
    let mut words =
        vec![format!("{} gets priority {}{}.", candidate.name(), args.priority, length.unwrap_or_default())];
    if let Some(priority) = Priority::of(candidate) {
        let until = priority.expires.map_or_else(String::new, |end| format!(" until {end:.0}"));
        words.push(format!("It has priority {}{until} already, which is replaced.", priority.value));
    }
    words.extend(moves.words(election, false));
    if args.for_.is_some() && !moves.is_none() {
        words.push("When that is cleared the lead moves again: a second failover.".into());
    }
    words.push("The priority is lost when the component restarts.".into());
    words
}

/// A priority that is being set.
struct Setting<'a> {
    cluster: &'a Cluster,
    resource: Resource,
    /// As it was when the user agreed.
    candidate: &'a Candidate,
    wish: &'a Wish,
    how: How,
}

impl Setting<'_> {
    async fn write(&self, writing: &Writing) -> Result<Candidate> {
        write(self.cluster, self.resource, self.candidate, Some((self.wish, self.how)), writing).await
    }

    /// Whether a candidate has what this run wrote, and not what somebody else did.
    fn is_ours(&self, candidate: &Candidate) -> bool {
        let wanted = (self.wish.value, self.wish.expires);
        Priority::of(candidate).is_some_and(|priority| (priority.value, priority.expires) == wanted)
    }

    /// Takes back what this run wrote, or may have written: `written` is whether it is known.
    /// `false` if there is nothing of ours.
    async fn take_back(&self, written: bool, printer: &mut Printer) -> Result<bool> {
        let deadline = Instant::now() + TAKE_BACK;
        let mut looks = if written { 1 } else { 2 };
        loop {
            let error = match self.take_back_once().await {
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
            if !(error.is_unclear() || error.is_conflict()) || Instant::now() > deadline {
                return Err(error);
            }
            printer.warn(&format!("the priority cannot be cleared yet, trying again: {error}"));
            sleep(Duration::from_secs(1)).await;
        }
    }

    async fn take_back_once(&self) -> Result<bool> {
        let now = match handover::read_again(self.cluster, self.resource, self.candidate).await {
            Err(error) if error.is_not_found() => return Ok(false),
            now => now?,
        };
        if !self.is_ours(&now) {
            return Ok(false);
        }
        write(self.cluster, self.resource, &now, None, &Writing::default()).await.map(|_| true)
    }
}

/// Sets a priority, and clears it when its time is over: or when it is interrupted, or anything
/// fails. It was meant for a time, and is not left behind.
async fn for_a_time(
    setting: &Setting<'_>,
    expires: jiff::Timestamp,
    args: &SetPriority,
    election: &Election<'_>,
    moves: &Moves,
    done: &str,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let written = Cell::new(false);
    let work = async {
        setting.write(&Writing::default()).await?;
        written.set(true);
        printer.done(done)?;
        if let Some(wait) = args.wait {
            see_through(moves, election, wait.unwrap_or(HANDOVER), setting.cluster, printer).await?;
        }
        keep_until(setting, expires, printer).await
    };
    let outcome = tokio::select! {
        // Listened for before anything is written.
        biased;
        error = interrupted() => Err(error),
        outcome = work => outcome,
    };
    let name = setting.candidate.name();
    if let Ok(Kept::Gone(why)) = outcome {
        printer.note(&format!("{name}: {why}"));
        return Ok(ExitCode::Done);
    }
    let cleared = tokio::select! {
        cleared = setting.take_back(written.get(), printer) => cleared,
        error = interrupted() => Err(error),
    };
    match cleared {
        Ok(true) => printer.done(&format!("{name} priority cleared"))?,
        Ok(false) => {}
        Err(error) => {
            printer.warn(
                "the priority could not be cleared; 'kubectl lease candidates clear-priority --expired' does it \
                 when its time is over",
            );
            return Err(error);
        }
    }
    match outcome? {
        Kept::Over | Kept::Gone(_) => Ok(ExitCode::Done),
        Kept::Dead => Err(Error::NotFound {
            message: format!("{name} does not answer any more: its component has ended or restarted"),
            hint: Some("a component that restarts comes back under a new name, without the priority".into()),
        }),
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
    for (_, candidate) in &plain {
        printer.done(&format!("{} has no priority", candidate.name()))?;
    }
    if marked.is_empty() {
        if plain.is_empty() {
            printer.note("no candidate has a priority that would be cleared");
        }
        return Ok(ExitCode::Done);
    }

    // What follows for each election from all that is cleared in it.
    let imagined: Vec<_> = marked
        .iter()
        .map(|(election, candidate)| (election.called(), priority::imagine(candidate, None, How::Pinned)))
        .collect();
    let mut plans: Vec<(&Election<'_>, Moves)> = Vec::new();
    for (election, _) in &marked {
        if plans.iter().any(|(planned, _)| planned.called() == election.called()) {
            continue;
        }
        let changed: Vec<_> = imagined
            .iter()
            .filter(|(called, _)| *called == election.called())
            .map(|(_, candidate)| candidate)
            .collect();
        plans.push((election, Moves::between(election, &changed, now)));
    }
    let names: Vec<_> = marked.iter().map(|(_, candidate)| candidate.name()).collect();
    let mut words = vec![format!("The priority of {} is cleared.", names.join(", "))];
    words.extend(
        plans.iter().flat_map(|(election, moves)| moves.words(election, !election.outlook(now).is_moving())),
    );
    agree(&words, args.yes, args.write.dry_run, printer)?;

    let writing = writing(&args.write);
    let note = dry_run_note(&args.write);
    // One that cannot be cleared is no reason to keep the others.
    let mut failure = None;
    for (_, candidate) in &marked {
        let cleared = match args.write.dry_run {
            DryRun::Client => Ok(()),
            _ => write(cluster, found.resource, candidate, None, &writing).await.map(|_| ()),
        };
        match cleared {
            Ok(()) => printer.done(&format!("{} priority cleared{note}", candidate.name()))?,
            Err(error) => {
                if let Some(earlier) = failure.replace(error) {
                    printer.error(&earlier);
                }
            }
        }
    }
    if let Some(error) = failure {
        return Err(error);
    }
    if let (Some(wait), DryRun::None) = (args.wait, args.write.dry_run) {
        for (election, moves) in &plans {
            see_through(moves, election, wait.unwrap_or(HANDOVER), cluster, printer).await?;
        }
    }
    Ok(ExitCode::Done)
}

type Chosen<'e, 'a> = (&'e Election<'a>, &'a Candidate);

fn chosen<'e, 'a>(
    args: &ClearPriority,
    all: &'e [Election<'a>],
    now: ServerTime,
) -> Result<Vec<Chosen<'e, 'a>>> {
    if !args.candidates.is_empty() {
        return args.candidates.iter().map(|name| find(name, args.lease.as_deref(), all, now)).collect();
    }
    let wanted = |candidate: &Candidate| {
        priority::is_marked(candidate) && (args.all || priority::is_overdue(candidate, now))
    };
    let of_lease =
        |election: &&Election<'_>| args.lease.as_deref().is_none_or(|lease| lease == election.name);
    Ok(all
        .iter()
        .filter(of_lease)
        .flat_map(|election| election.candidates.iter().map(move |(candidate, _)| (election, *candidate)))
        .filter(|(_, candidate)| wanted(candidate))
        .collect())
}

/// The one candidate that is meant: by its name, by its host, or by the beginning of its name.
fn find<'e, 'a>(
    wanted: &str,
    lease: Option<&str>,
    all: &'e [Election<'a>],
    now: ServerTime,
) -> Result<Chosen<'e, 'a>> {
    let lives = |candidate: &Candidate, now| !matches!(candidate.state(now), State::Stale | State::Expired);
    let candidates: Vec<Chosen<'e, 'a>> = all
        .iter()
        .filter(|election| lease.is_none_or(|lease| lease == election.name))
        .flat_map(|election| election.candidates.iter().map(move |(candidate, _)| (election, *candidate)))
        .collect();
    let ways: [&dyn Fn(&Candidate) -> bool; 3] =
        [&|candidate| candidate.name() == wanted, &|candidate| candidate.host() == wanted, &|candidate| {
            candidate.name().starts_with(wanted)
        }];
    for way in ways {
        let mut found: Vec<_> = candidates.iter().filter(|(_, candidate)| way(candidate)).collect();
        // What a component left behind when it restarted is not meant where it is back.
        if found.iter().any(|(_, candidate)| lives(candidate, now)) {
            found.retain(|(_, candidate)| lives(candidate, now));
        }
        match found.as_slice() {
            [] => {}
            [one] => return Ok(**one),
            several => {
                let mut names: Vec<_> = several
                    .iter()
                    .map(|(election, candidate)| format!("{} for {}", candidate.name(), election.called()))
                    .collect();
                if names.len() > 5 {
                    let more = names.len() - 4;
                    names.truncate(4);
                    names.push(format!("one of {more} more"));
                }
                return Err(Error::Usage {
                    message: format!("'{wanted}' can be {}", names.join(", or ")),
                    hint: Some("give the whole name, or --lease or -n".into()),
                });
            }
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

/// Why a priority would do nothing, or harm.
enum Obstacle {
    Hard(String, String),
    Soft(String, String),
}

fn obstacles(
    election: &Election<'_>,
    candidate: &Candidate,
    controller: &Controller,
    now: ServerTime,
) -> Vec<Obstacle> {
    let outlook = election.outlook(now);
    let of = |wrong: &Wrong| told(wrong, election, now);
    let mut obstacles = Vec::new();
    if !is_object_name(election.name) {
        obstacles.push(Obstacle::Hard(
            format!(
                "{} is a candidate for {}, and no lease can have that name",
                candidate.name(),
                election.called()
            ),
            "its component has to name another one".into(),
        ));
    }
    if outlook.leader == Leader::Null {
        let (message, hint) = of(&Wrong::NullHolder);
        obstacles.push(Obstacle::Hard(message, hint));
    }
    if let Strategy::Foreign(name) = &outlook.strategy {
        let (message, hint) = of(&Wrong::Foreign(name.clone()));
        obstacles.push(Obstacle::Hard(message, hint));
    } else if priority::pin(1, &priority::true_emulation_version(candidate)).is_none() {
        obstacles.push(Obstacle::Hard(
            format!("the emulation version of {} cannot be read: it is never elected", candidate.name()),
            "see what its component reports as its versions".into(),
        ));
    }
    for wrong in &outlook.wrongs {
        if matches!(wrong, Wrong::Conflict(_) | Wrong::Blocked(_)) {
            let (message, hint) = of(wrong);
            obstacles.push(Obstacle::Soft(message, hint));
        }
    }
    let lease: Option<&Lease> = election.lease.map(|(lease, _)| lease);
    if lease.is_some_and(|lease| lease.spec.strategy.as_deref().unwrap_or_default().is_empty()) {
        obstacles.push(Obstacle::Soft(
            format!("the election for {} is not coordinated: its lease has no strategy", election.called()),
            "its holder runs without coordinated leader election".into(),
        ));
    }
    if let Some(wrong) = controller.wrong() {
        obstacles.push(Obstacle::Soft(wrong, "without it a priority does nothing".into()));
    }
    obstacles
}

/// What becomes of the lead.
struct Moves {
    from: Option<String>,
    /// Who leads afterwards, if that can be told.
    to: Option<String>,
}

impl Moves {
    /// From how an election is to how it will be with these candidates changed.
    fn between(election: &Election<'_>, changed: &[&Candidate], now: ServerTime) -> Self {
        let changed = |it: &&Candidate| changed.iter().copied().find(|other| other.name() == it.name());
        let originals: Vec<&Candidate> =
            election.candidates.iter().map(|(candidate, _)| *candidate).collect();
        let candidates: Vec<&Candidate> = originals.iter().map(|it| changed(it).unwrap_or(it)).collect();
        let lease = election.lease.map(|(lease, _)| lease);
        let after = Outlook::new(&candidates, lease, now);
        let from = after.leader.valid().map(str::to_owned);
        let to = if from.is_some() && !after.is_moving() {
            from.clone()
        } else {
            after.next().map(|next| next.name().to_owned())
        };
        Self { from, to }
    }

    fn is_none(&self) -> bool {
        self.from.is_some() && self.from == self.to
    }

    fn words(&self, election: &Election<'_>, again: bool) -> Vec<String> {
        let called = election.called();
        let second = if again { ", a second failover" } else { "" };
        match (&self.from, &self.to) {
            (Some(from), Some(to)) if from == to => vec![format!("{from} keeps the lead of {called}.")],
            (Some(from), Some(to)) => vec![
                format!("The lead of {called} moves from {from} to {to}{second}."),
                "The leader has to make room: its process usually exits, and for up to 15 seconds nobody leads."
                    .into(),
            ],
            (None, Some(to)) => vec![format!("Nobody leads {called} now; {to} is elected next.")],
            (_, None) => vec![format!("Who then leads {called} cannot be told.")],
        }
    }
}

/// Shows what will happen, and asks; elsewhere than on a terminal `--yes` is needed.
fn agree(words: &[String], yes: bool, dry_run: DryRun, printer: &mut Printer) -> Result<()> {
    for line in words {
        printer.note(line);
    }
    if yes || dry_run != DryRun::None {
        return Ok(());
    }
    if !prompt::possible() {
        return Err(Error::Refused {
            message: "there is no terminal to ask on: nothing was changed".into(),
            hint: Some("--yes does it without asking; --dry-run shows what would be done".into()),
        });
    }
    if prompt::confirm("Go on?")? {
        return Ok(());
    }
    Err(Error::Refused { message: "nothing was changed".into(), hint: None })
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

/// Follows the lead until it is where it should be.
async fn see_through(
    moves: &Moves,
    election: &Election<'_>,
    within: Duration,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<()> {
    let called = election.called();
    let to = match &moves.to {
        None => {
            printer.note(&format!("who leads {called} next cannot be told: not waiting for it"));
            return Ok(());
        }
        Some(_) if moves.is_none() => {
            printer.note(&format!("the lead of {called} does not move"));
            return Ok(());
        }
        Some(to) => to.as_str(),
    };
    let mut line = WaitLine::default();
    let began = cluster.server_time();
    let at = election.at();
    let waiting = handover::until_leads(cluster, &at, to, within, |stage| {
        let name = short(to);
        let (news, detail) = match stage {
            Stage::Waiting { leader } => {
                (format!("{} leads and is about to be asked to make room", short(leader)), String::new())
            }
            Stage::Yielding { leader, to, left } => (
                format!("{} makes room for {}", short(leader), short(to)),
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
    waiting.await?;
    drop(line);
    printer.done(&format!("{to} leads {called}"))
}

enum Kept {
    /// Its time is over.
    Over,
    /// There is nothing of ours any more.
    Gone(&'static str),
    /// The candidate does not answer.
    Dead,
}

/// Waits until the time of a priority is over.
async fn keep_until(setting: &Setting<'_>, expires: jiff::Timestamp, printer: &mut Printer) -> Result<Kept> {
    let Setting { cluster, resource, candidate, wish, .. } = *setting;
    let mut line = WaitLine::default();
    let at = address(candidate);
    let left = || Duration::try_from(expires.duration_since(cluster.server_time().0)).unwrap_or_default();
    let ended = until(cluster, resource, &at, QUIET, |now: Option<&Object<Candidate>>| {
        let whole = Duration::from_secs(left().as_secs());
        let news = format!("{} has priority {}, Ctrl-C clears it", short(candidate.name()), wish.value);
        line.say(printer, &news, &format!(" ({} left)", humantime::format_duration(whole)));
        let Some(now) = now.filter(|now| now.value.metadata.uid == candidate.metadata.uid) else {
            return Some(Kept::Gone("it is gone, and the priority with it"));
        };
        if !setting.is_ours(&now.value) {
            return Some(Kept::Gone("somebody else has changed its priority; it was left so"));
        }
        let time = cluster.server_time();
        let unanswered = now.value.spec.ping_time.filter(|_| now.value.owes_an_answer());
        let silent = unanswered.is_some_and(|pinged| time.since(pinged) > SILENT_FOR);
        (silent || now.value.is_overdue(time)).then_some(Kept::Dead)
    });
    let over = async {
        while left() > Duration::ZERO {
            sleep(left()).await;
        }
    };
    tokio::select! {
        ended = ended => ended,
        () = over => Ok(Kept::Over),
    }
}
