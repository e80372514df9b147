//! Files that are made from the command line's own definition: completions, man pages, and the commands
//! and flags of docs/reference.md. `make generate` writes them anew.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use clap::{Arg, Command, CommandFactory as _};
use kubectl_lease::cli::{self, Cli};

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
fn the_reference_has_every_command_and_flag() {
    let mut made = "\n## Commands\n\n| command | what it does |\n|---|---|\n".to_owned();
    rows(&Cli::command(), "kubectl lease", &mut made);
    made.push_str("\n## Flags\n");
    flags(&cli::shown(Cli::command()), "kubectl lease", &mut made);
    made.push('\n');
    let path = Path::new(ROOT).join("docs/reference.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page says where the made part begins");
    let (found, after) = rest.split_once(END).expect("the page says where the made part ends");
    if overwrite() {
        fs::write(path, format!("{before}{BEGIN}{made}{END}{after}")).unwrap();
    } else {
        assert!(found == made, "docs/reference.md is stale: run 'make generate'");
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
            let _ = writeln!(table, "| `{}` | {} |", cell(&format!("{path}{arguments}")), cell(&about));
        }
        rows(below, &path, table);
    }
}

/// A table for each command with flags of its own. Those that every command has are described below them.
fn flags(command: &Command, path: &str, page: &mut String) {
    for below in visible(command) {
        let path = format!("{path} {}", below.get_name());
        let own: Vec<&Arg> = below
            .get_arguments()
            .filter(|it| {
                !it.is_positional() && !it.is_hide_set() && !it.is_global_set() && it.get_id() != "help"
            })
            .collect();
        if !own.is_empty() {
            let _ = writeln!(page, "\n### {path}\n\n| flag | what it does |\n|---|---|");
        }
        for flag in own {
            let _ = writeln!(page, "| `{}` | {} |", cell(&as_typed(flag)), cell(&about(flag)));
        }
        flags(below, &path, page);
    }
}

fn takes_a_value(flag: &Arg) -> bool {
    flag.get_action().takes_values()
}

/// `-w, --wait[=DURATION]`
fn as_typed(flag: &Arg) -> String {
    let short = flag.get_short().map(|short| format!("-{short}"));
    let long = flag.get_long().map(|long| format!("--{long}"));
    let names = [short, long].into_iter().flatten().collect::<Vec<_>>().join(", ");
    if !takes_a_value(flag) {
        return names;
    }
    let value = flag.get_value_names().map_or("VALUE", |names| names[0].as_str());
    let is_optional = flag.get_num_args().is_some_and(|count| count.min_values() == 0);
    if is_optional { format!("{names}[={value}]") } else { format!("{names} {value}") }
}

/// The help, with the values that there are and the default, as `--help` has them.
fn about(flag: &Arg) -> String {
    let mut about = flag.get_help().map(ToString::to_string).unwrap_or_default();
    let values = flag.get_possible_values();
    let names: Vec<&str> =
        values.iter().filter(|it| !it.is_hide_set()).map(clap::builder::PossibleValue::get_name).collect();
    if takes_a_value(flag) && !names.is_empty() && !flag.is_hide_possible_values_set() {
        let _ = write!(about, ": {}", names.join(", "));
    }
    let default: Vec<_> = flag.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes_a_value(flag) && !default.is_empty() && !flag.is_hide_default_value_set() {
        let _ = write!(about, " (default {})", default.join(","));
    }
    about
}

/// What a table can hold.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
