//! What a grant takes over from the Placement that counts.

use super::observe::Scene;
use crate::record::GrantRecord;
use serde_json::{Value, json};

/// What the Placement says now.
pub(crate) fn said(scene: &Scene) -> Value {
    let spec = scene.rules.as_ref().map(|rules| rules.spec.clone()).unwrap_or_default();
    json!({"onUnreachable": spec.on_unreachable, "volumes": spec.volumes})
}

/// Whether a grant says the same.
pub(crate) fn is_current(scene: &Scene, grant: &GrantRecord) -> bool {
    let have = json!({"onUnreachable": grant.spec.on_unreachable, "volumes": grant.spec.volumes});
    said(scene) == have
}

/// The patch that makes a grant say the same. A merge patch leaves out what it does not name, so what
/// the Placement has no more is named as null.
pub(crate) fn change(scene: &Scene, grant: &GrantRecord) -> Value {
    let mut wanted = said(scene);
    let volumes = &mut wanted["volumes"];
    for key in ["repository", "syncSchedule"] {
        if volumes.get(key).is_none() {
            volumes[key] = Value::Null;
        }
    }
    if volumes.get("storageClasses").is_none() {
        volumes["storageClasses"] = json!({});
    }
    let classes = &mut volumes["storageClasses"];
    for class in grant.spec.volumes.storage_classes.keys() {
        if classes.get(class).is_none() {
            classes[class] = Value::Null;
        }
    }
    wanted
}
