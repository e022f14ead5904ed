//! Serves tenants and DPUs: starts what needs the control plane of a tenant, and the agents of DPUs, and stops what is not
//! needed any more.
//!
//! It writes no object of nodes. One program started twice or stopped early is safe: a call that is under way meets the
//! record of its port. So nothing here has to be exact.

mod caches;
mod planes;
mod power;
mod reach;

use caches::Caches;
pub(crate) use planes::Planes;
pub(crate) use power::PowerCommand;
pub(crate) use reach::{Elsewhere, Reach};

use super::SOON;
use super::access::Who;
use super::wiring::{self, Seats};
use anyhow::{Context, anyhow};
use interlock_api::nodes::{
    DpuAttachment, DpuName, FINALIZER_DPU_CLEAN, LABEL_DPU, PhysicalNode, Rack, Tenant,
};
use interlock_dpu::{Driver, Settings, Wiring};
use interlock_kernel::{Index, Place};
use interlock_nodes::kinds::TENANT_PLANE;
use interlock_nodes::outside::Failure;
use interlock_programs::roles::machines::{
    OnPlane, of_dpu_at_hub, of_dpu_on_plane, of_tenant_at_hub, on_plane,
};
use interlock_programs::served::{
    NODES_SERVED, PlaneName, RACKS_SERVED, Seen, Serves, TENANTS_SERVED, Unit, read_all, wanted,
};
use interlock_programs::{Account, DpuAgent, DpuTenant, Machines as AtHub, TenantPlane};
use interlock_shell::{NoDriver, Places, Runner, Server, Shell, Stop, Stopper};
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

/// How often it is compared what runs and what should.
const ROUNDS: Duration = Duration::from_secs(1);
/// How long until a start that failed is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// Runs the controllers of machines at the hub until the shell stops.
pub(crate) fn at_hub(
    shell: &Shell,
    seats: &Seats,
    power: PowerCommand,
) -> anyhow::Result<Vec<Runner>> {
    Ok(wiring::run(shell, &AtHub, seats, power)?)
}

/// What the driver of a DPU is made of.
#[derive(Debug, Clone)]
pub(crate) enum Device {
    /// No hardware: files of a folder for each DPU.
    Local(PathBuf),
    /// The kernel of this machine, with its files in this folder.
    Linux(PathBuf, Wiring),
}

impl Device {
    fn open(&self, here: &DpuName) -> Result<Driver, Failure> {
        match self {
            Device::Local(folder) => Driver::local(Settings::of(&folder.join(here.to_string()))?),
            Device::Linux(folder, wiring) => Driver::linux(Settings::of(folder)?, wiring.clone()),
        }
    }
}

/// Runs until it is stopped.
pub(crate) struct Machines {
    stopper: Stopper,
    task: JoinHandle<()>,
}

impl Machines {
    /// Begins to serve.
    pub(crate) fn start(reach: Reach, serves: Serves, device: Device) -> Machines {
        let stopper = Stopper::new();
        let caches = Caches::follow(reach.known(), &serves);
        let drivers = Arc::<Mutex<BTreeMap<DpuName, Driver>>>::default();
        let counted = Arc::clone(&drivers);
        reach.shell().metrics().also(move || {
            let drivers = counted.lock().unwrap_or_else(PoisonError::into_inner);
            Driver::metrics(drivers.iter().map(|(dpu, driver)| (dpu.to_string(), driver)))
        });
        let serving = Serving {
            caches,
            parts: Arc::new(Parts { reach, serves, device, planes: Mutex::default(), drivers }),
            running: BTreeMap::new(),
            under_way: BTreeSet::new(),
            retry_at: BTreeMap::new(),
            tasks: JoinSet::new(),
        };
        let task = tokio::spawn(serving.run(stopper.signal()));
        Machines { stopper, task }
    }

    /// Ends it, and all that it runs.
    pub(crate) async fn stop(self) {
        self.stopper.stop();
        if let Err(error) = self.task.await {
            tracing::error!(%error, "what serves tenants and DPUs ended unexpectedly");
        }
    }
}

/// A start or the check before a stop that has come to its end.
enum Ended {
    Started(Unit, anyhow::Result<Vec<Runner>>),
    /// Whether it is needed after all.
    Checked(Unit, anyhow::Result<bool>),
}

struct Serving {
    parts: Arc<Parts>,
    caches: Caches,
    running: BTreeMap<Unit, Vec<Runner>>,
    /// Those that are being started, or checked before they are stopped.
    under_way: BTreeSet<Unit>,
    retry_at: BTreeMap<Unit, Instant>,
    tasks: JoinSet<Ended>,
}

impl Serving {
    async fn run(mut self, stop: Stop) {
        tokio::select! {
            () = stop.asked() => return,
            () = self.caches.filled() => {}
        }
        loop {
            self.round();
            tokio::select! {
                () = stop.asked() => break,
                Some(ended) = self.tasks.join_next() => match ended {
                    Ok(ended) => self.ended(ended),
                    Err(error) => tracing::error!(%error, "a task about tenants and DPUs ended unexpectedly"),
                },
                () = sleep(ROUNDS) => {}
            }
        }
        self.tasks.shutdown().await;
    }

    fn round(&mut self) {
        let served = self.running.keys().filter_map(Unit::tenant);
        let seen = self.caches.seen(served.map(|tenant| &*tenant.name));
        let wanted = wanted(&self.parts.serves, &seen);
        self.retry_at.retain(|unit, _| wanted.contains(unit));
        // One of which a controller has ended by itself is started again.
        self.running.retain(|_, runners| !runners.iter().any(Runner::is_over));
        let now = Instant::now();
        for unit in &wanted {
            let is_due = self.retry_at.get(unit).is_none_or(|at| *at <= now);
            let is_there = self.running.contains_key(unit) || self.under_way.contains(unit);
            if is_there || !is_due {
                continue;
            }
            self.under_way.insert(unit.clone());
            let (parts, unit) = (Arc::clone(&self.parts), unit.clone());
            self.tasks.spawn(async move {
                let started = timeout(SOON, parts.start(&unit)).await;
                let started = started.unwrap_or_else(|_| Err(anyhow!("no answer in time")));
                Ended::Started(unit, started)
            });
        }
        let left = self.running.keys().filter(|unit| !wanted.contains(*unit));
        let left: Vec<Unit> =
            left.filter(|unit| !self.under_way.contains(*unit)).cloned().collect();
        for unit in left {
            self.under_way.insert(unit.clone());
            let parts = Arc::clone(&self.parts);
            let near = unit.dpu().map(|here| self.caches.wired_to(here)).unwrap_or_default();
            self.tasks.spawn(async move {
                let needed = timeout(SOON, parts.is_needed(&unit, &near)).await;
                let needed = needed.unwrap_or_else(|_| Err(anyhow!("no answer in time")));
                sleep(ROUNDS).await;
                Ended::Checked(unit, needed)
            });
        }
    }

    /// Whoever worked on the control plane of a tenant last ends its watches: those of all who ever had a machine here
    /// would pile up.
    fn leave(&self, unit: &Unit) {
        let Some((tenant, plane)) = unit.plane() else { return };
        let mut others = self.running.keys().chain(&self.under_way);
        if !others.any(|other| other.plane() == Some((tenant, plane))) {
            self.parts.forget_plane(tenant, plane);
        }
    }

    fn ended(&mut self, ended: Ended) {
        match ended {
            Ended::Started(unit, Ok(runners)) => {
                tracing::info!(serves = shown(&unit), "serving");
                self.under_way.remove(&unit);
                self.retry_at.remove(&unit);
                self.running.insert(unit, runners);
            }
            Ended::Started(unit, Err(error)) => {
                let because = format!("{error:#}");
                tracing::warn!(serves = shown(&unit), because, "cannot start");
                self.under_way.remove(&unit);
                self.retry_at.insert(unit, Instant::now() + RETRY);
            }
            Ended::Checked(unit, Ok(false)) => {
                tracing::info!(serves = shown(&unit), "not needed any more");
                self.under_way.remove(&unit);
                // To drop the runners stops them.
                self.running.remove(&unit);
                self.leave(&unit);
            }
            // What cannot be read may still be there.
            Ended::Checked(unit, Ok(true) | Err(_)) => {
                self.under_way.remove(&unit);
            }
        }
    }
}

/// What an object of the hub is filed under, by the hub itself; nothing if it is not there.
async fn live<K, T>(hub: &Client, name: &str, index: &Index) -> anyhow::Result<Vec<T>>
where
    K: Resource<DynamicType = ()>,
    T: DeserializeOwned,
{
    let api: Api<DynamicObject> = Api::all_with(hub.clone(), &ApiResource::erase::<K>(&()));
    let found = api.get_opt(name).await;
    let found = found.with_context(|| format!("cannot read {name} of {}", K::plural(&())))?;
    Ok(read_all(found.iter().flat_map(index.values)))
}

fn shown(unit: &Unit) -> String {
    match unit {
        Unit::Tenant { tenant, .. } => format!("tenant {}", tenant.name),
        Unit::Dpu { here } => format!("DPU {here}"),
        Unit::DpuTenant { here, tenant, .. } => format!("DPU {here} for tenant {}", tenant.name),
    }
}

/// What all units share.
struct Parts {
    reach: Reach,
    serves: Serves,
    device: Device,
    /// The control planes of tenants, by the name of the tenant and where it says that it is, with the caches that all
    /// share who work there.
    planes: Mutex<BTreeMap<(String, PlaneName), Server>>,
    /// The drivers of DPUs.
    drivers: Arc<Mutex<BTreeMap<DpuName, Driver>>>,
}

impl Parts {
    async fn start(&self, unit: &Unit) -> anyhow::Result<Vec<Runner>> {
        let shell = self.reach.shell();
        match unit {
            Unit::Tenant { tenant, plane } => {
                let there = self.plane(&tenant.name, plane).await?;
                let grants = match plane {
                    PlaneName::LogicalCluster(name) => on_plane(&tenant.name, name),
                    // Whoever gave the kubeconfig decides what it allows there.
                    PlaneName::Elsewhere { .. } => {
                        let at_hub = vec![of_tenant_at_hub(&tenant.name)];
                        OnPlane { at_hub, on_plane: Vec::new() }
                    }
                };
                self.reach.allow(Some(plane), &grants).await?;
                let seats = [Account::Claims, Account::Attachments].map(|account| {
                    let who = Who::Of(account, tenant.name.as_str());
                    (account, self.places(who, plane, &there))
                });
                let program = TenantPlane { tenant: tenant.clone() };
                Ok(wiring::run(shell, &program, &seats.into(), NoDriver)?)
            }
            Unit::Dpu { here } => {
                let own = OnPlane { at_hub: vec![of_dpu_at_hub(here)], on_plane: Vec::new() };
                self.reach.allow(None, &own).await?;
                let (driver, name) = (self.driver(here).await?, here.to_string());
                let who = Who::Of(Account::Dpu, &name);
                let seats = [(Account::Dpu, [(Place::HUB, self.reach.hub_as(who))].into())];
                let program = DpuAgent { here: here.clone() };
                Ok(wiring::run(shell, &program, &seats.into(), driver)?)
            }
            Unit::DpuTenant { here, vtep, tenant, plane } => {
                let there = self.plane(&tenant.name, plane).await?;
                if let PlaneName::LogicalCluster(name) = plane {
                    let grants = of_dpu_on_plane(here, &tenant.name, name);
                    self.reach.allow(Some(plane), &grants).await?;
                }
                let (driver, name) = (self.driver(here).await?, here.to_string());
                let places = self.places(Who::Of(Account::Dpu, &name), plane, &there);
                let (here, tenant) = (here.clone(), tenant.clone());
                let program = DpuTenant { here, vtep: *vtep, tenant };
                Ok(wiring::run(shell, &program, &[(Account::Dpu, places)].into(), driver)?)
            }
        }
    }

    /// Whether a unit that a cache does not call for is needed all the same, by the hub itself: what a cache does not
    /// show may still be there. A DPU serves a tenant until no attachment waits for it.
    ///
    /// What is read is what the unit is about, and the machines near it: those that are wired to its DPU. A machine that is
    /// not known to be near yet starts the unit again.
    async fn is_needed(&self, unit: &Unit, near: &[String]) -> anyhow::Result<bool> {
        let (hub, mut seen) = (self.reach.hub(), Seen::default());
        if let Some(tenant) = unit.tenant() {
            seen.tenants = live::<Tenant, _>(hub, &tenant.name, &TENANTS_SERVED).await?;
        }
        if let Some(here) = unit.dpu() {
            seen.dpus = live::<Rack, _>(hub, &here.rack, &RACKS_SERVED).await?;
        }
        if let Unit::DpuTenant { .. } = unit {
            for name in near {
                let at_dpus = live::<PhysicalNode, _>(hub, name, &NODES_SERVED).await?;
                seen.at_dpus.extend(at_dpus);
            }
        }
        if wanted(&self.serves, &seen).contains(unit) {
            return Ok(true);
        }
        let Unit::DpuTenant { here, tenant, plane, .. } = unit else { return Ok(false) };
        if !seen.tenants.iter().any(|it| it.tenant.uid == tenant.uid) {
            return Ok(false);
        }
        let there = self.plane(&tenant.name, plane).await?;
        let attachments: Api<DpuAttachment> = Api::all(there.client().clone());
        let only = ListParams::default().labels(&format!("{LABEL_DPU}={here}"));
        let attachments = attachments.list(&only).await.context("cannot list attachments")?;
        let is_held =
            |it: &DpuAttachment| it.finalizers().iter().any(|it| it == FINALIZER_DPU_CLEAN);
        Ok(attachments.iter().any(is_held))
    }

    /// Forgets the control plane of a tenant: a controller that still works there keeps it until the controller ends.
    fn forget_plane(&self, tenant: &str, plane: &PlaneName) {
        let mut planes = self.planes.lock().unwrap_or_else(PoisonError::into_inner);
        planes.remove(&(tenant.to_owned(), plane.clone()));
    }

    /// The control plane of a tenant.
    async fn plane(&self, tenant: &str, plane: &PlaneName) -> anyhow::Result<Server> {
        let key = (tenant.to_owned(), plane.clone());
        let known = || {
            let planes = self.planes.lock().unwrap_or_else(PoisonError::into_inner);
            planes.get(&key).cloned()
        };
        if let Some(known) = known() {
            return Ok(known);
        }
        let server = self.reach.open(tenant, plane).await?;
        let mut planes = self.planes.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(planes.entry(key).or_insert(server).clone())
    }

    /// The places of an account: the hub, and the control plane of a tenant.
    fn places(&self, who: Who<'_>, plane: &PlaneName, there: &Server) -> Places {
        let hub = (Place::HUB, self.reach.hub_as(who));
        [hub, (TENANT_PLANE, self.reach.plane_as(who, plane, there))].into()
    }

    /// The driver of a DPU, which is the same for all its controllers.
    async fn driver(&self, here: &DpuName) -> anyhow::Result<Driver> {
        let known = || {
            let drivers = self.drivers.lock().unwrap_or_else(PoisonError::into_inner);
            drivers.get(here).cloned()
        };
        if let Some(known) = known() {
            return Ok(known);
        }
        let (device, name) = (self.device.clone(), here.clone());
        let opened = tokio::task::spawn_blocking(move || device.open(&name)).await;
        let driver = opened.context("the driver of the DPU stopped")?;
        let driver =
            driver.map_err(|failure| anyhow!("{}: {}", failure.reason, failure.message))?;
        let mut drivers = self.drivers.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(drivers.entry(here.clone()).or_insert(driver).clone())
    }
}
