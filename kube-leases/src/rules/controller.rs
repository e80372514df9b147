//! The election controller: one kube-apiserver runs it, the one that holds its lease.

use jiff::SignedDuration;

use super::{
    lease::{Lease, host},
    time::ServerTime,
};

/// The namespace and the name of the lease of the election controller.
pub const LEASE: (&str, &str) = ("kube-system", "leader-election-controller");

/// Whether the election controller runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Controller {
    /// The kube-apiserver on this host renewed its lease so long ago.
    Alive {
        /// The host of the holder.
        holder: String,
        /// The time since the last renewal.
        ago: SignedDuration,
    },
    /// The lease of this host has expired.
    Silent {
        /// The host of the holder.
        holder: String,
        /// The time since the last renewal; the maximum where there was none.
        ago: SignedDuration,
    },
    /// There is no lease, or no kube-apiserver holds it.
    Missing,
    /// There is no permission to read the lease.
    Unseen,
}

impl Controller {
    /// By its lease, which is among these if there is one.
    pub fn among<'a>(mut leases: impl Iterator<Item = &'a Lease>, now: ServerTime) -> Self {
        let is_it = |it: &&Lease| (it.metadata.namespace.as_str(), it.metadata.name.as_str()) == LEASE;
        Self::of(leases.find(is_it), now)
    }

    /// By its lease.
    pub fn of(lease: Option<&Lease>, now: ServerTime) -> Self {
        let Some(lease) = lease.filter(|lease| !lease.holder().is_empty()) else { return Self::Missing };
        let ago = lease.renewed().map_or(SignedDuration::MAX, |renewed| now.since(renewed));
        let holder = host(lease.holder()).to_owned();
        if lease.expires().is_some_and(|until| until >= now.0) {
            Self::Alive { holder, ago }
        } else {
            Self::Silent { holder, ago }
        }
    }

    /// Whether it is known that no kube-apiserver runs it.
    pub fn is_down(&self) -> bool {
        matches!(self, Self::Silent { .. } | Self::Missing)
    }

    /// Whether it runs; `None` where that cannot be seen.
    pub fn is_alive(&self) -> Option<bool> {
        match self {
            Self::Alive { .. } => Some(true),
            Self::Silent { .. } | Self::Missing => Some(false),
            Self::Unseen => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::lease::Metadata;
    use jiff::Timestamp;
    use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};

    #[test]
    fn the_controller_runs_where_its_lease_is_renewed() {
        let now = ServerTime(Timestamp::UNIX_EPOCH + SignedDuration::from_hours(500_000));
        let lease = |namespace: &str, holder: Option<&str>, renewed: Option<i64>| Lease {
            metadata: Metadata { namespace: namespace.into(), name: LEASE.1.into(), ..Metadata::default() },
            spec: LeaseSpec {
                holder_identity: holder.map(str::to_owned),
                lease_duration_seconds: Some(15),
                renew_time: renewed.map(|ago| MicroTime(now.0 - SignedDuration::from_secs(ago))),
                ..LeaseSpec::default()
            },
        };
        let (holder, ago) = (|| "apiserver-x".to_owned(), SignedDuration::from_secs);
        for (lease, wanted) in [
            (
                lease(LEASE.0, Some("apiserver-x_1"), Some(15)),
                Controller::Alive { holder: holder(), ago: ago(15) },
            ),
            (
                lease(LEASE.0, Some("apiserver-x_1"), Some(16)),
                Controller::Silent { holder: holder(), ago: ago(16) },
            ),
            (
                lease(LEASE.0, Some("apiserver-x_1"), None),
                Controller::Silent { holder: holder(), ago: SignedDuration::MAX },
            ),
            (lease(LEASE.0, Some(""), Some(1)), Controller::Missing),
            (lease(LEASE.0, None, None), Controller::Missing),
            (lease("shop", Some("apiserver-x_1"), Some(1)), Controller::Missing),
        ] {
            let found = Controller::among([&lease].into_iter(), now);
            assert_eq!(found, wanted, "{lease:?}");
            assert_eq!(found.is_down(), found.is_alive() == Some(false));
        }
        assert_eq!(Controller::among([].into_iter(), now), Controller::Missing);
        assert!(!Controller::Unseen.is_down());
    }
}
