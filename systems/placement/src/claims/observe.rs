//! What the labels of a namespace and its claims say, and what the grant says.

use super::decide::{Claim, Facts, Grant, Listed, Missing};
use crate::kinds::{CLAIM, GRANT, NAMESPACE, NAMESPACES_BY_GRANT};
use crate::record::{GrantRecord, has_finalizer, is_deleting, name_of, uid_of};
use interlock_api::names::{
    DELETION_PREFIX, FINALIZER_CLAIM, STATE_EMPTY, STATE_PREFIX, STATE_SYNC,
    SYNCER_FINALIZER_PREFIX, deletion_annotation, state_label,
};
use interlock_api::placement::{self, Fill, Phase};
use interlock_kernel::{Address, Looks, Name, Nothing, Object, Place, View};
use jiff::Timestamp;
use kube_core::DynamicObject;

/// The objects that one step is about, and the facts in them.
pub(crate) struct Scene {
    pub(crate) now: Timestamp,
    pub(crate) grant_name: String,
    pub(crate) namespace: Object,
    pub(crate) grant: Option<GrantRecord>,
    /// What the labels are to say.
    pub(crate) state: State,
    pub(crate) claims: Vec<Object>,
    /// Listed, never filled, and not in the cache.
    pub(crate) missing: Vec<placement::Claim>,
    pub(crate) facts: Facts,
}

/// What the labels are to say: who may do what. Nobody, if there is no owner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) owner: Option<String>,
    pub(crate) value: &'static str,
    pub(crate) is_leaving: bool,
}

impl State {
    fn of(grant: &GrantRecord) -> State {
        let owner = grant.status.owner.as_ref().map(|owner| owner.uid.clone());
        match grant.status.phase {
            Phase::Granted => {
                let value = if grant.is_filled() { STATE_SYNC } else { STATE_EMPTY };
                State { owner, value, is_leaving: false }
            }
            Phase::Revoking => State { owner, value: STATE_EMPTY, is_leaving: true },
            Phase::Unassigned | Phase::Released | Phase::Fenced | Phase::Deleting => {
                State::default()
            }
        }
    }

    /// Whether an object says this, and nothing else.
    pub(crate) fn is_on(&self, object: &DynamicObject) -> bool {
        let wanted = self.owner.as_deref().map(state_label);
        let mut labels = object.metadata.labels.iter().flatten();
        let have = object.metadata.labels.as_ref();
        let is_there = wanted.as_ref().is_none_or(|key| {
            have.and_then(|labels| labels.get(key)).is_some_and(|value| value == self.value)
        });
        let leaving = self.leaving_key();
        let mut notes = object.metadata.annotations.iter().flatten();
        let is_noted = leaving.as_ref().is_none_or(|key| {
            object.metadata.annotations.as_ref().is_some_and(|notes| notes.contains_key(key))
        });
        is_there
            && is_noted
            && labels.all(|(key, _)| !key.starts_with(STATE_PREFIX) || Some(key) == wanted.as_ref())
            && notes
                .all(|(key, _)| !key.starts_with(DELETION_PREFIX) || Some(key) == leaving.as_ref())
    }

    /// The annotation that tells a leaving state from an arriving one, if it is leaving.
    pub(crate) fn leaving_key(&self) -> Option<String> {
        self.owner.as_deref().filter(|_| self.is_leaving).map(deletion_annotation)
    }
}

pub(crate) fn grant_address(name: &str) -> Address {
    Address::new(Place::HUB, &GRANT, Name::cluster_wide(name))
}

pub(crate) fn claim_address(namespace: &Object, claim: &str) -> Address {
    Address::new(Place::HUB, &CLAIM, Name::within(name_of(namespace), claim))
}

/// Reads what a step is about; None: the namespace of the grant is not in the cache, or is another.
pub(crate) fn observe(
    grant_name: &str,
    view: &dyn View,
    looks: &Looks<Nothing>,
) -> Result<Option<Scene>, String> {
    let found = view.get(Place::HUB, &GRANT, &Name::cluster_wide(grant_name));
    let grant = found.as_ref().map(GrantRecord::read).transpose()?;
    let namespace = match &grant {
        Some(grant) => {
            let name = Name::cluster_wide(&grant.spec.namespace.name);
            let found = view.get(Place::HUB, &NAMESPACE, &name);
            found.filter(|found| uid_of(found) == grant.spec.namespace.uid)
        }
        None => view.find(Place::HUB, &NAMESPACES_BY_GRANT, grant_name).into_iter().next(),
    };
    let Some(namespace) = namespace else { return Ok(None) };
    let claims = view.list(Place::HUB, &CLAIM, Some(name_of(&namespace)));
    let missing = grant.iter().flat_map(|grant| &grant.status.claims).filter(|listed| {
        listed.fill == Fill::Waiting && !claims.iter().any(|claim| uid_of(claim) == listed.uid)
    });
    let mut scene = Scene {
        now: view.now(),
        grant_name: grant_name.to_owned(),
        state: grant.as_ref().map(State::of).unwrap_or_default(),
        missing: missing.cloned().collect(),
        facts: Facts {
            grant: None,
            is_namespace_mirrored: true,
            claims: Vec::new(),
            missing: Vec::new(),
        },
        namespace,
        grant,
        claims,
    };
    scene.facts = facts(&scene, looks);
    Ok(Some(scene))
}

fn facts(scene: &Scene, looks: &Looks<Nothing>) -> Facts {
    Facts {
        grant: scene.grant.as_ref().map(|grant| Grant {
            phase: grant.status.phase,
            has_copies: !grant.status.copies.is_empty(),
        }),
        is_namespace_mirrored: scene.state.is_on(&scene.namespace),
        claims: scene.claims.iter().map(|claim| claim_facts(scene, claim, looks)).collect(),
        missing: scene.missing.iter().map(|claim| missing(scene, claim, looks)).collect(),
    }
}

fn claim_facts(scene: &Scene, claim: &Object, looks: &Looks<Nothing>) -> Claim {
    let is_held = has_finalizer(claim, FINALIZER_CLAIM);
    let uid = uid_of(claim);
    let lists = |grant: &Object| {
        let claims = grant.data["status"]["claims"].as_array().into_iter().flatten();
        claims.into_iter().any(|listed| listed["uid"] == uid)
    };
    let truth = looks
        .objects
        .get(&grant_address(&scene.grant_name))
        .map(|grant| if grant.as_ref().is_some_and(lists) { Listed::Yes } else { Listed::No });
    Claim {
        is_mirrored: scene.state.is_on(claim) && (is_held || is_deleting(claim)),
        is_held_back: is_deleting(claim) && is_held,
        is_listed: scene.grant.as_ref().is_some_and(|grant| grant.lists(uid)),
        truth,
        is_on_cluster: claim
            .metadata
            .finalizers
            .iter()
            .flatten()
            .any(|finalizer| finalizer.starts_with(SYNCER_FINALIZER_PREFIX)),
    }
}

fn missing(scene: &Scene, claim: &placement::Claim, looks: &Looks<Nothing>) -> Missing {
    match looks.objects.get(&claim_address(&scene.namespace, &claim.name)) {
        None => Missing::NotLookedFor,
        Some(Some(found)) if uid_of(found) == claim.uid => Missing::There,
        Some(_) => Missing::Gone,
    }
}
