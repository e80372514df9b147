//! `kubectl lease hold`.

use std::{ffi::OsString, time::Duration};

use clap::Args;

use super::{
    identity::Identity,
    values::{kept_duration, lease_name},
    wait::{Wait, WaitFlag as _},
    write::Trial,
};

const EXAMPLES: &str = "\
Examples:
  # Back up etcd from one machine at a time
  kubectl lease hold etcd-backup -n kube-system -- etcdctl snapshot save /var/backups/etcd.db

  # Elect a leader: wait for the lease, run until it is lost, and repeat
  while :; do kubectl lease hold event-log --wait -- kubectl get events -A --watch; done";

/// Run a command while holding a lease
///
/// For programs without leader election of their own. The lease is created if it does not exist, renewed at
/// a third of its duration, and released when the command exits. Returns the exit code of the command. If
/// the lease is lost, or cannot be renewed in time, the command and its process group are terminated before
/// another holder can acquire the lease, and the exit code is 75. Compatible with client-go's leader
/// election on the same lease: as there, a lease has expired when it was observed unchanged for its
/// duration.
///
/// The environment of the command has the fencing token, which only increases, in KUBECTL_LEASE_TOKEN, and
/// the lease in KUBECTL_LEASE_NAMESPACE, KUBECTL_LEASE_NAME, KUBECTL_LEASE_UID, KUBECTL_LEASE_TRANSITIONS
/// and KUBECTL_LEASE_HOLDER.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Hold {
    /// Name of the lease, in the namespace of -n or of the context.
    #[arg(value_parser = lease_name)]
    pub name: String,

    /// Duration of the lease, which is renewed while the command runs: the length of time that others wait if
    /// this machine fails.
    #[arg(short, long, default_value = "15s", value_parser = kept_duration, value_name = "DURATION", allow_hyphen_values = true)]
    pub duration: Duration,

    /// Wait until the lease is free. Use --wait=DURATION to give up after that time.
    #[arg(long, wait())]
    pub wait: Wait,

    #[command(flatten)]
    pub identity: Identity,

    #[command(flatten)]
    pub trial: Trial,

    /// Command to run, with its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
