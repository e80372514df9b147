//! A candidate in the list: its cells, its document, and what happened to it.

use std::{collections::HashMap, sync::LazyLock};

use serde_json::{Map, Value, json};

use kube_leases::{
    client::{LEASES, Object, Resource, candidates::Part},
    rules::{
        candidacy::{Candidacy, CandidateEvent, Role},
        candidate::{Candidate, CandidateState},
        duration::age,
        election::{CoordinatedElection, Outlook},
        lease::short,
        priority::{self, How},
        time::ServerTime,
    },
};

use crate::output::{Cell, Change, Item, Tone, words::election};

/// A candidate, and its part in the election.
#[derive(Clone)]
pub struct CandidateRow {
    pub key: String,
    pub namespace: String,
    pub lease: String,
    pub lease_shown: String,
    /// Whether no other lease is shown.
    pub alone: bool,
    resource: Resource,
    candidate: Object<Part>,
    lease_object: Option<Object<Part>>,
    pub candidacy: Candidacy,
    /// How much is wrong with its election; said of the first of it only.
    pub troubles: usize,
}

/// The candidates of an election, as it stands; `parts` has the objects.
pub fn rows(
    election: &CoordinatedElection<'_>,
    outlook: &Outlook<'_>,
    parts: &[Vec<Object<Part>>],
    resource: Resource,
) -> Vec<CandidateRow> {
    let [candidates, leases, ..] = parts else { return Vec::new() };
    let objects: HashMap<(&str, &str), &Object<Part>> = candidates
        .iter()
        .map(|object| {
            let metadata = object.value.metadata();
            ((metadata.namespace.as_str(), metadata.name.as_str()), object)
        })
        .collect();
    let is_lease = |metadata: &kube_leases::rules::lease::Metadata| {
        (metadata.namespace.as_str(), metadata.name.as_str()) == election.key()
    };
    let lease = leases.iter().find(|lease| is_lease(lease.value.metadata()));
    outlook
        .entries
        .iter()
        .enumerate()
        .filter_map(|(n, entry)| {
            let it = entry.candidate;
            let object = objects.get(&(it.metadata.namespace.as_str(), it.name()))?;
            Some(CandidateRow {
                key: format!("{}/{}", it.metadata.namespace, it.name()),
                namespace: it.metadata.namespace.clone(),
                lease: it.spec.lease_name.clone(),
                lease_shown: it.spec.lease_name.clone(),
                alone: false,
                resource,
                candidate: (*object).clone(),
                lease_object: lease.cloned(),
                candidacy: Candidacy::new(entry, outlook),
                troubles: if n == 0 { outlook.troubles.len() } else { 0 },
            })
        })
        .collect()
}

/// The part of a candidate in its election, in the table.
fn role_word(role: Role) -> &'static str {
    match role {
        Role::Leader => "leader",
        Role::Former => "was leader",
        Role::Next => "next",
        Role::MaybeNext => "next?",
        Role::None => "-",
    }
}

/// What happened to a candidate: in a word, what more there is to say, and how good it is.
fn happened_words(happened: &CandidateEvent) -> (&'static str, String, Tone) {
    let value = |value: &Option<i32>| value.map_or("none".to_owned(), |value| value.to_string());
    match happened {
        CandidateEvent::Leads { before } => {
            let was = before.as_deref().map(|leader| format!("was {}", short(leader)));
            ("leads", was.unwrap_or_else(|| "there was no leader".into()), Tone::Good)
        }
        CandidateEvent::LostLead { to } => {
            let to = to.as_deref().map(|leader| format!("to {}", short(leader)));
            ("lost", to.unwrap_or_else(|| "its lease expired".into()), Tone::Bad)
        }
        CandidateEvent::Preferred { leader } => {
            let leader = leader.as_deref().map_or("the leader".to_owned(), short);
            ("preferred", format!("{leader} is asked to step down"), Tone::Doubtful)
        }
        CandidateEvent::Priority { from, to } => {
            ("priority", format!("{}, was {}", value(to), value(from)), Tone::Doubtful)
        }
        CandidateEvent::Pinged => ("pinged", "not acknowledged yet".to_owned(), Tone::Doubtful),
        CandidateEvent::Acknowledged { after } => {
            let took = after.map(|took| format!("acknowledged the ping in {} ms", took.as_millis()));
            ("acked", took.unwrap_or_default(), Tone::Good)
        }
        CandidateEvent::Silent => ("stale", "did not acknowledge the ping".to_owned(), Tone::Bad),
        CandidateEvent::Became { state, before } => {
            (election::state(*state), format!("was {}", election::state(*before)), state_tone(*state))
        }
    }
}

fn state_tone(state: CandidateState) -> Tone {
    match state {
        CandidateState::Acked | CandidateState::Unpinged => Tone::Good,
        CandidateState::Pending => Tone::Doubtful,
        CandidateState::Stale => Tone::Bad,
        CandidateState::Expired => Tone::Faint,
    }
}

impl CandidateRow {
    fn it(&self) -> &Candidate {
        static NONE: LazyLock<Candidate> = LazyLock::new(Candidate::default);
        self.candidate.value.candidate().unwrap_or(&NONE)
    }

    fn tone(&self) -> Tone {
        state_tone(self.candidacy.state)
    }

    fn priority_cell(&self, now: ServerTime) -> Cell {
        let Some(priority) = self.candidacy.priority else { return Cell::new("-") };
        let overdue = priority::is_overdue(self.it(), now);
        let how = if priority.how == How::Pinned { " pinned" } else { "" };
        let until = match priority.expires {
            None if overdue => ", overdue".to_owned(),
            None => String::new(),
            Some(expires) if expires <= now.0 => format!(", overdue {}", age(now.since(expires))),
            Some(expires) => format!(", {} left", age(expires.duration_since(now.0))),
        };
        let tone = if overdue { Tone::Bad } else { Tone::Doubtful };
        Cell::new(format!("{}{how}{until}", priority.value)).tone(tone)
    }
}

impl Item for CandidateRow {
    const KIND: &'static str = "Candidate";

    fn headers(wide: bool) -> &'static [&'static str] {
        const WIDE: [&str; 12] = [
            "LEASE",
            "HOST",
            "ROLE",
            "STATE",
            "RENEWED",
            "PRIORITY",
            "EMULATION",
            "BINARY",
            "CANDIDATE",
            "STRATEGY",
            "AGE",
            "NAMESPACE",
        ];
        if wide { &WIDE } else { &WIDE[..9] }
    }

    fn cells(&self, now: ServerTime, wide: bool) -> Vec<Cell> {
        let it = self.it();
        let ago = |time: Option<_>| Cell::or_none(time.map(|time| age(now.since(time))));
        let (role, state) = (self.candidacy.role, self.candidacy.state);
        let tone = match role {
            Role::Leader => Tone::Good,
            Role::Former => Tone::Bad,
            Role::Next | Role::MaybeNext => Tone::Doubtful,
            Role::None => Tone::Plain,
        };
        let mut cells = vec![
            Cell::new(&self.lease_shown),
            Cell::new(it.host()),
            Cell::new(role_word(role)).tone(tone),
            Cell::new(election::state(state)).tone(self.tone()),
            ago(it.spec.renew_time),
            self.priority_cell(now),
            Cell::new(priority::true_emulation_version(it).into_owned()),
            Cell::new(&it.spec.binary_version),
            Cell::new(it.name()),
        ];
        if wide {
            cells.extend([
                Cell::new(it.strategies().join(",")),
                ago(it.metadata.creation_timestamp),
                Cell::new(&self.namespace),
            ]);
        }
        cells
    }

    fn document(&self) -> Map<String, Value> {
        let it = self.it();
        let time = |time: Option<jiff::Timestamp>| time.map(|time| format!("{time:.6}"));
        let Candidacy { role, state, absence, is_preferred, priority, .. } = &self.candidacy;
        let document = |part: &Object<Part>, resource| part.document(resource);
        let fields = json!({
            "candidate": it.name(),
            "namespace": self.namespace,
            "leaseName": self.lease,
            "host": it.host(),
            "leader": *role == Role::Leader,
            "next": matches!(role, Role::Next | Role::MaybeNext),
            "tied": *role == Role::MaybeNext,
            "takesPart": absence.is_none(),
            "preferred": is_preferred,
            "priority": priority.map(|priority| priority.value),
            "priorityBy": priority.map(|priority| priority.how),
            "priorityExpires": priority.and_then(|priority| priority.expires).map(|time| format!("{time:.0}")),
            "binaryVersion": it.spec.binary_version,
            "emulationVersion": priority::true_emulation_version(it),
            "strategy": it.strategies().join(","),
            "state": state,
            "renewed": time(it.spec.renew_time),
            "leaseCandidate": document(&self.candidate, self.resource),
            "lease": self.lease_object.as_ref().map(|lease| document(lease, LEASES)),
        });
        fields.as_object().cloned().unwrap_or_default()
    }

    fn resource(&self) -> String {
        format!("leasecandidate.{}/{}", self.resource.group, self.it().name())
    }

    fn key(&self) -> &str {
        &self.key
    }

    fn change(before: Option<&Self>, after: Option<&Self>, _: ServerTime) -> Option<Change> {
        let row = after.or(before)?;
        let subject = short(row.it().name());
        let subject = if row.alone { subject } else { format!("{} {subject}", row.lease_shown) };
        let change =
            |what, detail: String, tone| Some(Change { subject: subject.clone(), what, detail, tone });
        let (old, new) = match (before, after) {
            (None, Some(new)) => {
                return change("joined", election::state(new.candidacy.state).to_owned(), new.tone());
            }
            (Some(_), None) => return change("left", String::new(), Tone::Bad),
            (Some(old), Some(new)) => (old, new),
            (None, None) => return None,
        };
        let happened = new.candidacy.since(&old.candidacy);
        let mut words = happened.iter().map(happened_words);
        let (what, mut detail, tone) = words.next()?;
        for (also, more, _) in words {
            let more = if more.is_empty() { also.to_owned() } else { format!("{also}: {more}") };
            detail = if detail.is_empty() { more } else { format!("{detail}; {more}") };
        }
        change(what, detail, tone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;

    #[test]
    fn what_happened_to_a_candidate_in_words() {
        let name = |name: &str| Some(name.to_owned());
        for (happened, what, detail) in [
            (CandidateEvent::Leads { before: None }, "leads", "there was no leader"),
            (CandidateEvent::Leads { before: name("cp-1_0123456789") }, "leads", "was cp-1_01234567"),
            (CandidateEvent::LostLead { to: name("cp-2_a") }, "lost", "to cp-2_a"),
            (CandidateEvent::LostLead { to: None }, "lost", "its lease expired"),
            (CandidateEvent::Preferred { leader: None }, "preferred", "the leader is asked to step down"),
            (CandidateEvent::Priority { from: None, to: Some(5) }, "priority", "5, was none"),
            (CandidateEvent::Pinged, "pinged", "not acknowledged yet"),
            (
                CandidateEvent::Acknowledged { after: Some(SignedDuration::from_millis(12)) },
                "acked",
                "acknowledged the ping in 12 ms",
            ),
            (CandidateEvent::Silent, "stale", "did not acknowledge the ping"),
            (
                CandidateEvent::Became { state: CandidateState::Stale, before: CandidateState::Acked },
                "stale",
                "was acked",
            ),
        ] {
            let (said, more, _) = happened_words(&happened);
            assert_eq!((said, more.as_str()), (what, detail), "{happened:?}");
        }
    }
}
