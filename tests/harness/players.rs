//! Components that take part in elections as client-go does: they answer pings, renew the lease that they were
//! given as long as no `preferredHolder` is named, and give up when they have not renewed for a while. All of a
//! namespace are played by one thread, which looks four times a second.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use futures::future::join_all;
use jiff::Timestamp;
use kube_leases::{
    client::{
        Cluster, LEASES, Object, Query, Resource,
        single::{Address, Writing},
    },
    rules::{candidate::Candidate, lease::Lease},
};
use kubectl_lease::{cli::Connection, connection};
use serde_json::{Value, json};

use super::{ControlPlane, User, components::CANDIDATES, random};

/// Shorter than the 15, 10 and 2 seconds of the real ones, in the same order.
const DURATION: Duration = Duration::from_secs(6);
const DEADLINE: Duration = Duration::from_secs(4);
const RETRY: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(250);

/// What becomes of the process that loses the lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It exits, as those of Kubernetes do, and comes back after this time under a new name.
    Restarts(Duration),
    /// It exits, and does not come back.
    Exits,
    /// It lives on under the same name, and stands for election again.
    Stays,
    /// It runs without coordinated election: it takes the lease by itself, and is no candidate.
    Uncoordinated,
}

#[derive(Clone, Debug)]
pub struct Player {
    pub host: String,
    pub name: String,
    pub lease: String,
    pub binary: &'static str,
    pub emulation: &'static str,
    pub mode: Mode,
    /// Whether its process runs.
    pub up: bool,
    back: Option<Instant>,
    /// What it saw of the lease, and when that last changed.
    observed: Option<(Lease, Instant)>,
    leading: bool,
    renewed: Instant,
    tried: Instant,
}

impl Player {
    pub fn new(host: &str, lease: &str, mode: Mode) -> Self {
        let now = Instant::now();
        Self {
            host: host.to_owned(),
            name: format!("{host}_{}", random()),
            lease: lease.to_owned(),
            binary: "1.37.1",
            emulation: "1.37.0",
            mode,
            up: true,
            back: None,
            observed: None,
            leading: false,
            renewed: now,
            tried: now,
        }
    }

    pub fn versions(mut self, binary: &'static str, emulation: &'static str) -> Self {
        (self.binary, self.emulation) = (binary, emulation);
        self
    }

    fn exit(&mut self, now: Instant) {
        (self.up, self.leading, self.observed) = (false, false, None);
        self.back = match self.mode {
            Mode::Restarts(after) => Some(now + after),
            _ => None,
        };
    }

    /// What it does about its candidate and its lease at this moment.
    fn act(&mut self, candidate: Option<&Candidate>, lease: Option<&Lease>, now: Instant) -> Vec<Act> {
        if !self.up && self.back.is_some_and(|back| back <= now) {
            (self.up, self.back, self.name) = (true, None, format!("{}_{}", self.host, random()));
            return Vec::new();
        }
        if !self.up {
            return Vec::new();
        }
        let mut acts = Vec::new();
        if self.mode != Mode::Uncoordinated {
            match candidate {
                None => acts.push(Act::Join),
                Some(candidate) if candidate.owes_acknowledgement() => {
                    acts.push(Act::Answer(candidate.metadata.resource_version.clone()));
                }
                Some(_) => {}
            }
        }
        if now - self.tried < RETRY {
            return acts;
        }
        self.tried = now;
        let seen = lease.cloned().unwrap_or_default();
        if self.observed.as_ref().is_none_or(|(before, _)| before.spec != seen.spec) {
            self.observed = Some((seen.clone(), now));
        }
        let since = self.observed.as_ref().map_or(now, |(_, since)| *since);
        let length = Duration::from_secs(seen.spec.lease_duration_seconds.unwrap_or(0).unsigned_abs().into());
        let expired = since + length < now;
        let ours = seen.holder() == self.name;
        let asked = seen.spec.preferred_holder.as_deref().is_some_and(|preferred| !preferred.is_empty());
        let renews = match self.mode {
            Mode::Uncoordinated => ours || expired || seen.holder().is_empty(),
            _ => ours && !expired && !asked,
        };
        if renews && lease.is_some() {
            acts.push(Act::Renew { version: seen.metadata.resource_version, takes: !ours });
        } else if self.leading && now - self.renewed > DEADLINE {
            self.leading = false;
            if self.mode != Mode::Stays {
                self.exit(now);
            }
        }
        acts
    }
}

enum Act {
    Join,
    /// The version of its candidate.
    Answer(String),
    /// The version of the lease.
    Renew {
        version: String,
        takes: bool,
    },
}

/// Who held a lease from when on.
pub type Held = Vec<(Instant, String)>;

#[derive(Default)]
struct State {
    players: Vec<Player>,
    leases: BTreeMap<String, Lease>,
    history: BTreeMap<String, Held>,
    looks: u64,
}

/// The components of a namespace, until it is dropped.
pub struct World {
    state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl World {
    pub fn start(plane: &ControlPlane, namespace: &str) -> Self {
        let flags =
            Connection { kubeconfig: Some(plane.kubeconfig(User::Admin, 0)), ..Connection::default() };
        let (state, stop) = (Arc::new(Mutex::new(State::default())), Arc::new(AtomicBool::new(false)));
        let (shared, stopped, namespace) = (Arc::clone(&state), Arc::clone(&stop), namespace.to_owned());
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let cluster = Cluster::new(connection::load(&flags).unwrap(), None).await.unwrap();
                while !stopped.load(Ordering::Relaxed) {
                    look(&cluster, &namespace, &shared).await;
                    tokio::time::sleep(LOOK).await;
                }
            });
        });
        Self { state, stop, thread: Some(thread) }
    }

    pub fn add(&self, player: Player) -> String {
        let name = player.name.clone();
        self.state.lock().unwrap().players.push(player);
        name
    }

    /// Ends the process of a component as `kill -9` does; what it does afterwards is up to its mode.
    pub fn kill(&self, lease: &str, host: &str) {
        let mut state = self.state.lock().unwrap();
        let now = Instant::now();
        for player in state.players.iter_mut().filter(|it| it.lease == lease && it.host == host && it.up) {
            player.exit(now);
        }
    }

    /// Whether the process of this name runs.
    pub fn runs(&self, name: &str) -> bool {
        self.state.lock().unwrap().players.iter().any(|player| player.name == name && player.up)
    }

    /// The name that a component on a host has now.
    pub fn name(&self, lease: &str, host: &str) -> String {
        let state = self.state.lock().unwrap();
        let found = state.players.iter().find(|player| player.lease == lease && player.host == host);
        found.map(|player| player.name.clone()).unwrap_or_default()
    }

    pub fn lease(&self, name: &str) -> Option<Lease> {
        self.state.lock().unwrap().leases.get(name).cloned()
    }

    /// Who holds a lease that is valid.
    pub fn leader(&self, lease: &str) -> Option<String> {
        let lease = self.lease(lease)?;
        let valid = lease.expires().is_some_and(|until| until > Timestamp::now());
        (valid && !lease.holder().is_empty()).then(|| lease.holder().to_owned())
    }

    /// Who leads a lease and has renewed it.
    pub fn renewing(&self, lease: &str) -> Option<String> {
        let leader = self.leader(lease)?;
        let state = self.state.lock().unwrap();
        state
            .players
            .iter()
            .any(|player| player.name == leader && player.up && player.leading)
            .then_some(leader)
    }

    /// Who held a lease since this moment, whoever held it then first.
    pub fn since(&self, lease: &str, from: Instant) -> Held {
        let state = self.state.lock().unwrap();
        let all = state.history.get(lease).cloned().unwrap_or_default();
        let first = all.iter().rposition(|(at, _)| *at <= from).unwrap_or(0);
        all[first..].to_vec()
    }

    /// Waits for two whole looks from now on.
    pub fn catch_up(&self) {
        let before = self.state.lock().unwrap().looks;
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.state.lock().unwrap().looks < before + 2 && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn look(cluster: &Cluster, namespace: &str, state: &Mutex<State>) {
    let (candidates, leases) =
        (Query::new(CANDIDATES).namespace(namespace), Query::new(LEASES).namespace(namespace));
    let (candidates, leases) =
        tokio::join!(cluster.list::<Candidate>(&candidates), cluster.list::<Lease>(&leases));
    let (Ok(candidates), Ok(leases)) = (candidates, leases) else { return };
    let now = Instant::now();
    let todo: Vec<(usize, Player, Vec<Act>)> = {
        let mut state = state.lock().unwrap();
        state.looks += 1;
        state.leases = leases
            .items
            .iter()
            .map(|lease| (lease.value.metadata.name.clone(), Lease::clone(&lease.value)))
            .collect();
        let State { players, leases, history, .. } = &mut *state;
        for (name, lease) in leases.iter() {
            let held = history.entry(name.clone()).or_default();
            if held.last().is_none_or(|(_, holder)| holder != lease.holder()) {
                held.push((now, lease.holder().to_owned()));
            }
        }
        let mut todo = Vec::new();
        for (n, player) in players.iter_mut().enumerate() {
            let candidate = candidates.items.iter().find(|it| it.value.metadata.name == player.name);
            let acts = player.act(candidate.map(|it| &*it.value), leases.get(&player.lease), now);
            if !acts.is_empty() {
                todo.push((n, player.clone(), acts));
            }
        }
        todo
    };
    let done = join_all(todo.iter().map(async |(n, player, acts)| {
        let mut renewed = false;
        for act in acts {
            renewed |= do_it(cluster, namespace, player, act).await;
        }
        (*n, player.name.clone(), renewed)
    }))
    .await;
    let mut state = state.lock().unwrap();
    for (n, name, renewed) in done {
        let player = &mut state.players[n];
        if renewed && player.name == name && player.up {
            (player.leading, player.renewed) = (true, now);
        }
    }
}

/// Whether it renewed the lease. What somebody else was faster with is done at the next look.
async fn do_it(cluster: &Cluster, namespace: &str, player: &Player, act: &Act) -> bool {
    let time = || format!("{:.6}", Timestamp::now());
    let writing = Writing::default();
    match act {
        Act::Join => {
            let object = json!({
                "apiVersion": format!("{}/{}", CANDIDATES.group, CANDIDATES.version), "kind": CANDIDATES.kind,
                "metadata": { "name": player.name, "namespace": namespace },
                "spec": {
                    "leaseName": player.lease, "binaryVersion": player.binary,
                    "emulationVersion": player.emulation, "strategy": "OldestEmulationVersion",
                    "renewTime": time(),
                },
            });
            let at = Address::new(namespace, &player.name);
            let _: Result<Object<Value>, _> = cluster.create(CANDIDATES, &at, &object, &writing).await;
            false
        }
        Act::Answer(version) => {
            let patch =
                json!({ "metadata": { "resourceVersion": version }, "spec": { "renewTime": time() } });
            patched(cluster, CANDIDATES, namespace, &player.name, &patch).await;
            false
        }
        Act::Renew { version, takes } => {
            let mut spec = json!({ "renewTime": time(), "leaseDurationSeconds": DURATION.as_secs() });
            if player.mode == Mode::Uncoordinated {
                // It knows nothing of these, and writes the whole object.
                (spec["strategy"], spec["preferredHolder"]) = (Value::Null, Value::Null);
                spec["holderIdentity"] = player.name.clone().into();
                if *takes {
                    spec["acquireTime"] = time().into();
                }
            }
            let patch = json!({ "metadata": { "resourceVersion": version }, "spec": spec });
            patched(cluster, LEASES, namespace, &player.lease, &patch).await
        }
    }
}

async fn patched(cluster: &Cluster, resource: Resource, namespace: &str, name: &str, patch: &Value) -> bool {
    let at = Address::new(namespace, name);
    let written: Result<Object<Value>, _> = cluster.patch(resource, &at, patch, &Writing::default()).await;
    written.is_ok()
}
