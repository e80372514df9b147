//! Reading and writing single leases.
//!
//! Every write is a create, or carries the resource version of what was read: a lease that changed
//! in between answers 409 and is read and judged again, never overwritten.

use http::{Method, Request, header};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Cluster, LEASES, Object};
use crate::{
    domain::{
        lease::{Lease, Metadata},
        maintenance::{REASON, Record},
    },
    error::{Error, Needs, Result},
};

pub(super) const WHOAMI: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// Where a lease is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub namespace: String,
    pub name: String,
}

impl Address {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    fn path(&self) -> String {
        format!("{}/{}", LEASES.path(Some(&self.namespace)), self.name)
    }
}

/// How to write.
#[derive(Clone, Debug)]
pub struct Writing {
    /// Let the server check it and do nothing.
    pub dry_run: bool,
    /// Whose fields they are.
    pub field_manager: String,
}

impl Default for Writing {
    fn default() -> Self {
        Self { dry_run: false, field_manager: env!("CARGO_PKG_NAME").into() }
    }
}

impl Writing {
    fn query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("fieldManager", &self.field_manager).append_pair("fieldValidation", "Strict");
        if self.dry_run {
            query.append_pair("dryRun", "All");
        }
        query.finish()
    }
}

impl Cluster {
    /// A lease, or `None` where there is none.
    pub async fn lease(&self, at: &Address) -> Result<Option<Object<Lease>>> {
        let request = Request::get(at.path()).body(Vec::new()).map_err(unbuildable)?;
        match self.call(&request, &needs("get", at)).await {
            Ok(body) => self.object(body).map(Some),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates a lease, to go when `owner`, a node, goes.
    pub async fn create_lease(
        &self,
        at: &Address,
        record: &Record,
        reason: Option<&str>,
        owner: Option<&Metadata>,
        writing: &Writing,
    ) -> Result<Object<Lease>> {
        let owners: Vec<Value> = owner
            .iter()
            .map(|node| json!({ "apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid }))
            .collect();
        let annotations = reason.map(|reason| json!({ REASON: reason })).unwrap_or(json!({}));
        let lease = json!({
            "apiVersion": LEASES.api_version(),
            "kind": LEASES.kind,
            "metadata": {
                "name": at.name, "namespace": at.namespace, "annotations": annotations, "ownerReferences": owners,
            },
            "spec": spec(record),
        });
        let path = LEASES.path(Some(&at.namespace));
        self.write(Method::POST, &path, "application/json", &lease, &needs("create", at), writing).await
    }

    /// Writes a record over a lease as it was read. `reason` is what the lease says from now on.
    pub async fn write_lease(
        &self,
        at: &Address,
        before: &Lease,
        record: &Record,
        reason: Option<&str>,
        writing: &Writing,
    ) -> Result<Object<Lease>> {
        let patch = json!({
            "metadata": {
                "uid": before.metadata.uid,
                "resourceVersion": before.metadata.resource_version,
                "annotations": { REASON: reason },
            },
            "spec": spec(record),
        });
        self.patch_lease(at, &patch, writing).await
    }

    /// Renews a lease as it was last read or written; nothing else changes.
    pub async fn renew_lease(
        &self,
        at: &Address,
        before: &Lease,
        seconds: i32,
        now: Timestamp,
    ) -> Result<Object<Lease>> {
        let patch = json!({
            "metadata": { "uid": before.metadata.uid, "resourceVersion": before.metadata.resource_version },
            "spec": { "renewTime": micro_time(now), "leaseDurationSeconds": seconds },
        });
        self.patch_lease(at, &patch, &Writing::default()).await
    }

    async fn patch_lease(&self, at: &Address, patch: &Value, writing: &Writing) -> Result<Object<Lease>> {
        const MERGE: &str = "application/merge-patch+json";
        self.write(Method::PATCH, &at.path(), MERGE, patch, &needs("patch", at), writing).await
    }

    /// Creates a namespace, if nobody else has meanwhile.
    pub async fn create_namespace(&self, name: &str, writing: &Writing) -> Result<()> {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        let needs = Needs { verbs: "create", resource: "namespaces".into(), namespace: None };
        let created: Result<Object<Value>> = self
            .write(Method::POST, "/api/v1/namespaces", "application/json", &namespace, &needs, writing)
            .await;
        match created {
            Err(error) if !error.is_conflict() => Err(error),
            _ => Ok(()),
        }
    }

    async fn write<T: serde::de::DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
        needs: &Needs,
        writing: &Writing,
    ) -> Result<Object<T>> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{path}?{}", writing.query()))
            .header(header::CONTENT_TYPE, content_type)
            .body(body.to_string().into_bytes())
            .map_err(unbuildable)?;
        let answer = self.call(&request, needs).await?;
        self.object(answer)
    }

    /// The authenticated user's name.
    pub async fn whoami(&self) -> Result<String> {
        let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
        let resource = "selfsubjectreviews.authentication.k8s.io".to_owned();
        let needs = Needs { verbs: "create", resource, namespace: None };
        let writing = Writing::default();
        let answer: Object<Value> =
            self.write(Method::POST, WHOAMI, "application/json", &review, &needs, &writing).await?;
        let name = answer.value["status"]["userInfo"]["username"].as_str().filter(|name| !name.is_empty());
        name.map(str::to_owned).ok_or_else(|| Error::BadAnswer {
            server: self.server.clone(),
            cause: "it does not say who we are".into(),
        })
    }

    pub(super) fn object<T: serde::de::DeserializeOwned>(&self, body: bytes::Bytes) -> Result<Object<T>> {
        Object::parse(body)
            .map_err(|error| Error::BadAnswer { server: self.server.clone(), cause: error.to_string() })
    }
}

fn spec(record: &Record) -> Value {
    json!({
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.seconds,
        "acquireTime": micro_time(record.acquired),
        "renewTime": micro_time(record.renewed),
        "leaseTransitions": record.transitions,
    })
}

/// The API takes exactly six digits.
fn micro_time(time: Timestamp) -> String {
    format!("{time:.6}")
}

fn needs(verbs: &'static str, at: &Address) -> Needs {
    Needs { verbs, resource: LEASES.name(), namespace: Some(at.namespace.clone()) }
}

#[allow(clippy::needless_pass_by_value)]
pub(super) fn unbuildable(error: http::Error) -> Error {
    Error::usage(format!("this cannot be asked of the API: {error}"))
}
