//! Who belongs to whom: controllers of objects, selectors, and what may be adopted.

use interlock_kernel::metadata::{is_deleting, name_of, namespace_of, uid_of};
use interlock_kernel::{Kind, Name, Object, Place, Subject, View};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, LabelSelectorRequirement, OwnerReference,
};
use kube_core::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A reference to the controller of an object: it is not gone for good while the object holds it.
pub fn owner_reference(kind: &Kind, owner: &DynamicObject) -> Value {
    json!({
        "apiVersion": kind.api_version(), "kind": kind.kind, "name": name_of(owner),
        "uid": uid_of(owner), "controller": true, "blockOwnerDeletion": true,
    })
}

/// The reference to the controller of an object.
pub fn controller_of(object: &DynamicObject) -> Option<&OwnerReference> {
    let owners = object.metadata.owner_references.iter().flatten();
    owners.into_iter().find(|owner| owner.controller == Some(true))
}

/// The controller of an object, if it is of this kind.
pub fn controller_of_kind<'a>(
    object: &'a DynamicObject,
    kind: &Kind,
) -> Option<&'a OwnerReference> {
    let is_of_kind = |owner: &&OwnerReference| {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        owner.kind == kind.kind && group == kind.group
    };
    controller_of(object).filter(is_of_kind)
}

/// The subject of a step about an object: `<namespace>/<name>`.
pub fn subject_of(object: &DynamicObject) -> Subject {
    Subject::from(format!("{}/{}", namespace_of(object), name_of(object)))
}

/// The object that a subject is about.
pub fn name_in(subject: &Subject) -> Name {
    let (namespace, name) = subject.split_once('/').unwrap_or_default();
    Name::within(namespace, name)
}

/// Whom a change of an object concerns, among the controllers of a kind: its controller, or, if it has
/// none, those that select it.
pub fn concerned(object: &DynamicObject, kind: &Kind, view: &dyn View) -> Vec<Subject> {
    let namespace = namespace_of(object);
    if controller_of(object).is_some() {
        let owner = controller_of_kind(object, kind);
        return owner
            .map(|owner| Subject::from(format!("{namespace}/{}", owner.name)))
            .into_iter()
            .collect();
    }
    let all = view.list(Place::CLUSTER, kind, Some(namespace));
    let selects = |owner: &Object| {
        selector_of(owner).is_ok_and(|selector| is_selected(&selector, labels_of(object)))
    };
    all.iter().filter(|owner| selects(owner)).map(|owner| subject_of(owner)).collect()
}

/// The labels of an object.
pub fn labels_of(object: &DynamicObject) -> Option<&BTreeMap<String, String>> {
    object.metadata.labels.as_ref()
}

/// The labels that a template gives to its pods.
pub fn labels_of_template(template: &Value) -> BTreeMap<String, String> {
    BTreeMap::deserialize(&template["metadata"]["labels"]).unwrap_or_default()
}

/// The `spec.selector` of an object, or what is wrong with it, in words.
pub fn selector_of(object: &DynamicObject) -> Result<LabelSelector, String> {
    let said = &object.data["spec"]["selector"];
    if said.is_null() {
        return Err("spec.selector is missing".to_owned());
    }
    let selector = read_selector(said)?;
    match flaw(&selector) {
        Some(flaw) => Err(format!("spec.selector: {flaw}")),
        None => Ok(selector),
    }
}

/// The value of a `spec.selector`, empty or not, or what is wrong with it, in words.
pub fn read_selector(said: &Value) -> Result<LabelSelector, String> {
    let selector =
        LabelSelector::deserialize(said).map_err(|error| format!("spec.selector: {error}"))?;
    match flaw_of_rules(&selector) {
        Some(flaw) => Err(format!("spec.selector: {flaw}")),
        None => Ok(selector),
    }
}

/// Whether a selector selects these labels. An empty one, and one that makes no sense, selects nothing:
/// a controller of all pods of a namespace is always a mistake.
pub fn is_selected(selector: &LabelSelector, labels: Option<&BTreeMap<String, String>>) -> bool {
    flaw(selector).is_none() && has_all(selector, labels)
}

/// Whether labels have all that a selector asks for: an empty one asks for nothing.
pub fn has_all(selector: &LabelSelector, labels: Option<&BTreeMap<String, String>>) -> bool {
    let has = |key: &String| labels.and_then(|labels| labels.get(key));
    let mut labels = selector.match_labels.iter().flatten();
    let mut rules = selector.match_expressions.iter().flatten();
    let holds = |rule: &LabelSelectorRequirement| {
        let is_among = |value: &String| rule.values.iter().flatten().any(|one| one == value);
        match rule.operator.as_str() {
            "In" => has(&rule.key).is_some_and(is_among),
            // What has no such label has none of its values either.
            "NotIn" => !has(&rule.key).is_some_and(is_among),
            "Exists" => has(&rule.key).is_some(),
            "DoesNotExist" => has(&rule.key).is_none(),
            _ => false,
        }
    };
    labels.all(|(key, value)| has(key) == Some(value)) && rules.all(holds)
}

/// What is wrong with a selector, in words.
fn flaw(selector: &LabelSelector) -> Option<String> {
    let rules = selector.match_expressions.as_ref().map_or(0, Vec::len);
    let labels = selector.match_labels.as_ref().map_or(0, BTreeMap::len);
    if rules + labels == 0 {
        return Some("it is empty, and would select every pod of the namespace".to_owned());
    }
    flaw_of_rules(selector)
}

fn flaw_of_rules(selector: &LabelSelector) -> Option<String> {
    selector.match_expressions.iter().flatten().find_map(flaw_of)
}

/// A `NotIn` without values would select everything, and values of `Exists` would mean nothing.
fn flaw_of(rule: &LabelSelectorRequirement) -> Option<String> {
    let (key, operator) = (&rule.key, rule.operator.as_str());
    let has_values = rule.values.as_ref().is_some_and(|values| !values.is_empty());
    match (operator, has_values) {
        ("In" | "NotIn", true) | ("Exists" | "DoesNotExist", false) => None,
        ("In" | "NotIn", false) => Some(format!("{operator} of {key} needs values")),
        ("Exists" | "DoesNotExist", true) => Some(format!("{operator} of {key} takes no values")),
        _ => Some(format!("{operator:?} of {key} is none of In, NotIn, Exists and DoesNotExist")),
    }
}

/// What an object is to an owner with a selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
pub enum Claim {
    /// It belongs to the owner.
    Own,
    /// It belongs to the owner, and its labels say otherwise.
    Strayed,
    /// It belongs to nobody, and its labels say that it is the owner's.
    Adoptable,
    /// It is none of the owner's business.
    Foreign,
}

/// An owner, as far as it matters to what belongs to it.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// Its identity.
    pub uid: &'a str,
    /// What it selects.
    pub selector: &'a LabelSelector,
}

impl Owner<'_> {
    /// What an object is to it.
    pub fn claim(&self, object: &DynamicObject) -> Claim {
        let is_selected = is_selected(self.selector, labels_of(object));
        match controller_of(object) {
            Some(controller) if controller.uid != self.uid => Claim::Foreign,
            Some(_) if is_selected => Claim::Own,
            Some(_) => Claim::Strayed,
            // One that is being deleted stays what it is to the end.
            None if is_selected && !is_deleting(object) => Claim::Adoptable,
            None => Claim::Foreign,
        }
    }
}

/// The patch that makes an owner the controller of an object.
pub fn adopting(kind: &Kind, owner: &DynamicObject, object: &DynamicObject) -> Value {
    let others = object.metadata.owner_references.iter().flatten();
    let others = others.filter(|known| known.uid != uid_of(owner)).map(|known| json!(known));
    let all: Vec<Value> = others.chain([owner_reference(kind, owner)]).collect();
    json!({"metadata": {"ownerReferences": all}})
}

/// The patch that takes an owner off an object.
pub fn releasing(owner: &DynamicObject, object: &DynamicObject) -> Value {
    let others = object.metadata.owner_references.iter().flatten();
    let others: Vec<_> = others.filter(|known| known.uid != uid_of(owner)).collect();
    json!({"metadata": {"ownerReferences": others}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{DEPLOYMENT, REPLICA_SET};

    fn object(value: Value) -> DynamicObject {
        let mut object = json!({"apiVersion": "v1", "kind": "Pod"});
        object["metadata"] = value;
        serde_json::from_value(object).expect("an object")
    }

    fn selector(value: Value) -> LabelSelector {
        serde_json::from_value(value).expect("a selector")
    }

    fn selects(rule: Value, labels: &[(&str, &str)]) -> bool {
        let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        is_selected(&selector(rule), Some(&labels))
    }

    fn rule(operator: &str, values: &[&str]) -> Value {
        json!({"matchExpressions": [{"key": "app", "operator": operator, "values": values}]})
    }

    #[test]
    fn all_that_a_selector_says_must_hold() {
        let both = json!({"matchLabels": {"app": "shop"},
            "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["test"]}]});
        assert!(selects(both.clone(), &[("app", "shop")]), "NotIn selects what has no such label");
        assert!(selects(both.clone(), &[("app", "shop"), ("tier", "live")]));
        assert!(!selects(both.clone(), &[("app", "shop"), ("tier", "test")]));
        assert!(!selects(both, &[("tier", "live")]));
        assert!(selects(rule("In", &["shop", "cart"]), &[("app", "cart")]));
        assert!(!selects(rule("In", &["shop"]), &[]));
        assert!(selects(rule("Exists", &[]), &[("app", "")]));
        assert!(selects(rule("DoesNotExist", &[]), &[("tier", "x")]));
        assert!(!selects(rule("DoesNotExist", &[]), &[("app", "x")]));
    }

    #[test]
    fn a_selector_that_makes_no_sense_selects_nothing_and_is_named() {
        let broken = [rule("Maybe", &[]), rule("NotIn", &[]), rule("Exists", &["a"]), json!({})];
        for said in broken {
            assert!(!selects(said.clone(), &[("app", "shop")]), "{said}");
            assert!(flaw(&selector(said.clone())).is_some(), "{said}");
        }
        let mut owner = object(json!({"name": "a"}));
        for (said, word) in [
            (Value::Null, "missing"),
            (json!("text"), "spec.selector: "),
            (json!({}), "every pod of the namespace"),
            (rule("NotIn", &[]), "NotIn of app needs values"),
        ] {
            owner.data = json!({"spec": {"selector": said}});
            let flaw = selector_of(&owner).expect_err("it is refused");
            assert!(flaw.contains(word), "{flaw}");
        }
    }

    #[test]
    fn a_controller_claims_its_own_and_what_nobody_has() {
        let selector = selector(json!({"matchLabels": {"app": "shop"}}));
        let owner = Owner { uid: "u1", selector: &selector };
        let with = |owner: &str, app: &str, metadata: Value| {
            let mut value = json!({"name": "p", "labels": {"app": app}});
            if !owner.is_empty() {
                value["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet",
                    "name": "r", "uid": owner, "controller": true}]);
            }
            interlock_kernel::testing::merge(&mut value, &metadata);
            object(value)
        };
        let leaving = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        let plain = json!({"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap",
            "name": "r", "uid": "u1"}]});
        for (pod, claim) in [
            (with("u1", "shop", json!({})), Claim::Own),
            (with("u1", "cart", json!({})), Claim::Strayed),
            (with("u2", "shop", json!({})), Claim::Foreign),
            (with("", "shop", json!({})), Claim::Adoptable),
            (with("", "shop", plain), Claim::Adoptable),
            (with("", "cart", json!({})), Claim::Foreign),
            (with("", "shop", leaving.clone()), Claim::Foreign),
            (with("u1", "shop", leaving), Claim::Own),
        ] {
            assert_eq!(owner.claim(&pod), claim, "{pod:?}");
        }
    }

    #[test]
    fn who_is_adopted_keeps_its_other_owners() {
        let owner = object(json!({"name": "r", "uid": "u1"}));
        let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u9"});
        let pod = object(json!({"name": "p", "ownerReferences": [other]}));
        let adopted = adopting(&REPLICA_SET, &owner, &pod);
        let owners = &adopted["metadata"]["ownerReferences"];
        assert_eq!((&owners[0]["uid"], &owners[1]["uid"]), (&json!("u9"), &json!("u1")));
        let pod = object(json!({"name": "p", "ownerReferences": owners}));
        assert_eq!(controller_of_kind(&pod, &REPLICA_SET).map(|it| &*it.name), Some("r"));
        assert_eq!(controller_of_kind(&pod, &DEPLOYMENT), None);
        let released = releasing(&owner, &pod);
        assert_eq!(released["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
    }
}
