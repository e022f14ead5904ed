//! What the labels of a namespace and its claims say, and what the grant says.

use super::decide::{Claim, Facts, Found, Grant, Labels, Listed, Mirror, Missing, Since};
use crate::kinds::{CLAIM, GRANT, NAMESPACE, NAMESPACES_BY_GRANT};
use crate::record::{GrantRecord, syncers};
use interlock_api::names::{
    DELETION_PREFIX, FINALIZER_CLAIM, STATE_EMPTY, STATE_PREFIX, STATE_SYNC, deletion_annotation,
    state_label,
};
use interlock_api::placement;
use interlock_kernel::metadata::{has_finalizer, is_deleting, name_of, uid_of};
use interlock_kernel::{Address, LiveReads, Name, Nothing, Object, Observed, Place, View};
use jiff::Timestamp;
use kube_core::DynamicObject;

/// The objects that one step is about.
#[derive(Debug)]
pub struct Scene {
    pub(crate) now: Timestamp,
    pub(crate) grant_name: String,
    pub(crate) namespace: Object,
    pub(crate) grant: Option<GrantRecord>,
    pub(crate) claims: Vec<Object>,
    /// Listed, and not in the cache.
    pub(crate) missing: Vec<placement::Claim>,
}

impl Scene {
    /// The uid of the cluster that labels can name.
    pub(crate) fn owner(&self) -> Option<&str> {
        let owner = self.grant.as_ref()?.status.owner.as_ref()?;
        Some(&owner.uid)
    }
}

/// A label or an annotation.
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) value: &'static str,
}

impl Mirror {
    /// The label that names the owner, if it is named.
    pub(crate) fn label(self, owner: Option<&str>) -> Option<Entry> {
        let value = match self {
            Mirror::Nobody => return None,
            Mirror::Arriving | Mirror::Leaving(_) => STATE_EMPTY,
            Mirror::Usable => STATE_SYNC,
        };
        owner.map(|owner| Entry { key: state_label(owner), value })
    }

    /// The annotation that tells a leaving owner from an arriving one, and since when it leaves.
    fn leaving_key(self, owner: Option<&str>) -> Option<String> {
        match self {
            Mirror::Nobody | Mirror::Arriving | Mirror::Usable => None,
            Mirror::Leaving(_) => owner.map(deletion_annotation),
        }
    }

    /// Whether an object says this, and nothing else.
    fn is_on(self, object: &DynamicObject, owner: Option<&str>) -> bool {
        let (label, leaving) = (self.label(owner), self.leaving_key(owner));
        let have = object.metadata.labels.as_ref();
        let is_there = label.as_ref().is_none_or(|wanted| {
            let value = have.and_then(|labels| labels.get(&wanted.key));
            value.is_some_and(|value| value == wanted.value)
        });
        let is_noted = leaving.as_ref().is_none_or(|key| has_annotation(object, key));
        let key = label.as_ref().map(|label| &label.key);
        let mut labels = have.into_iter().flatten();
        let mut notes = object.metadata.annotations.iter().flatten();
        is_there
            && is_noted
            && labels.all(|(known, _)| !known.starts_with(STATE_PREFIX) || Some(known) == key)
            && notes.all(|(known, _)| {
                !known.starts_with(DELETION_PREFIX) || Some(known) == leaving.as_ref()
            })
    }
}

fn has_annotation(object: &DynamicObject, key: &str) -> bool {
    object.metadata.annotations.as_ref().is_some_and(|notes| notes.contains_key(key))
}

pub(crate) fn grant_address(name: &str) -> Address {
    Address::new(Place::HUB, &GRANT, Name::cluster_wide(name))
}

pub(crate) fn claim_address(namespace: &Object, claim: &str) -> Address {
    Address::new(Place::HUB, &CLAIM, Name::within(name_of(namespace), claim))
}

/// Reads what a step is about.
pub(crate) fn observe(
    grant_name: &str,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> Observed<Facts, Scene> {
    let found = view.get(Place::HUB, &GRANT, &Name::cluster_wide(grant_name));
    let grant = match found.as_ref().map(GrantRecord::read).transpose() {
        Ok(grant) => grant,
        Err(flaw) => {
            return Observed::nothing(format!("grant {grant_name} cannot be read: {flaw}"));
        }
    };
    let namespace = match &grant {
        Some(grant) => {
            let name = Name::cluster_wide(&grant.spec.namespace.name);
            let found = view.get(Place::HUB, &NAMESPACE, &name);
            found.filter(|found| uid_of(found) == grant.spec.namespace.uid)
        }
        None => view.find(Place::HUB, &NAMESPACES_BY_GRANT, grant_name).into_iter().next(),
    };
    let Some(namespace) = namespace else {
        return Observed::nothing("there is no such namespace, as far as the cache knows");
    };
    let claims = view.list(Place::HUB, &CLAIM, Some(name_of(&namespace)));
    let is_missing =
        |listed: &&placement::Claim| !claims.iter().any(|claim| uid_of(claim) == listed.uid);
    let listed = grant.iter().flat_map(|grant| &grant.status.claims);
    let scene = Scene {
        now: view.now(),
        grant_name: grant_name.to_owned(),
        missing: listed.filter(is_missing).cloned().collect(),
        namespace,
        grant,
        claims,
    };
    Observed::Seen { facts: facts(&scene, live_reads), scene }
}

fn facts(scene: &Scene, live_reads: &LiveReads<Nothing>) -> Facts {
    Facts {
        grant: scene.grant.as_ref().map(|grant| Grant {
            phase: grant.status.phase,
            has_owner: grant.status.owner.is_some(),
            is_filled: grant.is_filled(),
            has_copies: !grant.status.copies.is_empty(),
        }),
        namespace: labels(scene, &scene.namespace),
        claims: scene.claims.iter().map(|claim| claim_facts(scene, claim, live_reads)).collect(),
        missing: scene.missing.iter().map(|claim| missing(scene, claim, live_reads)).collect(),
    }
}

fn labels(scene: &Scene, object: &DynamicObject) -> Labels {
    let owner = scene.owner();
    let known = [Mirror::Nobody, Mirror::Arriving, Mirror::Usable, Mirror::Leaving(Since::Noted)];
    let leaving = owner.map(deletion_annotation);
    Labels {
        say: known.into_iter().find(|mirror| mirror.is_on(object, owner)),
        is_leaving_noted: leaving.is_some_and(|key| has_annotation(object, &key)),
    }
}

fn claim_facts(scene: &Scene, claim: &Object, live_reads: &LiveReads<Nothing>) -> Claim {
    let uid = uid_of(claim);
    let lists = |grant: &Object| {
        let claims = grant.data["status"]["claims"].as_array().into_iter().flatten();
        claims.into_iter().any(|listed| listed["uid"] == uid)
    };
    let truth = live_reads
        .objects
        .get(&grant_address(&scene.grant_name))
        .map(|grant| if grant.as_ref().is_some_and(lists) { Listed::Yes } else { Listed::No });
    Claim {
        labels: labels(scene, claim),
        is_held: has_finalizer(claim, FINALIZER_CLAIM),
        is_deleting: is_deleting(claim),
        is_listed: scene.grant.as_ref().is_some_and(|grant| grant.lists(uid)),
        truth,
        is_on_cluster: syncers(claim).next().is_some(),
    }
}

fn missing(scene: &Scene, claim: &placement::Claim, live_reads: &LiveReads<Nothing>) -> Missing {
    let found = match live_reads.objects.get(&claim_address(&scene.namespace, &claim.name)) {
        None => Found::NotRead,
        Some(Some(found)) if uid_of(found) == claim.uid => Found::There,
        Some(_) => Found::Gone,
    };
    Missing { fill: claim.fill, found }
}
