//! etcd: one member, or several that elect a leader. Each can be stopped, killed, started again and cut
//! off from the others.
//!
//! Several call each other by names that no resolver knows: `etcd-2`. Each has a SOCKS proxy of its own
//! that does know them, in a thread of this process; so of every connection between two members both ends
//! are known. To cut a member off is a black hole, in which connections hang as they do in a real
//! partition. Its clients still reach it.

use std::{
    fmt::Write as _,
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{Server, free_port, words};

/// A leader is elected within this, on a busy machine too; mostly within two seconds.
const ELECTED_WITHIN: Duration = Duration::from_secs(30);

/// How long a member may take to answer before it counts as one that does not.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

pub struct Etcd {
    pub members: Vec<Server>,
    client_ports: Vec<u16>,
    peer_ports: Vec<u16>,
    /// Which members are cut off, for their proxies.
    cut: Arc<Vec<AtomicBool>>,
}

/// What etcd calls a member, and the leader as that member sees it.
#[derive(Debug)]
struct View {
    id: String,
    leader: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// From what the member has, which may be old.
    Serializable,
    /// Needs a majority.
    Linearizable,
}

impl Etcd {
    pub(super) fn new(folder: &Path, members: usize) -> Self {
        let name = |n: usize| if members == 1 { "etcd".to_owned() } else { member_name(n) };
        let ports = || (0..members).map(|_| free_port()).collect::<Vec<_>>();
        Self {
            members: (0..members).map(|n| Server::new(folder, &name(n))).collect(),
            client_ports: ports(),
            peer_ports: ports(),
            cut: Arc::new((0..members).map(|_| AtomicBool::new(false)).collect()),
        }
    }

    /// Where clients reach a member.
    pub fn endpoint(&self, n: usize) -> String {
        format!("http://127.0.0.1:{}", self.client_ports[n])
    }

    pub fn endpoints(&self) -> String {
        (0..self.members.len()).map(|n| self.endpoint(n)).collect::<Vec<_>>().join(",")
    }

    /// Where the other members reach a member.
    fn peer(&self, n: usize) -> String {
        let host = if self.members.len() == 1 { "127.0.0.1".to_owned() } else { member_name(n) };
        format!("http://{host}:{}", self.peer_ports[n])
    }

    /// The command line of a member. Starts its proxy if there are others.
    pub(super) fn command(&self, binary: &str, n: usize) -> Vec<String> {
        let (server, client, peer) = (&self.members[n], self.endpoint(n), self.peer(n));
        let cluster: Vec<_> =
            (0..self.members.len()).map(|n| format!("{}={}", self.members[n].name, self.peer(n))).collect();
        let mut command = Vec::new();
        if self.members.len() > 1 {
            command.extend(words(&["env", &format!("HTTP_PROXY=socks5://{}", self.start_proxy(n))]));
        }
        command.extend(words(&[
            binary,
            &format!("--name={}", server.name),
            &format!("--data-dir={}/data", server.folder.display()),
            &format!("--listen-client-urls={client}"),
            &format!("--advertise-client-urls={client}"),
            &format!("--listen-peer-urls=http://127.0.0.1:{}", self.peer_ports[n]),
            &format!("--initial-advertise-peer-urls={peer}"),
            &format!("--initial-cluster={}", cluster.join(",")),
            // It is thrown away: nothing has to survive a power cut.
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]));
        command
    }

    /// Cuts a member off from the others, until it is healed.
    pub fn cut_off(&self, n: usize) {
        self.cut[n].store(true, Ordering::SeqCst);
    }

    pub fn heal(&self, n: usize) {
        self.cut[n].store(false, Ordering::SeqCst);
    }

    /// Waits until these members have elected one of them; which.
    pub fn await_leader_among(&self, members: &[usize]) -> usize {
        let deadline = Instant::now() + ELECTED_WITHIN;
        loop {
            let views: Vec<_> = members.iter().map(|n| self.view(*n)).collect();
            let leader = views.iter().flatten().map(|view| &view.leader).next();
            let all_agree = views.iter().all(|view| view.as_ref().map(|view| &view.leader) == leader);
            let elected = views.iter().position(|view| view.as_ref().map(|view| &view.id) == leader);
            if let (true, Some(n), Some(_)) = (all_agree, elected, leader) {
                return members[n];
            }
            assert!(Instant::now() < deadline, "members {members:?} have no leader: {views:?}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn view(&self, n: usize) -> Option<View> {
        let status = self.ask(n, "maintenance/status", &json!({}))?;
        // Without a leader there is no such field.
        let [id, leader] = [&status["header"]["member_id"], &status["leader"]]
            .map(|id| id.as_str().unwrap_or("0").to_owned());
        Some(View { id, leader })
    }

    /// Gives a member the lead. All have to be well.
    pub fn make_leader(&self, n: usize) {
        let all: Vec<_> = (0..self.members.len()).collect();
        let target = json!({ "targetID": self.view(n).expect("it answers").id });
        let deadline = Instant::now() + ELECTED_WITHIN;
        loop {
            let leader = self.await_leader_among(&all);
            if leader == n {
                return;
            }
            assert!(Instant::now() < deadline, "the lead stays with member {leader}");
            self.ask(leader, "maintenance/transfer-leadership", &target);
        }
    }

    /// Whether a member answers a read.
    pub fn reads(&self, n: usize, read: Read) -> bool {
        let question = json!({ "key": "eA==", "serializable": read == Read::Serializable });
        let answer = self.ask(n, "kv/range", &question);
        answer.is_some_and(|answer| answer["header"].is_object())
    }

    /// Asks a member by the JSON form of etcd's API.
    fn ask(&self, n: usize, method: &str, question: &Value) -> Option<Value> {
        let mut connection = TcpStream::connect(("127.0.0.1", self.client_ports[n])).ok()?;
        connection.set_read_timeout(Some(ANSWERS_WITHIN)).unwrap();
        let question = question.to_string();
        let mut request = format!("POST /v3/{method} HTTP/1.0\r\nHost: etcd\r\n");
        let _ = write!(request, "Content-Length: {}\r\n\r\n{question}", question.len());
        connection.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    /// Starts the proxy by which a member reaches the others; its address.
    fn start_proxy(&self, from: usize) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (ports, cut) = (self.peer_ports.clone(), Arc::clone(&self.cut));
        thread::spawn(move || {
            for near in listener.incoming().map(Result::unwrap) {
                let (ports, cut) = (ports.clone(), Arc::clone(&cut));
                thread::spawn(move || proxy(near, from, &ports, &cut));
            }
        });
        address
    }
}

fn member_name(n: usize) -> String {
    format!("etcd-{}", n + 1)
}

/// Passes on what goes through one connection of a member. Nothing does while either end is cut off.
fn proxy(mut near: TcpStream, from: usize, ports: &[u16], cut: &Arc<Vec<AtomicBool>>) -> Option<()> {
    let port = accept_socks(&mut near)?;
    let to = ports.iter().position(|it| *it == port)?;
    let wait = move |cut: &[AtomicBool]| {
        while cut[from].load(Ordering::SeqCst) || cut[to].load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(10));
        }
    };
    wait(cut);
    let far = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let ways = [(near.try_clone().ok()?, far.try_clone().ok()?), (far, near)];
    for (mut source, mut sink) in ways {
        let cut = Arc::clone(cut);
        thread::spawn(move || {
            let mut buffer = [0; 16 * 1024];
            while let Ok(count @ 1..) = source.read(&mut buffer) {
                wait(&cut);
                if sink.write_all(&buffer[..count]).is_err() {
                    break;
                }
            }
            wait(&cut);
            let _ = sink.shutdown(Shutdown::Write);
            let _ = source.shutdown(Shutdown::Read);
        });
    }
    Some(())
}

/// The port that a client asks for (RFC 1928), which is told that it has got there.
fn accept_socks(client: &mut TcpStream) -> Option<u16> {
    const VERSION: u8 = 5;
    const DONE: [u8; 10] = [VERSION, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let methods = read(client, 2)?[1];
    read(client, methods)?;
    client.write_all(&[VERSION, 0]).ok()?;
    // Version, command, nothing, the kind of the address (a name), its length.
    let length = read(client, 5)?[4];
    read(client, length)?;
    let port = read(client, 2)?;
    client.write_all(&DONE).ok()?;
    Some(u16::from_be_bytes([port[0], port[1]]))
}

fn read(from: &mut TcpStream, count: u8) -> Option<Vec<u8>> {
    let mut bytes = vec![0; count.into()];
    from.read_exact(&mut bytes).ok()?;
    Some(bytes)
}
