//! Which proxy a connection goes through, decided as client-go decides it.
//!
//! kube 5 compares `NO_PROXY` with the proxy's address instead of the cluster's, so the decision is
//! made here: `proxy-url` of the kubeconfig always wins; otherwise the environment, which is not
//! asked for a server on this very machine.

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;

use crate::error::{Error, Result};

/// The environment's say.
#[derive(Clone, Debug, Default)]
pub(super) struct Environment {
    pub https: String,
    pub http: String,
    pub none_for: String,
}

impl Environment {
    pub(super) fn read() -> Self {
        let either = |upper: &str, lower: &str| {
            let value = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
            value(upper).or_else(|| value(lower)).unwrap_or_default()
        };
        Self {
            https: either("HTTPS_PROXY", "https_proxy"),
            http: either("HTTP_PROXY", "http_proxy"),
            none_for: either("NO_PROXY", "no_proxy"),
        }
    }
}

/// The proxy for `server`, or `None` for a direct connection.
pub(super) fn choose(
    server: &Uri,
    configured: Option<&str>,
    environment: &Environment,
) -> Result<Option<Uri>> {
    if let Some(proxy) = configured.filter(|proxy| !proxy.is_empty()) {
        return parse(proxy, "the proxy-url").map(Some);
    }
    let (proxy, name) = match server.scheme_str() {
        Some("http") => (&environment.http, "HTTP_PROXY"),
        _ => (&environment.https, "HTTPS_PROXY"),
    };
    if proxy.is_empty() || is_loopback(server) {
        return Ok(None);
    }
    let proxy = parse(proxy, name)?;
    // The matcher is only asked whether; the address is ours, which keeps user and password.
    let asked = Matcher::builder().all("http://proxy.invalid").no(environment.none_for.clone()).build();
    Ok(asked.intercept(server).map(|_| proxy))
}

/// Whether a server is on this machine.
pub(super) fn is_loopback(server: &Uri) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

fn parse(proxy: &str, name: &str) -> Result<Uri> {
    let with_scheme = if proxy.contains("://") { proxy.to_owned() } else { format!("http://{proxy}") };
    let uri = with_scheme.parse::<Uri>().ok().filter(|uri| uri.host().is_some());
    // The value may hold a password: it is not quoted.
    uri.ok_or_else(|| Error::Kubeconfig {
        message: format!("{name} is not the address of a proxy"),
        hint: Some("write it as http://host:port, https://host:port or socks5://host:port".into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(server: &str, configured: Option<&str>, https: &str, no: &str) -> Option<String> {
        let environment = Environment { https: https.into(), none_for: no.into(), ..Default::default() };
        choose(&server.parse().unwrap(), configured, &environment).unwrap().map(|uri| uri.to_string())
    }

    #[test]
    fn proxies_are_chosen_as_client_go_does() {
        const CLUSTER: &str = "https://api.example.com:6443";
        for (server, configured, https, no, proxy) in [
            (CLUSTER, None, "", "", None),
            (CLUSTER, None, "http://p:3128", "", Some("http://p:3128/")),
            (CLUSTER, None, "p:3128", "", Some("http://p:3128/")),
            (CLUSTER, None, "socks5://p:1080", "", Some("socks5://p:1080/")),
            (CLUSTER, None, "http://me:secret@p:3128", "", Some("http://me:secret@p:3128/")),
            // NO_PROXY names clusters, not proxies.
            (CLUSTER, None, "http://p:3128", "p", Some("http://p:3128/")),
            (CLUSTER, None, "http://p:3128", "api.example.com", None),
            (CLUSTER, None, "http://p:3128", "example.com", None),
            (CLUSTER, None, "http://p:3128", ".example.com", None),
            (CLUSTER, None, "http://p:3128", "other.com", Some("http://p:3128/")),
            (CLUSTER, None, "http://p:3128", "*", None),
            ("https://192.0.2.7:6443", None, "http://p:3128", "192.0.2.0/24", None),
            ("https://192.0.3.7:6443", None, "http://p:3128", "192.0.2.0/24", Some("http://p:3128/")),
            // This machine is never behind a proxy, unless the kubeconfig says so.
            ("https://127.0.0.1:6443", None, "http://p:3128", "", None),
            ("https://localhost:6443", None, "http://p:3128", "", None),
            ("https://[::1]:6443", None, "http://p:3128", "", None),
            ("https://127.0.0.1:6443", Some("http://c:1"), "", "*", Some("http://c:1/")),
            (CLUSTER, Some("http://c:1"), "http://p:3128", "example.com", Some("http://c:1/")),
            ("http://api.example.com", None, "http://p:3128", "", None),
        ] {
            assert_eq!(
                chosen(server, configured, https, no).as_deref(),
                proxy,
                "{server} {configured:?} HTTPS_PROXY={https} NO_PROXY={no}"
            );
        }
    }

    #[test]
    fn a_bad_proxy_is_refused_without_quoting_its_password() {
        let environment = Environment { https: "http://me:secret@".into(), ..Default::default() };
        let error = choose(&"https://x".parse().unwrap(), None, &environment).unwrap_err();
        assert!(error.to_string().contains("HTTPS_PROXY"));
        assert!(!error.to_string().contains("secret"));
    }
}
