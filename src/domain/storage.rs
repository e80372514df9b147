//! The parts of claims, volumes, attachments and disruption budgets that the rules look at.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::lease::Metadata;

/// A `PersistentVolumeClaim`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Claim {
    pub metadata: Metadata,
    pub spec: ClaimSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSpec {
    pub access_modes: Vec<String>,
    pub volume_name: String,
}

/// A `PersistentVolume`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Disk {
    pub metadata: Metadata,
    pub spec: DiskSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DiskSpec {
    pub access_modes: Vec<String>,
    local: Option<serde::de::IgnoredAny>,
    host_path: Option<serde::de::IgnoredAny>,
    iscsi: Option<serde::de::IgnoredAny>,
    fc: Option<serde::de::IgnoredAny>,
    nfs: Option<serde::de::IgnoredAny>,
    csi: Option<Driver>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Driver {
    driver: String,
}

impl DiskSpec {
    /// What it is made of, in a word.
    pub fn kind(&self) -> &str {
        match self {
            Self { local: Some(_), .. } => "local",
            Self { host_path: Some(_), .. } => "hostPath",
            Self { iscsi: Some(_), .. } => "iscsi",
            Self { fc: Some(_), .. } => "fc",
            Self { nfs: Some(_), .. } => "nfs",
            Self { csi: Some(csi), .. } => &csi.driver,
            _ => "other",
        }
    }
}

/// Whether two nodes that use storage of this kind at once may destroy it. Storage that stays on its
/// node cannot be reached by two. Raw block protocols have no idea of who else writes, whatever the
/// access modes promise.
pub fn is_exclusive(access_modes: &[String], kind: &str) -> bool {
    let modes = |mode: &str| access_modes.iter().any(|have| have == mode);
    match kind {
        "local" | "hostPath" => false,
        "iscsi" | "fc" => !access_modes.iter().all(|mode| mode == "ReadOnlyMany") || access_modes.is_empty(),
        _ => access_modes.is_empty() || modes("ReadWriteOnce") || modes("ReadWriteOncePod"),
    }
}

/// Access modes as kubectl abbreviates them.
pub fn abbreviated(access_modes: &[String]) -> String {
    let short = |mode: &String| match mode.as_str() {
        "ReadWriteOnce" => "RWO".to_owned(),
        "ReadWriteOncePod" => "RWOP".to_owned(),
        "ReadOnlyMany" => "ROX".to_owned(),
        "ReadWriteMany" => "RWX".to_owned(),
        _ => mode.clone(),
    };
    access_modes.iter().map(short).collect::<Vec<_>>().join(",")
}

/// A `VolumeAttachment`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Attachment {
    pub metadata: Metadata,
    pub spec: AttachmentSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AttachmentSpec {
    pub node_name: String,
    pub source: AttachmentSource,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AttachmentSource {
    pub persistent_volume_name: String,
}

/// A `PodDisruptionBudget`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Budget {
    pub metadata: Metadata,
    pub spec: BudgetSpec,
    pub status: BudgetStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct BudgetSpec {
    pub selector: Option<Selector>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BudgetStatus {
    pub disruptions_allowed: i64,
}

/// A label selector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Selector {
    pub match_labels: BTreeMap<String, String>,
    pub match_expressions: Vec<Expression>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Expression {
    pub key: String,
    pub operator: String,
    pub values: Vec<String>,
}

impl Selector {
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
            (&["ReadWriteOnce"], "local", false),
            (&["ReadWriteOnce"], "hostPath", false),
            (&[], "x", true), // not known
            (&[], "iscsi", true),
        ] {
            let owned: Vec<String> = modes.iter().map(|mode| (*mode).to_owned()).collect();
            assert_eq!(is_exclusive(&owned, kind), exclusive, "{modes:?} {kind}");
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
            (json!({ "matchExpressions": [{ "key": "tier", "operator": "Exists" }] }), true),
            (json!({ "matchExpressions": [{ "key": "tier", "operator": "DoesNotExist" }] }), false),
        ] {
            let read: Selector = serde_json::from_value(selector.clone()).unwrap();
            assert_eq!(read.matches(&labels), matches, "{selector}");
        }
    }
}
