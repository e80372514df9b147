//! Tokens that do not stay the same: from exec credential plugins (`users[].user.exec` in a
//! kubeconfig) and from files (`tokenFile`, and the service account of a pod).
//!
//! kube would run a plugin three times for each client. Here it runs once before the connection is
//! made, and again only when its token has expired or the server no longer accepts it. And kube would
//! send a file's token with the line break that most files end in.

use std::{
    fs,
    io::{self, IsTerminal as _, Read as _},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderValue, header};
use jiff::{SignedDuration, Timestamp};
use kube::config::{ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;

use crate::error::{Error, Result, causes};

/// A token is replaced this long before it expires.
const MARGIN: SignedDuration = SignedDuration::from_secs(10);
/// A token file is read again after this long, less the margin.
const REREAD: SignedDuration = SignedDuration::from_secs(60);

/// How long a plugin may take that is run without a terminal: nobody would see that it hangs.
const LONGEST: Duration = Duration::from_secs(60);

/// How a plugin is run.
#[derive(Clone, Copy)]
enum Manner {
    /// It may ask the user something.
    Openly,
    /// It has no terminal: that is a command's.
    Detached,
    /// It can ask and say nothing, and is ended when the time is over.
    Unseen(Duration),
}

/// What a plugin prints.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(default)]
    api_version: String,
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    #[serde(deserialize_with = "crate::domain::time::read")]
    expiration_timestamp: Option<Timestamp>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

struct Token {
    header: HeaderValue,
    expires: Option<Timestamp>,
}

enum Origin {
    Exec(Box<ExecConfig>),
    /// As the last, but it was run for somebody who did not ask for it, and is not run again.
    ExecOnce,
    File(PathBuf),
}

/// A token, kept fresh.
pub(super) struct TokenSource {
    origin: Origin,
    token: Mutex<Token>,
    detached: AtomicBool,
}

impl TokenSource {
    /// Reads the token file or runs the plugin that `config` names, if it does, and takes their place
    /// in `config`: a client certificate goes into it, a token is returned. With a `limit` the plugin
    /// is run unseen: it can ask and say nothing, and is ended when the time is over.
    pub(super) async fn take_from(
        config: &mut kube::Config,
        limit: Option<Duration>,
    ) -> Result<Option<Self>> {
        let auth = &mut config.auth_info;
        let exec = auth.exec.take();
        let file = auth.token_file.take().filter(|file| !file.is_empty());
        // As in client-go: the file wins over a token beside it, and a plugin is asked only where
        // the kubeconfig has nothing else.
        if auth.username.is_some() {
            return Ok(None);
        }
        if let Some(file) = file {
            auth.token = None;
            let path = PathBuf::from(file);
            return Ok(Some(Self::new(Origin::File(path.clone()), read(&path)?)));
        }
        let Some(exec) = exec.filter(|_| auth.token.is_none()) else {
            return Ok(None);
        };
        let status = run(exec.clone(), limit.map_or(Manner::Openly, Manner::Unseen)).await?;
        if let (Some(certificate), Some(key)) = (&status.client_certificate_data, &status.client_key_data) {
            auth.client_certificate_data = Some(BASE64_STANDARD.encode(certificate));
            auth.client_key_data = Some(BASE64_STANDARD.encode(key).into());
        }
        let token = token(&exec, &status)?;
        if token.is_none() && auth.client_key_data.is_none() {
            return Err(failure(&exec, "it printed neither a token nor a client certificate with its key"));
        }
        let origin = if limit.is_some() { Origin::ExecOnce } else { Origin::Exec(Box::new(exec)) };
        Ok(token.map(|token| Self::new(origin, token)))
    }

    fn new(origin: Origin, token: Token) -> Self {
        Self { origin, token: Mutex::new(token), detached: AtomicBool::new(false) }
    }

    pub(super) fn share_terminal(&self, may: bool) {
        self.detached.store(!may, Ordering::SeqCst);
    }

    /// Puts the token into a request.
    pub(super) async fn authorise(&self, headers: &mut HeaderMap) -> Result<()> {
        let mut token = self.token.lock().await;
        if token.expires.is_some_and(|expires| Timestamp::now() + MARGIN >= expires)
            && let Some(fresh) = self.fresh().await?
        {
            *token = fresh;
        }
        headers.insert(header::AUTHORIZATION, token.header.clone());
        Ok(())
    }

    /// After a 401 to a request that carried `used`: whether there is another token to offer. Of several
    /// requests that were refused at once, the first has got it for all.
    pub(super) async fn renew(&self, used: Option<&HeaderValue>) -> Result<bool> {
        let mut token = self.token.lock().await;
        if used.is_some_and(|used| *used != token.header) {
            return Ok(true);
        }
        let Some(fresh) = self.fresh().await? else { return Ok(false) };
        let differs = fresh.header != token.header;
        *token = fresh;
        Ok(differs)
    }

    async fn fresh(&self) -> Result<Option<Token>> {
        match &self.origin {
            Origin::File(path) => read(path).map(Some),
            Origin::Exec(exec) => {
                let detached = self.detached.load(Ordering::SeqCst);
                let manner = if detached { Manner::Detached } else { Manner::Openly };
                let status = run(ExecConfig::clone(exec), manner).await?;
                let token = token(exec, &status)?;
                token.map(Some).ok_or_else(|| failure(exec, "it printed no token this time"))
            }
            Origin::ExecOnce => Ok(None),
        }
    }
}

/// The token in a file, to be read again soon: whoever rotates it tells nobody.
fn read(path: &Path) -> Result<Token> {
    let bad = |why: &str| Error::Credential {
        message: format!("cannot use the token file {}: {why}", path.display()),
        hint: None,
    };
    let text = fs::read_to_string(path).map_err(|error| bad(&error.to_string()))?;
    let text = text.trim();
    if text.is_empty() {
        return Err(bad("it is empty"));
    }
    let header = bearer(text).ok_or_else(|| bad("it has characters that no header may have"))?;
    Ok(Token { header, expires: Some(Timestamp::now() + REREAD) })
}

fn bearer(token: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
    header.set_sensitive(true);
    Some(header)
}

fn token(exec: &ExecConfig, status: &Status) -> Result<Option<Token>> {
    let Some(token) = &status.token else { return Ok(None) };
    let header =
        bearer(token).ok_or_else(|| failure(exec, "its token has characters that no header may have"))?;
    Ok(Some(Token { header, expires: status.expiration_timestamp }))
}

/// Runs the plugin on a thread of its own: it may ask the user something and take its time.
async fn run(exec: ExecConfig, manner: Manner) -> Result<Status> {
    tokio::task::spawn_blocking(move || run_blocking(&exec, manner))
        .await
        .unwrap_or_else(|error| Err(Error::Credential { message: error.to_string(), hint: None }))
}

fn run_blocking(exec: &ExecConfig, manner: Manner) -> Result<Status> {
    let Some(program) = &exec.command else {
        return Err(failure(exec, "the kubeconfig names no command for it"));
    };
    let terminal = io::stdin().is_terminal() && matches!(manner, Manner::Openly);
    let interactive = match exec.interactive_mode {
        Some(ExecInteractiveMode::Never) => false,
        Some(ExecInteractiveMode::Always) if !terminal => {
            let why = match manner {
                Manner::Detached => "it must ask something, and the terminal is the command's",
                _ => "it must ask something, and standard input is not a terminal",
            };
            return Err(failure(exec, why));
        }
        _ => terminal,
    };
    let version = exec.api_version.as_deref().unwrap_or("client.authentication.k8s.io/v1");
    let mut spec = json!({ "interactive": interactive });
    if exec.provide_cluster_info {
        spec["cluster"] = json!(exec.cluster);
    }
    let info = json!({ "apiVersion": version, "kind": "ExecCredential", "spec": spec });

    let mut command = match manner {
        #[cfg(unix)]
        Manner::Detached => {
            super::detached::command(program).map_err(|error| failure(exec, &error.to_string()))?
        }
        _ => Command::new(program),
    };
    command
        .args(exec.args.iter().flatten())
        .env("KUBERNETES_EXEC_INFO", info.to_string())
        .stdin(if interactive { Stdio::inherit() } else { Stdio::null() })
        .stderr(if matches!(manner, Manner::Unseen(_)) { Stdio::null() } else { Stdio::inherit() });
    for variable in exec.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            command.env(name, value);
        }
    }
    let output = match manner {
        Manner::Openly => command.output().map(|output| (output.status, output.stdout)),
        Manner::Detached => output_within(&mut command, LONGEST),
        Manner::Unseen(limit) => {
            #[cfg(unix)]
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
            output_within(&mut command, limit)
        }
    };
    let (status, stdout) = output.map_err(|error| failure(exec, &error.to_string()))?;
    if !status.success() {
        return Err(failure(exec, &format!("it ended with {status}")));
    }
    // The plugin's output may hold a token: no error here quotes it.
    let answer: Answer = serde_saphyr::from_slice(&stdout)
        .map_err(|_| failure(exec, "its output is not an ExecCredential"))?;
    if answer.api_version != version {
        return Err(failure(
            exec,
            &format!("it answered with version '{}' instead of {version}", answer.api_version),
        ));
    }
    answer.status.ok_or_else(|| failure(exec, "its output has no status"))
}

/// What a command prints, which is little, if it ends in time. Otherwise it is ended, with the process
/// group that it leads.
fn output_within(command: &mut Command, limit: Duration) -> io::Result<(ExitStatus, Vec<u8>)> {
    const PAUSE: Duration = Duration::from_millis(5);
    let began = Instant::now();
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    while began.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            let mut printed = Vec::new();
            if let Some(mut stdout) = child.stdout.take() {
                stdout.read_to_end(&mut printed)?;
            }
            return Ok((status, printed));
        }
        thread::sleep(PAUSE);
    }
    #[cfg(unix)]
    if let Ok(group) = i32::try_from(child.id()) {
        use nix::{sys::signal, unistd::Pid};
        let _ = signal::killpg(Pid::from_raw(group), signal::Signal::SIGKILL);
    }
    child.kill()?;
    child.wait()?;
    Err(io::ErrorKind::TimedOut.into())
}

fn failure(exec: &ExecConfig, why: &str) -> Error {
    let program = exec.command.as_deref().unwrap_or("<none>");
    Error::Credential {
        message: format!("the credential plugin '{program}' failed: {why}"),
        hint: exec
            .install_hint
            .clone()
            .or_else(|| Some("try 'kubectl auth whoami': it runs the same plugin".to_owned())),
    }
}

/// The kubeconfig's cluster, as a plugin that wants to know it is told.
pub(super) fn tell_cluster(exec: &mut ExecConfig, cluster: &kube::config::Cluster) -> Result<()> {
    if exec.provide_cluster_info {
        let told = cluster.try_into().map_err(|error: kube::config::KubeconfigError| Error::Kubeconfig {
            message: causes(&error),
            hint: None,
        })?;
        exec.cluster = Some(told);
    }
    Ok(())
}
