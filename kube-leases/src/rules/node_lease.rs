//! The state of a node's maintenance lease, as it is listed.

use super::maintenance::MaintenanceStanding;

/// The state of a node's maintenance lease for one holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeLeaseState {
    /// There is no lease, or it was released.
    Free,
    /// Held by this holder.
    Yours,
    /// Held by another holder.
    Held,
    /// Held by an administrator, until released.
    Admin,
    /// No longer held: its time has run out.
    Expired,
    /// Its fields do not tell whether it is held.
    Malformed,
    /// It has no holder, and a medik8s operator holds the node.
    Medik8s,
    /// Its lease is being deleted.
    Terminating,
}

impl NodeLeaseState {
    /// `is_valid` is whether the lease is held at this moment, `terminating` whether it has a deletion timestamp,
    /// `medik8s` whether a medik8s operator holds the node.
    pub fn of(standing: &MaintenanceStanding, is_valid: bool, terminating: bool, medik8s: bool) -> Self {
        match standing {
            MaintenanceStanding::Held { .. } => Self::Held,
            MaintenanceStanding::Admin { .. } => Self::Admin,
            MaintenanceStanding::Malformed { .. } => Self::Malformed,
            MaintenanceStanding::Free
            | MaintenanceStanding::Expired { .. }
            | MaintenanceStanding::Ours { .. }
                if terminating =>
            {
                Self::Terminating
            }
            MaintenanceStanding::Free
            | MaintenanceStanding::Expired { .. }
            | MaintenanceStanding::Ours { .. }
                if !is_valid && medik8s =>
            {
                Self::Medik8s
            }
            MaintenanceStanding::Free => Self::Free,
            MaintenanceStanding::Expired { .. } => Self::Expired,
            MaintenanceStanding::Ours { until: Some(_), .. } if !is_valid => Self::Expired,
            MaintenanceStanding::Ours { .. } => Self::Yours,
        }
    }

    /// Whether no other holder keeps this one off the node.
    pub fn may_be_touched(self) -> bool {
        matches!(self, Self::Free | Self::Expired | Self::Yours)
    }

    /// Whether the lease is held by any holder.
    pub fn is_held(self) -> bool {
        !matches!(self, Self::Free | Self::Expired)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_lease_that_is_held_by_another_stays_held_whatever_else_is_true() {
        let until = Timestamp::UNIX_EPOCH;
        let ours = || MaintenanceStanding::Ours { until: Some(until), admin: false };
        let held = || MaintenanceStanding::Held { holder: "jane".into(), until };
        let expired = || MaintenanceStanding::Expired { holder: "jane".into(), since: until };
        for (standing, is_valid, terminating, medik8s, state) in [
            (MaintenanceStanding::Free, false, false, false, NodeLeaseState::Free),
            (MaintenanceStanding::Free, false, false, true, NodeLeaseState::Medik8s),
            (MaintenanceStanding::Free, false, true, true, NodeLeaseState::Terminating),
            (expired(), false, false, false, NodeLeaseState::Expired),
            (expired(), false, false, true, NodeLeaseState::Medik8s),
            (ours(), true, false, false, NodeLeaseState::Yours),
            (ours(), true, false, true, NodeLeaseState::Yours),
            (ours(), false, false, false, NodeLeaseState::Expired),
            (ours(), false, false, true, NodeLeaseState::Medik8s),
            (ours(), true, true, false, NodeLeaseState::Terminating),
            (
                MaintenanceStanding::Ours { until: None, admin: true },
                true,
                false,
                false,
                NodeLeaseState::Yours,
            ),
            (held(), true, true, true, NodeLeaseState::Held),
            (
                MaintenanceStanding::Admin { holder: "kubeadm:x".into() },
                true,
                true,
                true,
                NodeLeaseState::Admin,
            ),
        ] {
            assert_eq!(NodeLeaseState::of(&standing, is_valid, terminating, medik8s), state, "{standing:?}");
            let free = [NodeLeaseState::Free, NodeLeaseState::Expired, NodeLeaseState::Yours];
            assert_eq!(state.may_be_touched(), free.contains(&state), "{state:?}");
        }
    }
}
