//! Objects as the API sends them: the typed part that the rules look at, and the text itself.
//!
//! Typed structs drop the fields that they do not know. So the text stays beside them: what
//! `-o json` shows is what the server sent, and nothing is lost on the way.

use super::Resource;
use serde::{Deserialize, Deserializer, de};
use serde_json::{Value, value::RawValue};

/// An object of the API.
#[derive(Clone, Debug)]
pub struct Object<T> {
    pub value: T,
    text: Box<RawValue>,
}

impl<T> Object<T> {
    /// The whole object as kubectl would show it: with the `apiVersion` and `kind` that the items
    /// of a list come without, and without `managedFields`.
    pub fn document(&self, resource: Resource) -> Value {
        let mut document: Value = serde_json::from_str(self.text.get()).unwrap_or_default();
        if let Some(fields) = document.as_object_mut() {
            fields.insert("apiVersion".into(), resource.api_version().into());
            fields.insert("kind".into(), resource.kind.into());
        }
        if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        document
    }
}

impl<'de, T: de::DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let value = serde_json::from_str(text.get()).map_err(de::Error::custom)?;
        Ok(Self { value, text })
    }
}

/// The answer to a list request.
#[derive(Debug, Deserialize)]
#[serde(bound = "T: de::DeserializeOwned")]
pub struct List<T> {
    #[serde(default)]
    pub metadata: ListMetadata,
    #[serde(default = "Vec::new")]
    pub items: Vec<Object<T>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListMetadata {
    /// Where a watch goes on from.
    pub resource_version: String,
}

/// The API's way of saying no.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    pub code: u16,
    pub reason: String,
    pub message: String,
    pub details: StatusDetails,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StatusDetails {
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::lease::Lease;

    #[test]
    fn fields_that_no_type_knows_are_kept() {
        let text = r#"{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a","managedFields":[{}]},
            "spec":{"holderIdentity":"x","invented":true},"status":{"more":1}}]}"#;
        let list: List<Lease> = serde_json::from_str(text).unwrap();
        assert_eq!(list.metadata.resource_version, "7");
        let lease = &list.items[0];
        assert_eq!(lease.value.spec.holder_identity.as_deref(), Some("x"));
        assert_eq!(
            lease.document(crate::cluster::LEASES),
            serde_json::json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}, "spec": {"holderIdentity": "x", "invented": true},
                "status": {"more": 1}})
        );
    }
}
