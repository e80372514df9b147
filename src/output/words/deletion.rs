//! Words for what stands against the deletion of a pod.

use kube_leases::rules::{
    deletion::{OverBudget, PodChange},
    pod::Pod,
};

/// What has changed since a pod was shown.
pub fn changed(change: &PodChange, pod: &Pod) -> String {
    let (name, node) = (pod.full_name(), &pod.spec.node_name);
    let why = match change {
        PodChange::NodeReplaced => format!("{node} was recreated or deleted meanwhile"),
        PodChange::NodeHeard => format!("{node} sent a heartbeat meanwhile"),
        PodChange::SaferWay => format!("what is safest for {name} has changed meanwhile"),
        PodChange::BudgetSpent(budgets) => spent(budgets),
        PodChange::Risk(risk) => format!("the risk of force-deleting it has become {}", risk.word()),
    };
    format!("{why}: {name} was not deleted")
}

/// Which disruption budgets it would go over, or may.
pub fn over_budget(over: &OverBudget, pod: &Pod) -> String {
    match over {
        OverBudget::Unread => format!(
            "the PodDisruptionBudgets in {} could not be read, and may not allow more than one pod at a time",
            pod.metadata.namespace
        ),
        OverBudget::Spent(budgets) => spent(budgets),
    }
}

fn spent(budgets: &[String]) -> String {
    format!("the disruption budget {} allows no more disruptions", budgets.join(", "))
}

#[cfg(test)]
mod tests {
    use kube_leases::rules::risk::Risk;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_has_changed_names_the_pod_that_was_not_deleted() {
        let metadata = json!({ "name": "db-0", "namespace": "shop" });
        let pod: Pod =
            serde_json::from_value(json!({ "metadata": metadata, "spec": { "nodeName": "node-1" } }))
                .unwrap();
        for (change, why) in [
            (PodChange::NodeReplaced, "node-1 was recreated or deleted meanwhile"),
            (PodChange::NodeHeard, "node-1 sent a heartbeat meanwhile"),
            (PodChange::SaferWay, "what is safest for shop/db-0 has changed meanwhile"),
            (
                PodChange::BudgetSpent(vec!["a".into(), "b".into()]),
                "the disruption budget a, b allows no more disruptions",
            ),
            (PodChange::Risk(Risk::Critical), "the risk of force-deleting it has become critical"),
        ] {
            assert_eq!(changed(&change, &pod), format!("{why}: shop/db-0 was not deleted"));
        }
        let unread = "the PodDisruptionBudgets in shop could not be read";
        assert!(over_budget(&OverBudget::Unread, &pod).starts_with(unread));
    }
}
