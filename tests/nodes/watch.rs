//! What `partitions -w` tells in a pipe, a line for each change.

use std::{thread, time::Duration};

use crate::{
    plugin::Running,
    stage::{Kind, SOON, Stage, plugin},
};

crate::tests![
    a_watch_tells_late_silent_terminating_and_alive_in_this_order,
    a_kubelet_that_is_slow_is_never_silent,
];

/// A watch of one node, of which nothing is to be told yet.
pub fn watch(node: &str) -> Running {
    let watching = plugin().start(&["partitions", node, "-w"]);
    watching.until_stderr("the beginning", SOON, |text| text.contains("nothing matches yet"));
    watching
}

fn a_watch_tells_late_silent_terminating_and_alive_in_this_order() {
    let mut stage = Stage::new();
    let [a, _] = stage.names();
    let first = stage.run(Kind::StatefulSet, "db");
    let watching = watch(&a);
    stage.a().partition();
    let terminating = format!("{}/db-0 is Terminating", stage.namespace);
    watching.until("Terminating", SOON * 2, |shown| shown.contains(&terminating));
    let told = watching.stdout();
    assert!(!told.contains("   alive   "), "{told}");
    let at = |words: &str| told.find(words).unwrap_or_else(|| panic!("'{words}' is not in\n{told}"));
    // Pods of an earlier test may still be on their way out.
    let late = at(&format!("{a}   late   "));
    let silent = at(&format!("{a}   silent   was late, "));
    for line in told.lines().filter(|line| line.contains("   late   ") || line.contains("   silent   ")) {
        assert!(line.ends_with(" stranded, risk critical at worst"), "{told}");
    }
    assert!(late < silent && silent < at(&terminating), "{told}");
    stage.a().heal();
    watching.until("alive", SOON * 2, |shown| shown.contains(&format!("{a}   alive   was ")));
    stage.await_other_writer("db", &first.uid);
    stage.assert_one_writer();
}

/// The leases of these kubelets last for half of Kubernetes' default: 10 seconds here are 20 there.
fn a_kubelet_that_is_slow_is_never_silent() {
    let mut stage = Stage::new();
    let [a, _] = stage.names();
    let first = stage.run(Kind::StatefulSet, "db");
    let watching = watch(&a);
    for _ in 0..2 {
        stage.a().partition();
        thread::sleep(Duration::from_secs(10));
        stage.a().heal();
        thread::sleep(Duration::from_secs(6));
    }
    let told = watching.stdout();
    assert!(!told.contains("silent"), "{told}");
    assert_eq!(stage.await_writer("db", &a), first);
    stage.assert_one_writer();
}
