//! What is done about a claim: one write to the claim, or to one node.

use super::decide::{Decision, Report};
use super::observe::{Scene, node_at};
use crate::kinds::{NODE_CLAIM, TENANT_PLANE};
use crate::record::{NEVER_PROGRAMMED, NodeRecord, Revocation, ref_to};
use interlock_api::nodes::condition::{CLAIM_PRESENT, NETWORK_READY};
use interlock_api::nodes::event::{CLAIM_MISSING, NODE_ASSIGNED, NODE_REVOKED};
use interlock_api::nodes::{Assignment, FINALIZER_NODE_RELEASE, NodeClaimStatus, NodePhase, Ref};
use interlock_kernel::conditions::{Finding, with_all};
use interlock_kernel::metadata::{name_of, put_finalizer, take_finalizer_off};
use interlock_kernel::{Importance, Nothing, Object, Read, Step, Write, read_part};
use serde_json::json;
use std::time::Duration;

/// The one effect of a decision.
pub(super) fn act(tenant: &Ref, scene: &Scene, decision: Decision) -> Step<Nothing> {
    match decision {
        Decision::Rest(because) => Step::rest(because),
        Decision::Wait(because, seconds) => {
            let at_most = Duration::from_secs(u64::try_from(seconds).unwrap_or(1));
            Step::Wait { because: because.to_owned(), at_most }
        }
        Decision::ReadNodes(names) => Step::LiveRead {
            reads: names.iter().map(|name| Read::Object(node_at(name))).collect(),
            because: "only a live read can show that a node is gone".to_owned(),
        },
        Decision::ReadClaim => Step::LiveRead {
            reads: vec![Read::Object(scene.address.clone())],
            because: "only a live read can show that a claim does not list its node".to_owned(),
        },
        Decision::PutFinalizer => on_claim(scene, |claim| {
            let change = put_finalizer(claim, FINALIZER_NODE_RELEASE);
            let write = Write::patch(TENANT_PLANE, &NODE_CLAIM, claim, change);
            Step::write(write, "a claim stays while a node is bound to it")
        }),
        Decision::TakeFinalizerOff => on_claim(scene, |claim| {
            let change = take_finalizer_off(claim, FINALIZER_NODE_RELEASE);
            let write = Write::patch(TENANT_PLANE, &NODE_CLAIM, claim, change);
            Step::write(write, "no node names the claim any more")
        }),
        Decision::Report(report) => say(scene, &report),
        Decision::Revoke(name, how, because) => {
            on_node(scene, &name, |node| revoke(scene, node, how, because))
        }
        Decision::SayMissing(name) => on_node(scene, &name, |node| missing(tenant, scene, node)),
        Decision::SayPresent(name) => on_node(scene, &name, |node| present(scene, node)),
        Decision::Bind(name, vni) => on_node(scene, &name, |node| {
            on_claim(scene, |claim| bind(tenant, scene, &Chosen { claim, node }, vni))
        }),
    }
}

fn on_claim(scene: &Scene, write: impl FnOnce(&Object) -> Step<Nothing>) -> Step<Nothing> {
    scene.claim.as_ref().map_or_else(|| Step::rest("there is no such claim"), write)
}

fn on_node(
    scene: &Scene,
    name: &str,
    write: impl FnOnce(&NodeRecord) -> Step<Nothing>,
) -> Step<Nothing> {
    let found = scene.nodes.iter().find(|node| node.name() == name);
    found.map_or_else(|| Step::rest("there is no such node"), write)
}

fn say(scene: &Scene, report: &Report) -> Step<Nothing> {
    let over = if report.is_over_live { &scene.live } else { &scene.claim };
    let Some(claim) = over else { return Step::rest("there is no such claim") };
    let status = read_part::<NodeClaimStatus>(claim, "status").ok().flatten().unwrap_or_default();
    let conditions =
        with_all(&status.conditions, &report.findings, scene.now, claim.metadata.generation);
    let change = json!({"status": {"nodes": report.entries, "conditions": conditions}});
    Step::write(Write::patch_status(TENANT_PLANE, &NODE_CLAIM, claim, change), report.because)
}

fn revoke(scene: &Scene, node: &NodeRecord, how: Revocation, because: &str) -> Step<Nothing> {
    let epoch = node.status.epoch;
    let note = match how {
        Revocation::AtOnce => format!("epoch {epoch} of node {} is over: {because}", node.name()),
        Revocation::AfterDrain => {
            let cluster = node.status.cluster.as_ref().map(ToString::to_string).unwrap_or_default();
            format!(
                "epoch {epoch} of node {} ends once cluster {cluster} is drained: {because}",
                node.name()
            )
        }
    };
    let event = node.tells(Importance::Normal, NODE_REVOKED, note);
    Step::write(node.revoke(how, scene.now), because).telling(event)
}

fn missing(tenant: &Ref, scene: &Scene, node: &NodeRecord) -> Step<Nothing> {
    let claim = &*scene.address.name.name;
    let message = format!(
        "the control plane of tenant {tenant} has no NodeClaim {claim} with the uid that node {} is bound to; the \
         tenant keeps the node",
        node.name()
    );
    let next = format!(
        "if the tenant does not need node {} any more: interlock node reclaim {}",
        node.name(),
        node.name()
    );
    let finding = Finding::fails(CLAIM_PRESENT, "ClaimMissing", message.as_str()).next(next);
    let conditions = node.conditions_with(&[finding], scene.now);
    let write = node.write_status(json!({ "conditions": conditions }));
    let event = node.tells(Importance::Warning, CLAIM_MISSING, message);
    Step::write(write, "absence is not deletion: the tenant keeps the node").telling(event)
}

fn present(scene: &Scene, node: &NodeRecord) -> Step<Nothing> {
    let finding = Finding::holds(CLAIM_PRESENT, "Present", "the claim of the node lists it");
    let conditions = node.conditions_with(&[finding], scene.now);
    Step::write(node.write_status(json!({ "conditions": conditions })), "the claim is there again")
}

/// A node that a claim has chosen.
struct Chosen<'a> {
    claim: &'a Object,
    node: &'a NodeRecord,
}

/// One write gives the epoch, the owner and the phase, over the version of the node that was free. It forgets that an
/// earlier tenant had the node programmed, or lost its claim.
fn bind(tenant: &Ref, scene: &Scene, chosen: &Chosen<'_>, vni: u32) -> Step<Nothing> {
    let Chosen { claim, node } = *chosen;
    let Some(epoch) = node.status.epoch.checked_add(1) else {
        return Step::rest("no epoch is left");
    };
    let assignment = Assignment { tenant: tenant.clone(), claim: ref_to(claim), epoch, vni };
    let message =
        format!("not all DPUs have node {} programmed for epoch {epoch} yet", node.name());
    let findings = [
        Finding::fails(NETWORK_READY, NEVER_PROGRAMMED, message),
        Finding::holds(CLAIM_PRESENT, "Present", "the claim of the node lists it"),
    ];
    let change = json!({
        "epoch": epoch, "assignment": assignment,
        "conditions": node.conditions_with(&findings, scene.now),
    });
    let write = node.write_phase(NodePhase::Bound, scene.now, change);
    let note = format!(
        "node {} is tenant {tenant}'s at epoch {epoch}, for NodeClaim {}",
        node.name(),
        name_of(claim)
    );
    let event = node.tells(Importance::Normal, NODE_ASSIGNED, note);
    Step::write(write, "the claim has chosen the node, and the node is free").telling(event)
}
