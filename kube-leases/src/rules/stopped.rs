//! Controllers that are scaled to 0 or suspended until all their pods are gone, and are brought back then.
//!
//! The line that is printed for it may be interrupted, or wait in vain: the controller then stays as it
//! is. So the same write that stops it leaves a label on it, by which it is found again with
//! one small list, and with what it takes to bring it back. A label, and not an annotation: a Deployment
//! copies its annotations to its `ReplicaSet`s, and annotations cannot be selected by.

use jiff::SignedDuration;
use serde::Serialize;

use super::{
    node::NodeContact,
    pod::Pod,
    workload::{Kind, Workload},
};

/// On a set that was scaled to 0: how many replicas it had.
pub const SCALED_FROM: &str = "kubectl-lease.dev/scaled-from";
/// On a Job that was suspended.
pub const SUSPENDED: &str = "kubectl-lease.dev/suspended";

/// The kinds that a printed line stops.
pub const KINDS: [Kind; 3] = [Kind::Deployment, Kind::ReplicaSet, Kind::Job];

/// The label that is left on a controller of this kind.
pub fn label(kind: Kind) -> &'static str {
    if kind == Kind::Job { SUSPENDED } else { SCALED_FROM }
}

/// What is known of where the pods of controllers that were stopped are, or were.
#[derive(Clone, Copy, Debug)]
pub struct Whereabouts<'a> {
    /// The pods there are, of whatever controller.
    pub pods: &'a [&'a Pod],
    /// The nodes that may run containers of which nothing tells. Pod GC deletes the objects of pods there
    /// without having asked the machine: that they are gone is no evidence.
    pub lost: &'a [(&'a str, NodeContact)],
}

/// A controller that was scaled to 0 or suspended, and not brought back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How many it ran before; one, of a Job.
    pub before: i64,
    /// What has to be made sure of before it is brought back; `None` where waiting for its pods shows that.
    pub precondition: Option<Precondition>,
    /// The pods to wait for, if there are any.
    pub wait: Option<PodsWait>,
}

/// How to wait for the end of all pods of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodsWait {
    /// Selects its pods, as `kubectl -l` takes it.
    pub selector: String,
    /// The longest grace period of them.
    pub grace: SignedDuration,
}

/// What a wait for the end of the pods of a controller does not show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Precondition {
    /// That no containers run on these nodes, which are lost: also where the pods are gone.
    LostNodes {
        /// The nodes.
        nodes: Vec<LostNode>,
    },
    /// That the containers have ended, for with no grace period the pods are gone before.
    NoGracePeriod,
    /// That the containers have ended, for the pods are gone, and with them what tells where they ran.
    PodsGone,
}

/// A node that may run containers of which nothing tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostNode {
    /// Its name.
    pub name: String,
    /// How it is.
    pub state: NodeContact,
}

impl Stopped {
    /// Whether a controller is one, by its label and by what it should run.
    pub fn of(kind: Kind, workload: &Workload, whereabouts: Whereabouts<'_>) -> Option<Self> {
        let before = workload.ran_before(kind)?;
        let pods: Vec<&Pod> = whereabouts
            .pods
            .iter()
            .copied()
            .filter(|pod| workload.owns(kind, pod) && !pod.is_finished())
            .collect();
        // Longest of all: a pod may be of an earlier template.
        let grace = pods.iter().map(|pod| pod.grace()).max().filter(SignedDuration::is_positive);
        Some(Self {
            kind,
            namespace: workload.metadata.namespace.clone(),
            name: workload.metadata.name.clone(),
            before,
            precondition: precondition(workload, &pods, whereabouts.lost),
            wait: workload.selector(kind).zip(grace).map(|(selector, grace)| PodsWait { selector, grace }),
        })
    }
}

/// What a wait for the end of these pods, the ones there are of a controller, does not show.
fn precondition(workload: &Workload, pods: &[&Pod], lost: &[(&str, NodeContact)]) -> Option<Precondition> {
    if !lost.is_empty() {
        let nodes = lost.iter().map(|(node, state)| LostNode { name: (*node).to_owned(), state: *state });
        return Some(Precondition::LostNodes { nodes: nodes.collect() });
    }
    if pods.iter().any(|pod| pod.least_grace().is_some()) || !workload.grace().is_positive() {
        return Some(Precondition::NoGracePeriod);
    }
    pods.is_empty().then_some(Precondition::PodsGone)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn workload(labels: &Value, spec: &Value) -> Workload {
        serde_json::from_value(json!({
            "metadata": { "name": "web", "namespace": "shop", "labels": labels }, "spec": spec,
        }))
        .unwrap()
    }

    fn pod(owner: &str, grace: i64, phase: &str) -> Pod {
        let version = if owner == "Job" { "batch/v1" } else { "apps/v1" };
        serde_json::from_value(json!({
            "metadata": {
                "name": "web-1", "namespace": "shop", "labels": { "app": "web" },
                "ownerReferences": [
                    { "apiVersion": version, "kind": owner, "name": "web", "uid": "u", "controller": true },
                ],
            },
            "spec": { "nodeName": "node-1", "terminationGracePeriodSeconds": grace },
            "status": { "phase": phase },
        }))
        .unwrap()
    }

    const NOWHERE: Whereabouts<'_> = Whereabouts { pods: &[], lost: &[] };

    /// By its label, as long as it runs none.
    #[test]
    fn controllers_that_were_not_brought_back() {
        let from = |before: &str| json!({ SCALED_FROM: before });
        let suspended = json!({ SUSPENDED: "true" });
        for (kind, labels, spec, before) in [
            (Kind::Deployment, from("3"), json!({ "replicas": 0 }), Some(3)),
            (Kind::ReplicaSet, from("1"), json!({ "replicas": 0 }), Some(1)),
            (Kind::Job, suspended.clone(), json!({ "suspend": true }), Some(1)),
            // It runs again, was scaled by another client, or has a label that nothing of ours wrote.
            (Kind::Deployment, from("3"), json!({ "replicas": 3 }), None),
            (Kind::Deployment, from("3"), json!({}), None),
            (Kind::Job, suspended.clone(), json!({ "suspend": false }), None),
            (Kind::Deployment, json!({}), json!({ "replicas": 0 }), None),
            (Kind::Job, json!({}), json!({ "suspend": true }), None),
            (Kind::Deployment, from("many"), json!({ "replicas": 0 }), None),
            (Kind::Deployment, from("0"), json!({ "replicas": 0 }), None),
            (Kind::Deployment, from("-1"), json!({ "replicas": 0 }), None),
            (Kind::Deployment, suspended, json!({ "replicas": 0 }), None),
            (Kind::Job, from("3"), json!({ "suspend": true }), None),
        ] {
            let stopped = Stopped::of(kind, &workload(&labels, &spec), NOWHERE);
            assert_eq!(stopped.map(|stopped| stopped.before), before, "{kind:?} {labels} {spec}");
        }
    }

    /// What is waited for, and what has to be made sure of, because no object shows it.
    #[test]
    fn a_controller_is_brought_back_by_evidence() {
        let selector = json!({ "matchLabels": { "app": "web" } });
        let of = |grace: Option<i64>| {
            let template = json!({ "spec": { "terminationGracePeriodSeconds": grace } });
            let spec = json!({ "replicas": 0, "suspend": true, "selector": selector, "template": template });
            let mut workload = workload(&json!({ SCALED_FROM: "3", SUSPENDED: "true" }), &spec);
            workload.metadata.uid = "u".into();
            workload
        };
        let (set, job) = (|grace| pod("ReplicaSet", grace, "Running"), |grace| pod("Job", grace, "Running"));
        let silent = [("node-2", NodeContact::Silent)];
        let two = [("node-2", NodeContact::Gone), ("node-3", NodeContact::NotReady)];
        let on = |nodes: &[(&str, NodeContact)]| {
            let node =
                |(name, state): &(&str, NodeContact)| LostNode { name: (*name).to_owned(), state: *state };
            Some(Precondition::LostNodes { nodes: nodes.iter().map(node).collect() })
        };
        let (gone, no_grace) = (|| Some(Precondition::PodsGone), || Some(Precondition::NoGracePeriod));
        let of_sets = "app=web,pod-template-hash";
        for (kind, grace, pods, lost, precondition, waits) in [
            (Kind::Deployment, None, vec![set(30)], &[][..], None, Some((of_sets, 30))),
            (Kind::ReplicaSet, Some(5), vec![set(5)], &[], None, Some(("app=web", 5))),
            (Kind::Job, None, vec![job(30)], &[], None, Some(("app=web", 30))),
            // The objects are gone, and so is what tells where they ran.
            (Kind::Deployment, None, vec![], &[], gone(), None),
            (Kind::Deployment, None, vec![pod("StatefulSet", 30, "Running")], &[], gone(), None),
            (Kind::Deployment, None, vec![pod("ReplicaSet", 30, "Succeeded")], &[], gone(), None),
            (Kind::Job, None, vec![set(30)], &[], gone(), None),
            // They are no evidence where a node is lost.
            (Kind::Deployment, None, vec![set(30)], &silent, on(&silent), Some((of_sets, 30))),
            (Kind::Deployment, None, vec![], &silent, on(&silent), None),
            (Kind::Job, None, vec![], &two, on(&two), None),
            // What has no grace is gone before its end, whatever the template says by now.
            (Kind::Deployment, Some(0), vec![], &[], no_grace(), None),
            (Kind::Deployment, None, vec![set(0)], &[], no_grace(), None),
            (Kind::Deployment, Some(0), vec![set(30)], &[], no_grace(), Some((of_sets, 30))),
        ] {
            let pods: Vec<&Pod> = pods.iter().collect();
            let stopped = Stopped::of(kind, &of(grace), Whereabouts { pods: &pods, lost }).unwrap();
            let wait = waits.map(|(selector, grace): (&str, i64)| PodsWait {
                selector: selector.to_owned(),
                grace: SignedDuration::from_secs(grace),
            });
            assert_eq!((&stopped.precondition, &stopped.wait), (&precondition, &wait), "{kind:?} {grace:?}");
        }
    }
}
