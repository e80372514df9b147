//! An upgrade of a component played through the rule of coordinated election, host by host.
//!
//! The order is that of the version skew policy: all kube-apiservers first, then the instances of the
//! component, one host after the other by name; back again the instances first, the last one first, and
//! then the kube-apiservers. An instance restarts as a new candidate of the new version, without its
//! priority, and is away for long enough that another one is elected where it led.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};
use serde::Serialize;

use super::{
    candidate::Candidate,
    election::Outlook,
    lease::{Lease, Metadata, host},
    skew::{self, Breach, Minor},
    strategy::{OLDEST, Strategy},
    time::ServerTime,
    version::Version,
};

/// The versions that an instance reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// The version of the binary.
    pub binary_version: String,
    /// The version that it works as.
    pub emulation_version: String,
}

impl Versions {
    /// Of a release such as `1.38` or `v1.38.2`, which emulates no other.
    pub fn of_release(text: &str) -> Option<Self> {
        let version = Version::parse(text)?;
        let (major, minor, patch, pre) = version.parts();
        let pre = if pre.is_empty() { String::new() } else { format!("-{pre}") };
        Some(Self {
            binary_version: format!("{major}.{minor}.{patch}{pre}"),
            emulation_version: format!("{major}.{minor}.0"),
        })
    }

    fn of(candidate: &Candidate) -> Self {
        Self {
            binary_version: candidate.spec.binary_version.clone(),
            emulation_version: super::priority::true_emulation_version(candidate).into_owned(),
        }
    }
}

/// What is rehearsed.
#[derive(Clone, Copy, Debug)]
pub struct Upgrade<'a> {
    /// The versions after it.
    pub to: &'a Versions,
    /// Whether the way back is rehearsed too.
    pub rollback: bool,
    /// Whether the version skew policy is about this component: its versions are those of Kubernetes.
    pub governed: bool,
    /// The version of today's kube-apiservers, where it is known.
    pub apiservers: Option<Minor>,
}

/// What is done in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpgradeAction {
    /// How it is now.
    None,
    /// All kube-apiservers get this version, where it is known.
    Apiservers(Option<Minor>),
    /// The instance on a host restarts.
    Instance {
        /// The host.
        host: String,
        /// The versions before.
        from: Versions,
        /// The versions after.
        to: Versions,
    },
}

/// Why leadership moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Because {
    /// The leader restarts.
    Restart,
    /// A candidate that is better than the leader is there.
    BetterCandidate,
}

/// From one host to another; `None` where there is no leader, or it cannot be foreseen which.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Move {
    /// The host that led before.
    pub from: Option<String>,
    /// The host that leads after it.
    pub to: Option<String>,
    /// Why it moves.
    pub because: Because,
}

/// One step, and how things stand after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpgradeStep {
    /// Whether it is a step of the way back.
    pub rollback: bool,
    /// What is done.
    pub change: UpgradeAction,
    /// How leadership moves meanwhile, in order.
    pub moves: Vec<Move>,
    /// The host that leads, and the version that its instance works as.
    pub leader: Option<(String, Option<Minor>)>,
    /// The instances that break the version skew policy; `None` where it is not about them, or the version of
    /// the kube-apiservers is not known.
    pub skew: Option<Vec<Breach>>,
}

/// Plays an upgrade, and the way back if asked to. Where Kubernetes does not elect, the strategy says why.
pub fn rehearse(
    candidates: &[&Candidate],
    lease: Option<&Lease>,
    now: ServerTime,
    upgrade: &Upgrade<'_>,
) -> Result<Vec<UpgradeStep>, Strategy> {
    let outlook = Outlook::new(candidates, lease, now);
    if outlook.strategy != Strategy::Oldest {
        return Err(outlook.strategy);
    }
    let mut stage = UpgradeState {
        candidates: outlook.taking_part().into_iter().cloned().collect(),
        leader: outlook.leader.valid().map(str::to_owned),
        apiservers: upgrade.apiservers.filter(|_| upgrade.governed),
        rollback: false,
        now,
        restarts: 0,
    };
    stage.settle(Because::BetterCandidate);
    let hosts: BTreeSet<String> = stage.candidates.iter().map(|it| it.host().to_owned()).collect();
    let before: Vec<(String, Versions)> = hosts
        .into_iter()
        .filter_map(|host| {
            let candidate = stage.candidates.iter().find(|it| it.host() == host)?;
            let versions = Versions::of(candidate);
            Some((host, versions))
        })
        .collect();

    let mut steps = vec![stage.step(UpgradeAction::None, Vec::new())];
    if upgrade.governed {
        steps.push(stage.upgrade_apiservers(Minor::parse(&upgrade.to.emulation_version)));
    }
    for (host, _) in &before {
        steps.push(stage.restart(host, upgrade.to));
    }
    if upgrade.rollback {
        stage.rollback = true;
        for (host, versions) in before.iter().rev() {
            steps.push(stage.restart(host, versions));
        }
        if upgrade.governed {
            steps.push(stage.upgrade_apiservers(upgrade.apiservers));
        }
    }
    Ok(steps)
}

struct UpgradeState {
    candidates: Vec<Candidate>,
    leader: Option<String>,
    apiservers: Option<Minor>,
    rollback: bool,
    now: ServerTime,
    restarts: i64,
}

impl UpgradeState {
    fn step(&self, change: UpgradeAction, moves: Vec<Move>) -> UpgradeStep {
        let version = |name: &str| self.candidates.iter().find(|it| it.name() == name).and_then(Minor::of);
        let broken = |apiservers: Minor| {
            let instances = self.candidates.iter().filter_map(|it| Some((it, Minor::of(it)?)));
            let broken = instances.filter_map(|(it, version)| {
                let skew = skew::skew(version, apiservers)?;
                Some(Breach { host: it.host().to_owned(), version, skew })
            });
            broken.collect()
        };
        UpgradeStep {
            rollback: self.rollback,
            change,
            moves,
            leader: self.leader.as_deref().map(|name| (host(name).to_owned(), version(name))),
            skew: self.apiservers.map(broken),
        }
    }

    fn upgrade_apiservers(&mut self, to: Option<Minor>) -> UpgradeStep {
        self.apiservers = to;
        self.step(UpgradeAction::Apiservers(to), Vec::new())
    }

    fn restart(&mut self, host: &str, to: &Versions) -> UpgradeStep {
        let (old, others): (Vec<_>, Vec<_>) = self.candidates.drain(..).partition(|it| it.host() == host);
        self.candidates = others;
        let mut moves = Vec::new();
        let led = old.iter().any(|it| self.leader.as_deref() == Some(it.name()));
        if led {
            self.leader = None;
            if !self.candidates.is_empty() {
                self.settle(Because::Restart);
                moves.push(Move {
                    from: Some(host.to_owned()),
                    to: self.leader_host(),
                    because: Because::Restart,
                });
            }
        }
        self.restarts += 1;
        let before = old.first().map(Versions::of);
        let mut spec = old.first().map(|it| it.spec.clone()).unwrap_or_default();
        spec.binary_version.clone_from(&to.binary_version);
        spec.emulation_version.clone_from(&to.emulation_version);
        spec.priority = None;
        spec.ping_time = None;
        spec.renew_time = Some(self.now.0);
        let created = self.now.0.saturating_add(SignedDuration::from_mins(self.restarts)).ok();
        self.candidates.push(Candidate {
            metadata: Metadata {
                name: format!("{host}_{}", self.restarts),
                creation_timestamp: created,
                ..Metadata::default()
            },
            spec,
        });
        let because = if self.leader.is_some() { Because::BetterCandidate } else { Because::Restart };
        if let Some(mut moved) = self.settle(because) {
            // Where there is no other instance, it leads again itself.
            moved.from = moved.from.or(Some(host.to_owned()).filter(|_| led && moves.is_empty()));
            moves.push(moved);
        }
        let from = before.unwrap_or_else(|| to.clone());
        self.step(UpgradeAction::Instance { host: host.to_owned(), from, to: to.clone() }, moves)
    }

    fn leader_host(&self) -> Option<String> {
        self.leader.as_deref().map(|name| host(name).to_owned())
    }

    /// Lets the controller elect, if it would.
    fn settle(&mut self, because: Because) -> Option<Move> {
        let lease = self.leader.clone().map(|leader| Lease {
            spec: LeaseSpec {
                holder_identity: Some(leader),
                lease_duration_seconds: Some(15),
                renew_time: Some(MicroTime(self.now.0)),
                strategy: Some(OLDEST.to_owned()),
                ..LeaseSpec::default()
            },
            ..Lease::default()
        });
        let candidates: Vec<_> = self.candidates.iter().collect();
        let outlook = Outlook::new(&candidates, lease.as_ref(), self.now);
        if self.leader.is_some() && !outlook.is_moving() {
            return None;
        }
        let next = outlook.next().map(|next| next.name().to_owned());
        let moved =
            Move { from: self.leader_host(), to: next.as_deref().map(|name| host(name).to_owned()), because };
        self.leader = next;
        (moved.from != moved.to).then_some(moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    fn now() -> ServerTime {
        ServerTime(Timestamp::UNIX_EPOCH + SignedDuration::from_hours(500_000))
    }

    fn candidate(host: &str, version: &str, age: i64) -> Candidate {
        let mut candidate = Candidate::default();
        candidate.metadata.name = format!("{host}_{age}");
        candidate.metadata.creation_timestamp = Some(now().0 - SignedDuration::from_mins(age));
        candidate.spec.lease_name = "kube-scheduler".into();
        candidate.spec.strategy = OLDEST.into();
        candidate.spec.renew_time = Some(now().0);
        candidate.spec.binary_version = version.into();
        candidate.spec.emulation_version = Versions::of_release(version).unwrap().emulation_version;
        candidate
    }

    fn upgrade(to: &Versions) -> Upgrade<'_> {
        Upgrade { to, rollback: false, governed: true, apiservers: Minor::parse("1.37") }
    }

    fn held(holder: &str) -> Lease {
        Lease {
            spec: LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                lease_duration_seconds: Some(15),
                renew_time: Some(MicroTime(now().0)),
                ..LeaseSpec::default()
            },
            ..Lease::default()
        }
    }

    /// Each step as `what: leader; moves; instances that break the policy`.
    fn played(candidates: &[Candidate], leader: &str, to: &str, rollback: bool) -> Vec<String> {
        let candidates: Vec<_> = candidates.iter().collect();
        let lease = (!leader.is_empty()).then(|| held(leader));
        let to = Versions::of_release(to).unwrap();
        let upgrade = Upgrade { rollback, ..upgrade(&to) };
        let steps = rehearse(&candidates, lease.as_ref(), now(), &upgrade).unwrap();
        let name = |host: &Option<String>| host.clone().unwrap_or("?".into());
        let words = |step: &UpgradeStep| {
            let what = match &step.change {
                UpgradeAction::None => "now".to_owned(),
                UpgradeAction::Apiservers(to) => format!("apiservers {}", to.unwrap().text()),
                UpgradeAction::Instance { host, from, to } => {
                    format!("{host} {}-{}", from.binary_version, to.binary_version)
                }
            };
            let moves: Vec<_> = step
                .moves
                .iter()
                .map(|it| format!(" {}>{} {:?}", name(&it.from), name(&it.to), it.because))
                .collect();
            let broken: Vec<_> =
                step.skew.iter().flatten().map(|it| format!(" {} {:?}", it.host, it.skew)).collect();
            let leader = step.leader.as_ref().map_or("?".to_owned(), |(host, version)| {
                format!("{host} {}", version.map_or("?".to_owned(), Minor::text))
            });
            let back = if step.rollback { "back " } else { "" };
            format!("{back}{what}: {leader};{};{}", moves.concat(), broken.concat())
        };
        steps.iter().map(words).collect()
    }

    #[test]
    fn the_lead_moves_from_old_to_old_and_then_to_the_first_of_the_new() {
        let three = [
            candidate("cp-1", "1.37.1", 30),
            candidate("cp-2", "1.37.1", 20),
            candidate("cp-3", "1.37.1", 10),
        ];
        assert_eq!(
            played(&three, "cp-1_30", "1.38", true),
            [
                "now: cp-1 1.37;;",
                "apiservers 1.38: cp-1 1.37;;",
                "cp-1 1.37.1-1.38.0: cp-2 1.37; cp-1>cp-2 Restart;",
                "cp-2 1.37.1-1.38.0: cp-3 1.37; cp-2>cp-3 Restart;",
                "cp-3 1.37.1-1.38.0: cp-1 1.38; cp-3>cp-1 Restart;",
                // The first that is old again is the best.
                "back cp-3 1.38.0-1.37.1: cp-3 1.37; cp-1>cp-3 BetterCandidate;",
                "back cp-2 1.38.0-1.37.1: cp-3 1.37;;",
                "back cp-1 1.38.0-1.37.1: cp-3 1.37;;",
                "back apiservers 1.37: cp-3 1.37;;",
            ]
        );
        // A leader that is upgraded last moves once.
        assert_eq!(
            played(&three[1..], "", "1.38.2", false),
            [
                "now: cp-2 1.37;;",
                "apiservers 1.38: cp-2 1.37;;",
                "cp-2 1.37.1-1.38.2: cp-3 1.37; cp-2>cp-3 Restart;",
                "cp-3 1.37.1-1.38.2: cp-2 1.38; cp-3>cp-2 Restart;",
            ]
        );
    }

    #[test]
    fn two_minors_at_once_break_the_policy_until_the_last_host() {
        let two = [candidate("cp-1", "1.37.1", 30), candidate("cp-2", "1.37.1", 20)];
        assert_eq!(
            played(&two, "cp-1_30", "1.39", false),
            [
                "now: cp-1 1.37;;",
                "apiservers 1.39: cp-1 1.37;; cp-1 TooOld cp-2 TooOld",
                "cp-1 1.37.1-1.39.0: cp-2 1.37; cp-1>cp-2 Restart; cp-2 TooOld",
                "cp-2 1.37.1-1.39.0: cp-1 1.39; cp-2>cp-1 Restart;",
            ]
        );
    }

    #[test]
    fn the_policy_says_nothing_of_a_component_with_versions_of_its_own() {
        let (operator, to) = (candidate("op-1", "2.0.0", 30), Versions::of_release("3.0").unwrap());
        let upgrade = Upgrade { rollback: true, governed: false, ..upgrade(&to) };
        let steps = rehearse(&[&operator], None, now(), &upgrade).unwrap();
        let versions: Vec<_> = steps
            .iter()
            .map(|step| (step.leader.as_ref().unwrap().1.unwrap().text(), step.skew.clone()))
            .collect();
        assert_eq!(versions, [("2.0".into(), None), ("3.0".into(), None), ("2.0".to_owned(), None)]);
    }

    #[test]
    fn a_single_instance_leads_again_and_a_priority_is_lost_with_the_restart() {
        assert_eq!(
            played(&[candidate("cp-1", "1.37.1", 30)], "cp-1_30", "1.38", false)[2],
            "cp-1 1.37.1-1.38.0: cp-1 1.38; cp-1>cp-1 Restart;"
        );
        let mut preferred = candidate("cp-2", "1.37.1", 20);
        preferred.spec.emulation_version = super::super::priority::pin(7, "1.37.0").unwrap();
        let two = [candidate("cp-1", "1.37.1", 30), preferred];
        assert_eq!(
            played(&two, "cp-2_20", "1.38", true)[2..],
            [
                "cp-1 1.37.1-1.38.0: cp-2 1.37;;",
                "cp-2 1.37.1-1.38.0: cp-1 1.38; cp-2>cp-1 Restart;",
                "back cp-2 1.38.0-1.37.1: cp-2 1.37; cp-1>cp-2 BetterCandidate;",
                "back cp-1 1.38.0-1.37.1: cp-2 1.37;;",
                "back apiservers 1.37: cp-2 1.37;;",
            ]
        );
    }

    #[test]
    fn candidates_that_are_equal_leave_it_open_who_leads() {
        let tied = [
            candidate("cp-1", "1.37.1", 5),
            candidate("cp-2", "1.37.1", 20),
            candidate("cp-3", "1.37.1", 20),
        ];
        let steps = played(&tied, "cp-1_5", "1.38", false);
        assert_eq!(
            steps[..4],
            [
                "now: ?;;",
                "apiservers 1.38: ?;;",
                "cp-1 1.37.1-1.38.0: ?;;",
                "cp-2 1.37.1-1.38.0: cp-3 1.37; ?>cp-3 Restart;",
            ]
        );
        let mut foreign = candidate("cp-1", "1.37.1", 5);
        foreign.spec.strategy = "example.com/mine".into();
        let to = Versions::of_release("1.38").unwrap();
        let refused = rehearse(&[&foreign], None, now(), &upgrade(&to));
        assert_eq!(refused, Err(Strategy::Foreign("example.com/mine".into())));
        assert_eq!(rehearse(&[], None, now(), &upgrade(&to)), Err(Strategy::None));
    }

    #[test]
    fn a_release_is_read_with_or_without_its_patch_version() {
        for (text, binary, emulation) in [
            ("1.38", "1.38.0", "1.38.0"),
            ("v1.38.2", "1.38.2", "1.38.0"),
            ("1.38.0-rc.1", "1.38.0-rc.1", "1.38.0"),
        ] {
            let versions = Versions::of_release(text).unwrap();
            assert_eq!(
                (versions.binary_version.as_str(), versions.emulation_version.as_str()),
                (binary, emulation)
            );
        }
        assert_eq!(Versions::of_release("latest"), None);
    }
}
