//! The rules, pure: no client, no clock, no printing.
//!
//! Every function here takes the facts and the instant as arguments, so that each rule has its
//! table of cases beside it and none needs a cluster to be checked.

pub mod advice;
pub mod assessment;
pub mod candidacy;
pub mod candidate;
pub mod choice;
pub mod clocks;
pub mod controller;
pub mod controller_ref;
pub mod deadline;
pub mod deletion;
pub mod duration;
pub mod election;
pub mod evidence;
pub mod fencing;
pub mod forecast;
pub mod holder;
pub mod identity;
pub mod leader;
mod leadership;
pub mod leading;
pub mod lease;
pub mod maintenance;
pub mod node;
pub mod node_lease;
pub mod obstacle;
pub mod plan;
pub mod pod;
pub mod preference;
pub mod priority;
pub mod reasons;
pub mod rehearsal;
pub mod release;
pub mod remains;
pub mod renewal;
pub mod risk;
pub mod skew;
#[cfg(test)]
mod stage;
pub mod stopped;
pub mod storage;
pub mod stranded;
pub mod strategy;
pub mod surroundings;
pub mod taking;
pub mod time;
pub mod trouble;
pub mod version;
pub mod volumes;
pub mod workload;
