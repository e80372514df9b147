//! `kubectl lease candidates`.

mod candidate;
mod clear_priority;
mod confirmation;
mod election;
mod explain;
mod list;
mod prune;
mod rehearse;
mod repair;
mod reporter;
mod row;
mod set_priority;
mod wait;

use crate::{
    cli::{Candidates, CandidatesVerb},
    commands::namespaces::within,
    connection::Reached,
    error::{Error, Result},
    exit::ExitCode,
    output::Printer,
};

pub async fn run(
    args: &Candidates,
    namespace: Option<&str>,
    cluster: &Reached,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let namespace = within(&args.scope, namespace);
    match (&args.verb, &args.lease) {
        (None, _) => list::run(args, namespace, cluster, printer).await,
        (Some(_), Some(lease)) => {
            Err(Error::usage(format!("unexpected argument '{lease}' before a subcommand")))
        }
        (Some(CandidatesVerb::Explain(args)), _) => explain::run(args, namespace, cluster, printer).await,
        (Some(CandidatesVerb::Wait(args)), _) => wait::run(args, namespace, cluster, printer).await,
        (Some(CandidatesVerb::Rehearse(args)), _) => rehearse::run(args, namespace, cluster, printer).await,
        (Some(CandidatesVerb::SetPriority(args)), _) => {
            set_priority::run(args, namespace, cluster, printer).await
        }
        (Some(CandidatesVerb::ClearPriority(args)), _) => {
            clear_priority::run(args, namespace, cluster, printer).await
        }
        (Some(CandidatesVerb::Repair(args)), _) => repair::run(args, namespace, cluster, printer).await,
        (Some(CandidatesVerb::Prune(args)), _) => prune::run(args, namespace, cluster, printer).await,
    }
}
