//! What a process that serves tenants and DPUs keeps of the hub. The agent of a DPU keeps only what concerns the DPU, so that
//! what it takes does not depend on how large the fleet is.

use interlock_api::nodes::DpuName;
use interlock_kernel::metadata::name_of;
use interlock_kernel::{Index, Place, Selector, Watch};
use interlock_nodes::kinds::{PHYSICAL_NODE, RACK, TENANT};
use interlock_programs::served::{
    NODES_AT_DPU, NODES_SERVED, RACKS_SERVED, Seen, Serves, TENANTS_SERVED, read_all,
};
use interlock_shell::{Cache, Server};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The caches of Tenants, Racks and PhysicalNodes.
pub(super) struct Caches {
    hub: Server,
    tenants: Tenants,
    racks: Arc<Cache>,
    nodes: Arc<Cache>,
}

/// Which Tenants are kept.
enum Tenants {
    All(Arc<Cache>),
    /// Those that have something at the DPU, by name.
    Few(Few),
}

#[derive(Default)]
struct Few {
    followed: BTreeMap<String, Arc<Cache>>,
    /// Those that are not followed any more, until the last who looks at them has ended.
    left: BTreeSet<String>,
}

impl Caches {
    /// Begins to follow what is needed to see what has to run.
    pub(super) fn follow(hub: &Server, serves: &Serves) -> Caches {
        let (tenants, racks, nodes) = match serves {
            Serves::Dpu(here) => {
                let nodes = Selector::labelled(here.label_key());
                (Tenants::Few(Few::default()), named(&here.rack), nodes)
            }
            Serves::Fleet | Serves::Tenants => {
                let all = Watch::all(Place::HUB, &TENANT).by(&TENANTS_SERVED);
                (Tenants::All(hub.follow(&all)), Selector::All, Selector::All)
            }
        };
        let racks = Watch::all(Place::HUB, &RACK).only(racks).by(&RACKS_SERVED);
        let nodes = Watch::all(Place::HUB, &PHYSICAL_NODE).only(nodes);
        let nodes = nodes.by(&NODES_SERVED).by(&NODES_AT_DPU);
        let (racks, nodes) = (hub.follow(&racks), hub.follow(&nodes));
        Caches { hub: hub.clone(), tenants, racks, nodes }
    }

    /// Returns once there is something to go by: an empty cache is not an empty fleet.
    pub(super) async fn filled(&self) {
        if let Tenants::All(tenants) = &self.tenants {
            tenants.filled().await;
        }
        self.racks.filled().await;
        self.nodes.filled().await;
    }

    /// What they show. The Tenants that are served are followed for as long as they are.
    pub(super) fn seen<'a>(&mut self, served: impl Iterator<Item = &'a str>) -> Seen {
        let at_dpus = values(&self.nodes, &NODES_SERVED);
        let mut seen =
            Seen { tenants: Vec::new(), dpus: values(&self.racks, &RACKS_SERVED), at_dpus };
        match &mut self.tenants {
            Tenants::All(tenants) => seen.tenants = values(tenants, &TENANTS_SERVED),
            Tenants::Few(few) => {
                let assigned = seen.at_dpus.iter().map(|it| it.tenant.name.clone());
                few.are(&self.hub, assigned.chain(served.map(str::to_owned)).collect());
                let caches = few.followed.values();
                seen.tenants = caches.flat_map(|it| values(it, &TENANTS_SERVED)).collect();
            }
        }
        seen
    }

    /// The names of the PhysicalNodes that are wired to a DPU.
    pub(super) fn wired_to(&self, here: &DpuName) -> Vec<String> {
        let nodes = self.nodes.objects().find(NODES_AT_DPU.name, &here.to_string());
        nodes.iter().map(|node| name_of(node).to_owned()).collect()
    }
}

impl Few {
    /// Follows these Tenants and no others. One that is new shows nothing until it was listed.
    fn are(&mut self, hub: &Server, names: BTreeSet<String>) {
        let is_left = |name: &&String| !names.contains(*name);
        let gone: Vec<String> = self.followed.keys().filter(is_left).cloned().collect();
        for name in gone {
            self.followed.remove(&name);
            self.left.insert(name);
        }
        self.left.retain(|name| !names.contains(name) && !hub.let_go(&TENANT, &named(name)));
        for name in names {
            let watch = Watch::all(Place::HUB, &TENANT).only(named(&name)).by(&TENANTS_SERVED);
            self.followed.entry(name).or_insert_with(|| hub.follow(&watch));
        }
    }
}

fn named(name: &str) -> Selector {
    Selector::Named(name.into())
}

/// What the objects of a cache are filed under.
fn values<T: DeserializeOwned>(cache: &Cache, index: &Index) -> Vec<T> {
    read_all(cache.objects().values(index.name))
}
