//! Whether a maintenance lease may be renewed by a command that does not keep it.

use super::{holder::Who, lease::Lease, maintenance::MaintenanceStanding, time::ServerTime};

/// Why a lease may not be renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRenewable {
    /// It is held, but not as an administrator.
    NotAsAdministrator,
    /// It had expired, and medik8s works on the node: what has run out is taken anew, and so by the rules for that.
    Medik8s {
        /// The holder of medik8s' lease.
        holder: String,
    },
    /// It is free, another's, or held as an administrator by the same user.
    NotHeld {
        /// How it stands.
        standing: MaintenanceStanding,
        /// Whether the same user holds it as an administrator.
        as_administrator: bool,
    },
}

/// Judges a lease as it was read; `medik8s` is the holder of medik8s' lease of the node.
///
/// # Errors
/// Why it may not be renewed.
pub fn judge_renewal(
    lease: Option<&Lease>,
    medik8s: Option<&str>,
    who: &Who,
    now: ServerTime,
) -> Result<(), NotRenewable> {
    match MaintenanceStanding::of(lease.map(|lease| &lease.spec), who, now) {
        MaintenanceStanding::Ours { admin: false, .. } if who.is_admin() => {
            Err(NotRenewable::NotAsAdministrator)
        }
        standing @ MaintenanceStanding::Ours { .. } => match medik8s {
            Some(holder) if !standing.is_valid(now) => {
                Err(NotRenewable::Medik8s { holder: holder.to_owned() })
            }
            _ => Ok(()),
        },
        standing => {
            let as_administrator = lease.is_some_and(|lease| who.holds_as_administrator(lease.holder()));
            Err(NotRenewable::NotHeld { standing, as_administrator })
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::*;
    use crate::rules::maintenance::tests::lease;

    #[test]
    fn what_may_be_renewed() {
        let now = ServerTime(Timestamp::UNIX_EPOCH + SignedDuration::from_hours(500_000));
        let (jane, admin) = (Who::exactly("jane@laptop"), Who::exactly("kubeadm:jane@laptop"));
        for (holder, age, medik8s, who, judged) in [
            (Some("jane@laptop"), 10, None, &jane, "yes"),
            // It is held already, whatever medik8s does there.
            (Some("jane@laptop"), 10, Some("nmo"), &jane, "yes"),
            (Some("jane@laptop"), 90, None, &jane, "yes"),
            (Some("jane@laptop"), 90, Some("nmo"), &jane, "expired, and medik8s: nmo"),
            (None, 0, None, &jane, "not held"),
            (Some(""), 10, None, &jane, "not held"),
            (Some("john@desk"), 10, None, &jane, "not held"),
            (Some("john@desk"), 90, None, &jane, "not held"),
            (Some("kubeadm:john@desk"), 10, None, &jane, "not held"),
            (Some("kubeadm:jane@laptop"), 10, None, &jane, "as an administrator"),
            (Some("kubeadm:jane@laptop"), 10, None, &admin, "yes"),
            // An administrator's has no end.
            (Some("kubeadm:jane@laptop"), 90, Some("nmo"), &admin, "yes"),
            (Some("jane@laptop"), 10, None, &admin, "not as an administrator"),
        ] {
            let lease = holder.map(|holder| lease(holder, age, 60, now));
            let outcome = match judge_renewal(lease.as_ref(), medik8s, who, now) {
                Ok(()) => "yes".to_owned(),
                Err(NotRenewable::NotAsAdministrator) => "not as an administrator".to_owned(),
                Err(NotRenewable::Medik8s { holder }) => format!("expired, and medik8s: {holder}"),
                Err(NotRenewable::NotHeld { as_administrator: true, .. }) => "as an administrator".to_owned(),
                Err(NotRenewable::NotHeld { .. }) => "not held".to_owned(),
            };
            assert_eq!(outcome, judged, "{holder:?} by {who}, {age} seconds after its renewal, {medik8s:?}");
        }
    }
}
