//! The state: the destination and its images, and for each claim its hold, its PVC' and its volume.

use super::Volumes;
use interlock_checker::{Coder, Rng};

/// What fits in the packed state.
pub(super) const MOST_IMAGES: usize = 6;
pub(super) const MOST_CLAIMS: usize = 4;
pub(super) const MOST_VANDALS: u8 = 3;

/// The ReplicationDestination (`rd`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Destination {
    /// Takes images.
    #[default]
    Live,
    /// A user deleted it.
    Deleting,
    /// It is no more.
    Gone,
}

/// A VolumeSnapshot (`vs[s]`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Snapshot {
    #[default]
    None,
    /// Taken, not ready to use.
    New,
    Ready,
    /// Deleted, and kept only by the holds on it.
    Dying,
}

/// The user's PVC (`claim[p]`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Phase {
    #[default]
    None,
    Pending,
    Bound,
    Deleting,
    Gone,
}

/// The auxiliary PVC' that an image is poured into, with that image (`prime[p]`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Prime {
    #[default]
    None,
    Pending(u8),
    Bound(u8),
}

/// Where the volume is on its way from PVC' to the claim (`pv[p].st`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum VolumeState {
    #[default]
    None,
    /// Bound to PVC'.
    Prime,
    /// Meant for the claim, not bound yet.
    Claim,
    /// Bound to the claim.
    Bound,
    /// Reclaimed, or bound to nothing any more.
    Lost,
}

const DESTINATIONS: [Destination; 3] =
    [Destination::Live, Destination::Deleting, Destination::Gone];
const SNAPSHOTS: [Snapshot; 4] = [Snapshot::None, Snapshot::New, Snapshot::Ready, Snapshot::Dying];
const PHASES: [Phase; 5] =
    [Phase::None, Phase::Pending, Phase::Bound, Phase::Deleting, Phase::Gone];
const PLACES: [VolumeState; 5] = [
    VolumeState::None,
    VolumeState::Prime,
    VolumeState::Claim,
    VolumeState::Bound,
    VolumeState::Lost,
];

/// The volume made for a claim (`pv[p]`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Volume {
    pub(crate) place: VolumeState,
    /// The image whose data is in it; none: it is empty.
    pub(crate) data: Option<u8>,
    /// Its reclaim policy is Retain.
    pub(crate) keep: bool,
}

/// A claim, and all that is made for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Claim {
    pub(crate) phase: Phase,
    /// The images held for it, a bit each (`hold`).
    pub(crate) holds: u8,
    pub(crate) prime: Prime,
    pub(crate) volume: Volume,
}

/// The whole of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct State {
    pub(crate) destination: Destination,
    /// The published image (`li`).
    pub(crate) latest: Option<u8>,
    pub(crate) snapshots: [Snapshot; MOST_IMAGES],
    /// Images ever taken, a bit each (`made`).
    pub(crate) taken: u8,
    pub(crate) claims: [Claim; MOST_CLAIMS],
    /// Snapshots deleted by hand (`broke`).
    pub(crate) vandalised: u8,
}

impl State {
    pub(super) fn snapshot(&self, image: u8) -> Snapshot {
        self.snapshots[usize::from(image)]
    }

    pub(super) fn is_held(&self, image: u8) -> bool {
        self.claims.iter().any(|claim| claim.holds >> image & 1 == 1)
    }
}

/// An image or none, as one number.
fn code_image(image: &mut Option<u8>, coder: &mut Coder, width: u32) {
    let mut number = image.map_or(0, |image| image + 1);
    coder.u8(&mut number, width);
    *image = number.checked_sub(1);
}

impl Prime {
    fn code(&mut self, coder: &mut Coder, width: u32) {
        let (mut is_bound, mut image) = match *self {
            Prime::None => (false, None),
            Prime::Pending(image) => (false, Some(image)),
            Prime::Bound(image) => (true, Some(image)),
        };
        coder.bool(&mut is_bound);
        code_image(&mut image, coder, width);
        *self = match image {
            None => Prime::None,
            Some(image) if is_bound => Prime::Bound(image),
            Some(image) => Prime::Pending(image),
        };
    }

    fn renamed(self, images: &[usize]) -> Prime {
        match self {
            Prime::None => Prime::None,
            Prime::Pending(image) => Prime::Pending(images[usize::from(image)] as u8),
            Prime::Bound(image) => Prime::Bound(images[usize::from(image)] as u8),
        }
    }
}

impl Volumes {
    pub(super) fn code_state(&self, state: &mut State, coder: &mut Coder) {
        let width = usize::BITS - self.images.leading_zeros();
        coder.of(&mut state.destination, &DESTINATIONS);
        code_image(&mut state.latest, coder, width);
        for snapshot in &mut state.snapshots[..self.images] {
            coder.of(snapshot, &SNAPSHOTS);
        }
        coder.u8(&mut state.taken, self.images as u32);
        for claim in &mut state.claims[..self.claims] {
            coder.of(&mut claim.phase, &PHASES);
            coder.u8(&mut claim.holds, self.images as u32);
            claim.prime.code(coder, width);
            coder.of(&mut claim.volume.place, &PLACES);
            code_image(&mut claim.volume.data, coder, width);
            coder.bool(&mut claim.volume.keep);
        }
        coder.u8(&mut state.vandalised, u8::BITS - self.vandals.leading_zeros());
    }

    /// The same state with image `i` called `images[i]` and claim `p` called `claims[p]`.
    pub(super) fn rename(&self, state: &State, images: &[usize], claims: &[usize]) -> State {
        let rename = |image: u8| images[usize::from(image)] as u8;
        let rename_all = |set: u8| {
            (0..self.images).filter(|i| set >> i & 1 == 1).fold(0, |all, i| all | 1 << images[i])
        };
        let mut renamed = state.clone();
        renamed.latest = state.latest.map(rename);
        renamed.taken = rename_all(state.taken);
        for (i, snapshot) in state.snapshots[..self.images].iter().enumerate() {
            renamed.snapshots[images[i]] = *snapshot;
        }
        for (p, claim) in state.claims[..self.claims].iter().enumerate() {
            renamed.claims[claims[p]] = Claim {
                phase: claim.phase,
                holds: rename_all(claim.holds),
                prime: claim.prime.renamed(images),
                volume: Volume { data: claim.volume.data.map(rename), ..claim.volume },
            };
        }
        renamed
    }

    pub(super) fn any_state(&self, rng: &mut Rng) -> State {
        let image = |rng: &mut Rng| rng.below(self.images) as u8;
        let some_image = |rng: &mut Rng| rng.flip().then(|| rng.below(self.images) as u8);
        let set = |rng: &mut Rng| rng.below(1 << self.images) as u8;
        let mut state = State {
            destination: DESTINATIONS[rng.below(DESTINATIONS.len())],
            latest: some_image(rng),
            taken: set(rng),
            vandalised: rng.below(usize::from(self.vandals) + 1) as u8,
            ..State::default()
        };
        for snapshot in &mut state.snapshots[..self.images] {
            *snapshot = SNAPSHOTS[rng.below(SNAPSHOTS.len())];
        }
        for claim in &mut state.claims[..self.claims] {
            *claim = Claim {
                phase: PHASES[rng.below(PHASES.len())],
                holds: set(rng),
                prime: match rng.below(3) {
                    0 => Prime::None,
                    1 => Prime::Pending(image(rng)),
                    _ => Prime::Bound(image(rng)),
                },
                volume: Volume {
                    place: PLACES[rng.below(PLACES.len())],
                    data: some_image(rng),
                    keep: rng.flip(),
                },
            };
        }
        state
    }

    pub(super) fn show(&self, state: &State) -> Vec<(&'static str, String)> {
        let per_claim = |value: &dyn Fn(&Claim) -> String| {
            let one = |p: usize| format!("p{} :> {}", p + 1, value(&state.claims[p]));
            format!("({})", (0..self.claims).map(one).collect::<Vec<_>>().join(" @@ "))
        };
        let snapshot = |i: usize| {
            let text = format!("{:?}", state.snapshots[i]).to_lowercase();
            format!("s{} :> \"{text}\"", i + 1)
        };
        let snapshots = (0..self.images).map(snapshot).collect::<Vec<_>>().join(" @@ ");
        let taken = (0..self.images).filter(|i| state.taken >> i & 1 == 1);
        let holds = (0..self.images).flat_map(|i| {
            let holders = (0..self.claims).filter(move |p| state.claims[*p].holds >> i & 1 == 1);
            holders.map(move |p| format!("<<s{}, p{}>>", i + 1, p + 1))
        });
        vec![
            ("rd", format!("\"{}\"", format!("{:?}", state.destination).to_lowercase())),
            ("li", show_image(state.latest)),
            ("vs", format!("({snapshots})")),
            ("made", show_set(taken.map(|i| format!("s{}", i + 1)))),
            ("claim", per_claim(&|claim| show_phase(claim.phase).to_owned())),
            ("hold", show_set(holds)),
            ("prime", per_claim(&|claim| show_prime(claim.prime))),
            ("pv", per_claim(&|claim| show_volume(&claim.volume))),
            ("broke", state.vandalised.to_string()),
        ]
    }
}

fn show_image(image: Option<u8>) -> String {
    image.map_or_else(|| "nil".to_owned(), |image| format!("s{}", image + 1))
}

fn show_set(elements: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", elements.collect::<Vec<_>>().join(", "))
}

fn show_phase(phase: Phase) -> &'static str {
    match phase {
        Phase::None => "\"none\"",
        Phase::Pending => "\"Pending\"",
        Phase::Bound => "\"Bound\"",
        Phase::Deleting => "\"Deleting\"",
        Phase::Gone => "\"gone\"",
    }
}

fn show_prime(prime: Prime) -> String {
    let (state, image) = match prime {
        Prime::None => ("none", None),
        Prime::Pending(image) => ("Pending", Some(image)),
        Prime::Bound(image) => ("Bound", Some(image)),
    };
    format!("[st |-> \"{state}\", src |-> {}]", show_image(image))
}

fn show_volume(volume: &Volume) -> String {
    let place = format!("{:?}", volume.place).to_lowercase();
    let keep = if volume.keep { "TRUE" } else { "FALSE" };
    format!("[st |-> \"{place}\", data |-> {}, keep |-> {keep}]", show_image(volume.data))
}
