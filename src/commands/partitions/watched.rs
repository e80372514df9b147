//! Following the nodes without heartbeats, and what the risk of their pods is judged by.

use std::collections::{BTreeMap, BTreeSet};

use super::{mass_silence, row::PartitionRow, told};
use crate::{commands::watching::View, output::words::count};
use kube_leases::{
    client::{
        LEASES, NODES, Object, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, POD_DISRUPTION_BUDGETS, PODS,
        Query, Readable, Resource, VOLUME_ATTACHMENTS,
        partitions::{self, Which},
        pods::workloads,
        surroundings,
    },
    rules::{
        lease::Lease,
        maintenance,
        node::{HEARTBEATS, Node},
        pod::Pod,
        storage::{PersistentVolume, PersistentVolumeClaim, PodDisruptionBudget, VolumeAttachment},
        stranded::stranding,
        surroundings::Surroundings,
        time::ServerTime,
        workload::{self, Workload},
    },
};

/// An object of any of the kinds that a watch follows.
#[derive(Clone)]
pub enum Followed {
    Node(Node),
    Pod(Box<Pod>),
    Lease(Lease),
    Claim(PersistentVolumeClaim),
    Volume(PersistentVolume),
    Attachment(VolumeAttachment),
    Budget(PodDisruptionBudget),
    Workload(workload::Kind, Box<Workload>),
}

/// The kind of controllers that a resource has.
fn workload_kind(resource: Resource) -> Option<workload::Kind> {
    workload::Kind::ALL.into_iter().find(|kind| workloads(*kind) == resource)
}

impl Readable for Followed {
    fn read(resource: Resource, text: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(match resource {
            NODES => Self::Node(serde_json::from_slice(text)?),
            PODS => Self::Pod(serde_json::from_slice(text)?),
            LEASES => Self::Lease(serde_json::from_slice(text)?),
            PERSISTENT_VOLUME_CLAIMS => Self::Claim(serde_json::from_slice(text)?),
            PERSISTENT_VOLUMES => Self::Volume(serde_json::from_slice(text)?),
            VOLUME_ATTACHMENTS => Self::Attachment(serde_json::from_slice(text)?),
            _ => match workload_kind(resource) {
                Some(kind) => Self::Workload(kind, serde_json::from_slice(text)?),
                None => Self::Budget(serde_json::from_slice(text)?),
            },
        })
    }
}

pub struct Watched<'a> {
    pub which: Which<'a>,
    /// Of what kind each source is, and in which namespace if not in all.
    pub followed: Vec<(Resource, Option<String>)>,
    /// What printed commands take to reach the cluster.
    pub flags: &'a str,
}

impl Watched<'_> {
    pub fn follows_leases_of(&self, namespace: &str) -> bool {
        let has = |of: &Option<String>| of.as_deref().is_none_or(|of| of == namespace);
        self.followed.iter().any(|(resource, of)| *resource == LEASES && has(of))
    }

    fn around(&self, sources: &[Vec<Object<Followed>>]) -> Surroundings {
        let mut around = Surroundings::default();
        let mut leases = Vec::new();
        // What is followed and empty is known to be empty.
        for (resource, _) in &self.followed {
            match *resource {
                PERSISTENT_VOLUME_CLAIMS => around.claims = Some(BTreeMap::new()),
                PERSISTENT_VOLUMES => around.volumes = Some(BTreeMap::new()),
                VOLUME_ATTACHMENTS => around.attachments = Some(Vec::new()),
                POD_DISRUPTION_BUDGETS => around.budgets = Some(Vec::new()),
                _ => {}
            }
        }
        for object in sources.iter().flatten() {
            let key = || Self::key(&object.value);
            match &*object.value {
                Followed::Lease(lease) => leases.push(lease.clone()),
                Followed::Claim(claim) => {
                    around.claims.get_or_insert_default().insert(key(), claim.clone());
                }
                Followed::Volume(volume) => {
                    let name = volume.metadata.name.clone();
                    around.volumes.get_or_insert_default().insert(name, volume.clone());
                }
                Followed::Attachment(attachment) => {
                    around.attachments.get_or_insert_default().push(attachment.clone());
                }
                Followed::Budget(budget) => around.budgets.get_or_insert_default().push(budget.clone()),
                Followed::Workload(kind, workload) => {
                    around.workloads.insert((*kind, key()), workload.as_ref().clone());
                }
                Followed::Node(_) | Followed::Pod(_) => {}
            }
        }
        surroundings::sort_leases(leases, &mut around);
        let follows = |kind: &workload::Kind| self.followed.iter().any(|(of, _)| *of == workloads(*kind));
        around.unread = workload::Kind::ALL.into_iter().filter(|kind| !follows(kind)).collect();
        // And what is not followed is not known.
        if !self.follows_leases_of(HEARTBEATS) {
            around.heartbeats = None;
        }
        if !self.follows_leases_of(maintenance::NAMESPACE) {
            around.maintenance = None;
        }
        if !self.followed.contains(&(LEASES, None)) {
            around.leaders = None;
        }
        around
    }
}

impl View for Watched<'_> {
    type Object = Followed;
    type Item = PartitionRow;

    fn key(object: &Followed) -> String {
        let metadata = match object {
            Followed::Pod(pod) => return pod.full_name(),
            Followed::Node(node) => &node.metadata,
            Followed::Lease(lease) => &lease.metadata,
            Followed::Claim(claim) => &claim.metadata,
            Followed::Volume(volume) => &volume.metadata,
            Followed::Attachment(attachment) => &attachment.metadata,
            Followed::Budget(budget) => &budget.metadata,
            Followed::Workload(_, workload) => &workload.metadata,
        };
        format!("{}/{}", metadata.namespace, metadata.name)
    }

    /// The heartbeats are. That a list of budgets takes long does not make a silent node one that is only late.
    fn is_timed(&self, query: &Query) -> bool {
        query.resource == LEASES
    }

    fn items(&self, sources: &[Vec<Object<Followed>>], now: ServerTime) -> Vec<PartitionRow> {
        let [nodes, pods, ..] = sources else { return Vec::new() };
        let mut around = self.around(sources);
        let nodes: Vec<Object<Node>> = nodes
            .iter()
            .filter_map(|object| {
                if let Followed::Node(node) = &*object.value { Some(object.with(node.clone())) } else { None }
            })
            .collect();
        let name = |node: &Object<Node>| node.value.metadata.name.clone();
        let names: BTreeSet<String> = nodes.iter().map(name).collect();
        let lost: Vec<Object<Node>> =
            nodes.iter().filter(|node| around.is_lost(&node.value, now)).cloned().collect();
        let strange: BTreeSet<String> = lost.iter().map(name).collect();
        let all = self.which.sees_all().then_some(&names);
        let stranded: Vec<Object<Pod>> = pods
            .iter()
            .filter_map(|object| {
                let Followed::Pod(pod) = &*object.value else { return None };
                stranding(pod, &strange, all).map(|_| object.with(pod.as_ref().clone()))
            })
            .collect();
        let all = partitions::partitions(&lost, &stranded, &mut around, now);
        all.into_iter().map(|partition| PartitionRow::new(partition, self.flags)).collect()
    }

    fn remarks(&self, sources: &[Vec<Object<Followed>>], items: &[PartitionRow]) -> Vec<String> {
        let all = || sources.iter().flatten().map(|object| &*object.value);
        let workloads = all().filter_map(|object| match object {
            Followed::Workload(kind, workload) => Some((*kind, &**workload)),
            _ => None,
        });
        let pods = all().filter_map(|object| match object {
            Followed::Pod(pod) => Some(&**pod),
            _ => None,
        });
        let stopped = partitions::stopped(workloads, pods, items.iter().map(PartitionRow::partition));
        let nodes = all().filter(|object| matches!(object, Followed::Node(_))).count();
        let silence = mass_silence(items.iter(), nodes).filter(|_| self.which.is_whole());
        let told = stopped.iter().filter(|_| self.which.is_all()).map(|stopped| told(stopped, self.flags));
        silence.into_iter().chain(told).collect()
    }

    fn summary(&self, items: &[PartitionRow]) -> String {
        let stranded: usize = items.iter().map(PartitionRow::stranded_pods).sum();
        format!("{} without heartbeats, {} stranded", count(items.len(), "node"), count(stranded, "pod"))
    }
}
