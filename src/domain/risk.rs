//! How risky it is to force-delete a pod, why, and what is safer.
//!
//! Force deletion removes the object and does not wait for the containers: they may still be running.
//! Whoever takes the object for the process (a `StatefulSet`, the scheduler, a volume that one node at a
//! time may write) then lets a second one start beside it.
//!
//! Evidence that is missing is never taken for good news: the risk is the highest of all that the
//! missing part could be.

use std::{collections::BTreeMap, fmt::Write as _};

use jiff::SignedDuration;
use serde::Serialize;

use super::{
    duration::age,
    holder::Who,
    lease::Lease,
    maintenance::Standing,
    node::{Contact, Node},
    pod::{Pod, Source},
    safer::{self, Way},
    storage::{self, Attachment, Budget, Claim, Disk},
    time::ServerTime,
};

/// A node that does not exist is believed to be gone when nothing has been heard of it for so long.
const GONE_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// How bad it can get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// Nothing runs.
    None,
    /// At worst something runs on for a while that nobody minds.
    Low,
    /// Something that runs is cut off without its grace.
    Medium,
    /// Two may run at once for a while, or what hangs is hidden instead of found.
    High,
    /// Two may run at once for as long as nobody looks, and write to the same data.
    Critical,
}

impl Risk {
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// How far the deletion of a pod has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    NotBegun,
    /// Within its grace.
    Begun,
    /// Well beyond its grace.
    Stuck,
}

/// What happens when the pod's object is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// Its controller starts another in its place, and relies on there being no two: a `StatefulSet`,
    /// and any controller whose habits are not known here.
    AtMostOne,
    /// Its controller starts another as it sees fit, beside it if need be.
    Freely,
    /// It has no controller.
    Never,
}

/// What the rule goes by; `None` is what could not be found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own
pub struct Facts {
    pub scheduled: bool,
    pub finished: bool,
    pub mirror: bool,
    /// There is no object of its node.
    pub nodeless: bool,
    pub contact: Option<Contact>,
    pub deletion: Deletion,
    pub replaced: Replaced,
    /// It has storage that two nodes may destroy.
    pub exclusive: Option<bool>,
    /// It holds a leader lease.
    pub leads: Option<bool>,
    /// A disruption budget has nothing left.
    pub no_budget: Option<bool>,
}

impl Facts {
    /// Whether there must never be two of it.
    pub(super) fn is_guarded(&self) -> bool {
        self.replaced == Replaced::AtMostOne || self.exclusive.unwrap_or(true) || self.leads.unwrap_or(true)
    }

    /// The rule.
    pub fn risk(&self) -> Risk {
        if !self.scheduled || self.finished {
            return Risk::None;
        }
        if self.mirror {
            // The object comes back by itself as long as the kubelet runs.
            return Risk::Low;
        }
        let at = |contact| self.risk_at(contact);
        match self.contact {
            Some(contact) => at(contact),
            None => at(Contact::Heard).max(at(Contact::Silent)),
        }
    }

    fn risk_at(&self, contact: Contact) -> Risk {
        match contact {
            Contact::Heard | Contact::Back => {
                let unasked = self.deletion == Deletion::NotBegun && self.no_budget.unwrap_or(true);
                if self.is_guarded() || unasked || self.deletion == Deletion::Stuck {
                    Risk::High
                } else {
                    Risk::Medium
                }
            }
            Contact::Silent if self.is_guarded() => Risk::Critical,
            // Two at once do no harm, or the machine is known to be off or destroyed.
            Contact::Silent | Contact::Gone | Contact::Fenced => Risk::Low,
            // Either may turn out to be true.
            Contact::Late => self.risk_at(Contact::Heard).max(self.risk_at(Contact::Silent)),
        }
    }
}

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
        // A kubelet whose node was deleted goes on heartbeating, and running what it runs. Where the
        // lease has gone with the node, nothing tells since when, and the kubelet makes no new one.
        Some(match lease.and_then(Lease::renewed) {
            Some(time) if now.since(time) > GONE_AFTER => Contact::Gone,
            Some(_) => Contact::Late,
            None => Contact::Silent,
        })
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
    pub safer: Vec<Way>,
}

impl Assessment {
    /// Judges one pod by what is known around it.
    pub fn of(pod: &Pod, around: &Surroundings, now: ServerTime) -> Self {
        let storage = storage_of(pod, around);
        let leads = around.leaders.as_ref().map(|leases| led_by(pod, leases));
        let budgets = around.budgets.as_ref().map(|budgets| spent_budgets(pod, budgets));
        let node = &pod.spec.node_name;
        let facts = Facts {
            scheduled: pod.is_scheduled(),
            finished: pod.is_finished(),
            mirror: pod.is_mirror(),
            nodeless: pod.is_scheduled() && around.lacks(node),
            contact: around.contact(node, now),
            deletion: match pod.metadata.deletion_timestamp {
                None => Deletion::NotBegun,
                Some(_) if pod.is_stuck(now) => Deletion::Stuck,
                Some(_) => Deletion::Begun,
            },
            replaced: replaced(pod),
            exclusive: if storage.iter().any(|storage| storage.exclusive == Some(true)) {
                Some(true)
            } else if storage.iter().any(|storage| storage.exclusive.is_none()) {
                None
            } else {
                Some(false)
            },
            leads: leads.as_ref().map(|leads| !leads.is_empty()),
            no_budget: budgets.as_ref().map(|budgets| !budgets.is_empty()),
        };
        // Who only claims to be a mirror is asked about too, and judged as any other.
        let futile = if pod.is_marked_as_mirror() {
            Some(Futile::Mirror)
        } else {
            (!pod.metadata.finalizers.is_empty()).then_some(Futile::Finalizers)
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
            safer: safer::ways(pod, &facts, now),
        };
        assessment.evidence = evidence(pod, &assessment, &facts, around, now);
        let doubted =
            around.node(node).is_some_and(|known| known.is_contradicted(around.heartbeat(node), now));
        assessment.reasons = reasons(pod, &assessment, &facts, budgets.as_deref(), doubted);
        assessment
    }
}

fn replaced(pod: &Pod) -> Replaced {
    match (pod.strict_owner(), pod.controller()) {
        (Some(_), _) => Replaced::AtMostOne,
        (None, Some(_)) => Replaced::Freely,
        (None, None) => Replaced::Never,
    }
}

fn storage_of(pod: &Pod, around: &Surroundings) -> Vec<Storage> {
    let read = |name: &str, source: &Source| {
        let claim = match source {
            Source::Inline(kind) => {
                let detail = format!("{kind}, which any node may write");
                return Storage { name: name.to_owned(), detail, exclusive: Some(true) };
            }
            Source::Claim(claim) => claim,
        };
        let full = format!("{}/{claim}", pod.metadata.namespace);
        let unknown = |why: &str| Storage { name: claim.clone(), detail: why.to_owned(), exclusive: None };
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
            Some(kind) => Some(storage::is_exclusive(modes, kind, volume_mode)),
            // An exclusive mode is one whatever the kind; a shared one may still be a bare disk.
            None => storage::is_exclusive(modes, "", volume_mode).then_some(true),
        };
        Storage { name: claim.clone(), detail, exclusive }
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

fn spent_budgets(pod: &Pod, budgets: &[Budget]) -> Vec<String> {
    let concerns = |budget: &&Budget| {
        budget.metadata.namespace == pod.metadata.namespace
            && budget.status.disruptions_allowed <= 0
            && budget.spec.selector.as_ref().is_some_and(|selector| selector.matches(&pod.metadata.labels))
    };
    budgets.iter().filter(concerns).map(|budget| budget.metadata.name.clone()).collect()
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
    all.into_iter().filter(|(missing, _)| *missing).map(|(_, what)| what).collect()
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
            (_, Some(Contact::Gone)) => format!("{name} does not exist"),
            (None, Some(Contact::Silent)) => format!("{name} does not exist, since when is not known"),
            (None, Some(Contact::Late)) => {
                let heartbeat = around.heartbeat(name).and_then(Lease::renewed);
                let heard = heartbeat.map_or_else(String::new, |time| format!(" {} ago", ago(time)));
                format!("{name} does not exist, but its kubelet was heard of{heard}")
            }
            (None, _) => format!("{name}, which may not be read"),
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
                let fenced = if node.is_out_of_service() { ", declared out of service" } else { "" };
                format!("{name}: {heartbeat}, {ready}{fenced}")
            }
        };
        lines.push(("node", node));
    }
    if let Some(held) = around.held_by(name, now) {
        lines.push(("held by", held));
    }
    lines.push((
        "owner",
        pod.controller().map_or("none".to_owned(), |owner| format!("{}/{}", owner.kind, owner.name)),
    ));
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
        Some(Contact::Gone) => format!(
            "{node} does not exist: low only if its machine is destroyed; one that still runs goes on running \
             the containers"
        ),
        Some(Contact::Fenced) => {
            format!("{node} is silent and was declared to be off: if that is true, nothing runs")
        }
        Some(Contact::Silent) if facts.nodeless => format!(
            "{may_run} on the machine of {node}: the node does not exist, and nothing tells since when it is silent"
        ),
        Some(Contact::Silent) => format!("{may_run} on {node}: nothing is heard of it"),
        Some(Contact::Late) if doubted => format!(
            "the containers are most likely running on {node}: it heartbeats, whatever its Ready condition says"
        ),
        Some(Contact::Late) => {
            format!("{may_run} on {node}: whether it is gone or only late is not known")
        }
        Some(Contact::Heard | Contact::Back) => {
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
                "it is the image of a static pod of {node}: deleting it does not end the process, and it comes back"
            ));
            return reasons;
        }
        Some(Futile::Mirror) => reasons.push(format!(
            "it is marked as the image of a static pod, though {node} does not own it: if that is true, deleting \
             it does not end the process"
        )),
        Some(Futile::Finalizers) => reasons.push(format!(
            "its finalizers ({}) keep the object, whatever the grace: force will not make it go",
            pod.metadata.finalizers.join(", ")
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
    if matches!(facts.contact, Some(Contact::Gone | Contact::Fenced)) {
        return reasons;
    }
    if let Some(owner) = pod.strict_owner() {
        let why = if owner.kind == "StatefulSet" && owner.api_version == "apps/v1" {
            "starts another of the same name as soon as the object is gone, and relies on there being one only"
        } else {
            "may rely on there being one only: what it does when the object is gone is not known"
        };
        reasons.push(format!("{}/{} {why}", owner.kind, owner.name));
    }
    for storage in &assessment.storage {
        match storage.exclusive {
            Some(true) => reasons.push(format!(
                "{} ({}) may be written by two nodes at once then, which can destroy it",
                storage.name, storage.detail
            )),
            None => {
                reasons.push(format!("what {} is, and who else may write it, is not known", storage.name));
            }
            Some(false) => {}
        }
    }
    for lease in &assessment.leads {
        reasons.push(format!("it holds the lease {lease}, by the holder's name: two may act as the leader"));
    }
    if facts.leads.is_none() {
        reasons.push("whether it is a leader is not known".into());
    }
    if facts.deletion == Deletion::NotBegun && facts.contact.is_none_or(|contact| contact != Contact::Silent)
    {
        match budgets {
            Some(budgets) => reasons.extend(budgets.iter().map(|budget| {
                format!("the disruption budget {budget} allows no disruption now, and force does not ask it")
            })),
            None => reasons.push("whether a disruption budget forbids it is not known".into()),
        }
    }
    if facts.deletion == Deletion::Stuck && facts.contact.is_some_and(Contact::is_alive) {
        reasons.push(format!("{node} is alive and does not get it ended: force hides what is wrong there"));
    }
    match facts.replaced {
        Replaced::Never => reasons.push("it has no controller: nothing brings it back".into()),
        Replaced::Freely if !facts.is_guarded() && facts.contact == Some(Contact::Silent) => {
            reasons.push("its controller does not wait for it: two at once do no harm".into());
        }
        _ => {}
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::safer::Safe;
    use jiff::Timestamp;
    use serde_json::{Value, json};

    const CONTACTS: [Option<Contact>; 7] = [
        Some(Contact::Heard),
        Some(Contact::Back),
        Some(Contact::Late),
        Some(Contact::Silent),
        Some(Contact::Fenced),
        Some(Contact::Gone),
        None,
    ];
    const DELETIONS: [Deletion; 3] = [Deletion::NotBegun, Deletion::Begun, Deletion::Stuck];
    const REPLACED: [Replaced; 3] = [Replaced::AtMostOne, Replaced::Freely, Replaced::Never];
    const KNOWN: [Option<bool>; 3] = [Some(false), Some(true), None];

    /// A stateless pod, of which all is known.
    fn stateless(contact: Contact, deletion: Deletion) -> Facts {
        Facts {
            scheduled: true,
            finished: false,
            mirror: false,
            nodeless: false,
            contact: Some(contact),
            deletion,
            replaced: Replaced::Freely,
            exclusive: Some(false),
            leads: Some(false),
            no_budget: Some(false),
        }
    }

    /// The rows of the table that this rule is built on.
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

    #[test]
    fn the_table() {
        use Contact::{Back, Fenced, Gone, Heard, Late, Silent};
        use Deletion::{Begun, NotBegun, Stuck};
        for (contact, deletion, plain, guarded) in [
            (Gone, NotBegun, Risk::Low, Risk::Low),
            (Gone, Stuck, Risk::Low, Risk::Low),
            (Heard, NotBegun, Risk::Medium, Risk::High),
            (Heard, Begun, Risk::Medium, Risk::High),
            (Heard, Stuck, Risk::High, Risk::High),
            (Back, NotBegun, Risk::Medium, Risk::High),
            (Back, Stuck, Risk::High, Risk::High),
            (Fenced, NotBegun, Risk::Low, Risk::Low),
            (Fenced, Stuck, Risk::Low, Risk::Low),
            (Silent, NotBegun, Risk::Low, Risk::Critical),
            (Silent, Begun, Risk::Low, Risk::Critical),
            (Silent, Stuck, Risk::Low, Risk::Critical),
            (Late, NotBegun, Risk::Medium, Risk::Critical),
            (Late, Stuck, Risk::High, Risk::Critical),
        ] {
            let facts = stateless(contact, deletion);
            assert_eq!(facts.risk(), plain, "{facts:?}");
            assert_eq!(
                Facts { replaced: Replaced::Never, ..facts }.risk(),
                plain,
                "no controller: {facts:?}"
            );
            for facts in [
                Facts { replaced: Replaced::AtMostOne, ..facts },
                Facts { exclusive: Some(true), ..facts },
                Facts { leads: Some(true), ..facts },
                Facts { exclusive: None, ..facts },
                Facts { leads: None, ..facts },
                Facts { exclusive: Some(true), leads: Some(true), replaced: Replaced::AtMostOne, ..facts },
            ] {
                assert_eq!(facts.risk(), guarded, "{facts:?}");
            }
            for facts in [Facts { finished: true, ..facts }, Facts { scheduled: false, ..facts }] {
                assert_eq!(facts.risk(), Risk::None, "{facts:?}");
            }
            assert_eq!(Facts { mirror: true, ..facts }.risk(), Risk::Low, "{facts:?}");
        }
        let asked = Facts { no_budget: Some(true), ..stateless(Heard, NotBegun) };
        assert_eq!(asked.risk(), Risk::High);
        assert_eq!(Facts { no_budget: None, ..asked }.risk(), Risk::High);
        // The budget was asked, or does not matter any more.
        assert_eq!(Facts { deletion: Begun, ..asked }.risk(), Risk::Medium);
        assert_eq!(Facts { contact: Some(Silent), ..asked }.risk(), Risk::Low);
    }

    /// Every mixture there is: to know less never makes it look safer.
    #[test]
    fn missing_evidence_is_the_worst_that_it_could_be() {
        let mut mixtures = 0;
        for contact in CONTACTS {
            for (deletion, replaced) in DELETIONS.iter().flat_map(|d| REPLACED.iter().map(move |r| (*d, *r)))
            {
                for (exclusive, leads) in KNOWN.iter().flat_map(|e| KNOWN.iter().map(move |l| (*e, *l))) {
                    for no_budget in KNOWN {
                        let facts = Facts {
                            scheduled: true,
                            finished: false,
                            mirror: false,
                            nodeless: false,
                            contact,
                            deletion,
                            replaced,
                            exclusive,
                            leads,
                            no_budget,
                        };
                        let less = [
                            Facts { contact: None, ..facts },
                            Facts { exclusive: None, ..facts },
                            Facts { leads: None, ..facts },
                            Facts { no_budget: None, ..facts },
                        ];
                        for less in less {
                            assert!(less.risk() >= facts.risk(), "{less:?} looks safer than {facts:?}");
                        }
                        assert!(facts.risk() > Risk::None, "{facts:?}");
                        let sure = matches!(contact, Some(Contact::Gone | Contact::Fenced));
                        assert!(
                            sure == (facts.risk() == Risk::Low && facts.is_guarded()) || !facts.is_guarded()
                        );
                        mixtures += 1;
                    }
                }
            }
        }
        assert_eq!(mixtures, 7 * 3 * 3 * 27);
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
        }
    }

    /// The same, with node-1 declared to be off.
    fn fenced(mut around: Surroundings) -> Surroundings {
        let taint = json!({ "key": "node.kubernetes.io/out-of-service", "effect": "NoExecute" });
        around.nodes.as_mut().unwrap().get_mut("node-1").unwrap().spec.taints.push(read(taint));
        around
    }

    fn risk_of(pod: &Pod, around: &Surroundings) -> Risk {
        Assessment::of(pod, around, now()).risk
    }

    #[test]
    fn owners() {
        let none = json!([]);
        for (kind, silent, heard) in [
            ("StatefulSet", Risk::Critical, Risk::High),
            ("ReplicaSet", Risk::Low, Risk::Medium),
            ("ReplicationController", Risk::Low, Risk::Medium),
            ("Job", Risk::Low, Risk::Medium),
            ("DaemonSet", Risk::Low, Risk::Medium),
            ("", Risk::Low, Risk::Medium),
            // An operator's own kind: nobody knows what it relies on.
            ("PostgresCluster", Risk::Critical, Risk::High),
        ] {
            let pod = pod(kind, None, &none);
            assert_eq!((risk_of(&pod, &around(600)), risk_of(&pod, &around(5))), (silent, heard), "{kind}");
        }
    }

    /// Others have a `ReplicaSet` too, and not every owner calls itself the controller.
    #[test]
    fn owners_that_are_not_known_are_taken_to_mind() {
        let owner = |version: &str, kind: &str, controller: Option<bool>| {
            json!({
                "apiVersion": version, "kind": kind, "name": "x", "uid": "u", "controller": controller.unwrap_or_default(),
            })
        };
        let known = owner("apps/v1", "ReplicaSet", Some(true));
        for (owners, risk, told) in [
            (json!([known]), Risk::Low, "ReplicaSet/x"),
            (json!([owner("apps/v1", "ReplicaSet", None)]), Risk::Low, "ReplicaSet/x"),
            (json!([owner("evil.example/v1", "ReplicaSet", Some(true))]), Risk::Critical, "ReplicaSet/x"),
            (json!([owner("batch.volcano.sh/v1alpha1", "Job", Some(true))]), Risk::Critical, "Job/x"),
            (json!([owner("", "Job", Some(true))]), Risk::Critical, "Job/x"),
            (json!([owner("db.example/v1", "Database", None)]), Risk::Critical, "Database/x"),
            (json!([known, owner("db.example/v1", "Database", None)]), Risk::Critical, "ReplicaSet/x"),
        ] {
            let mut pod = pod("", None, &json!([]));
            pod.metadata.owner_references = read(owners.clone());
            let assessment = Assessment::of(&pod, &around(600), now());
            assert_eq!(assessment.risk, risk, "{owners}");
            assert!(assessment.evidence.contains(&("owner", told.to_owned())), "{:?}", assessment.evidence);
        }
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
        let inline = self::pod("ReplicaSet", None, &json!([{ "name": "x", "iscsi": {} }]));
        assert_eq!(risk_of(&inline, &around(600)), Risk::Critical);
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
                Risk::High,
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
        assert_eq!(
            Assessment::of(&stateless, &nothing, now()).safer[0].takes,
            None,
            "nothing is done blindly"
        );
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
                marked["metadata"]["ownerReferences"] =
                    json!([{ "apiVersion": version(kind), "kind": kind, "name": "db", "controller": true }]);
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
            (without(around(600)), Risk::Low, Risk::Low),
            (without(around(61)), Risk::Low, Risk::Low),
            // The lease goes with the node, and then nothing tells since when.
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
        for (pod, around, takes, command) in [
            (&finished, around(600), Some(Safe::Delete), "kubectl delete pod"),
            (&pending, around(600), Some(Safe::Delete), "kubectl delete pod"),
            (
                &pod("StatefulSet", None, &none),
                gone(),
                Some(Safe::Await),
                "kubectl wait --for=delete pod/db-0 -n shop",
            ),
            (&pod("StatefulSet", None, &none), vanished(), Some(Safe::Await), "kubectl wait"),
            (&pod("ReplicaSet", None, &none), vanished(), Some(Safe::Await), "kubectl wait"),
            (&pod("StatefulSet", Some(600), &none), fenced(), Some(Safe::Await), "kubectl wait"),
            (
                &pod("StatefulSet", None, &none),
                fenced(),
                Some(Safe::Delete),
                "kubectl delete pod db-0 -n shop",
            ),
            (
                &pod("StatefulSet", None, &none),
                around(5),
                Some(Safe::Evict),
                "kubectl lease force-delete pod db-0 -n shop --safe",
            ),
            (&pod("StatefulSet", Some(5), &none), around(5), Some(Safe::Await), "kubectl wait"),
            (&pod("StatefulSet", Some(600), &none), around(5), None, "kubectl describe pod db-0 -n shop"),
            (&pod("StatefulSet", Some(600), &none), around(600), None, "kubectl lease partitions node-1 -w"),
            (&pod("StatefulSet", None, &none), around(45), None, "kubectl lease partitions node-1 -w"),
        ] {
            let assessment = Assessment::of(pod, &around, now());
            let first = &assessment.safer[0];
            assert_eq!(first.takes, takes, "{assessment:#?}");
            assert!(first.command.as_deref().unwrap().starts_with(command), "{first:?}");
        }
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
}
