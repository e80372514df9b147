//! `kubectl lease apiservers`.

use clap::Args;

use super::{flags::BooleanFlag as _, listing::Listing};

const EXAMPLES: &str = "\
Examples:
  # List all kube-apiservers
  kubectl lease apiservers

  # Show one kube-apiserver, by host name or identity
  kubectl lease apiservers cp-1

  # Watch for kube-apiservers that start, fail or restart
  kubectl lease apiservers -w

  # In a script, check that all kube-apiservers are alive
  kubectl lease apiservers --exit-code >/dev/null || echo 'a kube-apiserver is not alive'

  # Print the host names of kube-apiservers that are not alive
  kubectl lease apiservers -o json | jq -r '.items[] | select(.state != \"alive\") | .hostname'";

/// List kube-apiservers and whether they are alive
///
/// Each kube-apiserver renews an identity lease in kube-system every 10 seconds. STATE follows from the
/// last renewal, by the server's clock:
///
///   alive     renewed within the last 30 seconds
///   late      three renewals missed: restarting, overloaded or just terminated
///   silent    not renewed for over a minute: assume that it is down
///   expired   not renewed for longer than the lease duration (1 hour), about to be garbage collected
///   skewed    renewTime is in the future: its clock is ahead; use --watch to see whether it renews
///   unknown   the lease has no renewTime
///
/// A kube-apiserver sets renewTime by its own clock. With --watch, STATE follows from when renewals arrive,
/// whatever time they carry.
///
/// A kube-apiserver that shuts down gracefully deletes its lease and is not listed.
#[derive(Debug, Args)]
#[command(alias = "apiserver", after_help = EXAMPLES, verbatim_doc_comment)]
pub struct Apiservers {
    /// Host name, identity or lease name of a kube-apiserver.
    pub name: Option<String>,

    /// Exit with code 4 if a listed kube-apiserver is not alive.
    #[arg(long, conflicts_with = "watch", boolean())]
    pub exit_code: bool,

    #[command(flatten)]
    pub listing: Listing,
}
