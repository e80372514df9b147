//! What needs no cluster: help, usage errors, and what no real server does on demand.

#![allow(clippy::unwrap_used)]

#[path = "../harness/plugin.rs"]
mod plugin;
#[path = "../harness/scripted.rs"]
mod scripted;
#[path = "../harness/stub.rs"]
mod stub;

#[cfg(unix)] // a script
mod at_once;
mod codes;
mod commands;
#[cfg(unix)] // in bash
mod completion;
mod configuration;
mod faults;
mod generated;
mod layers;
mod links;
mod man;
mod risks;
mod words;

/// The help and the usage errors, each as a transcript. `TRYCMD=overwrite` writes them anew.
#[test]
fn help_and_usage_are_as_written_down() {
    trycmd::TestCases::new().case("tests/cli/*.trycmd");
}
