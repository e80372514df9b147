//! What keeps an election from going as it should, and how severe that is.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{
    candidate::{Candidate, CandidateState, VALID_FOR},
    controller,
    election::{Contender, Leader, Outlook, equals, order, with},
    forecast::{FORCED_AFTER, Forecast, is_forced},
    lease::Lease,
    priority::{self, Priority},
    strategy::{OLDEST, Strategy, Vote, strategy},
    time::{self, ServerTime},
};

/// So long after a lease expired should there be a new leader: time for two rounds of pings.
const ELECTED_WITHIN: SignedDuration = SignedDuration::from_secs(20);

/// Something that keeps an election from going as it should.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Trouble {
    /// The lease's holder is null; `foreign` while the strategy is one that Kubernetes does not follow.
    NullHolder {
        /// Whether the strategy is one that Kubernetes leaves to another controller.
        foreign: bool,
    },
    /// The holder of the expired lease is the best candidate, and the controller never elects it again.
    Stuck {
        /// The holder of the lease.
        holder: String,
        /// The preferred holder, if there is one.
        preferred: Option<String>,
        /// When the lease expired.
        #[serde(serialize_with = "time::write")]
        since: Option<Timestamp>,
    },
    /// Two candidates disagree on the strategy.
    StrategyConflict {
        /// The strategies of two candidates that disagree.
        between: [Vote; 2],
    },
    /// Only because of candidates that do not acknowledge their ping is the strategy not the one that
    /// Kubernetes follows: as long as the leader is well, nothing happens until an election is forced.
    Blocked {
        /// The candidates that do not acknowledge their ping.
        candidates: Vec<String>,
        /// When the election is forced.
        #[serde(serialize_with = "time::write")]
        until: Option<Timestamp>,
    },
    /// A strategy that Kubernetes leaves to another controller.
    ForeignStrategy {
        /// The strategy.
        strategy: String,
    },
    /// Because of candidates that do not acknowledge their ping all are pinged again and again, until they expire.
    PingStorm {
        /// The candidates that do not acknowledge their ping.
        candidates: Vec<String>,
        /// When the last of them expires.
        #[serde(serialize_with = "time::write")]
        until: Option<Timestamp>,
    },
    /// The leader is asked to step down for a candidate that does not take part.
    AbsentPreferred {
        /// The preferred holder.
        preferred: String,
    },
    /// These are equal in everything that decides.
    Tie {
        /// The candidates that are equal.
        candidates: Vec<String>,
        /// The priority that would decide it; `None` where there is none that can be set.
        decided_by: Option<TieBreaker>,
    },
    /// The leader is no candidate; `coordinated` where it may follow coordinated election all the same.
    LeaderNoCandidate {
        /// The holder of the lease.
        leader: String,
        /// Whether it may follow coordinated election all the same.
        coordinated: bool,
    },
    /// There are candidates, and for a while no leader.
    NoneElected {
        /// When the lease was left without a leader, if that is known.
        #[serde(serialize_with = "time::write")]
        since: Option<Timestamp>,
    },
    /// A priority that should have been cleared.
    OverduePriority {
        /// The name of the candidate.
        candidate: String,
    },
    /// Candidates that do not acknowledge their ping any more have a priority.
    DeadPriority {
        /// The names of the candidates.
        candidates: Vec<String>,
    },
}

/// The priority that decides a tie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TieBreaker {
    /// The name of the candidate.
    pub candidate: String,
    /// Its priority.
    pub priority: i32,
}

/// How severe something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It should be looked into.
    Warning,
    /// It keeps the cluster from working as it should.
    Failure,
}

impl Trouble {
    /// How severe it is for the election of a lease in this namespace; `None` for what is another controller's
    /// business, or passes by itself. A component of the control plane without a leader is a failure of the
    /// cluster.
    pub fn severity(&self, namespace: &str) -> Option<Severity> {
        match self {
            Self::ForeignStrategy { .. } | Self::AbsentPreferred { .. } => None,
            _ if namespace != controller::LEASE.0 => Some(Severity::Warning),
            Self::Stuck { .. }
            | Self::NoneElected { .. }
            | Self::StrategyConflict { .. }
            | Self::NullHolder { foreign: false } => Some(Severity::Failure),
            Self::NullHolder { foreign: true }
            | Self::Blocked { .. }
            | Self::PingStorm { .. }
            | Self::Tie { .. }
            | Self::LeaderNoCandidate { .. }
            | Self::OverduePriority { .. }
            | Self::DeadPriority { .. } => Some(Severity::Warning),
        }
    }

    /// Whether taking the holder off the lease ends it.
    pub fn is_repaired_by_an_empty_holder(&self) -> bool {
        matches!(self, Self::Stuck { .. } | Self::NullHolder { .. })
    }
}

impl Outlook<'_> {
    /// Whether the controller would not replace a leader that is well by a better one.
    fn is_blocked(&self) -> bool {
        let unexpired = with(&self.entries, |entry| entry.state != CandidateState::Expired);
        self.leader.valid().is_some() && strategy(&unexpired) != Strategy::Oldest
    }

    /// `storm` is the leader that stays although the controller elects again and again.
    pub(super) fn look_for_troubles(
        &self,
        lease: Option<&Lease>,
        storm: Option<&str>,
        now: ServerTime,
    ) -> Vec<Trouble> {
        let mut troubles = Vec::new();
        if self.leader == Leader::Null {
            // For a strategy of another controller the election controller itself makes such leases.
            troubles.push(Trouble::NullHolder { foreign: matches!(self.strategy, Strategy::Foreign(_)) });
        }
        if let (Forecast::Stuck, Leader::Held { holder, until, .. }) = (&self.forecast, &self.leader) {
            let preferred = self.preferred.clone();
            troubles.push(Trouble::Stuck { holder: holder.clone(), preferred, since: *until });
        }
        let unexpired: Vec<_> =
            self.entries.iter().filter(|entry| entry.state != CandidateState::Expired).collect();
        let name = |entry: &&Contender<'_>| entry.candidate.name().to_owned();
        let forced = unexpired.iter().any(|entry| is_forced(entry.candidate, now));
        match &self.strategy {
            Strategy::Conflict(between) => {
                troubles.push(Trouble::StrategyConflict { between: between.clone() });
            }
            Strategy::Foreign(name) => troubles.push(Trouble::ForeignStrategy { strategy: name.clone() }),
            Strategy::Oldest if self.is_blocked() && !forced => {
                let silent = unexpired.iter().copied().filter(|entry| entry.absence.is_some());
                let other: Vec<_> =
                    silent.filter(|entry| !entry.candidate.strategies().contains(&OLDEST)).collect();
                let renewed = other.iter().filter_map(|entry| entry.candidate.spec.renew_time).min();
                let until = renewed.and_then(|renewed| renewed.checked_add(FORCED_AFTER).ok());
                troubles.push(Trouble::Blocked { candidates: other.iter().map(name).collect(), until });
            }
            Strategy::Oldest | Strategy::None => {}
        }
        let coordinated = matches!(self.strategy, Strategy::Oldest);
        troubles.extend(storm.and_then(|leader| self.ping_storm(leader, &unexpired, now)));
        if let Some(preferred) = &self.preferred
            && !self.taking_part().iter().any(|candidate| candidate.name() == preferred)
            && self.leader.valid().is_some()
        {
            troubles.push(Trouble::AbsentPreferred { preferred: preferred.clone() });
        }
        let taking_part = self.taking_part();
        let tied = equals(&taking_part);
        if tied.len() > 1 && coordinated {
            let candidates: Vec<String> = tied.iter().map(|it| it.name().to_owned()).collect();
            let decided_by = self.tie_breaker(&candidates);
            troubles.push(Trouble::Tie { candidates, decided_by });
        }
        if let Some(leader) = self.leader.valid()
            && !self.entries.iter().any(|entry| entry.leads)
            && !self.entries.is_empty()
        {
            let (leader, coordinated) = (leader.to_owned(), !self.is_uncoordinated);
            troubles.push(Trouble::LeaderNoCandidate { leader, coordinated });
        }
        let stuck = self.forecast == Forecast::Stuck;
        if self.leader.valid().is_none() && coordinated && self.leader != Leader::Null && !stuck {
            let since = match &self.leader {
                Leader::Held { until, .. } => *until,
                Leader::Vacant => lease.and_then(Lease::renewed),
                _ => taking_part.iter().filter_map(|candidate| candidate.metadata.creation_timestamp).min(),
            };
            if since.is_none_or(|since| now.since(since) > ELECTED_WITHIN) {
                troubles.push(Trouble::NoneElected { since });
            }
        }
        troubles.extend(self.entries.iter().filter_map(|entry| {
            let overdue = priority::is_overdue(entry.candidate, now);
            overdue.then(|| Trouble::OverduePriority { candidate: entry.candidate.name().to_owned() })
        }));
        let dead =
            self.entries.iter().filter(|entry| entry.is_dead() && priority::is_marked(entry.candidate));
        let dead: Vec<_> = dead.map(|entry| entry.candidate.name().to_owned()).collect();
        if !dead.is_empty() {
            troubles.push(Trouble::DeadPriority { candidates: dead });
        }
        troubles
    }

    /// The dead ones for which the controller elects although the leader stays: those that are as good as it,
    /// or better, and those that have not renewed for a quarter of an hour.
    fn ping_storm(&self, leader: &str, unexpired: &[&Contender<'_>], now: ServerTime) -> Option<Trouble> {
        let leader = self.entries.iter().find(|entry| entry.candidate.name() == leader)?;
        let as_good = |entry: &Contender<'_>| order(entry.candidate, leader.candidate).is_le();
        let dead: Vec<_> = unexpired
            .iter()
            .filter(|entry| entry.is_dead() && (as_good(entry) || is_forced(entry.candidate, now)))
            .collect();
        let renewed = dead.iter().filter_map(|entry| entry.candidate.spec.renew_time).max();
        let candidates: Vec<_> = dead.iter().map(|entry| entry.candidate.name().to_owned()).collect();
        let until = renewed.and_then(|renewed| renewed.checked_add(VALID_FOR).ok());
        (!candidates.is_empty()).then_some(Trouble::PingStorm { candidates, until })
    }

    /// The candidate to prefer among equals, and its priority: the leader; but not a holder that does not renew
    /// any more, which then could not be elected at all. `None` where no pin decides.
    fn tie_breaker(&self, names: &[String]) -> Option<TieBreaker> {
        let leader = self.leader.valid().filter(|_| self.preferred.is_none());
        let holder = self.leader.holder();
        let is = |name: &&String, other: Option<&str>| Some(name.as_str()) == other;
        let one = names
            .iter()
            .find(|name| is(name, leader))
            .or_else(|| names.iter().find(|name| !is(name, holder)))?;
        let all: Vec<&Candidate> = self.entries.iter().map(|entry| entry.candidate).collect();
        let candidate = all.iter().find(|it| it.name() == one)?;
        let priority = Priority::of(candidate).map_or(0, |it| it.value).saturating_add(1);
        let is_possible = priority::unpinnable(candidate, priority, &all).is_none();
        is_possible.then(|| TieBreaker { candidate: one.clone(), priority })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{
        election::tests::{ago, candidate, held_by, outlook},
        priority::How,
    };
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    #[test]
    fn what_is_wrong_is_found() {
        let well = || vec![candidate("a", "1.37.1", "1.37.0", 30), candidate("b", "1.37.1", "1.37.0", 20)];
        let troubles = |candidates: &[Candidate], lease: &Lease| outlook(candidates, Some(lease)).troubles;
        assert_eq!(troubles(&well(), &held_by("a", 1)), []);
        assert_eq!(outlook(&[], None).troubles, []);

        let mut null = held_by("", 1);
        null.spec.holder_identity = None;
        assert_eq!(troubles(&well(), &null), [Trouble::NullHolder { foreign: false }]);

        let mut dead = well();
        dead[0].spec.ping_time = Some(ago(6));
        let until = Some(ago(10) + VALID_FOR);
        let storm = |names: &[&str]| {
            let candidates = names.iter().map(|name| (*name).to_owned()).collect();
            [Trouble::PingStorm { candidates, until }]
        };
        assert_eq!(troubles(&dead, &held_by("b", 1)), storm(&["a"]));
        // One that is only equal to the leader is taken for the best at every other look; all are named.
        dead.push(candidate("c", "1.37.1", "1.37.0", 20));
        dead[2].spec.ping_time = Some(ago(6));
        assert_eq!(troubles(&dead, &held_by("b", 1)), storm(&["a", "c"]));
        dead[0] = candidate("a", "1.37.1", "1.37.0", 10);
        assert_eq!(troubles(&dead, &held_by("b", 1)), storm(&["c"]));
        dead[2].metadata.creation_timestamp = Some(ago(9));
        assert_eq!(troubles(&dead, &held_by("b", 1)), [], "one that comes after the leader does nothing");
        dead[2].spec.renew_time = Some(ago(901));
        let until = Some(ago(901) + VALID_FOR);
        let forced = Trouble::PingStorm { candidates: vec!["c".into()], until };
        assert_eq!(troubles(&dead, &held_by("b", 1)), [forced], "until its quarter of an hour is over");
        dead[2] = priority::imagine(&candidate("c", "1.37.1", "1.37.0", 5), Some(3), How::Pinned);
        dead[2].spec.renew_time = Some(ago(1801));
        assert_eq!(
            troubles(&dead, &held_by("b", 1)),
            [Trouble::DeadPriority { candidates: vec!["c".into()] }]
        );

        let mut disagreeing = well();
        disagreeing[0].spec.strategy = "x.io/y".into();
        let vote = |name: &str, strategy: &str| Vote { candidate: name.into(), strategy: strategy.into() };
        let between = [vote("a", "x.io/y"), vote("b", OLDEST)];
        assert_eq!(troubles(&disagreeing, &held_by("b", 1)), [Trouble::StrategyConflict { between }]);
        disagreeing[0].spec.ping_time = Some(ago(6));
        assert!(troubles(&disagreeing, &held_by("b", 1)).contains(&Trouble::Blocked {
            candidates: vec!["a".into()],
            until: Some(ago(10) + FORCED_AFTER)
        }));

        let mut foreign = well();
        for candidate in &mut foreign {
            candidate.spec.strategy = "x.io/y".into();
        }
        assert_eq!(
            troubles(&foreign, &held_by("", 100)),
            [Trouble::ForeignStrategy { strategy: "x.io/y".into() }]
        );
        // A later candidate may bring back the strategy that Kubernetes follows.
        let both =
            [Trouble::NullHolder { foreign: true }, Trouble::ForeignStrategy { strategy: "x.io/y".into() }];
        assert_eq!(troubles(&foreign, &null), both);

        for (preferred, wrong) in [("gone", true), ("b", false), ("", false)] {
            let mut lease = held_by("a", 1);
            lease.spec.preferred_holder = Some(preferred.into());
            let found = troubles(&well(), &lease);
            assert_eq!(
                found == [Trouble::AbsentPreferred { preferred: preferred.into() }],
                wrong,
                "{preferred}: {found:?}"
            );
        }

        let tied = [candidate("a", "1.37.1", "1.37.0", 9), candidate("b", "1.37.1", "1.37.0", 9)];
        assert_eq!(
            troubles(&tied, &held_by("a", 1)),
            [Trouble::Tie {
                candidates: vec!["a".into(), "b".into()],
                decided_by: Some(TieBreaker { candidate: "a".into(), priority: 1 })
            }]
        );
        let mut stranger = held_by("x", 1);
        let no_candidate = |coordinated| [Trouble::LeaderNoCandidate { leader: "x".into(), coordinated }];
        assert_eq!(troubles(&well(), &stranger), no_candidate(true));
        stranger.spec.acquire_time = Some(MicroTime(ago(100)));
        assert_eq!(troubles(&well(), &stranger), no_candidate(false));

        assert_eq!(troubles(&well(), &held_by("b", 34)), []);
        let since = Some(ago(21));
        assert_eq!(troubles(&well(), &held_by("b", 36)), [Trouble::NoneElected { since }]);
        let stuck = Trouble::Stuck { holder: "a".into(), preferred: None, since };
        assert_eq!(troubles(&well(), &held_by("a", 36)), [stuck]);
        assert_eq!(troubles(&well(), &held_by("", 20)), [], "released a moment ago");
        assert_eq!(troubles(&well(), &held_by("", 21)), [Trouble::NoneElected { since }]);
        assert_eq!(outlook(&well(), None).troubles, [Trouble::NoneElected { since: Some(ago(30)) }]);

        let mut overdue = well();
        overdue[0] = priority::imagine(&overdue[0], Some(3), How::Pinned);
        overdue[0].metadata.annotations.insert(priority::EXPIRES.into(), ago(60).to_string());
        assert_eq!(
            troubles(&overdue, &held_by("a", 1)),
            [Trouble::OverduePriority { candidate: "a".into() }]
        );
    }

    #[test]
    fn a_component_of_the_control_plane_without_a_leader_is_a_failure() {
        let (name, names) = (|| "a_1".to_owned(), || vec!["a_1".to_owned(), "b_2".to_owned()]);
        let (warning, failure) = (Some(Severity::Warning), Some(Severity::Failure));
        for (trouble, kube_system, elsewhere) in [
            (Trouble::Stuck { holder: name(), preferred: None, since: None }, failure, warning),
            (Trouble::NoneElected { since: None }, failure, warning),
            (Trouble::StrategyConflict { between: [Vote::default(), Vote::default()] }, failure, warning),
            (Trouble::NullHolder { foreign: false }, failure, warning),
            (Trouble::NullHolder { foreign: true }, warning, warning),
            (Trouble::Blocked { candidates: names(), until: None }, warning, warning),
            (Trouble::PingStorm { candidates: names(), until: None }, warning, warning),
            (Trouble::Tie { candidates: names(), decided_by: None }, warning, warning),
            (Trouble::LeaderNoCandidate { leader: name(), coordinated: true }, warning, warning),
            (Trouble::OverduePriority { candidate: name() }, warning, warning),
            (Trouble::DeadPriority { candidates: names() }, warning, warning),
            (Trouble::ForeignStrategy { strategy: name() }, None, None),
            (Trouble::AbsentPreferred { preferred: name() }, None, None),
        ] {
            assert_eq!(trouble.severity("kube-system"), kube_system, "{trouble:?}");
            assert_eq!(trouble.severity("shop"), elsewhere, "{trouble:?}");
        }
    }

    #[test]
    fn the_leader_is_preferred_among_equals_unless_it_does_not_renew() {
        let tied = [candidate("a", "1.37.1", "1.37.0", 9), candidate("b", "1.37.1", "1.37.0", 9)];
        let too_old = [candidate("a", "0.0.1", "0.0.1", 9), candidate("b", "0.0.1", "0.0.1", 9)];
        let mut leaving = held_by("a", 1);
        leaving.spec.preferred_holder = Some("b".into());
        for (candidates, lease, preferred) in [
            (&tied, Some(held_by("b", 1)), Some("b")),
            (&tied, Some(leaving), Some("b")),
            (&tied, Some(held_by("a", 60)), Some("b")),
            (&tied, Some(held_by("", 1)), Some("a")),
            (&tied, None, Some("a")),
            (&too_old, None, None),
        ] {
            let troubles = outlook(candidates, lease.as_ref()).troubles;
            let decided_by = troubles.iter().find_map(|trouble| match trouble {
                Trouble::Tie { decided_by, .. } => Some(decided_by.as_ref().map(|it| it.candidate.as_str())),
                _ => None,
            });
            assert_eq!(decided_by, Some(preferred), "{lease:?}");
        }
    }

    #[test]
    fn a_trouble_is_a_code_with_parameters() {
        let trouble = Trouble::Tie {
            candidates: vec!["a".into()],
            decided_by: Some(TieBreaker { candidate: "a".into(), priority: 1 }),
        };
        assert_eq!(
            serde_json::to_value(trouble).unwrap(),
            serde_json::json!({
                "code": "tie", "candidates": ["a"], "decidedBy": { "candidate": "a", "priority": 1 }
            })
        );
    }
}
