//! The parts of a Pod that the rules look at.
//!
//! A cluster has tens of thousands of pods, and nearly all of them are well: what is read of each is
//! what the rules need and no more.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, de::IgnoredAny};

use super::time::ServerTime;

/// Something whose presence alone matters.
type Present = Option<IgnoredAny>;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    pub metadata: PodMetadata,
    pub spec: PodSpec,
    pub status: PodStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodMetadata {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    pub resource_version: String,
    pub creation_timestamp: Option<Timestamp>,
    /// When a deletion that has begun should be over: its beginning and the grace.
    pub deletion_timestamp: Option<Timestamp>,
    pub deletion_grace_period_seconds: Option<i64>,
    pub finalizers: Vec<String>,
    pub owner_references: Vec<Owner>,
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

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Owner {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    pub controller: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    pub node_name: String,
    pub host_network: bool,
    pub volumes: Vec<Volume>,
    pub termination_grace_period_seconds: Option<i64>,
    tolerations: Vec<Toleration>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Toleration {
    key: String,
    effect: String,
    #[serde(rename = "tolerationSeconds")]
    seconds: Option<i64>,
}

/// A volume of a pod: a claim, or one of the kinds that reach storage outside the node without one.
/// Of the others (config maps, secrets, empty directories) only the name is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(clippy::struct_field_names)] // they are the API's
pub struct Volume {
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
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimSource {
    claim_name: String,
}

/// Where a volume's data is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Behind a claim of this name.
    Claim(String),
    /// Outside the node, of this kind, and nothing in Kubernetes says who may use it.
    Inline(&'static str),
}

impl Volume {
    /// Where its data is; `None` where it goes with the pod or cannot be written.
    pub fn source(&self, pod: &str) -> Option<Source> {
        if let Some(claim) = &self.persistent_volume_claim {
            return Some(Source::Claim(claim.claim_name.clone()));
        }
        if self.ephemeral.is_some() {
            return Some(Source::Claim(format!("{pod}-{}", self.name)));
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
        ];
        // An inline CSI volume is made for the pod and goes with it.
        inline.iter().find(|(_, source)| source.is_some()).map(|(kind, _)| Source::Inline(kind))
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    pub phase: String,
    pub conditions: Vec<Condition>,
    container_statuses: Vec<ContainerStatus>,
}

/// A condition of a pod or a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    pub r#type: String,
    pub status: String,
    pub reason: String,
    pub last_heartbeat_time: Option<Timestamp>,
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
}

impl Pod {
    /// `namespace/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.metadata.namespace, self.metadata.name)
    }

    /// The owner that acts when the pod goes.
    pub fn controller(&self) -> Option<&Owner> {
        self.metadata.owner_references.iter().find(|owner| owner.controller)
    }

    /// Whether it is only the image of a pod that the kubelet runs from a file of its own.
    pub fn is_mirror(&self) -> bool {
        self.metadata.annotations.mirror.is_some()
    }

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

    /// Whether the last report of the kubelet has a container running.
    pub fn was_running(&self) -> bool {
        self.status.container_statuses.iter().any(|status| status.state.running.is_some())
    }

    /// Why the control plane ends it, where it does.
    pub fn disruption(&self) -> Option<&str> {
        let condition =
            self.status.conditions.iter().find(|condition| condition.r#type == "DisruptionTarget");
        condition.filter(|condition| condition.status == "True").map(|condition| condition.reason.as_str())
    }

    pub fn is_ready(&self) -> bool {
        self.status
            .conditions
            .iter()
            .any(|condition| condition.r#type == "Ready" && condition.status == "True")
    }

    /// Whether it stays on a node with this taint, if the effect of that is to end what does not
    /// tolerate it. One without a key tolerates all.
    pub fn tolerates(&self, taint: &str) -> bool {
        self.spec.tolerations.iter().any(|Toleration { key, effect, seconds }| {
            (key.is_empty() || key == taint)
                && matches!(effect.as_str(), "" | "NoExecute")
                && seconds.is_none()
        })
    }

    /// The grace that its deletion has, or would have.
    pub fn grace(&self) -> SignedDuration {
        let seconds = self
            .metadata
            .deletion_grace_period_seconds
            .or(self.spec.termination_grace_period_seconds)
            .unwrap_or(30);
        SignedDuration::from_secs(seconds)
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
        /// A kubelet that is well needs some seconds after the grace to clean up.
        const SLACK: SignedDuration = SignedDuration::from_secs(15);
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
        let claim = |name: &str| Some(Source::Claim(name.to_owned()));
        for (volume, source) in [
            (json!({ "name": "d", "persistentVolumeClaim": { "claimName": "c" } }), claim("c")),
            (json!({ "name": "d", "ephemeral": { "volumeClaimTemplate": {} } }), claim("pod-d")),
            (json!({ "name": "d", "iscsi": { "lun": 0 } }), Some(Source::Inline("iscsi"))),
            (json!({ "name": "d", "nfs": { "server": "x" } }), Some(Source::Inline("nfs"))),
            (json!({ "name": "d", "emptyDir": {} }), None),
            (json!({ "name": "d", "configMap": {} }), None),
            (json!({ "name": "d", "hostPath": {} }), None),
            (json!({ "name": "d", "csi": {} }), None),
        ] {
            let read: Volume = serde_json::from_value(volume.clone()).unwrap();
            assert_eq!(read.source("pod"), source, "{volume}");
        }
    }

    #[test]
    fn tolerations() {
        for (toleration, tolerates) in [
            (json!({ "operator": "Exists" }), true),
            (json!({ "operator": "Exists", "effect": "NoExecute" }), true),
            (json!({ "operator": "Exists", "effect": "NoSchedule" }), false),
            (json!({ "key": "x", "operator": "Exists" }), true),
            (json!({ "key": "y", "operator": "Exists" }), false),
            (json!({ "key": "x", "operator": "Exists", "tolerationSeconds": 300 }), false),
        ] {
            let pod = pod(json!({ "spec": { "tolerations": [toleration] } }));
            assert_eq!(pod.tolerates("x"), tolerates, "{toleration}");
        }
        assert!(!Pod::default().tolerates("x"));
    }

    #[test]
    fn the_mirror_annotation_is_found_among_others() {
        let annotated =
            |key: &str| pod(json!({ "metadata": { "annotations": { "a": "b", key: "" } } })).is_mirror();
        assert!(annotated("kubernetes.io/config.mirror"));
        assert!(!annotated("kubernetes.io/config.hash"));
    }
}
