//! What is shown of a node without heartbeats.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use crate::output::{
    Cell, Change, Item, Tone,
    words::{advice, count, evidence, risk, volumes},
};
use kube_leases::{
    client::{
        NODES, PODS,
        partitions::{Partition, Stranded},
    },
    rules::{
        assessment::Assessment,
        duration::age,
        node::{Node, NodeContact},
        risk::Risk,
        time::ServerTime,
    },
};

/// So many pods are named in a change.
const TOLD: usize = 3;

/// A node without heartbeats, and the pods that are stranded there.
#[derive(Clone)]
pub struct PartitionRow {
    partition: Partition,
    /// What printed commands take to reach the cluster.
    flags: String,
}

impl PartitionRow {
    pub fn new(partition: Partition, flags: &str) -> Self {
        Self { partition, flags: flags.to_owned() }
    }

    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// So many pods are stranded there.
    pub fn stranded_pods(&self) -> usize {
        self.partition.pods.len()
    }

    fn tone(&self) -> Tone {
        match self.partition.contact {
            NodeContact::Heard => Tone::Good,
            NodeContact::Late | NodeContact::Back | NodeContact::NotReady => Tone::Doubtful,
            NodeContact::Silent | NodeContact::Gone => Tone::Bad,
            NodeContact::Fenced => Tone::Faint,
        }
    }

    fn worst(&self) -> Option<Risk> {
        self.partition.pods.iter().map(|stranded| stranded.assessment.risk).max()
    }

    /// What became of the pods from one look to the next.
    fn happened_to_pods(&self, new: &Self) -> Vec<String> {
        let named = |row: &Self| -> BTreeMap<String, bool> {
            let of = |stranded: &Stranded| {
                let pod = &stranded.pod.value;
                (pod.full_name(), pod.metadata.deletion_timestamp.is_some())
            };
            row.partition.pods.iter().map(of).collect()
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
        match self.partition.pods.len() {
            0 => "no pods there".to_owned(),
            pods => format!("{} stranded{worst}", count(pods, "pod")),
        }
    }
}

impl Item for PartitionRow {
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
        let node = self.partition.object.as_ref().map(|node| &*node.value);
        let row = |stranded: Option<&Stranded>| {
            // A node's clock may be ahead.
            let heartbeat =
                self.partition.heartbeat.map(|time| age(now.since(time).max(SignedDuration::ZERO)));
            let mut cells = vec![
                Cell::new(&self.partition.node),
                Cell::new(self.partition.contact.word()).tone(self.tone()),
                Cell::or_none(heartbeat),
            ];
            match stranded {
                None => cells.extend([blank(), blank(), blank(), blank(), blank(), blank()]),
                Some(stranded) => {
                    let worst = stranded.assessment.risk;
                    let pod = &stranded.pod.value;
                    cells.extend([
                        Cell::new(pod.full_name()),
                        Cell::new(status(stranded, self.partition.contact)),
                        Cell::new(worst.word()).tone(risk::tone(worst)),
                        Cell::or_none(pod.terminating(now).map(age)),
                        Cell::or_none(owner(stranded)),
                        Cell::or_none(volumes_of(stranded)),
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
                let reason = stranded.and_then(|stranded| stranded.assessment.main_reason());
                cells.extend([
                    Cell::or_none(ready),
                    Cell::or_none(Some(taints.join(",")).filter(|taints| !taints.is_empty())),
                    Cell::or_none(self.partition.held_by.as_ref().map(evidence::held_by)),
                    Cell::or_none(reason.map(risk::reason)),
                ]);
            }
            cells
        };
        if self.partition.pods.is_empty() {
            return vec![row(None)];
        }
        self.partition.pods.iter().map(|stranded| row(Some(stranded))).collect()
    }

    fn document(&self) -> Map<String, Value> {
        let node = self.partition.object.as_ref().map(|node| &*node.value);
        let ready = node.and_then(Node::ready).map(|ready| {
            json!({
                "status": ready.status, "reason": ready.reason,
                "since": ready.last_transition_time.map(|time| format!("{time:.0}")),
            })
        });
        let fields = json!({
            "node": self.partition.node,
            "state": self.partition.contact,
            "heartbeat": self.partition.heartbeat.map(|time| format!("{time:.6}")),
            "ready": ready,
            "taints": node.map(|node| &node.spec.taints),
            "heldBy": self.partition.held_by.as_ref().map(|held| json!({ "holder": held.holder, "reason": held.reason })),
            "pods": self.partition.pods.iter().map(|pod| document_of(pod, self.partition.contact, self.partition.seen, &self.flags)).collect::<Vec<_>>(),
            "object": self.partition.object.as_ref().map(|node| node.document(NODES)),
        });
        fields.as_object().cloned().unwrap_or_default()
    }

    fn resource(&self) -> String {
        format!("node/{}", self.partition.node)
    }

    fn key(&self) -> &str {
        &self.partition.node
    }

    fn change(before: Option<&Self>, after: Option<&Self>, _: ServerTime) -> Option<Change> {
        let subject = after.or(before)?.partition.node.clone();
        let change = |what, detail, tone| Some(Change { subject: subject.clone(), what, detail, tone });
        match (before, after) {
            (None, Some(new)) => change(new.partition.contact.word(), new.stranded(), new.tone()),
            (Some(old), None) => change("alive", format!("was {}", old.partition.contact.word()), Tone::Good),
            (Some(old), Some(new)) if old.partition.contact != new.partition.contact => {
                let detail = format!("was {}, {}", old.partition.contact.word(), new.stranded());
                change(new.partition.contact.word(), detail, new.tone())
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

fn status(stranded: &Stranded, contact: NodeContact) -> &str {
    match contact {
        // The word that the proposal for pod safety has for it.
        NodeContact::Silent | NodeContact::Fenced | NodeContact::Gone => "NodeDown",
        _ if stranded.pod.value.metadata.deletion_timestamp.is_some() => "Terminating",
        _ => &stranded.pod.value.status.phase,
    }
}

fn owner(stranded: &Stranded) -> Option<String> {
    stranded.pod.value.controller().map(|owner| format!("{}/{}", owner.kind, owner.name))
}

fn volumes_of(stranded: &Stranded) -> Option<String> {
    let volumes: Vec<String> = stranded.assessment.volumes.iter().map(volumes::cell).collect();
    (!volumes.is_empty()).then(|| volumes.join(", "))
}

fn document_of(stranded: &Stranded, contact: NodeContact, now: ServerTime, flags: &str) -> Value {
    let Assessment { risk, futile, volumes, leads, reasons, missing, safer, .. } = &stranded.assessment;
    let pod = &stranded.pod.value;
    let since = pod.terminating(now).and_then(|length| now.0.checked_sub(length).ok());
    let volumes: Vec<Value> = volumes.iter().map(volumes::document).collect();
    let reasons: Vec<Value> = reasons.iter().map(risk::document).collect();
    let missing: Vec<Value> = missing.iter().map(|what| evidence::document(*what)).collect();
    let safer: Vec<Value> = safer.iter().map(|way| advice::document(way, pod, flags)).collect();
    json!({
        "name": pod.metadata.name, "namespace": pod.metadata.namespace,
        "status": status(stranded, contact),
        "terminatingSince": since.map(|time| format!("{time:.0}")),
        "owner": owner(stranded), "volumes": volumes, "leads": leads,
        "risk": risk, "futile": futile, "reasons": reasons, "missing": missing, "safer": safer,
        "pod": stranded.pod.document(PODS),
    })
}
