//! Refusals: the `Status` body that a client gets, and the field errors inside it.

use serde_json::{Map, Value, json};
use std::fmt;

/// Why a request was refused. It becomes a `Status` object with this code.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// The HTTP code.
    pub code: u16,
    /// The word that clients branch on: `NotFound`, `Conflict`, `Invalid`.
    pub reason: &'static str,
    /// What went wrong, for a person.
    pub message: String,
    /// What it was about.
    pub details: Box<Details>,
    /// When to try again, as `Retry-After` and `details.retryAfterSeconds`.
    pub retry_after_seconds: Option<u32>,
    /// With which token an expired list can be read on.
    pub continue_token: Option<String>,
}

/// What a refusal was about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Details {
    /// The object's name.
    pub name: String,
    /// The API group.
    pub group: String,
    /// The resource or kind.
    pub kind: String,
    /// The object's uid.
    pub uid: String,
    /// Each single thing that was wrong.
    pub causes: Vec<Cause>,
    /// Warnings for the client, sent as headers of the refusal.
    pub warnings: Vec<String>,
}

/// One thing that was wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// The word for it: `FieldValueInvalid`.
    pub reason: &'static str,
    /// What went wrong, for a person.
    pub message: String,
    /// Where: `spec.replicas`.
    pub field: String,
}

impl Status {
    /// A refusal with nothing but a code, a reason and a sentence.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Status {
            code,
            reason,
            message: message.into(),
            details: Box::default(),
            retry_after_seconds: None,
            continue_token: None,
        }
    }

    /// 400: the request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Status::new(400, "BadRequest", message)
    }

    /// 401: nobody we know.
    pub fn unauthorized() -> Self {
        Status::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403, in upstream's words: `pods "a" is forbidden: ...`.
    pub fn forbidden(group: &str, resource: &str, name: &str, why: impl fmt::Display) -> Self {
        let qualified = qualified(group, resource);
        let message = if name.is_empty() {
            format!("{qualified} is forbidden: {why}")
        } else {
            format!("{qualified} \"{name}\" is forbidden: {why}")
        };
        Status::new(403, "Forbidden", message).about(group, resource, name)
    }

    /// 404 for an object.
    pub fn not_found(group: &str, resource: &str, name: &str) -> Self {
        Status::new(404, "NotFound", format!("{} \"{name}\" not found", qualified(group, resource)))
            .about(group, resource, name)
    }

    /// 404 for a path that is served by nobody.
    pub fn no_such_path() -> Self {
        Status::new(404, "NotFound", "the server could not find the requested resource")
    }

    /// 405.
    pub fn method_not_allowed(message: impl Into<String>) -> Self {
        Status::new(405, "MethodNotAllowed", message)
    }

    /// 406: no form that the client takes can be made.
    pub fn not_acceptable(accepted: &str) -> Self {
        Status::new(
            406,
            "NotAcceptable",
            format!("only the following media types are accepted: {accepted}"),
        )
    }

    /// 409: the name is taken.
    pub fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        Status::new(
            409,
            "AlreadyExists",
            format!("{} \"{name}\" already exists", qualified(group, resource)),
        )
        .about(group, resource, name)
    }

    /// 409: somebody else was faster, or a precondition does not hold.
    pub fn conflict(group: &str, resource: &str, name: &str, why: impl fmt::Display) -> Self {
        Status::new(
            409,
            "Conflict",
            format!(
                "Operation cannot be fulfilled on {} \"{name}\": {why}",
                qualified(group, resource)
            ),
        )
        .about(group, resource, name)
    }

    /// 410: what was asked for has been compacted away.
    pub fn expired(message: impl Into<String>) -> Self {
        Status::new(410, "Expired", message)
    }

    /// 413.
    pub fn too_large(message: impl Into<String>) -> Self {
        Status::new(413, "RequestEntityTooLarge", message)
    }

    /// 415.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Status::new(415, "UnsupportedMediaType", message)
    }

    /// 422: an object that may not be stored. `kind` is the kind, not the resource, as upstream has it.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let list = match errors {
            [one] => one.to_string(),
            many => {
                let texts: Vec<String> = many.iter().map(FieldError::to_string).collect();
                format!("[{}]", texts.join(", "))
            }
        };
        let mut status = Status::new(
            422,
            "Invalid",
            format!("{} \"{name}\" is invalid: {list}", qualified(group, kind)),
        )
        .about(group, kind, name);
        status.details.causes = errors
            .iter()
            .map(|error| Cause {
                reason: error.problem.reason(),
                message: error.body(),
                field: error.field.clone(),
            })
            .collect();
        status
    }

    /// 422: a patch that makes of an object what it may not be. kubectl shows nothing but the causes of a refusal
    /// that names an object, so the reason is there too.
    pub fn unfit_patch(group: &str, kind: &str, name: &str, why: impl fmt::Display) -> Self {
        let error = FieldError::new(Problem::Invalid, "patch", why.to_string());
        Status::invalid(group, kind, name, &[error])
    }

    /// 429: too many requests.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let mut status = Status::new(429, "TooManyRequests", message);
        status.retry_after_seconds = Some(retry_after_seconds);
        status
    }

    /// 500: our fault.
    pub fn internal(message: impl fmt::Display) -> Self {
        Status::new(500, "InternalError", format!("Internal error occurred: {message}"))
    }

    /// 503.
    pub fn unavailable(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let mut status = Status::new(503, "ServiceUnavailable", message);
        status.retry_after_seconds = Some(retry_after_seconds);
        status
    }

    /// 504: the outcome is not known, or did not come in time.
    pub fn timeout(message: impl Into<String>) -> Self {
        Status::new(504, "Timeout", message)
    }

    /// Says what the refusal is about.
    #[must_use]
    pub fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        self.details.group = group.to_owned();
        self.details.kind = kind.to_owned();
        self.details.name = name.to_owned();
        self
    }

    /// The `Status` object.
    pub fn body(&self) -> Value {
        let mut details = Map::new();
        for (key, text) in [
            ("name", &self.details.name),
            ("group", &self.details.group),
            ("kind", &self.details.kind),
            ("uid", &self.details.uid),
        ] {
            if !text.is_empty() {
                details.insert(key.to_owned(), json!(text));
            }
        }
        if !self.details.causes.is_empty() {
            let causes: Vec<Value> = self
                .details
                .causes
                .iter()
                .map(|cause| {
                    let mut object = Map::new();
                    if !cause.reason.is_empty() {
                        object.insert("reason".to_owned(), json!(cause.reason));
                    }
                    object.insert("message".to_owned(), json!(cause.message));
                    if !cause.field.is_empty() {
                        object.insert("field".to_owned(), json!(cause.field));
                    }
                    Value::Object(object)
                })
                .collect();
            details.insert("causes".to_owned(), Value::Array(causes));
        }
        if let Some(seconds) = self.retry_after_seconds {
            details.insert("retryAfterSeconds".to_owned(), json!(seconds));
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {},
            "status": "Failure", "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(token) = &self.continue_token {
            status["metadata"]["continue"] = json!(token);
        }
        // kubectl debug looks into the details of every 404 without asking whether there are any.
        if !details.is_empty() || self.code == 404 {
            status["details"] = Value::Object(details);
        }
        status
    }
}

/// `deployments.apps`, or `pods` for the core group.
pub(crate) fn qualified(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

/// What is wrong with one field, in upstream's words: tests and users read them.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// What sort of error.
    pub problem: Problem,
    /// Where: `spec.containers[0].name`.
    pub field: String,
    /// The value as it is shown; empty where none is shown. Never a secret's.
    pub value: String,
    /// What is wrong with it; may be empty.
    pub detail: String,
}

/// The sorts of field errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// A value that may not be.
    Invalid,
    /// A value of the wrong type.
    TypeInvalid,
    /// Nothing where something must be.
    Required,
    /// A value that is not one of a few.
    NotSupported,
    /// A value that stands twice.
    Duplicate,
    /// A name of something that is not there.
    NotFound,
    /// Something that may not be set, or not now.
    Forbidden,
    /// A text that is too long.
    TooLong,
    /// Too many elements.
    TooMany,
    /// Our fault.
    Internal,
}

impl Problem {
    /// The word in `causes[].reason`.
    pub fn reason(self) -> &'static str {
        match self {
            Problem::Invalid => "FieldValueInvalid",
            Problem::TypeInvalid => "FieldValueTypeInvalid",
            Problem::Required => "FieldValueRequired",
            Problem::NotSupported => "FieldValueNotSupported",
            Problem::Duplicate => "FieldValueDuplicate",
            Problem::NotFound => "FieldValueNotFound",
            Problem::Forbidden => "FieldValueForbidden",
            Problem::TooLong => "FieldValueTooLong",
            Problem::TooMany => "FieldValueTooMany",
            Problem::Internal => "InternalError",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Problem::Invalid | Problem::TypeInvalid => "Invalid value",
            Problem::Required => "Required value",
            Problem::NotSupported => "Unsupported value",
            Problem::Duplicate => "Duplicate value",
            Problem::NotFound => "Not found",
            Problem::Forbidden => "Forbidden",
            Problem::TooLong => "Too long",
            Problem::TooMany => "Too many",
            Problem::Internal => "Internal error",
        }
    }
}

impl FieldError {
    /// An error about a field whose value is not shown.
    pub fn new(problem: Problem, field: impl fmt::Display, detail: impl Into<String>) -> Self {
        FieldError {
            problem,
            field: field.to_string(),
            value: String::new(),
            detail: detail.into(),
        }
    }

    /// A value that may not be. Texts are shown quoted, everything else as JSON.
    pub fn invalid(field: impl fmt::Display, value: &Value, detail: impl Into<String>) -> Self {
        FieldError {
            problem: Problem::Invalid,
            field: field.to_string(),
            value: value.to_string(),
            detail: detail.into(),
        }
    }

    /// Nothing where something must be.
    pub fn required(field: impl fmt::Display, detail: impl Into<String>) -> Self {
        FieldError::new(Problem::Required, field, detail)
    }

    /// Something that may not be set.
    pub fn forbidden(field: impl fmt::Display, detail: impl Into<String>) -> Self {
        FieldError::new(Problem::Forbidden, field, detail)
    }

    /// A value that is not one of a few.
    pub fn not_supported(field: impl fmt::Display, value: &Value, supported: &[&str]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|word| format!("{word:?}")).collect();
        FieldError {
            problem: Problem::NotSupported,
            field: field.to_string(),
            value: value.to_string(),
            detail: format!("supported values: {}", quoted.join(", ")),
        }
    }

    /// A value that stands twice.
    pub fn duplicate(field: impl fmt::Display, value: &Value) -> Self {
        FieldError {
            problem: Problem::Duplicate,
            field: field.to_string(),
            value: value.to_string(),
            detail: String::new(),
        }
    }

    /// The sentence without the field, as `causes[].message` has it.
    pub fn body(&self) -> String {
        let mut text = self.problem.text().to_owned();
        let shows_value = !matches!(
            self.problem,
            Problem::Required
                | Problem::Forbidden
                | Problem::TooLong
                | Problem::TooMany
                | Problem::Internal
        );
        if shows_value && !self.value.is_empty() {
            text.push_str(": ");
            text.push_str(&self.value);
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            return formatter.write_str(&self.body());
        }
        write!(formatter, "{}: {}", self.field, self.body())
    }
}

/// Where in an object we are, built while walking and printed only when something is wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Path<'a> {
    /// The object itself.
    Root,
    /// A named field.
    Field(&'a Path<'a>, &'a str),
    /// An element of a list.
    Index(&'a Path<'a>, usize),
    /// A value in a map.
    Key(&'a Path<'a>, &'a str),
}

impl<'a> Path<'a> {
    /// The field of this name.
    pub(crate) fn field(&'a self, name: &'a str) -> Path<'a> {
        Path::Field(self, name)
    }

    /// The element at this index.
    pub(crate) fn index(&'a self, index: usize) -> Path<'a> {
        Path::Index(self, index)
    }

    /// The value under this key.
    pub(crate) fn key(&'a self, key: &'a str) -> Path<'a> {
        Path::Key(self, key)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Field(Path::Root, name) => formatter.write_str(name),
            Path::Field(parent, name) => write!(formatter, "{parent}.{name}"),
            Path::Index(parent, index) => write!(formatter, "{parent}[{index}]"),
            Path::Key(parent, key) => write!(formatter, "{parent}[{key}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_404_has_details_because_kubectl_looks_into_them() {
        assert_eq!(Status::no_such_path().body()["details"], json!({}));
        assert!(Status::bad_request("x").body().get("details").is_none());
    }

    #[test]
    fn a_patch_that_does_not_fit_says_why_where_kubectl_shows_it() {
        let body = Status::unfit_patch("apps", "Deployment", "web", "unknown field \"x\"").body();
        assert_eq!(
            body["message"],
            "Deployment.apps \"web\" is invalid: patch: Invalid value: unknown field \"x\""
        );
        assert_eq!(
            body["details"]["causes"],
            json!([{
                "reason": "FieldValueInvalid", "field": "patch",
                "message": "Invalid value: unknown field \"x\"",
            }])
        );
    }
}
