//! Words for what was found around a pod.

use jiff::SignedDuration;
use serde_json::{Value, json};

use kube_leases::rules::{
    assessment::NotRead,
    duration::{age, ago},
    evidence::{Evidence, Terminating},
    pod::Pod,
    surroundings::HeldBy,
    workload::Kind,
};

use super::{
    controllers::{bring_back, bring_back_unmarked},
    nodes,
    paste::with_flags,
    volumes,
};

/// A label, and what was found. Commands reach the cluster with these flags.
pub fn line(evidence: &Evidence, pod: &Pod, flags: &str) -> (&'static str, String) {
    match evidence {
        Evidence::Pod { phase, deletion, disruption } => {
            let by = disruption.as_ref().map_or_else(String::new, |reason| format!(", by {reason}"));
            ("pod", format!("{}{by}", state(phase, *deletion)))
        }
        Evidence::Node { name, heartbeat, ready, declared } => {
            let ready = ready.as_ref().map_or("no Ready condition".to_owned(), |(status, since)| {
                let since = since.map_or_else(String::new, |since| format!(" for {}", age(since)));
                format!("Ready is {status}{since}")
            });
            let declared = declared.map_or_else(String::new, |it| format!(", {}", nodes::declared(it)));
            ("node", format!("{name}: {}, {ready}{declared}", nodes::heartbeat(*heartbeat)))
        }
        Evidence::NodeMissing { name, heartbeat, is_recent } => {
            let text = match heartbeat {
                None => format!("{name} does not exist, since when is not known"),
                Some(since) if *is_recent => {
                    format!("{name} does not exist, but its kubelet sent a heartbeat {}", ago(*since))
                }
                Some(since) => format!("{name} does not exist, last heartbeat {}", ago(*since)),
            };
            ("node", text)
        }
        Evidence::NodeNotRead { name } => ("node", format!("no permission to read node {name}")),
        Evidence::HeldBy(held) => ("held by", held_by(held)),
        Evidence::Owner { controllers, stopped } => {
            let mut text = if controllers.is_empty() {
                "none".to_owned()
            } else {
                controllers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
            };
            if let (Some(before), Some(controller)) = (stopped, controllers.last()) {
                let namespace = &pod.metadata.namespace;
                let back = match before {
                    Some(before) => bring_back(controller, namespace, *before),
                    None => bring_back_unmarked(controller, namespace),
                };
                let back = with_flags(&back, flags);
                let stopped = if controller.is_job() { "suspended" } else { "scaled to 0" };
                text.push_str(", which is ");
                text.push_str(stopped);
                text.push_str("; once its containers have ended, bring it back with: ");
                text.push_str(&back);
            }
            ("owner", text)
        }
        Evidence::Replicas { ready, wanted, is_majority } => {
            let majority = if *is_majority { "a majority" } else { "no majority" };
            ("replicas", format!("{ready} of {wanted} are ready without this one: {majority}"))
        }
        Evidence::Volume(volume) => {
            ("volume", format!("{}: {}", volume.name, volumes::detail(&volume.source)))
        }
        Evidence::LeaderLease(lease) => ("leads", format!("lease {lease}")),
        Evidence::Finalizers(finalizers) => ("finalizers", finalizers.join(", ")),
        Evidence::NotRead(missing) => {
            let names: Vec<&str> = missing.iter().map(|what| not_read(*what)).collect();
            ("not read", format!("{}: counted as a risk where they could be one", names.join(", ")))
        }
    }
}

fn state(phase: &str, deletion: Option<Terminating>) -> String {
    match deletion {
        Some(Terminating { length, overdue, grace }) if overdue > SignedDuration::ZERO => {
            format!(
                "Terminating for {}, {} beyond its grace period of {}",
                age(length),
                age(overdue),
                age(grace)
            )
        }
        Some(Terminating { length, overdue, .. }) => {
            format!("Terminating for {}, {} of its grace period left", age(length), age(overdue.abs()))
        }
        None if phase.is_empty() => "phase unknown, not deleted".to_owned(),
        None => format!("{phase}, not deleted"),
    }
}

/// The holder of a node's maintenance lease, and its reason.
pub fn held_by(held: &HeldBy) -> String {
    let HeldBy { holder, reason } = held;
    reason.as_ref().map_or_else(|| holder.clone(), |reason| format!("{holder}: {reason}"))
}

/// The resource that could not be read.
pub fn not_read(what: NotRead) -> &'static str {
    match what {
        NotRead::Nodes => "nodes",
        NotRead::Heartbeats => "leases in kube-node-lease",
        NotRead::MaintenanceLeases => "leases in kube-node-maintenance",
        NotRead::LeaderLeases => "leases of leader elections",
        NotRead::PersistentVolumeClaims => "persistentvolumeclaims",
        NotRead::PersistentVolumes => "persistentvolumes",
        NotRead::VolumeAttachments => "volumeattachments.storage.k8s.io",
        NotRead::PodDisruptionBudgets => "poddisruptionbudgets.policy",
        NotRead::Controllers(Kind::ReplicaSet) => "replicasets.apps",
        NotRead::Controllers(Kind::Deployment) => "deployments.apps",
        NotRead::Controllers(Kind::StatefulSet) => "statefulsets.apps",
        NotRead::Controllers(Kind::DaemonSet) => "daemonsets.apps",
        NotRead::Controllers(Kind::Job) => "jobs.batch",
        NotRead::Controllers(Kind::CronJob) => "cronjobs.batch",
    }
}

/// What could not be read, for `-o json`.
pub fn document(what: NotRead) -> Value {
    let kind = match what {
        NotRead::Controllers(kind) => Some(kind.name()),
        _ => None,
    };
    json!({ "code": what.code(), "kind": kind, "resource": not_read(what) })
}

#[cfg(test)]
mod tests {
    use kube_leases::rules::{
        controller_ref::ControllerRef,
        node::Declared,
        volumes::{PodVolume, VolumeSource},
    };

    use super::*;

    #[test]
    #[allow(clippy::too_many_lines)] // a table
    fn the_evidence_reads_as_a_person_would_say_it() {
        let seconds = SignedDuration::from_secs;
        let terminating = |length, overdue| {
            Some(Terminating { length: seconds(length), overdue: seconds(overdue), grace: seconds(30) })
        };
        let of_pod = |phase: &str, deletion, disruption: Option<&str>| Evidence::Pod {
            phase: phase.into(),
            deletion,
            disruption: disruption.map(str::to_owned),
        };
        let missing = |heartbeat: Option<i64>, is_recent| Evidence::NodeMissing {
            name: "node-1".into(),
            heartbeat: heartbeat.map(seconds),
            is_recent,
        };
        let node = |heartbeat: Option<i64>, ready: Option<(&str, Option<i64>)>, declared| Evidence::Node {
            name: "node-1".into(),
            heartbeat: heartbeat.map(seconds),
            ready: ready.map(|(status, since)| (status.to_owned(), since.map(seconds))),
            declared,
        };
        let owner = |controllers: &[(&str, &str)], stopped| Evidence::Owner {
            controllers: controllers.iter().map(|(kind, name)| ControllerRef::new(*kind, *name)).collect(),
            stopped,
        };
        let held = |reason: Option<&str>| {
            Evidence::HeldBy(HeldBy { holder: "jane".into(), reason: reason.map(str::to_owned) })
        };
        let volume =
            PodVolume { name: "data".into(), source: VolumeSource::HostPath, exclusive: None, shared: true };
        let pod: Pod =
            serde_json::from_value(serde_json::json!({ "metadata": { "namespace": "shop" } })).unwrap();
        for (evidence, label, text) in [
            (of_pod("Running", None, None), "pod", "Running, not deleted".to_owned()),
            (of_pod("", None, None), "pod", "phase unknown, not deleted".into()),
            (
                of_pod("Running", terminating(600, 570), None),
                "pod",
                "Terminating for 10m, 9m30s beyond its grace period of 30s".into(),
            ),
            (
                of_pod("Running", terminating(5, -25), Some("EvictionByEvictionAPI")),
                "pod",
                "Terminating for 5s, 25s of its grace period left, by EvictionByEvictionAPI".into(),
            ),
            (
                node(Some(600), Some(("Unknown", None)), None),
                "node",
                "node-1: last heartbeat 10m ago, Ready is Unknown".into(),
            ),
            (
                node(None, None, Some(Declared::Before)),
                "node",
                "node-1: no heartbeat ever, no Ready condition, marked out of service before its last heartbeat"
                    .into(),
            ),
            (
                node(Some(5), Some(("True", Some(60))), Some(Declared::Undated)),
                "node",
                "node-1: last heartbeat 5s ago, Ready is True for 60s, marked out of service (the taint has no \
                 timeAdded)"
                    .into(),
            ),
            (
                missing(Some(5), true),
                "node",
                "node-1 does not exist, but its kubelet sent a heartbeat 5s ago".into(),
            ),
            (missing(Some(600), false), "node", "node-1 does not exist, last heartbeat 10m ago".into()),
            (missing(None, false), "node", "node-1 does not exist, since when is not known".into()),
            (
                Evidence::NodeNotRead { name: "node-1".into() },
                "node",
                "no permission to read node node-1".into(),
            ),
            (held(Some("new disk")), "held by", "jane: new disk".into()),
            (held(None), "held by", "jane".into()),
            (owner(&[], None), "owner", "none".into()),
            (owner(&[("ReplicaSet", "db-1"), ("Deployment", "db")], None), "owner", "ReplicaSet/db-1, Deployment/db".into()),
            (
                owner(&[("StatefulSet", "db")], Some(None)),
                "owner",
                "StatefulSet/db, which is scaled to 0; once its containers have ended, bring it back with: \
                 kubectl --context=b scale statefulset/db -n shop --replicas=NUMBER"
                    .into(),
            ),
            (
                owner(&[("Job", "db")], Some(None)),
                "owner",
                "Job/db, which is suspended; once its containers have ended, bring it back with: \
                 kubectl --context=b patch job/db -n shop -p '{\"spec\":{\"suspend\":false}}'"
                    .into(),
            ),
            (
                owner(&[("ReplicaSet", "db-1"), ("Deployment", "db")], Some(Some(4))),
                "owner",
                format!(
                    "ReplicaSet/db-1, Deployment/db, which is scaled to 0; once its containers have ended, bring it \
                     back with: {}",
                    with_flags(&bring_back(&ControllerRef::new("Deployment", "db"), "shop", 4), "--context=b")
                ),
            ),
            (
                Evidence::Replicas { ready: 2, wanted: 3, is_majority: true },
                "replicas",
                "2 of 3 are ready without this one: a majority".into(),
            ),
            (
                Evidence::Replicas { ready: 1, wanted: 3, is_majority: false },
                "replicas",
                "1 of 3 are ready without this one: no majority".into(),
            ),
            (Evidence::Volume(volume), "volume", "data: hostPath".into()),
            (Evidence::LeaderLease("shop/db".into()), "leads", "lease shop/db".into()),
            (Evidence::Finalizers(vec!["a".into(), "b".into()]), "finalizers", "a, b".into()),
            (
                Evidence::NotRead(vec![NotRead::Heartbeats, NotRead::Controllers(Kind::Job)]),
                "not read",
                "leases in kube-node-lease, jobs.batch: counted as a risk where they could be one".into(),
            ),
        ] {
            assert_eq!(line(&evidence, &pod, "--context=b"), (label, text));
        }
    }
}
