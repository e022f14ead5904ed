use super::*;
use crate::access::identity::{AUTHENTICATED, MASTERS, Scope, ServiceAccount};
use serde_json::json;

fn user(name: &str, groups: &[&str]) -> Identity {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    Identity::authenticated(name, groups, Scope::Hub)
}

fn role(place: &str, rules: Value) -> Value {
    let (namespace, name) = place.split_once('/').unwrap_or(("", place));
    json!({"metadata": {"namespace": namespace, "name": name}, "rules": rules})
}

/// `binding("ns/name", "Role/reader", &["User/alice"])`.
fn binding(place: &str, role: &str, subjects: &[&str]) -> Value {
    let (namespace, name) = place.split_once('/').unwrap_or(("", place));
    let (kind, role) = role.split_once('/').expect("a kind and a name");
    let subject = |subject: &&str| {
        let (kind, name) = subject.split_once('/').expect("a kind and a name");
        match name.split_once('/') {
            Some((namespace, name)) => json!({"kind": kind, "namespace": namespace, "name": name}),
            None => json!({"kind": kind, "name": name}),
        }
    };
    json!({
        "metadata": {"namespace": namespace, "name": name},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
        "subjects": subjects.iter().map(subject).collect::<Vec<_>>(),
    })
}

fn reads_pods() -> Value {
    json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}])
}

fn get_pods(namespace: &str) -> Attributes<'_> {
    Attributes { verb: "get", resource: "pods", name: "p", namespace, ..Attributes::default() }
}

fn empty() -> RoleSet {
    RoleSet::compile([], [], [], [])
}

#[test]
fn nothing_is_allowed_that_nobody_granted() {
    let decision = empty().allows(&user("alice", &[]), &get_pods("a"));
    assert_eq!(decision, Decision { allowed: false, reason: String::new() });
}

#[test]
fn masters_may_all_at_once() {
    let decision = empty().allows(&user("root", &[MASTERS]), &get_pods("a"));
    assert_eq!(decision, Decision { allowed: true, reason: String::new() });
}

#[test]
fn a_cluster_role_binding_holds_everywhere() {
    let set = RoleSet::compile(
        [],
        [&role("reader", reads_pods())],
        [],
        [&binding("readers", "ClusterRole/reader", &["User/alice", "Group/dev"])],
    );
    let by_user = set.allows(&user("alice", &[]), &get_pods("a"));
    assert_eq!(
        by_user.reason,
        r#"RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to User "alice""#
    );
    let by_group = set.allows(&user("bob", &["dev"]), &get_pods(""));
    assert_eq!(
        by_group.reason,
        r#"RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to Group "dev""#
    );
    assert!(!set.allows(&user("dev", &["alice"]), &get_pods("a")).allowed);
}

#[test]
fn a_role_binding_holds_in_its_namespace_only() {
    let set = RoleSet::compile(
        [&role("a/reader", reads_pods())],
        [&role("reader", reads_pods())],
        [
            &binding("a/readers", "Role/reader", &["User/alice"]),
            &binding("b/readers", "ClusterRole/reader", &["User/bob"]),
        ],
        [],
    );
    let decision = set.allows(&user("alice", &[]), &get_pods("a"));
    assert_eq!(
        decision.reason,
        r#"RBAC: allowed by RoleBinding "readers/a" of Role "reader" to User "alice""#
    );
    assert!(!set.allows(&user("alice", &[]), &get_pods("b")).allowed);
    assert!(!set.allows(&user("alice", &[]), &get_pods("")).allowed);
    assert!(set.allows(&user("bob", &[]), &get_pods("b")).allowed);
}

#[test]
fn a_role_of_another_namespace_is_not_found() {
    let set = RoleSet::compile(
        [&role("a/reader", reads_pods())],
        [],
        [&binding("b/readers", "Role/reader", &["User/alice"])],
        [&binding("lost", "ClusterRole/gone", &["User/alice"])],
    );
    let decision = set.allows(&user("alice", &[]), &get_pods("b"));
    assert!(!decision.allowed);
    assert_eq!(
        decision.reason,
        concat!(
            r#"RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, "#,
            r#"role.rbac.authorization.k8s.io "reader" not found]"#
        )
    );
}

#[test]
fn service_accounts_are_bound_by_namespace_and_name() {
    let set = RoleSet::compile(
        [],
        [&role("reader", reads_pods())],
        [&binding("ci/readers", "ClusterRole/reader", &["ServiceAccount/builder"])],
        [&binding("all", "ClusterRole/reader", &["ServiceAccount/ops/robot", "ServiceAccount/x"])],
    );
    let account = |namespace, name| {
        Identity::service_account(&ServiceAccount { namespace, name, uid: "u" }, "c")
    };
    let decision = set.allows(&account("ci", "builder"), &get_pods("ci"));
    assert!(decision.reason.ends_with(r#"to ServiceAccount "builder/ci""#), "{}", decision.reason);
    assert!(set.allows(&account("ops", "robot"), &get_pods("any")).allowed);
    assert!(!set.allows(&account("ci", "robot"), &get_pods("any")).allowed);
    assert!(!set.allows(&account("", "x"), &get_pods("any")).allowed);
    assert!(!set.allows(&account("x", "x"), &get_pods("any")).allowed);
}

#[test]
fn everyone_gets_the_bootstrap_layer() {
    let set = empty();
    let path = |identity: &Identity, path| set.allows(identity, &Attributes::path("get", path));
    let (alice, nobody) = (user("alice", &[]), Identity::anonymous());
    for open in ["/healthz", "/livez", "/readyz", "/version"] {
        assert!(path(&nobody, open).allowed, "{open}");
        assert!(path(&alice, open).allowed, "{open}");
    }
    for closed in ["/apis", "/openapi/v3", "/metrics", "/"] {
        assert!(!path(&nobody, closed).allowed, "{closed}");
    }
    assert!(path(&alice, "/apis/apps/v1").allowed);
    assert!(!path(&alice, "/metrics").allowed);
    let review = Attributes {
        verb: "create",
        group: "authorization.k8s.io",
        resource: "selfsubjectaccessreviews",
        ..Attributes::default()
    };
    assert!(set.allows(&alice, &review).allowed);
    assert!(!set.allows(&nobody, &review).allowed);
}

#[test]
fn an_object_of_the_cluster_hides_the_bootstrap_one() {
    let set = RoleSet::compile(
        [],
        [],
        [],
        [&binding("system:discovery", "ClusterRole/system:discovery", &["User/only"])],
    );
    let apis = Attributes::path("get", "/apis");
    assert!(set.allows(&user("only", &[]), &apis).allowed);
    assert!(!set.allows(&user("alice", &[]), &apis).allowed);
}

#[test]
fn a_clusters_own_role_is_gathered_into_view() {
    let mut own = role(
        "widgets",
        json!([
            {"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["widgets"]},
        ]),
    );
    own["metadata"]["labels"] = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    let set = RoleSet::compile(
        [],
        [&own],
        [&binding("a/admins", "ClusterRole/admin", &["User/alice"])],
        [],
    );
    let widget = Attributes {
        verb: "get",
        group: "example.com",
        resource: "widgets",
        namespace: "a",
        ..Attributes::default()
    };
    assert!(set.allows(&user("alice", &[]), &widget).allowed);
    assert!(set.allows(&user("alice", &[]), &get_pods("a")).allowed);
    assert!(!set.allows(&user("alice", &[]), &Attributes { namespace: "b", ..widget }).allowed);
}

#[test]
fn held_rules_are_those_of_the_namespace_and_the_cluster() {
    let set = RoleSet::compile(
        [&role("a/reader", reads_pods())],
        [],
        [
            &binding("a/readers", "Role/reader", &["User/alice", "Group/dev"]),
            &binding("b/readers", "Role/reader", &["User/alice"]),
        ],
        [],
    );
    let alice = user("alice", &["dev"]);
    let count = |namespace: &str| {
        let held = set.rules_for(&alice, namespace);
        held.rules.iter().filter(|rule| rule.resources == ["pods"]).count()
    };
    assert_eq!((count("a"), count("b"), count("")), (1, 0, 0));
    assert_eq!(
        set.rules_for(&alice, "b").missing,
        [r#"role.rbac.authorization.k8s.io "reader" not found"#]
    );
}

#[test]
fn broken_objects_grant_nothing() {
    let broken = [
        json!(null),
        json!([]),
        json!({"metadata": 7, "rules": {}}),
        json!({"metadata": {"name": "x"}, "rules": [7, "a", {"verbs": "get"}]}),
        json!({"metadata": {"name": "y"}, "roleRef": [], "subjects": {}}),
        json!({"metadata": {"name": "z"}, "roleRef": {"kind": "Thing", "name": "x"},
               "subjects": [7, {"kind": "User"}, {"kind": "Robot", "name": "alice"},
                            {"kind": "User", "name": "alice"}]}),
    ];
    let set = RoleSet::compile(&broken, &broken, &broken, &broken);
    let decision = set.allows(&user("alice", &[]), &get_pods("a"));
    assert!(!decision.allowed);
    assert_eq!(decision.reason, r#"RBAC: unsupported role reference kind: "Thing""#);
}

#[test]
fn refusals_are_in_upstreams_words() {
    let alice = user("alice", &[]);
    let set = empty();
    let status = |attributes: &Attributes<'_>| {
        attributes.forbidden(&alice, &set.allows(&alice, attributes)).message
    };
    assert_eq!(
        status(&Attributes { name: "", verb: "list", ..get_pods("a") }),
        r#"pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "a""#
    );
    assert_eq!(
        status(&Attributes {
            verb: "get",
            group: "apps",
            resource: "deployments",
            subresource: "scale",
            name: "d",
            ..Attributes::default()
        }),
        r#"deployments.apps "d" is forbidden: User "alice" cannot get resource "deployments/scale" in API group "apps" at the cluster scope"#
    );
    assert_eq!(
        status(&Attributes::path("get", "/metrics")),
        r#"forbidden: User "alice" cannot get path "/metrics""#
    );
}

#[test]
fn a_group_is_not_a_user() {
    let set = RoleSet::compile(
        [],
        [&role("reader", reads_pods())],
        [],
        [&binding("readers", "ClusterRole/reader", &[&format!("User/{AUTHENTICATED}")])],
    );
    assert!(!set.allows(&user("alice", &[]), &get_pods("a")).allowed);
}
