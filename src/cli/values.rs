//! Parsers of values, each with what is wrong in words that fit behind the flag's name.

use std::{path::PathBuf, time::Duration};

use clap::builder::{OsStringValueParser, TypedValueParser};

use kube_leases::rules::{
    deadline::SHORTEST,
    lease::{is_object_name, is_path_segment},
    rehearsal::Versions,
};

/// The units a person can mean for a lease or a timeout. `humantime` knows more, among them `M` for months: in
/// `--duration 30M` that is a typing error, not two and a half years.
const UNITS: [&str; 5] = ["ms", "s", "m", "h", "d"];

/// Reads `30s`, `1h30m`, `1.5s`, or a bare number of seconds, as kubectl's flags do.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    const REFUSED: &str = "must be a duration such as 500ms, 90s or 1h30m";
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| REFUSED.to_owned());
    }
    let units =
        text.split(|c: char| c.is_ascii_digit() || c == '.' || c == ' ').filter(|unit| !unit.is_empty());
    for unit in units {
        if text.starts_with(|c: char| c.is_ascii_digit()) && !UNITS.contains(&unit) {
            return Err(format!("unknown unit '{unit}', use ms, s, m, h or d as in 90s or 1h30m"));
        }
    }
    humantime::parse_duration(text).map_err(|_| REFUSED.to_owned())
}

/// A duration that a lease can have: whole seconds, at least one.
pub(super) fn lease_duration(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if duration < Duration::from_secs(1) || i32::try_from(duration.as_secs()).is_err() {
        return Err("must be between 1s and 68 years".into());
    }
    if duration.subsec_nanos() != 0 {
        return Err("must be a whole number of seconds".into());
    }
    Ok(duration)
}

/// A duration that leaves time to renew.
pub(super) fn kept_duration(text: &str) -> Result<Duration, String> {
    let duration = lease_duration(text)?;
    if duration < SHORTEST {
        return Err(format!("must be at least {}s, to leave time to renew", SHORTEST.as_secs()));
    }
    Ok(duration)
}

/// A reason is one line that others read.
pub(super) fn reason(text: &str) -> Result<String, String> {
    if text.chars().any(char::is_control) {
        return Err("must not contain control characters or line breaks".into());
    }
    if text.trim().is_empty() {
        return Err("must not be empty".into());
    }
    Ok(text.to_owned())
}

/// A name that the API could give an object: it becomes part of a URL.
pub(super) fn object_name(name: &str) -> Result<String, String> {
    if name.len() > 253 {
        return Err(format!("must have no more than 253 characters, and has {}", name.len()));
    }
    if !is_object_name(name) {
        return Err("must be a lowercase RFC 1123 subdomain: lower case letters, digits, '-' and '.', \
             beginning and ending with a letter or digit"
            .into());
    }
    Ok(name.to_owned())
}

/// The name of a node, also as `kubectl get nodes -o name` prints it.
pub(super) fn node_name(name: &str) -> Result<String, String> {
    object_name(without_kind(name, &["node", "nodes", "no"]))
}

/// The name of a lease, also as `kubectl get leases -o name` prints it.
pub(super) fn lease_name(name: &str) -> Result<String, String> {
    const KINDS: [&str; 4] = ["lease", "leases", "lease.coordination.k8s.io", "leases.coordination.k8s.io"];
    object_name(without_kind(name, &KINDS))
}

fn without_kind<'a>(name: &'a str, kinds: &[&str]) -> &'a str {
    name.split_once('/').filter(|(kind, _)| kinds.contains(kind)).map_or(name, |(_, name)| name)
}

/// A name that a candidate could have, which are those of keys in a `ConfigMap`: it becomes part of a
/// URL.
pub(super) fn candidate_name(name: &str) -> Result<String, String> {
    if !is_path_segment(name) {
        return Err("must consist of letters, digits, '-', '_' and '.'".into());
    }
    Ok(name.to_owned())
}

/// A priority that a candidate can have.
pub(super) fn priority(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("must be between 1 and {}", i32::MAX))
}

/// A release of Kubernetes.
pub(super) fn release(version: &str) -> Result<Versions, String> {
    Versions::of_release(version).ok_or_else(|| "must be a version such as 1.38 or 1.38.2".into())
}

/// A label selector that selects: an empty one selects all objects, and is most often a variable that was
/// not set.
pub(super) fn labels(selector: &str) -> Result<String, String> {
    if selector.trim().is_empty() {
        return Err("must not be empty: an empty selector selects all objects".into());
    }
    Ok(selector.to_owned())
}

/// A path that may be empty: kubectl takes that for not given, clap alone would refuse it.
pub(super) fn file() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_kubectl_reads() {
        for (text, milliseconds) in [
            ("30s", 30_000),
            ("1h30m", 5_400_000),
            ("1h 30m", 5_400_000),
            ("500ms", 500),
            ("2d", 172_800_000),
            ("90", 90_000),
            ("1.5", 1_500),
            ("0", 0),
            (" 5m ", 300_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn refuses_what_cannot_be_meant() {
        for text in ["", "-5s", "-5", "30M", "1y", "3w", "soon", "NaN", "inf", "s", "5 s s", "1e300", "٣s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_duration_of_a_lease_is_a_number_of_seconds_that_the_api_takes() {
        for (text, seconds) in [("1s", Ok(1)), ("30m", Ok(1800)), ("68", Ok(68))] {
            assert_eq!(lease_duration(text).map(|duration| duration.as_secs()), seconds, "{text}");
        }
        for (text, refusal) in [
            ("0", "must be between 1s and 68 years"),
            ("999ms", "must be between 1s and 68 years"),
            ("2147483648s", "must be between 1s and 68 years"),
            ("1.5s", "must be a whole number of seconds"),
        ] {
            assert_eq!(lease_duration(text), Err(refusal.to_owned()), "{text}");
        }
        assert_eq!(kept_duration("3s"), Ok(Duration::from_secs(3)));
        assert_eq!(kept_duration("2s"), Err("must be at least 3s, to leave time to renew".to_owned()));
    }

    #[test]
    fn names_become_part_of_a_url_only_if_the_api_could_give_them() {
        for (name, is_object, is_candidate) in [
            ("node-1", true, true),
            ("node/node-1", false, false),
            ("a.b", true, true),
            ("Node", false, true),
            ("cp-1_58b1", false, true),
            ("", false, false),
            (".", false, false),
            ("..", false, false),
            ("../pods", false, false),
            ("a/b", false, false),
            ("a?b", false, false),
        ] {
            assert_eq!(object_name(name).is_ok(), is_object, "{name}");
            assert_eq!(candidate_name(name).is_ok(), is_candidate, "{name}");
        }
    }

    #[test]
    fn names_are_read_as_they_are_printed() {
        for (word, node, lease) in [
            ("a", Some("a"), Some("a")),
            ("node/a", Some("a"), None),
            ("no/a", Some("a"), None),
            ("lease/a", None, Some("a")),
            ("lease.coordination.k8s.io/a", None, Some("a")),
            ("pod/a", None, None),
            ("node/lease/a", None, None),
        ] {
            assert_eq!(node_name(word).ok().as_deref(), node, "{word}");
            assert_eq!(lease_name(word).ok().as_deref(), lease, "{word}");
        }
        let long = "a".repeat(254);
        assert!(object_name(&long).unwrap_err().contains("253 characters, and has 254"));
    }

    #[test]
    fn a_priority_is_a_positive_int32() {
        for (text, read) in [("1", Some(1)), ("2147483647", Some(i32::MAX))] {
            assert_eq!(priority(text).ok(), read);
        }
        for text in ["0", "-5", "2147483648", "high", ""] {
            assert_eq!(priority(text), Err("must be between 1 and 2147483647".to_owned()), "{text}");
        }
    }

    #[test]
    fn reasons_and_selectors() {
        assert!(reason("new disk").is_ok() && reason("a\nb").is_err() && reason("\u{1b}[2J").is_err());
        assert!(reason("").is_err() && reason(" ").is_err());
        assert!(labels("app=db").is_ok() && labels("").is_err() && labels("  ").is_err());
        assert!(release("1.38").is_ok() && release("1.38.2").is_ok() && release("new").is_err());
    }
}
