//! What is known around pods: their nodes, volumes, disruption budgets, controllers, and the leases.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;

use super::{
    holder::Who,
    lease::Lease,
    maintenance::MaintenanceStanding,
    node::{Node, NodeContact},
    pod::Pod,
    storage::{PersistentVolume, PersistentVolumeClaim, PodDisruptionBudget, VolumeAttachment},
    time::ServerTime,
    workload::{Kind, Workload, Workloads},
};

/// The heartbeat of a node that does not exist is believed to be old after so long.
const GONE_AFTER: SignedDuration = SignedDuration::from_secs(60);
/// What is known around pods: `None` is what may not be read.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// By name.
    pub nodes: Option<BTreeMap<String, Node>>,
    /// The leases of kubelets, by node.
    pub heartbeats: Option<BTreeMap<String, Lease>>,
    /// The maintenance leases, by node.
    pub maintenance: Option<BTreeMap<String, Lease>>,
    /// All other leases.
    pub leaders: Option<Vec<Lease>>,
    /// By `namespace/name`.
    pub claims: Option<BTreeMap<String, PersistentVolumeClaim>>,
    /// By name.
    pub volumes: Option<BTreeMap<String, PersistentVolume>>,
    /// Which volumes are attached to which nodes.
    pub attachments: Option<Vec<VolumeAttachment>>,
    /// The disruption budgets.
    pub budgets: Option<Vec<PodDisruptionBudget>>,
    /// The controllers of pods, by kind and `namespace/name`.
    pub workloads: BTreeMap<(Kind, String), Workload>,
    /// The kinds of controllers that may not be read.
    pub unread: BTreeSet<Kind>,
}

/// The holder of a node's maintenance lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBy {
    /// Its identity.
    pub holder: String,
    /// The reason that it gave.
    pub reason: Option<String>,
}

impl Workloads for Surroundings {
    fn workload(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Workload> {
        self.workloads.get(&(kind, format!("{namespace}/{name}")))
    }
}

impl Surroundings {
    /// A node, if it is known.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.as_ref()?.get(name)
    }

    /// The lease that the kubelet of a node renews, if it is known.
    pub fn heartbeat(&self, node: &str) -> Option<&Lease> {
        self.heartbeats.as_ref()?.get(node)
    }

    /// Whether a node sends heartbeats; `None` if that cannot be known.
    pub fn contact(&self, name: &str, now: ServerTime) -> Option<NodeContact> {
        let node = self.nodes.as_ref()?.get(name);
        // Without its heartbeat, a node that is not given up may be dead for up to five minutes, and one
        // that is may be back.
        let lease = self.heartbeats.as_ref()?.get(name);
        if let Some(node) = node {
            return Some(node.contact(lease, now));
        }
        // A kubelet whose node was deleted goes on heartbeating for as long as it has the lease, and
        // running what it runs.
        let fresh = lease.and_then(Lease::heartbeat).is_some_and(|time| now.since(time) <= GONE_AFTER);
        Some(if fresh { NodeContact::Late } else { NodeContact::Gone })
    }

    /// Whether a node needs attention: without heartbeats, or with heartbeats again and still marked out of
    /// service. Without permission to read heartbeats, those count whose Ready condition is Unknown.
    pub fn is_lost(&self, node: &Node, now: ServerTime) -> bool {
        node.contact(self.heartbeat(&node.metadata.name), now) != NodeContact::Heard
            && (self.heartbeats.is_some() || node.ready().is_none_or(|ready| ready.status == "Unknown"))
    }

    /// Whether there is no object of this node.
    pub(crate) fn lacks(&self, node: &str) -> bool {
        self.nodes.as_ref().is_some_and(|nodes| !nodes.contains_key(node))
    }

    /// Which maintenance lease holds a node.
    pub fn held_by(&self, node: &str, now: ServerTime) -> Option<HeldBy> {
        let lease = self.maintenance.as_ref()?.get(node)?;
        let unheld = Who::exactly("");
        let (MaintenanceStanding::Held { holder, .. }
        | MaintenanceStanding::Admin { holder }
        | MaintenanceStanding::Malformed { holder, .. }) =
            MaintenanceStanding::of(Some(&lease.spec), &unheld, now)
        else {
            return None;
        };
        Some(HeldBy { holder, reason: lease.reason().map(str::to_owned) })
    }

    /// Counts a pod that is about to go, so that the next one of the same budgets is judged by what is
    /// left of them.
    pub fn spend(&mut self, pod: &Pod) {
        // One that was on its way out, or is not ready, is counted already.
        if pod.metadata.deletion_timestamp.is_some() || !pod.is_ready() {
            return;
        }
        for budget in self.budgets.iter_mut().flatten() {
            if budget.concerns(&pod.metadata.namespace, &pod.metadata.labels) {
                budget.status.disruptions_allowed -= 1;
                budget.status.current_healthy -= 1;
            }
        }
        for owner in &pod.metadata.owner_references {
            let Some(kind) = Kind::of(owner) else { continue };
            let at = (kind, format!("{}/{}", pod.metadata.namespace, owner.name));
            let Some(workload) = self.workloads.get_mut(&at) else { continue };
            workload.status.ready_replicas -= 1;
            let owners = workload.metadata.owner_references.clone();
            for above in owners.iter().filter(|above| Kind::of(above) == kind.above()) {
                let Some(kind) = kind.above() else { continue };
                let at = (kind, format!("{}/{}", pod.metadata.namespace, above.name));
                if let Some(workload) = self.workloads.get_mut(&at) {
                    workload.status.ready_replicas -= 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::stage::{around, fenced, not_ready, now};

    #[test]
    fn nodes_that_are_looked_after() {
        let blind = |around: Surroundings| Surroundings { heartbeats: None, ..around };
        for (around, is_lost) in [
            (around(5), false),
            (around(45), true),
            (around(600), true),
            (not_ready(around(5)), true),
            // It is back, and still marked out of service.
            (fenced(around(5)), true),
            // Without heartbeats, the node controller's word counts.
            (blind(around(5)), false),
            (blind(not_ready(around(5))), false),
            (blind(around(600)), true),
        ] {
            let mut node = around.node("node-1").unwrap().clone();
            node.metadata.name = "node-1".into();
            assert_eq!(around.is_lost(&node, now()), is_lost, "{around:?}");
        }
    }
}
