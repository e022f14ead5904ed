//! The world as the protocol sees it.
//!
//! The protocol has one populator, and its users delete neither the destination in the middle nor
//! claims that are bound, so this is for such worlds. An image that somebody deletes while the
//! storage pours it counts as deleted when the storage lets go of it: until then nothing differs.

use super::World;
use super::state::{Claim, Folder, Life, Phase, Stage, State};
use crate::spec::state as protocol;
use crate::spec::{self, Volumes};
use interlock_checker::Refinement;

impl World {
    pub(super) fn refined(&self) -> Vec<Refinement<State>> {
        let is_within = !self.two_populators && !self.leave && self.flaws.is_empty();
        if !is_within || self.claims > 1 && self.one_name {
            return Vec::new();
        }
        let specification = Volumes::sized(self.images, self.claims, self.vandals);
        let (images, claims) = (self.images, self.claims);
        let picture = move |state: &State| pictured(state, images, claims);
        vec![Refinement::of("spec/volumes", specification, picture)]
    }
}

fn pictured(state: &State, images: usize, claims: usize) -> spec::State {
    let mut picture = spec::State { latest: state.latest, ..spec::State::default() };
    for (place, image) in state.images[..images].iter().enumerate() {
        let is_put_off = image.by_hand && image.primes != 0;
        picture.snapshots[place] = match image.stage {
            Stage::Never | Stage::Gone => protocol::Snapshot::None,
            Stage::New => protocol::Snapshot::New,
            Stage::Ready => protocol::Snapshot::Ready,
            Stage::Dying if is_put_off => protocol::Snapshot::Ready,
            Stage::Dying => protocol::Snapshot::Dying,
        };
        picture.taken |= u8::from(image.stage != Stage::Never) << place;
        picture.vandalised += u8::from(image.by_hand && !is_put_off);
    }
    for p in 0..claims {
        picture.claims[p] = claim_pictured(state, p, images);
    }
    picture
}

fn claim_pictured(state: &State, p: usize, images: usize) -> protocol::Claim {
    let claim = &state.claims[p];
    let holds = (0..images).filter(|image| state.images[*image].holds >> p & 1 == 1);
    let prime = match claim.prime {
        None => protocol::Prime::None,
        Some(prime) if prime.phase == Phase::Pending => protocol::Prime::Pending(prime.source),
        Some(prime) => protocol::Prime::Bound(prime.source),
    };
    protocol::Claim {
        phase: match claim.life {
            Life::Never => protocol::Phase::None,
            Life::Gone => protocol::Phase::Gone,
            Life::There if claim.deleting => protocol::Phase::Deleting,
            Life::There if claim.named.is_some() => protocol::Phase::Bound,
            Life::There => protocol::Phase::Pending,
        },
        holds: holds.fold(0, |set, image| set | 1 << image),
        prime,
        volume: volume_pictured(state, p, claim),
    }
}

fn volume_pictured(state: &State, p: usize, claim: &Claim) -> protocol::Volume {
    // What is left of an undone claim is deleted in its own time.
    if !claim.is_alive() && claim.prime.is_none() {
        return protocol::Volume::default();
    }
    let handed = state.volumes[p].iter().find(|volume| volume.record && volume.handed);
    if let Some(volume) = handed {
        let place = match claim.named {
            Some(_) => protocol::Place::Bound,
            None => protocol::Place::Claim,
        };
        return protocol::Volume { place, data: volume.data, keep: true };
    }
    let prime = claim.prime.filter(|prime| prime.phase == Phase::Bound);
    let volume = prime.map(|prime| state.volumes[p][usize::from(prime.number)]);
    match volume.filter(|volume| volume.folder == Folder::Whole) {
        Some(volume) => protocol::Volume {
            place: protocol::Place::Prime,
            data: volume.data,
            keep: volume.retain,
        },
        None => protocol::Volume::default(),
    }
}
