//! Asks the DPUs of a tenant's machines to open their ports. It runs once for each tenant, on the control plane of
//! that tenant alone. The subject of a step is a NodeClaim.
//!
//! A DpuAttachment opens nothing by itself: a DPU compares it with the hub. So this controller may be late, twice, or
//! lied to, and decides nothing about who has a machine.

mod act;
pub mod decide;
mod observe;
#[cfg(test)]
mod tests;

use crate::kinds::{DPU_ATTACHMENT, NODE_CLAIM, TENANT_PLANE};
use interlock_kernel::metadata::name_of;
use interlock_kernel::{
    Index, LiveReads, Nothing, Object, Observed, Right, Room, Step, Subject, Verb, View, Watch,
    Watcher,
};

/// DpuAttachments by the name of their claim.
pub const ATTACHMENTS_BY_CLAIM: Index = Index {
    name: "by-claim",
    kind: DPU_ATTACHMENT,
    values: |attachment| {
        let claim = attachment.data["spec"]["claim"]["name"].as_str();
        claim.map(str::to_owned).into_iter().collect()
    },
};

/// The controller of the attachments of one tenant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requests;

impl Watcher for Requests {
    fn name(&self) -> &'static str {
        "nodes/tenant"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::all(TENANT_PLANE, &NODE_CLAIM),
            Watch::all(TENANT_PLANE, &DPU_ATTACHMENT).by(&ATTACHMENTS_BY_CLAIM),
        ]
    }

    fn rights(&self) -> Vec<Right> {
        Right::to(TENANT_PLANE, &DPU_ATTACHMENT, &[Verb::Create, Verb::Patch, Verb::Delete])
    }

    fn subjects(&self, watch: &Watch, object: &Object, _: &dyn View) -> Vec<Subject> {
        if watch.kind == NODE_CLAIM {
            return vec![Subject::from(name_of(object))];
        }
        (ATTACHMENTS_BY_CLAIM.values)(object).into_iter().map(Subject::from).collect()
    }
}

impl Room for Requests {
    type Outside = Nothing;
    type Facts = decide::Facts;
    type Decision = decide::Decision;
    type Scene = observe::Scene;

    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Nothing>,
    ) -> Observed<decide::Facts, observe::Scene> {
        let (facts, scene) = observe::observe(subject, view, live_reads);
        Observed::Seen { facts, scene }
    }

    fn decide(facts: &decide::Facts) -> decide::Decision {
        decide::decide(facts)
    }

    fn act(&self, scene: &observe::Scene, decision: decide::Decision) -> Step<Nothing> {
        act::act(scene, decision)
    }
}
