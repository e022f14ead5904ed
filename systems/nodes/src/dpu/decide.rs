//! What is done about a port of the DPU, and what is reported. For each port, the first matching rule wins.
//!
//! Every step asks the driver first. To isolate and to report needs no live read of the hub: the one only closes,
//! the other says what is there. To adopt a port and to detach a stranger does.

use super::facts::{About, Facts};
use super::report::{Report, is_reported, report};
use crate::outside::{Answer, Entry, Gate, Port, Tag, Term};
use crate::wired::{Live, Wired};
use serde::Serialize;

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Nothing until the cache shows what a live read showed.
    WaitForCache,
    /// Nothing until another controller has opened a port.
    WaitForEntry,
    /// Nothing until it is time to read the whole DPU again.
    Resync,
    /// Ask the driver.
    Ask,
    /// Ask the driver, and then the hub for these nodes.
    ReadNodes(Vec<String>),
    /// Ask the driver, and then the hub for all nodes.
    ListNodes,
    /// Ask the driver about all ports: what it says is reported.
    AskAll,
    /// Give the port to a node.
    Adopt {
        /// Which port, in which life of its record.
        port: At,
        /// The node, as the hub showed it.
        node: Box<Wired>,
        /// Whether the DPU has lost what it knew of that node.
        is_lost: bool,
    },
    /// Close what is at or under the floor, and raise the floor in the record.
    Isolate {
        /// Which port, in which life of its record.
        port: At,
        /// The uid of the node in the record.
        node: String,
        /// The floor.
        floor: i64,
    },
    /// Close the port.
    Detach {
        /// Which port, in which life of its record.
        port: At,
        /// Whose entry it is; None: what is there is not ours.
        tag: Option<Tag>,
        /// Why.
        because: &'static str,
    },
    /// Remove a network that no port is in.
    Forget(u32),
    /// Report what was read back.
    Report(Box<Report>),
}

/// A port, and the life of its record that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct At {
    /// Its name.
    pub port: String,
    /// The term of its record.
    pub term: Term,
}

impl At {
    fn of(port: &Port) -> At {
        At { port: port.name.clone(), term: port.record.term.clone() }
    }
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    let Some(asked) = &facts.asked else { return Decision::Ask };
    let mut next: Vec<Next> = Vec::new();
    for port in facts.ports(asked) {
        next.extend(facts.next(port));
    }
    let acts = next.iter().find_map(|next| match next {
        Next::Act(decision) => Some(decision.clone()),
        Next::Read(_) | Next::List | Next::Wait => None,
    });
    if let Some(decision) = acts {
        return decision;
    }
    let names: Vec<String> = next.iter().filter_map(Next::name).map(str::to_owned).collect();
    if !names.is_empty() {
        return Decision::ReadNodes(names);
    }
    if next.contains(&Next::List) {
        return Decision::ListNodes;
    }
    let unused = asked.networks.iter().find(|network| !network.is_used);
    if let Some(network) = unused.filter(|_| facts.about == About::Device) {
        return Decision::Forget(network.vni);
    }
    facts.due().unwrap_or_else(|| facts.at_rest(asked, next.contains(&Next::Wait)))
}

/// What is next about one port.
#[derive(Debug, Clone, PartialEq)]
enum Next {
    Act(Decision),
    /// Read this node.
    Read(String),
    /// Read all nodes.
    List,
    Wait,
}

impl Next {
    fn name(&self) -> Option<&str> {
        match self {
            Next::Read(name) => Some(name),
            Next::Act(_) | Next::List | Next::Wait => None,
        }
    }
}

/// Which node has a port.
enum Claimed<'a> {
    /// None in the cache.
    Nobody,
    /// This one: it is in the record, or it is the only one.
    By(&'a Wired),
    /// Several, and none of them is in the record.
    Disputed,
}

impl Facts {
    /// The ports that the step acts on: those of nodes have steps of their own.
    fn ports<'a>(&'a self, asked: &'a Answer) -> impl Iterator<Item = &'a Port> {
        asked.ports.iter().filter(|port| match &self.about {
            About::Port(name) => port.name == *name,
            About::Device => self.claimants(&port.name).next().is_none(),
        })
    }

    fn claimed(&self, port: &Port) -> Claimed<'_> {
        let all: Vec<&Wired> = self.nodes.iter().filter(|node| node.is_at(&port.name)).collect();
        let recorded = all.iter().find(|node| Some(&node.uid) == port.record.node.as_ref());
        match (recorded, all.as_slice()) {
            (Some(node), _) | (None, [node]) => Claimed::By(node),
            (None, []) => Claimed::Nobody,
            (None, _) => Claimed::Disputed,
        }
    }

    fn next(&self, port: &Port) -> Option<Next> {
        let node = match self.claimed(port) {
            Claimed::Disputed => return None,
            Claimed::Nobody => None,
            Claimed::By(node) => Some(node),
        };
        node.and_then(|node| self.adopt(port, node))
            .or_else(|| isolate(port, node))
            .or_else(|| self.stranger(port, node))
            .or_else(|| node.and_then(|node| differs(port, node)))
    }

    /// The record was lost, or is of another node. Only the hub itself says whose the port is now, and up to which
    /// epoch that node is revoked: a cache may show a floor that the record had passed.
    fn adopt(&self, port: &Port, node: &Wired) -> Option<Next> {
        if port.record.node.as_ref() == Some(&node.uid) {
            return None;
        }
        let Some(live) = self.live.get(&node.name) else {
            return Some(Next::Read(node.name.clone()));
        };
        let here = live.node().filter(|live| live.is_at(&port.name));
        let Some(live) = here.filter(|live| port.record.node.as_ref() != Some(&live.uid)) else {
            return Some(Next::Wait);
        };
        Some(Next::Act(Decision::Adopt {
            port: At::of(port),
            node: Box::new(live.clone()),
            is_lost: port.record.node.is_none() && self.was_reported(port, &live.uid),
        }))
    }

    /// Whether the report says that a node was in the record of a port.
    fn was_reported(&self, port: &Port, uid: &str) -> bool {
        let reported = self.reported.as_ref().and_then(|reported| reported.port(&port.name));
        reported.is_some_and(|entry| entry.node.as_ref().is_some_and(|node| node.uid == uid))
    }

    /// What is open is for a node that the cache does not show at this port. Absence from a cache is not deletion:
    /// the hub is asked, unless the record says that the port was given to another node since.
    fn stranger(&self, port: &Port, node: Option<&Wired>) -> Option<Next> {
        let Gate::Open(entry) = &port.gate else { return None };
        let uid = &entry.tag.node;
        if node.is_some_and(|node| node.uid == *uid) {
            return None;
        }
        if port.record.node.as_ref().is_some_and(|recorded| recorded != uid) {
            return Some(detach(port, Some(entry), "the port is another node's now"));
        }
        let live = match self.name_of(port, uid) {
            Some(name) => match self.live.get(name) {
                Some(live) => live,
                None => return Some(Next::Read(name.to_owned())),
            },
            None => match &self.listed {
                Some(listed) => listed.get(uid).unwrap_or(&Live::Gone),
                None => return Some(Next::List),
            },
        };
        match live {
            Live::Unreadable => Some(Next::Wait),
            Live::There(live) if live.uid == *uid && live.is_at(&port.name) => Some(Next::Wait),
            Live::There(_) | Live::Gone => {
                Some(detach(port, Some(entry), "the node is gone, or is not wired to the port"))
            }
        }
    }

    /// The name under which the node of an entry can be read.
    fn name_of(&self, port: &Port, uid: &str) -> Option<&str> {
        let cached = self.nodes.iter().find(|node| node.uid == uid).map(|node| node.name.as_str());
        let reported = || self.reported.as_ref()?.port(&port.name)?.node.as_ref();
        cached.or_else(|| reported().filter(|node| node.uid == uid).map(|node| &*node.name))
    }

    /// The report, if it is due. A port whose report would be the same needs no read of all others.
    fn due(&self) -> Option<Decision> {
        let reported = self.reported.as_ref()?;
        let Some(device) = &self.device else {
            let About::Port(name) = &self.about else { return None };
            let asked = self.asked.as_ref()?;
            return (!is_reported(self, asked, name, reported)).then_some(Decision::AskAll);
        };
        let report = report(self, device);
        (!report.is_in(reported)).then(|| Decision::Report(Box::new(report)))
    }

    fn at_rest(&self, asked: &Answer, waits: bool) -> Decision {
        if waits {
            return Decision::WaitForCache;
        }
        match &self.about {
            About::Port(_) => Decision::Rest("the port is as the hub has it"),
            About::Device if self.is_awaited(asked) => Decision::WaitForEntry,
            About::Device => Decision::Resync,
        }
    }

    /// Whether a port is still to be opened. It is nodes/attach that opens it, and no object changes here when it has.
    fn is_awaited(&self, asked: &Answer) -> bool {
        let is_open = |node: &Wired, epoch: i64| {
            let wire = node.port.as_ref();
            let port = wire.and_then(|wire| asked.port(&wire.port));
            port.is_none_or(|port| match &port.gate {
                Gate::Open(entry) => entry.tag.epoch == epoch,
                Gate::Closed | Gate::Foreign(_) => false,
            })
        };
        self.nodes
            .iter()
            .filter_map(|node| Some((node, node.assigned()?)))
            .any(|(node, assignment)| !is_open(node, assignment.epoch))
    }
}

/// Closes the port for what is revoked, and raises the floor there. The floor of the cache may be behind: it is a
/// floor all the same.
fn isolate(port: &Port, node: Option<&Wired>) -> Option<Next> {
    let recorded = port.record.node.as_ref()?;
    let node = node.filter(|node| node.uid == *recorded);
    let floor = node.map_or(0, |node| node.floor).max(port.record.floor);
    let is_under = match &port.gate {
        Gate::Open(entry) => entry.tag.node == *recorded && entry.tag.epoch <= floor,
        Gate::Closed | Gate::Foreign(_) => false,
    };
    (is_under || floor > port.record.floor)
        .then(|| Next::Act(Decision::Isolate { port: At::of(port), node: recorded.clone(), floor }))
}

/// What is open is not what its tag stands for: an assignment has one tenant, one claim and one network.
fn differs(port: &Port, node: &Wired) -> Option<Next> {
    let entry = match &port.gate {
        Gate::Closed => return None,
        Gate::Foreign(_) => return Some(detach(port, None, "what is open is not Interlock's")),
        Gate::Open(entry) => entry,
    };
    let is_mac_right = node.port.as_ref().is_some_and(|wire| wire.mac == entry.mac);
    let assignment = node.assignment.as_ref().filter(|it| it.epoch == entry.tag.epoch);
    let is_right = is_mac_right
        && assignment.is_none_or(|it| {
            it.vni == entry.vni
                && it.tenant.uid == entry.tag.tenant
                && it.claim.uid == entry.tag.claim
        });
    (!is_right).then(|| detach(port, Some(entry), "what is open is not what the epoch stands for"))
}

fn detach(port: &Port, entry: Option<&Entry>, because: &'static str) -> Next {
    let tag = entry.map(|entry| entry.tag.clone());
    Next::Act(Decision::Detach { port: At::of(port), tag, because })
}
