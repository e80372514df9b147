//! `kubectl lease partitions`.

mod row;
mod watched;

use serde_json::json;

use self::{row::PartitionRow, watched::Watched};
use super::{count, namespaces::check_namespace, watching};
use crate::{
    cli::Partitions,
    connection::Reached,
    error::{Error, Result},
    exit::ExitCode,
    output::{
        Format, Item, Printer,
        words::{controllers, paste::with_flags},
    },
};
use kube_leases::{
    client::{
        Query,
        partitions::{self, Partition, Which},
        pods::workloads,
        surroundings,
    },
    rules::{
        node::{self, HEARTBEATS, NodeContact},
        pod::Pod,
        stopped::{self, Stopped},
        workload,
    },
};

pub async fn run(
    args: &Partitions,
    namespace: Option<&str>,
    cluster: &Reached,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let listing = &args.listing;
    let which = Which {
        node: args.node.as_deref(),
        labels: listing.selector.as_deref(),
        fields: listing.field_selector.as_deref(),
        namespace,
    };
    let documents = matches!(listing.output, Format::Json | Format::Yaml);
    if listing.watch {
        let mut queries = vec![which.nodes().bare(!documents), which.pods().bare(!documents)];
        queries.extend(surroundings::watchable(cluster).await?);
        let followed = |query: &Query| (query.resource, query.namespace.clone());
        let followed = queries.iter().map(followed).collect();
        let view = Watched { which, followed, flags: cluster.flags() };
        if !view.follows_leases_of(HEARTBEATS) {
            printer.warn(UNHEARD);
        }
        let unfollowed = |kind: &workload::Kind| {
            which.is_all() && view.followed.iter().all(|(of, _)| *of != workloads(*kind))
        };
        if let Some(warning) = unlisted(&stopped::KINDS.into_iter().filter(unfollowed).collect::<Vec<_>>()) {
            printer.warn(&warning);
        }
        return watching::run(&view, &queries, listing, cluster, printer).await;
    }
    let (labelled, unread) =
        if which.is_all() { surroundings::stopped_controllers(cluster).await? } else { Default::default() };
    let of_those = |pod: &Pod| labelled.iter().any(|(kind, workload)| workload.owns(*kind, pod));
    let found = partitions::read(cluster, &which, !documents, of_those).await?;
    let stopped = partitions::stopped(
        labelled.iter().map(|(kind, workload)| (*kind, workload)),
        found.others.iter().map(|pod| &*pod.value),
        found.partitions.iter(),
    );
    if !found.heartbeats_seen {
        printer.warn(UNHEARD);
    }
    if let Some(warning) = unlisted(&unread) {
        printer.warn(&warning);
    }
    if found.nodes.is_empty() && !which.sees_all() && which.node.is_none() {
        // Nothing is well where nothing was looked at.
        return Err(Error::NotFound {
            message: "no node matches".into(),
            hint: Some(with_flags("'kubectl get nodes --show-labels' lists them", cluster.flags())),
        });
    }
    let now = cluster.server_time();
    let is_any = !found.partitions.is_empty();
    let rows: Vec<PartitionRow> =
        found.partitions.into_iter().map(|partition| PartitionRow::new(partition, cluster.flags())).collect();
    match (which.node, rows.as_slice()) {
        (Some(node), []) if !found.nodes.contains(node) => {
            return Err(Error::NotFound {
                message: match namespace {
                    Some(name) => format!("there is no node '{node}', and no pod of {name} on it"),
                    None => format!("there is no node '{node}', and no pod on it"),
                },
                hint: Some(with_flags("'kubectl get nodes' lists them", cluster.flags())),
            });
        }
        (_, []) if !documents => {
            let line = match which.node {
                Some(node) => format!("{node} sends heartbeats: not partitioned"),
                None => format!("no partitions: {} with heartbeats", count(found.nodes.len(), "node")),
            };
            if listing.output == Format::Name {
                printer.note(&line);
            } else {
                printer.done(&line)?;
            }
        }
        (Some(_), [one]) => printer.single(one, listing.output, !listing.no_headers, now)?,
        (_, all) if documents && which.is_all() => {
            let items: Vec<_> = all.iter().map(Item::document).collect();
            let stopped: Vec<_> =
                stopped.iter().map(|stopped| controllers::document(stopped, cluster.flags())).collect();
            let fields = json!({ "serverTime": now.0, "items": items, "stopped": stopped });
            printer.document("PartitionList", fields, listing.output)?;
        }
        (_, all) => printer.listing(all, listing.output, !listing.no_headers, now)?,
    }
    if rows.iter().all(|row| row.stranded_pods() == 0) {
        check_namespace(namespace, cluster).await?;
    }
    if let Some(warning) = mass_silence(rows.iter(), found.nodes.len()).filter(|_| which.is_whole()) {
        printer.warn(&warning);
    }
    if !documents {
        for stopped in &stopped {
            printer.warn(&told(stopped, cluster.flags()));
        }
    }
    Ok(if args.exit_code && is_any { ExitCode::Held } else { ExitCode::Done })
}

/// What to think of before anything is done about many silent nodes.
fn mass_silence<'a>(rows: impl Iterator<Item = &'a PartitionRow>, nodes: usize) -> Option<String> {
    // One that never sent a heartbeat is new.
    let is_silent = |one: &&Partition| {
        one.heartbeat.is_some() && matches!(one.contact, NodeContact::Silent | NodeContact::Late)
    };
    let silent = rows.map(PartitionRow::partition).filter(is_silent).count();
    node::is_mass_silence(silent, nodes).then(|| {
        format!(
            "{silent} of {} are silent: it is more likely that the control plane does not hear them than that all \
             have failed; check the network between them before you force-delete or fence anything",
            count(nodes, "node")
        )
    })
}

const UNHEARD: &str = "you cannot read the leases in kube-node-lease: a node that has gone silent is only \
                       seen when the node controller says so";

/// Which controllers that were scaled to 0 or suspended are not found, for want of permission.
fn unlisted(kinds: &[workload::Kind]) -> Option<String> {
    let resource = |kind: &workload::Kind| format!("{}.{}", workloads(*kind).plural, workloads(*kind).group);
    let names: Vec<String> = kinds.iter().map(resource).collect();
    (!names.is_empty()).then(|| {
        format!(
            "you cannot list {}: controllers that were scaled to 0 or suspended, and not brought back, are not found there",
            names.join(", ")
        )
    })
}

/// What to do about a controller that was not brought back, in a line, and the command in another.
fn told(stopped: &Stopped, flags: &str) -> String {
    let notice = controllers::notice(stopped, flags);
    format!("{}\n{}", notice.what, notice.command)
}
