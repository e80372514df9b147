//! A controller by its kind and name.

use std::fmt;

use serde::{Serialize, Serializer};

use super::lease::Owner;

/// A controller in the namespace that is spoken of. It is shown, and serialised, as `Kind/name`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerRef {
    /// Its kind, such as `Deployment`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl ControllerRef {
    /// Of this kind and name.
    pub fn new(kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self { kind: kind.into(), name: name.into() }
    }

    /// Whether it is a Job: it is suspended, and not scaled.
    pub fn is_job(&self) -> bool {
        self.kind == "Job"
    }

    /// As kubectl takes it.
    pub fn resource(&self) -> String {
        self.to_string().to_lowercase()
    }
}

impl From<&Owner> for ControllerRef {
    fn from(owner: &Owner) -> Self {
        Self::new(&owner.kind, &owner.name)
    }
}

impl fmt::Display for ControllerRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

impl Serialize for ControllerRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_is_shown_and_serialised_in_one_word() {
        let job = ControllerRef::new("Job", "db");
        assert_eq!(serde_json::to_value(&job).unwrap(), "Job/db");
        assert_eq!((job.to_string().as_str(), job.resource().as_str()), ("Job/db", "job/db"));
        assert!(job.is_job() && !ControllerRef::new("JobSet", "Job").is_job());
    }
}
