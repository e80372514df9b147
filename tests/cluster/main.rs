//! What the plugin does on a real control plane.
//!
//! One is shared by all tests; those that kill servers or need another kind start their own.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

#[path = "../harness/aggregated.rs"]
mod aggregated;
#[path = "../harness/dice.rs"]
mod dice;
#[path = "../harness/mod.rs"]
mod harness;
#[path = "../harness/plugin.rs"]
mod plugin;

mod apiservers;
mod candidates;
mod components;
mod connection;
mod contention;
mod credentials;
mod doctor;
mod edges;
mod elections;
#[cfg(target_os = "linux")]
mod etcd;
mod guard;
mod history;
mod hold;
mod interleavings;
mod kubeconfigs;
mod leaders;
mod library;
mod line_ups;
mod maint;
mod native;
mod oldest;
mod pods;
#[cfg(target_os = "linux")]
mod process;
mod refusals;
mod restarts;
mod served;
#[cfg(target_os = "linux")]
mod sharing;
#[cfg(target_os = "linux")]
mod signals;
mod watch;

use std::sync::{Mutex, MutexGuard, OnceLock};

use harness::{ControlPlane, Shape};

/// The control plane that tests share. It ends with the process, by the harness's guardian.
fn shared() -> &'static ControlPlane {
    static SHARED: OnceLock<ControlPlane> = OnceLock::new();
    SHARED.get_or_init(|| {
        let plane = ControlPlane::start(&Shape { apiservers: 3, managers: 1, ..Shape::default() });
        // Here, since tests run at the same time, and one of two that create it would fail.
        plane.kubectl(&["create", "namespace", MEDIK8S]);
        plane
    })
}

/// The namespace of medik8s' leases.
const MEDIK8S: &str = "medik8s-leases";

/// Identity leases all live in one namespace: those that a test makes carry a label of its own.
const TEST_LABEL: &str = "kubectl-lease.dev/test";
/// For tests that write identity leases by other clocks, and for those that compare the clocks of all
/// kube-apiservers: one at a time.
fn clocks() -> MutexGuard<'static, ()> {
    static CLOCKS: Mutex<()> = Mutex::new(());
    CLOCKS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Selects the leases of the real kube-apiservers.
const REAL: &str = "!kubectl-lease.dev/test";

/// An identity lease as a kube-apiserver on `host` would have renewed it `age` seconds ago.
fn identity_lease(test: &str, host: &str, holder: &str, age: i64) -> serde_json::Value {
    let renewed = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(age);
    serde_json::json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": format!("apiserver-{host}-{test}"),
            "namespace": "kube-system",
            "labels": {
                "apiserver.kubernetes.io/identity": "kube-apiserver",
                "kubernetes.io/hostname": host,
                TEST_LABEL: test,
            },
        },
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": 3600,
            "renewTime": format!("{renewed:.6}"),
        },
    })
}

#[test]
fn the_guardian_ends_what_its_owner_left_behind() {
    use std::{process::Command, time::Duration};
    let folder = std::env::temp_dir().join(format!("kubectl-lease-guardian-{}", harness::random()));
    std::fs::create_dir_all(folder.join("server")).unwrap();
    let mut left_behind = Command::new("sleep").arg("600").spawn().unwrap();
    std::fs::write(folder.join("server").join("pid"), left_behind.id().to_string()).unwrap();

    let mut guardian = harness::guard(&folder);
    assert!(left_behind.try_wait().unwrap().is_none());
    drop(guardian.stdin.take());

    plugin::wait_for(
        "the folder is gone",
        Duration::from_secs(10),
        || !folder.exists(),
        || format!("{:?}", left_behind.id()),
    );
    assert!(!left_behind.wait().unwrap().success());
    guardian.wait().unwrap();
}
