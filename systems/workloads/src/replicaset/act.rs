//! What is done about a ReplicaSet: one write to it, or to one of its pods.

use super::ANNOTATION_LEAVING;
use super::decide::{Decision, Status, Why};
use super::observe::{REPLICA_FAILURE, Scene, pod_at};
use crate::kinds::{POD, REPLICA_SET};
use crate::owned::{adopting, releasing};
use crate::status::{conditions_of, with, without};
use crate::template::PodOf;
use interlock_kernel::conditions::Finding;
use interlock_kernel::metadata::{name_of, namespace_of, uid_of};
use interlock_kernel::{
    Address, Event, Importance, Name, Nothing, Object, Place, Read, Step, Write,
};
use serde_json::{Value, json};

/// The one effect of a decision.
pub(super) fn act(node: &str, scene: &Scene, decision: Decision) -> Step<Nothing> {
    let set = &scene.set;
    match decision {
        Decision::Rest(why) => Step::rest(because(why)),
        Decision::WaitForReadiness(at_most) => {
            Step::Wait { because: "a pod is ready and not yet available".to_owned(), at_most }
        }
        Decision::WaitForCache(at_most) => {
            Step::Wait { because: "the cache is behind a live read".to_owned(), at_most }
        }
        Decision::ReadOwner => live_read(
            Read::Object(Address::new(Place::CLUSTER, &REPLICA_SET, Name::of(set))),
            "a pod is adopted only by a ReplicaSet that is there",
        ),
        Decision::ReadNamed => match &scene.leaving {
            Some(name) => live_read(
                Read::Object(pod_at(name.clone())),
                "the cache does not show the pod that is about to be deleted",
            ),
            None => Step::rest("no pod is named"),
        },
        Decision::ReadPods => {
            let namespace = Some(namespace_of(set).to_owned());
            let list = Read::List { place: Place::CLUSTER, kind: POD, namespace };
            live_read(list, "which pod is missed least depends on which are ready")
        }
        Decision::Adopt(place) => on_pod(scene, place, |pod| {
            let change = adopting(&REPLICA_SET, set, pod);
            Step::write(patch(pod, change), "the pod has no controller, and is selected")
        }),
        Decision::Release(place) => on_pod(scene, place, |pod| {
            let change = releasing(set, pod);
            Step::write(patch(pod, change), "the labels of the pod are selected no more")
        }),
        Decision::DeleteEnded(place) => {
            on_pod(scene, place, |pod| delete(scene, pod, "the pod ended, and is replaced"))
        }
        Decision::DeleteNamed(place) => {
            on_pod(scene, place, |pod| delete(scene, pod, "there are more pods than are asked for"))
        }
        Decision::ClearName => leave(set, &Value::Null, "the pod that was named is gone"),
        Decision::Name { name, uid } => {
            let named = json!(format!("{name}/{uid}"));
            leave(set, &named, "there are more pods than are asked for")
        }
        Decision::Create(slot) => create(node, scene, slot),
        Decision::Report(status) => report(scene, &status),
    }
}

fn because(why: Why) -> &'static str {
    match why {
        Why::Complete => "it has the pods that it asks for",
        Why::Terminating => "the ReplicaSet is being deleted",
        Why::Invalid => "what the ReplicaSet asks for cannot be read",
        Why::NamespaceUnseen => "the cache does not show the namespace",
        Why::NamespaceTerminating => "the namespace is being deleted",
        Why::SlotsUnknown => "the Deployment has not said how many pods there may be",
        Why::NamesTaken => "all names are taken until a pod is gone",
    }
}

fn live_read(read: Read<Nothing>, because: &str) -> Step<Nothing> {
    Step::LiveRead { reads: vec![read], because: because.to_owned() }
}

fn on_pod(
    scene: &Scene,
    place: usize,
    write: impl FnOnce(&Object) -> Step<Nothing>,
) -> Step<Nothing> {
    scene.pods.get(place).map_or_else(|| Step::rest("there is no such pod"), write)
}

fn patch(pod: &Object, change: Value) -> Write {
    Write::patch(Place::CLUSTER, &POD, pod, change)
}

fn delete(scene: &Scene, pod: &Object, because: &str) -> Step<Nothing> {
    let note = format!("deleted pod {}: {because}", name_of(pod));
    let step = Step::write(Write::delete(Place::CLUSTER, &POD, pod), because);
    step.telling(event(&scene.set, "SuccessfulDelete", note))
}

fn leave(set: &Object, named: &Value, because: &str) -> Step<Nothing> {
    let change = json!({"metadata": {"annotations": {ANNOTATION_LEAVING: named}}});
    Step::write(Write::patch(Place::CLUSTER, &REPLICA_SET, set, change), because)
}

fn create(node: &str, scene: &Scene, slot: u32) -> Step<Nothing> {
    let Some(slots) = &scene.slots else { return Step::rest(because(Why::SlotsUnknown)) };
    let (set, name) = (&scene.set, slots.name(slot));
    let template = &set.data["spec"]["template"];
    let placed = scene.home.placed();
    let pod = PodOf { template, kind: &REPLICA_SET, owner: set, node, placed };
    let address = pod_at(Name::within(namespace_of(set), &name));
    let write = Write::Create { address, object: pod.object() };
    let because = "there are fewer pods than are asked for";
    let created = event(set, "SuccessfulCreate", format!("created pod {name}"));
    Step::write(write, because).telling(created)
}

fn event(set: &Object, reason: &'static str, note: String) -> Event {
    let about = Address::new(Place::CLUSTER, &REPLICA_SET, Name::of(set));
    let uid = uid_of(set).to_owned();
    Event { about, uid, importance: Importance::Normal, reason, note }
}

fn report(scene: &Scene, status: &Status) -> Step<Nothing> {
    let set = &scene.set;
    let known = conditions_of(set);
    let conditions = match &status.failure {
        None => without(&known, REPLICA_FAILURE),
        Some(failure) => {
            let reason = failure.reason.word();
            let finding = Finding::holds(REPLICA_FAILURE, reason, failure.message.clone());
            with(&known, &finding, scene.now)
        }
    };
    let change = json!({"status": {
        "replicas": status.replicas,
        "fullyLabeledReplicas": status.fully_labelled,
        "readyReplicas": status.ready,
        "availableReplicas": status.available,
        "observedGeneration": status.generation,
        "conditions": conditions,
    }});
    let write = Write::patch_status(Place::CLUSTER, &REPLICA_SET, set, change);
    Step::write(write, "the status is what the pods show")
}
