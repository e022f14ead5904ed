//! Subresources with handlers of their own: scale, finalize, approval, binding, eviction, token.

use super::Brought;
use super::call::{Call, Endpoint, decode_body};
use super::patch::patch_value;
use super::write::{Live, Written};
use crate::http::{self, Body};
use crate::object;
use crate::request::{DeleteOptions, Verb, WriteKind};
use crate::resource::Scale;
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
        ("", "pods", "binding") if brought.verb == Verb::Create => bind(call, brought).await,
        ("", "pods", "eviction") if brought.verb == Verb::Create => evict(call, brought).await,
        ("", "serviceaccounts", "token") if brought.verb == Verb::Create => {
            super::questions::token(&call, &brought).await
        }
        _ => Err(Status::no_such_path()),
    }
}

fn not_allowed() -> Status {
    Status::method_not_allowed("the server does not allow this method on the requested resource")
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
    let selector = match &paths.label_selector {
        Some(path) => object::at(object, path).and_then(Value::as_str).map(str::to_owned),
        // Built-in workloads have the selector itself.
        None => object::at(object, &["spec", "selector"]).and_then(|selector| {
            let selector = if selector.get("matchLabels").is_some()
                || selector.get("matchExpressions").is_some()
            {
                selector.clone()
            } else {
                json!({"matchLabels": selector})
            };
            crate::selector::LabelSelector::from_object(&selector).ok().map(|text| text.to_string())
        }),
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
    call.change(false, |live| {
        let mut pod = whole(live);
        let held = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        if !held.is_empty() {
            return Err(
                call.conflict(format!("pod {} is already assigned to node {held:?}", call.name))
            );
        }
        pod["spec"]["nodeName"] = json!(node);
        Ok(pod)
    })
    .await?;
    Ok(http::json(201, &success()))
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
