//! The parts of claims, volumes, attachments and disruption budgets that the rules look at.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::lease::Metadata;

/// A `PersistentVolumeClaim`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PersistentVolumeClaim {
    /// Standard object metadata.
    pub metadata: Metadata,
    /// What is asked for, and the volume that it got.
    pub spec: PersistentVolumeClaimSpec,
}

/// What it asks for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentVolumeClaimSpec {
    /// The access modes that are asked for, such as `ReadWriteOnce`.
    pub access_modes: Vec<String>,
    /// `Filesystem`, which is the default, or [`BLOCK`].
    pub volume_mode: String,
    /// The `PersistentVolume` that it is bound to; empty while it is pending.
    pub volume_name: String,
}

/// A `PersistentVolume`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PersistentVolume {
    /// Standard object metadata.
    pub metadata: Metadata,
    /// How and by how many nodes the storage can be used.
    pub spec: PersistentVolumeSpec,
}

/// What it is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentVolumeSpec {
    /// The access modes that the storage supports, such as `ReadWriteOnce`.
    pub access_modes: Vec<String>,
    /// `Filesystem`, which is the default, or [`BLOCK`].
    pub volume_mode: String,
    local: Option<serde::de::IgnoredAny>,
    host_path: Option<serde::de::IgnoredAny>,
    iscsi: Option<serde::de::IgnoredAny>,
    fc: Option<serde::de::IgnoredAny>,
    nfs: Option<serde::de::IgnoredAny>,
    cephfs: Option<serde::de::IgnoredAny>,
    glusterfs: Option<serde::de::IgnoredAny>,
    azure_file: Option<serde::de::IgnoredAny>,
    quobyte: Option<serde::de::IgnoredAny>,
    csi: Option<Driver>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Driver {
    driver: String,
}

impl PersistentVolumeSpec {
    /// What it is made of, in a word.
    pub fn kind(&self) -> &str {
        match self {
            Self { local: Some(_), .. } => "local",
            Self { host_path: Some(_), .. } => "hostPath",
            Self { iscsi: Some(_), .. } => "iscsi",
            Self { fc: Some(_), .. } => "fc",
            Self { nfs: Some(_), .. } => "nfs",
            Self { cephfs: Some(_), .. } => "cephfs",
            Self { glusterfs: Some(_), .. } => "glusterfs",
            Self { azure_file: Some(_), .. } => "azureFile",
            Self { quobyte: Some(_), .. } => "quobyte",
            Self { csi: Some(csi), .. } => &csi.driver,
            _ => "other",
        }
    }
}

/// The `volumeMode` of storage that is given to a pod without a file system.
pub const BLOCK: &str = "Block";

/// Whether two nodes that use storage of this kind at once may destroy it. An access mode for
/// one node at a time counts, whatever it is made of. Raw blocks are not guarded against other writers,
/// whatever the access modes promise, and what is not known to be a shared file system may be some.
pub fn is_exclusive(access_modes: &[String], kind: &str, volume_mode: &str) -> bool {
    let has = |mode: &str| access_modes.iter().any(|have| have == mode);
    let only_read = !access_modes.is_empty() && access_modes.iter().all(|mode| mode == "ReadOnlyMany");
    let blocks = matches!(kind, "iscsi" | "fc" | "other") || volume_mode == BLOCK;
    access_modes.is_empty() || has("ReadWriteOnce") || has("ReadWriteOncePod") || (blocks && !only_read)
}

/// A `VolumeAttachment`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct VolumeAttachment {
    /// Standard object metadata.
    pub metadata: Metadata,
    /// Which volume is to be attached to which node.
    pub spec: VolumeAttachmentSpec,
}

/// What is attached where.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeAttachmentSpec {
    /// The node to which the volume is attached.
    pub node_name: String,
    /// The volume.
    pub source: VolumeAttachmentSource,
}

/// What is attached.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeAttachmentSource {
    /// The `PersistentVolume`; empty for a volume that a pod brings inline.
    pub persistent_volume_name: String,
}

/// A `PodDisruptionBudget`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodDisruptionBudget {
    /// Standard object metadata.
    pub metadata: Metadata,
    /// The pods that it protects.
    pub spec: PodDisruptionBudgetSpec,
    /// What the disruption controller has counted.
    pub status: PodDisruptionBudgetStatus,
}

/// What it asks for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodDisruptionBudgetSpec {
    /// Which pods of its namespace it protects: with an empty one all, without one none.
    pub selector: Option<Selector>,
    /// The `unhealthyPodEvictionPolicy`: `AlwaysAllow`, or `IfHealthyBudget`, which is the default.
    #[serde(rename = "unhealthyPodEvictionPolicy")]
    pub unhealthy: String,
}

/// What it allows now.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodDisruptionBudgetStatus {
    /// How many of its pods may be evicted now.
    pub disruptions_allowed: i64,
    /// How many of its pods are healthy.
    pub current_healthy: i64,
    /// How many of its pods have to be healthy.
    pub desired_healthy: i64,
}

impl PodDisruptionBudget {
    /// Whether it speaks of a pod with these labels, in this namespace.
    pub fn concerns(&self, namespace: &str, labels: &BTreeMap<String, String>) -> bool {
        self.metadata.namespace == namespace
            && self.spec.selector.as_ref().is_some_and(|selector| selector.matches(labels))
    }

    /// Whether an eviction would be let through now. One that is not ready takes nothing away from what
    /// is available.
    pub fn allows(&self, ready: bool) -> bool {
        self.status.disruptions_allowed > 0
            || (!ready
                && (self.spec.unhealthy == "AlwaysAllow"
                    || (self.status.current_healthy >= self.status.desired_healthy
                        && self.status.desired_healthy > 0)))
    }
}

/// A label selector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Selector {
    match_labels: BTreeMap<String, String>,
    match_expressions: Vec<Expression>,
}

/// One of the expressions of a label selector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Expression {
    /// The key of a label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// The values that the label may have, or not.
    pub values: Vec<String>,
}

impl Selector {
    /// As `kubectl -l` takes it; `None` if it selects all, or in a way that is not known.
    pub fn text(&self) -> Option<String> {
        let labels = self.match_labels.iter().map(|(key, value)| Some(format!("{key}={value}")));
        let expressions = self.match_expressions.iter().map(|Expression { key, operator, values }| {
            let values = values.join(",");
            match operator.as_str() {
                "In" => Some(format!("{key} in ({values})")),
                "NotIn" => Some(format!("{key} notin ({values})")),
                "Exists" => Some(key.clone()),
                "DoesNotExist" => Some(format!("!{key}")),
                _ => None,
            }
        });
        let parts: Vec<String> = labels.chain(expressions).collect::<Option<_>>()?;
        (!parts.is_empty()).then(|| parts.join(","))
    }

    /// Whether it selects an object with these labels.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|Expression { key, operator, values }| {
                let has = labels.get(key);
                match operator.as_str() {
                    "In" => has.is_some_and(|value| values.contains(value)),
                    "NotIn" => has.is_none_or(|value| !values.contains(value)),
                    "DoesNotExist" => has.is_none(),
                    "Exists" => has.is_some(),
                    // What cannot be judged is taken to concern us.
                    _ => true,
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_selector_as_kubectl_takes_it() {
        let expression = |operator: &str, values: &[&str]| json!({ "matchExpressions": [{ "key": "app", "operator": operator, "values": values }] });
        for (selector, text) in [
            (json!({ "matchLabels": { "app": "db", "tier": "1" } }), Some("app=db,tier=1")),
            (expression("In", &["a", "b"]), Some("app in (a,b)")),
            (expression("NotIn", &["a"]), Some("app notin (a)")),
            (expression("Exists", &[]), Some("app")),
            (expression("DoesNotExist", &[]), Some("!app")),
            (
                json!({ "matchLabels": { "tier": "1" }, "matchExpressions": [{ "key": "app", "operator": "Exists" }] }),
                Some("tier=1,app"),
            ),
            (expression("Gt", &["1"]), None),
            (json!({}), None),
        ] {
            let read: Selector = serde_json::from_value(selector.clone()).unwrap();
            assert_eq!(read.text().as_deref(), text, "{selector}");
        }
    }

    #[test]
    fn storage_that_two_nodes_may_destroy() {
        for (modes, kind, exclusive) in [
            (&["ReadWriteOnce"][..], "ebs.csi.aws.com", true),
            (&["ReadWriteOncePod"], "ebs.csi.aws.com", true),
            (&["ReadWriteOnce", "ReadOnlyMany"], "x", true),
            (&["ReadWriteMany"], "nfs", false),
            (&["ReadOnlyMany"], "x", false),
            (&["ReadWriteOnce"], "nfs", true), // nothing enforces it, so it must not be tried
            (&["ReadWriteMany"], "iscsi", true),
            (&["ReadOnlyMany"], "iscsi", false),
            (&["ReadWriteOnce"], "fc", true),
            (&["ReadWriteOnce"], "local", true),
            (&["ReadWriteOncePod"], "hostPath", true),
            (&["ReadWriteMany"], "hostPath", false), // it stays on its node
            (&["ReadWriteMany"], "other", true),     // an rbd, and whatever else there is
            (&["ReadOnlyMany"], "other", false),
            (&[], "x", true), // not known
            (&[], "iscsi", true),
            (&[], "local", true),
        ] {
            let owned: Vec<String> = modes.iter().map(|mode| (*mode).to_owned()).collect();
            assert_eq!(is_exclusive(&owned, kind, "Filesystem"), exclusive, "{modes:?} {kind}");
            assert_eq!(is_exclusive(&owned, kind, ""), exclusive, "{modes:?} {kind}");
            let written = modes != ["ReadOnlyMany"];
            assert_eq!(is_exclusive(&owned, kind, BLOCK), written, "{modes:?} {kind} as blocks");
        }
    }

    #[test]
    fn what_storage_is_made_of() {
        for (spec, kind) in [
            (json!({ "csi": { "driver": "d" } }), "d"),
            (json!({ "local": {} }), "local"),
            (json!({ "hostPath": {} }), "hostPath"),
            (json!({ "iscsi": {} }), "iscsi"),
            (json!({ "fc": {} }), "fc"),
            (json!({ "nfs": {} }), "nfs"),
            (json!({ "cephfs": {} }), "cephfs"),
            (json!({ "glusterfs": {} }), "glusterfs"),
            (json!({ "azureFile": {} }), "azureFile"),
            (json!({ "quobyte": {} }), "quobyte"),
            (json!({ "rbd": {} }), "other"),
            (json!({ "awsElasticBlockStore": {} }), "other"),
            (json!({}), "other"),
        ] {
            let read: PersistentVolumeSpec = serde_json::from_value(spec.clone()).unwrap();
            assert_eq!(read.kind(), kind, "{spec}");
        }
    }

    #[test]
    fn what_is_not_ready_may_be_evicted_over_a_budget_that_is_used_up() {
        for (allowed, policy, healthy, desired, if_ready, if_not) in [
            (1, "", 3, 2, true, true),
            (0, "", 2, 2, false, true),
            (0, "IfHealthyBudget", 1, 2, false, false),
            (0, "AlwaysAllow", 1, 2, false, true),
            (0, "", 0, 0, false, false), // the controller has not looked yet
        ] {
            let budget: PodDisruptionBudget = serde_json::from_value(json!({
                "spec": { "unhealthyPodEvictionPolicy": policy },
                "status": { "disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired },
            }))
            .unwrap();
            assert_eq!((budget.allows(true), budget.allows(false)), (if_ready, if_not), "{budget:?}");
        }
    }

    #[test]
    fn selectors_match_as_the_api_has_them() {
        let labels: BTreeMap<String, String> =
            [("app", "db"), ("tier", "back")].map(|(k, v)| (k.into(), v.into())).into();
        for (selector, matches) in [
            (json!({}), true),
            (json!({ "matchLabels": { "app": "db" } }), true),
            (json!({ "matchLabels": { "app": "web" } }), false),
            (json!({ "matchExpressions": [{ "key": "app", "operator": "In", "values": ["db"] }] }), true),
            (json!({ "matchExpressions": [{ "key": "app", "operator": "NotIn", "values": ["db"] }] }), false),
            (json!({ "matchExpressions": [{ "key": "zone", "operator": "NotIn", "values": ["a"] }] }), true),
            (json!({ "matchExpressions": [{ "key": "app", "operator": "In", "values": ["web"] }] }), false),
            (json!({ "matchExpressions": [{ "key": "zone", "operator": "Exists" }] }), false),
            (json!({ "matchExpressions": [{ "key": "zone", "operator": "DoesNotExist" }] }), true),
            (json!({ "matchExpressions": [{ "key": "app", "operator": "Gt", "values": ["1"] }] }), true),
            (json!({ "matchExpressions": [{ "key": "tier", "operator": "Exists" }] }), true),
            (json!({ "matchExpressions": [{ "key": "tier", "operator": "DoesNotExist" }] }), false),
        ] {
            let read: Selector = serde_json::from_value(selector.clone()).unwrap();
            assert_eq!(read.matches(&labels), matches, "{selector}");
        }
    }

    #[test]
    fn a_budget_concerns_pods_of_its_namespace_and_selector() {
        let labels = BTreeMap::from([("app".to_owned(), "db".to_owned())]);
        for (namespace, selector, concerns) in [
            ("shop", json!({ "matchLabels": { "app": "db" } }), true),
            ("other", json!({ "matchLabels": { "app": "db" } }), false),
            ("shop", json!({ "matchLabels": { "app": "web" } }), false),
            ("shop", json!({}), true),
            ("shop", json!(null), false),
        ] {
            let budget: PodDisruptionBudget = serde_json::from_value(
                json!({ "metadata": { "namespace": namespace }, "spec": { "selector": selector } }),
            )
            .unwrap();
            assert_eq!(budget.concerns("shop", &labels), concerns, "{namespace} {selector}");
        }
    }
}
