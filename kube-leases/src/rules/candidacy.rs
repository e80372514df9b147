//! A candidate's part in its election, and what happened to it between two looks.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{
    candidate::CandidateState,
    election::{Absence, Contender, Outlook},
    priority::Priority,
};

/// The part of a candidate in its election.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Leads.
    Leader,
    /// Held the lease, which has expired.
    Former,
    /// Leads next.
    Next,
    /// One of several that are equal.
    MaybeNext,
    /// None of these.
    None,
}

/// A candidate as it stands at a look.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidacy {
    /// Its part in the election.
    pub role: Role,
    /// What its object says about its process.
    pub state: CandidateState,
    /// Why it does not take part, if it does not.
    pub absence: Option<Absence>,
    /// The leader of its lease, if there is one.
    pub leader: Option<String>,
    /// Whether the leader is asked to step down for it.
    pub is_preferred: bool,
    /// Its priority, if it has one.
    pub priority: Option<Priority>,
    /// Whether its lease is about to have another holder.
    pub is_electing: bool,
    /// Its `pingTime`.
    pub pinged: Option<Timestamp>,
    /// Its `renewTime`.
    pub renewed: Option<Timestamp>,
}

/// What happened to a candidate between two looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CandidateEvent {
    /// It leads; before it this one did.
    Leads {
        /// The leader before it, if there was one.
        before: Option<String>,
    },
    /// It does not lead any more; now this one does.
    LostLead {
        /// The leader now, if there is one.
        to: Option<String>,
    },
    /// The leader is asked to step down for it.
    Preferred {
        /// The leader, if there is one.
        leader: Option<String>,
    },
    /// It has another priority, or none.
    Priority {
        /// Its priority before.
        from: Option<i32>,
        /// Its priority now.
        to: Option<i32>,
    },
    /// It was pinged, and has not acknowledged that yet.
    Pinged,
    /// It acknowledged a ping, after so long.
    Acknowledged {
        /// The time from the ping to the renewal.
        after: Option<SignedDuration>,
    },
    /// It did not acknowledge a ping.
    Silent,
    /// Its renewals, or their absence, say something else of it.
    Became {
        /// Its state now.
        state: CandidateState,
        /// Its state before.
        before: CandidateState,
    },
}

impl Candidacy {
    /// How it stands by an election.
    pub fn new(entry: &Contender<'_>, outlook: &Outlook<'_>) -> Self {
        let it = entry.candidate;
        let role = match (outlook.leader.valid(), entry.leads, entry.next) {
            (Some(_), true, _) => Role::Leader,
            (_, _, true) if !outlook.is_tied() => Role::Next,
            (_, _, true) => Role::MaybeNext,
            (None, true, false) => Role::Former,
            _ => Role::None,
        };
        Self {
            role,
            state: entry.state,
            absence: entry.absence,
            leader: outlook.leader.valid().map(str::to_owned),
            is_preferred: outlook.preferred.as_deref() == Some(it.name()),
            priority: Priority::of(it),
            is_electing: outlook.leader.valid().is_none()
                || outlook.is_moving()
                || outlook.preferred.is_some(),
            pinged: it.spec.ping_time,
            renewed: it.spec.renew_time,
        }
    }

    /// What happened since an earlier look, the most important first.
    pub fn since(&self, old: &Self) -> Vec<CandidateEvent> {
        let happened = [
            self.lead_moved(old),
            self.priority_changed(old),
            // The controller pings all candidates each quarter of an hour, or all the time while a dead
            // candidate has not expired: news only while it elects.
            (self.is_electing || old.is_electing).then(|| self.pinged(old)).flatten(),
            self.came_or_went(old),
        ];
        happened.into_iter().flatten().collect()
    }

    fn lead_moved(&self, old: &Self) -> Option<CandidateEvent> {
        match (old.role == Role::Leader, self.role == Role::Leader) {
            (false, true) => Some(CandidateEvent::Leads { before: old.leader.clone() }),
            (true, false) => Some(CandidateEvent::LostLead { to: self.leader.clone() }),
            _ if self.is_preferred && !old.is_preferred => {
                Some(CandidateEvent::Preferred { leader: self.leader.clone() })
            }
            _ => None,
        }
    }

    fn priority_changed(&self, old: &Self) -> Option<CandidateEvent> {
        let value = |it: &Self| it.priority.map(|priority| priority.value);
        let (from, to) = (value(old), value(self));
        (from != to).then_some(CandidateEvent::Priority { from, to })
    }

    fn pinged(&self, old: &Self) -> Option<CandidateEvent> {
        let pinged = old.pinged != self.pinged;
        let was_pending = old.state == CandidateState::Pending;
        match self.state {
            CandidateState::Pending if pinged => Some(CandidateEvent::Pinged),
            CandidateState::Acked if pinged || was_pending => {
                Some(CandidateEvent::Acknowledged { after: self.acknowledged_after() })
            }
            CandidateState::Stale if was_pending || (pinged && old.state != CandidateState::Stale) => {
                Some(CandidateEvent::Silent)
            }
            _ => None,
        }
    }

    /// How long it took to acknowledge the last ping.
    fn acknowledged_after(&self) -> Option<SignedDuration> {
        Some(self.renewed?.duration_since(self.pinged?)).filter(|took| !took.is_negative())
    }

    fn came_or_went(&self, old: &Self) -> Option<CandidateEvent> {
        let away = |it: &Self| matches!(it.state, CandidateState::Stale | CandidateState::Expired);
        let was_pending = old.state == CandidateState::Pending;
        (old.state != self.state && (away(self) || away(old)) && !was_pending)
            .then_some(CandidateEvent::Became { state: self.state, before: old.state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{
        election::tests::{ago, candidate, held_by, outlook},
        priority::How,
    };

    fn plain() -> Candidacy {
        Candidacy {
            role: Role::None,
            state: CandidateState::Acked,
            absence: None,
            leader: Some("a".into()),
            is_preferred: false,
            priority: None,
            is_electing: false,
            pinged: Some(ago(20)),
            renewed: Some(ago(20)),
        }
    }

    #[test]
    fn what_happened_between_two_looks() {
        type CandidacyEdit = fn(&mut Candidacy);
        let milliseconds = SignedDuration::from_millis;
        let took = |after| CandidateEvent::Acknowledged { after: Some(milliseconds(after)) };
        let cases: [(CandidacyEdit, CandidacyEdit, Vec<CandidateEvent>); 14] = [
            (|_| {}, |_| {}, vec![]),
            (|_| {}, |new| new.role = Role::Next, vec![]),
            (
                |_| {},
                |new| (new.role, new.leader) = (Role::Leader, Some("b".into())),
                vec![CandidateEvent::Leads { before: Some("a".into()) }],
            ),
            (
                |old| old.role = Role::Leader,
                |new| (new.role, new.leader) = (Role::Former, None),
                vec![CandidateEvent::LostLead { to: None }],
            ),
            (
                |_| {},
                |new| new.is_preferred = true,
                vec![CandidateEvent::Preferred { leader: Some("a".into()) }],
            ),
            (
                |_| {},
                |new| {
                    let (value, how, expires) = (5, How::Pinned, None);
                    new.priority = Some(Priority { value, how, expires });
                    new.is_preferred = true;
                },
                vec![
                    CandidateEvent::Preferred { leader: Some("a".into()) },
                    CandidateEvent::Priority { from: None, to: Some(5) },
                ],
            ),
            // Pings are news only in an election.
            (|_| {}, |new| (new.state, new.pinged) = (CandidateState::Pending, Some(ago(1))), vec![]),
            (
                |old| old.is_electing = true,
                |new| (new.state, new.pinged) = (CandidateState::Pending, Some(ago(1))),
                vec![CandidateEvent::Pinged],
            ),
            (
                |old| (old.is_electing, old.state) = (true, CandidateState::Pending),
                |new| new.renewed = Some(ago(19)),
                vec![took(1000)],
            ),
            (
                |old| old.is_electing = true,
                |new| (new.pinged, new.renewed) = (Some(ago(2)), Some(ago(2))),
                vec![took(0)],
            ),
            (
                |old| (old.is_electing, old.state) = (true, CandidateState::Pending),
                |new| new.state = CandidateState::Stale,
                vec![CandidateEvent::Silent],
            ),
            (
                |_| {},
                |new| new.state = CandidateState::Stale,
                vec![CandidateEvent::Became { state: CandidateState::Stale, before: CandidateState::Acked }],
            ),
            (
                |old| old.state = CandidateState::Expired,
                |_| {},
                vec![CandidateEvent::Became {
                    state: CandidateState::Acked,
                    before: CandidateState::Expired,
                }],
            ),
            (|_| {}, |new| new.state = CandidateState::Unpinged, vec![]),
        ];
        for (n, (before, after, happened)) in cases.into_iter().enumerate() {
            let (mut old, mut new) = (plain(), plain());
            before(&mut old);
            after(&mut new);
            assert_eq!(new.since(&old), happened, "case {n}");
        }
    }

    #[test]
    fn the_role_follows_from_the_lease_and_from_the_order() {
        let all = [
            candidate("a", "1.37.1", "1.37.0", 30),
            candidate("b", "1.37.1", "1.37.0", 20),
            candidate("c", "1.37.1", "1.37.0", 20),
        ];
        for (lease, roles) in [
            (Some(held_by("a", 1)), [Role::Leader, Role::MaybeNext, Role::MaybeNext]),
            (Some(held_by("b", 1)), [Role::Next, Role::Leader, Role::None]),
            (Some(held_by("b", 40)), [Role::Next, Role::Former, Role::None]),
            (None, [Role::Next, Role::None, Role::None]),
        ] {
            let outlook = outlook(&all, lease.as_ref());
            let found: Vec<_> = all
                .iter()
                .map(|it| {
                    let entry = outlook.entries.iter().find(|entry| entry.candidate.name() == it.name());
                    Candidacy::new(entry.unwrap(), &outlook).role
                })
                .collect();
            assert_eq!(found, roles, "{lease:?}");
        }
    }
}
