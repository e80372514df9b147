//! All there is to say about force-deleting one pod: what was found around it, how risky that makes it
//! and why, and what is safer.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use jiff::SignedDuration;
use serde::Serialize;

use super::{
    duration::age,
    holder::Who,
    lease::Lease,
    maintenance::Standing,
    node::{Contact, Declared, Node},
    pod::{Pod, Source},
    risk::{Deletion, Facts, Risk},
    safer::{self, Eviction, Way},
    storage::{self, Attachment, Budget, Claim, Disk},
    time::ServerTime,
    workload::{self, Kind, Ownership, Successor, Why, Workload, Workloads},
};

/// The heartbeat of a node that does not exist is believed to be old after so long.
const GONE_AFTER: SignedDuration = SignedDuration::from_secs(60);
/// What a Job keeps its pods with until it has counted them.
const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// What is known around pods: `None` is what may not be read.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// By name.
    pub nodes: Option<BTreeMap<String, Node>>,
    /// The leases of kubelets, by node.
    pub heartbeats: Option<BTreeMap<String, Lease>>,
    /// The maintenance leases, by node.
    pub maintenance: Option<BTreeMap<String, Lease>>,
    /// All other leases.
    pub leaders: Option<Vec<Lease>>,
    /// By `namespace/name`.
    pub claims: Option<BTreeMap<String, Claim>>,
    /// By name.
    pub disks: Option<BTreeMap<String, Disk>>,
    pub attachments: Option<Vec<Attachment>>,
    pub budgets: Option<Vec<Budget>>,
    /// The controllers of pods, by kind and `namespace/name`.
    pub workloads: BTreeMap<(Kind, String), Workload>,
    /// The kinds of controllers that may not be read.
    pub unread: BTreeSet<Kind>,
}

impl Workloads for Surroundings {
    fn workload(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Workload> {
        self.workloads.get(&(kind, format!("{namespace}/{name}")))
    }
}

impl Surroundings {
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.as_ref()?.get(name)
    }

    pub fn heartbeat(&self, node: &str) -> Option<&Lease> {
        self.heartbeats.as_ref()?.get(node)
    }

    /// Whether a node is heard of; `None` if that cannot be known.
    pub fn contact(&self, name: &str, now: ServerTime) -> Option<Contact> {
        let node = self.nodes.as_ref()?.get(name);
        // Without its heartbeat, a node that is not given up may be dead for up to five minutes, and one
        // that is may be back.
        let lease = self.heartbeats.as_ref()?.get(name);
        if let Some(node) = node {
            return Some(node.contact(lease, now));
        }
        // A kubelet whose node was deleted goes on heartbeating for as long as it has the lease, and
        // running what it runs.
        let fresh = lease.and_then(Lease::heartbeat).is_some_and(|time| now.since(time) <= GONE_AFTER);
        Some(if fresh { Contact::Late } else { Contact::Gone })
    }

    /// Whether there is no object of this node.
    fn lacks(&self, node: &str) -> bool {
        self.nodes.as_ref().is_some_and(|nodes| !nodes.contains_key(node))
    }

    /// Who holds a node for maintenance, and why, in words.
    pub fn held_by(&self, node: &str, now: ServerTime) -> Option<String> {
        let lease = self.maintenance.as_ref()?.get(node)?;
        let nobody = Who::exactly("");
        let (Standing::Held { holder, .. } | Standing::Admin { holder } | Standing::Malformed { holder, .. }) =
            Standing::of(Some(&lease.spec), &nobody, now)
        else {
            return None;
        };
        Some(lease.reason().map_or(holder.clone(), |reason| format!("{holder}: {reason}")))
    }

    /// Counts a pod that is about to go, so that the next one of the same budgets is judged by what is
    /// left of them.
    pub fn spend(&mut self, pod: &Pod) {
        // One that was on its way out, or is not ready, is counted already.
        if pod.metadata.deletion_timestamp.is_some() || !pod.is_ready() {
            return;
        }
        for budget in self.budgets.iter_mut().flatten() {
            if budget.concerns(&pod.metadata.namespace, &pod.metadata.labels) {
                budget.status.disruptions_allowed -= 1;
                budget.status.current_healthy -= 1;
            }
        }
        for owner in &pod.metadata.owner_references {
            let Some(kind) = Kind::of(owner) else { continue };
            let at = (kind, format!("{}/{}", pod.metadata.namespace, owner.name));
            let Some(workload) = self.workloads.get_mut(&at) else { continue };
            workload.status.ready_replicas -= 1;
            let owners = workload.metadata.owner_references.clone();
            for above in owners.iter().filter(|above| Kind::of(above) == kind.above()) {
                let Some(kind) = kind.above() else { continue };
                let at = (kind, format!("{}/{}", pod.metadata.namespace, above.name));
                if let Some(workload) = self.workloads.get_mut(&at) {
                    workload.status.ready_replicas -= 1;
                }
            }
        }
    }
}

/// Why force deletion would not do what is hoped of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Futile {
    /// The object stays until they are taken off.
    Finalizers,
    /// The process is not ended, and the object comes back.
    Mirror,
}

/// A storage of a pod, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Storage {
    pub name: String,
    pub detail: String,
    /// Two nodes that use it at once may destroy it; null if that could not be found out.
    pub exclusive: Option<bool>,
    /// It is not destroyed by that, but written by all who use it.
    pub shared: bool,
}

/// All there is to say about force-deleting one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assessment {
    pub risk: Risk,
    pub futile: Option<Futile>,
    pub contact: Option<Contact>,
    pub storage: Vec<Storage>,
    /// The leases it leads by.
    pub leads: Vec<String>,
    /// What was found, a line each.
    pub evidence: Vec<(&'static str, String)>,
    pub reasons: Vec<String>,
    /// What could not be found out, and is counted as a risk.
    pub missing: Vec<&'static str>,
    /// The disruption budgets that have nothing left for it.
    pub spent_budgets: Vec<String>,
    pub ownership: Ownership,
    pub safer: Vec<Way>,
}

impl Assessment {
    /// Judges one pod by what is known around it.
    pub fn of(pod: &Pod, around: &Surroundings, now: ServerTime) -> Self {
        let storage = storage_of(pod, around);
        let leads = around.leaders.as_ref().map(|leases| led_by(pod, leases));
        let budgets: Option<Vec<&Budget>> = around.budgets.as_ref().map(|budgets| {
            let concerned = |budget: &&Budget| budget.concerns(&pod.metadata.namespace, &pod.metadata.labels);
            budgets.iter().filter(concerned).collect()
        });
        let spent: Option<Vec<String>> = budgets.as_ref().map(|budgets| {
            let spent = budgets.iter().filter(|budget| !budget.allows(pod.is_ready()));
            spent.map(|budget| budget.metadata.name.clone()).collect()
        });
        let ownership = workload::ownership(pod, around);
        let node = &pod.spec.node_name;
        let contact = around.contact(node, now);
        // One that its kubelet reports not to be ready takes nothing away. Of a node that is not well its
        // readiness is not known.
        let not_ready = around.node(node).is_some_and(Node::says_not_ready);
        let is_well = contact == Some(Contact::Heard) || contact == Some(Contact::Back) && !not_ready;
        let counts = pod.is_ready() || !is_well;
        let facts = Facts {
            scheduled: pod.is_scheduled(),
            finished: pod.is_finished(),
            mirror: pod.is_mirror(),
            nodeless: pod.is_scheduled() && around.lacks(node),
            unread: around.nodes.is_none(),
            contact,
            not_ready,
            ended: pod.has_ended(now),
            deletion: match pod.metadata.deletion_timestamp {
                None => Deletion::NotBegun,
                Some(_) if pod.is_stuck(now) => Deletion::Stuck,
                Some(_) => Deletion::Begun,
            },
            successor: ownership.successor,
            alone: ownership.alone,
            exclusive: if storage.iter().any(|storage| storage.exclusive == Some(true)) {
                Some(true)
            } else if storage.iter().any(|storage| storage.exclusive.is_none()) {
                None
            } else {
                Some(false)
            },
            shared: storage.iter().any(|storage| storage.shared),
            single: ownership.single,
            leads: leads.as_ref().map(|leads| !leads.is_empty()),
            no_budget: spent.as_ref().map(|budgets| !budgets.is_empty()),
            no_majority: if counts {
                ownership.replicas.map(|replicas| !replicas.keep_a_majority_without(pod))
            } else {
                Some(false)
            },
            out_of_service: around.node(node).and_then(|known| known.declared(around.heartbeat(node))),
        };
        // Who only claims to be a mirror is asked about too, and judged as any other.
        let futile = if pod.is_marked_as_mirror() {
            Some(Futile::Mirror)
        } else {
            (!lasting_finalizers(pod, &ownership).is_empty()).then_some(Futile::Finalizers)
        };
        let eviction = match (&budgets, &spent) {
            (Some(budgets), Some(spent)) if budgets.len() > 1 => Eviction::SeveralBudgets {
                names: budgets.iter().map(|budget| budget.metadata.name.clone()).collect(),
                spent: !spent.is_empty(),
            },
            (_, Some(spent)) if !spent.is_empty() => Eviction::Spent(spent.join(", ")),
            (None, _) | (_, None) => Eviction::Unknown,
            _ => Eviction::Possible,
        };
        let mut assessment = Self {
            risk: facts.risk(),
            futile,
            contact: facts.contact,
            storage,
            leads: leads.unwrap_or_default(),
            evidence: Vec::new(),
            reasons: Vec::new(),
            missing: missing(pod, &facts, around),
            safer: safer::ways(pod, &facts, &ownership, &eviction, now),
            spent_budgets: spent.clone().unwrap_or_default(),
            ownership,
        };
        assessment.evidence = evidence(pod, &assessment, &facts, around, now);
        let doubted =
            around.node(node).is_some_and(|known| known.is_contradicted(around.heartbeat(node), now));
        assessment.reasons = reasons(pod, &assessment, &facts, spent.as_deref(), doubted);
        assessment
    }
}

impl Assessment {
    /// The same, for a cluster that takes these flags to reach.
    #[must_use]
    pub fn reached_by(self, flags: &str) -> Self {
        let safer = self.safer.into_iter().map(|way| way.reached_by(flags)).collect();
        let line = |(label, text): (&'static str, String)| {
            // What its controller takes to come back is to be typed, too.
            let text = if label == "owner" { safer::with_flags(&text, flags) } else { text };
            (label, text)
        };
        let evidence = self.evidence.into_iter().map(line).collect();
        Self { evidence, safer, ..self }
    }
}

/// The finalizers that keep the object although it is deleted by force. A Job takes its own off as soon
/// as the pod is Terminating, unless it waits for the pod's end.
pub fn lasting_finalizers<'a>(pod: &'a Pod, ownership: &Ownership) -> Vec<&'a str> {
    let is_known = matches!(ownership.why, Why::Rolling | Why::CronJobForbids);
    let by_job = (is_known || ownership.managed_by.is_some())
        && ownership.controller.as_ref().is_some_and(|of| of.starts_with("Job/"));
    let lasts = |finalizer: &&str| *finalizer != JOB_TRACKING || !by_job;
    pod.metadata.finalizers.iter().map(String::as_str).filter(lasts).collect()
}

fn storage_of(pod: &Pod, around: &Surroundings) -> Vec<Storage> {
    let read = |name: &str, source: &Source| {
        let written = pod.writes(name);
        let claim = match source {
            Source::Inline(kind) => {
                let detail = format!("{kind}, which any node may write");
                return Storage { name: name.to_owned(), detail, exclusive: Some(written), shared: false };
            }
            Source::HostPath => {
                let detail = "hostPath".to_owned();
                return Storage { name: name.to_owned(), detail, exclusive: Some(false), shared: written };
            }
            Source::Claim(claim) => claim,
        };
        let full = format!("{}/{claim}", pod.metadata.namespace);
        let unknown = |why: &str| {
            let exclusive = if written { None } else { Some(false) };
            Storage { name: claim.clone(), detail: why.to_owned(), exclusive, shared: written }
        };
        let Some(claims) = &around.claims else { return unknown("not to be seen") };
        let Some(found) = claims.get(&full) else { return unknown("there is no such claim") };
        let disk = around.disks.as_ref().map(|disks| disks.get(&found.spec.volume_name));
        let attached = around.attachments.iter().flatten().any(|attachment| {
            attachment.spec.node_name == pod.spec.node_name
                && attachment.spec.source.persistent_volume_name == found.spec.volume_name
                && !found.spec.volume_name.is_empty()
        });
        let attached = if attached { format!(", attached to {}", pod.spec.node_name) } else { String::new() };
        let (modes, kind) = match disk {
            Some(Some(disk)) => (&disk.spec.access_modes, Some(disk.spec.kind())),
            _ => (&found.spec.access_modes, None),
        };
        let is_block = |mode: &str| mode == storage::BLOCK;
        let blocks = is_block(&found.spec.volume_mode)
            || disk.flatten().is_some_and(|disk| is_block(&disk.spec.volume_mode));
        let volume_mode = if blocks { storage::BLOCK } else { "" };
        let short = storage::abbreviated(modes);
        let detail = format!("{short}, {}{attached}", kind.unwrap_or("kind not known"));
        let exclusive = match kind {
            _ if !written => Some(false),
            Some(kind) => Some(storage::is_exclusive(modes, kind, volume_mode)),
            // An exclusive mode is one whatever the kind; a shared one may still be a bare disk.
            None => storage::is_exclusive(modes, "", volume_mode).then_some(true),
        };
        let shared = written && modes.iter().any(|mode| mode != "ReadOnlyMany");
        Storage { name: claim.clone(), detail, exclusive, shared }
    };
    let volumes = pod.spec.volumes.iter();
    volumes.filter_map(|volume| Some(read(&volume.name, &volume.source(&pod.metadata.name)?))).collect()
}

/// The leader leases that a pod holds, by the names of their holders. Who holds a lease names itself as
/// it likes, nearly always after its host: for a pod that is its name, or what it asks for in its place;
/// with host networking it is the node's, and any pod there may be meant. To find one too many costs a
/// question, to miss one may cost data.
fn led_by(pod: &Pod, leases: &[Lease]) -> Vec<String> {
    let (name, node) = (pod.metadata.name.as_str(), pod.spec.node_name.as_str());
    let own =
        [name, &pod.spec.hostname, as_host_name(name), as_host_name(&pod.spec.hostname), &pod.metadata.uid];
    let nodes = [node, as_host_name(node), node.split('.').next().unwrap_or_default()];
    let holds = |lease: &&Lease| {
        let holder = lease.holder();
        let at_home = lease.metadata.namespace == pod.metadata.namespace;
        own.iter().any(|name| is_part(name, holder, at_home))
            || (pod.spec.host_network && at_home && nodes.iter().any(|name| is_part(name, holder, true)))
    };
    let full = |lease: &Lease| format!("{}/{}", lease.metadata.namespace, lease.metadata.name);
    leases.iter().filter(holds).map(full).collect()
}

/// A name as the kubelet makes it a host name: the kernel takes no more of it.
fn as_host_name(name: &str) -> &str {
    name.get(..63).unwrap_or(name).trim_end_matches(['-', '.'])
}

/// Whether the name of a holder has this in it as a part of its own, as in `default/db-0`, `db-0_4f1c`,
/// `db-0.shop` and `db-0-4f1c`. Names have '-' in them too, as `web` is a part of `web-7d4b9c8f6d-x2x5z`:
/// what a '-' sets apart is a part of its own only where that is not far-fetched.
fn is_part(part: &str, holder: &str, by_dash: bool) -> bool {
    if part.is_empty() {
        return false;
    }
    holder.match_indices(part).any(|(at, _)| {
        let before = holder[..at].chars().next_back();
        let after = holder[at + part.len()..].chars().next();
        let apart = |c: char| !c.is_alphanumeric() && (by_dash || c != '-');
        before.is_none_or(apart) && after.is_none_or(apart)
    })
}

fn missing(pod: &Pod, facts: &Facts, around: &Surroundings) -> Vec<&'static str> {
    if !facts.scheduled || facts.finished {
        return Vec::new();
    }
    let has_claims = pod
        .spec
        .volumes
        .iter()
        .any(|volume| matches!(volume.source(&pod.metadata.name), Some(Source::Claim(_))));
    let all = [
        (around.nodes.is_none(), "nodes"),
        (around.heartbeats.is_none(), "leases in kube-node-lease"),
        (around.maintenance.is_none(), "leases in kube-node-maintenance"),
        (around.leaders.is_none(), "leases of leader elections"),
        (around.claims.is_none() && has_claims, "persistentvolumeclaims"),
        (around.disks.is_none() && has_claims, "persistentvolumes"),
        (around.attachments.is_none() && has_claims, "volumeattachments.storage.k8s.io"),
        (around.budgets.is_none(), "poddisruptionbudgets.policy"),
    ];
    let unread = around.unread.iter().filter(|kind| concerns(pod, **kind)).map(|kind| match kind {
        Kind::ReplicaSet => "replicasets.apps",
        Kind::Deployment => "deployments.apps",
        Kind::StatefulSet => "statefulsets.apps",
        Kind::DaemonSet => "daemonsets.apps",
        Kind::Job => "jobs.batch",
        Kind::CronJob => "cronjobs.batch",
    });
    all.into_iter().filter(|(missing, _)| *missing).map(|(_, what)| what).chain(unread).collect()
}

/// Whether controllers of this kind may be behind a pod.
fn concerns(pod: &Pod, kind: Kind) -> bool {
    let mut owners = pod.metadata.owner_references.iter().filter_map(Kind::of);
    owners.any(|owner| owner == kind || owner.above() == Some(kind))
}

/// What was found, for a person to judge by.
fn evidence(
    pod: &Pod,
    assessment: &Assessment,
    facts: &Facts,
    around: &Surroundings,
    now: ServerTime,
) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let name = &pod.spec.node_name;
    let phase = if pod.status.phase.is_empty() { "phase unknown" } else { &pod.status.phase };
    // A node's clock may be ahead.
    let ago = |time: jiff::Timestamp| age(now.since(time).max(SignedDuration::ZERO));
    let mut state = match (pod.terminating(now), pod.overdue(now)) {
        (Some(since), Some(overdue)) if overdue > SignedDuration::ZERO => format!(
            "Terminating for {}, {} beyond its grace of {}",
            age(since),
            age(overdue),
            age(pod.grace())
        ),
        (Some(since), Some(left)) => {
            format!("Terminating for {}, {} of its grace left", age(since), age(left.abs()))
        }
        _ => format!("{phase}, not deleted"),
    };
    if let Some(reason) = pod.disruption() {
        let _ = write!(state, ", by {reason}");
    }
    lines.push(("pod", state));
    if facts.scheduled {
        let node = match (around.node(name), facts.contact) {
            (None, Some(contact)) => {
                let heartbeat = around.heartbeat(name).and_then(Lease::heartbeat);
                match (heartbeat, contact) {
                    (None, _) => format!("{name} does not exist, since when is not known"),
                    (Some(time), Contact::Late) => {
                        format!("{name} does not exist, but its kubelet was heard of {} ago", ago(time))
                    }
                    (Some(time), _) => format!("{name} does not exist, last heartbeat {} ago", ago(time)),
                }
            }
            (None, None) => format!("{name}, which may not be read"),
            (Some(node), _) => {
                let ready = node.ready().map_or("no Ready condition".to_owned(), |ready| {
                    let since = ready
                        .last_transition_time
                        .map_or(String::new(), |time| format!(" for {}", ago(time)));
                    format!("Ready is {}{since}", ready.status)
                });
                let heartbeat = match node.heartbeat(around.heartbeat(name)) {
                    Some(time) => format!("last heartbeat {} ago", ago(time)),
                    None => "never heard of".to_owned(),
                };
                let fenced = match facts.out_of_service {
                    Some(Declared::Since) => ", declared out of service",
                    Some(Declared::Before) => ", declared out of service before it was last heard of",
                    Some(Declared::Undated) => ", declared out of service (the taint does not tell when)",
                    None => "",
                };
                format!("{name}: {heartbeat}, {ready}{fenced}")
            }
        };
        lines.push(("node", node));
    }
    if let Some(held) = around.held_by(name, now) {
        lines.push(("held by", held));
    }
    let direct = pod.controller().map(|owner| format!("{}/{}", owner.kind, owner.name));
    let mut owner = match (direct, &assessment.ownership.controller) {
        (Some(direct), Some(above)) if direct != *above => format!("{direct}, {above}"),
        (Some(direct), _) => direct,
        (None, _) => "none".to_owned(),
    };
    if let Some(back) = safer::brought_back(pod, &assessment.ownership) {
        let _ = write!(
            owner,
            ", which was told to run none: {back} brings it back, once the containers have ended"
        );
    }
    lines.push(("owner", owner));
    if let Some(replicas) = assessment.ownership.replicas.filter(|replicas| replicas.wanted > 1) {
        let majority = if replicas.keep_a_majority_without(pod) { "a majority" } else { "no majority" };
        lines.push((
            "replicas",
            format!(
                "{} of {} are ready without this one: {majority}",
                replicas.without(pod),
                replicas.wanted
            ),
        ));
    }
    lines.extend(
        assessment.storage.iter().map(|storage| ("volume", format!("{}: {}", storage.name, storage.detail))),
    );
    lines.extend(assessment.leads.iter().map(|lease| ("leads", format!("lease {lease}"))));
    if !pod.metadata.finalizers.is_empty() {
        lines.push(("finalizers", pod.metadata.finalizers.join(", ")));
    }
    if !assessment.missing.is_empty() {
        lines.push((
            "not seen",
            format!("{}: counted as a risk where it could be one", assessment.missing.join(", ")),
        ));
    }
    lines
}

/// What its node makes of it; `doubted` if that was given up and yet heartbeats.
fn on_its_node(node: &str, facts: &Facts, doubted: bool) -> String {
    let may_run = "the containers may still be running";
    match facts.contact {
        Some(Contact::Gone | Contact::Late) if facts.nodeless => {
            format!("{may_run} on the machine of {node}: deleting the node object does not stop it")
        }
        Some(Contact::Fenced) => {
            format!("{node} is silent and was declared to be off: if that is true, nothing runs")
        }
        Some(Contact::Silent | Contact::Gone) => format!("{may_run} on {node}: nothing is heard of it"),
        Some(Contact::Late) if doubted => format!(
            "the containers are most likely running on {node}: it heartbeats, whatever its Ready condition says"
        ),
        Some(Contact::Late) => {
            format!("{may_run} on {node}: whether it is gone or only late is not known")
        }
        _ if facts.may_hang() => {
            format!("{may_run} on {node}: its kubelet is alive and not ready, and may be unable to end them")
        }
        Some(Contact::Heard | Contact::Back) if facts.ended => {
            format!("{node} is alive and reports that its containers have ended")
        }
        Some(Contact::Heard | Contact::Back | Contact::NotReady) => {
            format!("{may_run} on {node}, which is alive: force does not wait for them to end")
        }
        None => format!("{may_run}: whether {node} is alive is not known"),
    }
}

/// Why it is as risky as it is; `doubted` if the node was given up and yet heartbeats.
fn reasons(
    pod: &Pod,
    assessment: &Assessment,
    facts: &Facts,
    budgets: Option<&[String]>,
    doubted: bool,
) -> Vec<String> {
    let node = &pod.spec.node_name;
    let mut reasons = Vec::new();
    match assessment.futile {
        Some(Futile::Mirror) if facts.mirror => {
            reasons.push(format!(
                "it is a mirror pod (static pod on {node}): deleting it does not end the process, and it comes back"
            ));
            return reasons;
        }
        Some(Futile::Mirror) => reasons.push(format!(
            "it is annotated as a mirror pod, though {node} does not own it: if that is true, deleting it does \
             not end the process"
        )),
        Some(Futile::Finalizers) => reasons.push(format!(
            "its finalizers ({}) keep the object, whatever the grace: force will not make it go",
            lasting_finalizers(pod, &assessment.ownership).join(", ")
        )),
        None => {}
    }
    if !facts.scheduled {
        reasons.push("it was never given to a node: nothing runs".into());
        return reasons;
    }
    if facts.finished {
        reasons.push("its containers have ended".into());
        return reasons;
    }
    reasons.push(on_its_node(node, facts, doubted));
    if pod.least_grace().is_some() {
        reasons.push(
            "its terminationGracePeriodSeconds is 0: any deletion that does not ask for more, by the control \
             plane too, removes it as force does"
                .into(),
        );
    }
    if facts.contact == Some(Contact::Fenced) {
        return reasons;
    }
    reasons.extend(relies(&assessment.ownership, node));
    for storage in &assessment.storage {
        match storage.exclusive {
            Some(true) => reasons.push(format!(
                "{} ({}) may be written by two nodes at once then, which can destroy it",
                storage.name, storage.detail
            )),
            None => {
                reasons.push(format!("what {} is, and who else may write it, is not known", storage.name));
            }
            Some(false) if storage.shared && facts.single != Some(false) => reasons.push(format!(
                "there should be one of it only, and the next one writes to {} ({}) too",
                storage.name, storage.detail
            )),
            Some(false) => {}
        }
    }
    for lease in &assessment.leads {
        reasons.push(format!("it holds the lease {lease}, by the holder's name: two may act as the leader"));
    }
    if facts.leads.is_none() {
        reasons.push("whether it is a leader is not known".into());
    }
    if facts.deletion == Deletion::NotBegun
        && facts.contact.is_none_or(|contact| !matches!(contact, Contact::Silent | Contact::Gone))
    {
        match budgets {
            Some(budgets) => reasons.extend(budgets.iter().map(|budget| {
                format!("the disruption budget {budget} allows no disruption now, and force does not ask it")
            })),
            None => reasons.push("whether a disruption budget forbids it is not known".into()),
        }
        reasons.extend(majority(pod, facts, &assessment.ownership));
    }
    if facts.deletion == Deletion::Stuck && facts.contact.is_some_and(Contact::is_alive) {
        reasons.push(format!("{node} is alive and does not get it ended: force hides what is wrong there"));
    }
    let lost = matches!(facts.contact, Some(Contact::Silent | Contact::Gone));
    match facts.successor {
        Successor::Never => reasons.push("it has no controller: nothing brings it back".into()),
        Successor::Early if !facts.is_guarded() && lost => {
            reasons.push("its controller does not wait for it: two at once do no harm".into());
        }
        _ => {}
    }
    if facts.nodeless {
        reasons.push("pod GC deletes it within a minute, without asking the machine".into());
    }
    reasons
}

/// What becomes of the majority of its set without it.
fn majority(pod: &Pod, facts: &Facts, ownership: &Ownership) -> Option<String> {
    let controller = ownership.controller.as_deref().unwrap_or("its controller");
    match (facts.no_majority, ownership.replicas) {
        (Some(true), Some(replicas)) => Some(format!(
            "without it {} of {} replicas of {controller} are ready: no majority",
            replicas.without(pod),
            replicas.wanted
        )),
        (None, _) if !matches!(ownership.why, Why::UnknownKind | Why::Unseen) => {
            Some(format!("whether a majority of {controller} is ready without it is not known"))
        }
        _ => None,
    }
}

/// What its controller relies on.
fn relies(ownership: &Ownership, node: &str) -> Option<String> {
    let controller = ownership.controller.as_deref().unwrap_or("its controller");
    let next = "starts the next pod as soon as the object is gone, and relies on there being one only";
    match ownership.why {
        Why::StatefulSet => Some(format!(
            "{controller} starts another of the same name as soon as the object is gone, and relies on there \
             being one only"
        )),
        Why::Recreate => Some(format!(
            "{controller} has the strategy Recreate, which means that two must not run at once; but it replaces \
             a pod as soon as that is deleted, by force or not"
        )),
        Why::CronJobForbids => Some(format!(
            "the concurrencyPolicy of the CronJob behind {controller} is Forbid, which means that two must not run \
             at once; but the Job replaces a pod as soon as that is deleted, by force or not"
        )),
        Why::JobFailed => Some(format!("{controller} (podReplacementPolicy Failed) {next}")),
        Why::DaemonSet => Some(format!(
            "{controller} starts the next pod on {node} as soon as the object is gone: both run there until \
             the kubelet has ended the first"
        )),
        Why::UnknownKind => Some(format!(
            "{} may rely on there being one only: what it does when the pod is deleted is not known",
            ownership.managed_by.as_deref().unwrap_or(controller)
        )),
        Why::Unseen => Some(format!(
            "whether {controller} relies on there being one only is not known: it may not be read, or does \
             not exist"
        )),
        Why::Rolling | Why::Unowned => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{safer::Safe, stopped};
    use jiff::Timestamp;
    use serde_json::{Value, json};

    #[test]
    fn a_name_is_a_part_of_a_holder_only_where_it_is_set_apart() {
        for (part, holder, elsewhere, at_home) in [
            ("db-0", "db-0", true, true),
            ("db-0", "db-0_4f1c", true, true),
            ("db-0", "default/db-0", true, true),
            ("db-0", "db-0.shop", true, true),
            ("db-0", "db-0-4f1c", false, true),
            ("db-0", "my-db-0", false, true),
            ("db-0", "db-01", false, false),
            ("web", "web-7d4b9c8f6d-x2x5z_1", false, true),
            ("", "anybody", false, false),
        ] {
            assert_eq!(is_part(part, holder, false), elsewhere, "'{part}' in '{holder}', elsewhere");
            assert_eq!(is_part(part, holder, true), at_home, "'{part}' in '{holder}', at home");
        }
    }

    fn now() -> ServerTime {
        ServerTime(Timestamp::from_second(1_000_000).unwrap())
    }

    fn ago(seconds: i64) -> String {
        format!("{:.6}", now().0 - SignedDuration::from_secs(seconds))
    }

    fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    fn named<T: serde::de::DeserializeOwned>(values: Value) -> BTreeMap<String, T> {
        read(values)
    }

    /// Of which version Kubernetes has this kind.
    fn version(kind: &str) -> &str {
        match kind {
            "StatefulSet" | "ReplicaSet" | "DaemonSet" => "apps/v1",
            "Job" => "batch/v1",
            "ReplicationController" | "Node" => "v1",
            _ => "example.com/v1",
        }
    }

    /// A pod of `kind` on node-1, deleted so many seconds ago.
    fn pod(kind: &str, deleted: Option<i64>, volumes: &Value) -> Pod {
        let owners = match kind {
            "" => json!([]),
            kind => {
                json!([{ "apiVersion": version(kind), "kind": kind, "name": "db", "uid": "u", "controller": true }])
            }
        };
        let until = deleted.map(|seconds| ago(seconds - 30));
        read(json!({
            "metadata": {
                "name": "db-0", "namespace": "shop", "uid": "5e1f", "ownerReferences": owners, "labels": { "app": "db" },
                "deletionTimestamp": until, "deletionGracePeriodSeconds": until.as_ref().map(|_| 30),
            },
            "spec": { "nodeName": "node-1", "volumes": volumes },
            "status": { "phase": "Running" },
        }))
    }

    /// node-1 with a heartbeat of that age, and what the node controller would say of it.
    fn around(age: i64) -> Surroundings {
        let status = if age > 50 { "Unknown" } else { "True" };
        let ready = json!({ "type": "Ready", "status": status });
        Surroundings {
            nodes: Some(named(json!({ "node-1": { "status": { "conditions": [ready] } } }))),
            heartbeats: Some(named(json!({ "node-1": { "spec": { "renewTime": ago(age) } } }))),
            maintenance: Some(BTreeMap::new()),
            leaders: Some(Vec::new()),
            claims: Some(BTreeMap::new()),
            disks: Some(BTreeMap::new()),
            attachments: Some(Vec::new()),
            budgets: Some(Vec::new()),
            workloads: workloads(),
            unread: BTreeSet::new(),
        }
    }

    /// The controllers called 'db', of each kind, that run two for a while without harm where they can.
    fn workloads() -> BTreeMap<(Kind, String), Workload> {
        let one = |kind: Kind| {
            let uid = if kind == Kind::Deployment { "d" } else { "u" };
            let spec = json!({ "replicas": 3, "parallelism": 3 });
            let metadata = json!({ "name": "db", "namespace": "shop", "uid": uid });
            let workload = json!({ "metadata": metadata, "spec": spec, "status": { "readyReplicas": 3 } });
            ((kind, "shop/db".to_owned()), read(workload))
        };
        Kind::ALL.into_iter().map(one).collect()
    }

    /// The same, with node-1 declared to be off.
    fn fenced(mut around: Surroundings) -> Surroundings {
        let taint =
            json!({ "key": "node.kubernetes.io/out-of-service", "effect": "NoExecute", "timeAdded": ago(0) });
        around.nodes.as_mut().unwrap().get_mut("node-1").unwrap().spec.taints.push(read(taint));
        around
    }

    fn ready(mut pod: Pod) -> Pod {
        pod.status.conditions = read(json!([{ "type": "Ready", "status": "True" }]));
        pod
    }

    fn risk_of(pod: &Pod, around: &Surroundings) -> Risk {
        Assessment::of(pod, around, now()).risk
    }

    #[test]
    fn owners() {
        let none = json!([]);
        for (kind, silent, heard) in [
            ("StatefulSet", Risk::Critical, Risk::Critical),
            ("ReplicaSet", Risk::Low, Risk::Medium),
            // Whether it has others that are ready is not known where this one is.
            ("ReplicationController", Risk::Low, Risk::High),
            ("Job", Risk::Low, Risk::Medium),
            ("DaemonSet", Risk::Critical, Risk::Critical),
            ("", Risk::Low, Risk::Medium),
            // An operator's own kind: what it relies on is not known.
            ("PostgresCluster", Risk::Critical, Risk::Critical),
        ] {
            let pod = ready(pod(kind, None, &none));
            assert_eq!((risk_of(&pod, &around(600)), risk_of(&pod, &around(5))), (silent, heard), "{kind}");
        }
    }

    /// The owner's owner decides: a Deployment that never runs two.
    #[test]
    fn a_deployment_that_recreates_is_one() {
        let none = json!([]);
        let pod = pod("ReplicaSet", None, &none);
        for (strategy, silent, told) in [
            ("RollingUpdate", Risk::Low, "two at once do no harm"),
            ("Recreate", Risk::Critical, "Deployment/db has the strategy Recreate"),
        ] {
            let mut around = around(600);
            let set = around.workloads.get_mut(&(Kind::ReplicaSet, "shop/db".into())).unwrap();
            set.metadata.owner_references = read(json!([
                { "apiVersion": "apps/v1", "kind": "Deployment", "name": "db", "uid": "d", "controller": true },
            ]));
            let deployment = json!({
                "metadata": { "name": "db", "namespace": "shop", "uid": "d" },
                "spec": { "replicas": 3, "strategy": { "type": strategy } },
            });
            around.workloads.insert((Kind::Deployment, "shop/db".into()), read(deployment));
            let assessment = Assessment::of(&pod, &around, now());
            assert_eq!(assessment.risk, silent, "{strategy}");
            assert!(
                assessment.reasons.iter().any(|reason| reason.contains(told)),
                "{:?}",
                assessment.reasons
            );
            let owner = ("owner", "ReplicaSet/db, Deployment/db".to_owned());
            assert!(assessment.evidence.contains(&owner), "{:?}", assessment.evidence);
            around.workloads.remove(&(Kind::Deployment, "shop/db".into()));
            around.unread.insert(Kind::Deployment);
            let blind = Assessment::of(&pod, &around, now());
            assert_eq!((blind.risk, &*blind.missing), (Risk::Critical, &["deployments.apps"][..]));
        }
    }

    #[test]
    fn the_evidence_counts_who_is_left() {
        let none = json!([]);
        for (ready, told) in [
            (3, "3 of 3 are ready without this one: a majority"),
            (2, "2 of 3 are ready without this one: a majority"),
            (1, "1 of 3 are ready without this one: no majority"),
        ] {
            let mut around = around(5);
            around.workloads.get_mut(&(Kind::StatefulSet, "shop/db".into())).unwrap().status.ready_replicas =
                ready;
            let assessment = Assessment::of(&pod("StatefulSet", None, &none), &around, now());
            assert!(
                assessment.evidence.contains(&("replicas", told.to_owned())),
                "{:?}",
                assessment.evidence
            );
        }
    }

    /// What a set loses with one of its pods.
    #[test]
    fn a_set_is_not_left_without_a_majority() {
        let none = json!([]);
        let with = |age, kind, wanted, ready: i64| {
            let mut around = around(age);
            let set = json!({
                "metadata": { "name": "db", "namespace": "shop", "uid": "u" },
                "spec": { "replicas": wanted }, "status": { "readyReplicas": ready },
            });
            around.workloads.insert((kind, "shop/db".into()), read(set));
            around
        };
        let (stateful, rolling) = (Kind::StatefulSet, Kind::ReplicaSet);
        let evict = Some(Safe::Evict);
        for (kind, wanted, now_ready, risk, takes) in [
            (rolling, 3, 3, Risk::Medium, evict),
            (rolling, 3, 2, Risk::High, None),
            // Of two one is always missing then.
            (rolling, 2, 2, Risk::High, evict),
            (rolling, 2, 1, Risk::High, None),
            (rolling, 1, 1, Risk::Medium, evict),
            // A majority makes nothing safer that must not run twice.
            (stateful, 3, 3, Risk::Critical, evict),
            (stateful, 3, 2, Risk::Critical, None),
            (stateful, 5, 3, Risk::Critical, None),
            (stateful, 5, 4, Risk::Critical, evict),
        ] {
            let pod = ready(pod(kind.name(), None, &none));
            let around = with(5, kind, wanted, now_ready);
            let assessment = Assessment::of(&pod, &around, now());
            let found = (assessment.risk, assessment.safer.iter().find_map(|way| way.takes));
            assert_eq!(found, (risk, takes), "{kind:?} {wanted} {now_ready}: {assessment:#?}");
            let told =
                format!("without it {} of {wanted} replicas of {}/db are ready", now_ready - 1, kind.name());
            let lost = wanted > 1 && (now_ready - 1) * 2 <= wanted;
            assert_eq!(assessment.reasons.iter().any(|reason| reason.starts_with(&told)), lost);
            if takes.is_none() {
                let wait = format!(
                    "kubectl wait --for=jsonpath='{{.status.readyReplicas}}'={wanted} {}/db -n shop --timeout=300s",
                    kind.name().to_lowercase()
                );
                assert_eq!(assessment.safer[0].command.as_deref(), Some(&*wait));
            }
            // One that is not ready takes nothing away from a node that is well.
            let mut unready = pod.clone();
            unready.status.conditions.clear();
            assert!(risk_of(&unready, &around) <= risk);
            let takes = Assessment::of(&unready, &around, now()).safer.iter().find_map(|way| way.takes);
            assert_eq!(takes, evict);
        }
        // Of several in one command, each by what those before it leave.
        let pod = ready(pod("ReplicaSet", None, &none));
        let mut around = with(5, rolling, 5, 5);
        let risks: Vec<Risk> = (0..3)
            .map(|_| {
                let risk = risk_of(&pod, &around);
                around.spend(&pod);
                risk
            })
            .collect();
        assert_eq!(risks, [Risk::Medium, Risk::Medium, Risk::High]);
        // A set that may not be read may have none.
        let mut around = self::around(5);
        around.workloads.clear();
        around.unread.insert(Kind::StatefulSet);
        let assessment = Assessment::of(&ready(self::pod("StatefulSet", None, &none)), &around, now());
        let told = "whether a majority of StatefulSet/db is ready without it is not known".to_owned();
        assert!(assessment.reasons.contains(&told), "{:?}", assessment.reasons);
    }

    #[test]
    fn volumes_make_a_stateless_pod_critical() {
        let claim = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
        let with = |modes: &str, source: Value| {
            let mut around = around(600);
            let claim = json!({ "spec": { "accessModes": [modes], "volumeName": "pv-1" } });
            around.claims = Some(named(json!({ "shop/data": claim })));
            let mut spec = json!({ "accessModes": [modes] });
            spec.as_object_mut().unwrap().extend(source.as_object().cloned().unwrap());
            around.disks = Some(named(json!({ "pv-1": { "spec": spec } })));
            around
        };
        let csi = || json!({ "csi": { "driver": "ebs" } });
        let pod = pod("ReplicaSet", None, &claim);
        for (around, risk) in [
            (with("ReadWriteOnce", csi()), Risk::Critical),
            (with("ReadWriteOncePod", csi()), Risk::Critical),
            (with("ReadWriteMany", csi()), Risk::Low),
            (with("ReadOnlyMany", csi()), Risk::Low),
            (with("ReadWriteMany", json!({ "iscsi": {} })), Risk::Critical),
            (with("ReadWriteMany", json!({ "rbd": {} })), Risk::Critical),
            (
                with("ReadWriteMany", json!({ "csi": { "driver": "ebs" }, "volumeMode": "Block" })),
                Risk::Critical,
            ),
            (with("ReadOnlyMany", json!({ "csi": { "driver": "ebs" }, "volumeMode": "Block" })), Risk::Low),
            (with("ReadWriteMany", json!({ "cephfs": {} })), Risk::Low),
            (with("ReadWriteOnce", json!({ "local": {} })), Risk::Critical),
            (with("ReadWriteOncePod", json!({ "hostPath": {} })), Risk::Critical),
            // What may not be seen, or is not there, could be anything.
            (Surroundings { claims: None, ..with("ReadWriteMany", csi()) }, Risk::Critical),
            (Surroundings { disks: None, ..with("ReadWriteMany", csi()) }, Risk::Critical),
            (Surroundings { claims: Some(BTreeMap::new()), ..with("ReadWriteMany", csi()) }, Risk::Critical),
            (Surroundings { disks: Some(BTreeMap::new()), ..with("ReadWriteMany", csi()) }, Risk::Critical),
            (Surroundings { attachments: None, ..with("ReadWriteMany", csi()) }, Risk::Low),
        ] {
            assert_eq!(risk_of(&pod, &around), risk, "{around:?}");
        }
        let mut attached = with("ReadWriteOnce", csi());
        attached.attachments = Some(vec![read(
            json!({ "spec": { "nodeName": "node-1", "source": { "persistentVolumeName": "pv-1" } } }),
        )]);
        let assessment = Assessment::of(&pod, &attached, now());
        assert_eq!(assessment.storage[0].detail, "RWO, ebs, attached to node-1");
        for (volume, several, single) in [
            (json!({ "name": "x", "iscsi": {} }), Risk::Critical, Risk::Critical),
            (json!({ "name": "x", "csi": { "driver": "nfs.csi.k8s.io" } }), Risk::Critical, Risk::Critical),
            (json!({ "name": "x", "csi": { "driver": "secrets-store.csi.k8s.io" } }), Risk::Low, Risk::Low),
            // Written by all of several anyway; but one alone relies on being it.
            (json!({ "name": "x", "hostPath": { "path": "/d" } }), Risk::Low, Risk::Critical),
            (json!({ "name": "x", "emptyDir": {} }), Risk::Low, Risk::Low),
        ] {
            let inline = self::pod("ReplicaSet", None, &json!([volume]));
            assert_eq!(risk_of(&inline, &around(600)), several, "{volume}");
            let mut one = around(600);
            let set = json!({ "metadata": { "name": "db", "namespace": "shop", "uid": "u" }, "spec": { "replicas": 1 } });
            one.workloads.insert((Kind::ReplicaSet, "shop/db".into()), read(set));
            assert_eq!(risk_of(&inline, &one), single, "{volume}, single");
        }
    }

    /// A silent node, and a lease that this one holds.
    fn led(namespace: &str, holder: &str) -> Surroundings {
        let lease = json!({ "metadata": { "name": "l", "namespace": namespace }, "spec": { "holderIdentity": holder } });
        Surroundings { leaders: Some(vec![read(lease)]), ..around(600) }
    }

    /// What a process in the pod sees as its host name.
    #[test]
    fn leaders_go_by_the_host_name_of_the_pod() {
        let none = json!([]);
        let mut pod = pod("ReplicaSet", None, &none);
        pod.metadata.uid = "3b3c-77".into();
        assert_eq!(risk_of(&pod, &led("shop", "manager-3b3c-77")), Risk::Critical);
        assert_eq!(risk_of(&pod, &led("shop", "manager-3b3c-778")), Risk::Low);
        pod.spec.hostname = "boss".into();
        assert_eq!(risk_of(&pod, &led("shop", "boss_0f8f")), Risk::Critical);
        let long = format!("{}-{}", "a".repeat(62), "b".repeat(20));
        let cut = "a".repeat(62); // and no '-' at its end
        for (name, hostname) in [(long.as_str(), ""), ("x", long.as_str())] {
            pod.metadata.name = name.to_owned();
            pod.spec.hostname = hostname.to_owned();
            assert_eq!(
                risk_of(&pod, &led("shop", &format!("{cut}_0f8f"))),
                Risk::Critical,
                "{name} {hostname}"
            );
            assert_eq!(risk_of(&pod, &led("shop", &format!("{}_0f8f", &cut[1..]))), Risk::Low);
        }
    }

    #[test]
    fn leaders_and_budgets() {
        let none = json!([]);
        let pod = pod("ReplicaSet", None, &none);
        for (holder, risk) in [
            ("db-0_0f8f", Risk::Critical),
            ("db-0", Risk::Critical),
            ("db-01_0f8f", Risk::Low),
            ("xdb-0_0f8f", Risk::Low),
            ("other_db-0", Risk::Critical),
            ("shop/db-0", Risk::Critical),
            ("db-0.shop", Risk::Critical),
            ("db-0-7e5a", Risk::Critical),
            ("a-db-0-7e5a", Risk::Critical),
            ("node-1_0f8f", Risk::Low),
            ("", Risk::Low),
        ] {
            assert_eq!(risk_of(&pod, &led("shop", holder)), risk, "{holder}");
        }
        // Elsewhere, a name that only ends like this one is another's.
        for (holder, risk) in
            [("db-0_0f8f", Risk::Critical), ("shop/db-0", Risk::Critical), ("a-db-0_7e5a", Risk::Low)]
        {
            assert_eq!(risk_of(&pod, &led("other", holder)), risk, "{holder}");
        }
        let mut at_home = pod.clone();
        at_home.spec.host_network = true;
        for (namespace, holder, risk) in [
            ("shop", "node-1_0f", Risk::Critical),
            ("shop", "node-1-xYzAbC", Risk::Critical),
            ("shop", "node-1", Risk::Critical),
            ("shop", "node-10_0f", Risk::Low),
            ("other", "node-1_0f", Risk::Low),
        ] {
            let around = led(namespace, holder);
            assert_eq!((risk_of(&at_home, &around), risk_of(&pod, &around)), (risk, Risk::Low), "{holder}");
        }
        for (namespace, app, allowed, risk) in [
            ("shop", "db", 0, Risk::High),
            ("shop", "db", 1, Risk::Medium),
            ("shop", "web", 0, Risk::Medium),
            ("other", "db", 0, Risk::Medium),
        ] {
            let budget = json!({
                "metadata": { "name": "b", "namespace": namespace },
                "spec": { "selector": { "matchLabels": { "app": app } } },
                "status": { "disruptionsAllowed": allowed },
            });
            let around = Surroundings { budgets: Some(vec![read(budget)]), ..around(5) };
            assert_eq!(risk_of(&pod, &around), risk, "{namespace} {app} {allowed}");
        }
    }

    #[test]
    fn what_may_not_be_seen_is_named_and_counted() {
        let none = json!([]);
        let (stateless, stateful) = (pod("ReplicaSet", None, &none), pod("StatefulSet", None, &none));
        for (around, what, less, more) in [
            (Surroundings { nodes: None, ..around(5) }, "nodes", Risk::Medium, Risk::Critical),
            (
                Surroundings { heartbeats: None, ..around(5) },
                "leases in kube-node-lease",
                Risk::Medium,
                Risk::Critical,
            ),
            // It may have come back since it was given up.
            (
                Surroundings { heartbeats: None, ..around(600) },
                "leases in kube-node-lease",
                Risk::Medium,
                Risk::Critical,
            ),
            (
                Surroundings { heartbeats: None, ..fenced(around(600)) },
                "leases in kube-node-lease",
                Risk::Medium,
                Risk::Critical,
            ),
            (
                Surroundings { leaders: None, ..around(600) },
                "leases of leader elections",
                Risk::Critical,
                Risk::Critical,
            ),
            (
                Surroundings { budgets: None, ..around(5) },
                "poddisruptionbudgets.policy",
                Risk::High,
                Risk::Critical,
            ),
        ] {
            for (pod, risk) in [(&stateless, less), (&stateful, more)] {
                let assessment = Assessment::of(pod, &around, now());
                assert_eq!(assessment.risk, risk, "{what}");
                assert_eq!(assessment.missing, [what]);
                let told = assessment
                    .evidence
                    .iter()
                    .any(|(label, text)| *label == "not seen" && text.contains(what));
                assert!(told, "{:?}", assessment.evidence);
            }
        }
        let nothing = Surroundings::default();
        assert_eq!(risk_of(&stateless, &nothing), Risk::Critical);
        let way = |pod: &Pod, around: &Surroundings| Assessment::of(pod, around, now()).safer[0].clone();
        assert_eq!(way(&stateful, &nothing).takes, None);
        let ways = Assessment::of(&stateless, &nothing, now()).safer;
        assert_eq!(
            (ways[0].takes, ways[1].command.as_deref()),
            (None, Some("kubectl get replicaset/db -n shop -o yaml"))
        );
        let unseen = Surroundings { nodes: None, ..around(5) };
        assert_eq!(way(&stateless, &unseen).takes, Some(Safe::Delete));
        // What is deleted there may be completed by pod GC.
        let unheard = Surroundings { heartbeats: None, ..fenced(around(600)) };
        for pod in [&stateless, &stateful] {
            assert!(Assessment::of(pod, &unheard, now()).safer.iter().all(|way| way.takes.is_none()));
        }
        let gone = Surroundings { heartbeats: None, nodes: Some(BTreeMap::new()), ..around(600) };
        assert!(way(&stateful, &gone).what.starts_with("create the node object again"));
        let stuck = pod("StatefulSet", Some(600), &none);
        assert_eq!(Assessment::of(&stuck, &nothing, now()).safer[0].takes, None);
    }

    #[test]
    fn what_force_does_not_help_with() {
        let none = json!([]);
        let mut kept = pod("ReplicaSet", Some(600), &none);
        kept.metadata.finalizers.push("example.com/hold".into());
        let assessment = Assessment::of(&kept, &around(5), now());
        assert_eq!(assessment.futile, Some(Futile::Finalizers));
        assert!(assessment.reasons[0].contains("example.com/hold"), "{:?}", assessment.reasons);
        assert_eq!(assessment.safer.len(), 1);
        assert_eq!(assessment.safer[0].takes, None);

        let mirror: Pod = read(json!({
            "metadata": {
                "name": "etcd-x", "annotations": { "kubernetes.io/config.mirror": "h" }, "finalizers": ["f"],
                "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": "node-1", "controller": true }],
            },
            "spec": { "nodeName": "node-1" },
        }));
        let assessment = Assessment::of(&mirror, &around(5), now());
        assert_eq!((assessment.futile, assessment.risk), (Some(Futile::Mirror), Risk::Low));
    }

    /// The mark alone makes nothing safer.
    #[test]
    fn who_only_claims_to_be_a_mirror_is_judged_as_any_other() {
        let none = json!([]);
        for kind in ["StatefulSet", "ReplicaSet", "PostgresCluster", ""] {
            let plain = pod(kind, None, &none);
            let mut marked = json!({ "metadata": {
                "name": "db-0", "namespace": "shop", "annotations": { "kubernetes.io/config.mirror": "h" },
            }, "spec": { "nodeName": "node-1" }, "status": { "phase": "Running" } });
            if !kind.is_empty() {
                marked["metadata"]["ownerReferences"] = json!([{ "apiVersion": version(kind), "kind": kind, "name": "db", "uid": "u", "controller": true }]);
            }
            let marked: Pod = read(marked);
            for age in [5, 45, 600] {
                let assessment = Assessment::of(&marked, &around(age), now());
                assert_eq!(assessment.risk, risk_of(&plain, &around(age)), "{kind} {age}");
                assert_eq!(assessment.futile, Some(Futile::Mirror));
                assert!(assessment.reasons.len() > 1, "{:?}", assessment.reasons);
            }
        }
    }

    /// A fence that is not one: the machine is on.
    #[test]
    fn a_fresh_heartbeat_is_believed_more_than_a_taint() {
        let none = json!([]);
        let (stateless, stateful) = (pod("ReplicaSet", None, &none), pod("StatefulSet", None, &none));
        let heartbeats = || Some(named(json!({ "node-1": { "spec": { "renewTime": ago(0) } } })));
        let unknown = || Surroundings { heartbeats: heartbeats(), ..around(600) };
        for around in [unknown(), fenced(unknown())] {
            assert_eq!(
                (risk_of(&stateless, &around), risk_of(&stateful, &around)),
                (Risk::Medium, Risk::Critical)
            );
            let reasons = Assessment::of(&stateful, &around, now()).reasons;
            assert!(reasons[0].contains("it heartbeats"), "{reasons:?}");
        }
        assert_eq!(risk_of(&stateful, &fenced(around(600))), Risk::Low);
    }

    /// That the object of a node is gone does not say that its machine is.
    #[test]
    fn a_node_is_gone_when_nothing_is_heard_of_it() {
        let none = json!([]);
        let (stateless, stateful) = (pod("ReplicaSet", None, &none), pod("StatefulSet", None, &none));
        let without = |around: Surroundings| Surroundings { nodes: Some(BTreeMap::new()), ..around };
        for (around, less, more) in [
            // An old heartbeat tells no more than none does: the machine may run, cut off.
            (without(around(600)), Risk::Low, Risk::Critical),
            (without(around(61)), Risk::Low, Risk::Critical),
            (
                without(Surroundings { heartbeats: Some(BTreeMap::new()), ..around(5) }),
                Risk::Low,
                Risk::Critical,
            ),
            (without(around(60)), Risk::Medium, Risk::Critical),
            (without(around(5)), Risk::Medium, Risk::Critical),
            (without(Surroundings { heartbeats: None, ..around(600) }), Risk::Medium, Risk::Critical),
        ] {
            assert_eq!(
                (risk_of(&stateless, &around), risk_of(&stateful, &around)),
                (less, more),
                "{around:?}"
            );
        }
        let assessment = Assessment::of(&stateful, &without(around(5)), now());
        let told = "node-1 does not exist, but its kubelet was heard of 5s ago".to_owned();
        assert!(assessment.evidence.contains(&("node", told)), "{:?}", assessment.evidence);
    }

    /// The first thing offered, and what `--safe` makes of it.
    #[test]
    fn the_safest_way_first() {
        let none = json!([]);
        let gone = || Surroundings { nodes: Some(BTreeMap::new()), ..around(600) };
        let fenced = || fenced(around(600));
        let vanished = || Surroundings { heartbeats: Some(BTreeMap::new()), ..gone() };
        let finished: Pod =
            read(json!({ "spec": { "nodeName": "node-1" }, "status": { "phase": "Succeeded" } }));
        let pending: Pod = read(json!({ "status": { "phase": "Pending" } }));
        let recreate = "echo '{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"labels\":{\"kubernetes.io/hostname\":\"node-1\"},\"name\":\"node-1\"}}' | kubectl create -f -";
        let stateful = |deleted| pod("StatefulSet", deleted, &none);
        let stateless = |deleted| pod("ReplicaSet", deleted, &none);
        let not_ready = || {
            let mut around = around(5);
            around.nodes.as_mut().unwrap().get_mut("node-1").unwrap().status.conditions[0].status =
                "False".into();
            around
        };
        let back = || self::fenced(not_ready());
        let mut one_job = not_ready();
        let one = json!({ "metadata": { "name": "db", "namespace": "shop", "uid": "u" } });
        one_job.workloads.insert((Kind::Job, "shop/db".into()), read(one));
        let host_path = json!([{ "name": "data", "hostPath": { "path": "/data" } }]);
        let job = pod("Job", None, &host_path);
        for (pod, around, takes, command) in [
            (&finished, around(600), Some(Safe::Delete), "kubectl delete pod"),
            (&pending, around(600), Some(Safe::Delete), "kubectl delete pod"),
            // Pod GC is what starts the second one.
            (&stateful(None), gone(), None, recreate),
            (&stateful(None), vanished(), None, recreate),
            (&stateless(None), vanished(), Some(Safe::Await), "kubectl wait --for=delete pod/db-0 -n shop"),
            (&stateful(Some(600)), fenced(), Some(Safe::Await), "kubectl wait"),
            (&stateful(None), fenced(), Some(Safe::Delete), "kubectl delete pod db-0 -n shop"),
            (
                &stateful(None),
                around(5),
                Some(Safe::Evict),
                "kubectl lease force-delete pod db-0 -n shop --safe",
            ),
            (
                &stateful(Some(5)),
                around(5),
                Some(Safe::Await),
                "kubectl wait --for=delete pod/db-0 -n shop --timeout=145s",
            ),
            (&stateful(Some(600)), around(5), None, "kubectl describe pod db-0 -n shop"),
            (&stateful(Some(600)), around(600), None, "kubectl lease partitions node-1 -w"),
            (&stateful(None), around(45), None, "kubectl lease partitions node-1 -w"),
            // An ordinary deletion starts the next one at once.
            (&stateless(None), around(600), Some(Safe::Replace), "kubectl delete pod db-0 -n shop"),
            // What is Terminating there is deleted by force until the taint is off.
            (&stateful(None), back(), None, "kubectl lease fence node-1 --undo"),
            (&stateful(Some(600)), back(), None, "kubectl lease fence node-1 --undo"),
            (&stateful(Some(600)), not_ready(), None, "kubectl describe node node-1"),
            // A StatefulSet waits for its end; a Job does not, and both would write to the same data.
            (&stateful(None), not_ready(), Some(Safe::Evict), "kubectl describe node node-1"),
            (&job, not_ready(), Some(Safe::Evict), "kubectl describe node node-1"),
            (&job, one_job, None, "kubectl patch pod db-0 -n shop --type=merge"),
        ] {
            let assessment = Assessment::of(pod, &around, now());
            let first = &assessment.safer[0];
            assert_eq!(
                assessment.safer.iter().find_map(|way| way.takes).or(first.takes),
                takes,
                "{assessment:#?}"
            );
            assert!(first.command.as_deref().unwrap().starts_with(command), "{first:?}");
        }
        let ways = Assessment::of(&stateful(Some(600)), &not_ready(), now()).safer;
        assert_eq!(ways[1].command.as_deref(), Some("kubectl lease fence node-1"));
        let ways = Assessment::of(&pod("StatefulSet", Some(600), &none), &around(600), now()).safer;
        assert_eq!(ways[1].command.as_deref(), Some("kubectl lease fence node-1"));
        for (owner, what) in [
            ("ReplicaSet", "leave it: its replacement does not wait for it"),
            ("", "leave it, or bring node-1 back: nothing starts it elsewhere"),
        ] {
            let ways = Assessment::of(&pod(owner, Some(600), &none), &around(600), now()).safer;
            assert_eq!((ways[0].what.as_str(), &ways[0].command), (what, &None));
        }
    }

    /// What becomes of a pod when its node is well again depends on whether it was deleted.
    #[test]
    fn a_pod_that_is_not_deleted_runs_on() {
        let none = json!([]);
        let mut not_ready = around(5);
        not_ready.nodes.as_mut().unwrap().get_mut("node-1").unwrap().status.conditions[0].status =
            "False".into();
        let stays = json!([{ "operator": "Exists" }]);
        for (deleted, tolerations, then) in [
            (None, &none, "the pod, if it is not evicted by then, runs on"),
            (None, &stays, "the pod, which is not deleted, then runs on"),
            (Some(5), &none, "its kubelet then ends the pod in order"),
            (Some(600), &none, "its kubelet then ends the pod in order"),
        ] {
            for around in [&not_ready, &around(600)] {
                let mut pod = pod("StatefulSet", deleted, &none);
                pod.spec = read(json!({ "nodeName": "node-1", "tolerations": tolerations }));
                let ways = Assessment::of(&pod, around, now()).safer;
                assert!(ways[0].what.ends_with(then), "{deleted:?} {ways:?}");
            }
        }
    }

    /// What is deleted is replaced at once, beside it: then its controller has to end it.
    #[test]
    #[allow(clippy::too_many_lines)] // a table
    fn one_that_would_be_doubled_by_its_deletion_is_ended_by_its_controller() {
        let volume = json!([{ "name": "x", "hostPath": { "path": "/d" } }]);
        let none = json!([]);
        let with = |kind: Kind, spec: &Value, above: Option<(Kind, &Value)>| {
            let mut around = around(5);
            let owner = above.map(|(kind, _)| {
                let version = if kind == Kind::CronJob { "batch/v1" } else { "apps/v1" };
                json!([{ "apiVersion": version, "kind": kind.name(), "name": "up", "uid": "up", "controller": true }])
            });
            let metadata = json!({ "name": "db", "namespace": "shop", "uid": "u", "ownerReferences": owner.unwrap_or(json!([])) });
            around
                .workloads
                .insert((kind, "shop/db".into()), read(json!({ "metadata": metadata, "spec": spec })));
            if let Some((kind, spec)) = above {
                let metadata = json!({ "name": "up", "namespace": "shop", "uid": "up" });
                around
                    .workloads
                    .insert((kind, "shop/up".into()), read(json!({ "metadata": metadata, "spec": spec })));
            }
            around
        };
        let selector = json!({ "matchLabels": { "app": "db" } });
        let one = json!({ "replicas": 1, "selector": selector });
        let (recreate, forbid) = (
            json!({ "strategy": { "type": "Recreate" }, "selector": selector }),
            json!({ "concurrencyPolicy": "Forbid" }),
        );
        let of_job = json!({ "selector": selector });
        let indexed = json!({ "selector": selector, "completionMode": "Indexed", "parallelism": 3 });
        // All of them, but not what has ended before.
        let gone = "kubectl wait --for=delete pod -l app=db \
                    --field-selector=status.phase!=Failed,status.phase!=Succeeded -n shop --timeout=150s";
        let suspend = |on| {
            let told = if on { stopped::stop } else { stopped::bring_back };
            told("Job/db", "shop", 1)
        };
        let scale = |of: &str, to| match to {
            0 => stopped::stop(of, "shop", 1),
            to => stopped::bring_back(of, "shop", to),
        };
        let chain = |first: String, last: &str| (format!("{first} && {gone} && {last}"), last.to_owned());
        let scaled = |of: &str| chain(scale(of, 0), &scale(of, 1));
        let suspended = chain(suspend(true), &suspend(false));
        let restart = ("kubectl rollout restart deployment/up -n shop".to_owned(), String::new());
        let look = |at: &str| (format!("kubectl get {at} -n shop -o yaml"), String::new());
        let (plain, job) = (with(Kind::ReplicaSet, &one, None), with(Kind::Job, &of_job, None));
        let of = |spec| with(Kind::ReplicaSet, &one, Some((Kind::Deployment, spec)));
        let forbidden = with(Kind::Job, &of_job, Some((Kind::CronJob, &forbid)));
        let unselected = json!({ "replicas": 1 });
        let stopped = json!({ "replicas": 0, "selector": selector });
        // With no grace the objects go before the containers have ended: what to do first, and last.
        let by_hand = |first: String, last: String| (first, last);
        let scaled_by_hand = |of: &str| by_hand(scale(of, 0), scale(of, 1));
        for (kind, volumes, around, chained, no_grace) in [
            ("ReplicaSet", &volume, plain, scaled("replicaset/db"), scaled_by_hand("replicaset/db")),
            ("ReplicaSet", &volume, of(&one), scaled("deployment/up"), scaled_by_hand("deployment/up")),
            ("ReplicaSet", &none, of(&recreate), restart, scaled_by_hand("deployment/up")),
            ("Job", &volume, job, suspended.clone(), by_hand(suspend(true), suspend(false))),
            ("Job", &none, forbidden, suspended.clone(), by_hand(suspend(true), suspend(false))),
            (
                "Job",
                &volume,
                with(Kind::Job, &indexed, None),
                suspended,
                by_hand(suspend(true), suspend(false)),
            ),
            // Nothing is begun that cannot be waited for, or is not known to be brought back.
            ("ReplicaSet", &volume, of(&unselected), look("deployment/up"), look("deployment/up")),
            ("ReplicaSet", &volume, of(&stopped), look("deployment/up"), look("deployment/up")),
            (
                "ReplicationController",
                &volume,
                around(5),
                look("replicationcontroller/db"),
                look("replicationcontroller/db"),
            ),
            ("Node", &volume, around(5), look("node/db"), look("node/db")),
        ] {
            for (grace, (command, last)) in [(None, chained), (Some(0), no_grace)] {
                let mut pod = ready(pod(kind, None, volumes));
                pod.spec.termination_grace_period_seconds = grace;
                let Assessment { risk, safer, .. } = Assessment::of(&pod, &around, now());
                assert_eq!(
                    (risk, safer[0].command.as_deref()),
                    (Risk::Critical, Some(&*command)),
                    "{grace:?}"
                );
                assert!(safer.iter().all(|way| way.takes.is_none()), "{safer:?}");
                // What is left to type, if the wait fails or there is none.
                let left = last.is_empty() && grace.is_none()
                    || safer[0].what.contains("the last command of the line") && command.ends_with(&last);
                let stops = safer[0].what.contains("which ends all its pods (")
                    || safer[0].what.contains("which ends all its pods, and ");
                assert_eq!(stops, !last.is_empty(), "{safer:?}");
                let by = "such as GitOps or an operator, has to be stopped first";
                assert_eq!(safer[0].what.contains(by), stops, "{safer:?}");
                let listed = safer[0].what.ends_with("with what 'kubectl lease partitions' lists for it");
                assert_eq!(
                    (left, listed),
                    (grace.is_none(), grace.is_some() && !last.is_empty()),
                    "{safer:?}"
                );
                // Nothing brings it back before it was told to run none.
                assert!(last.is_empty() || !safer[0].what.contains(&last), "{safer:?}");
                let by_hand = safer[0].what.contains("crictl ps --label io.kubernetes.pod.uid=5e1f");
                assert_eq!(by_hand, grace.is_some() && !last.is_empty(), "{safer:?}");
            }
        }
        // One that is paused cannot be restarted, and what owns it is to be stopped before.
        let paused = json!({ "strategy": { "type": "Recreate" }, "selector": selector, "paused": true });
        let (command, _) = scaled("deployment/up");
        let mut pod_of_it = ready(pod("ReplicaSet", None, &none));
        let ways = Assessment::of(&pod_of_it, &of(&paused), now()).safer;
        assert_eq!(ways[0].command.as_deref(), Some(&*command));
        let mut managed = of(&recreate);
        let deployment = managed.workloads.get_mut(&(Kind::Deployment, "shop/up".into())).unwrap();
        deployment.metadata.owner_references = read(
            json!([{ "apiVersion": "x.example/v1", "kind": "Shop", "name": "s", "uid": "s", "controller": true }]),
        );
        for grace in [None, Some(0)] {
            pod_of_it.spec.termination_grace_period_seconds = grace;
            let Assessment { risk, safer, reasons, .. } = Assessment::of(&pod_of_it, &managed, now());
            assert_eq!(risk, Risk::Critical);
            assert!(safer[0].what.contains("(stop Shop/s first, which owns it, and"), "{safer:?}");
            assert!(reasons.iter().any(|reason| reason.starts_with("Shop/s may rely")), "{reasons:?}");
        }

        let shares_nothing = with(Kind::Job, &json!({}), Some((Kind::CronJob, &json!({}))));
        let assessment = Assessment::of(&pod("Job", None, &none), &shares_nothing, now());
        assert_eq!((assessment.risk, assessment.safer[0].takes), (Risk::Medium, Some(Safe::Evict)));
    }

    /// What the control plane evicts from a lost node is replaced beside it: it is kept from that first.
    #[test]
    fn a_pod_is_kept_from_being_evicted_from_a_lost_node() {
        let volume = json!([{ "name": "x", "hostPath": { "path": "/d" } }]);
        let one = json!({ "replicas": 1, "selector": { "matchLabels": { "app": "db" } } });
        let (silent, late) = (around(600), around(45));
        let missing = Surroundings { nodes: Some(BTreeMap::new()), ..around(600) };
        let deleted_just_now = Surroundings { nodes: Some(BTreeMap::new()), ..around(5) };
        let mut not_ready = around(5);
        not_ready.nodes.as_mut().unwrap().get_mut("node-1").unwrap().status.conditions[0].status =
            "False".into();
        let [unreachable, unready] = ["unreachable", "not-ready"].map(|taint| {
            json!({ "key": format!("node.kubernetes.io/{taint}"), "operator": "Exists", "effect": "NoExecute" })
        });
        let for_now = {
            let mut seconds = unreachable.clone();
            seconds["tolerationSeconds"] = 300.into();
            seconds
        };
        let other = json!({ "key": "gpu", "operator": "Exists" });
        for (around, owner, tolerations, deleted, keeps, keeps_without_grace) in [
            (&silent, "ReplicaSet", json!([]), None, true, true),
            (&silent, "ReplicaSet", json!([for_now, unready, other]), None, true, true),
            (&silent, "ReplicaSet", json!([unreachable]), None, false, false),
            (&silent, "ReplicaSet", json!([]), Some(5), false, false),
            (&silent, "Job", json!([]), None, true, true),
            (&silent, "ReplicationController", json!([]), None, true, true),
            // Not known, so it may start the next one whenever it likes.
            (&silent, "Rollout", json!([for_now]), None, true, true),
            // Its object stays until its end, unless it has no grace.
            (&silent, "StatefulSet", json!([]), None, false, true),
            // Nothing starts it again.
            (&silent, "", json!([]), None, true, true),
            (&silent, "", json!([unreachable]), None, false, false),
            (&not_ready, "ReplicaSet", json!([unreachable]), None, true, true),
            (&not_ready, "ReplicaSet", json!([unready]), None, false, false),
            (&not_ready, "", json!([for_now, unready]), None, false, false),
            // Not given up yet, and which taint it gets is not known.
            (&late, "ReplicaSet", json!([]), None, true, true),
            (&late, "ReplicaSet", json!([unreachable]), None, true, true),
            (&late, "ReplicaSet", json!([unreachable, unready]), None, false, false),
            (&late, "ReplicaSet", json!([]), Some(5), false, false),
            (&late, "", json!([]), None, true, true),
            (&late, "StatefulSet", json!([]), None, false, true),
            // Pod GC does not ask for tolerations; but the node object that is created again is tainted.
            (&missing, "ReplicaSet", json!([for_now]), None, true, true),
            (&missing, "ReplicaSet", json!([unreachable, unready]), None, false, false),
            (&missing, "StatefulSet", json!([]), None, false, true),
            (&deleted_just_now, "Job", json!([]), None, true, true),
            (&around(5), "ReplicaSet", json!([]), None, false, false),
        ] {
            let mut around = around.clone();
            for kind in [Kind::ReplicaSet, Kind::Job] {
                around.workloads.get_mut(&(kind, "shop/db".into())).unwrap().spec = read(one.clone());
            }
            for (grace, keeps) in [(30, keeps), (0, keeps_without_grace)] {
                let mut pod = pod(owner, deleted, &volume);
                let spec = json!({
                    "nodeName": "node-1", "volumes": volume, "tolerations": tolerations,
                    "terminationGracePeriodSeconds": grace,
                });
                pod.spec = read(spec);
                let ways = Assessment::of(&pod, &around, now()).safer;
                let is = |way: &Way| way.what.starts_with("keep the pod from being evicted, first: else");
                assert_eq!(is(&ways[0]), keeps, "{owner} {grace} {tolerations} {ways:#?}");
                assert!(!ways[1..].iter().any(is), "{ways:#?}");
                if !keeps {
                    continue;
                }
                // Nothing that runs is ended for it.
                let stops =
                    |way: &Way| way.command.as_ref().is_some_and(|it| it.contains("kubectl-lease.dev/"));
                assert!(!ways.iter().any(stops), "{ways:#?}");
                // Nor is it waited, or a node object created, before.
                assert!(ways.len() > 1, "{ways:#?}");
                let then =
                    if owner.is_empty() { "nothing starts another" } else { "start the next one beside it" };
                assert!(ways[0].what.contains(then), "{ways:#?}");
                assert!(ways[0].what.contains("for as long as this pod exists"), "{ways:#?}");
                let command = ways[0].command.clone().unwrap();
                let patch = command.strip_prefix("kubectl patch pod db-0 -n shop --type=merge -p '");
                let patch: Value = serde_json::from_str(patch.unwrap().strip_suffix('\'').unwrap()).unwrap();
                // The next pod of a set may have the same name.
                assert_eq!(patch["metadata"], json!({ "uid": "5e1f" }));
                let all = patch["spec"]["tolerations"].as_array().unwrap();
                assert!(all.contains(&unreachable) && all.contains(&unready), "{patch}");
                assert_eq!(all.contains(&other), tolerations.as_array().unwrap().contains(&other));
                assert!(!command.contains("tolerationSeconds"), "{command}");
            }
        }
    }

    /// What several pods on one node may use together, pods on two nodes may not.
    #[test]
    fn one_of_several_is_kept_from_being_evicted_where_one_node_may_write() {
        let claim = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
        let with = |mut around: Surroundings, mode: &str| {
            let spec = json!({ "accessModes": [mode], "volumeName": "pv-1", "csi": { "driver": "ebs" } });
            around.claims = Some(named(json!({ "shop/data": { "spec": spec } })));
            around.disks = Some(named(json!({ "pv-1": { "spec": spec } })));
            around
        };
        let mut not_ready = around(5);
        not_ready.nodes.as_mut().unwrap().get_mut("node-1").unwrap().status.conditions[0].status =
            "False".into();
        for (around, mode, keeps) in [
            (around(600), "ReadWriteOnce", true),
            (around(45), "ReadWriteOnce", true),
            (not_ready.clone(), "ReadWriteOnce", true),
            (around(600), "ReadWriteMany", false),
            (around(45), "ReadWriteMany", false),
            (not_ready, "ReadWriteMany", false),
            (around(5), "ReadWriteOnce", false),
        ] {
            let around = with(around, mode);
            let ways = Assessment::of(&ready(pod("ReplicaSet", None, &claim)), &around, now()).safer;
            assert_eq!(ways[0].what.starts_with("keep the pod"), keeps, "{mode} {ways:#?}");
            assert!(!keeps || ways.iter().all(|way| way.takes.is_none()), "{mode} {ways:#?}");
        }
        // Nor is it deleted where the node may be lost without that being seen.
        for unseen in
            [Surroundings { nodes: None, ..around(600) }, Surroundings { heartbeats: None, ..around(600) }]
        {
            for (mode, deletes) in [("ReadWriteOnce", false), ("ReadWriteMany", true)] {
                let around = with(unseen.clone(), mode);
                let ways = Assessment::of(&ready(pod("ReplicaSet", None, &claim)), &around, now()).safer;
                assert_eq!(ways.iter().any(|way| way.takes.is_some()), deletes, "{mode} {ways:#?}");
            }
        }
    }

    /// It may replace what is Terminating, as the `ReplicaSet` of one does.
    #[test]
    fn a_pod_of_an_unknown_controller_is_not_deleted_where_it_may_be_doubled() {
        let none = json!([]);
        let mut not_ready = around(5);
        not_ready.nodes.as_mut().unwrap().get_mut("node-1").unwrap().status.conditions[0].status =
            "False".into();
        for around in
            [around(5), around(45), around(600), not_ready, Surroundings { nodes: None, ..around(5) }]
        {
            let ways = Assessment::of(&ready(pod("CloneSet", None, &none)), &around, now()).safer;
            assert!(ways.iter().all(|way| way.takes.is_none()), "{ways:#?}");
            let deletes = |way: &Way| way.command.as_ref().is_some_and(|it| it.contains(" delete "));
            assert!(!ways.iter().any(deletes), "{ways:#?}");
        }
        let ways = Assessment::of(&ready(pod("CloneSet", None, &none)), &around(5), now()).safer;
        assert_eq!(
            ways[0].command.as_deref(),
            Some("kubectl get cloneset.v1.example.com/db -n shop -o yaml")
        );
    }

    /// What ends all pods of a controller starts none before all have ended, also on lost nodes.
    #[test]
    fn an_outage_is_told_before_all_replicas_are_ended() {
        let claim = json!([{ "name": "x", "hostPath": { "path": "/d" } }]);
        let selector = json!({ "matchLabels": { "app": "db" } });
        for (is_paused, node, wanted, are_ready, told) in [
            (false, "True", 2, 2, None),
            (
                false,
                "True",
                2,
                1,
                Some("only if an outage is acceptable (1 of 2 replicas are ready; all other"),
            ),
            (
                true,
                "True",
                2,
                1,
                Some("only if an outage is acceptable (1 of 2 replicas are ready; all other"),
            ),
            (true, "True", 2, 2, None),
            (false, "False", 2, 2, Some("until node-1 has ended this one): restart its Deployment")),
            (false, "False", 1, 1, None),
            (false, "True", 1, 1, None),
        ] {
            // Not even a restart ends what runs on a lost node.
            let waits = "restart its Deployment, which starts others only when all its pods are gone, also those on \
                         nodes that are lost: until then none runs";
            let mut around = around(5);
            around.nodes.as_mut().unwrap().get_mut("node-1").unwrap().status.conditions[0].status =
                node.into();
            let set = around.workloads.get_mut(&(Kind::ReplicaSet, "shop/db".into())).unwrap();
            set.metadata.owner_references = read(json!([
                { "apiVersion": "apps/v1", "kind": "Deployment", "name": "db", "uid": "d", "controller": true },
            ]));
            let deployment = around.workloads.get_mut(&(Kind::Deployment, "shop/db".into())).unwrap();
            deployment.spec = read(json!({
                "replicas": wanted, "strategy": { "type": "Recreate" }, "paused": is_paused, "selector": selector,
            }));
            deployment.status.ready_replicas = are_ready;
            let ways = Assessment::of(&ready(pod("ReplicaSet", None, &claim)), &around, now()).safer;
            let way = ways.last().unwrap();
            let command = way.command.as_deref().unwrap();
            assert!(command.starts_with("kubectl rollout restart") != is_paused, "{ways:#?}");
            assert_eq!(way.what.ends_with(waits), !is_paused, "{ways:#?}");
            match told {
                Some(told) => assert!(way.what.contains(told), "{ways:#?}"),
                None => assert!(!way.what.contains("outage"), "{ways:#?}"),
            }
        }
    }

    /// That its taint is from an earlier outage makes a node no better than it says.
    #[test]
    fn a_node_that_is_back_may_not_be_ready() {
        let volume = json!([{ "name": "x", "hostPath": { "path": "/d" } }]);
        let one = json!({ "replicas": 1, "selector": { "matchLabels": { "app": "db" } } });
        for (status, risk, ways) in [
            ("True", Risk::High, &["kubectl lease fence", "kubectl patch replicaset"][..]),
            (
                "False",
                Risk::Critical,
                &["kubectl lease fence", "kubectl patch pod", "kubectl describe node", "kubectl lease fence"],
            ),
        ] {
            let mut around = fenced(around(5));
            around.nodes.as_mut().unwrap().get_mut("node-1").unwrap().status.conditions[0].status =
                status.into();
            around.workloads.get_mut(&(Kind::ReplicaSet, "shop/db".into())).unwrap().spec = read(one.clone());
            let pod = ready(pod("ReplicaSet", None, &volume));
            let assessment = Assessment::of(&pod, &around, now());
            assert_eq!(assessment.contact, Some(Contact::Back));
            let commands: Vec<&str> =
                assessment.safer.iter().map(|way| way.command.as_deref().unwrap()).collect();
            assert_eq!(commands.len(), ways.len(), "{status} {commands:#?}");
            let is = |(command, way): (&&str, &&str)| command.starts_with(way);
            assert!(commands.iter().zip(ways).all(is), "{status} {commands:#?}");
            assert!(assessment.safer.iter().all(|way| way.takes.is_none()));
            // A runtime that hangs may still run what its kubelet reported before.
            let ended = json!({ "phase": "Running", "containerStatuses": [{
                "name": "a", "state": { "terminated": { "finishedAt": ago(300) } },
            }] });
            let mut pod = self::pod("ReplicaSet", Some(300), &volume);
            let container = json!({ "name": "a", "volumeMounts": [{ "name": "x", "mountPath": "/d" }] });
            pod.spec = read(json!({ "nodeName": "node-1", "volumes": volume, "containers": [container] }));
            pod.status = read(ended);
            assert!(pod.has_ended(now()));
            let assessment = Assessment::of(&pod, &around, now());
            assert_eq!(assessment.risk, risk, "{status} {:#?}", assessment.reasons);
        }
    }

    /// `--safe` goes over no budget and takes no majority away that it may not read.
    #[test]
    fn what_is_not_known_to_be_within_its_budget_is_evicted() {
        let none = json!([]);
        let pod = ready(pod("ReplicaSet", None, &none));
        for unseen in [around(5), Surroundings { nodes: None, ..around(5) }] {
            let mut unseen = Surroundings { budgets: None, ..unseen };
            let takes = |around: &Surroundings| -> Vec<Option<Safe>> {
                Assessment::of(&pod, around, now()).safer.iter().map(|way| way.takes).collect()
            };
            assert_eq!(takes(&unseen)[..2], [Some(Safe::Evict), None]);
            unseen.budgets = Some(Vec::new());
            // A set that may not be read may have no majority.
            let stateful = self::ready(self::pod("StatefulSet", None, &none));
            unseen.workloads.clear();
            unseen.unread.insert(Kind::StatefulSet);
            let ways = Assessment::of(&stateful, &unseen, now()).safer;
            assert!(ways.iter().all(|way| way.takes.is_none()), "{ways:#?}");
        }
    }

    /// A node that may not be read may be declared out of service, and pod GC then waits for no kubelet.
    #[test]
    fn what_must_be_one_is_not_deleted_where_its_node_may_not_be_read() {
        let none = json!([]);
        let stateful = ready(pod("StatefulSet", None, &none));
        let unread = Surroundings { nodes: None, ..around(5) };
        let ways = Assessment::of(&stateful, &unread, now()).safer;
        assert!(ways.iter().all(|way| way.takes.is_none()), "{ways:#?}");
        assert!(ways[0].what.starts_with("ask a cluster administrator"), "{ways:#?}");
        assert!(ways[1].what.contains("unless node-1 is declared out of service"), "{ways:#?}");
        // One that is seen to have no such taint is waited for.
        let unheard = Surroundings { heartbeats: None, ..around(5) };
        assert_eq!(Assessment::of(&stateful, &unheard, now()).safer[0].takes, Some(Safe::Delete));
    }

    /// Pod GC would be the end of it.
    #[test]
    fn a_bare_pod_is_saved_by_the_object_of_its_node() {
        let missing = Surroundings { nodes: Some(BTreeMap::new()), ..around(600) };
        let ways = Assessment::of(&pod("", None, &json!([])), &missing, now()).safer;
        assert_eq!(ways.len(), 2, "{ways:#?}");
        assert!(ways[0].what.starts_with("keep the pod from being evicted, first"), "{ways:#?}");
        assert!(ways[1].what.starts_with("create the node object again"), "{ways:#?}");
        // One that is to go anyway is not kept.
        for deleted in [5, 600] {
            let ways = Assessment::of(&pod("", Some(deleted), &json!([])), &missing, now()).safer;
            assert!(ways[0].what.contains("pod GC") && ways[0].takes == Some(Safe::Await), "{ways:#?}");
        }
    }

    /// Pod GC completes by force what is evicted there.
    #[test]
    fn a_taint_from_an_earlier_outage_is_taken_off_first() {
        let none = json!([]);
        let added = |mut around: Surroundings, time: Option<Timestamp>| {
            for taint in &mut around.nodes.as_mut().unwrap().get_mut("node-1").unwrap().spec.taints {
                taint.time_added = time;
            }
            around
        };
        let before = Some(now().0 - SignedDuration::from_secs(3600));
        let undated = added(fenced(around(600)), None);
        let stale = added(fenced(around(600)), before);
        let (late_undated, late_stale) = (added(fenced(around(45)), None), added(fenced(around(45)), before));
        let [not_told, earlier] = ["does not tell when", "before it was last heard of"].map(Some);
        for (around, owner, deleted, undone) in [
            (&undated, "StatefulSet", None, not_told),
            (&undated, "StatefulSet", Some(5), not_told),
            (&undated, "StatefulSet", Some(600), not_told),
            (&undated, "Rollout", None, not_told),
            (&undated, "", None, None),
            (&stale, "StatefulSet", None, earlier),
            (&late_undated, "StatefulSet", None, not_told),
            (&late_stale, "StatefulSet", Some(5), earlier),
            (&late_stale, "", None, None),
            (&around(600), "StatefulSet", None, None),
            (&around(45), "StatefulSet", None, None),
            (&fenced(around(600)), "StatefulSet", None, None),
            // Declared while it was late, by whatever means: that may be right.
            (&fenced(around(45)), "StatefulSet", None, None),
        ] {
            let assessment = Assessment::of(&pod(owner, deleted, &none), around, now());
            let first = &assessment.safer[0];
            let is_undo = |it: &str| it.starts_with("kubectl lease fence node-1 --undo");
            assert_eq!(
                first.command.as_deref().is_some_and(is_undo),
                undone.is_some(),
                "{owner} {deleted:?} {assessment:#?}"
            );
            let Some(when) = undone else { continue };
            // One that was declared meanwhile stays, unless it is confirmed.
            let confirmed = first.command.as_deref().is_some_and(|it| it.ends_with(" --confirm"));
            assert_eq!(confirmed, undone == not_told, "{first:?}");
            let line = &assessment.evidence.iter().find(|(label, _)| *label == "node").unwrap().1;
            assert!(line.contains("declared out of service") && line.contains(when), "{line}");
            assert_eq!(first.what.contains("the taint does not tell when"), undone == not_told, "{first:?}");
            assert_eq!(
                first.what.contains("before node-1 was last heard of"),
                undone == earlier,
                "{first:?}"
            );
        }
    }

    /// A wait that failed leaves its controller at 0, or suspended.
    #[test]
    fn the_evidence_names_a_controller_that_was_told_to_run_none() {
        let none = json!([]);
        let scale = |of: &str| {
            Some(format!("kubectl scale {of} -n shop, with --replicas and the number that it ran before,"))
        };
        let resume = Some(r#"kubectl patch job/db -n shop -p '{"spec":{"suspend":false}}'"#.to_owned());
        let by_us = |controller: &str, before| Some(stopped::bring_back(controller, "shop", before));
        for (kind, label, spec, command) in [
            (Kind::ReplicaSet, None, json!({ "replicas": 0 }), scale("replicaset/db")),
            (Kind::StatefulSet, None, json!({ "replicas": 0 }), scale("statefulset/db")),
            (Kind::Job, None, json!({ "suspend": true }), resume),
            // As it was before, where a printed line told it so.
            (Kind::ReplicaSet, Some("4"), json!({ "replicas": 0 }), by_us("ReplicaSet/db", 4)),
            (Kind::Job, Some("true"), json!({ "suspend": true }), by_us("Job/db", 1)),
            (Kind::ReplicaSet, Some("4"), json!({ "replicas": 1 }), None),
            (Kind::ReplicaSet, None, json!({ "replicas": 1 }), None),
            (Kind::Job, None, json!({}), None),
        ] {
            let mut around = around(5);
            let workload = around.workloads.get_mut(&(kind, "shop/db".into())).unwrap();
            workload.spec = read(spec.clone());
            workload.metadata.labels.extend(label.map(|it| (stopped::label(kind).into(), it.into())));
            let assessment = Assessment::of(&pod(kind.name(), Some(5), &none), &around, now());
            let owner = |flags: &str| {
                let evidence = assessment.clone().reached_by(flags).evidence;
                evidence.into_iter().find(|(label, _)| *label == "owner").unwrap().1
            };
            let told = command.map_or_else(String::new, |command| {
                format!(
                    ", which was told to run none: {command} brings it back, once the containers have ended"
                )
            });
            assert_eq!(owner(""), format!("{}/db{told}", kind.name()), "{spec}");
            let reached = told.replace("kubectl ", "kubectl --context=b ");
            assert_eq!(owner("--context=b"), format!("{}/db{reached}", kind.name()), "{spec}");
        }
    }

    #[test]
    fn what_is_pasted_meets_the_same_cluster() {
        let way = |command: &str| Way { what: String::new(), command: Some(command.into()), takes: None };
        for (command, with_flags) in [
            ("kubectl delete pod x", "kubectl --context=b delete pod x"),
            ("kubectl lease fence n", "kubectl lease --context=b fence n"),
            ("echo '{}' | kubectl create -f -", "echo '{}' | kubectl --context=b create -f -"),
            ("kubectl a && kubectl lease b", "kubectl --context=b a && kubectl lease --context=b b"),
            ("crictl ps", "crictl ps"),
        ] {
            assert_eq!(way(command).reached_by("--context=b").command.as_deref(), Some(with_flags));
            assert_eq!(way(command).reached_by(""), way(command));
            let told = Way::reached_by(Way { what: command.into(), ..way(command) }, "--context=b").what;
            assert_eq!(told, with_flags);
        }
    }

    /// The API takes a grace of 0 for none, whoever deletes.
    #[test]
    fn a_pod_without_a_grace_gets_one() {
        let none = json!([]);
        let mut pod = pod("StatefulSet", None, &none);
        pod.spec.termination_grace_period_seconds = Some(0);
        let assessment = Assessment::of(&pod, &fenced(around(600)), now());
        let delete = "kubectl delete pod db-0 -n shop --grace-period=1 --wait=false";
        assert_eq!(assessment.safer[0].command.as_deref(), Some(delete));
        let told =
            assessment.reasons.iter().any(|reason| reason.contains("terminationGracePeriodSeconds is 0"));
        assert!(told, "{:?}", assessment.reasons);
    }

    /// Each of several, by what those before it leave of the budget.
    #[test]
    fn a_budget_is_used_up_by_all_together() {
        let none = json!([]);
        let budget = |name: &str, allowed: i64, policy: &str| {
            json!({
                "metadata": { "name": name, "namespace": "shop", "uid": name },
                "spec": { "selector": { "matchLabels": { "app": "db" } }, "unhealthyPodEvictionPolicy": policy },
                "status": { "disruptionsAllowed": allowed, "currentHealthy": 3, "desiredHealthy": 3 - allowed },
            })
        };
        let mut web = pod("ReplicaSet", None, &none);
        web.status.conditions = read(json!([{ "type": "Ready", "status": "True" }]));
        let mut around = Surroundings { budgets: Some(vec![read(budget("b", 1, ""))]), ..around(5) };
        let mut risks = Vec::new();
        for _ in 0..3 {
            let assessment = Assessment::of(&web, &around, now());
            risks.push((assessment.risk, assessment.safer[0].takes));
            around.spend(&web);
        }
        let over = (Risk::High, None);
        assert_eq!(risks, [(Risk::Medium, Some(Safe::Evict)), over, over]);
        let first = &Assessment::of(&web, &around, now()).safer[0];
        assert!(first.what.contains("until the disruption budget b allows it"), "{first:?}");

        // One that is not ready takes nothing away, and the API evicts no pod of two budgets.
        around.workloads = workloads();
        let mut unready = web.clone();
        unready.status.conditions.clear();
        around.budgets = Some(vec![read(budget("b", 0, "AlwaysAllow"))]);
        assert_eq!(risk_of(&unready, &around), Risk::Medium);
        around.budgets = Some(vec![read(budget("b", 1, "")), read(budget("c", 1, ""))]);
        let first = &Assessment::of(&web, &around, now()).safer[0];
        assert_eq!(first.takes, Some(Safe::Delete));
        assert!(first.what.contains("several disruption budgets (b, c)"), "{first:?}");
        around.budgets = Some(vec![read(budget("b", 1, "")), read(budget("c", 0, ""))]);
        assert_eq!(Assessment::of(&web, &around, now()).safer[0].takes, None, "not over a budget");
    }

    /// The Job's own finalizer goes by itself, unless the Job waits for the end of the pod.
    #[test]
    fn the_finalizer_of_a_job() {
        let none = json!([]);
        let mut job = pod("Job", Some(600), &none);
        job.metadata.finalizers.push(JOB_TRACKING.into());
        let assessment = Assessment::of(&job, &around(600), now());
        assert_eq!((assessment.risk, assessment.futile), (Risk::Low, None));
        let mut waits = around(600);
        let spec = json!({ "podReplacementPolicy": "Failed", "parallelism": 3 });
        let failed = json!({ "metadata": { "name": "db", "namespace": "shop", "uid": "u" }, "spec": spec });
        waits.workloads.insert((Kind::Job, "shop/db".into()), read(failed));
        let assessment = Assessment::of(&job, &waits, now());
        assert_eq!((assessment.risk, assessment.futile), (Risk::Critical, Some(Futile::Finalizers)));
        let commands: Vec<_> = assessment.safer.iter().filter_map(|way| way.command.as_deref()).collect();
        assert_eq!(commands, ["kubectl lease partitions node-1 -w", "kubectl lease fence node-1"]);
    }

    #[test]
    fn the_evidence_reads_as_a_person_would_say_it() {
        let none = json!([]);
        let mut around = around(600);
        around.maintenance = Some(named(json!({ "node-1": {
            "metadata": { "annotations": { "kubectl-lease.dev/reason": "new disk" } },
            "spec": { "holderIdentity": "jane", "renewTime": ago(10), "leaseDurationSeconds": 60 },
        } })));
        let assessment = Assessment::of(&pod("StatefulSet", Some(600), &none), &around, now());
        let lines: Vec<String> =
            assessment.evidence.iter().map(|(label, text)| format!("{label} {text}")).collect();
        assert_eq!(
            lines,
            [
                "pod Terminating for 10m, 9m30s beyond its grace of 30s",
                "node node-1: last heartbeat 10m ago, Ready is Unknown",
                "held by jane: new disk",
                "owner StatefulSet/db",
                "replicas 3 of 3 are ready without this one: a majority",
            ]
        );
        assert_eq!(
            assessment.reasons,
            [
                "the containers may still be running on node-1: nothing is heard of it",
                "StatefulSet/db starts another of the same name as soon as the object is gone, and relies on there \
                 being one only",
            ]
        );
    }

    #[test]
    fn a_pod_is_counted_once_when_it_goes() {
        let none = json!([]);
        let budget = json!({
            "metadata": { "name": "b", "namespace": "shop" },
            "spec": { "selector": { "matchLabels": { "app": "db" } } },
            "status": { "disruptionsAllowed": 2, "currentHealthy": 5 },
        });
        let ready = |deleted| {
            let mut pod = pod("StatefulSet", deleted, &none);
            pod.status.conditions = read(json!([{ "type": "Ready", "status": "True" }]));
            pod
        };
        for (pod, counted) in [
            (ready(None), 1),
            (ready(Some(5)), 0), // it was on its way out already
            (pod("StatefulSet", None, &none), 0),
        ] {
            let mut around = Surroundings { budgets: Some(vec![read(budget.clone())]), ..around(5) };
            let set = (Kind::StatefulSet, "shop/db".to_owned());
            around.workloads.get_mut(&set).unwrap().status.ready_replicas = 3;
            around.spend(&pod);
            let left = &around.budgets.as_ref().unwrap()[0].status;
            assert_eq!((left.disruptions_allowed, left.current_healthy), (2 - counted, 5 - counted));
            assert_eq!(around.workloads[&set].status.ready_replicas, 3 - counted);
        }
    }

    #[test]
    fn what_is_only_read_is_not_destroyed_by_two() {
        let volumes = json!([
            { "name": "data", "persistentVolumeClaim": { "claimName": "data" } },
            { "name": "host", "hostPath": { "path": "/d" } },
            { "name": "san", "iscsi": {} },
        ]);
        let claim = json!({ "spec": { "accessModes": ["ReadWriteOnce"], "volumeName": "pv-1" } });
        let disk = json!({ "spec": { "accessModes": ["ReadWriteOnce"], "csi": { "driver": "ebs" } } });
        let mut around = around(600);
        around.claims = Some(named(json!({ "shop/data": claim })));
        around.disks = Some(named(json!({ "pv-1": disk })));
        let single = json!({ "metadata": { "name": "db", "namespace": "shop", "uid": "u" }, "spec": { "replicas": 1 } });
        around.workloads.insert((Kind::ReplicaSet, "shop/db".into()), read(single));
        for (only_read, risk) in [(true, Risk::Low), (false, Risk::Critical)] {
            let mounts: Vec<_> = ["data", "host", "san"]
                .map(|name| json!({ "name": name, "mountPath": "/x", "readOnly": only_read }))
                .into();
            let mut pod = pod("ReplicaSet", None, &volumes);
            pod.spec = read(json!({
                "nodeName": "node-1", "volumes": volumes, "containers": [{ "name": "c", "volumeMounts": mounts }],
            }));
            let assessment = Assessment::of(&pod, &around, now());
            assert_eq!(assessment.risk, risk, "{assessment:#?}");
            let shared: Vec<_> = assessment.storage.iter().map(|storage| storage.shared).collect();
            assert_eq!(shared, [!only_read, !only_read, false]);
            let unseen = Surroundings { claims: None, ..around.clone() };
            assert_eq!(risk_of(&pod, &unseen), risk);
        }
    }

    #[test]
    fn an_attachment_is_told_only_of_its_own_volume_and_node() {
        let volumes = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
        let pod = pod("ReplicaSet", None, &volumes);
        for (volume, node, attached_volume, told) in [
            ("pv-1", "node-1", "pv-1", true),
            ("pv-1", "node-2", "pv-1", false),
            ("pv-1", "node-1", "pv-2", false),
            ("", "node-1", "", false), // a claim without a volume yet, and an inline volume
        ] {
            let mut around = around(600);
            let claim = json!({ "spec": { "accessModes": ["ReadWriteOnce"], "volumeName": volume } });
            around.claims = Some(named(json!({ "shop/data": claim })));
            around.attachments = Some(vec![read(
                json!({ "spec": { "nodeName": node, "source": { "persistentVolumeName": attached_volume } } }),
            )]);
            let detail = &Assessment::of(&pod, &around, now()).storage[0].detail;
            assert_eq!(detail.contains("attached to node-1"), told, "{volume} {node} {attached_volume}");
        }
    }

    #[test]
    fn only_controllers_that_may_be_behind_a_pod_are_missing() {
        let none = json!([]);
        for (kind, missing) in [
            ("ReplicaSet", &["replicasets.apps", "deployments.apps"][..]),
            ("StatefulSet", &["statefulsets.apps"]),
            ("Job", &["jobs.batch", "cronjobs.batch"]),
            ("PostgresCluster", &[]),
        ] {
            let around = Surroundings { unread: Kind::ALL.into(), ..around(5) };
            assert_eq!(Assessment::of(&pod(kind, None, &none), &around, now()).missing, missing, "{kind}");
        }
    }

    #[test]
    fn what_is_safe_on_a_node_that_lives() {
        let none = json!([]);
        // However it is deleted, its ReplicaSet starts the next one beside it.
        let mut recreates = around(5);
        let set = recreates.workloads.get_mut(&(Kind::ReplicaSet, "shop/db".into())).unwrap();
        set.metadata.owner_references = read(json!([
            { "apiVersion": "apps/v1", "kind": "Deployment", "name": "db", "uid": "d", "controller": true },
        ]));
        let deployment = recreates.workloads.get_mut(&(Kind::Deployment, "shop/db".into())).unwrap();
        deployment.spec = read(json!({ "strategy": { "type": "Recreate" } }));
        let ways = Assessment::of(&pod("ReplicaSet", None, &none), &recreates, now()).safer;
        assert_eq!(ways.len(), 1, "{ways:?}");
        assert_eq!(ways[0].command.as_deref(), Some("kubectl rollout restart deployment/db -n shop"));
        assert_eq!(ways[0].takes, None);
        // Where the runtime may hang, nothing is begun that does not wait for the end of the containers.
        recreates.nodes.as_mut().unwrap().get_mut("node-1").unwrap().status.conditions[0].status =
            "False".into();
        for (grace, ways) in [(None, 4), (Some(30), 4), (Some(0), 3)] {
            let mut pod = pod("ReplicaSet", None, &none);
            pod.spec.termination_grace_period_seconds = grace;
            assert_eq!(Assessment::of(&pod, &recreates, now()).safer.len(), ways, "{grace:?}");
        }

        // A kubelet that is not ready may yet end what it is asked to, but not what hangs already.
        let mut not_ready = around(5);
        not_ready.nodes.as_mut().unwrap().get_mut("node-1").unwrap().status.conditions[0].status =
            "False".into();
        for (deleted, takes) in [
            (None, &[None, None, Some(Safe::Evict), Some(Safe::Delete)][..]),
            (Some(5), &[None, None, Some(Safe::Await)]),
            (Some(600), &[None, None]),
        ] {
            let ways = Assessment::of(&pod("StatefulSet", deleted, &none), &not_ready, now()).safer;
            assert_eq!(ways.iter().map(|way| way.takes).collect::<Vec<_>>(), takes, "{deleted:?}");
        }
    }
}
