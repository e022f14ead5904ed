//! One thing done about one object.

use super::decide::Chore;
use super::desired::desired;
use super::observe::Mirror;
use super::status;
use crate::kinds::{CLAIM, POD};
use crate::syncer::{Locks, Syncer};
use interlock_api::names::FINALIZER_KEEP;
use interlock_kernel::metadata::{is_deleting, name_of, put_finalizer, take_finalizer_off};
use interlock_kernel::{Address, Name, Object, Place, Read, Step, Write};
use serde_json::json;

/// Does one thing about an object of the namespace that has this name on the cluster.
pub(in crate::syncer) fn act(
    syncer: &Syncer,
    namespace: &str,
    mirror: &Mirror,
    chore: Chore,
) -> Step<Locks> {
    let Mirror { kind, hub, here } = mirror;
    let address = Address::new(Place::CLUSTER, kind, Name::within(namespace, name_of(hub)));
    let at_hub = |change| Write::patch(Place::HUB, kind, hub, change);
    match (chore, here) {
        (Chore::PutFinalizer, _) => Step::write(
            at_hub(put_finalizer(hub, &syncer.finalizer)),
            format!("{kind} is copied to the cluster, and must not be deleted first"),
        ),
        (Chore::TakeFinalizerOff, _) => Step::write(
            at_hub(take_finalizer_off(hub, &syncer.finalizer)),
            format!("{kind} is gone from the cluster"),
        ),
        (Chore::ReadLive, _) => {
            let because = match is_deleting(hub) {
                true => "must be gone on this cluster before it is deleted at the hub",
                false => "comes, or makes way for another, only while the hub has it",
            };
            let hub = Address::new(Place::HUB, kind, Name::of(hub));
            let reads = vec![Read::Object(address), Read::Object(hub)];
            Step::LiveRead { reads, because: format!("{kind} {because}") }
        }
        (Chore::Apply, here) => {
            let object = desired(kind, hub, namespace);
            let write = Write::apply(address, object, here.as_ref());
            let is = if here.is_some() { "different from" } else { "missing, unlike at" };
            Step::write(write, format!("{kind} is {is} the hub"))
        }
        (Chore::Unkeep, Some(here)) => {
            let change = take_finalizer_off(here, FINALIZER_KEEP);
            let write = Write::patch(Place::CLUSTER, &CLAIM, here, change);
            Step::write(
                write,
                "the claim is deleted at the hub, and no pod on this cluster uses it",
            )
        }
        (Chore::Delete | Chore::Replace, Some(here)) => {
            let mut write = Write::delete(Place::CLUSTER, kind, here);
            if let Write::Delete { grace_seconds, .. } = &mut write {
                *grace_seconds = grace(chore, mirror);
            }
            Step::write(write, format!("{kind} is deleted or replaced at the hub"))
        }
        (Chore::TellStatus, Some(here)) => match status::news(hub, here) {
            Some(change) => {
                let change = json!({ "status": change });
                let write = Write::patch_status(Place::HUB, kind, hub, change);
                Step::write(write, "the status on this cluster has changed")
            }
            None => Step::rest("the hub has the status"),
        },
        (Chore::Unkeep | Chore::Delete | Chore::Replace | Chore::TellStatus, None) => {
            Step::rest(format!("{kind} {} does not exist on this cluster", name_of(hub)))
        }
    }
}

/// How long a pod that people delete may take to stop, if they said so.
fn grace(chore: Chore, Mirror { kind, hub, .. }: &Mirror) -> Option<u32> {
    let said = hub.metadata.deletion_grace_period_seconds.filter(|_| *kind == POD);
    said.filter(|_| chore == Chore::Delete).and_then(|seconds| u32::try_from(seconds).ok())
}

/// Tells people, before the namespace is let go, that a pod of it does not run any more.
pub(in crate::syncer) fn say_it_moves(pod: &Object) -> Step<Locks> {
    match status::moving(pod) {
        Some(change) => {
            let change = json!({ "status": change });
            let write = Write::patch_status(Place::HUB, &POD, pod, change);
            Step::write(write, "the pod has stopped, and its status must not say that it runs")
        }
        None => Step::rest("the status does not say that the pod runs"),
    }
}
