//! Deleting a pod as it was judged, or not at all.

use std::sync::Arc;

use crate::{
    client::{
        Cluster, PODS,
        single::{Address, Addressed as _, DeleteRequest},
        surroundings::{self, refresh},
    },
    error::Error,
    rules::{
        advice::Safe,
        deletion::{Choice, Judged, PodChange},
        pod::Pod,
        surroundings::Surroundings,
    },
};

/// Why a pod was not deleted.
#[derive(Debug)]
pub enum NotDeleted {
    /// What it was judged by has changed.
    Changed(PodChange),
    /// The pod itself has changed.
    PodChanged(Error),
    /// It was gone already.
    Gone,
    /// A disruption budget allows no eviction now, in the server's words.
    BudgetSpent(String),
    /// The answer was lost, and the pod is still there.
    StillThere(Error),
    /// The answer was lost, and whether the pod is still there could not be found out.
    Unknown(Error),
    /// Something failed.
    Failed(Error),
}

impl From<Error> for NotDeleted {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl NotDeleted {
    /// What was read is not what is there now.
    fn raced(error: Error) -> Self {
        if error.is_conflict() {
            return Self::PodChanged(error);
        }
        if error.is_not_found() { Self::Gone } else { Self::Failed(error) }
    }
}

/// Why what was shown does not hold any more.
#[derive(Debug)]
pub enum NotAsShown {
    /// This pod would not be judged so any more.
    Changed(Arc<Pod>, PodChange),
    /// What is there now could not be read.
    Failed(Error),
}

/// Checks that all are as they were shown, and returns what is around them now: a person takes time to think, and
/// the world goes on meanwhile. Each is judged as if those before it were gone.
///
/// # Errors
/// What has changed, of the first that has; or what could not be read.
pub async fn still_as_shown(cluster: &Cluster, shown: &[&Judged]) -> Result<Surroundings, NotAsShown> {
    let pods: Vec<&Pod> = shown.iter().map(|one| &*one.pod).collect();
    let around = surroundings::read(cluster, &pods).await.map_err(NotAsShown::Failed)?;
    let mut later = around.clone();
    for one in shown {
        if let Some(change) = one.change(None, &later, cluster.server_time()) {
            return Err(NotAsShown::Changed(one.pod.clone(), change));
        }
        later.spend(&one.pod);
    }
    Ok(around)
}

/// Whether something is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteMode {
    /// It is.
    Yes,
    /// The server only says whether it would be.
    ServerDryRun,
    /// Nothing is sent.
    ClientDryRun,
}

/// Looks once more at what the pod was judged by, and deletes or evicts it if that still holds; `around` is
/// brought up to date. To wait for its end takes nothing to be done.
///
/// # Errors
/// Why it was not done, or why that is not known.
pub async fn delete(
    cluster: &Cluster,
    judged: &Judged,
    choice: Choice,
    around: &mut Surroundings,
    write: DeleteMode,
) -> Result<(), NotDeleted> {
    let way = match choice {
        Choice::Force => None,
        Choice::Safely(Safe::Await) => return Ok(()),
        Choice::Safely(way) => Some(way),
    };
    if write == DeleteMode::ClientDryRun {
        return Ok(());
    }
    refresh(cluster, &judged.pod, around).await?;
    if let Some(change) = judged.change(way, around, cluster.server_time()) {
        return Err(NotDeleted::Changed(change));
    }
    let dry_run = write == DeleteMode::ServerDryRun;
    match way {
        None => delete_as_read(cluster, &judged.pod, Some(0), dry_run).await,
        Some(Safe::Evict) => cluster.evict(&judged.pod, dry_run).await.map_err(|error| match error {
            Error::Api { code: 429, message, .. } => NotDeleted::BudgetSpent(message),
            error => NotDeleted::raced(error),
        }),
        Some(_) => delete_as_read(cluster, &judged.pod, judged.pod.least_grace(), dry_run).await,
    }
}

/// Deletes the pod that was read, in the version that was read.
async fn delete_as_read(
    cluster: &Cluster,
    pod: &Pod,
    grace_seconds: Option<u32>,
    dry_run: bool,
) -> Result<(), NotDeleted> {
    let at = pod.address();
    let how = DeleteRequest {
        uid: &pod.metadata.uid,
        resource_version: &pod.metadata.resource_version,
        grace_seconds,
        dry_run,
    };
    match cluster.delete(PODS, &at, &how).await {
        Ok(()) => Ok(()),
        Err(error) if error.is_unclear() && !dry_run => after_a_lost_answer(cluster, pod, &at, error).await,
        Err(error) => Err(NotDeleted::raced(error)),
    }
}

/// It may have been done all the same: what is there now tells.
async fn after_a_lost_answer(
    cluster: &Cluster,
    pod: &Pod,
    at: &Address,
    error: Error,
) -> Result<(), NotDeleted> {
    let is_deleted = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    match cluster.get::<Pod>(PODS, at).await {
        Ok(Some(now)) if now.value.metadata.uid == pod.metadata.uid => {
            if is_deleted(&now.value) && !is_deleted(pod) {
                return Ok(());
            }
            Err(NotDeleted::StillThere(error))
        }
        Ok(_) => Ok(()),
        Err(_) => Err(NotDeleted::Unknown(error)),
    }
}
