//! The real nodes of the sandbox: each is switched off and on, cut off and hung by files, as by the switches
//! of a machine.

// The sandbox and the tests of it use different parts.
#![allow(dead_code)]

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use crate::harness::{
    ControlPlane, Shape, disk,
    image::IMAGE,
    nodes::{self, Node},
};

/// The longest path of a socket.
const SOCKET_PATH: usize = 107;

/// What is missing to run nodes below a folder, in one line.
pub fn missing(folder: &Path) -> Option<String> {
    let longest = folder.join("node-1/containerd.sock.ttrpc");
    let too_long = || {
        let room = SOCKET_PATH + folder.as_os_str().len() - longest.as_os_str().len();
        format!("the path {} is too long: a socket there needs one of {room} characters", folder.display())
    };
    nodes::missing(2).or_else(|| (longest.as_os_str().len() > SOCKET_PATH).then(too_long))
}

/// A control plane that runs pods, at the pace of the nodes.
pub fn shape() -> Shape {
    Shape { controllers: nodes::CONTROLLERS, manager_flags: &nodes::PACE, schedulers: 1, ..Shape::default() }
}

pub struct Machines(Vec<Node>);

impl Machines {
    /// Starts nodes, waits until they are ready, and writes down how to run a pod on them.
    pub fn start(plane: &ControlPlane, names: &[String]) -> Self {
        let mut nodes: Vec<_> = names.iter().map(|name| Node::new(plane, name, &[])).collect();
        for node in &mut nodes {
            node.start();
            for (switch, word) in [(Switch::Power, "on"), (Switch::Network, "up"), (Switch::Runtime, "up")] {
                switch.set(&node.folder, word);
            }
        }
        for name in names {
            // `kubectl wait --for=create` of several fails unless all are there.
            while plane.kubectl(&["get", "node", name, "--ignore-not-found", "-o", "name"]).is_empty() {
                thread::sleep(Duration::from_millis(300));
            }
            plane.kubectl(&["wait", "--for=condition=Ready", "--timeout=180s", "node", name]);
        }
        let shared = disk_folder(&plane.folder);
        fs::create_dir_all(&shared).unwrap();
        fs::write(example_file(&plane.folder), example(&shared)).unwrap();
        Self(nodes)
    }

    /// Does what the files say.
    pub fn heed_switches(&mut self) {
        for node in &mut self.0 {
            let says = |switch: Switch, word: &str| {
                fs::read_to_string(switch.file(&node.folder)).is_ok_and(|text| text.trim() == word)
            };
            let (cut, hung) = (says(Switch::Network, "cut"), says(Switch::Runtime, "hung"));
            match node.is_on() {
                true if says(Switch::Power, "off") => {
                    node.crash();
                    // What hangs does not hang any more when it is started again; a cable stays cut.
                    Switch::Runtime.set(&node.folder, "up");
                    continue;
                }
                false if says(Switch::Power, "on") => node.start(),
                false => continue,
                true => {}
            }
            match (cut, node.is_partitioned()) {
                (true, false) => node.partition(),
                (false, true) => node.heal(),
                _ => {}
            }
            match (hung, node.is_hung()) {
                (true, false) => node.hang_runtime(),
                (false, true) => node.resume_runtime(),
                _ => {}
            }
        }
    }
}

/// What is switched by writing to a file in the folder of a node. It can be set whatever state the node is
/// in, and holds until it is set again.
#[derive(Clone, Copy)]
enum Switch {
    Power,
    Network,
    Runtime,
}

impl Switch {
    fn file(self, node: &Path) -> PathBuf {
        node.join(match self {
            Self::Power => "power",
            Self::Network => "network",
            Self::Runtime => "runtime",
        })
    }

    fn set(self, node: &Path, word: &str) {
        fs::write(self.file(node), format!("{word}\n")).unwrap();
    }
}

/// The directory that pods share.
pub fn disk_folder(sandbox: &Path) -> PathBuf {
    sandbox.join("disk")
}

fn example_file(sandbox: &Path) -> PathBuf {
    sandbox.join("example.yaml")
}

/// What to type to do something to the nodes, and to run a pod on them.
pub fn usage(sandbox: &Path, names: &[String]) -> String {
    let of = |name: &String| {
        let line = |what: &str, switch: Switch, word: &str| {
            format!("{:29}echo {word} >{}\n", format!("{what}:"), switch.file(&sandbox.join(name)).display())
        };
        [
            line(&format!("Partition {name}"), Switch::Network, "cut"),
            line("Heal it", Switch::Network, "up"),
            line("Hang its runtime", Switch::Runtime, "hung"),
            line("Let that go on", Switch::Runtime, "up"),
            line("Crash it", Switch::Power, "off"),
            line("Start it again", Switch::Power, "on"),
        ]
        .concat()
    };
    format!(
        "{}Run a pod, image {IMAGE}, which writes to {}:\n                             \
         kubectl apply -f {}\n",
        names.iter().map(of).collect::<String>(),
        disk_folder(sandbox).display(),
        example_file(sandbox).display(),
    )
}

/// A `StatefulSet` whose pod writes to its own file of a directory.
fn example(shared: &Path) -> String {
    format!(
        r"# A StatefulSet of one pod, which appends lines to db-0 in the directory of its hostPath:
# seconds since this machine was started, uid of the pod, name of the node.
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: db
spec:
  replicas: 1
  serviceName: db
  selector:
    matchLabels:
      app: db
  template:
    metadata:
      labels:
        app: db
    spec:
      # There is no network of pods, and no kube-proxy.
      hostNetwork: true
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: 5
      affinity:
        nodeAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 100
            preference:
              matchExpressions:
              - {{ key: kubernetes.io/hostname, operator: In, values: [node-1] }}
      # Kubernetes' default is 300 seconds.
      tolerations:
      - {{ key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 2 }}
      - {{ key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 2 }}
      containers:
      - name: writer
        image: {IMAGE}
        imagePullPolicy: Never
        command:
        - sh
        - -c
        - |
          {script}
        env:
        - {{ name: POD_NAME, valueFrom: {{ fieldRef: {{ fieldPath: metadata.name }} }} }}
        - {{ name: POD_UID, valueFrom: {{ fieldRef: {{ fieldPath: metadata.uid }} }} }}
        - {{ name: NODE_NAME, valueFrom: {{ fieldRef: {{ fieldPath: spec.nodeName }} }} }}
        volumeMounts:
        - {{ name: disk, mountPath: /disk }}
      volumes:
      - name: disk
        hostPath:
          path: {shared:?}
",
        shared = shared.display().to_string(),
        script = disk::script("$POD_NAME"),
    )
}
