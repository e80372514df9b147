//! Which version of the `LeaseCandidate` API a server serves.
//!
//! The API is off by default in every release so far and has moved through three versions. That
//! discovery lists a version says too little, because the group has a `v1` for leases in any case,
//! and that it does not list one too, because in a cluster where apiservers of several releases
//! serve for each other a server answers for more than its own discovery says. So the resource
//! itself is asked for, the likeliest version first; only whether it has become stable is looked up.

use std::collections::BTreeMap;

use futures::future::try_join_all;
use serde::Deserialize;

use super::{Cluster, Query, Resource};
use crate::{
    error::{Error, Permission, Result},
    rules::{lease::Metadata, skew::Minor},
};

const GROUP: &str = "coordination.k8s.io";

const STABLE: Resource = candidates("v1");
/// What servers with coordinated election serve today.
const LIKELY: Resource = candidates("v1beta1");
/// Where that is not served. The stable version comes once more: a peer may serve it.
const OTHERWISE: [Resource; 3] = [candidates("v1alpha2"), candidates("v1alpha1"), STABLE];

const fn candidates(version: &'static str) -> Resource {
    Resource { group: GROUP, version, plural: "leasecandidates", kind: "LeaseCandidate" }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resources {
    resources: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Release {
    git_version: String,
    emulation_major: String,
    emulation_minor: String,
}

impl Release {
    /// The version that the server behaves as.
    pub(super) fn works_as(&self) -> Option<Minor> {
        let emulated = format!("{}.{}", self.emulation_major, self.emulation_minor);
        Minor::parse(&emulated).or_else(|| Minor::parse(&self.git_version))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Schemas {
    components: Components,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Components {
    schemas: BTreeMap<String, Schema>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Schema {
    properties: BTreeMap<String, serde_json::Value>,
}

/// Only that it is an object matters here.
#[derive(Deserialize)]
struct Any {
    #[serde(default, rename = "metadata")]
    _metadata: Metadata,
}

impl Cluster {
    /// The `LeaseCandidate` resource in the best version that this server serves, or `None` where
    /// coordinated leader election is off. For a user with permission in one namespace only, that one is asked.
    pub async fn lease_candidates(&self, namespace: Option<&str>) -> Result<Option<Resource>> {
        let probe = |resource| async move {
            let query = Query { namespace: namespace.map(str::to_owned), ..Query::new(resource).limit(1) };
            self.list::<Any>(&query).await
        };
        Ok(self.in_best_version(probe).await?.map(|(resource, _)| resource))
    }

    /// The same by the server's discovery, also for users without permission to list them.
    pub async fn discovered_candidates(&self) -> Result<Option<Resource>> {
        let versions = [STABLE, LIKELY, OTHERWISE[0], OTHERWISE[1]];
        let served = try_join_all(versions.iter().map(|resource| self.serves(*resource))).await?;
        Ok(versions.into_iter().zip(served).find_map(|(resource, served)| served.then_some(resource)))
    }

    /// What `ask` gets from the best version of the resource that this server serves.
    pub(super) async fn in_best_version<T, F: Future<Output = Result<T>>>(
        &self,
        ask: impl Fn(Resource) -> F,
    ) -> Result<Option<(Resource, T)>> {
        let (stable, likely) = tokio::join!(self.serves_stable_candidates(), ask(LIKELY));
        let order = if stable? { &[STABLE][..] } else { &OTHERWISE };
        match likely {
            Ok(answer) if order != [STABLE] => return Ok(Some((LIKELY, answer))),
            Ok(_) | Err(Error::NotServed { .. }) => {}
            Err(error) => return Err(error),
        }
        for resource in order {
            match ask(*resource).await {
                Ok(answer) => return Ok(Some((*resource, answer))),
                Err(Error::NotServed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    async fn serves_stable_candidates(&self) -> Result<bool> {
        match self.serves(STABLE).await {
            // A user without permission to read the discovery may still use what it would list.
            Err(Error::Forbidden { .. }) => Ok(false),
            served => served,
        }
    }

    /// Whether the server's own discovery lists a resource.
    pub async fn serves(&self, resource: Resource) -> Result<bool> {
        let path = format!("/apis/{}/{}", resource.group, resource.version);
        match self.read::<Resources>(&path).await {
            Ok(listed) => Ok(listed.resources.iter().any(|listed| listed.name == resource.plural)),
            Err(Error::NotServed { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The server's release, such as `v1.37.1`.
    pub async fn version(&self) -> Result<String> {
        Ok(self.release().await?.git_version)
    }

    pub(super) async fn release(&self) -> Result<Release> {
        let release = self.read::<Release>("/version").await?;
        if release.git_version.is_empty() {
            return Err(Error::NotKubernetes { server: self.server.clone() });
        }
        Ok(release)
    }

    /// Whether the spec of a resource has a field, by the schema that the server publishes.
    pub async fn schema_has(&self, resource: Resource, field: &str) -> Result<bool> {
        let Resource { group, version, kind, .. } = resource;
        let schemas: Schemas = self.read(&format!("/openapi/v3/apis/{group}/{version}")).await?;
        let spec = format!("{kind}Spec");
        let is_spec = |name: &str| name.rsplit('.').next() == Some(&spec);
        let found = schemas.components.schemas.iter().find(|(name, _)| is_spec(name));
        Ok(found.is_some_and(|(_, schema)| schema.properties.contains_key(field)))
    }

    /// Something that is no object of any resource.
    async fn read<T: serde::de::DeserializeOwned + Default>(&self, path: &str) -> Result<T> {
        let request = http::Request::get(path).body(Vec::new()).map_err(super::single::unbuildable)?;
        let needs = Permission { verbs: "get", resource: path.to_owned(), namespace: None };
        let body = self.call(&request, &needs).await?;
        Ok(serde_json::from_slice(&body).unwrap_or_default())
    }
}
