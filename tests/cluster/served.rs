//! What servers serve, asked through the library.

use std::time::Duration;

use kube_leases::client::Cluster;
use kubectl_lease::{cli::Connection, connection};

use crate::{
    harness::{ControlPlane, Shape, User},
    plugin::{Plugin, wait_for},
    shared,
};

fn served_candidates(plane: &ControlPlane) -> Option<&'static str> {
    let flags = Connection { kubeconfig: Some(plane.kubeconfig(User::Admin, 0)), ..Connection::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let cluster = Cluster::new(connection::load(&flags).unwrap(), None).await.unwrap();
        cluster.lease_candidates(None).await.unwrap().map(|resource| resource.version)
    })
}

#[test]
fn the_best_served_version_of_candidates_is_found() {
    assert_eq!(served_candidates(shared()), Some("v1beta1"));
}

#[test]
fn where_features_are_off_the_plugin_says_so() {
    let plane = ControlPlane::start(&Shape {
        features: "APIServerIdentity=false,UnknownVersionInteroperabilityProxy=false",
        apis: "api/beta=false",
        ..Shape::default()
    });
    assert_eq!(served_candidates(&plane), None);
    let plugin = Plugin::new(plane.kubeconfig(User::Admin, 0));
    // Nothing to list is no error; a command that cannot do anything is one.
    let listed =
        plugin.run(&["candidates", "-o", "json"]).expect(0).says("coordinated leader election is off");
    assert!(listed.stdout.contains("\"items\": []"), "{listed:?}");
    plugin.run(&["candidates"]).expect(0).says("--feature-gates=CoordinatedLeaderElection=true");
    for args in [
        &["candidates", "-w"][..],
        &["candidates", "kube-scheduler"],
        &["candidates", "explain", "kube-scheduler"],
        &["candidates", "set-priority", "x", "1", "--yes"],
        &["candidates", "clear-priority", "--all", "--yes"],
    ] {
        plugin
            .run(args)
            .expect(1)
            .says("does not serve leasecandidates")
            .says("'kubectl lease leaders' shows who leads");
    }
    plugin.run(&["leaders"]).expect(0);
    let doctor = plugin.run(&["doctor"]).expect(0).says("--feature-gates=CoordinatedLeaderElection=true");
    for line in [
        "coordinated election        warn    is off",
        "apiservers                  warn    no identity leases",
    ] {
        assert!(doctor.stdout.contains(line), "{}", doctor.stdout);
    }
    assert!(!doctor.stdout.contains("apiserver clocks"), "there are none to compare: {}", doctor.stdout);

    // The guard does no harm where there are no candidates to refuse.
    plane.kubectl(&["apply", "-f", concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guard.yaml")]);
    plane.kubectl(&["create", "-f", &crate::doctor::manifest(&plane, "node-1")]);
    let reader = Plugin::new(plane.kubeconfig(User::Reader, 0));
    let refused = || reader.run(&["maint", "acquire", "node-1", "--admin", "--dry-run=server"]).code == 7;
    wait_for("the guard", Duration::from_secs(30), refused, String::new);
    reader.run(&["maint", "acquire", "node-1"]).expect(0);
    reader.run(&["maint", "release", "node-1"]).expect(0);
    let doctor = plugin.run(&["doctor"]).expect(0);
    assert!(doctor.stdout.contains("and is guarded: you can use --admin"), "{}", doctor.stdout);

    plugin.run(&["apiservers"]).expect(3).says("error: this cluster has no kube-apiserver identities").says(
        "hint: its kube-apiservers publish them unless started with --feature-gates=APIServerIdentity=false",
    );
}
