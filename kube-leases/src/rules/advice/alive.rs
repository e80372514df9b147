//! What is safer on a node that is alive.

use jiff::SignedDuration;

use super::{Advice, Alternative, DeleteTerms, Eviction, Outage, Safe, WaitFor};
use crate::rules::{
    controller_ref::ControllerRef,
    pod::Pod,
    risk::{DeletionStage, PodFacts},
    time::ServerTime,
    workload::{Ownership, ReplacementReason},
};

/// How long its grace period lasts yet.
fn left(pod: &Pod, now: ServerTime) -> SignedDuration {
    pod.overdue(now).map_or(SignedDuration::ZERO, |overdue| -overdue).max(SignedDuration::ZERO)
}

fn controller(ownership: &Ownership) -> ControllerRef {
    ownership.controller.clone().unwrap_or_default()
}

pub(super) fn on_a_living_node(
    pod: &Pod,
    facts: &PodFacts,
    ownership: &Ownership,
    eviction: &Eviction,
    now: ServerTime,
) -> Vec<Alternative> {
    match facts.deletion {
        DeletionStage::NotBegun if facts.is_doubled_by_deletion() => {
            vec![ended_by_its_controller(pod, facts, ownership)]
        }
        DeletionStage::NotBegun => evicted_or_deleted(pod, facts, ownership, eviction),
        DeletionStage::Begun => {
            let left = left(pod, now);
            vec![Alternative::wait(WaitFor::GracePeriod { left_seconds: left.as_secs() }, left)]
        }
        DeletionStage::Stuck => [Advice::DescribePod, Advice::ListContainers, Advice::ReadKubeletLog]
            .map(Alternative::by_hand)
            .into(),
    }
}

/// The pods of a controller that can be stopped, and how many it runs. Only one that was read is known to be
/// brought back as it was.
fn can_be_stopped(ownership: &Ownership) -> Option<(&str, i64)> {
    let wanted = ownership.replicas?.wanted;
    (wanted > 0).then_some((ownership.selector.as_deref()?, wanted))
}

/// However the pod is deleted, its controller starts the next one beside it. What makes the controller
/// itself end it does not.
fn ended_by_its_controller(pod: &Pod, facts: &PodFacts, ownership: &Ownership) -> Alternative {
    let outage = outage_until_all_have_ended(pod, facts, ownership);
    let controller = controller(ownership);
    if is_restarted(pod, ownership) {
        return Alternative::by_hand(Advice::RestartDeployment { controller, outage });
    }
    let Some((selector, wanted)) = can_be_stopped(ownership) else {
        // Kinds of others may have the same name.
        let full = pod.controller().filter(|owner| {
            ownership.why == ReplacementReason::UnknownKind && controller == ControllerRef::from(*owner)
        });
        let full = full.and_then(|owner| {
            let (group, version) = owner.api_version.split_once('/')?;
            Some(format!("{}.{version}.{group}/{}", owner.kind.to_lowercase(), owner.name))
        });
        let resource = full.unwrap_or_else(|| controller.resource());
        return Alternative::by_hand(Advice::InspectController { controller, resource });
    };
    Alternative::by_hand(Advice::StopController {
        controller,
        wanted,
        selector: selector.to_owned(),
        grace_seconds: pod.grace().as_secs(),
        no_grace: pod.least_grace().is_some(),
        managed_by: ownership.managed_by.clone(),
        outage,
    })
}

/// What is to be known before all pods of a controller are ended: the next ones are started when all have
/// ended, and what runs on a node that is lost does not end while it is.
fn outage_until_all_have_ended(pod: &Pod, facts: &PodFacts, ownership: &Ownership) -> Option<Outage> {
    let replicas = ownership.replicas.filter(|replicas| replicas.wanted > 1)?;
    if facts.may_hang() {
        return Some(Outage::UntilNodeEndsIt);
    }
    (!replicas.are_all_ready_without(pod))
        .then_some(Outage::UntilAllHaveEnded { ready: replicas.ready, wanted: replicas.wanted })
}

/// Whether a restart of its Deployment ends it before the next one is started. One that is paused cannot be
/// restarted.
pub(super) fn is_restarted(pod: &Pod, ownership: &Ownership) -> bool {
    ownership.why == ReplacementReason::Recreate && !ownership.paused && pod.least_grace().is_none()
}

/// What its disruption budgets allow, and the majority of its set.
fn evicted_or_deleted(
    pod: &Pod,
    facts: &PodFacts,
    ownership: &Ownership,
    eviction: &Eviction,
) -> Vec<Alternative> {
    let delete = |terms: DeleteTerms, is_safe: bool| {
        let way = Alternative::delete(pod, terms);
        // Without force nothing goes over a budget, nor is a majority taken away.
        Alternative { takes: way.takes.filter(|_| is_safe), ..way }
    };
    // Where all others are ready, waiting brings no more.
    let few = ownership
        .replicas
        .filter(|replicas| facts.no_majority == Some(true) && !replicas.are_all_ready_without(pod));
    let within_budget = matches!(
        eviction,
        Eviction::Possible | Eviction::Unknown | Eviction::SeveralBudgets { spent: false, .. }
    );
    // A set that may not be read may have no majority without it.
    let is_counted = facts.no_majority.is_some();
    if let (Some(replicas), true) = (few, within_budget) {
        let wait = Advice::WaitForReplicas { controller: controller(ownership), wanted: replicas.wanted };
        return vec![Alternative::by_hand(wait), delete(DeleteTerms::NoMajority, false)];
    }
    match eviction {
        Eviction::Possible | Eviction::Unknown if !is_counted => {
            vec![delete(DeleteTerms::IfEnoughReplicas { controller: controller(ownership) }, false)]
        }
        Eviction::Possible | Eviction::Unknown => {
            let within_budget = *eviction == Eviction::Possible;
            let evict = Alternative { advice: Advice::Evict { within_budget }, takes: Some(Safe::Evict) };
            let terms = if within_budget { DeleteTerms::WithGrace } else { DeleteTerms::IfBudgetsAllow };
            vec![evict, delete(terms, within_budget)]
        }
        Eviction::Spent(budgets) => {
            let wait = Alternative::by_hand(Advice::WaitForBudget { budgets: budgets.clone() });
            vec![wait, delete(DeleteTerms::OverBudget, false)]
        }
        Eviction::SeveralBudgets { names, spent } => {
            let terms = DeleteTerms::SeveralBudgets { budgets: names.clone(), over: *spent };
            vec![delete(terms, !spent && is_counted)]
        }
    }
}
