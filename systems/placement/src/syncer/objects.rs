//! The objects of a namespace: down to the cluster one by one, their status up.

pub mod compare;
pub mod desired;
pub mod kinds;
pub(super) mod next;
pub(super) mod status;

use super::Locks;
use super::marks::{put_finalizer, take_finalizer_off};
use super::observe::Scene;
use crate::kinds::CLAIM;
use interlock_api::names::FINALIZER_KEEP;
use interlock_kernel::{Address, Name, Part, Place, Read, Step, Write};
use next::Chore;

/// Does the next thing about one object.
pub(super) fn act(scene: &Scene<'_>, chore: &Chore) -> Step<Locks> {
    match chore {
        Chore::PutFinalizer(kind, hub) => {
            let change = put_finalizer(hub, &scene.syncer.finalizer);
            let write = Write::patch(Place::HUB, kind, hub, (Part::Main, change));
            Step::write(
                write,
                format!("{kind} goes down to the cluster, and must not vanish first"),
            )
        }
        Chore::Apply(kind, hub, here) => {
            let name = Name::within(scene.name, super::marks::name(hub));
            let write = Write::Apply {
                address: Address::new(Place::CLUSTER, kind, name),
                part: Part::Main,
                uid: here.as_ref().map(|here| super::marks::uid(here).to_owned()),
                object: desired::desired(kind, hub, scene.name),
            };
            let is = if here.is_some() { "different from" } else { "missing, unlike at" };
            Step::write(write, format!("{kind} is {is} the hub"))
        }
        Chore::Unkeep(here) => {
            let change = take_finalizer_off(here, FINALIZER_KEEP);
            let write = Write::patch(Place::CLUSTER, &CLAIM, here, (Part::Main, change));
            Step::write(write, "its claim is deleted at the hub, and no pod here uses it")
        }
        Chore::Delete { kind, here, grace_seconds } => {
            let mut write = Write::delete(Place::CLUSTER, kind, here);
            if let Write::Delete { grace_seconds: grace, .. } = &mut write {
                *grace = *grace_seconds;
            }
            Step::write(write, format!("{kind} is deleted or replaced at the hub"))
        }
        Chore::LookWhetherGone(address) => Step::Look {
            reads: vec![Read::Object(address.clone())],
            because: format!("{} must be gone here before it goes at the hub", address.kind),
        },
        Chore::TakeFinalizerOff(kind, hub) => {
            let change = take_finalizer_off(hub, &scene.syncer.finalizer);
            let write = Write::patch(Place::HUB, kind, hub, (Part::Main, change));
            Step::write(write, format!("{kind} is gone from the cluster"))
        }
    }
}
