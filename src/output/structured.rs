//! `-o json` and `-o yaml`: one schema, with a version of its own.
//!
//! A document holds what we derived and, whole, the API object that it was derived from. Hostile
//! characters are escaped in both formats: the data stays the same, the terminal stays unharmed.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::sanitise;

/// The version of what we print; fields are added to it, never renamed or removed.
pub const API_VERSION: &str = "kubectl-lease.dev/v1";

/// Adds `apiVersion` and `kind` to the fields of a document.
pub fn document(kind: &str, fields: Map<String, Value>) -> Value {
    let mut whole = Map::new();
    whole.insert("apiVersion".into(), API_VERSION.into());
    whole.insert("kind".into(), kind.into());
    whole.extend(fields);
    Value::Object(whole)
}

/// Indented JSON, with a final line break.
pub fn json(value: &Value) -> String {
    // JSON writes a character beyond the basic plane as two units.
    escaped_json(value, |c, text| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(text, "\\u{unit:04x}");
        }
    })
}

/// YAML, with a final line break.
pub fn yaml(value: &Value) -> String {
    // Folded and literal blocks cannot hold escapes.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    match serde_saphyr::to_string_with_options(value, options) {
        Ok(text) if first_odd(&text).is_none_or(|at| !text[at..].contains(is_hostile)) => text,
        // The YAML writer escapes control characters but not, say, a bidirectional override. JSON
        // with every hostile character escaped is YAML too.
        _ => escaped_json(value, |c, text| {
            let _ = write!(text, "\\U{:08x}", u32::from(c));
        }),
    }
}

/// Where there is something other than plain text in lines; before it all is.
fn first_odd(text: &str) -> Option<usize> {
    text.bytes().position(|byte| byte != b'\n' && !sanitise::is_plain(byte))
}

/// In a text of several lines.
fn is_hostile(c: char) -> bool {
    c != '\n' && sanitise::is_hostile(c)
}

fn escaped_json(value: &Value, escape: impl Fn(char, &mut String)) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let mut clean = String::with_capacity(text.len() + 1);
    let mut rest = text.as_str();
    // Nearly all is plain, and copied in pieces. The only line breaks left are those between the lines: JSON
    // escapes the ones in strings.
    while let Some(at) = first_odd(rest) {
        let (plain, other) = rest.split_at(at);
        clean.push_str(plain);
        let mut others = other.chars();
        match others.next() {
            Some(c) if is_hostile(c) => escape(c, &mut clean),
            c => clean.extend(c),
        }
        rest = others.as_str();
    }
    clean.push_str(rest);
    clean.push('\n');
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_document_has_its_version_and_kind() {
        let fields = json!({"state": "alive"}).as_object().cloned().unwrap();
        assert_eq!(
            json(&document("ApiServer", fields)),
            "{\n  \"apiVersion\": \"kubectl-lease.dev/v1\",\n  \"kind\": \"ApiServer\",\n  \"state\": \"alive\"\n}\n"
        );
    }

    #[test]
    fn yaml_quotes_what_would_be_read_as_something_else() {
        let value = json!({"a": "no", "b": "1_000", "c": "0x10", "d": "~", "e": ""});
        assert_eq!(yaml(&value), "a: \"no\"\nb: \"1_000\"\nc: \"0x10\"\nd: \"~\"\ne: \"\"\n");
    }

    proptest! {
        /// Whatever a cluster stores: both formats parse back to the same data, and neither brings
        /// a hostile character to the terminal.
        #[test]
        fn any_text_survives_and_harms_nothing(
            text in "\\PC{0,20}|[\\x00-\\x{9f}]{0,20}|[\\x{2000}-\\x{2070}\\x{feff}\\x{e0000}-\\x{e0080}a-z :#\\\\'\"-]{0,40}",
            long in "[a-z ]{0,200}",
        ) {
            let value = json!({ "key": text, "list": [long, { "n": 1, "nil": null }] });
            for (format, printed) in [("json", json(&value)), ("yaml", yaml(&value))] {
                prop_assert!(!printed.contains(|c| c != '\n' && sanitise::is_hostile(c)), "{format}: {printed:?}");
                let parsed: Value = match format {
                    "json" => serde_json::from_str(&printed).unwrap(),
                    _ => serde_saphyr::from_str(&printed).unwrap(),
                };
                prop_assert_eq!(&parsed, &value, "{}: {}", format, printed);
            }
        }
    }
}
