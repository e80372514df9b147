//! What no server does on demand: faults, and what the plugin makes of them. On Windows without signals and
//! terminals, which are others there.

use std::{thread, time::Duration};

use serde_json::{Value, json};

use crate::{
    plugin::Plugin,
    stub::{Reply, Stub, lease, list},
};

const SOON: Duration = Duration::from_secs(10);

fn plugin(stub: &Stub) -> Plugin {
    Plugin::new(stub.kubeconfig(&json!({ "token": "t" })))
}

fn refusal(code: u16, reason: &str, message: &str) -> Value {
    json!({ "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message })
}

#[test]
fn a_read_is_tried_again_when_the_server_is_busy_and_then_succeeds() {
    for status in [429, 503, 504] {
        let stub = Stub::start(move |number, _| match number {
            0 => Reply::Whole(status, "", refusal(status, "Busy", "busy")),
            1 => Reply::Cut,
            _ => Reply::Whole(200, "", list(1, &[lease("a", 1, 0)])),
        });
        plugin(&stub).run(&["apiservers"]).expect(0);
        assert_eq!(stub.requests().len(), 3);
    }
}

#[test]
fn a_server_that_stays_busy_is_given_up_after_three_attempts() {
    let stub = Stub::start(|_, _| Reply::Whole(503, "", refusal(503, "ServiceUnavailable", "etcd is away")));
    plugin(&stub).run(&["apiservers"]).expect(1).says("error: etcd is away");
    assert_eq!(stub.requests().len(), 3);
}

#[test]
fn a_server_that_asks_for_minutes_is_not_waited_for() {
    let stub = Stub::start(|_, _| {
        Reply::Whole(429, "retry-after: 600\r\n", refusal(429, "TooManyRequests", "later"))
    });
    let outcome = plugin(&stub).run(&["apiservers"]).expect(1).says("error: later");
    assert!(outcome.took < SOON);
    assert_eq!(stub.requests().len(), 1);
}

#[test]
fn an_internal_error_is_not_tried_again() {
    let stub = Stub::start(|_, _| {
        Reply::Whole(500, "", refusal(500, "InternalError", "broken\u{1b}[31m\nerror: fake"))
    });
    let outcome = plugin(&stub).run(&["apiservers"]).expect(1);
    assert_eq!(outcome.stderr, "error: broken\\u{1b}[31m\n  error: fake\n");
    assert_eq!(stub.requests().len(), 1);
}

#[test]
fn an_answer_that_is_no_list_is_an_error() {
    for body in
        [json!("<html>"), json!({ "items": [1] }), json!({ "items": [{ "spec": { "renewTime": "soon" } }] })]
    {
        let stub = Stub::start(move |_, _| Reply::Whole(200, "", body.clone()));
        plugin(&stub).run(&["apiservers"]).expect(1).says("error: cannot read what");
    }
}

#[test]
fn an_api_that_is_not_there_is_named() {
    let stub = Stub::start(|_, _| Reply::Whole(404, "", json!("404 page not found")));
    plugin(&stub).run(&["apiservers"]).expect(1).says("does not serve leases.coordination.k8s.io");
}

/// The state is judged by the server's clock, and the user is told that ours differs.
#[test]
fn a_server_clock_that_is_off_decides_and_is_warned_of() {
    let stub = Stub::start(|_, _| {
        // Renewed 'now' by our clock, which is an hour and more before the server's.
        Reply::Whole(200, "date: Fri, 01 Jan 2100 00:00:00 GMT\r\n", list(1, &[lease("a", 1, 0)]))
    });
    let outcome = plugin(&stub).run(&["apiservers", "--no-headers"]).expect(0);
    assert_eq!(outcome.rows()[0][1], "expired", "{outcome:?}");
    outcome
        .says("warning: this machine's clock is ")
        .says(" behind the server's; all ages are by the server's clock");
}

#[test]
fn a_servers_warning_is_passed_on_once() {
    let header = "warning: 299 - \"coordination.k8s.io/v1 is \\\"old\\\"\"\r\nwarning: 299 - \"second\"\r\n";
    let stub = Stub::start(move |number, _| match number {
        0 => Reply::Whole(503, header, refusal(503, "ServiceUnavailable", "busy")),
        _ => Reply::Whole(200, header, list(1, &[lease("a", 1, 0)])),
    });
    let outcome = plugin(&stub).run(&["apiservers"]).expect(0);
    assert_eq!(outcome.stderr, "warning: coordination.k8s.io/v1 is \"old\"\nwarning: second\n");
}

#[test]
fn a_watch_whose_version_is_too_old_begins_again_with_a_list() {
    let gone = json!({ "type": "ERROR", "object": refusal(410, "Expired", "too old resource version") });
    let stub = Stub::start(move |number, _| match number {
        0 => Reply::Whole(200, "", list(1, &[lease("a", 1, 0), lease("b", 1, 0)])),
        1 => Reply::Watch(vec![
            json!({ "type": "MODIFIED", "object": lease("b", 2, 0) }),
            json!({ "type": "BOOKMARK", "object": { "metadata": { "resourceVersion": "9" } } }),
        ]),
        2 => Reply::Watch(vec![gone.clone()]),
        3 => Reply::Whole(200, "", list(20, &[lease("a", 3, 0), lease("c", 4, 0)])),
        _ => Reply::Silence,
    });
    let watching = plugin(&stub).start(&["apiservers", "-w"]);
    watching.until("what the new list tells", SOON, |text| {
        text.contains("   c   joined") && text.contains("   b   left")
    });
    assert_eq!(watching.stderr(), "", "an expired watch is nothing to worry about");
    let requests = stub.requests();
    assert!(
        requests[1].contains("resourceVersion=1&") || requests[1].contains("resourceVersion=1 "),
        "{requests:?}"
    );
    assert!(requests[2].contains("resourceVersion=9"), "resumed after the bookmark: {requests:?}");
    assert!(!requests[3].contains("watch"), "{requests:?}");
}

#[test]
fn a_watch_that_breaks_says_so_and_goes_on() {
    let stub = Stub::start(|number, _| match number {
        0 => Reply::Whole(200, "", list(1, &[lease("a", 1, 0)])),
        1 => Reply::Cut,
        2..=4 => Reply::Whole(503, "", refusal(503, "ServiceUnavailable", "away")),
        5 => Reply::Whole(200, "", list(2, &[lease("b", 2, 0)])),
        _ => Reply::Silence,
    });
    let watching = plugin(&stub).start(&["apiservers", "-w"]);
    watching.until("the return", SOON, |text| text.contains("   b   joined"));
    assert!(watching.stderr().contains("connection lost, trying again: away"), "{}", watching.stderr());
    assert!(watching.stderr().ends_with("connected again\n"), "{}", watching.stderr());
}

/// A healthy kube-apiserver has renewed within the last ten seconds or so when the connection goes;
/// the thirteen here leave no room for more than the silence that is normal.
#[test]
fn a_connection_that_hangs_makes_no_kube_apiserver_late() {
    let stub = Stub::start(|number, _| match number {
        0 => Reply::Whole(200, "", list(1, &[lease("a", 1, 13)])),
        1 => Reply::Silence,
        _ => Reply::Never,
    });
    let watching = plugin(&stub).start(&["apiservers", "-w"]);
    watching.until_stderr("the loss", Duration::from_secs(40), |text| {
        text.contains("connection lost, trying again: ") && text.contains("did not answer within 10s")
    });
    thread::sleep(Duration::from_secs(3));
    assert_eq!(watching.stdout().lines().count(), 2, "{}", watching.stdout());
}

#[test]
fn a_watch_that_never_opens_is_a_lost_connection_and_makes_no_kube_apiserver_late() {
    let stub = Stub::start(|_, head| {
        if head.contains("watch=true") {
            Reply::Never
        } else {
            Reply::Whole(200, "", list(1, &[lease("a", 1, 5)]))
        }
    });
    let watching = plugin(&stub).start(&["apiservers", "-w"]);
    watching.until_stderr("the loss, and a list that still works", Duration::from_secs(20), |text| {
        text.contains("did not answer within 10s") && text.ends_with("connected again\n")
    });
    watching.until_stderr("again", Duration::from_secs(20), |text| text.matches("connected").count() == 2);
    assert_eq!(watching.stdout().lines().count(), 2, "{}", watching.stdout());
}

#[cfg(unix)]
#[test]
fn a_watch_that_was_suspended_looks_again_before_it_concludes() {
    let stub = Stub::start(|number, _| match number {
        0 | 2 => Reply::Whole(200, "", list(1, &[lease("a", 1, 13)])),
        _ => Reply::Silence,
    });
    let watching = plugin(&stub).start(&["apiservers", "-w"]);
    watching.until("the table", SOON, |text| text.contains("alive"));
    watching.signal("-STOP");
    thread::sleep(Duration::from_secs(20));
    watching.signal("-CONT");
    watching.until("a new list", SOON, |_| stub.requests().len() >= 3);
    thread::sleep(Duration::from_secs(2));
    assert_eq!(watching.stdout().lines().count(), 2, "{}", watching.stdout());
}

/// While it was suspended the server's last words were kept by the connection: they are old, also when the
/// watch was opened only meanwhile.
#[cfg(unix)]
#[test]
fn what_arrived_during_a_suspension_is_no_news_of_now() {
    let openings: [fn(Duration, Vec<Value>) -> Reply; 2] = [Reply::Later, Reply::OpenedLater];
    let watches = openings.map(|how| {
        let stub = Stub::start(move |number, _| match number {
            0 => Reply::Whole(200, "", list(1, &[lease("a", 1, 13), lease("b", 1, 13)])),
            1 => how(Duration::from_secs(3), vec![json!({ "type": "MODIFIED", "object": lease("b", 2, 0) })]),
            _ => Reply::Never,
        });
        let watching = plugin(&stub).start(&["apiservers", "-w"]);
        watching.until("the table", SOON, |text| text.contains("alive"));
        (stub, watching)
    });
    // The second one has asked for its watch.
    for (stub, _) in &watches {
        crate::plugin::wait_for("the watch", SOON, || stub.requests().len() > 1, String::new);
    }
    let signal = |name: &str| {
        for (_, watching) in &watches {
            watching.signal(name);
        }
    };
    signal("-STOP");
    thread::sleep(Duration::from_secs(20));
    signal("-CONT");
    for (_, watching) in &watches {
        watching.until_stderr("the loss", Duration::from_secs(20), |text| text.contains("connection lost"));
        assert_eq!(watching.stdout().lines().count(), 3, "{}", watching.stdout());
    }
}

#[cfg(unix)]
#[test]
fn a_watch_passes_warnings_on_at_once_and_once() {
    let header = "warning: 299 - \"old\"\r\ndate: Fri, 01 Jan 2100 00:00:00 GMT\r\n";
    let answer = move |number: usize, _: &str| match number {
        0 | 2 => Reply::Whole(200, header, list(1, &[lease("a", 1, 0)])),
        1 => Reply::Cut,
        _ => Reply::Silence,
    };
    let stub = Stub::start(answer);
    let mut watching = plugin(&stub).start(&["apiservers", "-w"]);
    watching.until_stderr("all of it", SOON, |text| text.ends_with("connected again\n"));
    watching.signal("-INT");
    assert_eq!(watching.wait(), 130);
    let said = watching.stderr();
    assert_eq!(said.matches("warning: old\n").count(), 1, "{said}");
    assert_eq!(said.matches("warning: this machine's clock is ").count(), 1, "{said}");

    let stub = Stub::start(answer);
    let terminal = plugin(&stub).start_on_terminal(&["apiservers", "-w"], 20, 60);
    terminal.until("the warning in the frame", SOON, |screen| {
        screen.lines().any(|line| line == "warning: old") && screen.starts_with("HOST")
    });
}

#[test]
fn a_watch_of_nothing_says_that_it_waits() {
    let stub = Stub::start(|number, _| match number {
        0 => Reply::Whole(200, "", list(1, &[lease("a", 1, 0)])),
        1 => {
            Reply::Later(Duration::from_secs(1), vec![json!({ "type": "ADDED", "object": lease("b", 2, 0) })])
        }
        _ => Reply::Silence,
    });
    let watching = plugin(&stub).start(&["apiservers", "b", "-w"]);
    watching.until_stderr("the word", SOON, |text| text == "nothing matches yet, waiting\n");
    watching.until("b", SOON, |text| text.contains("   b   joined   alive"));
}

#[cfg(unix)]
#[test]
fn a_terminal_that_cannot_redraw_is_treated_as_a_pipe() {
    let stub = Stub::start(|number, _| match number {
        0 => Reply::Whole(200, "", list(1, &[lease("a", 1, 0)])),
        1 => {
            Reply::Later(Duration::from_secs(1), vec![json!({ "type": "ADDED", "object": lease("b", 2, 0) })])
        }
        _ => Reply::Silence,
    });
    let terminal = plugin(&stub).env("TERM", "dumb").start_on_terminal(&["apiservers", "-w"], 20, 100);
    terminal.until("b", SOON, |screen| screen.contains("   b   joined   alive"));
    assert!(!terminal.output().contains('\u{1b}'), "{}", terminal.output());
}

#[cfg(unix)]
#[test]
fn a_terminal_that_changes_its_size_shows_one_table_and_never_scrolls() {
    let hosts = ["a", "b", "c", "d", "e", "f"];
    let stub = Stub::start(move |number, _| match number {
        0 => Reply::Whole(200, "", list(1, &hosts.map(|host| lease(host, 1, 0)))),
        _ => Reply::Silence,
    });
    let mut terminal = plugin(&stub).start_on_terminal(&["apiservers", "-w"], 12, 80);
    terminal.until("the table", SOON, |screen| screen.contains("6 of 6 alive"));
    for (rows, columns) in [(12, 30), (6, 30), (3, 20), (2, 20), (12, 80)] {
        terminal.resize(rows, columns);
        thread::sleep(Duration::from_millis(2500));
        let screen = terminal.screen();
        assert_eq!(screen.matches("HOST").count(), 1, "{rows}x{columns}: {screen}");
        assert!(screen.starts_with("HOST"), "{rows}x{columns}: {screen}");
        assert!(screen.lines().count() < usize::from(rows), "{rows}x{columns}: {screen}");
    }
    terminal.until("the table, whole again", SOON, |screen| screen.contains("6 of 6 alive"));
}

/// The older changes go first where the table needs the rows.
#[cfg(unix)]
#[test]
fn a_watch_shows_as_many_changes_as_the_screen_has_room_for() {
    let stub = Stub::start(move |number, _| match number {
        0 => Reply::Whole(200, "", list(1, &[lease("a", 1, 0)])),
        1 => {
            let joined = |n: u32| json!({ "type": "ADDED", "object": lease(&format!("b{n}"), n + 2, 0) });
            Reply::Later(Duration::from_secs(1), (0..12).map(joined).collect())
        }
        _ => Reply::Silence,
    });
    let mut terminal = plugin(&stub).start_on_terminal(&["apiservers", "-w"], 40, 80);
    let joined = |screen: &str| screen.matches("   joined").count();
    terminal.until("all of them", SOON, |screen| joined(screen) == 12);
    terminal.resize(20, 80);
    terminal.until("the last ones", SOON, |screen| joined(screen) == 5 && screen.contains("b9   joined"));
}

#[test]
fn a_right_that_is_taken_away_ends_a_watch() {
    let stub = Stub::start(|number, _| match number {
        0 => Reply::Whole(200, "", list(1, &[lease("a", 1, 0)])),
        _ => Reply::Whole(403, "", refusal(403, "Forbidden", "no more")),
    });
    plugin(&stub).run(&["apiservers", "-w"]).expect(7).says("error: no more").says("--verb=list,watch");
}

/// The credential plugin is a script.
#[cfg(unix)]
#[test]
fn an_exec_token_is_asked_for_again_only_when_it_is_refused() {
    use std::{fs, os::unix::fs::PermissionsExt as _};
    let stub = Stub::start(|_, head| {
        if head.to_lowercase().contains("authorization: bearer token-2\r\n") {
            Reply::Whole(200, "", list(1, &[lease("a", 1, 0)]))
        } else {
            Reply::Whole(401, "", refusal(401, "Unauthorized", "Unauthorized"))
        }
    });
    let runs = std::env::temp_dir().join(format!("kubectl-lease-exec-{}", std::process::id()));
    let script = runs.with_extension("sh");
    let answer = r#"{"apiVersion":"client.authentication.k8s.io/v1","status":{"token":"token-%d"}}"#;
    let text = format!("#!/bin/sh\necho run >>{0}\nprintf '{answer}' $(wc -l <{0})\n", runs.display());
    let _ = fs::remove_file(&runs);
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let user = json!({ "exec": { "apiVersion": "client.authentication.k8s.io/v1", "command": script } });
    Plugin::new(stub.kubeconfig(&user)).run(&["apiservers"]).expect(0);
    assert_eq!(fs::read_to_string(&runs).unwrap().lines().count(), 2);
    assert_eq!(stub.requests().len(), 2);
    for file in [runs, script] {
        fs::remove_file(file).unwrap();
    }
}
