//! Everything that can go wrong, and the one place that turns it into words, a hint for what to do
//! next, and an exit code.

use std::{fmt, io, time::Duration};

use crate::{domain::election::NO_COORDINATION, exit::ExitCode};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line asks for something impossible.
    #[error("{message}")]
    Usage { message: String, hint: Option<String> },

    /// There is no usable kubeconfig, or it cannot be read.
    #[error("{message}")]
    Kubeconfig { message: String, hint: Option<String> },

    /// The credential plugin that the kubeconfig names did not give a credential.
    #[error("{message}")]
    Credential { message: String, hint: Option<String> },

    /// Something that was asked for does not exist.
    #[error("{message}")]
    NotFound { message: String, hint: Option<String> },

    /// No connection to the server.
    #[error("cannot reach {server}: {cause}")]
    Unreachable { server: String, cause: String },

    /// The server took a connection but did not answer in time.
    #[error("{server} did not answer within {}", humantime::format_duration(*after))]
    NoAnswer { server: String, after: Duration },

    /// The server does not know who we are.
    #[error("{server} did not accept the credentials: {message}")]
    Unauthenticated { server: String, message: String },

    /// The server knows who we are and says no.
    #[error("{message}")]
    Forbidden { message: String, needs: Needs },

    /// The server does not serve this API.
    #[error("{server} does not serve {api}")]
    NotServed { server: String, api: String },

    /// Somebody else has it.
    #[error("{message}")]
    Held { message: String, hint: Option<String> },

    /// We will not do that, or the user would not.
    #[error("{message}")]
    Refused { message: String, hint: Option<String> },

    /// Somebody was always faster.
    #[error("{message}")]
    LostRace { message: String },

    /// The lease was lost while its command ran, and the command was ended.
    #[error("{message}")]
    LeaseLost { message: String },

    /// Something that the command started could not be ended: its lease was not released.
    #[error("{message}")]
    NotEnded { message: String, hint: Option<String> },

    /// Waited as long as it was told to.
    #[error("{message}")]
    TimedOut { message: String },

    /// Any other refusal of the server, in its own words.
    #[error("{message}")]
    Api { code: u16, reason: String, message: String, retry_after: Option<Duration> },

    /// An answer that is not what the API promises.
    #[error("cannot read what {server} answered: {cause}")]
    BadAnswer { server: String, cause: String },

    /// Writing the output failed.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),

    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

/// The right that a request needs, to be named when it is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    pub verbs: &'static str,
    pub resource: String,
    pub namespace: Option<String>,
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verbs, resource, .. } = self;
        let (kind, scope) = match &self.namespace {
            Some(namespace) => ("role", format!(" -n {namespace}")),
            None => ("clusterrole", String::new()),
        };
        write!(
            f,
            "an administrator can grant it with 'kubectl create {kind} lease-reader{scope} \
             --verb={verbs} --resource={resource}' and a {kind}binding to you"
        )?;
        if self.namespace.is_none() && resource.starts_with("lease") {
            f.write_str("; or look in one namespace, with -n, where you have it")?;
        }
        Ok(())
    }
}

impl Error {
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: None }
    }

    /// The code that the process exits with.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage { .. } => ExitCode::Usage,
            Self::NotFound { .. } => ExitCode::NotFound,
            Self::Unauthenticated { .. } | Self::Forbidden { .. } | Self::Credential { .. } => {
                ExitCode::Forbidden
            }
            Self::Interrupted => ExitCode::Interrupted,
            Self::Held { .. } => ExitCode::Held,
            Self::Refused { .. } => ExitCode::Refused,
            Self::LostRace { .. } => ExitCode::LostRace,
            Self::LeaseLost { .. } => ExitCode::LeaseLost,
            Self::NotEnded { .. } => ExitCode::NotEnded,
            Self::TimedOut { .. } => ExitCode::TimedOut,
            // The reader went away (`… | head`): it has what it wanted.
            Self::Output(cause) if cause.kind() == io::ErrorKind::BrokenPipe => ExitCode::Done,
            Self::Kubeconfig { .. }
            | Self::Unreachable { .. }
            | Self::NoAnswer { .. }
            | Self::NotServed { .. }
            | Self::Api { .. }
            | Self::BadAnswer { .. }
            | Self::Output(_) => ExitCode::Failed,
        }
    }

    /// What to do next, where there is something to say.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Usage { hint, .. }
            | Self::Kubeconfig { hint, .. }
            | Self::Credential { hint, .. }
            | Self::Held { hint, .. }
            | Self::Refused { hint, .. }
            | Self::NotEnded { hint, .. }
            | Self::NotFound { hint, .. } => hint.clone(),
            Self::Unreachable { cause, .. } if cause.contains("CaUsedAsEndEntity") => Some(
                "the server's certificate is its own authority (CA:TRUE), which kubectl takes and kubectl lease \
                 does not: have it issued by an authority, or without CA:TRUE"
                    .into(),
            ),
            Self::Unreachable { cause, .. } if cause.contains("certificate") => Some(
                "the server's certificate is not signed by the cluster's certificate-authority, or not for \
                 this name: check the context, or --certificate-authority and --tls-server-name"
                    .into(),
            ),
            Self::Unreachable { .. } => Some(
                "check that this is the cluster you mean (kubectl config current-context) and that its \
                 control plane is up; --server tries another apiserver"
                    .into(),
            ),
            Self::NoAnswer { .. } => {
                Some("--request-timeout waits longer; --server tries another apiserver".into())
            }
            Self::Unauthenticated { .. } => {
                Some("log in again, or check who you are with 'kubectl auth whoami'".into())
            }
            // Whom the server takes for nobody needs to say who they are, not more rights for nobody.
            Self::Forbidden { message, .. } if message.contains("\"system:anonymous\"") => Some(
                "no credentials were sent: check the kubeconfig's user, or give --token or \
                 --client-certificate and --client-key"
                    .into(),
            ),
            Self::Forbidden { .. } if self.is_denied_by_policy() => {
                Some("a policy of this cluster refuses it, whatever else you may do".into())
            }
            Self::Forbidden { needs, .. } => Some(needs.to_string()),
            Self::NotServed { api, .. } if api.starts_with("leasecandidates") => {
                Some(NO_COORDINATION.to_owned())
            }
            Self::NotServed { .. }
            | Self::LostRace { .. }
            | Self::LeaseLost { .. }
            | Self::TimedOut { .. }
            | Self::Api { .. }
            | Self::BadAnswer { .. }
            | Self::Output(_)
            | Self::Interrupted => None,
        }
    }

    /// Whether the object changed, or came to be, since it was read.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Api { code: 409, .. })
    }

    /// Whether what was asked for does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// Whether an admission policy or webhook refuses it, and not a missing permission.
    pub fn is_denied_by_policy(&self) -> bool {
        matches!(self, Self::Forbidden { message, .. }
            if message.contains("denied request") || message.contains("denied the request"))
    }

    /// Whether a write that failed so may have been done all the same.
    pub fn is_unclear(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::NoAnswer { .. }
                | Self::BadAnswer { .. }
                | Self::Api { code: 429 | 500.., .. }
        )
    }

    /// Whether it may be otherwise in a moment: an outage, an overload, a lost race.
    pub fn is_transient(&self) -> bool {
        match self {
            // A certificate does not get better by asking again.
            Self::Unreachable { cause, .. } => !cause.contains("certificate"),
            Self::LostRace { .. } => true,
            error => error.is_unclear(),
        }
    }

    /// How long to wait before the next attempt: as long as the server asks for, within reason, and not less
    /// than otherwise.
    pub fn pause(&self, otherwise: Duration) -> Duration {
        const LONGEST: Duration = Duration::from_secs(5);
        match self {
            Self::Api { retry_after: Some(after), .. } => (*after).min(LONGEST).max(otherwise),
            _ => otherwise,
        }
    }

    /// Whether there is nothing to tell: the user pressed Ctrl-C, or the reader closed the pipe.
    pub fn is_silent(&self) -> bool {
        matches!(self, Self::Interrupted) || self.exit_code() == ExitCode::Done
    }
}

/// The chain of causes in one line, without the repetitions that wrapping errors bring.
pub(crate) fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        // Many an error quotes its cause at its end already.
        if words.last().is_none_or(|outer| !outer.ends_with(&text)) {
            words.push(text);
        }
        next = error.source();
    }
    words.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_given_the_time_that_it_asks_for_within_reason() {
        let seconds = Duration::from_secs;
        let busy = |retry_after: Option<u64>| Error::Api {
            code: 429,
            reason: String::new(),
            message: String::new(),
            retry_after: retry_after.map(seconds),
        };
        for (error, pause) in [
            (busy(None), 2),
            (busy(Some(0)), 2),
            (busy(Some(3)), 3),
            (busy(Some(5)), 5),
            (busy(Some(3600)), 5),
            (Error::Interrupted, 2),
        ] {
            assert_eq!(error.pause(seconds(2)), seconds(pause), "{error:?}");
        }
    }

    #[test]
    fn every_error_has_its_exit_code() {
        let server = || "https://127.0.0.1:6443".to_owned();
        let message = String::new;
        let needs = Needs { verbs: "list", resource: "leases.coordination.k8s.io".into(), namespace: None };
        for (error, code) in [
            (Error::usage("x"), 2),
            (Error::Kubeconfig { message: message(), hint: None }, 1),
            (Error::Credential { message: message(), hint: None }, 7),
            (Error::NotFound { message: message(), hint: None }, 3),
            (Error::Unreachable { server: server(), cause: message() }, 1),
            (Error::NoAnswer { server: server(), after: Duration::from_secs(1) }, 1),
            (Error::Unauthenticated { server: server(), message: message() }, 7),
            (Error::Forbidden { message: message(), needs }, 7),
            (Error::NotServed { server: server(), api: message() }, 1),
            (Error::Api { code: 500, reason: message(), message: message(), retry_after: None }, 1),
            (Error::BadAnswer { server: server(), cause: message() }, 1),
            (Error::Output(io::ErrorKind::StorageFull.into()), 1),
            (Error::Output(io::ErrorKind::BrokenPipe.into()), 0),
            (Error::Interrupted, 130),
            (Error::Held { message: message(), hint: None }, 4),
            (Error::LostRace { message: message() }, 5),
            (Error::Refused { message: message(), hint: None }, 6),
            (Error::LeaseLost { message: message() }, 75),
            (Error::NotEnded { message: message(), hint: None }, 77),
            (Error::TimedOut { message: message() }, 124),
        ] {
            assert_eq!(error.exit_code().code(), code, "{error:?}");
        }
    }

    #[test]
    fn a_missing_right_is_named_with_the_command_that_grants_it() {
        let mut needs = Needs {
            verbs: "list,watch",
            resource: "leases.coordination.k8s.io".into(),
            namespace: Some("kube-system".into()),
        };
        assert_eq!(
            needs.to_string(),
            "an administrator can grant it with 'kubectl create role lease-reader -n kube-system \
             --verb=list,watch --resource=leases.coordination.k8s.io' and a rolebinding to you"
        );
        needs.namespace = None;
        assert!(needs.to_string().contains("kubectl create clusterrole lease-reader --verb"));
    }

    #[test]
    fn causes_are_said_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("connecting: {0}")]
        struct Outer(#[source] io::Error);
        let error = Outer(io::Error::other("refused"));
        assert_eq!(causes(&error), "connecting: refused");
    }
}
