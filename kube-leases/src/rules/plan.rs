//! What becomes of the leader of a lease when its candidates get or lose a priority, or are deleted.

use std::time::Duration;

use super::{
    candidate::Candidate,
    election::{CoordinatedElection, Outlook},
    forecast::{Doubt, Forecast, Strands},
    lease::Lease,
    remains::expired,
    time::ServerTime,
};

/// How an election will stand once something is changed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The namespace of the lease.
    pub namespace: String,
    /// The name of the lease.
    pub lease: String,
    /// The holder of the lease now.
    pub from: Option<String>,
    /// What the controller does after the change.
    pub forecast: Forecast,
    /// Whether the change can leave the lease without a leader as long as a handover is under way.
    pub strands: Option<Strands>,
    /// Whether there is a handover without the change.
    pub is_moving: bool,
    /// Whether it is open which candidate leads without the change.
    pub was_open: bool,
    /// How long the leader has the lease after its last renewal: so long can a handover take at least.
    pub duration: Duration,
}

/// How a candidate will be; `None` where it stays as it is.
pub type CandidateChange<'c> = &'c (dyn Fn(&Candidate) -> Option<Candidate> + Sync);

impl Plan {
    /// What follows from a change of candidates.
    pub fn new(election: &CoordinatedElection<'_>, change: CandidateChange<'_>, now: ServerTime) -> Self {
        let before = election.outlook(now);
        let changed: Vec<Option<Candidate>> = election.candidates.iter().map(|it| change(it)).collect();
        let candidates: Vec<&Candidate> = election
            .candidates
            .iter()
            .zip(&changed)
            .map(|(it, changed)| changed.as_ref().unwrap_or(it))
            .collect();
        let after = Outlook::new(&candidates, election.lease, now);
        let duration =
            election.lease.and_then(Lease::duration).and_then(|duration| Duration::try_from(duration).ok());
        Self {
            namespace: election.namespace.to_owned(),
            lease: election.name.to_owned(),
            from: after.leader.holder().map(str::to_owned),
            strands: before.forecast.strands(&after.forecast),
            is_moving: before.is_moving(),
            was_open: matches!(before.forecast, Forecast::Open(Doubt::Tie | Doubt::JustEnded, _)),
            duration: duration.unwrap_or_default(),
            forecast: after.forecast,
        }
    }

    /// What follows when the holder is taken off the lease.
    pub fn of_empty_holder(election: &CoordinatedElection<'_>, lease: &Lease, now: ServerTime) -> Self {
        let mut free = lease.clone();
        free.spec.holder_identity = Some(String::new());
        free.spec.preferred_holder = None;
        Self {
            namespace: election.namespace.to_owned(),
            lease: election.name.to_owned(),
            from: None,
            forecast: Outlook::new(&election.candidates, Some(&free), now).forecast,
            strands: None,
            is_moving: false,
            was_open: false,
            duration: Duration::ZERO,
        }
    }

    /// One plan for each election of these, with the same change.
    pub fn all<'e, 'a: 'e>(
        elections: impl IntoIterator<Item = &'e CoordinatedElection<'a>>,
        change: CandidateChange<'_>,
        now: ServerTime,
    ) -> Vec<Self> {
        let mut plans: Vec<Self> = Vec::new();
        for election in elections {
            if !plans.iter().any(|plan| plan.is_of(election)) {
                plans.push(Self::new(election, change, now));
            }
        }
        plans
    }

    /// Where leadership moves when these candidates are gone: one that does not acknowledge pings can keep a better
    /// one from being elected, by its strategy.
    pub fn without<'e, 'a: 'e>(
        elections: impl IntoIterator<Item = &'e CoordinatedElection<'a>>,
        gone: &[&Candidate],
        now: ServerTime,
    ) -> Vec<Self> {
        let change = |it: &Candidate| {
            gone.iter().any(|gone| gone.metadata.uid == it.metadata.uid).then(|| expired(it))
        };
        let mut plans = Self::all(elections, &change, now);
        plans.retain(Self::moves_by_the_change);
        plans
    }

    /// Whether this is the plan of that election.
    pub fn is_of(&self, election: &CoordinatedElection<'_>) -> bool {
        (self.namespace.as_str(), self.lease.as_str()) == election.key()
    }

    /// Whether the controller may ask the leader to step down by what it has decided before the change.
    pub fn may_be_asked(&self) -> bool {
        self.strands == Some(Strands::AboutToBe) || (self.was_open && self.forecast == Forecast::Stays)
    }

    /// Whether the leader keeps a lease that it renews unless it is asked to step down: only then can the change
    /// leave the lease without a leader.
    pub fn keeps_the_leader(&self) -> bool {
        matches!(
            self.forecast,
            Forecast::Stays | Forecast::Open(Doubt::Tie | Doubt::JustEnded | Doubt::NoCandidate, _)
        )
    }

    /// Whether the change itself moves leadership: there is no handover under way, and the leader does not stay.
    pub fn moves_by_the_change(&self) -> bool {
        !self.is_moving && self.forecast != Forecast::Stays
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{
        election::tests::{candidate, held_by, now},
        priority::{self, How},
    };

    /// a leads by its age, then come b and c.
    #[test]
    fn what_follows_from_a_change() {
        let all = [
            candidate("a", "1.37.1", "1.37.0", 30),
            candidate("b", "1.37.1", "1.37.0", 20),
            candidate("c", "1.37.1", "1.37.0", 10),
        ];
        let lease = held_by("a", 1);
        let mut leaving = held_by("a", 1);
        leaving.spec.preferred_holder = Some("b".into());
        let to = |name: &str| Forecast::Moves(vec![name.to_owned()]);
        for (what, lease, preferred, forecast, strands, is_moving, moves) in [
            ("nothing changes", &lease, None, Forecast::Stays, None, false, false),
            ("another gets a priority", &lease, Some("c"), to("c"), None, false, true),
            ("the leader gets a priority", &lease, Some("a"), Forecast::Stays, None, false, false),
            (
                "the leader gets a priority in a handover",
                &leaving,
                Some("a"),
                Forecast::Open(Doubt::HolderEnds, vec!["b".into()]),
                None,
                false,
                true,
            ),
        ] {
            let election = CoordinatedElection {
                namespace: "kube-system",
                name: "component",
                candidates: all.iter().collect(),
                lease: Some(lease),
            };
            let change = |it: &Candidate| {
                (Some(it.name()) == preferred).then(|| priority::imagine(it, Some(5), How::Pinned))
            };
            let plan = Plan::new(&election, &change, now());
            assert_eq!(plan.from.as_deref(), Some("a"), "{what}");
            assert_eq!(plan.forecast, forecast, "{what}");
            assert_eq!(plan.strands, strands, "{what}");
            assert_eq!(plan.is_moving, is_moving, "{what}");
            assert_eq!(plan.moves_by_the_change(), moves, "{what}");
            assert_eq!(plan.duration, Duration::from_secs(15), "{what}");
            assert!(plan.is_of(&election));
        }
    }

    #[test]
    fn an_election_has_one_plan() {
        let all = [candidate("a", "1.37.1", "1.37.0", 30)];
        let election = |name| CoordinatedElection {
            namespace: "kube-system",
            name,
            candidates: all.iter().collect(),
            lease: None,
        };
        let elections = [election("x"), election("y"), election("x")];
        let plans = Plan::all(&elections, &|_| None, now());
        assert_eq!(plans.iter().map(|plan| plan.lease.as_str()).collect::<Vec<_>>(), ["x", "y"]);
    }

    /// a leads, b and c are as good as one another but for their age. A dead one with a strategy of its own keeps the
    /// others from being elected.
    #[test]
    fn where_leadership_moves_without_the_dead() {
        let mut all = [
            candidate("a", "1.37.1", "1.37.0", 30),
            candidate("b", "1.37.1", "1.37.0", 40),
            candidate("c", "1.37.1", "1.37.0", 10),
            candidate("d", "1.37.1", "1.37.0", 5),
        ];
        for it in &mut all {
            it.metadata.uid = format!("uid-{}", it.metadata.name);
        }
        all[3].spec.strategy = "Foreign".into();
        let [a, b, c, d] = &all;
        let lease = held_by("a", 1);
        let to_b = Some(Forecast::Moves(vec!["b".to_owned()]));
        for (what, there, gone, moves) in [
            ("b is about to lead anyway", vec![a, b, c], vec![c], None),
            ("the others stay behind", vec![a, c], vec![c], None),
            ("none is gone", vec![a, b, d], vec![], None),
            ("d stood in b's way", vec![a, b, d], vec![d], to_b.clone()),
            ("and c goes too", vec![a, b, c, d], vec![d, c], to_b),
        ] {
            let election =
                CoordinatedElection { namespace: "n", name: "l", candidates: there, lease: Some(&lease) };
            let plans = Plan::without([&election, &election], &gone, now());
            assert_eq!(plans.iter().map(|plan| plan.forecast.clone()).next(), moves, "{what}");
            assert!(plans.len() < 2, "{what}");
        }
    }

    #[test]
    fn without_its_holder_a_stuck_lease_goes_to_the_best() {
        let all = [candidate("a", "1.37.1", "1.37.0", 30), candidate("b", "1.37.1", "1.37.0", 20)];
        let lease = held_by("a", 60);
        let candidates = all.iter().collect();
        let election = CoordinatedElection { namespace: "n", name: "l", candidates, lease: Some(&lease) };
        assert_eq!(election.outlook(now()).forecast, Forecast::Stuck);
        let plan = Plan::of_empty_holder(&election, &lease, now());
        assert_eq!((plan.from, plan.forecast), (None, Forecast::Elects(vec!["a".into()])));
    }

    /// Forecasts with a leader that renews, and whether a change to them leaves it where it is.
    #[test]
    fn a_leader_that_stays_may_still_be_asked_to_step_down_by_an_earlier_decision() {
        let names = || vec!["b".to_owned()];
        let plan = |forecast, strands, was_open| Plan {
            namespace: String::new(),
            lease: String::new(),
            from: None,
            forecast,
            strands,
            is_moving: false,
            was_open,
            duration: Duration::ZERO,
        };
        for (forecast, strands, was_open, may_be_asked, keeps) in [
            (Forecast::Stays, None, false, false, true),
            (Forecast::Stays, None, true, true, true),
            (Forecast::Stays, Some(Strands::AboutToBe), false, true, true),
            (Forecast::Stays, Some(Strands::AskedToStepDown), false, false, true),
            (Forecast::Open(Doubt::Tie, names()), None, true, false, true),
            (Forecast::Open(Doubt::HolderEnds, names()), Some(Strands::AskedToStepDown), false, false, false),
            (Forecast::Moves(names()), None, true, false, false),
            (Forecast::Stuck, None, false, false, false),
        ] {
            let plan = plan(forecast, strands, was_open);
            assert_eq!(plan.may_be_asked(), may_be_asked, "{plan:?}");
            assert_eq!(plan.keeps_the_leader(), keeps, "{plan:?}");
        }
    }
}
