//! The library as other programs use it: its examples, and a program outside of this workspace. On a real
//! control plane.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    contention::{NAMESPACE, look, nodes},
    harness::{User, random},
    plugin::{BINARY, Plugin, Running, send},
    shared,
};

const SOON: Duration = Duration::from_secs(15);

/// A program that holds a node while it works, in about 40 lines.
const OUTSIDE: &str = r#"
use std::{env, process::ExitCode, time::Duration};

use kube_leases::{Maintenance, NotTaken};

async fn work(node: &str) -> u32 {
    println!("working on {node}");
    tokio::time::sleep(Duration::from_secs(2)).await;
    42
}

#[tokio::main]
async fn main() -> ExitCode {
    let node = env::args().nth(1).unwrap();
    let client = kube::Client::try_default().await.unwrap();
    let maintenance = Maintenance::new(client, "outside");
    // On another thread: what it returns is `Send`.
    let task = tokio::spawn(async move {
        let lease = match maintenance.acquire(&node).reason("a new disk").await {
            Ok(lease) => lease,
            Err(NotTaken::Blocked(blocked)) => {
                println!("not now: {blocked}");
                return ExitCode::from(4);
            }
            Err(error) => {
                eprintln!("error: {error}");
                return ExitCode::FAILURE;
            }
        };
        let outcome = lease.run(work(&node)).await;
        lease.release().await.unwrap();
        match outcome {
            Ok(answer) => {
                println!("worked: {answer}");
                ExitCode::SUCCESS
            }
            Err(lost) => {
                println!("lost: {lost}");
                ExitCode::from(75)
            }
        }
    });
    task.await.unwrap()
}
"#;

fn plugin() -> Plugin {
    Plugin::new(shared().kubeconfig(User::Admin, 0))
}

fn holder(node: &str) -> String {
    look(NAMESPACE, node)["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

/// The folder that everything is built in, and the options for what this was built as.
fn built() -> (PathBuf, &'static [&'static str]) {
    let folder = Path::new(BINARY).parent().unwrap();
    let release = folder.ends_with("release");
    (folder.to_owned(), if release { &["--release"] } else { &[] })
}

/// Builds something, with what was built already, and without a network.
fn build(folder: &Path, args: &[&str]) {
    let (built, options) = built();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .current_dir(folder)
        .args(["build", "--offline"])
        .args(args)
        .args(options)
        .env("CARGO_TARGET_DIR", built.parent().unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// One of the library's examples.
fn example(name: &str) -> String {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| build(workspace(), &["--locked", "-p", "kube-leases", "--examples"]));
    built().0.join("examples").join(name).display().to_string()
}

fn start(program: &str, args: &[&str]) -> Running {
    plugin().start_by(program, args)
}

#[test]
fn a_reboot_controller_holds_its_nodes_while_it_works_and_no_longer() {
    let controller = example("reboot-controller");
    let [a, b] = nodes();
    plugin().run(&["maint", "acquire", &b, "--holder", "jane"]).expect(0);
    let mut works = start(&controller, &[&a, &b]);
    works.until("it waits for the one that is held", SOON, |text| {
        text.contains(&format!("'{b}' is held by 'jane'"))
    });
    assert!(holder(&a).starts_with("reboot-controller#"), "{}", holder(&a));
    plugin().run(&["maint", "release", &b, "--holder", "jane"]).expect(0);
    works.until("it works", SOON, |text| text.contains(&format!("rebooting {a}")));
    let held = look(NAMESPACE, &b);
    assert!(holder(&b).starts_with("reboot-controller#"), "{held}");
    assert_eq!(held["metadata"]["annotations"]["kubectl-lease.dev/reason"], json!("kernel update"));
    assert_eq!(held["spec"]["leaseDurationSeconds"], json!(30));
    plugin().run(&["maint", "acquire", &a, "--holder", "jane"]).expect(4).says("held by 'reboot-controller#");
    assert_eq!(works.wait(), 0, "{}", works.stderr());
    assert_eq!([holder(&a), holder(&b)], ["", ""]);
}

#[test]
fn work_ends_and_it_is_said_why_when_its_lease_is_lost() {
    let controller = example("reboot-controller");
    let [a, b] = nodes();
    let mut works = start(&controller, &[&a, &b]);
    works.until("it works", SOON, |text| text.contains(&format!("rebooting {a}")));
    plugin().run(&["maint", "release", &b, "--force", "--confirm"]).expect(0);
    assert_eq!(works.wait(), 1);
    let why = format!("'{b}' was released by another client");
    assert!(works.stderr().contains(&why), "{}", works.stderr());
    assert!(!works.stdout().contains(&format!("rebooting {b}")), "{}", works.stdout());
    assert_eq!([holder(&a), holder(&b)], ["", ""]);
}

#[test]
fn a_controller_that_is_stopped_releases_what_it_holds() {
    let controller = example("reboot-controller");
    let [a, b] = nodes();
    let mut works = start(&controller, &[&a, &b]);
    works.until("it works", SOON, |text| text.contains(&format!("rebooting {a}")));
    send("TERM", works.id());
    assert_eq!(works.wait(), 1);
    assert!(works.stderr().contains("error: interrupted"), "{}", works.stderr());
    assert!(!works.stdout().contains(&format!("rebooting {b}")), "{}", works.stdout());
    assert_eq!([holder(&a), holder(&b)], ["", ""]);
    // So does one that still waits.
    plugin().run(&["maint", "acquire", &b, "--holder", "jane"]).expect(0);
    let mut waits = start(&controller, &[&a, &b]);
    waits.until("it waits", SOON, |text| text.contains(&format!("'{b}' is held by 'jane'")));
    assert!(holder(&a).starts_with("reboot-controller#"), "{}", holder(&a));
    send("TERM", waits.id());
    assert_eq!(waits.wait(), 1);
    assert_eq!([holder(&a), holder(&b)], ["", "jane"]);

    let name = format!("library-{}", random());
    let mut leads = start(&example("leader"), &["default", &name, "one"]);
    leads.until("it leads", SOON, |text| text.contains("leads: 1\n"));
    send("TERM", leads.id());
    assert_eq!(leads.wait(), 1);
    assert_eq!(look("default", &name)["spec"]["holderIdentity"], json!(""));
}

#[test]
fn one_of_two_candidates_works_at_a_time() {
    let leader = example("leader");
    let name = format!("library-{}", random());
    let candidate = |identity: &str| start(&leader, &["default", &name, identity]);
    let leads = |text: &str| text.contains("leads: 1\n");
    let token = |running: &Running| -> u64 {
        let text = running.stdout();
        let word = text.lines().find_map(|line| line.split("with the token ").nth(1)).unwrap().to_owned();
        word.parse().unwrap()
    };
    let mut one = candidate("one");
    one.until("it leads", SOON, leads);
    let mut two = candidate("two");
    assert_eq!(one.wait(), 0, "{}", one.stderr());
    two.until("it leads after the other", SOON, leads);
    // The other had stepped down by then.
    assert!(one.stdout().contains("one leads: 10"), "{}", one.stdout());
    assert!(token(&two) > token(&one));
    let mut three = candidate("three");
    send("KILL", two.id());
    two.wait();
    // What was killed leads until its lease has expired.
    let took = three.until("it leads after what was killed", SOON, leads);
    assert!(took > Duration::from_secs(3), "{took:?}");
    assert_eq!(three.wait(), 0, "{}", three.stderr());
    let lease: Value = look("default", &name);
    assert_eq!(lease["spec"]["holderIdentity"], json!(""));
}

#[test]
fn a_program_outside_of_the_workspace_holds_a_lease() {
    let folder = shared().folder.join(format!("outside-{}", random()));
    fs::create_dir_all(folder.join("src")).unwrap();
    let library = workspace().join("kube-leases").display().to_string();
    let manifest = format!(
        r#"
[package]
name = "outside"
version = "0.1.0"
edition = "2024"

[dependencies]
kube-leases = {{ path = {library:?} }}
# Another version of Kubernetes than the plugin's: the library leaves it to the program.
k8s-openapi = {{ version = "0.29", features = ["latest"] }}
kube = {{ version = "5", default-features = false, features = ["client", "rustls-tls", "ring"] }}
tokio = {{ version = "1", features = ["macros", "rt-multi-thread", "time"] }}

[profile.dev]
debug = "line-tables-only"

[workspace]
"#
    );
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::write(folder.join("src").join("main.rs"), OUTSIDE).unwrap();
    // The same versions: there is no network.
    fs::copy(workspace().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    build(&folder, &[]);
    let outside = built().0.join("outside").display().to_string();

    let [node] = nodes();
    let mut works = start(&outside, &[&node]);
    works.until("it works", SOON, |text| text.contains(&format!("working on {node}")));
    assert!(holder(&node).starts_with("outside#"), "{}", holder(&node));
    let mut late = start(&outside, &[&node]);
    assert_eq!(late.wait(), 4, "{}", late.stderr());
    assert!(late.stdout().contains("is held by 'outside#"), "{}", late.stdout());
    assert_eq!(works.wait(), 0, "{}", works.stderr());
    assert!(works.stdout().contains("worked: 42"), "{}", works.stdout());
    assert_eq!(holder(&node), "");
    let written = shared().kubectl(&[
        "get",
        "lease",
        "-n",
        NAMESPACE,
        &node,
        "--show-managed-fields",
        "-o",
        "jsonpath={.metadata.managedFields[*].manager}",
    ]);
    assert_eq!(written, "kube-leases", "{written}");
}
