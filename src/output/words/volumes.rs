//! Words for the volumes of a pod.

use kube_leases::rules::volumes::{PodVolume, VolumeSource};
use serde_json::{Value, json};

/// Access modes as kubectl abbreviates them.
pub fn abbreviated(access_modes: &[String]) -> String {
    let short = |mode: &String| match mode.as_str() {
        "ReadWriteOnce" => "RWO".to_owned(),
        "ReadWriteOncePod" => "RWOP".to_owned(),
        "ReadOnlyMany" => "ROX".to_owned(),
        "ReadWriteMany" => "RWX".to_owned(),
        _ => mode.clone(),
    };
    access_modes.iter().map(short).collect::<Vec<_>>().join(",")
}

/// Where its data is.
pub fn detail(source: &VolumeSource) -> String {
    match source {
        VolumeSource::Inline { kind } => format!("{kind}, which any node may write"),
        VolumeSource::HostPath => "hostPath".to_owned(),
        VolumeSource::ClaimNotRead => "not to be seen".to_owned(),
        VolumeSource::ClaimMissing => "there is no such claim".to_owned(),
        VolumeSource::Claim { access_modes, kind, attached_to } => {
            let attached =
                attached_to.as_ref().map_or_else(String::new, |node| format!(", attached to {node}"));
            let kind = kind.as_deref().unwrap_or("kind not known");
            format!("{}, {kind}{attached}", abbreviated(access_modes))
        }
    }
}

/// In a cell of a table: its name, and how it may be used.
pub fn cell(volume: &PodVolume) -> String {
    let use_of_it = match &volume.source {
        VolumeSource::Inline { kind } => kind.clone(),
        VolumeSource::Claim { access_modes, .. } => abbreviated(access_modes),
        source => detail(source),
    };
    format!("{} ({use_of_it})", volume.name)
}

/// For `-o json`.
pub fn document(volume: &PodVolume) -> Value {
    let PodVolume { name, source, exclusive, shared } = volume;
    json!({
        "name": name, "source": source, "detail": detail(source), "exclusive": exclusive, "shared": shared,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_modes_are_abbreviated_as_by_kubectl() {
        let modes = ["ReadWriteOnce", "ReadWriteOncePod", "ReadOnlyMany", "ReadWriteMany", "New"];
        assert_eq!(abbreviated(&modes.map(str::to_owned)), "RWO,RWOP,ROX,RWX,New");
    }

    #[test]
    fn volumes() {
        let claim = |kind: Option<&str>, attached_to: Option<&str>| VolumeSource::Claim {
            access_modes: vec!["ReadWriteOnce".into()],
            kind: kind.map(str::to_owned),
            attached_to: attached_to.map(str::to_owned),
        };
        for (source, in_full, in_a_cell) in [
            (
                VolumeSource::Inline { kind: "iscsi".into() },
                "iscsi, which any node may write",
                "data (iscsi)",
            ),
            (VolumeSource::HostPath, "hostPath", "data (hostPath)"),
            (VolumeSource::ClaimNotRead, "not to be seen", "data (not to be seen)"),
            (VolumeSource::ClaimMissing, "there is no such claim", "data (there is no such claim)"),
            (claim(Some("ebs"), Some("node-1")), "RWO, ebs, attached to node-1", "data (RWO)"),
            (claim(None, None), "RWO, kind not known", "data (RWO)"),
        ] {
            assert_eq!(detail(&source), in_full);
            let volume = PodVolume { name: "data".into(), source, exclusive: None, shared: false };
            assert_eq!(cell(&volume), in_a_cell);
        }
    }
}
