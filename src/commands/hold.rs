//! `kubectl lease hold`.

use std::time::Duration;

use tokio::time::Instant;

use super::maint::{
    blocked, holding,
    run::{term, under},
    take_by, undo, who,
};
use crate::{
    cli::Hold,
    cluster::{Cluster, single::Address},
    commands::{interrupted, maint::wait_for},
    domain::{
        deadline::Schedule,
        lease::Lease,
        maintenance::{self, Standing},
        node::HEARTBEATS,
        taking::{Obstacle, Replaces, Rule, Terms},
    },
    error::{Error, Result},
    exit::ExitCode,
    output::Printer,
    session::{Claim, Held, Took, within},
};

/// A lease that looks expired is watched for its duration without being told to wait, if that is short.
const SHORT: Duration = Duration::from_secs(60);
/// How long a last look may take.
const LOOK: Duration = Duration::from_secs(5);

pub async fn run(args: &Hold, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    let at = Address::new(cluster.namespace(), &args.name);
    if at.namespace == HEARTBEATS {
        return Err(Error::Refused {
            message: format!(
                "the leases in {HEARTBEATS} are the nodes' heartbeats: who holds one fakes a living node"
            ),
            hint: Some("'maint run NODE' holds a node for maintenance".into()),
        });
    }
    if at.namespace == maintenance::NAMESPACE {
        return Err(Error::Refused {
            message: format!(
                "the leases in {} are those of nodes, which medik8s may hold too",
                maintenance::NAMESPACE
            ),
            hint: Some(format!("'kubectl lease maint run {} -- COMMAND' holds a node", args.name)),
        });
    }
    let (who, lease) = tokio::try_join!(who(&args.identity, false, cluster), cluster.lease(&at))?;
    if lease.as_ref().is_some_and(|lease| lease.value.spec.strategy.is_some()) {
        return Err(Error::Refused {
            message: format!(
                "'{}' is managed by coordinated leader election, which chooses its holder itself",
                args.name
            ),
            hint: Some("hold another lease".into()),
        });
    }
    let terms = Terms {
        who: if args.identity.holder.is_some() { who } else { who.unique(&term()) },
        rule: Rule::Observed,
        adopts: None,
        adopts_term: None,
        renews: false,
        reason: None,
        replaces: Replaces::Nothing,
        take_malformed: false,
        ignore_medik8s: true,
    };
    let claim = Claim::new(at, terms, i32::try_from(args.duration.as_secs()).unwrap_or(i32::MAX));
    let taken = tokio::select! {
        biased;
        interruption = interrupted() => Err(interruption),
        taken = take(&claim, args, lease, cluster, printer) => taken,
    };
    let held = match taken {
        Ok(held) => held,
        Err(error) => {
            // A write may have been done without an answer, or still be under way.
            undo(&[claim], cluster, printer).await;
            return Err(error);
        }
    };
    under(&[held], Schedule::new(args.duration), &args.command, cluster, printer).await
}

/// Whether a lease is another than it was.
async fn was_renewed(claim: &Claim, before: Option<&Lease>, cluster: &Cluster) -> bool {
    let now = within(LOOK, cluster.lease(&claim.at)).await;
    now.is_ok_and(|now| now.as_ref().and_then(|now| now.value.renewed()) != before.and_then(Lease::renewed))
}

async fn take(
    claim: &Claim,
    args: &Hold,
    lease: Option<crate::cluster::Object<Lease>>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<Held> {
    let waits = args.wait.wait.is_some();
    let deadline = args.wait.wait.flatten().and_then(|limit| Instant::now().checked_add(limit));
    let (obstacle, lease) = match take_by(&args.name, deadline, claim.take(cluster, lease)).await {
        Ok(Took::Yes(held, _)) => return Ok(held),
        Ok(Took::No(obstacle, lease)) => (Some(obstacle), lease),
        Err(error) if waits && error.is_transient() => (None, None),
        Err(error) => return Err(error),
    };
    if waits {
        return wait_for(claim, deadline, cluster, printer).await.map(|(held, _)| held);
    }
    let lease = lease.as_ref().map(|lease| &*lease.value);
    let obstacle = obstacle.unwrap_or(Obstacle::Standing(Standing::Free));
    let now = cluster.server_time();
    // One's own is that of another process of the same name, which may have been killed.
    let looks_expired = match &obstacle {
        Obstacle::Standing(Standing::Expired { .. }) => true,
        Obstacle::Standing(ours @ Standing::Ours { until: Some(_), .. }) => !ours.is_valid(now),
        _ => false,
    };
    if looks_expired {
        // It looks expired by its timestamps; that its holder is gone is known when it has not
        // moved for as long as its duration.
        let seconds = lease.and_then(|lease| lease.spec.lease_duration_seconds).unwrap_or(1);
        let limit = Duration::from_secs(u64::try_from(seconds).unwrap_or(1)) + Duration::from_secs(2);
        if limit > SHORT {
            return Err(Error::Held {
                message: format!(
                    "'{}' looks expired, but only watching it for {seconds} s would show that it is",
                    args.name
                ),
                hint: Some("--wait watches it, and takes it then".into()),
            });
        }
        return match wait_for(claim, Some(Instant::now() + limit), cluster, printer).await {
            // Without a look at a renewal it may as well have been an outage.
            Err(Error::TimedOut { .. }) if was_renewed(claim, lease, cluster).await => Err(Error::Held {
                message: format!(
                    "'{}' looks expired, but its holder still renews it: its clock is wrong",
                    args.name
                ),
                hint: Some("--wait takes it as soon as it is free".into()),
            }),
            outcome => outcome.map(|(held, _)| held),
        };
    }
    if let Obstacle::Standing(standing @ Standing::Malformed { .. }) = &obstacle {
        return Err(Error::Refused {
            message: format!("'{}' is {}", args.name, holding(standing, lease, cluster.server_time())),
            hint: Some("find out what that holder is, and delete the lease if it is gone".into()),
        });
    }
    let mut error = blocked(&format!("'{}'", args.name), &obstacle, lease, cluster.server_time());
    if let (Obstacle::Standing(Standing::Ours { .. }), Error::Held { hint, .. }) = (&obstacle, &mut error) {
        *hint = Some("--wait takes it when that command has ended; or use another --holder".into());
    }
    Err(error)
}
