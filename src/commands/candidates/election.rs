//! The elections that there are, and the one that is meant by the name of its lease.

use kube_leases::{
    client::{
        Object,
        candidates::{Elections, Part, elections_of},
    },
    rules::election::CoordinatedElection,
};

use crate::connection::Reached;
use crate::error::{Error, Result};

/// All elections, or the error that says how to enable them.
pub async fn gather(namespace: Option<&str>, cluster: &Reached) -> Result<Elections> {
    cluster.elections(namespace).await?.ok_or_else(|| cluster.without_coordination().into())
}

/// The one election that is meant by the name of its lease.
pub fn the_election<'e, 'a>(
    lease: &str,
    all: &'e [CoordinatedElection<'a>],
    parts: &[Vec<Object<Part>>],
) -> Result<&'e CoordinatedElection<'a>> {
    let named: Vec<_> = all.iter().filter(|election| election.name == lease).collect();
    match named.as_slice() {
        [one] => Ok(one),
        [] => Err(no_candidates(lease, parts)),
        all => Err(several(lease, &all.iter().map(|election| election.namespace).collect::<Vec<_>>())),
    }
}

/// A lease that is meant by a name which several have.
pub fn several(lease: &str, namespaces: &[&str]) -> Error {
    Error::Usage {
        message: format!("there is a lease '{lease}' in {}", namespaces.join(" and in ")),
        hint: Some("-n says which one is meant".into()),
    }
}

/// The error for a lease without candidates.
pub fn no_candidates(lease: &str, parts: &[Vec<Object<Part>>]) -> Error {
    let others: Vec<_> = elections_of(parts).iter().map(|election| election.name.to_owned()).collect();
    let named = |object: &Object<Part>| object.value.lease().is_some_and(|it| it.metadata.name == lease);
    let hint = if parts.get(1).is_some_and(|leases| leases.iter().any(named)) {
        format!(
            "'{lease}' does not use coordinated leader election: 'kubectl lease leaders {lease}' shows its holder"
        )
    } else if others.is_empty() {
        "no component here uses coordinated leader election".to_owned()
    } else {
        format!("there are candidates for {}", others.join(", "))
    };
    Error::NotFound { message: format!("there are no candidates for '{lease}'"), hint: Some(hint) }
}
