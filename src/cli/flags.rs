//! Boolean flags, as kubectl has them: `--watch`, `--watch=true` and `--watch=false`.

use clap::{
    Arg, ArgAction, Command,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _},
    error::{ContextKind, ContextValue},
};

/// What Go's `strconv.ParseBool` reads, and with it kubectl.
const TRUE: [&str; 5] = ["1", "t", "T", "TRUE", "True"];
const FALSE: [&str; 5] = ["0", "f", "F", "FALSE", "False"];

/// The name of the value, by which such a flag is known.
const BOOL: &str = "BOOL";

/// What a field of type `bool` is made with: `#[arg(long, boolean())]`.
pub trait BooleanFlag {
    fn boolean(self) -> Self;
}

impl BooleanFlag for Arg {
    fn boolean(self) -> Self {
        let values = [PossibleValue::new("true").aliases(TRUE), PossibleValue::new("false").aliases(FALSE)];
        let is_true = |value: String| value == "true" || TRUE.contains(&value.as_str());
        self.action(ArgAction::Set)
            .num_args(0..=1)
            .require_equals(true)
            .value_parser(PossibleValuesParser::new(values).map(is_true))
            .value_name(BOOL)
            .default_value("false")
            .default_missing_value("true")
            .hide_default_value(true)
            .hide_possible_values(true)
    }
}

/// The error, without the value that such a flag may have behind its name.
pub(super) fn without_value_names(mut error: clap::Error) -> clap::Error {
    let bare = |text: &String| text.replace("[=<BOOL>]", "");
    for kind in [ContextKind::InvalidArg, ContextKind::PriorArg] {
        let names = match error.get(kind) {
            Some(ContextValue::String(name)) => ContextValue::String(bare(name)),
            Some(ContextValue::Strings(names)) => ContextValue::Strings(names.iter().map(bare).collect()),
            _ => continue,
        };
        error.insert(kind, names);
    }
    error
}

pub(super) fn is_boolean(flag: &Arg) -> bool {
    flag.get_value_names().is_some_and(|names| names == [BOOL])
}

/// The definition as completion scripts and man pages have it: boolean flags have no values, which would be
/// offered as words of their own, and `-h` is the same as `--help`.
pub fn shown(mut command: Command) -> Command {
    command.build();
    plain(command)
}

fn plain(command: Command) -> Command {
    let plain_flag = |flag: Arg| {
        if matches!(flag.get_action(), ArgAction::Help) {
            return flag.help("Print help").long_help(None);
        }
        if !is_boolean(&flag) {
            return flag;
        }
        flag.action(ArgAction::SetTrue)
            .num_args(0)
            .require_equals(false)
            .value_parser(clap::value_parser!(bool))
            .value_name(None)
            .default_value(None)
            .default_missing_value(None)
            .hide_default_value(false)
            .hide_possible_values(false)
    };
    command.mut_args(plain_flag).mut_subcommands(plain)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[arg(short, long, boolean())]
        watch: bool,

        #[arg(short, long, boolean())]
        yes: bool,

        name: Option<String>,
    }

    #[test]
    fn a_boolean_flag_is_read_as_by_kubectl() {
        for (line, watch, yes, name) in [
            ("x", false, false, None),
            ("x --watch", true, false, None),
            ("x --watch=true", true, false, None),
            ("x --watch=false", false, false, None),
            ("x --watch=1", true, false, None),
            ("x --watch=F", false, false, None),
            ("x --watch=True", true, false, None),
            ("x -w", true, false, None),
            ("x -w=false", false, false, None),
            ("x -wy", true, true, None),
            // What follows is no value of it.
            ("x --watch false", true, false, Some("false")),
            ("x -y name", false, true, Some("name")),
        ] {
            let typed = Typed::try_parse_from(line.split(' ')).unwrap();
            assert_eq!((typed.watch, typed.yes, typed.name.as_deref()), (watch, yes, name), "{line}");
        }
        for line in ["x --watch=maybe", "x --watch=", "x --watch=yes", "x --watch --watch"] {
            assert_eq!(Typed::try_parse_from(line.split(' ')).err().unwrap().exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn where_it_is_only_shown_it_has_no_value() {
        use clap::CommandFactory as _;
        let command = shown(Typed::command());
        for flag in command.get_arguments().filter(|flag| !flag.is_positional()) {
            assert!(!flag.get_action().takes_values(), "{flag}");
        }
        command.debug_assert();
    }
}
