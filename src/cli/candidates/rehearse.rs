//! `kubectl lease candidates rehearse`.

use clap::Args;

use crate::{
    cli::{
        flags::BooleanFlag as _,
        values::{lease_name, release},
    },
    output::Format,
};
use kube_leases::rules::rehearsal::Versions;

const EXAMPLES: &str = "\
Examples:
  # Show how leadership moves during an upgrade of the control plane
  kubectl lease candidates rehearse kube-controller-manager --to 1.38

  # Also show how it moves during the rollback
  kubectl lease candidates rehearse kube-controller-manager --to 1.38 --rollback

  # Print the steps that violate the version skew policy
  kubectl lease candidates rehearse kube-scheduler --to 1.39 -o json | jq '.steps[] | select(.withinSkewPolicy == false)'";

/// Rehearse an upgrade of a component: show the leader after each step
///
/// Applies the rules of the election to the current candidates; nothing is changed. All kube-apiservers are
/// upgraded first, as the version skew policy requires, then the instances of the component, one host after
/// the other by name. An instance that restarts registers as a new candidate with the new version and
/// without its priority, and does not take part until another candidate is elected.
///
/// Each step shows the leader after it, how leadership moves, and which instances of kube-controller-manager,
/// kube-scheduler or cloud-controller-manager violate the version skew policy: newer than the
/// kube-apiservers, or more than one minor version older.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES,
    override_usage = "kubectl lease candidates rehearse LEASE --to=VERSION [options]")]
pub struct Rehearse {
    /// Name of the lease.
    #[arg(value_parser = lease_name)]
    pub lease: String,

    /// Version to upgrade to, such as 1.38 or 1.38.2.
    #[arg(long, value_name = "VERSION", value_parser = release)]
    pub to: Versions,

    /// Rehearse the rollback after the upgrade: the instances in reverse order, then the kube-apiservers.
    #[arg(long, boolean())]
    pub rollback: bool,

    /// Output format. One of: (table, wide, json, yaml, name).
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT", hide_possible_values = true)]
    pub output: Format,
}
