//! Field selectors: which fields of a kind can be selected by, and what they are.

use super::events;
use super::read::{at, is_true, list, number, text};
use crate::resource::Resource;
use serde_json::Value;

/// The value of a field that objects of this kind can be selected by. None: `field label not
/// supported`. Events are read in the form that is stored, through whichever face they are asked
/// for.
pub(crate) fn selectable_fields(
    resource: &Resource,
    object: &Value,
    field: &str,
) -> Option<String> {
    match field {
        "metadata.name" => return Some(text(object, field).to_owned()),
        // Upstream refuses this where kinds that live in no namespace list their fields themselves.
        "metadata.namespace" if !is_strict_about_place(resource) => {
            return Some(text(object, field).to_owned());
        }
        _ if resource.is_custom() => return custom_field(resource, object, field),
        _ => {}
    }
    let plain = || Some(text(object, field).to_owned());
    match (&*resource.group, &*resource.kind, field) {
        ("", "Pod", "status.podIP" | "status.podIPs") => Some(pod_address(object).to_owned()),
        ("", "Pod", "spec.host") => Some(text(object, "spec.nodeName").to_owned()),
        ("", "Pod", "spec.hostNetwork") | ("", "Node", "spec.unschedulable") => {
            Some(is_true(object, field).to_string())
        }
        (
            "",
            "Pod",
            "spec.nodeName"
            | "spec.restartPolicy"
            | "spec.schedulerName"
            | "spec.serviceAccountName"
            | "status.phase"
            | "status.nominatedNodeName",
        )
        | ("", "Namespace", "status.phase")
        | ("", "Secret", "type")
        | ("", "Service", "spec.clusterIP" | "spec.type")
        | ("certificates.k8s.io", "CertificateSigningRequest", "spec.signerName") => plain(),
        ("", "ReplicationController", "status.replicas")
        | ("apps", "ReplicaSet", "status.replicas") => Some(number(object, field).to_string()),
        ("batch", "Job", "status.successful") => {
            Some(number(object, "status.succeeded").to_string())
        }
        ("", "Event", _) => event_field(object, field),
        ("events.k8s.io", "Event", _) => {
            let core = events::core_field(field)?;
            let selected = event_field(object, &core)?;
            Some(if events::is_newer(object) { text(object, field).to_owned() } else { selected })
        }
        _ => None,
    }
}

/// A field that the definition of a custom kind names. What is not there is the empty text.
fn custom_field(resource: &Resource, object: &Value, field: &str) -> Option<String> {
    if !resource.selectable.iter().any(|selectable| &**selectable == field) {
        return None;
    }
    Some(match at(object, field) {
        Value::String(text) => text.clone(),
        value @ (Value::Bool(_) | Value::Number(_)) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    })
}

fn is_strict_about_place(resource: &Resource) -> bool {
    !resource.is_namespaced
        && matches!(
            (&*resource.group, &*resource.kind),
            ("", "Namespace" | "Node") | ("certificates.k8s.io", "CertificateSigningRequest")
        )
}

fn pod_address(object: &Value) -> &str {
    list(object, "status.podIPs")
        .first()
        .map_or_else(|| text(object, "status.podIP"), |first| text(first, "ip"))
}

fn event_field(object: &Value, field: &str) -> Option<String> {
    let known = match field {
        "source" => match text(object, "source.component") {
            "" => text(object, "reportingComponent"),
            component => component,
        },
        "reason"
        | "reportingComponent"
        | "type"
        | "involvedObject.kind"
        | "involvedObject.namespace"
        | "involvedObject.name"
        | "involvedObject.uid"
        | "involvedObject.apiVersion"
        | "involvedObject.resourceVersion"
        | "involvedObject.fieldPath" => text(object, field),
        _ => return None,
    };
    Some(known.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::behaviour::every_kind::built_in;
    use serde_json::json;

    #[test]
    fn every_kind_is_selected_by_name_and_place() {
        let object = json!({"metadata": {"name": "a", "namespace": "n"}});
        let selected = |group: &str, kind: &str, field: &str| {
            selectable_fields(&built_in(group, kind), &object, field)
        };
        assert_eq!(selected("", "ConfigMap", "metadata.name").as_deref(), Some("a"));
        assert_eq!(selected("", "ConfigMap", "metadata.namespace").as_deref(), Some("n"));
        assert_eq!(selected("", "ConfigMap", "data.x"), None);
        assert_eq!(selected("", "Namespace", "metadata.namespace"), None);
    }

    #[test]
    fn pods_and_jobs_are_selected_by_what_upstream_lists() {
        let pod = json!({"spec": {"nodeName": "n", "hostNetwork": true},
            "status": {"podIPs": [{"ip": "10.0.0.1"}]}});
        let of_pod = |field: &str| selectable_fields(&built_in("", "Pod"), &pod, field);
        assert_eq!(of_pod("spec.nodeName").as_deref(), Some("n"));
        assert_eq!(of_pod("spec.hostNetwork").as_deref(), Some("true"));
        assert_eq!(of_pod("status.podIP").as_deref(), Some("10.0.0.1"));
        assert_eq!(of_pod("status.phase").as_deref(), Some(""));
        assert_eq!(of_pod("spec.containers"), None);
        let job = selectable_fields(&built_in("batch", "Job"), &json!({}), "status.successful");
        assert_eq!(job.as_deref(), Some("0"));
    }

    #[test]
    fn an_event_is_selected_through_both_faces() {
        let event = json!({"involvedObject": {"name": "a"}, "reportingComponent": "c"});
        let core = |field: &str| selectable_fields(&built_in("", "Event"), &event, field);
        let newer =
            |field: &str| selectable_fields(&built_in("events.k8s.io", "Event"), &event, field);
        assert_eq!(core("involvedObject.name").as_deref(), Some("a"));
        assert_eq!(core("source").as_deref(), Some("c"));
        assert_eq!(core("regarding.name"), None);
        assert_eq!(newer("regarding.name").as_deref(), Some("a"));
        assert_eq!(newer("reportingController").as_deref(), Some("c"));
        assert_eq!(newer("involvedObject.name"), None);
        let mut turned = event.clone();
        events::to_events_v1(&mut turned);
        let resource = built_in("events.k8s.io", "Event");
        let selected = selectable_fields(&resource, &turned, "regarding.name");
        assert_eq!(selected.as_deref(), Some("a"));
    }
}
