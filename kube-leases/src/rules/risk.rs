//! How risky it is to force-delete a pod, by what could then run twice.
//!
//! Force deletion removes the object and does not wait for the containers: they may still be running.
//! What counts is not the kind of the owner but three things: whether the first one may still run,
//! whether the deletion makes a second one start, and what the two would share.
//!
//! Evidence that is missing or old never makes the verdict better: the risk is the highest of all that
//! the missing part could be.

use serde::Serialize;

use super::{
    node::{Declared, NodeContact},
    workload::Successor,
};

/// How bad it can get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// Nothing runs.
    None,
    /// At worst something runs on for a while that does no harm.
    Low,
    /// Something that runs is killed without a grace period.
    Medium,
    /// What hangs is hidden instead of found, or more goes than may be missing.
    High,
    /// Two may run at once that should be one, and write to the same data.
    Critical,
}

impl Risk {
    /// As in the tables and in `-o json`.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// How far the deletion of a pod has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletionStage {
    /// It was not deleted.
    NotBegun,
    /// Within its grace period.
    Begun,
    /// Well beyond its grace period.
    Stuck,
}

/// What the rule goes by; `None` is what could not be found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own
pub struct PodFacts {
    /// It was given to a node.
    pub scheduled: bool,
    /// Its containers have ended for good.
    pub finished: bool,
    /// It is a mirror pod.
    pub mirror: bool,
    /// There is no object of its node.
    pub nodeless: bool,
    /// The object of its node may not be read.
    pub unread: bool,
    /// Whether its node sends heartbeats.
    pub contact: Option<NodeContact>,
    /// Its kubelet says that the node is not ready, also where it is known to be back.
    pub not_ready: bool,
    /// The kubelet's last report has all containers ended.
    pub ended: bool,
    /// How far its deletion has come.
    pub deletion: DeletionStage,
    /// When the next one is started.
    pub successor: Successor,
    /// Its controller means there never to be two.
    pub alone: bool,
    /// It writes to storage that two nodes may destroy.
    pub exclusive: Option<bool>,
    /// It writes to storage that others may write too: a shared file system, a directory of the node.
    pub shared: bool,
    /// There should be one of it only.
    pub single: Option<bool>,
    /// It holds a leader lease.
    pub leads: Option<bool>,
    /// A disruption budget has nothing left.
    pub no_budget: Option<bool>,
    /// Without it, no majority of the replicas of its set is ready.
    pub no_majority: Option<bool>,
    /// Its node has the out-of-service taint, whether or not that still holds: pod GC deletes by force
    /// what is Terminating there if the node is not ready.
    pub out_of_service: Option<Declared>,
}

impl PodFacts {
    /// Whether there must never be two of it: its controller means so, or the two would write to the same
    /// data.
    pub fn must_be_one(&self) -> bool {
        self.alone || self.exclusive.unwrap_or(true) || (self.shared && self.single.unwrap_or(true))
    }

    /// Whether two of it could do harm, at the latest when nothing ends the first one.
    pub fn is_guarded(&self) -> bool {
        self.must_be_one() || self.leads.unwrap_or(true)
    }

    /// Whether its controller, however the pod is deleted, starts the next one beside it, though there
    /// should be one only.
    pub fn is_doubled_by_deletion(&self) -> bool {
        self.successor == Successor::Early
            && self.must_be_one()
            && (self.alone || self.single.unwrap_or(true))
    }

    /// Whether its kubelet is alive, and its node not ready: what is started and ended there may hang.
    pub fn may_hang(&self) -> bool {
        self.contact == Some(NodeContact::NotReady)
            || self.contact == Some(NodeContact::Back) && self.not_ready
    }

    /// Whether its containers may run. A kubelet that is well is believed when it reports their end.
    fn may_run(&self, contact: NodeContact) -> bool {
        match contact {
            NodeContact::Back if self.not_ready => true,
            NodeContact::Heard | NodeContact::Back => !self.ended,
            NodeContact::Fenced => false,
            // A runtime that hangs may still run what the kubelet reported before.
            NodeContact::NotReady | NodeContact::Late | NodeContact::Silent | NodeContact::Gone => true,
        }
    }

    /// The rule.
    pub fn risk(&self) -> Risk {
        if !self.scheduled || self.finished {
            return Risk::None;
        }
        if self.mirror {
            // The object comes back by itself as long as the kubelet runs.
            return Risk::Low;
        }
        let at = |contact| self.risk_at(contact);
        match self.contact {
            Some(contact) => at(contact),
            None => at(NodeContact::Heard).max(at(NodeContact::NotReady)).max(at(NodeContact::Silent)),
        }
    }

    fn risk_at(&self, contact: NodeContact) -> Risk {
        if self.must_be_one() && self.may_run(contact) {
            return Risk::Critical;
        }
        match contact {
            NodeContact::Heard | NodeContact::Back | NodeContact::NotReady => {
                // What is Terminating is not counted on any more.
                let missed = self.no_budget.unwrap_or(true) || self.no_majority.unwrap_or(true);
                let too_many = self.deletion == DeletionStage::NotBegun && missed;
                let hidden = self.deletion == DeletionStage::Stuck;
                if self.is_guarded() || too_many || hidden { Risk::High } else { Risk::Medium }
            }
            NodeContact::Silent | NodeContact::Gone if self.is_guarded() => Risk::Critical,
            // Two at once do no harm, or the machine is known to be off.
            NodeContact::Silent | NodeContact::Gone | NodeContact::Fenced => Risk::Low,
            // Either may turn out to be true.
            NodeContact::Late => self.risk_at(NodeContact::Heard).max(self.risk_at(NodeContact::Silent)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTACTS: [Option<NodeContact>; 8] = [
        Some(NodeContact::Heard),
        Some(NodeContact::Back),
        Some(NodeContact::NotReady),
        Some(NodeContact::Late),
        Some(NodeContact::Silent),
        Some(NodeContact::Fenced),
        Some(NodeContact::Gone),
        None,
    ];
    const DELETIONS: [DeletionStage; 3] =
        [DeletionStage::NotBegun, DeletionStage::Begun, DeletionStage::Stuck];
    const SUCCESSORS: [Successor; 3] = [Successor::Never, Successor::Early, Successor::WhenGone];
    const KNOWN: [Option<bool>; 3] = [Some(false), Some(true), None];

    /// A stateless pod of several, of which all is known.
    fn stateless(contact: NodeContact, deletion: DeletionStage) -> PodFacts {
        PodFacts {
            scheduled: true,
            finished: false,
            mirror: false,
            nodeless: false,
            unread: false,
            contact: Some(contact),
            not_ready: contact == NodeContact::NotReady,
            ended: false,
            deletion,
            successor: Successor::Early,
            alone: false,
            exclusive: Some(false),
            shared: false,
            single: Some(false),
            leads: Some(false),
            no_budget: Some(false),
            no_majority: Some(false),
            out_of_service: None,
        }
    }

    #[test]
    fn the_table() {
        use DeletionStage::{Begun, NotBegun, Stuck};
        use NodeContact::{Back, Fenced, Gone, Heard, Late, NotReady, Silent};
        for (contact, deletion, plain, leader, one) in [
            (Heard, NotBegun, Risk::Medium, Risk::High, Risk::Critical),
            (Heard, Begun, Risk::Medium, Risk::High, Risk::Critical),
            (Heard, Stuck, Risk::High, Risk::High, Risk::Critical),
            (Back, NotBegun, Risk::Medium, Risk::High, Risk::Critical),
            (Back, Stuck, Risk::High, Risk::High, Risk::Critical),
            (NotReady, NotBegun, Risk::Medium, Risk::High, Risk::Critical),
            (NotReady, Stuck, Risk::High, Risk::High, Risk::Critical),
            (Late, NotBegun, Risk::Medium, Risk::Critical, Risk::Critical),
            (Late, Stuck, Risk::High, Risk::Critical, Risk::Critical),
            (Silent, NotBegun, Risk::Low, Risk::Critical, Risk::Critical),
            (Silent, Begun, Risk::Low, Risk::Critical, Risk::Critical),
            (Silent, Stuck, Risk::Low, Risk::Critical, Risk::Critical),
            // That the object of a node is gone does not say that its machine is off.
            (Gone, NotBegun, Risk::Low, Risk::Critical, Risk::Critical),
            (Gone, Stuck, Risk::Low, Risk::Critical, Risk::Critical),
            (Fenced, NotBegun, Risk::Low, Risk::Low, Risk::Low),
            (Fenced, Stuck, Risk::Low, Risk::Low, Risk::Low),
        ] {
            let facts = stateless(contact, deletion);
            assert_eq!(facts.risk(), plain, "{facts:?}");
            for harmless in [
                PodFacts { successor: Successor::Never, ..facts },
                PodFacts { single: Some(true), ..facts },
                PodFacts { shared: true, ..facts },
            ] {
                assert_eq!(harmless.risk(), plain, "{harmless:?}");
            }
            for leads in [Some(true), None] {
                let facts = PodFacts { leads, ..facts };
                assert_eq!(facts.risk(), leader, "{facts:?}");
            }
            for facts in [
                PodFacts { successor: Successor::WhenGone, alone: true, ..facts },
                PodFacts { alone: true, ..facts },
                PodFacts { exclusive: Some(true), ..facts },
                PodFacts { exclusive: None, ..facts },
                PodFacts { shared: true, single: Some(true), ..facts },
                PodFacts { shared: true, single: None, ..facts },
            ] {
                assert_eq!(facts.risk(), one, "{facts:?}");
                // A kubelet that is well is believed when it reports the end of the containers.
                let ended = PodFacts { ended: true, ..facts };
                let believed = matches!(contact, Heard | Back);
                assert_eq!(ended.risk(), if believed { Risk::High } else { one }, "{ended:?}");
                if contact == Back {
                    assert_eq!(PodFacts { not_ready: true, ..ended }.risk(), one, "{ended:?}");
                }
            }
            for facts in [PodFacts { finished: true, ..facts }, PodFacts { scheduled: false, ..facts }] {
                assert_eq!(facts.risk(), Risk::None, "{facts:?}");
            }
            assert_eq!(PodFacts { mirror: true, ..facts }.risk(), Risk::Low, "{facts:?}");
        }
        for no_majority in [Some(true), None] {
            let few = PodFacts { no_majority, ..stateless(Heard, NotBegun) };
            for contact in [Heard, Back, NotReady, Late] {
                assert_eq!(PodFacts { contact: Some(contact), ..few }.risk(), Risk::High, "{contact:?}");
            }
            // What is Terminating, or on a node that is given up, is missing already.
            assert_eq!(PodFacts { deletion: Begun, ..few }.risk(), Risk::Medium);
            assert_eq!(PodFacts { contact: Some(Silent), ..few }.risk(), Risk::Low);
            // A majority makes nothing safer that must not run twice.
            let one = PodFacts { alone: true, ..few };
            assert_eq!(
                (one.risk(), PodFacts { no_majority: Some(false), ..one }.risk()),
                (Risk::Critical, Risk::Critical)
            );
        }
        let asked = PodFacts { no_budget: Some(true), ..stateless(Heard, NotBegun) };
        assert_eq!(asked.risk(), Risk::High);
        assert_eq!(PodFacts { no_budget: None, ..asked }.risk(), Risk::High);
        // The budget was asked, or does not matter any more.
        assert_eq!(PodFacts { deletion: Begun, ..asked }.risk(), Risk::Medium);
        assert_eq!(PodFacts { contact: Some(Silent), ..asked }.risk(), Risk::Low);
    }

    /// Every mixture there is.
    fn mixtures() -> impl Iterator<Item = PodFacts> {
        let facts = stateless(NodeContact::Heard, DeletionStage::NotBegun);
        CONTACTS
            .into_iter()
            .map(move |contact| PodFacts { contact, ..facts })
            .flat_map(|facts| DELETIONS.map(|deletion| PodFacts { deletion, ..facts }))
            .flat_map(|facts| SUCCESSORS.map(|successor| PodFacts { successor, ..facts }))
            .flat_map(|facts| KNOWN.map(|exclusive| PodFacts { exclusive, ..facts }))
            .flat_map(|facts| KNOWN.map(|leads| PodFacts { leads, ..facts }))
            .flat_map(|facts| KNOWN.map(|no_budget| PodFacts { no_budget, ..facts }))
            .flat_map(|facts| KNOWN.map(|no_majority| PodFacts { no_majority, ..facts }))
            .flat_map(|facts| KNOWN.map(|single| PodFacts { single, ..facts }))
            .flat_map(|facts| [false, true].map(|alone| PodFacts { alone, ..facts }))
            .flat_map(|facts| [false, true].map(|shared| PodFacts { shared, ..facts }))
            .flat_map(|facts| [false, true].map(|ended| PodFacts { ended, ..facts }))
    }

    #[test]
    fn to_know_less_never_makes_it_look_safer() {
        for facts in mixtures() {
            let less = [
                PodFacts { contact: None, ..facts },
                PodFacts { exclusive: None, ..facts },
                PodFacts { leads: None, ..facts },
                PodFacts { no_budget: None, ..facts },
                PodFacts { no_majority: None, ..facts },
                PodFacts { single: None, ..facts },
                PodFacts { alone: true, ..facts },
                PodFacts { ended: false, ..facts },
            ];
            for less in less {
                let fenced = facts.contact == Some(NodeContact::Fenced);
                assert!(less.risk() >= facts.risk() || fenced, "{less:?} looks safer than {facts:?}");
            }
            assert!(facts.risk() > Risk::None, "{facts:?}");
        }
        assert_eq!(mixtures().count(), 8 * 3 * 3 * 3 * 3 * 3 * 3 * 3 * 2 * 2 * 2);
    }

    /// Which deletions start a second one beside the first, though there should be one only.
    #[test]
    fn deletions_that_double() {
        let facts = stateless(NodeContact::Heard, DeletionStage::NotBegun);
        let one = PodFacts { single: Some(true), ..facts };
        for (facts, doubled) in [
            (facts, false),
            (one, false), // and shares nothing
            (PodFacts { shared: true, ..facts }, false),
            (PodFacts { exclusive: Some(true), ..facts }, false), // several use it together already
            (PodFacts { shared: true, ..one }, true),
            (PodFacts { exclusive: Some(true), ..one }, true),
            (PodFacts { shared: true, single: None, ..facts }, true),
            (PodFacts { alone: true, ..facts }, true),
            (PodFacts { alone: true, successor: Successor::WhenGone, ..facts }, false),
            (PodFacts { alone: true, successor: Successor::Never, ..facts }, false),
        ] {
            assert_eq!(facts.is_doubled_by_deletion(), doubled, "{facts:?}");
        }
    }

    /// Whatever is below critical never has two of what should be one.
    #[test]
    fn below_critical_nothing_runs_twice_that_should_be_one() {
        for facts in mixtures().filter(|facts| facts.risk() < Risk::Critical && facts.must_be_one()) {
            let off = facts.contact == Some(NodeContact::Fenced);
            let reported =
                facts.ended && matches!(facts.contact, Some(NodeContact::Heard | NodeContact::Back));
            assert!(off || reported, "{facts:?}");
        }
    }

    #[test]
    fn a_risk_reads_the_same_in_tables_and_in_json() {
        for risk in [Risk::None, Risk::Low, Risk::Medium, Risk::High, Risk::Critical] {
            assert_eq!(serde_json::to_value(risk).unwrap(), risk.word());
        }
    }
}
