//! Holds a node for maintenance while it works on it.
//!
//! `reboot-controller NODE…`, on the cluster of the kubeconfig. It pretends to reboot the nodes, one after the
//! other, and keeps every other holder off all of them meanwhile. Ctrl-C and SIGTERM end it; the nodes are
//! released then.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::{env, error::Error, process::ExitCode, time::Duration};

use kube_leases::{Interrupts, Maintenance, TakingProgress, TakingStep};
use tokio::{signal, time::sleep};

/// Says what it waits for.
struct Log;

impl TakingProgress for Log {
    fn step(&mut self, step: TakingStep<'_>) {
        if let TakingStep::Waiting { name, waiting, .. } = step {
            println!("waiting: '{name}' {waiting}");
        }
    }
}

async fn reboot(nodes: &[String]) {
    for node in nodes {
        println!("rebooting {node}");
        sleep(Duration::from_secs(1)).await;
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

async fn run(nodes: &[String]) -> Result<(), Box<dyn Error + Send + Sync>> {
    let interrupts = interrupts()?;
    let maintenance = Maintenance::new(kube::Client::try_default().await?, "reboot-controller");
    let lease = maintenance
        .acquire_all(nodes)
        .reason("kernel update")
        .duration(Duration::from_secs(30))
        .wait(Duration::from_secs(300))
        .interrupts(interrupts.clone())
        .progress(Log)
        .await?;
    println!("holding {} as {}", nodes.join(" "), lease.holder());
    // The work is dropped if a lease is lost: nothing is done to a node that another may hold.
    let outcome: Result<(), Box<dyn Error + Send + Sync>> = tokio::select! {
        outcome = lease.run(reboot(nodes)) => outcome.map_err(Into::into),
        interruption = interrupts.next() => Err(interruption.into()),
    };
    let released = lease.release().await;
    outcome?;
    released?;
    println!("released {}", nodes.join(" "));
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let nodes: Vec<String> = env::args().skip(1).collect();
    match run(&nodes).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}
