//! The codes of `-o json`, of which docs/json.md has the list: it and the enums are compared.

use std::{collections::BTreeSet, fs};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/");

/// Where a code is found in the output, the enum that it is of, and what of that is no code of its own there.
const CODES: [(&str, &str, &str, &[&str]); 9] = [
    ("`pods[].reasons[]`", "kube-leases/src/rules/reasons.rs", "Reason", &[]),
    ("`pods[].safer[]`", "kube-leases/src/rules/advice/mod.rs", "Advice", &[]),
    ("`pods[].volumes[].source`", "kube-leases/src/rules/volumes.rs", "VolumeSource", &[]),
    ("`pods[].missing[]`", "kube-leases/src/rules/assessment.rs", "NotRead", &[]),
    ("`stopped[].reason`", "kube-leases/src/rules/stopped.rs", "Precondition", &[]),
    ("`Election.wrong[]`", "kube-leases/src/rules/trouble.rs", "Trouble", &[]),
    ("`Election.candidates[].absent`", "kube-leases/src/rules/election.rs", "Absence", &[]),
    ("`Finding.check`", "src/commands/doctor/finding.rs", "Check", &["permissions-for"]),
    ("`Finding`", "src/commands/doctor/finding.rs", "Found", &["trouble"]),
];

/// In the page only: what is no variant.
const BESIDE: [&str; 4] = ["election-controller", "Election.wrong[]", "namespace", "leaseName"];

/// The variants of an enum, as serde writes them in kebab case.
fn variants(text: &str, name: &str) -> BTreeSet<String> {
    let (_, body) = text.split_once(&format!("pub enum {name} {{\n")).unwrap();
    let mut depth = 0_i32;
    let mut found = BTreeSet::new();
    for line in body.lines().map(str::trim).filter(|line| !line.starts_with("//") && !line.starts_with('#')) {
        if depth == 0 && line == "}" {
            break;
        }
        let variant: String = line.chars().take_while(|c| c.is_alphanumeric()).collect();
        if depth == 0 && !variant.is_empty() {
            found.insert(kebab(&variant));
        }
        let count = |marks: [char; 2]| i32::try_from(line.matches(marks).count()).unwrap();
        depth += count(['{', '(']) - count(['}', ')']);
    }
    found
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
        let mut codes = variants(&fs::read_to_string(format!("{ROOT}{file}")).unwrap(), name);
        codes.retain(|code| !others.contains(&code.as_str()));
        let listed = row.split('`').skip(1).step_by(2).map(str::to_owned);
        let listed: BTreeSet<String> =
            listed.filter(|code| codes.contains(code) || !BESIDE.contains(&code.as_str())).collect();
        assert_eq!(listed, codes, "{place} in docs/json.md, and {name} in {file}");
    }
}

#[test]
fn variants_are_read_as_they_are_written() {
    let text = "pub enum Of {\n    /// One.\n    One,\n    #[serde(untagged)]\n    TwoWords {\n        a: u8,\n    \
                },\n    Three { b: u8 },\n    Four(u8),\n}\nFive,";
    let found: Vec<_> = variants(text, "Of").into_iter().collect();
    assert_eq!(found, ["four", "one", "three", "two-words"]);
}
