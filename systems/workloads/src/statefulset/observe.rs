//! What is seen of a StatefulSet, of its pods, its claims and its revisions.

use super::decide::{ClaimOf, ClaimState, Facts, Keeper, Member, Set, Strategy};
use super::status::Status;
use crate::kinds::{CLAIM, POD, STATEFUL_SET};
use crate::live::Listing;
use crate::owned::{Claim, Owner, name_in, selector_of};
use crate::pod::Pod;
use crate::revisions::{self, LABEL_REVISION};
use crate::template::Home;
use interlock_kernel::metadata::{is_deleting, label, name_of, namespace_of, uid_of};
use interlock_kernel::{Address, LiveReads, Name, Nothing, Object, Observed, Place, Subject, View};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The longest name of a pod: it is a label and a host name.
const NAME_CHARACTERS: usize = 63;

/// The objects that one step is about.
#[derive(Debug)]
pub struct Scene {
    pub(super) now: Timestamp,
    pub(super) node: Arc<str>,
    pub(super) set: Object,
    pub(super) home: Home,
    /// The pods with the name of one of its ordinals, by ordinal.
    pub(super) pods: BTreeMap<u32, Object>,
    /// Claims by name.
    pub(super) claims: BTreeMap<String, Object>,
    /// Its revisions by name.
    pub(super) revisions: BTreeMap<String, Object>,
}

/// Reads what a step is about.
pub(super) fn observe(
    node: &Arc<str>,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> Observed<Facts, Scene> {
    let address = Address::new(Place::CLUSTER, &STATEFUL_SET, name_in(subject));
    let Some(set) = view.get(Place::CLUSTER, &STATEFUL_SET, &address.name) else {
        return Observed::nothing("the cache shows no such StatefulSet");
    };
    let selector = match selector_of(&set) {
        Ok(selector) => selector,
        Err(flaw) => return Observed::nothing(flaw),
    };
    let listing = Listing { owner: &address, kind: &POD };
    let (source, pods) = listing.list(Some(&set), view, live_reads);
    let pods: BTreeMap<u32, Object> = pods
        .into_iter()
        .filter_map(|pod| Some((ordinal(name_of(&set), name_of(&pod))?, pod)))
        .collect();
    let (revisions, revision_objects) =
        revisions::Of { kind: &STATEFUL_SET, owner: &set }.observe(view);
    let mut scene = Scene {
        now: view.now(),
        node: Arc::clone(node),
        home: Home::of(view, namespace_of(&set)),
        pods,
        claims: BTreeMap::new(),
        revisions: revision_objects,
        set,
    };
    let mut facts = Facts {
        set: set_fact(&scene.set, &scene.home),
        home: scene.home.clone(),
        revisions,
        pods: members(&scene, &selector),
        source,
        claims: Vec::new(),
        reported: Status::read(&scene.set),
    };
    let next = facts.next_absent();
    let own = facts.pods.iter().filter(|(_, member)| member.claim == Claim::Own);
    let ordinals: Vec<u32> = own.map(|(ordinal, _)| *ordinal).chain(next).collect();
    for ordinal in ordinals {
        facts.claims.extend(claims(&mut scene, ordinal, view));
    }
    Observed::Seen { facts, scene }
}

/// The ordinal of a pod by its name.
fn ordinal(set: &str, pod: &str) -> Option<u32> {
    let text = pod.strip_prefix(set)?.strip_prefix('-')?;
    let ordinal: u32 = text.parse().ok()?;
    (ordinal.to_string() == text).then_some(ordinal)
}

fn set_fact(set: &Object, home: &Home) -> Set {
    let spec = &set.data["spec"];
    let count = |value: &Value, default: u32| {
        value.as_i64().map_or(default, |count| u32::try_from(count.max(0)).unwrap_or(u32::MAX))
    };
    let first = count(&spec["ordinals"]["start"], 0);
    let partition = count(&spec["updateStrategy"]["rollingUpdate"]["partition"], 0);
    let retention = &spec["persistentVolumeClaimRetentionPolicy"];
    let replicas = count(&spec["replicas"], 1);
    let last = first.saturating_add(replicas.saturating_sub(1));
    Set {
        is_terminating: is_deleting(set),
        generation: set.metadata.generation.unwrap_or(0),
        first,
        replicas,
        is_ordered: spec["podManagementPolicy"] != "Parallel",
        strategy: match spec["updateStrategy"]["type"].as_str() {
            Some("OnDelete") => Strategy::OnDelete,
            _ => Strategy::DownTo(first.saturating_add(partition)),
        },
        deletes_claims_with_set: retention["whenDeleted"] == "Delete",
        deletes_claims_with_pod: retention["whenScaled"] == "Delete",
        history_limit: count(&spec["revisionHistoryLimit"], 10) as usize,
        refusal: refusal(set, home, last),
    }
}

/// Why no pod is made of a set.
fn refusal(set: &Object, home: &Home, last: u32) -> Option<String> {
    let longest = format!("{}-{last}", name_of(set));
    if longest.len() > NAME_CHARACTERS {
        return Some(format!(
            "the name of the last pod, {longest}, has {} characters, and a host name has at most \
             {NAME_CHARACTERS}; use a shorter metadata.name",
            longest.len()
        ));
    }
    let has_claims = templates(set).next().is_some();
    (has_claims && home.placed().is_some()).then(|| {
        "spec.volumeClaimTemplates is not supported in a placed namespace: claims that are made \
         on a cluster do not move with the namespace; make the claims at the hub, and name them \
         in spec.template.spec.volumes"
            .to_owned()
    })
}

fn members(scene: &Scene, selector: &LabelSelector) -> BTreeMap<u32, Member> {
    let owner = Owner { uid: uid_of(&scene.set), selector };
    let least = scene.set.data["spec"]["minReadySeconds"].as_i64().unwrap_or(0);
    let member = |pod: &Object| Member {
        pod: Pod::of(pod, least, scene.now),
        claim: owner.claim(pod),
        revision: label(pod, LABEL_REVISION).unwrap_or_default().to_owned(),
    };
    scene.pods.iter().map(|(ordinal, pod)| (*ordinal, member(pod))).collect()
}

/// The templates of the claims of a set.
pub(super) fn templates(set: &Object) -> impl Iterator<Item = &Value> {
    set.data["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten()
}

/// The name of the claim of an ordinal.
pub(super) fn claim_name(set: &Object, template: &Value, ordinal: u32) -> String {
    let template = template["metadata"]["name"].as_str().unwrap_or_default();
    format!("{template}-{}-{ordinal}", name_of(set))
}

/// The claims of an ordinal. Their objects are put into the scene.
fn claims(scene: &mut Scene, ordinal: u32, view: &dyn View) -> Vec<ClaimOf> {
    let set = Arc::clone(&scene.set);
    let mut claims = Vec::new();
    for (template, said) in templates(&set).enumerate() {
        let name = claim_name(&set, said, ordinal);
        let found = view.get(Place::CLUSTER, &CLAIM, &Name::within(namespace_of(&set), &name));
        let state = match &found {
            None => ClaimState::Absent,
            Some(claim) if is_deleting(claim) => ClaimState::Terminating,
            Some(claim) => ClaimState::Present(keeper(&set, scene.pods.get(&ordinal), claim)),
        };
        scene.claims.extend(found.map(|claim| (name, claim)));
        claims.push(ClaimOf { ordinal, template, state });
    }
    claims
}

/// With whom a claim is deleted, among the set and the pods that had its ordinal.
fn keeper(set: &Object, pod: Option<&Object>, claim: &Object) -> Keeper {
    let owners = claim.metadata.owner_references.iter().flatten();
    let ours: Vec<&str> = owners
        .filter(|owner| is_ours(set, &owner.kind, &owner.name, &owner.uid))
        .map(|owner| owner.uid.as_str())
        .collect();
    match ours[..] {
        [] => Keeper::Nobody,
        [uid] if uid == uid_of(set) => Keeper::Set,
        [uid] if pod.is_some_and(|pod| uid == uid_of(pod)) => Keeper::Pod,
        _ => Keeper::Mixed,
    }
}

/// Whether an owner of a claim is the set, or a pod with the name of one of its ordinals.
pub(super) fn is_ours(set: &Object, kind: &str, name: &str, uid: &str) -> bool {
    uid == uid_of(set) || (kind == POD.kind && ordinal(name_of(set), name).is_some())
}

/// Whether a claim may be one of a set, by its name.
pub(super) fn may_have(set: &Object, claim: &Object) -> bool {
    templates(set).any(|template| {
        let template = template["metadata"]["name"].as_str().unwrap_or_default();
        let pod = name_of(claim).strip_prefix(template).and_then(|it| it.strip_prefix('-'));
        pod.is_some_and(|pod| ordinal(name_of(set), pod).is_some())
    })
}
