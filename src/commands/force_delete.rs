//! `kubectl lease force-delete`.
//!
//! Look, show, ask, and only then delete: exactly what was shown, or nothing.

use std::{collections::BTreeSet, ops::ControlFlow, time::Duration};

use futures::future::try_join_all;
use jiff::SignedDuration;
use tokio::time::Instant;

use super::{
    check_right, dry_run_note, evidence, interrupted,
    maint::who,
    partitions::{self, Which, gather},
    watching, writing,
};
use crate::{
    cli::{self, DryRun, ForceDelete},
    cluster::{
        Cluster, Object, PODS, Query,
        pods::Record,
        single::{Address, Addressed as _, Deletion},
        watch::Event,
    },
    domain::{
        assessment::{Assessment, Futile, Surroundings},
        duration::age,
        lease::Lease,
        node::{Contact, HEARTBEAT_IS_OLD, late_after},
        pod::Pod,
        risk::Risk,
        safer::{Safe, with_flags},
        time::ServerTime,
        workload::{Kind, Successor, Why},
    },
    error::{Error, Result},
    exit::ExitCode,
    output::{Brief, Printer, progress::WaitLine, prompt},
};

/// How long a replacement is looked for, and then the node that it is given to.
const REPLACED_WITHIN: Duration = Duration::from_secs(5);
const SCHEDULED_WITHIN: Duration = Duration::from_secs(2);
/// How long a first answer about what became of a pod may take.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);
/// How long pod GC may take that runs at all.
const COLLECTED_WITHIN: Duration = Duration::from_secs(120);

/// A pod, and all there is to say about force-deleting it.
struct Judged {
    pod: Object<Pod>,
    assessment: Assessment,
    node: Sign,
    /// Whether its node is given up, and yet heartbeats.
    heartbeats: bool,
    /// Its disruption budgets could not be read, and another pod that they may select goes before it.
    uncounted: bool,
}

/// What tells that a node is another one, or has been heard of again.
#[derive(PartialEq, Eq)]
struct Sign {
    uid: Option<String>,
    heartbeat: Option<jiff::Timestamp>,
}

impl Sign {
    fn of(node: &str, around: &Surroundings) -> Self {
        let (object, lease) = (around.node(node), around.heartbeat(node));
        let heartbeat = object.map_or_else(|| lease.and_then(Lease::heartbeat), |node| node.heartbeat(lease));
        Self { uid: object.map(|node| node.metadata.uid.clone()), heartbeat }
    }
}

impl Judged {
    fn new(pod: Object<Pod>, around: &Surroundings, now: ServerTime) -> Self {
        let name = &pod.value.spec.node_name;
        let lease = around.heartbeat(name);
        let heartbeats = match around.node(name) {
            Some(node) => node.is_contradicted(lease, now),
            None => lease
                .and_then(Lease::heartbeat)
                .is_some_and(|renewed| now.since(renewed) <= late_after(lease)),
        };
        let node = Sign::of(name, around);
        let assessment = Assessment::of(&pod.value, around, now);
        Self { assessment, pod, node, heartbeats, uncounted: false }
    }

    /// Whether its disruption budgets count on it. Only where its node is known to be lost do they not:
    /// a node that is late, or may not be read, may run it.
    fn is_counted_on(&self) -> bool {
        let pod = &self.pod.value;
        let ends = !pod.is_scheduled() || pod.is_finished() || pod.metadata.deletion_timestamp.is_some();
        let lost = matches!(self.assessment.contact, Some(Contact::Silent | Contact::Fenced | Contact::Gone));
        !ends && !lost
    }

    /// With commands that reach the same cluster when they are pasted.
    fn reached_by(self, flags: &str) -> Self {
        Self { assessment: self.assessment.reached_by(flags), ..self }
    }
}

/// Judges several pods as what goes together: each by what the ones before it leave of the disruption
/// budgets, of which those that could not be read may allow one in a namespace. Without force, those go
/// that have a way.
fn judge(pods: Vec<Object<Pod>>, mut around: Surroundings, safely: bool, now: ServerTime) -> Vec<Judged> {
    let mut uncounted = BTreeSet::new();
    let one = |pod: Object<Pod>| {
        let mut judged = Judged::new(pod, &around, now);
        let way = safe_way(&judged.assessment);
        if !safely || way.is_some() {
            around.spend(&judged.pod.value);
        }
        let goes = !safely || way.is_some_and(|way| way != Safe::Await);
        if goes && around.budgets.is_none() && judged.is_counted_on() {
            judged.uncounted = !uncounted.insert(judged.pod.value.metadata.namespace.clone());
        }
        judged
    };
    pods.into_iter().map(one).collect()
}

/// What is to be done with it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    Force,
    Safely(Safe),
}

pub async fn run(args: &ForceDelete, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    tokio::select! {
        // Asked about first, so that Ctrl-C at a question is an answer to it and leaves the terminal as
        // it was.
        biased;
        interruption = interrupted() => Err(interruption),
        outcome = look_and_delete(args, cluster, printer) => outcome,
    }
}

async fn look_and_delete(args: &ForceDelete, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    let pods = chosen(args, cluster).await?;
    let values: Vec<&Pod> = pods.iter().map(|pod| &*pod.value).collect();
    let nobody = cli::Identity { holder: None };
    let who = async { Ok(who(&nobody, false, cluster).await.ok()) };
    let ((), mut around, who) =
        tokio::try_join!(check_rights(args, &values, cluster), evidence::around(cluster, &values), who)?;
    let now = cluster.server_time();
    let judged = judge(pods, around.clone(), args.safe, now);
    let judged: Vec<_> = judged.into_iter().map(|one| one.reached_by(cluster.flags())).collect();
    for one in &judged {
        show(one, printer);
    }
    let mut failure: Option<Error> = None;
    // One that cannot be deleted is no reason to leave the others: each has had its yes. The first
    // failure tells the exit code.
    let mut failed = |error: Error, printer: &mut Printer| match &failure {
        None => failure = Some(error),
        Some(_) => printer.error(&error),
    };
    // All are judged and asked about before any is touched.
    let mut choices = Vec::new();
    let mut asked = false;
    for one in &judged {
        match choose(args, one, &mut asked, printer) {
            // What has no way without force is left, and the others go as far as they may.
            Err(error) if args.safe && within_budget(one).is_none() => failed(error, printer),
            choice => choices.push((one, choice?)),
        }
    }
    if asked {
        // A person takes time to think, and the world goes on meanwhile.
        let values: Vec<&Pod> = choices.iter().map(|(one, _)| &*one.pod.value).collect();
        around = evidence::around(cluster, &values).await?;
        let mut later = around.clone();
        for (one, _) in &choices {
            still_so(one, None, &later, cluster.server_time())?;
            later.spend(&one.pod.value);
        }
    }
    let who = who.map_or_else(|| "an unknown user".to_owned(), |who| who.to_string());
    let mut acted = Vec::new();
    for (one, choice) in choices {
        let began = cluster.server_time();
        match act(args, one, choice, &who, &mut around, cluster, printer).await {
            Ok(()) => {
                around.spend(&one.pod.value);
                acted.push((one, choice, began));
            }
            Err(error) => failed(error, printer),
        }
    }
    // Only now, so that none of them goes on the strength of a look that is minutes old.
    let start = Instant::now();
    // What replaces one of them does not replace another.
    let mut replacements = BTreeSet::new();
    for (one, choice, began) in acted {
        let outcome = match choice {
            _ if args.write.dry_run != DryRun::None => Ok(()),
            Choice::Force => aftermath(args, one, start, began, &mut replacements, cluster, printer).await,
            Choice::Safely(way) => {
                let_go(args, one, way, start, began, &mut replacements, cluster, printer).await
            }
        };
        if let Err(error) = outcome {
            failed(error, printer);
        }
    }
    failure.map_or(Ok(ExitCode::Done), Err)
}

/// Does it to one of them, if its node still is as it was shown.
async fn act(
    args: &ForceDelete,
    one: &Judged,
    choice: Choice,
    who: &str,
    around: &mut Surroundings,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<()> {
    let way = match choice {
        Choice::Force => None,
        Choice::Safely(way) => Some(way),
    };
    if args.write.dry_run != DryRun::Client && way != Some(Safe::Await) {
        evidence::look_again(cluster, &one.pod.value, around).await?;
        still_so(one, way, around, cluster.server_time())?;
    }
    match way {
        None => force(args, one, who, cluster, printer).await,
        Some(way) => safely(args, one, way, who, cluster, printer).await,
    }
}

/// Whether what was shown of the pod's surroundings still holds. The pod itself is the server's to
/// compare. Of a way without force, whether it is still the one to take.
fn still_so(one: &Judged, way: Option<Safe>, later: &Surroundings, now: ServerTime) -> Result<()> {
    let (name, node) = (one.pod.value.full_name(), &one.pod.value.spec.node_name);
    let (shown, sign) = (&one.assessment, Sign::of(node, later));
    let stop = |why: String| Err(Error::LostRace { message: format!("{why}: {name} was not deleted") });
    if sign.uid != one.node.uid {
        return stop(format!("{node} was recreated or deleted meanwhile"));
    }
    let assessment = Assessment::of(&one.pod.value, later, now);
    // Where nobody can say whether the node is alive, its heartbeat does.
    let heard = one.node.heartbeat.is_some_and(|time| now.since(time) <= late_after(later.heartbeat(node)));
    let was_alive = shown.contact.map_or(heard, Contact::is_alive);
    // The kinds of contact are in the order of how little is heard.
    if !was_alive && (sign.heartbeat != one.node.heartbeat || assessment.contact < shown.contact) {
        return stop(format!("{node} was heard of meanwhile"));
    }
    if way.is_some() && safe_way(&assessment) != way {
        return stop(format!("what is safest for {name} has changed meanwhile"));
    }
    // The risk may be as high for another reason.
    let spent = &assessment.spent_budgets;
    if way.is_none() && one.is_counted_on() && shown.spent_budgets.is_empty() && !spent.is_empty() {
        return stop(format!("the disruption budget {} allows no more disruptions", spent.join(", ")));
    }
    if assessment.risk > shown.risk {
        return stop(format!("the risk of force-deleting it has become {}", assessment.risk.word()));
    }
    Ok(())
}

/// The pods that are meant.
async fn chosen(args: &ForceDelete, cluster: &Cluster) -> Result<Vec<Object<Pod>>> {
    let names = args.names();
    if !names.is_empty() {
        let addresses = names.iter().map(|name| Address::new(cluster.namespace(), *name)).collect();
        return read(&addresses, cluster).await;
    }
    if let Some(labels) = &args.selector {
        let query = Query::new(PODS).namespace(cluster.namespace()).select(Some(labels), None).paged();
        let mut found = cluster.list::<Pod>(&query).await?.items;
        found.sort_by_key(|pod| pod.value.full_name());
        if found.is_empty() {
            return Err(Error::NotFound {
                message: format!("no pod in {} has the labels '{labels}'", cluster.namespace()),
                hint: Some("-n names another namespace".into()),
            });
        }
        return Ok(found);
    }
    let which = Which { node: args.node.as_deref(), ..Which::default() };
    let now = cluster.server_time();
    let found = gather(&which, cluster, true, |pod| pod.is_stuck(now)).await?;
    if let Some(node) = &args.node {
        let stranded = found.partitions.into_iter().flat_map(|partition| partition.pods);
        let pods: Vec<_> = stranded.map(|stranded| stranded.pod).chain(found.others).collect();
        if pods.is_empty() {
            return Err(Error::NotFound {
                message: format!("no pod is stranded or stuck on {node}"),
                hint: Some(with_flags(
                    &format!("'kubectl lease partitions {node}' shows how it is"),
                    cluster.flags(),
                )),
            });
        }
        return Ok(pods);
    }
    let mut choices = Vec::new();
    for partition in &found.partitions {
        for stranded in &partition.pods {
            let (pod, risk) = (&stranded.pod.value, stranded.assessment.risk.word());
            let line = format!(
                "{}   on {}, {}, risk {risk}",
                pod.full_name(),
                partition.node,
                partition.contact.word()
            );
            choices.push((pod.address(), line));
        }
    }
    for pod in &found.others {
        let pod = &pod.value;
        let since =
            pod.terminating(now).map_or_else(String::new, |since| format!("Terminating for {}", age(since)));
        choices.push((pod.address(), format!("{}   on {}, {since}", pod.full_name(), pod.spec.node_name)));
    }
    if !prompt::possible() || choices.is_empty() {
        let names: Vec<String> =
            choices.iter().map(|(at, _)| format!("{} -n {}", at.name, at.namespace)).collect();
        let hint = match names.len() {
            0 => with_flags(
                "no pod is stranded or stuck; 'kubectl lease force-delete pod NAME -n NAMESPACE' names one",
                cluster.flags(),
            ),
            1..=10 => format!("stranded or stuck: {}", names.join(", ")),
            more => format!("stranded or stuck: {} and {} more", names[..10].join(", "), more - 10),
        };
        return Err(Error::Usage { message: "no pod is named".into(), hint: Some(hint) });
    }
    let lines: Vec<String> = choices.iter().map(|(_, line)| line.clone()).collect();
    let picked =
        prompt::choose("Stranded and stuck pods; space marks, Enter goes on with the marked", &lines)?;
    let addresses: BTreeSet<Address> = picked.into_iter().map(|n| choices[n].0.clone()).collect();
    if addresses.is_empty() {
        return Err(Error::Refused { message: "no pod was chosen".into(), hint: None });
    }
    read(&addresses, cluster).await
}

/// These pods, all of them.
async fn read(addresses: &BTreeSet<Address>, cluster: &Cluster) -> Result<Vec<Object<Pod>>> {
    let found: Vec<Object<Pod>> = cluster.some(PODS, addresses).await?;
    let missing: Vec<String> = addresses
        .iter()
        .filter(|at| found.iter().all(|pod| pod.value.address() != **at))
        .map(|at| format!("'{}' in {}", at.name, at.namespace))
        .collect();
    if missing.is_empty() {
        return Ok(found);
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
async fn check_rights(args: &ForceDelete, pods: &[&Pod], cluster: &Cluster) -> Result<()> {
    if args.safe || args.write.dry_run == DryRun::Client {
        // Which right the safe way takes depends on the pod; to look takes none.
        return Ok(());
    }
    let namespaces: BTreeSet<&str> = pods.iter().map(|pod| pod.metadata.namespace.as_str()).collect();
    let checks = namespaces.into_iter().map(async |namespace| {
        let of: Vec<Address> =
            pods.iter().map(|pod| pod.address()).filter(|at| at.namespace == namespace).collect();
        // The right to delete some of them by name is enough, if it is these.
        if of.len() > 1 && cluster.may("delete", PODS, &Address::new(namespace, "")).await.unwrap_or(false) {
            return Ok(());
        }
        let each = of.iter().map(|at| check_right("delete", PODS, at, cluster));
        try_join_all(each).await.map(drop)
    });
    try_join_all(checks).await.map(drop)
}

fn show(one: &Judged, printer: &mut Printer) {
    let Assessment { risk, evidence, reasons, safer, .. } = &one.assessment;
    let reasons: Vec<_> = reasons.iter().map(|reason| vec![format!("- {reason}")]).collect();
    let safer: Vec<_> = safer
        .iter()
        .enumerate()
        .map(|(n, way)| {
            let what = format!("{}. {}", n + 1, way.what);
            std::iter::once(what).chain(way.command.clone()).collect()
        })
        .collect();
    printer.brief(&Brief {
        title: &format!("{}, risk of force-deleting it", one.pod.value.full_name()),
        verdict: risk.word(),
        tone: partitions::tone(*risk),
        lines: evidence,
        lists: &[("why", &reasons), ("safer", &safer)],
    });
}

/// What is done without force, if anything can be.
fn safe_way(assessment: &Assessment) -> Option<Safe> {
    assessment.safer.iter().find_map(|way| way.takes)
}

/// The same, unless it may be over a disruption budget: a deletion does not ask them, as an eviction does.
fn within_budget(one: &Judged) -> Option<Safe> {
    safe_way(&one.assessment).filter(|way| *way == Safe::Evict || !one.uncounted)
}

fn safe_word(way: Safe) -> &'static str {
    match way {
        Safe::Evict => "evict it",
        Safe::Delete | Safe::Replace => "delete it with its grace",
        Safe::Await => "wait for its end",
    }
}

/// Why no yes is enough to force-delete a pod.
fn refused(args: &ForceDelete, one: &Judged) -> Option<Error> {
    let name = one.pod.value.full_name();
    let Assessment { risk, safer, contact, .. } = &one.assessment;
    let refuse = |why: String, hint: Option<String>| {
        Some(Error::Refused { message: format!("{name} was not deleted: {why}"), hint })
    };
    let critical = *risk == Risk::Critical;
    let alive = contact.is_some_and(Contact::is_alive);
    if critical && alive {
        let first = safer.first().map(|way| match (&way.command, way.takes) {
            (_, Some(safe)) => format!("--safe --confirm to {}", safe_word(safe)),
            (Some(command), None) => format!("{}: {command}", way.what),
            (None, None) => way.what.clone(),
        });
        return refuse("its node is alive, and a second one would run beside what runs there".into(), first);
    }
    // Whoever says so: a machine that is off does not heartbeat.
    if critical && one.heartbeats {
        let hint =
            format!("switch the machine off first, and wait until its heartbeat is {HEARTBEAT_IS_OLD}");
        return refuse(
            "its node heartbeats, so the machine is on and its containers may run".into(),
            Some(hint),
        );
    }
    let over = over_budget(one).filter(|_| args.consent.confirm && !args.consent.anyway);
    over.and_then(|over| {
        let hint = if one.uncounted {
            "force-delete one pod at a time; --anyway force-deletes all of them"
        } else {
            "--safe --confirm evicts as the budget allows; fewer pods at once; --anyway goes over it"
        };
        refuse(over, Some(hint.into()))
    })
}

/// Which disruption budget a pod that is counted on would go over, or may, if one.
fn over_budget(one: &Judged) -> Option<String> {
    let spent = &one.assessment.spent_budgets;
    if one.uncounted {
        let namespace = &one.pod.value.metadata.namespace;
        return Some(format!(
            "the PodDisruptionBudgets in {namespace} could not be read, and may not allow more than one pod at a time"
        ));
    }
    let over = one.is_counted_on() && !spent.is_empty();
    over.then(|| format!("the disruption budget {} allows no more disruptions", spent.join(", ")))
}

/// What the user wants done; an error if that is nothing. `asked` is set if it took a question.
fn choose(args: &ForceDelete, one: &Judged, asked: &mut bool, printer: &mut Printer) -> Result<Choice> {
    let name = one.pod.value.full_name();
    let Assessment { risk, futile, reasons, safer, .. } = &one.assessment;
    if args.safe {
        return choose_safely(args, one, asked, printer);
    }
    if let (Some(futile), false) = (futile, args.consent.anyway) {
        let first = safer.first().map(|way| way.command.clone().unwrap_or_else(|| way.what.clone()));
        let first = first.map_or_else(String::new, |first| format!("; {first}"));
        let also = match futile {
            Futile::Finalizers => "--anyway marks it for deletion with no grace all the same",
            Futile::Mirror => "--anyway deletes the mirror pod all the same",
        };
        return Err(Error::Refused {
            message: format!(
                "force does not help with {name}: {}",
                reasons.first().map_or("", String::as_str)
            ),
            hint: Some(format!("{also}{first}")),
        });
    }
    if args.write.dry_run != DryRun::None {
        return Ok(Choice::Force);
    }
    let critical = *risk == Risk::Critical;
    if let Some(error) = refused(args, one) {
        return Err(error);
    }
    if args.consent.confirm && (args.consent.i_have_fenced || !critical) {
        return Ok(Choice::Force);
    }
    let node = &one.pod.value.spec.node_name;
    if !prompt::possible() {
        let flags = if critical {
            format!("--confirm --i-have-fenced, once you have made sure that the machine of {node} is off")
        } else {
            "--confirm deletes it without asking".to_owned()
        };
        return Err(Error::Refused {
            message: format!(
                "{name} was not deleted: the risk is {}, and there is no terminal to ask on",
                risk.word()
            ),
            hint: Some(match within_budget(one) {
                Some(way) => format!("--safe --confirm to {}; {flags}", safe_word(way)),
                None => flags,
            }),
        });
    }
    let phrase = match risk {
        Risk::Critical => Some(format!("{node} is off")),
        Risk::High => Some(one.pod.value.metadata.name.clone()),
        _ => None,
    };
    let safely = within_budget(one);
    let or_safe = safely.map_or_else(String::new, |way| format!(", 'safe' to {}", safe_word(way)));
    let question = match &phrase {
        Some(phrase) => format!("Type '{phrase}' to force-delete {name}{or_safe}; Enter stops"),
        None => format!("Force-delete {name}? 'y'{or_safe}; Enter stops"),
    };
    *asked = true;
    let answer = prompt::answer(printer, &question)?;
    let yes = match &phrase {
        Some(phrase) => answer == *phrase,
        None => matches!(answer.to_lowercase().as_str(), "y" | "yes"),
    };
    match safely {
        _ if yes => Ok(Choice::Force),
        Some(way) if answer == "safe" => Ok(Choice::Safely(way)),
        _ => Err(Error::Refused { message: "nothing was deleted".into(), hint: None }),
    }
}

/// Why `--safe` does nothing about a pod.
fn left_alone(one: &Judged) -> Error {
    let name = one.pod.value.full_name();
    let Assessment { safer, .. } = &one.assessment;
    let message = match (safer.first(), over_budget(one)) {
        (None, _) => format!("nothing can be done about {name} without force"),
        (Some(_), Some(over)) => format!("{name} was left alone: {over}"),
        (Some(_), None) => format!("{name} was left alone: what is safer than force is to be done by hand"),
    };
    let hint = safer.first().map(|way| match &way.command {
        _ if one.uncounted => "delete one pod at a time".to_owned(),
        Some(command) => format!("{}: {command}", way.what),
        None => way.what.clone(),
    });
    Error::Refused { message, hint }
}

fn choose_safely(
    args: &ForceDelete,
    one: &Judged,
    asked: &mut bool,
    printer: &mut Printer,
) -> Result<Choice> {
    let name = one.pod.value.full_name();
    let Some(way) = within_budget(one) else {
        return Err(left_alone(one));
    };
    // To wait changes nothing.
    if way == Safe::Await || args.consent.confirm || args.write.dry_run != DryRun::None {
        return Ok(Choice::Safely(way));
    }
    if !prompt::possible() {
        return Err(Error::Refused {
            message: format!("{name} was left alone: there is no terminal to ask on"),
            hint: Some(format!("--safe --confirm to {}", safe_word(way))),
        });
    }
    *asked = true;
    printer.note(&format!("{name}: {}", safe_word(way)));
    if prompt::confirm("Go on?")? {
        return Ok(Choice::Safely(way));
    }
    Err(Error::Refused { message: "nothing was deleted".into(), hint: None })
}

async fn delete(
    one: &Judged,
    grace_seconds: Option<u32>,
    dry_run: bool,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<()> {
    let (pod, at) = (&one.pod.value, one.pod.value.address());
    let how = Deletion {
        uid: &pod.metadata.uid,
        resource_version: &pod.metadata.resource_version,
        grace_seconds,
        dry_run,
    };
    match cluster.delete(PODS, &at, &how).await {
        // It may have been done all the same: what is there now tells.
        Err(error) if error.is_unclear() && !dry_run => {
            let name = pod.full_name();
            let deleted = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
            match cluster.get::<Pod>(PODS, &at).await {
                Ok(Some(now)) if now.value.metadata.uid == pod.metadata.uid => {
                    if deleted(&now.value) && !deleted(pod) {
                        return Ok(());
                    }
                    printer.warn(&format!("{name} is still there"));
                    Err(error)
                }
                Ok(_) => Ok(()),
                Err(_) => {
                    printer.warn(&format!(
                        "whether {name} was deleted is not known: look again before anything else is done"
                    ));
                    Err(error)
                }
            }
        }
        outcome => outcome.map_err(|error| raced(error, pod)),
    }
}

/// What was looked at is not what is there now.
fn raced(error: Error, pod: &Pod) -> Error {
    let name = pod.full_name();
    if error.is_conflict() {
        let message =
            format!("{name} changed between the look and the deletion: nothing was deleted ({error})");
        return Error::LostRace { message };
    }
    if error.is_not_found() {
        return Error::LostRace { message: format!("{name} went by itself meanwhile: nothing was deleted") };
    }
    error
}

async fn force(
    args: &ForceDelete,
    one: &Judged,
    who: &str,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<()> {
    let (pod, risk) = (&one.pod.value, one.assessment.risk.word());
    let name = pod.full_name();
    let note = dry_run_note(&args.write);
    let writing = writing(&args.write);
    if args.write.dry_run != DryRun::Client {
        delete(one, Some(0), writing.dry_run, cluster, printer).await?;
    }
    // Finalizers keep the object: that is not what is called deleted.
    let word = if pod.metadata.finalizers.is_empty() { "force-deleted" } else { "marked for deletion" };
    printer.done(&format!("{name} {word}, risk {risk}{note}"))?;
    // Nothing else than saying so gets anybody past a critical risk, by the flag or by the sentence.
    let fenced = if one.assessment.risk == Risk::Critical { ", said to be fenced" } else { "" };
    let why = format!(" (risk {risk}{fenced}: {})", one.assessment.reasons.join("; "));
    record(args, one, who, "ForceDeleted", &format!("force-deleted by {who}"), &why, cluster, printer).await;
    Ok(())
}

/// Leaves an Event about what was done.
#[allow(clippy::too_many_arguments)]
async fn record(
    args: &ForceDelete,
    one: &Judged,
    who: &str,
    event: &'static str,
    what: &str,
    why: &str,
    cluster: &Cluster,
    printer: &mut Printer,
) {
    if args.write.dry_run != DryRun::None {
        return;
    }
    let pod = &one.pod.value;
    let reason = args.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
    let at = pod.address();
    let record = Record {
        resource: PODS,
        at: &at,
        uid: &pod.metadata.uid,
        reason: event,
        message: format!("{what}{reason}{why}"),
        who: who.to_owned(),
    };
    if let Err(error) = cluster.record(&record, &writing(&args.write)).await {
        printer.warn(&format!("no Event was left about {}: {error}", pod.full_name()));
    }
}

async fn safely(
    args: &ForceDelete,
    one: &Judged,
    way: Safe,
    who: &str,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<()> {
    let pod = &one.pod.value;
    let name = pod.full_name();
    let note = dry_run_note(&args.write);
    let (pretend, server) = (args.write.dry_run == DryRun::Client, args.write.dry_run == DryRun::Server);
    match way {
        Safe::Evict => {
            if !pretend {
                let evicted = cluster.evict(pod, server).await;
                evicted.map_err(|error| match error {
                    Error::Api { code: 429, message, .. } => Error::Held {
                        message: format!("{name} cannot be evicted now: {message}"),
                        hint: Some("try again when its disruption budget allows it".into()),
                    },
                    error => raced(error, pod),
                })?;
            }
            let grace = age(pod.grace().max(SignedDuration::from_secs(1)));
            printer.done(&format!("{name} evicted, it has {grace} to end{note}"))?;
            record(args, one, who, "Evicted", &format!("evicted by {who}"), "", cluster, printer).await;
        }
        Safe::Delete | Safe::Replace => {
            if !pretend {
                delete(one, pod.least_grace(), server, cluster, printer).await?;
            }
            printer.done(&format!("{name} deleted with its grace{note}"))?;
            let what = format!("deleted with its grace by {who}");
            record(args, one, who, "Deleted", &what, "", cluster, printer).await;
        }
        Safe::Await => {}
    }
    Ok(())
}

/// Waits for the effect of a way without force: the pod is gone or, where it cannot end yet, replaced.
#[allow(clippy::too_many_arguments)]
async fn let_go(
    args: &ForceDelete,
    one: &Judged,
    way: Safe,
    start: Instant,
    began: ServerTime,
    replacements: &mut BTreeSet<String>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<()> {
    let (pod, name) = (&one.pod.value, one.pod.value.full_name());
    if one.assessment.futile == Some(Futile::Finalizers) && args.wait.is_none() {
        let finalizers = pod.metadata.finalizers.join(", ");
        printer.warn(&format!("{name} is marked for deletion, and kept by {finalizers}"));
        return Ok(());
    }
    let limit = match (args.wait, way) {
        (Some(limit), _) => limit,
        (None, Safe::Await) => Some(COLLECTED_WITHIN + grace_left(pod, cluster)),
        (None, Safe::Evict | Safe::Delete) => {
            Some(COLLECTED_WITHIN + Duration::try_from(pod.grace()).unwrap_or_default())
        }
        (None, Safe::Replace) => Some(REPLACED_WITHIN),
    };
    let owner = pod.controller().filter(|_| way == Safe::Replace);
    let goal = Goal {
        stays: way == Safe::Replace,
        replacement: owner.map(|owner| owner.uid.clone()),
        ready: args.wait.is_some(),
        taken: replacements.clone(),
    };
    let seen = observe(pod, &goal, by(start, limit), began, cluster, printer).await?;
    replacements.extend(seen.replacement.as_ref().map(|new| new.metadata.uid.clone()));
    match (&seen.replacement, owner) {
        (Some(new), _) => {
            let node = &pod.spec.node_name;
            let ends = if seen.gone { "is gone".to_owned() } else { format!("ends when {node} is back") };
            printer.done(&format!("{name} {ends}, {}", replaced_by(new)))?;
            if goal.ready && !new.is_ready() {
                return Err(Error::TimedOut { message: format!("{} is not ready yet", new.full_name()) });
            }
            Ok(())
        }
        (None, Some(owner)) => {
            let message = format!("{}/{} has not replaced {name} yet", owner.kind, owner.name);
            if goal.ready {
                return Err(Error::TimedOut { message });
            }
            printer.done(&message)
        }
        (None, None) if seen.gone => printer.done(&format!("{name} is gone")),
        (None, None) => {
            let why = why_still_there(pod, cluster).await.unwrap_or_default();
            Err(Error::TimedOut { message: format!("{name} is still there{why}") })
        }
    }
}

/// What keeps a pod that should be gone, and what can be done now.
async fn why_still_there(pod: &Pod, cluster: &Cluster) -> Result<String> {
    let Some(now) = cluster.get::<Pod>(PODS, &pod.address()).await? else { return Ok(String::new()) };
    let around = evidence::around(cluster, &[&now.value]).await?;
    let assessment = Assessment::of(&now.value, &around, cluster.server_time());
    let Assessment { reasons, safer, .. } = assessment.reached_by(cluster.flags());
    let first = safer.first().map(|way| match &way.command {
        Some(command) => format!("; {}: {command}", way.what),
        None => format!("; {}", way.what),
    });
    Ok(format!(": {}{}", reasons.join("; "), first.unwrap_or_default()))
}

/// What came in the place of a pod, in words.
fn replaced_by(new: &Pod) -> String {
    let node = if new.is_scheduled() {
        format!("on {}", new.spec.node_name)
    } else {
        "not given to a node yet".to_owned()
    };
    let ready = if new.is_ready() { ", ready" } else { "" };
    format!("replaced by {} with the uid {}, {node}{ready}", new.full_name(), new.metadata.uid)
}

/// How much of its grace a pod that is Terminating has left.
fn grace_left(pod: &Pod, cluster: &Cluster) -> Duration {
    let left = pod.overdue(cluster.server_time()).map(|overdue| -overdue);
    left.and_then(|left| Duration::try_from(left).ok()).unwrap_or_default()
}

/// What to look for after a deletion.
struct Goal {
    /// It does not end before its node is back: its replacement is all there is to see.
    stays: bool,
    /// The uid of the controller that makes the replacement, if one is to be expected.
    replacement: Option<String>,
    /// And until it is ready.
    ready: bool,
    /// What replaces others.
    taken: BTreeSet<String>,
}

#[derive(Default)]
struct Observed {
    gone: bool,
    replacement: Option<Pod>,
}

/// Says what became of it: gone or not, and what came in its place.
async fn aftermath(
    args: &ForceDelete,
    one: &Judged,
    start: Instant,
    began: ServerTime,
    replacements: &mut BTreeSet<String>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<()> {
    let pod = &one.pod.value;
    let name = pod.full_name();
    // Who does not wait for the object to go has replaced it when it was deleted.
    let ownership = &one.assessment.ownership;
    let expected = pod.controller().filter(|owner| match ownership.successor {
        Successor::WhenGone => true,
        Successor::Early if ownership.why == Why::UnknownKind && Kind::of(owner).is_none() => true,
        Successor::Early => {
            owner.kind == "ReplicaSet" && pod.metadata.deletion_timestamp.is_none() && !pod.is_finished()
        }
        Successor::Never => false,
    });
    let goal = Goal {
        stays: false,
        replacement: expected.map(|owner| owner.uid.clone()),
        ready: args.wait.is_some(),
        taken: replacements.clone(),
    };
    let limit = match args.wait {
        Some(limit) => limit,
        None => Some(REPLACED_WITHIN),
    };
    let seen = observe(pod, &goal, by(start, limit), began, cluster, printer).await?;
    if !seen.gone {
        let why = if pod.metadata.finalizers.is_empty() {
            String::new()
        } else {
            format!(": kept by {}", pod.metadata.finalizers.join(", "))
        };
        if args.wait.is_some() {
            return Err(Error::TimedOut { message: format!("{name} is still there{why}") });
        }
        printer.warn(&format!("{name} is marked for deletion and still there{why}"));
        return Ok(());
    }
    replacements.extend(seen.replacement.as_ref().map(|new| new.metadata.uid.clone()));
    match (&seen.replacement, expected) {
        (Some(new), _) => {
            printer.done(&format!("{name} is gone, {}", replaced_by(new)))?;
            if goal.ready && !new.is_ready() {
                return Err(Error::TimedOut { message: format!("{} is not ready yet", new.full_name()) });
            }
        }
        (None, Some(owner)) => {
            printer
                .done(&format!("{name} is gone; {}/{} has not replaced it yet", owner.kind, owner.name))?;
            if goal.ready {
                return Err(Error::TimedOut { message: format!("{name} was not replaced in time") });
            }
        }
        (None, None) => printer.done(&format!("{name} is gone"))?,
    }
    Ok(())
}

/// Until when one of several is looked at: the time is that of all of them together, but each gets
/// long enough for an answer.
fn by(start: Instant, limit: Option<Duration>) -> Option<Instant> {
    let all = start.checked_add(limit?)?;
    let least = limit?.min(ANSWERED_WITHIN);
    Some(all.max(Instant::now() + least))
}

/// Watches until the pod is gone and its replacement is there, or the time is over.
async fn observe(
    pod: &Pod,
    goal: &Goal,
    deadline: Option<Instant>,
    began: ServerTime,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<Observed> {
    let (namespace, uid) = (&pod.metadata.namespace, &pod.metadata.uid);
    let named = format!("metadata.name={}", pod.metadata.name);
    let labels: Vec<String> =
        pod.metadata.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    // What replaces a pod of these has its labels, and another name.
    let renamed = |kind: &str| matches!(kind, "ReplicaSet" | "DaemonSet" | "Job");
    let elsewhere = pod.controller().is_some_and(|owner| renamed(&owner.kind)) && !labels.is_empty();
    let query = Query::new(PODS).namespace(namespace).bare(true);
    let query = if goal.replacement.is_some() && elsewhere {
        query.select(Some(&labels.join(",")), None)
    } else {
        query.select(None, Some(&named))
    };
    let mut line = WaitLine::default();
    if deadline.is_none_or(|deadline| deadline > Instant::now() + REPLACED_WITHIN) {
        line.say(printer, &format!("waiting for what becomes of {}", pod.full_name()), "");
    }
    let mut seen = Observed::default();
    let mut scheduled_by: Option<Instant> = None;
    let is_new = |new: &Pod| {
        let owner = new.controller().map(|owner| owner.uid.as_str());
        new.metadata.uid != *uid
            && !goal.taken.contains(&new.metadata.uid)
            && owner.is_some()
            && owner == goal.replacement.as_deref()
            && new.metadata.creation_timestamp.is_some_and(|time| began.since(time).as_secs() <= 1)
    };
    let outcome = watching::until(cluster, &query, deadline, |event: Event<Pod>| {
        match event {
            Event::Snapshot(pods) => {
                seen.gone = pods.iter().all(|pod| pod.value.metadata.uid != *uid);
                seen.replacement = pods.iter().map(|pod| &*pod.value).find(|new| is_new(new)).cloned();
            }
            Event::Gone(old) => seen.gone |= old.value.metadata.uid == *uid,
            Event::Changed(new) => {
                let known = seen.replacement.as_ref().map(|known| known.metadata.uid.as_str());
                if is_new(&new.value) && known.is_none_or(|known| known == new.value.metadata.uid) {
                    seen.replacement = Some((*new.value).clone());
                }
            }
            Event::Lost(_) | Event::Failed(_) => {}
        }
        let done = match (&goal.replacement, &seen.replacement) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(_), Some(new)) if goal.ready => new.is_ready(),
            (Some(_), Some(new)) => new.is_scheduled(),
        };
        if done && (seen.gone || goal.stays) {
            return ControlFlow::Break(());
        }
        if seen.replacement.is_some() && !goal.ready {
            scheduled_by.get_or_insert_with(|| Instant::now() + SCHEDULED_WITHIN);
        }
        ControlFlow::Continue(scheduled_by)
    })
    .await;
    match outcome {
        // Who may delete a pod and not watch it has to do without.
        Err(Error::Forbidden { .. }) => {
            let now = cluster.get::<Pod>(PODS, &pod.address()).await?;
            let gone = now.is_none_or(|now| now.value.metadata.uid != *uid);
            Ok(Observed { gone, replacement: None })
        }
        outcome => outcome.map(|_| seen),
    }
}
