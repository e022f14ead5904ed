//! The steps of the world: controllers that act on what they see, and what happens to them.

use super::World;
use super::actions::{DELETE_DESTINATION, DESTINATION_AGAIN, DESTINATION_GONE, OfClaim, OfImage};
use super::flaws::Flaw;
use super::state::{Destination, Flight, Folder, InFlight, Life, MOST_PRIMES, Stage, State};
use crate::populator::decide as fill;
use crate::storage::{claim, image, volume};
use crate::sync::decide as publish;
use interlock_checker::{ActionId, Steps};

impl World {
    pub(super) fn steps(&self, state: &State, steps: &mut Steps<State>) {
        let mut moves = Moves { world: self, state, steps };
        moves.destination();
        for image in 0..self.images as u8 {
            moves.image(image);
        }
        for p in 0..self.claims {
            moves.user(p);
            moves.populate(p);
            moves.store(p);
            for number in 0..MOST_PRIMES as u8 {
                moves.volume((p as u8, number));
            }
        }
        moves.land();
        moves.reclaim();
    }
}

/// The steps out of one state, as they are found.
struct Moves<'a> {
    world: &'a World,
    state: &'a State,
    steps: &'a mut Steps<State>,
}

impl Moves<'_> {
    /// A write that rests on what has changed is refused when it comes.
    fn push(&mut self, action: ActionId, mut next: State) {
        if let Some(flight) = next.flight
            && self.state.flight == Some(flight)
            && flight.is_refused(self.state, &next)
        {
            next.flight = None;
        }
        if next != *self.state {
            self.steps.step(action, next);
        }
    }

    fn step(&mut self, action: ActionId, change: impl FnOnce(&mut State)) {
        let mut next = self.state.clone();
        change(&mut next);
        self.push(action, next);
    }

    fn destination(&mut self) {
        let (world, state) = (self.world, self.state);
        let has_image =
            state.images.iter().any(|image| matches!(image.stage, Stage::New | Stage::Ready));
        let decision = publish::decide(&world.destination_facts(state, None, has_image));
        match state.destination {
            Destination::Live if world.leave => {
                self.step(DELETE_DESTINATION, |next| next.destination = Destination::Deleting);
            }
            Destination::Deleting if decision == publish::Decision::LetGo => {
                self.step(DESTINATION_GONE, |next| {
                    next.destination = Destination::Gone;
                    next.latest = None;
                });
            }
            Destination::Gone => {
                self.step(DESTINATION_AGAIN, |next| next.destination = Destination::Live);
            }
            Destination::Live | Destination::Deleting => {}
        }
    }

    /// An image, from the sync that it is the product of to its end.
    fn image(&mut self, image: u8) {
        let (world, state) = (self.world, self.state);
        let place = usize::from(image);
        let seen = state.image(image);
        let stages = state.images.map(|image| image.stage);
        // One sync at a time, and one image after another.
        let is_next = stages[..place].iter().all(|stage| *stage != Stage::Never)
            && !stages.contains(&Stage::New);
        let product = publish::decide(&world.destination_facts(state, Some(image), false));
        if state.destination == Destination::Live {
            match product {
                publish::Decision::TakeImage if is_next => {
                    self.step(world.image_id(OfImage::Take, image), |next| {
                        next.images[place].stage = Stage::New;
                    });
                }
                publish::Decision::Publish(_) => {
                    self.step(world.image_id(OfImage::Publish, image), |next| {
                        next.latest = Some(image);
                        next.published |= 1 << image;
                    });
                }
                _ => {}
            }
        }
        let stored = image::decide::decide(&world.image_facts(state, image));
        if seen.stage == Stage::New && stored == image::decide::Decision::ReportReady {
            self.step(world.image_id(OfImage::Ready, image), |next| {
                next.images[place].stage = Stage::Ready;
            });
        }
        self.delete_image(image);
        if seen.stage == Stage::Dying && stored == image::decide::Decision::Delete {
            self.step(world.image_id(OfImage::Reap, image), |next| next.delete_image(image));
        }
    }

    fn delete_image(&mut self, image: u8) {
        let (world, state) = (self.world, self.state);
        let seen = state.image(image);
        let is_latest = state.latest == Some(image);
        let is_spare = match state.destination {
            Destination::Live => {
                seen.stage == Stage::Ready
                    && state.latest.is_some()
                    && (!is_latest || world.has(Flaw::LatestDeleted))
                    && (!seen.is_held() || world.has(Flaw::HoldIgnored))
            }
            Destination::Deleting => matches!(seen.stage, Stage::New | Stage::Ready),
            Destination::Gone => false,
        };
        let decision = publish::decide(&world.destination_facts(state, None, is_spare));
        if is_spare && matches!(decision, publish::Decision::DeleteImage(_)) {
            let what = match state.destination {
                Destination::Live => OfImage::DeleteOld,
                Destination::Deleting | Destination::Gone => OfImage::DeleteLeaving,
            };
            self.step(world.image_id(what, image), |next| next.delete_image(image));
        }
        let is_left = state.vandalised < world.vandals;
        if is_left && seen.stage == Stage::Ready && !is_latest {
            self.step(world.image_id(OfImage::Vandal, image), |next| {
                next.vandalised += 1;
                next.images[usize::from(image)].by_hand = true;
                next.delete_image(image);
            });
        }
    }

    fn user(&mut self, p: usize) {
        let (world, state) = (self.world, self.state);
        let claim = &state.claims[p];
        let is_free = !world.one_name || p == 0 || state.claims[p - 1].is_gone();
        if claim.life == Life::Never && is_free {
            self.step(world.id(OfClaim::Create, p), |next| next.claims[p].life = Life::There);
        }
        if claim.is_alive() && (world.leave || claim.named.is_none()) {
            self.step(world.id(OfClaim::Remove, p), |next| next.claims[p].deleting = true);
        }
        if claim.is_free() {
            self.step(world.id(OfClaim::Vanish, p), |next| next.claims[p] = claim.gone());
        }
        // PVC' is owned by a claim that is gone.
        if let Some(prime) = claim.prime.filter(|prime| claim.is_gone() && !prime.deleting)
            && let Some(next) = world.populated(state, p, (OfClaim::DeletePrime, prime.number))
        {
            self.push(world.id(OfClaim::Collect, p), next);
        }
    }

    fn populate(&mut self, p: usize) {
        let (world, state) = (self.world, self.state);
        if state.claims[p].is_gone() {
            return self.settle_orphan(p);
        }
        if state.claims[p].life == Life::Never {
            return;
        }
        let decision = fill::decide(&world.populator_facts(state, p, false));
        if let Some((what, target)) = world.intended(state, p, decision) {
            if let Some(next) = world.populated(state, p, (what, target)) {
                self.push(world.id(what, p), next);
            }
            if let Some(write) = InFlight::of(what)
                && world.two_populators
                && state.flight.is_none()
            {
                let flight = Flight { claim: p as u8, write, target };
                self.step(world.id(OfClaim::TakeOff, p), |next| next.flight = Some(flight));
            }
        }
        let stale = fill::decide(&world.populator_facts(state, p, true));
        if stale == fill::Decision::Pin && state.faults < world.faults {
            for image in (0..world.images as u8).filter(|i| state.published >> i & 1 == 1) {
                if let Some(mut next) = world.populated(state, p, (OfClaim::Pin, image)) {
                    next.faults += 1;
                    self.push(world.id(OfClaim::Pin, p), next);
                }
            }
        }
    }

    /// A volume that is kept for a claim that is gone is given back.
    fn settle_orphan(&mut self, p: usize) {
        let (world, state) = (self.world, self.state);
        let noted = (0..MOST_PRIMES as u8).find(|number| {
            let volume = state.volume((p as u8, *number));
            volume.record && volume.noted
        });
        if let Some(number) = noted
            && let Some(next) = world.populated(state, p, (OfClaim::SettleOrphan, number))
        {
            self.push(world.id(OfClaim::SettleOrphan, p), next);
        }
    }

    /// The second populator writes what it decided on.
    fn land(&mut self) {
        let Some(flight) = self.state.flight else { return };
        let p = usize::from(flight.claim);
        let from = State { flight: None, ..self.state.clone() };
        let write = (flight.write.what(), flight.target);
        let next = self.world.populated(&from, p, write).unwrap_or(from);
        self.push(self.world.id(OfClaim::Land, p), next);
    }

    fn store(&mut self, p: usize) {
        let (world, state) = (self.world, self.state);
        let claim = &state.claims[p];
        if let Some(prime) = claim.prime {
            let decision = claim::decide::decide(&world.prime_facts(state, p, prime));
            if let Some((what, next)) = world.stored_prime(state, p, decision) {
                self.push(world.id(what, p), next);
            }
        }
        if claim.life == Life::There {
            let decision = claim::decide::decide(&world.claim_facts(state, p));
            if let Some((what, next)) = world.stored_claim(state, p, decision) {
                self.push(world.id(what, p), next);
            }
        }
    }

    fn volume(&mut self, id: (u8, u8)) {
        let (world, state) = (self.world, self.state);
        let (p, seen) = (usize::from(id.0), state.volume(id));
        if seen.folder == Folder::Making {
            self.step(world.id(OfClaim::Made, p), |next| {
                next.volume_mut(id).folder = Folder::Whole;
            });
            if state.faults < world.faults {
                self.step(world.id(OfClaim::Fail, p), |next| {
                    next.faults += 1;
                    next.volume_mut(id).folder = Folder::None;
                    next.volume_mut(id).data = None;
                });
            }
        }
        if seen.record {
            let decision = volume::decide::decide(&world.volume_facts(state, id));
            if let Some((what, next)) = world.stored_volume(state, id, decision) {
                self.push(world.id(what, p), next);
            }
        }
    }

    /// The storage deletes what it decided to delete.
    fn reclaim(&mut self) {
        let Some(id) = self.state.reclaiming else { return };
        let action = self.world.id(OfClaim::DeleteVolume, usize::from(id.0));
        let next = self.world.reclaimed(self.state, id);
        self.push(action, next);
    }
}
