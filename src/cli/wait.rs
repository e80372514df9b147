//! `--wait`, of every command that has it.

use std::{ffi::OsString, str::FromStr, time::Duration};

use clap::Arg;

use super::values::duration;

/// Whether to wait for what the command is about, and for how long at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    #[default]
    No,
    /// `--wait`.
    Unlimited,
    /// `--wait=5m` or `--wait 5m`.
    AtMost(Duration),
}

impl Wait {
    pub fn is_set(self) -> bool {
        self != Self::No
    }
}

impl From<Wait> for kube_leases::protocols::Wait {
    fn from(wait: Wait) -> Self {
        match wait {
            Wait::No => Self::No,
            Wait::Unlimited => Self::Forever,
            Wait::AtMost(limit) => Self::AtMost(limit),
        }
    }
}

impl FromStr for Wait {
    type Err = String;

    /// `true` and `false` are values of kubectl's own `--wait`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "false" => Ok(Self::No),
            "true" => Ok(Self::Unlimited),
            _ => duration(text).map(Self::AtMost),
        }
    }
}

/// What a field of type [`Wait`] is made with: `#[arg(long, wait())]`.
pub trait WaitFlag {
    fn wait(self) -> Self;
}

impl WaitFlag for Arg {
    fn wait(self) -> Self {
        self.required(false)
            .num_args(0..=1)
            .require_equals(true)
            .value_name("DURATION")
            .default_value("false")
            .default_missing_value("true")
            .hide_default_value(true)
    }
}

/// The words typed, with `--wait 5m` made `--wait=5m`: the duration is optional, so clap alone would take
/// `5m` for the next argument.
pub(super) fn joined(typed: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let mut command = false;
    for word in typed {
        let limit =
            word.to_str().filter(|text| text.ends_with(char::is_alphabetic) && duration(text).is_ok());
        match (words.last_mut(), limit) {
            (Some(last), Some(limit)) if !command && last == "--wait" => last.push(format!("={limit}")),
            _ => {
                command |= word == "--";
                words.push(word);
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[arg(long, wait())]
        wait: Wait,

        nodes: Vec<String>,

        #[arg(last = true)]
        command: Vec<String>,
    }

    fn parse(line: &str) -> Result<Typed, clap::Error> {
        Typed::try_parse_from(joined(line.split(' ').map(OsString::from)))
    }

    #[test]
    fn a_wait_may_have_a_limit_or_none() {
        let minutes = |n: u64| Wait::AtMost(Duration::from_secs(n * 60));
        for (line, wait, nodes) in [
            ("x", Wait::No, vec![]),
            ("x --wait", Wait::Unlimited, vec![]),
            ("x --wait=true", Wait::Unlimited, vec![]),
            ("x --wait=false", Wait::No, vec![]),
            ("x --wait=5m", minutes(5), vec![]),
            ("x --wait 5m", minutes(5), vec![]),
            ("x --wait=300", minutes(5), vec![]),
            ("x --wait=0s", minutes(0), vec![]),
            ("x --wait node-1", Wait::Unlimited, vec!["node-1"]),
            ("x node-1 --wait", Wait::Unlimited, vec!["node-1"]),
            ("x --wait 5m node-1", minutes(5), vec!["node-1"]),
            // A bare number may be the name of a node.
            ("x --wait 300", Wait::Unlimited, vec!["300"]),
            ("x node-1 --wait 5m -- sleep --wait 5m", minutes(5), vec!["node-1"]),
        ] {
            let typed = parse(line).unwrap();
            assert_eq!((typed.wait, typed.nodes), (wait, nodes.iter().map(ToString::to_string).collect()));
            assert_eq!(typed.wait.is_set(), wait != Wait::No, "{line}");
            let own = ["sleep", "--wait", "5m"].map(str::to_owned);
            assert!(typed.command.is_empty() || typed.command == own, "{line}");
        }
        for line in ["x --wait=", "x --wait=-5m", "x --wait=30M", "x --wait=soon", "x --wait --wait"] {
            assert_eq!(parse(line).err().unwrap().exit_code(), 2, "{line}");
        }
    }
}
