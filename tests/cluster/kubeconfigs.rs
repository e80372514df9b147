//! Kubeconfigs and credentials of every kind, through the real kubectl and through us: the same comes of it,
//! or docs/kubeconfig.md says what differs and why.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::{
    connection::tunnel,
    harness::{ControlPlane, Shape, User, random},
    plugin::BINARY,
};

/// What comes of a configuration: the user that the server saw, and the namespace that was meant, or no answer.
type Outcome = Option<(String, String)>;

/// One row of the table.
struct Case {
    name: &'static str,
    /// Writes what is needed into a folder, and says how to run there.
    set_up: Box<dyn Fn(&Scene) -> Setup + Send + Sync>,
    /// As whom it works; `None` if it fails.
    works_as: Option<&'static str>,
    /// Where it fails with kubectl and works with us, on purpose: as whom.
    but_ours: Option<&'static str>,
}

#[derive(Default)]
struct Setup {
    /// `KUBECONFIG`; where it is empty, there is none.
    kubeconfig: String,
    flags: Vec<String>,
}

const ADMIN: &str = "admin";
const ROBOT: &str = "system:serviceaccount:default:robot";
const OTHER: &str = "system:serviceaccount:default:other";

/// A folder for one row, and what the rows have in common.
struct Scene<'a> {
    plane: &'a ControlPlane,
    folder: PathBuf,
    robot: &'a str,
    other: &'a str,
    proxy: &'a str,
}

impl Scene<'_> {
    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.folder.join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn pem(&self, name: &str) -> String {
        fs::read_to_string(self.plane.folder.join(name)).unwrap()
    }

    fn data(&self, name: &str) -> Value {
        BASE64_STANDARD.encode(self.pem(name)).into()
    }

    /// The administrator's kubeconfig.
    fn config(&self) -> Value {
        let text = fs::read_to_string(self.plane.kubeconfig(User::Admin, 0)).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn run_with(&self, config: &Value) -> Setup {
        Setup { kubeconfig: self.write("config", config.to_string()), ..Setup::default() }
    }

    fn user(&self, user: Value) -> Setup {
        let mut config = self.config();
        config["users"][0]["user"] = user;
        self.run_with(&config)
    }

    fn cluster(&self, change: impl FnOnce(&mut Value)) -> Setup {
        let mut config = self.config();
        change(&mut config["clusters"][0]["cluster"]);
        self.run_with(&config)
    }

    /// A plugin that prints a credential; `fields` are those of the kubeconfig's `exec`.
    fn exec(&self, status: &Value, fields: &Value) -> Value {
        let version = fields.get("apiVersion").cloned().unwrap_or("client.authentication.k8s.io/v1".into());
        let answer = json!({ "apiVersion": version, "kind": "ExecCredential", "status": status });
        let credential = self.write("credential", answer.to_string());
        let mut exec = json!({
            "apiVersion": version, "command": "cat", "args": [credential], "interactiveMode": "Never",
        });
        for (key, value) in fields.as_object().unwrap() {
            exec[key] = value.clone();
        }
        exec.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        json!({ "exec": exec })
    }

    fn exec_token(&self, fields: &Value) -> Setup {
        self.user(self.exec(&json!({ "token": self.robot }), fields))
    }
}

fn case(
    name: &'static str,
    works_as: Option<&'static str>,
    set_up: impl Fn(&Scene) -> Setup + Send + Sync + 'static,
) -> Case {
    Case { name, set_up: Box::new(set_up), works_as, but_ours: None }
}

impl Case {
    fn but_ours(self, works_as: &'static str) -> Self {
        Self { but_ours: Some(works_as), ..self }
    }
}

fn certificates() -> Vec<Case> {
    vec![
        case("client certificate in files", Some(ADMIN), |scene| scene.run_with(&scene.config())),
        case("client certificate in files, by relative paths", Some(ADMIN), |scene| {
            scene.write("a.crt", scene.pem("admin.crt"));
            scene.write("a.key", scene.pem("admin.key"));
            scene.user(json!({ "client-certificate": "a.crt", "client-key": "./a.key" }))
        }),
        case("client certificate as data", Some(ADMIN), |scene| {
            scene.user(json!({
                "client-certificate-data": scene.data("admin.crt"), "client-key-data": scene.data("admin.key"),
            }))
        }),
        case("client certificate as file and as data", None, |scene| {
            let mut config = scene.config();
            config["users"][0]["user"]["client-certificate-data"] = scene.data("admin.crt");
            scene.run_with(&config)
        }),
        case("client certificate that is not there", None, |scene| {
            scene.user(json!({ "client-certificate": "no.crt", "client-key": "no.key" }))
        }),
        case("client certificate without a key", None, |scene| {
            scene.user(json!({ "client-certificate-data": scene.data("admin.crt") }))
        }),
        case("client key without a certificate, and a token", Some(ROBOT), |scene| {
            scene.user(json!({ "client-key-data": scene.data("admin.key"), "token": scene.robot }))
        }),
        case("client certificate with another's key", None, |scene| {
            scene.user(json!({
                "client-certificate-data": scene.data("admin.crt"), "client-key-data": scene.data("reader.key"),
            }))
        }),
        case("client certificate that has expired", None, |scene| {
            let (certificate, key) =
                scene.plane.authority.issue_until(ADMIN, &["system:masters"], 1_000_000_000);
            scene.user(json!({
                "client-certificate": scene.write("old.crt", certificate), "client-key": scene.write("old.key", key),
            }))
        }),
        case("client certificate of X.509 version 1", Some(ADMIN), |scene| {
            let (certificate, key) = scene.plane.authority.issue_odd(ADMIN, true, None);
            scene.user(json!({
                "client-certificate": scene.write("v1.crt", certificate), "client-key": scene.write("v1.key", key),
            }))
        }),
        case("client key on the curve P-521", Some(ADMIN), |scene| {
            use p521::{SecretKey, pkcs8::EncodePublicKey as _};
            let secret = SecretKey::from_slice(&[1; 66]).unwrap();
            let public = secret.public_key().to_public_key_der().unwrap();
            let (certificate, _) = scene.plane.authority.issue_odd(ADMIN, false, Some(public.as_bytes()));
            let key = pem::encode(&pem::Pem::new("EC PRIVATE KEY", secret.to_sec1_der().unwrap().to_vec()));
            scene.user(json!({
                "client-certificate": scene.write("p.crt", certificate), "client-key": scene.write("p.key", key),
            }))
        }),
        case("base64 with line breaks", Some(ADMIN), |scene| {
            let lines = |name: &str| {
                let data = scene.data(name);
                let data = data.as_str().unwrap().as_bytes();
                data.chunks(64).map(|line| str::from_utf8(line).unwrap()).collect::<Vec<_>>().join("\n")
                    + "\n"
            };
            let mut config = scene.config();
            config["users"][0]["user"] = json!({ "client-certificate-data": lines("admin.crt"), "client-key-data": lines("admin.key") });
            let cluster = &mut config["clusters"][0]["cluster"];
            cluster["certificate-authority-data"] = lines("ca.crt").into();
            cluster.as_object_mut().unwrap().remove("certificate-authority");
            scene.run_with(&config)
        }),
        case("data that is no base64", None, |scene| {
            scene.user(json!({ "client-certificate-data": "%", "client-key-data": scene.data("admin.key") }))
        }),
    ]
}

fn tokens() -> Vec<Case> {
    vec![
        case("token", Some(ROBOT), |scene| scene.user(json!({ "token": scene.robot }))),
        case("token file, ending in a line break", Some(ROBOT), |scene| {
            scene.write("token", format!("{}\n", scene.robot));
            scene.user(json!({ "tokenFile": "token" }))
        }),
        case("token and token file", Some(OTHER), |scene| {
            scene.user(json!({ "token": scene.robot, "tokenFile": scene.write("token", scene.other) }))
        }),
        case("token and a token file that is not there", Some(ROBOT), |scene| {
            scene.user(json!({ "token": scene.robot, "tokenFile": "/no/such/token" }))
        }),
        case("token file that is not there", None, |scene| {
            scene.user(json!({ "tokenFile": "/no/such/token" }))
        }),
        case("token that the server does not know", None, |scene| scene.user(json!({ "token": "wrong" }))),
        case("token with a line break", None, |scene| scene.user(json!({ "token": "a\nb" }))),
        case("token and client certificate", Some(ADMIN), |scene| {
            let mut config = scene.config();
            config["users"][0]["user"]["token"] = scene.robot.into();
            scene.run_with(&config)
        }),
        case("user name and password", None, |scene| scene.user(json!({ "username": "a", "password": "b" }))),
        case("token and user name", None, |scene| {
            scene.user(json!({ "token": scene.robot, "username": "a", "password": "b" }))
        }),
        case("nothing to say who one is", None, |scene| scene.user(json!({}))),
        case("auth-provider that is no more", None, |scene| {
            scene.user(
                json!({ "auth-provider": { "name": "gcp", "config": { "access-token": scene.robot } } }),
            )
        }),
        case("auth-provider oidc with a valid id-token", Some(ROBOT), |scene| {
            scene.user(json!({ "auth-provider": { "name": "oidc", "config": {
                "idp-issuer-url": "https://localhost:1", "client-id": "x", "id-token": scene.robot,
            } } }))
        }),
        case("as", Some("jane"), |scene| {
            let mut config = scene.config();
            config["users"][0]["user"]["as"] = "jane".into();
            config["users"][0]["user"]["as-groups"] = json!(["system:masters"]);
            config["users"][0]["user"]["as-uid"] = "7".into();
            config["users"][0]["user"]["as-user-extra"] = json!({ "scopes": ["a", "b"] });
            scene.run_with(&config)
        }),
        case("as somebody without permission", None, |scene| {
            let mut config = scene.config();
            config["users"][0]["user"]["as"] = "jane".into();
            scene.run_with(&config)
        }),
        case("as-groups without as", None, |scene| {
            let mut config = scene.config();
            config["users"][0]["user"]["as-groups"] = json!(["system:masters"]);
            scene.run_with(&config)
        }),
    ]
}

fn plugins() -> Vec<Case> {
    vec![
        case("exec v1", Some(ROBOT), |scene| scene.exec_token(&json!({}))),
        case("exec v1beta1, without interactiveMode", Some(ROBOT), |scene| {
            let version = "client.authentication.k8s.io/v1beta1";
            scene.exec_token(&json!({ "apiVersion": version, "interactiveMode": null }))
        }),
        case("exec v1alpha1", None, |scene| {
            scene.exec_token(&json!({ "apiVersion": "client.authentication.k8s.io/v1alpha1" }))
        }),
        case("exec v1, without interactiveMode", None, |scene| {
            scene.exec_token(&json!({ "interactiveMode": null }))
        })
        .but_ours(ROBOT),
        case("exec without apiVersion", None, |scene| {
            let mut user = scene.exec(&json!({ "token": scene.robot }), &json!({}));
            user["exec"].as_object_mut().unwrap().remove("apiVersion");
            scene.user(user)
        }),
        case("exec that may be interactive", Some(ROBOT), |scene| {
            scene.exec_token(&json!({ "interactiveMode": "IfAvailable" }))
        }),
        case("exec that must be interactive, without a terminal", None, |scene| {
            scene.exec_token(&json!({ "interactiveMode": "Always" }))
        }),
        case("exec with arguments and environment", Some(ROBOT), |scene| {
            let credential = scene.folder.join("credential").display().to_string();
            scene.exec_token(&json!({
                "command": "sh", "args": ["-c", "test \"$A\" = \"b c\" && cat \"$1\"", "sh", credential],
                "env": [{ "name": "A", "value": "b c" }],
            }))
        }),
        case("exec that is told of the cluster", Some(ROBOT), |scene| {
            let credential = scene.folder.join("credential").display().to_string();
            let script = "for word in '\"server\":\"https://' certificate-authority-data; do
                case $KUBERNETES_EXEC_INFO in (*$word*) ;; (*) exit 1;; esac; done; cat \"$1\"";
            scene.exec_token(&json!({
                "command": "sh", "args": ["-c", script, "sh", credential], "provideClusterInfo": true,
            }))
        }),
        case("exec by a path relative to the kubeconfig", Some(ROBOT), |scene| {
            let cat =
                String::from_utf8(Command::new("sh").args(["-c", "command -v cat"]).output().unwrap().stdout);
            std::os::unix::fs::symlink(cat.unwrap().trim(), scene.folder.join("plugin")).unwrap();
            scene.exec_token(&json!({ "command": "./plugin" }))
        }),
        case("exec that fails", None, |scene| scene.exec_token(&json!({ "command": "false", "args": [] }))),
        case("exec that is not there", None, |scene| {
            scene.exec_token(&json!({ "command": "no-such-plugin" }))
        }),
        case("exec that prints something else", None, |scene| {
            scene.exec_token(&json!({ "command": "echo", "args": ["hello"] }))
        }),
        case("exec that answers in another version", None, |scene| {
            let answer = json!({ "apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential",
                "status": { "token": scene.robot } });
            let file = scene.write("beta", answer.to_string());
            scene.exec_token(&json!({ "args": [file] }))
        }),
        case("exec that gives a client certificate", Some(ADMIN), |scene| {
            let status = json!({
                "clientCertificateData": scene.pem("admin.crt"), "clientKeyData": scene.pem("admin.key"),
            });
            scene.user(scene.exec(&status, &json!({})))
        }),
        case("exec that gives a certificate without a key", None, |scene| {
            let status = json!({ "clientCertificateData": scene.pem("admin.crt"), "token": scene.robot });
            scene.user(scene.exec(&status, &json!({})))
        }),
        case("exec that gives what has expired", None, |scene| {
            let status = json!({ "token": "old", "expirationTimestamp": "2020-01-01T00:00:00Z" });
            scene.user(scene.exec(&status, &json!({})))
        }),
        case("exec beside a token", Some(OTHER), |scene| {
            let mut user = scene.exec(&json!({}), &json!({ "command": "false" }));
            user["token"] = scene.other.into();
            scene.user(user)
        }),
        case("exec beside a client certificate", Some(ADMIN), |scene| {
            let mut config = scene.config();
            let exec = scene.exec(&json!({}), &json!({ "command": "false" }));
            config["users"][0]["user"]["exec"] = exec["exec"].clone();
            scene.run_with(&config)
        }),
    ]
}

fn servers() -> Vec<Case> {
    vec![
        case("certificate authority as data", Some(ADMIN), |scene| {
            scene.cluster(|cluster| {
                *cluster = json!({ "server": cluster["server"], "certificate-authority-data": scene.data("ca.crt") });
            })
        }),
        case("certificate authority as file and as data", None, |scene| {
            scene.cluster(|cluster| cluster["certificate-authority-data"] = scene.data("ca.crt"))
        }),
        case("certificate authority that is not there", None, |scene| {
            scene.cluster(|cluster| cluster["certificate-authority"] = "no.crt".into())
        }),
        case("certificate authority of another cluster", None, |scene| {
            let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
            let file = scene.write("other.crt", other.cert.pem());
            scene.cluster(|cluster| cluster["certificate-authority"] = file.into())
        }),
        case("no certificate authority", None, |scene| {
            scene.cluster(|cluster| drop(cluster.as_object_mut().unwrap().remove("certificate-authority")))
        }),
        case("insecure-skip-tls-verify", Some(ADMIN), |scene| {
            scene.cluster(|cluster| {
                *cluster = json!({ "server": cluster["server"], "insecure-skip-tls-verify": true });
            })
        }),
        case("insecure-skip-tls-verify and a certificate authority", None, |scene| {
            scene.cluster(|cluster| cluster["insecure-skip-tls-verify"] = true.into())
        }),
        case("tls-server-name", Some(ADMIN), |scene| {
            scene.cluster(|cluster| cluster["tls-server-name"] = "localhost".into())
        }),
        case("tls-server-name that the certificate has not", None, |scene| {
            scene.cluster(|cluster| cluster["tls-server-name"] = "elsewhere".into())
        }),
        case("proxy-url", Some(ADMIN), |scene| {
            scene.cluster(|cluster| cluster["proxy-url"] = format!("http://{}", scene.proxy).into())
        }),
        case("proxy-url where nobody listens", None, |scene| {
            scene.cluster(|cluster| cluster["proxy-url"] = "http://127.0.0.1:9".into())
        }),
        case("server with a slash at its end", Some(ADMIN), |scene| {
            scene.cluster(|cluster| cluster["server"] = format!("{}/", scene.plane.url(0)).into())
        }),
        case("server with a path that is not there", None, |scene| {
            scene.cluster(|cluster| cluster["server"] = format!("{}/k8s/a", scene.plane.url(0)).into())
        }),
        case("server without a port", None, |scene| {
            scene.cluster(|cluster| cluster["server"] = "https://127.0.0.1".into())
        }),
        case("server by http", None, |scene| {
            scene.cluster(|cluster| cluster["server"] = scene.plane.url(0).replace("https", "http").into())
        }),
        case("server without a scheme", None, |scene| {
            scene.cluster(|cluster| cluster["server"] = scene.plane.url(0).replace("https://", "").into())
        })
        .but_ours(ADMIN),
        case("no server", None, |scene| scene.cluster(|cluster| *cluster = json!({}))),
    ]
}

fn files() -> Vec<Case> {
    let listed = |files: &[String]| Setup { kubeconfig: files.join(":"), ..Setup::default() };
    vec![
        case("several files, the first with an empty current-context", Some(ADMIN), move |scene| {
            let mut first = json!({ "apiVersion": "v1", "kind": "Config", "current-context": "" });
            first["users"] = json!([]);
            listed(&[scene.write("a", first.to_string()), scene.write("b", scene.config().to_string())])
        }),
        case("several files with a part each", Some(ADMIN), move |scene| {
            let config = scene.config();
            let part = |key: &str| scene.write(key, json!({ key: config[key] }).to_string());
            listed(&["current-context", "contexts", "clusters", "users"].map(part))
        }),
        case("a user that several files have", Some(ROBOT), move |scene| {
            let first = json!({ "users": [{ "name": "admin", "user": { "token": scene.robot } }] });
            listed(&[scene.write("a", first.to_string()), scene.write("b", scene.config().to_string())])
        }),
        case("a file of the list is not there", Some(ADMIN), move |scene| {
            listed(&["/no/such/file".to_owned(), scene.write("b", scene.config().to_string())])
        }),
        case("a file of the list is empty", Some(ADMIN), move |scene| {
            listed(&[scene.write("a", ""), scene.write("b", scene.config().to_string())])
        }),
        case("a file of the list cannot be parsed", None, move |scene| {
            listed(&[scene.write("a", scene.config().to_string()), scene.write("b", "users: [")])
        }),
        case("an empty file", None, move |scene| listed(&[scene.write("a", "")])),
        case("no file", None, |_| Setup::default()),
        case("--kubeconfig of a file that is not there", None, move |scene| Setup {
            flags: vec!["--kubeconfig=/no/such/file".to_owned()],
            ..listed(&[scene.write("a", scene.config().to_string())])
        }),
        case("unknown fields", Some(ADMIN), |scene| {
            let mut config = scene.config();
            config["unheard-of"] = json!([{ "a": 1 }]);
            config["users"][0]["user"]["unheard-of"] = true.into();
            scene.run_with(&config)
        }),
        case("a key twice", Some(OTHER), |scene| {
            let mut config = scene.config();
            config["users"][0]["user"] = json!({ "token": "TOKENS" });
            let twice = format!("{}\",\"token\":\"{}", scene.robot, scene.other);
            Setup {
                kubeconfig: scene.write("a", config.to_string().replace("TOKENS", &twice)),
                ..Setup::default()
            }
        }),
        case("a name twice in a list", None, |scene| {
            let mut config = scene.config();
            let again = config["users"][0].clone();
            config["users"].as_array_mut().unwrap().push(again);
            scene.run_with(&config)
        }),
        case("YAML with comments, anchors and CRLF", Some(ROBOT), |scene| {
            let text = format!(
                "# mine\r\napiVersion: v1\r\nkind: Config\r\ncurrent-context: a # now\r\nx: &c\r\n  cluster: c\r\n  user: u\r\n\
                 contexts:\r\n- name: a\r\n  context: *c\r\nclusters:\r\n- name: c\r\n  cluster:\r\n    server: {}\r\n\
                 \x20   certificate-authority: {}\r\nusers:\r\n- name: u\r\n  user:\r\n    token: {}\r\n",
                scene.plane.url(0),
                scene.plane.authority_file().display(),
                scene.robot
            );
            Setup { kubeconfig: scene.write("a", text), ..Setup::default() }
        }),
        case("a byte order mark", Some(ADMIN), |scene| Setup {
            kubeconfig: scene.write("a", format!("\u{feff}{}", scene.config())),
            ..Setup::default()
        }),
        case("UTF-16", Some(ADMIN), |scene| {
            let text = format!("\u{feff}{}", scene.config());
            let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            Setup { kubeconfig: scene.write("a", bytes), ..Setup::default() }
        }),
        case("a second document", Some(ADMIN), |scene| Setup {
            kubeconfig: scene
                .write("a", format!("{}\n---\ncurrent-context: other\nusers: []\n", scene.config())),
            ..Setup::default()
        }),
        case("something else than a kubeconfig", None, |scene| {
            let mut config = scene.config();
            config["kind"] = "Pod".into();
            scene.run_with(&config)
        }),
        case("another apiVersion", None, |scene| {
            let mut config = scene.config();
            config["apiVersion"] = "v2".into();
            scene.run_with(&config)
        }),
        case("neither kind nor apiVersion", Some(ADMIN), |scene| {
            let mut config = scene.config();
            config.as_object_mut().unwrap().retain(|key, _| key != "kind" && key != "apiVersion");
            scene.run_with(&config)
        }),
    ]
}

fn contexts() -> Vec<Case> {
    fn with(scene: &Scene, change: impl FnOnce(&mut Value), flags: &[&str]) -> Setup {
        let mut config = scene.config();
        change(&mut config);
        Setup { flags: flags.iter().map(|flag| (*flag).to_owned()).collect(), ..scene.run_with(&config) }
    }
    fn push(config: &mut Value, list: &str, entry: Value) {
        config[list].as_array_mut().unwrap().push(entry);
    }
    vec![
        case("no current-context", None, |scene| {
            with(scene, |config| drop(config.as_object_mut().unwrap().remove("current-context")), &[])
        }),
        case("an empty current-context", None, |scene| {
            with(scene, |config| config["current-context"] = "".into(), &[])
        }),
        case("an unknown current-context", None, |scene| {
            with(scene, |config| config["current-context"] = "other".into(), &[])
        }),
        case("--context instead of an unknown one", Some(ADMIN), |scene| {
            with(scene, |config| config["current-context"] = "other".into(), &["--context=sandbox"])
        }),
        case("--context of an unknown one", None, |scene| with(scene, |_| {}, &["--context=other"])),
        case("--cluster and --user without a context", Some(ADMIN), |scene| {
            let flags = ["--cluster=sandbox", "--user=admin"];
            with(scene, |config| config["current-context"] = "".into(), &flags)
        }),
        case("--user", Some(ROBOT), |scene| {
            let robot = json!({ "name": "robot", "user": { "token": scene.robot } });
            with(scene, |config| push(config, "users", robot), &["--user=robot"])
        }),
        case("--user of an unknown one", None, |scene| with(scene, |_| {}, &["--user=other"])),
        case("--server", Some(ADMIN), |scene| {
            let server = format!("--server={}", scene.plane.url(0));
            with(
                scene,
                |config| config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9".into(),
                &[&server],
            )
        }),
        case("--server in place of one with a tls-server-name", Some(ADMIN), |scene| {
            let server = format!("--server={}", scene.plane.url(0));
            with(
                scene,
                |config| config["clusters"][0]["cluster"]["tls-server-name"] = "elsewhere".into(),
                &[&server],
            )
        }),
        case("--certificate-authority in place of insecure-skip-tls-verify", Some(ADMIN), |scene| {
            let flag = format!("--certificate-authority={}", scene.plane.authority_file().display());
            with(
                scene,
                |config| {
                    let cluster = &mut config["clusters"][0]["cluster"];
                    *cluster = json!({ "server": cluster["server"], "insecure-skip-tls-verify": true });
                },
                &[&flag],
            )
        }),
        case("--insecure-skip-tls-verify in place of a certificate authority", Some(ADMIN), |scene| {
            with(scene, |_| {}, &["--insecure-skip-tls-verify"])
        }),
        case("--token instead of another", Some(OTHER), |scene| {
            let flag = format!("--token={}", scene.other);
            with(scene, |config| config["users"][0]["user"] = json!({ "token": scene.robot }), &[&flag])
        }),
        case("--as-group beside as", Some("jane"), |scene| {
            with(
                scene,
                |config| config["users"][0]["user"]["as"] = "jane".into(),
                &["--as-group=system:masters"],
            )
        }),
        case("a context without a cluster, unused", Some(ADMIN), |scene| {
            let other = json!({ "name": "other", "context": { "user": "admin" } });
            with(scene, |config| push(config, "contexts", other), &[])
        }),
        case("a context without a cluster, used", None, |scene| {
            with(scene, |config| config["contexts"][0]["context"] = json!({ "user": "admin" }), &[])
        }),
        case("a context without a user", None, |scene| {
            with(scene, |config| config["contexts"][0]["context"] = json!({ "cluster": "sandbox" }), &[])
        }),
        case("a context with an unknown user", None, |scene| {
            with(scene, |config| config["contexts"][0]["context"]["user"] = "other".into(), &[])
        }),
        case("a context with an unknown cluster", None, |scene| {
            with(scene, |config| config["contexts"][0]["context"]["cluster"] = "other".into(), &[])
        }),
        case("a context with a namespace", Some("admin in kube-public"), |scene| {
            with(scene, |config| config["contexts"][0]["context"]["namespace"] = "kube-public".into(), &[])
        }),
        case("a context with an empty namespace", Some("admin in default"), |scene| {
            with(scene, |config| config["contexts"][0]["context"]["namespace"] = "".into(), &[])
        }),
        case("-n beside a context with a namespace", Some("admin in kube-system"), |scene| {
            let namespace =
                |config: &mut Value| config["contexts"][0]["context"]["namespace"] = "kube-public".into();
            with(scene, namespace, &["-n=kube-system"])
        }),
    ]
}

/// Who asked for the lease of this name, and in which namespace, by the audit log from a byte on.
fn asked(plane: &ControlPlane, from: u64, lease: &str) -> Outcome {
    let log = fs::read(plane.folder.join("cp-1").join("audit.log")).unwrap();
    String::from_utf8_lossy(&log[usize::try_from(from).unwrap()..])
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        // That there is none is an answer, too.
        .filter(|event| [200, 404].map(Value::from).contains(&event["responseStatus"]["code"]))
        .filter(|event| event["objectRef"]["name"] == lease)
        .map(|event| {
            let other = &event["impersonatedUser"];
            let user = if other.is_null() { &event["user"] } else { other };
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            (text(&user["username"]), text(&event["objectRef"]["namespace"]))
        })
        .next()
}

impl Case {
    /// What is wrong, if anything.
    fn try_out(&self, scene: &Scene, documented: &str) -> Option<String> {
        let setup = (self.set_up)(scene);
        let lease = format!("looked-at-{}", random());
        let run = |program: &Path, args: &[&str], last: &[&str]| {
            let from = fs::metadata(scene.plane.folder.join("cp-1").join("audit.log")).unwrap().len();
            let mut command = Command::new(program);
            command.args(args).args(&setup.flags).arg("--request-timeout=5s").args(last).env_clear();
            command.env("PATH", std::env::var("PATH").unwrap()).env("HOME", &scene.folder);
            if !setup.kubeconfig.is_empty() {
                command.env("KUBECONFIG", &setup.kubeconfig);
            }
            let output = command.stdin(Stdio::null()).output().unwrap();
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            if !output.status.success() {
                return (None, told);
            }
            // The log is written when the answer is out.
            let deadline = Instant::now() + Duration::from_secs(5);
            while asked(scene.plane, from, &lease).is_none() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(5));
            }
            (asked(scene.plane, from, &lease), told)
        };
        let kubectl = scene.plane.assets.join("kubectl");
        let (kubectl, told_by_kubectl) = run(&kubectl, &["get", "lease", &lease, "--ignore-not-found"], &[]);
        let (ours, told) = run(Path::new(BINARY), &["hold", &lease], &["--", "true"]);
        let expected = |works_as: Option<&str>, outcome: &Outcome| match (works_as, outcome) {
            (None, None) => true,
            (Some(expected), Some((user, namespace))) => {
                expected == user || expected == format!("{user} in {namespace}")
            }
            _ => false,
        };
        let sound = match self.but_ours {
            None => expected(self.works_as, &kubectl) && kubectl == ours,
            Some(but_ours) => {
                expected(self.works_as, &kubectl)
                    && expected(Some(but_ours), &ours)
                    && documented.contains(self.name)
            }
        };
        (!sound).then(|| {
            format!(
                "{}: expected {:?} {:?}\n  kubectl: {kubectl:?} {told_by_kubectl}  ours: {ours:?} {told}",
                self.name, self.works_as, self.but_ours
            )
        })
    }
}

#[test]
fn the_same_comes_of_a_kubeconfig_as_with_kubectl() {
    let plane = ControlPlane::start(&Shape::default());
    let folders = plane.folder.join("kubeconfigs");
    let token = |name: &str| {
        plane.kubectl(&["create", "serviceaccount", name]);
        let subject = format!("--serviceaccount=default:{name}");
        plane.kubectl(&["create", "clusterrolebinding", name, "--clusterrole=cluster-admin", &subject]);
        plane.kubectl(&["create", "token", name]).trim().to_owned()
    };
    let (robot, other) = (token("robot"), token("other"));
    let (proxy, _) = tunnel();
    let documented = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/kubeconfig.md")).unwrap();
    let cases = [certificates(), tokens(), plugins(), servers(), files(), contexts()];
    let cases: Vec<_> = cases.into_iter().flatten().collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    // Most of the time is kubectl's.
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some((n, case)) =
                    Some(next.fetch_add(1, Ordering::SeqCst)).and_then(|n| cases.get(n).map(|case| (n, case)))
                {
                    let folder = folders.join(n.to_string());
                    fs::create_dir_all(&folder).unwrap();
                    let scene = Scene { plane: &plane, folder, robot: &robot, other: &other, proxy: &proxy };
                    let found = case.try_out(&scene, &documented);
                    wrong.lock().unwrap().extend(found);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
