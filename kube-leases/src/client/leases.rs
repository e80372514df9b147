//! Reading and writing single leases.

use http::Method;
use jiff::Timestamp;
use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};
use serde_json::{Value, json};

use super::{
    Cluster, LEASES, Object, Query, Remark, lock,
    single::{Address, Writing},
};
use crate::{
    error::{Error, Permission, Result},
    rules::{
        lease::{Lease, Metadata},
        maintenance::{ADOPTED, MEDIK8S_NAMESPACE, REASON, Record, SUPERSEDED, medik8s_holder, medik8s_name},
    },
};

/// What a lease says from now on beside its spec.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notes<'a> {
    /// Why it is held.
    pub reason: Option<&'a str>,
    /// When the lease that is adopted, and will be put back, was acquired.
    pub adopted: Option<Timestamp>,
}

impl Cluster {
    /// A lease, or `None` where there is none.
    pub async fn lease(&self, at: &Address) -> Result<Option<Object<Lease>>> {
        self.get(LEASES, at).await
    }

    /// Creates a lease, to go when `owner`, a node, goes.
    pub async fn create_lease(
        &self,
        at: &Address,
        record: &Record,
        reason: Option<&str>,
        owner: Option<&Metadata>,
        writing: &Writing,
    ) -> Result<Object<Lease>> {
        let annotations = reason.map(|reason| json!({ REASON: reason })).unwrap_or(json!({}));
        let lease = json!({
            "apiVersion": LEASES.api_version(),
            "kind": LEASES.kind,
            "metadata": {
                "name": at.name, "namespace": at.namespace, "annotations": annotations,
                "ownerReferences": owner.map(owners).unwrap_or_default(),
            },
            "spec": spec(&record.spec()),
        });
        self.create(LEASES, at, &lease, writing).await
    }

    /// Writes holder, times and transitions over a lease as it was read; what is `None` is removed. With an
    /// `owner`, a node, it goes with that and nothing else, whatever was written there meanwhile.
    pub async fn write_lease(
        &self,
        at: &Address,
        before: &Lease,
        written: &LeaseSpec,
        notes: Notes<'_>,
        owner: Option<&Metadata>,
        writing: &Writing,
    ) -> Result<Object<Lease>> {
        let mut patch = json!({
            "metadata": {
                "uid": before.metadata.uid,
                "resourceVersion": before.metadata.resource_version,
                "annotations": { REASON: notes.reason, ADOPTED: notes.adopted.map(micro_time) },
            },
            "spec": spec(written),
        });
        if let Some(owner) = owner {
            patch["metadata"]["ownerReferences"] = owners(owner).into();
        }
        self.patch(LEASES, at, &patch, writing).await
    }

    /// Renews a lease as it was last read or written; nothing else changes.
    pub async fn renew_lease(&self, at: &Address, before: &Lease, renewal: &Record) -> Result<Object<Lease>> {
        let patch = json!({
            "metadata": { "uid": before.metadata.uid, "resourceVersion": before.metadata.resource_version },
            "spec": { "renewTime": micro_time(renewal.renewed), "leaseDurationSeconds": renewal.seconds },
        });
        self.patch(LEASES, at, &patch, &Writing::default()).await
    }

    /// Makes a new version of a lease as it was last read or written, and changes nothing that it says.
    pub async fn mark_lease(
        &self,
        at: &Address,
        before: &Lease,
        now: Timestamp,
        writing: &Writing,
    ) -> Result<Object<Lease>> {
        let patch = json!({
            "metadata": {
                "uid": before.metadata.uid, "resourceVersion": before.metadata.resource_version,
                "annotations": { SUPERSEDED: micro_time(now) },
            },
        });
        self.patch(LEASES, at, &patch, writing).await
    }

    /// Makes a lease, as it was last read or written, go with this node and nothing else.
    pub async fn own_lease(
        &self,
        at: &Address,
        before: &Lease,
        node: &Metadata,
        writing: &Writing,
    ) -> Result<Object<Lease>> {
        let patch = json!({
            "metadata": {
                "uid": before.metadata.uid, "resourceVersion": before.metadata.resource_version,
                "ownerReferences": owners(node),
            },
        });
        self.patch(LEASES, at, &patch, writing).await
    }

    /// The holder of medik8s' lease on a node, if it is held.
    ///
    /// Without permission to read medik8s' leases: none, and a warning. But where that was possible once, a
    /// refusal is one that may pass, and tells nothing.
    pub async fn medik8s_holder(&self, node: &str) -> Result<Option<String>> {
        let at = Address::new(MEDIK8S_NAMESPACE, medik8s_name(node));
        let read = || lock(&self.medik8s_read);
        let lease = match self.lease(&at).await {
            // A user with permission to list leases may lack that to get one.
            Err(refused @ Error::Forbidden { .. }) => match self.listed_lease(&at).await {
                Err(Error::Forbidden { .. }) => Err(refused),
                lease => lease,
            },
            lease => lease,
        };
        match lease {
            Err(Error::Forbidden { .. }) if !read().contains(node) => {
                self.remark(Remark::Medik8sUnseen);
                Ok(None)
            }
            lease => {
                if lease.is_ok() {
                    read().insert(node.to_owned());
                }
                let holder = |lease: &Lease| medik8s_holder(lease, self.server_time()).map(str::to_owned);
                Ok(lease?.and_then(|lease| holder(&lease.value)))
            }
        }
    }

    /// A lease, read by a list of those with its name.
    async fn listed_lease(&self, at: &Address) -> Result<Option<Object<Lease>>> {
        let by_name = format!("metadata.name={}", at.name);
        let query = Query::new(LEASES).namespace(&at.namespace).select(None, Some(&by_name));
        Ok(self.list(&query).await?.items.into_iter().next())
    }

    /// Whether medik8s' lease on one of these nodes could be read before.
    pub fn has_read_medik8s<'a>(&self, mut nodes: impl Iterator<Item = &'a Metadata>) -> bool {
        let read = lock(&self.medik8s_read);
        nodes.any(|node| read.contains(&node.name))
    }

    /// Notes that medik8s' leases on these nodes could be read.
    pub fn medik8s_was_read<'a>(&self, nodes: impl Iterator<Item = &'a Metadata>) {
        lock(&self.medik8s_read).extend(nodes.map(|node| node.name.clone()));
    }

    /// Creates a namespace, unless another client has meanwhile.
    pub async fn create_namespace(&self, name: &str, writing: &Writing) -> Result<()> {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        let needs = Permission { verbs: "create", resource: "namespaces".into(), namespace: None };
        let created: Result<Object<Value>> = self
            .write(Method::POST, "/api/v1/namespaces", "application/json", &namespace, &needs, writing)
            .await;
        match created {
            Err(error) if !error.is_conflict() => Err(error),
            _ => Ok(()),
        }
    }
}

/// What goes when a node goes.
fn owners(node: &Metadata) -> Vec<Value> {
    vec![json!({ "apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid })]
}

fn spec(spec: &LeaseSpec) -> Value {
    let time = |time: &Option<MicroTime>| time.as_ref().map(|time| micro_time(time.0));
    json!({
        "holderIdentity": spec.holder_identity,
        "leaseDurationSeconds": spec.lease_duration_seconds,
        "acquireTime": time(&spec.acquire_time),
        "renewTime": time(&spec.renew_time),
        "leaseTransitions": spec.lease_transitions,
    })
}

/// The API takes exactly six digits.
pub(super) fn micro_time(time: Timestamp) -> String {
    format!("{time:.6}")
}
