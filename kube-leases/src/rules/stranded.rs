//! Which pods are stranded: on a node without heartbeats, or on one that does not exist.

use std::collections::BTreeSet;

use super::pod::Pod;

/// Why a pod is stranded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stranding {
    /// Its node has no heartbeats.
    Lost,
    /// There is no node of that name.
    Missing,
}

/// Whether a pod is stranded, by the names of the nodes without heartbeats, and of all nodes where all were looked
/// at: otherwise one that is not among them may exist.
pub fn stranding(pod: &Pod, lost: &BTreeSet<String>, all: Option<&BTreeSet<String>>) -> Option<Stranding> {
    let node = &pod.spec.node_name;
    if pod.is_finished() || node.is_empty() {
        return None;
    }
    if lost.contains(node) {
        return Some(Stranding::Lost);
    }
    all.is_some_and(|all| !all.contains(node)).then_some(Stranding::Missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_pods_are_stranded() {
        let names =
            |names: &[&str]| -> BTreeSet<String> { names.iter().map(|it| (*it).to_owned()).collect() };
        let (lost, all) = (names(&["silent"]), names(&["silent", "fine"]));
        for (node, phase, sees_all, why) in [
            ("silent", "Running", true, Some(Stranding::Lost)),
            ("silent", "Running", false, Some(Stranding::Lost)),
            ("silent", "Pending", true, Some(Stranding::Lost)),
            ("fine", "Running", true, None),
            ("deleted", "Running", true, Some(Stranding::Missing)),
            // It may be a node that was not asked about.
            ("deleted", "Running", false, None),
            // What has ended needs no node, and what was not scheduled has none.
            ("silent", "Succeeded", true, None),
            ("deleted", "Failed", true, None),
            ("", "Pending", true, None),
        ] {
            let mut pod = Pod::default();
            node.clone_into(&mut pod.spec.node_name);
            phase.clone_into(&mut pod.status.phase);
            let judged = stranding(&pod, &lost, sees_all.then_some(&all));
            assert_eq!(judged, why, "{phase} on '{node}', all seen: {sees_all}");
        }
    }
}
