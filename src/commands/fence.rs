//! `kubectl lease fence`.
//!
//! The out-of-service taint tells the control plane that a machine is off: pod GC then deletes what is
//! Terminating there, and its volumes are detached at once. If that is not true, data is destroyed. So
//! it takes a silent node, a confirmation, and the node's maintenance lease, under which all of it is
//! looked at once more.

use std::{collections::BTreeSet, ops::ControlFlow, time::Duration};

use jiff::SignedDuration;
use tokio::time::Instant;

use super::{
    check_right, count, dry_run_note, evidence, interrupted,
    maint::{
        check_all, claims,
        run::{process_terms, release},
        take_all, targets, who,
    },
    tell_remarks, watching, writing,
};
use crate::{
    cli::{self, DryRun, Fence},
    cluster::{
        ATTACHMENTS, Cluster, LEASES, NODES, Object, PODS, Query,
        pods::Record,
        single::{Address, Writing},
        watch::Event,
    },
    domain::{
        assessment::{Assessment, Surroundings},
        deadline::Schedule,
        duration::age,
        lease::Lease,
        node::{Contact, HEARTBEAT_IS_OLD, HEARTBEATS, Node, OUT_OF_SERVICE, Taint, late_after},
        pod::Pod,
        risk::Risk,
        safer::with_flags,
        storage::Attachment,
        taking::{Replaces, Terms},
        time::ServerTime,
    },
    error::{Error, Result},
    exit::ExitCode,
    output::{Brief, Printer, Tone, progress::WaitLine, prompt},
    session::{Held, keep},
};

/// How long others wait if this process dies on the way; it is renewed meanwhile.
const DURATION: Duration = Duration::from_secs(60);
/// How often a node that others write at the same time is read and written.
const ATTEMPTS: usize = 10;

pub async fn run(args: &Fence, cluster: &Cluster, printer: &mut Printer) -> Result<ExitCode> {
    let at = Address::new("", &args.node);
    let (seen, who, ()) = tokio::try_join!(
        look(&at, cluster),
        who(&args.identity, false, cluster),
        check_right("patch", NODES, &at, cluster)
    )?;
    let nothing_to_do = if args.undo {
        (!seen.node.value.is_out_of_service()).then_some("is not fenced")
    } else {
        // A taint from before it was last heard of does not count: it is declared anew.
        (seen.contact(cluster) == Contact::Fenced).then_some("is fenced already")
    };
    if let Some(state) = nothing_to_do {
        printer.done(&format!("{} {state}", args.node))?;
        return Ok(ExitCode::Done);
    }
    check(args, &seen, cluster)?;
    let pods: Vec<&Pod> = seen.pods.iter().map(|pod| &*pod.value).collect();
    let around = if args.undo {
        Surroundings::default()
    } else {
        evidence::around_node(cluster, &args.node, &pods).await?
    };
    show(args, &seen, &around, cluster, printer);
    tokio::select! {
        // Asked about first, so that Ctrl-C at the question leaves the terminal as it was.
        biased;
        interruption = interrupted() => Err(interruption),
        confirmed = async { confirm(args, &seen, &around, cluster, printer) } => confirmed,
    }?;
    let which = cli::Nodes { nodes: vec![args.node.clone()], selector: None, all: false };
    let targets = targets(&which, cluster).await?;
    tell_remarks(cluster, printer);
    let what = if args.undo { "unfencing" } else { "fencing" };
    let reason = args.reason.as_ref().map_or_else(|| what.to_owned(), |reason| format!("{what}: {reason}"));
    // What the same user holds already, be it as an administrator, is adopted, kept meanwhile, and given back.
    let terms =
        Terms { replaces: Replaces::Any, ..process_terms(who.administrator(), Some(reason), &args.taking) };
    let wait = cli::Wait { wait: None };
    let seconds = i32::try_from(DURATION.as_secs()).unwrap_or(i32::MAX);
    let claims = claims(targets, &terms, seconds, &wait, &Writing::default())?;
    check_all(&claims, cluster).map_err(ask_the_holder)?;
    match args.write.dry_run {
        DryRun::None => {}
        DryRun::Client => return done(args, printer),
        DryRun::Server => return under(args, &seen, &[], &who.to_string(), cluster, printer).await,
    }
    let taken = take_all(&claims, &wait, cluster, printer).await.map_err(ask_the_holder)?;
    let Some((held, _)) = taken.into_iter().next() else {
        return Err(Error::NotFound { message: format!("there is no node '{}'", args.node), hint: None });
    };
    let outcome = under(args, &seen, std::slice::from_ref(&held), &who.to_string(), cluster, printer).await;
    release(std::slice::from_ref(&held), true, cluster, printer).await;
    outcome
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

/// Acts while what is held is kept.
async fn under(
    args: &Fence,
    seen: &Seen,
    held: &[Held],
    who: &str,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<ExitCode> {
    tokio::select! {
        biased;
        interruption = interrupted() => Err(interruption),
        lost = keep(cluster, held, Schedule::new(DURATION), |_| ()) => {
            Err(Error::LeaseLost { message: format!("the maintenance lease was lost meanwhile: {lost}") })
        }
        outcome = act(args, seen, who, cluster, printer) => outcome,
    }
}

/// A node, and its last heartbeat.
struct Seen {
    node: Object<Node>,
    heartbeat: Option<Object<Lease>>,
    /// What is not finished there.
    pods: Vec<Object<Pod>>,
}

/// What declares a machine to be off.
fn out_of_service(since: Option<jiff::Timestamp>) -> Taint {
    Taint {
        key: OUT_OF_SERVICE.into(),
        value: "nodeshutdown".into(),
        // What is not Terminating yet is made so.
        effect: "NoExecute".into(),
        // A later heartbeat shows that it does not hold any more.
        time_added: since,
    }
}

/// Whether a pod goes from a node that is out of service: what is Terminating, and what the taint makes
/// so. A pod that tolerates everything stays, as those of the network often do.
fn goes(pod: &Pod) -> bool {
    !pod.is_finished() && (pod.metadata.deletion_timestamp.is_some() || !pod.tolerates(&out_of_service(None)))
}

impl Seen {
    fn contact(&self, cluster: &Cluster) -> Contact {
        self.node.value.contact(self.lease(), cluster.server_time())
    }

    fn lease(&self) -> Option<&Lease> {
        self.heartbeat.as_ref().map(|lease| &*lease.value)
    }

    /// Whether its taints are certain to be from before it was last heard of.
    fn is_stale(&self) -> bool {
        let mut taints = self.node.value.spec.taints.iter().filter(|taint| taint.key == OUT_OF_SERVICE);
        taints.all(|taint| taint.time_added.is_some()) && !self.node.value.is_fenced(self.lease())
    }

    /// The taints that say that it is off, in words.
    fn taints(&self) -> impl Iterator<Item = String> {
        let all = self.node.value.spec.taints.iter().filter(|taint| taint.key == OUT_OF_SERVICE);
        all.map(|Taint { key, value, effect, time_added }| {
            let since = time_added.map_or_else(String::new, |time| format!(" since {time:.0}"));
            format!("{key}={value}:{effect}{since}")
        })
    }

    /// How long ago it was last heard of, in words.
    fn heard(&self, cluster: &Cluster) -> String {
        let heartbeat = self.node.value.heartbeat(self.lease());
        heartbeat.map_or("never heard of".to_owned(), |time| {
            // A node's clock may be ahead.
            let ago = cluster.server_time().since(time).max(SignedDuration::ZERO);
            format!("last heartbeat {} ago", age(ago))
        })
    }
}

async fn look(at: &Address, cluster: &Cluster) -> Result<Seen> {
    let pods = Query::new(PODS).select(None, Some(&format!("spec.nodeName={}", at.name))).bare(true);
    let heartbeat = Address::new(HEARTBEATS, &at.name);
    let (node, heartbeat, pods) = tokio::try_join!(
        cluster.get::<Node>(NODES, at),
        cluster.get::<Lease>(LEASES, &heartbeat),
        cluster.sift(&pods, |pod: &Pod| !pod.is_finished()),
    )?;
    let node = node.ok_or_else(|| Error::NotFound {
        message: format!("there is no node '{}'", at.name),
        hint: Some("pods of a node that does not exist are deleted by pod GC within a minute".into()),
    })?;
    Ok(Seen { node, heartbeat, pods: pods.items })
}

/// Whether it may be done at all.
fn check(args: &Fence, seen: &Seen, cluster: &Cluster) -> Result<()> {
    if args.undo {
        return Ok(());
    }
    let (node, heard) = (&args.node, seen.heard(cluster));
    // The node controller's word is not enough: a heartbeat since then says otherwise. One from the
    // future counts too, however far: a living kubelet's clock may be wrong.
    let heartbeat = seen.node.value.heartbeat(seen.lease());
    let fresh = heartbeat.is_some_and(|time| cluster.server_time().since(time) <= late_after(seen.lease()));
    let refuse = |message: String, hint: &str| Err(Error::Refused { message, hint: Some(hint.to_owned()) });
    let off_first = format!("switch it off first, and wait until its heartbeat is {HEARTBEAT_IS_OLD}");
    match seen.contact(cluster) {
        Contact::Back => refuse(
            format!("{node} is alive ({heard}), though it is declared to be out of service"),
            &with_flags(
                &format!("'kubectl lease fence {node} --undo' takes it into service again"),
                cluster.flags(),
            ),
        ),
        Contact::Heard | Contact::NotReady => {
            refuse(format!("{node} is alive ({heard}): a machine that is off does not heartbeat"), &off_first)
        }
        _ if fresh => {
            refuse(format!("{node} heartbeats ({heard}), whatever its Ready condition says"), &off_first)
        }
        Contact::Late => refuse(
            format!("{node} is late ({heard}), and not given up by the node controller yet"),
            "try again in a minute; pod GC does nothing before",
        ),
        Contact::Silent | Contact::Fenced | Contact::Gone => Ok(()),
    }
}

/// A volume that is attached to the node, whether or not there is a pod that uses it.
fn attached(attachment: &Attachment) -> String {
    match attachment.spec.source.persistent_volume_name.as_str() {
        "" => format!("{} is attached there", attachment.metadata.name),
        volume => format!("{volume} is attached there"),
    }
}

/// Why it takes more than a yes: what would run twice, or be written by two machines, if this one is on.
/// The volumes of a pod whose object was deleted by force stay attached as long as its node is not declared
/// to be off, and are detached as soon as it is.
fn twice(seen: &Seen, around: &Surroundings, now: ServerTime) -> Option<String> {
    let is_critical = |pod: &&Object<Pod>| {
        goes(&pod.value) && Assessment::of(&pod.value, around, now).risk == Risk::Critical
    };
    let critical = seen.pods.iter().filter(is_critical).count();
    if critical > 0 {
        return Some(format!("{} there would run twice if the machine is on", count(critical, "pod")));
    }
    match around.attachments.as_deref() {
        Some([]) => None,
        Some(all) => Some(format!(
            "{} attached there would be detached while containers may write there, if the machine is on",
            count(all.len(), "volume")
        )),
        None => Some(format!(
            "volumes may be attached there (you may not list {}), and would be detached while containers write to them, \
             if the machine is on",
            ATTACHMENTS.plural
        )),
    }
}

fn show(args: &Fence, seen: &Seen, around: &Surroundings, cluster: &Cluster, printer: &mut Printer) {
    let terminating = seen.pods.iter().filter(|pod| pod.value.metadata.deletion_timestamp.is_some()).count();
    let mut lines = vec![
        ("node", seen.heard(cluster)),
        ("pods", format!("{} there, {terminating} of them Terminating", seen.pods.len())),
    ];
    if !args.undo {
        match &around.attachments {
            None => lines.push(("volumes", format!("not seen: you may not list {}", ATTACHMENTS.plural))),
            Some(all) => lines.extend(all.iter().map(|one| ("volume", attached(one)))),
        }
    }
    // Whoever put it there may have had a reason that is not known here.
    lines.extend(seen.taints().map(|taint| ("taint", taint)));
    let told = |lines: &[&str]| lines.iter().map(|line| vec![format!("- {line}")]).collect::<Vec<_>>();
    let (going, staying): (Vec<_>, Vec<_>) = seen.pods.iter().partition(|pod| goes(&pod.value));
    let now = cluster.server_time();
    let named = |pods: Vec<&Object<Pod>>| -> Vec<Vec<String>> {
        let one = |pod: &Object<Pod>| {
            let owner = pod.value.controller().map(|owner| format!(", of {}/{}", owner.kind, owner.name));
            let risk = Assessment::of(&pod.value, around, now).risk.word();
            let owner = owner.unwrap_or_default();
            vec![format!("- {}{owner}, risk {risk} if it still runs", pod.value.full_name())]
        };
        pods.into_iter().map(one).collect()
    };
    let (then, going, staying) = if args.undo {
        let then = told(&["scheduling there, and what its kubelet runs, is as usual again"]);
        (then, Vec::new(), Vec::new())
    } else {
        let then = told(&[
            "pods there are ended and deleted, and their volumes detached, without asking the machine",
            "if it still runs, they run twice and may write to the same data",
        ]);
        (then, named(going), named(staying))
    };
    printer.brief(&Brief {
        title: &args.node,
        verdict: if args.undo { "to be taken into service again" } else { "to be declared out of service" },
        tone: Tone::Doubtful,
        lines: &lines,
        lists: &[("then", &then), ("deleted", &going), ("left, for they tolerate it", &staying)],
    });
}

fn confirm(
    args: &Fence,
    seen: &Seen,
    around: &Surroundings,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<()> {
    // A node that is back is expected to be taken into service again, and so is one that was back since it
    // was fenced. What was fenced anew meanwhile is neither.
    let expected = args.undo && (seen.contact(cluster).is_alive() || seen.is_stale());
    if expected || args.write.dry_run != DryRun::None {
        return Ok(());
    }
    let node = &args.node;
    // Undoing it ends nothing.
    let twice = if args.undo { None } else { twice(seen, around, cluster.server_time()) };
    if args.confirm && (args.i_have_fenced || twice.is_none()) {
        return Ok(());
    }
    let flags = if twice.is_none() { "--confirm" } else { "--confirm --i-have-fenced" };
    let hint = Some(format!("{flags}, once you have made sure that the machine is off"));
    if let (Some(why), true) = (twice, args.confirm) {
        return Err(Error::Refused { message: format!("{node} was not fenced: {why}"), hint });
    }
    if !prompt::possible() {
        if args.undo {
            let heard = seen.heard(cluster);
            return Err(Error::Refused {
                message: format!("{node} is not back ({heard}), and there is no terminal to ask on"),
                hint: Some("--confirm takes the taint off all the same".into()),
            });
        }
        let message = format!("{node} was not fenced: there is no terminal to ask on");
        return Err(Error::Refused { message, hint });
    }
    let yes = if args.undo {
        printer.note(&format!("{node} is not back ({})", seen.heard(cluster)));
        prompt::confirm("Take the taint off?")?
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

/// Whether what was shown, and agreed to, is still what there is.
fn still_so(args: &Fence, before: &Seen, now: &Seen, cluster: &Cluster) -> Result<()> {
    let node = &args.node;
    let stop = |why: String| Err(Error::LostRace { message: format!("{why}: nothing was changed") });
    let heard = |seen: &Seen| seen.node.value.heartbeat(seen.lease());
    if !args.undo && heard(before) != heard(now) {
        return stop(format!("{node} was heard of meanwhile ({})", now.heard(cluster)));
    }
    check(args, now, cluster)?;
    let uid = |pod: &Object<Pod>| pod.value.metadata.uid.clone();
    let shown: BTreeSet<String> = before.pods.iter().map(uid).collect();
    let unseen = now.pods.iter().find(|pod| goes(&pod.value) && !shown.contains(&pod.value.metadata.uid));
    if let (Some(pod), false) = (unseen, args.undo) {
        return stop(format!("{} came to {node} meanwhile, and was not shown", pod.value.full_name()));
    }
    if before.taints().ne(now.taints()) {
        return stop(format!("the out-of-service taint of {node} changed meanwhile"));
    }
    Ok(())
}

/// Sets or takes off the taint, and returns what was read for that. The node controller and others write the
/// node too: on a conflict (409) it is read and decided on again.
async fn set_or_take_off(args: &Fence, before: &Seen, cluster: &Cluster) -> Result<Seen> {
    let at = Address::new("", &args.node);
    let writing = writing(&args.write);
    let mut sent: Option<(Seen, Vec<Taint>)> = None;
    for _ in 0..ATTEMPTS {
        let now = look(&at, cluster).await?;
        if before.node.value.metadata.uid != now.node.value.metadata.uid {
            let message = format!("{} was recreated meanwhile (new UID): nothing was changed", args.node);
            return Err(Error::LostRace { message });
        }
        // A write that a proxy passed on twice conflicts with itself.
        if let Some((seen, taints)) = sent
            && is_written(&now, &taints)
        {
            return Ok(seen);
        }
        still_so(args, before, &now, cluster)?;
        let mut taints = now.node.value.spec.taints.clone();
        taints.retain(|taint| taint.key != OUT_OF_SERVICE);
        if !args.undo {
            taints.push(out_of_service(Some(cluster.server_time().0)));
        }
        match cluster.set_taints(&now.node.value, &taints, &writing).await {
            Ok(_) => return Ok(now),
            Err(error) if error.is_conflict() => sent = Some((now, taints)),
            Err(error) => return Err(error),
        }
    }
    let message = format!("gave up after {ATTEMPTS} write conflicts: nothing was changed");
    Err(Error::LostRace { message })
}

/// Whether the node has the out-of-service taints that were sent, and no others.
fn is_written(now: &Seen, sent: &[Taint]) -> bool {
    // The API keeps no fractions of a second.
    let of = |taints: &[Taint]| -> Vec<_> {
        let all = taints.iter().filter(|taint| taint.key == OUT_OF_SERVICE);
        all.map(|taint| (taint.value.clone(), taint.time_added.map(jiff::Timestamp::as_second))).collect()
    };
    of(&now.node.value.spec.taints) == of(sent)
}

async fn act(
    args: &Fence,
    before: &Seen,
    who: &str,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let seen = set_or_take_off(args, before, cluster).await?;
    done(args, printer)?;
    if args.write.dry_run != DryRun::None {
        return Ok(ExitCode::Done);
    }
    record(args, &seen, who, cluster, printer).await;
    let going = seen.pods.iter().filter(|pod| goes(&pod.value));
    let going: BTreeSet<String> = going.map(|pod| pod.value.metadata.uid.clone()).collect();
    if args.undo || going.is_empty() {
        return Ok(ExitCode::Done);
    }
    match args.wait {
        None => printer.note(&with_flags(
            &format!(
                "pod GC deletes the {} there within a minute; 'kubectl lease partitions {} -w' shows it",
                count(going.len(), "pod"),
                args.node
            ),
            cluster.flags(),
        )),
        Some(limit) => emptied(args, &going, limit, cluster, printer).await?,
    }
    Ok(ExitCode::Done)
}

fn done(args: &Fence, printer: &mut Printer) -> Result<ExitCode> {
    let word = if args.undo { "taken into service again" } else { "fenced" };
    printer.done(&format!("{} {word}{}", args.node, dry_run_note(&args.write)))?;
    Ok(ExitCode::Done)
}

async fn record(args: &Fence, seen: &Seen, who: &str, cluster: &Cluster, printer: &mut Printer) {
    let reason = args.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
    let (word, message) = if args.undo {
        let taints: Vec<String> = seen.taints().collect();
        ("Unfenced", format!("taken into service again by {who}{reason} (was {})", taints.join(", ")))
    } else {
        ("Fenced", format!("declared out of service by {who}{reason} ({})", seen.heard(cluster)))
    };
    let at = Address::new("", &args.node);
    let uid = &seen.node.value.metadata.uid;
    let record = Record { resource: NODES, at: &at, uid, reason: word, message, who: who.to_owned() };
    if let Err(error) = cluster.record(&record, &writing(&args.write)).await {
        printer.warn(&format!("no Event was left about {}: {error}", args.node));
    }
}

/// Watches the pods of the node go. Pod GC sets those that are `going` to Failed before it deletes them, and
/// finalizers may keep them.
async fn emptied(
    args: &Fence,
    going: &BTreeSet<String>,
    limit: Option<Duration>,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<()> {
    let query = Query::new(PODS).select(None, Some(&format!("spec.nodeName={}", args.node))).bare(true);
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    let mut line = WaitLine::default();
    let mut left = BTreeSet::new();
    let empty = watching::until(cluster, &query, deadline, |event: Event<Pod>| {
        match event {
            Event::Snapshot(pods) => {
                let there = pods.iter().map(|pod| &*pod.value);
                let there = there.filter(|pod| goes(pod) || going.contains(&pod.metadata.uid));
                left = there.map(|pod| pod.metadata.uid.clone()).collect();
            }
            Event::Gone(pod) => drop(left.remove(&pod.value.metadata.uid)),
            Event::Changed(_) | Event::Lost(_) | Event::Failed(_) => {}
        }
        if left.is_empty() {
            return ControlFlow::Break(());
        }
        line.say(
            printer,
            &format!("waiting for pod GC, {} left on {}", count(left.len(), "pod"), args.node),
            "",
        );
        ControlFlow::Continue(None)
    })
    .await?;
    drop(line);
    if !empty {
        return Err(Error::TimedOut {
            message: format!("{} still there on {}", count(left.len(), "pod"), args.node),
        });
    }
    printer.done(&format!("{} is let go of: its pods are gone", args.node))
}
