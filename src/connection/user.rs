//! The user of the kubeconfig, with what the flags change: a client certificate, a token, a credential plugin.

use std::fs;

use http::HeaderValue;
use kube::config::{AuthInfo, Context, Kubeconfig};
use secrecy::{ExposeSecret, SecretString};

use super::{REMOVE_ONE, path_text, unknown};
use crate::{
    cli::Connection,
    error::{Error, Result},
};

/// Applies the flags, and refuses what client-go refuses.
pub(super) fn complete(user: &mut AuthInfo, flags: &Connection) -> Result<()> {
    apply_flags(user, flags)?;
    replace_auth_provider(user)?;
    check_files(user)?;
    check_user(user)?;
    check_headers(user)
}

pub(super) fn find(kubeconfig: &Kubeconfig, context: &Context, flags: &Connection) -> Result<AuthInfo> {
    let of_context = context.user.as_ref().filter(|name| !name.is_empty());
    let Some(name) = flags.user.as_ref().or(of_context) else {
        // As in client-go: a context without a user connects without credentials.
        return Ok(AuthInfo::default());
    };
    let found = kubeconfig.auth_infos.iter().find(|user| user.name == *name);
    found
        .map(|named| tidy(named.auth_info.clone().unwrap_or_default()))
        .ok_or_else(|| unknown("user", name, kubeconfig.auth_infos.iter().map(|user| user.name.as_str())))
}

fn apply_flags(user: &mut AuthInfo, flags: &Connection) -> Result<()> {
    match (&flags.token, &flags.username) {
        (Some(_), Some(_)) => {
            return Err(Error::usage("--token and --username cannot both be given: which is it?"));
        }
        (Some(token), None) => {
            user.token = Some(token.clone().into());
            (user.token_file, user.exec, user.auth_provider) = (None, None, None);
            (user.username, user.password) = (None, None);
        }
        (None, Some(name)) => {
            user.username = Some(name.clone());
            (user.token, user.token_file, user.exec, user.auth_provider) = (None, None, None, None);
        }
        (None, None) => {}
    }
    if let Some(password) = &flags.password {
        user.password = Some(password.clone().into());
    }
    if let Some(path) = &flags.client_certificate {
        user.client_certificate = Some(path_text(path)?);
        user.client_certificate_data = None;
    }
    if let Some(path) = &flags.client_key {
        user.client_key = Some(path_text(path)?);
        user.client_key_data = None;
    }
    if let Some(name) = &flags.impersonate {
        user.impersonate = Some(name.clone());
    } else if user.impersonate.is_none()
        && (!flags.impersonate_groups.is_empty()
            || flags.impersonate_uid.is_some()
            || !flags.impersonate_extra.is_empty())
    {
        return Err(Error::usage("--as-group, --as-uid and --as-user-extra need --as: a user to act as"));
    }
    if !flags.impersonate_groups.is_empty() {
        user.impersonate_groups = Some(flags.impersonate_groups.clone());
    }
    if let Some(uid) = &flags.impersonate_uid {
        user.impersonate_uid = Some(uid.clone());
    }
    for pair in &flags.impersonate_extra {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(Error::usage(format!("--as-user-extra '{pair}' is not KEY=VALUE")));
        };
        let extra = user.impersonate_user_extra.get_or_insert_default();
        extra.entry(key.to_owned()).or_default().push(value.to_owned());
    }
    Ok(())
}

/// A legacy `auth-provider`: kubectl has none any more but oidc, and its token is not refreshed here.
fn replace_auth_provider(user: &mut AuthInfo) -> Result<()> {
    let Some(provider) = user.auth_provider.take() else { return Ok(()) };
    let token = provider.config.get("id-token").filter(|token| provider.name == "oidc" && !token.is_empty());
    let token = token.ok_or_else(|| Error::Kubeconfig {
        message: format!(
            "the kubeconfig's user authenticates by the auth-provider '{}', which is not supported",
            provider.name
        ),
        hint: Some(
            "have the kubeconfig written anew with an exec credential plugin, such as \
             gke-gcloud-auth-plugin or kubelogin"
                .into(),
        ),
    })?;
    user.token.get_or_insert_with(|| token.clone().into());
    Ok(())
}

/// A user without what is empty, which for client-go is the same as not given, and without the line breaks
/// that base64 may have.
fn tidy(mut user: AuthInfo) -> AuthInfo {
    let joined = |text: &str| text.replace(['\r', '\n'], "");
    for text in [
        &mut user.username,
        &mut user.token_file,
        &mut user.client_certificate,
        &mut user.client_certificate_data,
        &mut user.client_key,
        &mut user.impersonate,
        &mut user.impersonate_uid,
    ] {
        text.take_if(|text| text.is_empty());
    }
    for secret in [&mut user.password, &mut user.token, &mut user.client_key_data] {
        secret.take_if(|secret| secret.expose_secret().is_empty());
    }
    user.client_certificate_data = user.client_certificate_data.map(|data| joined(&data));
    user.client_key_data = user.client_key_data.map(|data| joined(data.expose_secret()).into());
    user.impersonate_groups.take_if(|groups| groups.is_empty());
    user.impersonate_user_extra.take_if(|extra| extra.is_empty());
    if user.client_certificate.is_none() && user.client_certificate_data.is_none() {
        // A key alone is nothing.
        (user.client_key, user.client_key_data) = (None, None);
    }
    user
}

/// What client-go refuses, and what would leave the user ambiguous.
fn check_user(user: &AuthInfo) -> Result<()> {
    let has_token = user.token.is_some() || user.token_file.is_some();
    let has_basic = user.username.is_some() || user.password.is_some();
    let has_certificate = user.client_certificate.is_some() || user.client_certificate_data.is_some();
    let has_key = user.client_key.is_some() || user.client_key_data.is_some();
    let has_more = user.impersonate_groups.is_some()
        || user.impersonate_uid.is_some()
        || user.impersonate_user_extra.is_some();
    let (why, hint) = if has_token && has_basic {
        ("both a token and a user name or password", REMOVE_ONE)
    } else if user.client_certificate.is_some() && user.client_certificate_data.is_some() {
        ("both client-certificate and client-certificate-data", REMOVE_ONE)
    } else if user.client_key.is_some() && user.client_key_data.is_some() {
        ("both client-key and client-key-data", REMOVE_ONE)
    } else if has_certificate && !has_key {
        ("a client certificate without a key", "add client-key or client-key-data, or give --client-key")
    } else if has_more && user.impersonate.is_none() {
        ("as-groups, as-uid or as-user-extra without as", "name the user to act as, or give --as")
    } else {
        return Ok(());
    };
    Err(Error::Kubeconfig { message: format!("the kubeconfig's user has {why}"), hint: Some(hint.into()) })
}

/// The client certificate and key are read later; that they can be is said here in our words.
fn check_files(user: &AuthInfo) -> Result<()> {
    let has_data = |data: Option<&str>| data.is_some_and(|data| !data.is_empty());
    let key_data = user.client_key_data.as_ref().map(ExposeSecret::expose_secret);
    for (what, path, data) in [
        ("client certificate", &user.client_certificate, user.client_certificate_data.as_deref()),
        ("client key", &user.client_key, key_data),
    ] {
        if let Some(path) = path.as_ref().filter(|path| !path.is_empty() && !has_data(data)) {
            fs::read(path).map_err(|error| Error::Kubeconfig {
                message: format!("cannot read the {what} {path}: {error}"),
                hint: None,
            })?;
        }
    }
    Ok(())
}

/// What goes into a header must fit there. It may be a secret: it is not quoted.
fn check_headers(user: &AuthInfo) -> Result<()> {
    let fits = |text: &str| HeaderValue::from_str(text).is_ok();
    let secret = |secret: &SecretString| fits(secret.expose_secret());
    let extra = user.impersonate_user_extra.iter().flatten();
    for (what, sound) in [
        ("token", user.token.as_ref().is_none_or(secret)),
        ("user name", user.username.as_deref().is_none_or(fits)),
        ("password", user.password.as_ref().is_none_or(secret)),
        ("user to act as", user.impersonate.as_deref().is_none_or(fits)),
        ("group to act as", user.impersonate_groups.iter().flatten().all(|group| fits(group))),
        ("uid to act as", user.impersonate_uid.as_deref().is_none_or(fits)),
        ("extra user information", extra.flat_map(|(_, values)| values).all(|value| fits(value))),
    ] {
        if !sound {
            return Err(Error::Kubeconfig {
                message: format!("the {what} has characters that no header may have, such as a line break"),
                hint: None,
            });
        }
    }
    Ok(())
}
