//! `kubectl lease candidates explain`.

use clap::Args;

use crate::{cli::values::lease_name, output::Format};

const EXAMPLES: &str = "\
Examples:
  # Explain which candidate leads and which is next
  kubectl lease candidates explain kube-controller-manager

  # Print only the problems
  kubectl lease candidates explain kube-scheduler -o json | jq -r '.wrong[].message'";

/// Explain the election for a lease
///
/// Shows the leader and how long it has led, which candidates take part, which do not and why, which rule
/// decides, what would change the result, and what is wrong.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Explain {
    /// Name of the lease.
    #[arg(value_parser = lease_name)]
    pub lease: String,

    /// Output format. One of: (table, wide, json, yaml, name).
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT", hide_possible_values = true)]
    pub output: Format,
}
