//! What the kubeconfig and the flags may say, and how they are refused.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

use crate::{
    plugin::{Outcome, Plugin},
    stub::{Reply, Stub, lease, list},
};

fn willing() -> Stub {
    Stub::start(|_, _| Reply::Whole(200, "", list(1, &[lease("a", 1, 0)])))
}

fn run_as(user: &Value, args: &[&str]) -> Outcome {
    run_verb(user, "apiservers", args)
}

fn run_verb(user: &Value, verb: &str, args: &[&str]) -> Outcome {
    let stub = willing();
    let outcome = Plugin::new(stub.kubeconfig(user)).run(&[&[verb], args].concat());
    assert!(outcome.code == 0 || stub.requests().is_empty(), "refused before anything is sent");
    outcome
}

#[test]
fn what_cannot_be_a_header_is_refused_and_not_quoted() {
    for (user, args, what) in [
        (json!({}), &["--token", "sec\nret"][..], "token"),
        (json!({ "token": "sec\nret" }), &[], "token"),
        (json!({ "token": "sec\u{0}ret" }), &[], "token"),
        (json!({ "username": "x", "password": "sec\nret" }), &[], "password"),
        (json!({}), &["--username", "sec\nret", "--password", "x"], "user name"),
        (json!({}), &["--as", "sec\nret"], "user to act as"),
        (json!({}), &["--as", "x", "--as-group", "sec\nret"], "group to act as"),
        (json!({}), &["--as", "x", "--as-uid", "sec\nret"], "uid to act as"),
        (json!({}), &["--as", "x", "--as-user-extra", "k=sec\nret"], "extra user information"),
    ] {
        let outcome = run_as(&user, args).expect(1);
        let said =
            format!("error: the {what} has characters that no header may have, such as a line break\n");
        assert_eq!(outcome.stderr, said);
    }
}

/// It becomes part of URLs, and of what an administrator is advised to type.
#[test]
fn a_namespace_that_cannot_be_is_refused() {
    for namespace in ["../nodes/node-1", "a/b", "shop; reboot", "Shop"] {
        let outcome = run_verb(&json!({}), "leaders", &["-n", namespace]).expect(2);
        assert_eq!(outcome.stderr, format!("error: '{namespace}' cannot be the name of a namespace\n"));
    }
    run_verb(&json!({}), "leaders", &["-n", "shop"]).expect(0);
}

#[test]
fn a_user_name_and_password_are_sent_as_they_are_by_kubectl() {
    let stub = willing();
    let plugin = Plugin::new(stub.kubeconfig(&json!({ "token": "t" })));
    plugin.run(&["apiservers", "--username", "me", "--password", "secret"]).expect(0);
    let head = stub.requests.lock().unwrap()[0].to_lowercase();
    assert!(head.contains("authorization: basic bwu6c2vjcmv0\r\n"), "{head}");
    plugin.run(&["apiservers", "--username", "me", "--token", "t"]).expect(2);
}

/// Most files end in a line break, and whoever rotates a token tells nobody.
#[test]
fn a_token_file_is_trimmed_and_read_again_when_its_token_is_refused() {
    let file = std::env::temp_dir().join(format!("kubectl-lease-token-{}", std::process::id()));
    fs::write(&file, "token-1\n").unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (rotated, recorded) = (file.clone(), Arc::clone(&seen));
    let stub = Stub::start(move |_, head| {
        let token =
            head.to_lowercase().lines().find(|line| line.starts_with("authorization")).map(str::to_owned);
        let token = token.unwrap_or_default();
        recorded.lock().unwrap().push(token.clone());
        if token.ends_with("token-2") {
            return Reply::Whole(200, "", list(1, &[lease("a", 1, 0)]));
        }
        fs::write(&rotated, "\ttoken-2 \r\n").unwrap();
        Reply::Whole(401, "", json!({ "kind": "Status", "code": 401, "message": "Unauthorized" }))
    });
    Plugin::new(stub.kubeconfig(&json!({ "tokenFile": file, "token": "ignored" })))
        .run(&["apiservers"])
        .expect(0);
    assert_eq!(*seen.lock().unwrap(), ["authorization: bearer token-1", "authorization: bearer token-2"]);

    fs::write(&file, "\n").unwrap();
    let user = json!({ "tokenFile": file });
    run_as(&user, &[])
        .expect(7)
        .says(&format!("error: cannot use the token file {}: it is empty", file.display()));
    fs::write(&file, "sec\nret").unwrap();
    assert!(!run_as(&user, &[]).expect(7).says("no header may have").stderr.contains("ret\n"));
    fs::remove_file(&file).unwrap();
    run_as(&user, &[]).expect(7).says(&not_there(&file));
}

#[test]
fn a_user_that_is_not_there_is_named() {
    let stub = willing();
    let path = stub.kubeconfig(&json!({}));
    let text = fs::read_to_string(&path).unwrap().replace(r#""user":"stub""#, r#""user":"zz""#);
    fs::write(&path, text).unwrap();
    let outcome = Plugin::new(path).run(&["apiservers"]).expect(1);
    assert_eq!(outcome.stderr, "error: the kubeconfig has no user 'zz'\nhint: it has stub\n");
}

#[test]
fn an_address_that_cannot_be_is_refused_without_its_password() {
    for (address, said) in [
        (
            "https://me:secret@host:65536",
            "error: the server address 'https://host:65536' is not a URL: there is no such port",
        ),
        ("ftp://me:secret@host", "error: the server address 'ftp://host' has the scheme 'ftp'"),
        ("https://me:secret@", "error: the server address 'https://' is not a URL"),
    ] {
        let outcome = run_as(&json!({}), &["--server", address]).expect(1).says(said);
        assert!(!outcome.stderr.contains("secret"), "{outcome:?}");
    }
    let outcome = run_as(&json!({}), &["--server", "http://me:secret@127.0.0.1:1"]).expect(1);
    assert!(outcome.stderr.contains("cannot reach http://127.0.0.1:1: "), "{outcome:?}");
    assert!(!outcome.stderr.contains("secret"), "{outcome:?}");
}

#[test]
fn an_empty_flag_is_not_given() {
    let empty = ["--context=", "--cluster=", "--user=", "--kubeconfig=", "--server=", "--token=", "--as="];
    run_as(&json!({ "token": "t" }), &empty).expect(0);
}

#[test]
fn impersonation_of_groups_needs_a_user() {
    run_as(&json!({}), &["--as-user-extra", "a=b"]).expect(2).says("need --as");
}

#[test]
fn an_auth_provider_of_old_is_refused_unless_it_has_a_token() {
    for provider in [
        json!({ "name": "gcp", "config": { "access-token": "x" } }),
        json!({ "name": "azure" }),
        json!({ "name": "oidc", "config": { "refresh-token": "x" } }),
    ] {
        let name = provider["name"].as_str().unwrap().to_owned();
        run_as(&json!({ "auth-provider": provider }), &[])
            .expect(1)
            .says(&format!("by the auth-provider '{name}', which is not supported"))
            .says("hint: have the kubeconfig written anew");
    }
    run_as(&json!({ "auth-provider": { "name": "oidc", "config": { "id-token": "x" } } }), &[]).expect(0);
}

#[test]
fn a_file_that_cannot_be_read_is_named_once_and_plainly() {
    let file = std::env::temp_dir().join(format!("kubectl-lease-broken-{}", std::process::id()));
    let path = file.display();
    fs::write(&file, "clusters: [secret\n").unwrap();
    let outcome = Plugin::new(&file).run(&["apiservers"]).expect(1);
    assert!(
        outcome.stderr.starts_with(&format!("error: cannot read the kubeconfig {path}: ")),
        "{outcome:?}"
    );
    assert_eq!(outcome.stderr.matches("error:").count(), 1, "{outcome:?}");
    assert!(!outcome.stderr.contains("secret"), "{outcome:?}");
    fs::remove_file(&file).unwrap();

    let data = "Y2VydGlmaWNhdGU=";
    for (user, what) in [
        (json!({ "client-certificate": file }), "client certificate"),
        (json!({ "client-certificate-data": data, "client-key": file }), "client key"),
    ] {
        let outcome = run_as(&user, &[]).expect(1);
        let said = format!("error: cannot read the {what} {path}: {}\n", not_there(&file));
        assert_eq!(outcome.stderr, said);
    }
    // As with kubectl, a key alone is nothing.
    run_as(&json!({ "client-key": file }), &[]).expect(0);
}

/// What this system says of a file that is not there.
fn not_there(file: &Path) -> String {
    fs::read(file).unwrap_err().to_string()
}
