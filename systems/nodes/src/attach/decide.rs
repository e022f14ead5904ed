//! What is done about a DpuAttachment. First matching rule wins.
//!
//! A port is opened only if the hub and the control plane of the tenant agree exactly, by live reads that begin after
//! the term of the port was read: an action that lands later meets another term, or a floor at or above its epoch.
//! If the hub does not answer, no port is opened; if the control plane of the tenant does not, what is open stays.

use super::agree::{Disagreement, Given, Serves, Wanted, agree, flaw};
use crate::outside::{Answer, Entry, Gate, Port, Tag, Term};
use crate::wired::{Live, Wired};
use interlock_api::nodes::condition::{PROGRAMMED, SUPERSEDED};
use interlock_kernel::conditions::{Condition, Finding};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub enum Facts {
    /// About the network of the tenant on this DPU.
    Network(Network),
    /// About one attachment.
    Attachment(Box<Attachment>),
}

/// The network of the tenant, and what the driver says of it.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Network {
    /// Its number, and the other DPUs that it is on; None: the cache shows no Tenant with a network.
    pub flood: Option<Flood>,
    /// What the driver said; None: it was not asked.
    pub asked: Option<Answer>,
}

/// Where the broadcasts of a tenant are sent to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Flood {
    /// The number of its network.
    pub vni: u32,
    /// The other DPUs that hold nodes of the tenant, sorted.
    pub vteps: Vec<IpAddr>,
}

/// An attachment, and what is known about it.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Attachment {
    /// Whom the step serves.
    pub serves: Serves,
    /// The attachment, as the cache shows it.
    pub wanted: Wanted,
    /// Its node, as the cache shows it; None: it does not.
    pub node: Option<Wired>,
    /// Where the broadcasts of the tenant are sent to, as the cache shows it.
    pub flood: Option<Flood>,
    /// What the driver said; None: it was not asked.
    pub asked: Option<Answer>,
    /// What the hub said of the node; None: it was not asked.
    pub live_node: Option<Live>,
    /// What the control plane of the tenant said of the attachment: None: it was not asked; None within: it is gone,
    /// or another one has its name.
    #[serde(with = "interlock_kernel::answered")]
    pub live_wanted: Option<Option<Wanted>>,
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Nothing until the cache shows what a live read showed.
    WaitForCache,
    /// Nothing until nodes/dpu has changed the port.
    WaitForPort(&'static str),
    /// Nothing until it is time to read the port again: it is programmed, and no object says that it was closed since.
    Resync,
    /// Nothing until the driver can open ports.
    WaitForDriver,
    /// Ask the driver about a port; None: about all.
    Ask(Option<String>),
    /// Ask the hub for the node.
    ReadNode,
    /// Ask the driver, then the hub, then the control plane of the tenant.
    ReadAll(String),
    /// Put the finalizer on the attachment.
    PutFinalizer,
    /// Take it off.
    TakeFinalizerOff,
    /// Open the port.
    Attach {
        /// The term that was read before the hub was.
        term: Term,
        /// What for.
        given: Given,
        /// The other DPUs that hold nodes of the tenant.
        vteps: Vec<IpAddr>,
    },
    /// Close the port, if it is open for this.
    Detach {
        /// The port.
        port: String,
        /// The term that was read.
        term: Term,
        /// Whose entry it is.
        tag: Tag,
        /// Why.
        because: &'static str,
    },
    /// Replace the list of DPUs that broadcasts are sent to.
    Flood(Flood),
    /// Say this in the status of the attachment.
    Say {
        /// The conditions.
        findings: Vec<Finding>,
        /// Whom an event is for.
        told: Told,
    },
}

/// Whom an event is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Told {
    /// There is none.
    Nobody,
    /// Whoever looks at the attachment: it is programmed.
    Programmed,
    /// Whoever looks at the attachment: it is refused.
    RefusedInPlane(String),
    /// Whoever looks at the Tenant at the hub: an attachment of it is refused.
    RefusedAtHub(String),
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    match facts {
        Facts::Network(network) => network.decide(),
        Facts::Attachment(attachment) if attachment.wanted.is_terminating => attachment.end(),
        Facts::Attachment(attachment) => attachment.follow(),
    }
}

impl Network {
    fn decide(&self) -> Decision {
        let Some(flood) = &self.flood else {
            return Decision::Rest("the tenant has no network yet");
        };
        let Some(asked) = &self.asked else { return Decision::Ask(None) };
        flood.due(asked).unwrap_or(Decision::Rest("broadcasts are sent where they should be"))
    }
}

impl Flood {
    /// The list that the driver has is another one.
    fn due(&self, asked: &Answer) -> Option<Decision> {
        let network = asked.networks.iter().find(|network| network.vni == self.vni)?;
        (network.vteps != self.vteps).then(|| Decision::Flood(self.clone()))
    }
}

impl Attachment {
    /// It is being deleted: what is open for it is closed, and only when that was read back is the finalizer taken off.
    fn end(&self) -> Decision {
        if self.wanted.dpu != self.serves.here {
            return Decision::Rest("the attachment is for another DPU");
        }
        let port = self.node.as_ref().and_then(|node| node.port.as_ref());
        let Some(asked) = &self.asked else { return Decision::Ask(port.map(|it| it.port.clone())) };
        // The uid alone is what a control plane says: that of a tenant may say the uid of another tenant's.
        let is_its = |entry: &Entry| {
            entry.tag.tenant == self.serves.tenant.uid && entry.tag.attachment == self.wanted.uid
        };
        let open = asked.ports.iter().find_map(|port| match &port.gate {
            Gate::Open(entry) if is_its(entry) => Some((port, entry)),
            Gate::Open(_) | Gate::Closed | Gate::Foreign(_) => None,
        });
        match open {
            Some((port, entry)) => detach(port, entry, "the attachment is being deleted"),
            None if !self.wanted.has_finalizer => Decision::Rest("the attachment is being deleted"),
            // A port that cannot be read may still be open for it.
            None if port.is_some_and(|port| asked.port(&port.port).is_none()) => {
                Decision::WaitForPort("the DPU does not show the port")
            }
            None => Decision::TakeFinalizerOff,
        }
    }

    fn follow(&self) -> Decision {
        match agree(&self.wanted, self.node.as_ref(), &self.serves) {
            Ok(given) => self.open(&given),
            Err(Disagreement::Superseded { floor }) => self.superseded(floor),
            Err(Disagreement::Refused(_)) if flaw(&self.wanted, &self.serves).is_some() => {
                self.refuse(None)
            }
            Err(Disagreement::Refused(refusal)) => {
                // Conditions that say so rest on a live read, and only what the cache shows later could change them.
                if self.is_refused(refusal.reason, &refusal.message) {
                    return Decision::Rest("the attachment is refused");
                }
                let Some(live) = &self.live_node else { return Decision::ReadNode };
                self.refuse(Some(live))
            }
        }
    }

    /// The hub and the cache may differ: the hub itself is right.
    fn refuse(&self, live: Option<&Live>) -> Decision {
        if live == Some(&Live::Unreadable) {
            return Decision::Rest("the PhysicalNode cannot be read");
        }
        let refusal = match agree(&self.wanted, live.and_then(Live::node), &self.serves) {
            Ok(_) => return Decision::WaitForCache,
            Err(Disagreement::Superseded { floor }) => return self.superseded(floor),
            Err(Disagreement::Refused(refusal)) => refusal,
        };
        let programmed = Finding::fails(PROGRAMMED, refusal.reason, &*refusal.message);
        let superseded = Finding::fails(SUPERSEDED, refusal.reason, &*refusal.message);
        // One step has one effect, and one event with it. The event at the hub is first, with the write that every refusal
        // makes: a tenant that forges attachments may see to it that there is no second one.
        if !programmed.is_in(&self.wanted.conditions) {
            let told = Told::RefusedAtHub(refusal.at_hub);
            return Decision::Say { findings: vec![programmed], told };
        }
        if !superseded.is_in(&self.wanted.conditions) {
            let told = Told::RefusedInPlane(refusal.message);
            return Decision::Say { findings: vec![superseded], told };
        }
        Decision::Rest("the attachment is refused")
    }

    fn is_refused(&self, reason: &'static str, message: &str) -> bool {
        let conditions = &self.wanted.conditions;
        [PROGRAMMED, SUPERSEDED]
            .iter()
            .all(|kind| Finding::fails(kind, reason, message).is_in(conditions))
    }

    fn superseded(&self, floor: i64) -> Decision {
        let message =
            format!("all epochs of node {} up to {floor} are over", self.wanted.node.name);
        let findings = vec![
            Finding::fails(PROGRAMMED, "Superseded", &*message),
            Finding::holds(SUPERSEDED, "EpochRevoked", message),
        ];
        let is_known = |conditions: &[Condition]| {
            conditions.iter().any(|it| it.type_ == SUPERSEDED && it.status == "True")
        };
        // A floor that rises further changes nothing for this epoch.
        if is_known(&self.wanted.conditions) {
            return Decision::Rest("the epoch of the attachment is over");
        }
        Decision::Say { findings, told: Told::Nobody }
    }

    /// The hub and the tenant agree, as far as the caches show.
    fn open(&self, given: &Given) -> Decision {
        let Some(asked) = &self.asked else { return Decision::Ask(Some(given.port.clone())) };
        let Some(port) = asked.port(&given.port) else {
            let message =
                "the DPU does not have the port of the node; the DpuReport at the hub says more";
            return self.unprogrammed("PortNotFound", message).unwrap_or(Decision::WaitForDriver);
        };
        if let Gate::Open(entry) = &port.gate
            && entry.tag.node == given.entry.tag.node
            && entry.tag.epoch == given.entry.tag.epoch
        {
            return self.opened(asked, port, entry, given);
        }
        if port.record.node.as_ref() != Some(&given.entry.tag.node) {
            return Decision::WaitForPort("the record of the port does not name the node yet");
        }
        if port.record.floor >= given.entry.tag.epoch {
            let message = "the DPU refuses the epoch: it has seen a later one revoked";
            return self
                .unprogrammed("AtOrUnderTheFloor", message)
                .unwrap_or(Decision::WaitForDriver);
        }
        match &port.gate {
            Gate::Open(_) => Decision::WaitForPort("the port is open for another epoch"),
            Gate::Foreign(_) => Decision::WaitForPort("the port is open for a stranger"),
            Gate::Closed => self.attach(asked, port, given),
        }
    }

    /// The port is open for the epoch. An attachment that was made again, or with other addresses, opens it again.
    fn opened(&self, asked: &Answer, port: &Port, entry: &Entry, given: &Given) -> Decision {
        if !is_same(entry, &given.entry) {
            return detach(port, entry, "the port is open for another attachment of the epoch");
        }
        if let Some(flood) = self.flood.as_ref().and_then(|flood| flood.due(asked)) {
            return flood;
        }
        let message = format!("the DPU has the node programmed at epoch {}", entry.tag.epoch);
        let programmed = Finding::holds(PROGRAMMED, "Programmed", message);
        if programmed.is_in(&self.wanted.conditions) {
            return Decision::Resync;
        }
        Decision::Say { findings: vec![programmed], told: Told::Programmed }
    }

    fn attach(&self, asked: &Answer, port: &Port, given: &Given) -> Decision {
        // The words of the driver are for the hub: they may name what the port was open for before.
        let failed = port.failure.as_ref().filter(|failure| !failure.is_late());
        let failure = asked.filter.as_ref().or(failed);
        if let Some(failure) = failure {
            let message = "the DPU cannot open the port; the DpuReport at the hub has the words of its driver";
            if let Some(say) = self.unprogrammed(failure.reason, message) {
                return say;
            }
        }
        if asked.filter.is_some() {
            return Decision::WaitForDriver;
        }
        if !self.wanted.has_finalizer {
            return Decision::PutFinalizer;
        }
        let (Some(node), Some(wanted)) = (&self.live_node, &self.live_wanted) else {
            return Decision::ReadAll(given.port.clone());
        };
        let live = wanted.as_ref().filter(|wanted| !wanted.is_terminating && wanted.has_finalizer);
        let live = live.and_then(|wanted| agree(wanted, node.node(), &self.serves).ok());
        match live {
            Some(live) if live == *given => Decision::Attach {
                term: port.record.term.clone(),
                given: live,
                vteps: self.vteps(given.entry.vni),
            },
            Some(_) | None => Decision::WaitForCache,
        }
    }

    fn vteps(&self, vni: u32) -> Vec<IpAddr> {
        let flood = self.flood.as_ref().filter(|flood| flood.vni == vni);
        flood.map(|flood| flood.vteps.clone()).unwrap_or_default()
    }

    fn unprogrammed(&self, reason: &'static str, message: &str) -> Option<Decision> {
        let finding = Finding::fails(PROGRAMMED, reason, message);
        let is_said = finding.is_in(&self.wanted.conditions);
        (!is_said).then(|| Decision::Say { findings: vec![finding], told: Told::Nobody })
    }
}

fn detach(port: &Port, entry: &Entry, because: &'static str) -> Decision {
    let (name, term) = (port.name.clone(), port.record.term.clone());
    Decision::Detach { port: name, term, tag: entry.tag.clone(), because }
}

/// Whether two entries open the same: a driver may list addresses in an order of its own.
fn is_same(open: &Entry, given: &Entry) -> bool {
    let sorted = |entry: &Entry| {
        let mut addresses = entry.addresses.clone();
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    };
    let rest = |entry: &Entry| Entry { addresses: Vec::new(), ..entry.clone() };
    rest(open) == rest(given) && sorted(open) == sorted(given)
}
