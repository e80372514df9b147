//! What is safer on a node that is lost, or may be.

use jiff::SignedDuration;

use super::{
    Advice, DeleteTerms, Eviction, KubeletThen, Safe, SwitchOffTerms, WaitFor, Way,
    alive::{is_restarted, on_a_living_node},
};
use crate::rules::{
    node::{Contact, Declared, Taint},
    pod::Pod,
    risk::{Deletion, PodFacts},
    time::ServerTime,
    workload::{Ownership, Successor, Why},
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
        Some(Contact::Late) => vec![unreachable, not_ready],
        Some(Contact::Silent) => vec![unreachable],
        _ if facts.may_hang() => vec![not_ready],
        _ => return false,
    };
    facts.deletion == Deletion::NotBegun && !taints.iter().all(|taint| pod.tolerates(taint))
}

/// Whether the next one may be started beside it once it is Terminating, by whatever ends it where nothing is
/// known to end its containers: also where several use the same storage already, for these are on one node.
fn is_doubled_where_it_does_not_end(facts: &PodFacts, ownership: &Ownership) -> bool {
    let unknown = matches!(ownership.why, Why::UnknownKind | Why::Unseen);
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
fn kept_from_being_evicted(pod: &Pod, facts: &PodFacts, ownership: &Ownership) -> Option<Way> {
    let is_lost = facts.successor == Successor::Never;
    if !is_to_be_evicted(pod, facts) || !(is_lost || is_doubled_by_eviction(pod, facts, ownership)) {
        return None;
    }
    Some(Way::by_hand(Advice::KeepFromEviction {
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
) -> impl Iterator<Item = Way> + use<> {
    [without_the_taint(facts), kept_from_being_evicted(pod, facts, ownership)].into_iter().flatten()
}

/// Pod GC deletes by force what is Terminating on a node that has the taint and is not ready: also where the
/// taint is from an earlier outage, and the machine may run.
fn without_the_taint(facts: &PodFacts) -> Option<Way> {
    let is_lost = matches!(facts.contact, Some(Contact::Silent | Contact::Late));
    if !is_lost || !facts.is_guarded() || facts.successor == Successor::Never {
        return None;
    }
    match facts.out_of_service? {
        Declared::Since => None,
        Declared::Before => Some(Way::by_hand(Advice::RemoveTaint { undated: false })),
        Declared::Undated => Some(Way::by_hand(Advice::RemoveTaint { undated: true })),
    }
}

/// What becomes of a pod when its node is well again.
fn what_its_kubelet_does(pod: &Pod, facts: &PodFacts) -> KubeletThen {
    match facts.deletion {
        Deletion::NotBegun if is_to_be_evicted(pod, facts) => KubeletThen::RunsOnUnlessEvicted,
        Deletion::NotBegun => KubeletThen::RunsOn,
        Deletion::Begun | Deletion::Stuck => KubeletThen::EndsIt,
    }
}

fn switch_off(terms: SwitchOffTerms) -> Way {
    Way::by_hand(Advice::SwitchOff { terms })
}

pub(super) fn on_a_node_that_is_not_ready(
    pod: &Pod,
    facts: &PodFacts,
    ownership: &Ownership,
    eviction: &Eviction,
    now: ServerTime,
) -> Vec<Way> {
    let mut ways: Vec<Way> = kept_from_being_evicted(pod, facts, ownership).into_iter().collect();
    ways.push(Way::by_hand(Advice::RepairNode { then: what_its_kubelet_does(pod, facts) }));
    ways.push(switch_off(SwitchOffTerms::Alive));
    // However gently it is deleted, the next one is started at once, beside one that a runtime that hangs
    // does not end. The restart of a Deployment that recreates waits for that end, if there is a grace.
    let doubles = facts.deletion == Deletion::NotBegun
        && is_doubled_where_it_does_not_end(facts, ownership)
        && !is_restarted(pod, ownership);
    if facts.deletion != Deletion::Stuck && !doubles {
        ways.extend(on_a_living_node(pod, facts, ownership, eviction, now));
    }
    ways
}

pub(super) fn on_a_silent_node(pod: &Pod, facts: &PodFacts, ownership: &Ownership) -> Vec<Way> {
    let before = before_it_is_evicted(pod, facts, ownership);
    if facts.is_guarded() {
        let back = Way::by_hand(Advice::BringNodeBack { then: what_its_kubelet_does(pod, facts) });
        return before.chain([back, switch_off(SwitchOffTerms::Silent)]).collect();
    }
    let first = match (facts.successor, facts.deletion) {
        (Successor::Never, _) => Way::by_hand(Advice::Leave { is_replaced: false }),
        (_, Deletion::NotBegun) => {
            let controller = ownership.controller.clone().unwrap_or_default();
            let delete = Way::delete(pod, DeleteTerms::NodeEndsItLater { controller });
            Way { takes: Some(Safe::Replace), ..delete }
        }
        _ => Way::by_hand(Advice::Leave { is_replaced: true }),
    };
    before.chain([first, switch_off(SwitchOffTerms::IfOff)]).collect()
}

/// Pod GC deletes the pods of a node whose object is gone, and does not ask the machine.
pub(super) fn on_a_missing_node(pod: &Pod, facts: &PodFacts, ownership: &Ownership) -> Vec<Way> {
    // What nothing starts again is lost with its object, unless it was to go anyway.
    let is_lost = facts.successor == Successor::Never && facts.deletion == Deletion::NotBegun;
    if facts.is_guarded() || is_lost {
        let off = facts.is_guarded().then(|| switch_off(SwitchOffTerms::NodeMissing));
        return kept_from_being_evicted(pod, facts, ownership)
            .into_iter()
            .chain([Way::by_hand(Advice::CreateNode)])
            .chain(off)
            .collect();
    }
    vec![Way::wait(WaitFor::PodGcOfMissingNodes, SignedDuration::ZERO)]
}

/// A deletion with its grace waits for the kubelet, whatever the node is, unless it is declared out of service:
/// then pod GC completes it without asking the machine.
pub(super) fn on_a_node_that_is_not_seen(
    pod: &Pod,
    facts: &PodFacts,
    ownership: &Ownership,
    eviction: &Eviction,
    now: ServerTime,
) -> Vec<Way> {
    let is_doubted = facts.unread && facts.must_be_one();
    let look = Way::by_hand(Advice::AskAboutNode { taint: is_doubted });
    let plain = !facts.is_doubled_by_deletion()
        && facts.no_majority == Some(false)
        && *eviction == Eviction::Possible;
    let mut ways = match facts.deletion {
        Deletion::Stuck => Vec::new(),
        // The kubelet may be cut off, and several of it on one node may use the same storage.
        Deletion::NotBegun
            if !facts.is_doubled_by_deletion() && is_doubled_where_it_does_not_end(facts, ownership) =>
        {
            Vec::new()
        }
        Deletion::NotBegun if is_doubted && !facts.is_doubled_by_deletion() => {
            let delete = Way::delete(pod, DeleteTerms::UnlessOutOfService);
            return vec![look, Way { takes: None, ..delete }];
        }
        // A user without permission to read nodes often has none to evict either.
        Deletion::NotBegun if plain => vec![Way::delete(pod, DeleteTerms::KubeletEndsIt)],
        Deletion::NotBegun | Deletion::Begun => on_a_living_node(pod, facts, ownership, eviction, now),
    };
    if is_doubted {
        ways.insert(0, look);
    } else {
        ways.push(look);
    }
    ways
}
