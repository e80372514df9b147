//! Words for leader-election leases and their holders.

use kube_leases::rules::leader::{Belongs, LeaseState};

/// How a lease stands, as in the tables and in `-o json`.
pub fn state(state: LeaseState) -> &'static str {
    match state {
        LeaseState::Healthy => "healthy",
        LeaseState::Late => "late",
        LeaseState::Expired => "expired",
        LeaseState::Released => "released",
        LeaseState::Ghost => "ghost",
        LeaseState::Unknown => "unknown",
    }
}

/// The process that a holder is, as kubectl names objects.
pub fn process(belongs: &Belongs) -> Option<String> {
    match belongs {
        Belongs::Pod { namespace, name } => Some(format!("pod/{namespace}/{name}")),
        Belongs::Node { name } => Some(format!("node/{name}")),
        Belongs::None | Belongs::Unseen => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_reads_the_same_in_tables_and_in_json() {
        use LeaseState::{Expired, Ghost, Healthy, Late, Released, Unknown};
        for one in [Healthy, Late, Expired, Released, Ghost, Unknown] {
            assert_eq!(serde_json::to_value(one).unwrap(), state(one));
        }
    }

    #[test]
    fn a_process_is_a_pod_or_a_node() {
        let pod = Belongs::Pod { namespace: "apps".into(), name: "web-0".into() };
        let node = Belongs::Node { name: "cp-1".into() };
        let words = [pod, node, Belongs::None, Belongs::Unseen].map(|belongs| process(&belongs));
        let words: Vec<_> = words.iter().map(Option::as_deref).collect();
        assert_eq!(words, [Some("pod/apps/web-0"), Some("node/cp-1"), None, None]);
    }
}
