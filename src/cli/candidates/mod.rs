//! `kubectl lease candidates`, and the verbs below it.

mod explain;
mod priority;
mod prune;
mod rehearse;
mod repair;
mod wait;

use clap::{Args, Subcommand};

pub use self::{
    explain::Explain,
    priority::{ClearPriority, SetPriority},
    prune::Prune,
    rehearse::Rehearse,
    repair::Repair,
    wait::WaitForLeader,
};
use super::{
    flags::BooleanFlag as _,
    listing::{Listing, Scope},
    values::lease_name,
};

const EXAMPLES: &str = "\
Examples:
  # List the leader and the candidates of each component
  kubectl lease candidates

  # Watch an election
  kubectl lease candidates kube-controller-manager --watch

  # Explain why this candidate leads and what would change that
  kubectl lease candidates explain kube-controller-manager

  # In a script, explain an election that has a problem
  kubectl lease candidates kube-scheduler --exit-code >/dev/null || kubectl lease candidates explain kube-scheduler

  # Let cp-2 lead for 30 minutes
  kubectl lease candidates set-priority cp-2 100 --for 30m --wait

  # Wait until cp-2 leads
  kubectl lease candidates wait kube-controller-manager --leader cp-2";

const USAGE: &str = "\
kubectl lease candidates [LEASE] [options]
       kubectl lease candidates SUBCOMMAND [options]";

/// List the candidates of coordinated leader elections
///
/// Components with coordinated leader election (KEP-4355) create LeaseCandidates for a lease. A controller
/// in one of the kube-apiservers elects the candidate with the oldest emulation version, then the oldest
/// binary version, then the oldest creation time. A priority takes precedence over all of these.
///
/// ROLE shows the leader, and the next leader: the candidate that the controller is about to elect, or that
/// would be elected if the leader terminated. 'next?' marks several candidates that compare equal. STATE
/// follows from the last ping:
///
///   acked      acknowledged the last ping
///   unpinged   not pinged yet, and renews
///   pending    pinged less than 5 seconds ago, and not acknowledged yet
///   stale      did not acknowledge the ping, or missed a renewal: not counted on
///   expired    not renewed for 30 minutes: excluded from the election
///
/// A priority is 'pinned' if the server does not support priorities: the candidate's emulation version is
/// then set below all others, and EMULATION shows the original version.
#[derive(Debug, Args)]
#[command(alias = "candidate", after_help = EXAMPLES, override_usage = USAGE, verbatim_doc_comment,
    subcommand_negates_reqs = true)]
pub struct Candidates {
    #[command(subcommand)]
    pub verb: Option<CandidatesVerb>,

    /// Only list candidates for this lease.
    #[arg(value_parser = lease_name)]
    pub lease: Option<String>,

    /// Exit with code 4 if a listed election, or the election controller, has a problem.
    #[arg(long, conflicts_with = "watch", boolean())]
    pub exit_code: bool,

    #[command(flatten)]
    pub scope: Scope,

    #[command(flatten)]
    pub listing: Listing,
}

#[derive(Debug, Subcommand)]
pub enum CandidatesVerb {
    Explain(Explain),
    Wait(WaitForLeader),
    Rehearse(Rehearse),
    SetPriority(SetPriority),
    ClearPriority(ClearPriority),
    Repair(Repair),
    Prune(Prune),
}
