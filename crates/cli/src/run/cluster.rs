//! The agent of one workload cluster on this machine: its program, and the drivers that it needs.

use super::driver::OnThisMachine;
use super::storage::OnThisDisk;
use super::wiring::{self, Seats};
use interlock_api::placement::{self, FurtherKind, Ref};
use interlock_kernel::{Kind, Nothing};
use interlock_outside::processes::Processes;
use interlock_outside::volumes::LocalVolumes;
use interlock_placement::runtime::outside::{Action, Answer, Machine, Question};
use interlock_placement::syncer::{Holding, Locks, LocksOf};
use interlock_programs as programs;
use interlock_shell::{Driver, Runner, Shell, WiringError};
use interlock_volumes::outside::{
    Disk, DiskAction, DiskQuestion, Made, Mover, MoverAction, Sync, SyncId,
};
use std::sync::Arc;
use std::time::Duration;

/// What runs the pods of a cluster: the drivers of its agent.
#[derive(Clone)]
pub(crate) enum Runtime {
    /// We do, as processes of this machine, with volumes that are folders of it.
    OnThisMachine { processes: Arc<Processes>, pods: OnThisMachine, disk: OnThisDisk },
    /// The cluster itself does: the API shows all there is to see.
    OfTheCluster {
        /// The boot of the machine that permits are given for.
        boot_id: String,
    },
}

impl Runtime {
    /// Pods are processes of this machine, and volumes are folders of it.
    pub(crate) fn on_this_machine(processes: Arc<Processes>, volumes: Arc<LocalVolumes>) -> Self {
        Runtime::OnThisMachine {
            pods: OnThisMachine::new(Arc::clone(&processes), Arc::clone(&volumes)),
            disk: OnThisDisk::new(volumes),
            processes,
        }
    }

    /// The processes of the cluster, if they are those of this machine.
    pub(crate) fn processes(&self) -> Option<Arc<Processes>> {
        match self {
            Runtime::OnThisMachine { processes, .. } => Some(Arc::clone(processes)),
            Runtime::OfTheCluster { .. } => None,
        }
    }

    fn pods(&self) -> Result<&OnThisMachine, String> {
        match self {
            Runtime::OnThisMachine { pods, .. } => Ok(pods),
            Runtime::OfTheCluster { .. } => Err("the cluster runs its own pods".to_owned()),
        }
    }

    fn disk(&self) -> Result<&OnThisDisk, String> {
        match self {
            Runtime::OnThisMachine { disk, .. } => Ok(disk),
            Runtime::OfTheCluster { .. } => Err("the cluster has its own volumes".to_owned()),
        }
    }
}

/// The agent of one workload cluster.
pub(crate) struct Agent {
    /// The WorkloadCluster that it serves.
    pub(crate) of: Ref,
    /// Further kinds that are carried down to it.
    pub(crate) further: Vec<FurtherKind>,
    pub(crate) runtime: Runtime,
    /// How often it sends a heartbeat.
    pub(crate) heartbeat_every: Duration,
}

impl Agent {
    /// Its controllers, as one list.
    pub(crate) fn program(&self) -> programs::Agent {
        let (boot_id, machine) = match &self.runtime {
            Runtime::OnThisMachine { processes, .. } => {
                let is_root = processes.are_roots();
                let machine = programs::Machine { is_root, has_volumes: true };
                (processes.boot_id().to_owned(), Some(machine))
            }
            Runtime::OfTheCluster { boot_id } => (boot_id.clone(), None),
        };
        programs::Agent {
            of: self.of.clone(),
            introduction: placement::Syncer {
                instance: super::instance(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                boot_id,
            },
            further: self.further.iter().map(kind).collect(),
            machine,
            heartbeat_every: self.heartbeat_every,
        }
    }

    /// Runs it until the shell stops. To drop the runners stops them.
    pub(crate) fn run(self, shell: &Shell, seats: &Seats) -> Result<Vec<Runner>, WiringError> {
        wiring::run(shell, &self.program(), seats, self.runtime)
    }
}

impl Driver<Nothing> for Runtime {
    async fn ask(&self, question: Nothing) -> Result<Nothing, String> {
        match question {}
    }

    async fn perform(&self, action: Nothing) -> Result<(), String> {
        match action {}
    }
}

impl Driver<Locks> for Runtime {
    async fn ask(&self, question: LocksOf) -> Result<Holding, String> {
        match self {
            Runtime::OnThisMachine { pods, .. } => Driver::<Locks>::ask(pods, question).await,
            Runtime::OfTheCluster { .. } => Ok(Holding::Free),
        }
    }

    async fn perform(&self, action: Nothing) -> Result<(), String> {
        match action {}
    }
}

impl Driver<Machine> for Runtime {
    async fn ask(&self, question: Question) -> Result<Answer, String> {
        Driver::<Machine>::ask(self.pods()?, question).await
    }

    async fn perform(&self, action: Action) -> Result<(), String> {
        Driver::<Machine>::perform(self.pods()?, action).await
    }
}

impl Driver<Disk> for Runtime {
    async fn ask(&self, question: DiskQuestion) -> Result<Made, String> {
        Driver::<Disk>::ask(self.disk()?, question).await
    }

    async fn perform(&self, action: DiskAction) -> Result<(), String> {
        Driver::<Disk>::perform(self.disk()?, action).await
    }
}

impl Driver<Mover> for Runtime {
    async fn ask(&self, id: SyncId) -> Result<Sync, String> {
        Driver::<Mover>::ask(self.disk()?, id).await
    }

    async fn perform(&self, action: MoverAction) -> Result<(), String> {
        Driver::<Mover>::perform(self.disk()?, action).await
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
