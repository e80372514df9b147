//! `kubectl lease candidates repair`: the one write that gets an election going again.

use super::{
    Controller, Election, agree, elections, gather, plan::either, priority::see_through, the_election, told,
};
use crate::{
    cli::{DryRun, Repair},
    cluster::Cluster,
    commands::{dry_run_note, writing},
    domain::{
        candidate::Candidate,
        election::{Outlook, Wrong},
        forecast::Forecast,
        lease::Lease,
        rights::pasted,
        safer::with_flags,
    },
    error::{Error, Result},
    exit::ExitCode,
    output::Printer,
};

use super::plan::Plan;

/// How often it is decided again when somebody else wrote in between.
const ATTEMPTS: u32 = 5;

pub async fn run(
    args: &Repair,
    namespace: Option<&str>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let mut agreed = false;
    for _ in 0..ATTEMPTS {
        let found = gather(namespace, cluster).await?;
        let controller = Controller::find(&found.parts, namespace, cluster).await?;
        let all = elections(&found.parts);
        let election = the_election(&args.lease, &all, &found.parts)?;
        let now = cluster.server_time();
        let outlook = election.outlook(now);
        let (Some(wrong), Some((lease, _))) = (repairable(&outlook), election.lease) else {
            printer.done(&with_flags(&fine(election, &outlook), cluster.flags()))?;
            return Ok(ExitCode::Done);
        };
        let plan = without_holder(election, lease, now);
        if !agreed {
            let (message, _) = told(wrong, election, now);
            let mut words = vec![
                format!("{}: {message}.", election.called()),
                format!(
                    "The lease gets an empty holder (holderIdentity: \"\"); {}.",
                    follows(&plan, &outlook)
                ),
            ];
            if let Some(wrong) = controller.wrong() {
                words.push(format!("But {wrong}."));
            }
            agree(&words, args.yes, args.write.dry_run, cluster, printer)?;
            agreed = true;
        }
        let done = format!("{} repaired{}", election.called(), dry_run_note(&args.write));
        let written = match args.write.dry_run {
            DryRun::Client => Ok(()),
            _ => cluster.empty_holder(lease, &writing(&args.write)).await,
        };
        match written {
            Ok(()) => printer.done(&done)?,
            // Somebody else wrote: whether there is anything to repair is looked at again.
            Err(error) if error.is_conflict() => continue,
            Err(error) => return Err(error),
        }
        if let (Some(wait), DryRun::None) = (args.wait, args.write.dry_run) {
            see_through(&plan, wait.unwrap_or(super::priority::HANDOVER), cluster, printer).await?;
        }
        return Ok(ExitCode::Done);
    }
    Err(Error::LostRace { message: format!("gave up after {ATTEMPTS} write conflicts on {}", args.lease) })
}

/// What an empty holder repairs.
fn repairable<'o>(outlook: &'o Outlook<'_>) -> Option<&'o Wrong> {
    outlook.wrongs.iter().find(|wrong| matches!(wrong, Wrong::Stuck { .. } | Wrong::NullHolder { .. }))
}

fn without_holder(election: &Election<'_>, lease: &Lease, now: crate::domain::time::ServerTime) -> Plan {
    let mut free = lease.clone();
    free.spec.holder_identity = Some(String::new());
    free.spec.preferred_holder = None;
    let candidates: Vec<&Candidate> = election.candidates.iter().map(|(it, _)| *it).collect();
    Plan {
        duration: std::time::Duration::ZERO,
        at: election.at(),
        called: election.called(),
        from: None,
        forecast: Outlook::new(&candidates, Some(&free), now).forecast,
        strands: None,
        is_moving: false,
        was_open: false,
    }
}

fn follows(plan: &Plan, outlook: &Outlook<'_>) -> String {
    match &plan.forecast {
        Forecast::Elects(names) => format!("{} is then elected, within about 10 seconds", either(names)),
        _ if outlook.leader.holder().is_none() => "nothing else changes".into(),
        _ => "no candidate can be elected yet".into(),
    }
}

/// Why there is nothing to repair.
fn fine(election: &Election<'_>, outlook: &Outlook<'_>) -> String {
    let called = election.called();
    let state = match (outlook.leader.valid(), &outlook.forecast) {
        (Some(leader), _) => format!("{leader} leads"),
        (None, Forecast::Elects(names)) => format!("{} is about to be elected", either(names)),
        (None, Forecast::Open(..)) => "the lease ran out a moment ago, and the election is under way".into(),
        (None, _) => format!(
            "there is no leader, but the election is not stuck: 'kubectl lease candidates explain {} -n {}' tells",
            pasted(election.name, "LEASE"),
            election.namespace
        ),
    };
    format!("{called}: nothing to repair: {state}")
}
