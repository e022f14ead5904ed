//! Places at a repository: so many syncs at once and no more. Whoever creates the Lease of a place
//! has it; counting a list would let two in.

use super::hash;
use crate::kinds::LEASE;
use crate::objects::{label, uid_of};
use interlock_api::names::{ANNOTATION_SLOT_OF, LABEL_SLOT};
use interlock_kernel::{Address, Name, Object, Place, Selector, View, Write};
use kube_core::DynamicObject;
use serde_json::json;
use std::borrow::Cow;

/// How many syncs work at one repository at a time.
pub(crate) const SLOTS: usize = 4;
/// The Leases that are such places. On a large cluster there are thousands of others, each written
/// every few seconds.
pub(crate) const OURS: Selector = Selector::Labelled(Cow::Borrowed(LABEL_SLOT));
/// Where the Leases are: sources of all namespaces may share a repository.
pub(crate) const SLOT_NAMESPACE: &str = "interlock-system";
/// Copies from volume to volume have no repository, and still share one disk.
pub(crate) const COPIES: &str = "copy";

/// Among whose places a sync needs one.
pub(crate) fn places_of(repository: &str) -> String {
    format!("{:016x}", hash(repository))
}

pub(crate) fn slot_name(places: &str, place: usize) -> Name {
    Name::within(SLOT_NAMESPACE, &format!("slot-{places}-{place}"))
}

fn holder(lease: &DynamicObject) -> &str {
    lease.data["spec"]["holderIdentity"].as_str().unwrap_or_default()
}

/// The sync that a place is for; None: the Lease is none of ours.
pub(crate) fn sync_of(lease: &DynamicObject) -> Option<&str> {
    label(lease, LABEL_SLOT)?;
    Some(holder(lease)).filter(|holder| !holder.is_empty())
}

/// What a sync sees of the places that it needs one of.
#[derive(Debug, Clone)]
pub(crate) enum Slot {
    /// It needs none.
    NotNeeded,
    /// It has this one.
    Mine(Object),
    /// This one is free, as far as the cache knows.
    Free(usize),
    /// All are taken.
    Full,
}

/// The place of a sync, as the cache shows it.
pub(crate) fn slot_of(places: &str, sync: &str, view: &dyn View) -> Slot {
    if places.is_empty() {
        return Slot::NotNeeded;
    }
    let leases: Vec<Option<Object>> = (0..SLOTS)
        .map(|place| view.get(Place::CLUSTER, &LEASE, &slot_name(places, place)))
        .collect();
    let mine = leases.iter().flatten().find(|lease| holder(lease) == sync);
    if let Some(mine) = mine {
        return Slot::Mine(mine.clone());
    }
    // Not all begin at the first place: those that start together would all want the same one.
    let first = usize::try_from(hash(sync) % SLOTS as u64).unwrap_or(0);
    let mut order = (0..SLOTS).map(|step| (first + step) % SLOTS);
    order.find(|place| leases[*place].is_none()).map_or(Slot::Full, Slot::Free)
}

/// Takes a place, if it is still free.
pub(crate) fn take(places: &str, place: usize, sync: &str, object: &str) -> Write {
    Write::Create {
        address: Address::new(Place::CLUSTER, &LEASE, slot_name(places, place)),
        object: json!({
            "metadata": {
                "labels": { LABEL_SLOT: places },
                "annotations": { ANNOTATION_SLOT_OF: object },
            },
            "spec": { "holderIdentity": sync },
        }),
    }
}

/// Gives a place back.
pub(crate) fn give_back(lease: &Object) -> Write {
    let address = Address::new(Place::CLUSTER, &LEASE, Name::of(lease));
    Write::Delete {
        address,
        uid: uid_of(lease).to_owned(),
        resource_version: None,
        grace_seconds: None,
    }
}
