//! The oldest release that this is made for: every command does its main work there too.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    harness::{ControlPlane, Release, Shape, User},
    plugin::{Outcome, Plugin, wait_for},
};

const MANAGER: &str = "kube-controller-manager";

fn items(outcome: &Outcome) -> Vec<Value> {
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    document["items"].as_array().unwrap().clone()
}

#[test]
fn every_command_does_its_work_on_the_oldest_release() {
    let plane = ControlPlane::start(&Shape {
        release: Release::Oldest,
        managers: 2,
        features: "CoordinatedLeaderElection=true,UnknownVersionInteroperabilityProxy=false",
        apis: "api/alpha=true,api/beta=true",
        ..Shape::default()
    });
    let plugin = Plugin::new(plane.kubeconfig(User::Admin, 0));
    plane.await_elector();

    let apiservers = items(&plugin.run(&["apiservers", "-o", "json"]).expect(0));
    assert_eq!(apiservers.len(), 1, "{apiservers:#?}");
    assert_eq!(apiservers[0]["state"], "alive", "{apiservers:#?}");

    plane.kubectl(&["apply", "-f", concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guard.yaml")]);
    let findings = items(&plugin.run(&["doctor", "-o", "json"]).expect(0));
    assert!(findings.iter().all(|finding| finding["level"] == "ok"), "{findings:#?}");
    let message = |check: &str| {
        let found = findings.iter().find(|finding| finding["check"] == check);
        found.unwrap()["message"].as_str().unwrap().to_owned()
    };
    if message("server").starts_with("v1.31.") {
        assert_eq!(message("coordinated-election"), "served as v1alpha1");
    }

    lead(&plane, &plugin);
    maintain(&plane, &plugin);
    delete(&plane, &plugin);
}

/// The lead of the real kube-controller-manager is seen, moved and given back.
fn lead(plane: &ControlPlane, plugin: &Plugin) {
    let candidates = || items(&plugin.run(&["candidates", MANAGER, "-o", "json"]).expect(0));
    let named = |flag: &str| {
        let all = candidates();
        let marked = all.iter().find(|item| item[flag] == true);
        marked.map(|item| item["candidate"].as_str().unwrap().to_owned())
    };
    wait_for(
        "a leader and one that is next",
        Duration::from_secs(40),
        || named("leader").is_some() && named("next").is_some(),
        || format!("{:#?}", candidates()),
    );
    let holder = || {
        let path = "jsonpath={.spec.holderIdentity}";
        plane.kubectl(&["get", "lease", MANAGER, "-n", "kube-system", "-o", path])
    };
    assert_eq!(named("leader"), Some(holder()));
    let next = named("next").unwrap();
    let set = plugin.run(&["candidates", "set-priority", &next, "100", "--yes", "--wait=60s"]).expect(0);
    assert!(set.stdout.ends_with(&format!("{next} leads kube-system/{MANAGER}\n")), "{set:?}");
    assert_eq!(holder(), next);
    let words = plugin.run(&["candidates", "explain", MANAGER]).expect(0).stdout;
    assert!(words.contains("The priority decides"), "{words}");
    plugin.run(&["candidates", "clear-priority", &next, "--yes"]).expect(0);
    assert!(candidates().iter().all(|item| item["priority"].is_null()), "{:#?}", candidates());

    let leaders = items(&plugin.run(&["leaders", MANAGER, "-o", "json"]).expect(0));
    assert_eq!(leaders.len(), 1, "{leaders:#?}");
}

/// A node is held, kept from others, and a command runs under a lease.
fn maintain(plane: &ControlPlane, plugin: &Plugin) {
    plane.apply(&json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "node-1" } }));
    let reader = Plugin::new(plane.kubeconfig(User::Reader, 0));
    plugin.run(&["maint", "acquire", "node-1", "--reason", "new disk"]).expect(0);
    reader.run(&["maint", "acquire", "node-1"]).expect(4);
    plugin.run(&["maint", "renew", "node-1"]).expect(0);
    plugin.run(&["maint", "release", "node-1"]).expect(0);
    wait_for(
        "the guard",
        Duration::from_secs(30),
        || reader.run(&["maint", "acquire", "node-1", "--admin", "--dry-run=server"]).code == 7,
        String::new,
    );
    if plane.kubectl(&["api-versions"]).contains("coordination.k8s.io/v1alpha1") {
        candidates_are_refused(plane);
    }
    plugin.run(&["hold", "job", "--", "true"]).expect(0);
    plugin.run(&["hold", "job", "--", "false"]).expect(1);
}

/// The version of candidates is another here, and their strategies have another name.
fn candidates_are_refused(plane: &ControlPlane) {
    let candidate = plane.folder.join("candidate.json");
    let text = json!({
        "apiVersion": "coordination.k8s.io/v1alpha1", "kind": "LeaseCandidate",
        "metadata": { "name": "node-1", "namespace": "kube-node-maintenance" },
        "spec": { "leaseName": "node-1", "binaryVersion": "1.31.0", "emulationVersion": "1.31.0",
            "preferredStrategies": ["OldestEmulationVersion"] },
    });
    std::fs::write(&candidate, text.to_string()).unwrap();
    let create = || {
        let output = std::process::Command::new(plane.assets.join("kubectl"))
            .args(["create", "--dry-run=server", "-f"])
            .arg(&candidate)
            .env("KUBECONFIG", plane.kubeconfig(User::Admin, 0))
            .output()
            .unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let refused = || create().contains("no LeaseCandidate can be created");
    wait_for("the guard against elections", Duration::from_secs(30), refused, create);
}

/// A pod that is stranded on a silent node is seen and deleted, and the node fenced.
fn delete(plane: &ControlPlane, plugin: &Plugin) {
    let long_ago = jiff::Timestamp::now() - jiff::SignedDuration::from_mins(10);
    let time = format!("{long_ago:.0}");
    let condition = json!({
        "type": "Ready", "status": "Unknown", "reason": "Test", "message": "",
        "lastHeartbeatTime": time, "lastTransitionTime": time,
    });
    plane.apply(&json!({ "apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": "node-2", "namespace": "kube-node-lease" },
            "spec": { "holderIdentity": "node-2", "leaseDurationSeconds": 40, "renewTime": format!("{long_ago:.6}") },
        },
        {
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": "node-2" },
            "status": { "conditions": [condition] },
        },
        {
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "lost", "namespace": "default" },
            "spec": {
                "nodeName": "node-2", "tolerations": [{ "operator": "Exists" }],
                "containers": [{ "name": "main", "image": "x" }],
            },
        },
    ] }));
    let partitions = plugin.run(&["partitions", "node-2", "--exit-code"]).expect(4).stdout;
    assert!(partitions.contains("NodeDown") && partitions.contains("lost"), "{partitions}");
    plugin.run(&["force-delete", "pod", "lost", "--confirm"]).expect(0);
    let fence = plugin.run(&["fence", "node-2", "--confirm"]);
    assert_eq!(fence.code, 0, "{fence:?}");
    plugin.run(&["fence", "node-2", "--undo", "--confirm"]).expect(0);
}
