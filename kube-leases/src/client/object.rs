//! Objects as the API sends them: the typed part that the rules look at, and the text itself.
//!
//! Typed structs drop the fields that they do not know. So the text stays beside them: what
//! `-o json` shows is what the server sent, and nothing is lost on the way. The text of a list's
//! items is not copied out of the answer: an object is a piece of it.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use super::{Query, Resource};

/// An object of the API; cheap to clone.
#[derive(Debug)]
pub struct Object<T> {
    /// The fields that the rules look at.
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
pub trait Readable: Sized + Send + Sync {
    /// # Errors
    /// If the text is not such an object.
    fn read(resource: Resource, text: &[u8]) -> Result<Self, serde_json::Error>;
}

impl<T: DeserializeOwned + Send + Sync> Readable for T {
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
    /// The same object, read as something else.
    pub fn with<U>(&self, value: U) -> Object<U> {
        Object { value: Arc::new(value), text: self.text.clone() }
    }

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
    /// In the order in which the server sent them.
    pub items: Vec<Object<T>>,
    /// Where a watch goes on from.
    pub resource_version: String,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { items: Vec::new(), resource_version: String::new() }
    }
}

impl<T: Readable> List<T> {
    /// Adds those of an answer that `keep` wants; what the next page is to be asked for with, if
    /// there is one.
    pub(super) fn add(
        &mut self,
        query: &Query,
        body: &Bytes,
        keep: &impl Fn(&T) -> bool,
    ) -> Result<Option<String>, serde_json::Error> {
        #[derive(Deserialize)]
        struct Raw<'a> {
            #[serde(default)]
            metadata: ListMetadata,
            #[serde(borrow)]
            items: Option<Vec<&'a RawValue>>,
        }
        let raw: Raw<'_> = serde_json::from_slice(body)?;
        let items = raw.items.unwrap_or_default();
        let (all, before) = (items.len(), self.items.len());
        for item in items {
            let text = if query.bare { Bytes::new() } else { body.slice_ref(item.get().as_bytes()) };
            let value = T::read(query.resource, item.get().as_bytes())?;
            if keep(&value) {
                self.items.push(Object { value: Arc::new(value), text });
            }
        }
        let kept = &mut self.items[before..];
        if kept.len() < all {
            // A piece of the answer would keep the whole of it.
            for object in kept {
                object.text = Bytes::copy_from_slice(&object.text);
            }
        }
        self.resource_version = raw.metadata.resource_version;
        Ok(Some(raw.metadata.r#continue).filter(|next| !next.is_empty()))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListMetadata {
    pub resource_version: String,
    pub r#continue: String,
}

/// The API's way of saying no.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ApiStatus {
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
    use crate::{client::LEASES, rules::lease::Lease};

    fn read(text: &'static str) -> Result<List<Lease>, serde_json::Error> {
        let mut list = List::default();
        list.add(&Query::new(LEASES), &Bytes::from(text), &|_| true).map(|_| list)
    }

    #[test]
    fn pages_are_added_up_and_what_is_not_wanted_is_left_behind() {
        let page = |name: &str, next: &str| {
            Bytes::from(format!(
                r#"{{"metadata":{{"resourceVersion":"7","continue":"{next}"}},"items":[{{"metadata":{{"name":"{name}"}}}},{{"metadata":{{"name":"x"}}}}]}}"#
            ))
        };
        let mut list: List<Lease> = List::default();
        let query = Query::new(LEASES).paged();
        let wanted = |lease: &Lease| lease.metadata.name != "x";
        assert_eq!(list.add(&query, &page("a", "more"), &wanted).unwrap().as_deref(), Some("more"));
        assert_eq!(list.add(&query, &page("b", ""), &wanted).unwrap(), None);
        let names: Vec<_> =
            list.items.iter().map(|item| item.document(LEASES)["metadata"]["name"].clone()).collect();
        assert_eq!(names, ["a", "b"]);
        list.add(&query.bare(true), &page("c", ""), &wanted).unwrap();
        assert!(list.items[2].document(LEASES).is_null(), "{:?}", list.items[2]);
    }

    #[test]
    fn fields_that_no_type_knows_are_kept() {
        let text = r#"{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a","managedFields":[{}]},
            "spec":{"holderIdentity":"x","invented":true},"status":{"more":1}}]}"#;
        let list = read(text).unwrap();
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
            assert!(read(text).unwrap().items.is_empty());
        }
        assert!(read("[]x").is_err());
    }
}
