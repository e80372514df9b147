//! An operator who follows what is printed, and says yes to everything below critical, never gets two
//! writers of what should be one.

use std::{thread, time::Duration};

use serde_json::{Value, json};

use crate::{
    harness::{User, disk},
    plugin::{Outcome, Plugin},
    stage::{
        Kind, SOON, Seen, Stage, await_contact, await_ready, eventually, get, ignore_term, plane, plugin,
        pod_spec_of, shell,
    },
};

crate::tests![
    a_deployment_that_recreates_is_not_forced_on_a_partitioned_node,
    a_deployment_that_recreates_is_restarted_on_a_healthy_node,
    a_stateful_pod_is_not_forced_in_its_grace_period,
    a_job_that_waits_for_the_end_is_not_forced,
    a_daemon_is_not_forced,
    a_node_whose_runtime_hangs_is_switched_off_and_fenced,
    a_job_is_not_evicted_where_the_runtime_hangs,
    a_fence_from_an_earlier_outage_does_not_count,
    a_node_that_is_back_and_not_ready_is_taken_into_service_first,
    a_node_object_that_was_deleted_is_created_again,
    a_rolling_deployment_is_deleted_as_usual,
    a_job_that_does_not_wait_is_forced,
    an_index_of_a_job_is_not_forced,
    a_job_is_resumed_when_all_its_pods_are_gone,
    what_has_no_grace_is_ended_by_hand,
    a_user_without_permission_to_read_nodes_deletes_with_the_grace_period,
    a_batch_keeps_its_disruption_budget,
];

/// Says yes to force-deleting a pod.
pub fn force(stage: &Stage, pod: &Seen) -> Outcome {
    plugin().run(&["force-delete", "pod", &pod.name, "-n", &stage.namespace, "--confirm"])
}

/// What is refused because two would run.
pub fn refused(outcome: Outcome) -> Outcome {
    outcome.expect(6).says("risk of force-deleting it: critical")
}

/// Takes the way without force.
pub fn safely(stage: &Stage, pod: &Seen) -> Outcome {
    let args = ["force-delete", "pod", &pod.name, "-n", &stage.namespace, "--safe", "--confirm", "--wait=1m"];
    plugin().run(&args)
}

/// The command that is printed below the first way whose text has these words.
pub fn command(outcome: &Outcome, words: &str) -> String {
    let mut lines = outcome.stderr.lines().skip_while(|line| !line.contains(words));
    let found = lines.nth(1).map(|line| line.trim().to_owned());
    found.unwrap_or_else(|| panic!("nothing to type for '{words}' in {outcome:#?}"))
}

/// Types a command as it was printed.
pub fn types(command: &str) -> String {
    let out = shell(command, SOON * 3).output().unwrap();
    assert!(out.status.success(), "{command}: {out:?}");
    String::from_utf8(out.stdout).unwrap()
}

/// Applies a workload whose pods stay on a node whatever its taints, and waits until it writes on the first.
pub fn run_that_stays(stage: &Stage, kind: Kind, app: &str) -> Seen {
    let mut manifest = stage.manifest(kind, app);
    pod_spec_of(&mut manifest)["tolerations"] = json!([{ "operator": "Exists" }]);
    plane().apply(&manifest);
    stage.await_writer(app, &stage.names()[0])
}

/// Has pods stay on a node that is cut off, and none be given to it.
fn tolerate_unreachable(manifest: &mut Value) {
    pod_spec_of(manifest)["tolerations"] = json!([stays("unreachable")]);
}

/// And on one that is not ready.
pub fn tolerate_outages(manifest: &mut Value) {
    pod_spec_of(manifest)["tolerations"] = json!([stays("unreachable"), stays("not-ready")]);
}

/// Is not evicted by a taint of this name.
fn stays(taint: &str) -> Value {
    json!({ "key": format!("node.kubernetes.io/{taint}"), "effect": "NoExecute", "operator": "Exists" })
}

pub fn cut_off(stage: &mut Stage) {
    let [a, _] = stage.names();
    stage.a().partition();
    stage.await_unreachable(&a);
    await_contact(&a, "silent");
}

fn a_deployment_that_recreates_is_not_forced_on_a_partitioned_node() {
    let mut stage = Stage::new();
    let first = run_that_stays(&stage, Kind::Recreate, "web");
    cut_off(&mut stage);
    refused(force(&stage, &first)).says("Deployment/web has the strategy Recreate");
    safely(&stage, &first).expect(6);
    stage.a().heal();
    await_ready(&stage.names()[0]);
    assert_eq!(stage.await_writer("web", &stage.names()[0]), first);
    stage.assert_one_writer();
}

/// Whether it is deleted by force or not, its `ReplicaSet` starts the next one at once.
fn a_deployment_that_recreates_is_restarted_on_a_healthy_node() {
    let stage = Stage::new();
    let mut manifest = stage.manifest(Kind::Recreate, "web");
    ignore_term(&mut manifest, 15);
    plane().apply(&manifest);
    let first = stage.await_writer("web", &stage.names()[0]);
    let outcome = refused(force(&stage, &first)).says("its node is alive");
    safely(&stage, &first).expect(6);
    let restart = command(&outcome, "1. ");
    assert_eq!(restart, format!("kubectl rollout restart deployment/web -n {}", stage.namespace));
    types(&restart);
    stage.await_other_writer("web", &first.uid);
    stage.assert_one_writer();
}

/// The kubelet keeps the grace that is running, whatever becomes of the object.
fn a_stateful_pod_is_not_forced_in_its_grace_period() {
    let stage = Stage::new();
    let mut manifest = stage.manifest(Kind::StatefulSet, "db");
    ignore_term(&mut manifest, 15);
    plane().apply(&manifest);
    let first = stage.await_writer("db", &stage.names()[0]);
    stage.kubectl(&["delete", "pod", &first.name, "--wait=false"]);
    let outcome = refused(force(&stage, &first)).says("its node is alive");
    types(&command(&outcome, "wait: its grace period ends in"));
    stage.await_other_writer("db", &first.uid);
    stage.assert_one_writer();
}

fn a_job_that_waits_for_the_end_is_not_forced() {
    let mut stage = Stage::new();
    let [a, _] = stage.names();
    let mut manifest = stage.manifest(Kind::Job, "batch");
    manifest["spec"]["podReplacementPolicy"] = "Failed".into();
    plane().apply(&manifest);
    let first = stage.await_writer("batch", &a);
    cut_off(&mut stage);
    stage.await_terminating("batch", &first.uid);
    let outcome = force(&stage, &first).expect(6).says("Job/batch (podReplacementPolicy Failed)");
    assert_eq!(command(&outcome, "then mark the node out of service"), format!("kubectl lease fence {a}"));
    stage.a().heal();
    stage.await_other_writer("batch", &first.uid);
    stage.assert_one_writer();
}

fn a_daemon_is_not_forced() {
    let mut stage = Stage::new();
    let first = stage.run(Kind::DaemonSet, "agent");
    cut_off(&mut stage);
    refused(force(&stage, &first)).says("DaemonSet/agent creates a replacement on");
    stage.a().heal();
    await_ready(&stage.names()[0]);
    thread::sleep(Duration::from_secs(5));
    assert!(stage.pods("agent").iter().any(|pod| pod.uid == first.uid), "it was left alone");
    stage.assert_one_writer();
}

fn a_node_whose_runtime_hangs_is_switched_off_and_fenced() {
    let mut stage = Stage::new();
    let [a, b] = stage.names();
    let first = stage.run(Kind::StatefulSet, "db");
    stage.a().hang_runtime();
    await_contact(&a, "notready");
    stage.await_terminating("db", &first.uid);
    // Beyond its grace of 5 seconds.
    thread::sleep(Duration::from_secs(21));
    let outcome = refused(force(&stage, &first)).says("its kubelet is alive and not ready");
    let fence = command(&outcome, "mark the node out of service when its heartbeat is");
    assert_eq!(fence, format!("kubectl lease fence {a}"));
    let fence = ["fence", &a, "--confirm", "--i-have-fenced"];
    plugin().run(&fence).expect(6).says("is alive");
    stage.a().crash();
    await_contact(&a, "silent");
    plugin().run(&fence).expect(0);
    stage.await_writer("db", &b);
    stage.assert_one_writer();
}

/// It starts the next pod as soon as one is Terminating, and that one cannot be ended.
fn a_job_is_not_evicted_where_the_runtime_hangs() {
    let mut stage = Stage::new();
    let first = run_that_stays(&stage, Kind::Job, "batch");
    // A pod of a controller that is not known here, and replaces what is Terminating: this test.
    let (clone, manifest) = run_of_an_unknown_controller(&stage, "clone");
    stage.a().hang_runtime();
    await_contact(&stage.names()[0], "notready");
    let outcomes = [&first, &clone].map(|pod| {
        refused(force(&stage, pod)).says("its kubelet is alive and not ready");
        let safe = ["force-delete", "pod", &pod.name, "-n", &stage.namespace, "--safe", "--confirm"];
        plugin().run(&[&safe[..], &["--wait=1s"]].concat())
    });
    if stage.pods("clone").iter().any(|pod| pod.terminating) {
        let mut next = manifest;
        next["metadata"]["name"] = "clone-next".into();
        plane().apply(&next);
    }
    thread::sleep(Duration::from_secs(10));
    stage.a().resume_runtime();
    stage.assert_one_writer();
    for outcome in outcomes {
        outcome.expect(6);
    }
}

/// The `ownerReferences` of what is owned by a kind that is not known as a controller.
pub fn unknown_owner(stage: &Stage, app: &str) -> Value {
    let owner = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": app, "namespace": stage.namespace },
    });
    plane().apply(&owner);
    let uid = get(&["configmap", app, "-n", &stage.namespace])["metadata"]["uid"].clone();
    json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": app, "uid": uid, "controller": true }])
}

/// A pod whose controller is of a kind that is not known here, on the first node; and its manifest.
fn run_of_an_unknown_controller(stage: &Stage, app: &str) -> (Seen, Value) {
    let mut manifest = stage.manifest(Kind::Pod, app);
    manifest["metadata"]["ownerReferences"] = unknown_owner(stage, app);
    manifest["spec"]["tolerations"] = json!([{ "operator": "Exists", "effect": "NoExecute" }]);
    plane().apply(&manifest);
    (stage.await_writer(app, &stage.names()[0]), manifest)
}

/// Crashes the first node, declares it to be off, and starts it again: the taint is forgotten.
fn fenced_and_forgotten(stage: &mut Stage) {
    let [a, _] = stage.names();
    stage.a().crash();
    await_contact(&a, "silent");
    // Pods of an earlier test may still be on their way out.
    plugin().run(&["fence", &a, "--confirm", "--i-have-fenced"]).expect(0);
    stage.a().start();
    await_ready(&a);
    plugin().run(&["fence", &a, "--confirm"]).expect(6).says(&format!("'kubectl lease fence {a} --undo'"));
}

fn a_fence_from_an_earlier_outage_does_not_count() {
    let mut stage = Stage::new();
    fenced_and_forgotten(&mut stage);
    let first = run_that_stays(&stage, Kind::StatefulSet, "db");
    cut_off(&mut stage);
    refused(force(&stage, &first)).says("marked out of service before its last heartbeat");
    safely(&stage, &first).expect(6);
    assert_eq!(stage.pods("db")[0].uid, first.uid);
    stage.a().heal();
    stage.assert_one_writer();
}

fn a_node_that_is_back_and_not_ready_is_taken_into_service_first() {
    let mut stage = Stage::new();
    let [a, _] = stage.names();
    fenced_and_forgotten(&mut stage);
    let first = run_that_stays(&stage, Kind::StatefulSet, "db");
    stage.a().hang_runtime();
    plane().kubectl(&["wait", "--for=condition=Ready=False", "--timeout=90s", "node", &a]);
    await_contact(&a, "back");
    let outcome = refused(force(&stage, &first));
    safely(&stage, &first).expect(6);
    let undo = command(&outcome, "1. ");
    assert_eq!(undo, format!("kubectl lease fence {a} --undo"));
    plugin().run(&["fence", &a, "--undo"]).expect(0);
    // Now it can be evicted: what hangs ends it when it goes on.
    let evict =
        ["force-delete", "pod", &first.name, "-n", &stage.namespace, "--safe", "--confirm", "--wait=1s"];
    plugin().run(&evict).expect(124).says("is still there");
    thread::sleep(Duration::from_secs(25));
    assert_eq!(stage.pods("db")[0].uid, first.uid, "pod GC has not deleted it");
    stage.a().resume_runtime();
    stage.await_other_writer("db", &first.uid);
    stage.assert_one_writer();
}

fn a_node_object_that_was_deleted_is_created_again() {
    let mut stage = Stage::new();
    let [a, _] = stage.names();
    let first = stage.run(Kind::StatefulSet, "db");
    // The new object is tainted as the old one was, and an eviction would have the next one started.
    let mut manifest = stage.manifest(Kind::Recreate, "web");
    for toleration in pod_spec_of(&mut manifest)["tolerations"].as_array_mut().unwrap() {
        toleration["tolerationSeconds"] = 20.into();
    }
    plane().apply(&manifest);
    let web = stage.await_writer("web", &a);
    cut_off(&mut stage);
    // With its lease.
    plane().kubectl(&["delete", "node", &a]);
    // All that is printed up to that, in its order.
    let outcome = refused(force(&stage, &web)).says("deleting the node object does not stop it");
    let lines = outcome.stderr.lines().map(str::trim).filter(|line| line.starts_with("kubectl "));
    lines.take_while(|line| line.starts_with("kubectl patch pod ")).for_each(|line| drop(types(line)));
    types(&command(&outcome, "create the node object again"));
    assert_eq!(get(&["node", &a])["metadata"]["labels"]["kubernetes.io/hostname"], *a);
    assert!(outcome.stderr.contains("taints and a cordon are lost"), "{outcome:#?}");
    // Pod GC has waited for 40 seconds, and looked; the new object was found to be unreachable.
    thread::sleep(Duration::from_secs(65));
    stage.await_unreachable(&a);
    stage.assert_one_writer();
    assert_eq!(stage.pods("db")[0].uid, first.uid, "pod GC has left it alone");
    assert_eq!(stage.pods("web"), std::slice::from_ref(&web), "it was not evicted: {}", stage.describe());
    stage.a().heal();
    // Where it was evicted before the object was deleted, it ends and another follows; else it stays.
    await_ready(&a);
    let since = disk::now();
    let writes = || stage.disk.lines("db-0").iter().any(|line| line.time > since);
    eventually("one of them writes", SOON, writes, || stage.describe());
    assert_eq!(stage.await_writer("web", &a), web, "{}", stage.describe());
    stage.assert_one_writer();
    // Without its labels it is no node for the next test.
    plane().kubectl(&["delete", "node", &a]);
}

fn a_rolling_deployment_is_deleted_as_usual() {
    let mut stage = Stage::new();
    let [a, b] = stage.names();
    let mut manifest = stage.manifest(Kind::Rolling, "web");
    manifest["spec"]["replicas"] = 2.into();
    tolerate_unreachable(&mut manifest);
    plane().apply(&manifest);
    let first = stage.await_writer("web", &a);
    cut_off(&mut stage);
    let outcome = plugin().run(&["force-delete", &first.name, "-n", &stage.namespace]).expect(6);
    let delete = command(&outcome.says("risk of force-deleting it: low"), "1. delete it as usual");
    types(&delete);
    let since = disk::now();
    eventually(
        "the next one writes",
        SOON,
        || {
            let new = |pod: &&Seen| pod.uid != first.uid && pod.node == b;
            let wrote = |pod: &Seen| {
                let file = format!("web-{}", pod.uid);
                stage.disk.lines(&file).iter().any(|line| line.time > since)
            };
            stage.pods("web").iter().filter(new).any(wrote)
        },
        || stage.describe(),
    );
    stage.a().heal();
    eventually(
        "the first one is gone",
        SOON,
        || get(&["pods", "-n", &stage.namespace])["items"].as_array().unwrap().len() == 2,
        || stage.describe(),
    );
    stage.assert_one_writer();
}

/// Its tracking finalizer does not keep the object: the Job takes it off when the pod is deleted.
fn a_job_that_does_not_wait_is_forced() {
    let mut stage = Stage::new();
    let [a, b] = stage.names();
    let mut manifest = stage.manifest(Kind::Job, "batch");
    manifest["spec"]["parallelism"] = 2.into();
    manifest["spec"]["completions"] = 2.into();
    let script = &mut pod_spec_of(&mut manifest)["containers"][0]["command"][2];
    *script = script.as_str().unwrap().replace("/disk/$APP", "/disk/$APP-$POD_UID").into();
    tolerate_unreachable(&mut manifest);
    plane().apply(&manifest);
    let first = stage.await_writer("batch", &a);
    cut_off(&mut stage);
    let object = get(&["pod", &first.name, "-n", &stage.namespace]);
    assert_eq!(object["metadata"]["finalizers"], json!(["batch.kubernetes.io/job-tracking"]));
    force(&stage, &first).expect(0).says("risk of force-deleting it: low");
    eventually(
        "the object is gone",
        SOON,
        || stage.pods("batch").iter().all(|pod| pod.uid != first.uid),
        || stage.describe(),
    );
    stage.await_writer("batch", &b);
    stage.a().heal();
    stage.await_end_of(&first.uid);
    stage.assert_one_writer();
}

/// A Job of two indexes, each with a file of its own.
fn indexed(stage: &Stage) -> Value {
    let mut manifest = stage.manifest(Kind::Job, "batch");
    for (field, value) in
        [("completionMode", json!("Indexed")), ("parallelism", json!(2)), ("completions", json!(2))]
    {
        manifest["spec"][field] = value;
    }
    let script = &mut pod_spec_of(&mut manifest)["containers"][0]["command"][2];
    *script = script.as_str().unwrap().replace("/disk/$APP", "/disk/$APP-$JOB_COMPLETION_INDEX").into();
    manifest
}

/// However many indexes run at once, there should be one pod of each.
fn an_index_of_a_job_is_not_forced() {
    let mut stage = Stage::new();
    let [a, _] = stage.names();
    let mut manifest = indexed(&stage);
    tolerate_unreachable(&mut manifest);
    plane().apply(&manifest);
    let first = stage.await_writer("batch", &a);
    cut_off(&mut stage);
    let (forced, left) = (force(&stage, &first), safely(&stage, &first));
    thread::sleep(Duration::from_secs(10));
    stage.a().heal();
    await_ready(&a);
    stage.assert_one_writer();
    refused(forced).says("there should be one of it only");
    left.expect(6);
}

/// Suspending it ends all its pods, of which one takes longer than the one that was asked about.
fn a_job_is_resumed_when_all_its_pods_are_gone() {
    let stage = Stage::new();
    let [a, _] = stage.names();
    let mut manifest = indexed(&stage);
    ignore_term(&mut manifest, 15);
    let script = &mut pod_spec_of(&mut manifest)["containers"][0]["command"][2];
    let traps = "[ $JOB_COMPLETION_INDEX = 1 ] && trap '' TERM || trap 'exit 1' TERM";
    // The third has ended before, and its object stays.
    let ended = "[ $JOB_COMPLETION_INDEX = 2 ] && exit 0; ";
    *script = (ended.to_owned() + &script.as_str().unwrap().replace("trap '' TERM", traps)).into();
    for field in ["parallelism", "completions"] {
        manifest["spec"][field] = 3.into();
    }
    plane().apply(&manifest);
    let all = || stage.pods("batch");
    eventually(
        "one has ended",
        SOON,
        || get(&["job", "batch", "-n", &stage.namespace])["status"]["succeeded"] == 1,
        || stage.describe(),
    );
    assert_eq!(all().len(), 3, "{}", stage.describe());
    let first = all().into_iter().find(|pod| pod.name.starts_with("batch-0-")).unwrap();
    let second = all().into_iter().find(|pod| pod.name.starts_with("batch-1-")).unwrap();
    stage.await_writer("batch", &a);
    let outcome = refused(force(&stage, &first)).says("its node is alive");
    types(&command(&outcome, "suspend Job/batch"));
    assert!(all().iter().all(|pod| pod.uid != second.uid), "{}", stage.describe());
    eventually(
        "the next ones write",
        SOON,
        || all().iter().any(|pod| pod.name.starts_with("batch-1-") && !pod.terminating),
        || stage.describe(),
    );
    stage.await_writer("batch", &a);
    stage.assert_one_writer();
}

/// Its object goes before its containers have ended: nothing is chained to that.
fn what_has_no_grace_is_ended_by_hand() {
    let stage = Stage::new();
    for (kind, app) in [(Kind::Recreate, "web"), (Kind::Job, "batch")] {
        let mut manifest = stage.manifest(kind, app);
        ignore_term(&mut manifest, 0);
        plane().apply(&manifest);
        let first = stage.await_writer(app, &stage.names()[0]);
        let outcome = refused(force(&stage, &first)).says("its terminationGracePeriodSeconds is 0");
        let stop = command(&outcome, "the objects go before the containers have ended");
        assert!(!stop.contains("&&") && !stop.contains("restart"), "{stop}");
        types(&stop);
        stage.await_end_of(&first.uid);
        let listed = plugin().run(&["partitions"]).expect(0);
        let back = command(&listed, &format!("/{app} in {} was", stage.namespace));
        types(&back);
        stage.await_other_writer(app, &first.uid);
    }
    stage.assert_one_writer();
}

/// A deletion with its grace waits for the kubelet, wherever that is.
fn a_user_without_permission_to_read_nodes_deletes_with_the_grace_period() {
    let mut stage = Stage::new();
    let [a, _] = stage.names();
    let user = User::Nobody;
    stage.kubectl(&["create", "role", "deletes", "--verb=get,list,watch,delete", "--resource=pods"]);
    stage.kubectl(&[
        "create",
        "rolebinding",
        "deletes",
        "--role=deletes",
        &format!("--user={}", user.name()),
    ]);
    let first = run_that_stays(&stage, Kind::StatefulSet, "db");
    cut_off(&mut stage);
    // Whether the node is declared out of service is not known either: that is to be asked before.
    let safely = ["force-delete", "pod", "db-0", "-n", &stage.namespace, "--safe", "--confirm", "--wait=5s"];
    let outcome = Plugin::new(plane().kubeconfig(user, 0))
        .run(&safely)
        .expect(6)
        .says(&format!("whether {a} is alive is not known"))
        .says(&format!("1. ask a cluster administrator how {a} is, and whether it is marked out of service"));
    assert_eq!(stage.pods("db"), std::slice::from_ref(&first));
    types(&command(&outcome, "2. delete it as usual, with its grace period, unless"));
    assert_eq!(stage.pods("db"), [Seen { terminating: true, ..first.clone() }]);
    stage.a().heal();
    stage.await_other_writer("db", &first.uid);
    stage.assert_one_writer();
}

/// What each pod alone may do, all of them together may not.
fn a_batch_keeps_its_disruption_budget() {
    let stage = Stage::new();
    let mut manifest = stage.manifest(Kind::Rolling, "web");
    manifest["spec"]["replicas"] = 3.into();
    plane().apply(&manifest);
    stage.kubectl(&["create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=2"]);
    let budget = || get(&["poddisruptionbudget", "web", "-n", &stage.namespace])["status"].clone();
    let allows_one = || {
        let budget = budget();
        budget["disruptionsAllowed"] == 1 && budget["currentHealthy"] == 3
    };
    let await_budget = || {
        eventually("the budget allows one", SOON, allows_one, || {
            format!("{:#}\n{}", budget(), stage.describe())
        })
    };
    await_budget();
    let all = stage.pods("web");
    let began = disk::now();
    let batch = ["force-delete", "-l", "app=web", "-n", &stage.namespace, "--confirm"];
    let outcome = plugin().run(&batch).expect(6).says("the disruption budget web allows no more disruptions");
    for risk in ["medium", "high"] {
        assert!(outcome.stderr.contains(&format!("risk of force-deleting it: {risk}")), "{outcome:#?}");
    }
    assert_eq!(stage.pods("web"), all, "none of them was deleted");
    outcome.says("use --safe --confirm to evict within the budget");

    // One after the other, as it is advised.
    for pod in &all {
        await_budget();
        plugin().run(&["force-delete", &pod.name, "-n", &stage.namespace, "--safe", "--confirm"]).expect(0);
        eventually(
            "it is gone",
            SOON,
            || stage.pods("web").iter().all(|left| left.uid != pod.uid),
            || stage.describe(),
        );
    }
    await_budget();
    let fewest = stage.disk.fewest_writers(began, disk::now());
    assert!(fewest >= 2, "{fewest} at once\n{}", stage.describe());
}
