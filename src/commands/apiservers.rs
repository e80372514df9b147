//! `kubectl lease apiservers`.

use serde_json::{Map, Value};

use super::watching::{self, View};
use crate::{
    cli::Apiservers,
    cluster::{Cluster, LEASES, Object, Query},
    domain::{
        duration,
        identity::{self, Happened, Identity, State},
        lease::Lease,
        time::ServerTime,
    },
    error::{Error, Result},
    exit::ExitCode,
    output::{Cell, Change, Item, Printer, Tone},
};

pub async fn run(args: &Apiservers, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    let listing = &args.listing;
    // All leases of the namespace, not only those with today's label: releases before 1.26 used
    // another one, and in the middle of an upgrade there are both.
    let query = Query::new(LEASES)
        .namespace(identity::NAMESPACE)
        .select(listing.selector.as_deref(), listing.field_selector.as_deref());
    let view = Apis { name: args.name.as_deref() };
    if listing.watch {
        return watching::run(&view, &[query], listing, cluster, printer).await;
    }

    let leases = watching::gather(cluster, &[query]).await?;
    let now = cluster.server_time();
    let apiservers = view.items(&leases, now);
    match (&args.name, apiservers.as_slice()) {
        (None, []) => Err(none_at_all(listing.selector.is_some() || listing.field_selector.is_some())),
        (Some(name), []) => Err(not_there(name, &Apis { name: None }.items(&leases, now))),
        (Some(_), [one]) => {
            printer.single(one, listing.output, !listing.no_headers, now).map(|()| ExitCode::Done)
        }
        (_, all) => printer.listing(all, listing.output, !listing.no_headers, now).map(|()| ExitCode::Done),
    }
}

/// One kube-apiserver, and the lease that tells of it.
#[derive(Clone)]
struct Apiserver {
    identity: Identity,
    lease: Object<Lease>,
}

struct Apis<'a> {
    name: Option<&'a str>,
}

impl View for Apis<'_> {
    type Object = Lease;
    type Item = Apiserver;

    fn key(lease: &Lease) -> String {
        lease.metadata.name.clone()
    }

    fn items(&self, sources: &[Vec<Object<Lease>>], now: ServerTime) -> Vec<Apiserver> {
        let leases = sources.iter().flatten();
        let mut apiservers: Vec<_> = leases
            .filter_map(|lease| {
                let identity = Identity::from_lease(&lease.value, now)?;
                let wanted = self.name.is_none_or(|name| identity.answers_to(name));
                wanted.then(|| Apiserver { identity, lease: lease.clone() })
            })
            .collect();
        apiservers.sort_by(|a, b| a.identity.order().cmp(&b.identity.order()));
        apiservers
    }

    fn summary(&self, items: &[Apiserver]) -> String {
        let alive = items.iter().filter(|item| item.identity.state == State::Alive).count();
        format!("{alive} of {} alive", items.len())
    }
}

impl Item for Apiserver {
    const KIND: &'static str = "ApiServer";

    fn headers(wide: bool) -> &'static [&'static str] {
        const WIDE: [&str; 9] = [
            "HOST",
            "STATE",
            "IDENTITY",
            "PEER ADDRESS",
            "STARTED",
            "RENEWED",
            "HOLDER UUID",
            "LEASE",
            "NAMESPACE",
        ];
        if wide { &WIDE } else { &WIDE[..6] }
    }

    fn cells(&self, now: ServerTime, wide: bool) -> Vec<Cell> {
        let identity = &self.identity;
        let ago = |time: Option<_>| Cell::or_none(time.map(|time| duration::age(now.since(time))));
        let mut cells = vec![
            Cell::or_none(identity.hostname.as_deref()),
            Cell::new(identity.state.word()).tone(tone(identity.state)),
            Cell::new(&identity.identity),
            Cell::or_none(identity.peer_address.as_deref()),
            ago(identity.started),
            ago(identity.renewed),
        ];
        if wide {
            cells.extend([
                Cell::or_none(identity.holder_uuid.as_deref()),
                Cell::new(&identity.lease_name),
                Cell::new(&identity.namespace),
            ]);
        }
        cells
    }

    fn document(&self) -> Map<String, Value> {
        let mut fields = match serde_json::to_value(&self.identity) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        fields.insert("lease".into(), self.lease.document(LEASES));
        fields
    }

    fn resource(&self) -> String {
        format!("lease.{}/{}", LEASES.group, self.identity.lease_name)
    }

    fn key(&self) -> &str {
        &self.identity.lease_name
    }

    fn change(before: Option<&Self>, after: Option<&Self>, now: ServerTime) -> Option<Change> {
        let (old, new) = (before.map(|item| &item.identity), after.map(|item| &item.identity));
        let happened = Happened::between(old, new)?;
        let was = old.map_or_else(String::new, |old| format!("was {}", old.state));
        let (detail, tone) = match happened {
            Happened::Joined => (new?.state.word().to_owned(), tone(new?.state)),
            Happened::Left => ("its lease was deleted".to_owned(), Tone::Bad),
            Happened::Restarted => (was, Tone::Good),
            Happened::Became(state) => {
                let renewed = new?.renewed.map_or_else(String::new, |renewed| {
                    format!(", last renewed {} ago", duration::age(now.since(renewed)))
                });
                (was + &renewed, tone(state))
            }
        };
        let subject = new.or(old)?.called().to_owned();
        Some(Change { subject, what: happened.word(), detail, tone })
    }
}

fn tone(state: State) -> Tone {
    match state {
        State::Alive => Tone::Good,
        State::Late | State::Unknown => Tone::Doubtful,
        State::Silent | State::Expired => Tone::Bad,
    }
}

fn none_at_all(selected: bool) -> Error {
    let (message, hint) = if selected {
        ("no kube-apiserver identity matches the selector", "without -l and --field-selector all are listed")
    } else {
        (
            "this cluster has no kube-apiserver identities",
            "its kube-apiservers publish them unless started with --feature-gates=APIServerIdentity=false",
        )
    };
    Error::NotFound { message: message.into(), hint: Some(hint.into()) }
}

fn not_there(name: &str, others: &[Apiserver]) -> Error {
    if others.is_empty() {
        return none_at_all(false);
    }
    let names: Vec<_> = others.iter().map(|other| other.identity.called()).collect();
    Error::NotFound {
        message: format!("no kube-apiserver is called '{name}'"),
        hint: Some(format!("there is {}", names.join(", "))),
    }
}
