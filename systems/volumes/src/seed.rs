//! VolSyncPopulator as written: a user, a controller, one destination and one snapshot.
//!
//! Kept with its defects; `specs/seed/VolSyncPopulator.tla` is the text it follows.

use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{
    Action, Coder, Entry, Fairness, Formula, Invariant, Model, Mutant, Property, Rng, Size,
    SizeError, SizeKey, Steps,
};

const NAME: &str = "seed/volsync-populator";
const KEYS: [SizeKey; 1] =
    [SizeKey::new("oids", "ids that an object can be given", 3, 1, MOST as u64)];
const MOST: usize = 7;

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "a user makes a replication destination; its controller takes one snapshot",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(VolSyncPopulator::from_size(size)?)),
};

/// An id, or none.
type Oid = Option<u8>;

const OIDS: [Oid; MOST + 1] = [None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5), Some(6)];

/// `Objs` and `pc`. Each process runs once, so `Objs` holds at most one object of either kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    destination: Oid,
    latest_image: Oid,
    snapshot: Oid,
    user_is_done: bool,
    controller_is_done: bool,
}

/// The model, for some number of ids.
#[derive(Debug, Clone)]
pub struct VolSyncPopulator {
    oids: usize,
    /// Down in the mutant whose controller takes any id.
    takes_free_ids: bool,
}

impl VolSyncPopulator {
    /// The model in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let [oids] = size.numbers(NAME, &KEYS)?;
        Ok(VolSyncPopulator::new(oids as usize))
    }

    fn new(oids: usize) -> Self {
        VolSyncPopulator { oids, takes_free_ids: true }
    }

    fn ids(&self) -> impl Iterator<Item = Oid> {
        OIDS[1..=self.oids].iter().copied()
    }
}

fn show(oid: Oid) -> String {
    oid.map_or_else(|| "nil".to_owned(), |id| char::from(b'A' + id).to_string())
}

const U_START: u16 = 0;
const RD_BEGIN: u16 = 1;
const TERMINATING: u16 = 2;

impl Model for VolSyncPopulator {
    type State = State;
    type Packed = u64;

    fn covers(&self) -> interlock_checker::Covers {
        interlock_checker::Covers::Seed
    }

    fn size(&self) -> String {
        format!("oids={}", self.oids)
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        let one_id = self.oids == 1;
        match name.split('(').next()? {
            "deadlock" | "Termination" if one_id => Some(
                "the destination takes the only id, so the controller waits for one that never \
                 comes free",
            ),
            "RDBegin" | "Terminating" if one_id => {
                Some("the destination takes the only id, so the snapshot is never taken")
            }
            "Termination" => Some(
                "it ends at the snapshot: there is no claim, no volume and no populator, so it \
                 says nothing of what it was written for",
            ),
            "RDBegin" => Some(
                "it fires once, and writes the snapshot and LatestImage in one step: the latest \
                 image cannot change while a claim is filled, and no crash falls in between",
            ),
            "TypeOk" => Some(
                "nothing is ever deleted here, so it does not show that an id may be issued twice",
            ),
            _ => None,
        }
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        coder.of(&mut state.destination, &OIDS);
        coder.of(&mut state.latest_image, &OIDS);
        coder.of(&mut state.snapshot, &OIDS);
        coder.bool(&mut state.user_is_done);
        coder.bool(&mut state.controller_is_done);
    }

    fn initial(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self) -> Vec<Action> {
        vec![
            Action::new("UStart(\"user\")", "user").to("API server"),
            Action::new("RDBegin(\"RDC\")", "RD controller").to("API server"),
            Action::new("Terminating", "everyone"),
        ]
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        let is_free = |id: &Oid| *id != state.destination && *id != state.snapshot;
        if !state.user_is_done {
            for id in self.ids().filter(is_free) {
                let next = State { destination: id, user_is_done: true, ..state.clone() };
                steps.step(U_START, next);
            }
        }
        if !state.controller_is_done && state.destination.is_some() {
            for id in self.ids().filter(|id| !self.takes_free_ids || is_free(id)) {
                let mut next = State { snapshot: id, latest_image: id, ..state.clone() };
                next.controller_is_done = true;
                steps.step(RD_BEGIN, next);
            }
        }
        if state.user_is_done && state.controller_is_done {
            steps.step(TERMINATING, state.clone());
        }
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        let mut objects = Vec::new();
        if state.snapshot.is_some() {
            objects.push(format!("[k |-> \"VS\", oid |-> {}]", show(state.snapshot)));
        }
        if state.destination.is_some() {
            let (id, image) = (show(state.destination), show(state.latest_image));
            objects.push(format!("[k |-> \"RD\", oid |-> {id}, LI |-> {image}]"));
        }
        let user = if state.user_is_done { "Done" } else { "UStart" };
        let controller = if state.controller_is_done { "Done" } else { "RDBegin" };
        vec![
            ("Objs", format!("{{{}}}", objects.join(", "))),
            ("pc", format!("[user |-> \"{user}\", RDC |-> \"{controller}\"]")),
        ]
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        vec![Invariant::new(
            "TypeOk",
            "every object has a kind and an id of its own",
            |s: &State| s.destination.is_none() || s.destination != s.snapshot,
        )]
    }

    fn properties(&self) -> Vec<Property<State>> {
        vec![Property::new(
            "Termination",
            "in the end the user and the controller are done",
            Formula::eventually(|s: &State| s.user_is_done && s.controller_is_done),
        )]
    }

    fn fairness(&self) -> Vec<Fairness> {
        vec![Fairness::weak("Next", [U_START, RD_BEGIN, TERMINATING])]
    }

    fn symmetries(&self) -> usize {
        arrangements(self.oids) - 1
    }

    fn permute(&self, state: &State, permutation: usize) -> State {
        let places: [usize; MOST] = arrangement(self.oids, permutation + 1);
        let moved = |oid: Oid| oid.map(|id| places[usize::from(id)] as u8);
        State {
            destination: moved(state.destination),
            latest_image: moved(state.latest_image),
            snapshot: moved(state.snapshot),
            ..state.clone()
        }
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        let destination = OIDS[rng.below(self.oids + 1)];
        // LatestImage is a field of the destination: without one there is none.
        let latest_image = destination.and_then(|_| OIDS[rng.below(self.oids + 1)]);
        Some(State {
            destination,
            latest_image,
            snapshot: OIDS[rng.below(self.oids + 1)],
            user_is_done: rng.flip(),
            controller_is_done: rng.flip(),
        })
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        vec![Mutant::new(
            "any-id",
            "the controller gives the snapshot any id, free or not",
            &["TypeOk"],
            VolSyncPopulator { takes_free_ids: false, ..self.clone() },
        )]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_checker::reference;
    use interlock_checker::symmetry::assert_symmetric;

    #[test]
    fn the_counts_are_those_of_tlc() {
        for (oids, generated, distinct, depth) in
            [(1, 2, 2, 2), (2, 7, 5, 3), (3, 16, 10, 3), (5, 46, 26, 3), (7, 92, 50, 3)]
        {
            let counts = reference::explore(&VolSyncPopulator::new(oids));
            assert_eq!(
                (counts.generated, counts.distinct, counts.depth),
                (generated, distinct, depth),
                "oids={oids}"
            );
            assert_eq!(counts.violated, []);
            assert_eq!(counts.deadlock, (oids == 1).then_some(2), "oids={oids}");
        }
    }

    #[test]
    fn a_snapshot_with_the_id_of_the_destination_is_noticed() {
        for mutant in VolSyncPopulator::new(1).mutants() {
            assert_eq!(reference::explore(&mutant.model).violated, [("TypeOk", 3)]);
        }
    }

    #[test]
    fn the_end_reads_as_the_seed_would_print_it() {
        let model = VolSyncPopulator::new(3);
        let end = State {
            destination: Some(0),
            latest_image: Some(1),
            snapshot: Some(1),
            user_is_done: true,
            controller_is_done: true,
        };
        assert_eq!(
            model.describe(&end),
            [
                (
                    "Objs",
                    "{[k |-> \"VS\", oid |-> B], [k |-> \"RD\", oid |-> A, LI |-> B]}".to_owned()
                ),
                ("pc", "[user |-> \"Done\", RDC |-> \"Done\"]".to_owned()),
            ]
        );
    }

    #[test]
    fn any_state_of_the_largest_size_comes_back_from_its_bits() {
        let (model, mut rng) = (VolSyncPopulator::new(MOST), Rng::new(1));
        for _ in 0..1_000 {
            let state = model.arbitrary(&mut rng).unwrap();
            assert_eq!(model.unpack(&model.pack(&state)), state);
        }
    }

    #[test]
    fn the_ids_are_interchangeable() {
        assert_symmetric(&VolSyncPopulator::new(4));
    }
}
