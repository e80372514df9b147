//! The version skew policy between a component of the control plane and the kube-apiservers
//! (<https://kubernetes.io/releases/version-skew-policy>): kube-controller-manager, kube-scheduler and
//! cloud-controller-manager must not be newer than any kube-apiserver that they talk to, and may be one
//! minor version older. Which one they talk to is not known: it may be any of them.
//!
//! Versions are emulation versions where there are any: a component that emulates an earlier version
//! works with others as that version does. That the controller elects the oldest emulation version keeps
//! the policy in an upgrade (a goal of KEP-4355); a priority goes before that.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};

use super::{candidate::Candidate, priority, version::Version};

/// The components that the policy speaks of, and where their leases are.
const COMPONENTS: [&str; 3] = ["kube-controller-manager", "kube-scheduler", "cloud-controller-manager"];
const NAMESPACE: &str = "kube-system";

/// Whether the policy speaks of the component that this lease elects. Versions of others are their own.
pub fn governs(namespace: &str, lease: &str) -> bool {
    namespace == NAMESPACE && COMPONENTS.contains(&lease)
}

/// A version as the policy compares them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Minor {
    major: u64,
    minor: u64,
}

impl Minor {
    /// Of a version such as `v1.37.1`; distributions may write `37+` for the minor version.
    pub fn parse(version: &str) -> Option<Self> {
        if let Some(version) = Version::parse(version) {
            let (major, minor, _, _) = version.parts();
            return Some(Self { major, minor });
        }
        let (major, minor) = version.trim().trim_start_matches('v').split_once('.')?;
        Some(Self { major: major.parse().ok()?, minor: minor.trim_end_matches('+').parse().ok()? })
    }

    /// As Kubernetes writes it, such as `1.37`.
    pub fn text(self) -> String {
        format!("{}.{}", self.major, self.minor)
    }

    /// What a candidate works as: its true emulation version, else its binary's.
    pub fn of(candidate: &Candidate) -> Option<Self> {
        let emulation = priority::true_emulation_version(candidate);
        Self::parse(&emulation).or_else(|| Self::parse(&candidate.spec.binary_version))
    }
}

impl Serialize for Minor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text().serialize(serializer)
    }
}

/// How a component breaks the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VersionSkew {
    /// It is newer than a kube-apiserver.
    Newer,
    /// It is more than one minor version older.
    TooOld,
}

/// How a component of one version with a kube-apiserver of another breaks the policy, if it does.
pub fn skew(component: Minor, apiserver: Minor) -> Option<VersionSkew> {
    if component > apiserver {
        return Some(VersionSkew::Newer);
    }
    let near = component.major == apiserver.major && apiserver.minor - component.minor <= 1;
    (!near).then_some(VersionSkew::TooOld)
}

/// A kube-apiserver that is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apiserver {
    /// Its host.
    pub host: String,
    /// `None` where it could not be asked.
    pub version: Option<Minor>,
}

/// Two that the policy does not allow together: one of them is at hand, this is the other one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Breach {
    /// The host of the other one.
    pub host: String,
    /// The version of the other one.
    pub version: Minor,
    /// What is wrong with the component.
    #[serde(rename = "problem")]
    pub skew: VersionSkew,
}

/// What the policy says of a component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The kube-apiservers that it must not be elected with.
    pub broken: Vec<Breach>,
    /// Those whose version is not known although there is more than one in the cluster.
    pub unknown: Vec<String>,
}

/// Judges a component by the versions of all kube-apiservers. `others` are the other candidates: where
/// they differ an upgrade is under way, and so may a kube-apiserver that was not asked.
pub fn judge(component: Minor, others: &[Minor], apiservers: &[Apiserver]) -> Verdict {
    let known = || apiservers.iter().filter_map(|it| Some((it.host.clone(), it.version?)));
    let broken =
        known().filter_map(|(host, version)| Some(Breach { host, version, skew: skew(component, version)? }));
    let versions: BTreeSet<Minor> =
        known().map(|(_, version)| version).chain(others.iter().copied()).chain([component]).collect();
    let unknown = apiservers.iter().filter(|it| it.version.is_none() && versions.len() > 1);
    Verdict { broken: broken.collect(), unknown: unknown.map(|it| it.host.clone()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minor(version: &str) -> Minor {
        Minor::parse(version).unwrap()
    }

    #[test]
    fn versions_are_read_as_servers_and_components_write_them() {
        for (text, read) in [
            ("v1.37.1", Some((1, 37))),
            ("1.37.0", Some((1, 37))),
            ("1.37", Some((1, 37))),
            ("1.37+", Some((1, 37))),
            ("v1.37.1-eks-a5ec690", Some((1, 37))),
            ("v1.38.0-alpha.1+abc", Some((1, 38))),
            ("1", Some((1, 0))),
            ("", None),
            ("latest", None),
            ("1.x", None),
        ] {
            assert_eq!(Minor::parse(text), read.map(|(major, minor)| Minor { major, minor }), "'{text}'");
        }
        assert_eq!(minor("v1.37.1").text(), "1.37");
    }

    #[test]
    fn a_component_may_be_as_new_as_the_apiserver_or_one_minor_older() {
        for (component, apiserver, broken) in [
            ("1.37.1", "1.37.0", None),
            ("1.36.9", "1.37.0", None),
            ("1.37.0", "1.36.9", Some(VersionSkew::Newer)),
            ("1.35.0", "1.37.0", Some(VersionSkew::TooOld)),
            ("1.9.0", "1.10.0", None),
            ("2.0.0", "1.37.0", Some(VersionSkew::Newer)),
            ("1.37.0", "2.37.0", Some(VersionSkew::TooOld)),
        ] {
            assert_eq!(skew(minor(component), minor(apiserver)), broken, "{component} with {apiserver}");
        }
    }

    #[test]
    fn every_apiserver_counts_and_one_that_could_not_be_asked_where_versions_differ() {
        let at = |host: &str, version: Option<&str>| Apiserver {
            host: host.to_owned(),
            version: version.map(minor),
        };
        let (a37, a38) = (at("a", Some("1.37")), at("a", Some("1.38")));
        let (b37, b38, b) = (at("b", Some("1.37")), at("b", Some("1.38")), at("b", None));
        for (component, others, apiservers, broken, unknown) in [
            ("1.37", &[][..], vec![&a37, &b37], &[][..], &[][..]),
            ("1.37", &["1.37"], vec![&a37, &b], &[], &[]),
            ("1.37", &["1.38"], vec![&a38, &b38], &[], &[]),
            ("1.37", &[], vec![&a37, &b38], &[], &[]),
            ("1.38", &["1.37"], vec![&a38, &b38], &[], &[]),
            ("1.38", &["1.37"], vec![&a38, &b37], &["b"], &[]),
            ("1.38", &["1.38"], vec![&a38, &b], &[], &[]),
            // Which one was upgraded, and which was not?
            ("1.38", &["1.37"], vec![&a38, &b], &[], &["b"]),
            ("1.38", &[], vec![&a37, &b], &["a"], &["b"]),
            ("1.37", &[], vec![&a38, &b], &[], &["b"]),
            ("1.36", &[], vec![&a37, &b38], &["b"], &[]),
            ("1.38", &[], vec![&b], &[], &[]),
            ("1.38", &["1.37"], vec![], &[], &[]),
        ] {
            let others: Vec<_> = others.iter().map(|version| minor(version)).collect();
            let all: Vec<_> = apiservers.iter().map(|it| (*it).clone()).collect();
            let verdict = judge(minor(component), &others, &all);
            let hosts: Vec<_> = verdict.broken.iter().map(|breach| breach.host.as_str()).collect();
            assert_eq!(
                (hosts.as_slice(), verdict.unknown.as_slice()),
                (broken, &unknown.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()[..]),
                "{component} {others:?} {all:?}"
            );
        }
    }

    #[test]
    fn a_pin_is_not_a_version() {
        let mut candidate = Candidate::default();
        candidate.spec.binary_version = "1.38.1".into();
        candidate.spec.emulation_version = priority::pin(100, "1.37.0").unwrap();
        assert_eq!(Minor::of(&candidate), Some(minor("1.37")));
        candidate.spec.emulation_version = "unreadable".into();
        assert_eq!(Minor::of(&candidate), Some(minor("1.38")));
        candidate.spec.binary_version = String::new();
        assert_eq!(Minor::of(&candidate), None);
    }

    #[test]
    fn the_policy_is_about_components_of_the_control_plane() {
        for (namespace, lease, is) in [
            ("kube-system", "kube-scheduler", true),
            ("kube-system", "kube-controller-manager", true),
            ("kube-system", "my-operator", false),
            ("apps", "kube-scheduler", false),
        ] {
            assert_eq!(governs(namespace, lease), is, "{namespace}/{lease}");
        }
    }
}
