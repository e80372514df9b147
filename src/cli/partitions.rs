//! `kubectl lease partitions`.

use clap::Args;

use super::{flags::BooleanFlag as _, listing::Listing, values::node_name};

const EXAMPLES: &str = "\
Examples:
  # List nodes without heartbeats and the pods stranded on them
  kubectl lease partitions

  # Show one node with its conditions, taints and maintenance lease
  kubectl lease partitions node-7 -o wide

  # Watch an outage
  kubectl lease partitions -w

  # In a script, check that no node is partitioned
  kubectl lease partitions --exit-code >/dev/null || echo 'a node is partitioned'";

/// List nodes without heartbeats and the pods stranded on them
///
/// STATE follows from the heartbeat of the node (its lease in kube-node-lease, renewed every 10 seconds),
/// its conditions and its taints:
///
///   late      no heartbeat for over 40 seconds, but Ready is not Unknown yet
///   silent    Ready is Unknown: what runs on the node is unknown
///   notready  the kubelet sends heartbeats but Ready is False, for example because the runtime hangs
///   fenced    silent, and marked out of service since then (taint node.kubernetes.io/out-of-service)
///   back      marked out of service, but sends heartbeats again: remove the taint
///   gone      has pods, but no node object; its machine may still be running
///
/// The status of a pod on a node that is down is NodeDown. RISK is the risk of force-deleting the pod, as
/// 'force-delete' assesses it. With -n, the pods are those of that namespace. If there are no partitions,
/// one line says so.
///
/// A controller that was scaled to 0 or suspended by a command that 'force-delete' printed, and was not
/// restored, is reported on stderr with the command that restores it and what to check before; with -o
/// json, as 'stopped'. Not with a node, a selector or -n.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, alias = "partition", verbatim_doc_comment)]
pub struct Partitions {
    /// Name of a node.
    #[arg(value_parser = node_name)]
    pub node: Option<String>,

    /// Exit with code 4 if there are partitions.
    #[arg(long, conflicts_with = "watch", boolean())]
    pub exit_code: bool,

    #[command(flatten)]
    pub listing: Listing,
}
