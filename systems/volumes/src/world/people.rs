//! What people do, what ends by itself, and what the garbage collector takes away.

use super::disks::{Copied, Ending, Storage, Thing};
use super::first::{DATA, SHOP, TARGET_VOLUME, claim};
use super::{Chance, Kind, Machine, SYNCING, Syncs};
use crate::kinds::{CLAIM, DESTINATION, SNAPSHOT_KIND};
use crate::objects::{annotation, is_deleting, label, uid_of};
use interlock_api::names::{ANNOTATION_LATEST_IMAGE_UID, LABEL_PRIME_FOR};
use interlock_kernel::{Name, Object};
use interlock_world::{Move, Scene, Servers};
use serde_json::json;
use std::collections::BTreeSet;

/// Everything that happens besides the steps of controllers: its name, who does it, and whether it
/// must happen in the end.
pub(super) const ACTIONS: [(&str, &str, bool); 12] = [
    ("SetTag", "people", false),
    ("DeleteClaim", "people", false),
    ("MakeClaimAgain", "people", false),
    ("DeleteSnapshot", "people", false),
    ("DeleteObject", "people", false),
    ("Collect", "garbage collector", true),
    ("Made", "disk", true),
    ("Moved", "mover", true),
    ("Fails", "machine", false),
    ("BringsNothing", "mover", false),
    ("Dies", "mover", false),
    ("DeletePrime", "people", false),
];
const SET_TAG: usize = 0;
const DELETE_CLAIM: usize = 1;
const MAKE_AGAIN: usize = 2;
const DELETE_SNAPSHOT: usize = 3;
const DELETE_OBJECT: usize = 4;
const COLLECT: usize = 5;
const MADE: usize = 6;
const MOVED: usize = 7;
const FAILS: usize = 8;
const BRINGS_NOTHING: usize = 9;
const DIES: usize = 10;
const DELETE_PRIME: usize = 11;

/// One of several numbers of two bits each: how often something may still happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    Tags,
    Deletes,
    Claims,
    Vandals,
    Leaves,
    Faults,
    /// Pauses that have to go by.
    Pauses,
    Drops,
}

pub(super) fn left(chance: Chance, of: Left) -> u32 {
    chance >> (2 * of as u32) & 3
}

pub(super) fn with(of: Left, number: u32) -> Chance {
    number << (2 * of as u32)
}

fn one_less(chance: Chance, of: Left) -> Chance {
    chance - with(of, 1)
}

/// What can happen now.
pub(super) fn next(system: &Syncs, scene: &Scene<'_, Syncs>) -> Vec<Move<Machine>> {
    let people = People { system, scene };
    let mut moves = Vec::new();
    moves.extend(people.set_tag());
    moves.extend(people.deletes());
    people.delete_by_hand(DELETE_SNAPSHOT, Left::Vandals, &SNAPSHOT_KIND, &mut moves);
    people.delete_by_hand(DELETE_PRIME, Left::Drops, &CLAIM, &mut moves);
    people.ends(&mut moves);
    let collected = collected(scene.servers, scene.contents[1], &people.owned());
    moves.extend(collected.into_iter().map(|server| people.on_server(COLLECT, server)));
    moves
}

/// The kinds that own something, or are owned.
const OWNED: [interlock_kernel::Kind; 4] =
    [CLAIM, SNAPSHOT_KIND, crate::kinds::SOURCE, crate::kinds::DESTINATION];

/// A server after the garbage collector took away something whose owners are all gone: each that it
/// can take.
pub fn collected(
    servers: &Servers,
    server: u32,
    objects: &[(interlock_kernel::Kind, Object)],
) -> Vec<u32> {
    let there: BTreeSet<&str> = objects.iter().map(|(_, object)| uid_of(object)).collect();
    let is_garbage = |object: &Object| {
        let owners = object.metadata.owner_references.as_deref().unwrap_or_default();
        let is_gone = owners.iter().all(|owner| !there.contains(owner.uid.as_str()));
        !owners.is_empty() && is_gone && !is_deleting(object)
    };
    let garbage = objects.iter().filter(|(_, object)| is_garbage(object));
    garbage.map(|(kind, object)| servers.remove(server, kind, &Name::of(object))).collect()
}

struct People<'a> {
    system: &'a Syncs,
    scene: &'a Scene<'a, Syncs>,
}

impl People<'_> {
    fn unchanged(&self, name: usize) -> Move<Machine> {
        self.scene.at_hub(name, self.scene.contents[0])
    }

    fn on_server(&self, name: usize, server: u32) -> Move<Machine> {
        let mut found = self.unchanged(name);
        found.servers[1] = server;
        found
    }

    fn left(&self, of: Left) -> bool {
        left(self.scene.chance, of) > 0
    }

    /// Everything that owns, or is owned.
    fn owned(&self) -> Vec<(interlock_kernel::Kind, Object)> {
        let all = |kind: &interlock_kernel::Kind| {
            let found = self.scene.cluster(0).list(kind).into_iter();
            found.map(|object| (kind.clone(), object)).collect::<Vec<_>>()
        };
        OWNED.iter().flat_map(all).collect()
    }

    fn storage(&self) -> &Storage {
        &self.scene.machines[0].storage
    }

    /// Somebody writes, or somebody else's backup arrives, and then asks for a sync of it.
    fn set_tag(&self) -> Option<Move<Machine>> {
        let (kind, name) = (self.system.kind.object(), Name::within(SHOP, SYNCING));
        let object = self.scene.cluster(0).get(&kind, &name)?;
        if !self.left(Left::Tags) || is_deleting(&object) {
            return None;
        }
        let before = object.data["spec"]["trigger"]["manual"].as_str()?.parse::<i64>().ok()?;
        let tag = before + 1;
        let patch = json!({"metadata": {"generation": tag},
            "spec": {"trigger": {"manual": tag.to_string()}}});
        let server = self.scene.servers.change(self.scene.contents[1], &kind, &name, &patch);
        let mut found = self.on_server(SET_TAG, server);
        found.chance = one_less(found.chance, Left::Tags);
        let mut storage = self.storage().clone();
        match self.system.kind {
            Kind::Destination => {
                let all = (1..=tag).collect();
                storage.repository.push((format!("r{tag}"), all));
            }
            Kind::Snapshots | Kind::Backups => {
                if let Some(Thing::Whole(Copied { data, .. })) =
                    storage.volumes.get_mut(TARGET_VOLUME)
                {
                    data.insert(tag);
                }
            }
        }
        found.machines[0] = Some(self.machine(storage));
        Some(found)
    }

    fn machine(&self, storage: Storage) -> Machine {
        Machine { storage, ..Machine::clone(&self.scene.machines[0]) }
    }

    /// Somebody deletes the claim, makes it again, or deletes what it is filled from.
    fn deletes(&self) -> Vec<Move<Machine>> {
        let (servers, server) = (self.scene.servers, self.scene.contents[1]);
        let mut moves = Vec::new();
        let name = Name::within(SHOP, DATA);
        let found = self.scene.cluster(0).get(&CLAIM, &name);
        if found.as_ref().is_some_and(|it| !is_deleting(it)) && self.left(Left::Deletes) {
            let mut found = self.on_server(DELETE_CLAIM, servers.remove(server, &CLAIM, &name));
            found.chance = one_less(found.chance, Left::Deletes);
            moves.push(found);
        }
        if found.is_none() && self.left(Left::Claims) {
            let mut found = self.on_server(MAKE_AGAIN, servers.put(server, &CLAIM, &name, claim()));
            found.chance = one_less(found.chance, Left::Claims);
            moves.push(found);
        }
        let (kind, name) = (self.system.kind.object(), Name::within(SHOP, SYNCING));
        let is_there = self.scene.cluster(0).get(&kind, &name).is_some_and(|it| !is_deleting(&it));
        if is_there && self.left(Left::Leaves) {
            let mut found = self.on_server(DELETE_OBJECT, servers.remove(server, &kind, &name));
            found.chance = one_less(found.chance, Left::Leaves);
            moves.push(found);
        }
        moves
    }

    /// Somebody deletes a snapshot or a PVC' by hand, whatever it is needed for.
    fn delete_by_hand(
        &self,
        name: usize,
        of: Left,
        kind: &interlock_kernel::Kind,
        moves: &mut Vec<Move<Machine>>,
    ) {
        if !self.left(of) {
            return;
        }
        let latest = self.scene.cluster(0).get(&DESTINATION, &Name::within(SHOP, SYNCING));
        let latest = latest.filter(|_| self.system.is_second_late);
        let latest = latest.as_deref().and_then(|it| annotation(it, ANNOTATION_LATEST_IMAGE_UID));
        let is_spared = |object: &Object| {
            is_deleting(object)
                || Some(uid_of(object)) == latest
                || *kind == CLAIM && label(object, LABEL_PRIME_FOR).is_none()
        };
        for object in self.scene.cluster(0).list(kind).into_iter().filter(|it| !is_spared(it)) {
            let server = self.scene.contents[1];
            let server = self.scene.servers.remove(server, kind, &Name::of(&object));
            let mut found = self.on_server(name, server);
            found.chance = one_less(found.chance, of);
            let mut machine = Machine::clone(&self.scene.machines[0]);
            machine.by_hand.insert(uid_of(&object).to_owned());
            found.machines[0] = Some(machine);
            moves.push(found);
        }
    }

    /// What takes long ends, well or badly. What fails and may heal is tried again after a pause, so
    /// it fails only as long as there is time for one.
    fn ends(&self, moves: &mut Vec<Move<Machine>>) {
        let may_fail = self.left(Left::Faults);
        for (ending, storage) in self.storage().endings() {
            let (name, is_fault) = match ending {
                Ending::Made => (MADE, false),
                Ending::Moved => (MOVED, false),
                Ending::Fails | Ending::FailsForGood => (FAILS, true),
                Ending::BringsNothing => (BRINGS_NOTHING, true),
                Ending::Dies => (DIES, true),
            };
            if is_fault && !may_fail {
                continue;
            }
            let mut found = self.unchanged(name);
            found.machines[0] = Some(self.machine(storage));
            if is_fault {
                found.chance = one_less(found.chance, Left::Faults);
            }
            if ending == Ending::Fails {
                found.chance += with(Left::Pauses, 1);
            }
            moves.push(found);
        }
    }
}
