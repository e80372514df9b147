//! In whose name a lease is held.

use clap::Args;

/// The holder of a lease.
#[derive(Debug, Args)]
pub struct Identity {
    /// Holder identity to use instead of your user name, login and host name. Leases of this holder are
    /// treated as yours.
    #[arg(long, value_name = "NAME")]
    holder: Option<String>,
}

impl Identity {
    /// As typed.
    pub fn holder(&self) -> Option<&str> {
        self.holder.as_deref()
    }
}
