//! `kubectl lease candidates`.

mod clear_priority;
mod explain;
mod list;
mod prune;
mod rehearse;
mod repair;
mod reporter;
mod row;
mod set_priority;
mod wait;

use std::time::Duration;

use crate::{
    cli::{Candidates, CandidatesVerb, DryRun, Wait},
    commands::namespaces::within,
    error::{Error, Result},
    exit::ExitCode,
    output::{Printer, prompt, words::paste::with_flags},
};
use kube_leases::{
    client::{
        Cluster, Object,
        candidates::{Elections, Part},
    },
    rules::election::CoordinatedElection,
};

pub async fn run(
    args: &Candidates,
    namespace: Option<&str>,
    cluster: &Cluster,
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

/// All elections, or the error that says how to enable them.
async fn gather(namespace: Option<&str>, cluster: &Cluster) -> Result<Elections> {
    cluster.elections(namespace).await?.ok_or_else(|| cluster.without_coordination().into())
}

/// The one election that is meant by the name of its lease.
fn the_election<'e, 'a>(
    lease: &str,
    all: &'e [CoordinatedElection<'a>],
    parts: &[Vec<Object<Part>>],
) -> Result<&'e CoordinatedElection<'a>> {
    let named: Vec<_> = all.iter().filter(|election| election.name == lease).collect();
    match named.as_slice() {
        [one] => Ok(one),
        [] => Err(list::no_candidates(lease, parts)),
        all => Err(several(lease, &all.iter().map(|election| election.namespace).collect::<Vec<_>>())),
    }
}

/// A lease that is meant by a name which several have.
fn several(lease: &str, namespaces: &[&str]) -> Error {
    Error::Usage {
        message: format!("there is a lease '{lease}' in {}", namespaces.join(" and in ")),
        hint: Some("-n says which one is meant".into()),
    }
}

/// Shows what will happen, and asks for confirmation; elsewhere than on a terminal `--yes` is needed.
fn agree(
    words: &[String],
    yes: bool,
    dry_run: DryRun,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<()> {
    for line in words {
        printer.note(&with_flags(line, cluster.flags()));
    }
    if yes || dry_run != DryRun::None {
        return Ok(());
    }
    if !prompt::possible() {
        return Err(Error::Refused {
            message: "there is no terminal to ask on: nothing was changed".into(),
            hint: Some("--yes does it without asking; --dry-run shows what would be done".into()),
        });
    }
    if prompt::confirm("Go on?")? {
        return Ok(());
    }
    Err(Error::Refused { message: "nothing was changed".into(), hint: None })
}

/// For how long to wait for a handover, if at all.
fn waiting(wait: Wait) -> Option<Duration> {
    wait.is_set().then(|| wait.limit().unwrap_or(Duration::MAX))
}
