//! Credentials that expire while a command lives, on a real kube-apiserver: it looks at a client certificate
//! at every request, also on a connection that was made when it was valid.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::{
    harness::{User, random},
    plugin::{Plugin, Running, wait_for},
    shared,
};

const SOON: Duration = Duration::from_secs(15);
/// For how many seconds a certificate is valid, at least.
const LIFE: u64 = 5;

/// Where nothing happens: after a quarter of a minute it is listed again.
const QUIET: &str = "kube-public";

/// How a user has certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// By a plugin that says until when.
    Exec,
    /// By a plugin that does not: only the server's 401 tells.
    ExecForever,
    /// In files that are replaced.
    Files,
}

/// An administrator whose certificates last for a few seconds.
struct ShortLived {
    by: By,
    name: String,
    folder: PathBuf,
}

impl ShortLived {
    fn new(by: By) -> Self {
        let name = format!("short-{}", random());
        let folder = shared().folder.join(&name);
        fs::create_dir(&folder).unwrap();
        let user = Self { by, name, folder };
        user.issue();
        user
    }

    /// What is there from now on, file by file, and each at once.
    fn issue(&self) {
        let until = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + LIFE;
        let (certificate, key) = shared().authority.issue_until(&self.name, &["system:masters"], until);
        let mut status = json!({ "clientCertificateData": certificate, "clientKeyData": key });
        if self.by == By::Exec {
            let until = jiff::Timestamp::from_second(until.try_into().unwrap()).unwrap();
            status["expirationTimestamp"] = until.to_string().into();
        }
        let credential = json!({
            "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status,
        });
        self.write("client.key", &key);
        self.write("client.crt", &certificate);
        self.write("credential", &credential.to_string());
    }

    fn write(&self, file: &str, text: &str) {
        let (path, new) = (self.folder.join(file), self.folder.join(format!("{file}.new")));
        fs::write(&new, text).unwrap();
        fs::rename(new, path).unwrap();
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.folder.join("runs")).map_or(0, |runs| runs.lines().count())
    }

    fn kubeconfig(&self) -> PathBuf {
        let file = |name: &str| self.folder.join(name).display().to_string();
        let user = match self.by {
            By::Files => json!({ "client-certificate": "client.crt", "client-key": "client.key" }),
            By::Exec | By::ExecForever => json!({ "exec": {
                "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "command": "sh",
                "args": ["-c", format!("echo >>{}; exec cat {}", file("runs"), file("credential"))],
            } }),
        };
        let path = self.folder.join("kubeconfig");
        changed(&shared().kubeconfig(User::Admin, 0), &path, |config| config["users"][0]["user"] = user);
        path
    }
}

fn changed(from: &Path, to: &Path, change: impl FnOnce(&mut Value)) {
    let mut config: Value = serde_json::from_str(&fs::read_to_string(from).unwrap()).unwrap();
    change(&mut config);
    fs::write(to, config.to_string()).unwrap();
}

/// Says that it is over, also when a test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn client_certificates_are_renewed_while_a_command_lives() {
    let users = [By::Exec, By::ExecForever, By::Files].map(ShortLived::new);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let ends = Over(&over);
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                users.iter().for_each(ShortLived::issue);
                thread::sleep(Duration::from_millis(700));
            }
        });
        let running: Vec<(&ShortLived, Running, Running)> = users
            .iter()
            .map(|user| {
                let plugin = Plugin::new(user.kubeconfig());
                let hold = plugin.start(&[
                    "hold",
                    &user.name,
                    "-n",
                    "default",
                    "-d",
                    "15s",
                    "--",
                    "sh",
                    "-c",
                    "echo held; sleep 600",
                ]);
                (user, hold, plugin.start(&["leaders", "-w", "-n", QUIET]))
            })
            .collect();
        for (user, hold, _) in &running {
            hold.until(&format!("{:?} holds", user.by), SOON, |text| text.contains("held"));
        }
        let lists = |user: &ShortLived| {
            let leases = format!("list /apis/coordination.k8s.io/v1/namespaces/{QUIET}/leases");
            shared().audited(&user.name).iter().filter(|asked| asked.starts_with(&leases)).count()
        };
        let again = || users.iter().all(|user| lists(user) >= 2);
        wait_for("leases are listed again", Duration::from_secs(40), again, || {
            let told = running
                .iter()
                .map(|(user, hold, watch)| format!("{:?}: {}{}\n", user.by, hold.stderr(), watch.stderr()));
            told.collect::<Vec<_>>().concat()
        });
        drop(ends);
        for (user, mut hold, mut watch) in running {
            assert_eq!(hold.stderr() + &watch.stderr(), "nothing matches yet, waiting\n", "{:?}", user.by);
            let lease =
                ["get", "lease", &user.name, "-n", "default", "-o", "jsonpath={.spec.leaseTransitions}"];
            assert_eq!(shared().kubectl(&lease), "0", "{:?}: it was never lost", user.by);
            user.issue();
            hold.signal("-TERM");
            assert_eq!(hold.wait(), 143, "{:?}: {}", user.by, hold.stderr());
            watch.signal("-INT");
            assert_eq!(watch.wait(), 130, "{:?}: {}", user.by, watch.stderr());
            if user.by != By::Files {
                // Two commands, and every few seconds: not at every request.
                assert!((4..24).contains(&user.runs()), "{:?}: {} runs", user.by, user.runs());
            }
        }
    });
}
