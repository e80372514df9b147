//! One restart of the only kube-apiserver, under commands of a user who is not an administrator; and outages
//! that last.
//!
//! A kube-apiserver that has just begun to listen answers 403 to every user outside system:masters until
//! it has read the roles, for a tenth of a second or two. What the commands ask for meanwhile arrives in that
//! moment: in front of the server is a relay, as a load balancer is, that takes connections and passes them on
//! as soon as there is a server.

use std::{
    collections::BTreeSet,
    fs,
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    MEDIK8S,
    harness::{
        ControlPlane, Shape, User,
        components::{Components, Entrant, announce},
        faults::{Fault, FaultProxy},
        random,
    },
    plugin::{Plugin, Running, wait_for},
    shared,
};

const SOON: Duration = Duration::from_secs(30);
/// The user of all commands, who has all roles of docs/rbac.yaml that they need.
const USER: &str = "elector";
const NODE: &str = "node-1";

/// Binds the user to the roles that the elector does not have in all tests.
fn bind(plane: &ControlPlane) {
    let binding = |namespace: &str, kind: &str, role: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": if namespace.is_empty() { "ClusterRoleBinding" } else { "RoleBinding" },
            "metadata": { "name": format!("{USER}-{role}"), "namespace": namespace },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role },
            "subjects": [{ "kind": "User", "name": USER }],
        })
    };
    plane.apply(&json!({ "apiVersion": "v1", "kind": "List", "items": [
        binding("kube-system", "Role", "kubectl-lease-apiservers"),
        binding("kube-node-maintenance", "Role", "kubectl-lease-maint"),
        binding("", "ClusterRole", "kubectl-lease-maint"),
        binding("", "ClusterRole", "kubectl-lease-partitions"),
        binding(MEDIK8S, "ClusterRole", "kubectl-lease-medik8s"),
        binding("default", "ClusterRole", "kubectl-lease-hold"),
    ] }));
}

/// What the user was refused with 403, as `VERB PATH`, by the audit log.
fn refused(plane: &ControlPlane) -> BTreeSet<String> {
    let log = fs::read_to_string(plane.folder.join("cp-1").join("audit.log")).unwrap();
    log.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|event| event["user"]["username"] == USER && event["responseStatus"]["code"] == 403)
        .map(|event| {
            let uri = event["requestURI"].as_str().unwrap();
            format!("{} {}", event["verb"].as_str().unwrap(), uri.split('?').next().unwrap())
        })
        .collect()
}

/// Passes connections on to an address, as soon as there is a server; the address to connect to.
fn relay(to: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for client in listener.incoming().map(Result::unwrap) {
            let to = to.clone();
            thread::spawn(move || {
                let began = Instant::now();
                let server = loop {
                    match TcpStream::connect(&to) {
                        Ok(server) => break server,
                        Err(error) => assert!(began.elapsed() < SOON, "{error}"),
                    }
                    thread::sleep(Duration::from_millis(1));
                };
                let pass = |mut from: TcpStream, mut to: TcpStream| {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                };
                let (from, back) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || pass(back, from));
                pass(client, server);
            });
        }
    });
    address
}

/// The plugin as that user, through a relay.
fn relayed(plane: &ControlPlane) -> Plugin {
    let relayed = relay(plane.url(0).trim_start_matches("https://").to_owned());
    let config = fs::read_to_string(plane.kubeconfig(User::Elector, 0)).unwrap();
    let kubeconfig = plane.folder.join("relayed.kubeconfig");
    fs::write(&kubeconfig, config.replace(&plane.url(0), &relayed)).unwrap();
    Plugin::new(kubeconfig)
}

fn priority(plane: &ControlPlane, namespace: &str, name: &str) -> String {
    let path = "jsonpath={.metadata.annotations.kubectl-lease\\.dev/priority}";
    plane.kubectl(&["get", "leasecandidate", name, "-n", namespace, "-o", path])
}

/// A control plane with a node, a pod and three candidates for the lead of one lease.
fn stage(namespace: &str) -> (ControlPlane, Components) {
    let plane = ControlPlane::start(&Shape::default());
    plane.apply(&json!({ "apiVersion": "v1", "kind": "List", "items": [
        { "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } },
        { "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": MEDIK8S } },
        { "apiVersion": "v1", "kind": "Node", "metadata": { "name": NODE } },
        { "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "pod", "namespace": namespace },
          "spec": { "containers": [{ "name": "c", "image": "i" }] } },
    ] }));
    bind(&plane);
    plane.await_elector();
    let components = Components::answer(&plane, namespace);
    let mut oldest = Entrant::new("one_1", "contest");
    oldest.emulation = "1.36.0";
    let others = ["two_2", "three_3"].map(|name| Entrant::new(name, "contest"));
    announce(&plane, namespace, &[&[oldest][..], &others].concat());
    let there = || plane.kubectl(&["get", "leases", "-n", namespace, "-o", "name"]);
    wait_for("the lease", SOON, || there().contains("contest"), there);
    (plane, components)
}

#[test]
fn a_restart_that_refuses_everything_for_a_while_ends_no_command_and_strands_no_priority() {
    let namespace = format!("restart-{}", random());
    let (mut plane, _components) = stage(&namespace);
    let plugin = relayed(&plane);
    let watches: Vec<(&str, Running)> = [
        ("cp-1", &["apiservers", "-w"][..]),
        ("two_2", &["candidates", "-w"]),
        ("contest", &["leaders", "-w"]),
        (NODE, &["maint", "list", "-w"]),
        (NODE, &["partitions", "-w"]),
    ]
    .into_iter()
    .map(|(shown, args)| {
        let watch = plugin.start(args);
        watch.until(&format!("{args:?} shows {shown}"), SOON, |text| text.contains(shown));
        (args[0], watch)
    })
    .collect();
    let set = |name: &str, priority: &str, more: &[&str]| {
        let args = ["candidates", "set-priority", name, priority, "-n", &namespace, "--yes", "--for", "1h"];
        let running = plugin.start(&[&args, more].concat());
        running.until("it is set", SOON, |text| text.contains("priority set to"));
        running
    };
    let mut cleared = set("three_3", "7", &[]);
    let mut kept = set("two_2", "8", &[]);
    // Nobody renews the lease in the name of these candidates: it is not had before the end of the wait.
    let mut waits = set("one_1", "9", &["--wait=10m"]);
    let mut holds = plugin.start(&[
        "hold",
        "held",
        "-n",
        "default",
        "-d",
        "60s",
        "--",
        "sh",
        "-c",
        "echo held; sleep 600",
    ]);
    holds.until("it is held", SOON, |text| text.contains("held"));
    let mut waiter = plugin.start(&["hold", "held", "-n", "default", "--wait", "--", "true"]);
    waiter.until_stderr("it waits", SOON, |text| text.contains("waiting for"));

    // A watch that was not opened yet when the server restarts is refused for good.
    std::thread::sleep(std::time::Duration::from_secs(1));

    let asked = [
        "list /apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
        "list /apis/coordination.k8s.io/v1beta1/leasecandidates",
        "list /apis/coordination.k8s.io/v1/leases",
        "list /apis/coordination.k8s.io/v1/namespaces/kube-node-maintenance/leases",
        "list /apis/coordination.k8s.io/v1/namespaces/medik8s-leases/leases",
        "list /api/v1/pods",
        "list /api/v1/nodes",
        &format!("list /apis/coordination.k8s.io/v1beta1/namespaces/{namespace}/leasecandidates"),
        &format!("get /apis/coordination.k8s.io/v1beta1/namespaces/{namespace}/leasecandidates/three_3"),
        &format!("list /apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"),
        "list /apis/coordination.k8s.io/v1/namespaces/default/leases",
    ];
    // On a busy machine not everything arrives in that moment: once more, then.
    for round in 1.. {
        plane.apiservers[0].kill();
        for (verb, watch) in &watches {
            watch.until_stderr(&format!("{verb} is cut off"), SOON, |text| text.contains("trying again"));
        }
        if round == 1 {
            // Its time is over just now.
            cleared.signal("-INT");
        }
        plane.restart_apiserver(0);
        for (verb, watch) in &watches {
            watch.until_stderr(&format!("{verb} is connected again"), SOON, |text| {
                text.matches("connected again").count() == round
            });
        }
        let told = refused(&plane);
        let missed: Vec<_> = asked.iter().filter(|asked| !told.contains(**asked)).collect();
        // What is asked for once only arrives when it does.
        if missed.iter().all(|missed| missed.starts_with("get ")) {
            break;
        }
        assert!(round < 4, "not refused: {missed:#?}\nof {told:#?}");
    }
    assert_eq!(cleared.wait(), 130, "{}", cleared.stderr());
    assert!(cleared.stdout().contains("three_3 priority cleared"), "{}", cleared.stdout());
    let priorities = ["one_1", "two_2", "three_3"].map(|name| priority(&plane, &namespace, name));
    assert_eq!(priorities, ["9", "8", ""]);

    // The pods and nodes are seen as before: that a holder is none of them is known.
    let renewed = format!("{:.6}", jiff::Timestamp::now() - jiff::SignedDuration::from_secs(57));
    plane.apply(&json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "haunted", "namespace": namespace },
        "spec": { "holderIdentity": "nowhere_3", "leaseDurationSeconds": 1, "renewTime": renewed },
    }));
    let leaders = &watches.iter().find(|(verb, _)| *verb == "leaders").unwrap().1;
    leaders.until("it is a ghost", SOON, |text| text.contains("haunted   ghost"));
    for running in [&mut kept, &mut waits] {
        running.signal("-INT");
        assert_eq!(running.wait(), 130, "{}", running.stderr());
    }
    assert_eq!(["one_1", "two_2"].map(|name| priority(&plane, &namespace, name)), ["", ""]);
    for (verb, mut watch) in watches {
        watch.signal("-INT");
        assert_eq!(watch.wait(), 130, "{verb}: {}", watch.stderr());
    }
    holds.signal("-TERM");
    holds.wait();
    assert_eq!(waiter.wait(), 0, "{}", waiter.stderr());
}

/// How long it cannot be cleared: seconds, or minutes in `make test-long`.
fn outage() -> Duration {
    let seconds = std::env::var("KUBECTL_LEASE_OUTAGE").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(4))
}

#[test]
fn a_priority_for_a_time_is_cleared_however_long_that_cannot_be_done() {
    let plane = shared();
    let namespace = format!("outage-{}", random());
    plane.kubectl(&["create", "namespace", &namespace]);
    let _components = Components::answer(plane, &namespace);
    announce(plane, &namespace, &[Entrant::new("one_1", "contest")]);
    let down = Arc::new(AtomicBool::new(false));
    let is_down = Arc::clone(&down);
    let proxy =
        FaultProxy::start(
            plane,
            move |_, _| {
                if is_down.load(Ordering::SeqCst) { Fault::CutBefore } else { Fault::None }
            },
        );
    let set =
        ["candidates", "set-priority", "one_1", "9", "-n", &namespace, "--yes", "--force", "--for", "1h"];
    let mut running = Plugin::new(&proxy.kubeconfig).start(&set);
    running.until_stderr("it is kept", SOON, |text| text.contains("Ctrl-C clears it"));
    down.store(true, Ordering::SeqCst);
    running.signal("-INT");
    running.until_stderr("it is told", SOON, |text| text.contains("trying again until Ctrl-C"));
    thread::sleep(outage());
    assert_eq!(priority(plane, &namespace, "one_1"), "9");
    down.store(false, Ordering::SeqCst);
    assert_eq!(running.wait(), 130, "{}", running.stderr());
    assert_eq!(priority(plane, &namespace, "one_1"), "");
    let told = running.stderr().matches("cannot be cleared yet").count() as u64;
    assert!(told <= 1 + outage().as_secs() / 60, "{}", running.stderr());
}

/// Only the write that clears it is refused, by the proxy: what is read before that is answered.
#[test]
fn a_priority_for_a_time_is_cleared_when_that_is_refused_for_a_moment() {
    let plane = shared();
    let namespace = format!("moment-{}", random());
    plane.kubectl(&["create", "namespace", &namespace]);
    let _components = Components::answer(plane, &namespace);
    announce(plane, &namespace, &[Entrant::new("one_1", "contest")]);
    let refusals = Arc::new(AtomicUsize::new(0));
    let ended = Arc::new(AtomicBool::new(false));
    let (count, is_over) = (Arc::clone(&refusals), Arc::clone(&ended));
    let proxy = FaultProxy::start(plane, move |method, path| {
        let clears = method == "PATCH" && path.contains("/leasecandidates/one_1?");
        if clears && is_over.load(Ordering::SeqCst) && count.fetch_add(1, Ordering::SeqCst) < 2 {
            Fault::Refuse(403)
        } else {
            Fault::None
        }
    });
    let set =
        ["candidates", "set-priority", "one_1", "9", "-n", &namespace, "--yes", "--force", "--for", "1h"];
    let mut running = Plugin::new(&proxy.kubeconfig).start(&set);
    running.until_stderr("it is kept", SOON, |text| text.contains("Ctrl-C clears it"));
    ended.store(true, Ordering::SeqCst);
    running.signal("-INT");
    assert_eq!(running.wait(), 130, "{}", running.stderr());
    assert_eq!(priority(plane, &namespace, "one_1"), "");
    assert!(refusals.load(Ordering::SeqCst) > 2, "nothing was refused");
}

/// Permissions that are taken away while commands have them, as the server would answer then.
#[test]
fn a_403_that_lasts_is_told() {
    let plane = shared();
    let namespace = format!("denied-{}", random());
    plane.kubectl(&["create", "namespace", &namespace]);
    let _components = Components::answer(plane, &namespace);
    announce(plane, &namespace, &[Entrant::new("one_1", "contest")]);
    let denied = Arc::new(AtomicBool::new(false));
    let proxy = |is_denied: fn(&str) -> bool| {
        let now = Arc::clone(&denied);
        FaultProxy::start(plane, move |_, path| {
            if now.load(Ordering::SeqCst) && is_denied(path) { Fault::Refuse(403) } else { Fault::None }
        })
    };
    let (all, pods) = (proxy(|_| true), proxy(|path| path.starts_with("/api/v1/pods")));
    let mut watch = Plugin::new(&all.kubeconfig).start(&["leaders", "-w"]);
    let mut other = Plugin::new(&pods.kubeconfig).start(&["leaders", "-w"]);
    let set =
        ["candidates", "set-priority", "one_1", "9", "-n", &namespace, "--yes", "--force", "--for", "1h"];
    let mut clears = Plugin::new(&all.kubeconfig).start(&set);
    for running in [&watch, &other] {
        running.until("it watches", SOON, |text| text.contains("leader-election-controller"));
    }
    clears.until_stderr("it is kept", SOON, |text| text.contains("Ctrl-C clears it"));

    denied.store(true, Ordering::SeqCst);
    clears.signal("-INT");
    all.sever_watches(true);
    pods.sever_watches(true);
    let began = Instant::now();
    assert_eq!(watch.wait(), 7, "{}", watch.stderr());
    assert!(watch.stderr().contains("--verb=list,watch"), "{}", watch.stderr());
    assert_eq!(clears.wait(), 7, "{}", clears.stderr());
    assert!(clears.stderr().contains("one_1 keeps its priority"), "{}", clears.stderr());
    let took = began.elapsed();
    assert!((Duration::from_secs(9)..Duration::from_secs(25)).contains(&took), "{took:?}");
    // What it can do without is done without, and said.
    pods.sever_watches(false);
    other.until_stderr("it goes on", SOON, |text| {
        text.contains("warning: ") && text.contains("403") && text.contains("connected again")
    });
    other.signal("-INT");
    assert_eq!(other.wait(), 130, "{}", other.stderr());
}
