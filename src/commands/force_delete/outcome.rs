//! What was done to a pod, what was not, and what became of it.

use jiff::SignedDuration;

use crate::{
    connection::Reached,
    error::{Error, Result},
    output::{
        Printer,
        words::{advice, deletion::changed, risk},
    },
};
use kube_leases::{
    protocols::{
        aftermath::{PodOutcome, still_there},
        delete::NotDeleted,
    },
    rules::{
        advice::Safe,
        deletion::{Choice, Judged},
        duration::age,
        pod::Pod,
        risk::Risk,
    },
};

/// What was done, in the words of a line and of an Event.
pub struct Words {
    /// Behind the name of the pod.
    pub done: String,
    /// The word for the Event.
    pub event: &'static str,
    /// What the user did.
    pub did: &'static str,
    /// Behind that.
    pub why: String,
}

/// What was done to a pod; `None` if that is nothing.
pub fn words_of(one: &Judged, choice: Choice) -> Option<Words> {
    Some(match choice {
        Choice::Force => {
            let verdict = one.assessment.risk.word();
            // Finalizers keep the object: that is not what is called deleted.
            let finalizers = &one.pod.metadata.finalizers;
            let word = if finalizers.is_empty() { "force-deleted" } else { "marked for deletion" };
            // Nothing else is enough at a critical risk, be it the flag or the sentence.
            let fenced = if one.assessment.risk == Risk::Critical { ", confirmed to be fenced" } else { "" };
            Words {
                done: format!("{word}, risk {verdict}"),
                event: "ForceDeleted",
                did: "force-deleted",
                why: format!(" (risk {verdict}{fenced}: {})", risk::sentences(&one.assessment.reasons)),
            }
        }
        Choice::Safely(Safe::Evict) => {
            let grace = age(one.pod.grace().max(SignedDuration::from_secs(1)));
            let done = format!("evicted, its grace period is {grace}");
            Words { done, event: "Evicted", did: "evicted", why: String::new() }
        }
        Choice::Safely(Safe::Delete | Safe::Replace) => Words {
            done: "deleted with its grace period".to_owned(),
            event: "Deleted",
            did: "deleted with its grace period",
            why: String::new(),
        },
        Choice::Safely(Safe::Await) => return None,
    })
}

/// Why a pod was not deleted, or why that is not known.
pub fn not_deleted(why: NotDeleted, pod: &Pod, printer: &mut Printer) -> Error {
    let name = pod.full_name();
    match why {
        NotDeleted::Changed(change) => Error::LostRace { message: changed(&change, pod) },
        NotDeleted::PodChanged(error) => Error::LostRace {
            message: format!("{name} changed after it was read: nothing was deleted ({error})"),
        },
        NotDeleted::Gone => {
            Error::LostRace { message: format!("{name} was deleted meanwhile, not by this command") }
        }
        NotDeleted::BudgetSpent(message) => Error::Held {
            message: format!("{name} cannot be evicted now: {message}"),
            hint: Some("try again when its disruption budget allows it".into()),
        },
        NotDeleted::StillThere(error) => {
            printer.warn(&format!("{name} is still there"));
            error.into()
        }
        NotDeleted::Unknown(error) => {
            printer.warn(&format!(
                "whether {name} was deleted is not known: check with 'kubectl get pod' before anything else is done"
            ));
            error.into()
        }
        NotDeleted::Failed(error) => error.into(),
    }
}

/// What came in the place of a pod.
fn replaced_by(new: &Pod) -> String {
    let node = if new.is_scheduled() {
        format!("on {}", new.spec.node_name)
    } else {
        "not scheduled to a node yet".to_owned()
    };
    let ready = if new.is_ready() { ", ready" } else { "" };
    format!("replaced by {} with the uid {}, {node}{ready}", new.full_name(), new.metadata.uid)
}

/// Says what became of a pod that was force-deleted; `waited` for until its replacement is ready.
pub fn forced(pod: &Pod, fate: &PodOutcome, waited: bool, printer: &mut Printer) -> Result<()> {
    let name = pod.full_name();
    if !fate.gone {
        let why = if pod.metadata.finalizers.is_empty() {
            String::new()
        } else {
            format!(": kept by {}", pod.metadata.finalizers.join(", "))
        };
        if waited {
            return Err(Error::TimedOut { message: format!("{name} is still there{why}") });
        }
        printer.warn(&format!("{name} is marked for deletion and still there{why}"));
        return Ok(());
    }
    match (&fate.replacement, &fate.expected) {
        (Some(new), _) => {
            printer.done(&format!("{name} is gone, {}", replaced_by(new)))?;
            is_ready(new, waited)
        }
        (None, Some(owner)) => {
            printer
                .done(&format!("{name} is gone; {}/{} has not replaced it yet", owner.kind, owner.name))?;
            if waited {
                return Err(Error::TimedOut { message: format!("{name} was not replaced in time") });
            }
            Ok(())
        }
        (None, None) => printer.done(&format!("{name} is gone")),
    }
}

/// Says what became of a pod without force: it is gone or, where it cannot end yet, replaced.
pub async fn softly(
    pod: &Pod,
    fate: &PodOutcome,
    waited: bool,
    cluster: &Reached,
    printer: &mut Printer,
) -> Result<()> {
    let name = pod.full_name();
    match (&fate.replacement, &fate.expected) {
        (Some(new), _) => {
            let node = &pod.spec.node_name;
            let ends = if fate.gone { "is gone".to_owned() } else { format!("ends when {node} is back") };
            printer.done(&format!("{name} {ends}, {}", replaced_by(new)))?;
            is_ready(new, waited)
        }
        (None, Some(owner)) => {
            let message = format!("{}/{} has not replaced {name} yet", owner.kind, owner.name);
            if waited {
                return Err(Error::TimedOut { message });
            }
            printer.done(&message)
        }
        (None, None) if fate.gone => printer.done(&format!("{name} is gone")),
        (None, None) => {
            let why = why_still_there(pod, cluster).await.unwrap_or_default();
            Err(Error::TimedOut { message: format!("{name} is still there{why}") })
        }
    }
}

fn is_ready(new: &Pod, waited: bool) -> Result<()> {
    if waited && !new.is_ready() {
        return Err(Error::TimedOut { message: format!("{} is not ready yet", new.full_name()) });
    }
    Ok(())
}

/// What keeps a pod that should be gone, and what can be done now.
async fn why_still_there(pod: &Pod, cluster: &Reached) -> Result<String> {
    let Some((now, assessment)) = still_there(cluster, pod).await? else { return Ok(String::new()) };
    let first = assessment
        .safer
        .first()
        .map(|way| format!("; {}", advice::line(&way.advice, &now, cluster.flags()).joined()));
    Ok(format!(": {}{}", risk::sentences(&assessment.reasons), first.unwrap_or_default()))
}
