//! Leader election by a Lease, as client-go does it, for a controller.

use std::{sync::Arc, time::Duration};

use crate::{
    Interrupts, Lost, NotTaken,
    client::{Cluster, single::Address},
    error::{Error, Result},
    maintenance::{holder_named, name_of, release, schedule, tell_remarks},
    protocols::{Claim, Held, TakingProgress, Wait, acquire_observed, keep_while, persistently},
    rules::{deadline::Schedule, maintenance, node::HEARTBEATS, taking::Terms},
};

/// The duration of a leader's lease in Kubernetes' own components.
const DURATION: Duration = Duration::from_secs(15);

/// A candidate of the leader election on a Lease.
///
/// Whether the leader is gone is judged as client-go does: when its lease was seen unchanged for its duration, by
/// this machine's own clock. So candidates that use this and those that use client-go can share a lease.
///
/// ```no_run
/// use kube_leases::Election;
///
/// # async fn reconcile() {}
/// # async fn example() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let client = kube::Client::try_default().await?;
/// let election = Election::new(client, "default", "my-controller", "pod-7f9c");
/// loop {
///     let leadership = election.campaign().await?; // when this candidate leads
///     match leadership.lead(reconcile()).await {
///         Ok(()) => break leadership.resign().await?,
///         Err(lost) => eprintln!("not the leader any more: {lost}"),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Election {
    cluster: Arc<Cluster>,
    at: Address,
    identity: String,
    duration: Duration,
    interrupts: Interrupts,
}

impl Election {
    /// A candidate for this Lease. Its `identity` is what is written in the lease, and has to be its own: that of
    /// a pod is its name, that of a process on a host has something random in it.
    pub fn new(
        client: kube::Client,
        namespace: impl Into<String>,
        name: impl Into<String>,
        identity: impl Into<String>,
    ) -> Self {
        Self {
            cluster: Arc::new(Cluster::from_client(client)),
            at: Address::new(namespace, name),
            identity: identity.into(),
            duration: DURATION,
            interrupts: Interrupts::none(),
        }
    }

    /// How long leadership lasts without a renewal: so long do the other candidates wait if this process is killed.
    /// At least three seconds; 15 if it is not said, as in Kubernetes' own components.
    #[must_use]
    pub fn duration(self, duration: Duration) -> Self {
        Self { duration, ..self }
    }

    /// Stops campaigning at an interrupt. Each interrupt is received once, also by clones of `interrupts`: what is
    /// to stop several needs a sender for each.
    #[must_use]
    pub fn interrupts(self, interrupts: Interrupts) -> Self {
        Self { interrupts, ..self }
    }

    /// Waits until this candidate leads. Outages are waited for too.
    ///
    /// To wait, it needs permission to list and watch leases in the namespace, besides that to get, create and
    /// update them. If the future is dropped, the lease may have been taken already: it is then held for its
    /// duration, and waited for by the next campaign. [`Election::interrupts`] stops it cleanly.
    ///
    /// # Errors
    /// If it cannot campaign: without permission, for instance, or because the lease is one of coordinated
    /// election, whose leader is chosen by the control plane.
    pub async fn campaign(&self) -> Result<Leadership, NotTaken> {
        self.campaign_with(&mut ()).await
    }

    /// As [`campaign`](Self::campaign), telling what happens on the way.
    ///
    /// # Errors
    /// If it cannot campaign.
    pub async fn campaign_with(&self, progress: &mut dyn TakingProgress) -> Result<Leadership, NotTaken> {
        let schedule = schedule(self.duration)?;
        if [HEARTBEATS, maintenance::NAMESPACE].contains(&self.at.namespace.as_str()) {
            let message = format!("the leases in {} are those of nodes", self.at.namespace);
            return Err(Error::Refused { message }.into());
        }
        name_of("a namespace", &self.at.namespace)?;
        name_of("a lease", &self.at.name)?;
        let who = holder_named(&self.identity)?;
        // An outage is waited for, here as later.
        let lease = tokio::select! {
            biased;
            interruption = self.interrupts.next() => return Err(interruption.into()),
            lease = persistently(None, || self.cluster.lease(&self.at)) => lease,
        };
        tell_remarks(&self.cluster, progress);
        let lease = lease?;
        if lease.as_ref().is_some_and(|lease| lease.value.spec.strategy.is_some()) {
            let message =
                format!("the leader of '{}' is chosen by coordinated leader election", self.at.name);
            return Err(Error::Refused { message }.into());
        }
        let claim = Claim::new(self.at.clone(), Terms::observed(who), schedule.seconds());
        let (cluster, wait) = (Arc::clone(&self.cluster), Wait::Forever);
        let held = acquire_observed(&cluster, &claim, lease, wait, &self.interrupts, progress).await;
        tell_remarks(&cluster, progress);
        Ok(Leadership { cluster, held: [held?], schedule })
    }
}

/// Leadership, until it is lost.
///
/// It is renewed while [`lead`](Self::lead) runs, and only then. To drop this does not resign: leadership
/// ends when the lease expires.
#[must_use = "leadership is kept until it is resigned or expires"]
pub struct Leadership {
    cluster: Arc<Cluster>,
    held: [Held; 1],
    schedule: Schedule,
}

impl Leadership {
    /// The fencing token: as a number (`u64`), it is greater than that of every earlier leader. What the leader
    /// writes to can refuse requests with a smaller one than it has seen.
    pub fn token(&self) -> &str {
        &self.held[0].token
    }

    /// Works as the leader while the lease is renewed. If leadership is lost, the work is dropped; if renewals
    /// fail, it is dropped before another candidate may lead. Work that blocks the thread stops the renewals too.
    ///
    /// # Errors
    /// Why leadership was lost.
    pub async fn lead<T>(&self, work: impl Future<Output = T>) -> Result<T, Lost> {
        keep_while(&self.cluster, &self.held, self.schedule, work).await
    }

    /// Steps down: another candidate may lead at once.
    ///
    /// # Errors
    /// If it is not known whether the lease is released: then it expires.
    pub async fn resign(self) -> Result<()> {
        release(&self.cluster, &self.held).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MaintenanceLease;

    fn is_send<T: Send>(_: T) {}

    /// A controller spawns these on a runtime of several threads: that they are `Send` is for the compiler to say.
    #[expect(dead_code)]
    fn what_a_controller_awaits_is_send(
        election: &Election,
        leadership: Leadership,
        lease: MaintenanceLease,
        progress: &mut dyn TakingProgress,
    ) {
        is_send(election.campaign());
        is_send(election.campaign_with(progress));
        is_send(leadership.lead(async {}));
        is_send(leadership.resign());
        is_send(lease.run(async {}));
        is_send(lease.release());
    }
}
