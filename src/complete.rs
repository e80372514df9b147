//! Completion through kubectl.
//!
//! For `kubectl lease …<TAB>` kubectl runs a program `kubectl_complete-lease` from the PATH with the
//! words typed so far, an empty last one where a new word begins, and takes one choice from each line
//! of what it prints; a last line `:4` says that file names are no choices. It is this same binary
//! under that name. Names come from the cluster that the words typed so far mean, within a second or
//! not at all, and whatever goes wrong nothing is said: an error in the middle of a command line helps
//! nobody.

use std::{collections::BTreeSet, ffi::OsString, path::Path, time::Duration};

use clap::{CommandFactory as _, FromArgMatches as _};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate, complete};
use serde::Deserialize;

use crate::{
    cli::{Cli, Connection},
    cluster::{
        Cluster, NAMESPACES, NODES, PODS, Query,
        candidates::{candidates_query, leases_query},
        config,
    },
    domain::{
        candidate::Candidate,
        leader,
        lease::{Lease, Metadata},
    },
};

/// The name by which kubectl finds it.
pub const PROGRAM: &str = "kubectl_complete-lease";

/// kubectl gives no limit, people do.
const WITHIN: Duration = Duration::from_millis(900);
/// Nobody picks from more.
const MOST: u32 = 500;

/// Whether this program was called under the name by which kubectl asks for completions.
pub fn is_asked(program: &Path) -> bool {
    program.file_stem().is_some_and(|name| name == PROGRAM)
}

/// The choices for the last of these words, for kubectl to read.
pub fn answer(words: &[OsString]) -> String {
    let mut typed = vec![OsString::from("kubectl-lease")];
    typed.extend_from_slice(words);
    let last = words.len().max(1);
    typed.resize(last + 1, OsString::new());
    let mut command = with_names(Cli::command(), &connection(&typed), &typed[..last]);
    let flag = typed[last].to_string_lossy().starts_with('-');
    let choices = complete(&mut command, typed, last, None).unwrap_or_default();
    let mut lines: Vec<String> = choices
        .iter()
        .filter(|choice| !choice.is_hide_set())
        .filter_map(|choice| {
            let value = choice.get_value().to_str()?;
            // As kubectl itself: flags only for who has begun one.
            if value.starts_with('-') && !flag {
                return None;
            }
            let help = choice.get_help().map(ToString::to_string).unwrap_or_default();
            let help = help.lines().next().unwrap_or_default().to_owned();
            let line = if help.is_empty() { value.to_owned() } else { format!("{value}\t{help}") };
            // A choice is a line: what would break it is none.
            line.chars().all(|c| c == '\t' || !c.is_control()).then_some(line)
        })
        .collect();
    lines.push(":4".to_owned());
    lines.join("\n") + "\n"
}

/// Which cluster the words typed so far mean, as far as they can be understood.
fn connection(typed: &[OsString]) -> Connection {
    let command = Cli::command().ignore_errors(true);
    let matches = command.try_get_matches_from(&typed[..typed.len() - 1]);
    matches.ok().and_then(|matches| Connection::from_arg_matches(&matches).ok()).unwrap_or_default()
}

/// What there are names of.
#[derive(Clone, Copy)]
enum Names {
    Nodes,
    Pods,
    Candidates,
    /// Leases that have candidates.
    Elections,
    /// Leases of leader election.
    Leaders,
    Namespaces,
    Contexts,
    Clusters,
    Users,
}

/// Which argument of which command is one of these.
const ARGUMENTS: [(&[&str], &str, Names); 20] = [
    (&["maint", "acquire"], "nodes", Names::Nodes),
    (&["maint", "renew"], "nodes", Names::Nodes),
    (&["maint", "release"], "nodes", Names::Nodes),
    (&["maint", "status"], "nodes", Names::Nodes),
    (&["maint", "run"], "nodes", Names::Nodes),
    (&["candidates"], "lease", Names::Elections),
    (&["candidates", "explain"], "lease", Names::Elections),
    (&["candidates", "set-priority"], "candidate", Names::Candidates),
    (&["candidates", "set-priority"], "lease", Names::Elections),
    (&["candidates", "clear-priority"], "candidates", Names::Candidates),
    (&["candidates", "clear-priority"], "lease", Names::Elections),
    (&["leaders"], "name", Names::Leaders),
    (&["hold"], "name", Names::Leaders),
    (&["partitions"], "node", Names::Nodes),
    (&["fence"], "node", Names::Nodes),
    (&["force-delete"], "pods", Names::Pods),
    (&[], "namespace", Names::Namespaces),
    (&[], "context", Names::Contexts),
    (&[], "cluster", Names::Clusters),
    (&[], "user", Names::Users),
];

fn with_names(mut command: clap::Command, connection: &Connection, typed: &[OsString]) -> clap::Command {
    for (path, argument, names) in ARGUMENTS {
        let (connection, typed) = (connection.clone(), typed.to_vec());
        let found = ArgValueCandidates::new(move || -> Vec<CompletionCandidate> {
            // Nobody names the same one twice.
            let new = |name: &String| !typed.iter().any(|word| word.as_os_str() == name.as_str());
            names.find(&connection).into_iter().filter(new).map(CompletionCandidate::new).collect()
        });
        command = add(command, path, argument, found);
    }
    command
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
        let [contexts, clusters, users] = config::names(connection);
        let names = match self {
            Self::Contexts => contexts,
            Self::Clusters => clusters,
            Self::Users => users,
            _ => return None,
        };
        Some(names.into_iter().collect())
    }

    async fn of_cluster(self, connection: &Connection) -> crate::error::Result<BTreeSet<String>> {
        let cluster = Cluster::new(config::load(connection)?, Some(WITHIN)).await?;
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
            Self::Candidates | Self::Elections => {
                let Some(resource) = cluster.lease_candidates(namespace).await? else {
                    return Ok(BTreeSet::new());
                };
                let list = cluster.list::<Candidate>(&candidates_query(resource, namespace)).await?;
                let name = |candidate: &Candidate| match self {
                    Self::Elections => candidate.spec.lease_name.clone(),
                    _ => candidate.name().to_owned(),
                };
                Ok(list.items.iter().map(|object| name(&object.value)).collect())
            }
            Self::Leaders => {
                let list = cluster.list::<Lease>(&leases_query(namespace)).await?;
                let leases = list.items.iter().filter(|object| leader::is_leader_election(&object.value));
                Ok(leases.map(|object| object.value.metadata.name.clone()).collect())
            }
            Self::Contexts | Self::Clusters | Self::Users => Ok(BTreeSet::new()),
        }
    }
}
