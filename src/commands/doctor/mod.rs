//! `kubectl lease doctor`.

pub mod diagnosis;
mod elections;
pub mod finding;
pub mod guard;
pub mod permissions;

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, TryStreamExt as _, future::try_join_all, stream};
use serde_json::{Map, Value};

use self::diagnosis::{Facts, Guard};
use self::finding::{Finding, Level, Seen, Unseen};
use self::permissions::{Need, needs};
use crate::{
    cli::{Doctor, Manifest},
    connection::Reached,
    error::{Error, Result},
    exit::ExitCode,
    output::{Cell, Change, Format, Item, Printer, Tone, progress::WaitLine, words::remarks::remark},
};
use kube_leases::{
    Error as LibraryError,
    client::{LEASES, NAMESPACES, Query, Resource, single::Address},
    protocols::clocks::measure_clocks,
    rules::{
        clocks::{self, Clocks},
        controller::Controller,
        identity::{self, Identity},
        lease::Lease,
        maintenance,
        priority::How,
        time::ServerTime,
    },
};

const POLICIES: Resource = Resource {
    group: "admissionregistration.k8s.io",
    version: "v1",
    plural: "validatingadmissionpolicies",
    kind: "ValidatingAdmissionPolicy",
};
const BINDINGS: Resource = Resource {
    plural: "validatingadmissionpolicybindings",
    kind: "ValidatingAdmissionPolicyBinding",
    ..POLICIES
};
/// A user with all verbs on this may do anything.
const ANYTHING: Resource = Resource { group: "*", version: "", plural: "*", kind: "" };
/// How many questions are asked at once.
const AT_ONCE: usize = 16;

/// Prints what an administrator applies to the cluster.
pub fn print(manifest: Manifest, printer: &mut Printer) -> Result<ExitCode> {
    printer.raw(match manifest {
        Manifest::Rbac => include_str!("../../../docs/rbac.yaml"),
        Manifest::Guard => guard::MANIFEST,
    })?;
    Ok(ExitCode::Done)
}

pub async fn run(
    args: &Doctor,
    typed: Option<&str>,
    cluster: &Reached,
    printer: &mut Printer,
) -> Result<ExitCode> {
    // Whether there is a server at all, and its clock, before everything else is asked at once.
    let version = match cluster.version().await {
        Err(error @ (LibraryError::Forbidden { .. } | LibraryError::Api { .. })) => seen(Err(error)),
        version => Ok(version?),
    };
    let current = cluster.namespace();
    let system = Query::new(LEASES).namespace(identity::NAMESPACE);
    let (home, medik8s) = (maintenance::NAMESPACE, maintenance::MEDIK8S_NAMESPACE);
    let mut line = args.clocks.then(WaitLine::default);
    if let Some(line) = &mut line {
        let limit = clocks::MEASURED_FOR.as_secs();
        line.say(printer, "waiting for a renewal of each kube-apiserver", &format!(" (up to {limit}s)"));
    }
    let (
        candidates,
        elections,
        leases,
        home,
        medik8s,
        namespace,
        policies,
        guard,
        permissions,
        user,
        measured,
    ) = tokio::join!(
        candidates(cluster),
        elections::troubles(typed, cluster),
        cluster.list::<Lease>(&system),
        is_there(home, cluster),
        is_there(medik8s, cluster),
        is_there(current, cluster),
        cluster.serves(POLICIES),
        look_at_guard(cluster),
        permissions(typed, cluster),
        cluster.whoami(),
        async { if args.clocks { Some(measure_clocks(cluster).await) } else { None } },
    );
    drop(line);
    for said in cluster.take_remarks() {
        printer.warn(&remark(&said));
    }
    let now = cluster.server_time();
    let (candidates, priority) = candidates;
    let leases = seen(leases);
    let identities = leases.as_ref().map_err(Clone::clone).map(|leases| {
        let leases = leases.items.iter();
        leases.filter_map(|lease| Identity::from_lease(&lease.value, now)).collect::<Vec<_>>()
    });
    let clocks = match (measured, &identities) {
        (Some(measured), _) => Some(seen(measured)),
        (None, Ok(all)) if !all.is_empty() => Some(Ok(Clocks::glance(all, now))),
        // That there are none, or may not be seen, is a finding of its own.
        (None, _) => None,
    };
    let identities = identities.map(|all| {
        let alive = all.iter().filter(|it| it.state == identity::ApiserverState::Alive);
        (alive.count(), all.len())
    });
    let elector = leases.as_ref().map_err(Clone::clone).map(|leases| {
        let leases = leases.items.iter().map(|lease| &*lease.value);
        Controller::among(leases, now)
    });
    let facts = Facts {
        version,
        offset: cluster.clock_offset(),
        oddities: cluster.config().map(crate::connection::oddities).unwrap_or_default(),
        identities,
        clocks,
        candidates,
        elector,
        elections: seen(elections),
        priority,
        policies: seen(policies),
        home: seen(home),
        guard: seen(guard),
        medik8s: seen(medik8s),
        namespace: seen(namespace),
        permissions: seen(permissions),
        user: user.unwrap_or_else(|_| "YOU".to_owned()),
        typed: typed.map(str::to_owned),
        current: current.to_owned(),
    };
    // Said in lines of their own.
    cluster.take_skew();
    cluster.take_remarks();
    let findings: Vec<FindingRow> = facts.findings().into_iter().map(FindingRow::new).collect();
    printer.listing(&findings, args.output, !args.no_headers, now)?;
    if matches!(args.output, Format::Table | Format::Wide) {
        advise(&findings, printer);
    }
    let failed = findings.iter().any(|row| row.finding.level == Level::Fail);
    Ok(if failed { ExitCode::Held } else { ExitCode::Done })
}

/// Says what to do, each thing once.
fn advise(findings: &[FindingRow], printer: &mut Printer) {
    let mut told: Vec<&str> = Vec::new();
    for FindingRow { finding, .. } in findings {
        if let Some(hint) = finding.hint.as_deref().filter(|hint| !told.contains(hint)) {
            printer.note(&format!("{}: {hint}", finding.check));
            told.push(hint);
        }
    }
    let mut grants: Vec<&str> = Vec::new();
    for grant in findings.iter().flat_map(|row| &row.finding.grants) {
        if !grants.contains(&grant.as_str()) {
            grants.push(grant);
        }
    }
    if !grants.is_empty() {
        printer.note("permissions: an administrator can grant them with these commands");
        printer.note("  kubectl lease doctor --print rbac | kubectl apply -f -");
        for grant in grants {
            printer.note(&format!("  {grant}"));
        }
    }
}

/// What could not be looked at is a finding, and hinders no other.
fn seen<T>(answer: Result<T, impl Into<Error>>) -> Seen<T> {
    answer.map_err(|error| match error.into() {
        Error::Library(LibraryError::Forbidden { .. }) => Unseen::Forbidden,
        error => Unseen::Failed(error.to_string()),
    })
}

/// In which version candidates are served, and how they get a priority.
async fn candidates(cluster: &Reached) -> (Seen<Option<&'static str>>, Seen<How>) {
    let served = match cluster.discovered_candidates().await {
        Ok(Some(resource)) => resource,
        answer => return (seen(answer.map(|_| None)), Ok(How::Pinned)),
    };
    let native = seen(cluster.schema_has(served, "priority").await);
    (Ok(Some(served.version)), native.map(|native| if native { How::Native } else { How::Pinned }))
}

async fn is_there(namespace: &str, cluster: &Reached) -> Result<bool> {
    let found = cluster.get::<Value>(NAMESPACES, &Address::new("", namespace)).await?;
    Ok(found.is_some_and(|found| found.value["kind"] == "Namespace"))
}

/// How maintenance leases are guarded.
async fn look_at_guard(cluster: &Reached) -> Result<Guard> {
    let named = guard::NAMES.map(|name| Address::new("", name));
    let policies = named.iter().map(|at| cluster.get::<Value>(POLICIES, at));
    let (bindings, home) = (Query::new(BINDINGS), Address::new(maintenance::NAMESPACE, ""));
    let (policies, bindings, yours) = tokio::try_join!(
        try_join_all(policies),
        cluster.list::<Value>(&bindings),
        cluster.may("administer", LEASES, &home),
    )?;
    let policies: Vec<Value> = policies.iter().flatten().map(|policy| (*policy.value).clone()).collect();
    let bindings: Vec<Value> = bindings.items.iter().map(|binding| (*binding.value).clone()).collect();
    Ok(match policies[..] {
        [] => Guard::Absent,
        _ if guard::is_in_force(&policies, &bindings) => Guard::InForce { yours },
        _ => Guard::Altered,
    })
}

/// Asks the server about every permission that any command needs, each once; about none of them if the
/// user may do anything.
async fn permissions(typed: Option<&str>, cluster: &Reached) -> Result<Vec<(Need, bool)>> {
    if cluster.may("*", ANYTHING, &Address::new("", "")).await? {
        return Ok(needs().map(|need| (need, true)).collect());
    }
    let question = |need: &Need| {
        let namespace = need.place.namespace(typed, cluster.namespace()).unwrap_or_default();
        (need.verb, need.resource, need.group, namespace.to_owned())
    };
    let questions: BTreeSet<_> = needs().map(|need| question(&need)).collect();
    let answers: BTreeMap<_, bool> = stream::iter(questions)
        .map(async |question| {
            let (verb, plural, group, namespace) = &question;
            let resource = Resource { group, plural, version: "", kind: "" };
            let allowed = cluster.may(verb, resource, &Address::new(namespace, "")).await?;
            Ok::<_, Error>((question, allowed))
        })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    Ok(needs().map(|need| (need, answers[&question(&need)])).collect())
}

#[derive(Clone)]
struct FindingRow {
    finding: Finding,
    /// The check in words.
    name: String,
}

impl FindingRow {
    fn new(finding: Finding) -> Self {
        Self { name: finding.check.to_string(), finding }
    }
}

impl Item for FindingRow {
    const KIND: &'static str = "Finding";
    const WRAPS: bool = true;

    fn headers(_: bool) -> &'static [&'static str] {
        &["CHECK", "LEVEL", "MESSAGE"]
    }

    fn cells(&self, _: ServerTime, _: bool) -> Vec<Cell> {
        let Finding { level, message, .. } = &self.finding;
        let tone = match level {
            Level::Ok => Tone::Good,
            Level::Warn => Tone::Doubtful,
            Level::Fail => Tone::Bad,
        };
        vec![Cell::new(&self.name), Cell::new(level.to_string()).tone(tone), Cell::new(message)]
    }

    fn document(&self) -> Map<String, Value> {
        match serde_json::to_value(&self.finding) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        }
    }

    fn resource(&self) -> String {
        format!("finding/{}", self.name.replace(": ", "-").replace(' ', "-"))
    }

    fn key(&self) -> &str {
        &self.name
    }

    fn change(_: Option<&Self>, _: Option<&Self>, _: ServerTime) -> Option<Change> {
        None
    }
}
