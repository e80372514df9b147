//! Commands that scale a controller to 0 or suspend it, wait for the end of its pods, and bring it back; and
//! the words for one that was not brought back.

use jiff::SignedDuration;
use kube_leases::rules::{
    advice::timeout_after,
    controller_ref::ControllerRef,
    stopped::{Precondition, SCALED_FROM, SUSPENDED, Stopped, label},
    workload::Kind,
};
use serde_json::{Value, json};

use super::paste::with_flags;

fn patch(controller: &ControllerRef, namespace: &str, patch: &Value) -> String {
    format!("kubectl patch {} -n {namespace} -p '{patch}'", controller.resource())
}

/// Scales a controller that should run so many to 0, or suspends it.
pub fn stop(controller: &ControllerRef, namespace: &str, wanted: i64) -> String {
    let change = if controller.is_job() {
        json!({ "metadata": { "labels": { SUSPENDED: "true" } }, "spec": { "suspend": true } })
    } else {
        json!({ "metadata": { "labels": { SCALED_FROM: wanted.to_string() } }, "spec": { "replicas": 0 } })
    };
    patch(controller, namespace, &change)
}

/// Scales it back, or resumes it.
pub fn bring_back(controller: &ControllerRef, namespace: &str, wanted: i64) -> String {
    let change = if controller.is_job() {
        json!({ "metadata": { "labels": { SUSPENDED: null } }, "spec": { "suspend": false } })
    } else {
        json!({ "metadata": { "labels": { SCALED_FROM: null } }, "spec": { "replicas": wanted } })
    };
    patch(controller, namespace, &change)
}

/// The same for one that was stopped by other means: the number of its replicas is not known, but a placeholder.
pub fn bring_back_unmarked(controller: &ControllerRef, namespace: &str) -> String {
    let at = controller.resource();
    if controller.is_job() {
        return patch(controller, namespace, &json!({ "spec": { "suspend": false } }));
    }
    format!("kubectl scale {at} -n {namespace} --replicas=NUMBER")
}

/// Waits for the end of all pods of a controller that was told to end them. Those that have ended before
/// are not deleted then.
pub fn wait_until_all_gone(namespace: &str, selector: &str, grace: SignedDuration) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "=,._/-".contains(c);
    let quoted = if selector.chars().all(plain) { selector.to_owned() } else { format!("'{selector}'") };
    let phases = "status.phase!=Failed,status.phase!=Succeeded";
    format!(
        "kubectl wait --for=delete pod -l {quoted} --field-selector={phases} -n {namespace} --timeout={}s",
        timeout_after(grace)
    )
}

/// What to say about a controller that was not brought back.
pub struct Notice {
    /// What it is about, and what has to be made sure of.
    pub what: String,
    /// What has to be made sure of before the command is typed; `None` where the command waits for it.
    pub precondition: Option<String>,
    /// What brings it back.
    pub command: String,
}

/// What to say about it; the commands reach the cluster with these flags.
pub fn notice(stopped: &Stopped, flags: &str) -> Notice {
    let Stopped { kind, namespace, name, before, wait, .. } = stopped;
    let controller = ControllerRef::new(kind.name(), name);
    let back = bring_back(&controller, namespace, *before);
    let state = match kind {
        Kind::Job => "was suspended, and not resumed".to_owned(),
        _ => format!("was scaled to 0, and not back to {before}"),
    };
    let forget = format!(
        "if that is on purpose, 'kubectl label {} -n {namespace} {}-' ends this notice",
        controller.resource(),
        label(*kind)
    );
    let precondition = stopped.precondition.as_ref().map(precondition);
    let then = match &precondition {
        Some(first) => format!("{first}, and only then type"),
        None => "this brings it back when all its pods are gone".to_owned(),
    };
    let what = format!("{controller} in {namespace} {state} ({forget}): {then}");
    let command = match wait {
        Some(wait) => {
            format!("{} && {back}", wait_until_all_gone(namespace, &wait.selector, wait.grace))
        }
        None => back,
    };
    Notice {
        what: with_flags(&what, flags),
        precondition: precondition.map(|text| with_flags(&text, flags)),
        command: with_flags(&command, flags),
    }
}

/// For `-o json`.
pub fn document(stopped: &Stopped, flags: &str) -> Value {
    let Notice { what, precondition, command } = notice(stopped, flags);
    json!({
        "kind": stopped.kind.name(), "namespace": stopped.namespace, "name": stopped.name,
        "replicas": (stopped.kind != Kind::Job).then_some(stopped.before),
        "reason": stopped.precondition, "what": what, "precondition": precondition, "command": command,
    })
}

fn precondition(of: &Precondition) -> String {
    let ended = "make sure that they have ended";
    let by_hand = "with 'crictl ps' there or by powering off the machine";
    match of {
        Precondition::LostNodes { nodes } => {
            let each = nodes.iter().map(|node| format!("{} ({})", node.name, node.state.word()));
            format!(
                "containers of its pods may still run on {}, also where the pods are gone; {ended}: bring the \
                 node back, or power off its machine and mark it out of service ('kubectl lease fence')",
                each.collect::<Vec<_>>().join(", ")
            )
        }
        Precondition::NoGracePeriod => format!(
            "its terminationGracePeriodSeconds is 0, so its pods are gone before their containers have ended; {ended} \
             wherever they ran, {by_hand}"
        ),
        Precondition::PodsGone => format!(
            "its pods are gone, which does not show that their containers have ended; {ended} wherever they ran, also \
             on nodes that were deleted since, {by_hand}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use kube_leases::rules::{
        node::NodeContact,
        stopped::{KINDS, LostNode, PodsWait},
    };

    use super::*;

    /// What stops it and what brings it back differ in nothing else.
    #[test]
    fn what_stops_a_controller_marks_it_in_the_same_write() {
        for (controller, stop_with, back_with) in [
            (
                ControllerRef::new("Deployment", "web"),
                r#"kubectl patch deployment/web -n shop -p '{"metadata":{"labels":{"kubectl-lease.dev/scaled-from":"3"}},"spec":{"replicas":0}}'"#,
                r#"kubectl patch deployment/web -n shop -p '{"metadata":{"labels":{"kubectl-lease.dev/scaled-from":null}},"spec":{"replicas":3}}'"#,
            ),
            (
                ControllerRef::new("Job", "web"),
                r#"kubectl patch job/web -n shop -p '{"metadata":{"labels":{"kubectl-lease.dev/suspended":"true"}},"spec":{"suspend":true}}'"#,
                r#"kubectl patch job/web -n shop -p '{"metadata":{"labels":{"kubectl-lease.dev/suspended":null}},"spec":{"suspend":false}}'"#,
            ),
        ] {
            assert_eq!(stop(&controller, "shop", 3), stop_with);
            assert_eq!(bring_back(&controller, "shop", 3), back_with);
        }
        for kind in KINDS {
            let told = stop(&ControllerRef::new(kind.name(), "web"), "shop", 3);
            assert!(told.contains(&format!(r#"{{"{}":""#, label(kind))), "{told}");
        }
    }

    #[test]
    fn a_selector_is_quoted_where_a_shell_would_split_it() {
        for (selector, quoted) in [("app=db,tier", "app=db,tier"), ("a in (b,c)", "'a in (b,c)'")] {
            let command = wait_until_all_gone("shop", selector, SignedDuration::from_secs(30));
            assert_eq!(
                command,
                format!(
                    "kubectl wait --for=delete pod -l {quoted} \
                     --field-selector=status.phase!=Failed,status.phase!=Succeeded -n shop --timeout=150s"
                )
            );
        }
    }

    /// What is to be made sure of comes before the command, and the command waits where there is a pod.
    #[test]
    fn notices() {
        let lost = Precondition::LostNodes {
            nodes: vec![
                LostNode { name: "node-2".into(), state: NodeContact::Gone },
                LostNode { name: "node-3".into(), state: NodeContact::NotReady },
            ],
        };
        let wait = || Some(PodsWait { selector: "app=web".into(), grace: SignedDuration::from_secs(30) });
        for (kind, precondition, wait, state, first) in [
            (Kind::Deployment, None, wait(), "was scaled to 0, and not back to 3", "this brings it back"),
            (
                Kind::ReplicaSet,
                Some(lost),
                wait(),
                "was scaled to 0, and not back to 3",
                "containers of its pods may still run on node-2 (gone), node-3 (notready), also",
            ),
            (
                Kind::Job,
                Some(Precondition::NoGracePeriod),
                None,
                "was suspended, and not resumed",
                "its terminationGracePeriodSeconds is 0",
            ),
            (
                Kind::Job,
                Some(Precondition::PodsGone),
                None,
                "was suspended, and not resumed",
                "its pods are gone",
            ),
        ] {
            let waits = wait.is_some();
            let has_precondition = precondition.is_some();
            let stopped =
                Stopped { kind, namespace: "shop".into(), name: "web".into(), before: 3, precondition, wait };
            let Notice { what, precondition, command } = notice(&stopped, "--context=b");
            let at = format!("{}/web", kind.name().to_lowercase());
            let begins = format!(
                "{}/web in shop {state} (if that is on purpose, 'kubectl --context=b label {at} -n shop {}-' ends this \
                 notice): {first}",
                kind.name(),
                label(kind)
            );
            assert!(what.starts_with(&begins), "{what}");
            assert_eq!(what.ends_with("and only then type"), has_precondition, "{what}");
            assert!(precondition.is_none_or(|text| text.starts_with(first) && what.contains(&text)));
            let back =
                with_flags(&bring_back(&ControllerRef::new(kind.name(), "web"), "shop", 3), "--context=b");
            assert!(command.ends_with(&back), "{command}");
            assert_eq!(command.starts_with("kubectl --context=b wait "), waits, "{command}");
            let lost = what.contains("'kubectl lease --context=b fence'");
            assert_eq!(lost, kind == Kind::ReplicaSet, "{what}");
        }
    }
}
