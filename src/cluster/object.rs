//! Objects as the API sends them: the typed part that the rules look at, and the text itself.
//!
//! Typed structs drop the fields that they do not know. So the text stays beside them: what
//! `-o json` shows is what the server sent, and nothing is lost on the way. The text of a list's
//! items is not copied out of the answer: an object is a piece of it.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use super::Resource;

/// An object of the API; cheap to clone.
#[derive(Debug)]
pub struct Object<T> {
    pub value: Arc<T>,
    text: Bytes,
}

impl<T> Clone for Object<T> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), text: self.text.clone() }
    }
}

/// What an object of a resource can be read into. A view of several resources has an enum here,
/// because the items of a list do not say of what kind they are.
pub trait Readable: Sized {
    /// # Errors
    /// If the text is not such an object.
    fn read(resource: Resource, text: &[u8]) -> Result<Self, serde_json::Error>;
}

impl<T: DeserializeOwned> Readable for T {
    fn read(_: Resource, text: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(text)
    }
}

impl<T: Readable> Object<T> {
    pub(super) fn read(resource: Resource, text: Bytes) -> Result<Self, serde_json::Error> {
        Ok(Self { value: Arc::new(T::read(resource, &text)?), text })
    }
}

impl<T: DeserializeOwned> Object<T> {
    pub(super) fn parse(text: Bytes) -> Result<Self, serde_json::Error> {
        Ok(Self { value: Arc::new(serde_json::from_slice(&text)?), text })
    }
}

impl<T: Default> Object<T> {
    /// What would have been made, had it not been a dry run in a place that is not there yet.
    pub fn imagined() -> Self {
        Self { value: Arc::default(), text: Bytes::new() }
    }
}

impl<T> Object<T> {
    /// The whole object as kubectl would show it: with the `apiVersion` and `kind` that the items
    /// of a list come without, and without `managedFields`.
    pub fn document(&self, resource: Resource) -> Value {
        let mut document: Value = serde_json::from_slice(&self.text).unwrap_or_default();
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

/// The answer to a list request.
#[derive(Debug)]
pub struct List<T> {
    pub items: Vec<Object<T>>,
    /// Where a watch goes on from.
    pub resource_version: String,
}

impl<T: Readable> List<T> {
    pub(super) fn parse(resource: Resource, body: &Bytes) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Raw<'a> {
            #[serde(default)]
            metadata: ListMetadata,
            #[serde(borrow)]
            items: Option<Vec<&'a RawValue>>,
        }
        let raw: Raw<'_> = serde_json::from_slice(body)?;
        let items = raw.items.unwrap_or_default().into_iter();
        Ok(Self {
            items: items
                .map(|item| Object::read(resource, body.slice_ref(item.get().as_bytes())))
                .collect::<Result<_, _>>()?,
            resource_version: raw.metadata.resource_version,
        })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListMetadata {
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
    use crate::{cluster::LEASES, domain::lease::Lease};

    #[test]
    fn fields_that_no_type_knows_are_kept() {
        let text = r#"{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a","managedFields":[{}]},
            "spec":{"holderIdentity":"x","invented":true},"status":{"more":1}}]}"#;
        let list: List<Lease> = List::parse(LEASES, &Bytes::from(text)).unwrap();
        assert_eq!(list.resource_version, "7");
        let lease = &list.items[0];
        assert_eq!(lease.value.spec.holder_identity.as_deref(), Some("x"));
        assert_eq!(
            lease.document(LEASES),
            serde_json::json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"},
                "spec": {"holderIdentity": "x", "invented": true}, "status": {"more": 1}})
        );
    }

    #[test]
    fn a_list_without_items_is_empty() {
        for text in [r#"{"items":null}"#, r#"{"items":[]}"#, "{}"] {
            assert!(List::<Lease>::parse(LEASES, &Bytes::from(text)).unwrap().items.is_empty());
        }
        assert!(List::<Lease>::parse(LEASES, &Bytes::from("[]x")).is_err());
    }
}
