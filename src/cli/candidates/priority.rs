//! `kubectl lease candidates set-priority` and `clear-priority`.

use std::time::Duration;

use clap::Args;

use crate::cli::{
    flags::BooleanFlag as _,
    values::{candidate_name, lease_duration, lease_name, priority},
    wait::{Wait, WaitFlag as _},
    write::Write,
};

const SET_EXAMPLES: &str = "\
Examples:
  # Move leadership to the candidate on cp-2 and wait until it leads
  kubectl lease candidates set-priority cp-2 100 --wait

  # Keep the priority for 30 minutes, or until Ctrl-C
  kubectl lease candidates set-priority cp-2 100 --for 30m

  # In a script
  kubectl lease candidates set-priority cp-2 100 --yes --wait=60s || exit";

/// Set the priority of a candidate: the highest priority leads
///
/// Moving leadership is a failover: the leader is asked to step down, its process usually exits and restarts,
/// and there is no leader for up to 15 seconds. The effect is shown and has to be confirmed.
///
/// If several components have a candidate on the host, the priority is set for all of them; use --lease to
/// select one. While a handover is in progress, a priority is not cleared, nor set for the leader that was
/// asked to step down, because the component could be left without a leader: the command waits for the
/// handover to complete. A second Ctrl-C leaves the priority in place.
///
/// Refused without --force if the candidate does not acknowledge a ping, if no election controller is running, if
/// the leader does not use coordinated leader election, or if leading would violate the version skew policy:
/// a kube-controller-manager or kube-scheduler that is newer than a live kube-apiserver, or more than one
/// minor version older. kube-apiservers are asked for their versions without credentials; a warning is
/// printed if versions differ and one of the kube-apiservers cannot be asked.
///
/// A component that restarts registers a new candidate, without the priority. If the server does not support
/// priorities, the candidate's emulation version is pinned below all others and the original version is kept
/// in an annotation; clear-priority restores it.
#[allow(clippy::struct_excessive_bools)] // flags
#[derive(Debug, Args)]
#[command(after_help = SET_EXAMPLES)]
pub struct SetPriority {
    /// Name of the candidate, a prefix of it, or its host.
    #[arg(value_parser = candidate_name)]
    pub candidate: String,

    /// Priority between 1 and 2147483647.
    #[arg(value_parser = priority, allow_hyphen_values = true)]
    pub priority: i32,

    /// Only consider candidates for this lease.
    #[arg(long, value_name = "LEASE", value_parser = lease_name)]
    pub lease: Option<String>,

    /// Keep the priority for this long, then clear it. The command runs until then, or until Ctrl-C.
    #[arg(long = "for", value_name = "DURATION", value_parser = lease_duration)]
    pub for_: Option<Duration>,

    /// With --for, record the time at which the priority ends and exit. Use 'kubectl lease candidates
    /// clear-priority --expired' to clear it.
    #[arg(long, requires = "for_", boolean())]
    pub detach: bool,

    /// Wait until the candidate leads and renews. Use --wait=DURATION to give up after that time; otherwise
    /// it gives up when the handover makes no progress for a minute.
    #[arg(long, wait())]
    pub wait: Wait,

    /// Skip confirmation.
    #[arg(short, long, alias = "confirm", boolean())]
    pub yes: bool,

    /// Continue even if the candidate does not acknowledge a ping, no election controller is running, the leader
    /// does not use coordinated leader election, or leading would violate the version skew policy.
    #[arg(long, alias = "anyway", boolean())]
    pub force: bool,

    #[command(flatten)]
    pub write: Write,
}

const CLEAR_EXAMPLES: &str = "\
Examples:
  # Clear the priority of the candidate on cp-2
  kubectl lease candidates clear-priority cp-2

  # In a cron job, clear priorities that 'set-priority --for' left behind
  kubectl lease candidates clear-priority --expired --yes";

/// Clear the priority of candidates
///
/// The election compares versions again. If another candidate than the leader is then the best, leadership
/// moves: a second failover, which is shown and has to be confirmed. While a handover is in progress, the
/// command waits for it to complete. A host also selects the candidates that its components left behind.
#[allow(clippy::struct_excessive_bools)] // flags
#[derive(Debug, Args)]
#[command(after_help = CLEAR_EXAMPLES,
    override_usage = "kubectl lease candidates clear-priority (CANDIDATE... | --all | --expired) [options]")]
pub struct ClearPriority {
    /// Names of candidates, prefixes of names, or hosts.
    #[arg(value_name = "CANDIDATE", conflicts_with_all = ["all", "expired"], value_parser = candidate_name)]
    pub candidates: Vec<String>,

    /// Select all candidates that have a priority.
    #[arg(long, conflicts_with = "expired", boolean())]
    pub all: bool,

    /// Select all candidates whose priority has expired.
    #[arg(long, boolean())]
    pub expired: bool,

    /// Only consider candidates for this lease.
    #[arg(long, value_name = "LEASE", value_parser = lease_name)]
    pub lease: Option<String>,

    /// Wait until the next leader leads and renews. Use --wait=DURATION to give up after that time; otherwise
    /// it gives up when the handover makes no progress for a minute.
    #[arg(long, wait())]
    pub wait: Wait,

    /// Continue even while a handover is in progress, which can leave the lease without a leader.
    #[arg(long, boolean())]
    pub force: bool,

    /// Skip confirmation.
    #[arg(short, long, alias = "confirm", boolean())]
    pub yes: bool,

    #[command(flatten)]
    pub write: Write,
}
