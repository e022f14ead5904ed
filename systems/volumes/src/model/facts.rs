//! What each controller is told: the world as it can see it, in the words of its `decide`.
//!
//! A flaw tells it something wrong: what a careless `observe` would do.

use super::World;
use super::flaws::Flaw;
use super::state::{Claim, Destination, Folder, Life, MOST_PRIMES, Phase, Prime, Stage, State};
use crate::populator::decide as fill;
use crate::storage::claim::decide as bind;
use crate::storage::image::decide as take;
use crate::storage::volume::decide as keep;
use crate::sync::decide as publish;

/// A volume by the claim that it was poured for and the number of its PVC'.
pub(super) type VolumeId = (u8, u8);

impl State {
    /// The volume on its way to a claim: the one that says so, or the one that the claim names, or
    /// that of PVC'.
    pub(super) fn volume_for(&self, p: usize) -> Option<VolumeId> {
        let claim = &self.claims[p];
        let own = |number: usize| (p as u8, number as u8);
        let mut noted = (0..MOST_PRIMES).map(own).filter(|id| {
            let volume = self.volume(*id);
            volume.record && volume.noted
        });
        let of_prime = claim.prime.filter(|prime| prime.named).map(|prime| (p as u8, prime.number));
        let found = noted.next().or(claim.named).or(of_prime)?;
        self.volume(found).record.then_some(found)
    }

    /// The image that is held for a claim.
    pub(super) fn held_for(&self, p: usize) -> Option<u8> {
        (0..self.images.len() as u8).find(|image| self.image(*image).holds >> p & 1 == 1)
    }
}

impl World {
    /// What the populator goes by; a stale one takes an image that was published for the latest.
    pub(super) fn populator_facts(&self, state: &State, p: usize, is_stale: bool) -> fill::Facts {
        let claim = &state.claims[p];
        let destination = match (state.destination, state.latest) {
            _ if is_stale => fill::Destination::Image,
            (Destination::Gone, _) => fill::Destination::Missing,
            (Destination::Deleting, _) => fill::Destination::Leaving,
            (Destination::Live, Some(latest)) if self.is_usable(state, latest) => {
                fill::Destination::Image
            }
            (Destination::Live, _) => fill::Destination::NoImage,
        };
        let holds = match state.held_for(p) {
            // Whoever holds later than it pours believes that it holds already.
            None if self.has(Flaw::HoldAssumed) && claim.pin.is_some() && claim.is_alive() => {
                fill::Holds::Pinned
            }
            Some(_) if claim.deleting && self.has(Flaw::HoldForgotten) => fill::Holds::None,
            None => fill::Holds::None,
            Some(image) if Some(image) == claim.pin => fill::Holds::Pinned,
            Some(_) => fill::Holds::Other,
        };
        fill::Facts {
            is_fresh: true,
            is_deleting: claim.deleting,
            is_marked: claim.marked,
            bound: self.bound_seen(state, p),
            class: fill::Class::Ready,
            destination,
            pin: claim.pin.map(|pin| self.pin_seen(state, pin)),
            is_touched: self.has(Flaw::NotTouched)
                || claim.pin.is_some_and(|pin| state.image(pin).touched >> p & 1 == 1),
            holds,
            prime: self.prime_seen(p, claim),
            is_prime_failing: false,
            volume: self.volume_seen(state, p),
            is_policy_noted: true,
            said: None,
        }
    }

    /// Whether an image is whole and alive, as the populator would believe.
    pub(super) fn is_usable(&self, state: &State, image: u8) -> bool {
        match state.image(image).stage {
            Stage::Ready => true,
            Stage::New => self.has(Flaw::NotReadyUsed),
            Stage::Never | Stage::Dying | Stage::Gone => false,
        }
    }

    fn pin_seen(&self, state: &State, pin: u8) -> fill::Image {
        match state.image(pin).stage {
            Stage::Dying | Stage::Gone if self.has(Flaw::NoSecondChoice) => fill::Image::Ready,
            Stage::New if self.has(Flaw::NotReadyUsed) => fill::Image::Ready,
            Stage::Never | Stage::Gone => fill::Image::Gone,
            Stage::Dying => fill::Image::Dying,
            Stage::New => fill::Image::NotReady,
            Stage::Ready => fill::Image::Ready,
        }
    }

    fn bound_seen(&self, state: &State, p: usize) -> fill::Bound {
        let claim = &state.claims[p];
        let Some(named) = claim.named else { return fill::Bound::No };
        let volume = state.volume(named);
        let is_mine = volume.record && volume.handed && usize::from(named.0) == p;
        match (is_mine, claim.phase) {
            (true, Phase::Bound) => fill::Bound::Here,
            (true, Phase::Pending | Phase::Lost) => fill::Bound::No,
            (false, _) => fill::Bound::Elsewhere,
        }
    }

    fn prime_seen(&self, p: usize, claim: &Claim) -> fill::Prime {
        let Some(prime) = claim.prime else { return fill::Prime::None };
        let own = prime.named.then_some((p as u8, prime.number));
        let is_apart = own.is_some() && claim.named.is_some() && own != claim.named;
        let is_of_pin = Some(prime.source) == claim.pin || self.has(Flaw::SourceNotLookedAt);
        match prime.phase {
            _ if prime.deleting => fill::Prime::Going,
            _ if is_apart => fill::Prime::Apart,
            Phase::Lost => fill::Prime::Lost,
            Phase::Bound if self.has(Flaw::DropsBeforeBound) => fill::Prime::Lost,
            Phase::Pending | Phase::Bound if !is_of_pin => fill::Prime::OfOther,
            Phase::Pending => fill::Prime::Pending,
            Phase::Bound => fill::Prime::Bound,
        }
    }

    fn volume_seen(&self, state: &State, p: usize) -> fill::Volume {
        let Some(id) = state.volume_for(p) else { return fill::Volume::None };
        let volume = state.volume(id);
        let is_kept = volume.noted && (volume.retain || self.has(Flaw::NotRetained));
        match (volume.handed, volume.noted) {
            (true, true) => fill::Volume::Handed,
            (true, false) => fill::Volume::Settled,
            (false, _) if volume.going => fill::Volume::Going,
            (false, _) if is_kept => fill::Volume::Kept,
            (false, _) if volume.released => fill::Volume::Going,
            (false, _) if self.has(Flaw::DropsBeforeBound) => fill::Volume::None,
            (false, _) => fill::Volume::OfPrime,
        }
    }

    /// What the storage goes by for PVC'.
    pub(super) fn prime_facts(&self, state: &State, p: usize, prime: Prime) -> bind::Facts {
        let volume = state.volume((p as u8, prime.number));
        let is_mine = volume.record && !volume.handed;
        let seen = match (prime.named, is_mine) {
            (true, true) => bind::Volume::Mine,
            (true, false) => bind::Volume::Lost,
            (false, true) if !volume.released && !volume.going => bind::Volume::Offered,
            (false, _) => bind::Volume::None,
        };
        let image = state.image(prime.source);
        let source = match image.stage {
            Stage::Never | Stage::Gone => bind::Image::Missing,
            Stage::New if self.has(Flaw::NotReadyUsed) => bind::Image::Ready,
            Stage::New => bind::Image::NotReady,
            Stage::Ready => bind::Image::Ready,
            Stage::Dying => bind::Image::Dying,
        };
        bind::Facts {
            is_deleting: prime.deleting,
            is_protected: prime.protected,
            source: bind::Source::Image(source),
            has_hold: image.primes >> p & 1 == 1,
            made: made(volume.folder),
            has_record: Some(volume.record),
            ..bound_facts(seen, (prime.named, prime.phase))
        }
    }

    /// What the storage goes by for a claim that the populator fills.
    pub(super) fn claim_facts(&self, state: &State, p: usize) -> bind::Facts {
        let claim = &state.claims[p];
        let seen = match (claim.named, self.offered(state, p)) {
            (Some(named), _) if self.is_for(state, named, p) => bind::Volume::Mine,
            (Some(_), _) => bind::Volume::Lost,
            (None, Some(_)) => bind::Volume::Offered,
            (None, None) => bind::Volume::None,
        };
        bind::Facts {
            is_deleting: claim.deleting,
            is_protected: claim.protected,
            source: bind::Source::Populator,
            has_hold: false,
            made: bind::Made::Missing,
            has_record: Some(false),
            ..bound_facts(seen, (claim.named.is_some(), claim.phase))
        }
    }

    /// The volume that names a claim.
    pub(super) fn offered(&self, state: &State, p: usize) -> Option<VolumeId> {
        let claims = 0..self.claims as u8;
        let mut ids = claims.flat_map(|q| (0..MOST_PRIMES as u8).map(move |number| (q, number)));
        ids.find(|id| {
            let volume = state.volume(*id);
            self.is_for(state, *id, p) && !volume.released && !volume.going
        })
    }

    /// Whether a volume names a claim: by its uid, if it is done as it should be.
    fn is_for(&self, state: &State, id: VolumeId, p: usize) -> bool {
        let volume = state.volume(id);
        let by_name = self.one_name && self.has(Flaw::HandedByName);
        volume.record && volume.handed && (by_name || usize::from(id.0) == p)
    }

    /// What the storage goes by for a volume.
    pub(super) fn volume_facts(&self, state: &State, id: VolumeId) -> keep::Facts {
        let volume = state.volume(id);
        let is_there = match volume.handed {
            false => {
                let prime = state.claims[usize::from(id.0)].prime;
                prime.is_some_and(|prime| prime.number == id.1)
            }
            true => (0..self.claims).any(|p| {
                let claim = &state.claims[p];
                claim.life == Life::There
                    && self.is_for(state, id, p)
                    && claim.named.is_none_or(|named| named == id)
            }),
        };
        keep::Facts {
            is_deleting: volume.going,
            is_protected: true,
            claim: if is_there { keep::Claim::There } else { keep::Claim::Gone },
            phase: match volume.released {
                true => keep::Phase::Released,
                // That it says so before it is asked changes nothing.
                false => keep::Phase::Bound,
            },
            is_reclaimed: !volume.retain,
            is_in_use: false,
            made: match volume.folder {
                Folder::None => keep::Made::Missing,
                Folder::Making => keep::Made::Making,
                Folder::Whole => keep::Made::There,
            },
        }
    }

    /// What the destination goes by about one image: as the product of a sync, or as one that goes.
    /// Which of its images it can spare is the world's to say: here more than it would.
    pub(super) fn destination_facts(
        &self,
        state: &State,
        product: Option<u8>,
        has_spare_image: bool,
    ) -> publish::Facts {
        let is_held = state.images.iter().any(|image| image.is_held());
        let sync = product.map(|product| publish::Sync {
            is_over: false,
            backs_off: false,
            is_changed: false,
            is_last_attempt: false,
            image: match state.image(product).stage {
                Stage::Never => publish::Image::Missing,
                Stage::New if self.has(Flaw::NotReadyUsed) => {
                    publish::Image::Ready { is_usable: true }
                }
                Stage::New => publish::Image::NotReady(publish::Trouble::None),
                Stage::Ready => publish::Image::Ready { is_usable: true },
                Stage::Dying | Stage::Gone => publish::Image::Useless,
            },
            slot: publish::Slot::NotNeeded,
            mover: publish::Mover::Done,
            is_earlier_known: false,
        });
        let spare = publish::Picture { is_own: true, ..publish::Picture::default() };
        publish::Facts {
            is_going: state.destination == Destination::Deleting,
            is_kept: true,
            has_held_image: is_held && !self.has(Flaw::GoesWhileHeld),
            images: if has_spare_image { vec![spare] } else { Vec::new() },
            is_fresh: true,
            are_images_fresh: true,
            verdict: publish::Verdict::Served,
            next: publish::Next::Tag,
            said: publish::Said::default(),
            side: publish::Side::Destination(publish::Destination {
                target: publish::Target::Bound,
                has_temporary_claim: false,
                is_outcome_usable: true,
                is_published: product.is_some_and(|product| state.published >> product & 1 == 1),
            }),
            sync,
        }
    }

    /// What the storage goes by for an image: on the disk it is whole.
    pub(super) fn image_facts(&self, state: &State, image: u8) -> take::Facts {
        let image = state.image(image);
        take::Facts {
            is_deleting: image.stage == Stage::Dying,
            is_protected: true,
            is_held: image.is_held(),
            is_ready: image.stage == Stage::Ready,
            is_described: true,
            class: take::Class::Local,
            source: take::Source::Volume,
            content: take::Content::There { is_ready: true, is_deleting: false },
            made: take::Made::Whole,
            said: None,
        }
    }
}

fn made(folder: Folder) -> bind::Made {
    match folder {
        Folder::None => bind::Made::Missing,
        Folder::Making => bind::Made::Making,
        Folder::Whole => bind::Made::Whole,
    }
}

/// What is the same for PVC' and for the claim.
fn bound_facts(volume: bind::Volume, (was_bound, phase): (bool, Phase)) -> bind::Facts {
    let is_reported = match volume {
        bind::Volume::Mine => phase == Phase::Bound,
        _ => phase == Phase::Lost,
    };
    bind::Facts {
        is_deleting: false,
        is_protected: true,
        pods: bind::Pods::None,
        volume,
        is_reported,
        was_bound,
        wants_more: false,
        class: bind::Class::Local,
        is_unsupported: false,
        source: bind::Source::Populator,
        has_hold: false,
        made: bind::Made::Missing,
        has_record: Some(false),
        said: None,
    }
}
