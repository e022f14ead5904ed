use super::*;
use crate::access::identity::{MASTERS, Scope};
use serde_json::json;

fn alice() -> Identity {
    Identity::authenticated("alice", vec!["dev".into()], Scope::Hub)
}

fn rules(rules: Value) -> Vec<Rule> {
    Rule::read_all(&json!({"rules": rules}))
}

fn on(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

/// A cluster in which alice holds these rules everywhere.
fn holding(held: Value) -> RoleSet {
    let role = json!({"metadata": {"name": "held"}, "rules": held});
    let gone = json!({"metadata": {"name": "gone"}, "rules": [on("", &["secrets"], &["get"])]});
    let binding = json!({
        "metadata": {"name": "held"},
        "roleRef": {"kind": "ClusterRole", "name": "held"},
        "subjects": [{"kind": "User", "name": "alice"}],
    });
    RoleSet::compile([], [&role, &gone], [], [&binding])
}

fn check(set: &RoleSet, resource: &str, old: Option<&Value>, new: &Value) -> Result<(), Status> {
    let write = Write { set, identity: &alice(), resource, old, new };
    if resource.ends_with("bindings") {
        check_binding_write(&write)
    } else {
        check_role_write(&write)
    }
}

fn role_binding(kind: &str, name: &str) -> Value {
    json!({
        "metadata": {"name": "b", "namespace": "a"},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
    })
}

#[test]
fn what_is_missing_is_named_in_upstreams_words() {
    let held = rules(json!([on("", &["pods"], &["get"])]));
    let wanted = rules(json!([
        on("", &["pods"], &["get", "list", "watch"]),
        on("apps", &["deployments"], &["get"]),
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ]));
    let why = covers(&alice(), &held, &wanted).expect_err("more than is held");
    assert_eq!(
        why,
        concat!(
            r#"user "alice" (groups=["dev" "system:authenticated"]) is attempting to grant RBAC "#,
            "permissions not currently held:\n",
            r#"{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}"#,
            "\n",
            r#"{APIGroups:["apps"], Resources:["deployments"], Verbs:["get"]}"#,
            "\n",
            r#"{NonResourceURLs:["/metrics"], Verbs:["get"]}"#,
        )
    );
}

#[test]
fn several_held_rules_cover_one_wanted_rule_together() {
    let held = rules(json!([
        on("", &["pods"], &["get"]),
        on("", &["pods", "secrets"], &["list"]),
        on("", &["secrets"], &["get"]),
    ]));
    let wanted = rules(json!([on("", &["pods", "secrets"], &["get", "list"])]));
    assert_eq!(covers(&alice(), &held, &wanted), Ok(()));
}

#[test]
fn wildcards_cover_and_are_covered_by_wildcards_only() {
    let all = rules(json!([on("*", &["*"], &["*"]), {"nonResourceURLs": ["*"], "verbs": ["*"]}]));
    let some = rules(json!([on("", &["pods"], &["get"])]));
    assert_eq!(covers(&alice(), &all, &some), Ok(()));
    assert_eq!(covers(&alice(), &all, &full_authority()), Ok(()));
    assert!(covers(&alice(), &some, &all).is_err());
    let scale = rules(json!([on("apps", &["*/scale"], &["get"])]));
    let one = rules(json!([on("apps", &["deployments/scale"], &["get"])]));
    assert_eq!(covers(&alice(), &scale, &one), Ok(()));
    assert!(covers(&alice(), &one, &scale).is_err());
    assert!(covers(&alice(), &scale, &rules(json!([on("apps", &["scale"], &["get"])]))).is_err());
}

#[test]
fn a_right_to_one_name_is_not_a_right_to_all() {
    let named = |names: Value| {
        let mut rule = on("", &["secrets"], &["get"]);
        rule["resourceNames"] = names;
        rules(json!([rule]))
    };
    let all = rules(json!([on("", &["secrets"], &["get"])]));
    assert_eq!(covers(&alice(), &all, &named(json!(["a"]))), Ok(()));
    assert_eq!(covers(&alice(), &named(json!(["a", "b"])), &named(json!(["b"]))), Ok(()));
    assert!(covers(&alice(), &named(json!(["a"])), &all).is_err());
    assert!(covers(&alice(), &named(json!(["a"])), &named(json!(["b"]))).is_err());
    assert!(covers(&alice(), &named(json!(["*"])), &named(json!(["b"]))).is_err());
}

#[test]
fn a_path_covers_what_begins_with_it() {
    let url = |url: &str| rules(json!([{"nonResourceURLs": [url], "verbs": ["get"]}]));
    assert_eq!(covers(&alice(), &url("/openapi/*"), &url("/openapi/v3")), Ok(()));
    assert_eq!(covers(&alice(), &url("/openapi/*"), &url("/openapi/v3/*")), Ok(()));
    assert!(covers(&alice(), &url("/openapi/*"), &url("/*")).is_err());
}

#[test]
fn a_role_is_written_by_those_who_hold_it() {
    let set = holding(json!([on("", &["pods"], &["get", "list"])]));
    let role = |verbs: &[&str]| json!({"metadata": {"name": "r", "namespace": "a"}, "rules": [on("", &["pods"], verbs)]});
    assert_eq!(check(&set, "roles", None, &role(&["get"])), Ok(()));
    let refused = check(&set, "roles", None, &role(&["delete"])).expect_err("not held");
    assert_eq!(refused.code, 403);
    assert!(
        refused.message.starts_with(
            r#"roles.rbac.authorization.k8s.io "r" is forbidden: user "alice" (groups="#
        ),
        "{}",
        refused.message
    );
}

#[test]
fn escalate_and_bind_stand_for_holding() {
    let set = holding(json!([
        {"apiGroups": [GROUP], "resources": ["clusterroles"], "verbs": ["escalate", "bind"],
         "resourceNames": ["gone"]},
    ]));
    let new = json!({"metadata": {"name": "gone"}, "rules": [on("", &["pods"], &["delete"])]});
    let old = json!({"metadata": {"name": "gone"}});
    assert_eq!(check(&set, "clusterroles", Some(&old), &new), Ok(()));
    // A create names nothing yet, so a right to one name is no right to create it.
    assert!(check(&set, "clusterroles", None, &new).is_err());
    assert_eq!(check(&set, "rolebindings", None, &role_binding("ClusterRole", "gone")), Ok(()));
    assert!(
        check(&set, "rolebindings", None, &role_binding("ClusterRole", "cluster-admin")).is_err()
    );
}

#[test]
fn a_role_is_bound_by_those_who_hold_it() {
    let set = holding(json!([on("", &["secrets"], &["get"])]));
    assert_eq!(check(&set, "rolebindings", None, &role_binding("ClusterRole", "gone")), Ok(()));
    let admin = role_binding("ClusterRole", "cluster-admin");
    assert_eq!(check(&set, "rolebindings", None, &admin).expect_err("not held").code, 403);
    let nowhere = role_binding("Role", "nowhere");
    let missing = check(&set, "rolebindings", None, &nowhere).expect_err("not there");
    assert_eq!((missing.code, missing.reason), (404, "NotFound"));
    let odd = role_binding("Thing", "x");
    assert_eq!(check(&set, "rolebindings", None, &odd).expect_err("no role").code, 403);
}

#[test]
fn owners_and_finalizers_may_be_changed_without_holding_the_rules() {
    let set = holding(json!([]));
    let old = json!({
        "metadata": {"name": "r", "finalizers": ["x"], "ownerReferences": [{}]},
        "rules": [on("", &["pods"], &["get"])],
    });
    let mut new = old.clone();
    new["metadata"] = json!({"name": "r", "managedFields": []});
    assert_eq!(check(&set, "clusterroles", Some(&old), &new), Ok(()));
    new["metadata"]["labels"] = json!({"a": "b"});
    assert!(check(&set, "clusterroles", Some(&old), &new).is_err());
}

#[test]
fn only_those_who_may_all_use_aggregation() {
    let few = holding(json!([on("", &["pods"], &["get"])]));
    let all = holding(json!([on("*", &["*"], &["*"]), {"nonResourceURLs": ["*"], "verbs": ["*"]}]));
    let new = json!({
        "metadata": {"name": "r"},
        "aggregationRule": {"clusterRoleSelectors": [{}]},
    });
    let plain = json!({"metadata": {"name": "r"}});
    for (old, new) in [(None, &new), (Some(&new), &plain), (Some(&plain), &new)] {
        let refused = check(&few, "clusterroles", old, new).expect_err("not held");
        assert!(refused.message.ends_with("privileges to use the aggregationRule"));
        assert_eq!(check(&all, "clusterroles", old, new), Ok(()));
    }
}

#[test]
fn masters_may_grant_all() {
    let set = holding(json!([]));
    let root = Identity::authenticated("root", vec![MASTERS.into()], Scope::Hub);
    let new = role_binding("ClusterRole", "cluster-admin");
    let write =
        Write { set: &set, identity: &root, resource: "rolebindings", old: None, new: &new };
    assert_eq!(check_binding_write(&write), Ok(()));
}

#[test]
fn a_rule_of_too_many_combinations_is_refused_quickly() {
    let many: Vec<String> = (0..5000).map(|number| format!("n{number}")).collect();
    let wanted = rules(json!([
        {"apiGroups": many, "resources": many, "verbs": many, "resourceNames": many},
    ]));
    let why = covers(&alice(), &[], &wanted).expect_err("not held");
    assert!(why.contains("more than 100000 single permissions"), "{why}");
    let all = rules(json!([on("*", &["*"], &["*"])]));
    assert_eq!(covers(&alice(), &all, &wanted), Ok(()));
}

#[test]
fn a_long_list_of_missing_rules_is_cut() {
    let many: Vec<String> = (0..500).map(|number| format!("n{number:03}")).collect();
    let wanted = rules(json!([{"apiGroups": [""], "resources": many, "verbs": ["get"]}]));
    let why = covers(&alice(), &[], &wanted).expect_err("not held");
    assert!(why.ends_with("\nand 300 more"), "{why}");
}
