use std::{collections::BTreeMap, time::Duration};

use serde_json::{Map, Value, json};

use super::who;
use crate::{
    cli::MaintList,
    commands::watching::{self, View},
    error::Result,
    exit::ExitCode,
    output::{Cell, Change, Item, Printer, Tone},
};
use kube_leases::{
    client::{Cluster, LEASES, Object},
    protocols::{
        NodeTarget,
        target::{deleted_node, leases, medik8s_leases, nodes},
    },
    rules::{
        duration::age,
        holder::Who,
        lease::Lease,
        maintenance::{self, MaintenanceStanding},
        node_lease::NodeLeaseState,
        time::ServerTime,
    },
};

pub async fn run(args: &MaintList, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    let listing = &args.listing;
    let queries = [
        nodes().select(listing.selector.as_deref(), listing.field_selector.as_deref()),
        leases(),
        medik8s_leases(),
    ];
    // Of a selection the nodes that were deleted are not known.
    let deleted = listing.selector.is_none() && listing.field_selector.is_none();
    let view = |who| Nodes { who, abandoned: args.abandoned, deleted };
    if listing.watch {
        let who = who(&args.identity, true, cluster).await?;
        return watching::run(&view(who), &queries, listing, cluster, printer).await;
    }
    let (who, sources) =
        tokio::try_join!(who(&args.identity, true, cluster), watching::gather(cluster, &queries))?;
    let now = cluster.server_time();
    let rows = view(who).items(&sources, now);
    if rows.is_empty() {
        printer.note(if args.abandoned { "no leases look abandoned" } else { "no nodes found" });
        if !matches!(listing.output, crate::output::Format::Json | crate::output::Format::Yaml) {
            return Ok(ExitCode::Done);
        }
    }
    printer.listing(&rows, listing.output, !listing.no_headers, now)?;
    Ok(ExitCode::Done)
}

struct Nodes {
    who: Who,
    abandoned: bool,
    /// Whether leases of deleted nodes are shown, where they are held.
    deleted: bool,
}

impl View for Nodes {
    type Object = Lease;
    type Item = Row;

    fn key(object: &Lease) -> String {
        object.metadata.name.clone()
    }

    fn items(&self, sources: &[Vec<Object<Lease>>], now: ServerTime) -> Vec<Row> {
        let [nodes, leases, medik8s] = sources else { return Vec::new() };
        let named = |leases: &[Object<Lease>]| -> BTreeMap<String, Object<Lease>> {
            leases.iter().map(|lease| (lease.value.metadata.name.clone(), lease.clone())).collect()
        };
        let (leases, medik8s) = (named(leases), named(medik8s));
        let one = |leases: &BTreeMap<String, Object<Lease>>, name: &str| -> Vec<Object<Lease>> {
            leases.get(name).cloned().into_iter().collect()
        };
        let is_left = |lease: &&Object<Lease>| {
            self.deleted
                && !lease.value.holder().is_empty()
                && nodes.iter().all(|node| node.value.metadata.name != lease.value.metadata.name)
        };
        let left = leases.values().filter(is_left).map(|lease| deleted_node(&lease.value.metadata.name));
        let mut rows: Vec<Row> = nodes
            .iter()
            .map(|node| node.value.metadata.clone())
            .chain(left)
            .map(|node| {
                let (lease, other) =
                    (one(&leases, &node.name), one(&medik8s, &maintenance::medik8s_name(&node.name)));
                Row::new(NodeTarget::of(node, &lease, &other, now), &self.who, now)
            })
            .filter(|row| row.abandoned || !self.abandoned)
            .collect();
        rows.sort_by(|a, b| a.target.node.name.cmp(&b.target.node.name));
        rows
    }

    fn summary(&self, rows: &[Row]) -> String {
        let held = rows.iter().filter(|row| row.state().is_held()).count();
        format!("{held} of {} held", rows.len())
    }
}

/// A node and how its lease stands.
#[derive(Clone)]
pub struct Row {
    pub target: NodeTarget,
    pub standing: MaintenanceStanding,
    /// Whether it is held at this moment, by any holder: one's own may have expired, too.
    pub is_valid: bool,
    pub abandoned: bool,
}

impl Row {
    pub fn new(target: NodeTarget, who: &Who, now: ServerTime) -> Self {
        let lease = target.lease.as_ref().map(|lease| &*lease.value);
        let standing = MaintenanceStanding::of(lease.map(|lease| &lease.spec), who, now);
        Self {
            is_valid: standing.is_valid(now),
            standing,
            abandoned: lease.is_some_and(|lease| maintenance::is_abandoned(lease, who, now)),
            target,
        }
    }

    fn lease(&self) -> Option<&Lease> {
        self.target.lease.as_ref().map(|lease| &*lease.value)
    }

    pub fn state(&self) -> NodeLeaseState {
        let terminating = self.lease().is_some_and(|lease| lease.metadata.deletion_timestamp.is_some());
        NodeLeaseState::of(&self.standing, self.is_valid, terminating, self.target.medik8s.is_some())
    }

    fn tone(&self) -> Tone {
        match self.state() {
            _ if self.abandoned => Tone::Bad,
            NodeLeaseState::Free | NodeLeaseState::Yours => Tone::Good,
            NodeLeaseState::Malformed => Tone::Bad,
            NodeLeaseState::Expired => Tone::Faint,
            _ => Tone::Doubtful,
        }
    }

    fn holder(&self) -> Option<&str> {
        let lease = self.lease().map(Lease::holder).filter(|holder| !holder.is_empty());
        lease.or(self.target.medik8s.as_deref())
    }

    fn until(&self) -> Option<jiff::Timestamp> {
        match self.standing {
            MaintenanceStanding::Held { until, .. }
            | MaintenanceStanding::Ours { until: Some(until), admin: false } => {
                self.is_valid.then_some(until)
            }
            _ => None,
        }
    }

    fn remaining(&self, now: ServerTime) -> Cell {
        match (&self.standing, self.until()) {
            (MaintenanceStanding::Admin { .. } | MaintenanceStanding::Ours { admin: true, .. }, _) => {
                Cell::new("until released")
            }
            (_, Some(until)) => {
                let left = Duration::try_from(until.duration_since(now.0)).unwrap_or_default();
                let whole = self.lease().and_then(|lease| lease.spec.lease_duration_seconds).unwrap_or(1);
                let whole = Duration::from_secs(u64::try_from(whole).unwrap_or(1));
                let text = age(until.duration_since(now.0).max(jiff::SignedDuration::ZERO));
                Cell::new(text).gauge(left, whole)
            }
            _ => Cell::or_none(None::<&str>),
        }
    }
}

fn word(state: NodeLeaseState) -> &'static str {
    match state {
        NodeLeaseState::Free => "free",
        NodeLeaseState::Yours => "yours",
        NodeLeaseState::Held => "held",
        NodeLeaseState::Admin => "admin",
        NodeLeaseState::Expired => "expired",
        NodeLeaseState::Malformed => "malformed",
        NodeLeaseState::Medik8s => "medik8s",
        NodeLeaseState::Terminating => "terminating",
    }
}

impl Item for Row {
    const KIND: &'static str = "NodeMaintenance";

    fn headers(wide: bool) -> &'static [&'static str] {
        const WIDE: [&str; 9] = [
            "NODE",
            "STATE",
            "HOLDER",
            "REMAINING",
            "REASON",
            "ACQUIRED",
            "RENEWED",
            "TRANSITIONS",
            "MEDIK8S",
        ];
        if wide { &WIDE } else { &WIDE[..5] }
    }

    fn cells(&self, now: ServerTime, wide: bool) -> Vec<Cell> {
        let mut state = word(self.state()).to_owned();
        if self.abandoned {
            state.push_str(", abandoned");
        }
        if self.target.node.uid.is_empty() {
            state.push_str(", node deleted");
        }
        let mut cells = vec![
            Cell::new(&self.target.node.name),
            Cell::new(state).tone(self.tone()),
            Cell::or_none(self.holder()),
            self.remaining(now),
            Cell::or_none(self.lease().and_then(Lease::reason)),
        ];
        if wide {
            let spec = self.lease().map(|lease| &lease.spec);
            let ago = |time: Option<jiff::Timestamp>| Cell::or_none(time.map(|time| age(now.since(time))));
            cells.extend([
                ago(spec.and_then(|spec| spec.acquire_time.as_ref()).map(|time| time.0)),
                ago(self.lease().and_then(Lease::renewed)),
                Cell::or_none(spec.and_then(|spec| spec.lease_transitions).map(|count| count.to_string())),
                Cell::or_none(self.target.medik8s.as_deref()),
            ]);
        }
        cells
    }

    fn document(&self) -> Map<String, Value> {
        let fields = json!({
            "node": self.target.node.name,
            "state": word(self.state()),
            "holder": self.holder(),
            "reason": self.lease().and_then(Lease::reason),
            "until": self.until().map(|until| format!("{until:.6}")),
            "abandoned": self.abandoned,
            "medik8s": self.target.medik8s,
            "lease": self.target.lease.as_ref().map(|lease| lease.document(LEASES)),
        });
        fields.as_object().cloned().unwrap_or_default()
    }

    fn resource(&self) -> String {
        format!("node/{}", self.target.node.name)
    }

    fn key(&self) -> &str {
        &self.target.node.name
    }

    fn change(before: Option<&Self>, after: Option<&Self>, _: ServerTime) -> Option<Change> {
        let row = after.or(before)?;
        let subject = row.target.node.name.clone();
        let change =
            |what, detail: String, tone| Some(Change { subject: subject.clone(), what, detail, tone });
        match (before, after) {
            (None, Some(new)) => change("joined", word(new.state()).to_owned(), new.tone()),
            (Some(_), None) => change("left", String::new(), Tone::Bad),
            (Some(old), Some(new)) if old.state() != new.state() || old.holder() != new.holder() => {
                let who =
                    |row: &Self| row.holder().map_or_else(String::new, |holder| format!(" by '{holder}'"));
                let reason = new
                    .lease()
                    .and_then(Lease::reason)
                    .map_or_else(String::new, |reason| format!(": {reason}"));
                let holder = if new.state() == NodeLeaseState::Free { String::new() } else { who(new) };
                let detail =
                    format!("{}{reason}, was {}{}", holder.trim_start(), word(old.state()), who(old));
                change(word(new.state()), detail.trim_start_matches([',', ' ']).to_owned(), new.tone())
            }
            _ => None,
        }
    }
}
