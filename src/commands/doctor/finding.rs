//! What the diagnosis consists of: one finding for each check.

use std::fmt;

use serde::Serialize;

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    #[serde(serialize_with = "in_words")]
    pub check: Check,
    pub level: Level,
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

fn in_words<S: serde::Serializer>(check: &Check, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(check)
}

/// What was found out, or why it could not be.
pub type Seen<T> = Result<T, Unseen>;

/// Why something could not be found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unseen {
    Forbidden,
    Failed(String),
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
    pub(super) fn new(check: Check, level: Level, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { check, level, message, hint: None, forbidden: false, missing: Vec::new(), grants: Vec::new() }
    }

    pub(super) fn ok(check: Check, message: impl Into<String>) -> Self {
        Self::new(check, Level::Ok, message)
    }

    pub(super) fn warn(check: Check, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..Self::new(check, Level::Warn, message) }
    }

    /// Something that is wrong with an election, and what to do about it.
    pub fn of_election(level: Level, message: String, hint: String) -> Self {
        Self { hint: Some(hint), ..Self::new(Check::Elections, level, message) }
    }

    /// What could not be looked at is no reason to say that it is well.
    pub(super) fn unseen(check: Check, what: &str, why: &Unseen) -> Self {
        let hint = match why {
            Unseen::Forbidden => ROLE,
            Unseen::Failed(_) => AGAIN,
        };
        let finding = Self::warn(check, format!("{what} {why}").trim_start(), hint);
        Self { forbidden: *why == Unseen::Forbidden, ..finding }
    }
}
