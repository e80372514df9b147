//! The nodes of these tests: what is done to them has the effect that it is named after.

use std::{thread, time::Duration};

use crate::{
    harness::disk,
    stage::{Kind, SOON, Stage, condition, eventually, get, plane, plugin},
    watch::watch,
};

crate::tests![
    every_kind_of_workload_writes_and_is_deleted_in_order,
    a_partitioned_node_runs_on_and_a_frozen_one_does_not,
    a_crashed_node_has_no_process_and_starts_its_pods_again,
    a_node_whose_runtime_hangs_heartbeats_and_is_shown_as_not_ready,
];

/// When a node last renewed its lease, which a new one may not have yet.
fn renewed(node: &str) -> String {
    let time = ["-o", "jsonpath={.spec.renewTime}"];
    plane().kubectl(
        &[&["get", "lease", "-n", "kube-node-lease", node, "--ignore-not-found"], &time[..]].concat(),
    )
}

/// Whether a pod has written since a time.
fn has_written(stage: &Stage, file: &str, uid: &str, since: u64) -> bool {
    stage.disk.lines(file).iter().any(|line| line.uid == uid && line.time > since)
}

fn every_kind_of_workload_writes_and_is_deleted_in_order() {
    let stage = Stage::new();
    let [a, b] = stage.names();
    let kinds = [Kind::StatefulSet, Kind::Recreate, Kind::Rolling, Kind::DaemonSet, Kind::Job, Kind::Pod];
    let app = |kind: Kind| format!("{kind:?}").to_lowercase();
    for kind in kinds {
        plane().apply(&stage.manifest(kind, &app(kind)));
    }
    let first = kinds.map(|kind| stage.await_writer(&app(kind), &a));
    stage.await_writer("daemonset", &b);
    stage.kubectl(&["delete", "pods", "--all", "--timeout=60s"]);
    for (kind, first) in kinds.into_iter().zip(first) {
        if kind == Kind::Pod {
            assert!(stage.pods("pod").is_empty());
        } else {
            stage.await_other_writer(&app(kind), &first.uid);
        }
    }
    assert_eq!(stage.disk.files().len(), 5 + 2 + 1, "{:?}", stage.disk.files());
    stage.assert_one_writer();
}

fn a_partitioned_node_runs_on_and_a_frozen_one_does_not() {
    let mut stage = Stage::new();
    let [a, _] = stage.names();
    let pod = stage.run(Kind::StatefulSet, "web");
    let writes = |stage: &Stage| {
        let since = disk::now();
        thread::sleep(Duration::from_secs(2));
        has_written(stage, "web-0", &pod.uid, since)
    };
    let renews = || {
        let before = renewed(&a);
        thread::sleep(Duration::from_secs(8));
        renewed(&a) != before
    };
    assert!(renews() && writes(&stage));
    stage.a().partition();
    // What was on its way has arrived.
    thread::sleep(Duration::from_secs(1));
    assert!(!renews() && writes(&stage));
    stage.a().heal();
    assert!(renews() && writes(&stage));

    stage.a().freeze();
    thread::sleep(Duration::from_secs(1));
    assert!(!renews() && !writes(&stage));
    stage.a().thaw();
    assert!(renews() && writes(&stage));
    assert_eq!(stage.pods("web"), std::slice::from_ref(&pod));
    stage.assert_one_writer();
}

fn a_crashed_node_has_no_process_and_starts_its_pods_again() {
    let mut stage = Stage::new();
    let [a, _] = stage.names();
    let pod = stage.run(Kind::StatefulSet, "web");
    let processes = stage.a().processes();
    // The first, containerd, kubelet, a shim, a sandbox and a container at the least.
    assert!(processes.len() >= 6, "{processes:?}");
    stage.a().crash();
    let left: Vec<_> = processes.iter().filter_map(|id| status(*id)).collect();
    assert!(left.is_empty(), "{left:#?}");
    let since = disk::now();
    stage.a().start();
    eventually(
        "the same pod writes again",
        SOON,
        || has_written(&stage, "web-0", &pod.uid, since),
        || stage.describe(),
    );
    assert_eq!(stage.await_writer("web", &a), pod);
    stage.assert_one_writer();
}

/// Of a process that exists.
fn status(process: u32) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{process}/status")).ok()
}

fn a_node_whose_runtime_hangs_heartbeats_and_is_shown_as_not_ready() {
    let mut stage = Stage::new();
    let [a, _] = stage.names();
    let pod = stage.run(Kind::StatefulSet, "web");
    let watching = watch(&a);
    stage.a().hang_runtime();
    let ready = || condition(&get(&["node", &a]), "Ready");
    eventually("not ready", SOON * 2, || ready() == "False", || stage.describe());
    let (since, before) = (disk::now(), renewed(&a));
    thread::sleep(Duration::from_secs(8));
    assert_ne!(renewed(&a), before);
    assert!(has_written(&stage, "web-0", &pod.uid, since));
    watching.until("it is told", SOON, |told| told.contains(&format!("{a}   notready   ")));
    for command in [&["partitions", "--exit-code"][..], &["partitions", &a, "--exit-code"]] {
        let outcome = plugin().run(command).expect(4);
        let stranded = [&*a, "notready", &format!("{}/web-0", stage.namespace), "critical"];
        let shown = |row: &Vec<&str>| stranded.iter().all(|word| row.contains(word));
        assert!(outcome.rows().iter().any(shown), "{stranded:?} are not in a line of {outcome:#?}");
    }
    stage.a().resume_runtime();
    eventually("ready", SOON, || ready() == "True", || stage.describe());
    watching.until("it is alive", SOON, |told| told.contains(&format!("{a}   alive   was notready")));
}
