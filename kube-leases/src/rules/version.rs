//! Versions as the election controller reads and compares them.
//!
//! It uses Go's blang/semver, tolerant of a leading `v`, of missing parts and of leading zeros, and
//! compares by semantic-version precedence: build metadata does not count.

use std::cmp::Ordering;

/// A version that the controller can read.
#[derive(Clone, Debug)]
pub struct Version(semver::Version);

impl Version {
    /// `0.0.0`, below every other.
    pub const ZERO: Self = Self(semver::Version::new(0, 0, 0));

    /// Reads a version; `None` where the controller would find it invalid.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_leading_zeros).collect();
        // A pre-release, or build metadata, takes all three, there and here.
        parts.resize(3, "0".to_owned());
        let version = semver::Version::parse(&parts.join(".")).ok()?;
        // There a numeric identifier is a 64-bit number, here it may be any.
        let numeric = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let fits = |part: &str| part.is_empty() || !numeric(part) || part.parse::<u64>().is_ok();
        version.pre.split('.').all(fits).then_some(Self(version))
    }

    /// The three numbers, and the identifiers of a pre-release.
    pub fn parts(&self) -> (u64, u64, u64, &str) {
        (self.0.major, self.0.minor, self.0.patch, self.0.pre.as_str())
    }
}

fn without_leading_zeros(part: &str) -> String {
    let rest = part.trim_start_matches('0');
    match rest.bytes().next() {
        Some(byte) if byte.is_ascii_digit() => rest.to_owned(),
        _ if rest.len() < part.len() => format!("0{rest}"),
        _ => part.to_owned(),
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Version {}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp_precedence(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_tolerantly_as_by_the_controller() {
        for (text, read) in [
            ("1.37.1", Some((1, 37, 1, ""))),
            (" v1.37.1 ", Some((1, 37, 1, ""))),
            ("1.37", Some((1, 37, 0, ""))),
            ("1", Some((1, 0, 0, ""))),
            ("01.037.00", Some((1, 37, 0, ""))),
            ("1.37.0-alpha.1+abc", Some((1, 37, 0, "alpha.1"))),
            ("1.37-alpha", None),
            ("1-alpha", None),
            ("1.37+abc", None),
            ("1.37.0-", None),
            ("1.37.0-01", None),
            ("1.37.0-18446744073709551616", None),
            ("1.37.x", None),
            ("-1.0.0", None),
            ("", None),
            ("one", None),
        ] {
            let version = Version::parse(text);
            assert_eq!(version.as_ref().map(Version::parts), read, "'{text}'");
        }
    }

    #[test]
    fn versions_are_ordered_by_precedence() {
        let sorted = ["0.0.1-1.37.0.1", "1.9.0", "1.37.0-2", "1.37.0-10", "1.37.0-alpha", "1.37.0", "1.37.1"];
        for pair in sorted.windows(2) {
            assert!(Version::parse(pair[0]) < Version::parse(pair[1]), "{pair:?}");
        }
        assert_eq!(Version::parse("1.37.0+a"), Version::parse("1.37.0+b"));
        assert!(Version::parse("0.0.0") == Some(Version::ZERO));
    }
}
