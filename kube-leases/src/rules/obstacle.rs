//! Why a priority would do nothing, or harm: looked for before confirmation is asked for.

use super::{
    candidate::Candidate,
    controller::Controller,
    election::{CoordinatedElection, Leader},
    lease::is_object_name,
    priority::{self, Unpinnable},
    strategy::Strategy,
    time::ServerTime,
    trouble::Trouble,
};

/// Why a priority would do nothing, or harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PriorityObstacle {
    /// No lease can have the name that the candidate gives.
    LeaseName,
    /// The election itself is in trouble.
    Trouble(Trouble),
    /// No pin makes the candidate the first.
    Unpinnable(Unpinnable),
    /// The lease has no strategy: its holder runs without coordinated leader election.
    Uncoordinated,
    /// The election controller does not run.
    Controller(Controller),
}

impl PriorityObstacle {
    /// Whether a priority can be set all the same.
    pub fn can_be_forced(&self) -> bool {
        match self {
            Self::LeaseName
            | Self::Trouble(Trouble::NullHolder { .. } | Trouble::ForeignStrategy { .. })
            | Self::Unpinnable(Unpinnable::Unreadable | Unpinnable::TooOld) => false,
            Self::Trouble(_)
            | Self::Unpinnable(Unpinnable::Behind(_))
            | Self::Uncoordinated
            | Self::Controller(_) => true,
        }
    }
}

/// All obstacles to a priority of this candidate.
pub fn obstacles(
    election: &CoordinatedElection<'_>,
    candidate: &Candidate,
    value: i32,
    controller: &Controller,
    now: ServerTime,
) -> Vec<PriorityObstacle> {
    let outlook = election.outlook(now);
    let mut obstacles = Vec::new();
    if !is_object_name(election.name) {
        obstacles.push(PriorityObstacle::LeaseName);
    }
    if outlook.leader == Leader::Null {
        obstacles.push(PriorityObstacle::Trouble(Trouble::NullHolder { foreign: false }));
    }
    if let Strategy::Foreign(strategy) = &outlook.strategy {
        obstacles.push(PriorityObstacle::Trouble(Trouble::ForeignStrategy { strategy: strategy.clone() }));
    } else if candidate.spec.priority.is_none() {
        let unpinnable = priority::unpinnable(candidate, value, &outlook.taking_part());
        obstacles.extend(unpinnable.map(PriorityObstacle::Unpinnable));
    }
    let in_the_way = |trouble: &&Trouble| match trouble {
        Trouble::StrategyConflict { .. } | Trouble::Blocked { .. } => true,
        Trouble::LeaderNoCandidate { coordinated, .. } => !coordinated,
        _ => false,
    };
    obstacles.extend(outlook.troubles.iter().filter(in_the_way).cloned().map(PriorityObstacle::Trouble));
    let has_no_strategy = |strategy: Option<&str>| strategy.unwrap_or_default().is_empty();
    if election.lease.is_some_and(|lease| has_no_strategy(lease.spec.strategy.as_deref()))
        && !outlook.is_uncoordinated
    {
        obstacles.push(PriorityObstacle::Uncoordinated);
    }
    if controller.is_down() {
        obstacles.push(PriorityObstacle::Controller(controller.clone()));
    }
    obstacles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{
        election::tests::{ago, candidate, held_by, now},
        lease::Lease,
        strategy::OLDEST,
    };
    use jiff::SignedDuration;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    /// What is changed about two candidates that are well, and about the lease of the first; for a priority of
    /// the second.
    #[test]
    fn what_is_in_the_way_of_a_priority() {
        type ElectionEdit = fn(&mut [Candidate; 2], &mut Lease);
        type Case = (&'static str, ElectionEdit, Controller, &'static [(&'static str, bool)]);
        let alive = || Controller::Alive { holder: "x".into(), ago: SignedDuration::ZERO };
        let cases: [Case; 11] = [
            ("nothing", |_, _| {}, alive(), &[]),
            ("unseen", |_, _| {}, Controller::Unseen, &[]),
            ("no controller", |_, _| {}, Controller::Missing, &[("controller", true)]),
            (
                "a null holder",
                |_, lease| lease.spec.holder_identity = None,
                alive(),
                &[("null-holder", false)],
            ),
            (
                "a foreign strategy",
                |all, _| all.iter_mut().for_each(|it| it.spec.strategy = "x.io/y".into()),
                alive(),
                &[("foreign-strategy", false)],
            ),
            (
                "two strategies",
                |all, _| all[0].spec.strategy = "x.io/y".into(),
                alive(),
                &[("strategy-conflict", true)],
            ),
            (
                "a version that cannot be read",
                |all, _| all[1].spec.emulation_version = "one".into(),
                alive(),
                &[("unreadable", false)],
            ),
            (
                "a version below every pin",
                |all, _| all[1].spec.binary_version = "0.0.1".into(),
                alive(),
                &[("too-old", false)],
            ),
            (
                "another with a version below every pin",
                |all, _| all[0].spec.emulation_version = "0.0.1".into(),
                alive(),
                &[("behind", true)],
            ),
            (
                "a lease without a strategy",
                |_, lease| lease.spec.strategy = None,
                alive(),
                &[("uncoordinated", true)],
            ),
            (
                "a leader that does without",
                |_, lease| {
                    lease.spec.strategy = None;
                    lease.spec.holder_identity = Some("x".into());
                    lease.spec.acquire_time = Some(MicroTime(ago(100)));
                },
                alive(),
                &[("leader-no-candidate", true)],
            ),
        ];
        for (what, change, controller, wanted) in cases {
            let mut all = [candidate("a", "1.37.1", "1.37.0", 30), candidate("b", "1.37.1", "1.37.0", 20)];
            let mut lease = held_by("a", 1);
            lease.spec.strategy = Some(OLDEST.into());
            change(&mut all, &mut lease);
            let election = CoordinatedElection {
                namespace: "kube-system",
                name: "component",
                candidates: all.iter().collect(),
                lease: Some(&lease),
            };
            let found = obstacles(&election, &all[1], 5, &controller, now());
            let code = |obstacle: &PriorityObstacle| match obstacle {
                PriorityObstacle::LeaseName => "lease-name".to_owned(),
                PriorityObstacle::Trouble(trouble) => {
                    serde_json::to_value(trouble).unwrap()["code"].as_str().unwrap().to_owned()
                }
                PriorityObstacle::Unpinnable(Unpinnable::Unreadable) => "unreadable".to_owned(),
                PriorityObstacle::Unpinnable(Unpinnable::TooOld) => "too-old".to_owned(),
                PriorityObstacle::Unpinnable(Unpinnable::Behind(_)) => "behind".to_owned(),
                PriorityObstacle::Uncoordinated => "uncoordinated".to_owned(),
                PriorityObstacle::Controller(_) => "controller".to_owned(),
            };
            let found: Vec<_> = found.iter().map(|it| (code(it), it.can_be_forced())).collect();
            let wanted: Vec<_> = wanted.iter().map(|(code, forced)| ((*code).to_owned(), *forced)).collect();
            assert_eq!(found, wanted, "{what}");
            let odd = CoordinatedElection { name: "no\nname", ..election };
            assert_eq!(
                obstacles(&odd, &all[1], 5, &controller, now())[0],
                PriorityObstacle::LeaseName,
                "{what}"
            );
        }
    }
}
