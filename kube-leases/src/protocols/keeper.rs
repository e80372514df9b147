//! Keeping leases: each is renewed at a third of its duration, and watched meanwhile, until one of
//! them is lost.

use std::time::Duration;

use futures::future::select_all;
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use super::Held;
use crate::{
    client::{
        Cluster, LEASES, Object, Query,
        watch::{Follow, Watch, WatchEvent},
    },
    clock::BootInstant,
    rules::{deadline::Schedule, lease::Lease, maintenance::is_same_term},
};

/// Backoff after a failure.
const PAUSE: Duration = Duration::from_millis(500);
/// Retry delay for a watch that failed to open; on 403 it grows up to `FORBIDDEN_WATCH_RETRY`.
const WATCH_RETRY: Duration = Duration::from_secs(2);
const FORBIDDEN_WATCH_RETRY: Duration = Duration::from_secs(60);
/// Backoff after a conflict (409), or a write of another client that is set right.
const CONFLICT_BACKOFF: Duration = Duration::from_millis(50);
/// The server sends a bookmark each minute: a longer silence is a dead connection.
const QUIET: Duration = Duration::from_secs(90);

/// Why a lease is no longer ours.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "internals"), non_exhaustive)]
pub enum Lost {
    /// Another client has taken it, or released it.
    Taken {
        /// Its name.
        name: String,
        /// The holder that it has now; empty if it was released.
        holder: String,
    },
    /// It was deleted.
    Deleted {
        /// Its name.
        name: String,
    },
    /// It could not be renewed in time.
    Unrenewed {
        /// Its name.
        name: String,
        /// The last failure.
        why: String,
    },
}

impl Lost {
    /// Of the lease.
    pub fn name(&self) -> &str {
        match self {
            Self::Taken { name, .. } | Self::Deleted { name } | Self::Unrenewed { name, .. } => name,
        }
    }
}

impl std::error::Error for Lost {}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Taken { name, holder } if holder.is_empty() => {
                write!(f, "'{name}' was released by another client")
            }
            Self::Taken { name, holder } => write!(f, "'{holder}' took '{name}'"),
            Self::Deleted { name } => write!(f, "'{name}' was deleted"),
            Self::Unrenewed { name, why } => write!(f, "'{name}' could not be renewed in time: {why}"),
        }
    }
}

/// Renews the leases until one is lost. `valid` receives, after each renewal, since when all of them
/// are known to be ours: the earliest moment at which a last successful renewal was sent.
pub async fn keep(
    cluster: &Cluster,
    held: &[Held],
    schedule: Schedule,
    valid: impl Fn(BootInstant) + Sync,
) -> Lost {
    keep_all(cluster, held, schedule, false, valid).await
}

/// As [`keep`], for leases that nothing runs under: what could not be renewed in time is lost only when
/// another takes it; and what another process of the same holder has renewed is held for as long as that one
/// wrote.
pub async fn keep_until_taken(cluster: &Cluster, held: &[Held], schedule: Schedule) -> Lost {
    keep_all(cluster, held, schedule, true, |_| ()).await
}

async fn keep_all(
    cluster: &Cluster,
    held: &[Held],
    schedule: Schedule,
    until_taken: bool,
    valid: impl Fn(BootInstant) + Sync,
) -> Lost {
    let renewed = || {
        if let Some(earliest) = held.iter().map(Held::sent).min() {
            valid(earliest);
        }
    };
    if held.is_empty() {
        return std::future::pending().await;
    }
    let due: Vec<Notify> = held.iter().map(|_| Notify::new()).collect();
    let keepers = held
        .iter()
        .zip(&due)
        .map(|(held, due)| Box::pin(keep_one(cluster, held, schedule, until_taken, due, &renewed)));
    tokio::select! {
        (lost, ..) = select_all(keepers) => lost,
        lost = watch(cluster, held, &due) => lost,
    }
}

/// How a lease of ours was lost, by a fresh look; `None` while it is ours.
fn loss(held: &Held, now: Option<&Object<Lease>>) -> Option<Lost> {
    let name = held.at.name.clone();
    match now {
        None => Some(Lost::Deleted { name }),
        // Only its finalizers keep it, and nothing that is written to it lasts.
        Some(now) if now.value.metadata.deletion_timestamp.is_some() => Some(Lost::Deleted { name }),
        Some(now) if is_same_term(&now.value, &held.lease().value) => None,
        Some(now) => Some(Lost::Taken { name, holder: now.value.holder().to_owned() }),
    }
}

/// Watches the leases, so that one that is taken, deleted or shortened is known at once. Without permission to
/// watch, a loss is noticed at the next renewal.
async fn watch(cluster: &Cluster, held: &[Held], due: &[Notify]) -> Lost {
    let Some(first) = held.first() else { return std::future::pending().await };
    let mut query = Query::new(LEASES).namespace(&first.at.namespace);
    if held.len() == 1 {
        query = query.select(None, Some(&format!("metadata.name={}", first.at.name)));
    }
    let how = Follow::quiet(QUIET).retry_after(WATCH_RETRY, FORBIDDEN_WATCH_RETRY);
    let mut watch = Watch::<_, Lease>::of(cluster, (), query, how);
    loop {
        let ((), event) = watch.next().await;
        let gone = matches!(event, WatchEvent::Gone(_));
        let leases = match event {
            WatchEvent::Snapshot(leases) => {
                // One that is missing was deleted while there was no watch: a renewal shows it.
                for (held, due) in held.iter().zip(due) {
                    if leases.iter().all(|lease| lease.value.metadata.name != held.at.name) {
                        due.notify_one();
                    }
                }
                leases
            }
            WatchEvent::Changed(lease) | WatchEvent::Gone(lease) => vec![lease],
            WatchEvent::Lost(_) | WatchEvent::Failed(_) => continue,
        };
        for lease in leases {
            let ours = held.iter().zip(due).find(|(held, _)| held.at.name == lease.value.metadata.name);
            let Some((held, due)) = ours else { continue };
            let known = held.lease();
            // An event of before our own last write tells nothing.
            if !is_newer(&lease.value, &known.value) {
                continue;
            }
            if let Some(lost) = loss(held, (!gone).then_some(&lease)) {
                return lost;
            }
            if lease.value.expires() < known.value.expires() {
                // Others go by what is written there: set it right.
                due.notify_one();
            }
        }
    }
}

/// Whether one look at an object is newer than another. Versions of one resource can be compared.
fn is_newer(one: &Lease, other: &Lease) -> bool {
    let version = |lease: &Lease| lease.metadata.resource_version.parse::<u64>().unwrap_or(u64::MAX);
    version(one) > version(other)
}

async fn keep_one(
    cluster: &Cluster,
    held: &Held,
    schedule: Schedule,
    until_taken: bool,
    due: &Notify,
    renewed: &(impl Fn() + Sync),
) -> Lost {
    loop {
        tokio::select! {
            () = sleep((held.sent() + schedule.renew).remaining()) => {}
            () = due.notified() => sleep(CONFLICT_BACKOFF).await,
        }
        match renew(cluster, held, schedule, until_taken).await {
            Ok(()) => renewed(),
            Err(lost) => return lost,
        }
    }
}

/// Renews a lease without waiting until it is due. A failure is tried again until no time is left.
///
/// # Errors
/// If it is lost.
pub(super) async fn renew_now(cluster: &Cluster, held: &Held, schedule: Schedule) -> Result<(), Lost> {
    renew(cluster, held, schedule, false).await
}

async fn renew(cluster: &Cluster, held: &Held, schedule: Schedule, until_taken: bool) -> Result<(), Lost> {
    let name = held.at.name.clone();
    // Several attempts have to fit between the renewal's time and the end: one that hangs is not
    // waited for.
    let request_timeout = schedule.terminate.saturating_sub(schedule.renew) / 3;
    let mut why = "no time was left".to_owned();
    loop {
        let left = (held.sent() + schedule.terminate).remaining();
        if left.is_zero() && !until_taken {
            return Err(Lost::Unrenewed { name, why });
        }
        let limit = if until_taken { request_timeout } else { left.min(request_timeout) };
        let now = BootInstant::now();
        let lease = held.lease();
        let record = held.renewal(schedule.seconds(), cluster.server_time(), now);
        let renewal = cluster.renew_lease(&held.at, &lease.value, &record);
        match timeout(limit, renewal).await {
            Ok(Ok(renewal)) => {
                held.renewed(&record, renewal, now);
                return Ok(());
            }
            Ok(Err(error)) if error.is_not_found() => return Err(Lost::Deleted { name }),
            Ok(Err(error)) if error.is_conflict() => {
                match timeout(limit, cluster.lease(&held.at)).await {
                    Ok(Ok(now)) => {
                        if let Some(lost) = loss(held, now.as_ref()) {
                            return Err(lost);
                        }
                        // Ours still: our own renewal without an answer, a renewal by another process
                        // of the same holder, or an annotation.
                        if now.is_some_and(|now| held.found_renewed(now)) {
                            return Ok(());
                        }
                        // It is held for as long as that process wrote.
                        if until_taken && held.is_shared() {
                            return std::future::pending().await;
                        }
                        sleep(CONFLICT_BACKOFF.min(request_timeout / 4)).await;
                        continue;
                    }
                    Ok(Err(error)) => why = error.to_string(),
                    Err(_) => why = no_answer(),
                }
            }
            Ok(Err(error)) => why = error.to_string(),
            Err(_) => why = no_answer(),
        }
        sleep(PAUSE.min(request_timeout / 2)).await;
    }
}

fn no_answer() -> String {
    "the server does not answer".to_owned()
}
