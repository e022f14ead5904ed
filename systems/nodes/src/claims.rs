//! Gives machines to the claims of one tenant, and takes them back. It runs at the hub, once for each tenant, on the hub
//! and on the control plane of that tenant. The subject of a step is a NodeClaim, or the network of the tenant.
//!
//! The status of a PhysicalNode decides whose a machine is; what a claim says is a choice, or a report. A choice is on
//! the claim before the node is bound, so that no node is bound that its claim does not know of.

mod act;
pub mod decide;
pub mod facts;
mod fit;
pub mod network;
mod observe;
#[cfg(test)]
mod tests;
mod words;

use crate::filed::{
    CLAIMS_BY_NODE, CLAIMS_SHORT, CLAIMS_WAITING, NODES_BY_CLAIM, NODES_BY_TENANT, NODES_HELD_BY,
    NODES_IN_POOL, REPORTS_BY_NODE, YES, claim_named_by, is_in_pool,
};
use crate::kinds::{DPU_REPORT, LEASE, NODE_CLAIM, PHYSICAL_NODE, RACK, TENANT, TENANT_PLANE};
use interlock_api::nodes::Ref;
use interlock_kernel::metadata::name_of;
use interlock_kernel::{
    LiveReads, Name, Nothing, Object, Observed, Place, Right, Room, Selector, Step, Subject, Verb,
    View, Watch, Watcher,
};
use kube_core::DynamicObject;
use serde::{Deserialize, Serialize};

/// The subject for the network of the tenant: no object has a slash in its name.
pub const NETWORK: &str = "/network";

/// The controller of the claims of one tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// The tenant.
    tenant: Ref,
}

impl Claims {
    /// For the claims of this tenant.
    pub fn new(tenant: Ref) -> Claims {
        Claims { tenant }
    }
}

/// Whether a tenant says the same to its claims: which DPUs hold its nodes is not their business.
fn is_same_to_claims(before: &DynamicObject, after: &DynamicObject) -> bool {
    before.metadata.uid == after.metadata.uid
        && before.metadata.deletion_timestamp == after.metadata.deletion_timestamp
        && before.metadata.finalizers == after.metadata.finalizers
        && before.data["spec"] == after.data["spec"]
        && before.data["status"]["vni"] == after.data["status"]["vni"]
}

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub enum Facts {
    /// About a claim.
    Claim(Box<facts::Facts>),
    /// About the network of the tenant.
    Network(network::Facts),
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Decision {
    /// About a claim.
    Claim(decide::Decision),
    /// About the network of the tenant.
    Network(network::Decision),
}

/// The objects that a decision is about.
#[derive(Debug)]
pub enum Scene {
    /// About a claim.
    Claim(Box<observe::Scene>),
    /// About the network of the tenant.
    Network(Box<network::Scene>),
}

impl Watcher for Claims {
    fn name(&self) -> &'static str {
        "nodes/claims"
    }

    fn watches(&self) -> Vec<Watch> {
        let nodes = Watch::all(Place::HUB, &PHYSICAL_NODE).by(&NODES_BY_CLAIM).by(&NODES_BY_TENANT);
        vec![
            Watch::all(TENANT_PLANE, &NODE_CLAIM)
                .by(&CLAIMS_BY_NODE)
                .by(&CLAIMS_WAITING)
                .by(&CLAIMS_SHORT),
            nodes.by(&NODES_HELD_BY).by(&NODES_IN_POOL),
            Watch::all(Place::HUB, &TENANT)
                .only(Selector::Named(self.tenant.name.as_str().into()))
                .unless(is_same_to_claims),
            Watch::all(Place::HUB, &RACK),
            // Read where a machine is about to be given; what a report changes, the machine says next.
            Watch::all(Place::HUB, &DPU_REPORT).by(&REPORTS_BY_NODE),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        let at_the_hub = Right::to_each(
            Place::HUB,
            &[
                (&PHYSICAL_NODE, &[Verb::PatchStatus]),
                (&TENANT, &[Verb::Patch, Verb::PatchStatus]),
                (&LEASE, &[Verb::Get, Verb::Create]),
            ],
        );
        let of_the_tenant = Right::to(TENANT_PLANE, &NODE_CLAIM, &[Verb::Patch, Verb::PatchStatus]);
        [at_the_hub, of_the_tenant].concat()
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        let names = |claims: Vec<Object>| -> Vec<Subject> {
            claims.iter().map(|claim| Subject::from(name_of(claim))).collect()
        };
        let network = || Subject::from(NETWORK);
        if watch.kind == NODE_CLAIM {
            return vec![Subject::from(name_of(object))];
        }
        if watch.kind == TENANT {
            let mut all = names(view.list(TENANT_PLANE, &NODE_CLAIM, None));
            all.push(network());
            return all;
        }
        if watch.kind == RACK {
            return vec![network()];
        }
        if watch.kind == DPU_REPORT {
            return Vec::new();
        }
        let claim = claim_named_by(object, &self.tenant.uid).map(Subject::from);
        let mut concerned = names(view.find(TENANT_PLANE, &CLAIMS_BY_NODE, name_of(object)));
        concerned.extend(claim.iter().map(|_| network()));
        concerned.extend(claim);
        if is_in_pool(object) {
            // A node that left the pool, shown here as it was, concerns only those who say what is in the pool: all who
            // wait, of all tenants, would be woken for each node that one of them gets.
            let now = view.get(Place::HUB, &PHYSICAL_NODE, &Name::of(object));
            let has_left = now.is_some_and(|now| !is_in_pool(&now));
            let who = if has_left { &CLAIMS_SHORT } else { &CLAIMS_WAITING };
            concerned.extend(names(view.find(TENANT_PLANE, who, YES)));
        }
        concerned.sort_unstable();
        concerned.dedup();
        concerned
    }
}

impl Room for Claims {
    type Outside = Nothing;
    type Facts = Facts;
    type Decision = Decision;
    type Scene = Scene;

    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Nothing>,
    ) -> Observed<Facts, Scene> {
        if &**subject == NETWORK {
            return network::observe(&self.tenant, view, live_reads);
        }
        let (facts, scene) = observe::observe(&self.tenant, subject, view, live_reads);
        Observed::Seen {
            facts: Facts::Claim(Box::new(facts)),
            scene: Scene::Claim(Box::new(scene)),
        }
    }

    fn decide(facts: &Facts) -> Decision {
        match facts {
            Facts::Claim(facts) => Decision::Claim(decide::decide(facts)),
            Facts::Network(facts) => Decision::Network(network::decide(facts)),
        }
    }

    fn act(&self, scene: &Scene, decision: Decision) -> Step<Nothing> {
        match (scene, decision) {
            (Scene::Claim(scene), Decision::Claim(decision)) => {
                act::act(&self.tenant, scene, decision)
            }
            (Scene::Network(scene), Decision::Network(decision)) => network::act(scene, decision),
            (Scene::Claim(_), Decision::Network(_)) | (Scene::Network(_), Decision::Claim(_)) => {
                Step::rest("the decision is about another object")
            }
        }
    }
}
