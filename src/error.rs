//! What a command can end with, and the one place that turns it into an exit code and a hint for what to do
//! next.

use std::{fmt, io, time::Duration};

use kube_leases::{self as library, BadCertificate, CredentialOrigin, ObjectKind, Permission};
pub use library::causes;

use kube_leases::client::Refusal;

use crate::{exit::ExitCode, paste::pasted};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// How to enable coordinated leader election, and what works without it.
pub const NO_COORDINATION: &str = "coordinated leader election is off: it needs \
     --feature-gates=CoordinatedLeaderElection=true and --runtime-config=coordination.k8s.io/v1beta1=true (on \
     1.32 v1alpha2, on 1.31 v1alpha1) on every kube-apiserver, and the same feature gate on the components; 'kubectl lease leaders' shows who \
     leads without it";

/// Why a command failed.
#[derive(Debug)]
pub enum Error {
    /// The command line is wrong.
    Usage { message: String, hint: Option<String> },
    /// There is no usable kubeconfig, or it cannot be read.
    Kubeconfig { message: String, hint: Option<String> },
    /// Something that was named does not exist.
    NotFound { message: String, hint: Option<String> },
    /// Held by another, or the condition asked about is false.
    Held { message: String, hint: Option<String> },
    /// Refused, or declined at the prompt.
    Refused { message: String, hint: Option<String> },
    /// Conflict: an object changed after it was read.
    LostRace { message: String },
    /// The lease was lost while its command ran, and the command was ended.
    LeaseLost { message: String },
    /// A process that the command started could not be ended: its lease was not released.
    NotEnded { message: String, hint: Option<String> },
    /// The condition was not met in the time that was given.
    TimedOut { message: String },
    /// Writing the output failed.
    Output(io::Error),
    /// Ctrl-C.
    Interrupted,
    /// What the library says: of the connection, the API, or a lease.
    Library(library::Error),
}

impl From<library::Error> for Error {
    fn from(error: library::Error) -> Self {
        use library::Error as Lib;
        match error {
            Lib::Invalid { message } => Self::Usage { message, hint: None },
            Lib::NotFound { kind, message } => Self::NotFound { message, hint: not_found_hint(kind) },
            Lib::Refused { message } => Self::Refused { message, hint: None },
            Lib::LostRace { message } => Self::LostRace { message },
            Lib::LeaseLost { message } => Self::LeaseLost { message },
            Lib::TimedOut { message } => Self::TimedOut { message },
            Lib::Interrupted => Self::Interrupted,
            error => Self::Library(error),
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Output(cause) => Some(cause),
            Self::Library(cause) => cause.source(),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage { message, .. }
            | Self::Kubeconfig { message, .. }
            | Self::NotFound { message, .. }
            | Self::Held { message, .. }
            | Self::Refused { message, .. }
            | Self::LostRace { message }
            | Self::LeaseLost { message }
            | Self::NotEnded { message, .. }
            | Self::TimedOut { message } => f.write_str(message),
            Self::Output(cause) => write!(f, "cannot write the output: {cause}"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Library(error) => error.fmt(f),
        }
    }
}

impl Error {
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: None }
    }

    /// The code that the process exits with.
    pub fn exit_code(&self) -> ExitCode {
        use library::Error as Lib;
        match self {
            Self::Usage { .. } => ExitCode::Usage,
            // What the server cannot make sense of is what was typed, such as a field selector.
            Self::Library(Lib::Api { code: 400, reason, .. }) if reason == "BadRequest" => ExitCode::Usage,
            Self::NotFound { .. } => ExitCode::NotFound,
            Self::Held { .. } => ExitCode::Held,
            Self::Refused { .. } => ExitCode::Refused,
            Self::LostRace { .. } => ExitCode::LostRace,
            Self::LeaseLost { .. } => ExitCode::LeaseLost,
            Self::NotEnded { .. } => ExitCode::NotEnded,
            Self::TimedOut { .. } | Self::Library(Lib::NoAnswer { .. } | Lib::Api { code: 504, .. }) => {
                ExitCode::TimedOut
            }
            Self::Interrupted => ExitCode::Interrupted,
            Self::Library(Lib::Unauthenticated { .. } | Lib::Forbidden { .. } | Lib::Credential { .. }) => {
                ExitCode::Forbidden
            }
            // The reader went away (`… | head`): it has what it wanted.
            Self::Output(cause) if cause.kind() == io::ErrorKind::BrokenPipe => ExitCode::Done,
            Self::Kubeconfig { .. }
            | Self::Output(_)
            | Self::Library(
                Lib::Configuration { .. }
                | Lib::Unreachable { .. }
                | Lib::NotKubernetes { .. }
                | Lib::NotServed { .. }
                | Lib::Api { .. }
                | Lib::BadAnswer { .. }
                | Lib::System(_)
                // These have become errors of our own.
                | Lib::Invalid { .. }
                | Lib::NotFound { .. }
                | Lib::Refused { .. }
                | Lib::LostRace { .. }
                | Lib::LeaseLost { .. }
                | Lib::TimedOut { .. }
                | Lib::Interrupted,
            ) => ExitCode::Failed,
        }
    }

    /// What to do next, where there is something to say.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Usage { hint, .. }
            | Self::Kubeconfig { hint, .. }
            | Self::NotFound { hint, .. }
            | Self::Held { hint, .. }
            | Self::Refused { hint, .. }
            | Self::NotEnded { hint, .. } => hint.clone(),
            Self::Library(error) => library_hint(error),
            Self::LostRace { .. }
            | Self::LeaseLost { .. }
            | Self::TimedOut { .. }
            | Self::Output(_)
            | Self::Interrupted => None,
        }
    }

    /// Whether there is nothing to say: the user pressed Ctrl-C, or the reader closed the pipe.
    pub fn is_silent(&self) -> bool {
        matches!(self, Self::Interrupted) || self.exit_code() == ExitCode::Done
    }

    /// What the library says, if that is what it is.
    pub fn library(&self) -> Option<&library::Error> {
        match self {
            Self::Library(error) => Some(error),
            _ => None,
        }
    }

    /// Whether an object changed, or was created, since it was read.
    pub fn is_conflict(&self) -> bool {
        self.library().is_some_and(library::Error::is_conflict)
    }

    /// Whether what was asked for does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. }) || self.library().is_some_and(library::Error::is_not_found)
    }

    /// Whether a permission that was there before is missing for a moment, as after a server's restart.
    pub fn may_pass(&self, refusal: &mut Refusal) -> bool {
        self.library().is_some_and(|error| refusal.may_pass(error))
    }

    /// How long to wait before the next attempt.
    pub fn pause(&self, otherwise: Duration) -> Duration {
        self.library().map_or(otherwise, |error| error.pause(otherwise))
    }

    /// Whether a write that failed so may have been done all the same.
    pub fn is_unclear(&self) -> bool {
        self.library().is_some_and(library::Error::is_unclear)
    }

    /// Whether a retry may help: an outage, an overload, a lost race.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::LostRace { .. }) || self.library().is_some_and(library::Error::is_transient)
    }
}

fn not_found_hint(kind: ObjectKind) -> Option<String> {
    let hint = match kind {
        ObjectKind::Node => "'kubectl get nodes' lists them",
        ObjectKind::LeaseCandidate => {
            "a component that restarts comes back under a new name: 'kubectl lease candidates' lists them"
        }
        ObjectKind::Other => return None,
    };
    Some(hint.to_owned())
}

fn library_hint(error: &library::Error) -> Option<String> {
    use library::Error as Lib;
    let hint = match error {
        Lib::Credential { origin: CredentialOrigin::Plugin { install_hint: Some(hint) }, .. } => hint,
        Lib::Credential { origin: CredentialOrigin::Plugin { install_hint: None }, .. } => {
            "run it by itself: 'kubectl config view --minify' shows its command and its arguments"
        }
        Lib::NotKubernetes { .. } => "'kubectl config view --minify' shows the address that is used",
        Lib::Unreachable { certificate: Some(BadCertificate::Authority), .. } => {
            "the server's certificate is its own authority (CA:TRUE), which kubectl takes and kubectl lease \
             does not: have it issued by an authority, or without CA:TRUE"
        }
        Lib::Unreachable { certificate: Some(BadCertificate::Invalid), .. } => {
            "the server's certificate is not signed by the cluster's certificate-authority, or not for \
             this name: check the context, or --certificate-authority and --tls-server-name"
        }
        Lib::Unreachable { .. } => {
            "check that this is the cluster you mean (kubectl config current-context) and that its \
             control plane is up; --server tries another apiserver"
        }
        Lib::NoAnswer { .. } => "--request-timeout waits longer; --server tries another apiserver",
        Lib::Unauthenticated { .. } => {
            "log in again: the credentials may have expired; 'kubectl config view --minify' shows where they are from"
        }
        // An anonymous user needs credentials, not more permissions.
        Lib::Forbidden { message, .. } if message.contains("\"system:anonymous\"") => {
            "no credentials were sent: check the kubeconfig's user, or give --token or \
             --client-certificate and --client-key"
        }
        Lib::Forbidden { .. } if error.is_denied_by_policy() => {
            "a policy of this cluster refuses it, whatever else you may do"
        }
        Lib::Forbidden { message, .. } if message.contains(" cannot impersonate") => {
            "leave out --as, --as-group, --as-uid and --as-user-extra; to use them takes permission to impersonate \
             these users and groups"
        }
        Lib::Forbidden { message, needs } => return Some(grant(needs, user_in(message))),
        Lib::NotServed { api, .. } if api.starts_with("leasecandidates") => NO_COORDINATION,
        Lib::Configuration { .. }
        | Lib::Invalid { .. }
        | Lib::Credential { origin: CredentialOrigin::File, .. }
        | Lib::NotFound { .. }
        | Lib::NotServed { .. }
        | Lib::LostRace { .. }
        | Lib::LeaseLost { .. }
        | Lib::Refused { .. }
        | Lib::TimedOut { .. }
        | Lib::Api { .. }
        | Lib::BadAnswer { .. }
        | Lib::System(_)
        | Lib::Interrupted => return None,
    };
    Some(hint.to_owned())
}

/// The user that a 403 names: `User "jane" cannot list resource …`.
fn user_in(message: &str) -> Option<&str> {
    message.split_once("User \"")?.1.split_once('"').map(|(user, _)| user)
}

/// How an administrator grants a permission: a role that is named for it, and its binding, as commands to type.
fn grant(needs: &Permission, user: Option<&str>) -> String {
    let Permission { verbs, resource, namespace } = needs;
    let (kind, scope) = match namespace {
        Some(namespace) => ("role", format!(" -n {namespace}")),
        None => ("clusterrole", String::new()),
    };
    let (plural, _) = resource.split_once('.').unwrap_or((resource, ""));
    let role = format!("{plural}-{verbs}").replace(['/', ','], "-");
    let user = user.map_or("USER", |user| pasted(user, "USER"));
    let binding = format!("{role}:{}", user.replace('/', "-"));
    let mut words = format!(
        "an administrator can grant it with 'kubectl create {kind} {role}{scope} --verb={verbs} \
         --resource={resource}' and 'kubectl create {kind}binding {binding}{scope} --{kind}={role} --user={user}'"
    );
    if namespace.is_none() && resource.starts_with("lease") {
        words.push_str("; or look in one namespace, with -n, where you have it");
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_its_exit_code() {
        use library::Error as Lib;
        let server = || "https://127.0.0.1:6443".to_owned();
        let message = String::new;
        let api = |code, reason: &str| {
            Error::Library(Lib::Api { code, reason: reason.into(), message: message(), retry_after: None })
        };
        let needs =
            Permission { verbs: "list", resource: "leases.coordination.k8s.io".into(), namespace: None };
        for (error, code) in [
            (Error::usage("x"), 2),
            (Error::Kubeconfig { message: message(), hint: None }, 1),
            (Error::Library(Lib::Credential { message: message(), origin: CredentialOrigin::File }), 7),
            (Error::NotFound { message: message(), hint: None }, 3),
            (Error::Library(Lib::Unreachable { server: server(), cause: message(), certificate: None }), 1),
            (Error::Library(Lib::NoAnswer { server: server(), after: Duration::from_secs(1) }), 124),
            (Error::Library(Lib::Unauthenticated { server: server(), message: message() }), 7),
            (Error::Library(Lib::Forbidden { message: message(), needs }), 7),
            (Error::Library(Lib::NotServed { server: server(), api: message() }), 1),
            (api(500, "InternalError"), 1),
            (api(400, "BadRequest"), 2),
            // Of something that is no kube-apiserver.
            (api(400, ""), 1),
            (api(504, "Timeout"), 124),
            (Error::Library(Lib::BadAnswer { server: server(), cause: message() }), 1),
            (Error::Output(io::ErrorKind::StorageFull.into()), 1),
            (Error::Output(io::ErrorKind::BrokenPipe.into()), 0),
            (Error::Interrupted, 130),
            (Lib::Interrupted.into(), 130),
            (Lib::Invalid { message: message() }.into(), 2),
            (Lib::NotFound { kind: ObjectKind::Node, message: message() }.into(), 3),
            (Lib::LostRace { message: message() }.into(), 5),
            (Lib::Refused { message: message() }.into(), 6),
            (Lib::LeaseLost { message: message() }.into(), 75),
            (Lib::TimedOut { message: message() }.into(), 124),
            (Lib::Configuration { message: message() }.into(), 1),
            (Lib::NotKubernetes { server: server() }.into(), 1),
            (Lib::System(io::ErrorKind::Other.into()).into(), 1),
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
    fn a_missing_permission_is_named_with_the_commands_that_grant_it() {
        let message =
            |user: &str| format!("leases is forbidden: User \"{user}\" cannot list resource \"leases\"");
        let mut needs = Permission {
            verbs: "list,watch",
            resource: "leases.coordination.k8s.io".into(),
            namespace: Some("kube-system".into()),
        };
        assert_eq!(
            grant(&needs, user_in(&message("jane"))),
            "an administrator can grant it with 'kubectl create role leases-list-watch -n kube-system \
             --verb=list,watch --resource=leases.coordination.k8s.io' and 'kubectl create rolebinding \
             leases-list-watch:jane -n kube-system --role=leases-list-watch --user=jane'"
        );
        needs.namespace = None;
        let words = grant(&needs, user_in(&message("https://idp/x")));
        assert!(words.contains("kubectl create clusterrole leases-list-watch --verb"), "{words}");
        assert!(words.contains(" leases-list-watch:https:--idp-x --clusterrole"), "{words}");
        // A name that a shell would take apart, and a message of another server.
        for user in [user_in(&message("a; b")), user_in("no")] {
            assert!(grant(&needs, user).contains(" --user=USER'"));
        }
    }
}
