//! What is wrong with the elections of a cluster, as findings.

use kube_leases::rules::trouble::Severity;

use super::finding::{Finding, Found, Level};
use crate::{
    connection::Reached,
    error::Result,
    output::words::{election::called, paste::with_flags, trouble::trouble},
};

/// What is wrong with those of a namespace or of all, and how many there are; `None` where coordinated leader
/// election is off.
pub async fn troubles(namespace: Option<&str>, cluster: &Reached) -> Result<Option<(usize, Vec<Finding>)>> {
    let Some(found) = cluster.elections(namespace).await? else { return Ok(None) };
    let now = cluster.server_time();
    let all = found.all();
    let mut findings = Vec::new();
    for election in &all {
        for it in election.outlook(now).troubles {
            let level = match it.severity(election.namespace) {
                None => continue,
                Some(Severity::Warning) => Level::Warn,
                Some(Severity::Failure) => Level::Fail,
            };
            let (message, hint) = trouble(&it, election.key(), now);
            let message = format!("{}: {message}", called(election.namespace, election.name));
            let found = Found::Trouble {
                namespace: election.namespace.to_owned(),
                lease_name: election.name.to_owned(),
                trouble: it,
            };
            findings.push(Finding::of_election(level, found, message, with_flags(&hint, cluster.flags())));
        }
    }
    Ok(Some((all.len(), findings)))
}
