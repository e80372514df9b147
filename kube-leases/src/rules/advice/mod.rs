//! What is safer than force-deleting a pod, the safest first.
//!
//! Nothing here makes a second one start beside a first that may still run: that is why waiting for pod
//! GC is no way out for a machine that may be on, and why a fence that is out of date is undone before
//! anything else.

mod alive;
mod lost;
#[cfg(test)]
mod tests;

use jiff::SignedDuration;
use serde::Serialize;

use super::{
    assessment::lasting_finalizers,
    controller_ref::ControllerRef,
    node::NodeContact,
    pod::{Pod, Toleration},
    risk::{DeletionStage, PodFacts},
    time::ServerTime,
    workload::{Ownership, ReplacementReason},
};

/// Something safer than force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// What it is.
    pub advice: Advice,
    /// What can be done of it without a person's hands.
    pub takes: Option<Safe>,
}

/// What can be done without force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safe {
    /// Evict it.
    Evict,
    /// Delete it with its grace period.
    Delete,
    /// Delete it with its grace period where it cannot end yet: the next one is started all the same.
    Replace,
    /// Its deletion is under way and will be completed.
    Await,
}

/// What to do instead of force. Where it names a `controller`, that is `Kind/name`; pod and node are the
/// ones that are judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Advice {
    /// Remove the manifest of a static pod.
    RemoveManifest,
    /// Let what set these finalizers do its work, or repair it.
    WaitForFinalizers {
        /// The finalizers of the pod.
        finalizers: Vec<String>,
    },
    /// Delete it without force.
    Delete {
        /// When and why that is right.
        terms: DeleteTerms,
        /// The grace period to ask for; null for its own.
        grace_seconds: Option<u32>,
    },
    /// Wait for its end.
    Wait {
        /// What ends it.
        until: WaitFor,
        /// That long at most.
        timeout_seconds: i64,
    },
    /// Evict it.
    Evict {
        /// Whether its disruption budgets could be read, and allow it.
        within_budget: bool,
    },
    /// Wait until this many replicas are ready.
    WaitForReplicas {
        /// The controller.
        controller: ControllerRef,
        /// How many there should be.
        wanted: i64,
    },
    /// Wait until these disruption budgets allow it.
    WaitForBudget {
        /// The names of the `PodDisruptionBudgets`.
        budgets: Vec<String>,
    },
    /// The kubelet's events about the pod.
    DescribePod,
    /// The containers that run on the node.
    ListContainers,
    /// The kubelet's log about the pod.
    ReadKubeletLog,
    /// Restart a Deployment with the strategy Recreate, which waits for the end of all its pods.
    RestartDeployment {
        /// The controller.
        controller: ControllerRef,
        /// What has to be accepted before.
        outage: Option<Outage>,
    },
    /// Scale a controller to 0, or suspend it, and bring it back when all its pods are gone.
    StopController {
        /// The controller.
        controller: ControllerRef,
        /// How many there should be.
        wanted: i64,
        /// Selects its pods, as `kubectl -l` takes it.
        selector: String,
        /// The grace period of the pod.
        grace_seconds: i64,
        /// The objects go before the containers have ended.
        no_grace: bool,
        /// What owns it, and may change it back.
        managed_by: Option<ControllerRef>,
        /// What has to be accepted before.
        outage: Option<Outage>,
    },
    /// Find out whether two may run at once.
    InspectController {
        /// The controller.
        controller: ControllerRef,
        /// As `kubectl get` takes it.
        resource: String,
    },
    /// Add tolerations to the pod, so that the control plane does not evict it.
    KeepFromEviction {
        /// The controller.
        controller: Option<ControllerRef>,
        /// Whether the node object is gone.
        node_missing: bool,
        /// What the pod is to tolerate.
        tolerations: Vec<Toleration>,
    },
    /// Take the out-of-service taint off, for the node is alive.
    TakeIntoService,
    /// Take an out-of-service taint off that is from before the last heartbeat of the node, or undated.
    RemoveTaint {
        /// Whether it does not say when it was set.
        undated: bool,
    },
    /// Wait until the node sends a heartbeat or is given up by the node controller.
    WatchNode,
    /// Repair what makes the node not ready.
    RepairNode {
        /// What the kubelet does with the pod then.
        then: KubeletThen,
    },
    /// Bring the node back.
    BringNodeBack {
        /// What the kubelet does with the pod then.
        then: KubeletThen,
    },
    /// Power off the machine and mark the node out of service.
    SwitchOff {
        /// When and why that is right.
        terms: SwitchOffTerms,
    },
    /// Create the node object again.
    CreateNode,
    /// Nothing has to be done.
    Leave {
        /// Whether its replacement is started without it.
        is_replaced: bool,
    },
    /// Ask an administrator whether the node is alive, for it has the out-of-service taint.
    AskAboutTaint,
    /// Ask an administrator how the node is.
    AskAboutNode {
        /// And whether it has the out-of-service taint.
        taint: bool,
    },
}

/// When and why a pod can be deleted without force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum DeleteTerms {
    /// Nothing runs.
    NothingRuns,
    /// Pod GC completes it, on a node that is out of service.
    PodGcCompletes,
    /// As usual.
    WithGrace,
    /// No majority of the replicas is ready then.
    NoMajority,
    /// If enough replicas of this controller are ready without it.
    IfEnoughReplicas {
        /// The controller.
        controller: ControllerRef,
    },
    /// If no disruption budget, which may not be read, forbids it.
    IfBudgetsAllow,
    /// Over a disruption budget.
    OverBudget,
    /// The API evicts no pod that several disruption budgets select.
    SeveralBudgets {
        /// The names of the `PodDisruptionBudgets`.
        budgets: Vec<String>,
        /// Whether one of them allows no disruption now.
        over: bool,
    },
    /// The controller starts the next one before the node, when it is back, ends this one.
    NodeEndsItLater {
        /// The controller.
        controller: ControllerRef,
    },
    /// Unless its node, which may not be read, is out of service.
    UnlessOutOfService,
    /// The object goes when the kubelet has ended it.
    KubeletEndsIt,
}

/// What ends a pod that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum WaitFor {
    /// The kubelet, when the grace period ends.
    GracePeriod {
        /// How much of it is left.
        left_seconds: i64,
    },
    /// Pod GC, on a node that is out of service.
    PodGc,
    /// Pod GC, on a node whose object is gone.
    PodGcOfMissingNodes,
}

/// What has to be accepted before all pods of a controller are ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Outage {
    /// None is started until a node that is not ready has ended this one.
    UntilNodeEndsIt,
    /// None is started until those that are not ready have ended too.
    UntilAllHaveEnded {
        /// How many are ready.
        ready: i64,
        /// How many there should be.
        wanted: i64,
    },
}

/// What the kubelet does with the pod when its node is well again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KubeletThen {
    /// It runs on, unless the control plane evicts it before.
    RunsOnUnlessEvicted,
    /// It runs on.
    RunsOn,
    /// Its deletion is completed.
    EndsIt,
}

/// When a machine is to be powered off, and its node marked out of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchOffTerms {
    /// Its node is silent.
    Silent,
    /// Its node heartbeats until then.
    Alive,
    /// Only if it is off.
    IfOff,
    /// Its node object is gone: there is no node to mark out of service.
    NodeMissing,
}

/// Whether the API would evict a pod now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Eviction {
    Possible,
    /// Its disruption budgets may not be read.
    Unknown,
    /// These disruption budgets have nothing left.
    Spent(Vec<String>),
    /// The API evicts no pod that several disruption budgets select.
    SeveralBudgets {
        names: Vec<String>,
        /// One of them has nothing left.
        spent: bool,
    },
}

impl Alternative {
    fn by_hand(advice: Advice) -> Self {
        Self { advice, takes: None }
    }

    fn delete(pod: &Pod, terms: DeleteTerms) -> Self {
        Self { advice: Advice::Delete { terms, grace_seconds: pod.least_grace() }, takes: Some(Safe::Delete) }
    }

    fn wait(until: WaitFor, left: SignedDuration) -> Self {
        Self {
            advice: Advice::Wait { until, timeout_seconds: timeout_after(left) },
            takes: Some(Safe::Await),
        }
    }
}

/// How long to wait for the end of pods that have so long yet: the kubelet needs some time after the grace
/// period, and pod GC looks every 20 seconds.
pub fn timeout_after(left: SignedDuration) -> i64 {
    left.max(SignedDuration::ZERO).as_secs() + 120
}

/// The ways there are.
pub(super) fn ways(
    pod: &Pod,
    facts: &PodFacts,
    ownership: &Ownership,
    eviction: &Eviction,
    now: ServerTime,
) -> Vec<Alternative> {
    if facts.mirror {
        return vec![Alternative::by_hand(Advice::RemoveManifest)];
    }
    let mut ways = Vec::new();
    let finalizers = lasting_finalizers(pod, ownership);
    let begun = facts.deletion != DeletionStage::NotBegun;
    // The finalizer of a Job that waits for the end of the pod goes with that end.
    if !finalizers.is_empty() && ownership.why != ReplacementReason::JobFailed {
        let finalizers = finalizers.into_iter().map(str::to_owned).collect();
        ways.push(Alternative::by_hand(Advice::WaitForFinalizers { finalizers }));
        if begun {
            return ways;
        }
    }
    if !facts.scheduled || facts.finished {
        if !begun {
            ways.push(Alternative::delete(pod, DeleteTerms::NothingRuns));
        }
        return ways;
    }
    ways.extend(match facts.contact {
        // Whatever its heartbeats: pod GC will not wait.
        _ if facts.nodeless => lost::on_a_missing_node(pod, facts, ownership),
        Some(NodeContact::Heard) => alive::on_a_living_node(pod, facts, ownership, eviction, now),
        Some(NodeContact::Back) => {
            // Whatever is Terminating there before that is deleted by force if the node is not ready.
            let later = if facts.may_hang() {
                lost::on_a_node_that_is_not_ready(pod, facts, ownership, eviction, now)
            } else {
                alive::on_a_living_node(pod, facts, ownership, eviction, now)
            };
            let undo = Alternative::by_hand(Advice::TakeIntoService);
            std::iter::once(undo)
                .chain(later.into_iter().map(|way| Alternative { takes: None, ..way }))
                .collect()
        }
        Some(NodeContact::NotReady) => {
            lost::on_a_node_that_is_not_ready(pod, facts, ownership, eviction, now)
        }
        Some(NodeContact::Silent | NodeContact::Gone) => lost::on_a_silent_node(pod, facts, ownership),
        Some(NodeContact::Fenced) if begun => vec![Alternative::wait(WaitFor::PodGc, SignedDuration::ZERO)],
        Some(NodeContact::Fenced) => vec![Alternative::delete(pod, DeleteTerms::PodGcCompletes)],
        Some(NodeContact::Late) => {
            // The control plane may act as soon as it is known whether the node is gone.
            let wait = Alternative::by_hand(Advice::WatchNode);
            lost::before_it_is_evicted(pod, facts, ownership).chain([wait]).collect()
        }
        None if facts.out_of_service.is_some() => vec![Alternative::by_hand(Advice::AskAboutTaint)],
        None => lost::on_a_node_that_is_not_seen(pod, facts, ownership, eviction, now),
    });
    ways
}
