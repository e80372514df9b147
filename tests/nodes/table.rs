//! The tables of docs/risks.md, read back from real nodes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::stage::{
    Kind, SOON, Seen, Stage, await_contact, await_ready, eventually, get, ignore_term, plane, plugin,
    pod_spec_of,
};

crate::tests![
    the_verdicts_on_real_nodes_are_those_of_the_table,
    the_verdicts_where_a_machine_is_off_are_those_of_the_table,
];

/// The columns of a table, and what begins the name of a workload that is meant by it.
const OWNERS: [(&str, &str); 4] =
    [("no controller", "bare"), ("rolling, several", "several"), ("rolling, one", "one"), ("alone", "alone")];

/// A part of the name of a workload, and of the heading of its table.
const STORAGES: [(&str, &str); 3] =
    [("none", "Writes to nothing"), ("shared", "others may write too"), ("once", "ReadWriteOnce")];

const KEPT: &str = "not deleted";
const BEGUN: &str = "in its grace period";
const STUCK: &str = "beyond its grace period";

/// Of a row, the storage, the node and the deletion.
type At = (String, String, String);

/// The risks of the rows.
fn tables() -> BTreeMap<At, Vec<String>> {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/risks.md")).unwrap();
    let mut rows = BTreeMap::new();
    for (storage, heading) in STORAGES {
        let is = |section: &&str| section.lines().next().unwrap().contains(heading);
        let section = text.split("\n## ").find(is).unwrap();
        for line in section.lines().filter(|line| line.starts_with('|')) {
            let mut cells = line.split('|').map(str::trim).skip(1).map(str::to_owned);
            let (node, deletion) = (cells.next().unwrap(), cells.next().unwrap());
            let risk = |cell: String| cell.split(' ').next().unwrap_or_default().to_owned();
            let risks = cells.take(OWNERS.len()).map(risk).collect();
            rows.insert((storage.to_owned(), node, deletion), risks);
        }
    }
    rows
}

/// How far the deletion of a pod has come; `None` where that changes just now.
fn deletion(pod: &Value) -> Option<&'static str> {
    let Some(until) = pod["metadata"]["deletionTimestamp"].as_str() else { return Some(KEPT) };
    let overdue = Timestamp::now().duration_since(until.parse().unwrap());
    let stuck = SignedDuration::from_secs(15);
    let moment = SignedDuration::from_secs(4);
    match overdue - stuck {
        over if over > moment => Some(STUCK),
        over if over < -moment => Some(BEGUN),
        _ => None,
    }
}

/// A cell: the storage, the owner, the deletion.
type Cell = (&'static str, &'static str, &'static str);

/// Compares what is said of a pod with the table; the cell.
fn compare(node: &str, pod: &Value, risk: &str) -> Option<Cell> {
    let app = pod["metadata"]["labels"]["app"].as_str().unwrap();
    let mut words = app.split('-');
    let (owner, storage) = (words.next().unwrap(), words.next().unwrap());
    let column = OWNERS.iter().position(|(_, short)| *short == owner).unwrap();
    let storage = STORAGES.iter().find(|(short, _)| *short == storage).unwrap().0;
    let deletion = deletion(pod)?;
    let containers = pod["status"]["containerStatuses"].as_array();
    if containers.is_some_and(|all| all.iter().all(|it| !it["state"]["terminated"].is_null())) {
        return None;
    }
    let row = &tables()[&(storage.to_owned(), node.to_owned(), deletion.to_owned())];
    // A set of two has no majority without one of them that is ready: see docs/risks.md, above the tables.
    let is_missed = OWNERS[column].1 == "several" && deletion == KEPT && row[column] == "medium";
    let expected = if is_missed && risk == "high" { risk } else { &row[column] };
    assert_eq!(risk, expected, "{app} on a node that is {node}, {deletion}");
    Some((storage, OWNERS[column].0, deletion))
}

/// What is said of the pods on a node if it is in this state. What has finished, or has not begun to run,
/// is not in the table; nor is what its kubelet reports to have ended, after a restart of the machine.
fn look(stage: &Stage, node: &str, contact: &str) -> BTreeSet<Cell> {
    let mut seen = BTreeSet::new();
    if contact == "alive" {
        let pods = get(&["pods", "-n", &stage.namespace]);
        let said = plugin().run(&["force-delete", "-l", "app", "-n", &stage.namespace, "--dry-run=client"]);
        let said = said.expect(0).stderr;
        for pod in pods["items"].as_array().unwrap().iter().filter(|pod| pod["spec"]["nodeName"] == node) {
            let title = format!(
                "{}/{}, risk of force-deleting it: ",
                stage.namespace,
                pod["metadata"]["name"].as_str().unwrap()
            );
            let risk = said.lines().find_map(|line| line.strip_prefix(&title));
            seen.extend(risk.and_then(|risk| compare(contact, pod, risk)));
        }
        return seen;
    }
    let said = plugin().run(&["partitions", node, "-o", "json"]).stdout;
    let Ok(said) = serde_json::from_str::<Value>(&said) else { return seen };
    if said["state"] != contact {
        return seen;
    }
    for stranded in said["pods"].as_array().unwrap() {
        if stranded["namespace"] == stage.namespace {
            seen.extend(compare(contact, &stranded["pod"], stranded["risk"].as_str().unwrap()));
        }
    }
    seen
}

/// Waits until pods of every storage and owner are seen in each of these rows.
fn see(stage: &Stage, contact: &str, deletions: &[&'static str]) {
    let node = &stage.names()[0];
    let cells = |deletion: &'static str| {
        STORAGES.iter().flat_map(move |(storage, _)| OWNERS.map(|(owner, _)| (*storage, owner, deletion)))
    };
    let wanted: BTreeSet<Cell> = deletions.iter().flat_map(|deletion| cells(deletion)).collect();
    let missing = || wanted.difference(&look(stage, node, contact)).copied().collect::<Vec<_>>();
    eventually(
        &format!("{contact}: {deletions:?}"),
        SOON * 2,
        || missing().is_empty(),
        || {
            let shown = plugin().run(&["partitions", node]).stdout;
            format!("{:?}\n{shown}\n{}", missing(), stage.describe())
        },
    );
}

/// A set of workloads, with the grace period of their pods.
struct Set {
    name: &'static str,
    grace_seconds: u32,
    /// Whether the objects of the pods stay when they are deleted by pod GC.
    kept: bool,
}

const fn set(name: &'static str, grace_seconds: u32) -> Set {
    Set { name, grace_seconds, kept: false }
}

/// What keeps an object.
const FINALIZER: &str = "kubectl-lease.dev/test";

/// A workload of each owner and storage, whose pods only wait, whatever they are told.
fn workloads(stage: &Stage, set: &Set) -> Vec<Value> {
    let of = |storage: &str, short: &str| {
        let kind = match short {
            "bare" => Kind::Pod,
            "alone" => Kind::StatefulSet,
            _ => Kind::Rolling,
        };
        let mut manifest = stage.manifest(kind, &format!("{short}-{storage}-{}", set.name));
        ignore_term(&mut manifest, set.grace_seconds);
        let spec = pod_spec_of(&mut manifest);
        spec["tolerations"] = json!([{ "operator": "Exists" }]);
        spec["containers"][0]["command"][2] = "trap '' TERM; while :; do sleep 5; done".into();
        match storage {
            "none" => {
                spec["volumes"] = json!([]);
                spec["containers"][0]["volumeMounts"] = json!([]);
            }
            "once" => {
                let claim = json!({ "claimName": CLAIM });
                spec["volumes"] = json!([{ "name": "disk", "persistentVolumeClaim": claim }]);
            }
            _ => {}
        }
        if short == "several" {
            manifest["spec"]["replicas"] = 2.into();
        }
        if set.kept {
            let of_pods = if kind == Kind::Pod { &mut manifest } else { &mut manifest["spec"]["template"] };
            of_pods["metadata"]["finalizers"] = json!([FINALIZER]);
        }
        manifest
    };
    let all = STORAGES.iter().flat_map(|(storage, _)| OWNERS.map(|(_, short)| (*storage, short)));
    all.map(|(storage, short)| of(storage, short)).collect()
}

/// A claim for storage that one node at a time may use.
pub const CLAIM: &str = "once";

/// The claim, and the volume that it is bound to.
pub fn storage(stage: &Stage) -> [Value; 2] {
    let name = format!("once-{}", stage.namespace);
    let common = json!({ "accessModes": ["ReadWriteOnce"], "storageClassName": "" });
    let with = |fields: Value| {
        let mut spec = common.clone();
        spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        spec
    };
    let volume = with(json!({
        "capacity": { "storage": "1Mi" }, "hostPath": { "path": stage.disk.folder },
        "claimRef": { "namespace": stage.namespace, "name": CLAIM },
    }));
    let claim = with(json!({ "volumeName": name, "resources": { "requests": { "storage": "1Mi" } } }));
    [
        json!({ "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name }, "spec": volume }),
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": { "name": CLAIM, "namespace": stage.namespace }, "spec": claim,
        }),
    ]
}

/// Runs sets of workloads.
fn run_all(stage: &Stage, sets: &[Set]) {
    let sets_of = sets.iter().flat_map(|set| workloads(stage, set));
    let items: Vec<Value> = storage(stage).into_iter().chain(sets_of).collect();
    plane().apply(&json!({ "apiVersion": "v1", "kind": "List", "items": items }));
    let running = || {
        let pods = get(&["pods", "-n", &stage.namespace, "--field-selector=status.phase=Running"]);
        pods["items"].as_array().unwrap().len()
    };
    // One of each, and two of those that are several.
    let pods = sets.len() * STORAGES.len() * (OWNERS.len() + 1);
    eventually("all run", SOON * 3, || running() == pods, || stage.describe());
}

/// The names of the workloads of a set.
fn apps(set: &str) -> Vec<String> {
    let all = STORAGES.iter().flat_map(|(storage, _)| OWNERS.map(|(_, short)| (*storage, short)));
    all.map(|(storage, short)| format!("{short}-{storage}-{set}")).collect()
}

/// Deletes the pods of a set, with their grace or another.
fn delete(stage: &Stage, set: &str, grace: Option<&str>) {
    let selector = format!("app in ({})", apps(set).join(","));
    let mut args = vec!["delete", "pods", "-l", &selector, "--wait=false"];
    args.extend(grace);
    stage.kubectl(&args);
}

const SHORT: Option<&str> = Some("--grace-period=1");

/// Keeps the first node from ending the pods of a set, and from nothing else.
fn hang(stage: &Stage, set: &str) {
    let node = stage.first();
    let pods: Vec<Seen> = apps(set).iter().flat_map(|app| stage.pods(app)).collect();
    for pod in pods.iter().filter(|pod| pod.node == node.name) {
        eventually("its shim hangs", SOON, || node.hang_pod(&pod.uid), || stage.describe());
    }
}

fn the_verdicts_on_real_nodes_are_those_of_the_table() {
    let mut stage = Stage::new();
    let [a, _] = stage.names();
    run_all(&stage, &[set("kept", 600), set("begun", 600), set("stuck", 1)]);

    see(&stage, "alive", &[KEPT]);
    hang(&stage, "stuck");
    delete(&stage, "begun", None);
    delete(&stage, "stuck", None);
    see(&stage, "alive", &[KEPT, BEGUN, STUCK]);
    stage.a().hang_runtime();
    see(&stage, "notready", &[KEPT, BEGUN, STUCK]);
    stage.a().partition();
    see(&stage, "late", &[KEPT, BEGUN, STUCK]);
    see(&stage, "silent", &[KEPT, BEGUN, STUCK]);
    stage.a().crash();
    plugin().run(&["fence", &a, "--confirm", "--i-have-fenced"]).expect(0);
    see(&stage, "fenced", &[KEPT]);
    stage.a().start();
    await_ready(&a);
    see(&stage, "back", &[KEPT]);
    hang(&stage, "kept");
    delete(&stage, "kept", None);
    see(&stage, "back", &[BEGUN]);
    delete(&stage, "kept", SHORT);
    see(&stage, "back", &[STUCK]);
    // Else what does not want to end is there for ten minutes.
    stage.a().crash();
}

/// And declared to be off; and then its node object is deleted, without its heartbeat.
fn the_verdicts_where_a_machine_is_off_are_those_of_the_table() {
    let mut stage = Stage::new();
    let [a, _] = stage.names();
    let sets = [set("kept", 600), Set { kept: true, ..set("fenced", 600) }, set("gone", 600)];
    run_all(&stage, &sets);
    stage.a().crash();
    await_contact(&a, "silent");
    plugin().run(&["fence", &a, "--confirm", "--i-have-fenced"]).expect(0);
    see(&stage, "fenced", &[KEPT]);
    // Pod GC deletes them by force within 20 seconds; the objects stay.
    delete(&stage, "fenced", None);
    see(&stage, "fenced", &[BEGUN]);
    delete(&stage, "fenced", SHORT);
    see(&stage, "fenced", &[STUCK]);
    // After a minute the heartbeat of a node that does not exist is believed to be old. Pod GC leaves the
    // pods there for 40 seconds.
    plane().kubectl(&["delete", "node", &a, "--cascade=orphan"]);
    delete(&stage, "gone", None);
    see(&stage, "gone", &[KEPT, BEGUN]);
    delete(&stage, "gone", SHORT);
    see(&stage, "gone", &[STUCK]);
    stage.kubectl(&["delete", "deployments,statefulsets", "--all", "--cascade=orphan"]);
    for pod in apps("fenced").iter().flat_map(|app| stage.pods(app)) {
        let patch = r#"{"metadata":{"finalizers":null}}"#;
        stage.kubectl(&["patch", "pod", &pod.name, "--type=merge", "-p", patch]);
    }
}
