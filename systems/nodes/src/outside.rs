//! What nodes asks of a DPU, and does to it: types only. `crates/dpu` has the drivers.
//!
//! Beside each port of a DPU lies a [`Record`], which the driver replaces as a whole and syncs. Every action works
//! under the lock of its port and names the term that was read before the hub was: an action that comes late meets
//! another term, or a floor at or above its epoch, and is refused.

use interlock_kernel::Outside;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The DPU that an agent runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dpu {}

impl Outside for Dpu {
    type Question = Question;
    type Answer = Answer;
    type Action = Action;
}

/// A question to the driver of a DPU. Asking changes no port and raises no floor; a port whose record is missing,
/// unreadable or of another boot gets a new record, with a new term, before it is answered for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Question {
    /// All ports and networks.
    Device,
    /// One port, and the network that it is in.
    Port(String),
}

/// What the driver answered: of each port, one moment under its lock.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Answer {
    /// Which boot of the DPU this is.
    pub boot: String,
    /// Why no port can be opened, although ports are closed and read: there is no packet filter. None: it works.
    pub filter: Option<Failure>,
    /// The ports that were asked for and are there, by name.
    pub ports: Vec<Port>,
    /// The networks of tenants on this DPU, by number.
    pub networks: Vec<Network>,
}

impl Answer {
    /// A port by its name.
    pub fn port(&self, name: &str) -> Option<&Port> {
        self.ports.iter().find(|port| port.name == name)
    }
}

/// A port, as the driver read it back.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Port {
    /// Its name: of a network interface, in the Linux driver.
    pub name: String,
    /// Its record.
    pub record: Record,
    /// What passes.
    pub gate: Gate,
    /// What went wrong with the last action about this port, or with reading it; None: nothing.
    pub failure: Option<Failure>,
}

/// What the device itself knows about a port.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Record {
    /// The name of the record's life: new when the record was missing or unreadable, or of another boot, and with
    /// each adoption.
    pub term: Term,
    /// The uid of the PhysicalNode at this port; None: the record was lost, or never made.
    pub node: Option<String>,
    /// The highest epoch of that node that is revoked: nothing at or under it is ever opened again.
    pub floor: i64,
}

/// 128 random bits, as 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
pub struct Term(pub String);

/// What passes through a port.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub enum Gate {
    /// Nothing: the link is down, and the port is in no network.
    Closed,
    /// What the entry allows. Also while an action has opened only a part of it.
    Open(Entry),
    /// Something that no driver of ours opened, or that cannot be read: what it says of itself.
    Foreign(String),
}

/// What a port is opened for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Entry {
    /// Whose it is.
    pub tag: Tag,
    /// The network of the tenant.
    pub vni: u32,
    /// The only source address of frames.
    pub mac: String,
    /// The only source addresses of packets.
    pub addresses: Vec<IpAddr>,
}

/// Whose entry it is: uids, and the number of the assignment. An entry is detached only by its tag.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
pub struct Tag {
    /// The PhysicalNode.
    pub node: String,
    /// The Tenant.
    pub tenant: String,
    /// The NodeClaim.
    pub claim: String,
    /// The DpuAttachment.
    pub attachment: String,
    /// The epoch.
    pub epoch: i64,
}

/// The network of a tenant on this DPU.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Network {
    /// Its number.
    pub vni: u32,
    /// The other DPUs that broadcasts are sent to, sorted.
    pub vteps: Vec<IpAddr>,
    /// Whether a port is in it.
    pub is_used: bool,
}

/// What is done to a DPU. Each action takes the lock of its port, and compares, within it, before it changes anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Action {
    /// The port is this node's from now on: closes it, and writes a record with a new term. Of the same node, the
    /// higher floor stays. Refused if the term differs.
    Adopt {
        /// Which port.
        port: String,
        /// The term that was read.
        term: Term,
        /// The uid of the PhysicalNode.
        node: String,
        /// At least this floor.
        floor: i64,
    },
    /// Closes what is at or under the floor, then raises the floor in the record. Refused if term or node differ.
    Isolate {
        /// Which port.
        port: String,
        /// The term that was read.
        term: Term,
        /// The uid of the PhysicalNode.
        node: String,
        /// The new floor.
        floor: i64,
    },
    /// Opens the port for this entry. Refused if term or node differ, if the epoch is at or under the floor in the
    /// record, or if the port is not closed.
    Attach {
        /// Which port.
        port: String,
        /// The term that was read.
        term: Term,
        /// What for.
        entry: Entry,
        /// The other DPUs that hold nodes of the tenant, sorted.
        vteps: Vec<IpAddr>,
    },
    /// Closes the port if exactly this entry is programmed, or, without a tag, if what is there is nobody's.
    /// Refused if the term differs.
    Detach {
        /// Which port.
        port: String,
        /// The term that was read.
        term: Term,
        /// Whose entry; None: what is foreign.
        tag: Option<Tag>,
    },
    /// Replaces the list of DPUs that broadcasts of a network are sent to.
    Flood {
        /// The network.
        vni: u32,
        /// The other DPUs, sorted.
        vteps: Vec<IpAddr>,
    },
    /// Removes a network that no port is in. Refused if one is.
    Forget {
        /// The network.
        vni: u32,
    },
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Failure {
    /// One word: `NoPacketFilter`, `TermDiffers`, `NodeDiffers`, `AtOrUnderTheFloor`, `PortNotClosed`, `KernelRefused`.
    #[serde(deserialize_with = "interlock_kernel::word")]
    pub reason: interlock_kernel::Word,
    /// The sentence, with the words of the kernel or of nft, and what to do next.
    pub message: String,
}

impl Failure {
    /// Whether the port had changed since the action was decided: nothing is broken, and the next step decides anew.
    pub fn is_late(&self) -> bool {
        ["TermDiffers", "NodeDiffers", "AtOrUnderTheFloor", "PortNotClosed"].contains(&self.reason)
    }
}
