//! Ctrl-C, and the other signals that ask this process to end.
//!
//! From the first call on a signal no longer ends the process by itself.

use std::sync::OnceLock;

use kube_leases::{Interrupter, Interrupts};

use crate::error::Error;

/// Where they are received; what has come is received by the next that waits for one.
pub fn interrupts() -> &'static Interrupts {
    static RECEIVED: OnceLock<Interrupts> = OnceLock::new();
    RECEIVED.get_or_init(|| {
        let (interrupter, interrupts) = Interrupts::new();
        count_signals(interrupter);
        interrupts
    })
}

/// Comes when the user, or whatever ends processes, wants this one to end; once for each signal.
pub async fn interrupted() -> Error {
    interrupts().next().await.into()
}

#[cfg(unix)]
fn count_signals(interrupter: Interrupter) {
    use tokio::signal::unix::{Signal, SignalKind, signal};
    let listen = |kinds: &[SignalKind]| -> Vec<Signal> {
        let heeded = kinds.iter().filter(|kind| !kube_leases::signals::is_ignored(**kind));
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
            interrupter.interrupt();
        }
    });
}

#[cfg(not(unix))]
fn count_signals(interrupter: Interrupter) {
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            interrupter.interrupt();
        }
    });
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::Duration;

    use nix::{
        sys::signal::{Signal, kill},
        unistd::Pid,
    };
    use tokio::time::{sleep, timeout};

    use super::*;

    #[tokio::test]
    async fn a_signal_that_came_when_nothing_listened_is_told_once() {
        interrupts().none_so_far().await.unwrap();
        kill(Pid::this(), Signal::SIGTERM).unwrap();
        sleep(Duration::from_millis(100)).await;
        let told = timeout(Duration::from_secs(5), interrupted()).await;
        assert!(matches!(told, Ok(Error::Interrupted)));
        interrupts().none_so_far().await.unwrap();
    }
}
