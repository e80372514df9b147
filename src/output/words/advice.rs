//! Words for what is safer than force-deleting a pod, and the command to type.

use jiff::SignedDuration;
use kube_leases::rules::{
    advice::{Advice, Alternative, DeleteTerms, KubeletThen, Outage, Safe, SwitchOffTerms, WaitFor},
    controller_ref::ControllerRef,
    duration::age,
    pod::Pod,
};
use serde_json::{Value, json};

use super::{
    controllers::{bring_back, stop, wait_until_all_gone},
    nodes::HEARTBEAT_IS_OLD,
    paste::with_flags,
};

/// What to do, and the command for it if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What to do.
    pub what: String,
    /// What to type.
    pub command: Option<String>,
}

impl Line {
    /// Both in one line.
    pub fn joined(self) -> String {
        match self.command {
            Some(command) => format!("{}: {command}", self.what),
            None => self.what,
        }
    }
}

/// What to do about a pod, in words; the commands reach the cluster with these flags.
pub fn line(advice: &Advice, pod: &Pod, flags: &str) -> Line {
    let command = command(advice, pod).map(|command| with_flags(&command, flags));
    Line { what: with_flags(&what(advice, pod), flags), command }
}

/// For `-o json`: the code with its parameters, and both lines.
pub fn document(way: &Alternative, pod: &Pod, flags: &str) -> Value {
    let Line { what, command } = line(&way.advice, pod, flags);
    let mut document = json!(way.advice);
    if let Value::Object(fields) = &mut document {
        fields.insert("what".into(), what.into());
        fields.insert("command".into(), command.into());
    }
    document
}

/// What is done without force.
pub fn safe(way: Safe) -> &'static str {
    match way {
        Safe::Evict => "evict it",
        Safe::Delete | Safe::Replace => "delete it with its grace period",
        Safe::Await => "wait for its end",
    }
}

fn what(advice: &Advice, pod: &Pod) -> String {
    let (node, uid) = (&pod.spec.node_name, &pod.metadata.uid);
    match advice {
        Advice::RemoveManifest => {
            format!("remove its manifest on {node} (usually in /etc/kubernetes/manifests): the kubelet then \
                     stops the static pod")
        }
        Advice::WaitForFinalizers { finalizers } => {
            format!("let the controllers that own the finalizers {} remove them, or repair those \
                     controllers", finalizers.join(", "))
        }
        Advice::Delete { terms, .. } => delete(terms, node),
        Advice::Wait { until, .. } => match until {
            WaitFor::GracePeriod { left_seconds } => {
                format!("wait: its grace period ends in {}", age(SignedDuration::from_secs(*left_seconds)))
            }
            WaitFor::PodGc => {
                "wait for pod GC, which deletes what is Terminating there within half a minute".to_owned()
            }
            WaitFor::PodGcOfMissingNodes => {
                "wait for pod GC, which deletes the pods of missing nodes within a minute".to_owned()
            }
        },
        Advice::Evict { .. } => "evict it: this respects PodDisruptionBudgets and its grace period".to_owned(),
        Advice::WaitForReplicas { controller, wanted } => {
            format!("wait until the {wanted} replicas of {controller} are ready, and evict it then")
        }
        Advice::WaitForBudget { budgets } => {
            format!("wait until the disruption budget {} allows it, and evict it then", budgets.join(", "))
        }
        Advice::DescribePod => "see what the kubelet says it waits for".to_owned(),
        Advice::ListContainers => format!("on {node}, see whether its containers still run"),
        Advice::ReadKubeletLog => {
            format!("on {node}, see why: the runtime, or a volume that cannot be unmounted")
        }
        Advice::RestartDeployment { outage, .. } => format!(
            "{}restart its Deployment (strategy Recreate): new pods are created only after all old ones are \
             deleted, also those on lost nodes; no replica runs until then",
            accepting(*outage, node)
        ),
        Advice::StopController { controller, no_grace, managed_by, outage, .. } => {
            let managed_by = managed_by.as_ref();
            stop_controller(controller, *no_grace, managed_by, &accepting(*outage, node), node, uid)
        }
        Advice::InspectController { controller, .. } => format!(
            "check whether two replicas may run at once: {controller} may create a replacement before this pod \
             has terminated"
        ),
        Advice::KeepFromEviction { controller, node_missing, .. } => {
            keep_from_eviction(controller.as_ref(), *node_missing, node)
        }
        Advice::TakeIntoService => {
            format!("{node} sends heartbeats again: remove its out-of-service taint before pod GC force-deletes \
                     pods that are Terminating there")
        }
        Advice::RemoveTaint { undated } => remove_taint(*undated, node),
        Advice::WatchNode => "wait until it is known whether the node is gone, a minute at most".to_owned(),
        Advice::RepairNode { then } => format!(
            "repair what is wrong on {node}, such as a container runtime that hangs: {}",
            kubelet_then(*then)
        ),
        Advice::BringNodeBack { then } => format!("bring {node} back: {}", kubelet_then(*then)),
        Advice::SwitchOff { terms } => match terms {
            SwitchOffTerms::Silent => {
                format!("power off the machine of {node}, verify that it is off, then mark the node out of service")
            }
            SwitchOffTerms::Alive => format!(
                "power off the machine of {node}, verify that it is off, then mark the node out of service when \
                 its heartbeat is {HEARTBEAT_IS_OLD}"
            ),
            SwitchOffTerms::IfOff => format!("if the machine of {node} is off, mark the node out of service"),
            SwitchOffTerms::NodeMissing => {
                format!("power off the machine of {node}, and verify that it is off, before pod GC deletes the pod")
            }
        },
        Advice::CreateNode => "create the node object again, at once: pod GC then leaves the pod alone; its other \
                               labels, its taints and a cordon are lost, and have to be put back before pods are given \
                               to it"
            .to_owned(),
        Advice::Leave { is_replaced: true } => "leave it: its replacement does not wait for it".to_owned(),
        Advice::Leave { is_replaced: false } => {
            format!("leave it, or bring {node} back: no controller creates it elsewhere")
        }
        Advice::AskAboutTaint => format!(
            "ask a cluster administrator, with permission to read its heartbeat, whether {node} is alive: if it \
             is, remove its out-of-service taint first, because pod GC force-deletes pods that are Terminating \
             there"
        ),
        Advice::AskAboutNode { taint } => {
            let and = if *taint { ", and whether it is marked out of service" } else { "" };
            format!("ask a cluster administrator how {node} is{and}")
        }
    }
}

fn delete(terms: &DeleteTerms, node: &str) -> String {
    let with_grace = "delete it as usual, with its grace period";
    match terms {
        DeleteTerms::NothingRuns => "delete it as usual: there is nothing to wait for".to_owned(),
        DeleteTerms::PodGcCompletes => "delete it as usual: pod GC completes it".to_owned(),
        DeleteTerms::WithGrace => with_grace.to_owned(),
        DeleteTerms::NoMajority => format!("{with_grace}, though no majority is ready then"),
        DeleteTerms::IfEnoughReplicas { controller } => {
            format!("{with_grace}, if enough replicas of {controller} are ready without it")
        }
        DeleteTerms::IfBudgetsAllow => format!("{with_grace}, if no disruption budget forbids it"),
        DeleteTerms::OverBudget => format!("{with_grace}, over the disruption budget"),
        DeleteTerms::SeveralBudgets { budgets, over } => {
            let over = if *over { ", over a disruption budget" } else { "" };
            format!(
                "{with_grace}{over}: the API cannot evict a pod that several disruption budgets ({}) select",
                budgets.join(", ")
            )
        }
        DeleteTerms::NodeEndsItLater { controller } => format!(
            "delete it as usual: {controller} creates the replacement at once; the kubelet on {node} terminates \
             this pod when the node is back"
        ),
        DeleteTerms::UnlessOutOfService => format!(
            "{with_grace}, unless {node} is marked out of service; if it is not, the object is deleted when the \
             kubelet has terminated the pod"
        ),
        DeleteTerms::KubeletEndsIt => {
            format!("{with_grace}: the object is deleted when the kubelet has terminated it")
        }
    }
}

/// What has to be accepted before, in words that something follows.
fn accepting(outage: Option<Outage>, node: &str) -> String {
    let others = "all other replicas are terminated too, and none is created until";
    match outage {
        None => String::new(),
        Some(Outage::UntilNodeEndsIt) => {
            format!(
                "only if an outage is acceptable ({others} the kubelet on {node} has terminated this one): "
            )
        }
        Some(Outage::UntilAllHaveEnded { ready, wanted }) => format!(
            "only if an outage is acceptable ({ready} of {wanted} replicas are ready; {others} those on nodes that \
             are lost have ended): "
        ),
    }
}

fn stop_controller(
    controller: &ControllerRef,
    no_grace: bool,
    managed_by: Option<&ControllerRef>,
    accepting: &str,
    node: &str,
    uid: &str,
) -> String {
    let (stop, resume, stays, sets) = if controller.is_job() {
        (format!("suspend {controller}"), "resume it", "it stays suspended", "resumes it")
    } else {
        (format!("scale {controller} to 0"), "scale it back", "it stays at 0", "sets its replicas")
    };
    let others = match managed_by {
        Some(above) => format!("stop {above} first, which owns it, and whatever else {sets}"),
        None => format!("whatever else {sets}, such as GitOps or an operator, has to be stopped first"),
    };
    if no_grace {
        return format!(
            "{accepting}{stop}, which ends all its pods ({others}); with a terminationGracePeriodSeconds of 0 \
             the objects go before the containers have ended: verify on {node}, and wherever else its pods ran, \
             that they have ended ('crictl ps --label io.kubernetes.pod.uid={uid}' shows none; where that cannot \
             be checked, power off the machine), and only then {resume}, with what 'kubectl lease partitions' \
             lists for it"
        );
    }
    format!(
        "{accepting}{stop}, which ends all its pods, and {resume} when they are gone ({others}); if that is \
         interrupted or times out, {stays}, and 'kubectl lease partitions' lists it: the last command of the line \
         brings it back, once the containers have ended"
    )
}

/// Nothing starts another where there is no controller.
fn keep_from_eviction(controller: Option<&ControllerRef>, node_missing: bool, node: &str) -> String {
    let when = if node_missing {
        format!("by default 5 minutes after the new node object of {node} is found unreachable")
    } else {
        format!("by default 5 minutes after {node} was lost")
    };
    let (then, replaced) = match controller {
        None => {
            (format!("its kubelet terminates it when {node} is back, and no controller creates another"), "")
        }
        Some(controller) => (
            format!("{controller} may create a replacement beside it"),
            "; have it replaced in order when the node is healthy again",
        ),
    };
    format!(
        "first change the tolerations of the pod so that the control plane does not evict it ({when}): otherwise \
         {then}. Nothing but the tolerations of this pod changes{replaced}"
    )
}

fn remove_taint(undated: bool, node: &str) -> String {
    let by_force = "pod GC force-deletes pods that are Terminating there, or are evicted";
    if undated {
        return format!(
            "unless the machine of {node} is known to be off, first remove the out-of-service taint of {node}: \
             the taint has no timeAdded, and {by_force}"
        );
    }
    format!(
        "first remove the out-of-service taint of {node}: it was added before the last heartbeat of {node}, and \
         {by_force}"
    )
}

fn kubelet_then(then: KubeletThen) -> &'static str {
    match then {
        KubeletThen::RunsOnUnlessEvicted => "the pod, if it is not evicted by then, runs on",
        KubeletThen::RunsOn => "the pod, which is not deleted, then runs on",
        KubeletThen::EndsIt => "its kubelet then terminates the pod in order",
    }
}

fn command(advice: &Advice, pod: &Pod) -> Option<String> {
    let (node, uid, namespace) = (&pod.spec.node_name, &pod.metadata.uid, &pod.metadata.namespace);
    let located = format!("{} -n {namespace}", pod.metadata.name);
    Some(match advice {
        Advice::RemoveManifest
        | Advice::Leave { .. }
        | Advice::SwitchOff { terms: SwitchOffTerms::NodeMissing } => return None,
        Advice::WaitForFinalizers { .. } => {
            format!("kubectl get pod {located} -o jsonpath='{{.metadata.finalizers}}'")
        }
        Advice::Delete { grace_seconds, .. } => {
            let grace = grace_seconds.map_or_else(String::new, |grace| format!(" --grace-period={grace}"));
            format!("kubectl delete pod {located}{grace} --wait=false")
        }
        Advice::Wait { timeout_seconds, .. } => {
            format!("kubectl wait --for=delete pod/{located} --timeout={timeout_seconds}s")
        }
        Advice::Evict { .. } => format!("kubectl lease force-delete pod {located} --safe"),
        Advice::WaitForReplicas { controller, wanted } => format!(
            "kubectl wait --for=jsonpath='{{.status.readyReplicas}}'={wanted} {} -n {namespace} --timeout=300s",
            controller.resource()
        ),
        Advice::WaitForBudget { .. } => format!("kubectl get poddisruptionbudgets -n {namespace} -w"),
        Advice::DescribePod => format!("kubectl describe pod {located}"),
        Advice::ListContainers => format!("crictl ps --label io.kubernetes.pod.uid={uid}"),
        Advice::ReadKubeletLog => format!("journalctl -u kubelet | grep {uid}"),
        Advice::RestartDeployment { controller, .. } => {
            format!("kubectl rollout restart {} -n {namespace}", controller.resource())
        }
        Advice::StopController { controller, wanted, selector, grace_seconds, no_grace, .. } => {
            let stop = stop(controller, namespace, *wanted);
            if *no_grace {
                return Some(stop);
            }
            let grace = SignedDuration::from_secs(*grace_seconds);
            let gone = wait_until_all_gone(namespace, selector, grace);
            format!("{stop} && {gone} && {}", bring_back(controller, namespace, *wanted))
        }
        Advice::InspectController { resource, .. } => {
            format!("kubectl get {resource} -n {namespace} -o yaml")
        }
        Advice::KeepFromEviction { tolerations, .. } => {
            // The UID keeps the change from the next pod of the same name.
            let change = json!({ "metadata": { "uid": uid }, "spec": { "tolerations": tolerations } });
            format!("kubectl patch pod {located} --type=merge -p '{change}'")
        }
        Advice::TakeIntoService | Advice::RemoveTaint { undated: false } => {
            // Without --confirm only such a taint is taken off, and not a fence that was declared meanwhile.
            format!("kubectl lease fence {node} --undo")
        }
        Advice::RemoveTaint { undated: true } => format!("kubectl lease fence {node} --undo --confirm"),
        Advice::WatchNode | Advice::BringNodeBack { .. } => format!("kubectl lease partitions {node} -w"),
        Advice::RepairNode { .. } | Advice::AskAboutTaint => format!("kubectl describe node {node}"),
        Advice::SwitchOff { .. } => format!("kubectl lease fence {node}"),
        Advice::CreateNode => {
            let labels = json!({ "kubernetes.io/hostname": node });
            let object =
                json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": node, "labels": labels } });
            format!("echo '{object}' | kubectl create -f -")
        }
        Advice::AskAboutNode { .. } => format!("kubectl lease partitions {node}"),
    })
}

#[cfg(test)]
mod tests {
    use kube_leases::rules::pod::Toleration;

    use super::*;

    fn pod() -> Pod {
        let pod = json!({
            "metadata": { "name": "db-0", "namespace": "shop", "uid": "5e1f" }, "spec": { "nodeName": "node-1" },
        });
        serde_json::from_value(pod).unwrap()
    }

    fn words(advice: &Advice) -> (String, Option<String>) {
        let Line { what, command } = line(advice, &pod(), "");
        (what, command)
    }

    #[test]
    #[allow(clippy::too_many_lines)] // a table
    fn the_first_words_of_each_advice_and_its_command() {
        let db = || ControllerRef::new("StatefulSet", "db");
        let switch_off = |terms| Advice::SwitchOff { terms };
        let wait = |until| Advice::Wait { until, timeout_seconds: 145 };
        let gone = Some("kubectl wait --for=delete pod/db-0 -n shop --timeout=145s");
        let fence = Some("kubectl lease fence node-1");
        let undo = Some("kubectl lease fence node-1 --undo");
        let watch = Some("kubectl lease partitions node-1 -w");
        let restart =
            |outage| Advice::RestartDeployment { controller: ControllerRef::new("Deployment", "db"), outage };
        let restarted = Some("kubectl rollout restart deployment/db -n shop");
        for (advice, what, command) in [
            (Advice::RemoveManifest, "remove its manifest on node-1", None),
            (
                Advice::WaitForFinalizers { finalizers: vec!["a".into(), "b".into()] },
                "let the controllers that own the finalizers a, b remove them",
                Some("kubectl get pod db-0 -n shop -o jsonpath='{.metadata.finalizers}'"),
            ),
            (wait(WaitFor::GracePeriod { left_seconds: 25 }), "wait: its grace period ends in 25s", gone),
            (wait(WaitFor::PodGc), "wait for pod GC, which deletes what is Terminating there", gone),
            (
                wait(WaitFor::PodGcOfMissingNodes),
                "wait for pod GC, which deletes the pods of missing nodes",
                gone,
            ),
            (
                Advice::Evict { within_budget: true },
                "evict it: this respects PodDisruptionBudgets and its grace period",
                Some("kubectl lease force-delete pod db-0 -n shop --safe"),
            ),
            (
                Advice::WaitForReplicas { controller: db(), wanted: 3 },
                "wait until the 3 replicas of StatefulSet/db are ready, and evict it then",
                Some(
                    "kubectl wait --for=jsonpath='{.status.readyReplicas}'=3 statefulset/db -n shop --timeout=300s",
                ),
            ),
            (
                Advice::WaitForBudget { budgets: vec!["b".into()] },
                "wait until the disruption budget b allows it, and evict it then",
                Some("kubectl get poddisruptionbudgets -n shop -w"),
            ),
            (
                Advice::DescribePod,
                "see what the kubelet says it waits for",
                Some("kubectl describe pod db-0 -n shop"),
            ),
            (
                Advice::ListContainers,
                "on node-1, see whether its containers still run",
                Some("crictl ps --label io.kubernetes.pod.uid=5e1f"),
            ),
            (Advice::ReadKubeletLog, "on node-1, see why", Some("journalctl -u kubelet | grep 5e1f")),
            (
                restart(None),
                "restart its Deployment (strategy Recreate): new pods are created only after all",
                restarted,
            ),
            (
                restart(Some(Outage::UntilNodeEndsIt)),
                "only if an outage is acceptable (all other replicas are terminated too, and none is created \
                 until the kubelet on node-1 has terminated this one): restart its Deployment",
                restarted,
            ),
            (
                restart(Some(Outage::UntilAllHaveEnded { ready: 1, wanted: 2 })),
                "only if an outage is acceptable (1 of 2 replicas are ready; all other",
                restarted,
            ),
            (
                Advice::InspectController {
                    controller: ControllerRef::new("CloneSet", "db"),
                    resource: "cloneset.v1.x/db".into(),
                },
                "check whether two replicas may run at once: CloneSet/db may create",
                Some("kubectl get cloneset.v1.x/db -n shop -o yaml"),
            ),
            (Advice::TakeIntoService, "node-1 sends heartbeats again: remove its out-of-service taint", undo),
            (
                Advice::RemoveTaint { undated: false },
                "first remove the out-of-service taint of node-1: it was added before the last heartbeat of node-1",
                undo,
            ),
            (
                Advice::RemoveTaint { undated: true },
                "unless the machine of node-1 is known to be off, first remove the out-of-service taint of \
                 node-1: the taint has no timeAdded",
                Some("kubectl lease fence node-1 --undo --confirm"),
            ),
            (Advice::WatchNode, "wait until it is known whether the node is gone", watch),
            (
                Advice::RepairNode { then: KubeletThen::RunsOnUnlessEvicted },
                "repair what is wrong on node-1, such as a container runtime that hangs: the pod, if it is not \
                 evicted by then, runs on",
                Some("kubectl describe node node-1"),
            ),
            (
                Advice::BringNodeBack { then: KubeletThen::RunsOn },
                "bring node-1 back: the pod, which is not deleted, then runs on",
                watch,
            ),
            (
                Advice::BringNodeBack { then: KubeletThen::EndsIt },
                "bring node-1 back: its kubelet then terminates the pod in order",
                watch,
            ),
            (
                switch_off(SwitchOffTerms::Silent),
                "power off the machine of node-1, verify that it is off, then mark the node out of service",
                fence,
            ),
            (
                switch_off(SwitchOffTerms::Alive),
                "power off the machine of node-1, verify that it is off, then mark the node out of service when \
                 its heartbeat is older",
                fence,
            ),
            (
                switch_off(SwitchOffTerms::IfOff),
                "if the machine of node-1 is off, mark the node out of service",
                fence,
            ),
            (
                switch_off(SwitchOffTerms::NodeMissing),
                "power off the machine of node-1, and verify that it is off, before pod GC deletes the pod",
                None,
            ),
            (
                Advice::CreateNode,
                "create the node object again, at once: pod GC then leaves the pod alone",
                Some(
                    r#"echo '{"apiVersion":"v1","kind":"Node","metadata":{"labels":{"kubernetes.io/hostname":"node-1"},"name":"node-1"}}' | kubectl create -f -"#,
                ),
            ),
            (Advice::Leave { is_replaced: true }, "leave it: its replacement does not wait for it", None),
            (
                Advice::Leave { is_replaced: false },
                "leave it, or bring node-1 back: no controller creates it elsewhere",
                None,
            ),
            (
                Advice::AskAboutTaint,
                "ask a cluster administrator, with permission to read its heartbeat, whether node-1 is alive",
                Some("kubectl describe node node-1"),
            ),
            (
                Advice::AskAboutNode { taint: true },
                "ask a cluster administrator how node-1 is, and whether it is marked out of service",
                Some("kubectl lease partitions node-1"),
            ),
        ] {
            let (said, typed) = words(&advice);
            assert!(said.starts_with(what), "{said}");
            assert_eq!(typed.as_deref(), command, "{advice:?}");
        }
    }

    #[test]
    fn deletions_without_force() {
        let db = || ControllerRef::new("StatefulSet", "db");
        let budgets = || vec!["b".to_owned(), "c".to_owned()];
        for (terms, what) in [
            (DeleteTerms::NothingRuns, "delete it as usual: there is nothing to wait for"),
            (DeleteTerms::PodGcCompletes, "delete it as usual: pod GC completes it"),
            (DeleteTerms::WithGrace, "delete it as usual, with its grace period"),
            (
                DeleteTerms::NoMajority,
                "delete it as usual, with its grace period, though no majority is ready then",
            ),
            (
                DeleteTerms::IfEnoughReplicas { controller: db() },
                "delete it as usual, with its grace period, if enough replicas of StatefulSet/db are ready without it",
            ),
            (
                DeleteTerms::IfBudgetsAllow,
                "delete it as usual, with its grace period, if no disruption budget forbids it",
            ),
            (
                DeleteTerms::OverBudget,
                "delete it as usual, with its grace period, over the disruption budget",
            ),
            (
                DeleteTerms::SeveralBudgets { budgets: budgets(), over: false },
                "delete it as usual, with its grace period: the API cannot evict a pod that several disruption \
                 budgets (b, c) select",
            ),
            (
                DeleteTerms::SeveralBudgets { budgets: budgets(), over: true },
                "delete it as usual, with its grace period, over a disruption budget: the API cannot evict a pod \
                 that several disruption budgets (b, c) select",
            ),
            (
                DeleteTerms::NodeEndsItLater { controller: db() },
                "delete it as usual: StatefulSet/db creates the replacement at once; the kubelet on node-1 \
                 terminates this pod when the node is back",
            ),
            (
                DeleteTerms::UnlessOutOfService,
                "delete it as usual, with its grace period, unless node-1 is marked out of service; if it is \
                 not, the object is deleted when the kubelet has terminated the pod",
            ),
            (
                DeleteTerms::KubeletEndsIt,
                "delete it as usual, with its grace period: the object is deleted when the kubelet has terminated it",
            ),
        ] {
            for (grace_seconds, flag) in [(None, ""), (Some(1), " --grace-period=1")] {
                let advice = Advice::Delete { terms: terms.clone(), grace_seconds };
                let command = format!("kubectl delete pod db-0 -n shop{flag} --wait=false");
                assert_eq!(words(&advice), (what.to_owned(), Some(command)));
            }
        }
    }

    /// What is stopped is brought back, also where the line is interrupted.
    #[test]
    fn a_controller_that_is_to_be_stopped() {
        let gone = "kubectl wait --for=delete pod -l app=db \
                    --field-selector=status.phase!=Failed,status.phase!=Succeeded -n shop --timeout=150s";
        for kind in ["Deployment", "Job"] {
            let controller = ControllerRef::new(kind, "db");
            let (first, last) = (stop(&controller, "shop", 1), bring_back(&controller, "shop", 1));
            for managed_by in [None, Some(ControllerRef::new("Shop", "s"))] {
                for no_grace in [false, true] {
                    let (what, command) = words(&Advice::StopController {
                        controller: controller.clone(),
                        wanted: 1,
                        selector: "app=db".into(),
                        grace_seconds: if no_grace { 0 } else { 30 },
                        no_grace,
                        managed_by: managed_by.clone(),
                        outage: None,
                    });
                    let line = if no_grace { first.clone() } else { format!("{first} && {gone} && {last}") };
                    assert_eq!(command, Some(line));
                    assert!(what.contains("which ends all its pods"), "{what}");
                    let owner = "(stop Shop/s first, which owns it, and";
                    let by = "such as GitOps or an operator, has to be stopped first";
                    assert_eq!(
                        (what.contains(owner), what.contains(by)),
                        (managed_by.is_some(), managed_by.is_none()),
                        "{what}"
                    );
                    let left = what.contains("the last command of the line brings it back");
                    let listed = what.ends_with("with what 'kubectl lease partitions' lists for it");
                    let by_hand = what.contains("'crictl ps --label io.kubernetes.pod.uid=5e1f'");
                    assert_eq!((left, listed, by_hand), (!no_grace, no_grace, no_grace), "{what}");
                    // Nothing brings it back before its pods are gone.
                    assert!(!what.contains(&last), "{what}");
                }
            }
        }
    }

    #[test]
    fn a_pod_is_kept_from_being_evicted_by_its_own_tolerations() {
        let all: Vec<Toleration> = serde_json::from_value(json!([{ "operator": "Exists" }])).unwrap();
        let patch = r#"kubectl patch pod db-0 -n shop --type=merge -p '{"metadata":{"uid":"5e1f"},"spec":{"tolerations":[{"operator":"Exists"}]}}'"#;
        for (controller, node_missing, then) in [
            (
                Some(ControllerRef::new("Job", "db")),
                false,
                "after node-1 was lost): otherwise Job/db may create a replacement beside it.",
            ),
            (
                None,
                false,
                "after node-1 was lost): otherwise its kubelet terminates it when node-1 is back, and no",
            ),
            (None, true, "after the new node object of node-1 is found unreachable): otherwise its kubelet"),
        ] {
            let (what, command) =
                words(&Advice::KeepFromEviction { controller, node_missing, tolerations: all.clone() });
            let first =
                "first change the tolerations of the pod so that the control plane does not evict it (by";
            assert!(what.starts_with(first), "{what}");
            assert!(
                what.contains(then) && what.contains("Nothing but the tolerations of this pod changes"),
                "{what}"
            );
            assert_eq!(command.as_deref(), Some(patch));
        }
    }

    /// A code with its parameters, and the sentence beside it.
    #[test]
    fn the_document_of_a_way() {
        let terms = DeleteTerms::SeveralBudgets { budgets: vec!["b".into()], over: true };
        let advice = Advice::Delete { terms, grace_seconds: Some(1) };
        let way = Alternative { advice, takes: None };
        let expected = json!({
            "code": "delete", "graceSeconds": 1,
            "terms": { "code": "several-budgets", "budgets": ["b"], "over": true },
            "what": "delete it as usual, with its grace period, over a disruption budget: the API cannot evict a \
                     pod that several disruption budgets (b) select",
            "command": "kubectl --context=b delete pod db-0 -n shop --grace-period=1 --wait=false",
        });
        assert_eq!(document(&way, &pod(), "--context=b"), expected);
    }
}
