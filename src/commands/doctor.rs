//! `kubectl lease doctor`.

use std::collections::BTreeMap;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::candidates::Controller;
use crate::{
    cli::{Doctor, Manifest},
    cluster::{
        ATTACHMENTS, BUDGETS, CLAIMS, Cluster, DISKS, LEASES, NAMESPACES, NODES, PODS, Query, Resource,
        single::Address,
    },
    domain::{
        diagnosis::{Elector, Facts, Finding, Guard, Level, Right, Seen},
        identity::{self, Identity},
        lease::Lease,
        maintenance,
        node::HEARTBEATS,
        priority::How,
        time::ServerTime,
    },
    error::{Error, Result},
    exit::ExitCode,
    output::{Cell, Change, Format, Item, Printer, Tone},
};

/// The guard of `docs/guard.yaml`.
const GUARD: &str = "kubectl-lease-maintenance";
const POLICIES: Resource = Resource {
    group: "admissionregistration.k8s.io",
    version: "v1",
    plural: "validatingadmissionpolicies",
    kind: "ValidatingAdmissionPolicy",
};
const BINDINGS: Resource = Resource {
    group: "admissionregistration.k8s.io",
    version: "v1",
    plural: "validatingadmissionpolicybindings",
    kind: "ValidatingAdmissionPolicyBinding",
};
const CANDIDATES: Resource = Resource {
    group: "coordination.k8s.io",
    version: "v1beta1",
    plural: "leasecandidates",
    kind: "LeaseCandidate",
};
const EVICTIONS: Resource = Resource { group: "", version: "v1", plural: "pods/eviction", kind: "Eviction" };
/// How many questions are asked at once.
const AT_ONCE: usize = 16;

/// Where a right has to be.
#[derive(Clone, Copy)]
enum Place {
    Everywhere,
    In(&'static str),
    /// In the namespace of `-n` or of the context.
    Here,
}

/// What each command needs, as `docs/rbac.yaml` grants it.
const RIGHTS: [(&str, &[&str], Resource, Place); 20] = [
    ("apiservers", &["list", "watch"], LEASES, Place::In(identity::NAMESPACE)),
    ("candidates", &["list", "watch"], CANDIDATES, Place::Everywhere),
    ("candidates", &["list", "watch"], LEASES, Place::Everywhere),
    ("candidates set-priority", &["patch"], CANDIDATES, Place::Everywhere),
    ("leaders", &["list", "watch"], LEASES, Place::Everywhere),
    ("maint", &["get", "list", "watch"], NODES, Place::Everywhere),
    ("maint", &["get", "list", "watch", "create", "patch"], LEASES, Place::In(maintenance::NAMESPACE)),
    ("hold", &["get", "list", "watch", "create", "patch"], LEASES, Place::Here),
    ("partitions", &["list", "watch"], NODES, Place::Everywhere),
    ("partitions", &["list", "watch"], PODS, Place::Everywhere),
    ("partitions", &["list", "watch"], LEASES, Place::In(HEARTBEATS)),
    ("partitions", &["list"], CLAIMS, Place::Everywhere),
    ("partitions", &["list"], DISKS, Place::Everywhere),
    ("partitions", &["list"], ATTACHMENTS, Place::Everywhere),
    ("partitions", &["list"], BUDGETS, Place::Everywhere),
    ("force-delete", &["get", "list", "delete"], PODS, Place::Here),
    ("force-delete", &["create"], EVICTIONS, Place::Here),
    ("fence", &["get", "patch"], NODES, Place::Everywhere),
    ("fence", &["get"], LEASES, Place::In(HEARTBEATS)),
    ("fence", &["create", "patch"], LEASES, Place::In(maintenance::NAMESPACE)),
];

/// Prints what an administrator applies to the cluster.
pub fn print(manifest: Manifest, printer: &mut Printer) -> Result<ExitCode> {
    printer.raw(match manifest {
        Manifest::Rbac => include_str!("../../docs/rbac.yaml"),
        Manifest::Guard => include_str!("../../docs/guard.yaml"),
    })?;
    Ok(ExitCode::Done)
}

pub async fn run(args: &Doctor, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    // Whether there is a server at all, and its clock, before everything else is asked at once.
    let version = cluster.version().await;
    let version = seen(version)?;
    let system = Query::new(LEASES).namespace(identity::NAMESPACE);
    let (home, operators) =
        (Address::new("", maintenance::NAMESPACE), Address::new("", maintenance::MEDIK8S_NAMESPACE));
    let (candidates, leases, namespace, medik8s, policies, guard, rights) = tokio::join!(
        cluster.discovered_candidates(),
        cluster.list::<Lease>(&system),
        cluster.get::<Value>(NAMESPACES, &home),
        cluster.get::<Value>(NAMESPACES, &operators),
        cluster.serves(POLICIES),
        guard(cluster),
        rights(cluster),
    );
    let candidates = seen(candidates)?;
    let priority = match candidates {
        Seen::Yes(Some(resource)) => cluster.schema_has(resource, "priority").await.ok(),
        _ => None,
    };
    let now = cluster.server_time();
    let there = |found: Result<Option<crate::cluster::Object<Value>>>| -> Result<Seen<bool>> {
        Ok(match seen(found)? {
            Seen::Yes(found) => Seen::Yes(found.is_some()),
            Seen::No => Seen::No,
        })
    };
    let leases = seen(leases)?;
    let facts = Facts {
        version,
        offset: cluster.clock_offset(),
        identities: match &leases {
            Seen::No => Seen::No,
            Seen::Yes(leases) => {
                let all: Vec<_> =
                    leases.items.iter().filter_map(|lease| Identity::from_lease(&lease.value, now)).collect();
                let alive = all.iter().filter(|it| it.state == identity::State::Alive).count();
                Seen::Yes((alive, all.len()))
            }
        },
        elector: match &leases {
            Seen::No => Seen::No,
            Seen::Yes(leases) => {
                let controller = Controller::among(leases.items.iter().map(|lease| &*lease.value), now);
                Seen::Yes(controller.wrong().map_or(Elector::Alive, Elector::Wrong))
            }
        },
        candidates: match candidates {
            Seen::No => Seen::No,
            Seen::Yes(served) => Seen::Yes(served.map(|resource| resource.version)),
        },
        priority: priority.map(|native| if native { How::Native } else { How::Pinned }),
        policies: seen(policies)?,
        namespace: there(namespace)?,
        guard: seen(guard)?,
        medik8s: there(medik8s)?,
        rights: rights?,
        oddities: cluster.oddities(),
    };
    let findings: Vec<Row> = facts.findings().into_iter().map(Row).collect();
    // Said above all in the line of its own.
    cluster.take_skew();
    printer.listing(&findings, args.output, !args.no_headers, now)?;
    if matches!(args.output, Format::Table | Format::Wide) {
        let mut hints: Vec<String> = findings.iter().filter_map(|Row(finding)| finding.advice()).collect();
        hints.dedup();
        for hint in &hints {
            printer.note(hint);
        }
    }
    let failed = findings.iter().any(|Row(finding)| finding.level == Level::Fail);
    Ok(if failed { ExitCode::Held } else { ExitCode::Done })
}

/// What may not be seen is a finding; that there is nobody to ask is an error.
fn seen<T>(answer: Result<T>) -> Result<Seen<T>> {
    match answer {
        Ok(answer) => Ok(Seen::Yes(answer)),
        Err(Error::Forbidden { .. } | Error::NotServed { .. }) => Ok(Seen::No),
        Err(error) => Err(error),
    }
}

/// How the prefix of administrators is guarded: by a policy, and a binding of it that denies.
async fn guard(cluster: &Cluster) -> Result<Guard> {
    #[derive(Deserialize)]
    struct Binding {
        spec: BindingSpec,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    #[derive(Default)]
    struct BindingSpec {
        policy_name: String,
        validation_actions: Vec<String>,
    }
    let (policy, bindings) = (Address::new("", GUARD), Query::new(BINDINGS));
    let home = Address::new(maintenance::NAMESPACE, "");
    let (policy, bindings, yours) = tokio::try_join!(
        cluster.get::<Value>(POLICIES, &policy),
        cluster.list::<Binding>(&bindings),
        cluster.may("administer", LEASES, &home),
    )?;
    if policy.is_none() {
        return Ok(Guard::Absent);
    }
    let denies = |spec: &BindingSpec| {
        spec.policy_name == GUARD && spec.validation_actions.iter().any(|it| it == "Deny")
    };
    let bound = bindings.items.iter().any(|binding| denies(&binding.value.spec));
    Ok(if bound { Guard::InForce { yours } } else { Guard::Unbound })
}

/// Asks the server about every right that any command needs, each once.
async fn rights(cluster: &Cluster) -> Result<Vec<Right>> {
    let needed: Vec<_> = RIGHTS
        .iter()
        .flat_map(|(command, verbs, resource, place)| {
            let namespace = match place {
                Place::Everywhere => "",
                Place::In(namespace) => namespace,
                Place::Here => cluster.namespace(),
            };
            verbs.iter().map(move |verb| (*command, *resource, (*verb, resource.name(), namespace)))
        })
        .collect();
    let questions: BTreeMap<_, _> =
        needed.iter().map(|(_, resource, question)| (question.clone(), *resource)).collect();
    let answers: BTreeMap<_, bool> = stream::iter(questions)
        .map(async |(question, resource)| {
            let (verb, _, namespace) = question;
            let allowed = cluster.may(verb, resource, &Address::new(namespace, "")).await?;
            Ok::<_, Error>((question, allowed))
        })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    let right = |(command, _, question): (_, Resource, _)| {
        let allowed = answers[&question];
        let (verb, name, namespace) = question;
        let place = if namespace.is_empty() { String::new() } else { format!(" in {namespace}") };
        Right { command, verb, what: format!("{name}{place}"), allowed }
    };
    Ok(needed.into_iter().map(right).collect())
}

#[derive(Clone)]
struct Row(Finding);

impl Item for Row {
    const KIND: &'static str = "Finding";

    fn headers(_: bool) -> &'static [&'static str] {
        &["CHECK", "LEVEL", "MESSAGE"]
    }

    fn cells(&self, _: ServerTime, _: bool) -> Vec<Cell> {
        let Finding { check, level, message, .. } = &self.0;
        let tone = match level {
            Level::Ok => Tone::Good,
            Level::Warn => Tone::Doubtful,
            Level::Fail => Tone::Bad,
        };
        vec![Cell::new(check), Cell::new(level.to_string()).tone(tone), Cell::new(message)]
    }

    fn document(&self) -> Map<String, Value> {
        match serde_json::to_value(&self.0) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        }
    }

    fn resource(&self) -> String {
        format!("finding/{}", self.0.check.replace(' ', "-"))
    }

    fn key(&self) -> &str {
        &self.0.check
    }

    fn change(_: Option<&Self>, _: Option<&Self>, _: ServerTime) -> Option<Change> {
        None
    }
}
