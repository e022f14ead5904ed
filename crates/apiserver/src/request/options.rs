//! What the query parameters mean for lists and watches, writes and deletes, checked as upstream
//! checks them.

use super::Query;
use crate::schema::formats;
use crate::status::{FieldError, Problem, Status};
use serde_json::{Value, json};

/// Upstream's group of the option kinds.
const META_GROUP: &str = "meta.k8s.io";

/// A field manager's name may not be longer.
const FIELD_MANAGER_LIMIT_BYTES: usize = 128;

const EXACT: &str = "Exact";
const NOT_OLDER_THAN: &str = "NotOlderThan";

/// The options of list, watch and deletecollection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListOptions {
    /// Not parsed yet: see [`crate::selector::LabelSelector`].
    pub(crate) label_selector: String,
    /// Not parsed yet: see [`crate::selector::FieldSelector`].
    pub(crate) field_selector: String,
    /// Whether it is a watch.
    pub(crate) watch: bool,
    /// Whether the client wants bookmarks.
    pub(crate) allow_watch_bookmarks: bool,
    /// The version to read at or to watch from, as it came.
    pub(crate) resource_version: String,
    /// `Exact`, `NotOlderThan` or empty.
    pub(crate) resource_version_match: String,
    /// When the server is to end the watch.
    pub(crate) timeout_seconds: Option<i64>,
    /// How many objects a page has; 0 means all.
    pub(crate) limit: i64,
    /// Where the next page starts.
    pub(crate) continue_token: String,
    /// Whether a watch starts with the objects that are there.
    pub(crate) send_initial_events: Option<bool>,
}

/// The options of create, update and patch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WriteOptions {
    /// Who claims the fields.
    pub(crate) field_manager: String,
    /// `Strict`, `Warn`, `Ignore` or empty, which means `Warn`.
    pub(crate) field_validation: String,
    /// Whether nothing is to be stored.
    pub(crate) dry_run: bool,
    /// Whether an apply takes fields from other managers.
    pub(crate) force: bool,
}

/// The options of a delete, from the query or the body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    /// `Foreground`, `Background` or `Orphan`.
    pub(crate) propagation_policy: Option<String>,
    /// What came before `propagation_policy`.
    pub(crate) orphan_dependents: Option<bool>,
    /// How long the object may take to end.
    pub(crate) grace_period_seconds: Option<i64>,
    /// Whether nothing is to be deleted.
    pub(crate) dry_run: bool,
    /// The uid that the object must have.
    pub(crate) uid: Option<String>,
    /// The version that the object must have.
    pub(crate) resource_version: Option<String>,
}

/// Which write the options are for: they are checked differently, and refusals name the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteKind {
    /// A create.
    Create,
    /// An update.
    Update,
    /// A JSON, merge or strategic merge patch.
    Patch,
    /// A server-side apply.
    Apply,
}

impl WriteKind {
    fn options_kind(self) -> &'static str {
        match self {
            WriteKind::Create => "CreateOptions",
            WriteKind::Update => "UpdateOptions",
            WriteKind::Patch | WriteKind::Apply => "PatchOptions",
        }
    }
}

impl Query {
    /// The options of list, watch and deletecollection.
    pub(crate) fn list_options(&self) -> Result<ListOptions, Status> {
        let options = ListOptions {
            label_selector: self.text("labelSelector"),
            field_selector: self.text("fieldSelector"),
            watch: self.switch("watch").unwrap_or(false),
            allow_watch_bookmarks: self.switch("allowWatchBookmarks").unwrap_or(false),
            resource_version: self.text("resourceVersion"),
            resource_version_match: self.text("resourceVersionMatch"),
            timeout_seconds: self.number("timeoutSeconds")?,
            limit: self.number("limit")?.unwrap_or(0),
            continue_token: self.text("continue"),
            send_initial_events: self.switch("sendInitialEvents"),
        };
        refuse("ListOptions", options.problems())?;
        Ok(options)
    }

    /// The options of create, update and patch.
    pub(crate) fn write_options(&self, kind: WriteKind) -> Result<WriteOptions, Status> {
        let force = if matches!(kind, WriteKind::Patch | WriteKind::Apply) {
            self.switch("force")
        } else {
            None
        };
        let field_manager = self.text("fieldManager");
        let field_validation = self.text("fieldValidation");
        let dry_run = self.all("dryRun");
        let mut errors = Vec::new();
        if kind == WriteKind::Apply && field_manager.is_empty() {
            errors.push(FieldError::required("fieldManager", "is required for apply patch"));
        }
        if kind == WriteKind::Patch && force.is_some() {
            let detail = "may not be specified for non-apply patch";
            errors.push(FieldError::forbidden("force", detail));
        }
        errors.extend(field_manager_problems(&field_manager));
        errors.extend(dry_run_problem(&dry_run));
        if !["", "Ignore", "Strict", "Warn"].contains(&field_validation.as_str()) {
            errors.push(FieldError::not_supported(
                "fieldValidation",
                &json!(field_validation),
                &["", "Ignore", "Strict", "Warn"],
            ));
        }
        refuse(kind.options_kind(), errors)?;
        Ok(WriteOptions {
            field_manager,
            field_validation,
            dry_run: !dry_run.is_empty(),
            force: force.unwrap_or(false),
        })
    }

    /// The options of a delete without a body. With one, upstream ignores the query: see
    /// [`DeleteOptions::from_body`].
    pub(crate) fn delete_options(&self) -> Result<DeleteOptions, Status> {
        let given = |name| self.first(name).filter(|text| !text.is_empty()).map(str::to_owned);
        let options = DeleteOptions {
            propagation_policy: self.first("propagationPolicy").map(str::to_owned),
            orphan_dependents: self.switch("orphanDependents"),
            grace_period_seconds: self.number("gracePeriodSeconds")?,
            dry_run: self.first("dryRun").is_some(),
            uid: given("uid"),
            resource_version: given("resourceVersion"),
        };
        refuse("DeleteOptions", options.problems(&self.all("dryRun")))?;
        Ok(options)
    }

    /// How long the client lets the request take must be a time that can be read, or the client means something else
    /// than it says.
    pub(crate) fn check_timeout(&self) -> Result<(), Status> {
        let given = self.first("timeout").unwrap_or_default();
        if given.is_empty() || formats::parse_duration(given).is_some() {
            return Ok(());
        }
        Err(Status::bad_request(format!(
            "invalid timeout specified in the request URL - time: invalid duration {given:?}"
        )))
    }

    /// What a Table's rows carry: `Metadata` (also when nothing is said), `Object` or `None`.
    pub(crate) fn include_object(&self) -> Result<&str, Status> {
        let policy = self.first("includeObject").unwrap_or_default();
        match policy {
            "" => Ok("Metadata"),
            "Metadata" | "Object" | "None" => Ok(policy),
            _ => {
                let detail = "must be 'Metadata', 'Object', 'None', or empty";
                let error = FieldError::invalid("includeObject", &json!(policy), detail);
                Err(Status::invalid(META_GROUP, "TableOptions", "", &[error]))
            }
        }
    }
}

fn refuse(kind: &str, errors: Vec<FieldError>) -> Result<(), Status> {
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid(META_GROUP, kind, "", &errors)) }
}

impl ListOptions {
    fn problems(&self) -> Vec<FieldError> {
        if self.watch { self.watch_problems() } else { self.list_problems() }
    }

    fn list_problems(&self) -> Vec<FieldError> {
        let field = "resourceVersionMatch";
        let mut errors = Vec::new();
        let how = self.resource_version_match.as_str();
        if !how.is_empty() {
            if self.resource_version.is_empty() {
                let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                errors.push(FieldError::forbidden(field, detail));
            }
            errors.extend(self.match_with_continue());
            if how != EXACT && how != NOT_OLDER_THAN {
                let supported = [EXACT, NOT_OLDER_THAN, ""];
                errors.push(FieldError::not_supported(field, &json!(how), &supported));
            }
            if how == EXACT && self.resource_version == "0" {
                let detail =
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                errors.push(FieldError::forbidden(field, detail));
            }
        }
        if self.send_initial_events.is_some() {
            let detail = "sendInitialEvents is forbidden for list";
            errors.push(FieldError::forbidden("sendInitialEvents", detail));
        }
        errors
    }

    fn watch_problems(&self) -> Vec<FieldError> {
        let field = "resourceVersionMatch";
        let mut errors = Vec::new();
        let how = self.resource_version_match.as_str();
        if self.send_initial_events.is_some() && how != NOT_OLDER_THAN {
            let detail = format!(
                "sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER_THAN}"
            );
            errors.push(FieldError::forbidden(field, detail));
        }
        if how.is_empty() {
            return errors;
        }
        if self.send_initial_events.is_none() {
            let detail =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(field, detail));
        }
        if how != NOT_OLDER_THAN {
            errors.push(FieldError::not_supported(field, &json!(how), &[NOT_OLDER_THAN]));
        }
        errors.extend(self.match_with_continue());
        errors
    }

    fn match_with_continue(&self) -> Option<FieldError> {
        let detail = "resourceVersionMatch is forbidden when continue is provided";
        let is_wrong = !self.continue_token.is_empty();
        is_wrong.then(|| FieldError::forbidden("resourceVersionMatch", detail))
    }

    /// The version that a list is read at, none for the newest. What is no number is 400.
    pub(crate) fn list_version(&self) -> Result<Option<u64>, Status> {
        version(&self.resource_version)
            .map_err(|error| Status::bad_request(format!("invalid resource version: {error}")))
    }

    /// The version that a watch starts after, none for the newest. What is no number is 422.
    pub(crate) fn watch_version(&self, group: &str, resource: &str) -> Result<Option<u64>, Status> {
        version(&self.resource_version)
            .map_err(|error| Status::invalid(group, resource, "", &[error]))
    }
}

fn version(text: &str) -> Result<Option<u64>, FieldError> {
    if text.is_empty() {
        return Ok(None);
    }
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let why = if is_number { "value out of range" } else { "invalid syntax" };
    match text.parse() {
        Ok(number) if is_number => Ok(Some(number)),
        Ok(_) | Err(_) => {
            let detail = format!("strconv.ParseUint: parsing {text:?}: {why}");
            Err(FieldError::invalid("resourceVersion", &json!(text), detail))
        }
    }
}

impl DeleteOptions {
    /// The options from a `DeleteOptions` object.
    pub(crate) fn from_body(body: &Value) -> Result<DeleteOptions, Status> {
        let dry_run = match body.get("dryRun") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(list)) if list.iter().all(Value::is_string) => {
                list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            Some(_) => return Err(wrong_type("dryRun", "a list of strings")),
        };
        let preconditions = match body.get("preconditions") {
            None | Some(Value::Null) => &Value::Null,
            Some(object @ Value::Object(_)) => object,
            Some(_) => return Err(wrong_type("preconditions", "an object")),
        };
        let options = DeleteOptions {
            propagation_policy: text_of(body, "propagationPolicy")?,
            orphan_dependents: match body.get("orphanDependents") {
                None | Some(Value::Null) => None,
                Some(Value::Bool(orphan)) => Some(*orphan),
                Some(_) => return Err(wrong_type("orphanDependents", "a boolean")),
            },
            grace_period_seconds: match body.get("gracePeriodSeconds") {
                None | Some(Value::Null) => None,
                Some(seconds) => match seconds.as_i64() {
                    Some(seconds) => Some(seconds),
                    None => return Err(wrong_type("gracePeriodSeconds", "a whole number")),
                },
            },
            dry_run: !dry_run.is_empty(),
            uid: text_of(preconditions, "uid")?,
            resource_version: text_of(preconditions, "resourceVersion")?,
        };
        refuse("DeleteOptions", options.problems(&dry_run))?;
        Ok(options)
    }

    fn problems(&self, dry_run: &[String]) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if let Some(policy) = &self.propagation_policy {
            let field = "propagationPolicy";
            if self.orphan_dependents.is_some() {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(FieldError::invalid(field, &json!(policy), detail));
            }
            if !["Foreground", "Background", "Orphan"].contains(&policy.as_str()) {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(field, &json!(policy), &supported));
            }
        }
        errors.extend(dry_run_problem(dry_run));
        errors
    }
}

fn text_of(object: &Value, name: &str) -> Result<Option<String>, Status> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong_type(name, "a string")),
    }
}

fn wrong_type(name: &str, expected: &str) -> Status {
    Status::bad_request(format!("DeleteOptions: the field {name:?} must be {expected}"))
}

fn dry_run_problem(dry_run: &[String]) -> Option<FieldError> {
    let is_wrong = dry_run.iter().any(|value| value != "All");
    is_wrong.then(|| FieldError::not_supported("dryRun", &json!(dry_run), &["All"]))
}

/// What is wrong with a field manager's name: too long, or characters that do not print.
fn field_manager_problems(name: &str) -> Vec<FieldError> {
    let field = "fieldManager";
    let mut errors = Vec::new();
    if name.len() > FIELD_MANAGER_LIMIT_BYTES {
        let detail = format!("may not be more than {FIELD_MANAGER_LIMIT_BYTES} bytes");
        errors.push(FieldError::new(Problem::TooLong, field, detail));
    }
    // One error for each character, as upstream has it, but not for a whole query full of them.
    let bad = name.char_indices().filter(|(_, character)| !is_printable(*character));
    errors.extend(bad.take(FIELD_MANAGER_LIMIT_BYTES).map(|(position, character)| {
        let code = u32::from(character);
        let detail = format!("invalid character U+{code:04X} (at position {position})");
        FieldError::invalid(field, &json!(name), detail)
    }));
    errors
}

/// Nearly Go's `unicode.IsPrint`: the standard library does not know which code points are
/// unassigned.
fn is_printable(character: char) -> bool {
    let is_invisible = matches!(u32::from(character),
        0xAD | 0x61C | 0x180E | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x206F | 0xFEFF
        | 0xFFF9..=0xFFFB | 0xE000..=0xF8FF | 0xE0001..=0xE007F | 0xF0000..);
    character == ' ' || !(character.is_control() || character.is_whitespace() || is_invisible)
}
