use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::*;
use crate::rules::{
    assessment::Assessment,
    evidence::Evidence,
    node::Declared,
    reasons::Reason,
    risk::Risk,
    stage::{self, ago, around, fenced, named, now, pod, read, ready, takes, way, ways},
    surroundings::Surroundings,
    workload::Kind,
};

/// The first thing offered, and what `--safe` makes of it.
#[test]
fn the_safest_way_first() {
    let none = json!([]);
    let gone = || Surroundings { nodes: Some(BTreeMap::new()), ..around(600) };
    let fenced = || stage::fenced(around(600));
    let vanished = || Surroundings { heartbeats: Some(BTreeMap::new()), ..gone() };
    let finished: Pod = read(json!({ "spec": { "nodeName": "node-1" }, "status": { "phase": "Succeeded" } }));
    let pending: Pod = read(json!({ "status": { "phase": "Pending" } }));
    let stateful = |deleted| pod("StatefulSet", deleted, &none);
    let stateless = |deleted| pod("ReplicaSet", deleted, &none);
    let not_ready = || stage::not_ready(around(5));
    let back = || stage::fenced(not_ready());
    let mut one_job = not_ready();
    let one = json!({ "metadata": { "name": "db", "namespace": "shop", "uid": "u" } });
    one_job.workloads.insert((Kind::Job, "shop/db".into()), read(one));
    let host_path = json!([{ "name": "data", "hostPath": { "path": "/data" } }]);
    let job = pod("Job", None, &host_path);
    for (pod, around, takes, first) in [
        (&finished, around(600), Some(Safe::Delete), "delete: nothing-runs"),
        (&pending, around(600), Some(Safe::Delete), "delete: nothing-runs"),
        // Pod GC is what starts the second one.
        (&stateful(None), gone(), None, "create-node"),
        (&stateful(None), vanished(), None, "create-node"),
        (&stateless(None), vanished(), Some(Safe::Await), "wait: pod-gc-of-missing-nodes"),
        (&stateful(Some(600)), fenced(), Some(Safe::Await), "wait: pod-gc"),
        (&stateful(None), fenced(), Some(Safe::Delete), "delete: pod-gc-completes"),
        (&stateful(None), around(5), Some(Safe::Evict), "evict"),
        (&stateful(Some(5)), around(5), Some(Safe::Await), "wait: grace-period"),
        (&stateful(Some(600)), around(5), None, "describe-pod"),
        (&stateful(Some(600)), around(600), None, "bring-node-back: ends-it"),
        (&stateful(None), around(45), None, "watch-node"),
        // An ordinary deletion starts the next one at once.
        (&stateless(None), around(600), Some(Safe::Replace), "delete: node-ends-it-later"),
        // What is Terminating there is deleted by force until the taint is off.
        (&stateful(None), back(), None, "take-into-service"),
        (&stateful(Some(600)), back(), None, "take-into-service"),
        (&stateful(Some(600)), not_ready(), None, "repair-node: ends-it"),
        // A StatefulSet waits for its end; a Job does not, and both would write to the same data.
        (&stateful(None), not_ready(), Some(Safe::Evict), "repair-node: runs-on-unless-evicted"),
        (&job, not_ready(), Some(Safe::Evict), "repair-node: runs-on-unless-evicted"),
        (&job, one_job, None, "keep-from-eviction"),
    ] {
        let assessment = Assessment::of(pod, &around, now());
        assert_eq!((assessment.safe_way(), &*ways(&assessment)[0]), (takes, first), "{assessment:#?}");
    }
    let wait = Advice::Wait { until: WaitFor::GracePeriod { left_seconds: 25 }, timeout_seconds: 145 };
    assert_eq!(Assessment::of(&stateful(Some(5)), &around(5), now()).safer[0].advice, wait);
    let second =
        |around: &Surroundings| ways(&Assessment::of(&stateful(Some(600)), around, now()))[1].clone();
    assert_eq!(second(&not_ready()), "switch-off: alive");
    assert_eq!(second(&around(600)), "switch-off: silent");
    for (owner, is_replaced) in [("ReplicaSet", true), ("", false)] {
        let ways = Assessment::of(&pod(owner, Some(600), &none), &around(600), now()).safer;
        assert_eq!(ways[0].advice, Advice::Leave { is_replaced });
    }
}

/// What becomes of a pod when its node is well again depends on whether it was deleted.
#[test]
fn a_pod_that_is_not_deleted_runs_on() {
    let none = json!([]);
    let not_ready = stage::not_ready(around(5));
    let stays = json!([{ "operator": "Exists" }]);
    for (deleted, tolerations, then) in [
        (None, &none, "runs-on-unless-evicted"),
        (None, &stays, "runs-on"),
        (Some(5), &none, "ends-it"),
        (Some(600), &none, "ends-it"),
    ] {
        for around in [&not_ready, &around(600)] {
            let mut pod = pod("StatefulSet", deleted, &none);
            pod.spec = read(json!({ "nodeName": "node-1", "tolerations": tolerations }));
            let ways = ways(&Assessment::of(&pod, around, now()));
            assert!(ways[0].ends_with(&format!(": {then}")), "{deleted:?} {ways:?}");
        }
    }
}

/// What is deleted is replaced at once, beside it: then its controller has to end it.
#[test]
#[allow(clippy::too_many_lines)] // a table
fn one_that_would_be_doubled_by_its_deletion_is_ended_by_its_controller() {
    let volume = json!([{ "name": "x", "hostPath": { "path": "/d" } }]);
    let none = json!([]);
    let with = |kind: Kind, spec: &Value, above: Option<(Kind, &Value)>| {
        let mut around = around(5);
        let owner = above.map(|(kind, _)| {
            let version = if kind == Kind::CronJob { "batch/v1" } else { "apps/v1" };
            json!([{ "apiVersion": version, "kind": kind.name(), "name": "up", "uid": "up", "controller": true }])
        });
        let metadata = json!({ "name": "db", "namespace": "shop", "uid": "u", "ownerReferences": owner.unwrap_or(json!([])) });
        around
            .workloads
            .insert((kind, "shop/db".into()), read(json!({ "metadata": metadata, "spec": spec })));
        if let Some((kind, spec)) = above {
            let metadata = json!({ "name": "up", "namespace": "shop", "uid": "up" });
            around
                .workloads
                .insert((kind, "shop/up".into()), read(json!({ "metadata": metadata, "spec": spec })));
        }
        around
    };
    let selector = json!({ "matchLabels": { "app": "db" } });
    let one = json!({ "replicas": 1, "selector": selector });
    let (recreate, forbid) = (
        json!({ "strategy": { "type": "Recreate" }, "selector": selector }),
        json!({ "concurrencyPolicy": "Forbid" }),
    );
    let of_job = json!({ "selector": selector });
    let indexed = json!({ "selector": selector, "completionMode": "Indexed", "parallelism": 3 });
    let called = |controller: &str| {
        let (kind, name) = controller.split_once('/').unwrap();
        ControllerRef::new(kind, name)
    };
    let stop = |controller: &str, managed_by: Option<&str>, no_grace: bool| Advice::StopController {
        controller: called(controller),
        wanted: 1,
        // All of them.
        selector: "app=db".into(),
        grace_seconds: if no_grace { 0 } else { 30 },
        no_grace,
        managed_by: managed_by.map(called),
        outage: None,
    };
    let stopped_with = |controller: &str| (stop(controller, None, false), stop(controller, None, true));
    let restart =
        || Advice::RestartDeployment { controller: ControllerRef::new("Deployment", "up"), outage: None };
    let inspected = |controller: &str| {
        let resource = controller.to_lowercase();
        let inspect = Advice::InspectController { controller: called(controller), resource };
        (inspect.clone(), inspect)
    };
    let (plain, job) = (with(Kind::ReplicaSet, &one, None), with(Kind::Job, &of_job, None));
    let of = |spec| with(Kind::ReplicaSet, &one, Some((Kind::Deployment, spec)));
    let forbidden = with(Kind::Job, &of_job, Some((Kind::CronJob, &forbid)));
    let unselected = json!({ "replicas": 1 });
    let stopped = json!({ "replicas": 0, "selector": selector });
    for (kind, volumes, around, (usual, without_grace)) in [
        ("ReplicaSet", &volume, plain, stopped_with("ReplicaSet/db")),
        ("ReplicaSet", &volume, of(&one), stopped_with("Deployment/up")),
        // With no grace the objects go before the containers have ended.
        ("ReplicaSet", &none, of(&recreate), (restart(), stop("Deployment/up", None, true))),
        ("Job", &volume, job, stopped_with("Job/db")),
        ("Job", &none, forbidden, stopped_with("Job/db")),
        ("Job", &volume, with(Kind::Job, &indexed, None), stopped_with("Job/db")),
        // Nothing is begun that cannot be waited for, or is not known to be brought back.
        ("ReplicaSet", &volume, of(&unselected), inspected("Deployment/up")),
        ("ReplicaSet", &volume, of(&stopped), inspected("Deployment/up")),
        ("ReplicationController", &volume, around(5), inspected("ReplicationController/db")),
        ("Node", &volume, around(5), inspected("Node/db")),
    ] {
        for (grace, advice) in [(None, usual), (Some(0), without_grace)] {
            let mut pod = ready(pod(kind, None, volumes));
            pod.spec.termination_grace_period_seconds = grace;
            let Assessment { risk, safer, .. } = Assessment::of(&pod, &around, now());
            assert_eq!((risk, &safer[0].advice), (Risk::Critical, &advice), "{grace:?}");
            assert!(safer.iter().all(|way| way.takes.is_none()), "{safer:?}");
        }
    }
    // One that is paused cannot be restarted, and what owns it is to be stopped before.
    let paused = json!({ "strategy": { "type": "Recreate" }, "selector": selector, "paused": true });
    let mut pod_of_it = ready(pod("ReplicaSet", None, &none));
    let ways = Assessment::of(&pod_of_it, &of(&paused), now()).safer;
    assert_eq!(ways[0].advice, stop("Deployment/up", None, false));
    let mut managed = of(&recreate);
    let deployment = managed.workloads.get_mut(&(Kind::Deployment, "shop/up".into())).unwrap();
    deployment.metadata.owner_references = read(
        json!([{ "apiVersion": "x.example/v1", "kind": "Shop", "name": "s", "uid": "s", "controller": true }]),
    );
    for grace in [None, Some(0)] {
        pod_of_it.spec.termination_grace_period_seconds = grace;
        let Assessment { risk, safer, reasons, .. } = Assessment::of(&pod_of_it, &managed, now());
        assert_eq!(risk, Risk::Critical);
        assert_eq!(safer[0].advice, stop("Deployment/up", Some("Shop/s"), grace.is_some()));
        let unknown = Reason::UnknownController { controller: ControllerRef::new("Shop", "s") };
        assert!(reasons.contains(&unknown), "{reasons:?}");
    }

    let shares_nothing = with(Kind::Job, &json!({}), Some((Kind::CronJob, &json!({}))));
    let assessment = Assessment::of(&pod("Job", None, &none), &shares_nothing, now());
    assert_eq!((assessment.risk, assessment.safer[0].takes), (Risk::Medium, Some(Safe::Evict)));
}

/// What the control plane evicts from a lost node is replaced beside it: it is kept from that first.
#[test]
fn a_pod_is_kept_from_being_evicted_from_a_lost_node() {
    let volume = json!([{ "name": "x", "hostPath": { "path": "/d" } }]);
    let one = json!({ "replicas": 1, "selector": { "matchLabels": { "app": "db" } } });
    let (silent, late) = (around(600), around(45));
    let missing = Surroundings { nodes: Some(BTreeMap::new()), ..around(600) };
    let deleted_just_now = Surroundings { nodes: Some(BTreeMap::new()), ..around(5) };
    let not_ready = stage::not_ready(around(5));
    let [unreachable, unready] = ["unreachable", "not-ready"].map(|taint| {
        json!({ "key": format!("node.kubernetes.io/{taint}"), "operator": "Exists", "effect": "NoExecute" })
    });
    let for_now = {
        let mut seconds = unreachable.clone();
        seconds["tolerationSeconds"] = 300.into();
        seconds
    };
    let other = json!({ "key": "gpu", "operator": "Exists" });
    for (around, owner, tolerations, deleted, keeps, keeps_without_grace) in [
        (&silent, "ReplicaSet", json!([]), None, true, true),
        (&silent, "ReplicaSet", json!([for_now, unready, other]), None, true, true),
        (&silent, "ReplicaSet", json!([unreachable]), None, false, false),
        (&silent, "ReplicaSet", json!([]), Some(5), false, false),
        (&silent, "Job", json!([]), None, true, true),
        (&silent, "ReplicationController", json!([]), None, true, true),
        // Not known, so it may start the next one whenever it likes.
        (&silent, "Rollout", json!([for_now]), None, true, true),
        // Its object stays until its end, unless it has no grace.
        (&silent, "StatefulSet", json!([]), None, false, true),
        // Nothing starts it again.
        (&silent, "", json!([]), None, true, true),
        (&silent, "", json!([unreachable]), None, false, false),
        (&not_ready, "ReplicaSet", json!([unreachable]), None, true, true),
        (&not_ready, "ReplicaSet", json!([unready]), None, false, false),
        (&not_ready, "", json!([for_now, unready]), None, false, false),
        // Not given up yet, and which taint it gets is not known.
        (&late, "ReplicaSet", json!([]), None, true, true),
        (&late, "ReplicaSet", json!([unreachable]), None, true, true),
        (&late, "ReplicaSet", json!([unreachable, unready]), None, false, false),
        (&late, "ReplicaSet", json!([]), Some(5), false, false),
        (&late, "", json!([]), None, true, true),
        (&late, "StatefulSet", json!([]), None, false, true),
        // Pod GC does not ask for tolerations; but the node object that is created again is tainted.
        (&missing, "ReplicaSet", json!([for_now]), None, true, true),
        (&missing, "ReplicaSet", json!([unreachable, unready]), None, false, false),
        (&missing, "StatefulSet", json!([]), None, false, true),
        (&deleted_just_now, "Job", json!([]), None, true, true),
        (&around(5), "ReplicaSet", json!([]), None, false, false),
    ] {
        let mut around = around.clone();
        for kind in [Kind::ReplicaSet, Kind::Job] {
            around.workloads.get_mut(&(kind, "shop/db".into())).unwrap().spec = read(one.clone());
        }
        for (grace, keeps) in [(30, keeps), (0, keeps_without_grace)] {
            let mut pod = pod(owner, deleted, &volume);
            let spec = json!({
                "nodeName": "node-1", "volumes": volume, "tolerations": tolerations,
                "terminationGracePeriodSeconds": grace,
            });
            pod.spec = read(spec);
            let ways = Assessment::of(&pod, &around, now()).safer;
            let is = |way: &Alternative| matches!(way.advice, Advice::KeepFromEviction { .. });
            assert_eq!(is(&ways[0]), keeps, "{owner} {grace} {tolerations} {ways:#?}");
            assert!(!ways[1..].iter().any(is), "{ways:#?}");
            if !keeps {
                continue;
            }
            // Nothing that runs is ended for it.
            let stops = |way: &Alternative| matches!(way.advice, Advice::StopController { .. });
            assert!(!ways.iter().any(stops), "{ways:#?}");
            // Nor is it waited, or a node object created, before.
            assert!(ways.len() > 1, "{ways:#?}");
            let Advice::KeepFromEviction { controller, node_missing, tolerations: all } = &ways[0].advice
            else {
                panic!("{ways:#?}")
            };
            assert_eq!(controller.is_none(), owner.is_empty(), "{ways:#?}");
            assert_eq!(*node_missing, around.nodes.as_ref().is_some_and(BTreeMap::is_empty));
            let all = serde_json::to_value(all).unwrap();
            let has = |toleration| all.as_array().unwrap().contains(toleration);
            assert!(has(&unreachable) && has(&unready), "{all}");
            assert_eq!(has(&other), tolerations.as_array().unwrap().contains(&other));
            assert!(!all.to_string().contains("tolerationSeconds"), "{all}");
        }
    }
}

/// What several pods on one node may use together, pods on two nodes may not.
#[test]
fn one_of_several_is_kept_from_being_evicted_where_one_node_may_write() {
    let claim = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
    let with = |mut around: Surroundings, mode: &str| {
        let spec = json!({ "accessModes": [mode], "volumeName": "pv-1", "csi": { "driver": "ebs" } });
        around.claims = Some(named(json!({ "shop/data": { "spec": spec } })));
        around.volumes = Some(named(json!({ "pv-1": { "spec": spec } })));
        around
    };
    let not_ready = stage::not_ready(around(5));
    for (around, mode, keeps) in [
        (around(600), "ReadWriteOnce", true),
        (around(45), "ReadWriteOnce", true),
        (not_ready.clone(), "ReadWriteOnce", true),
        (around(600), "ReadWriteMany", false),
        (around(45), "ReadWriteMany", false),
        (not_ready, "ReadWriteMany", false),
        (around(5), "ReadWriteOnce", false),
    ] {
        let around = with(around, mode);
        let ways = Assessment::of(&ready(pod("ReplicaSet", None, &claim)), &around, now()).safer;
        let kept = matches!(ways[0].advice, Advice::KeepFromEviction { .. });
        assert_eq!(kept, keeps, "{mode} {ways:#?}");
        assert!(!keeps || ways.iter().all(|way| way.takes.is_none()), "{mode} {ways:#?}");
    }
    // Nor is it deleted where the node may be lost without that being seen.
    for unseen in
        [Surroundings { nodes: None, ..around(600) }, Surroundings { heartbeats: None, ..around(600) }]
    {
        for (mode, deletes) in [("ReadWriteOnce", false), ("ReadWriteMany", true)] {
            let around = with(unseen.clone(), mode);
            let ways = Assessment::of(&ready(pod("ReplicaSet", None, &claim)), &around, now()).safer;
            assert_eq!(ways.iter().any(|way| way.takes.is_some()), deletes, "{mode} {ways:#?}");
        }
    }
}

/// It may replace what is Terminating, as the `ReplicaSet` of one does.
#[test]
fn a_pod_of_an_unknown_controller_is_not_deleted_where_it_may_be_doubled() {
    let none = json!([]);
    let not_ready = stage::not_ready(around(5));
    for around in [around(5), around(45), around(600), not_ready, Surroundings { nodes: None, ..around(5) }] {
        let ways = Assessment::of(&ready(pod("CloneSet", None, &none)), &around, now()).safer;
        assert!(ways.iter().all(|way| way.takes.is_none()), "{ways:#?}");
        let deletes = |way: &Alternative| matches!(way.advice, Advice::Delete { .. });
        assert!(!ways.iter().any(deletes), "{ways:#?}");
    }
    let ways = Assessment::of(&ready(pod("CloneSet", None, &none)), &around(5), now()).safer;
    let inspect = Advice::InspectController {
        controller: ControllerRef::new("CloneSet", "db"),
        resource: "cloneset.v1.example.com/db".into(),
    };
    assert_eq!(ways[0].advice, inspect);
}

/// What ends all pods of a controller starts none before all have ended, also on lost nodes.
#[test]
fn an_outage_is_told_before_all_replicas_are_ended() {
    let claim = json!([{ "name": "x", "hostPath": { "path": "/d" } }]);
    let selector = json!({ "matchLabels": { "app": "db" } });
    let not_ready = |ready, wanted| Some(Outage::UntilAllHaveEnded { ready, wanted });
    for (is_paused, node, wanted, are_ready, outage) in [
        (false, "True", 2, 2, None),
        (false, "True", 2, 1, not_ready(1, 2)),
        (true, "True", 2, 1, not_ready(1, 2)),
        (true, "True", 2, 2, None),
        (false, "False", 2, 2, Some(Outage::UntilNodeEndsIt)),
        (false, "False", 1, 1, None),
        (false, "True", 1, 1, None),
    ] {
        // Not even a restart ends what runs on a lost node.
        let mut around = around(5);
        around.nodes.as_mut().unwrap().get_mut("node-1").unwrap().status.conditions[0].status = node.into();
        let set = around.workloads.get_mut(&(Kind::ReplicaSet, "shop/db".into())).unwrap();
        set.metadata.owner_references = read(json!([
            { "apiVersion": "apps/v1", "kind": "Deployment", "name": "db", "uid": "d", "controller": true },
        ]));
        let deployment = around.workloads.get_mut(&(Kind::Deployment, "shop/db".into())).unwrap();
        deployment.spec = read(json!({
            "replicas": wanted, "strategy": { "type": "Recreate" }, "paused": is_paused, "selector": selector,
        }));
        deployment.status.ready_replicas = are_ready;
        let ways = Assessment::of(&ready(pod("ReplicaSet", None, &claim)), &around, now()).safer;
        let (restarts, expected) = match &ways.last().unwrap().advice {
            Advice::RestartDeployment { outage, .. } => (true, *outage),
            Advice::StopController { outage, .. } => (false, *outage),
            other => panic!("{other:?}"),
        };
        assert_eq!((restarts, expected), (!is_paused, outage), "{ways:#?}");
    }
}

/// That its taint is from an earlier outage makes a node no better than it says.
#[test]
fn a_node_that_is_back_may_not_be_ready() {
    let volume = json!([{ "name": "x", "hostPath": { "path": "/d" } }]);
    let one = json!({ "replicas": 1, "selector": { "matchLabels": { "app": "db" } } });
    for (status, risk, safer) in [
        ("True", Risk::High, &["take-into-service", "stop-controller"][..]),
        (
            "False",
            Risk::Critical,
            &[
                "take-into-service",
                "keep-from-eviction",
                "repair-node: runs-on-unless-evicted",
                "switch-off: alive",
            ],
        ),
    ] {
        let mut around = fenced(around(5));
        around.nodes.as_mut().unwrap().get_mut("node-1").unwrap().status.conditions[0].status = status.into();
        around.workloads.get_mut(&(Kind::ReplicaSet, "shop/db".into())).unwrap().spec = read(one.clone());
        let pod = ready(pod("ReplicaSet", None, &volume));
        let assessment = Assessment::of(&pod, &around, now());
        assert_eq!(assessment.contact, Some(NodeContact::Back));
        assert_eq!(ways(&assessment), safer, "{status}");
        assert!(assessment.safer.iter().all(|way| way.takes.is_none()));
        // A runtime that hangs may still run what its kubelet reported before.
        let ended = json!({ "phase": "Running", "containerStatuses": [{
            "name": "a", "state": { "terminated": { "finishedAt": ago(300) } },
        }] });
        let mut pod = stage::pod("ReplicaSet", Some(300), &volume);
        let container = json!({ "name": "a", "volumeMounts": [{ "name": "x", "mountPath": "/d" }] });
        pod.spec = read(json!({ "nodeName": "node-1", "volumes": volume, "containers": [container] }));
        pod.status = read(ended);
        assert!(pod.has_ended(now()));
        let assessment = Assessment::of(&pod, &around, now());
        assert_eq!(assessment.risk, risk, "{status} {:#?}", assessment.reasons);
    }
}

/// `--safe` goes over no budget and takes no majority away that it may not read.
#[test]
fn what_is_not_known_to_be_within_its_budget_is_evicted() {
    let none = json!([]);
    let pod = ready(pod("ReplicaSet", None, &none));
    for unseen in [around(5), Surroundings { nodes: None, ..around(5) }] {
        let mut unseen = Surroundings { budgets: None, ..unseen };
        assert_eq!(takes(&Assessment::of(&pod, &unseen, now()))[..2], [Some(Safe::Evict), None]);
        unseen.budgets = Some(Vec::new());
        // A set that may not be read may have no majority.
        let stateful = ready(stage::pod("StatefulSet", None, &none));
        unseen.workloads.clear();
        unseen.unread.insert(Kind::StatefulSet);
        let ways = Assessment::of(&stateful, &unseen, now()).safer;
        assert!(ways.iter().all(|way| way.takes.is_none()), "{ways:#?}");
    }
}

/// A node that may not be read may be marked out of service, and pod GC then waits for no kubelet.
#[test]
fn what_must_be_one_is_not_deleted_where_its_node_may_not_be_read() {
    let none = json!([]);
    let stateful = ready(pod("StatefulSet", None, &none));
    let unread = Surroundings { nodes: None, ..around(5) };
    let ways = Assessment::of(&stateful, &unread, now()).safer;
    assert!(ways.iter().all(|way| way.takes.is_none()), "{ways:#?}");
    let codes: Vec<String> = ways.iter().map(way).collect();
    assert_eq!(codes, ["ask-about-node", "delete: unless-out-of-service"]);
    // One that is seen to have no such taint is waited for.
    let unheard = Surroundings { heartbeats: None, ..around(5) };
    assert_eq!(Assessment::of(&stateful, &unheard, now()).safer[0].takes, Some(Safe::Delete));
}

/// Pod GC would be the end of it.
#[test]
fn a_bare_pod_is_saved_by_the_object_of_its_node() {
    let missing = Surroundings { nodes: Some(BTreeMap::new()), ..around(600) };
    let ways = Assessment::of(&pod("", None, &json!([])), &missing, now()).safer;
    assert_eq!(ways.iter().map(way).collect::<Vec<_>>(), ["keep-from-eviction", "create-node"]);
    // One that is to go anyway is not kept.
    for deleted in [5, 600] {
        let ways = Assessment::of(&pod("", Some(deleted), &json!([])), &missing, now()).safer;
        assert_eq!((&*way(&ways[0]), ways[0].takes), ("wait: pod-gc-of-missing-nodes", Some(Safe::Await)));
    }
}

/// Pod GC completes by force what is evicted there.
#[test]
fn a_taint_from_an_earlier_outage_is_taken_off_first() {
    let none = json!([]);
    let added = |mut around: Surroundings, time: Option<Timestamp>| {
        for taint in &mut around.nodes.as_mut().unwrap().get_mut("node-1").unwrap().spec.taints {
            taint.time_added = time;
        }
        around
    };
    let before = Some(now().0 - SignedDuration::from_secs(3600));
    let undated = added(fenced(around(600)), None);
    let stale = added(fenced(around(600)), before);
    let (late_undated, late_stale) = (added(fenced(around(45)), None), added(fenced(around(45)), before));
    let [not_told, earlier] = [Declared::Undated, Declared::Before].map(Some);
    for (around, owner, deleted, undone) in [
        (&undated, "StatefulSet", None, not_told),
        (&undated, "StatefulSet", Some(5), not_told),
        (&undated, "StatefulSet", Some(600), not_told),
        (&undated, "Rollout", None, not_told),
        (&undated, "", None, None),
        (&stale, "StatefulSet", None, earlier),
        (&late_undated, "StatefulSet", None, not_told),
        (&late_stale, "StatefulSet", Some(5), earlier),
        (&late_stale, "", None, None),
        (&around(600), "StatefulSet", None, None),
        (&around(45), "StatefulSet", None, None),
        (&fenced(around(600)), "StatefulSet", None, None),
        // Declared while it was late, by whatever means: that may be right.
        (&fenced(around(45)), "StatefulSet", None, None),
    ] {
        let assessment = Assessment::of(&pod(owner, deleted, &none), around, now());
        let first = &assessment.safer[0];
        let undated = match first.advice {
            Advice::RemoveTaint { undated } => Some(undated),
            _ => None,
        };
        let expected = undone.map(|declared| declared == Declared::Undated);
        assert_eq!(undated, expected, "{owner} {deleted:?} {assessment:#?}");
        let Some(undone) = undone else { continue };
        let says = |evidence: &Evidence| matches!(evidence, Evidence::Node { declared, .. } if *declared == Some(undone));
        assert!(assessment.evidence.iter().any(says), "{:?}", assessment.evidence);
    }
}

/// The API takes a grace period of 0 for force, in any deletion.
#[test]
fn a_pod_without_a_grace_gets_one() {
    let none = json!([]);
    let mut pod = pod("StatefulSet", None, &none);
    pod.spec.termination_grace_period_seconds = Some(0);
    let assessment = Assessment::of(&pod, &fenced(around(600)), now());
    let delete = Advice::Delete { terms: DeleteTerms::PodGcCompletes, grace_seconds: Some(1) };
    assert_eq!(assessment.safer[0].advice, delete);
    assert!(assessment.reasons.contains(&Reason::NoGracePeriod), "{:?}", assessment.reasons);
}

#[test]
fn what_is_safe_on_a_node_that_lives() {
    let none = json!([]);
    // However it is deleted, its ReplicaSet starts the next one beside it.
    let mut recreates = around(5);
    let set = recreates.workloads.get_mut(&(Kind::ReplicaSet, "shop/db".into())).unwrap();
    set.metadata.owner_references = read(json!([
        { "apiVersion": "apps/v1", "kind": "Deployment", "name": "db", "uid": "d", "controller": true },
    ]));
    let deployment = recreates.workloads.get_mut(&(Kind::Deployment, "shop/db".into())).unwrap();
    deployment.spec = read(json!({ "strategy": { "type": "Recreate" } }));
    let ways = Assessment::of(&pod("ReplicaSet", None, &none), &recreates, now()).safer;
    assert_eq!(ways.len(), 1, "{ways:?}");
    let restart =
        Advice::RestartDeployment { controller: ControllerRef::new("Deployment", "db"), outage: None };
    assert_eq!(ways[0].advice, restart);
    assert_eq!(ways[0].takes, None);
    // Where the runtime may hang, nothing is begun that does not wait for the end of the containers.
    let recreates = stage::not_ready(recreates);
    for (grace, ways) in [(None, 4), (Some(30), 4), (Some(0), 3)] {
        let mut pod = pod("ReplicaSet", None, &none);
        pod.spec.termination_grace_period_seconds = grace;
        assert_eq!(Assessment::of(&pod, &recreates, now()).safer.len(), ways, "{grace:?}");
    }

    // A kubelet that is not ready may yet end what it is asked to, but not what hangs already.
    let not_ready = stage::not_ready(around(5));
    for (deleted, takes) in [
        (None, &[None, None, Some(Safe::Evict), Some(Safe::Delete)][..]),
        (Some(5), &[None, None, Some(Safe::Await)]),
        (Some(600), &[None, None]),
    ] {
        let ways = Assessment::of(&pod("StatefulSet", deleted, &none), &not_ready, now()).safer;
        assert_eq!(ways.iter().map(|way| way.takes).collect::<Vec<_>>(), takes, "{deleted:?}");
    }
}
