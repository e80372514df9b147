//! On which nodes a command works.

use clap::Args;

use super::{
    flags::BooleanFlag as _,
    values::{labels, node_name},
};

/// Nodes, by name, by label or all of them.
#[derive(Debug, Args)]
#[group(id = "which-nodes")]
pub struct Nodes {
    /// Names of nodes, also as node/NAME, or several with commas between them.
    #[arg(id = "nodes", value_name = "NODE", conflicts_with_all = ["selector", "all"], value_parser = node_name,
        value_delimiter = ',')]
    named: Vec<String>,

    /// Selector (label query) to select nodes by, supports '=', '==', and '!=' (e.g. -l
    /// key1=value1,key2=value2).
    #[arg(short = 'l', long, value_name = "LABELS", value_parser = labels)]
    pub selector: Option<String>,

    /// Select all nodes in the cluster.
    #[arg(long, conflicts_with = "selector", boolean())]
    pub all: bool,
}

impl Nodes {
    /// The names; the word 'node' before them is the kind, as for kubectl.
    pub fn names(&self) -> &[String] {
        match self.named.split_first() {
            Some((first, others)) if !others.is_empty() && ["node", "nodes"].contains(&first.as_str()) => {
                others
            }
            _ => &self.named,
        }
    }

    /// Whether each was named, rather than selected.
    pub fn are_named(&self) -> bool {
        !self.named.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        nodes: Nodes,
    }

    #[test]
    fn nodes_are_named_as_for_kubectl() {
        for (line, names) in [
            ("x a", &["a"][..]),
            ("x node/a nodes/b", &["a", "b"]),
            ("x a,b c", &["a", "b", "c"]),
            ("x node/a,node/b", &["a", "b"]),
            ("x node a", &["a"]),
            ("x nodes a b", &["a", "b"]),
            // A node may be called so.
            ("x node", &["node"]),
            ("x node node", &["node"]),
        ] {
            assert_eq!(Typed::try_parse_from(line.split(' ')).unwrap().nodes.names(), names, "{line}");
        }
        for line in ["x pod/a", "x a,", "x a,,b", "x a -l b=c"] {
            assert_eq!(Typed::try_parse_from(line.split(' ')).err().unwrap().exit_code(), 2, "{line}");
        }
    }
}
