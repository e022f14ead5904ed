//! A stand-in of a DPU's driver: what it keeps, what it answers, and what it refuses.
//!
//! It stands for `crates/dpu`, whose drivers answer and refuse by the same rules: each action compares term, node,
//! floor and gate under the lock of its port, so it is one step here, however late it comes. Kernel errors, foreign
//! interfaces and missing packet filters are left out: the driver then closes the port, or changes nothing.

use crate::outside::{
    Action, Answer, Dpu, Entry, Gate, Network, Port, Question, Record, Tag, Term,
};
use interlock_world::Driver;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A DPU.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Device {
    /// How often it started anew.
    boots: u8,
    /// How many terms there were, over all ports.
    terms: u8,
    /// Its ports, by name.
    ports: BTreeMap<String, Held>,
    /// The networks of tenants, with the other DPUs that broadcasts are sent to.
    networks: BTreeMap<u32, Vec<IpAddr>>,
    /// It lost power for ever.
    is_off: bool,
    /// What it does not compare: for mistakes.
    forgets: Forgets,
}

/// A port, with its record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Held {
    term: u8,
    node: Option<String>,
    floor: i64,
    open: Option<Entry>,
    /// What comes up open when the DPU starts anew: nothing, but for a mistake.
    last: Option<Entry>,
}

/// What a driver does not do that it must.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Forgets {
    /// Nothing: this is the driver as it ships.
    #[default]
    Nothing,
    /// The floor is not compared with the epoch of what is attached.
    Floor,
    /// Ports come up open for what they were open for last.
    ClosedBoot,
    /// The floor is raised, and what is at or under it stays open.
    Close,
    /// The term that an action names is not compared with that of the record.
    Term,
}

/// Why an action is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// There is no such port.
    NoSuchPort,
    /// The record has begun a new life since the term was read.
    TermDiffers,
    /// The record is of another node.
    NodeDiffers,
    /// The epoch is revoked.
    AtOrUnderTheFloor,
    /// Something else is programmed.
    PortNotClosed,
    /// A port is in the network.
    NetworkInUse,
}

/// What the disk of a DPU has when the DPU comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// What was written last.
    Kept,
    /// The records of these nodes before any epoch of theirs was revoked.
    Old,
    /// Nothing.
    Empty,
}

impl Device {
    /// A DPU with these ports, all of them closed, and no record of any.
    pub fn with_ports<'a>(names: impl IntoIterator<Item = &'a str>) -> Device {
        let mut device = Device::default();
        for name in names {
            let term = device.new_term();
            let held = Held { term, node: None, floor: 0, open: None, last: None };
            device.ports.insert(name.to_owned(), held);
        }
        device
    }

    /// The same, with a mistake.
    #[must_use]
    pub fn forgetting(mut self, forgets: Forgets) -> Device {
        self.forgets = forgets;
        self
    }

    /// What is programmed, by port.
    pub fn open(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.ports.iter().filter_map(|(name, held)| Some((name.as_str(), held.open.as_ref()?)))
    }

    /// The node and the floor in the record of a port.
    pub fn record(&self, port: &str) -> Option<(&str, i64)> {
        let held = self.ports.get(port)?;
        Some((held.node.as_deref()?, held.floor))
    }

    /// Whether it has power.
    pub fn is_on(&self) -> bool {
        !self.is_off
    }

    /// The DPU lost power, and does not come back.
    #[must_use]
    pub fn powered_off(&self) -> Device {
        Device { is_off: true, ..self.restarted(Disk::Kept) }
    }

    /// The DPU has power again.
    #[must_use]
    pub fn powered_on(&self) -> Device {
        Device { is_off: false, ..self.restarted(Disk::Kept) }
    }

    fn new_term(&mut self) -> u8 {
        self.terms += 1;
        self.terms
    }

    /// The record of a port is lost while the DPU runs: what is programmed stays so. Whoever asks next finds a
    /// record with a new term; before that nothing can be done to the port, so the new record is made here.
    #[must_use]
    pub fn without_record(&self, port: &str) -> Device {
        let mut after = self.clone();
        let term = after.new_term();
        if let Some(held) = after.ports.get_mut(port) {
            (held.term, held.node, held.floor) = (term, None, 0);
        }
        after
    }

    /// The DPU lost power and comes back.
    #[must_use]
    pub fn restarted(&self, disk: Disk) -> Device {
        let mut after = self.clone();
        after.boots += 1;
        let terms = self.terms;
        for (held, number) in after.ports.values_mut().zip(1..) {
            held.term = terms + number;
            after.terms = held.term;
            match disk {
                Disk::Kept => {}
                Disk::Old => held.floor = 0,
                Disk::Empty => (held.node, held.floor) = (None, 0),
            }
            held.open = held.last.clone();
        }
        after.networks.retain(|vni, _| after.ports.values().any(|held| held.is_in(*vni)));
        after
    }

    /// What a question is answered.
    pub fn ask(&self, question: &Question) -> Answer {
        let is_asked = |name: &str| match question {
            Question::Device => true,
            Question::Port(asked) => name == asked,
        };
        let asked = self.ports.iter().filter(|(name, _)| is_asked(name));
        let is_shown = |vni: u32| match question {
            Question::Device => true,
            Question::Port(port) => self.ports.get(port).is_some_and(|held| held.is_in(vni)),
        };
        let shown = self.networks.iter().filter(|(vni, _)| is_shown(**vni));
        Answer {
            boot: format!("boot-{}", self.boots),
            filter: None,
            ports: asked.map(|(name, held)| held.shown(name)).collect(),
            networks: shown.map(|(vni, vteps)| self.network(*vni, vteps)).collect(),
        }
    }

    fn network(&self, vni: u32, vteps: &[IpAddr]) -> Network {
        let is_used = self.ports.values().any(|held| held.is_in(vni));
        Network { vni, vteps: vteps.to_vec(), is_used }
    }

    /// The DPU after an action, or why it refuses.
    pub fn perform(&self, action: &Action) -> Result<Device, Refused> {
        let mut after = self.clone();
        match action {
            Action::Adopt { port, term, node, floor } => after.adopt(port, term, node, *floor)?,
            Action::Isolate { port, term, node, floor } => {
                after.isolate(port, term, node, *floor)?;
            }
            Action::Attach { port, term, entry, vteps } => {
                after.attach(port, term, entry)?;
                after.networks.insert(entry.vni, vteps.clone());
            }
            Action::Detach { port, term, tag } => after.detach(port, term, tag.as_ref())?,
            Action::Flood { vni, vteps } => {
                after.networks.entry(*vni).and_modify(|known| known.clone_from(vteps));
            }
            Action::Forget { vni } => {
                if self.ports.values().any(|held| held.is_in(*vni)) {
                    return Err(Refused::NetworkInUse);
                }
                after.networks.remove(vni);
            }
        }
        Ok(after)
    }

    /// The port of an action, in the life of its record that the action names.
    fn port(&mut self, name: &str, term: &Term) -> Result<&mut Held, Refused> {
        let is_compared = self.forgets != Forgets::Term;
        let held = self.ports.get_mut(name).ok_or(Refused::NoSuchPort)?;
        match held.term() != *term && is_compared {
            true => Err(Refused::TermDiffers),
            false => Ok(held),
        }
    }

    fn adopt(&mut self, port: &str, term: &Term, node: &str, floor: i64) -> Result<(), Refused> {
        let next = self.terms + 1;
        let held = self.port(port, term)?;
        let kept = if held.node.as_deref() == Some(node) { held.floor } else { 0 };
        (held.term, held.node, held.open) = (next, Some(node.to_owned()), None);
        held.floor = kept.max(floor);
        self.terms = next;
        Ok(())
    }

    fn isolate(&mut self, port: &str, term: &Term, node: &str, floor: i64) -> Result<(), Refused> {
        let forgets = self.forgets;
        let held = self.port(port, term)?;
        if held.node.as_deref() != Some(node) {
            return Err(Refused::NodeDiffers);
        }
        let is_revoked = |entry: &Entry| entry.tag.epoch <= floor;
        if held.open.as_ref().is_some_and(is_revoked) && forgets != Forgets::Close {
            held.open = None;
        }
        held.floor = held.floor.max(floor);
        Ok(())
    }

    fn attach(&mut self, port: &str, term: &Term, entry: &Entry) -> Result<(), Refused> {
        let forgets = self.forgets;
        let held = self.port(port, term)?;
        if held.node.as_ref() != Some(&entry.tag.node) {
            return Err(Refused::NodeDiffers);
        }
        if entry.tag.epoch <= held.floor && forgets != Forgets::Floor {
            return Err(Refused::AtOrUnderTheFloor);
        }
        if held.open.is_some() {
            return Err(Refused::PortNotClosed);
        }
        held.open = Some(entry.clone());
        if forgets == Forgets::ClosedBoot {
            held.last = held.open.clone();
        }
        Ok(())
    }

    fn detach(&mut self, port: &str, term: &Term, tag: Option<&Tag>) -> Result<(), Refused> {
        let held = self.port(port, term)?;
        // Without a tag it is about what no driver of ours opened, and there is no such thing here.
        if tag.is_some() && held.open.as_ref().map(|entry| &entry.tag) == tag {
            held.open = None;
        }
        Ok(())
    }
}

impl Held {
    fn is_in(&self, vni: u32) -> bool {
        self.open.as_ref().is_some_and(|entry| entry.vni == vni)
    }

    fn term(&self) -> Term {
        Term(format!("{:032x}", self.term))
    }

    fn shown(&self, name: &str) -> Port {
        let gate = self.open.clone().map_or(Gate::Closed, Gate::Open);
        let record = Record { term: self.term(), node: self.node.clone(), floor: self.floor };
        Port { name: name.to_owned(), record, gate, failure: None }
    }
}

impl Driver<Device> for Dpu {
    fn ask(devices: &[&Device], here: usize, question: &Question) -> Answer {
        devices[here].ask(question)
    }

    fn perform(devices: &[&Device], here: usize, action: &Action) -> Device {
        // What is refused changes nothing.
        devices[here].perform(action).unwrap_or_else(|_| devices[here].clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(node: &str, epoch: i64) -> Entry {
        let [tenant, claim, attachment] = ["tenant", "claim", "attachment"].map(str::to_owned);
        let tag = Tag { node: node.to_owned(), tenant, claim, attachment, epoch };
        Entry { tag, vni: 4096, mac: "02:00:00:00:00:01".to_owned(), addresses: Vec::new() }
    }

    fn term(device: &Device) -> Term {
        device.ports["p1"].term()
    }

    fn attach(device: &Device, term: Term, entry: Entry) -> Result<Device, Refused> {
        let port = "p1".to_owned();
        device.perform(&Action::Attach { port, term, entry, vteps: Vec::new() })
    }

    fn isolate(device: &Device, term: Term, node: &str, floor: i64) -> Result<Device, Refused> {
        let (port, node) = ("p1".to_owned(), node.to_owned());
        device.perform(&Action::Isolate { port, term, node, floor })
    }

    fn adopt(device: &Device, term: Term, node: &str, floor: i64) -> Result<Device, Refused> {
        let (port, node) = ("p1".to_owned(), node.to_owned());
        device.perform(&Action::Adopt { port, term, node, floor })
    }

    /// A DPU whose port is adopted for node n at floor 1, and open at epoch 2.
    fn open() -> Device {
        let first = Device::with_ports(["p1"]);
        let adopted = adopt(&first, term(&first), "n", 1).expect("its term is the first");
        attach(&adopted, term(&adopted), entry("n", 2)).expect("it is above the floor")
    }

    #[test]
    fn an_action_of_another_term_is_refused() {
        let device = open();
        let late = Term("another".to_owned());
        assert_eq!(attach(&device, late.clone(), entry("n", 3)), Err(Refused::TermDiffers));
        assert_eq!(isolate(&device, late.clone(), "n", 3), Err(Refused::TermDiffers));
        assert_eq!(adopt(&device, late.clone(), "n", 3), Err(Refused::TermDiffers));
        let detach = Action::Detach { port: "p1".to_owned(), term: late, tag: None };
        assert_eq!(device.perform(&detach), Err(Refused::TermDiffers));
    }

    #[test]
    fn an_action_about_another_node_is_refused() {
        let device = open();
        assert_eq!(attach(&device, term(&device), entry("m", 3)), Err(Refused::NodeDiffers));
        assert_eq!(isolate(&device, term(&device), "m", 3), Err(Refused::NodeDiffers));
    }

    #[test]
    fn nothing_is_attached_at_or_under_the_floor_or_over_something_else() {
        let device = open();
        assert_eq!(attach(&device, term(&device), entry("n", 3)), Err(Refused::PortNotClosed));
        let closed = isolate(&device, term(&device), "n", 2).expect("term and node are right");
        let late = attach(&closed, term(&closed), entry("n", 2));
        assert_eq!(late, Err(Refused::AtOrUnderTheFloor));
        let next = attach(&closed, term(&closed), entry("n", 3)).expect("it is above the floor");
        assert_eq!(next.open().count(), 1);
    }

    #[test]
    fn isolating_closes_what_is_revoked_and_never_lowers_the_floor() {
        let device = open();
        let lower = isolate(&device, term(&device), "n", 0).expect("term and node are right");
        assert_eq!((lower.record("p1"), lower.open().count()), (Some(("n", 1)), 1));
        let closed = isolate(&device, term(&device), "n", 2).expect("term and node are right");
        assert_eq!((closed.record("p1"), closed.open().count()), (Some(("n", 2)), 0));
    }

    #[test]
    fn adopting_closes_and_ends_the_term_and_keeps_the_higher_floor_of_the_same_node() {
        let device = open();
        let same = adopt(&device, term(&device), "n", 0).expect("the term is right");
        assert_eq!((same.record("p1"), same.open().count()), (Some(("n", 1)), 0));
        assert_ne!(term(&same), term(&device));
        let other = adopt(&device, term(&device), "m", 0).expect("the term is right");
        assert_eq!((other.record("p1"), other.open().count()), (Some(("m", 0)), 0));
    }

    #[test]
    fn only_the_entry_of_exactly_this_tag_is_detached() {
        let device = open();
        let detach = |tag: Option<Tag>| {
            let (port, term) = ("p1".to_owned(), term(&device));
            device.perform(&Action::Detach { port, term, tag }).expect("the term is right")
        };
        let another = Tag { attachment: "another".to_owned(), ..entry("n", 2).tag };
        assert_eq!(detach(Some(another)), device);
        assert_eq!(detach(None), device);
        assert_eq!(detach(Some(entry("n", 2).tag)).open().count(), 0);
    }

    #[test]
    fn a_lost_record_leaves_the_port_open_and_a_restart_closes_it_and_both_end_the_term() {
        let device = open();
        let lost = device.without_record("p1");
        assert_eq!((lost.record("p1"), lost.open().count()), (None, 1));
        assert_ne!(term(&lost), term(&device));
        let disks =
            [(Disk::Kept, Some(("n", 1))), (Disk::Old, Some(("n", 0))), (Disk::Empty, None)];
        for (disk, record) in disks {
            let restarted = device.restarted(disk);
            assert_eq!((restarted.record("p1"), restarted.open().count()), (record, 0), "{disk:?}");
            assert_ne!(term(&restarted), term(&device), "{disk:?}");
            assert_ne!(restarted.ask(&Question::Device).boot, device.ask(&Question::Device).boot);
        }
    }

    #[test]
    fn a_network_is_forgotten_only_when_no_port_is_in_it() {
        let device = open();
        assert_eq!(device.perform(&Action::Forget { vni: 4096 }), Err(Refused::NetworkInUse));
        let closed = isolate(&device, term(&device), "n", 2).expect("term and node are right");
        let network = &closed.ask(&Question::Device).networks[0];
        assert!(!network.is_used);
        let forgotten = closed.perform(&Action::Forget { vni: 4096 }).expect("no port is in it");
        assert!(forgotten.ask(&Question::Device).networks.is_empty());
    }

    #[test]
    fn a_question_about_a_port_is_answered_with_its_network_alone() {
        let device = open();
        let flood = Action::Flood { vni: 4096, vteps: vec![IpAddr::from([10, 0, 0, 2])] };
        let answer = device.perform(&flood).expect("it is there").ask(&Question::Port("p1".into()));
        assert_eq!(answer.networks[0].vteps, [IpAddr::from([10, 0, 0, 2])]);
        assert!(answer.port("p1").is_some());
        let nothing = device.ask(&Question::Port("p2".into()));
        assert!(nothing.ports.is_empty() && nothing.networks.is_empty());
    }
}
