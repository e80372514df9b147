//! All Kubernetes I/O.
//!
//! [`Cluster`] is the one door to the network. Every request is bounded in time and repeated only if
//! it is a read, and only a few times. The door learns the server's clock from each answer and turns
//! what goes wrong into an [`Error`] that can be shown to a person.

mod api;
pub mod candidates;
mod credential;
#[cfg(unix)]
pub(crate) mod detached;
pub mod leases;
pub mod nodes;
mod object;
pub mod partitions;
mod peers;
pub mod pods;
mod refusal;
mod remark;
mod request;
pub mod served;
pub mod single;
pub mod surroundings;
#[cfg(feature = "tls")]
mod tls;
mod user;
pub mod watch;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::header;
use jiff::{SignedDuration, Timestamp};

use self::credential::Certificate;
pub use self::{
    api::{
        CRON_JOBS, DAEMON_SETS, DEPLOYMENTS, EVENTS, JOBS, LEASES, NAMESPACES, NODES,
        PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, POD_DISRUPTION_BUDGETS, PODS, Query, REPLICA_SETS,
        Resource, STATEFUL_SETS, VOLUME_ATTACHMENTS,
    },
    object::{List, Object, Readable},
    refusal::Refusal,
    remark::Remark,
};
use crate::{
    clock::BootInstant,
    error::{Error, Result, causes},
    rules::time::{ClockSkew, ServerTime},
};

/// For a request of a client that was handed over.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const USER_AGENT: &str = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));

/// A connection to one cluster.
pub struct Cluster {
    connected: Mutex<Connected>,
    /// To connect with another client certificate; `None` where the client is the caller's.
    config: Option<Box<kube::Config>>,
    server: String,
    namespace: String,
    /// The field manager of its writes, and the component of its Events.
    manager: String,
    /// `None` for the client's own.
    user_agent: Option<header::HeaderValue>,
    request_timeout: Option<Duration>,
    credential: Option<credential::CredentialSource>,
    /// How other kube-apiservers of the cluster are reached: without credentials, and not at all where
    /// certificates are not verified.
    anonymous: Option<Box<kube::Config>>,
    clock: LocalClock,
    skew: Mutex<ClockSkew>,
    skew_reported: AtomicBool,
    remarks: Mutex<BTreeSet<Remark>>,
    /// What could be listed once: the resource, and the namespace (or none, for all).
    listed: Mutex<BTreeSet<(String, Option<String>)>>,
    /// The nodes whose lease of medik8s' could be read once.
    medik8s_read: Mutex<BTreeSet<String>>,
}

/// A client, and the certificate that its connections are made with; `None` for the kubeconfig's own.
struct Connected {
    certificate: Option<Arc<Certificate>>,
    client: kube::Client,
}

/// This machine's wall clock as it was at the start, and the time since. That it is set meanwhile
/// does not matter: the server's clock is learned as a difference to this one.
struct LocalClock {
    wall: Timestamp,
    started: BootInstant,
}

impl LocalClock {
    fn start() -> Self {
        Self { wall: Timestamp::now(), started: BootInstant::now() }
    }

    fn now(&self) -> Timestamp {
        let elapsed = BootInstant::now().to_millis().saturating_sub(self.started.to_millis());
        self.wall.saturating_add(Duration::from_millis(elapsed)).unwrap_or(self.wall)
    }
}

impl Cluster {
    /// Prepares a connection; nothing is sent yet.
    ///
    /// `request_timeout` bounds every request (but not how long a watch stays open).
    pub async fn new(config: kube::Config, request_timeout: Option<Duration>) -> Result<Self> {
        Self::connect(config, request_timeout, None).await
    }

    /// Writes under the name of this program: as the manager of the fields that it writes, as the component that
    /// reports Events, and with its version as the user agent. Without, it is this library that writes.
    #[must_use]
    pub fn acting_as(self, program: &str, version: &str) -> Self {
        let user_agent = header::HeaderValue::from_str(&format!("{program}/{version}"));
        Self { manager: program.to_owned(), user_agent: user_agent.ok().or(self.user_agent), ..self }
    }

    /// In the background, such as for shell completion: nothing is prompted for or printed, a credential plugin
    /// has no streams to do it on either, and after `limit` the connection is given up; the plugin is ended before
    /// that.
    pub async fn unseen(config: kube::Config, limit: Duration) -> Result<Self> {
        Self::connect(config, Some(limit), Some(limit * 3 / 4)).await
    }

    /// A connection with a client that there is already, such as a controller's. Its credentials are its own
    /// business, and so is whether it sends a request again: with the default of the `kube` crate it does so for
    /// writes too, which is safe here, for each write carries the version that it is for. Requests are given up
    /// after half a minute.
    pub fn from_client(client: kube::Client) -> Self {
        let namespace = client.default_namespace().to_owned();
        let server = "the kube-apiserver".to_owned();
        Self::with(Connected { certificate: None, client }, server, namespace, Some(REQUEST_TIMEOUT))
    }

    async fn connect(
        mut config: kube::Config,
        request_timeout: Option<Duration>,
        unseen: Option<Duration>,
    ) -> Result<Self> {
        let mut server = without_userinfo(config.cluster_url.to_string().trim_end_matches('/'));
        if let Some(proxy) = &config.proxy_url {
            let proxy = without_userinfo(proxy.to_string().trim_end_matches('/'));
            server = format!("{server} (through the proxy {proxy})");
        }
        // kube would repeat any request, writes too, fifteen times with pauses of minutes.
        config.default_retry = false;
        config.connect_timeout = request_timeout;
        config.write_timeout = request_timeout;

        let anonymous = (!config.accept_invalid_certs).then(|| {
            let mut config = Box::new(config.clone());
            config.auth_info = kube::config::AuthInfo::default();
            config
        });
        let (credential, certificate) =
            match credential::CredentialSource::take_from(&mut config, unseen).await? {
                Some((source, first)) => (Some(source), first.certificate),
                None => (None, None),
            };
        let namespace = config.default_namespace.clone();
        let client = client(&config, certificate.as_deref())?;
        Ok(Self {
            config: Some(Box::new(config)),
            user_agent: Some(header::HeaderValue::from_static(USER_AGENT)),
            credential,
            anonymous,
            ..Self::with(Connected { certificate, client }, server, namespace, request_timeout)
        })
    }

    fn with(
        connected: Connected,
        server: String,
        namespace: String,
        request_timeout: Option<Duration>,
    ) -> Self {
        Self {
            connected: Mutex::new(connected),
            config: None,
            server,
            namespace,
            manager: env!("CARGO_PKG_NAME").to_owned(),
            user_agent: None,
            request_timeout,
            credential: None,
            anonymous: None,
            clock: LocalClock::start(),
            skew: Mutex::default(),
            skew_reported: AtomicBool::new(false),
            remarks: Mutex::default(),
            listed: Mutex::default(),
            medik8s_read: Mutex::default(),
        }
    }

    /// While the terminal is a command's, a credential plugin is run without it, by this program. With `None`
    /// it may use the terminal.
    #[cfg(unix)]
    pub(crate) fn detach_credential_plugin(&self, by: Option<&crate::program::Program>) {
        if let Some(credential) = &self.credential {
            credential.detach(by);
        }
    }

    /// The namespace to work in where none was named.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// What the server's clock says now, as far as its answers have told.
    pub fn server_time(&self) -> ServerTime {
        lock(&self.skew).server_time(self.clock.now())
    }

    /// By how much the server's clock is ahead of ours, as far as that is known.
    pub fn clock_offset(&self) -> SignedDuration {
        lock(&self.skew).offset()
    }

    /// How this cluster is reached, where that is known: not of a client that was handed over.
    pub fn config(&self) -> Option<&kube::Config> {
        self.config.as_deref()
    }

    /// By how much the server's clock differs from ours, if that is worth a warning and was
    /// not taken yet.
    pub fn take_skew(&self) -> Option<SignedDuration> {
        let offset = lock(&self.skew).worth_a_warning()?;
        (!self.skew_reported.swap(true, Ordering::Relaxed)).then_some(offset)
    }

    /// Notes what was noticed beside the matter, once, until it is taken.
    pub(crate) fn remark(&self, remark: Remark) {
        let mut remarks = lock(&self.remarks);
        if remarks.len() < remark::MOST {
            remarks.insert(remark);
        }
    }

    /// What was noticed beside the matter, as far as it was not taken yet.
    pub fn take_remarks(&self) -> BTreeSet<Remark> {
        std::mem::take(&mut lock(&self.remarks))
    }
}

/// A client whose connections are made with this certificate, or the kubeconfig's own.
fn client(config: &kube::Config, certificate: Option<&Certificate>) -> Result<kube::Client> {
    #[cfg(feature = "tls")]
    tls::prepare();
    let mut config = config.clone();
    if let Some(certificate) = certificate {
        certificate.put_into(&mut config.auth_info);
    }
    #[cfg(feature = "tls")]
    tls::check(&config.auth_info)?;
    let server = without_userinfo(config.cluster_url.to_string().trim_end_matches('/'));
    kube::Client::try_from(config).map_err(|error| Error::Configuration {
        message: format!("cannot set up a connection to {server}: {}", causes(&error)),
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An address as it may be shown: without a user and password in it.
pub fn without_userinfo(address: &str) -> String {
    match address.rsplit_once('@') {
        None => address.to_owned(),
        Some((before, host)) => match before.split_once("://") {
            Some((scheme, _)) => format!("{scheme}://{host}"),
            None => host.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn remarks_that_are_not_taken_do_not_pile_up() {
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let cluster = Cluster::from_client(kube::Client::try_from(config).unwrap());
        for n in 0..1000 {
            cluster.remark(Remark::Warning { message: n.to_string() });
        }
        assert_eq!(cluster.take_remarks().len(), remark::MOST);
        cluster.remark(Remark::Medik8sUnseen);
        cluster.remark(Remark::Medik8sUnseen);
        assert_eq!(cluster.take_remarks(), BTreeSet::from([Remark::Medik8sUnseen]));
    }

    #[test]
    fn a_password_in_an_address_is_not_shown() {
        for (address, shown) in [
            ("https://host:1/", "https://host:1/"),
            ("https://me:secret@host:1/", "https://host:1/"),
            ("me:secret@host", "host"),
            ("https://me:p@ss@host", "https://host"),
        ] {
            assert_eq!(without_userinfo(address), shown);
        }
    }
}
