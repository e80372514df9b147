//! Waiting for a process to lead: what a lease shows of it at each read.
//!
//! The election controller writes the holder and the first `renewTime` itself, so neither shows that the
//! process behind it is alive. A renewal that is seen does. A process has led for some time when two of
//! its renewals were seen so far apart, and the lease never expired in between: each renewal came before
//! the end of the one before it. After a gap in which that cannot be told, it is counted anew.

use jiff::{SignedDuration, Timestamp};

use super::{
    lease::{Lease, host},
    time::ServerTime,
};

/// How a lease stands at a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaderStanding {
    /// There is no such lease.
    NoLease,
    /// The lease has no holder.
    Released,
    /// The lease has expired, or does not say until when it is held.
    Expired {
        /// Its last holder.
        holder: String,
    },
    /// Another process leads, and may have been asked to step down for one.
    Other {
        /// The holder of the lease.
        leader: String,
        /// The preferred holder, if there is one.
        preferred: Option<String>,
    },
    /// The process that is waited for leads, and was asked to step down.
    SteppingDown {
        /// The holder of the lease.
        leader: String,
        /// The preferred holder.
        preferred: String,
    },
    /// It holds the lease; no renewal was seen yet.
    Elected {
        /// The holder of the lease.
        leader: String,
    },
    /// It leads and renews, but not yet for long enough: so much longer, and until its next renewal.
    Settling {
        /// The holder of the lease.
        leader: String,
        /// The time that is left.
        left: SignedDuration,
    },
    /// It has led for as long as was wanted.
    Leads {
        /// The holder of the lease.
        leader: String,
    },
}

/// Whether a holder is the process that is meant: by its host, its whole identity, or the beginning of
/// what tells it from its predecessors on the same host.
pub fn is_named(holder: &str, name: &str) -> bool {
    holder == name || host(holder) == name || (name.contains('_') && holder.starts_with(name))
}

/// What was seen so far of a process that is waited for.
#[derive(Clone, Debug)]
pub struct LeaderWait<'a> {
    name: &'a str,
    stable: SignedDuration,
    term: Option<Term>,
}

#[derive(Clone, Debug)]
struct Term {
    holder: String,
    renewed: Timestamp,
    until: Timestamp,
    /// When the first renewal was seen.
    proven: Option<ServerTime>,
}

impl<'a> LeaderWait<'a> {
    /// Until the process of this name has led for as long as `stable`.
    pub fn new(name: &'a str, stable: SignedDuration) -> Self {
        Self { name, stable, term: None }
    }

    /// Takes in the lease as it is now, at each change and in between.
    pub fn observe(&mut self, lease: Option<&Lease>, now: ServerTime) -> LeaderStanding {
        let before = self.term.take();
        let Some(lease) = lease else { return LeaderStanding::NoLease };
        let leader = lease.holder().to_owned();
        if leader.is_empty() {
            return LeaderStanding::Released;
        }
        let (renewed, until) = match (lease.renewed(), lease.expires()) {
            (Some(renewed), Some(until)) if until >= now.0 => (renewed, until),
            _ => return LeaderStanding::Expired { holder: leader },
        };
        let preferred = lease.spec.preferred_holder.clone().filter(|it| !it.is_empty());
        if !is_named(&leader, self.name) {
            return LeaderStanding::Other { leader, preferred };
        }
        if let Some(preferred) = preferred {
            // It does not renew any more.
            return LeaderStanding::SteppingDown { leader, preferred };
        }
        let before = before.filter(|term| term.holder == leader && renewed <= term.until);
        let renewal = before.as_ref().is_some_and(|term| renewed > term.renewed);
        let proven = before.and_then(|term| term.proven).or(renewal.then_some(now));
        self.term = Some(Term { holder: leader.clone(), renewed, until, proven });
        let Some(since) = proven else { return LeaderStanding::Elected { leader } };
        let left = self.stable.saturating_sub(now.since(since.0));
        if renewal && !left.is_positive() {
            LeaderStanding::Leads { leader }
        } else {
            LeaderStanding::Settling { leader, left: left.max(SignedDuration::ZERO) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};

    const A: &str = "cp-1_aaaa";
    const B: &str = "cp-2_bbbb";

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_000_000 + seconds)
    }

    fn lease(holder: &str, renewed: i64, duration: i32, preferred: Option<&str>) -> Lease {
        Lease {
            spec: LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                renew_time: Some(MicroTime(at(renewed))),
                lease_duration_seconds: Some(duration),
                preferred_holder: preferred.map(str::to_owned),
                ..LeaseSpec::default()
            },
            ..Lease::default()
        }
    }

    fn other(leader: &str, preferred: Option<&str>) -> LeaderStanding {
        LeaderStanding::Other { leader: leader.into(), preferred: preferred.map(str::to_owned) }
    }

    fn elected(leader: &str) -> LeaderStanding {
        LeaderStanding::Elected { leader: leader.into() }
    }

    fn settling(left: i64) -> LeaderStanding {
        LeaderStanding::Settling { leader: B.into(), left: SignedDuration::from_secs(left) }
    }

    fn leads() -> LeaderStanding {
        LeaderStanding::Leads { leader: B.into() }
    }

    fn play(name: &str, stable: i64, looks: &[(i64, Option<Lease>, LeaderStanding)]) {
        let mut wait = LeaderWait::new(name, SignedDuration::from_secs(stable));
        for (n, (now, lease, standing)) in looks.iter().enumerate() {
            let seen = wait.observe(lease.as_ref(), ServerTime(at(*now)));
            assert_eq!(seen, *standing, "look {n}, at {now}");
        }
    }

    #[test]
    fn a_handover_is_followed_until_the_new_leader_renews() {
        let mut nameless = lease("", 14, 1, None);
        let released = nameless.clone();
        nameless.spec.holder_identity = None;
        let mut endless = lease(B, 15, 15, None);
        endless.spec.lease_duration_seconds = None;
        play(
            "cp-2",
            0,
            &[
                (0, None, LeaderStanding::NoLease),
                (1, Some(lease(A, 0, 15, None)), other(A, None)),
                (2, Some(lease(A, 0, 15, Some(""))), other(A, None)),
                (3, Some(lease(A, 0, 15, Some(B))), other(A, Some(B))),
                (15, Some(lease(A, 0, 15, Some(B))), other(A, Some(B))),
                (16, Some(lease(A, 0, 15, Some(B))), LeaderStanding::Expired { holder: A.into() }),
                (16, Some(nameless), LeaderStanding::Released),
                (16, Some(released), LeaderStanding::Released),
                (16, Some(endless), LeaderStanding::Expired { holder: B.into() }),
                (17, Some(lease(B, 17, 5, None)), elected(B)),
                (18, Some(lease(B, 17, 5, None)), elected(B)),
                (19, Some(lease(B, 19, 15, None)), leads()),
            ],
        );
    }

    #[test]
    fn a_lead_counts_from_the_first_renewal_seen_to_one_that_is_late_enough() {
        let renewed = |seconds| Some(lease(B, seconds, 15, None));
        play(
            B,
            10,
            &[
                (1, renewed(0), elected(B)),
                (2, renewed(2), settling(10)),
                (3, renewed(2), settling(9)),
                (4, renewed(4), settling(8)),
                (11, renewed(11), settling(1)),
                // Long enough; but whether it still renews is not known.
                (13, renewed(11), settling(0)),
                (14, renewed(11), settling(0)),
                (14, renewed(14), leads()),
            ],
        );
    }

    #[test]
    fn a_lead_that_was_interrupted_counts_anew() {
        let renewed = |seconds| Some(lease(B, seconds, 15, None));
        let expired = LeaderStanding::Expired { holder: B.into() };
        let down = LeaderStanding::SteppingDown { leader: B.into(), preferred: A.into() };
        let again = "cp-2_cccc";
        let for_itself = LeaderStanding::SteppingDown { leader: B.into(), preferred: B.into() };
        for (interruption, standing) in [
            (renewed(2), expired),
            (Some(lease(B, 19, 15, Some(B))), for_itself),
            (Some(lease("", 2, 1, None)), LeaderStanding::Released),
            (None, LeaderStanding::NoLease),
            (Some(lease(A, 19, 15, None)), other(A, None)),
            (Some(lease(B, 19, 15, Some(A))), down),
            (Some(lease(again, 19, 15, None)), elected(again)),
        ] {
            play(
                "cp-2",
                10,
                &[
                    (0, renewed(0), elected(B)),
                    (2, renewed(2), settling(10)),
                    (20, interruption, standing),
                    (21, renewed(21), elected(B)),
                    (22, renewed(22), settling(10)),
                ],
            );
        }
        // Nothing was seen meanwhile, for longer than the last renewal held; then for just as long.
        play(
            "cp-2",
            10,
            &[
                (0, renewed(0), elected(B)),
                (2, renewed(2), settling(10)),
                (30, renewed(18), elected(B)),
                (31, renewed(31), settling(10)),
                (46, renewed(46), leads()),
            ],
        );
    }

    #[test]
    fn a_process_is_named_by_its_host_its_identity_or_the_beginning_of_it() {
        for (holder, name, is) in [
            ("cp-1_aaaa", "cp-1", true),
            ("cp-1_aaaa", "cp-1_aaaa", true),
            ("cp-1_aaaa", "cp-1_aa", true),
            ("cp-1_aaaa", "cp-1_", true),
            ("cp-1_aaaa", "cp-1_b", false),
            ("cp-10_aaaa", "cp-1", false),
            ("cp-1_aaaa", "cp", false),
            ("my_host_aaaa", "my_host", true),
            ("web-0", "web-0", true),
            ("web-0", "web", false),
            ("apps/web-0", "apps/web-0", true),
        ] {
            assert_eq!(is_named(holder, name), is, "{holder} {name}");
        }
    }
}
