//! What `docs/guard.yaml` lets through and what it refuses, on a control plane of its own.

use std::{
    process::Command,
    sync::OnceLock,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    harness::{
        ControlPlane, Shape, User,
        components::{Components, Entrant},
        random,
    },
    plugin::{Plugin, wait_for},
};

const HOME: &str = "kube-node-maintenance";
const SOON: Duration = Duration::from_secs(30);
/// May write leases and candidates in the namespace of maintenance leases, but not administer them.
const WRITER: &str = "writer";
const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
/// Both of a node that was elected before there was a guard.
const EARLY: &str = "early";

/// A control plane that is guarded, and that had an election in the maintenance namespace before.
fn guarded() -> &'static ControlPlane {
    static GUARDED: OnceLock<ControlPlane> = OnceLock::new();
    GUARDED.get_or_init(|| {
        let plane = ControlPlane::start(&Shape { managers: 1, ..Shape::default() });
        let rule = json!({
            "apiGroups": ["coordination.k8s.io"], "resources": ["leases", "leasecandidates"],
            "verbs": ["get", "list", "create", "update", "patch", "delete"],
        });
        plane.apply(&json!({ "apiVersion": "v1", "kind": "List", "items": [
            {
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
                "metadata": { "name": WRITER, "namespace": HOME }, "rules": [rule],
            },
            {
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": { "name": WRITER, "namespace": HOME },
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": WRITER },
                "subjects": [{ "kind": "User", "name": WRITER }],
            },
            { "apiVersion": "v1", "kind": "Node", "metadata": { "name": EARLY } },
        ] }));
        // Without the guard whoever may write candidates has any maintenance lease overwritten.
        Plugin::new(plane.kubeconfig(User::Admin, 0))
            .run(&["maint", "acquire", EARLY, "--admin", "--duration=1s"])
            .expect(0);
        plane.await_elector();
        write_as(&plane, WRITER, "create", &candidate(EARLY)).unwrap();
        let answers = Components::answer(&plane, HOME);
        wait_for("an election", SOON, || holder(&plane, EARLY) == EARLY, || lease(&plane, EARLY).to_string());
        drop(answers);

        plane.kubectl(&["apply", "-f", concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guard.yaml")]);
        let probe = format!("probe-{}", random());
        let admins = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": probe, "namespace": HOME }, "spec": { "holderIdentity": "kubeadm" } });
        wait_for("the guard of the prefix", SOON, || dry(&plane, WRITER, &admins).is_err(), String::new);
        wait_for(
            "the guard against elections",
            SOON,
            || dry(&plane, WRITER, &candidate(&probe)).is_err(),
            String::new,
        );
        plane
    })
}

/// kubectl as another user: what it prints, or what it complains about.
fn kubectl_as(plane: &ControlPlane, user: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(plane.assets.join("kubectl"))
        .args(["--as", user])
        .args(args)
        .env("KUBECONFIG", plane.kubeconfig(User::Admin, 0))
        .env("HOME", &plane.folder)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

/// Creates or replaces an object.
fn write_as(plane: &ControlPlane, user: &str, verb: &str, object: &Value) -> Result<String, String> {
    let file = plane.folder.join(format!("object-{}.json", random()));
    std::fs::write(&file, object.to_string()).unwrap();
    kubectl_as(plane, user, &[verb, "-f", file.to_str().unwrap()])
}

fn dry(plane: &ControlPlane, user: &str, object: &Value) -> Result<String, String> {
    let file = plane.folder.join(format!("object-{}.json", random()));
    std::fs::write(&file, object.to_string()).unwrap();
    kubectl_as(plane, user, &["create", "--dry-run=server", "-f", file.to_str().unwrap()])
}

fn patch_as(user: &str, kind: &str, name: &str, patch: &Value) -> Result<String, String> {
    let patch = patch.to_string();
    kubectl_as(guarded(), user, &["patch", kind, name, "-n", HOME, "--type=merge", "-p", &patch])
}

/// Of one lease that has the same name, alive just now: an election needs no answer to a ping.
fn candidate(name: &str) -> Value {
    Entrant { renewed: 0, ..Entrant::new(name, name) }.manifest(HOME)
}

fn lease(plane: &ControlPlane, name: &str) -> Value {
    serde_json::from_str(&plane.kubectl(&["get", "lease", name, "-n", HOME, "-o", "json"])).unwrap()
}

fn holder(plane: &ControlPlane, name: &str) -> String {
    lease(plane, name)["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

/// A node whose lease an administrator holds.
fn held_node(prefix: &str) -> String {
    let node = format!("{prefix}-{}", random());
    guarded().apply(&json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": node } }));
    let admin = Plugin::new(guarded().kubeconfig(User::Admin, 0));
    admin.run(&["maint", "acquire", &node, "--admin", "--reason", "a disk"]).expect(0);
    node
}

#[test]
fn maintenance_leases_cannot_be_elected() {
    let plane = guarded();
    let node = held_node("elected");
    let before = lease(plane, &node);
    for user in [WRITER, "admin", "system:apiserver"] {
        let group = if user == WRITER { &[][..] } else { &["--as-group", "system:masters"] };
        let refused = |args: &[&str]| kubectl_as(plane, user, &[group, args].concat()).unwrap_err();
        let file = plane.folder.join(format!("candidate-{user}.json"));
        std::fs::write(&file, candidate(&node).to_string()).unwrap();
        let words = refused(&["create", "-f", file.to_str().unwrap()]);
        assert!(words.contains("no LeaseCandidate can be created"), "{user}: {words}");
        // One from before can do nothing any more.
        let renewal = json!({ "spec": { "renewTime": candidate(EARLY)["spec"]["renewTime"] } }).to_string();
        let words = refused(&["patch", "leasecandidate", EARLY, "-n", HOME, "--type=merge", "-p", &renewal]);
        assert!(words.contains("no LeaseCandidate can be created or renewed"), "{user}: {words}");
        if user == WRITER {
            continue; // it may not change this lease in any way
        }
        for spec in [
            json!({ "strategy": "OldestEmulationVersion" }),
            json!({ "strategy": "example.com/x", "preferredHolder": "x" }),
        ] {
            let patch = json!({ "spec": spec }).to_string();
            let words = refused(&["patch", "lease", &node, "-n", HOME, "--type=merge", "-p", &patch]);
            assert!(words.contains("remove spec.strategy and spec.preferredHolder"), "{user}: {words}");
        }
    }
    assert_eq!(lease(plane, &node)["spec"], before["spec"]);

    // A candidate elsewhere is nobody's concern.
    plane.apply(&Entrant::new(&format!("free-{}", random()), "job").manifest("default"));
}

/// On the lease and the candidate that are older than the guard.
#[test]
fn what_was_elected_before_the_guard_can_be_taken_back() {
    let plane = guarded();
    let admin = Plugin::new(plane.kubeconfig(User::Admin, 0));
    assert_eq!(lease(plane, EARLY)["spec"]["strategy"], "OldestEmulationVersion");
    // Its metadata can be changed: whoever finalizes or collects it gets through.
    for kind in ["lease", "leasecandidate"] {
        patch_as(WRITER, kind, EARLY, &json!({ "metadata": { "labels": { "a": "b" } } })).unwrap();
    }
    // Only without the strategy; and that needs no administrator where none holds it.
    let words = patch_as(WRITER, "lease", EARLY, &json!({ "spec": { "leaseTransitions": 7 } })).unwrap_err();
    assert!(words.contains("remove spec.strategy and spec.preferredHolder"), "{words}");
    patch_as(WRITER, "lease", EARLY, &json!({ "spec": { "strategy": null, "preferredHolder": null } }))
        .unwrap();
    let acquire = ["maint", "acquire", EARLY, "--admin", "--duration=1s", "--wait=30s"];
    admin.run(&acquire).expect(0);
    let held = lease(plane, EARLY);

    // The election controller still tries, since the candidate is there, and is refused.
    let tries = || {
        let audited = plane.audited("system:apiserver");
        let here = format!("/namespaces/{HOME}/lease");
        audited.iter().filter(|line| line.contains(&here) && !line.starts_with("get")).count()
    };
    let before = tries();
    wait_for(
        "an attempt to elect",
        Duration::from_secs(60),
        || tries() > before,
        || plane.audited("system:apiserver").join("\n"),
    );
    assert_eq!(lease(plane, EARLY)["spec"], held["spec"]);
    kubectl_as(plane, WRITER, &["delete", "leasecandidate", EARLY, "-n", HOME]).unwrap();
}

/// Deletion that leaves the dependents is complete when the garbage collector has been at each of them.
#[test]
fn a_node_and_a_lease_can_be_deleted_with_their_dependents_orphaned() {
    let plane = guarded();
    let node = held_node("orphan");
    let before = lease(plane, &node);
    plane.kubectl(&["delete", "node", &node, "--cascade=orphan", "--timeout=30s"]);
    let after = lease(plane, &node);
    assert_eq!(after["spec"], before["spec"]);
    assert_eq!(before["metadata"]["ownerReferences"][0]["name"], *node);
    assert!(after["metadata"]["ownerReferences"].is_null(), "{after:#}");

    // The lease itself: here the collector removes a finalizer.
    let began = Instant::now();
    plane.kubectl(&["delete", "lease", &node, "-n", HOME, "--cascade=orphan", "--timeout=30s"]);
    assert!(began.elapsed() < SOON);
}

/// Each on a lease that an administrator holds, by a user who may update leases.
#[test]
fn only_what_leaves_an_administrators_lease_as_it_was_passes_without_the_permission() {
    let plane = guarded();
    let node = held_node("kept");
    let uid = lease(plane, &node)["metadata"]["ownerReferences"][0]["uid"].clone();
    let owner = |extra: Value| {
        let mut owner = json!({ "apiVersion": "v1", "kind": "Node", "name": node, "uid": uid });
        owner.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        owner
    };
    let owners = |owners: &[Value]| json!({ "metadata": { "ownerReferences": owners } });
    let annotation = |key: &str, value: Value| json!({ "metadata": { "annotations": { key: value } } });
    // One that exists: the real collector removes references to what does not.
    plane.kubectl(&["create", "configmap", &node, "-n", HOME]);
    let stranger = plane.kubectl(&["get", "configmap", &node, "-n", HOME, "-o", "jsonpath={.metadata.uid}"]);
    let stranger = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": node, "uid": stranger });
    let spec = |spec: Value| json!({ "spec": spec });
    let passes = [
        ("nothing", json!({})),
        ("a label", json!({ "metadata": { "labels": { "a": "b" } } })),
        ("another's annotation", annotation("example.com/x", "y".into())),
    ];
    let refused = [
        ("the reason", annotation("kubectl-lease.dev/reason", "take it".into())),
        ("no reason", annotation("kubectl-lease.dev/reason", Value::Null)),
        ("another word of ours", annotation("kubectl-lease.dev/x", "y".into())),
        ("no owner", owners(&[])),
        ("another owner", owners(std::slice::from_ref(&stranger))),
        ("one more owner", owners(&[owner(json!({})), stranger.clone()])),
        ("an owner that blocks", owners(&[owner(json!({ "blockOwnerDeletion": true }))])),
        ("an owner that controls", owners(&[owner(json!({ "controller": true }))])),
        ("a finalizer", json!({ "metadata": { "finalizers": ["example.com/x"] } })),
        ("the holder", spec(json!({ "holderIdentity": "kubeadm:other" }))),
        ("no holder", spec(json!({ "holderIdentity": "" }))),
        ("the duration", spec(json!({ "leaseDurationSeconds": 1 }))),
        ("the renewal", spec(json!({ "renewTime": "2026-01-01T00:00:00.000000Z" }))),
        ("the transitions", spec(json!({ "leaseTransitions": 99 }))),
    ];
    for (what, patch) in &passes {
        patch_as(WRITER, "lease", &node, patch).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    for (what, patch) in &refused {
        let words = patch_as(WRITER, "lease", &node, patch).expect_err(what);
        assert!(words.contains("'administer' leases"), "{what}: {words}");
    }
    // A migration of storage replaces every object by itself.
    write_as(plane, WRITER, "replace", &lease(plane, &node)).unwrap();
    let words = kubectl_as(plane, WRITER, &["delete", "lease", &node, "-n", HOME]).unwrap_err();
    assert!(words.contains("'administer' leases"), "{words}");

    // The collector removes owners and unblocks them, and no more.
    let blocking = owners(&[owner(json!({ "blockOwnerDeletion": true })), stranger.clone()]);
    plane.kubectl(&["patch", "lease", &node, "-n", HOME, "--type=merge", "-p", &blocking.to_string()]);
    for refused in [
        owners(&[
            owner(json!({})),
            stranger.clone(),
            json!({ "apiVersion": "v1", "kind": "Node", "name": "x", "uid": "x" }),
        ]),
        owners(&[owner(json!({ "name": "x" }))]),
        owners(&[owner(json!({ "kind": "ConfigMap" }))]),
        json!({ "metadata": { "ownerReferences": [] }, "spec": { "holderIdentity": "" } }),
    ] {
        patch_as(COLLECTOR, "lease", &node, &refused).expect_err("the collector");
    }
    for passes in [
        owners(&[owner(json!({ "blockOwnerDeletion": false })), stranger]),
        owners(&[owner(json!({}))]),
        owners(&[]),
    ] {
        patch_as(COLLECTOR, "lease", &node, &passes).unwrap();
    }

    // Its finalizer comes off once it is being deleted, and not before.
    let finalizers = |names: &[&str]| json!({ "metadata": { "finalizers": names } });
    let (two, one) = (finalizers(&["example.com/a", "example.com/b"]), finalizers(&["example.com/a"]));
    plane.kubectl(&["patch", "lease", &node, "-n", HOME, "--type=merge", "-p", &two.to_string()]);
    patch_as(WRITER, "lease", &node, &one).expect_err("it is not being deleted");
    plane.kubectl(&["delete", "lease", &node, "-n", HOME, "--wait=false"]);
    patch_as(WRITER, "lease", &node, &spec(json!({ "holderIdentity": "" }))).expect_err("it is still held");
    patch_as(WRITER, "lease", &node, &one).unwrap();
    patch_as(WRITER, "lease", &node, &finalizers(&[])).unwrap();
    let found = plane.kubectl(&["get", "lease", &node, "-n", HOME, "--ignore-not-found"]);
    assert_eq!(found, "");
}
