//! Working under leases that were taken: keeping them meanwhile, and releasing them at the end.

#[cfg(unix)]
use std::ffi::OsString;
use std::time::Duration;

use tokio::time::sleep;

#[cfg(unix)]
use super::{
    child::{self, CommandEnded, Warning},
    held::Released,
    undo::release_all,
};
use super::{
    held::Held,
    keeper::{Lost, keep},
};
use crate::{client::Cluster, rules::deadline::Schedule};
#[cfg(unix)]
use crate::{
    error::{Error, Result},
    interrupts::Interrupts,
    program::Program,
};

/// The clock that counts sleep has no timers here: it is looked at this often.
const LOOK: Duration = Duration::from_millis(50);

/// Works while the leases are kept: they are renewed on this schedule until the work is done. It is dropped
/// when one of them is lost, also when the machine slept past its deadline.
///
/// # Errors
/// Which of them was lost, and why.
pub async fn keep_while<T>(
    cluster: &Cluster,
    held: &[Held],
    schedule: Schedule,
    work: impl Future<Output = T>,
) -> Result<T, Lost> {
    // Time may have passed since they were taken: nothing is begun under a lease that would have to end by now.
    let overdue = |limit: Duration| {
        let held = held.iter().find(|held| (held.sent() + limit).has_passed())?;
        Some(Lost::Unrenewed { name: held.at.name.clone(), why: "no time was left".to_owned() })
    };
    if let Some(lost) = overdue(schedule.terminate) {
        return Err(lost);
    }
    tokio::select! {
        biased;
        lost = keep(cluster, held, schedule, |_| ()) => Err(lost),
        // Renewals wait by timers that stand still while the machine sleeps.
        lost = looking(|| overdue(schedule.kill)) => Err(lost),
        outcome = work => Ok(outcome),
    }
}

/// The first that is found, looking again and again.
async fn looking<T>(found: impl Fn() -> Option<T>) -> T {
    loop {
        if let Some(found) = found() {
            return found;
        }
        sleep(LOOK).await;
    }
}

/// How a command ran under leases.
#[cfg(unix)]
#[derive(Debug)]
pub struct Ran {
    /// How it ended, or why it was not run.
    pub ended: Result<CommandEnded>,
    /// What became of each lease, or why that is not known. `None` where they are not to be released:
    /// something that the command started could not be ended.
    pub released: Option<Result<Vec<Result<Released>>>>,
}

/// Runs a command under leases, and releases them when it has ended, with everything that it started. What
/// was taken for a command that did not start is put back as it was. The processes that guard the command are
/// `program`, executed again.
#[cfg(unix)]
pub async fn run(
    cluster: &Cluster,
    held: &[Held],
    schedule: Schedule,
    program: &Program,
    command: &[OsString],
    interrupts: &Interrupts,
    warn: impl FnMut(Warning) + Send,
) -> Ran {
    let ended = match interrupts.none_so_far().await {
        Ok(()) => {
            cluster.detach_credential_plugin(Some(program));
            let ended = child::run(cluster, held, schedule, program, command, warn).await;
            cluster.detach_credential_plugin(None);
            ended
        }
        Err(interruption) => Err(interruption),
    };
    interrupts.forget();
    if let Ok(CommandEnded::Survived { .. }) = ended {
        return Ran { ended, released: None };
    }
    let used = !matches!(ended, Ok(CommandEnded::NotStarted(..)) | Err(Error::Interrupted));
    let released = release_all(cluster, held, used, interrupts).await;
    Ran { ended, released: Some(released) }
}
