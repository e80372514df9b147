//! A real control plane on this machine: one etcd or several members, any number of kube-apiservers, each
//! on a host name of its own, and kube-controller-managers and kube-schedulers with coordinated leader
//! election.
//!
//! Every server is a folder with a script `run`, its log and its `pid`, so that what runs can be
//! looked at, ended and started again by hand. Nothing outlives the process that started it: a
//! guardian holds the other end of a pipe, and ends every server and removes the folder when that
//! pipe closes, which it does after a panic, Ctrl-C or `kill -9` too. It also ends the nodes, whose
//! containers, mounts and cgroups go with them: see `nodes`.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

pub mod certificates;
pub mod components;
pub mod disk;
pub mod etcd;
pub mod faults;
#[cfg(target_os = "linux")]
pub mod image;
#[cfg(target_os = "linux")]
pub mod nodes;
pub mod players;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::TcpListener,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Mutex,
    time::{Duration, Instant},
};

use certificates::Authority;
use etcd::Etcd;

const READY_WITHIN: Duration = Duration::from_secs(90);

/// Controllers that the tests need: what cleans up after them, and what acts on pods and nodes.
pub const CONTROLLERS: &str = "namespace-controller,serviceaccount-controller,garbage-collector-controller,\
    statefulset-controller,replicaset-controller,deployment-controller,job-controller,\
    pod-garbage-collector-controller,\
    node-lifecycle-controller,taint-eviction-controller,disruption-controller";

/// Of which Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    Newest,
    /// The oldest that this is made for.
    Oldest,
}

/// What to start.
#[derive(Clone, Debug)]
pub struct Shape {
    pub release: Release,
    /// Members of etcd.
    pub etcd_members: usize,
    pub apiservers: usize,
    /// Which kube-apiservers talk only to the etcd member of their own number, as kubeadm's do; the others
    /// talk to all members.
    pub stacked: &'static [usize],
    pub managers: usize,
    /// The kube-controller-managers are started by the test.
    pub managers_wait: bool,
    /// What each kube-controller-manager runs, and its flags beside those of all tests.
    pub controllers: &'static str,
    pub manager_flags: &'static [&'static str],
    /// kube-schedulers, a second component that is elected: the `n`th has the host name of the `n`th
    /// kube-controller-manager.
    pub schedulers: usize,
    /// Feature gates of every kube-apiserver.
    pub features: &'static str,
    /// API versions to serve beside those that are on by default.
    pub apis: &'static str,
    /// Another flag of the last kube-apiserver.
    pub last_apiserver_flag: Option<&'static str>,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            release: Release::Newest,
            etcd_members: 1,
            apiservers: 1,
            stacked: &[],
            managers: 0,
            managers_wait: false,
            controllers: CONTROLLERS,
            manager_flags: &[],
            schedulers: 0,
            features: "CoordinatedLeaderElection=true",
            apis: "coordination.k8s.io/v1beta1=true",
            last_apiserver_flag: None,
        }
    }
}

impl Shape {
    /// Whether components are elected by kube-apiserver, as a flag.
    fn election_gate(&self) -> String {
        let coordinated = self.features.contains("CoordinatedLeaderElection=true");
        format!("--feature-gates=CoordinatedLeaderElection={coordinated}")
    }
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    Admin,
    /// May do nothing.
    Nobody,
    /// May do what `docs/rbac.yaml` grants, and no more; but not what it grants for elections, which
    /// shows leases everywhere.
    Reader,
    /// May do what `docs/rbac.yaml` grants for elections, and no more.
    Elector,
    /// May get, create and patch leases and get nodes, but neither list nor watch anything: what
    /// others write is known only from conflicts.
    Blind,
}

impl User {
    const ALL: [Self; 5] = [Self::Admin, Self::Nobody, Self::Reader, Self::Elector, Self::Blind];

    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Nobody => "nobody",
            Self::Reader => "reader",
            Self::Elector => "elector",
            Self::Blind => "blind",
        }
    }
}

/// One server process, or a loop that keeps one running.
pub struct Server {
    pub name: String,
    folder: PathBuf,
    child: Option<Child>,
}

impl Server {
    fn new(folder: &Path, name: &str) -> Self {
        Self { name: name.to_owned(), folder: folder.join(name), child: None }
    }

    /// Writes the script that is the server, and that says which process it is.
    fn write_script(&self, commands: &str) {
        let file = |name: &str| quote(&self.folder.join(name).display().to_string());
        let (group, pid) = (file("group"), file("pid"));
        let script = format!("#!/bin/sh\necho $$ >{group} || exit\necho $$ >{pid}\n{commands}");
        fs::create_dir_all(&self.folder).unwrap();
        let run = self.folder.join("run");
        fs::write(&run, script).unwrap();
        fs::set_permissions(&run, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn start(&mut self) {
        assert!(self.child.is_none(), "{} runs already", self.name);
        let log = fs::File::options().create(true).append(true).open(self.folder.join("log")).unwrap();
        let child = Command::new(self.folder.join("run"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", self.name));
        self.child = Some(child);
    }

    /// Ends it as a crash or a power cut would.
    pub fn kill(&mut self) {
        self.end("-KILL");
    }

    /// Ends it in order.
    pub fn stop(&mut self) {
        self.end("-TERM");
    }

    /// Sends it a signal that does not end it: `-STOP` freezes it, `-CONT` brings it back.
    pub fn signal(&self, signal: &str) {
        let child = self.child.as_ref().unwrap_or_else(|| panic!("{} does not run", self.name));
        signal_group(signal, child);
    }

    fn end(&mut self, signal: &str) {
        let mut child = self.child.take().unwrap_or_else(|| panic!("{} does not run", self.name));
        signal_group(signal, &child);
        child.wait().unwrap();
        for file in ["group", "pid"] {
            let _ = fs::remove_file(self.folder.join(file));
        }
    }

    /// Waits for a process that ends without a signal of ours.
    fn reap(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.wait().unwrap();
        }
        for file in ["group", "pid"] {
            let _ = fs::remove_file(self.folder.join(file));
        }
    }

    fn has_ended(&mut self) -> bool {
        self.child.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some())
    }

    /// Changes one of its flags; it has that when it starts again.
    pub fn change_flag(&self, from: &str, to: &str) {
        let run = self.folder.join("run");
        let script = fs::read_to_string(&run).unwrap();
        assert!(script.contains(from), "no {from} in {script}");
        fs::write(&run, script.replace(from, to)).unwrap();
    }

    pub fn log_tail(&self) -> String {
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

/// Signals a child and what it has started, which are a process group.
fn signal_group(signal: &str, child: &Child) {
    let group = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::killpg(group, signal_named(signal)).unwrap();
}

/// A signal by its name as an option of `kill`: `-STOP`.
pub fn signal_named(option: &str) -> nix::sys::signal::Signal {
    format!("SIG{}", option.trim_start_matches('-')).parse().unwrap()
}

/// A running control plane; dropping it ends it.
pub struct ControlPlane {
    pub folder: PathBuf,
    pub assets: PathBuf,
    pub apiservers: Vec<Server>,
    pub managers: Vec<Server>,
    pub schedulers: Vec<Server>,
    pub etcd: Etcd,
    ports: Vec<u16>,
    pub authority: Authority,
    /// Above the cgroups of its nodes.
    cgroup: String,
    guardian: Child,
}

impl ControlPlane {
    /// Starts one and waits until every kube-apiserver is ready.
    pub fn start(shape: &Shape) -> Self {
        let folder = std::env::temp_dir().join(format!("kubectl-lease-{}-{}", std::process::id(), random()));
        Self::start_in(&folder, shape)
    }

    pub fn start_in(folder: &Path, shape: &Shape) -> Self {
        let assets = assets(shape.release);
        fs::create_dir_all(folder).unwrap();
        let folder = folder.canonicalize().unwrap();
        let guardian = guard(&folder);
        let authority = Authority::new(&folder);
        let isolation = HostNames::detect();
        let apiservers =
            if isolation == HostNames::Shared { shape.apiservers.min(1) } else { shape.apiservers };
        if apiservers < shape.apiservers {
            eprintln!(
                "This machine cannot give each kube-apiserver a host name of its own (unshare --uts): \
                 starting one instead of {}.",
                shape.apiservers
            );
        }
        authority.issue("server", "kubernetes", &[], true);
        authority.issue("peer", "system:kube-apiserver", &["system:masters"], false);
        authority.issue("admin", "admin", &["system:masters"], false);
        authority.issue("nobody", "nobody", &[], false);
        authority.issue("reader", "reader", &[], false);
        authority.issue("elector", "elector", &[], false);
        authority.issue("blind", "blind", &[], false);
        authority.issue("manager", "system:kube-controller-manager", &[], false);
        authority.issue("scheduler", "system:kube-scheduler", &[], false);
        fs::write(folder.join("audit-policy.yaml"), AUDIT_POLICY).unwrap();

        let server = |name: String| Server::new(&folder, &name);
        let mut plane = Self {
            assets,
            etcd: Etcd::new(&folder, shape.etcd_members),
            apiservers: (1..=apiservers).map(|n| server(format!("cp-{n}"))).collect(),
            managers: (1..=shape.managers).map(|n| server(format!("manager-{n}"))).collect(),
            schedulers: (1..=shape.schedulers).map(|n| server(format!("scheduler-{n}"))).collect(),
            ports: (0..apiservers).map(|_| free_port()).collect(),
            folder,
            authority,
            cgroup: format!("kubectl-lease-{}-{}", std::process::id(), random()),
            guardian,
        };

        for (n, member) in plane.etcd.members.iter().enumerate() {
            Self::write_run(member, None, &plane.etcd.command(&plane.asset("etcd"), n));
        }
        for (n, (server, port)) in plane.apiservers.iter().zip(&plane.ports).enumerate() {
            let stacked = shape.stacked.contains(&n);
            let etcd = if stacked { plane.etcd.endpoint(n) } else { plane.etcd.endpoints() };
            let mut command = plane.apiserver_command(server, &etcd, *port, shape);
            command.extend(shape.last_apiserver_flag.filter(|_| n + 1 == apiservers).map(str::to_owned));
            Self::write_run(server, Some((isolation, &server.name)), &command);
        }
        for (n, server) in plane.managers.iter().enumerate() {
            let kubeconfig = plane.write_kubeconfig("manager", n % apiservers);
            let command = plane.manager_command(server, &kubeconfig, shape);
            Self::write_run(server, Some((isolation, &format!("cp-{}", n + 1))), &command);
        }
        for (n, server) in plane.schedulers.iter().enumerate() {
            let kubeconfig = plane.write_kubeconfig("scheduler", n % apiservers);
            let command = Self::scheduler_command(server, &kubeconfig, shape);
            Self::write_run(server, Some((isolation, &format!("cp-{}", n + 1))), &command);
        }
        for user in User::ALL {
            for n in 0..apiservers {
                plane.write_kubeconfig(user.name(), n);
            }
        }

        for server in plane.etcd.members.iter_mut().chain(&mut plane.apiservers) {
            server.start();
        }
        for n in 0..apiservers {
            plane.wait_ready(n);
        }
        let managers: &mut [Server] = if shape.managers_wait { &mut [] } else { &mut plane.managers };
        let hosts = managers.len().max(plane.schedulers.len());
        for n in 0..hosts {
            if n > 0 {
                // Candidates that were created in the same second are equal, and the lead goes back and
                // forth between them.
                std::thread::sleep(Duration::from_millis(1500));
            }
            for server in managers.get_mut(n).into_iter().chain(plane.schedulers.get_mut(n)) {
                server.start();
            }
        }
        let rbac = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/rbac.yaml");
        plane.kubectl(&["apply", "-f", rbac]);
        plane.bind_users();
        plane
    }

    /// Gives users what `docs/rbac.yaml` describes.
    fn bind_users(&self) {
        let bind_to = |user: &str, kind: &str, namespace: Option<&str>, role_kind: &str, role: &str| {
            serde_json::json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
                "metadata": { "name": format!("{user}-{role}"), "namespace": namespace },
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role },
                "subjects": [{ "kind": "User", "name": user }],
            })
        };
        let bind = |kind: &str, namespace: Option<&str>, role_kind: &str, role: &str| {
            bind_to("reader", kind, namespace, role_kind, role)
        };
        let get_only = serde_json::json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": "blind" },
            "rules": [
                { "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "patch"] },
                { "apiGroups": [""], "resources": ["nodes"], "verbs": ["get"] },
            ],
        });
        self.apply(&serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": [
            get_only,
            bind_to("blind", "ClusterRoleBinding", None, "ClusterRole", "blind"),
            bind("RoleBinding", Some("kube-system"), "Role", "kubectl-lease-apiservers"),
            bind("RoleBinding", Some("kube-node-maintenance"), "Role", "kubectl-lease-maint"),
            bind("ClusterRoleBinding", None, "ClusterRole", "kubectl-lease-maint"),
            bind("RoleBinding", Some("default"), "ClusterRole", "kubectl-lease-hold"),
            bind_to("elector", "ClusterRoleBinding", None, "ClusterRole", "kubectl-lease-candidates"),
            bind_to("elector", "ClusterRoleBinding", None, "ClusterRole", "kubectl-lease-priority"),
            bind_to("elector", "ClusterRoleBinding", None, "ClusterRole", "kubectl-lease-leaders"),
        ] }));
    }

    /// A kubeconfig for `user` that talks to the `n`th kube-apiserver.
    pub fn kubeconfig(&self, user: User, n: usize) -> PathBuf {
        self.folder.join(format!("{}-{}.kubeconfig", user.name(), n + 1))
    }

    /// A kubeconfig for an administrator whom nobody else is, to be found in the audit log.
    pub fn unique_admin(&self) -> (String, PathBuf) {
        let name = format!("admin-{}", random());
        self.authority.issue(&name, &name, &["system:masters"], false);
        let kubeconfig = self.write_kubeconfig(&name, 0);
        (name, kubeconfig)
    }

    pub fn url(&self, n: usize) -> String {
        format!("https://127.0.0.1:{}", self.ports[n])
    }

    pub fn authority_file(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    /// What `user` asked of the first kube-apiserver, as `VERB URI`, in its own audit log.
    pub fn audited(&self, user: &str) -> Vec<String> {
        let log = fs::read_to_string(self.folder.join("cp-1").join("audit.log")).unwrap();
        log.lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter(|event| event["user"]["username"] == user)
            .map(|event| {
                format!("{} {}", event["verb"].as_str().unwrap(), event["requestURI"].as_str().unwrap())
            })
            .collect()
    }

    /// Runs the real kubectl as the administrator; its failure is the test's.
    pub fn kubectl(&self, args: &[&str]) -> String {
        let output = Command::new(self.assets.join("kubectl"))
            .args(args)
            .env("KUBECONFIG", self.kubeconfig(User::Admin, 0))
            .env("HOME", &self.folder)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "kubectl {args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// `kubectl apply` of a manifest.
    pub fn apply(&self, manifest: &serde_json::Value) {
        let file = self.folder.join(format!("manifest-{}.json", random()));
        fs::write(&file, manifest.to_string()).unwrap();
        self.kubectl(&["apply", "-f", file.to_str().unwrap()]);
        fs::remove_file(file).unwrap();
    }

    /// Waits until some kube-apiserver runs the controller that elects.
    pub fn await_elector(&self) {
        let deadline = Instant::now() + READY_WITHIN;
        let leases = || self.kubectl(&["get", "leases", "-n", "kube-system", "-o", "name"]);
        while !leases().contains("leader-election-controller") {
            assert!(Instant::now() < deadline, "nobody runs the election controller");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Starts the `n`th kube-apiserver again and waits until it is ready.
    pub fn restart_apiserver(&mut self, n: usize) {
        self.apiservers[n].start();
        self.wait_ready(n);
    }

    pub fn wait_ready(&mut self, n: usize) {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            let answer = Command::new(self.assets.join("kubectl"))
                .args(["get", "--raw=/readyz", "--request-timeout=5s"])
                .env("KUBECONFIG", self.kubeconfig(User::Admin, n))
                .env("HOME", &self.folder)
                .output()
                .unwrap();
            if answer.stdout == b"ok" {
                return;
            }
            for server in self.etcd.members.iter_mut().chain([&mut self.apiservers[n]]) {
                assert!(!server.has_ended(), "{} ended:\n{}", server.name, server.log_tail());
            }
            assert!(Instant::now() < deadline, "not ready in time:\n{}", self.apiservers[n].log_tail());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn apiserver_command(&self, server: &Server, etcd: &str, port: u16, shape: &Shape) -> Vec<String> {
        let own = server.folder.display();
        let common = self.folder.display();
        let mut command = words(&[
            &self.asset("kube-apiserver"),
            &format!("--etcd-servers={etcd}"),
            &format!("--secure-port={port}"),
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            &format!("--cert-dir={own}"),
            &format!("--tls-cert-file={common}/server.crt"),
            &format!("--tls-private-key-file={common}/server.key"),
            &format!("--client-ca-file={common}/ca.crt"),
            "--service-account-issuer=https://kubernetes.default.svc",
            &format!("--service-account-key-file={common}/service-account.pub"),
            &format!("--service-account-signing-key-file={common}/service-account.key"),
            "--authorization-mode=Node,RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--disable-admission-plugins=ServiceAccount",
            &format!("--feature-gates={}", shape.features),
            &format!("--runtime-config={}", shape.apis),
            &format!("--audit-policy-file={common}/audit-policy.yaml"),
            &format!("--audit-log-path={own}/audit.log"),
            "--audit-log-maxsize=1000",
            &format!("--kubelet-client-certificate={common}/peer.crt"),
            &format!("--kubelet-client-key={common}/peer.key"),
            "--kubelet-preferred-address-types=InternalIP",
            &format!("--proxy-client-cert-file={common}/peer.crt"),
            &format!("--proxy-client-key-file={common}/peer.key"),
            &format!("--requestheader-client-ca-file={common}/ca.crt"),
            "--requestheader-allowed-names=system:kube-apiserver",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        ]);
        if !shape.features.contains("UnknownVersionInteroperabilityProxy=false") {
            // What an apiserver cannot serve itself it asks of its peers.
            command.extend(words(&[
                &format!("--peer-ca-file={common}/ca.crt"),
                "--peer-advertise-ip=127.0.0.1",
                &format!("--peer-advertise-port={port}"),
            ]));
        }
        command
    }

    fn scheduler_command(server: &Server, kubeconfig: &Path, shape: &Shape) -> Vec<String> {
        let kubeconfig = kubeconfig.display();
        let mut command = words(&[
            &component("kube-scheduler").display().to_string(),
            &format!("--kubeconfig={kubeconfig}"),
            &format!("--authentication-kubeconfig={kubeconfig}"),
            &format!("--authorization-kubeconfig={kubeconfig}"),
            "--bind-address=127.0.0.1",
            &format!("--secure-port={}", free_port()),
            &format!("--cert-dir={}", server.folder.display()),
            "--leader-elect",
            &shape.election_gate(),
        ]);
        if shape.schedulers == 1 {
            // It does not give up the lead because the machine is busy.
            command
                .extend(words(&["--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=50s"]));
        }
        command
    }

    fn manager_command(&self, server: &Server, kubeconfig: &Path, shape: &Shape) -> Vec<String> {
        let kubeconfig = kubeconfig.display();
        let common = self.folder.display();
        let mut command = words(&[
            &self.asset("kube-controller-manager"),
            &format!("--kubeconfig={kubeconfig}"),
            &format!("--authentication-kubeconfig={kubeconfig}"),
            &format!("--authorization-kubeconfig={kubeconfig}"),
            "--bind-address=127.0.0.1",
            "--secure-port=0",
            &format!("--cert-dir={}", server.folder.display()),
            "--leader-elect",
            &shape.election_gate(),
            "--use-service-account-credentials=true",
            &format!("--service-account-private-key-file={common}/service-account.key"),
            &format!("--root-ca-file={common}/ca.crt"),
            &format!("--controllers={}", shape.controllers),
        ]);
        command.extend(words(shape.manager_flags));
        command
    }

    /// Writes the script that is the server: run in its own host name, and what exits when it loses
    /// the lead, again and again as a kubelet would.
    fn write_run(server: &Server, host: Option<(HostNames, &str)>, command: &[String]) {
        let command = command.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" \\\n  ");
        let isolated = match host {
            Some((isolation, name)) => isolation.wrap(name) + &command,
            None => command,
        };
        if server.name.starts_with("manager") || server.name.starts_with("scheduler") {
            let pid = quote(&server.folder.join("pid").display().to_string());
            server.write_script(&format!(
                "while :; do\n{isolated} &\necho $! >{pid}\nwait $!\nsleep 1\ndone\n"
            ));
        } else {
            server.write_script(&format!("exec {isolated}\n"));
        }
    }

    fn write_kubeconfig(&self, user: &str, n: usize) -> PathBuf {
        self.write_kubeconfig_to(user, &self.url(n), &(n + 1).to_string())
    }

    /// A kubeconfig for a user to whom the kube-apiserver has this URL.
    fn write_kubeconfig_to(&self, user: &str, url: &str, suffix: &str) -> PathBuf {
        let path = self.folder.join(format!("{user}-{suffix}.kubeconfig"));
        let config = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "sandbox",
            "clusters": [{ "name": "sandbox", "cluster": {
                "server": url, "certificate-authority": self.authority_file() } }],
            "users": [{ "name": user, "user": {
                "client-certificate": self.folder.join(format!("{user}.crt")),
                "client-key": self.folder.join(format!("{user}.key")) } }],
            "contexts": [{ "name": "sandbox", "context": { "cluster": "sandbox", "user": user } }],
        });
        fs::write(&path, serde_json::to_string_pretty(&config).unwrap()).unwrap();
        path
    }

    fn asset(&self, name: &str) -> String {
        self.assets.join(name).display().to_string()
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // The same way out as after a crash: the pipe closes and the guardian cleans up.
        drop(self.guardian.stdin.take());
        let _ = self.guardian.wait();
        let servers = self.apiservers.iter_mut().chain(&mut self.managers).chain(&mut self.schedulers);
        for server in servers.chain(&mut self.etcd.members) {
            if let Some(mut child) = server.child.take() {
                let _ = child.wait();
            }
        }
    }
}

/// How servers on one machine get host names of their own: an identity is a hash of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostNames {
    Root,
    UserNamespace,
    /// Not possible here: all share the machine's.
    Shared,
}

impl HostNames {
    fn detect() -> Self {
        [Self::Root, Self::UserNamespace].into_iter().find(|way| way.works()).unwrap_or(Self::Shared)
    }

    fn works(self) -> bool {
        let probe = format!("{} true", self.wrap("probe"));
        let run = Command::new("sh").args(["-c", &probe]).stderr(Stdio::null()).status();
        run.is_ok_and(|status| status.success())
    }

    fn wrap(self, host: &str) -> String {
        let flags = match self {
            Self::Root => "--uts",
            Self::UserNamespace => "--user --map-root-user --uts",
            Self::Shared => return String::new(),
        };
        format!("unshare {flags} sh -c 'echo {host} >/proc/sys/kernel/hostname && exec \"$@\"' sh \\\n  ")
    }
}

const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
";

/// Ends every server below `folder` and removes it when its standard input closes. Servers of nodes are
/// a folder deeper; what is below the cgroups that the file `cgroup` names goes with them.
pub fn guard(folder: &Path) -> Child {
    const SCRIPT: &str = r#"
        trap '' INT TERM HUP
        cat >/dev/null
        # Twice: a server that was only just started has not yet written who it is.
        for round in 1 2; do
            for pid in "$1"/*/machine/group "$1"/*/group "$1"/*/pid "$1"/*/*/group "$1"/*/*/pid; do
                [ -f "$pid" ] || continue
                kill -KILL -- "-$(cat "$pid")" || kill -KILL "$(cat "$pid")"
            done 2>/dev/null
            sleep 0.2
        done
        # A cgroup can be removed when the last of its processes is, which takes the kernel a moment.
        if [ -s "$1/cgroup" ]; then
            name=$(cat "$1/cgroup")
            for round in 1 2 3 4 5 6 7 8 9 10; do
                found=$(find /sys/fs/cgroup -depth -type d \( -name "$name" -o -path "*/$name/*" \) 2>/dev/null)
                [ -n "$found" ] || break
                printf '%s\n' "$found" | xargs rmdir 2>/dev/null || sleep 0.5
            done
        fi
        # Nothing is removed through a mount.
        ! grep -qF " $1/" /proc/self/mountinfo 2>/dev/null || exit
        rm -rf "$1"
    "#;
    Command::new("sh")
        .args(["-c", SCRIPT, "guardian"])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap()
}

/// The folder with the binaries, built where they are missing.
pub fn assets(release: Release) -> PathBuf {
    let mut script = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/control-plane/build"));
    if release == Release::Oldest {
        script.arg("oldest");
        if let Some(built) = std::env::var_os("KUBEBUILDER_ASSETS_OLDEST") {
            script.env("KUBEBUILDER_ASSETS", built);
        }
    }
    let output = script.stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "the control plane could not be built");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// The path of one of the binaries that a control plane without nodes does not need.
pub fn component(name: &'static str) -> PathBuf {
    static FOUND: Mutex<BTreeMap<&str, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut found = FOUND.lock().unwrap();
    let find = || {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/control-plane/build");
        let output = Command::new(script).arg(name).stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "{name} could not be built");
        PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()).join(name)
    };
    found.entry(name).or_insert_with(find).clone()
}

/// A port that nobody has, and that no outgoing connection will be given while its server is down:
/// those come from a range that begins at 32768.
fn free_port() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN.lock().unwrap();
    loop {
        let number = u64::from_str_radix(&random(), 16).unwrap();
        let port = u16::try_from(20_000 + number % 12_000).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() && given.insert(port) {
            return port;
        }
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A few characters that no other test has.
pub fn random() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    format!("{:08x}", RandomState::new().hash_one(Instant::now()) >> 32)
}
