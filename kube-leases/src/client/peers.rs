//! The versions of all kube-apiservers, as far as they can be had.
//!
//! The one that answers tells its own at `/version`. The others are asked at the address that their
//! identity leases name for peers: without credentials, which must not be sent to an address that
//! any user with permission to create leases may have written, and with its certificate verified, or the answer
//! could come from any server. `/version` is open to all users unless anonymous requests are forbidden. Where
//! that does not work, the image of a mirror pod (kubeadm runs static pods) shows it.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use futures::future::join_all;
use http::{Request, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde::Deserialize;
use tokio::time::timeout;

use super::{Cluster, PODS, Query, served::Release};
use crate::rules::{
    identity::{self, ApiserverState, COMPONENT, Identity},
    lease::Metadata,
    skew::{Apiserver, Minor},
};

/// How long a peer has to answer: it is next to the one that has answered already, or out of reach.
const WITHIN: Duration = Duration::from_secs(2);

impl Cluster {
    /// The kube-apiservers that are alive and their versions. Of one that answers for an address which
    /// several share it is not known which it is: it is called by that address.
    pub async fn apiserver_versions(&self, identities: &[Identity]) -> Vec<Apiserver> {
        let alive: Vec<_> = identities
            .iter()
            .filter(|it| {
                matches!(it.state, ApiserverState::Alive | ApiserverState::Late | ApiserverState::Skewed)
            })
            .collect();
        let own = self.works_as().await;
        if let [] | [_] = alive[..] {
            let host = alive.first().map_or(self.server.as_str(), |it| it.called()).to_owned();
            return vec![Apiserver { host, version: own }];
        }
        let ask = alive.iter().map(async |it| match &it.peer_address {
            Some(address) => self.version_at(address).await,
            None => None,
        });
        let mut versions = join_all(ask).await;
        if versions.contains(&None) {
            let pods = self.versions_of_pods().await;
            for (version, it) in versions.iter_mut().zip(&alive) {
                *version = version.or_else(|| pods.get(it.called()).copied());
            }
        }
        let mut all: Vec<_> = alive
            .iter()
            .zip(&versions)
            .map(|(it, version)| Apiserver { host: it.called().to_owned(), version: *version })
            .collect();
        if versions.contains(&None) {
            all.push(Apiserver { host: self.server.clone(), version: own });
        }
        all
    }

    /// The version that the kube-apiserver which answers behaves as, if it tells.
    pub async fn works_as(&self) -> Option<Minor> {
        self.release().await.ok()?.works_as()
    }

    async fn version_at(&self, address: &str) -> Option<Minor> {
        // As a kube-apiserver writes it: not whatever a URL could be made of.
        let address: SocketAddr = address.parse().ok()?;
        let mut config = self.anonymous.as_deref()?.clone();
        config.cluster_url = format!("https://{address}").parse().ok()?;
        let client = kube::Client::try_from(config).ok()?;
        let mut request = Request::get("/version").body(Body::empty()).ok()?;
        if let Some(user_agent) = &self.user_agent {
            request.headers_mut().insert(header::USER_AGENT, user_agent.clone());
        }
        let answer = async {
            let response =
                client.send(request).await.ok().filter(|response| response.status().is_success())?;
            Some(response.into_body().collect().await.ok()?.to_bytes())
        };
        let answer = timeout(WITHIN, answer).await.ok().flatten()?;
        serde_json::from_slice::<Release>(&answer).ok()?.works_as()
    }

    /// By the images of their static pods, by node; none of those that emulate another version.
    async fn versions_of_pods(&self) -> BTreeMap<String, Minor> {
        let label = format!("component={COMPONENT}");
        let query = Query::new(PODS).namespace(identity::NAMESPACE).select(Some(&label), None).optional();
        let pods = self.list::<PeerPod>(&query).await.map(|list| list.items).unwrap_or_default();
        pods.iter().filter_map(|pod| Some((pod.value.spec.node_name.clone(), pod.value.version()?))).collect()
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PeerPod {
    metadata: Metadata,
    spec: PeerPodSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PeerPodSpec {
    node_name: String,
    containers: Vec<PeerContainer>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PeerContainer {
    name: String,
    image: String,
    command: Vec<String>,
    args: Vec<String>,
}

impl PeerPod {
    fn version(&self) -> Option<Minor> {
        let container = self.spec.containers.iter().find(|it| it.name == COMPONENT)?;
        let emulates = |word: &String| word.starts_with("--emulated-version");
        let plain = !container.command.iter().chain(&container.args).any(emulates);
        // It may be about to be replaced.
        let stays = self.metadata.deletion_timestamp.is_none();
        let image = container.image.split('@').next()?;
        let (_, tag) = image.rsplit_once(':').filter(|_| plain && stays)?;
        Minor::parse(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_version_of_a_static_pod_is_the_tag_of_its_image() {
        let flags = |flags: &[&str]| json!([["kube-apiserver"].as_slice(), flags].concat());
        for (image, command, version) in [
            ("registry.k8s.io/kube-apiserver:v1.37.1", flags(&["--secure-port=6443"]), Some("1.37")),
            ("10.0.0.1:5000/kube-apiserver:v1.37.1@sha256:abc", flags(&[]), Some("1.37")),
            ("kube-apiserver@sha256:abc", flags(&[]), None),
            ("10.0.0.1:5000/kube-apiserver", flags(&[]), None),
            ("registry.k8s.io/kube-apiserver:latest", flags(&[]), None),
            ("registry.k8s.io/kube-apiserver:v1.37.1", flags(&["--emulated-version=1.36"]), None),
        ] {
            let pod: PeerPod = serde_json::from_value(json!({
                "metadata": { "name": "kube-apiserver-cp-1" },
                "spec": { "nodeName": "cp-1", "containers": [
                    { "name": "sidecar", "image": "x:1.0.0" },
                    { "name": "kube-apiserver", "image": image, "command": command },
                ] },
            }))
            .unwrap();
            assert_eq!(pod.version().map(Minor::text).as_deref(), version, "{image} {command}");
        }
    }
}
