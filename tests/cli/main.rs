//! What needs no cluster: help, usage errors, and what no real server does on demand.

#![allow(clippy::unwrap_used)]

#[path = "../harness/plugin.rs"]
mod plugin;
mod stub;

mod completion;
mod configuration;
mod faults;
mod generated;
mod man;
mod risks;

/// The help and the usage errors, each as a transcript. `TRYCMD=overwrite` writes them anew.
#[test]
fn help_and_usage_are_as_written_down() {
    trycmd::TestCases::new().case("tests/cli/*.trycmd");
}
