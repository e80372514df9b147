//! Keeping leases: each is renewed at a third of its duration, until one of them is lost.

use std::{cell::Cell, time::Duration};

use futures::future::select_all;
use tokio::time::{sleep, timeout};

use super::Held;
use crate::{cluster::Cluster, domain::deadline::Schedule, error::Error};

use crate::clock::BootInstant;

/// After a failure, the next attempt.
const PAUSE: Duration = Duration::from_millis(500);

/// Why a lease is no longer ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Somebody else holds it, or nobody.
    Taken { name: String, holder: String },
    /// It was deleted.
    Deleted { name: String },
    /// It could not be renewed in time.
    Unrenewed { name: String, why: String },
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Taken { name, holder } if holder.is_empty() => write!(f, "somebody released '{name}'"),
            Self::Taken { name, holder } => write!(f, "'{holder}' took '{name}'"),
            Self::Deleted { name } => write!(f, "somebody deleted '{name}'"),
            Self::Unrenewed { name, why } => write!(f, "'{name}' could not be renewed in time: {why}"),
        }
    }
}

/// Renews the leases until one is lost. `valid` hears, after each renewal, since when all of them
/// are known to be ours: the earliest moment at which a last successful renewal was sent.
pub async fn keep(cluster: &Cluster, held: &[Held], schedule: Schedule, valid: impl Fn(BootInstant)) -> Lost {
    let sent: Vec<Cell<BootInstant>> = held.iter().map(|held| Cell::new(held.sent)).collect();
    let renewed = || {
        if let Some(earliest) = sent.iter().map(Cell::get).min() {
            valid(earliest);
        }
    };
    let keepers = held
        .iter()
        .zip(&sent)
        .map(|(held, sent)| Box::pin(keep_one(cluster, held, schedule, sent, &renewed)));
    let (lost, ..) = select_all(keepers).await;
    lost
}

async fn keep_one(
    cluster: &Cluster,
    held: &Held,
    schedule: Schedule,
    sent: &Cell<BootInstant>,
    renewed: &impl Fn(),
) -> Lost {
    let name = held.at.name.clone();
    let mut lease = held.lease.clone();
    loop {
        sleep((sent.get() + schedule.renew).remaining()).await;
        let mut why = "no time was left".to_owned();
        loop {
            let left = (sent.get() + schedule.terminate).remaining();
            if left.is_zero() {
                return Lost::Unrenewed { name, why };
            }
            // Several attempts have to fit: one that hangs is not waited for until the end.
            let limit = left.min(schedule.renew);
            let now = BootInstant::now();
            let attempt =
                timeout(limit, cluster.renew_lease(&held.at, &lease.value, cluster.server_time().0)).await;
            match attempt {
                Ok(Ok(renewal)) => {
                    lease = renewal;
                    sent.set(now);
                    renewed();
                    break;
                }
                Ok(Err(error)) if error.is_not_found() => return Lost::Deleted { name },
                Ok(Err(error)) if error.is_conflict() => {
                    match timeout(limit, cluster.lease(&held.at)).await {
                        Ok(Ok(Some(now))) => {
                            let same = now.value.metadata.uid == lease.value.metadata.uid
                                && now.value.holder() == lease.value.holder()
                                && now.value.spec.lease_transitions == lease.value.spec.lease_transitions;
                            if !same {
                                return Lost::Taken { name, holder: now.value.holder().to_owned() };
                            }
                            // Ours still: our own write without an answer, or somebody's annotation.
                            lease = now;
                            continue;
                        }
                        Ok(Ok(None)) => return Lost::Deleted { name },
                        Ok(Err(error)) => why = error.to_string(),
                        Err(_) => why = no_answer(),
                    }
                }
                Ok(Err(Error::Interrupted)) | Err(_) => why = no_answer(),
                Ok(Err(error)) => why = error.to_string(),
            }
            sleep(PAUSE.min(schedule.renew / 4)).await;
        }
    }
}

fn no_answer() -> String {
    "the server does not answer".to_owned()
}
