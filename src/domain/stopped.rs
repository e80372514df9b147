//! Controllers that are told to run none until all their pods are gone, and are brought back then.
//!
//! The line that is printed for it may be interrupted, or wait in vain: the controller then stays as it
//! is. So the same write that tells it to run none leaves a label on it, by which it is found again with
//! one small list, and with what it takes to bring it back. A label, and not an annotation: a Deployment
//! copies its annotations to its `ReplicaSet`s, and annotations cannot be selected by.

use jiff::SignedDuration;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    node::Contact,
    pod::Pod,
    workload::{Kind, Workload},
};

/// On a set that was scaled to 0: how many replicas it had.
pub const SCALED_FROM: &str = "kubectl-lease.dev/scaled-from";
/// On a Job that was suspended.
pub const SUSPENDED: &str = "kubectl-lease.dev/suspended";

/// The kinds that a printed line tells to run none.
pub const KINDS: [Kind; 3] = [Kind::Deployment, Kind::ReplicaSet, Kind::Job];

/// The label that is left on a controller of this kind.
pub fn label(kind: Kind) -> &'static str {
    if kind == Kind::Job { SUSPENDED } else { SCALED_FROM }
}

fn patch(controller: &str, namespace: &str, patch: &Value) -> String {
    format!("kubectl patch {} -n {namespace} -p '{patch}'", controller.to_lowercase())
}

fn is_job(controller: &str) -> bool {
    controller.starts_with("Job/")
}

/// Tells a controller, `Kind/name`, that should run so many to run none.
pub fn stop(controller: &str, namespace: &str, wanted: i64) -> String {
    let change = if is_job(controller) {
        json!({ "metadata": { "labels": { SUSPENDED: "true" } }, "spec": { "suspend": true } })
    } else {
        json!({ "metadata": { "labels": { SCALED_FROM: wanted.to_string() } }, "spec": { "replicas": 0 } })
    };
    patch(controller, namespace, &change)
}

/// Brings it back.
pub fn bring_back(controller: &str, namespace: &str, wanted: i64) -> String {
    let change = if is_job(controller) {
        json!({ "metadata": { "labels": { SUSPENDED: null } }, "spec": { "suspend": false } })
    } else {
        json!({ "metadata": { "labels": { SCALED_FROM: null } }, "spec": { "replicas": wanted } })
    };
    patch(controller, namespace, &change)
}

/// Brings one back that was told to run none by other means, in words: how many it ran is not known.
pub fn bring_back_unmarked(controller: &str, namespace: &str) -> String {
    let at = controller.to_lowercase();
    if is_job(controller) {
        return patch(controller, namespace, &json!({ "spec": { "suspend": false } }));
    }
    format!("kubectl scale {at} -n {namespace}, with --replicas and the number that it ran before,")
}

/// The kubelet needs some time after the grace, and pod GC looks every 20 seconds.
pub fn wait_for(left: SignedDuration) -> String {
    format!("--timeout={}s", left.max(SignedDuration::ZERO).as_secs() + 120)
}

/// Waits for the end of all pods of a controller that was told to end them. Those that have ended before
/// are not deleted then.
pub fn wait_until_all_gone(namespace: &str, selector: &str, grace: SignedDuration) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "=,._/-".contains(c);
    let quoted = if selector.chars().all(plain) { selector.to_owned() } else { format!("'{selector}'") };
    let phases = "status.phase!=Failed,status.phase!=Succeeded";
    format!(
        "kubectl wait --for=delete pod -l {quoted} --field-selector={phases} -n {namespace} {}",
        wait_for(grace)
    )
}

/// What is known of where the pods of controllers that were told to run none are, or were.
#[derive(Clone, Copy, Debug)]
pub struct Whereabouts<'a> {
    /// The pods there are, of whatever controller.
    pub pods: &'a [&'a Pod],
    /// The nodes that may run containers of which nothing tells. Pod GC deletes the objects of pods there
    /// without having asked the machine: that they are gone is no evidence.
    pub lost: &'a [(&'a str, Contact)],
}

/// One that was told to run none, and not brought back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stopped {
    pub kind: &'static str,
    pub namespace: String,
    pub name: String,
    /// How many it is to run; of a Job null.
    pub replicas: Option<i64>,
    pub what: String,
    /// What has to be made sure of before the command is typed; null where the command itself waits for it.
    pub precondition: Option<String>,
    pub command: String,
}

impl Stopped {
    /// Whether a controller is one, by its label and by what it should run.
    pub fn of(kind: Kind, workload: &Workload, whereabouts: Whereabouts<'_>) -> Option<Self> {
        let before = workload.ran_before(kind)?;
        let (name, namespace) = (workload.metadata.name.clone(), workload.metadata.namespace.clone());
        let controller = format!("{}/{name}", kind.name());
        let back = bring_back(&controller, &namespace, before);
        let (state, replicas) = match kind {
            Kind::Job => ("was suspended, and not resumed".to_owned(), None),
            _ => (format!("was scaled to 0, and not back to {before}"), Some(before)),
        };
        let forget = format!(
            "if that is on purpose, 'kubectl label {} -n {namespace} {}-' ends this notice",
            controller.to_lowercase(),
            label(kind)
        );
        let pods: Vec<&Pod> = whereabouts
            .pods
            .iter()
            .copied()
            .filter(|pod| workload.owns(kind, pod) && !pod.is_finished())
            .collect();
        let precondition = precondition(workload, &pods, whereabouts.lost);
        // Longest of all: a pod may be of an earlier template.
        let grace = pods.iter().map(|pod| pod.grace()).max().filter(SignedDuration::is_positive);
        let command = match (workload.selector(kind), grace) {
            (Some(selector), Some(grace)) => {
                format!("{} && {back}", wait_until_all_gone(&namespace, &selector, grace))
            }
            _ => back,
        };
        let then = match &precondition {
            Some(first) => format!("{first}, and only then type"),
            None => "this brings it back when all its pods are gone".to_owned(),
        };
        let what = format!("{controller} in {namespace} {state} ({forget}): {then}");
        Some(Self { kind: kind.name(), namespace, name, replicas, what, precondition, command })
    }

    /// The same, for a cluster that takes these flags to reach.
    #[must_use]
    pub fn reached_by(self, flags: &str) -> Self {
        let with_flags = |text: &str| super::safer::with_flags(text, flags);
        Self {
            what: with_flags(&self.what),
            precondition: self.precondition.as_deref().map(with_flags),
            command: with_flags(&self.command),
            ..self
        }
    }
}

/// What a wait for the end of these pods, the ones there are of a controller, does not show.
fn precondition(workload: &Workload, pods: &[&Pod], lost: &[(&str, Contact)]) -> Option<String> {
    let ended = "make sure that they have ended";
    if !lost.is_empty() {
        let each: Vec<String> =
            lost.iter().map(|(node, contact)| format!("{node} ({})", contact.word())).collect();
        return Some(format!(
            "containers of its pods may still run on {}, also where the pods are gone; {ended}: bring the node back, or \
             switch its machine off and declare it ('kubectl lease fence')",
            each.join(", ")
        ));
    }
    let at_once = pods.iter().any(|pod| pod.least_grace().is_some()) || !workload.grace().is_positive();
    let by_hand = "with 'crictl ps' there or by switching the machine off";
    if at_once {
        return Some(format!(
            "its terminationGracePeriodSeconds is 0, so its pods are gone before their containers have ended; {ended} \
             wherever they ran, {by_hand}"
        ));
    }
    pods.is_empty().then(|| {
        format!(
            "its pods are gone, which does not show that their containers have ended; {ended} wherever they ran, also \
             on nodes that were deleted since, {by_hand}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(labels: &Value, spec: &Value) -> Workload {
        serde_json::from_value(json!({
            "metadata": { "name": "web", "namespace": "shop", "labels": labels }, "spec": spec,
        }))
        .unwrap()
    }

    fn pod(owner: &str, grace: i64, phase: &str) -> Pod {
        let version = if owner == "Job" { "batch/v1" } else { "apps/v1" };
        serde_json::from_value(json!({
            "metadata": {
                "name": "web-1", "namespace": "shop", "labels": { "app": "web" },
                "ownerReferences": [
                    { "apiVersion": version, "kind": owner, "name": "web", "uid": "u", "controller": true },
                ],
            },
            "spec": { "nodeName": "node-1", "terminationGracePeriodSeconds": grace },
            "status": { "phase": phase },
        }))
        .unwrap()
    }

    const NOWHERE: Whereabouts<'_> = Whereabouts { pods: &[], lost: &[] };

    /// By its label, as long as it runs none.
    #[test]
    fn controllers_that_were_not_brought_back() {
        let from = |before: &str| json!({ SCALED_FROM: before });
        let scaled = |at: &str, n: i64| {
            format!(
                r#"kubectl patch {at}/web -n shop -p '{{"metadata":{{"labels":{{"kubectl-lease.dev/scaled-from":null}}}},"spec":{{"replicas":{n}}}}}'"#
            )
        };
        let resumed = r#"kubectl patch job/web -n shop -p '{"metadata":{"labels":{"kubectl-lease.dev/suspended":null}},"spec":{"suspend":false}}'"#;
        let suspended = json!({ SUSPENDED: "true" });
        for (kind, labels, spec, found) in [
            (Kind::Deployment, from("3"), json!({ "replicas": 0 }), Some((Some(3), scaled("deployment", 3)))),
            (Kind::ReplicaSet, from("1"), json!({ "replicas": 0 }), Some((Some(1), scaled("replicaset", 1)))),
            (Kind::Job, suspended.clone(), json!({ "suspend": true }), Some((None, resumed.to_owned()))),
            // It runs again, was told so by others, or has a label that nothing of ours wrote.
            (Kind::Deployment, from("3"), json!({ "replicas": 3 }), None),
            (Kind::Deployment, from("3"), json!({}), None),
            (Kind::Job, suspended.clone(), json!({ "suspend": false }), None),
            (Kind::Deployment, json!({}), json!({ "replicas": 0 }), None),
            (Kind::Job, json!({}), json!({ "suspend": true }), None),
            (Kind::Deployment, from("many"), json!({ "replicas": 0 }), None),
            (Kind::Deployment, from("0"), json!({ "replicas": 0 }), None),
            (Kind::Deployment, from("-1"), json!({ "replicas": 0 }), None),
            (Kind::Deployment, suspended, json!({ "replicas": 0 }), None),
            (Kind::Job, from("3"), json!({ "suspend": true }), None),
        ] {
            let stopped = Stopped::of(kind, &workload(&labels, &spec), NOWHERE);
            let seen = stopped.map(|stopped| (stopped.replicas, stopped.command));
            assert_eq!(seen, found, "{kind:?} {labels} {spec}");
        }
    }

    /// What is waited for, and what has to be made sure of, because no object shows it.
    #[test]
    fn a_controller_is_brought_back_by_evidence() {
        let selector = json!({ "matchLabels": { "app": "web" } });
        let of = |grace: Option<i64>| {
            let template = json!({ "spec": { "terminationGracePeriodSeconds": grace } });
            let spec = json!({ "replicas": 0, "suspend": true, "selector": selector, "template": template });
            let mut workload = workload(&json!({ SCALED_FROM: "3", SUSPENDED: "true" }), &spec);
            workload.metadata.uid = "u".into();
            workload
        };
        let (set, job) = (|grace| pod("ReplicaSet", grace, "Running"), |grace| pod("Job", grace, "Running"));
        let silent = [("node-2", Contact::Silent)];
        let two = [("node-2", Contact::Gone), ("node-3", Contact::NotReady)];
        let [lost, gone, no_grace] = [
            "containers of its pods may still run on node-2 (silent), also",
            "its pods are gone",
            "its terminationGracePeriodSeconds is 0",
        ]
        .map(Some);
        let of_sets = Some("app=web,pod-template-hash");
        for (kind, grace, pods, lost, first, waits, seconds) in [
            (Kind::Deployment, None, vec![set(30)], &[][..], None, of_sets, 150),
            (Kind::ReplicaSet, Some(5), vec![set(5)], &[], None, Some("app=web"), 125),
            (Kind::Job, None, vec![job(30)], &[], None, Some("app=web"), 150),
            // The objects are gone, and so is what tells where they ran.
            (Kind::Deployment, None, vec![], &[], gone, None, 0),
            (Kind::Deployment, None, vec![pod("StatefulSet", 30, "Running")], &[], gone, None, 0),
            (Kind::Deployment, None, vec![pod("ReplicaSet", 30, "Succeeded")], &[], gone, None, 0),
            (Kind::Job, None, vec![set(30)], &[], gone, None, 0),
            // They are no evidence where a node is lost.
            (Kind::Deployment, None, vec![set(30)], &silent, lost, of_sets, 150),
            (Kind::Deployment, None, vec![], &silent, lost, None, 0),
            (
                Kind::Job,
                None,
                vec![],
                &two,
                Some("containers of its pods may still run on node-2 (gone), node-3 (notready), also"),
                None,
                0,
            ),
            // What has no grace is gone before its end, whatever the template says by now.
            (Kind::Deployment, Some(0), vec![], &[], no_grace, None, 0),
            (Kind::Deployment, None, vec![set(0)], &[], no_grace, None, 0),
            (Kind::Deployment, Some(0), vec![set(30)], &[], no_grace, of_sets, 150),
        ] {
            let pods: Vec<&Pod> = pods.iter().collect();
            let stopped = Stopped::of(kind, &of(grace), Whereabouts { pods: &pods, lost }).unwrap();
            let Stopped { what, precondition, command, .. } = &stopped;
            let begins = |text: &String| text.starts_with(first.unwrap_or("nothing"));
            assert_eq!(precondition.as_ref().map(begins), first.map(|_| true), "{kind:?} {stopped:#?}");
            // What is shown has it before the command.
            let then = precondition.as_ref().map(|first| format!(": {first}, and only then type"));
            let then = then.unwrap_or_else(|| ": this brings it back when all its pods are gone".into());
            assert!(what.ends_with(&then), "{what}");
            let wait = waits.map(|selector| {
                format!(
                    "kubectl wait --for=delete pod -l {selector} \
                     --field-selector=status.phase!=Failed,status.phase!=Succeeded -n shop --timeout={seconds}s && "
                )
            });
            assert!(
                command.starts_with(&wait.clone().unwrap_or_else(|| "kubectl patch ".into())),
                "{command}"
            );
            assert_eq!(command.contains("kubectl wait"), wait.is_some(), "{command}");
        }
        let reached =
            Stopped::of(Kind::Deployment, &of(None), Whereabouts { pods: &[&set(30)], lost: &silent });
        let reached = reached.unwrap().reached_by("--context=b");
        assert_eq!(reached.command.matches("kubectl --context=b ").count(), 2, "{reached:?}");
        for text in [&reached.what, reached.precondition.as_ref().unwrap()] {
            assert!(text.contains("'kubectl lease --context=b fence'"), "{text}");
        }
        // Its label may be out of date.
        let told = "'kubectl --context=b label deployment/web -n shop kubectl-lease.dev/scaled-from-' ends this notice";
        assert!(reached.what.contains(told), "{}", reached.what);
    }

    /// What is told and what is brought back differ in nothing else.
    #[test]
    fn what_stops_a_controller_marks_it_in_the_same_write() {
        for (controller, stop_with, back_with) in [
            (
                "Deployment/web",
                r#"kubectl patch deployment/web -n shop -p '{"metadata":{"labels":{"kubectl-lease.dev/scaled-from":"3"}},"spec":{"replicas":0}}'"#,
                r#"kubectl patch deployment/web -n shop -p '{"metadata":{"labels":{"kubectl-lease.dev/scaled-from":null}},"spec":{"replicas":3}}'"#,
            ),
            (
                "Job/web",
                r#"kubectl patch job/web -n shop -p '{"metadata":{"labels":{"kubectl-lease.dev/suspended":"true"}},"spec":{"suspend":true}}'"#,
                r#"kubectl patch job/web -n shop -p '{"metadata":{"labels":{"kubectl-lease.dev/suspended":null}},"spec":{"suspend":false}}'"#,
            ),
        ] {
            assert_eq!(stop(controller, "shop", 3), stop_with);
            assert_eq!(bring_back(controller, "shop", 3), back_with);
        }
        for kind in KINDS {
            let told = stop(&format!("{}/web", kind.name()), "shop", 3);
            assert!(told.contains(&format!(r#"{{"{}":""#, label(kind))), "{told}");
        }
    }
}
