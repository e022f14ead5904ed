//! The FlowSchemas and PriorityLevelConfigurations that every cluster begins with, as upstream has them.
//!
//! They are there for clients that read, copy or refer to them. Requests are shared out by the server's own limits
//! (`limits`), which no FlowSchema changes: a write of one returns a warning that says so.

use crate::access::identity;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// The group of both kinds.
pub(crate) const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

/// All of a kind, in order of name, without what is each cluster's own.
pub(crate) fn objects(plural: &str) -> &'static [Value] {
    static SCHEMAS: LazyLock<Vec<Value>> = LazyLock::new(schemas);
    static LEVELS: LazyLock<Vec<Value>> = LazyLock::new(levels);
    match plural {
        "flowschemas" => &SCHEMAS,
        "prioritylevelconfigurations" => &LEVELS,
        _ => &[],
    }
}

fn levels() -> Vec<Value> {
    vec![
        level("catch-all", limited(5, 0, &json!({"type": "Reject"}))),
        level(
            "exempt",
            json!({"type": "Exempt",
                "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}}),
        ),
        level("global-default", limited(20, 50, &queue(128, 6))),
        level("leader-election", limited(10, 0, &queue(16, 4))),
        level("node-high", limited(40, 25, &queue(64, 6))),
        level("system", limited(30, 33, &queue(64, 6))),
        level("workload-high", limited(40, 50, &queue(128, 6))),
        level("workload-low", limited(100, 90, &queue(128, 6))),
    ]
}

fn level(name: &str, spec: Value) -> Value {
    object("PriorityLevelConfiguration", name, spec)
}

fn limited(shares: u32, lendable_percent: u32, response: &Value) -> Value {
    json!({"type": "Limited", "limited": {
        "nominalConcurrencyShares": shares, "lendablePercent": lendable_percent,
        "limitResponse": response,
    }})
}

fn queue(queues: u32, hand_size: u32) -> Value {
    json!({"type": "Queue",
        "queuing": {"queues": queues, "handSize": hand_size, "queueLengthLimit": 50}})
}

/// One bootstrap FlowSchema: its level, its precedence, and what distinguishes its flows.
struct Schema {
    name: &'static str,
    level: &'static str,
    precedence: u32,
    distinguisher: &'static str,
}

impl Schema {
    const fn new(name: &'static str, level: &'static str, precedence: u32) -> Schema {
        Schema { name, level, precedence, distinguisher: "ByUser" }
    }

    const fn by(self, distinguisher: &'static str) -> Schema {
        Schema { distinguisher, ..self }
    }

    fn of(&self, rule: &Value) -> Value {
        let mut spec = json!({
            "priorityLevelConfiguration": {"name": self.level},
            "matchingPrecedence": self.precedence, "rules": [rule],
        });
        if !self.distinguisher.is_empty() {
            spec["distinguisherMethod"] = json!({"type": self.distinguisher});
        }
        object("FlowSchema", self.name, spec)
    }
}

fn schemas() -> Vec<Value> {
    let everybody = groups(&[identity::UNAUTHENTICATED, identity::AUTHENTICATED]);
    let nodes = groups(&["system:nodes"]);
    let system_accounts = json!([{"kind": "ServiceAccount",
        "serviceAccount": {"name": "*", "namespace": "kube-system"}}]);
    let leases = rule(&["*"], "coordination.k8s.io", &["leases"]);
    let electors = json!([
        user("system:kube-controller-manager"),
        user("system:kube-scheduler"),
        system_accounts[0]
    ]);
    let mut elections = leases.clone();
    elections["verbs"] = json!(["get", "create", "update"]);
    let mut own_node = rule(&["*"], "", &["nodes", "nodes/status"]);
    own_node["clusterScope"] = json!(true);
    let probes = json!({"subjects": everybody, "nonResourceRules": [
        {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}]});
    let manager = json!([user("system:kube-controller-manager")]);
    let scheduler = json!([user("system:kube-scheduler")]);
    vec![
        Schema::new("catch-all", "catch-all", 10_000).of(&all(&everybody)),
        Schema::new("exempt", "exempt", 1).by("").of(&all(&groups(&[identity::MASTERS]))),
        Schema::new("global-default", "global-default", 9_900).of(&all(&everybody)),
        Schema::new("kube-controller-manager", "workload-high", 800)
            .by("ByNamespace")
            .of(&all(&manager)),
        Schema::new("kube-scheduler", "workload-high", 800).by("ByNamespace").of(&all(&scheduler)),
        Schema::new("kube-system-service-accounts", "workload-high", 900)
            .by("ByNamespace")
            .of(&all(&system_accounts)),
        Schema::new("probes", "exempt", 2).by("").of(&probes),
        Schema::new("service-accounts", "workload-low", 9_000)
            .of(&all(&groups(&[identity::SERVICE_ACCOUNTS]))),
        Schema::new("system-leader-election", "leader-election", 100)
            .of(&json!({"subjects": electors, "resourceRules": [elections]})),
        Schema::new("system-node-high", "node-high", 400)
            .of(&json!({"subjects": nodes, "resourceRules": [own_node, leases]})),
        Schema::new("system-nodes", "system", 500).of(&all(&nodes)),
    ]
}

fn groups(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"kind": "Group", "group": {"name": name}})).collect()
}

fn user(name: &str) -> Value {
    json!({"kind": "User", "user": {"name": name}})
}

fn rule(verbs: &[&str], group: &str, resources: &[&str]) -> Value {
    json!({"verbs": verbs, "apiGroups": [group], "resources": resources, "namespaces": ["*"]})
}

/// Everything that these subjects ask for.
fn all(subjects: &Value) -> Value {
    let mut everything = rule(&["*"], "*", &["*"]);
    everything["clusterScope"] = json!(true);
    json!({"subjects": subjects, "resourceRules": [everything],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]})
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": kind,
        "metadata": {"name": name, "generation": 1, "annotations": {AUTO_UPDATE: "true"}},
        "spec": spec, "status": {},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::behaviour;
    use crate::kinds::built_in;
    use crate::object;

    #[test]
    fn the_bootstrap_objects_are_complete_valid_and_in_order() {
        for (plural, count) in [("flowschemas", 11), ("prioritylevelconfigurations", 8)] {
            let resource = &built_in().find(GROUP, "v1", plural).expect("it is built in").resource;
            assert_eq!(objects(plural).len(), count);
            assert!(objects(plural).is_sorted_by_key(object::name));
            for found in objects(plural) {
                let mut filled = found.clone();
                behaviour::defaults(resource, &mut filled);
                assert_eq!(&filled, found, "nothing is left to default");
                assert_eq!(behaviour::validate(resource, found), [], "{found}");
            }
        }
    }

    #[test]
    fn every_schema_leads_to_a_level_that_is_there() {
        for schema in objects("flowschemas") {
            let level = &schema["spec"]["priorityLevelConfiguration"]["name"];
            let levels = objects("prioritylevelconfigurations");
            assert!(levels.iter().any(|one| &one["metadata"]["name"] == level), "{level}");
        }
    }
}
