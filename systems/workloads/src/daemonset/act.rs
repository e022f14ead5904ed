//! A decision about a DaemonSet as one step.

use super::decide::Decision;
use super::fit::tolerations;
use super::observe::{Scene, pod_name};
use super::status::Status;
use crate::kinds::{CONTROLLER_REVISION, DAEMON_SET, NODE, POD};
use crate::live::Listing;
use crate::owned::{adopting, releasing};
use crate::revisions::{self, LABEL_REVISION};
use crate::template::{PodOf, put};
use interlock_kernel::metadata::{namespace_of, uid_of};
use interlock_kernel::{
    Address, Event, Importance, Name, Nothing, Object, Place, Read, Step, Write,
};
use serde_json::{Value, json};
use std::time::Duration;

/// How long the cache may take to show what a live read showed.
const CACHE_DELAY: Duration = Duration::from_secs(5);

/// The one effect of a decision.
pub(super) fn act(scene: &Scene, decision: Decision) -> Step<Nothing> {
    match decision {
        Decision::Rest(because) => Step::rest(because),
        Decision::WaitForCache => Step::Wait {
            because: "the DaemonSet has changed since the cache saw it".to_owned(),
            at_most: CACHE_DELAY,
        },
        Decision::WaitForPod(at_most) => Step::Wait {
            because: "a pod is ready, and not yet for minReadySeconds".to_owned(),
            at_most,
        },
        Decision::ReadLive => read_live(scene),
        Decision::ReadNode(node) => {
            let node = Address::new(Place::CLUSTER, &NODE, Name::cluster_wide(&node));
            let because = "only a live read can show that a node is gone".to_owned();
            Step::LiveRead { reads: vec![Read::Object(node)], because }
        }
        Decision::Revise(change) => {
            let of = revisions::Of { kind: &DAEMON_SET, owner: &scene.set };
            match of.write(&change, &scene.revisions) {
                Some(write) => Step::write(write, "the present template has the newest revision"),
                None => Step::rest("the revision does not exist any more"),
            }
        }
        Decision::Adopt(name) => with_pod(scene, &name, |pod| {
            let change = adopting(&DAEMON_SET, &scene.set, pod);
            let write = Write::patch(Place::CLUSTER, &POD, pod, change);
            Step::write(write, "the selector selects the pod, which has no owner")
        }),
        Decision::Release(name) => with_pod(scene, &name, |pod| {
            let write = Write::patch(Place::CLUSTER, &POD, pod, releasing(&scene.set, pod));
            Step::write(write, "the labels of the pod do not match the selector any more")
        }),
        Decision::CreatePod(node, hash) => create_pod(scene, &node, &hash),
        Decision::DeletePod(name, because) => with_pod(scene, &name, |pod| {
            Step::write(Write::delete_seen(Place::CLUSTER, &POD, pod), because)
        }),
        Decision::DeleteRevision(name) => match scene.revisions.get(&name) {
            Some(revision) => {
                let write = Write::delete_seen(Place::CLUSTER, &CONTROLLER_REVISION, revision);
                Step::write(write, "there are more revisions than revisionHistoryLimit")
            }
            None => Step::rest(format!("ControllerRevision {name} does not exist any more")),
        },
        Decision::Report(status) => report(scene, &status),
    }
}

fn with_pod(
    scene: &Scene,
    name: &str,
    step: impl FnOnce(&Object) -> Step<Nothing>,
) -> Step<Nothing> {
    match scene.pods.get(name) {
        Some(pod) => step(pod),
        None => Step::rest(format!("pod {name} does not exist any more")),
    }
}

fn read_live(scene: &Scene) -> Step<Nothing> {
    let owner = Address::new(Place::CLUSTER, &DAEMON_SET, Name::of(&scene.set));
    let listing = Listing { owner: &owner, kind: &POD };
    let because = "a pod is deleted only by what the others are now".to_owned();
    Step::LiveRead { reads: listing.reads(), because }
}

/// The pod of a node. A process is put there by us, as nothing else on this cluster chooses nodes; what is none is run by
/// nobody, and only asks for the node.
fn create_pod(scene: &Scene, node: &str, hash: &str) -> Step<Nothing> {
    let set = &scene.set;
    let of = PodOf {
        template: &set.data["spec"]["template"],
        kind: &DAEMON_SET,
        owner: set,
        node,
        placed: scene.home.placed(),
    };
    let mut pod = of.object();
    put(&mut pod["metadata"]["labels"], LABEL_REVISION, hash);
    if !pod["spec"].is_object() {
        pod["spec"] = json!({});
    }
    if pod["spec"]["nodeName"].is_null() {
        let named = json!({"key": "metadata.name", "operator": "In", "values": [node]});
        let terms = json!({"nodeSelectorTerms": [{"matchFields": [named]}]});
        let affinity = json!({"requiredDuringSchedulingIgnoredDuringExecution": terms});
        put_fields(&mut pod["spec"]["affinity"], "nodeAffinity", affinity);
    }
    pod["spec"]["tolerations"] = json!(tolerations(&pod["spec"]));
    let name = Name::within(namespace_of(set), &pod_name(set, node));
    let address = Address::new(Place::CLUSTER, &POD, name);
    let because = format!("node {node} has no pod of the DaemonSet");
    Step::write(Write::Create { address, object: pod }, because)
}

/// Puts an entry into a map, which may not be there yet.
fn put_fields(map: &mut Value, key: &str, value: Value) {
    if !map.is_object() {
        *map = json!({});
    }
    map[key] = value;
}

fn report(scene: &Scene, status: &Status) -> Step<Nothing> {
    let set = &scene.set;
    let change = status.patch(set, scene.now);
    let write = Write::patch_status(Place::CLUSTER, &DAEMON_SET, set, change);
    let step = Step::write(write, "the status differs from the pods");
    match &status.refusal {
        Some(refusal) => step.telling(Event {
            about: Address::new(Place::CLUSTER, &DAEMON_SET, Name::of(set)),
            uid: uid_of(set).to_owned(),
            importance: Importance::Warning,
            reason: "NotSupported",
            note: refusal.clone(),
        }),
        None => step,
    }
}
