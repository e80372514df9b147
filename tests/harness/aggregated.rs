//! The `LeaseCandidate` API of tomorrow, with `spec.priority`, behind the aggregator of a real
//! kube-apiserver. No release serves the field: this stub is the only server there is to try it on.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use serde_json::{Value, json};

use crate::{
    harness::{ControlPlane, components::Entrant},
    plugin::wait_for,
};

/// What the server does with a priority that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    Priority,
    /// It knows the field, and drops it: a feature that is off.
    NotThePriority,
    /// It answers 200 and keeps nothing.
    Nothing,
}

#[derive(Debug)]
struct State {
    keeps: Keeps,
    version: u64,
    candidates: BTreeMap<String, Value>,
}

pub struct Aggregated(Arc<Mutex<State>>);

impl Aggregated {
    /// Starts one and has the kube-apiserver ask it for candidates.
    pub fn start(plane: &ControlPlane) -> Self {
        let certificates = CertificateDer::pem_file_iter(plane.folder.join("server.crt")).unwrap();
        let key = PrivateKeyDer::from_pem_file(plane.folder.join("server.key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(certificates.map(Result::unwrap).collect(), key)
            .unwrap();
        let config = Arc::new(config);
        let state =
            Arc::new(Mutex::new(State { keeps: Keeps::Priority, version: 1, candidates: BTreeMap::new() }));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for connection in listener.incoming().map(Result::unwrap) {
                let (config, state) = (Arc::clone(&config), Arc::clone(&shared));
                thread::spawn(move || {
                    let session = ServerConnection::new(config).unwrap();
                    serve(StreamOwned::new(session, connection), &state);
                });
            }
        });
        plane.apply(&json!({ "apiVersion": "v1", "kind": "List", "items": [
            { "apiVersion": "v1", "kind": "Service",
              "metadata": { "name": "tomorrow", "namespace": "default" },
              "spec": { "type": "ExternalName", "externalName": "localhost", "ports": [{ "port": port }] } },
            { "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
              "metadata": { "name": "v1beta1.coordination.k8s.io" },
              "spec": { "group": "coordination.k8s.io", "version": "v1beta1", "insecureSkipTLSVerify": true,
                        "groupPriorityMinimum": 1000, "versionPriority": 100,
                        "service": { "name": "tomorrow", "namespace": "default", "port": port } } },
        ] }));
        let available = || {
            let path = "jsonpath={.status.conditions[?(@.type=='Available')].status} {.status.conditions[*].message}";
            plane.kubectl(&["get", "apiservice", "v1beta1.coordination.k8s.io", "-o", path])
        };
        wait_for(
            "the aggregated API",
            Duration::from_secs(30),
            || available().starts_with("True"),
            available,
        );
        Self(state)
    }

    pub fn keep(&self, keeps: Keeps) {
        self.0.lock().unwrap().keeps = keeps;
    }

    /// Puts a candidate there, in the place of any earlier one.
    pub fn put(&self, entrant: &Entrant) {
        let mut state = self.0.lock().unwrap();
        let mut candidate = entrant.manifest("default");
        candidate["metadata"]["uid"] = format!("uid-{}", entrant.name).into();
        candidate["metadata"]["creationTimestamp"] = "2026-01-02T03:04:05Z".into();
        state.store(candidate);
    }

    pub fn candidate(&self, name: &str) -> Value {
        self.0.lock().unwrap().candidates[name].clone()
    }
}

impl State {
    fn store(&mut self, mut candidate: Value) -> Value {
        self.version += 1;
        candidate["metadata"]["resourceVersion"] = self.version.to_string().into();
        let name = candidate["metadata"]["name"].as_str().unwrap().to_owned();
        self.candidates.insert(name, candidate.clone());
        candidate
    }

    fn answer(&mut self, method: &str, path: &str, body: &[u8]) -> (u16, Value) {
        let refuse = |code: u16, name: &str| {
            let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                "reason": "No", "message": format!("no: {code}"), "details": { "name": name } });
            (code, status)
        };
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let Some((_, rest)) = path.split_once("/leasecandidates") else {
            if path == "/apis/coordination.k8s.io/v1beta1" {
                let resources = json!([{ "name": "leasecandidates", "singularName": "leasecandidate",
                    "namespaced": true, "kind": "LeaseCandidate", "verbs": ["get", "list", "watch", "patch"] }]);
                return (
                    200,
                    json!({ "kind": "APIResourceList", "apiVersion": "v1",
                    "groupVersion": "coordination.k8s.io/v1beta1", "resources": resources }),
                );
            }
            return refuse(404, "");
        };
        let name = rest.trim_start_matches('/');
        if name.is_empty() {
            let named = |name: &str| query.contains(&format!("fieldSelector=metadata.name%3D{name}"));
            let is_selected = |name: &str| !query.contains("fieldSelector=") || named(name);
            let selected = self.candidates.iter().filter(|(name, _)| is_selected(name));
            let items: Vec<_> = selected.map(|(_, candidate)| candidate.clone()).collect();
            return (
                200,
                json!({ "kind": "LeaseCandidateList", "apiVersion": "coordination.k8s.io/v1beta1",
                "metadata": { "resourceVersion": self.version.to_string() }, "items": items }),
            );
        }
        let Some(before) = self.candidates.get(name).cloned() else { return refuse(404, name) };
        if method == "GET" {
            return (200, before);
        }
        let wanted: Value = serde_json::from_slice(body).unwrap();
        let version = &wanted["metadata"]["resourceVersion"];
        if !version.is_null() && *version != before["metadata"]["resourceVersion"] {
            return refuse(409, name);
        }
        let mut after = before.clone();
        if self.keeps != Keeps::Nothing {
            merge(&mut after, &wanted);
        }
        if self.keeps == Keeps::NotThePriority {
            after["spec"].as_object_mut().unwrap().remove("priority");
        }
        if wanted["spec"]["pingTime"].is_string() {
            after["spec"]["renewTime"] = format!("{:.6}", jiff::Timestamp::now()).into();
        }
        if query.contains("dryRun=All") {
            return (200, after);
        }
        assert!(!version.is_null(), "every write says what it is for");
        (200, self.store(after))
    }
}

/// RFC 7386.
fn merge(into: &mut Value, wanted: &Value) {
    let Value::Object(wanted) = wanted else {
        into.clone_from(wanted);
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (name, value) in wanted {
        if value.is_null() {
            into.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut into[name.as_str()], value);
        }
    }
}

fn serve(stream: StreamOwned<ServerConnection, TcpStream>, state: &Mutex<State>) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if !matches!(stream.read_line(&mut head), Ok(1..)) {
                return;
            }
        }
        let header = |name: &str| {
            head.lines().find_map(|line| {
                let (found, value) = line.split_once(':')?;
                found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        let length = header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        let mut words = head.split_whitespace();
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let (status, answer) = state.lock().unwrap().answer(method, path, &body);
        let body = if path.contains("watch=true") || path.contains("watch=1") {
            // As if everything had just changed; then an orderly end.
            let events = answer["items"].as_array().unwrap().iter();
            let lines =
                events.map(|object| json!({ "type": "MODIFIED", "object": object }).to_string() + "\n");
            lines.collect()
        } else {
            answer.to_string()
        };
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let stream = stream.get_mut();
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).is_err() {
            return;
        }
        let _ = stream.flush();
    }
}
