//! Handlers: what is done for each verb on each resource, once a request has passed the gate.

mod delete;
mod eviction;
mod listing;
mod mutated;
mod patch;
mod pod;
mod questions;
mod quiet;
mod read;
mod render;
mod selection;
pub(crate) mod special;
pub(crate) mod subresources;
mod watch;
pub(crate) mod write;

pub(crate) use delete::{FOREGROUND, ORPHAN};

use crate::behaviour;
use crate::brought::{Brought, not_allowed};
use crate::call::{Call, Endpoint, FieldValidation, decode_body};
use crate::decode;
use crate::http::{self, Body};
use crate::kinds;
use crate::negotiate;
use crate::object;
use crate::request::{DeleteOptions, ListOptions, Verb, WriteKind};
use crate::resource::Resource;
use crate::status::{FieldError, Status};
use crate::table::IncludeObject;
use ::http::Response;
use render::{Form, Rendering};
use selection::{Reading, Selection};
use serde_json::{Value, json};
use std::sync::Arc;
use write::{Outcome, Written};

/// Metadata are of one object or of a list, as upstream has it: nobody gets the other one of the two.
pub(crate) fn check_metadata_form(
    resource: &Resource,
    verb: Verb,
    asked: negotiate::Rendering,
) -> Result<(), Status> {
    use negotiate::Rendering::{PartialObjectMetadata, PartialObjectMetadataList};
    let package = match (&*resource.group, resource.is_custom()) {
        (_, true) => "unstructured",
        ("", _) => "core",
        (group, _) => group.split('.').next().unwrap_or_default(),
    };
    let kind = if resource.is_custom() { "Unstructured" } else { &*resource.kind };
    match (asked, verb) {
        (PartialObjectMetadata, Verb::List) => Err(Status::new(
            406,
            "NotAcceptable",
            format!(
                "you requested PartialObjectMetadata, but the requested object is a list \
                 (*{package}.{kind}List)"
            ),
        )),
        (PartialObjectMetadataList, Verb::Get) => Err(Status::new(
            406,
            "NotAcceptable",
            format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list \
                 (*{package}.{kind})"
            ),
        )),
        _ => Ok(()),
    }
}

/// Serves one request.
pub(crate) async fn serve(call: Call, brought: Brought) -> Result<Response<Body>, Status> {
    if let Some(deprecation) = &call.resource.deprecation {
        call.warn(deprecation.to_string());
    }
    let notes = Arc::clone(&call.notes);
    let values = quiet::Values::of(&call, &brought);
    match serve_any(call, brought).await {
        Ok(mut response) => {
            http::warn(&mut response, &notes.warnings());
            Ok(response)
        }
        Err(mut status) => {
            // Upstream warns by its routes, and where nothing is served there is none.
            if status != Status::no_such_path() {
                status.details.warnings = notes.warnings();
            }
            match values {
                Some(values) => Err(values.taken_out_of(status).await),
                None => Err(status),
            }
        }
    }
}

async fn serve_any(mut call: Call, brought: Brought) -> Result<Response<Body>, Status> {
    if let Some(answer) = questions::answer(&call, &brought).await {
        return answer;
    }
    if !call.can(brought.verb) {
        return Err(not_allowed());
    }
    if !call.subresource.is_empty() && call.subresource != "status" {
        return subresources::serve(call, brought).await;
    }
    if call.subresource == "status" {
        if !call.resource.has_status {
            return Err(Status::no_such_path());
        }
        call.endpoint = Endpoint::Status;
    }
    let has_name = !call.name.is_empty();
    match brought.verb {
        Verb::Get => {
            let rendering = call.rendering(&brought)?;
            call.get(&rendering).await
        }
        Verb::List => {
            let options = brought.query.list_options()?;
            let reading = call.reading(&brought, &options)?;
            call.list(&options, reading).await
        }
        Verb::Watch => {
            let mut options = brought.query.list_options()?;
            // The old paths below `/watch/` can name one object.
            if !call.name.is_empty() {
                let all = std::mem::take(&mut options.field_selector);
                let one = format!("metadata.name={}", call.name);
                options.field_selector = if all.is_empty() { one } else { format!("{all},{one}") };
            }
            let reading = call.reading(&brought, &options)?;
            let lasting = brought.lasting.ok_or_else(not_allowed)?;
            call.watch(&options, reading, lasting).await
        }
        // A right on the name in the path would else be one on any other.
        Verb::Create if call.subresource.is_empty() && !has_name => {
            call.take_options(&brought, WriteKind::Create)?;
            let object = call.object_from(&brought.content_type, &brought.body)?;
            let written = call.create(object).await?;
            call.written(&brought, written)
        }
        Verb::Update if has_name => {
            call.take_options(&brought, WriteKind::Update)?;
            let written = call.replace(&brought).await?;
            call.written(&brought, written)
        }
        Verb::Patch if has_name => {
            let written = patch::patch(&mut call, &brought).await?;
            call.written(&brought, written)
        }
        Verb::Delete if call.subresource.is_empty() => {
            let options = delete_options(&brought)?;
            call.take_delete_options(&options);
            special::admit_delete(&call)?;
            let written = call.delete_with(&options).await?;
            match call.deletion_answer(&written) {
                Some(answer) => Ok(http::json(200, &answer)),
                None => call.written(&brought, written),
            }
        }
        Verb::DeleteCollection => delete_collection(&mut call, &brought).await,
        Verb::Create
        | Verb::Update
        | Verb::Patch
        | Verb::Delete
        | Verb::Post
        | Verb::Put
        | Verb::Head
        | Verb::Options => Err(not_allowed()),
    }
}

impl Call {
    /// Whether a verb is one of the kind's, and fits the path. Subresources know for themselves.
    fn can(&self, verb: Verb) -> bool {
        if !self.subresource.is_empty() {
            return true;
        }
        let fits = match verb {
            Verb::Create => self.name.is_empty(),
            Verb::Update | Verb::Patch => !self.name.is_empty(),
            _ => true,
        };
        let built_in = kinds::built_in().of(&self.resource);
        fits && built_in.is_none_or(|built_in| built_in.verbs.contains(&verb.as_str()))
    }

    fn rendering(&self, brought: &Brought) -> Result<Rendering, Status> {
        let include = IncludeObject::parse(brought.query.include_object()?).unwrap_or_default();
        let form = Form::of(brought.accepted.rendering, include);
        let rendering = Rendering::new(self, form, brought.is_wildcard);
        Ok(rendering.for_client(&brought.accepted))
    }

    fn reading(&self, brought: &Brought, options: &ListOptions) -> Result<Reading, Status> {
        let mut selection = Selection::new(self, options)?;
        if brought.is_wildcard {
            selection = selection.in_namespaces(&self.namespace);
        }
        Ok(Reading {
            selection,
            rendering: self.rendering(brought)?,
            is_wildcard: brought.is_wildcard,
        })
    }

    /// Takes in the options of a write.
    fn take_options(&mut self, brought: &Brought, kind: WriteKind) -> Result<bool, Status> {
        let options = brought.query.write_options(kind)?;
        self.dry_run = options.dry_run;
        self.options = json!({});
        for (name, text) in [
            ("fieldManager", &options.field_manager),
            ("fieldValidation", &options.field_validation),
        ] {
            if !text.is_empty() {
                self.options[name] = json!(text);
            }
        }
        if !options.field_manager.is_empty() {
            self.manager = options.field_manager;
        }
        self.field_validation = match options.field_validation.as_str() {
            "Strict" => FieldValidation::Strict,
            "Ignore" => FieldValidation::Ignore,
            _ => FieldValidation::Warn,
        };
        Ok(options.force)
    }

    /// Replaces an object by the one in the body.
    async fn replace(&self, brought: &Brought) -> Result<Written, Status> {
        let object = self.object_from(&brought.content_type, &brought.body)?;
        if object::name(&object).is_empty() {
            return Err(Status::bad_request(
                "the name of the object must be given in its metadata",
            ));
        }
        self.check_place(&object)?;
        let names_no_version = matches!(object::meta_text(&object, "resourceVersion"), "" | "0");
        let may_create = self.subresource.is_empty() && behaviour::may_be_put(&self.resource);
        self.change(may_create, |live| match live {
            Some(_) if names_no_version && !behaviour::may_be_overwritten(&self.resource) => {
                Err(Status::invalid(
                    &self.resource.group,
                    &self.resource.kind,
                    object::name(&object),
                    &[FieldError::invalid(
                        "metadata.resourceVersion",
                        &json!(0),
                        "must be specified for an update",
                    )],
                ))
            }
            Some(_) => Ok(object.clone()),
            None if !object::uid(&object).is_empty() => Err(self.conflict(format!(
                "Precondition failed: UID in precondition: {}, UID in object meta: ",
                object::uid(&object)
            ))),
            // What the client saw is gone; what it wants is made anew.
            None => {
                let mut new = object.clone();
                object::metadata_mut(&mut new).remove("resourceVersion");
                Ok(new)
            }
        })
        .await
    }

    /// The answer to a write.
    fn written(&self, brought: &Brought, written: Written) -> Result<Response<Body>, Status> {
        let rendering = self.rendering(brought)?;
        let code = if written.outcome == Outcome::Created { 201 } else { 200 };
        let stored = written.stored.as_ref().map(|(bytes, revision)| (&bytes[..], *revision));
        Ok(http::json_bytes(code, rendering.written(written.object, stored)))
    }
}

/// A delete's options: in the body if there is one, else in the query.
fn delete_options(brought: &Brought) -> Result<DeleteOptions, Status> {
    if brought.body.is_empty() {
        return brought.query.delete_options();
    }
    let decoded = decode_body(&brought.content_type, &brought.body, false)?;
    let kind = object::text(&decoded.value, "kind");
    if !kind.is_empty() && kind != "DeleteOptions" {
        return Err(Status::bad_request(format!("expected DeleteOptions, got {kind}")));
    }
    DeleteOptions::from_body(&decoded.value)
}

/// Deletes what a list with the same parameters shows, page by page if it is read by pages, and answers with that list.
async fn delete_collection(call: &mut Call, brought: &Brought) -> Result<Response<Body>, Status> {
    // As upstream: nobody deletes in all namespaces with one request.
    if call.resource.is_namespaced && call.namespace.is_empty() {
        let is_custom = call.resource.is_custom();
        return Err(if is_custom { Status::no_such_path() } else { not_allowed() });
    }
    let mut options = delete_options(brought)?;
    if brought.body.is_empty() {
        // In the query it says which list is meant, and nothing about each object.
        options.resource_version = None;
    }
    call.take_delete_options(&options);
    let list = brought.query.list_options()?;
    let reading = call.reading(brought, &list)?;
    let found = call.find(&list, &reading).await?;
    for item in &found.items {
        let (_, namespace, name) = crate::storage::parts(&item.key.row);
        let one = call.for_name(name, namespace);
        special::admit_delete(&one)?;
        match one.delete_with(&options).await {
            Ok(_) => {}
            // Somebody else was faster.
            Err(status) if status.code == 404 => {}
            Err(status) => return Err(status),
        }
    }
    Ok(call.listing(found, reading.rendering).answer())
}

/// A patch's or a subresource's body as plain JSON.
pub(crate) fn json_body(brought: &Brought) -> Result<Value, Status> {
    Ok(decode::json(&brought.body)?.value)
}
