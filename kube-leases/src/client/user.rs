//! The authenticated user, and its permissions.

use http::Method;
use k8s_openapi::api::{
    authentication::v1::SelfSubjectReview,
    authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
};
use serde_json::json;

use super::{
    Cluster, Object, Resource,
    single::{Address, Writing},
};
use crate::error::{Error, Permission, Result};

pub(super) const WHOAMI: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
pub(super) const MAY: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

impl Cluster {
    /// The authenticated user's name.
    pub async fn whoami(&self) -> Result<String> {
        let review = json!(SelfSubjectReview::default());
        let resource = "selfsubjectreviews.authentication.k8s.io".to_owned();
        let needs = Permission { verbs: "create", resource, namespace: None };
        let writing = Writing::default();
        let answer: Object<SelfSubjectReview> =
            self.write(Method::POST, WHOAMI, "application/json", &review, &needs, &writing).await?;
        let user = answer.value.status.as_ref().and_then(|status| status.user_info.as_ref());
        let name = user.and_then(|user| user.username.clone()).filter(|name| !name.is_empty());
        name.ok_or_else(|| Error::BadAnswer {
            server: self.server.clone(),
            cause: "the SelfSubjectReview has no username".into(),
        })
    }

    /// Whether we may do this, in the server's own judgement.
    pub async fn may(&self, verb: &'static str, resource: Resource, at: &Address) -> Result<bool> {
        let (plural, subresource) = resource.plural.split_once('/').unwrap_or((resource.plural, ""));
        let set = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let attributes = ResourceAttributes {
            verb: set(verb),
            group: set(resource.group),
            resource: set(plural),
            subresource: set(subresource),
            namespace: set(&at.namespace),
            name: set(&at.name),
            ..ResourceAttributes::default()
        };
        let spec =
            SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
        let review = json!(SelfSubjectAccessReview { spec, ..Default::default() });
        let name = "selfsubjectaccessreviews.authorization.k8s.io".to_owned();
        let needs = Permission { verbs: "create", resource: name, namespace: None };
        let answer: Object<SelfSubjectAccessReview> =
            self.write(Method::POST, MAY, "application/json", &review, &needs, &Writing::default()).await?;
        Ok(answer.value.status.as_ref().is_some_and(|status| status.allowed))
    }
}
