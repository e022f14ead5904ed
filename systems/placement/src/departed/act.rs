//! What is done about the finalizer of a cluster that is gone: it comes off one object a step.

use super::decide::{Decision, Why};
use super::observe::{Scene, within};
use crate::kinds::{GRANT, NAMESPACE, WORKLOAD_CLUSTER};
use interlock_api::names::syncer_finalizer;
use interlock_kernel::metadata::{name_of, take_finalizer_off, uid_of};
use interlock_kernel::{
    Address, Event, Importance, Kind, Name, Nothing, Object, Place, Read, Step, Write,
};

/// The one effect of a decision.
pub(crate) fn act(scene: &Scene, decision: Decision) -> Step<Nothing> {
    match (decision, &scene.object) {
        (Decision::Nothing(why), _) => Step::rest(resting(why)),
        (Decision::LiveRead, _) => live_read(scene),
        (Decision::TakeOffObject, Some((kind, object))) => take_off(scene, kind, object),
        (Decision::TakeOffObject, None) => Step::rest("the object does not exist any more"),
        (Decision::TakeOffNamespace, _) => {
            let namespace = &scene.namespace;
            take_off(scene, &NAMESPACE, namespace).telling(Event {
                about: Address::new(Place::HUB, &NAMESPACE, Name::of(namespace)),
                uid: uid_of(namespace).to_owned(),
                importance: Importance::Normal,
                reason: "ClusterGone",
                note: format!(
                    "the cluster with uid {} was deleted and has no copy of the object; its \
                     finalizer is removed",
                    scene.cluster_uid
                ),
            })
        }
    }
}

fn resting(why: Why) -> &'static str {
    match why {
        Why::ClusterThere => "the cluster exists; the cache will show it",
        Why::GrantsLeft => "a grant names a deleted cluster; a person has to force the release",
    }
}

/// The cluster first: once it is gone, no grant can come to name it that the next look would miss.
fn live_read(scene: &Scene) -> Step<Nothing> {
    let all = |kind: Kind| Read::List { place: Place::HUB, kind, namespace: None };
    let mut reads = vec![all(WORKLOAD_CLUSTER), all(GRANT)];
    reads.extend(scene.kinds.iter().map(|kind| {
        let (place, kind, namespace) = within(kind, name_of(&scene.namespace));
        Read::List { place, kind, namespace }
    }));
    Step::LiveRead { reads, because: "only a live read can show that a cluster is gone".to_owned() }
}

fn take_off(scene: &Scene, kind: &Kind, object: &Object) -> Step<Nothing> {
    let change = take_finalizer_off(object, &syncer_finalizer(&scene.cluster_uid));
    let write = Write::patch(Place::HUB, kind, object, change);
    Step::write(write, format!("the cluster that held {kind} {} was deleted", name_of(object)))
}
