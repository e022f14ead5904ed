//! Pods of a template: what tells one template from another, and the pod that is made of one.

use crate::kinds::NAMESPACE;
use crate::owned::owner_reference;
use interlock_api::names::{ANNOTATION_EPOCH, ANNOTATION_GRANT, RUNTIME_CLASS};
use interlock_kernel::metadata::{annotation, is_deleting, label};
use interlock_kernel::{Kind, Name, Place, View};
use kube_core::DynamicObject;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// On what a Deployment makes, upstream's own: which template it is of.
pub const LABEL_TEMPLATE_HASH: &str = "pod-template-hash";
/// On a pod that is a process: it stays until its process is seen gone, even if somebody deletes it
/// by force. The runtime takes it off.
pub const FINALIZER_PROCESS: &str = "interlock.dev/process";
/// On a pod of a placed namespace: the name of the grant that the namespace is of.
pub const LABEL_GRANT: &str = ANNOTATION_GRANT;

/// Letters and digits that spell no word and are not mistaken for each other, as in upstream's names.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// As many as tell templates apart: a second template with the hash of the first is one in 10^14.
const HASH_LETTERS: usize = 10;

/// What tells a template from others: the same for templates that say the same, whatever order their
/// fields have, and whether or not [`LABEL_TEMPLATE_HASH`] is on them. It may be part of a name.
pub fn hash(template: &Value) -> String {
    let mut rest = digest(&canonical(template));
    let mut text = String::with_capacity(HASH_LETTERS);
    for _ in 0..HASH_LETTERS {
        let place = usize::try_from(rest % LETTERS.len() as u64).unwrap_or(0);
        text.push(char::from(LETTERS[place]));
        rest /= LETTERS.len() as u64;
    }
    text
}

/// Whether two templates say the same, [`LABEL_TEMPLATE_HASH`] aside.
pub fn is_same(one: &Value, other: &Value) -> bool {
    is_same_but(&["metadata", "labels", LABEL_TEMPLATE_HASH], one, other)
}

/// Whether two values say the same, the field of a path aside. One that is null is one that is not there.
fn is_same_but(path: &[&str], one: &Value, other: &Value) -> bool {
    let field = |key: &String, one: &Map<String, Value>, other: &Map<String, Value>| {
        let rest: &[&str] = match path {
            [first] if first == key => return true,
            [first, rest @ ..] if first == key => rest,
            _ => &[],
        };
        let says = |map: &Map<String, Value>| map.get(key).is_some_and(|value| !value.is_null());
        match (one.get(key), other.get(key)) {
            (Some(one), Some(other)) => is_same_but(rest, one, other),
            _ => !says(one) && !says(other),
        }
    };
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.keys().chain(other.keys()).all(|key| field(key, one, other))
        }
        (Value::Array(one), Value::Array(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len() && pairs.all(|(one, other)| is_same_but(&[], one, other))
        }
        (one, other) => one == other,
    }
}

/// A template without the label that is written on it by us.
pub fn without_hash(template: &Value) -> Value {
    let mut plain = template.clone();
    let labels = plain.pointer_mut("/metadata/labels").and_then(Value::as_object_mut);
    if let Some(labels) = labels {
        labels.remove(LABEL_TEMPLATE_HASH);
    }
    plain
}

/// A template with a hash as its label.
pub fn with_hash(template: &Value, hash: &str) -> Value {
    let mut labelled = template.clone();
    if !labelled["metadata"].is_object() {
        labelled = json!({"spec": labelled["spec"], "metadata": {}});
    }
    put(&mut labelled["metadata"]["labels"], LABEL_TEMPLATE_HASH, hash);
    labelled
}

/// A template as text that does not depend on the order of fields. A field that is null is one that
/// is not there.
fn canonical(template: &Value) -> String {
    let mut text = String::new();
    write_sorted(&without_hash(template), &mut text);
    text
}

fn write_sorted(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().filter(|(_, value)| !value.is_null()).collect();
            fields.sort_by_key(|(key, _)| *key);
            text.push('{');
            for (key, value) in fields {
                // To write into a text cannot fail.
                let _ = write!(text, "{}:", Value::String(key.clone()));
                write_sorted(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_sorted(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let _ = write!(text, "{value}");
        }
    }
}

/// FNV-1a: it must give the same on every machine and in every version, and guards against nobody.
pub(crate) fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Which grant a namespace is of, and in which epoch, as far as the cache shows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Placed {
    /// The name of the grant.
    pub grant: String,
    /// The epoch that arrived last.
    pub epoch: String,
}

impl Placed {
    /// None: the namespace is not placed. The two notes are what the syncer writes with the namespace:
    /// one with a grant and without an epoch is not known to be of any epoch, and says so by an empty one,
    /// under which the runtime starts nothing.
    pub fn of(namespace: &DynamicObject) -> Option<Placed> {
        annotation(namespace, ANNOTATION_GRANT)?;
        let grant = label(namespace, LABEL_GRANT).or(namespace.metadata.name.as_deref());
        let epoch = annotation(namespace, ANNOTATION_EPOCH);
        Some(Placed {
            grant: grant.unwrap_or_default().to_owned(),
            epoch: epoch.unwrap_or_default().to_owned(),
        })
    }
}

/// What the namespace of a pod is, as the cache shows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub enum Home {
    /// The cache does not show it: nobody knows yet what its pods have to say.
    Unseen,
    /// It is being deleted: nothing can be made in it.
    Terminating,
    /// It is of no grant.
    Plain,
    /// It is of a grant.
    Placed(Placed),
}

impl Home {
    /// The namespace of this name.
    pub fn of(view: &dyn View, namespace: &str) -> Home {
        let name = Name::cluster_wide(namespace);
        match view.get(Place::CLUSTER, &NAMESPACE, &name) {
            None => Home::Unseen,
            Some(found) if is_deleting(&found) => Home::Terminating,
            Some(found) => Placed::of(&found).map_or(Home::Plain, Home::Placed),
        }
    }

    /// The grant that it is of.
    pub fn placed(&self) -> Option<&Placed> {
        match self {
            Home::Placed(placed) => Some(placed),
            Home::Unseen | Home::Terminating | Home::Plain => None,
        }
    }
}

/// What a pod is made of, but for its name.
#[derive(Debug, Clone, Copy)]
pub struct PodOf<'a> {
    /// The template, as its owner has it.
    pub template: &'a Value,
    /// The kind of its owner.
    pub kind: &'a Kind,
    /// Its owner.
    pub owner: &'a DynamicObject,
    /// The one node of the cluster, on which its processes run.
    pub node: &'a str,
    /// The grant that its namespace is of.
    pub placed: Option<&'a Placed>,
}

impl PodOf<'_> {
    /// The pod, as [`interlock_kernel::Write::Create`] wants it.
    ///
    /// A pod that is no process gets no node and no finalizer: nobody would run it, and nobody take
    /// the finalizer off.
    pub fn object(&self) -> Value {
        let said = &self.template["metadata"];
        let mut metadata = Map::new();
        for part in ["labels", "annotations", "finalizers"] {
            if !said[part].is_null() {
                metadata.insert(part.to_owned(), said[part].clone());
            }
        }
        let mut pod = json!({"metadata": metadata, "spec": self.template["spec"]});
        pod["metadata"]["ownerReferences"] = json!([owner_reference(self.kind, self.owner)]);
        if pod["spec"]["runtimeClassName"] == RUNTIME_CLASS {
            pod["spec"]["nodeName"] = json!(self.node);
            let others = said["finalizers"].as_array().into_iter().flatten();
            let others = others.filter(|known| *known != FINALIZER_PROCESS).cloned();
            let all: Vec<Value> = others.chain([json!(FINALIZER_PROCESS)]).collect();
            pod["metadata"]["finalizers"] = json!(all);
        }
        if let Some(Placed { grant, epoch }) = self.placed {
            put(&mut pod["metadata"]["labels"], LABEL_GRANT, grant);
            put(&mut pod["metadata"]["annotations"], ANNOTATION_EPOCH, epoch);
        }
        pod
    }
}

/// Puts an entry into a map of texts, which may not be there yet.
pub fn put(map: &mut Value, key: &str, value: &str) {
    if !map.is_object() {
        *map = json!({});
    }
    map[key] = json!(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::REPLICA_SET;

    fn template() -> Value {
        json!({
            "metadata": {"labels": {"app": "shop"}, "annotations": {"a": "b"}},
            "spec": {"runtimeClassName": "interlock-process", "containers": [{"name": "c"}]},
        })
    }

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).expect("an object")
    }

    fn owner() -> DynamicObject {
        object(json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": "shop-x", "namespace": "eu", "uid": "u1"}}))
    }

    fn placed() -> Placed {
        Placed { grant: "eu".to_owned(), epoch: "3".to_owned() }
    }

    #[test]
    fn a_hash_says_what_a_template_says_and_nothing_else() {
        let (plain, text) = (template(), hash(&template()));
        assert_eq!(text.len(), HASH_LETTERS);
        assert!(text.bytes().all(|letter| LETTERS.contains(&letter)), "{text}");
        assert_eq!(hash(&with_hash(&plain, &text)), text, "its own label is not part of it");
        let mut null = plain.clone();
        null["metadata"]["creationTimestamp"] = Value::Null;
        assert_eq!(hash(&null), text);
        let mut other = plain.clone();
        other["spec"]["containers"][0]["name"] = json!("d");
        assert_ne!(hash(&other), text);
        assert!(is_same(&null, &plain) && !is_same(&other, &plain));
    }

    #[test]
    fn a_hash_does_not_depend_on_the_order_of_fields() {
        let one: Value = serde_json::from_str(r#"{"spec":{"a":1,"b":[1,2]}}"#).expect("JSON");
        let other: Value = serde_json::from_str(r#"{"spec":{"b":[1,2],"a":1}}"#).expect("JSON");
        let lists: Value = serde_json::from_str(r#"{"spec":{"b":[2,1],"a":1}}"#).expect("JSON");
        assert_eq!(hash(&one), hash(&other));
        assert_ne!(hash(&one), hash(&lists), "the order of a list says something");
    }

    #[test]
    fn the_hash_stays_the_same_in_every_version() {
        assert_eq!(digest(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(digest("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_pod_has_what_its_template_says_and_whom_it_belongs_to() {
        let (template, owner) = (template(), owner());
        let of = PodOf {
            template: &template,
            kind: &REPLICA_SET,
            owner: &owner,
            node: "n",
            placed: None,
        };
        let pod = of.object();
        assert_eq!(pod["metadata"]["labels"], json!({"app": "shop"}));
        assert_eq!(pod["metadata"]["annotations"], json!({"a": "b"}));
        assert_eq!(pod["metadata"]["finalizers"], json!([FINALIZER_PROCESS]));
        assert_eq!(pod["metadata"]["ownerReferences"][0]["uid"], "u1");
        assert_eq!(pod["metadata"]["ownerReferences"][0]["blockOwnerDeletion"], true);
        assert_eq!(
            (&pod["spec"]["nodeName"], &pod["spec"]["containers"][0]["name"]),
            (&json!("n"), &json!("c"))
        );
    }

    #[test]
    fn a_pod_of_a_placed_namespace_says_its_grant_and_epoch() {
        let (template, owner, placed) = (json!({"spec": {}}), owner(), placed());
        let placed = Some(&placed);
        let pod =
            PodOf { template: &template, kind: &REPLICA_SET, owner: &owner, node: "n", placed };
        let pod = pod.object();
        assert_eq!(pod["metadata"]["labels"], json!({LABEL_GRANT: "eu"}));
        assert_eq!(pod["metadata"]["annotations"], json!({ANNOTATION_EPOCH: "3"}));
    }

    #[test]
    fn a_pod_that_is_no_process_gets_no_node_and_nothing_that_only_the_runtime_takes_off() {
        let (template, owner) = (json!({"spec": {"containers": []}}), owner());
        let pod = PodOf {
            template: &template,
            kind: &REPLICA_SET,
            owner: &owner,
            node: "n",
            placed: None,
        };
        let pod = pod.object();
        assert!(pod["spec"]["nodeName"].is_null() && pod["metadata"]["finalizers"].is_null());
    }

    #[test]
    fn a_namespace_says_whether_it_is_placed() {
        let metadata = json!({"name": "eu", "labels": {LABEL_GRANT: "eu"},
            "annotations": {ANNOTATION_GRANT: "uid", ANNOTATION_EPOCH: "3"}});
        let namespace = |metadata: &Value| {
            object(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
        };
        assert_eq!(Placed::of(&namespace(&metadata)), Some(placed()));
        assert_eq!(Placed::of(&namespace(&json!({"name": "eu"}))), None);
    }

    #[test]
    fn a_template_without_labels_can_be_labelled() {
        for template in [json!({"spec": {}}), json!({"metadata": null, "spec": {}}), json!("x")] {
            let labelled = with_hash(&template, "h");
            assert_eq!(labelled["metadata"]["labels"][LABEL_TEMPLATE_HASH], "h");
        }
    }
}
