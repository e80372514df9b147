//! What becomes of the lead of a lease when candidates get or lose a priority, and in words.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Controller, Election, elections};
use crate::{
    cluster::{Cluster, Refusal, single::Address},
    domain::{
        candidate::Candidate,
        election::Outlook,
        forecast::{Doubt, Forecast, Strands},
        lease::Lease,
        rights::pasted,
        time::ServerTime,
    },
    error::{Error, Result},
    session::persistently,
};

/// How long a kube-apiserver may take to restart.
const RESTART: Duration = Duration::from_secs(10);

/// How an election will stand once something is changed.
#[derive(Clone)]
pub struct Plan {
    pub at: Address,
    pub called: String,
    /// Who leads now.
    pub from: Option<String>,
    pub forecast: Forecast,
    /// Whether the change can leave the lease without a leader as long as the lead is moving.
    pub strands: Option<Strands>,
    /// Whether the lead is about to move anyhow.
    pub is_moving: bool,
    /// Whether it is open where the lead goes without the change.
    pub was_open: bool,
    /// How long the leader has the lease after its last renewal: so long can a handover take at least.
    pub duration: Duration,
}

/// How a candidate will be; `None` where it stays as it is.
pub type Change<'c> = &'c dyn Fn(&Candidate) -> Option<Candidate>;

impl Plan {
    pub fn new(election: &Election<'_>, change: Change<'_>, now: ServerTime) -> Self {
        let before = election.outlook(now);
        let changed: Vec<Option<Candidate>> = election.candidates.iter().map(|(it, _)| change(it)).collect();
        let candidates: Vec<&Candidate> = election
            .candidates
            .iter()
            .zip(&changed)
            .map(|((it, _), changed)| changed.as_ref().unwrap_or(it))
            .collect();
        let lease = election.lease.map(|(lease, _)| lease);
        let after = Outlook::new(&candidates, lease, now);
        let duration = lease.and_then(Lease::duration).and_then(|lasts| Duration::try_from(lasts).ok());
        Self {
            at: election.at(),
            called: election.called(),
            from: after.leader.holder().map(str::to_owned),
            strands: before.forecast.strands(&after.forecast),
            is_moving: before.is_moving(),
            was_open: matches!(before.forecast, Forecast::Open(Doubt::Tie | Doubt::JustEnded, _)),
            duration: duration.unwrap_or_default(),
            forecast: after.forecast,
        }
    }

    /// Whether the controller may ask the leader to step down by what it has decided before the change.
    pub fn may_be_asked(&self) -> bool {
        self.strands == Some(Strands::AboutToBe) || (self.was_open && self.forecast == Forecast::Stays)
    }

    /// Whether the leader keeps a lease that it renews, as long as nobody asks it to step down: only then can the
    /// change leave the lease without a leader.
    pub fn keeps_the_leader(&self) -> bool {
        matches!(
            self.forecast,
            Forecast::Stays | Forecast::Open(Doubt::Tie | Doubt::JustEnded | Doubt::NoCandidate, _)
        )
    }

    /// What follows, in words; `again` where it is a second failover.
    pub fn words(&self, again: bool) -> Vec<String> {
        let Self { called, .. } = self;
        let from = self.from.as_deref().unwrap_or("nobody");
        let to = either(self.forecast.names());
        let second = if again { ", a second failover" } else { "" };
        match &self.forecast {
            Forecast::Stays => vec![format!("{from} keeps the lead of {called}.")],
            Forecast::Moves(_) => vec![
                format!("The lead of {called} moves from {from} to {to}{second}."),
                "The leader is asked to step down: its process usually exits, and for up to 15 seconds nobody leads."
                    .into(),
            ],
            Forecast::Elects(_) => vec![format!("Nobody leads {called} now; {to} is elected next.")],
            Forecast::Open(doubt, names) => vec![open(*doubt, names, from, called)],
            Forecast::Stuck => vec![format!(
                "{called} has no leader, and no candidate is elected: 'kubectl lease candidates repair {} -n {}' repairs it.",
                pasted(&self.at.name, "LEASE"),
                self.at.namespace
            )],
            Forecast::Nothing => vec![format!("No candidate is elected for {called}.")],
        }
    }
}

/// What it depends on, in words.
pub fn open(doubt: Doubt, names: &[String], holder: &str, called: &str) -> String {
    let to = either(names);
    match doubt {
        Doubt::Tie => format!(
            "The lead of {called} may move from {holder} to {to} at any time: they are equal in everything that \
             decides."
        ),
        Doubt::HolderTied => format!(
            "{holder} does not renew {called}, and is equal to {to} in everything that decides: {to} is elected at \
             one of the next looks of the controller, which can take minutes, or when its process has ended."
        ),
        Doubt::HolderEnds if names.is_empty() => format!(
            "{holder} does not renew {called}, and no other candidate takes part: none is elected unless one joins."
        ),
        Doubt::HolderEnds => format!(
            "{holder} is the best candidate for {called} and does not renew it: {to} is elected when the process of \
             {holder} has ended, and no candidate before that."
        ),
        Doubt::JustEnded => {
            let follows = if names.is_empty() { String::new() } else { format!(" to {to}") };
            format!(
                "The lead of {called} may move from {holder}{follows}: the process of a better candidate ended a moment \
                 ago, and the controller may still prefer it."
            )
        }
        Doubt::NoCandidate => format!(
            "{holder} leads {called} and is no candidate: the lead moves to {to} if it steps down when it is \
             asked to."
        ),
    }
}

/// One, or one of several that are equal.
pub fn either(names: &[String]) -> String {
    names.join(" or ")
}

/// An election that a change does not leave without a leader.
pub struct Settled {
    /// Whether there was a handover to wait for.
    pub waited: bool,
    /// How it stood at the last look; `None` where there is no such election any more.
    pub plan: Option<Plan>,
}

/// Waits until a change leaves nobody without a leader: until the handover is over that it would take back. An
/// election is many objects, so it is looked at each second. A
/// handover that is only about to begin is waited for where `early` says so. It may take as long as the lease
/// lasts, and `within` on top. An outage is waited for as long as a kube-apiserver takes to restart.
pub async fn settle(
    cluster: &Cluster,
    at: &Address,
    change: Change<'_>,
    early: bool,
    within: Duration,
    mut wait: impl FnMut(&Plan),
) -> Result<Settled> {
    let began = Instant::now();
    let mut waited = false;
    let mut lost: Option<Instant> = None;
    let mut refusal = Refusal::default();
    loop {
        let (plan, in_the_way) = match look(cluster, at, change, early).await {
            Err(error) if error.is_unclear() && lost.get_or_insert_with(Instant::now).elapsed() < RESTART => {
                sleep(error.pause(Duration::from_secs(1))).await;
                continue;
            }
            Err(error) if refusal.may_pass(&error) => {
                sleep(Duration::from_secs(1)).await;
                continue;
            }
            looked => looked?,
        };
        lost = None;
        let plan = match plan {
            Some(plan) if in_the_way => plan,
            plan => return Ok(Settled { waited, plan }),
        };
        let limit = within.saturating_add(plan.duration);
        if began.elapsed() >= limit {
            return Err(Error::TimedOut {
                message: format!(
                    "the lead of {} is still moving after {}",
                    plan.called,
                    humantime::format_duration(limit)
                ),
            });
        }
        waited = true;
        wait(&plan);
        sleep(Duration::from_secs(1)).await;
    }
}

/// How the election stands, and whether a change would strand it.
async fn look(
    cluster: &Cluster,
    at: &Address,
    change: Change<'_>,
    early: bool,
) -> Result<(Option<Plan>, bool)> {
    let namespace = Some(at.namespace.as_str());
    let Some(found) = cluster.elections(namespace).await? else { return Ok((None, false)) };
    let all = elections(&found.parts);
    let election = all.iter().find(|election| election.name == at.name);
    let plan = election.map(|election| Plan::new(election, change, cluster.server_time()));
    let in_the_way = match plan.as_ref().and_then(|plan| plan.strands) {
        Some(Strands::Asked) => true,
        // Nothing is about to happen where nobody elects.
        Some(Strands::AboutToBe) if early => {
            Controller::find(&found.parts, namespace, cluster).await?.wrong().is_none()
        }
        _ => false,
    };
    Ok((plan, in_the_way))
}

/// Whether a lease has no leader, or soon none, unless the process of its holder ends.
pub async fn is_stranded(cluster: &Cluster, at: &Address) -> Result<bool> {
    let look = async || cluster.elections(Some(&at.namespace)).await;
    let Some(found) = persistently(Some(Instant::now() + RESTART), look).await? else { return Ok(false) };
    let all = elections(&found.parts);
    let election = all.iter().find(|election| election.name == at.name);
    let outlook = election.map(|election| election.outlook(cluster.server_time()));
    Ok(outlook.is_some_and(|outlook| outlook.forecast.needs_the_holder_to_end()))
}
