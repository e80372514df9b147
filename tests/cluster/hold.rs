//! Running a command under a lease: `hold` and `maint run`, on a real control plane.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    harness::{
        ControlPlane, Shape, User,
        faults::{Fault, FaultProxy},
        random,
    },
    plugin::{Plugin, Running, send, wait_for},
    shared,
};

const SOON: Duration = Duration::from_secs(10);

fn plugin() -> Plugin {
    Plugin::new(shared().kubeconfig(User::Admin, 0))
}

fn lease(name: &str) -> Value {
    serde_json::from_str(&shared().kubectl(&["get", "lease", "-n", "default", name, "-o", "json"])).unwrap()
}

fn holder(name: &str) -> String {
    lease(name)["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

/// A file of this test's own.
fn file() -> PathBuf {
    shared().folder.join(format!("hold-{}", random()))
}

/// A command that says every 20 ms in a file that it lives, in itself and in a grandchild.
fn living(beats: &Path) -> String {
    let file = beats.display();
    format!(
        "beat() {{ while :; do echo \"$$ $(date +%s%N) $KUBECTL_LEASE_UID $KUBECTL_LEASE_TRANSITIONS\" >>{file}; sleep 0.02; done; }}; \
         beat & beat"
    )
}

/// Whether anything still writes to a file.
fn lives(beats: &Path) -> bool {
    let size = || fs::metadata(beats).map_or(0, |file| file.len());
    let before = size();
    thread::sleep(Duration::from_millis(300));
    size() > before
}

/// When the last sign of life was given.
fn last_beat(beats: &Path) -> jiff::Timestamp {
    let beats = fs::read_to_string(beats).unwrap();
    let nanos = beats.lines().filter_map(|line| line.split(' ').nth(1)?.parse().ok()).max().unwrap();
    jiff::Timestamp::from_nanosecond(nanos).unwrap()
}

/// From when others count the duration of a lease.
fn renewed(name: &str) -> jiff::Timestamp {
    lease(name)["spec"]["renewTime"].as_str().unwrap().parse().unwrap()
}

fn start_living(plugin: &Plugin, name: &str, args: &[&str]) -> (Running, PathBuf) {
    let beats = file();
    let script = living(&beats);
    let args = [&["hold", name, "-n", "default"][..], args, &["--", "sh", "-c", &script]].concat();
    let running = plugin.start(&args);
    wait_for("the command runs", SOON * 3, || beats.exists() && lives(&beats), || running.stderr());
    (running, beats)
}

#[test]
fn the_commands_own_code_is_returned_and_the_lease_released() {
    let name = format!("hold-{}", random());
    for (script, code) in [("exit 0", 0), ("exit 42", 42), ("kill -TERM $$", 143), ("kill -KILL $$", 137)] {
        plugin().run(&["hold", &name, "-n", "default", "--", "sh", "-c", script]).expect(code);
        assert_eq!(holder(&name), "", "{script}");
    }
    assert_eq!(lease(&name)["spec"]["leaseTransitions"], 3);
    plugin().run(&["hold", &name, "-n", "default", "--", "/no/such/program"]).expect(127).says("cannot run");
    plugin().run(&["hold", &name, "-n", "default", "--", "/etc/passwd"]).expect(126).says("cannot run");
    plugin()
        .run(&["hold", &name, "-n", "no-such-namespace", "--", "true"])
        .expect(3)
        .says("no-such-namespace");
    assert_eq!(holder(&name), "");
}

#[test]
fn the_command_has_our_streams_and_the_fencing_token() {
    let name = format!("hold-{}", random());
    let script = "cat; echo \"$KUBECTL_LEASE_NAMESPACE $KUBECTL_LEASE_NAME $KUBECTL_LEASE_UID $KUBECTL_LEASE_TRANSITIONS\"; echo oops >&2";
    let args = ["hold", &name, "-n", "default", "--", "sh", "-c", script];
    let mut child = Command::new(env!("CARGO_BIN_EXE_kubectl-lease"))
        .args(args)
        .env("KUBECONFIG", shared().kubeconfig(User::Admin, 0))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"typed\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let uid = lease(&name)["metadata"]["uid"].as_str().unwrap().to_owned();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("typed\ndefault {name} {uid} 0\n"));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "oops\n");
}

#[test]
fn signals_reach_the_command_and_its_answer_is_ours() {
    for (signal, number) in [("-TERM", 15), ("-INT", 2), ("-HUP", 1), ("-USR1", 10)] {
        let name = format!("hold-{}", random());
        let ready = file();
        let script = format!(
            "trap 'exit {}' {}; touch {}; while :; do sleep 0.05; done",
            50 + number,
            &signal[1..],
            ready.display()
        );
        let mut running = plugin().start(&["hold", &name, "-n", "default", "--", "sh", "-c", &script]);
        wait_for("it runs", SOON, || ready.exists(), || running.stderr());
        running.signal(signal);
        assert_eq!(running.wait(), 50 + number, "{signal}");
        assert_eq!(holder(&name), "");
    }
}

#[test]
fn a_second_one_is_told_who_holds_it_and_may_wait() {
    let name = format!("hold-{}", random());
    let (first, _) = start_living(&plugin(), &name, &[]);
    let who = holder(&name);
    plugin().run(&["hold", &name, "-n", "default", "--", "true"]).expect(4).says(&format!("held by '{who}'"));
    plugin().run(&["hold", &name, "-n", "default", "--wait=1s", "--", "true"]).expect(124);
    let mut second = plugin().start(&["hold", &name, "-n", "default", "--wait", "--", "true"]);
    second.until_stderr("it waits", SOON, |text| text.contains("waiting for"));
    first.signal("-TERM");
    let began = Instant::now();
    assert_eq!(second.wait(), 0);
    // Much sooner than it would have expired.
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

#[test]
fn it_is_renewed_for_as_long_as_the_command_runs() {
    let name = format!("hold-{}", random());
    plugin().run(&["hold", &name, "-n", "default", "-d", "15s", "--", "sleep", "18"]).expect(0);
    assert_eq!(lease(&name)["spec"]["leaseTransitions"], 0);
}

/// The plugin is killed: nobody renews, and the command must not run on.
#[test]
fn a_killed_plugin_takes_the_command_with_it() {
    let name = format!("hold-{}", random());
    let (running, beats) = start_living(&plugin(), &name, &[]);
    running.signal("-KILL");
    wait_for("the command is gone", Duration::from_secs(8), || !lives(&beats), String::new);
    assert_ne!(holder(&name), "", "it is left to expire");
}

/// The plugin is stopped: it cannot renew, and cannot end the command either.
#[test]
fn a_stopped_plugin_does_not_keep_the_command_past_the_lease() {
    let name = format!("hold-{}", random());
    let (mut running, beats) = start_living(&plugin(), &name, &["-d", "12s"]);
    running.signal("-STOP");
    wait_for("the command is gone", Duration::from_secs(15), || !lives(&beats), String::new);
    let after = last_beat(&beats).duration_since(renewed(&name));
    assert!(after < jiff::SignedDuration::from_secs(12), "{after:?} after the last renewal");
    running.signal("-CONT");
    assert_eq!(running.wait(), 75);
    assert!(
        running.stderr().contains("the lease was lost and the command was ended"),
        "{}",
        running.stderr()
    );
}

#[test]
fn a_lease_that_another_takes_ends_the_command_and_stays_the_others() {
    let name = format!("hold-{}", random());
    let (mut running, beats) = start_living(&plugin(), &name, &["-d", "30s"]);
    let now = format!("{:.6}", jiff::Timestamp::now());
    let patch =
        format!(r#"{{"spec":{{"holderIdentity":"thief","renewTime":"{now}","leaseTransitions":9}}}}"#);
    shared().kubectl(&["patch", "lease", "-n", "default", &name, "--type=merge", "-p", &patch]);
    assert_eq!(running.wait(), 75);
    assert!(running.stderr().contains("'thief' took"), "{}", running.stderr());
    assert!(!lives(&beats));
    assert_eq!(holder(&name), "thief");
}

#[test]
fn a_lease_that_is_deleted_ends_the_command() {
    let name = format!("hold-{}", random());
    let (mut running, beats) = start_living(&plugin(), &name, &["-d", "30s"]);
    shared().kubectl(&["delete", "lease", "-n", "default", &name]);
    assert_eq!(running.wait(), 75);
    assert!(running.stderr().contains("was deleted"), "{}", running.stderr());
    assert!(!lives(&beats));
}

#[test]
fn somebodys_annotation_does_not_end_it() {
    let name = format!("hold-{}", random());
    let (mut running, beats) = start_living(&plugin(), &name, &["-d", "15s"]);
    shared().kubectl(&["annotate", "lease", "-n", "default", &name, "note=hello"]);
    // Unless it was renewed, the command has ended by then.
    thread::sleep(Duration::from_secs(13));
    assert!(lives(&beats));
    running.signal("-KILL");
    running.wait();
}

/// A connection that hangs: the command is gone before the lease can expire for others.
#[test]
fn a_lost_connection_ends_the_command_in_time() {
    thread::scope(|scope| {
        for fault in [Fault::HangAfter, Fault::CutBefore, Fault::Refuse(503)] {
            scope.spawn(move || ends_in_time(fault));
        }
    });
}

fn ends_in_time(fault: Fault) {
    let name = format!("hold-{}", random());
    // From the second renewal on everything fails; the first was sent then, or a little before.
    let (renewals, first) = (AtomicUsize::new(0), Arc::new(Mutex::new(None)));
    let sent = Arc::clone(&first);
    let proxy = FaultProxy::start(shared(), move |method, _| {
        if method == "PATCH" && renewals.fetch_add(1, Ordering::SeqCst) == 0 {
            *sent.lock().unwrap() = Some(jiff::Timestamp::now());
        }
        if renewals.load(Ordering::SeqCst) > 1 { fault } else { Fault::None }
    });
    let (mut running, beats) = start_living(&Plugin::new(&proxy.kubeconfig), &name, &["-d", "15s"]);
    assert_eq!(running.wait(), 75, "{fault:?}");
    assert!(!lives(&beats), "{fault:?}");
    // What hangs after it was passed on renews the lease without an answer: that counts for others
    // and not for the holder.
    let after = last_beat(&beats).duration_since(first.lock().unwrap().unwrap());
    assert!(
        after < jiff::SignedDuration::from_secs(15),
        "{fault:?}: {after:?} after the last renewal that was answered"
    );
    assert!(running.stderr().contains("could not be renewed in time"), "{}", running.stderr());
}

#[test]
fn a_killed_watchdog_ends_the_command_too() {
    let name = format!("hold-{}", random());
    let (mut running, beats) = start_living(&plugin(), &name, &[]);
    send("-KILL", running.watchdog());
    assert_eq!(running.wait(), 75);
    assert!(!lives(&beats));
}

#[test]
fn a_stopped_watchdog_does_not_keep_the_command() {
    let name = format!("hold-{}", random());
    let (mut running, beats) = start_living(&plugin(), &name, &["-d", "15s"]);
    send("-STOP", running.watchdog());
    shared().kubectl(&["delete", "lease", "-n", "default", &name]);
    assert_eq!(running.wait(), 75);
    assert!(!lives(&beats));
}

/// Two processes that were given the same name: neither lets go of what the other holds.
#[test]
fn a_process_never_releases_another_ones_term_of_the_same_name() {
    let name = format!("hold-{}", random());
    let (mut first, _) = start_living(&plugin(), &name, &["--holder", "job", "-d", "12s"]);
    plugin().run(&["hold", &name, "-n", "default", "--holder", "job", "--wait=1s", "--", "true"]).expect(124);
    assert_eq!(holder(&name), "job", "giving up a wait undoes nothing of the other's");
    first.signal("-STOP");
    let beats = file();
    let script = living(&beats);
    let second = plugin().start(&[
        "hold",
        &name,
        "-n",
        "default",
        "--holder",
        "job",
        "--wait=50s",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    wait_for(
        "the second runs",
        Duration::from_secs(40),
        || beats.exists() && lives(&beats),
        || second.stderr(),
    );
    first.signal("-CONT");
    assert_eq!(first.wait(), 75);
    assert_eq!(holder(&name), "job");
    assert!(lives(&beats));
}

#[test]
fn a_duration_that_another_client_shortens_is_set_right_at_once() {
    let name = format!("hold-{}", random());
    let (mut running, beats) = start_living(&plugin(), &name, &["-d", "30s"]);
    let patch = r#"{"spec":{"leaseDurationSeconds":1}}"#;
    shared().kubectl(&["patch", "lease", "-n", "default", &name, "--type=merge", "-p", patch]);
    let seconds = || lease(&name)["spec"]["leaseDurationSeconds"].as_i64();
    wait_for("it is set right", Duration::from_secs(7), || seconds() == Some(30), String::new);
    assert!(lives(&beats));
    running.signal("-TERM");
    running.wait();
}

#[test]
fn a_forced_release_is_seen_at_once_whatever_the_duration() {
    let name = format!("hold-{}", random());
    let (mut running, beats) = start_living(&plugin(), &name, &["-d", "10m"]);
    let patch = r#"{"spec":{"holderIdentity":"","leaseDurationSeconds":1}}"#;
    shared().kubectl(&["patch", "lease", "-n", "default", &name, "--type=merge", "-p", patch]);
    let began = Instant::now();
    assert_eq!(running.wait(), 75);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(!lives(&beats));
}

/// An interactive shell gives each job a process group of its own; `setsid` even a session.
#[test]
#[cfg(target_os = "linux")]
fn what_leaves_the_process_group_is_ended_too() {
    for escape in ["set -m; ", "setsid "] {
        let name = format!("hold-{}", random());
        let beats = file();
        let script = format!("{escape}sh -c '{}' & wait; sleep 600", living(&beats).replace('\'', "'\\''"));
        let mut running =
            plugin().start(&["hold", &name, "-n", "default", "-d", "15s", "--", "bash", "-c", &script]);
        wait_for("it runs", SOON, || beats.exists() && lives(&beats), || running.stderr());
        shared().kubectl(&["delete", "lease", "-n", "default", &name]);
        assert_eq!(running.wait(), 75);
        assert!(!lives(&beats), "{escape}");

        let mut running = plugin().start(&["hold", &name, "-n", "default", "--", "bash", "-c", &script]);
        wait_for("it runs again", SOON, || lives(&beats), || running.stderr());
        send("-KILL", running.watchdog());
        assert_eq!(running.wait(), 75);
        assert!(!lives(&beats), "{escape}, by a killed watchdog");
    }
}

/// One connection that hangs is not the end: the next attempt has its time too.
#[test]
fn one_hung_request_does_not_lose_the_lease() {
    let name = format!("hold-{}", random());
    let hung = AtomicBool::new(false);
    let proxy = FaultProxy::start(shared(), move |method, path| {
        let renewal = method == "PATCH" && path.contains("/leases/");
        if renewal && !hung.swap(true, Ordering::SeqCst) { Fault::HangAfter } else { Fault::None }
    });
    Plugin::new(&proxy.kubeconfig)
        .run(&["hold", &name, "-n", "default", "-d", "24s", "--", "sleep", "20"])
        .expect(0);
}

#[test]
fn the_nodes_heartbeats_are_not_to_be_held() {
    plugin().run(&["hold", "node-1", "-n", "kube-node-lease", "--", "true"]).expect(6).says("heartbeats");
}

#[test]
fn the_documented_rights_are_enough_to_hold() {
    let name = format!("hold-{}", random());
    let reader = Plugin::new(shared().kubeconfig(User::Reader, 0));
    reader.run(&["hold", &name, "-n", "default", "-d", "15s", "--", "sleep", "7"]).expect(0);
    reader.run(&["hold", &name, "-n", "kube-system", "--", "true"]).expect(7);
}

#[test]
fn a_lease_of_coordinated_election_is_left_to_it() {
    plugin()
        .run(&["hold", "kube-controller-manager", "-n", "kube-system", "--", "true"])
        .expect(6)
        .says("coordinated");
}

#[test]
fn maint_run_holds_all_nodes_and_never_shares_with_its_own_user() {
    let nodes = [(); 2].map(|()| {
        let name = format!("node-{}", random());
        shared()
            .apply(&serde_json::json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } }));
        name
    });
    let (first, second) = (nodes[0].as_str(), nodes[1].as_str());
    let go = file();
    let script =
        format!("echo $KUBECTL_LEASE_NAME; while [ ! -e {} ]; do sleep 0.05; done; exit 9", go.display());
    let mut running = plugin().start(&["maint", "run", first, second, "--", "sh", "-c", &script]);
    running.until("it runs", SOON, |text| text.contains("node-"));
    for node in [first, second] {
        plugin().run(&["maint", "run", node, "--", "true"]).expect(4);
        plugin().run(&["maint", "acquire", node]).expect(4);
        plugin().run(&["maint", "status", node]).expect(4);
    }
    fs::write(go, "").unwrap();
    assert_eq!(running.wait(), 9);
    plugin().run(&["maint", "status", first, second]).expect(0);
    plugin().run(&["maint", "acquire", first]).expect(0);
    plugin().run(&["maint", "release", first]).expect(0);
}

/// client-go's leader election in a kube-controller-manager, and `hold`, on the same lease.
#[test]
fn neither_steals_from_client_go_nor_is_stolen_from() {
    let mut plane = ControlPlane::start(&Shape {
        managers: 1,
        managers_wait: true,
        features: "CoordinatedLeaderElection=false",
        apis: "api/all=true",
        ..Shape::default()
    });
    let plugin = Plugin::new(plane.kubeconfig(User::Admin, 0));
    let hold = ["hold", "kube-controller-manager", "-n", "kube-system"];
    let holder = |plane: &ControlPlane| {
        let path = "jsonpath={.spec.holderIdentity}";
        plane.kubectl(&["get", "lease", "-n", "kube-system", "kube-controller-manager", "-o", path])
    };
    let mut running = plugin.start(&[&hold[..], &["--", "sleep", "600"]].concat());
    let there = |plane: &ControlPlane| {
        !plane
            .kubectl(&["get", "lease", "-n", "kube-system", "kube-controller-manager", "--ignore-not-found"])
            .is_empty()
    };
    wait_for("we hold it", SOON, || there(&plane), || running.stderr());
    let ours = holder(&plane);
    plane.managers[0].start();
    // Longer than the duration: were it not renewed, it would be taken.
    thread::sleep(Duration::from_secs(20));
    assert_eq!(holder(&plane), ours);
    running.signal("-TERM");
    assert_eq!(running.wait(), 143);
    wait_for(
        "client-go takes it",
        Duration::from_secs(20),
        || holder(&plane).starts_with("cp-1_"),
        || plane.managers[0].log_tail(),
    );

    let theirs = holder(&plane);
    plugin.run(&[&hold[..], &["--", "true"]].concat()).expect(4).says(&format!("held by '{theirs}'"));
    plugin.run(&[&hold[..], &["--wait=20s", "--", "true"]].concat()).expect(124);
    assert_eq!(holder(&plane), theirs);
    // Killed, it does not release: its lease is taken when it has not moved for its duration.
    plane.managers[0].kill();
    plugin.run(&[&hold[..], &["--wait=40s", "--", "true"]].concat()).expect(0);
}

/// Holders come and go while they are stopped, continued and killed, while the kube-apiserver of
/// some is killed and restarted and the connection of others is cut: no two commands of the same
/// lease overlap, and the fencing token only grows.
#[test]
fn at_most_one_at_a_time_through_stops_kills_and_cuts() {
    let mut plane = ControlPlane::start(&Shape { apiservers: 2, ..Shape::default() });
    let cuts = std::sync::atomic::AtomicUsize::new(0);
    let proxy = FaultProxy::start(&plane, move |_, _| {
        match (cuts.fetch_add(1, Ordering::SeqCst) * 2_654_435_761) >> 9 & 15 {
            0 => Fault::CutAfter,
            1 => Fault::CutBefore,
            2 => Fault::HangAfter,
            3 => Fault::Refuse(500),
            _ => Fault::None,
        }
    });
    let kubeconfigs = [
        plane.kubeconfig(User::Admin, 0),
        plane.kubeconfig(User::Admin, 0),
        plane.kubeconfig(User::Admin, 1),
        proxy.kubeconfig,
    ];
    let beats = file();
    let script = living(&beats);
    let end = Instant::now() + Duration::from_secs(90);
    let workers: Vec<_> = kubeconfigs
        .into_iter()
        .zip(1..)
        .map(|(kubeconfig, seed)| {
            let script = script.clone();
            thread::spawn(move || disturb(&Plugin::new(kubeconfig), &script, seed, end))
        })
        .collect();
    while Instant::now() < end {
        thread::sleep(Duration::from_secs(7));
        plane.apiservers[1].kill();
        thread::sleep(Duration::from_secs(3));
        plane.restart_apiserver(1);
    }
    for worker in workers {
        worker.join().unwrap();
    }
    let mut spans = spans(&fs::read_to_string(&beats).unwrap());
    assert!(spans.len() > 10, "{} commands", spans.len());
    spans.sort_unstable();
    for (earlier, later) in spans.iter().zip(spans.iter().skip(1)) {
        assert!(earlier.last < later.first, "{earlier:?} ran into {later:?}");
        assert!(earlier.token < later.token, "the token grows: {earlier:?}, {later:?}");
    }
}

/// Runs a command under the lease again and again, and disturbs the plugin each time.
fn disturb(plugin: &Plugin, script: &str, mut seed: u64, end: Instant) {
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    while Instant::now() < end {
        let args = [
            "hold",
            "one",
            "-n",
            "default",
            "-d",
            "3s",
            "--wait=8s",
            "--request-timeout",
            "2s",
            "--",
            "sh",
            "-c",
            script,
        ];
        let mut running = plugin.start(&args);
        thread::sleep(Duration::from_millis(500 + random(2500)));
        match random(4) {
            0 => running.signal("-KILL"),
            1 => {
                running.signal("-STOP");
                thread::sleep(Duration::from_millis(500 + random(5000)));
                running.signal("-CONT");
                thread::sleep(Duration::from_millis(random(1000)));
                running.signal("-TERM");
            }
            _ => running.signal("-TERM"),
        }
        let code = running.wait();
        assert!([1, 75, 124, 130, 137, 143].contains(&code), "{code}: {}", running.stderr());
    }
}

/// The life of one command, from its first to its last sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    first: u64,
    last: u64,
    token: u32,
    process: u32,
}

/// The lives of all commands, told apart by process and fencing token.
fn spans(history: &str) -> Vec<Span> {
    let mut spans: BTreeMap<(u32, u32), Span> = BTreeMap::new();
    for line in history.lines() {
        let words: Vec<_> = line.split(' ').collect();
        let [process, time, _, token] = words[..] else { continue };
        let (Ok(process), Ok(time), Ok(token)) = (process.parse(), time.parse(), token.parse()) else {
            continue;
        };
        let span = spans.entry((process, token)).or_insert(Span { first: time, last: time, token, process });
        (span.first, span.last) = (span.first.min(time), span.last.max(time));
    }
    spans.into_values().collect()
}
