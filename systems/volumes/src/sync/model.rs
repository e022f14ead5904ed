//! The shipped rules of sources and destinations in a hostile world: tags set at any time, caches
//! that are behind, movers that fail and die, crashes between any two effects.
//!
//! The controller here is the `decide` that ships, of sources or of destinations, with the shipped
//! choice of the image that goes next. Each step builds its facts from what the controller can see:
//! a cache of the object and of its images, each of any age, and what it asked to see afresh, which
//! may be old too by the time it acts. What it decides is done to the world as the real write or the
//! real deed would do it; a write over a version that is not the newest is refused.
//!
//! With `holds=1` others take hold of images and let go of them, and the object is deleted at some
//! time; the garbage collector then takes what it left behind.
//!
//! Left out, because no promise here rests on it: time (an attempt may follow at once), and places at
//! the repository. A lost reply is a crash: nothing is remembered between steps.

mod facts;
mod promises;
mod state;
mod steps;
#[cfg(test)]
mod tests;

pub use state::State;

use interlock_checker::{
    Action, Coder, Entry, Fairness, Invariant, Model, Mutant, Property, Reachable, Rng, Size,
    SizeError, SizeKey, Steps,
};
use state::{MOST_FAULTS, MOST_TAGS};
use steps::Deed;

const NAME: &str = "design/volumes-sync";
const KEYS: [SizeKey; 4] = [
    SizeKey::new("kind", "1: a source of images, 2: of backups, 3: a destination", 3, 1, 3),
    SizeKey::new("tags", "tags that somebody sets, one sync each", 2, 1, MOST_TAGS as u64),
    SizeKey::new("faults", "crashes, and movers that fail or die", 2, 0, MOST_FAULTS as u64),
    SizeKey::new("holds", "1: images are held by others, and the object is deleted", 0, 0, 1),
];

/// For the catalog.
pub const ENTRY: Entry = Entry {
    name: NAME,
    summary: "the shipped controllers of sources and destinations, whatever crashes, lags or dies",
    keys: &KEYS,
    words: &[],
    seed_config: None,
    build: |size| Ok(Box::new(Syncs::from_size(size)?)),
};

/// What syncs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A source whose images are the product.
    Images,
    /// A source whose images go into a repository.
    Backups,
    /// A destination.
    Destination,
}

/// What may be broken in the world's rendering of the rules, for mutants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    /// The tag that is answered is the one that is set when the sync ends.
    TagAtTheEnd,
    /// The mover begins before the intent is written.
    IntentAfterTheEffect,
    /// What is empty is taken for usable.
    EmptyIsUsable,
    /// An image that is being taken is taken for ready.
    PublishedBeforeReady,
    /// The latest image may go.
    LatestMayGo,
    /// A mover begins without a fresh look at the image.
    BeginsOnOldNews,
    /// An image is deleted whatever version of it was seen.
    DeletesOnOldNews,
    /// The object goes without a fresh list of its images.
    GoesOnOldNews,
    /// The object goes although an image of it is held.
    GoesWhileHeld,
}

/// The world in some size, with a flaw or none.
#[derive(Debug, Clone)]
pub struct Syncs {
    role: Role,
    tags: u8,
    faults: u8,
    has_holds: bool,
    flaw: Option<Flaw>,
}

impl Syncs {
    /// The model in the size that a person asked for.
    pub fn from_size(size: &Size) -> Result<Self, SizeError> {
        let [kind, tags, faults, holds] = size.numbers(NAME, &KEYS)?;
        let role = match kind {
            1 => Role::Images,
            2 => Role::Backups,
            _ => Role::Destination,
        };
        // Of an image that is only on its way into a repository nobody takes hold.
        let has_holds = holds == 1 && role != Role::Backups;
        Ok(Syncs { role, tags: tags as u8, faults: faults as u8, has_holds, flaw: None })
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }
}

impl Model for Syncs {
    type State = State;
    type Packed = u128;

    fn size(&self) -> String {
        let kind = match self.role {
            Role::Images => 1,
            Role::Backups => 2,
            Role::Destination => 3,
        };
        let holds = u8::from(self.has_holds);
        format!("kind={kind},tags={},faults={},holds={holds}", self.tags, self.faults)
    }

    fn explain(&self, name: &str) -> Option<&'static str> {
        match name {
            "Collect" => Some("an object that goes leaves no image behind"),
            "DeleteImage" if self.tags <= 2 => {
                Some("with two tags no destination has an image too many")
            }
            _ => None,
        }
    }

    fn code(&self, state: &mut State, coder: &mut Coder) {
        state.code(usize::from(self.tags), coder);
    }

    fn initial(&self) -> Vec<State> {
        vec![State { faults: self.faults, ..State::default() }]
    }

    fn actions(&self) -> Vec<Action> {
        self.deeds().into_iter().map(Deed::action).collect()
    }

    fn next(&self, state: &State, steps: &mut Steps<State>) {
        self.steps(state, steps);
    }

    fn describe(&self, state: &State) -> Vec<(&'static str, String)> {
        state.show(usize::from(self.tags))
    }

    fn invariants(&self) -> Vec<Invariant<State>> {
        promises::invariants(self.role, self.has_holds)
    }

    fn reachable(&self) -> Vec<Reachable<State>> {
        promises::reachable(self.tags)
    }

    fn properties(&self) -> Vec<Property<State>> {
        promises::properties(self.tags, self.has_holds)
    }

    fn fairness(&self) -> Vec<Fairness> {
        self.all_fairness()
    }

    /// When the object is gone; or every tag is answered or given up, and nothing is left to clear.
    fn may_rest(&self, state: &State) -> bool {
        let record = &state.record;
        if self.has_holds {
            return state.is_gone;
        }
        record.tag == self.tags
            && record.intent.is_none()
            && (record.answered == record.tag || record.given_up == record.tag)
    }

    fn arbitrary(&self, rng: &mut Rng) -> Option<State> {
        Some(State::any(usize::from(self.tags), self.faults, rng))
    }

    fn mutants(&self) -> Vec<Mutant<Self>> {
        let of = |role: Role, tags: u8, flaw: Flaw| Syncs {
            role,
            tags,
            faults: self.faults.max(1),
            has_holds: matches!(
                flaw,
                Flaw::DeletesOnOldNews | Flaw::GoesOnOldNews | Flaw::GoesWhileHeld
            ),
            flaw: Some(flaw),
        };
        let destination = Role::Destination;
        vec![
            Mutant::new(
                "tag-at-the-end",
                "the tag that is answered is the one that is set when the sync ends",
                &["TagMeansAfter"],
                of(self.role, self.tags.max(2), Flaw::TagAtTheEnd),
            ),
            Mutant::new(
                "intent-after-the-effect",
                "the mover begins before the intent of its sync is written",
                &["FilledOnce"],
                of(destination, self.tags.max(2), Flaw::IntentAfterTheEffect),
            ),
            Mutant::new(
                "empty-published",
                "what was brought back is published although there is nothing in it",
                &["NoEmptyByAccident"],
                of(destination, self.tags, Flaw::EmptyIsUsable),
            ),
            Mutant::new(
                "published-before-ready",
                "an image is published while it is being taken",
                &["LatestImageExists"],
                of(destination, self.tags, Flaw::PublishedBeforeReady),
            ),
            Mutant::new(
                "latest-deleted",
                "the latest image counts as one of the old ones",
                &["LatestImageExists"],
                of(destination, self.tags.max(3), Flaw::LatestMayGo),
            ),
            Mutant::new(
                "begun-on-old-news",
                "a mover begins although its image may be there already",
                &["ImageUntouched"],
                of(destination, self.tags, Flaw::BeginsOnOldNews),
            ),
            Mutant::new(
                "deleted-on-old-news",
                "an image is deleted although somebody has taken hold of it since it was seen",
                &["HeldImageStays"],
                of(destination, 1, Flaw::DeletesOnOldNews),
            ),
            Mutant::new(
                "gone-on-old-news",
                "the object goes because the cache shows no image of it",
                &["HeldImageStays"],
                of(destination, 1, Flaw::GoesOnOldNews),
            ),
            Mutant::new(
                "gone-while-held",
                "the object goes, and its images after it, although one of them is held",
                &["HeldImageStays"],
                of(destination, 1, Flaw::GoesWhileHeld),
            ),
        ]
    }
}
