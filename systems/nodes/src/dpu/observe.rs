//! What is seen of a port: its nodes, what the driver read back, and what was reported.

use super::DEVICE;
use super::facts::{About, Facts};
use crate::kinds::{DPU_REPORT, PHYSICAL_NODE};
use crate::outside::{Answer, Dpu, Gate, Port, Question};
use crate::wired::{Live, NODES_BY_PORT, NODES_BY_UID, Wired, port_value};
use interlock_api::nodes::{DpuName, DpuReportStatus};
use interlock_kernel::metadata::{name_of, uid_of};
use interlock_kernel::{LiveReads, Name, Object, Place, View, read_part};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// What one step is about.
#[derive(Debug)]
pub struct Scene {
    /// A port, or all.
    pub(super) about: About,
    /// The DpuReport, as the cache shows it.
    pub(super) report: Option<Object>,
    /// Its status.
    pub(super) status: DpuReportStatus,
    /// The time.
    pub(super) now: Timestamp,
}

impl About {
    /// What the driver is asked about it.
    pub(super) fn question(&self) -> Question {
        match self {
            About::Port(name) => Question::Port(name.clone()),
            About::Device => Question::Device,
        }
    }
}

/// Reads what a step is about.
pub(super) fn observe(
    here: &DpuName,
    subject: &str,
    view: &dyn View,
    live_reads: &LiveReads<Dpu>,
) -> (Facts, Scene) {
    let about = match subject {
        DEVICE => About::Device,
        port => About::Port(port.to_owned()),
    };
    let report = view.get(Place::HUB, &DPU_REPORT, &Name::cluster_wide(&here.to_string()));
    // One that cannot be read is written as a whole, as if it were empty.
    let status = report.as_ref().map(|report| {
        read_part::<DpuReportStatus>(report, "status").ok().flatten().unwrap_or_default()
    });
    let asked = live_reads.answers.get(&about.question());
    let device = live_reads.answers.get(&Question::Device);
    let nodes = match (&about, device) {
        (About::Port(port), None) => near(here, port, view, asked),
        (About::Port(_), Some(_)) | (About::Device, _) => {
            view.list(Place::HUB, &PHYSICAL_NODE, None)
        }
    };
    let facts = Facts {
        about: about.clone(),
        nodes: nodes.iter().filter_map(|node| Wired::read(node, here)).collect(),
        reported: status.clone(),
        asked: asked.cloned(),
        device: device.cloned(),
        live: live(here, live_reads),
        listed: asked.and_then(|asked| listed(here, asked, live_reads)),
    };
    (facts, Scene { about, report, status: status.unwrap_or_default(), now: view.now() })
}

/// The nodes that have a port, and those that its record and its entry name.
fn near(here: &DpuName, port: &str, view: &dyn View, asked: Option<&Answer>) -> Vec<Object> {
    let mut nodes = view.find(Place::HUB, &NODES_BY_PORT, &port_value(here, port));
    let asked = asked.and_then(|asked| asked.port(port));
    let uids = asked
        .into_iter()
        .flat_map(|port| port.record.node.as_deref().into_iter().chain(entry_node(port)));
    for uid in uids {
        for node in view.find(Place::HUB, &NODES_BY_UID, uid) {
            if !nodes.iter().any(|known| uid_of(known) == uid) {
                nodes.push(node);
            }
        }
    }
    nodes.sort_by(|one, other| name_of(one).cmp(name_of(other)));
    nodes
}

/// The uid of the node that a port is open for.
fn entry_node(port: &Port) -> Option<&str> {
    match &port.gate {
        Gate::Open(entry) => Some(&entry.tag.node),
        Gate::Closed | Gate::Foreign(_) => None,
    }
}

fn live(here: &DpuName, live_reads: &LiveReads<Dpu>) -> BTreeMap<String, Live> {
    let nodes = live_reads.objects.iter().filter(|(address, _)| address.kind == PHYSICAL_NODE);
    let live =
        nodes.map(|(address, node)| (address.name.name.to_string(), Live::of(node.as_ref(), here)));
    live.collect()
}

/// What a list of the hub says of the nodes that ports are open for.
fn listed(
    here: &DpuName,
    asked: &Answer,
    live_reads: &LiveReads<Dpu>,
) -> Option<BTreeMap<String, Live>> {
    let all = live_reads.lists.get(&(Place::HUB, PHYSICAL_NODE, None))?;
    let uids = asked.ports.iter().filter_map(entry_node);
    let of = |uid: &str| Live::of(all.iter().find(|node| uid_of(node) == uid), here);
    Some(uids.map(|uid| (uid.to_owned(), of(uid))).collect())
}
