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
mod truth;

pub use people::collected;

use crate::kinds::{DESTINATION, SOURCE};
use crate::sync::intent::Intent;
use crate::sync::{Here, Serves};
use disks::{Attempt, Storage, Stores, Thing};
use interlock_checker::{Entry, Size, SizeError, SizeKey};
use interlock_kernel::Name;
use interlock_world::{
    CLUSTERS, Chance, Goal, Hostility, Mistake, Move, Program, Promise, Scene, Servers, System,
    World,
};
use jiff::{SignedDuration, Timestamp};
use people::{Left, left, with};
use std::collections::BTreeSet;
use truth::Truth;

const NAME: &str = "volumes";
/// The name of the source or destination.
const SYNCING: &str = "d";
/// The uid of the cluster.
const HERE: &str = "uid-a";
/// As many subjects as controllers have at most, over all states: claims, volumes, images, what
/// syncs, places, and claims that are filled.
const MOST: [usize; 6] = [8, 12, 24, 1, 4, 2];
/// Longer than any pause after a failure.
const PAUSE: SignedDuration = SignedDuration::from_hours(2);

const KIND: SizeKey =
    SizeKey::new("kind", "1: a source of images, 2: of backups, 3: a destination", 3, 1, 3);
const SYNCS: SizeKey = SizeKey::new("syncs", "tags that are set, one sync each", 1, 1, 3);
const DONE: SizeKey = SizeKey::new("done", "1: the first sync is done at the start", 1, 0, 1);
const OWN: SizeKey =
    SizeKey::new("own", "1: the destination makes its volume, and deletes it again", 0, 0, 1);
const CLAIMS: SizeKey =
    SizeKey::new("claims", "claims of one name that are filled, one after the other", 1, 0, 2);
const DELETES: SizeKey = SizeKey::new("deletes", "claims that people delete", 0, 0, 2);
const VANDALS: SizeKey = SizeKey::new("vandals", "images that people delete by hand", 1, 0, 2);
const LEAVE: SizeKey = SizeKey::new("leave", "1: people delete the source or destination", 0, 0, 1);
const FAULTS: SizeKey =
    SizeKey::new("faults", "volumes, images and movers that fail or die", 0, 0, 2);
const SECOND: SizeKey =
    SizeKey::new("second", "1: there is a second populator, 2: a second of what syncs", 0, 0, 2);
const FLIGHTS: SizeKey = SizeKey::new("flights", "steps that are under way at once", 1, 0, 2);
const STALE: SizeKey = SizeKey::new("stale", "objects that are out of date at once", 1, 0, 2);
const CRASH: SizeKey = SizeKey::new("crash", "1: programs crash at any time", 1, 0, 1);
const RELIST: SizeKey =
    SizeKey::new("relist", "1: programs that start anew list the past", 0, 0, 1);
const WAKES: SizeKey = SizeKey::new("wakes", "1: whoever gains work must be woken", 0, 0, 1);
const LIVE: SizeKey = SizeKey::new("live", "1: what must happen in the end is checked", 0, 0, 1);

const KEYS: [SizeKey; 16] = [
    KIND, SYNCS, DONE, OWN, CLAIMS, DELETES, VANDALS, LEAVE, FAULTS, SECOND, FLIGHTS, STALE, CRASH,
    RELIST, WAKES, LIVE,
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the shipped controllers of volumes as they are, whatever crashes, lags or is late",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(World::new(Syncs::from_size(size)?))),
};

/// What syncs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A source whose images are the product.
    Images,
    /// A source whose images go into a repository.
    Backups,
    /// A destination.
    Destination,
}

impl Kind {
    /// The kind of its object.
    fn object(self) -> interlock_kernel::Kind {
        match self {
            Kind::Images | Kind::Backups => SOURCE,
            Kind::Destination => DESTINATION,
        }
    }
}

/// The machine of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Machine {
    storage: Storage,
    /// The images that somebody deleted by hand, by uid: nothing else shows who did it.
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
    /// The first sync is done at the start.
    done: bool,
    /// The destination makes its volume itself.
    own: bool,
    claims: u32,
    deletes: u32,
    vandals: u32,
    leave: bool,
    faults: u32,
    /// 1: another process has a populator too, 2: it has a controller of what syncs.
    second: u8,
    hostility: Hostility,
    live: bool,
    /// What is done otherwise, on purpose.
    bends: &'static [mistakes::Bend],
}

impl Syncs {
    fn from_size(size: &Size) -> Result<Self, SizeError> {
        let [
            kind,
            syncs,
            done,
            own,
            claims,
            deletes,
            vandals,
            leave,
            faults,
            second,
            flights,
            stale,
            crash,
            relist,
            wakes,
            live,
        ] = size.numbers(NAME, &KEYS)?;
        let kind = match kind {
            1 => Kind::Images,
            2 => Kind::Backups,
            _ => Kind::Destination,
        };
        let is_destination = kind == Kind::Destination;
        let hostility = Hostility::of([flights, stale, crash, relist, wakes, live]);
        Ok(Syncs {
            kind,
            syncs: syncs as u32,
            // Nobody fills a claim from a source.
            done: done == 1 && is_destination,
            own: own == 1 && is_destination,
            claims: if is_destination { claims as u32 } else { 0 },
            deletes: deletes as u32,
            vandals: vandals as u32,
            leave: leave == 1,
            faults: faults as u32,
            second: second as u8,
            hostility,
            live: live == 1,
            bends: &[],
        })
    }
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
    type Past = ();
    type Truth = Truth;

    fn size(&self) -> String {
        let Hostility { flights, stale, relists, wakes, .. } = self.hostility;
        let crash = self.hostility.crash();
        let kind = match self.kind {
            Kind::Images => 1,
            Kind::Backups => 2,
            Kind::Destination => 3,
        };
        let flags = [self.done, self.own, self.leave, relists, wakes, self.live];
        let [done, own, leave, relist, wakes, live] = flags.map(u8::from);
        let Syncs { syncs, claims, deletes, vandals, faults, second, .. } = self;
        format!(
            "kind={kind},syncs={syncs},done={done},own={own},claims={claims},deletes={deletes},\
             vandals={vandals},leave={leave},faults={faults},second={second},\
             flights={flights},stale={stale},crash={crash},relist={relist},wakes={wakes},live={live}"
        )
    }

    fn hostility(&self) -> Hostility {
        self.hostility
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name {
            "SetTag" => Some("in this size nobody asks for another sync"),
            "DeleteClaim" | "MakeClaimAgain" => Some("in this size nobody deletes a claim"),
            "DeleteImage" => Some("in this size nobody deletes an image by hand"),
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
        let mut things = storage.volumes.values().chain(storage.images.values());
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

    fn programs(&self) -> Vec<Program<Machine>> {
        let here = || Here { name: "a".into(), uid: HERE.into() };
        let bends = self.bends;
        let mut program = Program::new("volumes", Some(0))
            .asking(mistakes::claims(bends), MOST[0])
            .asking(mistakes::volumes(bends), MOST[1])
            .asking(mistakes::images(bends), MOST[2]);
        let syncing = || match self.kind {
            Kind::Images | Kind::Backups => mistakes::sources(bends, Serves::Own),
            Kind::Destination => mistakes::destinations(bends, Serves::Own, here()),
        };
        program = program.asking(syncing(), MOST[3]);
        if self.kind != Kind::Images {
            program = program.asking(mistakes::keeper(bends), MOST[4]);
        }
        if self.claims > 0 {
            program = program.asking(mistakes::populator(bends), MOST[5]);
        }
        let mut programs = vec![program];
        let second = Program::new("second", Some(0));
        match self.second {
            0 => {}
            1 => programs.push(second.asking(mistakes::populator(bends), MOST[5])),
            _ => programs.push(second.asking(syncing(), MOST[3])),
        }
        programs
    }

    fn initial(&self, servers: &Servers) -> ([u32; 1 + CLUSTERS], [Machine; CLUSTERS], Chance) {
        let start = first::first(self, servers);
        let empty = servers.empty();
        let machine = Machine { storage: start.storage, ..Machine::default() };
        let chance = with(Left::Tags, self.syncs - 1)
            | with(Left::Deletes, self.deletes)
            | with(Left::Claims, self.claims.saturating_sub(1))
            | with(Left::Vandals, self.vandals)
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

    fn promises(&self) -> Vec<Promise<Self>> {
        promises::promises(self)
    }

    fn reachable(&self) -> Vec<Promise<Self>> {
        promises::reachable(self)
    }

    fn goals(&self) -> Vec<Goal<Self>> {
        if self.live { promises::goals(self) } else { Vec::new() }
    }

    fn mistakes(&self) -> Vec<Mistake<Self>> {
        mistakes::mistakes()
    }

    fn is_done(&self, truth: &Truth) -> bool {
        let is_filled = truth.claim.is_none() || truth.is_bound() || !truth.has_latest();
        let is_left = truth.object.as_ref().is_some_and(|object| object.is_going);
        is_filled && truth.is_synced() && !is_left
    }

    fn show(&self, truth: &Truth) -> Vec<(&'static str, String)> {
        let object = truth.object.as_ref().map(|object| {
            let going = if object.is_going { "being deleted, " } else { "" };
            format!(
                "{going}tag {}, answered {}, given up {}, latest {:?}, sync {:?}",
                object.tag, object.answered, object.given_up, object.latest, object.intent
            )
        });
        let claim = truth.claim.as_ref().map(|claim| {
            let going = if claim.is_going { "being deleted, " } else { "" };
            format!("{going}{:?}, pin {:?}, volume {:?}", claim.phase, claim.pin, claim.volume)
        });
        let image = |(uid, image): (&String, &truth::Image)| {
            let going = if image.is_going { " being deleted" } else { "" };
            let ready = if image.is_ready { " ready" } else { "" };
            format!("{uid}{ready}{going} held {:?} has {:?}", image.holders, image.data)
        };
        let images: Vec<String> = truth.images.iter().map(image).collect();
        let volume = |(name, volume): (&String, &truth::Volume)| {
            let inside = volume.inside.as_ref().map(|inside| &inside.data);
            format!("{name} of {} has {inside:?}", volume.owner)
        };
        let volumes: Vec<String> = truth.volumes.iter().map(volume).collect();
        vec![
            ("object", object.unwrap_or_else(|| "none".to_owned())),
            ("claim", claim.unwrap_or_else(|| "none".to_owned())),
            ("images", images.join("; ")),
            ("volumes", volumes.join("; ")),
            ("movers", format!("{:?}", truth.running)),
        ]
    }
}

#[cfg(test)]
mod tests;
