//! The words: help, messages, comments and documentation name the holder, the user, the candidate or the node,
//! in the words of Kubernetes' own documentation.

use std::{
    fs,
    path::{Path, PathBuf},
};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Where a person reads, the comments of the code included.
const READ: [&str; 9] = [
    "src",
    "kube-leases/src",
    "kube-leases/examples",
    "docs",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "demo.sh",
];

/// Words that name nothing to search for, each with what to write instead.
const AVOIDED: [(&str, &str); 8] = [
    ("nobody", "no user, no holder, no process"),
    ("somebody", "another user, another holder"),
    ("anybody", "every user, every holder"),
    ("whoever", "the user, the holder, the candidate that"),
    ("whom", "name it"),
    ("heard of", "a heartbeat, a renewal, an answer"),
    ("let go of", "released, deleted, evicted"),
    ("said to be", "confirmed, declared, reported"),
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
        for (n, line) in text.lines().enumerate() {
            let line = line.to_lowercase();
            for (phrase, instead) in AVOIDED {
                if has(&line, phrase) {
                    let path = path.strip_prefix(ROOT).unwrap().display();
                    found.push(format!("{path}:{}: '{phrase}', rather: {instead}", n + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
