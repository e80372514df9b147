//! Nodes: whether their kubelets are heard of.
//!
//! A kubelet renews its lease in `kube-node-lease` every 10 seconds, with a duration of 40. The node
//! lifecycle controller, which goes by the changes it sees and not by the timestamps of a node whose
//! clock may be wrong, sets Ready to Unknown after 50 seconds without one. So its word is final when
//! it says Unknown; until then the age of the lease tells what it is about to say.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    lease::{Lease, Metadata},
    pod::Condition,
    time::ServerTime,
};

/// Where kubelets say that they live.
pub const HEARTBEATS: &str = "kube-node-lease";
/// Put on a node whose machine is known to be off: pod GC then deletes what is Terminating there,
/// and its volumes are detached at once.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// The duration of a heartbeat lease: four renewals.
pub const LATE_AFTER: SignedDuration = SignedDuration::from_secs(40);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Node {
    pub metadata: Metadata,
    pub spec: NodeSpec,
    pub status: NodeStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    pub taints: Vec<Taint>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    pub key: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    pub effect: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_added: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    pub conditions: Vec<Condition>,
}

/// Whether a node is heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Contact {
    /// Its kubelet is alive, whether or not it calls itself ready.
    Heard,
    /// Heard of, though somebody has declared its machine to be off.
    Back,
    /// No heartbeat for longer than its lease lasts; not given up yet.
    Late,
    /// Given up: what runs there is not known.
    Silent,
    /// Silent, and somebody has declared its machine to be off.
    Fenced,
    /// There is no such node.
    Gone,
}

impl Contact {
    /// The word for it, as in the tables and in `-o json`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Heard => "heard",
            Self::Back => "back",
            Self::Late => "late",
            Self::Silent => "silent",
            Self::Fenced => "fenced",
            Self::Gone => "gone",
        }
    }

    /// Whether the kubelet is known to be alive.
    pub fn is_alive(self) -> bool {
        matches!(self, Self::Heard | Self::Back)
    }
}

impl Node {
    pub fn ready(&self) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.r#type == "Ready")
    }

    pub fn is_out_of_service(&self) -> bool {
        self.spec.taints.iter().any(|taint| taint.key == OUT_OF_SERVICE)
    }

    /// The last sign of life, by the node's own clock. Without a lease, or where it may not be read,
    /// that is the status that the kubelet writes every five minutes.
    pub fn heartbeat(&self, lease: Option<&Lease>) -> Option<Timestamp> {
        let status = self.ready().and_then(|ready| ready.last_heartbeat_time);
        lease.and_then(Lease::renewed).max(status)
    }

    /// Whether it is heard of; `lease` is its heartbeat.
    pub fn contact(&self, lease: Option<&Lease>, now: ServerTime) -> Contact {
        let late = self.heartbeat(lease).is_none_or(|heartbeat| now.since(heartbeat) > LATE_AFTER);
        let given_up = match self.ready() {
            Some(ready) => ready.status == "Unknown",
            None => late,
        };
        match (given_up, late, self.is_out_of_service()) {
            (true, _, true) => Contact::Fenced,
            (true, _, false) => Contact::Silent,
            (false, true, _) => Contact::Late,
            (false, false, true) => Contact::Back,
            (false, false, false) => Contact::Heard,
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
            node.spec.taints.push(Taint { key: OUT_OF_SERVICE.into(), ..Taint::default() });
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
        use Contact::{Back, Fenced, Gone, Heard, Late, Silent};
        for (ready, age, plain, tainted) in [
            (Some("True"), Some(5), Heard, Back),
            (Some("True"), Some(40), Heard, Back),
            (Some("True"), Some(41), Late, Late),
            (Some("True"), Some(-3600), Heard, Back), // its clock is ahead
            (Some("True"), None, Late, Late),
            (Some("False"), Some(5), Heard, Back), // alive, and says that it is not well
            (Some("False"), Some(41), Late, Late),
            (Some("False"), None, Late, Late),
            // The controller has seen no change, whatever the timestamps of the node say.
            (Some("Unknown"), Some(5), Silent, Fenced),
            (Some("Unknown"), Some(-3600), Silent, Fenced),
            (Some("Unknown"), Some(600), Silent, Fenced),
            (Some("Unknown"), None, Silent, Fenced),
            (None, Some(5), Heard, Back),
            (None, Some(600), Silent, Fenced),
            (None, None, Silent, Fenced), // never heard of
        ] {
            let lease = age.map(lease);
            for (taint, contact) in [(false, plain), (true, tainted)] {
                let contact_now = node(ready, taint).contact(lease.as_ref(), now());
                assert_eq!(contact_now, contact, "{ready:?} {age:?} {taint}");
                assert_ne!(contact_now, Gone);
            }
        }
    }

    #[test]
    fn without_a_lease_the_status_tells() {
        let mut node = node(Some("True"), false);
        node.status.conditions[0].last_heartbeat_time = Some(now().0 - SignedDuration::from_secs(20));
        assert_eq!(node.contact(None, now()), Contact::Heard);
        assert_eq!(node.contact(Some(&lease(600)), now()), Contact::Heard, "the newer of the two");
        node.status.conditions[0].last_heartbeat_time = Some(now().0 - SignedDuration::from_secs(290));
        assert_eq!(node.contact(None, now()), Contact::Late);
    }
}
