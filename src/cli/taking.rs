//! What is taken that is left alone by default.

use clap::Args;

use super::flags::BooleanFlag as _;

/// Leases that are taken only when told to.
#[derive(Debug, Args)]
pub struct Taking {
    /// Take over a lease that has a holder but no renewTime or leaseDurationSeconds.
    #[arg(long, boolean())]
    pub take_malformed: bool,

    /// Ignore leases of medik8s: also take a node that it is working on.
    #[arg(long, boolean())]
    pub ignore_medik8s: bool,
}
