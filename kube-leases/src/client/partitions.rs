//! Reads which nodes have no heartbeats, and which pods are stranded there.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use super::{Cluster, NODES, Object, PODS, Query, lock, surroundings};
use crate::{
    error::Result,
    rules::{
        assessment::Assessment,
        lease::Lease,
        node::{Node, NodeContact},
        pod::Pod,
        stopped::{Stopped, Whereabouts},
        stranded::{Stranding, stranding},
        surroundings::{HeldBy, Surroundings},
        time::ServerTime,
        workload::{Kind, Workload},
    },
};

/// Which nodes are meant.
#[derive(Clone, Copy, Default)]
pub struct Which<'a> {
    /// The one of this name.
    pub node: Option<&'a str>,
    /// Those that this label selector matches.
    pub labels: Option<&'a str>,
    /// Those that this field selector matches.
    pub fields: Option<&'a str>,
    /// Only the pods in this namespace; `None` for all.
    pub namespace: Option<&'a str>,
}

impl Which<'_> {
    /// The nodes.
    pub fn nodes(&self) -> Query {
        let named = self.node.map(|node| format!("metadata.name={node}"));
        let fields: Vec<&str> = named.as_deref().into_iter().chain(self.fields).collect();
        let fields = (!fields.is_empty()).then(|| fields.join(","));
        Query::new(NODES).select(self.labels, fields.as_deref()).paged()
    }

    /// The pods there.
    pub fn pods(&self) -> Query {
        let fields = self.node.map(|node| format!("spec.nodeName={node}"));
        let pods = Query::new(PODS).select(None, fields.as_deref()).paged();
        Query { namespace: self.namespace.map(str::to_owned), ..pods }
    }

    /// Whether the whole cluster is meant.
    pub fn is_all(&self) -> bool {
        self.namespace.is_none() && self.is_whole()
    }

    /// Whether all nodes are shown.
    pub fn is_whole(&self) -> bool {
        self.node.is_none() && self.sees_all()
    }

    /// Whether all nodes are looked at, so that one that is not among them does not exist.
    pub fn sees_all(&self) -> bool {
        self.labels.is_none() && self.fields.is_none()
    }
}

/// What a look at the cluster has found.
pub struct Found {
    /// The nodes without heartbeats.
    pub partitions: Vec<Partition>,
    /// The names of all nodes that were looked at.
    pub nodes: BTreeSet<String>,
    /// Whether the heartbeats of nodes could be read.
    pub heartbeats_seen: bool,
    /// The pods that were wanted beside the stranded ones.
    pub others: Vec<Object<Pod>>,
}

/// Looks at all nodes, and keeps of all pods those on nodes without heartbeats, and those that
/// are wanted beside them; `bare` if they are not shown whole.
///
/// # Errors
/// If nodes or pods may not be read.
pub async fn read(
    cluster: &Cluster,
    which: &Which<'_>,
    bare: bool,
    wanted: impl Fn(&Pod) -> bool + Send + Sync,
) -> Result<Found> {
    let mut around = Surroundings::default();
    let query = which.nodes().bare(bare);
    let (nodes, ()) =
        tokio::try_join!(cluster.list::<Node>(&query), surroundings::read_leases(cluster, &mut around))?;
    let now = cluster.server_time();
    let names: BTreeSet<String> = nodes.items.iter().map(|node| node.value.metadata.name.clone()).collect();
    let lost: Vec<Object<Node>> =
        nodes.items.into_iter().filter(|node| around.is_lost(&node.value, now)).collect();
    let mut strange: BTreeSet<String> = lost.iter().map(|node| node.value.metadata.name.clone()).collect();

    let missing = Mutex::new(BTreeSet::new());
    let all = which.sees_all().then_some(&names);
    let stranded = |pod: &Pod| {
        let why = stranding(pod, &strange, all);
        if why == Some(Stranding::Missing) {
            lock(&missing).insert(pod.spec.node_name.clone());
        }
        why.is_some()
    };
    let pods = cluster.list_where(&which.pods().bare(bare), |pod: &Pod| stranded(pod) || wanted(pod)).await?;
    let mut missing = std::mem::take(&mut *lock(&missing));
    if !missing.is_empty() {
        // A node may have joined between the two looks.
        let joined = cluster.nodes(None).await?;
        missing.retain(|name| joined.iter().all(|node| node.name != *name));
    }
    strange.extend(missing);
    let (pods, mut others): (Vec<_>, Vec<_>) =
        pods.items.into_iter().partition(|pod| stranding(&pod.value, &strange, None).is_some());
    // What is on a node that has joined is not stranded.
    others.retain(|pod| wanted(&pod.value));
    if !pods.is_empty() {
        let pods: Vec<&Pod> = pods.iter().map(|pod| &*pod.value).collect();
        let mut owners = Surroundings::default();
        tokio::try_join!(
            surroundings::read_storage(cluster, &pods, &mut around),
            surroundings::read_workloads(cluster, &pods, &mut owners)
        )?;
        (around.workloads, around.unread) = (owners.workloads, owners.unread);
    }
    let heartbeats_seen = around.heartbeats.is_some();
    let partitions = partitions(&lost, &pods, &mut around, now);
    Ok(Found { partitions, nodes: names, heartbeats_seen, others })
}

/// The nodes without heartbeats, and the pods that are stranded there.
pub fn partitions(
    lost: &[Object<Node>],
    pods: &[Object<Pod>],
    around: &mut Surroundings,
    now: ServerTime,
) -> Vec<Partition> {
    around.nodes = Some(
        lost.iter().map(|node| (node.value.metadata.name.clone(), node.value.as_ref().clone())).collect(),
    );
    let mut found: BTreeMap<String, Partition> = BTreeMap::new();
    for node in lost {
        let name = node.value.metadata.name.clone();
        found.insert(name.clone(), Partition::new(name, Some(node.clone()), around, now));
    }
    for pod in pods {
        let name = pod.value.spec.node_name.clone();
        let stranded = Stranded { assessment: Assessment::of(&pod.value, around, now), pod: pod.clone() };
        let partition = found.entry(name.clone()).or_insert_with(|| Partition::new(name, None, around, now));
        partition.pods.push(stranded);
    }
    for partition in found.values_mut() {
        partition.pods.sort_by(|a, b| {
            b.assessment
                .risk
                .cmp(&a.assessment.risk)
                .then_with(|| a.pod.value.full_name().cmp(&b.pod.value.full_name()))
        });
    }
    found.into_values().collect()
}

/// A pod on such a node.
#[derive(Clone)]
pub struct Stranded {
    /// The pod.
    pub pod: Object<Pod>,
    /// What there is to say about force-deleting it.
    pub assessment: Assessment,
}

/// A node without heartbeats.
#[derive(Clone)]
pub struct Partition {
    /// Its name.
    pub node: String,
    /// How it is.
    pub contact: NodeContact,
    /// The time of its last heartbeat.
    pub heartbeat: Option<jiff::Timestamp>,
    /// The holder of its maintenance lease.
    pub held_by: Option<HeldBy>,
    /// Its object, if there is one.
    pub object: Option<Object<Node>>,
    /// The pods that are stranded there, the riskiest first.
    pub pods: Vec<Stranded>,
    /// When it was judged.
    pub seen: ServerTime,
}

impl Partition {
    fn new(name: String, object: Option<Object<Node>>, around: &Surroundings, now: ServerTime) -> Self {
        let node = object.as_ref().map(|node| &*node.value);
        let lease = around.heartbeat(&name);
        Self {
            // As force-delete sees it; where that is not known, what its object says. A machine may
            // heartbeat on without its node; unseen, it may be either.
            contact: around
                .contact(&name, now)
                .unwrap_or_else(|| node.map_or(NodeContact::Late, |node| node.contact(lease, now))),
            heartbeat: node.and_then(|node| node.heartbeat(lease)).or(lease.and_then(Lease::heartbeat)),
            held_by: around.held_by(&name, now),
            node: name,
            object,
            pods: Vec::new(),
            seen: now,
        }
    }
}

/// The controllers that were scaled to 0 or suspended, and not brought back; `pods` are those beside the
/// stranded ones.
pub fn stopped<'a>(
    labelled: impl Iterator<Item = (Kind, &'a Workload)>,
    pods: impl Iterator<Item = &'a Pod>,
    partitions: impl Iterator<Item = &'a Partition> + Clone,
) -> Vec<Stopped> {
    // On a node that is marked out of service it has ended.
    let lost = partitions.clone().filter(|partition| partition.contact != NodeContact::Fenced);
    let lost: Vec<_> = lost.map(|partition| (partition.node.as_str(), partition.contact)).collect();
    let stranded = partitions.flat_map(|partition| &partition.pods).map(|stranded| &*stranded.pod.value);
    let pods: Vec<&Pod> = stranded.chain(pods).collect();
    let whereabouts = Whereabouts { pods: &pods, lost: &lost };
    labelled.filter_map(|(kind, workload)| Stopped::of(kind, workload, whereabouts)).collect()
}
