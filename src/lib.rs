//! Leases for cluster operators, as a kubectl plugin and as a library.
//!
//! The library half is [`domain`] (the rules, pure), [`cluster`] (the Kubernetes I/O) and
//! [`session`] (holding a lease over time): none of them prints or exits. [`commands`], [`complete`] and
//! [`output`] are the plugin.

pub mod cli;
pub mod clock;
pub mod cluster;
pub mod commands;
pub mod complete;
pub mod domain;
pub mod error;
pub mod exit;
pub mod output;
pub mod session;
#[cfg(unix)]
pub mod signals;

pub use error::{Error, Result};
pub use exit::ExitCode;
