//! From kubectl's connection flags and the kubeconfig to a client configuration.
//!
//! The precedence is client-go's: a flag beats the kubeconfig, and where there is no kubeconfig at
//! all the service account of the pod that this runs in is used.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::Uri;
use kube::{
    Config,
    config::{AuthInfo, Cluster, Context, Kubeconfig, KubeconfigError},
};

use super::{credential, proxy};
use crate::{
    cli::Connection,
    error::{Error, Result, causes},
};

/// Reads the configuration that the flags, the kubeconfig and the environment describe.
pub fn load(flags: &Connection) -> Result<Config> {
    let mut config = match read_kubeconfig(flags.kubeconfig.as_deref())? {
        Some(kubeconfig) => from_kubeconfig(&kubeconfig, flags)?,
        None => match Config::incluster() {
            Ok(config) => config,
            Err(_) if flags.server.is_some() => from_kubeconfig(&Kubeconfig::default(), flags)?,
            Err(_) => return Err(nothing_configured()),
        },
    };
    if let Some(namespace) = &flags.namespace {
        config.default_namespace.clone_from(namespace);
    }
    apply_user_flags(&mut config.auth_info, flags)?;
    Ok(config)
}

/// The kubeconfig, merged from all files that exist; `None` where there is none.
fn read_kubeconfig(flag: Option<&Path>) -> Result<Option<Kubeconfig>> {
    if let Some(path) = flag {
        return Kubeconfig::read_from(path).map(Some).map_err(|error| unusable(&error));
    }
    let listed = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let mut paths: Vec<PathBuf> =
        std::env::split_paths(&listed).filter(|path| !path.as_os_str().is_empty()).collect();
    if paths.is_empty() {
        paths.extend(std::env::home_dir().map(|home| home.join(".kube").join("config")));
    }
    let mut merged: Option<Kubeconfig> = None;
    for path in paths {
        match Kubeconfig::read_from(&path) {
            Ok(next) => {
                merged = Some(merged.unwrap_or_default().merge(next).map_err(|error| unusable(&error))?);
            }
            // As in client-go: a file that is listed but not there is no error.
            Err(KubeconfigError::ReadConfig(error, _)) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unusable(&error)),
        }
    }
    Ok(merged)
}

fn from_kubeconfig(kubeconfig: &Kubeconfig, flags: &Connection) -> Result<Config> {
    let context = find_context(kubeconfig, flags)?;
    let cluster = find_cluster(kubeconfig, &context, flags)?;
    let mut user = find_user(kubeconfig, &context, flags)?;
    if let Some(exec) = &mut user.exec {
        credential::tell_cluster(exec, &cluster)?;
    }

    let address = cluster.server.as_deref().unwrap_or_default();
    let server: Uri = address.parse().ok().filter(|uri: &Uri| uri.host().is_some()).ok_or_else(|| {
        let name = flags.cluster.as_deref().unwrap_or(&context.cluster);
        Error::Kubeconfig {
            message: format!("the server address '{address}' of cluster '{name}' is not a URL"),
            hint: Some("write it as https://host:port".into()),
        }
    })?;

    let mut config = Config::new(with_scheme(server)?);
    config.proxy_url =
        proxy::choose(&config.cluster_url, cluster.proxy_url.as_deref(), &proxy::Environment::read())?;
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

fn find_context(kubeconfig: &Kubeconfig, flags: &Connection) -> Result<Context> {
    let current = kubeconfig.current_context.as_ref().filter(|name| !name.is_empty());
    let Some(name) = flags.context.as_ref().or(current) else {
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
    if let Some(server) = &flags.server {
        cluster.server = Some(server.clone());
    }
    if let Some(path) = &flags.certificate_authority {
        cluster.certificate_authority = Some(path_text(path)?);
        cluster.certificate_authority_data = None;
    }
    if flags.insecure_skip_tls_verify {
        cluster.insecure_skip_tls_verify = Some(true);
    }
    if let Some(name) = &flags.tls_server_name {
        cluster.tls_server_name = Some(name.clone());
    }
    Ok(cluster)
}

fn find_user(kubeconfig: &Kubeconfig, context: &Context, flags: &Connection) -> Result<AuthInfo> {
    let name = flags.user.as_ref().or(context.user.as_ref());
    let found = kubeconfig.auth_infos.iter().find(|user| Some(&user.name) == name);
    match (found.and_then(|named| named.auth_info.clone()), &flags.user) {
        (Some(user), _) => Ok(user),
        (None, Some(name)) => {
            Err(unknown("user", name, kubeconfig.auth_infos.iter().map(|user| user.name.as_str())))
        }
        // As in client-go: a context without a user connects as nobody.
        (None, None) => Ok(AuthInfo::default()),
    }
}

fn apply_user_flags(user: &mut AuthInfo, flags: &Connection) -> Result<()> {
    if let Some(token) = &flags.token {
        user.token = Some(token.clone().into());
        (user.token_file, user.exec, user.auth_provider) = (None, None, None);
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
    } else if !flags.impersonate_groups.is_empty() || flags.impersonate_uid.is_some() {
        return Err(Error::usage("--as-group and --as-uid need --as: a user to act as"));
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

/// The certificate authority's certificates, each in DER.
fn certificate_authority(cluster: &Cluster) -> Result<Option<Vec<Vec<u8>>>> {
    let bad = |why: String| Error::Kubeconfig {
        message: format!("cannot read the certificate authority: {why}"),
        hint: None,
    };
    let data = cluster.certificate_authority_data.as_ref().filter(|data| !data.is_empty());
    let path = cluster.certificate_authority.as_ref().filter(|path| !path.is_empty());
    let text = match (data, path) {
        (Some(data), _) => BASE64_STANDARD.decode(data.trim()).map_err(|error| bad(error.to_string()))?,
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

/// `host:port` without a scheme means https, as for kubectl.
fn with_scheme(server: Uri) -> Result<Uri> {
    if server.scheme().is_some() {
        return Ok(server);
    }
    format!("https://{server}").parse().map_err(|error| Error::Kubeconfig {
        message: format!("the server address '{server}' is not a URL: {error}"),
        hint: None,
    })
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

fn unusable(error: &KubeconfigError) -> Error {
    let message = match error {
        KubeconfigError::ReadConfig(cause, path) => {
            format!("cannot read the kubeconfig {}: {cause}", path.display())
        }
        // The parser's report quotes the file, which may hold secrets: the first line says what and where.
        KubeconfigError::Parse(cause) => {
            let cause = cause.to_string();
            format!("cannot read the kubeconfig: {}", cause.lines().next().unwrap_or_default())
        }
        _ => causes(error),
    };
    Error::Kubeconfig { message, hint: None }
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
