//! The holder identity that a command acts under.

use crate::{
    error::{Error, Result},
    output::words::leases as words,
};
use kube_leases::{Error as LibraryError, client::Cluster, rules::holder::Who};

/// As told, or the authenticated user on this host.
pub async fn who(holder: Option<&str>, admin: bool, cluster: &Cluster) -> Result<Who> {
    if let Some(holder) = holder {
        return Who::named(holder, admin)
            .map_err(|why| Error::usage(format!("--holder '{holder}': {}", words::invalid_holder(why))));
    }
    let user = cluster.whoami().await.map_err(|error| match error {
        LibraryError::NotServed { .. } | LibraryError::Forbidden { .. } => Error::Refused {
            message: format!("cannot determine your user name (SelfSubjectReview): {error}"),
            hint: Some("set the holder identity with --holder NAME".into()),
        },
        error => error.into(),
    })?;
    Ok(Who::user(&user, login().as_deref(), &host_name(), admin))
}

/// The user who has logged in here, before any sudo.
fn login() -> Option<String> {
    let names = ["SUDO_USER", "USER", "LOGNAME", "USERNAME"];
    names.iter().find_map(|name| std::env::var(name).ok().filter(|login| !login.is_empty()))
}

fn host_name() -> String {
    #[cfg(unix)]
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    #[cfg(not(unix))]
    let name = std::env::var("COMPUTERNAME").ok();
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown-host".to_owned())
}
