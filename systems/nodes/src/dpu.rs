//! Keeps the ports of one DPU as the hub says, and reports what is there. The subject of a step is a port, or the
//! DPU as a whole.
//!
//! It closes, and never opens: what is revoked is closed and refused by the record of the port from then on, and only
//! then reported. To open a port for a tenant is the work of nodes/attach.

mod act;
pub mod decide;
pub mod facts;
mod observe;
pub mod report;
#[cfg(test)]
mod tests;

use crate::kinds::{DPU_REPORT, PHYSICAL_NODE};
use crate::outside::Dpu;
use crate::wired::{NODES_BY_PORT, NODES_BY_UID, Wired};
use interlock_api::nodes::{DpuName, DpuReportStatus, PortReport};
use interlock_kernel::metadata::{label, name_of};
use interlock_kernel::{
    LiveReads, Name, Object, Observed, Place, Right, Room, Selector, Step, Subject, Verb, View,
    Watch, Watcher, read_part,
};

/// The subject for the DPU as a whole: no port has a slash in its name.
pub const DEVICE: &str = "/device";

/// The controller of the ports of one DPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ports {
    /// The DPU that it runs on.
    pub here: DpuName,
}

impl Ports {
    /// What a PhysicalNode is about: its port and, if it has a tenant or the DPU has not reported the port, the DPU as a
    /// whole, which is read until the port is open. If its spec cannot be read, its label names the port.
    fn concerned(&self, node: &Object, view: &dyn View) -> Vec<Subject> {
        let Some(node) = Wired::read(node, &self.here) else {
            let labelled = label(node, &self.here.label_key());
            return labelled.map(Subject::from).into_iter().collect();
        };
        let Some(wire) = &node.port else { return Vec::new() };
        let name = Name::cluster_wide(&self.here.to_string());
        let report = view.get(Place::HUB, &DPU_REPORT, &name);
        let is_reported = report.is_some_and(|report| status(&report).port(&wire.port).is_some());
        let is_whole = node.assigned().is_some() || !is_reported;
        let whole = is_whole.then(|| Subject::from(DEVICE));
        [Subject::from(wire.port.as_str())].into_iter().chain(whole).collect()
    }

    fn nodes(&self, view: &dyn View) -> Vec<Wired> {
        let nodes = view.list(Place::HUB, &PHYSICAL_NODE, None);
        nodes.iter().filter_map(|node| Wired::read(node, &self.here)).collect()
    }

    /// What a report gives reason to do: the ports that are not as their nodes are, and the DPU as a whole if
    /// something is reported that no node here accounts for. The report of a DPU changes with each of its ports, so
    /// those that are settled must cost nothing.
    fn unsettled(&self, report: &Object, view: &dyn View) -> Vec<Subject> {
        let status = status(report);
        let nodes = self.nodes(view);
        let mut subjects = Vec::new();
        let mut is_whole = status.boot_id.is_empty();
        for node in &nodes {
            let Some(wire) = &node.port else { continue };
            match status.port(&wire.port) {
                None => is_whole = true,
                Some(port) if is_settled(node, port) => {}
                Some(_) => subjects.push(Subject::from(wire.port.as_str())),
            }
        }
        let is_anybodys = |port: &&PortReport| nodes.iter().any(|node| node.is_at(&port.port));
        is_whole |= status.ports.iter().any(|port| !port.clean && !is_anybodys(&port));
        let is_needed = |vni: &u32| {
            nodes.iter().filter_map(Wired::assigned).any(|assignment| assignment.vni == *vni)
        };
        is_whole |= !status.vnis.iter().all(is_needed);
        subjects.extend(is_whole.then(|| Subject::from(DEVICE)));
        subjects
    }
}

fn status(report: &Object) -> DpuReportStatus {
    read_part(report, "status").ok().flatten().unwrap_or_default()
}

/// Whether a port is reported as its node is: nothing is to be done about it here.
fn is_settled(node: &Wired, port: &PortReport) -> bool {
    let is_recorded = port.node.as_ref().is_some_and(|recorded| recorded.uid == node.uid);
    let is_applied = || {
        let applied = port.applied.as_ref().map(|applied| applied.epoch);
        applied.is_some() && applied == node.assigned().map(|assignment| assignment.epoch)
    };
    is_recorded && port.floor >= node.floor && (port.clean || is_applied())
}

impl Watcher for Ports {
    fn name(&self) -> &'static str {
        "nodes/dpu"
    }

    fn watches(&self) -> Vec<Watch> {
        let wired_here = Selector::labelled(self.here.label_key());
        vec![
            Watch::all(Place::HUB, &PHYSICAL_NODE)
                .only(wired_here)
                .by(&NODES_BY_PORT)
                .by(&NODES_BY_UID),
            Watch::all(Place::HUB, &DPU_REPORT)
                .only(Selector::Named(self.here.to_string().as_str().into())),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        Right::to(Place::HUB, &DPU_REPORT, &[Verb::PatchStatus])
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == PHYSICAL_NODE {
            return self.concerned(object, view);
        }
        if name_of(object) != self.here.to_string() {
            return Vec::new();
        }
        self.unsettled(object, view)
    }

    /// The DPU as a whole is read although no object may say that there is something to read.
    fn everything(&self, view: &dyn View) -> Option<Vec<Subject>> {
        let nodes = view.list(Place::HUB, &PHYSICAL_NODE, None);
        let mut all: Vec<Subject> =
            nodes.iter().flat_map(|node| self.concerned(node, view)).collect();
        all.push(Subject::from(DEVICE));
        all.sort_unstable();
        all.dedup();
        Some(all)
    }
}

impl Room for Ports {
    type Outside = Dpu;
    type Facts = facts::Facts;
    type Decision = decide::Decision;
    type Scene = observe::Scene;

    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Dpu>,
    ) -> Observed<facts::Facts, observe::Scene> {
        let (facts, scene) = observe::observe(&self.here, subject, view, live_reads);
        Observed::Seen { facts, scene }
    }

    fn decide(facts: &facts::Facts) -> decide::Decision {
        decide::decide(facts)
    }

    fn act(&self, scene: &observe::Scene, decision: decide::Decision) -> Step<Dpu> {
        act::act(&self.here, scene, decision)
    }
}
