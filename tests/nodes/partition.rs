//! Nodes that are cut off, and nodes that crash.

use std::{thread, time::Duration};

use crate::{
    harness::disk::overlaps,
    stage::{Kind, Seen, Stage, await_contact, await_ready, ignore_term, plane, plugin},
};

crate::tests![
    forced_by_kubectl_a_stateful_pod_writes_twice,
    forced_by_kubectl_in_its_grace_period_a_pod_of_a_healthy_node_writes_on,
    a_deleted_pod_of_a_recreate_deployment_writes_beside_the_next,
    a_stateful_pod_of_a_partitioned_node_is_not_forced,
    a_crashed_node_is_fenced_and_returns,
];

/// The control of the checker: without it, that nothing was found would say nothing.
fn forced_by_kubectl_a_stateful_pod_writes_twice() {
    let mut stage = Stage::new();
    let [a, b] = stage.names();
    let first = stage.run(Kind::StatefulSet, "web");
    stage.a().partition();
    stage.await_unreachable(&a);
    stage.kubectl(&["delete", "pod", "web-0", "--force", "--grace-period=0"]);
    let second = stage.await_writer("web", &b);
    assert_ne!(first.uid, second.uid);
    thread::sleep(Duration::from_secs(2));
    stage.a().heal();
    stage.await_end_of(&first.uid);

    let found = overlaps(&stage.disk.lines("web-0"));
    assert_eq!(found.len(), 1, "{}", stage.describe());
    assert!(found[0].seconds() > 1.5, "{}", found[0]);
    assert_eq!((&found[0].first.uid, &found[0].first.node), (&first.uid, &a));
    assert_eq!((&found[0].second.uid, &found[0].second.node), (&second.uid, &b));
    eprintln!("kubectl delete --force: {}", found[0]);
}

/// The kubelet keeps the grace period that it has begun, though the object is gone.
fn forced_by_kubectl_in_its_grace_period_a_pod_of_a_healthy_node_writes_on() {
    let stage = Stage::new();
    let first = run_ignoring_term(&stage, Kind::StatefulSet);
    stage.kubectl(&["delete", "pod", &first.name, "--wait=false"]);
    thread::sleep(Duration::from_secs(2));
    assert_eq!(stage.pods("web").len(), 1, "a StatefulSet waits for the old one");
    stage.kubectl(&["delete", "pod", &first.name, "--force", "--grace-period=0"]);
    assert_writes_beside_the_next(&stage, &first, "web-0");
}

/// Recreate is about revisions: the `ReplicaSet` replaces a pod as soon as it is Terminating, without force.
fn a_deleted_pod_of_a_recreate_deployment_writes_beside_the_next() {
    let stage = Stage::new();
    let first = run_ignoring_term(&stage, Kind::Recreate);
    stage.kubectl(&["delete", "pod", &first.name, "--wait=false"]);
    assert_writes_beside_the_next(&stage, &first, "web");
}

/// Runs a workload whose pod writes for 20 seconds after it was told to end.
fn run_ignoring_term(stage: &Stage, kind: Kind) -> Seen {
    let mut manifest = stage.manifest(kind, "web");
    ignore_term(&mut manifest, 20);
    plane().apply(&manifest);
    stage.await_writer("web", &stage.names()[0])
}

fn assert_writes_beside_the_next(stage: &Stage, first: &Seen, file: &str) {
    let second = stage.await_other_writer("web", &first.uid);
    stage.await_end_of(&first.uid);
    let found = overlaps(&stage.disk.lines(file));
    assert_eq!(found.len(), 1, "{}", stage.describe());
    assert_eq!((&found[0].first.uid, &found[0].second.uid), (&first.uid, &second.uid));
    assert!(found[0].seconds() > 1.5, "{}", found[0]);
}

fn a_stateful_pod_of_a_partitioned_node_is_not_forced() {
    let mut stage = Stage::new();
    let [a, b] = stage.names();
    let first = stage.run(Kind::StatefulSet, "web");
    stage.a().partition();
    stage.await_unreachable(&a);
    stage.await_terminating("web", &first.uid);
    let force = ["force-delete", "pod", "web-0", "-n", &stage.namespace, "--confirm"];
    plugin().run(&force).expect(6).says("risk of force-deleting it: critical");
    await_contact(&a, "silent");
    plugin()
        .run(&force)
        .expect(6)
        .says("risk of force-deleting it: critical")
        .says(&format!("the containers may still be running on {a}"));
    assert_eq!(stage.pods("web")[0].uid, first.uid);
    stage.a().heal();
    // The kubelet has not known that it was deleted.
    let second = stage.await_other_writer("web", &first.uid);
    assert!([&a, &b].contains(&&second.node));
    stage.assert_one_writer();
}

fn a_crashed_node_is_fenced_and_returns() {
    let mut stage = Stage::new();
    let [a, b] = stage.names();
    let first = stage.run(Kind::StatefulSet, "web");
    stage.a().crash();
    stage.await_unreachable(&a);
    stage.await_terminating("web", &first.uid);
    await_contact(&a, "silent");
    plugin().run(&["fence", &a, "--confirm", "--i-have-fenced"]).expect(0);
    let second = stage.await_writer("web", &b);
    stage.a().start();
    await_ready(&a);
    plugin().run(&["fence", &a, "--undo", "--confirm"]).expect(0);
    // The kubelet has looked at what it ran before.
    stage.await_end_of(&first.uid);
    assert_eq!(stage.await_writer("web", &b), second);
    stage.assert_one_writer();
}
