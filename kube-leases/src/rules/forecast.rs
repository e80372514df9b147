//! What the election controller does next with a lease, as its source in the kube-apiserver says.
//!
//! - It elects where there is no lease, no holder or an expired lease, where a candidate has not renewed for
//!   15 minutes, and where the best of all unexpired candidates, dead or alive, is not the holder.
//! - Elected is the best of those that acknowledged their ping. A lease without a holder, or an expired one of
//!   **another** holder, goes to it. On a valid lease only `preferredHolder` is set.
//! - A leader as client-go has it does not renew while there is a `preferredHolder`, be it its own name. Nothing
//!   takes that field back: the lease expires, and the process of the leader usually ends.
//! - An expired lease whose own holder is the best again is left as it is. Unless the process of the holder
//!   ends, or another candidate becomes better, that lease has no leader for good: it is **stuck**.
//! - A leader that is no candidate and has an `acquireTime` runs without coordinated election: it writes over
//!   the `preferredHolder` at each renewal, and stays.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};
use serde::Serialize;

use super::{
    candidate::{ACKNOWLEDGES_WITHIN, Candidate, CandidateState},
    election::{Absence, Contender, Leader, Outlook, equals, is_readable},
    lease::{Lease, host},
    priority::{self, How},
    strategy::{Strategy, strategy},
    time::ServerTime,
};

/// A candidate that did not renew for so long makes the controller elect, whichever leads.
pub const FORCED_AFTER: SignedDuration = SignedDuration::from_mins(15);
/// The duration of a lease as the controller writes it, in seconds: until the one that it elected renews.
pub const ELECTED_FOR: i32 = 5;
/// An expired holder that has not ended by then does not end: client-go gives up before its lease expires.
const ENDED_WITHIN: SignedDuration = SignedDuration::from_secs(10);
/// A holder that was not asked to step down may come back under the same name, and renew.
const BACK_WITHIN: SignedDuration = SignedDuration::from_secs(20);

/// What happens next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forecast {
    /// The leader stays as long as it renews.
    Stays,
    /// The leader is asked to step down, or was: one of these follows.
    Moves(Vec<String>),
    /// There is no leader, and one of these is elected.
    Elects(Vec<String>),
    /// It depends, and one of these may be the next.
    Open(Doubt, Vec<String>),
    /// The holder of the expired lease is the best candidate: none is elected.
    Stuck,
    /// None is elected: there is no candidate, or no strategy that Kubernetes follows.
    Nothing,
}

/// On what it depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// The leader is equal to them: the controller may elect either at each sync.
    Tie,
    /// The holder is the best, and does not renew: one of them is elected if its process ends, else none.
    HolderEnds,
    /// The holder does not renew, and is equal to them: at each sync the controller may elect either, and
    /// elects none when it takes the holder. That can go on for minutes.
    HolderTied,
    /// The leader is no candidate: it may step down when it is asked to, or not.
    NoCandidate,
    /// The process of a better candidate ended so short a time ago that the controller may still elect it. The
    /// leader is then asked to step down, and one of these follows.
    JustEnded,
}

impl Forecast {
    /// The candidates that come next by it.
    pub fn names(&self) -> &[String] {
        match self {
            Self::Moves(names) | Self::Elects(names) | Self::Open(_, names) => names,
            Self::Stays | Self::Stuck | Self::Nothing => &[],
        }
    }

    /// Whether there is no leader, or soon none, unless the holder's process ends.
    pub fn needs_the_holder_to_end(&self) -> bool {
        matches!(self, Self::Stuck | Self::Open(Doubt::HolderEnds | Doubt::HolderTied, _))
    }

    /// Whether a write that leads from this to `after` can leave the lease without a leader: the holder was
    /// asked to step down, or is about to be, and would be the best again.
    pub fn strands(&self, after: &Self) -> Option<Strands> {
        if after.needs_the_holder_to_end() && !self.needs_the_holder_to_end() {
            return Some(Strands::AskedToStepDown);
        }
        let takes_back =
            matches!(self, Self::Moves(_)) && matches!(after, Self::Stays | Self::Open(Doubt::JustEnded, _));
        takes_back.then_some(Strands::AboutToBe)
    }
}

/// How far the handover has come that a write would take back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strands {
    /// The holder does not renew any more.
    AskedToStepDown,
    /// The controller may have decided already, and writes it a moment later.
    AboutToBe,
}

/// What follows when a priority is cleared again, once its candidate leads. The process of the leader before
/// it, `from`, has ended, and is back under a new name as the youngest; here it is called as its host.
pub fn after_clearing(
    candidates: &[&Candidate],
    cleared: &Candidate,
    from: Option<&str>,
    now: ServerTime,
) -> Forecast {
    let leads = cleared.name();
    let alive = |it: &Candidate| {
        let mut it = it.clone();
        (it.spec.renew_time, it.spec.ping_time) = (Some(now.0), None);
        it
    };
    let then: Vec<Candidate> = candidates
        .iter()
        .map(|it| match it.name() {
            name if name == leads => alive(cleared),
            name if Some(name) == from => {
                let mut back = alive(it);
                host(name).clone_into(&mut back.metadata.name);
                back.metadata.creation_timestamp = Some(now.0);
                // A priority is lost with the old name.
                priority::imagine(&back, None, How::Pinned)
            }
            _ => (*it).clone(),
        })
        .collect();
    let lease = Lease {
        spec: LeaseSpec {
            holder_identity: Some(leads.to_owned()),
            lease_duration_seconds: Some(15),
            renew_time: Some(MicroTime(now.0)),
            ..LeaseSpec::default()
        },
        ..Lease::default()
    };
    Outlook::new(&then.iter().collect::<Vec<_>>(), Some(&lease), now).forecast
}

/// How a lease stands.
pub(super) struct Stand<'s, 'a> {
    pub entries: &'s [Contender<'a>],
    pub leader: &'s Leader,
    /// The candidate that the leader is asked to step down for.
    pub preferred: Option<&'s str>,
    /// Whether the holder wrote an `acquireTime`, which coordinated election never has.
    pub acquired: bool,
    pub now: ServerTime,
}

impl<'a> Stand<'_, 'a> {
    /// Whether the leader is no candidate and elects itself.
    pub fn is_uncoordinated(&self) -> bool {
        self.leader.valid().is_some() && self.acquired && !self.entries.iter().any(|entry| entry.leads)
    }

    pub fn is_leaving(&self) -> bool {
        self.leader.valid().is_some() && self.preferred.is_some()
    }

    pub fn forecast(&self) -> Forecast {
        match self.leader {
            // It ends the kube-apiserver that elects.
            Leader::Null => Forecast::Nothing,
            Leader::NoLease | Leader::Vacant => elects(self.winners(|_| true)),
            Leader::Held { valid: true, holder, .. } => self.of_valid(holder),
            Leader::Held { holder, until, .. } => self.of_expired(holder, *until),
        }
    }

    /// The candidates that would be elected if the holder were gone.
    pub fn without_holder(&self) -> Vec<String> {
        self.winners(|entry| !entry.leads)
    }

    fn of_valid(&self, holder: &str) -> Forecast {
        if self.is_uncoordinated() {
            return Forecast::Stays;
        }
        let candidate = self.entries.iter().any(|entry| entry.leads);
        let forecast = if self.is_leaving() {
            match self.after_the_end(holder) {
                Forecast::Elects(names) => Forecast::Moves(names),
                other => other,
            }
        } else if !self.is_needed(holder) {
            Forecast::Stays
        } else {
            let (leader, others): (Vec<_>, Vec<_>) =
                self.winners(|_| true).into_iter().partition(|name| name == holder);
            match (leader.is_empty(), others.is_empty()) {
                (_, true) if self.elects_an_ended_one() => {
                    Forecast::Open(Doubt::JustEnded, self.without_holder())
                }
                (_, true) => Forecast::Stays,
                (true, false) => Forecast::Moves(others),
                (false, false) => Forecast::Open(Doubt::Tie, others),
            }
        };
        match forecast {
            Forecast::Moves(names) if !candidate => Forecast::Open(Doubt::NoCandidate, names),
            other => other,
        }
    }

    fn of_expired(&self, holder: &str, until: Option<jiff::Timestamp>) -> Forecast {
        let lives = self.entries.iter().any(|entry| entry.leads && is_voting(entry));
        if !lives {
            return self.after_the_end(holder);
        }
        // It renewed after the end of its lease.
        let all = self.winners(|_| true);
        if all.is_empty() {
            return Forecast::Nothing;
        }
        let (tied, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|name| name == holder);
        match (tied.is_empty(), others.is_empty()) {
            (true, _) => return Forecast::Elects(others),
            (false, false) => return Forecast::Open(Doubt::HolderTied, others),
            (false, true) => {}
        }
        let limit = if self.preferred.is_some() { ENDED_WITHIN } else { BACK_WITHIN };
        if until.is_none_or(|until| self.now.since(until) > limit) {
            return Forecast::Stuck;
        }
        Forecast::Open(Doubt::HolderEnds, self.without_holder())
    }

    /// Once the lease has expired: by then the process of the holder has usually ended.
    fn after_the_end(&self, holder: &str) -> Forecast {
        let ended = self.without_holder();
        // A leader that has not renewed since may still acknowledge a ping.
        let may_live = |entry: &Contender<'_>| entry.leads && entry.absence == Some(Absence::LostLead);
        let alive = self.winners_among(|entry| is_voting(entry) || may_live(entry));
        let others: BTreeSet<String> = alive.iter().filter(|name| *name != holder).cloned().collect();
        match (alive.is_empty(), ended.is_empty()) {
            (true, true) => Forecast::Nothing,
            (_, false) if !others.is_empty() => {
                let tied = alive.len() > others.len();
                let all: BTreeSet<String> = others.into_iter().chain(ended).collect();
                let all: Vec<String> = all.into_iter().collect();
                if tied { Forecast::Open(Doubt::HolderTied, all) } else { Forecast::Elects(all) }
            }
            _ => Forecast::Open(Doubt::HolderEnds, ended),
        }
    }

    /// Whether the controller elects although the leader is well. Those that are dead and have not expired
    /// have a say in that.
    pub fn is_needed(&self, leader: &str) -> bool {
        let unexpired: Vec<&Contender<'a>> =
            self.entries.iter().filter(|entry| entry.state != CandidateState::Expired).collect();
        if unexpired.iter().any(|entry| is_forced(entry.candidate, self.now)) {
            return true;
        }
        let all: Vec<&Candidate> = unexpired.iter().map(|entry| entry.candidate).collect();
        if strategy(&all) != Strategy::Oldest {
            return false;
        }
        let best = best(&all);
        best.len() > 1 || best.iter().any(|best| best.name() != leader)
    }

    /// Whether the controller would take one for the best whose process has ended: it does not ping those that
    /// renewed within the last five seconds.
    fn elects_an_ended_one(&self) -> bool {
        let unpinged = |entry: &Contender<'a>| {
            let renewed = entry.candidate.spec.renew_time;
            entry.absence == Some(Absence::Superseded)
                && renewed.is_some_and(|renewed| self.now.since(renewed) < ACKNOWLEDGES_WITHIN)
        };
        let winners = self.winners_among(|entry| is_voting(entry) || unpinged(entry));
        self.entries
            .iter()
            .any(|entry| unpinged(entry) && winners.iter().any(|name| name == entry.candidate.name()))
    }

    fn winners(&self, wanted: impl Fn(&Contender<'a>) -> bool) -> Vec<String> {
        self.winners_among(|entry| is_voting(entry) && wanted(entry))
    }

    fn winners_among(&self, wanted: impl Fn(&Contender<'a>) -> bool) -> Vec<String> {
        let voting: Vec<&Candidate> =
            self.entries.iter().filter(|entry| wanted(entry)).map(|entry| entry.candidate).collect();
        if strategy(&voting) != Strategy::Oldest {
            return Vec::new();
        }
        best(&voting).iter().map(|candidate| candidate.name().to_owned()).collect()
    }
}

/// A candidate that cannot be elected for its versions has a say in the strategy.
fn is_voting(entry: &Contender<'_>) -> bool {
    matches!(entry.absence, None | Some(Absence::Version))
}

/// The best of these, and all that are equal to it.
fn best<'a>(candidates: &[&'a Candidate]) -> Vec<&'a Candidate> {
    let mut sorted: Vec<&Candidate> = candidates.iter().copied().filter(|it| is_readable(it)).collect();
    sorted.sort_by(|a, b| super::election::order(a, b));
    equals(&sorted).to_vec()
}

/// Whether a candidate has not renewed for so long that the controller elects because of it.
pub fn is_forced(candidate: &Candidate, now: ServerTime) -> bool {
    candidate.spec.renew_time.is_some_and(|renewed| now.since(renewed) > FORCED_AFTER)
}

fn elects(names: Vec<String>) -> Forecast {
    if names.is_empty() { Forecast::Nothing } else { Forecast::Elects(names) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{candidate::LeaseCandidateSpec, lease::Metadata, strategy::OLDEST};
    use jiff::Timestamp;

    fn now() -> ServerTime {
        ServerTime(Timestamp::UNIX_EPOCH + SignedDuration::from_hours(500_000))
    }

    fn ago(seconds: i64) -> Timestamp {
        now().0 - SignedDuration::from_secs(seconds)
    }

    /// Its age in seconds, when it last renewed, and when it was pinged.
    fn candidate(name: &str, age: i64, renewed: i64, pinged: Option<i64>) -> Candidate {
        Candidate {
            metadata: Metadata {
                name: name.to_owned(),
                creation_timestamp: Some(ago(age)),
                ..Metadata::default()
            },
            spec: LeaseCandidateSpec {
                renew_time: Some(ago(renewed)),
                ping_time: pinged.map(ago),
                binary_version: "1.37.1".into(),
                emulation_version: "1.37.0".into(),
                strategy: OLDEST.to_owned(),
                ..LeaseCandidateSpec::default()
            },
        }
    }

    fn lease(holder: &str, renewed: i64, preferred: &str) -> Lease {
        Lease {
            spec: LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                lease_duration_seconds: Some(15),
                renew_time: Some(MicroTime(ago(renewed))),
                preferred_holder: Some(preferred.to_owned()).filter(|preferred| !preferred.is_empty()),
                strategy: Some(OLDEST.to_owned()),
                ..LeaseSpec::default()
            },
            ..Lease::default()
        }
    }

    fn forecast(candidates: &[Candidate], lease: &Lease) -> Forecast {
        let all: Vec<_> = candidates.iter().collect();
        Outlook::new(&all, Some(lease), now()).forecast
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn ends(next: &[&str]) -> Forecast {
        Forecast::Open(Doubt::HolderEnds, names(next))
    }

    /// a is the best, then b, then c; all acknowledged a ping a second ago unless said otherwise.
    #[test]
    fn what_happens_next_follows_from_the_lease_and_from_acknowledgements() {
        let well = || [candidate("a", 30, 1, None), candidate("b", 20, 1, None), candidate("c", 10, 1, None)];
        let moves = |to: &[&str]| Forecast::Moves(names(to));
        let elects = |to: &[&str]| Forecast::Elects(names(to));
        for (lease, wanted, why) in [
            (lease("a", 1, ""), Forecast::Stays, "the best leads"),
            (lease("a", 1, "a"), ends(&["b"]), "asked to step down for itself, it does not renew either"),
            (lease("b", 1, ""), moves(&["a"]), "there is a better one"),
            (lease("b", 1, "a"), moves(&["a"]), "it was asked to"),
            (lease("b", 1, "c"), moves(&["a"]), "the election when it has expired decides"),
            (lease("a", 1, "b"), ends(&["b"]), "the best was asked to step down"),
            (lease("", 1, "b"), elects(&["a"]), "released"),
            (lease("b", 17, "a"), elects(&["a"]), "expired"),
            (lease("a", 17, "b"), ends(&["b"]), "renewed since it expired, two seconds ago"),
            (lease("a", 26, "b"), Forecast::Stuck, "its process lives on"),
            (lease("a", 34, ""), ends(&["b"]), "it may still renew by itself"),
            (lease("a", 36, ""), Forecast::Stuck, "it does not"),
            (lease("x", 17, ""), elects(&["a"]), "who held it is no candidate"),
            (lease("x", 1, ""), Forecast::Open(Doubt::NoCandidate, names(&["a"])), "a stranger leads"),
        ] {
            assert_eq!(forecast(&well(), &lease), wanted, "{why}");
        }
        let mut uncoordinated = lease("x", 1, "a");
        uncoordinated.spec.acquire_time = Some(MicroTime(ago(100)));
        assert_eq!(forecast(&well(), &uncoordinated), Forecast::Stays, "without coordinated election");
        uncoordinated.spec.renew_time = Some(MicroTime(ago(16)));
        assert_eq!(forecast(&well(), &uncoordinated), elects(&["a"]), "and gone");
        let mut null = lease("", 1, "");
        null.spec.holder_identity = None;
        assert_eq!(forecast(&well(), &null), Forecast::Nothing);
        assert_eq!(forecast(&[], &lease("a", 1, "")), Forecast::Stays);
        assert_eq!(forecast(&[], &lease("a", 16, "")), Forecast::Nothing);
    }

    #[test]
    fn an_expired_holder_is_never_elected_again() {
        // Not renewed since: it may have ended, or acknowledge the next ping.
        let all = [candidate("a", 30, 5, Some(6)), candidate("b", 20, 1, None)];
        assert_eq!(forecast(&all, &lease("a", 18, "b")), ends(&["b"]));
        assert_eq!(forecast(&all[..1], &lease("a", 18, "b")), ends(&[]), "there is no other candidate");
        // It did not acknowledge the ping.
        let all = [candidate("a", 30, 20, Some(6)), candidate("b", 20, 1, None)];
        assert_eq!(forecast(&all, &lease("a", 34, "b")), Forecast::Elects(names(&["b"])));
        assert_eq!(forecast(&all[..1], &lease("a", 34, "b")), Forecast::Nothing);
        // One equal to it gets its turn, at some look.
        let mut all = [candidate("a", 30, 1, None), candidate("b", 30, 1, None)];
        let tied = Forecast::Open(Doubt::HolderTied, names(&["b"]));
        assert_eq!(forecast(&all, &lease("a", 60, "")), tied);
        assert_eq!(forecast(&all, &lease("a", 1, "b")), tied);
        all[0].spec = candidate("a", 30, 20, Some(6)).spec;
        assert_eq!(forecast(&all, &lease("a", 60, "")), Forecast::Elects(names(&["b"])), "it has ended");
    }

    /// Ties are those of the successors.
    #[test]
    fn equals_of_the_leader_follow_it_and_several_of_them_are_a_tie() {
        let all = |ages: [i64; 3]| {
            [
                candidate("a", ages[0], 1, None),
                candidate("b", ages[1], 1, None),
                candidate("c", ages[2], 1, None),
            ]
        };
        let tie = |names_: &[&str]| Forecast::Open(Doubt::Tie, names(names_));
        for (ages, wanted, next, tied) in [
            ([30, 30, 10], tie(&["b"]), Some("b"), false),
            ([30, 30, 30], tie(&["b", "c"]), None, true),
            ([30, 20, 20], Forecast::Stays, None, true),
            ([30, 20, 10], Forecast::Stays, Some("b"), false),
            ([10, 20, 20], Forecast::Moves(names(&["b", "c"])), None, true),
        ] {
            let all = all(ages);
            let candidates: Vec<_> = all.iter().collect();
            let outlook = Outlook::new(&candidates, Some(&lease("a", 1, "")), now());
            assert_eq!(outlook.forecast, wanted, "{ages:?}");
            assert_eq!(outlook.next().map(Candidate::name), next, "{ages:?}");
            assert_eq!(outlook.is_tied(), tied, "{ages:?}");
            let marked = outlook.entries.iter().filter(|entry| entry.next).count();
            assert_eq!(marked, if tied { 2 } else { 1 }, "{ages:?}");
        }
    }

    #[test]
    fn those_that_do_not_acknowledge_pings_have_a_say_in_whether_there_is_an_election() {
        // The leader's own candidate does not acknowledge pings, and it is the best: nothing happens.
        let mut all = [candidate("a", 30, 60, Some(10)), candidate("b", 20, 1, None)];
        assert_eq!(forecast(&all, &lease("a", 1, "")), Forecast::Stays);
        all[0].spec.renew_time = Some(ago(901));
        assert_eq!(
            forecast(&all, &lease("a", 1, "")),
            Forecast::Moves(names(&["b"])),
            "an election is forced"
        );
        // It is not the best.
        all[0] = candidate("a", 10, 60, Some(10));
        assert_eq!(forecast(&all, &lease("a", 1, "")), Forecast::Moves(names(&["b"])));
        // A dead one is the best: elected is the leader, again and again.
        assert_eq!(forecast(&all, &lease("b", 1, "")), Forecast::Stays);
    }

    /// The controller does not ping candidates that renewed within the last five seconds: it elects them.
    #[test]
    fn a_candidate_that_ended_a_moment_ago_may_still_be_elected() {
        let all = |renewed: i64, age: i64| {
            [
                candidate("cp-1_old", age, renewed, None),
                candidate("cp-1_new", renewed - 1, 1, None),
                candidate("cp-2_1", 30, 1, None),
                candidate("cp-3_1", 20, 1, None),
            ]
        };
        let may = Forecast::Open(Doubt::JustEnded, names(&["cp-3_1"]));
        for (renewed, age, lease, wanted, why) in [
            (3, 60, lease("cp-2_1", 1, ""), may, "it is the best, and not pinged"),
            (7, 60, lease("cp-2_1", 1, ""), Forecast::Stays, "it is pinged, and does not acknowledge that"),
            (3, 25, lease("cp-2_1", 1, ""), Forecast::Stays, "the leader is better"),
            (3, 60, lease("cp-3_1", 1, ""), Forecast::Moves(names(&["cp-2_1"])), "it moves anyhow"),
            (3, 60, lease("", 1, ""), Forecast::Elects(names(&["cp-2_1"])), "in the end"),
        ] {
            assert_eq!(forecast(&all(renewed, age), &lease), wanted, "{why}");
        }
    }

    #[test]
    fn the_lead_moves_again_after_a_priority_only_where_the_rule_says_so() {
        let two = [candidate("a_1", 30, 1, None), candidate("b_2", 20, 1, None)];
        let third = candidate("c_3", 10, 1, None);
        let then = |all: &[&Candidate], cleared: &Candidate, from: Option<&str>| {
            let pinned = priority::imagine(cleared, Some(9), How::Pinned);
            let all: Vec<_> =
                all.iter().map(|it| if it.name() == pinned.name() { &pinned } else { *it }).collect();
            after_clearing(&all, cleared, from, now())
        };
        let [a, b] = [&two[0], &two[1]];
        assert_eq!(then(&[a, b], b, Some("a_1")), Forecast::Stays, "the old leader is the youngest now");
        assert_eq!(then(&[a, b, &third], b, Some("a_1")), Forecast::Stays);
        assert_eq!(then(&[a, b, &third], &third, Some("a_1")), Forecast::Moves(names(&["b_2"])));
        assert_eq!(then(&[a, b], b, None), Forecast::Moves(names(&["a_1"])), "it never went");
        let mut older = a.clone();
        older.spec.emulation_version = "1.36.0".into();
        assert_eq!(
            then(&[&older, b], b, Some("a_1")),
            Forecast::Moves(names(&["a"])),
            "versions go before age"
        );
        let pinned = priority::imagine(a, Some(5), How::Pinned);
        assert_eq!(
            then(&[&pinned, b], b, Some("a_1")),
            Forecast::Stays,
            "its own priority went with its name"
        );
    }

    #[test]
    fn a_write_that_makes_a_leaving_leader_the_best_again_strands_the_lease() {
        use Forecast::{Elects, Moves, Nothing, Stays, Stuck};
        let to = |name: &str| names(&[name]);
        for (before, after, strands) in [
            (Moves(to("b")), ends(&["b"]), Some(Strands::AskedToStepDown)),
            (Moves(to("b")), Stays, Some(Strands::AboutToBe)),
            (Elects(to("b")), ends(&["b"]), Some(Strands::AskedToStepDown)),
            (Elects(to("b")), Stuck, Some(Strands::AskedToStepDown)),
            (Stays, ends(&["b"]), Some(Strands::AskedToStepDown)),
            (Moves(to("b")), Forecast::Open(Doubt::HolderTied, to("b")), Some(Strands::AskedToStepDown)),
            (Stays, Moves(to("b")), None),
            (Stays, Stays, None),
            (Moves(to("b")), Moves(to("c")), None),
            (Elects(to("b")), Elects(to("c")), None),
            // It is so already: the write changes nothing for the worse.
            (ends(&["b"]), Stuck, None),
            (Stuck, Stuck, None),
            (Stuck, Elects(to("b")), None),
            (Forecast::Open(Doubt::Tie, to("b")), Stays, None),
            (Nothing, Stays, None),
        ] {
            assert_eq!(before.strands(&after), strands, "{before:?} -> {after:?}");
        }
    }
}
