//! What a system may look at when it judges a state: the truth, not what anybody believes.

use crate::server::Servers;
use crate::state::CLUSTERS;
use crate::system::{Chance, Move, System};
use interlock_kernel::{Kind, Name, Object};
use jiff::Timestamp;
use serde_json::Value;
use std::sync::Arc;

/// The truth about a world.
pub struct Scene<'a, S: System> {
    /// Every object on every server.
    pub servers: &'a Servers,
    /// The hub and the clusters.
    pub contents: [u32; 1 + CLUSTERS],
    /// The machines of the clusters.
    pub machines: [Arc<S::Machine>; CLUSTERS],
    /// What people did, or may still do.
    pub chance: Chance,
    /// What is remembered.
    pub past: Arc<S::Past>,
    /// The time.
    pub now: Timestamp,
}

/// One server, as a system looks at it.
#[derive(Clone, Copy)]
pub struct Objects<'a> {
    servers: &'a Servers,
    content: u32,
}

impl<'a, S: System> Scene<'a, S> {
    /// What is at the hub.
    pub fn hub(&self) -> Objects<'a> {
        Objects { servers: self.servers, content: self.contents[0] }
    }

    /// What is on a cluster.
    pub fn cluster(&self, cluster: usize) -> Objects<'a> {
        Objects { servers: self.servers, content: self.contents[1 + cluster] }
    }

    /// A move that changes nothing but what is at the hub.
    pub fn at_hub(&self, name: usize, hub: u32) -> Move<S::Machine> {
        let (mut servers, machines) = (self.contents, [const { None }; CLUSTERS]);
        servers[0] = hub;
        Move { name, servers, machines, chance: self.chance, restarts: None }
    }
}

impl<'a> Objects<'a> {
    pub(crate) fn of(servers: &'a Servers, content: u32) -> Objects<'a> {
        Objects { servers, content }
    }

    /// One object.
    pub fn get(&self, kind: &Kind, name: &Name) -> Option<Object> {
        self.servers.object(self.servers.find(self.content, kind, name))
    }

    /// One part of an object (`spec`, `status`); null: it is not there.
    pub fn part(&self, kind: &Kind, name: &Name, part: &str) -> Value {
        let found = self.get(kind, name);
        found.map_or(Value::Null, |object| object.data.get(part).cloned().unwrap_or_default())
    }

    /// The objects of a kind, by name.
    pub fn list(&self, kind: &Kind) -> Vec<Object> {
        let found = self.servers.list(self.content, kind, None);
        found.into_iter().filter_map(|version| self.servers.object(version)).collect()
    }
}
