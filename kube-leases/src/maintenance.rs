//! Holding nodes for maintenance (KEP-1411), for a controller.

use std::{future::IntoFuture, sync::Arc, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};

use crate::{
    Interrupts, Lost, NotTaken,
    client::{Cluster, single::Writing},
    error::{Error, Result},
    protocols::{
        Held, Selection, TakingProgress, TakingStep, Wait, claims, keep_while, process_suffix, release_all,
        take_all, targets,
    },
    rules::{
        deadline::{SHORTEST, Schedule},
        holder::{InvalidHolder, RESERVED_PREFIX, Who},
        lease::is_object_name,
        taking::Terms,
    },
};

/// How long a lease is held without a renewal, where nothing else is said.
const DURATION: Duration = Duration::from_secs(5 * 60);

/// Takes the maintenance leases of nodes in the name of a holder, such as a controller.
///
/// The leases are those that `kubectl lease maint` takes, in the namespace `kube-node-maintenance`: a person's
/// command and a controller keep each other off a node, and both respect what medik8s' operators hold.
///
/// ```no_run
/// use std::time::Duration;
/// use kube_leases::Maintenance;
///
/// # async fn reboot(_: &str) {}
/// # async fn example() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let client = kube::Client::try_default().await?;
/// let maintenance = Maintenance::new(client, "reboot-controller");
/// let lease = maintenance
///     .acquire("node-1")
///     .reason("kernel update")
///     .wait(Duration::from_secs(300))
///     .await?;
/// let outcome = lease.run(reboot("node-1")).await; // ends, and says why, if the lease is lost
/// let released = lease.release().await;
/// outcome?;
/// released?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Maintenance {
    cluster: Arc<Cluster>,
    holder: String,
}

impl Maintenance {
    /// Takes leases with this client, in the name of `holder`.
    ///
    /// Each lease is held by `holder#…`, with a suffix that no other has: two replicas of a controller, or two of
    /// its tasks, are two holders, and one that was restarted waits until what it held before has expired.
    pub fn new(client: kube::Client, holder: impl Into<String>) -> Self {
        let holder = holder.into();
        Self { cluster: Arc::new(Cluster::from_client(client)), holder }
    }

    /// Takes the lease of a node. Nothing is done until what this returns is awaited.
    pub fn acquire(&self, node: impl Into<String>) -> Acquire {
        self.acquire_all([node])
    }

    /// Takes the leases of these nodes, all of them or none. Two that want the same nodes do not wait for each
    /// other: the leases are taken in the order of their names.
    pub fn acquire_all(&self, nodes: impl IntoIterator<Item = impl Into<String>>) -> Acquire {
        Acquire {
            cluster: Arc::clone(&self.cluster),
            holder: self.holder.clone(),
            nodes: nodes.into_iter().map(Into::into).collect(),
            reason: None,
            duration: DURATION,
            wait: Wait::No,
            take_malformed: false,
            ignore_medik8s: false,
            interrupts: Interrupts::none(),
            progress: Box::new(()),
        }
    }
}

/// What to take, and how: made by [`Maintenance::acquire`], and done when it is awaited.
///
/// If it is dropped on the way, what was taken so far stays held until it expires: use
/// [`Acquire::interrupts`] to stop it.
#[must_use = "nothing is taken until it is awaited"]
pub struct Acquire {
    cluster: Arc<Cluster>,
    holder: String,
    nodes: Vec<String>,
    reason: Option<String>,
    duration: Duration,
    wait: Wait,
    take_malformed: bool,
    ignore_medik8s: bool,
    interrupts: Interrupts,
    progress: Box<dyn TakingProgress>,
}

impl Acquire {
    /// The reason, shown to others that find the node held.
    pub fn reason(self, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }

    /// How long the leases are held without a renewal: so long do others wait if this process is killed. They are
    /// renewed three times in this time while [`MaintenanceLease::run`] runs. At least three seconds; five
    /// minutes if it is not said.
    pub fn duration(self, duration: Duration) -> Self {
        Self { duration, ..self }
    }

    /// Waits, for so long at most, for what another holds. Without this, that is an error.
    pub fn wait(self, limit: Duration) -> Self {
        Self { wait: Wait::AtMost(limit), ..self }
    }

    /// Waits for what another holds until it is free.
    pub fn wait_forever(self) -> Self {
        Self { wait: Wait::Forever, ..self }
    }

    /// Takes a node also while an operator of medik8s works on it.
    pub fn ignore_medik8s(self) -> Self {
        Self { ignore_medik8s: true, ..self }
    }

    /// Takes a lease also if it has a holder but no times to judge it by.
    pub fn take_malformed(self) -> Self {
        Self { take_malformed: true, ..self }
    }

    /// Stops at an interrupt, and releases what was taken so far. Each interrupt is received once, also by clones
    /// of `interrupts`: what is to stop several needs a sender for each.
    pub fn interrupts(self, interrupts: Interrupts) -> Self {
        Self { interrupts, ..self }
    }

    /// Tells what happens on the way, such as what is waited for.
    pub fn progress(self, progress: impl TakingProgress + 'static) -> Self {
        Self { progress: Box::new(progress), ..self }
    }

    async fn take(mut self) -> Result<MaintenanceLease, NotTaken> {
        let schedule = schedule(self.duration)?;
        let who = holder_named(&self.holder)?;
        if self.nodes.is_empty() {
            return Err(Error::Invalid { message: "no node is named".into() }.into());
        }
        self.nodes.iter().try_for_each(|node| name_of("a node", node))?;
        let terms = Terms {
            adopts: None,
            take_malformed: self.take_malformed,
            ignore_medik8s: self.ignore_medik8s,
            ..Terms::of_process(who, &process_suffix(), self.reason)
        };
        let cluster = self.cluster;
        let which = Selection { names: self.nodes, ..Selection::default() };
        let targets = targets(&cluster, &which).await;
        tell_remarks(&cluster, &mut *self.progress);
        let targets = targets?;
        let claims = claims(targets, &terms, schedule.seconds(), self.wait, &Writing::default())
            .map_err(NotTaken::Blocked)?;
        let taken = take_all(&cluster, &claims, self.wait, &self.interrupts, &mut *self.progress).await;
        tell_remarks(&cluster, &mut *self.progress);
        let held = taken?.into_iter().map(|(held, _)| held).collect();
        Ok(MaintenanceLease { cluster, held, schedule })
    }
}

impl IntoFuture for Acquire {
    type Output = Result<MaintenanceLease, NotTaken>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.take().boxed()
    }
}

/// The maintenance leases of one or several nodes, which were taken.
///
/// They are renewed while [`run`](Self::run) runs, and only then. To drop this does not release them: they
/// are held until they expire. So what is done after an error is decided by the caller, and not by chance.
#[must_use = "it stays held until it is released or expires"]
pub struct MaintenanceLease {
    cluster: Arc<Cluster>,
    held: Vec<Held>,
    schedule: Schedule,
}

impl MaintenanceLease {
    /// The nodes that are held.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.held.iter().map(|held| held.at.name.as_str())
    }

    /// The holder identity that is written in the leases.
    pub fn holder(&self) -> String {
        self.held.first().map(|held| held.who.identity()).unwrap_or_default()
    }

    /// The fencing token of a node's lease: as a number (`u64`), it is greater than that of every earlier holder.
    /// What the work talks to can refuse requests with a smaller one than it has seen.
    pub fn token(&self, node: &str) -> Option<&str> {
        self.held.iter().find(|held| held.at.name == node).map(|held| held.token.as_str())
    }

    /// Works while the leases are renewed. If one of them is lost, the work is dropped; if renewals fail, it is
    /// dropped before the lease expires for other holders.
    ///
    /// Work that blocks the thread stops the renewals too, and neither it nor what goes on in other tasks and
    /// processes is ended by that.
    ///
    /// # Errors
    /// Which lease was lost, and why.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Lost> {
        keep_while(&self.cluster, &self.held, self.schedule, work).await
    }

    /// Releases the leases. What is not held any more is left as it is.
    ///
    /// # Errors
    /// If it is not known whether they are released: then they expire.
    pub async fn release(self) -> Result<()> {
        release(&self.cluster, &self.held).await
    }
}

/// Tells what was noticed beside the matter so far.
pub(crate) fn tell_remarks(cluster: &Cluster, progress: &mut dyn TakingProgress) {
    for remark in cluster.take_remarks() {
        progress.step(TakingStep::Remark(&remark));
    }
}

/// The holder of this identity.
pub(crate) fn holder_named(identity: &str) -> Result<Who> {
    Who::named(identity, false).map_err(|why| {
        let why = match why {
            InvalidHolder::Empty => "it is empty".to_owned(),
            InvalidHolder::ControlCharacters => "it has control characters".to_owned(),
            InvalidHolder::Reserved => format!("'{RESERVED_PREFIX}' is the prefix of administrators"),
        };
        Error::Invalid { message: format!("'{}' cannot be a holder: {why}", identity.escape_debug()) }
    })
}

/// Whether something can be called so.
pub(crate) fn name_of(what: &str, name: &str) -> Result<()> {
    if is_object_name(name) {
        return Ok(());
    }
    Err(Error::Invalid { message: format!("'{}' cannot be the name of {what}", name.escape_debug()) })
}

/// When leases of this duration are renewed. They are written in whole seconds.
pub(crate) fn schedule(duration: Duration) -> Result<Schedule> {
    if duration < SHORTEST {
        let message = format!("a lease cannot be kept for less than {} s", SHORTEST.as_secs());
        return Err(Error::Invalid { message });
    }
    let most = u64::from(i32::MAX.unsigned_abs());
    Ok(Schedule::new(Duration::from_secs(duration.as_secs().min(most))))
}

/// Releases what was held; the first failure, if any.
pub(crate) async fn release(cluster: &Cluster, held: &[Held]) -> Result<()> {
    let released = release_all(cluster, held, true, &Interrupts::none()).await?;
    released.into_iter().try_for_each(|released| released.map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_a_holder_is_said_in_words() {
        for (identity, words) in [
            ("", "'' cannot be a holder: it is empty"),
            ("a\nb", r"'a\nb' cannot be a holder: it has control characters"),
            ("kubeadm:me", "'kubeadm:me' cannot be a holder: 'kubeadm' is the prefix of administrators"),
        ] {
            assert_eq!(holder_named(identity).unwrap_err().to_string(), words);
        }
    }
}
