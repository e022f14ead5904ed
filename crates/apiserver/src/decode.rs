//! Request bodies: bytes into values, by content type, with the keys that stood twice.

mod json;
mod scalar;
#[cfg(test)]
mod tests;
mod yaml;

pub(crate) use json::json;
pub(crate) use yaml::yaml;

use crate::status::Status;
use serde_json::Value;

/// Values nested deeper are refused.
const DEPTH_LIMIT: usize = 128;

/// As upstream: no more than this many are reported.
const DUPLICATES_LIMIT: usize = 100;

/// Nor are paths longer than this together, or a long key above many short ones would be written
/// out again and again.
const DUPLICATES_LIMIT_BYTES: usize = 64 * 1024;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// A decoded body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decoded {
    /// The value. Of a key that stood twice, the last one counts.
    pub(crate) value: Value,
    /// The paths of keys that stood twice: `spec.a`.
    pub(crate) duplicates: Vec<String>,
    /// The same as upstream's YAML parser tells it: `line 3: key "a" already set in map`. Empty for
    /// JSON.
    lines: Vec<String>,
}

impl Decoded {
    /// What strict field validation says about keys that stood twice, in upstream's words: for JSON
    /// one text each, for YAML one for all of them.
    pub(crate) fn strict_errors(&self) -> Vec<String> {
        if !self.lines.is_empty() {
            return vec![format!("yaml: unmarshal errors:\n  {}", self.lines.join("\n  "))];
        }
        self.duplicates.iter().map(|path| format!("duplicate field {path:?}")).collect()
    }
}

/// The keys that stood twice, as they are found.
#[derive(Debug, Default)]
struct Duplicates {
    paths: Vec<String>,
    written_bytes: usize,
}

impl Duplicates {
    fn is_full(&self) -> bool {
        self.paths.len() >= DUPLICATES_LIMIT || self.written_bytes >= DUPLICATES_LIMIT_BYTES
    }

    /// Takes a path, if it is new and there is room.
    fn note(&mut self, path: impl FnOnce() -> String) {
        if self.is_full() {
            return;
        }
        let path = path();
        self.written_bytes += path.len() + 1;
        if !self.paths.contains(&path) {
            self.paths.push(path);
        }
    }
}

/// A body that is a whole object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    /// JSON or YAML, decoded.
    Decoded(Decoded),
    /// Protobuf: whoever knows the kinds decodes it.
    Protobuf,
}

/// The forms of a whole object in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyForm {
    /// `application/json`, also if nothing is said.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

/// The forms of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchForm {
    /// RFC 6902: a list of operations.
    Json,
    /// RFC 7386: a part of the object.
    Merge,
    /// A part of the object, with directives; for built-in kinds only.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl BodyForm {
    /// The form that a content type names; 415 if there is none. Protobuf is for built-in kinds
    /// only.
    pub(crate) fn of(content_type: Option<&str>, is_custom: bool) -> Result<BodyForm, Status> {
        match media_type(content_type).as_str() {
            "" | JSON => Ok(BodyForm::Json),
            YAML => Ok(BodyForm::Yaml),
            PROTOBUF if !is_custom => Ok(BodyForm::Protobuf),
            _ if is_custom => Err(unknown_format(&[JSON, YAML])),
            _ => Err(unknown_format(&[JSON, YAML, PROTOBUF])),
        }
    }
}

impl PatchForm {
    /// The form that a content type names; 415 if there is none. Custom kinds have no strategic
    /// merge patch.
    pub(crate) fn of(content_type: Option<&str>, is_custom: bool) -> Result<PatchForm, Status> {
        match media_type(content_type).as_str() {
            JSON_PATCH => Ok(PatchForm::Json),
            MERGE_PATCH => Ok(PatchForm::Merge),
            STRATEGIC_PATCH if !is_custom => Ok(PatchForm::Strategic),
            APPLY_PATCH => Ok(PatchForm::Apply),
            _ if is_custom => Err(unknown_format(&[JSON_PATCH, MERGE_PATCH, APPLY_PATCH])),
            _ => Err(unknown_format(&[JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH])),
        }
    }
}

/// Decodes a whole object.
pub(crate) fn body(form: BodyForm, bytes: &[u8]) -> Result<Body, Status> {
    match form {
        BodyForm::Json => json(bytes).map(Body::Decoded),
        BodyForm::Yaml => yaml(bytes).map(Body::Decoded),
        BodyForm::Protobuf => Ok(Body::Protobuf),
    }
}

/// Decodes a patch. Apply bodies are YAML by their type and nearly always JSON in fact, which reads
/// faster.
pub(crate) fn patch_body(form: PatchForm, bytes: &[u8]) -> Result<Decoded, Status> {
    match form {
        PatchForm::Json | PatchForm::Merge | PatchForm::Strategic => json(bytes),
        PatchForm::Apply => match json(bytes) {
            Ok(decoded) if decoded.duplicates.is_empty() => Ok(decoded),
            // The YAML parser finds the same, but tells it as upstream does.
            Ok(decoded) => Ok(yaml(bytes).unwrap_or(decoded)),
            Err(_) => yaml(bytes),
        },
    }
}

/// The content type without its parameters, in lower case.
fn media_type(content_type: Option<&str>) -> String {
    let text = content_type.unwrap_or_default();
    let text = text.split_once(';').map_or(text, |(media_type, _)| media_type);
    text.trim().to_ascii_lowercase()
}

fn unknown_format(accepted: &[&str]) -> Status {
    Status::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        accepted.join(", ")
    ))
}
