//! One file a verb: gather, ask the rule, act, print.

mod apiservers;
mod candidates;
mod completion;
mod doctor;
mod evidence;
mod fence;
mod force_delete;
mod hold;
mod interrupts;
mod leaders;
mod maint;
mod partitions;
mod watching;

use std::time::Duration;

use interrupts::{interrupted, none_so_far};

use crate::{
    cli::{Cli, Command, Doctor, DryRun, Write},
    cluster::{
        Cluster, Resource, config,
        single::{Address, Writing},
    },
    domain::duration,
    error::{Error, Needs, Result},
    exit::ExitCode,
    output::Printer,
};

/// Runs what was typed.
pub fn run(cli: Cli, printer: &mut Printer) -> Result<ExitCode> {
    match &cli.command {
        Command::Completion(verb) => return completion::run(verb, printer),
        Command::Doctor(Doctor { print: Some(manifest), .. }) => return doctor::print(*manifest, printer),
        Command::ForceDelete(args) => args.check()?,
        _ => {}
    }
    // One thread: the program waits for the network, and a pool would cost more to start than a
    // short command takes.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Output)?;
    let exit = runtime.block_on(async {
        let timeout = Some(cli.connection.request_timeout).filter(|timeout| *timeout > Duration::ZERO);
        // As typed: where it is not, some commands look in all namespaces.
        let namespace = cli.connection.namespace.clone();
        let namespace = namespace.as_deref();
        let cluster = Cluster::new(config::load(&cli.connection)?, timeout).await?;
        let cluster = cluster.reached_by(cli.connection.typed());
        let exit = match cli.command {
            Command::Apiservers(args) => apiservers::run(&args, &cluster, printer).await,
            Command::Candidates(args) => candidates::run(&args, namespace, &cluster, printer).await,
            Command::Leaders(args) => leaders::run(&args, namespace, &cluster, printer).await,
            Command::Maint(verb) => maint::run(&verb, &cluster, printer).await,
            // It was answered above.
            Command::Completion(_) => Ok(ExitCode::Done),
            Command::Doctor(args) => Box::pin(doctor::run(&args, namespace, &cluster, printer)).await,
            Command::Hold(args) => hold::run(&args, &cluster, printer).await,
            Command::Partitions(args) => partitions::run(&args, namespace, &cluster, printer).await,
            Command::ForceDelete(args) => Box::pin(force_delete::run(&args, &cluster, printer)).await,
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
    Writing { dry_run: flags.dry_run == DryRun::Server, field_manager: flags.field_manager.clone() }
}

/// What is said behind what a dry run would have done.
fn dry_run_note(flags: &Write) -> &'static str {
    match flags.dry_run {
        DryRun::None => "",
        DryRun::Client => " (dry run)",
        DryRun::Server => " (server dry run)",
    }
}

/// So many of something, as a person would say it.
fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Nobody is asked about what they may not do.
async fn check_right(verb: &'static str, resource: Resource, at: &Address, cluster: &Cluster) -> Result<()> {
    match cluster.may(verb, resource, at).await {
        Ok(false) => {
            let namespace = Some(at.namespace.clone()).filter(|namespace| !namespace.is_empty());
            let place = namespace.as_ref().map_or_else(String::new, |namespace| format!(" in {namespace}"));
            Err(Error::Forbidden {
                message: format!("you may not {verb} {}{place}", resource.plural),
                needs: Needs { verbs: verb, resource: resource.name(), namespace },
            })
        }
        // A server that does not answer this may still allow it, and will say so if not.
        Ok(true) | Err(Error::Forbidden { .. } | Error::NotServed { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Gives the warnings so far, such as of what could not be seen, before somebody relies on the rest.
fn tell_remarks(cluster: &Cluster, printer: &mut Printer) {
    for remark in remarks(cluster) {
        printer.warn(&remark);
    }
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
