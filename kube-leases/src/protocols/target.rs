//! The nodes that are meant, and all that is known of each before its lease is taken.

use futures::TryStreamExt as _;

use super::concurrent::for_each_in_order;
use crate::{
    client::{Cluster, LEASES, NODES, Object, Query, Remark, single::Address},
    error::{Error, ObjectKind, Result},
    rules::{
        lease::{Lease, Metadata},
        maintenance::{self, MEDIK8S_NAMESPACE},
        time::ServerTime,
    },
};

/// A node, its maintenance lease, and the holder of medik8s' lease.
#[derive(Clone, Debug)]
pub struct NodeTarget {
    /// The node.
    pub node: Metadata,
    /// Its maintenance lease, if there is one.
    pub lease: Option<Object<Lease>>,
    /// The holder of medik8s' lease on it, while that is valid.
    pub medik8s: Option<String>,
}

/// Which nodes: those with these names, or if there are none, those with these labels, or all.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The names of nodes.
    pub names: Vec<String>,
    /// A label selector.
    pub labels: Option<String>,
    /// Nodes that were deleted count too, as long as they have a lease.
    pub deleted_too: bool,
}

/// So many are read each by itself; of more, all are listed.
const FEW: usize = 16;

/// The nodes that are meant, with all that is known of them, by name.
///
/// # Errors
/// If one of those named does not exist, or none has the labels.
pub async fn targets(cluster: &Cluster, which: &Selection) -> Result<Vec<NodeTarget>> {
    let mut names = which.names.clone();
    names.sort();
    names.dedup();
    let targets = match names.len() {
        1..=FEW => match read(cluster, &names, which.deleted_too).await {
            // A user with permission to list them may lack that to get one. A lease of medik8s was listed already.
            Err(refused @ Error::Forbidden { .. }) if !is_of_medik8s(&refused) => {
                match list(cluster, which, &names).await {
                    Err(Error::Forbidden { .. }) => return Err(refused),
                    targets => targets?,
                }
            }
            targets => targets?,
        },
        _ => list(cluster, which, &names).await?,
    };
    let missing: Vec<_> =
        names.iter().filter(|name| targets.iter().all(|target| target.node.name != **name)).collect();
    if !missing.is_empty() {
        let missing = missing.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        let message = format!("there is no node {missing}");
        return Err(Error::NotFound { kind: ObjectKind::Node, message });
    }
    if targets.is_empty() {
        let message = match &which.labels {
            Some(labels) => format!("no node has the labels '{labels}'"),
            None => "this cluster has no nodes".into(),
        };
        return Err(Error::NotFound { kind: ObjectKind::Other, message });
    }
    Ok(targets)
}

fn is_of_medik8s(error: &Error) -> bool {
    matches!(error, Error::Forbidden { needs, .. } if needs.namespace.as_deref() == Some(MEDIK8S_NAMESPACE))
}

/// Those of a few nodes that exist.
async fn read(cluster: &Cluster, names: &[String], deleted_too: bool) -> Result<Vec<NodeTarget>> {
    let read = |name| read_one(cluster, name, deleted_too);
    let targets: Vec<Option<NodeTarget>> =
        for_each_in_order(names.iter().map(String::as_str), read).try_collect().await?;
    Ok(targets.into_iter().flatten().collect())
}

/// Those of the selection, or of many names, that exist, out of a list of all.
async fn list(cluster: &Cluster, which: &Selection, names: &[String]) -> Result<Vec<NodeTarget>> {
    let (leases, medik8s) = (leases(), medik8s_leases());
    let (nodes, leases, mut medik8s) = tokio::try_join!(
        cluster.nodes(which.labels.as_deref()),
        cluster.list::<Lease>(&leases),
        cluster.list::<Lease>(&medik8s),
    )?;
    // Without the permission the list has no version either. Where there was permission before, that is an error.
    if medik8s.resource_version.is_empty() && cluster.has_read_medik8s(nodes.iter()) {
        medik8s = cluster.list(&Query::new(LEASES).namespace(MEDIK8S_NAMESPACE)).await?;
    }
    if !medik8s.resource_version.is_empty() {
        cluster.medik8s_was_read(nodes.iter());
    }
    let now = cluster.server_time();
    let mut targets: Vec<NodeTarget> = nodes
        .into_iter()
        .filter(|node| names.is_empty() || names.contains(&node.name))
        .map(|node| NodeTarget::of(node, &leases.items, &medik8s.items, now))
        .collect();
    if which.deleted_too && which.labels.is_none() {
        let is_missing = |name: &str| targets.iter().all(|target| target.node.name != name);
        let left: Vec<_> = leases
            .items
            .iter()
            .map(|lease| &lease.value.metadata.name)
            .filter(|name| is_missing(name) && (names.is_empty() || names.contains(name)))
            .map(|name| NodeTarget::of(deleted_node(name), &leases.items, &medik8s.items, now))
            .collect();
        targets.extend(left);
    }
    targets.sort_by(|a, b| a.node.name.cmp(&b.node.name));
    Ok(targets)
}

/// A node; `None` if it does not exist, and has left no lease that counts.
async fn read_one(cluster: &Cluster, name: &str, deleted_too: bool) -> Result<Option<NodeTarget>> {
    let at = Address::new(maintenance::NAMESPACE, name);
    let node = async { existing(cluster.node(name).await) };
    let (node, lease, medik8s) = tokio::try_join!(node, cluster.lease(&at), cluster.medik8s_holder(name))?;
    let node = node.or_else(|| (deleted_too && lease.is_some()).then(|| deleted_node(name)));
    Ok(node.map(|node| NodeTarget { node, lease, medik8s }))
}

fn existing(node: Result<Metadata>) -> Result<Option<Metadata>> {
    match node {
        Err(error) if error.is_not_found() => Ok(None),
        node => node.map(Some),
    }
}

/// Those of these nodes that exist, as they are now.
pub(super) async fn nodes_named(cluster: &Cluster, names: &[&str]) -> Result<Vec<Metadata>> {
    if names.len() > FEW {
        return cluster.nodes(None).await;
    }
    let read = |name| async move { existing(cluster.node(name).await) };
    let nodes: Vec<Option<Metadata>> = for_each_in_order(names.iter().copied(), read).try_collect().await?;
    Ok(nodes.into_iter().flatten().collect())
}

impl NodeTarget {
    /// A node with what of these leases is about it.
    pub fn of(node: Metadata, leases: &[Object<Lease>], medik8s: &[Object<Lease>], now: ServerTime) -> Self {
        let find = |leases: &[Object<Lease>], name: &str| {
            leases.iter().find(|lease| lease.value.metadata.name == name).cloned()
        };
        let medik8s = find(medik8s, &maintenance::medik8s_name(&node.name));
        Self {
            lease: find(leases, &node.name),
            medik8s: medik8s
                .and_then(|lease| maintenance::medik8s_holder(&lease.value, now).map(str::to_owned)),
            node,
        }
    }
}

/// All that is left to know of a node that was deleted.
pub fn deleted_node(name: &str) -> Metadata {
    Metadata { name: name.to_owned(), ..Metadata::default() }
}

/// The nodes, with what identifies them.
pub fn nodes() -> Query {
    Query::new(NODES).metadata_only()
}

/// All maintenance leases.
pub fn leases() -> Query {
    Query::new(LEASES).namespace(maintenance::NAMESPACE)
}

/// medik8s' leases, as far as they may be read.
pub fn medik8s_leases() -> Query {
    Query::new(LEASES).namespace(MEDIK8S_NAMESPACE).or_remark(Remark::Medik8sUnseen)
}
