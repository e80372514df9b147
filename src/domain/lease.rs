//! The parts of a Lease that the rules look at.
//!
//! Objects are read into these instead of the full API types: `managedFields`, the larger half of
//! every object, is skipped, and nothing here can be written back by mistake with fields missing.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::LeaseSpec;
use serde::Deserialize;

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

/// What identifies an object and describes it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    pub resource_version: String,
    pub creation_timestamp: Option<Timestamp>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

/// A `coordination.k8s.io` Lease.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Lease {
    pub metadata: Metadata,
    pub spec: LeaseSpec,
}

impl Lease {
    /// Who holds it; empty for nobody.
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

    /// How long a renewal holds.
    pub fn duration(&self) -> Option<SignedDuration> {
        self.spec.lease_duration_seconds.map(|seconds| SignedDuration::from_secs(seconds.into()))
    }

    /// When its time runs out; `None` where it does not say.
    pub fn expires(&self) -> Option<Timestamp> {
        self.renewed()?.checked_add(self.duration()?).ok()
    }
}
