//! Which candidates a name means.
//!
//! A person names a candidate by its name, by its host, or by the beginning of its name. Several components can
//! run on one host, and what a component left behind when it restarted has the same host as its new candidate.

use std::collections::BTreeSet;

use super::{
    candidate::{Candidate, CandidateState},
    election::CoordinatedElection,
    priority,
    remains::is_superseded,
    time::ServerTime,
};

/// A candidate of an election.
#[derive(Clone, Copy, Debug)]
pub struct Chosen<'e, 'a> {
    /// The election that it is a candidate of.
    pub election: &'e CoordinatedElection<'a>,
    /// The candidate.
    pub candidate: &'a Candidate,
}

/// Why a name means no candidate.
#[derive(Debug)]
pub enum Unclear<'e, 'a> {
    /// There is no such candidate.
    None,
    /// It can be any of these.
    Several(Vec<Chosen<'e, 'a>>),
}

/// A way to tell candidates by a name, and whether one of each lease can be meant.
type NameMatch<'w> = (&'w dyn Fn(&Candidate) -> bool, bool);

impl Chosen<'_, '_> {
    fn lives(&self, now: ServerTime) -> bool {
        let (it, all) = (self.candidate, &self.election.candidates);
        !matches!(it.state(now), CandidateState::Stale | CandidateState::Expired) && !is_superseded(it, all)
    }
}

/// All candidates, or those for one lease.
pub fn of_lease<'e, 'a>(
    lease: Option<&str>,
    all: &'e [CoordinatedElection<'a>],
) -> impl Iterator<Item = Chosen<'e, 'a>> {
    all.iter()
        .filter(move |election| lease.is_none_or(|lease| lease == election.name))
        .flat_map(|election| election.candidates.iter().map(move |candidate| Chosen { election, candidate }))
}

/// The candidates that are meant, one of each lease: by the name, by the host, or by the beginning of the name.
pub fn find<'e, 'a>(
    wanted: &str,
    lease: Option<&str>,
    all: &'e [CoordinatedElection<'a>],
    now: ServerTime,
) -> Result<Vec<Chosen<'e, 'a>>, Unclear<'e, 'a>> {
    let candidates: Vec<Chosen<'e, 'a>> = of_lease(lease, all).collect();
    let ways: [NameMatch<'_>; 3] = [
        (&|candidate| candidate.name() == wanted, true),
        (&|candidate| candidate.host() == wanted, true),
        (&|candidate| candidate.name().starts_with(wanted), false),
    ];
    for (way, several) in ways {
        let mut found: Vec<_> = candidates.iter().filter(|one| way(one.candidate)).copied().collect();
        // What a component left behind when it restarted is not meant where it is back.
        let back: BTreeSet<_> =
            found.iter().filter(|one| one.lives(now)).map(|one| one.election.key()).collect();
        found.retain(|one| one.lives(now) || !back.contains(&one.election.key()));
        let leases: BTreeSet<_> = found.iter().map(|one| one.election.key()).collect();
        match found.len() {
            0 => {}
            1 => return Ok(found),
            count if several && count == leases.len() => return Ok(found),
            _ => return Err(Unclear::Several(found)),
        }
    }
    Err(Unclear::None)
}

/// The candidates whose priority is meant. A component that has restarted leaves its priority behind, on a
/// candidate of the same host that does not acknowledge pings any more.
pub fn find_marked<'e, 'a>(
    wanted: &str,
    lease: Option<&str>,
    all: &'e [CoordinatedElection<'a>],
    now: ServerTime,
) -> Result<Vec<Chosen<'e, 'a>>, Unclear<'e, 'a>> {
    let is_meant = |it: &Candidate| it.name() == wanted || it.host() == wanted;
    let marked: Vec<_> = of_lease(lease, all)
        .filter(|one| priority::is_marked(one.candidate) && is_meant(one.candidate))
        .collect();
    if marked.is_empty() { find(wanted, lease, all, now) } else { Ok(marked) }
}

/// All candidates of a lease, else those of this name, else those of this host; and whether it is by their own
/// name. None where the name means nothing.
pub fn find_all<'e, 'a>(wanted: &str, all: &'e [CoordinatedElection<'a>]) -> (Vec<Chosen<'e, 'a>>, bool) {
    let with = |is_meant: &dyn Fn(&Chosen<'e, 'a>) -> bool| -> Vec<Chosen<'e, 'a>> {
        of_lease(None, all).filter(is_meant).collect()
    };
    let by_lease = with(&|one| one.election.name == wanted);
    if !by_lease.is_empty() {
        return (by_lease, false);
    }
    let by_name = with(&|one| one.candidate.name() == wanted);
    if !by_name.is_empty() {
        return (by_name, true);
    }
    (with(&|one| one.candidate.host() == wanted), false)
}

/// Adds those that are not among the chosen yet.
pub fn add<'e, 'a>(chosen: &mut Vec<Chosen<'e, 'a>>, more: impl IntoIterator<Item = Chosen<'e, 'a>>) {
    for one in more {
        if !chosen.iter().any(|other| other.candidate.metadata.uid == one.candidate.metadata.uid) {
            chosen.push(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{
        election::{
            elections,
            tests::{ago, candidate, now},
        },
        priority::How,
    };

    /// Name, lease, and whether it lives. A later one of a host is younger.
    fn candidates() -> Vec<Candidate> {
        [
            ("cp-1_aa11", "scheduler", true),
            ("cp-1_bb22", "manager", true),
            ("cp-2_cc33", "scheduler", true),
            ("cp-2_dd44", "scheduler", false),
            ("cp-3_ee55", "scheduler", false),
            ("cp-4_ff66", "scheduler", true),
            ("cp-4_ff77", "scheduler", true),
            ("plain", "manager", true),
        ]
        .into_iter()
        .enumerate()
        .map(|(n, (name, lease, lives))| {
            let mut candidate = candidate(name, "1.37.1", "1.37.0", 900);
            candidate.metadata.uid = format!("uid-{n}");
            lease.clone_into(&mut candidate.spec.lease_name);
            if !lives {
                candidate.spec.ping_time = Some(ago(6));
            }
            candidate
        })
        .collect()
    }

    fn names(found: Result<Vec<Chosen<'_, '_>>, Unclear<'_, '_>>) -> Result<Vec<String>, usize> {
        match found {
            Ok(found) => Ok(found.iter().map(|one| one.candidate.name().to_owned()).collect()),
            Err(Unclear::None) => Err(0),
            Err(Unclear::Several(several)) => Err(several.len()),
        }
    }

    #[test]
    fn a_candidate_is_found_by_its_name_its_host_or_the_beginning_of_its_name() {
        let candidates = candidates();
        let all = elections(&candidates, []);
        let found = |names: &[&str]| Ok(names.iter().map(|name| (*name).to_owned()).collect());
        for (wanted, lease, result) in [
            ("cp-1_aa11", None, found(&["cp-1_aa11"])),
            ("plain", None, found(&["plain"])),
            // All components of a host, one of each lease, in the order of the leases.
            ("cp-1", None, found(&["cp-1_bb22", "cp-1_aa11"])),
            ("cp-1", Some("scheduler"), found(&["cp-1_aa11"])),
            // What was left behind is not meant where its component is back, and is where it is not.
            ("cp-2", None, found(&["cp-2_cc33"])),
            ("cp-2_dd44", None, found(&["cp-2_dd44"])),
            ("cp-3", None, found(&["cp-3_ee55"])),
            ("cp-1_a", None, found(&["cp-1_aa11"])),
            ("cp-1_", None, Err(2)),
            ("cp-4", None, Err(2)),
            ("cp-4_ff7", None, found(&["cp-4_ff77"])),
            ("cp-4_ff", None, Err(2)),
            ("cp-9", None, Err(0)),
            ("plain", Some("scheduler"), Err(0)),
        ] {
            assert_eq!(names(find(wanted, lease, &all, now())), result, "{wanted} {lease:?}");
        }
    }

    #[test]
    fn a_priority_is_found_where_a_restart_left_it_behind() {
        let mut candidates = candidates();
        candidates[3] = priority::imagine(&candidates[3], Some(5), How::Pinned);
        let all = elections(&candidates, []);
        for (wanted, result) in [
            ("cp-2", Ok(vec!["cp-2_dd44".to_owned()])),
            ("cp-2_dd44", Ok(vec!["cp-2_dd44".to_owned()])),
            ("cp-2_cc33", Ok(vec!["cp-2_cc33".to_owned()])),
            ("cp-3", Ok(vec!["cp-3_ee55".to_owned()])),
            ("cp-9", Err(0)),
        ] {
            assert_eq!(names(find_marked(wanted, None, &all, now())), result, "{wanted}");
        }
    }

    #[test]
    fn all_candidates_of_a_lease_a_name_or_a_host_are_found() {
        let candidates = candidates();
        let all = elections(&candidates, []);
        for (wanted, count, by_name) in [
            ("scheduler", 6, false),
            ("manager", 2, false),
            ("cp-2", 2, false),
            ("cp-2_dd44", 1, true),
            ("plain", 1, true),
            ("cp", 0, false),
        ] {
            let (found, by) = find_all(wanted, &all);
            assert_eq!((found.len(), by), (count, by_name), "{wanted}");
        }
        let mut chosen = find_all("cp-2", &all).0;
        add(&mut chosen, find_all("cp-2_dd44", &all).0);
        assert_eq!(chosen.len(), 2, "each once");
    }
}
