//! What commands that write have in common.

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser as _},
};

use crate::output::Format;

/// How to write.
#[derive(Debug, Args)]
pub struct Write {
    /// Must be "none", "client", or "server". If client, only print what would be done, without sending it;
    /// this is the default if no value is given. If server, submit server-side requests without persisting
    /// anything.
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "client",
        default_value = "none", value_name = "STRATEGY", hide_possible_values = true)]
    pub dry_run: DryRun,

    /// Name of the manager used to track field ownership.
    #[arg(long, default_value = "kubectl-lease", value_name = "NAME")]
    pub field_manager: String,
}

/// Of commands that write again and again, which no manager of fields is chosen for.
#[derive(Debug, Args)]
pub struct Trial {
    /// Must be "none", "client", or "server". If client, only print what would be done, without sending it;
    /// this is the default if no value is given. If server, submit server-side requests without persisting
    /// anything.
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "client",
        default_value = "none", value_name = "STRATEGY", hide_possible_values = true)]
    pub dry_run: DryRun,
}

/// In which format what was done is printed.
#[derive(Debug, Args)]
pub struct Output {
    /// Output format. One of: (json, yaml, name).
    #[arg(short, long, value_name = "FORMAT", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(["json", "yaml", "name"]).map(format_of))]
    pub output: Option<Format>,
}

#[allow(clippy::needless_pass_by_value)]
fn format_of(name: String) -> Format {
    match name.as_str() {
        "yaml" => Format::Yaml,
        "name" => Format::Name,
        _ => Format::Json,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DryRun {
    None,
    Client,
    Server,
}
