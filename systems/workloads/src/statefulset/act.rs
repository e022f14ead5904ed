//! A decision about a StatefulSet as one step.

use super::decide::{Decision, Keeper};
use super::observe::{Scene, claim_name, is_ours, templates};
use super::status::Status;
use super::{LABEL_POD_INDEX, LABEL_POD_NAME};
use crate::kinds::{CLAIM, CONTROLLER_REVISION, POD, STATEFUL_SET};
use crate::live::Listing;
use crate::owned::{adopting, releasing};
use crate::revisions::{self, Change, LABEL_REVISION};
use crate::template::{PodOf, put};
use interlock_kernel::metadata::{name_of, namespace_of, uid_of};
use interlock_kernel::{
    Address, Event, Importance, Kind, Name, Nothing, Object, Place, Step, Write,
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
            because: "the StatefulSet has changed since the cache saw it".to_owned(),
            at_most: CACHE_DELAY,
        },
        Decision::WaitForPod(at_most) => Step::Wait {
            because: "a pod is ready, and not yet for minReadySeconds".to_owned(),
            at_most,
        },
        Decision::ReadLive => read_live(scene),
        Decision::Revise(change) => revise(scene, &change),
        Decision::Adopt(ordinal) => with_pod(scene, ordinal, |pod| {
            let change = adopting(&STATEFUL_SET, &scene.set, pod);
            let write = Write::patch(Place::CLUSTER, &POD, pod, change);
            Step::write(write, "the pod has the name of an ordinal, and no owner")
        }),
        Decision::Release(ordinal) => with_pod(scene, ordinal, |pod| {
            let write = Write::patch(Place::CLUSTER, &POD, pod, releasing(&scene.set, pod));
            Step::write(write, "the labels of the pod do not match the selector any more")
        }),
        Decision::CreateClaim(ordinal, template) => create_claim(scene, ordinal, template),
        Decision::Keep(ordinal, template, keeper) => keep(scene, ordinal, template, keeper),
        Decision::CreatePod(ordinal, revision) => create_pod(scene, ordinal, &revision),
        Decision::DeletePod(ordinal, because) => with_pod(scene, ordinal, |pod| {
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
    ordinal: u32,
    step: impl FnOnce(&Object) -> Step<Nothing>,
) -> Step<Nothing> {
    match scene.pods.get(&ordinal) {
        Some(pod) => step(pod),
        None => Step::rest(format!("there is no pod of ordinal {ordinal} any more")),
    }
}

fn read_live(scene: &Scene) -> Step<Nothing> {
    let owner = Address::new(Place::CLUSTER, &STATEFUL_SET, Name::of(&scene.set));
    let listing = Listing { owner: &owner, kind: &POD };
    let because = "a pod is deleted only by what the others are now".to_owned();
    Step::LiveRead { reads: listing.reads(), because }
}

fn revise(scene: &Scene, change: &Change) -> Step<Nothing> {
    let of = revisions::Of { kind: &STATEFUL_SET, owner: &scene.set };
    match of.write(change, &scene.revisions) {
        Some(write) => Step::write(write, "the present template has the newest revision"),
        None => Step::rest("the revision does not exist any more"),
    }
}

fn create_claim(scene: &Scene, ordinal: u32, template: usize) -> Step<Nothing> {
    let set = &scene.set;
    let Some(template) = templates(set).nth(template) else {
        return Step::rest("the StatefulSet has no such claim");
    };
    let name = Name::within(namespace_of(set), &claim_name(set, template, ordinal));
    let mut labels = template["metadata"]["labels"].clone();
    let selected = set.data["spec"]["selector"]["matchLabels"].as_object().into_iter().flatten();
    for (key, value) in selected {
        put(&mut labels, key, value.as_str().unwrap_or_default());
    }
    let object = json!({
        "metadata": {"labels": labels, "annotations": template["metadata"]["annotations"]},
        "spec": template["spec"],
    });
    let address = Address::new(Place::CLUSTER, &CLAIM, name);
    let because = format!("ordinal {ordinal} needs its claim before its pod");
    Step::write(Write::Create { address, object }, because)
}

/// A claim that is deleted with an object is owned by it: the garbage collector deletes the claim.
fn keep(scene: &Scene, ordinal: u32, template: usize, keeper: Keeper) -> Step<Nothing> {
    let set = &scene.set;
    let claim = templates(set).nth(template).map(|it| claim_name(set, it, ordinal));
    let Some(claim) = claim.and_then(|name| scene.claims.get(&name)) else {
        return Step::rest(format!("ordinal {ordinal} has no such claim any more"));
    };
    let owner = |kind: &Kind, object: &Object| {
        json!({"apiVersion": kind.api_version(), "kind": kind.kind, "name": name_of(object),
            "uid": uid_of(object)})
    };
    let kept = match keeper {
        Keeper::Set => Some(owner(&STATEFUL_SET, set)),
        Keeper::Pod => scene.pods.get(&ordinal).map(|pod| owner(&POD, pod)),
        Keeper::Nobody | Keeper::Mixed => None,
    };
    let known = claim.metadata.owner_references.iter().flatten();
    let others = known.filter(|it| !is_ours(set, &it.kind, &it.name, &it.uid));
    let owners: Vec<Value> = others.map(|it| json!(it)).chain(kept).collect();
    let change = json!({"metadata": {"ownerReferences": owners}});
    let write = Write::patch(Place::CLUSTER, &CLAIM, claim, change);
    Step::write(write, "persistentVolumeClaimRetentionPolicy says with whom the claim is deleted")
}

fn create_pod(scene: &Scene, ordinal: u32, revision: &str) -> Step<Nothing> {
    let Some(found) = scene.revisions.get(revision) else {
        return Step::rest(format!("ControllerRevision {revision} does not exist any more"));
    };
    let set = &scene.set;
    let template = revisions::template_in(found);
    let name = format!("{}-{ordinal}", name_of(set));
    let of = PodOf {
        template: &template,
        kind: &STATEFUL_SET,
        owner: set,
        node: &scene.node,
        placed: scene.home.placed(),
    };
    let mut pod = of.object();
    let labels = &mut pod["metadata"]["labels"];
    put(labels, LABEL_REVISION, revision);
    put(labels, LABEL_POD_NAME, &name);
    put(labels, LABEL_POD_INDEX, &ordinal.to_string());
    if !pod["spec"].is_object() {
        pod["spec"] = json!({});
    }
    pod["spec"]["hostname"] = json!(name);
    if let Some(service) = set.data["spec"]["serviceName"].as_str().filter(|it| !it.is_empty()) {
        pod["spec"]["subdomain"] = json!(service);
    }
    let volumes = volumes(set, &pod["spec"]["volumes"], ordinal);
    if !volumes.is_empty() {
        pod["spec"]["volumes"] = json!(volumes);
    }
    let name = Name::within(namespace_of(set), &name);
    let address = Address::new(Place::CLUSTER, &POD, name);
    let because = format!("ordinal {ordinal} has no pod");
    Step::write(Write::Create { address, object: pod }, because)
}

/// The volumes of a pod: a claim of its own comes in place of a volume of that name.
fn volumes(set: &Object, said: &Value, ordinal: u32) -> Vec<Value> {
    let claims = templates(set).map(|template| {
        let claim = claim_name(set, template, ordinal);
        let name = &template["metadata"]["name"];
        json!({"name": name, "persistentVolumeClaim": {"claimName": claim}})
    });
    let claims: Vec<Value> = claims.collect();
    let is_claim = |volume: &Value| claims.iter().any(|claim| claim["name"] == volume["name"]);
    let others = said.as_array().into_iter().flatten().filter(|volume| !is_claim(volume));
    claims.iter().chain(others).cloned().collect()
}

fn report(scene: &Scene, status: &Status) -> Step<Nothing> {
    let set = &scene.set;
    let change = status.patch(set, scene.now);
    let write = Write::patch_status(Place::CLUSTER, &STATEFUL_SET, set, change);
    let step = Step::write(write, "the status differs from the pods");
    match &status.refusal {
        Some(refusal) => step.telling(Event {
            about: Address::new(Place::CLUSTER, &STATEFUL_SET, Name::of(set)),
            uid: uid_of(set).to_owned(),
            importance: Importance::Warning,
            reason: "NotSupported",
            note: refusal.clone(),
        }),
        None => step,
    }
}
