//! Pods with more than their containers: static pods, sidecars, hooks and ephemeral containers. What is
//! said of them, and what the disk shows when that is followed.

use std::{fs, thread, time::Duration};

use serde_json::{Value, json};

use crate::{
    advice::{command, cut_off, force, refused, safely, types},
    harness::{disk, image::IMAGE},
    stage::{Kind, SOON, Seen, Stage, eventually, get, ignore_term, plane, plugin, pod_spec_of},
};

crate::tests![
    a_static_pod_ends_with_its_manifest,
    a_sidecar_that_runs_on_is_waited_for,
    a_sidecar_counts_when_the_other_containers_have_ended,
    a_hook_that_hangs_is_waited_for,
    an_ephemeral_container_that_runs_on_is_waited_for,
];

/// How long what does not want to end has for it.
const GRACE_SECONDS: u32 = 12;

fn a_static_pod_ends_with_its_manifest() {
    let mut stage = Stage::new();
    let [a, _] = stage.names();
    let manifest = stage.manifest(Kind::Pod, "agent");
    let file = stage.a().run_static_pod(&manifest);
    let mirror = |stage: &Stage| stage.pods("agent").into_iter().next();
    let await_mirror = |stage: &Stage, what: &str, is: &dyn Fn(Option<Seen>) -> bool| {
        // A kubelet looks after a static pod each minute, or a minute and a half.
        eventually(what, SOON * 3, || is(mirror(stage)), || stage.describe());
    };
    let await_writes = |stage: &Stage| {
        let since = disk::now();
        let writes = || stage.disk.lines("agent").iter().any(|line| line.time > since);
        eventually("it writes", SOON, writes, || stage.describe());
    };
    let assert_refused = |stage: &Stage, pod: &Seen| {
        let outcome = force(stage, pod).expect(6).says("force does not help with");
        outcome.says(&format!("1. remove its manifest on {a}"));
        safely(stage, pod).expect(6);
    };
    await_mirror(&stage, "it has a mirror pod", &|pod| pod.is_some());
    await_writes(&stage);
    let first = mirror(&stage).unwrap();
    // What is forced is what was looked at: the kubelet has reported all that it does at first.
    stage.kubectl(&["wait", "--for=condition=Ready", "--timeout=60s", "pod", &first.name]);
    assert_refused(&stage, &first);
    // Whoever does it all the same: the process runs on, and the object comes back.
    let anyway = ["force-delete", &first.name, "-n", &stage.namespace, "--confirm", "--anyway"];
    plugin().run(&anyway).expect(0);
    await_mirror(&stage, "it comes back", &|pod| pod.is_some_and(|pod| pod.uid != first.uid));
    await_writes(&stage);

    cut_off(&mut stage);
    assert_refused(&stage, &first);
    await_writes(&stage);
    fs::remove_file(file).unwrap();
    let last = || stage.disk.lines("agent").last().unwrap().time;
    eventually("it has ended", SOON, || disk::now() > last() + 100, || stage.describe());
    stage.a().heal();
    await_mirror(&stage, "its mirror pod is gone", &|pod| pod.is_none());
    stage.assert_one_writer();
}

/// Runs a `StatefulSet`, has a part of its pod not end when the pod is deleted, and does what is advised.
fn assert_waited_for(stage: &Stage, manifest: &Value, prepare: impl Fn(&Seen)) {
    plane().apply(manifest);
    let first = stage.await_writer("db", &stage.names()[0]);
    prepare(&first);
    stage.kubectl(&["delete", "pod", &first.name, "--wait=false"]);
    // What ends at once has ended. The kubelet does not report that before the rest has ended too.
    thread::sleep(Duration::from_secs(3));
    let since = disk::now();
    let outcome = refused(force(stage, &first)).says("its node is alive");
    types(&command(&outcome, "wait: its grace period ends in"));
    stage.await_other_writer("db", &first.uid);
    let wrote = |line: &disk::Line| line.uid == first.uid && line.time > since + 300;
    assert!(stage.disk.lines("db-0").iter().any(wrote), "it has ended at once\n{}", stage.describe());
    stage.assert_one_writer();
}

/// A workload whose sidecar is what writes, and does not end when it is told to. The other container runs
/// until it is told to end, or until there is a file of this name on the disk.
fn with_sidecar(stage: &Stage, kind: Kind, app: &str) -> Value {
    let mut manifest = stage.manifest(kind, app);
    ignore_term(&mut manifest, GRACE_SECONDS);
    let spec = pod_spec_of(&mut manifest);
    let mut sidecar = spec["containers"][0].take();
    let mut main = sidecar.clone();
    sidecar["restartPolicy"] = "Always".into();
    main["name"] = "main".into();
    main["command"][2] =
        format!("trap 'exit 0' TERM; until [ -e /disk/{STOP} ]; do sleep 0.2; done; exit 1").into();
    spec["initContainers"] = json!([sidecar]);
    spec["containers"] = json!([main]);
    manifest
}

const STOP: &str = "stop";

fn a_sidecar_that_runs_on_is_waited_for() {
    let stage = Stage::new();
    let manifest = with_sidecar(&stage, Kind::StatefulSet, "db");
    assert_waited_for(&stage, &manifest, |_| ());
}

/// The kubelet ends it then, in the grace of the pod, and reports the end of the others meanwhile.
fn a_sidecar_counts_when_the_other_containers_have_ended() {
    let stage = Stage::new();
    let mut manifest = with_sidecar(&stage, Kind::Job, "batch");
    manifest["spec"]["podReplacementPolicy"] = "Failed".into();
    plane().apply(&manifest);
    let first = stage.await_writer("batch", &stage.names()[0]);
    let stop = stage.disk.folder.join(STOP);
    fs::write(&stop, "").unwrap();
    let ended = || {
        let status = get(&["pod", &first.name, "-n", &stage.namespace])["status"].clone();
        let sidecar = &status["initContainerStatuses"][0]["state"];
        status["containerStatuses"][0]["state"]["terminated"].is_object() && sidecar["running"].is_object()
    };
    eventually("only the sidecar runs", SOON, ended, || stage.describe());
    fs::remove_file(stop).unwrap();
    let outcome = refused(force(&stage, &first));
    assert!(outcome.stderr.contains("the containers may still be running on"), "{outcome:#?}");
    stage.await_other_writer("batch", &first.uid);
    stage.assert_one_writer();
}

/// Until it has ended, or the grace is over, the container is not told to end.
fn a_hook_that_hangs_is_waited_for() {
    let stage = Stage::new();
    let mut manifest = stage.manifest(Kind::StatefulSet, "db");
    let spec = pod_spec_of(&mut manifest);
    spec["terminationGracePeriodSeconds"] = GRACE_SECONDS.into();
    let hang = json!({ "exec": { "command": ["sh", "-c", "sleep 1000"] } });
    spec["containers"][0]["lifecycle"] = json!({ "preStop": hang });
    assert_waited_for(&stage, &manifest, |_| ());
}

/// One that an operator has put there, by `kubectl debug`, and that writes to the pod's disk.
fn an_ephemeral_container_that_runs_on_is_waited_for() {
    let stage = Stage::new();
    let mut manifest = stage.manifest(Kind::StatefulSet, "db");
    let mut debugger = manifest.clone();
    ignore_term(&mut debugger, GRACE_SECONDS);
    let debugger = pod_spec_of(&mut debugger)["containers"][0].take();
    let spec = pod_spec_of(&mut manifest);
    spec["terminationGracePeriodSeconds"] = GRACE_SECONDS.into();
    assert_waited_for(&stage, &manifest, |pod| {
        let custom = plane().folder.join(format!("{}.json", stage.namespace));
        let part = json!({ "env": debugger["env"], "volumeMounts": debugger["volumeMounts"] });
        fs::write(&custom, part.to_string()).unwrap();
        let (custom, image) = (format!("--custom={}", custom.display()), format!("--image={IMAGE}"));
        let script = debugger["command"][2].as_str().unwrap();
        let debug =
            ["debug", &pod.name, &image, "--image-pull-policy=Never", "--container=debugger", &custom];
        stage.kubectl(&[&debug[..], &["--", "sh", "-c", script]].concat());
        let runs = || {
            let pod = get(&["pod", &pod.name, "-n", &stage.namespace]);
            pod["status"]["ephemeralContainerStatuses"][0]["state"]["running"].is_object()
        };
        eventually("the debugger runs", SOON, runs, || stage.describe());
    });
}
