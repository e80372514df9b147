//! The real nodes of the sandbox: each is switched off and on by a file, as by the button of a machine.

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
    Shape {
        controllers: nodes::CONTROLLERS,
        manager_flags: &nodes::PACE,
        scheduler: true,
        ..Shape::default()
    }
}

pub struct Machines(Vec<Node>);

impl Machines {
    /// Starts nodes, waits until they are ready, and writes down how to run a pod on them.
    pub fn start(plane: &ControlPlane, names: &[String]) -> Self {
        let mut nodes: Vec<_> = names.iter().map(|name| Node::new(plane, name, &[])).collect();
        for node in &mut nodes {
            node.start();
            fs::write(power(node), "on\n").unwrap();
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
    pub fn heed_power(&mut self) {
        for node in &mut self.0 {
            match (fs::read_to_string(power(node)).unwrap_or_default().trim(), node.is_on()) {
                ("off", true) => node.crash(),
                ("on", false) => node.start(),
                _ => {}
            }
        }
    }
}

fn power(node: &Node) -> PathBuf {
    node.folder.join("power")
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
    let folder = sandbox.display();
    let of = |name: &String| {
        format!(
            "Partition {name}:            kill -STOP $(cat {folder}/{name}/relay/pid)\n\
             Heal it:                     kill -CONT $(cat {folder}/{name}/relay/pid)\n\
             Crash it:                    echo off >{folder}/{name}/power\n\
             Start it again:              echo on >{folder}/{name}/power\n"
        )
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
