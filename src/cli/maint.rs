//! `kubectl lease maint`, and the verbs below it.

use std::{ffi::OsString, time::Duration};

use clap::{Args, Subcommand};

use super::{
    flags::BooleanFlag as _,
    identity::Identity,
    listing::Listing,
    nodes::Nodes,
    taking::Taking,
    values::{kept_duration, lease_duration, reason},
    wait::{Wait, WaitFlag as _},
    write::{Output, Trial, Write},
};
use crate::output::Format;

const EXAMPLES: &str = "\
Examples:
  # Acquire the lease of a node, and release it after the work
  kubectl lease maint acquire node-1 --reason 'replace disk'
  kubectl lease maint release node-1

  # Hold the lease while a command runs
  kubectl lease maint run node-1 --reason 'replace disk' -- kubectl drain node-1 --ignore-daemonsets

  # List nodes and the holders of their leases
  kubectl lease maint list";

/// Manage maintenance leases of nodes
///
/// The holder of a node's lease in the namespace kube-node-maintenance may reboot, drain or repair the node;
/// others wait until the lease is released or has expired. The lease is a convention: it only stops programs
/// that check it. A lease whose holder begins with 'kubeadm' belongs to an administrator and is held until
/// it is released.
#[derive(Debug, Subcommand)]
#[command(alias = "maintenance", after_help = EXAMPLES)]
pub enum Maint {
    Acquire(Acquire),
    Renew(Renew),
    Release(Release),
    Status(Status),
    List(MaintList),
    Run(Run),
}

/// What `acquire` and `run` have in common.
#[derive(Debug, Args)]
pub struct Acquiring {
    #[command(flatten)]
    pub nodes: Nodes,

    /// Reason to record in the lease.
    #[arg(short, long, value_name = "TEXT", value_parser = reason)]
    pub reason: Option<String>,

    /// Wait until the lease is free. Use --wait=DURATION to give up after that time.
    #[arg(long, wait())]
    pub wait: Wait,

    #[command(flatten)]
    pub identity: Identity,

    /// Skip confirmation of replacing the reason of a lease that you hold already.
    #[arg(short, long, alias = "confirm", boolean())]
    pub yes: bool,

    #[command(flatten)]
    pub taking: Taking,
}

const ACQUIRE_EXAMPLES: &str = "\
Examples:
  # Acquire the lease of a node for 30 minutes
  kubectl lease maint acquire node-1 --reason 'replace disk'

  # Acquire the leases of all nodes in a rack, waiting up to 10 minutes for those that are held
  kubectl lease maint acquire -l rack=r7 --duration 1h --wait=10m

  # Hold a node as an administrator, until released
  kubectl lease maint acquire node-1 --admin --reason 'under investigation'

  # Print what would be done
  kubectl lease maint acquire node-1 --dry-run=server";

/// Acquire the maintenance leases of nodes
///
/// All or nothing: if one of several leases cannot be acquired, those that were acquired are released.
/// Leases that you hold already are renewed. Exits with code 4 if a lease is held by another holder.
#[derive(Debug, Args)]
#[command(after_help = ACQUIRE_EXAMPLES,
    override_usage = "kubectl lease maint acquire (NODE... | -l label | --all) [options]")]
pub struct Acquire {
    #[command(flatten)]
    pub acquiring: Acquiring,

    /// The length of time to hold the lease. At most 1h without --admin.
    #[arg(short, long, default_value = "30m", value_parser = lease_duration, value_name = "DURATION", allow_hyphen_values = true)]
    pub duration: Duration,

    /// Hold the lease as an administrator, until it is released.
    #[arg(long, boolean())]
    pub admin: bool,

    #[command(flatten)]
    pub output: Output,

    #[command(flatten)]
    pub write: Write,
}

const RENEW_EXAMPLES: &str = "\
Examples:
  # Renew the lease of a node for 30 minutes
  kubectl lease maint renew node-1

  # Renew the leases of two nodes for 1 hour from now
  kubectl lease maint renew node-1 node-2 --duration 1h";

/// Renew maintenance leases that you hold
#[derive(Debug, Args)]
#[command(after_help = RENEW_EXAMPLES,
    override_usage = "kubectl lease maint renew (NODE... | -l label | --all) [options]")]
pub struct Renew {
    #[command(flatten)]
    pub nodes: Nodes,

    /// The length of time to hold the lease, from now. At most 1h without --admin.
    #[arg(short, long, default_value = "30m", value_parser = lease_duration, value_name = "DURATION", allow_hyphen_values = true)]
    pub duration: Duration,

    #[command(flatten)]
    pub identity: Identity,

    /// Renew leases that you hold as an administrator.
    #[arg(long, boolean())]
    pub admin: bool,

    #[command(flatten)]
    pub output: Output,

    #[command(flatten)]
    pub write: Write,
}

const RELEASE_EXAMPLES: &str = "\
Examples:
  # Release the lease of a node
  kubectl lease maint release node-1

  # Release a lease of another holder: show the holder, and confirm
  kubectl lease maint release node-1 --force";

/// Release maintenance leases
///
/// Releases only leases that you still hold. A lease of another holder is released with --force and a
/// confirmation, a lease of an administrator with --admin.
#[allow(clippy::struct_excessive_bools)] // flags
#[derive(Debug, Args)]
#[command(after_help = RELEASE_EXAMPLES,
    override_usage = "kubectl lease maint release (NODE... | -l label | --all) [options]")]
pub struct Release {
    #[command(flatten)]
    pub nodes: Nodes,

    /// Release leases of other holders.
    #[arg(long, boolean())]
    pub force: bool,

    /// Skip confirmation of --force. Required if there is no terminal to ask on.
    #[arg(long, alias = "yes", short_alias = 'y', requires = "force", boolean())]
    pub confirm: bool,

    #[command(flatten)]
    pub identity: Identity,

    /// Release leases that are held by an administrator.
    #[arg(long, boolean())]
    pub admin: bool,

    #[command(flatten)]
    pub output: Output,

    #[command(flatten)]
    pub write: Write,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  # In a script, drain a node unless another holder has its lease
  kubectl lease maint status node-1 --no-headers && kubectl drain node-1 --ignore-daemonsets";

/// Show whether the maintenance leases of nodes are held
///
/// Exits with code 0 if all of them are free or held by you, and with 4 if one is held by another holder.
#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES,
    override_usage = "kubectl lease maint status (NODE... | -l label | --all) [options]")]
pub struct Status {
    #[command(flatten)]
    pub nodes: Nodes,

    /// Output format. One of: (table, wide, json, yaml, name).
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT", hide_possible_values = true)]
    pub output: Format,

    /// When using the table or wide output format, don't print headers.
    #[arg(long, boolean())]
    pub no_headers: bool,

    #[command(flatten)]
    pub identity: Identity,
}

const LIST_EXAMPLES: &str = "\
Examples:
  # List all nodes and the holders of their leases
  kubectl lease maint list

  # List the nodes that you hold
  kubectl lease maint list --mine

  # In a script, check that no lease looks abandoned
  kubectl lease maint list --abandoned --exit-code >/dev/null || echo 'a lease looks abandoned'

  # Watch a rolling upgrade
  kubectl lease maint list -w";

/// List nodes and their maintenance leases
///
/// Nodes that are held are listed first.
#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES, alias = "ls")]
pub struct MaintList {
    #[command(flatten)]
    pub only: Only,

    /// Exit with code 4 if leases are listed that look abandoned.
    #[arg(long, conflicts_with = "watch", boolean())]
    pub exit_code: bool,

    #[command(flatten)]
    pub listing: Listing,

    #[command(flatten)]
    pub identity: Identity,
}

/// Which of the nodes are listed.
#[derive(Clone, Copy, Debug, Args)]
pub struct Only {
    /// Only list leases that look abandoned: expired without a release, held for over an hour without a
    /// renewal, held by an administrator for over a day, without the times to judge them by, or of a node that
    /// was deleted.
    #[arg(long, boolean())]
    pub abandoned: bool,

    /// Only list nodes that are held.
    #[arg(long, boolean())]
    pub held: bool,

    /// Only list nodes that you hold, also by 'maint run' and where the lease has expired.
    #[arg(long, boolean())]
    pub mine: bool,
}

const RUN_EXAMPLES: &str = "\
Examples:
  # Drain a node while holding its lease
  kubectl lease maint run node-1 --reason 'kernel update' -- kubectl drain node-1 --ignore-daemonsets

  # Open a shell that is terminated if a lease is lost
  kubectl lease maint run node-1 node-2 --wait -- bash";

/// Run a command while holding the maintenance leases of nodes
///
/// Acquires the leases as 'maint acquire' does, renews them at a third of their duration (at least every 20
/// minutes), and releases them when the command exits. Returns the exit code of the command. If a lease is
/// lost, or cannot be renewed in time, the command and its process group are terminated before another
/// holder can acquire the lease, and the exit code is 75. The lease of a node that you hold already by
/// 'maint acquire' is taken over without a gap and given back.
///
/// The environment of the command has the fencing token, which only increases, in KUBECTL_LEASE_TOKEN, and
/// the lease in KUBECTL_LEASE_NAMESPACE, KUBECTL_LEASE_NAME, KUBECTL_LEASE_UID, KUBECTL_LEASE_TRANSITIONS
/// and KUBECTL_LEASE_HOLDER.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES,
    override_usage = "kubectl lease maint run (NODE... | -l label | --all) [options] -- COMMAND [args...]")]
pub struct Run {
    #[command(flatten)]
    pub acquiring: Acquiring,

    /// Duration of the lease, which is renewed while the command runs: the length of time that others wait if
    /// this machine fails.
    #[arg(short, long, default_value = "5m", value_parser = kept_duration, value_name = "DURATION", allow_hyphen_values = true)]
    pub duration: Duration,

    /// Also take over leases that you hold as an administrator, and give them back.
    #[arg(long, boolean())]
    pub admin: bool,

    #[command(flatten)]
    pub trial: Trial,

    /// Command to run, with its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
