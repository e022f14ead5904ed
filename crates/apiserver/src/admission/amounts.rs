//! Amounts of resources: what containers, pods and claims ask for.

use crate::behaviour::read::{at, list, text};
use interlock_quantity::Quantity;
use serde_json::Value;
use std::collections::BTreeMap;

/// Amounts by the names of resources.
pub(super) type Amounts = BTreeMap<String, Quantity>;

/// The amounts in a map of an object; what is no quantity was refused before.
pub(super) fn amounts(map: &Value) -> Amounts {
    let entries = map.as_object().into_iter().flatten();
    entries
        .filter_map(|(name, value)| Some((name.clone(), Quantity::from_value(value).ok()?)))
        .collect()
}

/// One amount and another, in the form of the first that is not zero.
pub(super) fn sum(one: &Quantity, other: &Quantity) -> Quantity {
    if one.is_zero() {
        return other.clone();
    }
    one.with_nanos(one.nanos().saturating_add(other.nanos()))
}

/// Adds amounts to others.
pub(super) fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let held = to.get(name).map_or_else(|| amount.clone(), |held| sum(held, amount));
        to.insert(name.clone(), held);
    }
}

fn raise(to: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        if to.get(name).is_none_or(|held| held < amount) {
            to.insert(name.clone(), amount.clone());
        }
    }
}

/// The `requests` or `limits` of a container.
pub(super) fn of_container(container: &Value, which: &str) -> Amounts {
    amounts(at(container, &format!("resources.{which}")))
}

/// The `requests` or `limits` of a pod: those of its containers together, or what starting it takes if that is
/// more. Init containers that go on running count with the containers.
pub(super) fn of_pod(pod: &Value, which: &str) -> Amounts {
    let mut total = Amounts::new();
    for container in list(pod, "spec.containers") {
        add(&mut total, &of_container(container, which));
    }
    let (mut running, mut starting) = (Amounts::new(), Amounts::new());
    for container in list(pod, "spec.initContainers") {
        let own = of_container(container, which);
        if text(container, "restartPolicy") == "Always" {
            add(&mut total, &own);
            add(&mut running, &own);
            raise(&mut starting, &running);
        } else {
            let mut together = own;
            add(&mut together, &running);
            raise(&mut starting, &together);
        }
    }
    raise(&mut total, &starting);
    // What is said about the whole pod stands.
    for (name, amount) in amounts(at(pod, &format!("spec.resources.{which}"))) {
        total.insert(name, amount);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_asks_for_the_sum_or_for_what_starting_takes() {
        let ask = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let mut sidecar = ask("100m");
        sidecar["restartPolicy"] = json!("Always");
        let pod = |init: Vec<Value>| json!({"spec": {"containers": [ask("1"), ask("500m")], "initContainers": init}});
        let cpu = |init| of_pod(&pod(init), "requests")["cpu"].to_string();
        assert_eq!(cpu(vec![]), "1500m");
        assert_eq!(cpu(vec![ask("2")]), "2");
        assert_eq!(cpu(vec![sidecar.clone()]), "1600m");
        assert_eq!(cpu(vec![sidecar, ask("2")]), "2100m");
    }
}
