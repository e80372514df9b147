//! What is safer than force-deleting a pod, the safest first, with the command to type.
//!
//! Nothing here makes a second one start beside a first that may still run: that is why waiting for pod
//! GC is no way out for a machine that may be on, and why a fence that is out of date is undone before
//! anything else.

use jiff::SignedDuration;
use serde::Serialize;
use serde_json::json;

use super::{
    duration::age,
    node::{Contact, Declared, HEARTBEAT_IS_OLD, Taint},
    pod::Pod,
    risk::{Deletion, Facts},
    stopped::{self, wait_for, wait_until_all_gone},
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
    /// Its disruption budgets may not be read.
    Unknown,
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

/// What brings a controller back that was told to run none, in words.
pub fn brought_back(pod: &Pod, ownership: &Ownership) -> Option<String> {
    let controller = ownership.controller.as_deref().filter(|_| ownership.is_stopped())?;
    let namespace = &pod.metadata.namespace;
    Some(match ownership.before {
        Some(before) => stopped::bring_back(controller, namespace, before),
        None => stopped::bring_back_unmarked(controller, namespace),
    })
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
        _ if facts.nodeless => on_a_missing_node(pod, facts, ownership),
        Some(Contact::Heard) => on_a_living_node(pod, facts, ownership, eviction, now),
        Some(Contact::Back) => {
            let what =
                format!("{node} is back: take it into service again, before pod GC deletes by force there");
            let undo = Way::by_hand(what, Some(format!("kubectl lease fence {node} --undo")));
            // Whatever is Terminating there before that is deleted by force if the node is not ready.
            let later = if facts.may_hang() {
                on_a_node_that_is_not_ready(pod, facts, ownership, eviction, now)
            } else {
                on_a_living_node(pod, facts, ownership, eviction, now)
            };
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
            let wait = Way::by_hand(what, Some(format!("kubectl lease partitions {node} -w")));
            // The control plane may act as soon as that is known.
            before_it_is_evicted(pod, facts, ownership).chain([wait]).collect()
        }
        None if facts.out_of_service.is_some() => vec![Way::by_hand(
            format!(
                "ask a cluster administrator, who may read its heartbeat, whether {node} is alive: if it is, its \
                 out-of-service taint goes first, for pod GC deletes by force what is Terminating there"
            ),
            Some(format!("kubectl describe node {node}")),
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
        Deletion::NotBegun if facts.is_doubled_by_deletion() => {
            vec![ended_by_its_controller(pod, facts, ownership)]
        }
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

/// The pods of a controller that can be told to run none, and how many it runs. Only what was read is known
/// to be told so and to be brought back as it was.
fn can_be_stopped(ownership: &Ownership) -> Option<(&str, i64)> {
    let wanted = ownership.replicas?.wanted;
    (wanted > 0).then_some((ownership.selector.as_deref()?, wanted))
}

/// The taints by which the control plane evicts from a node that is silent, and from one that is not ready.
fn eviction_taints() -> [Taint; 2] {
    ["unreachable", "not-ready"].map(|of| Taint {
        key: format!("node.kubernetes.io/{of}"),
        effect: "NoExecute".into(),
        ..Taint::default()
    })
}

/// Whether the control plane evicts it from its node, which is lost or may be, without asking the machine.
fn is_to_be_evicted(pod: &Pod, facts: &Facts) -> bool {
    let [unreachable, not_ready] = eviction_taints();
    let taints = match facts.contact {
        // One that is created again is tainted as any that is silent, as soon as that is noticed.
        _ if facts.nodeless => vec![unreachable, not_ready],
        Some(Contact::Late) => vec![unreachable, not_ready],
        Some(Contact::Silent) => vec![unreachable],
        _ if facts.may_hang() => vec![not_ready],
        _ => return false,
    };
    facts.deletion == Deletion::NotBegun && !taints.iter().all(|taint| pod.tolerates(taint))
}

/// Whether the next one may be started beside it once it is Terminating, by whatever ends it where nothing is
/// known to end its containers: also where several use the same storage already, for these are on one node.
fn is_doubled_where_it_does_not_end(facts: &Facts, ownership: &Ownership) -> bool {
    let unknown = matches!(ownership.why, Why::UnknownKind | Why::Unseen);
    facts.must_be_one()
        && match facts.successor {
            Successor::Early => true,
            Successor::WhenGone => unknown,
            Successor::Never => false,
        }
}

/// Whether an eviction has the next one started beside it: its controller does not wait for its end, or the
/// object goes before that, or what its controller does is not known.
fn is_doubled_by_eviction(pod: &Pod, facts: &Facts, ownership: &Ownership) -> bool {
    let before_its_end =
        facts.must_be_one() && facts.successor == Successor::WhenGone && pod.least_grace().is_some();
    before_its_end || is_doubled_where_it_does_not_end(facts, ownership)
}

/// A pod that is not evicted is neither replaced, nor ended when its node is back: nothing else has to be
/// stopped for that. The UID keeps the change from the next pod of the same name.
fn kept_from_being_evicted(pod: &Pod, facts: &Facts, ownership: &Ownership) -> Option<Way> {
    let is_lost = facts.successor == Successor::Never;
    if !is_to_be_evicted(pod, facts) || !(is_lost || is_doubled_by_eviction(pod, facts, ownership)) {
        return None;
    }
    let node = &pod.spec.node_name;
    let when = if facts.nodeless {
        format!("by default 5 minutes after the new node object of {node} is found unreachable")
    } else {
        format!("by default 5 minutes after {node} was lost")
    };
    let then = if is_lost {
        format!("its kubelet ends it when {node} is back, and nothing starts another")
    } else {
        let controller = ownership.controller.as_deref().unwrap_or("its controller");
        format!("{controller} may start the next one beside it")
    };
    let replaced = if is_lost { "" } else { "; have it replaced in order when the node is well again" };
    let what = format!(
        "keep the pod from being evicted, first: else the control plane evicts the pod, {when}, and {then}; this changes \
         nothing but its tolerations, for as long as this pod exists{replaced}"
    );
    let change = json!({
        "metadata": { "uid": pod.metadata.uid },
        "spec": { "tolerations": pod.tolerations_with(&eviction_taints()) },
    });
    Some(Way::by_hand(what, Some(format!("kubectl patch pod {} --type=merge -p '{change}'", located(pod)))))
}

/// What has to be done before the control plane evicts from a node that is lost, or may be.
fn before_it_is_evicted(
    pod: &Pod,
    facts: &Facts,
    ownership: &Ownership,
) -> impl Iterator<Item = Way> + use<> {
    [taken_into_service(pod, facts), kept_from_being_evicted(pod, facts, ownership)].into_iter().flatten()
}

/// Pod GC deletes by force what is Terminating on a node that has the taint and is not ready: also where the
/// taint is from an earlier outage, and the machine may run.
fn taken_into_service(pod: &Pod, facts: &Facts) -> Option<Way> {
    let node = &pod.spec.node_name;
    let is_lost = matches!(facts.contact, Some(Contact::Silent | Contact::Late));
    if !is_lost || !facts.is_guarded() || facts.successor == Successor::Never {
        return None;
    }
    let by_force = "pod GC deletes by force what is Terminating there, or is evicted";
    let undo = format!("kubectl lease fence {node} --undo");
    let (what, command) = match facts.out_of_service? {
        Declared::Since => return None,
        // Without --confirm only such a taint is taken off, and not a fence that was declared meanwhile.
        Declared::Before => (
            format!(
                "take the out-of-service taint off {node}, before anything else: it is from before {node} was last heard \
                 of, and {by_force}"
            ),
            undo,
        ),
        Declared::Undated => (
            format!(
                "unless the machine of {node} is known to be off, take the out-of-service taint off {node}, before \
                 anything else: the taint does not tell when it was set, and {by_force}"
            ),
            format!("{undo} --confirm"),
        ),
    };
    Some(Way::by_hand(what, Some(command)))
}

/// However the pod is deleted, its controller starts the next one beside it. What makes the controller
/// itself end it does not.
fn ended_by_its_controller(pod: &Pod, facts: &Facts, ownership: &Ownership) -> Way {
    let controller = ownership.controller.as_deref().unwrap_or("its controller");
    let (at, namespace) = (controller.to_lowercase(), &pod.metadata.namespace);
    let outage = outage_until_all_have_ended(pod, facts, ownership);
    if is_restarted(pod, ownership) {
        return Way::by_hand(
            format!(
                "{outage}restart its Deployment, which starts others only when all its pods are gone, also those on \
                 nodes that are lost: until then none runs"
            ),
            Some(format!("kubectl rollout restart {at} -n {namespace}")),
        );
    }
    let Some((selector, wanted)) = can_be_stopped(ownership) else {
        let what = format!(
            "find out whether two of it may run at once: {controller} may start the next one before this one has ended"
        );
        // Kinds of others may have the same name.
        let full = pod.controller().filter(|owner| {
            ownership.why == Why::UnknownKind && controller == format!("{}/{}", owner.kind, owner.name)
        });
        let full = full.and_then(|owner| {
            let (group, version) = owner.api_version.split_once('/')?;
            Some(format!("{}.{version}.{group}/{}", owner.kind.to_lowercase(), owner.name))
        });
        let at = full.unwrap_or(at);
        return Way::by_hand(what, Some(format!("kubectl get {at} -n {namespace} -o yaml")));
    };
    let end = stopped::stop(controller, namespace, wanted);
    let (stop, resume, stays, sets) = if controller.starts_with("Job/") {
        (format!("suspend {controller}"), "resume it", "it stays suspended", "resumes it")
    } else {
        (format!("scale {controller} to 0"), "scale it back", "it stays at 0", "sets its replicas")
    };
    let others = match &ownership.managed_by {
        Some(above) => format!("stop {above} first, which owns it, and whatever else {sets}"),
        None => format!("whatever else {sets}, such as GitOps or an operator, has to be stopped first"),
    };
    if pod.least_grace().is_some() {
        let (node, uid) = (&pod.spec.node_name, &pod.metadata.uid);
        let what = format!(
            "{outage}{stop}, which ends all its pods ({others}); with a terminationGracePeriodSeconds of 0 the objects go \
             before the containers have ended: make sure on {node}, and wherever else its pods ran, that they have ended \
             ('crictl ps --label io.kubernetes.pod.uid={uid}' shows none; where that cannot be seen, switch the machine \
             off), and only then {resume}, with what 'kubectl lease partitions' lists for it"
        );
        return Way::by_hand(what, Some(end));
    }
    let back = stopped::bring_back(controller, namespace, wanted);
    let what = format!(
        "{outage}{stop}, which ends all its pods, and {resume} when they are gone ({others}); if that is interrupted or times \
         out, {stays}, and 'kubectl lease partitions' lists it: the last command of the line brings it back, once the \
         containers have ended"
    );
    let gone = wait_until_all_gone(namespace, selector, pod.grace());
    Way::by_hand(what, Some(format!("{end} && {gone} && {back}")))
}

/// What is to be known before all pods of a controller are ended: the next ones are started when all have
/// ended, and what runs on a node that is lost does not end while it is.
fn outage_until_all_have_ended(pod: &Pod, facts: &Facts, ownership: &Ownership) -> String {
    let node = &pod.spec.node_name;
    let several = ownership.replicas.filter(|replicas| replicas.wanted > 1);
    let others = "all other replicas are ended too, and none is started until";
    match several {
        Some(_) if facts.may_hang() => {
            format!("only if an outage is acceptable ({others} {node} has ended this one): ")
        }
        Some(replicas) if !replicas.are_all_ready_without(pod) => format!(
            "only if an outage is acceptable ({} of {} replicas are ready; {others} those on nodes that are lost have \
             ended): ",
            replicas.ready, replicas.wanted
        ),
        _ => String::new(),
    }
}

/// Whether a restart of its Deployment ends it before the next one is started. One that is paused cannot be
/// restarted.
fn is_restarted(pod: &Pod, ownership: &Ownership) -> bool {
    ownership.why == Why::Recreate && !ownership.paused && pod.least_grace().is_none()
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
    let within_budget = matches!(
        eviction,
        Eviction::Possible | Eviction::Unknown | Eviction::SeveralBudgets { spent: false, .. }
    );
    // A set that may not be read may have no majority without it.
    let is_counted = facts.no_majority.is_some();
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
        Eviction::Possible | Eviction::Unknown if !is_counted => {
            let controller = ownership.controller.as_deref().unwrap_or("its controller");
            vec![delete(
                format!(
                    "delete it as usual, with its grace, if enough replicas of {controller} are ready without it"
                ),
                false,
            )]
        }
        Eviction::Possible | Eviction::Unknown => {
            let evict = Way {
                what: "evict it: disruption budgets and its grace are kept".into(),
                command: Some(format!("kubectl lease force-delete pod {} --safe", located(pod))),
                takes: Some(Safe::Evict),
            };
            let is_known = *eviction == Eviction::Possible;
            let over = if is_known { "" } else { ", if no disruption budget forbids it" };
            vec![evict, delete(format!("delete it as usual, with its grace{over}"), is_known)]
        }
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
                !spent && is_counted,
            )]
        }
    }
}

/// What becomes of a pod when its node is well again.
fn what_its_kubelet_does(pod: &Pod, facts: &Facts) -> &'static str {
    match facts.deletion {
        Deletion::NotBegun if is_to_be_evicted(pod, facts) => {
            "the pod, if it is not evicted by then, runs on"
        }
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
            what_its_kubelet_does(pod, facts)
        ),
        Some(format!("kubectl describe node {node}")),
    );
    let off = Way::by_hand(
        format!(
            "switch the machine of {node} off, make sure of it, and declare it when its heartbeat is {HEARTBEAT_IS_OLD}"
        ),
        Some(format!("kubectl lease fence {node}")),
    );
    let mut ways: Vec<Way> = kept_from_being_evicted(pod, facts, ownership).into_iter().collect();
    ways.extend([repair, off]);
    // However gently it is deleted, the next one is started at once, beside one that a runtime that hangs
    // does not end. The restart of a Deployment that recreates waits for that end, if there is a grace.
    let doubles = facts.deletion == Deletion::NotBegun
        && is_doubled_where_it_does_not_end(facts, ownership)
        && !is_restarted(pod, ownership);
    if facts.deletion != Deletion::Stuck && !doubles {
        ways.extend(on_a_living_node(pod, facts, ownership, eviction, now));
    }
    ways
}

fn on_a_silent_node(pod: &Pod, facts: &Facts, ownership: &Ownership) -> Vec<Way> {
    let node = &pod.spec.node_name;
    if facts.is_guarded() {
        let back = Way::by_hand(
            format!("bring {node} back: {}", what_its_kubelet_does(pod, facts)),
            Some(format!("kubectl lease partitions {node} -w")),
        );
        return before_it_is_evicted(pod, facts, ownership).chain([back, switch_off(node)]).collect();
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
    let off = Way::by_hand(format!("if the machine of {node} is off, declare it"), switch_off(node).command);
    before_it_is_evicted(pod, facts, ownership).chain([first, off]).collect()
}

/// Pod GC deletes the pods of a node whose object is gone, and does not ask the machine.
fn on_a_missing_node(pod: &Pod, facts: &Facts, ownership: &Ownership) -> Vec<Way> {
    let node = &pod.spec.node_name;
    // What nothing starts again is lost with its object, unless it was to go anyway.
    let is_lost = facts.successor == Successor::Never && facts.deletion == Deletion::NotBegun;
    if facts.is_guarded() || is_lost {
        let labels = json!({ "kubernetes.io/hostname": node });
        let node_object =
            json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": node, "labels": labels } });
        let create = Way::by_hand(
            "create the node object again, at once: pod GC then leaves the pod alone; its other labels, its taints and a \
             cordon are lost, and have to be put back before pods are given to it",
            Some(format!("echo '{node_object}' | kubectl create -f -")),
        );
        let off = Way::by_hand(
            format!("switch the machine of {node} off, and make sure of it, before pod GC deletes the pod"),
            None,
        );
        let off = facts.is_guarded().then_some(off);
        return kept_from_being_evicted(pod, facts, ownership)
            .into_iter()
            .chain([create])
            .chain(off)
            .collect();
    }
    let what = "wait for pod GC, which deletes the pods of missing nodes within a minute";
    vec![Way::wait(pod, what, SignedDuration::ZERO)]
}

/// A deletion with its grace waits for the kubelet, whatever the node is, unless it is declared out of service:
/// then pod GC completes it without asking the machine.
fn on_a_node_that_is_not_seen(
    pod: &Pod,
    facts: &Facts,
    ownership: &Ownership,
    eviction: &Eviction,
    now: ServerTime,
) -> Vec<Way> {
    let node = &pod.spec.node_name;
    let is_doubted = facts.unread && facts.must_be_one();
    let and = if is_doubted { ", and whether it is declared out of service" } else { "" };
    let look = Way::by_hand(
        format!("ask a cluster administrator how {node} is{and}"),
        Some(format!("kubectl lease partitions {node}")),
    );
    let plain = !facts.is_doubled_by_deletion()
        && facts.no_majority == Some(false)
        && *eviction == Eviction::Possible;
    let mut ways = match facts.deletion {
        Deletion::Stuck => Vec::new(),
        // The kubelet may be cut off, and several of it on one node may use the same storage.
        Deletion::NotBegun
            if !facts.is_doubled_by_deletion() && is_doubled_where_it_does_not_end(facts, ownership) =>
        {
            Vec::new()
        }
        Deletion::NotBegun if is_doubted && !facts.is_doubled_by_deletion() => {
            let what = format!(
                "delete it as usual, with its grace, unless {node} is declared out of service: else the object goes when \
                 the kubelet has ended it"
            );
            return vec![look, Way { takes: None, ..Way::delete(pod, what) }];
        }
        // Who may not see nodes may often not evict either.
        Deletion::NotBegun if plain => {
            let what = "delete it as usual, with its grace: the object goes when the kubelet has ended it";
            vec![Way::delete(pod, what)]
        }
        Deletion::NotBegun | Deletion::Begun => on_a_living_node(pod, facts, ownership, eviction, now),
    };
    if is_doubted {
        ways.insert(0, look);
    } else {
        ways.push(look);
    }
    ways
}
