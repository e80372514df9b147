//! A stub of a kube-apiserver, for what no real one does on demand: faults at a chosen moment,
//! expired watches, a clock that is wrong, and a count of requests. Everything else is tested on a real control
//! plane.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

/// What to answer.
pub enum Reply {
    /// A status, further headers, a body.
    Whole(u16, &'static str, Value),
    /// Headers that promise a body, half of it, and a closed connection.
    Cut,
    /// The lines of a watch, then an orderly end.
    Watch(Vec<Value>),
    /// A watch whose lines come after a while, and which stays open.
    Later(Duration, Vec<Value>),
    /// The same, but its headers come as late as its lines.
    #[cfg_attr(not(unix), allow(dead_code))]
    OpenedLater(Duration, Vec<Value>),
    /// A watch that stays open and says nothing.
    Silence,
    /// Nothing at all, not even headers, on a connection that stays open.
    Never,
}

/// A running stub; it records what it was asked.
pub struct Stub {
    pub address: String,
    pub requests: Arc<Mutex<Vec<String>>>,
    kubeconfigs: Mutex<Vec<PathBuf>>,
}

impl Drop for Stub {
    fn drop(&mut self) {
        for path in self.kubeconfigs.lock().unwrap().drain(..) {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Stub {
    /// Starts one that answers by `script`, which is given the number of the request, from 0, and
    /// its text.
    pub fn start(script: impl Fn(usize, &str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (script, recorded) = (Arc::new(script), Arc::clone(&requests));
        thread::spawn(move || {
            for connection in listener.incoming() {
                let (script, recorded) = (Arc::clone(&script), Arc::clone(&recorded));
                thread::spawn(move || serve(connection.unwrap(), &*script, &recorded));
            }
        });
        Self { address, requests, kubeconfigs: Mutex::default() }
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().iter().map(|text| text.lines().next().unwrap().to_owned()).collect()
    }

    /// A kubeconfig for it, with this user; it goes with the stub.
    pub fn kubeconfig(&self, user: &Value) -> PathBuf {
        let port = self.address.rsplit(':').next().unwrap();
        let mut kubeconfigs = self.kubeconfigs.lock().unwrap();
        let name = format!("kubectl-lease-stub-{}-{port}-{}", std::process::id(), kubeconfigs.len());
        let path = std::env::temp_dir().join(name);
        kubeconfigs.push(path.clone());
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "stub",
            "clusters": [{ "name": "stub", "cluster": { "server": self.address } }],
            "users": [{ "name": "stub", "user": user }],
            "contexts": [{ "name": "stub", "context": { "cluster": "stub", "user": "stub" } }],
        });
        std::fs::write(&path, config.to_string()).unwrap();
        path
    }
}

fn serve(
    connection: TcpStream,
    script: &(dyn Fn(usize, &str) -> Reply + Send + Sync),
    requests: &Mutex<Vec<String>>,
) {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let mut writer = connection;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).is_ok_and(|count| count == 0) || head.is_empty() {
                return;
            }
        }
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
        });
        let mut body = vec![0; length.unwrap_or(0)];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let request = head + std::str::from_utf8(&body).unwrap();
        let number = {
            let mut requests = requests.lock().unwrap();
            requests.push(request.clone());
            requests.len() - 1
        };
        let date = |extra: &str| {
            let now = jiff::Timestamp::now();
            let date = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&now).unwrap();
            if extra.contains("date:") { String::new() } else { format!("date: {date}\r\n") }
        };
        let reply = script(number, &request);
        let done = match reply {
            Reply::Whole(status, extra, body) => {
                let body = body.to_string();
                let text = format!(
                    "HTTP/1.1 {status} X\r\n{}{extra}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                    date(extra),
                    body.len()
                );
                writer.write_all(text.as_bytes()).is_err()
            }
            Reply::Cut => {
                let _ = writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"items\":[");
                true
            }
            Reply::Watch(lines) => {
                let text = lines.iter().fold(String::new(), |text, line| format!("{text}{line}\n"));
                let text = format!("HTTP/1.1 200 OK\r\n{}connection: close\r\n\r\n{text}", date(""));
                let _ = writer.write_all(text.as_bytes());
                true
            }
            Reply::Silence | Reply::Later(..) | Reply::OpenedLater(..) => {
                if let Reply::OpenedLater(pause, _) = reply {
                    thread::sleep(pause);
                }
                let text = format!("HTTP/1.1 200 OK\r\n{}connection: close\r\n\r\n", date(""));
                let _ = writer.write_all(text.as_bytes());
                if let Reply::Later(pause, _) = reply {
                    thread::sleep(pause);
                }
                if let Reply::Later(_, lines) | Reply::OpenedLater(_, lines) = reply {
                    let text = lines.iter().fold(String::new(), |text, line| format!("{text}{line}\n"));
                    let _ = writer.write_all(text.as_bytes());
                }
                thread::sleep(Duration::from_secs(60));
                true
            }
            Reply::Never => {
                thread::sleep(Duration::from_secs(60));
                true
            }
        };
        if done {
            return;
        }
    }
}

/// An identity lease renewed `age` seconds ago.
pub fn lease(host: &str, version: u32, age: i64) -> Value {
    let renewed = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(age);
    json!({
        "metadata": {
            "name": format!("apiserver-{host}"), "namespace": "kube-system", "uid": host,
            "resourceVersion": version.to_string(), "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": { "apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": host },
        },
        "spec": { "holderIdentity": format!("{host}_1"), "leaseDurationSeconds": 3600, "renewTime": format!("{renewed:.6}") },
    })
}

pub fn list(version: u32, items: &[Value]) -> Value {
    json!({ "kind": "LeaseList", "metadata": { "resourceVersion": version.to_string() }, "items": items })
}
