use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

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
    assert_eq!(outcome.rows()[0][5], "expired", "{outcome:?}");
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

#[test]
fn a_right_that_is_taken_away_ends_a_watch() {
    let stub = Stub::start(|number, _| match number {
        0 => Reply::Whole(200, "", list(1, &[lease("a", 1, 0)])),
        _ => Reply::Whole(403, "", refusal(403, "Forbidden", "no more")),
    });
    plugin(&stub).run(&["apiservers", "-w"]).expect(7).says("error: no more").says("--verb=list,watch");
}

#[test]
fn an_exec_token_is_asked_for_again_only_when_it_is_refused() {
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
