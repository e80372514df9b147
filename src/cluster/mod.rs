//! All Kubernetes I/O.
//!
//! [`Cluster`] is the one door to the network. Every request goes through [`Cluster::send`], which
//! bounds it in time, repeats only reads and only a few times, learns the server's clock from the
//! answer, and turns what goes wrong into an [`Error`] that can be shown to a person.

mod api;
pub mod config;
mod credential;
mod object;
mod proxy;
pub mod served;
pub mod watch;

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use kube::client::Body;

use self::credential::ExecCredential;
pub use self::{
    api::{LEASES, Query, Resource},
    object::{List, Object},
};
use crate::{
    domain::time::{ServerTime, Skew},
    error::{Error, Needs, Result, causes},
};

/// How often a read is tried before its failure is believed.
const READ_ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(150);
/// A server that asks for more patience than this gets none.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A connection to one cluster.
pub struct Cluster {
    client: kube::Client,
    server: String,
    namespace: String,
    request_timeout: Option<Duration>,
    credential: Option<ExecCredential>,
    skew: Mutex<Skew>,
    warnings: Mutex<BTreeSet<String>>,
}

impl Cluster {
    /// Prepares a connection; nothing is sent yet.
    ///
    /// `request_timeout` bounds every request (but not how long a watch stays open).
    pub async fn new(mut config: kube::Config, request_timeout: Option<Duration>) -> Result<Self> {
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        // kube would repeat any request, writes too, fifteen times with pauses of minutes.
        config.default_retry = false;
        config.connect_timeout = request_timeout;
        config.write_timeout = request_timeout;
        let user_agent = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));
        config.headers.push((header::USER_AGENT, header::HeaderValue::from_static(user_agent)));

        let credential = ExecCredential::take_from(&mut config).await?;
        let namespace = config.default_namespace.clone();
        let client = kube::Client::try_from(config).map_err(|error| Error::Kubeconfig {
            message: format!("cannot set up a connection to {server}: {}", causes(&error)),
            hint: None,
        })?;
        Ok(Self {
            client,
            server,
            namespace,
            request_timeout,
            credential,
            skew: Mutex::default(),
            warnings: Mutex::default(),
        })
    }

    /// The namespace to work in where none was named.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// What the server's clock says now, as far as its answers have told.
    pub fn server_time(&self) -> ServerTime {
        lock(&self.skew).server_time(Timestamp::now())
    }

    /// What is known of the difference between the server's clock and ours.
    pub fn skew(&self) -> Skew {
        *lock(&self.skew)
    }

    /// The warnings that the server sent and nobody has taken yet.
    pub fn take_warnings(&self) -> BTreeSet<String> {
        std::mem::take(&mut lock(&self.warnings))
    }

    /// Sends a request and reads the whole answer, within the time-out.
    async fn call(&self, request: Request<Vec<u8>>, needs: &Needs) -> Result<Vec<u8>> {
        self.bounded(async {
            let response = self.send(request, needs).await?;
            let body = response.into_body().collect().await;
            let body = body
                .map_err(|error| Error::Unreachable { server: self.server.clone(), cause: causes(&error) })?;
            Ok(body.to_bytes().into())
        })
        .await
    }

    /// Sends a request, and a read again if that may help. The body of the answer is still to come.
    async fn send(&self, request: Request<Vec<u8>>, needs: &Needs) -> Result<Response<Body>> {
        let attempts = if request.method() == Method::GET { READ_ATTEMPTS } else { 1 };
        let mut pause = FIRST_PAUSE;
        for attempt in 1.. {
            let outcome = self.send_once(&request).await;
            let wait = match &outcome {
                Ok(response) => match response.status() {
                    StatusCode::TOO_MANY_REQUESTS
                    | StatusCode::SERVICE_UNAVAILABLE
                    | StatusCode::GATEWAY_TIMEOUT => Some(retry_after(response).unwrap_or(pause)),
                    StatusCode::UNAUTHORIZED if attempt == 1 => match &self.credential {
                        Some(credential) if credential.renew().await? => Some(Duration::ZERO),
                        _ => None,
                    },
                    _ => None,
                },
                Err(Error::Unreachable { .. }) => Some(pause),
                Err(_) => None,
            };
            match wait {
                Some(wait) if attempt < attempts && wait <= LONGEST_PAUSE => tokio::time::sleep(wait).await,
                _ => return self.judge(outcome?, needs).await,
            }
            pause *= 3;
        }
        unreachable!("the last attempt returns")
    }

    async fn send_once(&self, request: &Request<Vec<u8>>) -> Result<Response<Body>> {
        let mut request = request.clone();
        if let Some(credential) = &self.credential {
            credential.authorise(request.headers_mut()).await?;
        }
        let sent = Timestamp::now();
        let response = self.client.send(request.map(Body::from)).await.map_err(|error| {
            Error::Unreachable { server: self.server.clone(), cause: connection_failure(&error) }
        })?;
        self.learn(sent, &response);
        Ok(response)
    }

    /// Takes what the headers of an answer tell: the server's clock, and its warnings.
    fn learn(&self, sent: Timestamp, response: &Response<Body>) {
        let text = |value: &header::HeaderValue| value.to_str().ok().map(str::to_owned);
        let date = response.headers().get(header::DATE).and_then(text);
        if let Some(date) = date.and_then(|date| jiff::fmt::rfc2822::parse(&date).ok()) {
            let mut skew = lock(&self.skew);
            *skew = skew.observe(sent, Timestamp::now(), date.timestamp());
        }
        for warning in response.headers().get_all(header::WARNING).iter().filter_map(text) {
            // 299 - "text": only the text is for people.
            let text =
                warning.split_once('"').map_or(warning.as_str(), |(_, text)| text.trim_end_matches('"'));
            lock(&self.warnings).insert(text.replace("\\\"", "\""));
        }
    }

    /// Turns an answer that is a refusal into an error.
    async fn judge(&self, response: Response<Body>, needs: &Needs) -> Result<Response<Body>> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = response.into_body().collect().await.map(http_body_util::Collected::to_bytes);
        let body = body.unwrap_or_default();
        let told: object::Status = serde_json::from_slice(&body).unwrap_or_default();
        let message = match told.message.as_str() {
            "" => format!("{} answered {status}", self.server),
            message => message.to_owned(),
        };
        Err(match status {
            StatusCode::UNAUTHORIZED => Error::Unauthenticated { server: self.server.clone(), message },
            StatusCode::FORBIDDEN => Error::Forbidden { message, needs: needs.clone() },
            // Without a reason it is not the object that is missing but the whole API.
            StatusCode::NOT_FOUND if told.details.name.is_empty() => {
                Error::NotServed { server: self.server.clone(), api: needs.resource.clone() }
            }
            StatusCode::NOT_FOUND => Error::NotFound { message, hint: None },
            _ => Error::Api { code: status.as_u16(), reason: told.reason, message },
        })
    }

    /// Runs something with the request time-out.
    async fn bounded<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        match self.request_timeout {
            None => work.await,
            Some(after) => tokio::time::timeout(after, work)
                .await
                .unwrap_or_else(|_| Err(Error::NoAnswer { server: self.server.clone(), after })),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let seconds = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Why there is no connection, in the words of whoever knows best: the innermost cause.
fn connection_failure(error: &kube::Error) -> String {
    let mut innermost: &(dyn std::error::Error + 'static) = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}
