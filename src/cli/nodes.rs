//! On which nodes a command works.

use clap::Args;

use super::{
    flags::BooleanFlag as _,
    values::{labels, object_name},
};

/// Nodes, by name, by label or all of them.
#[derive(Debug, Args)]
#[group(id = "which-nodes")]
pub struct Nodes {
    /// Names of nodes.
    #[arg(value_name = "NODE", conflicts_with_all = ["selector", "all"], value_parser = object_name)]
    pub nodes: Vec<String>,

    /// Selector (label query) to select nodes by, supports '=', '==', and '!=' (e.g. -l
    /// key1=value1,key2=value2).
    #[arg(short = 'l', long, value_name = "LABELS", value_parser = labels)]
    pub selector: Option<String>,

    /// Select all nodes in the cluster.
    #[arg(long, conflicts_with = "selector", boolean())]
    pub all: bool,
}

impl Nodes {
    /// Whether each was named, rather than selected.
    pub fn are_named(&self) -> bool {
        !self.nodes.is_empty()
    }
}
