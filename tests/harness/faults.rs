//! A proxy in front of a real kube-apiserver that injects faults: what a real server or network
//! does, but not on demand. It takes plain HTTP and passes it on as the administrator.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
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
    /// Pass it on, and answer when [`FaultProxy::answer`] is called.
    HoldAnswer,
    /// Pass it on so many milliseconds late, whether or not the client still waits for the answer.
    Late(u64),
    /// Pass it on twice, as a proxy that tries again does, and answer with the second answer.
    Twice,
    /// Pass it on and answer, and pass it on again so many milliseconds later.
    TwiceLate(u64),
    /// Pass it on, and claim in the answer that the server's clock is off by these seconds.
    Clock(i64),
    /// Pass a watch on for so many milliseconds, and then close the connection.
    CutWatch(u64),
    /// Pass a watch on for so many milliseconds, and then nothing more of it.
    StallWatch(u64),
    /// Pass all that a watch tells on so many milliseconds late.
    DelayWatch(u64),
}

pub struct FaultProxy {
    pub kubeconfig: PathBuf,
    switches: Arc<Switches>,
}

/// What the test turns on and off.
#[derive(Default)]
struct Switches {
    severed: AtomicBool,
    answers: AtomicBool,
}

/// Blocks the thread of one connection, on which there is nothing else to do.
fn wait_until(switch: &AtomicBool) {
    let began = Instant::now();
    while !switch.load(Ordering::SeqCst) && began.elapsed() < HELD {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Holds up what a script lets come to it, until it is opened: a request that is late for as long as the test
/// needs, however busy the machine is. It is passed on then, whether or not the client still waits.
#[derive(Clone, Default)]
pub struct Gate(Arc<(AtomicUsize, AtomicBool)>);

impl Gate {
    /// Lets whatever comes wait.
    pub fn hold(&self) {
        self.0.0.fetch_add(1, Ordering::SeqCst);
        wait_until(&self.0.1);
    }

    /// Lets the first that comes wait; none after it.
    pub fn hold_first(&self) {
        if self.0.0.fetch_add(1, Ordering::SeqCst) == 0 {
            wait_until(&self.0.1);
        }
    }

    /// How many have come.
    pub fn came(&self) -> usize {
        self.0.0.load(Ordering::SeqCst)
    }

    /// Whether one has come.
    pub fn has_come(&self) -> bool {
        self.came() > 0
    }

    pub fn open(&self) {
        self.0.1.store(true, Ordering::SeqCst);
    }
}

/// A test that has failed leaves nothing behind that waits for ever.
const HELD: Duration = Duration::from_secs(60);

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
        Self::start_with_clock(plane, user, n, Arc::default(), script)
    }

    /// Starts one that claims in all its answers that the server's clock is off by `clock`, milliseconds.
    pub fn start_with_clock(
        plane: &ControlPlane,
        user: User,
        n: usize,
        clock: Arc<AtomicI64>,
        script: impl Fn(&str, &str) -> Fault + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let upstream = plane.kubeconfig(user, n);
        let script = Arc::new(script);
        let switches = Arc::<Switches>::default();
        let given = Arc::clone(&switches);
        thread::spawn(move || {
            for connection in listener.incoming().map(Result::unwrap) {
                let (script, upstream) = (Arc::clone(&script), upstream.clone());
                let (switches, clock) = (Arc::clone(&given), Arc::clone(&clock));
                thread::spawn(move || serve(connection, &upstream, &*script, &switches, &clock));
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
        Self { kubeconfig, switches }
    }

    /// From now on no watch lasts, and those that are open end.
    pub fn sever_watches(&self, severed: bool) {
        self.switches.severed.store(severed, Ordering::SeqCst);
    }

    /// Lets the answers go that are held back.
    pub fn answer(&self) {
        self.switches.answers.store(true, Ordering::SeqCst);
    }
}

/// A runtime, and a client in it that tries nothing twice.
fn connect(upstream: &PathBuf) -> (tokio::runtime::Runtime, Client) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = runtime.block_on(async {
        let kubeconfig = Kubeconfig::read_from(upstream).unwrap();
        let mut config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        config.default_retry = false;
        Client::try_from(config).unwrap()
    });
    (runtime, client)
}

/// Passes a request on later, whatever becomes of its connection and whoever sent it.
fn repeat_later(upstream: &Path, request: http::Request<Vec<u8>>, after: Duration) {
    let upstream = upstream.to_owned();
    thread::spawn(move || {
        thread::sleep(after);
        let (runtime, client) = connect(&upstream);
        let _ = runtime.block_on(client.send(request.map(Body::from)));
    });
}

/// Passes a watch on, until either side ends it.
async fn pass_watch(body: Body, writer: &mut TcpStream, fault: Fault, severed: &AtomicBool) {
    let mut stream = body.into_data_stream();
    let began = Instant::now();
    let is_past = |millis| began.elapsed() > Duration::from_millis(millis);
    while !severed.load(Ordering::SeqCst) {
        let stalled = matches!(fault, Fault::StallWatch(millis) if is_past(millis));
        // A client that is gone is not noticed where nothing is passed on.
        if matches!(fault, Fault::CutWatch(millis) if is_past(millis)) || (stalled && is_past(60_000)) {
            break;
        }
        match tokio::time::timeout(Duration::from_millis(50), stream.next()).await {
            Ok(Some(Ok(_))) if stalled => {}
            Ok(Some(Ok(chunk))) => {
                if let Fault::DelayWatch(millis) = fault {
                    tokio::time::sleep(Duration::from_millis(millis)).await;
                }
                if writer.write_all(&chunk).is_err() {
                    break;
                }
            }
            Ok(_) => break,
            Err(_) => {}
        }
    }
}

fn serve(
    connection: TcpStream,
    upstream: &PathBuf,
    script: &(dyn Fn(&str, &str) -> Fault + Send + Sync),
    switches: &Switches,
    clock: &AtomicI64,
) {
    let (runtime, client) = connect(upstream);
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
        let date = || {
            let claimed = if let Fault::Clock(seconds) = fault { seconds } else { 0 };
            let offset = jiff::SignedDuration::from_secs(claimed)
                + jiff::SignedDuration::from_millis(clock.load(Ordering::SeqCst));
            let now = jiff::Timestamp::now() + offset;
            jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&now).unwrap()
        };
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
                let head = format!(
                    "HTTP/1.1 {status} X\r\ndate: {}\r\n{more}content-length: {}\r\n\r\n{text}",
                    date(),
                    text.len()
                );
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
            if let Fault::TwiceLate(millis) = fault {
                repeat_later(upstream, request.clone(), Duration::from_millis(millis));
            }
            let Ok(response) = client.send(request.map(Body::from)).await else { return false };
            // The server's, not the proxy's: it is as old as the answer when that comes late.
            let date = date();
            match fault {
                Fault::SlowAnswer(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
                Fault::HoldAnswer => wait_until(&switches.answers),
                Fault::CutAfter => return false,
                Fault::HangAfter => {
                    tokio::time::sleep(Duration::from_secs(60)).await;
                    return false;
                }
                _ => {}
            }
            let status = response.status().as_u16();
            let head = format!("HTTP/1.1 {status} X\r\ndate: {date}\r\ncontent-type: application/json\r\n");
            if path.contains("watch=true") {
                // A stream: passed on as it comes.
                let _ = writer.write_all(format!("{head}connection: close\r\n\r\n").as_bytes());
                pass_watch(response.into_body(), &mut writer, fault, &switches.severed).await;
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
