//! The permissions that each command needs.

use serde::Serialize;

use kube_leases::rules::{identity, maintenance, node::HEARTBEATS};

/// Where a permission is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In all namespaces, or of what is in none.
    Cluster,
    /// In the namespace of `-n` where there is one, else in all.
    Asked,
    /// In the namespace of `-n` or of the context.
    Here,
    /// In this namespace.
    In(&'static str),
}

/// What a permission is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The command does nothing without it.
    All,
    /// Only this does not work without it.
    Only(&'static str),
    /// To see what medik8s works on, where it does.
    Medik8s,
    /// To create the namespace of maintenance leases, where it is not there.
    Namespace,
}

/// Things of one kind, and their API group.
type Kind = (&'static str, &'static str);

const COORDINATION: &str = "coordination.k8s.io";
const LEASES: Kind = ("leases", COORDINATION);
const CANDIDATES: Kind = ("leasecandidates", COORDINATION);
const NODES: Kind = ("nodes", "");
const PODS: Kind = ("pods", "");
const EVENTS: Kind = ("events", "");
const EVICTIONS: Kind = ("pods/eviction", "");
const WATCH: Purpose = Purpose::Only("--watch");
const WAIT: Purpose = Purpose::Only("--wait");
const WHOSE: Purpose = Purpose::Only("the processes of holders");
const SEVERAL: Purpose = Purpose::Only("several nodes");
const RISK: Purpose = Purpose::Only("the whole risk");
const RECORD: Purpose = Purpose::Only("the Event");
const HOME: Place = Place::In(maintenance::NAMESPACE);

/// What a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// The command that needs it, without `kubectl lease`.
    pub command: &'static str,
    /// The verb in RBAC rules, such as `patch`.
    pub verb: &'static str,
    /// The plural, with a subresource where it is one: `pods/eviction`.
    pub resource: &'static str,
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The namespaces in which it is needed.
    pub place: Place,
    /// What does not work without it.
    pub purpose: Purpose,
}

type CommandNeeds = (&'static str, &'static [&'static str], Kind, Place, Purpose);

/// `docs/rbac.yaml` grants the same, and the tests run every command with no more than what it cannot
/// do without.
const ROWS: &[CommandNeeds] = &[
    ("apiservers", &["list"], LEASES, Place::In(identity::NAMESPACE), Purpose::All),
    ("apiservers", &["watch"], LEASES, Place::In(identity::NAMESPACE), WATCH),
    ("candidates", &["list"], CANDIDATES, Place::Asked, Purpose::All),
    ("candidates", &["list"], LEASES, Place::Asked, Purpose::All),
    ("candidates", &["watch"], CANDIDATES, Place::Asked, WATCH),
    ("candidates", &["watch"], LEASES, Place::Asked, WATCH),
    ("set-priority", &["get", "list", "watch", "patch"], CANDIDATES, Place::Asked, Purpose::All),
    ("set-priority", &["list"], LEASES, Place::Asked, Purpose::All),
    ("set-priority", &["watch"], LEASES, Place::Asked, WAIT),
    ("set-priority", &["patch"], LEASES, Place::Asked, Purpose::Only("repair")),
    ("set-priority", &["delete"], CANDIDATES, Place::Asked, Purpose::Only("prune")),
    ("leaders", &["list"], LEASES, Place::Asked, Purpose::All),
    ("leaders", &["watch"], LEASES, Place::Asked, WATCH),
    ("leaders", &["list", "watch"], PODS, Place::Cluster, WHOSE),
    ("leaders", &["list", "watch"], NODES, Place::Cluster, WHOSE),
    ("maint", &["get"], NODES, Place::Cluster, Purpose::All),
    ("maint", &["get", "create", "patch"], LEASES, HOME, Purpose::All),
    ("maint", &["list"], NODES, Place::Cluster, SEVERAL),
    ("maint", &["list"], LEASES, HOME, SEVERAL),
    ("maint", &["watch"], NODES, Place::Cluster, WATCH),
    ("maint", &["watch"], LEASES, HOME, WATCH),
    ("maint", &["list", "watch"], LEASES, HOME, WAIT),
    ("maint", &["get", "list", "watch"], LEASES, Place::In(maintenance::MEDIK8S_NAMESPACE), Purpose::Medik8s),
    ("maint", &["create"], ("namespaces", ""), Place::Cluster, Purpose::Namespace),
    ("hold", &["get", "list", "watch", "create", "patch"], LEASES, Place::Here, Purpose::All),
    ("partitions", &["list"], NODES, Place::Cluster, Purpose::All),
    ("partitions", &["list"], PODS, Place::Cluster, Purpose::All),
    ("partitions", &["list"], LEASES, Place::In(HEARTBEATS), Purpose::All),
    ("partitions", &["list"], LEASES, Place::Cluster, RISK),
    ("partitions", &["list"], ("persistentvolumeclaims", ""), Place::Cluster, RISK),
    ("partitions", &["list"], ("persistentvolumes", ""), Place::Cluster, RISK),
    ("partitions", &["list"], ("volumeattachments", "storage.k8s.io"), Place::Cluster, RISK),
    ("partitions", &["list"], ("poddisruptionbudgets", "policy"), Place::Cluster, RISK),
    ("partitions", &["get", "list"], ("replicasets", "apps"), Place::Cluster, RISK),
    ("partitions", &["get", "list"], ("deployments", "apps"), Place::Cluster, RISK),
    ("partitions", &["get", "list"], ("statefulsets", "apps"), Place::Cluster, RISK),
    ("partitions", &["get", "list"], ("daemonsets", "apps"), Place::Cluster, RISK),
    ("partitions", &["get", "list"], ("jobs", "batch"), Place::Cluster, RISK),
    ("partitions", &["get", "list"], ("cronjobs", "batch"), Place::Cluster, RISK),
    ("partitions", &["watch"], NODES, Place::Cluster, WATCH),
    ("partitions", &["watch"], PODS, Place::Cluster, WATCH),
    ("partitions", &["watch"], LEASES, Place::In(HEARTBEATS), WATCH),
    ("force-delete", &["get", "delete"], PODS, Place::Here, Purpose::All),
    ("force-delete", &["list"], PODS, Place::Here, Purpose::Only("-l")),
    ("force-delete", &["list"], PODS, Place::Cluster, Purpose::Only("--node")),
    ("force-delete", &["get"], NODES, Place::Cluster, RISK),
    ("force-delete", &["list"], LEASES, Place::Cluster, RISK),
    ("force-delete", &["list"], ("persistentvolumeclaims", ""), Place::Here, RISK),
    ("force-delete", &["list"], ("persistentvolumes", ""), Place::Cluster, RISK),
    ("force-delete", &["list"], ("volumeattachments", "storage.k8s.io"), Place::Cluster, RISK),
    ("force-delete", &["list"], ("poddisruptionbudgets", "policy"), Place::Here, RISK),
    ("force-delete", &["get", "list"], ("replicasets", "apps"), Place::Here, RISK),
    ("force-delete", &["get", "list"], ("deployments", "apps"), Place::Here, RISK),
    ("force-delete", &["get", "list"], ("statefulsets", "apps"), Place::Here, RISK),
    ("force-delete", &["get", "list"], ("daemonsets", "apps"), Place::Here, RISK),
    ("force-delete", &["get", "list"], ("jobs", "batch"), Place::Here, RISK),
    ("force-delete", &["get", "list"], ("cronjobs", "batch"), Place::Here, RISK),
    ("force-delete", &["create"], EVICTIONS, Place::Here, Purpose::Only("--safe")),
    ("force-delete", &["create"], EVENTS, Place::Here, RECORD),
    ("fence", &["get", "patch"], NODES, Place::Cluster, Purpose::All),
    ("fence", &["list"], PODS, Place::Cluster, Purpose::All),
    ("fence", &["get"], LEASES, Place::In(HEARTBEATS), Purpose::All),
    ("fence", &["get", "create", "patch"], LEASES, HOME, Purpose::All),
    ("fence", &["list"], ("volumeattachments", "storage.k8s.io"), Place::Cluster, RISK),
    ("fence", &["watch"], PODS, Place::Cluster, WAIT),
    ("fence", &["create"], EVENTS, Place::In("default"), RECORD),
];

/// Everything that any command needs.
pub fn needs() -> impl Iterator<Item = Need> {
    ROWS.iter().flat_map(|(command, verbs, (resource, group), place, purpose)| {
        verbs.iter().map(move |verb| Need {
            command,
            verb,
            resource,
            group,
            place: *place,
            purpose: *purpose,
        })
    })
}

impl Place {
    /// The namespace, or none for all of them.
    pub fn namespace<'a>(self, typed: Option<&'a str>, current: &'a str) -> Option<&'a str> {
        match self {
            Self::Cluster => None,
            Self::Asked => typed,
            Self::Here => Some(current),
            Self::In(namespace) => Some(namespace),
        }
    }
}

/// A permission that the user lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// The verb in RBAC rules, such as `patch`.
    pub verb: &'static str,
    /// The plural, with a subresource where it is one: `pods/eviction`.
    pub resource: &'static str,
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// `None` for all namespaces, and for what is cluster-scoped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Whether the command does nothing without it.
    pub needed: bool,
}

/// What is missing in words, such as `list, watch pods in shop`.
pub fn words(missing: &[Missing]) -> String {
    let mut kinds: Vec<(Vec<&str>, &Missing)> = Vec::new();
    for right in missing {
        match kinds.iter_mut().find(|(_, kind)| {
            (kind.resource, kind.group, &kind.namespace) == (right.resource, right.group, &right.namespace)
        }) {
            Some((verbs, _)) if verbs.contains(&right.verb) => {}
            Some((verbs, _)) => verbs.push(right.verb),
            None => kinds.push((vec![right.verb], right)),
        }
    }
    let kind = |(verbs, right): &(Vec<&str>, &Missing)| {
        let place = right.namespace.as_ref().map_or_else(String::new, |namespace| format!(" in {namespace}"));
        format!("{} {}{place}", verbs.join(", "), right.resource)
    };
    kinds.iter().map(kind).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_by_kind_and_place() {
        let missing = |verb, resource, namespace: Option<&str>| Missing {
            verb,
            resource,
            group: "",
            namespace: namespace.map(str::to_owned),
            needed: true,
        };
        let all = [
            missing("list", "pods", None),
            missing("list", "pods", Some("shop")),
            missing("watch", "pods", None),
            missing("get", "nodes", None),
            missing("list", "pods", None), // for two commands
        ];
        assert_eq!(words(&all), "list, watch pods; list pods in shop; get nodes");
    }

    #[test]
    fn a_permission_is_checked_where_the_command_needs_it() {
        for (place, typed, namespace) in [
            (Place::Cluster, Some("shop"), None),
            (Place::Asked, Some("shop"), Some("shop")),
            (Place::Asked, None, None),
            (Place::Here, None, Some("current")),
            (Place::In("kube-system"), Some("shop"), Some("kube-system")),
        ] {
            assert_eq!(place.namespace(typed, "current"), namespace, "{place:?}");
        }
    }
}
