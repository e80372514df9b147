//! The completion scripts at work in their shells.

use std::process::Command;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/completions/kubectl-lease.bash");

/// Calls the function that the script registers as bash does: with the program, the word to complete
/// and the one before it.
const IN_BASH: &str = r#"
source "$0"
[[ $(complete -p kubectl-lease) =~ -F\ ([^ ]+) ]]
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
"${BASH_REMATCH[1]}" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
"#;

#[test]
fn bash_completes_at_every_depth() {
    for (line, choices) in [
        ("kubectl-lease mai", "maint"),
        ("kubectl-lease maint ", "acquire renew release status list run"),
        ("kubectl-lease maint acquire --dry", "--dry-run"),
        ("kubectl-lease doctor -o ", "table wide json yaml name"),
        ("kubectl-lease candidates ex", "explain"),
        ("kubectl-lease candidates re", "rehearse repair"),
        ("kubectl-lease candidates pr", "prune"),
        ("kubectl-lease candidates set-priority --de", "--detach"),
        ("kubectl-lease -n kube-system candidates clear-priority --ex", "--expired"),
        ("kubectl-lease force-delete --sa", "--safe"),
        ("kubectl-lease completion p", "powershell"),
    ] {
        let words: Vec<_> = line.split(' ').collect();
        let output = Command::new("bash").args(["-c", IN_BASH, SCRIPT]).args(&words).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{line}");
        let found = String::from_utf8(output.stdout).unwrap();
        // Flags are choices for an empty word too.
        let flag = words.last().unwrap().starts_with('-');
        let found: Vec<_> = found.lines().filter(|choice| flag || !choice.starts_with('-')).collect();
        assert_eq!(found.join(" "), choices, "{line}");
    }
}
