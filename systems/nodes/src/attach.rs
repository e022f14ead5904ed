//! Opens the ports of one DPU for one tenant. The subject of a step is a DpuAttachment, or the network of the tenant.
//!
//! A DpuAttachment is in the control plane of the tenant, and proves nothing. Whose a machine is, and which port and
//! network it has, the hub says; an attachment that the hub does not bear out is refused, in both places.

mod act;
pub mod agree;
pub mod decide;
mod observe;
#[cfg(test)]
mod tests;

use crate::kinds::{DPU_ATTACHMENT, DPU_REPORT, PHYSICAL_NODE, TENANT, TENANT_PLANE};
use crate::outside::Dpu;
use agree::Serves;
use interlock_api::nodes::condition::{PROGRAMMED, SUPERSEDED};
use interlock_api::nodes::{
    DpuAttachmentSpec, DpuAttachmentStatus, DpuName, DpuReportStatus, LABEL_DPU, Ref,
};
use interlock_kernel::conditions::{find, is_true};
use interlock_kernel::metadata::{is_deleting, label, name_of};
use interlock_kernel::{
    Index, LiveReads, Object, Observed, Place, Right, Room, Selector, Step, Subject, Verb, View,
    Watch, Watcher, read_part,
};
use std::net::IpAddr;

/// The subject for the network of the tenant: no object has a slash in its name.
pub const NETWORK: &str = "/network";

/// DpuAttachments by the name of their node.
pub const ATTACHMENTS_BY_NODE: Index = Index {
    name: "by-node",
    kind: DPU_ATTACHMENT,
    values: |attachment| {
        let node = attachment.data["spec"]["node"]["name"].as_str();
        node.map(str::to_owned).into_iter().collect()
    },
};

/// The controller of the attachments of one tenant at one DPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachments {
    serves: Serves,
    vtep: IpAddr,
}

impl Attachments {
    /// For a DPU, and the tenant whose control plane it reads.
    pub fn new(here: DpuName, vtep: IpAddr, tenant: Ref) -> Attachments {
        Attachments { serves: Serves { here, tenant }, vtep }
    }

    /// Whether an attachment is labelled for this DPU.
    fn is_here(&self, attachment: &Object) -> bool {
        label(attachment, LABEL_DPU) == Some(&self.serves.here.to_string())
    }

    /// The attachments that wait for something of the DPU: what a report says is news to them alone.
    fn waiting(&self, report: &Object, view: &dyn View) -> Vec<Subject> {
        let status = read_part::<DpuReportStatus>(report, "status").ok().flatten();
        let status = status.unwrap_or_default();
        let attachments = view.list(TENANT_PLANE, &DPU_ATTACHMENT, None);
        let waiting = attachments.iter().filter(|it| self.is_here(it) && !is_settled(it, &status));
        waiting.map(subject).collect()
    }
}

/// Whether an attachment is as the DPU reports, or never will be.
fn is_settled(attachment: &Object, report: &DpuReportStatus) -> bool {
    if is_deleting(attachment) {
        return false;
    }
    let spec = read_part::<DpuAttachmentSpec>(attachment, "spec").ok().flatten();
    let Some(spec) = spec else { return true };
    let status = read_part::<DpuAttachmentStatus>(attachment, "status").ok().flatten();
    let conditions = status.unwrap_or_default().conditions;
    // It is over, or it was refused.
    if find(&conditions, SUPERSEDED).is_some() {
        return true;
    }
    let is_open = report.ports.iter().any(|port| {
        let is_its = port.node.as_ref().is_some_and(|node| node.uid == spec.node.uid);
        is_its && port.applied.as_ref().is_some_and(|applied| applied.epoch == spec.epoch)
    });
    is_open && is_true(&conditions, PROGRAMMED)
}

fn subject(attachment: &Object) -> Subject {
    Subject::from(name_of(attachment))
}

impl Watcher for Attachments {
    fn name(&self) -> &'static str {
        "nodes/attach"
    }

    fn watches(&self) -> Vec<Watch> {
        let here = &self.serves.here;
        let named = |name: &str| Selector::Named(name.into());
        vec![
            Watch::all(TENANT_PLANE, &DPU_ATTACHMENT)
                .only(Selector::labelled_as(LABEL_DPU, &here.to_string()))
                .by(&ATTACHMENTS_BY_NODE),
            Watch::all(Place::HUB, &PHYSICAL_NODE).only(Selector::labelled(here.label_key())),
            Watch::all(Place::HUB, &TENANT).only(named(&self.serves.tenant.name)),
            Watch::all(Place::HUB, &DPU_REPORT).only(named(&here.to_string())),
        ]
    }

    /// At the hub it only reads.
    fn rights(&self) -> Vec<Right> {
        Right::to(TENANT_PLANE, &DPU_ATTACHMENT, &[Verb::Patch, Verb::PatchStatus])
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        if watch.kind == DPU_ATTACHMENT {
            return self.is_here(object).then(|| subject(object)).into_iter().collect();
        }
        if watch.kind == PHYSICAL_NODE {
            let its = view.find(TENANT_PLANE, &ATTACHMENTS_BY_NODE, name_of(object));
            return its.iter().filter(|it| self.is_here(it)).map(subject).collect();
        }
        if watch.kind == TENANT {
            let is_ours = name_of(object) == self.serves.tenant.name;
            return is_ours.then(|| Subject::from(NETWORK)).into_iter().collect();
        }
        if name_of(object) != self.serves.here.to_string() {
            return Vec::new();
        }
        self.waiting(object, view)
    }

    fn everything(&self, view: &dyn View) -> Option<Vec<Subject>> {
        let attachments = view.list(TENANT_PLANE, &DPU_ATTACHMENT, None);
        let here = attachments.iter().filter(|it| self.is_here(it)).map(subject);
        Some(here.chain([Subject::from(NETWORK)]).collect())
    }
}

impl Room for Attachments {
    type Outside = Dpu;
    type Facts = decide::Facts;
    type Decision = decide::Decision;
    type Scene = observe::Scene;

    fn observe(
        &self,
        subject: &Subject,
        view: &dyn View,
        live_reads: &LiveReads<Dpu>,
    ) -> Observed<decide::Facts, observe::Scene> {
        observe::observe(self, subject, view, live_reads)
    }

    fn decide(facts: &decide::Facts) -> decide::Decision {
        decide::decide(facts)
    }

    fn act(&self, scene: &observe::Scene, decision: decide::Decision) -> Step<Dpu> {
        act::act(self, scene, decision)
    }
}
