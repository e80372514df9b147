//! Reading and writing single objects.
//!
//! Every write is a create, or carries the resource version of what was read: an object that
//! changed in between answers 409 and is read and judged again, never overwritten.

use std::collections::BTreeSet;

use futures::future::try_join_all;
use http::{Method, Request, header};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Cluster, Object, Query, Resource};
use crate::{
    error::{Error, Permission, Result},
    rules::lease::is_path_segment,
};

/// Where an object is; the namespace is empty for objects that are in none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Address {
    /// Of an object in a namespace, or with an empty one in none.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        Some(self.namespace.as_str()).filter(|namespace| !namespace.is_empty())
    }

    /// Fails for a name that would be read as another path.
    pub(super) fn path(&self, resource: Resource) -> Result<String> {
        Ok(format!("{}/{}", self.beside(resource)?, segment(&self.name)?))
    }

    /// The path of all objects where this one is.
    fn beside(&self, resource: Resource) -> Result<String> {
        Ok(resource.path(self.namespace().map(segment).transpose()?))
    }

    pub(super) fn needs(&self, verbs: &'static str, resource: Resource) -> Permission {
        Permission { verbs, resource: resource.name(), namespace: self.namespace().map(str::to_owned) }
    }
}

/// What says itself where it is.
pub trait Addressed {
    /// Where it is.
    fn address(&self) -> Address;
}

/// What is to be deleted, and how.
#[derive(Clone, Debug)]
pub struct DeleteRequest<'a> {
    /// Its uid.
    pub uid: &'a str,
    /// The version that was looked at.
    pub resource_version: &'a str,
    /// `Some(0)` is force; `None` is the object's own.
    pub grace_seconds: Option<u32>,
    /// Let the server check it and do nothing.
    pub dry_run: bool,
}

impl DeleteRequest<'_> {
    pub(super) fn options(&self, api_version: &str) -> Value {
        let mut options = json!({
            "apiVersion": api_version,
            "kind": "DeleteOptions",
            "preconditions": { "uid": self.uid, "resourceVersion": self.resource_version },
            "propagationPolicy": "Background",
        });
        if let Some(seconds) = self.grace_seconds {
            options["gracePeriodSeconds"] = seconds.into();
        }
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        options
    }
}

/// How to write.
#[derive(Clone, Debug, Default)]
pub struct Writing {
    /// Let the server check it and do nothing.
    pub dry_run: bool,
    /// The name of the manager used to track field ownership; without one, that of the [`Cluster`].
    pub field_manager: Option<String>,
}

impl Writing {
    fn query(&self, manager: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        // Strict: a field that the server does not know is an error, not dropped in silence.
        query
            .append_pair("fieldManager", self.field_manager.as_deref().unwrap_or(manager))
            .append_pair("fieldValidation", "Strict");
        if self.dry_run {
            query.append_pair("dryRun", "All");
        }
        query.finish()
    }
}

impl Cluster {
    /// An object, or `None` where there is none.
    pub async fn get<T: DeserializeOwned + Send + Sync>(
        &self,
        resource: Resource,
        at: &Address,
    ) -> Result<Option<Object<T>>> {
        // The server checks no names of owners.
        let Ok(path) = at.path(resource) else { return Ok(None) };
        let request = Request::get(path).body(Vec::new()).map_err(unbuildable)?;
        match self.call(&request, &at.needs("get", resource)).await {
            Ok(body) => self.object(body).map(Some),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates an object.
    pub async fn create<T: DeserializeOwned + Send + Sync>(
        &self,
        resource: Resource,
        at: &Address,
        object: &Value,
        writing: &Writing,
    ) -> Result<Object<T>> {
        let path = at.beside(resource)?;
        self.write(Method::POST, &path, "application/json", object, &at.needs("create", resource), writing)
            .await
    }

    /// Merges a patch into an object. The patch says which version of the object it is for.
    pub async fn patch<T: DeserializeOwned + Send + Sync>(
        &self,
        resource: Resource,
        at: &Address,
        patch: &Value,
        writing: &Writing,
    ) -> Result<Object<T>> {
        const MERGE: &str = "application/merge-patch+json";
        let needs = at.needs("patch", resource);
        self.write(Method::PATCH, &at.path(resource)?, MERGE, patch, &needs, writing).await
    }

    /// These objects, as far as they exist: each by itself if they are few, else out of a list of all.
    pub async fn get_many<T: DeserializeOwned + Send + Sync + Addressed>(
        &self,
        resource: Resource,
        addresses: &BTreeSet<Address>,
    ) -> Result<Vec<Object<T>>> {
        /// About as much as one page of a list costs.
        const FEW: usize = 16;
        if addresses.len() > FEW {
            let mut query = Query::new(resource).paged();
            // Where all are in one namespace, permission to list in that one is enough.
            if let (Some(first), Some(last)) = (addresses.first(), addresses.last())
                && first.namespace == last.namespace
            {
                query.namespace = first.namespace().map(str::to_owned);
            }
            match self.list_where(&query, |object: &T| addresses.contains(&object.address())).await {
                // Without permission to list, each may still be read.
                Err(Error::Forbidden { .. }) => {}
                list => return list.map(|list| list.items),
            }
        }
        let (mut found, all): (Vec<_>, Vec<_>) = (Vec::new(), addresses.iter().collect());
        for few in all.chunks(FEW) {
            let objects = try_join_all(few.iter().map(|at| self.get(resource, at))).await?;
            found.extend(objects.into_iter().flatten());
        }
        Ok(found)
    }

    /// Deletes exactly the object that was looked at: the same one, and unchanged since.
    pub async fn delete(&self, resource: Resource, at: &Address, how: &DeleteRequest<'_>) -> Result<()> {
        let body = how.options("v1");
        let request = Request::delete(at.path(resource)?)
            .header(header::CONTENT_TYPE, "application/json")
            .body(body.to_string().into_bytes())
            .map_err(unbuildable)?;
        self.call(&request, &at.needs("delete", resource)).await.map(drop)
    }

    pub(super) async fn write<T: DeserializeOwned + Send + Sync>(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
        needs: &Permission,
        writing: &Writing,
    ) -> Result<Object<T>> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{path}?{}", writing.query(&self.manager)))
            .header(header::CONTENT_TYPE, content_type)
            .body(body.to_string().into_bytes())
            .map_err(unbuildable)?;
        let answer = self.call(&request, needs).await?;
        self.object(answer)
    }

    pub(super) fn object<T: DeserializeOwned + Send + Sync>(&self, body: bytes::Bytes) -> Result<Object<T>> {
        Object::parse(body)
            .map_err(|error| Error::BadAnswer { server: self.server.clone(), cause: error.to_string() })
    }
}

fn segment(name: &str) -> Result<&str> {
    if is_path_segment(name) {
        return Ok(name);
    }
    Err(Error::Invalid { message: format!("'{}' is not the name of an object", name.escape_debug()) })
}

#[allow(clippy::needless_pass_by_value)]
pub(super) fn unbuildable(error: http::Error) -> Error {
    Error::Invalid { message: format!("this cannot be asked of the API: {error}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{LEASES, NODES};

    #[test]
    fn a_path_is_that_of_one_object_or_none() {
        for (namespace, name, resource, path) in [
            ("", "node-1", NODES, Some("/api/v1/nodes/node-1")),
            ("a", "b", LEASES, Some("/apis/coordination.k8s.io/v1/namespaces/a/leases/b")),
            ("", "", NODES, None),
            ("", "node-1/status", NODES, None),
            ("", "..", NODES, None),
            ("a", "b?dryRun=All", LEASES, None),
            ("a/leases/c?", "b", LEASES, None),
            ("..", "b", LEASES, None),
        ] {
            let found = Address::new(namespace, name).path(resource);
            assert_eq!(found.as_deref().ok(), path, "{namespace} {name}");
        }
    }
}
