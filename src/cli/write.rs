//! What commands that write have in common.

use clap::Args;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DryRun {
    None,
    Client,
    Server,
}
