//! Which version of the `LeaseCandidate` API a server serves.
//!
//! The API is off by default in every release so far and has moved through three versions. Group
//! discovery is a first hint only: in a cluster where apiservers of several releases serve for each
//! other, a server answers for versions that its own discovery does not list. So the resource
//! itself is asked, the likeliest version first.

use serde::Deserialize;

use super::{Cluster, Query, Resource};
use crate::{
    domain::lease::Metadata,
    error::{Error, Needs, Result},
};

const GROUP: &str = "coordination.k8s.io";

/// The versions we can read, the one we like best first.
const CANDIDATES: [Resource; 4] =
    [candidates("v1"), candidates("v1beta1"), candidates("v1alpha2"), candidates("v1alpha1")];

const fn candidates(version: &'static str) -> Resource {
    Resource { group: GROUP, version, plural: "leasecandidates", kind: "LeaseCandidate" }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Group {
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

/// Only that it is an object matters here.
#[derive(Deserialize)]
struct Any {
    #[serde(default, rename = "metadata")]
    _metadata: Metadata,
}

impl Cluster {
    /// The `LeaseCandidate` resource in the best version that this server serves, or `None` where
    /// coordinated leader election is off.
    pub async fn lease_candidates(&self) -> Result<Option<Resource>> {
        for resource in in_order(&self.listed_versions().await?) {
            let probe = Query::new(resource).namespace("kube-system").limit(1);
            match self.list::<Any>(&probe).await {
                Ok(_) => return Ok(Some(resource)),
                Err(Error::NotServed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    async fn listed_versions(&self) -> Result<Vec<String>> {
        let request = http::Request::get(format!("/apis/{GROUP}")).body(Vec::new());
        let request = request.map_err(|error| Error::usage(error.to_string()))?;
        let needs = Needs { verbs: "get", resource: format!("/apis/{GROUP}"), namespace: None };
        match self.call(&request, &needs).await {
            Ok(body) => {
                let group: Group = serde_json::from_slice(&body).unwrap_or_default();
                Ok(group.versions.into_iter().map(|version| version.version).collect())
            }
            // Who may not look at the discovery may still use what it would list.
            Err(Error::Forbidden { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

/// What to ask for, in turn: the versions that discovery lists, then the others, each set from the
/// best to the oldest.
fn in_order(listed: &[String]) -> Vec<Resource> {
    let is_listed = |resource: &Resource| listed.iter().any(|version| version == resource.version);
    let (mut first, then): (Vec<_>, Vec<_>) = CANDIDATES.into_iter().partition(is_listed);
    first.extend(then);
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(listed: &[&str]) -> Vec<&'static str> {
        let listed: Vec<_> = listed.iter().map(|version| (*version).to_owned()).collect();
        in_order(&listed).into_iter().map(|resource| resource.version).collect()
    }

    #[test]
    fn what_discovery_lists_is_asked_first_and_the_rest_still() {
        assert_eq!(order(&["v1beta1", "v1"]), ["v1", "v1beta1", "v1alpha2", "v1alpha1"]);
        assert_eq!(order(&["v1alpha2"]), ["v1alpha2", "v1", "v1beta1", "v1alpha1"]);
        assert_eq!(order(&["v1alpha1", "v1alpha2"]), ["v1alpha2", "v1alpha1", "v1", "v1beta1"]);
        assert_eq!(order(&[]), ["v1", "v1beta1", "v1alpha2", "v1alpha1"]);
        assert_eq!(order(&["v2"]), ["v1", "v1beta1", "v1alpha2", "v1alpha1"]);
    }
}
