//! What is safer than force-deleting a pod, the safest first, with the command to type.
//!
//! Nothing here makes a second one start beside a first that may still run: that is why waiting for pod
//! GC is no way out for a machine that may be on, and why a fence that is out of date is undone before
//! anything else.

use jiff::SignedDuration;
use serde::Serialize;

use super::{
    duration::age,
    node::{Contact, HEARTBEAT_IS_OLD},
    pod::Pod,
    risk::{Deletion, Facts},
    time::ServerTime,
    workload::{Ownership, Successor, Why},
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

    /// The same, for a cluster that takes these flags to reach: what is pasted must not meet another one.
    #[must_use]
    pub fn reached_by(self, flags: &str) -> Self {
        let command = self.command.map(|command| with_flags(&command, flags));
        Self { what: with_flags(&self.what, flags), command, ..self }
    }

    fn delete(pod: &Pod, what: impl Into<String>) -> Self {
        let grace = pod.least_grace().map_or_else(String::new, |least| format!(" --grace-period={least}"));
        let command = format!("kubectl delete pod {}{grace} --wait=false", located(pod));
        Self { what: what.into(), command: Some(command), takes: Some(Safe::Delete) }
    }

    fn wait(pod: &Pod, what: impl Into<String>, left: SignedDuration) -> Self {
        Self { what: what.into(), command: Some(wait_until_gone(pod, left)), takes: Some(Safe::Await) }
    }
}

/// A text with the flags that its commands take to reach a cluster.
pub fn with_flags(text: &str, flags: &str) -> String {
    if flags.is_empty() {
        return text.to_owned();
    }
    let mut parts = text.split("kubectl ");
    let first = parts.next().unwrap_or_default().to_owned();
    // kubectl itself takes no flags before the name of a plugin.
    parts.fold(first, |text, part| match part.strip_prefix("lease ") {
        Some(rest) => format!("{text}kubectl lease {flags} {rest}"),
        None => format!("{text}kubectl {flags} {part}"),
    })
}

/// What can be done without force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safe {
    Evict,
    /// Delete it with its grace.
    Delete,
    /// Delete it with its grace where it cannot end yet: the next one is started all the same.
    Replace,
    /// Its deletion is under way and will be completed.
    Await,
}

/// Whether the API would evict a pod now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Eviction {
    Possible,
    /// These disruption budgets have nothing left.
    Spent(String),
    /// The API evicts no pod that several disruption budgets select.
    SeveralBudgets {
        names: Vec<String>,
        /// One of them has nothing left.
        spent: bool,
    },
}

fn located(pod: &Pod) -> String {
    format!("{} -n {}", pod.metadata.name, pod.metadata.namespace)
}

/// Waits for the end of a pod that has so long yet.
fn wait_until_gone(pod: &Pod, left: SignedDuration) -> String {
    format!("kubectl wait --for=delete pod/{} {}", located(pod), wait_for(left))
}

/// The kubelet needs some time after the grace, and pod GC looks every 20 seconds.
fn wait_for(left: SignedDuration) -> String {
    format!("--timeout={}s", left.max(SignedDuration::ZERO).as_secs() + 120)
}

/// Waits for the end of all pods of a controller that was told to end them. Those that have ended before
/// are not deleted then.
fn wait_until_all_gone(pod: &Pod, selector: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "=,._/-".contains(c);
    let quoted = if selector.chars().all(plain) { selector.to_owned() } else { format!("'{selector}'") };
    let phases = "status.phase!=Failed,status.phase!=Succeeded";
    format!(
        "kubectl wait --for=delete pod -l {quoted} --field-selector={phases} -n {} {}",
        pod.metadata.namespace,
        wait_for(pod.grace())
    )
}

/// What tells a controller, as `Kind/name`, to run so many.
fn told_to_run(controller: &str, namespace: &str, replicas: &str) -> String {
    let at = controller.to_lowercase();
    if controller.starts_with("Job/") {
        let suspend = replicas == "0";
        return format!(r#"kubectl patch {at} -n {namespace} -p '{{"spec":{{"suspend":{suspend}}}}}'"#);
    }
    format!("kubectl scale {at} -n {namespace} --replicas={replicas}")
}

/// What brings a controller back that was told to run none.
pub fn brought_back(pod: &Pod, ownership: &Ownership) -> Option<String> {
    let controller = ownership.controller.as_deref().filter(|_| ownership.is_stopped())?;
    Some(told_to_run(controller, &pod.metadata.namespace, "N"))
}

/// The ways there are.
pub fn ways(
    pod: &Pod,
    facts: &Facts,
    ownership: &Ownership,
    eviction: &Eviction,
    now: ServerTime,
) -> Vec<Way> {
    let node = &pod.spec.node_name;
    if facts.mirror {
        let what =
            format!("take its manifest away on {node} (usually in /etc/kubernetes/manifests): that ends it");
        return vec![Way::by_hand(what, None)];
    }
    let mut ways = Vec::new();
    let finalizers = super::assessment::lasting_finalizers(pod, ownership);
    let begun = facts.deletion != Deletion::NotBegun;
    // The finalizer of a Job that waits for the end of the pod goes with that end.
    if !finalizers.is_empty() && ownership.why != Why::JobFailed {
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
    ways.extend(match facts.contact {
        // Whatever is heard of it: pod GC will not wait.
        _ if facts.nodeless => on_a_missing_node(pod, facts),
        Some(Contact::Heard) => on_a_living_node(pod, facts, ownership, eviction, now),
        Some(Contact::Back) => {
            let what =
                format!("{node} is back: take it into service again, before pod GC deletes by force there");
            let undo = Way::by_hand(what, Some(format!("kubectl lease fence {node} --undo")));
            // Whatever is Terminating there before that is deleted by force if the node is not ready.
            let later = on_a_living_node(pod, facts, ownership, eviction, now);
            std::iter::once(undo).chain(later.into_iter().map(|way| Way { takes: None, ..way })).collect()
        }
        Some(Contact::NotReady) => on_a_node_that_is_not_ready(pod, facts, ownership, eviction, now),
        Some(Contact::Silent | Contact::Gone) => on_a_silent_node(pod, facts, ownership),
        Some(Contact::Fenced) if begun => {
            let what = "wait for pod GC, which deletes what is Terminating there within half a minute";
            vec![Way::wait(pod, what, SignedDuration::ZERO)]
        }
        Some(Contact::Fenced) => vec![Way::delete(pod, "delete it as usual: pod GC completes it")],
        Some(Contact::Late) => {
            let what = "wait until it is known whether the node is gone, a minute at most";
            vec![Way::by_hand(what, Some(format!("kubectl lease partitions {node} -w")))]
        }
        None if facts.out_of_service => vec![Way::by_hand(
            format!(
                "find out whether {node} is alive: if it is, its out-of-service taint goes first, for pod GC deletes by \
                 force what is Terminating there"
            ),
            Some(format!("kubectl lease partitions {node}")),
        )],
        None => on_a_node_that_is_not_seen(pod, facts, ownership, eviction, now),
    });
    ways
}

/// How long its grace lasts yet.
fn left(pod: &Pod, now: ServerTime) -> SignedDuration {
    pod.overdue(now).map_or(SignedDuration::ZERO, |overdue| -overdue).max(SignedDuration::ZERO)
}

fn on_a_living_node(
    pod: &Pod,
    facts: &Facts,
    ownership: &Ownership,
    eviction: &Eviction,
    now: ServerTime,
) -> Vec<Way> {
    let (node, uid) = (&pod.spec.node_name, &pod.metadata.uid);
    match facts.deletion {
        Deletion::NotBegun if facts.is_doubled_by_deletion() => vec![ended_by_its_controller(pod, ownership)],
        Deletion::NotBegun => asked_to_go(pod, facts, ownership, eviction),
        Deletion::Begun => {
            let left = left(pod, now);
            vec![Way::wait(pod, format!("wait: its grace ends in {}", age(left)), left)]
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

/// However the pod is deleted, its controller starts the next one beside it. What makes the controller
/// itself end it does not.
fn ended_by_its_controller(pod: &Pod, ownership: &Ownership) -> Way {
    let controller = ownership.controller.as_deref().unwrap_or("its controller");
    let (at, namespace) = (controller.to_lowercase(), &pod.metadata.namespace);
    let at_once = pod.least_grace().is_some();
    if ownership.why == Why::Recreate && !at_once {
        return Way::by_hand(
            "restart its Deployment, which ends all its pods before it starts others",
            Some(format!("kubectl rollout restart {at} -n {namespace}")),
        );
    }
    // Only what was read is known to be told so and to be brought back as it was.
    let told = match (&ownership.selector, ownership.replicas) {
        (Some(selector), Some(replicas)) if replicas.wanted > 0 => Some((selector, replicas.wanted)),
        _ => None,
    };
    let Some((selector, wanted)) = told else {
        let what = format!(
            "find out whether two of it may run at once: {controller} may start the next one before this one has ended"
        );
        return Way::by_hand(what, Some(format!("kubectl get {at} -n {namespace} -o yaml")));
    };
    let to = |replicas: i64| told_to_run(controller, namespace, &replicas.to_string());
    let (end, back) = (to(0), to(wanted));
    let (stop, resume, stays) = if controller.starts_with("Job/") {
        (format!("suspend {controller}, which ends all its pods"), "resume it", "it stays suspended")
    } else {
        (format!("scale {controller} to 0"), "scale it back", "it stays at 0")
    };
    if at_once {
        let (node, uid) = (&pod.spec.node_name, &pod.metadata.uid);
        let what = format!(
            "{stop}; with a terminationGracePeriodSeconds of 0 the objects go before the containers have ended: make \
             sure on {node}, and wherever else its pods ran, that they have ended ('crictl ps --label \
             io.kubernetes.pod.uid={uid}' shows none), and only then {resume}: {back}"
        );
        return Way::by_hand(what, Some(end));
    }
    let what = format!(
        "{stop}, and {resume} when all its pods are gone; if the wait times out, {stays}: '{back}' brings it back once \
         the containers have ended"
    );
    Way::by_hand(what, Some(format!("{end} && {} && {back}", wait_until_all_gone(pod, selector))))
}

/// What its disruption budgets allow, and the majority of its set.
fn asked_to_go(pod: &Pod, facts: &Facts, ownership: &Ownership, eviction: &Eviction) -> Vec<Way> {
    let delete = |what: String, is_safe: bool| {
        let way = Way::delete(pod, what);
        // `--safe` never goes over a budget, nor takes a majority away.
        Way { takes: way.takes.filter(|_| is_safe), ..way }
    };
    // Where all others are ready, waiting brings no more.
    let few = ownership
        .replicas
        .filter(|replicas| facts.no_majority == Some(true) && !replicas.are_all_ready_without(pod));
    let within_budget =
        matches!(eviction, Eviction::Possible | Eviction::SeveralBudgets { spent: false, .. });
    if let (Some(replicas), true) = (few, within_budget) {
        let (controller, wanted) = (ownership.controller.as_deref().unwrap_or_default(), replicas.wanted);
        let wait = format!(
            "kubectl wait --for=jsonpath='{{.status.readyReplicas}}'={wanted} {} -n {} --timeout=300s",
            controller.to_lowercase(),
            pod.metadata.namespace
        );
        return vec![
            Way::by_hand(
                format!("wait until the {wanted} replicas of {controller} are ready, and evict it then"),
                Some(wait),
            ),
            delete("delete it as usual, with its grace, though no majority is ready then".into(), false),
        ];
    }
    match eviction {
        Eviction::Possible => vec![
            Way {
                what: "evict it: disruption budgets and its grace are kept".into(),
                command: Some(format!("kubectl lease force-delete pod {} --safe", located(pod))),
                takes: Some(Safe::Evict),
            },
            Way::delete(pod, "delete it as usual, with its grace"),
        ],
        Eviction::Spent(budgets) => vec![
            Way::by_hand(
                format!("wait until the disruption budget {budgets} allows it, and evict it then"),
                Some(format!("kubectl get poddisruptionbudgets -n {} -w", pod.metadata.namespace)),
            ),
            delete("delete it as usual, with its grace, over the disruption budget".into(), false),
        ],
        Eviction::SeveralBudgets { names, spent } => {
            let over = if *spent { ", over a disruption budget" } else { "" };
            vec![delete(
                format!(
                    "delete it as usual, with its grace{over}: the API evicts no pod that several disruption \
                     budgets ({}) select",
                    names.join(", ")
                ),
                !spent,
            )]
        }
    }
}

/// What becomes of a pod when its node is well again.
fn what_its_kubelet_does(facts: &Facts) -> &'static str {
    match facts.deletion {
        Deletion::NotBegun => "the pod, which is not deleted, then runs on",
        Deletion::Begun | Deletion::Stuck => "its kubelet then ends the pod in order",
    }
}

/// Its machine may be switched off, and is then declared to be.
fn switch_off(node: &str) -> Way {
    Way::by_hand(
        format!("switch the machine of {node} off, make sure of it, and declare it"),
        Some(format!("kubectl lease fence {node}")),
    )
}

fn on_a_node_that_is_not_ready(
    pod: &Pod,
    facts: &Facts,
    ownership: &Ownership,
    eviction: &Eviction,
    now: ServerTime,
) -> Vec<Way> {
    let node = &pod.spec.node_name;
    let repair = Way::by_hand(
        format!(
            "repair what is wrong on {node}, such as a container runtime that hangs: {}",
            what_its_kubelet_does(facts)
        ),
        Some(format!("kubectl describe node {node}")),
    );
    let off = Way::by_hand(
        format!(
            "switch the machine of {node} off, make sure of it, and declare it when its heartbeat is {HEARTBEAT_IS_OLD}"
        ),
        Some(format!("kubectl lease fence {node}")),
    );
    let mut ways = vec![repair, off];
    // However gently it is deleted, the next one is started at once, beside one that a runtime that hangs
    // does not end. The restart of a Deployment that recreates waits for that end, if there is a grace.
    let doubles = facts.must_be_one()
        && facts.successor == Successor::Early
        && facts.deletion == Deletion::NotBegun
        && (ownership.why != Why::Recreate || pod.least_grace().is_some());
    if facts.deletion != Deletion::Stuck && !doubles {
        ways.extend(on_a_living_node(pod, facts, ownership, eviction, now));
    }
    ways
}

fn on_a_silent_node(pod: &Pod, facts: &Facts, ownership: &Ownership) -> Vec<Way> {
    let node = &pod.spec.node_name;
    if facts.is_guarded() {
        return vec![
            Way::by_hand(
                format!("bring {node} back: {}", what_its_kubelet_does(facts)),
                Some(format!("kubectl lease partitions {node} -w")),
            ),
            switch_off(node),
        ];
    }
    let first = match (facts.successor, facts.deletion) {
        (Successor::Never, _) => {
            Way::by_hand(format!("leave it, or bring {node} back: nothing starts it elsewhere"), None)
        }
        (_, Deletion::NotBegun) => {
            let controller = ownership.controller.as_deref().unwrap_or("its controller");
            let what = format!(
                "delete it as usual: {controller} does not wait for its end to start the next one, {node} ends this one \
                 when it is back"
            );
            Way { takes: Some(Safe::Replace), ..Way::delete(pod, what) }
        }
        _ => Way::by_hand("leave it: its replacement does not wait for it", None),
    };
    vec![
        first,
        Way::by_hand(format!("if the machine of {node} is off, declare it"), switch_off(node).command),
    ]
}

/// Pod GC deletes the pods of a node whose object is gone, and does not ask the machine.
fn on_a_missing_node(pod: &Pod, facts: &Facts) -> Vec<Way> {
    let node = &pod.spec.node_name;
    if facts.is_guarded() {
        let node_object = format!(r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{node}"}}}}"#);
        return vec![
            Way::by_hand(
                "create the node object again, at once: pod GC then leaves the pod alone".to_owned(),
                Some(format!("echo '{node_object}' | kubectl create -f -")),
            ),
            Way::by_hand(
                format!(
                    "switch the machine of {node} off, and make sure of it, before pod GC deletes the pod"
                ),
                None,
            ),
        ];
    }
    let what = "wait for pod GC, which deletes the pods of missing nodes within a minute";
    vec![Way::wait(pod, what, SignedDuration::ZERO)]
}

/// A deletion with its grace waits for the kubelet, whatever the node is.
fn on_a_node_that_is_not_seen(
    pod: &Pod,
    facts: &Facts,
    ownership: &Ownership,
    eviction: &Eviction,
    now: ServerTime,
) -> Vec<Way> {
    let node = &pod.spec.node_name;
    let look = Way::by_hand(
        format!("ask a cluster administrator how {node} is"),
        Some(format!("kubectl lease partitions {node}")),
    );
    let plain =
        !facts.is_doubled_by_deletion() && facts.no_majority != Some(true) && *eviction == Eviction::Possible;
    let mut ways = match facts.deletion {
        Deletion::Stuck => Vec::new(),
        // Who may not see nodes may often not evict either.
        Deletion::NotBegun if plain => {
            let what = "delete it as usual, with its grace: the object goes when the kubelet has ended it";
            vec![Way::delete(pod, what)]
        }
        Deletion::NotBegun | Deletion::Begun => on_a_living_node(pod, facts, ownership, eviction, now),
    };
    ways.push(look);
    ways
}
