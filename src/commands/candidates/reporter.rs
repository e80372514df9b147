//! What is said while priorities are set and cleared, and while a handover is followed.

use std::ops::ControlFlow;

use kube_leases::{
    protocols::elections::{
        ElectionFailure, ElectionProgress, ElectionStep, Gone, Intent,
        handover::{Followed, HandoverStage},
    },
    rules::{
        candidate::Candidate, duration::age, forecast::Forecast, lease::short, plan::Plan, priority::How,
    },
};

use crate::{
    error::{Error, Result},
    output::{
        Printer,
        progress::WaitLine,
        words::{
            election::{self, at, either, failure, follows, named, of, open, passed, seconds},
            paste::{pasted, with_flags},
        },
    },
};

/// Says what happens on the way.
pub struct Reporter<'p> {
    printer: &'p mut Printer,
    /// The flags that commands to paste need to reach the cluster.
    flags: &'p str,
    /// What is said behind what a dry run would have done.
    note: &'static str,
    /// The priority that is set.
    priority: Option<i32>,
    line: Option<WaitLine>,
    /// Why the output could not be written.
    unwritten: Option<Error>,
}

impl<'p> Reporter<'p> {
    pub fn new(printer: &'p mut Printer, flags: &'p str) -> Self {
        Self { printer, flags, note: "", priority: None, line: None, unwritten: None }
    }

    pub fn with_note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    pub fn with_priority(self, priority: i32) -> Self {
        Self { priority: Some(priority), ..self }
    }

    /// Says what was done. That nothing reads the output is remembered, for the end.
    pub fn done(&mut self, text: &str) -> ControlFlow<()> {
        self.line = None;
        match self.printer.done(text) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.unwritten.get_or_insert(error);
                ControlFlow::Break(())
            }
        }
    }

    /// What the command ends with.
    pub fn end(self, outcome: Result<(), ElectionFailure>) -> Result<()> {
        drop(self.line);
        match outcome {
            Ok(()) | Err(ElectionFailure::Unread) => self.unwritten.map_or(Ok(()), Err),
            Err(failed) => Err(failure(failed, self.priority, self.flags)),
        }
    }

    fn note(&mut self, text: &str) {
        self.line = None;
        self.printer.note(&with_flags(text, self.flags));
    }

    fn warn(&mut self, text: &str) {
        self.line = None;
        self.printer.warn(&with_flags(text, self.flags));
    }

    fn wait(&mut self, news: &str, detail: &str) {
        self.line.get_or_insert_default().say(self.printer, news, detail);
    }

    /// That a priority is set.
    pub fn set(&mut self, candidate: &Candidate, how: How) -> ControlFlow<()> {
        let by = if how == How::Pinned { " (pinned by its emulation version)" } else { "" };
        let priority = self.priority.unwrap_or_default();
        self.done(&format!("{} priority set to {priority}{by}{}", candidate.name(), self.note))
    }

    /// That a priority is cleared.
    pub fn cleared(&mut self, candidate: &Candidate) -> ControlFlow<()> {
        self.done(&format!("{} priority cleared{}", candidate.name(), self.note))
    }

    fn followed(&mut self, plan: &Plan, outcome: &Followed) -> ControlFlow<()> {
        let called = of(plan);
        match (outcome, &plan.forecast) {
            (Followed::Leads(leader), _) => return self.done(&format!("{leader} leads {called}")),
            (Followed::Stays, _) => self.note(&format!("leadership of {called} does not move")),
            (Followed::Open, Forecast::Open(doubt, names)) => {
                let from = plan.from.as_deref().unwrap_or_default();
                self.note(&format!("{} Not waiting for it.", open(*doubt, names, from, &called)));
            }
            (Followed::Open | Followed::NoneElected, _) => {
                self.note(&format!("no candidate is elected for {called}: not waiting for it"));
            }
        }
        ControlFlow::Continue(())
    }

    fn handover(&mut self, plan: &Plan, to: &[String], stage: &HandoverStage, elapsed: &str) {
        let name = to.iter().map(|to| short(to)).collect::<Vec<_>>().join(" or ");
        let (news, detail) = match stage {
            HandoverStage::Waiting { leader } => {
                (format!("{} leads and is about to be asked to step down", short(leader)), String::new())
            }
            HandoverStage::SteppingDown { leader, to, left } => (
                format!("{} steps down for {}", short(leader), short(to)),
                format!(", its lease expires in {}", age(*left)),
            ),
            HandoverStage::Electing => (format!("{} has no leader, electing", of(plan)), String::new()),
            HandoverStage::Elected => {
                (format!("{name} is elected, waiting for its first renewal"), String::new())
            }
            // Said on stdout.
            HandoverStage::Leads => return,
        };
        self.wait(&news, &format!("{detail}{elapsed}"));
    }

    fn waiting(&mut self, plan: &Plan, to: Intent) {
        let from = plan.from.as_deref().map_or("the leader".to_owned(), short);
        let what = match to {
            Intent::Set => "the priority is set after the handover",
            Intent::Clear => "the priority is cleared after the handover",
            Intent::ClearOrLeave => "the priority is cleared after the handover; Ctrl-C leaves it",
        };
        self.wait(&format!("leadership of {} is moving from {from}: {what}", of(plan)), "");
    }

    fn said(&mut self, step: ElectionStep<'_>) {
        let priority = self.priority.unwrap_or_default();
        match step {
            ElectionStep::Settled(plan) => {
                for line in follows(plan, true) {
                    self.note(&line);
                }
            }
            ElectionStep::Ended { candidate, led } => {
                let (candidate, namespace) =
                    (candidate.name().to_owned(), candidate.metadata.namespace.clone());
                self.warn(&ElectionFailure::Ended { candidate, namespace, led }.to_string());
            }
            ElectionStep::Unclear(target) => self.warn(&format!(
                "it is not known whether the priority was set: 'kubectl lease candidates -n {}' shows it",
                target.plan.namespace
            )),
            ElectionStep::ClearedForNow(candidate) => self.note(&format!(
                "the controller asked {} to step down before the priority was set: the priority is cleared until \
                 the handover completes",
                candidate.name()
            )),
            ElectionStep::Unwatched { target, is_set } => {
                let stands = if is_set {
                    format!(
                        "has priority {priority}; whether the leader was asked to step down just before is not known"
                    )
                } else {
                    "has no priority, which was cleared until it has stepped down".to_owned()
                };
                self.note(&format!(
                    "{} {stands}: 'kubectl lease candidates explain {}' shows it",
                    target.candidate.name(),
                    named(&target.plan.namespace, &target.plan.lease)
                ));
            }
            ElectionStep::Stranded(lease) => self.note(&format!(
                "the leader of {} was asked to step down in that moment: waiting until there is a leader again",
                at(lease)
            )),
            ElectionStep::HolderEmptied(lease) => {
                self.note(&format!("{} got an empty holder, so that a candidate is elected", at(lease)));
            }
            ElectionStep::NoLeader(lease) => self.warn(&election::without_a_leader(lease, "")),
            ElectionStep::Unchecked(plans) => {
                let called: Vec<_> = plans.iter().map(|plan| of(plan)).collect();
                self.note(&format!(
                    "whether there is a leader of {} was not checked: 'kubectl lease candidates' shows it",
                    called.join(", ")
                ));
            }
            ElectionStep::Unfollowed(candidates) => {
                let names: Vec<_> = candidates.iter().map(|it| pasted(it.name(), "CANDIDATE")).collect();
                self.note(&format!(
                    "the priority stays, and leadership goes on moving; 'kubectl lease candidates clear-priority {}' \
                     clears it",
                    names.join(" ")
                ));
            }
            ElectionStep::Gone { candidate, why } => self.note(&format!(
                "{}: {}",
                candidate.name(),
                match why {
                    Gone::Deleted => "it was deleted, and the priority with it",
                    Gone::Changed => "another client has changed its priority; it was left so",
                }
            )),
            ElectionStep::NotClearedYet(problem) => self
                .warn(&format!("the priority cannot be cleared yet, trying again until Ctrl-C: {problem}")),
            ElectionStep::NotCleared(target) => {
                let name = target.candidate.name();
                self.warn(&format!(
                    "{name} keeps its priority: 'kubectl lease candidates clear-priority {} -n {}' clears it, and \
                     'kubectl lease candidates clear-priority --expired' when its time is over",
                    pasted(name, "CANDIDATE"),
                    target.plan.namespace
                ));
            }
            ElectionStep::Failed(failed) => {
                let error = failure(failed, self.priority, self.flags);
                if !error.is_silent() {
                    self.line = None;
                    self.printer.error(&error);
                }
            }
            ElectionStep::Keeping { candidates, priority, left } => {
                let names: Vec<_> = candidates.iter().map(|candidate| short(candidate.name())).collect();
                let verb = if names.len() == 1 { "has" } else { "have" };
                let news = format!("{} {verb} priority {priority}, Ctrl-C clears it", names.join(", "));
                self.wait(&news, &format!(" ({} left)", seconds(left)));
            }
            ElectionStep::Handover { plan, to, stage, elapsed } => {
                self.handover(plan, to, stage, &passed(elapsed));
            }
            ElectionStep::Waiting { plan, to } => self.waiting(plan, to),
            ElectionStep::Set(_) | ElectionStep::Cleared(_) | ElectionStep::Followed { .. } => {}
        }
    }
}

impl ElectionProgress for Reporter<'_> {
    fn report(&mut self, step: ElectionStep<'_>) -> ControlFlow<()> {
        match step {
            ElectionStep::Set(target) => self.set(&target.candidate, target.how),
            ElectionStep::Cleared(candidate) => self.cleared(candidate),
            ElectionStep::Followed { plan, outcome } => self.followed(plan, outcome),
            step => {
                self.said(step);
                ControlFlow::Continue(())
            }
        }
    }
}

/// The names of those that may be elected, or that none is.
pub fn elected(forecast: &Forecast) -> Option<String> {
    match forecast {
        Forecast::Elects(names) => Some(either(names)),
        _ => None,
    }
}
