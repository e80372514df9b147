//! Real nodes: a kubelet, a containerd and their containers, and a network that can be cut.
//!
//! A node is a folder of the control plane with four servers. `machine` is the first process of a
//! process, mount and cgroup namespace, in which `containerd` and `kubelet` are started, and so all
//! their containers are: when it is killed, the kernel ends every one of them at once, as if the power
//! had failed, and no mount is left. What the machine would keep over a reboot is in `disk`. `relay` is
//! the only way from the kubelet to the kube-apiserver: stopped, it is a black hole, in which connections
//! hang as they do in a real partition, and the containers go on running.
//!
//! Everything listens on loopback, all pods use the network of this machine, and nothing of it is
//! changed: the settings of the kernel that a kubelet insists on are files in the node's own mount
//! namespace.

use std::{
    ffi::OsStr,
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;

use super::{ControlPlane, Server, component, free_port, image, quote};

/// A machine's first processes run within this.
const BOOTS_WITHIN: Duration = Duration::from_secs(60);

/// The first argument of a process that is a relay: see `relay`.
const RELAY: &str = "relay";

/// The duration of the lease that a kubelet renews, four times as often; Kubernetes' default is 40.
/// The node controller's patience is in the same proportion: see `MANAGER_FLAGS`.
pub const LEASE_SECONDS: u32 = 20;

/// For the kube-controller-manager of nodes with leases of `LEASE_SECONDS`: twice as fast as Kubernetes'
/// defaults, and evictions are not held back where several nodes are cut off at once.
pub const PACE: [&str; 4] = [
    "--node-monitor-period=2s",
    "--node-monitor-grace-period=25s",
    "--node-eviction-rate=100",
    "--unhealthy-zone-threshold=1",
];

/// For the only kube-controller-manager of tests: it does not give up the lead because the machine is busy.
pub const MANAGER_FLAGS: &[&str] = &[
    PACE[0],
    PACE[1],
    PACE[2],
    PACE[3],
    "--leader-elect-lease-duration=60s",
    "--leader-elect-renew-deadline=50s",
];

/// What pods of real nodes need beside the controllers of other tests.
pub const CONTROLLERS: &str = "namespace-controller,serviceaccount-controller,garbage-collector-controller,\
    statefulset-controller,replicaset-controller,deployment-controller,daemonset-controller,job-controller,\
    persistentvolume-binder-controller,pod-garbage-collector-controller,node-lifecycle-controller,taint-eviction-controller,\
    disruption-controller";

/// What a kubelet sets for the whole machine unless it is set, as files of `/proc/sys`.
const TUNABLES: [(&str, &str); 6] = [
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/keys/root_maxbytes", "25000000"),
];

/// 7 of a kubelet and 1 of a containerd.
const INOTIFY_INSTANCES: usize = 8;

/// Where the programs of administrators are, which not every root has on the PATH.
const SYSTEM: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// What this machine lacks to run so many nodes, and how to get it, in one line.
pub fn missing(nodes: usize) -> Option<String> {
    if !is_root() {
        return Some("containers need root: run as root".to_owned());
    }
    let programs = [
        ("containerd", "containerd"),
        ("containerd-shim-runc-v2", "containerd"),
        ("ctr", "containerd"),
        ("runc", "runc"),
        ("busybox", "busybox-static"),
        ("unshare", "util-linux"),
        ("nsenter", "util-linux"),
    ];
    let mut packages: Vec<&str> =
        programs.iter().filter(|(name, _)| program(name).is_none()).map(|(_, package)| *package).collect();
    if program("busybox").is_some_and(|busybox| !is_static(&busybox)) {
        packages.push("busybox-static");
    }
    packages.dedup();
    if !packages.is_empty() {
        let packages = packages.join(" ");
        return Some(format!("not installed: {packages} (on Debian: apt-get install {packages})"));
    }
    let given = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from).unwrap_or_default();
    let built = |name: &&str| given.join(name).is_file();
    if program("go").is_none() && !["kubelet", "kube-scheduler"].iter().all(built) {
        return Some("no Go to build kubelet and kube-scheduler with (https://go.dev/dl)".to_owned());
    }
    let probe = Command::new("unshare")
        .args(["--pid", "--fork", "--mount", "--cgroup", "mount", "-t", "tmpfs", "tmpfs", "/run"])
        .stderr(Stdio::null())
        .status();
    if !probe.is_ok_and(|status| status.success()) {
        return Some(
            "no namespaces or mounts for this user: a container needs --privileged for them".to_owned(),
        );
    }
    let instances = inotify_instances(nodes);
    if let Some(free) = free_inotify_instances().filter(|free| *free < instances) {
        return Some(format!(
            "only {free} inotify instances are free, of the {instances} that {nodes} nodes need (sysctl \
             fs.inotify.max_user_instances=512)"
        ));
    }
    let denied = hierarchies().into_iter().find(|hierarchy| {
        let probe = hierarchy.base.join(format!("kubectl-lease-probe-{}", super::random()));
        fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe)).is_err()
    });
    denied.map(|it| {
        format!("no cgroups in {}: a container needs --privileged and them writable", it.base.display())
    })
}

/// Whether the system has enough for so many nodes.
pub fn are_possible(nodes: usize) -> bool {
    free_inotify_instances().is_none_or(|free| free >= inotify_instances(nodes))
}

fn inotify_instances(nodes: usize) -> usize {
    // As many as one more node for the control plane.
    INOTIFY_INSTANCES * (nodes + 1)
}

/// How many inotify instances root may still create. Without one, containerd starts without its runtime
/// service, and nodes do not become ready.
fn free_inotify_instances() -> Option<usize> {
    let limit: usize =
        fs::read_to_string("/proc/sys/fs/inotify/max_user_instances").ok()?.trim().parse().ok()?;
    let files = fs::read_dir("/proc")
        .ok()?
        .flatten()
        .filter_map(|process| fs::read_dir(process.path().join("fd")).ok());
    let is_instance = |file: &fs::DirEntry| {
        fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == "anon_inode:inotify")
    };
    let used = files.flat_map(|files| files.flatten().filter(is_instance)).count();
    Some(limit.saturating_sub(used))
}

pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let more = SYSTEM.map(PathBuf::from);
    std::env::split_paths(&path).chain(more).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Whether a program needs no libraries, which an image of nothing else does not have.
fn is_static(program: &Path) -> bool {
    let start = fs::read(program).unwrap();
    !start[..start.len().min(4096)].windows(4).any(|word| word == b"/ld-")
}

/// Where a node's cgroups go, for one mount of the cgroup file system: one for each controller in
/// version 1, one for all in version 2.
#[derive(Clone, Debug)]
struct Hierarchy {
    mount: PathBuf,
    /// The cgroup of this process in version 1, so that limits which hold for it hold for nodes too. In
    /// version 2 a cgroup has processes or cgroups below it, and not both: the root.
    base: PathBuf,
}

fn hierarchies() -> Vec<Hierarchy> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts.lines().filter_map(|line| hierarchy(line, &own)).collect()
}

/// From a line of `/proc/self/mountinfo`, and from `/proc/self/cgroup`.
fn hierarchy(line: &str, own: &str) -> Option<Hierarchy> {
    let (place, system) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, mount) = (place.next()?, PathBuf::from(place.next()?));
    let mut system = system.split(' ');
    let (kind, options) = (system.next()?, system.nth(1)?);
    match kind {
        "cgroup2" => Some(Hierarchy { base: mount.clone(), mount }),
        "cgroup" => {
            let path = own.lines().find_map(|line| {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                let here = controllers.split(',').all(|name| options.split(',').any(|option| option == name));
                (here && !controllers.is_empty()).then_some(path)
            })?;
            let below = path.strip_prefix(root.trim_end_matches('/')).unwrap_or("");
            let base = mount.join(below.trim_start_matches('/'));
            let base = if base.is_dir() { base } else { mount.clone() };
            Some(Hierarchy { mount, base })
        }
        _ => None,
    }
}

/// Commands that make a cgroup; one of processors and memory has none unless it is given them.
fn make_cgroup(path: &Path) -> String {
    let parent = quote(&path.parent().unwrap().display().to_string());
    let path = quote(&path.display().to_string());
    format!(
        "mkdir -p {path}\n\
         for file in cpuset.cpus cpuset.mems; do\n\
         [ ! -e {path}/tasks ] || [ ! -e {path}/$file ] || cat {parent}/$file >{path}/$file\n\
         done\n"
    )
}

/// A node, on or off.
pub struct Node {
    pub name: String,
    pub folder: PathBuf,
    machine: Server,
    containerd: Server,
    kubelet: Server,
    relay: Server,
    hierarchies: Vec<Hierarchy>,
    /// Its cgroup, below the base of every hierarchy.
    cgroup: PathBuf,
    partitioned: bool,
    frozen: bool,
    hung: bool,
}

impl Node {
    /// Writes down how to run one, which then is off. Labels are `name=value`.
    pub fn new(plane: &ControlPlane, name: &str, labels: &[String]) -> Self {
        let folder = plane.folder.join(name);
        let disk = folder.join("disk");
        for part in ["lib", "log", "sys", "cni", "manifests"] {
            fs::create_dir_all(disk.join(part)).unwrap();
        }
        // Read by the guardian: written before there is any.
        fs::write(plane.folder.join("cgroup"), &plane.cgroup).unwrap();
        let node = Self {
            name: name.to_owned(),
            machine: Server::new(&folder, "machine"),
            containerd: Server::new(&folder, "containerd"),
            kubelet: Server::new(&folder, "kubelet"),
            relay: Server::new(&folder, "relay"),
            hierarchies: hierarchies(),
            cgroup: Path::new(&plane.cgroup).join(name),
            folder,
            partitioned: false,
            frozen: false,
            hung: false,
        };
        node.write_machine();
        node.write_containerd();
        node.write_kubelet(plane, labels);
        node
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn cgroups(&self) -> impl Iterator<Item = (&Hierarchy, PathBuf)> {
        self.hierarchies.iter().map(|hierarchy| (hierarchy, hierarchy.base.join(&self.cgroup)))
    }

    fn write_machine(&self) {
        // In the node's cgroup when its namespace is made, whose root that is.
        let mut run = String::new();
        for (_, cgroup) in self.cgroups() {
            let common = cgroup.parent().unwrap();
            run += &make_cgroup(common);
            run += &make_cgroup(&cgroup);
            // In version 2 the node has the controllers that are handed down to it.
            let common = quote(&common.display().to_string());
            writeln!(
                run,
                "for controller in $(cat {common}/cgroup.controllers 2>/dev/null); do\n\
                 echo +$controller >{common}/cgroup.subtree_control\ndone"
            )
            .unwrap();
            writeln!(run, "echo $$ >{}", quote(&cgroup.join("cgroup.procs").display().to_string())).unwrap();
        }
        let boot = self.path("machine/boot");
        writeln!(run, "exec unshare --pid --fork --kill-child --mount --cgroup sh {}", quote(&boot)).unwrap();
        self.machine.write_script(&run);

        let mut script = String::from("set -eu\nmount -t proc proc /proc\n");
        for (name, value) in TUNABLES {
            let file = self.folder.join("disk/sys").join(name.replace('/', "."));
            fs::write(&file, format!("{value}\n")).unwrap();
            let file = quote(&file.display().to_string());
            writeln!(script, "[ ! -e /proc/sys/{name} ] || mount --bind {file} /proc/sys/{name}").unwrap();
        }
        for (hierarchy, cgroup) in self.cgroups() {
            let place = |path: &Path| quote(&path.display().to_string());
            writeln!(script, "mount --bind {} {}", place(&cgroup), place(&hierarchy.mount)).unwrap();
            let init = hierarchy.mount.join("init");
            script += &make_cgroup(&init);
            writeln!(script, "echo $$ >{}", place(&init.join("cgroup.procs"))).unwrap();
        }
        writeln!(
            script,
            "mount --bind {} /var/lib\nmount --bind {} /var/log\nmount -t tmpfs tmpfs /run\ntouch {}",
            quote(&self.path("disk/lib")),
            quote(&self.path("disk/log")),
            quote(&self.path("machine/up")),
        )
        .unwrap();
        // The first process of a machine collects the dead.
        script += "while :; do sleep 1000 & wait $!; done\n";
        fs::write(boot, script).unwrap();
    }

    /// Commands that run a program on the machine, and again when it ends, as systemd would.
    fn on_machine(&self, program: &[&str]) -> String {
        let mut run = String::new();
        for (_, cgroup) in self.cgroups() {
            let processes = cgroup.join("init/cgroup.procs").display().to_string();
            writeln!(run, "echo $$ >{}", quote(&processes)).unwrap();
        }
        let program: Vec<_> = program.iter().map(|word| quote(word)).collect();
        writeln!(
            run,
            "PATH=$PATH:{}\nmachine=$(cat {})\nfirst=$(cat /proc/$machine/task/$machine/children)\n\
             while kill -0 $first; do\nnsenter --target $first --mount --pid --cgroup -- {}\nsleep 0.5\ndone",
            SYSTEM.join(":"),
            quote(&self.path("machine/pid")),
            program.join(" "),
        )
        .unwrap();
        run
    }

    fn socket(&self) -> String {
        self.path("containerd.sock")
    }

    fn write_containerd(&self) {
        // Without its service for kubelets (a busy machine may lack a watch of files for it) it ends, and is
        // started again.
        let config = format!(
            r#"version = 2
required_plugins = ["io.containerd.grpc.v1.cri"]
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    conf_dir = "{cni}"
"#,
            socket = self.socket(),
            image = image::IMAGE,
            cni = self.path("disk/cni"),
        );
        fs::write(self.folder.join("disk/containerd.toml"), config).unwrap();
        // Without one the node is not ready; pods on the machine's network never use it.
        let network = json!({ "cniVersion": "0.4.0", "name": "none", "plugins": [{ "type": "loopback" }] });
        fs::write(self.folder.join("disk/cni/none.conflist"), network.to_string()).unwrap();
        let program = program("containerd").unwrap();
        let config = self.path("disk/containerd.toml");
        self.containerd.write_script(&self.on_machine(&[program.to_str().unwrap(), "--config", &config]));
    }

    fn write_kubelet(&self, plane: &ControlPlane, labels: &[String]) {
        let name = &self.name;
        plane.authority.issue(name, &format!("system:node:{name}"), &["system:nodes"], false);
        let port = free_port();
        let api = plane.url(0);
        let target = api.trim_start_matches("https://");
        let this = std::env::current_exe().unwrap();
        self.relay.write_script(&format!(
            "exec {} {RELAY} 127.0.0.1:{port} {target}\n",
            quote(&this.display().to_string())
        ));
        let kubeconfig = plane.write_kubeconfig_to(name, &format!("https://127.0.0.1:{port}"), "relay");

        let none = "0%";
        let config = json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": format!("unix://{}", self.socket()),
            "address": "127.0.0.1",
            "port": free_port(),
            "healthzPort": free_port(),
            "authentication": {
                "anonymous": { "enabled": false },
                "webhook": { "enabled": false },
                "x509": { "clientCAFile": plane.authority_file() },
            },
            "authorization": { "mode": "AlwaysAllow" },
            "staticPodPath": self.folder.join("disk/manifests"),
            "fileCheckFrequency": "1s",
            "nodeLeaseDurationSeconds": LEASE_SECONDS,
            "nodeStatusUpdateFrequency": "5s",
            // The time after which a containerd that hangs makes the node not ready: see `hang_runtime`.
            "runtimeRequestTimeout": "15s",
            "cgroupDriver": "cgroupfs",
            "cgroupsPerQOS": false,
            "enforceNodeAllocatable": [],
            "failSwapOn": false,
            "localStorageCapacityIsolation": false,
            "makeIPTablesUtilChains": false,
            "resolvConf": "",
            // A full disk or little memory of this machine is no business of the tests.
            "imageGCHighThresholdPercent": 100,
            "evictionHard": {
                "memory.available": none, "nodefs.available": none, "nodefs.inodesFree": none,
                "imagefs.available": none, "imagefs.inodesFree": none,
            },
        });
        let file = self.folder.join("disk/kubelet.json");
        fs::write(&file, config.to_string()).unwrap();
        let binary = component("kubelet");
        self.kubelet.write_script(&self.on_machine(&[
            binary.to_str().unwrap(),
            &format!("--config={}", file.display()),
            &format!("--kubeconfig={}", kubeconfig.display()),
            &format!("--hostname-override={name}"),
            "--node-ip=127.0.0.1",
            &format!("--node-labels={}", labels.join(",")),
        ]));
    }

    /// Switches the machine on. The kubelet then makes the node ready in its own time.
    pub fn start(&mut self) {
        self.relay.start();
        let up = self.folder.join("machine/up");
        let _ = fs::remove_file(&up);
        self.machine.start();
        self.wait_for("machine", || up.exists());
        // It was in the root of the cgroup namespace, where in version 2 no process may stay.
        let unshare = self.machine.child.as_ref().unwrap().id();
        for (_, cgroup) in self.cgroups() {
            fs::write(cgroup.join("init/cgroup.procs"), unshare.to_string()).unwrap();
        }
        self.containerd.start();
        self.wait_for("containerd", || self.ctr(&["version"]));
        let imported = self.folder.join("disk/imported");
        if !imported.exists() {
            let archive = self.folder.join("disk/image.tar");
            image::write(&archive, &program("busybox").unwrap());
            let archive = archive.display().to_string();
            assert!(
                self.ctr(&["--namespace", "k8s.io", "images", "import", "--snapshotter", "native", &archive]),
                "{} does not import the image:\n{}",
                self.name,
                self.containerd.log_tail()
            );
            fs::write(imported, "").unwrap();
        }
        self.kubelet.start();
    }

    fn ctr(&self, args: &[&str]) -> bool {
        let mut ctr = Command::new(program("ctr").unwrap());
        ctr.args(["--timeout", "20s", "--address", &self.socket()]).args(args);
        ctr.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        ctr.status().unwrap().success()
    }

    /// How many containers of a pod run, as `crictl ps --label io.kubernetes.pod.uid=UID` on the machine would
    /// show; `None` if its runtime does not answer.
    pub fn running_containers(&self, pod: &str) -> Option<usize> {
        let list = |what: &str, more: &[&str]| {
            let mut ctr = Command::new(program("ctr").unwrap());
            ctr.args(["--timeout", "5s", "--address", &self.socket(), "--namespace", "k8s.io", what, "list"]);
            let out = ctr.args(more).stdin(Stdio::null()).output().unwrap();
            out.status.success().then(|| String::from_utf8(out.stdout).unwrap())
        };
        let label = |name: &str, value: &str| format!(r#"labels."io.{name}"=={value}"#);
        // The sandbox is none of them.
        let of_pod = [label("kubernetes.pod.uid", pod), label("cri-containerd.kind", "container")].join(",");
        let containers = list("containers", &["--quiet", &of_pod])?;
        let tasks = list("tasks", &[])?;
        let runs = |container: &&str| {
            tasks.lines().any(|task| {
                let mut words = task.split_whitespace();
                words.next() == Some(container) && words.nth(1) == Some("RUNNING")
            })
        };
        Some(containers.lines().filter(runs).count())
    }

    fn wait_for(&self, what: &str, condition: impl Fn() -> bool) {
        let deadline = Instant::now() + BOOTS_WITHIN;
        while !condition() {
            let logs = || [&self.machine, &self.containerd].map(Server::log_tail).join("\n");
            assert!(Instant::now() < deadline, "{what} of {} does not start:\n{}", self.name, logs());
            thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn is_on(&self) -> bool {
        self.machine.child.is_some()
    }

    /// On, and nothing was done to it that `repair` would undo.
    pub fn is_well(&self) -> bool {
        self.is_on() && self.kubelet.child.is_some() && !(self.partitioned || self.frozen || self.hung)
    }

    pub fn is_partitioned(&self) -> bool {
        self.partitioned
    }

    pub fn is_hung(&self) -> bool {
        self.hung
    }

    /// Undoes whatever was done to it.
    pub fn repair(&mut self) {
        if !self.is_on() {
            return self.start();
        }
        if self.kubelet.child.is_none() {
            self.kubelet.start();
        }
        if self.frozen {
            self.thaw();
        }
        if self.hung {
            self.resume_runtime();
        }
        if self.partitioned {
            self.heal();
        }
    }

    /// Cuts the network: connections hang, and the containers go on running.
    pub fn partition(&mut self) {
        self.relay.signal("-STOP");
        self.partitioned = true;
    }

    pub fn heal(&mut self) {
        self.relay.signal("-CONT");
        self.partitioned = false;
    }

    /// What a power failure does: all its processes end at once, and what it wrote is there.
    pub fn crash(&mut self) {
        let unshare = self.machine.child.as_ref().unwrap_or_else(|| panic!("{} is off", self.name)).id();
        let first = fs::read_to_string(format!("/proc/{unshare}/task/{unshare}/children")).unwrap();
        kill(Pid::from_raw(first.trim().parse().unwrap()), Signal::SIGKILL).unwrap();
        // Their parents, which may be stopped as well, or stop just now because what they started was stopped,
        // collect them; until then the namespace has not ended.
        while !self.machine.has_ended() {
            for server in [&mut self.containerd, &mut self.kubelet, &mut self.machine] {
                if !server.has_ended() {
                    server.signal("-CONT");
                }
            }
            thread::sleep(Duration::from_millis(20));
        }
        for server in [&mut self.machine, &mut self.containerd, &mut self.kubelet] {
            server.reap();
        }
        self.relay.kill();
        (self.partitioned, self.frozen, self.hung) = (false, false, false);
        let cgroups: Vec<_> = self.cgroups().map(|(_, cgroup)| cgroup).collect();
        self.wait_for("the end", || cgroups.iter().all(|cgroup| remove_cgroup(cgroup).is_ok()));
    }

    /// Crashes it if it is on, and switches it on.
    pub fn restart(&mut self) {
        if self.is_on() {
            self.crash();
        }
        self.start();
    }

    /// Stops every process of it, as a paused virtual machine is stopped.
    pub fn freeze(&mut self) {
        self.relay.signal("-STOP");
        self.frozen = true;
        // Those that are started meanwhile are found by the next look.
        while self.signal_all(Signal::SIGSTOP) > 0 {
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn thaw(&mut self) {
        self.signal_all(Signal::SIGCONT);
        // They stop with the processes that they have started on the machine.
        for server in [&self.containerd, &self.kubelet].into_iter().filter(|it| it.child.is_some()) {
            server.signal("-CONT");
        }
        (self.frozen, self.hung) = (false, false);
        if !self.partitioned {
            self.relay.signal("-CONT");
        }
    }

    /// Stops containerd: the kubelet is alive and gets nothing done.
    pub fn hang_runtime(&mut self) {
        self.containerd.signal("-STOP");
        self.hung = true;
    }

    pub fn resume_runtime(&mut self) {
        self.containerd.signal("-CONT");
        self.hung = false;
    }

    /// Stops what containerd controls the containers of a pod by (its shim), so that they cannot be ended and
    /// all else goes on; whether there are any. Their environment has the `POD_UID`.
    pub fn hang_pod(&self, uid: &str) -> bool {
        let name = format!("POD_UID={uid}");
        let of_pod = |id: &u32| {
            fs::read(format!("/proc/{id}/environ"))
                .is_ok_and(|all| all.split(|byte| *byte == 0).any(|one| one == name.as_bytes()))
        };
        let shim = |id: u32| {
            let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
            let parent: u32 =
                status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
            let program = fs::read_to_string(format!("/proc/{parent}/comm")).ok()?;
            program.starts_with("containerd-shim").then_some(parent)
        };
        let shims: Vec<u32> = self.processes().into_iter().filter(of_pod).filter_map(shim).collect();
        for id in &shims {
            kill(Pid::from_raw((*id).try_into().unwrap()), Signal::SIGSTOP).unwrap();
        }
        !shims.is_empty()
    }

    /// Ends the kubelet only: the containers go on running.
    pub fn stop_kubelet(&mut self) {
        self.kubelet.kill();
    }

    pub fn start_kubelet(&mut self) {
        self.kubelet.start();
    }

    /// Where the kubelet looks for manifests of static pods.
    pub fn manifests(&self) -> PathBuf {
        self.folder.join("disk/manifests")
    }

    /// Has the kubelet run a static pod; what it reads is whole at once. Gives its file.
    pub fn run_static_pod(&self, manifest: &serde_json::Value) -> PathBuf {
        let name = manifest["metadata"]["name"].as_str().unwrap();
        let file = self.manifests().join(format!("{name}.json"));
        // The kubelet leaves files alone whose names begin with a dot.
        let unfinished = self.manifests().join(format!(".{name}"));
        fs::write(&unfinished, manifest.to_string()).unwrap();
        fs::rename(unfinished, &file).unwrap();
        file
    }

    /// Takes the manifests of all static pods away.
    pub fn remove_static_pods(&self) {
        for entry in fs::read_dir(self.manifests()).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
    }

    /// The end of what the kubelet, containerd and the relay have said.
    pub fn logs(&self) -> String {
        [&self.kubelet, &self.containerd, &self.relay].map(Server::log_tail).join("\n")
    }

    /// All processes of the machine, containers included, by the ids that they have here.
    pub fn processes(&self) -> Vec<u32> {
        // Containers have process namespaces of their own; what leaves a cgroup is moved by somebody.
        let cgroup = format!("/{}/", self.cgroup.display());
        let within = |id: &u32| {
            fs::read_to_string(format!("/proc/{id}/cgroup")).is_ok_and(|paths| paths.contains(&cgroup))
        };
        all_processes().into_iter().filter(within).collect()
    }

    /// Sends every process a signal; how many there are that it has not stopped yet.
    fn signal_all(&self, signal: Signal) -> usize {
        let found: Vec<_> = self.processes().into_iter().filter(|id| !is_stopped(*id)).collect();
        let whom = if signal == Signal::SIGSTOP { found.clone() } else { self.processes() };
        for id in whom {
            // It may have ended.
            let _ = kill(Pid::from_raw(id.try_into().unwrap()), signal);
        }
        found.len()
    }
}

/// The ids of the processes of this machine.
pub fn all_processes() -> Vec<u32> {
    let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().to_str().unwrap().parse().ok();
    fs::read_dir("/proc").unwrap().filter_map(name).collect()
}

/// Stopped by a signal, or dead.
fn is_stopped(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| matches!(rest.as_bytes()[0], b'T' | b't' | b'Z' | b'X'))
}

/// Removes a cgroup and those below it, which have no process any more.
fn remove_cgroup(path: &Path) -> io::Result<()> {
    if !path.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_cgroup(&entry.path())?;
        }
    }
    fs::remove_dir(path)
}

/// What a program that starts nodes does first: it may be one that this has started as a relay.
pub fn relay() -> Option<ExitCode> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let [mode, listen, target] = &args[..] else { return None };
    (mode == RELAY).then(|| {
        let text = |word: &OsStr| word.to_str().unwrap().to_owned();
        relay_between(&text(listen), &text(target));
        ExitCode::FAILURE
    })
}

fn relay_between(listen: &str, target: &str) {
    let listener = TcpListener::bind(listen).unwrap();
    for near in listener.incoming() {
        let Ok(near) = near else { continue };
        let Ok(far) = TcpStream::connect(target) else { continue };
        for (mut from, mut to) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
            thread::spawn(move || {
                let _ = io::copy(&mut from, &mut to);
                let _ = to.flush();
                let _ = to.shutdown(Shutdown::Write);
                let _ = from.shutdown(Shutdown::Read);
            });
        }
    }
}
