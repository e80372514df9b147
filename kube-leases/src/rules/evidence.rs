//! What was found around a pod, for a person to judge by.

use jiff::SignedDuration;

use super::{
    assessment::{Assessment, NotRead},
    controller_ref::ControllerRef,
    lease::Lease,
    node::{Declared, NodeContact},
    pod::Pod,
    risk::PodFacts,
    surroundings::{HeldBy, Surroundings},
    time::ServerTime,
    volumes::PodVolume,
};

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The pod itself.
    Pod {
        /// Empty if it has none yet.
        phase: String,
        /// If it is Terminating.
        deletion: Option<Terminating>,
        /// The reason of its `DisruptionTarget` condition.
        disruption: Option<String>,
    },
    /// Its node.
    Node {
        /// Its name.
        name: String,
        /// The age of the last heartbeat; `None` without one.
        heartbeat: Option<SignedDuration>,
        /// The status of its Ready condition, and for how long it has been that.
        ready: Option<(String, Option<SignedDuration>)>,
        /// What its out-of-service taint says.
        declared: Option<Declared>,
    },
    /// There is no object of its node.
    NodeMissing {
        /// Its name.
        name: String,
        /// The age of the last heartbeat of its kubelet.
        heartbeat: Option<SignedDuration>,
        /// Whether that is so recent that the machine must be on.
        is_recent: bool,
    },
    /// Its node may not be read.
    NodeNotRead {
        /// Its name.
        name: String,
    },
    /// The holder of its node's maintenance lease.
    HeldBy(HeldBy),
    /// Its owner, and the controller behind that.
    Owner {
        /// The nearest first.
        controllers: Vec<ControllerRef>,
        /// If the controller is scaled to 0 or suspended: how many it ran before, as its label says.
        stopped: Option<Option<i64>>,
    },
    /// The replicas of its set without it.
    Replicas {
        /// So many are ready.
        ready: i64,
        /// Of so many.
        wanted: i64,
        /// Whether that is a majority.
        is_majority: bool,
    },
    /// One of its volumes.
    Volume(PodVolume),
    /// A leader lease that it holds, `namespace/name`.
    LeaderLease(String),
    /// Its finalizers.
    Finalizers(Vec<String>),
    /// What could not be found out.
    NotRead(Vec<NotRead>),
}

/// How far the deletion of a pod has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminating {
    /// For how long it has been Terminating.
    pub length: SignedDuration,
    /// By how much it is over its grace period; negative while that lasts.
    pub overdue: SignedDuration,
    /// The grace period.
    pub grace: SignedDuration,
}

/// All that was found.
pub(super) fn evidence(
    pod: &Pod,
    assessment: &Assessment,
    facts: &PodFacts,
    around: &Surroundings,
    now: ServerTime,
) -> Vec<Evidence> {
    let deletion = pod.terminating(now).zip(pod.overdue(now));
    let deletion = deletion.map(|(length, overdue)| Terminating { length, overdue, grace: pod.grace() });
    let disruption = pod.disruption().map(str::to_owned);
    let mut found = vec![Evidence::Pod { phase: pod.status.phase.clone(), deletion, disruption }];
    let node = &pod.spec.node_name;
    if facts.scheduled {
        found.push(of_its_node(node, facts, around, now));
    }
    found.extend(around.held_by(node, now).map(Evidence::HeldBy));
    let ownership = &assessment.ownership;
    let mut controllers: Vec<ControllerRef> = pod.controller().map(ControllerRef::from).into_iter().collect();
    if let (Some(direct), Some(above)) = (controllers.first(), &ownership.controller)
        && direct != above
    {
        controllers.push(above.clone());
    }
    let is_stopped = ownership.is_stopped() && ownership.controller.is_some();
    found.push(Evidence::Owner { controllers, stopped: is_stopped.then_some(ownership.before) });
    if let Some(replicas) = ownership.replicas.filter(|replicas| replicas.wanted > 1) {
        found.push(Evidence::Replicas {
            ready: replicas.without(pod),
            wanted: replicas.wanted,
            is_majority: replicas.keep_a_majority_without(pod),
        });
    }
    found.extend(assessment.volumes.iter().cloned().map(Evidence::Volume));
    found.extend(assessment.leads.iter().cloned().map(Evidence::LeaderLease));
    if !pod.metadata.finalizers.is_empty() {
        found.push(Evidence::Finalizers(pod.metadata.finalizers.clone()));
    }
    if !assessment.missing.is_empty() {
        found.push(Evidence::NotRead(assessment.missing.clone()));
    }
    found
}

fn of_its_node(node: &str, facts: &PodFacts, around: &Surroundings, now: ServerTime) -> Evidence {
    // A node's clock may be ahead.
    let ago = |time: jiff::Timestamp| now.since(time).max(SignedDuration::ZERO);
    let (name, lease) = (node.to_owned(), around.heartbeat(node));
    match (around.node(node), facts.contact) {
        (None, Some(contact)) => Evidence::NodeMissing {
            name,
            heartbeat: lease.and_then(Lease::heartbeat).map(ago),
            is_recent: contact == NodeContact::Late,
        },
        (None, None) => Evidence::NodeNotRead { name },
        (Some(node), _) => Evidence::Node {
            name,
            heartbeat: node.heartbeat(lease).map(ago),
            ready: node.ready().map(|ready| (ready.status.clone(), ready.last_transition_time.map(ago))),
            declared: facts.out_of_service,
        },
    }
}
