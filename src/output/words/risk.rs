//! Words for how risky it is to force-delete a pod, and why.

use kube_leases::rules::{reasons::Reason, risk::Risk};
use serde_json::{Value, json};

use super::volumes::detail;
use crate::output::Tone;

/// The tone of a risk.
pub fn tone(risk: Risk) -> Tone {
    match risk {
        Risk::None | Risk::Low => Tone::Good,
        Risk::Medium => Tone::Doubtful,
        Risk::High | Risk::Critical => Tone::Bad,
    }
}

/// A reason, as a sentence about the pod.
#[allow(clippy::too_many_lines)] // a table
pub fn reason(reason: &Reason) -> String {
    let may_run = "the containers may still be running";
    match reason {
        Reason::MirrorPod { node } => format!(
            "it is a mirror pod (static pod on {node}): deleting it does not end the process, and it comes back"
        ),
        Reason::AnnotatedAsMirrorPod { node } => format!(
            "it is annotated as a mirror pod, though {node} does not own it: if that is true, deleting it does not \
             end the process"
        ),
        Reason::Finalizers { finalizers } => format!(
            "its finalizers ({}) keep the object, whatever the grace period: force deletion does not remove it",
            finalizers.join(", ")
        ),
        Reason::NotScheduled => "it was never scheduled to a node: nothing runs".to_owned(),
        Reason::Finished => "its containers have ended".to_owned(),
        Reason::NodeObjectDeleted { node } => {
            format!("{may_run} on the machine of {node}: deleting the node object does not stop it")
        }
        Reason::NodeOutOfService { node } => {
            format!("{node} is silent and was marked out of service: if its machine is off, nothing runs")
        }
        Reason::NodeSilent { node } => format!("{may_run} on {node}: it sends no heartbeats"),
        Reason::NodeHeartbeats { node } => format!(
            "the containers are most likely running on {node}: its kubelet sends heartbeats, whatever its Ready \
             condition says"
        ),
        Reason::NodeLate { node } => {
            format!("{may_run} on {node}: whether it is gone or only late is not known")
        }
        Reason::NodeNotReady { node } => {
            format!("{may_run} on {node}: its kubelet is alive and not ready, and may be unable to end them")
        }
        Reason::ContainersEnded { node } => {
            format!("{node} is alive and reports that its containers have ended")
        }
        Reason::NodeAlive { node } => {
            format!("{may_run} on {node}, which is alive: force does not wait for them to end")
        }
        Reason::NodeUnknown { node } => format!("{may_run}: whether {node} is alive is not known"),
        Reason::NoGracePeriod => {
            "its terminationGracePeriodSeconds is 0: any deletion that does not ask for more, by the control plane \
             too, removes it as force does"
                .to_owned()
        }
        Reason::StatefulSet { controller, stopped: true } => format!(
            "{controller} is scaled to 0; when it is scaled up again, it creates a replacement with the same name, \
             and relies on at most one running"
        ),
        Reason::StatefulSet { controller, stopped: false } => format!(
            "{controller} creates a replacement with the same name as soon as the object is deleted, and relies \
             on at most one running"
        ),
        Reason::Recreate { controller, stopped: true } => format!(
            "{controller} has the strategy Recreate, which means that two must not run at once; it is scaled to 0, \
             and creates a replacement when it is scaled up again"
        ),
        Reason::Recreate { controller, stopped: false } => format!(
            "{controller} has the strategy Recreate, which means that two must not run at once; but it replaces a \
             pod as soon as that is deleted, by force or not"
        ),
        Reason::CronJobForbids { controller, stopped: true } => format!(
            "the concurrencyPolicy of the CronJob behind {controller} is Forbid, which means that two must not run \
             at once; the Job is suspended, and creates a replacement when it is resumed"
        ),
        Reason::CronJobForbids { controller, stopped: false } => format!(
            "the concurrencyPolicy of the CronJob behind {controller} is Forbid, which means that two must not run \
             at once; but the Job replaces a pod as soon as that is deleted, by force or not"
        ),
        Reason::JobWaitsForFailure { controller, stopped: true } => format!(
            "{controller} (podReplacementPolicy Failed) is suspended; when it is resumed, it creates a replacement, \
             and relies on at most one running"
        ),
        Reason::JobWaitsForFailure { controller, stopped: false } => format!(
            "{controller} (podReplacementPolicy Failed) creates a replacement as soon as the object is deleted, \
             and relies on at most one running"
        ),
        Reason::DaemonSet { controller, node } => format!(
            "{controller} creates a replacement on {node} as soon as the object is deleted: both run there until \
             the kubelet has terminated the first"
        ),
        Reason::UnknownController { controller } => format!(
            "{controller} may rely on at most one running: what it does when the pod is deleted is not known"
        ),
        Reason::ControllerNotRead { controller } => format!(
            "whether {controller} relies on at most one running is not known: no permission to read it, or it \
             does not exist"
        ),
        Reason::ExclusiveVolume { volume } => format!(
            "{} ({}) may then be written by two nodes at once, which can destroy it",
            volume.name,
            detail(&volume.source)
        ),
        Reason::UnknownVolume { volume } => {
            format!("what {} is, and which other nodes may write to it, is not known", volume.name)
        }
        Reason::SharedVolume { volume } => format!(
            "there should be one of it only, and the next one writes to {} ({}) too",
            volume.name,
            detail(&volume.source)
        ),
        Reason::LeaderLease { lease } => {
            format!("it holds the lease {lease}, by the holder's name: two may act as the leader")
        }
        Reason::LeadershipUnknown => "whether it is a leader is not known".to_owned(),
        Reason::BudgetSpent { budget } => {
            format!("PodDisruptionBudget {budget} allows 0 disruptions now; force deletion bypasses it")
        }
        Reason::BudgetsUnknown => "whether a disruption budget forbids it is not known".to_owned(),
        Reason::NoMajority { controller, ready, wanted } => {
            format!("without it {ready} of {wanted} replicas of {controller} are ready: no majority")
        }
        Reason::MajorityUnknown { controller } => {
            format!("whether a majority of {controller} is ready without it is not known")
        }
        Reason::Stuck { node } => {
            format!("the kubelet on {node} is alive but cannot terminate the pod: force deletion would hide the cause")
        }
        Reason::NoController => "it has no controller: it is not replaced".to_owned(),
        Reason::TwoAreHarmless => "its controller does not wait for it: two at once do no harm".to_owned(),
        Reason::PodGc => "pod GC force-deletes it within a minute, without waiting for the kubelet".to_owned(),
    }
}

/// All of them in one line.
pub fn sentences(reasons: &[Reason]) -> String {
    reasons.iter().map(reason).collect::<Vec<_>>().join("; ")
}

/// For `-o json`: the code with its parameters, and the sentence.
pub fn document(of: &Reason) -> Value {
    let mut document = json!(of);
    if let Value::Object(fields) = &mut document {
        fields.insert("message".into(), reason(of).into());
    }
    document
}

#[cfg(test)]
mod tests {
    use kube_leases::rules::{
        controller_ref::ControllerRef,
        volumes::{PodVolume, VolumeSource},
    };

    use super::*;

    #[test]
    #[allow(clippy::too_many_lines)] // a table
    fn reasons_name_what_they_are_about() {
        let (node, controller) = (|| "node-1".to_owned(), || ControllerRef::new("Job", "db"));
        let volume = || PodVolume {
            name: "data".into(),
            source: VolumeSource::Inline { kind: "nfs".into() },
            exclusive: Some(true),
            shared: false,
        };
        let used = "data (nfs, which any node may write)";
        for (of, begins, names) in [
            (Reason::MirrorPod { node: node() }, "it is a mirror pod (static pod on node-1)", "comes back"),
            (Reason::AnnotatedAsMirrorPod { node: node() }, "it is annotated as a mirror pod", "node-1"),
            (Reason::Finalizers { finalizers: vec!["a".into(), "b".into()] }, "its finalizers", "(a, b)"),
            (Reason::NodeObjectDeleted { node: node() }, "the containers may still", "machine of node-1"),
            (Reason::NodeOutOfService { node: node() }, "node-1 is silent", "marked out of service"),
            (
                Reason::NodeSilent { node: node() },
                "the containers may still",
                "on node-1: it sends no heartbeats",
            ),
            (Reason::NodeHeartbeats { node: node() }, "the containers are most likely running", "node-1"),
            (Reason::NodeLate { node: node() }, "the containers may still", "only late is not known"),
            (Reason::NodeNotReady { node: node() }, "the containers may still", "alive and not ready"),
            (Reason::ContainersEnded { node: node() }, "node-1 is alive", "containers have ended"),
            (Reason::NodeAlive { node: node() }, "the containers may still", "node-1, which is alive"),
            (
                Reason::NodeUnknown { node: node() },
                "the containers may still",
                "node-1 is alive is not known",
            ),
            (
                Reason::StatefulSet { controller: controller(), stopped: false },
                "Job/db creates a replacement with",
                "at most one",
            ),
            (
                Reason::StatefulSet { controller: controller(), stopped: true },
                "Job/db is scaled to 0",
                "when it is scaled up again",
            ),
            (
                Reason::Recreate { controller: controller(), stopped: false },
                "Job/db has the strategy Recreate",
                "replaces",
            ),
            (
                Reason::Recreate { controller: controller(), stopped: true },
                "Job/db has the strategy Recreate",
                "when it is scaled up again",
            ),
            (
                Reason::CronJobForbids { controller: controller(), stopped: false },
                "the concurrencyPolicy",
                "behind Job/db",
            ),
            (
                Reason::CronJobForbids { controller: controller(), stopped: true },
                "the concurrencyPolicy",
                "when it is resumed",
            ),
            (
                Reason::JobWaitsForFailure { controller: controller(), stopped: false },
                "Job/db (podReplacementPolicy",
                "replacement",
            ),
            (
                Reason::JobWaitsForFailure { controller: controller(), stopped: true },
                "Job/db (podReplacementPolicy",
                "when it is resumed",
            ),
            (
                Reason::DaemonSet { controller: controller(), node: node() },
                "Job/db creates a replacement",
                "on node-1",
            ),
            (Reason::UnknownController { controller: controller() }, "Job/db may rely", "not known"),
            (
                Reason::ControllerNotRead { controller: controller() },
                "whether Job/db relies",
                "no permission to read it",
            ),
            (Reason::ExclusiveVolume { volume: volume() }, used, "by two nodes at once"),
            (Reason::UnknownVolume { volume: volume() }, "what data is", "not known"),
            (Reason::SharedVolume { volume: volume() }, "there should be one of it only", used),
            (Reason::LeaderLease { lease: "shop/db".into() }, "it holds the lease shop/db", "leader"),
            (
                Reason::BudgetSpent { budget: "b".into() },
                "PodDisruptionBudget b allows 0",
                "force deletion bypasses",
            ),
            (
                Reason::NoMajority { controller: controller(), ready: 1, wanted: 3 },
                "without it 1 of 3 replicas of Job/db are ready",
                "no majority",
            ),
            (
                Reason::MajorityUnknown { controller: controller() },
                "whether a majority of Job/db",
                "not known",
            ),
            (Reason::Stuck { node: node() }, "the kubelet on node-1 is alive but cannot", "would hide"),
        ] {
            let said = reason(&of);
            assert!(said.starts_with(begins) && said.contains(names), "{said}");
        }
    }

    /// A code with its parameters, and the sentence beside it.
    #[test]
    fn the_document_of_a_reason() {
        let of =
            Reason::NoMajority { controller: ControllerRef::new("StatefulSet", "db"), ready: 1, wanted: 3 };
        let expected = json!({
            "code": "no-majority", "controller": "StatefulSet/db", "ready": 1, "wanted": 3,
            "message": "without it 1 of 3 replicas of StatefulSet/db are ready: no majority",
        });
        assert_eq!(document(&of), expected);
    }
}
