//! The controllers behind a pod: when they start the next one in its place, and how many there should be.
//!
//! The kind of the owner does not tell alone: behind a `ReplicaSet` there is a Deployment, which may
//! have been told never to run two, and a Job has a policy, as has the `CronJob` behind it.

use jiff::SignedDuration;
use serde::Deserialize;

use super::{
    controller_ref::ControllerRef,
    lease::{Metadata, Owner},
    pod::{Pod, grace_of},
    stopped,
    storage::Selector,
};

/// The labels of a Job's pods that have its UID; the second is that of older versions.
const JOB_UID: [&str; 2] = ["batch.kubernetes.io/controller-uid", "controller-uid"];
/// The label of a Deployment's pods that tells its `ReplicaSet`s apart. Pods of other controllers that its
/// selector matches too do not have it.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// The parts of a `ReplicaSet`, Deployment, `StatefulSet`, `DaemonSet`, Job or `CronJob` that the rules look at.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Workload {
    /// Standard object metadata.
    pub metadata: Metadata,
    /// What its user wants.
    pub(crate) spec: WorkloadSpec,
    /// What its controller reports.
    pub(crate) status: WorkloadStatus,
}

/// What it should run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadSpec {
    /// How many a set wants.
    replicas: Option<i64>,
    /// How many a Job wants at once.
    parallelism: Option<i64>,
    /// Of a Job: whether each of its pods has an index.
    completion_mode: String,
    selector: Selector,
    /// Of a Job.
    suspend: bool,
    /// Of a Deployment.
    paused: bool,
    /// Of a Deployment.
    strategy: UpdateStrategy,
    /// Of a `DaemonSet`.
    update_strategy: UpdateStrategy,
    /// Of a Job.
    pod_replacement_policy: String,
    /// Of a `CronJob`.
    concurrency_policy: String,
    /// Of its pods.
    template: Template,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Template {
    spec: TemplateSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TemplateSpec {
    termination_grace_period_seconds: Option<i64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct UpdateStrategy {
    r#type: String,
    rolling_update: RollingUpdate,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RollingUpdate {
    /// A number, or a share in percent.
    max_surge: serde_json::Value,
}

/// What it runs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadStatus {
    /// How many of its pods are ready.
    pub ready_replicas: i64,
}

/// The kinds of Kubernetes' own that are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `apps/v1`; owns pods.
    ReplicaSet,
    /// `apps/v1`; owns `ReplicaSet`s.
    Deployment,
    /// `apps/v1`; owns pods, each with an identity of its own.
    StatefulSet,
    /// `apps/v1`; owns pods, one on each node.
    DaemonSet,
    /// `batch/v1`; owns pods that run to completion.
    Job,
    /// `batch/v1`; owns Jobs.
    CronJob,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::ReplicaSet, Self::Deployment, Self::StatefulSet, Self::DaemonSet, Self::Job, Self::CronJob];

    /// Of which kind an owner is; `None` for all others.
    pub fn of(owner: &Owner) -> Option<Self> {
        let is = |kind: &Self| owner.is(kind.api_version(), kind.name());
        Self::ALL.into_iter().find(is)
    }

    fn api_version(self) -> &'static str {
        if matches!(self, Self::Job | Self::CronJob) { "batch/v1" } else { "apps/v1" }
    }

    /// As in an owner reference.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReplicaSet => "ReplicaSet",
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
            Self::Job => "Job",
            Self::CronJob => "CronJob",
        }
    }

    /// The kind of the controller behind one of this kind that is looked at too.
    pub fn above(self) -> Option<Self> {
        match self {
            Self::ReplicaSet => Some(Self::Deployment),
            Self::Job => Some(Self::CronJob),
            Self::Deployment | Self::StatefulSet | Self::DaemonSet | Self::CronJob => None,
        }
    }
}

/// How many of a set there should be, and how many are ready. A pod of no set is one of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replicas {
    /// So many there should be.
    pub wanted: i64,
    /// So many are ready.
    pub ready: i64,
}

impl Replicas {
    const ONE: Self = Self { wanted: 1, ready: 1 };

    fn of(set: &Workload) -> Self {
        Self { wanted: set.spec.replicas.unwrap_or(1), ready: set.status.ready_replicas }
    }

    /// Its pods do not stand in for each other: each is one, or none while it is suspended.
    fn of_job(job: &Workload) -> Self {
        Self { wanted: i64::from(!job.spec.suspend), ..Self::ONE }
    }

    /// How many are ready without this pod.
    pub fn without(self, pod: &Pod) -> i64 {
        self.ready - i64::from(pod.is_ready())
    }

    /// Whether more than half of them are ready without this pod. One alone has no majority to lose.
    pub fn keep_a_majority_without(self, pod: &Pod) -> bool {
        self.wanted <= 1 || self.without(pod) * 2 > self.wanted
    }

    /// Whether all others are ready: there will not be more, and an update takes one away then, too.
    pub fn are_all_ready_without(self, pod: &Pod) -> bool {
        self.without(pod) >= self.wanted - 1
    }
}

/// When the next pod is started in the place of one, the latest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Successor {
    /// There is no controller.
    Never,
    /// When the pod's object is gone: there should never be two.
    WhenGone,
    /// Once the pod is Terminating, at the latest.
    Early,
}

/// What is known of the controllers behind a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// When the next one is started.
    pub successor: Successor,
    /// Whether there should never be two, whenever the next one is started.
    pub alone: bool,
    /// The controller that starts the next one.
    pub controller: Option<ControllerRef>,
    /// Why it is started then.
    pub why: ReplacementReason,
    /// Whether there should be one of it only; `None` if that could not be found out.
    pub single: Option<bool>,
    /// `None` if that could not be found out.
    pub replicas: Option<Replicas>,
    /// Selects all pods of a controller that can be told to end them and to go on, as `kubectl -l` takes
    /// it; `None` of all others, and if it could not be found out.
    pub selector: Option<String>,
    /// How many it ran before a printed line stopped it.
    pub before: Option<i64>,
    /// What owns the controller, where that is not known here: it may change it again.
    pub managed_by: Option<ControllerRef>,
    /// A Deployment that is paused: it is not updated, but scaled.
    pub paused: bool,
}

impl Ownership {
    /// Whether its controller is scaled to 0, or suspended.
    pub fn is_stopped(&self) -> bool {
        self.replicas.is_some_and(|replicas| replicas.wanted == 0)
    }
}

/// Why the next one is started then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplacementReason {
    /// It has no owner.
    Unowned,
    /// Rolling updates, and whatever else runs two for a while.
    Rolling,
    /// There is one pod of each name.
    StatefulSet,
    /// The Deployment's strategy is Recreate. It keeps to that when it is updated; but its `ReplicaSet`
    /// replaces a pod that is deleted at once.
    Recreate,
    /// The Job's `podReplacementPolicy` is Failed.
    JobFailed,
    /// The `concurrencyPolicy` of the `CronJob` behind its Job is Forbid. It keeps to that between Jobs;
    /// but the Job replaces a pod that is deleted at once.
    CronJobForbids,
    /// One on each node, and no more.
    DaemonSet,
    /// What it does is not known here.
    UnknownKind,
    /// It may not be read, or is not there.
    Unseen,
}

/// Finds workloads by kind, namespace and name.
pub trait Workloads {
    /// The one of this kind and name, if it is known.
    fn workload(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Workload>;
}

/// What the controllers behind a pod do. Of several owners the strictest counts.
pub fn ownership(pod: &Pod, known: &impl Workloads) -> Ownership {
    let each = pod.metadata.owner_references.iter().map(|owner| by_owner(pod, owner, known));
    // The first of equals is the one that calls itself the controller, if there is one.
    let first = pod.controller().map(|owner| by_owner(pod, owner, known));
    let strictest = first.into_iter().chain(each).reduce(|one, other| {
        if (other.alone, other.successor) > (one.alone, one.successor) { other } else { one }
    });
    strictest.unwrap_or(Ownership {
        successor: Successor::Never,
        alone: false,
        controller: None,
        why: ReplacementReason::Unowned,
        single: Some(false),
        replicas: Some(Replicas::ONE),
        selector: None,
        before: None,
        managed_by: None,
        paused: false,
    })
}

fn by_owner(pod: &Pod, owner: &Owner, known: &impl Workloads) -> Ownership {
    OwnerOf { pod, owner, known }.ownership()
}

/// An owner reference of a pod, with what the cluster has of its owner.
struct OwnerOf<'a, W> {
    pod: &'a Pod,
    owner: &'a Owner,
    known: &'a W,
}

impl<W: Workloads> OwnerOf<'_, W> {
    fn ownership(&self) -> Ownership {
        let owner = self.owner;
        let Some(kind) = Kind::of(owner) else {
            let lenient = owner.is("v1", "ReplicationController") || owner.is("v1", "Node");
            return if lenient {
                self.says(Successor::Early, ReplacementReason::Rolling, None)
            } else {
                self.unknown()
            };
        };
        let one = Some(Replicas::ONE);
        match (kind, self.find(kind, owner)) {
            (Kind::StatefulSet, found) => {
                Ownership { replicas: found.map(Replicas::of), ..self.worst(ReplacementReason::StatefulSet) }
            }
            (Kind::Deployment | Kind::CronJob, _) => self.unknown(),
            (Kind::ReplicaSet | Kind::Job, None) => early(self.worst(ReplacementReason::Unseen)),
            (Kind::DaemonSet, None) => self.worst(ReplacementReason::Unseen),
            // maxSurge allows that two run.
            (Kind::DaemonSet, Some(set)) if set.surges() => Ownership {
                replicas: one,
                ..self.says(Successor::Early, ReplacementReason::Rolling, Some(false))
            },
            (Kind::DaemonSet, Some(_)) => {
                Ownership { replicas: one, ..self.worst(ReplacementReason::DaemonSet) }
            }
            (Kind::Job, Some(job)) => self.of_job(job),
            (Kind::ReplicaSet, Some(set)) => self.of_replica_set(set),
        }
    }

    fn of_job(&self, job: &Workload) -> Ownership {
        let replicas = Some(Replicas::of_job(job));
        if job.spec.pod_replacement_policy == "Failed" {
            return Ownership { replicas, ..self.worst(ReplacementReason::JobFailed) };
        }
        // However many indexes run at once, there should be one pod of each.
        let single = Some(job.spec.completion_mode == "Indexed" || job.spec.parallelism.unwrap_or(1) <= 1);
        let uid = &self.owner.uid;
        let by_uid = JOB_UID.iter().find(|label| self.pod.metadata.labels.get(**label) == Some(uid));
        let selector = by_uid.map_or_else(|| self.selector(job), |label| Some(format!("{label}={uid}")));
        let before = job.ran_before(Kind::Job);
        let plain = self.says(Successor::Early, ReplacementReason::Rolling, single);
        let plain = Ownership { replicas, selector, before, ..plain };
        let Some(above) = job.controller() else { return plain };
        if Kind::of(above) != Some(Kind::CronJob) {
            return managed(plain, above);
        }
        match self.find(Kind::CronJob, above) {
            Some(cron) if cron.spec.concurrency_policy != "Forbid" => plain,
            Some(_) => Ownership { alone: true, why: ReplacementReason::CronJobForbids, ..plain },
            None => self.unseen(above),
        }
    }

    fn of_replica_set(&self, set: &Workload) -> Ownership {
        let is_one = |set: &Workload| Some(set.spec.replicas.unwrap_or(1) <= 1);
        let Some(above) = set.controller() else {
            let replicas = Some(Replicas::of(set));
            let plain = self.says(Successor::Early, ReplacementReason::Rolling, is_one(set));
            let before = set.ran_before(Kind::ReplicaSet);
            return Ownership { replicas, selector: self.selector(set), before, ..plain };
        };
        let controller = Some(above.into());
        if Kind::of(above) != Some(Kind::Deployment) {
            return Ownership { controller, ..self.unknown() };
        }
        let Some(deployment) = self.find(Kind::Deployment, above) else { return self.unseen(above) };
        let alone = deployment.spec.strategy.r#type == "Recreate";
        let why = if alone { ReplacementReason::Recreate } else { ReplacementReason::Rolling };
        let replicas = Some(Replicas::of(deployment));
        let before = deployment.ran_before(Kind::Deployment);
        let plain = self.says(Successor::Early, why, is_one(deployment));
        let labelled = self.pod.metadata.labels.contains_key(TEMPLATE_HASH);
        let selector = self.selector(deployment).map(|all| if labelled { of_its_sets(&all) } else { all });
        let paused = deployment.spec.paused;
        let plain = Ownership { alone, controller, replicas, selector, before, paused, ..plain };
        match deployment.controller() {
            None => plain,
            Some(above) => managed(plain, above),
        }
    }

    fn says(&self, successor: Successor, why: ReplacementReason, single: Option<bool>) -> Ownership {
        Ownership {
            successor,
            alone: successor == Successor::WhenGone,
            controller: Some(self.owner.into()),
            why,
            single,
            replicas: None,
            selector: None,
            before: None,
            managed_by: None,
            paused: false,
        }
    }

    fn worst(&self, why: ReplacementReason) -> Ownership {
        self.says(Successor::WhenGone, why, None)
    }

    /// As the `CloneSet` of `OpenKruise`, which replaces what is Terminating.
    fn unknown(&self) -> Ownership {
        early(self.worst(ReplacementReason::UnknownKind))
    }

    /// Of the controller of the owner, which could not be read.
    fn unseen(&self, above: &Owner) -> Ownership {
        Ownership { controller: Some(above.into()), ..early(self.worst(ReplacementReason::Unseen)) }
    }

    /// Another of the same name is not the one that owns it.
    fn find(&self, kind: Kind, owner: &Owner) -> Option<&Workload> {
        let namespace = &self.pod.metadata.namespace;
        self.known.workload(kind, namespace, &owner.name).filter(|found| found.metadata.uid == owner.uid)
    }

    /// One that does not select this pod selects others than are meant.
    fn selector(&self, of: &Workload) -> Option<String> {
        of.spec.selector.text().filter(|_| of.spec.selector.matches(&self.pod.metadata.labels))
    }
}

/// Whatever else is not known of them, these may not wait for the end of a pod.
fn early(ownership: Ownership) -> Ownership {
    Ownership { successor: Successor::Early, ..ownership }
}

/// What owns a controller, and is not known here, may rely on there being one pod only.
fn managed(plain: Ownership, above: &Owner) -> Ownership {
    Ownership {
        alone: true,
        why: ReplacementReason::UnknownKind,
        single: None,
        managed_by: Some(above.into()),
        ..plain
    }
}

/// Selects, of all pods that the selector of a Deployment matches, those of its `ReplicaSet`s.
fn of_its_sets(selector: &str) -> String {
    format!("{selector},{TEMPLATE_HASH}")
}

impl Workload {
    fn controller(&self) -> Option<&Owner> {
        self.metadata.owner_references.iter().find(|owner| owner.controller)
    }

    /// Whether a pod is one of this controller, which is of this kind.
    pub fn owns(&self, kind: Kind, pod: &Pod) -> bool {
        let Some(owner) = pod.controller() else { return false };
        let by = |kind: Kind| Kind::of(owner) == Some(kind);
        pod.metadata.namespace == self.metadata.namespace
            && match kind {
                // Its sets are not read for this: one pod too many is waited for, and none too few.
                Kind::Deployment => by(Kind::ReplicaSet) && self.spec.selector.matches(&pod.metadata.labels),
                _ => by(kind) && owner.uid == self.metadata.uid,
            }
    }

    /// How many it ran before a printed line stopped it, if it is stopped still; one, of a Job.
    pub fn ran_before(&self, kind: Kind) -> Option<i64> {
        let label = self.metadata.labels.get(stopped::label(kind))?;
        match kind {
            Kind::Job => self.spec.suspend.then_some(1),
            _ if self.spec.replicas == Some(0) => label.parse().ok().filter(|before| *before > 0),
            _ => None,
        }
    }

    /// Selects its pods, as `kubectl -l` takes it.
    pub fn selector(&self, kind: Kind) -> Option<String> {
        let all = self.spec.selector.text()?;
        Some(if kind == Kind::Deployment { of_its_sets(&all) } else { all })
    }

    /// The grace period that its pods are given.
    pub fn grace(&self) -> SignedDuration {
        grace_of(self.spec.template.spec.termination_grace_period_seconds)
    }

    /// Whether a `DaemonSet` starts a new pod beside the old one on the same node.
    fn surges(&self) -> bool {
        match &self.spec.update_strategy.rolling_update.max_surge {
            serde_json::Value::Number(number) => number.as_i64().is_some_and(|number| number > 0),
            serde_json::Value::String(share) => !matches!(share.as_str(), "" | "0" | "0%"),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    struct KnownWorkloads(Vec<(Kind, Workload)>);

    impl Workloads for KnownWorkloads {
        fn workload(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Workload> {
            let is = |of: &&(Kind, Workload)| {
                of.0 == kind && of.1.metadata.namespace == namespace && of.1.metadata.name == name
            };
            self.0.iter().find(is).map(|(_, workload)| workload)
        }
    }

    #[allow(clippy::needless_pass_by_value)] // literals
    fn workload(name: &str, spec: Value, owners: Value) -> Workload {
        serde_json::from_value(json!({
            "metadata": { "name": name, "namespace": "shop", "uid": name, "ownerReferences": owners },
            "spec": spec, "status": { "readyReplicas": 2 },
        }))
        .unwrap()
    }

    fn owner(version: &str, kind: &str, name: &str) -> Value {
        json!({ "apiVersion": version, "kind": kind, "name": name, "uid": name, "controller": true })
    }

    fn pod(owners: &Value) -> Pod {
        serde_json::from_value(json!({ "metadata": { "namespace": "shop", "ownerReferences": owners } }))
            .unwrap()
    }

    fn known() -> KnownWorkloads {
        let of = |name: &str| json!([owner("apps/v1", "Deployment", name)]);
        let one = || json!({ "replicas": 1 });
        let mut stranger = workload("other-uid", one(), json!([]));
        stranger.metadata.uid = "another".into();
        KnownWorkloads(vec![
            (Kind::ReplicaSet, workload("plain", json!({ "replicas": 3 }), json!([]))),
            (Kind::ReplicaSet, workload("one", one(), json!([]))),
            (Kind::ReplicaSet, workload("rolling-1", one(), of("rolling"))),
            (Kind::ReplicaSet, workload("recreate-1", one(), of("recreate"))),
            (Kind::ReplicaSet, workload("unseen-1", one(), of("unseen"))),
            (
                Kind::ReplicaSet,
                workload("rollout-1", one(), json!([owner("argoproj.io/v1", "Rollout", "r")])),
            ),
            (Kind::ReplicaSet, workload("managed-1", one(), of("managed"))),
            (Kind::Deployment, workload("managed", one(), json!([owner("shop.example/v1", "Shop", "s")]))),
            (Kind::Job, workload("managed", json!({}), json!([owner("shop.example/v1", "Shop", "s")]))),
            (Kind::ReplicaSet, stranger),
            (
                Kind::Deployment,
                workload(
                    "rolling",
                    json!({ "replicas": 2, "strategy": { "type": "RollingUpdate" } }),
                    json!([]),
                ),
            ),
            (
                Kind::Deployment,
                workload("recreate", json!({ "strategy": { "type": "Recreate" } }), json!([])),
            ),
            (Kind::StatefulSet, workload("db", json!({ "replicas": 3 }), json!([]))),
            (
                Kind::DaemonSet,
                workload(
                    "agent",
                    json!({ "updateStrategy": { "rollingUpdate": { "maxSurge": 0 } } }),
                    json!([]),
                ),
            ),
            (
                Kind::DaemonSet,
                workload(
                    "surge",
                    json!({ "updateStrategy": { "rollingUpdate": { "maxSurge": "10%" } } }),
                    json!([]),
                ),
            ),
            (
                Kind::Job,
                workload(
                    "default",
                    json!({ "podReplacementPolicy": "TerminatingOrFailed", "parallelism": 4 }),
                    json!([]),
                ),
            ),
            (
                Kind::Job,
                workload("indexed", json!({ "completionMode": "Indexed", "parallelism": 4 }), json!([])),
            ),
            (
                Kind::Job,
                workload("unindexed", json!({ "completionMode": "NonIndexed", "parallelism": 4 }), json!([])),
            ),
            (Kind::Job, workload("failed", json!({ "podReplacementPolicy": "Failed" }), json!([]))),
            (Kind::Job, workload("nightly-1", json!({}), json!([owner("batch/v1", "CronJob", "nightly")]))),
            (Kind::Job, workload("hourly-1", json!({}), json!([owner("batch/v1", "CronJob", "hourly")]))),
            (Kind::Job, workload("lost-1", json!({}), json!([owner("batch/v1", "CronJob", "lost")]))),
            (Kind::CronJob, workload("nightly", json!({ "concurrencyPolicy": "Forbid" }), json!([]))),
            (Kind::CronJob, workload("hourly", json!({ "concurrencyPolicy": "Replace" }), json!([]))),
        ])
    }

    #[test]
    #[allow(clippy::too_many_lines)] // a table
    fn what_starts_the_next_one_and_when() {
        use Successor::{Early, Never, WhenGone};
        for (owners, successor, why, controller, single) in [
            (json!([]), Never, ReplacementReason::Unowned, None, Some(false)),
            (
                json!([owner("apps/v1", "ReplicaSet", "plain")]),
                Early,
                ReplacementReason::Rolling,
                Some("ReplicaSet/plain"),
                Some(false),
            ),
            (
                json!([owner("apps/v1", "ReplicaSet", "one")]),
                Early,
                ReplacementReason::Rolling,
                Some("ReplicaSet/one"),
                Some(true),
            ),
            (
                json!([owner("apps/v1", "ReplicaSet", "rolling-1")]),
                Early,
                ReplacementReason::Rolling,
                Some("Deployment/rolling"),
                Some(false),
            ),
            (
                json!([owner("apps/v1", "ReplicaSet", "recreate-1")]),
                Early,
                ReplacementReason::Recreate,
                Some("Deployment/recreate"),
                Some(true),
            ),
            // What cannot be seen is the worst that it could be.
            (
                json!([owner("apps/v1", "ReplicaSet", "unseen-1")]),
                Early,
                ReplacementReason::Unseen,
                Some("Deployment/unseen"),
                None,
            ),
            (
                json!([owner("apps/v1", "ReplicaSet", "rollout-1")]),
                Early,
                ReplacementReason::UnknownKind,
                Some("Rollout/r"),
                None,
            ),
            // Nor is what owns a controller known.
            (
                json!([owner("apps/v1", "ReplicaSet", "managed-1")]),
                Early,
                ReplacementReason::UnknownKind,
                Some("Deployment/managed"),
                None,
            ),
            (
                json!([owner("batch/v1", "Job", "managed")]),
                Early,
                ReplacementReason::UnknownKind,
                Some("Job/managed"),
                None,
            ),
            (
                json!([owner("apps/v1", "ReplicaSet", "none")]),
                Early,
                ReplacementReason::Unseen,
                Some("ReplicaSet/none"),
                None,
            ),
            (
                json!([owner("apps/v1", "ReplicaSet", "other-uid")]),
                Early,
                ReplacementReason::Unseen,
                Some("ReplicaSet/other-uid"),
                None,
            ),
            (
                json!([owner("evil.example/v1", "ReplicaSet", "plain")]),
                Early,
                ReplacementReason::UnknownKind,
                Some("ReplicaSet/plain"),
                None,
            ),
            (
                json!([owner("apps/v1", "StatefulSet", "db")]),
                WhenGone,
                ReplacementReason::StatefulSet,
                Some("StatefulSet/db"),
                None,
            ),
            (
                json!([owner("apps/v1", "StatefulSet", "none")]),
                WhenGone,
                ReplacementReason::StatefulSet,
                Some("StatefulSet/none"),
                None,
            ),
            (
                json!([owner("apps/v1", "DaemonSet", "agent")]),
                WhenGone,
                ReplacementReason::DaemonSet,
                Some("DaemonSet/agent"),
                None,
            ),
            (
                json!([owner("apps/v1", "DaemonSet", "surge")]),
                Early,
                ReplacementReason::Rolling,
                Some("DaemonSet/surge"),
                Some(false),
            ),
            (
                json!([owner("batch/v1", "Job", "default")]),
                Early,
                ReplacementReason::Rolling,
                Some("Job/default"),
                Some(false),
            ),
            // An index is one, however many indexes run at once.
            (
                json!([owner("batch/v1", "Job", "indexed")]),
                Early,
                ReplacementReason::Rolling,
                Some("Job/indexed"),
                Some(true),
            ),
            (
                json!([owner("batch/v1", "Job", "unindexed")]),
                Early,
                ReplacementReason::Rolling,
                Some("Job/unindexed"),
                Some(false),
            ),
            (
                json!([owner("batch/v1", "Job", "failed")]),
                WhenGone,
                ReplacementReason::JobFailed,
                Some("Job/failed"),
                None,
            ),
            (
                json!([owner("batch/v1", "Job", "none")]),
                Early,
                ReplacementReason::Unseen,
                Some("Job/none"),
                None,
            ),
            (
                json!([owner("batch.volcano.sh/v1alpha1", "Job", "default")]),
                Early,
                ReplacementReason::UnknownKind,
                Some("Job/default"),
                None,
            ),
            (
                json!([owner("v1", "ReplicationController", "rc")]),
                Early,
                ReplacementReason::Rolling,
                Some("ReplicationController/rc"),
                None,
            ),
            (
                json!([owner("db.example/v1", "Database", "x")]),
                Early,
                ReplacementReason::UnknownKind,
                Some("Database/x"),
                None,
            ),
            (
                json!([owner("batch/v1", "Job", "nightly-1")]),
                Early,
                ReplacementReason::CronJobForbids,
                Some("Job/nightly-1"),
                Some(true),
            ),
            (
                json!([owner("batch/v1", "Job", "hourly-1")]),
                Early,
                ReplacementReason::Rolling,
                Some("Job/hourly-1"),
                Some(true),
            ),
            (
                json!([owner("batch/v1", "Job", "lost-1")]),
                Early,
                ReplacementReason::Unseen,
                Some("CronJob/lost"),
                None,
            ),
            // Not every owner calls itself the controller, and the strictest counts.
            (
                json!([owner("apps/v1", "ReplicaSet", "plain"), { "apiVersion": "db.example/v1", "kind": "Database", "name": "x" }]),
                Early,
                ReplacementReason::UnknownKind,
                Some("Database/x"),
                None,
            ),
        ] {
            let found = ownership(&pod(&owners), &known());
            let runs_two = matches!(why, ReplacementReason::Rolling | ReplacementReason::Unowned);
            assert_eq!(found.alone, !runs_two, "{owners}");
            assert_eq!((found.successor, found.why), (successor, why), "{owners}");
            assert_eq!(
                (found.controller.as_ref().map(ToString::to_string).as_deref(), found.single),
                (controller, single),
                "{owners}"
            );
            let managed = controller.is_some_and(|of| of.ends_with("/managed"));
            assert_eq!(
                found.managed_by.as_ref().map(ToString::to_string).as_deref(),
                managed.then_some("Shop/s"),
                "{owners}"
            );
        }
    }

    /// How many there should be and how many are ready, of the set or of the Deployment behind it.
    #[test]
    fn the_replicas_of_a_set() {
        let of = |wanted| Some(Replicas { wanted, ready: 2 });
        for (version, kind, name, replicas) in [
            ("apps/v1", "StatefulSet", "db", of(3)),
            ("apps/v1", "StatefulSet", "none", None),
            ("apps/v1", "ReplicaSet", "plain", of(3)),
            ("apps/v1", "ReplicaSet", "rolling-1", of(2)),
            ("apps/v1", "ReplicaSet", "none", None),
            ("apps/v1", "DaemonSet", "agent", Some(Replicas::ONE)),
            ("batch/v1", "Job", "default", Some(Replicas::ONE)),
            ("v1", "ReplicationController", "rc", None),
            ("db.example/v1", "Database", "x", None),
        ] {
            let found = ownership(&pod(&json!([owner(version, kind, name)])), &known());
            assert_eq!(found.replicas, replicas, "{kind}/{name}");
        }
        assert_eq!(ownership(&pod(&json!([])), &known()).replicas, Some(Replicas::ONE));
    }

    /// All pods of a controller that can be told to end them and to go on.
    #[test]
    fn the_pods_of_a_controller() {
        let by_label = json!({ "replicas": 1, "selector": { "matchLabels": { "app": "x" } } });
        let by_another = json!({ "replicas": 1, "selector": { "matchLabels": { "app": "y" } } });
        let job = |uid: &str| json!({ "batch.kubernetes.io/controller-uid": uid, "app": "x" });
        let older = json!({ "controller-uid": "it", "app": "x" });
        let plain = json!({ "app": "x" });
        for (version, kind, spec, labels, selector) in [
            ("apps/v1", Kind::ReplicaSet, &by_label, plain.clone(), Some("app=x")),
            ("apps/v1", Kind::ReplicaSet, &by_another, plain.clone(), None),
            ("apps/v1", Kind::ReplicaSet, &json!({ "replicas": 1 }), plain.clone(), None),
            ("batch/v1", Kind::Job, &by_another, job("it"), Some("batch.kubernetes.io/controller-uid=it")),
            ("batch/v1", Kind::Job, &by_another, older, Some("controller-uid=it")),
            // Its selector was written by hand.
            ("batch/v1", Kind::Job, &by_label, job("other"), Some("app=x")),
            ("batch/v1", Kind::Job, &by_another, plain.clone(), None),
            // These are ended by no change to them that is made again.
            ("apps/v1", Kind::StatefulSet, &by_label, plain.clone(), None),
            ("apps/v1", Kind::DaemonSet, &by_label, plain.clone(), None),
        ] {
            let known = KnownWorkloads(vec![(kind, workload("it", spec.clone(), json!([])))]);
            let mut pod = pod(&json!([owner(version, kind.name(), "it")]));
            pod.metadata.labels = serde_json::from_value(labels.clone()).unwrap();
            assert_eq!(ownership(&pod, &known).selector.as_deref(), selector, "{kind:?} {spec} {labels}");
        }
        // Of a Deployment, those of all its sets.
        let known = KnownWorkloads(vec![
            (
                Kind::ReplicaSet,
                workload(
                    "up-1",
                    json!({ "selector": { "matchLabels": { "app": "x", "pod-template-hash": "1" } } }),
                    json!([owner("apps/v1", "Deployment", "up")]),
                ),
            ),
            (Kind::Deployment, workload("up", by_label.clone(), json!([]))),
        ]);
        let mut pod = pod(&json!([owner("apps/v1", "ReplicaSet", "up-1")]));
        pod.metadata.labels =
            serde_json::from_value(json!({ "app": "x", "pod-template-hash": "1" })).unwrap();
        assert_eq!(ownership(&pod, &known).selector.as_deref(), Some("app=x,pod-template-hash"));
    }

    #[test]
    fn the_pods_that_a_controller_owns() {
        let spec = json!({ "selector": { "matchLabels": { "app": "x" } } });
        let it = workload("it", spec, json!([]));
        for (kind, owner, labels, owned) in [
            (Kind::Deployment, owner("apps/v1", "ReplicaSet", "it-1"), json!({ "app": "x" }), true),
            (Kind::Deployment, owner("apps/v1", "ReplicaSet", "it-1"), json!({ "app": "y" }), false),
            // Its selector matches the pods of another controller.
            (Kind::Deployment, owner("apps/v1", "StatefulSet", "it"), json!({ "app": "x" }), false),
            (Kind::ReplicaSet, owner("apps/v1", "ReplicaSet", "it"), json!({}), true),
            (Kind::ReplicaSet, owner("apps/v1", "ReplicaSet", "other"), json!({ "app": "x" }), false),
            (Kind::Job, owner("batch/v1", "Job", "it"), json!({}), true),
            (Kind::Job, owner("apps/v1", "ReplicaSet", "it"), json!({ "app": "x" }), false),
        ] {
            let mut pod = pod(&json!([owner]));
            pod.metadata.labels = serde_json::from_value(labels).unwrap();
            assert_eq!(it.owns(kind, &pod), owned, "{kind:?} {owner}");
            pod.metadata.namespace = "other".into();
            assert!(!it.owns(kind, &pod), "{kind:?} {owner}");
        }
    }

    #[test]
    fn controllers_that_were_stopped() {
        for (version, kind, spec, stopped) in [
            ("apps/v1", Kind::ReplicaSet, json!({ "replicas": 0 }), true),
            ("apps/v1", Kind::ReplicaSet, json!({ "replicas": 1 }), false),
            ("apps/v1", Kind::StatefulSet, json!({ "replicas": 0 }), true),
            ("batch/v1", Kind::Job, json!({ "suspend": true }), true),
            ("batch/v1", Kind::Job, json!({ "suspend": true, "podReplacementPolicy": "Failed" }), true),
            ("batch/v1", Kind::Job, json!({}), false),
        ] {
            let known = KnownWorkloads(vec![(kind, workload("it", spec.clone(), json!([])))]);
            let found = ownership(&pod(&json!([owner(version, kind.name(), "it")])), &known);
            assert_eq!(found.is_stopped(), stopped, "{kind:?} {spec}");
        }
    }

    #[test]
    fn a_majority_is_more_than_half_of_what_is_wanted() {
        let pod = |ready: &str| -> Pod {
            let status = json!({ "conditions": [{ "type": "Ready", "status": ready }] });
            serde_json::from_value(json!({ "status": status })).unwrap()
        };
        for (wanted, ready, this, majority, all) in [
            (3, 3, "True", true, true),
            (3, 2, "True", false, false),
            (3, 2, "False", true, true),
            (3, 1, "False", false, false),
            (5, 4, "True", true, false),
            (5, 3, "True", false, false),
            // Of two, one is no majority; but there will not be more without this one.
            (2, 2, "True", false, true),
            (2, 1, "True", false, false),
            (4, 3, "True", false, false),
            (1, 1, "True", true, true),
            (0, 0, "True", true, true),
        ] {
            let (set, pod) = (Replicas { wanted, ready }, pod(this));
            let found = (set.keep_a_majority_without(&pod), set.are_all_ready_without(&pod));
            assert_eq!(found, (majority, all), "{wanted} {ready} {this}");
        }
    }

    #[test]
    fn a_daemon_set_surges_by_a_number_or_a_share() {
        for (surge, surges) in [
            (json!(null), false),
            (json!(0), false),
            (json!(1), true),
            (json!(2), true),
            (json!(""), false),
            (json!("0"), false),
            (json!("0%"), false),
            (json!("10%"), true),
        ] {
            let spec = json!({ "updateStrategy": { "rollingUpdate": { "maxSurge": surge } } });
            assert_eq!(workload("agent", spec, json!([])).surges(), surges, "{surge}");
        }
    }

    #[test]
    fn of_equally_strict_owners_the_controller_is_named() {
        let other = json!({ "apiVersion": "db.example/v1", "kind": "Database", "name": "x" });
        let controller = owner("db.example/v1", "Cluster", "c");
        for owners in [json!([other, controller]), json!([controller, other])] {
            let found = ownership(&pod(&owners), &known());
            assert_eq!(
                found.controller.as_ref().map(ToString::to_string).as_deref(),
                Some("Cluster/c"),
                "{owners}"
            );
        }
    }
}
