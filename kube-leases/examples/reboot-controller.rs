//! Holds a node for maintenance while it works on it.
//!
//! `reboot-controller NODE…`, on the cluster of the kubeconfig. It pretends to reboot the nodes, one after the
//! other, and keeps every other holder off all of them meanwhile.

#![expect(clippy::print_stdout, reason = "it is a program")]

use std::{env, error::Error, time::Duration};

use kube_leases::{Maintenance, TakingProgress, TakingStep};
use tokio::time::sleep;

/// Says what it waits for.
struct Log;

impl TakingProgress for Log {
    fn step(&mut self, step: TakingStep<'_>) {
        if let TakingStep::Waiting { claim, waiting, .. } = step {
            println!("waiting for {}: {:?}", claim.at.name, waiting.obstacle);
        }
    }
}

async fn reboot(nodes: &[String]) {
    for node in nodes {
        println!("rebooting {node}");
        sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let nodes: Vec<String> = env::args().skip(1).collect();
    let maintenance = Maintenance::new(kube::Client::try_default().await?, "reboot-controller");
    let lease = maintenance
        .acquire_all(&nodes)
        .reason("kernel update")
        .duration(Duration::from_secs(30))
        .wait(Duration::from_secs(300))
        .progress(Log)
        .await?;
    println!("holding {} as {}", nodes.join(" "), lease.holder());
    // The work is dropped if a lease is lost: nothing is done to a node that another may hold.
    let outcome = lease.run(reboot(&nodes)).await;
    lease.release().await?;
    outcome?;
    println!("released {}", nodes.join(" "));
    Ok(())
}
