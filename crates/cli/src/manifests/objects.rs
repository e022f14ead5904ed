//! The objects that manifests are made of.

use crate::run::install::NAMESPACE;
use interlock_kernel::Place;
use interlock_programs::roles::{self, Rules, cluster_role};
use interlock_programs::{Account, Listed};
use serde_json::{Value, json};

/// The role of one account of a program, at a place.
pub(super) fn role(rooms: &[Listed], account: Account, place: Place) -> Value {
    cluster_role(account.role(), &Rules::of(rooms, account, place))
}

pub(super) fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
}

pub(super) fn service_account(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": NAMESPACE},
    })
}

pub(super) fn account(name: &str) -> Value {
    json!({"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE})
}

/// The lease that one of several leads by. It is made beforehand, so that nobody needs to be
/// allowed to make leases, and each may change its own only.
pub(super) fn leading(lease: &str, account: &Value) -> Vec<Value> {
    let [role, binding] = bound(lease, &Rules::to_lead(lease).written(), account);
    vec![self::lease(lease), role, binding]
}

/// A Lease in the namespace of what is Interlock's alone, for somebody who must not make any.
pub(super) fn lease(name: &str) -> Value {
    let at = json!({"name": name, "namespace": NAMESPACE});
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": at})
}

/// A Role in that namespace, and who has it.
pub(super) fn bound(name: &str, rules: &Value, account: &Value) -> [Value; 2] {
    let at = json!({"name": name, "namespace": NAMESPACE});
    [
        json!({"apiVersion": roles::RBAC, "kind": "Role", "metadata": at, "rules": rules}),
        json!({
            "apiVersion": roles::RBAC, "kind": "RoleBinding", "metadata": at,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [account],
        }),
    ]
}

/// The Secret in which Kubernetes puts a token of an account that does not expire.
pub(super) fn token(account: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {
            "name": account, "namespace": NAMESPACE,
            "annotations": {"kubernetes.io/service-account.name": account},
        },
    })
}

pub(super) fn container(image: &str, args: &[&str]) -> Value {
    json!({
        "name": "interlock", "image": image, "args": args,
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
        },
    })
}

pub(super) fn deployment(name: &str, replicas: i32, container: &Value, volumes: &Value) -> Value {
    let labels = json!({"app.kubernetes.io/name": name});
    let spread = json!([{
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": labels},
    }]);
    let mut pod = json!({
        "serviceAccountName": name,
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    });
    if replicas > 1 {
        pod["topologySpreadConstraints"] = spread;
    }
    if volumes.as_array().is_some_and(|volumes| !volumes.is_empty()) {
        pod["volumes"] = volumes.clone();
    }
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    })
}
