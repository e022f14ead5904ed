//! The world: the destination and its images, the claims, PVC', and volumes on record and on disk.

use super::World;
use interlock_checker::{Coder, Rng};

pub(super) const MOST_IMAGES: usize = 3;
pub(super) const MOST_CLAIMS: usize = 2;
pub(super) const MOST_FAULTS: u64 = 3;
/// How often PVC' can be made for one claim: each has its own uid, and its own volume.
pub(super) const MOST_PRIMES: usize = 3;

/// A set of claims: bit `p` stands for claim `p`.
pub(super) type Claims = u8;

/// The ReplicationDestination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Destination {
    #[default]
    Live,
    Deleting,
    Gone,
}

const DESTINATIONS: [Destination; 3] =
    [Destination::Live, Destination::Deleting, Destination::Gone];

/// How far an image is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Stage {
    #[default]
    Never,
    New,
    Ready,
    /// Deleted, and kept by the holds on it.
    Dying,
    Gone,
}

const STAGES: [Stage; 5] = [Stage::Never, Stage::New, Stage::Ready, Stage::Dying, Stage::Gone];

/// A VolumeSnapshot; its place in the state is its uid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Image {
    pub(super) stage: Stage,
    /// Somebody deleted it.
    pub(super) by_hand: bool,
    /// The claims that the populator holds it for.
    pub(super) holds: Claims,
    /// The claims whose PVC' the storage holds it for.
    pub(super) primes: Claims,
    /// The claims that gave it up without having held it.
    pub(super) touched: Claims,
}

impl Image {
    pub(super) fn is_held(&self) -> bool {
        self.holds != 0 || self.primes != 0
    }
}

/// Whether an object was made, and is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Life {
    #[default]
    Never,
    There,
    Gone,
}

const LIVES: [Life; 3] = [Life::Never, Life::There, Life::Gone];

/// What a claim says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    #[default]
    Pending,
    Bound,
    Lost,
}

const PHASES: [Phase; 3] = [Phase::Pending, Phase::Bound, Phase::Lost];

/// PVC'.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Prime {
    /// Its uid: the how-manieth it is. Its volume has the same number.
    pub(super) number: u8,
    /// The image that it is made of.
    pub(super) source: u8,
    pub(super) protected: bool,
    pub(super) deleting: bool,
    /// It names its volume.
    pub(super) named: bool,
    pub(super) phase: Phase,
}

/// The user's claim; its place in the state is its uid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Claim {
    pub(super) life: Life,
    pub(super) deleting: bool,
    /// The populator's finalizer is on it.
    pub(super) marked: bool,
    /// The storage's finalizer is on it.
    pub(super) protected: bool,
    pub(super) pin: Option<u8>,
    /// The volume that it names: whose PVC' it was poured into, and which one.
    pub(super) named: Option<(u8, u8)>,
    pub(super) phase: Phase,
    pub(super) prime: Option<Prime>,
    /// How often PVC' was made.
    pub(super) poured: u8,
}

impl Claim {
    /// There, and not to go.
    pub(super) fn is_alive(&self) -> bool {
        self.life == Life::There && !self.deleting
    }

    pub(super) fn is_gone(&self) -> bool {
        self.life == Life::Gone
    }

    /// Bound, with nothing left to be done for it.
    pub(super) fn is_filled(&self) -> bool {
        self.is_alive() && self.phase == Phase::Bound && !self.marked
    }
}

/// A volume on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Folder {
    #[default]
    None,
    Making,
    Whole,
}

const FOLDERS: [Folder; 3] = [Folder::None, Folder::Making, Folder::Whole];

/// The volume of one PVC', on the disk and as a PersistentVolume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Volume {
    pub(super) folder: Folder,
    /// The image whose data is in it; none: it is empty.
    pub(super) data: Option<u8>,
    /// It has a PersistentVolume.
    pub(super) record: bool,
    /// The record names the claim, not PVC'.
    pub(super) handed: bool,
    /// The record is to be kept when its claim is gone.
    pub(super) retain: bool,
    /// The record says for whom it is kept.
    pub(super) noted: bool,
    pub(super) released: bool,
    pub(super) going: bool,
    /// PVC' was bound to it: it is whole, and on its way.
    pub(super) filled: bool,
}

impl Volume {
    /// What an API server has of it: the guard of every write to the record.
    pub(super) fn on_record(&self) -> [bool; 6] {
        [self.record, self.handed, self.retain, self.noted, self.released, self.going]
    }
}

/// A write that a second populator has decided on, and not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Flight {
    pub(super) claim: u8,
    pub(super) write: InFlight,
    /// The image, or the number of PVC' or of the volume, that it is about.
    pub(super) target: u8,
}

/// Which write that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum InFlight {
    #[default]
    Hold,
    Pour,
    Keep,
    HandOver,
    DeletePrime,
    Settle,
    DropHold,
}

const WRITES: [InFlight; 7] = [
    InFlight::Hold,
    InFlight::Pour,
    InFlight::Keep,
    InFlight::HandOver,
    InFlight::DeletePrime,
    InFlight::Settle,
    InFlight::DropHold,
];

/// The whole of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    pub(super) destination: Destination,
    pub(super) latest: Option<u8>,
    /// The images that were ever the latest, a bit each: what old news may show.
    pub(super) published: u8,
    pub(super) images: [Image; MOST_IMAGES],
    pub(super) claims: [Claim; MOST_CLAIMS],
    pub(super) volumes: [[Volume; MOST_PRIMES]; MOST_CLAIMS],
    pub(super) flight: Option<Flight>,
    /// The volume that the storage has decided to delete on the disk.
    pub(super) reclaiming: Option<(u8, u8)>,
    pub(super) vandalised: u8,
    pub(super) faults: u8,
}

impl State {
    pub(super) fn image(&self, image: u8) -> &Image {
        &self.images[usize::from(image)]
    }

    pub(super) fn volume(&self, (claim, number): (u8, u8)) -> &Volume {
        &self.volumes[usize::from(claim)][usize::from(number)]
    }

    pub(super) fn volume_mut(&mut self, (claim, number): (u8, u8)) -> &mut Volume {
        &mut self.volumes[usize::from(claim)][usize::from(number)]
    }
}

fn code_option(value: &mut Option<u8>, coder: &mut Coder, width: u32) {
    let mut number = value.map_or(0, |value| value + 1);
    coder.u8(&mut number, width);
    *value = number.checked_sub(1);
}

fn code_place(value: &mut Option<(u8, u8)>, coder: &mut Coder) {
    let most = MOST_PRIMES as u8;
    let mut number = value.map(|(claim, number)| claim * most + number);
    code_option(&mut number, coder, 3);
    *value = number.map(|number| (number / most, number % most));
}

impl Prime {
    fn code(&mut self, coder: &mut Coder) {
        coder.u8(&mut self.number, 2);
        coder.u8(&mut self.source, 2);
        coder.bool(&mut self.protected);
        coder.bool(&mut self.deleting);
        coder.bool(&mut self.named);
        coder.of(&mut self.phase, &PHASES);
    }
}

impl Claim {
    fn code(&mut self, coder: &mut Coder) {
        coder.of(&mut self.life, &LIVES);
        for flag in [&mut self.deleting, &mut self.marked, &mut self.protected] {
            coder.bool(flag);
        }
        code_option(&mut self.pin, coder, 2);
        code_place(&mut self.named, coder);
        coder.of(&mut self.phase, &PHASES);
        let mut has_prime = self.prime.is_some();
        coder.bool(&mut has_prime);
        if has_prime {
            self.prime.get_or_insert_default().code(coder);
        } else {
            self.prime = None;
        }
        coder.u8(&mut self.poured, 2);
    }
}

impl Volume {
    fn code(&mut self, coder: &mut Coder) {
        coder.of(&mut self.folder, &FOLDERS);
        code_option(&mut self.data, coder, 2);
        for flag in [
            &mut self.record,
            &mut self.handed,
            &mut self.retain,
            &mut self.noted,
            &mut self.released,
            &mut self.going,
            &mut self.filled,
        ] {
            coder.bool(flag);
        }
    }
}

impl World {
    pub(super) fn code_state(&self, state: &mut State, coder: &mut Coder) {
        let claims = self.claims as u32;
        coder.of(&mut state.destination, &DESTINATIONS);
        code_option(&mut state.latest, coder, 2);
        coder.u8(&mut state.published, self.images as u32);
        for image in &mut state.images[..self.images] {
            coder.of(&mut image.stage, &STAGES);
            coder.bool(&mut image.by_hand);
            coder.u8(&mut image.holds, claims);
            coder.u8(&mut image.primes, claims);
            coder.u8(&mut image.touched, claims);
        }
        for claim in &mut state.claims[..self.claims] {
            claim.code(coder);
        }
        for volume in state.volumes[..self.claims].iter_mut().flatten() {
            volume.code(coder);
        }
        let mut is_flying = state.flight.is_some();
        coder.bool(&mut is_flying);
        if is_flying {
            let flight = state.flight.get_or_insert_default();
            coder.u8(&mut flight.claim, 1);
            coder.of(&mut flight.write, &WRITES);
            coder.u8(&mut flight.target, 2);
        } else {
            state.flight = None;
        }
        code_place(&mut state.reclaiming, coder);
        coder.u8(&mut state.vandalised, 2);
        coder.u8(&mut state.faults, 2);
    }

    pub(super) fn any_state(&self, rng: &mut Rng) -> State {
        let images = self.images;
        let image = |rng: &mut Rng| rng.below(images) as u8;
        let some_image = |rng: &mut Rng| rng.flip().then(|| rng.below(images) as u8);
        let set = |rng: &mut Rng| rng.below(1 << self.claims) as u8;
        let place = |rng: &mut Rng| (rng.below(self.claims) as u8, rng.below(MOST_PRIMES) as u8);
        let mut state = State {
            destination: DESTINATIONS[rng.below(DESTINATIONS.len())],
            latest: some_image(rng),
            published: rng.below(1 << images) as u8,
            vandalised: rng.below(usize::from(self.vandals) + 1) as u8,
            faults: rng.below(usize::from(self.faults) + 1) as u8,
            ..State::default()
        };
        for image in &mut state.images[..images] {
            *image = Image {
                stage: STAGES[rng.below(STAGES.len())],
                by_hand: rng.flip(),
                holds: set(rng),
                primes: set(rng),
                touched: set(rng),
            };
        }
        for claim in &mut state.claims[..self.claims] {
            *claim = Claim {
                life: LIVES[rng.below(LIVES.len())],
                deleting: rng.flip(),
                marked: rng.flip(),
                protected: rng.flip(),
                pin: some_image(rng),
                named: rng.flip().then(|| place(rng)),
                phase: PHASES[rng.below(PHASES.len())],
                prime: rng.flip().then(|| Prime {
                    number: rng.below(MOST_PRIMES) as u8,
                    source: image(rng),
                    protected: rng.flip(),
                    deleting: rng.flip(),
                    named: rng.flip(),
                    phase: PHASES[rng.below(PHASES.len())],
                }),
                poured: rng.below(MOST_PRIMES + 1) as u8,
            };
        }
        for volume in state.volumes[..self.claims].iter_mut().flatten() {
            *volume = Volume {
                folder: FOLDERS[rng.below(FOLDERS.len())],
                data: some_image(rng),
                record: rng.flip(),
                handed: rng.flip(),
                retain: rng.flip(),
                noted: rng.flip(),
                released: rng.flip(),
                going: rng.flip(),
                filled: rng.flip(),
            };
        }
        if self.two_populators && rng.flip() {
            state.flight = Some(Flight {
                claim: rng.below(self.claims) as u8,
                write: WRITES[rng.below(WRITES.len())],
                target: rng.below(3) as u8,
            });
        }
        state.reclaiming = rng.flip().then(|| place(rng));
        state
    }
}
