//! A candidate's priority, and how servers without the field have it.
//!
//! KEP-4355 proposes `spec.priority`: the highest above 0 wins, ties are decided by the strategy. No
//! release has the field. What every release with coordinated election does is elect the candidate
//! with the oldest emulation version. So a priority is **pinned** there: the emulation version is
//! set to one that sorts before every real one, a higher priority before a lower, and among equals
//! in the order of the true versions, which are kept in an annotation:
//!
//! ```text
//! 0.0.<2147483648 - priority>-<major>.<minor>.<patch>.1           of a release
//! 0.0.<2147483648 - priority>-<major>.<minor>.<patch>.0.<pre…>    of a pre-release
//! ```
//!
//! Numeric identifiers compare as numbers, and 0 before 1 keeps a pre-release before its release. A pin
//! tells by itself what it stands for: the annotation is believed only where it agrees.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Serialize;

use super::{candidate::Candidate, time::ServerTime, version::Version};

/// The priority as it was asked for; what counts is the pin itself.
pub const PRIORITY: &str = "kubectl-lease.dev/priority";
/// When it should be cleared.
pub const EXPIRES: &str = "kubectl-lease.dev/priority-expires";
/// The emulation version that the component gave itself.
pub const ORIGINAL: &str = "kubectl-lease.dev/original-emulation-version";

const ABOVE_ALL: u64 = 1 << 31;

/// How a server has a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// By the field of the API.
    Native,
    /// By the emulation version.
    Pinned,
}

impl How {
    /// Which one a server has, as far as its candidates show: those of a server without the field have none.
    pub fn by_candidates(candidates: &[&Candidate]) -> Self {
        let native = candidates.iter().any(|candidate| candidate.spec.priority.is_some());
        if native { Self::Native } else { Self::Pinned }
    }
}

/// A candidate's priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// The higher, the sooner elected.
    pub value: i32,
    /// How the server has it.
    pub how: How,
    /// When it is to be cleared, where it was set for a time.
    pub expires: Option<Timestamp>,
}

impl Priority {
    /// The priority of a candidate, if it has one.
    pub fn of(candidate: &Candidate) -> Option<Self> {
        let expires = end(candidate).and_then(|time| time.parse().ok());
        let native = candidate.spec.priority.filter(|value| *value > 0).map(|value| (value, How::Native));
        let pinned = || Some((unpinned(&candidate.spec.emulation_version)?.0, How::Pinned));
        let (value, how) = native.or_else(pinned)?;
        Some(Self { value, how, expires })
    }
}

fn end(candidate: &Candidate) -> Option<&String> {
    candidate.metadata.annotations.get(EXPIRES)
}

/// Whether a candidate bears the mark of a priority that should have been cleared by now. An end that
/// cannot be read is over: nothing else would ever clear it.
pub fn is_overdue(candidate: &Candidate, now: ServerTime) -> bool {
    end(candidate).is_some_and(|time| time.parse::<Timestamp>().map_or(true, |end| end <= now.0))
}

/// Whether anything of ours is left on a candidate, in force or not.
pub fn is_marked(candidate: &Candidate) -> bool {
    let annotations = &candidate.metadata.annotations;
    candidate.spec.priority.is_some_and(|value| value != 0)
        || unpinned(&candidate.spec.emulation_version).is_some()
        || [PRIORITY, EXPIRES, ORIGINAL].iter().any(|name| annotations.contains_key(*name))
}

/// The emulation version that the component gave itself.
pub fn true_emulation_version(candidate: &Candidate) -> Cow<'_, str> {
    let version = &candidate.spec.emulation_version;
    let Some((value, text)) = unpinned(version) else { return version.into() };
    // Only the annotation knows how it was written, with build metadata for example.
    match candidate.metadata.annotations.get(ORIGINAL) {
        Some(original) if pin(value, original).as_ref() == Some(version) => original.into(),
        _ => text.into(),
    }
}

/// The emulation version that stands for a priority; `None` for a version that cannot be read.
pub fn pin(value: i32, original: &str) -> Option<String> {
    let version = Version::parse(original)?;
    let (major, minor, patch, pre) = version.parts();
    let rank = ABOVE_ALL - u64::try_from(value).ok().filter(|value| *value > 0)?;
    let end = if pre.is_empty() { "1".to_owned() } else { format!("0.{pre}") };
    Some(format!("0.0.{rank}-{major}.{minor}.{patch}.{end}"))
}

/// Why no pin makes a candidate the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpinnable {
    /// Its emulation version cannot be read.
    Unreadable,
    /// Its binary version comes before the pin, which the API refuses.
    TooOld,
    /// This other one, which has no priority, comes before the pin.
    Behind(String),
}

/// Whether a pin cannot do for a candidate what a priority would, among these. Versions from 0.0.0 to 0.0.x come
/// before every pin.
pub fn unpinnable(candidate: &Candidate, value: i32, others: &[&Candidate]) -> Option<Unpinnable> {
    let pin = pin(value, &true_emulation_version(candidate));
    let Some(pin) = pin.and_then(|pin| Version::parse(&pin)) else { return Some(Unpinnable::Unreadable) };
    if Version::parse(&candidate.spec.binary_version).is_some_and(|binary| binary < pin) {
        return Some(Unpinnable::TooOld);
    }
    let ahead = |other: &&&Candidate| {
        let version = Version::parse(&other.spec.emulation_version);
        other.name() != candidate.name()
            && unpinned(&other.spec.emulation_version).is_none()
            && version.is_some_and(|version| version < pin)
    };
    others.iter().find(ahead).map(|other| Unpinnable::Behind(other.name().to_owned()))
}

/// The priority and the version that an emulation version stands for, if it is a pin.
fn unpinned(version: &str) -> Option<(i32, String)> {
    let version = Version::parse(version)?;
    let (0, 0, rank @ 1.., pre) = version.parts() else { return None };
    let value = i32::try_from(ABOVE_ALL.checked_sub(rank)?).ok().filter(|value| *value > 0)?;
    let mut parts = pre.splitn(5, '.');
    let numbers = [parts.next()?, parts.next()?, parts.next()?];
    let original = match (parts.next()?, parts.next()) {
        ("1", None) => numbers.join("."),
        ("0", Some(pre)) => format!("{}-{pre}", numbers.join(".")),
        _ => return None,
    };
    Version::parse(&original).is_some().then_some((value, original))
}

/// A candidate as it would be with this priority, or without one: to see what would follow.
#[must_use]
pub fn imagine(candidate: &Candidate, value: Option<i32>, how: How) -> Candidate {
    let mut imagined = candidate.clone();
    let original = true_emulation_version(candidate).into_owned();
    imagined.spec.priority = None;
    imagined.metadata.annotations.retain(|name, _| ![PRIORITY, EXPIRES, ORIGINAL].contains(&name.as_str()));
    match (value, how) {
        (Some(_), How::Native) => imagined.spec.priority = value,
        (Some(value), How::Pinned) => {
            if let Some(pin) = pin(value, &original) {
                imagined.spec.emulation_version = pin;
                imagined.metadata.annotations.insert(ORIGINAL.to_owned(), original);
            }
            return imagined;
        }
        (None, _) => {}
    }
    imagined.spec.emulation_version = original;
    imagined
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn candidate(emulation: &str) -> Candidate {
        let mut candidate = Candidate::default();
        emulation.clone_into(&mut candidate.spec.emulation_version);
        candidate
    }

    #[test]
    fn a_pin_keeps_what_it_stands_for() {
        for (value, original, pin_) in [
            (100, "1.37.0", "0.0.2147483548-1.37.0.1"),
            (1, "1.37.0", "0.0.2147483647-1.37.0.1"),
            (i32::MAX, "1.37.0", "0.0.1-1.37.0.1"),
            (5, "1.38.0-alpha.2+abc", "0.0.2147483643-1.38.0.0.alpha.2"),
            (5, "v1.37", "0.0.2147483643-1.37.0.1"),
        ] {
            assert_eq!(pin(value, original).as_deref(), Some(pin_));
            let pinned = imagine(&candidate(original), Some(value), How::Pinned);
            let priority = Priority::of(&pinned).unwrap();
            assert_eq!((priority.value, priority.how, priority.expires), (value, How::Pinned, None));
            assert_eq!(true_emulation_version(&pinned), original);
            assert_eq!(imagine(&pinned, None, How::Pinned), candidate(original));
            // Another priority over a pin begins with the true version, not with the pin.
            let seven = |it: &Candidate| imagine(it, Some(7), How::Pinned);
            assert_eq!(seven(&pinned), seven(&candidate(original)));
            let native = imagine(&pinned, Some(7), How::Native);
            assert_eq!((native.spec.priority, &*native.spec.emulation_version), (Some(7), original));
            assert_eq!(imagine(&native, None, How::Native), candidate(original));
        }
        for (value, original) in [(0, "1.37.0"), (-1, "1.37.0"), (1, "one"), (1, "")] {
            assert_eq!(pin(value, original), None);
        }
    }

    #[test]
    fn a_pin_is_told_by_its_form_whatever_the_annotations_say() {
        for version in [
            "1.37.0",
            "0.0.1",
            "0.0.1-alpha",
            "0.0.5-1.2.3",
            "0.0.5-1.2.3.2",
            "0.0.5-1.2.3.0",
            "0.0.5-1.2.3.1.4",
            "0.0.5-a.2.3.1",
            "0.1.5-1.2.3.1",
            "0.0.2147483648-1.2.3.1",
            "0.0.0-1.2.3.1",
        ] {
            let mut other = candidate(version);
            assert!(!is_marked(&other), "{version}");
            other.metadata.annotations.insert(ORIGINAL.into(), "1.37.0".into());
            assert_eq!(Priority::of(&other), None, "{version}");
            assert_eq!(true_emulation_version(&other), version, "the annotation is stale");
            assert!(is_marked(&other));
        }
        for (version, original) in
            [("0.0.5-1.37.2.1", "1.37.2"), ("0.0.5-1.38.0.0.alpha.2", "1.38.0-alpha.2")]
        {
            for annotation in [None, Some("9.9.9"), Some("garbage"), Some("")] {
                let mut pinned = candidate(version);
                let annotation = annotation.map(|text| (ORIGINAL.to_owned(), text.to_owned()));
                pinned.metadata.annotations = annotation.into_iter().collect();
                assert_eq!(Priority::of(&pinned).map(|priority| priority.value), Some(i32::MAX - 4));
                assert_eq!(true_emulation_version(&pinned), original);
                assert!(is_marked(&pinned));
            }
        }
        let mut native = candidate("1.37.0");
        for (field, priority, marked) in
            [(Some(3), Some(3), true), (Some(0), None, false), (Some(-3), None, true), (None, None, false)]
        {
            native.spec.priority = field;
            assert_eq!(Priority::of(&native).map(|priority| priority.value), priority);
            assert_eq!(is_marked(&native), marked, "{field:?}");
        }
    }

    #[test]
    fn versions_below_every_pin_are_recognised() {
        let with = |name: &str, binary: &str, emulation: &str| {
            let mut it = candidate(emulation);
            name.clone_into(&mut it.metadata.name);
            binary.clone_into(&mut it.spec.binary_version);
            it
        };
        let well = with("well", "1.37.1", "1.37.0");
        let pinned = imagine(&with("pinned", "1.37.1", "1.37.0"), Some(i32::MAX), How::Pinned);
        for (one, other, wanted) in [
            (&well, &pinned, None),
            (&pinned, &well, None),
            (&with("odd", "1.37.1", "one"), &well, Some(Unpinnable::Unreadable)),
            (&with("old", "0.0.5", "0.0.5"), &well, Some(Unpinnable::TooOld)),
            (&well, &with("old", "0.0.5", "0.0.5"), Some(Unpinnable::Behind("old".into()))),
            (&well, &with("zero", "0.1.0", "0.1.0"), None),
            (&with("zero", "0.1.0", "0.1.0"), &well, None),
            (&well, &with("odd", "1.37.1", "one"), None),
        ] {
            assert_eq!(unpinnable(one, 100, &[one, other]), wanted, "{} {}", one.name(), other.name());
        }
    }

    #[test]
    fn a_priority_is_overdue_from_its_end_on() {
        let mut it = imagine(&candidate("1.37.0"), Some(1), How::Pinned);
        let at = |now: &str| ServerTime(now.parse().unwrap());
        assert!(!is_overdue(&it, at("2026-01-02T03:04:05Z")));
        it.metadata.annotations.insert(EXPIRES.into(), "2026-01-02T03:04:05Z".into());
        for (now, overdue) in [("2026-01-02T03:04:04Z", false), ("2026-01-02T03:04:05Z", true)] {
            assert_eq!(is_overdue(&it, at(now)), overdue);
        }
        it.spec.emulation_version = "1.37.0".into();
        assert!(is_overdue(&it, at("2026-01-02T03:04:05Z")), "a mark without a pin too");
        it.metadata.annotations.insert(EXPIRES.into(), "tomorrow".into());
        assert!(is_overdue(&it, at("2026-01-02T03:04:05Z")), "an end that cannot be read");
    }

    fn version() -> impl Strategy<Value = String> {
        let pre = prop_oneof![
            Just(String::new()),
            "(alpha|beta|rc)\\.[0-9]".prop_map(|pre| format!("-{pre}")),
            (0_u32..20).prop_map(|n| format!("-{n}")),
        ];
        (0_u32..3, 0_u32..40, 0_u32..3, pre).prop_map(|(a, b, c, pre)| format!("{a}.{b}.{c}{pre}"))
    }

    proptest! {
        /// Pins sort as the proposal sorts priorities: the higher first, then by the true version.
        #[test]
        fn pins_sort_as_priorities_do(
            a in 1..=i32::MAX, b in 1..=i32::MAX, same in any::<bool>(), x in version(), y in version(),
        ) {
            let b = if same { a } else { b };
            let read = |text: &str| Version::parse(text).unwrap();
            let pins = [pin(a, &x).unwrap(), pin(b, &y).unwrap()].map(|pin| read(&pin));
            let wanted = b.cmp(&a).then(read(&x).cmp(&read(&y)));
            prop_assert_eq!(pins[0].cmp(&pins[1]), wanted);
            prop_assert!(pins[0] > Version::ZERO, "the API refuses a version of zero");
            // Every version that Kubernetes was ever released with comes after.
            prop_assert!(pins[0] < read("0.1.0"));
        }
    }
}
