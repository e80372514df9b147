//! What lists have in common.

use clap::{Args, ValueEnum, builder::PossibleValue};

use super::flags::BooleanFlag as _;
use crate::output::Format;

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Table, Self::Wide, Self::Json, Self::Yaml, Self::Name]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let name = match self {
            Self::Table => "table",
            Self::Wide => "wide",
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Name => "name",
        };
        Some(PossibleValue::new(name))
    }
}

/// How a list is asked for and shown.
#[derive(Debug, Args)]
pub struct Listing {
    /// Output format. One of: (table, wide, json, yaml, name).
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT", hide_possible_values = true)]
    pub output: Format,

    /// After listing the requested objects, watch for changes.
    #[arg(short, long, boolean())]
    pub watch: bool,

    /// When using the table or wide output format, don't print headers.
    #[arg(long, boolean())]
    pub no_headers: bool,

    /// Selector (label query) to filter on, supports '=', '==', and '!=' (e.g. -l key1=value1,key2=value2).
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub selector: Option<String>,

    /// Selector (field query) to filter on, supports '=', '==', and '!=' (e.g. --field-selector metadata.name=x).
    #[arg(long, value_name = "FIELDS")]
    pub field_selector: Option<String>,
}

/// In which namespaces to look.
#[derive(Debug, Args)]
pub struct Scope {
    /// List the requested objects across all namespaces, even if one is given with --namespace. This is the
    /// default without --namespace.
    #[arg(short = 'A', long, boolean())]
    pub all_namespaces: bool,
}
