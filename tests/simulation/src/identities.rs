//! The world of identities: tenants who declare identities in two namespaces, one of which moves between clusters and
//! is released by force, and a cloud account whose calls are late, lost, throttled or shown late.
//!
//! Real: the controllers of identities, on the API server. Made up: the account, which is the one that `interlock check
//! identities` explores, and placement, whose part people play. The promises are those of the checker's worlds.

mod account;
mod calm;
mod people;
mod programs;
mod promises;

use crate::engine::actor::Actor;
use crate::engine::chance::{Chance, SimulatedClock};
use crate::engine::line::Sent;
use crate::engine::truth::Truth;
use crate::engine::{Broken, Engine, Simulated, api_of, create, said};
use crate::{Counts, Flaw};
use account::{Account, BOUNDARY, PROVIDER};
use interlock_api::placement::Ref;
use interlock_identities::kinds::{
    ACCOUNT, CLUSTER, GRANT, NAMESPACE, POLICY, ROLE, SERVICE_ACCOUNT,
};
use interlock_identities::settings::Settings;
use interlock_kernel::{GroupVersion, Kind};
use interlock_programs::roles;
use promises::Promises;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many events there are before the faults stop.
const EVENTS: usize = 700;
/// How many programs there are at once.
const PROGRAMS: usize = 2;
/// The fleet: part of every name in the cloud.
const FLEET: &str = "fleet";
/// The namespace that is placed.
const SHOP: &str = "shop";
/// The namespace that is not.
const TOOLS: &str = "tools";
/// Another one, whose name and that of an identity in it are put together as those of the last one are.
const MORE: &str = "tools-s3";
/// What the tenants declare. Something foreign has the name that the policy of the last one would have.
const DECLARED: [(&str, &str); 5] =
    [(SHOP, "s3"), (SHOP, "queue"), (TOOLS, "s3-mail"), (MORE, "mail"), (TOOLS, TAKEN)];
/// The name of the identity whose policy would have the name of a foreign one.
const TAKEN: &str = "taken";

const RBAC: GroupVersion = GroupVersion::new("rbac.authorization.k8s.io", "v1");
const CLUSTER_ROLE: Kind = Kind::cluster_wide(RBAC, "ClusterRole", "clusterroles");
const CLUSTER_ROLE_BINDING: Kind =
    Kind::cluster_wide(RBAC, "ClusterRoleBinding", "clusterrolebindings");

/// The tenants, and the account.
pub(crate) struct Tenants {
    flaw: Flaw,
    account: Arc<Mutex<Account>>,
    settings: Arc<Settings>,
    clock: Arc<SimulatedClock>,
    /// The place of each program among the clients of the account, by instance.
    places: BTreeMap<u64, usize>,
    clusters: Vec<Ref>,
    promises: Promises,
}

impl Tenants {
    /// Tenants who have declared nothing yet.
    pub(crate) fn new(
        seed: u64,
        flaw: Flaw,
        clock: &Arc<SimulatedClock>,
        chance: &Arc<Chance>,
    ) -> Tenants {
        let settings = Settings {
            provider_arn: Some(PROVIDER.to_owned()),
            boundary_arn: Some(BOUNDARY.to_owned()),
            manages_providers: seed.is_multiple_of(2),
            ..Settings::of_fleet(FLEET)
        };
        let account = Account::new(chance, flaw, &settings);
        Tenants {
            flaw,
            account: Arc::new(Mutex::new(account)),
            settings: Arc::new(settings),
            clock: Arc::clone(clock),
            places: BTreeMap::new(),
            clusters: Vec::new(),
            promises: Promises::default(),
        }
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Simulated for Tenants {
    const AT_HUB: &'static [Kind] =
        &[NAMESPACE, GRANT, CLUSTER, ACCOUNT, POLICY, ROLE, SERVICE_ACCOUNT];
    const AT_CLUSTER: &'static [Kind] = &[];
    const DECIDED_BY: (Kind, Kind) = (GRANT, ROLE);
    const IDLE: &'static [&'static str] = &["identities/providers", "identities/entries"];

    fn definitions(&self) -> Result<Vec<Value>, Broken> {
        let all = interlock_api::definitions().into_iter();
        let all = all.chain(interlock_api::identity_definitions());
        all.map(serde_json::to_value).collect::<Result<_, _>>().map_err(said)
    }

    async fn furnish(engine: &mut Engine<Self>) -> Result<(), Broken> {
        let admin = engine.lines.admin("user", crate::HUB);
        for grant in roles::at_hub().into_iter().chain(roles::of_identities_at_hub()) {
            let kinds = [&CLUSTER_ROLE, &CLUSTER_ROLE_BINDING];
            for (kind, object) in kinds.into_iter().zip(grant.written()) {
                create(&api_of(&admin, kind, None), kind, object).await?;
            }
        }
        for name in crate::CLUSTERS {
            let spec = json!({"connection": {"logicalCluster": name}});
            let cluster = json!({"metadata": {"name": name}, "spec": spec});
            let made = engine.create(&CLUSTER, None, cluster).await?;
            let uid = made.metadata.uid.unwrap_or_default();
            engine.world.clusters.push(Ref::new(name, uid));
            engine.set_status(&CLUSTER, name, json!({"issuer": people::issuer(name)})).await?;
        }
        engine.make_namespaces().await
    }

    async fn begin(engine: &mut Engine<Self>) -> Result<(), Broken> {
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
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        account.try_tokens();
        self.promises.check(truth, &account, &self.clusters)
    }

    /// Clusters have no program in this world.
    async fn revive(engine: &mut Engine<Self>, cluster: Option<usize>) -> Result<(), Broken> {
        if cluster.is_some() { Ok(()) } else { engine.start_program().await }
    }

    fn lost(&mut self, program: &Actor) {
        if let Some(place) = self.places.remove(&program.instance) {
            self.account().restart(place);
        }
    }

    fn tick(&mut self) {
        let now = self.clock.seconds();
        self.account().time_passes_until(now);
    }

    fn counted(&self, counts: Counts) -> Counts {
        let account = self.account();
        Counts {
            moves: self.promises.moves,
            cloud_calls: account.calls,
            late_calls: account.late,
            ..counts
        }
    }
}
