//! The rules, pure: no client, no clock, no printing.
//!
//! Every function here takes the facts and the instant as arguments, so that each rule has its
//! table of cases beside it and none needs a cluster to be checked.

pub mod assessment;
pub mod candidate;
pub mod clocks;
pub mod deadline;
pub mod diagnosis;
pub mod duration;
pub mod election;
pub mod forecast;
pub mod guard;
pub mod holder;
pub mod identity;
pub mod leader;
pub mod leading;
pub mod lease;
pub mod maintenance;
pub mod node;
pub mod pod;
pub mod priority;
pub mod rehearsal;
pub mod remains;
pub mod rights;
pub mod risk;
pub mod safer;
pub mod skew;
pub mod stopped;
pub mod storage;
pub mod taking;
pub mod time;
pub mod version;
pub mod workload;
