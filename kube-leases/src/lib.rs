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
//! let outcome = lease.run(async { "rebooted" }).await;
//! let released = lease.release().await;
//! println!("{}", outcome?); // the loss of the lease, before what came of its release
//! released?;
//! # Ok(())
//! # }
//! ```
//!
//! A holder counts the time of its lease from before the renewal was sent, by a clock that also counts the time
//! that the machine slept, and stops before others may take the lease. Others judge a maintenance lease by the
//! server's clock, and the lease of an election by how long they have seen it unchanged. Every write carries the
//! version that it is for.
//!
//! Nothing that a controller calls here prints or exits, and every future is `Send`.
//!
//! # Features
//! - `tls`: connections that are made from a kubeconfig by this library. A client that is handed over brings its own.
//! - `internals`: for `kubectl-lease` itself. What it makes public changes in any release, without regard to semantic
//!   versioning.

#![deny(missing_docs)]
#![cfg_attr(not(feature = "internals"), deny(unnameable_types))]
// Much of what is below the front door is called by the plugin alone.
#![cfg_attr(not(feature = "internals"), allow(dead_code, unused_imports))]

#[cfg(not(feature = "internals"))]
mod client;
#[cfg(feature = "internals")]
pub mod client;
#[cfg(not(feature = "internals"))]
mod clock;
#[cfg(feature = "internals")]
pub mod clock;
mod election;
mod error;
mod interrupts;
mod maintenance;
mod program;
#[cfg(not(feature = "internals"))]
mod protocols;
#[cfg(feature = "internals")]
pub mod protocols;
#[cfg(not(feature = "internals"))]
mod rules;
#[cfg(feature = "internals")]
pub mod rules;
#[cfg(all(unix, not(feature = "internals")))]
mod signals;
#[cfg(all(unix, feature = "internals"))]
pub mod signals;

/// The examples of the page of the package are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use client::Remark;
pub use election::{Election, Leadership};
pub use error::{BadCertificate, CredentialOrigin, Error, ObjectKind, Permission, Result};
pub use interrupts::{Interrupter, Interrupts};
pub use maintenance::{Acquire, Maintenance, MaintenanceLease};
pub use protocols::{Blocked, Lost, NotTaken, Released, TakingProgress, TakingStep, Undone, Waiting};
#[cfg(feature = "internals")]
pub use {error::causes, program::Program};
