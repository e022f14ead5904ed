//! How sources and destinations are found: by what a change is about.

use super::intent::Intent;
use super::slots;
use crate::kinds::{DESTINATION, SOURCE};
use crate::objects::{label, namespace_of, uid_of};
use interlock_api::names::LABEL_SLOT;
use interlock_kernel::{Index, Kind, Name, Object, Place, Subject, View};
use kube_core::DynamicObject;
use std::sync::Arc;

/// When a place is free again, so many of those that wait for one are reported.
const TOLD: usize = 8;

/// Sources by the claim that they are of.
pub(crate) const SOURCES_BY_CLAIM: Index = Index {
    name: "by-claim",
    kind: SOURCE,
    values: |source| within(source, &[source.data["spec"]["sourcePVC"].as_str()]),
};
/// Destinations by the claim that they write.
pub(crate) const DESTINATIONS_BY_CLAIM: Index = Index {
    name: "by-claim",
    kind: DESTINATION,
    values: |destination| {
        let spec = &destination.data["spec"];
        let own =
            format!("volsync-{}-dest", destination.metadata.name.as_deref().unwrap_or_default());
        within(
            destination,
            &[
                spec["restic"]["destinationPVC"].as_str(),
                spec["external"]["parameters"]["destinationPVC"].as_str(),
                Some(&own),
            ],
        )
    },
};
/// Sources by the Secrets and ConfigMaps that they read.
pub(crate) const SOURCES_BY_SECRET: Index =
    Index { name: "by-secret", kind: SOURCE, values: secrets };
/// Destinations by the Secrets and ConfigMaps that they read.
pub(crate) const DESTINATIONS_BY_SECRET: Index =
    Index { name: "by-secret", kind: DESTINATION, values: secrets };
/// Destinations by the source that they copy, on whichever cluster that is.
pub(crate) const DESTINATIONS_BY_SOURCE: Index = Index {
    name: "by-source",
    kind: DESTINATION,
    values: |destination| {
        let named = destination.data["spec"]["external"]["parameters"]["source"].as_str();
        let path = named.and_then(|named| named.split('@').next());
        path.map(str::to_owned).into_iter().collect()
    },
};
/// Sources with an intent, by the places that they need one of.
pub(crate) const SOURCES_BY_PLACES: Index =
    Index { name: "by-places", kind: SOURCE, values: places };
/// Destinations with an intent, by the places that they need one of.
pub(crate) const DESTINATIONS_BY_PLACES: Index =
    Index { name: "by-places", kind: DESTINATION, values: places };

fn within(object: &DynamicObject, names: &[Option<&str>]) -> Vec<String> {
    let namespace = namespace_of(object);
    let names = names.iter().flatten().filter(|name| !name.is_empty());
    names.map(|name| format!("{namespace}/{name}")).collect()
}

fn secrets(object: &DynamicObject) -> Vec<String> {
    let spec = &object.data["spec"];
    let restic = &spec["restic"];
    within(
        object,
        &[
            restic["repository"].as_str(),
            restic["customCA"]["secretName"].as_str(),
            restic["customCA"]["configMapName"].as_str(),
            spec["external"]["parameters"]["repository"].as_str(),
        ],
    )
}

fn places(object: &DynamicObject) -> Vec<String> {
    let intent = Intent::read(object).ok().flatten();
    intent.map(|intent| intent.places).filter(|places| !places.is_empty()).into_iter().collect()
}

pub(crate) fn subject_of(object: &Object) -> Subject {
    Arc::from(Name::of(object).to_string())
}

/// The object that a snapshot or a claim was made for, if it is of this kind.
pub(crate) fn owner_subject(object: &Object, kind: &Kind) -> Vec<Subject> {
    let owners = object.metadata.owner_references.iter().flatten();
    let ours = owners.filter(|owner| owner.kind == *kind.kind);
    ours.map(|owner| Arc::from(format!("{}/{}", namespace_of(object), owner.name))).collect()
}

/// Whom a change of a place concerns: who has it, or some of those that wait for one. All of them
/// would be a herd; the others are requeued after a while.
pub(crate) fn waiting(lease: &Object, index: &Index, view: &dyn View) -> Vec<Subject> {
    let Some(places) = label(lease, LABEL_SLOT) else { return Vec::new() };
    let holder = slots::sync_of(lease);
    let mut waiting: Vec<(bool, String, Object)> = Vec::new();
    for object in view.find(Place::CLUSTER, index, places) {
        let Ok(Some(intent)) = Intent::read(&object) else { continue };
        let is_holder = holder == Some(intent.id.as_str());
        let has_place = matches!(slots::slot_of(places, &intent.id, view), slots::Slot::Mine(_));
        if is_holder || !has_place {
            let since = intent.began.0.to_string();
            waiting.push((!is_holder, format!("{since} {}", uid_of(&object)), object));
        }
    }
    waiting.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
    waiting.iter().take(TOLD).map(|(_, _, object)| subject_of(object)).collect()
}
