use std::collections::BTreeMap;

use super::{row::MaintenanceRow, who};
use crate::{
    cli::{MaintList, Only},
    commands::watching::{self, View},
    error::Result,
    exit::ExitCode,
    output::{Format, Printer},
};
use kube_leases::{
    client::{Cluster, Object},
    protocols::{
        NodeTarget,
        target::{deleted_node, leases, medik8s_leases, nodes},
    },
    rules::{holder::Who, lease::Lease, maintenance, time::ServerTime},
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
    let view = |who| NodeLeases { who, only: args.only, deleted };
    if listing.watch {
        let who = who(args.identity.holder(), true, cluster).await?;
        return watching::run(&view(who), &queries, listing, cluster, printer).await;
    }
    let (who, sources) =
        tokio::try_join!(who(args.identity.holder(), true, cluster), watching::gather(cluster, &queries))?;
    let now = cluster.server_time();
    let rows = view(who).items(&sources, now);
    if rows.is_empty() {
        printer.note(match args.only {
            Only { abandoned: true, held: false, mine: false } => "no leases look abandoned",
            Only { abandoned: true, .. } => "no leases match",
            Only { mine: true, .. } => "you hold no nodes",
            Only { held: true, .. } => "no nodes are held",
            _ => "no nodes found",
        });
        if !matches!(listing.output, Format::Json | Format::Yaml) {
            return Ok(ExitCode::Done);
        }
    }
    printer.listing(&rows, listing.output, !listing.no_headers, now)?;
    Ok(ExitCode::of(!args.exit_code || rows.iter().all(|row| !row.abandoned)))
}

struct NodeLeases {
    who: Who,
    only: Only,
    /// Whether leases of deleted nodes are shown, where they are held.
    deleted: bool,
}

impl View for NodeLeases {
    type Object = Lease;
    type Item = MaintenanceRow;

    fn key(object: &Lease) -> String {
        object.metadata.name.clone()
    }

    fn items(&self, sources: &[Vec<Object<Lease>>], now: ServerTime) -> Vec<MaintenanceRow> {
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
        let mut rows: Vec<MaintenanceRow> = nodes
            .iter()
            .map(|node| node.value.metadata.clone())
            .chain(left)
            .map(|node| {
                let (lease, other) =
                    (one(&leases, &node.name), one(&medik8s, &maintenance::medik8s_name(&node.name)));
                MaintenanceRow::new(NodeTarget::of(node, &lease, &other, now), &self.who, now)
            })
            .filter(|row| row.abandoned || !self.only.abandoned)
            .filter(|row| row.state().is_held() || !self.only.held)
            .filter(|row| row.is_of(&self.who) || !self.only.mine)
            .collect();
        rows.sort_by_key(|row| (!row.state().is_held(), row.target.node.name.clone()));
        rows
    }

    fn summary(&self, rows: &[MaintenanceRow]) -> String {
        let held = rows.iter().filter(|row| row.state().is_held()).count();
        format!("{held} of {} held", rows.len())
    }
}
