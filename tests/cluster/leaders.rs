//! Leader election without coordination: leases as components write them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    harness::{User, random},
    plugin::Plugin,
    shared,
};

const SOON: Duration = Duration::from_secs(15);

fn lease(namespace: &str, name: &str, holder: &str, renewed: Option<i64>) -> Value {
    let renewed = renewed.map(|ago| jiff::Timestamp::now() - jiff::SignedDuration::from_secs(ago));
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": name, "namespace": namespace },
        "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": 60, "leaseTransitions": 4,
            "renewTime": renewed.map(|time| format!("{time:.6}")),
        },
    })
}

/// A namespace with a pod in it, and a node; the names of all three.
fn place() -> (String, String, String) {
    let (namespace, node) = (format!("leaders-{}", random()), format!("node-{}", random()));
    // As a Deployment would call it.
    let letters = |c: char| "bcdfghjklmnpqrst".chars().nth(c.to_digit(16).unwrap() as usize).unwrap();
    let pod = format!("web-7d4b9c8f6d-{}", random().chars().take(5).map(letters).collect::<String>());
    shared().apply(&json!({ "apiVersion": "v1", "kind": "List", "items": [
        { "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } },
        { "apiVersion": "v1", "kind": "Node", "metadata": { "name": node } },
        { "apiVersion": "v1", "kind": "Pod", "metadata": { "name": pod, "namespace": namespace },
          "spec": { "containers": [{ "name": "web", "image": "web" }] } },
    ] }));
    (namespace, pod, node)
}

#[test]
fn every_leader_is_shown_with_how_its_lease_stands() {
    let (namespace, pod, node) = place();
    let (on_pod, on_node) = (format!("{pod}_1"), format!("{node}_2"));
    let leases: Vec<_> = [
        ("a", on_pod.as_str(), Some(0)),
        ("b", &on_node, Some(45)),
        ("c", &on_node, Some(90)),
        ("d", "", Some(5)),
        ("e", "nowhere_3", Some(125)),
        // An ordinary failover, of a control plane whose hosts are no nodes.
        ("e1", "nowhere_3", Some(90)),
        // The plain name of a pod that is gone.
        ("e2", "web-7d4b9c8f6d-zzzzz", Some(125)),
        // Renewed by somebody: of a hosted control plane, perhaps, whose pods are elsewhere.
        ("f", "web-7d4b9c8f6d-zzzzz_4", Some(0)),
        ("g", "laptop_5", Some(0)),
        ("h", &on_pod, None),
    ]
    .iter()
    .map(|(name, holder, renewed)| lease(&namespace, name, holder, *renewed))
    .collect();
    shared().apply(&json!({ "apiVersion": "v1", "kind": "List", "items": leases }));
    let plugin = Plugin::new(shared().kubeconfig(User::Admin, 0));
    let listed = plugin.run(&["leaders", "-n", &namespace, "--no-headers"]).expect(0);
    let states: Vec<_> = listed.rows().iter().map(|row| (row[1].to_owned(), row[2].to_owned())).collect();
    let states: Vec<_> = states.iter().map(|(name, state)| (name.as_str(), state.as_str())).collect();
    assert_eq!(
        states,
        [
            ("a", "healthy"),
            ("b", "late"),
            ("c", "expired"),
            ("d", "released"),
            ("e", "ghost"),
            ("e1", "expired"),
            ("e2", "ghost"),
            ("f", "healthy"),
            ("g", "healthy"),
            ("h", "unknown"),
        ]
    );
    assert!(listed.stdout.contains(&format!("pod/{namespace}/{pod} (guess)")), "{}", listed.stdout);
    assert!(listed.stdout.contains(&format!("node/{node} (guess)")), "{}", listed.stdout);

    let all = plugin.run(&["leaders", "-o", "json"]).expect(0).stdout;
    let all: Value = serde_json::from_str(&all).unwrap();
    let items = all["items"].as_array().unwrap();
    let named = |name: &str| items.iter().find(|item| item["lease"]["metadata"]["name"] == name);
    assert_eq!(named("kube-controller-manager").unwrap()["coordinated"], true);
    assert_eq!(named("leader-election-controller").unwrap()["coordinated"], false);
    let strangers = ["kube-node-lease", "kube-node-maintenance", "medik8s-leases"];
    for item in items {
        let metadata = &item["lease"]["metadata"];
        assert!(!strangers.contains(&metadata["namespace"].as_str().unwrap()), "{metadata}");
        assert_eq!(metadata["labels"]["apiserver.kubernetes.io/identity"], Value::Null, "{metadata}");
    }

    let one = plugin.run(&["leaders", "d", "-n", &namespace, "-o", "name"]).expect(0).stdout;
    assert_eq!(one, "lease.coordination.k8s.io/d\n");
    plugin
        .run(&["leaders", "nothing", "-n", &namespace])
        .expect(3)
        .says("there is no leader-election lease 'nothing'");
}

#[test]
fn a_watch_counts_changes_of_hands_and_marks_flapping() {
    let (namespace, pod, _) = place();
    let write = |holder: &str| shared().apply(&lease(&namespace, "busy", holder, Some(0)));
    write(&format!("{pod}_0"));
    let plugin = Plugin::new(shared().kubeconfig(User::Admin, 0));
    let watching = plugin.start(&["leaders", "-w", "-n", &namespace]);
    watching.until("the table", SOON, |text| text.contains("busy"));
    for holder in ["laptop_1", "laptop_2", "laptop_3"] {
        write(holder);
        watching.until(holder, SOON, |text| text.contains(&format!("busy   leads   {holder}, was ")));
    }
    assert!(
        watching.stdout().contains("leads   laptop_3, was laptop_2; flapping, 3 changes seen"),
        "{}",
        watching.stdout()
    );
    write("");
    watching.until("its release", SOON, |text| text.contains("busy   released   none, was healthy"));

    let terminal = plugin.start_on_terminal(&["leaders", "-w", "-n", &namespace], 20, 140);
    write("laptop_4");
    terminal.until("the table", SOON, |screen| screen.contains("1 of 1 healthy; watching"));
    shared().kubectl(&["delete", "pod", &pod, "-n", &namespace, "--grace-period=0", "--force"]);
    write(&format!("{pod}_5"));
    let gone = format!("{pod}_5");
    terminal.until("a process without its pod", SOON, |screen| {
        screen.contains(&gone) && !screen.contains("pod/")
    });
    assert!(terminal.screen().contains("(+1 seen)"), "{}", terminal.screen());
}
