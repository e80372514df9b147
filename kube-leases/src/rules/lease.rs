//! The parts of a Lease that the rules look at.
//!
//! Objects are read into these instead of the full API types: `managedFields`, the larger half of
//! every object, is skipped, and nothing here can be written back by mistake with fields missing.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};
use serde::{Deserialize, Deserializer};

use super::time;

/// The host in the name that a process gives itself: nearly all call themselves `<host>_<uuid>`.
pub fn host(identity: &str) -> &str {
    identity.rsplit_once('_').map_or(identity, |(host, _)| host)
}

/// A name that a person can read: the host, and the beginning of what tells it from its predecessors.
pub fn short(identity: &str) -> String {
    match identity.rsplit_once('_') {
        Some((host, rest)) => format!("{host}_{}", rest.chars().take(8).collect::<String>()),
        None => identity.to_owned(),
    }
}

/// Whether an object can have this name: lower case letters, digits, '-' and '.'.
pub fn is_object_name(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.len() <= 253 && name.starts_with(edge) && name.ends_with(edge) && name.chars().all(inner)
}

/// Whether it can stand in the path of a URL as it is, and be read there as nothing else. All that [names of
/// objects](is_object_name) can be do, and those of candidates, which are as the keys of a `ConfigMap`.
pub fn is_path_segment(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=253).contains(&name.len()) && name != "." && !name.starts_with("..") && name.chars().all(fits)
}

/// What identifies an object and describes it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Its name.
    pub name: String,
    /// Its namespace; empty if it is in none.
    pub namespace: String,
    /// Its uid.
    pub uid: String,
    /// Its resource version.
    pub resource_version: String,
    /// When it was created.
    #[serde(deserialize_with = "time::read")]
    pub creation_timestamp: Option<Timestamp>,
    /// When it is, or was, to be gone.
    #[serde(deserialize_with = "time::read")]
    pub deletion_timestamp: Option<Timestamp>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// The objects that it goes with.
    pub owner_references: Vec<Owner>,
    /// What has to be done before it is gone.
    pub finalizers: Vec<String>,
    /// When a kubelet last wrote it, by the server's clock.
    #[serde(rename = "managedFields", deserialize_with = "written_by_kubelet")]
    pub written_by_kubelet: Option<Timestamp>,
}

/// An object that another one goes with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Owner {
    /// The API group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Whether it is the one that controls the object.
    pub controller: bool,
}

impl Owner {
    /// Whether it is of this kind of Kubernetes' own: others have kinds of the same name.
    pub fn is(&self, api_version: &str, kind: &str) -> bool {
        self.api_version == api_version && self.kind == kind
    }
}

/// Of all that managed fields tell, the time of a kubelet's last write.
fn written_by_kubelet<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct ManagedFieldsEntry {
        manager: String,
        #[serde(deserialize_with = "time::read")]
        time: Option<Timestamp>,
    }
    let entries = Option::<Vec<ManagedFieldsEntry>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(entries.into_iter().filter(|entry| entry.manager == "kubelet").filter_map(|entry| entry.time).max())
}

impl Metadata {
    /// Whether this goes with an earlier node of the same name: the garbage collector is about to
    /// delete it.
    pub fn belongs_to_predecessor_of(&self, node: &Self) -> bool {
        let earlier =
            |owner: &Owner| owner.kind == "Node" && owner.name == node.name && owner.uid != node.uid;
        self.owner_references.iter().any(earlier)
    }
}

/// A `coordination.k8s.io` Lease.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Lease {
    /// What identifies it.
    pub metadata: Metadata,
    /// Its holder and times.
    #[serde(deserialize_with = "read_spec")]
    pub spec: LeaseSpec,
}

/// Reads a spec by our own idea of time: the API's type fails at the last days that the API takes.
fn read_spec<'de, D: Deserializer<'de>>(deserializer: D) -> Result<LeaseSpec, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct LeaseSpecFields {
        holder_identity: Option<String>,
        lease_duration_seconds: Option<i32>,
        lease_transitions: Option<i32>,
        #[serde(deserialize_with = "time::read")]
        acquire_time: Option<Timestamp>,
        #[serde(deserialize_with = "time::read")]
        renew_time: Option<Timestamp>,
        preferred_holder: Option<String>,
        strategy: Option<String>,
    }
    let spec = LeaseSpecFields::deserialize(deserializer)?;
    Ok(LeaseSpec {
        holder_identity: spec.holder_identity,
        lease_duration_seconds: spec.lease_duration_seconds,
        lease_transitions: spec.lease_transitions,
        acquire_time: spec.acquire_time.map(MicroTime),
        renew_time: spec.renew_time.map(MicroTime),
        preferred_holder: spec.preferred_holder,
        strategy: spec.strategy,
    })
}

impl Lease {
    /// Its holder; empty if it has none.
    pub fn holder(&self) -> &str {
        self.spec.holder_identity.as_deref().unwrap_or_default()
    }

    /// Why it is held, in the holder's words.
    pub fn reason(&self) -> Option<&str> {
        self.metadata.annotations.get(super::maintenance::REASON).map(String::as_str)
    }

    /// When the holder last renewed.
    pub fn renewed(&self) -> Option<Timestamp> {
        self.spec.renew_time.as_ref().map(|time| time.0)
    }

    /// When the kubelet sent this heartbeat. By the server's clock where the server
    /// has noted it: the time that a kubelet writes is as wrong as the clock of its machine.
    pub fn heartbeat(&self) -> Option<Timestamp> {
        self.metadata.written_by_kubelet.or_else(|| self.renewed())
    }

    /// How long a renewal holds.
    pub fn duration(&self) -> Option<SignedDuration> {
        self.spec.lease_duration_seconds.map(|seconds| SignedDuration::from_secs(seconds.into()))
    }

    /// `renewTime` and `leaseDurationSeconds`, as client-go adds them; `None` where one is not set. A maintenance
    /// lease is held for three seconds longer: see [`maintenance::expiry`](super::maintenance::expiry).
    pub fn expires(&self) -> Option<Timestamp> {
        self.renewed()?.checked_add(self.duration()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_of_a_node_that_was_recreated_is_recognised() {
        let node = Metadata { name: "n".into(), uid: "2".into(), ..Metadata::default() };
        let owned = |owners: serde_json::Value| -> Metadata {
            serde_json::from_value(serde_json::json!({ "name": "n", "ownerReferences": owners })).unwrap()
        };
        let reference = |kind: &str, name: &str, uid: &str| serde_json::json!({ "apiVersion": "v1", "kind": kind, "name": name, "uid": uid });
        for (owners, earlier) in [
            (serde_json::json!([]), false),
            (serde_json::json!([reference("Node", "n", "2")]), false),
            (serde_json::json!([reference("Node", "n", "1")]), true),
            (serde_json::json!([reference("Node", "m", "1")]), false),
            (serde_json::json!([reference("ConfigMap", "n", "1")]), false),
        ] {
            assert_eq!(owned(owners.clone()).belongs_to_predecessor_of(&node), earlier, "{owners}");
        }
    }

    #[test]
    fn a_spec_is_read_whole_and_survives_the_end_of_time() {
        let lease: Lease = serde_json::from_value(serde_json::json!({
            "metadata": { "name": "x", "creationTimestamp": "9999-12-31T23:59:59Z" },
            "spec": {
                "holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 2,
                "acquireTime": "2026-01-02T03:04:05.000006Z", "renewTime": "9999-12-31T23:59:59.000000Z",
                "preferredHolder": "b", "strategy": "OldestEmulationVersion", "invented": {},
            },
        }))
        .unwrap();
        let spec = LeaseSpec {
            holder_identity: Some("a".into()),
            lease_duration_seconds: Some(15),
            lease_transitions: Some(2),
            acquire_time: Some(MicroTime("2026-01-02T03:04:05.000006Z".parse().unwrap())),
            renew_time: Some(MicroTime(Timestamp::MAX)),
            preferred_holder: Some("b".into()),
            strategy: Some("OldestEmulationVersion".into()),
        };
        assert_eq!(lease.spec, spec);
        assert_eq!(lease.metadata.creation_timestamp, Some(Timestamp::MAX));
        assert_eq!(lease.expires(), None, "later than there is a time for");
        let empty: Lease = serde_json::from_str(r#"{"spec":{"renewTime":null}}"#).unwrap();
        assert_eq!(empty.spec, LeaseSpec::default());
        assert_eq!((empty.holder(), empty.reason(), empty.duration()), ("", None, None));
        assert_eq!((empty.renewed(), empty.expires()), (None, None));
    }

    #[test]
    fn what_a_lease_says_is_read_from_its_fields() {
        let lease: Lease = serde_json::from_value(serde_json::json!({
            "metadata": { "annotations": { "kubectl-lease.dev/reason": "a disk", "other": "x" } },
            "spec": {
                "holderIdentity": "jane", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.000006Z",
            },
        }))
        .unwrap();
        assert_eq!((lease.holder(), lease.reason()), ("jane", Some("a disk")));
        assert_eq!(lease.renewed(), Some("2026-01-02T03:04:05.000006Z".parse().unwrap()));
        assert_eq!(lease.duration(), Some(SignedDuration::from_secs(15)));
        assert_eq!(lease.expires(), Some("2026-01-02T03:04:20.000006Z".parse().unwrap()));
    }

    #[test]
    fn a_host_is_what_comes_before_the_last_underscore() {
        for (identity, host, short) in [
            ("cp-1_58b10081-17ca", "cp-1", "cp-1_58b10081"),
            ("a_b_c", "a_b", "a_b_c"),
            ("jane@laptop", "jane@laptop", "jane@laptop"),
            ("_x", "", "_x"),
            ("", "", ""),
        ] {
            assert_eq!((super::host(identity), super::short(identity).as_str()), (host, short));
        }
    }

    #[test]
    fn names_of_objects_are_those_that_the_api_takes() {
        let long = "a".repeat(253);
        for name in ["a", "0", "node-1", "ip-10-0-0-1.ec2.internal", "a--b", long.as_str()] {
            assert!(is_object_name(name), "{name}");
        }
        let too_long = "a".repeat(254);
        for name in ["", "-a", "a-", ".a", "a.", "A", "aB", "a_b", "a/b", "ä", "a b", too_long.as_str()] {
            assert!(!is_object_name(name), "{name}");
        }
    }

    #[test]
    fn what_stands_in_a_path_is_read_as_nothing_else() {
        let (long, too_long) = ("a".repeat(253), "a".repeat(254));
        for name in ["a", "node-1", "ip-10-0-0-1.ec2.internal", "My_Candidate", ".a", long.as_str()] {
            assert!(is_path_segment(name), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            "../nodes",
            "a/status",
            "a?x",
            "a#x",
            "a%2fb",
            "a b",
            "a\\b",
            "ä",
            "a\n",
            too_long.as_str(),
        ] {
            assert!(!is_path_segment(name), "{name}");
        }
    }
}
