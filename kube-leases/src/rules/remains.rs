//! What components leave behind when they end: `LeaseCandidate` objects whose process does not acknowledge pings any more.
//!
//! client-go never deletes a candidate. A component that restarts comes back under a new name, and what it was
//! before stays for half an hour. Deleting one of a process that lives does little harm: it is written again at
//! its next renewal, up to five minutes later, as a younger one; but it must not be the leader's.

use jiff::SignedDuration;

use super::{
    candidate::{Candidate, CandidateState},
    time::ServerTime,
};

/// A process that has not acknowledged a ping for so long has ended: it is not only slow.
pub const SILENT_FOR: SignedDuration = SignedDuration::from_secs(20);

/// Whether a candidate is left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remains {
    /// It is alive, or may be.
    No,
    /// It leads.
    Leader,
    /// A ping tells: it is late, or a newer one of the same host is there.
    Suspected(DeathReason),
    /// Its process has ended.
    Dead(DeathReason),
}

/// Why it is taken for dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeathReason {
    /// Did not acknowledge the last ping.
    Silent,
    /// Did not renew when it should have.
    Overdue,
    /// Did not renew for half an hour, or never.
    Expired,
    /// This newer candidate is of the same host.
    Superseded(String),
}

/// Whether a candidate is left behind, among all of its lease. `leader` is the holder of the lease now.
pub fn remains(candidate: &Candidate, all: &[&Candidate], leader: Option<&str>, now: ServerTime) -> Remains {
    if leader == Some(candidate.name()) {
        return Remains::Leader;
    }
    let pinged = candidate.spec.ping_time.filter(|_| candidate.owes_acknowledgement());
    let long = pinged.is_some_and(|pinged| now.since(pinged) > SILENT_FOR);
    let newer = all.iter().find(|other| supersedes(other, candidate)).map(|other| other.name().to_owned());
    match candidate.state(now) {
        CandidateState::Expired => Remains::Dead(DeathReason::Expired),
        CandidateState::Stale if long => {
            Remains::Dead(newer.map_or(DeathReason::Silent, DeathReason::Superseded))
        }
        CandidateState::Stale if pinged.is_some() => {
            Remains::Suspected(newer.map_or(DeathReason::Silent, DeathReason::Superseded))
        }
        CandidateState::Stale => {
            Remains::Suspected(newer.map_or(DeathReason::Overdue, DeathReason::Superseded))
        }
        _ => newer.map_or(Remains::No, |newer| Remains::Suspected(DeathReason::Superseded(newer))),
    }
}

/// A candidate as if it had expired: it counts for nothing, as one that is deleted.
#[must_use]
pub fn expired(candidate: &Candidate) -> Candidate {
    let mut expired = candidate.clone();
    expired.spec.renew_time = None;
    expired
}

/// Whether a later process on its host is a candidate of the same lease, and it has not renewed since.
pub fn is_superseded(candidate: &Candidate, all: &[&Candidate]) -> bool {
    all.iter().any(|other| supersedes(other, candidate))
}

/// Whether one is a later process on the same host: its name says so, and the other has not renewed since.
fn supersedes(newer: &Candidate, older: &Candidate) -> bool {
    let created = newer.metadata.creation_timestamp;
    newer.name() != older.name()
        && older.host() != older.name()
        && newer.host() == older.host()
        && created > older.metadata.creation_timestamp
        && older.spec.renew_time < created
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{candidate::LeaseCandidateSpec, lease::Metadata};
    use jiff::Timestamp;

    #[test]
    fn what_is_left_behind_is_told_from_what_is_alive() {
        let now = ServerTime(Timestamp::UNIX_EPOCH + SignedDuration::from_hours(500_000));
        let ago = |seconds| now.0 - SignedDuration::from_secs(seconds);
        let candidate = |name: &str, age: i64, renewed: i64, pinged: Option<i64>| Candidate {
            metadata: Metadata {
                name: name.into(),
                creation_timestamp: Some(ago(age)),
                ..Metadata::default()
            },
            spec: LeaseCandidateSpec {
                renew_time: Some(ago(renewed)),
                ping_time: pinged.map(ago),
                ..LeaseCandidateSpec::default()
            },
        };
        let other = candidate("cp-2_b", 500, 3, None);
        let next = candidate("cp-1_z", 60, 3, None);
        let superseded = || DeathReason::Superseded("cp-1_z".into());
        for (it, beside, leader, wanted) in [
            (candidate("cp-1_a", 900, 3, None), &other, None, Remains::No),
            (candidate("cp-1_a", 900, 3, None), &other, Some("cp-1_a"), Remains::Leader),
            (candidate("cp-1_a", 900, 300, Some(3)), &other, None, Remains::No),
            (candidate("cp-1_a", 900, 300, Some(10)), &other, None, Remains::Suspected(DeathReason::Silent)),
            (candidate("cp-1_a", 900, 300, Some(21)), &other, None, Remains::Dead(DeathReason::Silent)),
            (candidate("cp-1_a", 900, 300, Some(21)), &other, Some("cp-1_a"), Remains::Leader),
            (candidate("cp-1_a", 900, 400, None), &other, None, Remains::Suspected(DeathReason::Overdue)),
            (candidate("cp-1_a", 9000, 1801, None), &other, None, Remains::Dead(DeathReason::Expired)),
            // It is back under another name.
            (candidate("cp-1_a", 900, 70, None), &next, None, Remains::Suspected(superseded())),
            (candidate("cp-1_a", 900, 70, Some(30)), &next, None, Remains::Dead(superseded())),
            (candidate("cp-1_a", 900, 50, None), &next, None, Remains::No),
            (candidate("cp-1_a", 30, 25, None), &next, None, Remains::No),
            (candidate("plain", 900, 70, None), &candidate("plain", 60, 3, None), None, Remains::No),
        ] {
            assert_eq!(remains(&it, &[&it, beside], leader, now), wanted, "{it:?}");
        }
    }
}
