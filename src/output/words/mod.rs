//! Words that several commands say of the same facts, a file for each kind of thing.

pub mod advice;
pub mod apiserver;
pub mod controllers;
pub mod deletion;
pub mod election;
pub mod evidence;
pub mod fencing;
pub mod leader;
pub mod leases;
pub mod nodes;
pub use crate::paste;
#[cfg(unix)]
pub mod processes;
pub mod remarks;
pub mod risk;
pub mod trouble;
pub mod volumes;

/// So many of something, as a person would say it.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
