//! One request: sent, sent again where that helps, and its answer judged.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use kube::client::Body;

#[cfg(feature = "tls")]
use super::tls;
use super::{
    Cluster, Connected, Remark, client,
    credential::{self, Credential},
    lock, object, user,
};
use crate::error::{BadCertificate, Error, ObjectKind, Permission, Result};

/// How often a read is tried before its failure is believed.
const READ_ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(150);
/// A `Retry-After` that is longer than this is not waited for.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Whether a request is sent again: a read where that may help, and any request that was refused for a credential
/// that could be renewed.
struct Retry<'a> {
    attempts: u32,
    pause: Duration,
    /// What the last attempt was made with.
    used: Option<(&'a credential::CredentialSource, Credential)>,
    renewed: bool,
}

impl Retry<'_> {
    fn of(request: &Request<Vec<u8>>) -> Self {
        let attempts = if is_read(request) { READ_ATTEMPTS } else { 1 };
        Self { attempts, pause: FIRST_PAUSE, used: None, renewed: false }
    }

    /// Waits until it is time for the next attempt.
    ///
    /// # Errors
    /// The error, if there is none.
    async fn after(&mut self, error: Error) -> Result<()> {
        let wait = match &error {
            Error::Api { code: 429 | 503 | 504, retry_after, .. } => retry_after.unwrap_or(self.pause),
            // A certificate does not get better by asking again.
            Error::Unreachable { certificate: None, .. } => self.pause,
            Error::Unauthenticated { .. } if !self.renewed => match &self.used {
                Some((source, used)) if source.renew(used).await? => Duration::ZERO,
                _ => return Err(error),
            },
            _ => return Err(error),
        };
        // What was refused for its credential has not been done: it may be a write.
        let refused = matches!(error, Error::Unauthenticated { .. });
        self.renewed |= refused;
        if (self.attempts <= 1 && !refused) || wait > LONGEST_PAUSE {
            return Err(error);
        }
        tokio::time::sleep(wait).await;
        self.attempts = self.attempts.saturating_sub(1);
        self.pause *= 3;
        Ok(())
    }
}

/// What a warning is about. Only the versions of one API are chosen here.
fn warned(message: String) -> Remark {
    if message.starts_with("coordination.k8s.io/") && message.contains(" LeaseCandidate is deprecated ") {
        Remark::Deprecated { message }
    } else {
        Remark::Warning { message }
    }
}

impl Cluster {
    /// Sends a request and reads the whole answer, within the time-out.
    pub(super) async fn call(&self, request: &Request<Vec<u8>>, needs: &Permission) -> Result<Bytes> {
        let calling = async {
            let mut retry = Retry::of(request);
            loop {
                let answer = async {
                    let response = self.send(request.clone(), needs, &mut retry).await?;
                    let body = response.into_body().collect().await;
                    Ok(body.map_err(|error| self.unreachable(&error))?.to_bytes())
                };
                match answer.await {
                    Ok(body) => return Ok(body),
                    Err(error) => retry.after(error).await?,
                }
            }
        };
        Box::pin(self.in_time(calling)).await
    }

    /// Sends a request and leaves the body of the answer, a stream without end, to the caller.
    pub(super) async fn open(
        &self,
        request: &Request<Vec<u8>>,
        needs: &Permission,
    ) -> Result<Response<Body>> {
        let opening = async {
            let mut retry = Retry::of(request);
            loop {
                match self.send(request.clone(), needs, &mut retry).await {
                    Ok(response) => return Ok(response),
                    Err(error) => retry.after(error).await?,
                }
            }
        };
        Box::pin(self.in_time(opening)).await
    }

    /// The answer, if it comes within the time-out.
    async fn in_time<T>(&self, answer: impl Future<Output = Result<T>>) -> Result<T> {
        match self.request_timeout {
            None => answer.await,
            Some(after) => tokio::time::timeout(after, answer)
                .await
                .unwrap_or_else(|_| Err(Error::NoAnswer { server: self.server.clone(), after })),
        }
    }

    /// Uses connections that are made with the certificate of this credential from now on. What was begun
    /// on others, such as a watch, goes on there.
    fn connect_as(&self, credential: &Credential, may_be_torn: bool) -> Result<()> {
        let mut connected = lock(&self.connected);
        if connected.certificate == credential.certificate {
            return Ok(());
        }
        let Some(config) = &self.config else { return Ok(()) };
        match client(config, credential.certificate.as_deref()) {
            Ok(client) => *connected = Connected { certificate: credential.certificate.clone(), client },
            // With what was there before, until both files are there.
            Err(_) if may_be_torn => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Sends a request once. The body of the answer is still to come.
    async fn send<'a>(
        &'a self,
        mut request: Request<Vec<u8>>,
        needs: &Permission,
        retry: &mut Retry<'a>,
    ) -> Result<Response<Body>> {
        if let Some(source) = &self.credential {
            let credential = source.authorise(request.headers_mut()).await?;
            self.connect_as(&credential, source.may_be_torn())?;
            retry.used = Some((source, credential));
        }
        if let Some(user_agent) = &self.user_agent {
            request.headers_mut().insert(header::USER_AGENT, user_agent.clone());
        }
        let sent = self.clock.now();
        let client = lock(&self.connected).client.clone();
        let response = client.send(request.map(Body::from)).await;
        let response = response.map_err(|error| self.unreachable(&error))?;
        self.learn(sent, &response);
        self.judge(response, needs).await
    }

    /// Takes what the headers of an answer tell: the server's clock, and its warnings.
    fn learn(&self, sent: Timestamp, response: &Response<Body>) {
        let text = |value: &header::HeaderValue| value.to_str().ok().map(str::to_owned);
        let date = response.headers().get(header::DATE).and_then(text);
        if let Some(date) = date.and_then(|date| jiff::fmt::rfc2822::parse(&date).ok()) {
            let mut skew = lock(&self.skew);
            *skew = skew.observe(sent, self.clock.now(), date.timestamp());
        }
        for warning in response.headers().get_all(header::WARNING).iter().filter_map(text) {
            // 299 - "text": only the text is for people.
            let text =
                warning.split_once('"').and_then(|(_, text)| text.strip_suffix('"')).unwrap_or(&warning);
            self.remark(warned(text.replace("\\\"", "\"")));
        }
    }

    /// Turns an answer that is a refusal into an error.
    async fn judge(&self, response: Response<Body>, needs: &Permission) -> Result<Response<Body>> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = retry_after(&response);
        let body = response.into_body().collect().await.map(http_body_util::Collected::to_bytes);
        let body = body.unwrap_or_default();
        let answer: object::ApiStatus = serde_json::from_slice(&body).unwrap_or_default();
        let message = if answer.message.is_empty() {
            // Not the API but something in front of it, or no API at all.
            let words: String = String::from_utf8_lossy(&body).trim().chars().take(200).collect();
            format!("{} answered {status}: {words}", self.server)
        } else {
            answer.message
        };
        Err(match status {
            StatusCode::UNAUTHORIZED => Error::Unauthenticated { server: self.server.clone(), message },
            // Nothing can be created in a namespace that is terminating, whatever permissions the user has.
            StatusCode::FORBIDDEN if message.contains("because it is being terminated") => {
                Error::Api { code: 403, reason: answer.reason, message, retry_after: None }
            }
            StatusCode::FORBIDDEN => Error::Forbidden { message, needs: needs.clone() },
            // Where no object is named it is not an object that is missing but the whole API.
            StatusCode::NOT_FOUND if answer.details.name.is_empty() => {
                Error::NotServed { server: self.server.clone(), api: needs.resource.clone() }
            }
            StatusCode::NOT_FOUND => Error::NotFound { kind: ObjectKind::Other, message },
            _ => Error::Api { code: status.as_u16(), reason: answer.reason, message, retry_after },
        })
    }

    /// No connection, or no longer, in the words of the innermost cause, which is the most exact.
    pub(super) fn unreachable(&self, error: &(dyn std::error::Error + 'static)) -> Error {
        let mut innermost = error;
        while let Some(cause) = innermost.source() {
            innermost = cause;
        }
        let mut cause = innermost.to_string();
        // How rustls says that the process at the other end is gone.
        if cause.contains("close_notify") {
            cause = "the server closed the connection".into();
        }
        let certificate = bad_certificate(error, &cause);
        Error::Unreachable { server: self.server.clone(), cause, certificate }
    }
}

/// What is wrong with the certificate of a server, if that is the cause. Of another TLS than this library's there is
/// only the text.
fn bad_certificate(error: &(dyn std::error::Error + 'static), cause: &str) -> Option<BadCertificate> {
    #[cfg(feature = "tls")]
    if let Some(error) = tls::error_in(error) {
        return tls::bad_certificate(error);
    }
    let _ = error;
    cause.contains("certificate").then_some(BadCertificate::Invalid)
}

/// Whether a request changes nothing, however often it is sent. To ask for one's own user or permissions,
/// takes a POST.
fn is_read(request: &Request<Vec<u8>>) -> bool {
    request.method() == Method::GET || [user::WHOAMI, user::MAY].contains(&request.uri().path())
}

fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let seconds = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}
