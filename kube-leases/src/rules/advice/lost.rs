//! What is safer on a node that is lost, or may be.

use jiff::SignedDuration;

use super::{
    Advice, Alternative, DeleteTerms, Eviction, KubeletThen, Safe, SwitchOffTerms, WaitFor,
    alive::{is_restarted, on_a_living_node},
};
use crate::rules::{
    node::{Declared, NodeContact, Taint},
    pod::Pod,
    risk::{DeletionStage, PodFacts},
    time::ServerTime,
    workload::{Ownership, ReplacementReason, Successor},
};

/// The taints by which the control plane evicts from a node that is silent, and from one that is not ready.
fn eviction_taints() -> [Taint; 2] {
    ["unreachable", "not-ready"].map(|of| Taint {
        key: format!("node.kubernetes.io/{of}"),
        effect: "NoExecute".into(),
        ..Taint::default()
    })
}

/// Whether the control plane evicts it from its node, which is lost or may be, without asking the machine.
fn is_to_be_evicted(pod: &Pod, facts: &PodFacts) -> bool {
    let [unreachable, not_ready] = eviction_taints();
    let taints = match facts.contact {
        // One that is created again is tainted as any that is silent, as soon as that is noticed.
        _ if facts.nodeless => vec![unreachable, not_ready],
        Some(NodeContact::Late) => vec![unreachable, not_ready],
        Some(NodeContact::Silent) => vec![unreachable],
        _ if facts.may_hang() => vec![not_ready],
        _ => return false,
    };
    facts.deletion == DeletionStage::NotBegun && !taints.iter().all(|taint| pod.tolerates(taint))
}

/// Whether the next one may be started beside it once it is Terminating, by whatever ends it where nothing is
/// known to end its containers: also where several use the same storage already, for these are on one node.
fn is_doubled_where_it_does_not_end(facts: &PodFacts, ownership: &Ownership) -> bool {
    let unknown = matches!(ownership.why, ReplacementReason::UnknownKind | ReplacementReason::Unseen);
    facts.must_be_one()
        && match facts.successor {
            Successor::Early => true,
            Successor::WhenGone => unknown,
            Successor::Never => false,
        }
}

/// Whether an eviction has the next one started beside it: its controller does not wait for its end, or the
/// object goes before that, or what its controller does is not known.
fn is_doubled_by_eviction(pod: &Pod, facts: &PodFacts, ownership: &Ownership) -> bool {
    let before_its_end =
        facts.must_be_one() && facts.successor == Successor::WhenGone && pod.least_grace().is_some();
    before_its_end || is_doubled_where_it_does_not_end(facts, ownership)
}

/// A pod that is not evicted is neither replaced, nor ended when its node is back: nothing else has to be
/// stopped for that.
fn kept_from_being_evicted(pod: &Pod, facts: &PodFacts, ownership: &Ownership) -> Option<Alternative> {
    let is_lost = facts.successor == Successor::Never;
    if !is_to_be_evicted(pod, facts) || !(is_lost || is_doubled_by_eviction(pod, facts, ownership)) {
        return None;
    }
    Some(Alternative::by_hand(Advice::KeepFromEviction {
        controller: ownership.controller.clone(),
        node_missing: facts.nodeless,
        tolerations: pod.tolerations_with(&eviction_taints()),
    }))
}

/// What has to be done before the control plane evicts from a node that is lost, or may be.
pub(super) fn before_it_is_evicted(
    pod: &Pod,
    facts: &PodFacts,
    ownership: &Ownership,
) -> impl Iterator<Item = Alternative> + use<> {
    [without_the_taint(facts), kept_from_being_evicted(pod, facts, ownership)].into_iter().flatten()
}

/// Pod GC force-deletes what is Terminating on a node that has the taint and is not ready: also where the
/// taint is from an earlier outage, and the machine may run.
fn without_the_taint(facts: &PodFacts) -> Option<Alternative> {
    let is_lost = matches!(facts.contact, Some(NodeContact::Silent | NodeContact::Late));
    if !is_lost || !facts.is_guarded() || facts.successor == Successor::Never {
        return None;
    }
    match facts.out_of_service? {
        Declared::Since => None,
        Declared::Before => Some(Alternative::by_hand(Advice::RemoveTaint { undated: false })),
        Declared::Undated => Some(Alternative::by_hand(Advice::RemoveTaint { undated: true })),
    }
}

/// What becomes of a pod when its node is well again.
fn what_its_kubelet_does(pod: &Pod, facts: &PodFacts) -> KubeletThen {
    match facts.deletion {
        DeletionStage::NotBegun if is_to_be_evicted(pod, facts) => KubeletThen::RunsOnUnlessEvicted,
        DeletionStage::NotBegun => KubeletThen::RunsOn,
        DeletionStage::Begun | DeletionStage::Stuck => KubeletThen::EndsIt,
    }
}

fn switch_off(terms: SwitchOffTerms) -> Alternative {
    Alternative::by_hand(Advice::SwitchOff { terms })
}

pub(super) fn on_a_node_that_is_not_ready(
    pod: &Pod,
    facts: &PodFacts,
    ownership: &Ownership,
    eviction: &Eviction,
    now: ServerTime,
) -> Vec<Alternative> {
    let mut ways: Vec<Alternative> = kept_from_being_evicted(pod, facts, ownership).into_iter().collect();
    ways.push(Alternative::by_hand(Advice::RepairNode { then: what_its_kubelet_does(pod, facts) }));
    ways.push(switch_off(SwitchOffTerms::Alive));
    // However gently it is deleted, the next one is started at once, beside one that a runtime that hangs
    // does not end. The restart of a Deployment that recreates waits for that end, if there is a grace.
    let doubles = facts.deletion == DeletionStage::NotBegun
        && is_doubled_where_it_does_not_end(facts, ownership)
        && !is_restarted(pod, ownership);
    if facts.deletion != DeletionStage::Stuck && !doubles {
        ways.extend(on_a_living_node(pod, facts, ownership, eviction, now));
    }
    ways
}

pub(super) fn on_a_silent_node(pod: &Pod, facts: &PodFacts, ownership: &Ownership) -> Vec<Alternative> {
    let before = before_it_is_evicted(pod, facts, ownership);
    if facts.is_guarded() {
        let back = Alternative::by_hand(Advice::BringNodeBack { then: what_its_kubelet_does(pod, facts) });
        return before.chain([back, switch_off(SwitchOffTerms::Silent)]).collect();
    }
    let first = match (facts.successor, facts.deletion) {
        (Successor::Never, _) => Alternative::by_hand(Advice::Leave { is_replaced: false }),
        (_, DeletionStage::NotBegun) => {
            let controller = ownership.controller.clone().unwrap_or_default();
            let delete = Alternative::delete(pod, DeleteTerms::NodeEndsItLater { controller });
            Alternative { takes: Some(Safe::Replace), ..delete }
        }
        _ => Alternative::by_hand(Advice::Leave { is_replaced: true }),
    };
    before.chain([first, switch_off(SwitchOffTerms::IfOff)]).collect()
}

/// Pod GC deletes the pods of a node whose object is gone, and does not ask the machine.
pub(super) fn on_a_missing_node(pod: &Pod, facts: &PodFacts, ownership: &Ownership) -> Vec<Alternative> {
    // What nothing starts again is lost with its object, unless it was to go anyway.
    let is_lost = facts.successor == Successor::Never && facts.deletion == DeletionStage::NotBegun;
    if facts.is_guarded() || is_lost {
        let off = facts.is_guarded().then(|| switch_off(SwitchOffTerms::NodeMissing));
        return kept_from_being_evicted(pod, facts, ownership)
            .into_iter()
            .chain([Alternative::by_hand(Advice::CreateNode)])
            .chain(off)
            .collect();
    }
    vec![Alternative::wait(WaitFor::PodGcOfMissingNodes, SignedDuration::ZERO)]
}

/// A deletion with its grace period waits for the kubelet, whatever the node is, unless it is marked out of
/// service: then pod GC completes it without waiting for the kubelet.
pub(super) fn on_a_node_that_is_not_seen(
    pod: &Pod,
    facts: &PodFacts,
    ownership: &Ownership,
    eviction: &Eviction,
    now: ServerTime,
) -> Vec<Alternative> {
    let is_doubted = facts.unread && facts.must_be_one();
    let look = Alternative::by_hand(Advice::AskAboutNode { taint: is_doubted });
    let plain = !facts.is_doubled_by_deletion()
        && facts.no_majority == Some(false)
        && *eviction == Eviction::Possible;
    let mut ways = match facts.deletion {
        DeletionStage::Stuck => Vec::new(),
        // The kubelet may be cut off, and several of it on one node may use the same storage.
        DeletionStage::NotBegun
            if !facts.is_doubled_by_deletion() && is_doubled_where_it_does_not_end(facts, ownership) =>
        {
            Vec::new()
        }
        DeletionStage::NotBegun if is_doubted && !facts.is_doubled_by_deletion() => {
            let delete = Alternative::delete(pod, DeleteTerms::UnlessOutOfService);
            return vec![look, Alternative { takes: None, ..delete }];
        }
        // A user without permission to read nodes often has none to evict either.
        DeletionStage::NotBegun if plain => vec![Alternative::delete(pod, DeleteTerms::KubeletEndsIt)],
        DeletionStage::NotBegun | DeletionStage::Begun => {
            on_a_living_node(pod, facts, ownership, eviction, now)
        }
    };
    if is_doubted {
        ways.insert(0, look);
    } else {
        ways.push(look);
    }
    ways
}
