//! Whether a candidate may lead by the version skew policy.

use super::{Election, leases};
use crate::{
    cluster::{Cluster, Object, candidates::Part},
    domain::{
        candidate::Candidate,
        identity::{self, Identity},
        skew::{self, Minor, Skew},
    },
    error::{Error, Result},
    output::Printer,
};

/// Refuses a candidate that would break the policy with a kube-apiserver that is known to be alive, and
/// warns of those whose version is not known.
pub async fn check(
    election: &Election<'_>,
    candidate: &Candidate,
    parts: &[Vec<Object<Part>>],
    force: bool,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<()> {
    let (name, lease) = (candidate.name(), election.name);
    let Some(version) = Minor::of(candidate).filter(|_| skew::governs(election.namespace, lease)) else {
        return Ok(());
    };
    let now = cluster.server_time();
    // Whoever may create a lease in a namespace can label it as an identity.
    let identities: Vec<_> = leases(parts)
        .filter(|lease| lease.metadata.namespace == identity::NAMESPACE)
        .filter_map(|lease| Identity::from_lease(lease, now))
        .collect();
    let apiservers = cluster.apiserver_versions(&identities).await;
    let others: Vec<_> = election.candidates.iter().filter_map(|(it, _)| Minor::of(it)).collect();
    let verdict = skew::judge(version, &others, &apiservers);
    for (host, apiserver, broken) in &verdict.broken {
        let (how, fix) = match broken {
            Skew::Newer => ("is newer than", "upgrade the kube-apiservers first"),
            Skew::TooOld => ("is more than one minor version older than", "upgrade the component first"),
        };
        let message = format!(
            "{name} works as {version}, which {how} the kube-apiserver {} ({apiserver}): leading would break \
             the version skew policy",
            place(host)
        );
        if !force {
            return Err(Error::Refused {
                message,
                hint: Some(format!("{fix}; --force does it all the same")),
            });
        }
        printer.warn(&message);
    }
    if !verdict.unknown.is_empty() {
        printer.warn(&format!(
            "the version of the kube-apiserver {} is not known, and versions differ: {lease} must not be newer than any \
             kube-apiserver, nor more than one minor version older",
            verdict.unknown.iter().map(|host| place(host)).collect::<Vec<_>>().join(" and ")
        ));
    }
    Ok(())
}

/// Where a kube-apiserver is: on its host, or where it answers for one that is not known.
fn place(host: &str) -> String {
    if host.contains("://") { format!("at {host}") } else { format!("on {host}") }
}
