//! The roles and bindings that every logical cluster begins with: one shared layer that nobody
//! writes to.
//!
//! A cluster that changes one of them gets a copy of its own, which then hides the shared one.
//! Roles for kubelets, the scheduler and the controllers of Kubernetes are left out: none of those
//! exists here.

use super::aggregation::{ClusterRole, ClusterRoles};
use super::identity;
use super::rbac::GROUP;
use super::rules::Rule;
use ring::digest;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];
const READ_WRITE: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// All bootstrap objects of a resource of the RBAC group, in order of name.
pub fn objects(resource: &str) -> &'static [Value] {
    match resource {
        "clusterroles" => cluster_roles(),
        "clusterrolebindings" => cluster_role_bindings(),
        _ => &[],
    }
}

/// The bootstrap cluster roles, in order of name. Aggregated ones hold what they gather among
/// themselves.
pub fn cluster_roles() -> &'static [Value] {
    static ROLES: LazyLock<Vec<Value>> = LazyLock::new(|| {
        let mut roles = plain_roles();
        roles.extend([
            aggregated("admin", "aggregate-to-admin", &[]),
            aggregated("edit", "aggregate-to-edit", &["aggregate-to-admin"]),
            aggregated("view", "aggregate-to-view", &["aggregate-to-edit"]),
        ]);
        let mut gathering = ClusterRoles::new(compile(&roles));
        for role in &mut roles {
            if role.get("aggregationRule").is_some() {
                let parts = gathering.rules_of(name(role)).unwrap_or_default();
                let mut seen = HashSet::new();
                let rules = parts.iter().flat_map(|rules| rules.iter());
                let rules: Vec<Value> =
                    rules.filter(|rule| seen.insert(*rule)).map(Rule::to_value).collect();
                role["rules"] = Value::Array(rules);
            }
        }
        roles.sort_by(|one, other| name(one).cmp(name(other)));
        roles
    });
    &ROLES
}

/// The bootstrap cluster role bindings, in order of name.
pub fn cluster_role_bindings() -> &'static [Value] {
    static BINDINGS: LazyLock<Vec<Value>> = LazyLock::new(|| {
        vec![
            binding("cluster-admin", &[identity::MASTERS]),
            // A cloud reads the keys of an issuer without an account here. Whoever rules the cluster
            // closes that by taking the subjects out of this binding.
            binding_of(
                "interlock:issuer-discovery",
                "system:service-account-issuer-discovery",
                &[identity::AUTHENTICATED, identity::UNAUTHENTICATED],
            ),
            binding("system:basic-user", &[identity::AUTHENTICATED]),
            binding("system:discovery", &[identity::AUTHENTICATED]),
            binding("system:monitoring", &["system:monitoring"]),
            binding(
                "system:public-info-viewer",
                &[identity::AUTHENTICATED, identity::UNAUTHENTICATED],
            ),
            binding("system:service-account-issuer-discovery", &[identity::SERVICE_ACCOUNTS]),
        ]
    });
    &BINDINGS
}

/// The roles as RBAC looks at them: read once, shared by all clusters.
pub(super) fn compiled_roles() -> &'static BTreeMap<Arc<str>, Arc<ClusterRole>> {
    static COMPILED: LazyLock<BTreeMap<Arc<str>, Arc<ClusterRole>>> =
        LazyLock::new(|| compile(cluster_roles()));
    &COMPILED
}

fn compile(roles: &[Value]) -> BTreeMap<Arc<str>, Arc<ClusterRole>> {
    let read = |role: &Value| (Arc::from(name(role)), Arc::new(ClusterRole::read(role)));
    roles.iter().map(read).collect()
}

fn name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

fn plain_roles() -> Vec<Value> {
    let health = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
    let discovery = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"];
    let all_discovery: Vec<&str> = discovery.iter().chain(&health).copied().collect();
    let monitoring = [
        "/healthz",
        "/healthz/*",
        "/livez",
        "/livez/*",
        "/metrics",
        "/metrics/slis",
        "/readyz",
        "/readyz/*",
    ];
    let keys = [
        "/.well-known/openid-configuration",
        "/.well-known/openid-configuration/",
        "/openid/v1/jwks",
        "/openid/v1/jwks/",
    ];
    let own_reviews = [
        rule(
            &["authorization.k8s.io"],
            &["create"],
            "selfsubjectaccessreviews selfsubjectrulesreviews",
        ),
        rule(&["authentication.k8s.io"], &["create"], "selfsubjectreviews"),
    ];
    let reviews = [
        rule(&["authentication.k8s.io"], &["create"], "tokenreviews"),
        rule(&["authorization.k8s.io"], &["create"], "subjectaccessreviews"),
    ];
    vec![
        role("cluster-admin", &[rule(&["*"], &["*"], "*"), paths(&["*"], &["*"])]),
        role("system:auth-delegator", &reviews),
        role("system:basic-user", &own_reviews),
        role("system:discovery", &[paths(&["get"], &all_discovery)]),
        role(
            "system:monitoring",
            &[paths(&["get"], &monitoring), rule(&[""], &["get"], "nodes/metrics")],
        ),
        role("system:public-info-viewer", &[paths(&["get"], &health)]),
        role("system:service-account-issuer-discovery", &[paths(&["get"], &keys)]),
        labelled(role("system:aggregate-to-admin", &admin_rules()), &["aggregate-to-admin"]),
        labelled(role("system:aggregate-to-edit", &edit_rules()), &["aggregate-to-edit"]),
        labelled(role("system:aggregate-to-view", &view_rules()), &["aggregate-to-view"]),
    ]
}

fn admin_rules() -> Vec<Value> {
    vec![
        rule(&["authorization.k8s.io"], &["create"], "localsubjectaccessreviews"),
        rule(&[GROUP], READ_WRITE, "rolebindings roles"),
    ]
}

fn edit_rules() -> Vec<Value> {
    vec![
        rule(
            &[""],
            READ,
            "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy",
        ),
        rule(&[""], &["impersonate"], "serviceaccounts"),
        rule(&[""], WRITE, "pods pods/attach pods/exec pods/portforward pods/proxy"),
        rule(&[""], &["create"], "pods/eviction"),
        rule(
            &[""],
            WRITE,
            "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale \
             secrets serviceaccounts services services/proxy",
        ),
        rule(&[""], &["create"], "serviceaccounts/token"),
        rule(&["", "events.k8s.io"], WRITE, "events"),
        rule(
            &["apps"],
            WRITE,
            "daemonsets deployments deployments/rollback deployments/scale replicasets \
             replicasets/scale statefulsets statefulsets/scale",
        ),
        rule(&["autoscaling"], WRITE, "horizontalpodautoscalers"),
        rule(&["batch"], WRITE, "cronjobs jobs"),
        rule(
            &["extensions"],
            WRITE,
            "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies \
             replicasets replicasets/scale replicationcontrollers/scale",
        ),
        rule(&["policy"], WRITE, "poddisruptionbudgets"),
        rule(&["networking.k8s.io"], WRITE, "ingresses networkpolicies"),
        rule(&["coordination.k8s.io"], READ_WRITE, "leases"),
        rule(&["resource.k8s.io"], WRITE, "resourceclaims resourceclaimtemplates"),
    ]
}

fn view_rules() -> Vec<Value> {
    vec![
        rule(
            &[""],
            READ,
            "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods \
             replicationcontrollers replicationcontrollers/scale serviceaccounts services \
             services/status",
        ),
        rule(
            &[""],
            READ,
            "bindings limitranges namespaces/status pods/log pods/status \
             replicationcontrollers/status resourcequotas resourcequotas/status",
        ),
        rule(&[""], READ, "namespaces"),
        rule(&["", "events.k8s.io"], READ, "events"),
        rule(&["discovery.k8s.io"], READ, "endpointslices"),
        rule(
            &["apps"],
            READ,
            "controllerrevisions daemonsets daemonsets/status deployments deployments/scale \
             deployments/status replicasets replicasets/scale replicasets/status statefulsets \
             statefulsets/scale statefulsets/status",
        ),
        rule(&["autoscaling"], READ, "horizontalpodautoscalers horizontalpodautoscalers/status"),
        rule(&["batch"], READ, "cronjobs cronjobs/status jobs jobs/status"),
        rule(
            &["extensions"],
            READ,
            "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses \
             ingresses/status networkpolicies replicasets replicasets/scale replicasets/status \
             replicationcontrollers/scale",
        ),
        rule(&["policy"], READ, "poddisruptionbudgets poddisruptionbudgets/status"),
        rule(&["networking.k8s.io"], READ, "ingresses ingresses/status networkpolicies"),
        rule(
            &["resource.k8s.io"],
            READ,
            "resourceclaims resourceclaims/status resourceclaimtemplates",
        ),
    ]
}

/// The resources are words of one text.
fn rule(groups: &[&str], verbs: &[&str], resources: &str) -> Value {
    let resources: Vec<&str> = resources.split_whitespace().collect();
    json!({"apiGroups": groups, "resources": resources, "verbs": verbs})
}

fn paths(verbs: &[&str], paths: &[&str]) -> Value {
    json!({"nonResourceURLs": paths, "verbs": verbs})
}

fn role(name: &str, rules: &[Value]) -> Value {
    let mut role = object("ClusterRole", name);
    role["rules"] = json!(rules);
    role
}

fn aggregated(name: &str, gathers: &str, labels: &[&str]) -> Value {
    let mut role = labelled(object("ClusterRole", name), labels);
    let selected = format!("{GROUP}/{gathers}");
    role["aggregationRule"] =
        json!({"clusterRoleSelectors": [{"matchLabels": {selected: "true"}}]});
    role
}

fn labelled(mut role: Value, labels: &[&str]) -> Value {
    for label in labels {
        role["metadata"]["labels"][format!("{GROUP}/{label}")] = json!("true");
    }
    role
}

/// The binding of the role of the same name.
fn binding(name: &str, groups: &[&str]) -> Value {
    binding_of(name, name, groups)
}

fn binding_of(name: &str, role: &str, groups: &[&str]) -> Value {
    let mut binding = object("ClusterRoleBinding", name);
    binding["roleRef"] = json!({"apiGroup": GROUP, "kind": "ClusterRole", "name": role});
    let subject = |group: &&str| json!({"apiGroup": GROUP, "kind": "Group", "name": group});
    binding["subjects"] = groups.iter().map(subject).collect();
    binding
}

fn object(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": kind,
        "metadata": {
            "name": name,
            "uid": stable_uid(kind, name),
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        },
    })
}

/// A uid that is the same in every process: a version 8 UUID from the kind and the name.
pub(crate) fn stable_uid(kind: &str, name: &str) -> String {
    let hash = digest::digest(&digest::SHA256, format!("interlock/{kind}/{name}").as_bytes());
    let number =
        hash.as_ref().iter().take(16).fold(0_u128, |sum, byte| sum << 8 | u128::from(*byte));
    let number = number & !(0xf << 76) & !(0x3 << 62) | 8 << 76 | 0x2 << 62;
    let hex = format!("{number:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(objects: &'static [Value], wanted: &str) -> &'static Value {
        objects.iter().find(|object| name(object) == wanted).expect("a bootstrap object")
    }

    #[test]
    fn objects_are_in_order_with_the_marks_that_upstream_gives_them() {
        for objects in [cluster_roles(), cluster_role_bindings()] {
            assert!(objects.windows(2).all(|pair| name(&pair[0]) < name(&pair[1])));
            for object in objects {
                let metadata = &object["metadata"];
                assert_eq!(metadata["labels"]["kubernetes.io/bootstrapping"], "rbac-defaults");
                let annotation = "rbac.authorization.kubernetes.io/autoupdate";
                assert_eq!(metadata["annotations"][annotation], "true");
                assert_eq!(metadata["uid"].as_str().map(str::len), Some(36));
            }
        }
        assert_eq!(objects("clusterroles").len(), 13);
        assert_eq!(objects("clusterrolebindings").len(), 7);
        assert!(objects("roles").is_empty());
    }

    #[test]
    fn uids_are_stable_and_differ() {
        assert_eq!(stable_uid("A", "b"), stable_uid("A", "b"));
        let all: HashSet<&str> = [cluster_roles(), cluster_role_bindings()]
            .into_iter()
            .flatten()
            .filter_map(|object| object["metadata"]["uid"].as_str())
            .collect();
        assert_eq!(all.len(), 20);
    }

    #[test]
    fn aggregated_roles_show_what_they_gather() {
        let rules = |name| find(cluster_roles(), name)["rules"].as_array().expect("rules").len();
        assert_eq!(rules("view"), view_rules().len());
        assert_eq!(rules("edit"), edit_rules().len() + view_rules().len());
        assert_eq!(rules("admin"), admin_rules().len() + rules("edit"));
    }

    #[test]
    fn nobody_may_view_secrets_by_viewing() {
        let view = find(cluster_roles(), "view").to_string();
        assert!(!view.contains("secrets"), "{view}");
    }

    #[test]
    fn every_binding_names_a_role_that_is_there() {
        for binding in cluster_role_bindings() {
            let role = binding["roleRef"]["name"].as_str().expect("a name");
            assert_eq!(name(find(cluster_roles(), role)), role);
        }
    }
}
