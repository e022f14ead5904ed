//! What of a pod's spec may change once it exists: `ephemeralcontainers` and `resize`.

use super::patch;
use crate::behaviour::read::{list, list_mut};
use crate::brought::Brought;
use crate::call::Call;
use crate::decode::{self, PatchForm};
use crate::http::Body;
use crate::object;
use crate::request::{Verb, WriteKind};
use crate::status::{FieldError, Status};
use ::http::Response;
use serde_json::Value;

const EPHEMERAL: &str = "spec.ephemeralContainers";

/// Serves a request to one of the two.
pub(super) async fn serve(mut call: Call, brought: Brought) -> Result<Response<Body>, Status> {
    let written = match brought.verb {
        Verb::Get => {
            let rendering = call.rendering(&brought)?;
            return call.get(&rendering).await;
        }
        Verb::Update => {
            call.take_options(&brought, WriteKind::Update)?;
            let given = call.object_from(&brought.content_type, &brought.body)?;
            call.change(false, |live| {
                let live = live.map(|live| live.object.clone()).unwrap_or_default();
                changed(&call, live, &given)
            })
            .await?
        }
        Verb::Patch => {
            call.take_options(&brought, WriteKind::Patch)?;
            let form = PatchForm::of(Some(&brought.content_type), false)?;
            if form == PatchForm::Apply {
                return Err(Status::unsupported_media_type(
                    "server-side apply is not supported for this subresource",
                ));
            }
            let decoded = decode::patch_body(form, &brought.body)?;
            let problems = decoded.strict_errors();
            call.change(false, |live| {
                let live = live.map(|live| live.object.clone()).unwrap_or_default();
                let patched = patch::apply_to(&call, form, &live, &decoded.value)?;
                let patched = call.take(patched, &problems, 422)?;
                changed(&call, live, &patched)
            })
            .await?
        }
        _ => return Err(crate::brought::not_allowed()),
    };
    call.written(&brought, written)
}

/// The pod with what this subresource may change as it is in the given one, and nothing else.
fn changed(call: &Call, live: Value, given: &Value) -> Result<Value, Status> {
    let mut new = live;
    let errors = if call.subresource == "resize" {
        resize(&mut new, given);
        Vec::new()
    } else {
        let errors = lost_containers(&new, given);
        let containers = list(given, EPHEMERAL).to_vec();
        if !containers.is_empty() {
            object::put_at(&mut new, &["spec", "ephemeralContainers"], containers.into());
        }
        errors
    };
    if !errors.is_empty() {
        return Err(Status::invalid("", "Pod", &call.name, &errors));
    }
    for field in ["resourceVersion", "uid"] {
        let seen = object::meta_text(given, field);
        if !seen.is_empty() {
            object::metadata_mut(&mut new).insert(field.to_owned(), seen.into());
        }
    }
    Ok(new)
}

fn find<'a>(containers: &'a [Value], named: &Value) -> Option<&'a Value> {
    containers.iter().find(|container| container["name"] == named["name"])
}

/// Ephemeral containers can be added, never changed or removed.
fn lost_containers(old: &Value, new: &Value) -> Vec<FieldError> {
    let now = list(new, EPHEMERAL);
    let lost = list(old, EPHEMERAL).iter().filter_map(|before| {
        let what = match find(now, before) {
            None => "removed",
            Some(after) if after != before => "changed",
            Some(_) => return None,
        };
        let name = &before["name"];
        Some(format!("existing ephemeral containers {name} may not be {what}\n"))
    });
    lost.map(|detail| FieldError::forbidden(EPHEMERAL, detail)).collect()
}

/// Containers that both have get the resources of the given ones.
fn resize(new: &mut Value, given: &Value) {
    for path in ["spec.containers", "spec.initContainers"] {
        for container in list_mut(new, path) {
            let Some(wanted) = find(list(given, path), container) else { continue };
            for field in ["resources", "resizePolicy"] {
                if let Some(value) = wanted.get(field) {
                    container[field] = value.clone();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ephemeral_containers_are_only_ever_added() {
        let pod = |containers: &[(&str, &str)]| {
            let containers: Vec<_> = containers
                .iter()
                .map(|(name, image)| json!({"name": name, "image": image}))
                .collect();
            json!({"spec": {"ephemeralContainers": containers}})
        };
        let old = pod(&[("a", "1")]);
        assert!(lost_containers(&old, &pod(&[("b", "1"), ("a", "1")])).is_empty());
        for new in [pod(&[("a", "2")]), pod(&[("b", "1")]), json!({})] {
            assert_eq!(lost_containers(&old, &new).len(), 1, "{new}");
        }
    }

    #[test]
    fn a_resize_changes_nothing_but_resources() {
        let mut pod = json!({"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}});
        let cpu = json!({"requests": {"cpu": "1"}});
        let given = json!({"spec": {"containers": [
            {"name": "a", "image": "2", "resources": cpu}, {"name": "c"}]}});
        resize(&mut pod, &given);
        let containers = json!([{"name": "a", "image": "1", "resources": cpu}, {"name": "b"}]);
        assert_eq!(pod["spec"]["containers"], containers);
    }
}
