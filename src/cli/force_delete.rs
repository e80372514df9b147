//! `kubectl lease force-delete`.

use std::collections::BTreeSet;

use clap::Args;

use super::{
    flags::BooleanFlag as _,
    values::{labels, node_name, object_name, reason},
    wait::{Wait, WaitFlag as _},
    write::{Output, Write},
};
use crate::error::{Error, Result};

const EXAMPLES: &str = "\
Examples:
  # Show the risk of force-deleting a pod, and safer alternatives, without deleting it
  kubectl lease force-delete pod db-0 -n shop --dry-run

  # Show the risk, ask for confirmation, and force-delete the pod
  kubectl lease force-delete pod db-0 -n shop --reason 'node-7 was destroyed'

  # Use the safest alternative: evict the pod, delete it with its grace period, or wait for pod GC
  kubectl lease force-delete pod db-0 -n shop --safe

  # Force-delete all pods that are stranded on a node
  kubectl lease force-delete --node node-7

  # For a script, print the risk of each pod of a node, the reasons and what it takes, without deleting any
  kubectl lease force-delete --node node-7 --dry-run -o json

  # In a script, after the machine was fenced
  kubectl lease force-delete pod db-0 -n shop --confirm --i-have-fenced";

/// Force-delete pods after an assessment of the risk
///
/// Force deletion removes the pod object without waiting for the containers, which may still be running
/// beside those that replace them. Therefore the node's heartbeat and the pod's owner, volumes,
/// leader-election leases and disruption budgets are read first, and the risk (from none to critical), the
/// reasons and safer alternatives are shown. What you have no permission to read counts as a risk.
///
/// On a terminal, asks for confirmation: y, the name of the pod at a high risk, a sentence at a critical
/// risk. Otherwise --confirm is required, and at a critical risk also --i-have-fenced. A pod that changed
/// after it was shown, or whose node sent a heartbeat since, is not deleted (exit code 5).
///
/// Without a name, on a terminal, offers the stranded and stuck pods of the cluster, or with -n of that
/// namespace, for selection.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES,
    override_usage = "kubectl lease force-delete ([pod] NAME... | -l label | --node=NODE) [options]")]
pub struct ForceDelete {
    /// Pods, as NAME or pod/NAME in the namespace of -n or of the context, or as NAMESPACE/NAME.
    #[arg(value_name = "POD", value_parser = pod_word)]
    pods: Vec<PodWord>,

    /// Selector (label query) to select pods of the namespace by, supports '=', '==', and '!=' (e.g. -l
    /// key1=value1,key2=value2).
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "node", value_parser = labels)]
    pub selector: Option<String>,

    /// Select all pods that are stranded or stuck on this node, in all namespaces, or with -n in that one.
    #[arg(long, value_name = "NODE", value_parser = node_name)]
    pub node: Option<String>,

    /// Use the safest alternative to force, and wait until it takes effect: evict the pod, delete it with its
    /// grace period, or wait for pod GC.
    #[arg(long, boolean())]
    pub safe: bool,

    #[command(flatten)]
    pub consent: Consent,

    /// Reason to record in the Event.
    #[arg(short, long, value_name = "TEXT", value_parser = reason)]
    pub reason: Option<String>,

    /// Wait until the pod is gone and its replacement is ready. Use --wait=DURATION to give up after that
    /// time.
    #[arg(long, wait())]
    pub wait: Wait,

    #[command(flatten)]
    pub output: Output,

    #[command(flatten)]
    pub write: Write,
}

/// What the user agrees to.
#[derive(Debug, Args)]
pub struct Consent {
    /// Skip confirmation. Required if there is no terminal to ask on.
    #[arg(long, alias = "yes", short_alias = 'y', boolean())]
    pub confirm: bool,

    /// With --confirm, continue even at a critical risk: the machine is off, or cut off from all storage and
    /// networks that it shares.
    #[arg(long, requires = "confirm", boolean())]
    pub i_have_fenced: bool,

    /// Continue even if force has no effect (finalizers keep the object, or it is a mirror pod), if a
    /// disruption budget allows no disruptions, or, with several pods, if their disruption budgets cannot be
    /// read.
    #[arg(long, boolean())]
    pub anyway: bool,
}

impl ForceDelete {
    /// The namespaces, where they are given, and names of the pods; the word 'pod' before them is the kind, as for
    /// kubectl.
    pub fn names(&self) -> BTreeSet<(Option<&str>, &str)> {
        let named = |(n, word): (usize, &'_ PodWord)| n > 0 || !word.is_kind;
        let words = self.pods.iter().enumerate().filter(|of| named(*of));
        words.map(|(_, word)| (word.namespace.as_deref(), word.name.as_str())).collect()
    }

    /// What clap cannot tell, for which the kind is a name like any other.
    pub fn check(&self) -> Result<()> {
        let other = match (&self.selector, &self.node) {
            (Some(_), _) => "-l",
            (_, Some(_)) => "--node",
            _ => return Ok(()),
        };
        if self.names().is_empty() {
            return Ok(());
        }
        Err(Error::usage(format!("names of pods cannot be used with {other}")))
    }
}

/// A pod's name, or the word for its kind, which is a name too.
#[derive(Clone, Debug)]
struct PodWord {
    namespace: Option<String>,
    name: String,
    is_kind: bool,
}

fn pod_word(word: &str) -> std::result::Result<PodWord, String> {
    const KINDS: [&str; 3] = ["pod", "pods", "po"];
    let Some((before, name)) = word.split_once('/') else {
        return Ok(PodWord { namespace: None, name: object_name(word)?, is_kind: KINDS.contains(&word) });
    };
    if name.contains('/') {
        return Err("must be NAME, pod/NAME or NAMESPACE/NAME".into());
    }
    if OTHER_KINDS.contains(&before) {
        return Err(format!("only pods can be force-deleted, not '{before}'; use -n for the namespace"));
    }
    // As they are printed.
    let namespace = if KINDS.contains(&before) { None } else { Some(object_name(before)?) };
    Ok(PodWord { namespace, name: object_name(name)?, is_kind: false })
}

/// What a person may have meant before the slash, rather than a namespace of that name.
const OTHER_KINDS: [&str; 35] = [
    "deployment",
    "deployments",
    "deploy",
    "deployment.apps",
    "statefulset",
    "statefulsets",
    "sts",
    "statefulset.apps",
    "daemonset",
    "daemonsets",
    "ds",
    "daemonset.apps",
    "replicaset",
    "replicasets",
    "rs",
    "replicaset.apps",
    "job",
    "jobs",
    "job.batch",
    "cronjob",
    "cronjobs",
    "cj",
    "service",
    "services",
    "svc",
    "configmap",
    "configmaps",
    "cm",
    "secret",
    "secrets",
    "pvc",
    "pv",
    "node",
    "nodes",
    "no",
];

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        args: ForceDelete,
    }

    fn parse(line: &str) -> std::result::Result<ForceDelete, clap::Error> {
        Typed::try_parse_from(line.split(' ')).map(|typed| typed.args)
    }

    #[test]
    fn a_pod_is_named_as_for_kubectl() {
        for (line, names) in [
            ("x pod db-0", &["db-0"][..]),
            ("x pod/db-0", &["db-0"]),
            ("x db-0", &["db-0"]),
            ("x po db-0", &["db-0"]),
            ("x pods db-0 db-1 db-0", &["db-0", "db-1"]),
            // The kind, never a name: but only once.
            ("x pod", &[]),
            ("x pod pod", &["pod"]),
            ("x pod pod web-1", &["pod", "web-1"]),
            ("x pod/pod", &["pod"]),
        ] {
            let names = names.iter().map(|name| (None, *name)).collect();
            assert_eq!(parse(line).unwrap().names(), names, "{line}");
        }
        let typed = parse("x pod shop/db-0 db-1").unwrap();
        assert_eq!(typed.names(), BTreeSet::from([(Some("shop"), "db-0"), (None, "db-1")]));
        for (line, sound) in [
            ("x pod -l app=db", true),
            ("x pod --node a", true),
            ("x pod db-0", true),
            ("x db-0 -l app=db", false),
            ("x pod db-0 --node a", false),
        ] {
            assert_eq!(parse(line).unwrap().check().is_ok(), sound, "{line}");
        }
        for line in [
            "x deployment/web",
            "x node/a",
            "x pod/a/b",
            "x ../a",
            "x pod/pod/a",
            "x pod/node/a",
            "x Shop/db-0",
            "x shop/",
            "x -l=",
            "x -l app=db --node a",
            "x db-0 --i-have-fenced",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
    }
}
