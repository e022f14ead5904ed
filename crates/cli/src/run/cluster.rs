//! The agents of one workload cluster: its syncer, its sign of life, and, where its pods are processes
//! of this machine, their runtime and all that makes, fills and images its volumes.

use super::hands::{NoLocks, OnThisMachine};
use super::storage::OnThisDisk;
use interlock_api::placement::{self, FurtherKind, Ref};
use interlock_kernel::{Kind, Place};
use interlock_outside::processes::Processes;
use interlock_outside::volumes::LocalVolumes;
use interlock_placement::heartbeat::Heartbeat;
use interlock_placement::runtime;
use interlock_placement::syncer::Syncer;
use interlock_shell::{NoHands, Runner, Server, Shell, WiringError};
use interlock_volumes::keeper::Keeper;
use interlock_volumes::populator::Populator;
use interlock_volumes::storage;
use interlock_volumes::sync::{Here, Replication, Serves};
use std::sync::Arc;
use std::time::Duration;

/// What runs the pods of a cluster.
pub(crate) enum Runtime {
    /// We do, as processes of this machine, with volumes that are folders of it.
    Processes(Arc<Processes>, Arc<LocalVolumes>),
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
    /// The cluster, for what runs its pods.
    pub(crate) machine: Server,
    /// The cluster, for what makes, images and fills its volumes.
    pub(crate) storage: Server,
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
            Runtime::Processes(processes, _) => processes.boot_id().to_owned(),
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
        let mut runners = Vec::new();
        match &self.runtime {
            Runtime::Processes(processes, volumes) => {
                // What can be imaged here is carried elsewhere, by the controllers below.
                let heartbeat = heartbeat.with_snapshot_classes();
                runners.push(shell.run(heartbeat, places(), NoHands)?);
                let hands = OnThisMachine::new(Arc::clone(processes), Arc::clone(volumes));
                runners.push(shell.run(syncer.copying(), places(), hands.clone())?);
                let pods = [(Place::CLUSTER, self.machine.clone())];
                let runtime =
                    runtime::Runtime::new(&boot_id).as_root(processes.are_roots()).with_storage();
                runners.push(shell.run(runtime, pods, hands)?);
                runners.extend(self.run_volumes(shell, volumes)?);
            }
            Runtime::OfTheCluster { .. } => {
                runners.push(shell.run(heartbeat, places(), NoHands)?);
                runners.push(shell.run(syncer, places(), NoLocks)?);
            }
        }
        Ok(runners)
    }

    /// Runs what makes volumes, takes images of them, and fills claims from images.
    fn run_volumes(
        &self,
        shell: &Shell,
        volumes: &Arc<LocalVolumes>,
    ) -> Result<Vec<Runner>, WiringError> {
        let here = || [(Place::CLUSTER, self.storage.clone())];
        let disk = OnThisDisk::new(Arc::clone(volumes));
        let Ref { name, uid, .. } = self.of.clone();
        let cluster = Here { name: name.into(), uid: uid.into() };
        Ok(vec![
            shell.run(storage::Claims, here(), disk.clone())?,
            shell.run(storage::Volumes, here(), disk.clone())?,
            shell.run(storage::Images, here(), disk.clone())?,
            shell.run(Populator, here(), NoHands)?,
            shell.run(Replication::of_sources(Serves::Own), here(), disk.clone())?,
            shell.run(Replication::of_destinations(Serves::Own, cluster), here(), disk.clone())?,
            shell.run(Keeper, here(), disk)?,
        ])
    }
}

/// A further kind, as controllers know kinds.
pub(crate) fn kind(further: &FurtherKind) -> Kind {
    Kind {
        group: further.group.clone().into(),
        version: further.version.clone().into(),
        kind: further.kind.clone().into(),
        plural: further.plural.clone().into(),
        is_namespaced: true,
    }
}
