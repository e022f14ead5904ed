//! The program of one workload cluster.

use crate::{Account, Program, Visitor};
use interlock_api::placement::{Ref, Syncer as Introduction};
use interlock_kernel::{Kind, Nothing};
use interlock_placement::heartbeat::decide::PERIOD;
use interlock_placement::heartbeat::{Discovery, Heartbeat};
use interlock_placement::runtime::outside::Machine as Pods;
use interlock_placement::runtime::tokens::Cloud;
use interlock_placement::runtime::{Runtime, Scope};
use interlock_placement::syncer::{Locks, Syncer};
use interlock_volumes::keeper::Keeper;
use interlock_volumes::outside::{Disk, Mover};
use interlock_volumes::populator::Populator;
use interlock_volumes::storage;
use interlock_volumes::sync::{Here, Replication, Serves};
use std::time::Duration;

/// The agent of one workload cluster: its syncer and heartbeat and, where its pods are processes of a
/// machine, what runs them and what makes, fills and snapshots its volumes.
#[derive(Debug, Clone)]
pub struct Agent {
    /// The WorkloadCluster that it serves.
    pub of: Ref,
    /// How it introduces itself at the hub.
    pub introduction: Introduction,
    /// Further kinds that are carried down to the cluster.
    pub further: Vec<Kind>,
    /// The machine that runs the pods as its processes; None: the cluster has nodes.
    pub machine: Option<Machine>,
    /// How often it sends a heartbeat.
    pub heartbeat_every: Duration,
    /// Where the cloud is that the roles of pods are in, where the machine runs them.
    pub cloud: Cloud,
}

/// A machine that runs the pods of a cluster as its processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Machine {
    /// Whether the processes are those of root.
    pub is_root: bool,
    /// Whether it has the volumes of the cluster as well, so that moves carry their data.
    pub has_volumes: bool,
    /// Which pods of the cluster are its processes.
    pub scope: Scope,
}

impl Agent {
    /// The agent of no cluster in particular: what its controllers may do does not depend on which.
    pub fn of_any(machine: Option<Machine>, further: &[Kind]) -> Agent {
        Agent {
            of: Ref::default(),
            introduction: Introduction::default(),
            further: further.to_vec(),
            machine,
            heartbeat_every: PERIOD,
            cloud: Cloud::default(),
        }
    }

    fn has_volumes(&self) -> bool {
        self.machine.is_some_and(|machine| machine.has_volumes)
    }

    fn syncer(&self) -> Syncer {
        let syncer = Syncer::new(self.of.clone(), &self.introduction.boot_id);
        let syncer = syncer.carrying(self.further.clone());
        if self.has_volumes() { syncer.copying() } else { syncer }
    }

    fn runtime(&self, machine: Machine) -> Runtime {
        let runtime = Runtime::new(&self.introduction.boot_id).as_root(machine.is_root);
        let runtime = runtime.reaching(self.cloud.clone()).serving(machine.scope);
        if machine.has_volumes { runtime.with_storage() } else { runtime }
    }

    fn heartbeat(&self) -> Heartbeat {
        let heartbeat = Heartbeat::new(self.of.clone(), self.introduction.clone());
        let heartbeat = heartbeat.every(self.heartbeat_every);
        // What can be snapshotted is carried elsewhere, by the controllers of the volumes.
        if self.has_volumes() { heartbeat.with_snapshot_classes() } else { heartbeat }
    }

    fn here(&self) -> Here {
        Here { name: self.of.name.clone().into(), uid: self.of.uid.clone().into() }
    }
}

impl<V> Program<V> for Agent
where
    V: Visitor<Nothing>
        + Visitor<Discovery>
        + Visitor<Locks>
        + Visitor<Pods>
        + Visitor<Disk>
        + Visitor<Mover>,
{
    fn visit(&self, visitor: &mut V) {
        visitor.room(Account::Syncer, self.syncer());
        if let Some(machine) = self.machine {
            visitor.room(Account::Runtime, self.runtime(machine));
        }
        visitor.room(Account::Syncer, self.heartbeat());
        if self.has_volumes() {
            visitor.room(Account::Volumes, storage::Claims);
            visitor.room(Account::Volumes, storage::Volumes);
            visitor.room(Account::Volumes, storage::Snapshots);
            visitor.room(Account::Volumes, Populator);
            visitor.room(Account::Volumes, Replication::of_sources(Serves::Own));
            visitor.room(Account::Volumes, Replication::of_destinations(Serves::Own, self.here()));
            visitor.room(Account::Volumes, Keeper);
        }
    }
}
