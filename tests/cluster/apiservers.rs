use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    REAL, TEST_LABEL,
    harness::{User, random},
    identity_lease,
    plugin::Plugin,
    shared,
};

fn as_admin() -> Plugin {
    Plugin::new(shared().kubeconfig(User::Admin, 0))
}

/// What kubectl itself says of the real identities.
fn identities_by_kubectl() -> BTreeSet<String> {
    let selector = format!("apiserver.kubernetes.io/identity=kube-apiserver,{REAL}");
    let names = shared().kubectl(&["get", "leases", "-n", "kube-system", "-l", &selector, "-o", "name"]);
    names.lines().map(str::to_owned).collect()
}

#[test]
fn every_apiserver_is_listed_by_host_name_and_alive() {
    let outcome = as_admin().run(&["apiservers", "-l", REAL]).expect(0);
    let rows = outcome.rows();
    assert_eq!(rows[0].join(" "), "HOST STATE IDENTITY PEER ADDRESS STARTED RENEWED");
    let hosts: Vec<_> = rows[1..].iter().map(|row| row[0]).collect();
    assert_eq!(hosts, ["cp-1", "cp-2", "cp-3"]);
    for (n, row) in rows[1..].iter().enumerate() {
        assert_eq!(row[3], shared().url(n).trim_start_matches("https://"), "{outcome:?}");
        assert_eq!(row[1], "alive", "{outcome:?}");
    }
    let identities: BTreeSet<_> =
        rows[1..].iter().map(|row| format!("lease.coordination.k8s.io/{}", row[2])).collect();
    assert_eq!(identities, identities_by_kubectl());
    assert!(!outcome.stdout.contains('\u{1b}'), "a pipe gets no colour");
    assert_eq!(outcome.stderr, "");
}

#[test]
fn wide_adds_holder_lease_and_namespace() {
    let outcome = as_admin().run(&["apiservers", "-l", REAL, "-o", "wide"]).expect(0);
    let rows = outcome.rows();
    assert!(rows[0].ends_with(&["HOLDER", "UUID", "LEASE", "NAMESPACE"]), "{outcome:?}");
    for row in &rows[1..] {
        let [_, state, identity, .., uuid, lease, namespace] = row[..] else { panic!("{row:?}") };
        assert_eq!((state, namespace), ("alive", "kube-system"));
        assert_eq!(uuid.len(), 36, "{uuid}");
        assert_eq!(lease, identity);
    }
}

#[test]
fn json_and_yaml_carry_the_derived_state_and_the_whole_lease() {
    for format in ["json", "yaml"] {
        let outcome = as_admin().run(&["apiservers", "-l", REAL, "-o", format]).expect(0);
        let list: Value = serde_saphyr::from_str(&outcome.stdout).unwrap();
        assert_eq!(list["apiVersion"], "kubectl-lease.dev/v1");
        assert_eq!(list["kind"], "ApiServerList");
        assert!(list["serverTime"].is_string());
        let items = list["items"].as_array().unwrap();
        assert_eq!(items.len(), 3);
        for item in items {
            assert_eq!(item["state"], "alive");
            assert_eq!(item["hostname"], item["lease"]["metadata"]["labels"]["kubernetes.io/hostname"]);
            assert_eq!(item["renewed"], item["lease"]["spec"]["renewTime"]);
            assert_eq!(item["started"], item["lease"]["metadata"]["creationTimestamp"]);
            assert_eq!(item["identity"], item["lease"]["metadata"]["name"]);
            let holder =
                format!("{}_{}", item["identity"].as_str().unwrap(), item["holderUuid"].as_str().unwrap());
            assert_eq!(item["lease"]["spec"]["holderIdentity"], holder);
            assert_eq!(item["lease"]["kind"], "Lease");
            assert!(item["lease"]["metadata"]["managedFields"].is_null());
        }
    }
}

#[test]
fn names_are_those_that_kubectl_takes() {
    let outcome = as_admin().run(&["apiservers", "-l", REAL, "-o", "name"]).expect(0);
    assert_eq!(outcome.stdout.lines().map(str::to_owned).collect::<BTreeSet<_>>(), identities_by_kubectl());
}

#[test]
fn headers_can_be_left_out() {
    let outcome = as_admin().run(&["apiservers", "-l", REAL, "--no-headers"]).expect(0);
    assert_eq!(outcome.rows().len(), 3);
    assert!(!outcome.stdout.contains("HOST"));
}

#[test]
fn one_is_found_by_host_name_and_by_identity() {
    let by_host = as_admin().run(&["apiservers", "cp-2", "-o", "json"]).expect(0);
    let one: Value = serde_json::from_str(&by_host.stdout).unwrap();
    assert_eq!((&one["kind"], &one["hostname"]), (&"ApiServer".into(), &"cp-2".into()));
    let identity = one["identity"].as_str().unwrap();
    let by_identity = as_admin().run(&["apiservers", identity, "--no-headers"]).expect(0);
    assert_eq!(by_identity.rows()[0][..3], ["cp-2", "alive", identity]);
}

#[test]
fn one_that_is_not_there_is_not_found() {
    let outcome = as_admin().run(&["apiservers", "cp-9", "-l", REAL]).expect(3);
    assert_eq!(
        outcome.stderr,
        "error: no kube-apiserver is called 'cp-9'\nhint: there is cp-1, cp-2, cp-3\n"
    );
    assert_eq!(outcome.stdout, "");
}

#[test]
fn the_state_follows_the_age_of_the_last_renewal() {
    let test = random();
    for (host, age) in [("a", 0), ("b", 45), ("c", 600), ("d", 3700)] {
        shared().apply(&identity_lease(&test, host, &format!("{host}_1"), age));
    }
    let outcome = as_admin().run(&["apiservers", "-l", &format!("{TEST_LABEL}={test}")]).expect(0);
    let states: Vec<_> =
        outcome.rows()[1..].iter().map(|row| (row[0].to_owned(), row[1].to_owned())).collect();
    let expected = [("a", "alive"), ("b", "late"), ("c", "silent"), ("d", "expired")];
    assert_eq!(states, expected.map(|(host, state)| (host.to_owned(), state.to_owned())));
}

#[test]
fn the_leases_of_releases_before_1_26_are_recognised() {
    let test = random();
    let mut lease = identity_lease(&test, "old", "kube-apiserver-xyz_0f", 1);
    lease["metadata"]["name"] = format!("kube-apiserver-{test}").into();
    lease["metadata"]["labels"] =
        serde_json::json!({ "k8s.io/component": "kube-apiserver", TEST_LABEL: test });
    shared().apply(&lease);
    let outcome =
        as_admin().run(&["apiservers", "-l", &format!("{TEST_LABEL}={test}"), "--no-headers"]).expect(0);
    let rows = outcome.rows();
    assert_eq!(rows[0][..3], ["<none>", "alive", "kube-apiserver-xyz"]);
}

#[test]
fn a_holder_with_escape_sequences_prints_harmlessly() {
    let test = random();
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}apiserver\nerror: all is lost";
    shared().apply(&identity_lease(&test, "evil", hostile, 1));
    let selector = format!("{TEST_LABEL}={test}");
    for format in ["table", "wide", "json", "yaml", "name"] {
        let outcome = as_admin().run(&["apiservers", "-l", &selector, "-o", format]).expect(0);
        let is_harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!outcome.stdout.contains(is_harmful), "{format}: {:?}", outcome.stdout);
        match format {
            "table" | "wide" => {
                assert!(outcome.stdout.contains("\\u{1b}]0;owned\\u{7}"), "{}", outcome.stdout);
                assert_eq!(outcome.stdout.lines().count(), 2);
            }
            "json" | "yaml" => {
                let list: Value = serde_saphyr::from_str(&outcome.stdout).unwrap();
                assert_eq!(list["items"][0]["lease"]["spec"]["holderIdentity"], hostile, "nothing is lost");
            }
            _ => {}
        }
    }
}

#[test]
fn no_rights_is_a_code_of_its_own_and_the_right_is_named() {
    let nobody = Plugin::new(shared().kubeconfig(User::Nobody, 0));
    for args in [&["apiservers"][..], &["apiservers", "-w"]] {
        nobody
            .run(args)
            .expect(7)
            .says("error: leases.coordination.k8s.io is forbidden: User \"nobody\" cannot list")
            .says(
                "hint: an administrator can grant it with 'kubectl create role leases-list -n kube-system \
                 --verb=list",
            );
    }
}

#[test]
fn the_documented_rights_are_enough() {
    let reader = Plugin::new(shared().kubeconfig(User::Reader, 0));
    reader.run(&["apiservers"]).expect(0);
    let watching = reader.start(&["apiservers", "-w"]);
    watching.until("the table", std::time::Duration::from_secs(10), |text| text.contains("cp-3"));
}

#[test]
fn a_list_costs_one_request() {
    for args in [&["apiservers"][..], &["apiservers", "cp-1"], &["apiservers", "-o", "json"]] {
        let (user, kubeconfig) = shared().unique_admin();
        Plugin::new(kubeconfig).run(args).expect(0);
        assert_eq!(
            shared().audited(&user),
            ["list /apis/coordination.k8s.io/v1/namespaces/kube-system/leases?"],
            "{args:?}"
        );
    }
}

#[test]
fn nothing_selected_is_not_found() {
    as_admin()
        .run(&["apiservers", "-l", "no=such"])
        .expect(3)
        .says("error: no kube-apiserver identity matches the selector");
}

#[test]
fn a_selector_that_the_server_refuses_is_the_servers_words() {
    as_admin()
        .run(&["apiservers", "--field-selector", "spec.leaseName=x"])
        .expect(2)
        .says("\"spec.leaseName\" is not a known field selector");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_kubectl-lease"))
        .args(["apiservers", "-o", "json"])
        .env("KUBECONFIG", shared().kubeconfig(User::Admin, 0))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
