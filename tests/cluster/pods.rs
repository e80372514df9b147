//! `partitions`, `force-delete` and `fence`, on a real control plane with pod GC and the
//! controllers of stateful and replica sets at work. Nodes are objects that the tests write; there is no kubelet.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kube_leases::{
    client::{Cluster, Object, PODS, Query},
    rules::pod::Pod,
};
use kubectl_lease::{cli::Connection, connection};
use serde_json::{Value, json};

use crate::{
    harness::{
        User,
        faults::{Fault, FaultProxy, Gate},
        random,
    },
    plugin::{BINARY, Plugin, wait_for},
    shared,
};

const SOON: Duration = Duration::from_secs(10);
/// The controllers begin when one of them has been elected.
const CONTROLLED: Duration = Duration::from_secs(60);
/// Pod GC looks every 20 seconds.
const COLLECTED: Duration = Duration::from_secs(55);

fn plugin() -> Plugin {
    Plugin::new(shared().kubeconfig(User::Admin, 0))
}

fn ago(seconds: i64) -> jiff::Timestamp {
    jiff::Timestamp::now() - jiff::SignedDuration::from_secs(seconds)
}

/// Writes a node that was last heard of so many seconds ago, and what the node controller says of it.
fn write_node(name: &str, age: i64, ready: &str) {
    let heartbeat = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": name, "namespace": "kube-node-lease" },
        "spec": { "holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": format!("{:.6}", ago(age)) },
    });
    // The status is older: a kubelet writes it every five minutes.
    let time = format!("{:.0}", ago(age.max(300)));
    let ready = json!({
        "type": "Ready", "status": ready, "reason": "Test", "message": "",
        "lastHeartbeatTime": time, "lastTransitionTime": time,
    });
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "labels": { "test": name } },
        "status": { "conditions": [ready] },
    });
    shared().apply(&json!({ "apiVersion": "v1", "kind": "List", "items": [heartbeat, node] }));
}

/// A dead node of this test's own.
fn silent_node() -> String {
    let name = format!("dead-{}", random());
    write_node(&name, 600, "Unknown");
    name
}

/// A living one, for as long as it takes the node controller to find out.
fn living_node() -> String {
    let name = format!("alive-{}", random());
    write_node(&name, 1, "True");
    name
}

/// A namespace of this test's own.
fn namespace() -> String {
    let name = format!("pods-{}", random());
    shared().kubectl(&["create", "namespace", &name]);
    name
}

fn template(node: &str) -> Value {
    json!({
        "nodeName": node, "tolerations": [{ "operator": "Exists" }],
        "containers": [{ "name": "main", "image": "x" }],
    })
}

fn pod(namespace: &str, name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": namespace, "labels": { "app": name } },
        "spec": template(node),
    })
}

/// A set of one pod on a node, of this kind; the pod's name.
fn owned_pod(kind: &str, namespace: &str, node: &str) -> String {
    let mut set = json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": { "name": "set", "namespace": namespace },
        "spec": {
            "replicas": 1, "selector": { "matchLabels": { "app": "set" } },
            "template": { "metadata": { "labels": { "app": "set" } }, "spec": template(node) },
        },
    });
    if kind == "StatefulSet" {
        set["spec"]["serviceName"] = "set".into();
    }
    shared().apply(&set);
    let names = || {
        let path = "jsonpath={.items[*].metadata.name}";
        shared().kubectl(&["get", "pods", "-n", namespace, "-l", "app=set", "-o", path])
    };
    wait_for("its pod", CONTROLLED, || !names().is_empty(), String::new);
    names()
}

fn uid(namespace: &str, pod: &str) -> String {
    shared().kubectl(&[
        "get",
        "pod",
        "-n",
        namespace,
        pod,
        "--ignore-not-found",
        "-o",
        "jsonpath={.metadata.uid}",
    ])
}

#[test]
fn a_stateful_pod_of_a_silent_node_takes_the_phrase_and_the_replacement_is_shown() {
    let (namespace, node) = (namespace(), silent_node());
    let name = owned_pod("StatefulSet", &namespace, &node);
    shared().kubectl(&["delete", "pod", "-n", &namespace, &name, "--wait=false"]);
    let before = uid(&namespace, &name);
    for flags in [&[][..], &["--confirm"]] {
        let args = [&["force-delete", "pod", &name, "-n", &namespace][..], flags].concat();
        plugin()
            .run(&args)
            .expect(6)
            .says(&format!("{namespace}/{name}, risk of force-deleting it: critical"))
            .says(&format!("the containers may still be running on {node}"))
            .says("StatefulSet/set creates a replacement with the same name as soon as the object is deleted")
            .says(&format!("kubectl lease fence {node}"))
            .says("hint: --confirm --i-have-fenced");
    }
    let args = ["force-delete", "pod", &name, "-n", &namespace, "--reason", "it burnt"];
    // The node is heard of while the question is being answered.
    let mut terminal = plugin().start_on_terminal(&args, 40, 200);
    terminal.until("the question", SOON, |screen| screen.contains(&format!("Type '{node} is off'")));
    write_node(&node, 300, "Unknown");
    terminal.types(&format!("{node} is off\r"));
    assert_eq!(terminal.wait(), 5, "{}", terminal.screen());
    for (typed, code) in
        [("\r", 6), ("y\r", 6), (&*format!("{name}\r"), 6), (&*format!("{node} is off\r"), 0)]
    {
        assert_eq!(uid(&namespace, &name), before, "not deleted without the phrase");
        let mut terminal = plugin().start_on_terminal(&args, 40, 200);
        terminal.until("the question", SOON, |screen| screen.contains(&format!("Type '{node} is off'")));
        terminal.types(typed);
        assert_eq!(terminal.wait(), code, "{}", terminal.screen());
        if code == 0 {
            let after = uid(&namespace, &name);
            assert_ne!(after, before);
            let told = format!(
                "{namespace}/{name} is gone, replaced by {namespace}/{name} with the uid {after}, on {node}"
            );
            terminal.until("the replacement", SOON, |screen| screen.contains(&told));
        }
    }
    let outcome = plugin()
        .run(&["force-delete", &name, "-n", &namespace, "--confirm", "--i-have-fenced", "--wait=10s"])
        .expect(124)
        .says(&format!("{namespace}/{name} is not ready yet"));
    assert!(outcome.stdout.contains("replaced by"), "{outcome:?}");
    let events = shared().kubectl(&["get", "events", "-n", &namespace, "-o", "json"]);
    let events: Value = serde_json::from_str(&events).unwrap();
    let all = events["items"].as_array().unwrap();
    let about = |event: &&Value| {
        event["reason"] == "ForceDeleted" && event["involvedObject"]["uid"] == before.as_str()
    };
    let event = all.iter().find(about).unwrap();
    let message = event["message"].as_str().unwrap();
    assert!(
        message.starts_with("force-deleted by admin@")
            && message.contains("it burnt (risk critical, confirmed to be fenced: "),
        "{message}"
    );
}

#[test]
fn risks_follow_the_evidence() {
    let (namespace, dead, alive) = (namespace(), silent_node(), living_node());
    let stateful = owned_pod("StatefulSet", &namespace, &alive);
    let mut mirror = pod(&namespace, "mirror", &alive);
    mirror["metadata"]["annotations"] = json!({ "kubernetes.io/config.mirror": "x" });
    let mut kept = pod(&namespace, "kept", &alive);
    kept["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let mut disk = pod(&namespace, "disk", &dead);
    disk["spec"]["volumes"] = json!([{ "name": "d", "persistentVolumeClaim": { "claimName": "d" } }]);
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "d", "namespace": namespace },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": namespace,
            "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": namespace },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" }, "storageClassName": "",
            "csi": { "driver": "disk.example.com", "volumeHandle": "v" },
        },
    });
    let attachment = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": { "name": namespace },
        "spec": { "attacher": "disk.example.com", "nodeName": dead, "source": { "persistentVolumeName": namespace } },
    });
    let leader = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "lead", "namespace": namespace },
        "spec": { "holderIdentity": "leader_0f8f", "leaseDurationSeconds": 15, "renewTime": format!("{:.6}", ago(500)) },
    });
    let mut unscheduled = pod(&namespace, "unscheduled", "");
    unscheduled["spec"].as_object_mut().unwrap().remove("nodeName");
    shared().apply(&json!({ "apiVersion": "v1", "kind": "List", "items": [
        mirror, kept, claim, volume, attachment, disk, leader, unscheduled,
        pod(&namespace, "finished", &dead), pod(&namespace, "bare", &alive), pod(&namespace, "leader", &dead),
    ] }));
    let succeeded = r#"{"status":{"phase":"Succeeded"}}"#;
    shared().kubectl(&[
        "patch",
        "pod",
        "finished",
        "-n",
        &namespace,
        "--subresource=status",
        "-p",
        succeeded,
    ]);
    let stateless = {
        let namespace = self::namespace();
        let name = owned_pod("ReplicaSet", &namespace, &dead);
        (namespace, name)
    };
    // Pod GC deletes it 40 seconds after it has missed the node.
    shared().apply(&pod(&namespace, "orphan", &format!("none-{namespace}")));
    // It lives on, however long the rest has taken.
    write_node(&alive, 1, "True");
    for (namespace, name, risk, told) in [
        (&namespace, stateful.as_str(), "critical", "kubectl lease force-delete pod set-0 -n"),
        (&stateless.0, &stateless.1, "low", "two at once do no harm"),
        (&namespace, "finished", "none", "its containers have ended"),
        (&namespace, "unscheduled", "none", "nothing runs"),
        (&namespace, "orphan", "low", "create the node object again"),
        (&namespace, "bare", "medium", "it has no controller"),
        (&namespace, "leader", "critical", "it holds the lease"),
        (&namespace, "disk", "critical", &format!("d: RWO, disk.example.com, attached to {dead}")),
    ] {
        let outcome = plugin().run(&["force-delete", name, "-n", namespace, "--dry-run"]).expect(0);
        assert_eq!(outcome.stdout, format!("{namespace}/{name} force-deleted, risk {risk} (dry run)\n"));
        outcome.says(&format!("{namespace}/{name}, risk of force-deleting it: {risk}\n")).says(told);
        assert_ne!(uid(namespace, name), "", "{name} is still there");
    }
    for (name, told) in
        [("mirror", "does not end the process"), ("kept", "(example.com/hold) keep the object")]
    {
        let args = ["force-delete", name, "-n", &namespace, "--confirm"];
        plugin()
            .run(&args)
            .expect(6)
            .says(&format!("error: force does not help with {namespace}/{name}"))
            .says(told);
        assert_ne!(uid(&namespace, name), "");
    }
    plugin()
        .run(&["force-delete", "kept", "-n", &namespace, "--confirm", "--anyway"])
        .expect(0)
        .says("is marked for deletion and still there: kept by example.com/hold");
    shared().kubectl(&[
        "patch",
        "pod",
        "kept",
        "-n",
        &namespace,
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":null}}"#,
    ]);
}

#[test]
fn a_pod_that_was_replaced_meanwhile_is_not_deleted() {
    let (namespace, node) = (namespace(), living_node());
    let manifest = pod(&namespace, "db", &node);
    shared().apply(&manifest);
    let mut terminal = plugin().start_on_terminal(&["force-delete", "pod/db", "-n", &namespace], 40, 200);
    terminal.until("the question", SOON, |screen| {
        screen.contains("Force-delete") && screen.contains("Enter stops")
    });
    shared().kubectl(&["delete", "pod", "db", "-n", &namespace, "--grace-period=0", "--force"]);
    shared().apply(&manifest);
    let new = uid(&namespace, "db");
    terminal.types("y\r");
    assert_eq!(terminal.wait(), 5, "{}", terminal.screen());
    terminal.until("why", SOON, |screen| screen.contains("changed after it was read"));
    assert_eq!(uid(&namespace, "db"), new);

    // The same pod, changed: what was shown is not what would be deleted.
    let mut terminal = plugin().start_on_terminal(&["force-delete", "pod/db", "-n", &namespace], 40, 200);
    terminal.until("the question", SOON, |screen| screen.contains("Enter stops"));
    shared().kubectl(&["label", "pod", "db", "-n", &namespace, "changed=yes"]);
    terminal.types("y\r");
    assert_eq!(terminal.wait(), 5, "{}", terminal.screen());
    assert_eq!(uid(&namespace, "db"), new);
}

/// A heartbeat in the node's status alone: its lease stays as old as it is.
fn heard_by_status(node: &str, ready: &str) {
    let time = format!("{:.0}", ago(0));
    let ready = json!({ "type": "Ready", "status": ready, "lastHeartbeatTime": time });
    let patch = json!({ "status": { "conditions": [ready] } }).to_string();
    shared().kubectl(&["patch", "node", node, "--subresource=status", "-p", &patch]);
}

#[test]
fn a_node_that_comes_back_meanwhile_keeps_its_pods() {
    let (namespace, node) = (namespace(), silent_node());
    let name = owned_pod("StatefulSet", &namespace, &node);
    let before = uid(&namespace, &name);
    let made_anew = || {
        shared().kubectl(&["delete", "node", &node]);
        write_node(&node, 600, "Unknown");
    };
    let meanwhile: [&dyn Fn(); 2] = [&made_anew, &|| heard_by_status(&node, "True")];
    for happens in meanwhile {
        let args = ["force-delete", "pod", &name, "-n", &namespace];
        let mut terminal = plugin().start_on_terminal(&args, 40, 200);
        terminal.until("the question", SOON, |screen| screen.contains(&format!("Type '{node} is off'")));
        happens();
        terminal.types(&format!("{node} is off\r"));
        assert_eq!(terminal.wait(), 5, "{}", terminal.screen());
        terminal.until("why", SOON, |screen| screen.contains("was not deleted"));
        assert_eq!(uid(&namespace, &name), before);
    }

    // The first of several is deleted, and that moment a heartbeat comes: the others stay.
    let dead = silent_node();
    let pods = ["pod-a", "pod-b", "pod-c"].map(|name| pod(&namespace, name, &dead));
    shared().apply(&json!({ "apiVersion": "v1", "kind": "List", "items": pods }));
    let proxy = FaultProxy::start(shared(), {
        let dead = dead.clone();
        move |method, path| {
            if method == "DELETE" && path.contains("/pods/pod-a") {
                heard_by_status(&dead, "Unknown");
            }
            Fault::None
        }
    });
    let outcome = Plugin::new(proxy.kubeconfig)
        .run(&["force-delete", "pod-a", "pod-b", "pod-c", "-n", &namespace, "--confirm"])
        .expect(5)
        .says(&format!("{dead} sent a heartbeat meanwhile: {namespace}/pod-b was not deleted"))
        .says(&format!("{dead} sent a heartbeat meanwhile: {namespace}/pod-c was not deleted"));
    assert_eq!(outcome.stdout.matches(" force-deleted").count(), 1, "{outcome:?}");
    assert_eq!(uid(&namespace, "pod-a"), "");
    assert!(!uid(&namespace, "pod-b").is_empty() && !uid(&namespace, "pod-c").is_empty());
}

#[test]
fn a_deletion_without_an_answer_says_what_became_of_the_pod() {
    let (namespace, node) = (namespace(), silent_node());
    for (name, fault, then, code, told) in [
        ("done", Fault::CutAfter, Fault::None, 0, ""),
        ("kept", Fault::CutBefore, Fault::None, 1, "kept is still there"),
        ("unknown", Fault::CutAfter, Fault::Refuse(403), 1, "whether"),
    ] {
        shared().apply(&pod(&namespace, name, &node));
        let asked = AtomicBool::new(false);
        let proxy = FaultProxy::start(shared(), move |method, path| {
            if !path.contains(&format!("/pods/{name}")) {
                return Fault::None;
            }
            if method == "DELETE" {
                asked.store(true, Ordering::Relaxed);
                return fault;
            }
            if asked.load(Ordering::Relaxed) { then } else { Fault::None }
        });
        let args = ["force-delete", name, "-n", &namespace, "--confirm"];
        Plugin::new(proxy.kubeconfig).run(&args).expect(code).says(told);
        assert_eq!(uid(&namespace, name).is_empty(), fault == Fault::CutAfter, "{name}");
    }
}

#[test]
fn an_empty_selector_is_not_all_pods() {
    let (namespace, node) = (namespace(), silent_node());
    shared().apply(&pod(&namespace, "web", &node));
    for selector in ["", " "] {
        plugin().run(&["force-delete", "-l", selector, "-n", &namespace, "--confirm"]).expect(2);
    }
    assert_ne!(uid(&namespace, "web"), "");
    plugin().run(&["force-delete", "pod", "-l", "app=web", "-n", &namespace, "--confirm"]).expect(0);
    assert_eq!(uid(&namespace, "web"), "");
}

/// Gives a user rights, in a namespace or in all.
fn allow(user: &str, namespace: Option<&str>, rights: &[&str]) {
    let name = format!("{user}-{}", random());
    let (kind, place) = match namespace {
        Some(namespace) => ("role", vec!["-n", namespace]),
        None => ("clusterrole", Vec::new()),
    };
    shared().kubectl(&[&["create", kind, &name][..], rights, &place].concat());
    let (role, user) = (format!("--{kind}={name}"), format!("--user={user}"));
    shared().kubectl(&[&["create", &format!("{kind}binding"), &name, &role, &user][..], &place].concat());
}

#[test]
fn rights_by_name_and_in_one_namespace_are_enough() {
    let (namespace, node) = (namespace(), silent_node());
    let names: Vec<String> = (10..27).map(|n| format!("web-{n}")).collect();
    let pods: Vec<Value> = names.iter().map(|name| pod(&namespace, name, &node)).collect();
    shared().apply(&json!({ "apiVersion": "v1", "kind": "List", "items": pods }));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (user, verbs) in [("lister", "get,list,delete"), ("getter", "get,delete")] {
        let user = format!("{user}-{namespace}");
        allow(&user, Some(&namespace), &[&format!("--verb={verbs}"), "--resource=pods"]);
        let args = [&["force-delete", "-n", &namespace, "--dry-run", "--as", &user][..], &names].concat();
        let outcome = plugin().run(&args).expect(0);
        assert_eq!(outcome.stdout.lines().count(), 17, "{outcome:?}");
    }
    let user = format!("named-{namespace}");
    let some = ["--resource-name=web-10", "--resource-name=web-11"];
    allow(&user, Some(&namespace), &[&["--verb=get,delete", "--resource=pods"][..], &some].concat());
    allow(&user, Some(&namespace), &["--verb=get", "--resource=pods"]);
    let run = |names: &[&str]| {
        let args = ["force-delete", "-n", &namespace, "--dry-run=server", "--as", &user];
        plugin().run(&[&args[..], names].concat())
    };
    run(&["web-10", "web-11"]).expect(0);
    run(&["web-10", "web-12"]).expect(7);
}

#[test]
fn a_watch_sees_what_a_look_sees() {
    let (seer, blind) = (format!("seer-{}", random()), format!("blind-{}", random()));
    for user in [&seer, &blind] {
        allow(user, None, &["--verb=get,list,watch", "--resource=nodes,pods"]);
    }
    let leases = ["--verb=get,list,watch", "--resource=leases.coordination.k8s.io"];
    allow(&seer, Some("kube-node-lease"), &leases);
    let late = format!("late-{}", random());
    write_node(&late, 45, "True");
    let selector = format!("test={late}");
    let watching = plugin().start(&["partitions", "-w", "-l", &selector, "--as", &seer]);
    watching.until("the late node", SOON, |text| text.contains(&format!("{late}   late")));
    let watching = plugin().start(&["partitions", "-w", "-l", &selector, "--as", &blind]);
    watching.until_stderr("the warning", SOON, |text| text.contains("you cannot read the leases"));
}

#[test]
fn without_a_terminal_a_yes_is_a_flag() {
    let (namespace, node) = (namespace(), silent_node());
    let name = owned_pod("ReplicaSet", &namespace, &node);
    let before = uid(&namespace, &name);
    let args = ["force-delete", "pod", &name, "-n", &namespace];
    plugin().run(&args).expect(6).says("there is no terminal to ask on").says(
        "hint: --safe --confirm to delete it with its grace period; --confirm deletes it without asking",
    );
    plugin().run(&["force-delete", &name, "-n", &namespace, "--dry-run=server", "--confirm"]).expect(0);
    assert_eq!(uid(&namespace, &name), before);
    let (user, kubeconfig) = shared().unique_admin();
    Plugin::new(kubeconfig).run(&["force-delete", &name, "-n", &namespace, "--dry-run"]).expect(0);
    let asked = shared().audited(&user);
    let harmless = |request: &&String| {
        request.starts_with("get ") || request.starts_with("list ") || request.contains("/selfsubjectreviews")
    };
    assert!(asked.iter().filter(harmless).count() == asked.len() && asked.len() <= 6, "{asked:#?}");
    let outcome = plugin().run(&["force-delete", &name, "-n", &namespace, "--confirm"]).expect(0);
    assert!(
        outcome.stdout.contains(&format!("{namespace}/{name} is gone, replaced by {namespace}/set-")),
        "{outcome:?}"
    );
    assert_eq!(uid(&namespace, &name), "");

    // All that is stranded on a node, and nothing else.
    shared().apply(&pod(&namespace, "other", &node));
    let outcome = plugin().run(&["force-delete", "--node", &node, "--confirm"]).expect(0);
    assert_eq!(outcome.stdout.matches(" force-deleted, risk low").count(), 2, "{outcome:?}");
    plugin().run(&["force-delete", "-l", "app=none", "-n", &namespace, "--confirm"]).expect(3);
    plugin().run(&["force-delete", "nope", "-n", &namespace]).expect(3).says("there is no pod 'nope'");
    let names = || shared().kubectl(&["get", "pods", "-n", &namespace, "-l", "app=set", "-o", "name"]);
    wait_for("the next one", CONTROLLED, || !names().is_empty(), String::new);

    // Without a name: what could be meant.
    plugin()
        .run(&["force-delete", "pod"])
        .expect(2)
        .says("error: no pod is named")
        .says("hint: stranded or stuck: ");
    let mut terminal = plugin().start_on_terminal(&["force-delete"], 30, 200);
    terminal.until("the choice", SOON, |screen| screen.contains("Stranded and stuck pods; space marks"));
    // Enter without a mark.
    terminal.types("\r");
    assert_eq!(terminal.wait(), 6, "{}", terminal.screen());
}

/// What a script asks before it decides, and what it is told of what was done: also where nothing was.
#[test]
fn the_verdict_on_a_pod_is_a_document() {
    let (namespace, silent, alive) = (namespace(), silent_node(), living_node());
    shared().apply(&pod(&namespace, "lost", &silent));
    let stateful = owned_pod("StatefulSet", &namespace, &alive);
    let document = |args: &[&str], code| {
        let outcome = plugin().run(&[&["force-delete", "-n", &namespace], args].concat()).expect(code);
        let document: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{outcome:?}"));
        (document, outcome)
    };
    let before = uid(&namespace, "lost");
    let (verdict, _) = document(&["lost", "--dry-run", "-o", "json"], 0);
    assert_eq!(
        [&verdict["kind"], &verdict["name"], &verdict["uid"], &verdict["node"], &verdict["risk"]],
        [&json!("PodDeletion"), &json!("lost"), &json!(before), &json!(silent), &json!("low")]
    );
    assert_eq!([&verdict["takes"], &verdict["refused"]], [&json!(["confirm"]), &Value::Null]);
    assert_eq!([&verdict["choice"], &verdict["result"]], ["force", "dry-run"]);
    assert_eq!(verdict["reasons"][0]["code"], "node-silent", "{verdict}");
    assert_eq!(uid(&namespace, "lost"), before);

    // Critical, and no flag is enough: the verdict says so, and so does the attempt.
    let (verdict, _) = document(&[&stateful, "--dry-run=client", "-o", "json"], 0);
    assert_eq!([&verdict["risk"], &verdict["refused"]], ["critical", "node-alive"], "{verdict}");
    assert_eq!(verdict["takes"], json!(["confirm", "i-have-fenced"]));
    let both = [&stateful, "lost", "--confirm", "--i-have-fenced", "-o", "json"];
    let (attempt, _) = document(&both, 6);
    assert_eq!(attempt["kind"], "PodDeletionList");
    let of = |name: &str| attempt["items"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
    assert_eq!(
        [&of(&stateful)["result"], &of(&stateful)["error"]["exitCode"]],
        [&json!("refused"), &json!(6)]
    );
    assert_eq!([&of("lost")["choice"], &of("lost")["result"]], [&json!("force"), &Value::Null], "{attempt}");

    // What was done, and what came of it; what is for people is on stderr.
    let (done, outcome) = document(&["lost", "--confirm", "-o", "json"], 0);
    assert_eq!([&done["result"], &done["outcome"]["gone"]], [&json!("done"), &json!(true)], "{done}");
    assert!(outcome.stderr.contains("lost force-deleted, risk low"), "{outcome:?}");
    assert_eq!(uid(&namespace, "lost"), "");
    plugin().run(&["force-delete", &stateful, "-n", &namespace, "-o", "table"]).expect(2);
}

/// Not all goes, not all is waited for, the reader goes, or the user does.
#[test]
fn what_was_done_is_told_whatever_comes_after_it() {
    let (namespace, silent, alive) = (namespace(), silent_node(), living_node());
    let stateful = owned_pod("StatefulSet", &namespace, &alive);
    let run = |args: &[&str], code| {
        plugin().run(&[&["force-delete", "-n", &namespace], args].concat()).expect(code).stdout
    };
    let parsed = |text: &str| -> Value { serde_json::from_str(text).unwrap_or_else(|_| panic!("{text}")) };
    let finalizers = |name: &str, finalizers: &str| {
        let patch = format!(r#"{{"metadata":{{"finalizers":{finalizers}}}}}"#);
        shared().kubectl(&["patch", "pod", name, "-n", &namespace, "-p", &patch]);
    };
    for name in ["kept", "free"] {
        shared().apply(&pod(&namespace, name, &silent));
    }
    finalizers("kept", r#"["test/keeps"]"#);

    // All verdicts, also beside one that force does not help, and one that no flag is enough for.
    let all = parsed(&run(&["--node", &silent, "--dry-run", "-o", "json"], 6));
    let of = |name: &str| all["items"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
    assert_eq!([&of("kept")["result"], &of("free")["result"]], ["refused", "dry-run"], "{all}");
    assert_eq!(run(&["--node", &silent, "--dry-run", "-o", "name"], 6), "pod/free\n");
    let verdict = parsed(&run(&[&stateful, "--dry-run", "-o", "json"], 0));
    assert_eq!([&verdict["choice"], &verdict["result"]], ["force", "refused"], "{verdict}");
    assert_eq!(run(&[&stateful, "--dry-run", "-o", "name"], 0), "");

    // The error counts for more than that its reader has gone.
    let words = ["force-delete", &stateful, "-n", &namespace, "--confirm", "--i-have-fenced", "-o", "json"];
    let output = std::process::Command::new("sh")
        .args(["-c", r#"{ "$@"; echo "code $?" >&2; } | true"#, "sh", BINARY])
        .args(words)
        .env("KUBECONFIG", shared().kubeconfig(User::Admin, 0))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("error: ") && said.ends_with("code 6\n"), "{said}");

    let kept = parsed(&run(&["kept", "--confirm", "--anyway", "--wait=1s", "-o", "json"], 124));
    assert_eq!([&kept["result"], &kept["error"]["exitCode"]], [&json!("done"), &json!(124)], "{kept}");
    let words =
        ["force-delete", "free", "kept", "-n", &namespace, "--confirm", "--anyway", "--wait", "-o", "json"];
    let mut waiting = plugin().start(&words);
    waiting.until_stderr("both are deleted", SOON, |text| text.contains("kept marked for deletion"));
    waiting.signal("TERM");
    assert_eq!(waiting.wait(), 130, "{}", waiting.stderr());
    let told = parsed(&waiting.stdout());
    assert!(told["items"].as_array().unwrap().iter().all(|it| it["result"] == "done"), "{told}");
    finalizers("kept", "null");
}

/// Of `--node`, of what is offered, and of what is listed.
#[test]
fn a_namespace_that_is_typed_limits_what_goes() {
    let (namespace, other, node) = (namespace(), namespace(), silent_node());
    for namespace in [&namespace, &other] {
        shared().apply(&pod(namespace, "web", &node));
    }
    let listed = |args: &[&str]| {
        let listed = plugin().run(&[&["partitions", &node, "-o", "json"], args].concat()).expect(0).stdout;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let pods = listed["pods"].as_array().unwrap();
        pods.iter().map(|pod| pod["namespace"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>()
    };
    assert_eq!(listed(&[]), BTreeSet::from([namespace.clone(), other.clone()]));
    assert_eq!(listed(&["-n", &namespace]), BTreeSet::from([namespace.clone()]));

    let mut terminal = plugin().start_on_terminal(&["force-delete", "-n", &namespace], 60, 200);
    terminal.until("the choice", SOON, |screen| screen.contains(&format!("{namespace}/web")));
    assert!(!terminal.screen().contains(&format!("{other}/web")), "{}", terminal.screen());
    terminal.types("\r");
    assert_eq!(terminal.wait(), 6, "{}", terminal.screen());

    // As it was printed.
    let printed = format!("{namespace}/web");
    plugin().run(&["force-delete", &printed, "--dry-run"]).expect(0).says(&printed);
    plugin()
        .run(&["force-delete", &printed, "-n", &other, "--dry-run"])
        .expect(2)
        .says("in another namespace");

    let before = uid(&other, "web");
    let limited = ["force-delete", "--node", &node, "-n", &namespace, "--yes"];
    let outcome = plugin().run(&limited).expect(0);
    assert_eq!(outcome.stdout.matches(" force-deleted, risk low").count(), 1, "{outcome:?}");
    assert_eq!(uid(&namespace, "web"), "");
    assert_eq!(uid(&other, "web"), before);
    let said = format!("no pod in {namespace} is stranded or stuck on {node}");
    plugin().run(&limited).expect(3).says(&said);
}

#[test]
fn what_may_not_be_seen_is_a_risk_and_what_may_not_be_done_is_not_asked_about() {
    let (namespace, node) = (namespace(), living_node());
    let mut manifest = pod(&namespace, "web", &node);
    manifest["spec"]["volumes"] = json!([{ "name": "d", "persistentVolumeClaim": { "claimName": "d" } }]);
    shared().apply(&manifest);
    let (looker, deleter) = (format!("looker-{namespace}"), format!("deleter-{namespace}"));
    for (user, verbs) in [(&looker, "get"), (&deleter, "get,delete")] {
        shared().kubectl(&[
            "create",
            "role",
            user,
            "-n",
            &namespace,
            &format!("--verb={verbs}"),
            "--resource=pods",
        ]);
        let role = format!("--role={user}");
        shared().kubectl(&[
            "create",
            "rolebinding",
            user,
            "-n",
            &namespace,
            &role,
            &format!("--user={user}"),
        ]);
    }
    let run = |user: &str, flags: &[&str]| {
        let args = [&["force-delete", "web", "-n", &namespace, "--as", user], flags].concat();
        plugin().run(&args)
    };
    let forbidden = run(&looker, &[]).expect(7).says(&format!("you cannot delete pods in {namespace}"));
    assert!(!forbidden.stderr.contains("risk"), "nothing is shown that cannot be done: {forbidden:?}");
    run(&deleter, &[])
        .expect(6)
        .says("risk of force-deleting it: critical")
        .says(
            "not read   nodes, leases in kube-node-lease, leases in kube-node-maintenance, leases of leader \
             elections, persistentvolumeclaims, persistentvolumes, volumeattachments.storage.k8s.io, \
             poddisruptionbudgets.policy: counted as a risk",
        )
        .says(&format!("whether {node} is alive is not known"));
    assert_ne!(uid(&namespace, "web"), "");
    // Not even watching what becomes of it, nor leaving word about it.
    let outcome = run(&deleter, &["--confirm", "--i-have-fenced"]).expect(0).says("no Event was left");
    assert!(outcome.stdout.contains("is gone"), "{outcome:?}");
    assert_eq!(uid(&namespace, "web"), "");
}

#[test]
fn the_safe_way_keeps_budgets_and_grace() {
    let (namespace, node) = (namespace(), living_node());
    shared().apply(&json!({ "apiVersion": "v1", "kind": "List", "items": [
        pod(&namespace, "web", &node), pod(&namespace, "kept", &node),
        { "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "b", "namespace": namespace },
          "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "kept" } } } },
    ] }));
    report(&namespace, "kept", RUNNING);
    let healthy = || {
        shared().kubectl(&["get", "pdb", "b", "-n", &namespace, "-o", "jsonpath={.status.currentHealthy}"])
    };
    plugin()
        .run(&["force-delete", "web", "-n", &namespace, "--safe"])
        .expect(6)
        .says("--safe --confirm to evict it");
    // It waits for the end of the pod, which no kubelet brings about here.
    let outcome = plugin()
        .run(&["force-delete", "web", "-n", &namespace, "--safe", "--confirm", "--wait=1s"])
        .expect(124)
        .says(&format!("{namespace}/web is still there: the containers may still be running"))
        .says(&format!("kubectl wait --for=delete pod/web -n {namespace}"));
    assert_eq!(outcome.stdout, format!("{namespace}/web evicted, its grace period is 30s\n"));
    let events = ["get", "events", "-n", &namespace, "-o", "jsonpath={.items[*].message}"];
    assert!(shared().kubectl(&events).starts_with("evicted by admin@"));
    let grace =
        ["get", "pod", "web", "-n", &namespace, "-o", "jsonpath={.metadata.deletionGracePeriodSeconds}"];
    assert_eq!(shared().kubectl(&grace), "30");
    wait_for("the budget to know its pod", CONTROLLED, || healthy() == "1", healthy);
    write_node(&node, 1, "True");
    plugin()
        .run(&["force-delete", "kept", "-n", &namespace, "--safe", "--confirm"])
        .expect(6)
        .says("risk of force-deleting it: high")
        .says("PodDisruptionBudget b allows 0 disruptions now")
        .says("hint: wait until the disruption budget b allows it");
    let dead = silent_node();
    shared().apply(&pod(&namespace, "lost", &dead));
    plugin().run(&["force-delete", "lost", "-n", &namespace, "--safe", "--confirm"]).expect(6);
}

const RUNNING: &str = r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#;
const UNREADY: &str = r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"False"}]}}"#;

fn report(namespace: &str, pod: &str, status: &str) {
    shared().kubectl(&["patch", "pod", pod, "-n", namespace, "--subresource=status", "-p", status]);
}

/// What is printed as safer holds when it is done, or is not done.
#[test]
fn a_set_keeps_its_majority_and_its_budget() {
    let (namespace, node) = (namespace(), living_node());
    shared().apply(&json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "db", "namespace": namespace },
        "spec": {
            "replicas": 3, "serviceName": "db", "podManagementPolicy": "Parallel",
            "selector": { "matchLabels": { "app": "db" } },
            "template": { "metadata": { "labels": { "app": "db" } }, "spec": template(&node) },
        },
    }));
    let ready = |wanted: &str| {
        let path = "jsonpath={.status.readyReplicas}";
        let count = || shared().kubectl(&["get", "statefulset", "db", "-n", &namespace, "-o", path]);
        wait_for("the set to count its pods", CONTROLLED, || count() == wanted, count);
        write_node(&node, 1, "True");
    };
    wait_for("its pods", CONTROLLED, || !uid(&namespace, "db-2").is_empty(), String::new);
    report(&namespace, "db-0", RUNNING);
    report(&namespace, "db-1", RUNNING);
    ready("2");
    let safely = ["force-delete", "db-0", "-n", &namespace, "--safe"];
    let confirmed = [&safely[..], &["--confirm", "--wait=1s"]].concat();
    let wait =
        format!("kubectl wait --for=jsonpath='{{.status.readyReplicas}}'=3 statefulset/db -n {namespace}");
    plugin()
        .run(&confirmed)
        .expect(6)
        .says("1 of 3 are ready without this one: no majority")
        .says("without it 1 of 3 replicas of StatefulSet/db are ready: no majority")
        .says(&format!(
            "hint: wait until the 3 replicas of StatefulSet/db are ready, and evict it then: {wait}"
        ));
    // One that is not ready takes nothing away.
    plugin().run(&["force-delete", "db-2", "-n", &namespace, "--safe", "--dry-run=server"]).expect(0);

    report(&namespace, "db-2", RUNNING);
    ready("3");
    let typed = wait.replace('\'', "");
    shared().kubectl(&typed.split(' ').skip(1).collect::<Vec<_>>());
    let evicts_not = |meanwhile: &dyn Fn()| {
        let mut terminal = plugin().start_on_terminal(&safely, 40, 200);
        terminal.until("the question", SOON, |screen| screen.contains("Go on?"));
        meanwhile();
        write_node(&node, 1, "True");
        terminal.types("y\r");
        assert_eq!(terminal.wait(), 5, "{}", terminal.screen());
        let deleted =
            ["get", "pod", "db-0", "-n", &namespace, "-o", "jsonpath={.metadata.deletionTimestamp}"];
        assert_eq!(shared().kubectl(&deleted), "");
    };
    // What is asked about does not hold any more when it is answered.
    evicts_not(&|| {
        report(&namespace, "db-1", UNREADY);
        ready("2");
    });
    report(&namespace, "db-1", RUNNING);
    ready("3");
    evicts_not(&|| {
        let budget = json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "db", "namespace": namespace },
            "spec": { "minAvailable": 3, "selector": { "matchLabels": { "app": "db" } } },
        });
        shared().apply(&budget);
    });
    shared().kubectl(&["delete", "poddisruptionbudget", "db", "-n", &namespace]);
    write_node(&node, 1, "True");
    let outcome = plugin().run(&confirmed).expect(124);
    assert!(outcome.stdout.contains("evicted"), "{outcome:?}");
}

/// The API removes a pod at once that has no grace, however it is deleted.
#[test]
fn a_grace_of_0_is_not_taken_for_a_grace() {
    let (namespace, node) = (namespace(), living_node());
    for name in ["kubectl", "evicted", "deleted"] {
        let mut pod = pod(&namespace, name, &node);
        pod["spec"]["terminationGracePeriodSeconds"] = 0.into();
        shared().apply(&pod);
    }
    report(&namespace, "deleted", RUNNING);
    // Two budgets: it cannot be evicted.
    for name in ["a", "b"] {
        shared().apply(&json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": name, "namespace": namespace },
            "spec": { "minAvailable": 0, "selector": { "matchLabels": { "app": "deleted" } } },
        }));
    }
    for name in ["a", "b"] {
        let path = "jsonpath={.status.disruptionsAllowed}";
        let allowed = || shared().kubectl(&["get", "pdb", name, "-n", &namespace, "-o", path]);
        wait_for("the budget to count its pod", CONTROLLED, || allowed() == "1", allowed);
    }
    write_node(&node, 1, "True");
    shared().kubectl(&["delete", "pod", "kubectl", "-n", &namespace, "--wait=false"]);
    assert_eq!(uid(&namespace, "kubectl"), "");
    for (name, how) in
        [("evicted", "evicted, its grace period is 1s"), ("deleted", "deleted with its grace period")]
    {
        let args = ["force-delete", name, "-n", &namespace, "--safe", "--confirm", "--wait=1s"];
        let outcome = plugin().run(&args).expect(124).says("its terminationGracePeriodSeconds is 0");
        assert_eq!(outcome.stdout, format!("{namespace}/{name} {how}\n"));
        let path = "jsonpath={.metadata.deletionGracePeriodSeconds}";
        assert_eq!(shared().kubectl(&["get", "pod", name, "-n", &namespace, "-o", path]), "1");
    }
}

/// Where the next one is started before the first has ended, however that is deleted.
#[test]
fn what_would_run_twice_is_left_to_its_controller() {
    let (namespace, node) = (namespace(), living_node());
    let shares = |node: &str| {
        let mut spec = template(node);
        spec["volumes"] = json!([{ "name": "d", "hostPath": { "path": "/d" } }]);
        spec
    };
    let meta = |name: &str| json!({ "name": name, "namespace": namespace });
    let mut runs = shares(&node);
    runs["restartPolicy"] = "Never".into();
    shared().apply(&json!({ "apiVersion": "v1", "kind": "List", "items": [
        { "apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("web"), "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } }, "spec": shares(&node) } } },
        { "apiVersion": "batch/v1", "kind": "Job", "metadata": meta("batch"), "spec": {
            "template": { "metadata": { "labels": { "app": "batch" } }, "spec": runs } } },
        { "apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta("nightly"), "spec": {
            "schedule": "0 0 1 1 *", "suspend": true, "concurrencyPolicy": "Forbid", "jobTemplate": { "spec": { "template": {
                "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "x" }] } } } } } },
    ] }));
    let path = "jsonpath={.metadata.uid}";
    let cron = shared().kubectl(&["get", "cronjob", "nightly", "-n", &namespace, "-o", path]);
    let mut alone = template(&node);
    alone["restartPolicy"] = "Never".into();
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": meta("nightly-1"),
        "spec": { "template": { "metadata": { "labels": { "app": "nightly" } }, "spec": alone } },
    });
    job["metadata"]["ownerReferences"] = json!([{ "apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": cron, "controller": true }]);
    shared().apply(&job);
    let of_job = |name: &str| {
        let uid = shared().kubectl(&["get", "job", name, "-n", &namespace, "-o", "jsonpath={.metadata.uid}"]);
        format!("batch.kubernetes.io/controller-uid={uid}")
    };
    for (app, told, first, all) in [
        (
            "web",
            "there should be one of it only",
            "kubectl patch deployment/web",
            "app=web,pod-template-hash".to_owned(),
        ),
        ("batch", "there should be one of it only", "kubectl patch job/batch", of_job("batch")),
        (
            "nightly",
            "the CronJob behind Job/nightly-1 is Forbid",
            "kubectl patch job/nightly-1",
            of_job("nightly-1"),
        ),
    ] {
        let label = format!("app={app}");
        let path = "jsonpath={.items[*].metadata.name}";
        let name = || shared().kubectl(&["get", "pods", "-n", &namespace, "-l", &label, "-o", path]);
        wait_for("its pod", CONTROLLED, || !name().is_empty(), String::new);
        write_node(&node, 1, "True");
        let name = name();
        let args = ["force-delete", &name, "-n", &namespace, "--safe", "--confirm"];
        let outcome = plugin().run(&args).expect(6).says("risk of force-deleting it: critical").says(told);
        let way = outcome.stderr.lines().find(|line| line.trim().starts_with(first));
        let way = way.unwrap_or_else(|| panic!("{outcome:#?}")).trim().to_owned();
        assert!(way.contains(&format!(" && kubectl wait --for=delete pod -l {all} ")), "{way}");
        // What it begins and ends with; there is no kubelet that ends the pod.
        let typed = |command: &str| {
            let words: Vec<String> = command.split(' ').skip(1).map(|word| word.replace('\'', "")).collect();
            shared().kubectl(&words.iter().map(String::as_str).collect::<Vec<_>>());
        };
        typed(way.split(" && ").next().unwrap());
        let terminating = || {
            let path = "jsonpath={.items[*].metadata.deletionTimestamp}";
            shared().kubectl(&["get", "pods", "-n", &namespace, "-l", &label, "-o", path])
        };
        wait_for("its controller to end it", CONTROLLED, || !terminating().is_empty(), String::new);
        // Interrupted here, it is found again, and what is left of the line with it.
        let rest = way.split_once(" && ").unwrap().1;
        let listed = || {
            let outcome = plugin().run(&["partitions", "-o", "json"]).expect(0);
            let list: Value = serde_json::from_str(&outcome.stdout).unwrap();
            let ours = |stopped: &&Value| stopped["namespace"] == *namespace;
            list["stopped"].as_array().unwrap().iter().filter(ours).cloned().collect::<Vec<_>>()
        };
        let found = listed();
        assert_eq!(found.len(), 1, "{found:?}");
        let back = rest.split(" && ").last().unwrap();
        let command = found[0]["command"].as_str().unwrap();
        assert!(command.starts_with("kubectl wait --for=delete pod -l "), "{command}");
        assert!(command.ends_with(&format!(" && {back}")), "{command}\n{back}");
        let shown = plugin().run(&["partitions"]).expect(0);
        let shown: Vec<_> = shown.stderr.lines().map(str::trim).collect();
        assert!(shown.contains(&command), "{shown:#?}");
        // Not where one node is meant, which may be any.
        let of_node = plugin().run(&["partitions", &node]).expect(0);
        assert!(!of_node.stderr.contains(command), "{of_node:#?}");
        typed(back);
        assert_eq!(listed(), Vec::<Value>::new());
    }
}

/// Deleted as usual, and the next one is started at once.
#[test]
fn the_safe_way_on_a_silent_node_shows_the_replacement() {
    let (namespace, node) = (namespace(), silent_node());
    let name = owned_pod("ReplicaSet", &namespace, &node);
    let outcome = plugin().run(&["force-delete", &name, "-n", &namespace, "--safe", "--confirm"]).expect(0);
    let told = format!("{namespace}/{name} ends when {node} is back, replaced by {namespace}/set-");
    assert!(outcome.stdout.contains(&told), "{outcome:?}");
    assert_ne!(uid(&namespace, &name), "");
}

/// Until its controller has counted the pods of the budget `web`.
fn wait_until_allowed(namespace: &str, count: &str) {
    let path = "jsonpath={.status.disruptionsAllowed}";
    let allowed = || shared().kubectl(&["get", "pdb", "web", "-n", namespace, "-o", path]);
    wait_for("the budget to count its pods", CONTROLLED, || allowed() == count, allowed);
}

/// `web-a`, `web-b` and `web-c`, with a disruption budget that can do without one of them.
fn three_of_which_two_must_be_ready(namespace: &str, node: &str) {
    let pods: Vec<Value> = ["web-a", "web-b", "web-c"]
        .iter()
        .map(|name| {
            let mut pod = pod(namespace, name, node);
            pod["metadata"]["labels"] = json!({ "app": "web" });
            pod
        })
        .collect();
    shared().apply(&json!({ "apiVersion": "v1", "kind": "List", "items": pods }));
    shared().apply(&json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "web", "namespace": namespace },
        "spec": { "minAvailable": 2, "selector": { "matchLabels": { "app": "web" } } },
    }));
    for name in ["web-a", "web-b", "web-c"] {
        report(namespace, name, RUNNING);
    }
    wait_until_allowed(namespace, "1");
    write_node(node, 1, "True");
}

/// How many of them there are.
fn uids_of_web(namespace: &str) -> usize {
    ["web-a", "web-b", "web-c"].iter().filter(|name| !uid(namespace, name).is_empty()).count()
}

#[test]
fn several_pods_together_keep_to_their_budget() {
    let (namespace, node) = (namespace(), living_node());
    three_of_which_two_must_be_ready(&namespace, &node);
    let all = ["force-delete", "-l", "app=web", "-n", &namespace];
    plugin()
        .run(&[&all[..], &["--confirm"]].concat())
        .expect(6)
        .says(&format!("{namespace}/web-a, risk of force-deleting it: medium"))
        .says(&format!("{namespace}/web-b, risk of force-deleting it: high"))
        .says(&format!(
            "{namespace}/web-b was not deleted: the disruption budget web allows no more disruptions"
        ));
    assert_eq!(uids_of_web(&namespace), 3, "none was deleted");
    // As it is hinted: what the budget allows goes, and the others are told why not.
    let outcome = plugin().run(&[&all[..], &["--safe", "--dry-run=server"]].concat()).expect(6);
    assert_eq!(
        outcome.stdout,
        format!("{namespace}/web-a evicted, its grace period is 30s (server dry run)\n")
    );
    for name in ["web-b", "web-c"] {
        let why = "was left alone: the disruption budget web allows no more disruptions";
        assert!(outcome.stderr.contains(&format!("{namespace}/{name} {why}")), "{outcome:?}");
    }
    // One at a time the budget has something left for.
    plugin().run(&["force-delete", "web-a", "-n", &namespace, "--confirm"]).expect(0);
    wait_until_allowed(&namespace, "0");
    write_node(&node, 1, "True");
    plugin().run(&["force-delete", "web-b", "-n", &namespace, "--confirm"]).expect(6);
    write_node(&node, 1, "True");
    plugin().run(&["force-delete", "web-b", "-n", &namespace, "--confirm", "--anyway"]).expect(0);
}

/// What may not be read may forbid it: which node is lost, and how many pods a budget can do without.
#[test]
fn missing_evidence_does_not_switch_the_budget_off() {
    let (namespace, node) = (namespace(), living_node());
    three_of_which_two_must_be_ready(&namespace, &node);
    let user = |name: &str, resources: &[&str]| {
        let user = format!("{name}-{namespace}");
        allow(&user, Some(&namespace), &["--verb=get,list,watch,delete", "--resource=pods"]);
        for resource in resources {
            allow(&user, None, &["--verb=get,list", &format!("--resource={resource}")]);
        }
        user
    };
    let (leases, budgets) = ("leases.coordination.k8s.io", "poddisruptionbudgets.policy");
    let no_nodes = user("no-nodes", &[leases, budgets]);
    let no_budgets = user("no-budgets", &[leases, "nodes"]);
    let neither = user("neither", &[leases]);
    let forced = ["force-delete", "-l", "app=web", "-n", &namespace, "--confirm"];
    let spent =
        format!("{namespace}/web-b was not deleted: the disruption budget web allows no more disruptions");
    let unread = format!(
        "{namespace}/web-b was not deleted: the PodDisruptionBudgets in {namespace} could not be read, and may not \
         allow more than one pod at a time"
    );
    for (user, why) in [(&no_nodes, &spent), (&no_budgets, &unread), (&neither, &unread)] {
        write_node(&node, 1, "True");
        plugin().run(&[&forced[..], &["--as", user]].concat()).expect(6).says(why).says("--anyway");
        assert_eq!(uids_of_web(&namespace), 3, "{user}");
    }
    // Not heard of for a while, and not given up yet.
    write_node(&node, 45, "True");
    plugin().run(&forced).expect(6).says(&spent);
    assert_eq!(uids_of_web(&namespace), 3);
    // Without force it is left to the server, which reads the budget, and to who may evict.
    let safely = ["force-delete", "-l", "app=web", "-n", &namespace, "--safe", "--dry-run=server", "--as"];
    let outcome = plugin().run(&[&safely[..], &[&neither]].concat()).expect(7).says("pods/eviction");
    assert_eq!(outcome.stdout, "");
    allow(&neither, Some(&namespace), &["--verb=create", "--resource=pods/eviction"]);
    plugin().run(&[&safely[..], &[&neither]].concat()).expect(0).says("evict it");
    // One by itself is shown with its risk, and several go where that is said.
    write_node(&node, 1, "True");
    plugin().run(&["force-delete", "web-a", "-n", &namespace, "--confirm", "--as", &no_budgets]).expect(0);
    plugin().run(&[&forced[..], &["--anyway", "--as", &no_budgets]].concat()).expect(0);
    assert_eq!(uids_of_web(&namespace), 0);
}

/// While the question is being answered: the new one is as silent as the first, or declared to be off like it.
#[test]
fn a_node_that_was_recreated_is_neither_fenced_nor_taken_into_service() {
    for undo in [false, true] {
        let recreated = silent_node();
        let mut args = vec!["fence", &recreated];
        let question = if undo {
            plugin().run(&["fence", &recreated, "--confirm"]).expect(0);
            args.push("--undo");
            "Remove the taint?".to_owned()
        } else {
            format!("Type '{recreated} is off'")
        };
        let mut terminal = plugin().start_on_terminal(&args, 30, 160);
        terminal.until("the question", SOON, |screen| screen.contains(&question));
        let taints = shared().kubectl(&["get", "node", &recreated, "-o", "jsonpath={.spec.taints}"]);
        shared().kubectl(&["delete", "node", &recreated, "--cascade=orphan"]);
        write_node(&recreated, 600, "Unknown");
        if undo {
            let patch = format!(r#"{{"spec":{{"taints":{taints}}}}}"#);
            shared().kubectl(&["patch", "node", &recreated, "-p", &patch]);
        }
        let answer = if undo { "y\r".to_owned() } else { format!("{recreated} is off\r") };
        terminal.types(&answer);
        assert_eq!(terminal.wait(), 5, "{}", terminal.screen());
        let why = format!("{recreated} was recreated meanwhile (new UID)");
        terminal.until("why", SOON, |screen| screen.contains(&why));
    }
}

/// A pod whose object was deleted by force may still run, and write to what is detached by a fence.
#[test]
fn a_volume_that_is_still_attached_takes_the_word_that_the_machine_is_off() {
    let node = silent_node();
    let volume = format!("pv-{}", random());
    shared().apply(&json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": { "name": format!("va-{volume}") },
        "spec": { "attacher": "disk.example.com", "nodeName": node, "source": { "persistentVolumeName": volume } },
    }));
    plugin()
        .run(&["fence", &node, "--confirm"])
        .expect(6)
        .says(&format!("{volume} is attached there"))
        .says("1 volume attached there would be detached while containers may write there")
        .says("--confirm --i-have-fenced");
    plugin().run(&["fence", &node, "--confirm", "--i-have-fenced"]).expect(0);
    shared().kubectl(&["delete", "volumeattachment", &format!("va-{volume}")]);
    // Who may not list them does not know.
    let (node, user) = (silent_node(), format!("fencer-{}", random()));
    for role in ["kubectl-lease-fence", "kubectl-lease-maint"] {
        let binding = format!("{user}-{role}");
        let (role, user) = (format!("--clusterrole={role}"), format!("--user={user}"));
        shared().kubectl(&["create", "clusterrolebinding", &binding, &role, &user]);
    }
    allow(&user, Some("kube-node-maintenance"), &["--verb=get,list,create,patch", "--resource=leases"]);
    allow(&user, None, &["--verb=list", "--resource=pods"]);
    plugin()
        .run(&["fence", &node, "--confirm", "--as", &user])
        .expect(6)
        .says("volumes may be attached there (you cannot list volumeattachments)");
}

/// Pods of a node that joins while they are listed are not stranded.
#[test]
fn the_pods_of_a_node_that_joins_meanwhile_are_left() {
    let (namespace, node) = (namespace(), format!("joining-{}", random()));
    shared().apply(&pod(&namespace, "web", &node));
    let proxy = FaultProxy::start(shared(), {
        let node = node.clone();
        move |_, path| {
            if path.contains("/pods?") {
                write_node(&node, 1, "True");
            }
            Fault::None
        }
    });
    Plugin::new(&proxy.kubeconfig)
        .run(&["force-delete", "--node", &node, "--confirm"])
        .expect(3)
        .says("no pod is stranded or stuck");
    assert_ne!(uid(&namespace, "web"), "");
}

#[test]
#[allow(clippy::too_many_lines)] // one story
fn a_living_node_is_not_fenced_and_a_dead_one_is_emptied_and_restored() {
    let alive = living_node();
    plugin()
        .run(&["fence", &alive, "--confirm"])
        .expect(6)
        .says(&format!("{alive} is alive (last heartbeat "))
        .says("hint: power it off first, and wait until its heartbeat is older than the duration of its node lease");
    // Given up by the node controller, and yet there is a heartbeat.
    let doubtful = format!("doubtful-{}", random());
    write_node(&doubtful, 1, "Unknown");
    plugin().run(&["fence", &doubtful, "--confirm"]).expect(6).says("heartbeats (last heartbeat ");
    let late = format!("late-{}", random());
    write_node(&late, 45, "True");
    plugin().run(&["fence", &late, "--confirm"]).expect(6).says("the node controller has not set Ready");
    plugin().run(&["fence", "no-such-node", "--confirm"]).expect(3);

    // It comes back while the question is being answered.
    let returning = silent_node();
    let mut terminal = plugin().start_on_terminal(&["fence", &returning], 30, 160);
    terminal.until("the question", SOON, |screen| screen.contains(&format!("Type '{returning} is off'")));
    write_node(&returning, 1, "Unknown");
    terminal.types(&format!("{returning} is off\r"));
    assert_eq!(terminal.wait(), 5, "{}", terminal.screen());
    terminal.until("why", SOON, |screen| screen.contains("sent a heartbeat meanwhile"));

    let (namespace, dead) = (namespace(), silent_node());
    // A pod that nobody was told of comes while the question is being answered.
    let filling = silent_node();
    let mut terminal = plugin().start_on_terminal(&["fence", &filling], 30, 160);
    terminal.until("the question", SOON, |screen| screen.contains(&format!("Type '{filling} is off'")));
    let mut unseen = pod(&namespace, "unseen", &filling);
    unseen["spec"]["tolerations"] = json!([]);
    shared().apply(&unseen);
    terminal.types(&format!("{filling} is off\r"));
    assert_eq!(terminal.wait(), 5, "{}", terminal.screen());
    terminal.until("why", SOON, |screen| screen.contains("and was not shown"));

    let name = owned_pod("StatefulSet", &namespace, &dead);
    // Pod GC may look at any moment: what it deletes stays until all is seen, and what is judged is not
    // Terminating, and not deleted by it.
    let finalizers = |list: &str| {
        let patch = format!(r#"{{"metadata":{{"finalizers":{list}}}}}"#);
        shared().kubectl(&["patch", "pod", &name, "-n", &namespace, "--type=merge", "-p", &patch]);
    };
    finalizers(r#"["example.com/hold"]"#);
    let mut staying = pod(&namespace, "staying", &dead);
    staying["metadata"]["ownerReferences"] = json!([{ "apiVersion": "db.example/v1", "kind": "Database", "name": "x", "uid": "1", "controller": true }]);
    shared().apply(&staying);
    shared().kubectl(&["delete", "pod", "-n", &namespace, &name, "--wait=false"]);
    shared().kubectl(&["scale", "statefulset", "set", "-n", &namespace, "--replicas=0"]);
    shared().kubectl(&["taint", "node", &dead, "mine=x:NoSchedule"]);
    let spec = || {
        let mut node: Value =
            serde_json::from_str(&shared().kubectl(&["get", "node", &dead, "-o", "json"])).unwrap();
        // The node controller's own come when it has time.
        let taints = node["spec"]["taints"].as_array_mut().unwrap();
        taints.retain(|taint| {
            let key = taint["key"].as_str().unwrap();
            !key.starts_with("node.kubernetes.io/") || key == "node.kubernetes.io/out-of-service"
        });
        (node["spec"].clone(), node["metadata"]["annotations"].clone(), node["metadata"]["labels"].clone())
    };
    let before = spec();
    plugin()
        .run(&["fence", &dead])
        .expect(6)
        .says(&format!("deleted\n  - {namespace}/{name}, of StatefulSet/set, risk critical if it still runs"))
        .says("hint: --confirm --i-have-fenced, once you have made sure that the machine is off");
    plugin().run(&["maint", "acquire", &dead, "--holder", "jane"]).expect(0);
    for how in [&["--confirm", "--i-have-fenced"][..], &["--dry-run=client"], &["--dry-run=server"]] {
        plugin().run(&[&["fence", &dead], how].concat()).expect(4).says("held by 'jane'");
    }
    plugin().run(&["maint", "release", &dead, "--holder", "jane"]).expect(0);
    plugin().run(&["fence", &dead, "--dry-run=server"]).expect(0);
    assert_eq!(spec(), before);
    let judged = |risk: &str| {
        plugin()
            .run(&["force-delete", "staying", "-n", &namespace, "--dry-run"])
            .expect(0)
            .says(&format!("risk of force-deleting it: {risk}"));
    };
    judged("critical");

    let mut terminal = plugin().start_on_terminal(&["fence", &dead, "--wait=55s"], 30, 160);
    terminal.until("the question", SOON, |screen| screen.contains(&format!("Type '{dead} is off'")));
    terminal.types(&format!("{dead} is off\r"));
    let lease = |path: &str| {
        let path = format!("jsonpath={path}");
        shared().kubectl(&["get", "lease", &dead, "-n", "kube-node-maintenance", "-o", &path])
    };
    terminal.until("the wait", SOON, |screen| screen.contains("waiting for pod GC, 1 pod left"));
    assert!(lease("{.spec.holderIdentity}").starts_with("admin@"), "held meanwhile");
    judged("low");
    let outcome = plugin().run(&["partitions", &dead, "--no-headers"]).expect(0);
    assert_eq!(outcome.rows()[0][1], "fenced");
    plugin().run(&["fence", &dead, "--undo"]).expect(6).says("is not back");
    finalizers("null");
    terminal.until("it is empty", COLLECTED, |screen| {
        screen.contains(&format!("all pods on {dead} that do not tolerate the taint were deleted"))
    });
    assert_eq!(terminal.wait(), 0);
    assert_eq!(uid(&namespace, &name), "");
    assert_eq!(lease("{.spec.holderIdentity}"), "", "and released");
    let outcome = plugin().run(&["fence", &dead, "--confirm"]).expect(0);
    assert_eq!(outcome.stdout, format!("{dead} is fenced already\n"));
    plugin()
        .run(&["fence", &dead, "--undo", "--confirm"])
        .expect(0)
        .says("node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
        .says(&format!("warning: {dead} is not back (last heartbeat "));
    assert_eq!(spec(), before, "exactly as it was");
    plugin().run(&["fence", &dead, "--undo"]).expect(0);
}

/// The node controller writes its taints and conditions when it has time.
#[test]
fn a_node_that_was_written_meanwhile_is_read_again_and_decided_on_again() {
    let taints = |node: &str| shared().kubectl(&["get", "node", node, "-o", "jsonpath={.spec.taints}"]);
    let is_fenced = |node: &str| taints(node).contains("out-of-service");
    // What happens between the first look and the write, which therefore is a conflict (409).
    let proxy = |node: &str, meanwhile: fn(&str)| {
        let (node, done) = (node.to_owned(), AtomicBool::new(false));
        FaultProxy::start(shared(), move |method, path| {
            if method == "PATCH" && path.contains("/nodes/") && !done.swap(true, Ordering::SeqCst) {
                meanwhile(&node);
                shared().kubectl(&["label", "node", &node, "written=meanwhile", "--overwrite"]);
            }
            Fault::None
        })
    };
    let dead = silent_node();
    Plugin::new(proxy(&dead, |_| ()).kubeconfig).run(&["fence", &dead, "--confirm"]).expect(0);
    assert!(is_fenced(&dead));
    // Whoever fenced it anew had a reason.
    let anew = |node: &str| {
        let taint = "node.kubernetes.io/out-of-service=again:NoExecute";
        shared().kubectl(&["taint", "node", node, taint, "--overwrite"]);
    };
    Plugin::new(proxy(&dead, anew).kubeconfig)
        .run(&["fence", &dead, "--undo", "--confirm"])
        .expect(5)
        .says(&format!("the out-of-service taint of {dead} changed meanwhile: nothing was changed"));
    assert!(taints(&dead).contains("again"));
    Plugin::new(proxy(&dead, |_| ()).kubeconfig).run(&["fence", &dead, "--undo", "--confirm"]).expect(0);
    assert!(!is_fenced(&dead));

    let returning = silent_node();
    Plugin::new(proxy(&returning, |node| write_node(node, 1, "Unknown")).kubeconfig)
        .run(&["fence", &returning, "--confirm"])
        .expect(5)
        .says(&format!("{returning} sent a heartbeat meanwhile"));
    assert!(!is_fenced(&returning));

    // A write that was passed on twice conflicts with itself.
    let twice = silent_node();
    let proxy = FaultProxy::start(shared(), |method, path| {
        if method == "PATCH" && path.contains("/nodes/") { Fault::Twice } else { Fault::None }
    });
    for (flags, fenced) in [(&[][..], true), (&["--undo"], false)] {
        let args = [&["fence", &twice, "--confirm"][..], flags].concat();
        Plugin::new(&proxy.kubeconfig).run(&args).expect(0);
        assert_eq!(is_fenced(&twice), fenced);
    }

    // And it does not go on for ever.
    let busy = silent_node();
    let proxy = FaultProxy::start(shared(), |method, path| {
        if method == "PATCH" && path.contains("/nodes/") { Fault::Refuse(409) } else { Fault::None }
    });
    Plugin::new(proxy.kubeconfig)
        .run(&["fence", &busy, "--confirm"])
        .expect(5)
        .says("gave up after 10 write conflicts: nothing was changed");
    assert!(!is_fenced(&busy));
}

/// What is printed for a taint from an earlier outage is typed later: it may have been fenced anew by then.
#[test]
fn only_a_fence_that_does_not_hold_is_taken_off_without_a_yes() {
    let node = silent_node();
    let taint = |added: Value| {
        let key = "node.kubernetes.io/out-of-service";
        let taint = json!({ "key": key, "value": "nodeshutdown", "effect": "NoExecute", "timeAdded": added });
        let patch = json!({ "spec": { "taints": [taint] } }).to_string();
        shared().kubectl(&["patch", "node", &node, "--type=merge", "-p", &patch]);
    };
    let taints = || shared().kubectl(&["get", "node", &node, "-o", "jsonpath={.spec.taints}"]);
    let undo = ["fence", &node, "--undo"];
    for added in [Value::Null, json!(format!("{:.0}", ago(5)))] {
        taint(added);
        plugin().run(&undo).expect(6).says(&format!("{node} is not back (last heartbeat 10m ago)"));
        assert!(taints().contains("out-of-service"));
    }
    taint(json!(format!("{:.0}", ago(900))));
    plugin().run(&undo).expect(0);
    assert!(!taints().contains("out-of-service"));
}

#[test]
fn fencing_keeps_the_lease_that_its_user_holds_already_and_gives_it_back() {
    let dead = silent_node();
    let lease = |path: &str| {
        let path = format!("jsonpath={path}");
        shared().kubectl(&["get", "lease", &dead, "-n", "kube-node-maintenance", "-o", &path])
    };
    plugin().run(&["maint", "acquire", &dead]).expect(0);
    let (holder, renewed) = (lease("{.spec.holderIdentity}"), lease("{.spec.renewTime}"));
    let kept = FaultProxy::start(shared(), {
        let (kubectl, kubeconfig) = (shared().assets.join("kubectl"), shared().kubeconfig(User::Admin, 0));
        let (node, holder) = (dead.clone(), holder.clone());
        move |method, path| {
            if method == "PATCH" && path.contains("/nodes/") {
                let path = "jsonpath={.spec.holderIdentity}";
                let look = std::process::Command::new(&kubectl)
                    .args(["get", "lease", &node, "-n", "kube-node-maintenance", "-o", path])
                    .env("KUBECONFIG", &kubeconfig)
                    .output()
                    .unwrap();
                let now = String::from_utf8(look.stdout).unwrap();
                assert!(now.starts_with(&format!("{holder}#")), "kept under a name of its own: {now}");
            }
            Fault::None
        }
    });
    Plugin::new(&kept.kubeconfig).run(&["fence", &dead, "--confirm"]).expect(0);
    assert_eq!((lease("{.spec.holderIdentity}"), lease("{.spec.renewTime}")), (holder.clone(), renewed));
    plugin().run(&["fence", &dead, "--undo", "--confirm"]).expect(0);
    assert_eq!(lease("{.spec.holderIdentity}"), holder, "not released by another process");
}

/// Whoever took the lease may be at work on the machine.
#[test]
fn a_fence_whose_lease_is_lost_meanwhile_changes_nothing() {
    let dead = silent_node();
    let (taken, stolen) = (AtomicBool::new(false), AtomicBool::new(false));
    let (kubectl, kubeconfig) = (shared().assets.join("kubectl"), shared().kubeconfig(User::Admin, 0));
    let node = dead.clone();
    // Once the lease is taken every look at the node is slow; at the first another takes the lease.
    let proxy = FaultProxy::start(shared(), move |method, path| {
        if matches!(method, "POST" | "PATCH") && path.contains("/leases") {
            taken.store(true, Ordering::SeqCst);
        }
        if method != "GET" || !path.contains("/nodes/") || !taken.load(Ordering::SeqCst) {
            return Fault::None;
        }
        if !stolen.swap(true, Ordering::SeqCst) {
            let theft = r#"{"spec":{"holderIdentity":"thief","leaseTransitions":9}}"#;
            let patch = std::process::Command::new(&kubectl)
                .args(["patch", "lease", &node, "-n", "kube-node-maintenance", "--type=merge", "-p", theft])
                .env("KUBECONFIG", &kubeconfig)
                .output()
                .unwrap();
            assert!(patch.status.success(), "{patch:?}");
        }
        Fault::Late(2000)
    });
    Plugin::new(&proxy.kubeconfig)
        .run(&["fence", &dead, "--confirm"])
        .expect(75)
        .says("the maintenance lease was lost meanwhile: 'thief' took");
    let get = |args: &[&str]| shared().kubectl(&[&["get"], args].concat());
    assert!(!get(&["node", &dead, "-o", "jsonpath={.spec.taints}"]).contains("out-of-service"));
    let holder = ["-n", "kube-node-maintenance", "-o", "jsonpath={.spec.holderIdentity}"];
    assert_eq!(get(&[&["lease", &dead][..], &holder].concat()), "thief");
}

#[test]
fn partitions_are_listed_with_what_is_stranded() {
    let (namespace, node) = (namespace(), silent_node());
    shared().apply(&pod(&namespace, "web", &node));
    let selector = format!("test={node}");
    let (user, kubeconfig) = shared().unique_admin();
    let outcome = Plugin::new(kubeconfig).run(&["partitions", "-l", &selector, "--exit-code"]).expect(4);
    let rows = outcome.rows();
    assert_eq!(rows[0].join(" "), "NODE STATE HEARTBEAT POD STATUS RISK TERMINATING OWNER VOLUMES");
    let web = format!("{namespace}/web");
    assert_eq!(rows[1], [&node, "silent", "10m", &web, "NodeDown", "low", "<none>", "<none>", "<none>"]);
    let asked = shared().audited(&user);
    assert!(asked.iter().all(|request| request.starts_with("list ")) && asked.len() <= 8, "{asked:#?}");

    plugin().run(&["partitions", &node]).expect(0);
    let json = plugin().run(&["partitions", &node, "-o", "json"]).expect(0);
    let one: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(
        (&one["kind"], &one["state"], &one["object"]["kind"]),
        (&json!("Partition"), &json!("silent"), &json!("Node"))
    );
    let stranded = &one["pods"][0];
    assert_eq!(
        (&stranded["status"], &stranded["risk"], &stranded["pod"]["spec"]["nodeName"]),
        (&json!("NodeDown"), &json!("low"), &json!(node))
    );
    let yaml = plugin().run(&["partitions", "-l", &selector, "-o", "yaml"]).expect(0);
    let list: Value = serde_saphyr::from_str(&yaml.stdout).unwrap();
    assert_eq!((&list["kind"], list["items"].as_array().map(Vec::len)), (&json!("PartitionList"), Some(1)));
    let names = plugin().run(&["partitions", "-l", &selector, "-o", "name"]).expect(0);
    assert_eq!(names.stdout, format!("node/{node}\n"));

    // Pods of a node that does not exist.
    let gone = format!("gone-{}", random());
    shared().apply(&pod(&namespace, "orphan", &gone));
    let outcome = plugin().run(&["partitions", &gone, "--no-headers"]).expect(0);
    assert_eq!(outcome.rows()[0][..5], [&gone, "gone", "<none>", &format!("{namespace}/orphan"), "NodeDown"]);

    // And of one that was deleted and heartbeats on: both commands say the same of it.
    let undead = living_node();
    shared().kubectl(&["delete", "node", &undead]);
    shared().apply(&pod(&namespace, "undead", &undead));
    let outcome = plugin().run(&["partitions", &undead, "--no-headers"]).expect(0);
    assert_eq!(outcome.rows()[0][1], "late", "{outcome:?}");

    let alive = living_node();
    let outcome = plugin().run(&["partitions", &alive, "--exit-code"]).expect(0);
    assert_eq!(outcome.stdout, format!("{alive} sends heartbeats: not partitioned\n"));
    let outcome = plugin().run(&["partitions", "-l", &format!("test={alive}"), "--exit-code"]).expect(0);
    assert_eq!(outcome.stdout, "no partitions: 1 node with heartbeats\n");
    plugin().run(&["partitions", "no-such-node"]).expect(3).says("there is no node 'no-such-node'");
    plugin().run(&["partitions", "-l", "test=none", "--exit-code"]).expect(3).says("no node matches");
    Plugin::new(shared().kubeconfig(User::Nobody, 0)).run(&["partitions"]).expect(7);

    // Who may see nodes and pods only is told what is not found.
    let role = format!("looks-{namespace}");
    let resources = "--resource=nodes,pods,leases.coordination.k8s.io";
    shared().kubectl(&["create", "clusterrole", &role, "--verb=get,list,watch", resources]);
    let (of, user) = (format!("--clusterrole={role}"), format!("--user={role}"));
    shared().kubectl(&["create", "clusterrolebinding", &role, &of, &user]);
    let unlisted =
        "you cannot list deployments.apps, replicasets.apps, jobs.batch: controllers that were scaled";
    plugin().run(&["partitions", "--as", &role]).expect(0).says(unlisted);
    let outcome = plugin().run(&["partitions", &alive, "--as", &role]).expect(0);
    assert!(!outcome.stderr.contains("you cannot list"), "{outcome:#?}");
}

#[test]
fn a_partition_is_seen_to_begin_and_end() {
    let node = living_node();
    let selector = format!("test={node}");
    let watching = plugin().start(&["partitions", "-w", "-l", &selector]);
    watching.until_stderr("the beginning", SOON, |text| text.contains("nothing matches yet"));
    write_node(&node, 45, "True");
    watching.until("it is late", SOON, |text| text.contains(&format!("{node}   late   no pods there")));
    write_node(&node, 1, "True");
    watching.until("it is back", SOON, |text| text.contains(&format!("{node}   alive   was late")));
}

/// Only a list of heartbeats that is not answered keeps a view from being judged as of now.
#[test]
fn a_list_of_budgets_that_hangs_makes_no_silent_node_late() {
    let node = living_node();
    let (gate, hangs) = (Gate::default(), Arc::<AtomicBool>::default());
    let given = (gate.clone(), Arc::clone(&hangs));
    let proxy = FaultProxy::start(shared(), move |_, path| {
        let list = path.contains("/poddisruptionbudgets") && !path.contains("watch=true");
        if list && given.1.load(Ordering::SeqCst) {
            given.0.hold();
        }
        Fault::None
    });
    let selector = format!("test={node}");
    let watching = Plugin::new(proxy.kubeconfig.clone()).start(&["partitions", "-w", "-l", &selector]);
    watching.until_stderr("the beginning", SOON, |text| text.contains("nothing matches yet"));
    hangs.store(true, Ordering::SeqCst);
    wait_for("budgets to be listed again", SOON * 3, || gate.has_come(), || watching.stderr());
    // So long that the last word on budgets is too old to judge anything by.
    std::thread::sleep(Duration::from_secs(6));
    write_node(&node, 43, "True");
    let given_up =
        json!({ "status": { "conditions": [{ "type": "Ready", "status": "Unknown" }] } }).to_string();
    shared().kubectl(&["patch", "node", &node, "--subresource=status", "-p", &given_up]);
    watching.until("it is silent", SOON, |text| text.contains(&format!("{node}   silent   ")));
    gate.open();
}

/// What a kubelet writes as the time is as wrong as its clock; when it wrote, the server knows.
#[test]
fn a_node_whose_clock_is_behind_is_alive() {
    let (namespace, node) = (namespace(), living_node());
    shared().apply(&pod(&namespace, "web", &node));
    let beats = |age: i64| {
        let patch = json!({ "spec": { "renewTime": format!("{:.6}", ago(age)) } }).to_string();
        let lease = ["patch", "lease", &node, "-n", "kube-node-lease", "--type=merge", "-p", &patch];
        shared().kubectl(&[&lease[..], &["--field-manager=kubelet"]].concat());
    };
    beats(75);
    plugin()
        .run(&["force-delete", "web", "-n", &namespace, "--dry-run"])
        .expect(0)
        .says("risk of force-deleting it: medium")
        .says("1. evict it");
    let outcome = plugin().run(&["partitions", &node]).expect(0);
    assert_eq!(outcome.stdout, format!("{node} sends heartbeats: not partitioned\n"));
}

#[test]
fn hostile_text_prints_harmlessly() {
    let (namespace, node) = (namespace(), silent_node());
    let hostile = "\u{1b}]0;owned\u{7}\u{202e}enaj\nerror: all is lost";
    let mut manifest = pod(&namespace, "web", &node);
    manifest["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "Evil\u{1b}[2J\nrisk: none", "name": "x\u{202e}y\nrisk: none", "uid": "1",
        "controller": true,
    }]);
    shared().apply(&json!({ "apiVersion": "v1", "kind": "List", "items": [
        { "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "kube-node-maintenance" } },
        { "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
          "metadata": { "name": node, "namespace": "kube-node-maintenance", "annotations": { "kubectl-lease.dev/reason": hostile } },
          "spec": { "holderIdentity": hostile, "leaseDurationSeconds": 600, "renewTime": format!("{:.6}", ago(1)) } },
        manifest,
    ] }));
    let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    for args in [
        &["partitions", &node, "-o", "wide"][..],
        &["partitions", &node, "-o", "yaml"],
        &["force-delete", "web", "-n", &namespace, "--dry-run"],
    ] {
        let outcome = plugin().run(args).expect(0);
        assert!(!outcome.stdout.contains(harmful) && !outcome.stderr.contains(harmful), "{outcome:#?}");
        let lines = outcome.stdout.lines().chain(outcome.stderr.lines());
        let pretends = |line: &&str| line.starts_with("error: ") || line.trim().starts_with("risk: none");
        assert_eq!(lines.filter(pretends).count(), 0, "{outcome:#?}");
    }
    plugin().run(&["force-delete", "web", "-n", &namespace, "--reason", hostile]).expect(2);
}

#[test]
fn a_list_in_pages_is_whole() {
    let namespace = namespace();
    let pods: Vec<Value> = (0..5).map(|n| pod(&namespace, &format!("web-{n}"), "")).collect();
    shared().apply(&json!({ "apiVersion": "v1", "kind": "List", "items": pods }));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let names = |kubeconfig: &Path, page: u32, wanted: &dyn Fn(&Pod) -> bool| -> Vec<String> {
        let flags = Connection { kubeconfig: Some(kubeconfig.to_owned()), ..Connection::default() };
        runtime.block_on(async {
            let cluster = Cluster::new(connection::load(&flags).unwrap(), None).await.unwrap();
            let query = Query { page: Some(page), ..Query::new(PODS).namespace(&namespace) };
            let list = cluster.list_where(&query, wanted).await.unwrap();
            let name =
                |pod: &Object<Pod>| pod.document(PODS)["metadata"]["name"].as_str().unwrap().to_owned();
            list.items.iter().map(name).collect()
        })
    };
    let kubeconfig = shared().kubeconfig(User::Admin, 0);
    let all = ["web-0", "web-1", "web-2", "web-3", "web-4"];
    for page in [1, 2, 5, 500] {
        assert_eq!(names(&kubeconfig, page, &|_| true), all, "{page}");
        assert_eq!(names(&kubeconfig, page, &|pod| pod.metadata.name != "web-2").len(), 4, "{page}");
    }
    // Its beginning is forgotten on the way: it begins anew.
    let forgotten = AtomicBool::new(false);
    let proxy = FaultProxy::start(shared(), move |_, path| {
        let page_two = path.contains("continue=");
        if page_two && !forgotten.swap(true, Ordering::Relaxed) { Fault::Refuse(410) } else { Fault::None }
    });
    assert_eq!(names(&proxy.kubeconfig, 2, &|_| true), all);
}

#[test]
fn the_documented_rights_are_enough() {
    let (namespace, node) = (namespace(), silent_node());
    shared().apply(&pod(&namespace, "web", &node));
    let user = format!("operator-{namespace}");
    for role in [
        "kubectl-lease-partitions",
        "kubectl-lease-force-delete",
        "kubectl-lease-fence",
        "kubectl-lease-maint",
    ] {
        let name = format!("{user}-{role}");
        shared().kubectl(&[
            "create",
            "clusterrolebinding",
            &name,
            &format!("--clusterrole={role}"),
            &format!("--user={user}"),
        ]);
    }
    let role = "--role=kubectl-lease-maint";
    shared().kubectl(&[
        "create",
        "rolebinding",
        &user,
        "-n",
        "kube-node-maintenance",
        role,
        &format!("--user={user}"),
    ]);
    plugin().run(&["partitions", &node, "--as", &user]).expect(0);
    let outcome =
        plugin().run(&["force-delete", "web", "-n", &namespace, "--confirm", "--as", &user]).expect(0);
    assert!(!outcome.stderr.contains("not read") && !outcome.stderr.contains("warning"), "{outcome:#?}");
    let outcome = plugin().run(&["fence", &node, "--confirm", "--as", &user]).expect(0);
    assert!(!outcome.stderr.contains("warning"), "{outcome:#?}");
    let watching = plugin().start(&["partitions", "-w", "-l", &format!("test={node}"), "--as", &user]);
    watching.until("the table", SOON, |text| text.contains("fenced"));
    plugin().run(&["fence", &node, "--undo", "--confirm", "--as", &user]).expect(0);
}

#[test]
fn a_fence_is_not_believed_while_the_machine_heartbeats() {
    let (namespace, node) = (namespace(), silent_node());
    let name = owned_pod("StatefulSet", &namespace, &node);
    let before = uid(&namespace, &name);
    let dry = ["force-delete", &name, "-n", &namespace, "--dry-run"];
    // A taint that does not say when it was set may be left from an earlier outage.
    let taint = "node.kubernetes.io/out-of-service=nodeshutdown:NoSchedule";
    shared().kubectl(&["taint", "node", &node, taint]);
    plugin()
        .run(&dry)
        .expect(0)
        .says("risk of force-deleting it: critical")
        .says("marked out of service (the taint has no timeAdded)");
    // Then it is declared anew, and what does not tolerate that goes. Until then it is not Terminating, or pod
    // GC could be faster; and what is looked at below is another pod.
    let mut leaving = pod(&namespace, "leaving", &node);
    leaving["spec"]["tolerations"] =
        json!([{ "key": "node.kubernetes.io/unreachable", "operator": "Exists" }]);
    leaving["metadata"]["ownerReferences"] = json!([{ "apiVersion": "db.example/v1", "kind": "Database", "name": "x", "uid": "1", "controller": true }]);
    shared().apply(&leaving);
    plugin().run(&["fence", &node, "--confirm"]).expect(6).says("1 pod there would run twice");
    plugin().run(&["fence", &node, "--confirm", "--i-have-fenced"]).expect(0);
    plugin().run(&dry).expect(0).says("risk of force-deleting it: low");
    let outcome = plugin().run(&["fence", &node, "--confirm"]).expect(0);
    assert_eq!(outcome.stdout, format!("{node} is fenced already\n"));
    write_node(&node, 0, "Unknown");
    plugin()
        .run(&["force-delete", &name, "-n", &namespace, "--confirm"])
        .expect(6)
        .says("risk of force-deleting it: critical")
        .says("its kubelet sends heartbeats, whatever its Ready condition says");
    plugin()
        .run(&["force-delete", &name, "-n", &namespace, "--confirm", "--i-have-fenced"])
        .expect(6)
        .says("its node sends heartbeats, so the machine is on");
    assert_eq!(uid(&namespace, &name), before);
    let outcome = plugin().run(&["partitions", &node, "--no-headers"]).expect(0);
    assert_eq!(outcome.rows()[0][1], "late");
    shared().kubectl(&["taint", "node", &node, "node.kubernetes.io/out-of-service-"]);
}

#[test]
fn what_others_write_into_a_pod_makes_it_no_safer() {
    let (namespace, node) = (namespace(), silent_node());
    let owned = |name: &str, version: &str, kind: &str, controller: bool| {
        let mut pod = pod(&namespace, name, &node);
        pod["metadata"]["ownerReferences"] = json!([{ "apiVersion": version, "kind": kind, "name": "x", "uid": "1", "controller": controller }]);
        pod
    };
    let mut marked = owned("marked", "apps.example/v1", "Database", true);
    marked["metadata"]["annotations"] = json!({ "kubernetes.io/config.mirror": "x" });
    let mut renamed = pod(&namespace, "renamed", &node);
    renamed["spec"]["hostname"] = "boss".into();
    let long = format!("long-{}", "x".repeat(70));
    let mut cut = pod(&namespace, &long, &node);
    cut["metadata"]["labels"] = json!({});
    let holds = |lease: &str, holder: &str| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": lease, "namespace": namespace },
            "spec": { "holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": format!("{:.6}", ago(500)) },
        })
    };
    shared().apply(&json!({ "apiVersion": "v1", "kind": "List", "items": [
        marked, renamed, cut, pod(&namespace, "plain", &node),
        owned("job", "batch.volcano.sh/v1alpha1", "Job", true), owned("database", "db.example/v1", "Database", false),
        holds("a", "boss_0f8f"), holds("b", &format!("{}_0f8f", &long[..63])),
    ] }));
    for (name, risk) in [
        ("marked", "critical"),
        ("renamed", "critical"),
        (&*long, "critical"),
        ("job", "critical"),
        ("database", "critical"),
        ("plain", "low"),
    ] {
        plugin()
            .run(&["force-delete", name, "-n", &namespace, "--dry-run", "--anyway"])
            .expect(0)
            .says(&format!("{namespace}/{name}, risk of force-deleting it: {risk}\n"));
    }
    let outcome =
        plugin().run(&["force-delete", "marked", "-n", &namespace, "--confirm", "--anyway"]).expect(6);
    outcome.says("hint: --confirm --i-have-fenced");
    assert_ne!(uid(&namespace, "marked"), "");
}

/// The API takes times that jiff does not know.
#[test]
fn a_lease_at_the_end_of_time_hinders_no_command() {
    let (namespace, node) = (namespace(), silent_node());
    let far = |namespace: &str, name: &str| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": name, "namespace": namespace },
            "spec": { "holderIdentity": "x", "leaseDurationSeconds": 40, "renewTime": "9999-12-31T23:59:59.000000Z" },
        })
    };
    shared().apply(&json!({ "apiVersion": "v1", "kind": "List", "items": [
        far(&namespace, "far"), far("kube-node-lease", &node), pod(&namespace, "web", &node),
    ] }));
    let outcome = plugin().run(&["partitions", &node, "--no-headers"]).expect(0);
    assert_eq!(outcome.rows()[0][1], "silent", "the node controller has given it up");
    plugin().run(&["force-delete", "web", "-n", &namespace, "--dry-run"]).expect(0);
    plugin().run(&["leaders", "-n", &namespace]).expect(0);
    plugin().run(&["leaders", "-n", &namespace, "-o", "json"]).expect(0);
    let outcome = plugin().run(&["fence", &node, "--dry-run=client"]);
    assert!(outcome.code != 1 && !outcome.stderr.contains("cannot read"), "{outcome:#?}");
    shared().kubectl(&["delete", "lease", &node, "-n", "kube-node-lease"]);
}

/// That the object of a node is gone does not say that its machine is off, however old its heartbeat.
#[test]
fn deleting_a_node_makes_nothing_safer() {
    let (namespace, node) = (namespace(), format!("deleted-{}", random()));
    let mut database = pod(&namespace, "db", &node);
    database["metadata"]["ownerReferences"] = json!([{ "apiVersion": "db.example/v1", "kind": "Database", "name": "x", "uid": "1", "controller": true }]);
    shared().apply(&database);
    let shows = |state: &str, risk: &str| {
        let outcome = plugin().run(&["partitions", &node, "--no-headers"]).expect(0);
        let row = &outcome.rows()[0];
        assert!(row[1] == state && row.contains(&risk), "{row:?}");
    };
    let heartbeat = |age: i64| {
        shared().apply(&json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": node, "namespace": "kube-node-lease" },
            "spec": { "holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": format!("{:.6}", ago(age)) },
        }));
    };
    shows("gone", "critical");
    heartbeat(1);
    shows("late", "critical");
    heartbeat(600);
    shows("gone", "critical");
}
