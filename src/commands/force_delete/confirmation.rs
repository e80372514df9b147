//! What the user is asked, and what no answer is enough for.

use crate::{
    cli::{DryRun, ForceDelete},
    connection::Reached,
    error::{Error, Result},
    output::{
        Printer, prompt,
        words::{
            advice::{self, safe},
            deletion::over_budget,
            nodes::HEARTBEAT_IS_OLD,
            risk,
        },
    },
};
use kube_leases::rules::{
    advice::Safe,
    assessment::{Assessment, Futile},
    deletion::{Choice, ForceRefusal, Judged},
    risk::Risk,
};

/// Whether a question was asked, and time has gone by.
pub struct Asked(pub bool);

/// What is safest.
fn first_advice(one: &Judged, cluster: &Reached) -> Option<advice::Line> {
    let first = one.assessment.safer.first()?;
    Some(advice::line(&first.advice, &one.pod, cluster.flags()))
}

/// Why no confirmation is enough to force-delete a pod.
fn refused(args: &ForceDelete, one: &Judged, cluster: &Reached) -> Option<Error> {
    let (why, hint) = match one.refusal(!args.consent.confirm || args.consent.anyway)? {
        ForceRefusal::NodeAlive => {
            let first = match one.assessment.safer.first().and_then(|way| way.takes) {
                Some(way) => Some(format!("--safe --confirm to {}", safe(way))),
                None => first_advice(one, cluster).map(advice::Line::joined),
            };
            ("its node is alive, and a second one would run beside what runs there".to_owned(), first)
        }
        ForceRefusal::NodeHeartbeats => {
            let hint =
                format!("power off the machine first, and wait until its heartbeat is {HEARTBEAT_IS_OLD}");
            (
                "its node sends heartbeats, so the machine is on and its containers may run".to_owned(),
                Some(hint),
            )
        }
        ForceRefusal::OverBudget(over) => {
            let hint = if one.uncounted {
                "force-delete one pod at a time; --anyway force-deletes all of them"
            } else {
                "use --safe --confirm to evict within the budget, select fewer pods, or --anyway to exceed it"
            };
            (over_budget(&over, &one.pod), Some(hint.to_owned()))
        }
    };
    Some(Error::Refused { message: format!("{} was not deleted: {why}", one.pod.full_name()), hint })
}

/// What the user wants done; an error if that is nothing.
pub fn choose(
    args: &ForceDelete,
    one: &Judged,
    asked: &mut Asked,
    cluster: &Reached,
    printer: &mut Printer,
) -> Result<Choice> {
    let name = one.pod.full_name();
    let Assessment { risk, futile, reasons, .. } = &one.assessment;
    if args.safe {
        return choose_safely(args, one, asked, cluster, printer);
    }
    if let (Some(futile), false) = (futile, args.consent.anyway) {
        let first = first_advice(one, cluster).map(|line| line.command.unwrap_or(line.what));
        let first = first.map_or_else(String::new, |first| format!("; {first}"));
        let also = match futile {
            Futile::Finalizers => "--anyway marks it for deletion with no grace period all the same",
            Futile::Mirror => "--anyway deletes the mirror pod all the same",
        };
        return Err(Error::Refused {
            message: format!(
                "force does not help with {name}: {}",
                reasons.first().map_or_else(String::new, risk::reason)
            ),
            hint: Some(format!("{also}{first}")),
        });
    }
    if args.write.dry_run != DryRun::None {
        return Ok(Choice::Force);
    }
    let critical = *risk == Risk::Critical;
    if let Some(error) = refused(args, one, cluster) {
        return Err(error);
    }
    if args.consent.confirm && (args.consent.i_have_fenced || !critical) {
        return Ok(Choice::Force);
    }
    let node = &one.pod.spec.node_name;
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
            hint: Some(match one.within_budget() {
                Some(way) => format!("--safe --confirm to {}; {flags}", safe(way)),
                None => flags,
            }),
        });
    }
    let phrase = match risk {
        Risk::Critical => Some(format!("{node} is off")),
        Risk::High => Some(one.pod.metadata.name.clone()),
        _ => None,
    };
    let safely = one.within_budget();
    let or_safe = safely.map_or_else(String::new, |way| format!(", 'safe' to {}", safe(way)));
    let question = match &phrase {
        Some(phrase) => format!("Type '{phrase}' to force-delete {name}{or_safe}; Enter stops"),
        None => format!("Force-delete {name}? 'y'{or_safe}; Enter stops"),
    };
    asked.0 = true;
    let answer = prompt::answer(printer, &question)?;
    let yes = match &phrase {
        Some(phrase) => answer == *phrase,
        None => prompt::is_yes(&answer),
    };
    match safely {
        _ if yes => Ok(Choice::Force),
        Some(way) if answer == "safe" => Ok(Choice::Safely(way)),
        _ => Err(Error::Refused { message: "nothing was deleted".into(), hint: None }),
    }
}

/// Why `--safe` does nothing about a pod.
fn left_alone(one: &Judged, cluster: &Reached) -> Error {
    let name = one.pod.full_name();
    let first = first_advice(one, cluster);
    let message = match (&first, one.over_budget()) {
        (None, _) => format!("nothing can be done about {name} without force"),
        (Some(_), Some(over)) => format!("{name} was left alone: {}", over_budget(&over, &one.pod)),
        (Some(_), None) => format!("{name} was left alone: what is safer than force is to be done by hand"),
    };
    let hint =
        first.map(|line| if one.uncounted { "delete one pod at a time".to_owned() } else { line.joined() });
    Error::Refused { message, hint }
}

fn choose_safely(
    args: &ForceDelete,
    one: &Judged,
    asked: &mut Asked,
    cluster: &Reached,
    printer: &mut Printer,
) -> Result<Choice> {
    let name = one.pod.full_name();
    let Some(way) = one.within_budget() else {
        return Err(left_alone(one, cluster));
    };
    // To wait changes nothing.
    if way == Safe::Await || args.consent.confirm || args.write.dry_run != DryRun::None {
        return Ok(Choice::Safely(way));
    }
    if !prompt::possible() {
        return Err(Error::Refused {
            message: format!("{name} was left alone: there is no terminal to ask on"),
            hint: Some(format!("--safe --confirm to {}", safe(way))),
        });
    }
    asked.0 = true;
    printer.note(&format!("{name}: {}", safe(way)));
    if prompt::confirm("Go on?")? {
        return Ok(Choice::Safely(way));
    }
    Err(Error::Refused { message: "nothing was deleted".into(), hint: None })
}
