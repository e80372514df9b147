//! One file a verb: gather, ask the rule, act, print.

mod apiservers;
mod evidence;
mod fence;
mod force_delete;
mod hold;
mod maint;
mod partitions;
mod watching;

use std::time::Duration;

use crate::{
    cli::{Cli, Command},
    cluster::{Cluster, config},
    domain::duration,
    error::{Error, Result},
    exit::ExitCode,
    output::Printer,
};

/// Runs what was typed.
pub fn run(cli: Cli, printer: &mut Printer) -> Result<ExitCode> {
    // One thread: the program waits for the network, and a pool would cost more to start than a
    // short command takes.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Output)?;
    let exit = runtime.block_on(async {
        let timeout = Some(cli.connection.request_timeout).filter(|timeout| *timeout > Duration::ZERO);
        let cluster = Cluster::new(config::load(&cli.connection)?, timeout).await?;
        let exit = match cli.command {
            Command::Apiservers(args) => apiservers::run(&args, &cluster, printer).await,
            Command::Maint(verb) => maint::run(&verb, &cluster, printer).await,
            Command::Hold(args) => hold::run(&args, &cluster, printer).await,
            Command::Partitions(args) => partitions::run(&args, &cluster, printer).await,
            Command::ForceDelete(args) => Box::pin(force_delete::run(&args, &cluster, printer)).await,
            Command::Fence(args) => fence::run(&args, &cluster, printer).await,
        };
        for remark in remarks(&cluster) {
            printer.warn(&remark);
        }
        exit
    });
    // Not waiting for a name look-up that may still be under way.
    runtime.shutdown_background();
    exit
}

/// Comes when the user, or whoever ends processes, wants this one to end.
async fn interrupted() -> Error {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminated) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminated.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return Error::Interrupted;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
    Error::Interrupted
}

/// What the server's answers said beside the matter, as far as it was not yet told.
fn remarks(cluster: &Cluster) -> Vec<String> {
    let mut remarks: Vec<_> = cluster.take_warnings().into_iter().collect();
    remarks.extend(cluster.take_skew().map(|offset| {
        let direction = if offset.is_positive() { "behind" } else { "ahead of" };
        format!(
            "this machine's clock is {} {direction} the server's; all ages are by the server's clock",
            duration::age(offset.abs())
        )
    }));
    remarks
}
