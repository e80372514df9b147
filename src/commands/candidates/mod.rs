//! `kubectl lease candidates`.

mod explain;
mod health;
mod list;
mod obstacles;
mod plan;
mod priority;
mod prune;
mod rehearse;
mod repair;
mod rescue;
mod skew;
mod wait;
mod wrongs;

pub use health::troubles;
use wrongs::told;

use std::collections::BTreeMap;

use jiff::SignedDuration;

use crate::{
    cli::{Candidates, CandidatesVerb, DryRun, Scope},
    cluster::{
        Cluster, LEASES, NAMESPACES, Object,
        candidates::{Elections, Part},
        single::Address,
    },
    domain::{
        candidate::Candidate,
        duration::age,
        election::{self, Outlook},
        lease::{Lease, Metadata, host},
        safer::with_flags,
        time::ServerTime,
    },
    error::{Error, Result},
    exit::ExitCode,
    output::{Printer, prompt},
};

pub async fn run(
    args: &Candidates,
    namespace: Option<&str>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let namespace = within(&args.scope, namespace);
    match (&args.verb, &args.lease) {
        (None, _) => list::run(args, namespace, cluster, printer).await,
        (Some(_), Some(lease)) => {
            Err(Error::usage(format!("'{lease}' comes before a command that names its own")))
        }
        (Some(CandidatesVerb::Explain(args)), _) => explain::run(args, namespace, cluster, printer).await,
        (Some(CandidatesVerb::Wait(args)), _) => wait::run(args, namespace, cluster, printer).await,
        (Some(CandidatesVerb::Rehearse(args)), _) => rehearse::run(args, namespace, cluster, printer).await,
        (Some(CandidatesVerb::SetPriority(args)), _) => {
            priority::set(args, namespace, cluster, printer).await
        }
        (Some(CandidatesVerb::ClearPriority(args)), _) => {
            priority::clear(args, namespace, cluster, printer).await
        }
        (Some(CandidatesVerb::Repair(args)), _) => repair::run(args, namespace, cluster, printer).await,
        (Some(CandidatesVerb::Prune(args)), _) => prune::run(args, namespace, cluster, printer).await,
    }
}

/// The one election that is meant by the name of its lease.
fn the_election<'e, 'a>(
    lease: &str,
    all: &'e [Election<'a>],
    parts: &[Vec<Object<Part>>],
) -> Result<&'e Election<'a>> {
    let named: Vec<_> = all.iter().filter(|election| election.name == lease).collect();
    match named.as_slice() {
        [one] => Ok(one),
        [] => Err(list::no_candidates(lease, parts)),
        all => Err(several(lease, &all.iter().map(|election| election.namespace).collect::<Vec<_>>())),
    }
}

/// A lease that is meant by a name which several have.
fn several(lease: &str, namespaces: &[&str]) -> Error {
    Error::Usage {
        message: format!("there is a lease '{lease}' in {}", namespaces.join(" and in ")),
        hint: Some("-n says which one is meant".into()),
    }
}

/// The namespace to look in; `None` for all.
pub fn within<'a>(scope: &Scope, namespace: Option<&'a str>) -> Option<&'a str> {
    namespace.filter(|namespace| !scope.all_namespaces && !namespace.is_empty())
}

/// One election: a lease, and who would have it.
pub struct Election<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
    pub candidates: Vec<(&'a Candidate, &'a Object<Part>)>,
    pub lease: Option<(&'a Lease, &'a Object<Part>)>,
}

impl<'a> Election<'a> {
    pub fn outlook(&self, now: ServerTime) -> Outlook<'a> {
        let candidates: Vec<_> = self.candidates.iter().map(|(candidate, _)| *candidate).collect();
        Outlook::new(&candidates, self.lease.map(|(lease, _)| lease), now)
    }

    pub fn at(&self) -> Address {
        Address::new(self.namespace, self.name)
    }

    /// Its name in a sentence. The API takes anything for the name of the lease that a candidate is
    /// for, line breaks too.
    pub fn called(&self) -> String {
        format!("{}/{}", self.namespace, self.name.escape_debug())
    }
}

/// The elections that these candidates are for, in the order of their names.
pub fn elections(parts: &[Vec<Object<Part>>]) -> Vec<Election<'_>> {
    let [candidates, leases, ..] = parts else { return Vec::new() };
    let mut all: BTreeMap<(&str, &str), Election<'_>> = BTreeMap::new();
    for object in candidates {
        let Some(candidate) = object.value.candidate() else { continue };
        let (namespace, name) = (candidate.metadata.namespace.as_str(), candidate.spec.lease_name.as_str());
        all.entry((namespace, name))
            .or_insert_with(|| Election { namespace, name, candidates: Vec::new(), lease: None })
            .candidates
            .push((candidate, object));
    }
    for object in leases {
        let Some(lease) = object.value.lease() else { continue };
        let key = (lease.metadata.namespace.as_str(), lease.metadata.name.as_str());
        if let Some(election) = all.get_mut(&key) {
            election.lease = Some((lease, object));
        }
    }
    all.into_values().collect()
}

/// The leases among what was read.
fn leases(parts: &[Vec<Object<Part>>]) -> impl Iterator<Item = &Lease> {
    parts.iter().flatten().filter_map(|part| part.value.lease())
}

/// All elections, or the error that says how to have some.
async fn gather(namespace: Option<&str>, cluster: &Cluster) -> Result<Elections> {
    cluster.elections(namespace).await?.ok_or_else(|| cluster.without_coordination())
}

/// Whether there is somebody who elects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Controller {
    Alive {
        holder: String,
        ago: SignedDuration,
    },
    Silent {
        holder: String,
        ago: SignedDuration,
    },
    /// No kube-apiserver runs it.
    Missing,
    /// We may not look.
    Unseen,
}

impl Controller {
    /// From the leases that were read anyway, or by asking for the one.
    async fn find(parts: &[Vec<Object<Part>>], namespace: Option<&str>, cluster: &Cluster) -> Result<Self> {
        let (home, name) = election::CONTROLLER;
        if namespace.is_none_or(|namespace| namespace == home) {
            return Ok(Self::among(leases(parts), cluster.server_time()));
        }
        match cluster.get::<Lease>(LEASES, &Address::new(home, name)).await {
            Ok(lease) => Ok(Self::of(lease.as_ref().map(|lease| &*lease.value), cluster.server_time())),
            Err(Error::Forbidden { .. }) => Ok(Self::Unseen),
            Err(error) => Err(error),
        }
    }

    /// From leases that were read anyway.
    pub fn among<'a>(mut leases: impl Iterator<Item = &'a Lease>, now: ServerTime) -> Self {
        let (home, name) = election::CONTROLLER;
        let is_it = |it: &Metadata| it.namespace == home && it.name == name;
        Self::of(leases.find(|lease| is_it(&lease.metadata)), now)
    }

    fn of(lease: Option<&Lease>, now: ServerTime) -> Self {
        let Some(lease) = lease.filter(|lease| !lease.holder().is_empty()) else { return Self::Missing };
        let ago = lease.renewed().map_or(SignedDuration::MAX, |renewed| now.since(renewed));
        let holder = host(lease.holder()).to_owned();
        if lease.expires().is_some_and(|until| until >= now.0) {
            Self::Alive { holder, ago }
        } else {
            Self::Silent { holder, ago }
        }
    }

    /// What is wrong with it, in words.
    pub fn wrong(&self) -> Option<String> {
        match self {
            Self::Silent { holder, ago } => Some(format!(
                "the election controller is silent: {holder} ran it and last renewed its lease {} ago; nobody is \
                 elected until another kube-apiserver takes over",
                age(*ago)
            )),
            Self::Missing => Some(
                "no kube-apiserver runs the election controller: there is no lease kube-system/\
                 leader-election-controller, or nobody holds it"
                    .into(),
            ),
            Self::Alive { .. } | Self::Unseen => None,
        }
    }
}

/// A namespace in which nothing was found: whether it exists at all.
pub async fn check_namespace(namespace: Option<&str>, cluster: &Cluster) -> Result<()> {
    let Some(name) = namespace else { return Ok(()) };
    match cluster.get::<serde_json::Value>(NAMESPACES, &Address::new("", name)).await {
        Ok(None) => Err(Error::NotFound { message: format!("there is no namespace '{name}'"), hint: None }),
        // Who may not look is told nothing more.
        _ => Ok(()),
    }
}

/// Shows what will happen, and asks; elsewhere than on a terminal `--yes` is needed.
fn agree(
    words: &[String],
    yes: bool,
    dry_run: DryRun,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<()> {
    for line in words {
        printer.note(&with_flags(line, cluster.flags()));
    }
    if yes || dry_run != DryRun::None {
        return Ok(());
    }
    if !prompt::possible() {
        return Err(Error::Refused {
            message: "there is no terminal to ask on: nothing was changed".into(),
            hint: Some("--yes does it without asking; --dry-run shows what would be done".into()),
        });
    }
    if prompt::confirm("Go on?")? {
        return Ok(());
    }
    Err(Error::Refused { message: "nothing was changed".into(), hint: None })
}
