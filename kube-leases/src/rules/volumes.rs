//! The volumes of a pod: where their data is, and whether two pods that write to them at once do harm.

use serde::Serialize;

use super::{
    pod::{Pod, VolumeLocation},
    storage,
    surroundings::Surroundings,
};

/// A volume of a pod whose data does not go with the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PodVolume {
    /// The name of its `PersistentVolumeClaim`, or that of the volume in the pod.
    pub name: String,
    /// Where its data is.
    pub source: VolumeSource,
    /// Two nodes that use it at once may destroy it; null if that could not be found out.
    pub exclusive: Option<bool>,
    /// It is not destroyed by that, but written by all that use it.
    pub shared: bool,
}

/// Where the data of a volume is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum VolumeSource {
    /// Outside the node, without a claim: nothing in Kubernetes says which nodes may write to it.
    Inline {
        /// As in the pod, such as `iscsi`, or `csi` and the driver.
        kind: String,
    },
    /// A directory of the node.
    HostPath,
    /// A `PersistentVolumeClaim` that may not be read.
    ClaimNotRead,
    /// A `PersistentVolumeClaim` that does not exist.
    ClaimMissing,
    /// A `PersistentVolumeClaim`.
    Claim {
        /// Those of its volume, or what it asks for.
        access_modes: Vec<String>,
        /// What the `PersistentVolume` is made of; null if that is not known.
        kind: Option<String>,
        /// The node of the pod, if the volume is attached to it.
        attached_to: Option<String>,
    },
}

/// Reads the volumes of a pod.
pub(super) fn volumes_of(pod: &Pod, around: &Surroundings) -> Vec<PodVolume> {
    let volumes = pod.spec.volumes.iter();
    volumes
        .filter_map(|volume| {
            let source = volume.source(&pod.metadata.name)?;
            let written = pod.writes(&volume.name);
            Some(match source {
                VolumeLocation::Inline(kind) => PodVolume {
                    name: volume.name.clone(),
                    source: VolumeSource::Inline { kind },
                    exclusive: Some(written),
                    shared: false,
                },
                VolumeLocation::HostPath => PodVolume {
                    name: volume.name.clone(),
                    source: VolumeSource::HostPath,
                    exclusive: Some(false),
                    shared: written,
                },
                VolumeLocation::Claim(claim) => by_claim(pod, claim, written, around),
            })
        })
        .collect()
}

fn by_claim(pod: &Pod, claim: String, written: bool, around: &Surroundings) -> PodVolume {
    let full = format!("{}/{claim}", pod.metadata.namespace);
    let unknown = |name: String, source| {
        let exclusive = if written { None } else { Some(false) };
        PodVolume { name, source, exclusive, shared: written }
    };
    let Some(claims) = &around.claims else { return unknown(claim, VolumeSource::ClaimNotRead) };
    let Some(found) = claims.get(&full) else { return unknown(claim, VolumeSource::ClaimMissing) };
    let volume = around.volumes.as_ref().and_then(|volumes| volumes.get(&found.spec.volume_name));
    let is_attached = around.attachments.iter().flatten().any(|attachment| {
        attachment.spec.node_name == pod.spec.node_name
            && attachment.spec.source.persistent_volume_name == found.spec.volume_name
            && !found.spec.volume_name.is_empty()
    });
    let (modes, kind) = match volume {
        Some(volume) => (&volume.spec.access_modes, Some(volume.spec.kind())),
        None => (&found.spec.access_modes, None),
    };
    let is_block = |mode: &str| mode == storage::BLOCK;
    let blocks =
        is_block(&found.spec.volume_mode) || volume.is_some_and(|volume| is_block(&volume.spec.volume_mode));
    let volume_mode = if blocks { storage::BLOCK } else { "" };
    let exclusive = match kind {
        _ if !written => Some(false),
        Some(kind) => Some(storage::is_exclusive(modes, kind, volume_mode)),
        // An exclusive mode is one whatever the kind; a shared one may still be a bare block device.
        None => storage::is_exclusive(modes, "", volume_mode).then_some(true),
    };
    let shared = written && modes.iter().any(|mode| mode != "ReadOnlyMany");
    let source = VolumeSource::Claim {
        access_modes: modes.clone(),
        kind: kind.map(str::to_owned),
        attached_to: is_attached.then(|| pod.spec.node_name.clone()),
    };
    PodVolume { name: claim, source, exclusive, shared }
}
