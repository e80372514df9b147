//! `kubectl lease fence`.

use clap::Args;

use super::{
    flags::BooleanFlag as _,
    identity::Identity,
    taking::Taking,
    values::{node_name, reason},
    wait::{Wait, WaitFlag as _},
    write::Write,
};

const EXAMPLES: &str = "\
Examples:
  # Mark node-7 out of service after its machine was powered off
  kubectl lease fence node-7 --reason 'power supply failed'

  # Also wait up to 2 minutes until its pods are deleted
  kubectl lease fence node-7 --wait=2m

  # Put the node back into service after the repair
  kubectl lease fence node-7 --undo";

/// Mark a node out of service after its machine was powered off
///
/// Adds the taint node.kubernetes.io/out-of-service to the node: pods that do not tolerate it are deleted,
/// within 30 seconds by pod GC, and their volumes are detached immediately, without contacting the machine.
/// Make sure that the machine is off, or cut off from all storage and networks that it shares, and stays
/// so. Refused while the kubelet sends heartbeats. Has to be confirmed by typing a sentence, or with
/// --confirm if there is no terminal. The maintenance lease of the node is held meanwhile.
#[allow(clippy::struct_excessive_bools)] // flags
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Fence {
    /// Name of the node.
    #[arg(value_parser = node_name)]
    pub node: String,

    /// Remove the taint, to put the node back into service.
    #[arg(long, boolean())]
    pub undo: bool,

    /// Skip confirmation: the machine is off. Required if there is no terminal to ask on.
    #[arg(long, alias = "yes", short_alias = 'y', boolean())]
    pub confirm: bool,

    /// With --confirm, continue even if pods on the node are at critical risk or volumes are attached: the
    /// machine is off, or cut off from all storage and networks that it shares.
    #[arg(long, requires = "confirm", boolean())]
    pub i_have_fenced: bool,

    /// Reason to record in the lease and in the Event.
    #[arg(short, long, value_name = "TEXT", value_parser = reason)]
    pub reason: Option<String>,

    /// Wait until the pods on the node are deleted. Use --wait=DURATION to give up after that time.
    #[arg(long, wait())]
    pub wait: Wait,

    #[command(flatten)]
    pub identity: Identity,

    #[command(flatten)]
    pub taking: Taking,

    #[command(flatten)]
    pub write: Write,
}
