//! `set-priority` and `clear-priority`.

use std::time::Duration;

use tokio::time::sleep;

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
        election::{Outlook, Strategy, Wrong},
        lease::Lease,
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

pub async fn set(
    args: &SetPriority,
    namespace: Option<&str>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let found = gather(namespace, cluster).await?;
    let controller = Controller::find(&found.parts, namespace, cluster).await?;
    let all = elections(&found.parts);
    let (election, candidate) = find(&args.candidate, args.lease.as_deref(), &all, cluster.server_time())?;
    let outlook = election.outlook(cluster.server_time());
    let wish = Wish {
        value: args.priority,
        expires: args.for_.and_then(|length| cluster.server_time().0.checked_add(length).ok()),
    };
    for obstacle in obstacles(election, candidate, &outlook, &controller, cluster.server_time()) {
        match obstacle {
            Obstacle::Hard(message, hint) => return Err(Error::Refused { message, hint: Some(hint) }),
            Obstacle::Soft(message, hint) if !args.force => {
                return Err(Error::Refused {
                    message,
                    hint: Some(format!("{hint}; --force does it all the same")),
                });
            }
            Obstacle::Soft(message, _) => printer.warn(&message),
        }
    }
    if controller == Controller::Unseen {
        printer
            .warn("you may not see whether the election controller is alive: without it nothing will happen");
    }

    // A dry run does not even ping.
    let answered = match args.write.dry_run {
        DryRun::None => handover::answers(cluster, found.resource, candidate).await?,
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
    let imagined = priority::imagine(candidate, Some(wish.value));
    let moves = Moves::between(election, &[&imagined], cluster.server_time());
    let length =
        args.for_.map_or_else(String::new, |length| format!(" for {}", humantime::format_duration(length)));
    let mut words = vec![format!("{} gets priority {}{length}.", candidate.name(), wish.value)];
    words.extend(moves.words(election, false));
    words.push("The priority is lost when the component restarts.".into());
    agree(&words, args.yes, args.write.dry_run, printer)?;

    // Listened for from here on: what is set for a time is cleared when the user ends it.
    let stopped = args.for_.filter(|_| !args.detach).map(|_| tokio::spawn(interrupted()));
    let writing = writing(&args.write);
    let note = dry_run_note(&args.write);
    if args.write.dry_run == DryRun::Client {
        printer.done(&format!("{} priority set to {}{note}", candidate.name(), wish.value))?;
        return Ok(ExitCode::Done);
    }
    let after = write(cluster, found.resource, candidate, Some(&wish), &writing).await?;
    let how = Priority::of(&after).map_or("", |priority| match priority.how {
        How::Native => "",
        How::Pinned => " (pinned by its emulation version)",
    });
    printer.done(&format!("{} priority set to {}{how}{note}", candidate.name(), wish.value))?;
    if args.write.dry_run != DryRun::None {
        return Ok(ExitCode::Done);
    }

    let follow = async {
        if let Some(wait) = args.wait {
            see_through(&moves, election, wait.unwrap_or(HANDOVER), cluster, printer).await?;
        }
        match (wish.expires, args.detach) {
            (Some(expires), false) => {
                keep_until(expires, cluster, found.resource, &after, wish.value, printer).await
            }
            _ => Ok(Kept::Done),
        }
    };
    let Some(stopped) = stopped else { return follow.await.map(|_| ExitCode::Done) };
    let outcome = tokio::select! {
        outcome = follow => outcome,
        interruption = stopped => Err(interruption.unwrap_or(Error::Interrupted)),
    };
    // Over, interrupted or failed: it was meant for a time, and is not left behind.
    if !matches!(outcome, Ok(Kept::Gone)) {
        let cleared = write(cluster, found.resource, &after, None, &Writing::default()).await;
        match cleared {
            Ok(_) => printer.done(&format!("{} priority cleared", candidate.name()))?,
            Err(error) if error.is_not_found() => printer.note(&format!("{} is gone", candidate.name())),
            Err(error) => {
                printer.warn(
                    "the priority could not be cleared; 'kubectl lease candidates clear-priority --expired' does \
                     it when its time is over",
                );
                return Err(error);
            }
        }
    }
    outcome.map(|_| ExitCode::Done)
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
        .map(|(election, candidate)| (election.called(), priority::imagine(candidate, None)))
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
    words.extend(plans.iter().flat_map(|(election, moves)| moves.words(election, true)));
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
        let overdue = Priority::of(candidate).is_some_and(|priority| priority.is_overdue(now));
        priority::is_marked(candidate) && (args.all || overdue)
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
                let names: Vec<_> = several
                    .iter()
                    .map(|(election, candidate)| format!("{} for {}", candidate.name(), election.called()))
                    .collect();
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
    outlook: &Outlook<'_>,
    controller: &Controller,
    now: ServerTime,
) -> Vec<Obstacle> {
    let mut obstacles = Vec::new();
    let lease: Option<&Lease> = election.lease.map(|(lease, _)| lease);
    if outlook.wrongs.contains(&Wrong::NullHolder) {
        let (message, hint) = told(&Wrong::NullHolder, election, now);
        obstacles.push(Obstacle::Hard(message, hint));
    }
    if let Strategy::Foreign(name) = &outlook.strategy {
        let (message, hint) = told(&Wrong::Foreign(name.clone()), election, now);
        obstacles.push(Obstacle::Hard(message, hint));
    } else if priority::pin(1, priority::true_emulation_version(candidate)).is_none() {
        obstacles.push(Obstacle::Hard(
            format!("the emulation version of {} cannot be read: it is never elected", candidate.name()),
            "see what its component reports as its versions".into(),
        ));
    }
    if let Some(conflict) = outlook.wrongs.iter().find(|wrong| matches!(wrong, Wrong::Conflict { .. })) {
        let (message, hint) = told(conflict, election, now);
        obstacles.push(Obstacle::Soft(message, hint));
    }
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
            message: "there is no terminal to ask on: nothing was written".into(),
            hint: Some("--yes does it without asking; --dry-run shows what would be done".into()),
        });
    }
    if prompt::confirm("Go on?")? {
        return Ok(());
    }
    Err(Error::Refused { message: "nothing was written".into(), hint: None })
}

/// Sets or clears, deciding again on what is there now whenever somebody else wrote in between: a
/// candidate writes its whole object at each renewal.
async fn write(
    cluster: &Cluster,
    resource: Resource,
    candidate: &Candidate,
    wish: Option<&Wish>,
    writing: &Writing,
) -> Result<Candidate> {
    let mut before = candidate.clone();
    for _ in 0..ATTEMPTS {
        if wish.is_none() && !priority::is_marked(&before) {
            return Ok(before);
        }
        match cluster.set_priority(resource, &before, wish, writing).await {
            Ok(after) => return Ok(Candidate::clone(&after.value)),
            Err(error) if error.is_not_found() => return Err(vanished(candidate)),
            Err(error) if error.is_conflict() => {
                before = handover::read_again(cluster, resource, candidate).await?;
            }
            Err(error) => return Err(error),
        }
    }
    Err(Error::LostRace {
        message: format!("{} is written by others all the time; nothing was changed", candidate.name()),
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
    let Some(to) = moves.to.as_deref().filter(|_| !moves.is_none()) else {
        printer.note(&format!("the lead of {} does not move", election.called()));
        return Ok(());
    };
    let mut line = WaitLine::default();
    let began = cluster.server_time();
    let at = election.at();
    let waiting = handover::until_leads(cluster, &at, to, within, |stage| {
        let (news, detail) = match stage {
            Stage::Waiting { leader } => {
                (format!("{leader} leads and is about to be asked to make room"), String::new())
            }
            Stage::Yielding { leader, left } => (
                format!("{leader} is making room for {to}"),
                format!(", its lease runs out in {}", age(*left)),
            ),
            Stage::Electing => (format!("nobody leads {}, electing", election.called()), String::new()),
            Stage::Elected => (format!("{to} is elected, waiting for its first renewal"), String::new()),
            // Said below, on stdout.
            Stage::Leads => return,
        };
        let passed = format!("{detail} ({})", age(cluster.server_time().since(began.0)));
        line.say(printer, &news, &passed);
    });
    waiting.await?;
    drop(line);
    printer.done(&format!("{to} leads {}", election.called()))
}

enum Kept {
    /// Its time is over.
    Done,
    /// Somebody else cleared it, or the candidate is gone.
    Gone,
}

/// Waits until the time of a priority is over.
async fn keep_until(
    expires: jiff::Timestamp,
    cluster: &Cluster,
    resource: Resource,
    candidate: &Candidate,
    value: i32,
    printer: &mut Printer,
) -> Result<Kept> {
    let mut line = WaitLine::default();
    let news = format!("{} has priority {value} until {expires:.0}; Ctrl-C clears it now", candidate.name());
    let at = address(candidate);
    let left = || Duration::try_from(expires.duration_since(cluster.server_time().0)).unwrap_or_default();
    let gone = until(cluster, resource, &at, QUIET, |now: Option<&Object<Candidate>>| {
        let same = now.filter(|now| now.value.metadata.uid == candidate.metadata.uid);
        let value = same.and_then(|now| Priority::of(&now.value)).map(|priority| priority.value);
        line.say(
            printer,
            &news,
            &format!(" ({} left)", humantime::format_duration(Duration::from_secs(left().as_secs()))),
        );
        match (same, value) {
            (None, _) => Some("it is gone: a component that restarts loses its priority"),
            (Some(_), None) => Some("somebody else cleared its priority"),
            _ => None,
        }
    });
    let over = async {
        while left() > Duration::ZERO {
            sleep(left()).await;
        }
    };
    let why = tokio::select! {
        why = gone => why?,
        () = over => return Ok(Kept::Done),
    };
    drop(line);
    printer.note(&format!("{}: {why}", candidate.name()));
    Ok(Kept::Gone)
}
