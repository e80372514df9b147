//! The holder of a lease, what is in the way of taking one, and what became of one that was given up.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::{error::Error, output::sanitise::line};
use kube_leases::{
    protocols::{Blocked, NotTaken, Released, Undone},
    rules::{
        duration::{age, ago},
        holder::{InvalidHolder, RESERVED_PREFIX, Who, is_process},
        lease::Lease,
        maintenance::{self, MaintenanceStanding},
        taking::ClaimObstacle,
        time::ServerTime,
    },
};

/// The holder of a lease, since when, until when and why.
pub fn holding(standing: &MaintenanceStanding, lease: Option<&Lease>, now: ServerTime) -> String {
    let since = lease.and_then(|lease| lease.spec.acquire_time.as_ref()).map(|time| time.0);
    let since = since.map_or_else(String::new, |time| format!(" since {time:.0} ({})", ago(now.since(time))));
    let reason =
        lease.and_then(Lease::reason).map_or_else(String::new, |reason| format!(": {}", line(reason)));
    match standing {
        MaintenanceStanding::Free => "free".to_owned(),
        MaintenanceStanding::Ours { .. } => format!("held by you{since}{reason}"),
        MaintenanceStanding::Held { holder, until } => {
            let (holder, left) = (line(holder), left(*until, now));
            format!("held by '{holder}'{since} until {until:.0} ({left} left){reason}")
        }
        MaintenanceStanding::Admin { holder } => {
            format!("held by administrator '{}'{since} until released{reason}", line(holder))
        }
        MaintenanceStanding::Expired { holder, since } => {
            format!("no longer held by '{}', expired {}", line(holder), ago(now.since(*since)))
        }
        MaintenanceStanding::Malformed { holder, lacks } => {
            format!("malformed: holderIdentity is '{}' but {lacks} is not set", line(holder))
        }
    }
}

/// Why a text cannot be the identity of a holder.
pub fn invalid_holder(why: InvalidHolder) -> String {
    match why {
        InvalidHolder::Empty => "a holder cannot be empty".to_owned(),
        InvalidHolder::ControlCharacters => "a holder cannot have control characters".to_owned(),
        InvalidHolder::Reserved => format!(
            "a holder cannot begin with '{RESERVED_PREFIX}': that is reserved for administrators, see --admin"
        ),
    }
}

/// How much time is left.
pub fn left(until: Timestamp, now: ServerTime) -> String {
    age(until.duration_since(now.0).max(SignedDuration::ZERO))
}

/// What is in the way of taking a lease.
pub fn in_the_way(obstacle: &ClaimObstacle, lease: Option<&Lease>, now: ServerTime) -> String {
    match obstacle {
        ClaimObstacle::Standing(standing) => holding(standing, lease, now),
        ClaimObstacle::Terminating { finalizers } if finalizers.is_empty() => "being deleted".to_owned(),
        ClaimObstacle::Terminating { finalizers } => {
            format!("being deleted: its lease only waits for its finalizers ({})", finalizers.join(", "))
        }
        ClaimObstacle::OtherReason { reason, since } => {
            let since = since.map_or_else(String::new, |time| format!(" since {time:.0}"));
            match reason {
                Some(reason) => format!("held by you{since} for another reason: {}", line(reason)),
                None => format!("held by you{since} without a reason"),
            }
        }
        ClaimObstacle::Medik8s { holder } => {
            format!("held by medik8s ('{}', in {})", line(holder), maintenance::MEDIK8S_NAMESPACE)
        }
    }
}

/// What is waited for, in words that do not change by the mere passing of time.
pub fn waited_for(obstacle: &ClaimObstacle, lease: Option<&Lease>) -> String {
    let reason =
        lease.and_then(Lease::reason).map_or_else(String::new, |reason| format!(" ({})", line(reason)));
    match obstacle {
        ClaimObstacle::Standing(_) | ClaimObstacle::OtherReason { .. } => {
            format!("held by '{}'{reason}", line(lease.map(Lease::holder).unwrap_or_default()))
        }
        ClaimObstacle::Terminating { .. } => "its lease is being deleted".to_owned(),
        ClaimObstacle::Medik8s { holder } => format!("held by medik8s ('{}')", line(holder)),
    }
}

/// The error for a lease that cannot be taken now.
pub fn blocked(what: &str, obstacle: &ClaimObstacle, lease: Option<&Lease>, now: ServerTime) -> Error {
    let message = format!("{what} is {}", in_the_way(obstacle, lease, now));
    let hint = |text: &str| Some(text.to_owned());
    match obstacle {
        ClaimObstacle::Standing(MaintenanceStanding::Malformed { .. }) => Error::Refused {
            message,
            hint: hint("find out what that holder is; --take-malformed takes it all the same"),
        },
        // Only to renew it is that an obstacle.
        ClaimObstacle::Standing(MaintenanceStanding::Free) => Error::NotFound {
            message: format!("there is nothing to renew: {message}"),
            hint: Some(format!("'kubectl lease maint acquire {what}' takes it")),
        },
        // That of a process, which may have been killed.
        ClaimObstacle::Standing(MaintenanceStanding::Admin { holder }) if is_process(holder) => Error::Held {
            message,
            hint: Some(format!(
                "--wait waits until that command has ended; if it was killed, 'kubectl lease maint release {what} \
                 --admin --force' releases it"
            )),
        },
        ClaimObstacle::Standing(MaintenanceStanding::Admin { .. }) => Error::Held {
            message,
            hint: hint("it is held until that administrator releases it; --wait waits for that"),
        },
        ClaimObstacle::Standing(MaintenanceStanding::Ours { .. }) => Error::Held {
            message,
            hint: hint(
                "another process may hold it under the same name: release it first, or use another --holder",
            ),
        },
        ClaimObstacle::Standing(_) => {
            Error::Held { message, hint: hint("--wait takes it as soon as it is free") }
        }
        ClaimObstacle::Terminating { .. } => Error::Held {
            message,
            hint: hint("--wait acquires the lease after the old Lease object is deleted"),
        },
        ClaimObstacle::OtherReason { .. } => Error::Refused {
            message,
            hint: hint(
                "if you acquired it, --yes replaces the reason; if a colleague with the same identity did, use \
                 --holder NAME",
            ),
        },
        ClaimObstacle::Medik8s { .. } => Error::Held {
            message,
            hint: hint(
                "--wait takes the node when medik8s has finished; --ignore-medik8s takes it all the same",
            ),
        },
    }
}

/// The error for a lease of a node that cannot be taken now.
pub fn blocked_node(blocked: &Blocked) -> Error {
    self::blocked(blocked.name(), blocked.obstacle(), blocked.lease(), blocked.at())
}

/// Why leases were not taken.
pub fn not_taken(why: &NotTaken) -> String {
    match why {
        NotTaken::Blocked(blocked) => {
            format!("{} is {}", blocked.name(), in_the_way(blocked.obstacle(), blocked.lease(), blocked.at()))
        }
        NotTaken::NotFree { name, waited, blocked } => {
            let waited = Duration::from_secs((*waited + Duration::from_millis(500)).as_secs());
            let waited = humantime::format_duration(waited);
            let state = blocked.as_ref().map_or_else(String::new, |blocked| {
                format!(": it is {}", in_the_way(blocked.obstacle(), blocked.lease(), blocked.at()))
            });
            format!("{name} did not become free within {waited}{state}")
        }
        NotTaken::TooSlow { name } => {
            let what = name.as_deref().unwrap_or("the leases");
            format!("{what} could not be taken in time: the server is slow to answer")
        }
        NotTaken::OutOfTime(error) => format!("the leases could not be taken in time: {error}"),
        NotTaken::LooksExpired { name, seconds } => {
            format!(
                "'{name}' has expired by its timestamps, but counts as expired only after it was observed \
                 unchanged for {seconds} s"
            )
        }
        NotTaken::HolderClockWrong { name } => {
            format!(
                "'{name}' has expired by its timestamps, but its holder still renews it: the clock of the holder \
                 is wrong"
            )
        }
        NotTaken::Failed(error) => error.to_string(),
    }
}

/// The error for leases that were not taken.
pub fn not_taken_error(why: NotTaken) -> Error {
    let message = not_taken(&why);
    match why {
        NotTaken::Blocked(blocked) => blocked_node(&blocked),
        NotTaken::NotFree { .. } | NotTaken::TooSlow { .. } | NotTaken::OutOfTime(_) => {
            Error::TimedOut { message }
        }
        NotTaken::LooksExpired { .. } => Error::Held {
            message,
            hint: Some("--wait observes it for that long, and acquires it then".into()),
        },
        NotTaken::HolderClockWrong { .. } => {
            Error::Held { message, hint: Some("--wait takes it as soon as it is free".into()) }
        }
        NotTaken::Failed(error) => error.into(),
    }
}

/// A command of the same holder runs under a lease that could not be released for that.
pub fn still_adopted(name: &str, who: &Who) -> String {
    let admin = if who.is_admin() { " --admin" } else { "" };
    format!(
        "{name} is still held by {who}: another command of this holder runs under it, and puts it back when it \
         ends ('kubectl lease maint release {name}{admin}' releases it then)"
    )
}

/// The warning about a lease that may stay held although it was given up, if there is one.
pub fn left_behind(undone: &Undone<'_>) -> Option<String> {
    let (name, who) = (undone.name(), undone.who());
    match &undone.released {
        // Another process of the same holder uses it, or relies on it.
        Ok(Released::Shared) => Some(format!(
            "{name} is still held by {who}: another process of this holder has renewed it, or adopted it and put it back"
        )),
        Ok(Released::Adopted) => Some(still_adopted(name, who)),
        Ok(Released::Yes | Released::PutBack | Released::NotOurs | Released::Unanswered) => None,
        Err(error) if who.is_admin() => Some(format!(
            "{name} may be held until it is released ('kubectl lease maint release {name} --admin --force' does \
             it): {error}"
        )),
        Err(error) => Some(format!("{name} may still be held: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error is printed line by line: a line break in another user's text would begin a line of ours.
    #[test]
    fn a_holder_or_a_reason_with_a_line_break_stays_in_its_line() {
        let now = ServerTime(Timestamp::UNIX_EPOCH);
        let hostile = || "jane\nhint: rm".to_owned();
        let lease = |reason: &str| Lease {
            metadata: kube_leases::rules::lease::Metadata {
                annotations: [(maintenance::REASON.to_owned(), reason.to_owned())].into(),
                ..Default::default()
            },
            spec: k8s_openapi::api::coordination::v1::LeaseSpec {
                holder_identity: Some(hostile()),
                ..Default::default()
            },
        };
        let lease = lease("x\nerror: y");
        let standings = [
            MaintenanceStanding::Held { holder: hostile(), until: now.0 },
            MaintenanceStanding::Admin { holder: hostile() },
            MaintenanceStanding::Expired { holder: hostile(), since: now.0 },
        ];
        for standing in standings {
            assert!(!holding(&standing, Some(&lease), now).contains('\n'), "{standing:?}");
            let obstacle = ClaimObstacle::Standing(standing);
            assert!(!waited_for(&obstacle, Some(&lease)).contains('\n'), "{obstacle:?}");
        }
        for obstacle in [
            ClaimObstacle::OtherReason { reason: Some(hostile()), since: None },
            ClaimObstacle::Medik8s { holder: hostile() },
        ] {
            assert!(!in_the_way(&obstacle, Some(&lease), now).contains('\n'), "{obstacle:?}");
            assert!(!waited_for(&obstacle, Some(&lease)).contains('\n'), "{obstacle:?}");
        }
    }
}
