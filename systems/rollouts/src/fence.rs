//! The fence of a cluster, as manifests: what refuses the writes of an applier that follows an older target.
//!
//! A ConfigMap holds the token; a ValidatingAdmissionPolicy has it as its parameter, and is for the user of the applier
//! alone. Preconditions stop late updates of objects that changed since. They stop neither a late creation of what was rolled
//! back, nor a deletion by an applier whose view of the record is old: the policy does.
//!
//! | a request of the applier | what it needs |
//! |---|---|
//! | create, update | the token of the object is that of the fence, or above it |
//! | update | the object is ours (label and id), or the write says that it takes over what others have |
//! | update that marks | the mark becomes that of the fence |
//! | delete | the mark of the object is that of the fence |
//! | any, in a namespace of a Grant | refused: the namespace is written at the hub |
//! | any, in the namespace of the agent | refused, but for the fence itself, whose token only grows |

#[cfg(test)]
mod tests;

use interlock_api::names::ANNOTATION_GRANT;
use interlock_api::rollouts::{
    ANNOTATION_ID, ANNOTATION_TOKEN, FENCE_NAME, FENCE_POLICY, LABEL_ROLLOUT, SYSTEM_NAMESPACE,
};
use interlock_kernel::{GroupVersion, Kind};
use serde_json::{Value, json};

const ADMISSION: GroupVersion = GroupVersion::new("admissionregistration.k8s.io", "v1");
/// On an object that is to be deleted: the token under which it was marked. It is no annotation of a bundle's content, so
/// the mark takes no field from those who apply it.
pub const ANNOTATION_PRUNE: &str = "interlock.dev/prune";
/// On an object of a target that takes over what others have.
pub const ANNOTATION_FORCE: &str = "interlock.dev/force";

/// The policy of the fence.
pub const POLICY: Kind =
    Kind::cluster_wide(ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies");
/// What binds it to its parameter.
pub const BINDING: Kind = Kind::cluster_wide(
    ADMISSION,
    "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings",
);
/// What the messages begin with by which the policy refuses a write that is older than the fence.
const FENCED: &str = "Fenced:";

/// What a probe asks an API server to make, as a dry run: under an older token than that of the fence it must be refused.
pub fn probe(token: i64) -> Value {
    let id = format!("/ConfigMap/{PROBE_NAMESPACE}/{PROBE_NAME}");
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": PROBE_NAME, "namespace": PROBE_NAMESPACE,
            "annotations": {ANNOTATION_ID: id, ANNOTATION_TOKEN: token.to_string()},
        },
    })
}

/// The name of what a probe asks for. It is never made.
const PROBE_NAME: &str = "interlock-rollout-probe";
/// A namespace that every cluster has.
pub const PROBE_NAMESPACE: &str = "default";

/// Whether it was the fence that refused a write, by what the API server said. A server that refuses for another reason
/// proves nothing.
pub fn is_refusal(message: &str) -> bool {
    message.contains(FENCE_POLICY) && message.contains(FENCED)
}

/// The words with which the messages of the policy begin.
const WORDS: [&str; 5] =
    ["Fenced", "FenceFalls", "SystemNamespace", "NamespaceIsPlaced", "NotOurs"];

/// The word with which the policy refused a write; None: something else refused it.
pub(crate) fn word_of(message: &str) -> Option<&'static str> {
    let (by, said) = message.split_once("denied request: ")?;
    let is_it = |word: &&str| said.strip_prefix(*word).is_some_and(|rest| rest.starts_with(':'));
    WORDS.into_iter().find(is_it).filter(|_| by.contains(FENCE_POLICY))
}

/// The condition with which our API server says that a write is committed only by the parameter by which it was judged.
pub const EXACT: &str = "interlock.dev/Exact";

/// All of it, in the order in which it is applied: the ConfigMap comes first, since without it the policy refuses nothing.
pub fn manifests(user: &str) -> Vec<Value> {
    vec![namespace(), config_map(), policy(user), binding()]
}

/// The namespace of the fence.
pub fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}})
}

/// The ConfigMap of a fence that was never raised. It names no token, so that to apply it once more lowers no fence.
pub fn config_map() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": FENCE_NAME, "namespace": SYSTEM_NAMESPACE,
            // By the label it wakes the rooms of the applier. It is no object of a rollout: it names no id.
            "labels": {LABEL_ROLLOUT: "fence"},
        },
    })
}

/// The binding of the policy to the ConfigMap. `Deny` without the ConfigMap would refuse the writes of everybody: API servers
/// look for the parameter before they ask for which user the policy is. The applier itself writes nothing without it.
pub fn binding() -> Value {
    json!({
        "apiVersion": ADMISSION_V1, "kind": BINDING.kind, "metadata": {"name": FENCE_POLICY},
        "spec": {
            "policyName": FENCE_POLICY, "validationActions": ["Deny"],
            "paramRef": {
                "name": FENCE_NAME, "namespace": SYSTEM_NAMESPACE,
                "parameterNotFoundAction": "Allow",
            },
        },
    })
}

const ADMISSION_V1: &str = "admissionregistration.k8s.io/v1";

/// The policy, for the user of an applier.
pub fn policy(user: &str) -> Value {
    let rule = json!({
        "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "scope": "*",
        "operations": ["CREATE", "UPDATE", "DELETE"],
    });
    let user = user.replace('\\', "\\\\").replace('\'', "\\'");
    json!({
        "apiVersion": ADMISSION_V1, "kind": POLICY.kind, "metadata": {"name": FENCE_POLICY},
        "spec": {
            "failurePolicy": "Fail",
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [
                {"name": "applier", "expression": format!("request.userInfo.username == '{user}'")},
                // It asks whether it may do something: nothing is written.
                {"name": "write", "expression": "request.resource.group != 'authorization.k8s.io'"},
            ],
            "variables": variables(),
            "validations": validations(),
        },
    })
}

/// An annotation of an object as a number; -1: it has none.
fn number(of: &str, key: &str) -> String {
    format!(
        "{of} != null && has({of}.metadata.annotations) && '{key}' in {of}.metadata.annotations \
         ? int({of}.metadata.annotations['{key}']) : -1"
    )
}

fn variables() -> Value {
    let named = |name: &str, expression: String| json!({"name": name, "expression": expression});
    json!([
        // One that was never raised has none.
        named(
            "fence",
            "has(params.data) && 'token' in params.data ? int(params.data.token) : 0".to_owned(),
        ),
        // What is of the cluster as a whole has none.
        named("place", "has(request.namespace) ? request.namespace : ''".to_owned()),
        named(
            "isFence",
            format!(
                "request.resource.group == '' && request.resource.resource == 'configmaps' \
                 && variables.place == '{SYSTEM_NAMESPACE}' && request.name == '{FENCE_NAME}'"
            ),
        ),
        named("token", number("object", ANNOTATION_TOKEN)),
        named("mark", number("object", ANNOTATION_PRUNE)),
        named("oldMark", number("oldObject", ANNOTATION_PRUNE)),
        named(
            "isMarked",
            "request.operation == 'UPDATE' && variables.mark == variables.fence \
             && variables.oldMark != variables.fence"
                .to_owned(),
        ),
        named(
            "isOurs",
            format!(
                "oldObject != null && has(oldObject.metadata.labels) \
                 && '{LABEL_ROLLOUT}' in oldObject.metadata.labels \
                 && has(oldObject.metadata.annotations) \
                 && '{ANNOTATION_ID}' in oldObject.metadata.annotations \
                 && object != null && has(object.metadata.annotations) \
                 && '{ANNOTATION_ID}' in object.metadata.annotations \
                 && oldObject.metadata.annotations['{ANNOTATION_ID}'] \
                 == object.metadata.annotations['{ANNOTATION_ID}']"
            ),
        ),
        named(
            "isForced",
            format!(
                "object != null && has(object.metadata.annotations) \
                 && '{ANNOTATION_FORCE}' in object.metadata.annotations"
            ),
        ),
        named(
            "home",
            "request.resource.group == '' && request.resource.resource == 'namespaces' \
             ? (oldObject != null ? oldObject : object) : namespaceObject"
                .to_owned(),
        ),
        named(
            "grant",
            format!(
                "variables.home != null && has(variables.home.metadata.annotations) \
                 && '{ANNOTATION_GRANT}' in variables.home.metadata.annotations \
                 ? variables.home.metadata.annotations['{ANNOTATION_GRANT}'] : ''"
            ),
        ),
    ])
}

fn validations() -> Value {
    json!([
        {
            "expression": "variables.isFence || request.operation == 'DELETE' || variables.isMarked \
                           || variables.token >= variables.fence",
            "messageExpression": "'Fenced: the write has token ' + string(variables.token) \
                                  + ', and the fence is at ' + string(variables.fence)",
            "message": "Fenced: the write is older than the fence",
        },
        {
            "expression": "!variables.isFence || (request.operation == 'UPDATE' \
                           && int(object.data.token) >= variables.fence)",
            "message": "FenceFalls: the token of the fence only grows",
        },
        {
            "expression": format!(
                "variables.isFence || variables.place != '{SYSTEM_NAMESPACE}'"
            ),
            "message": format!("SystemNamespace: no bundle has objects in {SYSTEM_NAMESPACE}"),
        },
        {
            "expression": "variables.isFence || variables.grant == ''",
            "messageExpression": "'NamespaceIsPlaced: the namespace belongs to the Grant ' + variables.grant \
                                  + '; apply the object to the namespace at the hub'",
            "message": "NamespaceIsPlaced: the namespace belongs to a Grant",
        },
        {
            "expression": "variables.isFence || request.operation != 'UPDATE' \
                           || variables.mark == variables.oldMark \
                           || variables.mark == variables.fence",
            "messageExpression": "'Fenced: the mark has token ' + string(variables.mark) \
                                  + ', and the fence is at ' + string(variables.fence)",
            "message": "Fenced: the mark is older than the fence",
        },
        {
            "expression": "variables.isFence || request.operation != 'UPDATE' || variables.isOurs \
                           || variables.isForced",
            "message": "NotOurs: the object is there, and no rollout of this cluster made it",
        },
        {
            "expression": "variables.isFence || request.operation != 'DELETE' \
                           || variables.oldMark == variables.fence",
            "messageExpression": "'Fenced: the object is marked under ' + string(variables.oldMark) \
                                  + ', and the fence is at ' + string(variables.fence)",
            "message": "Fenced: the object is not marked under the token of the fence",
        },
    ])
}
