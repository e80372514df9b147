//! Which leader leases a pod holds, by the names of their holders.

use super::{lease::Lease, pod::Pod};

/// The leader leases that a pod holds, by the names of their holders. A holder names itself as
/// it likes, nearly always after its host: for a pod that is its name, or what it asks for in its place;
/// with host networking it is the node's, and any pod there may be meant. To find one too many costs a
/// question, to miss one may cost data.
pub(super) fn led_by(pod: &Pod, leases: &[Lease]) -> Vec<String> {
    let (name, node) = (pod.metadata.name.as_str(), pod.spec.node_name.as_str());
    let own =
        [name, &pod.spec.hostname, as_host_name(name), as_host_name(&pod.spec.hostname), &pod.metadata.uid];
    let nodes = [node, as_host_name(node), node.split('.').next().unwrap_or_default()];
    let holds = |lease: &&Lease| {
        let holder = lease.holder();
        let at_home = lease.metadata.namespace == pod.metadata.namespace;
        own.iter().any(|name| is_part(name, holder, at_home))
            || (pod.spec.host_network && at_home && nodes.iter().any(|name| is_part(name, holder, true)))
    };
    let full = |lease: &Lease| format!("{}/{}", lease.metadata.namespace, lease.metadata.name);
    leases.iter().filter(holds).map(full).collect()
}

/// A name as the kubelet makes it a host name: the kernel takes no more of it.
fn as_host_name(name: &str) -> &str {
    name.get(..63).unwrap_or(name).trim_end_matches(['-', '.'])
}

/// Whether the name of a holder has this in it as a part of its own, as in `default/db-0`, `db-0_4f1c`,
/// `db-0.shop` and `db-0-4f1c`. Names have '-' in them too, as `web` is a part of `web-7d4b9c8f6d-x2x5z`:
/// what a '-' sets apart is a part of its own only where that is not far-fetched.
fn is_part(part: &str, holder: &str, by_dash: bool) -> bool {
    if part.is_empty() {
        return false;
    }
    holder.match_indices(part).any(|(at, _)| {
        let before = holder[..at].chars().next_back();
        let after = holder[at + part.len()..].chars().next();
        let apart = |c: char| !c.is_alphanumeric() && (by_dash || c != '-');
        before.is_none_or(apart) && after.is_none_or(apart)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_part_of_a_holder_only_where_it_is_set_apart() {
        for (part, holder, elsewhere, at_home) in [
            ("db-0", "db-0", true, true),
            ("db-0", "db-0_4f1c", true, true),
            ("db-0", "default/db-0", true, true),
            ("db-0", "db-0.shop", true, true),
            ("db-0", "db-0-4f1c", false, true),
            ("db-0", "my-db-0", false, true),
            ("db-0", "db-01", false, false),
            ("web", "web-7d4b9c8f6d-x2x5z_1", false, true),
            ("", "db-0", false, false),
        ] {
            assert_eq!(is_part(part, holder, false), elsewhere, "'{part}' in '{holder}', elsewhere");
            assert_eq!(is_part(part, holder, true), at_home, "'{part}' in '{holder}', at home");
        }
    }
}
