//! Credentials that do not stay the same: from exec credential plugins (`users[].user.exec` in a
//! kubeconfig), which give tokens, client certificates or both, and from files (`tokenFile`,
//! `client-certificate` and `client-key`, and the service account of a pod).
//!
//! kube would run a plugin three times for each client, and use its first certificate for good. Here it
//! runs once before the connection is made, and again only when what it gave has expired or the server no
//! longer accepts it. A kube-apiserver looks at a client certificate at every request, not only when the
//! connection is made: another certificate needs another connection (see [`super::Cluster`]). And kube
//! would send a file's token with the line break that most files end in.

use std::{
    fs,
    io::{self, IsTerminal as _, Read as _},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderValue, header};
use jiff::{SignedDuration, Timestamp};
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;

use crate::{
    error::{CredentialOrigin, Error, Result},
    program::Program,
};

/// A credential is replaced this long before it expires, or earlier by a quarter of its life.
const MARGIN: SignedDuration = SignedDuration::from_secs(10);
/// Files are read again after this long.
const REREAD: SignedDuration = SignedDuration::from_secs(50);
/// What could not be replaced, and can still be used, is tried again after this long.
const REPLACEMENT_RETRY: SignedDuration = SignedDuration::from_secs(2);

/// The versions of the protocol between clients and plugins; the first ones are no more.
const VERSIONS: [&str; 2] = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];

/// How long a plugin may take that is run without a terminal: there it would hang unseen.
const LONGEST: Duration = Duration::from_secs(60);

/// How a plugin is run.
#[derive(Clone)]
enum Manner {
    /// It may prompt the user.
    Openly,
    /// Without the terminal, which belongs to the command under the lease: this program detaches the plugin.
    Detached(#[cfg_attr(not(unix), expect(dead_code))] Program),
    /// No stdin and no output; killed at the time limit.
    Unseen(Duration),
}

/// What a plugin prints.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(default)]
    api_version: String,
    status: Option<ExecCredentialStatus>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ExecCredentialStatus {
    #[serde(deserialize_with = "crate::rules::time::read")]
    expiration_timestamp: Option<Timestamp>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// A client certificate with its key, in PEM.
#[derive(PartialEq, Eq)]
pub(super) struct Certificate {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Certificate {
    /// Makes it the one of a kubeconfig's user.
    pub(super) fn put_into(&self, user: &mut AuthInfo) {
        user.client_certificate_data = Some(BASE64_STANDARD.encode(&self.certificate));
        user.client_key_data = Some(BASE64_STANDARD.encode(&self.key).into());
        (user.client_certificate, user.client_key) = (None, None);
    }
}

/// The user that the server sees.
#[derive(Clone)]
pub(super) struct Credential {
    header: Option<HeaderValue>,
    /// `None` for the kubeconfig's own, if it has one.
    pub(super) certificate: Option<Arc<Certificate>>,
    expires: Option<Timestamp>,
    /// When to get another one.
    replace_at: Option<Timestamp>,
}

impl Credential {
    fn new(
        header: Option<HeaderValue>,
        certificate: Option<Arc<Certificate>>,
        expires: Option<Timestamp>,
    ) -> Self {
        let now = Timestamp::now();
        Self { header, certificate, expires, replace_at: expires.map(|expires| replace_at(now, expires)) }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.header == other.header && self.certificate == other.certificate
    }
}

/// When to replace a credential that was got `now` and expires then.
fn replace_at(now: Timestamp, expires: Timestamp) -> Timestamp {
    let life = expires.duration_since(now).max(SignedDuration::ZERO);
    expires.saturating_sub(MARGIN.min(life / 4)).unwrap_or(expires)
}

enum Origin {
    Exec(Box<ExecConfig>),
    /// As the last, but run in the background, such as for shell completion: it is not run again.
    ExecOnce,
    Files {
        token: Option<PathBuf>,
        /// The certificate and its key.
        certificate: Option<(PathBuf, PathBuf)>,
    },
}

/// A credential, kept fresh.
pub(super) struct CredentialSource {
    origin: Origin,
    current: Mutex<Credential>,
    detached: std::sync::Mutex<Option<Program>>,
}

impl CredentialSource {
    /// Reads the files or runs the plugin that `config` names, if it does, and takes them out of `config`.
    /// With a `limit` the plugin is run unseen: it can ask and say nothing, and is ended when the time is
    /// over.
    pub(super) async fn take_from(
        config: &mut kube::Config,
        limit: Option<Duration>,
    ) -> Result<Option<(Self, Credential)>> {
        let auth = &mut config.auth_info;
        let exec = auth.exec.take();
        let token = auth.token_file.take().filter(|file| !file.is_empty()).map(PathBuf::from);
        let token = token.filter(|_| auth.username.is_none());
        let certificate = certificate_files(auth);
        let has_certificate = certificate.is_some() || auth.client_certificate_data.is_some();
        if token.is_some() || certificate.is_some() {
            let origin = Origin::Files { token, certificate };
            let credential = match origin.read() {
                // As in client-go: the file wins over a token beside it, where it can be read.
                Err(_)
                    if auth.token.is_some() && matches!(&origin, Origin::Files { certificate: None, .. }) =>
                {
                    return Ok(None);
                }
                credential => credential?,
            };
            if credential.header.is_some() {
                auth.token = None;
            }
            return Ok(Some(Self::new(origin, credential)));
        }
        // As in client-go: a plugin is asked only where the kubeconfig has nothing else.
        let has_other = auth.username.is_some() || auth.token.is_some() || has_certificate;
        let Some(exec) = exec.filter(|_| !has_other) else { return Ok(None) };
        let credential =
            credential(&exec, run(exec.clone(), limit.map_or(Manner::Openly, Manner::Unseen)).await?)?;
        let origin = if limit.is_some() { Origin::ExecOnce } else { Origin::Exec(Box::new(exec)) };
        Ok(Some(Self::new(origin, credential)))
    }

    fn new(origin: Origin, credential: Credential) -> (Self, Credential) {
        let current = Mutex::new(credential.clone());
        (Self { origin, current, detached: std::sync::Mutex::default() }, credential)
    }

    #[cfg(unix)]
    pub(super) fn detach(&self, by: Option<&Program>) {
        *super::lock(&self.detached) = by.cloned();
    }

    /// Puts the token into a request, if it is one; the credential to send it with.
    pub(super) async fn authorise(&self, headers: &mut HeaderMap) -> Result<Credential> {
        let mut current = self.current.lock().await;
        let now = Timestamp::now();
        if current.replace_at.is_some_and(|at| now >= at) {
            match self.fresh().await {
                Ok(Some(fresh)) => *current = fresh,
                Ok(None) => {}
                // It can still be used: a file that is just being replaced, a plugin without a network.
                Err(_) if current.expires.is_none_or(|expires| now < expires) => {
                    current.replace_at = now.checked_add(REPLACEMENT_RETRY).ok();
                }
                Err(error) => return Err(error),
            }
        }
        if let Some(header) = &current.header {
            headers.insert(header::AUTHORIZATION, header.clone());
        }
        Ok(current.clone())
    }

    /// After a 401 to a request that was sent as `used`: whether there is another credential to offer. Of
    /// several requests that were refused at once, the first has got it for all.
    pub(super) async fn renew(&self, used: &Credential) -> Result<bool> {
        let mut current = self.current.lock().await;
        if !current.is_same(used) {
            return Ok(true);
        }
        let fresh = match self.fresh().await {
            Ok(Some(fresh)) => fresh,
            Ok(None) => return Ok(false),
            // Just being replaced, perhaps: the 401 is returned, and may pass.
            Err(_) if self.may_be_torn() => return Ok(false),
            Err(error) => return Err(error),
        };
        let differs = !fresh.is_same(&current);
        *current = fresh;
        Ok(differs)
    }

    /// Whether what it gives may be for a moment what no connection can be made with: one of two files is
    /// replaced before the other.
    pub(super) fn may_be_torn(&self) -> bool {
        matches!(self.origin, Origin::Files { .. })
    }

    async fn fresh(&self) -> Result<Option<Credential>> {
        match &self.origin {
            files @ Origin::Files { .. } => files.read().map(Some),
            Origin::Exec(exec) => {
                let detached = super::lock(&self.detached).clone();
                let manner = detached.map_or(Manner::Openly, Manner::Detached);
                let status = run(ExecConfig::clone(exec), manner).await?;
                credential(exec, status).map(Some)
            }
            Origin::ExecOnce => Ok(None),
        }
    }
}

/// The files of the client certificate and its key, unless the kubeconfig has the text itself.
fn certificate_files(auth: &AuthInfo) -> Option<(PathBuf, PathBuf)> {
    let file = |path: &Option<String>| path.as_ref().filter(|path| !path.is_empty()).map(PathBuf::from);
    let key = auth.client_key_data.as_ref().map(ExposeSecret::expose_secret);
    let given = auth.client_certificate_data.as_deref().is_some_and(|data| !data.is_empty())
        || key.is_some_and(|data| !data.is_empty());
    if given {
        return None;
    }
    Some((file(&auth.client_certificate)?, file(&auth.client_key)?))
}

impl Origin {
    /// What is in the files, to be read again soon: rotation changes them without notice.
    fn read(&self) -> Result<Credential> {
        let Self::Files { token, certificate } = self else { return Ok(Credential::new(None, None, None)) };
        let header = token.as_deref().map(read_token).transpose()?;
        let bad = |path: &Path, error: &io::Error| Error::Credential {
            message: format!("cannot read {}: {error}", path.display()),
            origin: CredentialOrigin::File,
        };
        let text = |path: &Path| fs::read(path).map_err(|error| bad(path, &error));
        let certificate = match certificate {
            None => None,
            Some((certificate, key)) => {
                Some(Arc::new(Certificate { certificate: text(certificate)?, key: text(key)? }))
            }
        };
        let replace_at = Timestamp::now().checked_add(REREAD).ok();
        Ok(Credential { header, certificate, expires: None, replace_at })
    }
}

fn read_token(path: &Path) -> Result<HeaderValue> {
    let bad = |why: &str| Error::Credential {
        message: format!("cannot use the token file {}: {why}", path.display()),
        origin: CredentialOrigin::File,
    };
    let text = fs::read_to_string(path).map_err(|error| bad(&error.to_string()))?;
    let text = text.trim();
    if text.is_empty() {
        return Err(bad("it is empty"));
    }
    bearer(text).ok_or_else(|| bad("it has characters that no header may have"))
}

fn bearer(token: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// What a plugin gave.
fn credential(exec: &ExecConfig, status: ExecCredentialStatus) -> Result<Credential> {
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let (token, expires) = (given(status.token), status.expiration_timestamp);
    let certificate = match (given(status.client_certificate_data), given(status.client_key_data)) {
        (Some(certificate), Some(key)) => {
            Some(Arc::new(Certificate { certificate: certificate.into(), key: key.into() }))
        }
        (None, None) if token.is_none() => {
            return Err(failure(exec, "it printed neither a token nor a client certificate with its key"));
        }
        (None, None) => None,
        _ => return Err(failure(exec, "it printed only one of a client certificate and its key")),
    };
    let bad = || failure(exec, "its token has characters that no header may have");
    let header = token.map(|token| bearer(&token).ok_or_else(bad)).transpose()?;
    Ok(Credential::new(header, certificate, expires))
}

/// Runs the plugin on a thread of its own: it may ask the user something and take its time.
async fn run(exec: ExecConfig, manner: Manner) -> Result<ExecCredentialStatus> {
    tokio::task::spawn_blocking(move || run_blocking(&exec, &manner)).await.unwrap_or_else(|error| {
        let origin = CredentialOrigin::Plugin { install_hint: None };
        Err(Error::Credential { message: error.to_string(), origin })
    })
}

fn run_blocking(exec: &ExecConfig, manner: &Manner) -> Result<ExecCredentialStatus> {
    let Some(program) = &exec.command else {
        return Err(failure(exec, "the kubeconfig names no command for it"));
    };
    let terminal = io::stdin().is_terminal() && matches!(manner, Manner::Openly);
    let interactive = match exec.interactive_mode {
        Some(ExecInteractiveMode::Never) => false,
        Some(ExecInteractiveMode::Always) if !terminal => {
            let why = match manner {
                Manner::Detached(_) => "it must ask something, and the terminal is the command's",
                _ => "it must ask something, and standard input is not a terminal",
            };
            return Err(failure(exec, why));
        }
        _ => terminal,
    };
    let version = exec.api_version.as_deref().unwrap_or_default();
    if !VERSIONS.contains(&version) {
        let versions = VERSIONS.join(" or ");
        return Err(failure(
            exec,
            &format!("its apiVersion in the kubeconfig is '{version}', not {versions}"),
        ));
    }
    let mut spec = json!({ "interactive": interactive });
    if exec.provide_cluster_info {
        spec["cluster"] = json!(exec.cluster);
    }
    let info = json!({ "apiVersion": version, "kind": "ExecCredential", "spec": spec });

    let mut command = match manner {
        #[cfg(unix)]
        Manner::Detached(by) => super::detached::command(by, program),
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
        Manner::Detached(_) => output_within(&mut command, LONGEST),
        Manner::Unseen(limit) => {
            #[cfg(unix)]
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
            output_within(&mut command, *limit)
        }
    };
    let (status, stdout) = output.map_err(|error| not_run(exec, &error))?;
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

/// What a command prints, if it ends in time. Otherwise it is ended, with the process
/// group that it leads.
fn output_within(command: &mut Command, limit: Duration) -> io::Result<(ExitStatus, Vec<u8>)> {
    const PAUSE: Duration = Duration::from_millis(5);
    let began = Instant::now();
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    // Meanwhile: a pipe holds only so much.
    let reading = child.stdout.take().map(|mut stdout| {
        thread::spawn(move || {
            let mut printed = Vec::new();
            stdout.read_to_end(&mut printed).map(|_| printed)
        })
    });
    while began.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            let printed = reading.map_or(Ok(Ok(Vec::new())), thread::JoinHandle::join);
            return Ok((status, printed.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?));
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
    failed(exec, why, None)
}

/// How to install it is of use only where it is not installed.
fn not_run(exec: &ExecConfig, error: &io::Error) -> Error {
    let hint = exec.install_hint.clone().filter(|_| error.kind() == io::ErrorKind::NotFound);
    failed(exec, &error.to_string(), hint)
}

fn failed(exec: &ExecConfig, why: &str, install_hint: Option<String>) -> Error {
    let program = exec.command.as_deref().unwrap_or("<none>");
    let message = format!("the credential plugin '{program}' failed: {why}");
    Error::Credential { message, origin: CredentialOrigin::Plugin { install_hint } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_replaced_before_it_expires_but_not_at_every_request() {
        let at = |seconds: i64| Timestamp::from_second(1_000_000 + seconds).unwrap();
        for (life, replaced) in [(3600, 3590), (60, 50), (40, 30), (20, 15), (4, 3), (0, 0), (-5, -5)] {
            assert_eq!(replace_at(at(0), at(life)), at(replaced), "{life} s");
        }
        assert_eq!(replace_at(at(0), Timestamp::MIN), Timestamp::MIN);
    }

    #[test]
    fn what_a_plugin_gives_is_whole_or_refused() {
        let exec = ExecConfig { command: Some("plugin".into()), ..serde_json::from_str("{}").unwrap() };
        let given = |token: Option<&str>, certificate: Option<&str>, key: Option<&str>| {
            let text = |text: Option<&str>| text.map(str::to_owned);
            let status = ExecCredentialStatus {
                token: text(token),
                client_certificate_data: text(certificate),
                client_key_data: text(key),
                ..ExecCredentialStatus::default()
            };
            credential(&exec, status).map(|it| (it.header.is_some(), it.certificate.is_some()))
        };
        for (token, certificate, key, expected) in [
            (Some("t"), None, None, Some((true, false))),
            (None, Some("c"), Some("k"), Some((false, true))),
            (Some("t"), Some("c"), Some("k"), Some((true, true))),
            (Some("t"), Some(""), Some(""), Some((true, false))),
            (None, None, None, None),
            (Some(""), Some(""), Some(""), None),
            (Some("t"), Some("c"), None, None),
            (None, None, Some("k"), None),
            (Some("a\nb"), None, None, None),
        ] {
            assert_eq!(given(token, certificate, key).ok(), expected, "{token:?} {certificate:?} {key:?}");
        }
    }
}
