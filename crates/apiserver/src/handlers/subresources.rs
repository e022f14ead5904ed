//! Subresources with handlers of their own: scale, finalize, approval, binding, eviction, token.

use super::Brought;
use super::call::{Call, Endpoint, decode_body};
use super::not_allowed;
use super::patch::patch_value;
use super::write::{Live, Written};
use crate::http::{self, Body};
use crate::object;
use crate::request::{DeleteOptions, Verb, WriteKind};
use crate::resource::Scale;
use crate::schema;
use crate::status::{FieldError, Status};
use ::http::Response;
use serde_json::{Value, json};

/// Serves a request below an object.
pub(super) async fn serve(mut call: Call, brought: Brought) -> Result<Response<Body>, Status> {
    call.endpoint = Endpoint::Other;
    let place =
        (&*call.resource.group.clone(), &*call.resource.plural.clone(), &*call.subresource.clone());
    match place {
        (_, _, "scale") => scale(call, brought).await,
        ("", "namespaces", "finalize") if brought.verb == Verb::Update => {
            copy_part(call, brought, &["spec", "finalizers"]).await
        }
        ("certificates.k8s.io", "certificatesigningrequests", "approval") => match brought.verb {
            Verb::Get => {
                let rendering = call.rendering(&brought)?;
                call.get(&rendering).await
            }
            Verb::Update | Verb::Patch => copy_part(call, brought, &["status", "conditions"]).await,
            _ => Err(not_allowed()),
        },
        ("", "pods", "ephemeralcontainers" | "resize") => super::pod::serve(call, brought).await,
        ("", "pods", "binding") if brought.verb == Verb::Create => bind(call, brought).await,
        ("", "pods", "eviction") if brought.verb == Verb::Create => evict(call, brought).await,
        ("", "serviceaccounts", "token") if brought.verb == Verb::Create => {
            super::questions::token(&call, &brought).await
        }
        ("", "pods", "log" | "exec" | "attach" | "portforward" | "proxy") => {
            call.found().await?;
            let why =
                format!("pod {} does not run: this server keeps pods, but runs none", call.name);
            Err(Status::new(404, "NotFound", why).about("", "pods", &call.name))
        }
        _ => Err(Status::no_such_path()),
    }
}

/// Replaces one part of the object by that of the object in the body, or of the patched object.
async fn copy_part(
    mut call: Call,
    brought: Brought,
    path: &[&str],
) -> Result<Response<Body>, Status> {
    let is_patch = brought.verb == Verb::Patch;
    call.take_options(&brought, if is_patch { WriteKind::Patch } else { WriteKind::Update })?;
    let body = if is_patch {
        super::json_body(&brought)?
    } else {
        decode_body(&brought.content_type, &brought.body, false)?.value
    };
    let content_type = &brought.content_type;
    let written = call
        .change(false, |live| {
            let live = whole(live);
            let given = if is_patch {
                patch_value(&call, content_type, &live, &body)?
            } else {
                body.clone()
            };
            let mut new = live;
            let metadata = object::metadata_mut(&mut new);
            for field in ["resourceVersion", "uid"] {
                if let Some(seen) = object::metadata(&given).get(field) {
                    metadata.insert(field.to_owned(), seen.clone());
                }
            }
            let part = object::at(&given, path).cloned().unwrap_or(Value::Null);
            if part.is_null() {
                if let Some(parent) = object::at(&new, &path[..1]).cloned() {
                    let mut parent = parent;
                    if let Some(fields) = parent.as_object_mut() {
                        fields.remove(path[1]);
                    }
                    new[path[0]] = parent;
                }
            } else {
                object::put_at(&mut new, path, part);
            }
            schema::decode_check(&new, call.resource.schema.shape())
                .map_err(Status::bad_request)?;
            Ok(new)
        })
        .await?;
    call.written(&brought, written)
}

fn whole(live: Option<&Live>) -> Value {
    live.map(|live| live.object.clone()).unwrap_or_default()
}

async fn scale(mut call: Call, brought: Brought) -> Result<Response<Body>, Status> {
    let Some(paths) = call.resource.scale.clone() else { return Err(Status::no_such_path()) };
    match brought.verb {
        Verb::Get => {
            let live = call.found().await?;
            Ok(http::json(200, &scale_of(&live.object, &paths)))
        }
        Verb::Update | Verb::Patch => {
            let is_patch = brought.verb == Verb::Patch;
            call.take_options(
                &brought,
                if is_patch { WriteKind::Patch } else { WriteKind::Update },
            )?;
            let body = if is_patch {
                super::json_body(&brought)?
            } else {
                decode_body(&brought.content_type, &brought.body, false)?.value
            };
            let written = rescale(&call, &brought, &paths, &body).await?;
            Ok(http::json(200, &scale_of(&written.object, &paths)))
        }
        _ => Err(not_allowed()),
    }
}

async fn rescale(
    call: &Call,
    brought: &Brought,
    paths: &Scale,
    body: &Value,
) -> Result<Written, Status> {
    call.change(false, |live| {
        let mut new = whole(live);
        let wanted = if brought.verb == Verb::Patch {
            patch_value(call, &brought.content_type, &scale_of(&new, paths), body)?
        } else {
            body.clone()
        };
        let replicas = match object::at(&wanted, &["spec", "replicas"]) {
            None | Some(Value::Null) => 0,
            Some(number) => number.as_i64().ok_or_else(|| {
                Status::bad_request("spec.replicas of a Scale must be a whole number")
            })?,
        };
        if !(0..=i64::from(i32::MAX)).contains(&replicas) {
            let error = FieldError::invalid(
                "spec.replicas",
                &json!(replicas),
                "must be greater than or equal to 0",
            );
            return Err(Status::invalid("autoscaling", "Scale", &call.name, &[error]));
        }
        for field in ["resourceVersion", "uid"] {
            let seen = object::meta_text(&wanted, field);
            if !seen.is_empty() {
                object::metadata_mut(&mut new).insert(field.to_owned(), json!(seen));
            }
        }
        object::put_at(&mut new, &paths.spec_replicas, json!(replicas));
        Ok(new)
    })
    .await
}

/// An object's `Scale`.
fn scale_of(object: &Value, paths: &Scale) -> Value {
    let number = |path: &[_]| object::at(object, path).and_then(Value::as_i64).unwrap_or(0);
    let metadata = object::metadata(object);
    let mut kept = serde_json::Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = metadata.get(field) {
            kept.insert(field.to_owned(), value.clone());
        }
    }
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": kept,
        "spec": {"replicas": number(&paths.spec_replicas)},
        "status": {"replicas": number(&paths.status_replicas)},
    });
    let selector = paths.label_selector.as_ref().and_then(|path| object::at(object, path));
    let selector = match selector {
        Some(Value::String(text)) => Some(text.clone()),
        // Built-in workloads have the selector itself.
        Some(selector @ Value::Object(_)) => {
            let is_whole =
                selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some();
            let selector =
                if is_whole { selector.clone() } else { json!({"matchLabels": selector}) };
            crate::selector::LabelSelector::from_object(&selector).ok().map(|text| text.to_string())
        }
        Some(_) | None => None,
    };
    if let Some(selector) = selector {
        scale["status"]["selector"] = json!(selector);
    }
    scale
}

/// Puts a pod on a node, once.
async fn bind(mut call: Call, brought: Brought) -> Result<Response<Body>, Status> {
    call.take_options(&brought, WriteKind::Create)?;
    let binding = decode_body(&brought.content_type, &brought.body, false)?.value;
    let node = binding["target"]["name"].as_str().unwrap_or_default().to_owned();
    if node.is_empty() {
        let error = FieldError::required("target.name", "");
        return Err(Status::invalid("", "Binding", &call.name, &[error]));
    }
    call.change(false, |live| bound(&call, whole(live), &binding, &node)).await?;
    Ok(http::json(201, &success()))
}

/// The pod on its node, with what the binding says about it.
fn bound(call: &Call, mut pod: Value, binding: &Value, node: &str) -> Result<Value, Status> {
    let name = &call.name;
    let refused = |why: String| Status::conflict("", "pods/binding", name, why);
    if object::is_deleting(&pod) {
        return Err(refused(format!("pod {name} is being deleted, cannot be assigned to a host")));
    }
    let held = object::at(&pod, &["spec", "nodeName"]).and_then(Value::as_str).unwrap_or_default();
    if !held.is_empty() {
        return Err(refused(format!("pod {name} is already assigned to node {held:?}")));
    }
    let gates = object::at(&pod, &["spec", "schedulingGates"]).and_then(Value::as_array);
    if gates.is_some_and(|gates| !gates.is_empty()) {
        return Err(refused(format!("pod {name} has non-empty .spec.schedulingGates")));
    }
    object::put_at(&mut pod, &["spec", "nodeName"], json!(node));
    let given = object::metadata(binding);
    for field in ["annotations", "labels"] {
        for (key, value) in given.get(field).and_then(Value::as_object).into_iter().flatten() {
            object::put_at(&mut pod, &["metadata", field, key], value.clone());
        }
    }
    let metadata = object::metadata_mut(&mut pod);
    for field in ["resourceVersion", "uid"] {
        if let Some(seen) = given.get(field).filter(|seen| **seen != json!("")) {
            metadata.insert(field.to_owned(), seen.clone());
        }
    }
    let scheduled = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": call.now_text(),
    });
    let conditions = object::at(&pod, &["status", "conditions"]).and_then(Value::as_array);
    let mut conditions = conditions.cloned().unwrap_or_default();
    conditions.retain(|condition| condition["type"] != "PodScheduled");
    conditions.push(scheduled);
    object::put_at(&mut pod, &["status", "conditions"], json!(conditions));
    Ok(pod)
}

/// Deletes a pod, for those who may evict but not delete.
async fn evict(mut call: Call, brought: Brought) -> Result<Response<Body>, Status> {
    call.take_options(&brought, WriteKind::Create)?;
    let eviction = decode_body(&brought.content_type, &brought.body, false)?.value;
    let mut options = match eviction.get("deleteOptions") {
        Some(options) if options.is_object() => DeleteOptions::from_body(options)?,
        _ => brought.query.delete_options()?,
    };
    options.dry_run |= call.dry_run;
    call.dry_run = options.dry_run;
    call.delete_with(&options).await?;
    Ok(http::json(201, &success()))
}

fn success() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}
