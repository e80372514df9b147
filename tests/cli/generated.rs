//! Files that are made from the command line's own definition: completions, man pages, and the
//! README's table of commands. `make generate` writes them anew.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use clap::{Command, CommandFactory as _};
use kubectl_lease::cli::Cli;

use crate::{man, plugin::Plugin};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const BEGIN: &str = "<!-- Made by `make generate` from the help texts: do not edit. -->\n";
const END: &str = "<!-- Made by `make generate`: end. -->\n";

fn overwrite() -> bool {
    std::env::var_os("GENERATE").is_some()
}

/// The files of a folder have to be exactly these.
#[track_caller]
fn check(folder: &str, files: &BTreeMap<String, String>) {
    let folder = Path::new(ROOT).join(folder);
    if overwrite() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
    }
    let found: BTreeMap<String, String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap())
        })
        .collect();
    for (name, text) in files {
        let fresh = found.get(name) == Some(text);
        assert!(fresh, "{} is stale: run 'make generate'", folder.join(name).display());
    }
    assert_eq!(found.len(), files.len(), "{} has files too many: run 'make generate'", folder.display());
}

#[test]
fn completions_are_fresh() {
    let plugin = Plugin::new("/dev/null");
    let files = [
        ("bash", "kubectl-lease.bash"),
        ("zsh", "_kubectl-lease"),
        ("fish", "kubectl-lease.fish"),
        ("powershell", "_kubectl-lease.ps1"),
    ]
    .map(|(shell, file)| (file.to_owned(), plugin.run(&["completion", shell]).expect(0).stdout));
    check("completions", &files.into());
}

#[test]
fn man_pages_are_fresh() {
    check("man", &man::pages());
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
}

#[test]
fn the_readme_lists_every_command() {
    let mut table = "| command | what it does |\n|---|---|\n".to_owned();
    rows(&Cli::command(), "kubectl lease", &mut table);
    let path = Path::new(ROOT).join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let (before, rest) = readme.split_once(BEGIN).expect("the README says where the table begins");
    let (found, after) = rest.split_once(END).expect("the README says where the table ends");
    if overwrite() {
        fs::write(path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(found, table, "the README's commands are stale: run 'make generate'");
    }
}

fn rows(command: &Command, path: &str, table: &mut String) {
    for below in visible(command) {
        let path = format!("{path} {}", below.get_name());
        if !below.is_subcommand_required_set() {
            let arguments: String = below
                .get_positionals()
                .map(|argument| {
                    let name = argument.get_value_names().map_or("", |names| names[0].as_str());
                    let many = argument.get_num_args().is_some_and(|count| count.max_values() > 1);
                    let last = if argument.is_last_set() { "-- " } else { "" };
                    let name = format!("{last}{name}{}", if many { "…" } else { "" });
                    if argument.is_required_set() { format!(" {name}") } else { format!(" [{name}]") }
                })
                .collect();
            let about = below.get_about().unwrap().to_string();
            let _ = writeln!(table, "| `{path}{arguments}` | {} |", about.replace('|', "\\|"));
        }
        rows(below, &path, table);
    }
}
