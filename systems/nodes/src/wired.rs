//! A PhysicalNode as the agent of a DPU sees it: which port it has there, and whose it is.

use crate::kinds::PHYSICAL_NODE;
use interlock_api::nodes::{Assignment, DpuName, NodePhase, PhysicalNodeSpec, PhysicalNodeStatus};
use interlock_kernel::metadata::{name_of, uid_of};
use interlock_kernel::{Index, Object, read_part};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// PhysicalNodes by each port that they are wired to: `<rack>.<dpu>/<port>`.
pub const NODES_BY_PORT: Index = Index {
    name: "by-port",
    kind: PHYSICAL_NODE,
    values: |node| {
        let dpus = node.data["spec"]["dpus"].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let port = |dpu: &Value| {
            port_value(&DpuName::new(text(&dpu["rack"]), text(&dpu["dpu"])), &text(&dpu["port"]))
        };
        dpus.map(port).collect()
    },
};

/// PhysicalNodes by their uid.
pub const NODES_BY_UID: Index =
    Index { name: "by-uid", kind: PHYSICAL_NODE, values: |node| vec![uid_of(node).to_owned()] };

/// What [`NODES_BY_PORT`] files the node of a port under.
pub fn port_value(dpu: &DpuName, port: &str) -> String {
    format!("{dpu}/{port}")
}

/// A PhysicalNode, for one DPU.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Wired {
    /// Its name.
    pub name: String,
    /// Its identity: another node may have its name later.
    pub uid: String,
    /// Its rack.
    pub rack: String,
    /// Its port at this DPU; None: it has none, or the DPU is in another rack than the node.
    pub port: Option<Wire>,
    /// All DPUs that its spec names.
    pub dpus: Vec<DpuName>,
    /// Its phase.
    pub phase: NodePhase,
    /// The last epoch that was given.
    pub epoch: i64,
    /// The highest epoch that is revoked.
    pub floor: i64,
    /// Whose it is, or was last.
    pub assignment: Option<Assignment>,
}

/// A port, as the spec of a PhysicalNode has it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Wire {
    /// Its name.
    pub port: String,
    /// The MAC address of the machine there.
    pub mac: String,
}

/// What the hub itself said of a PhysicalNode.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum Live {
    /// There is none of that name.
    Gone,
    /// There is one, and its spec or status cannot be read: nothing follows from it.
    Unreadable,
    /// It is this one.
    There(Box<Wired>),
}

impl Wired {
    /// Reads a PhysicalNode; None: its spec or status cannot be read.
    pub fn read(node: &Object, here: &DpuName) -> Option<Wired> {
        let spec = read_part::<PhysicalNodeSpec>(node, "spec").ok().flatten()?;
        let status = read_part::<PhysicalNodeStatus>(node, "status").ok()?.unwrap_or_default();
        let uid = Some(uid_of(node)).filter(|uid| !uid.is_empty())?;
        let here = spec.at(here).filter(|_| spec.rack == here.rack);
        Some(Wired {
            name: name_of(node).to_owned(),
            uid: uid.to_owned(),
            port: here.map(|dpu| Wire { port: dpu.port.clone(), mac: dpu.mac.clone() }),
            dpus: spec.dpus.iter().map(|dpu| dpu.name()).collect(),
            rack: spec.rack,
            phase: status.phase,
            epoch: status.epoch,
            floor: status.floor,
            assignment: status.assignment,
        })
    }

    /// Whether it is wired to this port of the DPU.
    pub fn is_at(&self, port: &str) -> bool {
        self.port.as_ref().is_some_and(|wire| wire.port == port)
    }

    /// Its assignment, if it holds: it is not revoked.
    pub fn assigned(&self) -> Option<&Assignment> {
        let assignment = self.assignment.as_ref().filter(|_| self.phase.is_assigned())?;
        (assignment.epoch == self.epoch && assignment.epoch > self.floor).then_some(assignment)
    }

    /// The DPUs of its spec that are not in its rack.
    pub fn misplaced(&self) -> impl Iterator<Item = &DpuName> {
        self.dpus.iter().filter(|dpu| dpu.rack != self.rack)
    }
}

impl Live {
    /// What a live read of a name showed.
    pub fn of(read: Option<&Object>, here: &DpuName) -> Live {
        let Some(node) = read else { return Live::Gone };
        Wired::read(node, here).map_or(Live::Unreadable, |node| Live::There(Box::new(node)))
    }

    /// The node, if it could be read.
    pub fn node(&self) -> Option<&Wired> {
        match self {
            Live::There(node) => Some(node),
            Live::Gone | Live::Unreadable => None,
        }
    }
}
