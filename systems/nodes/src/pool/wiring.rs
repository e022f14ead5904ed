//! Whether the DPUs of a machine are those of its rack, and its ports its own.

use crate::filed::{NODES_BY_WIRE, port_key};
use crate::kinds::RACK;
use crate::record::NodeRecord;
use interlock_api::nodes::condition::CONFIGURATION_CONSISTENT;
use interlock_api::nodes::{NodeDpu, RackSpec};
use interlock_kernel::conditions::Finding;
use interlock_kernel::metadata::{name_of, uid_of};
use interlock_kernel::{Name, Object, Place, View, nearest, read_part};

/// The rack of a machine, as the cache shows it.
pub(super) fn rack_of(node: &NodeRecord, view: &dyn View) -> Option<RackSpec> {
    let rack = view.get(Place::HUB, &RACK, &Name::cluster_wide(&node.spec.rack))?;
    read_part::<RackSpec>(&rack, "spec").ok().flatten()
}

/// The condition of a machine. It is inconsistent for the first of its DPUs that is not there, or whose port is an older
/// node's.
pub(super) fn wiring(node: &NodeRecord, rack: Option<&RackSpec>, view: &dyn View) -> Finding {
    let inconsistent = |reason, message: String, next: String| {
        Finding::fails(CONFIGURATION_CONSISTENT, reason, message).next(next)
    };
    let (name, of) = (node.name(), &node.spec.rack);
    if node.spec.dpus.is_empty() {
        let message = format!("node {name} names no DPU, so nothing can close its network");
        return inconsistent("NoDpu", message, format!("add the DPUs of node {name} to spec.dpus"));
    }
    let Some(rack) = rack else {
        let message =
            format!("node {name} is in rack {of}, and there is no Rack {of} that can be read");
        return inconsistent(
            "UnknownRack",
            message,
            format!("create Rack {of}, or correct spec.rack of node {name}"),
        );
    };
    let known: Vec<&str> = rack.dpus.iter().map(|dpu| dpu.name.as_str()).collect();
    let has = format!(
        "rack {of} has {}",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    );
    for dpu in &node.spec.dpus {
        let shown = format!("{}/{}", dpu.rack, dpu.dpu);
        if dpu.rack != *of {
            let message = format!("dpu {shown} is not in rack {of}; {has}");
            return inconsistent(
                "OtherRack",
                message,
                format!("name a DPU of rack {of} in spec.dpus of node {name}"),
            );
        }
        if rack.dpu(&dpu.dpu).is_none() {
            let meant = nearest(&dpu.dpu, known.iter().copied());
            let meant = meant.first().map(|meant| format!(" {meant}?")).unwrap_or_default();
            let message = format!("dpu {shown} is not in rack {of}; {has}");
            let next = format!(
                "name a DPU of rack {of} in spec.dpus of node {name}{}",
                if meant.is_empty() { String::new() } else { format!(": did you mean{meant}") }
            );
            return inconsistent("UnknownDpu", message, next);
        }
        if let Some(other) = older_at(node, dpu, view) {
            let other = name_of(&other);
            let message =
                format!("port {} of dpu {shown} is node {other}'s, which is older", dpu.port);
            return inconsistent(
                "PortTaken",
                message,
                format!("correct spec.dpus of node {name} or of node {other}"),
            );
        }
    }
    Finding::holds(
        CONFIGURATION_CONSISTENT,
        "Consistent",
        "each DPU is in the rack, and each port is the node's own",
    )
}

/// An older node at the same port.
fn older_at(node: &NodeRecord, dpu: &NodeDpu, view: &dyn View) -> Option<Object> {
    let key = port_key(&dpu.rack, &dpu.dpu, &dpu.port);
    let born =
        |object: &Object| (object.metadata.creation_timestamp.clone(), uid_of(object).to_owned());
    let others = view.find(Place::HUB, &NODES_BY_WIRE, &key);
    others.into_iter().find(|other| uid_of(other) != node.uid() && born(other) < born(&node.object))
}
