//! Words for leader elections: their candidates, their controller, and what follows from a change.

use jiff::{SignedDuration, Timestamp};
use kube_leases::{
    client::single::Address,
    protocols::elections::ElectionFailure,
    rules::{
        candidate::CandidateState,
        controller::Controller,
        duration::{self, age},
        forecast::{Doubt, Forecast},
        lease::host,
        plan::Plan,
        time::ServerTime,
    },
};

use super::paste::{pasted, with_flags};
use crate::error::Error;

/// The name of an election in a sentence. The API takes anything for the name of the lease that a candidate is
/// for, line breaks too.
pub fn called(namespace: &str, lease: &str) -> String {
    format!("{namespace}/{}", lease.escape_debug())
}

/// The election of a plan in a sentence.
pub fn of(plan: &Plan) -> String {
    called(&plan.namespace, &plan.lease)
}

/// The election of a lease in a sentence.
pub fn at(lease: &Address) -> String {
    called(&lease.namespace, &lease.name)
}

/// The arguments that name a lease in a command to paste.
pub fn named(namespace: &str, lease: &str) -> String {
    format!("{} -n {namespace}", pasted(lease, "LEASE"))
}

/// One, or one of several that are equal.
pub fn either(names: &[String]) -> String {
    names.join(" or ")
}

/// How long ago something was.
pub fn ago(time: Option<Timestamp>, now: ServerTime) -> String {
    time.map_or("never".into(), |time| duration::ago(now.since(time)))
}

/// The state of a candidate, as in the tables and in `-o json`.
pub fn state(state: CandidateState) -> &'static str {
    match state {
        CandidateState::Acked => "acked",
        CandidateState::Unpinged => "unpinged",
        CandidateState::Pending => "pending",
        CandidateState::Stale => "stale",
        CandidateState::Expired => "expired",
    }
}

/// What is wrong with the election controller.
pub fn controller(controller: &Controller) -> Option<String> {
    match controller {
        Controller::Silent { holder, ago } => Some(format!(
            "the election controller is silent: {holder} ran it and last renewed its lease {}; no candidate is \
             elected until another kube-apiserver takes over",
            duration::ago(*ago)
        )),
        Controller::Missing => Some(
            "no kube-apiserver runs the election controller: there is no lease kube-system/\
             leader-election-controller, or it has no holder"
                .into(),
        ),
        Controller::Alive { .. } | Controller::Unseen => None,
    }
}

/// What follows from a change; `again` where it is a second failover.
pub fn follows(plan: &Plan, again: bool) -> Vec<String> {
    let called = of(plan);
    let from = plan.from.as_deref().unwrap_or("no leader");
    let to = either(plan.forecast.names());
    let second = if again { ", a second failover" } else { "" };
    match &plan.forecast {
        Forecast::Stays => vec![format!("{from} keeps leading {called}.")],
        Forecast::Moves(_) => vec![
            format!("Leadership of {called} moves from {from} to {to}{second}."),
            "The leader is asked to step down: its process usually exits, and for up to 15 seconds there is no leader."
                .into(),
        ],
        Forecast::Elects(_) => vec![format!("{called} has no leader now; {to} is elected next.")],
        Forecast::Open(doubt, names) => vec![open(*doubt, names, from, &called)],
        Forecast::Stuck => vec![format!(
            "{called} has no leader, and no candidate is elected: 'kubectl lease candidates repair {}' repairs it.",
            named(&plan.namespace, &plan.lease)
        )],
        Forecast::Nothing => vec![format!("No candidate is elected for {called}.")],
    }
}

/// What it depends on which candidate leads next.
pub fn open(doubt: Doubt, names: &[String], holder: &str, called: &str) -> String {
    let to = either(names);
    match doubt {
        Doubt::Tie => format!(
            "Leadership of {called} may move from {holder} to {to} at any time: these candidates tie."
        ),
        Doubt::HolderTied => format!(
            "{holder} does not renew {called}, and ties with {to}: {to} is elected at one of the next syncs of \
             the controller, which can take minutes, or when the process of {holder} has ended."
        ),
        Doubt::HolderEnds if names.is_empty() => format!(
            "{holder} does not renew {called}, and no other candidate takes part: none is elected unless one joins."
        ),
        Doubt::HolderEnds => format!(
            "{holder} is the best candidate for {called} and does not renew it: {to} is elected when the process of \
             {holder} has ended, and no candidate before that."
        ),
        Doubt::JustEnded => {
            let follows = if names.is_empty() { String::new() } else { format!(" to {to}") };
            format!(
                "Leadership of {called} may move from {holder}{follows}: the process of a better candidate ended a \
                 moment ago, and the controller may still prefer it."
            )
        }
        Doubt::NoCandidate => format!(
            "{holder} leads {called} and is no candidate: leadership moves to {to} if it steps down when it is \
             asked to."
        ),
    }
}

/// What follows when the priority of the new leader is cleared.
pub fn when_cleared(candidate: &str, from: Option<&str>, cleared: &Forecast) -> String {
    let back = from.map_or_else(String::new, |from| {
        format!(", where the instance on {} is back as the youngest candidate", host(from))
    });
    match cleared {
        Forecast::Stays => format!("When that is cleared, {candidate} keeps leading{back}."),
        Forecast::Moves(names) => {
            format!("When that is cleared, leadership moves to {}: a second failover{back}.", either(names))
        }
        _ => format!("When that is cleared, it cannot be foreseen which candidate leads{back}."),
    }
}

/// That a lease was left without a leader, and what to do about it.
pub fn without_a_leader(lease: &Address, flags: &str) -> String {
    let words = format!(
        "{} has no leader; 'kubectl lease candidates repair {}' gets its election going again",
        at(lease),
        named(&lease.namespace, &lease.name)
    );
    with_flags(&words, flags)
}

/// A failure of a protocol, with its hint. `priority` is the one that was to be set.
pub fn failure(failure: ElectionFailure, priority: Option<i32>, flags: &str) -> Error {
    let message = failure.to_string();
    match failure {
        ElectionFailure::Ended { candidate, namespace, .. } => {
            let value = priority.map_or("PRIORITY".to_owned(), |priority| priority.to_string());
            let hint = format!(
                "a component that restarts comes back under a new name: 'kubectl lease candidates set-priority {} \
                 {value} -n {namespace}' prefers it then",
                pasted(host(&candidate), "HOST")
            );
            Error::NotFound { message, hint: Some(with_flags(&hint, flags)) }
        }
        ElectionFailure::Silent { .. } => Error::NotFound {
            message,
            hint: Some("a component that restarts comes back under a new name, without the priority".into()),
        },
        ElectionFailure::Changed { .. }
        | ElectionFailure::Conflicts { .. }
        | ElectionFailure::Written { .. } => Error::LostRace { message },
        ElectionFailure::NoLeader { lease } => Error::TimedOut { message: without_a_leader(&lease, flags) },
        ElectionFailure::StillMoving { .. } | ElectionFailure::NotLeading { .. } => {
            Error::TimedOut { message }
        }
        ElectionFailure::Interrupted | ElectionFailure::Unread => Error::Interrupted,
        ElectionFailure::Other(error) => error.into(),
    }
}

/// So long as a person would say it, in whole seconds.
pub fn seconds(duration: std::time::Duration) -> String {
    humantime::format_duration(std::time::Duration::from_secs(duration.as_secs())).to_string()
}

/// What has passed meanwhile, behind what is waited for.
pub fn passed(elapsed: SignedDuration) -> String {
    format!(" ({})", age(elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn plan(from: Option<&str>, forecast: Forecast) -> Plan {
        Plan {
            namespace: "kube-system".into(),
            lease: "kube-scheduler".into(),
            from: from.map(str::to_owned),
            forecast,
            strands: None,
            is_moving: false,
            was_open: false,
            duration: Duration::ZERO,
        }
    }

    #[test]
    fn what_follows_from_a_change_in_words() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for (plan, again, words) in [
            (plan(Some("a"), Forecast::Stays), false, "a keeps leading kube-system/kube-scheduler."),
            (
                plan(Some("a"), Forecast::Moves(names(&["b", "c"]))),
                true,
                "Leadership of kube-system/kube-scheduler moves from a to b or c, a second failover.",
            ),
            (
                plan(None, Forecast::Elects(names(&["b"]))),
                false,
                "kube-system/kube-scheduler has no leader now; b is elected next.",
            ),
            (
                plan(Some("a"), Forecast::Open(Doubt::HolderEnds, Vec::new())),
                false,
                "a does not renew kube-system/kube-scheduler, and no other candidate takes part: none is elected \
                 unless one joins.",
            ),
            (
                plan(Some("a"), Forecast::Stuck),
                false,
                "kube-system/kube-scheduler has no leader, and no candidate is elected: 'kubectl lease candidates \
                 repair kube-scheduler -n kube-system' repairs it.",
            ),
        ] {
            assert_eq!(follows(&plan, again)[0], words);
        }
    }

    #[test]
    fn a_state_reads_the_same_in_tables_and_in_json() {
        use CandidateState::{Acked, Expired, Pending, Stale, Unpinged};
        for one in [Acked, Unpinged, Pending, Stale, Expired] {
            assert_eq!(serde_json::to_value(one).unwrap(), state(one));
        }
    }

    #[test]
    fn a_name_is_in_one_line_and_no_command() {
        assert_eq!(called("shop", "a\nb"), "shop/a\\nb");
        assert_eq!(named("shop", "a\nb"), "LEASE -n shop");
    }

    #[test]
    fn failures_end_a_command_with_the_code_that_they_are_known_by() {
        let (candidate, lease) = (|| "cp-1_aa".to_owned(), Address::new("shop", "web"));
        for (problem, code, words) in [
            (
                ElectionFailure::Ended { candidate: candidate(), namespace: "shop".into(), led: true },
                3,
                "cp-1_aa has ended: it has stepped down, and does not acknowledge a ping",
            ),
            (
                ElectionFailure::Changed { candidate: candidate(), priority: None },
                5,
                "another client has changed the priority of cp-1_aa meanwhile, to none; it was left so",
            ),
            (
                ElectionFailure::Conflicts { name: "web".into(), attempts: 5 },
                5,
                "gave up after 5 write conflicts on web",
            ),
            (
                ElectionFailure::StillMoving { lease: lease.clone(), after: Duration::from_secs(75) },
                124,
                "leadership of shop/web is still moving after 1m 15s",
            ),
            (
                ElectionFailure::NoLeader { lease },
                124,
                "shop/web has no leader; 'kubectl lease --context=b candidates repair web -n shop' gets its \
                 election going again",
            ),
            (ElectionFailure::Interrupted, 130, "interrupted"),
        ] {
            let error = failure(problem, Some(9), "--context=b");
            assert_eq!((error.exit_code().code(), error.to_string().as_str()), (code, words));
        }
    }
}
