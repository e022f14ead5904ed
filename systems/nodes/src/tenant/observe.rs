//! What is seen of a claim and of its attachments.

use super::ATTACHMENTS_BY_CLAIM;
use super::decide::{Attachment, Claim, Entry, Facts};
use crate::kinds::{DPU_ATTACHMENT, NODE_CLAIM, TENANT_PLANE};
use interlock_api::nodes::condition::SUPERSEDED;
use interlock_api::nodes::{
    DpuAttachmentSpec, DpuAttachmentStatus, FINALIZER_DPU_CLEAN, NodeClaimSpec, NodeClaimStatus,
    Ref,
};
use interlock_kernel::conditions::is_true;
use interlock_kernel::metadata::{has_finalizer, is_deleting, name_of, uid_of};
use interlock_kernel::{Address, LiveReads, Name, Nothing, Object, View, read_part};
use std::collections::BTreeMap;

/// The objects that one step is about.
#[derive(Debug)]
pub struct Scene {
    /// Where the claim is.
    pub(super) claim: Address,
    /// The attachments, by name.
    pub(super) attachments: BTreeMap<String, Object>,
}

/// Reads what a step is about.
pub(super) fn observe(
    subject: &str,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> (Facts, Scene) {
    let claim = Address::new(TENANT_PLANE, &NODE_CLAIM, Name::cluster_wide(subject));
    let cached = view.get(TENANT_PLANE, &NODE_CLAIM, &claim.name);
    let live = live_reads.objects.get(&claim);
    let named = view.find(TENANT_PLANE, &ATTACHMENTS_BY_CLAIM, subject);
    let named = || named.iter().map(|object| (name_of(object).to_owned(), object));
    let read = cached.as_ref().and_then(read_claim);
    let attachments: BTreeMap<String, Attachment> =
        named().filter_map(|(name, object)| Some((name, attachment(object)?))).collect();
    let wanted = read.iter().flat_map(Claim::wanted).map(|spec| spec.object_name());
    let others = wanted.filter(|name| !attachments.contains_key(name));
    let is_there = |name: &String| {
        view.get(TENANT_PLANE, &DPU_ATTACHMENT, &Name::cluster_wide(name)).is_some()
    };
    let facts = Facts {
        taken: others.filter(is_there).collect(),
        claim: read,
        live: live.map(|live| live.as_ref().and_then(read_claim)),
        attachments,
    };
    let attachments = named().map(|(name, object)| (name, object.clone())).collect();
    (facts, Scene { claim, attachments })
}

fn read_claim(claim: &Object) -> Option<Claim> {
    let spec = read_part::<NodeClaimSpec>(claim, "spec").ok().flatten()?;
    let status = read_part::<NodeClaimStatus>(claim, "status").ok()?.unwrap_or_default();
    let entries = status.nodes.into_iter().map(|entry| Entry {
        node: Ref { name: entry.name, uid: entry.uid },
        epoch: entry.epoch,
        state: entry.state,
        dpus: entry.dpus,
    });
    Some(Claim {
        own: Ref { name: name_of(claim).to_owned(), uid: uid_of(claim).to_owned() },
        is_terminating: is_deleting(claim),
        entries: entries.collect(),
        addresses: spec.addresses.into_iter().map(|it| (it.node, it.addresses)).collect(),
    })
}

/// An attachment; None: it cannot be read, and so is not one that this controller made.
fn attachment(object: &Object) -> Option<Attachment> {
    let spec = read_part::<DpuAttachmentSpec>(object, "spec").ok().flatten()?;
    let status = read_part::<DpuAttachmentStatus>(object, "status").ok().flatten();
    Some(Attachment {
        spec,
        is_terminating: is_deleting(object),
        has_finalizer: has_finalizer(object, FINALIZER_DPU_CLEAN),
        is_superseded: is_true(&status.unwrap_or_default().conditions, SUPERSEDED),
    })
}
