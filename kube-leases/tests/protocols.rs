//! What the protocols ask of a kube-apiserver, request by request: a scripted one expects these and no others.
//! That a real one makes of them what is meant is for the tests on the control plane to show.

#![allow(clippy::unwrap_used)]

#[path = "../../tests/harness/scripted.rs"]
mod scripted;
#[path = "../../tests/harness/stub.rs"]
#[allow(dead_code)] // The plugin's tests use the rest.
mod stub;

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kube_leases::{
    Election, Error, Lost, Maintenance, MaintenanceLease, NotTaken, Remark, TakingProgress, TakingStep,
    client::{
        Cluster, PODS,
        single::{Address, Writing},
        surroundings,
    },
    protocols::{
        Claim, Held, Released, Took,
        delete::{DeleteMode, NotDeleted, delete},
        keep_while,
    },
    rules::{
        deadline::Schedule,
        deletion::{Choice, Judged},
        holder::Who,
        lease::Metadata,
        maintenance::MaintenanceStanding,
        pod::Pod,
        taking::{ClaimObstacle, Terms},
    },
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    scripted::{Expected, Request, Scripted, conflict, found, listed, missing, on, refused, written},
    stub::Reply,
};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-maintenance/leases";
const MEDIK8S: &str = "/apis/coordination.k8s.io/v1/namespaces/medik8s-leases/leases";
const LED: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

fn client(server: &Scripted) -> kube::Client {
    let mut config = kube::Config::new(server.stub.address.parse().unwrap());
    config.default_retry = false;
    kube::Client::try_from(config).unwrap()
}

fn get(namespace: &str, name: &str) -> String {
    format!("GET {namespace}/{name}")
}

fn patch(namespace: &str, name: &str) -> String {
    format!("PATCH {namespace}/{name}")
}

fn node(name: &str) -> Value {
    json!({ "metadata": { "name": name, "uid": format!("node-{name}"), "resourceVersion": "1" } })
}

fn time(seconds_ago: i64) -> String {
    format!("{:.6}", Timestamp::now() - SignedDuration::from_secs(seconds_ago))
}

/// What a created lease has beside what was sent.
fn born(name: &str) -> Value {
    json!({ "metadata": { "name": name, "uid": format!("lease-{name}") } })
}

/// A lease that this holder has renewed so many seconds ago; with no holder, one that is released.
fn lease(name: &str, version: &str, holder: &str, seconds_ago: i64) -> Value {
    json!({
        "metadata": {
            "name": name, "uid": format!("lease-{name}"), "resourceVersion": version,
            "ownerReferences":
                [{ "apiVersion": "v1", "kind": "Node", "name": name, "uid": format!("node-{name}") }],
        },
        "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": if holder.is_empty() { 1 } else { 300 },
            "acquireTime": time(seconds_ago), "renewTime": time(seconds_ago), "leaseTransitions": 4,
        },
    })
}

/// An answer, and what was answered, for who reads it later.
fn kept(
    answer: impl Fn(&Request) -> Reply + Send + 'static,
) -> (impl Fn(&Request) -> Reply + Send, Arc<Mutex<Value>>) {
    let kept = Arc::new(Mutex::new(Value::Null));
    let keep = Arc::clone(&kept);
    let answer = move |request: &Request| {
        let reply = answer(request);
        if let Reply::Whole(_, _, object) = &reply {
            *keep.lock().unwrap() = object.clone();
        }
        reply
    };
    (answer, kept)
}

/// What is read of a node before its lease is taken, and the node once more when it was.
fn looks(name: &str, lease: impl Fn(&Request) -> Reply + Send + 'static) -> Vec<Expected> {
    vec![
        on(format!("GET /api/v1/nodes/{name}"), found(node(name))),
        on(get(LEASES, name), lease),
        on(get(MEDIK8S, &format!("node-{name}")), missing()),
    ]
}

fn looks_again(name: &str) -> Expected {
    on(format!("GET /api/v1/nodes/{name}"), found(node(name)))
}

fn holder(request: &Request) -> &str {
    request.body["spec"]["holderIdentity"].as_str().unwrap()
}

/// The version that a write is for.
#[track_caller]
fn is_for(request: &Request, uid: &str, version: &str) {
    let metadata = &request.body["metadata"];
    assert_eq!([&metadata["uid"], &metadata["resourceVersion"]], [uid, version], "{request:#?}");
}

#[tokio::test]
async fn a_node_that_was_never_held_is_taken_with_one_create() {
    let mut script = looks("a", missing());
    script.push(on(format!("POST {LEASES}"), written(born("a"), "7")));
    script.push(looks_again("a"));
    script.push(on(patch(LEASES, "a"), written(born("a"), "8")));
    let server = Scripted::start(script);
    let maintenance = Maintenance::new(client(&server), "controller");
    let lease = maintenance.acquire("a").reason("kernel update").await.unwrap();
    let identity = lease.holder();
    lease.release().await.unwrap();

    let writes = server.writes();
    let [created, released] = &writes[..] else { panic!("{writes:#?}") };
    let metadata = &created.body["metadata"];
    assert_eq!(metadata.get("resourceVersion"), None, "{created:#?}");
    assert_eq!(metadata["annotations"], json!({ "kubectl-lease.dev/reason": "kernel update" }));
    let owner = json!([{ "apiVersion": "v1", "kind": "Node", "name": "a", "uid": "node-a" }]);
    assert_eq!(metadata["ownerReferences"], owner);
    assert!(identity.starts_with("controller#"), "{identity}");
    assert_eq!(holder(created), identity);
    assert_eq!(created.body["spec"]["leaseDurationSeconds"], 300);
    for part in ["fieldManager=kube-leases", "fieldValidation=Strict"] {
        assert!(created.query.contains(part), "{}", created.query);
    }
    is_for(released, "lease-a", "7");
    assert_eq!(holder(released), "");
}

/// They would be read as other paths: the name of another lease, or of a part of the node.
#[tokio::test]
async fn what_can_be_no_name_is_not_asked_for() {
    let server = Scripted::start(Vec::new());
    for node in ["", "node-1/status", "../leases", "a?dryRun=All", "Node"] {
        let refused = Maintenance::new(client(&server), "controller").acquire_all(["a", node]).await;
        assert!(matches!(refused, Err(NotTaken::Failed(Error::Invalid { .. }))), "{node}");
    }
    for (namespace, lease) in
        [("default/leases/other?", "ctl"), ("", "ctl"), ("default", ""), ("default", "a/b")]
    {
        let refused = Election::new(client(&server), namespace, lease, "one").campaign().await;
        let Err(NotTaken::Failed(Error::Invalid { message })) = refused else {
            panic!("{namespace} {lease}")
        };
        assert!(message.contains("cannot be the name of"), "{message}");
    }
}

#[tokio::test]
async fn a_released_lease_is_taken_in_the_version_that_was_read() {
    let free = lease("a", "41", "", 600);
    let mut script = looks("a", found(free.clone()));
    script.push(on(patch(LEASES, "a"), written(free, "42")));
    script.push(looks_again("a"));
    let server = Scripted::start(script);
    let lease = Maintenance::new(client(&server), "controller").acquire("a").await.unwrap();

    assert_eq!(lease.nodes().collect::<Vec<_>>(), ["a"]);
    let writes = server.writes();
    let [taken] = &writes[..] else { panic!("{writes:#?}") };
    is_for(taken, "lease-a", "41");
    assert_eq!(holder(taken), lease.holder());
    assert_eq!(taken.body["spec"]["leaseTransitions"], 5);
    assert_eq!(taken.body["metadata"].get("ownerReferences"), None, "the owner is left as it is");
}

#[tokio::test]
async fn a_conflict_is_read_and_decided_again() {
    let (free, released) = (lease("a", "41", "", 600), lease("a", "43", "", 1));
    let mut script = looks("a", found(free));
    script.push(on(patch(LEASES, "a"), conflict()));
    script.push(on(get(LEASES, "a"), found(released.clone())));
    script.push(on(patch(LEASES, "a"), written(released, "44")));
    script.push(looks_again("a"));
    let server = Scripted::start(script);
    let _lease = Maintenance::new(client(&server), "controller").acquire("a").await.unwrap();

    let writes = server.writes();
    is_for(&writes[0], "lease-a", "41");
    is_for(&writes[1], "lease-a", "43");
}

#[track_caller]
fn blocked_by(outcome: Result<MaintenanceLease, NotTaken>, node: &str, by: &str) {
    let Err(NotTaken::Blocked(blocked)) = outcome else { panic!("{:?}", outcome.err()) };
    assert_eq!(blocked.name(), node);
    let held = matches!(blocked.obstacle(),
        ClaimObstacle::Standing(MaintenanceStanding::Held { .. }) if blocked.lease().unwrap().holder() == by);
    assert!(held, "{blocked:?}");
}

#[tokio::test]
async fn a_held_node_costs_no_write() {
    let server = Scripted::start(looks("a", found(lease("a", "41", "jane", 10))));
    blocked_by(Maintenance::new(client(&server), "controller").acquire("a").await, "a", "jane");
    assert_eq!(server.writes().len(), 0);
}

/// Keeps the remarks.
#[derive(Clone, Default)]
struct Remarks(Arc<Mutex<Vec<Remark>>>);

impl TakingProgress for Remarks {
    fn step(&mut self, step: TakingStep<'_>) {
        if let TakingStep::Remark(remark) = step {
            self.0.lock().unwrap().push(remark.clone());
        }
    }
}

#[tokio::test]
async fn without_permission_to_read_what_medik8s_holds_a_controller_is_told_so() {
    let mut script = looks("a", found(lease("a", "41", "jane", 10)));
    script.pop();
    let denied = || refused(403, "Forbidden", "no");
    script.push(on(get(MEDIK8S, "node-a"), denied()));
    script.push(on(format!("GET {MEDIK8S}"), denied()));
    let server = Scripted::start(script);
    let told = Remarks::default();
    let acquire = Maintenance::new(client(&server), "controller").acquire("a").progress(told.clone());
    let outcome = acquire.await;
    server.done();
    blocked_by(outcome, "a", "jane");
    assert_eq!(*told.0.lock().unwrap(), [Remark::Medik8sUnseen]);
}

#[tokio::test]
async fn after_a_conflict_that_another_holder_won_nothing_more_is_written() {
    for known in [None, Some(lease("a", "41", "", 600))] {
        let line = if known.is_some() { patch(LEASES, "a") } else { format!("POST {LEASES}") };
        let mut script = match known {
            Some(free) => looks("a", found(free)),
            None => looks("a", missing()),
        };
        script.push(on(line, conflict()));
        // To decide again; and to undo it, for a proxy may have sent the write twice.
        script.push(on(get(LEASES, "a"), found(lease("a", "42", "jane", 0))));
        script.push(on(get(LEASES, "a"), found(lease("a", "42", "jane", 0))));
        let server = Scripted::start(script);
        blocked_by(Maintenance::new(client(&server), "controller").acquire("a").await, "a", "jane");
        assert_eq!(server.writes().len(), 1);
    }
}

/// b is free when it is looked at, and held when it is taken.
#[tokio::test]
async fn of_two_nodes_the_first_is_released_in_the_version_of_the_own_write() {
    let mut script = looks("a", missing());
    script.extend(looks("b", missing()));
    let (created, taken) = kept(written(born("a"), "7"));
    script.push(on(format!("POST {LEASES}"), created));
    script.push(on(format!("POST {LEASES}"), conflict()));
    script.push(on(get(LEASES, "b"), found(lease("b", "42", "jane", 0))));
    script.push(on(get(LEASES, "b"), found(lease("b", "42", "jane", 0))));
    script.push(on(get(LEASES, "a"), move |_| Reply::Whole(200, "", taken.lock().unwrap().clone())));
    script.push(on(patch(LEASES, "a"), written(born("a"), "8")));
    let server = Scripted::start(script);
    blocked_by(Maintenance::new(client(&server), "controller").acquire_all(["b", "a"]).await, "b", "jane");

    let writes = server.writes();
    let names: Vec<_> = writes[..2].iter().map(|write| &write.body["metadata"]["name"]).collect();
    assert_eq!(names, ["a", "b"]);
    is_for(&writes[2], "lease-a", "7");
    assert_eq!(holder(&writes[2]), "");
    assert_eq!(writes.len(), 3, "{writes:#?}");
}

fn jane() -> Who {
    Who::named("jane", false).unwrap()
}

/// As a command takes it, whose other processes have the same holder.
async fn take(cluster: &Cluster) -> Held {
    let node = Metadata { name: "a".into(), uid: "node-a".into(), ..Metadata::default() };
    match Claim::on_node(node, Terms::of_command(jane(), None), 300).take(cluster, None).await.unwrap() {
        Took::Yes(held, _) => held,
        Took::No(obstacle, _) => panic!("{obstacle:?}"),
    }
}

#[tokio::test]
async fn a_lease_that_another_process_of_the_holder_has_renewed_is_not_released() {
    let (created, taken) = kept(written(born("a"), "7"));
    let server = Scripted::start(vec![
        on(format!("POST {LEASES}"), created),
        on(patch(LEASES, "a"), conflict()),
        on(get(LEASES, "a"), move |_| {
            let mut lease = taken.lock().unwrap().clone();
            lease["metadata"]["resourceVersion"] = json!("8");
            lease["spec"]["renewTime"] = json!(time(-1));
            Reply::Whole(200, "", lease)
        }),
    ]);
    let cluster = Cluster::from_client(client(&server));
    let held = take(&cluster).await;
    let released = held.release(&cluster, &Writing::default()).await.unwrap();
    assert_eq!(released, Released::Shared);
    is_for(&server.writes()[1], "lease-a", "7");
}

#[tokio::test]
async fn work_ends_with_the_reason_when_a_renewal_finds_another_holder() {
    let mut script = looks("a", missing());
    script.push(on(format!("POST {LEASES}"), written(born("a"), "7")));
    script.push(looks_again("a"));
    // Without permission to watch, the renewal notices it.
    script.push(on(format!("GET {LEASES}"), refused(403, "Forbidden", "no")));
    script.push(on(patch(LEASES, "a"), conflict()));
    script.push(on(get(LEASES, "a"), found(lease("a", "9", "jane", 0))));
    let server = Scripted::start(script);
    let maintenance = Maintenance::new(client(&server), "controller");
    let lease = maintenance.acquire("a").duration(Duration::from_secs(3)).await.unwrap();
    let lost = lease.run(pending::<()>()).await.unwrap_err();

    assert_eq!(lost, Lost::Taken { name: "a".into(), holder: "jane".into() });
    let again = lease.run(async { panic!("it works under a lease that was lost") }).await;
    assert_eq!(again.unwrap_err(), lost);
    let writes = server.writes();
    assert_eq!(writes.len(), 2);
    is_for(&writes[1], "lease-a", "7");
    let renewed: Vec<_> = writes[1].body["spec"].as_object().unwrap().keys().collect();
    assert_eq!(renewed, ["leaseDurationSeconds", "renewTime"], "a renewal claims nothing anew");
}

#[tokio::test]
async fn nothing_is_begun_under_a_lease_that_another_holder_has_taken_since() {
    let mut script = looks("a", missing());
    script.push(on(format!("POST {LEASES}"), written(born("a"), "7")));
    script.push(looks_again("a"));
    script.push(on(patch(LEASES, "a"), conflict()));
    script.push(on(get(LEASES, "a"), found(lease("a", "9", "jane", 0))));
    let server = Scripted::start(script);
    let maintenance = Maintenance::new(client(&server), "controller");
    let lease = maintenance.acquire("a").await.unwrap();
    sleep(Duration::from_millis(2100)).await;
    let lost = lease.run(async { panic!("it works under another's lease") }).await.unwrap_err();
    assert_eq!(lost, Lost::Taken { name: "a".into(), holder: "jane".into() });
}

/// While a machine sleeps timers stand still, and the clock that a holder judges itself by runs on. The timer of
/// the renewal stands still here by being set to an hour.
#[tokio::test]
async fn work_ends_by_the_clock_also_when_the_timers_of_renewals_stand_still() {
    let (created, taken) = kept(written(born("a"), "7"));
    let server = Scripted::start(vec![
        on(format!("POST {LEASES}"), created),
        on(format!("GET {LEASES}"), move |request| {
            listed(std::slice::from_ref(&*taken.lock().unwrap()))(request)
        }),
        on(format!("GET {LEASES}"), |_| Reply::Watch(vec![])),
    ]);
    let cluster = Cluster::from_client(client(&server));
    let held = [take(&cluster).await];
    let mut schedule = Schedule::new(Duration::from_secs(3));
    schedule.renew = Duration::from_secs(3600);
    let work = timeout(Duration::from_secs(20), pending::<()>());
    let lost = keep_while(&cluster, &held, schedule, work).await.unwrap_err();

    assert_eq!(lost, Lost::Unrenewed { name: "a".into(), why: "no time was left".into() });
    let late = held[0].sent() + schedule.kill + Duration::from_secs(1);
    assert!(!late.has_passed(), "the work went on until others could take the lease");
}

#[tokio::test]
async fn work_ends_with_the_reason_when_a_watch_shows_that_the_lease_is_deleted() {
    let mut script = looks("a", missing());
    let (created, taken) = kept(written(born("a"), "7"));
    script.push(on(format!("POST {LEASES}"), created));
    script.push(looks_again("a"));
    script.push(on(format!("GET {LEASES}"), move |request| {
        listed(std::slice::from_ref(&*taken.lock().unwrap()))(request)
    }));
    let gone = json!({ "type": "DELETED", "object": lease("a", "9", "controller", 0) });
    script.push(on(format!("GET {LEASES}"), move |_| Reply::Watch(vec![gone.clone()])));
    let server = Scripted::start(script);
    let maintenance = Maintenance::new(client(&server), "controller");
    let lease = maintenance.acquire("a").await.unwrap();
    let lost = lease.run(pending::<()>()).await.unwrap_err();

    assert_eq!(lost, Lost::Deleted { name: "a".into() });
    assert_eq!(server.writes().len(), 1);
}

#[tokio::test]
async fn a_lead_belongs_to_nothing_and_is_resigned_in_its_version() {
    let server = Scripted::start(vec![
        on(get(LED, "my-controller"), missing()),
        on(format!("POST {LED}"), written(born("my-controller"), "7")),
        on(patch(LED, "my-controller"), written(born("my-controller"), "8")),
    ]);
    let election = Election::new(client(&server), "default", "my-controller", "pod-1");
    let leadership = election.campaign().await.unwrap();
    leadership.resign().await.unwrap();

    let writes = server.writes();
    assert_eq!(holder(&writes[0]), "pod-1");
    assert_eq!(writes[0].body["spec"]["leaseDurationSeconds"], 15);
    assert_eq!(writes[0].body["metadata"]["ownerReferences"], json!([]));
    is_for(&writes[1], "lease-my-controller", "7");
    assert_eq!(holder(&writes[1]), "");
}

#[tokio::test]
async fn a_lead_of_coordinated_election_is_not_campaigned_for() {
    let mut coordinated = lease("kube-scheduler", "5", "", 10);
    coordinated["spec"]["strategy"] = json!("OldestEmulationVersion");
    let server = Scripted::start(vec![on(get(LED, "kube-scheduler"), found(coordinated))]);
    let election = Election::new(client(&server), "default", "kube-scheduler", "pod-1");
    assert!(matches!(election.campaign().await, Err(NotTaken::Failed(_))));
    server.done();
}

const POD: &str = "/api/v1/namespaces/shop/pods/db-0";

fn pod() -> Value {
    json!({
        "metadata": { "name": "db-0", "namespace": "shop", "uid": "pod-db-0", "resourceVersion": "77" },
        "spec": { "nodeName": "a", "containers": [] },
    })
}

/// What a pod is judged by: its node, its disruption budgets, and these leases.
fn around(leases: &str) -> Vec<Expected> {
    let mut node = node("a");
    node["status"] = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
    vec![
        on("GET /api/v1/nodes/a", found(node)),
        on(leases, listed(&[])),
        on("GET /apis/policy/v1/namespaces/shop/poddisruptionbudgets", listed(&[])),
    ]
}

fn looks_at_pod() -> Vec<Expected> {
    let mut script = vec![on(format!("GET {POD}"), found(pod()))];
    script.extend(around("GET /apis/coordination.k8s.io/v1/leases"));
    script
}

async fn delete_pod(server: &Scripted, write: DeleteMode) -> Result<(), NotDeleted> {
    let cluster = Cluster::from_client(client(server));
    let pod = cluster.get::<Pod>(PODS, &Address::new("shop", "db-0")).await.unwrap().unwrap().value;
    let mut around = surroundings::read(&cluster, &[&pod]).await.unwrap();
    let judged = Judged::new(pod, &around, cluster.server_time());
    delete(&cluster, &judged, Choice::Force, &mut around, write).await
}

/// The pod is read once, and what it is judged by twice: for the decision, and before the deletion.
fn deletion(answers: Vec<Expected>) -> Scripted {
    let mut script = looks_at_pod();
    script.extend(around("GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"));
    script.extend(answers);
    Scripted::start(script)
}

#[tokio::test]
async fn a_pod_is_deleted_with_both_preconditions() {
    for (write, dry_run) in [(DeleteMode::Yes, Value::Null), (DeleteMode::ServerDryRun, json!(["All"]))] {
        let server = deletion(vec![on(format!("DELETE {POD}"), found(pod()))]);
        delete_pod(&server, write).await.unwrap();
        let writes = server.writes();
        let body = &writes[0].body;
        assert_eq!(body["preconditions"], json!({ "uid": "pod-db-0", "resourceVersion": "77" }));
        assert_eq!(body["gracePeriodSeconds"], 0);
        assert_eq!(body["dryRun"], dry_run);
    }
}

#[tokio::test]
async fn a_pod_that_has_changed_is_left() {
    let server = deletion(vec![on(format!("DELETE {POD}"), conflict())]);
    let outcome = delete_pod(&server, DeleteMode::Yes).await;
    assert!(matches!(outcome, Err(NotDeleted::PodChanged(_))), "{outcome:?}");
    server.done();
}

#[tokio::test]
async fn a_deletion_without_an_answer_is_looked_after_and_not_repeated() {
    let mut terminating = pod();
    terminating["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    for (now, deleted) in [(pod(), false), (terminating, true)] {
        let cut = on(format!("DELETE {POD}"), |_| Reply::Cut);
        let server = deletion(vec![cut, on(format!("GET {POD}"), found(now))]);
        let outcome = delete_pod(&server, DeleteMode::Yes).await;
        match outcome {
            Ok(()) => assert!(deleted),
            Err(why) => assert!(matches!(why, NotDeleted::StillThere(_)) && !deleted, "{why:?}"),
        }
        server.done();
    }
}

#[tokio::test]
async fn a_dry_run_of_the_client_asks_nothing_more() {
    let server = Scripted::start(looks_at_pod());
    delete_pod(&server, DeleteMode::ClientDryRun).await.unwrap();
    assert_eq!(server.writes().len(), 0);
}
