//! `kubectl lease force-delete`.
//!
//! Look, show, ask, and only then delete: exactly what was shown, or nothing.

mod confirmation;
mod outcome;
mod report;

use std::{collections::BTreeSet, sync::Arc};

use futures::future::try_join_all;

use self::{
    confirmation::{Asked, choose},
    outcome::{forced, not_deleted, softly, words_of},
    report::Report,
};
use super::{check_permission, dry_run_note, holder::who, interrupted, writing};
use crate::{
    cli::{DryRun, ForceDelete},
    connection::Reached,
    error::{Error, Result},
    exit::ExitCode,
    output::{
        Brief, Printer,
        progress::WaitLine,
        prompt,
        words::{advice, deletion::changed, evidence, paste::with_flags, risk},
    },
};
use kube_leases::{
    client::{
        Object, PODS, Query,
        partitions::{self, Found, Which},
        pods::NewEvent,
        single::{Address, Addressed as _},
        surroundings,
    },
    protocols::{
        aftermath::{Aftermath, AftermathProgress},
        delete::{self, DeleteMode, NotAsShown},
    },
    rules::{
        assessment::{Assessment, Futile},
        deletion::{Choice, Judged, judge},
        duration::age,
        pod::Pod,
        surroundings::Surroundings,
        time::ServerTime,
    },
};

/// `namespace` is the one that was typed: without it, `--node` and the selection are of all namespaces.
pub async fn run(
    args: &ForceDelete,
    namespace: Option<&str>,
    cluster: &Reached,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let looked = tokio::select! {
        biased;
        interruption = interrupted() => Err(interruption),
        looked = look(args, namespace, cluster) => looked,
    };
    let Looked { judged, mut around, who } = looked?;
    if args.output.output.is_some() {
        printer.keep_for_documents();
    }
    for one in &judged {
        show(one, cluster, printer);
    }
    let mut report = Report::new(&judged);
    let outcome = tokio::select! {
        // Asked about first, so that Ctrl-C at a question is an answer to it and leaves the terminal as
        // it was.
        biased;
        interruption = interrupted() => Err(interruption),
        outcome = decide_and_delete(args, &judged, &who, &mut around, &mut report, cluster, printer) => outcome,
    };
    let Some(format) = args.output.output else { return outcome };
    // Whatever came of it; why it failed counts for more than that this cannot be printed.
    let written = report.print(format, args, cluster, printer);
    outcome.and_then(|code| written.map(|()| code))
}

/// What was found out before anything is asked.
struct Looked {
    judged: Vec<Judged>,
    around: Surroundings,
    who: String,
}

async fn look(args: &ForceDelete, namespace: Option<&str>, cluster: &Reached) -> Result<Looked> {
    let pods = chosen(args, namespace, cluster).await?;
    let values: Vec<&Pod> = pods.iter().map(|pod| &**pod).collect();
    let who = async { Ok(who(None, false, cluster).await.ok()) };
    let ((), around, who) = tokio::try_join!(
        check_permissions(args, &values, cluster),
        async { Ok(surroundings::read(cluster, &values).await?) },
        who
    )?;
    let who = who.map_or_else(|| "an unknown user".to_owned(), |who| who.to_string());
    let judged = judge(pods, around.clone(), args.safe, cluster.server_time());
    Ok(Looked { judged, around, who })
}

/// All are judged and asked about before any is touched.
async fn decide_and_delete(
    args: &ForceDelete,
    judged: &[Judged],
    who: &str,
    around: &mut Surroundings,
    report: &mut Report<'_>,
    cluster: &Reached,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let mut failures = Failures(None);
    let mut choices = Vec::new();
    let mut asked = Asked(false);
    for one in judged {
        let choice =
            choose(args, one, &mut asked, cluster, printer).inspect_err(|error| report.failed(one, error));
        match choice {
            // What has no way without force is left, and the others go as far as they may; a dry run tells of all.
            Err(error)
                if args.write.dry_run != DryRun::None || (args.safe && one.within_budget().is_none()) =>
            {
                failures.add(error, printer);
            }
            Err(error) => return Err(error),
            Ok(choice) => {
                report.chosen(one, choice);
                choices.push((one, choice));
            }
        }
    }
    if asked.0 {
        let shown: Vec<&Judged> = choices.iter().map(|(one, _)| *one).collect();
        *around = delete::still_as_shown(cluster, &shown).await.map_err(|why| match why {
            NotAsShown::Changed(pod, change) => Error::LostRace { message: changed(&change, &pod) },
            NotAsShown::Failed(error) => error.into(),
        })?;
    }
    let mut acted = Vec::new();
    for (one, choice) in choices {
        let began = cluster.server_time();
        match act(args, one, choice, who, around, cluster, printer).await {
            Ok(()) => {
                around.spend(&one.pod);
                report.done(one, args.write.dry_run != DryRun::None);
                acted.push(Acted { one, choice, began });
            }
            Err(error) => {
                report.failed(one, &error);
                failures.add(error, printer);
            }
        }
    }
    if args.write.dry_run == DryRun::None {
        // Only now, so that none of them goes on the strength of a look that is minutes old.
        let mut aftermath = Aftermath::new(args.wait.into());
        for acted in acted {
            let outcome = follow(args, &acted, &mut aftermath, report, cluster, printer).await;
            if let Err(error) = outcome {
                report.failed(acted.one, &error);
                failures.add(error, printer);
            }
        }
    }
    failures.0.map_or(Ok(ExitCode::Done), Err)
}

/// One that cannot be deleted is no reason to leave the others, each of which was confirmed. The first failure
/// tells the exit code.
struct Failures(Option<Error>);

impl Failures {
    fn add(&mut self, error: Error, printer: &mut Printer) {
        match &self.0 {
            None => self.0 = Some(error),
            Some(_) => printer.error(&error),
        }
    }
}

/// Does it to one of them, if its node still is as it was shown, and leaves an Event about that.
async fn act(
    args: &ForceDelete,
    one: &Judged,
    choice: Choice,
    who: &str,
    around: &mut Surroundings,
    cluster: &Reached,
    printer: &mut Printer,
) -> Result<()> {
    let (pod, write) = (&one.pod, args.write.dry_run);
    let mode = match write {
        DryRun::None => DeleteMode::Yes,
        DryRun::Server => DeleteMode::ServerDryRun,
        DryRun::Client => DeleteMode::ClientDryRun,
    };
    if let Err(why) = delete::delete(cluster, one, choice, around, mode).await {
        return Err(not_deleted(why, pod, printer));
    }
    let Some(words) = words_of(one, choice) else { return Ok(()) };
    printer.done(&format!("{} {}{}", pod.full_name(), words.done, dry_run_note(args.write.dry_run)))?;
    if write != DryRun::None {
        return Ok(());
    }
    let reason = args.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
    let at = pod.address();
    let event = NewEvent {
        resource: PODS,
        at: &at,
        uid: &pod.metadata.uid,
        reason: words.event,
        message: format!("{} by {who}{reason}{}", words.did, words.why),
        who: who.to_owned(),
    };
    if let Err(error) = cluster.record(&event, &writing(&args.write)).await {
        printer.warn(&format!("no Event was left about {}: {error}", pod.full_name()));
    }
    Ok(())
}

/// What was done to one of them, and when that began.
struct Acted<'a> {
    one: &'a Judged,
    choice: Choice,
    began: ServerTime,
}

/// Says what became of one of them: gone or not, and what came in its place.
async fn follow(
    args: &ForceDelete,
    acted: &Acted<'_>,
    aftermath: &mut Aftermath,
    report: &mut Report<'_>,
    cluster: &Reached,
    printer: &mut Printer,
) -> Result<()> {
    let Acted { one, choice, began } = *acted;
    if matches!(choice, Choice::Safely(_))
        && one.assessment.futile == Some(Futile::Finalizers)
        && !args.wait.is_set()
    {
        let finalizers = one.pod.metadata.finalizers.join(", ");
        printer.warn(&format!("{} is marked for deletion, and kept by {finalizers}", one.pod.full_name()));
        return Ok(());
    }
    let mut waiting = Waiting { printer, line: None };
    let fate = aftermath.of(cluster, one, choice, began, &mut waiting).await?;
    report.outcome(one, &fate);
    match choice {
        Choice::Force => forced(&one.pod, &fate, args.wait.is_set(), printer),
        Choice::Safely(_) => softly(&one.pod, &fate, args.wait.is_set(), cluster, printer).await,
    }
}

/// Says what is waited for.
struct Waiting<'a> {
    printer: &'a mut Printer,
    line: Option<WaitLine>,
}

impl AftermathProgress for Waiting<'_> {
    fn waiting(&mut self, pod: &Pod) {
        let news = format!("waiting until {} is deleted or replaced", pod.full_name());
        self.line.get_or_insert_default().say(self.printer, &news, "");
    }

    fn over(&mut self) {
        self.line = None;
    }
}

/// The pods that are meant.
async fn chosen(args: &ForceDelete, namespace: Option<&str>, cluster: &Reached) -> Result<Vec<Arc<Pod>>> {
    let names = args.names();
    if !names.is_empty() {
        if let Some(typed) = namespace
            && let Some((Some(other), name)) =
                names.iter().find(|(own, _)| own.is_some_and(|own| own != typed))
        {
            return Err(Error::usage(format!(
                "{other}/{name} is in another namespace than --namespace ({typed})"
            )));
        }
        let address =
            |(own, name): &(Option<&str>, &str)| Address::new(own.unwrap_or(cluster.namespace()), *name);
        let addresses = names.iter().map(address).collect();
        return read(&addresses, cluster).await;
    }
    if let Some(labels) = &args.selector {
        return labelled(labels, cluster).await;
    }
    let which = Which { node: args.node.as_deref(), namespace, ..Which::default() };
    let now = cluster.server_time();
    let found = partitions::read(cluster, &which, true, |pod| pod.is_stuck(now)).await?;
    match &args.node {
        Some(node) => on_node(node, namespace, found, cluster),
        None => read(&pick(&offered(&found, now), namespace, cluster)?, cluster).await,
    }
}

/// Those in the namespace with these labels.
async fn labelled(labels: &str, cluster: &Reached) -> Result<Vec<Arc<Pod>>> {
    let query = Query::new(PODS).namespace(cluster.namespace()).select(Some(labels), None).paged();
    let list = cluster.list::<Pod>(&query).await?.items;
    let mut found: Vec<Arc<Pod>> = list.into_iter().map(|pod| pod.value).collect();
    found.sort_by_key(|pod| pod.full_name());
    if found.is_empty() {
        return Err(Error::NotFound {
            message: format!("no pod in {} has the labels '{labels}'", cluster.namespace()),
            hint: Some("-n names another namespace".into()),
        });
    }
    Ok(found)
}

/// Those that are stranded or stuck on a node.
fn on_node(node: &str, namespace: Option<&str>, found: Found, cluster: &Reached) -> Result<Vec<Arc<Pod>>> {
    let stranded = found.partitions.into_iter().flat_map(|partition| partition.pods);
    let pods: Vec<Arc<Pod>> =
        stranded.map(|stranded| stranded.pod).chain(found.others).map(|pod| pod.value).collect();
    if pods.is_empty() {
        return Err(Error::NotFound {
            message: match namespace {
                Some(namespace) => format!("no pod in {namespace} is stranded or stuck on {node}"),
                None => format!("no pod is stranded or stuck on {node}"),
            },
            hint: Some(with_flags(
                &format!("'kubectl lease partitions {node}' shows how it is"),
                cluster.flags(),
            )),
        });
    }
    Ok(pods)
}

/// The stranded and stuck pods, each with the line by which it is offered.
fn offered(found: &Found, now: ServerTime) -> Vec<(Address, String)> {
    let mut offered = Vec::new();
    for partition in &found.partitions {
        for stranded in &partition.pods {
            let (pod, risk) = (&stranded.pod.value, stranded.assessment.risk.word());
            let line = format!(
                "{}   on {}, {}, risk {risk}",
                pod.full_name(),
                partition.node,
                partition.contact.word()
            );
            offered.push((pod.address(), line));
        }
    }
    for pod in &found.others {
        let pod = &pod.value;
        let since =
            pod.terminating(now).map_or_else(String::new, |since| format!("Terminating for {}", age(since)));
        offered.push((pod.address(), format!("{}   on {}, {since}", pod.full_name(), pod.spec.node_name)));
    }
    offered
}

/// Asks which of them; elsewhere than on a terminal they are listed in the error.
fn pick(
    offered: &[(Address, String)],
    namespace: Option<&str>,
    cluster: &Reached,
) -> Result<BTreeSet<Address>> {
    if !prompt::possible() || offered.is_empty() {
        let names: Vec<String> =
            offered.iter().map(|(at, _)| format!("{} -n {}", at.name, at.namespace)).collect();
        let hint = match names.len() {
            0 => {
                let place = namespace.map_or_else(String::new, |name| format!(" in {name}"));
                let hint = format!(
                    "no pod{place} is stranded or stuck; 'kubectl lease force-delete pod NAME -n NAMESPACE' names one"
                );
                with_flags(&hint, cluster.flags())
            }
            1..=10 => format!("stranded or stuck: {}", names.join(", ")),
            more => format!("stranded or stuck: {} and {} more", names[..10].join(", "), more - 10),
        };
        return Err(Error::Usage { message: "no pod is named".into(), hint: Some(hint) });
    }
    let lines: Vec<String> = offered.iter().map(|(_, line)| line.clone()).collect();
    let picked =
        prompt::choose("Stranded and stuck pods; space marks, Enter goes on with the marked", &lines)?;
    if picked.is_empty() {
        return Err(Error::Refused { message: "no pod was chosen".into(), hint: None });
    }
    Ok(picked.into_iter().map(|n| offered[n].0.clone()).collect())
}

/// These pods, all of them.
async fn read(addresses: &BTreeSet<Address>, cluster: &Reached) -> Result<Vec<Arc<Pod>>> {
    let found: Vec<Object<Pod>> = cluster.get_many(PODS, addresses).await?;
    let missing: Vec<String> = addresses
        .iter()
        .filter(|at| found.iter().all(|pod| pod.value.address() != **at))
        .map(|at| format!("'{}' in {}", at.name, at.namespace))
        .collect();
    if missing.is_empty() {
        return Ok(found.into_iter().map(|pod| pod.value).collect());
    }
    Err(Error::NotFound {
        message: format!("there is no pod {}", missing.join(", ")),
        hint: Some(with_flags(
            "-n names another namespace; 'kubectl lease partitions' lists what is stranded",
            cluster.flags(),
        )),
    })
}

/// Whether they may be deleted at all.
async fn check_permissions(args: &ForceDelete, pods: &[&Pod], cluster: &Reached) -> Result<()> {
    if args.safe || args.write.dry_run == DryRun::Client {
        // Which permission --safe needs depends on the pod; a dry run needs none to delete.
        return Ok(());
    }
    let namespaces: BTreeSet<&str> = pods.iter().map(|pod| pod.metadata.namespace.as_str()).collect();
    let checks = namespaces.into_iter().map(async |namespace| {
        let of: Vec<Address> =
            pods.iter().map(|pod| pod.address()).filter(|at| at.namespace == namespace).collect();
        // Permission to delete exactly these by name is enough.
        if of.len() > 1 && cluster.may("delete", PODS, &Address::new(namespace, "")).await.unwrap_or(false) {
            return Ok(());
        }
        let each = of.iter().map(|at| check_permission("delete", PODS, at, cluster));
        try_join_all(each).await.map(drop)
    });
    try_join_all(checks).await.map(drop)
}

fn show(one: &Judged, cluster: &Reached, printer: &mut Printer) {
    let Assessment { risk, evidence, reasons, safer, .. } = &one.assessment;
    let (pod, flags) = (&*one.pod, cluster.flags());
    let lines: Vec<_> = evidence.iter().map(|evidence| evidence::line(evidence, pod, flags)).collect();
    let reasons: Vec<_> = reasons.iter().map(|reason| vec![format!("- {}", risk::reason(reason))]).collect();
    let safer: Vec<_> = safer
        .iter()
        .enumerate()
        .map(|(n, way)| {
            let line = advice::line(&way.advice, pod, flags);
            let what = format!("{}. {}", n + 1, line.what);
            std::iter::once(what).chain(line.command).collect()
        })
        .collect();
    printer.brief(&Brief {
        title: &format!("{}, risk of force-deleting it", pod.full_name()),
        verdict: risk.word(),
        tone: risk::tone(*risk),
        lines: &lines,
        lists: &[("why", &reasons), ("safer", &safer)],
    });
}
