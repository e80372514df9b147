//! The words: help, messages, comments and documentation name the holder, the user, the candidate or the node,
//! in the words of Kubernetes' own documentation.

use std::{
    fs,
    path::{Path, PathBuf},
};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Where a person reads, the comments of the code included.
const READ: [&str; 15] = [
    "src",
    "kube-leases/src",
    "kube-leases/examples",
    "docs",
    "man",
    "packaging",
    ".github",
    ".ci/run",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "Makefile",
    "demo.sh",
    "krew-manifest.yaml",
];

/// Of these only the names of tests, and what a mutation breaks, are read.
const NAMED: [&str; 3] = ["tests", "kube-leases/tests", "benches"];

/// Words that name nothing to search for, each with what to write instead.
const AVOIDED: [(&str, &str); 40] = [
    ("nobody", "no user, no holder, no process"),
    ("somebody", "another user, another holder"),
    ("anybody", "every user, every holder"),
    ("everybody", "all users, all holders"),
    ("whoever", "the user, the holder, the candidate that"),
    ("whom", "name it"),
    ("heard of", "a heartbeat, a renewal, an answer"),
    ("let go of", "released, deleted, evicted"),
    ("said to be", "confirmed, declared, reported"),
    // The first that were changed: kubectl's own words for the same.
    ("whose fields they are", "name of the manager used to track field ownership"),
    ("stays, and clears it", "keep the priority for this long, then clear it"),
    ("of the candidates for this lease", "only consider candidates for this lease"),
    ("complete what is typed", "output shell completion code"),
    ("yes, without being asked", "skip confirmation"),
    ("image of a static pod", "mirror pod"),
    ("a command that names its own", "unexpected argument LEASE before a subcommand"),
    ("was always faster", "gave up after 10 write conflicts"),
    ("at work on a node", "holds the node"),
    ("has to do without", "without permission to watch, a loss is noticed at the next renewal"),
    ("is asked about what they may not do", "check permission before prompting"),
    ("it is as if there were none", "on 403: an empty list and this warning"),
    ("is not the node any more", "was recreated (new UID)"),
    ("may not be held", "--duration is at most 1h without --admin"),
    ("is not in 1..=", "must be between 1 and 2147483647"),
    ("left, for they tolerate it", "not evicted: they tolerate the taint"),
    ("hold under this name", "treat leases of this holder as yours"),
    ("make room", "step down"),
    // Kubernetes has one word for each of these.
    ("the lead", "leadership"),
    ("changed hands", "has another holder"),
    ("changes hands", "gets another holder"),
    ("between the look and the write", "conflict: changed after it was read"),
    ("lost a race", "conflict"),
    ("goes back and forth", "flaps"),
    ("looks forgotten", "looks abandoned"),
    ("make sure of it", "verify that it is off"),
    ("declared out of service", "marked out of service"),
    ("declared to be off", "marked out of service"),
    ("at each look", "at each sync, at each read"),
    ("its grace", "its grace period"),
    ("answer a ping", "acknowledge a ping"),
];

fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|entry| files(&entry)).collect()
}

/// Whether the text has the phrase, as words of their own.
fn has(text: &str, phrase: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric();
    text.match_indices(phrase)
        .any(|(at, _)| !text[..at].ends_with(is_word) && !text[at + phrase.len()..].starts_with(is_word))
        // The one phrase that begins another, which is right.
        && !(phrase == "its grace" && text.contains("its grace period"))
}

/// What is avoided in a line of a file, each with its place.
fn found_in(path: &Path, n: usize, line: &str, found: &mut Vec<String>) {
    let line = line.to_lowercase();
    for (phrase, instead) in AVOIDED {
        if has(&line, phrase) {
            let path = path.strip_prefix(ROOT).unwrap().display();
            found.push(format!("{path}:{}: '{phrase}', rather: {instead}", n + 1));
        }
    }
}

#[test]
fn a_phrase_is_found_only_as_words_of_its_own() {
    for (text, found) in [
        ("nobody holds it", true),
        ("(nobody)", true),
        ("nobodys", false),
        ("is held by nobody", true),
        ("", false),
    ] {
        assert_eq!(has(text, "nobody"), found, "{text}");
    }
}

#[test]
fn what_a_person_reads_names_what_it_is_about() {
    let mut found = Vec::new();
    for path in READ.iter().flat_map(|path| files(&Path::new(ROOT).join(path))) {
        let text = fs::read_to_string(&path).unwrap();
        text.lines().enumerate().for_each(|(n, line)| found_in(&path, n, line, &mut found));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_test_and_a_mutation_are_named_by_what_they_are_about() {
    let mut found = Vec::new();
    for path in NAMED.iter().flat_map(|path| files(&Path::new(ROOT).join(path))) {
        let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
        if !matches!(kind, "rs" | "patch") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for (n, line) in text.lines().enumerate() {
            let name = line.trim_start().strip_prefix("fn ").and_then(|rest| rest.split('(').next());
            match (kind, name) {
                ("patch", _) if n == 0 => found_in(&path, n, line, &mut found),
                ("rs", Some(name)) => found_in(&path, n, &name.replace('_', " "), &mut found),
                _ => {}
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
