//! The parts of a Pod that the rules look at.
//!
//! A cluster has tens of thousands of pods, and nearly all of them are well: what is read of each is
//! what the rules need and no more.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize, de::IgnoredAny};

use super::{
    lease::Owner,
    node::Taint,
    time::{self, ServerTime},
};

/// A kubelet that is well reports within some seconds, and needs as long after the grace to clean up.
const SLACK: SignedDuration = SignedDuration::from_secs(15);

/// Something whose presence alone matters.
type Present = Option<IgnoredAny>;

/// A Pod, as far as the rules look at it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Standard object metadata.
    pub metadata: PodMetadata,
    /// Where it runs, and with what.
    pub spec: PodSpec,
    /// What its kubelet reported last.
    pub status: PodStatus,
}

/// Its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodMetadata {
    /// Unique among the pods of its namespace.
    pub name: String,
    /// The namespace, by whose claims and disruption budgets it is judged.
    pub namespace: String,
    /// Tells it from a replacement of the same name, such as a `StatefulSet` starts.
    pub uid: String,
    /// Changes with every write: a deletion that carries an older one is a conflict (409).
    pub resource_version: String,
    /// When the server created it.
    #[serde(deserialize_with = "time::read")]
    pub creation_timestamp: Option<Timestamp>,
    /// When a deletion that has begun should be over: its beginning and the grace.
    #[serde(deserialize_with = "time::read")]
    pub deletion_timestamp: Option<Timestamp>,
    /// The grace period that its deletion was given, in seconds; `None` if it is not Terminating.
    pub deletion_grace_period_seconds: Option<i64>,
    /// A deleted pod is removed when the last of these has been taken off it, by force too.
    pub finalizers: Vec<String>,
    /// The controllers that own it; the node, for a mirror pod.
    pub owner_references: Vec<Owner>,
    /// What label selectors match.
    pub labels: std::collections::BTreeMap<String, String>,
    annotations: Annotations,
}

/// Annotations can be large: of all of them only one tells something here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "kubernetes.io/config.mirror")]
    mirror: Present,
}

/// What it should be.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// The node that it is bound to; empty while it is not scheduled.
    pub node_name: String,
    /// Whether it has the host name and network of its node.
    pub host_network: bool,
    /// The host name within the pod; empty for that of the pod's name.
    pub hostname: String,
    /// The volumes that its containers can mount.
    pub volumes: Vec<Volume>,
    /// How long its containers have to end after SIGTERM; `None` for the default.
    pub termination_grace_period_seconds: Option<i64>,
    tolerations: Vec<Toleration>,
    containers: Vec<Container>,
    init_containers: Vec<Container>,
    ephemeral_containers: Vec<Container>,
}

/// A toleration of a taint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Toleration {
    #[serde(skip_serializing_if = "String::is_empty")]
    key: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    operator: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    value: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    effect: String,
    #[serde(rename = "tolerationSeconds", skip_serializing_if = "Option::is_none")]
    seconds: Option<i64>,
}

impl Toleration {
    fn matches(&self, taint: &Taint) -> bool {
        let Self { key, operator, value, effect, .. } = self;
        let matches = match operator.as_str() {
            "Exists" => true,
            // What cannot be judged is taken not to match: more is announced than goes.
            "" | "Equal" => !key.is_empty() && *value == taint.value,
            _ => false,
        };
        matches && (key.is_empty() || *key == taint.key) && (effect.is_empty() || *effect == taint.effect)
    }
}

/// Whether a pod with these tolerations stays on a node with this taint. Of several that match, the taint
/// eviction controller goes by the first.
fn tolerate(tolerations: &[Toleration], taint: &Taint) -> bool {
    let first = tolerations.iter().find(|toleration| toleration.matches(taint));
    first.is_some_and(|toleration| toleration.seconds.is_none())
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Container {
    volume_mounts: Vec<Mount>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Mount {
    name: String,
    read_only: bool,
}

/// A volume of a pod: a claim, a directory of the node, or one of the kinds that reach storage outside
/// the node without a claim. Of the others (config maps, secrets, empty directories) only the name is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(clippy::struct_field_names)] // they are the API's
pub struct Volume {
    /// What the mounts of the containers, and an ephemeral volume's claim, name it by.
    pub name: String,
    persistent_volume_claim: Option<ClaimSource>,
    ephemeral: Present,
    nfs: Present,
    iscsi: Present,
    fc: Present,
    rbd: Present,
    cephfs: Present,
    glusterfs: Present,
    aws_elastic_block_store: Present,
    gce_persistent_disk: Present,
    azure_disk: Present,
    azure_file: Present,
    cinder: Present,
    vsphere_volume: Present,
    portworx_volume: Present,
    flex_volume: Present,
    #[serde(rename = "scaleIO")]
    scale_io: Present,
    quobyte: Present,
    storageos: Present,
    flocker: Present,
    photon_persistent_disk: Present,
    host_path: Present,
    csi: Option<CsiSource>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CsiSource {
    driver: String,
    read_only: Option<bool>,
}

impl CsiSource {
    /// Whether the pod gets something to read, made for it: there is nothing that two could write.
    fn only_brings(&self) -> bool {
        self.read_only == Some(true)
            || matches!(
                self.driver.as_str(),
                "secrets-store.csi.k8s.io" | "csi.cert-manager.io" | "csi.spiffe.io"
            )
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimSource {
    claim_name: String,
}

/// Where a volume's data is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeLocation {
    /// Behind a claim of this name.
    Claim(String),
    /// Outside the node, of this kind, and nothing in Kubernetes says which nodes may use it.
    Inline(String),
    /// A directory of the node, which may itself be shared.
    HostPath,
}

impl Volume {
    /// Where its data is; `None` where it goes with the pod or cannot be written.
    pub fn source(&self, pod: &str) -> Option<VolumeLocation> {
        if let Some(claim) = &self.persistent_volume_claim {
            return Some(VolumeLocation::Claim(claim.claim_name.clone()));
        }
        if self.ephemeral.is_some() {
            return Some(VolumeLocation::Claim(format!("{pod}-{}", self.name)));
        }
        let inline = [
            ("nfs", &self.nfs),
            ("iscsi", &self.iscsi),
            ("fc", &self.fc),
            ("rbd", &self.rbd),
            ("cephfs", &self.cephfs),
            ("glusterfs", &self.glusterfs),
            ("awsElasticBlockStore", &self.aws_elastic_block_store),
            ("gcePersistentDisk", &self.gce_persistent_disk),
            ("azureDisk", &self.azure_disk),
            ("azureFile", &self.azure_file),
            ("cinder", &self.cinder),
            ("vsphereVolume", &self.vsphere_volume),
            ("portworxVolume", &self.portworx_volume),
            ("flexVolume", &self.flex_volume),
            ("scaleIO", &self.scale_io),
            ("quobyte", &self.quobyte),
            ("storageos", &self.storageos),
            ("flocker", &self.flocker),
            ("photonPersistentDisk", &self.photon_persistent_disk),
        ];
        if self.host_path.is_some() {
            return Some(VolumeLocation::HostPath);
        }
        // What the driver makes of it is not known: an NFS server's driver takes inline volumes too.
        if let Some(csi) = self.csi.as_ref().filter(|csi| !csi.only_brings()) {
            return Some(VolumeLocation::Inline(format!("csi {}", csi.driver)));
        }
        let kind = inline.iter().find(|(_, source)| source.is_some());
        kind.map(|(kind, _)| VolumeLocation::Inline((*kind).to_owned()))
    }
}

/// How it is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: String,
    /// Such as `Ready` and `DisruptionTarget`.
    pub conditions: Vec<Condition>,
    container_statuses: Vec<ContainerStatus>,
    init_container_statuses: Vec<ContainerStatus>,
    ephemeral_container_statuses: Vec<ContainerStatus>,
}

/// A condition of a pod or a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Such as `Ready`, `DisruptionTarget` or `MemoryPressure`.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word for why it has this status.
    pub reason: String,
    /// When it was last reported, changed or not; only nodes' conditions have it.
    #[serde(deserialize_with = "time::read")]
    pub last_heartbeat_time: Option<Timestamp>,
    /// When its status last changed.
    #[serde(deserialize_with = "time::read")]
    pub last_transition_time: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerStatus {
    state: ContainerState,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerState {
    running: Present,
    terminated: Present,
}

/// A grace period, or Kubernetes' default.
pub fn grace_of(seconds: Option<i64>) -> SignedDuration {
    SignedDuration::from_secs(seconds.unwrap_or(30))
}

impl Pod {
    /// `namespace/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.metadata.namespace, self.metadata.name)
    }

    /// The owner that acts when the pod goes. One that does not call itself the controller may act too.
    pub fn controller(&self) -> Option<&Owner> {
        let owners = &self.metadata.owner_references;
        owners.iter().find(|owner| owner.controller).or(owners.first())
    }

    /// Whether it is annotated as a mirror pod. The annotation alone proves nothing: a user may have written it.
    pub fn is_marked_as_mirror(&self) -> bool {
        self.metadata.annotations.mirror.is_some()
    }

    /// Whether it is a mirror pod: its kubelet makes the node its only owner.
    pub fn is_mirror(&self) -> bool {
        let owners = &self.metadata.owner_references;
        let of_node = |owner: &Owner| {
            owner.kind == "Node" && owner.api_version == "v1" && owner.name == self.spec.node_name
        };
        self.is_marked_as_mirror() && !owners.is_empty() && owners.iter().all(of_node)
    }

    /// Whether it was given to a node.
    pub fn is_scheduled(&self) -> bool {
        !self.spec.node_name.is_empty()
    }

    /// Whether its containers have ended for good. A controller that gives a lost pod up writes the
    /// phase too, without having asked the node: where a container was last seen running, or pod GC
    /// says that it was its doing, the phase alone is not believed.
    pub fn is_finished(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
            && !self.was_running()
            && self.disruption() != Some("DeletionByPodGC")
    }

    /// Whether the last report of the kubelet has a container running, of whatever sort: sidecars are
    /// among the init containers.
    pub fn was_running(&self) -> bool {
        self.containers().any(|status| status.state.running.is_some())
    }

    /// Whether the last report of the kubelet has all containers ended, for good. One that is not
    /// Terminating may start them again; nor is a report believed that may be from before the deletion.
    pub fn has_ended(&self, now: ServerTime) -> bool {
        let PodSpec { containers, init_containers, ephemeral_containers, .. } = &self.spec;
        let all = containers.len() + init_containers.len() + ephemeral_containers.len();
        let ended = self.containers().filter(|status| status.state.terminated.is_some()).count();
        self.terminating(now).is_some_and(|since| since > SLACK)
            && ended > 0
            && ended >= all
            && ended == self.containers().count()
    }

    fn containers(&self) -> impl Iterator<Item = &ContainerStatus> {
        let PodStatus { container_statuses, init_container_statuses, ephemeral_container_statuses, .. } =
            &self.status;
        [container_statuses, init_container_statuses, ephemeral_container_statuses].into_iter().flatten()
    }

    /// Whether a container of it may write to this volume.
    pub fn writes(&self, volume: &str) -> bool {
        let PodSpec { containers, init_containers, ephemeral_containers, .. } = &self.spec;
        let mut mounts = [containers, init_containers, ephemeral_containers]
            .into_iter()
            .flatten()
            .flat_map(|container| &container.volume_mounts)
            .filter(|mount| mount.name == volume)
            .peekable();
        // One that no container mounts is used in another way, such as a block device.
        mounts.peek().is_none() || mounts.any(|mount| !mount.read_only)
    }

    /// Why the control plane ends it, where it does.
    pub fn disruption(&self) -> Option<&str> {
        let condition =
            self.status.conditions.iter().find(|condition| condition.r#type == "DisruptionTarget");
        condition.filter(|condition| condition.status == "True").map(|condition| condition.reason.as_str())
    }

    /// Whether its Ready condition is True.
    pub fn is_ready(&self) -> bool {
        self.status
            .conditions
            .iter()
            .any(|condition| condition.r#type == "Ready" && condition.status == "True")
    }

    /// Whether it stays on a node with this taint, whose effect is to end what does not tolerate it.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        tolerate(&self.spec.tolerations, taint)
    }

    /// Its tolerations, changed so that it stays on a node with these taints for good. The API takes no
    /// toleration off a pod, but lets its tolerationSeconds be changed, and others be added.
    pub fn tolerations_with(&self, taints: &[Taint]) -> Vec<Toleration> {
        let mut all = self.spec.tolerations.clone();
        for taint in taints {
            let of_it =
                |toleration: &&mut Toleration| toleration.key == taint.key && toleration.matches(taint);
            all.iter_mut().filter(of_it).for_each(|toleration| toleration.seconds = None);
            if !tolerate(&all, taint) {
                let (key, effect) = (taint.key.clone(), taint.effect.clone());
                all.insert(0, Toleration { key, operator: "Exists".into(), effect, ..Toleration::default() });
            }
        }
        all
    }

    /// The grace that its deletion has, or would have.
    pub fn grace(&self) -> SignedDuration {
        let begun = self.metadata.deletion_grace_period_seconds;
        grace_of(begun.or(self.spec.termination_grace_period_seconds))
    }

    /// The grace to ask for where its own would not be one: with none, the API removes the object at once,
    /// as by force, also where it is evicted or deleted as usual.
    pub fn least_grace(&self) -> Option<u32> {
        (self.spec.termination_grace_period_seconds == Some(0)).then_some(1)
    }

    /// How long it has been Terminating.
    pub fn terminating(&self, now: ServerTime) -> Option<SignedDuration> {
        let until = self.metadata.deletion_timestamp?;
        Some(
            now.since(until)
                .checked_add(self.grace())
                .unwrap_or(SignedDuration::MAX)
                .max(SignedDuration::ZERO),
        )
    }

    /// By how much its deletion is over its time; negative while it still has some.
    pub fn overdue(&self, now: ServerTime) -> Option<SignedDuration> {
        self.metadata.deletion_timestamp.map(|until| now.since(until))
    }

    /// Whether its deletion hangs: well over its time.
    pub fn is_stuck(&self, now: ServerTime) -> bool {
        self.overdue(now).is_some_and(|overdue| overdue > SLACK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(value: serde_json::Value) -> Pod {
        serde_json::from_value(value).unwrap()
    }

    fn at(seconds: i64) -> ServerTime {
        ServerTime(Timestamp::from_second(1_000_000 + seconds).unwrap())
    }

    /// The first that matches counts, and nothing that was there is taken off.
    #[test]
    fn tolerations_that_keep_a_pod_on_a_lost_node() {
        let of = |key: &str, seconds: Option<i64>| {
            let mut toleration = json!({ "key": key, "operator": "Exists", "effect": "NoExecute" });
            if let Some(seconds) = seconds {
                toleration["tolerationSeconds"] = seconds.into();
            }
            toleration
        };
        let taint = |key: &str| Taint { key: key.into(), effect: "NoExecute".into(), ..Taint::default() };
        let all = json!({ "operator": "Exists" });
        let all_for_now = json!({ "operator": "Exists", "tolerationSeconds": 9 });
        let other = json!({ "key": "b", "value": "x", "effect": "NoSchedule" });
        for (before, stays, after) in [
            (json!([]), false, json!([of("a", None)])),
            (json!([of("a", Some(300))]), false, json!([of("a", None)])),
            (json!([of("a", Some(0)), other]), false, json!([of("a", None), other])),
            (json!([of("a", None)]), true, json!([of("a", None)])),
            (json!([all]), true, json!([all])),
            // Of all taints it is not changed.
            (json!([all_for_now]), false, json!([of("a", None), all_for_now])),
            (json!([of("a", Some(3)), all]), false, json!([of("a", None), all])),
            (json!([all, of("a", Some(3))]), true, json!([all, of("a", None)])),
            (json!([all_for_now, of("a", None)]), false, json!([of("a", None), all_for_now, of("a", None)])),
            (
                json!([{ "key": "a", "value": "other", "effect": "NoExecute" }]),
                false,
                json!([of("a", None), { "key": "a", "value": "other", "effect": "NoExecute" }]),
            ),
        ] {
            let mut pod = pod(json!({ "spec": { "tolerations": before } }));
            assert_eq!(pod.tolerates(&taint("a")), stays, "{before}");
            pod.spec.tolerations = pod.tolerations_with(&[taint("a")]);
            assert_eq!(serde_json::to_value(&pod.spec.tolerations).unwrap(), after, "{before}");
            assert!(pod.tolerates(&taint("a")), "{before}");
        }
    }

    #[test]
    fn containers_have_ended_when_the_kubelet_says_so_of_all_after_the_deletion() {
        let ended = || json!([{ "state": { "terminated": { "exitCode": 0 } } }]);
        let running = || json!([{ "state": { "running": {} } }]);
        let waiting = || json!([{ "state": { "waiting": { "reason": "CrashLoopBackOff" } } }]);
        let none = || json!([]);
        for (deleted, main, init, ephemeral, says) in [
            (Some(20), ended(), none(), none(), true),
            (Some(20), ended(), ended(), ended(), true),
            // A crash, after which the kubelet starts them again.
            (None, ended(), none(), none(), false),
            // A report that may be from before the deletion.
            (Some(5), ended(), none(), none(), false),
            (Some(20), running(), none(), none(), false),
            (Some(20), waiting(), none(), none(), false),
            (Some(20), ended(), running(), none(), false), // a sidecar
            (Some(20), ended(), ended(), running(), false),
            (Some(20), none(), none(), none(), false),
        ] {
            let spec = json!({ "containers": [{}], "terminationGracePeriodSeconds": 30 });
            let value = json!({
                "metadata": { "deletionTimestamp": deleted.map(|since: i64| at(30 - since).0.to_string()) },
                "spec": spec,
                "status": { "containerStatuses": main, "initContainerStatuses": init, "ephemeralContainerStatuses": ephemeral },
            });
            assert_eq!(pod(value.clone()).has_ended(at(0)), says, "{value}");
            // One whose state is not reported may run.
            let mut more = value.clone();
            more["spec"]["initContainers"] = json!([{}, {}, {}]);
            assert!(!pod(more).has_ended(at(0)), "{value}");
        }
    }

    #[test]
    fn a_phase_is_believed_unless_something_speaks_against_it() {
        let running = json!([{ "name": "a", "state": { "running": {} } }]);
        let ended = json!([{ "name": "a", "state": { "terminated": { "exitCode": 0 } } }]);
        let by = |reason: &str| json!([{ "type": "DisruptionTarget", "status": "True", "reason": reason }]);
        let nothing = json!([]);
        for (phase, containers, conditions, finished) in [
            ("Succeeded", &ended, &nothing, true),
            ("Failed", &ended, &nothing, true),
            ("Failed", &nothing, &nothing, true),
            ("Failed", &running, &nothing, false),
            ("Succeeded", &running, &nothing, false),
            ("Failed", &ended, &by("DeletionByPodGC"), false),
            ("Failed", &ended, &by("TerminationByKubelet"), true),
            ("Running", &ended, &nothing, false),
            ("Unknown", &ended, &nothing, false),
            ("", &nothing, &nothing, false),
        ] {
            let pod = pod(
                json!({ "status": { "phase": phase, "containerStatuses": containers, "conditions": conditions } }),
            );
            assert_eq!(pod.is_finished(), finished, "{phase} {containers} {conditions}");
        }
    }

    #[test]
    fn a_disruption_is_one_only_while_its_condition_is_true() {
        for (kind, status, reason) in [
            ("DisruptionTarget", "True", Some("DeletionByPodGC")),
            ("DisruptionTarget", "False", None),
            ("Ready", "True", None),
        ] {
            let condition = json!({ "type": kind, "status": status, "reason": "DeletionByPodGC" });
            let pod = pod(json!({ "status": { "conditions": [condition] } }));
            assert_eq!(pod.disruption(), reason, "{kind} {status}");
            assert_eq!(pod.is_ready(), kind == "Ready");
        }
        assert!(
            !pod(json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } })).is_ready()
        );
    }

    #[test]
    fn a_pod_is_scheduled_once_it_has_a_node() {
        for (node, scheduled) in [("", false), ("node-1", true)] {
            assert_eq!(pod(json!({ "spec": { "nodeName": node } })).is_scheduled(), scheduled, "{node}");
        }
    }

    #[test]
    fn the_owner_that_calls_itself_the_controller_comes_first() {
        for (controllers, name) in [
            (&[][..], None),
            (&[false, true], Some("1")),
            (&[true, false], Some("0")),
            (&[false, false], Some("0")),
        ] {
            let owner =
                |(n, controller): (usize, &bool)| json!({ "name": n.to_string(), "controller": controller });
            let owners: Vec<_> = controllers.iter().enumerate().map(owner).collect();
            let pod = pod(
                json!({ "metadata": { "name": "db-0", "namespace": "shop", "ownerReferences": owners } }),
            );
            assert_eq!(pod.controller().map(|owner| owner.name.as_str()), name, "{controllers:?}");
            assert_eq!(pod.full_name(), "shop/db-0");
        }
    }

    /// A sidecar is an init container that goes on running.
    #[test]
    fn every_sort_of_container_counts() {
        for sort in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
            for (state, finished) in [("running", false), ("terminated", true)] {
                let containers = json!([{ "name": "a", "state": { state: {} } }]);
                let pod = pod(json!({ "status": { "phase": "Failed", sort: containers } }));
                assert_eq!(pod.is_finished(), finished, "{sort} {state}");
            }
        }
    }

    #[test]
    fn a_deletion_has_begun_its_grace_before_its_timestamp() {
        let until = at(0).0.to_string();
        let pod =
            pod(json!({ "metadata": { "deletionTimestamp": until, "deletionGracePeriodSeconds": 30 } }));
        for (now, terminating, overdue, stuck) in [
            (-30, 0, -30, false),
            (-10, 20, -10, false),
            (0, 30, 0, false),
            (15, 45, 15, false),
            (16, 46, 16, true),
        ] {
            let seconds = SignedDuration::from_secs;
            assert_eq!(pod.terminating(at(now)), Some(seconds(terminating)));
            assert_eq!(pod.overdue(at(now)), Some(seconds(overdue)));
            assert_eq!(pod.is_stuck(at(now)), stuck);
        }
        let alive = Pod::default();
        assert!(alive.terminating(at(0)).is_none() && !alive.is_stuck(at(0)));
    }

    #[test]
    fn volumes_say_where_their_data_is() {
        let claim = |name: &str| Some(VolumeLocation::Claim(name.to_owned()));
        let inline = |kind: &str| Some(VolumeLocation::Inline(kind.to_owned()));
        for (volume, source) in [
            (json!({ "name": "d", "persistentVolumeClaim": { "claimName": "c" } }), claim("c")),
            (json!({ "name": "d", "ephemeral": { "volumeClaimTemplate": {} } }), claim("pod-d")),
            (json!({ "name": "d", "iscsi": { "lun": 0 } }), inline("iscsi")),
            (json!({ "name": "d", "nfs": { "server": "x" } }), inline("nfs")),
            (json!({ "name": "d", "quobyte": {} }), inline("quobyte")),
            (json!({ "name": "d", "storageos": {} }), inline("storageos")),
            (json!({ "name": "d", "flocker": {} }), inline("flocker")),
            (json!({ "name": "d", "photonPersistentDisk": {} }), inline("photonPersistentDisk")),
            (json!({ "name": "d", "emptyDir": {} }), None),
            (json!({ "name": "d", "configMap": {} }), None),
            (json!({ "name": "d", "hostPath": { "path": "/x" } }), Some(VolumeLocation::HostPath)),
            (json!({ "name": "d", "csi": { "driver": "nfs.csi.k8s.io" } }), inline("csi nfs.csi.k8s.io")),
            (json!({ "name": "d", "csi": { "driver": "nfs.csi.k8s.io", "readOnly": true } }), None),
            (json!({ "name": "d", "csi": { "driver": "secrets-store.csi.k8s.io" } }), None),
        ] {
            let read: Volume = serde_json::from_value(volume.clone()).unwrap();
            assert_eq!(read.source("pod"), source, "{volume}");
        }
    }

    #[test]
    fn tolerations() {
        let taint =
            Taint { key: "x".into(), value: "v".into(), effect: "NoExecute".into(), time_added: None };
        for (toleration, tolerates) in [
            (json!({ "operator": "Exists" }), true),
            (json!({ "operator": "Exists", "effect": "NoExecute" }), true),
            (json!({ "operator": "Exists", "effect": "NoSchedule" }), false),
            (json!({ "key": "x", "operator": "Exists" }), true),
            (json!({ "key": "y", "operator": "Exists" }), false),
            (json!({ "key": "x", "operator": "Exists", "tolerationSeconds": 300 }), false),
            (json!({ "key": "x", "operator": "Equal", "value": "v" }), true),
            (json!({ "key": "x", "value": "v" }), true),
            (json!({ "key": "x", "operator": "Equal", "value": "w" }), false),
            (json!({ "key": "x", "operator": "Equal" }), false),
            (json!({ "key": "x", "operator": "Gt", "value": "v" }), false),
            (json!({}), false),
        ] {
            let pod = pod(json!({ "spec": { "tolerations": [toleration] } }));
            assert_eq!(pod.tolerates(&taint), tolerates, "{toleration}");
        }
        assert!(!Pod::default().tolerates(&taint));
    }

    #[test]
    fn a_volume_that_is_only_mounted_for_reading_is_not_written() {
        let mount = |read_only: bool| json!({ "name": "c", "volumeMounts": [{ "name": "d", "readOnly": read_only }] });
        for (spec, writes) in [
            (json!({ "containers": [mount(true)] }), false),
            (json!({ "containers": [mount(false)] }), true),
            (json!({ "containers": [mount(true), mount(false)] }), true),
            (json!({ "containers": [mount(true)], "initContainers": [mount(false)] }), true),
            (json!({ "containers": [mount(true)], "ephemeralContainers": [mount(false)] }), true),
            (json!({ "containers": [{ "name": "c" }] }), true), // a block device
        ] {
            assert_eq!(pod(json!({ "spec": spec })).writes("d"), writes, "{spec}");
        }
    }

    #[test]
    fn the_mirror_annotation_is_found_among_others() {
        let annotated = |key: &str| {
            pod(json!({ "metadata": { "annotations": { "a": "b", key: "" } } })).is_marked_as_mirror()
        };
        assert!(annotated("kubernetes.io/config.mirror"));
        assert!(!annotated("kubernetes.io/config.hash"));
    }

    #[test]
    fn a_mirror_belongs_to_its_node_alone() {
        let owner = |version: &str, kind: &str, name: &str| json!({ "apiVersion": version, "kind": kind, "name": name });
        let node = owner("v1", "Node", "node-1");
        for (owners, mirror) in [
            (json!([node]), true),
            (json!([]), false),
            (json!([owner("v1", "Node", "node-2")]), false),
            (json!([owner("evil.example/v1", "Node", "node-1")]), false),
            (json!([owner("apps/v1", "StatefulSet", "db")]), false),
            (json!([node, owner("apps/v1", "StatefulSet", "db")]), false),
        ] {
            let annotations = json!({ "kubernetes.io/config.mirror": "x" });
            let marked = pod(json!({
                "metadata": { "ownerReferences": owners, "annotations": annotations }, "spec": { "nodeName": "node-1" },
            }));
            assert_eq!(marked.is_mirror(), mirror, "{owners}");
            let unmarked =
                pod(json!({ "metadata": { "ownerReferences": owners }, "spec": { "nodeName": "node-1" } }));
            assert!(!unmarked.is_mirror());
        }
    }
}
