//! The help, in the order and the look of kubectl's: what the command does, examples, options, usage.
//!
//! clap's own templates cannot put examples first or leave out the options that all commands have, so the
//! texts are made here and given to clap as they are.

use clap::{Arg, ArgAction, Command};

use super::flags::is_boolean;
use crate::output;

/// Lines are no longer than this, nor than the terminal is wide.
const WIDEST: usize = 100;

/// The command and all below it, with their texts.
pub(super) fn dressed(command: Command) -> Command {
    let path = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    let width = width();
    command.mut_subcommands(|below| dressed_below(below, &path, width))
}

fn dressed_below(command: Command, above: &str, width: usize) -> Command {
    let path = format!("{above} {}", command.get_name());
    let usage = command.get_overridden_usage().map_or_else(|| usage(&command, &path), ToString::to_string);
    let text = page(&command, &path, &usage, width);
    command
        .override_usage(usage)
        .override_help(text)
        .mut_subcommands(|below| dressed_below(below, &path, width))
}

/// What `kubectl lease options` prints.
pub(super) fn options(command: &Command) -> String {
    let global = command.get_arguments().filter(|flag| flag.is_global_set());
    format!("The following options can be passed to any command:\n\n{}", list_of_options(global, width()))
}

fn width() -> usize {
    let columns = output::width().map_or(WIDEST, usize::from);
    columns.clamp(40, WIDEST)
}

/// How the command is typed.
fn usage(command: &Command, path: &str) -> String {
    if command.is_subcommand_required_set() {
        return format!("{path} SUBCOMMAND [options]");
    }
    let (last, names): (Vec<_>, Vec<_>) = command.get_positionals().partition(|name| name.is_last_set());
    let mut words = vec![path.to_owned()];
    words.extend(names.iter().map(|name| {
        let shown = value_name(name) + if is_list(name) { "..." } else { "" };
        if name.is_required_set() { shown } else { format!("[{shown}]") }
    }));
    words.push("[options]".into());
    words.extend(last.iter().map(|name| format!("-- {} [args...]", value_name(name))));
    words.join(" ")
}

fn page(command: &Command, path: &str, usage: &str, width: usize) -> String {
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string);
    let mut parts = vec![flow(&about.unwrap_or_default(), width)];
    parts.extend(command.get_after_help().map(|examples| examples.to_string() + "\n"));
    if command.has_subcommands() {
        parts.push(format!("Available Commands:\n{}", list_of_commands(command, width)));
    }
    let named: Vec<_> = command.get_positionals().map(|name| argument(name, width)).collect();
    if !named.is_empty() {
        parts.push(format!("Arguments:\n{}", named.join("\n")));
    }
    let options = list_of_options(command.get_opts(), width);
    if !options.is_empty() {
        parts.push(format!("Options:\n{options}"));
    }
    let forms: Vec<_> = usage.lines().map(|form| format!("  {}", form.trim())).collect();
    parts.push(format!("Usage:\n{}\n", forms.join("\n")));
    let mut more = String::new();
    if command.has_subcommands() {
        let text = format!("Use \"{path} SUBCOMMAND --help\" for more information about a given command.");
        more += &wrapped(&text, "", width);
    }
    let text =
        "Use \"kubectl lease options\" for a list of global command-line options (applies to all commands).";
    more += &wrapped(text, "", width);
    parts.push(more);
    parts.join("\n")
}

fn list_of_commands(command: &Command, width: usize) -> String {
    let column = command.get_subcommands().map(|below| below.get_name().len()).max().unwrap_or(0) + 5;
    let line = |below: &Command| {
        let about = below.get_about().map(ToString::to_string).unwrap_or_default();
        let text = wrapped(&about, &" ".repeat(column), width);
        let (name, name_and_gap) = (below.get_name(), column - 2);
        format!("  {name:name_and_gap$}{}", text.trim_start())
    };
    command.get_subcommands().filter(|below| !below.is_hide_set()).map(line).collect()
}

/// By their names, as kubectl has them.
fn list_of_options<'a>(options: impl Iterator<Item = &'a Arg>, width: usize) -> String {
    let mut options: Vec<_> = options.filter(|flag| !flag.is_hide_set()).collect();
    options.sort_by_key(|flag| flag.get_long());
    options.iter().map(|flag| option(flag, width)).collect::<Vec<_>>().join("\n")
}

fn option(flag: &Arg, width: usize) -> String {
    let short = flag.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    let long = flag.get_long().unwrap_or_default();
    format!("    {short}--{long}={}:\n{}", default_of(flag), described(flag, width))
}

fn argument(name: &Arg, width: usize) -> String {
    let list = if is_list(name) && !name.is_last_set() { "..." } else { "" };
    format!("    {}{list}:\n{}", value_name(name), described(name, width))
}

fn described(argument: &Arg, width: usize) -> String {
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    wrapped(&sentence(&help), "        ", width)
}

/// What the flag is when it is not given, as kubectl writes it: strings in quotes.
fn default_of(flag: &Arg) -> String {
    let value = flag.get_default_values().first().map(|value| value.to_string_lossy());
    let is_bare = is_boolean(flag) || value_name(flag) == "DURATION";
    match value {
        Some(value) if is_bare => value.into_owned(),
        Some(value) => format!("'{value}'"),
        None if matches!(flag.get_action(), ArgAction::Append) => "[]".to_owned(),
        None if is_bare => "0s".to_owned(),
        None => "''".to_owned(),
    }
}

fn value_name(argument: &Arg) -> String {
    let first = argument.get_value_names().and_then(<[_]>::first).map(ToString::to_string);
    first.unwrap_or_else(|| argument.get_id().as_str().to_uppercase())
}

fn is_list(argument: &Arg) -> bool {
    argument.get_num_args().is_some_and(|count| count.max_values() > 1)
}

/// clap takes the full stop off a text of one line.
fn sentence(text: &str) -> String {
    if text.ends_with(['.', ':', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// Paragraphs that fill the width, and tables with their words in a column.
fn flow(text: &str, width: usize) -> String {
    let mut shown = Vec::new();
    let mut paragraph = Vec::new();
    for (n, line) in text.lines().chain([""]).enumerate() {
        let row = line.strip_prefix("  ").and_then(|row| row.split_once("  "));
        if row.is_none() && !line.is_empty() {
            // The first line says what the command does, and is a sentence of its own.
            paragraph.push(if n == 0 { sentence(line) } else { line.to_owned() });
            continue;
        }
        shown.push(wrapped(&paragraph.join(" "), "", width));
        paragraph.clear();
        shown.push(row.map_or("\n".into(), |(word, meaning)| {
            let column = line.len() - meaning.trim_start().len();
            let word_and_gap = column - 2;
            let meaning = wrapped(meaning, &" ".repeat(column), width);
            format!("  {word:word_and_gap$}{}", meaning.trim_start())
        }));
    }
    format!("{}\n", shown.concat().trim_end())
}

/// The words in lines of at most this width, each behind the indent.
fn wrapped(text: &str, indent: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        if length == 0 || length + 1 + word.len() > width {
            lines.push_str(if length == 0 { "" } else { "\n" });
            lines.push_str(indent);
            length = indent.len();
        } else {
            lines.push(' ');
            length += 1;
        }
        lines.push_str(word);
        length += word.len();
    }
    lines.push_str(if length == 0 { "" } else { "\n" });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_filled_and_tables_keep_their_columns() {
        let text = "Show it\n\nOne two three\nfour five.\n\n  ok      all is\n  bad     something is very wrong here\n\nEnd.";
        let shown = "\
Show it.

One two three four five.

  ok      all is
  bad     something is
          very wrong
          here

End.
";
        assert_eq!(flow(text, 24), shown);
    }

    #[test]
    fn a_long_text_is_wrapped_between_words() {
        assert_eq!(wrapped("a bb ccc dddd", "  ", 8), "  a bb\n  ccc\n  dddd\n");
        assert_eq!(wrapped("https://example.invalid is long", "", 10), "https://example.invalid\nis long\n");
        assert_eq!(wrapped("", "  ", 8), "");
    }
}
