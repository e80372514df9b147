//! The layers: which room may import which. The compiler holds the line between the two crates, these tests
//! the lines inside them.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// What the files of a room may import: of their own crate (a room, or a room's file), and of others.
struct Room {
    folder: &'static str,
    own: &'static [&'static str],
    crates: &'static [&'static str],
}

const LIBRARY: [Room; 3] = [
    // Facts in, facts out: no client, no clock reads, no runtime.
    Room {
        folder: "kube-leases/src/rules",
        own: &["rules"],
        crates: &["std", "jiff", "k8s_openapi", "semver", "serde", "serde_json", "proptest"],
    },
    Room {
        folder: "kube-leases/src/client",
        own: &["client", "clock", "error", "program", "rules"],
        crates: &[
            "std",
            "base64",
            "bytes",
            "form_urlencoded",
            "futures",
            "http",
            "http_body_util",
            "jiff",
            "k8s_openapi",
            "kube",
            "nix",
            "p521",
            "pem",
            "rcgen",
            "rustls",
            "secrecy",
            "serde",
            "serde_json",
            "serde_saphyr",
            "thiserror",
            "tokio",
        ],
    },
    Room {
        folder: "kube-leases/src/protocols",
        own: &["client", "clock", "error", "interrupts", "program", "protocols", "rules", "signals"],
        crates: &[
            "std",
            "futures",
            "humantime",
            "jiff",
            "k8s_openapi",
            "nix",
            "rustix",
            "serde",
            "serde_json",
            "tokio",
        ],
    },
];

const PLUGIN: [Room; 4] = [
    Room {
        folder: "src/cli",
        own: &["cli", "error", "output"],
        crates: &["std", "clap", "humantime", "jiff", "kube_leases", "proptest"],
    },
    Room {
        folder: "src/connection",
        own: &["cli", "error"],
        crates: &[
            "std",
            "base64",
            "http",
            "kube",
            "kube_leases",
            "pem",
            "secrecy",
            "serde_json",
            "serde_saphyr",
        ],
    },
    // It is handed what it prints.
    Room {
        folder: "src/output",
        own: &["error", "output"],
        crates: &[
            "std",
            "anstream",
            "comfy_table",
            "console",
            "dialoguer",
            "humantime",
            "indicatif",
            "jiff",
            "kube_leases",
            "nix",
            "owo_colors",
            "serde",
            "serde_json",
            "serde_saphyr",
            "tokio",
            "proptest",
        ],
    },
    Room {
        folder: "src/commands",
        own: &["cli", "commands", "complete", "connection", "error", "exit", "output", "this_program"],
        crates: &[
            "std",
            "clap",
            "clap_complete",
            "futures",
            "humantime",
            "jiff",
            "k8s_openapi",
            "kube_leases",
            "nix",
            "serde",
            "serde_json",
            "serde_saphyr",
            "tokio",
        ],
    },
];

/// What no verb owns, and every verb may use.
const SHARED: [&str; 5] = ["holder", "interrupts", "namespaces", "under", "watching"];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// A file without its comments.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The first names below a path: those in braces, or the one behind it.
fn below(text: &str, path: &str) -> BTreeSet<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut names = BTreeSet::new();
    for (at, _) in text.match_indices(path) {
        if text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let rest = &text[at + path.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            names.insert(name(rest));
            continue;
        };
        let (mut depth, mut begin) = (0, 0);
        for (n, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => {
                    names.insert(name(&group[begin..n]));
                    break;
                }
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    names.insert(name(&group[begin..n]));
                    begin = n + 1;
                }
                _ => {}
            }
        }
    }
    names.remove("");
    names
}

/// The crates that a file imports.
fn imported_crates(text: &str) -> BTreeSet<String> {
    let uses = text.lines().filter_map(|line| line.trim_start().strip_prefix("use "));
    uses.filter_map(|path| path.split_once("::")).map(|(name, _)| name.to_owned()).collect()
}

fn check(rooms: &[Room]) {
    let mut wrong = Vec::new();
    for room in rooms {
        for file in sources(&Path::new(ROOT).join(room.folder)) {
            let text = code(&file);
            let named = file.strip_prefix(ROOT).unwrap().display();
            for name in below(&text, "crate::") {
                // A type or function of the crate's root is re-exported from a room below.
                let is_room = name.chars().next().is_some_and(char::is_lowercase);
                if is_room && !room.own.contains(&name.as_str()) {
                    wrong.push(format!("{named} imports crate::{name}"));
                }
            }
            for name in imported_crates(&text) {
                let is_own = ["crate", "self", "super", "Self"].contains(&name.as_str());
                let is_type = name.starts_with(char::is_uppercase);
                let is_module = text.contains(&format!("mod {name};"));
                let is_allowed = room.crates.contains(&name.as_str());
                if !(is_own || is_type || is_module || is_allowed) {
                    wrong.push(format!("{named} imports the crate {name}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "imports that docs/ARCHITECTURE.md does not allow:\n{}", wrong.join("\n"));
}

#[test]
fn the_rooms_of_the_library_import_only_what_is_below_them() {
    check(&LIBRARY);
}

#[test]
fn the_rooms_of_the_plugin_import_only_what_is_below_them() {
    check(&PLUGIN);
}

#[test]
fn no_verb_imports_another_verb() {
    let commands = Path::new(ROOT).join("src/commands");
    let verb = |file: &Path| -> String {
        let first = file.strip_prefix(&commands).unwrap().iter().next().unwrap().to_str().unwrap();
        first.trim_end_matches(".rs").to_owned()
    };
    let files = sources(&commands);
    let verbs: BTreeSet<String> = files.iter().map(|file| verb(file)).filter(|verb| verb != "mod").collect();
    let mut wrong = Vec::new();
    for file in files.iter().filter(|file| verb(file) != "mod") {
        let (text, own) = (code(file), verb(file));
        let mut used = below(&text, "crate::commands::");
        // What is below the path `super` of a file depends on how deep it is.
        let depth = file.strip_prefix(&commands).unwrap().iter().count();
        let is_root = file.ends_with("mod.rs");
        let up = "super::".repeat(if is_root { depth - 1 } else { depth });
        used.extend(below(&text, &up));
        for other in used.into_iter().filter(|name| verbs.contains(name) && *name != own) {
            if !SHARED.contains(&other.as_str()) {
                wrong.push(format!("{} imports {other}", file.strip_prefix(ROOT).unwrap().display()));
            }
        }
    }
    assert!(wrong.is_empty(), "verbs that import verbs:\n{}", wrong.join("\n"));
}

/// What a library for controllers has no use for.
#[test]
fn the_library_depends_on_no_terminal_and_no_command_line() {
    let manifest = fs::read_to_string(Path::new(ROOT).join("kube-leases/Cargo.toml")).unwrap();
    for name in [
        "clap",
        "comfy-table",
        "console",
        "dialoguer",
        "indicatif",
        "owo-colors",
        "anstream",
        "kubectl-lease",
    ] {
        let depends = manifest
            .lines()
            .any(|line| line.starts_with(&format!("{name} ")) || line.starts_with(&format!("{name}.")));
        assert!(!depends, "kube-leases depends on {name}");
    }
    for file in sources(&Path::new(ROOT).join("kube-leases/src")) {
        let text = code(&file);
        for word in ["kubectl lease", "exit code", "println!", "eprintln!", "current_exe"] {
            assert!(!text.contains(word), "{} says '{word}'", file.display());
        }
    }
}

#[test]
fn imports_are_read_as_they_are_written() {
    let names = |text: &str| below(text, "crate::").into_iter().collect::<Vec<_>>().join(" ");
    for (text, read) in [
        ("use crate::error::Error;", "error"),
        ("use crate::{client::{Cluster, single::Address}, rules::lease::Lease};", "client rules"),
        ("let x = crate::clock::now();", "clock"),
        ("use othercrate::error;", ""),
        ("use crate::{\n    error::{Error, Result},\n    rules,\n};", "error rules"),
    ] {
        assert_eq!(names(text), read, "{text}");
    }
}
