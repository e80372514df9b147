//! Completion through kubectl.
//!
//! For `kubectl lease …<TAB>` kubectl runs a program `kubectl_complete-lease` from the PATH with the
//! words typed so far, an empty last one where a new word begins, and takes one choice from each line
//! of what it prints; a last line `:4` says that file names are no choices. It is this same binary
//! under that name, and says `:0` behind `--`, where a command and its files follow. Names come from the
//! cluster that the words typed so far mean, within a second or not at all. No error is printed: it would
//! land in the middle of the command line.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    path::Path,
    sync::mpsc,
    thread,
    time::Duration,
};

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, ValueHint};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate, complete};
use serde::Deserialize;

use crate::{
    cli::{Cli, Connection, flag},
    output::sanitise,
};
use kube_leases::{
    client::{
        Cluster, NAMESPACES, NODES, PODS, Query,
        candidates::{candidates_query, leases_query},
    },
    rules::{
        candidate::{self, Candidate},
        identity::{self, Identity},
        leader,
        lease::{Lease, Metadata},
        priority::Priority,
    },
};

/// The name by which kubectl finds it.
pub const PROGRAM: &str = "kubectl_complete-lease";

/// kubectl has no timeout of its own here.
const WITHIN: Duration = Duration::from_millis(800);
/// For what cannot be cancelled, such as reading a kubeconfig that is a pipe without a writer.
const AT_MOST: Duration = Duration::from_millis(950);
/// More choices are of no use on a terminal.
const MOST: u32 = 500;

/// Whether this program was called under the name by which kubectl asks for completions.
pub fn is_asked(program: &Path) -> bool {
    program.file_stem().is_some_and(|name| name == PROGRAM)
}

/// The choices for the last of these words, for kubectl to read.
pub fn answer(words: Vec<OsString>) -> String {
    let (sender, choices) = mpsc::channel();
    thread::spawn(move || sender.send(choices_for(&words)));
    choices.recv_timeout(AT_MOST).unwrap_or_else(|_| NO_FILES.to_owned())
}

/// The last line: file names are no choices; or they are the only ones.
const NO_FILES: &str = ":4\n";
const FILES: &str = ":0\n";

fn choices_for(words: &[OsString]) -> String {
    let mut typed = vec![OsString::from("kubectl-lease")];
    typed.extend_from_slice(words);
    typed.resize(typed.len().max(2), OsString::new());
    if typed[..typed.len() - 1].iter().any(|word| word == "--") {
        return FILES.to_owned();
    }
    let command = Cli::command();
    let before = &typed[typed.len() - 2];
    let hint = flag(&command, before).map(clap::Arg::get_value_hint);
    if matches!(hint, Some(ValueHint::FilePath | ValueHint::DirPath)) {
        return FILES.to_owned();
    }
    // These may stand alone: what follows them is no value of theirs.
    let word = typed.pop().unwrap_or_default();
    typed.retain(|word| !flag(&command, word).is_some_and(clap::Arg::is_require_equals_set));
    typed.push(word);
    let last = typed.len() - 1;
    let word = typed[last].to_string_lossy().into_owned();
    let matches =
        command.clone().ignore_errors(true).try_get_matches_from(&typed[..last]).unwrap_or_default();
    let mut command = with_names(command, &word, &matches);
    let choices = complete(&mut command, typed, last, None).unwrap_or_default();
    // kubectl takes the flag off that the value belongs to, and puts it back.
    let (flag, _) = word.split_once('=').filter(|_| word.starts_with('-')).unwrap_or_default();
    let prefix = if flag.is_empty() { String::new() } else { format!("{flag}=") };
    let mut lines: String = choices
        .iter()
        .filter(|choice| !choice.is_hide_set())
        .filter_map(|choice| {
            let value = choice.get_value().to_str()?;
            // As kubectl itself: flags only after a dash.
            if value.starts_with('-') && !word.starts_with('-') {
                return None;
            }
            let value = value.strip_prefix(&prefix)?;
            let help = choice.get_help().map(ToString::to_string).unwrap_or_default();
            let help = help.lines().next().unwrap_or_default();
            // A choice is a line, and goes onto a terminal: what would do harm there is none.
            let harmless = |text: &str| sanitise::line(text) == text;
            (harmless(value) && harmless(help)).then(|| match help {
                "" => format!("{value}\n"),
                help => format!("{value}\t{help}\n"),
            })
        })
        .collect();
    lines.push_str(NO_FILES);
    lines
}

/// What there are names of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    Apiservers,
    Nodes,
    Pods,
    Candidates,
    /// Hosts of candidates.
    Hosts,
    /// Candidates that have a priority.
    Preferred,
    /// Candidates that do not answer, and the leases that have any.
    LeftBehind,
    /// Leases that have candidates.
    Elections,
    /// Leases of leader election.
    Leaders,
    /// The same, in the namespace that is worked in.
    Held,
    Namespaces,
    Contexts,
    Clusters,
    Users,
}

/// Which argument of which command is one of these.
const ARGUMENTS: &[(&[&str], &str, Names)] = &[
    (&["apiservers"], "name", Names::Apiservers),
    (&["maint", "acquire"], "nodes", Names::Nodes),
    (&["maint", "renew"], "nodes", Names::Nodes),
    (&["maint", "release"], "nodes", Names::Nodes),
    (&["maint", "status"], "nodes", Names::Nodes),
    (&["maint", "run"], "nodes", Names::Nodes),
    (&["candidates"], "lease", Names::Elections),
    (&["candidates", "explain"], "lease", Names::Elections),
    (&["candidates", "rehearse"], "lease", Names::Elections),
    (&["candidates", "wait"], "lease", Names::Leaders),
    (&["candidates", "wait"], "leader", Names::Hosts),
    (&["candidates", "set-priority"], "candidate", Names::Candidates),
    (&["candidates", "set-priority"], "lease", Names::Elections),
    (&["candidates", "clear-priority"], "candidates", Names::Preferred),
    (&["candidates", "clear-priority"], "lease", Names::Elections),
    (&["candidates", "repair"], "lease", Names::Elections),
    (&["candidates", "prune"], "names", Names::LeftBehind),
    (&["leaders"], "name", Names::Leaders),
    (&["hold"], "name", Names::Held),
    (&["partitions"], "node", Names::Nodes),
    (&["fence"], "node", Names::Nodes),
    (&["force-delete"], "pods", Names::Pods),
    (&["force-delete"], "node", Names::Nodes),
    (&[], "namespace", Names::Namespaces),
    (&[], "context", Names::Contexts),
    (&[], "cluster", Names::Clusters),
    (&[], "user", Names::Users),
];

/// The command line with the names of the cluster that the words typed so far mean, as far as they can
/// be understood.
fn with_names(mut command: clap::Command, word: &str, matches: &ArgMatches) -> clap::Command {
    let connection = Connection::from_arg_matches(matches).unwrap_or_default();
    for &(path, argument, names) in ARGUMENTS {
        // `pod/NAME` is taken for a name, too.
        let kind = word.split_inclusive('/').next().filter(|kind| names.kinds().contains(kind));
        let kind = kind.unwrap_or_default().to_owned();
        let (connection, given) = (connection.clone(), given(matches, path, argument));
        let found = ArgValueCandidates::new(move || -> Vec<CompletionCandidate> {
            // A name that was typed already is no choice.
            let new = names.find(&connection).into_iter().filter(|name| !given.contains(name));
            new.map(|name| CompletionCandidate::new(format!("{kind}{name}"))).collect()
        });
        command = add(command, path, argument, found);
    }
    command
}

/// What was typed for an argument already.
fn given(matches: &ArgMatches, path: &[&str], argument: &str) -> BTreeSet<String> {
    match path {
        [] => BTreeSet::new(),
        [command] => {
            let below = matches.subcommand_matches(command);
            let given = below.and_then(|below| below.try_get_raw(argument).ok().flatten());
            let name = |word: &OsStr| {
                let word = word.to_string_lossy();
                word.rsplit('/').next().unwrap_or_default().to_owned()
            };
            given.into_iter().flatten().map(name).collect()
        }
        [command, rest @ ..] => {
            matches.subcommand_matches(command).map(|below| given(below, rest, argument)).unwrap_or_default()
        }
    }
}

fn add(command: clap::Command, path: &[&str], argument: &str, names: ArgValueCandidates) -> clap::Command {
    match path {
        // Not mut_arg: that puts it behind the other arguments of the command.
        [] => command
            .mut_args(|found| if found.get_id() == argument { found.add(names.clone()) } else { found }),
        [first, rest @ ..] => command.mut_subcommand(first, |command| add(command, rest, argument, names)),
    }
}

impl Names {
    /// What may stand before such a name.
    fn kinds(self) -> &'static [&'static str] {
        match self {
            Self::Nodes => &["node/"],
            Self::Pods => &["pod/", "pods/"],
            _ => &[],
        }
    }

    /// All of them, or none if they cannot be had in time.
    fn find(self, connection: &Connection) -> BTreeSet<String> {
        if let Some(names) = self.of_kubeconfig(connection) {
            return names;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return BTreeSet::new() };
        let names =
            runtime.block_on(async { tokio::time::timeout(WITHIN, self.of_cluster(connection)).await });
        // Not waiting for a name look-up that may still be under way.
        runtime.shutdown_background();
        names.ok().and_then(Result::ok).unwrap_or_default()
    }

    fn of_kubeconfig(self, connection: &Connection) -> Option<BTreeSet<String>> {
        let [contexts, clusters, users] = crate::connection::names(connection);
        let names = match self {
            Self::Contexts => contexts,
            Self::Clusters => clusters,
            Self::Users => users,
            _ => return None,
        };
        Some(names.into_iter().collect())
    }

    async fn of_cluster(self, connection: &Connection) -> crate::error::Result<BTreeSet<String>> {
        let cluster = Cluster::unseen(crate::connection::load(connection)?, WITHIN).await?;
        let cluster = cluster.acting_as(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        let namespace = connection.namespace.as_deref();
        let whole = async |resource, namespace: Option<&str>| -> crate::error::Result<BTreeSet<String>> {
            #[derive(Deserialize)]
            struct Named {
                metadata: Metadata,
            }
            let query = Query { namespace: namespace.map(str::to_owned), ..Query::new(resource) };
            let list = cluster.list::<Named>(&query.metadata_only().limit(MOST)).await?;
            Ok(list.items.iter().map(|object| object.value.metadata.name.clone()).collect())
        };
        match self {
            Self::Nodes => whole(NODES, None).await,
            Self::Namespaces => whole(NAMESPACES, None).await,
            Self::Pods => whole(PODS, Some(cluster.namespace())).await,
            Self::Candidates | Self::Hosts | Self::Preferred | Self::LeftBehind | Self::Elections => {
                let Some(resource) = cluster.lease_candidates(namespace).await? else {
                    return Ok(BTreeSet::new());
                };
                let list = cluster.list::<Candidate>(&candidates_query(resource, namespace)).await?;
                let now = cluster.server_time();
                let dead = |state| {
                    matches!(state, candidate::CandidateState::Stale | candidate::CandidateState::Expired)
                };
                let choice = |candidate: &Candidate| match self {
                    Self::Elections => vec![candidate.spec.lease_name.clone()],
                    Self::LeftBehind if dead(candidate.state(now)) => {
                        vec![candidate.spec.lease_name.clone(), candidate.name().to_owned()]
                    }
                    Self::LeftBehind => vec![],
                    Self::Preferred if Priority::of(candidate).is_none() => vec![],
                    Self::Candidates | Self::Hosts
                        if candidate.state(now) == candidate::CandidateState::Expired =>
                    {
                        vec![]
                    }
                    Self::Hosts => vec![candidate.host().to_owned()],
                    _ => vec![candidate.name().to_owned()],
                };
                Ok(list.items.iter().flat_map(|object| choice(&object.value)).collect())
            }
            Self::Leaders | Self::Held => {
                let namespace = if self == Self::Held { Some(cluster.namespace()) } else { namespace };
                let list = cluster.list::<Lease>(&leases_query(namespace)).await?;
                let leases = list.items.iter().filter(|object| leader::is_leader_election(&object.value));
                Ok(leases.map(|object| object.value.metadata.name.clone()).collect())
            }
            Self::Apiservers => {
                let list = cluster.list::<Lease>(&leases_query(Some(identity::NAMESPACE))).await?;
                let now = cluster.server_time();
                let all = list.items.iter().filter_map(|object| Identity::from_lease(&object.value, now));
                Ok(all.map(|it| it.hostname.unwrap_or(it.identity)).collect())
            }
            Self::Contexts | Self::Clusters | Self::Users => Ok(BTreeSet::new()),
        }
    }
}
