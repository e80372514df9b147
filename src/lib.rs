//! The kubectl plugin: what a person types ([`cli`]), what is done about it ([`commands`]) and what they see
//! ([`output`]). What it does to Kubernetes is in the library `kube_leases`.

pub mod cli;
pub mod commands;
pub mod complete;
pub mod connection;
pub mod error;
pub mod exit;
pub mod output;
pub mod paste;

pub use error::{Error, Result};
pub use exit::ExitCode;

/// This binary, also when its file was replaced since, by an upgrade.
///
/// # Errors
/// If the system does not tell which it is.
pub fn this_program() -> std::io::Result<kube_leases::Program> {
    let path = if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe()? };
    Ok(kube_leases::Program::at(path))
}
