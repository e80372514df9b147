//! The codes of `-o json`, of which docs/json.md has the list: it and the enums are compared.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/");

/// Where a code is found in the output, the enum that it is of, and what of that is no code of its own there.
const CODES: [(&str, &str, &str, &[&str]); 16] = [
    ("`pods[].risk`", "kube-leases/src/rules/risk.rs", "Risk", &[]),
    ("`pods[].futile`", "kube-leases/src/rules/assessment.rs", "Futile", &[]),
    ("`pods[].reasons[]`", "kube-leases/src/rules/reasons.rs", "Reason", &[]),
    ("`pods[].safer[]`", "kube-leases/src/rules/advice/mod.rs", "Advice", &[]),
    ("`terms` of `delete`", "kube-leases/src/rules/advice/mod.rs", "DeleteTerms", &[]),
    ("`terms` of `switch-off`", "kube-leases/src/rules/advice/mod.rs", "SwitchOffTerms", &[]),
    ("`until` of `wait`", "kube-leases/src/rules/advice/mod.rs", "WaitFor", &[]),
    ("`outage`", "kube-leases/src/rules/advice/mod.rs", "Outage", &[]),
    ("`then`", "kube-leases/src/rules/advice/mod.rs", "KubeletThen", &[]),
    ("`pods[].volumes[].source`", "kube-leases/src/rules/volumes.rs", "VolumeSource", &[]),
    ("`pods[].missing[]`", "kube-leases/src/rules/assessment.rs", "NotRead", &[]),
    ("`stopped[].reason`", "kube-leases/src/rules/stopped.rs", "Precondition", &[]),
    ("`Election.wrong[]`", "kube-leases/src/rules/trouble.rs", "Trouble", &[]),
    ("`Election.candidates[].absent`", "kube-leases/src/rules/election.rs", "Absence", &[]),
    ("`Finding.check`", "src/commands/doctor/finding.rs", "Check", &["permissions-for"]),
    ("`Finding`", "src/commands/doctor/finding.rs", "Found", &["trouble"]),
];

/// At the end of the row of a place: what is no variant.
const BESIDE: [(&str, &str); 2] = [
    ("`Election.wrong[]`", ", `election-controller` (`state`, `holder`, `secondsSinceRenewal`)"),
    ("`Finding`", ", and those of `Election.wrong[]`, with `namespace` and `leaseName`"),
];

/// The variants of an enum, as serde writes them in kebab case, and behind each in brackets its fields, in camel
/// case. Of those without names nothing is said.
fn variants(text: &str, name: &str) -> BTreeMap<String, String> {
    let (_, body) = text.split_once(&format!("pub enum {name} {{\n")).unwrap();
    let mut depth = 0_i32;
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for line in body.lines().map(str::trim).filter(|line| !line.starts_with("//") && !line.starts_with('#')) {
        if depth == 0 && line == "}" {
            break;
        }
        let variant: String = line.chars().take_while(|c| c.is_alphanumeric()).collect();
        let mut fields = line;
        if depth == 0 && !variant.is_empty() {
            fields = line.split_once('{').map_or("", |(_, fields)| fields);
            found.push((kebab(&variant), Vec::new()));
        }
        if let Some((_, named)) = found.last_mut() {
            let names = fields.split(',').filter_map(|field| field.split_once(": "));
            named.extend(names.map(|(name, _)| format!("`{}`", camel(name.trim()))));
        }
        let count = |marks: [char; 2]| i32::try_from(line.matches(marks).count()).unwrap();
        depth += count(['{', '(']) - count(['}', ')']);
    }
    let shown = |code: &str, fields: Vec<String>| match fields.join(", ") {
        fields if fields.is_empty() => format!("`{code}`"),
        fields => format!("`{code}` ({fields})"),
    };
    found.into_iter().map(|(code, fields)| (code.clone(), shown(&code, fields))).collect()
}

fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |all, word| all + &word[..1].to_uppercase() + &word[1..])
}

fn kebab(variant: &str) -> String {
    let mut words = String::new();
    for c in variant.chars() {
        if c.is_uppercase() && !words.is_empty() {
            words.push('-');
        }
        words.extend(c.to_lowercase());
    }
    words
}

#[test]
fn every_code_is_in_the_page_and_no_other() {
    let page = fs::read_to_string(format!("{ROOT}docs/json.md")).unwrap();
    let (_, table) = page.split_once("\n## Codes\n").unwrap();
    for (place, file, name, others) in CODES {
        let row = table.lines().find_map(|line| line.strip_prefix(&format!("| {place} | "))).unwrap();
        let row = row.strip_suffix(" |").unwrap();
        let beside = BESIDE.iter().find(|(of, _)| *of == place).map_or("", |(_, beside)| beside);
        let listed = row.strip_suffix(beside).unwrap();
        let mut codes = variants(&fs::read_to_string(format!("{ROOT}{file}")).unwrap(), name);
        codes.retain(|code, _| !others.contains(&code.as_str()));
        let mut left: BTreeSet<_> = codes.into_values().collect();
        // Commas stand between fields too.
        let mut rest = listed;
        while !rest.is_empty() {
            let end = rest.match_indices(", ").map(|(at, _)| at).chain([rest.len()]);
            let one = end.map(|end| &rest[..end]).find(|one| left.contains(*one));
            let Some(one) = one else { panic!("{place} in docs/json.md, and {name} in {file}: {rest}") };
            left.remove(one);
            rest = rest[one.len()..].trim_start_matches(", ");
        }
        assert_eq!(left, BTreeSet::new(), "{place} in docs/json.md lacks these of {name} in {file}");
    }
}

#[test]
fn variants_are_read_as_they_are_written() {
    let text = "pub enum Of {\n    /// One.\n    One,\n    #[serde(untagged)]\n    TwoWords {\n        a_b: Vec<u8>,\n    \
                },\n    Three { b: u8 },\n    Four(u8),\n}\nFive,";
    let found: Vec<_> = variants(text, "Of").into_values().collect();
    assert_eq!(found, ["`four`", "`one`", "`three` (`b`)", "`two-words` (`aB`)"]);
}
