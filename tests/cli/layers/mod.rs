//! The layers: which room may name what. The compiler holds the line between the two crates, these tests
//! the lines inside them.

mod paths;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use paths::{Import, imports};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// What the files of a room may name: of their own crate (rooms, and what the crate's root has itself), and of
/// others. The crates that only tests use are among them.
struct Room {
    /// Folders and files, from the crate's root on.
    is: &'static [&'static str],
    own: &'static [&'static str],
    crates: &'static [&'static str],
}

const LIBRARY: [Room; 5] = [
    // Facts in, facts out: no client, no clock reads, no runtime. `prop` is a module of proptest.
    Room {
        is: &["rules"],
        own: &[],
        crates: &["std", "jiff", "k8s_openapi", "semver", "serde", "serde_json", "proptest", "prop"],
    },
    // Below everything.
    Room {
        is: &["clock", "error", "interrupts", "program", "signals"],
        own: &["error"],
        crates: &["std", "humantime", "nix", "thiserror", "tokio"],
    },
    Room {
        is: &["client"],
        own: &["clock", "error", "program", "rules"],
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
        is: &["protocols"],
        own: &["client", "clock", "error", "interrupts", "program", "rules", "signals"],
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
            "thiserror",
            "tokio",
        ],
    },
    // The front door.
    Room {
        is: &["lib", "election", "maintenance"],
        own: &[
            "client",
            "clock",
            "election",
            "error",
            "interrupts",
            "maintenance",
            "program",
            "protocols",
            "rules",
            "signals",
            "Interrupts",
            "Lost",
            "MaintenanceLease",
            "NotTaken",
        ],
        crates: &["std", "futures", "kube", "tokio"],
    },
];

const PLUGIN: [Room; 9] = [
    // Below everything.
    Room { is: &["exit"], own: &[], crates: &["std"] },
    Room { is: &["paste"], own: &[], crates: &["kube_leases"] },
    Room { is: &["error"], own: &["exit", "paste"], crates: &["std", "kube_leases"] },
    // It is handed what it prints.
    Room {
        is: &["output"],
        own: &["error", "paste"],
        crates: &[
            "std",
            "anstream",
            "comfy_table",
            "console",
            "dialoguer",
            "humantime",
            "indicatif",
            "jiff",
            "k8s_openapi",
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
        is: &["cli"],
        own: &["error", "output"],
        crates: &["std", "clap", "humantime", "jiff", "kube_leases", "proptest"],
    },
    Room {
        is: &["connection"],
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
    Room {
        is: &["complete"],
        own: &["cli", "connection", "error", "output"],
        crates: &["std", "clap", "clap_complete", "kube_leases", "serde", "tokio"],
    },
    Room {
        is: &["commands"],
        own: &["cli", "complete", "connection", "error", "exit", "output", "this_program"],
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
    // What is re-exported, and what starts it all.
    Room {
        is: &["lib", "main"],
        own: &["cli", "commands", "complete", "connection", "error", "exit", "output"],
        crates: &["std", "kubectl_lease", "kube_leases"],
    },
];

/// The folders that have several verbs, and what is no verb there: every verb may use it.
const VERBS: [(&str, &[&str]); 3] = [
    ("", &["holder", "interrupts", "namespaces", "under", "watching"]),
    ("candidates", &["candidate", "confirmation", "election", "reporter", "row"]),
    ("maint", &["row"]),
];

/// The functions of a verb: for the folder's `mod.rs`, which calls what was typed.
const ENTRIES: [&str; 2] = ["run", "print"];

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

/// The files of a crate: the path of the module, and the text.
fn files(src: &str) -> Vec<(Vec<String>, String)> {
    let src = Path::new(ROOT).join(src);
    let read = |file: &PathBuf| (module(file.strip_prefix(&src).unwrap()), fs::read_to_string(file).unwrap());
    sources(&src).iter().map(read).collect()
}

/// The module of a file. The crate's root counts as a file like others.
fn module(file: &Path) -> Vec<String> {
    let path = file.with_extension("");
    let mut names: Vec<String> = path.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
    if names.last().is_some_and(|name| name == "mod") {
        names.pop();
    }
    names
}

/// What a file names, as seen from its module: the crate's root has no name of its own.
fn named_by(module: &[String], text: &str) -> BTreeSet<Import> {
    let path: Vec<&str> = module.iter().map(String::as_str).collect();
    imports(text, if matches!(path[..], ["lib" | "main"]) { &[] } else { &path })
}

/// What is named that no room of these allows.
fn wrong(rooms: &[Room], files: &[(Vec<String>, String)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (module, text) in files {
        let place = module.join("/");
        let homes: Vec<&Room> = rooms.iter().filter(|room| room.is.contains(&module[0].as_str())).collect();
        let [room] = homes[..] else {
            wrong.push(format!("{place} is in {} rooms", homes.len()));
            continue;
        };
        for import in named_by(module, text) {
            match import {
                Import::Own(path) => {
                    let name = path.first().map_or("*", String::as_str);
                    if *name != module[0] && !room.own.contains(&name) {
                        wrong.push(format!("{place} names crate::{}", path.join("::")));
                    }
                }
                Import::Crate(name) if room.crates.contains(&name.as_str()) => {}
                Import::Crate(name) => wrong.push(format!("{place} names the crate {name}")),
            }
        }
    }
    wrong
}

/// The verbs that name another verb, or whose folder names more of them than what runs them.
fn verbs_that_name_verbs(files: &[(Vec<String>, String)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (folder, shared) in VERBS {
        let mut above = vec!["commands".to_owned()];
        above.extend((!folder.is_empty()).then(|| folder.to_owned()));
        let below = |path: &[String]| path.strip_prefix(&above[..]).and_then(<[String]>::first).cloned();
        let verbs: BTreeSet<String> = files
            .iter()
            .filter_map(|(module, _)| below(module))
            .filter(|it| !shared.contains(&it.as_str()))
            .collect();
        for (module, text) in files.iter().filter(|(module, _)| module.starts_with(&above)) {
            let own = below(module);
            for import in named_by(module, text) {
                let Import::Own(path) = import else { continue };
                let Some(other) = below(&path).filter(|name| verbs.contains(name)) else { continue };
                let entry = path.get(above.len() + 1).map_or("", String::as_str);
                let calls = own.is_none() && ENTRIES.contains(&entry);
                if own.as_ref() != Some(&other) && !calls {
                    wrong.push(format!("{} names {}", module.join("/"), path.join("::")));
                }
            }
        }
    }
    wrong
}

fn check(wrong: &[String]) {
    assert!(wrong.is_empty(), "what docs/ARCHITECTURE.md does not allow:\n{}", wrong.join("\n"));
}

#[test]
fn the_rooms_of_the_library_name_only_what_is_below_them() {
    check(&wrong(&LIBRARY, &files("kube-leases/src")));
}

#[test]
fn the_rooms_of_the_plugin_name_only_what_is_below_them() {
    check(&wrong(&PLUGIN, &files("src")));
}

#[test]
fn no_verb_imports_another_verb() {
    let files = files("src");
    check(&verbs_that_name_verbs(&files));
    // A folder with several verbs is known as one.
    for (module, _) in files.iter().filter(|(module, _)| module.len() == 2 && module[0] == "commands") {
        let runs = |(other, text): &&(Vec<String>, String)| {
            other.len() == 3 && other.starts_with(module) && text.contains("pub async fn run(")
        };
        let known = VERBS.iter().any(|(folder, _)| *folder == module[1]);
        assert!(known || files.iter().filter(runs).count() < 2, "{} has several verbs", module[1]);
    }
}

/// A file without its comments.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// Words that stand in no code below these folders and files, but for the files where they do.
const NOWHERE: [(&[&str], &[&str], &[&str]); 7] = [
    // Facts in, facts out: the time is handed in, and nothing is read.
    (
        &["kube-leases/src/rules/"],
        &["::now(", "std::env", "std::fs", "std::io", "std::net", "std::process", "std::thread", "env!("],
        &[],
    ),
    // Identities are shown as they are written; other words are the business of the plugin.
    (&["kube-leases/src/rules/"], &["Display for"], &["holder.rs", "controller_ref.rs"]),
    // Flags are the plugin's; those of kube-apiserver have its peers.
    (&["kube-leases/src/"], &["\"--", " --"], &["peers.rs"]),
    // What runs a command beside the plugin says what it could not do, if the plugin is killed.
    (&["kube-leases/src/"], &["stdout()"], &["processes.rs"]),
    (&["kube-leases/src/"], &["stderr()"], &["watchdog.rs", "leash.rs", "detached.rs"]),
    // Only the printer writes; the others draw, ask, or measure.
    (
        &["src/"],
        &["stdout()", "stderr()", "print!(", "println!(", "Stdout", "Stderr"],
        &["printer.rs", "progress.rs", "screen.rs", "prompt.rs", "output/mod.rs"],
    ),
    // What is typed and what is printed asks nothing of the cluster.
    (&["src/cli/", "src/output/"], &["Cluster", "kube_leases::client::single"], &[]),
];

/// What is said where it should not be.
fn said(files: &[(String, String)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (file, text) in files {
        for (folders, words, except) in NOWHERE {
            let here = folders.iter().any(|folder| file.starts_with(folder));
            if !here || except.iter().any(|name| file.ends_with(name)) {
                continue;
            }
            let said = words.iter().filter(|word| text.contains(*word));
            wrong.extend(said.map(|word| format!("{file} says {word}")));
        }
        // What a room is called elsewhere, the other tests would not find.
        for (at, _) in text.match_indices(" as ") {
            let before = text[..at].rsplit(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').next();
            let first = before.and_then(|path| path.split("::").next()).unwrap_or_default();
            let renamed =
                before.is_some_and(|path| ["crate", "super"].contains(&path) || ROOMS.contains(&path));
            if renamed || (first == "crate" && before.is_some_and(|path| path.split("::").count() == 2)) {
                wrong.push(format!("{file} renames {}", before.unwrap_or_default()));
            }
        }
    }
    wrong
}

const ROOMS: [&str; 9] =
    ["rules", "client", "protocols", "cli", "commands", "connection", "output", "complete", "error"];

#[test]
fn nothing_is_done_where_it_should_not_be() {
    let mut files = Vec::new();
    for src in ["src", "kube-leases/src"] {
        for file in sources(&Path::new(ROOT).join(src)) {
            let name = file.strip_prefix(ROOT).unwrap().to_str().unwrap().replace('\\', "/");
            // Tests may do all of this.
            let text = code(&file);
            let tested = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            if !name.ends_with("tests.rs") {
                files.push((name, tested.to_owned()));
            }
        }
    }
    check(&said(&files));
}

#[test]
fn what_is_done_where_it_should_not_be_is_found() {
    for (file, text, found) in [
        ("kube-leases/src/rules/pod.rs", "let now = Timestamp::now();", "says ::now("),
        ("kube-leases/src/rules/pod.rs", "use std::fs;", "says std::fs"),
        ("kube-leases/src/rules/pod.rs", "impl fmt::Display for Pod {", "says Display for"),
        ("kube-leases/src/protocols/held.rs", "\"use --force\"", "says  --"),
        ("kube-leases/src/client/mod.rs", "io::stderr().write()", "says stderr()"),
        ("src/commands/hold.rs", "print!(\"x\")", "says print!("),
        ("src/output/listing.rs", "fn f(cluster: &Cluster) {}", "says Cluster"),
        ("src/commands/hold.rs", "use crate::commands as all;", "renames crate::commands"),
        ("src/commands/hold.rs", "use super as all;", "renames super"),
        ("src/commands/hold.rs", "use crate::{commands as all};", "renames commands"),
    ] {
        assert_eq!(said(&[(file.to_owned(), text.to_owned())]), [format!("{file} {found}")], "{text}");
    }
    let fine = "use super::flags::BooleanFlag as _; let length = text.len() as u64;";
    assert_eq!(said(&[("src/cli/mod.rs".to_owned(), fine.to_owned())]), [""; 0]);
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

fn planted(files: &[(&str, &str)]) -> Vec<(Vec<String>, String)> {
    files.iter().map(|(file, text)| (module(Path::new(file)), (*text).to_owned())).collect()
}

/// Of each violation that is planted here the checker has to find it.
#[test]
fn what_a_room_may_not_name_is_found() {
    for (file, text, found) in [
        ("rules/pod.rs", "use crate::Interrupts;", "rules/pod names crate::Interrupts"),
        ("rules/pod.rs", "fn f() { super::super::client::go() }", "rules/pod names crate::client::go"),
        (
            "rules/advice/mod.rs",
            "use super::super::protocols::Wait;",
            "rules/advice names crate::protocols::Wait",
        ),
        ("rules/pod.rs", "fn f(client: &kube::Client) {}", "rules/pod names the crate kube"),
        ("rules/pod.rs", "#[derive(thiserror::Error)] struct E;", "rules/pod names the crate thiserror"),
        ("client/watch.rs", "use crate::{error::Error, protocols};", "client/watch names crate::protocols"),
        ("error.rs", "use crate::rules;", "error names crate::rules"),
        ("lib.rs", "use clap::Parser;", "lib names the crate clap"),
        ("attic.rs", "", "attic is in 0 rooms"),
    ] {
        assert_eq!(wrong(&LIBRARY, &planted(&[(file, text)])), [found], "{text}");
    }
    for (file, text, found) in [
        ("error.rs", "use crate::output::words::count;", "error names crate::output::words::count"),
        ("output/listing.rs", "#[derive(clap::ValueEnum)] enum E {}", "output/listing names the crate clap"),
        ("output/words/risk.rs", "use crate::cli::Wait;", "output/words/risk names crate::cli::Wait"),
        ("cli/help.rs", "let width = console::Term::stdout();", "cli/help names the crate console"),
        (
            "commands/hold.rs",
            "use tokio::fs; use owo_colors::Style;",
            "commands/hold names the crate owo_colors",
        ),
    ] {
        assert_eq!(wrong(&PLUGIN, &planted(&[(file, text)])), [found], "{text}");
    }
    let fine = [("rules/pod.rs", "use super::node::Node; use crate::rules::lease; use std::fmt;")];
    assert_eq!(wrong(&LIBRARY, &planted(&fine)), [""; 0]);
}

#[test]
fn a_verb_that_names_a_verb_is_found() {
    let (mod_rs, row) = ("commands/maint/mod.rs", ("commands/maint/row.rs", ""));
    let list = ("commands/maint/list.rs", "pub fn run() {}");
    for (file, text, found) in [
        (
            "commands/maint/status.rs",
            "use super::list::Row;",
            Some("commands/maint/status names commands::maint::list::Row"),
        ),
        (
            "commands/maint/row.rs",
            "fn f() { super::list::words() }",
            Some("commands/maint/row names commands::maint::list::words"),
        ),
        (
            mod_rs,
            "mod list; fn f() { list::words() }",
            Some("commands/maint names commands::maint::list::words"),
        ),
        (
            mod_rs,
            "mod list; use self::list::{run, words};",
            Some("commands/maint names commands::maint::list::words"),
        ),
        (
            "commands/hold.rs",
            "use super::maint::targets;",
            Some("commands/hold names commands::maint::targets"),
        ),
        ("commands/under.rs", "use crate::commands::maint;", Some("commands/under names commands::maint")),
        (mod_rs, "mod list; fn f() { list::run() }", None),
        ("commands/maint/status.rs", "use super::{row::Row, targets}; use super::super::holder::who;", None),
        ("commands/hold.rs", "use super::under;", None),
        ("commands/doctor/guard.rs", "use super::finding::Finding;", None),
    ] {
        let found: Vec<_> = found.into_iter().collect();
        assert_eq!(verbs_that_name_verbs(&planted(&[list, row, (file, text)])), found, "{file}: {text}");
    }
}
