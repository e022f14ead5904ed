//! The steps: what the destination, the snapshot store, the storage, the populator and the user do.

use super::Volumes;
use super::state::{Claim, Destination, Phase, Prime, Snapshot, State, Volume, VolumeState};
use interlock_checker::{Action, ActionId, Steps};

const DELETE_RD: ActionId = 0;
pub(super) const RD_GONE: ActionId = 1;
const OF_IMAGES: ActionId = 2;

/// What happens to one image.
#[derive(Debug, Clone, Copy)]
pub(super) enum OfImage {
    Take,
    Ready,
    PublishNew,
    Delete,
    Collect,
    Reap,
    Vandal,
}

const ALL_OF_IMAGE: [OfImage; 7] = [
    OfImage::Take,
    OfImage::Ready,
    OfImage::PublishNew,
    OfImage::Delete,
    OfImage::Collect,
    OfImage::Reap,
    OfImage::Vandal,
];

/// What happens to one claim.
#[derive(Debug, Clone, Copy)]
pub(super) enum OfClaim {
    Create,
    Remove,
    Provision,
    Bind,
    HealPrime,
    HealHold,
    Retain,
    Rebind,
    DropPrime,
    Drop,
    Undo,
    Gone,
}

const ALL_OF_CLAIM: [OfClaim; 12] = [
    OfClaim::Create,
    OfClaim::Remove,
    OfClaim::Provision,
    OfClaim::Bind,
    OfClaim::HealPrime,
    OfClaim::HealHold,
    OfClaim::Retain,
    OfClaim::Rebind,
    OfClaim::DropPrime,
    OfClaim::Drop,
    OfClaim::Undo,
    OfClaim::Gone,
];

/// What the populator does for one claim, beside `Hold` and `Prime`.
const POPULATOR: [OfClaim; 8] = [
    OfClaim::HealPrime,
    OfClaim::HealHold,
    OfClaim::Retain,
    OfClaim::Rebind,
    OfClaim::DropPrime,
    OfClaim::Drop,
    OfClaim::Undo,
    OfClaim::Gone,
];

/// What happens to a claim and an image together.
#[derive(Debug, Clone, Copy)]
enum OfBoth {
    Hold,
    Prime,
}

impl Volumes {
    pub(super) fn of_image(&self, what: OfImage, image: u8) -> ActionId {
        OF_IMAGES + (what as usize * self.images) as ActionId + ActionId::from(image)
    }

    pub(super) fn of_claim(&self, what: OfClaim, claim: usize) -> ActionId {
        let first = self.of_image(OfImage::Vandal, self.images as u8);
        first + (what as usize * self.claims + claim) as ActionId
    }

    fn of_both(&self, what: OfBoth, claim: usize, image: u8) -> ActionId {
        let first = self.of_claim(OfClaim::Gone, self.claims);
        let row = what as usize * self.claims + claim;
        first + (row * self.images) as ActionId + ActionId::from(image)
    }

    /// `PopStep(p)`: all that the populator does for one claim.
    pub(super) fn populator_steps(&self, claim: usize) -> Vec<ActionId> {
        let mut actions: Vec<_> =
            POPULATOR.iter().map(|what| self.of_claim(*what, claim)).collect();
        for image in 0..self.images as u8 {
            actions.push(self.of_both(OfBoth::Hold, claim, image));
            actions.push(self.of_both(OfBoth::Prime, claim, image));
        }
        actions
    }

    pub(super) fn all_actions(&self) -> Vec<Action> {
        let mut actions = vec![
            Action::new("DeleteRD", "user").to("destination"),
            Action::new("RDGone", "destination"),
        ];
        for what in ALL_OF_IMAGE {
            let (actor, target) = match what {
                OfImage::Take | OfImage::Delete => ("destination", Some("snapshots")),
                OfImage::PublishNew => ("destination", None),
                OfImage::Ready | OfImage::Reap => ("snapshots", None),
                OfImage::Collect => ("garbage collector", Some("snapshots")),
                OfImage::Vandal => ("somebody", Some("snapshots")),
            };
            let name = |image: usize| format!("{what:?}(s{image})");
            actions.extend((1..=self.images).map(|image| lane(name(image), actor, target)));
        }
        for what in ALL_OF_CLAIM {
            for claim in (1..=self.claims).map(|claim| format!("p{claim}")) {
                let claim_lane = format!("claim {claim}");
                let (actor, target) = match what {
                    OfClaim::Create | OfClaim::Remove => ("user", claim_lane),
                    OfClaim::Provision => ("storage", claim_lane),
                    OfClaim::Bind => ("binder", claim_lane),
                    OfClaim::HealHold | OfClaim::Drop => ("populator", "snapshots".to_owned()),
                    OfClaim::HealPrime
                    | OfClaim::Retain
                    | OfClaim::Rebind
                    | OfClaim::DropPrime
                    | OfClaim::Undo
                    | OfClaim::Gone => ("populator", claim_lane),
                };
                actions.push(lane(format!("{what:?}({claim})"), actor, Some(&target)));
            }
        }
        for what in [OfBoth::Hold, OfBoth::Prime] {
            for claim in 1..=self.claims {
                for image in 1..=self.images {
                    let target = match what {
                        OfBoth::Hold => "snapshots".to_owned(),
                        OfBoth::Prime => format!("claim p{claim}"),
                    };
                    let name = format!("{what:?}(p{claim}, s{image})");
                    actions.push(lane(name, "populator", Some(&target)));
                }
            }
        }
        actions
    }

    pub(super) fn steps(&self, state: &State, steps: &mut Steps<State>) {
        let mut moves = Moves { model: self, state, steps };
        for image in 0..self.images as u8 {
            moves.take_and_publish(image);
            moves.delete(image);
        }
        moves.end_destination();
        for p in 0..self.claims {
            moves.user_and_storage(p);
            for image in 0..self.images as u8 {
                moves.hold(p, image);
                moves.prime(p, image);
            }
            moves.heal(p);
            moves.hand_over(p);
            moves.drop_prime(p);
            moves.finish(p);
        }
    }
}

fn lane(name: String, actor: &str, target: Option<&str>) -> Action {
    let action = Action::new(name, actor);
    match target {
        Some(target) => action.to(target),
        None => action,
    }
}

/// The steps out of one state, as they are found.
struct Moves<'a> {
    model: &'a Volumes,
    state: &'a State,
    steps: &'a mut Steps<State>,
}

impl Moves<'_> {
    fn step(&mut self, action: ActionId, change: impl FnOnce(&mut State)) {
        let mut next = self.state.clone();
        change(&mut next);
        self.steps.step(action, next);
    }

    fn image_becomes(&mut self, what: OfImage, image: u8, snapshot: Snapshot) {
        self.step(self.model.of_image(what, image), |next| {
            next.snapshots[usize::from(image)] = snapshot;
        });
    }

    fn claim_changes(&mut self, what: OfClaim, p: usize, change: impl FnOnce(&mut Claim)) {
        self.step(self.model.of_claim(what, p), |next| change(&mut next.claims[p]));
    }

    fn is_unusable(&self, image: u8) -> bool {
        match self.state.snapshot(image) {
            Snapshot::None => true,
            Snapshot::Dying => self.model.rules.csi,
            Snapshot::New | Snapshot::Ready => false,
        }
    }

    /// What becomes of an image that is deleted: a hold on it keeps it a while.
    fn deleted(&self, image: u8) -> Snapshot {
        let is_kept = self.state.is_held(image) && self.model.rules.hold_stops_gc;
        if is_kept { Snapshot::Dying } else { Snapshot::None }
    }

    fn held_images(&self, p: usize) -> impl Iterator<Item = u8> + use<> {
        let holds = self.state.claims[p].holds;
        (0..self.model.images as u8).filter(move |image| holds >> image & 1 == 1)
    }

    fn take_and_publish(&mut self, image: u8) {
        let snapshot = self.state.snapshot(image);
        let is_live = self.state.destination == Destination::Live;
        let is_new = self.state.taken >> image & 1 == 0;
        if is_live && is_new && !self.state.snapshots.contains(&Snapshot::New) {
            self.step(self.model.of_image(OfImage::Take, image), |next| {
                next.taken |= 1 << image;
                next.snapshots[usize::from(image)] = Snapshot::New;
            });
        }
        if snapshot == Snapshot::New {
            self.image_becomes(OfImage::Ready, image, Snapshot::Ready);
        }
        let publishes = match snapshot {
            Snapshot::Ready => true,
            Snapshot::New => !self.model.rules.wait_ready,
            Snapshot::None | Snapshot::Dying => false,
        };
        if is_live && publishes && self.state.latest != Some(image) {
            let publish = self.model.of_image(OfImage::PublishNew, image);
            self.step(publish, |next| next.latest = Some(image));
        }
    }

    fn delete(&mut self, image: u8) {
        let (rules, snapshot) = (&self.model.rules, self.state.snapshot(image));
        let is_latest = self.state.latest == Some(image);
        if snapshot == Snapshot::Ready
            && !(rules.keep_li && is_latest)
            && self.state.latest.is_some()
            && !(rules.hold_honoured && self.state.is_held(image))
        {
            self.image_becomes(OfImage::Delete, image, self.deleted(image));
        }
        let exists = matches!(snapshot, Snapshot::New | Snapshot::Ready);
        if self.state.destination == Destination::Gone && exists {
            self.image_becomes(OfImage::Collect, image, self.deleted(image));
        }
        if snapshot == Snapshot::Dying && !self.state.is_held(image) {
            self.image_becomes(OfImage::Reap, image, Snapshot::None);
        }
        let vandals_left = self.state.vandalised < self.model.vandals;
        let is_spared = !self.model.spares_none && (is_latest || snapshot == Snapshot::New);
        if vandals_left && exists && !is_spared {
            let deleted = self.deleted(image);
            self.step(self.model.of_image(OfImage::Vandal, image), |next| {
                next.vandalised += 1;
                next.snapshots[usize::from(image)] = deleted;
            });
        }
    }

    fn end_destination(&mut self) {
        if self.state.destination == Destination::Live {
            self.step(DELETE_RD, |next| next.destination = Destination::Deleting);
        }
        let is_free = self.state.claims.iter().all(|claim| claim.holds == 0);
        if self.state.destination == Destination::Deleting
            && (is_free || !self.model.rules.rd_final)
        {
            self.step(RD_GONE, |next| {
                next.destination = Destination::Gone;
                next.latest = None;
            });
        }
    }

    fn user_and_storage(&mut self, p: usize) {
        let claim = self.state.claims[p];
        if claim.phase == Phase::None {
            self.claim_changes(OfClaim::Create, p, |claim| claim.phase = Phase::Pending);
        }
        if claim.phase == Phase::Pending {
            self.claim_changes(OfClaim::Remove, p, |claim| claim.phase = Phase::Deleting);
        }
        if let Prime::Pending(image) = claim.prime
            && !self.is_unusable(image)
        {
            // Of a snapshot that is not ready, storage makes an empty volume and says nothing.
            let is_ready = self.state.snapshot(image) != Snapshot::New;
            let data = is_ready.then_some(image);
            self.claim_changes(OfClaim::Provision, p, |claim| {
                claim.prime = Prime::Bound(image);
                claim.volume = Volume { place: VolumeState::Prime, data, keep: false };
            });
        }
        if claim.phase == Phase::Pending && claim.volume.place == VolumeState::Claim {
            self.claim_changes(OfClaim::Bind, p, |claim| {
                claim.volume.place = VolumeState::Bound;
                claim.phase = Phase::Bound;
            });
        }
    }

    fn has_nothing_yet(&self, p: usize) -> bool {
        let claim = &self.state.claims[p];
        claim.phase == Phase::Pending
            && claim.prime == Prime::None
            && claim.volume.place == VolumeState::None
    }

    /// Any image that is ready will do: the populator may have read an old latest one.
    fn hold(&mut self, p: usize, image: u8) {
        let state = self.state;
        let is_ready = match state.snapshot(image) {
            Snapshot::Ready => true,
            Snapshot::New => !self.model.rules.check_ready,
            Snapshot::None | Snapshot::Dying => false,
        };
        if self.has_nothing_yet(p)
            && state.taken >> image & 1 == 1
            && state.claims[p].holds == 0
            && state.destination == Destination::Live
            && state.latest.is_some()
            && is_ready
        {
            let hold = self.model.of_both(OfBoth::Hold, p, image);
            self.step(hold, |next| next.claims[p].holds |= 1 << image);
        }
    }

    fn prime(&mut self, p: usize, image: u8) {
        let (rules, state) = (&self.model.rules, self.state);
        let may_use = if rules.hold_first {
            state.claims[p].holds >> image & 1 == 1 && !(rules.heal && self.is_unusable(image))
        } else {
            state.taken >> image & 1 == 1 && state.latest.is_some()
        };
        if !self.has_nothing_yet(p) || !may_use {
            return;
        }
        let holds_late = !rules.hold_first && state.snapshot(image) != Snapshot::None;
        self.step(self.model.of_both(OfBoth::Prime, p, image), |next| {
            next.claims[p].prime = Prime::Pending(image);
            if holds_late {
                next.claims[p].holds |= 1 << image;
            }
        });
    }

    fn heal(&mut self, p: usize) {
        if !self.model.rules.heal {
            return;
        }
        let claim = self.state.claims[p];
        if let Prime::Pending(image) = claim.prime
            && self.is_unusable(image)
        {
            self.claim_changes(OfClaim::HealPrime, p, |claim| claim.prime = Prime::None);
        }
        if claim.prime == Prime::None && claim.phase == Phase::Pending {
            for image in self.held_images(p) {
                if self.is_unusable(image) {
                    self.claim_changes(OfClaim::HealHold, p, |claim| claim.holds &= !(1 << image));
                }
            }
        }
    }

    fn hand_over(&mut self, p: usize) {
        let claim = self.state.claims[p];
        if claim.phase != Phase::Pending || claim.volume.place != VolumeState::Prime {
            return;
        }
        let retain_first = self.model.rules.retain_first;
        if retain_first && !claim.volume.keep {
            self.claim_changes(OfClaim::Retain, p, |claim| claim.volume.keep = true);
        }
        if claim.volume.keep || !retain_first {
            self.claim_changes(OfClaim::Rebind, p, |claim| claim.volume.place = VolumeState::Claim);
        }
    }

    fn drop_prime(&mut self, p: usize) {
        let (rules, claim) = (&self.model.rules, self.state.claims[p]);
        let has_volume = matches!(
            claim.volume.place,
            VolumeState::Prime | VolumeState::Claim | VolumeState::Bound
        );
        let may_go = match claim.phase {
            Phase::Bound if rules.wait_bound => true,
            Phase::Pending | Phase::Bound if !rules.wait_bound => {
                has_volume && (claim.volume.keep || !rules.retain_first)
            }
            Phase::None | Phase::Pending | Phase::Bound | Phase::Deleting | Phase::Gone => false,
        };
        if !may_go || !matches!(claim.prime, Prime::Bound(_)) {
            return;
        }
        self.claim_changes(OfClaim::DropPrime, p, |claim| {
            claim.prime = Prime::None;
            if !claim.volume.keep && claim.volume.place != VolumeState::Bound {
                claim.volume = Volume { place: VolumeState::Lost, ..Volume::default() };
            } else if claim.volume.place == VolumeState::Prime {
                claim.volume.place = VolumeState::Lost;
            }
        });
    }

    fn finish(&mut self, p: usize) {
        let (rules, claim) = (&self.model.rules, self.state.claims[p]);
        let has_prime = claim.prime != Prime::None;
        let is_deleting = claim.phase == Phase::Deleting;
        if is_deleting && has_prime {
            self.claim_changes(OfClaim::Undo, p, |claim| {
                claim.prime = Prime::None;
                claim.volume = Volume::default();
            });
        }
        if has_prime {
            return;
        }
        if claim.phase == Phase::Bound || is_deleting && rules.drop_on_delete {
            for image in self.held_images(p) {
                self.claim_changes(OfClaim::Drop, p, |claim| claim.holds &= !(1 << image));
            }
        }
        if is_deleting && (claim.holds == 0 || !rules.drop_on_delete) {
            self.claim_changes(OfClaim::Gone, p, |claim| claim.phase = Phase::Gone);
        }
    }
}
