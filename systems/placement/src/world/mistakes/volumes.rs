//! Mistakes about what moves leave behind: copies, their volumes, and labels.

use super::seeing::Seeing;
use super::{Bend, Row, scheduled, synced};
use crate::claims::Claims;
use crate::claims::decide as claims;
use crate::scheduler;
use crate::scheduler::decide as schedule;
use crate::syncer::decide::Decision as Syncs;
use crate::syncer::{Locks, Syncer};
use interlock_api::names::{ANNOTATION_GRANT, STATE_PREFIX};
use interlock_api::placement::CopyState;
use interlock_kernel::metadata::annotation;
use interlock_kernel::{
    Kind, LiveReads, Name, Object, Observed, Place, Room, Subject, View, Write,
};
use interlock_world::rewritten;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

pub(super) const ROWS: &[Row] = &[
    Row(
        "old-volume-deleted-early",
        "a volume is deleted as soon as another cluster has the namespace",
        &["VolumesOutliveMoves"],
        &[Bend::SyncerDecides(|facts| {
            synced(facts, |facts| {
                if let Some(grant) = &mut facts.grant {
                    grant.settles_in = Some(Duration::ZERO);
                }
            })
        })],
        "moves=1,flights=0,stale=0,crash=0,claims=1",
    ),
    Row(
        "old-copies-stay",
        "a copy that nobody needs is kept for ever",
        &["OldCopiesGo"],
        &[Bend::SyncerDecides(|facts| match Syncer::decide(facts) {
            Syncs::CleanUp { .. } | Syncs::DeleteNamespace => Syncs::rest("it is kept"),
            decision => decision,
        })],
        "moves=1,flights=0,stale=0,crash=0,later=1,live=1",
    ),
    Row(
        "old-label-left-on",
        "the label of the cluster before stays when the next one's is put on",
        &["Inv_PVCAtMostOneCluster", "Inv_NSAtMostOneCluster"],
        &[Bend::ClaimsAct(|room, scene, decision| {
            rewritten(room.act(scene, decision), |write| {
                let Write::Patch { change, .. } = write else { return };
                if let Some(labels) = change["metadata"]["labels"].as_object_mut() {
                    labels.retain(|key, value| !key.starts_with(STATE_PREFIX) || !value.is_null());
                }
            })
        })],
        "moves=1,flights=0,stale=0,crash=0,claims=1",
    ),
    Row(
        "claim-not-mirrored",
        "the labels of claims stay as they are",
        &["LabelsFollow"],
        &[Bend::ClaimsDecide(|facts| match Claims::decide(facts) {
            claims::Decision::MirrorClaim(..) => claims::Decision::Nothing(claims::Why::Mirrored),
            decision => decision,
        })],
        "moves=0,flights=0,stale=0,crash=0,claims=1,live=1",
    ),
    Row(
        "diverged-volume-deleted",
        "a volume that may be alone in having something goes like any other",
        &["VolumesOutliveMoves"],
        &[Bend::SyncerDecides(|facts| {
            synced(facts, |facts| {
                facts.at.written_until = 0;
                let grant = facts.grant.iter_mut();
                for copy in grant.flat_map(|grant| &mut grant.copies) {
                    if *copy == CopyState::Diverged {
                        *copy = CopyState::Superseded;
                    }
                }
            })
        })],
        "moves=0,flights=0,stale=0,crash=0,claims=1,before=1,force=1,later=1",
    ),
    Row(
        "diverged-volume-taken-over",
        "a cluster that gets the namespace again forgets that it may be alone in having something",
        &["VolumesOutliveMoves"],
        &[Bend::SchedulerDecides(|facts| match scheduled(facts, |_| {}) {
            scheduler::Decision::Grant(schedule::Decision::Grant(giving)) => {
                let taken_over = vec![CopyState::Unclosed, CopyState::Diverged];
                let giving = schedule::Giving { taken_over, ..giving };
                scheduler::Decision::Grant(schedule::Decision::Grant(giving))
            }
            decision => decision,
        })],
        "moves=0,flights=0,stale=0,crash=0,claims=1,before=1,force=1,later=1",
    ),
    Row(
        "volume-deleted-on-absence",
        "a syncer that does not find the grant in its cache deletes what it has, volumes and all",
        &["VolumesOutliveMoves"],
        &[Bend::SyncerObserves(absence_is_the_end)],
        "moves=0,flights=0,stale=1,crash=0,claims=1,syncers=2",
    ),
];

/// What a syncer goes by that takes absence from its cache for the end of the grant.
fn absence_is_the_end(
    syncer: &Syncer,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Locks>,
) -> Observed<<Syncer as Room>::Facts, <Syncer as Room>::Scene> {
    let name = Name::cluster_wide(subject);
    let here = view.get(Place::CLUSTER, &crate::kinds::NAMESPACE, &name);
    let is_known = view.get(Place::HUB, &crate::kinds::GRANT, &name).is_some();
    let of = here.as_ref().and_then(|here| annotation(here, ANNOTATION_GRANT));
    let Some(uid) = of.filter(|_| !is_known) else {
        return syncer.observe(subject, view, live_reads);
    };
    let grant = json!({
        "apiVersion": crate::kinds::GRANT.api_version(), "kind": "Grant",
        "metadata": {"name": &**subject, "uid": uid, "resourceVersion": "1"},
        "spec": {"namespace": {"name": "shop", "uid": ""}},
        "status": {"phase": "Deleting", "epoch": 1, "copies": [
            {"cluster": {"name": "a", "uid": "uid-a"}, "epoch": 1, "state": "Superseded"}]},
    });
    let Ok(grant) = serde_json::from_value(grant) else {
        return syncer.observe(subject, view, live_reads);
    };
    let grant: Object = Arc::new(grant);
    let imagined = |_, kind: &Kind, name: &Name, found| {
        let is_it = *kind == crate::kinds::GRANT && *name == Name::of(&grant);
        if is_it { Some(grant.clone()) } else { found }
    };
    syncer.observe(subject, &Seeing { view, as_if: &imagined }, live_reads)
}
