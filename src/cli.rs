//! What can be typed: clap types only.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};

use crate::{domain::duration, output::Format};

const EXAMPLES: &str = "\
Examples:
  # Which control-plane members are alive?
  kubectl lease apiservers

  # Follow them through an upgrade
  kubectl lease apiservers --watch";

/// Leases for cluster operators: which control-plane members are alive.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-lease",
    bin_name = "kubectl lease",
    version,
    after_help = EXAMPLES,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub struct Cli {
    #[command(flatten)]
    pub connection: Connection,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Apiservers(Apiservers),
}

const APISERVERS_EXAMPLES: &str = "\
Examples:
  # Every kube-apiserver, by host name
  kubectl lease apiservers

  # One of them, by host name or identity
  kubectl lease apiservers cp-1

  # Follow joins, deaths and restarts
  kubectl lease apiservers -w

  # The host names of those that are not alive
  kubectl lease apiservers -o json | jq -r '.items[] | select(.state != \"alive\") | .hostname'";

/// List the kube-apiservers and whether they are alive
///
/// Every kube-apiserver keeps an identity lease in kube-system and renews it every 10 seconds. The
/// state follows from the last renewal, by the server's clock:
///
///   alive     renewed within 30 seconds
///   late      three renewals missed: restarting, overloaded or just killed
///   silent    not renewed for over a minute: take it for down
///   expired   silent for longer than the lease's duration (an hour), about to be collected
///
/// An apiserver that was shut down in order deletes its lease and is not listed.
#[derive(Debug, Args)]
#[command(visible_alias = "apiserver", after_help = APISERVERS_EXAMPLES, verbatim_doc_comment)]
pub struct Apiservers {
    /// Show only this one, by host name, identity or lease name
    pub name: Option<String>,

    #[command(flatten)]
    pub listing: Listing,
}

/// How a list is asked for and shown.
#[derive(Debug, Args)]
pub struct Listing {
    /// Output format
    #[arg(short, long, value_enum, default_value_t, hide_default_value = true, value_name = "FORMAT")]
    pub output: Format,

    /// Keep watching, and show what changes
    #[arg(short, long)]
    pub watch: bool,

    /// Leave out the line of headers
    #[arg(long)]
    pub no_headers: bool,

    /// Only leases with these labels, such as key=value,other!=value
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub selector: Option<String>,

    /// Only leases with these fields, such as metadata.name=x
    #[arg(long, value_name = "FIELDS")]
    pub field_selector: Option<String>,
}

const CONNECTION: &str = "Connection, as for kubectl";

/// Which cluster, as whom: kubectl's own flags.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = CONNECTION)]
pub struct Connection {
    /// The kubeconfig file
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// The kubeconfig context to use
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,

    /// The kubeconfig cluster to use
    #[arg(long, global = true, value_name = "NAME")]
    pub cluster: Option<String>,

    /// The kubeconfig user to use
    #[arg(long, global = true, value_name = "NAME")]
    pub user: Option<String>,

    /// The namespace, for commands that work in one
    #[arg(short, long, global = true, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// Give up on a single request after this long; 0 never does
    #[arg(long, global = true, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    pub request_timeout: Duration,

    /// Act as this user
    #[arg(long = "as", global = true, value_name = "USER")]
    pub impersonate: Option<String>,

    /// Act as a member of this group; may be repeated
    #[arg(long = "as-group", global = true, value_name = "GROUP")]
    pub impersonate_groups: Vec<String>,

    /// Act as the user with this uid
    #[arg(long = "as-uid", global = true, value_name = "UID", hide_short_help = true)]
    pub impersonate_uid: Option<String>,

    /// Act with this extra user information, KEY=VALUE; may be repeated
    #[arg(long = "as-user-extra", global = true, value_name = "KEY=VALUE", hide_short_help = true)]
    pub impersonate_extra: Vec<String>,

    /// The address of the API server
    #[arg(short, long, global = true, value_name = "URL", hide_short_help = true)]
    pub server: Option<String>,

    /// A bearer token to authenticate with
    #[arg(long, global = true, value_name = "TOKEN", hide_short_help = true)]
    pub token: Option<String>,

    /// A file with the certificate authority's certificates
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub certificate_authority: Option<PathBuf>,

    /// A file with the client certificate
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub client_certificate: Option<PathBuf>,

    /// A file with the client certificate's key
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub client_key: Option<PathBuf>,

    /// Do not check the server's certificate: anybody can answer in its place
    #[arg(long, global = true, hide_short_help = true)]
    pub insecure_skip_tls_verify: bool,

    /// The name that the server's certificate must have
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub tls_server_name: Option<String>,

    /// Ask for uncompressed answers
    #[arg(long, global = true, hide_short_help = true)]
    pub disable_compression: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
