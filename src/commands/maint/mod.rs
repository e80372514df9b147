//! `kubectl lease maint`.

mod acquire;
mod list;
mod release;
mod renew;
pub mod run;
mod status;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::{
    cli::{self, Identity, Maint},
    cluster::{Cluster, LEASES, NODES, Object, Query, leases::MEDIK8S_UNSEEN, single::Address},
    domain::{
        duration::age,
        holder::Who,
        lease::{Lease, Metadata},
        maintenance::{self, Standing},
        taking::Obstacle,
        time::ServerTime,
    },
    error::{Error, Result},
    exit::ExitCode,
    output::Printer,
};

use super::{dry_run_note, tell_remarks, writing};
pub use acquire::{check_all, claims, replaces, take_all, take_by, terms, undo, wait_for};

/// How many leases are written at once.
const AT_ONCE: usize = 32;

pub async fn run(verb: &Maint, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    match verb {
        Maint::Acquire(args) => acquire::run(args, cluster, printer).await,
        Maint::Renew(args) => renew::run(args, cluster, printer).await,
        Maint::Release(args) => release::run(args, cluster, printer).await,
        Maint::Status(args) => status::run(args, cluster, printer).await,
        Maint::List(args) => list::run(args, cluster, printer).await,
        Maint::Run(args) => run::run(args, cluster, printer).await,
    }
}

/// Who we are: as told, or the authenticated user on this host.
pub async fn who(identity: &Identity, admin: bool, cluster: &Cluster) -> Result<Who> {
    if let Some(holder) = &identity.holder {
        return Who::named(holder, admin).map_err(|why| Error::usage(format!("--holder '{holder}': {why}")));
    }
    let user = cluster.whoami().await.map_err(|error| match error {
        Error::NotServed { .. } | Error::Forbidden { .. } => Error::Refused {
            message: format!("the server does not say who you are: {error}"),
            hint: Some("--holder NAME says it instead".into()),
        },
        error => error,
    })?;
    Ok(Who::user(&user, login().as_deref(), &host_name(), admin))
}

/// Who is logged in here, whoever they have become since.
fn login() -> Option<String> {
    let names = ["SUDO_USER", "USER", "LOGNAME", "USERNAME"];
    names.iter().find_map(|name| std::env::var(name).ok().filter(|login| !login.is_empty()))
}

fn host_name() -> String {
    #[cfg(unix)]
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    #[cfg(not(unix))]
    let name = std::env::var("COMPUTERNAME").ok();
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown-host".to_owned())
}

/// A node, its maintenance lease, and medik8s' say on it.
#[derive(Clone)]
pub struct Target {
    pub node: Metadata,
    pub lease: Option<Object<Lease>>,
    pub medik8s: Option<String>,
}

/// The nodes that are meant, with all that is known of them, by name.
pub async fn targets(which: &cli::Nodes, cluster: &Cluster) -> Result<Vec<Target>> {
    find_targets(which, false, cluster).await
}

/// As [`targets`], and of nodes that were deleted the leases that were left.
pub async fn remaining_targets(which: &cli::Nodes, cluster: &Cluster) -> Result<Vec<Target>> {
    find_targets(which, true, cluster).await
}

async fn find_targets(which: &cli::Nodes, deleted_too: bool, cluster: &Cluster) -> Result<Vec<Target>> {
    let mut names = which.nodes.clone();
    names.sort();
    names.dedup();
    if let [name] = &names[..] {
        return one_target(name, deleted_too, cluster).await.map(|target| vec![target]);
    }
    if names.is_empty() && which.selector.is_none() && !which.all {
        return Err(Error::Usage {
            message: "no node is named".into(),
            hint: Some("name nodes, or use -l LABELS or --all".into()),
        });
    }
    let (leases, medik8s) = (leases(), medik8s_leases());
    let (nodes, leases, medik8s) = tokio::try_join!(
        cluster.nodes(which.selector.as_deref()),
        cluster.list::<Lease>(&leases),
        cluster.list::<Lease>(&medik8s),
    )?;
    // Without the permission the list has no version either.
    if !medik8s.resource_version.is_empty() {
        cluster.medik8s_was_read(nodes.iter());
    }
    let now = cluster.server_time();
    let mut targets: Vec<Target> = nodes
        .into_iter()
        .filter(|node| names.is_empty() || names.contains(&node.name))
        .map(|node| target(node, &leases.items, &medik8s.items, now))
        .collect();
    if deleted_too && which.selector.is_none() {
        let is_missing = |name: &str| targets.iter().all(|target| target.node.name != name);
        let left: Vec<_> = leases
            .items
            .iter()
            .map(|lease| &lease.value.metadata.name)
            .filter(|name| is_missing(name) && (names.is_empty() || names.contains(name)))
            .map(|name| target(deleted_node(name), &leases.items, &medik8s.items, now))
            .collect();
        targets.extend(left);
    }
    targets.sort_by(|a, b| a.node.name.cmp(&b.node.name));
    let missing: Vec<_> =
        names.iter().filter(|name| targets.iter().all(|target| target.node.name != **name)).collect();
    if !missing.is_empty() {
        let missing = missing.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        return Err(Error::NotFound {
            message: format!("there is no node {missing}"),
            hint: Some("'kubectl get nodes' lists them".into()),
        });
    }
    if targets.is_empty() {
        let message = match &which.selector {
            Some(selector) => format!("no node has the labels '{selector}'"),
            None => "this cluster has no nodes".into(),
        };
        return Err(Error::NotFound { message, hint: None });
    }
    Ok(targets)
}

async fn one_target(name: &str, deleted_too: bool, cluster: &Cluster) -> Result<Target> {
    let at = Address::new(maintenance::NAMESPACE, name);
    let node = async {
        match cluster.node(name).await {
            Err(error) if deleted_too && error.is_not_found() => Ok(Err(error)),
            node => node.map(Ok),
        }
    };
    let (node, lease, medik8s) = tokio::try_join!(node, cluster.lease(&at), cluster.medik8s_holder(name))?;
    let node = match node {
        Err(_) if lease.is_some() => deleted_node(name),
        node => node?,
    };
    Ok(Target { node, lease, medik8s })
}

/// All that is left to know of a node that was deleted.
fn deleted_node(name: &str) -> Metadata {
    Metadata { name: name.to_owned(), ..Metadata::default() }
}

fn target(node: Metadata, leases: &[Object<Lease>], medik8s: &[Object<Lease>], now: ServerTime) -> Target {
    let find = |leases: &[Object<Lease>], name: &str| {
        leases.iter().find(|lease| lease.value.metadata.name == name).cloned()
    };
    let medik8s = find(medik8s, &maintenance::medik8s_name(&node.name));
    Target {
        lease: find(leases, &node.name),
        medik8s: medik8s.and_then(|lease| maintenance::medik8s_holder(&lease.value, now).map(str::to_owned)),
        node,
    }
}

fn nodes() -> Query {
    Query::new(NODES).metadata_only()
}

fn leases() -> Query {
    Query::new(LEASES).namespace(maintenance::NAMESPACE)
}

fn medik8s_leases() -> Query {
    Query::new(LEASES).namespace(maintenance::MEDIK8S_NAMESPACE).optional(MEDIK8S_UNSEEN)
}

/// The seconds of a lease that nobody renews.
fn unrenewed_seconds(duration: Duration, admin: bool) -> Result<i32> {
    if !admin
        && SignedDuration::try_from(duration).is_ok_and(|duration| duration > maintenance::LONGEST_UNRENEWED)
    {
        return Err(Error::Usage {
            message: format!(
                "--duration {} is over an hour, which a lease that nobody renews may not be held",
                humantime::format_duration(duration)
            ),
            hint: Some("'maint run' renews while a command runs; --admin holds until released".into()),
        });
    }
    Ok(i32::try_from(duration.as_secs()).unwrap_or(i32::MAX))
}

/// Who holds a lease, since when, until when and why, in words.
pub fn holding(standing: &Standing, lease: Option<&Lease>, now: ServerTime) -> String {
    let since = lease.and_then(|lease| lease.spec.acquire_time.as_ref()).map(|time| time.0);
    let since =
        since.map_or_else(String::new, |time| format!(" since {time:.0} ({} ago)", age(now.since(time))));
    let reason = lease.and_then(Lease::reason).map_or_else(String::new, |reason| format!(": {reason}"));
    match standing {
        Standing::Free => "free".to_owned(),
        Standing::Ours { .. } => format!("held by you{since}{reason}"),
        Standing::Held { holder, until } => {
            format!("held by '{holder}'{since} until {until:.0} ({} left){reason}", left(*until, now))
        }
        Standing::Admin { holder } => {
            format!("held by administrator '{holder}'{since} until released{reason}")
        }
        Standing::Expired { holder, since } => {
            format!("no longer held by '{holder}', expired {} ago", age(now.since(*since)))
        }
        Standing::Malformed { holder, lacks } => {
            format!("malformed: it has the holder '{holder}' but no {lacks} to judge it by")
        }
    }
}

fn left(until: Timestamp, now: ServerTime) -> String {
    age(until.duration_since(now.0).max(SignedDuration::ZERO))
}

/// What is in the way of taking a lease, in words.
fn in_the_way(obstacle: &Obstacle, lease: Option<&Lease>, now: ServerTime) -> String {
    match obstacle {
        Obstacle::Standing(standing) => holding(standing, lease, now),
        Obstacle::Terminating { finalizers } if finalizers.is_empty() => "being deleted".to_owned(),
        Obstacle::Terminating { finalizers } => {
            format!("being deleted: its lease only waits for its finalizers ({})", finalizers.join(", "))
        }
        Obstacle::OtherReason { reason, since } => {
            let since = since.map_or_else(String::new, |time| format!(" since {time:.0}"));
            match reason {
                Some(reason) => format!("held by you{since} for another reason: {reason}"),
                None => format!("held by you{since} for no reason that was given"),
            }
        }
        Obstacle::Medik8s { holder } => {
            format!("held by medik8s ('{holder}', in {})", maintenance::MEDIK8S_NAMESPACE)
        }
    }
}

/// The error for a lease that cannot be taken now.
pub fn blocked(what: &str, obstacle: &Obstacle, lease: Option<&Lease>, now: ServerTime) -> Error {
    let message = format!("{what} is {}", in_the_way(obstacle, lease, now));
    let hint = |text: &str| Some(text.to_owned());
    match obstacle {
        Obstacle::Standing(Standing::Malformed { .. }) => Error::Refused {
            message,
            hint: hint("find out what that holder is; --take-malformed takes it all the same"),
        },
        // Only to renew it is that an obstacle.
        Obstacle::Standing(Standing::Free) => Error::NotFound {
            message: format!("there is nothing to renew: {message}"),
            hint: Some(format!("'kubectl lease maint acquire {what}' takes it")),
        },
        // That of a process, which may have been killed.
        Obstacle::Standing(Standing::Admin { holder }) if holder.contains('#') => Error::Held {
            message,
            hint: Some(format!(
                "--wait waits until that command has ended; if it was killed, 'kubectl lease maint release {what} \
                 --admin --force' releases it"
            )),
        },
        Obstacle::Standing(Standing::Admin { .. }) => Error::Held {
            message,
            hint: hint("it is held until that administrator releases it; --wait waits for that"),
        },
        Obstacle::Standing(Standing::Ours { .. }) => Error::Held {
            message,
            hint: hint(
                "another process may hold it under the same name: release it first, or use another --holder",
            ),
        },
        Obstacle::Standing(_) => Error::Held { message, hint: hint("--wait takes it as soon as it is free") },
        Obstacle::Terminating { .. } => {
            Error::Held { message, hint: hint("--wait takes a new one as soon as that is gone") }
        }
        Obstacle::OtherReason { .. } => Error::Refused {
            message,
            hint: hint("if that was you, --yes replaces the reason; a colleague uses another --holder"),
        },
        Obstacle::Medik8s { .. } => Error::Held {
            message,
            hint: hint(
                "--wait takes the node when medik8s has finished; --ignore-medik8s takes it all the same",
            ),
        },
    }
}
