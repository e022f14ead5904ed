//! Mistakes about the data of one claim or of two, while it is brought, written and handed over.

use super::moves::LOSES;
use super::seeing::Seeing;
use super::{Bend, Row, synced};
use crate::kinds::{CLAIM, VOLUME};
use crate::runtime::decide as runs;
use crate::runtime::{Runtime, outside};
use crate::syncer::Syncer;
use crate::syncer::claim::facts::Binding;
use crate::syncer::decide::Decision as Syncs;
use crate::syncer::facts::Facts as SyncerFacts;
use crate::syncer::objects::decide::{Way, survey};
use interlock_api::names::ANNOTATION_EPOCH;
use interlock_api::placement::Phase;
use interlock_kernel::metadata::uid_of;
use interlock_kernel::{
    Kind, LiveReads, Name, Object, Observed, Place, Room, Subject, View, Write,
};
use interlock_world::rewritten;
use serde_json::json;
use std::sync::Arc;

const TWO_CLAIMS: &str = "moves=1,flights=0,stale=0,crash=0,claims=2,begun=3";
const SECOND_CLAIM: &str = "moves=1,flights=0,stale=0,crash=0,claims=2,begun=2";

pub(super) const ROWS: &[Row] = &[
    Row(
        "start-unfilled",
        "a claim that exists is taken for one that is filled, by the syncer and by the runtime: each \
         alone would cover for the other",
        &["NoLoss"],
        &[
            Bend::SyncerDecides(|facts| {
                synced(facts, |facts| {
                    let unbound = |claim: &&mut crate::syncer::claim::facts::Facts| {
                        claim.binding == Binding::Unbound
                    };
                    facts.claims.iter_mut().filter(unbound).for_each(|claim| {
                        claim.binding = Binding::Bound;
                    });
                })
            }),
            Bend::RuntimeObserves(unbound_is_empty),
        ],
        "moves=0,flights=0,stale=0,crash=0,claims=1,before=1",
    ),
    Row(
        "loss-kept-quiet",
        "a release passes for a forced one, which may give up what no snapshot has",
        &["ForceIsExact"],
        &[Bend::SyncerActs(|room, scene, decision| {
            rewritten(room.act(scene, decision), |write| {
                let Write::Patch { change, .. } = write else { return };
                if change["status"]["phase"] == "Released" {
                    change["status"]["phase"] = json!("Fenced");
                }
            })
        })],
        "moves=1,flights=0,stale=0,crash=0,claims=1,begun=3",
    ),
    Row(
        "first-claim-only",
        "the namespace is released after the first of two claims has its last snapshot",
        LOSES,
        &[Bend::SyncerDecides(|facts| {
            synced(facts, |facts| {
                if facts.is_mine(&[Phase::Revoking]) {
                    facts.claims.truncate(1);
                }
            })
        })],
        TWO_CLAIMS,
    ),
    Row(
        "unlisted-claim-made",
        "a claim comes down like any other object, before the grant lists it, so the release leaves \
         it out",
        LOSES,
        &[
            Bend::SyncerDecides(|facts| synced(facts, claims_come_down)),
            Bend::SyncerActs(|room, scene, decision| {
                rewritten(room.act(scene, decision), |write| {
                    let Write::Apply { address, object, .. } = write else { return };
                    // The pod begins only with a claim that notes the epoch.
                    if address.kind == CLAIM && address.place == Place::CLUSTER {
                        object["metadata"]["annotations"][ANNOTATION_EPOCH] = json!("1");
                    }
                })
            }),
        ],
        SECOND_CLAIM,
    ),
    Row(
        "applied-before-reported",
        "a pod writes to a claim that the hub does not know to be filled, so no snapshot is made",
        LOSES,
        &[Bend::SyncerDecides(|facts| {
            let mut objects = facts.objects.clone();
            objects.iter_mut().for_each(|object| object.awaits = None);
            match (Syncer::decide(facts), survey(&objects).chore) {
                (Syncs::TellFilled { .. }, Some((place, chore))) if facts.is_permitted() => {
                    Syncs::Mirror { place, chore }
                }
                (decision, _) => decision,
            }
        })],
        SECOND_CLAIM,
    ),
    Row(
        "tag-set-early",
        "the last snapshot is asked for while an earlier one is under way, whose end is taken for it",
        LOSES,
        &[Bend::SyncerDecides(|facts| {
            synced(facts, |facts| {
                let sources = facts.claims.iter_mut().filter_map(|claim| claim.source.as_mut());
                sources.for_each(|source| source.is_syncing = false);
            })
        })],
        "moves=1,flights=0,stale=0,crash=0,claims=1,slow=1,begun=3",
    ),
];

/// Claims have no way of their own, and no pod waits for them.
fn claims_come_down(facts: &mut SyncerFacts) {
    let kind = CLAIM.to_string();
    for object in &mut facts.objects {
        object.awaits = None;
        if object.kind == kind && object.here.is_none() {
            object.way = Way::Down;
        }
    }
}

/// What the runtime sees that takes a claim without a volume for one with an empty volume.
fn unbound_is_empty(
    runtime: &Runtime,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<outside::Machine>,
) -> Observed<runs::Facts, <Runtime as Room>::Scene> {
    let claims = view.list(Place::CLUSTER, &CLAIM, None);
    let volume = |claim: &Object| format!("pvc-{}", uid_of(claim));
    let as_if = |_, kind: &Kind, name: &Name, found: Option<Object>| {
        if *kind == CLAIM {
            let mut claim = (*found?).clone();
            claim.data["spec"]["volumeName"] = json!(format!("pvc-{}", uid_of(&claim)));
            claim.data["status"]["phase"] = json!("Bound");
            return Some(Arc::new(claim));
        }
        if *kind != VOLUME || found.is_some() {
            return found;
        }
        let of = claims.iter().find(|claim| volume(claim) == name.name.as_ref())?;
        let empty = json!({"metadata": {"name": &*name.name}, "spec": {
            "csi": {"driver": "local.interlock.dev", "volumeHandle": &*name.name},
            "claimRef": {"uid": uid_of(of)}}});
        serde_json::from_value(empty).ok().map(Arc::new)
    };
    runtime.observe(subject, &Seeing { view, as_if: &as_if }, live_reads)
}
