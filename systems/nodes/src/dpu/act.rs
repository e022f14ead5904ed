//! A decision about a port as one step.

use super::decide::{At, Decision};
use super::observe::Scene;
use super::report::{Report, UNKNOWN};
use crate::kinds::{DPU_REPORT, PHYSICAL_NODE};
use crate::outside::{Action, Dpu, Question};
use crate::wired::Wired;
use interlock_api::nodes::DpuName;
use interlock_api::nodes::event::{DPU_CLEAN, DPU_PROGRAMMED, RECORD_LOST};
use interlock_kernel::conditions::with;
use interlock_kernel::{Address, Event, Importance, Name, Place, Read, Step, Write};
use serde_json::json;
use std::time::Duration;

/// How long a cache may take to show what a live read showed.
const CACHE: Duration = Duration::from_secs(5);
/// How often the DPU is read while another controller opens a port: the first reads follow each other faster.
const ENTRY: Duration = Duration::from_secs(1);
/// How often the whole DPU is read although nothing changed: no object says that somebody changed a port by hand.
const RESYNC: Duration = Duration::from_secs(60);

/// The one effect of a decision.
pub(super) fn act(here: &DpuName, scene: &Scene, decision: Decision) -> Step<Dpu> {
    let wait = |because: &str, at_most| Step::Wait { because: because.to_owned(), at_most };
    match decision {
        Decision::Rest(because) => Step::rest(because),
        Decision::WaitForCache => wait("the cache does not show yet what the hub says", CACHE),
        Decision::WaitForEntry => wait("a port is not open for its tenant yet", ENTRY),
        Decision::Resync => wait("the DPU is read again later", RESYNC),
        Decision::Ask => {
            live_read(scene, Vec::new(), "only the driver can say what is in the hardware")
        }
        Decision::ReadNodes(names) => {
            let reads = names.iter().map(|name| Read::Object(node_address(name)));
            let because = "only the hub itself can say whose the port is";
            live_read(scene, reads.collect(), because)
        }
        Decision::ListNodes => {
            let list = Read::List { place: Place::HUB, kind: PHYSICAL_NODE, namespace: None };
            live_read(
                scene,
                vec![list],
                "the name of the node that a port is open for is not known",
            )
        }
        Decision::AskAll => Step::LiveRead {
            reads: vec![Read::Ask(Question::Device)],
            because: "the report is of all ports".to_owned(),
        },
        Decision::Adopt { port, node, is_lost } => adopt(here, port, &node, is_lost),
        Decision::Isolate { port: At { port, term }, node, floor } => Step::outside(
            Action::Isolate { port, term, node, floor },
            format!("all epochs up to {floor} are revoked"),
        ),
        Decision::Detach { port: At { port, term }, tag, because } => {
            Step::outside(Action::Detach { port, term, tag }, because)
        }
        Decision::Forget(vni) => {
            Step::outside(Action::Forget { vni }, format!("no port is in the network {vni}"))
        }
        Decision::Report(report) => write_report(here, scene, &report),
    }
}

/// The driver first: what the hub says after that is not older than the term.
fn live_read(scene: &Scene, further: Vec<Read<Dpu>>, because: &str) -> Step<Dpu> {
    let ask = Read::Ask(scene.about.question());
    let reads = [ask].into_iter().chain(further).collect();
    Step::LiveRead { reads, because: because.to_owned() }
}

fn node_address(name: &str) -> Address {
    Address::new(Place::HUB, &PHYSICAL_NODE, Name::cluster_wide(name))
}

fn adopt(here: &DpuName, port: At, node: &Wired, is_lost: bool) -> Step<Dpu> {
    let At { port, term } = port;
    let Wired { name, uid, floor, .. } = node;
    let note = format!(
        "DPU {}/{} lost the record of port {port}; the port is closed, and is opened for node {name} again if the \
         node is still assigned",
        here.rack, here.dpu
    );
    let action = Action::Adopt { port, term, node: uid.clone(), floor: *floor };
    let step = Step::outside(action, format!("the port is that of node {name}, by a live read"));
    if !is_lost {
        return step;
    }
    step.telling(Event {
        about: node_address(name),
        uid: uid.clone(),
        importance: Importance::Warning,
        reason: RECORD_LOST,
        note,
    })
}

fn write_report(here: &DpuName, scene: &Scene, report: &Report) -> Step<Dpu> {
    let Some(object) = &scene.report else { return Step::rest("the hub has no DpuReport") };
    let generation = object.metadata.generation;
    let conditions = with(&scene.status.conditions, &report.ready, scene.now, generation);
    let change = json!({"status": {
        "bootID": report.boot, "vnis": report.vnis, "ports": report.ports, "conditions": conditions,
    }});
    let write = Write::patch_status(Place::HUB, &DPU_REPORT, object, change);
    let step = Step::write(write, "the DpuReport is not what the driver reads back");
    match event(here, scene, report) {
        Some(event) => step.telling(event),
        None => step,
    }
}

/// One event for a write: what is clean is what somebody waits for.
fn event(here: &DpuName, scene: &Scene, report: &Report) -> Option<Event> {
    let DpuName { rack, dpu } = here;
    let (node, reason, note) = if let Some(port) = report.cleaned(&scene.status) {
        let (node, floor) = (port.node.as_ref()?, port.floor);
        let clean = format!("has nothing of node {} programmed", node.name);
        let note = format!("DPU {rack}/{dpu} {clean}, and refuses all its epochs up to {floor}");
        (node, DPU_CLEAN, note)
    } else {
        let port = report.programmed(&scene.status)?;
        let (node, applied) = (port.node.as_ref()?, port.applied.as_ref()?);
        let open = format!("has node {} programmed for epoch {}", node.name, applied.epoch);
        (node, DPU_PROGRAMMED, format!("DPU {rack}/{dpu} {open}"))
    };
    (node.name != UNKNOWN).then(|| Event {
        about: node_address(&node.name),
        uid: node.uid.clone(),
        importance: Importance::Normal,
        reason,
        note,
    })
}
