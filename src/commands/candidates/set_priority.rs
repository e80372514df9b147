//! `kubectl lease candidates set-priority`.

use kube_leases::{
    client::candidates::Elections,
    protocols::elections::{
        handover::{self, Acknowledgement},
        priority::{self as protocol, PriorityRequest, PriorityTarget},
    },
    rules::{
        choice::{self, Chosen},
        controller::Controller,
        forecast::Strands,
        identity,
        obstacle::{PriorityObstacle, obstacles},
        priority::{How, Priority, Unpinnable},
        skew::{self, Breach, Minor, VersionSkew},
        time::ServerTime,
    },
};

use super::{candidate::unclear, confirmation::agree, election::gather, reporter::Reporter};
use crate::{
    cli::{DryRun, SetPriority},
    commands::{dry_run_note, interrupts::interrupts, writing},
    connection::Reached,
    error::{Error, Result},
    exit::ExitCode,
    output::{
        Printer,
        words::{
            election::{called, controller as of_controller, follows, of, when_cleared},
            paste::with_flags,
            trouble::trouble,
        },
    },
};

pub async fn run(
    args: &SetPriority,
    namespace: Option<&str>,
    cluster: &Reached,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let found = gather(namespace, cluster).await?;
    let controller = cluster.election_controller(&found, namespace).await?;
    let all = found.all();
    let now = cluster.server_time();
    let chosen = choice::find(&args.candidate, args.lease.as_deref(), &all, now)
        .map_err(|why| unclear(&args.candidate, &why))?;
    for one in &chosen {
        let found_obstacles = obstacles(one.election, one.candidate, args.priority, &controller, now);
        for obstacle in found_obstacles {
            pass(&obstacle, one, args.force, now, cluster.flags(), printer)?;
        }
        check_skew(one, &found, args.force, cluster, printer).await?;
    }
    if controller == Controller::Unseen {
        printer
            .warn("you cannot see whether the election controller is alive: without it nothing will happen");
    }

    // What confirmation is asked for is known before: whether the candidates are there, how this server has
    // priorities, and that we have permission to write them. A dry run does not even ping.
    let candidates: Vec<_> = chosen.iter().map(|one| one.candidate).collect();
    let answers = match args.write.dry_run {
        DryRun::None => handover::acknowledgements_of(cluster, found.resource, &candidates).await,
        _ => Ok(candidates.iter().map(|it| Some(Acknowledgement::assumed(it))).collect()),
    };
    let answers = match answers {
        Ok(answers) => answers,
        Err(failed) => {
            return Reporter::new(printer, cluster.flags()).end(Err(failed)).map(|()| ExitCode::Done);
        }
    };
    let mut targets = Vec::new();
    for (one, answered) in chosen.iter().zip(answers) {
        if answered.is_none() {
            let message =
                format!("{} does not acknowledge a ping: it would not be elected", one.candidate.name());
            if !args.force {
                return Err(Error::Refused {
                    message,
                    hint: Some("see whether its process runs; --force sets the priority all the same".into()),
                });
            }
            printer.warn(&message);
        }
        let answer = answered.unwrap_or_else(|| Acknowledgement::assumed(one.candidate));
        let how = match args.write.dry_run {
            DryRun::Client => How::by_candidates(&one.election.candidates),
            _ => cluster.priority_by(found.resource, &answer.candidate, args.priority).await?,
        };
        targets.push(PriorityTarget::new(one.election, answer, args.priority, how, cluster.server_time()));
    }
    agree(&words(args, &targets), args.yes, args.write.dry_run, cluster, printer)?;

    let mut reporter = Reporter::new(printer, cluster.flags())
        .with_note(dry_run_note(args.write.dry_run))
        .with_priority(args.priority);
    if args.write.dry_run == DryRun::Client {
        for target in &targets {
            if reporter.set(&target.candidate, target.how).is_break() {
                break;
            }
        }
        return reporter.end(Ok(())).map(|()| ExitCode::Done);
    }
    let request = PriorityRequest {
        value: args.priority,
        length: args.for_,
        detach: args.detach,
        force: args.force,
        wait: args.wait.into(),
        writing: writing(&args.write),
    };
    let outcome =
        protocol::set(cluster, found.resource, targets, &request, &mut reporter, interrupts()).await;
    reporter.end(outcome).map(|()| ExitCode::Done)
}

/// What will happen.
fn words(args: &SetPriority, targets: &[PriorityTarget]) -> Vec<String> {
    let length = args.for_.map(|length| format!(" for {}", humantime::format_duration(length)));
    let length = length.unwrap_or_default();
    let mut words = Vec::new();
    for PriorityTarget { candidate, plan, cleared, .. } in targets {
        words.push(format!("{} gets priority {}{length}.", candidate.name(), args.priority));
        if let Some(priority) = Priority::of(candidate) {
            let until = priority.expires.map_or_else(String::new, |end| format!(" until {end:.0}"));
            words.push(format!("It has priority {}{until} already, which is replaced.", priority.value));
        }
        if plan.strands == Some(Strands::AskedToStepDown) {
            words.push(format!("It is set when leadership of {} has moved, which it is about to.", of(plan)));
        }
        words.extend(follows(plan, false));
        if args.for_.is_some() && plan.forecast.names() == [candidate.name().to_owned()] {
            words.push(when_cleared(candidate.name(), plan.from.as_deref(), cleared));
        }
    }
    words.push("The priority is lost when the component restarts.".into());
    words
}

/// Refuses for an obstacle; with `force` one that can be passed is a warning. `flags` are those that the commands in
/// hints need to reach the cluster.
fn pass(
    obstacle: &PriorityObstacle,
    one: &Chosen<'_, '_>,
    force: bool,
    now: ServerTime,
    flags: &str,
    printer: &mut Printer,
) -> Result<()> {
    let (message, hint) = in_the_way(obstacle, one, now);
    let hint = with_flags(&hint, flags);
    match (obstacle.can_be_forced(), force) {
        (false, _) => Err(Error::Refused { message, hint: Some(hint) }),
        (true, false) => {
            Err(Error::Refused { message, hint: Some(format!("{hint}; --force does it all the same")) })
        }
        (true, true) => {
            printer.warn(&message);
            Ok(())
        }
    }
}

/// What is in the way of a priority, and what to do about it.
fn in_the_way(obstacle: &PriorityObstacle, one: &Chosen<'_, '_>, now: ServerTime) -> (String, String) {
    let (name, called) = (one.candidate.name(), called(one.election.namespace, one.election.name));
    match obstacle {
        PriorityObstacle::LeaseName => (
            format!("{name} is a candidate for {called}, and no lease can have that name"),
            "its component has to name another one".into(),
        ),
        PriorityObstacle::Trouble(it) => trouble(it, one.election.key(), now),
        PriorityObstacle::Unpinnable(Unpinnable::Unreadable) => (
            format!("the emulation version of {name} cannot be read: it is never elected"),
            "see what its component reports as its versions".into(),
        ),
        PriorityObstacle::Unpinnable(Unpinnable::TooOld) => (
            format!(
                "the binary version of {name} is {}: no emulation version that is older can stand for a priority",
                one.candidate.spec.binary_version
            ),
            "a component with a version from 0.1.0 on can have one".into(),
        ),
        PriorityObstacle::Unpinnable(Unpinnable::Behind(other)) => (
            format!(
                "the emulation version of {other} is so low that it goes before every priority: {name} is not elected"
            ),
            format!("see what the component of {other} reports as its versions"),
        ),
        PriorityObstacle::Uncoordinated => (
            format!("the election for {called} is not coordinated: its lease has no strategy"),
            "its holder runs without coordinated leader election".into(),
        ),
        PriorityObstacle::Controller(controller) => {
            (of_controller(controller).unwrap_or_default(), "without it a priority does nothing".into())
        }
    }
}

/// Refuses a candidate that would break the version skew policy with a kube-apiserver that is known to be alive,
/// and warns of those whose version is not known.
async fn check_skew(
    one: &Chosen<'_, '_>,
    found: &Elections,
    force: bool,
    cluster: &Reached,
    printer: &mut Printer,
) -> Result<()> {
    let (election, name) = (one.election, one.candidate.name());
    let governed = skew::governs(election.namespace, election.name);
    let Some(version) = Minor::of(one.candidate).filter(|_| governed) else { return Ok(()) };
    let identities = identity::among(found.leases(), cluster.server_time());
    let apiservers = cluster.apiserver_versions(&identities).await;
    let others: Vec<_> = election.candidates.iter().filter_map(|it| Minor::of(it)).collect();
    let verdict = skew::judge(version, &others, &apiservers);
    for Breach { host, version: apiserver, skew } in &verdict.broken {
        let (how, fix) = match skew {
            VersionSkew::Newer => ("is newer than", "upgrade the kube-apiservers first"),
            VersionSkew::TooOld => {
                ("is more than one minor version older than", "upgrade the component first")
            }
        };
        let message = format!(
            "{name} works as {}, which {how} the kube-apiserver {} ({}): leading would break the version skew policy",
            version.text(),
            place(host),
            apiserver.text()
        );
        if !force {
            return Err(Error::Refused {
                message,
                hint: Some(format!("{fix}; --force does it all the same")),
            });
        }
        printer.warn(&message);
    }
    if !verdict.unknown.is_empty() {
        printer.warn(&format!(
            "the version of the kube-apiserver {} is not known, and versions differ: {} must not be newer than any \
             kube-apiserver, nor more than one minor version older",
            verdict.unknown.iter().map(|host| place(host)).collect::<Vec<_>>().join(" and "),
            election.name
        ));
    }
    Ok(())
}

/// Where a kube-apiserver is: on its host, or where it answers for one that is not known.
fn place(host: &str) -> String {
    if host.contains("://") { format!("at {host}") } else { format!("on {host}") }
}
