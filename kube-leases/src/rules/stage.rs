//! Pods, and what is around them, for the tables of tests.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    advice::{Alternative, Safe},
    assessment::Assessment,
    pod::Pod,
    risk::Risk,
    surroundings::Surroundings,
    time::ServerTime,
    workload::{Kind, Workload},
};

pub(super) fn now() -> ServerTime {
    ServerTime(Timestamp::from_second(1_000_000).unwrap())
}

pub(super) fn ago(seconds: i64) -> String {
    format!("{:.6}", now().0 - SignedDuration::from_secs(seconds))
}

pub(super) fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

pub(super) fn named<T: serde::de::DeserializeOwned>(values: Value) -> BTreeMap<String, T> {
    read(values)
}

/// Of which version Kubernetes has this kind.
pub(super) fn version(kind: &str) -> &str {
    match kind {
        "StatefulSet" | "ReplicaSet" | "DaemonSet" => "apps/v1",
        "Job" => "batch/v1",
        "ReplicationController" | "Node" => "v1",
        _ => "example.com/v1",
    }
}

/// A pod of `kind` on node-1, deleted so many seconds ago.
pub(super) fn pod(kind: &str, deleted: Option<i64>, volumes: &Value) -> Pod {
    let owners = match kind {
        "" => json!([]),
        kind => {
            json!([{ "apiVersion": version(kind), "kind": kind, "name": "db", "uid": "u", "controller": true }])
        }
    };
    let until = deleted.map(|seconds| ago(seconds - 30));
    read(json!({
        "metadata": {
            "name": "db-0", "namespace": "shop", "uid": "5e1f", "ownerReferences": owners, "labels": { "app": "db" },
            "deletionTimestamp": until, "deletionGracePeriodSeconds": until.as_ref().map(|_| 30),
        },
        "spec": { "nodeName": "node-1", "volumes": volumes },
        "status": { "phase": "Running" },
    }))
}

/// node-1 with a heartbeat of that age, and what the node controller would say of it.
pub(super) fn around(age: i64) -> Surroundings {
    let status = if age > 50 { "Unknown" } else { "True" };
    let ready = json!({ "type": "Ready", "status": status });
    Surroundings {
        nodes: Some(named(json!({ "node-1": { "status": { "conditions": [ready] } } }))),
        heartbeats: Some(named(json!({ "node-1": { "spec": { "renewTime": ago(age) } } }))),
        maintenance: Some(BTreeMap::new()),
        leaders: Some(Vec::new()),
        claims: Some(BTreeMap::new()),
        volumes: Some(BTreeMap::new()),
        attachments: Some(Vec::new()),
        budgets: Some(Vec::new()),
        workloads: workloads(),
        unread: BTreeSet::new(),
    }
}

/// The controllers called 'db', of each kind, that run two for a while without harm where they can.
pub(super) fn workloads() -> BTreeMap<(Kind, String), Workload> {
    let one = |kind: Kind| {
        let uid = if kind == Kind::Deployment { "d" } else { "u" };
        let spec = json!({ "replicas": 3, "parallelism": 3 });
        let metadata = json!({ "name": "db", "namespace": "shop", "uid": uid });
        let workload = json!({ "metadata": metadata, "spec": spec, "status": { "readyReplicas": 3 } });
        ((kind, "shop/db".to_owned()), read(workload))
    };
    Kind::ALL.into_iter().map(one).collect()
}

/// The same, with node-1 marked out of service.
pub(super) fn fenced(mut around: Surroundings) -> Surroundings {
    let taint =
        json!({ "key": "node.kubernetes.io/out-of-service", "effect": "NoExecute", "timeAdded": ago(0) });
    around.nodes.as_mut().unwrap().get_mut("node-1").unwrap().spec.taints.push(read(taint));
    around
}

pub(super) fn ready(mut pod: Pod) -> Pod {
    pod.status.conditions = read(json!([{ "type": "Ready", "status": "True" }]));
    pod
}

pub(super) fn risk_of(pod: &Pod, around: &Surroundings) -> Risk {
    Assessment::of(pod, around, now()).risk
}

/// A silent node, and a lease that this one holds.
pub(super) fn led(namespace: &str, holder: &str) -> Surroundings {
    let lease =
        json!({ "metadata": { "name": "l", "namespace": namespace }, "spec": { "holderIdentity": holder } });
    Surroundings { leaders: Some(vec![read(lease)]), ..around(600) }
}

/// Its code, as in `-o json`.
pub(super) fn code(of: &impl Serialize) -> String {
    let value = serde_json::to_value(of).unwrap();
    value["code"].as_str().or(value.as_str()).unwrap().to_owned()
}

/// The codes of the reasons.
pub(super) fn reasons(assessment: &Assessment) -> Vec<String> {
    assessment.reasons.iter().map(code).collect()
}

/// The codes of what is safer, and of its terms where it has some.
pub(super) fn ways(assessment: &Assessment) -> Vec<String> {
    assessment.safer.iter().map(way).collect()
}

/// The code of a way, and of its terms where it has some.
pub(super) fn way(of: &Alternative) -> String {
    let value = serde_json::to_value(&of.advice).unwrap();
    let terms = [&value["terms"], &value["until"], &value["then"]].into_iter().find(|terms| !terms.is_null());
    match terms {
        Some(terms) => format!("{}: {}", code(&of.advice), code(terms)),
        None => code(&of.advice),
    }
}

/// What is judged, with its node not ready.
pub(super) fn not_ready(mut around: Surroundings) -> Surroundings {
    around.nodes.as_mut().unwrap().get_mut("node-1").unwrap().status.conditions[0].status = "False".into();
    around
}

/// What can be done without force, each of the ways.
pub(super) fn takes(assessment: &Assessment) -> Vec<Option<Safe>> {
    assessment.safer.iter().map(|way| way.takes).collect()
}
