//! Holding a lease over time: taking it, waiting for it, keeping it, and running a command under it.
//!
//! A library for controllers too: nothing here prints or exits. [`Claim`] takes a lease by the rules
//! of [`crate::domain::maintenance`], [`Claim::wait`] waits for it, [`keep`] renews it until it is
//! lost. What enforces the end of a command whose lease is lost is the watchdog, a process of its
//! own: the one that renews may itself be stopped or killed.

#[cfg(unix)]
mod broadcast;
#[cfg(unix)]
pub mod child;
mod claim;
#[cfg(unix)]
mod ending;
#[cfg(unix)]
pub mod exec;
pub mod handover;
mod held;
mod keeper;
#[cfg(unix)]
pub mod leash;
#[cfg(unix)]
mod processes;
#[cfg(unix)]
mod terminal;
#[cfg(unix)]
pub mod watchdog;

pub use claim::{Claim, Took, Waiting, deleted, persistently, within};
pub use held::{Held, Released};
pub use keeper::{Lost, keep, keep_patiently};
