//! After a priority was cleared or set: the controller may have decided before it saw that, and have asked the leader to
//! step down a moment later. The leader is the best again then, and the election would be stuck.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, sleep};

use super::{Election, elections, plan::Plan, priority::HANDOVER};
use crate::{
    cluster::{
        Cluster, Refusal,
        single::{Address, Writing},
    },
    commands::interrupted,
    domain::{
        election::Outlook, forecast::Forecast, lease::Lease, rights::pasted, safer::with_flags,
        time::ServerTime,
    },
    error::{Error, Result},
    output::Printer,
    session::persistently,
};

/// How long the controller may take from its decision to the write of it: the time of a ping, and a look.
pub const DECIDED_WITHIN: Duration = Duration::from_secs(7);

/// Makes sure that clearing priorities has left none of these leases without a leader, until it is interrupted.
pub async fn rescue_all(cluster: &Cluster, plans: &[&Plan], printer: &mut Printer) -> Result<()> {
    let all = async {
        let mut outcome = Ok(());
        for plan in plans {
            outcome = outcome.and(rescue(cluster, &plan.at, None, printer).await);
        }
        outcome
    };
    tokio::select! {
        rescued = all => rescued,
        error = interrupted() => {
            let called: Vec<_> = plans.iter().map(|plan| plan.called.as_str()).collect();
            let words = format!(
                "whether there is a leader of {} was not checked: 'kubectl lease candidates' shows it",
                called.join(", ")
            );
            printer.note(&with_flags(&words, cluster.flags()));
            Err(error)
        }
    }
}

/// Makes sure that a priority that was cleared or set has not left a lease without a leader. Where it has, the
/// holder's process may end; if it does not, the election is repaired. `pinged` is the `pingTime` that this run
/// has written itself.
pub async fn rescue(
    cluster: &Cluster,
    at: &Address,
    pinged: Option<Timestamp>,
    printer: &mut Printer,
) -> Result<()> {
    let without_a_leader = |called: &str| {
        let words = format!(
            "{called} has no leader; 'kubectl lease candidates repair {} -n {}' gets its election going again",
            pasted(&at.name, "LEASE"),
            at.namespace
        );
        with_flags(&words, cluster.flags())
    };
    let began = Instant::now();
    let mut stranded = false;
    let mut refusal = Refusal::default();
    loop {
        let look = async || cluster.elections(Some(&at.namespace)).await;
        let Some(found) = persistently(Some(Instant::now() + HANDOVER), look).await? else { return Ok(()) };
        let all = elections(&found.parts);
        let Some(election) = all.iter().find(|election| election.name == at.name) else { return Ok(()) };
        let now = cluster.server_time();
        let outlook = election.outlook(now);
        let called = election.called();
        // A holder that was not asked to step down has let its lease run out by itself.
        let was_asked = outlook.preferred.is_some();
        if !(was_asked && outlook.forecast.needs_the_holder_to_end()) {
            if stranded || began.elapsed() >= DECIDED_WITHIN || !is_electing(election, &outlook, pinged, now)
            {
                return Ok(());
            }
        } else if !stranded {
            stranded = true;
            printer.note(&format!(
                "the leader of {called} was asked to step down in that moment: waiting until there is a leader again"
            ));
        }
        let lease = election.lease.map(|(lease, _)| lease);
        if let (true, Forecast::Stuck, Some(lease)) = (stranded, &outlook.forecast, lease) {
            match cluster.empty_holder(lease, &Writing::default()).await {
                Ok(()) => {
                    printer.note(&format!("{called} got an empty holder, so that one is elected"));
                    return Ok(());
                }
                Err(error) if error.is_conflict() || error.is_transient() => {}
                Err(error) if refusal.may_pass(&error) => {}
                Err(error) => {
                    printer.warn(&without_a_leader(&called));
                    return Err(error);
                }
            }
        }
        let lasts = lease.and_then(Lease::duration).and_then(|lasts| Duration::try_from(lasts).ok());
        if began.elapsed() > HANDOVER.saturating_add(lasts.unwrap_or_default()) {
            return Err(Error::TimedOut { message: without_a_leader(&called) });
        }
        sleep(Duration::from_secs(1)).await;
    }
}

/// Whether the controller may be electing right now.
fn is_electing(
    election: &Election<'_>,
    outlook: &Outlook<'_>,
    ours: Option<Timestamp>,
    now: ServerTime,
) -> bool {
    let within = SignedDuration::try_from(DECIDED_WITHIN).unwrap_or_default();
    let was_pinged = election
        .candidates
        .iter()
        .filter_map(|(candidate, _)| candidate.spec.ping_time)
        .filter(|pinged| ours != Some(*pinged))
        .any(|pinged| now.since(pinged) < within);
    was_pinged || outlook.leader.valid().is_none() || outlook.preferred.is_some()
}
