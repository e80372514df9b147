//! Comparing the clocks of the kube-apiservers by a renewal of each.

use std::time::Duration;

use crate::{
    client::{
        Cluster, LEASES, Query,
        watch::{Follow, Watch, WatchEvent},
    },
    clock::BootInstant,
    error::Result,
    rules::{
        clocks::{Clocks, MEASURED_FOR, Renewals},
        identity,
        lease::Lease,
        time::ServerTime,
    },
};

/// Watches the identity leases until each kube-apiserver has renewed its own, or for as long as that may take.
///
/// # Errors
/// If they cannot be watched.
pub async fn measure_clocks(cluster: &Cluster) -> Result<Clocks> {
    let label = format!("{}={}", identity::LABEL, identity::COMPONENT);
    let query = Query::new(LEASES).namespace(identity::NAMESPACE).select(Some(&label), None);
    // One clock for all of them, whatever is learned of the server's meanwhile.
    let (server, started) = (cluster.server_time(), BootInstant::now());
    let now = || {
        let elapsed = BootInstant::now().to_millis().saturating_sub(started.to_millis());
        ServerTime(server.0.saturating_add(Duration::from_millis(elapsed)).unwrap_or(server.0))
    };
    let limit = MEASURED_FOR.unsigned_abs();
    let mut renewals = Renewals::default();
    let mut watch = Watch::<_, Lease>::of(cluster, (), query, Follow::quiet(2 * limit));
    let listening = async {
        loop {
            match watch.next().await.1 {
                WatchEvent::Snapshot(leases) => {
                    for lease in leases {
                        renewals.listed(&lease.value, now());
                    }
                }
                WatchEvent::Changed(lease) => renewals.changed(&lease.value, now()),
                WatchEvent::Gone(lease) => renewals.gone(&lease.value),
                WatchEvent::Lost(_) => continue,
                WatchEvent::Failed(error) => return Err(error),
            }
            if renewals.is_complete() {
                return Ok(());
            }
        }
    };
    tokio::time::timeout(limit, listening).await.unwrap_or(Ok(()))?;
    Ok(renewals.clocks())
}
