//! Working under leases that were taken: keeping them meanwhile, and releasing them at the end.

#[cfg(unix)]
use std::ffi::OsString;
use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use futures::future::try_join_all;
use tokio::time::sleep;

#[cfg(unix)]
use super::{
    child::{self, CommandEnded, Warning},
    held::Released,
    undo::release_all,
};
use super::{
    held::Held,
    keeper::{Lost, keep, renew_now},
};
use crate::{client::Cluster, rules::deadline::Schedule};
#[cfg(unix)]
use crate::{
    error::{Error, Result},
    interrupts::Interrupts,
    program::Program,
};

/// The clock that counts sleep has no timers here: it is looked at this often.
const LOOK: Duration = Duration::from_millis(250);

/// What was written this long ago is still ours: nothing is begun under an older write without a renewal.
const FRESH: Duration = Duration::from_secs(2);

/// Works while the leases are kept: they are renewed on this schedule until the work is done. It is dropped
/// when one of them is lost, and is not polled any more once a lease may be another's, also if the machine slept
/// meanwhile. Work that is done only then has not been done under the leases: that is an error too.
///
/// # Errors
/// Which of them was lost, and why. It stays lost: nothing is begun under it again.
pub async fn keep_while<T>(
    cluster: &Cluster,
    held: &[Held],
    schedule: Schedule,
    work: impl Future<Output = T>,
) -> Result<T, Lost> {
    if let Some(lost) = held.iter().find_map(Held::known_lost) {
        return Err(lost.clone());
    }
    let outcome = keep_unless_lost(cluster, held, schedule, work).await;
    if let Err(lost) = &outcome {
        held.iter().filter(|held| held.at.name == lost.name()).for_each(|held| held.note_lost(lost));
    }
    outcome
}

async fn keep_unless_lost<T>(
    cluster: &Cluster,
    held: &[Held],
    schedule: Schedule,
    work: impl Future<Output = T>,
) -> Result<T, Lost> {
    let overdue = |limit: Duration| {
        let held = held.iter().find(|held| (held.sent() + limit).has_passed())?;
        Some(Lost::Unrenewed { name: held.at.name.clone(), why: "no time was left".to_owned() })
    };
    // Time may have passed since they were taken: nothing is begun under a lease that would have to end by now,
    // or that another holder may have by now.
    if let Some(lost) = overdue(schedule.terminate) {
        return Err(lost);
    }
    let work = async {
        let older = held.iter().filter(|held| (held.sent() + FRESH).has_passed());
        try_join_all(older.map(|held| renew_now(cluster, held, schedule))).await?;
        // One of them may have taken its time.
        if let Some(lost) = overdue(schedule.terminate) {
            return Err(lost);
        }
        // The timers of renewals stand still while the machine sleeps, so each poll of the work looks at the clock.
        let mut work = pin!(work);
        let work = poll_fn(|context| {
            if let Some(lost) = overdue(schedule.kill) {
                return Poll::Ready(Err(lost));
            }
            work.as_mut().poll(context).map(|outcome| overdue(schedule.kill).map_or(Ok(outcome), Err))
        });
        work.await
    };
    tokio::select! {
        biased;
        lost = keep(cluster, held, schedule, |_| ()) => Err(lost),
        outcome = work => outcome,
        lost = looking(|| overdue(schedule.kill)) => Err(lost),
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
///
/// This is for a program that runs one command, and has no other children: it adopts what the command leaves
/// behind, ends all that descends from it if a guard is killed, and keeps its handlers of signals (such as TERM)
/// when the command has ended.
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
