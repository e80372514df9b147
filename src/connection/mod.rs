//! From kubectl's connection flags and the kubeconfig to a client configuration.
//!
//! The precedence is client-go's: a flag beats the kubeconfig, and where there is no kubeconfig, or no
//! context is chosen in it, the service account of the pod that this runs in is used.

mod cluster;
mod kubeconfig;
mod proxy;
mod user;

use std::{
    ops::Deref,
    path::{Path, PathBuf},
};

use http::Uri;
use kube::{
    Config,
    config::{AuthInfo, Context, Kubeconfig},
};

use crate::{
    cli::Connection,
    error::{Error, Result, causes},
};
use kube_leases::client::{Cluster, without_userinfo};
use kube_leases::rules::lease::is_object_name;

/// A cluster, and the flags that were typed to reach it.
pub struct Reached {
    cluster: Cluster,
    flags: String,
}

impl Reached {
    pub fn new(cluster: Cluster, flags: &Connection) -> Self {
        Self { cluster, flags: flags.typed() }
    }

    /// For commands that are printed to be pasted.
    pub fn flags(&self) -> &str {
        &self.flags
    }
}

impl Deref for Reached {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

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
    user::complete(user, flags)?;
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
        oddities.push(
            "the server's certificate is not checked: another server can answer in its place".to_owned(),
        );
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
    let cluster = cluster::find(kubeconfig, &context, flags)?;
    let mut user = user::find(kubeconfig, &context, flags)?;
    if let Some(exec) = &mut user.exec {
        cluster::tell_cluster(exec, &cluster)?;
    }

    let address = cluster.server.as_deref().unwrap_or_default();
    let server = cluster::server_url(address).map_err(|why| {
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
    config.root_cert = cluster::certificate_authority(&cluster)?.filter(|_| !config.accept_invalid_certs);
    config.tls_server_name = cluster.tls_server_name;
    if let Some(namespace) = context.namespace.filter(|namespace| !namespace.is_empty()) {
        config.default_namespace = namespace;
    }
    config.auth_info = user;
    Ok(config)
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

const REMOVE_ONE: &str =
    "remove one of the two: 'kubectl config view' shows them, 'kubectl config unset' removes";

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
}
