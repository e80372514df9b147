//! Works only while it leads.
//!
//! `leader NAMESPACE LEASE IDENTITY`, on the cluster of the kubeconfig. Of several that run at the same time, one
//! works. It counts to ten, and then steps down; on Ctrl-C or SIGTERM at once.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::{env, error::Error, process::ExitCode, time::Duration};

use kube_leases::{Election, Interrupts};
use tokio::{signal, time::sleep};

async fn work(identity: &str) {
    for count in 1..=10 {
        println!("{identity} leads: {count}");
        sleep(Duration::from_millis(500)).await;
    }
}

/// Ctrl-C, and the SIGTERM by which a kubelet ends a container. The handlers are there when this returns.
fn interrupts() -> std::io::Result<Interrupts> {
    let (interrupter, interrupts) = Interrupts::new();
    #[cfg(unix)]
    {
        let mut terminate = signal::unix::signal(signal::unix::SignalKind::terminate())?;
        let interrupter = interrupter.clone();
        tokio::spawn(async move {
            while terminate.recv().await.is_some() {
                interrupter.interrupt();
            }
        });
    }
    tokio::spawn(async move {
        while signal::ctrl_c().await.is_ok() {
            interrupter.interrupt();
        }
    });
    Ok(interrupts)
}

async fn run(args: &[String]) -> Result<(), Box<dyn Error + Send + Sync>> {
    let [namespace, lease, identity] = args else {
        return Err("usage: leader NAMESPACE LEASE IDENTITY".into());
    };
    let interrupts = interrupts()?;
    let client = kube::Client::try_default().await?;
    let election = Election::new(client, namespace, lease, identity)
        .duration(Duration::from_secs(5))
        .interrupts(interrupts.clone());
    loop {
        let leadership = election.campaign().await?;
        println!("{identity} leads, with the token {}", leadership.token());
        let outcome = tokio::select! {
            outcome = leadership.lead(work(identity)) => outcome,
            interruption = interrupts.next() => {
                leadership.resign().await?;
                return Err(interruption.into());
            }
        };
        match outcome {
            Ok(()) => return Ok(leadership.resign().await?),
            // What it did is dropped: it is a candidate again.
            Err(lost) => println!("{identity} does not lead any more: {lost}"),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    match run(&args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}
