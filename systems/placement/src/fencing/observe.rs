//! What a ForceRelease names, and what the grant of that name says.

use super::decide::{Claim, Facts, Grant, Left};
use crate::kinds::{FORCE_RELEASE, GRANT};
use crate::record::GrantRecord;
use interlock_api::placement::{
    self, Fill, ForceReleaseSpec, ForceReleaseStatus, Phase, Pin, Snapshot,
};
use interlock_kernel::metadata::uid_of;
use interlock_kernel::{
    Address, LiveReads, Name, Nothing, Object, Observed, Place, View, read_part,
};
use jiff::Timestamp;
use kube_core::DynamicObject;

/// The objects that one step is about.
#[derive(Debug)]
pub struct Scene {
    pub(crate) now: Timestamp,
    pub(crate) object: Object,
    pub(crate) spec: ForceReleaseSpec,
    pub(crate) grant: Option<GrantRecord>,
}

/// Whether a ForceRelease still wants an answer.
pub(crate) fn is_open(force: &DynamicObject) -> bool {
    !matches!(force.data["status"]["outcome"].as_str(), Some("Applied" | "Refused"))
}

/// Where the grant is that a ForceRelease names.
pub(crate) fn grant_address(spec: &ForceReleaseSpec) -> Address {
    Address::new(Place::HUB, &GRANT, Name::cluster_wide(&spec.grant.name))
}

/// Reads what a step is about.
pub(crate) fn observe(
    name: &str,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> Observed<Facts, Scene> {
    let Some(object) = view.get(Place::HUB, &FORCE_RELEASE, &Name::cluster_wide(name)) else {
        return Observed::nothing(format!("force release {name} is not in the cache"));
    };
    match read(object, view, live_reads) {
        Ok((facts, scene)) => Observed::Seen { facts, scene },
        Err(flaw) => Observed::nothing(format!("force release {name} cannot be read: {flaw}")),
    }
}

fn read(
    object: Object,
    view: &dyn View,
    live_reads: &LiveReads<Nothing>,
) -> Result<(Facts, Scene), String> {
    let spec: ForceReleaseSpec =
        read_part(&object, "spec")?.ok_or_else(|| "spec is missing".to_owned())?;
    let status: ForceReleaseStatus = read_part(&object, "status")?.unwrap_or_default();
    let live = live_reads.objects.get(&grant_address(&spec));
    let found = match live {
        Some(fresh) => fresh.clone(),
        None => view.get(Place::HUB, &GRANT, &Name::cluster_wide(&spec.grant.name)),
    };
    let grant = found.as_ref().map(GrantRecord::read).transpose();
    let grant = grant.map_err(|flaw| format!("grant {}: {flaw}", spec.grant.name))?;
    let facts = Facts {
        outcome: status.outcome,
        epoch: spec.epoch,
        grant: grant.as_ref().map(|grant| seen(grant, &spec, uid_of(&object))),
        is_fresh: live.is_some(),
        claims: grant.as_ref().map(claims).unwrap_or_default(),
    };
    Ok((facts, Scene { now: view.now(), object, spec, grant }))
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

fn claims(grant: &GrantRecord) -> Vec<Claim> {
    let claim = |claim: &placement::Claim| Claim {
        is_untouched: is_untouched(grant, claim),
        last: left(grant, claim.last_snapshot.as_ref()),
        incoming: left(grant, incoming(grant, claim)),
    };
    grant.status.claims.iter().map(claim).collect()
}

/// A snapshot is deleted together with the copy that it belonged to.
fn left(grant: &GrantRecord, pin: Option<&Pin>) -> Left {
    let Some(pin) = pin else { return Left::None };
    let is_usable = match &pin.snapshot {
        Snapshot::VolumeSnapshot { cluster, .. } => {
            grant.status.copies.iter().any(|copy| copy.cluster.is_same(cluster))
        }
        Snapshot::Restic { .. } | Snapshot::InPlace { .. } | Snapshot::Fresh {} => true,
    };
    if is_usable { Left::Usable } else { Left::Gone }
}

/// The snapshot that a claim came with.
pub(crate) fn incoming<'a>(grant: &'a GrantRecord, claim: &placement::Claim) -> Option<&'a Pin> {
    grant.status.pins.iter().find(|pin| pin.claim_uid == claim.uid)
}

/// Whether nothing can be newer than the snapshot that a claim came with: its owner never wrote to
/// it, since it never filled it. A volume that stayed in place is with the owner, filled or not.
pub(crate) fn is_untouched(grant: &GrantRecord, claim: &placement::Claim) -> bool {
    let is_in_place = |pin: &Pin| matches!(pin.snapshot, Snapshot::InPlace { .. });
    claim.fill != Fill::Filled && !incoming(grant, claim).is_some_and(is_in_place)
}

impl Scene {
    /// Whether this ForceRelease, and no other, fenced the grant.
    pub(crate) fn is_fenced_by_it(&self) -> bool {
        let by = self.grant.as_ref().and_then(|grant| grant.status.fenced_by.as_ref());
        by.is_some_and(|by| by.uid == uid_of(&self.object))
    }
}
