//! The table of docs/risks.md, read back from real nodes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, thread,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::stage::{
    Kind, SOON, Stage, await_contact, await_ready, eventually, get, ignore_term, plane, plugin, pod_spec_of,
};

crate::tests![
    the_verdicts_on_real_nodes_are_those_of_the_table,
    the_verdicts_where_a_node_is_gone_are_those_of_the_table,
];

/// The columns of the table, and what begins the name of a workload that is meant by it.
const OWNERS: [(&str, &str); 4] =
    [("no controller", "bare"), ("rolling, several", "several"), ("rolling, one", "one"), ("alone", "alone")];

const KEPT: &str = "not deleted";
const BEGUN: &str = "in its grace";
const STUCK: &str = "beyond its grace";

/// The rows of those that write to storage which others may write too: the risks by node and deletion.
fn table() -> BTreeMap<(String, String), Vec<String>> {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/risks.md")).unwrap();
    let section = text.split("\n## ").find(|section| section.contains("hostPath)\n")).unwrap();
    let row = |line: &str| {
        let mut cells = line.split('|').map(str::trim).skip(1).map(str::to_owned);
        let at = (cells.next()?, cells.next()?);
        let risk = |cell: String| cell.split(' ').next().unwrap().to_owned();
        Some((at, cells.take(OWNERS.len()).map(risk).collect()))
    };
    section.lines().filter(|line| line.starts_with('|')).filter_map(row).collect()
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

/// Compares what is said of a pod with the table; the column and the row of the cell.
fn compare(node: &str, pod: &Value, risk: &str) -> Option<(&'static str, &'static str)> {
    let app = pod["metadata"]["labels"]["app"].as_str().unwrap();
    let column = OWNERS.iter().position(|(_, short)| app.starts_with(short)).unwrap();
    let deletion = deletion(pod)?;
    let row = &table()[&(node.to_owned(), deletion.to_owned())];
    // A set of two has no majority without one of them that is ready: see docs/risks.md, above the tables.
    let is_missed = OWNERS[column].1 == "several" && deletion == KEPT && row[column] == "medium";
    let expected = if is_missed && risk == "high" { risk } else { &row[column] };
    assert_eq!(risk, expected, "{app} on a node that is {node}, {deletion}");
    Some((OWNERS[column].0, deletion))
}

/// What is said of the pods on a node if it is in this state. What has finished, or has not begun to run,
/// is not in the table.
fn look(stage: &Stage, node: &str, contact: &str) -> BTreeSet<(&'static str, &'static str)> {
    let mut seen = BTreeSet::new();
    if contact == "heard" {
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

/// Waits until pods of every owner are seen in each of these rows.
fn see(stage: &Stage, contact: &str, deletions: &[&'static str]) {
    let node = &stage.names()[0];
    let wanted = || {
        let seen = look(stage, node, contact);
        deletions.iter().all(|deletion| OWNERS.iter().all(|(owner, _)| seen.contains(&(*owner, *deletion))))
    };
    eventually(&format!("{contact}: {deletions:?}"), SOON * 2, wanted, || {
        let shown = plugin().run(&["partitions", node]).stdout;
        format!("{:?}\n{shown}\n{}", look(stage, node, contact), stage.describe())
    });
}

/// A workload of each owner, whose pods only wait, whatever they are told.
fn workloads(stage: &Stage, set: &str, grace_seconds: u32) -> Vec<Value> {
    let of = |(_, short): &(&str, &str)| {
        let kind = match *short {
            "bare" => Kind::Pod,
            "alone" => Kind::StatefulSet,
            _ => Kind::Rolling,
        };
        let mut manifest = stage.manifest(kind, &format!("{short}-{set}"));
        ignore_term(&mut manifest, grace_seconds);
        let spec = pod_spec_of(&mut manifest);
        spec["tolerations"] = json!([{ "operator": "Exists" }]);
        spec["containers"][0]["command"][2] = "trap '' TERM; while :; do sleep 5; done".into();
        if *short == "several" {
            manifest["spec"]["replicas"] = 2.into();
        }
        manifest
    };
    OWNERS.iter().map(of).collect()
}

/// Runs sets of workloads, each with its own grace period.
fn run_all(stage: &Stage, sets: &[(&str, u32)]) {
    let items: Vec<Value> = sets.iter().flat_map(|(set, grace)| workloads(stage, set, *grace)).collect();
    plane().apply(&json!({ "apiVersion": "v1", "kind": "List", "items": items }));
    let running = || {
        let pods = get(&["pods", "-n", &stage.namespace, "--field-selector=status.phase=Running"]);
        pods["items"].as_array().unwrap().len()
    };
    // One of each, and two of those that are several.
    let pods = sets.len() * (OWNERS.len() + 1);
    eventually("all run", SOON * 2, || running() == pods, || stage.describe());
}

/// Deletes the pods of a set.
fn delete(stage: &Stage, set: &str) {
    let apps: Vec<String> = OWNERS.iter().map(|(_, short)| format!("{short}-{set}")).collect();
    let selector = format!("app in ({})", apps.join(","));
    stage.kubectl(&["delete", "pods", "-l", &selector, "--wait=false"]);
}

fn the_verdicts_on_real_nodes_are_those_of_the_table() {
    let mut stage = Stage::new();
    let [a, _] = stage.names();
    run_all(&stage, &[("kept", 600), ("begun", 600), ("stuck", 1)]);

    see(&stage, "heard", &[KEPT]);
    delete(&stage, "begun");
    see(&stage, "heard", &[KEPT, BEGUN]);
    stage.a().hang_runtime();
    delete(&stage, "stuck");
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
    delete(&stage, "kept");
    see(&stage, "back", &[BEGUN]);
    // Else what does not want to end is there for ten minutes.
    stage.a().crash();
}

/// A machine that is off, and whose node object was deleted.
fn the_verdicts_where_a_node_is_gone_are_those_of_the_table() {
    let mut stage = Stage::new();
    let [a, _] = stage.names();
    run_all(&stage, &[("kept", 600)]);
    stage.a().crash();
    await_contact(&a, "silent");
    // After a minute the heartbeat of a node that does not exist is believed to be old.
    thread::sleep(Duration::from_secs(40));
    plane().kubectl(&["delete", "node", &a, "--cascade=orphan"]);
    see(&stage, "gone", &[KEPT]);
}
