//! Words for how a node is.

use jiff::SignedDuration;
use kube_leases::rules::{duration::ago, node::Declared};

/// When a machine that is off may be declared to be.
pub const HEARTBEAT_IS_OLD: &str = "older than the duration of its node lease, by default 40 seconds";

/// The age of the last heartbeat of a node.
pub fn heartbeat(since: Option<SignedDuration>) -> String {
    since.map_or_else(|| "no heartbeat ever".to_owned(), |since| format!("last heartbeat {}", ago(since)))
}

/// What the out-of-service taint of a node says.
pub fn declared(declared: Declared) -> &'static str {
    match declared {
        Declared::Since => "marked out of service",
        Declared::Before => "marked out of service before its last heartbeat",
        Declared::Undated => "marked out of service (the taint has no timeAdded)",
    }
}
