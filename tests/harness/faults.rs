//! A proxy in front of a real kube-apiserver that injects faults: what a real server or network
//! does, but not on demand. It takes plain HTTP and passes it on as the administrator.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use kube::{
    Client, Config,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};

use super::{ControlPlane, User, random};

/// What to do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Answer with this status, and do not pass it on.
    Refuse(u16),
    /// Answer with 429 and ask for so many seconds of patience, and do not pass it on.
    Busy(u64),
    /// Pass it on, and close the connection instead of answering.
    CutAfter,
    /// Close the connection without passing it on.
    CutBefore,
    /// Pass it on and never answer.
    HangAfter,
    /// Pass it on, and answer so many milliseconds after the server has done it.
    SlowAnswer(u64),
    /// Pass it on so many milliseconds late, whether or not the client still waits for the answer.
    Late(u64),
    /// Pass it on twice, as a proxy that tries again does, and answer with the second answer.
    Twice,
    /// Pass it on, and claim in the answer that the server's clock is off by these seconds.
    Clock(i64),
}

pub struct FaultProxy {
    pub kubeconfig: PathBuf,
    severed: Arc<AtomicBool>,
}

impl FaultProxy {
    /// Starts one; `script` is given the method and path of each request.
    pub fn start(plane: &ControlPlane, script: impl Fn(&str, &str) -> Fault + Send + Sync + 'static) -> Self {
        Self::start_for(plane, User::Admin, 0, script)
    }

    /// Starts one that passes requests on as `user`, to the `n`th kube-apiserver.
    pub fn start_for(
        plane: &ControlPlane,
        user: User,
        n: usize,
        script: impl Fn(&str, &str) -> Fault + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let upstream = plane.kubeconfig(user, n);
        let script = Arc::new(script);
        let severed = Arc::new(AtomicBool::new(false));
        let is_severed = Arc::clone(&severed);
        thread::spawn(move || {
            for connection in listener.incoming().map(Result::unwrap) {
                let (script, upstream) = (Arc::clone(&script), upstream.clone());
                let severed = Arc::clone(&is_severed);
                thread::spawn(move || serve(connection, &upstream, &*script, &severed));
            }
        });
        let kubeconfig = plane.folder.join(format!("faults-{}.kubeconfig", random()));
        let config = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "faults",
            "clusters": [{ "name": "faults", "cluster": { "server": format!("http://{address}") } }],
            "contexts": [{ "name": "faults", "context": { "cluster": "faults", "user": "" } }],
            "users": [],
        });
        std::fs::write(&kubeconfig, config.to_string()).unwrap();
        Self { kubeconfig, severed }
    }

    /// From now on no watch lasts, and those that are open end.
    pub fn sever_watches(&self, severed: bool) {
        self.severed.store(severed, Ordering::SeqCst);
    }
}

fn serve(
    connection: TcpStream,
    upstream: &PathBuf,
    script: &(dyn Fn(&str, &str) -> Fault + Send + Sync),
    severed: &AtomicBool,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = runtime.block_on(async {
        let kubeconfig = Kubeconfig::read_from(upstream).unwrap();
        let mut config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        config.default_retry = false;
        Client::try_from(config).unwrap()
    });
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let mut writer = connection;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if !reader.read_line(&mut head).is_ok_and(|count| count > 0) {
                return;
            }
        }
        let mut lines = head.lines();
        let mut words = lines.next().unwrap().split(' ');
        let (method, path) = (words.next().unwrap().to_owned(), words.next().unwrap().to_owned());
        let mut request = http::Request::builder().method(method.as_str()).uri(&path);
        let mut length = 0;
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            match name.to_lowercase().as_str() {
                "content-length" => length = value.parse().unwrap(),
                "content-type" | "accept" => request = request.header(name, value),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let fault = script(&method, &path);
        match fault {
            Fault::CutBefore => return,
            Fault::Refuse(_) | Fault::Busy(_) => {
                let (status, more) = match fault {
                    Fault::Busy(seconds) => (429, format!("retry-after: {seconds}\r\n")),
                    Fault::Refuse(status) => (status, String::new()),
                    _ => unreachable!(),
                };
                let text = format!(
                    r#"{{"kind":"Status","code":{status},"reason":"Injected","message":"injected {status}"}}"#
                );
                let head =
                    format!("HTTP/1.1 {status} X\r\n{more}content-length: {}\r\n\r\n{text}", text.len());
                if writer.write_all(head.as_bytes()).is_err() {
                    return;
                }
                continue;
            }
            _ => {}
        }
        let request = request.body(body).unwrap();
        let open = runtime.block_on(async {
            if let Fault::Late(millis) = fault {
                tokio::time::sleep(Duration::from_millis(millis)).await;
            }
            if fault == Fault::Twice {
                let _ = client.send(request.clone().map(Body::from)).await;
            }
            let Ok(response) = client.send(request.map(Body::from)).await else { return false };
            match fault {
                Fault::SlowAnswer(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
                Fault::CutAfter => return false,
                Fault::HangAfter => {
                    tokio::time::sleep(Duration::from_secs(60)).await;
                    return false;
                }
                _ => {}
            }
            let offset = if let Fault::Clock(seconds) = fault { seconds } else { 0 };
            let now = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(offset);
            let date = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&now).unwrap();
            let status = response.status().as_u16();
            let head = format!("HTTP/1.1 {status} X\r\ndate: {date}\r\ncontent-type: application/json\r\n");
            if path.contains("watch=true") {
                // A stream: passed on as it comes, until either side ends it.
                let _ = writer.write_all(format!("{head}connection: close\r\n\r\n").as_bytes());
                let mut stream = response.into_body().into_data_stream();
                while !severed.load(Ordering::SeqCst) {
                    match tokio::time::timeout(Duration::from_millis(50), stream.next()).await {
                        Ok(Some(Ok(chunk))) if writer.write_all(&chunk).is_ok() => {}
                        Ok(_) => break,
                        Err(_) => {}
                    }
                }
                return false;
            }
            let Ok(body) = response.into_body().collect().await else { return false };
            let body = body.to_bytes();
            let head = format!("{head}content-length: {}\r\n\r\n", body.len());
            writer.write_all(head.as_bytes()).is_ok() && writer.write_all(&body).is_ok()
        });
        if !open {
            return;
        }
    }
}
