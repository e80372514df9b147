//! Take, keep and release Kubernetes leases: node maintenance (KEP-1411) and leader election.
//!
//! A controller begins with [`Maintenance`], which holds nodes, or with [`Election`], which leads. Both take the
//! `kube::Client` that it has already:
//!
//! ```no_run
//! # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! use kube_leases::Maintenance;
//!
//! let nodes = ["node-1", "node-2"];
//! let lease = Maintenance::new(client, "reboot-controller").acquire_all(nodes).wait_forever().await?;
//! let done = lease.run(async { "rebooted" }).await;
//! lease.release().await?;
//! println!("{}", done?);
//! # Ok(())
//! # }
//! ```
//!
//! A holder counts the time of its lease from before the renewal was sent, by a clock that also counts the time
//! that the machine slept, and stops before others may take the lease. Others judge a maintenance lease by the
//! server's clock, and the lease of an election by how long they have seen it unchanged. Every write carries the
//! version that it is for.
//!
//! Below these, [`rules`] are pure, [`client`] does the Kubernetes I/O, [`protocols`] are what takes time: taking
//! a lease, waiting for it, keeping it, and running a command under it. Nothing here prints or exits, and every
//! future is `Send`.

#![deny(missing_docs)]

pub mod client;
pub mod clock;
mod election;
pub mod error;
pub mod interrupts;
mod maintenance;
pub mod program;
pub mod protocols;
pub mod rules;
#[cfg(unix)]
pub mod signals;

pub use election::{Election, Leadership};
pub use error::{Error, Result};
pub use interrupts::Interrupts;
pub use maintenance::{Acquire, Maintenance, MaintenanceLease};
pub use program::Program;
pub use protocols::{Blocked, Lost, NotTaken, TakingProgress, TakingStep};
