//! Patches: JSON, merge, strategic merge, and server-side apply.

use super::write::Written;
use crate::apply;
use crate::behaviour;
use crate::brought::Brought;
use crate::call::{Call, Live};
use crate::decode::{self, PatchForm};
use crate::patch;
use crate::request::WriteKind;
use crate::schema;
use crate::status::Status;
use serde_json::Value;

/// Patches the object that the call names.
pub(super) async fn patch(call: &mut Call, brought: &Brought) -> Result<Written, Status> {
    let form = PatchForm::of(Some(&brought.content_type), call.resource.is_custom())?;
    if form == PatchForm::Apply {
        return apply_patch(call, brought).await;
    }
    call.take_options(brought, WriteKind::Patch)?;
    let decoded = decode::patch_body(form, &brought.body)?;
    let problems = decoded.strict_errors();
    let call = &*call;
    call.change(false, |live| {
        let live = face(call, live);
        let patched = apply_to(call, form, &live, &decoded.value)?;
        call.take(patched, &problems, 422)
    })
    .await
}

/// A patch of one of the plain sorts, on any object.
pub(super) fn patch_value(
    call: &Call,
    content_type: &str,
    target: &Value,
    body: &Value,
) -> Result<Value, Status> {
    match PatchForm::of(Some(content_type), false)? {
        // A subresource's own object has no schema here; merging it is right for all of them.
        PatchForm::Strategic => apply_to(call, PatchForm::Merge, target, body),
        PatchForm::Apply => Err(Status::unsupported_media_type(
            "server-side apply is not supported for this subresource",
        )),
        form @ (PatchForm::Json | PatchForm::Merge) => apply_to(call, form, target, body),
    }
}

/// A patch of a sort that is known, on any object.
pub(super) fn apply_to(
    call: &Call,
    form: PatchForm,
    target: &Value,
    body: &Value,
) -> Result<Value, Status> {
    match form {
        // Its refusals name no object, as upstream's: kubectl shows the sentence only of those that do not.
        PatchForm::Json => patch::json(target, body),
        PatchForm::Merge | PatchForm::Apply => {
            if !body.is_object() {
                return Err(Status::bad_request("a merge patch must be an object"));
            }
            let mut patched = target.clone();
            patch::merge(&mut patched, body);
            Ok(patched)
        }
        PatchForm::Strategic => patch::strategic(target, body, call.resource.schema.shape()),
    }
}

/// The object as the request's version shows it.
fn face(call: &Call, live: Option<&Live>) -> Value {
    let mut object = live.map(|live| live.object.clone()).unwrap_or_default();
    behaviour::to_face(&call.resource, &mut object);
    object
}

async fn apply_patch(call: &mut Call, brought: &Brought) -> Result<Written, Status> {
    let force = call.take_options(brought, WriteKind::Apply)?;
    call.is_apply = true;
    let decoded = decode::patch_body(PatchForm::Apply, &brought.body)?;
    let problems = decoded.strict_errors();
    let mut applied = decoded.value;
    // Unknown fields are judged in what was sent, not in what it is merged with.
    call.check_applied(&mut applied, &problems)?;
    let call = &*call;
    call.change(call.subresource.is_empty(), |live| {
        let live = live.map(|live| call.in_face(&live.object));
        let mut merged = call
            .with_write(|write| apply::apply(write, live.as_ref(), &applied, force))
            .map_err(|error| call.apply_refused(error))?;
        behaviour::rename_managed(&call.resource, &mut merged, false);
        call.take(merged, &[], 422)
    })
    .await
}

/// 400 for an applied configuration of another kind, or of none.
pub(super) fn other_type(version: &str, kind: &str) -> Status {
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    Status::bad_request(format!("invalid object type: {group}/{version}, Kind={kind}"))
}

impl Call {
    /// What a server-side apply sends must be a piece of an object of the right kind and name.
    fn check_applied(&self, applied: &mut Value, problems: &[String]) -> Result<(), Status> {
        let kind = crate::object::text(applied, "kind");
        let version = crate::object::text(applied, "apiVersion");
        if kind != &*self.resource.kind || version != self.resource.api_version() {
            return Err(other_type(version, kind));
        }
        if !self.resource.is_custom() {
            schema::decode_check(applied, self.resource.schema.shape())
                .map_err(Status::bad_request)?;
        }
        let metadata = crate::object::metadata_mut(applied);
        metadata.entry("name").or_insert_with(|| Value::from(self.name.as_str()));
        if self.resource.is_namespaced {
            metadata.entry("namespace").or_insert_with(|| Value::from(self.namespace.as_str()));
        }
        let unknown = schema::prune(applied, self.resource.schema.shape());
        if !unknown.is_empty() {
            return Err(self.not_declared(applied, &unknown));
        }
        self.report_fields(&[], problems, 400)
    }

    /// What is applied must be described by the schema, whatever is asked for of unknown fields: nobody could own it.
    fn not_declared(&self, applied: &Value, unknown: &[String]) -> Status {
        let lines: Vec<String> =
            unknown.iter().map(|path| format!(".{path}: field not declared in schema")).collect();
        let shown = match lines.as_slice() {
            [only] => only.clone(),
            many => format!("errors:\n  {}", many.join("\n  ")),
        };
        let (group, version) = (&self.resource.group, &self.resource.version);
        Status::new(
            500,
            "",
            format!(
                "failed to create typed patch object ({}/{}; {group}/{version}, Kind={}): {shown}",
                crate::object::namespace(applied),
                crate::object::name(applied),
                self.resource.kind,
            ),
        )
    }
}
