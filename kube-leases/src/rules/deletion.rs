//! Deleting several pods together: how each is judged, what may have changed since, and what stands
//! against it.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;

use super::{
    advice::Safe,
    assessment::Assessment,
    lease::Lease,
    node::{NodeContact, late_after},
    pod::Pod,
    risk::Risk,
    surroundings::Surroundings,
    time::ServerTime,
    workload::{Kind, ReplacementReason, Successor},
};

/// A pod, and all there is to say about force-deleting it.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The pod as it was read.
    pub pod: Arc<Pod>,
    /// What there is to say.
    pub assessment: Assessment,
    /// Whether its node is given up, and yet heartbeats.
    pub heartbeats: bool,
    /// Its disruption budgets could not be read, and another pod that they may select goes before it.
    pub uncounted: bool,
    node: NodeSign,
}

/// What tells that a node is another one, or sends heartbeats again.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NodeSign {
    uid: Option<String>,
    heartbeat: Option<Timestamp>,
}

impl NodeSign {
    fn of(node: &str, around: &Surroundings) -> Self {
        let (object, lease) = (around.node(node), around.heartbeat(node));
        let heartbeat = object.map_or_else(|| lease.and_then(Lease::heartbeat), |node| node.heartbeat(lease));
        Self { uid: object.map(|node| node.metadata.uid.clone()), heartbeat }
    }
}

/// What is to be done with a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Delete it with no grace period.
    Force,
    /// What is safer.
    Safely(Safe),
}

/// What has changed since a pod was judged, so that it is not to be deleted by what was seen then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodChange {
    /// Its node was recreated or deleted.
    NodeReplaced,
    /// Its node sent a heartbeat.
    NodeHeard,
    /// Something else is the safest now.
    SaferWay,
    /// These disruption budgets have nothing left.
    BudgetSpent(Vec<String>),
    /// The risk has become this.
    Risk(Risk),
}

/// The disruption budgets that a pod that is counted on goes over, or may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverBudget {
    /// They could not be read, and another pod that they may select goes before it.
    Unread,
    /// These have nothing left.
    Spent(Vec<String>),
}

/// Why no confirmation is enough to force-delete a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForceRefusal {
    /// At a critical risk, its node is alive.
    NodeAlive,
    /// At a critical risk, its node is given up and yet heartbeats.
    NodeHeartbeats,
    /// It would go over a disruption budget.
    OverBudget(OverBudget),
}

impl Judged {
    /// Judges a pod by what is known around it.
    pub fn new(pod: Arc<Pod>, around: &Surroundings, now: ServerTime) -> Self {
        let name = &pod.spec.node_name;
        let lease = around.heartbeat(name);
        let heartbeats = match around.node(name) {
            Some(node) => node.is_contradicted(lease, now),
            None => lease
                .and_then(Lease::heartbeat)
                .is_some_and(|renewed| now.since(renewed) <= late_after(lease)),
        };
        let node = NodeSign::of(name, around);
        let assessment = Assessment::of(&pod, around, now);
        Self { assessment, pod, heartbeats, uncounted: false, node }
    }

    /// Whether its disruption budgets count on it. Only where its node is known to be lost do they not:
    /// a node that is late, or may not be read, may run it.
    pub fn is_counted_on(&self) -> bool {
        let ends = !self.pod.is_scheduled()
            || self.pod.is_finished()
            || self.pod.metadata.deletion_timestamp.is_some();
        let lost = matches!(
            self.assessment.contact,
            Some(NodeContact::Silent | NodeContact::Fenced | NodeContact::Gone)
        );
        !ends && !lost
    }

    /// What is done without force, unless it may be over a disruption budget: a deletion does not ask them,
    /// as an eviction does.
    pub fn within_budget(&self) -> Option<Safe> {
        self.assessment.safe_way().filter(|way| *way == Safe::Evict || !self.uncounted)
    }

    /// Which disruption budgets it would go over, or may.
    pub fn over_budget(&self) -> Option<OverBudget> {
        if self.uncounted {
            return Some(OverBudget::Unread);
        }
        let spent = &self.assessment.spent_budgets;
        (self.is_counted_on() && !spent.is_empty()).then(|| OverBudget::Spent(spent.clone()))
    }

    /// Why no confirmation is enough; where `over_budget` is confirmed, or is still to be asked about, that is
    /// no reason.
    pub fn refusal(&self, over_budget: bool) -> Option<ForceRefusal> {
        let critical = self.assessment.risk == Risk::Critical;
        if critical && self.assessment.contact.is_some_and(NodeContact::is_alive) {
            return Some(ForceRefusal::NodeAlive);
        }
        // Even if it is confirmed to be off: its kubelet sends heartbeats, so its machine is on.
        if critical && self.heartbeats {
            return Some(ForceRefusal::NodeHeartbeats);
        }
        self.over_budget().filter(|_| !over_budget).map(ForceRefusal::OverBudget)
    }

    /// What has changed around the pod since it was judged, if anything that counts. The pod itself is the
    /// server's to compare. Of a way without force, whether it is still the one to take.
    pub fn change(&self, way: Option<Safe>, later: &Surroundings, now: ServerTime) -> Option<PodChange> {
        let node = &self.pod.spec.node_name;
        let (shown, sign) = (&self.assessment, NodeSign::of(node, later));
        if sign.uid != self.node.uid {
            return Some(PodChange::NodeReplaced);
        }
        let assessment = Assessment::of(&self.pod, later, now);
        // Where it is not known whether the node is alive, its heartbeat tells.
        let heard =
            self.node.heartbeat.is_some_and(|time| now.since(time) <= late_after(later.heartbeat(node)));
        let was_alive = shown.contact.map_or(heard, NodeContact::is_alive);
        // The kinds of contact are in the order of how little is heard.
        if !was_alive && (sign.heartbeat != self.node.heartbeat || assessment.contact < shown.contact) {
            return Some(PodChange::NodeHeard);
        }
        if way.is_some() && assessment.safe_way() != way {
            return Some(PodChange::SaferWay);
        }
        // The risk may be as high for another reason.
        let spent = &assessment.spent_budgets;
        if way.is_none() && self.is_counted_on() && shown.spent_budgets.is_empty() && !spent.is_empty() {
            return Some(PodChange::BudgetSpent(spent.clone()));
        }
        (assessment.risk > shown.risk).then_some(PodChange::Risk(assessment.risk))
    }

    /// Whether its controller replaces it after its force deletion. One that does not wait for the object to
    /// go has replaced it when it was deleted; one that is stopped replaces none.
    pub fn is_replaced(&self) -> bool {
        let Some(owner) = self.pod.controller() else { return false };
        let ownership = &self.assessment.ownership;
        if ownership.is_stopped() {
            return false;
        }
        match ownership.successor {
            Successor::WhenGone => true,
            Successor::Early
                if ownership.why == ReplacementReason::UnknownKind && Kind::of(owner).is_none() =>
            {
                true
            }
            Successor::Early => {
                owner.kind == "ReplicaSet"
                    && self.pod.metadata.deletion_timestamp.is_none()
                    && !self.pod.is_finished()
            }
            Successor::Never => false,
        }
    }
}

/// Judges several pods as what goes together: each by what the ones before it leave of the disruption
/// budgets, of which those that could not be read may allow one in a namespace. Without force, those go
/// that have a way.
pub fn judge(pods: Vec<Arc<Pod>>, mut around: Surroundings, safely: bool, now: ServerTime) -> Vec<Judged> {
    let mut uncounted = BTreeSet::new();
    let one = |pod: Arc<Pod>| {
        let mut judged = Judged::new(pod, &around, now);
        let way = judged.assessment.safe_way();
        if !safely || way.is_some() {
            around.spend(&judged.pod);
        }
        let goes = !safely || way.is_some_and(|way| way != Safe::Await);
        if goes && around.budgets.is_none() && judged.is_counted_on() {
            judged.uncounted = !uncounted.insert(judged.pod.metadata.namespace.clone());
        }
        judged
    };
    pods.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::reasons::Reason;
    use crate::rules::stage::{ago, around, fenced, named, not_ready, now, pod, read, ready};

    fn judged(kind: &str, around: &Surroundings) -> Judged {
        Judged::new(Arc::new(ready(pod(kind, None, &json!([])))), around, now())
    }

    fn budget(allowed: i64) -> Vec<crate::rules::storage::PodDisruptionBudget> {
        vec![read(json!({
            "metadata": { "name": "b", "namespace": "shop" },
            "spec": { "selector": { "matchLabels": { "app": "db" } } },
            "status": { "disruptionsAllowed": allowed, "currentHealthy": 3, "desiredHealthy": 3 },
        }))]
    }

    /// What counts as a change depends on what was shown, and on what is to be done.
    #[test]
    fn signs_of_change() {
        let evict = Some(Safe::Evict);
        let replaced = |mut around: Surroundings| {
            around.nodes.as_mut().unwrap().get_mut("node-1").unwrap().metadata.uid = "new".into();
            around
        };
        let heard = || Surroundings {
            heartbeats: Some(named(json!({ "node-1": { "spec": { "renewTime": ago(1) } } }))),
            ..around(600)
        };
        let deleted = Surroundings { nodes: Some(std::collections::BTreeMap::new()), ..around(600) };
        let spent = || Surroundings { budgets: Some(budget(0)), ..around(5) };
        let allowed = || Surroundings { budgets: Some(budget(1)), ..around(5) };
        let unheard = || Surroundings { heartbeats: None, nodes: None, ..around(5) };
        let unread = || Surroundings { leaders: None, ..around(600) };
        for (kind, way, before, later, change) in [
            ("StatefulSet", None, around(600), around(600), None),
            ("StatefulSet", None, around(600), replaced(around(600)), Some(PodChange::NodeReplaced)),
            ("StatefulSet", None, around(600), deleted, Some(PodChange::NodeReplaced)),
            ("StatefulSet", None, around(600), heard(), Some(PodChange::NodeHeard)),
            ("StatefulSet", None, fenced(around(600)), around(600), Some(PodChange::NodeHeard)),
            // A node that is alive heartbeats, and that is no change.
            ("ReplicaSet", None, around(5), around(3), None),
            ("ReplicaSet", evict, around(5), around(3), None),
            ("ReplicaSet", evict, allowed(), spent(), Some(PodChange::SaferWay)),
            ("ReplicaSet", None, allowed(), spent(), Some(PodChange::BudgetSpent(vec!["b".into()]))),
            // It was shown so.
            ("ReplicaSet", None, spent(), spent(), None),
            ("ReplicaSet", None, around(600), unread(), Some(PodChange::Risk(Risk::Critical))),
            ("StatefulSet", None, unheard(), unheard(), None),
        ] {
            assert_eq!(judged(kind, &before).change(way, &later, now()), change, "{kind} {way:?}");
        }
    }

    #[test]
    fn what_no_confirmation_is_enough_for() {
        let spent = || Some(OverBudget::Spent(vec!["b".into()]));
        let over = |around: Surroundings| Surroundings { budgets: Some(budget(0)), ..around };
        let contradicted = Surroundings {
            heartbeats: Some(named(json!({ "node-1": { "spec": { "renewTime": ago(0) } } }))),
            ..around(600)
        };
        for (kind, around, over_budget, refusal) in [
            ("StatefulSet", around(5), false, Some(ForceRefusal::NodeAlive)),
            ("StatefulSet", not_ready(around(5)), true, Some(ForceRefusal::NodeAlive)),
            ("StatefulSet", contradicted, true, Some(ForceRefusal::NodeHeartbeats)),
            ("StatefulSet", around(600), false, None),
            ("ReplicaSet", around(5), false, None),
            ("ReplicaSet", over(around(5)), false, spent().map(ForceRefusal::OverBudget)),
            ("ReplicaSet", over(around(5)), true, None),
            // A late node may run it; of one that is lost nothing is counted on.
            ("ReplicaSet", over(around(45)), false, spent().map(ForceRefusal::OverBudget)),
            ("ReplicaSet", over(around(600)), false, None),
            ("ReplicaSet", over(fenced(around(600))), false, None),
        ] {
            assert_eq!(judged(kind, &around).refusal(over_budget), refusal, "{kind} {over_budget}");
        }
    }

    /// Of several in a namespace, the budgets of which may not be read, the first goes.
    #[test]
    fn budgets_that_may_not_be_read_allow_one_pod() {
        let set = json!({
            "metadata": { "name": "db", "namespace": "shop", "uid": "u" }, "spec": { "replicas": 9 },
            "status": { "readyReplicas": 9 },
        });
        for (age, safely, uncounted) in [
            (5, false, [false, true, true]),
            (45, false, [false, true, true]),
            // What is lost is not counted on.
            (600, false, [false; 3]),
            (600, true, [false; 3]),
            (5, true, [false, true, true]),
        ] {
            let mut around = Surroundings { budgets: None, ..around(age) };
            around.workloads.insert((Kind::ReplicaSet, "shop/db".into()), read(set.clone()));
            let pod = Arc::new(ready(pod("ReplicaSet", None, &json!([]))));
            let judged = judge(vec![pod.clone(), pod.clone(), pod], around, safely, now());
            let seen: Vec<bool> = judged.iter().map(|one| one.uncounted).collect();
            assert_eq!(seen, uncounted, "{age} {safely}");
            for one in &judged {
                let over = one.uncounted.then_some(OverBudget::Unread);
                assert_eq!(one.over_budget(), over);
                // The API asks the budgets about an eviction.
                let by_eviction = one.assessment.safe_way() == Some(Safe::Evict);
                assert_eq!(one.within_budget().is_some(), by_eviction || age == 600);
            }
        }
    }

    #[test]
    fn what_is_replaced_after_its_force_deletion() {
        for (kind, deleted, is_replaced) in [
            ("StatefulSet", None, true),
            ("StatefulSet", Some(600), true),
            ("DaemonSet", None, true),
            ("ReplicaSet", None, true),
            // It was replaced when it was deleted.
            ("ReplicaSet", Some(600), false),
            ("Job", None, false),
            ("CloneSet", None, true),
            ("CloneSet", Some(600), true),
            ("", None, false),
        ] {
            let pod = Arc::new(pod(kind, deleted, &json!([])));
            assert_eq!(
                Judged::new(pod, &around(600), now()).is_replaced(),
                is_replaced,
                "{kind} {deleted:?}"
            );
        }
    }

    #[test]
    fn what_a_stopped_controller_ran_is_not_replaced() {
        for (kind, key) in [("StatefulSet", Kind::StatefulSet), ("ReplicaSet", Kind::ReplicaSet)] {
            let mut around = around(600);
            let set = json!({
                "metadata": { "name": "db", "namespace": "shop", "uid": "u" }, "spec": { "replicas": 0 },
            });
            around.workloads.insert((key, "shop/db".into()), read(set));
            let judged = judged(kind, &around);
            assert!(!judged.is_replaced(), "{kind}");
            let reasons = &judged.assessment.reasons;
            let waits = |reason: &Reason| matches!(reason, Reason::StatefulSet { stopped, .. } if *stopped);
            assert_eq!(reasons.iter().any(waits), kind == "StatefulSet", "{reasons:?}");
        }
    }
}
