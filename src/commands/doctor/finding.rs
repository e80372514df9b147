//! What the diagnosis consists of: one finding for each check.

use std::fmt;

use jiff::SignedDuration;
use serde::{Serialize, ser::SerializeMap as _};

use kube_leases::rules::{controller::Controller, trouble::Trouble};

use super::permissions::Missing;

pub(super) const AGAIN: &str = "try again; the other checks do not depend on it";
pub(super) const LOG_IN: &str = "log in: you are not authenticated; 'kubectl auth whoami' shows it";
/// What to do about a missing permission.
const ROLE: &str = "the roles below give permission to read it";

/// How well something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    Warn,
    Fail,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        })
    }
}

/// What was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    Server,
    Clock,
    Kubeconfig,
    Apiservers,
    ApiserverClocks,
    CoordinatedElection,
    ElectionController,
    Elections,
    Priority,
    AdmissionPolicies,
    Maintenance,
    Medik8s,
    Permissions,
    /// The permissions that a command needs.
    PermissionsFor(&'static str),
}

impl Check {
    /// The role that gives permission to look at it.
    pub(super) fn role(self) -> &'static str {
        match self {
            Self::Apiservers | Self::ApiserverClocks | Self::ElectionController => "apiservers",
            Self::Elections => "candidates",
            _ => "doctor",
        }
    }
}

impl Check {
    /// The same for programs; what of permissions, is told beside it.
    pub fn code(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Clock => "clock",
            Self::Kubeconfig => "kubeconfig",
            Self::Apiservers => "apiservers",
            Self::ApiserverClocks => "apiserver-clocks",
            Self::CoordinatedElection => "coordinated-election",
            Self::ElectionController => "election-controller",
            Self::Elections => "elections",
            Self::Priority => "priority",
            Self::AdmissionPolicies => "admission-policies",
            Self::Maintenance => "maintenance",
            Self::Medik8s => "medik8s",
            Self::Permissions | Self::PermissionsFor(_) => "permissions",
        }
    }

    /// The command whose permissions these are.
    pub fn command(self) -> Option<&'static str> {
        match self {
            Self::PermissionsFor(command) => Some(command),
            _ => None,
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "server",
            Self::Clock => "clock",
            Self::Kubeconfig => "kubeconfig",
            Self::Apiservers => "apiservers",
            Self::ApiserverClocks => "apiserver clocks",
            Self::CoordinatedElection => "coordinated election",
            Self::ElectionController => "election controller",
            Self::Elections => "elections",
            Self::Priority => "priority",
            Self::AdmissionPolicies => "admission policies",
            Self::Maintenance => "maintenance",
            Self::Medik8s => "medik8s",
            Self::Permissions => "permissions",
            Self::PermissionsFor(command) => return write!(f, "permissions: {command}"),
        })
    }
}

/// Something that was looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    #[serde(flatten)]
    pub check: Check,
    pub level: Level,
    #[serde(flatten)]
    pub found: Found,
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// It could not be looked at for want of permission.
    #[serde(skip)]
    pub forbidden: bool,
    /// The permissions that a command lacks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
    /// What an administrator types to grant them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<String>,
}

impl Serialize for Check {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let command = self.command();
        let mut fields = to.serialize_map(Some(1 + usize::from(command.is_some())))?;
        fields.serialize_entry("check", self.code())?;
        if let Some(command) = command {
            fields.serialize_entry("command", command)?;
        }
        fields.end()
    }
}

/// What was found, for programs: a code with its parameters. Codes are never renamed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "code", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Found {
    /// It cannot be read without permission.
    Forbidden,
    /// It could not be read.
    Unreadable {
        error: String,
    },
    Version {
        version: String,
    },
    VersionTooOld {
        version: String,
        oldest: String,
    },
    ClockAgrees,
    /// By so much is the server's clock ahead of this machine's.
    ClockDiffers {
        server_ahead_seconds: f64,
    },
    KubeconfigFine,
    KubeconfigOdd,
    NamespaceMissing {
        namespace: String,
    },
    ApiserversAlive {
        count: usize,
    },
    ApiserversNotAlive {
        alive: usize,
        count: usize,
    },
    NoIdentities,
    ClocksNotCompared,
    OneClock,
    ClocksDiffer {
        differences: Vec<ClockDifference>,
    },
    ClocksAgree {
        count: usize,
        spread_seconds: f64,
        not_renewed: Vec<String>,
    },
    OneClockHeard {
        host: String,
        not_renewed: Vec<String>,
    },
    NoClockHeard {
        not_renewed: Vec<String>,
    },
    CoordinationServed {
        version: &'static str,
    },
    CoordinationOff,
    ControllerAlive,
    /// No renewal is known of one without the time since.
    ControllerSilent {
        holder: String,
        seconds_since_renewal: Option<i64>,
    },
    ControllerMissing,
    NoElections,
    ElectionsFine {
        count: usize,
    },
    PriorityNative,
    PriorityPinned,
    PoliciesServed,
    PoliciesNotServed,
    NoMaintenanceNamespace,
    NotGuarded,
    GuardAltered,
    Guarded {
        administrator: bool,
    },
    Medik8sInstalled,
    Medik8sAbsent,
    Granted,
    /// The command does not work.
    PermissionsMissing,
    /// The command works, but for this.
    PermissionsIncomplete {
        without: Vec<&'static str>,
    },
    /// What is wrong with an election, with the code of that.
    #[serde(untagged)]
    Trouble {
        namespace: String,
        lease_name: String,
        #[serde(flatten)]
        trouble: Trouble,
    },
}

/// Two clocks that differ; or one from the server's, at least by so much.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClockDifference {
    pub ahead: String,
    pub seconds: f64,
    pub of: Option<String>,
}

impl Found {
    /// Of an election controller that does not run.
    pub(super) fn controller(controller: &Controller) -> Self {
        match controller {
            Controller::Alive { .. } => Self::ControllerAlive,
            Controller::Silent { holder, ago } => {
                let seconds = (*ago != SignedDuration::MAX).then(|| ago.as_secs());
                Self::ControllerSilent { holder: holder.clone(), seconds_since_renewal: seconds }
            }
            Controller::Missing => Self::ControllerMissing,
            Controller::Unseen => Self::Forbidden,
        }
    }
}

/// What was found out, or why it could not be.
pub type Seen<T> = Result<T, Unseen>;

/// Why something could not be found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unseen {
    Forbidden,
    Failed(String),
}

impl Unseen {
    pub(super) fn found(&self) -> Found {
        match self {
            Self::Forbidden => Found::Forbidden,
            Self::Failed(error) => Found::Unreadable { error: error.clone() },
        }
    }
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden => f.write_str("cannot be read: no permission"),
            Self::Failed(why) => write!(f, "cannot be read: {why}"),
        }
    }
}

impl Finding {
    pub(super) fn new(check: Check, level: Level, found: Found, message: impl Into<String>) -> Self {
        let message = message.into();
        let (missing, grants) = (Vec::new(), Vec::new());
        Self { check, level, found, message, hint: None, forbidden: false, missing, grants }
    }

    pub(super) fn ok(check: Check, found: Found, message: impl Into<String>) -> Self {
        Self::new(check, Level::Ok, found, message)
    }

    pub(super) fn warn(
        check: Check,
        found: Found,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { hint: Some(hint.into()), ..Self::new(check, Level::Warn, found, message) }
    }

    /// Something that is wrong with an election, and what to do about it.
    pub fn of_election(level: Level, found: Found, message: String, hint: String) -> Self {
        Self { hint: Some(hint), ..Self::new(Check::Elections, level, found, message) }
    }

    /// What could not be looked at is no reason to say that it is well.
    pub(super) fn unseen(check: Check, what: &str, why: &Unseen) -> Self {
        let hint = match why {
            Unseen::Forbidden => ROLE,
            Unseen::Failed(_) => AGAIN,
        };
        let finding = Self::warn(check, why.found(), format!("{what} {why}").trim_start(), hint);
        Self { forbidden: *why == Unseen::Forbidden, ..finding }
    }
}
