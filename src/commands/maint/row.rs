//! A node and its maintenance lease, as `maint list` and `maint status` show them.

use std::time::Duration;

use serde_json::{Map, Value, json};

use kube_leases::{
    client::LEASES,
    protocols::NodeTarget,
    rules::{
        duration::age,
        holder::Who,
        lease::Lease,
        maintenance::{self, MaintenanceStanding},
        node_lease::NodeLeaseState,
        time::ServerTime,
    },
};

use crate::output::{Cell, Change, Item, Tone};

/// A node and how its lease stands.
#[derive(Clone)]
pub struct MaintenanceRow {
    pub target: NodeTarget,
    pub standing: MaintenanceStanding,
    /// Whether it is held at this moment, by any holder: one's own may have expired, too.
    pub is_valid: bool,
    pub abandoned: bool,
}

impl MaintenanceRow {
    pub fn new(target: NodeTarget, who: &Who, now: ServerTime) -> Self {
        let lease = target.lease.as_ref().map(|lease| &*lease.value);
        let standing = MaintenanceStanding::of(lease.map(|lease| &lease.spec), who, now);
        Self {
            is_valid: standing.is_valid(now),
            standing,
            // There is nothing left to work on.
            abandoned: lease.is_some_and(|lease| {
                maintenance::is_abandoned(lease, who, now)
                    || (target.node.uid.is_empty() && !lease.holder().is_empty())
            }),
            target,
        }
    }

    /// Whether its lease has this holder, or a process of that one.
    pub fn is_of(&self, who: &Who) -> bool {
        let holder = self.lease().map_or("", Lease::holder);
        who.is(holder) || holder.rsplit_once('#').is_some_and(|(own, _)| who.is(own))
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

impl Item for MaintenanceRow {
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
