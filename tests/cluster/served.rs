//! What servers serve, asked through the library.

use kubectl_lease::{
    cli::Connection,
    cluster::{Cluster, config},
};

use crate::{
    harness::{ControlPlane, Shape, User},
    plugin::Plugin,
    shared,
};

fn served_candidates(plane: &ControlPlane) -> Option<&'static str> {
    let flags = Connection { kubeconfig: Some(plane.kubeconfig(User::Admin, 0)), ..Connection::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let cluster = Cluster::new(config::load(&flags).unwrap(), None).await.unwrap();
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
    Plugin::new(plane.kubeconfig(User::Admin, 0))
        .run(&["apiservers"])
        .expect(3)
        .says("error: this cluster has no kube-apiserver identities")
        .says("hint: its kube-apiservers publish them unless started with --feature-gates=APIServerIdentity=false");
}
