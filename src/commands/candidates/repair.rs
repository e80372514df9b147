//! `kubectl lease candidates repair`: the one write that gets an election going again.

use kube_leases::{
    protocols::{
        Wait,
        elections::{
            handover::follow,
            repair::{self, Defect, RepairOutcome},
        },
    },
    rules::{
        election::{CoordinatedElection, Outlook},
        forecast::Forecast,
    },
};

use super::{
    confirmation::agree,
    election::{gather, the_election},
    reporter::{Reporter, elected},
};
use crate::{
    cli::{DryRun, Repair},
    commands::{dry_run_note, writing},
    connection::Reached,
    error::Result,
    exit::ExitCode,
    output::{
        Printer,
        words::{
            election::{called, controller as of_controller, either, named},
            paste::with_flags,
            trouble::trouble,
        },
    },
};

pub async fn run(
    args: &Repair,
    namespace: Option<&str>,
    cluster: &Reached,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let found = gather(namespace, cluster).await?;
    let controller = cluster.election_controller(&found, namespace).await?;
    let all = found.all();
    let election = the_election(&args.lease, &all, &found.parts)?;
    let now = cluster.server_time();
    let outlook = election.outlook(now);
    let Some(defect) = Defect::of(election, now) else {
        printer.done(&with_flags(&fine(election, &outlook), cluster.flags()))?;
        return Ok(ExitCode::Done);
    };
    let called = called(election.namespace, election.name);
    let (message, _) = trouble(&defect.trouble, election.key(), now);
    let follows = match elected(&defect.plan.forecast) {
        Some(names) => format!("{names} is then elected, within about 10 seconds"),
        None if outlook.leader.holder().is_none() => "nothing else changes".into(),
        None => "no candidate can be elected yet".into(),
    };
    let mut words = vec![
        format!("{called}: {message}."),
        format!("The lease gets an empty holder (holderIdentity: \"\"); {follows}."),
    ];
    words.extend(of_controller(&controller).map(|wrong| format!("But {wrong}.")));
    agree(&words, args.yes, args.write.dry_run, cluster, printer)?;

    let outcome = match args.write.dry_run {
        DryRun::Client => Ok(RepairOutcome::Repaired(defect.plan)),
        _ => repair::repair(cluster, defect, &writing(&args.write)).await,
    };
    let mut reporter = Reporter::new(printer, cluster.flags());
    match outcome {
        Ok(RepairOutcome::Repaired(plan)) => {
            if reporter.done(&format!("{called} repaired{}", dry_run_note(args.write.dry_run))).is_break() {
                return reporter.end(Ok(())).map(|()| ExitCode::Done);
            }
            let followed = match Wait::from(args.wait).limit().filter(|_| args.write.dry_run == DryRun::None)
            {
                Some(wait) => follow(cluster, &plan, wait, &mut reporter).await,
                None => Ok(()),
            };
            reporter.end(followed)?;
        }
        Ok(RepairOutcome::Fine) => {
            let _ = reporter.done(&format!("{called}: nothing to repair any more"));
            reporter.end(Ok(()))?;
        }
        Err(failed) => reporter.end(Err(failed))?,
    }
    Ok(ExitCode::Done)
}

/// Why there is nothing to repair.
fn fine(election: &CoordinatedElection<'_>, outlook: &Outlook<'_>) -> String {
    let state = match (outlook.leader.valid(), &outlook.forecast) {
        (Some(leader), _) => format!("{leader} leads"),
        (None, Forecast::Elects(names)) => format!("{} is about to be elected", either(names)),
        (None, Forecast::Open(..)) => "the lease expired a moment ago, and the election is under way".into(),
        (None, _) => format!(
            "there is no leader, but the election is not stuck: 'kubectl lease candidates explain {}' shows why",
            named(election.namespace, election.name)
        ),
    };
    format!("{}: nothing to repair: {state}", called(election.namespace, election.name))
}
