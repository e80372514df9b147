//! The candidates of coordinated elections: reading them in whichever version of the API there is,
//! pinging them, and giving them a priority, natively or by a pin; nobody else has to know which.

use serde_json::{Map, Value, json};

use super::{
    Cluster, LEASES, Object, Query, Readable, Resource,
    leases::micro_time,
    single::{Address, Writing},
};
use crate::{
    domain::{
        candidate::Candidate,
        lease::{Lease, Metadata},
        node::HEARTBEATS,
        priority::{self, EXPIRES, ORIGINAL, PRIORITY, Priority},
    },
    error::{Error, Result},
};

/// What an election consists of.
#[derive(Debug)]
pub enum Part {
    Candidate(Candidate),
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
    pub fn metadata(&self) -> &Metadata {
        match self {
            Self::Candidate(candidate) => &candidate.metadata,
            Self::Lease(lease) => &lease.metadata,
        }
    }

    pub fn candidate(&self) -> Option<&Candidate> {
        match self {
            Self::Candidate(candidate) => Some(candidate),
            Self::Lease(_) => None,
        }
    }

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
    pub parts: [Vec<Object<Part>>; 2],
}

/// A priority to be given.
#[derive(Clone, Debug)]
pub struct Wish {
    pub value: i32,
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
            self.in_best_version(async |resource| {
                self.list::<Part>(&candidates_query(resource, namespace)).await
            }),
            self.list::<Part>(&leases)
        );
        let Some((resource, candidates)) = candidates? else { return Ok(None) };
        Ok(Some(Elections { resource, parts: [candidates.items, leases?.items] }))
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

    /// Gives a candidate a priority in the way that this server honours, or takes it away again.
    /// What is returned is how the server has it.
    pub async fn set_priority(
        &self,
        resource: Resource,
        before: &Candidate,
        wish: Option<&Wish>,
        writing: &Writing,
    ) -> Result<Object<Candidate>> {
        let Some(wish) = wish else { return self.clear_priority(resource, before, writing).await };
        match self.set_natively(resource, before, wish, writing).await {
            Ok(after) if after.value.spec.priority == Some(wish.value) => Ok(after),
            // It knows the field and does not keep it, as with a feature that is off.
            Ok(after) if !writing.dry_run => self.pin(resource, &after.value, wish, writing).await,
            Ok(_) => self.pin(resource, before, wish, writing).await,
            Err(error) if is_unknown_field(&error) => self.pin(resource, before, wish, writing).await,
            Err(error) => Err(error),
        }
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
        let patch = json!({
            "metadata": marked(before, None, None, wish.expires),
            "spec": spec,
        });
        let at = address(before);
        let written: Object<Candidate> = self.patch(resource, &at, &patch, writing).await?;
        if writing.dry_run || written.value.spec.priority != Some(wish.value) {
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
        let original = priority::true_emulation_version(before);
        let pin = priority::pin(wish.value, original).ok_or_else(|| Error::Refused {
            message: format!("{} has no emulation version that could be pinned", before.name()),
            hint: None,
        })?;
        let patch = json!({
            "metadata": marked(before, Some(wish.value), Some(original), wish.expires),
            "spec": { "emulationVersion": pin },
        });
        let after: Object<Candidate> = self.patch(resource, &address(before), &patch, writing).await?;
        let kept = Priority::of(&after.value).is_some_and(|priority| priority.value == wish.value);
        kept.then_some(after).ok_or_else(|| self.dropped(before))
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

pub fn address(candidate: &Candidate) -> Address {
    Address::new(&candidate.metadata.namespace, candidate.name())
}

/// The candidate went away meanwhile.
pub fn vanished(candidate: &Candidate) -> Error {
    Error::NotFound {
        message: format!("the candidate {} is gone", candidate.name()),
        hint: Some(
            "a component that restarts comes back under a new name: 'kubectl lease candidates' lists them"
                .into(),
        ),
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
        spec.insert("emulationVersion".into(), original.into());
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
