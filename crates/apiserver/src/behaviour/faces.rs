//! Kinds that are served in two forms and stored in one: events, and autoscalers.
//!
//! Everything after decoding works on the stored form; what a client sees, and what its patches are applied to, is the
//! form of the version that it asked for.

use super::events;
use super::read::{at, ensured, integer, list, text};
use crate::resource::Resource;
use serde_json::{Value, json};

/// Where autoscaling/v1 keeps what it has no fields for, as upstream has it.
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

/// Whether the objects of this version are stored in another form.
pub(crate) fn has_face(resource: &Resource) -> bool {
    face(resource).is_some()
}

/// Turns a stored object into the form of this version.
pub(crate) fn to_face(resource: &Resource, object: &mut Value) {
    match face(resource) {
        Some(Face::Event) => events::to_events_v1(object),
        Some(Face::Autoscaler) => to_autoscaling_v1(object),
        None => {}
    }
}

/// Turns an object of this version into the form that is stored.
pub(crate) fn from_face(resource: &Resource, object: &mut Value) {
    match face(resource) {
        Some(Face::Event) => events::from_events_v1(object),
        Some(Face::Autoscaler) => from_autoscaling_v1(object),
        None => {}
    }
}

/// The field that entries of managedFields of other versions call differently, in the words of this version. `to_face`
/// says in which direction.
pub(crate) fn rename_managed(resource: &Resource, object: &mut Value, to_face: bool) {
    if face(resource) == Some(Face::Event) {
        events::rename_managed(object, to_face);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Face {
    Event,
    Autoscaler,
}

fn face(resource: &Resource) -> Option<Face> {
    if resource.is_custom() {
        return None;
    }
    match (&*resource.group, &*resource.version) {
        ("events.k8s.io", _) => Some(Face::Event),
        ("autoscaling", "v1") => Some(Face::Autoscaler),
        _ => None,
    }
}

/// The one metric that autoscaling/v1 has a field for.
fn is_cpu_target(metric: &Value) -> bool {
    text(metric, "type") == "Resource"
        && text(metric, "resource.name") == "cpu"
        && text(metric, "resource.target.type") == "Utilization"
}

fn to_autoscaling_v1(object: &mut Value) {
    object["apiVersion"] = json!("autoscaling/v1");
    let mut metrics = list(object, "spec.metrics").to_vec();
    let place = metrics.iter().position(is_cpu_target);
    let target = place.map(|place| metrics.remove(place));
    let target = target.and_then(|metric| integer(&metric, "resource.target.averageUtilization"));
    let mut current = list(object, "status.currentMetrics").to_vec();
    let is_cpu = |metric: &Value| {
        text(metric, "resource.name") == "cpu"
            && integer(metric, "resource.current.averageUtilization").is_some()
    };
    let place = current.iter().position(is_cpu);
    let used = place.map(|place| current.remove(place));
    let used = used.and_then(|metric| integer(&metric, "resource.current.averageUtilization"));
    let kept = [
        (METRICS, json!(metrics)),
        (CURRENT_METRICS, json!(current)),
        (BEHAVIOR, at(object, "spec.behavior").clone()),
        (CONDITIONS, at(object, "status.conditions").clone()),
    ];
    if let Some(spec) = ensured(object, "spec") {
        spec.remove("metrics");
        spec.remove("behavior");
        if let Some(target) = target {
            spec.insert("targetCPUUtilizationPercentage".to_owned(), json!(target));
        }
    }
    if let Some(status) = ensured(object, "status") {
        status.remove("currentMetrics");
        status.remove("conditions");
        // Numbers that are no pointers in this version are written though they are 0.
        for field in ["currentReplicas", "desiredReplicas"] {
            status.entry(field).or_insert(json!(0));
        }
        if let Some(used) = used {
            status.insert("currentCPUUtilizationPercentage".to_owned(), json!(used));
        }
    }
    for (key, value) in kept {
        let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if !is_empty && let Some(annotations) = ensured(object, "metadata.annotations") {
            annotations.insert(key.to_owned(), json!(value.to_string()));
        }
    }
}

fn from_autoscaling_v1(object: &mut Value) {
    object["apiVersion"] = json!("autoscaling/v2");
    let mut taken = [METRICS, CURRENT_METRICS, BEHAVIOR, CONDITIONS].map(|key| {
        let annotations = ensured(object, "metadata")?.get_mut("annotations")?.as_object_mut()?;
        let kept = annotations.remove(key)?;
        // What cannot be read is left out, as upstream leaves it out.
        serde_json::from_str::<Value>(kept.as_str()?).ok()
    });
    if at(object, "metadata.annotations").as_object().is_some_and(serde_json::Map::is_empty)
        && let Some(metadata) = ensured(object, "metadata")
    {
        metadata.remove("annotations");
    }
    let [metrics, current, behavior, conditions] = &mut taken;
    if let Some(spec) = ensured(object, "spec") {
        let mut all = Vec::new();
        if let Some(target) = spec.remove("targetCPUUtilizationPercentage")
            && !target.is_null()
        {
            all.push(json!({"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": target}}}));
        }
        all.extend(metrics.take().and_then(|list| list.as_array().cloned()).unwrap_or_default());
        if !all.is_empty() {
            spec.insert("metrics".to_owned(), json!(all));
        }
        if let Some(behavior) = behavior.take().filter(Value::is_object) {
            spec.insert("behavior".to_owned(), behavior);
        }
    }
    if let Some(status) = ensured(object, "status") {
        let mut all = Vec::new();
        if let Some(used) = status.remove("currentCPUUtilizationPercentage")
            && !used.is_null()
        {
            all.push(json!({"type": "Resource", "resource": {"name": "cpu",
                "current": {"averageUtilization": used}}}));
        }
        all.extend(current.take().and_then(|list| list.as_array().cloned()).unwrap_or_default());
        if !all.is_empty() {
            status.insert("currentMetrics".to_owned(), json!(all));
        }
        if let Some(conditions) = conditions.take().filter(Value::is_array) {
            status.insert("conditions".to_owned(), conditions);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_autoscaler_survives_the_way_through_its_older_form() {
        let stored = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web"},
            "spec": {
                "maxReplicas": 5, "scaleTargetRef": {"kind": "Deployment", "name": "web"},
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}},
                "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 70}}},
                    {"type": "Resource", "resource": {"name": "memory",
                        "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
                ],
            },
            "status": {"currentReplicas": 2, "desiredReplicas": 3, "conditions": [{"type": "AbleToScale",
                "status": "True"}]},
        });
        let mut shown = stored.clone();
        to_autoscaling_v1(&mut shown);
        assert_eq!(shown["apiVersion"], "autoscaling/v1");
        assert_eq!(shown["spec"]["targetCPUUtilizationPercentage"], 70);
        assert_eq!(shown["spec"].get("metrics"), None);
        assert!(text(&shown["metadata"]["annotations"], "name").is_empty());
        from_autoscaling_v1(&mut shown);
        assert_eq!(shown, stored);
    }

    #[test]
    fn nonsense_in_the_annotations_of_an_autoscaler_is_left_out() {
        let mut object =
            json!({"metadata": {"annotations": {METRICS: "{", BEHAVIOR: "7"}}, "spec": null});
        from_autoscaling_v1(&mut object);
        assert_eq!(
            object,
            json!({"apiVersion": "autoscaling/v2", "metadata": {}, "spec": {}, "status": {}})
        );
    }
}
