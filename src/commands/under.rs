//! Running a command under leases, which `maint run` and `hold` do.

use std::ffi::OsString;

use super::dry_run_note;
use crate::{
    cli::DryRun,
    error::{Error, Result},
    exit::ExitCode,
    output::Printer,
    this_program,
};
#[cfg(unix)]
use kube_leases::protocols::child::Loss;
use kube_leases::{Program, client::Cluster, protocols::Held, rules::deadline::Schedule};

/// Runs a command under leases and releases them when it has ended, with everything that it started.
#[cfg(unix)]
pub async fn run(
    held: &[Held],
    schedule: Schedule,
    program: &Program,
    command: &[OsString],
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<ExitCode> {
    use super::interrupts::interrupts;
    use crate::output::{prompt, taking, words::processes as words};
    use kube_leases::protocols::{
        self, Ran, Released,
        child::{CommandEnded, Warning},
    };
    // A person sees when the work may begin; a script has the command's own output alone.
    let names = held.iter().map(|held| held.at.name.as_str()).collect::<Vec<_>>().join(", ");
    let told = prompt::possible();
    if told {
        printer.note(&format!("{names} acquired, and renewed while the command runs"));
    }
    let warn = |warning: Warning| printer.warn(&words::warning(&warning));
    let Ran { ended, released } =
        protocols::run(cluster, held, schedule, program, command, interrupts(), warn).await;
    if let Some(outcomes) = released {
        let are_released = |all: &Vec<_>| all.iter().all(|one| matches!(one, Ok(Released::Yes)));
        let told = told && outcomes.as_ref().is_ok_and(are_released);
        taking::released(held, outcomes, printer);
        if told {
            printer.note(&format!("{names} released"));
        }
    }
    match ended? {
        CommandEnded::Code(code) => Ok(ExitCode::Child(code)),
        CommandEnded::Interrupted(signal) => Ok(ExitCode::Killed(signal)),
        CommandEnded::NotStarted(code, why) => {
            let program =
                command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
            printer.note(&format!("error: cannot run '{program}': {why}"));
            Ok(ExitCode::Child(code))
        }
        CommandEnded::TooLate(loss) => Err(Error::LeaseLost {
            message: format!("the lease was lost and the command was not started: {}", words::loss(&loss)),
        }),
        CommandEnded::Lost(loss) => Err(Error::LeaseLost {
            message: format!("the lease was lost and the command was ended: {}", words::loss(&loss)),
        }),
        CommandEnded::Survived { processes, lost } => Err(survived(held, &processes, lost.as_ref())),
    }
}

/// What would be acquired and run.
pub fn imagine<'a>(
    names: impl Iterator<Item = &'a str>,
    command: &[OsString],
    dry_run: DryRun,
    printer: &mut Printer,
) -> Result<ExitCode> {
    for name in names {
        printer.done(&format!("{name} acquired{}", dry_run_note(dry_run)))?;
    }
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    printer.done(&format!("'{}' run under it{}", words.join(" "), dry_run_note(dry_run)))?;
    Ok(ExitCode::Done)
}

/// The error for processes that could not be ended.
#[cfg(unix)]
fn survived(held: &[Held], processes: &str, lost: Option<&Loss>) -> Error {
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
        Some(why) => {
            let why = crate::output::words::processes::loss(why);
            format!("the lease was lost and {processes} could not be ended: {why}")
        }
        None => {
            format!("interrupted while {processes} could not be ended; the lease was not released, {fate}")
        }
    };
    Error::NotEnded { message, hint: Some(format!("end it as the user that it runs as, or as root{then}")) }
}

/// What the processes that guard the command are started with.
///
/// # Errors
/// Where this is not possible: before anything is acquired.
pub fn program() -> Result<Program> {
    if cfg!(unix) {
        return this_program().map_err(|error| Error::Refused {
            message: format!("cannot find this program, which is run again to guard the command: {error}"),
            hint: None,
        });
    }
    Err(Error::Refused {
        message: "running a command under a lease is not possible on this system yet".into(),
        hint: Some(
            "use 'kubectl lease maint acquire NODE' and 'kubectl lease maint release NODE' around it".into(),
        ),
    })
}

/// Not possible here, see [`program`].
#[cfg(not(unix))]
pub async fn run(
    _: &[Held],
    _: Schedule,
    _: &Program,
    _: &[OsString],
    _: &Cluster,
    _: &mut Printer,
) -> Result<ExitCode> {
    program().map(|_| ExitCode::Done)
}
