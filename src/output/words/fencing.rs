//! Words for a node that is marked out of service.

use kube_leases::{
    client::VOLUME_ATTACHMENTS,
    rules::{
        fencing::{Harm, NodeChange, NodeView, Unfit},
        node::Taint,
        storage::VolumeAttachment,
        time::ServerTime,
    },
};

use super::{
    count,
    nodes::{HEARTBEAT_IS_OLD, heartbeat},
    paste::with_flags,
};

/// The age of its last heartbeat.
pub fn heard(view: &NodeView, now: ServerTime) -> String {
    heartbeat(view.heard(now))
}

/// Why a node may not be fenced, and what to do.
pub fn unfit(unfit: Unfit, view: &NodeView, now: ServerTime, flags: &str) -> (String, String) {
    let (node, heard) = (&view.node.metadata.name, heard(view, now));
    let off_first = || format!("power it off first, and wait until its heartbeat is {HEARTBEAT_IS_OLD}");
    match unfit {
        Unfit::Back => (
            format!("{node} is alive ({heard}), though it is marked out of service"),
            with_flags(&format!("'kubectl lease fence {node} --undo' puts it back into service"), flags),
        ),
        Unfit::Alive => (
            format!("{node} is alive ({heard}): its kubelet sends heartbeats, so its machine is on"),
            off_first(),
        ),
        Unfit::Heartbeats => {
            (format!("{node} sends heartbeats ({heard}), whatever its Ready condition says"), off_first())
        }
        Unfit::Late => (
            format!(
                "{node} missed heartbeats ({heard}), but the node controller has not set Ready to Unknown yet"
            ),
            "try again in a minute: pod GC acts only on a node that is not ready".to_owned(),
        ),
    }
}

/// What has changed since a node was shown. Where it may not be fenced any more, [`unfit`] says why.
pub fn change(change: &NodeChange, view: &NodeView, now: ServerTime) -> String {
    let node = &view.node.metadata.name;
    match change {
        NodeChange::Heard | NodeChange::Unfit(_) => {
            format!("{node} sent a heartbeat meanwhile ({})", heard(view, now))
        }
        NodeChange::PodCame(pod) => format!("{pod} came to {node} meanwhile, and was not shown"),
        NodeChange::Taint => format!("the out-of-service taint of {node} changed meanwhile"),
    }
}

/// What a fence does harm to if the machine is on.
pub fn harm(harm: Harm) -> String {
    match harm {
        Harm::Pods(pods) => format!("{} there would run twice if the machine is on", count(pods, "pod")),
        Harm::Volumes(volumes) => format!(
            "{} attached there would be detached while containers may write there, if the machine is on",
            count(volumes, "volume")
        ),
        Harm::VolumesUnknown => format!(
            "volumes may be attached there (you cannot list {}), and would be detached while containers write to them, \
             if the machine is on",
            VOLUME_ATTACHMENTS.plural
        ),
    }
}

/// A volume that is attached to the node, whether or not there is a pod that uses it.
pub fn attached(attachment: &VolumeAttachment) -> String {
    match attachment.spec.source.persistent_volume_name.as_str() {
        "" => format!("{} is attached there", attachment.metadata.name),
        volume => format!("{volume} is attached there"),
    }
}

/// A taint as `kubectl taint` takes it, and since when.
pub fn taint(Taint { key, value, effect, time_added }: &Taint) -> String {
    let since = time_added.map_or_else(String::new, |time| format!(" since {time:.0}"));
    format!("{key}={value}:{effect}{since}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_fence_is_said_to_do() {
        for (of, words) in [
            (Harm::Pods(1), "1 pod there would run twice"),
            (Harm::Volumes(2), "2 volumes attached there would be detached"),
            (Harm::VolumesUnknown, "volumes may be attached there (you cannot list volumeattachments)"),
        ] {
            assert!(harm(of).starts_with(words), "{}", harm(of));
        }
        let volume = |name: Option<&str>| {
            let source = json!({ "persistentVolumeName": name.unwrap_or_default() });
            let attachment = json!({ "metadata": { "name": "csi-1" }, "spec": { "source": source } });
            attached(&serde_json::from_value(attachment).unwrap())
        };
        assert_eq!(volume(Some("pv-1")), "pv-1 is attached there");
        assert_eq!(volume(None), "csi-1 is attached there");
    }

    #[test]
    fn a_taint_reads_as_kubectl_writes_it() {
        let of = |added: Option<&str>| {
            let taint = json!({ "key": "k", "value": "v", "effect": "NoExecute", "timeAdded": added });
            super::taint(&serde_json::from_value(taint).unwrap())
        };
        assert_eq!(of(None), "k=v:NoExecute");
        assert_eq!(of(Some("2026-01-02T03:04:05Z")), "k=v:NoExecute since 2026-01-02T03:04:05Z");
    }
}
