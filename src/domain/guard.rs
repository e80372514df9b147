//! The guard of the prefix of administrators: an admission policy in the server, and its binding.

use serde_json::Value;

/// As it is meant to be applied.
pub const MANIFEST: &str = include_str!("../../docs/guard.yaml");
/// The policy's name.
pub const NAME: &str = "kubectl-lease-maintenance";

/// Whether a policy of the guard's name is the guard, and one of these bindings has it deny.
pub fn is_in_force(policy: &Value, bindings: &[Value]) -> bool {
    let meant = |kind: &str| {
        MANIFEST
            .split("\n---\n")
            .filter_map(|document| serde_saphyr::from_str::<Value>(document).ok())
            .find(|document| document["kind"] == kind)
            .map(|document| document["spec"].clone())
    };
    let (Some(rule), Some(binding)) =
        (meant("ValidatingAdmissionPolicy"), meant("ValidatingAdmissionPolicyBinding"))
    else {
        return false;
    };
    let denies = |bound: &Value| {
        let mut spec = bound["spec"].clone();
        // That it is told elsewhere too makes it no weaker.
        if let Some(actions) = spec["validationActions"].as_array_mut() {
            actions.retain(|action| action == "Deny");
        }
        is_as_meant(&binding, &spec)
    };
    is_as_meant(&rule, &policy["spec"]) && bindings.iter().any(denies)
}

/// Whether an object is as it is meant to be, but for what the server fills in.
fn is_as_meant(meant: &Value, found: &Value) -> bool {
    match (meant, found) {
        (Value::Object(meant), Value::Object(found)) => {
            meant.iter().all(|(name, value)| found.get(name).is_some_and(|found| is_as_meant(value, found)))
                && found.iter().all(|(name, value)| meant.contains_key(name) || is_default(value))
        }
        (Value::Array(meant), Value::Array(found)) => {
            meant.len() == found.len()
                && meant.iter().zip(found).all(|(meant, found)| is_as_meant(meant, found))
        }
        _ => meant == found,
    }
}

/// What a server fills in where a policy says nothing, and what says nothing.
fn is_default(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().all(is_default),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => ["*", "Namespaced", "Equivalent"].contains(&text.as_str()),
        Value::Null => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    type Change = fn(&mut Value);

    fn document(kind: &str) -> Value {
        let documents = MANIFEST.split("\n---\n").map(|text| serde_saphyr::from_str::<Value>(text).unwrap());
        documents.into_iter().find(|document| document["kind"] == kind).unwrap()
    }

    #[test]
    fn the_guard_is_in_force_only_as_it_is_meant() {
        let policy = || document("ValidatingAdmissionPolicy");
        let binding = || document("ValidatingAdmissionPolicyBinding");
        assert_eq!(policy()["metadata"]["name"], NAME);
        assert!(is_in_force(&policy(), &[binding()]));
        let other = json!({ "spec": { "policyName": "other", "validationActions": ["Deny"] } });
        assert!(is_in_force(&policy(), &[other.clone(), binding()]));
        let mut told = binding();
        told["spec"]["validationActions"] = json!(["Deny", "Audit"]);
        told["spec"]["matchResources"] = json!({ "matchPolicy": "Equivalent", "objectSelector": {} });
        assert!(is_in_force(&policy(), &[told]));
        assert!(!is_in_force(&policy(), &[]));
        assert!(!is_in_force(&policy(), &[other]));

        // What a server fills in.
        let mut filled = policy();
        filled["spec"]["matchConstraints"]["matchPolicy"] = "Equivalent".into();
        filled["spec"]["matchConstraints"]["objectSelector"] = json!({});
        filled["spec"]["matchConstraints"]["resourceRules"][0]["scope"] = "*".into();
        assert!(is_in_force(&filled, &[binding()]));

        let weaker: &[Change] = &[
            |spec| spec["failurePolicy"] = "Ignore".into(),
            |spec| spec["validations"][0]["expression"] = "true".into(),
            |spec| spec["matchConditions"] = json!([]),
            |spec| spec["matchConstraints"]["objectSelector"] = json!({ "matchLabels": { "a": "b" } }),
            |spec| spec["matchConstraints"]["resourceRules"][0]["operations"] = json!(["CREATE"]),
            |spec| {
                spec["matchConstraints"]["excludeResourceRules"] = json!([{ "resources": ["leases"] }]);
            },
        ];
        for change in weaker {
            let mut policy = policy();
            change(&mut policy["spec"]);
            assert!(!is_in_force(&policy, &[binding()]), "{policy:#}");
        }
        let narrower: &[Change] = &[
            |spec| spec["validationActions"] = json!(["Audit"]),
            |spec| spec["matchResources"] = json!({ "objectSelector": { "matchLabels": { "a": "b" } } }),
        ];
        for change in narrower {
            let mut binding = binding();
            change(&mut binding["spec"]);
            assert!(!is_in_force(&policy(), std::slice::from_ref(&binding)), "{binding:#}");
        }
    }
}
