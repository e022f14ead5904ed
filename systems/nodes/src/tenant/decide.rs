//! Which DpuAttachments a claim has. First matching rule wins.
//!
//! The claim says which node it has at which epoch, and an epoch has attachments of its own: one that is made late,
//! from an old entry, names an old epoch and opens nothing; one that is deleted late, by its uid, hits no other.

use interlock_api::nodes::{DpuAttachmentSpec, DpuName, EntryState, Ref};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// All that one decision rests on.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Facts {
    /// The claim, as the cache shows it; None: it does not, or the claim cannot be read.
    pub claim: Option<Claim>,
    /// The same by a live read that was made for a deletion; None: there was none.
    #[serde(with = "interlock_kernel::answered")]
    pub live: Option<Option<Claim>>,
    /// The attachments that name a claim of this name, by their own.
    pub attachments: BTreeMap<String, Attachment>,
    /// The names of attachments that the claim wants, and that those of other claims have.
    pub taken: BTreeSet<String>,
}

/// A claim.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Claim {
    /// Its name and identity.
    pub own: Ref,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Its nodes.
    pub entries: Vec<Entry>,
    /// The addresses that its machines may send from, by the name of the node.
    pub addresses: BTreeMap<String, Vec<IpAddr>>,
}

/// A node of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Entry {
    /// The node.
    pub node: Ref,
    /// The epoch.
    pub epoch: i64,
    /// How far it is.
    pub state: EntryState,
    /// The DPUs that it is wired through.
    pub dpus: Vec<DpuName>,
}

/// An attachment.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Attachment {
    /// What it asks for.
    pub spec: DpuAttachmentSpec,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Whether its DPU may have it programmed.
    pub has_finalizer: bool,
    /// Whether its DPU says that its epoch is over.
    pub is_superseded: bool,
}

/// The one next thing to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Decision {
    /// Nothing, and why.
    Rest(&'static str),
    /// Read the claim live: a list of nodes without this one may be an old one.
    ReadClaim,
    /// Make an attachment.
    Create(Box<DpuAttachmentSpec>),
    /// Delete the attachment of this name, and why.
    Delete(String, &'static str),
    /// Take the finalizer off the attachment of this name.
    TakeFinalizerOff(String),
}

/// The one next thing to do.
pub fn decide(facts: &Facts) -> Decision {
    if let Some(missing) = facts.missing() {
        return Decision::Create(Box::new(missing));
    }
    let attachments = || facts.attachments.iter();
    let unwanted = attachments().find_map(|(name, it)| Some((name, facts.unwanted(it)?)));
    if let Some((name, because)) = unwanted {
        return Decision::Delete(name.clone(), because);
    }
    if let Some((name, _)) = attachments().find(|(_, it)| facts.is_released(it)) {
        return Decision::TakeFinalizerOff(name.clone());
    }
    // Last, since it takes a live read.
    match (attachments().find(|(_, it)| facts.is_unlisted(it)), &facts.live) {
        (None, _) => Decision::Rest("the claim has its attachments"),
        (Some(_), None) => Decision::ReadClaim,
        (Some((name, it)), Some(Some(live))) if live.lists_not(it) => {
            let because = "the claim does not list the node at this epoch";
            Decision::Delete(name.clone(), because)
        }
        (Some(_), Some(_)) => Decision::Rest("the cache does not show yet what the claim says"),
    }
}

impl Facts {
    /// What an entry asks for and no attachment does. A name that is taken is taken: whoever made that attachment must
    /// delete it, and its DPU says so.
    fn missing(&self) -> Option<DpuAttachmentSpec> {
        let claim = self.claim.as_ref().filter(|claim| !claim.is_terminating)?;
        let is_missing = |spec: &DpuAttachmentSpec| {
            let name = spec.object_name();
            !self.attachments.contains_key(&name) && !self.taken.contains(&name)
        };
        claim.wanted().find(is_missing)
    }

    /// The claim, if it is the one that an attachment names: it is the claim's own.
    fn owner(&self, attachment: &Attachment) -> Option<&Claim> {
        self.claim.as_ref().filter(|claim| claim.own.uid == attachment.spec.claim.uid)
    }

    /// Why an attachment is not wanted any more. That the cache does not show its claim is no reason: a node whose
    /// claim vanished may be held for its tenant, with its network.
    fn unwanted(&self, attachment: &Attachment) -> Option<&'static str> {
        if attachment.is_terminating {
            return None;
        }
        // While the claim still lists the node, one that were deleted would be made again.
        let is_listed =
            |claim: &Claim| !claim.is_terminating && claim.bound(&attachment.spec).is_some();
        if attachment.is_superseded && !self.owner(attachment).is_some_and(is_listed) {
            return Some("its DPU says that its epoch is over");
        }
        let claim = self.owner(attachment)?;
        if claim.is_terminating {
            return Some("the claim is being deleted");
        }
        if claim.is_over(&attachment.spec) {
            return Some("the epoch is revoked");
        }
        let entry = claim.bound(&attachment.spec)?;
        let dpu = attachment.spec.dpu_name();
        if !entry.dpus.contains(&dpu) {
            return Some("the node is not wired through that DPU");
        }
        let is_right = claim.spec(entry, &dpu) == attachment.spec;
        (!is_right).then_some("the machine has other addresses now")
    }

    /// It is being deleted, and the hub has returned the node: its DPU is clean or was seen off, and no longer there to
    /// take the finalizer off.
    fn is_released(&self, attachment: &Attachment) -> bool {
        let is_held = attachment.is_terminating && attachment.has_finalizer;
        is_held && self.owner(attachment).is_some_and(|claim| claim.has_released(&attachment.spec))
    }

    /// Its claim, which lives, does not list its node at its epoch.
    fn is_unlisted(&self, attachment: &Attachment) -> bool {
        let is_its = |claim: &Claim| !claim.is_terminating && claim.lists_not(attachment);
        !attachment.is_terminating && self.owner(attachment).is_some_and(is_its)
    }
}

impl Claim {
    /// The attachments that the claim has when all is done.
    pub(super) fn wanted(&self) -> impl Iterator<Item = DpuAttachmentSpec> {
        let bound = self.entries.iter().filter(|entry| entry.state == EntryState::Bound);
        bound.flat_map(|entry| entry.dpus.iter().map(|dpu| self.spec(entry, dpu)))
    }

    fn of_node<'a>(&'a self, node: &'a Ref) -> impl Iterator<Item = &'a Entry> {
        self.entries.iter().filter(|entry| entry.node.uid == node.uid)
    }

    /// The entry of a node that is bound at an epoch.
    fn bound(&self, spec: &DpuAttachmentSpec) -> Option<&Entry> {
        self.entries.iter().find(|entry| {
            let is_of = entry.node.uid == spec.node.uid && entry.epoch == spec.epoch;
            is_of && entry.state == EntryState::Bound
        })
    }

    /// Whether an epoch is revoked: an entry says so, of it or of a later one; or a later one was given, which takes
    /// that all earlier ones were revoked.
    fn is_over(&self, spec: &DpuAttachmentSpec) -> bool {
        self.of_node(&spec.node).any(|entry| match entry.state {
            EntryState::Chosen => false,
            EntryState::Bound => entry.epoch > spec.epoch,
            EntryState::Releasing | EntryState::Released => entry.epoch >= spec.epoch,
        })
    }

    /// Whether the hub has returned the node since the epoch: an epoch is given only to a node that was returned.
    fn has_released(&self, spec: &DpuAttachmentSpec) -> bool {
        self.of_node(&spec.node).any(|entry| match entry.state {
            EntryState::Chosen => false,
            EntryState::Bound | EntryState::Releasing => entry.epoch > spec.epoch,
            EntryState::Released => entry.epoch >= spec.epoch,
        })
    }

    /// Whether the claim is the one that an attachment names, and has no entry of its node at its epoch.
    fn lists_not(&self, attachment: &Attachment) -> bool {
        let spec = &attachment.spec;
        let is_listed = self.of_node(&spec.node).any(|entry| entry.epoch == spec.epoch);
        self.own.uid == spec.claim.uid && !is_listed
    }

    /// The attachment of an entry at a DPU.
    fn spec(&self, entry: &Entry, dpu: &DpuName) -> DpuAttachmentSpec {
        DpuAttachmentSpec {
            node: entry.node.clone(),
            rack: dpu.rack.clone(),
            dpu: dpu.dpu.clone(),
            claim: self.own.clone(),
            epoch: entry.epoch,
            addresses: self.addresses.get(&entry.node.name).cloned().unwrap_or_default(),
        }
    }
}
