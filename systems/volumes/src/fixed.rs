//! VolSyncPopulator corrected: claims are filled from snapshots that move on while it happens.
//!
//! The populator reads LatestImage first and takes a hold on that snapshot later; a snapshot that
//! is to be deleted goes once nobody holds it. `specs/fixed/VolSyncPopulatorFixed.tla` is its text.

mod steps;
#[cfg(test)]
mod tests;

use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{
    Action, ActionId, Coder, Entry, Fairness, Formula, Invariant, Model, Mutant, Property, Rng,
    Size, SizeError, SizeKey, Steps,
};

const NAME: &str = "fixed/volsync-populator";
const KEYS: [SizeKey; 2] = [
    SizeKey::new("ids", "ids that an object can be given, none twice", 5, 4, MOST as u64),
    SizeKey::new("claims", "claims that are to be filled", 1, 1, 2),
];
const MOST: usize = 7;

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "claims are filled from the latest snapshot, and hold it while they are",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(VolSyncPopulator::from_size(size)?)),
};

/// An id, or none.
type Oid = Option<u8>;

const OIDS: [Oid; MOST + 1] = [None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5), Some(6)];

/// How far a claim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    /// Without an image.
    #[default]
    Pending,
    /// Holds its image.
    Populating,
    /// Has its volume.
    Bound,
}

const PHASES: [Phase; 3] = [Phase::Pending, Phase::Populating, Phase::Bound];

/// The kind of the object that has an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Absent,
    Destination,
    Snapshot,
    Claim,
    Volume,
}

const KINDS: [Kind; 5] =
    [Kind::Absent, Kind::Destination, Kind::Snapshot, Kind::Claim, Kind::Volume];

/// The object that has an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Object {
    /// There is none.
    #[default]
    Absent,
    /// `RD`: a replication destination, with the id of its latest snapshot.
    Destination {
        /// `LI`
        latest_image: Oid,
    },
    /// `VS`: a snapshot.
    Snapshot {
        /// The destination it was taken of.
        owner: u8,
        /// It goes once nobody holds it.
        is_deleted: bool,
        /// `fin`: the claims that hold it, one bit each.
        holders: u8,
    },
    /// `PVC`: a claim.
    Claim {
        /// The destination whose image it wants.
        source: u8,
        /// How far it is.
        phase: Phase,
        /// The snapshot it is filled from.
        image: Oid,
        /// The volume it got.
        volume: Oid,
    },
    /// `PV`: a volume.
    Volume {
        /// The snapshot that is in it.
        image: Oid,
        /// Whose it is.
        claim: u8,
    },
}

impl Object {
    fn kind(&self) -> Kind {
        match self {
            Object::Absent => Kind::Absent,
            Object::Destination { .. } => Kind::Destination,
            Object::Snapshot { .. } => Kind::Snapshot,
            Object::Claim { .. } => Kind::Claim,
            Object::Volume { .. } => Kind::Volume,
        }
    }

    fn blank(kind: Kind) -> Self {
        match kind {
            Kind::Absent => Object::Absent,
            Kind::Destination => Object::Destination { latest_image: None },
            Kind::Snapshot => Object::Snapshot { owner: 0, is_deleted: false, holders: 0 },
            Kind::Claim => {
                Object::Claim { source: 0, phase: Phase::Pending, image: None, volume: None }
            }
            Kind::Volume => Object::Volume { image: None, claim: 0 },
        }
    }

    fn code(&mut self, coder: &mut Coder) {
        let mut kind = self.kind();
        coder.of(&mut kind, &KINDS);
        if self.kind() != kind {
            *self = Object::blank(kind);
        }
        match self {
            Object::Absent => {}
            Object::Destination { latest_image } => coder.of(latest_image, &OIDS),
            Object::Snapshot { owner, is_deleted, holders } => {
                coder.u8(owner, 3);
                coder.bool(is_deleted);
                coder.u8(holders, MOST as u32);
            }
            Object::Claim { source, phase, image, volume } => {
                coder.u8(source, 3);
                coder.of(phase, &PHASES);
                coder.of(image, &OIDS);
                coder.of(volume, &OIDS);
            }
            Object::Volume { image, claim } => {
                coder.of(image, &OIDS);
                coder.u8(claim, 3);
            }
        }
    }

    fn with_ids_moved(self, places: &[usize; MOST]) -> Self {
        let one = |id: u8| moved(places, id);
        match self {
            Object::Absent => Object::Absent,
            Object::Destination { latest_image } => {
                Object::Destination { latest_image: latest_image.map(one) }
            }
            Object::Snapshot { owner, is_deleted, holders } => Object::Snapshot {
                owner: one(owner),
                is_deleted,
                holders: moved_set(places, holders),
            },
            Object::Claim { source, phase, image, volume } => Object::Claim {
                source: one(source),
                phase,
                image: image.map(one),
                volume: volume.map(one),
            },
            Object::Volume { image, claim } => {
                Object::Volume { image: image.map(one), claim: one(claim) }
            }
        }
    }

    fn show(&self, id: u8) -> Option<String> {
        let oid = show_id(id);
        Some(match *self {
            Object::Absent => return None,
            Object::Destination { latest_image } => {
                format!("[k |-> \"RD\", oid |-> {oid}, LI |-> {}]", show(latest_image))
            }
            Object::Snapshot { owner, is_deleted, holders } => format!(
                "[k |-> \"VS\", oid |-> {oid}, owner |-> {}, deleted |-> {}, fin |-> {}]",
                show_id(owner),
                if is_deleted { "TRUE" } else { "FALSE" },
                show_set(holders)
            ),
            Object::Claim { source, phase, image, volume } => format!(
                "[k |-> \"PVC\", oid |-> {oid}, src |-> {}, phase |-> \"{phase:?}\", \
                 img |-> {}, pv |-> {}]",
                show_id(source),
                show(image),
                show(volume)
            ),
            Object::Volume { image, claim } => format!(
                "[k |-> \"PV\", oid |-> {oid}, img |-> {}, claim |-> {}]",
                show(image),
                show_id(claim)
            ),
        })
    }
}

/// The three variables; `Objs` is kept as the object behind each id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    objects: [Object; MOST],
    /// One bit for each id that was ever given out.
    used: u8,
    /// What the populator read for each claim.
    choice: [Oid; MOST],
}

impl State {
    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = u8> {
        (0..MOST as u8).filter(move |id| self.objects[usize::from(*id)].kind() == kind)
    }

    fn claims_not_bound(&self) -> usize {
        let is_open = |object: &&Object| {
            matches!(object, Object::Claim { phase: Phase::Pending | Phase::Populating, .. })
        };
        self.objects.iter().filter(is_open).count()
    }

    fn is_latest(&self, snapshot: u8) -> bool {
        self.objects.contains(&Object::Destination { latest_image: Some(snapshot) })
    }

    fn only_latest_images_remain(&self) -> bool {
        self.of_kind(Kind::Snapshot).all(|id| self.is_latest(id))
    }

    fn all_are_bound(&self, claims: usize) -> bool {
        self.of_kind(Kind::Claim).count() == claims && self.claims_not_bound() == 0
    }

    /// The same with one object put in place of whatever had its id.
    fn with(&self, id: u8, object: Object) -> State {
        let mut next = self.clone();
        next.objects[usize::from(id)] = object;
        next
    }

    /// The same with a new object, whose id is then never free again.
    fn with_new(&self, id: u8, object: Object) -> State {
        let mut next = self.with(id, object);
        next.used |= 1 << id;
        next
    }
}

fn moved(places: &[usize; MOST], id: u8) -> u8 {
    places[usize::from(id)] as u8
}

fn moved_set(places: &[usize; MOST], ids: u8) -> u8 {
    let members = (0..MOST as u8).filter(|id| ids & (1 << id) != 0);
    members.fold(0, |set, id| set | 1 << moved(places, id))
}

fn show_id(id: u8) -> char {
    char::from(b'A' + id)
}

fn show(oid: Oid) -> String {
    oid.map_or_else(|| "nil".to_owned(), |id| show_id(id).to_string())
}

fn show_set(ids: u8) -> String {
    let members = (0..MOST as u8).filter(|id| ids & (1 << id) != 0);
    format!("{{{}}}", members.map(|id| show(Some(id))).collect::<Vec<_>>().join(", "))
}

/// A rule that a mutant breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    DeletionIsAMark,
    HeldStays,
    LatestStays,
    HoldEnds,
    FinishIsRecorded,
    BoundMeansFilled,
}

/// The model, for some number of ids and claims.
#[derive(Debug, Clone)]
pub struct VolSyncPopulator {
    ids: usize,
    claims: usize,
    broken: Option<Rule>,
}

impl VolSyncPopulator {
    /// The model in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let [ids, claims] = size.numbers(NAME, &KEYS)?;
        let needed = 2 + 2 * claims;
        if ids < needed {
            return Err(SizeError::Meaningless(format!(
                "claims={claims} needs ids={needed} or more: a destination, a snapshot, and for \
                 each claim itself and its volume"
            )));
        }
        Ok(VolSyncPopulator::new(ids as usize, claims as usize))
    }

    fn new(ids: usize, claims: usize) -> Self {
        VolSyncPopulator { ids, claims, broken: None }
    }

    fn without(&self, rule: Rule) -> Self {
        VolSyncPopulator { broken: Some(rule), ..self.clone() }
    }

    fn keeps(&self, rule: Rule) -> bool {
        self.broken != Some(rule)
    }
}

const CREATE_RD: ActionId = 0;
const CREATE_PVC: ActionId = 1;
const SNAPSHOT: ActionId = 2;
const DELETE_OLD: ActionId = 3;
const COLLECT: ActionId = 4;
// From here on, three for each id that a claim may have.
const POP_READ: ActionId = 5;
const POP_CLAIM: ActionId = 6;
const POP_FINISH: ActionId = 7;

const POPULATOR_ACTIONS: [&str; 3] = ["PopRead", "PopClaim", "PopFinish"];

impl Model for VolSyncPopulator {
    type State = State;
    type Packed = u128;

    fn size(&self) -> String {
        format!("ids={},claims={}", self.ids, self.claims)
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        for id in 0..self.ids {
            state.objects[id].code(coder);
            coder.of(&mut state.choice[id], &OIDS);
        }
        coder.u8(&mut state.used, MOST as u32);
    }

    fn initial(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = vec![
            Action::new("CreateRD", "user").to("API server"),
            Action::new("CreatePVC", "user").to("API server"),
            Action::new("Snapshot", "RD controller").to("API server"),
            Action::new("DeleteOld", "RD controller").to("API server"),
            Action::new("Collect", "API server"),
        ];
        for claim in 0..self.ids as u8 {
            actions.extend(POPULATOR_ACTIONS.iter().map(|name| {
                Action::new(format!("{name}({})", show_id(claim)), "populator").to("API server")
            }));
        }
        actions
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        self.create(state, steps);
        self.snapshots(state, steps);
        for id in 0..self.ids as u8 {
            self.populate(state, id, steps);
        }
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        let ids = 0..self.ids as u8;
        let objects = ids.clone().filter_map(|id| state.objects[usize::from(id)].show(id));
        let choice =
            ids.map(|id| format!("{} :> {}", show_id(id), show(state.choice[usize::from(id)])));
        vec![
            ("Objs", format!("{{{}}}", objects.collect::<Vec<_>>().join(", "))),
            ("used", show_set(state.used)),
            ("choice", format!("({})", choice.collect::<Vec<_>>().join(" @@ "))),
        ]
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        vec![
            Invariant::new("TypeOk", "every object has an id that was given out", |s: &State| {
                (0..MOST).all(|id| s.objects[id] == Object::Absent || s.used & (1 << id) != 0)
            }),
            Invariant::new(
                "LatestImageExists",
                "the latest image of a destination is there and will stay",
                |s: &State| s.of_kind(Kind::Destination).all(|id| latest_image_exists(s, id)),
            ),
            Invariant::new(
                "ImageInUseExists",
                "the image that a claim is filled from is there",
                |s: &State| s.of_kind(Kind::Claim).all(|id| image_in_use_exists(s, id)),
            ),
            Invariant::new(
                "BoundIsPopulated",
                "a bound claim has a volume of its own with its image in it",
                |s: &State| s.of_kind(Kind::Claim).all(|id| bound_is_populated(s, id)),
            ),
            Invariant::new("OnePVperClaim", "a claim has at most one volume", |s: &State| {
                let mut owners = 0_u8;
                s.objects.iter().all(|object| {
                    let Object::Volume { claim, .. } = object else { return true };
                    let is_first = owners & (1 << claim) == 0;
                    owners |= 1 << claim;
                    is_first
                })
            }),
        ]
    }

    fn properties(&self) -> Vec<Property<State>> {
        let claims = self.claims;
        vec![
            Property::new(
                "AllBound",
                "in the end every claim is bound, and stays so",
                Formula::eventually_always(move |s: &State| s.all_are_bound(claims)),
            ),
            Property::new(
                "OldImagesGo",
                "in the end only the latest images are left",
                Formula::eventually_always(State::only_latest_images_remain),
            ),
        ]
    }

    fn fairness(&self) -> Vec<Fairness> {
        let mut fairness: Vec<Fairness> = self.actions()[..usize::from(POP_READ)]
            .iter()
            .zip(0..)
            .map(|(action, id)| Fairness::weak(action.name.as_str(), [id]))
            .collect();
        for (name, first) in POPULATOR_ACTIONS.iter().zip(POP_READ..) {
            let instances = (0..self.ids as u8).map(|claim| self.populator(first, claim));
            fairness.push(Fairness::weak(format!("A{name}"), instances));
        }
        fairness
    }

    fn may_rest(&self, state: &State) -> bool {
        state.all_are_bound(self.claims) && state.only_latest_images_remain()
    }

    fn symmetries(&self) -> usize {
        arrangements(self.ids) - 1
    }

    fn permute(&self, state: &State, permutation: usize) -> State {
        let places: [usize; MOST] = arrangement(self.ids, permutation + 1);
        let mut image = State { used: moved_set(&places, state.used), ..State::default() };
        for (id, place) in places.into_iter().enumerate() {
            image.choice[place] = state.choice[id].map(|id| moved(&places, id));
            image.objects[place] = state.objects[id].with_ids_moved(&places);
        }
        image
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        let ids = self.ids;
        let mut state = State { used: rng.below(1 << ids) as u8, ..State::default() };
        for id in 0..ids {
            state.choice[id] = OIDS[rng.below(ids + 1)];
            state.objects[id] = match KINDS[rng.below(KINDS.len())] {
                Kind::Absent => Object::Absent,
                Kind::Destination => Object::Destination { latest_image: OIDS[rng.below(ids + 1)] },
                Kind::Snapshot => Object::Snapshot {
                    owner: rng.below(ids) as u8,
                    is_deleted: rng.flip(),
                    holders: rng.below(1 << ids) as u8,
                },
                Kind::Claim => Object::Claim {
                    source: rng.below(ids) as u8,
                    phase: PHASES[rng.below(PHASES.len())],
                    image: OIDS[rng.below(ids + 1)],
                    volume: OIDS[rng.below(ids + 1)],
                },
                Kind::Volume => {
                    Object::Volume { image: OIDS[rng.below(ids + 1)], claim: rng.below(ids) as u8 }
                }
            };
        }
        Some(state)
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        let mut mutants = vec![
            Mutant::new(
                "delete-latest",
                "old snapshots are deleted without a look at LatestImage",
                &["LatestImageExists"],
                self.without(Rule::LatestStays),
            ),
            Mutant::new(
                "unrecorded-finish",
                "the claim is not told that its volume was made",
                &["OnePVperClaim", "AllBound"],
                self.without(Rule::FinishIsRecorded),
            ),
            Mutant::new(
                "early-bind",
                "the claim is bound as soon as it holds its image",
                &["BoundIsPopulated"],
                self.without(Rule::BoundMeansFilled),
            ),
        ];
        // The others need an image that is no longer the latest, hence an id to spare.
        if self.ids > 2 + 2 * self.claims {
            mutants.extend([
                Mutant::new(
                    "unprotected",
                    "an old snapshot is deleted at once, whoever holds it",
                    &["ImageInUseExists"],
                    self.without(Rule::DeletionIsAMark),
                ),
                Mutant::new(
                    "collect-held",
                    "a snapshot marked for deletion goes although it is held",
                    &["ImageInUseExists"],
                    self.without(Rule::HeldStays),
                ),
                Mutant::new(
                    "endless-hold",
                    "a claim keeps its hold when it is bound",
                    &["OldImagesGo"],
                    self.without(Rule::HoldEnds),
                ),
            ]);
        }
        mutants
    }
}

fn latest_image_exists(state: &State, destination: u8) -> bool {
    let Object::Destination { latest_image: Some(image) } = state.objects[usize::from(destination)]
    else {
        return true;
    };
    matches!(state.objects[usize::from(image)], Object::Snapshot { is_deleted: false, .. })
}

fn image_in_use_exists(state: &State, claim: u8) -> bool {
    let Object::Claim { phase: Phase::Populating, image, .. } = state.objects[usize::from(claim)]
    else {
        return true;
    };
    image.is_some_and(|image| state.objects[usize::from(image)].kind() == Kind::Snapshot)
}

fn bound_is_populated(state: &State, claim: u8) -> bool {
    let Object::Claim { phase: Phase::Bound, image, volume, .. } =
        state.objects[usize::from(claim)]
    else {
        return true;
    };
    let (Some(_), Some(volume)) = (image, volume) else { return false };
    state.objects[usize::from(volume)] == Object::Volume { image, claim }
}
