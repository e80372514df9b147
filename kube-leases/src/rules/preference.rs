//! What makes another candidate lead than the one that an election comes to.

use super::{
    election::Outlook,
    priority::{self, Priority},
    strategy::Strategy,
};

/// How the second best candidate comes before the best.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preference<'a> {
    /// By a priority of its own.
    Priority {
        /// The second best.
        candidate: &'a str,
        /// A priority that is enough.
        value: i32,
        /// The best, if it has a priority that could be cleared instead.
        clears: Option<&'a str>,
    },
    /// By no priority: the best comes before every pin.
    NoPin {
        /// The best.
        first: &'a str,
    },
}

/// How to change which candidate leads; `None` if no priority would, or if it would leave no candidate to elect.
pub fn preference<'a>(outlook: &Outlook<'a>) -> Option<Preference<'a>> {
    let mut taking_part = outlook.entries.iter().filter(|entry| entry.absence.is_none());
    let (first, second) = (taking_part.next()?, taking_part.next()?);
    if outlook.strategy != Strategy::Oldest || outlook.is_uncoordinated {
        return None;
    }
    let priority = Priority::of(first.candidate);
    let value = priority.map_or(Some(1), |priority| priority.value.checked_add(1))?;
    // Preferring a holder that does not renew any more would leave no candidate to elect.
    if second.leads && (outlook.leader.valid().is_none() || outlook.preferred.is_some()) {
        return None;
    }
    let first = first.candidate;
    let pinned = second.candidate.spec.priority.is_none();
    if pinned && priority::unpinnable(second.candidate, value, &outlook.taking_part()).is_some() {
        return Some(Preference::NoPin { first: first.name() });
    }
    let clears = Priority::of(first).map(|_| first.name());
    Some(Preference::Priority { candidate: second.candidate.name(), value, clears })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{
        candidate::Candidate,
        election::tests::{candidate, held_by, now},
        priority::How,
    };

    #[test]
    fn what_makes_another_lead() {
        let [a, b] = [candidate("a", "1.37.1", "1.37.0", 30), candidate("b", "1.37.1", "1.37.0", 20)];
        let preferred = |it: &Candidate, value| priority::imagine(it, Some(value), How::Pinned);
        let first = candidate("z", "1.37.1", "0.0.0", 1);
        let foreign = |it: &Candidate| {
            let mut foreign = it.clone();
            foreign.spec.strategy = "Foreign".into();
            foreign
        };
        let by = |candidate, value, clears| Some(Preference::Priority { candidate, value, clears });
        let mut leaving = held_by("a", 1);
        leaving.spec.preferred_holder = Some("b".into());
        for (what, candidates, lease, found) in [
            ("alone", vec![a.clone()], held_by("a", 1), None),
            ("two", vec![a.clone(), b.clone()], held_by("a", 1), by("b", 1, None)),
            ("one has a priority", vec![a.clone(), preferred(&b, 5)], held_by("b", 1), by("a", 6, Some("b"))),
            ("the highest", vec![a.clone(), preferred(&b, i32::MAX)], held_by("b", 1), None),
            (
                "before every pin",
                vec![first, b.clone()],
                held_by("b", 1),
                Some(Preference::NoPin { first: "z" }),
            ),
            ("another strategy", vec![foreign(&a), foreign(&b)], held_by("a", 1), None),
            ("the leader steps down", vec![preferred(&b, 5), a.clone()], leaving, None),
            ("its holder has expired", vec![preferred(&b, 5), a.clone()], held_by("a", 60), None),
            ("the best has expired", vec![a.clone(), b.clone()], held_by("a", 60), by("b", 1, None)),
        ] {
            let candidates: Vec<&Candidate> = candidates.iter().collect();
            let outlook = Outlook::new(&candidates, Some(&lease), now());
            assert_eq!(preference(&outlook), found, "{what}");
        }
    }
}
