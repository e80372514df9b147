//! `kubectl lease candidates explain`.

use jiff::SignedDuration;
use kube_leases::{
    client::{Object, Resource, candidates::Part},
    rules::{
        candidate::Candidate,
        controller::Controller,
        duration::{self, age},
        election::{Absence, Contender, CoordinatedElection, DecisiveRule, Leader, Outlook},
        forecast::Forecast,
        preference::{Preference, preference},
        priority::{self, How, Priority},
        strategy::{OLDEST, Strategy},
        time::ServerTime,
        trouble::Trouble,
    },
};
use serde_json::json;

use super::{
    election::{gather, the_election},
    row::rows,
};
use crate::{
    cli::Explain,
    connection::Reached,
    error::Result,
    exit::ExitCode,
    output::{
        Format, Item as _, Printer,
        words::{
            election::{ago, called, controller as of_controller, either, open, state},
            paste::{pasted, with_flags},
            trouble::{document as of_trouble, trouble},
        },
    },
};

pub async fn run(
    args: &Explain,
    namespace: Option<&str>,
    cluster: &Reached,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let found = gather(namespace, cluster).await?;
    let controller = cluster.election_controller(&found, namespace).await?;
    let all = found.all();
    let election = the_election(&args.lease, &all, &found.parts)?;
    let now = cluster.server_time();
    let outlook = election.outlook(now);
    match args.output {
        Format::Table | Format::Wide => {
            for line in explanation(election, &outlook, &controller, now) {
                printer.done(&with_flags(&line, cluster.flags()))?;
            }
        }
        Format::Name => printer.done(&format!("lease.coordination.k8s.io/{}", election.name))?,
        Format::Json | Format::Yaml => {
            let objects = (&found.parts[..], found.resource);
            let document = document(election, &outlook, &controller, objects, cluster.flags(), now);
            printer.document("Election", document, args.output)?;
        }
    }
    Ok(ExitCode::Done)
}

fn document(
    election: &CoordinatedElection<'_>,
    outlook: &Outlook<'_>,
    controller: &Controller,
    (parts, resource): (&[Vec<Object<Part>>], Resource),
    flags: &str,
    now: ServerTime,
) -> serde_json::Value {
    let mut wrong: Vec<_> =
        outlook.troubles.iter().map(|it| of_trouble(it, election.key(), now, flags)).collect();
    wrong.extend(of_controller(controller).map(|message| of_silent_controller(controller, &message)));
    let (until, valid) = match &outlook.leader {
        Leader::Held { until, valid, .. } => (until.map(|until| format!("{until:.6}")), *valid),
        _ => (None, false),
    };
    let candidates: Vec<_> = rows(election, outlook, parts, resource)
        .iter()
        .zip(&outlook.entries)
        .map(|(row, entry)| {
            let mut fields = row.document();
            fields.remove("lease");
            if let Some(absence) = entry.absence {
                let message = absent(entry, absence, now);
                fields.insert("absent".into(), json!({ "code": absence, "message": message }));
            }
            fields
        })
        .collect();
    let taking_part: Vec<_> = outlook.entries.iter().filter(|entry| entry.absence.is_none()).collect();
    let lease = parts.iter().flatten().find(|part| {
        part.value.lease().is_some_and(|it| Some(&it.metadata) == election.lease.map(|it| &it.metadata))
    });
    json!({
        "namespace": election.namespace,
        "leaseName": election.name,
        "leader": outlook.leader.holder(),
        "leaderValid": valid,
        "leaderUntil": until,
        "preferredHolder": outlook.preferred,
        "strategy": strategy(&outlook.strategy),
        "decidedBy": outlook.rule,
        "decision": decision(outlook, &taking_part),
        "next": outlook.entries.iter().filter(|entry| entry.next).map(|entry| entry.candidate.name()).collect::<Vec<_>>(),
        "moving": outlook.is_moving(),
        "forecast": forecast_code(&outlook.forecast),
        "dependsOn": match &outlook.forecast {
            Forecast::Open(doubt, _) => Some(*doubt),
            _ => None,
        },
        "follows": follows(election, outlook),
        "controllerAlive": controller.is_alive(),
        "wrong": wrong,
        "candidates": candidates,
        "lease": lease.map(|object| object.document(kube_leases::client::LEASES)),
    })
}

/// What is wrong with the election controller.
fn of_silent_controller(controller: &Controller, message: &str) -> serde_json::Value {
    let (state, holder, ago) = match controller {
        Controller::Silent { holder, ago } => ("silent", Some(holder), Some(*ago)),
        _ => ("missing", None, None),
    };
    // Of one that was never renewed there is no time.
    let seconds = ago.filter(|ago| *ago != SignedDuration::MAX).map(|ago| ago.as_secs());
    json!({
        "code": "election-controller", "state": state, "holder": holder, "secondsSinceRenewal": seconds,
        "message": message, "hint": null,
    })
}

fn explanation(
    election: &CoordinatedElection<'_>,
    outlook: &Outlook<'_>,
    controller: &Controller,
    now: ServerTime,
) -> Vec<String> {
    let mut lines =
        vec![format!("The election for {}", called(election.namespace, election.name)), String::new()];
    lines.push(leader(election, outlook, now));
    let no_candidate = outlook.troubles.iter().any(|it| matches!(it, Trouble::LeaderNoCandidate { .. }));
    if let Some(preferred) = outlook.preferred.as_ref().filter(|_| !no_candidate) {
        lines.push(format!("It is asked to step down for {preferred}."));
    }
    lines.push(match controller {
        Controller::Alive { holder, ago } => {
            format!(
                "The election controller runs in the kube-apiserver on {holder} (renewed {}).",
                duration::ago(*ago)
            )
        }
        Controller::Unseen => {
            "Whether the election controller is alive cannot be seen: you have no permission to read its lease.".into()
        }
        wrong => sentence(&of_controller(wrong).unwrap_or_default()),
    });

    let (absent_ones, taking_part): (Vec<_>, Vec<_>) =
        outlook.entries.iter().partition(|entry| entry.absence.is_some());
    lines.extend([String::new(), "Taking part, the best first:".into()]);
    if taking_part.is_empty() {
        lines.push("  none".into());
    }
    lines.extend(taking_part.iter().enumerate().map(|(n, entry)| {
        let mark = match (outlook.leader.valid(), entry) {
            (Some(_), entry) if entry.leads => "   <- leader",
            (_, entry) if entry.next && outlook.is_tied() => "   <- next?",
            (_, entry) if entry.next => "   <- next",
            _ => "",
        };
        format!("  {}. {}: {}{mark}", n + 1, entry.candidate.name(), described(entry.candidate, now))
    }));
    if !absent_ones.is_empty() {
        lines.extend([String::new(), "Not taking part:".into()]);
        lines.extend(absent_ones.iter().filter_map(|entry| {
            Some(format!("  {}: {}", entry.candidate.name(), absent(entry, entry.absence?, now)))
        }));
    }

    lines.extend([String::new(), decision(outlook, &taking_part)]);
    lines.extend(follows(election, outlook));
    lines.extend(change(election.namespace, outlook));

    let mut wrongs: Vec<_> = outlook
        .troubles
        .iter()
        .flat_map(|it| {
            let (what, hint) = trouble(it, election.key(), now);
            [format!("  {what}"), format!("    {hint}")]
        })
        .collect();
    wrongs.extend(of_controller(controller).map(|wrong| format!("  {wrong}")));
    if !wrongs.is_empty() {
        lines.extend([String::new(), "What is wrong:".into()]);
        lines.extend(wrongs);
    }
    lines
}

fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

fn leader(election: &CoordinatedElection<'_>, outlook: &Outlook<'_>, now: ServerTime) -> String {
    let renewed = election.lease.and_then(kube_leases::rules::lease::Lease::renewed);
    let renewed = renewed
        .map_or_else(String::new, |renewed| format!("renewed {}, ", duration::ago(now.since(renewed))));
    match &outlook.leader {
        Leader::NoLease => "There is no leader: there is no lease yet.".into(),
        Leader::Null => "There is no leader: the lease's holder is null.".into(),
        Leader::Vacant => "There is no leader: the lease was released.".into(),
        Leader::Held { holder, until: Some(until), valid: true } => {
            format!("{holder} leads: {renewed}valid for {} more.", age(until.duration_since(now.0)))
        }
        Leader::Held { holder, until: Some(until), .. } => {
            format!(
                "There is no leader: {holder} led, and its lease expired {}.",
                duration::ago(now.since(*until))
            )
        }
        Leader::Held { holder, until: None, .. } => {
            format!(
                "There is no valid leader: {holder} is the holder, but renewTime or leaseDurationSeconds is not set."
            )
        }
    }
}

fn described(candidate: &Candidate, now: ServerTime) -> String {
    let created = candidate.metadata.creation_timestamp;
    let created =
        created.map_or_else(String::new, |time| format!(", created {}", duration::ago(now.since(time))));
    let priority = Priority::of(candidate).map_or_else(String::new, |priority| {
        let how = if priority.how == How::Pinned { " (pinned)" } else { "" };
        let until = priority.expires.map_or_else(String::new, |expires| format!(" until {expires:.0}"));
        format!("priority {}{how}{until}, ", priority.value)
    });
    format!(
        "{priority}emulates {}, binary {}{created}, {}",
        priority::true_emulation_version(candidate),
        candidate.spec.binary_version,
        state(candidate.state(now))
    )
}

fn absent(entry: &Contender<'_>, absence: Absence, now: ServerTime) -> String {
    let spec = &entry.candidate.spec;
    let ago = |time| ago(time, now);
    match absence {
        Absence::Expired if spec.renew_time.is_none() => "never renewed".into(),
        Absence::Expired => format!("expired: last renewed {}, over 30 minutes", ago(spec.renew_time)),
        Absence::Silent => {
            format!(
                "did not acknowledge the ping of {}; last renewed {}",
                ago(spec.ping_time),
                ago(spec.renew_time)
            )
        }
        Absence::Overdue => format!(
            "last renewed {}, though it should every 5 minutes: its process is taken for dead",
            ago(spec.renew_time)
        ),
        Absence::LostLead => "led, let its lease expire, and has not renewed since".into(),
        Absence::Superseded => format!(
            "a later candidate of its host has taken its place; last renewed {}",
            ago(spec.renew_time)
        ),
        Absence::Version => format!(
            "a version that cannot be read (binary '{}', emulation '{}')",
            spec.binary_version, spec.emulation_version
        ),
    }
}

fn strategy(strategy: &Strategy) -> Option<&str> {
    match strategy {
        Strategy::Oldest => Some(OLDEST),
        Strategy::Foreign(name) => Some(name),
        Strategy::Conflict(_) | Strategy::None => None,
    }
}

fn decision(outlook: &Outlook<'_>, taking_part: &[&Contender<'_>]) -> String {
    match &outlook.strategy {
        Strategy::None => return "No candidate takes part, so none can be elected.".into(),
        Strategy::Foreign(name) => {
            return format!("The strategy is '{name}', which Kubernetes leaves to another controller.");
        }
        Strategy::Conflict(_) => {
            return "The candidates disagree on the strategy, so none is elected.".into();
        }
        Strategy::Oldest => {}
    }
    let name = |n: usize| taking_part.get(n).map_or("", |entry| entry.candidate.name());
    let (first, second) = (name(0), name(1));
    match outlook.rule {
        None => String::new(),
        Some(DecisiveRule::Alone) => format!("{first} is the only one that takes part."),
        Some(DecisiveRule::Priority) => {
            format!("The priority decides: {first} has a higher one than {second}.")
        }
        Some(DecisiveRule::EmulationVersion) => {
            format!("The emulation version decides: {first} has an older one than {second}.")
        }
        Some(DecisiveRule::BinaryVersion) => format!(
            "The binary version decides: {first} has an older one than {second}, with the same emulation version."
        ),
        Some(DecisiveRule::Age) => format!(
            "The age of the candidates decides: {first} is older than {second}, and their versions are the same."
        ),
        Some(DecisiveRule::Tie) => format!(
            "Nothing decides between {first} and {second}: versions and ages are the same, to the second."
        ),
    }
}

/// What happens next, by itself or if the leader ends.
fn follows(election: &CoordinatedElection<'_>, outlook: &Outlook<'_>) -> Option<String> {
    let next: Vec<String> = outlook
        .entries
        .iter()
        .filter(|entry| entry.next)
        .map(|entry| entry.candidate.name().to_owned())
        .collect();
    let to = either(&next);
    let equal = if next.len() > 1 { ": they are equal" } else { "" };
    let holder = outlook.leader.holder().unwrap_or_default();
    Some(match &outlook.forecast {
        Forecast::Stays if outlook.strategy != Strategy::Oldest && next.is_empty() => return None,
        Forecast::Stays if next.is_empty() => format!("If {holder} ends, no candidate can be elected."),
        Forecast::Stays if outlook.is_uncoordinated => format!(
            "{holder} leads without coordinated election and is not asked to step down. If it ends, {to} leads next\
             {equal}, unless another instance without coordinated election takes the lease first."
        ),
        Forecast::Stays => format!("If the leader ends, {to} leads next{equal}."),
        Forecast::Moves(_) => format!("Leadership is about to move from {holder} to {to}{equal}."),
        Forecast::Elects(_) => format!("{to} is about to be elected{equal}."),
        Forecast::Open(doubt, names) => {
            open(*doubt, names, holder, &called(election.namespace, election.name))
        }
        Forecast::Stuck => format!(
            "No candidate is elected: {holder} is the best, and the controller does not elect the holder of an expired \
             lease again."
        ),
        Forecast::Nothing => return None,
    })
}

/// What the controller does next, as a code.
fn forecast_code(forecast: &Forecast) -> &'static str {
    match forecast {
        Forecast::Stays => "stays",
        Forecast::Moves(_) => "moves",
        Forecast::Elects(_) => "elects",
        Forecast::Open(..) => "open",
        Forecast::Stuck => "stuck",
        Forecast::Nothing => "nothing",
    }
}

/// How to change it.
fn change(namespace: &str, outlook: &Outlook<'_>) -> Option<String> {
    Some(match preference(outlook)? {
        Preference::NoPin { first } => format!(
            "To change it: not by a priority, since {first} comes before every pin; see what versions it reports."
        ),
        Preference::Priority { candidate, value, clears } => {
            let set = format!(
                "'kubectl lease candidates set-priority {} {value} -n {namespace}'",
                pasted(candidate, "CANDIDATE")
            );
            let clear = clears.map_or_else(String::new, |first| {
                let first = pasted(first, "CANDIDATE");
                format!(", or 'kubectl lease candidates clear-priority {first} -n {namespace}'")
            });
            format!("To change it: {set}{clear}.")
        }
    })
}
