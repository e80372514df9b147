//! `kubectl lease leaders`.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap, HashSet},
};

use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use super::{
    namespaces::{check_namespace, within},
    watching::{self, View},
};
use crate::{
    cli::Leaders,
    error::{Error, Result},
    exit::ExitCode,
    output::{
        Cell, Change, Format, Item, Printer, Tone,
        words::leader::{process, state},
    },
};
use kube_leases::{
    client::{Cluster, LEASES, NODES, Object, PODS, Query, Readable, Resource, candidates::leases_query},
    rules::{
        duration::{age, ago},
        leader::{self, Belongs, History, LeaseEvent, LeaseLook, LeaseState, Places},
        lease::{Lease, Metadata},
        time::ServerTime,
    },
};

pub async fn run(
    args: &Leaders,
    namespace: Option<&str>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let listing = &args.listing;
    let namespace = within(&args.scope, namespace);
    let mut leases = leases_query(namespace);
    leases.labels.clone_from(&listing.selector);
    leases.fields = match (leases.fields.take(), listing.field_selector.clone()) {
        (Some(ours), Some(theirs)) => Some(format!("{ours},{theirs}")),
        (ours, theirs) => ours.or(theirs),
    };
    // Where a holder's process could be: a lease may be held by a pod of another namespace.
    let queries =
        [leases, Query::new(PODS).metadata_only().optional(), Query::new(NODES).metadata_only().optional()];
    let view = Leases { name: args.name.as_deref(), seen: RefCell::default() };
    if listing.watch {
        return watching::run(&view, &queries, listing, cluster, printer).await;
    }
    let sources = watching::gather(cluster, &queries).await?;
    let now = cluster.server_time();
    let rows = view.items(&sources, now);
    if rows.is_empty() {
        if let Some(name) = &args.name {
            return Err(Error::NotFound {
                message: format!("there is no leader-election lease '{name}'"),
                hint: Some("'kubectl lease leaders' lists them all".into()),
            });
        }
        check_namespace(namespace, cluster).await?;
        let place = namespace.map_or_else(String::new, |name| format!(" in {name}"));
        printer.note(&format!("there are no leader-election leases{place}"));
        if !matches!(listing.output, Format::Json | Format::Yaml) {
            return Ok(ExitCode::Done);
        }
    }
    printer.listing(&rows, listing.output, !listing.no_headers, now)?;
    let led = rows.iter().all(|row| row.state.has_leader());
    Ok(ExitCode::of(led || !args.exit_code))
}

/// A lease, or something of which only the name matters.
pub enum Part {
    Lease(Lease),
    Other(Metadata),
}

impl Readable for Part {
    fn read(resource: Resource, text: &[u8]) -> Result<Self, serde_json::Error> {
        #[derive(serde::Deserialize)]
        struct Other {
            metadata: Metadata,
        }
        Ok(if resource == LEASES {
            Self::Lease(serde_json::from_slice(text)?)
        } else {
            Self::Other(serde_json::from_slice::<Other>(text)?.metadata)
        })
    }
}

impl Part {
    fn metadata(&self) -> &Metadata {
        match self {
            Self::Lease(lease) => &lease.metadata,
            Self::Other(metadata) => metadata,
        }
    }
}

/// The pods and nodes that there are. None at all is the same as not being allowed to look: no
/// conclusions are drawn from it.
struct KnownPlaces<'a> {
    pods: HashMap<&'a str, Vec<&'a str>>,
    nodes: HashSet<&'a str>,
}

impl<'a> KnownPlaces<'a> {
    fn new(pods: &'a [Object<Part>], nodes: &'a [Object<Part>]) -> Self {
        let mut by_name: HashMap<&str, Vec<&str>> = HashMap::new();
        for pod in pods {
            let metadata = pod.value.metadata();
            by_name.entry(&metadata.name).or_default().push(&metadata.namespace);
        }
        Self { pods: by_name, nodes: nodes.iter().map(|node| node.value.metadata().name.as_str()).collect() }
    }
}

impl Places for KnownPlaces<'_> {
    fn pods(&self, name: &str) -> Option<Vec<&str>> {
        (!self.pods.is_empty()).then(|| self.pods.get(name).cloned().unwrap_or_default())
    }

    fn node(&self, name: &str) -> Option<bool> {
        (!self.nodes.is_empty()).then(|| self.nodes.contains(name))
    }
}

struct Leases<'a> {
    name: Option<&'a str>,
    /// The holders that were seen while watching.
    seen: RefCell<BTreeMap<String, History>>,
}

impl View for Leases<'_> {
    type Object = Part;
    type Item = LeaderRow;

    fn key(part: &Part) -> String {
        let metadata = part.metadata();
        format!("{}/{}", metadata.namespace, metadata.name)
    }

    fn items(&self, sources: &[Vec<Object<Part>>], now: ServerTime) -> Vec<LeaderRow> {
        let [leases, pods, nodes] = sources else { return Vec::new() };
        let places = KnownPlaces::new(pods, nodes);
        let mut seen = self.seen.borrow_mut();
        let mut rows: Vec<LeaderRow> = leases
            .iter()
            .filter_map(|object| {
                let Part::Lease(lease) = &*object.value else { return None };
                let wanted = self.name.is_none_or(|name| name == lease.metadata.name);
                if !wanted || !leader::is_leader_election(lease) {
                    return None;
                }
                let key = Self::key(&object.value);
                let history = seen.entry(key.clone()).or_default();
                history.observe(lease.holder(), now);
                let belongs = leader::belongs(lease, &places);
                Some(LeaderRow {
                    state: leader::state(lease, &belongs, now),
                    flapping: history.is_flapping(now),
                    changes: history.count,
                    belongs,
                    key,
                    object: object.clone(),
                })
            })
            .collect();
        rows.sort_by(|a, b| a.key.cmp(&b.key));
        rows
    }

    fn summary(&self, rows: &[LeaderRow]) -> String {
        let count = |state| rows.iter().filter(|row| row.state == state).count();
        let flapping = rows.iter().filter(|row| row.flapping).count();
        let flapping = if flapping == 0 { String::new() } else { format!(", {flapping} flapping") };
        format!("{} of {} healthy{flapping}", count(LeaseState::Healthy), rows.len())
    }
}

/// A leader-election lease.
#[derive(Clone)]
struct LeaderRow {
    key: String,
    object: Object<Part>,
    belongs: Belongs,
    state: LeaseState,
    changes: usize,
    flapping: bool,
}

impl LeaderRow {
    fn lease(&self) -> &Lease {
        static NONE: std::sync::LazyLock<Lease> = std::sync::LazyLock::new(Lease::default);
        match &*self.object.value {
            Part::Lease(lease) => lease,
            Part::Other(_) => &NONE,
        }
    }

    fn holder(&self) -> Option<&str> {
        Some(self.lease().holder()).filter(|holder| !holder.is_empty())
    }

    fn look(&self) -> LeaseLook {
        LeaseLook { holder: self.lease().holder().to_owned(), state: self.state }
    }

    fn strategy(&self) -> Option<&str> {
        self.lease().spec.strategy.as_deref().filter(|strategy| !strategy.is_empty())
    }

    fn tone(&self) -> Tone {
        match self.state {
            _ if self.flapping => Tone::Bad,
            LeaseState::Healthy => Tone::Good,
            LeaseState::Late | LeaseState::Unknown => Tone::Doubtful,
            LeaseState::Released => Tone::Faint,
            LeaseState::Expired | LeaseState::Ghost => Tone::Bad,
        }
    }
}

impl Item for LeaderRow {
    const KIND: &'static str = "Leader";

    fn headers(wide: bool) -> &'static [&'static str] {
        const WIDE: [&str; 12] = [
            "NAMESPACE",
            "LEASE",
            "STATE",
            "RENEWED",
            "REMAINING",
            "TRANSITIONS",
            "HOLDER",
            "PROCESS",
            "STRATEGY",
            "PREFERRED",
            "DURATION",
            "ACQUIRED",
        ];
        if wide { &WIDE } else { &WIDE[..8] }
    }

    fn cells(&self, now: ServerTime, wide: bool) -> Vec<Cell> {
        let lease = self.lease();
        let ago = |time: Option<_>| Cell::or_none(time.map(|time| age(now.since(time))));
        let flapping = if self.flapping { ", flapping" } else { "" };
        let left =
            lease.expires().filter(|_| self.holder().is_some()).map(|until| until.duration_since(now.0));
        let remaining = match (left, lease.duration()) {
            (Some(left), Some(whole)) => {
                let left = left.max(SignedDuration::ZERO);
                Cell::new(age(left)).gauge(left.unsigned_abs(), whole.unsigned_abs())
            }
            _ => Cell::or_none(None::<&str>),
        };
        let transitions = lease.spec.lease_transitions.unwrap_or(0);
        let seen = if self.changes == 0 { String::new() } else { format!(" (+{} seen)", self.changes) };
        let mut cells = vec![
            Cell::new(&lease.metadata.namespace),
            Cell::new(&lease.metadata.name),
            Cell::new(format!("{}{flapping}", state(self.state))).tone(self.tone()),
            ago(lease.renewed()),
            remaining,
            Cell::new(format!("{transitions}{seen}")),
            Cell::or_none(self.holder()),
            Cell::or_none(process(&self.belongs).map(|process| format!("{process} (guess)"))),
        ];
        if wide {
            cells.extend([
                Cell::or_none(self.strategy()),
                Cell::or_none(lease.spec.preferred_holder.as_deref()),
                Cell::or_none(lease.duration().map(age)),
                ago(lease.spec.acquire_time.as_ref().map(|time| time.0)),
            ]);
        }
        cells
    }

    fn document(&self) -> Map<String, Value> {
        let lease = self.lease();
        let fields = json!({
            "state": self.state,
            "holder": self.holder(),
            "coordinated": self.strategy().is_some(),
            "process": self.belongs,
            "processGuess": process(&self.belongs),
            "renewed": lease.renewed().map(|time| format!("{time:.6}")),
            "until": lease.expires().map(|time| format!("{time:.6}")),
            "transitions": lease.spec.lease_transitions.unwrap_or(0),
            "changesSeen": self.changes,
            "flapping": self.flapping,
            "lease": self.object.document(LEASES),
        });
        fields.as_object().cloned().unwrap_or_default()
    }

    fn resource(&self) -> String {
        format!("lease.{}/{}", LEASES.group, self.lease().metadata.name)
    }

    fn key(&self) -> &str {
        &self.key
    }

    fn change(before: Option<&Self>, after: Option<&Self>, now: ServerTime) -> Option<Change> {
        let row = after.or(before)?;
        let change =
            |what, detail: String, tone| Some(Change { subject: row.key.clone(), what, detail, tone });
        let looks = (before.map(Self::look), after.map(Self::look));
        let holder = |holder: Option<String>| holder.unwrap_or_else(|| "none".to_owned());
        match LeaseEvent::between(looks.0.as_ref(), looks.1.as_ref())? {
            LeaseEvent::Appeared { holder: by } => change("appeared", holder(by), row.tone()),
            LeaseEvent::Deleted { holder: by } => {
                change("deleted", format!("was held by {}", holder(by)), Tone::Bad)
            }
            LeaseEvent::Leads { holder: leader, before } => {
                let was = holder(before);
                if row.flapping {
                    let detail = format!("{leader}, was {was}; flapping, {} changes seen", row.changes);
                    change("leads", detail, Tone::Bad)
                } else {
                    change("leads", format!("{leader}, was {was}"), Tone::Good)
                }
            }
            LeaseEvent::Became { state: now_is, before } => {
                let renewed = row
                    .lease()
                    .renewed()
                    .map_or_else(String::new, |time| format!(", renewed {}", ago(now.since(time))));
                let by = row.holder().unwrap_or("none");
                change(state(now_is), format!("{by}, was {}{renewed}", state(before)), row.tone())
            }
        }
    }
}
