//! What one object uses, by the names that quotas have for it.

use crate::admission::amounts::{Amounts, add, amounts, of_container, of_pod};
use crate::behaviour::read::{at, list, text};
use crate::resource::Resource;
use interlock_quantity::Quantity;
use serde_json::Value;
use std::collections::BTreeMap;

/// Resources of core that quotas know by their plain names, too.
const PLAIN: [&str; 7] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
];

/// What an object uses.
pub(super) fn of(resource: &Resource, object: &Value) -> Amounts {
    let mut used = Amounts::new();
    let plural = &*resource.plural;
    let counted = crate::status::qualified(&resource.group, plural);
    used.insert(format!("count/{counted}"), one());
    if !resource.group.is_empty() {
        return used;
    }
    match plural {
        "pods" => pod(object, &mut used),
        "services" => service(object, &mut used),
        "persistentvolumeclaims" => claim(object, &mut used),
        _ => {}
    }
    if PLAIN.contains(&plural) && plural != "pods" {
        used.insert(plural.to_owned(), one());
    }
    used
}

fn one() -> Quantity {
    number(1)
}

fn number(count: usize) -> Quantity {
    Quantity::parse(&count.to_string()).expect("a whole number is a quantity")
}

/// A pod uses what it asks for until it has ended.
fn pod(pod: &Value, used: &mut Amounts) {
    if matches!(text(pod, "status.phase"), "Succeeded" | "Failed") {
        return;
    }
    used.insert("pods".to_owned(), one());
    let overhead = amounts(at(pod, "spec.overhead"));
    for which in ["requests", "limits"] {
        let mut total = of_pod(pod, which);
        let overhead =
            overhead.iter().filter(|(name, _)| which == "requests" || total.contains_key(*name));
        let overhead: Amounts =
            overhead.map(|(name, amount)| (name.clone(), amount.clone())).collect();
        add(&mut total, &overhead);
        for (name, amount) in total {
            let is_plain = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage")
                || name.starts_with("hugepages-");
            if which == "requests" && is_plain {
                used.insert(name.clone(), amount.clone());
            }
            if is_plain || which == "requests" {
                used.insert(format!("{which}.{name}"), amount);
            }
        }
    }
}

fn service(service: &Value, used: &mut Amounts) {
    let ports = list(service, "spec.ports");
    let allocates = at(service, "spec.allocateLoadBalancerNodePorts") != &Value::Bool(false);
    let assigned = || ports.iter().filter(|port| at(port, "nodePort").as_i64() > Some(0)).count();
    let (node_ports, balancers) = match text(service, "spec.type") {
        "NodePort" => (ports.len(), 0),
        "LoadBalancer" if allocates => (ports.len(), 1),
        "LoadBalancer" => (assigned(), 1),
        _ => (0, 0),
    };
    used.insert("services.nodeports".to_owned(), number(node_ports));
    used.insert("services.loadbalancers".to_owned(), number(balancers));
}

fn claim(claim: &Value, used: &mut Amounts) {
    let class = text(claim, "spec.storageClassName");
    let storage = amounts(at(claim, "spec.resources.requests")).remove("storage");
    if let Some(storage) = &storage {
        used.insert("requests.storage".to_owned(), storage.clone());
    }
    if class.is_empty() {
        return;
    }
    let prefix = format!("{class}.storageclass.storage.k8s.io");
    used.insert(format!("{prefix}/persistentvolumeclaims"), one());
    if let Some(storage) = storage {
        used.insert(format!("{prefix}/requests.storage"), storage);
    }
}

/// What a pod must say because a quota is about it, and does not.
pub(super) fn unspecified(resource: &Resource, hard: &Amounts, object: &Value) -> Option<String> {
    if !resource.group.is_empty() || &*resource.plural != "pods" {
        return None;
    }
    let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, which, amount) in [
        ("cpu", "requests", "cpu"),
        ("memory", "requests", "memory"),
        ("requests.cpu", "requests", "cpu"),
        ("requests.memory", "requests", "memory"),
        ("limits.cpu", "limits", "cpu"),
        ("limits.memory", "limits", "memory"),
    ] {
        let whole = amounts(at(object, &format!("spec.resources.{which}")));
        if !hard.contains_key(name) || whole.contains_key(amount) {
            continue;
        }
        for path in ["spec.containers", "spec.initContainers"] {
            for container in list(object, path) {
                if !of_container(container, which).contains_key(amount) {
                    missing.entry(name).or_default().push(text(container, "name"));
                }
            }
        }
    }
    if missing.is_empty() {
        return None;
    }
    let parts: Vec<String> = missing
        .iter_mut()
        .map(|(name, containers)| {
            containers.sort_unstable();
            format!("{name} for: {}", containers.join(","))
        })
        .collect();
    Some(format!("must specify {}", parts.join("; ")))
}
