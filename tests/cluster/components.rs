//! Real coordinated components: kube-controller-manager and kube-scheduler, on the same hosts, of
//! different versions, and upgraded.

use std::{fs, time::Duration};

use serde_json::Value;

use crate::{
    harness::{
        ControlPlane, Shape, User,
        components::{Components, Entrant, announce},
    },
    plugin::{Plugin, wait_for},
};

const SOON: Duration = Duration::from_secs(30);
const MANAGER: &str = "kube-controller-manager";
const SCHEDULER: &str = "kube-scheduler";

fn admin(plane: &ControlPlane) -> Plugin {
    Plugin::new(plane.kubeconfig(User::Admin, 0))
}

fn document(plugin: &Plugin, args: &[&str]) -> Value {
    let listed = plugin.run(&[args, &["-o", "json"]].concat()).expect(0);
    serde_json::from_str(&listed.stdout).unwrap()
}

fn items(plugin: &Plugin, args: &[&str]) -> Vec<Value> {
    document(plugin, args)["items"].as_array().unwrap().clone()
}

/// The hosts of the candidates for a lease that have this flag.
fn hosts(candidates: &[Value], lease: &str, flag: &str) -> Vec<String> {
    let of_lease = candidates.iter().filter(|it| it["leaseName"] == lease && it[flag] == true);
    of_lease.map(|it| it["host"].as_str().unwrap().to_owned()).collect()
}

/// Waits until these leases have so many candidates and a leader each.
fn await_leaders(plugin: &Plugin, leases: &[&str], count: usize) {
    wait_for(
        "the leaders",
        SOON,
        || {
            let all = items(plugin, &["candidates"]);
            let led = |lease: &&str| !hosts(&all, lease, "leader").is_empty();
            all.len() == count && leases.iter().all(led)
        },
        || format!("{:#?}", items(plugin, &["candidates"])),
    );
}

/// Of each lease one of the two hosts leads, and the other is next.
fn check_candidates_and_leaders(plugin: &Plugin) {
    let all = items(plugin, &["candidates"]);
    for lease in [MANAGER, SCHEDULER] {
        let mut both = [hosts(&all, lease, "leader"), hosts(&all, lease, "next")].concat();
        both.sort();
        assert_eq!(both, ["cp-1", "cp-2"], "{lease}: {all:#?}");
        assert_eq!(items(plugin, &["candidates", lease]).len(), 2);

        let rows = items(plugin, &["leaders", lease]);
        let [row] = rows.as_slice() else { panic!("{rows:#?}") };
        // The first renewal after the election is due within five seconds.
        assert!(["healthy", "late"].contains(&row["state"].as_str().unwrap()), "{row:#?}");
        assert_eq!(row["coordinated"], true, "{row:#?}");
        let leader = all.iter().find(|it| it["leaseName"] == lease && it["leader"] == true).unwrap();
        assert_eq!(leader["candidate"], row["holder"]);
    }
}

#[test]
fn two_components_are_led_by_themselves_and_a_wait_ends_when_the_named_host_leads_one() {
    let mut plane = ControlPlane::start(&Shape { managers: 2, schedulers: 2, ..Shape::default() });
    let plugin = admin(&plane);
    await_leaders(&plugin, &[MANAGER, SCHEDULER], 4);
    check_candidates_and_leaders(&plugin);
    let all = items(&plugin, &["candidates", SCHEDULER]);
    let leader = all.iter().find(|it| it["leader"] == true).unwrap();
    let (holder, leads) = (leader["candidate"].as_str().unwrap(), leader["host"].as_str().unwrap());
    let other = if leads == "cp-1" { "cp-2" } else { "cp-1" };
    let wait = |lease: &str, host: &str, more: &[&str]| {
        plugin.run(&[&["candidates", "wait", lease, "--leader", host], more].concat())
    };

    let waited = wait(SCHEDULER, leads, &["--stable", "3s", "--timeout", "30s"]).expect(0);
    assert_eq!(waited.stdout, format!("{holder} leads kube-system/{SCHEDULER}, for 3s\n"));
    assert!(waited.took >= Duration::from_secs(3), "{waited:?}");
    // By the holder's identity or the beginning of it; and a lease that is not coordinated.
    let (begins, _) = holder.split_at(leads.len() + 5);
    wait(SCHEDULER, begins, &["-n", "kube-system"]).expect(0);
    let elector = wait("leader-election-controller", "cp-1", &[]).expect(0);
    assert!(elector.stdout.ends_with(" leads kube-system/leader-election-controller\n"), "{elector:?}");

    let still = format!("{other} does not lead after 4s: {leads}_");
    let in_vain: [(&[&str], i32, &str); 5] = [
        (&[SCHEDULER, "--leader", other], 124, &still),
        (
            &[SCHEDULER, "--leader", "cp-9"],
            3,
            "no candidate 'cp-9' for kube-scheduler, only cp-1, cp-2 after 4s",
        ),
        (&["kube-schedule", "--leader", "cp-1"], 3, "there is no lease kube-schedule after 4s"),
        (&["leader-election-controller", "--leader", "cp-2"], 124, "cp-2 does not lead after 4s: cp-1_"),
        (&[SCHEDULER, "--leader", other, "-n", "nowhere"], 3, "there is no namespace 'nowhere'"),
    ];
    let at_once = in_vain.map(|(args, code, words)| {
        let args = [&["candidates", "wait"], args, &["--timeout", "4s"]].concat();
        (plugin.start(&args), code, words)
    });
    for (mut waiting, code, words) in at_once {
        assert_eq!(waiting.wait(), code, "{}", waiting.stderr());
        assert!(waiting.stderr().contains(words), "'{words}' is not in {}", waiting.stderr());
    }
    wait(SCHEDULER, other, &["--stable", "2m"])
        .expect(2)
        .says("--stable 2m is not shorter than --timeout 2m");
    let nobody = Plugin::new(plane.kubeconfig(User::Nobody, 0));
    nobody
        .run(&["candidates", "wait", SCHEDULER, "--leader", other])
        .expect(7)
        .says("leases.coordination.k8s.io");

    let mut interrupted = plugin.start(&["candidates", "wait", SCHEDULER, "--leader", other]);
    interrupted.until_stderr("it waits", SOON, |text| text.contains(" leads "));
    interrupted.signal("-INT");
    assert_eq!((interrupted.wait(), interrupted.stdout()), (130, String::new()));

    // A real failover, waited for on a terminal and in a pipe.
    let args = ["candidates", "wait", SCHEDULER, "--leader", other, "--stable", "2s", "--timeout", "55s"];
    let terminal = plugin.start_on_terminal(&args, 10, 120);
    terminal.until("who leads is shown", SOON, |screen| screen.contains(&format!("{leads}_")));
    let mut waiting = plugin.start(&args);
    waiting.until_stderr("who leads is told", SOON, |text| text.contains(&format!("{leads}_")));
    let scheduler = plane.schedulers.iter_mut().find(|it| it.name.ends_with(&leads[2..])).unwrap();
    scheduler.kill();
    assert_eq!(waiting.wait(), 0, "{}", waiting.stderr());
    let now = items(&plugin, &["leaders", SCHEDULER]);
    let holder = now[0]["holder"].as_str().unwrap();
    assert!(holder.starts_with(&format!("{other}_")), "{holder}");
    assert_eq!(waiting.stdout(), format!("{holder} leads kube-system/{SCHEDULER}, for 2s\n"));
    let told = waiting.stderr();
    assert!(told.contains("has no leader: the lease of"), "{told}");
    terminal.until("the end", SOON, |screen| screen.contains(" leads kube-system/kube-scheduler, for 2s"));
}

/// One kube-apiserver is still of the version before: it emulates it.
#[test]
fn a_candidate_that_is_newer_than_a_kube_apiserver_is_not_preferred() {
    let plane = ControlPlane::start(&Shape {
        apiservers: 2,
        last_apiserver_flag: Some("--emulated-version=kube=1.36"),
        ..Shape::default()
    });
    plane.await_elector();
    let namespace = "kube-system";
    let _components = Components::answer(&plane, namespace);
    let old = Entrant { binary: "1.36.4", emulation: "1.36.0", ..Entrant::new("cp-2_2", SCHEDULER) };
    let older = Entrant { binary: "1.34.4", emulation: "1.34.0", ..Entrant::new("cp-3_3", SCHEDULER) };
    let operator = Entrant { binary: "2.0.0", emulation: "2.0.0", ..Entrant::new("op-1_1", "my-operator") };
    announce(&plane, namespace, &[Entrant::new("cp-1_1", SCHEDULER), old, older, operator]);
    let newer = "cp-1_1 works as 1.37, which is newer than the kube-apiserver on cp-2 (1.36)";
    let (user, kubeconfig) = plane.unique_admin();
    let plugin = Plugin::new(&kubeconfig);
    let prefer = |candidate: &str, more: &[&str]| {
        let args = ["candidates", "set-priority", candidate, "5", "--yes", "--dry-run=server"];
        plugin.run(&[&args, more].concat())
    };

    prefer("cp-1", &[]).expect(6).says(newer).says("--force does it all the same");
    prefer("cp-1", &["--force"]).expect(0).says(newer);
    prefer("cp-3", &[]).expect(6).says("is more than one minor version older than the kube-apiserver on cp-");
    for well in ["cp-2", "op-1"] {
        let told = prefer(well, &[]).expect(0).stderr;
        assert!(!told.contains("skew") && !told.contains("kube-apiserver on"), "{told}");
    }
    // The peer was asked, and got no credentials.
    let log = fs::read_to_string(plane.folder.join("cp-2/audit.log")).unwrap();
    let asked: Vec<Value> = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|event| event["userAgent"].as_str().is_some_and(|agent| agent.starts_with("kubectl-lease/")))
        .collect();
    assert!(asked.iter().any(|event| event["requestURI"] == "/version"), "{asked:#?}");
    assert!(asked.iter().all(|event| event["user"]["username"] == "system:anonymous"), "{user}: {asked:#?}");

    // Where its address does not answer, the image of its pod tells; otherwise it is not known.
    let label = "kubernetes.io/hostname=cp-2,apiserver.kubernetes.io/identity=kube-apiserver";
    let nowhere = "kubernetes.io/peer-advertise-address=127.0.0.1:1";
    plane.kubectl(&["annotate", "lease", "-n", namespace, "-l", label, nowhere, "--overwrite"]);
    let unknown = prefer("cp-1", &[]).expect(0);
    let unknown = unknown.says("the version of the kube-apiserver on cp-2 is not known, and versions differ");
    assert!(!unknown.stderr.contains(newer), "{unknown:?}");
    plane.apply(&serde_json::json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "kube-apiserver-cp-2", "namespace": namespace,
            "labels": { "component": "kube-apiserver" } },
        "spec": { "nodeName": "cp-2", "hostNetwork": true, "containers": [
            { "name": "kube-apiserver", "image": "registry.k8s.io/kube-apiserver:v1.36.4" }] },
    }));
    prefer("cp-1", &[]).expect(6).says(newer);
}

/// An upgrade of the real kube-controller-manager, by the version that it emulates.
#[test]
fn an_upgrade_goes_as_it_was_rehearsed() {
    let (old, new) = ("--emulated-version=kube=1.36", "--emulated-version=kube=1.37");
    let mut plane = ControlPlane::start(&Shape {
        managers: 2,
        manager_flags: &[
            "--emulated-version=kube=1.36",
            // A leader that has ended is followed sooner.
            "--leader-elect-lease-duration=6s",
            "--leader-elect-renew-deadline=4s",
            "--leader-elect-retry-period=1s",
        ],
        ..Shape::default()
    });
    let plugin = admin(&plane);
    await_leaders(&plugin, &[MANAGER], 2);
    let rehearsed = |more: &[&str]| document(&plugin, &[&["candidates", "rehearse", MANAGER], more].concat());
    let whole = rehearsed(&["--to", "1.37.1", "--rollback"]);
    let leaders = |document: &Value| -> Vec<String> {
        let steps = document["steps"].as_array().unwrap();
        steps.iter().map(|step| step["leader"].as_str().unwrap().to_owned()).collect()
    };
    let first = leaders(&whole)[0].clone();
    let all = items(&plugin, &["candidates"]);
    assert_eq!(hosts(&all, MANAGER, "leader"), [first.as_str()]);
    assert_eq!((&whole["kind"], &whole["apiserverVersion"]), (&"Rehearsal".into(), &"1.37".into()));
    assert_eq!(whole["steps"][2]["from"]["emulationVersion"], "1.36.0", "{whole:#}");
    let within = |document: &Value| -> Vec<bool> {
        let steps = document["steps"].as_array().unwrap();
        steps.iter().map(|step| step["withinSkewPolicy"].as_bool().unwrap()).collect()
    };
    assert_eq!(within(&whole), [true; 7], "{whole:#}");
    let restart = serde_json::json!({ "from": "cp-1", "to": "cp-2", "because": "restart" });
    assert_eq!((&whole["moves"], &whole["steps"][2]["moves"][0]), (&3.into(), &restart), "{whole:#}");
    let too_far = rehearsed(&["--to", "1.38"]);
    assert_eq!(within(&too_far), [true, false, false, true], "{too_far:#}");
    let table = plugin.run(&["candidates", "rehearse", MANAGER, "--to", "1.37.1"]).expect(0);
    assert_eq!(table.stdout.lines().count(), 5, "{table:?}");
    assert!(table.stderr.contains("all kube-apiservers are upgraded first"), "{table:?}");
    plugin.run(&["candidates", "rehearse", "nothing", "--to", "1.38"]).expect(3);
    plugin
        .run(&["candidates", "rehearse", MANAGER, "--to", "new"])
        .expect(2)
        .says("must be a version such as 1.38");

    // Host by host, as it was said, and the first step back; each leader for as long as nothing is touched.
    for (step, n, from, to) in [(2, 0, old, new), (3, 1, old, new), (4, 1, new, old)] {
        let (host, said) = (format!("cp-{}", n + 1), whole["steps"][step]["leader"].as_str().unwrap());
        assert_eq!(whole["steps"][step]["host"], host);
        plane.managers[n].stop();
        plane.managers[n].change_flag(from, to);
        if from == old {
            plugin.run(&["candidates", "wait", MANAGER, "--leader", said, "--timeout", "55s"]).expect(0);
        }
        plane.managers[n].start();
        let version = format!("1.{}.0", to.rsplit_once('.').unwrap().1);
        let back = || {
            let all = items(&plugin, &["candidates"]);
            let is_it = |it: &&Value| it["host"] == host && it["emulationVersion"] == version;
            all.iter().filter(is_it).any(|it| it["takesPart"] == true)
        };
        wait_for("it is back", SOON, back, String::new);
        plugin.run(&["candidates", "wait", MANAGER, "--leader", said, "--stable", "2s"]).expect(0);
    }
}
