//! Leases for cluster operators, as a kubectl plugin and as a library.
//!
//! The library half is [`domain`] (the rules, pure) and [`cluster`] (the Kubernetes I/O): neither
//! prints nor exits. [`commands`] and [`output`] are the plugin.

pub mod cli;
pub mod cluster;
pub mod commands;
pub mod domain;
pub mod error;
pub mod exit;
pub mod output;

pub use error::{Error, Result};
pub use exit::ExitCode;
