//! The hold alone: a claim takes an old image for the latest, and the image must still be there.
//!
//! `specs/protocol/Populator.tla` is the text it follows, state for state.

use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{
    Action, ActionId, Coder, Entry, Fairness, Formula, Invariant, Model, Mutant, Property, Rng,
    Size, SizeError, SizeKey, Steps,
};

const NAME: &str = "spec/volumes-hold";
const KEYS: [SizeKey; 2] = [
    SizeKey::new("images", "images that are published", 3, 1, MOST_IMAGES as u64),
    SizeKey::new("claims", "claims that are to be filled", 2, 1, MOST_CLAIMS as u64),
];
const MOST_IMAGES: usize = 6;
const MOST_CLAIMS: usize = 4;

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "an image is held from before a claim is filled from it until after",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(Hold::from_size(size)?)),
};

/// How far a claim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Pending,
    /// It has chosen its image.
    Held,
    /// PVC' waits for its volume.
    Prime,
    /// PVC' has a volume.
    Provisioned,
    Bound,
}

const PHASES: [Phase; 5] =
    [Phase::Pending, Phase::Held, Phase::Prime, Phase::Provisioned, Phase::Bound];

/// A claim, the image it chose (`src`), and the images it holds, a bit each (`hold`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Claim {
    phase: Phase,
    image: Option<u8>,
    holds: u8,
}

/// The images, as sets of bits, and the claims.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    latest: Option<u8>,
    existing: u8,
    taken: u8,
    claims: [Claim; MOST_CLAIMS],
}

/// The protocol in some size, with some rule broken or none.
#[derive(Debug, Clone)]
pub struct Hold {
    images: usize,
    claims: usize,
    /// `HoldHonoured`: an image that is held is not deleted.
    honoured: bool,
    /// `HoldFirst`: the hold is taken, on an image that exists, before PVC' is made.
    first: bool,
}

/// What happens to one claim.
#[derive(Debug, Clone, Copy)]
enum Of {
    Hold,
    Prime,
    Provision,
    Rebind,
    Cleanup,
}

const ALL: [Of; 5] = [Of::Hold, Of::Prime, Of::Provision, Of::Rebind, Of::Cleanup];

impl Hold {
    /// The model in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let [images, claims] = size.numbers(NAME, &KEYS)?;
        Ok(Hold { images: images as usize, claims: claims as usize, honoured: true, first: true })
    }

    // Action ids: publish each image, delete each image, then a row for each step of a claim.
    fn publish(&self, image: usize) -> ActionId {
        image as ActionId
    }

    fn delete(&self, image: usize) -> ActionId {
        (self.images + image) as ActionId
    }

    fn id(&self, of: Of, p: usize) -> ActionId {
        (2 * self.images + of as usize * self.claims + p) as ActionId
    }

    fn image_steps(&self, state: &State, image: usize, steps: &mut Steps<State>) {
        let bit = 1 << image;
        if state.taken & bit == 0 {
            let mut next = state.clone();
            next.taken |= bit;
            next.existing |= bit;
            next.latest = Some(image as u8);
            steps.step(self.publish(image), next);
        }
        let is_held = state.claims.iter().any(|claim| claim.holds & bit != 0);
        let is_latest = state.latest == Some(image as u8);
        if state.existing & bit != 0 && !is_latest && !(self.honoured && is_held) {
            let mut next = state.clone();
            next.existing &= !bit;
            steps.step(self.delete(image), next);
        }
    }

    fn claim_steps(&self, state: &State, p: usize, steps: &mut Steps<State>) {
        let mut step = |of: Of, change: &dyn Fn(&mut Claim)| {
            let mut next = state.clone();
            change(&mut next.claims[p]);
            steps.step(self.id(of, p), next);
        };
        let Claim { phase, image, .. } = state.claims[p];
        match (phase, image) {
            (Phase::Pending, _) => {
                for image in (0..self.images as u8).filter(|image| state.taken >> image & 1 == 1) {
                    // TLC takes the step once for each reason that allows it.
                    let exists = state.existing >> image & 1 == 1;
                    for _ in 0..u8::from(exists) + u8::from(!self.first) {
                        step(Of::Hold, &|claim| {
                            claim.phase = Phase::Held;
                            claim.image = Some(image);
                            claim.holds |= u8::from(self.first) << image;
                        });
                    }
                }
            }
            (Phase::Held, Some(image)) => step(Of::Prime, &|claim| {
                claim.phase = Phase::Prime;
                claim.holds |= 1 << image;
            }),
            (Phase::Prime, Some(image)) if state.existing >> image & 1 == 1 => {
                step(Of::Provision, &|claim| claim.phase = Phase::Provisioned);
            }
            (Phase::Held | Phase::Prime, _) => {}
            (Phase::Provisioned, _) => step(Of::Rebind, &|claim| claim.phase = Phase::Bound),
            (Phase::Bound, _) => step(Of::Cleanup, &|claim| claim.holds = 0),
        }
    }
}

fn show_image(image: Option<u8>) -> String {
    image.map_or_else(|| "nil".to_owned(), |image| format!("s{}", image + 1))
}

fn show_images(set: u8) -> String {
    let images = (0..8).filter(|image| set >> image & 1 == 1).map(|image| show_image(Some(image)));
    format!("{{{}}}", images.collect::<Vec<_>>().join(", "))
}

fn show_phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "\"Pending\"",
        Phase::Held => "\"Held\"",
        Phase::Prime => "\"Prime\"",
        Phase::Provisioned => "\"PV\"",
        Phase::Bound => "\"Bound\"",
    }
}

fn code_image(image: &mut Option<u8>, coder: &mut Coder, width: u32) {
    let mut number = image.map_or(0, |image| image + 1);
    coder.u8(&mut number, width);
    *image = number.checked_sub(1);
}

impl Model for Hold {
    type State = State;
    type Packed = u64;

    fn size(&self) -> String {
        format!("images={},claims={}", self.images, self.claims)
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        let width = usize::BITS - self.images.leading_zeros();
        code_image(&mut state.latest, coder, width);
        coder.u8(&mut state.existing, self.images as u32);
        coder.u8(&mut state.taken, self.images as u32);
        for claim in &mut state.claims[..self.claims] {
            coder.of(&mut claim.phase, &PHASES);
            code_image(&mut claim.image, coder, width);
            coder.u8(&mut claim.holds, self.images as u32);
        }
    }

    fn initial(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self) -> Vec<Action> {
        let images = 1..=self.images;
        let publish = |s| Action::new(format!("Publish(s{s})"), "destination").to("snapshots");
        let delete = |s| Action::new(format!("Delete(s{s})"), "destination").to("snapshots");
        let mut actions: Vec<_> = images.clone().map(publish).chain(images.map(delete)).collect();
        for of in ALL {
            for claim in (1..=self.claims).map(|p| format!("p{p}")) {
                let (actor, target) = match of {
                    Of::Hold | Of::Cleanup => ("populator", "snapshots".to_owned()),
                    Of::Prime | Of::Rebind => ("populator", format!("claim {claim}")),
                    Of::Provision => ("storage", format!("claim {claim}")),
                };
                actions.push(Action::new(format!("{of:?}({claim})"), actor).to(target));
            }
        }
        actions
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        for image in 0..self.images {
            self.image_steps(state, image, steps);
            // The quantifier over images spans the steps of claims too.
            for p in 0..self.claims {
                self.claim_steps(state, p, steps);
            }
        }
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        let per_claim = |value: &dyn Fn(&Claim) -> String| {
            let one = |p: usize| format!("p{} :> {}", p + 1, value(&state.claims[p]));
            format!("({})", (0..self.claims).map(one).collect::<Vec<_>>().join(" @@ "))
        };
        let holds = (0..self.images).flat_map(|image| {
            let holders =
                (0..self.claims).filter(move |p| state.claims[*p].holds >> image & 1 == 1);
            holders.map(move |p| format!("<<s{}, p{}>>", image + 1, p + 1))
        });
        vec![
            ("li", show_image(state.latest)),
            ("vs", show_images(state.existing)),
            ("hold", format!("{{{}}}", holds.collect::<Vec<_>>().join(", "))),
            ("ph", per_claim(&|claim| show_phase(claim.phase).to_owned())),
            ("src", per_claim(&|claim| show_image(claim.image))),
            ("ready", "{}".to_owned()),
            ("made", show_images(state.taken)),
        ]
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        vec![
            Invariant::new(
                "SourceLives",
                "the image that a claim is being filled from is there",
                |s: &State| {
                    s.claims.iter().all(|claim| {
                        !matches!(claim.phase, Phase::Held | Phase::Prime)
                            || claim.image.is_some_and(|image| s.existing >> image & 1 == 1)
                    })
                },
            ),
            Invariant::new("LIExists", "the latest image is there", |s: &State| {
                s.latest.is_none_or(|image| s.existing >> image & 1 == 1)
            }),
        ]
    }

    fn properties(&self) -> Vec<Property<State>> {
        let bound = |p: usize| {
            Formula::leads_to(
                |s: &State| s.latest.is_some(),
                move |s: &State| s.claims[p].phase == Phase::Bound,
            )
        };
        vec![Property::for_all(
            "EventuallyBound",
            "once there is an image, every claim is bound in the end",
            (0..self.claims).map(bound),
        )]
    }

    fn fairness(&self) -> Vec<Fairness> {
        let of_claim = |p: usize| {
            ALL.map(|of| Fairness::weak(format!("{of:?}(p{})", p + 1), [self.id(of, p)]))
        };
        (0..self.claims).flat_map(of_claim).collect()
    }

    fn symmetries(&self) -> usize {
        arrangements(self.images) * arrangements(self.claims) - 1
    }

    fn permute(&self, state: &State, permutation: usize) -> State {
        let number = permutation + 1;
        let images: [usize; MOST_IMAGES] =
            arrangement(self.images, number % arrangements(self.images));
        let claims: [usize; MOST_CLAIMS] =
            arrangement(self.claims, number / arrangements(self.images));
        let rename = |image: u8| images[usize::from(image)] as u8;
        let rename_all = |set: u8| {
            (0..self.images).filter(|i| set >> i & 1 == 1).fold(0, |all, i| all | 1 << images[i])
        };
        let mut renamed = State {
            latest: state.latest.map(rename),
            existing: rename_all(state.existing),
            taken: rename_all(state.taken),
            ..State::default()
        };
        for (p, claim) in state.claims[..self.claims].iter().enumerate() {
            renamed.claims[claims[p]] = Claim {
                phase: claim.phase,
                image: claim.image.map(rename),
                holds: rename_all(claim.holds),
            };
        }
        renamed
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        let set = |rng: &mut Rng| rng.below(1 << self.images) as u8;
        let image = |rng: &mut Rng| rng.flip().then(|| rng.below(self.images) as u8);
        let mut state =
            State { latest: image(rng), existing: set(rng), taken: set(rng), ..State::default() };
        for claim in &mut state.claims[..self.claims] {
            *claim = Claim {
                phase: PHASES[rng.below(PHASES.len())],
                image: image(rng),
                holds: set(rng),
            };
        }
        Some(state)
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        let protocol = Hold { images: self.images.max(2), ..self.clone() };
        vec![
            Mutant::new(
                "hold-ignored",
                "an image is deleted although a claim is being filled from it",
                &["SourceLives"],
                Hold { honoured: false, ..protocol.clone() },
            ),
            Mutant::new(
                "hold-late",
                "the hold is taken only with PVC', on whatever image was read before",
                &["SourceLives"],
                Hold { first: false, ..protocol },
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_checker::reference;
    use interlock_checker::symmetry::assert_symmetric;

    fn sized(size: &str) -> Hold {
        Hold::from_size(&Size::parse(size).unwrap()).unwrap()
    }

    #[test]
    fn the_counts_are_those_of_tlc() {
        for (size, generated, distinct, depth) in [
            ("images=2,claims=1", 129, 49, 9),
            ("images=2,claims=2", 1_909, 413, 14),
            ("images=3,claims=2", 21_898, 2_953, 16),
        ] {
            let counts = reference::explore(&sized(size));
            let found = (counts.generated, counts.distinct, counts.depth);
            assert_eq!(found, (generated, distinct, depth), "{size}");
            assert_eq!((counts.violated, counts.deadlock), (vec![], None), "{size}");
        }
    }

    #[test]
    fn a_hold_that_is_late_or_ignored_loses_the_image_in_five_states() {
        for mutant in sized("").mutants() {
            let counts = reference::explore(&mutant.model);
            assert_eq!(counts.violated, [("SourceLives", 5)], "{}", mutant.name);
        }
    }

    #[test]
    fn any_state_of_any_size_fits_and_comes_back_as_it_was() {
        let mut rng = Rng::new(1);
        for model in [sized(""), sized("images=6,claims=4"), sized("images=1,claims=1")] {
            for _ in 0..1_000 {
                let state = model.arbitrary(&mut rng).unwrap();
                assert_eq!(model.unpack(&model.pack(&state)), state, "{}", model.size());
            }
        }
    }

    #[test]
    fn images_and_claims_are_interchangeable() {
        assert_symmetric(&sized("images=3,claims=2"));
    }
}
