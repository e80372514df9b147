//! Candidates of a coordinated leader election (KEP-4355), as their `LeaseCandidate` objects show them.
//!
//! A candidate renews its object every five minutes, and at once when the election controller pings
//! it (`pingTime`). Where it does not acknowledge that within five seconds, it does not take part. After half an hour
//! without a renewal it counts for nothing and is collected.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    lease::{Metadata, host},
    time::{self, ServerTime},
};

/// How long a candidate has to acknowledge a ping.
pub const ACKNOWLEDGES_WITHIN: SignedDuration = SignedDuration::from_secs(5);
/// Without a renewal for this long a candidate is none.
pub const VALID_FOR: SignedDuration = SignedDuration::from_mins(30);
/// client-go renews every five minutes. A minute more, and the process behind it is taken for dead.
pub const RENEWS_WITHIN: SignedDuration = SignedDuration::from_mins(6);

/// A `coordination.k8s.io` `LeaseCandidate`, in any version of the API.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Candidate {
    /// Its metadata.
    pub metadata: Metadata,
    /// Its spec.
    pub spec: LeaseCandidateSpec,
}

/// The spec of a `LeaseCandidate`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaseCandidateSpec {
    /// The name of the lease that it is a candidate for, in its own namespace.
    pub lease_name: String,
    /// When the election controller last pinged it.
    #[serde(deserialize_with = "time::read")]
    pub ping_time: Option<Timestamp>,
    /// When it last renewed.
    #[serde(deserialize_with = "time::read")]
    pub renew_time: Option<Timestamp>,
    /// The version of its binary.
    pub binary_version: String,
    /// The version that it works as.
    pub emulation_version: String,
    /// The strategy that it asks for.
    pub strategy: String,
    /// What `v1alpha1` (1.31) had in place of `strategy`.
    pub preferred_strategies: Vec<String>,
    /// No release has it yet.
    pub priority: Option<i32>,
}

/// What a candidate's object says about the process behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CandidateState {
    /// Acknowledged the last ping.
    Acked,
    /// Was never pinged, and renews.
    Unpinged,
    /// Was pinged a moment ago and may still acknowledge it.
    Pending,
    /// Did not acknowledge the last ping, or did not renew when it should have.
    Stale,
    /// Did not renew for half an hour, or never: it counts for nothing.
    Expired,
}

impl Candidate {
    /// The name of its object.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The host it runs on, as its name tells.
    pub fn host(&self) -> &str {
        host(self.name())
    }

    /// Its strategies, the one it likes best first.
    pub fn strategies(&self) -> Vec<&str> {
        if self.spec.preferred_strategies.is_empty() {
            vec![&self.spec.strategy]
        } else {
            self.spec.preferred_strategies.iter().map(String::as_str).collect()
        }
    }

    /// Whether a ping is not acknowledged yet.
    pub fn owes_acknowledgement(&self) -> bool {
        match (self.spec.ping_time, self.spec.renew_time) {
            (Some(pinged), Some(renewed)) => renewed < pinged,
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    /// Whether it should have renewed by itself meanwhile.
    pub fn is_overdue(&self, now: ServerTime) -> bool {
        self.spec.renew_time.is_none_or(|renewed| now.since(renewed) > RENEWS_WITHIN)
    }

    /// What its object says about its process at a moment.
    pub fn state(&self, now: ServerTime) -> CandidateState {
        let Some(renewed) = self.spec.renew_time else { return CandidateState::Expired };
        let age = now.since(renewed);
        if age > VALID_FOR {
            return CandidateState::Expired;
        }
        match self.spec.ping_time {
            Some(pinged) if self.owes_acknowledgement() => {
                if now.since(pinged) < ACKNOWLEDGES_WITHIN {
                    CandidateState::Pending
                } else {
                    CandidateState::Stale
                }
            }
            _ if self.is_overdue(now) => CandidateState::Stale,
            None => CandidateState::Unpinged,
            Some(_) => CandidateState::Acked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_times_of_a_candidate_tell() {
        let now = ServerTime(Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1000));
        for (renewed, pinged, state) in [
            (Some(1), None, CandidateState::Unpinged),
            (Some(360), None, CandidateState::Unpinged),
            (Some(361), None, CandidateState::Stale),
            (Some(10), Some(10), CandidateState::Acked),
            (Some(10), Some(20), CandidateState::Acked),
            (Some(400), Some(500), CandidateState::Stale),
            (Some(10), Some(4), CandidateState::Pending),
            (Some(1799), Some(4), CandidateState::Pending),
            (Some(10), Some(5), CandidateState::Stale),
            (Some(1800), Some(5), CandidateState::Stale),
            (Some(1801), Some(1), CandidateState::Expired),
            (Some(1801), Some(1900), CandidateState::Expired),
            (None, None, CandidateState::Expired),
            (None, Some(1), CandidateState::Expired),
            (Some(-60), None, CandidateState::Unpinged), // another clock is ahead
        ] {
            let ago = |seconds: i64| now.0 - SignedDuration::from_secs(seconds);
            let spec = LeaseCandidateSpec {
                renew_time: renewed.map(ago),
                ping_time: pinged.map(ago),
                ..LeaseCandidateSpec::default()
            };
            let candidate = Candidate { spec, ..Candidate::default() };
            assert_eq!(candidate.state(now), state, "renewed {renewed:?}, pinged {pinged:?}");
        }
    }

    #[test]
    fn the_host_is_what_comes_before_the_uuid() {
        for (name, host) in [("cp-1_58b1-00", "cp-1"), ("my_host_1", "my_host"), ("plain", "plain")] {
            let mut candidate = Candidate::default();
            name.clone_into(&mut candidate.metadata.name);
            assert_eq!(candidate.host(), host);
        }
    }

    #[test]
    fn every_version_of_the_api_is_read() {
        let read = |spec: &str| -> Candidate {
            serde_json::from_str(&format!(r#"{{"metadata":{{"name":"a"}},"spec":{spec}}}"#)).unwrap()
        };
        let alpha = read(r#"{"leaseName":"x","preferredStrategies":["a.b/c","OldestEmulationVersion"]}"#);
        assert_eq!(alpha.strategies(), ["a.b/c", "OldestEmulationVersion"]);
        let beta = read(
            r#"{"leaseName":"x","strategy":"OldestEmulationVersion","renewTime":"2026-01-02T03:04:05.000006Z"}"#,
        );
        assert_eq!(beta.strategies(), ["OldestEmulationVersion"]);
        assert_eq!(beta.spec.priority, None);
        assert_eq!(read(r#"{"leaseName":"x","priority":7}"#).spec.priority, Some(7));
    }
}
