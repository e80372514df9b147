//! `kubectl lease doctor`.

use clap::Args;

use super::flags::BooleanFlag as _;
use crate::output::Format;

const EXAMPLES: &str = "\
Examples:
  # Check what this cluster supports and what you are permitted to do
  kubectl lease doctor

  # Also check that the clocks of all kube-apiservers agree
  kubectl lease doctor --clocks

  # Check as another user
  kubectl lease doctor --as jane --as-group sre

  # Have the API server reserve the holder prefix 'kubeadm' for administrators
  kubectl lease doctor --print guard | kubectl apply -f -

  # Print only what failed or needs attention
  kubectl lease doctor -o json | jq -r '.items[] | select(.level != \"ok\") | .message'";

/// Check what this cluster supports and what you are permitted to do
///
/// Checks what the other commands need: the version and clock of the server, the identities of
/// kube-apiservers, coordinated leader election and the election controller, the namespace of maintenance
/// leases, and every permission that a command uses. Exits with code 4 if a check fails.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Doctor {
    /// Compare the clocks of all kube-apiservers by their renewals, which takes up to 12 seconds.
    #[arg(long, boolean())]
    pub clocks: bool,

    /// Output format. One of: (table, wide, json, yaml, name).
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT", hide_possible_values = true)]
    pub output: Format,

    /// When using the table or wide output format, don't print headers.
    #[arg(long, boolean())]
    pub no_headers: bool,

    /// Print manifests for an administrator to apply, without contacting the cluster. One of: (rbac, guard).
    /// rbac has the namespace of maintenance leases and a role for each command; guard has the admission
    /// policies that reserve the holder prefix 'kubeadm' for administrators.
    #[arg(long, value_enum, value_name = "MANIFEST", conflicts_with_all = ["output", "no_headers", "clocks"],
        hide_possible_values = true)]
    pub print: Option<Manifest>,
}

/// What makes a cluster ready for this.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Manifest {
    /// The namespace of maintenance leases, and a role for each command
    Rbac,
    /// The admission policies that reserve the holder prefix 'kubeadm' for administrators
    Guard,
}
