//! Marking a node out of service, or putting it back into service, under its maintenance lease.

use std::{collections::BTreeSet, ops::ControlFlow, time::Duration};

use tokio::time::Instant;

use super::{
    CONFLICT_ATTEMPTS, Held, KnownClaim, Lost, NotTaken, Released, Selection, TakingStep, Wait, check_all,
    claims, keep_while, observe::until, release_all, take_all, targets,
};
use crate::{
    client::{
        Cluster, LEASES, NODES, PODS, Query,
        pods::NewEvent,
        single::{Address, Writing},
        watch::WatchEvent,
    },
    error::{Error, ObjectKind, Result},
    interrupts::Interrupts,
    rules::{
        deadline::Schedule,
        fencing::{NodeChange, NodeView, is_deleted},
        lease::Lease,
        node::{HEARTBEATS, Node, Taint},
        pod::Pod,
        taking::Terms,
    },
};

/// How long others wait if this process dies on the way; it is renewed meanwhile.
const DURATION: Duration = Duration::from_secs(60);

/// The reason and the message of the Event to leave about a node, as it was read for the write.
pub type EventWords<'a> = &'a (dyn Fn(&NodeView) -> (&'static str, String) + Sync);

/// What is to be done to a node.
#[derive(Clone)]
pub struct FenceRequest<'a> {
    /// As it was shown.
    pub shown: &'a NodeView,
    /// To take its taint off.
    pub undo: bool,
    /// How it is written.
    pub writing: Writing,
    /// The user to record in the Event.
    pub who: String,
    /// The words of the Event.
    pub event: EventWords<'a>,
    /// Whether the end of its pods is waited for, and how long at most.
    pub wait: Wait,
}

/// Why a node was not fenced, or what was to follow is not known.
#[derive(Debug)]
pub enum NotFenced {
    /// Its maintenance lease was not taken.
    NotTaken(NotTaken),
    /// Its maintenance lease was lost meanwhile.
    LeaseLost(Lost),
    /// It was recreated since it was shown.
    Recreated,
    /// It changed since it was shown: to this.
    Changed(NodeChange, Box<NodeView>),
    /// Every write met another's, that many times.
    Conflicts(u32),
    /// It was done, and so many pods are still there.
    NotEmpty(usize),
    /// Something failed.
    Failed(Error),
}

impl From<Error> for NotFenced {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Receives what happens on the way.
pub trait FenceProgress: Send {
    /// The maintenance lease is being taken.
    fn taking(&mut self, step: TakingStep<'_>);
    /// The taint was written.
    fn written(&mut self);
    /// The Event could not be left.
    fn not_recorded(&mut self, why: Error);
    /// So many pods are to be deleted, and not waited for.
    fn left(&mut self, pods: usize);
    /// So many pods are still waited for.
    fn waiting(&mut self, pods: usize);
    /// All are gone.
    fn empty(&mut self);
    /// The maintenance lease was given up.
    fn released(&mut self, held: &[Held], outcome: Result<Vec<Result<Released>>>);
}

/// Reads a node, its heartbeat and its pods.
///
/// # Errors
/// If one of them may not be read, or there is no such node.
pub async fn look(cluster: &Cluster, name: &str) -> Result<NodeView> {
    let at = Address::new("", name);
    let pods = on_node(name);
    let heartbeat = Address::new(HEARTBEATS, name);
    let (node, heartbeat, pods) = tokio::try_join!(
        cluster.get::<Node>(NODES, &at),
        cluster.get::<Lease>(LEASES, &heartbeat),
        cluster.list_where(&pods, |pod: &Pod| !pod.is_finished()),
    )?;
    let node = node.ok_or_else(|| Error::NotFound {
        kind: ObjectKind::Node,
        message: format!("there is no node '{name}'"),
    })?;
    Ok(NodeView {
        node: node.value,
        heartbeat: heartbeat.map(|lease| lease.value),
        pods: pods.items.into_iter().map(|pod| pod.value).collect(),
    })
}

fn on_node(name: &str) -> Query {
    Query::new(PODS).select(None, Some(&format!("spec.nodeName={name}"))).bare(true)
}

/// The claim on the maintenance lease of a node, if that can be taken.
///
/// # Errors
/// What is in the way.
pub async fn claim(cluster: &Cluster, name: &str, terms: &Terms) -> Result<Vec<KnownClaim>, NotTaken> {
    let which = Selection { names: vec![name.to_owned()], ..Selection::default() };
    let targets = targets(cluster, &which).await?;
    let seconds = i32::try_from(DURATION.as_secs()).unwrap_or(i32::MAX);
    let claims = claims(targets, terms, seconds, Wait::No, &Writing::default()).map_err(NotTaken::Blocked)?;
    check_all(cluster, &claims).map_err(NotTaken::Blocked)?;
    Ok(claims)
}

/// Takes the maintenance lease, looks at the node once more, sets or takes off its taint, and waits for what
/// follows, if asked to; then the lease is given up. A dry run of the server's takes no lease.
///
/// # Errors
/// Why it was not done, or why what was to follow is not known.
pub async fn fence(
    cluster: &Cluster,
    request: &FenceRequest<'_>,
    claims: &[KnownClaim],
    interrupts: &Interrupts,
    progress: &mut dyn FenceProgress,
) -> Result<(), NotFenced> {
    if request.writing.dry_run {
        return under(cluster, request, &[], interrupts, progress).await;
    }
    let taken = take_all(cluster, claims, Wait::No, interrupts, &mut Steps(progress)).await;
    let held: Vec<Held> = taken.map_err(NotFenced::NotTaken)?.into_iter().map(|(held, _)| held).collect();
    let outcome = under(cluster, request, &held, interrupts, progress).await;
    let released = release_all(cluster, &held, true, interrupts).await;
    progress.released(&held, released);
    outcome
}

/// Passes on the steps of taking the lease.
struct Steps<'a>(&'a mut dyn FenceProgress);

impl super::TakingProgress for Steps<'_> {
    fn step(&mut self, step: TakingStep<'_>) {
        self.0.taking(step);
    }
}

/// Acts while what is held is kept.
async fn under(
    cluster: &Cluster,
    request: &FenceRequest<'_>,
    held: &[Held],
    interrupts: &Interrupts,
    progress: &mut dyn FenceProgress,
) -> Result<(), NotFenced> {
    tokio::select! {
        biased;
        interruption = interrupts.next() => Err(NotFenced::Failed(interruption)),
        outcome = keep_while(cluster, held, Schedule::new(DURATION), act(cluster, request, progress)) => {
            outcome.unwrap_or_else(|lost| Err(NotFenced::LeaseLost(lost)))
        }
    }
}

async fn act(
    cluster: &Cluster,
    request: &FenceRequest<'_>,
    progress: &mut dyn FenceProgress,
) -> Result<(), NotFenced> {
    let seen = set_or_take_off(cluster, request).await?;
    progress.written();
    if request.writing.dry_run {
        return Ok(());
    }
    let at = Address::new("", &seen.node.metadata.name);
    let uid = &seen.node.metadata.uid;
    let (reason, message) = (request.event)(&seen);
    let event = NewEvent { resource: NODES, at: &at, uid, reason, message, who: request.who.clone() };
    if let Err(error) = cluster.record(&event, &request.writing).await {
        progress.not_recorded(error);
    }
    let going: BTreeSet<String> = seen.deleted().map(|pod| pod.metadata.uid.clone()).collect();
    if request.undo || going.is_empty() {
        return Ok(());
    }
    let deadline = match request.wait {
        Wait::No => {
            progress.left(going.len());
            return Ok(());
        }
        Wait::AtMost(limit) => Instant::now().checked_add(limit),
        Wait::Forever => None,
    };
    emptied(cluster, &at.name, &going, deadline, progress).await
}

/// Sets or takes off the taint, and returns what was read for that. The node controller and others write the
/// node too: on a conflict (409) it is read and decided on again.
async fn set_or_take_off(cluster: &Cluster, request: &FenceRequest<'_>) -> Result<NodeView, NotFenced> {
    let shown = request.shown;
    let mut sent: Option<(NodeView, Vec<Taint>)> = None;
    for _ in 0..CONFLICT_ATTEMPTS {
        let now = look(cluster, &shown.node.metadata.name).await?;
        if shown.node.metadata.uid != now.node.metadata.uid {
            return Err(NotFenced::Recreated);
        }
        // A write that a proxy passed on twice conflicts with itself.
        if let Some((seen, taints)) = sent
            && now.has_taints_of(&taints)
        {
            return Ok(seen);
        }
        if let Some(change) = now.change(shown, request.undo, cluster.server_time()) {
            return Err(NotFenced::Changed(change, Box::new(now)));
        }
        let taints = now.taints_with((!request.undo).then(|| cluster.server_time().0));
        match cluster.set_taints(&now.node, &taints, &request.writing).await {
            Ok(_) => return Ok(now),
            Err(error) if error.is_conflict() => sent = Some((now, taints)),
            Err(error) => return Err(error.into()),
        }
    }
    Err(NotFenced::Conflicts(CONFLICT_ATTEMPTS))
}

/// Watches the pods of the node until they are gone. Pod GC sets those that are `going` to Failed before it
/// deletes them, and finalizers may keep them.
async fn emptied(
    cluster: &Cluster,
    name: &str,
    going: &BTreeSet<String>,
    deadline: Option<Instant>,
    progress: &mut dyn FenceProgress,
) -> Result<(), NotFenced> {
    let mut left = BTreeSet::new();
    let is_empty = until(cluster, &on_node(name), deadline, |event: WatchEvent<Pod>| {
        match event {
            WatchEvent::Snapshot(pods) => {
                let there = pods.iter().map(|pod| &*pod.value);
                let there = there.filter(|pod| is_deleted(pod) || going.contains(&pod.metadata.uid));
                left = there.map(|pod| pod.metadata.uid.clone()).collect();
            }
            WatchEvent::Gone(pod) => drop(left.remove(&pod.value.metadata.uid)),
            WatchEvent::Changed(_) | WatchEvent::Lost(_) | WatchEvent::Failed(_) => {}
        }
        if left.is_empty() {
            return ControlFlow::Break(());
        }
        progress.waiting(left.len());
        ControlFlow::Continue(None)
    })
    .await?;
    if !is_empty {
        return Err(NotFenced::NotEmpty(left.len()));
    }
    progress.empty();
    Ok(())
}
