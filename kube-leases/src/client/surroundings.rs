//! Reads what the risk of force-deleting a pod is judged by, all of it at once.
//!
//! What may not be read is left out, and the rule counts it as a risk.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::try_join_all;

use super::{
    Cluster, LEASES, NODES, Object, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, POD_DISRUPTION_BUDGETS,
    Query, VOLUME_ATTACHMENTS,
    pods::workloads,
    single::{Address, Addressed},
};
use crate::{
    error::{Error, Result},
    rules::{
        leader::is_leader_election,
        lease::Lease,
        maintenance,
        node::{HEARTBEATS, Node},
        pod::{Pod, Volume, VolumeLocation},
        stopped,
        storage::{PersistentVolumeClaim, PodDisruptionBudget, VolumeAttachment},
        surroundings::Surroundings,
        workload::{Kind, Workload},
    },
};

/// What was read, or `None` without permission, or where it is not served.
fn if_permitted<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Error::Forbidden { .. } | Error::NotServed { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn values<T: Clone>(objects: Vec<Object<T>>) -> Vec<T> {
    objects.into_iter().map(|object| T::clone(&object.value)).collect()
}

fn by_name<T: Clone + Addressed>(objects: Vec<Object<T>>) -> BTreeMap<String, T> {
    let named = |object: T| (object.address().name, object);
    values(objects).into_iter().map(named).collect()
}

/// `namespace/name`.
fn full(at: &Address) -> String {
    format!("{}/{}", at.namespace, at.name)
}

/// All leases: those of one namespace tell of nodes, of another of maintenance, the rest of leaders.
pub(crate) fn leases() -> Query {
    Query::new(LEASES).paged().bare(true)
}

/// Tells the leases of a cluster apart.
pub fn sort_leases(leases: impl IntoIterator<Item = Lease>, around: &mut Surroundings) {
    let (mut heartbeats, mut maintained, mut leaders) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    for lease in leases {
        let name = lease.metadata.name.clone();
        match lease.metadata.namespace.as_str() {
            HEARTBEATS => drop(heartbeats.insert(name, lease)),
            maintenance::NAMESPACE => drop(maintained.insert(name, lease)),
            _ if is_leader_election(&lease) => leaders.push(lease),
            _ => {}
        }
    }
    around.heartbeats = Some(heartbeats);
    around.maintenance = Some(maintained);
    around.leaders = Some(leaders);
}

/// Reads the leases, or what may be read of them.
pub(crate) async fn read_leases(cluster: &Cluster, around: &mut Surroundings) -> Result<()> {
    if let Some(all) = if_permitted(cluster.list::<Lease>(&leases()).await)? {
        sort_leases(values(all.items), around);
        return Ok(());
    }
    let of = async |namespace: &str| {
        let list = if_permitted(cluster.list::<Lease>(&leases().namespace(namespace)).await)?;
        let named = |lease: Lease| (lease.metadata.name.clone(), lease);
        Ok::<_, Error>(list.map(|list| values(list.items).into_iter().map(named).collect()))
    };
    (around.heartbeats, around.maintenance) = tokio::try_join!(of(HEARTBEATS), of(maintenance::NAMESPACE))?;
    Ok(())
}

/// The claims that pods use.
pub(crate) fn claims_of<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> BTreeSet<Address> {
    let of = |pod: &'a Pod| {
        let claim = |volume: &Volume| match volume.source(&pod.metadata.name) {
            Some(VolumeLocation::Claim(name)) => Some(Address::new(&pod.metadata.namespace, name)),
            _ => None,
        };
        pod.spec.volumes.iter().filter_map(claim).collect::<Vec<_>>()
    };
    pods.into_iter().flat_map(of).collect()
}

/// Reads the storage of pods and the budgets that concern them.
pub(crate) async fn read_storage(cluster: &Cluster, pods: &[&Pod], around: &mut Surroundings) -> Result<()> {
    let claims = claims_of(pods.iter().copied());
    let storage = async {
        let Some(claims) =
            if_permitted(cluster.get_many::<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS, &claims).await)?
        else {
            return Ok((None, None));
        };
        let bound = claims.iter().map(|claim| Address::new("", &claim.value.spec.volume_name));
        let bound: BTreeSet<_> = bound.filter(|at| !at.name.is_empty()).collect();
        let volumes = if_permitted(cluster.get_many(PERSISTENT_VOLUMES, &bound).await)?.map(by_name);
        let claims = values(claims).into_iter().map(|claim| (full(&claim.address()), claim)).collect();
        Ok((Some(claims), volumes))
    };
    let attachments = async {
        if claims.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let nodes: BTreeSet<&str> = pods.iter().map(|pod| pod.spec.node_name.as_str()).collect();
        let concerned = |attachment: &VolumeAttachment| nodes.contains(attachment.spec.node_name.as_str());
        let list = cluster.list_where(&Query::new(VOLUME_ATTACHMENTS).paged().bare(true), concerned).await;
        Ok(if_permitted(list)?.map(|list| values(list.items)))
    };
    let namespaces: BTreeSet<&str> = pods.iter().map(|pod| pod.metadata.namespace.as_str()).collect();
    let budgets = async {
        let mut query = Query::new(POD_DISRUPTION_BUDGETS).paged().bare(true);
        if let (Some(one), 1) = (namespaces.first(), namespaces.len()) {
            query = query.namespace(*one);
        }
        Ok::<_, Error>(
            if_permitted(cluster.list::<PodDisruptionBudget>(&query).await)?.map(|list| values(list.items)),
        )
    };
    let ((claims, volumes), attachments, budgets) = tokio::try_join!(storage, attachments, budgets)?;
    (around.claims, around.volumes) = (claims, volumes);
    (around.attachments, around.budgets) = (attachments, budgets);
    Ok(())
}

/// Reads the controllers behind pods: their owners, and the Deployments and `CronJob`s behind those.
pub(crate) async fn read_workloads(
    cluster: &Cluster,
    pods: &[&Pod],
    around: &mut Surroundings,
) -> Result<()> {
    let mut wanted: BTreeMap<Kind, BTreeSet<Address>> = BTreeMap::new();
    for pod in pods {
        for owner in &pod.metadata.owner_references {
            if let Some(kind) = Kind::of(owner) {
                wanted.entry(kind).or_default().insert(Address::new(&pod.metadata.namespace, &owner.name));
            }
        }
    }
    while !wanted.is_empty() {
        let of = async |(kind, at): (Kind, BTreeSet<Address>)| {
            Ok::<_, Error>((kind, if_permitted(cluster.get_many::<Workload>(workloads(kind), &at).await)?))
        };
        let found = try_join_all(std::mem::take(&mut wanted).into_iter().map(of)).await?;
        for (kind, found) in found {
            let Some(found) = found else {
                around.unread.insert(kind);
                continue;
            };
            for workload in values(found) {
                for owner in &workload.metadata.owner_references {
                    let Some(above) = Kind::of(owner).filter(|above| kind.above() == Some(*above)) else {
                        continue;
                    };
                    let at = Address::new(&workload.metadata.namespace, &owner.name);
                    wanted.entry(above).or_default().insert(at);
                }
                around.workloads.insert((kind, full(&workload.address())), workload);
            }
        }
    }
    Ok(())
}

/// The controllers that carry the label of those that a printed line stopped, and the kinds that
/// may not be listed.
pub async fn stopped_controllers(cluster: &Cluster) -> Result<(Vec<(Kind, Workload)>, Vec<Kind>)> {
    let of = async |kind: Kind| {
        let query = Query::new(workloads(kind)).select(Some(stopped::label(kind)), None).paged().bare(true);
        Ok::<_, Error>((kind, if_permitted(cluster.list::<Workload>(&query).await)?))
    };
    let (mut all, mut unread) = (Vec::new(), Vec::new());
    for (kind, found) in try_join_all(stopped::KINDS.map(of)).await? {
        match found {
            Some(list) => all.extend(values(list.items).into_iter().map(|workload| (kind, workload))),
            None => unread.push(kind),
        }
    }
    Ok((all, unread))
}

/// Reads all that these pods are judged by.
pub async fn read(cluster: &Cluster, pods: &[&Pod]) -> Result<Surroundings> {
    let nodes = pods.iter().filter(|pod| pod.is_scheduled()).map(|pod| Address::new("", &pod.spec.node_name));
    let nodes: BTreeSet<_> = nodes.collect();
    let mut around = Surroundings::default();
    let (mut leases, mut owners) = (Surroundings::default(), Surroundings::default());
    let nodes = async { if_permitted(cluster.get_many(NODES, &nodes).await) };
    let (nodes, (), (), ()) = tokio::try_join!(
        nodes,
        read_leases(cluster, &mut leases),
        read_storage(cluster, pods, &mut around),
        read_workloads(cluster, pods, &mut owners)
    )?;
    Ok(Surroundings {
        nodes: nodes.map(by_name),
        heartbeats: leases.heartbeats,
        maintenance: leases.maintenance,
        leaders: leases.leaders,
        workloads: owners.workloads,
        unread: owners.unread,
        ..around
    })
}

/// The same, of all pods of a node: with what is attached to it beside the volumes of those.
pub async fn read_on_node(cluster: &Cluster, node: &str, pods: &[&Pod]) -> Result<Surroundings> {
    // Where any of them has a claim, they are listed for that.
    let listed = !claims_of(pods.iter().copied()).is_empty();
    let attached = async {
        if listed {
            return Ok(None);
        }
        let is_there = |attachment: &VolumeAttachment| attachment.spec.node_name == node;
        let list = cluster.list_where(&Query::new(VOLUME_ATTACHMENTS).paged().bare(true), is_there).await;
        Ok(if_permitted(list)?.map(|list| values(list.items)))
    };
    let (around, attached) = tokio::try_join!(read(cluster, pods), attached)?;
    let attachments = if listed { around.attachments } else { attached };
    Ok(Surroundings { attachments, ..around })
}

/// Looks once more, as cheaply as that can be done, at what a pod is judged by and changes quickly: its
/// node, its disruption budgets, and the controllers behind it with their replicas.
pub(crate) async fn refresh(cluster: &Cluster, pod: &Pod, around: &mut Surroundings) -> Result<()> {
    let node = pod.spec.node_name.as_str();
    if node.is_empty() {
        return Ok(());
    }
    let budgets = Query::new(POD_DISRUPTION_BUDGETS).namespace(&pod.metadata.namespace).paged().bare(true);
    let budgets = async { if_permitted(cluster.list::<PodDisruptionBudget>(&budgets).await) };
    let object = async { if_permitted(cluster.get::<Node>(NODES, &Address::new("", node)).await) };
    // Listed, as before: permission to list does not bring permission to get.
    let named = leases().namespace(HEARTBEATS).select(None, Some(&format!("metadata.name={node}")));
    let heartbeat = async { if_permitted(cluster.list::<Lease>(&named).await) };
    let (mut owners, pods) = (Surroundings::default(), [pod]);
    let owners_read = read_workloads(cluster, &pods, &mut owners);
    let (object, heartbeat, budgets, ()) = tokio::try_join!(object, heartbeat, budgets, owners_read)?;
    for owner in &pod.metadata.owner_references {
        let Some(kind) = Kind::of(owner) else { continue };
        let at = (kind, format!("{}/{}", pod.metadata.namespace, owner.name));
        if !owners.workloads.contains_key(&at) {
            around.workloads.remove(&at);
        }
    }
    for (at, mut workload) in owners.workloads {
        // As for the budgets below: what was deleted a moment ago may be counted as ready yet.
        if let Some(known) = around.workloads.get(&at) {
            let status = &mut workload.status;
            status.ready_replicas = status.ready_replicas.min(known.status.ready_replicas);
        }
        around.workloads.insert(at, workload);
    }
    around.unread.extend(owners.unread);
    around.budgets = budgets.map(|list| {
        let mut budgets = values(list.items);
        // Their controller may not have counted yet what was deleted a moment ago, and we have.
        for budget in &mut budgets {
            let counted =
                around.budgets.iter().flatten().find(|known| known.metadata.uid == budget.metadata.uid);
            if let Some(known) = counted {
                let status = &mut budget.status;
                status.disruptions_allowed = status.disruptions_allowed.min(known.status.disruptions_allowed);
                status.current_healthy = status.current_healthy.min(known.status.current_healthy);
            }
        }
        budgets
    });
    match (object, &mut around.nodes) {
        (Some(Some(object)), Some(nodes)) => drop(nodes.insert(node.to_owned(), Node::clone(&object.value))),
        (Some(None), Some(nodes)) => drop(nodes.remove(node)),
        // What could be seen and cannot be any more is not known.
        (None, nodes) => *nodes = None,
        (_, None) => {}
    }
    match (heartbeat, &mut around.heartbeats) {
        (Some(list), Some(heartbeats)) => {
            heartbeats.remove(node);
            heartbeats
                .extend(values(list.items).into_iter().map(|lease| (lease.metadata.name.clone(), lease)));
        }
        (None, heartbeats) => *heartbeats = None,
        (_, None) => {}
    }
    Ok(())
}

/// What a watch has to follow beside nodes and pods, as far as it may be read.
pub async fn watchable(cluster: &Cluster) -> Result<Vec<Query>> {
    let try_one = async |query: Query| {
        let allowed = if_permitted(cluster.list::<serde_json::Value>(&query.clone().limit(1)).await)?;
        Ok::<_, Error>(allowed.map(|_| query.paged().bare(true)))
    };
    let all =
        [LEASES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, VOLUME_ATTACHMENTS, POD_DISRUPTION_BUDGETS]
            .into_iter()
            .chain(Kind::ALL.map(workloads));
    let all = all.map(Query::new);
    let mut queries: Vec<Query> = try_join_all(all.map(try_one)).await?.into_iter().flatten().collect();
    if queries.iter().all(|query| query.resource != LEASES) {
        let some = [HEARTBEATS, maintenance::NAMESPACE].map(|of| Query::new(LEASES).namespace(of));
        queries.extend(try_join_all(some.map(try_one)).await?.into_iter().flatten());
    }
    Ok(queries)
}
