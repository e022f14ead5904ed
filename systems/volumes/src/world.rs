//! The shipped volume controllers, explored as they are: one namespace with a source or a destination,
//! a claim that is filled from it, and people who ask for syncs and delete things.
//!
//! `interlock check volumes` runs this. Nothing here says what a controller does: the world calls
//! the controllers themselves, through their caches and their live reads, and applies what they
//! write. What is written down here is what is around them: the first objects, the people, the disk,
//! the movers and the repository, and the promises.
//!
//! [`disks`] is of use to any world in which the volume controllers run.

pub mod disks;
mod first;
mod mistakes;
mod people;
mod promises;
mod refine;
mod size;
mod truth;

pub use people::collected;

use crate::kinds::{DESTINATION, SOURCE};
use crate::sync::intent::Intent;
use crate::sync::{Here, Serves};
use disks::{Attempt, Storage, Stores, Thing};
use interlock_checker::{Entry, Refinement};
use interlock_kernel::Name;
use interlock_world::{
    CLUSTERS, Chance, Goal, Hostility, Mistake, Move, Program, Promise, Scene, Servers, State,
    System, World,
};
use jiff::{SignedDuration, Timestamp};
use people::{Left, left, with};
use std::collections::BTreeSet;
use truth::Truth;

const NAME: &str = "volumes";
/// The name of the source or destination.
const SYNCING: &str = "d";
/// The name of the second program.
const SECOND: &str = "second";
/// The uid of the cluster.
const HERE: &str = "uid-a";
/// As many subjects as controllers have at most, over all states: claims, volumes, snapshots, what
/// syncs, places, and claims that are filled.
const MOST: [usize; 6] = [8, 12, 24, 1, 4, 2];
/// Longer than any pause after a failure.
const PAUSE: SignedDuration = SignedDuration::from_hours(2);

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the shipped controllers of volumes as they are, whatever crashes, lags or is late",
    keys: &size::KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(World::new(Syncs::from_size(size)?))),
};

/// What syncs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A source whose snapshots are the product.
    Snapshots,
    /// A source whose snapshots go into a repository.
    Backups,
    /// A destination.
    Destination,
}

impl Kind {
    /// The kind of its object.
    fn object(self) -> interlock_kernel::Kind {
        match self {
            Kind::Snapshots | Kind::Backups => SOURCE,
            Kind::Destination => DESTINATION,
        }
    }
}

/// The machine of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Machine {
    storage: Storage,
    /// The snapshots and PVC's that somebody deleted by hand, by uid: nothing else shows who did it.
    by_hand: BTreeSet<String>,
}

impl Stores for Machine {
    fn storage(&self) -> &Storage {
        &self.storage
    }
    fn with_storage(&self, storage: Storage) -> Machine {
        Machine { storage, ..self.clone() }
    }
}

/// What syncs, what is filled from it, and what happens to them, in some size.
#[derive(Clone)]
pub struct Syncs {
    kind: Kind,
    syncs: u32,
    /// How many syncs are done at the start.
    done: u32,
    /// The destination makes its volume itself.
    own: bool,
    claims: u32,
    deletes: u32,
    vandals: u32,
    /// How many PVC's are deleted by hand.
    drops: u32,
    leave: bool,
    faults: u32,
    /// 1: another process has a populator too, 2: it has a controller of what syncs.
    second: u8,
    hostility: Hostility,
    /// Only steps of the second program are under way: those in which a second populator makes PVC'.
    /// People who delete snapshots by hand spare the latest.
    is_second_late: bool,
    /// Every step is compared with the protocol, for which every snapshot is remembered.
    is_refined: bool,
    live: bool,
    /// What is done otherwise, on purpose.
    bends: &'static [mistakes::Bend],
    /// The size that it was made of.
    numbers: [u64; size::KEYS.len()],
}

fn start() -> Timestamp {
    Timestamp::from_second(1_000_000).unwrap_or_default()
}

/// The time after so many pauses.
fn after(pauses: u32) -> Timestamp {
    start().checked_add(PAUSE * pauses as i32).unwrap_or_default()
}

impl System for Syncs {
    type Machine = Machine;
    type Past = truth::Past;
    type Truth = Truth;

    fn size(&self) -> String {
        self.shown_size()
    }

    fn hostility(&self) -> Hostility {
        self.hostility
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name {
            "SetTag" => Some("in this size nobody asks for another sync"),
            "DeleteClaim" | "MakeClaimAgain" => Some("in this size nobody deletes a claim"),
            "DeleteSnapshot" => Some("in this size nobody deletes a snapshot by hand"),
            "DeletePrime" => Some("in this size nobody deletes a PVC' by hand"),
            "DeleteObject" => Some("in this size nobody deletes the source or destination"),
            "Collect" => Some("nothing is left for the garbage collector"),
            "Fails" | "BringsNothing" | "Dies" => Some("in this size nothing fails"),
            "Made" | "Moved" => Some("in this size nothing is made or moved"),
            _ => None,
        }
    }

    fn times(&self) -> Vec<Timestamp> {
        (0..=self.faults).map(after).collect()
    }

    /// Time matters after a failure only, and goes on when that is said and the pause has begun.
    fn may_pass(&self, scene: &Scene<'_, Self>) -> bool {
        let storage = &scene.machines[0].storage;
        let is_failed = |thing: &Thing| matches!(thing, Thing::Failed(_));
        let mut things = storage.volumes.values().chain(storage.snapshots.values());
        let object = scene.cluster(0).get(&self.kind.object(), &Name::within(first::SHOP, SYNCING));
        let intent = object.and_then(|object| Intent::read(&object).ok().flatten());
        let is_said = |((sync, number), attempt): (&(String, u32), &Attempt)| match attempt {
            Attempt::Failed(_) => {
                intent.as_ref().is_none_or(|it| it.id != *sync || it.attempt > *number)
            }
            Attempt::Writes { .. } | Attempt::Saves(_) | Attempt::Done { .. } => true,
        };
        scene.now < after(left(scene.chance, Left::Pauses))
            && !things.any(is_failed)
            && storage.movers.iter().all(is_said)
    }

    fn may_be_late(&self, program: &str) -> bool {
        !self.is_second_late || program == SECOND
    }

    fn programs(&self) -> Vec<Program<Machine>> {
        let here = || Here { name: "a".into(), uid: HERE.into() };
        let bends = self.bends;
        let mut program = Program::new("volumes", Some(0))
            .asking(mistakes::claims(bends), MOST[0])
            .asking(mistakes::volumes(bends), MOST[1])
            .asking(mistakes::snapshots(bends), MOST[2]);
        let syncing = || match self.kind {
            Kind::Snapshots | Kind::Backups => mistakes::sources(bends, Serves::Own),
            Kind::Destination => mistakes::destinations(bends, Serves::Own, here()),
        };
        program = program.asking(syncing(), MOST[3]);
        if self.kind != Kind::Snapshots {
            program = program.asking(mistakes::keeper(bends), MOST[4]);
        }
        if self.claims > 0 {
            program = program.asking(mistakes::populator(bends), MOST[5]);
        }
        let mut programs = vec![program];
        let second = Program::new(SECOND, Some(0));
        match self.second {
            0 => {}
            1 if self.is_second_late => {
                programs.push(second.asking(mistakes::only_pours(), MOST[5]));
            }
            1 => programs.push(second.asking(mistakes::populator(bends), MOST[5])),
            _ => programs.push(second.asking(syncing(), MOST[3])),
        }
        programs
    }

    fn initial(&self, servers: &Servers) -> ([u32; 1 + CLUSTERS], [Machine; CLUSTERS], Chance) {
        let start = first::first(self, servers);
        let empty = servers.empty();
        let machine = Machine { storage: start.storage, ..Machine::default() };
        let chance = with(Left::Tags, self.syncs - self.done.max(1))
            | with(Left::Deletes, self.deletes)
            | with(Left::Claims, self.claims.saturating_sub(1))
            | with(Left::Vandals, self.vandals)
            | with(Left::Drops, self.drops)
            | with(Left::Leaves, u32::from(self.leave))
            | with(Left::Faults, self.faults);
        ([empty, start.server, empty], [machine, Machine::default()], chance)
    }

    fn moves(&self) -> Vec<(&'static str, &'static str, bool)> {
        people::ACTIONS.to_vec()
    }

    fn next(&self, scene: &Scene<'_, Self>) -> Vec<Move<Machine>> {
        people::next(self, scene)
    }

    fn crash(&self, program: &str, machine: &Machine) -> Machine {
        match program {
            "volumes" => machine.with_storage(machine.storage.crashed()),
            _ => machine.clone(),
        }
    }

    fn truth(&self, scene: &Scene<'_, Self>) -> Truth {
        truth::read(self, scene)
    }

    fn remember(&self, past: &truth::Past, before: &Truth, after: &Truth) -> truth::Past {
        if self.is_refined { past.after(before, after) } else { past.clone() }
    }

    fn promises(&self) -> Vec<Promise<Self>> {
        promises::promises(self)
    }

    fn reachable(&self) -> Vec<Promise<Self>> {
        promises::reachable(self)
    }

    fn goals(&self) -> Vec<Goal<Self>> {
        if self.live { promises::goals(self) } else { Vec::new() }
    }

    fn refines(&self, world: &World<Self>) -> Vec<Refinement<State>> {
        if self.is_refined { refine::refines(self, world) } else { Vec::new() }
    }

    fn mistakes(&self) -> Vec<Mistake<Self>> {
        mistakes::mistakes()
    }

    fn is_done(&self, truth: &Truth) -> bool {
        let is_filled = truth.claim.is_none() || truth.is_bound() || !truth.has_latest();
        let is_left = truth.object.as_ref().is_some_and(|object| object.is_terminating);
        is_filled && truth.is_synced() && !is_left
    }

    fn show(&self, truth: &Truth) -> Vec<(&'static str, String)> {
        let object = truth.object.as_ref().map(|object| {
            let terminating = if object.is_terminating { "being deleted, " } else { "" };
            format!(
                "{terminating}tag {}, answered {}, given up {}, latest {:?}, sync {:?}",
                object.tag, object.answered, object.given_up, object.latest, object.intent
            )
        });
        let claim = truth.claim.as_ref().map(|claim| {
            let terminating = if claim.is_terminating { "being deleted, " } else { "" };
            format!(
                "{terminating}{:?}, pin {:?}, volume {:?}",
                claim.phase, claim.pin, claim.volume
            )
        });
        let snapshot = |(uid, snapshot): (&String, &truth::Snapshot)| {
            let terminating = if snapshot.is_terminating { " being deleted" } else { "" };
            let ready = if snapshot.is_ready { " ready" } else { "" };
            format!("{uid}{ready}{terminating} held {:?} has {:?}", snapshot.holders, snapshot.data)
        };
        let snapshots: Vec<String> = truth.snapshots.iter().map(snapshot).collect();
        let volume = |(name, volume): (&String, &truth::Volume)| {
            let inside = volume.inside.as_ref().map(|inside| &inside.data);
            format!("{name} of {} has {inside:?}", volume.owner)
        };
        let volumes: Vec<String> = truth.volumes.iter().map(volume).collect();
        vec![
            ("object", object.unwrap_or_else(|| "none".to_owned())),
            ("claim", claim.unwrap_or_else(|| "none".to_owned())),
            ("snapshots", snapshots.join("; ")),
            ("volumes", volumes.join("; ")),
            ("movers", format!("{:?}", truth.running)),
        ]
    }
}

#[cfg(test)]
mod tests;
