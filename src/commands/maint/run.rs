use std::{ffi::OsString, time::Duration};

use super::{Target, blocked, claims, replaces, take_all, targets, tell_remarks, terms, who};
use crate::{
    cli::{self, Run},
    cluster::{Cluster, single::Writing},
    commands::interrupts,
    domain::{
        deadline::Schedule,
        holder::Who,
        maintenance::Standing,
        taking::{Obstacle, Rule, Terms},
    },
    error::{Error, Result},
    exit::ExitCode,
    output::Printer,
    session::{Held, Released, within},
};

pub async fn run(args: &Run, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    let (who, mut targets) =
        tokio::try_join!(who(&args.identity, args.admin, cluster), targets(&args.nodes, cluster))?;
    tell_remarks(cluster, printer);
    if !args.admin && args.wait.wait.is_none() {
        targets.iter().try_for_each(|target| check_administrators(target, &who, cluster))?;
    }
    let mut terms = process_terms(who, args.reason.clone(), &args.taking);
    terms.replaces = replaces(args.yes, true, &mut targets, &terms, cluster).await?;
    let seconds = i32::try_from(args.duration.as_secs()).unwrap_or(i32::MAX);
    let claims = claims(targets, &terms, seconds, &args.wait, &Writing::default())?;
    let taken = take_all(&claims, &args.wait, cluster, printer).await?;
    let held: Vec<Held> = taken.into_iter().map(|(held, _)| held).collect();
    under(&held, Schedule::new(args.duration), &args.command, cluster, printer).await
}

/// A lease that one holds oneself as an administrator is in the way, too.
fn check_administrators(target: &Target, who: &Who, cluster: &Cluster) -> Result<()> {
    let Some(lease) = target.lease.as_ref().map(|lease| &*lease.value) else { return Ok(()) };
    if lease.holder() != who.administrator().identity() {
        return Ok(());
    }
    let obstacle = Obstacle::Standing(Standing::Admin { holder: lease.holder().to_owned() });
    let mut error = blocked(&target.node.name, &obstacle, Some(lease), cluster.server_time());
    if let Error::Held { hint, .. } = &mut error {
        *hint = Some("that is you: --admin goes on from it, and gives it back afterwards".into());
    }
    Err(error)
}

/// For a process that runs under a maintenance lease: its holder is its own, and it goes on from what
/// a command of the same user took before, for an administrator also from what is held as such.
pub fn process_terms(who: Who, reason: Option<String>, taking: &cli::Taking) -> Terms {
    let own = who.plain().unique(&term());
    Terms { adopts: Some(who), ..terms(own, Rule::Process, reason, taking) }
}

/// How long letting go may take at the end.
pub const RELEASE: Duration = Duration::from_secs(10);

/// How long it may still take after an interrupt.
const INTERRUPTED: Duration = Duration::from_secs(2);

/// What makes a process's holder identity its own.
pub fn term() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    let (one, other) = (RandomState::new(), RandomState::new());
    format!("{:08x}", (one.hash_one(std::process::id()) ^ other.hash_one(std::time::SystemTime::now())) >> 32)
}

/// Runs a command under leases and releases them when it has ended, with everything that it started.
#[cfg(unix)]
pub async fn under(
    held: &[Held],
    schedule: Schedule,
    command: &[OsString],
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<ExitCode> {
    use crate::session::child::{self, Ended};
    let ended = match interrupts::none_so_far().await {
        Ok(()) => {
            cluster.share_terminal(false);
            let ended = child::run(cluster, held, schedule, command, |warning| printer.warn(warning)).await;
            cluster.share_terminal(true);
            ended
        }
        Err(interruption) => Err(interruption),
    };
    interrupts::forget();
    if let Ok(Ended::Survived { processes, lost }) = ended {
        // An administrator's that was adopted has no end.
        let admins = held.iter().find(|held| held.who.is_admin()).map(|held| &held.at.name);
        let (fate, then) = match admins {
            Some(name) => (
                "it is held until it is released",
                format!(", then 'kubectl lease maint release {name} --admin --force'"),
            ),
            None => ("it will expire", String::new()),
        };
        let message = match lost {
            // It may be another's by now.
            Some(lost) => format!("the lease was lost and {processes} could not be ended: {lost}"),
            None => format!(
                "interrupted while {processes} could not be ended; the lease was not released, {fate}"
            ),
        };
        let hint = Some(format!("end it as the user that it runs as, or as root{then}"));
        return Err(Error::NotEnded { message, hint });
    }
    // What was taken in vain is put back as it was.
    let used = !matches!(ended, Ok(Ended::NotStarted(..)) | Err(Error::Interrupted));
    release(held, used, cluster, printer).await;
    match ended? {
        Ended::Code(code) => Ok(ExitCode::Child(code)),
        Ended::Interrupted(signal) => Ok(ExitCode::Killed(signal)),
        Ended::NotStarted(code, why) => {
            let program =
                command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
            printer.note(&format!("error: cannot run '{program}': {why}"));
            Ok(ExitCode::Child(code))
        }
        Ended::Lost(why) => {
            Err(Error::LeaseLost { message: format!("the lease was lost and the command was ended: {why}") })
        }
        // It was answered above.
        Ended::Survived { .. } => Ok(ExitCode::NotEnded),
    }
}

/// Lets the leases go, or gives them back, which depends on whether they were used. An interrupt leaves it a moment, and no more.
pub async fn release(held: &[Held], used: bool, cluster: &Cluster, printer: &mut Printer) {
    let writing = Writing::default();
    let let_go = async |held: &Held| {
        if used { held.release(cluster, &writing).await } else { held.undo(cluster, &writing).await }
    };
    let released = async { Ok(futures::future::join_all(held.iter().map(let_go)).await) };
    let mut released = std::pin::pin!(within(RELEASE, released));
    let outcomes = tokio::select! {
        outcomes = &mut released => outcomes,
        interruption = interrupts::interrupted() => {
            let moment = tokio::time::timeout(INTERRUPTED, &mut released).await;
            moment.unwrap_or(Err(interruption))
        }
    };
    match outcomes {
        Ok(outcomes) => tell_released(held, outcomes, printer),
        Err(why) if held.iter().any(|held| held.who.is_admin()) => {
            let admins = held.iter().filter(|held| held.who.is_admin());
            let names: Vec<_> = admins.map(|held| held.at.name.as_str()).collect();
            printer.warn(&format!(
                "it may not be released ('kubectl lease maint release {} --admin --force' does it): {why}",
                names.join(" ")
            ));
        }
        Err(why) => printer.warn(&format!("it may not be released, and will expire: {why}")),
    }
}

/// A command of the same holder runs under a lease that could not be released for that.
pub fn still_adopted(name: &str, who: &Who) -> String {
    let admin = if who.is_admin() { " --admin" } else { "" };
    format!(
        "{name} is still held by {who}: another command of this holder runs under it, and puts it back when it \
         ends ('kubectl lease maint release {name}{admin}' releases it then)"
    )
}

/// What became of the leases, where it is not simply that they were released.
fn tell_released(held: &[Held], outcomes: Vec<Result<Released>>, printer: &mut Printer) {
    for (held, outcome) in held.iter().zip(outcomes) {
        let name = &held.at.name;
        match outcome {
            // Who has it then was the reason for the end of the command, or comes after it.
            Ok(Released::Yes | Released::NotOurs | Released::Unanswered) => {}
            Ok(Released::PutBack) => printer.note(&format!("{name} is held as before the command")),
            Ok(Released::Shared) => printer.warn(&format!(
                "{name} is not released: another process of '{}' has renewed it meanwhile",
                held.who
            )),
            Ok(Released::Adopted) => printer.warn(&still_adopted(name, &held.who)),
            Err(error) if held.who.is_admin() => printer.warn(&format!(
                "{name} is not released, 'kubectl lease maint release {name} --admin --force' does it: {error}"
            )),
            Err(error) => printer.warn(&format!("{name} is not released, it will expire: {error}")),
        }
    }
}

#[cfg(not(unix))]
pub async fn under(
    held: &[Held],
    _: Schedule,
    _: &[OsString],
    cluster: &Cluster,
    _: &mut Printer,
) -> Result<ExitCode> {
    for held in held {
        held.release(cluster, &Writing::default()).await?;
    }
    Err(Error::Refused {
        message: "running a command under a lease is not possible on this system yet".into(),
        hint: Some("'maint acquire' and 'maint release' are".into()),
    })
}
