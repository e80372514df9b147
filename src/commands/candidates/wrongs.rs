//! What is wrong with an election, in words, and what to do about it.

use super::Election;
use crate::domain::{
    duration::age,
    election::Wrong,
    priority::{self, Priority},
    rights::pasted,
    time::ServerTime,
};

/// What is wrong, and what to do about it.
pub fn told(wrong: &Wrong, election: &Election<'_>, now: ServerTime) -> (String, String) {
    let repair = || {
        format!(
            "'kubectl lease candidates repair {} -n {}' repairs it",
            pasted(election.name, "LEASE"),
            election.namespace
        )
    };
    let prune = || {
        format!(
            "if their processes are gone for good, 'kubectl lease candidates prune {} -n {}' ends that",
            pasted(election.name, "LEASE"),
            election.namespace
        )
    };
    let within = |until: &Option<jiff::Timestamp>, word: &str| {
        until.map_or_else(String::new, |until| format!("{word}{}", age(until.duration_since(now.0))))
    };
    let passed = |since: &Option<jiff::Timestamp>| {
        since.map_or_else(String::new, |since| format!(" for {}", age(now.since(since))))
    };
    match wrong {
        Wrong::NullHolder { foreign: false } => (
            "the lease's holderIdentity is null, which can end the kube-apiserver that runs the election"
                .into(),
            repair(),
        ),
        Wrong::NullHolder { foreign: true } => (
            "the lease's holderIdentity is null: a candidate with the strategy of Kubernetes that joins later ends \
             the kube-apiserver that runs the election"
                .into(),
            repair(),
        ),
        Wrong::Stuck { holder, preferred, since } => (
            format!(
                "the election is stuck, without a leader{}: {holder} let the lease run out{} and is the best \
                 candidate again; the controller does not elect the holder of an expired lease again",
                passed(since),
                preferred.as_ref().map_or_else(String::new, |to| format!(", asked to step down for {to},")),
            ),
            repair(),
        ),
        Wrong::Conflict([(a, x), (b, y)]) => (
            format!(
                "{a} and {b} have the newest binary and disagree on the strategy ('{x}', '{y}'): nobody is elected"
            ),
            "give the instances of the component the same strategy, or end one of the two".into(),
        ),
        Wrong::Blocked { candidates, until } => (
            format!(
                "{} and {} another strategy: the leader is not replaced by a better one until the \
                 controller forces an election, 15 minutes after the last renewal{}",
                does_not_answer(candidates),
                if candidates.len() == 1 { "has" } else { "have" },
                within(until, ", in ")
            ),
            prune(),
        ),
        Wrong::Foreign(strategy) => (
            format!("the strategy is '{strategy}', for which Kubernetes elects nobody"),
            "whatever controller follows that strategy has to name the holder".into(),
        ),
        Wrong::PingStorm { candidates, until } => (
            format!(
                "{}: the controller pings all candidates every few seconds until {} expired{}",
                does_not_answer(candidates),
                if candidates.len() == 1 { "it has" } else { "they have" },
                within(until, ", in ")
            ),
            prune(),
        ),
        Wrong::StalePreferred(preferred) => (
            format!("the leader is asked to step down for {preferred}, which takes no part"),
            "the lease runs out, and the election decides anew".into(),
        ),
        Wrong::Tie(names) => tie(names, election, now),
        Wrong::LeaderNoCandidate { leader, coordinated } => no_candidate(leader, *coordinated, election),
        Wrong::NobodyElected { since } => (
            format!("nobody leads{}, although there are candidates", passed(since)),
            "see whether the election controller is alive, and the log of the kube-apiserver that runs it"
                .into(),
        ),
        Wrong::Overdue(candidate) => (
            format!("the priority of {candidate} should have been cleared"),
            format!(
                "'kubectl lease candidates clear-priority --expired -n {}' clears it",
                election.namespace
            ),
        ),
        Wrong::DeadPriority(candidates) => (
            format!(
                "{} any more, and still {} a priority",
                does_not_answer(candidates),
                if candidates.len() == 1 { "has" } else { "have" }
            ),
            prune(),
        ),
    }
}

/// A leader that the controller knows nothing of.
fn no_candidate(leader: &str, coordinated: bool, election: &Election<'_>) -> (String, String) {
    let called = election.called();
    if coordinated {
        return (
            format!("{leader} leads and is no candidate: an instance without coordinated election?"),
            format!("check the feature gates of the component that holds {called}"),
        );
    }
    (
        format!(
            "{leader} leads without coordinated election: it is never asked to step down, and no priority moves the \
             lead as long as it runs"
        ),
        format!(
            "restart it with --feature-gates=CoordinatedLeaderElection=true; it holds {called}, and a candidate is \
             elected when it ends"
        ),
    )
}

/// Which of them to prefer, so that something decides.
fn tie(names: &[String], election: &Election<'_>, now: ServerTime) -> (String, String) {
    // The leader; but not a holder that does not renew any more, which could then not be elected at all.
    let outlook = election.outlook(now);
    let asked = outlook.preferred.is_some();
    let leader = outlook.leader.valid().filter(|_| !asked);
    let holder = outlook.leader.holder();
    let is = |name: &&String, who: Option<&str>| Some(name.as_str()) == who;
    let one =
        names.iter().find(|name| is(name, leader)).or_else(|| names.iter().find(|name| !is(name, holder)));
    let one = one.map_or("", String::as_str);
    let found = election.candidates.iter().map(|(candidate, _)| *candidate).find(|it| it.name() == one);
    let value = found.and_then(Priority::of).map_or(0, |it| it.value).saturating_add(1);
    let others: Vec<_> = election.candidates.iter().map(|(candidate, _)| *candidate).collect();
    let possible = found.is_some_and(|it| priority::unpinnable(it, value, &others).is_none());
    let hint = if possible {
        format!(
            "'kubectl lease candidates set-priority {} {value} -n {}' decides; so does restarting one of them",
            pasted(one, "CANDIDATE"),
            election.namespace
        )
    } else {
        "restarting one of them decides".into()
    };
    (
        format!(
            "{} are equal in everything that decides (created in the same second): the controller takes \
             one or the other at each look, and the lead goes back and forth",
            names.join(" and ")
        ),
        hint,
    )
}

fn does_not_answer(names: &[String]) -> String {
    let verb = if names.len() == 1 { "does" } else { "do" };
    format!("{} {verb} not answer", names.join(" and "))
}
