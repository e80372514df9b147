//! Leases of leader election, coordinated or not: which they are, how they stand, and whose process
//! it is that holds them.
//!
//! Nothing on a lease says what it is for. What is not a node's heartbeat, not the identity of a
//! kube-apiserver and not a maintenance lease is taken for leader election.
//!
//! A holder names itself as it likes. client-go's examples and nearly all components use
//! `<host name>_<uuid>`, and in a pod the host name is the pod's, or with host networking the
//! node's. So the process of a holder can be guessed, never known.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{
    identity,
    lease::{Lease, host},
    maintenance,
    node::HEARTBEATS,
    time::ServerTime,
};

/// client-go gives up after two thirds of the duration (renewDeadline 10 s of 15 s), having tried
/// every 2 s until then.
const LATE_AFTER_THIRDS: i32 = 2;

/// A failover takes up to 30 s: only a lease that expired longer ago than this can be a ghost.
const FAILOVER: SignedDuration = SignedDuration::from_secs(60);

/// The letters of the random parts of names that Kubernetes gives.
const RANDOM: &str = "bcdfghjklmnpqrstvwxz2456789";

/// So many changes of holder within this time are more than bad luck.
const FLAPPING: (usize, SignedDuration) = (3, SignedDuration::from_mins(10));

/// How a leader-election lease stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LeaseState {
    /// Renewed in time.
    Healthy,
    /// Not renewed for so long that the holder may be giving up.
    Late,
    /// It has expired.
    Expired,
    /// It has no holder.
    Released,
    /// It expired over a minute ago, and no pod and no node is called what its holder calls itself.
    Ghost,
    /// It has a holder but does not say until when.
    Unknown,
}

impl LeaseState {
    /// Whether the lease has a leader, and has not expired.
    pub fn has_leader(self) -> bool {
        matches!(self, Self::Healthy | Self::Late)
    }
}

/// The process that the holder is, by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind")]
pub enum Belongs {
    /// A pod.
    Pod {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A node.
    Node {
        /// Its name.
        name: String,
    },
    /// There is no pod and no node of this name.
    None,
    /// There is no permission to look at pods or nodes, or the lease has no holder.
    Unseen,
}

/// Where processes can be. `None` for what may not be looked at.
pub trait Places {
    /// The namespaces that have a pod of this name.
    fn pods(&self, name: &str) -> Option<Vec<&str>>;
    /// Whether there is a node of this name.
    fn node(&self, name: &str) -> Option<bool>;
}

/// Whether a lease looks like leader election.
pub fn is_leader_election(lease: &Lease) -> bool {
    let elsewhere = [HEARTBEATS, maintenance::NAMESPACE, maintenance::MEDIK8S_NAMESPACE];
    !elsewhere.contains(&lease.metadata.namespace.as_str()) && !identity::is_identity(lease)
}

/// The process that a holder is; a pod beside the lease rather than one elsewhere. A holder that
/// does not call itself `<host>_<something>`, nor as a controller calls its pods, cannot be told.
pub fn belongs(lease: &Lease, places: &impl Places) -> Belongs {
    let holder = lease.holder();
    let whole = host(holder);
    // A node may be known by the first part of its full name, and the other way round.
    let first = whole.split('.').next().unwrap_or(whole);
    let found = [whole, first].map(|host| find(host, lease, places));
    match found {
        [Belongs::None, Belongs::None] if whole.is_empty() => Belongs::Unseen,
        [Belongs::None, Belongs::None] if whole == holder && !is_pod_name(holder) => Belongs::Unseen,
        [Belongs::None, other] => other,
        [found, _] => found,
    }
}

/// Whether a name is one that a controller gave to a pod: it ends with five letters of theirs.
fn is_pod_name(name: &str) -> bool {
    let random = |part: &str| part.len() == 5 && part.chars().all(|c| RANDOM.contains(c));
    name.rsplit_once('-').is_some_and(|(rest, end)| !rest.is_empty() && random(end))
}

fn find(host: &str, lease: &Lease, places: &impl Places) -> Belongs {
    if host.is_empty() {
        return Belongs::None;
    }
    let (pods, node) = (places.pods(host), places.node(host));
    let beside = lease.metadata.namespace.as_str();
    match (&pods, node) {
        (Some(namespaces), _) if !namespaces.is_empty() => {
            let namespace = if namespaces.contains(&beside) { beside } else { namespaces[0] };
            Belongs::Pod { namespace: namespace.to_owned(), name: host.to_owned() }
        }
        (_, Some(true)) => Belongs::Node { name: host.to_owned() },
        (Some(_), Some(false)) => Belongs::None,
        _ => Belongs::Unseen,
    }
}

/// How a lease stands, given the process that its holder is.
pub fn state(lease: &Lease, belongs: &Belongs, now: ServerTime) -> LeaseState {
    if lease.holder().is_empty() {
        return LeaseState::Released;
    }
    let (Some(renewed), Some(duration)) = (lease.renewed(), lease.duration()) else {
        return LeaseState::Unknown;
    };
    let age = now.since(renewed);
    if age > duration {
        // A holder that renews runs somewhere, in this cluster or not: the hosts of a control plane need not be
        // nodes. One that does not renew, and is no pod or node, is gone; but not before another had the time to
        // follow.
        let gone = *belongs == Belongs::None && age - duration > FAILOVER;
        if gone { LeaseState::Ghost } else { LeaseState::Expired }
    } else if age * 3 > duration * LATE_AFTER_THIRDS {
        LeaseState::Late
    } else {
        LeaseState::Healthy
    }
}

/// The changes of holder that a watch has seen.
#[derive(Clone, Debug, Default)]
pub struct History {
    holder: Option<String>,
    changes: VecDeque<Timestamp>,
    /// How many changes there were.
    pub count: usize,
}

impl History {
    /// Takes in the holder of the lease now. That it is released and taken again by the same holder is
    /// no change.
    pub fn observe(&mut self, holder: &str, now: ServerTime) {
        if holder.is_empty() {
            return;
        }
        if let Some(before) = self.holder.replace(holder.to_owned())
            && before != holder
        {
            self.changes.push_back(now.0);
            if self.changes.len() > FLAPPING.0 {
                self.changes.pop_front();
            }
            self.count += 1;
        }
    }

    /// Whether the holder changes again and again.
    pub fn is_flapping(&self, now: ServerTime) -> bool {
        let (many, within) = FLAPPING;
        self.changes.iter().filter(|change| now.since(**change) < within).count() >= many
    }
}

/// A lease at a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseLook {
    /// Empty for none.
    pub holder: String,
    /// How the lease stands.
    pub state: LeaseState,
}

/// What happened to a lease between two looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseEvent {
    /// The lease was created.
    Appeared {
        /// Its holder, if it has one.
        holder: Option<String>,
    },
    /// The lease was deleted.
    Deleted {
        /// Its last holder, if it had one.
        holder: Option<String>,
    },
    /// It has another holder.
    Leads {
        /// The holder now.
        holder: String,
        /// The holder before, if there was one.
        before: Option<String>,
    },
    /// Its last renewal, or the lack of one, says something else of it.
    Became {
        /// Its state now.
        state: LeaseState,
        /// Its state before.
        before: LeaseState,
    },
}

impl LeaseEvent {
    /// From one look to the next, if anything happened; `None` for a lease that was, or is, not there.
    pub fn between(before: Option<&LeaseLook>, after: Option<&LeaseLook>) -> Option<Self> {
        let holder = |look: &LeaseLook| Some(look.holder.clone()).filter(|holder| !holder.is_empty());
        match (before, after) {
            (None, None) => None,
            (None, Some(new)) => Some(Self::Appeared { holder: holder(new) }),
            (Some(old), None) => Some(Self::Deleted { holder: holder(old) }),
            (Some(old), Some(new)) if new.holder != old.holder && !new.holder.is_empty() => {
                Some(Self::Leads { holder: new.holder.clone(), before: holder(old) })
            }
            (Some(old), Some(new)) => {
                (new.state != old.state).then_some(Self::Became { state: new.state, before: old.state })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::lease::Metadata;
    use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};

    struct Some_(&'static [(&'static str, &'static str)], &'static [&'static str]);
    struct NoRights;

    impl Places for Some_ {
        fn pods(&self, name: &str) -> Option<Vec<&str>> {
            Some(self.0.iter().filter(|(_, pod)| *pod == name).map(|(namespace, _)| *namespace).collect())
        }
        fn node(&self, name: &str) -> Option<bool> {
            Some(self.1.contains(&name))
        }
    }

    impl Places for NoRights {
        fn pods(&self, _: &str) -> Option<Vec<&str>> {
            None
        }
        fn node(&self, _: &str) -> Option<bool> {
            None
        }
    }

    fn now() -> ServerTime {
        ServerTime(Timestamp::UNIX_EPOCH + SignedDuration::from_hours(500_000))
    }

    fn lease(holder: Option<&str>, renewed: Option<i64>) -> Lease {
        let ago = |seconds| MicroTime(now().0 - SignedDuration::from_secs(seconds));
        Lease {
            metadata: Metadata { namespace: "apps".into(), ..Metadata::default() },
            spec: LeaseSpec {
                holder_identity: holder.map(str::to_owned),
                renew_time: renewed.map(ago),
                lease_duration_seconds: Some(15),
                ..LeaseSpec::default()
            },
        }
    }

    #[test]
    fn whose_process_and_how_it_stands() {
        const POD: &str = "web-7d4b9c8f6d-x2x5z";
        let there = Some_(&[("other", POD), ("apps", POD), ("ops", "operator-0")], &["cp-1"]);
        let pod =
            |namespace: &str, name: &str| Belongs::Pod { namespace: namespace.into(), name: name.into() };
        for (holder, renewed, belongs_, state_) in [
            (Some("web-7d4b9c8f6d-x2x5z_1234"), Some(1), pod("apps", POD), LeaseState::Healthy),
            (Some("web-7d4b9c8f6d-x2x5z_1234"), Some(10), pod("apps", POD), LeaseState::Healthy),
            (Some("web-7d4b9c8f6d-x2x5z_1234"), Some(11), pod("apps", POD), LeaseState::Late),
            (Some("web-7d4b9c8f6d-x2x5z_1234"), Some(15), pod("apps", POD), LeaseState::Late),
            (Some("web-7d4b9c8f6d-x2x5z_1234"), Some(16), pod("apps", POD), LeaseState::Expired),
            (Some("operator-0"), Some(1), pod("ops", "operator-0"), LeaseState::Healthy),
            (Some("cp-1_58b1"), Some(1), Belongs::Node { name: "cp-1".into() }, LeaseState::Healthy),
            (Some("cp-1_58b1"), Some(16), Belongs::Node { name: "cp-1".into() }, LeaseState::Expired),
            // Renewed by a process that is not in the cluster.
            (Some("laptop_58b1"), Some(1), Belongs::None, LeaseState::Healthy),
            (Some("laptop_58b1"), Some(11), Belongs::None, LeaseState::Late),
            (Some("cp-9_58b1"), Some(75), Belongs::None, LeaseState::Expired), // a failover, where hosts are no nodes
            (Some("cp-9_58b1"), Some(76), Belongs::None, LeaseState::Ghost),
            // Named like a pod: of another cluster, of a hosted control plane, or of none any more.
            (Some("web-7d4b9c8f6d-zzzzz_1"), Some(1), Belongs::None, LeaseState::Healthy),
            (Some("web-7d4b9c8f6d-zzzzz_1"), Some(16), Belongs::None, LeaseState::Expired),
            (Some("web-7d4b9c8f6d-zzzzz_1"), Some(90), Belongs::None, LeaseState::Ghost),
            // The plain name of a pod.
            (Some("web-7d4b9c8f6d-x2x5z"), Some(90), pod("apps", POD), LeaseState::Expired),
            (Some("web-7d4b9c8f6d-zzzzz"), Some(90), Belongs::None, LeaseState::Ghost),
            (Some("agent-zzzzz"), Some(90), Belongs::None, LeaseState::Ghost),
            (Some("some-words"), Some(90), Belongs::Unseen, LeaseState::Expired),
            (Some("zzzzz"), Some(90), Belongs::Unseen, LeaseState::Expired),
            (
                Some("cp-1.example.com_58b1"),
                Some(16),
                Belongs::Node { name: "cp-1".into() },
                LeaseState::Expired,
            ),
            // Nothing says that these are names of hosts.
            (Some("1700000000000-8081-ebs-csi-aws-com"), Some(90), Belongs::Unseen, LeaseState::Expired),
            (Some("apps/web-0"), Some(90), Belongs::Unseen, LeaseState::Expired),
            (Some("_"), Some(90), Belongs::Unseen, LeaseState::Expired),
            (Some(""), Some(1), Belongs::Unseen, LeaseState::Released),
            (None, None, Belongs::Unseen, LeaseState::Released),
            (Some("cp-1_1"), None, Belongs::Node { name: "cp-1".into() }, LeaseState::Unknown),
        ] {
            let lease = lease(holder, renewed);
            let found = belongs(&lease, &there);
            assert_eq!(found, belongs_, "{holder:?}");
            assert_eq!(state(&lease, &found, now()), state_, "{holder:?} {renewed:?}");
        }
        let gone = lease(Some("web-7d4b9c8f6d-zzzzz_1"), Some(16));
        assert_eq!(belongs(&gone, &NoRights), Belongs::Unseen);
        assert_eq!(state(&gone, &Belongs::Unseen, now()), LeaseState::Expired, "not seen is not gone");
    }

    #[test]
    fn a_lease_that_is_late_still_has_a_leader() {
        use LeaseState::{Expired, Ghost, Healthy, Late, Released, Unknown};
        let led = [Healthy, Late, Expired, Released, Ghost, Unknown].map(LeaseState::has_leader);
        assert_eq!(led, [true, true, false, false, false, false]);
    }

    #[test]
    fn what_happened_to_a_lease_between_two_looks() {
        let look = |holder: &str, state| Some(LeaseLook { holder: holder.to_owned(), state });
        let name = |name: &str| Some(name.to_owned());
        for (before, after, happened) in [
            (None, None, None),
            (None, look("a", LeaseState::Healthy), Some(LeaseEvent::Appeared { holder: name("a") })),
            (look("", LeaseState::Released), None, Some(LeaseEvent::Deleted { holder: None })),
            (look("a", LeaseState::Healthy), look("a", LeaseState::Healthy), None),
            (
                look("a", LeaseState::Expired),
                look("b", LeaseState::Healthy),
                Some(LeaseEvent::Leads { holder: "b".into(), before: name("a") }),
            ),
            (
                look("", LeaseState::Released),
                look("b", LeaseState::Healthy),
                Some(LeaseEvent::Leads { holder: "b".into(), before: None }),
            ),
            (
                look("a", LeaseState::Healthy),
                look("", LeaseState::Released),
                Some(LeaseEvent::Became { state: LeaseState::Released, before: LeaseState::Healthy }),
            ),
            (
                look("a", LeaseState::Healthy),
                look("a", LeaseState::Late),
                Some(LeaseEvent::Became { state: LeaseState::Late, before: LeaseState::Healthy }),
            ),
        ] {
            let found = LeaseEvent::between(before.as_ref(), after.as_ref());
            assert_eq!(found, happened, "{before:?} {after:?}");
        }
    }

    #[test]
    fn other_leases_are_not_leader_election() {
        for (namespace, label, is) in [
            ("kube-system", None, true),
            ("apps", None, true),
            (HEARTBEATS, None, false),
            (maintenance::NAMESPACE, None, false),
            (maintenance::MEDIK8S_NAMESPACE, None, false),
            ("kube-system", Some((identity::LABEL, "kube-apiserver")), false),
        ] {
            let mut lease = lease(Some("a"), Some(1));
            namespace.clone_into(&mut lease.metadata.namespace);
            lease.metadata.labels =
                label.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            assert_eq!(is_leader_election(&lease), is, "{namespace} {label:?}");
        }
    }

    #[test]
    fn three_changes_in_ten_minutes_are_flapping() {
        let at = |seconds| ServerTime(now().0 + SignedDuration::from_secs(seconds));
        let mut history = History::default();
        for (n, holder) in ["a", "", "a", "b", "a", "a"].into_iter().enumerate() {
            history.observe(holder, at(i64::try_from(n).unwrap() * 100));
            assert!(!history.is_flapping(at(500)));
        }
        assert_eq!(history.count, 2);
        history.observe("c", at(600));
        assert!(history.is_flapping(at(600)));
        assert!(history.is_flapping(at(899)));
        assert!(!history.is_flapping(at(900)), "the first is ten minutes ago");
        assert_eq!(history.count, 3);
    }
}
