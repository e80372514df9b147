//! The candidates of coordinated elections: reading them in whichever version of the API there is,
//! pinging them, and giving them a priority, natively or by a pin; callers need not know which.

use serde_json::{Map, Value, json};

use super::{
    Cluster, LEASES, NAMESPACES, Object, Query, Readable, Resource,
    leases::micro_time,
    single::{Address, Writing},
};
use crate::{
    error::{Error, ObjectKind, Result},
    rules::{
        candidate::Candidate,
        controller::{self, Controller},
        election::{CoordinatedElection, elections},
        lease::{Lease, Metadata},
        node::HEARTBEATS,
        priority::{self, EXPIRES, How, ORIGINAL, PRIORITY, Priority},
    },
};

/// What an election consists of.
#[derive(Debug)]
pub enum Part {
    /// A `LeaseCandidate`.
    Candidate(Candidate),
    /// A `Lease`.
    Lease(Lease),
}

impl Readable for Part {
    fn read(resource: Resource, text: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(if resource.plural == LEASES.plural {
            Self::Lease(serde_json::from_slice(text)?)
        } else {
            Self::Candidate(serde_json::from_slice(text)?)
        })
    }
}

impl Part {
    /// Its metadata.
    pub fn metadata(&self) -> &Metadata {
        match self {
            Self::Candidate(candidate) => &candidate.metadata,
            Self::Lease(lease) => &lease.metadata,
        }
    }

    /// The candidate, if it is one.
    pub fn candidate(&self) -> Option<&Candidate> {
        match self {
            Self::Candidate(candidate) => Some(candidate),
            Self::Lease(_) => None,
        }
    }

    /// The lease, if it is one.
    pub fn lease(&self) -> Option<&Lease> {
        match self {
            Self::Lease(lease) => Some(lease),
            Self::Candidate(_) => None,
        }
    }
}

/// All elections: candidates, and leases.
pub struct Elections {
    /// The version of the candidates that was read.
    pub resource: Resource,
    /// The candidates, then the leases.
    pub parts: [Vec<Object<Part>>; 2],
}

impl Elections {
    /// The elections that there are candidates for, in the order of their names.
    pub fn all(&self) -> Vec<CoordinatedElection<'_>> {
        elections_of(&self.parts)
    }

    /// The election of one lease, if there are candidates for it.
    pub fn of(&self, at: &Address) -> Option<CoordinatedElection<'_>> {
        self.all().into_iter().find(|election| election.key() == (&at.namespace, &at.name))
    }

    /// All leases that were read.
    pub fn leases(&self) -> impl Iterator<Item = &Lease> {
        leases_of(&self.parts)
    }
}

/// The elections among candidates, which are the first of these parts, and leases, which are the second.
pub fn elections_of(parts: &[Vec<Object<Part>>]) -> Vec<CoordinatedElection<'_>> {
    let candidates = parts.iter().take(1).flatten().filter_map(|part| part.value.candidate());
    elections(candidates, parts.iter().skip(1).take(1).flatten().filter_map(|part| part.value.lease()))
}

/// The leases among these parts.
pub fn leases_of(parts: &[Vec<Object<Part>>]) -> impl Iterator<Item = &Lease> {
    parts.iter().flatten().filter_map(|part| part.value.lease())
}

/// A priority to be given.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The priority.
    pub value: i32,
    /// When it is to be cleared; recorded in an annotation.
    pub expires: Option<jiff::Timestamp>,
}

/// The candidates of a namespace, or of all.
pub fn candidates_query(resource: Resource, namespace: Option<&str>) -> Query {
    Query { namespace: namespace.map(str::to_owned), ..Query::new(resource) }
}

/// The leases that can be led: of a namespace, or of all but the nodes' heartbeats, of which a large
/// cluster has thousands.
pub fn leases_query(namespace: Option<&str>) -> Query {
    let query = Query { namespace: namespace.map(str::to_owned), ..Query::new(LEASES) };
    match namespace {
        Some(_) => query,
        None => query.select(None, Some(&format!("metadata.namespace!={HEARTBEATS}"))),
    }
}

impl Cluster {
    /// Candidates and leases, of one namespace or of all; `None` where coordinated leader election
    /// is off.
    pub async fn elections(&self, namespace: Option<&str>) -> Result<Option<Elections>> {
        let leases = leases_query(namespace);
        let (candidates, leases) = tokio::join!(
            self.in_best_version(|resource| async move {
                self.list::<Part>(&candidates_query(resource, namespace)).await
            }),
            self.list::<Part>(&leases)
        );
        let Some((resource, candidates)) = candidates? else { return Ok(None) };
        Ok(Some(Elections { resource, parts: [candidates.items, leases?.items] }))
    }

    /// Whether the election controller runs: by the leases that were read anyway, or else by reading its own.
    pub async fn election_controller(
        &self,
        elections: &Elections,
        namespace: Option<&str>,
    ) -> Result<Controller> {
        let (home, name) = controller::LEASE;
        if namespace.is_none_or(|namespace| namespace == home) {
            return Ok(Controller::among(elections.leases(), self.server_time()));
        }
        match self.get::<Lease>(LEASES, &Address::new(home, name)).await {
            Ok(lease) => Ok(Controller::of(lease.as_ref().map(|lease| &*lease.value), self.server_time())),
            Err(Error::Forbidden { .. }) => Ok(Controller::Unseen),
            Err(error) => Err(error),
        }
    }

    /// The candidates for a lease; none where coordinated leader election is off.
    pub async fn candidates_for(&self, lease: &str, namespace: Option<&str>) -> Result<Vec<Candidate>> {
        let listed = self.in_best_version(|resource| async move {
            self.list::<Candidate>(&candidates_query(resource, namespace)).await
        });
        let Some((_, list)) = listed.await? else { return Ok(Vec::new()) };
        let of_lease = list.items.iter().filter(|object| object.value.spec.lease_name == lease);
        Ok(of_lease.map(|object| Candidate::clone(&object.value)).collect())
    }

    /// Whether a namespace is there, as far as that can be seen.
    pub async fn has_namespace(&self, name: &str) -> bool {
        !matches!(self.get::<Value>(NAMESPACES, &Address::new("", name)).await, Ok(None))
    }

    /// Asks a candidate for a sign of life, as the election controller does.
    pub async fn ping(
        &self,
        resource: Resource,
        before: &Candidate,
        writing: &Writing,
    ) -> Result<Object<Candidate>> {
        let patch = json!({
            "metadata": version(before),
            "spec": { "pingTime": micro_time(self.server_time().0) },
        });
        self.patch(resource, &address(before), &patch, writing).await
    }

    /// How this server would have a priority of this candidate; nothing is written.
    pub async fn priority_by(&self, resource: Resource, candidate: &Candidate, value: i32) -> Result<How> {
        let patch = json!({ "spec": { "priority": value } });
        let writing = Writing { dry_run: true, ..Writing::default() };
        match self.patch::<Candidate>(resource, &address(candidate), &patch, &writing).await {
            Ok(after) if after.value.spec.priority == Some(value) => Ok(How::Native),
            // It knows the field and does not keep it, as with a feature that is off.
            Ok(_) => Ok(How::Pinned),
            Err(error) if is_unknown_field(&error) => Ok(How::Pinned),
            Err(error) if error.is_not_found() => Err(vanished(candidate)),
            Err(error) => Err(error),
        }
    }

    /// Gives a candidate a priority in this way, or takes it away again. What is returned is how the
    /// server has it.
    pub async fn set_priority(
        &self,
        resource: Resource,
        before: &Candidate,
        wish: Option<(&Wish, How)>,
        writing: &Writing,
    ) -> Result<Object<Candidate>> {
        let after = match wish {
            None => return self.clear_priority(resource, before, writing).await,
            Some((wish, How::Pinned)) => self.pin(resource, before, wish, writing).await?,
            Some((wish, How::Native)) => self.set_natively(resource, before, wish, writing).await?,
        };
        let wanted = wish.map(|(wish, _)| wish.value);
        let kept = Priority::of(&after.value).map(|priority| priority.value) == wanted;
        kept.then_some(after).ok_or_else(|| self.dropped(before))
    }

    async fn set_natively(
        &self,
        resource: Resource,
        before: &Candidate,
        wish: &Wish,
        writing: &Writing,
    ) -> Result<Object<Candidate>> {
        let mut spec = unpinned(before);
        spec.insert("priority".into(), wish.value.into());
        let patch = json!({ "metadata": marked(before, None, None, wish.expires), "spec": spec });
        let at = address(before);
        let written: Object<Candidate> = self.patch(resource, &at, &patch, writing).await?;
        if writing.dry_run {
            return Ok(written);
        }
        // The answer to a write is not yet what was kept.
        self.get(resource, &at).await?.ok_or_else(|| vanished(before))
    }

    async fn pin(
        &self,
        resource: Resource,
        before: &Candidate,
        wish: &Wish,
        writing: &Writing,
    ) -> Result<Object<Candidate>> {
        let original = &*priority::true_emulation_version(before);
        let pin = priority::pin(wish.value, original).ok_or_else(|| Error::Refused {
            message: format!("{} has no emulation version that could be pinned", before.name()),
        })?;
        let patch = json!({
            "metadata": marked(before, Some(wish.value), Some(original), wish.expires),
            "spec": { "emulationVersion": pin },
        });
        self.patch(resource, &address(before), &patch, writing).await
    }

    async fn clear_priority(
        &self,
        resource: Resource,
        before: &Candidate,
        writing: &Writing,
    ) -> Result<Object<Candidate>> {
        let mut spec = unpinned(before);
        if before.spec.priority.is_some() {
            spec.insert("priority".into(), Value::Null);
        }
        let patch = json!({ "metadata": marked(before, None, None, None), "spec": spec });
        let after: Object<Candidate> = self.patch(resource, &address(before), &patch, writing).await?;
        let cleared = !priority::is_marked(&after.value);
        cleared.then_some(after).ok_or_else(|| self.dropped(before))
    }

    /// Clears the holder of a lease whose election is stuck: with the empty string, because a null holderIdentity
    /// crashes some kube-apiservers.
    pub async fn empty_holder(&self, before: &Lease, writing: &Writing) -> Result<()> {
        let Metadata { namespace, name, uid, resource_version, .. } = &before.metadata;
        let patch = json!({
            "metadata": { "uid": uid, "resourceVersion": resource_version },
            "spec": { "holderIdentity": "" },
        });
        let after: Object<Lease> =
            self.patch(LEASES, &Address::new(namespace, name), &patch, writing).await?;
        drop(after);
        Ok(())
    }

    /// What to say where coordinated leader election is off.
    pub fn without_coordination(&self) -> Error {
        let api = format!("leasecandidates.{}", LEASES.group);
        Error::NotServed { server: self.server.clone(), api }
    }

    fn dropped(&self, candidate: &Candidate) -> Error {
        Error::BadAnswer {
            server: self.server.clone(),
            cause: format!("it took the write of {}, and dropped what was written", candidate.name()),
        }
    }
}

/// The namespace and the name of a candidate.
pub fn address(candidate: &Candidate) -> Address {
    Address::new(&candidate.metadata.namespace, candidate.name())
}

/// The candidate went away meanwhile.
pub fn vanished(candidate: &Candidate) -> Error {
    Error::NotFound {
        kind: ObjectKind::LeaseCandidate,
        message: format!("the candidate {} is gone", candidate.name()),
    }
}

fn version(before: &Candidate) -> Value {
    json!({ "uid": before.metadata.uid, "resourceVersion": before.metadata.resource_version })
}

/// The true emulation version again, where a pin is in its place.
fn unpinned(before: &Candidate) -> Map<String, Value> {
    let original = priority::true_emulation_version(before);
    let mut spec = Map::new();
    if original != before.spec.emulation_version {
        spec.insert("emulationVersion".into(), original.into_owned().into());
    }
    spec
}

/// The metadata of a patch, with our annotations as they should be; null takes one away.
fn marked(
    before: &Candidate,
    value: Option<i32>,
    original: Option<&str>,
    expires: Option<jiff::Timestamp>,
) -> Value {
    let mut metadata = version(before);
    metadata["annotations"] = json!({
        PRIORITY: value.map(|value| value.to_string()),
        ORIGINAL: original,
        EXPIRES: expires.map(|time| format!("{time:.0}")),
    });
    metadata
}

/// Whether the server refused a field because it does not know it.
fn is_unknown_field(error: &Error) -> bool {
    matches!(error, Error::Api { code: 400 | 422, message, .. } if message.contains("unknown field"))
}
