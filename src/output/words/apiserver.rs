//! Words for the identities of kube-apiservers.

use kube_leases::rules::identity::{ApiserverEvent, ApiserverState};

/// What the last renewal says, as in the tables and in `-o json`.
pub fn state(state: ApiserverState) -> &'static str {
    match state {
        ApiserverState::Alive => "alive",
        ApiserverState::Late => "late",
        ApiserverState::Silent => "silent",
        ApiserverState::Expired => "expired",
        ApiserverState::Skewed => "skewed",
        ApiserverState::Unknown => "unknown",
    }
}

/// What happened to a kube-apiserver.
pub fn happened(happened: ApiserverEvent) -> &'static str {
    match happened {
        ApiserverEvent::Joined => "joined",
        ApiserverEvent::Left => "left",
        ApiserverEvent::Restarted => "restarted",
        ApiserverEvent::Became(now_is) => state(now_is),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_reads_the_same_in_tables_and_in_json() {
        for one in [
            ApiserverState::Alive,
            ApiserverState::Late,
            ApiserverState::Silent,
            ApiserverState::Expired,
            ApiserverState::Skewed,
            ApiserverState::Unknown,
        ] {
            assert_eq!(serde_json::to_value(one).unwrap(), state(one));
            assert_eq!(happened(ApiserverEvent::Became(one)), state(one));
        }
    }
}
