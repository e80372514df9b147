//! Which cluster, and as which user: the global options, which are kubectl's own.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueHint};

use super::{
    flags::BooleanFlag as _,
    values::{duration, file},
};

/// The global options.
#[derive(Clone, Debug, Default, Args)]
pub struct Connection {
    /// Path to the kubeconfig file to use for CLI requests.
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = file())]
    pub kubeconfig: Option<PathBuf>,

    /// The name of the kubeconfig context to use.
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,

    /// The name of the kubeconfig cluster to use.
    #[arg(long, global = true, value_name = "NAME")]
    pub cluster: Option<String>,

    /// The name of the kubeconfig user to use.
    #[arg(long, global = true, value_name = "NAME")]
    pub user: Option<String>,

    /// If present, the namespace scope for this CLI request.
    #[arg(short, long, global = true, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// The length of time to wait before giving up on a single server request, such as 500ms, 30s or 2m. A
    /// value of zero means don't timeout requests.
    #[arg(long, global = true, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub request_timeout: Duration,

    /// Username to impersonate for the operation. User could be a regular user or a service account in a
    /// namespace.
    #[arg(long = "as", global = true, value_name = "USER")]
    pub impersonate: Option<String>,

    /// Group to impersonate for the operation, this flag can be repeated to specify multiple groups.
    #[arg(long = "as-group", global = true, value_name = "GROUP")]
    pub impersonate_groups: Vec<String>,

    /// UID to impersonate for the operation.
    #[arg(long = "as-uid", global = true, value_name = "UID")]
    pub impersonate_uid: Option<String>,

    /// User extras to impersonate for the operation, as KEY=VALUE. This flag can be repeated to specify
    /// multiple values for the same key.
    #[arg(long = "as-user-extra", global = true, value_name = "KEY=VALUE")]
    pub impersonate_extra: Vec<String>,

    /// The address and port of the Kubernetes API server.
    #[arg(short, long, global = true, value_name = "URL")]
    pub server: Option<String>,

    /// Bearer token for authentication to the API server.
    #[arg(long, global = true, value_name = "TOKEN")]
    pub token: Option<String>,

    /// Username for basic authentication to the API server.
    #[arg(long, global = true, value_name = "NAME")]
    pub username: Option<String>,

    /// Password for basic authentication to the API server.
    #[arg(long, global = true, value_name = "PASSWORD")]
    pub password: Option<String>,

    /// Path to a cert file for the certificate authority.
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = file())]
    pub certificate_authority: Option<PathBuf>,

    /// Path to a client certificate file for TLS.
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = file())]
    pub client_certificate: Option<PathBuf>,

    /// Path to a client key file for TLS.
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = file())]
    pub client_key: Option<PathBuf>,

    /// If true, the server's certificate will not be checked for validity. This will make your HTTPS
    /// connections insecure.
    #[arg(long, global = true, boolean())]
    pub insecure_skip_tls_verify: bool,

    /// Server name to use for server certificate validation. If it is not provided, the hostname used to
    /// contact the server is used.
    #[arg(long, global = true, value_name = "NAME")]
    pub tls_server_name: Option<String>,

    /// URL of the proxy to use for requests to the server.
    #[arg(long, global = true, value_name = "URL")]
    pub proxy_url: Option<String>,

    /// If true, opt-out of response compression for all requests to the server.
    #[arg(long, global = true, boolean())]
    pub disable_compression: bool,
}

impl Connection {
    /// The flags that were typed for the cluster and the user, to be typed again; no secrets.
    pub fn typed(&self) -> String {
        let kubeconfig = self.kubeconfig.as_ref().map(|file| file.display().to_string());
        let named = [
            ("kubeconfig", &kubeconfig),
            ("context", &self.context),
            ("cluster", &self.cluster),
            ("user", &self.user),
            ("server", &self.server),
            ("as", &self.impersonate),
            ("as-uid", &self.impersonate_uid),
        ];
        let groups = self.impersonate_groups.iter().map(|group| ("as-group", group));
        let extra = self.impersonate_extra.iter().map(|extra| ("as-user-extra", extra));
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@=".contains(c);
        let quoted = |value: &str| {
            if value.chars().all(plain) {
                value.to_owned()
            } else {
                format!("'{}'", value.replace('\'', r"'\''"))
            }
        };
        let named = named.into_iter().filter_map(|(flag, value)| Some((flag, value.as_ref()?)));
        let named = named.chain(groups).chain(extra);
        named.map(|(flag, value)| format!("--{flag}={}", quoted(value))).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        connection: Connection,
    }

    #[test]
    fn what_was_typed_to_reach_a_cluster_can_be_typed_again() {
        let typed = |words: &str| {
            let words = std::iter::once("kubectl-lease").chain(words.split('|'));
            Typed::try_parse_from(words).unwrap().connection.typed()
        };
        assert_eq!(Connection::default().typed(), "");
        for (words, again) in [
            ("--context|prod", "--context=prod"),
            ("--context=two words|-n=x", "--context='two words'"),
            ("--user=it's", r"--user='it'\''s'"),
            (
                "--kubeconfig=/a/b|--as=jane@x|--as-group=a|--as-group=b",
                "--kubeconfig=/a/b --as=jane@x --as-group=a --as-group=b",
            ),
            (
                "--as=jane|--as-uid=5e1f|--as-user-extra=team=a|--as-user-extra=team=b",
                "--as=jane --as-uid=5e1f --as-user-extra=team=a --as-user-extra=team=b",
            ),
            ("--token=secret|--server=https://a:6443", "--server=https://a:6443"),
        ] {
            assert_eq!(typed(words), again);
        }
    }
}
