//! Rooms that are bent in one place, and DPUs that forget one thing: each is a mistake that the simulation must find.

use crate::Flaw;
use interlock_api::nodes::{DpuName, FIRST_VNI, Ref};
use interlock_kernel::{Bent, Room};
use interlock_nodes::attach::{self, Attachments};
use interlock_nodes::claims::{self, Claims, network};
use interlock_nodes::dpu::{self, Ports};
use interlock_nodes::outside::{Answer, Gate};
use interlock_nodes::pool::{self, Pool};
use interlock_nodes::wired::Live;
use interlock_nodes::world::device::Forgets;
use std::net::IpAddr;

/// What the DPUs forget.
pub(crate) fn forgets(flaw: Flaw) -> Forgets {
    if flaw == Flaw::FloorIsNotCompared {
        return Forgets::Floor;
    }
    if flaw == Flaw::PortsComeUpOpen {
        return Forgets::ClosedBoot;
    }
    if flaw == Flaw::PortIsNotClosed {
        return Forgets::Close;
    }
    Forgets::Nothing
}

/// The room that is bent, by its name; None: all are as they ship.
pub(crate) fn bent_room(flaw: Flaw) -> Option<&'static str> {
    if flaw == Flaw::ReturnedWithoutReports {
        return Some("nodes/pool");
    }
    if flaw == Flaw::NetworkWithoutALease {
        return Some("nodes/claims");
    }
    if [Flaw::FloorIsOnlyReported, Flaw::PortIsNotClosed].contains(&flaw) {
        return Some("nodes/dpu");
    }
    (flaw == Flaw::TenantIsNotCompared).then_some("nodes/attach")
}

/// The pool: a node that is revoked returns before its DPUs have reported.
pub(crate) fn pool() -> Bent<Pool> {
    Bent::new(Pool).deciding(without_reports)
}

/// The claims of a tenant: it takes the first network, whoever has its Lease.
pub(crate) fn claims(tenant: Ref) -> Bent<Claims> {
    Bent::new(Claims::new(tenant)).deciding(first_network)
}

/// The ports of a DPU: they report what is not so.
pub(crate) fn ports(flaw: Flaw, here: DpuName) -> Bent<Ports> {
    let shipped = Bent::new(Ports { here });
    // A report that reads the hardware would show what the driver forgot.
    let is_of_driver = flaw == Flaw::PortIsNotClosed;
    if is_of_driver { shipped.deciding(as_closed) } else { shipped.deciding(as_raised) }
}

/// The attachments of a tenant at a DPU: what the hub says of tenant and claim is not compared.
pub(crate) fn attachments(here: DpuName, vtep: IpAddr, tenant: Ref) -> Bent<Attachments> {
    Bent::new(Attachments::new(here, vtep, tenant)).deciding(believing)
}

/// Each DPU counts as clean.
fn without_reports(facts: &pool::Facts) -> pool::Decision {
    let mut facts = facts.clone();
    if let pool::Facts::Node(facts) = &mut facts
        && let Some(node) = &mut facts.node
    {
        for dpu in &mut node.dpus {
            dpu.is_clean = true;
        }
        node.state.open.clear();
    }
    Pool::decide(&facts)
}

/// A tenant takes the first network, whoever has its Lease.
fn first_network(facts: &claims::Facts) -> claims::Decision {
    match Claims::decide(facts) {
        claims::Decision::Network(network::Decision::ReadLeases | network::Decision::Win(_)) => {
            claims::Decision::Network(network::Decision::SetVni(FIRST_VNI))
        }
        decision => decision,
    }
}

/// The facts with another answer of the driver.
fn answered(
    facts: &dpu::facts::Facts,
    change: impl Fn(&dpu::facts::Facts, &mut Answer),
) -> dpu::facts::Facts {
    let mut changed = facts.clone();
    let answers = [&mut changed.asked, &mut changed.device];
    answers.into_iter().flatten().for_each(|answer| change(facts, answer));
    changed
}

/// The record of each closed port counts as if it had the floor of the hub.
fn as_raised(facts: &dpu::facts::Facts) -> dpu::decide::Decision {
    let raised = answered(facts, |facts, answer| {
        for port in answer.ports.iter_mut().filter(|port| port.gate == Gate::Closed) {
            let node = facts.nodes.iter().find(|node| Some(&node.uid) == port.record.node.as_ref());
            port.record.floor = node.map_or(0, |node| node.floor).max(port.record.floor);
        }
    });
    Ports::decide(&raised)
}

/// Whatever is at or under the floor of its record counts as closed.
fn as_closed(facts: &dpu::facts::Facts) -> dpu::decide::Decision {
    let closed = answered(facts, |_, answer| {
        for port in &mut answer.ports {
            let floor = port.record.floor;
            if matches!(&port.gate, Gate::Open(entry) if entry.tag.epoch <= floor) {
                port.gate = Gate::Closed;
            }
        }
    });
    Ports::decide(&closed)
}

/// Whoever has the node at the hub, it counts as this tenant's, for the claim that the attachment names.
fn believing(facts: &attach::decide::Facts) -> attach::decide::Decision {
    let mut facts = facts.clone();
    if let attach::decide::Facts::Attachment(attachment) = &mut facts {
        let attachment = &mut **attachment;
        let tenant = attachment.serves.tenant.clone();
        let claim = attachment.wanted.claim.clone();
        let live = match &mut attachment.live_node {
            Some(Live::There(node)) => Some(&mut **node),
            Some(Live::Gone | Live::Unreadable) | None => None,
        };
        for node in attachment.node.iter_mut().chain(live) {
            if let Some(given) = &mut node.assignment {
                (given.tenant, given.claim) = (tenant.clone(), claim.clone());
            }
        }
    }
    Attachments::decide(&facts)
}
