//! The printed line that scales a controller to 0 or suspends it, waits until all its pods are gone, and brings it
//! back: what becomes of it where it is interrupted, or where the node fails after it was printed.

use std::{
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    advice::{command, cut_off, force, refused, safely, tolerate_outages, types, unknown_owner},
    harness::disk,
    plugin::Outcome,
    stage::{
        Kind, SOON, Seen, Stage, await_contact, await_ready, eventually, get, ignore_term, plane, plugin,
        pod_spec_of, shell,
    },
    table,
};

crate::tests![
    a_line_that_is_interrupted_is_found_and_finished,
    a_line_that_waits_in_vain_is_finished_when_the_node_is_back,
    a_pod_is_kept_from_being_evicted_from_a_lost_node,
    a_taint_from_an_earlier_outage_is_taken_off_first,
    a_node_that_is_deleted_after_its_controller_was_stopped_is_named,
    what_has_no_grace_is_left_alone_on_a_partitioned_node,
    what_has_no_grace_is_left_alone_where_the_runtime_hangs,
    what_has_no_grace_is_brought_back_when_its_containers_have_ended,
];

/// The label that the line leaves on a controller.
const LABELS: [&str; 2] = ["kubectl-lease.dev/scaled-from", "kubectl-lease.dev/suspended"];

/// A Deployment of one pod with rolling updates, and a Job, by the names of their apps: whatever is deleted is
/// replaced at once, beside it. Their pods write until the grace is over, and each app has one file. With
/// `stay` they run nowhere else.
fn run_doubled(stage: &Stage, grace_seconds: u32, stay: bool) -> [(&'static str, &'static str, Seen); 2] {
    let of = |kind: Kind, app: &'static str, controller: &'static str| {
        let mut manifest = stage.manifest(kind, app);
        if kind == Kind::Recreate && grace_seconds > 0 {
            // Else the printed way is a restart, which is done in one step.
            manifest["spec"]["strategy"] = json!({ "type": "RollingUpdate" });
        }
        if kind == Kind::Job {
            manifest["spec"]["backoffLimit"] = 1000.into();
        }
        ignore_term(&mut manifest, grace_seconds);
        tolerate_outages(&mut manifest);
        if stay {
            pod_spec_of(&mut manifest)["nodeSelector"]["kubernetes.io/hostname"] =
                stage.names()[0].as_str().into();
        }
        plane().apply(&manifest);
        (app, controller, stage.await_writer(app, &stage.names()[0]))
    };
    [of(Kind::Recreate, "web", "Deployment/web"), of(Kind::Job, "batch", "Job/batch")]
}

/// What is printed to end the pods by their controller, while all is well.
fn asked(stage: &Stage, pod: &Seen) -> (Outcome, String) {
    let outcome = refused(force(stage, pod)).says("its node is alive");
    let line = command(&outcome, "1. ");
    assert!(line.starts_with("kubectl patch "), "{line}");
    (outcome, line)
}

/// What `partitions` says about the controllers of this test, one by one: the sentence, and the command.
fn listed(stage: &Stage) -> Vec<(String, String)> {
    let document = || -> Vec<(String, String)> {
        let list: Value =
            serde_json::from_str(&plugin().run(&["partitions", "-o", "json"]).expect(0).stdout).unwrap();
        let ours =
            list["stopped"].as_array().unwrap().iter().filter(|it| it["namespace"] == *stage.namespace);
        ours.map(|it| ["what", "command"].map(|field| it[field].as_str().unwrap().to_owned()))
            .map(|[what, command]| (what, command))
            .collect()
    };
    let began = Instant::now();
    loop {
        let (ours, shown) = (document(), plugin().run(&["partitions"]).expect(0));
        // Something may have happened between the two.
        if document() == ours {
            for (what, line) in &ours {
                assert_eq!(&command(&shown, what), line, "{shown:#?}");
            }
            return ours;
        }
        assert!(began.elapsed() < SOON, "{ours:#?}\n{shown:#?}");
    }
}

/// What brings a controller back, as it is printed for who finds it.
fn found(stage: &Stage, controller: &str) -> String {
    let all = listed(stage);
    let is = |it: &&(String, String)| it.0.contains(&format!("{controller} in {}", stage.namespace));
    all.iter().find(is).unwrap_or_else(|| panic!("{controller} is not in {all:#?}")).1.clone()
}

/// Whether it is scaled to 0 or suspended.
fn is_stopped(stage: &Stage, controller: &str) -> bool {
    let object = get(&[&controller.to_lowercase(), "-n", &stage.namespace]);
    let marked = LABELS.iter().any(|label| !object["metadata"]["labels"][*label].is_null());
    let stopped = object["spec"]["replicas"] == 0 || object["spec"]["suspend"] == true;
    assert_eq!(marked, stopped, "{object:#}");
    stopped
}

/// Whether a pod writes now.
fn writes(stage: &Stage, file: &str, pod: &Seen) -> bool {
    let since = disk::now();
    thread::sleep(Duration::from_secs(2));
    stage.disk.lines(file).iter().any(|line| line.time > since && line.uid == pod.uid)
}

/// By Ctrl-C, and by a shell that is killed. The pods write on until their grace is over.
fn a_line_that_is_interrupted_is_found_and_finished() {
    let stage = Stage::new();
    let [web, batch] = run_doubled(&stage, 20, false);
    for ((app, controller, pod), is_killed) in [(&web, false), (&batch, true)] {
        let (outcome, line) = asked(&stage, pod);
        assert!(outcome.stderr.contains("'kubectl lease partitions' lists it"), "{outcome:#?}");
        if is_killed {
            // As a terminal that is closed by force: what it has started goes on by itself, and ends.
            let mut child = shell(&line, SOON).stdout(Stdio::null()).spawn().unwrap();
            let began = Instant::now();
            while !is_stopped(&stage, controller) {
                assert!(began.elapsed() < SOON, "{}", stage.describe());
                thread::sleep(Duration::from_millis(50));
            }
            let shells = stdout_of(&format!("cat /proc/{0}/task/{0}/children", child.id()));
            stdout_of(&format!("kill -9 {shells}"));
            child.wait().unwrap();
        } else {
            let out = shell(&line, Duration::from_secs(2)).output().unwrap();
            assert!(!out.status.success(), "{out:?}");
        }
        assert!(is_stopped(&stage, controller));
        assert!(writes(&stage, app, pod), "{}", stage.describe());
        // The evidence about the pod names it, too.
        let back = line.rsplit(" && ").next().unwrap();
        let name = pod.name.as_str();
        let told = plugin().run(&["force-delete", name, "-n", &stage.namespace, "--dry-run=client"]);
        let stopped = if controller.starts_with("Job/") { "is suspended" } else { "is scaled to 0" };
        assert!(
            told.stderr
                .contains(&format!("{stopped}; once its containers have ended, bring it back with: {back}")),
            "{told:#?}"
        );
    }
    assert_eq!(listed(&stage).len(), 2);
    for (app, controller, pod) in [&web, &batch] {
        types(&found(&stage, controller));
        assert!(!is_stopped(&stage, controller));
        stage.await_other_writer(app, &pod.uid);
    }
    assert_eq!(listed(&stage), []);
    stage.assert_one_writer();
}

fn stdout_of(command: &str) -> String {
    let out = std::process::Command::new("sh").args(["-c", command]).output().unwrap();
    assert!(out.status.success(), "{command}: {out:?}");
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

/// The node is cut off after the line was printed: its pods are Terminating for as long as that lasts.
fn a_line_that_waits_in_vain_is_finished_when_the_node_is_back() {
    let mut stage = Stage::new();
    let [a, _] = stage.names();
    let both = run_doubled(&stage, 5, false);
    let lines = both.each_ref().map(|(_, _, pod)| asked(&stage, pod).1);
    stage.a().partition();
    for ((app, controller, pod), line) in both.iter().zip(lines) {
        // As it is printed, but for the time that the wait has.
        let (begin, timeout) = line.split_once("--timeout=").unwrap();
        let soon = format!("{begin}--timeout=3s {}", timeout.split_once(' ').unwrap().1);
        let out = shell(&soon, SOON).output().unwrap();
        assert!(String::from_utf8_lossy(&out.stderr).contains("timed out"), "{out:?}");
        assert!(is_stopped(&stage, controller));
        stage.await_terminating(app, &pod.uid);
    }
    await_contact(&a, "silent");
    // Typed while the node is away, what is printed now waits as well.
    for (app, controller, pod) in &both {
        let out = shell(&found(&stage, controller), Duration::from_secs(4)).output().unwrap();
        assert!(!out.status.success() && is_stopped(&stage, controller), "{out:?}");
        assert!(writes(&stage, app, pod), "{}", stage.describe());
        refused(force(&stage, pod));
    }
    stage.a().heal();
    for (app, controller, pod) in &both {
        types(&found(&stage, controller));
        stage.await_other_writer(app, &pod.uid);
    }
    assert_eq!(listed(&stage), []);
    stage.assert_one_writer();
}

/// How long pods stay on a node that is lost, where that is to be seen within a test.
const TOLERATED: u64 = 25;

fn tolerate_for_a_while(manifest: &mut Value) {
    for toleration in pod_spec_of(manifest)["tolerations"].as_array_mut().unwrap() {
        toleration["tolerationSeconds"] = TOLERATED.into();
    }
}

/// A `ReplicaSet` of a controller that is not known here, as those of Argo Rollouts.
fn of_an_unknown_controller(stage: &Stage, app: &str) -> Value {
    let mut manifest = stage.manifest(Kind::Recreate, app);
    manifest["kind"] = "ReplicaSet".into();
    manifest["spec"].as_object_mut().unwrap().remove("strategy");
    manifest["metadata"]["ownerReferences"] = unknown_owner(stage, app);
    manifest
}

/// Two pods with rolling updates that use storage that one node at a time may use: what writes is the node.
fn several_on_one_node(stage: &Stage, app: &str) -> Value {
    for object in table::storage(stage) {
        plane().apply(&object);
    }
    let mut manifest = stage.manifest(Kind::Recreate, app);
    manifest["spec"]["strategy"] = json!({ "type": "RollingUpdate" });
    manifest["spec"]["replicas"] = 2.into();
    let spec = pod_spec_of(&mut manifest);
    spec["volumes"] = json!([{ "name": "disk", "persistentVolumeClaim": { "claimName": table::CLAIM } }]);
    let script = &mut spec["containers"][0]["command"][2];
    *script = script.as_str().unwrap().replace("$POD_UID $NODE_NAME", "$NODE_NAME $NODE_NAME").into();
    manifest
}

/// Types what is printed to be done before a pod is evicted, if it is.
fn keep(stage: &Stage, pod: &Seen) {
    let args = ["force-delete", "pod", &pod.name, "-n", &stage.namespace];
    let outcome = plugin().run(&args).expect(6);
    // Who is not told does nothing, and the disk tells what comes of it.
    if outcome.stderr.contains("first change the tolerations") {
        let line = command(
            &outcome,
            "1. first change the tolerations of the pod so that the control plane does not evict it (by default",
        );
        assert!(line.starts_with(&format!("kubectl patch pod {} ", pod.name)), "{line}");
        types(&line);
    }
}

/// The control plane evicts from a node that is not reachable, and the next one starts at once: also beside
/// what has no grace, and whatever the controller is. Nothing starts what has none, and it would be ended when
/// the node is back. Who types the first way keeps the pod where it is, as soon as the node is late, and later.
fn a_pod_is_kept_from_being_evicted_from_a_lost_node() {
    let mut stage = Stage::new();
    let [a, b] = stage.names();
    let mut no_grace = stage.manifest(Kind::Recreate, "hasty");
    pod_spec_of(&mut no_grace)["terminationGracePeriodSeconds"] = 0.into();
    let mut once = stage.manifest(Kind::Pod, "once");
    pod_spec_of(&mut once)["volumes"] =
        json!([{ "name": "disk", "persistentVolumeClaim": { "claimName": table::CLAIM } }]);
    let manifests = [
        // Asked about when the node is late.
        ("web", stage.manifest(Kind::Recreate, "web")),
        ("several", several_on_one_node(&stage, "several")),
        ("bare", stage.manifest(Kind::Pod, "bare")),
        // And when it is silent.
        ("once", once),
        ("batch", stage.manifest(Kind::Job, "batch")),
        ("rollout", of_an_unknown_controller(&stage, "rollout")),
        ("hasty", no_grace),
    ];
    // All begin on the first.
    plane().kubectl(&["cordon", &b]);
    let all = manifests.map(|(app, mut manifest)| {
        tolerate_for_a_while(&mut manifest);
        plane().apply(&manifest);
        let wanted = manifest["spec"]["replicas"].as_u64().unwrap_or(1);
        let run = || {
            let pods = stage.pods(app);
            let lines = stage.disk.lines(app);
            let writes = |pod: &Seen| lines.iter().any(|line| line.uid == pod.uid || line.uid == pod.node);
            pods.len() as u64 == wanted && pods.iter().all(writes)
        };
        eventually(&format!("{app} runs"), SOON, run, || stage.describe());
        (app, stage.pods(app))
    });
    plane().kubectl(&["uncordon", &b]);
    stage.a().partition();
    await_contact(&a, "late");
    let (late, silent) = all.split_at(3);
    late.iter().flat_map(|(_, pods)| pods).for_each(|pod| keep(&stage, pod));
    stage.await_unreachable(&a);
    await_contact(&a, "silent");
    let tainted = Instant::now();
    silent.iter().flat_map(|(_, pods)| pods).for_each(|pod| keep(&stage, pod));
    thread::sleep(Duration::from_secs(TOLERATED + 8).saturating_sub(tainted.elapsed()));
    stage.assert_one_writer();
    for (app, pods) in &all {
        assert_eq!(stage.pods(app), *pods, "{}", stage.describe());
        // It is not printed again.
        let args = ["force-delete", "pod", &pods[0].name, "-n", &stage.namespace];
        assert!(!plugin().run(&args).expect(6).stderr.contains("first change the tolerations"));
    }
    stage.a().heal();
    await_ready(&a);
    let since = disk::now();
    for (app, pods) in &all {
        let write = || stage.disk.lines(app).iter().any(|line| line.time > since);
        eventually(&format!("{app} writes"), SOON, write, || stage.describe());
        assert_eq!(stage.pods(app), *pods, "{}", stage.describe());
    }
    stage.assert_one_writer();
}

/// Pod GC deletes the pods of a node that does not exist, and does not ask the machine: before it has done so,
/// the node is named; after that, nothing tells where they ran.
fn a_node_that_is_deleted_after_its_controller_was_stopped_is_named() {
    let mut stage = Stage::new();
    let [a, _] = stage.names();
    let both = run_doubled(&stage, 5, false);
    let lines = both.each_ref().map(|(_, _, pod)| asked(&stage, pod).1);
    stage.a().partition();
    for ((app, _, pod), line) in both.iter().zip(lines) {
        // As it is printed, and interrupted while it waits.
        assert!(!shell(&line, Duration::from_secs(3)).output().unwrap().status.success());
        stage.await_terminating(app, &pod.uid);
    }
    await_contact(&a, "silent");
    let told = |first: &str| {
        let all = listed(&stage);
        assert_eq!(all.len(), 2, "{all:#?}");
        for (what, _) in &all {
            assert!(what.contains("make sure that they have ended"), "{what}");
            assert!(what.contains(first) && what.ends_with(", and only then type"), "{what}");
        }
        all
    };
    told(&format!("{a} (silent)"));
    plane().kubectl(&["delete", "node", &a]);
    let named = || listed(&stage).iter().all(|(what, _)| what.contains(&format!("{a} (gone)")));
    eventually("it is named", SOON, named, || stage.describe());
    let gone = || both.iter().all(|(app, _, _)| stage.pods(app).is_empty());
    eventually("pod GC has deleted the pods", SOON * 2, gone, || stage.describe());
    // Who makes sure of it finds that they run, and switches the machine off.
    for (app, _, pod) in &both {
        assert!(writes(&stage, app, pod), "{}", stage.describe());
        assert_ne!(stage.first().running_containers(&pod.uid), Some(0));
    }
    // Nothing tells of the node any more; those of other tests may be named.
    let all = told("");
    stage.a().crash();
    for (_, line) in all {
        assert!(line.starts_with("kubectl patch "), "{line}");
        types(&line);
    }
    for (app, _, pod) in &both {
        stage.await_other_writer(app, &pod.uid);
    }
    stage.assert_one_writer();
}

/// With it, pod GC deletes by force what is evicted from a node that is only cut off. It is taken off as soon as
/// the node is late.
fn a_taint_from_an_earlier_outage_is_taken_off_first() {
    let mut stage = Stage::new();
    let [a, _] = stage.names();
    let [web, db] = [(Kind::Recreate, "web"), (Kind::StatefulSet, "db")].map(|(kind, app)| {
        let mut manifest = stage.manifest(kind, app);
        tolerate_for_a_while(&mut manifest);
        plane().apply(&manifest);
        stage.await_writer(app, &a)
    });
    // Pod GC goes by the key alone.
    plane().kubectl(&["taint", "node", &a, "node.kubernetes.io/out-of-service=nodeshutdown:NoSchedule"]);
    stage.a().partition();
    await_contact(&a, "late");
    let undo = format!("kubectl lease fence {a} --undo --confirm");
    for pod in [&db, &web] {
        // All that comes before the wait for what becomes of the node, and nothing after that.
        let outcome = refused(force(&stage, pod)).says("wait until it is known whether the node is gone");
        let lines = outcome.stderr.lines().map(str::trim).filter(|line| line.starts_with("kubectl "));
        let lines: Vec<&str> = lines.take_while(|line| !line.ends_with(" -w")).collect();
        let told = outcome.stderr.contains("the taint has no timeAdded");
        assert_eq!(told, lines.contains(&undo.as_str()), "{outcome:#?}");
        for line in lines {
            types(line);
        }
    }
    stage.await_unreachable(&a);
    thread::sleep(Duration::from_secs(TOLERATED));
    // Pod GC looks every 20 seconds.
    thread::sleep(Duration::from_secs(24));
    stage.assert_one_writer();
    let taints = get(&["node", &a])["spec"]["taints"].to_string();
    assert!(!taints.contains("out-of-service"), "{taints}");
    assert_eq!(stage.pods("db"), [Seen { terminating: true, ..db.clone() }], "{}", stage.describe());
    assert_eq!(stage.pods("web"), std::slice::from_ref(&web), "{}", stage.describe());
    stage.a().heal();
    await_ready(&a);
    stage.await_other_writer("db", &db.uid);
    assert_eq!(stage.await_writer("web", &a), web, "{}", stage.describe());
    stage.assert_one_writer();
}

/// Nothing is printed for these pods that would remove their objects while the containers may run: neither a
/// restart nor a controller that is stopped. To switch the machine off, and to declare it, is.
fn is_left_alone(stage: &Stage, both: &[(&str, &str, Seen)], first_way: &str) {
    for (_, _, pod) in both {
        safely(stage, pod).expect(6);
        let outcome = refused(force(stage, pod)).says("its terminationGracePeriodSeconds is 0");
        for wrong in ["kubectl patch", "kubectl scale", "rollout restart", "kubectl delete"] {
            assert!(!outcome.stderr.contains(wrong), "{outcome:#?}");
        }
        command(&outcome, &format!("1. {first_way}"));
        let fence = command(&outcome, "2. power off the machine of");
        assert_eq!(fence, format!("kubectl lease fence {}", stage.names()[0]));
    }
}

/// Does the second: the next ones write on the other node.
fn is_switched_off(stage: &mut Stage, both: &[(&str, &str, Seen)]) {
    let [a, b] = stage.names();
    if stage.a().is_on() {
        stage.a().crash();
    }
    await_contact(&a, "silent");
    types(&format!("kubectl lease fence {a} --confirm --i-have-fenced"));
    for (app, _, _) in both {
        stage.await_writer(app, &b);
    }
    stage.assert_one_writer();
}

fn what_has_no_grace_is_left_alone_on_a_partitioned_node() {
    let mut stage = Stage::new();
    let [a, _] = stage.names();
    let both = run_doubled(&stage, 0, false);
    cut_off(&mut stage);
    is_left_alone(&stage, &both, "bring ");
    stage.a().heal();
    await_ready(&a);
    for (app, _, pod) in &both {
        assert_eq!(stage.await_writer(app, &a), *pod, "{}", stage.describe());
    }
    stage.a().crash();
    await_contact(&a, "silent");
    is_left_alone(&stage, &both, "bring ");
    is_switched_off(&mut stage, &both);
}

fn what_has_no_grace_is_left_alone_where_the_runtime_hangs() {
    let mut stage = Stage::new();
    let both = run_doubled(&stage, 0, false);
    stage.a().hang_runtime();
    await_contact(&stage.names()[0], "notready");
    is_left_alone(&stage, &both, "repair what is wrong on");
    is_switched_off(&mut stage, &both);
}

/// The node fails between the question and the answer: the objects go, and the containers write on. The
/// controllers are brought back when that is over, as it is printed for who finds them.
fn what_has_no_grace_is_brought_back_when_its_containers_have_ended() {
    type Deed = fn(&mut Stage);
    let mut stage = Stage::new();
    let mut both = run_doubled(&stage, 0, true);
    let faults: [(Deed, Deed); 2] = [
        (|stage| stage.a().partition(), |stage| stage.a().heal()),
        (|stage| stage.a().hang_runtime(), |stage| stage.a().resume_runtime()),
    ];
    for (fail, mend) in faults {
        let lines = both.each_ref().map(|(_, _, pod)| asked(&stage, pod).1);
        fail(&mut stage);
        for ((app, controller, pod), line) in both.iter().zip(lines) {
            assert!(!line.contains("&&"), "{line}");
            types(&line);
            let gone = || stage.pods(app).iter().all(|left| left.uid != pod.uid);
            eventually("its object is gone", SOON, gone, || stage.describe());
            assert!(is_stopped(&stage, controller));
            let said = listed(&stage);
            assert!(said.iter().any(|(what, _)| what.contains("make sure that they have ended")), "{said:?}");
        }
        // Nothing but the machine itself tells that they run.
        for (app, _, pod) in &both {
            assert!(writes(&stage, app, pod), "{}", stage.describe());
            assert_ne!(stage.a().running_containers(&pod.uid), Some(0));
        }
        mend(&mut stage);
        for (app, controller, pod) in &mut both {
            let ended = || stage.first().running_containers(&pod.uid) == Some(0);
            eventually("its containers have ended", SOON, ended, || stage.describe());
            types(&found(&stage, controller));
            *pod = stage.await_other_writer(app, &pod.uid);
        }
    }
    assert_eq!(listed(&stage), []);
    stage.assert_one_writer();
}
