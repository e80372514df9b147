//! Nodes: whether their kubelets send heartbeats.
//!
//! A kubelet renews its lease in `kube-node-lease` every 10 seconds, with a duration of 40. The node
//! lifecycle controller, which goes by the changes it sees and not by the timestamps of a node whose
//! clock may be wrong, sets Ready to Unknown after 50 seconds without one. Until then the age of the
//! lease tells what it is about to say. After that its word holds only as long as there is no fresh
//! heartbeat: a machine that heartbeats is on, whatever its conditions and taints say.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    lease::{Lease, Metadata},
    pod::Condition,
    time::{self, ServerTime},
};

/// The namespace of the leases that kubelets renew.
pub const HEARTBEATS: &str = "kube-node-lease";
/// Put on a node whose machine is known to be off: pod GC then deletes what is Terminating there,
/// and its volumes are detached at once.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// The reason of a Ready condition that the node controller wrote, because no kubelet had.
const NEVER_REPORTED: &str = "NodeStatusNeverUpdated";
/// The duration of a heartbeat lease, which is four renewals, unless the kubelet was told another.
const LATE_AFTER: SignedDuration = SignedDuration::from_secs(40);
/// A node's clock may be ahead by so much, and its heartbeats are still taken for fresh: if it is dead,
/// they are old soon enough. One from further in the future says nothing about when it was sent.
const AHEAD: SignedDuration = SignedDuration::from_mins(10);

/// A Node, as far as the rules look at it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Standard object metadata.
    pub metadata: Metadata,
    /// What is wanted of it: its taints.
    pub spec: NodeSpec,
    /// What its kubelet and the node lifecycle controller report.
    pub status: NodeStatus,
}

/// What it should be.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    /// Keep pods off it that do not tolerate them.
    pub taints: Vec<Taint>,
}

/// A taint, which keeps pods off a node or evicts them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    /// What a toleration names, such as [`OUT_OF_SERVICE`].
    pub key: String,
    /// Compared by tolerations with the operator `Equal`; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
    /// When it was added, where its writer says so.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "time::read")]
    pub time_added: Option<Timestamp>,
}

/// When a node was marked out of service, by its taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declared {
    /// Since its last heartbeat.
    Since,
    /// Before that: the machine came back, and the taint was forgotten.
    Before,
    /// The taint has no `timeAdded`, as `kubectl taint` writes it.
    Undated,
}

/// How it is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// Such as Ready, which is Unknown when the kubelet sends no heartbeats.
    pub conditions: Vec<Condition>,
}

/// Whether so many of the nodes are silent at once that it is more likely that the control plane does not hear them
/// than that they have failed. Where that many of a zone are not ready, the node controller evicts no pods either
/// (`--unhealthy-zone-threshold`, by default 55 %).
pub fn is_mass_silence(silent: usize, nodes: usize) -> bool {
    silent >= 3 && silent * 100 > nodes * 55
}

/// Whether a node sends heartbeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeContact {
    /// Its kubelet is alive, whether or not it calls itself ready.
    #[serde(rename = "alive")]
    Heard,
    /// Its kubelet sends heartbeats, though it was marked out of service.
    Back,
    /// Its kubelet is alive and says that the node is not ready: what it starts and ends there may hang.
    NotReady,
    /// No heartbeat for longer than its lease lasts, and not given up yet; or given up, and yet there
    /// is a fresh one.
    Late,
    /// Given up: what runs there is not known.
    Silent,
    /// Silent, and it was marked out of service since its last heartbeat.
    Fenced,
    /// There is no such node object, and no fresh heartbeat: the machine may run all the same.
    Gone,
}

impl NodeContact {
    /// The word for it, as in the tables and in `-o json`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Heard => "alive",
            Self::Back => "back",
            Self::NotReady => "notready",
            Self::Late => "late",
            Self::Silent => "silent",
            Self::Fenced => "fenced",
            Self::Gone => "gone",
        }
    }

    /// Whether the kubelet is known to be alive.
    pub fn is_alive(self) -> bool {
        matches!(self, Self::Heard | Self::Back | Self::NotReady)
    }
}

/// How old a heartbeat may be: as long as its lease lasts.
pub fn late_after(lease: Option<&Lease>) -> SignedDuration {
    lease.and_then(Lease::duration).filter(SignedDuration::is_positive).unwrap_or(LATE_AFTER)
}

impl Node {
    /// Its Ready condition.
    pub fn ready(&self) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.r#type == "Ready")
    }

    /// Whether it has the out-of-service taint.
    pub fn is_out_of_service(&self) -> bool {
        self.spec.taints.iter().any(|taint| taint.key == OUT_OF_SERVICE)
    }

    /// When it was marked out of service; `None` if it is in service.
    pub fn declared(&self, lease: Option<&Lease>) -> Option<Declared> {
        let heard = self.heartbeat(lease);
        // The node controller's own clock: that it gave the node up after the taint shows that it had
        // seen a heartbeat again.
        let given_up = self.ready().and_then(|ready| ready.last_transition_time);
        let holds =
            |added: Timestamp| heard.is_none_or(|at| at <= added) && given_up.is_none_or(|at| at <= added);
        let taints = self.spec.taints.iter().filter(|taint| taint.key == OUT_OF_SERVICE);
        let each = taints.map(|taint| match taint.time_added {
            Some(added) if holds(added) => Declared::Since,
            Some(_) => Declared::Before,
            None => Declared::Undated,
        });
        // Of several, the one that holds; and the one that may hold before the one that does not.
        each.min_by_key(|declared| match declared {
            Declared::Since => 0,
            Declared::Undated => 1,
            Declared::Before => 2,
        })
    }

    /// Whether it was marked out of service since its last heartbeat. A taint that does not say
    /// when it was set is not believed: it may be from an earlier outage.
    pub fn is_fenced(&self, lease: Option<&Lease>) -> bool {
        self.declared(lease) == Some(Declared::Since)
    }

    /// Whether its kubelet says that it is not ready.
    pub fn says_not_ready(&self) -> bool {
        self.ready().is_some_and(|ready| ready.status == "False")
    }

    /// When its kubelet last wrote its status, which it does every five minutes: by the server's clock
    /// where that is known, for the node's may be wrong.
    fn reported(&self) -> Option<Timestamp> {
        // The node controller, for want of a report, writes when the object was created.
        let ready = self.ready().filter(|ready| ready.reason != NEVER_REPORTED)?;
        let reported = ready.last_heartbeat_time?;
        Some(self.metadata.written_by_kubelet.unwrap_or(reported))
    }

    /// The last sign of life. Without a lease, or where it may not be read, that is the status.
    pub fn heartbeat(&self, lease: Option<&Lease>) -> Option<Timestamp> {
        lease.and_then(Lease::heartbeat).max(self.reported())
    }

    /// Whether either sign of life is so new that the machine must be on.
    pub fn is_fresh(&self, lease: Option<&Lease>, now: ServerTime) -> bool {
        let fresh = |time| (-AHEAD..=late_after(lease)).contains(&now.since(time));
        lease.and_then(Lease::heartbeat).into_iter().chain(self.reported()).any(fresh)
    }

    /// Whether it is given up, and yet heartbeats.
    pub fn is_contradicted(&self, lease: Option<&Lease>, now: ServerTime) -> bool {
        self.ready().is_some_and(|ready| ready.status == "Unknown") && self.is_fresh(lease, now)
    }

    /// whether it sends heartbeats; `lease` is its heartbeat.
    pub fn contact(&self, lease: Option<&Lease>, now: ServerTime) -> NodeContact {
        let fresh = self.is_fresh(lease, now);
        let late = self.heartbeat(lease).is_none_or(|heartbeat| now.since(heartbeat) > late_after(lease));
        let alive = match self.ready() {
            Some(ready) if ready.status == "Unknown" => (!fresh).then_some(false),
            // The node controller, which goes by what changes, has not given it up.
            Some(_) => (!late).then_some(true),
            None if fresh => Some(true),
            None => late.then_some(false),
        };
        match (alive, self.is_out_of_service()) {
            (Some(true), false) if self.says_not_ready() => NodeContact::NotReady,
            (Some(true), false) => NodeContact::Heard,
            (Some(true), true) => NodeContact::Back,
            (Some(false), false) => NodeContact::Silent,
            // A heartbeat from far in the future is no proof of life, but that a machine is off is not
            // believed beside it: a living kubelet's clock may be wrong.
            (Some(false), true) if late && self.is_fenced(lease) => NodeContact::Fenced,
            (Some(false), true) if late => NodeContact::Silent,
            (Some(false), true) | (None, _) => NodeContact::Late,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    fn now() -> ServerTime {
        ServerTime(Timestamp::from_second(1_000_000).unwrap())
    }

    fn node(ready: Option<&str>, taint: bool) -> Node {
        let mut node = Node::default();
        node.status.conditions.extend(ready.map(|status| Condition {
            r#type: "Ready".into(),
            status: status.into(),
            ..Condition::default()
        }));
        if taint {
            let time_added = Some(now().0);
            node.spec.taints.push(Taint { key: OUT_OF_SERVICE.into(), time_added, ..Taint::default() });
        }
        node
    }

    fn lease(age: i64) -> Lease {
        let mut lease = Lease::default();
        lease.spec.renew_time = Some(MicroTime(now().0 - SignedDuration::from_secs(age)));
        lease
    }

    /// Every mixture of what the controller says, how old the heartbeat is, and the taint.
    #[test]
    fn contacts() {
        use NodeContact::{Back, Fenced, Gone, Heard, Late, NotReady, Silent};
        for (ready, age, plain, tainted) in [
            (Some("True"), Some(5), Heard, Back),
            (Some("True"), Some(40), Heard, Back),
            (Some("True"), Some(41), Late, Late),
            (Some("True"), Some(-3600), Heard, Back), // its clock is ahead
            (Some("True"), None, Late, Late),
            (Some("False"), Some(5), NotReady, Back), // alive, and says that it is not well
            (Some("False"), Some(41), Late, Late),
            (Some("False"), None, Late, Late),
            // A machine that sends heartbeats is on, also if Ready is Unknown or it was marked out of service.
            (Some("Unknown"), Some(0), Late, Late),
            (Some("Unknown"), Some(5), Late, Late),
            (Some("Unknown"), Some(40), Late, Late),
            (Some("Unknown"), Some(-600), Late, Late),
            // So far ahead, its clock does not say when that was; the controller has seen no change.
            (Some("Unknown"), Some(-601), Silent, Late),
            (Some("Unknown"), Some(-3600), Silent, Late),
            (Some("Unknown"), Some(41), Silent, Fenced),
            (Some("Unknown"), Some(600), Silent, Fenced),
            (Some("Unknown"), None, Silent, Fenced),
            (None, Some(5), Heard, Back),
            (None, Some(-3600), Late, Late),
            (None, Some(600), Silent, Fenced),
            (None, None, Silent, Fenced), // no heartbeat ever
        ] {
            let lease = age.map(lease);
            for (taint, contact) in [(false, plain), (true, tainted)] {
                let contact_now = node(ready, taint).contact(lease.as_ref(), now());
                assert_eq!(contact_now, contact, "{ready:?} {age:?} {taint}");
                assert_ne!(contact_now, Gone);
            }
        }
    }

    /// The times of the taint, of the last heartbeat, and of the node controller's giving it up, each
    /// so many seconds ago.
    #[test]
    fn a_fence_holds_only_for_the_silence_that_it_was_made_for() {
        for (taint, heartbeat, given_up, contact) in [
            (Some(60), 600, Some(550), NodeContact::Fenced),
            (Some(600), 600, Some(600), NodeContact::Fenced),
            (Some(60), 600, None, NodeContact::Fenced),
            // It sent a heartbeat after it was marked out of service.
            (Some(3600), 600, Some(4000), NodeContact::Silent),
            // Its clock was behind, but the node controller had to give it up once more.
            (Some(3600), 4000, Some(550), NodeContact::Silent),
            // It is not known when that was.
            (None, 600, Some(550), NodeContact::Silent),
        ] {
            let ago = |seconds| now().0 - SignedDuration::from_secs(seconds);
            let mut node = node(Some("Unknown"), true);
            node.spec.taints[0].time_added = taint.map(ago);
            node.status.conditions[0].last_transition_time = given_up.map(ago);
            assert_eq!(
                node.contact(Some(&lease(heartbeat)), now()),
                contact,
                "{taint:?} {heartbeat} {given_up:?}"
            );
        }
    }

    /// A node's clock may be behind by more than its heartbeats are apart.
    #[test]
    fn the_servers_clock_tells_when_a_kubelet_was_heard_of() {
        let written = |renewed: i64, written: i64| {
            let mut lease = lease(renewed);
            lease.metadata.written_by_kubelet = Some(now().0 - SignedDuration::from_secs(written));
            lease
        };
        for (ready, renewed, wrote, contact) in [
            ("True", 75, 5, NodeContact::Heard),
            ("True", -7200, 45, NodeContact::Late),
            ("Unknown", -7200, 600, NodeContact::Silent),
            ("Unknown", 75, 5, NodeContact::Late),
        ] {
            let node = node(Some(ready), false);
            assert_eq!(
                node.contact(Some(&written(renewed, wrote)), now()),
                contact,
                "{ready} {renewed} {wrote}"
            );
        }
        let lease: Lease = serde_json::from_value(serde_json::json!({
            "metadata": { "managedFields": [
                { "manager": "kubectl", "time": "2026-01-01T00:00:09Z", "fieldsV1": { "f:spec": {} } },
                { "manager": "kubelet", "time": "2026-01-01T00:00:05Z" }, { "manager": "kubelet" },
            ] },
            "spec": { "renewTime": "2026-01-01T00:00:00.000000Z" },
        }))
        .unwrap();
        assert_eq!(lease.heartbeat(), Some("2026-01-01T00:00:05Z".parse().unwrap()));
    }

    /// An hour ahead, its status would keep a node whose machine is off from being fenced for an hour.
    #[test]
    fn a_wrong_clock_in_the_status_does_not_count_either() {
        let at = |seconds| Some(now().0 - SignedDuration::from_secs(seconds));
        for (status, wrote, contact) in [
            (-3600, Some(600), NodeContact::Fenced),
            (3600, Some(600), NodeContact::Fenced),
            (-3600, None, NodeContact::Late),
            (3600, Some(5), NodeContact::Late), // it heartbeats
        ] {
            let mut node = node(Some("Unknown"), true);
            node.status.conditions[0].last_heartbeat_time = at(status);
            node.metadata.written_by_kubelet = wrote.and_then(at);
            assert_eq!(node.contact(Some(&lease(600)), now()), contact, "{status} {wrote:?}");
        }
    }

    #[test]
    fn without_a_lease_the_status_tells() {
        let mut node = node(Some("True"), false);
        node.status.conditions[0].last_heartbeat_time = Some(now().0 - SignedDuration::from_secs(20));
        assert_eq!(node.contact(None, now()), NodeContact::Heard);
        assert_eq!(node.contact(Some(&lease(600)), now()), NodeContact::Heard, "the newer of the two");
        node.status.conditions[0].last_heartbeat_time = Some(now().0 - SignedDuration::from_secs(290));
        assert_eq!(node.contact(None, now()), NodeContact::Late);
    }

    /// The object of a node that was created again: its Ready condition is the node controller's, with the
    /// time of the creation.
    #[test]
    fn what_no_kubelet_wrote_is_no_heartbeat() {
        for (reason, lease_age, contact, heartbeat) in [
            ("NodeStatusUnknown", 600, NodeContact::Late, 1),
            ("NodeStatusNeverUpdated", 600, NodeContact::Silent, 600),
            ("NodeStatusNeverUpdated", 5, NodeContact::Late, 5),
        ] {
            let ago = |seconds| Some(now().0 - SignedDuration::from_secs(seconds));
            let mut node = node(Some("Unknown"), false);
            node.status.conditions[0].reason = reason.into();
            node.status.conditions[0].last_heartbeat_time = ago(1);
            let lease = lease(lease_age);
            assert_eq!(node.contact(Some(&lease), now()), contact, "{reason} {lease_age}");
            assert_eq!(node.heartbeat(Some(&lease)), ago(heartbeat), "{reason} {lease_age}");
        }
    }

    /// Neither sign of life hides the other.
    #[test]
    fn any_fresh_sign_of_life_speaks_against_a_fence() {
        let (fresh, old, absurd) = (5, 600, -36_000);
        for (lease_age, status_age, contact) in [
            (fresh, old, NodeContact::Late),
            (old, fresh, NodeContact::Late),
            (fresh, absurd, NodeContact::Late),
            (absurd, fresh, NodeContact::Late),
            (old, absurd, NodeContact::Late),
            (absurd, old, NodeContact::Late),
            (old, old, NodeContact::Fenced),
        ] {
            let mut node = node(Some("Unknown"), true);
            node.status.conditions[0].last_heartbeat_time =
                Some(now().0 - SignedDuration::from_secs(status_age));
            let lease = lease(lease_age);
            assert_eq!(node.contact(Some(&lease), now()), contact, "{lease_age} {status_age}");
            let contradicted = [lease_age, status_age].contains(&fresh);
            assert_eq!(node.is_contradicted(Some(&lease), now()), contradicted);
        }
    }

    #[test]
    fn a_contact_reads_the_same_in_tables_and_in_json() {
        use NodeContact::{Back, Fenced, Gone, Heard, Late, NotReady, Silent};
        for contact in [Heard, Back, NotReady, Late, Silent, Fenced, Gone] {
            assert_eq!(serde_json::to_value(contact).unwrap(), contact.word());
            assert_eq!(contact.is_alive(), [Heard, Back, NotReady].contains(&contact), "{contact:?}");
        }
    }

    /// A kubelet may be told another duration for its lease.
    #[test]
    fn a_heartbeat_is_late_when_its_lease_has_run_out() {
        for (seconds, age, contact) in [
            (None, 40, NodeContact::Heard),
            (None, 41, NodeContact::Late),
            (Some(0), 40, NodeContact::Heard),
            (Some(10), 10, NodeContact::Heard),
            (Some(10), 11, NodeContact::Late),
            (Some(120), 120, NodeContact::Heard),
        ] {
            let mut lease = lease(age);
            lease.spec.lease_duration_seconds = seconds;
            assert_eq!(node(Some("True"), false).contact(Some(&lease), now()), contact, "{seconds:?} {age}");
        }
    }

    #[test]
    fn many_silent_nodes_at_once_are_more_likely_not_heard() {
        for (silent, nodes, mass) in [
            (0, 0, false),
            (1, 1, false),
            (2, 2, false),
            (3, 3, true),
            (3, 5, true),
            (3, 6, false),
            (55, 100, false),
            (56, 100, true),
        ] {
            assert_eq!(is_mass_silence(silent, nodes), mass, "{silent} of {nodes}");
        }
    }
}
