//! The one image that all containers run: a static busybox, written as `docker save` would.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::json;

/// Of the containers of tests, and of the sandboxes of their pods.
pub const IMAGE: &str = "kubectl-lease.dev/test:1";

/// What busybox is called by in there.
const COMMANDS: [&str; 8] = ["sh", "sleep", "cat", "date", "ls", "kill", "touch", "rm"];

/// Ends by SIGKILL only, as the process that keeps a pod's namespaces does.
const PAUSE: &str = "#!/bin/sh\nexec sleep 1000000000\n";

/// Writes the archive.
pub fn write(file: &Path, busybox: &Path) {
    let mut layer = Archive::default();
    for folder in ["bin/", "dev/", "etc/", "proc/", "sys/", "tmp/"] {
        layer.add(folder, &Entry::Folder);
    }
    layer.add("bin/busybox", &Entry::File(&fs::read(busybox).unwrap()));
    for command in COMMANDS {
        layer.add(&format!("bin/{command}"), &Entry::Link("busybox"));
    }
    layer.add("pause", &Entry::File(PAUSE.as_bytes()));
    let layer = layer.finish();
    let config = json!({
        "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" },
        "os": "linux",
        "config": { "Env": ["PATH=/bin"], "Entrypoint": ["/pause"] },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", sha256(&layer))] },
    });
    let manifest = json!([{ "Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"] }]);
    let mut image = Archive::default();
    image.add("layer.tar", &Entry::File(&layer));
    image.add("config.json", &Entry::File(config.to_string().as_bytes()));
    image.add("manifest.json", &Entry::File(manifest.to_string().as_bytes()));
    fs::write(file, image.finish()).unwrap();
}

enum Entry<'a> {
    Folder,
    File(&'a [u8]),
    Link(&'a str),
}

/// A tar archive, in the format of POSIX.1-1988 (ustar).
#[derive(Default)]
struct Archive(Vec<u8>);

const BLOCK: usize = 512;

impl Archive {
    fn add(&mut self, name: &str, entry: &Entry<'_>) {
        let (kind, content, target) = match entry {
            Entry::Folder => (b'5', &[][..], ""),
            Entry::File(content) => (b'0', *content, ""),
            Entry::Link(target) => (b'2', &[][..], *target),
        };
        let mut header = [0; BLOCK];
        let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
        put(0, name);
        put(100, "0000755\0");
        put(108, "0000000\0");
        put(116, "0000000\0");
        put(124, &format!("{:011o}\0", content.len()));
        put(136, "00000000000\0");
        // The sum is that of a header whose sum is blank.
        put(148, "        ");
        put(157, target);
        put(257, "ustar\x0000");
        header[156] = kind;
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0.extend_from_slice(&header);
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 2 * BLOCK, 0);
        self.0
    }
}

fn sha256(bytes: &[u8]) -> String {
    let mut child =
        Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sha256sum");
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap()[..64].to_owned()
}
