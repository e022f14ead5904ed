//! What a DPU reports: what its driver read back, and nothing else.

use super::facts::Facts;
use crate::outside::{Answer, Gate, Port};
use interlock_api::nodes::condition::READY;
use interlock_api::nodes::{Applied, DpuReportStatus, PortReport, Ref};
use interlock_kernel::conditions::{Finding, find};
use serde::Serialize;

/// The name of a node of which only the uid is known.
pub(super) const UNKNOWN: &str = "unknown";
/// How many problems a condition spells out.
const MOST_PROBLEMS: usize = 3;

/// The status of a DpuReport.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Which boot it is of.
    pub boot: String,
    /// The networks on the DPU, sorted.
    pub vnis: Vec<u32>,
    /// The ports, by name.
    pub ports: Vec<PortReport>,
    /// Whether all of them can be read and opened.
    pub ready: Finding,
}

impl Report {
    /// Whether a status says it already.
    pub fn is_in(&self, status: &DpuReportStatus) -> bool {
        status.boot_id == self.boot
            && status.vnis == self.vnis
            && status.ports == self.ports
            && self.ready.is_in(&status.conditions)
    }

    /// The first port that was not known clean up to its floor before.
    pub fn cleaned<'a>(&'a self, before: &'a DpuReportStatus) -> Option<&'a PortReport> {
        let is_new = |port: &&PortReport| {
            let uid = port.node.as_ref().map_or("", |node| &node.uid);
            let known = before.port(&port.port);
            port.floor > 0 && port.clean && !known.is_some_and(|it| it.is_clean_of(uid, port.floor))
        };
        self.ports.iter().find(is_new)
    }

    /// The first port that is open for another epoch than before.
    pub fn programmed<'a>(&'a self, before: &'a DpuReportStatus) -> Option<&'a PortReport> {
        let is_new = |port: &&PortReport| {
            let known = before.port(&port.port).and_then(|it| it.applied.as_ref());
            port.applied.is_some() && port.applied.as_ref() != known
        };
        self.ports.iter().find(is_new)
    }
}

/// What is reported of a whole DPU.
pub(super) fn report(facts: &Facts, device: &Answer) -> Report {
    let mut vnis: Vec<u32> = device.networks.iter().map(|network| network.vni).collect();
    vnis.sort_unstable();
    let mut ports: Vec<PortReport> =
        device.ports.iter().map(|port| port_report(facts, port)).collect();
    ports.sort_by(|one, other| one.port.cmp(&other.port));
    Report { boot: device.boot.clone(), vnis, ports, ready: ready(facts, device) }
}

/// Whether all that was read of one port is in a report.
pub(super) fn is_reported(
    facts: &Facts,
    asked: &Answer,
    name: &str,
    reported: &DpuReportStatus,
) -> bool {
    let port = asked.port(name).map(|port| port_report(facts, port));
    let said = find(&reported.conditions, READY).map_or("", |ready| ready.message.as_str());
    let problem = problem(facts, asked, name);
    reported.boot_id == asked.boot
        && reported.port(name) == port.as_ref()
        && match problem {
            Some(problem) => said.contains(&problem.message),
            None => !said.contains(&prefix(name)),
        }
}

/// What is reported of a port. `clean` together with node and floor is believed for ever, so it is said of a closed
/// port only: the record that was read in the same moment refuses everything up to that floor.
fn port_report(facts: &Facts, port: &Port) -> PortReport {
    let node = port.record.node.as_ref().map(|uid| {
        let cached = facts.nodes.iter().find(|node| node.uid == *uid).map(|node| &node.name);
        let reported = facts.reported.as_ref().and_then(|reported| reported.port(&port.name));
        let reported = reported.and_then(|port| port.node.as_ref());
        let reported = reported.filter(|node| node.uid == *uid).map(|node| &node.name);
        let name = cached.or(reported).map_or(UNKNOWN, String::as_str);
        Ref { name: name.to_owned(), uid: uid.clone() }
    });
    let is_recorded = |uid: &str| port.record.node.as_deref() == Some(uid);
    let applied = match &port.gate {
        // Of a node that is not in the record, nothing is said: its uid would be missing.
        Gate::Open(entry) if is_recorded(&entry.tag.node) => Some(Applied {
            tenant: entry.tag.tenant.clone(),
            claim_uid: entry.tag.claim.clone(),
            epoch: entry.tag.epoch,
        }),
        Gate::Open(_) | Gate::Closed | Gate::Foreign(_) => None,
    };
    PortReport {
        port: port.name.clone(),
        node,
        floor: port.record.floor,
        clean: port.gate == Gate::Closed,
        applied,
    }
}

struct Problem {
    reason: &'static str,
    message: String,
}

fn prefix(port: &str) -> String {
    format!("port {port}: ")
}

/// What is wrong with one port.
fn problem(facts: &Facts, asked: &Answer, name: &str) -> Option<Problem> {
    let claimants: Vec<&str> = facts.claimants(name).map(|node| &*node.name).collect();
    let (reason, words) = match (asked.port(name), claimants.as_slice()) {
        (None, []) => return None,
        (None, [node, ..]) => {
            let wired = format!("spec.dpus of PhysicalNode {node} names it");
            ("PortNotFound", format!("the DPU has no such port; {wired}"))
        }
        (Some(port), nodes) => {
            let recorded =
                facts.claimants(name).any(|it| Some(&it.uid) == port.record.node.as_ref());
            if nodes.len() > 1 && !recorded {
                let all = nodes.join(" and ");
                ("PortOfTwoNodes", format!("it is in spec.dpus of the PhysicalNodes {all}"))
            } else if let Some(failure) = port.failure.as_ref().filter(|it| !it.is_late()) {
                (failure.reason, failure.message.clone())
            } else if let Gate::Foreign(words) = &port.gate
                && !nodes.is_empty()
            {
                let what = "it is open for something that Interlock did not open";
                ("ForeignPort", format!("{what}: {words}"))
            } else {
                return None;
            }
        }
    };
    Some(Problem { reason, message: format!("{}{words}", prefix(name)) })
}

/// The condition Ready: what the driver said went wrong, in its own words.
fn ready(facts: &Facts, device: &Answer) -> Finding {
    let filter = device.filter.iter();
    let filter = filter.map(|it| Problem { reason: it.reason, message: it.message.clone() });
    let wired = facts.nodes.iter().filter_map(|node| node.port.as_ref()).map(|wire| &wire.port);
    let mut names: Vec<&String> = device.ports.iter().map(|port| &port.name).chain(wired).collect();
    names.sort_unstable();
    names.dedup();
    let ports = names.iter().filter_map(|name| problem(facts, device, name));
    let problems: Vec<Problem> = filter.chain(ports).collect();
    let Some(first) = problems.first() else {
        return Finding::holds(READY, "PortsRead", "the driver reads and opens all ports");
    };
    let mut said: Vec<&str> =
        problems.iter().take(MOST_PROBLEMS).map(|problem| &*problem.message).collect();
    let more = format!("and {} more", problems.len().saturating_sub(MOST_PROBLEMS));
    if problems.len() > MOST_PROBLEMS {
        said.push(&more);
    }
    Finding::fails(READY, first.reason, said.join("; "))
}
