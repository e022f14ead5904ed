//! Who does what to the objects: the user, the destination's controller, the populator.

use super::{
    COLLECT, CREATE_PVC, CREATE_RD, DELETE_OLD, Kind, Object, Oid, POP_CLAIM, POP_FINISH, POP_READ,
    POPULATOR_ACTIONS, Phase, Rule, SNAPSHOT, State, VolSyncPopulator,
};
use interlock_checker::{ActionId, Steps};

impl VolSyncPopulator {
    fn free<'a>(&self, state: &'a State) -> impl Iterator<Item = u8> + use<'a> {
        (0..self.ids as u8).filter(|id| state.used & (1 << id) == 0)
    }

    /// Snapshots may not eat up the ids that claims and their volumes will need.
    fn may_take_snapshot(&self, state: &State) -> bool {
        let claims = state.of_kind(Kind::Claim).count();
        let free = self.free(state).count();
        // `Cardinality(Free) > Reserve`, with what `Reserve` subtracts added on the other side.
        free + 2 * claims > 2 * self.claims + state.claims_not_bound()
    }

    pub(super) fn create(&self, state: &State, steps: &mut Steps<State>) {
        if state.of_kind(Kind::Destination).count() == 0 {
            for id in self.free(state) {
                let object = Object::Destination { latest_image: None };
                steps.step(CREATE_RD, state.with_new(id, object));
            }
        }
        if state.of_kind(Kind::Claim).count() < self.claims {
            for source in state.of_kind(Kind::Destination) {
                for id in self.free(state) {
                    let (phase, image, volume) = (Phase::Pending, None, None);
                    let object = Object::Claim { source, phase, image, volume };
                    steps.step(CREATE_PVC, state.with_new(id, object));
                }
            }
        }
    }

    pub(super) fn snapshots(&self, state: &State, steps: &mut Steps<State>) {
        if self.may_take_snapshot(state) {
            for owner in state.of_kind(Kind::Destination) {
                for id in self.free(state) {
                    let object = Object::Snapshot { owner, is_deleted: false, holders: 0 };
                    let latest = Object::Destination { latest_image: Some(id) };
                    steps.step(SNAPSHOT, state.with_new(id, object).with(owner, latest));
                }
            }
        }
        for id in state.of_kind(Kind::Snapshot) {
            let Object::Snapshot { owner, is_deleted, holders } = state.objects[usize::from(id)]
            else {
                continue;
            };
            if !is_deleted && (!state.is_latest(id) || !self.keeps(Rule::LatestStays)) {
                let marked = Object::Snapshot { owner, is_deleted: true, holders };
                let left = if self.keeps(Rule::DeletionIsAMark) { marked } else { Object::Absent };
                steps.step(DELETE_OLD, state.with(id, left));
            }
            if is_deleted && (holders == 0 || !self.keeps(Rule::HeldStays)) {
                steps.step(COLLECT, state.with(id, Object::Absent));
            }
        }
    }

    pub(super) fn populate(&self, state: &State, id: u8, steps: &mut Steps<State>) {
        let Object::Claim { source, phase, image, .. } = state.objects[usize::from(id)] else {
            return;
        };
        match (phase, state.choice[usize::from(id)]) {
            (Phase::Pending, None) => {
                let Object::Destination { latest_image: Some(latest) } =
                    state.objects[usize::from(source)]
                else {
                    return;
                };
                let mut next = state.clone();
                next.choice[usize::from(id)] = Some(latest);
                steps.step(self.populator(POP_READ, id), next);
            }
            (Phase::Pending, Some(chosen)) => {
                steps.step(self.populator(POP_CLAIM, id), self.hold(state, id, chosen));
            }
            (Phase::Populating, _) => self.finish(state, id, image, steps),
            (Phase::Bound, _) => {}
        }
    }

    /// The claim takes a hold on the image that it chose, or chooses again if that one is going.
    fn hold(&self, state: &State, id: u8, chosen: u8) -> State {
        let mut next = state.clone();
        let (
            Object::Snapshot { owner, is_deleted: false, holders },
            Object::Claim { source, volume, .. },
        ) = (state.objects[usize::from(chosen)], state.objects[usize::from(id)])
        else {
            next.choice[usize::from(id)] = None;
            return next;
        };
        let held = Object::Snapshot { owner, is_deleted: false, holders: holders | 1 << id };
        let is_filled_first = self.keeps(Rule::BoundMeansFilled);
        let phase = if is_filled_first { Phase::Populating } else { Phase::Bound };
        let claim = Object::Claim { source, phase, image: Some(chosen), volume };
        next.with(chosen, held).with(id, claim)
    }

    /// The image is in a new volume, the claim has it, and the hold ends.
    fn finish(&self, state: &State, id: u8, image: Oid, steps: &mut Steps<State>) {
        let Some(image) = image else { return };
        let (
            Object::Snapshot { owner, is_deleted, holders },
            Object::Claim { source, phase, volume, .. },
        ) = (state.objects[usize::from(image)], state.objects[usize::from(id)])
        else {
            return;
        };
        let holders = if self.keeps(Rule::HoldEnds) { holders & !(1 << id) } else { holders };
        let snapshot = Object::Snapshot { owner, is_deleted, holders };
        for new in self.free(state) {
            let (phase, volume) = if self.keeps(Rule::FinishIsRecorded) {
                (Phase::Bound, Some(new))
            } else {
                (phase, volume)
            };
            let next = state
                .with_new(new, Object::Volume { image: Some(image), claim: id })
                .with(id, Object::Claim { source, phase, image: Some(image), volume })
                .with(image, snapshot);
            steps.step(self.populator(POP_FINISH, id), next);
        }
    }

    /// The id of an action of the populator upon one claim.
    pub(super) fn populator(&self, first: ActionId, claim: u8) -> ActionId {
        first + POPULATOR_ACTIONS.len() as ActionId * ActionId::from(claim)
    }
}
