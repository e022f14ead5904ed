//! What may not change once it is stored.

use super::service::is_headless;
use super::volumes::SOURCES;
use crate::behaviour::certificates;
use crate::behaviour::immutable::{IMMUTABLE, same, unchanged};
use crate::behaviour::read::{at, is_true, list, list_mut, object_mut, text};
use crate::resource::Resource;
use crate::status::{FieldError, Path};
use interlock_quantity::Quantity;
use serde_json::{Value, json};

/// An old object and what it is to become.
struct Change<'a> {
    old: &'a Value,
    new: &'a Value,
    errors: &'a mut Vec<FieldError>,
}

pub(super) fn validate(
    resource: &Resource,
    old: &Value,
    new: &Value,
    errors: &mut Vec<FieldError>,
) {
    let mut change = Change { old, new, errors };
    match (&*resource.group, &*resource.kind) {
        ("", "ConfigMap") => change.sealed(&["data", "binaryData"]),
        ("", "Secret") => {
            change.fixed("type", "type");
            change.sealed(&["data"]);
        }
        ("", "Pod") => change.pod(),
        ("", "Service") => change.service(),
        ("", "PersistentVolume") => change.volume(),
        ("", "PersistentVolumeClaim") => change.claim(),
        ("apps", "Deployment" | "ReplicaSet" | "DaemonSet") => {
            change.fixed("spec.selector", "spec.selector");
        }
        ("apps", "StatefulSet") => change.stateful_set(),
        ("apps", "ControllerRevision") => change.fixed("data", "data"),
        ("batch", "Job") => change.job(),
        ("storage.k8s.io", "StorageClass") => change.storage_class(),
        ("storage.k8s.io", "VolumeAttachment") => change.fixed("spec", "spec"),
        ("storage.k8s.io", "CSIDriver") => {
            // The first path is misspelt upstream.
            change.fixed("spec.attachRequired", "spec.attachedRequired");
            change.fixed("spec.volumeLifecycleModes", "spec.volumeLifecycleModes");
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            if !same(at(old, "value"), at(new, "value")) {
                change.forbid("value", "may not be changed in an update.");
            }
            change.fixed("preemptionPolicy", "preemptionPolicy");
        }
        ("node.k8s.io", "RuntimeClass") => change.fixed("handler", "handler"),
        ("networking.k8s.io", "IngressClass") => change.fixed("spec.controller", "spec.controller"),
        ("discovery.k8s.io", "EndpointSlice") => change.fixed("addressType", "addressType"),
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            certificates::validate_update(old, new, change.errors);
        }
        _ => {}
    }
}

impl Change<'_> {
    /// A field that may not change, and the path that upstream names it by.
    fn fixed(&mut self, field: &str, named: &str) {
        let root = Path::Root;
        let path = root.field(named);
        unchanged(at(self.old, field), at(self.new, field), &path, self.errors);
    }

    fn forbid(&mut self, field: &str, detail: &str) {
        self.errors.push(FieldError::forbidden(field, detail));
    }

    fn differs(&self, field: &str) -> bool {
        !same(at(self.old, field), at(self.new, field))
    }

    /// What is marked immutable stays so, and its content stays as it is.
    fn sealed(&mut self, content: &[&str]) {
        if !is_true(self.old, "immutable") {
            return;
        }
        let detail = "field is immutable when `immutable` is set";
        if !is_true(self.new, "immutable") {
            self.forbid("immutable", detail);
        }
        for field in content {
            if self.differs(field) {
                self.forbid(field, detail);
            }
        }
    }

    fn pod(&mut self) {
        for field in ["spec.containers", "spec.initContainers"] {
            if list(self.old, field).len() != list(self.new, field).len() {
                self.forbid(field, "pod updates may not add or remove containers");
                return;
            }
        }
        self.pod_deadline();
        let mut spec = at(self.new, "spec").clone();
        for field in ["containers", "initContainers"] {
            let before = list(at(self.old, "spec"), field);
            for (now, before) in list_mut(&mut spec, field).iter_mut().zip(before) {
                put_back(before, now, "image");
            }
        }
        let old_spec = at(self.old, "spec");
        for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
            put_back(old_spec, &mut spec, field);
        }
        if !list(old_spec, "schedulingGates").is_empty() {
            put_back(old_spec, &mut spec, "nodeSelector");
            put_back(old_spec, &mut spec, "affinity");
        }
        if !same(&spec, old_spec) {
            self.forbid(
                "spec",
                "pod updates may not change fields other than `spec.containers[*].image`,\
                 `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` \
                 (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` \
                 (allow it to be set to 1 if it was previously negative)",
            );
        }
        let before = list(self.old, "spec.tolerations");
        let now = list(self.new, "spec.tolerations");
        if !before.iter().all(|toleration| now.contains(toleration)) {
            self.forbid(
                "spec.tolerations",
                "existing toleration can not be modified except its tolerationSeconds",
            );
        }
    }

    fn pod_deadline(&mut self) {
        let field = "spec.activeDeadlineSeconds";
        let (old, new) = (at(self.old, field).as_i64(), at(self.new, field).as_i64());
        let detail = match (old, new) {
            (Some(old), Some(new)) if new > old => "must be less than or equal to previous value",
            (Some(_), None) => "must not update from a positive integer to nil value",
            _ => return,
        };
        self.errors.push(FieldError::invalid(field, at(self.new, field), detail));
    }

    fn service(&mut self) {
        let (old, new) = (at(self.old, "spec"), at(self.new, "spec"));
        let is_external = |spec: &Value| text(spec, "type") == "ExternalName";
        if is_external(old) || is_external(new) || (is_headless(old) && is_headless(new)) {
            return;
        }
        let (before, now) = (list(old, "clusterIPs"), list(new, "clusterIPs"));
        let detail = match (before.first(), now.first()) {
            (Some(_), None) => "primary clusterIP can not be unset",
            (Some(before), Some(now)) if before != now => "may not change once set",
            _ => return,
        };
        let shown = json!(now);
        self.errors.push(FieldError::invalid("spec.clusterIPs[0]", &shown, detail));
    }

    fn volume(&mut self) {
        let (old, new) = (at(self.old, "spec"), at(self.new, "spec"));
        let is_moved = SOURCES.iter().any(|source| {
            let mut now = at(new, source).clone();
            // A secret for expansion may be added later.
            if let Some(csi) = now.as_object_mut().filter(|_| *source == "csi")
                && at(old, "csi.controllerExpandSecretRef").is_null()
            {
                csi.remove("controllerExpandSecretRef");
            }
            !same(at(old, source), &now)
        });
        if is_moved {
            let detail = "spec.persistentvolumesource is immutable after creation";
            self.forbid("spec.persistentvolumesource", detail);
        }
        self.fixed("spec.volumeMode", "volumeMode");
        if !at(old, "nodeAffinity").is_null() && self.differs("spec.nodeAffinity") {
            let now = at(new, "nodeAffinity");
            self.errors.push(FieldError::invalid("nodeAffinity", now, IMMUTABLE));
        }
    }

    fn claim(&mut self) {
        let mut spec = at(self.new, "spec").clone();
        let old_spec = at(self.old, "spec");
        let had_no = |field: &str| text(old_spec, field).is_empty();
        if had_no("volumeName") {
            put_back(old_spec, &mut spec, "volumeName");
        }
        if at(old_spec, "storageClassName").is_null() {
            put_back(old_spec, &mut spec, "storageClassName");
        }
        if text(self.new, "status.phase") == "Bound" {
            put_back(old_spec, &mut spec, "volumeAttributesClassName");
            let size = at(old_spec, "resources.requests.storage").clone();
            if let Some(requests) = object_mut(&mut spec, "resources.requests") {
                requests.insert("storage".to_owned(), size);
            }
        }
        if !same(&spec, old_spec) {
            self.forbid(
                "spec",
                "spec is immutable after creation except resources.requests and \
                 volumeAttributesClassName for bound claims",
            );
        }
        let size = |object: &Value, path: &str| Quantity::from_value(at(object, path)).ok();
        let field = "spec.resources.requests.storage";
        let (before, now) = (size(self.old, field), size(self.new, field));
        // A claim may shrink back to what it has, after an expansion that failed.
        let has = size(self.old, "status.capacity.storage");
        let is_less = matches!((&before, &now), (Some(before), Some(now)) if now < before);
        if is_less && has.is_none_or(|has| now.is_some_and(|now| now <= has)) {
            self.forbid(field, "field can not be less than status.capacity");
        }
        self.fixed("spec.volumeMode", "volumeMode");
    }

    fn stateful_set(&mut self) {
        let mut spec = at(self.new, "spec").clone();
        let old_spec = at(self.old, "spec");
        for field in [
            "replicas",
            "template",
            "updateStrategy",
            "minReadySeconds",
            "ordinals",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
        ] {
            put_back(old_spec, &mut spec, field);
        }
        if !same(&spec, old_spec) {
            self.forbid(
                "spec",
                "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
                 'template', 'updateStrategy', 'revisionHistoryLimit', \
                 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
            );
        }
    }

    fn job(&mut self) {
        let (old, new) = (at(self.old, "spec"), at(self.new, "spec"));
        let is_indexed = text(new, "completionMode") == "Indexed";
        if !is_indexed {
            self.fixed("spec.completions", "spec.completions");
        } else if self.differs("spec.completions")
            && at(new, "completions") != at(new, "parallelism")
        {
            let detail = "can only be modified in tandem with spec.parallelism";
            let now = at(new, "completions");
            self.errors.push(FieldError::invalid("spec.completions", now, detail));
        }
        self.fixed("spec.selector", "spec.selector");
        let mut template = at(new, "template").clone();
        // A job that has not started may still be steered to other nodes.
        if is_true(old, "suspend") && at(self.old, "status.startTime").is_null() {
            let old_template = at(old, "template");
            for field in ["affinity", "nodeSelector", "tolerations", "schedulingGates"] {
                if let Some(pod) = template.get_mut("spec") {
                    put_back(at(old_template, "spec"), pod, field);
                }
            }
            for field in ["labels", "annotations"] {
                if let Some(metadata) = template.get_mut("metadata") {
                    put_back(at(old_template, "metadata"), metadata, field);
                }
            }
        }
        if !same(at(old, "template"), &template) {
            let now = at(new, "template");
            self.errors.push(FieldError::invalid("spec.template", now, IMMUTABLE));
        }
        for field in [
            "completionMode",
            "podFailurePolicy",
            "backoffLimitPerIndex",
            "managedBy",
            "successPolicy",
        ] {
            let path = format!("spec.{field}");
            self.fixed(&path, &path);
        }
    }

    fn storage_class(&mut self) {
        for (field, detail) in [
            ("parameters", "updates to parameters are forbidden."),
            ("provisioner", "updates to provisioner are forbidden."),
            ("reclaimPolicy", "updates to reclaimPolicy are forbidden."),
        ] {
            if self.differs(field) {
                self.forbid(field, detail);
            }
        }
        self.fixed("volumeBindingMode", "volumeBindingMode");
    }
}

/// Makes a field what it was, so that a change of it does not count.
fn put_back(old: &Value, new: &mut Value, field: &str) {
    let Some(new) = new.as_object_mut() else { return };
    match old.get(field) {
        Some(value) => new.insert(field.to_owned(), value.clone()),
        None => new.remove(field),
    };
}
