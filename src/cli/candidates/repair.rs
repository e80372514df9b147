//! `kubectl lease candidates repair`.

use clap::Args;

use crate::cli::{
    flags::BooleanFlag as _,
    values::lease_name,
    wait::{Wait, WaitFlag as _},
    write::Write,
};

const EXAMPLES: &str = "\
Examples:
  # Repair an election that 'candidates explain' calls stuck, and wait for a leader
  kubectl lease candidates repair kube-controller-manager --wait

  # Print what would be done
  kubectl lease candidates repair kube-controller-manager --dry-run";

/// Repair an election that is stuck
///
/// The election controller does not elect the holder of an expired lease again. If that holder is the best
/// candidate and was asked to step down, there is no leader until its process exits. This command sets an
/// empty holderIdentity, after which the controller elects a leader within about 10 seconds. It does the
/// same for a holderIdentity that is null, which can crash the kube-apiserver that runs the controller.
/// Leases without these problems are not changed. The problem is shown and the repair has to be confirmed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Repair {
    /// Name of the lease.
    #[arg(value_parser = lease_name)]
    pub lease: String,

    /// Wait until a candidate leads and renews. Use --wait=DURATION to give up after that time; otherwise
    /// it gives up when the handover makes no progress for a minute.
    #[arg(long, wait())]
    pub wait: Wait,

    /// Skip confirmation.
    #[arg(short, long, alias = "confirm", boolean())]
    pub yes: bool,

    #[command(flatten)]
    pub write: Write,
}
