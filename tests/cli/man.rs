//! The man pages, one for each command, from the texts of the help.

use std::{
    collections::BTreeMap,
    io::{ErrorKind, Write as _},
    process::{Command as Process, Stdio},
};

use clap::{Arg, Command};
use clap_mangen::{
    Man,
    roff::{Roff, bold, roman},
};
use kubectl_lease::{cli, exit::ExitCode};

const ROOT: &str = "kubectl-lease";
/// The page that has the global options, which the others refer to.
const OPTIONS: &str = "kubectl-lease-options";

/// By the names of their files.
pub fn pages() -> BTreeMap<String, String> {
    let every = every_command();
    every.iter().map(|(command, help)| (format!("{}.1", name(command)), page(command, help))).collect()
}

/// Every command, and the part of its help that has the examples: for the first, the overview.
fn every_command() -> Vec<(Command, String)> {
    let mut root = in_full(cli::shown(cli::command()));
    let overview = root.render_help().to_string();
    root.build();
    let mut every = vec![(root, overview)];
    let mut next = 0;
    while let Some((command, _)) = every.get(next) {
        let below: Vec<_> = command.get_subcommands().cloned().collect();
        every.extend(below.into_iter().map(|command| {
            let help = command.get_after_help().unwrap().to_string();
            (command, help)
        }));
        next += 1;
    }
    every
}

fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or(ROOT)
}

/// With a heading for what is not an option.
fn in_full(command: Command) -> Command {
    command
        .mut_args(
            |argument| if argument.is_positional() { argument.help_heading("Arguments") } else { argument },
        )
        .subcommand_help_heading("COMMANDS")
        .mut_subcommands(in_full)
}

fn page(command: &Command, help: &str) -> String {
    let is_root = name(command) == ROOT;
    let has_global = name(command) == OPTIONS;
    let hidden = |flag: Arg| if flag.is_global_set() { flag.hide(!has_global) } else { flag };
    let man = Man::new(command.clone().mut_args(hidden));
    let mut sections = Vec::new();
    man.render_name_section(&mut sections).unwrap();
    man.render_synopsis_section(&mut sections).unwrap();
    let mut own = Roff::default();
    description(command, &mut own);
    if is_root {
        remarks(help, &mut own);
        commands(help, &mut own);
    }
    own.to_writer(&mut sections).unwrap();
    if !is_root && command.has_subcommands() {
        man.render_subcommands_section(&mut sections).unwrap();
    }
    man.render_options_section(&mut sections).unwrap();
    let mut own = Roff::default();
    exit_status(command, &mut own);
    examples(help, &mut own);
    if !has_global {
        own.control("SH", ["SEE ALSO"]).text([bold(OPTIONS), roman("(1) for the options of all commands")]);
    }
    own.to_writer(&mut sections).unwrap();

    // Each part brings these definitions; once is enough.
    let definitions = Roff::default().render();
    let sections = String::from_utf8(sections).unwrap().replace(&definitions, "");
    // Not by clap_mangen, which writes an empty date as nothing at all: the version took its place.
    let (name, version) = (name(command), env!("CARGO_PKG_VERSION"));
    let title = format!(".TH {name} 1 \"\" \"{ROOT} {version}\" \"kubectl lease\"\n");
    definitions + &title + &ascii(&sections)
}

/// groff prints some characters as typographic ones, which cannot be pasted into a shell, and takes none
/// beyond ASCII.
fn ascii(text: &str) -> String {
    let escaped = |c: char| match c {
        '~' => "\\(ti".to_owned(),
        '^' => "\\(ha".to_owned(),
        '`' => "\\(ga".to_owned(),
        c if c.is_ascii() => c.to_string(),
        c => format!("\\[u{:04X}]", u32::from(c)),
    };
    text.chars().map(escaped).collect()
}

fn description(command: &Command, page: &mut Roff) {
    let about = command.get_long_about().or(command.get_about()).unwrap().to_string();
    page.control("SH", ["DESCRIPTION"]);
    for line in about.lines() {
        match line.strip_prefix("  ").and_then(|row| row.split_once("  ")) {
            Some((word, meaning)) => {
                page.control("TP", ["12"]).text([bold(word)]).text([roman(meaning.trim())]);
            }
            None if line.is_empty() => {
                page.control("PP", []);
            }
            None => {
                page.text([roman(line)]);
            }
        }
    }
}

/// The lines below the examples of the overview.
fn remarks(overview: &str, page: &mut Roff) {
    let (_, lines) = overview.split_once("Examples:\n").unwrap();
    let remarks: Vec<_> = lines.lines().filter(|line| !line.starts_with(' ')).collect();
    page.control("PP", []).text([roman(remarks.join("\n"))]);
}

/// The commands by the questions that they answer.
fn commands(overview: &str, page: &mut Roff) {
    page.control("SH", ["COMMANDS"]);
    let lines = overview.lines().skip_while(|line| !line.is_empty()).skip(1);
    for line in lines.take_while(|line| *line != "Examples:") {
        match line.strip_prefix("  ").and_then(|row| row.split_once("  ")) {
            Some((name, about)) => {
                page.control("TP", []);
                page.text([bold(format!("kubectl-lease-{name}")), roman("(1)")]);
                page.text([roman(about.trim())]);
            }
            None => {
                page.control("SS", [line]);
            }
        }
    }
}

fn exit_status(command: &Command, page: &mut Roff) {
    page.control("SH", ["EXIT STATUS"]);
    for exit in ExitCode::ALL {
        page.control("TP", []).text([bold(exit.code().to_string())]).text([roman(exit.meaning())]);
    }
    if command.get_positionals().any(clap::Arg::is_last_set) {
        page.control("TP", []).text([bold("other")]).text([roman(ExitCode::Child(0).meaning())]);
    }
}

/// Line by line: an example is there to be pasted.
fn examples(help: &str, page: &mut Roff) {
    page.control("SH", ["EXAMPLES"]).control("nf", []);
    for line in lines_of_examples(help) {
        page.text([roman(line)]);
    }
    page.control("fi", []);
}

fn lines_of_examples(help: &str) -> impl Iterator<Item = &str> {
    let (_, lines) = help.split_once("Examples:\n").unwrap();
    let indented = lines.lines().take_while(|line| line.is_empty() || line.starts_with("  "));
    indented.map(|line| line.strip_prefix("  ").unwrap_or(line))
}

#[test]
fn every_page_is_whole() {
    let version = concat!("\"kubectl-lease ", env!("CARGO_PKG_VERSION"), "\"");
    for (name, page) in pages() {
        assert!(page.lines().any(|line| line.starts_with(".TH") && line.contains(version)), "{name}");
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "\"EXIT STATUS\"", "EXAMPLES\n.nf"] {
            assert!(page.contains(&format!("\n.SH {section}\n")), "{name}: {section}");
        }
        assert!(!page.contains("EXTRA"), "{name}");
        assert!(page.is_ascii(), "{name}");
        let lines: Vec<_> = page.lines().collect();
        for at in lines.iter().enumerate().filter(|(_, line)| line.starts_with(".TP")).map(|(at, _)| at) {
            let described = lines.get(at + 2).is_some_and(|line| !line.is_empty() && !line.starts_with('.'));
            assert!(described, "{name}: {} is not described", lines[at + 1]);
        }
    }
}

#[test]
fn the_global_options_are_on_a_page_of_their_own() {
    for (name, page) in pages() {
        let is_theirs = name == format!("{OPTIONS}.1");
        assert_eq!(page.contains("\\-\\-kubeconfig\\fR"), is_theirs, "{name}");
        assert_eq!(page.contains("\n.SH \"SEE ALSO\"\n"), !is_theirs, "{name}");
        assert!(!page.contains("BOOL"), "{name}");
    }
}

#[test]
fn a_page_says_how_a_command_is_typed() {
    let pages = pages();
    for (name, usage) in [
        ("kubectl-lease", "\\fBkubectl lease\\fR COMMAND [options]"),
        (
            "kubectl-lease-maint-run",
            "\\fBkubectl lease maint run\\fR (NODE... | \\-l label | \\-\\-all) [options] \\-\\- COMMAND [args...]",
        ),
        ("kubectl-lease-hold", "\\fBkubectl lease hold\\fR NAME [options] \\-\\- COMMAND [args...]"),
    ] {
        let page = &pages[&format!("{name}.1")];
        assert!(page.contains(&format!(".SH SYNOPSIS\n{usage}\n")), "{name}: {page}");
    }
    assert!(pages["kubectl-lease-hold.1"].contains("\\fBother\\fR\nthe command\\*(Aqs own\n"));
}

/// Where groff is installed: it has nothing to complain of, and each example is on a line of its own.
#[test]
fn groff_sets_every_page() {
    for (command, help) in every_command() {
        let (name, page) = (name(&command), page(&command, &help));
        let groff = Process::new("groff")
            .args(["-man", "-Tutf8", "-ww", "-rLL=100n", "-P-c", "-P-b", "-P-u", "-P-o"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut groff = match groff {
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            started => started.unwrap(),
        };
        groff.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
        let output = groff.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name}");
        let set = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<_> = set.lines().map(str::trim).collect();
        for example in lines_of_examples(&help) {
            assert!(lines.contains(&example), "{name}: '{example}' is not in {set}");
        }
    }
}
