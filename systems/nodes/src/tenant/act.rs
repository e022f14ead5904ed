//! A decision about the attachments of a claim as one step.

use super::decide::Decision;
use super::observe::Scene;
use crate::kinds::{DPU_ATTACHMENT, TENANT_PLANE};
use interlock_api::nodes::{DpuAttachmentSpec, FINALIZER_DPU_CLEAN};
use interlock_kernel::metadata::take_finalizer_off;
use interlock_kernel::{Address, Name, Nothing, Read, Step, Write};
use serde_json::json;

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Nothing> {
    match decision {
        Decision::Rest(because) => Step::rest(because),
        Decision::ReadClaim => Step::LiveRead {
            reads: vec![Read::Object(scene.claim.clone())],
            because: "only a live read can show that the claim does not list the node".to_owned(),
        },
        Decision::Create(spec) => create(&spec),
        Decision::Delete(name, because) => {
            let Some(attachment) = scene.attachments.get(&name) else { return gone(&name) };
            Step::write(Write::delete(TENANT_PLANE, &DPU_ATTACHMENT, attachment), because)
        }
        Decision::TakeFinalizerOff(name) => {
            let Some(attachment) = scene.attachments.get(&name) else { return gone(&name) };
            let change = take_finalizer_off(attachment, FINALIZER_DPU_CLEAN);
            let write = Write::patch(TENANT_PLANE, &DPU_ATTACHMENT, attachment, change);
            Step::write(
                write,
                "the hub has returned the node: its DPUs are clean, or were seen off",
            )
        }
    }
}

fn gone(name: &str) -> Step<Nothing> {
    Step::rest(format!("DpuAttachment {name} does not exist any more"))
}

/// No owner reference: a garbage collector would delete the attachments of a claim that vanished, and its node may be
/// held for the tenant, with its network.
fn create(spec: &DpuAttachmentSpec) -> Step<Nothing> {
    let name = Name::cluster_wide(&spec.object_name());
    let object = json!({
        "metadata": {"labels": spec.labels(), "finalizers": [FINALIZER_DPU_CLEAN]},
        "spec": spec,
    });
    let address = Address::new(TENANT_PLANE, &DPU_ATTACHMENT, name);
    let because = format!("node {} is the claim's at epoch {}", spec.node.name, spec.epoch);
    Step::write(Write::Create { address, object }, because)
}
