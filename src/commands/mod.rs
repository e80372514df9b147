//! One file a verb: gather, ask the rule, act, print.

mod apiservers;
mod candidates;
mod completion;
pub mod doctor;
mod fence;
mod force_delete;
mod hold;
mod holder;
mod interrupts;
mod leaders;
mod maint;
mod namespaces;
mod partitions;
mod under;
mod watching;

use std::time::Duration;

use interrupts::interrupted;

use crate::{
    cli::{self, Cli, Command, Doctor, DryRun, Write},
    connection::{self, Reached},
    error::{Error, Result},
    exit::ExitCode,
    output::{
        Printer,
        words::{count, remarks::remark},
    },
};
use kube_leases::{
    Error as LibraryError, Permission, Remark,
    client::{
        Cluster, Resource,
        single::{Address, Writing},
    },
    rules::duration,
};

/// Runs what was typed.
pub fn run(cli: Cli, printer: &mut Printer) -> Result<ExitCode> {
    match &cli.command {
        Command::Completion(verb) => return completion::run(verb, printer),
        Command::Options => {
            printer.raw(&cli::options())?;
            return Ok(ExitCode::Done);
        }
        Command::Doctor(Doctor { print: Some(manifest), .. }) => return doctor::print(*manifest, printer),
        Command::ForceDelete(args) => args.check()?,
        _ => {}
    }
    cli.check_namespace()?;
    // One thread: the program waits for the network, and a pool would cost more to start than a
    // short command takes.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Output)?;
    let exit = runtime.block_on(async {
        let timeout = Some(cli.connection.request_timeout).filter(|timeout| *timeout > Duration::ZERO);
        // As typed: where it is not, some commands look in all namespaces.
        let namespace = cli.connection.namespace.clone().filter(|name| !name.is_empty());
        let namespace = namespace.as_deref();
        let cluster = Cluster::new(connection::load(&cli.connection)?, timeout).await?;
        let cluster = cluster.acting_as(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        let cluster = Reached::new(cluster, &cli.connection);
        let exit = match cli.command {
            Command::Apiservers(args) => apiservers::run(&args, &cluster, printer).await,
            Command::Candidates(args) => candidates::run(&args, namespace, &cluster, printer).await,
            Command::Leaders(args) => leaders::run(&args, namespace, &cluster, printer).await,
            Command::Maint(verb) => maint::run(&verb, &cluster, printer).await,
            // They were answered above.
            Command::Completion(_) | Command::Options => Ok(ExitCode::Done),
            Command::Doctor(args) => Box::pin(doctor::run(&args, namespace, &cluster, printer)).await,
            Command::Hold(args) => hold::run(&args, &cluster, printer).await,
            Command::Partitions(args) => partitions::run(&args, namespace, &cluster, printer).await,
            Command::ForceDelete(args) => {
                Box::pin(force_delete::run(&args, namespace, &cluster, printer)).await
            }
            Command::Fence(args) => fence::run(&args, &cluster, printer).await,
        };
        tell_remarks(&cluster, printer);
        exit
    });
    // Not waiting for a name look-up that may still be under way.
    runtime.shutdown_background();
    exit
}

fn writing(flags: &Write) -> Writing {
    Writing { dry_run: flags.dry_run == DryRun::Server, field_manager: Some(flags.field_manager.clone()) }
}

/// What is said behind what a dry run would have done.
fn dry_run_note(dry_run: DryRun) -> &'static str {
    match dry_run {
        DryRun::None => "",
        DryRun::Client => " (dry run)",
        DryRun::Server => " (server dry run)",
    }
}

/// Checks the permission before prompting.
async fn check_permission(
    verb: &'static str,
    resource: Resource,
    at: &Address,
    cluster: &Cluster,
) -> Result<()> {
    match cluster.may(verb, resource, at).await {
        Ok(false) => {
            let namespace = Some(at.namespace.clone()).filter(|namespace| !namespace.is_empty());
            let place = namespace.as_ref().map_or_else(String::new, |namespace| format!(" in {namespace}"));
            Err(LibraryError::Forbidden {
                message: format!("you cannot {verb} {}{place}", resource.plural),
                needs: Permission { verbs: verb, resource: resource.name(), namespace },
            }
            .into())
        }
        // A server that does not answer this may still allow it, and will say so if not.
        Ok(true) | Err(LibraryError::Forbidden { .. } | LibraryError::NotServed { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Gives the warnings so far, such as of what could not be read, before the rest is relied on.
fn tell_remarks(cluster: &Cluster, printer: &mut Printer) {
    for remark in remarks(cluster) {
        printer.warn(&remark);
    }
}

/// What the server's answers said beside the matter, as far as it was not yet told. Which version of an API is
/// used was not the user's choice: only 'doctor' tells that it is deprecated.
fn remarks(cluster: &Cluster) -> Vec<String> {
    let told = |remark: &&Remark| !matches!(remark, Remark::Deprecated { .. });
    let mut remarks: Vec<_> = cluster.take_remarks().iter().filter(told).map(remark).collect();
    remarks.extend(cluster.take_skew().map(|offset| {
        let direction = if offset.is_positive() { "behind" } else { "ahead of" };
        format!(
            "this machine's clock is {} {direction} the server's; all ages are by the server's clock",
            duration::age(offset.abs())
        )
    }));
    remarks
}
