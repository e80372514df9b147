//! `kubectl lease candidates prune`.

use clap::Args;

use crate::cli::{flags::BooleanFlag as _, values::candidate_name, write::Write};

const EXAMPLES: &str = "\
Examples:
  # Delete the candidates that components left behind, of all leases
  kubectl lease candidates prune

  # In a script, delete those of one lease
  kubectl lease candidates prune kube-scheduler --yes

  # Print what would be deleted
  kubectl lease candidates prune --dry-run";

/// Delete candidates that components left behind
///
/// A component that restarts registers under a new name, and its old LeaseCandidate remains for 30 minutes.
/// If that one compares equal to the leader, the controller pings all candidates every few seconds. Deletes
/// candidates that have not renewed for 30 minutes, have not acknowledged a ping for 20 seconds, or do not
/// acknowledge a new ping, which is sent to those that are late and to those with a newer candidate on the
/// same host. The leader's candidate is never deleted. The candidates are shown and the deletion has to be
/// confirmed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Prune {
    /// Only delete candidates for these leases, on these hosts, or with these names.
    #[arg(value_name = "LEASE|CANDIDATE", value_parser = candidate_name)]
    pub names: Vec<String>,

    /// Skip confirmation.
    #[arg(short, long, alias = "confirm", boolean())]
    pub yes: bool,

    #[command(flatten)]
    pub write: Write,
}
