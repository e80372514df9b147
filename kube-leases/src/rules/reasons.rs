//! Why the force deletion of a pod is as risky as it is, or does not help.

use serde::Serialize;

use super::{
    assessment::{Assessment, Futile, lasting_finalizers},
    controller_ref::ControllerRef,
    node::NodeContact,
    pod::Pod,
    risk::{DeletionStage, PodFacts, Risk},
    volumes::PodVolume,
    workload::{Ownership, ReplacementReason, Successor},
};

/// One of the reasons. Where it names a `controller`, that is `Kind/name`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Reason {
    /// The process of a mirror pod goes on, and its object comes back.
    MirrorPod {
        /// The name of the node.
        node: String,
    },
    /// Annotated as a mirror pod, but its node does not own it.
    AnnotatedAsMirrorPod {
        /// The name of the node.
        node: String,
    },
    /// They keep the object, whatever the grace period.
    Finalizers {
        /// The finalizers of the pod.
        finalizers: Vec<String>,
    },
    /// Nothing runs yet.
    NotScheduled,
    /// Nothing runs any more.
    Finished,
    /// The node object is gone, which does not stop the machine.
    NodeObjectDeleted {
        /// The name of the node.
        node: String,
    },
    /// The node has the out-of-service taint, and has sent no heartbeat since.
    NodeOutOfService {
        /// The name of the node.
        node: String,
    },
    /// The node sends no heartbeats.
    NodeSilent {
        /// The name of the node.
        node: String,
    },
    /// The node heartbeats, though its Ready condition is Unknown.
    NodeHeartbeats {
        /// The name of the node.
        node: String,
    },
    /// The heartbeat is late, and the node not given up yet.
    NodeLate {
        /// The name of the node.
        node: String,
    },
    /// The kubelet is alive and the node not ready.
    NodeNotReady {
        /// The name of the node.
        node: String,
    },
    /// The kubelet is alive and reports that the containers have ended.
    ContainersEnded {
        /// The name of the node.
        node: String,
    },
    /// The kubelet is alive.
    NodeAlive {
        /// The name of the node.
        node: String,
    },
    /// The node or its heartbeat may not be read.
    NodeUnknown {
        /// The name of the node.
        node: String,
    },
    /// `terminationGracePeriodSeconds` is 0.
    NoGracePeriod,
    /// A `StatefulSet` starts the next one as soon as the object is gone.
    StatefulSet {
        /// The controller.
        controller: ControllerRef,
        /// Whether it is scaled to 0, or suspended: then the next one is started when it goes on.
        stopped: bool,
    },
    /// A Deployment with the strategy Recreate, whose `ReplicaSet` does not wait.
    Recreate {
        /// The controller.
        controller: ControllerRef,
        /// Whether it is scaled to 0, or suspended: then the next one is started when it goes on.
        stopped: bool,
    },
    /// A Job of a `CronJob` with the concurrencyPolicy Forbid, and the Job does not wait.
    CronJobForbids {
        /// The controller.
        controller: ControllerRef,
        /// Whether it is scaled to 0, or suspended: then the next one is started when it goes on.
        stopped: bool,
    },
    /// A Job with the podReplacementPolicy Failed.
    JobWaitsForFailure {
        /// The controller.
        controller: ControllerRef,
        /// Whether it is scaled to 0, or suspended: then the next one is started when it goes on.
        stopped: bool,
    },
    /// A `DaemonSet` starts the next one on the same node as soon as the object is gone.
    DaemonSet {
        /// The controller.
        controller: ControllerRef,
        /// The name of the node.
        node: String,
    },
    /// What the controller relies on is not known.
    UnknownController {
        /// The controller.
        controller: ControllerRef,
    },
    /// The controller may not be read, or does not exist.
    ControllerNotRead {
        /// The controller.
        controller: ControllerRef,
    },
    /// Two nodes that write to the volume may destroy it.
    ExclusiveVolume {
        /// The volume, and what is known of it.
        volume: PodVolume,
    },
    /// What the volume is could not be found out.
    UnknownVolume {
        /// The volume, and what is known of it.
        volume: PodVolume,
    },
    /// There should be one of it, and the next one writes to the same volume.
    SharedVolume {
        /// The volume, and what is known of it.
        volume: PodVolume,
    },
    /// It holds this leader lease, `namespace/name`.
    LeaderLease {
        /// The lease.
        lease: String,
    },
    /// Leader leases may not be read.
    LeadershipUnknown,
    /// This `PodDisruptionBudget` allows no disruption now.
    BudgetSpent {
        /// The name of the `PodDisruptionBudget`.
        budget: String,
    },
    /// The `PodDisruptionBudgets` may not be read.
    BudgetsUnknown,
    /// Without it, no majority of the replicas is ready.
    NoMajority {
        /// The controller.
        controller: ControllerRef,
        /// How many of the others are ready.
        ready: i64,
        /// How many there should be.
        wanted: i64,
    },
    /// How many replicas are ready is not known.
    MajorityUnknown {
        /// The controller.
        controller: ControllerRef,
    },
    /// The kubelet is alive and does not get the pod ended.
    Stuck {
        /// The name of the node.
        node: String,
    },
    /// Nothing starts another.
    NoController,
    /// The replacement does not wait for it, and the two share nothing.
    TwoAreHarmless,
    /// Pod GC deletes the pods of missing nodes by force.
    PodGc,
}

impl Reason {
    /// The risk that this reason accounts for, at most: by it the most serious of several is found.
    pub fn seriousness(&self) -> Risk {
        match self {
            Self::NotScheduled | Self::Finished | Self::NoController | Self::TwoAreHarmless => Risk::None,
            Self::MirrorPod { .. }
            | Self::AnnotatedAsMirrorPod { .. }
            | Self::Finalizers { .. }
            | Self::NodeObjectDeleted { .. }
            | Self::NodeOutOfService { .. }
            | Self::NodeSilent { .. }
            | Self::NoGracePeriod
            | Self::PodGc => Risk::Low,
            Self::NodeHeartbeats { .. }
            | Self::NodeLate { .. }
            | Self::NodeNotReady { .. }
            | Self::ContainersEnded { .. }
            | Self::NodeAlive { .. }
            | Self::NodeUnknown { .. } => Risk::Medium,
            Self::BudgetSpent { .. }
            | Self::BudgetsUnknown
            | Self::NoMajority { .. }
            | Self::MajorityUnknown { .. }
            | Self::Stuck { .. } => Risk::High,
            Self::StatefulSet { .. }
            | Self::Recreate { .. }
            | Self::CronJobForbids { .. }
            | Self::JobWaitsForFailure { .. }
            | Self::DaemonSet { .. }
            | Self::UnknownController { .. }
            | Self::ControllerNotRead { .. }
            | Self::ExclusiveVolume { .. }
            | Self::UnknownVolume { .. }
            | Self::SharedVolume { .. }
            | Self::LeaderLease { .. }
            | Self::LeadershipUnknown => Risk::Critical,
        }
    }
}

/// The most serious of several reasons; of equals the first, which is the more certain one.
pub(super) fn most_serious(reasons: &[Reason]) -> Option<&Reason> {
    reasons.iter().reduce(|one, other| if other.seriousness() > one.seriousness() { other } else { one })
}

/// The state of its node; `doubted` if that was given up and yet heartbeats.
fn by_its_node(node: &str, facts: &PodFacts, doubted: bool) -> Reason {
    let node = node.to_owned();
    match facts.contact {
        Some(NodeContact::Gone | NodeContact::Late) if facts.nodeless => Reason::NodeObjectDeleted { node },
        Some(NodeContact::Fenced) => Reason::NodeOutOfService { node },
        Some(NodeContact::Silent | NodeContact::Gone) => Reason::NodeSilent { node },
        Some(NodeContact::Late) if doubted => Reason::NodeHeartbeats { node },
        Some(NodeContact::Late) => Reason::NodeLate { node },
        _ if facts.may_hang() => Reason::NodeNotReady { node },
        Some(NodeContact::Heard | NodeContact::Back) if facts.ended => Reason::ContainersEnded { node },
        Some(NodeContact::Heard | NodeContact::Back | NodeContact::NotReady) => Reason::NodeAlive { node },
        None => Reason::NodeUnknown { node },
    }
}

/// What its controller relies on.
fn by_its_controller(ownership: &Ownership, node: &str) -> Option<Reason> {
    let (controller, stopped) = (ownership.controller.clone()?, ownership.is_stopped());
    Some(match ownership.why {
        ReplacementReason::StatefulSet => Reason::StatefulSet { controller, stopped },
        ReplacementReason::Recreate => Reason::Recreate { controller, stopped },
        ReplacementReason::CronJobForbids => Reason::CronJobForbids { controller, stopped },
        ReplacementReason::JobFailed => Reason::JobWaitsForFailure { controller, stopped },
        ReplacementReason::DaemonSet => Reason::DaemonSet { controller, node: node.to_owned() },
        ReplacementReason::UnknownKind => {
            Reason::UnknownController { controller: ownership.managed_by.clone().unwrap_or(controller) }
        }
        ReplacementReason::Unseen => Reason::ControllerNotRead { controller },
        ReplacementReason::Rolling | ReplacementReason::Unowned => return None,
    })
}

/// What becomes of the majority of its set without it.
fn by_the_majority(pod: &Pod, facts: &PodFacts, ownership: &Ownership) -> Option<Reason> {
    let controller = ownership.controller.clone()?;
    match (facts.no_majority, ownership.replicas) {
        (Some(true), Some(replicas)) => {
            Some(Reason::NoMajority { controller, ready: replicas.without(pod), wanted: replicas.wanted })
        }
        (None, _) if !matches!(ownership.why, ReplacementReason::UnknownKind | ReplacementReason::Unseen) => {
            Some(Reason::MajorityUnknown { controller })
        }
        _ => None,
    }
}

/// All reasons, in the order in which they are to be read; `doubted` if the node was given up and yet
/// heartbeats.
pub(super) fn reasons(
    pod: &Pod,
    assessment: &Assessment,
    facts: &PodFacts,
    budgets: Option<&[String]>,
    doubted: bool,
) -> Vec<Reason> {
    let node = &pod.spec.node_name;
    let mut reasons = Vec::new();
    match assessment.futile {
        Some(Futile::Mirror) if facts.mirror => return vec![Reason::MirrorPod { node: node.clone() }],
        Some(Futile::Mirror) => reasons.push(Reason::AnnotatedAsMirrorPod { node: node.clone() }),
        Some(Futile::Finalizers) => {
            let finalizers = lasting_finalizers(pod, &assessment.ownership);
            let finalizers = finalizers.into_iter().map(str::to_owned).collect();
            reasons.push(Reason::Finalizers { finalizers });
        }
        None => {}
    }
    if !facts.scheduled {
        reasons.push(Reason::NotScheduled);
        return reasons;
    }
    if facts.finished {
        reasons.push(Reason::Finished);
        return reasons;
    }
    reasons.push(by_its_node(node, facts, doubted));
    if pod.least_grace().is_some() {
        reasons.push(Reason::NoGracePeriod);
    }
    if facts.contact == Some(NodeContact::Fenced) {
        return reasons;
    }
    reasons.extend(by_its_controller(&assessment.ownership, node));
    for volume in &assessment.volumes {
        let named = volume.clone();
        match volume.exclusive {
            Some(true) => reasons.push(Reason::ExclusiveVolume { volume: named }),
            None => reasons.push(Reason::UnknownVolume { volume: named }),
            Some(false) if volume.shared && facts.single != Some(false) => {
                reasons.push(Reason::SharedVolume { volume: named });
            }
            Some(false) => {}
        }
    }
    reasons.extend(assessment.leads.iter().map(|lease| Reason::LeaderLease { lease: lease.clone() }));
    if facts.leads.is_none() {
        reasons.push(Reason::LeadershipUnknown);
    }
    let is_lost = matches!(facts.contact, Some(NodeContact::Silent | NodeContact::Gone));
    if facts.deletion == DeletionStage::NotBegun && !is_lost {
        match budgets {
            Some(budgets) => {
                reasons.extend(budgets.iter().map(|budget| Reason::BudgetSpent { budget: budget.clone() }));
            }
            None => reasons.push(Reason::BudgetsUnknown),
        }
        reasons.extend(by_the_majority(pod, facts, &assessment.ownership));
    }
    if facts.deletion == DeletionStage::Stuck && facts.contact.is_some_and(NodeContact::is_alive) {
        reasons.push(Reason::Stuck { node: node.clone() });
    }
    match facts.successor {
        Successor::Never => reasons.push(Reason::NoController),
        Successor::Early if !facts.is_guarded() && is_lost => reasons.push(Reason::TwoAreHarmless),
        _ => {}
    }
    if facts.nodeless {
        reasons.push(Reason::PodGc);
    }
    reasons
}
