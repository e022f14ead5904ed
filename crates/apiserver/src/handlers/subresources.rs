//! Subresources with handlers of their own: scale, finalize, approval, binding, eviction, token.

use super::eviction;
use super::patch::{other_type, patch_value};
use super::write::Written;
use crate::admission;
use crate::apply;
use crate::brought::Brought;
use crate::brought::not_allowed;
use crate::call::{Call, Endpoint, Live, Shown, decode_body, scale_of};
use crate::decode::{self, PatchForm};
use crate::http::{self, Body};
use crate::object;
use crate::request::{Verb, WriteKind};
use crate::resource::Scale;
use crate::schema;
use crate::status::{FieldError, Status};
use crate::streams;
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
            write_part(call, brought, Part::Finalizers).await
        }
        ("certificates.k8s.io", "certificatesigningrequests", "approval") => match brought.verb {
            Verb::Get => {
                let rendering = call.rendering(&brought)?;
                call.get(&rendering).await
            }
            Verb::Update | Verb::Patch => write_part(call, brought, Part::Approval).await,
            _ => Err(not_allowed()),
        },
        ("", "pods", "ephemeralcontainers" | "resize") => super::pod::serve(call, brought).await,
        ("", "pods", "binding") if brought.verb == Verb::Create => bind(call, brought).await,
        ("", "pods", "eviction") if brought.verb == Verb::Create => {
            eviction::evict(call, brought).await
        }
        ("", "serviceaccounts", "token") if brought.verb == Verb::Create => {
            super::questions::token(call, &brought).await
        }
        ("", "pods", "log" | "exec" | "attach" | "portforward") => {
            streams::serve(call, brought).await
        }
        ("", "pods", "proxy") => {
            call.found().await?;
            let why =
                format!("pod {} does not run: this server keeps pods, but runs none", call.name);
            Err(Status::new(404, "NotFound", why).about("", "pods", &call.name))
        }
        _ => Err(Status::no_such_path()),
    }
}

/// The part of an object that a subresource writes, beside the metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// `spec.finalizers` of a namespace.
    Finalizers,
    /// The conditions of a request for a certificate.
    Approval,
}

impl Part {
    fn path(self) -> [&'static str; 2] {
        match self {
            Part::Finalizers => ["spec", "finalizers"],
            Part::Approval => ["status", "conditions"],
        }
    }

    /// The object with this part, and the metadata, of another one.
    fn taken(self, live: &Value, given: &Value) -> Value {
        let mut new = live.clone();
        if let Some(metadata) = given.get("metadata").filter(|metadata| metadata.is_object()) {
            new["metadata"] = metadata.clone();
        }
        let path = self.path();
        match object::at(given, &path).filter(|part| !part.is_null()) {
            Some(part) => object::put_at(&mut new, &path, part.clone()),
            None => {
                let parent = new.get_mut(path[0]).and_then(Value::as_object_mut);
                parent.map(|fields| fields.remove(path[1]));
            }
        }
        new
    }
}

/// Replaces one part of the object by that of the object in the body, or of the patched object.
async fn write_part(
    mut call: Call,
    brought: Brought,
    part: Part,
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
            let new = part.taken(&live, &given);
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
        Verb::Patch if PatchForm::of(Some(&brought.content_type), false)? == PatchForm::Apply => {
            let written = apply_scale(&mut call, &brought, &paths).await?;
            Ok(http::json(200, &scale_of(&written.object, &paths)))
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
            call.shown = Shown::Scale(paths.clone());
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

/// Applies a `Scale`: who owns the number of replicas of the object is noted there, as if that one field of it had been
/// applied.
async fn apply_scale(call: &mut Call, brought: &Brought, paths: &Scale) -> Result<Written, Status> {
    let force = call.take_options(brought, WriteKind::Apply)?;
    call.is_apply = true;
    call.shown = Shown::Scale(paths.clone());
    let decoded = decode::patch_body(PatchForm::Apply, &brought.body)?;
    call.report_fields(&[], &decoded.strict_errors(), 400)?;
    let scale = decoded.value;
    let (kind, version) = (object::text(&scale, "kind"), object::text(&scale, "apiVersion"));
    if (kind, version) != ("Scale", "autoscaling/v1") {
        return Err(other_type(version, kind));
    }
    let mut piece = json!({
        "apiVersion": call.resource.api_version(), "kind": &*call.resource.kind,
        "metadata": {"name": call.name},
    });
    match object::at(&scale, &["spec", "replicas"]) {
        None | Some(Value::Null) => {}
        Some(number)
            if number.as_i64().is_some_and(|count| (0..=i64::from(i32::MAX)).contains(&count)) =>
        {
            object::put_at(&mut piece, &paths.spec_replicas, number.clone());
        }
        Some(number) => {
            let detail = "must be greater than or equal to 0";
            let error = FieldError::invalid("spec.replicas", number, detail);
            return Err(Status::invalid("autoscaling", "Scale", &call.name, &[error]));
        }
    }
    let call = &*call;
    call.change(false, |live| {
        let live = live.map(|live| &live.object);
        let applied = call.with_write(|write| apply::apply(write, live, &piece, force));
        applied.map_err(|error| call.apply_refused(error))
    })
    .await
}

/// Puts a pod on a node, once.
async fn bind(mut call: Call, brought: Brought) -> Result<Response<Body>, Status> {
    call.take_options(&brought, WriteKind::Create)?;
    let binding = decode_body(&brought.content_type, &brought.body, false)?.value;
    let posted = posted("v1", "Binding", &binding);
    let binding = admission::mutate_posted(&mut call, posted).await?;
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

/// What was posted below an object, with its kind.
pub(super) fn posted(api_version: &str, kind: &str, body: &Value) -> Value {
    let mut object = if body.is_object() { body.clone() } else { json!({}) };
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    object
}

/// That what was posted was done.
pub(super) fn success() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}
