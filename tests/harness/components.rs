//! Components that take part in coordinated elections without being anything else: their candidates
//! are written by a test, and this answers the pings of those that are to be alive.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kube_leases::{
    client::{
        Cluster, Object, Query, Resource,
        single::{Address, Writing},
    },
    rules::{candidate::Candidate, priority},
};
use kubectl_lease::{cli::Connection, connection};
use serde_json::{Value, json};

use super::{ControlPlane, User};

pub const CANDIDATES: Resource = Resource {
    group: "coordination.k8s.io",
    version: "v1beta1",
    plural: "leasecandidates",
    kind: "LeaseCandidate",
};

/// Marks candidates that answer.
const ALIVE: &str = "kubectl-lease.dev/alive";

/// A candidate as a component would have written it.
#[derive(Clone, Debug)]
pub struct Entrant {
    pub name: String,
    pub lease: String,
    pub binary: &'static str,
    pub emulation: &'static str,
    pub strategy: &'static str,
    /// How many seconds ago it renewed, and was pinged.
    pub renewed: i64,
    pub pinged: Option<i64>,
    /// Pinned, as `set-priority` does it.
    pub priority: Option<i32>,
    pub alive: bool,
}

impl Entrant {
    pub fn new(name: &str, lease: &str) -> Self {
        Self {
            name: name.to_owned(),
            lease: lease.to_owned(),
            binary: "1.37.1",
            emulation: "1.37.0",
            strategy: "OldestEmulationVersion",
            renewed: 10,
            pinged: None,
            priority: None,
            alive: true,
        }
    }

    pub fn manifest(&self, namespace: &str) -> Value {
        let ago = |seconds| format!("{:.6}", Timestamp::now() - SignedDuration::from_secs(seconds));
        let pin = self.priority.and_then(|priority| priority::pin(priority, self.emulation));
        let annotations = pin.as_ref().map_or(json!({}), |_| json!({ priority::ORIGINAL: self.emulation }));
        json!({
            "apiVersion": format!("{}/{}", CANDIDATES.group, CANDIDATES.version), "kind": CANDIDATES.kind,
            "metadata": { "name": self.name, "namespace": namespace, "labels": { ALIVE: self.alive.to_string() },
                "annotations": annotations },
            "spec": {
                "leaseName": self.lease, "binaryVersion": self.binary, "emulationVersion": pin.as_deref().unwrap_or(self.emulation),
                "strategy": self.strategy, "renewTime": ago(self.renewed), "pingTime": self.pinged.map(ago),
            },
        })
    }
}

/// Writes candidates, all in the same second if they are few.
pub fn announce(plane: &ControlPlane, namespace: &str, entrants: &[Entrant]) {
    let items: Vec<_> = entrants.iter().map(|entrant| entrant.manifest(namespace)).collect();
    plane.apply(&json!({ "apiVersion": "v1", "kind": "List", "items": items }));
}

/// Answers for the living candidates of a namespace until it is dropped.
pub struct Components {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Components {
    pub fn answer(plane: &ControlPlane, namespace: &str) -> Self {
        let flags =
            Connection { kubeconfig: Some(plane.kubeconfig(User::Admin, 0)), ..Connection::default() };
        let query = Query::new(CANDIDATES).namespace(namespace).select(Some(&format!("{ALIVE}=true")), None);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let cluster = Cluster::new(connection::load(&flags).unwrap(), None).await.unwrap();
                while !stopped.load(Ordering::Relaxed) {
                    if let Ok(list) = cluster.list::<Candidate>(&query).await {
                        for candidate in list.items.iter().filter(|it| it.value.owes_acknowledgement()) {
                            renew(&cluster, &candidate.value).await;
                        }
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            });
        });
        Self { stop, thread: Some(thread) }
    }
}

async fn renew(cluster: &Cluster, candidate: &Candidate) {
    let metadata = &candidate.metadata;
    let patch = json!({
        "metadata": { "resourceVersion": metadata.resource_version },
        "spec": { "renewTime": format!("{:.6}", Timestamp::now()) },
    });
    let at = Address::new(&metadata.namespace, &metadata.name);
    // Somebody else wrote: next time.
    let _: Result<Object<Value>, _> = cluster.patch(CANDIDATES, &at, &patch, &Writing::default()).await;
}

impl Drop for Components {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
