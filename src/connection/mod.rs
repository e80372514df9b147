//! From kubectl's connection flags and the kubeconfig to a client configuration.
//!
//! The precedence is client-go's: a flag beats the kubeconfig, and where there is no kubeconfig, or no
//! context is chosen in it, the service account of the pod that this runs in is used.

use std::{
    fs,
    path::{Path, PathBuf},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{HeaderValue, Uri};
use kube::{
    Config,
    config::{AuthInfo, Cluster, Context, ExecConfig, Kubeconfig},
};

use secrecy::{ExposeSecret, SecretString};

mod kubeconfig;
mod proxy;

use crate::{
    cli::Connection,
    error::{Error, Result, causes},
};
use kube_leases::client::without_userinfo;
use kube_leases::rules::lease::is_object_name;

/// Reads the configuration that the flags, the kubeconfig and the environment describe.
pub fn load(flags: &Connection) -> Result<Config> {
    let flags = &given(flags);
    let kubeconfig = read_kubeconfig(flags.kubeconfig.as_deref())?;
    let chosen = kubeconfig.as_ref().and_then(current_context).is_some()
        || flags.server.is_some()
        || flags.context.is_some()
        || flags.cluster.is_some();
    let mut config = match kubeconfig {
        // In a pod a kubeconfig in which nothing is chosen is the same as none.
        Some(kubeconfig) if chosen || flags.user.is_some() || !in_a_pod() => {
            from_kubeconfig(&kubeconfig, flags)?
        }
        None if chosen => from_kubeconfig(&Kubeconfig::default(), flags)?,
        // Said of a cluster that is named nowhere: it is not the pod's own that is meant.
        _ if flags.user.is_some()
            || flags.certificate_authority.is_some()
            || flags.tls_server_name.is_some() =>
        {
            return Err(nothing_configured());
        }
        _ => in_cluster(flags)?,
    };
    if let Some(namespace) = &flags.namespace {
        if !is_object_name(namespace) {
            // It becomes part of URLs.
            return Err(Error::usage(format!("'{namespace}' cannot be the name of a namespace")));
        }
        config.default_namespace.clone_from(namespace);
    }
    let user = &mut config.auth_info;
    apply_user_flags(user, flags)?;
    replace_auth_provider(user)?;
    check_files(user)?;
    check_user(user)?;
    check_headers(user)?;
    if is_overheard(&config.cluster_url, config.proxy_url.as_ref()) {
        config.auth_info = without_credentials(&config.auth_info);
    }
    Ok(config)
}

/// Whether others can read what is sent: http to another machine, or through one. A proxy on this one, such as `kubectl proxy`, may
/// want credentials.
fn is_overheard(server: &Uri, proxy: Option<&Uri>) -> bool {
    let is_here = |it: &Uri| proxy::is_loopback(it);
    server.scheme_str() == Some("http") && !(is_here(server) && proxy.is_none_or(is_here))
}

/// As client-go sends it without TLS.
fn without_credentials(user: &AuthInfo) -> AuthInfo {
    AuthInfo {
        impersonate: user.impersonate.clone(),
        impersonate_groups: user.impersonate_groups.clone(),
        ..AuthInfo::default()
    }
}

/// Whether client-go would find a service account here.
fn in_a_pod() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let token = Path::new("/var/run/secrets/kubernetes.io/serviceaccount/token");
    set("KUBERNETES_SERVICE_HOST") && set("KUBERNETES_SERVICE_PORT") && token.is_file()
}

fn current_context(kubeconfig: &Kubeconfig) -> Option<&String> {
    kubeconfig.current_context.as_ref().filter(|name| !name.is_empty())
}

/// What a person should know about how the cluster is reached.
pub fn oddities(config: &Config) -> Vec<String> {
    let mut oddities = Vec::new();
    if !is_object_name(&config.default_namespace) {
        oddities.push(format!("'{}' cannot be the name of a namespace", config.default_namespace));
    }
    if config.accept_invalid_certs {
        oddities.push("the server's certificate is not checked: anybody can answer in its place".to_owned());
    }
    if is_overheard(&config.cluster_url, config.proxy_url.as_ref()) {
        oddities.push("the connection is not encrypted: no credentials are sent".to_owned());
    } else if config.cluster_url.scheme_str() == Some("http") {
        oddities.push("the connection is not encrypted".to_owned());
    }
    if let Some(proxy) = &config.proxy_url {
        oddities.push(format!("requests go through the proxy {}", without_userinfo(&proxy.to_string())));
    }
    if let Some(user) = &config.auth_info.impersonate {
        oddities.push(format!("you act as '{user}'"));
    }
    oddities
}

/// The contexts, clusters and users of the kubeconfig, as far as it can be read.
pub fn names(flags: &Connection) -> [Vec<String>; 3] {
    let kubeconfig = read_kubeconfig(given(flags).kubeconfig.as_deref()).ok().flatten().unwrap_or_default();
    [
        kubeconfig.contexts.into_iter().map(|context| context.name).collect(),
        kubeconfig.clusters.into_iter().map(|cluster| cluster.name).collect(),
        kubeconfig.auth_infos.into_iter().map(|user| user.name).collect(),
    ]
}

/// The flags without those that are empty, which for kubectl is the same as not given.
fn given(flags: &Connection) -> Connection {
    let mut flags = flags.clone();
    for text in [
        &mut flags.context,
        &mut flags.cluster,
        &mut flags.user,
        &mut flags.namespace,
        &mut flags.impersonate,
        &mut flags.impersonate_uid,
        &mut flags.server,
        &mut flags.token,
        &mut flags.username,
        &mut flags.password,
        &mut flags.tls_server_name,
        &mut flags.proxy_url,
    ] {
        text.take_if(|text| text.is_empty());
    }
    for path in [
        &mut flags.kubeconfig,
        &mut flags.certificate_authority,
        &mut flags.client_certificate,
        &mut flags.client_key,
    ] {
        path.take_if(|path| path.as_os_str().is_empty());
    }
    flags
}

/// The cluster of the pod that this runs in, as its service account.
fn in_cluster(flags: &Connection) -> Result<Config> {
    if std::env::var_os("KUBERNETES_SERVICE_HOST").is_none() {
        return Err(nothing_configured());
    }
    let mut config = Config::incluster().map_err(|error| Error::Kubeconfig {
        message: format!("no kubeconfig, and this pod's service account cannot be used: {}", causes(&error)),
        hint: Some("a pod has one unless automountServiceAccountToken is false".into()),
    })?;
    config.proxy_url =
        proxy::choose(&config.cluster_url, flags.proxy_url.as_deref(), &proxy::Environment::read())?;
    config.accept_invalid_certs = flags.insecure_skip_tls_verify;
    config.root_cert = config.root_cert.filter(|_| !flags.insecure_skip_tls_verify);
    config.disable_compression = flags.disable_compression || proxy::is_loopback(&config.cluster_url);
    if let Some(namespace) = std::env::var("POD_NAMESPACE").ok().filter(|namespace| !namespace.is_empty()) {
        config.default_namespace = namespace;
    }
    Ok(config)
}

/// The kubeconfig, merged from all files that exist; `None` where there is none.
fn read_kubeconfig(flag: Option<&Path>) -> Result<Option<Kubeconfig>> {
    if let Some(path) = flag {
        return match kubeconfig::read(path)? {
            Some(kubeconfig) => Ok(Some(kubeconfig)),
            None => Err(kubeconfig::missing(path)),
        };
    }
    let listed = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let mut paths: Vec<PathBuf> =
        std::env::split_paths(&listed).filter(|path| !path.as_os_str().is_empty()).collect();
    if paths.is_empty() {
        paths.extend(std::env::home_dir().map(|home| home.join(".kube").join("config")));
    }
    let mut merged: Option<Kubeconfig> = None;
    for path in paths {
        // As in client-go: a file that is listed but not there is no error.
        if let Some(next) = kubeconfig::read(&path)? {
            merged = Some(kubeconfig::merge(merged.unwrap_or_default(), next));
        }
    }
    Ok(merged)
}

fn from_kubeconfig(kubeconfig: &Kubeconfig, flags: &Connection) -> Result<Config> {
    let context = find_context(kubeconfig, flags)?;
    let cluster = find_cluster(kubeconfig, &context, flags)?;
    let mut user = find_user(kubeconfig, &context, flags)?;
    if let Some(exec) = &mut user.exec {
        tell_cluster(exec, &cluster)?;
    }

    let address = cluster.server.as_deref().unwrap_or_default();
    let server = server_url(address).map_err(|why| {
        let name = flags.cluster.as_deref().unwrap_or(&context.cluster);
        let of = if flags.server.is_some() { String::new() } else { format!(" of cluster '{name}'") };
        Error::Kubeconfig {
            message: format!("the server address '{}'{of} {why}", without_userinfo(address)),
            hint: Some("write it as https://host:port".into()),
        }
    })?;

    let mut config = Config::new(server);
    let proxy = flags.proxy_url.as_deref().or(cluster.proxy_url.as_deref());
    config.proxy_url = proxy::choose(&config.cluster_url, proxy, &proxy::Environment::read())?;
    // Compressing what never leaves the machine costs time and saves nothing.
    config.disable_compression = cluster.disable_compression.unwrap_or(false)
        || flags.disable_compression
        || proxy::is_loopback(&config.cluster_url);
    config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or(false);
    config.root_cert = certificate_authority(&cluster)?.filter(|_| !config.accept_invalid_certs);
    config.tls_server_name = cluster.tls_server_name;
    if let Some(namespace) = context.namespace.filter(|namespace| !namespace.is_empty()) {
        config.default_namespace = namespace;
    }
    config.auth_info = user;
    Ok(config)
}

/// The kubeconfig's cluster, as a plugin that wants to know it is told.
fn tell_cluster(exec: &mut ExecConfig, cluster: &kube::config::Cluster) -> Result<()> {
    if exec.provide_cluster_info {
        let told = cluster.try_into().map_err(|error: kube::config::KubeconfigError| Error::Kubeconfig {
            message: causes(&error),
            hint: None,
        })?;
        exec.cluster = Some(told);
    }
    Ok(())
}

fn find_context(kubeconfig: &Kubeconfig, flags: &Connection) -> Result<Context> {
    let Some(name) = flags.context.as_ref().or(current_context(kubeconfig)) else {
        // Everything that a context would name may have been named by flags.
        return if flags.server.is_some() || flags.cluster.is_some() {
            Ok(Context::default())
        } else {
            Err(Error::Kubeconfig {
                message: "the kubeconfig has no current context".into(),
                hint: Some("choose one with --context or 'kubectl config use-context NAME'".into()),
            })
        };
    };
    let found = kubeconfig.contexts.iter().find(|context| context.name == *name);
    found.and_then(|named| named.context.clone()).ok_or_else(|| {
        unknown("context", name, kubeconfig.contexts.iter().map(|context| context.name.as_str()))
    })
}

fn find_cluster(kubeconfig: &Kubeconfig, context: &Context, flags: &Connection) -> Result<Cluster> {
    let name = flags.cluster.as_deref().unwrap_or(&context.cluster);
    let found = kubeconfig.clusters.iter().find(|cluster| cluster.name == name);
    let mut cluster = match found.and_then(|named| named.cluster.clone()) {
        Some(cluster) => cluster,
        None if flags.server.is_some() && flags.cluster.is_none() => Cluster::default(),
        None => {
            return Err(unknown(
                "cluster",
                name,
                kubeconfig.clusters.iter().map(|cluster| cluster.name.as_str()),
            ));
        }
    };
    for text in [
        &mut cluster.certificate_authority,
        &mut cluster.certificate_authority_data,
        &mut cluster.tls_server_name,
        &mut cluster.proxy_url,
    ] {
        text.take_if(|text| text.is_empty());
    }
    if let Some(server) = &flags.server {
        cluster.server = Some(server.clone());
        // It was the name of another one.
        cluster.tls_server_name = None;
    }
    if flags.insecure_skip_tls_verify || flags.certificate_authority.is_some() {
        cluster.insecure_skip_tls_verify = Some(flags.insecure_skip_tls_verify);
        cluster.certificate_authority = flags.certificate_authority.as_deref().map(path_text).transpose()?;
        cluster.certificate_authority_data = None;
    }
    if let Some(name) = &flags.tls_server_name {
        cluster.tls_server_name = Some(name.clone());
    }
    check_cluster(name, &cluster)?;
    Ok(cluster)
}

/// What client-go refuses, and what would otherwise leave it open which of two counts.
fn check_cluster(name: &str, cluster: &Cluster) -> Result<()> {
    let (file, data) = (&cluster.certificate_authority, &cluster.certificate_authority_data);
    let why = if file.is_some() && data.is_some() {
        "both certificate-authority and certificate-authority-data"
    } else if cluster.insecure_skip_tls_verify == Some(true) && (file.is_some() || data.is_some()) {
        "both a certificate authority and insecure-skip-tls-verify"
    } else {
        return Ok(());
    };
    Err(Error::Kubeconfig { message: format!("cluster '{name}' has {why}"), hint: Some(REMOVE_ONE.into()) })
}

fn find_user(kubeconfig: &Kubeconfig, context: &Context, flags: &Connection) -> Result<AuthInfo> {
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

fn apply_user_flags(user: &mut AuthInfo, flags: &Connection) -> Result<()> {
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

const REMOVE_ONE: &str =
    "remove one of the two: 'kubectl config view' shows them, 'kubectl config unset' removes";

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

/// What client-go refuses, and what would otherwise leave it open who one is.
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

/// The certificate authority's certificates, each in DER.
fn certificate_authority(cluster: &Cluster) -> Result<Option<Vec<Vec<u8>>>> {
    let bad = |why: String| Error::Kubeconfig {
        message: format!("cannot read the certificate authority: {why}"),
        hint: None,
    };
    let data = cluster.certificate_authority_data.as_ref().filter(|data| !data.is_empty());
    let path = cluster.certificate_authority.as_ref().filter(|path| !path.is_empty());
    let text = match (data, path) {
        (Some(data), _) => BASE64_STANDARD
            .decode(data.replace(['\r', '\n'], "").trim())
            .map_err(|error| bad(error.to_string()))?,
        (None, Some(path)) => fs::read(path).map_err(|error| bad(format!("{path}: {error}")))?,
        (None, None) => return Ok(None),
    };
    let blocks = pem::parse_many(text).map_err(|error| bad(error.to_string()))?;
    let certificates: Vec<_> = blocks
        .into_iter()
        .filter(|block| block.tag() == "CERTIFICATE")
        .map(pem::Pem::into_contents)
        .collect();
    if certificates.is_empty() {
        return Err(bad("there is no certificate in it".into()));
    }
    Ok(Some(certificates))
}

/// A server's address, or what is wrong with it. `host:port` without a scheme means https; kubectl takes it
/// for http, and fails.
fn server_url(address: &str) -> Result<Uri, String> {
    let with_scheme = if address.contains("://") { address.to_owned() } else { format!("https://{address}") };
    let uri: Uri = with_scheme.parse().map_err(|_| "is not a URL")?;
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err("is not a URL".into());
    };
    if !matches!(scheme, "http" | "https") {
        return Err(format!("has the scheme '{scheme}': only https and http are supported"));
    }
    // The parser lets any digits pass for a port, and then says that there is none.
    let port = authority.as_str().rsplit('@').next().and_then(|rest| rest.strip_prefix(authority.host()));
    let port = port.and_then(|port| port.strip_prefix(':')).filter(|port| !port.is_empty());
    if authority.host().is_empty() || port.is_some() != authority.port_u16().is_some() {
        return Err("is not a URL: there is no such port".into());
    }
    Ok(uri)
}

fn path_text(path: &Path) -> Result<String> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| Error::usage(format!("the path {} is not UTF-8", path.display())))
}

fn unknown<'a>(kind: &str, name: &str, there: impl Iterator<Item = &'a str>) -> Error {
    let there: Vec<_> = there.collect();
    Error::Kubeconfig {
        message: format!("the kubeconfig has no {kind} '{name}'"),
        hint: Some(if there.is_empty() {
            format!("it has no {kind} at all; is it the right file?")
        } else {
            format!("it has {}", there.join(", "))
        }),
    }
}

fn nothing_configured() -> Error {
    let message = match std::env::var_os("KUBECONFIG").filter(|listed| !listed.is_empty()) {
        Some(listed) => {
            format!("no cluster is configured: KUBECONFIG is {}, which does not exist", listed.display())
        }
        None => "no cluster is configured".to_owned(),
    };
    Error::Kubeconfig {
        message,
        hint: Some("set KUBECONFIG or --kubeconfig to a kubeconfig file, or create ~/.kube/config".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_sent_by_http_to_this_machine_only() {
        for (server, overheard) in [
            ("https://api.example.com:6443", false),
            ("http://127.0.0.1:8001", false),
            ("http://[::1]:8001", false),
            ("http://localhost:8001", false),
            ("http://api.example.com:8080", true),
            ("http://192.0.2.7:8080", true),
        ] {
            assert_eq!(is_overheard(&server.parse().unwrap(), None), overheard, "{server}");
        }
        let (here, proxy) = ("http://127.0.0.1:8001".parse().unwrap(), |it: &str| it.parse::<Uri>().unwrap());
        assert!(is_overheard(&here, Some(&proxy("http://proxy.example.com:3128"))));
        assert!(!is_overheard(&here, Some(&proxy("socks5://127.0.0.1:1080"))));
        let user = AuthInfo {
            username: Some("jane".into()),
            token_file: Some("/token".into()),
            impersonate: Some("joe".into()),
            ..AuthInfo::default()
        };
        let sent = without_credentials(&user);
        assert_eq!((sent.username, sent.token_file), (None, None));
        assert_eq!(sent.impersonate.as_deref(), Some("joe"));
    }

    #[test]
    fn addresses_are_read_as_kubectl_reads_them_or_refused() {
        for (address, read) in [
            ("https://127.0.0.1:6443", Ok("https://127.0.0.1:6443/")),
            ("http://localhost", Ok("http://localhost/")),
            ("127.0.0.1:6443", Ok("https://127.0.0.1:6443/")),
            ("https://[::1]:6443", Ok("https://[::1]:6443/")),
            ("https://[::1]", Ok("https://[::1]/")),
            ("https://me:secret@host:1/prefix", Ok("https://me:secret@host:1/prefix")),
            ("https://host:65536", Err("no such port")),
            ("host:99999", Err("no such port")),
            ("https://me:secret@host:65536", Err("no such port")),
            ("", Err("not a URL")),
            ("https://", Err("not a URL")),
            ("a b", Err("not a URL")),
            ("ftp://host", Err("the scheme 'ftp'")),
            ("unix:///run/x", Err("not a URL")),
        ] {
            match (server_url(address), read) {
                (Ok(url), Ok(expected)) => assert_eq!(url.to_string(), expected, "{address}"),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{address}: {why}"),
                (other, _) => panic!("{address}: {other:?}"),
            }
        }
    }
}
