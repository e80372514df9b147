//! What the plugin does on real nodes: kubelets with containers that run, are cut off, crash and freeze.
//!
//! Where there can be no nodes these tests are left out: they are counted as ignored, and one line says
//! what is missing. With `CI` set, on Debian as root, they fail instead.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("The tests on real nodes are left out: containers need Linux.");
}

#[cfg(target_os = "linux")]
#[path = "../harness/dice.rs"]
mod dice;
#[cfg(target_os = "linux")]
#[path = "../harness/mod.rs"]
mod harness;
#[cfg(target_os = "linux")]
#[path = "../harness/machines.rs"]
mod machines;
#[cfg(target_os = "linux")]
#[path = "../harness/plugin.rs"]
mod plugin;

#[cfg(target_os = "linux")]
mod advice;
#[cfg(target_os = "linux")]
mod chain;
#[cfg(target_os = "linux")]
mod checker;
#[cfg(target_os = "linux")]
mod containers;
#[cfg(target_os = "linux")]
mod failures;
#[cfg(target_os = "linux")]
mod guardian;
#[cfg(target_os = "linux")]
mod partition;
#[cfg(target_os = "linux")]
mod rounds;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(target_os = "linux")]
mod stage;
#[cfg(target_os = "linux")]
mod table;
#[cfg(target_os = "linux")]
mod watch;

/// A test, by the name of its function.
#[cfg(target_os = "linux")]
type Test = (&'static str, fn());

/// The tests of a module.
#[cfg(target_os = "linux")]
macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        pub const TESTS: &[$crate::Test] = &[$((concat!(module_path!(), "::", stringify!($name)), $name)),*];
    };
}
#[cfg(target_os = "linux")]
pub(crate) use tests;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use std::time::Instant;

    use harness::nodes;
    use libtest_mimic::{Arguments, Trial};

    if let Some(end) = nodes::relay().or_else(guardian::abandon) {
        return end;
    }
    let mut arguments = Arguments::from_args();
    // Each has a pair of nodes, and mostly waits; some have a pair more.
    let threads = std::env::var("RUST_TEST_THREADS").ok().and_then(|count| count.parse().ok());
    let most = || if nodes::are_possible(2 * 6 + 3) { 6 } else { 4 };
    let threads = arguments.test_threads.or(threads).unwrap_or_else(most);
    arguments.test_threads = Some(threads);

    let missing = nodes::missing(2 * threads);
    let required = std::env::var_os("CI").is_some()
        && nodes::is_root()
        && std::path::Path::new("/etc/debian_version").exists();
    if let Some(missing) = &missing
        && !arguments.list
    {
        let fate = if required { "cannot be left out in CI" } else { "are left out" };
        eprintln!("The tests on real nodes {fate}: {missing}.");
    }
    let timed = arguments.nocapture;
    let trial = |(name, test): &Test, lacks: Option<String>| {
        let test = *test;
        let name = name.split_once("::").unwrap().1;
        Trial::test(name, move || {
            if let Some(lacks) = lacks {
                return Err(lacks.into());
            }
            let began = Instant::now();
            test();
            if timed {
                eprintln!("{name} took {:.1?}", began.elapsed());
            }
            Ok(())
        })
    };
    let left_out = missing.is_some() && !required;
    let plain = checker::TESTS.iter().chain(rounds::PLAIN).map(|test| trial(test, None));
    let modules = [
        // The longest first: nothing is worse for the whole than a long one at the end.
        rounds::TESTS,
        table::TESTS,
        chain::TESTS,
        sandbox::TESTS,
        containers::TESTS,
        advice::TESTS,
        failures::TESTS,
        watch::TESTS,
        partition::TESTS,
        guardian::TESTS,
    ];
    let on_nodes = modules.concat();
    let on_nodes = on_nodes.iter().map(|test| trial(test, missing.clone()).with_ignored_flag(left_out));
    let trials = plain.chain(on_nodes).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
