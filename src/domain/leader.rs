//! Leases of leader election, coordinated or not: which they are, how they stand, and whose process
//! it is that holds them.
//!
//! Nothing on a lease says what it is for. What is not a node's heartbeat, not the identity of a
//! kube-apiserver and not a maintenance lease is taken for leader election.
//!
//! A holder names itself as it likes. client-go's examples and nearly all components use
//! `<host name>_<uuid>`, and in a pod the host name is the pod's, or with host networking the
//! node's. So whose it is can be guessed, never known.

use std::{collections::VecDeque, fmt};

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

/// So long after a lease ran out its holder may have ended an instant ago: a failover takes up to half a minute.
const FAILOVER: SignedDuration = SignedDuration::from_secs(60);

/// The letters of the random parts of names that Kubernetes gives.
const RANDOM: &str = "bcdfghjklmnpqrstvwxz2456789";

/// So many changes of hands within this time are more than bad luck.
const FLAPPING: (usize, SignedDuration) = (3, SignedDuration::from_mins(10));

/// How a leader-election lease stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Renewed in time.
    Healthy,
    /// Not renewed for so long that the holder may be giving up.
    Late,
    /// Its time has run out.
    Expired,
    /// Nobody holds it.
    Released,
    /// It expired over a minute ago, and no pod and no node is called what its holder calls itself.
    Ghost,
    /// It has a holder but does not say until when.
    Unknown,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Late => "late",
            Self::Expired => "expired",
            Self::Released => "released",
            Self::Ghost => "ghost",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the lease has a leader whose time has not run out.
    pub fn has_leader(self) -> bool {
        matches!(self, Self::Healthy | Self::Late)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Whose process the holder is, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Belongs {
    Pod {
        namespace: String,
        name: String,
    },
    Node(String),
    /// To nothing that there is.
    Nobody,
    /// The pods or nodes could not be looked at, or nobody holds it.
    Unseen,
}

impl fmt::Display for Belongs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod { namespace, name } => write!(f, "pod/{namespace}/{name}"),
            Self::Node(name) => write!(f, "node/{name}"),
            Self::Nobody | Self::Unseen => Ok(()),
        }
    }
}

/// Where processes can be. `None` for what may not be looked at.
pub trait Places {
    /// The namespaces that have a pod of this name.
    fn pods(&self, name: &str) -> Option<Vec<&str>>;
    fn node(&self, name: &str) -> Option<bool>;
}

/// Whether a lease looks like leader election.
pub fn is_leader_election(lease: &Lease) -> bool {
    let elsewhere = [HEARTBEATS, maintenance::NAMESPACE, maintenance::MEDIK8S_NAMESPACE];
    !elsewhere.contains(&lease.metadata.namespace.as_str()) && !identity::is_identity(lease)
}

/// Whose the holder of a lease is; a pod beside the lease rather than one elsewhere. A holder that
/// does not call itself `<host>_<something>`, nor as a controller calls its pods, cannot be told.
pub fn belongs(lease: &Lease, places: &impl Places) -> Belongs {
    let holder = lease.holder();
    let whole = host(holder);
    // A node may be known by the first part of its full name, and the other way round.
    let first = whole.split('.').next().unwrap_or(whole);
    let found = [whole, first].map(|host| find(host, lease, places));
    match found {
        [Belongs::Nobody, Belongs::Nobody] if whole.is_empty() => Belongs::Unseen,
        [Belongs::Nobody, Belongs::Nobody] if whole == holder && !is_pod_name(holder) => Belongs::Unseen,
        [Belongs::Nobody, other] => other,
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
        return Belongs::Nobody;
    }
    let (pods, node) = (places.pods(host), places.node(host));
    let beside = lease.metadata.namespace.as_str();
    match (&pods, node) {
        (Some(namespaces), _) if !namespaces.is_empty() => {
            let namespace = if namespaces.contains(&beside) { beside } else { namespaces[0] };
            Belongs::Pod { namespace: namespace.to_owned(), name: host.to_owned() }
        }
        (_, Some(true)) => Belongs::Node(host.to_owned()),
        (Some(_), Some(false)) => Belongs::Nobody,
        _ => Belongs::Unseen,
    }
}

/// How a lease stands, given whose the holder is.
pub fn state(lease: &Lease, belongs: &Belongs, now: ServerTime) -> State {
    if lease.holder().is_empty() {
        return State::Released;
    }
    let (Some(renewed), Some(duration)) = (lease.renewed(), lease.duration()) else { return State::Unknown };
    let age = now.since(renewed);
    if age > duration {
        // Who renews is somewhere, in this cluster or not: the hosts of a control plane need not be nodes. Who
        // does not, and is nowhere, is gone; but not before somebody else had the time to follow.
        let gone = *belongs == Belongs::Nobody && age - duration > FAILOVER;
        if gone { State::Ghost } else { State::Expired }
    } else if age * 3 > duration * LATE_AFTER_THIRDS {
        State::Late
    } else {
        State::Healthy
    }
}

/// The changes of hands that somebody who watches has seen.
#[derive(Clone, Debug, Default)]
pub struct History {
    holder: Option<String>,
    changes: VecDeque<Timestamp>,
    pub count: usize,
}

impl History {
    /// Takes in who holds the lease now. That it is released and taken again by the same holder is
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

    pub fn is_flapping(&self, now: ServerTime) -> bool {
        let (many, within) = FLAPPING;
        self.changes.iter().filter(|change| now.since(**change) < within).count() >= many
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::lease::Metadata;
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
            (Some("web-7d4b9c8f6d-x2x5z_1234"), Some(1), pod("apps", POD), State::Healthy),
            (Some("web-7d4b9c8f6d-x2x5z_1234"), Some(10), pod("apps", POD), State::Healthy),
            (Some("web-7d4b9c8f6d-x2x5z_1234"), Some(11), pod("apps", POD), State::Late),
            (Some("web-7d4b9c8f6d-x2x5z_1234"), Some(15), pod("apps", POD), State::Late),
            (Some("web-7d4b9c8f6d-x2x5z_1234"), Some(16), pod("apps", POD), State::Expired),
            (Some("operator-0"), Some(1), pod("ops", "operator-0"), State::Healthy),
            (Some("cp-1_58b1"), Some(1), Belongs::Node("cp-1".into()), State::Healthy),
            (Some("cp-1_58b1"), Some(16), Belongs::Node("cp-1".into()), State::Expired),
            // Renewed by somebody who is not in the cluster.
            (Some("laptop_58b1"), Some(1), Belongs::Nobody, State::Healthy),
            (Some("laptop_58b1"), Some(11), Belongs::Nobody, State::Late),
            (Some("cp-9_58b1"), Some(75), Belongs::Nobody, State::Expired), // a failover, where hosts are no nodes
            (Some("cp-9_58b1"), Some(76), Belongs::Nobody, State::Ghost),
            // Named like a pod: of another cluster, of a hosted control plane, or of none any more.
            (Some("web-7d4b9c8f6d-zzzzz_1"), Some(1), Belongs::Nobody, State::Healthy),
            (Some("web-7d4b9c8f6d-zzzzz_1"), Some(16), Belongs::Nobody, State::Expired),
            (Some("web-7d4b9c8f6d-zzzzz_1"), Some(90), Belongs::Nobody, State::Ghost),
            // The plain name of a pod.
            (Some("web-7d4b9c8f6d-x2x5z"), Some(90), pod("apps", POD), State::Expired),
            (Some("web-7d4b9c8f6d-zzzzz"), Some(90), Belongs::Nobody, State::Ghost),
            (Some("agent-zzzzz"), Some(90), Belongs::Nobody, State::Ghost),
            (Some("some-words"), Some(90), Belongs::Unseen, State::Expired),
            (Some("zzzzz"), Some(90), Belongs::Unseen, State::Expired),
            (Some("cp-1.example.com_58b1"), Some(16), Belongs::Node("cp-1".into()), State::Expired),
            // Nothing says that these are names of hosts.
            (Some("1700000000000-8081-ebs-csi-aws-com"), Some(90), Belongs::Unseen, State::Expired),
            (Some("apps/web-0"), Some(90), Belongs::Unseen, State::Expired),
            (Some("_"), Some(90), Belongs::Unseen, State::Expired),
            (Some(""), Some(1), Belongs::Unseen, State::Released),
            (None, None, Belongs::Unseen, State::Released),
            (Some("cp-1_1"), None, Belongs::Node("cp-1".into()), State::Unknown),
        ] {
            let lease = lease(holder, renewed);
            let found = belongs(&lease, &there);
            assert_eq!(found, belongs_, "{holder:?}");
            assert_eq!(state(&lease, &found, now()), state_, "{holder:?} {renewed:?}");
        }
        let gone = lease(Some("web-7d4b9c8f6d-zzzzz_1"), Some(16));
        assert_eq!(belongs(&gone, &NoRights), Belongs::Unseen);
        assert_eq!(state(&gone, &Belongs::Unseen, now()), State::Expired, "not seen is not gone");
    }

    #[test]
    fn a_state_reads_the_same_in_tables_and_in_json() {
        use State::{Expired, Ghost, Healthy, Late, Released, Unknown};
        for state in [Healthy, Late, Expired, Released, Ghost, Unknown] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.to_string());
        }
        let led = [Healthy, Late, Expired, Released, Ghost, Unknown].map(State::has_leader);
        assert_eq!(led, [true, true, false, false, false, false]);
        let pod = Belongs::Pod { namespace: "apps".into(), name: "web-0".into() };
        let words = [pod, Belongs::Node("cp-1".into()), Belongs::Nobody].map(|belongs| belongs.to_string());
        assert_eq!(words, ["pod/apps/web-0", "node/cp-1", ""]);
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
