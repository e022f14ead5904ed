//! What each decision does to the world: the one write that the real controller would make.

use super::World;
use super::actions::At;
use super::flaws::Flaw;
use super::state::{
    Cluster, Ending, Last, MOST_CLAIMS, Mark, Phase, Pod, Process, Running, Stage, State, bit,
};
use crate::spec::hub::Writes;
use crate::{fencing, scheduler, syncer};
use interlock_api::placement::CopyState;
use syncer::tenancy::{Decision, Epoch};

fn small(epoch: Epoch) -> u8 {
    u8::try_from(epoch).expect("the epochs of a model are few")
}

impl Cluster {
    /// Every write to the notes makes a write fail that was to be guarded by how they were before.
    pub(super) fn write_notes(&mut self, world: &World, change: impl FnOnce(&mut Cluster)) {
        change(self);
        self.misled = false;
        if !world.has(Flaw::PermitUnguarded) {
            self.permitting = false;
        }
        if !world.has(Flaw::CloseUnguarded) {
            self.closing = 0;
        }
    }
}

impl World {
    /// The writes that go to a claim.
    ///
    /// The first write goes to the last claim, so that one write is enough to lose it.
    pub(super) fn writes_of(&self, claim: usize) -> Writes {
        let is_of = |write: &u8| self.claim_of(*write) == claim;
        (0..self.extent.writes).filter(is_of).fold(0, |writes, write| writes | 1 << write)
    }

    pub(super) fn claim_of(&self, write: u8) -> usize {
        usize::from(self.claims - 1 - write % self.claims)
    }

    /// Takes from each claim the writes that `of` gives for it.
    fn gathered(&self, of: impl Fn(usize) -> Writes) -> Writes {
        let claims = 0..usize::from(self.claims);
        claims.fold(0, |writes, claim| writes | self.writes_of(claim) & of(claim))
    }

    /// The state after the syncer of a cluster did what it decided, and what that step is called.
    pub(super) fn synced(
        &self,
        state: &State,
        c: usize,
        decision: Decision,
    ) -> Option<(At, State)> {
        // A write to the Grant wins only if nobody wrote to it since it was seen.
        let is_current =
            state.clusters[c].view == Some(state.seen_by(c)) || self.has(Flaw::HubUnguarded);
        let mut next = state.clone();
        let at = match decision {
            Decision::KeepInPlace(claim) if is_current => {
                self.keep(&mut next, c, claim);
                At::KeepInPlace
            }
            Decision::HoldLastImage(claim) if is_current => {
                next.held |= 1 << claim;
                At::HoldLastImage
            }
            Decision::Acknowledge if is_current => {
                self.release(&mut next);
                At::Acknowledge
            }
            Decision::SettleCopy(copy) if is_current => {
                let is_diverged = copy == CopyState::Diverged;
                let cluster = &mut next.clusters[c];
                cluster.mark = if is_diverged { Mark::Diverged } else { Mark::None };
                cluster.lost &= is_diverged;
                At::SettleCopy
            }
            Decision::ReportFilled if is_current => {
                let listed = if next.all_listed { (1 << self.claims) - 1 } else { 1 };
                let all = self.has(Flaw::UnlistedClaimMade);
                let filled = if all { (1 << self.claims) - 1 } else { listed };
                next.tenure_mut(state.epoch).filled = filled;
                At::ReportFilled
            }
            Decision::AskLastImage(claim) => {
                let epoch = state.clusters[c].view?.epoch;
                next.tenure_mut(epoch).last[claim] = Last::Asked;
                At::AskLastImage
            }
            _ => self.synced_here(&mut next, c, decision)?,
        };
        (next != *state).then_some((at, next))
    }

    /// The decisions whose write is to the cluster itself.
    fn synced_here(&self, next: &mut State, c: usize, decision: Decision) -> Option<At> {
        let view = next.clusters[c].view?;
        let in_place = if view.epoch == 0 { 0 } else { next.incoming(view.epoch).1 };
        let cluster = &mut next.clusters[c];
        Some(match decision {
            Decision::Withdraw => {
                cluster.write_notes(self, |here| here.running = Running::default());
                At::Withdraw
            }
            Decision::StopOne => {
                cluster.pod = Pod::Leaving;
                At::StopOne
            }
            // The look that it follows was taken already; the write comes by itself.
            Decision::Close(epoch) => {
                cluster.closing = small(epoch);
                At::LookWhetherStill
            }
            Decision::CreateClosed(epoch) => {
                cluster.write_notes(self, |here| {
                    here.epoch = small(epoch);
                    here.released = small(epoch);
                });
                At::CreateClosed
            }
            Decision::CreateHere(epoch) | Decision::NoteEpoch(epoch) => {
                let is_new = !cluster.has_namespace();
                cluster.write_notes(self, |here| {
                    here.epoch = small(epoch);
                    here.stages = [Stage::Missing; MOST_CLAIMS];
                });
                if is_new { At::CreateHere } else { At::NoteEpoch }
            }
            Decision::CreateClaim(claim) => {
                cluster.stages[claim] = Stage::Filling;
                if in_place >> claim & 1 == 0 {
                    cluster.volume &= !self.writes_of(claim);
                }
                At::CreateClaim
            }
            Decision::Permit(_) => {
                cluster.permitting = true;
                At::LookWhetherGranted
            }
            Decision::ApplyOne => {
                cluster.pod = Pod::Wanted;
                At::ApplyOne
            }
            _ => return None,
        })
    }

    /// The volume itself is the last image of a claim; one that is being made is not waited for.
    fn keep(&self, next: &mut State, c: usize, claim: usize) {
        let (of_claim, volume) = (self.writes_of(claim), next.clusters[c].volume);
        next.held |= 1 << claim;
        next.kept |= 1 << claim;
        let tenure = next.tenure_mut(next.epoch);
        tenure.image = tenure.image & !of_claim | volume & of_claim;
        tenure.made |= 1 << claim;
        tenure.last[claim] = Last::Made;
        tenure.copying &= !(1 << claim);
        tenure.copied &= !of_claim;
    }

    /// The acknowledgement: stopped, and here are all images.
    fn release(&self, next: &mut State) {
        let epoch = next.epoch;
        let (incoming, was_in_place) = next.incoming(epoch);
        let kept = next.kept;
        let tenure = next.tenure_mut(epoch);
        let pin = self.gathered(|claim| {
            let is_written = tenure.filled >> claim & 1 == 1;
            let is_named = is_written && !self.has(Flaw::PinsNotWritten);
            if is_named { tenure.image } else { incoming }
        });
        tenure.ending = Ending::Released;
        tenure.pin = pin;
        tenure.in_place = kept | was_in_place & !tenure.filled;
        self.let_go(next);
        if self.has(Flaw::LossKeptQuiet) {
            next.must = pin;
        }
    }

    /// The owner is declared gone, and the last complete images are what is left.
    pub(super) fn fenced(&self, state: &State) -> State {
        let mut next = state.clone();
        let epoch = next.epoch;
        let (incoming, was_in_place) = next.incoming(epoch);
        let owner = usize::from(next.tenure(epoch).owner);
        let kept = next.kept;
        let tenure = next.tenure_mut(epoch);
        let pin = self
            .gathered(|claim| if tenure.made >> claim & 1 == 1 { tenure.image } else { incoming });
        tenure.ending = Ending::Fenced;
        tenure.pin = pin;
        tenure.in_place = kept | was_in_place & !tenure.made;
        let is_filled = tenure.filled != 0;
        next.must = pin;
        let cluster = &mut next.clusters[owner];
        cluster.lost |= is_filled && cluster.volume & !pin != 0;
        cluster.mark = Mark::Unclosed;
        self.let_go(&mut next);
        next
    }

    /// What the Grant says of images and targets goes with the epoch.
    fn let_go(&self, next: &mut State) {
        next.held = 0;
        next.kept = 0;
        if !self.keeps_target(next) {
            next.target = 0;
        }
    }

    /// A syncer writes the permit that it looked for.
    pub(super) fn permitted(&self, cluster: &mut Cluster) {
        cluster.permitting = false;
        cluster.write_notes(self, |here| {
            here.running = Running { epoch: here.epoch, lapsed: false };
            here.ran = true;
        });
    }

    /// A syncer closes the epoch that it saw to be still.
    pub(super) fn closed(&self, cluster: &mut Cluster) {
        let epoch = cluster.closing;
        cluster.closing = 0;
        cluster.write_notes(self, |here| here.released = here.released.max(epoch));
    }

    /// What the scheduler's decision makes of the Grant.
    pub(super) fn scheduled(
        &self,
        state: &State,
        wish: usize,
        decision: &scheduler::decide::Decision,
    ) -> Option<(At, usize, State)> {
        use scheduler::decide::Decision;
        let mut next = state.clone();
        let (at, cluster) = match decision {
            &Decision::Target(target) => {
                next.target = target as u8 + 1;
                (At::Target, target)
            }
            Decision::Grant(giving) => {
                let owner = giving.to;
                let is_reused = state.epoch != 0 && self.has(Flaw::EpochNotGrown);
                if !is_reused && state.epoch == self.extent.epochs {
                    return None;
                }
                next.epoch += u8::from(!is_reused);
                let tenure = next.tenure_mut(next.epoch);
                *tenure = Default::default();
                tenure.owner = owner as u8;
                self.let_go(&mut next);
                (At::Grant, owner)
            }
            Decision::Revoke(_) => {
                next.tenure_mut(state.epoch).revoked = true;
                next.target = wish as u8 + 1;
                (At::Revoke, usize::from(state.tenure(state.epoch).owner))
            }
            _ => return None,
        };
        (next != *state).then_some((at, cluster, next))
    }

    /// What becomes of a ForceRelease, or of the Grant that it names.
    pub(super) fn judged(
        &self,
        state: &State,
        named: u8,
        cached: Option<(u8, Phase)>,
        decision: fencing::decide::Decision,
    ) -> Option<(bool, State)> {
        use fencing::decide::Decision;
        let is_current = cached == Some((state.epoch, state.phase()));
        match decision {
            Decision::Fence(_) if is_current => Some((true, self.fenced(state))),
            // Nothing rests on the answer but that there is one.
            Decision::MarkApplied | Decision::Refuse(_) if self.faults.is_none() => None,
            Decision::MarkApplied if self.has(Flaw::NeverAnswers) => None,
            Decision::MarkApplied | Decision::Refuse(_) => {
                let mut next = state.clone();
                next.answered |= bit(named);
                Some((false, next))
            }
            Decision::Fence(_) | Decision::Look | Decision::Nothing => None,
        }
    }

    /// What a syncer does that takes absence from its cache for the end of the Grant.
    pub(super) fn deleted(&self, cluster: &mut Cluster) {
        if cluster.process != Process::None {
            cluster.pod = Pod::Leaving;
            return;
        }
        *cluster = Cluster { off: cluster.off, mark: cluster.mark, ..Cluster::default() };
    }
}
