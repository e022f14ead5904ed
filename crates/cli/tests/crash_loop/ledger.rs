//! What one writer knows: what was acknowledged, and what it is in doubt about.

use crate::harness::Client;
use crate::listing::{Address, Found, Listing};
use crate::world::CrashLoop;
use serde_json::{Value, json};
use std::io;

/// Some objects are large enough that a frame spans many pages.
const PADDING: usize = 8 * 1024;

/// A write whose answer did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doubt {
    Written(u64),
    Deleted,
}

/// One object, which only one writer touches.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) at: Address,
    is_large: bool,
    stands: Option<Found>,
    doubt: Option<Doubt>,
}

/// A namespace or a logical cluster, and one object inside of it.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) itself: Slot,
    pub(crate) inside: Slot,
    /// Its deletion was acknowledged, or was found to have happened.
    pub(crate) is_doomed: bool,
}

/// All that one writer knows.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) slots: Vec<Slot>,
    pub(crate) containers: Vec<Container>,
    /// Each version that was acknowledged.
    pub(crate) acknowledged: Vec<(Address, u64)>,
    /// How many containers were made.
    pub(crate) made: u64,
}

/// How a writer reaches the server.
pub(crate) struct Session<'a> {
    pub(crate) world: &'a CrashLoop,
    pub(crate) client: &'a mut Client,
    pub(crate) acknowledged: &'a mut Vec<(Address, u64)>,
}

impl Slot {
    pub(crate) fn new(at: Address, is_large: bool) -> Slot {
        Slot { at, is_large, stands: None, doubt: None }
    }

    pub(crate) fn is_there(&self) -> bool {
        self.stands.is_some()
    }

    fn body(&self, sequence: u64, version: Option<u64>) -> Value {
        let mut body = json!({
            "apiVersion": self.at.api_version(), "kind": self.at.kind(),
            "metadata": {"name": self.at.name, "annotations": {"sequence": sequence.to_string()}},
        });
        if let Some(version) = version {
            body["metadata"]["resourceVersion"] = json!(version.to_string());
        }
        let padding = "x".repeat(if self.is_large { PADDING } else { 16 });
        match self.at.resource {
            "configmaps" => body["data"] = json!({"padding": padding}),
            "widgets" => body["spec"] = json!({"padding": padding}),
            _ => {}
        }
        body
    }

    /// Creates it, or updates it under the guard of the version that stands.
    pub(crate) fn write(&mut self, session: &mut Session<'_>) -> io::Result<()> {
        let sequence = session.world.next_sequence();
        self.doubt = Some(Doubt::Written(sequence));
        let body = self.body(sequence, self.stands.map(|stands| stands.version));
        let (method, path) = match self.stands {
            None => ("POST", self.at.collection()),
            Some(_) => ("PUT", self.at.path()),
        };
        let answer = session.call(method, &path, Some(&body))?;
        if answer.status == 429 {
            self.doubt = None;
            return Ok(());
        }
        let wanted = if self.stands.is_none() { 201 } else { 200 };
        assert_eq!(answer.status, wanted, "{method} {path}: {}", answer.text);
        let version = answer.version();
        if let Some(stands) = self.stands {
            assert!(version > stands.version, "{path} went back from {stands:?} to {version}");
        }
        self.stands = Some(Found { version, sequence, is_deleting: false });
        self.doubt = None;
        session.acknowledged.push((self.at.clone(), version));
        session.world.acknowledge();
        Ok(())
    }

    /// An update under the guard of a version that does not stand: it must not pass.
    pub(crate) fn write_stale(&mut self, session: &mut Session<'_>) -> io::Result<()> {
        let Some(stands) = self.stands else { return Ok(()) };
        let body = self.body(session.world.next_sequence(), Some(stands.version - 1));
        let answer = session.call("PUT", &self.at.path(), Some(&body))?;
        assert!(matches!(answer.status, 409 | 429), "{}: {}", self.at.path(), answer.text);
        Ok(())
    }

    /// Deletes it, if it is still the version that stands.
    pub(crate) fn delete(&mut self, session: &mut Session<'_>) -> io::Result<()> {
        let Some(stands) = self.stands else { return Ok(()) };
        self.doubt = Some(Doubt::Deleted);
        let body = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "preconditions": {"resourceVersion": stands.version.to_string()},
        });
        let answer = session.call("DELETE", &self.at.path(), Some(&body))?;
        self.doubt = None;
        if answer.status == 429 {
            return Ok(());
        }
        assert_eq!(answer.status, 200, "DELETE {}: {}", self.at.path(), answer.text);
        self.stands = None;
        session.world.acknowledge();
        Ok(())
    }

    /// Compares what is known with what is found after a restart, and ends all doubt.
    pub(crate) fn settle(&mut self, found: Option<&Found>) {
        let found = found.copied();
        let happened = match self.doubt.take() {
            Some(Doubt::Written(sequence)) => found.is_some_and(|found| {
                let is_newer = self.stands.is_none_or(|stands| found.version > stands.version);
                found.sequence == sequence && is_newer
            }),
            Some(Doubt::Deleted) => found.is_none_or(|found| found.is_deleting),
            None => false,
        };
        if !happened {
            assert_eq!(found, self.stands, "{:?} is not as it was acknowledged", self.at);
        }
        self.stands = found;
    }
}

impl Session<'_> {
    fn call(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> io::Result<crate::harness::Answer> {
        let answer = self.client.call(method, path, body)?;
        if answer.status < 500 {
            return Ok(answer);
        }
        let is_reported = self.world.may_refuse();
        assert!(is_reported, "{method} {path}: {} {}", answer.status, answer.text);
        Err(io::Error::other("the server stops"))
    }
}

impl Container {
    /// Compares what is known with what is found after a restart.
    fn settle(&mut self, listing: &Listing) {
        let found = listing.objects.get(&self.itself.at);
        if self.is_doomed {
            let is_terminating = found.is_none_or(|found| found.is_deleting);
            assert!(is_terminating, "{:?} is there again after its deletion", self.itself.at);
            return;
        }
        self.itself.settle(found);
        if found.is_some_and(|found| found.is_deleting) || self.itself.stands.is_none() {
            self.is_doomed = true;
            return;
        }
        self.inside.settle(listing.objects.get(&self.inside.at));
    }
}

impl Ledger {
    /// Compares what is known with what is found after a restart.
    pub(crate) fn settle(&mut self, listing: &Listing) {
        for slot in &mut self.slots {
            slot.settle(listing.objects.get(&slot.at));
        }
        for container in &mut self.containers {
            container.settle(listing);
        }
        let is_there = |at: &Address| listing.objects.contains_key(at);
        self.containers.retain(|it| !it.is_doomed || is_there(&it.itself.at));
    }
}
