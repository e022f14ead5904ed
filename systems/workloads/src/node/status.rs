//! The status of the Node: what a kubelet would report of its machine.

use super::Machine;
use crate::status;
use interlock_kernel::Object;
use interlock_kernel::conditions::Finding;
use jiff::Timestamp;
use serde_json::{Value, json};

/// What a kubelet reports of a machine at ease.
fn findings() -> [Finding; 4] {
    [
        Finding::fails("MemoryPressure", "KubeletHasSufficientMemory", "processes have memory"),
        Finding::fails("DiskPressure", "KubeletHasNoDiskPressure", "processes have disk space"),
        Finding::fails("PIDPressure", "KubeletHasSufficientPID", "processes can be started"),
        Finding::holds("Ready", "KubeletReady", "the process runtime runs pods on this machine"),
    ]
}

/// What is said of the machine, besides the conditions.
fn machine(machine: &Machine) -> Value {
    let resources = json!({
        "cpu": machine.processors.to_string(),
        "memory": format!("{}Ki", machine.memory_bytes / 1024),
        "ephemeral-storage": format!("{}Ki", machine.disk_bytes / 1024),
        "pods": machine.pods.to_string(),
    });
    json!({
        "capacity": resources,
        "allocatable": resources,
        "addresses": [
            {"type": "InternalIP", "address": "127.0.0.1"},
            {"type": "Hostname", "address": machine.name},
        ],
        "nodeInfo": {
            "machineID": machine.name, "systemUUID": machine.name, "bootID": machine.boot_id,
            "kernelVersion": machine.kernel_version, "osImage": machine.operating_system,
            "containerRuntimeVersion": format!("process://{}", machine.version),
            "kubeletVersion": machine.version, "kubeProxyVersion": "",
            "operatingSystem": machine.operating_system, "architecture": machine.architecture,
        },
    })
}

/// The status of the Node. Conditions that hold as before keep their times, and so do those of others.
pub(super) fn of(described: &Machine, node: Option<&Object>, now: Timestamp) -> Value {
    let mut conditions = node.map(|node| status::conditions_of(node)).unwrap_or_default();
    for finding in findings() {
        if status::is_said(&conditions, &finding) {
            continue;
        }
        conditions = status::with(&conditions, &finding, now);
        let found = conditions.iter_mut().find(|condition| condition["type"] == finding.kind);
        if let Some(found) = found {
            found["lastHeartbeatTime"] = status::time(now);
        }
    }
    let mut status = machine(described);
    status["conditions"] = json!(conditions);
    status
}

/// Whether the status of the Node says all of it.
pub(super) fn is_reported(described: &Machine, node: &Object) -> bool {
    let conditions = status::conditions_of(node);
    let reported = &node.data["status"];
    let wanted = machine(described);
    let mut parts = wanted.as_object().into_iter().flatten();
    let are_parts_said = parts.all(|(part, value)| says(&reported[part], value));
    are_parts_said && findings().iter().all(|finding| status::is_said(&conditions, finding))
}

/// Whether all that is wanted is there; what a server or somebody else put beside it does not matter.
fn says(reported: &Value, wanted: &Value) -> bool {
    match wanted {
        Value::Object(fields) => fields.iter().all(|(key, value)| {
            // A server leaves out a text that is empty.
            says(&reported[key], value) || (value == "" && reported[key].is_null())
        }),
        other => reported == other,
    }
}
