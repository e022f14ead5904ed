//! Machines as their objects show them: whose each is, and what it waits for. Pure.

use interlock_api::nodes::{DpuName, DpuReport, NodePhase, PhysicalNode, condition};
use interlock_kernel::conditions::{self, Condition};
use jiff::Timestamp;
use kube::ResourceExt;
use serde::Serialize;

/// A machine: one element of `node list -o json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) rack: String,
    pub(crate) phase: NodePhase,
    /// Since when it is in the phase.
    pub(crate) since: Option<Timestamp>,
    /// Whose it is, or was last while its DPUs are not known clean.
    pub(crate) tenant: Option<String>,
    pub(crate) claim: Option<String>,
    /// The WorkloadCluster that runs on it.
    pub(crate) cluster: Option<String>,
    pub(crate) epoch: i64,
    pub(crate) floor: i64,
    /// Whether all its DPUs have it programmed.
    pub(crate) network_ready: bool,
    /// What it waits for; empty: nothing.
    pub(crate) waits_for: Vec<String>,
    /// Whether a person has to act.
    pub(crate) needs_a_person: bool,
    /// What a person does next.
    pub(crate) next: Option<String>,
}

/// Each machine, in the same order.
pub(crate) fn rows(nodes: &[PhysicalNode], reports: &[DpuReport]) -> Vec<Row> {
    nodes.iter().map(|node| row(node, reports)).collect()
}

/// A machine.
pub(crate) fn row(node: &PhysicalNode, reports: &[DpuReport]) -> Row {
    let status = node.status_or_default();
    let complaints: Vec<&Condition> = [
        (condition::RELEASE_BLOCKED, "True"),
        (condition::CONFIGURATION_CONSISTENT, "False"),
        (condition::CLAIM_PRESENT, "False"),
    ]
    .into_iter()
    .filter_map(|(kind, bad)| {
        conditions::find(&status.conditions, kind).filter(|found| found.status == bad)
    })
    .collect();
    let mut waits_for = waits(node, reports);
    waits_for.extend(complaints.iter().map(|found| found.message.clone()));
    let assignment = status.assignment.as_ref();
    Row {
        name: node.name_any(),
        rack: node.spec.rack.clone(),
        phase: status.phase,
        since: status.phase_since.as_ref().map(|since| since.0),
        tenant: assignment.map(|it| it.tenant.name.clone()),
        claim: assignment.map(|it| it.claim.name.clone()),
        cluster: status.cluster.as_ref().map(|cluster| cluster.name.clone()),
        epoch: status.epoch,
        floor: status.floor,
        network_ready: conditions::is_true(&status.conditions, condition::NETWORK_READY),
        waits_for,
        needs_a_person: !complaints.is_empty(),
        next: complaints.iter().find_map(|found| found.next.clone()),
    }
}

/// What a machine waits for, DPU by DPU, or cluster.
fn waits(node: &PhysicalNode, reports: &[DpuReport]) -> Vec<String> {
    let status = node.status_or_default();
    let report_of = |dpu: &DpuName| reports.iter().find(|report| report.dpu_name() == *dpu);
    let uid = node.uid().unwrap_or_default();
    let mut waits = Vec::new();
    if status.phase == NodePhase::Draining {
        let cluster = status.cluster.as_ref().map_or("its cluster", |it| it.name.as_str());
        waits.push(format!("cluster {cluster} is not drained"));
    }
    if status.phase == NodePhase::Quarantined {
        let reason = node.spec.quarantine.as_ref().map_or("no reason given", |it| &it.reason);
        waits.push(format!("quarantine: {reason}"));
    }
    for wired in &node.spec.dpus {
        let dpu = wired.name();
        let report = report_of(&dpu).and_then(|it| it.status.as_ref());
        let port = report.and_then(|it| it.port(&wired.port));
        let is_of_node = port.and_then(|it| it.node.as_ref()).is_some_and(|it| it.uid == uid);
        match status.phase {
            NodePhase::Releasing => {
                let is_fenced = |fenced: &interlock_api::nodes::FencedDpu| {
                    fenced.dpu == dpu && fenced.epoch == status.epoch
                };
                if status.fenced.iter().any(is_fenced) {
                    continue;
                }
                match port.filter(|_| is_of_node) {
                    None => waits.push(format!("DPU {dpu} has not reported this machine")),
                    Some(port) if port.floor < status.epoch => waits.push(format!(
                        "DPU {dpu} has not revoked epoch {} yet (its floor is {})",
                        status.epoch, port.floor
                    )),
                    Some(port) if !port.clean => {
                        waits.push(format!("DPU {dpu} still has the machine programmed"));
                    }
                    Some(_) => {}
                }
            }
            NodePhase::Bound => {
                let applied = port.filter(|_| is_of_node).and_then(|it| it.applied.as_ref());
                if applied.is_none_or(|applied| applied.epoch != status.epoch) {
                    waits.push(format!("DPU {dpu} has not programmed epoch {} yet", status.epoch));
                }
            }
            NodePhase::Available | NodePhase::Draining | NodePhase::Quarantined => {}
        }
    }
    waits
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn node(status: Value) -> PhysicalNode {
        serde_json::from_value(json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "PhysicalNode",
            "metadata": {"name": "n1", "uid": "uid-n1"},
            "spec": {"rack": "r1", "reclaimEpoch": 0, "dpus": [
                {"rack": "r1", "dpu": "d1", "port": "p1", "mac": "02:00:00:00:00:01"},
                {"rack": "r1", "dpu": "d2", "port": "p1", "mac": "02:00:00:00:00:02"},
            ]},
            "status": status,
        }))
        .expect("a node")
    }

    fn report(dpu: &str, port: Value) -> DpuReport {
        serde_json::from_value(json!({
            "apiVersion": "interlock.dev/v1alpha1", "kind": "DpuReport",
            "metadata": {"name": format!("r1.{dpu}")}, "spec": {"rack": "r1", "dpu": dpu},
            "status": {"bootID": "b", "ports": [port]},
        }))
        .expect("a report")
    }

    fn port(uid: &str, floor: i64, clean: bool, applied: Option<i64>) -> Value {
        let mut port = json!({"port": "p1", "node": {"name": "n1", "uid": uid}, "floor": floor, "clean": clean});
        if let Some(epoch) = applied {
            port["applied"] = json!({"tenant": "t", "claimUID": "c", "epoch": epoch});
        }
        port
    }

    #[test]
    fn a_release_waits_for_each_dpu_that_has_not_reported_its_floor() {
        let releasing = json!({"phase": "Releasing", "epoch": 3, "floor": 3});
        let cases = [
            (None, "DPU r1.d2 has not reported this machine"),
            (Some(port("uid-old", 3, true, None)), "DPU r1.d2 has not reported this machine"),
            (
                Some(port("uid-n1", 2, true, None)),
                "DPU r1.d2 has not revoked epoch 3 yet (its floor is 2)",
            ),
            (Some(port("uid-n1", 3, false, Some(3))), "DPU r1.d2 still has the machine programmed"),
        ];
        for (second, wanted) in cases {
            let mut reports = vec![report("d1", port("uid-n1", 3, true, None))];
            reports.extend(second.map(|port| report("d2", port)));
            let row = row(&node(releasing.clone()), &reports);
            assert_eq!(row.waits_for, [wanted]);
            assert!(!row.needs_a_person, "nobody has to act before it takes too long");
        }
    }

    #[test]
    fn a_dpu_that_is_fenced_is_not_waited_for_and_one_of_an_earlier_epoch_is() {
        let fenced = |epoch| {
            json!({"phase": "Releasing", "epoch": 3, "floor": 3,
                "fenced": [{"dpu": {"rack": "r1", "dpu": "d2"}, "epoch": epoch}]})
        };
        let reports = [report("d1", port("uid-n1", 3, true, None))];
        assert!(row(&node(fenced(3)), &reports).waits_for.is_empty());
        assert_eq!(row(&node(fenced(2)), &reports).waits_for.len(), 1);
    }

    #[test]
    fn a_bound_machine_waits_for_the_dpus_that_have_not_programmed_it() {
        let bound = json!({"phase": "Bound", "epoch": 3, "floor": 2, "assignment": {
            "tenant": {"name": "blue", "uid": "t"}, "claim": {"name": "web", "uid": "c"},
            "epoch": 3, "vni": 4096}});
        let reports = [
            report("d1", port("uid-n1", 2, false, Some(3))),
            report("d2", port("uid-n1", 2, true, None)),
        ];
        let row = row(&node(bound), &reports);
        assert_eq!(row.waits_for, ["DPU r1.d2 has not programmed epoch 3 yet"]);
        assert_eq!((row.tenant.as_deref(), row.claim.as_deref()), (Some("blue"), Some("web")));
    }

    #[test]
    fn what_a_person_has_to_do_comes_from_the_conditions() {
        let blocked = json!({"phase": "Releasing", "epoch": 3, "floor": 3, "conditions": [{
            "type": "ReleaseBlocked", "status": "True", "reason": "DpuSilent",
            "message": "DPU r1.d2 has not reported for 11m", "next": "interlock node fence n1",
            "lastTransitionTime": "2001-01-01T00:00:00Z"}]});
        let row = row(&node(blocked), &[report("d1", port("uid-n1", 3, true, None))]);
        assert!(row.needs_a_person);
        assert_eq!(row.next.as_deref(), Some("interlock node fence n1"));
        assert_eq!(
            row.waits_for.last().map(String::as_str),
            Some("DPU r1.d2 has not reported for 11m")
        );
    }
}
