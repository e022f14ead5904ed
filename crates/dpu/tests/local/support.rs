//! A DPU of one port, and the actions that the rooms would take.

use interlock_dpu::{Calls, Driver, Settings};
use interlock_nodes::outside::{Action, Entry, Failure, Gate, Port, Question, Record, Tag, Term};
use std::path::Path;

pub(crate) const PORT: &str = "p0";

/// A driver on this folder, of this boot.
pub(crate) fn driver(folder: &Path, boot: &str) -> Driver {
    watched(folder, boot, Calls::default())
}

pub(crate) fn watched(folder: &Path, boot: &str, calls: Calls) -> Driver {
    let settings = Settings { folder: folder.to_owned(), boot: boot.to_owned(), calls };
    Driver::local(settings).unwrap()
}

pub(crate) fn entry(node: &str, epoch: i64) -> Entry {
    let tag = Tag {
        node: node.to_owned(),
        tenant: format!("tenant-{epoch}"),
        claim: "claim".to_owned(),
        attachment: format!("attachment-{epoch}"),
        epoch,
    };
    let addresses = vec!["10.1.0.2".parse().unwrap(), "10.1.0.1".parse().unwrap()];
    Entry { tag, vni: 4096, mac: "02:00:00:00:00:01".to_owned(), addresses }
}

/// A driver, and what happens at its one port.
pub(crate) struct Scene(pub(crate) Driver);

impl Scene {
    pub(crate) fn port(&self) -> Port {
        let answer = self.0.answer(&Question::Port(PORT.to_owned())).unwrap();
        answer.port(PORT).unwrap().clone()
    }

    pub(crate) fn record(&self) -> Record {
        self.port().record
    }

    pub(crate) fn gate(&self) -> Gate {
        self.port().gate
    }

    pub(crate) fn term(&self) -> Term {
        self.record().term
    }

    pub(crate) fn adopt(&self, node: &str, floor: i64) -> Result<(), Failure> {
        let (port, node) = (PORT.to_owned(), node.to_owned());
        self.0.perform(&Action::Adopt { port, term: self.term(), node, floor })
    }

    pub(crate) fn isolate(&self, node: &str, floor: i64) -> Result<(), Failure> {
        let (port, node) = (PORT.to_owned(), node.to_owned());
        self.0.perform(&Action::Isolate { port, term: self.term(), node, floor })
    }

    pub(crate) fn attach(&self, entry: Entry) -> Result<(), Failure> {
        self.0.perform(&attach(self.term(), entry))
    }

    pub(crate) fn detach(&self, tag: Option<Tag>) -> Result<(), Failure> {
        self.0.perform(&Action::Detach { port: PORT.to_owned(), term: self.term(), tag })
    }
}

pub(crate) fn attach(term: Term, entry: Entry) -> Action {
    let vteps = vec!["192.0.2.2".parse().unwrap(), "192.0.2.3".parse().unwrap()];
    Action::Attach { port: PORT.to_owned(), term, entry, vteps }
}
