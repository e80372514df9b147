//! `--watch`, in a pipe and on a terminal, while things happen.

use std::time::Duration;

use serde_json::Value;

use crate::{
    REAL, TEST_LABEL,
    harness::{ControlPlane, Shape, User, random},
    identity_lease,
    plugin::Plugin,
    shared,
};

const SOON: Duration = Duration::from_secs(10);

/// One control plane's life: a kill, an orderly end, a return, and the loss of the very server that
/// the watch talks to.
#[test]
fn a_watch_follows_deaths_departures_and_returns_and_survives_its_own_servers_restart() {
    let mut plane = ControlPlane::start(&Shape { apiservers: 3, ..Shape::default() });
    let plugin = Plugin::new(plane.kubeconfig(User::Admin, 0));
    let watching = plugin.start(&["apiservers", "-w"]);
    watching.until("all three", SOON, |text| text.matches("alive").count() == 3);

    plane.apiservers[2].kill();
    plane.apiservers[1].stop();
    watching.until("cp-2 leaves", Duration::from_secs(30), |text| text.contains("   cp-2   left   "));
    watching
        .until("cp-3 is late", Duration::from_secs(45), |text| text.contains("   cp-3   late   was alive"));
    let listed = plugin.run(&["apiservers", "--no-headers"]).expect(0);
    assert_eq!(listed.rows()[1][..2], ["cp-3", "late"]);

    plane.restart_apiserver(1);
    watching.until("cp-2 joins", SOON, |text| text.contains("   cp-2   joined   alive"));
    watching.until("cp-3 is silent", Duration::from_secs(45), |text| {
        text.contains("   cp-3   silent   was late")
    });
    let one = plugin.run(&["apiservers", "cp-3", "-o", "json"]).expect(0);
    assert_eq!(serde_json::from_str::<Value>(&one.stdout).unwrap()["state"], "silent");

    plane.apiservers[0].kill();
    watching
        .until_stderr("the loss", SOON, |text| text.contains("connection lost, trying again: cannot reach"));
    plane.restart_apiserver(0);
    watching.until_stderr("the return", SOON, |text| text.contains("connected again"));
    plane.restart_apiserver(2);
    // In one look, or where the machine is busy in two: its old lease goes, its new one comes.
    watching.until("cp-3 is back", SOON, |text| {
        text.contains("   cp-3   restarted   was silent") || text.contains("   cp-3   joined   alive")
    });

    let after_the_table = watching.stdout();
    for line in after_the_table.lines().skip(4) {
        assert!(line.starts_with("20"), "a change begins with its time: {line}");
    }
}

#[test]
fn a_watch_that_was_suspended_shows_no_kube_apiserver_as_late() {
    let plugin = Plugin::new(shared().kubeconfig(User::Admin, 0));
    let watching = plugin.start(&["apiservers", "-w", "-l", REAL]);
    watching.until("all three", SOON, |text| text.matches("alive").count() == 3);
    watching.signal("-STOP");
    std::thread::sleep(Duration::from_secs(40));
    watching.signal("-CONT");
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(watching.stdout().lines().count(), 4, "{}", watching.stdout());
    assert_eq!(watching.stderr(), "");
}

#[test]
fn a_watch_in_json_is_a_document_for_each_change() {
    let test = random();
    let selector = format!("{TEST_LABEL}={test}");
    shared().apply(&identity_lease(&test, "a", "a_1", 27));
    let plugin = Plugin::new(shared().kubeconfig(User::Admin, 0));
    let watching = plugin.start(&["apiservers", "-w", "-o", "json", "-l", &selector]);
    watching.until("the first", SOON, |text| text.contains("\"hostname\": \"a\""));
    shared().apply(&identity_lease(&test, "b", "b_1", 0));
    watching.until("both changes", SOON, |text| text.matches("\"change\"").count() == 2);

    let documents: Vec<Value> =
        serde_json::Deserializer::from_str(&watching.stdout()).into_iter().map(Result::unwrap).collect();
    assert_eq!(documents.len(), 3);
    assert_eq!(documents[0]["change"], Value::Null);
    let change = |host: &str| {
        let of_host = |document: &&Value| document["hostname"] == host && document["change"].is_string();
        documents.iter().find(of_host).unwrap()["change"].clone()
    };
    assert_eq!(change("a"), "late", "time passed, without any event");
    assert_eq!(change("b"), "joined");
}

#[test]
fn on_a_terminal_the_table_is_redrawn_in_place_with_the_changes_below() {
    let test = random();
    let selector = format!("{TEST_LABEL}={test}");
    shared().apply(&identity_lease(&test, "a", "a_1", 26));
    let plugin = Plugin::new(shared().kubeconfig(User::Admin, 0));
    let mut terminal = plugin.start_on_terminal(&["apiservers", "-w", "-l", &selector], 20, 120);
    terminal.until("the table", SOON, |screen| screen.contains("1 of 1 alive; watching, Ctrl-C ends"));
    assert!(terminal.coloured().contains("\u{1b}[32malive"), "{}", terminal.coloured());
    terminal.until("late without an event", SOON, |screen| screen.contains("0 of 1 alive"));
    shared().apply(&identity_lease(&test, "b", "\u{1b}[2J_1", 0));
    terminal.until("b joins", SOON, |screen| screen.contains("1 of 2 alive"));
    shared().kubectl(&["delete", "lease", "-n", "kube-system", &format!("apiserver-a-{test}")]);
    terminal.until("a leaves", SOON, |screen| screen.contains("1 of 1 alive"));

    let screen = terminal.screen();
    let lines: Vec<_> = screen.lines().collect();
    assert!(lines[0].starts_with("HOST   STATE   IDENTITY"), "{screen}");
    assert!(lines[1].starts_with("b      alive   \\u{1b}[2J"), "{screen}");
    assert_eq!((lines[2], lines[3]), ("", "1 of 1 alive; watching, Ctrl-C ends"), "{screen}");
    let changes: Vec<Vec<_>> =
        lines[4..].iter().map(|line| line.split_whitespace().skip(1).take(2).collect()).collect();
    assert_eq!(changes, [["a", "late"], ["b", "joined"], ["a", "left"]], "{screen}");

    terminal.types("\u{3}");
    assert_eq!(terminal.wait(), 130);
}

#[test]
fn a_small_terminal_keeps_its_lines_and_says_what_it_hides() {
    let plugin = Plugin::new(shared().kubeconfig(User::Admin, 0));
    let terminal = plugin.start_on_terminal(&["apiservers", "-w", "-l", REAL], 6, 40);
    terminal.until("a short table", SOON, |screen| screen.contains("… and "));
    std::thread::sleep(Duration::from_millis(2500));
    let screen = terminal.screen();
    assert!(screen.starts_with("HOST   STATE   IDENTITY"), "redrawn twice and still in place: {screen}");
    assert_eq!(screen.matches("HOST").count(), 1, "{screen}");
    assert!(screen.lines().all(|line| line.chars().count() <= 40), "{screen}");
}

/// Deletes the identity leases of a test when it ends: other tests compare the clocks of all kube-apiservers.
struct Deleted(String);

impl Drop for Deleted {
    fn drop(&mut self) {
        shared().kubectl(&["delete", "leases", "-n", "kube-system", "-l", &self.0]);
    }
}

/// Leases as kube-apiservers with wrong clocks write them: one that is two hours ahead and dead, and one that
/// is 70 seconds behind and alive. A real one cannot be given another clock here.
#[test]
fn a_watch_goes_by_the_renewals_it_sees_and_not_by_their_times() {
    let test = random();
    let selector = format!("{TEST_LABEL}={test}");
    let lease = |host: &str, age: i64| identity_lease(&test, host, &format!("{host}_1"), age);
    let _alone = crate::clocks();
    let _until_the_end = Deleted(selector.clone());
    for (host, age) in [("ahead", -7200), ("behind", 70), ("gone", 0), ("unlabelled", 0)] {
        shared().apply(&lease(host, age));
    }
    let plugin = Plugin::new(shared().kubeconfig(User::Admin, 0));
    let listed = plugin.run(&["apiservers", "-l", &selector, "--no-headers"]).expect(0).says("--watch");
    let states: Vec<_> = listed.rows().iter().map(|row| format!("{} {}", row[0], row[1])).collect();
    assert_eq!(states, ["ahead skewed", "behind silent", "gone alive", "unlabelled alive"]);
    let one = plugin.run(&["apiservers", &format!("apiserver-ahead-{test}"), "-o", "json"]).expect(0);
    assert_eq!(serde_json::from_str::<Value>(&one.stdout).unwrap()["state"], "skewed");
    assert_eq!(one.stderr, "");

    let by_label = plugin.start(&["apiservers", "-w", "-l", &selector]);
    // Without a selector of the server's: what is not labelled any more is seen to be there.
    let all = plugin.start(&["apiservers", "-w"]);
    for watching in [&by_label, &all] {
        watching.until("all four", SOON, |text| {
            ["ahead", "behind", "gone", "unlabelled"].iter().all(|host| text.contains(host))
        });
    }
    let began = std::time::Instant::now();
    let name = |host: &str| format!("apiserver-{host}-{test}");
    shared().kubectl(&["delete", "lease", "-n", "kube-system", &name("gone")]);
    let label = "apiserver.kubernetes.io/identity-";
    shared().kubectl(&["label", "lease", "-n", "kube-system", &name("unlabelled"), label]);
    let line = |text: &str, host: &str, words: &str| {
        text.lines().any(|line| line.contains(&format!("   {host}   ")) && line.contains(words))
    };
    all.until("one was deleted", SOON, |text| line(text, "gone", "left   its lease was deleted"));
    all.until("one has no label", SOON, |text| {
        line(text, "unlabelled", "left   its lease is there, without")
    });
    by_label.until("one does not match", SOON, |text| line(text, "gone", "or does not match the selector"));

    // Renewed every few seconds, 70 seconds ago.
    while began.elapsed() < Duration::from_secs(33) {
        shared().apply(&lease("behind", 70));
        std::thread::sleep(Duration::from_secs(3));
    }
    let told = by_label.stdout();
    assert!(line(&told, "behind", "alive   was silent"), "{told}");
    assert!(line(&told, "ahead", "late   was skewed"), "{told}");
    let changes = told.lines().filter(|line| line.starts_with("20") && line.contains("   behind   "));
    assert_eq!(changes.count(), 1, "{told}");
}
