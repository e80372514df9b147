//! Which resources we read, and how a list of them is asked for.

use http::{HeaderValue, Request, header};
use kube::core::{
    params::{ListParams, WatchParams},
    request,
};

use super::{Cluster, List, Readable, Remark, lock};
use crate::error::{Error, Permission, Result};

/// A kind of object, as its URL names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The name in a URL.
    pub plural: &'static str,
    /// The kind of its objects.
    pub kind: &'static str,
}

/// `leases`.
pub const LEASES: Resource =
    Resource { group: "coordination.k8s.io", version: "v1", plural: "leases", kind: "Lease" };

/// `nodes`.
pub const NODES: Resource = Resource { group: "", version: "v1", plural: "nodes", kind: "Node" };

/// `namespaces`.
pub const NAMESPACES: Resource =
    Resource { group: "", version: "v1", plural: "namespaces", kind: "Namespace" };

/// `pods`.
pub const PODS: Resource = Resource { group: "", version: "v1", plural: "pods", kind: "Pod" };

/// `events`.
pub const EVENTS: Resource = Resource { group: "", version: "v1", plural: "events", kind: "Event" };

/// `persistentvolumeclaims`.
pub const PERSISTENT_VOLUME_CLAIMS: Resource =
    Resource { group: "", version: "v1", plural: "persistentvolumeclaims", kind: "PersistentVolumeClaim" };

/// `persistentvolumes`.
pub const PERSISTENT_VOLUMES: Resource =
    Resource { group: "", version: "v1", plural: "persistentvolumes", kind: "PersistentVolume" };

/// `volumeattachments`.
pub const VOLUME_ATTACHMENTS: Resource = Resource {
    group: "storage.k8s.io",
    version: "v1",
    plural: "volumeattachments",
    kind: "VolumeAttachment",
};

/// `poddisruptionbudgets`.
pub const POD_DISRUPTION_BUDGETS: Resource =
    Resource { group: "policy", version: "v1", plural: "poddisruptionbudgets", kind: "PodDisruptionBudget" };

/// `replicasets`.
pub const REPLICA_SETS: Resource =
    Resource { group: "apps", version: "v1", plural: "replicasets", kind: "ReplicaSet" };

/// `deployments`.
pub const DEPLOYMENTS: Resource =
    Resource { group: "apps", version: "v1", plural: "deployments", kind: "Deployment" };

/// `statefulsets`.
pub const STATEFUL_SETS: Resource =
    Resource { group: "apps", version: "v1", plural: "statefulsets", kind: "StatefulSet" };

/// `daemonsets`.
pub const DAEMON_SETS: Resource =
    Resource { group: "apps", version: "v1", plural: "daemonsets", kind: "DaemonSet" };

/// `jobs`.
pub const JOBS: Resource = Resource { group: "batch", version: "v1", plural: "jobs", kind: "Job" };

/// `cronjobs`.
pub const CRON_JOBS: Resource =
    Resource { group: "batch", version: "v1", plural: "cronjobs", kind: "CronJob" };

impl Resource {
    /// `plural.group`, as kubectl and RBAC name it.
    pub fn name(self) -> String {
        match self.group {
            "" => self.plural.to_owned(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// As objects of it name it.
    pub fn api_version(self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    pub(super) fn path(self, namespace: Option<&str>) -> String {
        let Self { group, version, plural, .. } = self;
        let root =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        match namespace {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
            None => format!("{root}/{plural}"),
        }
    }
}

/// Some of the objects of a resource.
#[derive(Clone, Debug)]
pub struct Query {
    /// The resource.
    pub resource: Resource,
    /// `None` for all namespaces.
    pub namespace: Option<String>,
    /// A label selector.
    pub labels: Option<String>,
    /// A field selector.
    pub fields: Option<String>,
    /// At most this many.
    pub limit: Option<u32>,
    /// Only the metadata of each, which is all that some need of large objects.
    pub metadata_only: bool,
    /// On 403: an empty list.
    pub optional: bool,
    /// What is remarked then.
    pub remark: Option<Remark>,
    /// In pages of this many, so that a large list never is in memory as a whole.
    pub page: Option<u32>,
    /// Without the text of each object: what is shown of them is derived.
    pub bare: bool,
}

/// As many as kubectl asks for at once.
const PAGE: u32 = 500;

impl Query {
    /// All objects of a resource.
    pub fn new(resource: Resource) -> Self {
        Self {
            resource,
            namespace: None,
            labels: None,
            fields: None,
            limit: None,
            metadata_only: false,
            optional: false,
            remark: None,
            page: None,
            bare: false,
        }
    }

    /// In this namespace.
    #[must_use]
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..self }
    }

    /// Narrows it by label and field selectors, as `-l` and `--field-selector` give them.
    #[must_use]
    pub fn select(self, labels: Option<&str>, fields: Option<&str>) -> Self {
        Self { labels: labels.map(str::to_owned), fields: fields.map(str::to_owned), ..self }
    }

    /// At most this many.
    #[must_use]
    pub fn limit(self, limit: u32) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// Only the metadata.
    #[must_use]
    pub fn metadata_only(self) -> Self {
        Self { metadata_only: true, ..self }
    }

    /// Where reading is not allowed, an empty list.
    #[must_use]
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// Where reading is not allowed, an empty list and this remark.
    #[must_use]
    pub fn or_remark(self, remark: Remark) -> Self {
        Self { optional: true, remark: Some(remark), ..self }
    }

    /// In pages.
    #[must_use]
    pub fn paged(self) -> Self {
        Self { page: Some(PAGE), ..self }
    }

    /// Without the text of each object.
    #[must_use]
    pub fn bare(self, bare: bool) -> Self {
        Self { bare, ..self }
    }

    fn accept(&self, request: &mut Request<Vec<u8>>) {
        if self.metadata_only {
            const METADATA: &str =
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
            const WATCHED: &str =
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
            let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let accept = HeaderValue::from_static(if watch { WATCHED } else { METADATA });
            request.headers_mut().insert(header::ACCEPT, accept);
        }
    }

    pub(super) fn needs(&self, verbs: &'static str) -> Permission {
        Permission { verbs, resource: self.resource.name(), namespace: self.namespace.clone() }
    }

    fn list_request(&self, after: Option<String>) -> Result<Request<Vec<u8>>, request::Error> {
        request::Request::new(self.resource.path(self.namespace.as_deref())).list(&ListParams {
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
            limit: self.page.or(self.limit),
            continue_token: after,
            ..ListParams::default()
        })
    }

    fn watch_request(&self, version: &str) -> Result<Request<Vec<u8>>, request::Error> {
        let params = WatchParams {
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
            bookmarks: true,
            ..WatchParams::default()
        };
        request::Request::new(self.resource.path(self.namespace.as_deref())).watch(&params, version)
    }
}

impl Cluster {
    /// Lists objects, in one request or in pages.
    pub async fn list<T: Readable>(&self, query: &Query) -> Result<List<T>> {
        self.list_where(query, |_| true).await
    }

    /// Lists those objects that `keep` wants; nothing of the others stays in memory.
    pub async fn list_where<T: Readable>(&self, query: &Query, keep: impl Fn(&T) -> bool) -> Result<List<T>> {
        match self.pages(query, &keep).await {
            // The list went on for so long that its beginning was forgotten: once more.
            Err(Error::Api { code: 410, .. }) if query.page.is_some() => self.pages(query, &keep).await,
            Err(error @ Error::Forbidden { .. }) => {
                if !query.optional {
                    return Err(error);
                }
                query.remark.iter().cloned().for_each(|remark| self.remark(remark));
                Ok(List::default())
            }
            list => list,
        }
    }

    async fn pages<T: Readable>(&self, query: &Query, keep: &impl Fn(&T) -> bool) -> Result<List<T>> {
        let mut list = List::default();
        let mut after = None;
        loop {
            let mut request = query.list_request(after).map_err(|error| unbuildable(&error))?;
            query.accept(&mut request);
            let body = self.call(&request, &query.needs("list")).await?;
            let next = list.add(query, &body, keep);
            after = next.map_err(|error| Error::BadAnswer {
                server: self.server.clone(),
                cause: error.to_string(),
            })?;
            if after.is_none() || query.page.is_none() {
                lock(&self.listed).insert((query.resource.name(), query.namespace.clone()));
                return Ok(list);
            }
        }
    }

    /// Whether such objects could be listed before, where `query` asks for them or everywhere.
    pub(super) fn has_listed(&self, query: &Query) -> bool {
        let listed = lock(&self.listed);
        let within = |namespace: Option<String>| listed.contains(&(query.resource.name(), namespace));
        within(query.namespace.clone()) || within(None)
    }

    /// Opens a watch from a resource version on; its events are the lines of the body.
    pub(super) async fn open_watch(
        &self,
        query: &Query,
        version: &str,
    ) -> Result<http::Response<kube::client::Body>> {
        let mut request = query.watch_request(version).map_err(|error| unbuildable(&error))?;
        query.accept(&mut request);
        self.open(&request, &query.needs("list,watch")).await
    }
}

fn unbuildable(error: &request::Error) -> Error {
    Error::Invalid { message: format!("this cannot be asked of the API: {error}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_shape_that_kubectl_would_send() {
        let query =
            Query::new(LEASES).namespace("kube-system").select(Some("a=b,c!=d"), Some("metadata.name=x"));
        assert_eq!(
            query.list_request(None).unwrap().uri(),
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?&fieldSelector=metadata.name%3Dx&labelSelector=a%3Db%2Cc%21%3Dd"
        );
        let paged = Query::new(PODS).paged().list_request(Some("abc".into())).unwrap();
        assert_eq!(paged.uri(), "/api/v1/pods?&limit=500&continue=abc");
        let watch = Query::new(LEASES).watch_request("42").unwrap();
        let uri = watch.uri().to_string();
        assert!(uri.starts_with("/apis/coordination.k8s.io/v1/leases?"), "{uri}");
        for part in ["watch=true", "resourceVersion=42", "allowWatchBookmarks=true"] {
            assert!(uri.contains(part), "{uri} lacks {part}");
        }
    }

    #[test]
    fn the_core_group_has_no_name() {
        assert_eq!(NODES.path(None), "/api/v1/nodes");
        assert_eq!(NODES.name(), "nodes");
    }
}
