//! Nodes, of which only the metadata is of interest here.

use http::{Request, header};
use serde::Deserialize;

use super::{
    Cluster, NODES, Query,
    single::{Address, unbuildable},
};
use crate::{
    error::{Error, ObjectKind, Permission, Result},
    rules::lease::Metadata,
};

#[derive(Deserialize)]
struct NodeObject {
    metadata: Metadata,
}

impl Cluster {
    /// A node by name.
    pub async fn node(&self, name: &str) -> Result<Metadata> {
        let Ok(path) = Address::new("", name).path(NODES) else { return Err(missing(name)) };
        let request = Request::get(path)
            .header(
                header::ACCEPT,
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
            )
            .body(Vec::new())
            .map_err(unbuildable)?;
        let needs = Permission { verbs: "get", resource: NODES.name(), namespace: None };
        match self.call(&request, &needs).await {
            Ok(body) => Ok(self.object::<NodeObject>(body)?.value.metadata.clone()),
            Err(error) if error.is_not_found() => Err(missing(name)),
            // A user with permission to list nodes may lack that to get one.
            Err(error @ Error::Forbidden { .. }) => {
                let by_name = format!("metadata.name={name}");
                match self.list_nodes(None, Some(&by_name)).await {
                    Ok(nodes) => nodes.into_iter().next().ok_or_else(|| missing(name)),
                    Err(Error::Forbidden { .. }) => Err(error),
                    Err(error) => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// All nodes, or those with these labels.
    pub async fn nodes(&self, labels: Option<&str>) -> Result<Vec<Metadata>> {
        self.list_nodes(labels, None).await
    }

    async fn list_nodes(&self, labels: Option<&str>, fields: Option<&str>) -> Result<Vec<Metadata>> {
        let query = Query::new(NODES).select(labels, fields).metadata_only();
        let list = self.list::<NodeObject>(&query).await?;
        Ok(list.items.iter().map(|node| node.value.metadata.clone()).collect())
    }
}

fn missing(name: &str) -> Error {
    Error::NotFound { kind: ObjectKind::Node, message: format!("there is no node '{name}'") }
}
