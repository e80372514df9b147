//! What is done to pods and nodes, beside reading them: eviction, taints, and Events about it.

use http::Method;
use serde_json::{Value, json};

use super::{
    CRON_JOBS, Cluster, DAEMON_SETS, DEPLOYMENTS, EVENTS, JOBS, NODES, Object, PODS, REPLICA_SETS, Resource,
    STATEFUL_SETS,
    leases::micro_time,
    single::{Address, Addressed, DeleteRequest, Writing},
};
use crate::{
    error::{Permission, Result},
    rules::{
        lease::Metadata,
        node::{Node, Taint},
        pod::Pod,
        storage::{PersistentVolume, PersistentVolumeClaim, PodDisruptionBudget, VolumeAttachment},
        workload::{Kind, Workload},
    },
};

fn address(metadata: &Metadata) -> Address {
    Address::new(&metadata.namespace, &metadata.name)
}

macro_rules! addressed {
    ($($kind:ty),*) => { $(
        impl Addressed for $kind {
            fn address(&self) -> Address {
                address(&self.metadata)
            }
        }
    )* };
}

addressed!(Node, PersistentVolumeClaim, PersistentVolume, VolumeAttachment, PodDisruptionBudget, Workload);

/// Where controllers of a kind are.
pub fn workloads(kind: Kind) -> Resource {
    match kind {
        Kind::ReplicaSet => REPLICA_SETS,
        Kind::Deployment => DEPLOYMENTS,
        Kind::StatefulSet => STATEFUL_SETS,
        Kind::DaemonSet => DAEMON_SETS,
        Kind::Job => JOBS,
        Kind::CronJob => CRON_JOBS,
    }
}

impl Addressed for Pod {
    fn address(&self) -> Address {
        Address::new(&self.metadata.namespace, &self.metadata.name)
    }
}

/// An Event to leave about what was done.
#[derive(Clone, Debug)]
pub struct NewEvent<'a> {
    /// The resource of the object that it is about.
    pub resource: Resource,
    /// Where that object is.
    pub at: &'a Address,
    /// The UID of that object.
    pub uid: &'a str,
    /// One word for what was done.
    pub reason: &'static str,
    /// What was done, in a sentence.
    pub message: String,
    /// The user that did it.
    pub who: String,
}

impl Cluster {
    /// Evicts a pod as it was read: with its grace period, and if its disruption budgets allow it. A client with
    /// kube's default of retries asks a budget that allows none for half a minute, and what it then has sent may
    /// still be done: this is for one without retries.
    pub async fn evict(&self, pod: &Pod, dry_run: bool) -> Result<()> {
        let at = pod.address();
        let how = DeleteRequest {
            uid: &pod.metadata.uid,
            resource_version: &pod.metadata.resource_version,
            grace_seconds: pod.least_grace(),
            dry_run,
        };
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": { "name": at.name, "namespace": at.namespace },
            "deleteOptions": how.options("policy/v1"),
        });
        let needs = Permission {
            verbs: "create",
            resource: "pods/eviction".into(),
            namespace: Some(at.namespace.clone()),
        };
        let path = format!("{}/eviction", at.path(PODS)?);
        let writing = Writing { dry_run, ..Writing::default() };
        let _: Object<Value> =
            self.write(Method::POST, &path, "application/json", &eviction, &needs, &writing).await?;
        Ok(())
    }

    /// Sets the taints of a node as it was read.
    pub async fn set_taints(&self, node: &Node, taints: &[Taint], writing: &Writing) -> Result<Object<Node>> {
        // No taints is no field, as it was before there was one.
        let taints = if taints.is_empty() { Value::Null } else { json!(taints) };
        let patch = json!({
            "metadata": { "uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version },
            "spec": { "taints": taints },
        });
        self.patch(NODES, &node.address(), &patch, writing).await
    }

    /// Leaves an Event about what was done.
    pub async fn record(&self, record: &NewEvent<'_>, writing: &Writing) -> Result<()> {
        // Events about what is in no namespace are kept in the default one.
        let namespace = record.at.namespace().unwrap_or("default");
        let now = self.server_time().0;
        let time = format!("{now:.0}");
        // The API takes no more of either.
        let (message, who) = (first_bytes(&record.message, 1000), first_bytes(&record.who, 128));
        let event = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": { "generateName": format!("{}.", record.at.name), "namespace": namespace },
            "involvedObject": {
                "apiVersion": record.resource.api_version(), "kind": record.resource.kind,
                "namespace": record.at.namespace, "name": record.at.name, "uid": record.uid,
            },
            "type": "Warning", "reason": record.reason, "message": message, "action": record.reason,
            "reportingComponent": self.manager, "reportingInstance": who,
            "source": { "component": self.manager },
            "eventTime": micro_time(now), "firstTimestamp": time, "lastTimestamp": time, "count": 1,
        });
        let at = Address::new(namespace, "");
        let _: Object<Value> = self.create(EVENTS, &at, &event, writing).await?;
        Ok(())
    }
}

fn first_bytes(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}
