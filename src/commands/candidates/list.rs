use std::collections::BTreeSet;

use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use super::{Controller, check_namespace, elections, leases, told};
use crate::{
    cli::{self, Candidates},
    cluster::{
        Cluster, LEASES, Object, Resource,
        candidates::{Part, candidates_query, leases_query},
    },
    commands::watching::{self, View},
    domain::{
        candidate::{Candidate, State},
        duration::age,
        election::{Absence, CONTROLLER, Entry, NO_COORDINATION, Outlook, Wrong},
        lease::short,
        priority::{self, How, Priority},
        safer::with_flags,
        time::ServerTime,
    },
    error::{Error, Result},
    exit::ExitCode,
    output::{Cell, Change, Format, Item, Printer, Tone},
};

pub async fn run(
    args: &Candidates,
    namespace: Option<&str>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let listing = &args.listing;
    let not_served = || cluster.without_coordination();
    // Labels choose what is shown, not who takes part.
    let selected = |resource| {
        let selected = listing.selector.is_some() || listing.field_selector.is_some();
        let query = candidates_query(resource, namespace).metadata_only();
        selected.then(|| query.select(listing.selector.as_deref(), listing.field_selector.as_deref()))
    };
    if listing.watch {
        let resource = cluster.lease_candidates(namespace).await?.ok_or_else(not_served)?;
        let mut queries = vec![candidates_query(resource, namespace), leases_query(namespace)];
        queries.extend(selected(resource));
        let view = Shown { lease: args.lease.as_deref(), resource };
        return watching::run(&view, &queries, listing, cluster, printer).await;
    }

    let Some(found) = cluster.elections(namespace).await? else {
        if args.lease.is_some() {
            return Err(not_served());
        }
        printer.note(NO_COORDINATION);
        return empty(listing.output, printer, cluster.server_time());
    };
    let resource = found.resource;
    let mut parts: Vec<_> = found.parts.into();
    if let Some(query) = selected(resource) {
        parts.push(cluster.list(&query).await?.items);
    }
    let now = cluster.server_time();
    let rows = Shown { lease: args.lease.as_deref(), resource }.items(&parts, now);
    match (&args.lease, rows.is_empty()) {
        (Some(lease), true) => return Err(perhaps_a_verb(lease, no_candidates(lease, &parts))),
        (None, true) => {
            check_namespace(namespace, cluster).await?;
            printer.note(if parts[0].is_empty() {
                "there are no candidates: no component here uses coordinated leader election"
            } else {
                "no candidate matches the selector"
            });
            return empty(listing.output, printer, now);
        }
        _ => printer.listing(&rows, listing.output, !listing.no_headers, now)?,
    }
    let shown: BTreeSet<_> = rows.iter().map(|row| (row.namespace.as_str(), row.lease.as_str())).collect();
    let mut warnings: Vec<(String, Option<String>)> = Vec::new();
    if namespace.is_none_or(|namespace| namespace == CONTROLLER.0) {
        let wrong = Controller::among(leases(&parts), now).wrong();
        warnings.extend(wrong.map(|wrong| (wrong, None)));
    }
    let all = elections(&parts);
    for election in all.iter().filter(|it| shown.contains(&(it.namespace, it.name))) {
        // A foreign strategy is not wrong, but another controller's business.
        let wrongs = election.outlook(now).wrongs;
        warnings.extend(wrongs.iter().filter(|wrong| !matches!(wrong, Wrong::Foreign(_))).map(|wrong| {
            let (what, hint) = told(wrong, election, now);
            (format!("{}: {what}", election.called()), Some(with_flags(&hint, cluster.flags())))
        }));
    }
    if matches!(listing.output, Format::Table | Format::Wide) {
        for (warning, hint) in &warnings {
            printer.warn(warning);
            if let Some(hint) = hint {
                printer.hint(hint);
            }
        }
    }
    Ok(ExitCode::of(warnings.is_empty() || !args.exit_code))
}

/// Nothing is no error, and a program that reads documents gets one.
fn empty(output: Format, printer: &mut Printer, now: ServerTime) -> Result<ExitCode> {
    if matches!(output, Format::Json | Format::Yaml) {
        printer.listing::<Row>(&[], output, true, now)?;
    }
    Ok(ExitCode::Done)
}

pub fn no_candidates(lease: &str, parts: &[Vec<Object<Part>>]) -> Error {
    let others: Vec<_> = elections(parts).iter().map(|election| election.name.to_owned()).collect();
    let named = |object: &Object<Part>| object.value.lease().is_some_and(|it| it.metadata.name == lease);
    let hint = if parts.get(1).is_some_and(|leases| leases.iter().any(named)) {
        format!("its election is not coordinated: 'kubectl lease leaders {lease}' shows who leads")
    } else if others.is_empty() {
        "no component here uses coordinated leader election".to_owned()
    } else {
        format!("there are candidates for {}", others.join(", "))
    };
    Error::NotFound { message: format!("there are no candidates for '{lease}'"), hint: Some(hint) }
}

/// A mistyped verb is taken for the name of a lease.
fn perhaps_a_verb(lease: &str, error: Error) -> Error {
    let message = error.to_string();
    match (cli::similar_verb("candidates", lease), error.hint()) {
        (Some(verb), Some(hint)) => {
            let hint = format!("the command is 'kubectl lease candidates {verb}', if you mean that; {hint}");
            Error::NotFound { message, hint: Some(hint) }
        }
        _ => error,
    }
}

struct Shown<'a> {
    lease: Option<&'a str>,
    resource: Resource,
}

impl View for Shown<'_> {
    type Object = Part;
    type Item = Row;

    fn key(part: &Part) -> String {
        let metadata = part.metadata();
        format!("{}/{}", metadata.namespace, metadata.name)
    }

    fn items(&self, parts: &[Vec<Object<Part>>], now: ServerTime) -> Vec<Row> {
        let selected: Option<BTreeSet<String>> =
            parts.get(2).map(|selected| selected.iter().map(|it| Self::key(&it.value)).collect());
        let mut rows: Vec<Row> = Vec::new();
        for election in elections(parts) {
            if self.lease.is_some_and(|lease| lease != election.name) {
                continue;
            }
            let outlook = election.outlook(now);
            for entry in &outlook.entries {
                let object = election.candidates.iter().find(|(it, _)| it.name() == entry.candidate.name());
                let Some((_, object)) = object else { continue };
                let lease = election.lease.map(|(_, object)| object.clone());
                rows.push(Row::new(entry, &outlook, (*object).clone(), lease, self.resource));
            }
        }
        rows.retain(|row| selected.as_ref().is_none_or(|selected| selected.contains(&row.key)));
        let one = rows.iter().all(|row| row.namespace == rows[0].namespace);
        let alone = one && rows.iter().all(|row| row.lease == rows[0].lease);
        for row in &mut rows {
            row.alone = alone;
            row.lease_shown =
                if one { row.lease.clone() } else { format!("{}/{}", row.namespace, row.lease) };
        }
        rows
    }

    fn summary(&self, rows: &[Row]) -> String {
        let leases: BTreeSet<_> = rows.iter().map(|row| (&row.namespace, &row.lease)).collect();
        let led: BTreeSet<_> =
            rows.iter().filter(|row| row.leader.is_some()).map(|row| (&row.namespace, &row.lease)).collect();
        let wrong: usize = rows.iter().map(|row| row.wrongs).sum();
        let wrong = match wrong {
            0 => String::new(),
            1 => "; 1 thing is wrong, 'candidates explain' tells".to_owned(),
            count => format!("; {count} things are wrong, 'candidates explain' tells"),
        };
        format!("{} candidates, {} of {} leases led{wrong}", rows.len(), led.len(), leases.len())
    }
}

/// A candidate, and its part in the election.
#[derive(Clone)]
pub struct Row {
    key: String,
    namespace: String,
    lease: String,
    lease_shown: String,
    /// Whether no other lease is shown.
    alone: bool,
    resource: Resource,
    candidate: Object<Part>,
    lease_object: Option<Object<Part>>,
    state: State,
    absence: Option<Absence>,
    role: Role,
    /// Who leads, if anybody does.
    leader: Option<String>,
    preferred: bool,
    priority: Option<Priority>,
    /// How much is wrong with its election; said of the first of it only.
    wrongs: usize,
    /// Whether its lease is about to change hands.
    electing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Leader,
    /// Held the lease, which has run out.
    Former,
    Next,
    /// One of several that are equal.
    MaybeNext,
    None,
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Self::Leader => "leader",
            Self::Former => "was leader",
            Self::Next => "next",
            Self::MaybeNext => "next?",
            Self::None => "-",
        }
    }
}

impl Row {
    pub fn new(
        entry: &Entry<'_>,
        outlook: &Outlook<'_>,
        candidate: Object<Part>,
        lease_object: Option<Object<Part>>,
        resource: Resource,
    ) -> Self {
        let it = entry.candidate;
        let first = outlook.entries.first().is_some_and(|first| first.candidate.name() == it.name());
        let role = match (outlook.leader.valid(), entry.leads, entry.next) {
            (Some(_), true, _) => Role::Leader,
            (_, _, true) if !outlook.is_tied() => Role::Next,
            (_, _, true) => Role::MaybeNext,
            (None, true, false) => Role::Former,
            _ => Role::None,
        };
        Self {
            key: Shown::key(&candidate.value),
            namespace: it.metadata.namespace.clone(),
            lease: it.spec.lease_name.clone(),
            lease_shown: it.spec.lease_name.clone(),
            alone: false,
            resource,
            state: entry.state,
            absence: entry.absence,
            role,
            leader: outlook.leader.valid().map(str::to_owned),
            preferred: outlook.preferred.as_deref() == Some(it.name()),
            priority: Priority::of(it),
            wrongs: if first { outlook.wrongs.len() } else { 0 },
            electing: outlook.leader.valid().is_none() || outlook.is_moving() || outlook.preferred.is_some(),
            candidate,
            lease_object,
        }
    }

    fn it(&self) -> &Candidate {
        static NOBODY: std::sync::LazyLock<Candidate> = std::sync::LazyLock::new(Candidate::default);
        self.candidate.value.candidate().unwrap_or(&NOBODY)
    }

    fn priority_cell(&self, now: ServerTime) -> Cell {
        let Some(priority) = self.priority else { return Cell::new("-") };
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

    fn tone(&self) -> Tone {
        match self.state {
            State::Acked | State::Unpinged => Tone::Good,
            State::Pending => Tone::Doubtful,
            State::Stale => Tone::Bad,
            State::Expired => Tone::Faint,
        }
    }

    /// How long it took to answer the last ping.
    fn answered_in(&self) -> Option<SignedDuration> {
        let spec = &self.it().spec;
        Some(spec.renew_time?.duration_since(spec.ping_time?)).filter(|took| !took.is_negative())
    }
}

impl Item for Row {
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
        let role = match self.role {
            Role::Leader => Tone::Good,
            Role::Former => Tone::Bad,
            Role::Next | Role::MaybeNext => Tone::Doubtful,
            Role::None => Tone::Plain,
        };
        let mut cells = vec![
            Cell::new(&self.lease_shown),
            Cell::new(it.host()),
            Cell::new(self.role.word()).tone(role),
            Cell::new(self.state.word()).tone(self.tone()),
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
        let document = |part: &Object<Part>, resource| part.document(resource);
        let fields = json!({
            "candidate": it.name(),
            "namespace": self.namespace,
            "leaseName": self.lease,
            "host": it.host(),
            "leader": self.role == Role::Leader,
            "next": matches!(self.role, Role::Next | Role::MaybeNext),
            "tied": self.role == Role::MaybeNext,
            "takesPart": self.absence.is_none(),
            "preferred": self.preferred,
            "priority": self.priority.map(|priority| priority.value),
            "priorityBy": self.priority.map(|priority| priority.how),
            "priorityExpires": self.priority.and_then(|priority| priority.expires).map(|time| format!("{time:.0}")),
            "binaryVersion": it.spec.binary_version,
            "emulationVersion": priority::true_emulation_version(it),
            "strategy": it.strategies().join(","),
            "state": self.state,
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
            (None, Some(new)) => return change("joined", new.state.word().to_owned(), new.tone()),
            (Some(_), None) => return change("left", String::new(), Tone::Bad),
            (Some(old), Some(new)) => (old, new),
            (None, None) => return None,
        };
        let happened = [
            new.lead_moved(old),
            new.priority_changed(old),
            // The controller pings everybody each quarter of an hour, or all the time while a dead
            // candidate has not expired: news only while it elects.
            (new.electing || old.electing).then(|| new.pinged(old)).flatten(),
            new.came_or_went(old),
        ];
        let mut happened = happened.into_iter().flatten();
        let (what, mut detail, tone) = happened.next()?;
        for (also, more, _) in happened {
            let more = if more.is_empty() { also.to_owned() } else { format!("{also}: {more}") };
            detail = if detail.is_empty() { more } else { format!("{detail}; {more}") };
        }
        change(what, detail, tone)
    }
}

type Happened = Option<(&'static str, String, Tone)>;

/// What can have happened to a candidate since an earlier look.
impl Row {
    fn lead_moved(&self, old: &Self) -> Happened {
        match (old.role == Role::Leader, self.role == Role::Leader) {
            (false, true) => {
                let was = old.leader.as_deref().map(|leader| format!("was {}", short(leader)));
                Some(("leads", was.unwrap_or_else(|| "nobody led".into()), Tone::Good))
            }
            (true, false) => {
                let to = self.leader.as_deref().map(|leader| format!("to {}", short(leader)));
                Some(("lost", to.unwrap_or_else(|| "its lease ran out".into()), Tone::Bad))
            }
            _ if self.preferred && !old.preferred => {
                let leader = self.leader.as_deref().map_or("the leader".to_owned(), short);
                Some(("preferred", format!("{leader} is asked to step down"), Tone::Doubtful))
            }
            _ => None,
        }
    }

    fn priority_changed(&self, old: &Self) -> Happened {
        let value = |row: &Self| row.priority.map(|priority| priority.value);
        let words = |row: &Self| value(row).map_or("none".to_owned(), |value| value.to_string());
        (value(old) != value(self))
            .then(|| ("priority", format!("{}, was {}", words(self), words(old)), Tone::Doubtful))
    }

    fn pinged(&self, old: &Self) -> Happened {
        let pinged = old.it().spec.ping_time != self.it().spec.ping_time;
        let was_pending = old.state == State::Pending;
        match self.state {
            State::Pending if pinged => Some(("pinged", "no answer yet".to_owned(), Tone::Doubtful)),
            State::Acked if pinged || was_pending => {
                let took =
                    self.answered_in().map(|took| format!("answered the ping in {} ms", took.as_millis()));
                Some(("acked", took.unwrap_or_default(), Tone::Good))
            }
            State::Stale if was_pending || (pinged && old.state != State::Stale) => {
                Some(("silent", "did not answer the ping".to_owned(), Tone::Bad))
            }
            _ => None,
        }
    }

    fn came_or_went(&self, old: &Self) -> Happened {
        let away = |row: &Self| matches!(row.state, State::Stale | State::Expired);
        let pinged = old.state == State::Pending;
        (old.state != self.state && (away(self) || away(old)) && !pinged)
            .then(|| (self.state.word(), format!("was {}", old.state), self.tone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_almost_a_verb_may_be_one() {
        let hint = |lease: &str| perhaps_a_verb(lease, no_candidates(lease, &[])).hint().unwrap();
        assert!(hint("explian").starts_with("the command is 'kubectl lease candidates explain'"));
        assert!(hint("set-prio").starts_with("the command is 'kubectl lease candidates set-priority'"));
        assert_eq!(hint("kube-scheduler"), "no component here uses coordinated leader election");
    }
}
