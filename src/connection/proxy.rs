//! Which proxy a connection goes through, decided as client-go decides it.
//!
//! kube 5 compares `NO_PROXY` with the proxy's address instead of the cluster's, so the decision is
//! made here: `proxy-url` of the kubeconfig always wins; otherwise the environment, which is not
//! asked for a server on this very machine.

use std::net::IpAddr;

use http::Uri;

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
    Ok((!is_excepted(server, &environment.none_for)).then_some(proxy))
}

/// Whether `NO_PROXY` names the server, by the rules of Go's httpproxy: `example.com` is that host and all below
/// it, `.example.com` and `*.example.com` are those below it alone, each with a port for that port alone;
/// addresses and networks; and `*`.
fn is_excepted(server: &Uri, none_for: &str) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']).to_lowercase();
    let port = server.port_u16().unwrap_or(if server.scheme_str() == Some("http") { 80 } else { 443 });
    let address: Option<IpAddr> = host.parse().ok();
    let entries = none_for.split(',').map(|entry| entry.trim().to_lowercase());
    entries.filter(|entry| !entry.is_empty()).any(|entry| {
        let network = entry.split_once('/').and_then(|(address, length)| {
            Some((address.parse::<IpAddr>().ok()?, length.parse::<u32>().ok()?))
        });
        if let Some((network, length)) = network {
            return address.is_some_and(|address| is_in(address, network, length));
        }
        let (name, of_port) = without_port(&entry);
        if of_port.is_some_and(|of_port| of_port != port) {
            return false;
        }
        if let Ok(named) = name.parse::<IpAddr>() {
            return address == Some(named);
        }
        let name = name.strip_prefix('*').unwrap_or(name);
        let below = if name.starts_with('.') { name.to_owned() } else { format!(".{name}") };
        name.is_empty() || host == name || host.ends_with(&below)
    })
}

fn without_port(entry: &str) -> (&str, Option<u16>) {
    let (name, port) = match entry.rsplit_once(':') {
        // The colons of an IPv6 address are its own, unless it is in brackets.
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, port.parse().ok()),
        _ => (entry, None),
    };
    (name.trim_matches(['[', ']']), port)
}

fn is_in(address: IpAddr, network: IpAddr, length: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) if length <= 32 => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            address.to_bits() & mask == network.to_bits() & mask
        }
        (IpAddr::V6(address), IpAddr::V6(network)) if length <= 128 => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            address.to_bits() & mask == network.to_bits() & mask
        }
        _ => false,
    }
}

/// Whether a server is on this machine.
pub(super) fn is_loopback(server: &Uri) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
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
            (CLUSTER, None, "http://p:3128", "other.com, API.example.com", None),
            (CLUSTER, None, "http://p:3128", "ample.com", Some("http://p:3128/")),
            (CLUSTER, None, "http://p:3128", "*.example.com", None),
            (CLUSTER, None, "http://p:3128", "*.api.example.com", Some("http://p:3128/")),
            (CLUSTER, None, "http://p:3128", ".api.example.com", Some("http://p:3128/")),
            (CLUSTER, None, "http://p:3128", "example.com:6443", None),
            (CLUSTER, None, "http://p:3128", "example.com:443", Some("http://p:3128/")),
            ("https://api.example.com", None, "http://p:3128", "example.com:443", None),
            ("https://192.0.2.7:6443", None, "http://p:3128", "192.0.2.7:6443", None),
            ("https://192.0.2.7:6443", None, "http://p:3128", "192.0.2.7:443", Some("http://p:3128/")),
            ("https://192.0.2.7:6443", None, "http://p:3128", "0.0.0.0/0", None),
            ("https://[2001:db8::7]:6443", None, "http://p:3128", "2001:db8::7", None),
            ("https://[2001:db8::7]:6443", None, "http://p:3128", "[2001:db8::7]:6443", None),
            ("https://[2001:db8::7]:6443", None, "http://p:3128", "2001:db8::/32", None),
            ("https://[2001:db9::7]:6443", None, "http://p:3128", "2001:db8::/32", Some("http://p:3128/")),
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
