//! Mistakes about who may run, and about data that moves.

use super::{Bend, Row, noted, scheduled, synced};
use crate::fencing::{self, Fencing};
use crate::kinds::{FORCE_RELEASE, GRANT, NAMESPACE};
use crate::runtime::decide as runs;
use crate::runtime::{Runtime, outside};
use crate::scheduler::decide as schedule;
use crate::syncer::claim::leave::HandedOver;
use crate::syncer::decide::{Decision as Syncs, Handed, LiveRead};
use crate::syncer::facts::Facts as SyncerFacts;
use crate::syncer::tenancy::{LastSnapshot, Running};
use crate::syncer::{Locks, Syncer};
use interlock_api::names::ANNOTATION_RELEASED;
use interlock_api::placement::Phase;
use interlock_kernel::{Address, LiveReads, Name, Observed, Place, Room, Subject, View, Write};
use interlock_world::{rewritten, unguarded};
use serde_json::{Value, json};

pub(super) const NOT_ONE: &[&str] =
    &["OnlyTheOwnerRuns", "ReleasedIsStill", "ClosedIsStill", "UsableByAtMostOne"];
pub(super) const LOSES: &[&str] = &["NoLoss", "PinsHaveEveryWrite"];
const NEVER: &[&str] = &["DesiredIsMet"];

const CALM: &str = "moves=1,flights=0,stale=0,crash=0";
const FORCED: &str = "moves=1,flights=0,stale=0,crash=0,force=1";
const FORCED_STALE: &str = "moves=0,flights=0,stale=1,crash=0,force=1";
const TWO_SYNCERS: &str = "moves=1,flights=1,stale=0,crash=0,syncers=2";
const CLAIM: &str = "moves=1,flights=0,stale=0,crash=0,claims=1";
const LIVE: &str = "moves=1,flights=0,stale=0,crash=0,live=1";

pub(super) const ROWS: &[Row] = &[
    Row(
        "grant-without-release",
        "the namespace is granted to the next cluster while another still owns it",
        &["UsableByAtMostOne"],
        &[Bend::SchedulerDecides(|facts| {
            scheduled(facts, |facts| {
                if let Some(grant) = facts.grant.as_mut().filter(|it| it.phase == Phase::Revoking) {
                    grant.phase = Phase::Released;
                }
            })
        })],
        CALM,
    ),
    Row(
        "silence-is-release",
        "an owner that sends no heartbeat is taken for one that has given the namespace back",
        &["PermittedToAtMostOne"],
        &[Bend::SchedulerDecides(|facts| {
            scheduled(facts, |facts| {
                let is_silent = |it: &schedule::Grant| match it.owner {
                    Some(schedule::Owner::Cluster(owner)) => !facts.clusters[owner].is_reachable,
                    Some(schedule::Owner::Replaced) | None => false,
                };
                let revoking = facts.grant.as_mut().filter(|it| it.phase == Phase::Revoking);
                if let Some(grant) = revoking.filter(|it| is_silent(it)) {
                    grant.phase = Phase::Released;
                }
            })
        })],
        "moves=1,flights=0,stale=0,crash=0,silent=1",
    ),
    Row(
        "epoch-not-grown",
        "a new owner is granted the epoch of the one before",
        &["EpochOnlyGrows"],
        &[Bend::SchedulerActs(|room, scene, decision| {
            rewritten(room.act(scene, decision), |write| {
                let Write::Patch { change, .. } = write else { return };
                let status = &mut change["status"];
                if status["phase"] == "Granted" && status["epoch"].as_i64().is_some_and(|e| e > 1) {
                    status["epoch"] = json!(status["epoch"].as_i64().unwrap_or(1) - 1);
                }
            })
        })],
        CALM,
    ),
    Row(
        "revoke-with-no-target",
        "what runs is stopped for a cluster that cannot take it",
        &["RevokedForATarget"],
        &[Bend::SchedulerDecides(|facts| {
            scheduled(facts, |facts| {
                facts.clusters.iter_mut().for_each(|cluster| cluster.unfit_reason = None);
            })
        })],
        "moves=1,flights=0,stale=0,crash=0,unfit=1",
    ),
    Row(
        "permit-ignores-force",
        "a cluster that came back is permitted between the forced release and the fence",
        NOT_ONE,
        &[Bend::SyncerDecides(|facts| {
            synced(facts, |facts| {
                if let Some(fresh) = &mut facts.fresh {
                    fresh.forces.clear();
                }
            })
        })],
        FORCED,
    ),
    Row(
        "stillness-assumed",
        "an epoch is closed without a look at what runs",
        &["ClosedIsStill"],
        &[Bend::SyncerDecides(|facts| {
            synced(facts, |facts| {
                facts.running.clear();
                facts.stirring = Some(Vec::new());
            })
        })],
        CALM,
    ),
    Row(
        "locks-ignored",
        "a pod is let go while its process lives, and an epoch is closed when there is no pod, \
         whoever has the lock: each alone would cover for the other",
        NOT_ONE,
        &[
            Bend::SyncerDecides(|facts| {
                synced(facts, |facts| {
                    if let Some(stirring) = &mut facts.stirring {
                        stirring.retain(|what| !what.starts_with("process"));
                    }
                })
            }),
            Bend::RuntimeDecides(|facts| match facts {
                runs::Facts::Asked(asked)
                    if asked.process == runs::Process::Stopping && asked.has_finalizer =>
                {
                    runs::Decision::TakeFinalizerOff
                }
                facts => Runtime::decide(facts),
            }),
        ],
        CALM,
    ),
    Row(
        "hub-unguarded",
        "a syncer ends the grant of another by an acknowledgement that is late",
        NOT_ONE,
        &[Bend::SyncerActs(|room, scene, decision| {
            unguarded(room.act(scene, decision), |write| write.address().kind == GRANT)
        })],
        TWO_SYNCERS,
    ),
    Row(
        "released-forgotten",
        "a permit forgets what is closed",
        &["ReleasedNeverFalls"],
        &[Bend::SyncerActs(|room, scene, decision| {
            let is_permit = matches!(decision, Syncs::Permit(_));
            let step = room.act(scene, decision);
            if !is_permit {
                return step;
            }
            rewritten(step, |write| {
                let Write::Patch { change, .. } = write else { return };
                change["metadata"]["annotations"][ANNOTATION_RELEASED] = Value::Null;
            })
        })],
        "moves=2,flights=0,stale=0,crash=0",
    ),
    Row(
        "leaving-is-closed",
        "an epoch that has to leave is taken for one that is closed",
        &["ReleasedIsStill"],
        &[Bend::SyncerDecides(|facts| {
            synced(facts, |facts| {
                if facts.is_mine(&[Phase::Revoking]) {
                    noted(facts, |_, notes| notes.released = notes.epoch);
                }
            })
        })],
        CALM,
    ),
    Row(
        "delete-on-absence",
        "a syncer that does not find the grant in its cache deletes what it has",
        &["ReleasedNeverFalls"],
        &[Bend::SyncerDecides(|facts| match facts.grant {
            None => Syncs::DeleteNamespace,
            Some(_) => Syncer::decide(facts),
        })],
        "moves=1,flights=0,stale=1,crash=0,syncers=2",
    ),
    Row(
        "wrong-epoch-permitted",
        "a permit names another epoch than the one that is granted, and nothing ever runs",
        NEVER,
        &[Bend::SyncerDecides(|facts| match Syncer::decide(facts) {
            Syncs::Permit(epoch) => Syncs::Permit(epoch + 1),
            decision => decision,
        })],
        LIVE,
    ),
    Row(
        "copy-before-close",
        "the last snapshot is made while the epoch may still write",
        LOSES,
        &[Bend::SyncerDecides(|facts| {
            let is_held = |claim: &crate::syncer::claim::facts::Facts| {
                !claim.is_filled() || claim.last_snapshot() == LastSnapshot::Held
            };
            let is_leaving = facts.is_mine(&[Phase::Revoking]);
            match is_leaving && !facts.claims.iter().all(is_held) {
                true => synced(facts, |facts| {
                    noted(facts, |epoch, notes| notes.released = epoch);
                }),
                false => Syncer::decide(facts),
            }
        })],
        CLAIM,
    ),
    Row(
        "no-last-snapshot",
        "the namespace is released with whatever its owner started from",
        &["NoLoss"],
        &[Bend::SyncerDecides(|facts| {
            let is_due = matches!(Syncer::decide(facts), Syncs::Leave { .. });
            let as_it_came = |place| Handed { place, from: HandedOver::AsItCame, remembers: false };
            match is_due {
                true => Syncs::Acknowledge((0..facts.claims.len()).map(as_it_came).collect()),
                false => Syncer::decide(facts),
            }
        })],
        CLAIM,
    ),
    Row(
        "pins-not-written",
        "the acknowledgement does not name the new snapshots, so the old ones are filled in",
        LOSES,
        &[Bend::SyncerActs(|room, scene, decision| {
            rewritten(room.act(scene, decision), |write| {
                let Write::Patch { change, .. } = write else { return };
                if let Some(status) = change["status"].as_object_mut() {
                    status.remove("pins");
                }
            })
        })],
        CLAIM,
    ),
    Row(
        "runtime-reads-its-cache",
        "a pod that was applied late starts by a permit that the runtime's cache shows and that was \
         withdrawn",
        NOT_ONE,
        &[Bend::RuntimeObserves(permit_in_the_cache)],
        "moves=1,flights=1,stale=1,crash=0,syncers=2",
    ),
    Row(
        "look-before-withdraw",
        "the syncer looks at the locks while the permit is still there, and closes",
        NOT_ONE,
        &[Bend::SyncerDecides(|facts| {
            let is_permitted = facts.noted().is_some_and(|it| it.running != Running::Nothing);
            let is_process = |what: &String| what.starts_with("process");
            match &facts.stirring {
                _ if !is_permitted || !facts.is_mine(&[Phase::Revoking]) => Syncer::decide(facts),
                None => Syncs::LiveRead(LiveRead::WhetherStill),
                Some(stirring) if stirring.iter().any(is_process) => Syncer::decide(facts),
                Some(_) => Syncs::Close(facts.at.epoch),
            }
        })],
        "moves=1,flights=1,late=1,stale=0,crash=0",
    ),
    Row(
        "boot-ignored",
        "when power returns, a permit from before still counts",
        NOT_ONE,
        &[Bend::BootIgnored],
        FORCED_STALE,
    ),
    Row(
        "force-while-running",
        "people declare an owner gone that is not powered off",
        NOT_ONE,
        &[Bend::ForceWhileRunning],
        FORCED,
    ),
    Row(
        "force-for-any-epoch",
        "a forced release of an earlier epoch ends a later one",
        &["ForceIsExact"],
        &[Bend::FencingDecides(|facts| {
            let epoch = facts.grant.map_or(facts.epoch, |grant| grant.epoch);
            Fencing::decide(&fencing::decide::Facts { epoch, ..facts.clone() })
        })],
        "moves=2,flights=0,stale=0,crash=0,force=1",
    ),
    Row(
        "refuses-from-cache",
        "a forced release is refused because the cache does not show its epoch yet",
        &["RefusedRightly"],
        &[Bend::FencingDecides(|facts| {
            Fencing::decide(&fencing::decide::Facts { is_fresh: true, ..facts.clone() })
        })],
        FORCED_STALE,
    ),
    Row(
        "ran-ignored",
        "a copy that has what no snapshot has is taken for a superseded one",
        &["DivergedIsMarked"],
        &[Bend::SyncerDecides(|facts| {
            synced(facts, |facts| noted(facts, |_, notes| notes.ran = 0))
        })],
        FORCED,
    ),
    Row(
        "grant-wakes-nobody",
        "a syncer sleeps though its grant has changed",
        &["WorkWakes"],
        &[Bend::GrantWakesNobody],
        "moves=1,flights=0,stale=0,crash=0,wakes=1",
    ),
    Row(
        "nothing-is-stopped",
        "a syncer that leaves tells nothing to stop, and waits for it",
        NEVER,
        &[Bend::SyncerDecides(|facts| synced(facts, |facts| facts.running.clear()))],
        LIVE,
    ),
    Row(
        "always-forced",
        "a forced release of any epoch holds back every permit",
        &["GrantRuns"],
        &[Bend::SyncerDecides(|facts| {
            synced(facts, |facts| {
                if let Some(fresh) = &mut facts.fresh {
                    fresh.forces.push(None);
                }
            })
        })],
        LIVE,
    ),
    Row(
        "desired-ignored",
        "the namespace stays where it is, whatever people want",
        NEVER,
        &[Bend::SchedulerDecides(|facts| {
            scheduled(facts, |facts| {
                let owner = facts.grant.as_ref().and_then(|grant| grant.owner);
                if let Some(schedule::Owner::Cluster(owner)) = owner {
                    facts.desired = schedule::Desired::On(owner);
                }
            })
        })],
        LIVE,
    ),
    Row(
        "never-answers",
        "a forced release that was done stays pending",
        &["ForceIsAnswered"],
        &[Bend::FencingDecides(|facts| match Fencing::decide(facts) {
            fencing::decide::Decision::MarkApplied => fencing::decide::Decision::Nothing,
            decision => decision,
        })],
        "moves=1,flights=0,stale=0,crash=0,force=1,live=1",
    ),
    // The largest last: a promise that no mistake before it has broken is looked for in each.
    Row(
        "permit-from-cache",
        "a permit trusts the syncer's cache, which shows neither the forced release nor that the \
         grant was taken back",
        NOT_ONE,
        &[Bend::SyncerObserves(grant_in_the_cache)],
        "moves=0,flights=0,stale=2,crash=0,relist=1,force=1",
    ),
    Row(
        "in-place-anywhere",
        "volumes that were left in place are granted to another cluster",
        &["InPlaceStays"],
        &[Bend::SchedulerDecides(|facts| {
            scheduled(facts, |facts| {
                if let Some(grant) = &mut facts.grant {
                    grant.snapshots = schedule::Snapshots::Anywhere;
                    let in_place = |pin: &&mut schedule::Pinned| **pin == schedule::Pinned::InPlace;
                    grant.pins.iter_mut().filter(in_place).for_each(|pin| {
                        *pin = schedule::Pinned::Snapshot;
                    });
                }
            })
        })],
        "moves=3,flights=0,stale=0,crash=0,claims=1",
    ),
];

/// The grant and the forced releases as the cache shows them, where a syncer has yet to read them from
/// the hub.
pub(super) fn grant_in_the_cache(
    syncer: &Syncer,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<Locks>,
) -> Observed<SyncerFacts, <Syncer as Room>::Scene> {
    let mut seen = LiveReads {
        objects: live_reads.objects.clone(),
        lists: live_reads.lists.clone(),
        selected: live_reads.selected.clone(),
        dry_runs: live_reads.dry_runs.clone(),
        answers: live_reads.answers.clone(),
    };
    let name = Name::cluster_wide(subject);
    for (place, kind) in [(Place::CLUSTER, NAMESPACE), (Place::HUB, GRANT)] {
        let found = view.get(place, &kind, &name);
        seen.objects.insert(Address::new(place, &kind, name.clone()), found);
    }
    let forces = view.list(Place::HUB, &FORCE_RELEASE, None);
    seen.lists.insert((Place::HUB, FORCE_RELEASE, None), forces);
    let fresh = match syncer.observe(subject, view, &seen) {
        Observed::Seen { facts, .. } => facts.fresh,
        Observed::Nothing(_) => None,
    };
    match syncer.observe(subject, view, live_reads) {
        Observed::Seen { facts, scene } => {
            Observed::Seen { facts: SyncerFacts { fresh, ..facts }, scene }
        }
        nothing @ Observed::Nothing(_) => nothing,
    }
}

/// The permit as the cache shows it, where the runtime has yet to read it from the server.
pub(super) fn permit_in_the_cache(
    runtime: &Runtime,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<outside::Machine>,
) -> Observed<runs::Facts, <Runtime as Room>::Scene> {
    let (mut asked, scene) = match runtime.observe(subject, view, live_reads) {
        Observed::Seen { facts: runs::Facts::Asked(asked), scene } => (asked, scene),
        observed => return observed,
    };
    // What the cache shows, as if it were the live read.
    if asked.permit.is_none() && asked.lock == runs::Lock::Mine {
        let (home, stamp) = (asked.home, asked.stamp);
        asked.permit = Some(runs::Permit { is_pod_there: true, home, stamp });
    }
    Observed::Seen { facts: runs::Facts::Asked(asked), scene }
}
