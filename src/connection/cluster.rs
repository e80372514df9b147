//! The cluster of the kubeconfig, with what the flags change: its address and certificate authority.

use std::fs;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::Uri;
use kube::config::{Cluster, Context, ExecConfig, Kubeconfig};

use super::{REMOVE_ONE, path_text, unknown};
use crate::{
    cli::Connection,
    error::{Error, Result, causes},
};

/// The kubeconfig's cluster, as a plugin that wants to know it is told.
pub(super) fn tell_cluster(exec: &mut ExecConfig, cluster: &Cluster) -> Result<()> {
    if exec.provide_cluster_info {
        let told = cluster.try_into().map_err(|error: kube::config::KubeconfigError| Error::Kubeconfig {
            message: causes(&error),
            hint: None,
        })?;
        exec.cluster = Some(told);
    }
    Ok(())
}

pub(super) fn find(kubeconfig: &Kubeconfig, context: &Context, flags: &Connection) -> Result<Cluster> {
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
    check(name, &cluster)?;
    Ok(cluster)
}

/// What client-go refuses, and what would otherwise leave it open which of two counts.
fn check(name: &str, cluster: &Cluster) -> Result<()> {
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

/// The certificate authority's certificates, each in DER.
pub(super) fn certificate_authority(cluster: &Cluster) -> Result<Option<Vec<Vec<u8>>>> {
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
pub(super) fn server_url(address: &str) -> Result<Uri, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
