//! An AdmissionReview: the question that a webhook is asked, and its answer.

use crate::admission::request::Request;
use crate::admission_registration::hook::{Hook, Sort, Version};
use crate::behaviour::read::{at, entries, integer, is_set, is_true, list, text};
use crate::resource::Resource;
use crate::status::{Cause, Status};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The group of AdmissionReviews.
const GROUP: &str = "admission.k8s.io";
/// So many audit annotations of one answer are kept.
const MOST_ANNOTATIONS: usize = 32;

/// The reasons that clients branch on. A webhook's own words stay in the message.
const REASONS: [&str; 18] = [
    "Unauthorized",
    "Forbidden",
    "NotFound",
    "AlreadyExists",
    "Conflict",
    "Gone",
    "Invalid",
    "ServerTimeout",
    "StoreReadError",
    "Timeout",
    "TooManyRequests",
    "BadRequest",
    "MethodNotAllowed",
    "NotAcceptable",
    "RequestEntityTooLarge",
    "UnsupportedMediaType",
    "InternalError",
    "ServiceUnavailable",
];

/// What a webhook says.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) is_allowed: bool,
    /// A JSON patch, as text; empty if nothing is to change.
    pub(super) patch: Vec<u8>,
    /// Why it is refused.
    pub(super) status: Value,
    pub(super) warnings: Vec<String>,
    pub(super) annotations: Vec<(String, String)>,
}

/// The question about a write, as bytes.
pub(super) fn question(
    request: &Request<'_>,
    matched: &Resource,
    uid: &str,
    version: Version,
) -> Vec<u8> {
    let mut asked = request.value(matched);
    let (object, old) = request.as_version(matched);
    asked["uid"] = json!(uid);
    asked["object"] = object.into_owned();
    asked["oldObject"] = old.into_owned();
    let review = json!({
        "kind": "AdmissionReview", "apiVersion": format!("{GROUP}/{}", version.text()),
        "request": asked,
    });
    let mut bytes = Vec::new();
    crate::object::write_value(&mut bytes, &review);
    bytes
}

/// Reads an answer, or says what is wrong with it.
pub(super) fn answer(hook: &Hook, uid: &str, body: &[u8]) -> Result<Answer, String> {
    let review: Value = serde_json::from_slice(body)
        .map_err(|why| format!("failed to call webhook: the answer is no JSON: {why}"))?;
    let invalid = |why: String| Err(format!("received invalid webhook response: {why}"));
    let response = at(&review, "response");
    if !response.is_object() {
        return invalid("webhook response was absent".to_owned());
    }
    if hook.version == Version::V1 {
        if text(response, "uid") != uid {
            return invalid(format!(
                "expected response.uid={uid:?}, got {:?}",
                text(response, "uid")
            ));
        }
        let (version, kind) = (text(&review, "apiVersion"), text(&review, "kind"));
        if (version, kind) != ("admission.k8s.io/v1", "AdmissionReview") {
            return invalid(format!(
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got \
                 {version}, Kind={kind}"
            ));
        }
    }
    let patch = match patch_of(hook, response) {
        Ok(patch) => patch,
        Err(why) => return invalid(why),
    };
    let annotations = entries(response, "auditAnnotations").take(MOST_ANNOTATIONS);
    let annotations = annotations.filter_map(|(key, value)| {
        Some((format!("{}/{key}", hook.name), value.as_str()?.to_owned()))
    });
    let warnings = list(response, "warnings").iter().filter_map(Value::as_str).map(str::to_owned);
    Ok(Answer {
        is_allowed: is_true(response, "allowed"),
        patch,
        status: at(response, "status").clone(),
        warnings: warnings.collect(),
        annotations: annotations.collect(),
    })
}

fn patch_of(hook: &Hook, response: &Value) -> Result<Vec<u8>, String> {
    let (patch, has_type) = (text(response, "patch"), is_set(response, "patchType"));
    if hook.sort == Sort::Validating {
        return match (patch.is_empty(), has_type) {
            (true, false) => Ok(Vec::new()),
            (false, _) => Err("validating webhook may not return response.patch".to_owned()),
            (true, true) => Err("validating webhook may not return response.patchType".to_owned()),
        };
    }
    if hook.version == Version::V1 && patch.is_empty() == has_type {
        let (given, missing) =
            if has_type { ("patchType", "patch") } else { ("patch", "patchType") };
        return Err(format!("webhook returned response.{given} but not response.{missing}"));
    }
    let sort = text(response, "patchType");
    if has_type && sort != "JSONPatch" {
        return Err(format!("webhook returned invalid response.patchType of {sort:?}"));
    }
    STANDARD.decode(patch).map_err(|_| "response.patch is no base64".to_owned())
}

/// The refusal of a webhook, in upstream's words.
pub(super) fn denial(hook: &Hook, status: &Value) -> Status {
    let (message, reason) = (text(status, "message"), text(status, "reason"));
    let said = match (message, reason) {
        ("", "") => " without explanation".to_owned(),
        ("", reason) => format!(": {reason}"),
        (message, _) => format!(": {message}"),
    };
    let known = |word: &str| REASONS.into_iter().find(|known| *known == word).unwrap_or_default();
    let code = integer(status, "code").and_then(|code| u16::try_from(code).ok());
    let code = code.filter(|code| (400..600).contains(code)).unwrap_or(400);
    let message = format!("admission webhook {:?} denied the request{said}", hook.name);
    let mut refusal = Status::new(code, known(reason), message);
    let details = at(status, "details");
    refusal.details.name = text(details, "name").to_owned();
    refusal.details.group = text(details, "group").to_owned();
    refusal.details.kind = text(details, "kind").to_owned();
    refusal.details.causes = list(details, "causes")
        .iter()
        .map(|cause| Cause {
            reason: cause_reason(text(cause, "reason")),
            message: text(cause, "message").to_owned(),
            field: text(cause, "field").to_owned(),
        })
        .collect();
    refusal
}

fn cause_reason(word: &str) -> &'static str {
    let known = [
        "FieldValueInvalid",
        "FieldValueRequired",
        "FieldValueNotSupported",
        "FieldValueDuplicate",
        "FieldValueNotFound",
        "FieldValueForbidden",
    ];
    known.into_iter().find(|known| *known == word).unwrap_or_default()
}

/// A webhook that could not be called.
pub(super) fn failure(hook: &Hook, why: &str) -> Status {
    internal(format!("failed calling webhook {:?}: {why}", hook.name))
}

/// 500, with the reason in the causes, too, as upstream has it.
pub(super) fn internal(why: String) -> Status {
    let mut status = Status::internal(&why);
    status.details.causes.push(Cause { reason: "", message: why, field: String::new() });
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(sort: Sort, version: &str) -> Hook {
        let webhook = json!({
            "name": "a.example.com", "admissionReviewVersions": ["v9", version],
            "rules": [{"operations": ["*"]}], "clientConfig": {"url": "https://example.com"},
        });
        Hook::read(&json!({}), &webhook, sort).expect("it has rules")
    }

    fn read(hook: &Hook, version: &str, response: Value) -> Result<Answer, String> {
        let review = json!({
            "kind": "AdmissionReview", "apiVersion": format!("admission.k8s.io/{version}"),
            "response": response,
        });
        answer(hook, "1", review.to_string().as_bytes())
    }

    #[test]
    fn an_answer_of_the_first_version_must_be_complete() {
        let hook = hook(Sort::Mutating, "v1");
        let complete =
            json!({"uid": "1", "allowed": true, "patch": "W10=", "patchType": "JSONPatch"});
        assert_eq!(
            read(&hook, "v1", complete.clone()).map(|answer| answer.patch),
            Ok(b"[]".to_vec())
        );
        assert!(read(&hook, "v1beta1", complete.clone()).is_err());
        for (field, value) in [
            ("uid", json!("2")),
            ("uid", Value::Null),
            ("patch", Value::Null),
            ("patchType", Value::Null),
            ("patchType", json!("MergePatch")),
            ("patch", json!("%")),
        ] {
            let mut response = complete.clone();
            response[field] = value;
            let refused = read(&hook, "v1", response.clone()).expect_err("it is incomplete");
            assert!(refused.starts_with("received invalid webhook response: "), "{response}");
        }
    }

    #[test]
    fn an_answer_of_the_older_version_may_leave_things_out() {
        let hook = hook(Sort::Mutating, "v1beta1");
        let answer = read(&hook, "v1beta1", json!({"allowed": true, "patch": "W10="}));
        assert_eq!(
            answer.map(|answer| (answer.is_allowed, answer.patch)),
            Ok((true, b"[]".to_vec()))
        );
    }

    #[test]
    fn any_bytes_are_an_answer_or_an_error() {
        let hook = hook(Sort::Validating, "v1");
        for bytes in ["", "null", "[]", "{\"response\": 1}", "{\"response\": {}}", "\u{0}"] {
            assert!(answer(&hook, "1", bytes.as_bytes()).is_err(), "{bytes}");
        }
        let deep = "[".repeat(100_000);
        assert!(answer(&hook, "1", deep.as_bytes()).is_err());
    }
}
