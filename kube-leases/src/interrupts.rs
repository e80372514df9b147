//! Requests to stop what takes time, such as Ctrl-C.
//!
//! They are counted, so that none is lost between two places that wait for one: a request that came
//! meanwhile is received by the next. The library installs no signal handlers for them: its caller
//! decides what an interrupt is, and hands in where they come from.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

use crate::error::{Error, Result};

/// Where interrupts are received. Clones share them: each interrupt is received once.
#[derive(Clone, Debug)]
pub struct Interrupts {
    came: watch::Receiver<u64>,
    received: Arc<AtomicU64>,
}

/// Where interrupts are sent. Clones send to the same receiver.
#[derive(Clone, Debug)]
pub struct Interrupter(watch::Sender<u64>);

impl Interrupter {
    /// Interrupts what is under way, or what begins next.
    pub fn interrupt(&self) {
        self.0.send_modify(|count| *count += 1);
    }
}

impl Interrupts {
    /// A sender of interrupts, and its receiver.
    pub fn new() -> (Interrupter, Self) {
        let (sender, came) = watch::channel(0);
        (Interrupter(sender), Self { came, received: Arc::default() })
    }

    /// For work that is never interrupted.
    pub fn none() -> Self {
        Self::new().1
    }

    /// The next interrupt; once for each.
    pub async fn next(&self) -> Error {
        let mut came = self.came.clone();
        loop {
            let count = *came.borrow_and_update();
            if count > self.received.load(Ordering::Relaxed) {
                self.received.store(count, Ordering::Relaxed);
                return Error::Interrupted;
            }
            if came.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Checks before something that must not begin after an interrupt.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if there was one.
    pub async fn none_so_far(&self) -> Result<()> {
        tokio::select! {
            biased;
            interruption = self.next() => Err(interruption),
            // So that a signal that has come is seen.
            () = tokio::time::sleep(Duration::from_millis(1)) => Ok(()),
        }
    }

    /// Drops the interrupts so far: they were for another process, and were passed on to it.
    pub fn forget(&self) {
        self.received.store(*self.came.borrow(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn an_interrupt_that_came_while_nothing_waited_is_received_once() {
        let (interrupter, interrupts) = Interrupts::new();
        interrupts.none_so_far().await.unwrap();
        interrupter.interrupt();
        assert!(matches!(interrupts.clone().none_so_far().await, Err(Error::Interrupted)));
        interrupts.none_so_far().await.unwrap();
        interrupter.interrupt();
        interrupts.forget();
        interrupts.none_so_far().await.unwrap();
    }

    #[tokio::test]
    async fn without_a_sender_there_is_no_interrupt() {
        let interrupts = Interrupts::none();
        assert!(timeout(Duration::from_millis(20), interrupts.next()).await.is_err());
    }
}
