//! What a grant takes over from the Placement that counts.

use super::observe::Scene;
use crate::record::GrantRecord;
use interlock_api::placement::{OnUnreachable, VolumePolicy};
use serde_json::{Value, json};

/// What the Placement says now.
pub(crate) fn said(scene: &Scene) -> Value {
    let spec = scene.rules.as_ref().map(|rules| rules.spec.clone()).unwrap_or_default();
    written(spec.on_unreachable, &spec.volumes, spec.await_rights)
}

/// What is not said is left out: a server refuses a null where it creates an object.
fn written(
    on_unreachable: OnUnreachable,
    volumes: &VolumePolicy,
    await_rights: Option<bool>,
) -> Value {
    let mut said = json!({"onUnreachable": on_unreachable, "volumes": volumes});
    if let Some(await_rights) = await_rights {
        said["awaitRights"] = json!(await_rights);
    }
    said
}

/// Whether a grant says the same.
pub(crate) fn is_current(scene: &Scene, grant: &GrantRecord) -> bool {
    let spec = &grant.spec;
    said(scene) == written(spec.on_unreachable, &spec.volumes, spec.await_rights)
}

/// The patch that makes a grant say the same. A merge patch leaves out what it does not name, so what
/// the Placement has no more is named as null.
pub(crate) fn change(scene: &Scene, grant: &GrantRecord) -> Value {
    let mut wanted = said(scene);
    if wanted.get("awaitRights").is_none() && grant.spec.await_rights.is_some() {
        wanted["awaitRights"] = Value::Null;
    }
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
