//! docs/risks.md: the whole table of risks, made from the rule, and which of its cells a test has seen
//! on real nodes.

use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path};

use kube_leases::rules::{
    node::{Declared, NodeContact},
    risk::{DeletionStage, PodFacts, Risk},
    workload::Successor,
};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

const HEAD: &str = "# Risks

<!-- Made by `make generate` from the rule in kube-leases/src/rules/risk.rs: do not edit. -->

The risk that `kubectl lease force-delete` shows for a pod, by the state of its node ([pods.md](pods.md#nodes);
*alive*: it sends heartbeats), the stage of its deletion, the controller that would replace it, and the storage
that it writes to. A number is that of a test, below, in which the case was seen on real nodes; a cell without a
number follows from the rule only.

- *no controller*: it is not replaced. *rolling*: a ReplicaSet, a Deployment with rolling updates, a Job, a
  DaemonSet with a surge; *several* and *one* are the replicas. A pod of an Indexed Job is *one*, the pod of its
  index, however many indexes run at once. *alone*: a StatefulSet, a Deployment with the strategy Recreate, a
  Job with the podReplacementPolicy Failed or of a CronJob with the concurrencyPolicy Forbid, a DaemonSet
  without a surge, and a controller of an unknown kind, without permission to read it, or with an unknown owner.
- A pod that leads is high where its node is alive, and critical where that is not known. A pod over its
  disruption budget, or without which no majority of the replicas of its set is ready, is high at least, unless
  its node is silent, gone or fenced; other ready replicas do not lower the risk. What cannot be read for lack
  of permission counts as the worst that it could be.
- With a terminationGracePeriodSeconds of 0 the risk is the same, but every deletion that does not ask for
  more, also by a controller that is scaled or restarted, removes the object before the containers have
  ended. To delete a pod that must not run twice, its controller is then scaled to 0 or suspended, and brought
  back by hand once the containers have ended.
";

const STORAGES: [(&str, &str); 3] = [
    ("none", "Writes to nothing that outlives it"),
    ("shared", "Writes to storage that others may write too (ReadWriteMany, hostPath)"),
    ("exclusive", "Writes to storage that one node at a time may use (ReadWriteOnce, inline volumes)"),
];
const OWNERS: [&str; 4] = ["no controller", "rolling, several", "rolling, one", "alone"];
const NODES: [NodeContact; 7] = [
    NodeContact::Heard,
    NodeContact::NotReady,
    NodeContact::Back,
    NodeContact::Late,
    NodeContact::Silent,
    NodeContact::Gone,
    NodeContact::Fenced,
];
const DELETIONS: [(DeletionStage, &str); 3] = [
    (DeletionStage::NotBegun, "not deleted"),
    (DeletionStage::Begun, "in its grace period"),
    (DeletionStage::Stuck, "beyond its grace period"),
];

/// What tests have seen on real nodes: the node, the deletion, the owner, the storage, and the test.
const SEEN: &[(NodeContact, DeletionStage, &str, &str, &str)] = &[
    (
        NodeContact::Silent,
        DeletionStage::NotBegun,
        "alone",
        "shared",
        "a_deployment_that_recreates_is_not_forced_on_a_partitioned_node",
    ),
    (
        NodeContact::Heard,
        DeletionStage::NotBegun,
        "alone",
        "shared",
        "a_deployment_that_recreates_is_restarted_on_a_healthy_node",
    ),
    (
        NodeContact::Heard,
        DeletionStage::Begun,
        "alone",
        "shared",
        "a_stateful_pod_is_not_forced_in_its_grace_period",
    ),
    (
        NodeContact::Silent,
        DeletionStage::Begun,
        "alone",
        "shared",
        "a_job_that_waits_for_the_end_is_not_forced",
    ),
    (NodeContact::Silent, DeletionStage::NotBegun, "alone", "shared", "a_daemon_is_not_forced"),
    (
        NodeContact::NotReady,
        DeletionStage::Stuck,
        "alone",
        "shared",
        "a_node_whose_runtime_hangs_is_switched_off_and_fenced",
    ),
    (
        NodeContact::Silent,
        DeletionStage::NotBegun,
        "alone",
        "shared",
        "a_fence_from_an_earlier_outage_does_not_count",
    ),
    (
        NodeContact::Back,
        DeletionStage::NotBegun,
        "alone",
        "shared",
        "a_node_that_is_back_and_not_ready_is_taken_into_service_first",
    ),
    (
        NodeContact::Gone,
        DeletionStage::NotBegun,
        "alone",
        "shared",
        "a_node_object_that_was_deleted_is_created_again",
    ),
    (
        NodeContact::Silent,
        DeletionStage::NotBegun,
        "rolling, several",
        "shared",
        "a_rolling_deployment_is_deleted_as_usual",
    ),
    (
        NodeContact::Silent,
        DeletionStage::NotBegun,
        "rolling, several",
        "shared",
        "a_job_that_does_not_wait_is_forced",
    ),
    (
        NodeContact::Silent,
        DeletionStage::NotBegun,
        "rolling, one",
        "shared",
        "an_index_of_a_job_is_not_forced",
    ),
    (
        NodeContact::Heard,
        DeletionStage::NotBegun,
        "rolling, one",
        "shared",
        "a_job_is_resumed_when_all_its_pods_are_gone",
    ),
    (NodeContact::Heard, DeletionStage::NotBegun, "alone", "shared", "what_has_no_grace_is_ended_by_hand"),
    (
        NodeContact::Heard,
        DeletionStage::NotBegun,
        "rolling, one",
        "shared",
        "a_line_that_is_interrupted_is_found_and_finished",
    ),
    (
        NodeContact::Silent,
        DeletionStage::Begun,
        "rolling, one",
        "shared",
        "a_line_that_waits_in_vain_is_finished_when_the_node_is_back",
    ),
    (
        NodeContact::Silent,
        DeletionStage::NotBegun,
        "alone",
        "shared",
        "a_pod_is_kept_from_being_evicted_from_a_lost_node",
    ),
    (
        NodeContact::Silent,
        DeletionStage::NotBegun,
        "no controller",
        "exclusive",
        "a_pod_is_kept_from_being_evicted_from_a_lost_node",
    ),
    (
        NodeContact::Late,
        DeletionStage::NotBegun,
        "alone",
        "shared",
        "a_pod_is_kept_from_being_evicted_from_a_lost_node",
    ),
    (
        NodeContact::Late,
        DeletionStage::NotBegun,
        "no controller",
        "shared",
        "a_pod_is_kept_from_being_evicted_from_a_lost_node",
    ),
    (
        NodeContact::Late,
        DeletionStage::NotBegun,
        "rolling, several",
        "exclusive",
        "a_pod_is_kept_from_being_evicted_from_a_lost_node",
    ),
    (
        NodeContact::Late,
        DeletionStage::NotBegun,
        "alone",
        "shared",
        "a_taint_from_an_earlier_outage_is_taken_off_first",
    ),
    (
        NodeContact::Silent,
        DeletionStage::Begun,
        "rolling, one",
        "shared",
        "a_node_that_is_deleted_after_its_controller_was_stopped_is_named",
    ),
    (
        NodeContact::Silent,
        DeletionStage::NotBegun,
        "alone",
        "shared",
        "what_has_no_grace_is_left_alone_on_a_partitioned_node",
    ),
    (
        NodeContact::NotReady,
        DeletionStage::NotBegun,
        "alone",
        "shared",
        "what_has_no_grace_is_left_alone_where_the_runtime_hangs",
    ),
    (
        NodeContact::Heard,
        DeletionStage::NotBegun,
        "alone",
        "shared",
        "what_has_no_grace_is_brought_back_when_its_containers_have_ended",
    ),
    (
        NodeContact::Heard,
        DeletionStage::NotBegun,
        "rolling, several",
        "shared",
        "a_batch_keeps_its_disruption_budget",
    ),
    (
        NodeContact::NotReady,
        DeletionStage::NotBegun,
        "rolling, one",
        "shared",
        "a_job_is_not_evicted_where_the_runtime_hangs",
    ),
    (
        NodeContact::NotReady,
        DeletionStage::NotBegun,
        "alone",
        "shared",
        "a_job_is_not_evicted_where_the_runtime_hangs",
    ),
    (NodeContact::Heard, DeletionStage::Begun, "alone", "shared", "a_sidecar_that_runs_on_is_waited_for"),
    (NodeContact::Heard, DeletionStage::Begun, "alone", "shared", "a_hook_that_hangs_is_waited_for"),
    (
        NodeContact::Heard,
        DeletionStage::NotBegun,
        "alone",
        "shared",
        "a_sidecar_counts_when_the_other_containers_have_ended",
    ),
    (
        NodeContact::Heard,
        DeletionStage::Begun,
        "alone",
        "shared",
        "an_ephemeral_container_that_runs_on_is_waited_for",
    ),
    (
        NodeContact::NotReady,
        DeletionStage::Begun,
        "alone",
        "shared",
        "a_node_whose_runtime_hangs_heartbeats_and_is_shown_as_not_ready",
    ),
    (
        NodeContact::Late,
        DeletionStage::NotBegun,
        "alone",
        "shared",
        "a_watch_tells_late_silent_terminating_and_alive_in_this_order",
    ),
];

/// Two tests together have seen every cell of every row.
const BY: &str = "the_verdicts_on_real_nodes_are_those_of_the_table";
const OFF: &str = "the_verdicts_where_a_machine_is_off_are_those_of_the_table";

/// Which of them has seen a row.
fn rows() -> impl Iterator<Item = (NodeContact, DeletionStage, &'static str)> {
    let by = |(contact, deletion)| match (contact, deletion) {
        (NodeContact::Fenced, DeletionStage::NotBegun) => vec![BY, OFF],
        (NodeContact::Fenced | NodeContact::Gone, _) => vec![OFF],
        _ => vec![BY],
    };
    let all = NODES.into_iter().flat_map(|contact| DELETIONS.map(|(deletion, _)| (contact, deletion)));
    all.flat_map(move |row| by(row).into_iter().map(move |test| (row.0, row.1, test)))
}

/// All that was seen, cell by cell.
fn seen() -> Vec<(NodeContact, DeletionStage, &'static str, &'static str, &'static str)> {
    let rows = rows().flat_map(|(contact, deletion, test)| {
        STORAGES
            .into_iter()
            .flat_map(move |(storage, _)| OWNERS.map(move |owner| (contact, deletion, owner, storage, test)))
    });
    // Its set of two has no majority without one of them, which makes the risk high.
    let rows = rows.filter(|(contact, deletion, owner, storage, _)| {
        (*deletion, *owner) != (DeletionStage::NotBegun, "rolling, several")
            || facts(*contact, *deletion, owner, storage).risk() != Risk::Medium
    });
    SEEN.iter().copied().chain(rows).collect()
}

fn facts(contact: NodeContact, deletion: DeletionStage, owner: &str, storage: &str) -> PodFacts {
    PodFacts {
        scheduled: true,
        finished: false,
        mirror: false,
        nodeless: contact == NodeContact::Gone,
        unread: false,
        contact: Some(contact),
        not_ready: contact == NodeContact::NotReady,
        ended: false,
        deletion,
        successor: match owner {
            "no controller" => Successor::Never,
            "alone" => Successor::WhenGone,
            _ => Successor::Early,
        },
        alone: owner == "alone",
        exclusive: Some(storage == "exclusive"),
        shared: storage == "shared",
        single: Some(owner == "rolling, one"),
        leads: Some(false),
        no_budget: Some(false),
        no_majority: Some(false),
        out_of_service: match contact {
            NodeContact::Back => Some(Declared::Before),
            NodeContact::Fenced => Some(Declared::Since),
            _ => None,
        },
    }
}

fn document() -> String {
    let all = seen();
    let tests: Vec<&str> = all.iter().map(|seen| seen.4).collect::<BTreeSet<_>>().into_iter().collect();
    let number = |test: &str| tests.iter().position(|known| *known == test).unwrap() + 1;
    let mut text = HEAD.to_owned();
    for (storage, title) in STORAGES {
        let _ = write!(
            text,
            "\n## {title}\n\n| node | deletion | {} |\n|---|---|---|---|---|---|\n",
            OWNERS.join(" | ")
        );
        for contact in NODES {
            for (deletion, word) in DELETIONS {
                let cell = |owner: &&str| {
                    let seen = all.iter().filter(|seen| {
                        (seen.0, seen.1, seen.2, seen.3) == (contact, deletion, *owner, storage)
                    });
                    let numbers: BTreeSet<usize> = seen.map(|seen| number(seen.4)).collect();
                    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
                    let risk = facts(contact, deletion, owner, storage).risk().word();
                    if numbers.is_empty() {
                        risk.to_owned()
                    } else {
                        format!("{risk} ({})", numbers.join(", "))
                    }
                };
                let cells: Vec<String> = OWNERS.iter().map(cell).collect();
                let _ = writeln!(text, "| {} | {word} | {} |", contact.word(), cells.join(" | "));
            }
        }
    }
    let _ = write!(text, "\n## Tests\n\n");
    for (n, test) in tests.iter().enumerate() {
        let _ = writeln!(text, "{}. `{test}`", n + 1);
    }
    text
}

#[test]
fn the_table_of_risks_is_fresh() {
    let path = Path::new(ROOT).join("docs/risks.md");
    if std::env::var_os("GENERATE").is_some() {
        fs::write(&path, document()).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap_or_default(), document(), "stale: run 'make generate'");
}

#[test]
fn the_table_of_risks_names_tests_that_exist() {
    let folder = Path::new(ROOT).join("tests/nodes");
    let sources: String = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap_or_default())
        .collect();
    for (.., test) in seen() {
        assert!(sources.contains(&format!("fn {test}(")), "there is no test {test}");
    }
}
