//! Words for the identities of kube-apiservers.

use kube_leases::rules::identity::{Happened, State};

/// What the last renewal says, as in the tables and in `-o json`.
pub fn state(state: State) -> &'static str {
    match state {
        State::Alive => "alive",
        State::Late => "late",
        State::Silent => "silent",
        State::Expired => "expired",
        State::Skewed => "skewed",
        State::Unknown => "unknown",
    }
}

/// What happened to a kube-apiserver.
pub fn happened(happened: Happened) -> &'static str {
    match happened {
        Happened::Joined => "joined",
        Happened::Left => "left",
        Happened::Restarted => "restarted",
        Happened::Became(now_is) => state(now_is),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_reads_the_same_in_tables_and_in_json() {
        for one in [State::Alive, State::Late, State::Silent, State::Expired, State::Skewed, State::Unknown] {
            assert_eq!(serde_json::to_value(one).unwrap(), state(one));
            assert_eq!(happened(Happened::Became(one)), state(one));
        }
    }
}
