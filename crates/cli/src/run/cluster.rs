//! The agent of one workload cluster on this machine: its program, and the drivers that it needs.

use super::hands::OnThisMachine;
use super::storage::OnThisDisk;
use super::wiring::{self, Seats};
use interlock_api::placement::{self, FurtherKind, Ref};
use interlock_kernel::{Kind, Nothing};
use interlock_outside::processes::Processes;
use interlock_outside::volumes::LocalVolumes;
use interlock_placement::runtime::outside::{Answer, Deed, Machine, Question};
use interlock_placement::syncer::{Holding, Locks, LocksOf};
use interlock_programs as programs;
use interlock_shell::{Hands, Runner, Shell, WiringError};
use interlock_volumes::outside::{
    Disk, DiskDeed, DiskQuestion, Made, Mover, MoverDeed, Sync, SyncId,
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

impl Hands<Nothing> for Runtime {
    async fn ask(&self, question: Nothing) -> Result<Nothing, String> {
        match question {}
    }

    async fn perform(&self, deed: Nothing) -> Result<(), String> {
        match deed {}
    }
}

impl Hands<Locks> for Runtime {
    async fn ask(&self, question: LocksOf) -> Result<Holding, String> {
        match self {
            Runtime::OnThisMachine { pods, .. } => Hands::<Locks>::ask(pods, question).await,
            Runtime::OfTheCluster { .. } => Ok(Holding::Free),
        }
    }

    async fn perform(&self, deed: Nothing) -> Result<(), String> {
        match deed {}
    }
}

impl Hands<Machine> for Runtime {
    async fn ask(&self, question: Question) -> Result<Answer, String> {
        Hands::<Machine>::ask(self.pods()?, question).await
    }

    async fn perform(&self, deed: Deed) -> Result<(), String> {
        Hands::<Machine>::perform(self.pods()?, deed).await
    }
}

impl Hands<Disk> for Runtime {
    async fn ask(&self, question: DiskQuestion) -> Result<Made, String> {
        Hands::<Disk>::ask(self.disk()?, question).await
    }

    async fn perform(&self, deed: DiskDeed) -> Result<(), String> {
        Hands::<Disk>::perform(self.disk()?, deed).await
    }
}

impl Hands<Mover> for Runtime {
    async fn ask(&self, id: SyncId) -> Result<Sync, String> {
        Hands::<Mover>::ask(self.disk()?, id).await
    }

    async fn perform(&self, deed: MoverDeed) -> Result<(), String> {
        Hands::<Mover>::perform(self.disk()?, deed).await
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
