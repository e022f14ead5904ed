//! The agent of one workload cluster on this machine: its program, and the drivers that it needs.

use super::applier::{ApiServers, Questions};
use super::driver::OnThisMachine;
use super::node;
use super::storage::OnThisDisk;
use super::tokens;
use super::wiring::{self, Seats};
use interlock_api::placement::{self, FurtherKind, Ref};
use interlock_kernel::{Kind, Nothing, Place};
use interlock_outside::processes::Processes;
use interlock_outside::volumes::LocalVolumes;
use interlock_placement::heartbeat::{Discovery, WhoIssues};
use interlock_placement::runtime::Scope;
use interlock_placement::runtime::outside::{Action, Answer, Machine, Question};
use interlock_placement::runtime::tokens::Cloud;
use interlock_placement::syncer::{Holding, Locks, LocksOf};
use interlock_programs::{self as programs, Account, Listed, list};
use interlock_shell::{Driver, NoDriver, Runner, Shell, WiringError};
use interlock_volumes::outside::{
    Disk, DiskAction, DiskQuestion, Made, Mover, MoverAction, Sync, SyncId,
};
use kube::Client;
use kube::api::GetParams;
use kube::core::Request;
use std::sync::Arc;
use std::time::Duration;

/// How long the cluster may take to say who issues its tokens: the heartbeat waits for it.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(2);

/// What runs the pods of a cluster: the drivers of its agent.
#[derive(Clone)]
pub(crate) enum Runtime {
    /// We do, as processes of this machine, with volumes that are folders of it.
    OnThisMachine {
        processes: Arc<Processes>,
        pods: OnThisMachine,
        disk: OnThisDisk,
        /// Where the cloud is that the roles of pods are in.
        cloud: Cloud,
    },
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
            cloud: Cloud::default(),
        }
        .reaching(tokens::cloud_of_environment())
    }

    /// The same, with pods whose SDKs find the cloud elsewhere than they would think.
    pub(crate) fn reaching(mut self, at: Cloud) -> Self {
        match &mut self {
            Runtime::OnThisMachine { cloud, .. } => *cloud = at,
            // The cluster has its own ways to tell its pods.
            Runtime::OfTheCluster { .. } => {}
        }
        self
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
    /// Which pods of the cluster are processes of this machine, where it runs any. A logical cluster of ours has no other
    /// nodes, and no controllers of Deployments and the like but ours.
    pub(crate) scope: Scope,
    /// Whether it brings the cluster to what ClusterUpdates ask for, and how the API servers of the cluster are reached one
    /// by one: nothing more than that is proven of a fence that is not exact.
    pub(crate) updates: Option<ApiServers>,
}

impl Agent {
    /// All its controllers, for their rights.
    pub(crate) fn rooms(&self) -> Vec<Listed> {
        let mut rooms = list(&self.program());
        rooms.extend(self.workloads().iter().flat_map(list));
        rooms.extend(self.applier().iter().flat_map(list));
        rooms
    }

    /// What brings it to what it is to run.
    fn applier(&self) -> Option<programs::Applier> {
        self.updates.as_ref().map(|_| programs::Applier::of(self.of.clone()))
    }

    /// The controllers of its workloads: only where its pods are processes of this machine, and nobody else makes any.
    fn workloads(&self) -> Option<programs::Workloads> {
        let Runtime::OnThisMachine { processes, .. } = &self.runtime else { return None };
        match self.scope {
            Scope::Synced => None,
            Scope::OfClass | Scope::All => {
                let node = node::of_this_machine(&self.of.name, processes.boot_id());
                Some(programs::Workloads { node })
            }
        }
    }

    /// Its controllers, as one list.
    pub(crate) fn program(&self) -> programs::Agent {
        let (boot_id, machine) = match &self.runtime {
            Runtime::OnThisMachine { processes, .. } => {
                let is_root = processes.are_roots();
                let machine = programs::Machine { is_root, has_volumes: true, scope: self.scope };
                (processes.boot_id().to_owned(), Some(machine))
            }
            Runtime::OfTheCluster { boot_id } => (boot_id.clone(), None),
        };
        let cloud = match &self.runtime {
            Runtime::OnThisMachine { cloud, .. } => cloud.clone(),
            Runtime::OfTheCluster { .. } => Cloud::default(),
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
            cloud,
        }
    }

    /// Runs it until the shell stops. To drop the runners stops them.
    pub(crate) fn run(self, shell: &Shell, seats: &Seats) -> Result<Vec<Runner>, WiringError> {
        let client = |account| {
            let places = seats.get(&account);
            places.and_then(|places| places.server(Place::CLUSTER)).map(|at| at.client().clone())
        };
        let drivers = Drivers {
            syncer: client(Account::Syncer),
            tokens: client(Account::Runtime),
            runtime: self.runtime.clone(),
        };
        let mut runners = wiring::run(shell, &self.program(), seats, drivers)?;
        if let Some(workloads) = self.workloads() {
            runners.extend(wiring::run(shell, &workloads, seats, NoDriver)?);
        }
        if let Some(applier) = self.applier() {
            let at = |place| {
                let server = seats.get(&Account::Applier).and_then(|places| places.server(place));
                server.map(|at| at.client().clone())
            };
            let servers = self.updates.clone().unwrap_or_default();
            let questions = Questions::new(at(Place::HUB), at(Place::CLUSTER), servers);
            runners.extend(wiring::run(shell, &applier, seats, questions)?);
        }
        Ok(runners)
    }
}

/// The drivers of the agent of one cluster. What is asked of the cluster's own server goes there as the
/// account whose controller asks.
#[derive(Clone)]
struct Drivers {
    runtime: Runtime,
    /// The cluster, for the account of the syncer.
    syncer: Option<Client>,
    /// The cluster, for the account of what runs pods.
    tokens: Option<Client>,
}

/// A cluster that does not say who issues its tokens is no reason to be silent about it: the answer is
/// then that nobody knows.
impl Driver<Discovery> for Drivers {
    async fn ask(&self, _: WhoIssues) -> Result<Option<String>, String> {
        let Some(client) = &self.syncer else { return Ok(None) };
        match tokio::time::timeout(DISCOVERY_TIMEOUT, discover(client)).await {
            Ok(Ok(issuer)) => Ok(issuer),
            Ok(Err(error)) => {
                let because = super::driver::in_words(&error);
                tracing::debug!(because, "the cluster does not say who issues its tokens");
                Ok(None)
            }
            Err(_) => Ok(None),
        }
    }

    async fn perform(&self, action: Nothing) -> Result<(), String> {
        match action {}
    }
}

async fn discover(client: &Client) -> Result<Option<String>, kube::Error> {
    let request = Request::new("/.well-known").get("openid-configuration", &GetParams::default());
    let request = request.map_err(kube::Error::BuildRequest)?;
    let document: serde_json::Value = client.request(request).await?;
    Ok(document["issuer"].as_str().map(str::to_owned))
}

impl Driver<Nothing> for Drivers {
    async fn ask(&self, question: Nothing) -> Result<Nothing, String> {
        match question {}
    }

    async fn perform(&self, action: Nothing) -> Result<(), String> {
        match action {}
    }
}

impl Driver<Locks> for Drivers {
    async fn ask(&self, question: LocksOf) -> Result<Holding, String> {
        match &self.runtime {
            Runtime::OnThisMachine { pods, .. } => Driver::<Locks>::ask(pods, question).await,
            Runtime::OfTheCluster { .. } => Ok(Holding::Free),
        }
    }

    async fn perform(&self, action: Nothing) -> Result<(), String> {
        match action {}
    }
}

impl Driver<Machine> for Drivers {
    async fn ask(&self, question: Question) -> Result<Answer, String> {
        Driver::<Machine>::ask(self.runtime.pods()?, question).await
    }

    async fn perform(&self, action: Action) -> Result<(), String> {
        if let Action::WriteToken(request) = action {
            self.runtime.pods()?.write_token(self.tokens.as_ref(), *request).await;
            return Ok(());
        }
        Driver::<Machine>::perform(self.runtime.pods()?, action).await
    }
}

impl Driver<Disk> for Drivers {
    async fn ask(&self, question: DiskQuestion) -> Result<Made, String> {
        Driver::<Disk>::ask(self.runtime.disk()?, question).await
    }

    async fn perform(&self, action: DiskAction) -> Result<(), String> {
        Driver::<Disk>::perform(self.runtime.disk()?, action).await
    }
}

impl Driver<Mover> for Drivers {
    async fn ask(&self, id: SyncId) -> Result<Sync, String> {
        Driver::<Mover>::ask(self.runtime.disk()?, id).await
    }

    async fn perform(&self, action: MoverAction) -> Result<(), String> {
        Driver::<Mover>::perform(self.runtime.disk()?, action).await
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
