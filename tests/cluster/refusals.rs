//! What a server refuses, or has no time for, for a moment, and what it goes on refusing. On a real control
//! plane; the answers are the proxy's.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    contention::{
        MEDIK8S, NAMESPACE, SOON, delete_medik8s, gathering, holder, is_lease_write, lease, look, nodes,
        others, plugin, release_others, write,
    },
    harness::{
        faults::{Fault, FaultProxy},
        random,
    },
    plugin::Plugin,
    shared,
};

/// It begins with the first that asks.
#[derive(Default)]
struct Moment(Mutex<Option<Instant>>);

impl Moment {
    fn lasts(&self, millis: u64) -> bool {
        self.0.lock().unwrap().get_or_insert_with(Instant::now).elapsed() < Duration::from_millis(millis)
    }
}

fn write_to(name: &str) -> impl Fn(&str, &str) -> bool + Send + Sync + use<> {
    let path = format!("/leases/{name}?");
    move |method, asked| method == "PATCH" && asked.contains(&path)
}

/// The renewals of a second are refused, and later the releases of one.
#[test]
fn a_refusal_that_passes_ends_no_command_and_does_not_keep_its_lease() {
    let [node] = nodes();
    let name = format!("refused-{}", random());
    for (name, namespace, args) in [
        (&name, "default", &["hold", &name, "-n", "default"][..]),
        (&node, NAMESPACE, &["maint", "run", &node]),
    ] {
        let writes = write_to(name);
        let (ended, moments) = (Arc::new(AtomicBool::new(false)), [Moment::default(), Moment::default()]);
        let refused: Arc<[AtomicUsize; 2]> = Arc::default();
        let (at_the_end, counted) = (Arc::clone(&ended), Arc::clone(&refused));
        let proxy = FaultProxy::start(shared(), move |method, path| {
            let n = usize::from(at_the_end.load(Ordering::SeqCst));
            if !writes(method, path) || !moments[n].lasts(1000) {
                return Fault::None;
            }
            counted[n].fetch_add(1, Ordering::SeqCst);
            Fault::Refuse(403)
        });
        // There is no lease yet: a patch renews or releases. It renews after 4 and about 9 seconds.
        let args = [args, &["-d", "12s", "--", "sh", "-c", "sleep 6; echo ends; sleep 1"]].concat();
        let mut running = Plugin::new(&proxy.kubeconfig).start(&args);
        running.until("it ends", SOON, |text| text.contains("ends"));
        ended.store(true, Ordering::SeqCst);
        assert_eq!(running.wait(), 0, "{}", running.stderr());
        assert_eq!(running.stderr(), "");
        assert_eq!(look(namespace, name)["spec"]["holderIdentity"], "");
        let refused = refused.each_ref().map(|refused| refused.load(Ordering::SeqCst));
        assert!(refused.iter().all(|refused| *refused > 0), "{refused:?}");
    }
}

/// One of two cannot be had, and what was taken of the other cannot be read or written for a while.
#[test]
fn what_is_refused_for_a_moment_is_undone_all_the_same() {
    for (reads, status, millis) in [(true, 403, 1000), (false, 403, 1000), (false, 500, 11_000)] {
        let [a, b] = nodes();
        others(&[&b]);
        release_others(&b);
        let (failed, moment, second) = (AtomicBool::new(false), Moment::default(), write_to(&b));
        let proxy = FaultProxy::start(shared(), move |method, path| {
            if second(method, path) {
                failed.store(true, Ordering::SeqCst);
                return Fault::Refuse(422);
            }
            let refused = failed.load(Ordering::SeqCst) && (reads || is_lease_write(method, path));
            if refused && moment.lasts(millis) { Fault::Refuse(status) } else { Fault::None }
        });
        let outcome = Plugin::new(&proxy.kubeconfig).run(&["maint", "acquire", &a, &b, "--holder", "jane"]);
        let outcome = outcome.expect(1).says(&format!("released again: {a}"));
        assert_eq!([holder(&a), holder(&b)], ["", ""], "{status}: {outcome:?}");
    }
}

/// The create did not come through, and whatever would supersede it fails for longer than a few attempts.
#[test]
fn a_write_that_may_still_arrive_is_superseded_once_writes_succeed_again() {
    for status in [500, 403] {
        let [node] = nodes();
        let (creates, moment) = (AtomicUsize::new(0), Moment::default());
        let proxy = FaultProxy::start(shared(), move |method, path| {
            if !is_lease_write(method, path) {
                return Fault::None;
            }
            // The create is given up after ten attempts.
            if creates.fetch_add(1, Ordering::SeqCst) < 10 {
                return Fault::Refuse(500);
            }
            if moment.lasts(7000) { Fault::Refuse(status) } else { Fault::None }
        });
        let outcome = Plugin::new(&proxy.kubeconfig).run(&["maint", "acquire", &node]).expect(1);
        assert!(!outcome.stderr.contains("may still be held"), "{status}: {outcome:?}");
        assert_eq!(lease(&node)["spec"]["holderIdentity"], "", "{status}: {outcome:?}");
    }
}

/// Just when it is looked at whether all of them are still had, and when they get their names.
#[test]
fn a_refusal_that_passes_when_all_are_had_loses_none() {
    let [a, b] = nodes();
    plugin().run(&["maint", "acquire", &a, "--holder", "jane"]).expect(0);
    others(&[&b]);
    for names in [false, true] {
        let (had, moment, second) = (AtomicBool::new(false), Moment::default(), write_to(&b));
        let proxy = FaultProxy::start(shared(), move |method, path| {
            if second(method, path) && !had.swap(true, Ordering::SeqCst) {
                return Fault::None;
            }
            let refused = had.load(Ordering::SeqCst) && (!names || is_lease_write(method, path));
            if refused && moment.lasts(1000) { Fault::Refuse(403) } else { Fault::None }
        });
        let mut one = gathering(&Plugin::new(&proxy.kubeconfig), &[&a, &b], &[]);
        release_others(&b);
        assert_eq!(one.wait(), 0, "{}", one.stderr());
        assert_eq!([holder(&a), holder(&b)], ["jane", "jane"]);
        plugin().run(&["maint", "release", &b, "--holder", "jane"]).expect(0);
        others(&[&b]);
    }
}

/// The first has been had for long when the server is restarted, just when the next one is looked at.
#[test]
fn a_refusal_that_passes_of_the_next_of_several_ends_nothing() {
    for list in [false, true] {
        let [a, b] = nodes();
        others(&[&b]);
        let (moment, second, reads) = (Moment::default(), b.clone(), AtomicUsize::new(0));
        let proxy = FaultProxy::start(shared(), move |method, path| {
            // The first is that of before it waits.
            let looks = path.contains(&format!("/{NAMESPACE}/leases/{second}"))
                && reads.fetch_add(1, Ordering::SeqCst) > 0;
            let lists = path.contains(&format!("metadata.name%3D{second}")) && path.contains(NAMESPACE);
            let refused = method == "GET" && if list { lists } else { looks };
            if refused && moment.lasts(1000) { Fault::Refuse(403) } else { Fault::None }
        });
        let mut one = gathering(&Plugin::new(&proxy.kubeconfig), &[&a, &b], &[]);
        release_others(&b);
        assert_eq!(one.wait(), 0, "{}", one.stderr());
        assert_eq!([holder(&a), holder(&b)], ["jane", "jane"]);
    }
}

/// A list was allowed and the watch is not: that is no server that has just been started.
#[test]
fn who_may_not_watch_is_told_so_at_once() {
    let [node] = nodes();
    others(&[&node]);
    let proxy = FaultProxy::start(shared(), |_, path| {
        let watches = path.contains("watch=true") && path.contains(NAMESPACE);
        if watches { Fault::Refuse(403) } else { Fault::None }
    });
    let began = Instant::now();
    Plugin::new(&proxy.kubeconfig)
        .run(&["maint", "acquire", &node, "--holder", "jane", "--wait"])
        .expect(7)
        .says("list,watch");
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
}

/// What says whether medik8s works on a node cannot be read for a moment, or any more.
#[test]
fn medik8s_that_could_be_seen_is_not_ignored_when_it_cannot_be() {
    for lasting in [false, true] {
        let [node] = nodes();
        others(&[&node]);
        let (moment, reads, path) =
            (Moment::default(), AtomicUsize::new(0), format!("/{MEDIK8S}/leases/node-{node}"));
        // One that may not be got is looked for in a list of those with its name.
        let listed = format!("/{MEDIK8S}/leases?&fieldSelector=metadata.name%3Dnode-{node}");
        let proxy = FaultProxy::start(shared(), move |_, asked| {
            // The first is that of before the wait.
            let read = asked.contains(&path) || (asked.contains(&listed) && !asked.contains("watch"));
            let refused = read && reads.fetch_add(1, Ordering::SeqCst) > 0;
            if refused && (lasting || moment.lasts(1000)) { Fault::Refuse(403) } else { Fault::None }
        });
        let args = ["maint", "acquire", &node, "--holder", "jane", "--wait"];
        let mut waiting = Plugin::new(&proxy.kubeconfig).start(&args);
        waiting.until_stderr("it waits", SOON, |text| text.contains("held by 'other'"));
        write(MEDIK8S, &format!("node-{node}"), "node-maintenance", 120);
        release_others(&node);
        if lasting {
            assert_eq!(waiting.wait(), 7, "{}", waiting.stderr());
            assert_eq!(holder(&node), "");
        } else {
            waiting.until_stderr("it waits for medik8s", SOON, |text| text.contains("held by medik8s"));
            assert_eq!(holder(&node), "");
            delete_medik8s(&node);
            assert_eq!(waiting.wait(), 0, "{}", waiting.stderr());
        }
    }
}

/// Of several nodes, medik8s' leases were listed at the start, and each is read at the end.
#[test]
fn medik8s_that_was_listed_is_not_ignored_when_it_cannot_be_read() {
    let [a, b] = nodes();
    let label = format!("listed={}", random());
    shared().kubectl(&["label", "node", &a, &b, &label]);
    others(&[&b]);
    // By its name, and then out of a list of those with that name.
    let (refused, leases, name) = (AtomicUsize::new(0), format!("/{MEDIK8S}/leases"), format!("node-{a}"));
    let proxy = FaultProxy::start(shared(), move |_, asked| {
        let of_it = asked.contains(&leases) && asked.contains(&name);
        if of_it && refused.fetch_add(1, Ordering::SeqCst) < 2 { Fault::Refuse(403) } else { Fault::None }
    });
    let mut one = gathering(&Plugin::new(&proxy.kubeconfig), &[], &["-l", &label]);
    write(MEDIK8S, &format!("node-{a}"), "node-maintenance", 120);
    release_others(&b);
    one.until_stderr("it waits for medik8s", SOON, |text| {
        text.contains(&format!("waiting for {a}, held by medik8s"))
    });
    assert_eq!([holder(&a), holder(&b)], ["", ""]);
    delete_medik8s(&a);
    assert_eq!(one.wait(), 0, "{}", one.stderr());
}

/// Of a cluster with thousands of nodes.
#[test]
fn a_few_nodes_are_read_by_name_and_not_out_of_a_list_of_all() {
    let [a, b] = nodes();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let lists = Arc::clone(&asked);
    let proxy = FaultProxy::start(shared(), move |method, path| {
        let is_list = path.contains("/leases?") || path.contains("/nodes?");
        if method == "GET" && is_list && !path.contains("metadata.name") {
            lists.lock().unwrap().push(path.to_owned());
        }
        Fault::None
    });
    let plugin = Plugin::new(&proxy.kubeconfig);
    for verb in ["acquire", "renew", "status", "release"] {
        plugin.run(&["maint", verb, &a, &b, "--holder", "jane"]).expect(0);
    }
    assert_eq!([holder(&a), holder(&b)], ["", ""]);
    assert_eq!(*asked.lock().unwrap(), [""; 0]);
    let missing = format!("{b}-gone");
    plugin.run(&["maint", "acquire", &a, &missing]).expect(3).says(&format!("there is no node '{missing}'"));
}

/// It asks for an hour of patience and is busy for two seconds: neither undoing nor renewing has an hour.
#[test]
fn a_server_that_asks_for_too_much_patience_gets_less() {
    for (undoes, fault) in
        [(true, Fault::Busy(3600)), (false, Fault::Busy(3600)), (false, Fault::Refuse(403))]
    {
        let [a, b] = nodes();
        others(&[&b]);
        release_others(&b);
        let (taken, moment) = (AtomicBool::new(false), Moment::default());
        let (first, second) = (write_to(&a), write_to(&b));
        let proxy = FaultProxy::start(shared(), move |method, path| {
            if second(method, path) {
                taken.store(true, Ordering::SeqCst);
                // Slowly: the first is renewed before it is told for how long it is held.
                return if undoes { Fault::Refuse(422) } else { Fault::SlowAnswer(3000) };
            }
            let refused = taken.load(Ordering::SeqCst) && first(method, path);
            if refused && moment.lasts(2000) { fault } else { Fault::None }
        });
        let began = Instant::now();
        let outcome = Plugin::new(&proxy.kubeconfig).run(&["maint", "acquire", &a, &b, "--holder", "jane"]);
        assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
        if undoes {
            outcome.expect(1).says(&format!("released again: {a}"));
            assert_eq!(holder(&a), "");
        } else {
            outcome.expect(0);
            assert_eq!(holder(&a), "jane");
        }
    }
}

/// What took long to be written is renewed before it is said for how long it is held.
#[test]
fn a_renewal_of_what_was_just_taken_waits_for_a_busy_server_and_for_one_just_started() {
    for fault in [Fault::Busy(3600), Fault::Refuse(403)] {
        let [node] = nodes();
        others(&[&node]);
        release_others(&node);
        let (writes, moment, write) = (AtomicUsize::new(0), Moment::default(), write_to(&node));
        let proxy = FaultProxy::start(shared(), move |method, path| {
            if !write(method, path) {
                Fault::None
            } else if writes.fetch_add(1, Ordering::SeqCst) == 0 {
                Fault::SlowAnswer(3000)
            } else if moment.lasts(1500) {
                fault
            } else {
                Fault::None
            }
        });
        Plugin::new(&proxy.kubeconfig).run(&["maint", "acquire", &node, "--holder", "jane"]).expect(0);
        assert_eq!(holder(&node), "jane");
    }
}

/// One of two is lost, and so is the connection before the other is let go.
#[test]
fn a_gathering_that_lost_one_ends_with_its_time() {
    let [a, b] = nodes();
    others(&[&b]);
    let (down, reads, path) =
        (AtomicBool::new(false), AtomicUsize::new(0), format!("/{NAMESPACE}/leases/{a}"));
    let proxy = FaultProxy::start(shared(), move |method, asked| {
        // The first is that of before; then it is looked at by who has lost it.
        if method == "GET" && asked.ends_with(&path) && reads.fetch_add(1, Ordering::SeqCst) > 0 {
            down.store(true, Ordering::SeqCst);
        }
        if down.load(Ordering::SeqCst) { Fault::CutBefore } else { Fault::None }
    });
    let mut one =
        Plugin::new(&proxy.kubeconfig).start(&["maint", "acquire", &a, &b, "--holder", "jane", "--wait=6s"]);
    one.until_stderr("it waits", SOON, |text| text.contains("waiting for"));
    let theft = json!({ "spec": { "holderIdentity": "thief", "leaseTransitions": 9 } }).to_string();
    shared().kubectl(&["patch", "lease", "-n", NAMESPACE, &a, "--type=merge", "-p", &theft]);
    let began = Instant::now();
    assert_eq!(one.wait(), 124, "{}", one.stderr());
    assert!(one.stderr().contains("waiting again"), "{}", one.stderr());
    // Its time, and the half minute for undoing.
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
}

/// What is not released at the end stays: an administrator's for good, which is said.
#[test]
fn what_is_not_released_says_what_becomes_of_it() {
    for (admin, words) in [(&["--admin"][..], "--admin --force' does it"), (&[], "it will expire")] {
        let [node] = nodes();
        let own = [&["maint", "acquire", &node, "--holder", "jane"], admin].concat();
        plugin().run(&own).expect(0);
        let (writes, taken) = (write_to(&node), AtomicBool::new(false));
        let proxy = FaultProxy::start(shared(), move |method, path| {
            // The first takes it.
            let refused = writes(method, path) && taken.swap(true, Ordering::SeqCst);
            if refused { Fault::Refuse(422) } else { Fault::None }
        });
        let args = [&["maint", "run", &node, "--holder", "jane"], admin, &["--", "true"]].concat();
        Plugin::new(&proxy.kubeconfig).run(&args).expect(0).says("is not released").says(words);
    }
}
