//! What volumes promise: of every state, and in the end.

use super::first::{BANK_VOLUME, TARGET_VOLUME};
use super::truth::{Truth, is_all_there};
use super::{Kind, Syncs};
use crate::sync::snapshots::SNAPSHOT_PREFIX;
use interlock_world::{Goal, Promise};

fn promise(
    name: &'static str,
    sentence: &'static str,
    holds: fn(&Syncs, &Truth) -> bool,
) -> Promise<Syncs> {
    Promise { name, sentence, holds }
}

pub(super) fn promises(system: &Syncs) -> Vec<Promise<Syncs>> {
    let mut all = of_syncs();
    all.extend(of_snapshots());
    if system.claims > 0 {
        all.extend(of_claims());
    }
    all
}

fn of_syncs() -> Vec<Promise<Syncs>> {
    vec![
        promise(
            "TagMeansAfter",
            "a tag that is answered was set before what answers it was read",
            |system, truth| {
                let Some(object) = &truth.object else { return true };
                let is_lost = system.kind != Kind::Backups
                    && (object.is_terminating
                        || object.latest.iter().any(|it| truth.by_hand.contains(it)));
                object.answered == 0
                    || object.product.as_ref().map_or(is_lost, |it| it.contains(&object.answered))
            },
        ),
        promise(
            "NoEmptyByAccident",
            "what is empty, or was cut short, is not published and answers no tag",
            |_, truth| {
                let product = truth.object.as_ref().and_then(|object| object.product.as_ref());
                let is_answered = truth.object.as_ref().is_some_and(|it| it.answered > 0);
                !is_answered || product.is_none_or(is_all_there)
            },
        ),
        promise(
            "FilledOnce",
            "one mover writes at a time, and none for a sync that is over",
            |_, truth| {
                let over = truth.object.as_ref().map(|object| object.over.as_str());
                truth.running.len() <= 1
                    && truth.running.iter().all(|(sync, _)| over != Some(sync.as_str()))
            },
        ),
        promise(
            "SnapshotUntouched",
            "no mover writes a volume while a snapshot of it is taken for the same sync, or after",
            |_, truth| {
                truth.running.iter().filter(|(_, into)| into.is_some()).all(|(sync, _)| {
                    truth.snapshots.values().all(|snapshot| snapshot.sync != *sync)
                })
            },
        ),
        promise(
            "MoverHasAPlace",
            "a mover runs only while its sync has a place at the repository",
            |_, truth| truth.running.iter().all(|(sync, _)| truth.places.contains(sync)),
        ),
        promise(
            "OthersUntouched",
            "a claim of another namespace keeps its volume, and all that is in it",
            |_, truth| truth.is_other_intact,
        ),
    ]
}

fn of_snapshots() -> Vec<Promise<Syncs>> {
    vec![
        promise(
            "LatestImageExists",
            "the latest snapshot is there, whole, and not being deleted, unless by hand",
            |_, truth| {
                let Some(object) = truth.living_object() else { return true };
                object.latest.iter().all(|uid| {
                    truth.by_hand.contains(uid)
                        || truth.snapshots.get(uid).is_some_and(super::truth::Snapshot::is_usable)
                })
            },
        ),
        promise(
            "HeldSnapshotStays",
            "a snapshot that is held is not deleted unless by hand, and is on the disk even then",
            |_, truth| {
                truth.snapshots.iter().all(|(uid, snapshot)| {
                    let is_there = !snapshot.is_ready || snapshot.data.is_some();
                    let stays = !snapshot.is_terminating || truth.by_hand.contains(uid);
                    snapshot.holders.is_empty() || is_there && stays
                })
            },
        ),
        promise("HolderExists", "no snapshot is held for a claim that is gone", |_, truth| {
            let mut held = truth.snapshots.values().flat_map(|snapshot| &snapshot.holders);
            held.all(|holder| truth.claims.contains(holder))
        }),
        promise("OneSnapshotPerHolder", "nobody holds more than one snapshot", |_, truth| {
            let mut held: Vec<&String> =
                truth.snapshots.values().flat_map(|snapshot| &snapshot.holders).collect();
            held.sort_unstable();
            held.windows(2).all(|pair| pair[0] != pair[1])
        }),
    ]
}

fn of_claims() -> Vec<Promise<Syncs>> {
    vec![
        promise(
            "ImageInUseExists",
            "while PVC' waits, its snapshot lives, unless somebody deleted it by hand",
            |_, truth| {
                let Some(claim) = truth.living_claim() else { return true };
                truth.primes.iter().all(|prime| {
                    let waits = prime.heir == claim.uid
                        && !prime.is_terminating
                        && !matches!(prime.phase.as_str(), "Bound" | "Lost")
                        && claim.volume.is_empty()
                        && claim.pin.as_ref() == Some(&prime.snapshot);
                    let snapshot = truth.snapshots.get(&prime.snapshot);
                    !waits
                        || truth.by_hand.contains(&prime.snapshot)
                        || snapshot.is_some_and(|snapshot| !snapshot.is_terminating)
                })
            },
        ),
        promise(
            "BoundIsPopulated",
            "a bound claim has a volume of its own, whole, made of the snapshot that it was pinned to",
            |_, truth| {
                let bound = truth.claim.as_ref().filter(|claim| claim.phase == "Bound");
                let Some(claim) = bound.filter(|claim| !claim.is_terminating) else { return true };
                let snapshot = claim.pin.as_ref().map(|pin| format!("{SNAPSHOT_PREFIX}{pin}"));
                truth.volumes.get(&claim.volume).is_some_and(|volume| {
                    volume.owner == claim.uid
                        && volume.inside.as_ref().is_some_and(|inside| {
                            inside.of == snapshot
                                && snapshot.is_some()
                                && is_all_there(&inside.data)
                        })
                })
            },
        ),
        promise("OneVolumePerClaim", "a claim is handed one volume", |_, truth| {
            let Some(claim) = truth.living_claim() else { return true };
            truth.volumes.values().filter(|volume| volume.owner == claim.uid).count() <= 1
        }),
        promise(
            "NeverLost",
            "no volume is deleted on its way to a claim, unless its snapshot was deleted by hand",
            |_, truth| {
                let Some(claim) = truth.living_claim() else { return true };
                let poured = format!("persistentvolumeclaim-prime-{}-", claim.uid);
                let is_poured = |uid: &String| {
                    uid.starts_with(&poured) && claim.volume.is_empty() && truth.by_hand.is_empty()
                };
                claim.phase != "Lost"
                    && truth.volumes.values().all(|volume| {
                        let is_promised =
                            volume.heir.as_ref() == Some(&claim.uid) || volume.owner == claim.uid;
                        let is_needed = is_promised || is_poured(&volume.owner);
                        !is_needed || volume.inside.is_some()
                    })
            },
        ),
    ]
}

pub(super) fn reachable(system: &Syncs) -> Vec<Promise<Syncs>> {
    let mut reachable = Vec::new();
    if system.syncs > system.done {
        reachable.push(promise("Answered", "the last tag is answered", |system, truth| {
            truth.object.as_ref().is_some_and(|object| object.answered == i64::from(system.syncs))
        }));
    }
    if system.claims > 0 {
        reachable.push(promise(
            "Filled",
            "a claim is filled, and nothing is left of what was needed for it",
            |_, truth| {
                let is_held = truth.snapshots.values().any(|snapshot| !snapshot.holders.is_empty());
                truth.is_bound() && truth.primes.is_empty() && !is_held
            },
        ));
    }
    if system.done == 2 && system.claims > 0 && system.vandals > 0 {
        reachable.push(promise(
            "Healed",
            "a claim whose snapshot was deleted by hand is filled from another",
            |_, truth| {
                let pin = truth.claim.as_ref().and_then(|claim| claim.pin.as_ref());
                let latest = truth.object.as_ref().and_then(|object| object.published.as_ref());
                truth.is_bound() && pin == latest && !truth.by_hand.is_empty()
            },
        ));
    }
    if system.claims > 1 && system.deletes > 0 {
        reachable.push(promise(
            "Again",
            "a claim that was made again under its name is filled",
            |_, truth| truth.is_bound() && truth.to_come == 0,
        ));
    }
    reachable
}

pub(super) fn goals(system: &Syncs) -> Vec<Goal<Syncs>> {
    let answered: Goal<Syncs> = Goal {
        name: "TagIsAnswered",
        sentence: "the tag that is set last is answered or given up",
        while_true: |_, truth| truth.living_object().is_some(),
        then: |_, truth| truth.is_synced(),
    };
    let given_back: Goal<Syncs> = Goal {
        name: "PlacesEnd",
        sentence: "a place at a repository is given back",
        while_true: |_, truth| !truth.places.is_empty(),
        then: |_, _| false,
    };
    let goes: Goal<Syncs> = Goal {
        name: "DeletedGoes",
        sentence: "a source or destination that is deleted goes",
        while_true: |_, truth| truth.object.as_ref().is_some_and(|object| object.is_terminating),
        then: |_, _| false,
    };
    let is_syncing = system.syncs > system.done;
    let mut goals = vec![answered];
    goals.extend((is_syncing && system.kind != Kind::Snapshots).then_some(given_back));
    // Nothing keeps a source of backups, whose snapshots do not outlive their sync.
    goals.extend((system.leave && system.kind != Kind::Backups).then_some(goes));
    if system.claims > 0 {
        goals.extend(goals_of_claims(system));
    }
    goals
}

fn goals_of_claims(system: &Syncs) -> Vec<Goal<Syncs>> {
    let left: Goal<Syncs> = Goal {
        name: "NothingIsLeft",
        sentence: "of a claim that is gone no volume and no other claim is left in the end",
        while_true: |_, truth| {
            let is_of_claim =
                |name: &String| ![BANK_VOLUME, TARGET_VOLUME].contains(&name.as_str());
            let is_left = !truth.primes.is_empty()
                || truth.volumes.keys().any(is_of_claim)
                || truth.folders.iter().any(is_of_claim);
            truth.claim.is_none() && truth.to_come == 0 && is_left
        },
        then: |_, _| false,
    };
    let mut goals: Vec<Goal<Syncs>> = vec![
        Goal {
            name: "EventuallyBound",
            sentence: "a claim is bound once there is a snapshot, unless it is deleted",
            while_true: |_, truth| truth.living_claim().is_some() && truth.has_latest(),
            then: |_, truth| truth.is_bound(),
        },
        Goal {
            name: "HoldsEnd",
            sentence: "a claim that is bound or gone holds no snapshot in the end",
            while_true: |_, truth| {
                let is_over = truth.claim.is_none() || truth.is_bound();
                is_over && truth.snapshots.values().any(|snapshot| !snapshot.holders.is_empty())
            },
            then: |_, _| false,
        },
    ];
    // The claim that a destination makes for itself has a volume too.
    goals.extend((system.deletes > 0 && !system.own).then_some(left));
    goals
}
