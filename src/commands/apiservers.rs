//! `kubectl lease apiservers`.

use std::{
    cell::{self, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use serde_json::{Map, Value};

use super::watching::{self, View};
use crate::{
    cli::Apiservers,
    error::{Error, Result},
    exit::ExitCode,
    output::{
        Cell, Change, Format, Item, Printer, Tone,
        words::apiserver::{happened as word_of, state},
    },
};
use kube_leases::{
    client::{Cluster, LEASES, Object, Query},
    rules::{
        duration,
        identity::{self, ApiserverEvent, ApiserverRenewal, ApiserverState, Identity, LABEL, is_identity},
        lease::Lease,
        time::ServerTime,
    },
};

pub async fn run(args: &Apiservers, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    let listing = &args.listing;
    // All leases of the namespace, not only those with today's label: releases before 1.26 used
    // another one, and in the middle of an upgrade there are both.
    let query = Query::new(LEASES)
        .namespace(identity::NAMESPACE)
        .select(listing.selector.as_deref(), listing.field_selector.as_deref());
    let selected = listing.selector.is_some() || listing.field_selector.is_some();
    let mut view = Apis { name: args.name.as_deref(), selected, ..Apis::default() };
    if listing.watch {
        view.watched = Some(RefCell::default());
        return watching::run(&view, &[query], listing, cluster, printer).await;
    }

    let leases = watching::gather(cluster, &[query]).await?;
    let now = cluster.server_time();
    let apiservers = view.items(&leases, now);
    match (&args.name, apiservers.as_slice()) {
        (None, []) => return Err(none_at_all(selected)),
        (Some(name), []) => return Err(not_there(name, &Apis::default().items(&leases, now))),
        (Some(_), [one]) => printer.single(one, listing.output, !listing.no_headers, now)?,
        (_, all) => printer.listing(all, listing.output, !listing.no_headers, now)?,
    }
    if apiservers.iter().any(|it| it.identity.state == ApiserverState::Skewed)
        && matches!(listing.output, Format::Table | Format::Wide)
    {
        printer.hint(
            "skewed: the clock of that kube-apiserver is ahead; 'kubectl lease apiservers --watch' sees within \
             10 seconds whether it renews, and 'kubectl lease doctor --clocks' by how much its clock differs",
        );
    }
    let well = apiservers.iter().all(|it| it.identity.state == ApiserverState::Alive);
    Ok(ExitCode::of(well || !args.exit_code))
}

/// One kube-apiserver, and the lease that tells of it.
#[derive(Clone)]
struct Apiserver {
    identity: Identity,
    lease: Object<Lease>,
    selected: bool,
    unlabelled: Rc<RefCell<BTreeSet<String>>>,
}

#[derive(Default)]
struct Apis<'a> {
    name: Option<&'a str>,
    /// By a selector: what does not match it any more looks deleted.
    selected: bool,
    /// The renewals that were seen, by the names of the leases.
    watched: Option<RefCell<BTreeMap<String, ApiserverRenewal>>>,
    /// Whether renewals may have been missed since the last look.
    gap: cell::Cell<bool>,
    /// Leases that are there, and no identities any more.
    unlabelled: Rc<RefCell<BTreeSet<String>>>,
}

impl Apis<'_> {
    /// Takes in what the leases are like now.
    fn look(&self, leases: &[Vec<Object<Lease>>], now: ServerTime) {
        let Some(watched) = &self.watched else { return };
        let (mut watched, mut unlabelled) = (watched.borrow_mut(), self.unlabelled.borrow_mut());
        let gap = self.gap.take() || watched.is_empty();
        let mut there = BTreeSet::new();
        unlabelled.clear();
        for lease in leases.iter().flatten().map(|lease| &*lease.value) {
            let name = &lease.metadata.name;
            if is_identity(lease) {
                there.insert(name.clone());
                watched
                    .entry(name.clone())
                    .and_modify(|seen| seen.look(lease, gap, now))
                    .or_insert_with(|| ApiserverRenewal::first(lease, !gap, now));
            } else {
                unlabelled.insert(name.clone());
            }
        }
        watched.retain(|name, _| there.contains(name));
    }
}

impl View for Apis<'_> {
    type Object = Lease;
    type Item = Apiserver;

    fn key(lease: &Lease) -> String {
        lease.metadata.name.clone()
    }

    fn missed(&self) {
        self.gap.set(true);
    }

    fn items(&self, sources: &[Vec<Object<Lease>>], now: ServerTime) -> Vec<Apiserver> {
        self.look(sources, now);
        let watched = self.watched.as_ref().map(RefCell::borrow);
        let leases = sources.iter().flatten();
        let mut apiservers: Vec<_> = leases
            .filter_map(|lease| {
                let seen = watched.as_ref().and_then(|watched| watched.get(&lease.value.metadata.name));
                let identity = Identity::observed(&lease.value, seen, now)?;
                let wanted = self.name.is_none_or(|name| identity.answers_to(name));
                wanted.then(|| Apiserver {
                    identity,
                    lease: lease.clone(),
                    selected: self.selected,
                    unlabelled: Rc::clone(&self.unlabelled),
                })
            })
            .collect();
        apiservers.sort_by(|a, b| a.identity.order().cmp(&b.identity.order()));
        apiservers
    }

    fn summary(&self, items: &[Apiserver]) -> String {
        let alive = items.iter().filter(|item| item.identity.state == ApiserverState::Alive).count();
        format!("{alive} of {} alive", items.len())
    }
}

impl Apiserver {
    /// Why it is not listed any more.
    fn where_it_went(&self) -> String {
        if self.unlabelled.borrow().contains(&self.identity.lease_name) {
            format!("its lease is there, without the label {LABEL}")
        } else if self.selected {
            "its lease was deleted, or does not match the selector any more".to_owned()
        } else {
            "its lease was deleted".to_owned()
        }
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
        let started = identity.started.map(|started| now.since(started));
        let ago = |age: Option<_>| Cell::or_none(age.map(duration::age));
        let mut cells = vec![
            Cell::or_none(identity.hostname.as_deref()),
            Cell::new(state(identity.state)).tone(tone(identity.state)),
            Cell::new(&identity.identity),
            Cell::or_none(identity.peer_address.as_deref()),
            ago(started),
            ago(identity.age),
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

    fn change(before: Option<&Self>, after: Option<&Self>, _: ServerTime) -> Option<Change> {
        let (old, new) = (before.map(|item| &item.identity), after.map(|item| &item.identity));
        let happened = ApiserverEvent::between(old, new)?;
        let was = old.map_or_else(String::new, |old| format!("was {}", state(old.state)));
        let (detail, tone) = match happened {
            ApiserverEvent::Joined => (state(new?.state).to_owned(), tone(new?.state)),
            ApiserverEvent::Left => (before?.where_it_went(), Tone::Bad),
            ApiserverEvent::Restarted => (was, Tone::Good),
            ApiserverEvent::Became(now_is) => {
                let renewed = new?.age.map_or_else(String::new, |age| match duration::age(age) {
                    age if age.starts_with("in ") => format!(", renewed {age} by its own clock"),
                    age => format!(", last renewed {age} ago"),
                });
                (was + &renewed, tone(now_is))
            }
        };
        let subject = new.or(old)?.called().to_owned();
        Some(Change { subject, what: word_of(happened), detail, tone })
    }
}

fn tone(state: ApiserverState) -> Tone {
    match state {
        ApiserverState::Alive => Tone::Good,
        ApiserverState::Late | ApiserverState::Skewed | ApiserverState::Unknown => Tone::Doubtful,
        ApiserverState::Silent | ApiserverState::Expired => Tone::Bad,
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
