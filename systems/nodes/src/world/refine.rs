//! The world in the words of the protocol, `spec/nodes-device`, as the controllers have it that ship.
//!
//! Where steps are under way (`flights`) nothing is compared: the protocol has the live read of an agent and its call
//! as two steps, and knows by which term the call was decided; a picture of the world does not show what a step has
//! asked so far. Those sizes are held against the promises.

use super::truth::{Node, Open, Truth};
use super::{Nodes, TENANTS};
use crate::device::NodesDevice;
use crate::device::state::{Floor, Grant, MOST_DPUS, MOST_UIDS, Phase, Port, State as Picture};
use interlock_api::nodes::NodePhase;
use interlock_checker::Refinement;
use interlock_world::{Basis, State, World};

/// The name of the refinement: a mutant says that it breaks this.
pub(super) const REFINED: &str = "spec/nodes-device, as shipped";

/// More than any world gives.
const EPOCHS: u8 = 4;

/// One step of the world is at most so many of the protocol: an agent reads and calls, a DPU reports and the hub hears
/// it, power goes and comes back.
const MOST_STEPS: usize = 2;

pub(super) fn refines(system: &Nodes, world: &World<Nodes>) -> Vec<Refinement<State>> {
    let size = &system.size;
    // The protocol does not forget.
    if size.flights > 0 || size.restores > 0 {
        return Vec::new();
    }
    let (tenants, dpus) = (size.tenants as u8, size.dpus as u8);
    let protocol = NodesDevice::shipped(tenants, dpus, EPOCHS, size.fresh == 0);
    vec![world.refinement(REFINED, protocol, MOST_STEPS, picture)]
}

/// The number of a node in the protocol: of all that had the name, the first is 1. A uid ends with how many there were
/// before.
fn number(uid: &str) -> u8 {
    let before = uid.rsplit('-').next().and_then(|digits| digits.parse::<u8>().ok());
    before.map_or(1, |before| before + 1)
}

fn tenant(name: &str) -> Option<u8> {
    TENANTS.iter().position(|tenant| *tenant == name).map(|place| place as u8)
}

fn picture(system: &Nodes, basis: &Basis<Nodes>) -> Picture {
    let truth = &*basis.truth;
    let mut picture = Picture { ports: [Port::default(); MOST_DPUS], ..Picture::default() };
    match &truth.node {
        Some(node) => show_node(node, &mut picture),
        // It was replaced, and its successor is not there yet: to the protocol that is one step.
        None => picture.uid = MOST_UIDS as u8,
    }
    for dpu in 0..system.size.dpus as usize {
        picture.ports[dpu] = port(truth, dpu, picture.uid);
    }
    picture
}

fn show_node(node: &Node, picture: &mut Picture) {
    picture.uid = number(&node.uid);
    picture.phase = match node.phase {
        NodePhase::Available | NodePhase::Quarantined => Phase::Available,
        NodePhase::Bound | NodePhase::Draining => Phase::Bound,
        NodePhase::Releasing => Phase::Releasing,
    };
    picture.owner = node.assignment.as_ref().and_then(|given| tenant(&given.tenant.name));
    (picture.epoch, picture.floor) = (node.epoch as u8, node.floor as u8);
}

fn port(truth: &Truth, dpu: usize, uid: u8) -> Port {
    let record = truth.records[dpu].as_ref();
    let mut acked = [None; MOST_UIDS];
    for clean in truth.reported_by(dpu) {
        let known = &mut acked[usize::from(number(clean.0)) - 1];
        *known = (*known).max(Some(clean.1 as u8));
    }
    let seen_off = truth.node.as_ref().filter(|node| node.seen_off[dpu]);
    Port {
        entry: truth.open.iter().find(|open| open.dpu == dpu).map(grant),
        node: record.map_or(0, |(node, _)| number(node)),
        floor: record.map_or(0, |(_, floor)| *floor as u8),
        powered: truth.is_on[dpu],
        connected: true,
        acked,
        evidence: seen_off.map(|node| Floor { uid, floor: node.floor as u8 }),
        ..Port::default()
    }
}

fn grant(open: &Open) -> Grant {
    // `tenant-a-0`
    let name = open.tag.tenant.split('-').nth(1).unwrap_or_default();
    Grant {
        uid: number(&open.tag.node),
        tenant: tenant(name).unwrap_or(0),
        epoch: open.tag.epoch as u8,
    }
}
