//! What is said while leases are taken, and when they are given up.

use std::time::Duration;

use jiff::SignedDuration;

use super::{
    Printer,
    progress::{Bar, WaitLine},
    words::{
        leases::{left_behind, not_taken, still_adopted, waited_for},
        remarks::remark,
    },
};
use kube_leases::{
    Result,
    protocols::{Held, Released, TakingProgress, TakingStep, Undone, Waiting},
    rules::duration::age,
};

/// Says what happens on the way to taking leases.
pub struct TakingReport<'a> {
    printer: &'a mut Printer,
    bar: Option<Bar>,
    line: Option<WaitLine>,
}

impl<'a> TakingReport<'a> {
    pub fn new(printer: &'a mut Printer) -> Self {
        Self { printer, bar: None, line: None }
    }

    fn undone(&mut self, all: &[Undone<'_>]) {
        for (how, words) in [(Released::Yes, "released again"), (Released::PutBack, "held as before")] {
            let names: Vec<_> = all
                .iter()
                .filter(|undone| undone.released.as_ref().is_ok_and(|released| *released == how))
                .map(Undone::name)
                .collect();
            match &names[..] {
                [] => {}
                [name] => self.printer.note(&format!("{words}: {name}")),
                several => self.printer.note(&format!("{words}: {} leases", several.len())),
            }
        }
        for warning in all.iter().filter_map(left_behind) {
            self.printer.warn(&warning);
        }
    }
}

impl TakingProgress for TakingReport<'_> {
    fn step(&mut self, step: TakingStep<'_>) {
        match step {
            TakingStep::Remark(it) => self.printer.warn(&remark(it)),
            TakingStep::Begun(count) => self.bar = Some(Bar::new(count, "taking leases")),
            TakingStep::Taken => self.bar.iter().for_each(Bar::one_done),
            TakingStep::Waiting { name, waiting, left, so_far } => {
                let (news, left) = (news(name, waiting), left.map_or_else(String::new, time_left));
                let line = self.line.get_or_insert_default();
                line.say(self.printer, &news, &format!("{left}, {}s so far", so_far.as_secs()));
            }
            TakingStep::Waited => self.line = None,
            TakingStep::Again { why, from } => {
                let why = not_taken(why);
                self.printer.warn(&format!("{why}; waiting again from {from} on"));
            }
            TakingStep::Over => (self.line, self.bar) = (None, None),
            TakingStep::GivenUp(undone) => {
                if let Some(warning) = left_behind(undone) {
                    self.printer.warn(&warning);
                }
            }
            TakingStep::Undone(all) => self.undone(all),
            TakingStep::UndoInterrupted(names) => {
                let names = names.join(" ");
                self.printer.warn(&format!(
                    "interrupted while releasing what was taken: it may still be held ('kubectl lease maint status \
                     {names}' shows it)"
                ));
            }
        }
    }
}

/// What is waited for.
fn news(name: &str, waiting: &Waiting) -> String {
    match (waiting.connection_lost(), waiting.obstacle()) {
        (Some(why), _) => format!("waiting for {name}; connection lost, retrying: {why}"),
        (None, Some(obstacle)) => format!("waiting for {name}, {}", waited_for(obstacle, waiting.lease())),
        (None, None) => format!("waiting for {name}"),
    }
}

/// How long what it waits for is still held.
fn time_left(left: Duration) -> String {
    format!(", {} left", age(SignedDuration::try_from(left).unwrap_or(SignedDuration::MAX)))
}

/// Says what became of leases under which something ran, where it is not simply that they were released.
pub fn released(held: &[Held], outcomes: Result<Vec<Result<Released>>>, printer: &mut Printer) {
    let outcomes = match outcomes {
        Ok(outcomes) => outcomes,
        Err(why) if held.iter().any(|held| held.who.is_admin()) => {
            let admins = held.iter().filter(|held| held.who.is_admin());
            let names: Vec<_> = admins.map(|held| held.at.name.as_str()).collect();
            return printer.warn(&format!(
                "it may not be released ('kubectl lease maint release {} --admin --force' does it): {why}",
                names.join(" ")
            ));
        }
        Err(why) => return printer.warn(&format!("it may not be released, and will expire: {why}")),
    };
    for (held, outcome) in held.iter().zip(outcomes) {
        let name = &held.at.name;
        match outcome {
            // Who has it then was the reason for the end of the command, or comes after it.
            Ok(Released::Yes | Released::NotOurs | Released::Unanswered) => {}
            Ok(Released::PutBack) => printer.note(&format!("{name} is held as before the command")),
            Ok(Released::Shared) => printer.warn(&format!(
                "{name} is not released: another process of '{}' has renewed it meanwhile",
                held.who
            )),
            Ok(Released::Adopted) => printer.warn(&still_adopted(name, &held.who)),
            Err(error) if held.who.is_admin() => printer.warn(&format!(
                "{name} is not released, 'kubectl lease maint release {name} --admin --force' does it: {error}"
            )),
            Err(error) => printer.warn(&format!("{name} is not released, it will expire: {error}")),
        }
    }
}
