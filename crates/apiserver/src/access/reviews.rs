//! Reviews: questions about rights and identities that are asked by creating an object and answered
//! in its status.

use super::identity::{Identity, Scope};
use super::rbac::{Attributes, Decision, HeldRules};
use crate::status::{FieldError, Problem, Status};
use crate::timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const AUTHORIZATION: &str = "authorization.k8s.io";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Which of the three access reviews.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessReview {
    /// `SelfSubjectAccessReview`: may I?
    Own,
    /// `SubjectAccessReview`: may they?
    Anyone,
    /// `LocalSubjectAccessReview`: may they, in this namespace?
    Local,
}

impl AccessReview {
    fn kind(self) -> &'static str {
        match self {
            AccessReview::Own => "SelfSubjectAccessReview",
            AccessReview::Anyone => "SubjectAccessReview",
            AccessReview::Local => "LocalSubjectAccessReview",
        }
    }
}

/// What an access review asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question<'a> {
    /// About whom.
    pub who: Identity,
    /// To do what.
    pub what: Attributes<'a>,
}

/// What an access review asks, if it asks something that makes sense. `namespace` is that of the
/// request, for the local one.
pub fn question<'a>(
    kind: AccessReview,
    review: &'a Value,
    caller: &Identity,
    namespace: &'a str,
) -> Result<Question<'a>, Status> {
    let errors = wrong_with(kind, review, namespace);
    if !errors.is_empty() {
        return Err(Status::invalid(AUTHORIZATION, kind.kind(), "", &errors));
    }
    let spec = review.get("spec").unwrap_or(&Value::Null);
    let who = match kind {
        AccessReview::Own => caller.clone(),
        AccessReview::Anyone | AccessReview::Local => subject(spec, caller.scope.clone()),
    };
    Ok(Question { who, what: attributes(spec) })
}

/// The answer to an access review.
pub fn answer(mut review: Value, decision: &Decision) -> Value {
    let mut status = Map::new();
    status.insert("allowed".to_owned(), json!(decision.allowed));
    if !decision.reason.is_empty() {
        status.insert("reason".to_owned(), json!(decision.reason));
    }
    put(&mut review, "status", Value::Object(status));
    review
}

fn put(review: &mut Value, field: &str, value: Value) {
    if let Some(object) = review.as_object_mut() {
        object.insert(field.to_owned(), value);
    }
}

fn given<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    object.get(field).filter(|value| !value.is_null())
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|text| Some(text.as_str()?.to_owned())).collect()
}

/// The groups are those of the question: nobody is added to `system:authenticated` by being asked
/// about.
fn subject(spec: &Value, scope: Scope) -> Identity {
    let extra = spec.get("extra").and_then(Value::as_object);
    let extra: BTreeMap<String, Vec<String>> = extra
        .into_iter()
        .flatten()
        .map(|(key, values)| (key.clone(), texts(Some(values))))
        .collect();
    Identity {
        user: text(spec, "user").to_owned(),
        uid: text(spec, "uid").to_owned(),
        groups: texts(spec.get("groups")),
        extra,
        scope,
    }
}

fn attributes(spec: &Value) -> Attributes<'_> {
    if let Some(resource) = given(spec, "resourceAttributes") {
        return Attributes {
            verb: text(resource, "verb"),
            group: text(resource, "group"),
            resource: text(resource, "resource"),
            subresource: text(resource, "subresource"),
            name: text(resource, "name"),
            namespace: text(resource, "namespace"),
            path: None,
        };
    }
    let path = spec.get("nonResourceAttributes").unwrap_or(&Value::Null);
    Attributes::path(text(path, "verb"), text(path, "path"))
}

fn wrong_with(kind: AccessReview, review: &Value, namespace: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = review.get("spec").unwrap_or(&Value::Null);
    let resource = given(spec, "resourceAttributes");
    let path = given(spec, "nonResourceAttributes");
    match (resource, path) {
        (Some(_), Some(path)) => errors.push(FieldError::invalid(
            "spec.nonResourceAttributes",
            path,
            "cannot be specified in combination with resourceAttributes",
        )),
        (None, None) => errors.push(FieldError::invalid(
            "spec.resourceAttributes",
            &Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        (Some(_), None) | (None, Some(_)) => {}
    }
    let is_about_somebody = !text(spec, "user").is_empty() || !texts(spec.get("groups")).is_empty();
    if kind != AccessReview::Own && !is_about_somebody {
        let detail = "at least one of user or group must be specified";
        errors.push(FieldError::invalid("spec.user", &json!(""), detail));
    }
    for selector in ["fieldSelector", "labelSelector"] {
        let place = format!("spec.resourceAttributes.{selector}");
        if let Some(selector) = resource.and_then(|resource| given(resource, selector)) {
            errors.extend(wrong_with_selector(selector, &place));
        }
    }
    errors.extend(wrong_with_metadata(kind, review));
    if kind == AccessReview::Local {
        errors.extend(wrong_with_place(resource, path, namespace));
    }
    errors
}

/// RBAC does not look at selectors; a question with a contradictory one is refused all the same.
fn wrong_with_selector(selector: &Value, place: &str) -> Option<FieldError> {
    let raw = text(selector, "rawSelector");
    let has_requirements = selector
        .get("requirements")
        .and_then(Value::as_array)
        .is_some_and(|requirements| !requirements.is_empty());
    match (raw.is_empty(), has_requirements) {
        (false, true) => Some(FieldError::invalid(
            format!("{place}.rawSelector"),
            &json!(raw),
            "may not specified at the same time as requirements",
        )),
        (true, false) => Some(FieldError::required(
            format!("{place}.requirements"),
            format!("when {place} is specified, requirements or rawSelector is required"),
        )),
        (false, false) | (true, true) => None,
    }
}

fn wrong_with_metadata(kind: AccessReview, review: &Value) -> Option<FieldError> {
    let metadata = review.get("metadata")?.as_object()?;
    let is_allowed = |field: &str| {
        field == "managedFields" || (kind == AccessReview::Local && field == "namespace")
    };
    let is_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    if metadata.iter().all(|(field, value)| is_allowed(field) || is_nothing(value)) {
        return None;
    }
    let detail = match kind {
        AccessReview::Local => "must be empty except for namespace",
        AccessReview::Own | AccessReview::Anyone => "must be empty",
    };
    Some(FieldError::new(Problem::Invalid, "metadata", detail))
}

fn wrong_with_place(
    resource: Option<&Value>,
    path: Option<&Value>,
    namespace: &str,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let elsewhere = resource.map(|resource| text(resource, "namespace"));
    if let Some(other) = elsewhere.filter(|other| *other != namespace) {
        let field = "spec.resourceAttributes.namespace";
        errors.push(FieldError::invalid(field, &json!(other), "must match metadata.namespace"));
    }
    if let Some(path) = path {
        let detail = "disallowed on this kind of request";
        errors.push(FieldError::invalid("spec.nonResourceAttributes", path, detail));
    }
    errors
}

/// The namespace that a `SelfSubjectRulesReview` asks about.
pub fn rules_review_namespace(review: &Value) -> Result<&str, Status> {
    match review.pointer("/spec/namespace").and_then(Value::as_str) {
        Some(namespace) if !namespace.is_empty() => Ok(namespace),
        Some(_) | None => Err(Status::bad_request("no namespace on request")),
    }
}

/// The answer to a `SelfSubjectRulesReview`.
pub fn rules_review(held: &HeldRules) -> Value {
    let shown = |value: Value, fields: &[&str]| {
        let mut shown = Map::new();
        for field in fields {
            if let Some(value) = value.get(field) {
                shown.insert((*field).to_owned(), value.clone());
            }
        }
        Value::Object(shown)
    };
    let resources: Vec<Value> = held
        .rules
        .iter()
        .filter(|rule| !rule.resources.is_empty())
        .map(|rule| shown(rule.to_value(), &["verbs", "apiGroups", "resources", "resourceNames"]))
        .collect();
    let paths: Vec<Value> = held
        .rules
        .iter()
        .filter(|rule| !rule.urls.is_empty())
        .map(|rule| shown(rule.to_value(), &["verbs", "nonResourceURLs"]))
        .collect();
    let mut review = json!({
        "kind": "SelfSubjectRulesReview",
        "apiVersion": format!("{AUTHORIZATION}/v1"),
        "metadata": {"creationTimestamp": null},
        "spec": {},
        "status": {"resourceRules": resources, "nonResourceRules": paths, "incomplete": false},
    });
    if !held.missing.is_empty() {
        let error = match held.missing.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        review["status"]["evaluationError"] = json!(error);
    }
    review
}

/// Whom a token stands for, and which of the audiences it is for.
pub type Verified = (Identity, Vec<String>);

/// The token that a `TokenReview` asks about, and the audiences that are asked for; empty means our
/// own.
pub fn token_asked_about(review: &Value) -> Result<(&str, Vec<String>), Status> {
    let spec = review.get("spec").unwrap_or(&Value::Null);
    match text(spec, "token") {
        "" => Err(Status::bad_request("token is required for TokenReview in authentication")),
        token => Ok((token, texts(spec.get("audiences")))),
    }
}

/// The answer to a `TokenReview`: whom the token stands for, or why it is worth nothing. A token of
/// another cluster is worth nothing.
pub fn token_answer(mut review: Value, verified: Result<Verified, String>) -> Value {
    let status = match verified {
        Ok((identity, audiences)) => {
            let mut status = json!({"authenticated": true, "user": identity.user_info()});
            if !audiences.is_empty() {
                status["audiences"] = json!(audiences);
            }
            status
        }
        Err(error) => json!({"user": {}, "error": error}),
    };
    put(&mut review, "status", status);
    review
}

/// The answer to a `SelfSubjectReview`: who is asking.
pub fn self_review(caller: &Identity, now_seconds: i64) -> Value {
    json!({
        "kind": "SelfSubjectReview",
        "apiVersion": format!("{AUTHENTICATION}/v1"),
        "metadata": {"creationTimestamp": timestamp::seconds(now_seconds)},
        "status": {"userInfo": caller.user_info()},
    })
}

#[cfg(test)]
mod tests;
