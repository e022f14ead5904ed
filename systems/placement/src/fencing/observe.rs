//! What a ForceRelease names, and what the grant of that name says.

use super::decide::{Facts, Grant};
use crate::kinds::{FORCE_RELEASE, GRANT};
use crate::record::{GrantRecord, uid_of};
use interlock_api::placement::{ForceOutcome, ForceReleaseSpec, ForceReleaseStatus, Phase};
use interlock_kernel::{Address, Looks, Name, Nothing, Object, Place, View, read_part};
use jiff::Timestamp;
use kube_core::DynamicObject;

/// The objects that one step is about, and the facts in them.
pub(crate) struct Scene {
    pub(crate) now: Timestamp,
    pub(crate) object: Object,
    pub(crate) spec: ForceReleaseSpec,
    pub(crate) grant: Option<GrantRecord>,
    pub(crate) facts: Facts,
}

/// Whether a ForceRelease still wants an answer.
pub(crate) fn is_open(force: &DynamicObject) -> bool {
    !matches!(force.data["status"]["outcome"].as_str(), Some("Applied" | "Refused"))
}

/// Where the grant is that a ForceRelease names.
pub(crate) fn grant_address(spec: &ForceReleaseSpec) -> Address {
    Address::new(Place::HUB, &GRANT, Name::cluster_wide(&spec.grant.name))
}

/// Reads what a step is about; None: there is no such ForceRelease.
pub(crate) fn observe(
    name: &str,
    view: &dyn View,
    looks: &Looks<Nothing>,
) -> Result<Option<Scene>, String> {
    let Some(object) = view.get(Place::HUB, &FORCE_RELEASE, &Name::cluster_wide(name)) else {
        return Ok(None);
    };
    let spec: ForceReleaseSpec =
        read_part(&object, "spec")?.ok_or_else(|| "spec is missing".to_owned())?;
    let status: ForceReleaseStatus = read_part(&object, "status")?.unwrap_or_default();
    let looked = looks.objects.get(&grant_address(&spec));
    let found = match looked {
        Some(fresh) => fresh.clone(),
        None => view.get(Place::HUB, &GRANT, &Name::cluster_wide(&spec.grant.name)),
    };
    let grant = found.as_ref().map(GrantRecord::read).transpose();
    let grant = grant.map_err(|flaw| format!("grant {}: {flaw}", spec.grant.name))?;
    let seen = grant.as_ref().map(|grant| seen(grant, &spec, uid_of(&object)));
    let facts = Facts {
        outcome: status.outcome,
        epoch: spec.epoch,
        grant: seen,
        is_fresh: looked.is_some(),
    };
    Ok(Some(Scene { now: view.now(), object, spec, grant, facts }))
}

/// The grant, seen from a ForceRelease. What this one has fenced stays fenced by it, whoever has
/// the grant now: it is shown as it was left.
fn seen(grant: &GrantRecord, spec: &ForceReleaseSpec, uid: &str) -> Grant {
    let status = &grant.status;
    let is_same = grant.uid() == spec.grant.uid;
    if is_same && status.fenced_by.as_ref().is_some_and(|by| by.uid == uid) {
        return Grant { is_same, is_same_owner: true, phase: Phase::Fenced, epoch: spec.epoch };
    }
    Grant {
        is_same,
        is_same_owner: status.owner.as_ref().is_some_and(|owner| owner.is_same(&spec.owner)),
        phase: status.phase,
        epoch: status.epoch,
    }
}

impl Scene {
    /// Whether this ForceRelease, and no other, fenced the grant.
    pub(crate) fn is_fenced_by_it(&self) -> bool {
        let by = self.grant.as_ref().and_then(|grant| grant.status.fenced_by.as_ref());
        by.is_some_and(|by| by.uid == uid_of(&self.object))
            || self.facts.outcome == ForceOutcome::Applied
    }
}
