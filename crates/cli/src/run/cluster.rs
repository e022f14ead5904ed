//! The agents of one workload cluster: its syncer, its sign of life, and its process runtime.

use super::hands::{NoLocks, OnThisMachine};
use interlock_api::placement::{self, FurtherKind, Ref};
use interlock_kernel::{Kind, Place};
use interlock_outside::processes::Processes;
use interlock_placement::heartbeat::Heartbeat;
use interlock_placement::runtime;
use interlock_placement::syncer::Syncer;
use interlock_shell::{NoHands, Runner, Server, Shell, WiringError};
use std::sync::Arc;
use std::time::Duration;

/// What runs the pods of a cluster.
pub(crate) enum Runtime {
    /// We do, as processes of this machine.
    Processes(Arc<Processes>),
    /// The cluster itself does.
    OfTheCluster {
        /// The boot of the machine that permits are given for.
        boot_id: String,
    },
}

/// The agents of one workload cluster.
pub(crate) struct Agent {
    pub(crate) hub: Server,
    pub(crate) cluster: Server,
    /// The WorkloadCluster that it serves.
    pub(crate) of: Ref,
    /// Further kinds that are carried down to it.
    pub(crate) further: Vec<FurtherKind>,
    pub(crate) runtime: Runtime,
    /// How often it gives a sign of life.
    pub(crate) heartbeat_every: Duration,
}

impl Agent {
    /// Runs the agents until the shell stops. To drop the runners stops them.
    pub(crate) fn run(self, shell: &Shell) -> Result<Vec<Runner>, WiringError> {
        let places = || [(Place::HUB, self.hub.clone()), (Place::CLUSTER, self.cluster.clone())];
        let boot_id = match &self.runtime {
            Runtime::Processes(processes) => processes.boot_id().to_owned(),
            Runtime::OfTheCluster { boot_id } => boot_id.clone(),
        };
        let further = self.further.iter().map(kind).collect();
        let syncer = Syncer::new(self.of.clone(), &boot_id).carrying(further);
        let introduction = placement::Syncer {
            instance: super::instance(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            boot_id: boot_id.clone(),
        };
        let heartbeat = Heartbeat::new(self.of.clone(), introduction).every(self.heartbeat_every);
        let mut runners = vec![shell.run(heartbeat, places(), NoHands)?];
        match &self.runtime {
            Runtime::Processes(processes) => {
                let hands = OnThisMachine::new(Arc::clone(processes), &self.of.uid);
                runners.push(shell.run(syncer, places(), hands.clone())?);
                let pods = [(Place::CLUSTER, self.cluster.clone())];
                runners.push(shell.run(runtime::Runtime::new(&boot_id), pods, hands)?);
            }
            Runtime::OfTheCluster { .. } => runners.push(shell.run(syncer, places(), NoLocks)?),
        }
        Ok(runners)
    }
}

fn kind(further: &FurtherKind) -> Kind {
    Kind {
        group: further.group.clone().into(),
        version: further.version.clone().into(),
        kind: further.kind.clone().into(),
        plural: further.plural.clone().into(),
        is_namespaced: true,
    }
}
