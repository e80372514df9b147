//! Declaring the machine of a node to be off: whether that may be done, and what it does.

use std::{collections::BTreeSet, sync::Arc};

use jiff::{SignedDuration, Timestamp};

use super::{
    assessment::Assessment,
    lease::Lease,
    node::{Node, NodeContact, OUT_OF_SERVICE, Taint, late_after},
    pod::Pod,
    risk::Risk,
    surroundings::Surroundings,
    time::ServerTime,
};

/// A node as it was read, with its heartbeat and its pods.
#[derive(Clone, Debug)]
pub struct NodeView {
    /// The node.
    pub node: Arc<Node>,
    /// The lease that its kubelet renews.
    pub heartbeat: Option<Arc<Lease>>,
    /// Its pods that are not finished.
    pub pods: Vec<Arc<Pod>>,
}

/// Why a node may not be fenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is alive, though it is marked out of service.
    Back,
    /// It is alive.
    Alive,
    /// It heartbeats, whatever its Ready condition says.
    Heartbeats,
    /// It is late, and not given up yet.
    Late,
}

/// What has changed since a node was shown, so that it is not to be fenced by what was seen then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeChange {
    /// It sent a heartbeat.
    Heard,
    /// It may not be fenced any more.
    Unfit(Unfit),
    /// This pod, `namespace/name`, came to it and would be deleted.
    PodCame(String),
    /// Its out-of-service taint changed.
    Taint,
}

/// What a fence does harm to if the machine is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// So many pods would run twice, and must not.
    Pods(usize),
    /// So many volumes would be detached while containers write to them.
    Volumes(usize),
    /// Whether volumes are attached is not known.
    VolumesUnknown,
}

/// The taint that marks a node out of service.
fn out_of_service(since: Option<Timestamp>) -> Taint {
    Taint {
        key: OUT_OF_SERVICE.into(),
        value: "nodeshutdown".into(),
        // What is not Terminating yet is made so.
        effect: "NoExecute".into(),
        // A later heartbeat shows that it does not hold any more.
        time_added: since,
    }
}

/// Whether a pod is deleted from a node that is out of service: what is Terminating, and what the taint makes
/// so. A pod that tolerates everything stays, as those of the network often do.
pub fn is_deleted(pod: &Pod) -> bool {
    !pod.is_finished() && (pod.metadata.deletion_timestamp.is_some() || !pod.tolerates(&out_of_service(None)))
}

impl NodeView {
    fn lease(&self) -> Option<&Lease> {
        self.heartbeat.as_deref()
    }

    /// Whether the node sends heartbeats.
    pub fn contact(&self, now: ServerTime) -> NodeContact {
        self.node.contact(self.lease(), now)
    }

    /// The age of its last heartbeat.
    pub fn heard(&self, now: ServerTime) -> Option<SignedDuration> {
        // A node's clock may be ahead.
        self.last_heartbeat().map(|time| now.since(time).max(SignedDuration::ZERO))
    }

    fn last_heartbeat(&self) -> Option<Timestamp> {
        self.node.heartbeat(self.lease())
    }

    /// The taints that mark it out of service.
    pub fn taints(&self) -> impl Iterator<Item = &Taint> {
        self.node.spec.taints.iter().filter(|taint| taint.key == OUT_OF_SERVICE)
    }

    /// All its taints with one that marks it out of service at this time, or with none.
    pub fn taints_with(&self, out_of_service_since: Option<Timestamp>) -> Vec<Taint> {
        let mut taints = self.node.spec.taints.clone();
        taints.retain(|taint| taint.key != OUT_OF_SERVICE);
        taints.extend(out_of_service_since.map(|since| out_of_service(Some(since))));
        taints
    }

    /// Whether it has the out-of-service taints that are among these, and no others.
    pub fn has_taints_of(&self, sent: &[Taint]) -> bool {
        // The API keeps no fractions of a second.
        let key = |taint: &Taint| (taint.value.clone(), taint.time_added.map(Timestamp::as_second));
        self.taints().map(key).eq(sent.iter().filter(|taint| taint.key == OUT_OF_SERVICE).map(key))
    }

    /// Whether it is expected to be put back into service: it is back, or was back since it was fenced.
    pub fn is_back(&self, now: ServerTime) -> bool {
        let is_dated = self.taints().all(|taint| taint.time_added.is_some());
        self.contact(now).is_alive() || is_dated && !self.node.is_fenced(self.lease())
    }

    /// Why it may not be fenced. The node controller's word is not enough: a heartbeat since then says
    /// otherwise. One from the future counts too, however far: a living kubelet's clock may be wrong.
    pub fn unfit(&self, now: ServerTime) -> Option<Unfit> {
        let is_fresh = self.last_heartbeat().is_some_and(|time| now.since(time) <= late_after(self.lease()));
        match self.contact(now) {
            NodeContact::Back => Some(Unfit::Back),
            NodeContact::Heard | NodeContact::NotReady => Some(Unfit::Alive),
            _ if is_fresh => Some(Unfit::Heartbeats),
            NodeContact::Late => Some(Unfit::Late),
            NodeContact::Silent | NodeContact::Fenced | NodeContact::Gone => None,
        }
    }

    /// The pods that are deleted when it is fenced.
    pub fn deleted(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.pods.iter().filter(|pod| is_deleted(pod))
    }

    /// What a fence does harm to if the machine is on. The volumes of a pod whose object was force-deleted
    /// stay attached until its node is marked out of service, and are then detached at once.
    pub fn harm(&self, around: &Surroundings, now: ServerTime) -> Option<Harm> {
        let is_critical = |pod: &&Arc<Pod>| Assessment::of(pod, around, now).risk == Risk::Critical;
        match (self.deleted().filter(is_critical).count(), around.attachments.as_deref()) {
            (0, Some([])) => None,
            (0, Some(volumes)) => Some(Harm::Volumes(volumes.len())),
            (0, None) => Some(Harm::VolumesUnknown),
            (pods, _) => Some(Harm::Pods(pods)),
        }
    }

    /// What has changed since it was shown; `undo` if its taint is to be taken off.
    pub fn change(&self, shown: &Self, undo: bool, now: ServerTime) -> Option<NodeChange> {
        if !undo {
            if shown.last_heartbeat() != self.last_heartbeat() {
                return Some(NodeChange::Heard);
            }
            if let Some(unfit) = self.unfit(now) {
                return Some(NodeChange::Unfit(unfit));
            }
            let known: BTreeSet<&str> = shown.pods.iter().map(|pod| pod.metadata.uid.as_str()).collect();
            if let Some(pod) = self.deleted().find(|pod| !known.contains(pod.metadata.uid.as_str())) {
                return Some(NodeChange::PodCame(pod.full_name()));
            }
        }
        shown.taints().ne(self.taints()).then_some(NodeChange::Taint)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::rules::stage::{ago, around, now, pod, read};

    /// A node with this Ready status and a heartbeat of this age.
    fn view(status: &str, age: i64, taints: &Value) -> NodeView {
        let node = json!({
            "metadata": { "name": "node-1", "uid": "n" }, "spec": { "taints": taints },
            "status": { "conditions": [{ "type": "Ready", "status": status }] },
        });
        let lease = json!({ "spec": { "renewTime": ago(age) } });
        NodeView { node: Arc::new(read(node)), heartbeat: Some(Arc::new(read(lease))), pods: Vec::new() }
    }

    fn taint(added: Option<i64>) -> Value {
        json!({
            "key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute",
            "timeAdded": added.map(|age| format!("{:.0}", now().0 - SignedDuration::from_secs(age))),
        })
    }

    #[test]
    fn only_a_silent_node_may_be_fenced() {
        let (plain, fenced) = (json!([]), json!([taint(Some(100))]));
        for (status, age, taints, unfit) in [
            ("Unknown", 600, &plain, None),
            ("Unknown", 600, &fenced, None),
            ("True", 5, &plain, Some(Unfit::Alive)),
            ("False", 5, &plain, Some(Unfit::Alive)),
            ("True", 5, &fenced, Some(Unfit::Back)),
            // The node controller's word is not enough.
            ("Unknown", 5, &plain, Some(Unfit::Heartbeats)),
            ("Unknown", 40, &plain, Some(Unfit::Heartbeats)),
            ("Unknown", 41, &plain, None),
            // A living kubelet's clock may be wrong.
            ("Unknown", -3600, &plain, Some(Unfit::Heartbeats)),
            ("True", 45, &plain, Some(Unfit::Late)),
            ("False", 45, &plain, Some(Unfit::Late)),
        ] {
            assert_eq!(view(status, age, taints).unfit(now()), unfit, "{status} {age} {taints}");
        }
    }

    #[test]
    fn a_node_that_was_back_is_expected_to_be_taken_into_service() {
        for (status, age, taints, is_back) in [
            ("True", 5, json!([taint(None)]), true),
            ("Unknown", 600, json!([taint(Some(3600))]), true),
            ("Unknown", 600, json!([taint(Some(100))]), false),
            // When that was is not known.
            ("Unknown", 600, json!([taint(None)]), false),
            ("Unknown", 600, json!([taint(Some(3600)), taint(None)]), false),
        ] {
            assert_eq!(view(status, age, &taints).is_back(now()), is_back, "{status} {taints}");
        }
    }

    #[test]
    fn what_is_deleted_when_a_node_is_fenced() {
        let tolerating = json!([{ "operator": "Exists" }]);
        for (deleted, phase, tolerations, is_deleted) in [
            (None, "Running", json!([]), true),
            (Some(600), "Running", json!([]), true),
            (None, "Running", tolerating.clone(), false),
            // It is Terminating already.
            (Some(600), "Running", tolerating, true),
            (None, "Succeeded", json!([]), false),
            (Some(600), "Failed", json!([]), false),
        ] {
            let mut pod = pod("StatefulSet", deleted, &json!([]));
            pod.spec = read(json!({ "nodeName": "node-1", "tolerations": tolerations }));
            pod.status.phase = phase.into();
            assert_eq!(super::is_deleted(&pod), is_deleted, "{deleted:?} {phase} {tolerations}");
        }
    }

    #[test]
    fn what_a_fence_does_harm_to() {
        let attached = || Some(vec![read(json!({ "spec": { "nodeName": "node-1" } }))]);
        for (kinds, attachments, harm) in [
            (&[][..], Some(Vec::new()), None),
            (&["ReplicaSet"], Some(Vec::new()), None),
            (&["StatefulSet", "ReplicaSet", "StatefulSet"], Some(Vec::new()), Some(Harm::Pods(2))),
            (&["StatefulSet"], None, Some(Harm::Pods(1))),
            (&["ReplicaSet"], attached(), Some(Harm::Volumes(1))),
            (&[], None, Some(Harm::VolumesUnknown)),
        ] {
            let mut view = view("Unknown", 600, &json!([]));
            view.pods = kinds.iter().map(|kind| Arc::new(pod(kind, None, &json!([])))).collect();
            let around = Surroundings { attachments, ..around(600) };
            assert_eq!(view.harm(&around, now()), harm, "{kinds:?}");
        }
    }

    #[test]
    fn signs_of_change() {
        let silent = || view("Unknown", 600, &json!([]));
        let with_pod = |uid: &str, phase: &str| {
            let mut view = silent();
            let mut pod = pod("StatefulSet", None, &json!([]));
            (pod.metadata.uid, pod.status.phase) = (uid.into(), phase.into());
            view.pods.push(Arc::new(pod));
            view
        };
        let tainted = || view("Unknown", 600, &json!([taint(Some(100))]));
        let came = || Some(NodeChange::PodCame("shop/db-0".into()));
        let alive = || view("True", 600, &json!([]));
        for (before, after, fence, undo) in [
            (silent(), silent(), None, None),
            (silent(), view("Unknown", 500, &json!([])), Some(NodeChange::Heard), None),
            (silent(), view("True", 5, &json!([])), Some(NodeChange::Heard), None),
            (silent(), alive(), Some(NodeChange::Unfit(Unfit::Late)), None),
            (silent(), with_pod("new", "Running"), came(), None),
            (with_pod("old", "Running"), with_pod("old", "Running"), None, None),
            (with_pod("old", "Running"), with_pod("new", "Running"), came(), None),
            (with_pod("old", "Running"), silent(), None, None),
            (silent(), with_pod("new", "Succeeded"), None, None),
            (silent(), tainted(), Some(NodeChange::Taint), Some(NodeChange::Taint)),
            (tainted(), tainted(), None, None),
        ] {
            for (is_undo, change) in [(false, &fence), (true, &undo)] {
                let found = after.change(&before, is_undo, now());
                assert_eq!(found.as_ref(), change.as_ref(), "{before:?} {after:?} {is_undo}");
            }
        }
    }

    /// A write that a proxy passed on twice conflicts with itself.
    #[test]
    fn what_was_written_is_recognised() {
        let since = now().0 + SignedDuration::from_millis(400);
        let other = json!({ "key": "a", "effect": "NoSchedule" });
        let plain = view("Unknown", 600, &json!([other]));
        let (on, off) = (plain.taints_with(Some(since)), plain.taints_with(None));
        assert_eq!((on.len(), off.len()), (2, 1));
        let written = view("Unknown", 600, &json!([taint(Some(0)), other]));
        assert!(written.has_taints_of(&on) && !written.has_taints_of(&off));
        assert!(plain.has_taints_of(&off) && !plain.has_taints_of(&on));
        assert!(!view("Unknown", 600, &json!([taint(Some(1))])).has_taints_of(&on));
    }
}
