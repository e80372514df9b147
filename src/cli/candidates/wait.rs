//! `kubectl lease candidates wait`.

use std::time::Duration;

use clap::{Args, builder::NonEmptyStringValueParser};

use crate::cli::values::{duration, lease_name};

const EXAMPLES: &str = "\
Examples:
  # Wait until cp-2 has led for 30 seconds without interruption
  kubectl lease candidates wait kube-controller-manager --leader cp-2 --stable 30s --timeout 5m

  # Wait for one process, rather than another one on the same host
  kubectl lease candidates wait kube-scheduler --leader cp-2_4f96edb3

  # Wait for an operator that does not use coordinated leader election
  kubectl lease candidates wait my-operator -n apps --leader my-operator-7d4b9c8f6d-x2x5z";

/// Wait until an instance of a component leads
///
/// Watches the lease until its holder is the given instance, the lease has not expired and a renewal was
/// seen. With --stable, until renewals were seen for that long without a change of holder or an expiry.
/// Leases without coordinated leader election work as well.
///
/// Exits with code 0 when the instance leads, with 124 if it does not before the timeout, and with 3 if the
/// lease or the candidate does not exist by then.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES,
    override_usage = "kubectl lease candidates wait LEASE --leader=HOST [options]")]
pub struct WaitForLeader {
    /// Name of the lease.
    #[arg(value_parser = lease_name)]
    pub lease: String,

    /// Host of the instance that should lead, or its candidate name or holder identity. A prefix of those is
    /// enough, such as HOST_4f96.
    #[arg(long, value_name = "HOST", value_parser = NonEmptyStringValueParser::new())]
    pub leader: String,

    /// Wait until the instance has led and renewed for this long.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0s",
        hide_default_value = true)]
    pub stable: Duration,

    /// The length of time to wait before giving up.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "2m")]
    pub timeout: Duration,
}
