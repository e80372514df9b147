//! Where a command looks.

use kube_leases::client::Cluster;

use crate::{
    cli::Scope,
    error::{Error, Result},
};

/// The namespace to look in; `None` for all.
pub fn within<'a>(scope: &Scope, namespace: Option<&'a str>) -> Option<&'a str> {
    namespace.filter(|namespace| !scope.all_namespaces && !namespace.is_empty())
}

/// A namespace in which nothing was found: whether it exists at all, as far as that can be seen.
pub async fn check_namespace(namespace: Option<&str>, cluster: &Cluster) -> Result<()> {
    match namespace {
        Some(name) if !cluster.has_namespace(name).await => Err(no_namespace(name)),
        _ => Ok(()),
    }
}

pub fn no_namespace(name: &str) -> Error {
    Error::NotFound { message: format!("there is no namespace '{name}'"), hint: None }
}
