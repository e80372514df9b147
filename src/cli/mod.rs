//! What can be typed: clap types, a file for each command, and tips for what was mistyped.

// The comments here are the help texts, where backticks would be printed.
#![allow(clippy::doc_markdown)]

mod apiservers;
mod candidates;
mod completion;
mod connection;
mod doctor;
mod fence;
mod flags;
mod force_delete;
mod help;
mod hold;
mod identity;
mod leaders;
mod listing;
mod maint;
mod nodes;
mod partitions;
mod taking;
mod tips;
mod values;
mod wait;
mod write;

use std::ffi::OsString;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, error::ErrorKind};

pub use self::{
    apiservers::Apiservers,
    candidates::{
        Candidates, CandidatesVerb, ClearPriority, Explain, Prune, Rehearse, Repair, SetPriority,
        WaitForLeader,
    },
    completion::{Completion, InstallCompletion},
    connection::Connection,
    doctor::{Doctor, Manifest},
    fence::Fence,
    flags::shown,
    force_delete::{Consent, ForceDelete},
    hold::Hold,
    identity::Identity,
    leaders::Leaders,
    listing::{Listing, Scope},
    maint::{Acquire, Maint, MaintList, Only, Release, Renew, Run, Status},
    nodes::Nodes,
    partitions::Partitions,
    taking::Taking,
    tips::{flag, similar_verb},
    wait::Wait,
    write::{DryRun, Output, Write},
};

/// The commands by the questions that they answer, on one screen.
const OVERVIEW: &str = "\
Inspect and acquire Kubernetes leases. Usage: kubectl lease COMMAND [options]

Which control-plane members are alive?
  apiservers     List kube-apiservers and whether they are alive
Who leads, who would lead next, and how do I move it?
  candidates     List election candidates; explain, set-priority, wait, ...
  leaders        List leader-election leases, coordinated or not
May I touch this node now, and how do I keep others off it?
  maint          Manage maintenance leases: acquire, renew, release, run, ...
  hold           Run a command while holding a lease
Is it safe to force-delete this pod, and what is safer?
  partitions     List nodes without heartbeats and the pods stranded on them
  force-delete   Force-delete pods after an assessment of the risk
  fence          Mark a node out of service after its machine was powered off
What can I do here?
  doctor         Check what the cluster supports and what you may do
  completion     Output shell completion code
  options        List the global command-line options (apply to all commands)
Examples:
  kubectl lease candidates --watch
  kubectl lease maint run node-1 -- kubectl drain node-1 --ignore-daemonsets
  kubectl lease force-delete pod db-0
Use \"kubectl lease COMMAND --help\" for more information about a given command.";

const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("KUBECTL_LEASE_COMMIT"),
    "; for Kubernetes 1.31 and later, tested on ",
    env!("KUBECTL_LEASE_TESTED"),
    ")"
);

/// Inspect and acquire Kubernetes leases
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-lease",
    bin_name = "kubectl lease",
    version = VERSION,
    override_help = OVERVIEW,
    override_usage = "kubectl lease COMMAND [options]",
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub struct Cli {
    #[command(flatten)]
    pub connection: Connection,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Apiservers(Apiservers),
    Candidates(Candidates),
    Leaders(Leaders),
    #[command(subcommand)]
    Maint(Maint),
    Hold(Hold),
    Partitions(Partitions),
    ForceDelete(ForceDelete),
    Fence(Fence),
    Doctor(Doctor),
    #[command(subcommand)]
    Completion(Completion),
    /// List the global command-line options
    #[command(after_help = OPTIONS_EXAMPLES, override_usage = "kubectl lease options")]
    Options,
}

const OPTIONS_EXAMPLES: &str = "\
Examples:
  # List the options that can be passed to any command
  kubectl lease options";

impl Cli {
    /// A namespace that was typed where there is none to choose: what was meant by it would be left undone without a
    /// word.
    pub fn check_namespace(&self) -> crate::error::Result<()> {
        let command = match self.command {
            Command::Apiservers(_) => "apiservers",
            Command::Maint(_) => "maint",
            Command::Fence(_) => "fence",
            _ => return Ok(()),
        };
        let Some(namespace) = self.connection.namespace.as_ref().filter(|name| !name.is_empty()) else {
            return Ok(());
        };
        Err(crate::error::Error::Usage {
            message: format!("--namespace ({namespace}) cannot be used with '{command}'"),
            hint: Some("it is about the whole cluster; leave out -n".to_owned()),
        })
    }
}

/// What was typed, or what is wrong with it, with a tip where it can be guessed what was meant.
pub fn parse(typed: impl Iterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let words = wait::joined(typed);
    understand(&words).map_err(flags::without_value_names).map_err(|error| match error.kind() {
        ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument | ErrorKind::MissingRequiredArgument => {
            tips::guess(&words, error)
        }
        _ => error,
    })
}

fn understand(words: &[OsString]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(words).or_else(|error| {
        if error.kind() == ErrorKind::DisplayVersion {
            return Err(error);
        }
        // The texts are made only where one of them is shown.
        let mut command = command();
        let mut matches = command.try_get_matches_from_mut(words)?;
        Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    })
}

/// The definition of the command line, with the help of each command.
pub fn command() -> clap::Command {
    help::dressed(Cli::command())
}

/// What `kubectl lease options` prints.
pub fn options() -> String {
    help::options(&Cli::command())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        understand(&wait::joined(line.split(' ').map(OsString::from)))
    }

    #[test]
    fn a_priority_against_the_version_skew_policy_is_set_by_force_or_anyway() {
        for (flags, forced) in [("", false), (" --force", true), (" --anyway", true)] {
            let cli = parse(&format!("kubectl-lease candidates set-priority cp-1 5{flags}")).unwrap();
            let Command::Candidates(Candidates { verb: Some(CandidatesVerb::SetPriority(args)), .. }) =
                cli.command
            else {
                panic!("{flags}")
            };
            assert_eq!(args.force, forced, "{flags}");
        }
    }

    #[test]
    fn every_boolean_flag_takes_true_and_false_as_for_kubectl() {
        fn check(command: &clap::Command) {
            for flag in command.get_opts().filter(|flag| flag.get_long() != Some("version")) {
                assert!(flag.get_action().takes_values(), "{} {flag} takes no value", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        for (line, watch, no_headers) in [
            ("x apiservers", false, false),
            ("x apiservers -w", true, false),
            ("x apiservers -w=false", false, false),
            ("x apiservers --watch=true --no-headers=false", true, false),
            ("x apiservers -wo json --no-headers", true, true),
            ("x apiservers --watch name", true, false),
        ] {
            let Command::Apiservers(args) = parse(line).unwrap().command else { panic!("{line}") };
            assert_eq!((args.listing.watch, args.listing.no_headers), (watch, no_headers), "{line}");
        }
        let connection = |line: &str| parse(line).unwrap().connection;
        assert!(connection("x --insecure-skip-tls-verify apiservers").insecure_skip_tls_verify);
        assert!(!connection("x apiservers --insecure-skip-tls-verify=false").insecure_skip_tls_verify);
        assert!(connection("x apiservers --disable-compression=true").disable_compression);

        check(&Cli::command());
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for line in [
            "x partitions -w --exit-code",
            "x apiservers -w --exit-code",
            "x candidates -w --exit-code",
            "x leaders -w --exit-code",
            "x doctor --print guard --no-headers",
            "x doctor --print guard --clocks",
            "x apiservers --watch=maybe",
            "x fence",
            "x fence a b",
            "x fence a --i-have-fenced",
            "x options all",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn a_help_has_examples_options_and_usage_in_the_order_of_kubectl() {
        fn check(command: &clap::Command) {
            for below in command.get_subcommands() {
                let help = below.clone().render_long_help().to_string();
                assert_eq!(help, below.clone().render_help().to_string(), "-h is the same");
                let about = format!("{}.\n", below.get_about().unwrap());
                assert!(help.starts_with(&about), "{help}");
                let at = |heading: &str| help.find(&format!("\n{heading}:\n"));
                let places: Vec<_> = ["Examples", "Available Commands", "Arguments", "Options", "Usage"]
                    .iter()
                    .filter_map(|heading| at(heading))
                    .collect();
                assert!(places.is_sorted() && at("Examples").is_some() && at("Usage").is_some(), "{help}");
                let end = "Use \"kubectl lease options\" for a list of global command-line options (applies to all commands).\n";
                assert!(help.ends_with(end), "{help}");
                assert!(!help.contains("--kubeconfig"), "{help}");
                check(below);
            }
        }
        check(&command());
    }

    #[test]
    fn the_global_options_are_those_of_the_connection() {
        let options = options();
        for flag in Cli::command().get_arguments().filter(|flag| flag.is_global_set()) {
            let line = format!("--{}=", flag.get_long().unwrap());
            assert!(options.contains(&line), "{line}");
        }
        assert!(options.contains("    -n, --namespace='':\n        If present, the namespace scope"));
        assert!(options.contains("    --as-group=[]:\n") && options.contains("    --request-timeout=30s:\n"));
    }

    #[test]
    fn the_overview_has_every_command_and_fits_a_screen() {
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let line = format!("\n  {} ", command.get_name());
            assert!(OVERVIEW.contains(&line), "{line}");
        }
        assert!(OVERVIEW.lines().count() < 24, "and a prompt below it");
        assert!(OVERVIEW.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn help_and_version_are_words_too() {
        let shown = |line: &str| {
            let error = super::parse(line.split(' ').map(OsString::from)).unwrap_err();
            (error.exit_code(), error.to_string())
        };
        for (words, flag) in [
            ("x help", "x --help"),
            ("x help maint", "x maint --help"),
            ("x help maint acquire", "x maint acquire --help"),
            ("x maint help acquire", "x maint acquire --help"),
            ("x -n help help candidates explain", "x candidates explain --help"),
            ("x -n help maint help", "x maint --help"),
            ("x candidates help set-priority", "x candidates set-priority --help"),
            ("x doctor help", "x doctor --help"),
            ("x help help", "x --help"),
            ("x --insecure-skip-tls-verify help maint", "x maint --help"),
            ("x -nshop help", "x --help"),
            ("x --context prod version", "x --version"),
            // What is behind '--' is a command, and is not run.
            ("x help maint run node-1 -- reboot", "x maint run --help"),
            ("x help hold x -- reboot", "x hold --help"),
            ("x version hold x -- reboot", "x --version"),
        ] {
            assert_eq!(shown(words), shown(flag), "{words}");
            assert_eq!(shown(words).0, 0, "{words}");
        }
        assert_eq!(shown("x help frobnicate"), shown("x frobnicate"));
        assert_eq!(shown("x -- help").0, 2);
        assert_eq!(shown("x maint acquire help --bogus").0, 2, "a node may be called so");
        assert_eq!(shown("x maint version").0, 2);
    }

    #[test]
    fn names_and_durations_that_cannot_be_are_refused() {
        for line in [
            "x maint acquire ../pods",
            "x maint acquire Node",
            "x maint acquire a/b",
            "x maint acquire node-1 -d 0",
            "x maint acquire node-1 -d=-5m",
            "x maint acquire node-1 -d 70y",
            "x maint acquire node-1 --all",
            "x maint run node-1",
            "x maint run node-1 -d 2s -- true",
            "x hold",
            "x hold a b -- true",
            "x maint release node-1 --confirm",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn every_command_has_examples_of_itself() {
        fn check(command: &clap::Command, path: &str) {
            for below in command.get_subcommands() {
                let path = format!("{path} {}", below.get_name());
                let text = below.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(text.starts_with("Examples:\n  # ") && text.contains(&path), "{path}: {text}");
                check(below, &path);
            }
        }
        check(&Cli::command(), "kubectl lease");
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
