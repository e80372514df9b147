//! Why a priority would do nothing, or harm: looked for before anybody is asked.

use super::{Controller, Election, told};
use crate::{
    domain::{
        candidate::Candidate,
        election::{Leader, Strategy, Wrong},
        lease::{Lease, is_object_name},
        priority::{self, Unpinnable},
        safer::with_flags,
        time::ServerTime,
    },
    error::{Error, Result},
    output::Printer,
};

/// Why a priority would do nothing, or harm.
pub enum Obstacle {
    /// What and what to do about it; `--force` does not help.
    Hard(String, String),
    /// The same, where `--force` does it all the same.
    Soft(String, String),
}

/// Refuses for the first obstacle; with `force` those that can be passed are warnings. `flags` are those that the
/// commands in hints take to reach the cluster.
pub fn pass(obstacles: Vec<Obstacle>, force: bool, flags: &str, printer: &mut Printer) -> Result<()> {
    for obstacle in obstacles {
        match obstacle {
            Obstacle::Hard(message, hint) => {
                return Err(Error::Refused { message, hint: Some(with_flags(&hint, flags)) });
            }
            Obstacle::Soft(message, hint) if !force => {
                let hint = Some(format!("{}; --force does it all the same", with_flags(&hint, flags)));
                return Err(Error::Refused { message, hint });
            }
            Obstacle::Soft(message, _) => printer.warn(&message),
        }
    }
    Ok(())
}

/// All of them, for a priority of this candidate.
pub fn obstacles(
    election: &Election<'_>,
    candidate: &Candidate,
    value: i32,
    controller: &Controller,
    now: ServerTime,
) -> Vec<Obstacle> {
    let outlook = election.outlook(now);
    let of = |wrong: &Wrong| told(wrong, election, now);
    let mut obstacles = Vec::new();
    if !is_object_name(election.name) {
        obstacles.push(Obstacle::Hard(
            format!(
                "{} is a candidate for {}, and no lease can have that name",
                candidate.name(),
                election.called()
            ),
            "its component has to name another one".into(),
        ));
    }
    if outlook.leader == Leader::Null {
        let (message, hint) = of(&Wrong::NullHolder { foreign: false });
        obstacles.push(Obstacle::Hard(message, hint));
    }
    if let Strategy::Foreign(name) = &outlook.strategy {
        let (message, hint) = of(&Wrong::Foreign(name.clone()));
        obstacles.push(Obstacle::Hard(message, hint));
    } else if candidate.spec.priority.is_none() {
        obstacles.extend(unpinnable(candidate, value, &outlook.taking_part()));
    }
    for wrong in &outlook.wrongs {
        let in_the_way = match wrong {
            Wrong::Conflict(_) | Wrong::Blocked { .. } => true,
            Wrong::LeaderNoCandidate { coordinated, .. } => !coordinated,
            _ => false,
        };
        if in_the_way {
            let (message, hint) = of(wrong);
            obstacles.push(Obstacle::Soft(message, hint));
        }
    }
    let lease: Option<&Lease> = election.lease.map(|(lease, _)| lease);
    if lease.is_some_and(|lease| lease.spec.strategy.as_deref().unwrap_or_default().is_empty())
        && !outlook.is_uncoordinated
    {
        obstacles.push(Obstacle::Soft(
            format!("the election for {} is not coordinated: its lease has no strategy", election.called()),
            "its holder runs without coordinated leader election".into(),
        ));
    }
    if let Some(wrong) = controller.wrong() {
        obstacles.push(Obstacle::Soft(wrong, "without it a priority does nothing".into()));
    }
    obstacles
}

/// Versions that no pin goes before.
fn unpinnable(candidate: &Candidate, value: i32, others: &[&Candidate]) -> Option<Obstacle> {
    match priority::unpinnable(candidate, value, others)? {
        Unpinnable::Unreadable => Some(Obstacle::Hard(
            format!("the emulation version of {} cannot be read: it is never elected", candidate.name()),
            "see what its component reports as its versions".into(),
        )),
        Unpinnable::TooOld => Some(Obstacle::Hard(
            format!(
                "the binary version of {} is {}: no emulation version that is older can stand for a priority",
                candidate.name(),
                candidate.spec.binary_version
            ),
            "a component with a version from 0.1.0 on can have one".into(),
        )),
        Unpinnable::Behind(other) => Some(Obstacle::Soft(
            format!(
                "the emulation version of {other} is so low that it goes before every priority: {} is not elected",
                candidate.name()
            ),
            format!("see what the component of {other} reports as its versions"),
        )),
    }
}
