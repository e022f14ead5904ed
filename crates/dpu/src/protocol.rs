//! The protocol of a port, the same on every device: compared, closed and recorded under the lock.

use crate::failures;
use crate::files::{Folder, Lock};
use crate::hardware::{Hardware, Held, Opening};
use crate::names::{check_entry, check_port, check_vni, check_vteps};
use crate::record::{self, Kept, OfBoot};
use interlock_nodes::outside::{
    Action, Answer, Entry, Failure, Gate, Network, Port, Question, Record, Tag, Term,
};
use std::fmt::Debug;
use std::net::IpAddr;
use std::sync::Arc;

/// Answers and acts, and blocks meanwhile.
pub(crate) trait Device: Debug + Send + Sync {
    fn answer(&self, question: &Question) -> Result<Answer, Failure>;
    fn perform(&self, action: &Action) -> Result<(), Failure>;
}

/// A device with its records.
#[derive(Debug)]
pub(crate) struct Protocol<H> {
    pub(crate) folder: Arc<Folder>,
    pub(crate) boot: String,
    pub(crate) hardware: H,
}

impl<H: Hardware> Device for Protocol<H> {
    fn answer(&self, question: &Question) -> Result<Answer, Failure> {
        let mut names = match question {
            Question::Device => self.hardware.names()?,
            Question::Port(name) => vec![name.clone()],
        };
        // All locks in one order: who takes many never waits for who waits for it.
        names.sort();
        names.dedup();
        let filter = self.hardware.filter(*question == Question::Device);
        let held = names.iter().map(|name| self.hold(name)).collect::<Result<Vec<_>, _>>()?;
        let gates = self.hardware.gates(&held)?;
        let ports: Vec<Port> = held.iter().zip(gates).filter_map(|it| port(it.0, it.1)).collect();
        let networks = match question {
            Question::Device => self.hardware.networks(None)?,
            Question::Port(_) => self.networks_of(&ports)?,
        };
        Ok(Answer { boot: self.boot.clone(), filter, ports, networks })
    }

    fn perform(&self, action: &Action) -> Result<(), Failure> {
        match action {
            Action::Adopt { port, term, node, floor } => {
                self.adopt(self.held_at(port, term)?, &Revoked { node, floor: *floor })
            }
            Action::Isolate { port, term, node, floor } => {
                self.isolate(self.held_at(port, term)?, &Revoked { node, floor: *floor })
            }
            Action::Attach { port, term, entry, vteps } => {
                self.attach(self.held_at(port, term)?, Opening { entry, vteps })
            }
            Action::Detach { port, term, tag } => {
                self.detach(self.held_at(port, term)?, tag.as_ref())
            }
            Action::Flood { vni, vteps } => self.flood(*vni, vteps),
            Action::Forget { vni } => {
                let _network = self.network(*vni)?;
                self.hardware.forget(*vni)
            }
        }
    }
}

/// A node, and the highest epoch of it that is revoked.
struct Revoked<'a> {
    node: &'a str,
    floor: i64,
}

fn port(held: &Held, gate: Option<Gate>) -> Option<Port> {
    let (name, record) = (held.name.clone(), held.kept.record.clone());
    Some(Port { name, record, gate: gate?, failure: None })
}

impl<H: Hardware> Protocol<H> {
    /// Takes the lock of a port, then reads its record.
    fn hold(&self, port: &str) -> Result<Held, Failure> {
        check_port(port)?;
        self.hardware.check(port)?;
        let lock = self.folder.lock(&format!("{port}.lock"))?;
        let kept = record::read(&self.folder, port, &self.boot)?;
        Ok(Held { name: port.to_owned(), lock, kept })
    }

    /// The same, for an action that was decided under this term.
    fn held_at(&self, port: &str, term: &Term) -> Result<Held, Failure> {
        let held = self.hold(port)?;
        if held.kept.record.term != *term {
            return Err(failures::term_differs(port, &held.kept.record, term));
        }
        Ok(held)
    }

    /// Takes the lock of a network: always after that of a port.
    fn network(&self, vni: u32) -> Result<Lock, Failure> {
        check_vni(vni)?;
        self.folder.lock(&format!("{vni}.network-lock"))
    }

    fn gate(&self, held: &Held) -> Result<Gate, Failure> {
        let gate = self.hardware.gates(std::slice::from_ref(held))?.pop().flatten();
        gate.ok_or_else(|| failures::no_port(&held.name))
    }

    fn keep(&self, held: &Held, record: Record, entry: Option<Entry>) -> Result<(), Failure> {
        let kept = Kept { record, entry };
        if kept == held.kept {
            return Ok(());
        }
        record::write(&self.folder, &held.name, &OfBoot { boot: &self.boot, kept: &kept })
    }

    fn adopt(&self, held: Held, revoked: &Revoked<'_>) -> Result<(), Failure> {
        self.hardware.close(&held)?;
        let before = &held.kept.record;
        let is_same = before.node.as_deref() == Some(revoked.node);
        let floor = if is_same { before.floor.max(revoked.floor) } else { revoked.floor };
        let node = Some(revoked.node.to_owned());
        self.keep(&held, Record { term: record::new_term()?, node, floor: floor.max(0) }, None)
    }

    /// What is at or under the floor is closed first, and the floor is raised in the same write that forgets it: a
    /// floor that is on record is true already.
    fn isolate(&self, held: Held, revoked: &Revoked<'_>) -> Result<(), Failure> {
        let before = &held.kept.record;
        if before.node.as_deref() != Some(revoked.node) {
            return Err(failures::node_differs(&held.name, before, revoked.node));
        }
        let floor = before.floor.max(revoked.floor);
        let is_above = |entry: &Entry| entry.tag.epoch > floor && entry.tag.node == revoked.node;
        // Nothing is asked of the packet filter unless something may stay open.
        let stays = held.kept.entry.as_ref().filter(|entry| is_above(entry));
        let stays = match stays {
            Some(entry) if self.gate(&held)? == Gate::Open(entry.clone()) => Some(entry.clone()),
            Some(_) | None => None,
        };
        if stays.is_none() {
            self.hardware.close(&held)?;
        }
        self.keep(&held, Record { floor, ..before.clone() }, stays)
    }

    fn attach(&self, mut held: Held, opening: Opening<'_>) -> Result<(), Failure> {
        let Opening { entry, vteps } = opening;
        let record = held.kept.record.clone();
        check_entry(entry)?;
        check_vteps(vteps)?;
        if record.node.as_deref() != Some(&*entry.tag.node) {
            return Err(failures::node_differs(&held.name, &record, &entry.tag.node));
        }
        if entry.tag.epoch <= record.floor {
            return Err(failures::under_the_floor(&held.name, &record, entry.tag.epoch));
        }
        let gate = self.gate(&held)?;
        if gate != Gate::Closed {
            return Err(failures::not_closed(&held.name, &words(&gate)));
        }
        if let Some(failure) = self.hardware.filter(false) {
            return Err(failure);
        }
        let _network = self.network(entry.vni)?;
        self.keep(&held, record.clone(), Some(entry.clone()))?;
        held.kept.entry = Some(entry.clone());
        let opened = self.hardware.open(&held, opening).and_then(|()| match self.gate(&held)? {
            Gate::Open(is) if is == *entry => Ok(()),
            other => Err(failures::not_as_programmed(&held.name, &words(&other))),
        });
        if let Err(failure) = opened {
            self.hardware.close(&held)?;
            self.keep(&held, record, None)?;
            return Err(failure);
        }
        Ok(())
    }

    fn detach(&self, held: Held, tag: Option<&Tag>) -> Result<(), Failure> {
        let is_meant = match (self.gate(&held)?, tag) {
            (Gate::Open(entry), Some(tag)) => entry.tag == *tag,
            (Gate::Foreign(_), None) => true,
            (Gate::Open(_), None) | (Gate::Foreign(_), Some(_)) | (Gate::Closed, _) => false,
        };
        if !is_meant {
            return Ok(());
        }
        self.hardware.close(&held)?;
        self.keep(&held, held.kept.record.clone(), None)
    }

    fn flood(&self, vni: u32, vteps: &[IpAddr]) -> Result<(), Failure> {
        check_vteps(vteps)?;
        let _network = self.network(vni)?;
        self.hardware.flood(vni, vteps)
    }

    /// The networks that ports are in.
    fn networks_of(&self, ports: &[Port]) -> Result<Vec<Network>, Failure> {
        let mut found = Vec::new();
        for port in ports {
            if let Gate::Open(entry) = &port.gate {
                found.extend(self.hardware.networks(Some(entry.vni))?);
            }
        }
        Ok(found)
    }
}

fn words(gate: &Gate) -> String {
    match gate {
        Gate::Closed => "it is closed".to_owned(),
        Gate::Open(entry) => {
            format!("it is open for tenant {} at epoch {}", entry.tag.tenant, entry.tag.epoch)
        }
        Gate::Foreign(words) => words.clone(),
    }
}
