//! `kubectl lease fence`.
//!
//! The out-of-service taint tells the control plane that a machine is off: pod GC then deletes what is
//! Terminating there, and its volumes are detached at once. If that is not true, data is destroyed. So
//! it takes a silent node, a confirmation, and the node's maintenance lease, under which all of it is
//! looked at once more.

use std::sync::Arc;

use super::{
    check_permission, count, dry_run_note, holder::who, interrupted, interrupts::interrupts, tell_remarks,
    writing,
};
use crate::{
    cli::{DryRun, Fence},
    connection::Reached,
    error::{Error, Result},
    exit::ExitCode,
    output::{
        Brief, Printer, Tone,
        progress::WaitLine,
        prompt,
        taking::{self, TakingReport},
        words::{
            fencing::{attached, change, harm, heard, taint, unfit},
            leases::not_taken_error,
            paste::with_flags,
        },
    },
};
use kube_leases::{
    client::{NODES, VOLUME_ATTACHMENTS, single::Address, surroundings},
    protocols::{
        Held, Released, TakingProgress as _, TakingStep,
        fence::{self, FenceProgress, FenceRequest, NotFenced},
        process_suffix,
    },
    rules::{
        assessment::Assessment,
        fencing::{NodeChange, NodeView, is_deleted},
        holder::Who,
        node::NodeContact,
        pod::Pod,
        surroundings::Surroundings,
        taking::{OverwritesReason, Terms},
        time::ServerTime,
    },
};

pub async fn run(args: &Fence, cluster: &Reached, printer: &mut Printer) -> Result<ExitCode> {
    let at = Address::new("", &args.node);
    let (shown, who, ()) = tokio::try_join!(
        async { fence::look(cluster, &args.node).await.map_err(unread) },
        who(args.identity.holder(), false, cluster),
        check_permission("patch", NODES, &at, cluster)
    )?;
    let nothing_to_do = if args.undo {
        shown.taints().next().is_none().then_some("is not fenced")
    } else {
        // A taint from before its last heartbeat does not count: it is declared anew.
        (shown.contact(cluster.server_time()) == NodeContact::Fenced).then_some("is fenced already")
    };
    if let Some(state) = nothing_to_do {
        printer.done(&format!("{} {state}", args.node))?;
        return Ok(ExitCode::Done);
    }
    check(args, &shown, cluster)?;
    let pods: Vec<&Pod> = shown.pods.iter().map(|pod| &**pod).collect();
    let around = if args.undo {
        Surroundings::default()
    } else {
        surroundings::read_on_node(cluster, &args.node, &pods).await?
    };
    show(args, &shown, &around, cluster, printer);
    tokio::select! {
        // Asked about first, so that Ctrl-C at the question leaves the terminal as it was.
        biased;
        interruption = interrupted() => Err(interruption),
        confirmed = async { confirm(args, &shown, &around, cluster, printer) } => confirmed,
    }?;
    let what = if args.undo { "unfencing" } else { "fencing" };
    let reason = args.reason.as_ref().map_or_else(|| what.to_owned(), |reason| format!("{what}: {reason}"));
    // What the same user holds already, be it as an administrator, is adopted, kept meanwhile, and given back.
    let terms = Terms {
        overwrites_reason: OverwritesReason::Any,
        take_malformed: args.taking.take_malformed,
        ignore_medik8s: args.taking.ignore_medik8s,
        ..Terms::of_process(who.administrator(), &process_suffix(), Some(reason))
    };
    let claims = fence::claim(cluster, &args.node, &terms).await;
    tell_remarks(cluster, printer);
    let claims = claims.map_err(|why| ask_the_holder(not_taken_error(why)))?;
    let mut fencing = Fencing { args, cluster, printer, line: None, failed: None };
    if args.write.dry_run == DryRun::Client {
        fencing.done();
        return fencing.outcome(Ok(()));
    }
    let request = FenceRequest {
        event: &|node| event(args, &who, node, cluster.server_time()),
        shown: &shown,
        undo: args.undo,
        writing: writing(&args.write),
        who: who.to_string(),
        wait: args.wait.into(),
    };
    let outcome = fence::fence(cluster, &request, &claims, interrupts(), &mut fencing).await;
    fencing.outcome(outcome)
}

/// The reason and the message of the Event that is left about the node.
fn event(args: &Fence, who: &Who, node: &NodeView, now: ServerTime) -> (&'static str, String) {
    let reason = args.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
    if args.undo {
        let taints: Vec<String> = node.taints().map(taint).collect();
        let was = taints.join(", ");
        return ("Unfenced", format!("put back into service by {who}{reason} (was {was})"));
    }
    let heard = heard(node, now);
    ("Fenced", format!("marked out of service by {who}{reason} ({heard})"))
}

/// Why a node could not be read.
fn unread(error: kube_leases::Error) -> Error {
    match error {
        kube_leases::Error::NotFound { message, .. } => Error::NotFound {
            message,
            hint: Some("pods of a node that does not exist are deleted by pod GC within a minute".into()),
        },
        error => error.into(),
    }
}

/// What to do about a node that another holds.
fn ask_the_holder(error: Error) -> Error {
    match error {
        Error::Held { message, .. } => Error::Held {
            message,
            hint: Some(
                "ask its holder: the machine may have been switched off for maintenance, or not".into(),
            ),
        },
        error => error,
    }
}

/// Says what happens on the way.
struct Fencing<'a> {
    args: &'a Fence,
    cluster: &'a Reached,
    printer: &'a mut Printer,
    line: Option<WaitLine>,
    /// Why something could not be printed.
    failed: Option<Error>,
}

impl Fencing<'_> {
    fn print(&mut self, line: &str) {
        if let Err(error) = self.printer.done(line) {
            self.failed.get_or_insert(error);
        }
    }

    fn done(&mut self) {
        let word = if self.args.undo { "put back into service" } else { "fenced" };
        self.print(&format!("{} {word}{}", self.args.node, dry_run_note(self.args.write.dry_run)));
    }

    fn outcome(self, outcome: Result<(), NotFenced>) -> Result<ExitCode> {
        let (node, cluster) = (&self.args.node, self.cluster);
        let now = cluster.server_time();
        let lost = |message: String| Error::LostRace { message: format!("{message}: nothing was changed") };
        let error = match outcome {
            Ok(()) => return self.failed.map_or(Ok(ExitCode::Done), Err),
            Err(NotFenced::NotTaken(why)) => ask_the_holder(not_taken_error(why)),
            Err(NotFenced::LeaseLost(why)) => {
                Error::LeaseLost { message: format!("the maintenance lease was lost meanwhile: {why}") }
            }
            Err(NotFenced::Recreated) => lost(format!("{node} was recreated meanwhile (new UID)")),
            Err(NotFenced::Changed(NodeChange::Unfit(why), view)) => {
                let (message, hint) = unfit(why, &view, now, cluster.flags());
                Error::Refused { message, hint: Some(hint) }
            }
            Err(NotFenced::Changed(what, view)) => lost(change(&what, &view, now)),
            Err(NotFenced::Conflicts(attempts)) => lost(format!("gave up after {attempts} write conflicts")),
            Err(NotFenced::NotEmpty(pods)) => {
                Error::TimedOut { message: format!("{} still there on {node}", count(pods, "pod")) }
            }
            Err(NotFenced::Failed(error)) => unread(error),
        };
        Err(error)
    }
}

impl FenceProgress for Fencing<'_> {
    fn taking(&mut self, step: TakingStep<'_>) {
        TakingReport::new(self.printer).step(step);
    }

    fn written(&mut self) {
        self.done();
    }

    fn not_recorded(&mut self, why: kube_leases::Error) {
        self.printer.warn(&format!("no Event was left about {}: {why}", self.args.node));
    }

    fn left(&mut self, pods: usize) {
        let note = format!(
            "pod GC deletes the {} there within a minute; 'kubectl lease partitions {} -w' shows it",
            count(pods, "pod"),
            self.args.node
        );
        self.printer.note(&with_flags(&note, self.cluster.flags()));
    }

    fn waiting(&mut self, pods: usize) {
        let news = format!("waiting for pod GC, {} left on {}", count(pods, "pod"), self.args.node);
        self.line.get_or_insert_default().say(self.printer, &news, "");
    }

    fn empty(&mut self) {
        self.line = None;
        self.print(&format!("all pods on {} that do not tolerate the taint were deleted", self.args.node));
    }

    fn released(&mut self, held: &[Held], outcome: kube_leases::Result<Vec<kube_leases::Result<Released>>>) {
        self.line = None;
        taking::released(held, outcome, self.printer);
    }
}

/// Whether it may be done at all.
fn check(args: &Fence, shown: &NodeView, cluster: &Reached) -> Result<()> {
    let now = cluster.server_time();
    match shown.unfit(now) {
        Some(why) if !args.undo => {
            let (message, hint) = unfit(why, shown, now, cluster.flags());
            Err(Error::Refused { message, hint: Some(hint) })
        }
        _ => Ok(()),
    }
}

fn show(args: &Fence, shown: &NodeView, around: &Surroundings, cluster: &Reached, printer: &mut Printer) {
    let now = cluster.server_time();
    let terminating = shown.pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_some()).count();
    let mut lines = vec![
        ("node", heard(shown, now)),
        ("pods", format!("{} there, {terminating} of them Terminating", shown.pods.len())),
    ];
    if !args.undo {
        match &around.attachments {
            None => {
                lines.push(("volumes", format!("not read: you cannot list {}", VOLUME_ATTACHMENTS.plural)));
            }
            Some(all) => lines.extend(all.iter().map(|one| ("volume", attached(one)))),
        }
    }
    // There may have been a reason for it that is not known here.
    lines.extend(shown.taints().map(|of| ("taint", taint(of))));
    let points = |lines: &[&str]| lines.iter().map(|line| vec![format!("- {line}")]).collect::<Vec<_>>();
    let named = |pods: Vec<&Arc<Pod>>| -> Vec<Vec<String>> {
        let one = |pod: &Arc<Pod>| {
            let owner = pod.controller().map(|owner| format!(", of {}/{}", owner.kind, owner.name));
            let risk = Assessment::of(pod, around, now).risk.word();
            let owner = owner.unwrap_or_default();
            vec![format!("- {}{owner}, risk {risk} if it still runs", pod.full_name())]
        };
        pods.into_iter().map(one).collect()
    };
    let (then, deleted, staying) = if args.undo {
        let then = points(&["scheduling there, and what its kubelet runs, is as usual again"]);
        (then, Vec::new(), Vec::new())
    } else {
        let then = points(&[
            "pods there are ended and deleted, and their volumes detached, without asking the machine",
            "if it still runs, they run twice and may write to the same data",
        ]);
        let (deleted, staying): (Vec<_>, Vec<_>) = shown.pods.iter().partition(|pod| is_deleted(pod));
        (then, named(deleted), named(staying))
    };
    printer.brief(&Brief {
        title: &args.node,
        verdict: if args.undo { "to be put back into service" } else { "to be marked out of service" },
        tone: Tone::Doubtful,
        lines: &lines,
        lists: &[("then", &then), ("deleted", &deleted), ("not deleted: they tolerate the taint", &staying)],
    });
}

fn confirm(
    args: &Fence,
    shown: &NodeView,
    around: &Surroundings,
    cluster: &Reached,
    printer: &mut Printer,
) -> Result<()> {
    let now = cluster.server_time();
    // What was fenced anew since it was back is not expected to be put back into service.
    let expected = args.undo && shown.is_back(now);
    if expected || args.write.dry_run != DryRun::None {
        return Ok(());
    }
    let node = &args.node;
    if args.undo && args.confirm {
        let heard = heard(shown, now);
        printer.warn(&format!(
            "{node} is not back ({heard}): its pods are not ended any more without asking the machine"
        ));
    }
    // Undoing it ends nothing.
    let harmed = if args.undo { None } else { shown.harm(around, now).map(harm) };
    if args.confirm && (args.i_have_fenced || harmed.is_none()) {
        return Ok(());
    }
    let flags = if harmed.is_none() { "--confirm" } else { "--confirm --i-have-fenced" };
    let hint = Some(format!("{flags}, once you have made sure that the machine is off"));
    if let (Some(why), true) = (harmed, args.confirm) {
        return Err(Error::Refused { message: format!("{node} was not fenced: {why}"), hint });
    }
    if !prompt::possible() {
        if args.undo {
            let heard = heard(shown, now);
            return Err(Error::Refused {
                message: format!("{node} is not back ({heard}), and there is no terminal to ask on"),
                hint: Some("--confirm removes the taint all the same".into()),
            });
        }
        let message = format!("{node} was not fenced: there is no terminal to ask on");
        return Err(Error::Refused { message, hint });
    }
    let yes = if args.undo {
        printer.note(&format!("{node} is not back ({})", heard(shown, now)));
        prompt::confirm("Remove the taint?")?
    } else {
        let phrase = format!("{node} is off");
        let question = format!("Type '{phrase}' if you have made sure that it is; Enter stops");
        prompt::answer(printer, &question)? == phrase
    };
    if yes {
        return Ok(());
    }
    Err(Error::Refused { message: "nothing was changed".into(), hint: None })
}
