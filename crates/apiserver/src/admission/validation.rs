//! What is refused of policies and bindings when they are written, in upstream's words.

use super::validation_of_matching as matching;
use crate::access::Attributes;
use crate::admission_registration::GROUP;
use crate::admission_registration::expressions::{Environment, Gives};
use crate::behaviour::read::{at, is_set, list, text};
use crate::call::{Call, Endpoint};
use crate::name;
use crate::object;
use crate::schema::cel;
use crate::status::{FieldError, Path, Problem, Status};
use serde_json::Value;

const MOST_CONDITIONS: usize = 64;
const MOST_ANNOTATIONS: usize = 20;
const MOST_ANNOTATION_BYTES: usize = 5 * 1024;

/// What is wrong with a policy.
pub(super) fn policy(call: &Call, old: Option<&Value>, policy: &Value) -> Vec<FieldError> {
    // Whoever writes the status, or takes off the last finalizer, does not answer for the expressions.
    let is_same = old.is_some_and(|old| old.get("spec") == policy.get("spec"));
    if call.endpoint != Endpoint::Main || is_same {
        return Vec::new();
    }
    let (root, spec) = (Path::Root, at(policy, "spec"));
    let path = root.field("spec");
    let mut errors = Vec::new();
    match text(spec, "failurePolicy") {
        "" => errors.push(FieldError::required(path.field("failurePolicy"), "")),
        "Fail" | "Ignore" => {}
        _ => errors.push(FieldError::not_supported(
            path.field("failurePolicy"),
            at(spec, "failurePolicy"),
            &["Fail", "Ignore"],
        )),
    }
    let has_params = is_set(spec, "paramKind");
    if has_params {
        matching::param_kind(at(spec, "paramKind"), &path.field("paramKind"), &mut errors);
    }
    let constraints = path.field("matchConstraints");
    if is_set(spec, "matchConstraints") {
        matching::resources(at(spec, "matchConstraints"), &constraints, &mut errors);
        if list(spec, "matchConstraints.resourceRules").is_empty() {
            errors.push(FieldError::required(constraints.field("resourceRules"), ""));
        }
    } else {
        errors.push(FieldError::required(constraints, ""));
    }
    let simple = Environment::new(has_params);
    conditions(list(spec, "matchConditions"), &simple, &path, &mut errors);
    let mut environment = simple;
    if !list(spec, "variables").is_empty() {
        environment = environment.with_variables();
    }
    variables(list(spec, "variables"), &mut environment, &path, &mut errors);
    if list(spec, "validations").is_empty() && list(spec, "auditAnnotations").is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        errors.push(FieldError::required(path.field("validations"), detail));
        errors.push(FieldError::required(path.field("auditAnnotations"), detail));
        return errors;
    }
    for (index, validation) in list(spec, "validations").iter().enumerate() {
        let place = path.field("validations");
        validate_one(validation, &environment, &place.index(index), &mut errors);
    }
    annotations(policy, &environment, &path, &mut errors);
    errors
}

pub(super) fn conditions(
    conditions: &[Value],
    environment: &Environment<'_>,
    spec: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let path = spec.field("matchConditions");
    if conditions.len() > MOST_CONDITIONS {
        let detail = format!("must have at most {MOST_CONDITIONS} items");
        errors.push(FieldError::new(Problem::TooMany, path, detail));
    }
    let mut names: Vec<&str> = Vec::new();
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        match text(condition, "expression").trim() {
            "" => errors.push(FieldError::required(path.field("expression"), "")),
            source => {
                let place = path.field("expression");
                compiled(environment.compile(source, Gives::Bool).err(), source, &place, errors);
            }
        }
        let (name, place) = (text(condition, "name"), path.field("name"));
        if name.is_empty() {
            errors.push(FieldError::required(place, ""));
            continue;
        }
        matching::by_rule(name, name::qualified_name(name), &place, errors);
        if names.contains(&name) {
            errors.push(FieldError::duplicate(place, at(condition, "name")));
        }
        names.push(name);
    }
}

fn variables(
    variables: &[Value],
    environment: &mut Environment<'_>,
    spec: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let path = spec.field("variables");
    for (index, variable) in variables.iter().enumerate() {
        let path = path.index(index);
        let (name, source) = (text(variable, "name"), text(variable, "expression"));
        if name.trim().is_empty() {
            errors.push(FieldError::required(path.field("name"), "name is not specified"));
        } else if !is_identifier(name) {
            let detail = "must be a valid CEL identifier";
            errors.push(FieldError::invalid(path.field("name"), at(variable, "name"), detail));
        }
        if source.trim().is_empty() {
            let detail = "expression is not specified";
            errors.push(FieldError::required(path.field("expression"), detail));
        } else {
            let problem = environment.variable(name, source).err();
            compiled(problem, source, &path.field("expression"), errors);
        }
    }
}

fn is_identifier(name: &str) -> bool {
    let is_letter = |letter: char| letter == '_' || letter.is_ascii_alphabetic();
    name.starts_with(is_letter)
        && name.chars().all(|letter| is_letter(letter) || letter.is_ascii_digit())
        && !cel::is_reserved(name)
}

fn validate_one(
    validation: &Value,
    environment: &Environment<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let source = text(validation, "expression");
    if source.trim().is_empty() {
        let detail = "expression is not specified";
        errors.push(FieldError::required(path.field("expression"), detail));
    } else {
        let problem = environment.compile(source, Gives::Bool).err();
        compiled(problem, source, &path.field("expression"), errors);
    }
    let maker = text(validation, "messageExpression");
    let place = path.field("messageExpression");
    if !maker.is_empty() && maker.trim().is_empty() {
        let detail = "must be non-empty if specified";
        errors.push(FieldError::invalid(place, at(validation, "messageExpression"), detail));
    } else if !maker.is_empty() {
        let problem = environment.without_authorizer().compile(maker, Gives::String).err();
        compiled(problem, maker, &place, errors);
    }
    let message = text(validation, "message");
    let place = path.field("message");
    if !message.is_empty() && message.trim().is_empty() {
        let detail = "must be non-empty if specified";
        errors.push(FieldError::invalid(place, at(validation, "message"), detail));
    } else if message.trim().contains(['\n', '\r']) {
        let detail = "must not contain line breaks";
        errors.push(FieldError::invalid(place, at(validation, "message"), detail));
    }
    let reasons = ["Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"];
    if is_set(validation, "reason") && !reasons.contains(&text(validation, "reason")) {
        let reason = at(validation, "reason");
        errors.push(FieldError::not_supported(path.field("reason"), reason, &reasons));
    }
}

fn annotations(
    policy: &Value,
    environment: &Environment<'_>,
    spec: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let path = spec.field("auditAnnotations");
    let all = list(policy, "spec.auditAnnotations");
    if all.len() > MOST_ANNOTATIONS {
        let detail = format!("must not have more than {MOST_ANNOTATIONS} auditAnnotations");
        errors.push(FieldError::invalid(path, at(policy, "spec.auditAnnotations"), detail));
    }
    let mut keys: Vec<&str> = Vec::new();
    for (index, annotation) in all.iter().enumerate() {
        let path = path.index(index);
        let (key, place) = (text(annotation, "key"), path.field("key"));
        let whole = format!("{}/{key}", object::name(policy));
        matching::by_rule(&whole, name::qualified_name(&whole), &place, errors);
        let source = text(annotation, "valueExpression").trim();
        let at_value = path.field("valueExpression");
        if source.is_empty() {
            let detail = "valueExpression is not specified";
            errors.push(FieldError::required(at_value, detail));
        } else if source.len() > MOST_ANNOTATION_BYTES {
            let detail = format!("must not exceed {MOST_ANNOTATION_BYTES} bytes in length");
            errors.push(FieldError::required(at_value, detail));
        } else {
            let problem = environment.compile(source, Gives::StringOrNull).err();
            compiled(problem, source, &at_value, errors);
        }
        if keys.contains(&key) {
            errors.push(FieldError::duplicate(place, at(annotation, "key")));
        }
        keys.push(key);
    }
}

/// An expression that does not compile is shown with what the compiler says.
fn compiled(problem: Option<String>, source: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(problem) = problem {
        errors.push(FieldError::invalid(path, &Value::from(source), problem));
    }
}

/// What is wrong with a binding.
pub(super) fn binding(binding: &Value) -> Vec<FieldError> {
    let (root, spec) = (Path::Root, at(binding, "spec"));
    let path = root.field("spec");
    let mut errors = Vec::new();
    match text(spec, "policyName") {
        "" => errors.push(FieldError::required(path.field("policyName"), "")),
        policy => {
            let problems = name::dns1123_subdomain(policy);
            matching::by_rule(policy, problems, &path.field("policyName"), &mut errors);
        }
    }
    if is_set(spec, "paramRef") {
        param_ref(at(spec, "paramRef"), &path.field("paramRef"), &mut errors);
    }
    if is_set(spec, "matchResources") {
        let place = path.field("matchResources");
        matching::resources(at(spec, "matchResources"), &place, &mut errors);
    }
    actions(spec, &path.field("validationActions"), &mut errors);
    errors
}

fn param_ref(wanted: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let name = text(wanted, "name");
    let has_selector = is_set(wanted, "selector");
    let exclusive = "name and selector are mutually exclusive";
    if !name.is_empty() {
        matching::by_rule(name, name::path_segment(name), &path.field("name"), errors);
        if has_selector {
            errors.push(FieldError::forbidden(path.field("name"), exclusive));
        }
    }
    if has_selector {
        let place = path.field("selector");
        crate::behaviour::selector::validate(at(wanted, "selector"), &place, errors);
        if !name.is_empty() {
            errors.push(FieldError::forbidden(place, exclusive));
        }
    }
    if name.is_empty() && !has_selector {
        let detail = "one of name or selector must be specified";
        errors.push(FieldError::required(path, detail));
    }
    let place = path.field("parameterNotFoundAction");
    match text(wanted, "parameterNotFoundAction") {
        "" => errors.push(FieldError::required(place, "")),
        "Deny" | "Allow" => {}
        _ => {
            let action = at(wanted, "parameterNotFoundAction");
            errors.push(FieldError::not_supported(place, action, &["Deny", "Allow"]));
        }
    }
}

fn actions(spec: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut seen: Vec<&str> = Vec::new();
    for (index, action) in list(spec, "validationActions").iter().enumerate() {
        let word = action.as_str().unwrap_or_default();
        if !["Audit", "Deny", "Warn"].contains(&word) {
            let known = ["Audit", "Deny", "Warn"];
            errors.push(FieldError::not_supported(path.index(index), action, &known));
        }
        if seen.contains(&word) {
            errors.push(FieldError::duplicate(path.index(index), action));
        }
        seen.push(word);
    }
    if seen.contains(&"Deny") && seen.contains(&"Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure \
                      information in the API response and headers serves no purpose)";
        errors.push(FieldError::invalid(path, at(spec, "validationActions"), detail));
    }
    if seen.is_empty() {
        let detail = "at least one validation action is required";
        errors.push(FieldError::required(path, detail));
    }
}

/// Whoever writes a policy or a binding must be able to read the parameters that it shows in its messages.
pub(crate) async fn check_param_rights(
    call: &Call,
    old: Option<&Value>,
    new: &Value,
) -> Result<(), Status> {
    let field = match &*call.resource.kind {
        "ValidatingAdmissionPolicy" => "paramKind",
        "ValidatingAdmissionPolicyBinding" => "paramRef",
        _ => return Ok(()),
    };
    let of = |object: &Value| at(object, &format!("spec.{field}")).clone();
    let policy_of = |object: &Value| text(object, "spec.policyName").to_owned();
    let is_same = old.is_some_and(|old| of(old) == of(new) && policy_of(old) == policy_of(new));
    if of(new).is_null() || is_same || call.identity.is_master() {
        return Ok(());
    }
    let (verb, name, namespace, policy) = if field == "paramKind" {
        ("get", "*".to_owned(), "*".to_owned(), Some(new.clone()))
    } else {
        let name = text(new, "spec.paramRef.name").to_owned();
        let verb = if name.is_empty() { "list" } else { "get" };
        let mut policies = call.for_name(&policy_of(new), "");
        policies.resource = call
            .server
            .clusters()
            .find(&call.cluster, GROUP, "v1", "validatingadmissionpolicies")
            .ok_or_else(Status::no_such_path)?;
        let policy = policies.live().await?.map(|live| live.object);
        (verb, name, text(new, "spec.paramRef.namespace").to_owned(), policy)
    };
    let kind = policy.as_ref().map(|policy| at(policy, "spec.paramKind"));
    let resource = kind.and_then(|kind| {
        let (version, kind) = (text(kind, "apiVersion"), text(kind, "kind"));
        call.server.clusters().find_kind(&call.cluster, version, kind)
    });
    let attributes = Attributes {
        verb,
        group: resource.as_ref().map_or("*", |resource| &resource.group),
        resource: resource.as_ref().map_or("*", |resource| &resource.plural),
        name: &name,
        namespace: &namespace,
        ..Attributes::default()
    };
    let roles = call.cluster.roles(call.server.storage()).await?;
    if roles.allows(&call.identity, &attributes).allowed {
        return Ok(());
    }
    let user = &call.identity.user;
    let detail = if field == "paramKind" {
        format!(
            "user {user} must have \"get\" permission on all objects of the referenced paramKind \
             (kind={}, apiVersion={})",
            text(new, "spec.paramKind.kind"),
            text(new, "spec.paramKind.apiVersion")
        )
    } else {
        format!(
            "user {user} does not have \"{verb}\" permission on the object referenced by paramRef"
        )
    };
    let error = FieldError::forbidden(format!("spec.{field}"), detail);
    Err(Status::invalid(GROUP, &call.resource.kind, object::name(new), &[error]))
}
