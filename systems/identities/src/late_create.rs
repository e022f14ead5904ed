//! The late create: a call may take effect long after it was sent, so a mark is written before it,
//! and absence in the cloud is believed only when nothing sent under the mark can still land.
//!
//! One object in the cloud. `specs/protocol/LateCreate.tla` is the text it follows.

use interlock_checker::{
    Action, ActionId, Coder, Entry, Fairness, Formula, Invariant, Model, Mutant, Property, Rng,
    Size, SizeError, SizeKey, Steps,
};

const NAME: &str = "spec/late-create";
const KEYS: [SizeKey; 1] = [SizeKey::new("creates", "create calls that are sent", 3, 1, 15)];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "an object is created in the cloud by calls that may land late, and deleted for good",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(LateCreate::from_size(size)?)),
};

/// Where the declaration stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// Declared.
    #[default]
    Live,
    /// Marked for deletion, held by its finalizer.
    Deleting,
    /// No longer there.
    Gone,
}

const PHASES: [Phase; 3] = [Phase::Live, Phase::Deleting, Phase::Gone];

/// The mark that says: a create may have been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mark {
    /// Nothing is under way, and what reads show is true.
    #[default]
    None,
    /// A create may be sent under it.
    Fresh,
    /// No more are sent; those sent may still land.
    Old,
}

const MARKS: [Mark; 3] = [Mark::None, Mark::Fresh, Mark::Old];

/// The variables of the specification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    phase: Phase,
    mark: Mark,
    in_flight: u8,
    exists: bool,
    /// What reads of the cloud show.
    is_visible: bool,
    sent: u8,
}

/// What the protocol insists on; with one of them off it is a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// A create is sent only under a mark.
    pub mark_first: bool,
    /// A create is sent only under a fresh mark, and a mark outlives what was sent under it.
    pub fresh: bool,
    /// Absence is believed only when there is no mark.
    pub believe_unmarked: bool,
    /// A mark under which nothing can land any more is taken away.
    pub expire: bool,
}

impl Rules {
    const ALL: Rules =
        Rules { mark_first: true, fresh: true, believe_unmarked: true, expire: true };
}

/// The protocol in some size.
#[derive(Debug, Clone)]
pub struct LateCreate {
    creates: u8,
    rules: Rules,
}

const MARK: ActionId = 0;
const CREATE: ActionId = 1;
const AGE: ActionId = 2;
const EXPIRE: ActionId = 3;
const LAND: ActionId = 4;
const DROP: ActionId = 5;
const SEE: ActionId = 6;
const DELETE: ActionId = 7;
const DEL_CALL: ActionId = 8;
const GONE: ActionId = 9;

fn width(most: u8) -> u32 {
    u8::BITS - most.leading_zeros()
}

impl LateCreate {
    /// The protocol in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let [creates] = size.numbers(NAME, &KEYS)?;
        Ok(LateCreate { creates: creates as u8, rules: Rules::ALL })
    }

    fn without(&self, change: impl FnOnce(&mut Rules)) -> Self {
        let mut mutant = self.clone();
        change(&mut mutant.rules);
        mutant
    }

    fn may_create(&self, state: &State) -> bool {
        let marked = match state.mark {
            Mark::Fresh => true,
            Mark::Old => !self.rules.fresh,
            Mark::None => false,
        };
        state.phase == Phase::Live
            && !state.is_visible
            && state.sent < self.creates
            && (marked || !self.rules.mark_first)
    }

    fn may_expire(&self, state: &State) -> bool {
        self.rules.expire
            && state.mark == Mark::Old
            && state.is_visible == state.exists
            && (state.in_flight == 0 || !self.rules.fresh)
    }

    fn is_believed_absent(&self, state: &State) -> bool {
        let believes = state.mark == Mark::None || !self.rules.believe_unmarked;
        state.phase == Phase::Deleting && !state.is_visible && believes
    }
}

impl Model for LateCreate {
    type State = State;
    type Packed = u64;

    fn size(&self) -> String {
        format!("creates={}", self.creates)
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        coder.of(&mut state.phase, &PHASES);
        coder.of(&mut state.mark, &MARKS);
        coder.u8(&mut state.in_flight, width(self.creates));
        coder.bool(&mut state.exists);
        coder.bool(&mut state.is_visible);
        coder.u8(&mut state.sent, width(self.creates));
    }

    fn initial(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self) -> Vec<Action> {
        vec![
            Action::new("Mark", "worker").to("declaration"),
            Action::new("Create", "worker").to("network"),
            Action::new("Age", "clock"),
            Action::new("Expire", "worker").to("declaration"),
            Action::new("Land", "network").to("cloud"),
            Action::new("Drop", "network"),
            Action::new("See", "cloud").to("worker"),
            Action::new("Delete", "user").to("declaration"),
            Action::new("DelCall", "worker").to("cloud"),
            Action::new("Gone", "worker").to("declaration"),
        ]
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        let mut step = |action: ActionId, change: &dyn Fn(&mut State)| {
            let mut next = state.clone();
            change(&mut next);
            steps.step(action, next);
        };
        if state.phase == Phase::Live && !state.is_visible && state.mark != Mark::Fresh {
            step(MARK, &|next| next.mark = Mark::Fresh);
        }
        if self.may_create(state) {
            step(CREATE, &|next| {
                next.sent += 1;
                next.in_flight += 1;
            });
        }
        if state.mark == Mark::Fresh {
            step(AGE, &|next| next.mark = Mark::Old);
        }
        if self.may_expire(state) {
            step(EXPIRE, &|next| next.mark = Mark::None);
        }
        if state.in_flight > 0 {
            step(LAND, &|next| {
                next.in_flight -= 1;
                next.exists = true;
            });
            step(DROP, &|next| next.in_flight -= 1);
        }
        if state.is_visible != state.exists {
            step(SEE, &|next| next.is_visible = next.exists);
        }
        if state.phase == Phase::Live {
            step(DELETE, &|next| next.phase = Phase::Deleting);
        }
        if state.phase == Phase::Deleting && state.is_visible && state.exists {
            step(DEL_CALL, &|next| next.exists = false);
        }
        if self.is_believed_absent(state) {
            step(GONE, &|next| next.phase = Phase::Gone);
        }
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        let boolean = |value: bool| if value { "TRUE" } else { "FALSE" }.to_owned();
        vec![
            ("cr", format!("\"{:?}\"", state.phase).to_lowercase()),
            ("mark", format!("\"{:?}\"", state.mark).to_lowercase()),
            ("fl", state.in_flight.to_string()),
            ("truth", boolean(state.exists)),
            ("vis", boolean(state.is_visible)),
            ("n", state.sent.to_string()),
        ]
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        vec![Invariant::new(
            "GoneIsClean",
            "when the declaration is gone, nothing exists and nothing can land",
            |s: &State| s.phase != Phase::Gone || (!s.exists && s.in_flight == 0),
        )]
    }

    fn properties(&self) -> Vec<Property<State>> {
        vec![Property::new(
            "Deletes",
            "a deleted declaration goes",
            Formula::leads_to(
                |s: &State| s.phase == Phase::Deleting,
                |s: &State| s.phase == Phase::Gone,
            ),
        )]
    }

    fn fairness(&self) -> Vec<Fairness> {
        vec![
            Fairness::weak("Age", [AGE]),
            Fairness::weak("Expire", [EXPIRE]),
            Fairness::weak("See", [SEE]),
            Fairness::weak("DelCall", [DEL_CALL]),
            Fairness::weak("Gone", [GONE]),
            Fairness::weak("Land \\/ Drop", [LAND, DROP]),
        ]
    }

    fn may_rest(&self, state: &State) -> bool {
        state.phase == Phase::Gone
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        let sent = rng.below(usize::from(self.creates) + 1);
        Some(State {
            phase: PHASES[rng.below(PHASES.len())],
            mark: MARKS[rng.below(MARKS.len())],
            in_flight: rng.below(sent + 1) as u8,
            exists: rng.flip(),
            is_visible: rng.flip(),
            sent: sent as u8,
        })
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        vec![
            Mutant::new(
                "unmarked-create",
                "a create is sent before its mark is written",
                &["GoneIsClean"],
                self.without(|rules| rules.mark_first = false),
            ),
            Mutant::new(
                "create-under-old-mark",
                "a create is sent under a mark that is about to expire",
                &["GoneIsClean"],
                self.without(|rules| rules.fresh = false),
            ),
            Mutant::new(
                "absence-believed-at-once",
                "what reads do not show is taken to be gone, whatever the mark says",
                &["GoneIsClean"],
                self.without(|rules| rules.believe_unmarked = false),
            ),
            Mutant::new(
                "mark-kept",
                "a mark stays for ever, so absence is never believed",
                &["Deletes"],
                self.without(|rules| rules.expire = false),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_checker::reference;

    #[test]
    fn the_counts_are_those_of_tlc() {
        for (creates, expected) in [(1, (58, 31, 9)), (3, (311, 121, 13)), (7, (1_453, 469, 21))] {
            let counts = reference::explore(&LateCreate { creates, rules: Rules::ALL });
            assert_eq!((counts.generated, counts.distinct, counts.depth), expected, "{creates}");
            assert_eq!((counts.violated, counts.deadlock), (vec![], None), "creates={creates}");
        }
    }

    #[test]
    fn each_mutant_goes_wrong_as_in_tlc() {
        // The last leaves nothing behind, but gets stuck before it is gone.
        let expected = [
            ("unmarked-create", vec![("GoneIsClean", 4)], None, (470, 172, 12)),
            ("create-under-old-mark", vec![("GoneIsClean", 7)], None, (479, 172, 13)),
            ("absence-believed-at-once", vec![("GoneIsClean", 5)], None, (432, 168, 13)),
            ("mark-kept", vec![], Some(4), (279, 103, 12)),
        ];
        let mutants = LateCreate { creates: 3, rules: Rules::ALL }.mutants();
        assert_eq!(mutants.len(), expected.len());
        for (mutant, (name, violated, stuck, totals)) in mutants.iter().zip(expected) {
            let counts = reference::explore(&mutant.model);
            assert_eq!(mutant.name, name);
            assert_eq!((counts.violated, counts.deadlock), (violated, stuck), "{name}");
            assert_eq!((counts.generated, counts.distinct, counts.depth), totals, "{name}");
        }
    }

    #[test]
    fn the_largest_size_fits_and_every_state_comes_back_as_it_went_in() {
        let model = LateCreate { creates: KEYS[0].most as u8, rules: Rules::ALL };
        let mut rng = Rng::new(1);
        for _ in 0..1_000 {
            let state = model.arbitrary(&mut rng).unwrap();
            assert_eq!(model.unpack(&model.pack(&state)), state);
        }
    }
}
