//! `candidates rehearse`: an upgrade, played through the rule.

use serde_json::{Map, Value, json};

use super::election::{gather, the_election};
use crate::{
    cli::Rehearse,
    connection::Reached,
    error::{Error, Result},
    exit::ExitCode,
    output::{Cell, Change, Format, Item, Printer, Tone, words::election::called},
};
use kube_leases::rules::{
    rehearsal::{Because, Move, Upgrade, UpgradeAction as Done, UpgradeStep, rehearse},
    skew::{self, Breach, VersionSkew},
    strategy::Strategy,
    time::ServerTime,
};

pub async fn run(
    args: &Rehearse,
    namespace: Option<&str>,
    cluster: &Reached,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let found = gather(namespace, cluster).await?;
    let all = found.all();
    let election = the_election(&args.lease, &all, &found.parts)?;
    let governed = skew::governs(election.namespace, election.name);
    let apiservers = if governed { cluster.works_as().await } else { None };
    let now = cluster.server_time();
    let upgrade = Upgrade { to: &args.to, rollback: args.rollback, governed, apiservers };
    let steps = rehearse(&election.candidates, election.lease, now, &upgrade).map_err(|strategy| {
        not_elected(&called(election.namespace, election.name), election.name, &strategy)
    })?;
    let moves = steps.iter().map(|step| step.moves.len()).sum::<usize>();
    let rows: Vec<_> =
        steps.into_iter().enumerate().map(|(n, step)| RehearsalRow { n: n.to_string(), step }).collect();
    match args.output {
        Format::Table | Format::Wide => {
            printer.listing(&rows, args.output, true, now)?;
            let first = if governed { "all kube-apiservers are upgraded first, then " } else { "" };
            printer.note(&format!(
                "Assumed: {first}one host after the other; each instance comes back as a new candidate, without a \
                 priority, once another one has been elected."
            ));
            if args.rollback {
                let last = if governed { "; the kube-apiservers come last" } else { "" };
                printer.note(&format!("Back: the host that was upgraded last comes first{last}."));
            }
            printer.note(&format!(
                "Leadership of {} moves {}; each time there may be no leader for up to 15 seconds.",
                called(election.namespace, election.name),
                if moves == 1 { "once".to_owned() } else { format!("{moves} times") }
            ));
        }
        Format::Name => printer.done(&format!("lease.coordination.k8s.io/{}", election.name))?,
        Format::Json | Format::Yaml => {
            let document = json!({
                "namespace": election.namespace,
                "leaseName": election.name,
                "to": args.to,
                "apiserverVersion": apiservers,
                "moves": moves,
                "steps": rows.iter().map(Item::document).collect::<Vec<_>>(),
            });
            printer.document("Rehearsal", document, args.output)?;
        }
    }
    Ok(ExitCode::Done)
}

fn not_elected(called: &str, lease: &str, strategy: &Strategy) -> Error {
    let why = match strategy {
        Strategy::Foreign(name) => {
            format!("its strategy is '{name}', for which Kubernetes elects no candidate")
        }
        Strategy::Conflict(_) => "its candidates disagree on the strategy".to_owned(),
        Strategy::Oldest | Strategy::None => "none of its candidates takes part".to_owned(),
    };
    Error::Refused {
        message: format!("the election for {called} cannot be rehearsed: {why}"),
        hint: Some(format!("'kubectl lease candidates explain {lease}' says more")),
    }
}

#[derive(Clone)]
struct RehearsalRow {
    n: String,
    step: UpgradeStep,
}

impl RehearsalRow {
    fn change(&self) -> String {
        match &self.step.change {
            Done::None => "now".into(),
            Done::Apiservers(Some(version)) => format!("kube-apiservers to {}", version.text()),
            Done::Apiservers(None) => "kube-apiservers".into(),
            Done::Instance { host, to, .. } => format!("{host} to {}", to.binary_version),
        }
    }

    fn lead(&self) -> String {
        if self.step.moves.is_empty() {
            return match (&self.step.leader, &self.step.change) {
                (None, _) => "equal candidates: cannot be foreseen".into(),
                (_, Done::None) => "-".into(),
                _ => "stays".into(),
            };
        }
        let words = |it: &Move| match (&it.from, &it.to, it.because) {
            (Some(from), Some(to), Because::Restart) => format!("{from} restarts: to {to}"),
            (Some(from), Some(to), Because::BetterCandidate) => {
                format!("from {from} to {to}, the better candidate")
            }
            (Some(from), None, _) => format!("{from} restarts: to one of several that are equal"),
            (None, to, _) => format!("to {}", to.as_deref().unwrap_or("one of several that are equal")),
        };
        self.step.moves.iter().map(words).collect::<Vec<_>>().join(", ")
    }

    fn skew(&self) -> (String, Tone) {
        match self.step.skew.as_deref() {
            None => ("-".into(), Tone::Plain),
            Some([]) => ("ok".into(), Tone::Good),
            Some(broken) => {
                let words = |Breach { host, version, skew }: &Breach| {
                    let how = if *skew == VersionSkew::Newer { "too new" } else { "too old" };
                    format!("{host} ({}) {how}", version.text())
                };
                (broken.iter().map(words).collect::<Vec<_>>().join(", "), Tone::Bad)
            }
        }
    }
}

impl Item for RehearsalRow {
    const KIND: &'static str = "RehearsalStep";

    fn headers(_: bool) -> &'static [&'static str] {
        &["STEP", "CHANGE", "LEADER", "LEADERSHIP", "SKEW POLICY"]
    }

    fn cells(&self, _: ServerTime, _: bool) -> Vec<Cell> {
        let leader = self.step.leader.as_ref().map(|(host, version)| {
            version.map_or_else(|| host.clone(), |version| format!("{host} ({})", version.text()))
        });
        let (skew, tone) = self.skew();
        let back = if self.step.rollback { "back: " } else { "" };
        vec![
            Cell::new(&self.n),
            Cell::new(format!("{back}{}", self.change())),
            Cell::or_none(leader),
            Cell::new(self.lead()),
            Cell::new(skew).tone(tone),
        ]
    }

    fn document(&self) -> Map<String, Value> {
        let step = &self.step;
        let (host, from, to) = match &step.change {
            Done::Instance { host, from, to } => (Some(host.as_str()), json!(from), json!(to)),
            Done::Apiservers(version) => (None, Value::Null, json!({ "apiserverVersion": version })),
            Done::None => (None, Value::Null, Value::Null),
        };
        let phase = match (&step.change, step.rollback) {
            (Done::None, _) => "now",
            (_, false) => "upgrade",
            (_, true) => "rollback",
        };
        let fields = json!({
            "phase": phase,
            "host": host,
            "from": from,
            "to": to,
            "leader": step.leader.as_ref().map(|(host, _)| host),
            "leaderVersion": step.leader.as_ref().and_then(|(_, version)| *version),
            "moves": step.moves,
            "withinSkewPolicy": step.skew.as_ref().map(Vec::is_empty),
            "skew": step.skew,
        });
        fields.as_object().cloned().unwrap_or_default()
    }

    fn resource(&self) -> String {
        format!("step/{}", self.n)
    }

    fn key(&self) -> &str {
        &self.n
    }

    fn change(_: Option<&Self>, _: Option<&Self>, _: ServerTime) -> Option<Change> {
        None
    }
}
