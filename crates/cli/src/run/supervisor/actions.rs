//! How an agent is started and stopped in this process.

use super::report;
use crate::run::access::{HUB, Who, allow_for_cluster, forbid_for_cluster};
use crate::run::applier::ApiServers;
use crate::run::cluster::{Agent, Runtime, kind};
use crate::run::streams::Streaming;
use crate::run::wiring::Seats;
use crate::run::{install, open_processes, open_volumes};
use anyhow::Context;
use futures::future::join_all;
use interlock_api::placement::{Ref, WorkloadCluster};
use interlock_kernel::{Kind, Place};
use interlock_outside::processes::Processes;
use interlock_placement::runtime::Scope;
use interlock_placement::runtime::tokens::Cloud;
use interlock_programs::supervisor::{Registered, Service};
use interlock_programs::{Account, accounts, roles};
use interlock_shell::{Runner, Shell};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::{Client, ResourceExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// How long processes may take to stop.
const GRACE: Duration = Duration::from_secs(5);
/// How long a cache that is behind the hub has to catch up before it is checked again.
const CATCH_UP: Duration = Duration::from_millis(500);

/// What all agents of this process share.
pub(crate) struct Ground {
    /// The API server of this process.
    pub(crate) server: interlock_apiserver::Server,
    /// The hub, for whoever started it all.
    pub(crate) hub: Client,
    /// The hub, with the caches that all share.
    pub(crate) known: interlock_shell::Server,
    pub(crate) shell: Shell,
    /// The data directory.
    pub(crate) directory: PathBuf,
    /// Whether processes may be those of root.
    pub(crate) may_be_root: bool,
    /// Which pods of the clusters are processes of this machine.
    pub(crate) scope: Scope,
    pub(crate) heartbeat_every: Duration,
    /// Where pods find the cloud that their roles are in.
    pub(crate) cloud: Cloud,
}

/// An agent that runs. To drop it stops its controllers.
pub(crate) struct Held {
    pub(super) service: Service,
    pub(super) runners: Vec<Runner>,
    pub(super) runtime: Runtime,
    /// Serves the logs, commands and ports of its pods.
    pub(super) streaming: Option<Streaming>,
}

impl Held {
    /// Whether a controller has ended, or there is none.
    pub(super) fn has_ended(&self) -> bool {
        self.runners.is_empty() || self.runners.iter().any(Runner::is_over)
    }

    /// The same, with its controllers stopped.
    pub(super) fn without_controllers(self) -> Held {
        Held { runners: Vec::new(), streaming: None, ..self }
    }

    /// Ends every process of the cluster. Its controllers must have ended, or they start more.
    pub(crate) async fn stop_processes(self) {
        drop(self.runners);
        if let Some(processes) = self.runtime.processes() {
            stop_processes(processes, &self.service.of.name).await;
        }
    }
}

/// What came of an agent that was to be stopped.
pub(super) enum Letting {
    /// Its cluster is registered as before: the cache was behind.
    StillThere(Held),
    /// Its cluster is registered in another way, so another agent goes on with what runs its pods.
    Changed(Held),
    /// It has ended.
    Gone,
}

impl Ground {
    /// Starts the agent of a cluster, with all that the cluster needs for it; None: the hub has no
    /// such cluster any more.
    pub(super) async fn start(
        &self,
        service: Service,
        machine: Option<Runtime>,
    ) -> anyhow::Result<Option<Held>> {
        if self.wanted(&service.of).await?.as_ref() != Some(&service) {
            sleep(CATCH_UP).await;
            return Ok(None);
        }
        let Service { of, logical_cluster, further } = &service;
        make_logical_cluster(&self.hub, logical_cluster).await?;
        let runtime = match machine {
            Some(machine) => machine,
            None => self.open_machine(of)?,
        };
        let owner = Who::Owner.client(&self.server, logical_cluster);
        install::install_volumes(&owner).await?;
        install::install_fence(&owner, &Account::Applier.user(Some(&of.name))).await?;
        let kinds: Vec<Kind> = further.iter().map(kind).collect();
        let grants = roles::of_cluster(&of.name, logical_cluster, &kinds);
        allow_for_cluster(&self.hub, &owner, &grants).await?;
        let agent = Agent {
            of: of.clone(),
            further: further.clone(),
            runtime: runtime.clone(),
            heartbeat_every: self.heartbeat_every,
            scope: self.scope,
            updates: Some(ApiServers::default()),
        };
        let seats = self.seats(&agent, logical_cluster);
        let runners = agent.run(&self.shell, &seats)?;
        report::served(self, of);
        let streaming = match runtime.processes() {
            Some(processes) => {
                let started = Streaming::start(&self.server, logical_cluster, &processes);
                Some(started.context("cannot keep the logs of pods")?)
            }
            None => None,
        };
        Ok(Some(Held { service, runners, runtime, streaming }))
    }

    fn open_machine(&self, of: &Ref) -> anyhow::Result<Runtime> {
        let folder = self.directory.join("clusters").join(&of.uid);
        let processes = open_processes(&folder, self.may_be_root)?;
        let volumes = open_volumes(&self.directory, &of.uid, &processes)?;
        Ok(Runtime::on_this_machine(processes, volumes).reaching(self.cloud.clone()))
    }

    /// Each account of an agent at its places.
    fn seats(&self, agent: &Agent, logical_cluster: &str) -> Seats {
        let name = &agent.of.name;
        let caches = Who::Caches.client(&self.server, logical_cluster);
        let there = interlock_shell::Server::new(name, caches);
        let seat = |(account, places): (_, std::collections::BTreeSet<Place>)| {
            let who = Who::OfCluster(account, name);
            let at = |place| match place {
                Place::HUB => (place, self.known.acting_as(who.client(&self.server, HUB))),
                _ => (place, there.acting_as(who.client(&self.server, logical_cluster))),
            };
            (account, places.into_iter().map(at).collect())
        };
        accounts(&agent.rooms()).into_iter().map(seat).collect()
    }

    /// What is to be served of a cluster, by the hub itself.
    async fn wanted(&self, of: &Ref) -> anyhow::Result<Option<Service>> {
        let clusters: Api<WorkloadCluster> = Api::all(self.hub.clone());
        let found = clusters.get_opt(&of.name).await;
        let found = found.with_context(|| format!("cannot read WorkloadCluster {of}"))?;
        let found = found.as_ref().map(registered).filter(|found| found.of.is_same(of));
        Ok(found.and_then(|found| found.service()))
    }

    /// Stops an agent whose cluster a cache does not show as it was. The hub itself has to say so:
    /// what a cache does not show may still be there.
    pub(super) async fn let_go(&self, held: Held) -> Letting {
        let of = held.service.of.clone();
        let wanted = match self.wanted(&of).await {
            Ok(wanted) if wanted.as_ref() != Some(&held.service) => wanted,
            Ok(_) => {
                sleep(CATCH_UP).await;
                return Letting::StillThere(held);
            }
            Err(error) => {
                let because = format!("{error:#}");
                tracing::warn!(
                    cluster = of.name,
                    because,
                    "cannot read whether the WorkloadCluster still exists"
                );
                sleep(CATCH_UP).await;
                return Letting::StillThere(held);
            }
        };
        let is_there = wanted.is_some_and(|it| it.logical_cluster == held.service.logical_cluster);
        let because = match is_there {
            true => "the WorkloadCluster has changed",
            false => "the WorkloadCluster was deleted, or its connection changed",
        };
        tracing::info!(cluster = of.name, because, "stopping the agent of the cluster");
        let Held { service, runners, runtime, streaming } = held;
        // Whoever goes on with the processes serves their logs anew.
        drop(streaming);
        join_all(runners.into_iter().map(Runner::stop)).await;
        if is_there {
            return Letting::Changed(Held {
                service,
                runners: Vec::new(),
                runtime,
                streaming: None,
            });
        }
        // Nothing runs as a rule: the cluster stays while a grant is on it. If somebody took its
        // finalizer off by hand, nobody else would ever stop what runs.
        if let Some(processes) = runtime.processes() {
            stop_processes(processes, &of.name).await;
        }
        if let Err(error) = forbid_for_cluster(&self.hub, &of.name).await {
            let because = format!("{error:#}");
            tracing::warn!(cluster = of.name, because, "cannot delete the roles of the cluster");
        }
        tracing::info!(cluster = of.name, "the agent of the cluster has ended");
        Letting::Gone
    }
}

/// A WorkloadCluster, as far as it matters to who serves it.
pub(super) fn registered(cluster: &WorkloadCluster) -> Registered {
    Registered {
        of: Ref::new(cluster.name_any(), cluster.uid().unwrap_or_default()),
        connection: cluster.spec.connection.clone(),
        further: cluster.spec.resources.clone(),
    }
}

async fn stop_processes(processes: Arc<Processes>, cluster: &str) {
    let stopped = tokio::task::spawn_blocking(move || processes.stop_all(GRACE)).await;
    match stopped {
        Ok(Ok(left)) if left.is_empty() => {}
        Ok(Ok(left)) => {
            tracing::error!(cluster, ?left, "these processes did not end after SIGKILL")
        }
        Ok(Err(error)) => tracing::error!(cluster, %error, "cannot stop the processes"),
        Err(error) => tracing::error!(cluster, %error, "cannot stop the processes"),
    }
}

/// Makes a logical cluster, unless it is there.
pub(crate) async fn make_logical_cluster(hub: &Client, name: &str) -> anyhow::Result<()> {
    let kind = GroupVersionKind::gvk("interlock.dev", "v1alpha1", "LogicalCluster");
    let resource = ApiResource::from_gvk_with_plural(&kind, "logicalclusters");
    let logical: Api<DynamicObject> = Api::all_with(hub.clone(), &resource);
    match logical.create(&PostParams::default(), &DynamicObject::new(name, &resource)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot make the logical cluster {name}")),
    }
}
