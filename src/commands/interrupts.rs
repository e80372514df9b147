//! Ctrl-C, and the other signals that ask this process to end.
//!
//! From the first call on a signal no longer ends the process by itself. So none may be lost, also not
//! between two places that listen: what came meanwhile is told to the next.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

use crate::error::{Error, Result};

/// How many of the signals that came were told.
static TOLD: AtomicU64 = AtomicU64::new(0);

/// Comes when the user, or whatever ends processes, wants this one to end; once for each signal.
pub async fn interrupted() -> Error {
    let mut came = listen();
    loop {
        let count = *came.borrow_and_update();
        if count > TOLD.load(Ordering::Relaxed) {
            TOLD.store(count, Ordering::Relaxed);
            return Error::Interrupted;
        }
        if came.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Before something that is not to be begun after an interrupt.
pub async fn none_so_far() -> Result<()> {
    tokio::select! {
        biased;
        interruption = interrupted() => Err(interruption),
        // So that a signal that has come is seen.
        () = tokio::time::sleep(Duration::from_millis(1)) => Ok(()),
    }
}

/// What came so far was for another: it was passed on to the command.
pub fn forget() {
    TOLD.store(*listen().borrow(), Ordering::Relaxed);
}

fn listen() -> watch::Receiver<u64> {
    static COUNT: OnceLock<watch::Receiver<u64>> = OnceLock::new();
    let start = || {
        let (sender, receiver) = watch::channel(0);
        count_signals(sender);
        receiver
    };
    COUNT.get_or_init(start).clone()
}

#[cfg(unix)]
fn count_signals(count: watch::Sender<u64>) {
    use tokio::signal::unix::{Signal, SignalKind, signal};
    let listen = |kinds: &[SignalKind]| -> Vec<Signal> {
        let heeded = kinds.iter().filter(|kind| !crate::signals::is_ignored(**kind));
        heeded.filter_map(|kind| signal(*kind).ok()).collect()
    };
    let mut signals =
        listen(&[SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup(), SignalKind::quit()]);
    // These are for a command. Before there is one they must not end this process, with leases taken:
    // what was listened to once does not any more.
    drop(listen(&[SignalKind::user_defined1(), SignalKind::user_defined2()]));
    tokio::spawn(async move {
        loop {
            std::future::poll_fn(|context| {
                let came = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
                if came { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
            })
            .await;
            count.send_modify(|count| *count += 1);
        }
    });
}

#[cfg(not(unix))]
fn count_signals(count: watch::Sender<u64>) {
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            count.send_modify(|count| *count += 1);
        }
    });
}

#[cfg(all(test, unix))]
mod tests {
    use nix::{
        sys::signal::{Signal, kill},
        unistd::Pid,
    };
    use tokio::time::{sleep, timeout};

    use super::*;

    #[tokio::test]
    async fn a_signal_that_came_when_nothing_listened_is_told_once() {
        none_so_far().await.unwrap();
        kill(Pid::this(), Signal::SIGTERM).unwrap();
        sleep(Duration::from_millis(100)).await;
        let told = timeout(Duration::from_secs(5), interrupted()).await;
        assert!(matches!(told, Ok(Error::Interrupted)));
        none_so_far().await.unwrap();
    }
}
