//! The world of nodes: tenants who claim machines, and forge what they may write; a rack with two to four DPUs, which
//! lose their power, come back with an old disk or an empty one, or never; two agents on one DPU, paused and late.
//!
//! Real: the controllers of nodes at the hub, for each tenant and on each DPU, on the API server, with their roles. Made
//! up: the DPUs, which are the stand-in that `interlock check nodes` explores. The promises are those of that world, for
//! several machines at once.

mod calm;
mod dpus;
mod events;
mod flaws;
mod people;
mod programs;
mod promises;

use crate::engine::actor::Actor;
use crate::engine::chance::Chance;
use crate::engine::line::Sent;
use crate::engine::truth::Truth;
use crate::engine::{Broken, Engine, Simulated, api_of, create, said};
use crate::{Counts, Flaw};
use dpus::{Dpus, REFUSED};
use interlock_api::nodes::{DpuName, Ref};
use interlock_kernel::{GroupVersion, Kind};
use interlock_nodes::kinds::{
    DPU_ATTACHMENT, DPU_REPORT, LEASE_NAMESPACE, NODE_CLAIM, NODE_FENCE, PHYSICAL_NODE,
    RACK as RACKS, TENANT,
};
use interlock_programs::roles::Grant;
use interlock_programs::roles::machines::{
    OnPlane, at_hub, of_dpu_at_hub, of_dpu_on_plane, on_plane,
};
use programs::Unit;
use promises::Promises;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many events there are before the faults stop.
const EVENTS: usize = 800;
/// The rack.
const RACK: &str = "r1";
/// Its DPUs; a seed has the first two to four of them.
const DPUS: [&str; 4] = ["d1", "d2", "d3", "d4"];
/// The machines. Each is wired to the port of its place at one DPU, or at two.
const MACHINES: [&str; 3] = ["n1", "n2", "n3"];
/// The port of each machine, at whichever DPU.
const PORTS: [&str; MACHINES.len()] = ["p1", "p2", "p3"];

const NAMESPACE: Kind = Kind::cluster_wide(GroupVersion::new("", "v1"), "Namespace", "namespaces");
/// A logical cluster of the server: the control plane of a tenant.
const LOGICAL_CLUSTER: Kind = Kind::cluster_wide(
    GroupVersion::new("interlock.dev", "v1alpha1"),
    "LogicalCluster",
    "logicalclusters",
);
const RBAC: GroupVersion = GroupVersion::new("rbac.authorization.k8s.io", "v1");
const CLUSTER_ROLE: Kind = Kind::cluster_wide(RBAC, "ClusterRole", "clusterroles");
const CLUSTER_ROLE_BINDING: Kind =
    Kind::cluster_wide(RBAC, "ClusterRoleBinding", "clusterrolebindings");

/// The rack, its machines and the tenants.
pub(crate) struct Nodes {
    flaw: Flaw,
    /// Tenants are called as their control planes are.
    tenants: Vec<Ref>,
    /// How many tenants there are to be.
    tenant_count: usize,
    /// The DPUs that each machine is wired through.
    wiring: Vec<Vec<usize>>,
    dpus: Arc<Mutex<Dpus>>,
    /// The programs that run, by instance.
    units: BTreeMap<u64, Unit>,
    /// The attachments that tenants forged: on which plane, and the name.
    forged: BTreeSet<(usize, String)>,
    promises: Promises,
}

impl Nodes {
    /// A rack in which nothing was given to anybody yet.
    pub(crate) fn new(seed: u64, flaw: Flaw, chance: &Arc<Chance>) -> Nodes {
        let dpus = 2 + (seed % 3) as usize;
        let wired = |machine: usize| {
            let first = machine % dpus;
            let second = (machine + 1) % dpus;
            if chance.once_in(3) { vec![first] } else { vec![first, second] }
        };
        let wiring: Vec<Vec<usize>> = (0..MACHINES.len()).map(wired).collect();
        Nodes {
            flaw,
            tenants: Vec::new(),
            tenant_count: 2 + (seed / 3 % 2) as usize,
            dpus: Arc::new(Mutex::new(Dpus::new(dpus, &wiring, flaws::forgets(flaw)))),
            wiring,
            units: BTreeMap::new(),
            forged: BTreeSet::new(),
            promises: Promises::default(),
        }
    }

    fn dpus(&self) -> MutexGuard<'_, Dpus> {
        self.dpus.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All programs that are to run now: those of a DPU without power do not.
    fn wanted(&self) -> Vec<Unit> {
        let tenants = 0..self.tenants.len();
        let mut wanted = vec![Unit::Hub];
        wanted.extend(tenants.clone().map(Unit::Tenant));
        let dpus = self.dpus();
        for dpu in (0..dpus.count()).filter(|dpu| dpus.is_on(*dpu)) {
            wanted.push(Unit::Dpu(dpu));
            wanted.extend(tenants.clone().map(|tenant| Unit::DpuTenant { dpu, tenant }));
        }
        wanted
    }

    /// Which of the programs an instance is.
    fn unit(&self, instance: u64) -> Option<Unit> {
        self.units.get(&instance).copied()
    }
}

/// A DPU by its place.
fn dpu_name(dpu: usize) -> DpuName {
    DpuName::new(RACK, DPUS[dpu])
}

/// The control plane of a tenant.
fn plane(tenant: usize) -> &'static str {
    crate::CLUSTERS[tenant]
}

impl Simulated for Nodes {
    const AT_HUB: &'static [Kind] =
        &[NAMESPACE, TENANT, RACKS, PHYSICAL_NODE, NODE_FENCE, DPU_REPORT];
    const AT_CLUSTER: &'static [Kind] = &[NODE_CLAIM, DPU_ATTACHMENT];
    const DECIDED_BY: (Kind, Kind) = (PHYSICAL_NODE, DPU_ATTACHMENT);
    const IDLE: &'static [&'static str] = &["nodes/heartbeat"];

    fn definitions(&self) -> Result<Vec<Value>, Broken> {
        let all = interlock_api::definitions().into_iter();
        let all = all.chain(interlock_api::node_definitions());
        let all = all.chain(interlock_api::tenant_definitions());
        all.map(serde_json::to_value).collect::<Result<_, _>>().map_err(said)
    }

    async fn furnish(engine: &mut Engine<Self>) -> Result<(), Broken> {
        engine.allow(crate::HUB, &at_hub()).await?;
        let namespace = json!({"metadata": {"name": LEASE_NAMESPACE}});
        engine.create(&NAMESPACE, None, namespace).await?;
        for name in crate::CLUSTERS {
            engine.create(&LOGICAL_CLUSTER, None, json!({"metadata": {"name": name}})).await?;
        }
        for tenant in 0..engine.world.tenant_count {
            engine.register(tenant).await?;
        }
        engine.make_rack().await
    }

    /// Until all machines are in the pool, and each tenant has its network.
    async fn begin(engine: &mut Engine<Self>) -> Result<(), Broken> {
        for _ in 0..5 {
            engine.round(3).await?;
        }
        engine.is_ready_to_begin()?;
        engine.claim(0).await?;
        engine.check().await?;
        for _ in 0..engine.chance.below(4) {
            engine.round(1).await?;
        }
        Ok(())
    }

    fn trouble(&self) -> usize {
        EVENTS
    }

    async fn event(engine: &mut Engine<Self>) -> Result<(), Broken> {
        engine.event().await
    }

    async fn end(engine: &mut Engine<Self>) -> Result<(), Broken> {
        engine.calm_end().await
    }

    fn check_sent(&mut self, _: &[Sent], _: &Truth) -> Result<(), Broken> {
        Ok(())
    }

    fn check(&mut self, truth: &Truth) -> Result<(), Broken> {
        let dpus = self.dpus.lock().unwrap_or_else(PoisonError::into_inner);
        self.promises.check(truth, &dpus)
    }

    /// Several programs serve one plane, so what is missing is looked for in all of them.
    async fn revive(engine: &mut Engine<Self>, _: Option<usize>) -> Result<(), Broken> {
        engine.start_missing().await
    }

    fn lost(&mut self, program: &Actor) {
        self.units.remove(&program.instance);
    }

    /// The DPUs have no clock.
    fn tick(&mut self) {}

    async fn acted(engine: &mut Engine<Self>, instance: u64, _: &[String]) -> Result<(), Broken> {
        engine.moment(instance).await
    }

    async fn before_start(engine: &mut Engine<Self>, instance: u64) -> Result<u64, Broken> {
        engine.stopped_before_opening(instance).await
    }

    fn is_busy(why: &str) -> bool {
        why.ends_with(REFUSED)
    }

    fn counted(&self, counts: Counts) -> Counts {
        Counts { moves: self.promises.opened(), ..counts }
    }
}

impl Engine<Nodes> {
    /// Gives accounts the roles that `interlock up` gives them.
    async fn allow(&self, at: &str, grants: &[Grant]) -> Result<(), Broken> {
        let admin = self.lines.admin("user", at);
        for grant in grants {
            let kinds = [&CLUSTER_ROLE, &CLUSTER_ROLE_BINDING];
            for (kind, object) in kinds.into_iter().zip(grant.written()) {
                create(&api_of(&admin, kind, None), kind, object).await?;
            }
        }
        Ok(())
    }

    /// Makes a tenant, and lets its programs and the agents of all DPUs into its control plane.
    async fn register(&mut self, tenant: usize) -> Result<(), Broken> {
        let name = plane(tenant);
        let spec = json!({"plane": {"logicalCluster": name}});
        let object = json!({"metadata": {"name": name}, "spec": spec});
        let made = self.create(&TENANT, None, object).await?;
        self.world.tenants.push(Ref::new(name, made.metadata.uid.unwrap_or_default()));
        let mut all = vec![on_plane(name, name)];
        let count = self.world.dpus().count();
        all.extend((0..count).map(|dpu| of_dpu_on_plane(&dpu_name(dpu), name, name)));
        for OnPlane { at_hub, on_plane } in all {
            self.allow(crate::HUB, &at_hub).await?;
            self.allow(name, &on_plane).await?;
        }
        Ok(())
    }

    /// The rack, its DPUs and its machines.
    async fn make_rack(&mut self) -> Result<(), Broken> {
        let count = self.world.dpus().count();
        let vtep = |dpu: usize| json!({"name": DPUS[dpu], "vtep": programs::vtep(dpu)});
        let dpus: Vec<Value> = (0..count).map(vtep).collect();
        let rack = json!({"metadata": {"name": RACK}, "spec": {"dpus": dpus}});
        self.create(&RACKS, None, rack).await?;
        for dpu in 0..count {
            self.allow(crate::HUB, &[of_dpu_at_hub(&dpu_name(dpu))]).await?;
        }
        for (machine, wired) in self.world.wiring.iter().enumerate() {
            let wire = |dpu: &usize| {
                let mac = format!("02:00:00:00:0{machine}:0{dpu}");
                json!({"rack": RACK, "dpu": DPUS[*dpu], "port": PORTS[machine], "mac": mac})
            };
            let dpus: Vec<Value> = wired.iter().map(wire).collect();
            let spec = json!({"rack": RACK, "dpus": dpus});
            let node = json!({"metadata": {"name": MACHINES[machine]}, "spec": spec});
            self.create(&PHYSICAL_NODE, None, node).await?;
        }
        Ok(())
    }
}
