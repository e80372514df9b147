//! What is safer than force-deleting a pod, the safest first, with the command to type.

use jiff::SignedDuration;
use serde::Serialize;

use super::{
    duration::age,
    node::Contact,
    pod::Pod,
    risk::{Deletion, Facts, Replaced},
    time::ServerTime,
};

/// Something safer than force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Way {
    pub what: String,
    pub command: Option<String>,
    /// What `--safe` does of it.
    #[serde(skip)]
    pub takes: Option<Safe>,
}

impl Way {
    fn by_hand(what: impl Into<String>, command: Option<String>) -> Self {
        Self { what: what.into(), command, takes: None }
    }

    fn delete(pod: &Pod, what: &str) -> Self {
        let command = format!("kubectl delete pod {} --wait=false", located(pod));
        Self { what: what.to_owned(), command: Some(command), takes: Some(Safe::Delete) }
    }

    fn wait(pod: &Pod, what: impl Into<String>) -> Self {
        let command = format!("kubectl wait --for=delete pod/{} --timeout=2m", located(pod));
        Self { what: what.into(), command: Some(command), takes: Some(Safe::Await) }
    }
}

/// What can be done without force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safe {
    Evict,
    Delete,
    /// Its deletion is under way and will be completed.
    Await,
}

fn located(pod: &Pod) -> String {
    format!("{} -n {}", pod.metadata.name, pod.metadata.namespace)
}

/// The ways there are.
pub fn ways(pod: &Pod, facts: &Facts, now: ServerTime) -> Vec<Way> {
    let node = &pod.spec.node_name;
    if facts.mirror {
        let what =
            format!("take its manifest away on {node} (usually in /etc/kubernetes/manifests): that ends it");
        return vec![Way::by_hand(what, None)];
    }
    let mut ways = Vec::new();
    let finalizers = &pod.metadata.finalizers;
    let begun = facts.deletion != Deletion::NotBegun;
    if !finalizers.is_empty() {
        let what = format!("let the controller behind {} do its work, or repair it", finalizers.join(", "));
        let look = format!("kubectl get pod {} -o jsonpath='{{.metadata.finalizers}}'", located(pod));
        ways.push(Way::by_hand(what, Some(look)));
        if begun {
            return ways;
        }
    }
    if !facts.scheduled || facts.finished {
        if !begun {
            ways.push(Way::delete(pod, "delete it as usual: there is nothing to wait for"));
        }
        return ways;
    }
    match facts.contact {
        Some(Contact::Silent) if !facts.nodeless => ways.extend(on_a_silent_node(pod, facts)),
        Some(Contact::Gone | Contact::Silent) => {
            let what = "wait for pod GC, which deletes the pods of missing nodes within a minute";
            ways.push(Way::wait(pod, what));
            if facts.contact == Some(Contact::Silent) && facts.is_guarded() {
                let what = format!("switch the machine of {node} off, and make sure of it, before that");
                ways.push(Way::by_hand(what, None));
            }
        }
        Some(Contact::Fenced) if begun => {
            let what = "wait for pod GC, which deletes what is Terminating there within half a minute";
            ways.push(Way::wait(pod, what));
        }
        Some(Contact::Fenced) => ways.push(Way::delete(pod, "delete it as usual: pod GC completes it")),
        Some(contact @ (Contact::Heard | Contact::Back)) => {
            ways.extend(on_a_living_node(pod, facts, now));
            if contact == Contact::Back {
                let what = format!("{node} is back: take it into service again");
                ways.push(Way::by_hand(what, Some(format!("kubectl lease fence {node} --undo"))));
            }
        }
        Some(Contact::Late) => {
            let what = "wait until it is known whether the node is gone, a minute at most";
            ways.push(Way::by_hand(what, Some(format!("kubectl lease partitions {node} -w"))));
        }
        None => {
            let look = Some(format!("kubectl lease partitions {node}"));
            ways.push(Way::by_hand("ask somebody who may see the node", look));
        }
    }
    ways
}

fn on_a_living_node(pod: &Pod, facts: &Facts, now: ServerTime) -> Vec<Way> {
    let (node, uid) = (&pod.spec.node_name, &pod.metadata.uid);
    match facts.deletion {
        Deletion::NotBegun => {
            let evict = Way {
                what: "evict it: disruption budgets and its grace are kept".into(),
                command: Some(format!("kubectl lease force-delete pod {} --safe", located(pod))),
                takes: Some(Safe::Evict),
            };
            vec![evict, Way::delete(pod, "delete it as usual, with its grace")]
        }
        Deletion::Begun => {
            let left = pod.overdue(now).map_or(SignedDuration::ZERO, |overdue| -overdue);
            vec![Way::wait(pod, format!("wait: its grace ends in {}", age(left.max(SignedDuration::ZERO))))]
        }
        Deletion::Stuck => vec![
            Way::by_hand(
                "see what the kubelet says it waits for",
                Some(format!("kubectl describe pod {}", located(pod))),
            ),
            Way::by_hand(
                format!("on {node}, see whether its containers still run"),
                Some(format!("crictl ps --label io.kubernetes.pod.uid={uid}")),
            ),
            Way::by_hand(
                format!("on {node}, see why: the runtime, or a volume that is not let go"),
                Some(format!("journalctl -u kubelet | grep {uid}")),
            ),
        ],
    }
}

fn on_a_silent_node(pod: &Pod, facts: &Facts) -> Vec<Way> {
    let node = &pod.spec.node_name;
    let fence = Some(format!("kubectl lease fence {node}"));
    if facts.is_guarded() {
        return vec![
            Way::by_hand(
                format!("bring {node} back: its kubelet then ends the pod in order"),
                Some(format!("kubectl lease partitions {node} -w")),
            ),
            Way::by_hand(format!("switch the machine of {node} off, make sure of it, and say so"), fence),
            Way::by_hand(
                "if the machine is destroyed for good, delete the node",
                Some(format!("kubectl delete node {node}")),
            ),
        ];
    }
    let leave = match facts.replaced {
        Replaced::Never => format!("leave it, or bring {node} back: nothing starts it elsewhere"),
        _ => "leave it: its replacement does not wait for it".to_owned(),
    };
    vec![Way::by_hand(leave, None), Way::by_hand(format!("if the machine of {node} is off, say so"), fence)]
}
