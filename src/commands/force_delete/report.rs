//! `-o json|yaml|name`: the verdict on each pod, and what was done about it.

use serde_json::{Value, json};

use crate::{
    cli::ForceDelete,
    connection::Reached,
    error::{Error, Result},
    output::{
        Format, Printer,
        words::{advice, evidence, risk, volumes},
    },
};
use kube_leases::{
    protocols::aftermath::PodOutcome,
    rules::{
        advice::Safe,
        assessment::Assessment,
        deletion::{Choice, ForceRefusal, Judged},
        risk::Risk,
    },
};

/// What a program is told in the end, whether all was done or not.
pub struct Report<'a> {
    pods: Vec<Entry<'a>>,
}

struct Entry<'a> {
    one: &'a Judged,
    choice: Option<Choice>,
    /// What came of the choice; null if nothing was decided.
    result: Option<&'static str>,
    error: Value,
    outcome: Value,
}

impl<'a> Report<'a> {
    pub fn new(judged: &'a [Judged]) -> Self {
        let entry = |one| Entry { one, choice: None, result: None, error: Value::Null, outcome: Value::Null };
        Self { pods: judged.iter().map(entry).collect() }
    }

    fn entry(&mut self, one: &Judged) -> Option<&mut Entry<'a>> {
        self.pods.iter_mut().find(|entry| std::ptr::eq(entry.one, one))
    }

    pub fn failed(&mut self, one: &Judged, error: &Error) {
        if let Some(entry) = self.entry(one) {
            let refused = matches!(error, Error::Refused { .. }) && entry.choice.is_none();
            // What was done is done, whatever was waited for after it.
            entry.result.get_or_insert(if refused { "refused" } else { "failed" });
            entry.error = json!({
                "exitCode": error.exit_code().code(), "message": error.to_string(), "hint": error.hint(),
            });
        }
    }

    pub fn chosen(&mut self, one: &Judged, choice: Choice) {
        if let Some(entry) = self.entry(one) {
            entry.choice = Some(choice);
        }
    }

    pub fn done(&mut self, one: &Judged, dry_run: bool) {
        if let Some(entry) = self.entry(one) {
            // Without a confirmation it would go; with one, it is refused.
            let refused = dry_run && entry.choice == Some(Choice::Force) && one.refusal(true).is_some();
            entry.result = Some(match dry_run {
                _ if refused => "refused",
                true => "dry-run",
                false => "done",
            });
        }
    }

    pub fn outcome(&mut self, one: &Judged, outcome: &PodOutcome) {
        if let Some(entry) = self.entry(one) {
            let new = outcome.replacement.as_ref();
            entry.outcome = json!({
                "gone": outcome.gone,
                "replacement": new.map(|new| json!({
                    "namespace": new.metadata.namespace, "name": new.metadata.name, "uid": new.metadata.uid,
                    "node": new.spec.node_name, "ready": new.is_ready(),
                })),
            });
        }
    }

    /// A document of the pod that was named, a list of several and of what was selected.
    pub fn print(
        &self,
        format: Format,
        args: &ForceDelete,
        cluster: &Reached,
        printer: &mut Printer,
    ) -> Result<()> {
        if format == Format::Name {
            for entry in self.pods.iter().filter(|entry| matches!(entry.result, Some("done" | "dry-run"))) {
                printer.raw(&format!("pod/{}\n", entry.one.pod.metadata.name))?;
            }
            return Ok(());
        }
        let mut documents: Vec<Value> =
            self.pods.iter().map(|entry| document(entry, cluster.flags())).collect();
        if args.names().len() == 1 && documents.len() == 1 {
            return printer.document("PodDeletion", documents.remove(0), format);
        }
        let list = json!({ "serverTime": cluster.server_time().0, "items": documents });
        printer.document("PodDeletionList", list, format)
    }
}

fn document(entry: &Entry<'_>, flags: &str) -> Value {
    let one = entry.one;
    let (pod, assessment) = (&*one.pod, &one.assessment);
    let Assessment { risk, futile, volumes, leads, reasons, missing, safer, .. } = assessment;
    // What no confirmation is enough for, and what it takes otherwise.
    let refusal = one.refusal(false);
    let refused = refusal.as_ref().map(|refusal| match refusal {
        ForceRefusal::NodeAlive => "node-alive",
        ForceRefusal::NodeHeartbeats => "node-heartbeats",
        ForceRefusal::OverBudget(_) => "over-budget",
    });
    let over_budget = matches!(refusal, Some(ForceRefusal::OverBudget(_)));
    let takes = [
        (true, "confirm"),
        (*risk == Risk::Critical, "i-have-fenced"),
        (futile.is_some() || over_budget, "anyway"),
    ];
    let takes: Vec<&str> = takes.into_iter().filter_map(|(it, flag)| it.then_some(flag)).collect();
    json!({
        "namespace": pod.metadata.namespace, "name": pod.metadata.name, "uid": pod.metadata.uid,
        "resourceVersion": pod.metadata.resource_version, "node": pod.spec.node_name,
        "risk": risk, "futile": futile, "leads": leads,
        "volumes": volumes.iter().map(volumes::document).collect::<Vec<_>>(),
        "reasons": reasons.iter().map(risk::document).collect::<Vec<_>>(),
        "missing": missing.iter().map(|what| evidence::document(*what)).collect::<Vec<_>>(),
        "safer": safer.iter().map(|way| advice::document(way, pod, flags)).collect::<Vec<_>>(),
        "refused": refused, "takes": takes, "safe": one.within_budget().map(word),
        "choice": entry.choice.map(|choice| match choice {
            Choice::Force => "force",
            Choice::Safely(way) => word(way),
        }),
        "result": entry.result, "error": entry.error, "outcome": entry.outcome,
    })
}

/// The way for programs: never renamed.
fn word(way: Safe) -> &'static str {
    match way {
        Safe::Evict => "evict",
        Safe::Delete => "delete",
        Safe::Replace => "replace",
        Safe::Await => "await",
    }
}
