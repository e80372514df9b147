//! The guard of node maintenance leases: admission policies in the server, and their bindings.

use serde_json::Value;

/// As it is meant to be applied.
pub const MANIFEST: &str = include_str!("../../../docs/guard.yaml");
/// The names of its policies; their bindings have the same.
pub const NAMES: [&str; 2] = ["kubectl-lease-maintenance", "kubectl-lease-maintenance-elections"];

const POLICY: &str = "ValidatingAdmissionPolicy";
const BINDING: &str = "ValidatingAdmissionPolicyBinding";

/// Whether these policies and bindings are the whole guard: each policy of the manifest is there as it is
/// meant, and has a binding that denies.
pub fn is_in_force(policies: &[Value], bindings: &[Value]) -> bool {
    NAMES.iter().all(|name| {
        let meant = |kind: &str| {
            documents()
                .find(|document| document["kind"] == kind && document["metadata"]["name"] == *name)
                .map(|document| document["spec"].clone())
        };
        let (Some(rule), Some(binding)) = (meant(POLICY), meant(BINDING)) else { return false };
        let mut named = policies.iter().filter(|policy| policy["metadata"]["name"] == *name);
        named.any(|policy| is_as_meant(&rule, &policy["spec"]))
            && bindings.iter().any(|bound| is_as_meant(&binding, &denying(&bound["spec"])))
    })
}

/// A binding without what else it does than deny: a warning or an audit record makes it no weaker.
fn denying(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(actions) = spec["validationActions"].as_array_mut() {
        actions.retain(|action| action == "Deny");
    }
    spec
}

fn documents() -> impl Iterator<Item = Value> {
    MANIFEST.split("\n---\n").filter_map(|document| serde_saphyr::from_str(document).ok())
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

    fn of_kind(kind: &str) -> Vec<Value> {
        documents().filter(|document| document["kind"] == kind).collect()
    }

    #[test]
    fn every_document_of_the_manifest_is_read_and_every_policy_known_by_name() {
        assert_eq!(documents().count(), MANIFEST.matches("\nkind: ").count());
        for kind in [POLICY, BINDING] {
            let names: Vec<_> = of_kind(kind).iter().map(|it| it["metadata"]["name"].clone()).collect();
            assert_eq!(names, NAMES, "{kind}");
        }
    }

    #[test]
    fn the_guard_is_in_force_only_as_it_is_meant() {
        let (policies, bindings) = (|| of_kind(POLICY), || of_kind(BINDING));
        assert!(is_in_force(&policies(), &bindings()));
        let other = json!({ "spec": { "policyName": "other", "validationActions": ["Deny"] } });
        assert!(is_in_force(&policies(), &[std::slice::from_ref(&other), &bindings()].concat()));
        assert!(!is_in_force(&policies(), &[]));
        assert!(!is_in_force(&policies(), &[other]));
        assert!(!is_in_force(&[], &bindings()));

        // What a server fills in.
        let mut filled = policies();
        for policy in &mut filled {
            policy["spec"]["matchConstraints"]["matchPolicy"] = "Equivalent".into();
            policy["spec"]["matchConstraints"]["objectSelector"] = json!({});
            policy["spec"]["matchConstraints"]["resourceRules"][0]["scope"] = "*".into();
            policy["spec"]["matchConstraints"]["excludeResourceRules"] = json!([]);
            policy["spec"]["paramKind"] = Value::Null;
        }
        assert!(is_in_force(&filled, &bindings()));

        let weaker: &[Change] = &[
            |spec| spec["failurePolicy"] = "Ignore".into(),
            |spec| spec["validations"][0]["expression"] = "true".into(),
            |spec| spec["validations"] = json!([]),
            |spec| spec["matchConditions"] = json!([{ "name": "never", "expression": "false" }]),
            |spec| spec["variables"] = json!([{ "name": "reserved", "expression": "false" }]),
            |spec| spec["matchConstraints"]["objectSelector"] = json!({ "matchLabels": { "a": "b" } }),
            |spec| spec["matchConstraints"]["resourceRules"][0]["operations"] = json!(["CREATE"]),
            |spec| spec["matchConstraints"]["resourceRules"][0]["resourceNames"] = json!(["a"]),
            |spec| {
                spec["matchConstraints"]["excludeResourceRules"] = json!([{ "resources": ["leases"] }]);
            },
        ];
        let narrower: &[Change] = &[
            |spec| spec["validationActions"] = json!(["Audit"]),
            |spec| spec["matchResources"] = json!({ "objectSelector": { "matchLabels": { "a": "b" } } }),
        ];
        for n in 0..NAMES.len() {
            let mut told = bindings();
            told[n]["spec"]["validationActions"] = json!(["Deny", "Audit"]);
            told[n]["spec"]["matchResources"] = json!({ "matchPolicy": "Equivalent", "objectSelector": {} });
            assert!(is_in_force(&policies(), &told));
            for change in weaker {
                let mut policies = policies();
                change(&mut policies[n]["spec"]);
                assert!(!is_in_force(&policies, &bindings()), "{:#}", policies[n]);
            }
            for change in narrower {
                let mut bindings = bindings();
                change(&mut bindings[n]["spec"]);
                assert!(!is_in_force(&policies(), &bindings), "{:#}", bindings[n]);
            }
            // All of them are needed, each under its own name.
            let (mut fewer, mut unbound, mut renamed) = (policies(), bindings(), policies());
            fewer.remove(n);
            assert!(!is_in_force(&fewer, &bindings()));
            unbound.remove(n);
            assert!(!is_in_force(&policies(), &unbound));
            renamed[n]["metadata"]["name"] = "other".into();
            assert!(!is_in_force(&renamed, &bindings()));
        }
    }
}
