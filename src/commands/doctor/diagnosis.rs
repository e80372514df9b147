//! What a cluster lacks, and what a user may not do: from facts to findings.

use jiff::SignedDuration;

use crate::{
    error::NO_COORDINATION,
    output::words::{count, election::controller as of_controller, paste::grants},
};
use kube_leases::rules::{
    clocks::{Clocks, Difference},
    controller::Controller,
    duration::age,
    priority::How,
    time::SKEW_WORTH_A_WARNING,
};

use super::{
    finding::{AGAIN, Check, ClockDifference, Finding, Found, LOG_IN, Level, Seen, Unseen},
    guard,
    permissions::{Missing, Need, Purpose, words},
};

/// The oldest minor release that this is made for.
const OLDEST_MINOR: u32 = 31;
/// The releases that the tests run on.
const TESTED: &str = env!("KUBECTL_LEASE_TESTED");

/// What keeps the prefix of administrators for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    Absent,
    /// There is some of it, but a policy is missing, is not as it is meant, or nothing denies by it.
    Altered,
    InForce {
        /// Whether this user is an administrator.
        yours: bool,
    },
}

/// Everything that was looked at.
#[derive(Clone, Debug)]
pub struct Facts {
    pub version: Seen<String>,
    /// By how much the server's clock is ahead of this machine's.
    pub offset: SignedDuration,
    /// What is odd about the kubeconfig.
    pub oddities: Vec<String>,
    /// How many kube-apiservers are alive, and of how many.
    pub identities: Seen<(usize, usize)>,
    /// The clocks of the kube-apiservers, where there are any to compare.
    pub clocks: Option<Seen<Clocks>>,
    /// The version of the `LeaseCandidate` API, if it is served.
    pub candidates: Seen<Option<&'static str>>,
    pub elector: Seen<Controller>,
    /// How many elections there are, and what is wrong with them.
    pub elections: Seen<Option<(usize, Vec<Finding>)>>,
    pub priority: Seen<How>,
    pub policies: Seen<bool>,
    /// The namespace of maintenance leases.
    pub home: Seen<bool>,
    pub guard: Seen<Guard>,
    pub medik8s: Seen<bool>,
    /// Whether the namespace of `-n` or of the context is there.
    pub namespace: Seen<bool>,
    pub permissions: Seen<Vec<(Need, bool)>>,
    pub user: String,
    /// The namespace of `-n`.
    pub typed: Option<String>,
    /// That, or the context's.
    pub current: String,
}

/// What to type to have the cluster changed.
fn apply(manifest: &str, what: &str) -> String {
    format!("'kubectl lease doctor --print {manifest} | kubectl apply -f -' {what}")
}

impl Facts {
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = vec![self.server(), self.clock()];
        findings.extend(self.kubeconfig());
        findings.push(self.apiservers());
        let several = self.identities.as_ref().is_ok_and(|(_, all)| *all > 1);
        findings.extend(self.clocks.as_ref().map(|seen| clocks(seen, several)));
        findings.push(self.elections());
        findings.extend(self.electing());
        findings.extend([self.admission(), self.maintenance(), self.operators()]);
        for finding in findings.iter_mut().filter(|finding| finding.forbidden) {
            if self.permissions == Err(Unseen::Forbidden) {
                // Without permission to review one's own permissions: not authenticated.
                finding.hint = Some(LOG_IN.to_owned());
            } else {
                finding.grants = grants(finding.check.role(), &self.user, None, &self.current);
            }
        }
        findings.extend(self.commands());
        findings
    }

    fn server(&self) -> Finding {
        let version = match &self.version {
            Ok(version) => version,
            Err(why) => return Finding::unseen(Check::Server, "its version", why),
        };
        let numbers: Vec<u32> = version
            .trim_start_matches('v')
            .split(['.', '-', '+'])
            .map_while(|part| part.parse().ok())
            .collect();
        match numbers[..] {
            [1, minor, ..] if minor < OLDEST_MINOR => Finding::warn(
                Check::Server,
                Found::VersionTooOld { version: version.clone(), oldest: format!("1.{OLDEST_MINOR}") },
                format!("{version} is older than 1.{OLDEST_MINOR}, the oldest supported release"),
                "most commands work; try them on a test cluster first",
            ),
            _ => Finding::ok(
                Check::Server,
                Found::Version { version: version.clone() },
                format!("{version} (tested on {TESTED})"),
            ),
        }
    }

    fn clock(&self) -> Finding {
        let offset = self.offset.abs();
        if offset < SKEW_WORTH_A_WARNING {
            return Finding::ok(Check::Clock, Found::ClockAgrees, "agrees with the server's");
        }
        let direction = if self.offset.is_positive() { "behind" } else { "ahead of" };
        Finding::warn(
            Check::Clock,
            Found::ClockDiffers { server_ahead_seconds: self.offset.as_secs_f64() },
            format!("this machine's is {} {direction} the server's", age(offset)),
            "leases are judged by the server's all the same; set this one by NTP",
        )
    }

    fn kubeconfig(&self) -> Vec<Finding> {
        let mut odd: Vec<Finding> = self
            .oddities
            .iter()
            .map(|oddity| {
                Finding::warn(
                    Check::Kubeconfig,
                    Found::KubeconfigOdd,
                    oddity,
                    "'kubectl config view --minify' and the flags show why",
                )
            })
            .collect();
        if self.namespace == Ok(false) {
            odd.push(Finding::warn(
                Check::Kubeconfig,
                Found::NamespaceMissing { namespace: self.current.clone() },
                format!("there is no namespace {}", self.current),
                "hold and force-delete need an existing namespace: select it with -n",
            ));
        }
        if odd.is_empty() {
            odd.push(Finding::ok(Check::Kubeconfig, Found::KubeconfigFine, "no problems"));
        }
        odd
    }

    fn apiservers(&self) -> Finding {
        let check = Check::Apiservers;
        match &self.identities {
            Err(why) => Finding::unseen(check, "their identities", why),
            Ok((_, 0)) => Finding::warn(
                check,
                Found::NoIdentities,
                "no identity leases",
                "check that they were not started with --feature-gates=APIServerIdentity=false",
            ),
            Ok((alive, all)) if alive < all => Finding::warn(
                check,
                Found::ApiserversNotAlive { alive: *alive, count: *all },
                format!("{alive} of {all} are alive"),
                "'kubectl lease apiservers' shows which",
            ),
            Ok((_, 1)) => Finding::ok(check, Found::ApiserversAlive { count: 1 }, "the only one is alive"),
            Ok((_, all)) => {
                Finding::ok(check, Found::ApiserversAlive { count: *all }, format!("all {all} are alive"))
            }
        }
    }

    fn elections(&self) -> Finding {
        let check = Check::CoordinatedElection;
        match &self.candidates {
            Err(why) => Finding::unseen(check, "whether it is enabled", why),
            Ok(None) => Finding::warn(check, Found::CoordinationOff, "is off", NO_COORDINATION),
            Ok(Some(version)) => {
                Finding::ok(check, Found::CoordinationServed { version }, format!("served as {version}"))
            }
        }
    }

    /// What matters only where there is coordinated election.
    fn electing(&self) -> Vec<Finding> {
        if !matches!(self.candidates, Ok(Some(_))) {
            return Vec::new();
        }
        let check = Check::ElectionController;
        let elector = match &self.elector {
            Err(why) => Finding::unseen(check, "its lease", why),
            Ok(controller) => match of_controller(controller) {
                None => Finding::ok(check, Found::ControllerAlive, "alive"),
                Some(wrong) => Finding {
                    hint: Some(
                        "no leader is elected meanwhile: check the kube-apiservers, and their logs \
                     for 'leader-election'"
                            .into(),
                    ),
                    ..Finding::new(check, Level::Fail, Found::controller(controller), wrong)
                },
            },
        };
        let priority = match &self.priority {
            Ok(How::Native) => {
                Finding::ok(Check::Priority, Found::PriorityNative, "native: the API has the field")
            }
            Ok(How::Pinned) => Finding::ok(
                Check::Priority,
                Found::PriorityPinned,
                "pinned by emulation versions: no release has the field yet",
            ),
            Err(why) => Finding::unseen(Check::Priority, "whether the API has the field", why),
        };
        let mut findings = vec![elector];
        findings.extend(self.troubles());
        findings.push(priority);
        findings
    }

    /// How the elections themselves stand: a line for each thing that is wrong with one.
    fn troubles(&self) -> Vec<Finding> {
        let check = Check::Elections;
        match &self.elections {
            Err(why) => vec![Finding::unseen(check, "their state", why)],
            Ok(None) => Vec::new(),
            Ok(Some((0, _))) => {
                vec![Finding::ok(check, Found::NoElections, "none: no component has candidates")]
            }
            Ok(Some((all, troubles))) if troubles.is_empty() => {
                vec![Finding::ok(
                    check,
                    Found::ElectionsFine { count: *all },
                    format!("{}, no problems", count(*all, "election")),
                )]
            }
            Ok(Some((_, troubles))) => troubles.clone(),
        }
    }

    fn admission(&self) -> Finding {
        let check = Check::AdmissionPolicies;
        match &self.policies {
            Ok(true) => Finding::ok(check, Found::PoliciesServed, "served"),
            Ok(false) => Finding::warn(
                check,
                Found::PoliciesNotServed,
                "not served",
                "without them the prefix 'kubeadm' cannot be guarded: check the kube-apiserver's --runtime-config",
            ),
            Err(why) => Finding::unseen(check, "whether they are served", why),
        }
    }

    fn maintenance(&self) -> Finding {
        let check = Check::Maintenance;
        match (&self.home, &self.guard) {
            (Ok(false), _) => Finding::warn(
                check,
                Found::NoMaintenanceNamespace,
                "the namespace kube-node-maintenance does not exist yet: the first 'maint acquire' creates it",
                apply("rbac", "creates it too, with roles"),
            ),
            (_, Ok(Guard::Absent)) => Finding::warn(
                check,
                Found::NotGuarded,
                "the reserved prefix 'kubeadm' is not guarded: every user with permission to write leases there can use it",
                apply("guard", "has the server guard it"),
            ),
            (_, Ok(Guard::Altered)) => Finding::warn(
                check,
                Found::GuardAltered,
                "the guard of the reserved prefix 'kubeadm' is incomplete, was altered, is of another release, \
                 or does not deny: do not rely on it",
                // Not apply alone: that leaves what others have added.
                format!(
                    "delete it with 'kubectl delete --ignore-not-found validatingadmissionpolicy,\
                     validatingadmissionpolicybinding {}', and apply it again with \
                     'kubectl lease doctor --print guard | kubectl apply -f -'",
                    guard::NAMES.join(" ")
                ),
            ),
            (Ok(true), Ok(Guard::InForce { yours })) => {
                let found = Found::Guarded { administrator: *yours };
                let yours = if *yours { "can" } else { "cannot" };
                Finding::ok(
                    check,
                    found,
                    format!("the namespace exists and is guarded: you {yours} use --admin"),
                )
            }
            (Err(why), _) | (_, Err(why)) => {
                Finding::unseen(check, "whether the namespace exists and is guarded", why)
            }
        }
    }

    fn operators(&self) -> Finding {
        match &self.medik8s {
            Ok(true) => {
                Finding::ok(Check::Medik8s, Found::Medik8sInstalled, "installed: its leases are respected")
            }
            Ok(false) => Finding::ok(Check::Medik8s, Found::Medik8sAbsent, "not installed"),
            Err(why) => Finding::unseen(Check::Medik8s, "whether it is installed", why),
        }
    }

    /// One line for each command: what is missing for it.
    fn commands(&self) -> Vec<Finding> {
        let permissions = match &self.permissions {
            Ok(permissions) => permissions,
            Err(why) => {
                let message = format!("your permissions {why}");
                return vec![Finding {
                    hint: Some(if *why == Unseen::Forbidden { LOG_IN } else { AGAIN }.into()),
                    ..Finding::new(Check::Permissions, Level::Fail, why.found(), message)
                }];
            }
        };
        let mut commands: Vec<&'static str> = permissions.iter().map(|(need, _)| need.command).collect();
        commands.dedup();
        commands.into_iter().map(|command| self.command(command, permissions)).collect()
    }

    fn command(&self, command: &'static str, permissions: &[(Need, bool)]) -> Finding {
        let lacking: Vec<&Need> = permissions
            .iter()
            .filter(|(need, allowed)| need.command == command && !allowed)
            .map(|(need, _)| need)
            .filter(|need| match need.purpose {
                Purpose::Medik8s => self.medik8s != Ok(false),
                Purpose::Namespace => self.home == Ok(false),
                Purpose::All | Purpose::Only(_) => true,
            })
            .collect();
        let missing = |need: &&Need| Missing {
            verb: need.verb,
            resource: need.resource,
            group: need.group,
            namespace: need.place.namespace(self.typed.as_deref(), &self.current).map(str::to_owned),
            needed: !matches!(need.purpose, Purpose::Only(_) | Purpose::Medik8s),
        };
        let check = Check::PermissionsFor(command);
        let missing: Vec<Missing> = lacking.iter().map(missing).collect();
        let needed: Vec<Missing> = missing.iter().filter(|right| right.needed).cloned().collect();
        let (level, found, message) = if !needed.is_empty() {
            (Level::Fail, Found::PermissionsMissing, format!("you cannot {}", words(&needed)))
        } else if missing.is_empty() {
            return Finding::ok(check, Found::Granted, "granted");
        } else {
            let mut lost: Vec<&'static str> = Vec::new();
            for need in &lacking {
                let what = match need.purpose {
                    Purpose::Only(what) => what,
                    _ => "reading the leases of medik8s",
                };
                if !lost.contains(&what) {
                    lost.push(what);
                }
            }
            (
                Level::Warn,
                Found::PermissionsIncomplete { without: lost.clone() },
                format!("sufficient, except for {}: you cannot {}", lost.join(", "), words(&missing)),
            )
        };
        let mut granted = grants(command, &self.user, self.typed.as_deref(), &self.current);
        if self.medik8s == Ok(true) && lacking.iter().any(|need| need.purpose == Purpose::Medik8s) {
            granted.extend(grants("medik8s", &self.user, None, ""));
        }
        Finding { missing, grants: granted, ..Finding::new(check, level, found, message) }
    }
}

fn clocks(clocks: &Seen<Clocks>, several: bool) -> Finding {
    let check = Check::ApiserverClocks;
    let clocks = match clocks {
        Ok(clocks) => clocks,
        Err(why) => return Finding::unseen(check, "the differences", why),
    };
    let differences = clocks.differences();
    if let [widest, ..] = &differences[..] {
        let words: Vec<String> = differences.iter().map(difference_words).collect();
        let hint = format!(
            "leases are judged by the clock of the kube-apiserver that is asked: through {} a maintenance \
             lease may be taken {} too early; synchronize the clocks of the control plane (NTP)",
            widest.ahead,
            age(widest.by)
        );
        let difference = |it: &Difference| ClockDifference {
            ahead: it.ahead.clone(),
            seconds: it.by.as_secs_f64(),
            of: it.of.clone(),
        };
        let found = Found::ClocksDiffer { differences: differences.iter().map(difference).collect() };
        return Finding::warn(check, found, words.join(", "), hint);
    }
    let Clocks::Measured { clocks: measured, unheard } = clocks else {
        // One list does not show that the one that was asked is itself ahead of the others.
        return if several {
            Finding::ok(check, Found::ClocksNotCompared, "not compared: --clocks measures them")
        } else {
            Finding::ok(check, Found::OneClock, "there is only one")
        };
    };
    let not_renewed = unheard.clone();
    let hosts = unheard.join(", ");
    let rest = if hosts.is_empty() { hosts.clone() } else { format!("; not renewed meanwhile: {hosts}") };
    match (clocks.spread(), &measured[..]) {
        (Some(spread), all) => {
            let spread = spread.as_secs_f64();
            let found = Found::ClocksAgree { count: all.len(), spread_seconds: spread, not_renewed };
            Finding::ok(check, found, format!("{} differ by at most {spread:.1}s{rest}", all.len()))
        }
        (None, [only]) => {
            let found = Found::OneClockHeard { host: only.host.clone(), not_renewed };
            Finding::ok(check, found, format!("only {} renewed{rest}", only.host))
        }
        (None, _) => Finding::warn(
            check,
            Found::NoClockHeard { not_renewed },
            format!("no kube-apiserver renewed its identity lease: {hosts}").trim_end_matches(": "),
            "'kubectl lease apiservers' shows which are alive",
        ),
    }
}

fn difference_words(difference: &Difference) -> String {
    let Difference { ahead, by, of } = difference;
    match of {
        Some(of) => format!("{ahead} is {:.1}s ahead of {of}", by.as_secs_f64()),
        None => format!("{ahead} is at least {} ahead of the server", age(*by)),
    }
}

#[cfg(test)]
mod tests {
    use kube_leases::rules::{clocks::ApiserverClock, trouble::Trouble};
    use serde_json::{Value, json};

    use super::super::permissions::needs;

    use super::*;

    fn well() -> Facts {
        Facts {
            version: Ok("v1.37.1".into()),
            offset: SignedDuration::ZERO,
            oddities: Vec::new(),
            identities: Ok((3, 3)),
            clocks: Some(Ok(Clocks::Ahead(Vec::new()))),
            candidates: Ok(Some("v1beta1")),
            elector: Ok(Controller::Alive { holder: "cp-1".into(), ago: SignedDuration::ZERO }),
            elections: Ok(Some((2, Vec::new()))),
            priority: Ok(How::Pinned),
            policies: Ok(true),
            home: Ok(true),
            guard: Ok(Guard::InForce { yours: true }),
            medik8s: Ok(false),
            namespace: Ok(true),
            permissions: Ok(needs().map(|need| (need, true)).collect()),
            user: "jane".into(),
            typed: None,
            current: "shop".into(),
        }
    }

    /// Without the permissions that this is true of.
    fn without(facts: &mut Facts, lacking: fn(&Need) -> bool) {
        for (need, allowed) in facts.permissions.iter_mut().flatten() {
            *allowed &= !lacking(need);
        }
    }

    #[test]
    fn a_cluster_that_is_well_has_nothing_but_ok() {
        let findings = well().findings();
        assert!(findings.iter().all(|finding| finding.level == Level::Ok), "{findings:#?}");
        assert!(findings.iter().all(|finding| finding.hint.is_none()));
    }

    #[test]
    #[allow(clippy::too_many_lines)] // a table
    fn each_fact_is_judged() {
        type Change = fn(&mut Facts);
        let failed = || Unseen::Failed("boom".into());
        let cases: &[(Change, &str, Level, &str)] = &[
            (|facts| facts.version = Ok("v1.30.4".into()), "server", Level::Warn, "older than 1.31"),
            (|facts| facts.version = Ok("v1.31.0".into()), "server", Level::Ok, "v1.31"),
            (|facts| facts.version = Ok("v1.40.0-alpha.1+x".into()), "server", Level::Ok, "v1.40"),
            (
                |facts| facts.version = Err(Unseen::Forbidden),
                "server",
                Level::Warn,
                "cannot be read: no permission",
            ),
            (|facts| facts.offset = SignedDuration::from_secs(60), "clock", Level::Warn, "60s behind"),
            (|facts| facts.offset = SignedDuration::from_secs(-60), "clock", Level::Warn, "60s ahead of"),
            (|facts| facts.offset = SignedDuration::from_secs(3), "clock", Level::Warn, "3s behind"),
            (|facts| facts.offset = SignedDuration::from_millis(-2999), "clock", Level::Ok, "agrees"),
            (|facts| facts.oddities = vec!["odd".into()], "kubeconfig", Level::Warn, "odd"),
            (|facts| facts.namespace = Ok(false), "kubeconfig", Level::Warn, "no namespace shop"),
            (|facts| facts.namespace = Err(Unseen::Forbidden), "kubeconfig", Level::Ok, "no problems"),
            (|facts| facts.identities = Ok((2, 3)), "apiservers", Level::Warn, "2 of 3"),
            (|facts| facts.identities = Ok((0, 0)), "apiservers", Level::Warn, "no identity leases"),
            (|facts| facts.identities = Err(Unseen::Forbidden), "apiservers", Level::Warn, "no permission"),
            (|facts| facts.candidates = Ok(None), "coordinated election", Level::Warn, "is off"),
            (
                |facts| facts.candidates = Err(Unseen::Forbidden),
                "coordinated election",
                Level::Warn,
                "no permission",
            ),
            (
                |facts| facts.elector = Ok(Controller::Missing),
                "election controller",
                Level::Fail,
                "no kube-apiserver runs",
            ),
            (
                |facts| facts.elections = Ok(Some((1, Vec::new()))),
                "elections",
                Level::Ok,
                "1 election, no problems",
            ),
            (
                |facts| facts.elections = Ok(Some((0, Vec::new()))),
                "elections",
                Level::Ok,
                "none: no component",
            ),
            (
                |facts| facts.elections = Err(Unseen::Forbidden),
                "elections",
                Level::Warn,
                "cannot be read: no permission",
            ),
            (
                |facts| {
                    let stuck = Finding::of_election(
                        Level::Fail,
                        Found::NoElections,
                        "a/b: stuck".into(),
                        "repair it".into(),
                    );
                    facts.elections = Ok(Some((9, vec![stuck])));
                },
                "elections",
                Level::Fail,
                "a/b: stuck",
            ),
            (|facts| facts.priority = Ok(How::Native), "priority", Level::Ok, "native"),
            (|facts| facts.priority = Err(Unseen::Forbidden), "priority", Level::Warn, "no permission"),
            (|facts| facts.policies = Ok(false), "admission policies", Level::Warn, "not served"),
            (|facts| facts.home = Ok(false), "maintenance", Level::Warn, "does not exist yet"),
            (|facts| facts.guard = Ok(Guard::Absent), "maintenance", Level::Warn, "is not guarded"),
            (|facts| facts.guard = Ok(Guard::Altered), "maintenance", Level::Warn, "do not rely on it"),
            (|facts| facts.guard = Err(Unseen::Forbidden), "maintenance", Level::Warn, "no permission"),
            (
                |facts| facts.guard = Ok(Guard::InForce { yours: false }),
                "maintenance",
                Level::Ok,
                "cannot use --admin",
            ),
            (|facts| facts.medik8s = Ok(true), "medik8s", Level::Ok, "installed"),
            (
                |facts| facts.permissions = Err(Unseen::Forbidden),
                "permissions",
                Level::Fail,
                "cannot be read: no permission",
            ),
        ];
        for (change, check, level, words) in cases {
            let mut facts = well();
            change(&mut facts);
            let findings = facts.findings();
            let found = findings.iter().find(|finding| finding.check.to_string() == *check).unwrap();
            assert_eq!(found.level, *level, "{found:?}");
            assert!(found.message.contains(words), "{found:?}");
            assert_eq!(found.hint.is_some(), *level != Level::Ok, "what to do about it: {found:?}");
        }
        let mut facts = well();
        facts.medik8s = Err(failed());
        let findings = facts.findings();
        let found = findings.iter().find(|finding| finding.check == Check::Medik8s).unwrap();
        assert_eq!(found.message, "whether it is installed cannot be read: boom");
    }

    #[test]
    fn a_finding_is_a_code_with_parameters_and_words_beside_it() {
        let mut facts = well();
        facts.version = Err(Unseen::Failed("boom".into()));
        facts.identities = Ok((2, 3));
        facts.elector = Ok(Controller::Silent { holder: "cp-1".into(), ago: SignedDuration::from_mins(2) });
        let trouble = Trouble::OverduePriority { candidate: "a".into() };
        let found = Found::Trouble { namespace: "kube-system".into(), lease_name: "x".into(), trouble };
        let finding = Finding::of_election(Level::Warn, found, "overdue".into(), "clear it".into());
        facts.elections = Ok(Some((1, vec![finding])));
        facts.priority = Err(Unseen::Forbidden);
        without(&mut facts, |need| need.command == "hold" || need.purpose == Purpose::Only("--watch"));
        let findings: Vec<_> = facts.findings().iter().map(|finding| json!(finding)).collect();
        for wanted in [
            json!({ "check": "server", "code": "unreadable", "error": "boom", "level": "warn" }),
            json!({ "check": "clock", "code": "clock-agrees", "level": "ok", "hint": null }),
            json!({ "check": "apiservers", "code": "apiservers-not-alive", "alive": 2, "count": 3 }),
            json!({ "check": "apiserver-clocks", "code": "clocks-not-compared" }),
            json!({
                "check": "election-controller", "code": "controller-silent", "holder": "cp-1",
                "secondsSinceRenewal": 120
            }),
            json!({
                "check": "elections", "code": "overdue-priority", "namespace": "kube-system", "leaseName": "x",
                "candidate": "a", "message": "overdue", "hint": "clear it"
            }),
            json!({ "check": "priority", "code": "forbidden" }),
            json!({ "check": "maintenance", "code": "guarded", "administrator": true }),
            json!({ "check": "permissions", "command": "hold", "code": "permissions-missing" }),
            json!({
                "check": "permissions", "command": "apiservers", "code": "permissions-incomplete",
                "without": ["--watch"]
            }),
        ] {
            let fields = wanted.as_object().unwrap();
            let fits = |finding: &Value| fields.iter().all(|(name, value)| finding[name] == *value);
            assert!(findings.iter().any(fits), "{wanted:#}: {findings:#?}");
        }
    }

    #[test]
    fn clocks_of_kube_apiservers_are_judged_and_the_hosts_named() {
        let clocks = |clocks: &[(&str, i64)]| -> Vec<ApiserverClock> {
            let clock = |(host, ahead): &(&str, i64)| ApiserverClock {
                host: (*host).to_owned(),
                ahead: SignedDuration::from_millis(*ahead),
            };
            clocks.iter().map(clock).collect()
        };
        let measured = |all: &[(&str, i64)], unheard: &[&str]| {
            let unheard = unheard.iter().map(|host| (*host).to_owned()).collect();
            Ok(Clocks::Measured { clocks: clocks(all), unheard })
        };
        for (clocks, level, message) in [
            (Ok(Clocks::Ahead(Vec::new())), Level::Ok, "not compared: --clocks measures them"),
            (
                Ok(Clocks::Ahead(clocks(&[("cp-1", 2000), ("cp-2", 70_400)]))),
                Level::Warn,
                "cp-2 is at least 70s ahead of the server",
            ),
            (measured(&[("cp-1", 0), ("cp-2", 120)], &[]), Level::Ok, "2 differ by at most 0.1s"),
            (
                measured(&[("cp-1", 0), ("cp-2", 120)], &["cp-3", "cp-4"]),
                Level::Ok,
                "2 differ by at most 0.1s; not renewed meanwhile: cp-3, cp-4",
            ),
            (
                measured(&[("cp-1", 40), ("cp-2", 20_000), ("cp-3", 3_000), ("cp-4", 0)], &[]),
                Level::Warn,
                "cp-2 is 20.0s ahead of cp-4, cp-3 is 3.0s ahead of cp-4",
            ),
            (measured(&[("cp-1", 9000)], &[]), Level::Ok, "only cp-1 renewed"),
            (measured(&[], &["cp-1"]), Level::Warn, "no kube-apiserver renewed its identity lease: cp-1"),
            (Err(Unseen::Forbidden), Level::Warn, "the differences cannot be read: no permission"),
        ] {
            let facts = Facts { clocks: Some(clocks), ..well() };
            let findings = facts.findings();
            let found = findings.iter().find(|finding| finding.check == Check::ApiserverClocks).unwrap();
            assert_eq!((found.level, found.message.as_str()), (level, message));
            assert_eq!(found.hint.is_some(), level != Level::Ok);
            assert_eq!(!found.grants.is_empty(), message.contains("cannot be read: no permission"));
            if message.contains("ahead of") {
                let hint = found.hint.as_deref().unwrap();
                assert!(hint.contains("through cp-2 a maintenance lease may be taken"), "{hint}");
            }
        }
        let alone = Facts { identities: Ok((1, 1)), ..well() };
        assert!(alone.findings().iter().any(|finding| finding.message == "there is only one"));
        let facts = Facts { clocks: None, ..well() };
        assert!(facts.findings().iter().all(|finding| finding.check != Check::ApiserverClocks));
    }

    #[test]
    fn what_a_command_cannot_do_without_is_told_from_what_it_can() {
        type Lacking = fn(&Need) -> bool;
        let cases: &[(Lacking, &str, Level, &str)] = &[
            (|need| need.verb == "list", "apiservers", Level::Fail, "you cannot list leases in kube-system"),
            (
                |need| need.verb == "watch",
                "apiservers",
                Level::Warn,
                "sufficient, except for --watch: you cannot watch leases in kube-system",
            ),
            (|need| need.verb == "patch", "set-priority", Level::Fail, "you cannot patch leasecandidates"),
            (|need| need.verb == "watch", "hold", Level::Fail, "you cannot watch leases in shop"),
            (|need| need.resource == "namespaces", "maint", Level::Ok, "granted"),
            (|need| need.purpose == Purpose::Medik8s, "maint", Level::Ok, "granted"),
        ];
        for (lacking, command, level, words) in cases {
            let mut facts = well();
            without(&mut facts, *lacking);
            let findings = facts.findings();
            let check = Check::PermissionsFor(command);
            let found = findings.iter().find(|finding| finding.check == check).unwrap();
            assert_eq!((found.level, found.message.as_str()), (*level, *words));
            assert_eq!(found.grants.is_empty(), *level == Level::Ok);
        }
        let mut facts = well();
        without(&mut facts, |need| matches!(need.purpose, Purpose::Medik8s | Purpose::Namespace));
        facts.medik8s = Ok(true);
        let maint = |facts: &Facts| {
            facts
                .findings()
                .into_iter()
                .find(|finding| finding.check == Check::PermissionsFor("maint"))
                .unwrap()
        };
        assert_eq!(maint(&facts).level, Level::Warn);
        let missing = maint(&facts).missing;
        assert!(!missing.is_empty() && missing.iter().all(|right| !right.needed), "it works without");
        let of_medik8s = |finding: &Finding| finding.grants.iter().any(|grant| grant.contains("-medik8s:"));
        assert!(of_medik8s(&maint(&facts)));
        facts.medik8s = Err(Unseen::Forbidden);
        assert!(!of_medik8s(&maint(&facts)), "there may be nothing to grant");
        facts.medik8s = Ok(true);
        let mut other = well();
        without(&mut other, |need| need.resource == "leases" && need.purpose != Purpose::Medik8s);
        other.medik8s = Ok(true);
        assert!(!maint(&other).grants.is_empty() && !of_medik8s(&maint(&other)));
        facts.home = Ok(false);
        assert_eq!(maint(&facts).message, "you cannot create namespaces");
    }

    #[test]
    fn what_may_not_be_seen_comes_with_the_role_that_shows_it() {
        let mut facts = well();
        (facts.identities, facts.elector) = (Err(Unseen::Forbidden), Err(Unseen::Forbidden));
        (facts.policies, facts.priority) = (Err(Unseen::Forbidden), Err(Unseen::Failed("boom".into())));
        facts.elections = Err(Unseen::Forbidden);
        for (check, role) in [
            (Check::Apiservers, Some("apiservers")),
            (Check::ElectionController, Some("apiservers")),
            (Check::Elections, Some("candidates")),
            (Check::AdmissionPolicies, Some("doctor")),
            (Check::Priority, None),
            (Check::Server, None),
        ] {
            let findings = facts.findings();
            let found = findings.iter().find(|finding| finding.check == check).unwrap();
            let expected: Vec<_> =
                role.map(|role| grants(role, "jane", None, "shop")).into_iter().flatten().collect();
            assert_eq!(found.grants, expected, "{check}");
        }
        // Not authenticated: no role helps.
        facts.permissions = Err(Unseen::Forbidden);
        let findings = facts.findings();
        let found = findings.iter().find(|finding| finding.check == Check::Apiservers).unwrap();
        assert_eq!((found.hint.as_deref(), &*found.grants), (Some(LOG_IN), &[][..]));
        facts.permissions = Err(Unseen::Failed("boom".into()));
        let findings = facts.findings();
        let found = findings.iter().find(|finding| finding.check == Check::Permissions).unwrap();
        assert_eq!(found.hint.as_deref(), Some(AGAIN));
    }

    #[test]
    fn what_a_cluster_lacks_comes_with_the_command_that_applies_it() {
        let hint = |facts: Facts| {
            facts
                .findings()
                .into_iter()
                .find(|finding| finding.check == Check::Maintenance)
                .unwrap()
                .hint
                .unwrap()
        };
        let apply =
            |manifest: &str| format!("'kubectl lease doctor --print {manifest} | kubectl apply -f -'");
        assert!(hint(Facts { home: Ok(false), ..well() }).starts_with(&apply("rbac")));
        assert!(hint(Facts { guard: Ok(Guard::Absent), ..well() }).starts_with(&apply("guard")));
        for level in [Level::Ok, Level::Warn, Level::Fail] {
            assert_eq!(serde_json::to_value(level).unwrap(), level.to_string());
        }
    }

    #[test]
    fn what_needs_coordinated_election_is_not_asked_without_it() {
        let mut facts = well();
        facts.candidates = Ok(None);
        let findings = facts.findings();
        assert!(!findings.iter().any(|finding| finding.check == Check::ElectionController));
    }
}
