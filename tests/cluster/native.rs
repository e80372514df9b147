//! Priorities by the field that KEP-4355 proposes, on a stub behind the real aggregator: no release
//! has it yet.

use serde_json::{Value, json};

use crate::{
    aggregated::{Aggregated, Keeps},
    harness::{ControlPlane, Shape, User, components::Entrant},
    plugin::Plugin,
};

#[test]
fn a_priority_is_native_where_the_server_keeps_it_and_never_reported_as_set_where_it_does_not() {
    let plane = ControlPlane::start(&Shape {
        features: "CoordinatedLeaderElection=false",
        apis: "coordination.k8s.io/v1beta1=false",
        ..Shape::default()
    });
    let tomorrow = Aggregated::start(&plane);
    let plugin = Plugin::new(plane.kubeconfig(User::Admin, 0));
    let set = |more: &[&str]| {
        // Nobody elects here: the gate is off.
        let args = ["candidates", "set-priority", "one", "9", "-n", "default", "--yes", "--force"];
        plugin.run(&[&args, more].concat())
    };
    let entrants = || {
        tomorrow.put(&Entrant {
            emulation: "1.38.0",
            binary: "1.38.0",
            ..Entrant::new("one_1", "component")
        });
        tomorrow.put(&Entrant::new("two_2", "component"));
    };

    entrants();
    let before = tomorrow.candidate("one_1");
    set(&["--dry-run=client"]).expect(0);
    assert_eq!(tomorrow.candidate("one_1"), before);
    let done = set(&["--for", "1h", "--detach"]).expect(0);
    assert_eq!(done.stdout, "one_1 priority set to 9\n");
    let after = tomorrow.candidate("one_1");
    assert_eq!(
        (&after["spec"]["priority"], &after["spec"]["emulationVersion"]),
        (&json!(9), &json!("1.38.0"))
    );
    assert!(after["metadata"]["annotations"]["kubectl-lease.dev/priority-expires"].is_string(), "{after:#?}");
    assert_eq!(after["metadata"]["annotations"]["kubectl-lease.dev/priority"], Value::Null);
    let listed = plugin.run(&["candidates", "-o", "json"]).expect(0).stdout;
    let first = &serde_json::from_str::<Value>(&listed).unwrap()["items"][0];
    assert_eq!(
        (&first["candidate"], &first["priority"], &first["priorityBy"]),
        (&json!("one_1"), &json!(9), &json!("native"))
    );
    let words = plugin.run(&["candidates", "explain", "component"]).expect(0).stdout;
    assert!(words.contains("The priority decides"), "{words}");
    plugin.run(&["candidates", "clear-priority", "one", "--yes"]).expect(0);
    let cleared = tomorrow.candidate("one_1");
    assert_eq!(
        (&cleared["spec"]["priority"], &cleared["metadata"]["annotations"]),
        (&Value::Null, &json!({}))
    );

    // Two of them: the higher leads, and that is what is said before.
    entrants();
    plane.apply(&json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "component", "namespace": "default" },
        "spec": { "holderIdentity": "one_1", "leaseDurationSeconds": 3600,
                  "renewTime": format!("{:.6}", jiff::Timestamp::now()) },
    }));
    set(&[]).expect(0).says("one_1 keeps leading default/component.");
    for (value, says) in [("8", "one_1 keeps leading"), ("10", "moves from one_1 to two_2")] {
        let args = ["candidates", "set-priority", "two", value, "-n", "default", "--yes", "--force"];
        plugin.run(&args).expect(0).says(says);
    }

    // The field is dropped in silence: pinned instead, and said so.
    tomorrow.keep(Keeps::NotThePriority);
    entrants();
    let done = set(&[]).expect(0);
    assert_eq!(done.stdout, "one_1 priority set to 9 (pinned by its emulation version)\n");
    let pinned = tomorrow.candidate("one_1");
    assert_eq!(pinned["spec"]["emulationVersion"], "0.0.2147483639-1.38.0.1");

    // That server learns to keep it: one way replaces the other.
    tomorrow.keep(Keeps::Priority);
    assert_eq!(set(&[]).expect(0).stdout, "one_1 priority set to 9\n");
    let native = tomorrow.candidate("one_1");
    assert_eq!(
        (&native["spec"]["priority"], &native["spec"]["emulationVersion"]),
        (&json!(9), &json!("1.38.0"))
    );

    tomorrow.keep(Keeps::Nothing);
    entrants();
    let failed = set(&[]).expect(1).says("it took the write of one_1, and dropped what was written");
    assert_eq!(failed.stdout, "");
}
