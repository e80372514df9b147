//! Who we are to the server, and what we may do there.

use http::Method;
use serde_json::{Value, json};

use super::{
    Cluster, Object, Resource,
    single::{Address, Writing},
};
use crate::error::{Error, Needs, Result};

pub(super) const WHOAMI: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
pub(super) const MAY: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

impl Cluster {
    /// The authenticated user's name.
    pub async fn whoami(&self) -> Result<String> {
        let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
        let resource = "selfsubjectreviews.authentication.k8s.io".to_owned();
        let needs = Needs { verbs: "create", resource, namespace: None };
        let writing = Writing::default();
        let answer: Object<Value> =
            self.write(Method::POST, WHOAMI, "application/json", &review, &needs, &writing).await?;
        let name = answer.value["status"]["userInfo"]["username"].as_str().filter(|name| !name.is_empty());
        name.map(str::to_owned).ok_or_else(|| Error::BadAnswer {
            server: self.server.clone(),
            cause: "it does not say who we are".into(),
        })
    }

    /// Whether we may do this, in the server's own judgement.
    pub async fn may(&self, verb: &'static str, resource: Resource, at: &Address) -> Result<bool> {
        let (plural, subresource) = resource.plural.split_once('/').unwrap_or((resource.plural, ""));
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": { "resourceAttributes": {
                "verb": verb, "group": resource.group, "resource": plural, "subresource": subresource,
                "namespace": at.namespace, "name": at.name,
            } },
        });
        let name = "selfsubjectaccessreviews.authorization.k8s.io".to_owned();
        let needs = Needs { verbs: "create", resource: name, namespace: None };
        let answer: Object<Value> =
            self.write(Method::POST, MAY, "application/json", &review, &needs, &Writing::default()).await?;
        Ok(answer.value["status"]["allowed"].as_bool().unwrap_or(false))
    }
}
