//! Which object is brought down, or taken away, next.
//!
//! Nothing is deleted because it is not at the hub. An object is deleted on the cluster when the
//! very object at the hub that it was made from says that it is going, or when another one has
//! taken its name there; our finalizer keeps it at the hub until a fresh look shows it gone here.

use super::compare::contains;
use super::desired::{desired, is_carried};
use crate::kinds::{CLAIM, POD, SERVICE_ACCOUNT, STATEFUL_SET};
use crate::syncer::marks::{from_uid, has_finalizer, is_going, is_ours, name, uid};
use crate::syncer::observe::Scene;
use interlock_api::names::FINALIZER_KEEP;
use interlock_api::placement::Fill;
use interlock_kernel::{Address, Kind, Name, Object, Place};
use serde_json::Value;

/// One thing to do about one object.
#[derive(Debug, Clone)]
pub(in crate::syncer) enum Chore {
    /// Put our finalizer on the object at the hub.
    PutFinalizer(Kind, Object),
    /// Bring it to what the hub says; the second is what is there.
    Apply(Kind, Object, Option<Object>),
    /// Let a volume go whose claim goes at the hub.
    Unkeep(Object),
    /// Delete the one on the cluster.
    Delete {
        /// Of which kind.
        kind: Kind,
        /// The object on the cluster.
        here: Object,
        /// How long it may take to stop, if people said so.
        grace_seconds: Option<u32>,
    },
    /// See for certain whether it is gone on the cluster.
    LookWhetherGone(Address),
    /// Take our finalizer off the object at the hub.
    TakeFinalizerOff(Kind, Object),
}

/// What there is to do about the objects of a namespace.
#[derive(Debug, Default)]
pub(in crate::syncer) struct Survey {
    /// The next thing.
    pub(in crate::syncer) chore: Option<Chore>,
    /// What cannot be brought down, and why.
    pub(in crate::syncer) held_back: Vec<String>,
}

enum Verdict {
    Fine,
    Do(Chore),
    HoldBack(String),
}

/// Looks at all objects of the namespace: first at those that go, then at those that come.
pub(in crate::syncer) fn survey(scene: &Scene<'_>) -> Survey {
    let mut survey = Survey::default();
    for kind in scene.syncer.kinds.carried().rev() {
        for hub in scene.at_hub(kind) {
            if is_going(&hub) && has_finalizer(&hub, &scene.syncer.finalizer) {
                survey.chore = removal(scene, kind, &hub);
            }
            if survey.chore.is_some() {
                return survey;
            }
        }
    }
    for kind in scene.syncer.kinds.applied() {
        for hub in scene.at_hub(kind) {
            match application(scene, kind, &hub) {
                Verdict::Fine => {}
                Verdict::HoldBack(why) => {
                    survey.held_back.push(format!("{kind} {}: {why}", name(&hub)));
                }
                Verdict::Do(chore) => {
                    survey.chore = Some(chore);
                    return survey;
                }
            }
        }
    }
    survey
}

fn removal(scene: &Scene<'_>, kind: &Kind, hub: &Object) -> Option<Chore> {
    let address = Address::new(Place::CLUSTER, kind, Name::within(scene.name, name(hub)));
    let is_its = |here: &&Object| is_ours(here, scene.name) && from_uid(here) == Some(uid(hub));
    let here = scene.view.get(Place::CLUSTER, kind, &address.name);
    let Some(here) = here.as_ref().filter(is_its) else {
        return match scene.looks.objects.get(&address) {
            None => Some(Chore::LookWhetherGone(address)),
            // The cache will show it soon.
            Some(Some(here)) if is_its(&here) => None,
            Some(_) => Some(Chore::TakeFinalizerOff(kind.clone(), hub.clone())),
        };
    };
    if *kind == CLAIM && is_in_use(scene, name(hub)) {
        return None;
    }
    if has_finalizer(here, FINALIZER_KEEP) {
        return Some(Chore::Unkeep(here.clone()));
    }
    if is_going(here) {
        return None;
    }
    let grace_seconds = match *kind == POD {
        true => hub.metadata.deletion_grace_period_seconds.and_then(|s| u32::try_from(s).ok()),
        false => None,
    };
    Some(Chore::Delete { kind: kind.clone(), here: here.clone(), grace_seconds })
}

/// Whether a pod on the cluster has the claim.
fn is_in_use(scene: &Scene<'_>, claim: &str) -> bool {
    let pods = scene.view.list(Place::CLUSTER, &POD, Some(scene.name));
    pods.iter().any(|pod| claims_of(&pod.data["spec"]).any(|used| used == claim))
}

/// What there is to do to have one object of the hub here; the error says why it cannot be had.
pub(in crate::syncer) fn bring(
    scene: &Scene<'_>,
    kind: &Kind,
    hub: &Object,
) -> Result<Option<Chore>, String> {
    match application(scene, kind, hub) {
        Verdict::Fine => Ok(None),
        Verdict::Do(chore) => Ok(Some(chore)),
        Verdict::HoldBack(why) => Err(why),
    }
}

fn application(scene: &Scene<'_>, kind: &Kind, hub: &Object) -> Verdict {
    if is_going(hub) || !is_carried(kind, hub) || is_made_by_another(scene, hub) {
        return Verdict::Fine;
    }
    // It ran, and a pod runs once: on another cluster it would run again.
    if *kind == POD && is_finished(hub) {
        return Verdict::Fine;
    }
    if let Some(why) = waits_for(scene, kind, hub) {
        return Verdict::HoldBack(why);
    }
    let here = scene.view.get(Place::CLUSTER, kind, &Name::within(scene.name, name(hub)));
    if let Some(here) = &here {
        // Each namespace has a default service account from the start.
        let is_given = *kind == SERVICE_ACCOUNT && name(hub) == "default";
        if !is_ours(here, scene.name) && !is_given {
            return Verdict::HoldBack("the name is taken on the cluster".to_owned());
        }
        if is_going(here) {
            return Verdict::Fine;
        }
        let is_replaced = from_uid(here).is_some_and(|from| from != uid(hub));
        if is_replaced && scene.syncer.kinds.is_workload(kind) {
            let (kind, here) = (kind.clone(), here.clone());
            return Verdict::Do(Chore::Delete { kind, here, grace_seconds: None });
        }
    }
    if !has_finalizer(hub, &scene.syncer.finalizer) {
        return Verdict::Do(Chore::PutFinalizer(kind.clone(), hub.clone()));
    }
    if here.as_ref().is_some_and(|here| is_up_to_date(kind, (hub, here), scene.name)) {
        return Verdict::Fine;
    }
    Verdict::Do(Chore::Apply(kind.clone(), hub.clone(), here))
}

fn is_up_to_date(kind: &Kind, (hub, here): (&Object, &Object), grant: &str) -> bool {
    let wanted = desired(kind, hub, grant);
    let metadata = serde_json::to_value(&here.metadata).unwrap_or_default();
    let (Some(fields), true) = (wanted.as_object(), contains(&metadata, &wanted["metadata"]))
    else {
        return false;
    };
    let mut fields = fields.iter().filter(|(field, _)| *field != "metadata");
    fields.all(|(field, value)| contains(&here.data[field.as_str()], value))
}

/// Whether a controller makes it from an object that goes down itself.
fn is_made_by_another(scene: &Scene<'_>, hub: &Object) -> bool {
    let owners = hub.metadata.owner_references.iter().flatten();
    owners.filter(|owner| owner.controller == Some(true)).any(|owner| {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        scene.syncer.kinds.carries(group, &owner.kind)
    })
}

/// Whether a pod ran to its end.
pub(in crate::syncer) fn is_finished(pod: &Object) -> bool {
    matches!(pod.data["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

/// What a workload has to wait for. One that uses a claim which the hub does not know to be filled
/// could write to it unseen, and a move would then leave that behind.
fn waits_for(scene: &Scene<'_>, kind: &Kind, hub: &Object) -> Option<String> {
    if !scene.syncer.kinds.is_workload(kind) {
        return None;
    }
    let spec = &hub.data["spec"];
    let templates = spec["volumeClaimTemplates"].as_array();
    if *kind == STATEFUL_SET && templates.is_some_and(|templates| !templates.is_empty()) {
        let why = "volumeClaimTemplates are not supported: their claims would not be at the hub";
        return Some(why.to_owned());
    }
    let in_pods = claims_of(spec).chain(claims_of(&spec["template"]["spec"]));
    let mut used = in_pods.chain(claims_of(&spec["jobTemplate"]["spec"]["template"]["spec"]));
    let listed = scene.grant.as_ref().map(|grant| grant.status.claims.as_slice());
    used.find_map(|claim| {
        let listed = listed.unwrap_or_default().iter().find(|listed| listed.name == claim);
        let is_filled = listed.is_some_and(|listed| listed.fill == Fill::Filled);
        (!is_filled).then(|| format!("it waits for claim {claim}"))
    })
}

/// The claims that a pod uses.
fn claims_of(pod_spec: &Value) -> impl Iterator<Item = &str> {
    let volumes = pod_spec["volumes"].as_array().into_iter().flatten();
    volumes.filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str())
}
