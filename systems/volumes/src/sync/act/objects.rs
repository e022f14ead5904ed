//! Writes of what a sync needs and brings: the claim that it writes to, its snapshots, its slot.

use super::status::product_snapshot;
use super::{gone, on};
use crate::kinds::{CLAIM, SNAPSHOT_KIND};
use crate::objects::{change, owner_reference, take_finalizer_off, uid_of};
use crate::outside::Mover;
use crate::sync::decide::Product;
use crate::sync::intent::Intent;
use crate::sync::observe::Scene;
use crate::sync::snapshots::{self, Taken, claim_address};
use crate::sync::work::{Target, Work};
use crate::sync::{Direction, slots};
use interlock_api::names::{ANNOTATION_LATEST_IMAGE_UID, FINALIZER_SNAPSHOTS};
use interlock_kernel::{Importance, Place, Step, Write};
use serde_json::json;

pub(super) fn make_target(scene: &Scene) -> Step<Mover> {
    let task = &scene.task;
    let Ok(Work { target: Target::Own { capacity, access_modes, class }, .. }) = &scene.work else {
        return gone();
    };
    let mut spec = json!({
        "accessModes": access_modes, "resources": {"requests": {"storage": capacity}},
    });
    if let Some(class) = class {
        spec["storageClassName"] = json!(class);
    }
    let name = &scene.claim_name;
    let owner = owner_reference(&task.kind, &task.object);
    let write = Write::Create {
        address: claim_address(task.namespace(), name),
        object: json!({"metadata": {"ownerReferences": [owner]}, "spec": spec}),
    };
    Step::write(write, "the destination has no volume to write to").telling(task.tells(
        Importance::Normal,
        "PersistentVolumeClaimCreated",
        format!("the destination writes to claim {name}"),
    ))
}

pub(super) fn delete_target(scene: &Scene) -> Step<Mover> {
    on(scene.claim.as_ref(), |claim| {
        let write = Write::delete(Place::CLUSTER, &CLAIM, claim);
        Step::write(write, "the claim was made for one sync")
    })
}

pub(super) fn take_snapshot(scene: &Scene, intent: &Intent) -> Step<Mover> {
    let (task, claim) = (&scene.task, &scene.claim_name);
    let taken = Taken {
        owner: (&task.kind, &task.object),
        name: &intent.snapshot,
        sync: &intent.id,
        claim,
        class: scene.work.as_ref().ok().and_then(|work| work.snapshot_class.as_deref()),
    };
    let because = match scene.direction {
        Direction::Source => "the sync needs a snapshot",
        Direction::Destination => "all data is restored",
    };
    let note = format!("snapshot {} of claim {claim} is being taken", intent.snapshot);
    Step::write(snapshots::take(task.namespace(), &taken), because).telling(task.tells(
        Importance::Normal,
        "VolumeSnapshotCreated",
        note,
    ))
}

/// Writes onto the object which snapshot is the latest.
pub(super) fn publish(scene: &Scene, product: Product) -> Step<Mover> {
    let uid = product_snapshot(scene, product).map(|snapshot| uid_of(snapshot));
    let change = json!({"metadata": {"annotations": {ANNOTATION_LATEST_IMAGE_UID: uid}}});
    Step::write(scene.task.write_main(change), "the snapshot is ready, and is the latest")
}

pub(super) fn delete_snapshot(scene: &Scene, place: usize) -> Step<Mover> {
    on(scene.snapshots.get(place), |snapshot| {
        // The very version that was seen: one that somebody has taken hold of since stays.
        let write = Write::delete_seen(Place::CLUSTER, &SNAPSHOT_KIND, snapshot);
        Step::write(write, "the snapshot is not needed any more")
    })
}

/// The snapshot belongs to the object no more, and so does not go with it.
pub(super) fn leave_snapshot(scene: &Scene, place: usize) -> Step<Mover> {
    on(scene.snapshots.get(place), |snapshot| {
        let owners = snapshot.metadata.owner_references.iter().flatten();
        let others: Vec<_> = owners.filter(|owner| owner.uid != scene.task.uid()).collect();
        let others = json!({"metadata": {"ownerReferences": others}});
        let write = change(&SNAPSHOT_KIND, snapshot, others);
        Step::write(write, "the snapshot has the label do-not-delete, and is not deleted")
    })
}

/// No snapshot is left that would be lost with the object.
pub(super) fn let_go(scene: &Scene) -> Step<Mover> {
    let write = take_finalizer_off(&scene.task.kind, &scene.task.object, FINALIZER_SNAPSHOTS);
    Step::write(write, "no snapshot of the object is left")
}

pub(super) fn take_slot(scene: &Scene, intent: &Intent) -> Step<Mover> {
    match scene.slot {
        slots::Slot::Free(place) => {
            let write = slots::take(&intent.places, place, &intent.id, &scene.task.title());
            Step::write(write, "a slot at the repository is free")
        }
        slots::Slot::NotNeeded | slots::Slot::Mine(_) | slots::Slot::Full => gone(),
    }
}

pub(super) fn give_slot_back(scene: &Scene) -> Step<Mover> {
    match &scene.slot {
        slots::Slot::Mine(lease) => {
            Step::write(slots::give_back(lease), "the slot at the repository is released")
        }
        slots::Slot::NotNeeded | slots::Slot::Free(_) | slots::Slot::Full => gone(),
    }
}
