//! Whether a maintenance lease may be released by a command.

use super::{
    holder::{self, Who},
    lease::Lease,
    maintenance::MaintenanceStanding,
    time::ServerTime,
};

/// How a lease may be released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Release {
    /// It is not held.
    Free,
    /// It is held by the user, under this identity.
    Own(Who),
    /// It is another's: by force.
    Anothers {
        /// How it stands.
        standing: MaintenanceStanding,
        /// The holder.
        holder: Who,
    },
    /// It is an administrator's: only as one.
    Administrators {
        /// How it stands.
        standing: MaintenanceStanding,
    },
}

/// Judges a lease as it was read.
pub fn judge_release(lease: &Lease, who: &Who, now: ServerTime) -> Release {
    match MaintenanceStanding::of(Some(&lease.spec), who, now) {
        MaintenanceStanding::Free => Release::Free,
        standing if holder::is_reserved(lease.holder()) && !who.is_admin() => {
            Release::Administrators { standing }
        }
        MaintenanceStanding::Ours { .. } => Release::Own(who.clone()),
        standing => Release::Anothers { standing, holder: Who::exactly(lease.holder()) },
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::*;
    use crate::rules::maintenance::tests::lease;

    #[test]
    fn what_may_be_released_and_how() {
        let now = ServerTime(Timestamp::UNIX_EPOCH + SignedDuration::from_hours(500_000));
        let (jane, admin) = (Who::exactly("jane@laptop"), Who::exactly("kubeadm:jane@laptop"));
        for (holder, age, who, how) in [
            ("", 10, &jane, "free"),
            ("jane@laptop", 10, &jane, "jane@laptop"),
            // Its time matters only to others.
            ("jane@laptop", 90, &jane, "jane@laptop"),
            ("jane@laptop", 10, &admin, "kubeadm:jane@laptop"),
            ("kubeadm:jane@laptop", 10, &admin, "kubeadm:jane@laptop"),
            ("kubeadm:jane@laptop", 10, &jane, "administrator's"),
            ("kubeadm:john@desk", 10, &jane, "administrator's"),
            ("kubeadm-1", 90, &jane, "administrator's"),
            ("kubeadm:john@desk", 10, &admin, "force kubeadm:john@desk"),
            ("john@desk", 10, &jane, "force john@desk"),
            ("john@desk", 90, &jane, "force john@desk"),
        ] {
            let judged = match judge_release(&lease(holder, age, 60, now), who, now) {
                Release::Free => "free".to_owned(),
                Release::Own(who) => who.identity(),
                Release::Anothers { holder, .. } => format!("force {holder}"),
                Release::Administrators { .. } => "administrator's".to_owned(),
            };
            assert_eq!(judged, how, "{holder} by {who}");
        }
        let malformed = Lease {
            spec: k8s_openapi::api::coordination::v1::LeaseSpec {
                holder_identity: Some("john@desk".into()),
                ..Default::default()
            },
            ..Lease::default()
        };
        let judged = judge_release(&malformed, &jane, now);
        assert!(
            matches!(&judged, Release::Anothers { standing: MaintenanceStanding::Malformed { .. }, .. }),
            "{judged:?}"
        );
    }
}
