//! Giving up a claim: what it wrote, or has sent and got no answer to, is undone.

use tokio::time::sleep;

use super::{
    CONFLICT_ATTEMPTS,
    claim::{Claim, PAUSE},
    held::Released,
    log::{LoggedWrite, version},
};
use crate::{
    client::{Cluster, Object, Refusal, leases::Notes},
    clock::BootInstant,
    error::{Error, Result},
    rules::{lease::Lease, maintenance::Record, taking::Undo},
};

impl Claim {
    /// Undoes what this claim's own writes have left behind, or may yet: for a claim that was given up.
    /// An outage is waited for, until the caller gives up.
    pub async fn withdraw(&self, cluster: &Cluster) -> Result<Released> {
        if self.writing.dry_run {
            return Ok(Released::NotOurs);
        }
        let mut last = None;
        let mut refusal = Refusal::default();
        let mut attempts = 0..CONFLICT_ATTEMPTS;
        while attempts.next().is_some() {
            if self.log.is_empty() {
                return Ok(Released::NotOurs);
            }
            let lease = match cluster.lease(&self.at).await {
                Err(error) if error.is_transient() || refusal.may_pass(&error) => {
                    sleep(error.pause(PAUSE * 5)).await;
                    attempts = 0..CONFLICT_ATTEMPTS;
                    continue;
                }
                lease => lease?,
            };
            let now = lease.as_ref().map(|lease| version(&lease.value));
            if let Some(lease) = lease.as_ref().filter(|lease| self.log.last_in(&lease.value).is_some()) {
                let held = self.held(lease.clone(), BootInstant::now());
                match held.undo(cluster, &self.writing).await {
                    Err(error) if error.is_unclear() => {
                        sleep(error.pause(PAUSE * 5)).await;
                        attempts = 0..CONFLICT_ATTEMPTS;
                        continue;
                    }
                    released => {
                        let released = released?;
                        self.log.clear();
                        return Ok(released);
                    }
                }
            }
            let left_to = lease.as_ref().map_or(Released::NotOurs, |lease| self.log.left_to(&lease.value));
            let Some(open) = self.log.open_over(now.as_ref()) else {
                // Whatever is still on its way carries a version that is no more.
                self.log.clear();
                return Ok(left_to);
            };
            // What it would have renewed is still as it was, and no one else's doing.
            let is_as_before = match (&open.undo, &lease) {
                (Undo::PutBack { record, .. }, Some(lease)) => record.is_in(&lease.value.spec),
                _ => false,
            };
            match self.supersede(cluster, lease.as_ref(), &open).await {
                Ok(()) => {
                    self.log.clear();
                    return Ok(if is_as_before { Released::PutBack } else { left_to });
                }
                // In a namespace that is not there nothing can arrive.
                Err(error) if error.is_not_found() && lease.is_none() => return Ok(Released::NotOurs),
                Err(error) if error.is_conflict() || error.is_not_found() => last = Some(error),
                Err(error) if error.is_unclear() || refusal.may_pass(&error) => {
                    sleep(error.pause(PAUSE * 5)).await;
                    attempts = 0..CONFLICT_ATTEMPTS;
                }
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| Error::LostRace {
            message: format!("gave up on '{}' after {CONFLICT_ATTEMPTS} write conflicts", self.at.name),
        }))
    }

    /// Leaves a newer version behind than a write that may still arrive carries, so that it is refused.
    async fn supersede(
        &self,
        cluster: &Cluster,
        lease: Option<&Object<Lease>>,
        open: &LoggedWrite,
    ) -> Result<()> {
        let now = cluster.server_time();
        let written = match lease {
            None => {
                let record = Record::release(&k8s_openapi::api::coordination::v1::LeaseSpec::default(), now);
                // Its owner is the one that the late lease would have: it lives as long as that would.
                cluster.create_lease(&self.at, &record, None, open.node.as_ref(), &self.writing).await
            }
            Some(lease) if self.log.frees(open, &lease.value) => {
                let spec = Record::release(&lease.value.spec, now).spec();
                let notes = Notes::default();
                cluster.write_lease(&self.at, &lease.value, &spec, notes, None, &self.writing).await
            }
            // It is held as it was: the process that wrote that has to recognise it.
            Some(lease) => cluster.mark_lease(&self.at, &lease.value, now.0, &self.writing).await,
        };
        written.map(drop)
    }
}
