//! What a cluster lacks and what a user may not do, and completion with names from the cluster.

use std::process::Command;

use serde_json::Value;

use crate::{
    harness::{ControlPlane, Shape, User, random},
    plugin::{Outcome, Plugin, wait_for},
    shared,
};

const GUARD: &str = "kubectl-lease-maintenance";

fn findings(outcome: &Outcome) -> Vec<(String, String, String)> {
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let items = document["items"].as_array().unwrap().iter();
    items.map(|item| (text(&item["check"]), text(&item["level"]), text(&item["message"]))).collect()
}

/// On a control plane of its own: whether there is a guard is a matter of the whole cluster.
#[test]
fn a_cluster_that_has_everything_is_well_and_its_guard_guards() {
    let plane = ControlPlane::start(&Shape::default());
    let plugin = Plugin::new(plane.kubeconfig(User::Admin, 0));
    let soon = std::time::Duration::from_secs(30);
    plane.await_elector();
    let before = plugin.run(&["doctor"]).expect(0).says("kubectl lease doctor --print guard | kubectl");
    assert!(before.stdout.contains("nothing guards the reserved prefix"), "{before:?}");
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

    // A policy that nothing denies by guards nothing.
    let loose = r#"{"spec":{"validationActions":["Audit"]}}"#;
    plane.kubectl(&["patch", "validatingadmissionpolicybinding", GUARD, "--type=merge", "-p", loose]);
    let after = findings(&plugin.run(&["doctor", "-o", "json"]).expect(0));
    let maintenance = after.iter().find(|(check, ..)| check == "maintenance").unwrap();
    assert_eq!(maintenance.1, "warn");
    assert!(maintenance.2.contains("it guards nothing"), "{maintenance:?}");
}

fn manifest(plane: &ControlPlane, node: &str) -> String {
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
        ("rights for apiservers", "list, watch leases.coordination.k8s.io in kube-system"),
        ("rights for candidates set-priority", "patch leasecandidates.coordination.k8s.io"),
        ("rights for maint", "get, list, watch nodes"),
        ("rights for hold", "create, patch leases.coordination.k8s.io in default"),
        ("rights for force-delete", "delete pods in default"),
        ("rights for fence", "patch nodes"),
    ] {
        let found = failed.iter().find(|(found, ..)| found == check).unwrap();
        assert!(found.2.contains(missing), "{found:?}");
    }
    let advice = "rights: an administrator can bind these roles to you";
    let outcome = nobody.run(&["doctor"]).expect(4).says(advice);
    assert_eq!(outcome.stderr.matches(advice).count(), 1, "said once: {outcome:?}");
    assert!(outcome.stdout.contains("(role kubectl-lease-priority)"), "{outcome:?}");
    assert!(outcome.stdout.contains("served as v1beta1"), "everybody may see what is served: {outcome:?}");
    let admin = Plugin::new(shared().kubeconfig(User::Admin, 0));
    let found = findings(&admin.run(&["doctor", "-o", "json"]).expect(0));
    assert!(found.iter().all(|(_, level, _)| level != "fail"), "{found:#?}");
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
    let nodes = tab(&["kubectl", "lease", "maint", "acquire", "complete-"]);
    assert!(nodes.lines().any(|line| line.trim() == node), "{nodes}");
    let candidates = tab(&["kubectl", "lease", "candidates", "set-priority", ""]);
    assert!(candidates.contains("cp-1_"), "{candidates}");
    let again = tab(&["kubectl", "lease", "maint", "acquire", &node, "complete-"]);
    assert!(!again.contains(&node), "it is named already: {again}");
    let commands = tab(&["kubectl", "lease", "part"]);
    assert!(commands.starts_with("partition"), "{commands}");

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
}
