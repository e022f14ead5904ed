//! Checks of network kinds.

use super::checks::{by_rule, one_of, port, port_name, port_number};
use crate::behaviour::read::{at, is_set, list, number, text};
use crate::behaviour::selector;
use crate::name;
use crate::status::{FieldError, Path};
use serde_json::{Value, json};
use std::net::IpAddr;

const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];

pub(super) fn validate(kind: &str, object: &Value, errors: &mut Vec<FieldError>) {
    match kind {
        "Ingress" => ingress(at(object, "spec"), errors),
        "IngressClass" => ingress_class(at(object, "spec"), errors),
        "NetworkPolicy" => network_policy(at(object, "spec"), errors),
        "EndpointSlice" => {
            let root = Path::Root;
            let types = ["FQDN", "IPv4", "IPv6"];
            one_of(at(object, "addressType"), &types, &root.field("addressType"), errors);
        }
        _ => {}
    }
}

fn ingress(spec: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    let path = root.field("spec");
    let rules = list(spec, "rules");
    if rules.is_empty() && !is_set(spec, "defaultBackend") {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid(path, &json!([]), detail));
    }
    if is_set(spec, "defaultBackend") {
        backend(at(spec, "defaultBackend"), &path.field("defaultBackend"), errors);
    }
    let rules_path = path.field("rules");
    for (index, rule) in rules.iter().enumerate() {
        let path = rules_path.index(index);
        host(text(rule, "host"), &path.field("host"), errors);
        if !is_set(rule, "http") {
            continue;
        }
        let http = path.field("http");
        let paths_path = http.field("paths");
        if list(rule, "http.paths").is_empty() {
            errors.push(FieldError::required(paths_path, ""));
        }
        for (index, one) in list(rule, "http.paths").iter().enumerate() {
            http_path(one, &paths_path.index(index), errors);
        }
    }
    if let Some(class) = at(spec, "ingressClassName").as_str() {
        by_rule(class, name::dns1123_subdomain, &path.field("ingressClassName"), errors);
    }
}

fn host(host: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if host.is_empty() {
        return;
    }
    if host.parse::<IpAddr>().is_ok() {
        let detail = "must be a DNS name, not an IP address";
        errors.push(FieldError::invalid(path, &json!(host), detail));
    }
    if !host.contains('*') {
        by_rule(host, name::dns1123_subdomain, path, errors);
        return;
    }
    let is_wildcard =
        host.strip_prefix("*.").is_some_and(|domain| name::dns1123_subdomain(domain).is_empty());
    if !is_wildcard {
        let detail = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS \
            subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and \
            end with an alphanumeric character (e.g. '*.example.com', regex used for validation \
            is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
        errors.push(FieldError::invalid(path, &json!(host), detail));
    }
}

fn http_path(one: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let given = text(one, "path");
    let path_path = path.field("path");
    let mut refuse = |detail: String| {
        errors.push(FieldError::invalid(path_path, &json!(given), detail));
    };
    let kind = at(one, "pathType");
    match kind.as_str() {
        None => {
            let detail = "pathType must be specified";
            errors.push(FieldError::required(path.field("pathType"), detail));
            return;
        }
        Some("Exact" | "Prefix") => {
            if !given.starts_with('/') {
                refuse("must be an absolute path".to_owned());
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"] {
                if given.contains(part) {
                    refuse(format!("must not contain '{part}'"));
                }
            }
            for part in ["/..", "/."] {
                if given.ends_with(part) {
                    refuse(format!("cannot end with '{part}'"));
                }
            }
        }
        Some("ImplementationSpecific") => {
            if !given.is_empty() && !given.starts_with('/') {
                refuse("must be an absolute path".to_owned());
            }
        }
        Some(_) => {
            let supported = ["Exact", "ImplementationSpecific", "Prefix"];
            errors.push(FieldError::not_supported(path.field("pathType"), kind, &supported));
        }
    }
    backend(at(one, "backend"), &path.field("backend"), errors);
}

fn backend(backend: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut refuse = |detail: &str| errors.push(FieldError::invalid(path, &json!(""), detail));
    match (is_set(backend, "resource"), is_set(backend, "service")) {
        (true, true) => return refuse("cannot set both resource and service backends"),
        (false, false) => return refuse("resource or service backend is required"),
        (true, false) => return,
        (false, true) => {}
    }
    let service = path.field("service");
    match text(backend, "service.name") {
        "" => errors.push(FieldError::required(service.field("name"), "")),
        given => by_rule(given, name::dns1035_label, &service.field("name"), errors),
    }
    let port_path = service.field("port");
    match (text(backend, "service.port.name"), number(backend, "service.port.number")) {
        ("", 0) => errors.push(FieldError::required(path, "port name or number is required")),
        ("", number) => port_number(&json!(number), &port_path.field("number"), errors),
        (given, 0) => by_rule(given, port_name, &port_path.field("name"), errors),
        (_, _) => {
            let detail = "cannot set both port name & port number";
            errors.push(FieldError::invalid(path, &json!(""), detail));
        }
    }
}

fn ingress_class(spec: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    let spec_path = root.field("spec");
    let path = spec_path.field("controller");
    let controller = text(spec, "controller");
    if controller.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    if controller.len() > 250 {
        errors.push(super::checks::too_long(path, 250));
    }
    match controller.split_once('/') {
        Some((domain, rest)) if !domain.is_empty() && !rest.is_empty() => {
            by_rule(domain, name::dns1123_subdomain, &path, errors);
        }
        Some(_) | None => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.push(FieldError::invalid(path, &json!(controller), detail));
        }
    }
}

fn network_policy(spec: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::Root;
    let path = root.field("spec");
    selector::validate(at(spec, "podSelector"), &path.field("podSelector"), errors);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        let rules_path = path.field(direction);
        for (index, rule) in list(spec, direction).iter().enumerate() {
            let rule_path = rules_path.index(index);
            let ports_path = rule_path.field("ports");
            for (index, one) in list(rule, "ports").iter().enumerate() {
                policy_port(one, &ports_path.index(index), errors);
            }
            let peers_path = rule_path.field(peers);
            for (index, peer) in list(rule, peers).iter().enumerate() {
                policy_peer(peer, &peers_path.index(index), errors);
            }
        }
    }
    let types_path = path.field("policyTypes");
    let types = list(spec, "policyTypes");
    if types.len() > 2 {
        let detail = "may not specify more than two policyTypes";
        errors.push(FieldError::invalid(types_path, at(spec, "policyTypes"), detail));
        return;
    }
    for (index, kind) in types.iter().enumerate() {
        let supported = ["Ingress", "Egress"];
        if !kind.as_str().is_some_and(|kind| supported.contains(&kind)) {
            errors.push(FieldError::not_supported(types_path.index(index), kind, &supported));
        }
    }
}

fn policy_port(one: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let protocol = at(one, "protocol");
    if !protocol.is_null() && !protocol.as_str().is_some_and(|name| PROTOCOLS.contains(&name)) {
        errors.push(FieldError::not_supported(path.field("protocol"), protocol, &PROTOCOLS));
    }
    if is_set(one, "port") {
        port(at(one, "port"), &path.field("port"), errors);
    }
    let end = at(one, "endPort");
    let Some(end_number) = end.as_i64() else { return };
    let detail = match at(one, "port") {
        Value::Null => "may not be specified when `port` is not specified",
        Value::String(_) => "may not be specified when `port` is non-numeric",
        start if end_number < start.as_i64().unwrap_or(0) => {
            "must be greater than or equal to `port`"
        }
        _ => return port_number(end, &path.field("endPort"), errors),
    };
    errors.push(FieldError::invalid(path.field("endPort"), end, detail));
}

fn policy_peer(peer: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for field in ["podSelector", "namespaceSelector"] {
        selector::validate(at(peer, field), &path.field(field), errors);
    }
    let has_selector = is_set(peer, "podSelector") || is_set(peer, "namespaceSelector");
    match (has_selector, is_set(peer, "ipBlock")) {
        (false, false) => {
            errors.push(FieldError::required(path, "must specify a peer"));
        }
        (true, true) => {
            let detail = "may not specify both ipBlock and another peer";
            errors.push(FieldError::forbidden(path, detail));
        }
        (true, false) | (false, true) => {}
    }
}
