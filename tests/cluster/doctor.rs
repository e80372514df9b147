//! What a cluster lacks and what a user may not do, and completion with names from the cluster.

use std::{
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
};

use serde_json::Value;

use crate::{
    harness::{
        ControlPlane, Shape, User,
        components::{Components, Entrant, announce},
        faults::{Fault, FaultProxy},
        random,
    },
    identity_lease,
    plugin::{Outcome, Plugin, wait_for},
    shared,
};

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);
const GUARD: [&str; 2] = kubectl_lease::commands::doctor::guard::NAMES;

fn findings(outcome: &Outcome) -> Vec<(String, String, String)> {
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let items = document["items"].as_array().unwrap().iter();
    // As the table has it.
    let check = |item: &Value| match item["command"].as_str() {
        Some(command) => format!("permissions: {command}"),
        None => text(&item["check"]).replace('-', " "),
    };
    items.map(|item| (check(item), text(&item["level"]), text(&item["message"]))).collect()
}

/// On a control plane of its own: whether there is a guard is a matter of the whole cluster.
#[test]
fn a_cluster_that_has_everything_is_well_and_its_guard_guards() {
    let plane = ControlPlane::start(&Shape { managers: 1, ..Shape::default() });
    let plugin = Plugin::new(plane.kubeconfig(User::Admin, 0));
    let soon = std::time::Duration::from_secs(30);
    plane.await_elector();
    let before = plugin.run(&["doctor"]).expect(0).says("kubectl lease doctor --print guard | kubectl");
    assert!(before.stdout.contains("is not guarded"), "{before:?}");
    // What it prints is applied as it says, without a cluster at hand to print it.
    let nowhere = Plugin::new("/nowhere").run(&["doctor", "--print", "guard"]).expect(0);
    let guard = plane.folder.join("guard.yaml");
    std::fs::write(&guard, &nowhere.stdout).unwrap();
    plane.kubectl(&["apply", "-f", guard.to_str().unwrap()]);
    let after = findings(&plugin.run(&["doctor", "-o", "json"]).expect(0));
    assert!(after.iter().all(|(_, level, _)| level == "ok"), "{after:#?}");
    assert!(
        after
            .iter()
            .any(|(check, _, message)| check == "coordinated election" && message == "served as v1beta1")
    );

    advice_is_enough(&plane);

    let node = format!("guarded-{}", random());
    plane.kubectl(&["create", "-f", &manifest(&plane, &node)]);
    let reader = Plugin::new(plane.kubeconfig(User::Reader, 0));
    // The policy is not in force at the same moment.
    wait_for(
        "the guard",
        soon,
        || {
            let other = format!("probe-{}", random());
            plane.kubectl(&["create", "-f", &manifest(&plane, &other)]);
            reader.run(&["maint", "acquire", &other, "--admin"]).code != 0
        },
        String::new,
    );
    reader.run(&["maint", "acquire", &node, "--admin"]).expect(7).says("'administer' leases");
    reader.run(&["maint", "acquire", &node]).expect(0);
    reader.run(&["maint", "release", &node]).expect(0);
    plugin.run(&["maint", "acquire", &node, "--admin"]).expect(0);
    plugin.run(&["maint", "release", &node, "--admin"]).expect(0);

    // A lease goes with its node, whoever holds it.
    plugin.run(&["maint", "acquire", &node, "--admin"]).expect(0);
    plane.kubectl(&["delete", "node", &node]);
    let lease =
        || plane.kubectl(&["get", "lease", "-n", "kube-node-maintenance", &node, "--ignore-not-found"]);
    wait_for("the lease goes with its node", soon * 2, || lease().is_empty(), lease);

    // Who may write leases there cannot have the garbage collector take an administrator's.
    let other = format!("bait-{}", random());
    plane.kubectl(&["create", "-f", &manifest(&plane, &other)]);
    reader.run(&["maint", "acquire", &other]).expect(0);
    reader.run(&["maint", "release", &other]).expect(0);
    let owned_by = |kind: &str, name: &str| {
        let owner = serde_json::json!({ "apiVersion": "v1", "kind": kind, "name": name, "uid": random() });
        let patch = serde_json::json!({ "metadata": { "ownerReferences": [owner] } }).to_string();
        let output = Command::new(plane.assets.join("kubectl"))
            .args(["patch", "lease", &other, "-n", "kube-node-maintenance", "--type=merge", "-p", &patch])
            .env("KUBECONFIG", plane.kubeconfig(User::Reader, 0))
            .output()
            .unwrap();
        output.status.success()
    };
    let owner = |path: &str| {
        let path = format!("jsonpath={{.metadata.ownerReferences[*].{path}}}");
        plane.kubectl(&["get", "lease", "-n", "kube-node-maintenance", &other, "-o", &path])
    };
    let node_uid = plane.kubectl(&["get", "node", &other, "-o", "jsonpath={.metadata.uid}"]);
    // Of a lease that nobody holds it may be had: this owner is one that the collector looks for in
    // vain, and would, if there were time. Whatever owner there was, it is the node for who takes it.
    assert!(owned_by("Gadget", "bait"));
    plugin.run(&["maint", "acquire", &other, "--admin"]).expect(0);
    assert_eq!((owner("kind"), owner("uid")), ("Node".to_owned(), node_uid));
    assert!(!owned_by("Node", &other), "now it is an administrator's");
    plugin.run(&["maint", "release", &other, "--admin"]).expect(0);

    collector_is_refused(&plane, &other);

    // A policy that nothing denies by guards nothing.
    let loose = r#"{"spec":{"validationActions":["Audit"]}}"#;
    let denies = r#"{"spec":{"validationActions":["Deny"]}}"#;
    for name in GUARD {
        plane.kubectl(&["patch", "validatingadmissionpolicybinding", name, "--type=merge", "-p", loose]);
        let after = findings(&plugin.run(&["doctor", "-o", "json"]).expect(0));
        let maintenance = after.iter().find(|(check, ..)| check == "maintenance").unwrap();
        assert_eq!(maintenance.1, "warn");
        assert!(maintenance.2.contains("do not rely on it"), "{name}: {maintenance:?}");
        plane.kubectl(&["patch", "validatingadmissionpolicybinding", name, "--type=merge", "-p", denies]);
    }
    let exempt = r#"{"spec":{"matchConstraints":{"excludeResourceRules":[{"apiGroups":["*"],"apiVersions":["*"],"resources":["*"],"operations":["*"]}]}}}"#;
    plane.kubectl(&["patch", "validatingadmissionpolicy", GUARD[0], "--type=merge", "-p", exempt]);
    let kinds = "validatingadmissionpolicy,validatingadmissionpolicybinding";
    let away = ["delete", "--ignore-not-found", kinds, GUARD[0], GUARD[1]];
    plugin.run(&["doctor"]).expect(0).says(&format!("'kubectl {}'", away.join(" ")));
    plane.kubectl(&away);
    plane.kubectl(&["apply", "-f", guard.to_str().unwrap()]);
    let after = findings(&plugin.run(&["doctor", "-o", "json"]).expect(0));
    assert!(after.iter().all(|(_, level, _)| level == "ok"), "as advised: {after:#?}");
}

/// Where another client leaves such an owner, the collector itself is refused; but not that of a node.
fn collector_is_refused(plane: &ControlPlane, other: &str) {
    plane.kubectl(&["create", "configmap", "bait", "-n", "kube-node-maintenance"]);
    let path = "jsonpath={.metadata.uid}";
    let bait = plane.kubectl(&["get", "configmap", "bait", "-n", "kube-node-maintenance", "-o", path]);
    let held = |name: &str, kind: &str, owner: &str, uid: &str| {
        serde_json::json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {
                "name": name, "namespace": "kube-node-maintenance",
                "ownerReferences": [{ "apiVersion": "v1", "kind": kind, "name": owner, "uid": uid }],
            },
            "spec": { "holderIdentity": "kubeadm:other" },
        })
    };
    plane.apply(&held("baited", "ConfigMap", "bait", &bait));
    let uid = plane.kubectl(&["get", "node", other, "-o", path]);
    plane.kubectl(&["delete", "lease", other, "-n", "kube-node-maintenance"]);
    plane.apply(&held(other, "Node", other, &uid));
    plane.kubectl(&["delete", "configmap", "bait", "-n", "kube-node-maintenance"]);
    plane.kubectl(&["delete", "node", other]);
    let leases = || plane.kubectl(&["get", "leases", "-n", "kube-node-maintenance", "-o", "name"]);
    wait_for(
        "the collector has been there",
        std::time::Duration::from_secs(60),
        || !leases().contains(other),
        leases,
    );
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert!(leases().contains("baited"), "{}", leases());
}

pub fn manifest(plane: &ControlPlane, node: &str) -> String {
    let path = plane.folder.join(format!("{node}.json"));
    std::fs::write(&path, format!(r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{node}"}}}}"#))
        .unwrap();
    path.display().to_string()
}

#[test]
fn every_missing_right_is_named() {
    let nobody = Plugin::new(shared().kubeconfig(User::Nobody, 0));
    let found = findings(&nobody.run(&["doctor", "-o", "json"]).expect(4));
    let failed: Vec<_> = found.iter().filter(|(_, level, _)| level == "fail").collect();
    for (check, missing) in [
        ("permissions: apiservers", "you cannot list leases in kube-system"),
        ("permissions: set-priority", "you cannot get, list, watch, patch leasecandidates; list leases"),
        ("permissions: maint", "you cannot get nodes; get, create, patch leases in kube-node-maintenance"),
        ("permissions: hold", "create, patch leases in default"),
        ("permissions: force-delete", "you cannot get, delete pods in default"),
        ("permissions: fence", "you cannot get, patch nodes; list pods; get leases in kube-node-lease"),
    ] {
        let found = failed.iter().find(|(found, ..)| found == check).unwrap();
        assert!(found.2.contains(missing), "{found:?}");
    }
    let told =
        nobody.run(&["doctor"]).expect(4).says("kubectl lease doctor --print rbac | kubectl apply -f -");
    assert!(told.stdout.contains("served as v1beta1"), "everybody may see what is served: {told:?}");
    let admin = Plugin::new(shared().kubeconfig(User::Admin, 0));
    let found = findings(&admin.run(&["doctor", "-o", "json"]).expect(0));
    assert!(found.iter().all(|(_, level, _)| level != "fail"), "{found:#?}");
    let found = findings(&admin.run(&["doctor", "-o", "json", "-n", "nowhere"]).expect(0));
    assert!(found.iter().any(|(_, _, message)| message == "there is no namespace nowhere"), "{found:#?}");
}

/// An identity lease of a kube-apiserver that is none, until it is dropped.
struct Pretender {
    host: String,
    lease: Value,
}

impl Pretender {
    fn new(prefix: &str, ahead: i64) -> Self {
        let (test, host) = (random(), format!("{prefix}-{}", random()));
        let lease = identity_lease(&test, &host, &format!("{host}_1"), -ahead);
        shared().apply(&lease);
        Self { host, lease }
    }

    fn name(&self) -> &str {
        self.lease["metadata"]["name"].as_str().unwrap()
    }

    /// Renews by a clock that is so much ahead.
    fn renew(&self, ahead: i64) {
        let time = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(ahead);
        let patch = serde_json::json!({ "spec": { "renewTime": format!("{time:.6}") } }).to_string();
        shared().kubectl(&["patch", "lease", self.name(), "-n", "kube-system", "--type=merge", "-p", &patch]);
    }
}

impl Drop for Pretender {
    fn drop(&mut self) {
        shared().kubectl(&["delete", "lease", self.name(), "-n", "kube-system"]);
    }
}

fn clocks(outcome: &Outcome) -> (String, String) {
    let found = findings(outcome).into_iter().find(|(check, ..)| check == "apiserver clocks");
    let (_, level, message) = found.unwrap();
    (level, message)
}

/// One after the other: what one of them renews by another clock, the other would see.
#[test]
fn a_kube_apiserver_whose_clock_differs_is_named() {
    let _alone = crate::clocks();
    let admin = Plugin::new(shared().kubeconfig(User::Admin, 0));
    let json = ["doctor", "-o", "json"];
    assert_eq!(clocks(&admin.run(&json).expect(0)).0, "ok");
    {
        let fast = Pretender::new("fast", 20);
        let (level, message) = clocks(&admin.run(&json).expect(0));
        assert_eq!(level, "warn", "{message}");
        let seconds = message
            .strip_prefix(&format!("{} is at least ", fast.host))
            .and_then(|rest| rest.strip_suffix("s ahead of the server"))
            .unwrap_or_else(|| panic!("{message}"));
        assert!((10..=20).contains(&seconds.parse::<i32>().unwrap()), "{message}");
        let words = format!("through {} a maintenance lease may be taken {seconds}s too early", fast.host);
        admin.run(&["doctor"]).expect(0).says(words.split("taken").next().unwrap());
    }

    // The one that is asked may be the one that is behind.
    let behind = FaultProxy::start(shared(), |_, _| Fault::Clock(-20));
    let (level, message) = clocks(&Plugin::new(&behind.kubeconfig).run(&json).expect(0));
    assert_eq!(level, "warn", "{message}");
    assert!(["cp-1", "cp-2", "cp-3"].iter().all(|real| message.contains(real)), "{message}");

    // A clock that is behind shows only when it renews.
    let slow = Pretender::new("slow", -20);
    assert_eq!(clocks(&admin.run(&json).expect(0)).0, "ok");
    let done = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        let renewing = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                slow.renew(-20);
                std::thread::sleep(std::time::Duration::from_millis(500));
            }
        });
        let outcome = admin.run(&["doctor", "-o", "json", "--clocks"]);
        done.store(true, Ordering::Relaxed);
        renewing.join().unwrap();
        outcome
    });
    let outcome = outcome.expect(0).says("waiting for a renewal of each kube-apiserver");
    let (level, message) = clocks(&outcome);
    assert_eq!(level, "warn", "{message}");
    for real in ["cp-1", "cp-2", "cp-3"] {
        let words = format!("{real} is ");
        let (_, rest) = message.split_once(&words).unwrap_or_else(|| panic!("{real}: {message}"));
        let (seconds, rest) = rest.split_once("s ahead of ").unwrap();
        assert!((seconds.parse::<f64>().unwrap() - 20.0).abs() < 1.5, "{message}");
        assert!(rest.starts_with(&slow.host), "{message}");
    }
    assert!(outcome.took < PATIENCE, "{:?}", outcome.took);

    // Who may not watch is told so, and by which role they may.
    let nobody = Plugin::new(shared().kubeconfig(User::Nobody, 0));
    let (level, message) = clocks(&nobody.run(&["doctor", "-o", "json", "--clocks"]).expect(4));
    assert_eq!((level.as_str(), message.as_str()), ("warn", "the differences cannot be read: no permission"));
}

/// Whoever is acted as has no rights but those that a test gives.
fn acting_as<'a>(user: &'a str, args: &[&'a str]) -> Vec<&'a str> {
    // Before the arguments: behind '--' they would be those of the command that is run.
    [&["--as", user], args].concat()
}

/// What `doctor` calls needed is what a command needs: with exactly that, and no more, it works.
#[test]
fn with_the_rights_that_are_called_needed_every_command_works() {
    let plane = shared();
    let admin = Plugin::new(plane.kubeconfig(User::Admin, 0));
    let node = format!("permissions-{}", random());
    let namespace = format!("permissions-{}", random());
    plane.kubectl(&["create", "namespace", &namespace]);
    plane.kubectl(&["create", "-f", &manifest(plane, &node)]);
    plane.apply(&serde_json::json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "lonely", "namespace": namespace },
        "spec": { "containers": [{ "name": "main", "image": "x" }] },
    }));
    announce(plane, &namespace, &[Entrant::new("solo", "job")]);
    let _components = Components::answer(plane, &namespace);
    let commands: &[(&str, &[&str])] = &[
        ("apiservers", &["apiservers"]),
        ("candidates", &["candidates"]),
        ("set-priority", &["candidates", "set-priority", "solo", "5", "-n", &namespace, "--yes", "--for=1s"]),
        ("leaders", &["leaders"]),
        ("maint", &["maint", "acquire", &node]),
        ("hold", &["hold", "permissions", "-n", &namespace, "--", "true"]),
        ("partitions", &["partitions"]),
        ("force-delete", &["force-delete", "pod", "lonely", "-n", &namespace, "--confirm"]),
        // Nobody has heard of this node: it may be fenced.
        ("fence", &["fence", &node, "--confirm", "--dry-run=server"]),
    ];
    for (command, args) in commands {
        let user = format!("{command}-{}", random());
        admin.run(&acting_as(&user, args)).expect(7);
        let doctor = ["doctor", "-o", "json", "-n", &namespace];
        let doctor = if args.contains(&"-n") { &doctor[..] } else { &doctor[..3] };
        let row = || {
            let outcome = admin.run(&acting_as(&user, doctor)).expect(4);
            let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
            let mut items = document["items"].as_array().unwrap().iter();
            items.find(|item| item["check"] == "permissions" && item["command"] == *command).unwrap().clone()
        };
        let before = row();
        assert_eq!(
            (&before["level"], &before["code"]),
            (&"fail".into(), &"permissions-missing".into()),
            "{before:#}"
        );
        let missing = before["missing"].as_array().unwrap().iter();
        for (n, right) in missing.filter(|right| right["needed"] == true).enumerate() {
            grant(&user, n, right);
        }
        let after = row();
        assert_ne!(after["level"], "fail", "{after:#}");
        admin.run(&acting_as(&user, args)).expect(0);
        // What one has taken is not in the way of the next.
        plane.kubectl(&["delete", "lease", "-n", "kube-node-maintenance", &node, "--ignore-not-found"]);
    }
}

/// Gives a user one right, and no other.
fn grant(user: &str, n: usize, right: &Value) {
    let text = |name: &str| right[name].as_str().unwrap_or_default();
    let name = format!("{user}-{n}");
    let (role, place) = match text("namespace") {
        "" => ("ClusterRole", Value::Null),
        namespace => ("Role", namespace.into()),
    };
    shared().apply(&serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": role,
            "metadata": { "name": name, "namespace": place },
            "rules": [{ "apiGroups": [text("group")], "resources": [text("resource")], "verbs": [text("verb")] }],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{role}Binding"),
            "metadata": { "name": name, "namespace": place },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name },
            "subjects": [{ "kind": "User", "name": user }],
        },
    ] }));
}

/// What it advises an administrator to type is enough for everything.
fn advice_is_enough(plane: &ControlPlane) {
    let admin = Plugin::new(plane.kubeconfig(User::Admin, 0));
    let user = format!("o'hara-{}@example.com", random());
    let advice = |code: i32| -> Vec<String> {
        let told = admin.run(&acting_as(&user, &["doctor"])).expect(code);
        let commands = told.stderr.lines().filter_map(|line| line.strip_prefix("  kubectl create "));
        commands.map(|command| format!("kubectl create {command}")).collect()
    };
    let grant = |command: &String| {
        let output = Command::new("bash")
            .args(["-c", command])
            .env("PATH", format!("{}:/usr/bin:/bin", plane.assets.display()))
            .env("KUBECONFIG", plane.kubeconfig(User::Admin, 0))
            .output()
            .unwrap();
        assert!(output.status.success(), "{command}: {output:?}");
    };
    let not_well = || -> Vec<_> {
        let all = findings(&admin.run(&acting_as(&user, &["doctor", "-o", "json"])).expect(0));
        // As whom one acts is odd.
        all.into_iter().filter(|(check, level, _)| level != "ok" && check != "kubeconfig").collect()
    };
    advice(4).iter().for_each(grant);
    assert_eq!(not_well(), []);
    assert_eq!(advice(0), [""; 0]);
}

/// In a real bash, by kubectl's own completion.
#[test]
fn bash_completes_names_of_the_cluster_through_kubectl() {
    let plane = shared();
    let node = format!("complete-{}", random());
    plane.kubectl(&["create", "-f", &manifest(plane, &node)]);
    let bin = plane.folder.join(format!("bin-{}", random()));
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kubectl-lease"), bin.join("kubectl-lease")).unwrap();
    let path = format!("{}:{}:/usr/bin:/bin", bin.display(), plane.assets.display());
    let bash = |script: &str| {
        let output = Command::new("bash")
            .args(["--norc", "-c", script])
            .env_clear()
            .env("PATH", &path)
            .env("HOME", &plane.folder)
            .env("KUBECONFIG", plane.kubeconfig(User::Admin, 0))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(bash("kubectl lease completion install").contains("kubectl_complete-lease -> "));
    // What bash does at a TAB: the function that `kubectl completion bash` defines is called with the
    // words so far. Only _get_comp_words_by_ref, of the bash-completion package, is stood in for.
    let tab = |words: &[&str]| {
        let typed = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        bash(&format!(
            "_get_comp_words_by_ref() {{ words=(\"${{COMP_WORDS[@]}}\"); cword=$COMP_CWORD; cur=${{COMP_WORDS[COMP_CWORD]}}; prev=${{COMP_WORDS[COMP_CWORD-1]}}; }}\n\
             __ltrim_colon_completions() {{ :; }}\n\
             source <(kubectl completion bash)\n\
             COMP_WORDS=({typed}); COMP_CWORD={}; COMP_LINE=\"${{COMP_WORDS[*]}}\"; COMP_POINT=${{#COMP_LINE}}; COMP_TYPE=9\n\
             __start_kubectl 2>/dev/null; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words.len() - 1
        ))
    };
    let nodes = || tab(&["kubectl", "lease", "maint", "acquire", "complete-"]);
    wait_for("the node", PATIENCE, || nodes().lines().any(|line| line.trim() == node), nodes);
    let candidates = || tab(&["kubectl", "lease", "candidates", "set-priority", ""]);
    wait_for("the candidates", PATIENCE, || candidates().contains("cp-1_"), candidates);
    let other = format!("complete-{}", random());
    plane.kubectl(&["create", "-f", &manifest(plane, &other)]);
    let again = || tab(&["kubectl", "lease", "maint", "acquire", &node, "complete-"]);
    wait_for("the other node", PATIENCE, || again().contains(&other), again);
    assert!(!again().contains(&node), "it is named already");
    let commands = tab(&["kubectl", "lease", "part"]);
    assert!(commands.starts_with("partitions"), "the name, not an alias: {commands}");
    // kubectl's script takes the flag off a word that has its value, and puts it back.
    let value = tab(&["kubectl", "lease", "doctor", "--context=sand"]);
    assert_eq!(value.trim(), "sandbox");

    // Whatever goes wrong, nothing is said.
    let silent = |kubeconfig: &str, words: &[&str]| {
        let output = Command::new(bin.join("kubectl_complete-lease"))
            .args(words)
            .env_clear()
            .env("KUBECONFIG", kubeconfig)
            .output()
            .unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let nobody = plane.kubeconfig(User::Nobody, 0).display().to_string();
    assert_eq!(silent(&nobody, &["maint", "acquire", ""]), ":4\n");
    assert_eq!(silent("/nowhere", &["maint", "acquire", ""]), ":4\n");
    assert_eq!(silent("/nowhere", &["--nonsense", "\u{1b}", ""]).lines().last(), Some(":4"));

    let admin = plane.kubeconfig(User::Admin, 0).display().to_string();
    let choices = |words: &[&str]| silent(&admin, words);
    // On a busy machine the time for an answer may be over: the next one has it.
    let offers = |words: &[&str], word: &str| {
        let found = || choices(words).lines().any(|line| line.split('\t').next() == Some(word));
        wait_for(&format!("{word} is offered"), PATIENCE, found, || choices(words));
    };
    offers(&["maint", "acquire", "node/complete-"], &format!("node/{node}"));
    offers(&["force-delete", "--node", ""], &node);
    offers(&["apiservers", ""], "cp-1");
    offers(&["leaders", ""], "kube-controller-manager");
    offers(&["hold", "-n", "kube-system", ""], "kube-controller-manager");
    let namespace = format!("complete-{}", random());
    plane.kubectl(&["create", "namespace", &namespace]);
    announce(plane, &namespace, &[Entrant::new("solo", "job")]);
    plane.apply(&serde_json::json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "cron", "namespace": namespace },
        "spec": { "holderIdentity": "x", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z" },
    }));
    let hold = ["hold", "-n", &namespace, ""];
    offers(&hold, "cron");
    // Written together, it ends like the flag '-w'.
    plane.kubectl(&["create", "namespace", &format!("{namespace}w")]);
    announce(plane, &format!("{namespace}w"), &[Entrant::new("other", "job")]);
    offers(&["candidates", "set-priority", &format!("-n{namespace}w"), ""], "other");
    offers(&["leaders", "-w", "-A", "kube-controller"], "kube-controller-manager");
    assert!(!choices(&hold).contains("kube-controller-manager"), "it would be another lease here");
    offers(&["candidates", "set-priority", "-n", &namespace, ""], "solo");
    offers(&["--context", "sandbox", "--cluster", ""], "sandbox");
    let clear = ["candidates", "clear-priority", "-n", &namespace, ""];
    assert!(!choices(&clear).contains("solo"), "it has no priority");
    assert_eq!(choices(&["--kubeconfig", ""]), ":0\n", "a file");
    // Behind '--' is a command of its own.
    assert_eq!(choices(&["maint", "run", &node, "--", ""]), ":0\n");
    // Only '--dry-run=client' has a value: what follows the flag alone is a node.
    offers(&["maint", "acquire", "--dry-run", "complete-"], &node);
    assert_eq!(choices(&["apiservers", "-w", "tr"]), ":4\n");
}

/// A credential plugin that wants to ask something gets no terminal to do it on, and none outlives the
/// answer.
#[test]
fn completion_does_not_let_a_credential_plugin_ask() {
    let plane = shared();
    let folder = plane.folder.join(format!("asking-{}", random()));
    std::fs::create_dir(&folder).unwrap();
    let (script, alive) = (folder.join("plugin"), folder.join("alive"));
    std::fs::write(
        &script,
        format!(
            "#!/bin/sh\necho 'log in' >&2\nread answer\necho read >{0}.read\nsleep 3\necho late >{0}\n",
            alive.display()
        ),
    )
    .unwrap();
    Command::new("chmod").arg("+x").arg(&script).status().unwrap();
    let kubeconfig = folder.join("kubeconfig");
    let text = std::fs::read_to_string(plane.kubeconfig(User::Admin, 0)).unwrap();
    let mut config: Value = serde_saphyr::from_str(&text).unwrap();
    config["users"][0]["user"] = serde_json::json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": script, "interactiveMode": "IfAvailable",
    } });
    std::fs::write(&kubeconfig, config.to_string()).unwrap();
    let program = folder.join("kubectl_complete-lease");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kubectl-lease"), &program).unwrap();
    let complete = || {
        let mut command = Command::new(&program);
        let output = command.args(["maint", "acquire", ""]).env("KUBECONFIG", &kubeconfig).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), ":4\n");
        assert!(output.stderr.is_empty(), "{output:?}");
    };
    // On a busy machine it may be ended before it has begun.
    let read = || {
        complete();
        folder.join("alive.read").exists()
    };
    wait_for("it runs, and has nothing to read", PATIENCE, read, String::new);
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert!(!alive.exists(), "it was ended");
}
