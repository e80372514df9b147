//! Which commit this is, and which releases of Kubernetes it is tested on, for `--version`.

use std::process::Command;

/// A folder for each release that the tests run on. The published package has it too.
const RELEASES: &str = "tests/control-plane";

fn tested() -> String {
    let folders = std::fs::read_dir(RELEASES).into_iter().flatten().flatten();
    let names = folders.map(|folder| folder.file_name().to_string_lossy().into_owned());
    let mut releases: Vec<_> = names.filter_map(|name| Some(name.strip_prefix('v')?.to_owned())).collect();
    let numbers = |release: &String| -> Vec<u32> { release.split('.').flat_map(str::parse).collect() };
    releases.sort_by_key(numbers);
    // From an archive without the tests.
    if releases.is_empty() { "unknown releases".to_owned() } else { releases.join(" and ") }
}

fn main() {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
    };
    // From a source archive there is none, and a repository around it is another's.
    let is_top_level = git(&["rev-parse", "--show-cdup"]).is_some_and(|up| up.is_empty());
    let own = |args: &[&str]| git(args).filter(|_| is_top_level);
    let commit = own(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=KUBECTL_LEASE_COMMIT={commit}");
    println!("cargo:rustc-env=KUBECTL_LEASE_TESTED={}", tested());
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={RELEASES}");
    for path in ["HEAD", "logs/HEAD"] {
        if let Some(path) = own(&["rev-parse", "--git-path", path]) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
}
