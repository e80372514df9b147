//! `kubectl lease leaders`.

use clap::Args;

use super::{
    flags::BooleanFlag as _,
    listing::{Listing, Scope},
    values::lease_name,
};

const EXAMPLES: &str = "\
Examples:
  # List all leader-election leases in the cluster
  kubectl lease leaders

  # List those of one namespace and watch for changes
  kubectl lease leaders -n kube-system -w

  # In a script, check that every control plane component has a leader
  kubectl lease leaders -n kube-system --exit-code >/dev/null || echo 'a lease has no valid leader'

  # Print holders that no longer exist
  kubectl lease leaders -o json | jq -r '.items[] | select(.state==\"ghost\") | .holder'";

/// List leader-election leases, coordinated or not
///
/// Lists all leases except the heartbeats of nodes, the identities of kube-apiservers and maintenance
/// leases. STATE follows from the last renewal, by the server's clock:
///
///   healthy    renewed in time
///   late       not renewed for two thirds of its duration: client-go gives up about now
///   expired    not renewed within its duration
///   released   has no holder
///   ghost      expired over a minute ago, and no pod or node has the host name in the holder identity
///   unknown    has a holder, but no renewTime or leaseDurationSeconds
///
/// PROCESS is a guess: most holder identities are HOSTNAME_UUID, and in a pod the host name is the name
/// of the pod, or of the node if the pod uses host networking.
#[derive(Debug, Args)]
#[command(alias = "leader", after_help = EXAMPLES, verbatim_doc_comment)]
pub struct Leaders {
    /// Name of a lease.
    #[arg(value_parser = lease_name)]
    pub name: Option<String>,

    /// Exit with code 4 if a listed lease has no valid leader: expired, released, ghost or unknown.
    #[arg(long, conflicts_with = "watch", boolean())]
    pub exit_code: bool,

    #[command(flatten)]
    pub scope: Scope,

    #[command(flatten)]
    pub listing: Listing,
}
