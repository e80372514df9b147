//! Works only while it leads.
//!
//! `leader NAMESPACE LEASE IDENTITY`, on the cluster of the kubeconfig. Of several that run at the same time, one
//! works. It counts to ten, and then steps down.

#![expect(clippy::print_stdout, reason = "it is a program")]

use std::{env, error::Error, time::Duration};

use kube_leases::Election;
use tokio::time::sleep;

async fn work(identity: &str) {
    for count in 1..=10 {
        println!("{identity} leads: {count}");
        sleep(Duration::from_millis(500)).await;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [namespace, lease, identity] = &args[..] else {
        return Err("usage: leader NAMESPACE LEASE IDENTITY".into());
    };
    let client = kube::Client::try_default().await?;
    let election = Election::new(client, namespace, lease, identity).duration(Duration::from_secs(5));
    loop {
        let leadership = election.campaign().await?;
        println!("{identity} leads, with the token {}", leadership.token());
        match leadership.lead(work(identity)).await {
            Ok(()) => return Ok(leadership.resign().await?),
            // What it did is dropped: it is a candidate again.
            Err(lost) => println!("{identity} does not lead any more: {lost}"),
        }
    }
}
