//! What each decision does to the world: the one write or deed that the real controller would do.

use super::World;
use super::actions::OfClaim;
use super::facts::VolumeId;
use super::flaws::Flaw;
use super::state::{
    Claim, Flight, Folder, InFlight, Life, MOST_PRIMES, Phase, Prime, Stage, State, Volume,
};
use crate::populator::decide as fill;
use crate::storage::claim::decide as bind;
use crate::storage::volume::decide as keep;

impl InFlight {
    pub(super) fn of(what: OfClaim) -> Option<InFlight> {
        Some(match what {
            OfClaim::Hold => InFlight::Hold,
            OfClaim::Pour => InFlight::Pour,
            OfClaim::Keep => InFlight::Keep,
            OfClaim::HandOver => InFlight::HandOver,
            OfClaim::DeletePrime => InFlight::DeletePrime,
            OfClaim::Settle => InFlight::Settle,
            OfClaim::DropHold => InFlight::DropHold,
            _ => return None,
        })
    }

    pub(super) fn what(self) -> OfClaim {
        match self {
            InFlight::Hold => OfClaim::Hold,
            InFlight::Pour => OfClaim::Pour,
            InFlight::Keep => OfClaim::Keep,
            InFlight::HandOver => OfClaim::HandOver,
            InFlight::DeletePrime => OfClaim::DeletePrime,
            InFlight::Settle => OfClaim::Settle,
            InFlight::DropHold => OfClaim::DropHold,
        }
    }
}

impl Flight {
    /// Whether the object that the write is guarded by has changed. What is made new, or deleted by
    /// its uid, has no such guard.
    pub(super) fn is_refused(&self, from: &State, to: &State) -> bool {
        match self.write {
            InFlight::Hold | InFlight::DropHold => from.image(self.target) != to.image(self.target),
            InFlight::Keep | InFlight::HandOver | InFlight::Settle => {
                let id = (self.claim, self.target);
                from.volume(id).on_record() != to.volume(id).on_record()
            }
            InFlight::Pour | InFlight::DeletePrime => false,
        }
    }
}

impl Claim {
    /// Whether it is to go, and nobody keeps it.
    pub(super) fn is_free(&self) -> bool {
        self.life == Life::There && self.deleting && !self.marked && !self.protected
    }

    /// The claim once it is gone; PVC' stays behind.
    pub(super) fn gone(&self) -> Claim {
        Claim { life: Life::Gone, prime: self.prime, poured: self.poured, ..Claim::default() }
    }
}

impl State {
    /// An image is deleted: a hold on it keeps it a while.
    pub(super) fn delete_image(&mut self, image: u8) {
        let image = &mut self.images[usize::from(image)];
        image.stage = if image.is_held() { Stage::Dying } else { Stage::Gone };
        if image.stage == Stage::Gone {
            image.touched = 0;
        }
    }

    fn tidy_volume(&mut self, id: VolumeId) {
        let volume = self.volume_mut(id);
        // What was in it tells whether it was given up, as long as its record is there.
        if volume.folder == Folder::None && !volume.record {
            *volume = Volume::default();
        }
    }
}

impl World {
    /// What the populator's decision is called here, and what it is about.
    pub(super) fn intended(
        &self,
        state: &State,
        p: usize,
        decision: fill::Decision,
    ) -> Option<(OfClaim, u8)> {
        use fill::Decision;
        let claim = &state.claims[p];
        let volume = || state.volume_for(p).map(|(_, number)| number);
        Some(match decision {
            Decision::Nothing(_) | Decision::Say(_) | Decision::Look | Decision::LookForImage => {
                return None;
            }
            Decision::Mark => (OfClaim::Mark, 0),
            Decision::Pin => (OfClaim::Pin, state.latest?),
            Decision::Hold => (OfClaim::Hold, claim.pin?),
            Decision::Pour => (OfClaim::Pour, claim.pin?),
            Decision::Keep { .. } => (OfClaim::Keep, volume()?),
            Decision::HandOver => (OfClaim::HandOver, volume()?),
            Decision::DeletePrime => (OfClaim::DeletePrime, claim.prime?.number),
            Decision::Settle { .. } => (OfClaim::Settle, volume()?),
            Decision::DropHold => (OfClaim::DropHold, state.held_for(p)?),
            Decision::Touch => (OfClaim::Touch, claim.pin?),
            Decision::Unpin => (OfClaim::Unpin, 0),
            Decision::UnmarkFilled | Decision::UnmarkDeleted => (OfClaim::Unmark, 0),
        })
    }

    /// The state after a write of the populator.
    pub(super) fn populated(&self, state: &State, p: usize, write: (OfClaim, u8)) -> Option<State> {
        let (what, target) = write;
        let mut next = state.clone();
        let id = (p as u8, target);
        match what {
            OfClaim::Mark => next.claims[p].marked = true,
            OfClaim::Pin => next.claims[p].pin = Some(target),
            OfClaim::Unpin => next.claims[p].pin = None,
            OfClaim::Unmark => next.claims[p].marked = false,
            OfClaim::Hold if self.is_usable(state, target) => {
                next.images[usize::from(target)].holds |= 1 << p;
            }
            OfClaim::Touch => next.images[usize::from(target)].touched |= 1 << p,
            OfClaim::DropHold => next.images[usize::from(target)].holds &= !(1 << p),
            OfClaim::Pour => {
                let claim = &mut next.claims[p];
                if claim.prime.is_some() || usize::from(claim.poured) == MOST_PRIMES {
                    return None;
                }
                let number = claim.poured;
                claim.prime = Some(Prime { number, source: target, ..Prime::default() });
                claim.poured += 1;
            }
            OfClaim::Keep => {
                let volume = next.volume_mut(id);
                volume.noted = true;
                volume.retain = !self.has(Flaw::NotRetained);
            }
            OfClaim::HandOver => next.volume_mut(id).handed = true,
            OfClaim::Settle | OfClaim::SettleOrphan => {
                let volume = next.volume_mut(id);
                volume.noted = false;
                volume.retain = false;
            }
            OfClaim::DeletePrime => {
                let prime = next.claims[p].prime.filter(|prime| prime.number == target)?;
                next.claims[p].prime = prime.protected.then_some(Prime { deleting: true, ..prime });
            }
            _ => return None,
        }
        Some(next)
    }

    /// The state after the storage did what it decided about PVC'.
    pub(super) fn stored_prime(
        &self,
        state: &State,
        p: usize,
        decision: bind::Decision,
    ) -> Option<(OfClaim, State)> {
        use bind::Decision;
        let mut next = state.clone();
        let mut prime = state.claims[p].prime?;
        let id = (p as u8, prime.number);
        let source = usize::from(prime.source);
        let what = match decision {
            Decision::Protect => {
                prime.protected = true;
                OfClaim::Protect
            }
            Decision::Hold => {
                next.images[source].primes |= 1 << p;
                OfClaim::HoldForPrime
            }
            Decision::MakeOfImage => {
                let is_whole = matches!(state.images[source].stage, Stage::Ready | Stage::Dying);
                let volume = next.volume_mut(id);
                volume.folder = Folder::Making;
                // Of an image that is not whole yet, nothing at all might be copied.
                volume.data = is_whole.then_some(prime.source);
                OfClaim::Make
            }
            Decision::Record => {
                next.volume_mut(id).record = true;
                OfClaim::Record
            }
            Decision::Bind { .. } => {
                prime.named = true;
                OfClaim::BindPrime
            }
            Decision::ReportBound => {
                prime.phase = Phase::Bound;
                next.volume_mut(id).filled = true;
                OfClaim::ReportPrime
            }
            Decision::ReportLost => {
                prime.phase = Phase::Lost;
                OfClaim::LosePrime
            }
            Decision::DropHold => {
                next.images[source].primes &= !(1 << p);
                OfClaim::LetImageGo
            }
            Decision::Delete => {
                next.volume_mut(id).folder = Folder::None;
                next.tidy_volume(id);
                OfClaim::DeleteMade
            }
            Decision::LetGo => {
                next.claims[p].prime = None;
                return Some((OfClaim::LetPrimeGo, next));
            }
            _ => return None,
        };
        next.claims[p].prime = Some(prime);
        Some((what, next))
    }

    /// The state after the storage did what it decided about a claim.
    pub(super) fn stored_claim(
        &self,
        state: &State,
        p: usize,
        decision: bind::Decision,
    ) -> Option<(OfClaim, State)> {
        use bind::Decision;
        let mut next = state.clone();
        let claim = &mut next.claims[p];
        let what = match decision {
            Decision::Bind { .. } => {
                claim.named = self.offered(state, p);
                claim.protected = true;
                OfClaim::Bind
            }
            Decision::ReportBound => {
                claim.phase = Phase::Bound;
                OfClaim::Report
            }
            Decision::ReportLost => {
                claim.phase = Phase::Lost;
                OfClaim::Lose
            }
            Decision::LetGo => {
                claim.protected = false;
                OfClaim::LetGo
            }
            _ => return None,
        };
        Some((what, next))
    }

    /// The state after the storage did what it decided about a volume.
    pub(super) fn stored_volume(
        &self,
        state: &State,
        id: VolumeId,
        decision: keep::Decision,
    ) -> Option<(OfClaim, State)> {
        use keep::{Decision, Phase};
        let mut next = state.clone();
        let volume = next.volume_mut(id);
        let what = match decision {
            Decision::Report(Phase::Released) => {
                volume.released = true;
                OfClaim::Release
            }
            Decision::Report(Phase::Bound) => {
                volume.released = false;
                OfClaim::Rebind
            }
            // A deed is not guarded by anything: it may come as late as it likes.
            Decision::Delete if state.reclaiming.is_none() => {
                next.reclaiming = Some(id);
                OfClaim::DecideToDelete
            }
            Decision::DeleteRecord => {
                volume.going = true;
                OfClaim::DeleteRecord
            }
            Decision::LetGo => {
                volume.record = false;
                next.tidy_volume(id);
                OfClaim::LetRecordGo
            }
            _ => return None,
        };
        Some((what, next))
    }

    /// The state after a volume was deleted on the disk.
    pub(super) fn reclaimed(&self, state: &State, id: VolumeId) -> State {
        let mut next = state.clone();
        next.reclaiming = None;
        next.volume_mut(id).folder = Folder::None;
        next.tidy_volume(id);
        next
    }
}
