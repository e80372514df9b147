//! What a cluster lacks, and what a user may not do: from facts to findings.

use std::fmt;

use jiff::SignedDuration;
use serde::Serialize;

use super::{duration::age, election::NO_COORDINATION, priority::How, time::SKEW_WORTH_A_WARNING};

/// The oldest minor release that this is made for.
const OLDEST_MINOR: u32 = 31;
/// The releases that the tests run on.
const TESTED: &str = env!("KUBECTL_LEASE_TESTED");

/// What to do where rights are missing.
const ROLES: &str =
    "an administrator can bind these roles to you, which 'kubectl lease doctor --print rbac' prints";

/// How well something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    Warn,
    Fail,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        })
    }
}

/// Something that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub check: String,
    pub level: Level,
    pub message: String,
    pub hint: Option<String>,
}

impl Finding {
    /// What to do about it, said in the same words for all findings of a kind.
    pub fn advice(&self) -> Option<String> {
        let kind = self.check.split_once(" for ").map_or(&*self.check, |(kind, _)| kind);
        self.hint.as_ref().map(|hint| format!("{kind}: {hint}"))
    }
}

/// What can be known of something: it may not be looked at, or looking failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen<T> {
    Yes(T),
    No,
}

/// A right that a command needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    pub command: &'static str,
    /// Such as `patch`.
    pub verb: &'static str,
    /// Such as `leases.coordination.k8s.io in kube-system`.
    pub what: String,
    pub allowed: bool,
}

/// Whether there is somebody who elects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elector {
    Alive,
    /// What is wrong with it.
    Wrong(String),
}

/// What keeps the prefix of administrators for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    Absent,
    /// The policy is there, but nothing denies by it.
    Unbound,
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
    /// How many kube-apiservers are alive, and of how many.
    pub identities: Seen<(usize, usize)>,
    /// The version of the `LeaseCandidate` API, if it is served.
    pub candidates: Seen<Option<&'static str>>,
    pub elector: Seen<Elector>,
    pub priority: Option<How>,
    pub policies: Seen<bool>,
    pub namespace: Seen<bool>,
    pub guard: Seen<Guard>,
    pub medik8s: Seen<bool>,
    pub rights: Vec<Right>,
    /// What is odd about the kubeconfig.
    pub oddities: Vec<String>,
}

impl Facts {
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = vec![self.server(), self.clock()];
        findings.extend(self.oddities.iter().map(|oddity| finding("kubeconfig", Level::Warn, oddity, None)));
        if self.oddities.is_empty() {
            findings.push(finding("kubeconfig", Level::Ok, "nothing odd about it", None));
        }
        findings.extend([self.apiservers(), self.elections()]);
        findings.extend(self.electing());
        findings.extend([self.admission(), self.maintenance(), self.operators()]);
        findings.extend(self.commands());
        findings
    }

    fn server(&self) -> Finding {
        let Seen::Yes(version) = &self.version else {
            return finding("server", Level::Warn, "its version may not be seen", None);
        };
        let numbers: Vec<u32> = version
            .trim_start_matches('v')
            .split(['.', '-', '+'])
            .map_while(|part| part.parse().ok())
            .collect();
        match numbers[..] {
            [1, minor, ..] if minor < OLDEST_MINOR => finding(
                "server",
                Level::Warn,
                &format!("{version} is older than 1.{OLDEST_MINOR}, for which this is made"),
                Some("most of it will work; try it where nothing can break".into()),
            ),
            _ => finding("server", Level::Ok, &format!("{version} (tested on {TESTED})"), None),
        }
    }

    fn clock(&self) -> Finding {
        let offset = self.offset.abs();
        if offset < SKEW_WORTH_A_WARNING {
            return finding("clock", Level::Ok, "agrees with the server's", None);
        }
        let direction = if self.offset.is_positive() { "behind" } else { "ahead of" };
        finding(
            "clock",
            Level::Warn,
            &format!("this machine's is {} {direction} the server's", age(offset)),
            Some("leases are judged by the server's all the same; set this one by NTP".into()),
        )
    }

    fn apiservers(&self) -> Finding {
        match self.identities {
            Seen::No => finding("apiservers", Level::Warn, "their identities may not be seen", None),
            Seen::Yes((_, 0)) => finding(
                "apiservers",
                Level::Warn,
                "publish no identities",
                Some("they do unless started with --feature-gates=APIServerIdentity=false".into()),
            ),
            Seen::Yes((alive, all)) if alive < all => finding(
                "apiservers",
                Level::Warn,
                &format!("{alive} of {all} are alive"),
                Some("'kubectl lease apiservers' shows which".into()),
            ),
            Seen::Yes((_, 1)) => finding("apiservers", Level::Ok, "the only one is alive", None),
            Seen::Yes((_, all)) => finding("apiservers", Level::Ok, &format!("all {all} are alive"), None),
        }
    }

    fn elections(&self) -> Finding {
        match self.candidates {
            Seen::No => finding("coordinated election", Level::Warn, "candidates may not be seen", None),
            Seen::Yes(None) => {
                finding("coordinated election", Level::Warn, "is off", Some(NO_COORDINATION.to_owned()))
            }
            Seen::Yes(Some(version)) => {
                finding("coordinated election", Level::Ok, &format!("served as {version}"), None)
            }
        }
    }

    /// What matters only where there is coordinated election.
    fn electing(&self) -> Vec<Finding> {
        if !matches!(self.candidates, Seen::Yes(Some(_))) {
            return Vec::new();
        }
        let elector = match &self.elector {
            Seen::No => finding("election controller", Level::Warn, "its lease may not be seen", None),
            Seen::Yes(Elector::Alive) => finding("election controller", Level::Ok, "alive", None),
            Seen::Yes(Elector::Wrong(wrong)) => finding("election controller", Level::Fail, wrong, None),
        };
        let priority = match self.priority {
            Some(How::Native) => finding("priority", Level::Ok, "native: the API has the field", None),
            _ => finding(
                "priority",
                Level::Ok,
                "pinned by emulation versions: no release has the field yet",
                None,
            ),
        };
        vec![elector, priority]
    }

    fn admission(&self) -> Finding {
        match self.policies {
            Seen::Yes(true) => finding("admission policies", Level::Ok, "served", None),
            Seen::Yes(false) => finding("admission policies", Level::Warn, "not served", None),
            Seen::No => finding("admission policies", Level::Warn, "may not be seen", None),
        }
    }

    fn maintenance(&self) -> Finding {
        let check = "maintenance";
        match (&self.namespace, &self.guard) {
            (Seen::Yes(false), _) => finding(
                check,
                Level::Warn,
                "the namespace kube-node-maintenance is not there yet: the first 'maint acquire' creates it",
                Some(apply("rbac", "creates it too, with roles")),
            ),
            (_, Seen::Yes(Guard::Absent)) => finding(
                check,
                Level::Warn,
                "nothing guards the reserved prefix 'kubeadm': whoever may write leases there may take it",
                Some(apply("guard", "has the server guard it")),
            ),
            (_, Seen::Yes(Guard::Unbound)) => finding(
                check,
                Level::Warn,
                "the guard of the reserved prefix 'kubeadm' has no binding that denies: it guards nothing",
                Some(apply("guard", "binds it")),
            ),
            (Seen::Yes(true), Seen::Yes(Guard::InForce { yours })) => {
                let yours = if *yours { "may" } else { "may not" };
                let message = format!("the namespace is there, and guarded: you {yours} hold with --admin");
                finding(check, Level::Ok, &message, None)
            }
            _ => finding(
                check,
                Level::Warn,
                "whether the namespace is there and guarded may not be seen",
                None,
            ),
        }
    }

    fn operators(&self) -> Finding {
        match self.medik8s {
            Seen::Yes(true) => finding("medik8s", Level::Ok, "is here: its leases are respected", None),
            Seen::Yes(false) => finding("medik8s", Level::Ok, "is not here", None),
            Seen::No => finding("medik8s", Level::Warn, "may not be seen", None),
        }
    }

    /// One line for each command: what is missing for it.
    fn commands(&self) -> Vec<Finding> {
        let mut commands: Vec<&'static str> = self.rights.iter().map(|right| right.command).collect();
        commands.dedup();
        commands
            .into_iter()
            .map(|command| {
                let check = format!("rights for {command}");
                let missing = self.missing(command);
                if missing.is_empty() {
                    return finding(&check, Level::Ok, "all there", None);
                }
                let role = command.split_whitespace().last().unwrap_or(command).trim_start_matches("set-");
                let message = format!("you may not {} (role kubectl-lease-{role})", missing.join("; "));
                finding(&check, Level::Fail, &message, Some(ROLES.to_owned()))
            })
            .collect()
    }

    /// What a command lacks: verbs and on what, such as `list, watch pods`.
    fn missing(&self, command: &str) -> Vec<String> {
        let mut missing: Vec<(Vec<&str>, &str)> = Vec::new();
        for right in self.rights.iter().filter(|right| right.command == command && !right.allowed) {
            match missing.last_mut() {
                Some((verbs, what)) if *what == right.what => verbs.push(right.verb),
                _ => missing.push((vec![right.verb], &right.what)),
            }
        }
        missing.into_iter().map(|(verbs, what)| format!("{} {what}", verbs.join(", "))).collect()
    }
}

/// What to type to have the cluster changed.
fn apply(manifest: &str, what: &str) -> String {
    format!("'kubectl lease doctor --print {manifest} | kubectl apply -f -' {what}")
}

fn finding(check: &str, level: Level, message: &str, hint: Option<String>) -> Finding {
    Finding { check: check.to_owned(), level, message: message.to_owned(), hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn well() -> Facts {
        Facts {
            version: Seen::Yes("v1.37.1".into()),
            offset: SignedDuration::ZERO,
            identities: Seen::Yes((3, 3)),
            candidates: Seen::Yes(Some("v1beta1")),
            elector: Seen::Yes(Elector::Alive),
            priority: Some(How::Pinned),
            policies: Seen::Yes(true),
            namespace: Seen::Yes(true),
            guard: Seen::Yes(Guard::InForce { yours: true }),
            medik8s: Seen::Yes(false),
            rights: vec![right("apiservers", true), right("hold", true)],
            oddities: Vec::new(),
        }
    }

    fn right(command: &'static str, allowed: bool) -> Right {
        Right { command, verb: "list", what: "leases".into(), allowed }
    }

    #[test]
    fn a_cluster_that_is_well_has_nothing_but_ok() {
        let findings = well().findings();
        assert!(findings.iter().all(|finding| finding.level == Level::Ok), "{findings:#?}");
        assert!(findings.iter().all(|finding| finding.hint.is_none()));
    }

    #[test]
    fn each_fact_is_judged() {
        type Change = fn(&mut Facts);
        let cases: [(Change, &str, Level, &str); 19] = [
            (|facts| facts.version = Seen::Yes("v1.30.4".into()), "server", Level::Warn, "older than 1.31"),
            (|facts| facts.version = Seen::Yes("v1.40.0-alpha.1+x".into()), "server", Level::Ok, "v1.40"),
            (|facts| facts.version = Seen::No, "server", Level::Warn, "may not be seen"),
            (|facts| facts.offset = SignedDuration::from_secs(60), "clock", Level::Warn, "60s behind"),
            (|facts| facts.offset = SignedDuration::from_secs(-60), "clock", Level::Warn, "60s ahead of"),
            (|facts| facts.oddities = vec!["odd".into()], "kubeconfig", Level::Warn, "odd"),
            (|facts| facts.identities = Seen::Yes((2, 3)), "apiservers", Level::Warn, "2 of 3"),
            (|facts| facts.identities = Seen::Yes((0, 0)), "apiservers", Level::Warn, "no identities"),
            (|facts| facts.candidates = Seen::Yes(None), "coordinated election", Level::Warn, "is off"),
            (|facts| facts.candidates = Seen::No, "coordinated election", Level::Warn, "may not be seen"),
            (
                |facts| facts.elector = Seen::Yes(Elector::Wrong("silent".into())),
                "election controller",
                Level::Fail,
                "silent",
            ),
            (|facts| facts.priority = Some(How::Native), "priority", Level::Ok, "native"),
            (|facts| facts.policies = Seen::Yes(false), "admission policies", Level::Warn, "not served"),
            (|facts| facts.namespace = Seen::Yes(false), "maintenance", Level::Warn, "not there yet"),
            (|facts| facts.guard = Seen::Yes(Guard::Absent), "maintenance", Level::Warn, "nothing guards"),
            (|facts| facts.guard = Seen::Yes(Guard::Unbound), "maintenance", Level::Warn, "no binding"),
            (
                |facts| facts.guard = Seen::Yes(Guard::InForce { yours: false }),
                "maintenance",
                Level::Ok,
                "may not hold with --admin",
            ),
            (|facts| facts.medik8s = Seen::Yes(true), "medik8s", Level::Ok, "is here"),
            (
                |facts| facts.rights[1].allowed = false,
                "rights for hold",
                Level::Fail,
                "you may not list leases",
            ),
        ];
        for (change, check, level, words) in cases {
            let mut facts = well();
            change(&mut facts);
            let findings = facts.findings();
            let found = findings.iter().find(|finding| finding.check == check).unwrap();
            assert_eq!(found.level, level, "{found:?}");
            assert!(found.message.contains(words), "{found:?}");
        }
    }

    #[test]
    fn what_needs_coordinated_election_is_not_asked_without_it() {
        let mut facts = well();
        facts.candidates = Seen::Yes(None);
        let findings = facts.findings();
        assert!(!findings.iter().any(|finding| finding.check == "election controller"));
    }
}
