//! Coordinated leader election (KEP-4355) as the controller in the kube-apiserver does it.
//!
//! 1. Candidates of a lease that renewed within half an hour take part. Before it decides, the
//!    controller pings them all; those that do not acknowledge that within five seconds are left out.
//! 2. The strategy is that of the candidate with the highest binary version. Where several have it
//!    and disagree, none is elected. (`v1alpha1`, in 1.31, had lists of preferences instead: the
//!    one strategy that no candidate puts below another.)
//! 3. `OldestEmulationVersion` elects the lowest emulation version, then the lowest binary version,
//!    then the oldest object. Any other strategy is left to some other controller. A `priority`
//!    above 0, where the API has it, goes before all of that.
//! 4. A lease that is free goes to the winner. On one that is held only `preferredHolder` is set:
//!    the leader stops renewing, and the lease goes to the winner when it has expired. What follows from
//!    that for a lease as it stands is in [`forecast`](super::forecast).
//!
//! Ages are compared by the second in which the objects were created. Candidates that are equal in
//! all of that are in no order at all: the controller may elect either at each sync, and
//! leadership flaps.
//!
//! What the controller will learn only by a ping is judged here by what is there: a candidate that did not
//! acknowledge the last one, did not renew when it should have, or was followed by another process on the same
//! host, is not counted on.

use std::{
    cmp::{Ordering, Reverse},
    collections::BTreeMap,
};

use jiff::Timestamp;
use serde::Serialize;

use super::{
    candidate::{Candidate, CandidateState},
    forecast::{Forecast, Stand},
    lease::Lease,
    priority::Priority,
    remains::is_superseded,
    strategy::{Strategy, strategy},
    time::ServerTime,
    trouble::Trouble,
    version::Version,
};

/// What put the best candidate before the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecisiveRule {
    /// There is only one.
    Alone,
    /// The higher priority.
    Priority,
    /// The lower emulation version.
    EmulationVersion,
    /// The lower binary version.
    BinaryVersion,
    /// The older object.
    Age,
    /// Nothing: they are equal.
    Tie,
}

/// Why a candidate does not take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Absence {
    /// Did not renew for half an hour, or never.
    Expired,
    /// Did not acknowledge the last ping.
    Silent,
    /// Did not renew when it should have.
    Overdue,
    /// Led, and let its lease expire.
    LostLead,
    /// A later process on its host is a candidate, and it has not renewed since.
    Superseded,
    /// A version that cannot be read.
    Version,
}

/// The leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leader {
    /// There is no lease yet.
    NoLease,
    /// The holder is null, which not every kube-apiserver survives.
    Null,
    /// The lease has no holder.
    Vacant,
    /// This holder; `None` where the lease does not say until when.
    Held {
        /// The holder identity.
        holder: String,
        /// When the lease expires; `None` where it does not say that.
        until: Option<Timestamp>,
        /// Whether the lease has not expired.
        valid: bool,
    },
}

impl Leader {
    fn of(lease: Option<&Lease>, now: ServerTime) -> Self {
        let Some(lease) = lease else { return Self::NoLease };
        match lease.spec.holder_identity.as_deref() {
            None => Self::Null,
            Some("") => Self::Vacant,
            Some(holder) => {
                let until = lease.expires();
                let valid = until.is_some_and(|until| until >= now.0);
                Self::Held { holder: holder.to_owned(), until, valid }
            }
        }
    }

    /// The holder of the lease, valid or not.
    pub fn holder(&self) -> Option<&str> {
        match self {
            Self::Held { holder, .. } => Some(holder),
            _ => None,
        }
    }

    /// The leader now.
    pub fn valid(&self) -> Option<&str> {
        match self {
            Self::Held { holder, valid: true, .. } => Some(holder),
            _ => None,
        }
    }
}

/// One election: a lease, and its candidates.
#[derive(Clone, Debug)]
pub struct CoordinatedElection<'a> {
    /// The namespace of the lease, and of its candidates.
    pub namespace: &'a str,
    /// The name of the lease. The API takes anything for it, line breaks too.
    pub name: &'a str,
    /// The candidates.
    pub candidates: Vec<&'a Candidate>,
    /// The lease, if there is one.
    pub lease: Option<&'a Lease>,
}

impl<'a> CoordinatedElection<'a> {
    /// How it stands.
    pub fn outlook(&self, now: ServerTime) -> Outlook<'a> {
        Outlook::new(&self.candidates, self.lease, now)
    }

    /// What no other election has.
    pub fn key(&self) -> (&'a str, &'a str) {
        (self.namespace, self.name)
    }
}

/// The elections that these candidates are for, in the order of their names.
pub fn elections<'a>(
    candidates: impl IntoIterator<Item = &'a Candidate>,
    leases: impl IntoIterator<Item = &'a Lease>,
) -> Vec<CoordinatedElection<'a>> {
    let mut all: BTreeMap<(&str, &str), CoordinatedElection<'_>> = BTreeMap::new();
    for candidate in candidates {
        let (namespace, name) = (candidate.metadata.namespace.as_str(), candidate.spec.lease_name.as_str());
        all.entry((namespace, name))
            .or_insert_with(|| CoordinatedElection { namespace, name, candidates: Vec::new(), lease: None })
            .candidates
            .push(candidate);
    }
    for lease in leases {
        if let Some(election) =
            all.get_mut(&(lease.metadata.namespace.as_str(), lease.metadata.name.as_str()))
        {
            election.lease = Some(lease);
        }
    }
    all.into_values().collect()
}

/// A candidate, and what becomes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender<'a> {
    /// The candidate.
    pub candidate: &'a Candidate,
    /// What its object says about its process.
    pub state: CandidateState,
    /// Why it does not take part, if it does not.
    pub absence: Option<Absence>,
    /// Whether it is the holder of the lease, expired or not.
    pub leads: bool,
    /// Would lead next. With a tie, all candidates that might.
    pub next: bool,
}

/// How an election would go.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlook<'a> {
    /// The candidates that take part, the best first, then those that do not.
    pub entries: Vec<Contender<'a>>,
    /// The strategy that the candidates agree on.
    pub strategy: Strategy,
    /// Whether the lease has a holder, and which.
    pub leader: Leader,
    /// The candidate that the leader is asked to step down for.
    pub preferred: Option<String>,
    /// What decides between the best two.
    pub rule: Option<DecisiveRule>,
    /// What the controller does next.
    pub forecast: Forecast,
    /// Whether the leader is no candidate, and was not elected by the controller.
    pub is_uncoordinated: bool,
    /// What keeps the election from going as it should.
    pub troubles: Vec<Trouble>,
}

impl<'a> Outlook<'a> {
    /// How the election of one lease stands at a moment.
    pub fn new(candidates: &[&'a Candidate], lease: Option<&Lease>, now: ServerTime) -> Self {
        let leader = Leader::of(lease, now);
        let mut entries: Vec<Contender<'a>> = candidates
            .iter()
            .map(|candidate| Contender {
                candidate,
                state: candidate.state(now),
                absence: absence(candidate, candidates, &leader, now),
                leads: leader.holder() == Some(candidate.name()),
                next: false,
            })
            .collect();
        let strategy = strategy(&with(&entries, |entry| entry.absence.is_none()));
        if strategy == Strategy::Oldest {
            for entry in entries.iter_mut().filter(|entry| entry.absence.is_none()) {
                entry.absence = (!is_readable(entry.candidate)).then_some(Absence::Version);
            }
        }
        entries.sort_by(|a, b| {
            let absent = |entry: &Contender<'_>| entry.absence.is_some();
            let names = || a.candidate.name().cmp(b.candidate.name());
            absent(a).cmp(&absent(b)).then_with(|| order(a.candidate, b.candidate)).then_with(names)
        });

        let preferred = lease.and_then(|lease| lease.spec.preferred_holder.clone());
        let preferred = preferred.filter(|preferred| !preferred.is_empty());
        let rule = rule(&with(&entries, |entry| entry.absence.is_none()));
        let stand = Stand {
            entries: &entries,
            leader: &leader,
            preferred: preferred.as_deref(),
            acquired: lease.is_some_and(|lease| lease.spec.acquire_time.is_some()),
            now,
        };
        let (forecast, is_uncoordinated) = (stand.forecast(), stand.is_uncoordinated());
        let storm = leader.valid().filter(|leader| forecast == Forecast::Stays && stand.is_needed(leader));
        let storm = storm.map(str::to_owned);
        // Where the leader stays: the candidate that would follow if it ended.
        let next =
            if forecast == Forecast::Stays { stand.without_holder() } else { forecast.names().to_vec() };
        for entry in &mut entries {
            entry.next = next.iter().any(|name| name == entry.candidate.name());
        }
        let mut outlook = Self {
            strategy,
            rule,
            troubles: Vec::new(),
            preferred,
            leader,
            entries,
            forecast,
            is_uncoordinated,
        };
        outlook.troubles = outlook.look_for_troubles(lease, storm.as_deref(), now);
        outlook
    }

    /// The candidates that take part, the best first.
    pub fn taking_part(&self) -> Vec<&'a Candidate> {
        with(&self.entries, |entry| entry.absence.is_none())
    }

    /// The one that would lead next, if that can be told.
    pub fn next(&self) -> Option<&'a Candidate> {
        let mut next = self.entries.iter().filter(|entry| entry.next);
        next.next().filter(|_| next.next().is_none()).map(|entry| entry.candidate)
    }

    /// Whether several candidates tie for the next leader.
    pub fn is_tied(&self) -> bool {
        self.entries.iter().filter(|entry| entry.next).count() > 1
    }

    /// Whether leadership is about to move although the leader is well: it was asked to step down, or there is
    /// a better one.
    pub fn is_moving(&self) -> bool {
        matches!(self.forecast, Forecast::Moves(_))
    }
}

impl Contender<'_> {
    /// Whether its process is taken for dead.
    pub fn is_dead(&self) -> bool {
        matches!(self.absence, Some(Absence::Expired | Absence::Silent | Absence::Overdue))
    }
}

pub(super) fn with<'a>(
    entries: &[Contender<'a>],
    wanted: impl Fn(&Contender<'a>) -> bool,
) -> Vec<&'a Candidate> {
    entries.iter().filter(|entry| wanted(entry)).map(|entry| entry.candidate).collect()
}

/// Whether a candidate can be elected by its versions.
pub(super) fn is_readable(candidate: &Candidate) -> bool {
    let readable = |text: &str| Version::parse(text).is_some();
    readable(&candidate.spec.emulation_version) && readable(&candidate.spec.binary_version)
}

/// `all` are the candidates of its lease.
fn absence(candidate: &Candidate, all: &[&Candidate], leader: &Leader, now: ServerTime) -> Option<Absence> {
    match candidate.state(now) {
        CandidateState::Expired => Some(Absence::Expired),
        CandidateState::Stale if candidate.owes_acknowledgement() => Some(Absence::Silent),
        CandidateState::Stale => Some(Absence::Overdue),
        // It may still acknowledge that, but it was not there before.
        CandidateState::Pending if candidate.is_overdue(now) => Some(Absence::Overdue),
        // One that gives up its lease when it ends is followed at once: it acknowledged a ping a moment ago, and as long
        // as the leader is the best it is not pinged again.
        _ if leader.valid() != Some(candidate.name()) && is_superseded(candidate, all) => {
            Some(Absence::Superseded)
        }
        // It was pinged since, or renewed: it is there. Otherwise a leader that lets its lease expire
        // has ended, or is about to.
        _ => match leader {
            Leader::Held { holder, valid: false, until: Some(until) }
                if holder == candidate.name() && candidate.spec.renew_time < Some(*until) =>
            {
                Some(Absence::LostLead)
            }
            _ => None,
        },
    }
}

/// The better one first; equal where nothing decides.
pub fn order(a: &Candidate, b: &Candidate) -> Ordering {
    compared(a, b).map_or(Ordering::Equal, |(ordering, _)| ordering)
}

fn compared(a: &Candidate, b: &Candidate) -> Option<(Ordering, DecisiveRule)> {
    let version = |text: &str| Version::parse(text).unwrap_or(Version::ZERO);
    let priority = |it: &Candidate| Reverse(it.spec.priority.unwrap_or(0).max(0));
    let emulation = |it: &Candidate| version(&it.spec.emulation_version);
    let binary = |it: &Candidate| version(&it.spec.binary_version);
    // The controller does not see that an emulation version stands for a priority; people do.
    let asked = |it: &Candidate| Priority::of(it).map(|priority| priority.value);
    let versions = if asked(a) == asked(b) { DecisiveRule::EmulationVersion } else { DecisiveRule::Priority };
    let created = |it: &Candidate| it.metadata.creation_timestamp;
    [
        (priority(a).cmp(&priority(b)), DecisiveRule::Priority),
        (emulation(a).cmp(&emulation(b)), versions),
        (binary(a).cmp(&binary(b)), DecisiveRule::BinaryVersion),
        (created(a).cmp(&created(b)), DecisiveRule::Age),
    ]
    .into_iter()
    .find(|(ordering, _)| ordering.is_ne())
}

/// The first of a sorted list and all that are equal to it.
pub(super) fn equals<'a, 'b>(sorted: &'b [&'a Candidate]) -> &'b [&'a Candidate] {
    let first = sorted.first();
    let count = sorted.iter().take_while(|other| first.is_some_and(|first| order(first, other).is_eq()));
    &sorted[..count.count()]
}

fn rule(sorted: &[&Candidate]) -> Option<DecisiveRule> {
    match sorted {
        [] => None,
        [_] => Some(DecisiveRule::Alone),
        [first, second, ..] => Some(compared(first, second).map_or(DecisiveRule::Tie, |(_, rule)| rule)),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::rules::{
        forecast::FORCED_AFTER,
        lease::Metadata,
        priority::{self, How},
        strategy::OLDEST,
    };
    use jiff::SignedDuration;
    use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};
    use proptest::prelude::{Just, Strategy as _, prop_assert, prop_assert_eq, prop_oneof, proptest};

    pub(crate) fn now() -> ServerTime {
        ServerTime(Timestamp::UNIX_EPOCH + SignedDuration::from_hours(500_000))
    }

    pub(crate) fn ago(seconds: i64) -> Timestamp {
        now().0 - SignedDuration::from_secs(seconds)
    }

    /// A candidate that is well: `name`, binary version, emulation version, age in seconds.
    pub(crate) fn candidate(name: &str, binary: &str, emulation: &str, age: i64) -> Candidate {
        Candidate {
            metadata: Metadata {
                name: name.to_owned(),
                creation_timestamp: Some(ago(age)),
                ..Metadata::default()
            },
            spec: super::super::candidate::LeaseCandidateSpec {
                lease_name: "component".into(),
                renew_time: Some(ago(10)),
                ping_time: Some(ago(11)),
                binary_version: binary.to_owned(),
                emulation_version: emulation.to_owned(),
                strategy: OLDEST.to_owned(),
                ..Default::default()
            },
        }
    }

    pub(crate) fn held_by(holder: &str, renewed: i64) -> Lease {
        Lease {
            spec: LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                lease_duration_seconds: Some(15),
                renew_time: Some(MicroTime(ago(renewed))),
                strategy: Some(OLDEST.to_owned()),
                ..LeaseSpec::default()
            },
            ..Lease::default()
        }
    }

    pub(crate) fn outlook<'a>(candidates: &'a [Candidate], lease: Option<&Lease>) -> Outlook<'a> {
        let candidates: Vec<_> = candidates.iter().collect();
        Outlook::new(&candidates, lease, now())
    }

    fn next(candidates: &[Candidate], lease: Option<&Lease>) -> Option<String> {
        outlook(candidates, lease).next().map(|next| next.name().to_owned())
    }

    /// The winner when the lease is free.
    pub(crate) fn winner(candidates: &[Candidate]) -> Option<String> {
        next(candidates, None)
    }

    /// The tables of the proposal: binary version, emulation version, priority, and the leader.
    #[test]
    fn the_scenarios_of_the_proposal() {
        type Row = (&'static str, &'static str, i32);
        let scenarios: [(&str, [Row; 3], &str); 6] = [
            ("initial", [("1.0.0", "1.0.0", 0), ("1.0.0", "1.0.0", 0), ("1.0.0", "1.0.0", 0)], "C1"),
            (
                "during the upgrade",
                [("2.0.0", "2.0.0", 0), ("2.0.0", "1.0.0", 0), ("2.0.0", "1.0.0", 0)],
                "C2",
            ),
            ("priority set", [("2.0.0", "2.0.0", 100), ("2.0.0", "1.0.0", 0), ("2.0.0", "1.0.0", 0)], "C1"),
            ("completed", [("2.0.0", "2.0.0", 100), ("2.0.0", "2.0.0", 0), ("2.0.0", "2.0.0", 0)], "C1"),
            // C1 is being rolled back: its priority is unset while it is still the newer one.
            ("rollback", [("2.0.0", "2.0.0", 0), ("2.0.0", "1.0.0", 0), ("2.0.0", "1.0.0", 0)], "C2"),
            // C1 was replaced by a new candidate: the priority went with the old one.
            ("persistence", [("2.1.0", "2.1.0", 0), ("2.0.0", "2.0.0", 0), ("2.0.0", "2.0.0", 0)], "C2"),
        ];
        for (name, rows, leader) in scenarios {
            let plain: Vec<_> = rows
                .iter()
                .zip(["C1", "C2", "C3"])
                .zip([300, 200, 100])
                .map(|(((binary, emulation, _), name), age)| candidate(name, binary, emulation, age))
                .collect();
            let mut native = plain.clone();
            let mut pinned = plain.clone();
            for (n, (.., value)) in rows.iter().enumerate() {
                native[n].spec.priority = Some(*value);
                pinned[n] =
                    priority::imagine(&plain[n], Some(*value).filter(|value| *value > 0), How::Pinned);
            }
            assert_eq!(winner(&native).as_deref(), Some(leader), "{name}, native");
            assert_eq!(winner(&pinned).as_deref(), Some(leader), "{name}, pinned");
        }
    }

    #[test]
    fn what_decides_is_named() {
        let cases = [
            (vec![candidate("a", "1.37.1", "1.37.0", 9)], Some(DecisiveRule::Alone), Some("a")),
            (
                vec![candidate("a", "1.38.0", "1.38.0", 9), candidate("b", "1.38.0", "1.37.0", 5)],
                Some(DecisiveRule::EmulationVersion),
                Some("b"),
            ),
            (
                vec![candidate("a", "1.38.0", "1.37.0", 9), candidate("b", "1.37.1", "1.37.0", 5)],
                Some(DecisiveRule::BinaryVersion),
                Some("b"),
            ),
            (
                vec![candidate("a", "1.37.1", "1.37.0", 5), candidate("b", "1.37.1", "1.37.0", 9)],
                Some(DecisiveRule::Age),
                Some("b"),
            ),
            (
                vec![candidate("a", "1.37.1", "1.37.0", 9), candidate("b", "1.37.1", "1.37.0", 9)],
                Some(DecisiveRule::Tie),
                None,
            ),
            (
                vec![
                    candidate("a", "1.37.1", "1.37.0", 9),
                    priority::imagine(&candidate("b", "1.37.1", "1.37.0", 5), Some(1), How::Pinned),
                ],
                Some(DecisiveRule::Priority),
                Some("b"),
            ),
            (vec![], None, None),
        ];
        for (candidates, rule, wins) in cases {
            assert_eq!(outlook(&candidates, None).rule, rule, "{candidates:?}");
            assert_eq!(winner(&candidates).as_deref(), wins, "{candidates:?}");
        }
    }

    #[test]
    fn who_does_not_take_part_and_why() {
        let best = candidate("best", "1.0.0", "1.0.0", 900);
        let spec = |change: fn(&mut super::super::candidate::LeaseCandidateSpec)| {
            let mut changed = best.clone();
            change(&mut changed.spec);
            changed
        };
        let cases = [
            (spec(|spec| spec.renew_time = Some(ago(1801))), Some(Absence::Expired)),
            (spec(|spec| spec.renew_time = None), Some(Absence::Expired)),
            (spec(|spec| spec.ping_time = Some(ago(6))), Some(Absence::Silent)),
            (spec(|spec| spec.ping_time = Some(ago(3))), None),
            (spec(|spec| spec.ping_time = None), None),
            (
                spec(|spec| (spec.renew_time, spec.ping_time) = (Some(ago(400)), Some(ago(3)))),
                Some(Absence::Overdue),
            ),
            (
                spec(|spec| (spec.renew_time, spec.ping_time) = (Some(ago(400)), Some(ago(401)))),
                Some(Absence::Overdue),
            ),
            (spec(|spec| spec.emulation_version = "one".into()), Some(Absence::Version)),
            (spec(|spec| spec.binary_version = String::new()), Some(Absence::Version)),
            (spec(|spec| spec.emulation_version = "v1".into()), None),
        ];
        for (changed, absence) in cases {
            let all = [changed.clone(), candidate("other", "1.37.1", "1.37.0", 5)];
            let outlook = outlook(&all, None);
            let entry = outlook.entries.iter().find(|entry| entry.candidate.name() == "best").unwrap();
            assert_eq!(entry.absence, absence, "{changed:?}");
            let wins = if absence.is_none() { "best" } else { "other" };
            assert_eq!(outlook.next().unwrap().name(), wins, "{changed:?}");
        }
    }

    /// A later process on the same host tells that the one before it has ended, unless that leads or has
    /// renewed since.
    #[test]
    fn a_candidate_that_was_superseded_on_its_host_does_not_take_part() {
        let all = |renewed: i64| {
            let mut all = [
                candidate("cp-1_old", "1.37.1", "1.37.0", 900),
                candidate("cp-1_new", "1.37.1", "1.37.0", 60),
                candidate("cp-2_1", "1.37.1", "1.37.0", 500),
            ];
            (all[0].spec.renew_time, all[0].spec.ping_time) = (Some(ago(renewed)), None);
            all
        };
        let superseded = Some(Absence::Superseded);
        for (renewed, lease, absence, next) in [
            (70, None, superseded, "cp-2_1"),
            (50, None, None, "cp-1_old"),
            (70, Some(held_by("", 1)), superseded, "cp-2_1"),
            (70, Some(held_by("cp-2_1", 1)), superseded, "cp-1_new"),
            (50, Some(held_by("cp-2_1", 1)), None, "cp-1_old"),
            (70, Some(held_by("cp-1_old", 1)), None, "cp-2_1"),
            (70, Some(held_by("cp-1_old", 20)), superseded, "cp-2_1"),
        ] {
            let all = all(renewed);
            let outlook = outlook(&all, lease.as_ref());
            let entry = outlook.entries.iter().find(|entry| entry.candidate.name() == "cp-1_old").unwrap();
            assert_eq!(entry.absence, absence, "renewed {renewed} ago, {lease:?}");
            assert_eq!(outlook.next().map(Candidate::name), Some(next), "renewed {renewed} ago, {lease:?}");
        }
        // It is the oldest, but there is no process behind it that could lead.
        let all = all(70);
        assert_eq!(outlook(&all, Some(&held_by("cp-2_1", 1))).forecast, Forecast::Stays);
        assert_eq!(
            outlook(&all, Some(&held_by("cp-1_new", 1))).forecast,
            Forecast::Moves(vec!["cp-2_1".into()])
        );
    }

    #[test]
    fn next_is_who_would_follow() {
        let all = [
            candidate("a", "1.37.1", "1.37.0", 30),
            candidate("b", "1.37.1", "1.37.0", 20),
            candidate("c", "1.37.1", "1.37.0", 10),
        ];
        let mut without_holder = held_by("", 1);
        assert_eq!(next(&all, None).as_deref(), Some("a"), "no lease");
        assert_eq!(next(&all, Some(&without_holder)).as_deref(), Some("a"), "it has no holder");
        without_holder.spec.holder_identity = None;
        assert_eq!(next(&all, Some(&without_holder)), None, "null");
        assert_eq!(next(&all, Some(&held_by("a", 1))).as_deref(), Some("b"), "the best leads: the second");
        assert_eq!(next(&all, Some(&held_by("b", 1))).as_deref(), Some("a"), "another leads: the best");
        assert_eq!(next(&all, Some(&held_by("x", 1))).as_deref(), Some("a"), "a stranger leads");
        // Its lease expired five seconds ago, and it has not renewed since.
        assert_eq!(next(&all, Some(&held_by("a", 20))).as_deref(), Some("b"), "the best is gone");
        assert_eq!(next(&all, Some(&held_by("b", 40))).as_deref(), Some("a"), "another held it");
        assert_eq!(next(&all[..1], Some(&held_by("a", 1))), None, "there is no other candidate");
        // Asked to step down, it stops renewing, and nothing takes that back.
        let mut leaving = held_by("a", 1);
        leaving.spec.preferred_holder = Some("c".into());
        assert_eq!(next(&all, Some(&leaving)).as_deref(), Some("b"), "the best of the others");
        leaving.spec.preferred_holder = Some("a".into());
        assert!(!outlook(&all, Some(&leaving)).is_moving());
        assert!(outlook(&all, Some(&held_by("b", 1))).is_moving());
        assert!(!outlook(&all, Some(&held_by("a", 1))).is_moving());
        assert!(!outlook(&all, Some(&held_by("a", 40))).is_moving());
    }

    /// As long as the leader is well the controller asks all that have not expired for their
    /// strategy, whether they acknowledge pings or not.
    #[test]
    fn a_silent_candidate_with_another_strategy_keeps_the_leader() {
        let mut all = [
            candidate("a", "1.37.1", "1.36.0", 30),
            candidate("b", "1.37.1", "1.37.0", 20),
            candidate("dead", "1.38.0", "1.38.0", 10),
        ];
        all[2].spec.strategy = "x.io/y".into();
        all[2].spec.ping_time = Some(ago(6));
        let blocked = outlook(&all, Some(&held_by("b", 1)));
        assert!(!blocked.is_moving());
        assert_eq!(blocked.next().map(Candidate::name), Some("a"), "when the leader goes");
        let until = Some(ago(10) + FORCED_AFTER);
        assert_eq!(blocked.troubles, [Trouble::Blocked { candidates: vec!["dead".into()], until }]);
        assert_eq!(next(&all, Some(&held_by("b", 40))).as_deref(), Some("a"), "now that it went");
        // From a quarter of an hour on the controller elects all the same, among those that acknowledge pings.
        all[2].spec.renew_time = Some(ago(901));
        let forced = outlook(&all, Some(&held_by("b", 1)));
        assert_eq!(forced.forecast, Forecast::Moves(vec!["a".into()]));
        assert_eq!(forced.troubles, [], "and nothing is in its way");
    }

    /// When it is gone, the strategy is that of the remaining candidates.
    #[test]
    fn a_leader_on_its_way_out_has_no_say_in_the_strategy() {
        let mut all = vec![candidate("a", "1.37.1", "1.36.0", 30), candidate("b", "1.38.0", "1.38.0", 20)];
        all[0].spec.strategy = "x.io/y".into();
        let mut lease = held_by("b", 1);
        assert_eq!(next(&all, Some(&lease)).as_deref(), Some("a"), "it stays until it is asked to go");
        lease.spec.preferred_holder = Some("a".into());
        assert_eq!(next(&all, Some(&lease)), None, "asked to step down");
        lease.spec.preferred_holder = None;
        let mut dead = candidate("dead", "1.39.0", "1.39.0", 10);
        dead.spec.strategy = "x.io/y".into();
        dead.spec.ping_time = Some(ago(6));
        all.push(dead);
        assert_eq!(next(&all, Some(&lease)), None, "kept by a silent candidate until it goes by itself");
    }

    /// Versions are asked of all that would be elected by them, whatever their own strategy is.
    #[test]
    fn who_has_no_versions_cannot_be_elected_by_them() {
        let mut all = [candidate("a", "1.36.0", "", 30), candidate("b", "1.37.1", "1.37.0", 20)];
        all[0].spec.strategy = "x.io/y".into();
        assert_eq!(winner(&all).as_deref(), Some("b"));
        assert_eq!(outlook(&all, None).entries[1].absence, Some(Absence::Version));
        all[1].spec.strategy = "x.io/y".into();
        assert!(
            outlook(&all, None).entries.iter().all(|entry| entry.absence.is_none()),
            "versions are not asked for"
        );
    }

    #[test]
    fn with_a_tie_no_candidate_is_certain_to_be_next() {
        let tied = [candidate("a", "1.37.1", "1.37.0", 9), candidate("b", "1.37.1", "1.37.0", 9)];
        let free = outlook(&tied, None);
        assert!(free.is_tied() && free.next().is_none(), "{free:?}");
        assert!(free.entries.iter().all(|entry| entry.next));
    }

    fn any_candidates() -> impl proptest::strategy::Strategy<Value = Vec<(Candidate, i32)>> {
        let version = || prop_oneof![Just("1.36.0"), Just("1.37.0"), Just("1.37.1"), Just("1.38.0-alpha.1")];
        let one = (version(), version(), 1_i64..100, prop_oneof![Just(0), 1..4]);
        proptest::collection::vec(one, 1..7).prop_map(|all| {
            all.into_iter()
                .enumerate()
                .map(|(n, (binary, emulation, age, priority))| {
                    (candidate(&format!("c{n}"), binary, emulation, age), priority)
                })
                .collect()
        })
    }

    proptest! {
        /// Priorities by the field and by pins put the candidates in the same order, that of the
        /// proposal; and the first one beats every other one by one.
        #[test]
        fn pins_elect_the_same_candidate_as_the_field(all in any_candidates()) {
            let native: Vec<_> = all.iter().map(|(candidate, priority)| {
                let mut candidate = candidate.clone();
                candidate.spec.priority = Some(*priority);
                candidate
            }).collect();
            let pinned: Vec<_> = all.iter().map(|(candidate, priority)| {
                priority::imagine(candidate, Some(*priority).filter(|priority| *priority > 0), How::Pinned)
            }).collect();
            let names = |candidates: &[Candidate]| -> Vec<String> {
                outlook(candidates, None).taking_part().iter().map(|it| it.name().to_owned()).collect()
            };
            prop_assert_eq!(names(&native), names(&pinned));
            prop_assert_eq!(winner(&native), winner(&pinned));
            let highest = all.iter().map(|(_, priority)| *priority).max().unwrap();
            if let Some(name) = winner(&native) {
                let (first, priority) = all.iter().find(|(it, _)| it.name() == name).unwrap();
                prop_assert_eq!(*priority, highest);
                for (other, _) in all.iter().filter(|(it, priority)| *priority == highest && it.name() != name) {
                    prop_assert!(order(first, other).is_lt());
                }
            }
        }
    }
}
