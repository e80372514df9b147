//! `kubectl lease partitions`.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use super::{
    count, evidence,
    watching::{self, View},
};
use crate::{
    cli::Partitions,
    cluster::{
        ATTACHMENTS, BUDGETS, CLAIMS, Cluster, DISKS, LEASES, NODES, Object, PODS, Query, Readable, Resource,
        pods::workloads,
    },
    domain::{
        assessment::{Assessment, Surroundings},
        duration::age,
        lease::Lease,
        maintenance,
        node::{Contact, HEARTBEATS, Node},
        pod::Pod,
        risk::Risk,
        safer::with_flags,
        stopped::{self, Stopped, Whereabouts},
        storage::{Attachment, Budget, Claim, Disk},
        time::ServerTime,
        workload::{self, Workload},
    },
    error::{Error, Result},
    exit::ExitCode,
    output::{Cell, Change, Format, Item, Printer, Tone},
};

pub async fn run(
    args: &Partitions,
    namespace: Option<&str>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let listing = &args.listing;
    if namespace.is_some() {
        printer.warn("-n does nothing here: nodes are in no namespace, and the pods of all are looked at");
    }
    let which = Which {
        node: args.node.as_deref(),
        labels: listing.selector.as_deref(),
        fields: listing.field_selector.as_deref(),
    };
    let documents = matches!(listing.output, Format::Json | Format::Yaml);
    if listing.watch {
        let mut queries = vec![which.nodes().bare(!documents), which.pods().bare(!documents)];
        queries.extend(evidence::readable(cluster).await?);
        let followed = |query: &Query| (query.resource, query.namespace.clone());
        let followed = queries.iter().map(followed).collect();
        let view = Watched { which, followed, flags: cluster.flags() };
        if !view.follows_leases_of(HEARTBEATS) {
            printer.warn(UNHEARD);
        }
        let unfollowed = |kind: &workload::Kind| {
            which.is_all() && view.followed.iter().all(|(of, _)| *of != workloads(*kind))
        };
        if let Some(warning) = unlisted(&stopped::KINDS.into_iter().filter(unfollowed).collect::<Vec<_>>()) {
            printer.warn(&warning);
        }
        return watching::run(&view, &queries, listing, cluster, printer).await;
    }
    let (labelled, unread) =
        if which.is_all() { evidence::labelled(cluster).await? } else { Default::default() };
    let of_those = |pod: &Pod| labelled.iter().any(|(kind, workload)| workload.owns(*kind, pod));
    let found = gather(&which, cluster, !documents, of_those).await?;
    let stopped = stopped(
        labelled.iter().map(|(kind, workload)| (*kind, workload)),
        found.others.iter().map(|pod| &*pod.value),
        &found.partitions,
        cluster.flags(),
    );
    if !found.heartbeats_seen {
        printer.warn(UNHEARD);
    }
    if let Some(warning) = unlisted(&unread) {
        printer.warn(&warning);
    }
    if found.nodes.is_empty() && !which.sees_all() && which.node.is_none() {
        // Nothing is well where nothing was looked at.
        return Err(Error::NotFound {
            message: "no node matches".into(),
            hint: Some(with_flags("'kubectl get nodes --show-labels' lists them", cluster.flags())),
        });
    }
    let now = cluster.server_time();
    match (which.node, found.partitions.as_slice()) {
        (Some(node), []) if !found.nodes.contains(node) => {
            return Err(Error::NotFound {
                message: format!("there is no node '{node}', and no pod on it"),
                hint: Some(with_flags("'kubectl get nodes' lists them", cluster.flags())),
            });
        }
        (_, []) if !documents => {
            let line = match which.node {
                Some(node) => format!("{node} is heard of: no partition"),
                None => format!("no partitions: {} heard of", count(found.nodes.len(), "node")),
            };
            if listing.output == Format::Name {
                printer.note(&line);
            } else {
                printer.done(&line)?;
            }
        }
        (Some(_), [one]) => printer.single(one, listing.output, !listing.no_headers, now)?,
        (_, all) if documents && which.is_all() => {
            let items: Vec<_> = all.iter().map(Item::document).collect();
            let fields = json!({ "serverTime": now.0, "items": items, "stopped": stopped });
            printer.document("PartitionList", fields, listing.output)?;
        }
        (_, all) => printer.listing(all, listing.output, !listing.no_headers, now)?,
    }
    if !documents {
        for stopped in &stopped {
            printer.warn(&told(stopped));
        }
    }
    Ok(if args.exit_code && !found.partitions.is_empty() { ExitCode::Held } else { ExitCode::Done })
}

const UNHEARD: &str = "you may not read the leases in kube-node-lease: a node that has gone silent is only \
                       seen when the node controller says so";

/// Which controllers that were told to run none are not found, for want of permission.
fn unlisted(kinds: &[workload::Kind]) -> Option<String> {
    let resource = |kind: &workload::Kind| format!("{}.{}", workloads(*kind).plural, workloads(*kind).group);
    let names: Vec<String> = kinds.iter().map(resource).collect();
    (!names.is_empty()).then(|| {
        format!(
            "you may not list {}: controllers that were told to run none, and not brought back, are not found there",
            names.join(", ")
        )
    })
}

/// The controllers that were told to run none, and what brings them back; `pods` are those beside the
/// stranded ones.
fn stopped<'a>(
    labelled: impl Iterator<Item = (workload::Kind, &'a Workload)>,
    pods: impl Iterator<Item = &'a Pod>,
    partitions: &'a [Partition],
    flags: &str,
) -> Vec<Stopped> {
    // What was declared to be off has ended.
    let lost = partitions.iter().filter(|partition| partition.contact != Contact::Fenced);
    let lost: Vec<_> = lost.map(|partition| (partition.node.as_str(), partition.contact)).collect();
    let stranded =
        partitions.iter().flat_map(|partition| &partition.pods).map(|stranded| &*stranded.pod.value);
    let pods: Vec<&Pod> = stranded.chain(pods).collect();
    let whereabouts = Whereabouts { pods: &pods, lost: &lost };
    let all = labelled.filter_map(|(kind, workload)| Stopped::of(kind, workload, whereabouts));
    all.map(|stopped| stopped.reached_by(flags)).collect()
}

/// What to do about a controller that was not brought back, in a line, and the command in another.
fn told(stopped: &Stopped) -> String {
    format!("{}\n{}", stopped.what, stopped.command)
}

/// So many pods are named in a change.
const TOLD: usize = 3;

/// Which nodes are meant.
#[derive(Clone, Copy, Default)]
pub struct Which<'a> {
    pub node: Option<&'a str>,
    pub labels: Option<&'a str>,
    pub fields: Option<&'a str>,
}

impl Which<'_> {
    fn nodes(&self) -> Query {
        let named = self.node.map(|node| format!("metadata.name={node}"));
        let fields: Vec<&str> = named.as_deref().into_iter().chain(self.fields).collect();
        let fields = (!fields.is_empty()).then(|| fields.join(","));
        Query::new(NODES).select(self.labels, fields.as_deref()).paged()
    }

    fn pods(&self) -> Query {
        let fields = self.node.map(|node| format!("spec.nodeName={node}"));
        Query::new(PODS).select(None, fields.as_deref()).paged()
    }

    /// Whether the whole cluster is meant.
    fn is_all(&self) -> bool {
        self.node.is_none() && self.sees_all()
    }

    /// Whether all nodes are looked at, so that one that is not among them does not exist.
    fn sees_all(&self) -> bool {
        self.labels.is_none() && self.fields.is_none()
    }
}

/// What a look at the cluster has found.
pub struct Found {
    pub partitions: Vec<Partition>,
    /// The names of all nodes that were looked at.
    pub nodes: BTreeSet<String>,
    pub heartbeats_seen: bool,
    /// The pods that were wanted beside the stranded ones.
    pub others: Vec<Object<Pod>>,
}

/// Looks at all nodes, and keeps of all pods those on nodes that are not heard of, and those that
/// are wanted beside them; `bare` for who does not show them whole.
pub async fn gather(
    which: &Which<'_>,
    cluster: &Cluster,
    bare: bool,
    wanted: impl Fn(&Pod) -> bool,
) -> Result<Found> {
    let mut around = Surroundings::default();
    let query = which.nodes().bare(bare);
    let (nodes, ()) =
        tokio::try_join!(cluster.list::<Node>(&query), evidence::read_leases(cluster, &mut around))?;
    let now = cluster.server_time();
    let names: BTreeSet<String> = nodes.items.iter().map(|node| node.value.metadata.name.clone()).collect();
    let lost: Vec<Object<Node>> =
        nodes.items.into_iter().filter(|node| is_lost(&node.value, &around, now)).collect();
    let mut strange: BTreeSet<String> = lost.iter().map(|node| node.value.metadata.name.clone()).collect();

    let missing = RefCell::new(BTreeSet::new());
    let stranded = |pod: &Pod| {
        let node = &pod.spec.node_name;
        if pod.is_finished() || node.is_empty() {
            return false;
        }
        if which.sees_all() && !names.contains(node) {
            missing.borrow_mut().insert(node.clone());
            return true;
        }
        strange.contains(node)
    };
    let pods = cluster.sift(&which.pods().bare(bare), |pod: &Pod| stranded(pod) || wanted(pod)).await?;
    let mut missing = missing.into_inner();
    if !missing.is_empty() {
        // A node may have joined between the two looks.
        let joined = cluster.nodes(None).await?;
        missing.retain(|name| joined.iter().all(|node| node.name != *name));
    }
    strange.extend(missing);
    let (pods, mut others): (Vec<_>, Vec<_>) = pods
        .items
        .into_iter()
        .partition(|pod| strange.contains(&pod.value.spec.node_name) && !pod.value.is_finished());
    // What is on a node that has joined is not stranded.
    others.retain(|pod| wanted(&pod.value));
    if !pods.is_empty() {
        let pods: Vec<&Pod> = pods.iter().map(|pod| &*pod.value).collect();
        let mut owners = Surroundings::default();
        tokio::try_join!(
            evidence::read_storage(cluster, &pods, &mut around),
            evidence::read_workloads(cluster, &pods, &mut owners)
        )?;
        (around.workloads, around.unread) = (owners.workloads, owners.unread);
    }
    let heartbeats_seen = around.heartbeats.is_some();
    let mut partitions = partitions(&lost, &pods, &mut around, now);
    for stranded in partitions.iter_mut().flat_map(|partition| &mut partition.pods) {
        stranded.assessment = stranded.assessment.clone().reached_by(cluster.flags());
    }
    Ok(Found { partitions, nodes: names, heartbeats_seen, others })
}

/// Whether a node belongs on the list: not heard of, or heard of again and still declared to be off.
fn is_lost(node: &Node, around: &Surroundings, now: ServerTime) -> bool {
    node.contact(around.heartbeat(&node.metadata.name), now) != Contact::Heard
        && (around.heartbeats.is_some() || node.ready().is_none_or(|ready| ready.status == "Unknown"))
}

/// The nodes that are not heard of, and the pods that are stranded there.
fn partitions(
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
    pub pod: Object<Pod>,
    pub assessment: Assessment,
}

impl Stranded {
    fn status(&self, contact: Contact) -> &str {
        match contact {
            // The word that the proposal for pod safety has for it.
            Contact::Silent | Contact::Fenced | Contact::Gone => "NodeDown",
            _ if self.pod.value.metadata.deletion_timestamp.is_some() => "Terminating",
            _ => &self.pod.value.status.phase,
        }
    }

    fn owner(&self) -> Option<String> {
        self.pod.value.controller().map(|owner| format!("{}/{}", owner.kind, owner.name))
    }

    fn volumes(&self) -> Option<String> {
        let volumes: Vec<String> = self
            .assessment
            .storage
            .iter()
            .map(|storage| {
                let modes = storage.detail.split(", ").next().unwrap_or_default();
                format!("{} ({modes})", storage.name)
            })
            .collect();
        (!volumes.is_empty()).then(|| volumes.join(", "))
    }

    pub fn document(&self, contact: Contact, now: ServerTime) -> Value {
        let Assessment { risk, futile, storage, leads, reasons, missing, safer, .. } = &self.assessment;
        let pod = &self.pod.value;
        let since = pod.terminating(now).and_then(|length| now.0.checked_sub(length).ok());
        json!({
            "name": pod.metadata.name, "namespace": pod.metadata.namespace,
            "status": self.status(contact),
            "terminatingSince": since.map(|time| format!("{time:.0}")),
            "owner": self.owner(), "volumes": storage, "leads": leads,
            "risk": risk, "futile": futile, "reasons": reasons, "missing": missing, "safer": safer,
            "pod": self.pod.document(PODS),
        })
    }
}

/// A node that is not heard of.
#[derive(Clone)]
pub struct Partition {
    pub node: String,
    pub contact: Contact,
    heartbeat: Option<jiff::Timestamp>,
    held_by: Option<String>,
    object: Option<Object<Node>>,
    pub pods: Vec<Stranded>,
    seen: ServerTime,
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
                .unwrap_or_else(|| node.map_or(Contact::Late, |node| node.contact(lease, now))),
            heartbeat: node.and_then(|node| node.heartbeat(lease)).or(lease.and_then(Lease::heartbeat)),
            held_by: around.held_by(&name, now),
            node: name,
            object,
            pods: Vec::new(),
            seen: now,
        }
    }

    fn tone(&self) -> Tone {
        match self.contact {
            Contact::Heard => Tone::Good,
            Contact::Late | Contact::Back | Contact::NotReady => Tone::Doubtful,
            Contact::Silent | Contact::Gone => Tone::Bad,
            Contact::Fenced => Tone::Faint,
        }
    }

    fn worst(&self) -> Option<Risk> {
        self.pods.iter().map(|stranded| stranded.assessment.risk).max()
    }

    /// What became of the pods from one look to the next.
    fn happened_to_pods(&self, new: &Self) -> Vec<String> {
        let named = |partition: &Self| -> BTreeMap<String, bool> {
            let of = |stranded: &Stranded| {
                let pod = &stranded.pod.value;
                (pod.full_name(), pod.metadata.deletion_timestamp.is_some())
            };
            partition.pods.iter().map(of).collect()
        };
        let (before, after) = (named(self), named(new));
        let gone =
            before.keys().filter(|name| !after.contains_key(*name)).map(|name| format!("{name} is gone"));
        let others = after.iter().filter_map(|(name, terminating)| match before.get(name) {
            None => Some(format!("{name} is there")),
            Some(false) if *terminating => Some(format!("{name} is Terminating")),
            Some(_) => None,
        });
        gone.chain(others).collect()
    }

    fn stranded(&self) -> String {
        let worst = self.worst().map_or_else(String::new, |risk| format!(", risk {} at worst", risk.word()));
        match self.pods.len() {
            0 => "no pods there".to_owned(),
            pods => format!("{} stranded{worst}", count(pods, "pod")),
        }
    }
}

/// The tone of a risk.
pub fn tone(risk: Risk) -> Tone {
    match risk {
        Risk::None | Risk::Low => Tone::Good,
        Risk::Medium => Tone::Doubtful,
        Risk::High | Risk::Critical => Tone::Bad,
    }
}

impl Item for Partition {
    const KIND: &'static str = "Partition";

    fn headers(wide: bool) -> &'static [&'static str] {
        const WIDE: [&str; 13] = [
            "NODE",
            "STATE",
            "HEARTBEAT",
            "POD",
            "STATUS",
            "RISK",
            "TERMINATING",
            "OWNER",
            "VOLUMES",
            "READY",
            "TAINTS",
            "HELD BY",
            "WHY",
        ];
        if wide { &WIDE } else { &WIDE[..9] }
    }

    fn cells(&self, now: ServerTime, wide: bool) -> Vec<Cell> {
        self.rows(now, wide).into_iter().next().unwrap_or_default()
    }

    /// A line for each pod, each of them whole: what is piped is read line by line.
    fn rows(&self, now: ServerTime, wide: bool) -> Vec<Vec<Cell>> {
        let blank = || Cell::or_none(None::<&str>);
        let node = self.object.as_ref().map(|node| &*node.value);
        let row = |stranded: Option<&Stranded>| {
            // A node's clock may be ahead.
            let heartbeat = self.heartbeat.map(|time| age(now.since(time).max(SignedDuration::ZERO)));
            let mut cells = vec![
                Cell::new(&self.node),
                Cell::new(self.contact.word()).tone(self.tone()),
                Cell::or_none(heartbeat),
            ];
            match stranded {
                None => cells.extend([blank(), blank(), blank(), blank(), blank(), blank()]),
                Some(stranded) => {
                    let risk = stranded.assessment.risk;
                    let pod = &stranded.pod.value;
                    cells.extend([
                        Cell::new(pod.full_name()),
                        Cell::new(stranded.status(self.contact)),
                        Cell::new(risk.word()).tone(tone(risk)),
                        Cell::or_none(pod.terminating(now).map(age)),
                        Cell::or_none(stranded.owner()),
                        Cell::or_none(stranded.volumes()),
                    ]);
                }
            }
            if wide {
                let ready = node.and_then(Node::ready).map(|ready| {
                    let since = ready.last_transition_time;
                    let since = since.map_or_else(String::new, |time| format!(" {}", age(now.since(time))));
                    format!("{}{since}", ready.status)
                });
                let taints: Vec<&str> = node.map_or_else(Vec::new, |node| {
                    let short = |key| str::strip_prefix(key, "node.kubernetes.io/").unwrap_or(key);
                    node.spec.taints.iter().map(|taint| short(taint.key.as_str())).collect()
                });
                let reason = stranded.and_then(|stranded| stranded.assessment.reasons.last());
                cells.extend([
                    Cell::or_none(ready),
                    Cell::or_none(Some(taints.join(",")).filter(|taints| !taints.is_empty())),
                    Cell::or_none(self.held_by.as_deref()),
                    Cell::or_none(reason.map(String::as_str)),
                ]);
            }
            cells
        };
        if self.pods.is_empty() {
            return vec![row(None)];
        }
        self.pods.iter().map(|stranded| row(Some(stranded))).collect()
    }

    fn document(&self) -> Map<String, Value> {
        let node = self.object.as_ref().map(|node| &*node.value);
        let ready = node.and_then(Node::ready).map(|ready| {
            json!({
                "status": ready.status, "reason": ready.reason,
                "since": ready.last_transition_time.map(|time| format!("{time:.0}")),
            })
        });
        let fields = json!({
            "node": self.node,
            "state": self.contact,
            "heartbeat": self.heartbeat.map(|time| format!("{time:.6}")),
            "ready": ready,
            "taints": node.map(|node| &node.spec.taints),
            "heldBy": self.held_by,
            "pods": self.pods.iter().map(|pod| pod.document(self.contact, self.seen)).collect::<Vec<_>>(),
            "object": self.object.as_ref().map(|node| node.document(NODES)),
        });
        fields.as_object().cloned().unwrap_or_default()
    }

    fn resource(&self) -> String {
        format!("node/{}", self.node)
    }

    fn key(&self) -> &str {
        &self.node
    }

    fn change(before: Option<&Self>, after: Option<&Self>, _: ServerTime) -> Option<Change> {
        let subject = after.or(before)?.node.clone();
        let change = |what, detail, tone| Some(Change { subject: subject.clone(), what, detail, tone });
        match (before, after) {
            (None, Some(new)) => change(new.contact.word(), new.stranded(), new.tone()),
            (Some(old), None) => change("heard", format!("was {}", old.contact.word()), Tone::Good),
            (Some(old), Some(new)) if old.contact != new.contact => {
                let detail = format!("was {}, {}", old.contact.word(), new.stranded());
                change(new.contact.word(), detail, new.tone())
            }
            (Some(old), Some(new)) => {
                let happened = old.happened_to_pods(new);
                (!happened.is_empty()).then_some(())?;
                let more = happened.len().saturating_sub(TOLD);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let told = happened.into_iter().take(TOLD).collect::<Vec<_>>().join(", ");
                change("pods", format!("{told}{more}; {}", new.stranded()), new.tone())
            }
            (None, None) => None,
        }
    }
}

/// An object of any of the kinds that a watch follows.
#[derive(Clone)]
pub enum Kind {
    Node(Node),
    Pod(Box<Pod>),
    Lease(Lease),
    Claim(Claim),
    Disk(Disk),
    Attachment(Attachment),
    Budget(Budget),
    Workload(workload::Kind, Box<Workload>),
}

/// The kind of controllers that a resource has.
fn workload_kind(resource: Resource) -> Option<workload::Kind> {
    workload::Kind::ALL.into_iter().find(|kind| workloads(*kind) == resource)
}

impl Readable for Kind {
    fn read(resource: Resource, text: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(match resource {
            NODES => Self::Node(serde_json::from_slice(text)?),
            PODS => Self::Pod(serde_json::from_slice(text)?),
            LEASES => Self::Lease(serde_json::from_slice(text)?),
            CLAIMS => Self::Claim(serde_json::from_slice(text)?),
            DISKS => Self::Disk(serde_json::from_slice(text)?),
            ATTACHMENTS => Self::Attachment(serde_json::from_slice(text)?),
            _ => match workload_kind(resource) {
                Some(kind) => Self::Workload(kind, serde_json::from_slice(text)?),
                None => Self::Budget(serde_json::from_slice(text)?),
            },
        })
    }
}

struct Watched<'a> {
    which: Which<'a>,
    /// Of what kind each source is, and in which namespace if not in all.
    followed: Vec<(Resource, Option<String>)>,
    /// What printed commands take to reach the cluster.
    flags: &'a str,
}

impl Watched<'_> {
    fn follows_leases_of(&self, namespace: &str) -> bool {
        let has = |of: &Option<String>| of.as_deref().is_none_or(|of| of == namespace);
        self.followed.iter().any(|(resource, of)| *resource == LEASES && has(of))
    }

    fn around(&self, sources: &[Vec<Object<Kind>>]) -> Surroundings {
        let mut around = Surroundings::default();
        let mut leases = Vec::new();
        // What is followed and empty is known to be empty.
        for (resource, _) in &self.followed {
            match *resource {
                CLAIMS => around.claims = Some(BTreeMap::new()),
                DISKS => around.disks = Some(BTreeMap::new()),
                ATTACHMENTS => around.attachments = Some(Vec::new()),
                BUDGETS => around.budgets = Some(Vec::new()),
                _ => {}
            }
        }
        for object in sources.iter().flatten() {
            let key = || Self::key(&object.value);
            match &*object.value {
                Kind::Lease(lease) => leases.push(lease.clone()),
                Kind::Claim(claim) => {
                    around.claims.get_or_insert_default().insert(key(), claim.clone());
                }
                Kind::Disk(disk) => {
                    let name = disk.metadata.name.clone();
                    around.disks.get_or_insert_default().insert(name, disk.clone());
                }
                Kind::Attachment(attachment) => {
                    around.attachments.get_or_insert_default().push(attachment.clone());
                }
                Kind::Budget(budget) => around.budgets.get_or_insert_default().push(budget.clone()),
                Kind::Workload(kind, workload) => {
                    around.workloads.insert((*kind, key()), workload.as_ref().clone());
                }
                Kind::Node(_) | Kind::Pod(_) => {}
            }
        }
        evidence::sort(leases, &mut around);
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
    type Object = Kind;
    type Item = Partition;

    fn key(object: &Kind) -> String {
        let metadata = match object {
            Kind::Pod(pod) => return pod.full_name(),
            Kind::Node(node) => &node.metadata,
            Kind::Lease(lease) => &lease.metadata,
            Kind::Claim(claim) => &claim.metadata,
            Kind::Disk(disk) => &disk.metadata,
            Kind::Attachment(attachment) => &attachment.metadata,
            Kind::Budget(budget) => &budget.metadata,
            Kind::Workload(_, workload) => &workload.metadata,
        };
        format!("{}/{}", metadata.namespace, metadata.name)
    }

    /// The heartbeats are. That a list of budgets takes long does not make a silent node one that is only late.
    fn is_timed(&self, query: &Query) -> bool {
        query.resource == LEASES
    }

    fn items(&self, sources: &[Vec<Object<Kind>>], now: ServerTime) -> Vec<Partition> {
        let [nodes, pods, ..] = sources else { return Vec::new() };
        let mut around = self.around(sources);
        let nodes: Vec<Object<Node>> = nodes
            .iter()
            .filter_map(|object| {
                if let Kind::Node(node) = &*object.value { Some(object.with(node.clone())) } else { None }
            })
            .collect();
        let names: BTreeSet<&str> = nodes.iter().map(|node| node.value.metadata.name.as_str()).collect();
        let lost: Vec<Object<Node>> =
            nodes.iter().filter(|node| is_lost(&node.value, &around, now)).cloned().collect();
        let strange: BTreeSet<&str> = lost.iter().map(|node| node.value.metadata.name.as_str()).collect();
        let stranded: Vec<Object<Pod>> = pods
            .iter()
            .filter_map(|object| {
                let Kind::Pod(pod) = &*object.value else { return None };
                let node = pod.spec.node_name.as_str();
                let lost = strange.contains(node) || (self.which.sees_all() && !names.contains(node));
                (lost && !node.is_empty() && !pod.is_finished()).then(|| object.with(pod.as_ref().clone()))
            })
            .collect();
        partitions(&lost, &stranded, &mut around, now)
    }

    fn remarks(&self, sources: &[Vec<Object<Kind>>], items: &[Partition]) -> Vec<String> {
        if !self.which.is_all() {
            return Vec::new();
        }
        let all = || sources.iter().flatten().map(|object| &*object.value);
        let workloads = all().filter_map(|object| match object {
            Kind::Workload(kind, workload) => Some((*kind, &**workload)),
            _ => None,
        });
        let pods = all().filter_map(|object| match object {
            Kind::Pod(pod) => Some(&**pod),
            _ => None,
        });
        stopped(workloads, pods, items, self.flags).iter().map(told).collect()
    }

    fn summary(&self, items: &[Partition]) -> String {
        let stranded: usize = items.iter().map(|item| item.pods.len()).sum();
        format!("{} not heard of, {} stranded", count(items.len(), "node"), count(stranded, "pod"))
    }
}
