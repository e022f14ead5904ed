//! The world of rollouts: people ask for versions of what runs on three clusters, cancel, ask again, and delete records;
//! some versions never become healthy; somebody else edits and deletes objects on the clusters.
//!
//! Real: the controllers of rollouts at the hub, the applier of each cluster, and the fence, on the API server. Made up:
//! the controllers of Deployments, which say what is healthy. The promises are those of the checker's worlds
//! (`systems/rollouts/src/world`, `systems/rollouts/src/applier/world.rs`).

mod bundles;
mod calm;
mod decided;
mod flaws;
mod moments;
mod people;
mod programs;
mod promises;

use crate::engine::actor::Actor;
use crate::engine::line::Sent;
use crate::engine::truth::Truth;
use crate::engine::{Broken, Engine, Simulated, api_of, create, said};
use crate::{Counts, Flaw};
use interlock_api::placement::Ref;
use interlock_api::rollouts::SYSTEM_NAMESPACE;
use interlock_kernel::{GroupVersion, Kind};
use interlock_programs::roles::{self, Grant};
use interlock_programs::{Account, Applier};
use interlock_rollouts::fence;
use interlock_rollouts::kinds::{
    CLUSTER_ROLLOUT, CLUSTER_UPDATE, CONFIG_MAP, FLEET_UPDATE, NAMESPACE, ROLLOUT_REPORT,
    WORKLOAD_CLUSTER,
};
use kube::api::{Patch, PatchParams};
use promises::Promises;
use serde_json::{Value, json};

/// How many events there are before the faults stop.
const EVENTS: usize = 800;
/// Where people ask, and where the objects of every version are.
const SHOP: &str = "shop";

const LOGICAL_CLUSTER: Kind = Kind::cluster_wide(
    GroupVersion::new("interlock.dev", "v1alpha1"),
    "LogicalCluster",
    "logicalclusters",
);
const RBAC: GroupVersion = GroupVersion::new("rbac.authorization.k8s.io", "v1");
const CLUSTER_ROLE: Kind = Kind::cluster_wide(RBAC, "ClusterRole", "clusterroles");
const CLUSTER_ROLE_BINDING: Kind =
    Kind::cluster_wide(RBAC, "ClusterRoleBinding", "clusterrolebindings");
const DEPLOYMENT: Kind =
    Kind::namespaced(GroupVersion::new("apps", "v1"), "Deployment", "deployments");

/// Three clusters, and the people who ask for updates of them.
pub(crate) struct Updates {
    flaw: Flaw,
    clusters: Vec<Ref>,
    /// How many requests were sent: a part of their names.
    sent: u64,
    promises: Promises,
}

impl Updates {
    /// No clusters yet.
    pub(crate) fn new(flaw: Flaw) -> Updates {
        Updates { flaw, clusters: Vec::new(), sent: 0, promises: Promises::new() }
    }
}

impl Simulated for Updates {
    const AT_HUB: &'static [Kind] =
        &[WORKLOAD_CLUSTER, CLUSTER_UPDATE, CLUSTER_ROLLOUT, ROLLOUT_REPORT, FLEET_UPDATE];
    const AT_CLUSTER: &'static [Kind] = &[CONFIG_MAP, DEPLOYMENT];
    const DECIDED_BY: (Kind, Kind) = (CLUSTER_ROLLOUT, CONFIG_MAP);
    const IDLE: &'static [&'static str] = &["rollouts/fleet"];

    fn definitions(&self) -> Result<Vec<Value>, Broken> {
        let all = interlock_api::definitions().into_iter();
        all.map(serde_json::to_value).collect::<Result<_, _>>().map_err(said)
    }

    async fn furnish(engine: &mut Engine<Self>) -> Result<(), Broken> {
        engine.allow(crate::HUB, &roles::of_rollouts_at_hub()).await?;
        for name in crate::CLUSTERS {
            engine.register(name).await?;
        }
        engine.create(&NAMESPACE, None, json!({"metadata": {"name": SHOP}})).await.map(|_| ())
    }

    async fn begin(engine: &mut Engine<Self>) -> Result<(), Broken> {
        engine.calm_beginning().await
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
        self.promises.check(truth, &self.clusters)
    }

    async fn revive(engine: &mut Engine<Self>, cluster: Option<usize>) -> Result<(), Broken> {
        engine.start_program(cluster).await
    }

    fn lost(&mut self, _: &Actor) {}

    fn tick(&mut self) {}

    async fn acted(
        engine: &mut Engine<Self>,
        instance: u64,
        actions: &[String],
    ) -> Result<(), Broken> {
        engine.moment(instance, actions).await
    }

    /// The policy of the fence refuses who is late, and the server who would take over fields of others: that is what
    /// they are for.
    fn is_busy(why: &str) -> bool {
        let words = ["Fenced:", "FenceFalls:", "NotOurs:", "conflict"];
        words.iter().any(|word| why.contains(word))
    }

    fn counted(&self, counts: Counts) -> Counts {
        let Promises { updates, rollbacks, .. } = self.promises;
        Counts { updates, rollbacks, ..counts }
    }
}

impl Engine<Updates> {
    /// A cluster, with the roles and the fence that `interlock up` brings, and the condition that its agent sends heartbeats.
    async fn register(&mut self, name: &str) -> Result<(), Broken> {
        self.create(&LOGICAL_CLUSTER, None, json!({"metadata": {"name": name}})).await?;
        let spec = json!({"connection": {"logicalCluster": name}});
        let cluster = json!({"metadata": {"name": name}, "spec": spec});
        let made = self.create(&WORKLOAD_CLUSTER, None, cluster).await?;
        self.world.clusters.push(Ref::new(name, made.metadata.uid.unwrap_or_default()));
        let holds = |kind: &str| {
            json!({"type": kind, "status": "True", "reason": "Heard", "message": "",
                "lastTransitionTime": "2027-01-15T08:00:00Z"})
        };
        let conditions = json!([holds("Ready"), holds("Reachable")]);
        let change = Patch::Merge(json!({"status": {"conditions": conditions}}));
        let clusters = self.api(&WORKLOAD_CLUSTER, None);
        clusters.patch_status(name, &PatchParams::default(), &change).await.map_err(said)?;
        let grants = roles::of_cluster(name, name, &[]);
        self.allow(crate::HUB, &grants.at_hub).await?;
        self.allow(name, &grants.on_cluster).await?;
        self.fence(name).await
    }

    /// Gives accounts the roles that `interlock up` and `interlock manifests` give them.
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

    async fn fence(&self, cluster: &str) -> Result<(), Broken> {
        let admin = self.lines.admin("user", cluster);
        let user = Account::Applier.user(Some(cluster));
        let objects = [
            (&NAMESPACE, None, json!({"metadata": {"name": SHOP}})),
            (&NAMESPACE, None, fence::namespace()),
            (&CONFIG_MAP, Some(SYSTEM_NAMESPACE), fence::config_map()),
            (&fence::POLICY, None, fence::policy(&user)),
            (&fence::BINDING, None, fence::binding()),
        ];
        for (kind, namespace, object) in objects {
            create(&api_of(&admin, kind, namespace), kind, object).await?;
        }
        Ok(())
    }

    /// The applier of a cluster, as its program has it.
    fn applier(&self, place: usize) -> Applier {
        Applier::of(self.world.clusters[place].clone())
    }

    /// The name of the record of a cluster.
    fn record(&self, place: usize) -> String {
        self.applier(place).serves.record()
    }
}
