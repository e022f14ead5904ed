//! A call: one request that passed the gate, with all that its handler needs to know.

mod live;
mod notes;
mod own;
mod scale;
mod shared;

pub(crate) use live::Live;
pub(crate) use notes::{Admitted, Notes};
pub(crate) use own::{own_call, own_call_for};
pub(crate) use scale::scale_of;

use crate::access::{Attributes, Identity};
use crate::behaviour;
use crate::clusters::Cluster;
use crate::decode;
use crate::kinds;
use crate::protobuf;
use crate::resource::Resource;
use crate::resource::Scale;
use crate::schema;
use crate::server::Server;
use crate::status::Status;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tokio::time::Instant;

/// Through which door a write comes, which says what of the object it may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// The object itself: everything but its status.
    Main,
    /// `/status`: nothing but the status.
    Status,
    /// A subresource whose handler has made exactly the change that it may: `scale`, `approval`, `finalize`.
    Other,
}

impl Endpoint {
    /// The same door, as the kinds' own rules know it.
    pub(crate) fn of_behaviour(self) -> behaviour::Endpoint {
        match self {
            Endpoint::Main => behaviour::Endpoint::Main,
            Endpoint::Status | Endpoint::Other => behaviour::Endpoint::Status,
        }
    }
}

/// What to do about fields that the schema does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// Refuse the write.
    Strict,
    /// Drop them, and say so in a header.
    Warn,
    /// Drop them.
    Ignore,
}

/// One request that passed the gate.
pub(crate) struct Call {
    /// The server.
    pub(crate) server: Server,
    /// Where.
    pub(crate) cluster: Arc<Cluster>,
    /// Who.
    pub(crate) identity: Identity,
    /// What sort of thing.
    pub(crate) resource: Arc<Resource>,
    /// In which namespace; empty for none or all.
    pub(crate) namespace: String,
    /// Which one; empty when the call is about many, or makes a new one.
    pub(crate) name: String,
    /// `status`, `scale`; mostly empty.
    pub(crate) subresource: String,
    /// The door.
    pub(crate) endpoint: Endpoint,
    /// Under which name the fields that this call writes are owned.
    pub(crate) manager: String,
    /// Whether it is a server-side apply, which makes its own managedFields.
    pub(crate) is_apply: bool,
    /// Whether nothing is to be stored.
    pub(crate) dry_run: bool,
    /// What to do about unknown fields.
    pub(crate) field_validation: FieldValidation,
    /// The time of the call.
    pub(crate) now: Timestamp,
    /// When it began: webhooks have a limited time for all of it.
    pub(crate) began: Instant,
    /// What is said about the call beside the answer.
    pub(crate) notes: Arc<Notes>,
    /// What admission is shown of the write.
    pub(crate) shown: Shown,
    /// The options that the client gave: `fieldManager`, `propagationPolicy`.
    pub(crate) options: Value,
    /// Whether it is the server's own background work, which no policy of a tenant may stop.
    pub(crate) is_own: bool,
}

/// What admission is shown of a write.
#[derive(Debug, Clone)]
pub(crate) enum Shown {
    /// The object before and after.
    Object,
    /// The `Scale` of the object before and after.
    Scale(Scale),
    /// What was posted below the object: a Binding, an Eviction, a TokenRequest.
    Posted(Arc<Value>),
    /// The options of a connection to a pod: to a command in it, to its ports.
    Connection(Arc<Value>),
}

impl Shown {
    /// What is shown in place of the object, if that is not made of the object.
    pub(crate) fn in_place(&self) -> Option<&Arc<Value>> {
        match self {
            Shown::Posted(shown) | Shown::Connection(shown) => Some(shown),
            Shown::Object | Shown::Scale(_) => None,
        }
    }
}

impl Call {
    /// Whether nothing is to be stored.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// The time of the call as objects have it.
    pub(crate) fn now_text(&self) -> String {
        time_text(self.now)
    }

    /// Tells the client something beside the answer.
    pub(crate) fn warn(&self, text: impl Into<String>) {
        self.notes.warn(text.into());
    }

    /// Whether the caller may also do this with what the call is about.
    pub(crate) async fn check_verb(&self, verb: &str) -> Result<(), Status> {
        let attributes = Attributes {
            verb,
            group: &self.resource.group,
            resource: &self.resource.plural,
            subresource: &self.subresource,
            name: &self.name,
            namespace: &self.namespace,
            ..Attributes::default()
        };
        self.server.check(&self.identity, &self.cluster, &attributes).await
    }

    /// The same call for another object of the same resource.
    pub(crate) fn for_name(&self, name: &str, namespace: &str) -> Call {
        Call {
            server: self.server.clone(),
            cluster: Arc::clone(&self.cluster),
            identity: self.identity.clone(),
            resource: Arc::clone(&self.resource),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: self.subresource.clone(),
            endpoint: self.endpoint,
            manager: self.manager.clone(),
            is_apply: self.is_apply,
            dry_run: self.dry_run,
            field_validation: self.field_validation,
            now: self.now,
            began: self.began,
            notes: Arc::clone(&self.notes),
            shown: self.shown.clone(),
            options: self.options.clone(),
            is_own: self.is_own,
        }
    }

    /// The object in a request's body, decoded, checked for its form, with defaults.
    pub(crate) fn object_from(&self, content_type: &str, body: &[u8]) -> Result<Value, Status> {
        let decoded = decode_body(content_type, body, self.resource.is_custom())?;
        self.take(decoded.value, &decoded.problems, 400)
    }

    /// Takes an object in: its kind must be right, what the schema does not know is dropped, what is not
    /// given gets its default. `refusal_code` is what strictness answers with.
    pub(crate) fn take(
        &self,
        mut object: Value,
        problems: &[String],
        refusal_code: u16,
    ) -> Result<Value, Status> {
        let unknown = self.check_form(&mut object)?;
        self.report_fields(&unknown, problems, refusal_code)?;
        self.fill_in(&mut object);
        Ok(object)
    }

    /// Takes in an object that a webhook changed. The client does not answer for fields that only the webhook sent.
    pub(crate) fn take_changed(&self, mut object: Value) -> Result<Value, Status> {
        self.check_form(&mut object)?;
        self.fill_in(&mut object);
        Ok(object)
    }

    /// Drops what the schema does not know. Gives the paths of what was dropped.
    fn check_form(&self, object: &mut Value) -> Result<Vec<String>, Status> {
        self.check_kind(object)?;
        let shape = self.resource.schema.shape();
        if !self.resource.is_custom() {
            schema::decode_check(object, shape).map_err(|why| {
                Status::bad_request(format!(
                    "{} in version {:?} cannot be handled as a {}: {why}",
                    self.resource.kind, self.resource.version, self.resource.kind
                ))
            })?;
        }
        Ok(schema::prune(object, shape))
    }

    /// Gives an object its stored form, and defaults for what is not given.
    fn fill_in(&self, object: &mut Value) {
        let shape = self.resource.schema.shape();
        if let Some(built_in) = kinds::built_in().of(&self.resource) {
            kinds::built_in().as_upstream_writes(&built_in.openapi_name, object);
        }
        behaviour::from_face(&self.resource, object);
        if self.resource.is_custom() {
            if let Some(shape) = shape.field("metadata") {
                behaviour::canonicalize(&mut object["metadata"], shape);
            }
            schema::apply_defaults(object, shape);
        } else {
            behaviour::defaults(&self.resource, object);
        }
    }

    /// What a strict client is refused for, and a warned one is reported.
    pub(crate) fn report_fields(
        &self,
        unknown: &[String],
        problems: &[String],
        refusal_code: u16,
    ) -> Result<(), Status> {
        let mut texts: Vec<String> =
            unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
        texts.extend(problems.iter().cloned());
        if texts.is_empty() {
            return Ok(());
        }
        match self.field_validation {
            FieldValidation::Ignore => Ok(()),
            FieldValidation::Warn => {
                texts.into_iter().for_each(|text| self.warn(text));
                Ok(())
            }
            FieldValidation::Strict if refusal_code == 422 => Err(Status::unfit_patch(
                &self.resource.group,
                &self.resource.kind,
                &self.name,
                format!("strict decoding error: {}", texts.join(", ")),
            )),
            FieldValidation::Strict => Err(Status::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
                self.resource.kind,
                self.resource.version,
                self.resource.kind,
                texts.join(", ")
            ))),
        }
    }

    /// A custom resource must say its kind and version, as upstream has it; the URL says them for all others.
    fn check_is_typed(&self, fields: &Map<String, Value>) -> Result<(), Status> {
        let is_missing = |field: &str| match fields.get(field) {
            None | Some(Value::Null) => true,
            Some(given) => given == "",
        };
        if !self.resource.is_defined_here() {
            return Ok(());
        }
        if is_missing("kind") {
            return Err(Status::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): Object 'Kind' is missing",
                self.resource.kind
            )));
        }
        if is_missing("apiVersion") {
            return Err(Status::bad_request(format!(
                "the API version in the data () does not match the expected API version ({})",
                self.resource.api_version()
            )));
        }
        Ok(())
    }

    /// An object without kind and version gets those of the URL; other ones are refused.
    fn check_kind(&self, object: &mut Value) -> Result<(), Status> {
        let wanted = (self.resource.api_version(), &*self.resource.kind);
        let Some(fields) = object.as_object_mut() else {
            return Err(Status::bad_request("the body must be an object"));
        };
        self.check_is_typed(fields)?;
        let said = |field: &str, wanted: &str| match fields.get(field) {
            None | Some(Value::Null) => Some(wanted.to_owned()),
            Some(Value::String(given)) if given.is_empty() => Some(wanted.to_owned()),
            Some(Value::String(given)) => Some(given.clone()),
            Some(_) => None,
        };
        let (Some(version), Some(kind)) = (said("apiVersion", &wanted.0), said("kind", wanted.1))
        else {
            return Err(Status::bad_request("apiVersion and kind must be strings"));
        };
        if (version.as_str(), kind.as_str()) != (wanted.0.as_str(), wanted.1) {
            let short = version.rsplit('/').next().unwrap_or_default();
            return Err(Status::bad_request(match self.resource.is_custom() {
                true => format!(
                    "{kind} of {version} in the data does not match what was expected: {} of {}",
                    wanted.1, wanted.0
                ),
                // Upstream's words, with the place in its source that it names.
                false => format!(
                    "{kind} in version {short:?} cannot be handled as a {}: no kind {kind:?} is \
                     registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\"",
                    wanted.1
                ),
            }));
        }
        fields.insert("apiVersion".to_owned(), json!(wanted.0));
        fields.insert("kind".to_owned(), json!(wanted.1));
        if fields
            .get("metadata")
            .is_some_and(|metadata| !metadata.is_object() && !metadata.is_null())
        {
            return Err(Status::bad_request("metadata must be an object"));
        }
        Ok(())
    }
}

/// A body in any of the forms in which objects come.
pub(crate) fn decode_body(
    content_type: &str,
    body: &[u8],
    is_custom: bool,
) -> Result<Incoming, Status> {
    let form = decode::BodyForm::of(Some(content_type), is_custom)?;
    match decode::body(form, body)? {
        decode::Body::Decoded(decoded) => {
            Ok(Incoming { problems: decoded.strict_errors(), value: decoded.value })
        }
        decode::Body::Protobuf => protobuf::decode(body)
            .map(|value| Incoming { value, problems: Vec::new() })
            .map_err(|why| Status::bad_request(format!("the protobuf body cannot be read: {why}"))),
    }
}

/// A decoded body.
pub(crate) struct Incoming {
    /// What it says.
    pub(crate) value: Value,
    /// What a strict client is refused for: keys that stood twice.
    pub(crate) problems: Vec<String>,
}

/// A time as objects have it: whole seconds.
pub(crate) fn time_text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
