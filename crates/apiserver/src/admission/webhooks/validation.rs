//! What is refused of webhook configurations when they are written, in upstream's words.

use super::{flag_of, reach_of};
use crate::admission::validation::conditions;
use crate::admission::validation_of_matching as matching;
use crate::admission_registration::WebhookReach;
use crate::admission_registration::expressions::Environment;
use crate::behaviour::read::{at, integer, is_set, list, text};
use crate::behaviour::selector::validate as validate_selector;
use crate::call::Call;
use crate::name;
use crate::status::{FieldError, Path};
use serde_json::{Value, json};

const FORM: &str = "; desired format: https://host[/path]";
const SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// What is wrong with a webhook configuration. Webhooks that were stored before are left alone, so that their
/// configuration can still be labelled and deleted.
pub(in crate::admission) fn configuration(
    call: &Call,
    old: Option<&Value>,
    new: &Value,
) -> Vec<FieldError> {
    let before = old.map_or(&[][..], |old| list(old, "webhooks"));
    let (mut errors, root) = (Vec::new(), Path::Root);
    let path = root.field("webhooks");
    let mut names: Vec<&str> = Vec::new();
    for (index, webhook) in list(new, "webhooks").iter().enumerate() {
        let path = path.index(index);
        let name = text(webhook, "name");
        if !name.is_empty() && names.contains(&name) {
            errors.push(FieldError::duplicate(path.field("name"), at(webhook, "name")));
        }
        names.push(name);
        if !before.contains(webhook) {
            one(webhook, &path, &mut errors);
            reachable(call, webhook, &path, &mut errors);
        }
    }
    errors
}

/// A webhook that this server will not call must not look as if it guarded anything.
fn reachable(call: &Call, webhook: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let is_called = *reach_of(&call.server, &call.cluster) != WebhookReach::Nowhere;
    // Without rules it is about no write.
    if is_called || list(webhook, "rules").is_empty() {
        return;
    }
    let (cluster, flag) = (&call.cluster.name, flag_of(&call.cluster));
    if text(webhook, "failurePolicy") == "Ignore" {
        call.warn(format!(
            "webhook {:?} is stored but never called: the server runs with {flag} nowhere for the \
             cluster {cluster:?}",
            text(webhook, "name")
        ));
        return;
    }
    let detail = format!(
        "this server does not call webhooks of the cluster {cluster:?}: ask the operator to set \
         {flag} to the networks of the webhooks, use a ValidatingAdmissionPolicy, or \
         failurePolicy \"Ignore\" if the webhook may be skipped"
    );
    let policy = webhook.get("failurePolicy").cloned().unwrap_or(json!("Fail"));
    errors.push(FieldError::invalid(path.field("failurePolicy"), &policy, detail));
}

fn one(webhook: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    full_name(text(webhook, "name"), &path.field("name"), errors);
    for (index, rule) in list(webhook, "rules").iter().enumerate() {
        matching::rule(rule, &path.field("rules").index(index), errors);
    }
    one_of(webhook, "failurePolicy", &["Fail", "Ignore"], path, errors);
    one_of(webhook, "matchPolicy", &["Equivalent", "Exact"], path, errors);
    one_of(webhook, "reinvocationPolicy", &["IfNeeded", "Never"], path, errors);
    if is_set(webhook, "sideEffects") {
        one_of(webhook, "sideEffects", &SIDE_EFFECTS, path, errors);
    } else {
        let detail = format!("must specify one of {}", SIDE_EFFECTS.join(", "));
        errors.push(FieldError::required(path.field("sideEffects"), detail));
    }
    if let Some(seconds) = integer(webhook, "timeoutSeconds")
        && !(1..=30).contains(&seconds)
    {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(path.field("timeoutSeconds"), &json!(seconds), detail));
    }
    for field in ["namespaceSelector", "objectSelector"] {
        if is_set(webhook, field) {
            validate_selector(at(webhook, field), &path.field(field), errors);
        }
    }
    client_config(at(webhook, "clientConfig"), &path.field("clientConfig"), errors);
    conditions(list(webhook, "matchConditions"), &Environment::new(false), path, errors);
    versions(webhook, &path.field("admissionReviewVersions"), errors);
}

fn full_name(name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let problems = name::dns1123_subdomain(name);
    if !problems.is_empty() {
        errors.push(FieldError::invalid(path, &json!(name), problems.join(",")));
    }
    if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.push(FieldError::invalid(path, &json!(name), detail));
    }
}

fn one_of(
    webhook: &Value,
    field: &str,
    known: &[&str],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if is_set(webhook, field) && !known.contains(&text(webhook, field)) {
        errors.push(FieldError::not_supported(path.field(field), at(webhook, field), known));
    }
}

fn versions(webhook: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let given = list(webhook, "admissionReviewVersions");
    if given.is_empty() {
        let detail = format!("must specify one of {}", VERSIONS.join(", "));
        errors.push(FieldError::required(path, detail));
        return;
    }
    let mut seen: Vec<&str> = Vec::new();
    for (index, version) in given.iter().enumerate() {
        let word = version.as_str().unwrap_or_default();
        if seen.contains(&word) {
            errors.push(FieldError::invalid(path.index(index), version, "duplicate version"));
            continue;
        }
        seen.push(word);
        matching::by_rule(word, name::dns1035_label(word), &path.index(index), errors);
    }
    if !seen.iter().any(|version| VERSIONS.contains(version)) {
        let detail = format!("must include at least one of {}", VERSIONS.join(", "));
        let shown = at(webhook, "admissionReviewVersions");
        errors.push(FieldError::invalid(path, shown, detail));
    }
}

fn client_config(config: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match (is_set(config, "url"), is_set(config, "service")) {
        (true, false) => url(text(config, "url"), &path.field("url"), errors),
        (false, true) => service(at(config, "service"), &path.field("service"), errors),
        (true, true) | (false, false) => {
            let detail = "exactly one of url or service is required";
            errors.push(FieldError::required(path, detail));
        }
    }
}

fn url(url: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut wrong = |value: &str, detail: String| {
        errors.push(FieldError::invalid(path, &json!(value), detail));
    };
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        wrong(scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    if scheme.is_empty() || host.is_empty() {
        wrong("", format!("host must be specified{FORM}"));
    }
    if let Some(user) = user {
        wrong(user, "user information is not permitted in the URL".to_owned());
    }
    if !fragment.is_empty() {
        wrong(fragment, "fragments are not permitted in the URL".to_owned());
    }
    if !query.is_empty() {
        wrong(query, "query parameters are not permitted in the URL".to_owned());
    }
    if errors.is_empty()
        && let Err(why) = url.parse::<http::Uri>()
    {
        let detail = format!("url must be a valid URL: {why}{FORM}");
        errors.push(FieldError::required(path, detail));
    }
}

fn service(service: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if text(service, "name").is_empty() {
        errors.push(FieldError::required(path.field("name"), "service name is required"));
    }
    if text(service, "namespace").is_empty() {
        let detail = "service namespace is required";
        errors.push(FieldError::required(path.field("namespace"), detail));
    }
    let port = integer(service, "port").unwrap_or(443);
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(path.field("port"), &json!(port), detail));
    }
    let given = text(service, "path");
    if given.is_empty() || given == "/" {
        return;
    }
    let place = path.field("path");
    let mut wrong = |detail: String| {
        errors.push(FieldError::invalid(place, &json!(given), detail));
    };
    if given == "//" {
        wrong("segment[0] may not be empty".to_owned());
        return;
    }
    if !given.starts_with('/') {
        wrong("must start with a '/'".to_owned());
    }
    let checked = given.strip_prefix('/').unwrap_or(given);
    let checked = checked.strip_suffix('/').unwrap_or(checked);
    for (index, segment) in checked.split('/').enumerate() {
        if segment.is_empty() {
            wrong(format!("segment[{index}] may not be empty"));
            continue;
        }
        for problem in name::dns1123_subdomain(segment) {
            wrong(format!("segment[{index}]: {problem}"));
        }
    }
}
