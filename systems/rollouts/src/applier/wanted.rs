//! What an object of a bundle is on a cluster: its wave, its stamps, and whether one that is there is ours.

use super::{ANNOTATION_FORCE, ANNOTATION_PRUNE};
use crate::bundle::{Bundle, ObjectId, digest_of};
use interlock_api::rollouts::{
    ANNOTATION_CONTENT, ANNOTATION_ID, ANNOTATION_TOKEN, ANNOTATION_WAVE, LABEL_ROLLOUT, Target,
};
use interlock_kernel::metadata::{annotation, label};
use interlock_kernel::{Address, Kind, Name, Place};
use kube_core::DynamicObject;
use serde_json::{Map, Value, json};

/// The wave of namespaces and definitions: others need them.
const FIRST: i32 = 0;
/// The wave of what pods need to start.
const BEFORE_PODS: i32 = 1;
/// The wave of all else.
const REST: i32 = 2;

/// An object of a bundle.
pub(super) struct Wanted<'a> {
    pub(super) id: &'a ObjectId,
    pub(super) manifest: &'a Value,
}

/// The object of a bundle that an id names.
pub(super) fn find<'a>(bundle: &'a Bundle, id: &ObjectId) -> Option<Wanted<'a>> {
    // They are sorted.
    let place = bundle.objects().binary_search_by(|(known, _)| known.cmp(id)).ok()?;
    bundle.objects().get(place).map(|(id, manifest)| Wanted { id, manifest })
}

impl Wanted<'_> {
    /// As `apiVersion` and `kind` have it.
    pub(super) fn kind(&self) -> (String, String) {
        let api_version = self.manifest["apiVersion"].as_str().unwrap_or_default();
        (api_version.to_owned(), self.id.kind.clone())
    }

    /// The wave that it belongs to: the one that it names, or that of its kind.
    pub(super) fn wave(&self) -> i32 {
        let stated = self.manifest["metadata"]["annotations"][ANNOTATION_WAVE].as_str();
        let stated = stated.and_then(|wave| wave.trim().parse().ok());
        stated.unwrap_or_else(|| wave_of(self.id))
    }

    /// The digest of its content.
    pub(super) fn content(&self) -> String {
        digest_of(self.manifest.to_string().as_bytes())
    }

    /// The manifest as it is applied: with the label, and whose it is.
    pub(super) fn stamped(&self, cluster_uid: &str, target: &Target) -> Value {
        let mut object = self.manifest.clone();
        let stamps = [
            (ANNOTATION_ID, self.id.to_string()),
            (ANNOTATION_TOKEN, target.token.to_string()),
            (ANNOTATION_CONTENT, self.content()),
        ];
        let metadata = &mut object["metadata"];
        part(metadata, "labels").insert(LABEL_ROLLOUT.to_owned(), json!(cluster_uid));
        let annotations = part(metadata, "annotations");
        annotations.extend(stamps.map(|(key, value)| (key.to_owned(), json!(value))));
        if target.force {
            annotations.insert(ANNOTATION_FORCE.to_owned(), json!("true"));
        }
        object
    }
}

/// A map within metadata, made if it is not there.
fn part<'a>(metadata: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    if !metadata[key].is_object() {
        metadata[key] = json!({});
    }
    match &mut metadata[key] {
        Value::Object(fields) => fields,
        _ => unreachable!("it was made an object just now"),
    }
}

/// The wave of an object that names none.
pub(super) fn wave_of(id: &ObjectId) -> i32 {
    match (id.group.as_str(), id.kind.as_str()) {
        ("", "Namespace") | ("apiextensions.k8s.io", "CustomResourceDefinition") => FIRST,
        ("", "ServiceAccount" | "ConfigMap" | "Secret") | ("rbac.authorization.k8s.io", _) => {
            BEFORE_PODS
        }
        _ => REST,
    }
}

/// Whether objects of its kind hold data, and are pruned only if somebody asks for it.
pub(super) fn is_kept(id: &ObjectId) -> bool {
    matches!(
        (id.group.as_str(), id.kind.as_str()),
        ("", "Namespace" | "PersistentVolumeClaim")
            | ("apiextensions.k8s.io", "CustomResourceDefinition")
    )
}

/// Where an object of a bundle is. One that names no namespace is in `default`.
pub(super) fn address(id: &ObjectId, kind: &Kind) -> Address {
    let namespace = if id.namespace.is_empty() { "default" } else { &id.namespace };
    let name = match kind.is_namespaced {
        true => Name::within(namespace, &id.name),
        false => Name::cluster_wide(&id.name),
    };
    Address::new(Place::CLUSTER, kind, name)
}

/// Whether an object is ours: it has the label of the cluster, and says of itself what it is. A copy of ours names
/// another object.
pub(super) fn is_ours(object: &DynamicObject, cluster_uid: &str, id: &ObjectId) -> bool {
    let is_named = annotation(object, ANNOTATION_ID).and_then(ObjectId::read).as_ref() == Some(id);
    is_named && label(object, LABEL_ROLLOUT) == Some(cluster_uid)
}

/// Under which token an object was marked to be deleted.
pub(super) fn mark_of(object: &DynamicObject) -> Option<i64> {
    annotation(object, ANNOTATION_PRUNE)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> ObjectId {
        ObjectId::read(text).expect("an id")
    }

    #[test]
    fn what_others_need_comes_first_unless_an_object_names_its_wave() {
        for (text, wave, kept) in [
            ("/Namespace//shop", 0, true),
            ("apiextensions.k8s.io/CustomResourceDefinition//w", 0, true),
            ("/ServiceAccount/shop/a", 1, false),
            ("rbac.authorization.k8s.io/Role/shop/a", 1, false),
            ("/Secret/shop/a", 1, false),
            ("/PersistentVolumeClaim/shop/a", 2, true),
            ("apps/Deployment/shop/a", 2, false),
            ("example.com/ConfigMap/shop/a", 2, false),
        ] {
            assert_eq!((wave_of(&id(text)), is_kept(&id(text))), (wave, kept), "{text}");
        }
        let id = id("/ConfigMap/shop/a");
        for (stated, wave) in [("7", 7), (" -3 ", -3), ("soon", 1), ("", 1)] {
            let manifest = json!({"metadata": {"annotations": {ANNOTATION_WAVE: stated}}});
            assert_eq!(Wanted { id: &id, manifest: &manifest }.wave(), wave, "{stated}");
        }
    }

    #[test]
    fn an_object_is_stamped_and_keeps_what_it_says() {
        let id = id("/ConfigMap/shop/a");
        let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"},
            "metadata": {"name": "a", "labels": {"app": "shop"}, "annotations": "nonsense"}});
        let target = Target { token: 7, force: true, ..Target::default() };
        let stamped = Wanted { id: &id, manifest: &manifest }.stamped("uid-1", &target);
        assert_eq!(stamped["metadata"]["labels"], json!({"app": "shop", LABEL_ROLLOUT: "uid-1"}));
        assert_eq!(stamped["metadata"]["annotations"][ANNOTATION_TOKEN], "7");
        assert_eq!(stamped["metadata"]["annotations"][ANNOTATION_FORCE], "true");
        assert_eq!(stamped["data"], manifest["data"]);
        let object: DynamicObject = serde_json::from_value(stamped).expect("an object");
        assert!(is_ours(&object, "uid-1", &id) && !is_ours(&object, "uid-2", &id));
        let copy = ObjectId { name: "b".to_owned(), ..id };
        assert!(!is_ours(&object, "uid-1", &copy));
    }
}
