//! All there is to say about force-deleting one pod: what was found around it, how risky that makes it
//! and why, and what is safer.

use serde::Serialize;

use super::{
    advice::{self, Alternative, Eviction},
    controller_ref::ControllerRef,
    evidence::{self, Evidence},
    leadership::led_by,
    node::{Node, NodeContact},
    pod::{Pod, VolumeLocation},
    reasons::{self, Reason},
    risk::{DeletionStage, PodFacts, Risk},
    storage::PodDisruptionBudget,
    surroundings::Surroundings,
    time::ServerTime,
    volumes::{PodVolume, volumes_of},
    workload::{self, Kind, Ownership, ReplacementReason},
};

/// What a Job keeps its pods with until it has counted them.
const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// Why force deletion would not do what is hoped of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Futile {
    /// The object stays until they are taken off.
    Finalizers,
    /// The process is not ended, and the object comes back.
    Mirror,
}

/// What could not be found out, for want of permission or because it is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRead {
    /// Nodes.
    Nodes,
    /// The leases that kubelets renew.
    Heartbeats,
    /// The leases that hold nodes for maintenance.
    MaintenanceLeases,
    /// The leases of leader elections.
    LeaderLeases,
    /// `PersistentVolumeClaims`.
    PersistentVolumeClaims,
    /// `PersistentVolumes`.
    PersistentVolumes,
    /// `VolumeAttachments`.
    VolumeAttachments,
    /// `PodDisruptionBudgets`.
    PodDisruptionBudgets,
    /// Controllers of this kind.
    Controllers(Kind),
}

impl NotRead {
    /// The same for programs: never renamed.
    pub fn code(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Heartbeats => "heartbeats",
            Self::MaintenanceLeases => "maintenance-leases",
            Self::LeaderLeases => "leader-leases",
            Self::PersistentVolumeClaims => "persistent-volume-claims",
            Self::PersistentVolumes => "persistent-volumes",
            Self::VolumeAttachments => "volume-attachments",
            Self::PodDisruptionBudgets => "pod-disruption-budgets",
            Self::Controllers(_) => "controllers",
        }
    }
}

/// All there is to say about force-deleting one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assessment {
    /// How risky it is.
    pub risk: Risk,
    /// Whether force does what is hoped of it.
    pub futile: Option<Futile>,
    /// Whether its node sends heartbeats; `None` if that is not known.
    pub contact: Option<NodeContact>,
    /// Its volumes, as far as their data does not go with it.
    pub volumes: Vec<PodVolume>,
    /// The leases it leads by.
    pub leads: Vec<String>,
    /// What was found.
    pub evidence: Vec<Evidence>,
    /// Why it is as risky as it is.
    pub reasons: Vec<Reason>,
    /// What could not be found out, and is counted as a risk.
    pub missing: Vec<NotRead>,
    /// The disruption budgets that have nothing left for it.
    pub spent_budgets: Vec<String>,
    /// The controllers behind it.
    pub ownership: Ownership,
    /// What is safer, the safest first.
    pub safer: Vec<Alternative>,
}

impl Assessment {
    /// Judges one pod by what is known around it.
    pub fn of(pod: &Pod, around: &Surroundings, now: ServerTime) -> Self {
        let volumes = volumes_of(pod, around);
        let leads = around.leaders.as_ref().map(|leases| led_by(pod, leases));
        let budgets: Option<Vec<&PodDisruptionBudget>> = around.budgets.as_ref().map(|budgets| {
            let concerned = |budget: &&PodDisruptionBudget| {
                budget.concerns(&pod.metadata.namespace, &pod.metadata.labels)
            };
            budgets.iter().filter(concerned).collect()
        });
        let spent: Option<Vec<String>> = budgets.as_ref().map(|budgets| {
            let spent = budgets.iter().filter(|budget| !budget.allows(pod.is_ready()));
            spent.map(|budget| budget.metadata.name.clone()).collect()
        });
        let ownership = workload::ownership(pod, around);
        let node = &pod.spec.node_name;
        let contact = around.contact(node, now);
        // One that its kubelet reports not to be ready takes nothing away. Of a node that is not well its
        // readiness is not known.
        let not_ready = around.node(node).is_some_and(Node::says_not_ready);
        let is_well = contact == Some(NodeContact::Heard) || contact == Some(NodeContact::Back) && !not_ready;
        let counts = pod.is_ready() || !is_well;
        let facts = PodFacts {
            scheduled: pod.is_scheduled(),
            finished: pod.is_finished(),
            mirror: pod.is_mirror(),
            nodeless: pod.is_scheduled() && around.lacks(node),
            unread: around.nodes.is_none(),
            contact,
            not_ready,
            ended: pod.has_ended(now),
            deletion: match pod.metadata.deletion_timestamp {
                None => DeletionStage::NotBegun,
                Some(_) if pod.is_stuck(now) => DeletionStage::Stuck,
                Some(_) => DeletionStage::Begun,
            },
            successor: ownership.successor,
            alone: ownership.alone,
            exclusive: if volumes.iter().any(|volume| volume.exclusive == Some(true)) {
                Some(true)
            } else if volumes.iter().any(|volume| volume.exclusive.is_none()) {
                None
            } else {
                Some(false)
            },
            shared: volumes.iter().any(|volume| volume.shared),
            single: ownership.single,
            leads: leads.as_ref().map(|leads| !leads.is_empty()),
            no_budget: spent.as_ref().map(|budgets| !budgets.is_empty()),
            no_majority: if counts {
                ownership.replicas.map(|replicas| !replicas.keep_a_majority_without(pod))
            } else {
                Some(false)
            },
            out_of_service: around.node(node).and_then(|known| known.declared(around.heartbeat(node))),
        };
        // A pod that only claims to be a mirror pod is no use to force either, and is judged as any other.
        let futile = if pod.is_marked_as_mirror() {
            Some(Futile::Mirror)
        } else {
            (!lasting_finalizers(pod, &ownership).is_empty()).then_some(Futile::Finalizers)
        };
        let eviction = match (&budgets, &spent) {
            (Some(budgets), Some(spent)) if budgets.len() > 1 => Eviction::SeveralBudgets {
                names: budgets.iter().map(|budget| budget.metadata.name.clone()).collect(),
                spent: !spent.is_empty(),
            },
            (_, Some(spent)) if !spent.is_empty() => Eviction::Spent(spent.clone()),
            (None, _) | (_, None) => Eviction::Unknown,
            _ => Eviction::Possible,
        };
        let mut assessment = Self {
            risk: facts.risk(),
            futile,
            contact: facts.contact,
            volumes,
            leads: leads.unwrap_or_default(),
            evidence: Vec::new(),
            reasons: Vec::new(),
            missing: missing(pod, &facts, around),
            safer: advice::ways(pod, &facts, &ownership, &eviction, now),
            spent_budgets: spent.clone().unwrap_or_default(),
            ownership,
        };
        assessment.evidence = evidence::evidence(pod, &assessment, &facts, around, now);
        let doubted =
            around.node(node).is_some_and(|known| known.is_contradicted(around.heartbeat(node), now));
        assessment.reasons = reasons::reasons(pod, &assessment, &facts, spent.as_deref(), doubted);
        assessment
    }

    /// The most serious of the reasons.
    pub fn main_reason(&self) -> Option<&Reason> {
        reasons::most_serious(&self.reasons)
    }

    /// What is done without force, if anything can be.
    pub fn safe_way(&self) -> Option<advice::Safe> {
        self.safer.iter().find_map(|way| way.takes)
    }
}

/// The finalizers that keep the object although it is deleted by force. A Job takes its own off as soon
/// as the pod is Terminating, unless it waits for the pod's end.
pub(super) fn lasting_finalizers<'a>(pod: &'a Pod, ownership: &Ownership) -> Vec<&'a str> {
    let is_known = matches!(ownership.why, ReplacementReason::Rolling | ReplacementReason::CronJobForbids);
    let by_job = (is_known || ownership.managed_by.is_some())
        && ownership.controller.as_ref().is_some_and(ControllerRef::is_job);
    let lasts = |finalizer: &&str| *finalizer != JOB_TRACKING || !by_job;
    pod.metadata.finalizers.iter().map(String::as_str).filter(lasts).collect()
}

fn missing(pod: &Pod, facts: &PodFacts, around: &Surroundings) -> Vec<NotRead> {
    if !facts.scheduled || facts.finished {
        return Vec::new();
    }
    let has_claims = pod
        .spec
        .volumes
        .iter()
        .any(|volume| matches!(volume.source(&pod.metadata.name), Some(VolumeLocation::Claim(_))));
    let all = [
        (around.nodes.is_none(), NotRead::Nodes),
        (around.heartbeats.is_none(), NotRead::Heartbeats),
        (around.maintenance.is_none(), NotRead::MaintenanceLeases),
        (around.leaders.is_none(), NotRead::LeaderLeases),
        (around.claims.is_none() && has_claims, NotRead::PersistentVolumeClaims),
        (around.volumes.is_none() && has_claims, NotRead::PersistentVolumes),
        (around.attachments.is_none() && has_claims, NotRead::VolumeAttachments),
        (around.budgets.is_none(), NotRead::PodDisruptionBudgets),
    ];
    let controllers = around.unread.iter().filter(|kind| concerns(pod, **kind));
    let controllers = controllers.map(|kind| NotRead::Controllers(*kind));
    all.into_iter().filter(|(missing, _)| *missing).map(|(_, what)| what).chain(controllers).collect()
}

/// Whether controllers of this kind may be behind a pod.
fn concerns(pod: &Pod, kind: Kind) -> bool {
    let mut owners = pod.metadata.owner_references.iter().filter_map(Kind::of);
    owners.any(|owner| owner == kind || owner.above() == Some(kind))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;
    use crate::rules::{
        advice::{Advice, DeleteTerms, Safe},
        stage::{
            self, ago, around, fenced, led, named, now, pod, read, ready, reasons, risk_of, version, ways,
            workloads,
        },
        stopped,
        volumes::VolumeSource,
    };

    /// What is shown where there is room for one reason only.
    #[test]
    fn the_most_serious_reason() {
        let none = json!([]);
        let host_path = json!([{ "name": "data", "hostPath": { "path": "/data" } }]);
        let inline = json!([{ "name": "data", "iscsi": {} }]);
        let budget = json!({
            "metadata": { "name": "b", "namespace": "shop" },
            "spec": { "selector": { "matchLabels": { "app": "db" } } },
        });
        let spent = Surroundings { budgets: Some(vec![read(budget)]), ..around(5) };
        let unread = Surroundings { leaders: None, ..around(600) };
        let mut kept = pod("", Some(600), &none);
        kept.metadata.finalizers.push("example.com/hold".into());
        let mut no_grace = pod("StatefulSet", None, &none);
        no_grace.spec.termination_grace_period_seconds = Some(0);
        let finished: Pod =
            read(json!({ "spec": { "nodeName": "node-1" }, "status": { "phase": "Succeeded" } }));
        for (pod, around, risk, reason) in [
            // A pod without a controller is critical for what it writes to, and not for having none.
            (pod("", None, &inline), around(600), Risk::Critical, "exclusive-volume"),
            (pod("", None, &none), led("shop", "db-0_1"), Risk::Critical, "leader-lease"),
            (pod("", None, &none), around(600), Risk::Low, "node-silent"),
            (pod("", None, &none), around(5), Risk::Medium, "node-alive"),
            (pod("", None, &none), around(45), Risk::Medium, "node-late"),
            (pod("", Some(600), &none), around(5), Risk::High, "stuck"),
            (kept, around(600), Risk::Low, "finalizers"),
            (pod("StatefulSet", None, &host_path), around(600), Risk::Critical, "stateful-set"),
            (no_grace, around(600), Risk::Critical, "stateful-set"),
            (pod("StatefulSet", None, &none), fenced(around(600)), Risk::Low, "node-out-of-service"),
            (pod("DaemonSet", None, &none), around(5), Risk::Critical, "daemon-set"),
            (pod("PostgresCluster", None, &none), around(5), Risk::Critical, "unknown-controller"),
            (pod("ReplicaSet", None, &none), around(600), Risk::Low, "node-silent"),
            (pod("ReplicaSet", None, &none), unread, Risk::Critical, "leadership-unknown"),
            (ready(pod("ReplicaSet", None, &none)), spent, Risk::High, "budget-spent"),
            (ready(pod("ReplicationController", None, &none)), around(5), Risk::High, "majority-unknown"),
            (finished, around(5), Risk::None, "finished"),
        ] {
            let assessment = Assessment::of(&pod, &around, now());
            let main = assessment.main_reason().map(stage::code);
            assert_eq!((assessment.risk, main.as_deref()), (risk, Some(reason)), "{assessment:#?}");
            // A reason is never less serious than the risk that it is to explain.
            let seriousness = assessment.main_reason().map(Reason::seriousness);
            assert!(seriousness >= Some(risk), "{assessment:#?}");
        }
    }

    #[test]
    fn owners() {
        let none = json!([]);
        for (kind, silent, heard) in [
            ("StatefulSet", Risk::Critical, Risk::Critical),
            ("ReplicaSet", Risk::Low, Risk::Medium),
            // Whether it has others that are ready is not known where this one is.
            ("ReplicationController", Risk::Low, Risk::High),
            ("Job", Risk::Low, Risk::Medium),
            ("DaemonSet", Risk::Critical, Risk::Critical),
            ("", Risk::Low, Risk::Medium),
            // An operator's own kind: what it relies on is not known.
            ("PostgresCluster", Risk::Critical, Risk::Critical),
        ] {
            let pod = ready(pod(kind, None, &none));
            assert_eq!((risk_of(&pod, &around(600)), risk_of(&pod, &around(5))), (silent, heard), "{kind}");
        }
    }

    /// The owner's owner decides: a Deployment that never runs two.
    #[test]
    fn a_deployment_that_recreates_is_one() {
        let none = json!([]);
        let pod = pod("ReplicaSet", None, &none);
        for (strategy, silent, reason) in
            [("RollingUpdate", Risk::Low, "two-are-harmless"), ("Recreate", Risk::Critical, "recreate")]
        {
            let mut around = around(600);
            let set = around.workloads.get_mut(&(Kind::ReplicaSet, "shop/db".into())).unwrap();
            set.metadata.owner_references = read(json!([
                { "apiVersion": "apps/v1", "kind": "Deployment", "name": "db", "uid": "d", "controller": true },
            ]));
            let deployment = json!({
                "metadata": { "name": "db", "namespace": "shop", "uid": "d" },
                "spec": { "replicas": 3, "strategy": { "type": strategy } },
            });
            around.workloads.insert((Kind::Deployment, "shop/db".into()), read(deployment));
            let assessment = Assessment::of(&pod, &around, now());
            assert_eq!(assessment.risk, silent, "{strategy}");
            assert!(reasons(&assessment).iter().any(|it| it == reason), "{:?}", assessment.reasons);
            let controllers =
                vec![ControllerRef::new("ReplicaSet", "db"), ControllerRef::new("Deployment", "db")];
            let owner = Evidence::Owner { controllers, stopped: None };
            assert!(assessment.evidence.contains(&owner), "{:?}", assessment.evidence);
            around.workloads.remove(&(Kind::Deployment, "shop/db".into()));
            around.unread.insert(Kind::Deployment);
            let blind = Assessment::of(&pod, &around, now());
            assert_eq!(
                (blind.risk, &*blind.missing),
                (Risk::Critical, &[NotRead::Controllers(Kind::Deployment)][..])
            );
        }
    }

    #[test]
    fn the_evidence_counts_the_replicas_that_are_left() {
        let none = json!([]);
        for (ready, is_majority) in [(3, true), (2, true), (1, false)] {
            let mut around = around(5);
            around.workloads.get_mut(&(Kind::StatefulSet, "shop/db".into())).unwrap().status.ready_replicas =
                ready;
            let assessment = Assessment::of(&pod("StatefulSet", None, &none), &around, now());
            let counted = Evidence::Replicas { ready, wanted: 3, is_majority };
            assert!(assessment.evidence.contains(&counted), "{:?}", assessment.evidence);
        }
    }

    /// What a set loses with one of its pods.
    #[test]
    fn a_set_is_not_left_without_a_majority() {
        let none = json!([]);
        let with = |age, kind, wanted, ready: i64| {
            let mut around = around(age);
            let set = json!({
                "metadata": { "name": "db", "namespace": "shop", "uid": "u" },
                "spec": { "replicas": wanted }, "status": { "readyReplicas": ready },
            });
            around.workloads.insert((kind, "shop/db".into()), read(set));
            around
        };
        let (stateful, rolling) = (Kind::StatefulSet, Kind::ReplicaSet);
        let evict = Some(Safe::Evict);
        for (kind, wanted, now_ready, risk, takes) in [
            (rolling, 3, 3, Risk::Medium, evict),
            (rolling, 3, 2, Risk::High, None),
            // Of two one is always missing then.
            (rolling, 2, 2, Risk::High, evict),
            (rolling, 2, 1, Risk::High, None),
            (rolling, 1, 1, Risk::Medium, evict),
            // A majority makes nothing safer that must not run twice.
            (stateful, 3, 3, Risk::Critical, evict),
            (stateful, 3, 2, Risk::Critical, None),
            (stateful, 5, 3, Risk::Critical, None),
            (stateful, 5, 4, Risk::Critical, evict),
        ] {
            let pod = ready(pod(kind.name(), None, &none));
            let around = with(5, kind, wanted, now_ready);
            let assessment = Assessment::of(&pod, &around, now());
            let found = (assessment.risk, assessment.safe_way());
            assert_eq!(found, (risk, takes), "{kind:?} {wanted} {now_ready}: {assessment:#?}");
            let controller = ControllerRef::new(kind.name(), "db");
            let reason = Reason::NoMajority { controller: controller.clone(), ready: now_ready - 1, wanted };
            let lost = wanted > 1 && (now_ready - 1) * 2 <= wanted;
            assert_eq!(assessment.reasons.contains(&reason), lost);
            if takes.is_none() {
                assert_eq!(assessment.safer[0].advice, Advice::WaitForReplicas { controller, wanted });
            }
            // One that is not ready takes nothing away from a node that is well.
            let mut unready = pod.clone();
            unready.status.conditions.clear();
            assert!(risk_of(&unready, &around) <= risk);
            assert_eq!(Assessment::of(&unready, &around, now()).safe_way(), evict);
        }
        // Of several in one command, each by what those before it leave.
        let pod = ready(pod("ReplicaSet", None, &none));
        let mut around = with(5, rolling, 5, 5);
        let risks: Vec<Risk> = (0..3)
            .map(|_| {
                let risk = risk_of(&pod, &around);
                around.spend(&pod);
                risk
            })
            .collect();
        assert_eq!(risks, [Risk::Medium, Risk::Medium, Risk::High]);
        // A set that may not be read may have none.
        let mut around = stage::around(5);
        around.workloads.clear();
        around.unread.insert(Kind::StatefulSet);
        let assessment = Assessment::of(&ready(stage::pod("StatefulSet", None, &none)), &around, now());
        let unknown = Reason::MajorityUnknown { controller: ControllerRef::new("StatefulSet", "db") };
        assert!(assessment.reasons.contains(&unknown), "{:?}", assessment.reasons);
    }

    #[test]
    fn volumes_make_a_stateless_pod_critical() {
        let claim = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
        let with = |modes: &str, source: Value| {
            let mut around = around(600);
            let claim = json!({ "spec": { "accessModes": [modes], "volumeName": "pv-1" } });
            around.claims = Some(named(json!({ "shop/data": claim })));
            let mut spec = json!({ "accessModes": [modes] });
            spec.as_object_mut().unwrap().extend(source.as_object().cloned().unwrap());
            around.volumes = Some(named(json!({ "pv-1": { "spec": spec } })));
            around
        };
        let csi = || json!({ "csi": { "driver": "ebs" } });
        let pod = pod("ReplicaSet", None, &claim);
        for (around, risk) in [
            (with("ReadWriteOnce", csi()), Risk::Critical),
            (with("ReadWriteOncePod", csi()), Risk::Critical),
            (with("ReadWriteMany", csi()), Risk::Low),
            (with("ReadOnlyMany", csi()), Risk::Low),
            (with("ReadWriteMany", json!({ "iscsi": {} })), Risk::Critical),
            (with("ReadWriteMany", json!({ "rbd": {} })), Risk::Critical),
            (
                with("ReadWriteMany", json!({ "csi": { "driver": "ebs" }, "volumeMode": "Block" })),
                Risk::Critical,
            ),
            (with("ReadOnlyMany", json!({ "csi": { "driver": "ebs" }, "volumeMode": "Block" })), Risk::Low),
            (with("ReadWriteMany", json!({ "cephfs": {} })), Risk::Low),
            (with("ReadWriteOnce", json!({ "local": {} })), Risk::Critical),
            (with("ReadWriteOncePod", json!({ "hostPath": {} })), Risk::Critical),
            // What may not be seen, or is not there, could be anything.
            (Surroundings { claims: None, ..with("ReadWriteMany", csi()) }, Risk::Critical),
            (Surroundings { volumes: None, ..with("ReadWriteMany", csi()) }, Risk::Critical),
            (Surroundings { claims: Some(BTreeMap::new()), ..with("ReadWriteMany", csi()) }, Risk::Critical),
            (Surroundings { volumes: Some(BTreeMap::new()), ..with("ReadWriteMany", csi()) }, Risk::Critical),
            (Surroundings { attachments: None, ..with("ReadWriteMany", csi()) }, Risk::Low),
        ] {
            assert_eq!(risk_of(&pod, &around), risk, "{around:?}");
        }
        let mut attached = with("ReadWriteOnce", csi());
        attached.attachments = Some(vec![read(
            json!({ "spec": { "nodeName": "node-1", "source": { "persistentVolumeName": "pv-1" } } }),
        )]);
        let assessment = Assessment::of(&pod, &attached, now());
        let source = VolumeSource::Claim {
            access_modes: vec!["ReadWriteOnce".into()],
            kind: Some("ebs".into()),
            attached_to: Some("node-1".into()),
        };
        assert_eq!(assessment.volumes[0].source, source);
        for (volume, several, single) in [
            (json!({ "name": "x", "iscsi": {} }), Risk::Critical, Risk::Critical),
            (json!({ "name": "x", "csi": { "driver": "nfs.csi.k8s.io" } }), Risk::Critical, Risk::Critical),
            (json!({ "name": "x", "csi": { "driver": "secrets-store.csi.k8s.io" } }), Risk::Low, Risk::Low),
            // Written by all of several anyway; but one alone relies on being it.
            (json!({ "name": "x", "hostPath": { "path": "/d" } }), Risk::Low, Risk::Critical),
            (json!({ "name": "x", "emptyDir": {} }), Risk::Low, Risk::Low),
        ] {
            let inline = stage::pod("ReplicaSet", None, &json!([volume]));
            assert_eq!(risk_of(&inline, &stage::around(600)), several, "{volume}");
            let mut one = stage::around(600);
            let set = json!({ "metadata": { "name": "db", "namespace": "shop", "uid": "u" }, "spec": { "replicas": 1 } });
            one.workloads.insert((Kind::ReplicaSet, "shop/db".into()), read(set));
            assert_eq!(risk_of(&inline, &one), single, "{volume}, single");
        }
    }

    /// What a process in the pod sees as its host name.
    #[test]
    fn leaders_go_by_the_host_name_of_the_pod() {
        let none = json!([]);
        let mut pod = pod("ReplicaSet", None, &none);
        pod.metadata.uid = "3b3c-77".into();
        assert_eq!(risk_of(&pod, &led("shop", "manager-3b3c-77")), Risk::Critical);
        assert_eq!(risk_of(&pod, &led("shop", "manager-3b3c-778")), Risk::Low);
        pod.spec.hostname = "boss".into();
        assert_eq!(risk_of(&pod, &led("shop", "boss_0f8f")), Risk::Critical);
        let long = format!("{}-{}", "a".repeat(62), "b".repeat(20));
        let cut = "a".repeat(62); // and no '-' at its end
        for (name, hostname) in [(long.as_str(), ""), ("x", long.as_str())] {
            pod.metadata.name = name.to_owned();
            pod.spec.hostname = hostname.to_owned();
            assert_eq!(
                risk_of(&pod, &led("shop", &format!("{cut}_0f8f"))),
                Risk::Critical,
                "{name} {hostname}"
            );
            assert_eq!(risk_of(&pod, &led("shop", &format!("{}_0f8f", &cut[1..]))), Risk::Low);
        }
    }

    #[test]
    fn leaders_and_budgets() {
        let none = json!([]);
        let pod = pod("ReplicaSet", None, &none);
        for (holder, risk) in [
            ("db-0_0f8f", Risk::Critical),
            ("db-0", Risk::Critical),
            ("db-01_0f8f", Risk::Low),
            ("xdb-0_0f8f", Risk::Low),
            ("other_db-0", Risk::Critical),
            ("shop/db-0", Risk::Critical),
            ("db-0.shop", Risk::Critical),
            ("db-0-7e5a", Risk::Critical),
            ("a-db-0-7e5a", Risk::Critical),
            ("node-1_0f8f", Risk::Low),
            ("", Risk::Low),
        ] {
            assert_eq!(risk_of(&pod, &led("shop", holder)), risk, "{holder}");
        }
        // Elsewhere, a name that only ends like this one is another's.
        for (holder, risk) in
            [("db-0_0f8f", Risk::Critical), ("shop/db-0", Risk::Critical), ("a-db-0_7e5a", Risk::Low)]
        {
            assert_eq!(risk_of(&pod, &led("other", holder)), risk, "{holder}");
        }
        let mut at_home = pod.clone();
        at_home.spec.host_network = true;
        for (namespace, holder, risk) in [
            ("shop", "node-1_0f", Risk::Critical),
            ("shop", "node-1-xYzAbC", Risk::Critical),
            ("shop", "node-1", Risk::Critical),
            ("shop", "node-10_0f", Risk::Low),
            ("other", "node-1_0f", Risk::Low),
        ] {
            let around = led(namespace, holder);
            assert_eq!((risk_of(&at_home, &around), risk_of(&pod, &around)), (risk, Risk::Low), "{holder}");
        }
        for (namespace, app, allowed, risk) in [
            ("shop", "db", 0, Risk::High),
            ("shop", "db", 1, Risk::Medium),
            ("shop", "web", 0, Risk::Medium),
            ("other", "db", 0, Risk::Medium),
        ] {
            let budget = json!({
                "metadata": { "name": "b", "namespace": namespace },
                "spec": { "selector": { "matchLabels": { "app": app } } },
                "status": { "disruptionsAllowed": allowed },
            });
            let around = Surroundings { budgets: Some(vec![read(budget)]), ..around(5) };
            assert_eq!(risk_of(&pod, &around), risk, "{namespace} {app} {allowed}");
        }
    }

    #[test]
    fn what_may_not_be_read_is_named_and_counted() {
        let none = json!([]);
        let (stateless, stateful) = (pod("ReplicaSet", None, &none), pod("StatefulSet", None, &none));
        for (around, what, less, more) in [
            (Surroundings { nodes: None, ..around(5) }, NotRead::Nodes, Risk::Medium, Risk::Critical),
            (
                Surroundings { heartbeats: None, ..around(5) },
                NotRead::Heartbeats,
                Risk::Medium,
                Risk::Critical,
            ),
            // It may have come back since it was given up.
            (
                Surroundings { heartbeats: None, ..around(600) },
                NotRead::Heartbeats,
                Risk::Medium,
                Risk::Critical,
            ),
            (
                Surroundings { heartbeats: None, ..fenced(around(600)) },
                NotRead::Heartbeats,
                Risk::Medium,
                Risk::Critical,
            ),
            (
                Surroundings { leaders: None, ..around(600) },
                NotRead::LeaderLeases,
                Risk::Critical,
                Risk::Critical,
            ),
            (
                Surroundings { budgets: None, ..around(5) },
                NotRead::PodDisruptionBudgets,
                Risk::High,
                Risk::Critical,
            ),
        ] {
            for (pod, risk) in [(&stateless, less), (&stateful, more)] {
                let assessment = Assessment::of(pod, &around, now());
                assert_eq!(assessment.risk, risk, "{what:?}");
                assert_eq!(assessment.missing, [what]);
                let named = Evidence::NotRead(vec![what]);
                assert!(assessment.evidence.contains(&named), "{:?}", assessment.evidence);
            }
        }
        let nothing = Surroundings::default();
        assert_eq!(risk_of(&stateless, &nothing), Risk::Critical);
        let way = |pod: &Pod, around: &Surroundings| Assessment::of(pod, around, now()).safer[0].clone();
        assert_eq!(way(&stateful, &nothing).takes, None);
        let ways = Assessment::of(&stateless, &nothing, now()).safer;
        let inspect = Advice::InspectController {
            controller: ControllerRef::new("ReplicaSet", "db"),
            resource: "replicaset/db".into(),
        };
        assert_eq!((ways[0].takes, &ways[1].advice), (None, &inspect));
        let unseen = Surroundings { nodes: None, ..around(5) };
        assert_eq!(way(&stateless, &unseen).takes, Some(Safe::Delete));
        // What is deleted there may be completed by pod GC.
        let unheard = Surroundings { heartbeats: None, ..fenced(around(600)) };
        for pod in [&stateless, &stateful] {
            assert!(Assessment::of(pod, &unheard, now()).safer.iter().all(|way| way.takes.is_none()));
        }
        let gone = Surroundings { heartbeats: None, nodes: Some(BTreeMap::new()), ..around(600) };
        assert!(way(&stateful, &gone).advice == Advice::CreateNode);
        let stuck = pod("StatefulSet", Some(600), &none);
        assert_eq!(Assessment::of(&stuck, &nothing, now()).safer[0].takes, None);
    }

    #[test]
    fn what_force_does_not_help_with() {
        let none = json!([]);
        let mut kept = pod("ReplicaSet", Some(600), &none);
        kept.metadata.finalizers.push("example.com/hold".into());
        let assessment = Assessment::of(&kept, &around(5), now());
        assert_eq!(assessment.futile, Some(Futile::Finalizers));
        let reason = Reason::Finalizers { finalizers: vec!["example.com/hold".into()] };
        assert_eq!(assessment.reasons[0], reason);
        assert_eq!(assessment.safer.len(), 1);
        assert_eq!(assessment.safer[0].takes, None);

        let mirror: Pod = read(json!({
            "metadata": {
                "name": "etcd-x", "annotations": { "kubernetes.io/config.mirror": "h" }, "finalizers": ["f"],
                "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": "node-1", "controller": true }],
            },
            "spec": { "nodeName": "node-1" },
        }));
        let assessment = Assessment::of(&mirror, &around(5), now());
        assert_eq!((assessment.futile, assessment.risk), (Some(Futile::Mirror), Risk::Low));
    }

    /// The mark alone makes nothing safer.
    #[test]
    fn a_pod_that_only_claims_to_be_a_mirror_pod_is_judged_as_any_other() {
        let none = json!([]);
        for kind in ["StatefulSet", "ReplicaSet", "PostgresCluster", ""] {
            let plain = pod(kind, None, &none);
            let mut marked = json!({ "metadata": {
                "name": "db-0", "namespace": "shop", "annotations": { "kubernetes.io/config.mirror": "h" },
            }, "spec": { "nodeName": "node-1" }, "status": { "phase": "Running" } });
            if !kind.is_empty() {
                marked["metadata"]["ownerReferences"] = json!([{ "apiVersion": version(kind), "kind": kind, "name": "db", "uid": "u", "controller": true }]);
            }
            let marked: Pod = read(marked);
            for age in [5, 45, 600] {
                let assessment = Assessment::of(&marked, &around(age), now());
                assert_eq!(assessment.risk, risk_of(&plain, &around(age)), "{kind} {age}");
                assert_eq!(assessment.futile, Some(Futile::Mirror));
                assert!(assessment.reasons.len() > 1, "{:?}", assessment.reasons);
            }
        }
    }

    /// A fence that is not one: the machine is on.
    #[test]
    fn a_fresh_heartbeat_is_believed_more_than_a_taint() {
        let none = json!([]);
        let (stateless, stateful) = (pod("ReplicaSet", None, &none), pod("StatefulSet", None, &none));
        let heartbeats = || Some(named(json!({ "node-1": { "spec": { "renewTime": ago(0) } } })));
        let unknown = || Surroundings { heartbeats: heartbeats(), ..around(600) };
        for around in [unknown(), fenced(unknown())] {
            assert_eq!(
                (risk_of(&stateless, &around), risk_of(&stateful, &around)),
                (Risk::Medium, Risk::Critical)
            );
            let reasons = Assessment::of(&stateful, &around, now()).reasons;
            assert_eq!(reasons[0], Reason::NodeHeartbeats { node: "node-1".into() });
        }
        assert_eq!(risk_of(&stateful, &fenced(around(600))), Risk::Low);
    }

    /// That the object of a node is gone does not say that its machine is.
    #[test]
    fn a_node_is_gone_when_nothing_is_heard_of_it() {
        let none = json!([]);
        let (stateless, stateful) = (pod("ReplicaSet", None, &none), pod("StatefulSet", None, &none));
        let without = |around: Surroundings| Surroundings { nodes: Some(BTreeMap::new()), ..around };
        for (around, less, more) in [
            // An old heartbeat tells no more than none does: the machine may run, cut off.
            (without(around(600)), Risk::Low, Risk::Critical),
            (without(around(61)), Risk::Low, Risk::Critical),
            (
                without(Surroundings { heartbeats: Some(BTreeMap::new()), ..around(5) }),
                Risk::Low,
                Risk::Critical,
            ),
            (without(around(60)), Risk::Medium, Risk::Critical),
            (without(around(5)), Risk::Medium, Risk::Critical),
            (without(Surroundings { heartbeats: None, ..around(600) }), Risk::Medium, Risk::Critical),
        ] {
            assert_eq!(
                (risk_of(&stateless, &around), risk_of(&stateful, &around)),
                (less, more),
                "{around:?}"
            );
        }
        let assessment = Assessment::of(&stateful, &without(around(5)), now());
        let heartbeat = Some(jiff::SignedDuration::from_secs(5));
        let missing = Evidence::NodeMissing { name: "node-1".into(), heartbeat, is_recent: true };
        assert!(assessment.evidence.contains(&missing), "{:?}", assessment.evidence);
    }

    /// A wait that failed leaves its controller at 0, or suspended.
    #[test]
    fn the_evidence_names_a_controller_that_is_stopped() {
        let none = json!([]);
        for (kind, label, spec, stopped) in [
            (Kind::ReplicaSet, None, json!({ "replicas": 0 }), Some(None)),
            (Kind::StatefulSet, None, json!({ "replicas": 0 }), Some(None)),
            (Kind::Job, None, json!({ "suspend": true }), Some(None)),
            // As it was before, where a printed command asked for that.
            (Kind::ReplicaSet, Some("4"), json!({ "replicas": 0 }), Some(Some(4))),
            (Kind::Job, Some("true"), json!({ "suspend": true }), Some(Some(1))),
            (Kind::ReplicaSet, Some("4"), json!({ "replicas": 1 }), None),
            (Kind::ReplicaSet, None, json!({ "replicas": 1 }), None),
            (Kind::Job, None, json!({}), None),
        ] {
            let mut around = around(5);
            let workload = around.workloads.get_mut(&(kind, "shop/db".into())).unwrap();
            workload.spec = read(spec.clone());
            workload.metadata.labels.extend(label.map(|it| (stopped::label(kind).into(), it.into())));
            let assessment = Assessment::of(&pod(kind.name(), Some(5), &none), &around, now());
            let controllers = vec![ControllerRef::new(kind.name(), "db")];
            let owner = Evidence::Owner { controllers, stopped };
            assert!(assessment.evidence.contains(&owner), "{spec} {:?}", assessment.evidence);
        }
    }

    /// Each of several, by what those before it leave of the budget.
    #[test]
    fn a_budget_is_used_up_by_all_together() {
        let none = json!([]);
        let budget = |name: &str, allowed: i64, policy: &str| {
            json!({
                "metadata": { "name": name, "namespace": "shop", "uid": name },
                "spec": { "selector": { "matchLabels": { "app": "db" } }, "unhealthyPodEvictionPolicy": policy },
                "status": { "disruptionsAllowed": allowed, "currentHealthy": 3, "desiredHealthy": 3 - allowed },
            })
        };
        let mut web = pod("ReplicaSet", None, &none);
        web.status.conditions = read(json!([{ "type": "Ready", "status": "True" }]));
        let mut around = Surroundings { budgets: Some(vec![read(budget("b", 1, ""))]), ..around(5) };
        let mut risks = Vec::new();
        for _ in 0..3 {
            let assessment = Assessment::of(&web, &around, now());
            risks.push((assessment.risk, assessment.safer[0].takes));
            around.spend(&web);
        }
        let over = (Risk::High, None);
        assert_eq!(risks, [(Risk::Medium, Some(Safe::Evict)), over, over]);
        let first = &Assessment::of(&web, &around, now()).safer[0];
        assert!(first.advice == Advice::WaitForBudget { budgets: vec!["b".into()] }, "{first:?}");

        // One that is not ready takes nothing away, and the API evicts no pod of two budgets.
        around.workloads = workloads();
        let mut unready = web.clone();
        unready.status.conditions.clear();
        around.budgets = Some(vec![read(budget("b", 0, "AlwaysAllow"))]);
        assert_eq!(risk_of(&unready, &around), Risk::Medium);
        around.budgets = Some(vec![read(budget("b", 1, "")), read(budget("c", 1, ""))]);
        let first = &Assessment::of(&web, &around, now()).safer[0];
        assert_eq!(first.takes, Some(Safe::Delete));
        let terms = DeleteTerms::SeveralBudgets { budgets: vec!["b".into(), "c".into()], over: false };
        assert_eq!(first.advice, Advice::Delete { terms, grace_seconds: None });
        around.budgets = Some(vec![read(budget("b", 1, "")), read(budget("c", 0, ""))]);
        assert_eq!(Assessment::of(&web, &around, now()).safer[0].takes, None, "not over a budget");
    }

    /// The Job's own finalizer goes by itself, unless the Job waits for the end of the pod.
    #[test]
    fn the_finalizer_of_a_job() {
        let none = json!([]);
        let mut job = pod("Job", Some(600), &none);
        job.metadata.finalizers.push(JOB_TRACKING.into());
        let assessment = Assessment::of(&job, &around(600), now());
        assert_eq!((assessment.risk, assessment.futile), (Risk::Low, None));
        let mut waits = around(600);
        let spec = json!({ "podReplacementPolicy": "Failed", "parallelism": 3 });
        let failed = json!({ "metadata": { "name": "db", "namespace": "shop", "uid": "u" }, "spec": spec });
        waits.workloads.insert((Kind::Job, "shop/db".into()), read(failed));
        let assessment = Assessment::of(&job, &waits, now());
        assert_eq!((assessment.risk, assessment.futile), (Risk::Critical, Some(Futile::Finalizers)));
        assert_eq!(ways(&assessment), ["bring-node-back: ends-it", "switch-off: silent"]);
    }

    #[test]
    fn a_pod_is_counted_once_when_it_goes() {
        let none = json!([]);
        let budget = json!({
            "metadata": { "name": "b", "namespace": "shop" },
            "spec": { "selector": { "matchLabels": { "app": "db" } } },
            "status": { "disruptionsAllowed": 2, "currentHealthy": 5 },
        });
        let ready = |deleted| {
            let mut pod = pod("StatefulSet", deleted, &none);
            pod.status.conditions = read(json!([{ "type": "Ready", "status": "True" }]));
            pod
        };
        for (pod, counted) in [
            (ready(None), 1),
            (ready(Some(5)), 0), // it was on its way out already
            (pod("StatefulSet", None, &none), 0),
        ] {
            let mut around = Surroundings { budgets: Some(vec![read(budget.clone())]), ..around(5) };
            let set = (Kind::StatefulSet, "shop/db".to_owned());
            around.workloads.get_mut(&set).unwrap().status.ready_replicas = 3;
            around.spend(&pod);
            let left = &around.budgets.as_ref().unwrap()[0].status;
            assert_eq!((left.disruptions_allowed, left.current_healthy), (2 - counted, 5 - counted));
            assert_eq!(around.workloads[&set].status.ready_replicas, 3 - counted);
        }
    }

    #[test]
    fn what_is_only_read_is_not_destroyed_by_two() {
        let volumes = json!([
            { "name": "data", "persistentVolumeClaim": { "claimName": "data" } },
            { "name": "host", "hostPath": { "path": "/d" } },
            { "name": "san", "iscsi": {} },
        ]);
        let claim = json!({ "spec": { "accessModes": ["ReadWriteOnce"], "volumeName": "pv-1" } });
        let disk = json!({ "spec": { "accessModes": ["ReadWriteOnce"], "csi": { "driver": "ebs" } } });
        let mut around = around(600);
        around.claims = Some(named(json!({ "shop/data": claim })));
        around.volumes = Some(named(json!({ "pv-1": disk })));
        let single = json!({ "metadata": { "name": "db", "namespace": "shop", "uid": "u" }, "spec": { "replicas": 1 } });
        around.workloads.insert((Kind::ReplicaSet, "shop/db".into()), read(single));
        for (only_read, risk) in [(true, Risk::Low), (false, Risk::Critical)] {
            let mounts: Vec<_> = ["data", "host", "san"]
                .map(|name| json!({ "name": name, "mountPath": "/x", "readOnly": only_read }))
                .into();
            let mut pod = pod("ReplicaSet", None, &volumes);
            pod.spec = read(json!({
                "nodeName": "node-1", "volumes": volumes, "containers": [{ "name": "c", "volumeMounts": mounts }],
            }));
            let assessment = Assessment::of(&pod, &around, now());
            assert_eq!(assessment.risk, risk, "{assessment:#?}");
            let shared: Vec<_> = assessment.volumes.iter().map(|volume| volume.shared).collect();
            assert_eq!(shared, [!only_read, !only_read, false]);
            let unseen = Surroundings { claims: None, ..around.clone() };
            assert_eq!(risk_of(&pod, &unseen), risk);
        }
    }

    #[test]
    fn an_attachment_is_told_only_of_its_own_volume_and_node() {
        let volumes = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
        let pod = pod("ReplicaSet", None, &volumes);
        for (volume, node, attached_volume, applies) in [
            ("pv-1", "node-1", "pv-1", true),
            ("pv-1", "node-2", "pv-1", false),
            ("pv-1", "node-1", "pv-2", false),
            ("", "node-1", "", false), // a claim without a volume yet, and an inline volume
        ] {
            let mut around = around(600);
            let claim = json!({ "spec": { "accessModes": ["ReadWriteOnce"], "volumeName": volume } });
            around.claims = Some(named(json!({ "shop/data": claim })));
            around.attachments = Some(vec![read(
                json!({ "spec": { "nodeName": node, "source": { "persistentVolumeName": attached_volume } } }),
            )]);
            let source = &Assessment::of(&pod, &around, now()).volumes[0].source;
            let VolumeSource::Claim { attached_to, .. } = source else { panic!("{source:?}") };
            let to = applies.then_some("node-1");
            assert_eq!(attached_to.as_deref(), to, "{volume} {node} {attached_volume}");
        }
    }

    #[test]
    fn only_controllers_that_may_be_behind_a_pod_are_missing() {
        let none = json!([]);
        for (kind, missing) in [
            ("ReplicaSet", &[Kind::ReplicaSet, Kind::Deployment][..]),
            ("StatefulSet", &[Kind::StatefulSet]),
            ("Job", &[Kind::Job, Kind::CronJob]),
            ("PostgresCluster", &[]),
        ] {
            let around = Surroundings { unread: Kind::ALL.into(), ..around(5) };
            let missing: Vec<_> = missing.iter().map(|kind| NotRead::Controllers(*kind)).collect();
            assert_eq!(Assessment::of(&pod(kind, None, &none), &around, now()).missing, missing, "{kind}");
        }
    }
}
