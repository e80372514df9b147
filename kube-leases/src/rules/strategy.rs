//! Which strategy an election follows: what its candidates agree on.
//!
//! It is the strategy of the candidate with the highest binary version. Where several have that version and
//! disagree, no candidate is elected. (`v1alpha1`, in 1.31, had lists of preferences instead: the one strategy
//! that no candidate puts below another.)

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{candidate::Candidate, version::Version};

/// The one strategy that Kubernetes itself follows.
pub const OLDEST: &str = "OldestEmulationVersion";
/// Which strategy the candidates agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Kubernetes elects.
    Oldest,
    /// Another controller elects.
    Foreign(String),
    /// These two disagree, and no candidate is elected.
    Conflict([Vote; 2]),
    /// No candidate takes part.
    None,
}

/// The strategy that a candidate asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Vote {
    /// The name of the candidate.
    pub candidate: String,
    /// The name of the strategy.
    pub strategy: String,
}

impl Vote {
    fn of(candidate: &Candidate, strategy: String) -> Self {
        Self { candidate: candidate.name().to_owned(), strategy }
    }
}

/// The strategy of the candidates that take part.
pub(super) fn strategy(candidates: &[&Candidate]) -> Strategy {
    let Some(first) = candidates.first() else { return Strategy::None };
    if candidates.iter().any(|candidate| !candidate.spec.preferred_strategies.is_empty()) {
        return preferred_by_all(candidates);
    }
    let binary = |it: &Candidate| Version::parse(&it.spec.binary_version).unwrap_or(Version::ZERO);
    let highest = candidates.iter().map(|candidate| binary(candidate)).max().unwrap_or(Version::ZERO);
    let newest: Vec<_> = candidates.iter().filter(|candidate| binary(candidate) == highest).collect();
    let said = |it: &Candidate| Vote::of(it, it.spec.strategy.clone());
    let one = newest.first().unwrap_or(&first);
    match newest.iter().find(|other| other.spec.strategy != one.spec.strategy) {
        Some(other) => Strategy::Conflict([said(one), said(other)]),
        None => named(&one.spec.strategy),
    }
}

fn named(strategy: &str) -> Strategy {
    if strategy == OLDEST { Strategy::Oldest } else { Strategy::Foreign(strategy.to_owned()) }
}

/// As in 1.31: the one strategy that no candidate puts below another; none where they go in circles.
fn preferred_by_all(candidates: &[&Candidate]) -> Strategy {
    let mut below: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for candidate in candidates {
        let strategies = candidate.strategies();
        for strategy in &strategies {
            below.entry(*strategy).or_default();
        }
        for pair in strategies.windows(2) {
            below.entry(pair[1]).or_default().insert(pair[0]);
        }
    }
    let mut order: Vec<&str> = Vec::new();
    while order.len() < below.len() {
        let free: Vec<&str> = below
            .iter()
            .filter(|(name, above)| !order.contains(name) && above.iter().all(|one| order.contains(one)))
            .map(|(name, _)| *name)
            .collect();
        if free.is_empty() || (order.is_empty() && free.len() > 1) {
            let said = |it: &&Candidate| Vote::of(it, it.strategies().join(", "));
            let one = candidates.first().map(said).unwrap_or_default();
            let other = candidates.iter().map(said).find(|other| other.strategy != one.strategy);
            return Strategy::Conflict([one.clone(), other.unwrap_or(one)]);
        }
        order.extend(free);
    }
    order.first().map_or(Strategy::None, |first| named(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::election::tests::{candidate, winner};

    fn vote(candidate: &str, strategy: &str) -> Vote {
        Vote { candidate: candidate.to_owned(), strategy: strategy.to_owned() }
    }

    #[test]
    fn the_strategy_is_that_of_the_newest_binary() {
        let with = |name: &str, binary: &str, strategy: &str| {
            let mut candidate = candidate(name, binary, "1.30.0", 9);
            strategy.clone_into(&mut candidate.spec.strategy);
            candidate
        };
        let foreign = |name: &str| Strategy::Foreign(name.into());
        for (candidates, wanted) in [
            (vec![with("a", "1.37.1", OLDEST), with("b", "1.36.0", "x.io/y")], Strategy::Oldest),
            (vec![with("a", "1.37.1", "x.io/y"), with("b", "1.36.0", OLDEST)], foreign("x.io/y")),
            (vec![with("a", "1.37.1", "x.io/y"), with("b", "1.37.1", "x.io/y")], foreign("x.io/y")),
            (
                vec![with("a", "1.37.1", "x.io/y"), with("b", "1.37.1", OLDEST), with("c", "1.36.0", OLDEST)],
                Strategy::Conflict([vote("a", "x.io/y"), vote("b", OLDEST)]),
            ),
            // An unreadable version counts as zero.
            (vec![with("a", "1.37.1", OLDEST), with("b", "new", "x.io/y")], Strategy::Oldest),
            (vec![], Strategy::None),
        ] {
            let all: Vec<_> = candidates.iter().collect();
            assert_eq!(strategy(&all), wanted);
            if wanted != Strategy::Oldest {
                assert_eq!(winner(&candidates), None);
            }
        }
    }

    #[test]
    fn in_1_31_the_strategies_were_lists() {
        let with = |name: &str, strategies: &[&str]| {
            let mut candidate = candidate(name, "1.31.0", "1.31.0", 9);
            candidate.spec.strategy = String::new();
            candidate.spec.preferred_strategies = strategies.iter().map(|s| (*s).to_owned()).collect();
            candidate
        };
        for (lists, wanted) in [
            (vec![vec![OLDEST], vec![OLDEST]], Some(OLDEST)),
            (vec![vec!["x"], vec!["y", "x"]], Some("y")),
            (vec![vec!["x", OLDEST], vec![OLDEST]], Some("x")),
            (vec![vec!["x", "y"], vec!["y", "x"]], None),
            (vec![vec!["x"], vec!["y"]], None),
            (vec![vec!["x", "y"], vec!["x", "z"]], Some("x")),
            (vec![vec!["r", "x", "y"], vec!["y", "x"]], None),
        ] {
            let candidates: Vec<_> =
                lists.iter().zip(["a", "b"]).map(|(list, name)| with(name, list)).collect();
            let all: Vec<_> = candidates.iter().collect();
            match (strategy(&all), wanted) {
                (Strategy::Conflict(between), None) => {
                    let said = [("a", &lists[0]), ("b", &lists[1])];
                    assert_eq!(between, said.map(|(name, list)| vote(name, &list.join(", "))));
                }
                (found, Some(wanted)) => assert_eq!(found, named(wanted), "{lists:?}"),
                (found, None) => panic!("{lists:?}: {found:?}"),
            }
        }
    }
}
