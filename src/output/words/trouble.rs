//! What is wrong with an election, and what to do about it.

use jiff::Timestamp;
use kube_leases::rules::{
    duration::age,
    time::ServerTime,
    trouble::{TieBreaker, Trouble},
};
use serde_json::{Value, json};

use super::{
    election::{called, named},
    paste::{pasted, with_flags},
};

/// What is wrong with the election of a lease, and what to do about it.
pub fn trouble(it: &Trouble, election: (&str, &str), now: ServerTime) -> (String, String) {
    (message(it, now), hint(it, election))
}

fn message(it: &Trouble, now: ServerTime) -> String {
    let within = |until: &Option<Timestamp>, word: &str| {
        until.map_or_else(String::new, |until| format!("{word}{}", age(until.duration_since(now.0))))
    };
    let passed = |since: &Option<Timestamp>| {
        since.map_or_else(String::new, |since| format!(" for {}", age(now.since(since))))
    };
    match it {
        Trouble::NullHolder { foreign: false } => {
            "the lease's holderIdentity is null, which can crash the kube-apiserver that runs the election".into()
        }
        Trouble::NullHolder { foreign: true } => {
            "the lease's holderIdentity is null: when a candidate with strategy OldestEmulationVersion joins, \
             this can crash the kube-apiserver that runs the election"
                .into()
        }
        Trouble::Stuck { holder, preferred, since } => format!(
            "the election is stuck, without a leader{}: {holder} let the lease expire{} and is the best \
             candidate again; the controller does not elect the holder of an expired lease again",
            passed(since),
            preferred.as_ref().map_or_else(String::new, |to| format!(", asked to step down for {to},")),
        ),
        Trouble::StrategyConflict { between: [a, b] } => format!(
            "{} and {} have the newest binary and disagree on the strategy ('{}', '{}'): no candidate is elected",
            a.candidate, b.candidate, a.strategy, b.strategy
        ),
        Trouble::Blocked { candidates, until } => format!(
            "{} and {} another strategy: the leader is not replaced by a better one until the \
             controller forces an election, 15 minutes after the last renewal{}",
            not_acknowledged(candidates),
            if candidates.len() == 1 { "has" } else { "have" },
            within(until, ", in ")
        ),
        Trouble::ForeignStrategy { strategy } => {
            format!("the strategy is '{strategy}', for which Kubernetes elects no candidate")
        }
        Trouble::PingStorm { candidates, until } => format!(
            "{}: the controller pings all candidates every few seconds until {} expired{}",
            not_acknowledged(candidates),
            if candidates.len() == 1 { "it has" } else { "they have" },
            within(until, ", in ")
        ),
        Trouble::AbsentPreferred { preferred } => {
            format!("the leader is asked to step down: preferredHolder is {preferred}, which does not take part \
                     in the election")
        }
        Trouble::Tie { candidates, .. } => format!(
            "{} tie (same priority and versions, created in the same second): the controller may elect any of \
             them at each sync, and leadership flaps",
            candidates.join(" and ")
        ),
        Trouble::LeaderNoCandidate { leader, coordinated: true } => {
            format!("{leader} leads and is no candidate: an instance without coordinated election?")
        }
        Trouble::LeaderNoCandidate { leader, coordinated: false } => format!(
            "{leader} leads without coordinated election: it is never asked to step down, and no priority moves \
             leadership as long as it runs"
        ),
        Trouble::NoneElected { since } => {
            format!("there is no leader{}, although there are candidates", passed(since))
        }
        Trouble::OverduePriority { candidate } => {
            format!("the priority of {candidate} should have been cleared")
        }
        Trouble::DeadPriority { candidates } => format!(
            "{} any more, and still {} a priority",
            not_acknowledged(candidates),
            if candidates.len() == 1 { "has" } else { "have" }
        ),
    }
}

fn hint(it: &Trouble, (namespace, lease): (&str, &str)) -> String {
    let named = named(namespace, lease);
    match it {
        Trouble::NullHolder { .. } | Trouble::Stuck { .. } => {
            format!("'kubectl lease candidates repair {named}' repairs it")
        }
        Trouble::StrategyConflict { .. } => {
            "give the instances of the component the same strategy, or end one of the two".into()
        }
        Trouble::Blocked { .. } | Trouble::PingStorm { .. } | Trouble::DeadPriority { .. } => {
            format!(
                "if their processes are gone for good, 'kubectl lease candidates prune {named}' ends that"
            )
        }
        Trouble::ForeignStrategy { .. } => {
            "the controller that follows that strategy has to name the holder".into()
        }
        Trouble::AbsentPreferred { .. } => "wait: the lease expires, and a candidate is elected".into(),
        Trouble::Tie { decided_by: Some(TieBreaker { candidate, priority }), .. } => format!(
            "'kubectl lease candidates set-priority {} {priority} -n {namespace}' breaks the tie; so does \
             restarting one of them",
            pasted(candidate, "CANDIDATE")
        ),
        Trouble::Tie { decided_by: None, .. } => "restart one of them to break the tie".into(),
        Trouble::LeaderNoCandidate { coordinated: true, .. } => {
            format!("check the feature gates of the component that holds {}", called(namespace, lease))
        }
        Trouble::LeaderNoCandidate { coordinated: false, .. } => format!(
            "restart it with --feature-gates=CoordinatedLeaderElection=true; it holds {}, and a candidate is \
             elected when it ends",
            called(namespace, lease)
        ),
        Trouble::NoneElected { .. } => {
            "see whether the election controller is alive, and the log of the kube-apiserver that runs it"
                .into()
        }
        Trouble::OverduePriority { .. } => {
            format!("'kubectl lease candidates clear-priority --expired -n {namespace}' clears it")
        }
    }
}

/// As a code with its parameters, and what is said of it.
pub fn document(it: &Trouble, election: (&str, &str), now: ServerTime, flags: &str) -> Value {
    let (message, hint) = trouble(it, election, now);
    let mut document = json!(it);
    document["message"] = message.into();
    document["hint"] = with_flags(&hint, flags).into();
    document
}

fn not_acknowledged(names: &[String]) -> String {
    let verb = if names.len() == 1 { "does" } else { "do" };
    format!("{} {verb} not acknowledge pings", names.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;
    use kube_leases::rules::strategy::Vote;

    #[test]
    fn every_trouble_is_said_with_what_to_do_about_it() {
        let now = ServerTime(Timestamp::UNIX_EPOCH + SignedDuration::from_hours(500_000));
        let after = |seconds: i64| Some(now.0 + SignedDuration::from_secs(seconds));
        let vote = |candidate: &str, strategy: &str| Vote {
            candidate: candidate.to_owned(),
            strategy: strategy.to_owned(),
        };
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let (repair, prune) =
            ("candidates repair web -n shop' repairs it", "candidates prune web -n shop' ends that");
        for (it, message, hint) in [
            (Trouble::NullHolder { foreign: false }, "the lease's holderIdentity is null, which", repair),
            (
                Trouble::NullHolder { foreign: true },
                "is null: when a candidate with strategy OldestEmulationVersion joins",
                repair,
            ),
            (
                Trouble::Stuck { holder: "a".into(), preferred: Some("b".into()), since: after(-65) },
                "without a leader for 65s: a let the lease expire, asked to step down for b, and is the best",
                repair,
            ),
            (
                Trouble::StrategyConflict { between: [vote("a", "x"), vote("b", "y")] },
                "a and b have the newest binary and disagree on the strategy ('x', 'y')",
                "give the instances",
            ),
            (
                Trouble::Blocked { candidates: names(&["a"]), until: after(600) },
                "a does not acknowledge pings and has another strategy",
                prune,
            ),
            (
                Trouble::PingStorm { candidates: names(&["a", "b"]), until: after(600) },
                "a and b do not acknowledge pings: the controller pings all candidates every few seconds until they \
                 have expired, in 10m",
                prune,
            ),
            (
                Trouble::ForeignStrategy { strategy: "x".into() },
                "the strategy is 'x'",
                "has to name the holder",
            ),
            (
                Trouble::AbsentPreferred { preferred: "b".into() },
                "preferredHolder is b, which does not take part",
                "a candidate is elected",
            ),
            (
                Trouble::Tie {
                    candidates: names(&["a", "b"]),
                    decided_by: Some(TieBreaker { candidate: "a".into(), priority: 1 }),
                },
                "a and b tie (same priority and versions",
                "'kubectl lease candidates set-priority a 1 -n shop' breaks the tie",
            ),
            (
                Trouble::Tie { candidates: names(&["a", "b"]), decided_by: None },
                "a and b tie",
                "restart one of them to break the tie",
            ),
            (
                Trouble::LeaderNoCandidate { leader: "x".into(), coordinated: true },
                "x leads and is no candidate",
                "that holds shop/web",
            ),
            (
                Trouble::LeaderNoCandidate { leader: "x".into(), coordinated: false },
                "x leads without coordinated election",
                "it holds shop/web",
            ),
            (Trouble::NoneElected { since: None }, "there is no leader, although", "the election controller"),
            (
                Trouble::OverduePriority { candidate: "a".into() },
                "the priority of a should have been cleared",
                "clear-priority --expired -n shop' clears it",
            ),
            (
                Trouble::DeadPriority { candidates: names(&["a"]) },
                "a does not acknowledge pings any more, and still has a priority",
                prune,
            ),
        ] {
            let (said, to_do) = trouble(&it, ("shop", "web"), now);
            assert!(said.contains(message), "{said}");
            assert!(to_do.contains(hint), "{to_do}");
            let document = document(&it, ("shop", "web"), now, "--context=b");
            assert_eq!(document["message"], said);
            assert!(document["code"].is_string(), "{document}");
            assert!(
                !to_do.contains("kubectl lease")
                    || document["hint"].as_str().unwrap().contains("--context=b")
            );
        }
    }
}
