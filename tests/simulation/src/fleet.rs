//! The world of placement and volumes: three clusters, each a machine with processes, locks and a disk.
//!
//! People place namespaces and change their desired clusters; the promises are that no two clusters write, that
//! no data is lost, and that every namespace is on its desired cluster in the end.

mod calm;
mod data;
mod disk;
mod events;
mod flaws;
mod granted;
mod machine;
mod moments;
mod mover;
mod programs;
mod promises;
mod user;

pub(crate) use flaws::Deceived;
pub use flaws::Flaw;

use crate::Counts;
use crate::engine::actor::Actor;
use crate::engine::chance::{Chance, SimulatedClock};
use crate::engine::line::Sent;
use crate::engine::truth::Truth;
use crate::engine::{Broken, Engine, Simulated, api_of, create, said};
use data::DataPromises;
use disk::{BUSY, Disks, Whose};
use interlock_api::names::{LOCAL_CLASS, LOCAL_DRIVER, RUNTIME_CLASS};
use interlock_api::placement::Ref;
use interlock_kernel::{GroupVersion, Kind};
use interlock_placement::kinds::{
    CLAIM, FORCE_RELEASE, GRANT, NAMESPACE, POD, STORAGE_CLASS, WORKLOAD_CLUSTER,
};
use interlock_programs::roles::{self, Grant};
use interlock_volumes::kinds::SNAPSHOT_CLASS;
use machine::{Machine, OnMachine, Records};
use mover::OnDisk;
use programs::Wings;
use promises::Promises;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// How many events there are before the faults stop.
const EVENTS: usize = 900;
/// The same where data is carried, which takes longer.
const EVENTS_WITH_DATA: usize = 1100;
/// A logical cluster of the server.
const LOGICAL_CLUSTER: Kind = Kind::cluster_wide(
    GroupVersion::new("interlock.dev", "v1alpha1"),
    "LogicalCluster",
    "logicalclusters",
);
const RBAC: GroupVersion = GroupVersion::new("rbac.authorization.k8s.io", "v1");
const CLUSTER_ROLE: Kind = Kind::cluster_wide(RBAC, "ClusterRole", "clusterroles");
const CLUSTER_ROLE_BINDING: Kind =
    Kind::cluster_wide(RBAC, "ClusterRoleBinding", "clusterrolebindings");
/// The class that pods which run as processes name.
const CLASS_OF_PODS: Kind =
    Kind::cluster_wide(GroupVersion::new("node.k8s.io", "v1"), "RuntimeClass", "runtimeclasses");

/// The fleet.
pub(crate) struct Fleet {
    pub(crate) flaw: Flaw,
    /// Whether this is a life in which claims are used, and moves carry their data.
    pub(crate) carries_data: bool,
    /// Whether this is a life in which programs lose one of their two servers again and again.
    pub(crate) is_one_sided: bool,
    pub(crate) clusters: Vec<Ref>,
    pub(crate) machines: Vec<Arc<Machine>>,
    pub(crate) records: Arc<Mutex<Records>>,
    pub(crate) disks: Arc<Mutex<Disks>>,
    pub(crate) promises: Promises,
    pub(crate) data_promises: DataPromises,
}

impl Fleet {
    /// A fleet without clusters. Data is carried in three lives of seven; in one of five, lines to one server come and go.
    pub(crate) fn new(
        seed: u64,
        flaw: Flaw,
        clock: &Arc<SimulatedClock>,
        chance: &Arc<Chance>,
    ) -> Fleet {
        Fleet {
            flaw,
            carries_data: matches!(seed % 7, 1 | 4 | 6),
            is_one_sided: seed.is_multiple_of(5),
            clusters: Vec::new(),
            machines: Vec::new(),
            records: Arc::default(),
            disks: Arc::new(Mutex::new(Disks::new(clock, chance, flaw))),
            promises: Promises::default(),
            data_promises: DataPromises::default(),
        }
    }

    /// The disks of all machines.
    pub(crate) fn disks(&self) -> MutexGuard<'_, Disks> {
        self.disks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Simulated for Fleet {
    const AT_HUB: &'static [Kind] =
        &[GRANT, NAMESPACE, POD, CLAIM, FORCE_RELEASE, WORKLOAD_CLUSTER];
    const AT_CLUSTER: &'static [Kind] = &[NAMESPACE, POD, CLAIM];
    const DECIDED_BY: (Kind, Kind) = (GRANT, NAMESPACE);
    const IDLE: &'static [&'static str] = &["placement/heartbeat", "placement/clusters"];

    fn definitions(&self) -> Result<Vec<Value>, Broken> {
        let own = if self.carries_data { usize::MAX } else { interlock_api::definitions().len() };
        Ok(definitions()?.iter().take(own).cloned().collect())
    }

    async fn furnish(engine: &mut Engine<Self>) -> Result<(), Broken> {
        engine.allow(crate::HUB, &roles::at_hub()).await?;
        engine.give_runtime_class(crate::HUB).await?;
        for name in crate::CLUSTERS {
            engine.register(name).await?;
        }
        Ok(())
    }

    async fn begin(engine: &mut Engine<Self>) -> Result<(), Broken> {
        engine.calm_beginning().await
    }

    fn trouble(&self) -> usize {
        if self.carries_data { EVENTS_WITH_DATA } else { EVENTS }
    }

    async fn event(engine: &mut Engine<Self>) -> Result<(), Broken> {
        engine.event().await
    }

    async fn end(engine: &mut Engine<Self>) -> Result<(), Broken> {
        engine.calm_end().await
    }

    fn check_sent(&mut self, sent: &[Sent], truth: &Truth) -> Result<(), Broken> {
        self.promises.check_deletions(sent, truth, &self.clusters)
    }

    fn check(&mut self, truth: &Truth) -> Result<(), Broken> {
        self.promises.check(truth, &self.machines, &self.clusters)?;
        if self.carries_data { self.check_data(truth) } else { Ok(()) }
    }

    async fn revive(engine: &mut Engine<Self>, cluster: Option<usize>) -> Result<(), Broken> {
        engine.revive(cluster).await
    }

    fn lost(&mut self, program: &Actor) {
        let instance = program.instance;
        if let Some(place) = program.cluster {
            self.machines[place].lost_runtime(instance);
            self.disks().lost_program(Whose { place, instance });
        }
    }

    fn tick(&mut self) {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let mut disks = self.disks();
        for (place, machine) in self.machines.iter().enumerate() {
            machine.tick(&mut records, place, &mut disks);
        }
        disks.tick();
    }

    async fn after_background(engine: &mut Engine<Self>) -> Result<(), Broken> {
        if engine.world.carries_data { engine.collect_garbage().await } else { Ok(()) }
    }

    async fn acted(
        engine: &mut Engine<Self>,
        instance: u64,
        actions: &[String],
    ) -> Result<(), Broken> {
        engine.moment(instance, actions).await
    }

    async fn before_start(engine: &mut Engine<Self>, instance: u64) -> Result<u64, Broken> {
        engine.stopped_before_start(instance).await
    }

    fn is_one_sided(&self) -> bool {
        self.is_one_sided
    }

    fn is_busy(why: &str) -> bool {
        why.ends_with(BUSY)
    }

    fn counted(&self, counts: Counts) -> Counts {
        let (disks, moves) = (self.disks(), self.promises.moves);
        Counts { moves, copies: disks.copied, failures: disks.failures, ..counts }
    }
}

impl Engine<Fleet> {
    /// Whether this is a life in which claims are used, and moves carry their data.
    pub(crate) fn carries_data(&self) -> bool {
        self.world.carries_data
    }

    async fn register(&mut self, name: &str) -> Result<(), Broken> {
        self.create(&LOGICAL_CLUSTER, None, json!({"metadata": {"name": name}})).await?;
        let connection = json!({"connection": {"logicalCluster": name}});
        let cluster = json!({"metadata": {"name": name}, "spec": connection});
        let made = self.create(&WORKLOAD_CLUSTER, None, cluster).await?;
        let uid = made.metadata.uid.unwrap_or_default();
        self.world.disks().add(&uid);
        self.world.clusters.push(Ref::new(name, uid));
        let machine = Machine::new(name, &self.clock, &self.chance, self.world.flaw);
        self.world.machines.push(machine);
        let grants = roles::of_cluster(name, name, &[]);
        self.allow(crate::HUB, &grants.at_hub).await?;
        self.allow(name, &grants.on_cluster).await?;
        self.give_runtime_class(name).await?;
        if self.carries_data() { self.give_classes(name).await } else { Ok(()) }
    }

    /// Gives accounts the roles that `interlock up` and `interlock manifests` give them.
    async fn allow(&self, at: &str, grants: &[Grant]) -> Result<(), Broken> {
        let admin = self.lines.admin("user", at);
        for grant in grants {
            for (kind, object) in
                [&CLUSTER_ROLE, &CLUSTER_ROLE_BINDING].into_iter().zip(grant.written())
            {
                create(&api_of(&admin, kind, None), kind, object).await?;
            }
        }
        Ok(())
    }

    /// A pod that names a runtime class which is not there is refused, at the hub and on the cluster.
    async fn give_runtime_class(&self, at: &str) -> Result<(), Broken> {
        let admin = self.lines.admin("user", at);
        let class = json!({"metadata": {"name": RUNTIME_CLASS}, "handler": RUNTIME_CLASS});
        create(&api_of(&admin, &CLASS_OF_PODS, None), &CLASS_OF_PODS, class).await?;
        Ok(())
    }

    /// A cluster gets the classes of volumes and snapshots, and the namespace of places at a mover.
    async fn give_classes(&self, cluster: &str) -> Result<(), Broken> {
        let user = self.lines.admin("user", cluster);
        let is_default = json!({"storageclass.kubernetes.io/is-default-class": "true"});
        let objects = [
            (&NAMESPACE, json!({"metadata": {"name": "interlock-system"}})),
            (
                &STORAGE_CLASS,
                json!({
                    "metadata": {"name": LOCAL_CLASS, "annotations": is_default},
                    "provisioner": LOCAL_DRIVER, "reclaimPolicy": "Delete",
                    "volumeBindingMode": "Immediate",
                }),
            ),
            (
                &SNAPSHOT_CLASS,
                json!({
                    "metadata": {"name": LOCAL_CLASS}, "driver": LOCAL_DRIVER,
                    "deletionPolicy": "Delete",
                }),
            ),
        ];
        for (kind, object) in objects {
            create(&api_of(&user, kind, None), kind, object).await?;
        }
        Ok(())
    }

    /// Starts the program of the hub, or of a cluster. Nobody starts anything for a cluster that the
    /// hub has let go.
    pub(crate) async fn revive(&mut self, cluster: Option<usize>) -> Result<(), Broken> {
        let is_there = |place: usize| {
            let name = self.world.clusters[place].name.as_str();
            self.truth.get(crate::HUB, &WORKLOAD_CLUSTER, None, name).is_some()
        };
        if !cluster.is_none_or(is_there) {
            return Ok(());
        }
        self.numbered += 1;
        let clock = Arc::clone(&self.clock);
        let clock: interlock_shell::Clock = Arc::new(move || clock.now());
        let wings = Wings { lines: &self.lines, clock, flaw: self.world.flaw };
        let mut actor = match cluster {
            None => programs::hub(wings, self.numbered),
            Some(place) => {
                let whose = Whose { place, instance: self.numbered };
                let disk = OnDisk {
                    disks: Arc::clone(&self.world.disks),
                    whose,
                    gate: Arc::clone(&self.lines.gate),
                };
                let driver = OnMachine {
                    machine: Arc::clone(&self.world.machines[place]),
                    instance: self.numbered,
                    gate: Arc::clone(&self.lines.gate),
                    records: Arc::clone(&self.world.records),
                    disk: self.carries_data().then_some(disk),
                };
                let of = &self.world.clusters[place];
                let is_second = self.actors.iter().any(|actor| actor.cluster == Some(place));
                self.counts.twins += u64::from(is_second);
                let name = if is_second { format!("{}-2", of.name) } else { of.name.clone() };
                programs::agent(wings, &name, of, &driver)
            }
        };
        actor.cluster = cluster;
        self.begins(actor).await
    }
}

/// The definitions of our own kinds, and of those by which data is moved: the same in every world.
fn definitions() -> Result<&'static [Value], Broken> {
    static DEFINITIONS: OnceLock<Result<Vec<Value>, Broken>> = OnceLock::new();
    let made = DEFINITIONS.get_or_init(|| {
        let definitions = interlock_api::definitions().into_iter();
        let definitions = definitions.chain(interlock_api::volume_definitions());
        definitions.map(serde_json::to_value).collect::<Result<_, _>>().map_err(said)
    });
    made.as_deref().map_err(Broken::clone)
}
