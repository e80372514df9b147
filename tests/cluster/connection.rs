//! Ways to the server and ways to be somebody, on a real one.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    harness::{User, random},
    plugin::Plugin,
    shared,
};

/// The administrator's kubeconfig, changed.
fn changed(change: impl FnOnce(&mut Value)) -> PathBuf {
    let text = fs::read_to_string(shared().kubeconfig(User::Admin, 0)).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    change(&mut config);
    let path = shared().folder.join(format!("changed-{}.kubeconfig", random()));
    fs::write(&path, config.to_string()).unwrap();
    path
}

#[test]
fn a_server_that_refuses_connections_is_named_with_the_reason() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let kubeconfig = changed(|config| {
        config["clusters"][0]["cluster"]["server"] = format!("https://127.0.0.1:{port}").into();
    });
    let outcome = Plugin::new(kubeconfig).run(&["apiservers"]).expect(1);
    let outcome = outcome.says(&format!("error: cannot reach https://127.0.0.1:{port}: Connection refused"));
    outcome.says("hint: ");
}

/// A user who may not take the name of another, and one whose proxy is gone.
#[test]
fn what_the_connection_lacks_is_named() {
    let reader = Plugin::new(shared().kubeconfig(User::Nobody, 0));
    let refused = reader.run(&["apiservers", "--as", "jane"]).expect(7).says("cannot impersonate");
    assert!(refused.stderr.contains("hint: leave out --as"), "{refused:?}");
    assert!(!refused.stderr.contains("kubectl create"), "{refused:?}");

    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let proxy = format!("http://me:secret@127.0.0.1:{port}");
    let admin = Plugin::new(shared().kubeconfig(User::Admin, 0));
    let address = shared().url(0);
    let outcome = admin.run(&["apiservers", "--proxy-url", &proxy]).expect(1);
    let said = format!("error: cannot reach {address} (through the proxy http://127.0.0.1:{port}): ");
    assert!(outcome.stderr.contains(&said) && !outcome.stderr.contains("secret"), "{outcome:?}");
}

#[test]
fn a_server_that_never_answers_is_given_up_after_the_request_timeout() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://{}", silent.local_addr().unwrap());
    let admin = Plugin::new(shared().kubeconfig(User::Admin, 0));
    for args in [&["apiservers"][..], &["apiservers", "-w"]] {
        let args = [args, &["--server", &address, "--request-timeout", "1s"]].concat();
        let outcome = admin.run(&args).expect(124);
        assert!(outcome.took < Duration::from_secs(5), "{outcome:?}");
        outcome.says(&format!("error: {address} did not answer within 1s")).says("hint: --request-timeout");
    }
}

#[test]
fn a_certificate_of_another_authority_is_not_trusted() {
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let file = shared().folder.join(format!("other-{}.crt", random()));
    fs::write(&file, other.cert.pem()).unwrap();
    let admin = Plugin::new(shared().kubeconfig(User::Admin, 0));
    let outcome = admin.run(&["apiservers", "--certificate-authority", file.to_str().unwrap()]).expect(1);
    outcome.says("invalid peer certificate").says("hint: the server's certificate is not signed by");
    admin.run(&["apiservers", "--insecure-skip-tls-verify"]).expect(0);
    admin.run(&["apiservers", "--tls-server-name", "elsewhere"]).expect(1).says("not valid for name");
    admin.run(&["apiservers", "--tls-server-name", "localhost"]).expect(0);
}

#[test]
fn every_flag_that_says_who_and_where_works_without_a_kubeconfig() {
    let plane = shared();
    let file = |name: &str| plane.folder.join(name).display().to_string();
    Plugin::new("/dev/null")
        .run(&[
            "apiservers",
            "--server",
            &plane.url(0),
            "--certificate-authority",
            &file("ca.crt"),
            "--client-certificate",
            &file("admin.crt"),
            "--client-key",
            &file("admin.key"),
        ])
        .expect(0);
}

#[test]
fn without_credentials_or_with_wrong_ones_the_code_is_7() {
    let plane = shared();
    let authority = plane.authority_file().display().to_string();
    let anonymous = ["apiservers", "--server", &plane.url(0), "--certificate-authority", &authority];
    let nobody = Plugin::new("/dev/null").run(&anonymous).expect(7);
    nobody.says("system:anonymous").says("hint: no credentials were sent");
    let wrong = [&anonymous[..], &["--token", "wrong"]].concat();
    Plugin::new("/dev/null").run(&wrong).expect(7).says("did not accept the credentials: Unauthorized");
}

#[test]
fn acting_as_another_is_being_that_other() {
    let admin = Plugin::new(shared().kubeconfig(User::Admin, 0));
    admin.run(&["apiservers", "--as", "somebody"]).expect(7).says("User \"somebody\" cannot list");
    admin.run(&["apiservers", "--as", "somebody", "--as-group", "system:masters"]).expect(0);
    admin.run(&["apiservers", "--as-group", "system:masters"]).expect(2).says("need --as");
}

#[test]
fn an_exec_plugin_is_run_once() {
    let plane = shared();
    let id = random();
    let count = plane.folder.join(format!("runs-{id}"));
    let plugin = plane.folder.join(format!("plugin-{id}"));
    // It hands out the administrator's certificate, and proves what it was told.
    let read = |name: &str| fs::read_to_string(plane.folder.join(name)).unwrap();
    let credential = plane.folder.join(format!("credential-{id}"));
    let status = json!({ "clientCertificateData": read("admin.crt"), "clientKeyData": read("admin.key") });
    let answer = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status,
    });
    fs::write(&credential, answer.to_string()).unwrap();
    let script = format!(
        "echo \"$KUBERNETES_EXEC_INFO $GREETING $1\" >>{}\nexec cat {}\n",
        count.display(),
        credential.display(),
    );
    fs::write(&plugin, script).unwrap();
    let kubeconfig = changed(|config| {
        config["users"][0]["user"] = json!({ "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            // Not the script itself: a file that a child of this process has open for writing cannot be
            // executed (ETXTBSY).
            "command": "sh",
            "args": [plugin, "an argument"],
            "env": [{ "name": "GREETING", "value": "hello" }],
            "interactiveMode": "IfAvailable",
            "provideClusterInfo": true,
        } });
    });
    Plugin::new(kubeconfig).run(&["apiservers"]).expect(0);
    let runs = fs::read_to_string(&count).unwrap();
    assert_eq!(runs.lines().count(), 1, "{runs}");
    assert!(runs.trim_end().ends_with("hello an argument"), "{runs}");
    let (info, _) = runs.split_once(" hello").unwrap();
    let info: Value = serde_json::from_str(info).unwrap();
    assert_eq!(info["spec"]["interactive"], false);
    assert_eq!(info["spec"]["cluster"]["server"], plane.url(0));
}

#[test]
fn an_exec_plugin_that_fails_says_so_and_how_to_get_it() {
    let failing =
        |exec: Value| Plugin::new(changed(|config| config["users"][0]["user"] = json!({ "exec": exec })));
    let version = "client.authentication.k8s.io/v1";
    failing(json!({ "apiVersion": version, "command": "no-such-plugin", "installHint": "brew install no-such-plugin" }))
        .run(&["apiservers"])
        .expect(7)
        .says("error: the credential plugin 'no-such-plugin' failed: No such file")
        .says("hint: brew install no-such-plugin");
    // One that is there is not to be installed.
    let failed =
        failing(json!({ "apiVersion": version, "command": "false", "installHint": "brew install it" }))
            .run(&["apiservers"])
            .expect(7)
            .says("exit status: 1")
            .says("hint: run it by itself");
    assert!(!failed.stderr.contains("brew"), "{failed:?}");
    failing(json!({ "apiVersion": version, "command": "echo", "args": ["secret-token"] }))
        .run(&["apiservers"])
        .expect(7)
        .says("its output is not an ExecCredential");
    failing(json!({ "apiVersion": version, "command": "true", "interactiveMode": "Always" }))
        .run(&["apiservers"])
        .expect(7)
        .says("standard input is not a terminal");
}

/// A proxy that only tunnels, and counts what it tunnels.
pub fn tunnel() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        for mut client in listener.incoming().map(Result::unwrap) {
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).is_ok_and(|count| count == 1) {
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).unwrap();
            let target = head.strip_prefix("CONNECT ").unwrap().split(' ').next().unwrap().to_owned();
            let mut server = TcpStream::connect(target).unwrap();
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut from, &mut to));
            thread::spawn(move || std::io::copy(&mut server, &mut client));
        }
    });
    (address, count)
}

#[test]
fn the_kubeconfigs_proxy_is_used_and_the_environments_not_for_this_machine() {
    let (address, count) = tunnel();
    let through =
        changed(|config| config["clusters"][0]["cluster"]["proxy-url"] = format!("http://{address}").into());
    Plugin::new(through).env("NO_PROXY", "*").run(&["apiservers"]).expect(0);
    assert_eq!(count.load(Ordering::SeqCst), 1);

    let admin = Plugin::new(shared().kubeconfig(User::Admin, 0));
    admin.run(&["apiservers", "--proxy-url", &format!("http://{address}")]).expect(0);
    assert_eq!(count.load(Ordering::SeqCst), 2);

    admin
        .env("HTTPS_PROXY", format!("http://{address}"))
        .env("NO_PROXY", ".not-a-matcher,*.either,10.0.0.0/8")
        .run(&["apiservers"])
        .expect(0);
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[test]
fn a_kubeconfig_that_is_listed_but_not_there_is_passed_over() {
    let plane = shared();
    let listed = format!("no-such-folder/config:{}", plane.kubeconfig(User::Admin, 0).display());
    Plugin::new(listed).run(&["apiservers"]).expect(0);
}

/// A pod sees its service account in a fixed place, which here is a mount of the plugin's own: nothing
/// is written to this machine's.
#[test]
#[allow(clippy::print_stderr)]
fn in_a_pod_the_service_account_is_used_unless_a_cluster_is_named() {
    const SCRIPT: &str = r#"
        mount -t tmpfs none /run && cd /run && mkdir -p secrets/kubernetes.io/serviceaccount &&
        cp "$1"/* secrets/kubernetes.io/serviceaccount && shift && exec "$@"
    "#;
    let isolated = |flags: &[&str], args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(flags).args(["sh", "-c", SCRIPT, "sh"]).args(args).env_clear();
        command.env("PATH", std::env::var("PATH").unwrap());
        command
    };
    let plane = shared();
    let account = plane.folder.join(format!("account-{}", random()));
    fs::create_dir(&account).unwrap();
    plane.kubectl(&["create", "serviceaccount", "in-a-pod", "-n", "kube-system"]);
    let role = "--role=kubectl-lease-apiservers";
    let subject = "--serviceaccount=kube-system:in-a-pod";
    plane.kubectl(&["create", "rolebinding", "in-a-pod", "-n", "kube-system", role, subject]);
    // With the line break at its end that a real one does not have, but a copied one may.
    fs::write(account.join("token"), plane.kubectl(&["create", "token", "in-a-pod", "-n", "kube-system"]))
        .unwrap();
    fs::write(account.join("namespace"), "kube-system").unwrap();
    fs::copy(plane.authority_file(), account.join("ca.crt")).unwrap();
    let account = account.display().to_string();
    let ways = [&["--mount"][..], &["--user", "--map-root-user", "--mount"]];
    let works = |way: &&&[&str]| {
        isolated(way, &[&account, "true"]).output().is_ok_and(|probe| probe.status.success())
    };
    let Some(way) = ways.iter().find(works) else {
        eprintln!("This machine gives no mounts of one's own (unshare --mount): not tested.");
        return;
    };

    let port = plane.url(0).rsplit(':').next().unwrap().to_owned();
    let kubectl = plane.assets.join("kubectl").display().to_string();
    let run_with = |kubeconfig: &str, program: &str, args: &[&str]| {
        let mut command = isolated(way, &[&[account.as_str(), program], args].concat());
        command.env("KUBERNETES_SERVICE_HOST", "127.0.0.1").env("KUBERNETES_SERVICE_PORT", &port);
        command.env("KUBECONFIG", kubeconfig);
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr),
        )
    };
    let run = |args: &[&str]| run_with("", env!("CARGO_BIN_EXE_kubectl-lease"), args);
    // In which nothing is chosen is as good as none, for kubectl too.
    let mut unchosen: Value =
        serde_json::from_str(&fs::read_to_string(plane.kubeconfig(User::Nobody, 0)).unwrap()).unwrap();
    unchosen["current-context"] = "".into();
    for (n, text) in
        [String::new(), json!({ "kind": "Config" }).to_string(), unchosen.to_string()].iter().enumerate()
    {
        let file = plane.folder.join(format!("unchosen-{n}-{}", random()));
        fs::write(&file, text).unwrap();
        let file = file.display().to_string();
        let (code, said) =
            run_with(&file, env!("CARGO_BIN_EXE_kubectl-lease"), &["apiservers", "-l", crate::REAL]);
        assert_eq!(code, Some(0), "{text}: {said}");
        let (code, said) = run_with(&file, &kubectl, &["get", "leases", "-n", "kube-system", "-o", "name"]);
        assert_eq!(code, Some(0), "{text}: {said}");
    }
    let (code, said) = run(&["apiservers", "-l", crate::REAL]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("cp-1   alive"), "{said}");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (code, said) = run(&["apiservers", "--server", &format!("https://{closed}")]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&format!("cannot reach https://{closed}")), "{said}");
    for flag in ["--context", "--cluster", "--user", "--certificate-authority", "--tls-server-name"] {
        let (code, said) = run(&["apiservers", flag, "other"]);
        assert_eq!(code, Some(1), "{flag}: {said}");
        assert!(said.contains("no cluster is configured") || said.contains("'other'"), "{flag}: {said}");
    }
}
