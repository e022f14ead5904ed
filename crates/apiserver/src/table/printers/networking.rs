//! How network kinds are shown.

use super::core::balancer_addresses;
use super::{
    AGE, Cells, Heading, NAME, Printer, age, joined, name, or, shown_selector, text_column,
};
use crate::behaviour::read::{at, integer, is_set, list, text};
use jiff::Timestamp;
use serde_json::{Value, json};

/// How many hosts, ports or addresses are shown; the others are counted.
const SHOWN: usize = 3;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let (headings, cells): (&'static [Heading], Cells) = match kind {
        "Ingress" => (&INGRESS, ingress),
        "IngressClass" => (&INGRESS_CLASS, ingress_class),
        "NetworkPolicy" => (&NETWORK_POLICY, network_policy),
        "EndpointSlice" => (&ENDPOINT_SLICE, endpoint_slice),
        "ServiceCIDR" => (&SERVICE_CIDR, service_cidr),
        _ => return None,
    };
    Some(Printer { headings, cells })
}

static INGRESS: [Heading; 6] = [
    NAME,
    text_column("Class", "The IngressClass that the ingress belongs to."),
    text_column("Hosts", "The hosts that requests are matched against."),
    text_column("Address", "Where the load balancer is reached."),
    text_column("Ports", "The ports that are open."),
    AGE,
];

fn ingress(object: &Value, now: Timestamp) -> Vec<Value> {
    let class = at(object, "spec.ingressClassName").as_str().unwrap_or("<none>");
    let ports = if list(object, "spec.tls").is_empty() { "80" } else { "80, 443" };
    vec![
        name(object),
        json!(class),
        json!(hosts(list(object, "spec.rules"))),
        json!(balancer_addresses(object)),
        json!(ports),
        age(object, now),
    ]
}

/// Upstream counts the rules beyond the third host, not the hosts beyond it.
fn hosts(rules: &[Value]) -> String {
    let mut shown = Vec::new();
    let mut has_more = false;
    for rule in rules {
        has_more |= shown.len() == SHOWN;
        let host = text(rule, "host");
        if !has_more && !host.is_empty() {
            shown.push(host);
        }
    }
    if has_more {
        return format!("{} + {} more...", shown.join(","), rules.len() - SHOWN);
    }
    or(&shown.join(","), "*").to_owned()
}

static INGRESS_CLASS: [Heading; 4] = [
    NAME,
    text_column("Controller", "The controller that handles this class."),
    text_column("Parameters", "Where the controller finds its parameters."),
    AGE,
];

fn ingress_class(object: &Value, now: Timestamp) -> Vec<Value> {
    let parameters = at(object, "spec.parameters");
    let shown = if parameters.is_null() {
        "<none>".to_owned()
    } else {
        let group = at(parameters, "apiGroup").as_str();
        let group = group.map_or_else(String::new, |group| format!(".{group}"));
        format!("{}{group}/{}", text(parameters, "kind"), text(parameters, "name"))
    };
    vec![name(object), json!(text(object, "spec.controller")), json!(shown), age(object, now)]
}

static NETWORK_POLICY: [Heading; 3] = [NAME, text_column("Pod-Selector", ".spec.podSelector"), AGE];

fn network_policy(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), shown_selector(at(object, "spec.podSelector")), age(object, now)]
}

static ENDPOINT_SLICE: [Heading; 5] = [
    NAME,
    text_column("AddressType", ".addressType"),
    text_column("Ports", ".ports"),
    text_column("Endpoints", ".endpoints"),
    AGE,
];

fn endpoint_slice(object: &Value, now: Timestamp) -> Vec<Value> {
    let ports = list(object, "ports").iter().map(|port| match integer(port, "port") {
        Some(number) => number.to_string(),
        None if is_set(port, "name") => text(port, "name").to_owned(),
        None => "*".to_owned(),
    });
    let addresses = list(object, "endpoints")
        .iter()
        .flat_map(|endpoint| list(endpoint, "addresses"))
        .map(|address| address.as_str().unwrap_or_default().to_owned());
    vec![
        name(object),
        json!(text(object, "addressType")),
        json!(first_few(ports.collect())),
        json!(first_few(addresses.collect())),
        age(object, now),
    ]
}

fn first_few(all: Vec<String>) -> String {
    match all.len() {
        0..=SHOWN => or(&all.join(","), "<unset>").to_owned(),
        count => format!("{} + {} more...", all[..SHOWN].join(","), count - SHOWN),
    }
}

static SERVICE_CIDR: [Heading; 3] = [NAME, text_column("CIDRs", ".spec.cidrs"), AGE];

fn service_cidr(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), json!(joined(object, "spec.cidrs")), age(object, now)]
}
