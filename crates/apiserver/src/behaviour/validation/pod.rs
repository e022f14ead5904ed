//! Checks of pods and of the templates for them.

use super::checks::quantity;
use super::checks::{by_rule, label_name, not_negative, one_of, port, port_name, port_number};
use super::scheduling;
use crate::behaviour::read::{at, entries, is_set, list, number, text};
use crate::behaviour::selector;
use crate::name;
use crate::status::{FieldError, Path, Problem};
use interlock_quantity::Quantity;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "grpc"];

/// A pod template.
pub(super) fn template(template: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    selector::validate_labels(at(template, "metadata.labels"), &path.field("labels"), errors);
    let spec_path = path.field("spec");
    spec(at(template, "spec"), &spec_path, errors);
    if !list(template, "spec.ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(spec_path.field("ephemeralContainers"), detail));
    }
}

/// What a pod is asked to be.
pub(super) fn spec(spec: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let volumes = volumes(spec, &path.field("volumes"), errors);
    let containers = list(spec, "containers");
    let containers_path = path.field("containers");
    if containers.is_empty() {
        errors.push(FieldError::required(containers_path, ""));
    }
    let mut names = BTreeSet::new();
    for (index, one) in containers.iter().enumerate() {
        let path = containers_path.index(index);
        container(one, &volumes, &path, errors);
        if !names.insert(text(one, "name")) {
            errors.push(FieldError::duplicate(path.field("name"), at(one, "name")));
        }
        for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
            probe(at(one, name), &path.field(name), errors);
            let successes = at(one, name).get("successThreshold").unwrap_or(&Value::Null);
            if name != "readinessProbe" && successes.as_i64().is_some_and(|count| count != 1) {
                let field = path.field(name);
                errors.push(FieldError::invalid(
                    field.field("successThreshold"),
                    successes,
                    "must be 1",
                ));
            }
        }
    }
    let init_path = path.field("initContainers");
    for (index, one) in list(spec, "initContainers").iter().enumerate() {
        let path = init_path.index(index);
        container(one, &volumes, &path, errors);
        if !names.insert(text(one, "name")) {
            errors.push(FieldError::duplicate(path.field("name"), at(one, "name")));
        }
    }
    let restarts = ["Always", "OnFailure", "Never"];
    one_of(at(spec, "restartPolicy"), &restarts, &path.field("restartPolicy"), errors);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    one_of(at(spec, "dnsPolicy"), &policies, &path.field("dnsPolicy"), errors);
    selector::validate_labels(at(spec, "nodeSelector"), &path.field("nodeSelector"), errors);
    let account = text(spec, "serviceAccountName");
    if !account.is_empty() {
        by_rule(account, name::dns1123_subdomain, &path.field("serviceAccountName"), errors);
    }
    for field in ["hostname", "subdomain"] {
        let given = text(spec, field);
        if !given.is_empty() {
            by_rule(given, name::dns1123_label, &path.field(field), errors);
        }
    }
    scheduling::pod(spec, path, errors);
    let aliases = path.field("hostAliases");
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        let path = aliases.index(index);
        by_rule(text(alias, "ip"), name::address, &path.field("ip"), errors);
        for (index, hostname) in list(alias, "hostnames").iter().enumerate() {
            let names = path.field("hostnames");
            let given = hostname.as_str().unwrap_or_default();
            by_rule(given, name::dns1123_subdomain, &names.index(index), errors);
        }
    }
    host_ports(spec, &containers_path, errors);
    let deadline = at(spec, "activeDeadlineSeconds");
    if deadline.as_i64().is_some_and(|seconds| !(1..=i64::from(i32::MAX)).contains(&seconds)) {
        let detail = "must be between 1 and 2147483647, inclusive";
        errors.push(FieldError::invalid(path.field("activeDeadlineSeconds"), deadline, detail));
    }
}

/// No two containers of a pod can have the same port of the node.
fn host_ports(spec: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, container) in list(spec, "containers").iter().enumerate() {
        let container_path = path.index(index);
        let ports = container_path.field("ports");
        for (index, port) in list(container, "ports").iter().enumerate() {
            let number = number(port, "hostPort");
            let place = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
            if number != 0 && !seen.insert(place.clone()) {
                let port_path = ports.index(index);
                let field = port_path.field("hostPort");
                errors.push(FieldError::duplicate(field, &json!(place)));
            }
        }
    }
}

/// The names of the volumes that are right.
fn volumes<'a>(
    spec: &'a Value,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let path = path.index(index);
        let before = errors.len();
        let mut sources = volume
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(field, source)| *field != "name" && !source.is_null());
        if sources.next().is_none() {
            errors.push(FieldError::required(path, "must specify a volume type"));
        }
        for (source, _) in sources {
            let detail = "may not specify more than 1 volume type";
            errors.push(FieldError::forbidden(path.field(source), detail));
        }
        label_name(volume, &path, errors);
        let name = text(volume, "name");
        if names.contains(name) {
            errors.push(FieldError::duplicate(path.field("name"), &json!(name)));
        }
        if errors.len() == before {
            names.insert(name);
        }
    }
    names
}

fn container(
    container: &Value,
    volumes: &BTreeSet<&str>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    label_name(container, path, errors);
    let image = text(container, "image");
    if image.is_empty() {
        errors.push(FieldError::required(path.field("image"), ""));
    } else if image.trim() != image {
        let detail = "must not have leading or trailing whitespace";
        errors.push(FieldError::invalid(path.field("image"), &json!(image), detail));
    }
    let policies = ["File", "FallbackToLogsOnError"];
    let policy_path = path.field("terminationMessagePolicy");
    one_of(at(container, "terminationMessagePolicy"), &policies, &policy_path, errors);
    ports(container, &path.field("ports"), errors);
    variables(container, &path.field("env"), errors);
    mounts(container, volumes, &path.field("volumeMounts"), errors);
    let pulls = ["Always", "IfNotPresent", "Never"];
    one_of(at(container, "imagePullPolicy"), &pulls, &path.field("imagePullPolicy"), errors);
    resources(at(container, "resources"), &path.field("resources"), errors);
}

fn ports(container: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut names = BTreeSet::new();
    for (index, one) in list(container, "ports").iter().enumerate() {
        let path = path.index(index);
        let name = text(one, "name");
        if !name.is_empty() {
            by_rule(name, port_name, &path.field("name"), errors);
            if !names.insert(name) {
                errors.push(FieldError::duplicate(path.field("name"), &json!(name)));
            }
        }
        if number(one, "containerPort") == 0 {
            errors.push(FieldError::required(path.field("containerPort"), ""));
        } else {
            port_number(at(one, "containerPort"), &path.field("containerPort"), errors);
        }
        if number(one, "hostPort") != 0 {
            port_number(at(one, "hostPort"), &path.field("hostPort"), errors);
        }
        one_of(at(one, "protocol"), &PROTOCOLS, &path.field("protocol"), errors);
    }
}

fn variables(container: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (index, variable) in list(container, "env").iter().enumerate() {
        let path = path.index(index);
        let name = text(variable, "name");
        if name.is_empty() {
            errors.push(FieldError::required(path.field("name"), ""));
        } else if !name.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=') {
            let detail = "a valid environment variable name must consist only of printable ASCII \
                characters other than '='";
            errors.push(FieldError::invalid(path.field("name"), &json!(name), detail));
        }
        let source = at(variable, "valueFrom");
        if source.is_null() {
            continue;
        }
        let from = path.field("valueFrom");
        let count =
            source.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()).count();
        if !text(variable, "value").is_empty() && count > 0 {
            let detail = "may not be specified when `value` is not empty";
            errors.push(FieldError::invalid(from, &json!(""), detail));
        } else if count == 0 {
            let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
                `secretKeyRef` or `fileKeyRef`";
            errors.push(FieldError::invalid(from, &json!(""), detail));
        } else if count > 1 {
            let detail = "may not have more than one field specified at a time";
            errors.push(FieldError::invalid(from, &json!(""), detail));
        }
    }
}

fn mounts(
    container: &Value,
    volumes: &BTreeSet<&str>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mut places = BTreeSet::new();
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let path = path.index(index);
        let name = text(mount, "name");
        if name.is_empty() {
            errors.push(FieldError::required(path.field("name"), ""));
        }
        if !volumes.contains(name) {
            let mut missing = FieldError::new(Problem::NotFound, path.field("name"), "");
            missing.value = json!(name).to_string();
            errors.push(missing);
        }
        let place = text(mount, "mountPath");
        if place.is_empty() {
            errors.push(FieldError::required(path.field("mountPath"), ""));
        }
        if !places.insert(place) {
            let detail = "must be unique";
            errors.push(FieldError::invalid(path.field("mountPath"), &json!(place), detail));
        }
    }
}

/// Requests and limits: quantities, the first not above the second.
pub(super) fn resources(resources: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let (limits_path, requests_path) = (path.field("limits"), path.field("requests"));
    for (resource, limit) in entries(resources, "limits") {
        amount(resource, limit, &limits_path.key(resource), errors);
    }
    for (resource, request) in entries(resources, "requests") {
        let Some(request) = amount(resource, request, &requests_path.key(resource), errors) else {
            continue;
        };
        let limit = at(resources, "limits").get(resource);
        let Some(limit) = limit.and_then(|limit| Quantity::from_value(limit).ok()) else {
            continue;
        };
        if request > limit {
            let detail = format!("must be less than or equal to {resource} limit of {limit}");
            errors.push(FieldError::invalid(requests_path, &json!(request.to_string()), detail));
        }
    }
}

fn amount(
    resource: &str,
    value: &Value,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) -> Option<Quantity> {
    let amount = quantity(value, path, errors)?;
    // What is not measured but counted: devices, pods, services.
    let is_counted = resource.contains('/') && !resource.starts_with("hugepages-");
    if is_counted && !amount.is_whole() {
        errors.push(FieldError::invalid(path, &json!(amount.to_string()), "must be an integer"));
    }
    Some(amount)
}

fn probe(probe: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if probe.is_null() {
        return;
    }
    let mut handlers = HANDLERS.into_iter().filter(|handler| is_set(probe, handler));
    match handlers.next() {
        None => errors.push(FieldError::required(path, "must specify a handler type")),
        Some("httpGet") => {
            let http_path = path.field("httpGet");
            let http = at(probe, "httpGet");
            port(at(http, "port"), &http_path.field("port"), errors);
            one_of(at(http, "scheme"), &["HTTP", "HTTPS"], &http_path.field("scheme"), errors);
        }
        Some("tcpSocket") => {
            let tcp_path = path.field("tcpSocket");
            port(at(probe, "tcpSocket.port"), &tcp_path.field("port"), errors);
        }
        Some("exec") if list(probe, "exec.command").is_empty() => {
            errors.push(FieldError::required(path.field("exec").field("command"), ""));
        }
        Some(_) => {}
    }
    for handler in handlers {
        let detail = "may not specify more than 1 handler type";
        errors.push(FieldError::forbidden(path.field(handler), detail));
    }
    let times = [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ];
    not_negative(probe, &times, path, errors);
}
