//! What was meant by a mistyped command. The similarity of names is clap's own.

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::{command, understand};

/// The help or version that is asked for by words, or the error with a tip.
pub(super) fn guess(words: &[OsString], mut error: clap::Error) -> clap::Error {
    let root = command();
    let is_about_it = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => word == "help" || word == "version",
        _ => false,
    };
    let asked = asked_by_words(&root, words).filter(|_| {
        error.kind() == ErrorKind::MissingRequiredArgument
            || is_about_it(ContextKind::InvalidSubcommand)
            || is_about_it(ContextKind::InvalidArg)
    });
    // A flag that shows something is an error to clap: nothing is ever done because of it.
    match asked.as_deref().map(understand) {
        Some(Err(mistyped)) if mistyped.kind() == ErrorKind::InvalidSubcommand => error = mistyped,
        Some(Err(shown)) => return shown,
        Some(Ok(_)) | None => {}
    }
    let (command, name) = understood(&root, asked.as_deref().unwrap_or(words));
    let is_root = command.get_name() == root.get_name();
    if error.kind() == ErrorKind::MissingRequiredArgument {
        return error;
    }
    if let Some(mistyped) = name.and_then(|name| mistyped_verb(command, &name)) {
        return mistyped;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let tips = if is_root {
        similar(&root, word)
    } else if error.get(ContextKind::SuggestedSubcommand).is_none() {
        similar(&root, word).iter().map(|path| format!("kubectl lease {path}")).collect()
    } else {
        Vec::new()
    };
    if !tips.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(tips));
    }
    error
}

/// `help maint acquire` and `version`, as they are typed with flags: commands alone, and the flag.
fn asked_by_words(root: &clap::Command, words: &[OsString]) -> Option<Vec<OsString>> {
    let (mut command, mut asked) = (root, None);
    let mut meant: Vec<OsString> = words.first().cloned().into_iter().collect();
    let mut after_flag = false;
    for word in words.iter().skip(1).take_while(|word| *word != "--") {
        let text = word.to_string_lossy();
        if text.starts_with('-') {
            after_flag = flag(root, word)
                .is_some_and(|flag| flag.get_action().takes_values() && !flag.is_require_equals_set());
        } else if let Some(below) = command.find_subcommand(word) {
            command = below;
            meant.push(word.clone());
            after_flag = false;
        } else if after_flag {
            // It may be the value of that.
            after_flag = false;
        } else if text == "help" {
            asked = Some("--help");
        } else if asked.is_none() && text == "version" && meant.len() == 1 {
            asked = Some("--version");
            break;
        } else {
            if command.has_subcommands() {
                meant.push(word.clone());
            }
            break;
        }
    }
    meant.push(asked?.into());
    Some(meant)
}

/// The flag of this command, or of one below it, that is typed so, and not together with its value.
pub fn flag<'a>(command: &'a clap::Command, word: &OsStr) -> Option<&'a clap::Arg> {
    let typed = word.to_str()?;
    let is_typed_so = |argument: &&clap::Arg| match typed.strip_prefix("--") {
        Some(long) => argument.get_long() == Some(long),
        None => argument.get_short().is_some_and(|short| typed == format!("-{short}")),
    };
    let below = || command.get_subcommands().find_map(|below| flag(below, word));
    command.get_arguments().find(is_typed_so).or_else(below)
}

/// The command that the words are for, as far as they are understood, and the first name it was given.
fn understood<'a>(root: &'a clap::Command, words: &[OsString]) -> (&'a clap::Command, Option<OsString>) {
    let Ok(matches) = root.clone().ignore_errors(true).try_get_matches_from(words) else {
        return (root, None);
    };
    let (mut command, mut matches) = (root, &matches);
    while let Some((verb, below)) = matches.subcommand()
        && let Some(found) = command.find_subcommand(verb)
    {
        (command, matches) = (found, below);
    }
    let mut given = command.get_positionals().filter_map(|name| matches.get_raw(name.get_id().as_str()));
    (command, given.next().and_then(|mut values| values.next()).map(OsStr::to_owned))
}

/// Where a command takes a name or a verb, as `candidates` does, clap takes a mistyped verb for the name
/// and complains of what comes after it. What it would say if there were only verbs.
fn mistyped_verb(above: &clap::Command, verb: &OsStr) -> Option<clap::Error> {
    let mut verbs = clap::Command::new("verbs")
        .override_usage(format!("kubectl lease {} SUBCOMMAND [options]", above.get_name()))
        .subcommands(above.get_subcommands().cloned());
    let error = verbs.try_get_matches_from_mut([OsStr::new("verbs"), verb]).err()?;
    error.get(ContextKind::SuggestedSubcommand).is_some().then_some(error)
}

/// The verb of this command that is most similar to what may be a name or a mistyped verb.
pub fn similar_verb(above: &str, word: &str) -> Option<String> {
    let error = mistyped_verb(command().find_subcommand(above)?, OsStr::new(word))?;
    // In clap's order the most similar comes last.
    suggested(&error).pop()
}

/// The commands called so, or else those with a similar name, also below others; each as it is typed.
fn similar(root: &clap::Command, word: &str) -> Vec<String> {
    let verbs = root.get_subcommands().flat_map(clap::Command::get_subcommands);
    let mut all = clap::Command::new("all").subcommands(root.get_subcommands().chain(verbs).cloned());
    let names = match all.try_get_matches_from_mut(["all", word]) {
        Err(error) if error.kind() == ErrorKind::InvalidSubcommand => suggested(&error),
        _ => vec![word.to_owned()],
    };
    let paths = |name: &String| -> Vec<String> {
        if root.find_subcommand(name).is_some() {
            return vec![name.clone()];
        }
        let above = root.get_subcommands().filter(|above| above.find_subcommand(name).is_some());
        above.map(|above| format!("{} {name}", above.get_name())).collect()
    };
    names.iter().flat_map(paths).collect()
}

fn suggested(error: &clap::Error) -> Vec<String> {
    match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(names)) => names.clone(),
        Some(ContextValue::String(name)) => vec![name.clone()],
        _ => Vec::new(),
    }
}
