//! What is seen of a DpuAttachment, of its node, and of its port.

use super::agree::Wanted;
use super::decide::{Attachment, Facts, Flood, Network};
use super::{Attachments, NETWORK};
use crate::kinds::{DPU_ATTACHMENT, PHYSICAL_NODE, TENANT, TENANT_PLANE};
use crate::outside::{Answer, Dpu, Question};
use crate::wired::{Live, Wired};
use interlock_api::nodes::{
    DpuAttachmentSpec, DpuAttachmentStatus, FINALIZER_DPU_CLEAN, TenantStatus,
};
use interlock_kernel::metadata::{has_finalizer, is_deleting, name_of, uid_of};
use interlock_kernel::{Address, LiveReads, Name, Object, Observed, Place, View, read_part};
use jiff::Timestamp;

/// What one step is about.
#[derive(Debug)]
pub struct Scene {
    /// The attachment, as the cache shows it; None: the step is about the network.
    pub(super) attachment: Option<Object>,
    /// What its status says, and where its node is.
    pub(super) wanted: Option<Wanted>,
    /// The time.
    pub(super) now: Timestamp,
}

impl Wanted {
    /// Reads an attachment; the error says why it cannot be read.
    fn read(attachment: &Object) -> Result<Wanted, String> {
        let spec = read_part::<DpuAttachmentSpec>(attachment, "spec")?;
        let spec = spec.ok_or_else(|| "it has no spec".to_owned())?;
        let status = read_part::<DpuAttachmentStatus>(attachment, "status").ok().flatten();
        let mut addresses = spec.addresses.clone();
        addresses.sort_unstable();
        addresses.dedup();
        Ok(Wanted {
            name: name_of(attachment).to_owned(),
            uid: uid_of(attachment).to_owned(),
            dpu: spec.dpu_name(),
            node: spec.node,
            claim: spec.claim,
            epoch: spec.epoch,
            addresses,
            is_terminating: is_deleting(attachment),
            has_finalizer: has_finalizer(attachment, FINALIZER_DPU_CLEAN),
            conditions: status.unwrap_or_default().conditions,
        })
    }

    /// Where its node is.
    pub(super) fn node_address(&self) -> Address {
        Address::new(Place::HUB, &PHYSICAL_NODE, Name::cluster_wide(&self.node.name))
    }

    /// Where it is itself.
    pub(super) fn address(&self) -> Address {
        Address::new(TENANT_PLANE, &DPU_ATTACHMENT, Name::cluster_wide(&self.name))
    }
}

/// Reads what a step is about.
pub(super) fn observe(
    room: &Attachments,
    subject: &str,
    view: &dyn View,
    live_reads: &LiveReads<Dpu>,
) -> Observed<Facts, Scene> {
    let now = view.now();
    let flood = flood(room, view);
    if subject == NETWORK {
        let asked = live_reads.answers.get(&Question::Device).cloned();
        let facts = Facts::Network(Network { flood, asked });
        return Observed::Seen { facts, scene: Scene { attachment: None, wanted: None, now } };
    }
    let name = Name::cluster_wide(subject);
    let Some(object) = view.get(TENANT_PLANE, &DPU_ATTACHMENT, &name) else {
        return Observed::nothing(
            "the DpuAttachment is not in the cache; a port that is open for it stays open",
        );
    };
    let wanted = match Wanted::read(&object) {
        Ok(wanted) => wanted,
        Err(because) => {
            return Observed::nothing(format!("the DpuAttachment cannot be read: {because}"));
        }
    };
    let here = &room.serves.here;
    let node = wanted.node_address();
    let cached = view.get(Place::HUB, &PHYSICAL_NODE, &node.name);
    let cached = cached.and_then(|node| Wired::read(&node, here));
    let facts = Attachment {
        serves: room.serves.clone(),
        flood,
        asked: asked(cached.as_ref(), live_reads).cloned(),
        node: cached,
        live_node: live_reads.objects.get(&node).map(|node| Live::of(node.as_ref(), here)),
        live_wanted: live_wanted(&wanted, live_reads),
        wanted: wanted.clone(),
    };
    let scene = Scene { attachment: Some(object), wanted: Some(wanted), now };
    Observed::Seen { facts: Facts::Attachment(Box::new(facts)), scene }
}

/// What the driver said of the port of a node, or of all ports.
fn asked<'a>(node: Option<&Wired>, live_reads: &'a LiveReads<Dpu>) -> Option<&'a Answer> {
    let wire = node.and_then(|node| node.port.as_ref());
    let question = wire.map_or(Question::Device, |wire| Question::Port(wire.port.clone()));
    live_reads.answers.get(&question)
}

/// What the control plane of the tenant says of the very attachment that the cache shows.
fn live_wanted(wanted: &Wanted, live_reads: &LiveReads<Dpu>) -> Option<Option<Wanted>> {
    let live = live_reads.objects.get(&wanted.address())?;
    let same = live.as_ref().filter(|live| uid_of(live) == wanted.uid);
    Some(same.and_then(|live| Wanted::read(live).ok()))
}

fn flood(room: &Attachments, view: &dyn View) -> Option<Flood> {
    let tenant = &room.serves.tenant;
    let object = view.get(Place::HUB, &TENANT, &Name::cluster_wide(&tenant.name))?;
    let status = read_part::<TenantStatus>(&object, "status").ok().flatten()?;
    let vni = status.vni.filter(|_| uid_of(&object) == tenant.uid)?;
    let mut vteps = status.vteps;
    vteps.retain(|vtep| *vtep != room.vtep);
    vteps.sort_unstable();
    vteps.dedup();
    Some(Flood { vni, vteps })
}
