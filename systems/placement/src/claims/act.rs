//! What is written about the claims of a namespace: one object a step.

use super::decide::{Decision, Mirror, Since, Why};
use super::observe::{Scene, claim_address, grant_address};
use crate::kinds::{CLAIM, NAMESPACE};
use interlock_api::names::{DELETION_PREFIX, FINALIZER_CLAIM, STATE_PREFIX, deletion_annotation};
use interlock_kernel::metadata::{finalizers_with, finalizers_without, name_of, uid_of};
use interlock_kernel::{Address, Nothing, Object, Place, Read, Step, Write};
use kube_core::DynamicObject;
use serde_json::{Map, Value, json};

/// The one effect of a decision.
pub(crate) fn act(scene: &Scene, decision: Decision) -> Step<Nothing> {
    match decision {
        Decision::Nothing(why) => Step::rest(resting(why)),
        Decision::MirrorNamespace(mirror) => {
            let change = json!({ "metadata": labelled(scene, &scene.namespace, mirror) });
            let write = Write::patch(Place::HUB, &NAMESPACE, &scene.namespace, change);
            Step::write(write, "the labels of the namespace differ from the grant")
        }
        Decision::MirrorClaim(place, mirror) => at(&scene.claims, place, |claim| {
            write_claim(claim, labelled(scene, claim, mirror), stale(claim))
        }),
        Decision::HoldClaim(place, mirror) => at(&scene.claims, place, |claim| {
            let mut metadata = labelled(scene, claim, mirror);
            metadata["finalizers"] = json!(finalizers_with(claim, FINALIZER_CLAIM));
            write_claim(claim, metadata, stale(claim))
        }),
        Decision::ReadGrant => live_read(
            grant_address(&scene.grant_name),
            "a claim is being deleted, and the cache may not yet show which cluster owns it",
        ),
        Decision::ReadMissing(place) => at(&scene.missing, place, |claim| {
            live_read(
                claim_address(&scene.namespace, &claim.name),
                "a listed claim is not in the cache; only a live read can show that it is gone",
            )
        }),
        Decision::Unlist(place) => at(&scene.claims, place, |claim| {
            unlist(scene, uid_of(claim), "the claim is being deleted, and no cluster has it")
        }),
        Decision::UnlistMissing(place) => at(&scene.missing, place, |claim| {
            unlist(scene, &claim.uid, "the claim is not at the hub, and was never filled")
        }),
        Decision::LetGo(place) => at(&scene.claims, place, |claim| {
            let finalizers = finalizers_without(claim, FINALIZER_CLAIM);
            let because = format!("no cluster has claim {}", name_of(claim));
            write_claim(claim, json!({ "finalizers": finalizers }), because)
        }),
    }
}

/// What is done about the claim at a place of the facts.
fn at<T>(claims: &[T], place: usize, does: impl FnOnce(&T) -> Step<Nothing>) -> Step<Nothing> {
    claims.get(place).map_or_else(gone, does)
}

fn write_claim(claim: &Object, metadata: Value, because: String) -> Step<Nothing> {
    let change = json!({ "metadata": metadata });
    Step::write(Write::patch(Place::HUB, &CLAIM, claim, change), because)
}

fn stale(claim: &Object) -> String {
    format!("claim {} does not mirror the grant", name_of(claim))
}

fn gone() -> Step<Nothing> {
    Step::rest("the claim does not exist any more")
}

fn live_read(address: Address, because: &str) -> Step<Nothing> {
    Step::LiveRead { reads: vec![Read::Object(address)], because: because.to_owned() }
}

fn resting(why: Why) -> &'static str {
    match why {
        Why::NoGrant => "the namespace has no grant, as far as the cache knows",
        Why::Mirrored => "the labels of the namespace match the grant",
        Why::OwnerHasIt => "a claim is being deleted; the cluster that has it deletes it first",
        Why::CopiesLeft => "the claim is deleted with its namespace once no cluster has its data",
        Why::CacheBehind => "the live state at the hub differs from the cache",
    }
}

/// The labels and annotations that make an object say this. What other clusters have on it goes in
/// the same write, so that at no time two of them are named.
fn labelled(scene: &Scene, object: &DynamicObject, mirror: Mirror) -> Value {
    let stale = |keys: Vec<&String>, prefix: &str| -> Map<String, Value> {
        let ours = keys.into_iter().filter(|key| key.starts_with(prefix));
        ours.map(|key| (key.clone(), Value::Null)).collect()
    };
    let mut labels =
        stale(object.metadata.labels.iter().flatten().map(|(k, _)| k).collect(), STATE_PREFIX);
    if let Some(label) = mirror.label(scene.owner()) {
        labels.insert(label.key, json!(label.value));
    }
    let known = object.metadata.annotations.as_ref();
    let mut notes = stale(known.into_iter().flatten().map(|(k, _)| k).collect(), DELETION_PREFIX);
    if let (Mirror::Leaving(since), Some(owner)) = (mirror, scene.owner()) {
        let key = deletion_annotation(owner);
        let since = match since {
            Since::Noted => known.and_then(|known| known.get(&key)).cloned().unwrap_or_default(),
            Since::Now => second_of(scene),
        };
        notes.insert(key, json!(since));
    }
    json!({"labels": labels, "annotations": notes})
}

fn second_of(scene: &Scene) -> String {
    let whole = jiff::Timestamp::from_second(scene.now.as_second()).unwrap_or(scene.now);
    whole.to_string()
}

fn unlist(scene: &Scene, uid: &str, because: &str) -> Step<Nothing> {
    let Some(grant) = &scene.grant else { return gone() };
    let (mut claims, mut pins) = (grant.status.claims.clone(), grant.status.pins.clone());
    let names: Vec<String> =
        claims.iter().filter(|claim| claim.uid == uid).map(|claim| claim.name.clone()).collect();
    claims.retain(|claim| claim.uid != uid);
    pins.retain(|pin| pin.claim_uid != uid);
    let write = grant.write_status(json!({"claims": claims, "pins": pins}));
    Step::write(write, format!("claim {} is removed from the list: {because}", names.join(", ")))
}
