//! Everything that can go wrong.

use std::{io, time::Duration};

/// What the library returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "internals"), non_exhaustive)]
pub enum Error {
    /// The connection cannot be set up as it is configured.
    #[error("{message}")]
    Configuration {
        /// What happened, in words.
        message: String,
    },

    /// The source of the credentials, such as a credential plugin, gave none.
    #[error("{message}")]
    Credential {
        /// What happened, in words.
        message: String,
        /// The source.
        origin: CredentialOrigin,
    },

    /// What was named cannot be asked of the API.
    #[error("{message}")]
    Invalid {
        /// What happened, in words.
        message: String,
    },

    /// An object does not exist, or not any more.
    #[error("{message}")]
    NotFound {
        /// Of what kind.
        kind: ObjectKind,
        /// What happened, in words.
        message: String,
    },

    /// No connection to the server.
    #[error("cannot reach {server}: {cause}")]
    Unreachable {
        /// The server.
        server: String,
        /// The innermost cause.
        cause: String,
        /// If that is its certificate, what is wrong with it.
        certificate: Option<BadCertificate>,
    },

    /// The server took a connection but did not answer in time.
    #[error("{server} did not answer within {}", humantime::format_duration(*after))]
    NoAnswer {
        /// The server.
        server: String,
        /// The time-out.
        after: Duration,
    },

    /// What answers is no kube-apiserver.
    #[error("{server} does not answer as a kube-apiserver does")]
    NotKubernetes {
        /// The server.
        server: String,
    },

    /// Not authenticated.
    #[error("{server} did not accept the credentials: {message}")]
    Unauthenticated {
        /// The server.
        server: String,
        /// What happened, in words.
        message: String,
    },

    /// The user is known and has no permission, or an admission policy refuses it.
    #[error("{message}")]
    Forbidden {
        /// What happened, in words.
        message: String,
        /// The permission that it takes.
        needs: Permission,
    },

    /// The server does not serve this API.
    #[error("{server} does not serve {api}")]
    NotServed {
        /// The server.
        server: String,
        /// The API.
        api: String,
    },

    /// Any other refusal of the server, in its own words.
    #[error("{message}")]
    Api {
        /// The HTTP status.
        code: u16,
        /// The reason of the Status.
        reason: String,
        /// What happened, in words.
        message: String,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
    },

    /// An answer that is not what the API promises.
    #[error("cannot read what {server} answered: {cause}")]
    BadAnswer {
        /// The server.
        server: String,
        /// The innermost cause.
        cause: String,
    },

    /// Gave up after too many write conflicts.
    #[error("{message}")]
    LostRace {
        /// What happened, in words.
        message: String,
    },

    /// The lease was lost.
    #[error("{message}")]
    LeaseLost {
        /// What happened, in words.
        message: String,
    },

    /// It would not be safe, so it was not begun.
    #[error("{message}")]
    Refused {
        /// What happened, in words.
        message: String,
    },

    /// The condition was not met in the time that was given.
    #[error("{message}")]
    TimedOut {
        /// What happened, in words.
        message: String,
    },

    /// The operating system refused something.
    #[error(transparent)]
    System(io::Error),

    /// Ended from outside, such as by Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

/// A source of credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "internals"), non_exhaustive)]
pub enum CredentialOrigin {
    /// A credential plugin.
    Plugin {
        /// What the kubeconfig says of how to install it.
        install_hint: Option<String>,
    },
    /// A file that the kubeconfig names.
    File,
}

/// Why the certificate of a server is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "internals"), non_exhaustive)]
pub enum BadCertificate {
    /// It is that of an authority (CA:TRUE), which rustls does not take for a server's.
    Authority,
    /// No authority that is trusted has issued it, or not for this server, or not for now.
    Invalid,
}

/// The kind of an object that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "internals"), non_exhaustive)]
pub enum ObjectKind {
    /// A node.
    Node,
    /// A candidate of coordinated leader election.
    LeaseCandidate,
    /// Any other.
    Other,
}

/// The permission that a request needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// The verbs, with commas between them.
    pub verbs: &'static str,
    /// The resource, with its group.
    pub resource: String,
    /// The namespace; `None` for all, and for what is in none.
    pub namespace: Option<String>,
}

impl Error {
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
            Self::Unreachable { certificate, .. } => certificate.is_none(),
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
}

/// The chain of causes in one line, without the repetitions that wrapping errors bring.
pub fn causes(error: &(dyn std::error::Error + 'static)) -> String {
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
    fn causes_are_said_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("connecting: {0}")]
        struct Outer(#[source] io::Error);
        let error = Outer(io::Error::other("refused"));
        assert_eq!(causes(&error), "connecting: refused");
    }
}
