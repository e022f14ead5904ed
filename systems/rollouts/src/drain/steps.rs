//! The steps of a drain.

use super::RolloutsDrain;
use super::state::{Cluster, Empty, Look, Phase, Place, Space, Stage, State};
use interlock_checker::{ActionId, Steps};

#[derive(Clone, Copy, PartialEq)]
pub(super) enum OfSpace {
    Revoke,
    Release,
    Look,
    Grant,
    Target,
    LookAny,
    Untarget,
}

pub(super) const OF_SPACE: [(OfSpace, &str); 7] = [
    (OfSpace::Revoke, "Revoke"),
    (OfSpace::Release, "Release"),
    (OfSpace::Look, "Look"),
    (OfSpace::Grant, "Grant"),
    (OfSpace::Target, "Target"),
    (OfSpace::LookAny, "LookAny"),
    (OfSpace::Untarget, "Untarget"),
];

#[derive(Clone, Copy, PartialEq)]
pub(super) enum OfCluster {
    LookEmpty,
    SayDrained,
    Unsay,
    Submit,
    AddDrain,
    Start,
    End,
    StartDeadline,
    RemoveDrain,
}

pub(super) const OF_CLUSTER: [(OfCluster, &str); 9] = [
    (OfCluster::LookEmpty, "LookEmpty"),
    (OfCluster::SayDrained, "SayDrained"),
    (OfCluster::Unsay, "Unsay"),
    (OfCluster::Submit, "Submit"),
    (OfCluster::AddDrain, "AddDrain"),
    (OfCluster::Start, "Start"),
    (OfCluster::End, "End"),
    (OfCluster::StartDeadline, "StartDeadline"),
    (OfCluster::RemoveDrain, "RemoveDrain"),
];

impl State {
    fn drains(&self, place: Place) -> bool {
        place.is_some_and(|c| self.clusters[usize::from(c)].drains != 0)
    }
}

/// The Grant has changed: a write on the version that was seen before fails.
fn touch(space: &mut Space) {
    space.look.is_fresh = false;
}

impl RolloutsDrain {
    pub(super) fn of_space(&self, kind: OfSpace, n: usize) -> ActionId {
        kind as u16 * self.spaces as u16 + n as u16
    }

    pub(super) fn of_cluster(&self, kind: OfCluster, c: usize) -> ActionId {
        let first = (OF_SPACE.len() * self.spaces) as u16;
        first + kind as u16 * self.clusters as u16 + c as u16
    }

    /// A Grant is revoked, released and granted.
    pub(super) fn grant_steps(&self, state: &State, n: usize, steps: &mut Steps<State>) {
        let space = &state.spaces[n];
        let mut step = |kind: OfSpace, flaps: u8, space: Space| {
            let mut next = state.clone();
            next.flaps += flaps;
            next.spaces[n] = space;
            steps.step(self.of_space(kind, n), next);
        };
        match space.phase {
            Phase::Granted if space.target != Some(space.owner) => {
                let mut next = Space { phase: Phase::Revoking, ..*space };
                touch(&mut next);
                step(OfSpace::Revoke, 0, next);
            }
            Phase::Granted => {}
            Phase::Revoking => {
                let mut next = Space { phase: Phase::Released, pin: None, ..*space };
                touch(&mut next);
                step(OfSpace::Release, 0, next);
                // The target had come back to the owner, so the volumes stay in place.
                if state.flaps < self.flaps {
                    let owner = Some(space.owner);
                    step(OfSpace::Release, 1, Space { pin: owner, target: owner, ..next });
                }
            }
            Phase::Released => {
                if let (Some(owner), true) = (space.look.cluster, space.look.is_fresh) {
                    let look = Look::default();
                    let phase = Phase::Granted;
                    step(OfSpace::Grant, 0, Space { phase, owner, pin: None, look, ..*space });
                }
            }
        }
    }

    /// The target moves away from a cluster that drains; or, on an old cache, to any cluster.
    pub(super) fn target_steps(&self, state: &State, n: usize, steps: &mut Steps<State>) {
        let space = &state.spaces[n];
        let to = |target: Place| {
            let mut next = state.clone();
            next.spaces[n].target = target;
            touch(&mut next.spaces[n]);
            next
        };
        for c in (0..self.clusters as u8).filter(|c| space.target != Some(*c)) {
            if space.phase == Phase::Revoking {
                break;
            }
            if !state.drains(Some(c)) && state.drains(space.target) {
                steps.step(self.of_space(OfSpace::Target, n), to(Some(c)));
            }
            if state.flaps < self.flaps {
                let next = State { flaps: state.flaps + 1, ..to(Some(c)) };
                steps.step(self.of_space(OfSpace::Target, n), next);
            }
        }
        let is_free = space.phase == Phase::Released && space.pin.is_none();
        if !self.rules.target_first && is_free && space.target.is_some() {
            steps.step(self.of_space(OfSpace::Untarget, n), to(None));
        }
    }

    /// A live read of the cluster that the namespace is about to be granted to. Data that was left in place goes back
    /// to its cluster, to be fetched from there, drained or not.
    pub(super) fn look_steps(&self, state: &State, n: usize, steps: &mut Steps<State>) {
        let space = &state.spaces[n];
        if space.phase != Phase::Released {
            return;
        }
        let mut look = |kind: OfSpace, cluster: Place| {
            let look = Look { cluster, is_fresh: true };
            if space.look != look {
                let mut next = state.clone();
                next.spaces[n].look = look;
                steps.step(self.of_space(kind, n), next);
            }
        };
        let place = space.pin.or(space.target);
        let is_fetched = space.pin == place && space.target != place;
        // TLC counts each reason.
        let reasons = match self.rules.sees_drains {
            true => [!state.drains(place), is_fetched],
            false => [true, false],
        };
        for _ in reasons.iter().filter(|reason| **reason) {
            look(OfSpace::Look, place);
        }
        if !self.rules.target_first && space.pin.is_none() {
            for c in (0..self.clusters as u8).filter(|c| !state.drains(Some(*c))) {
                look(OfSpace::LookAny, Some(c));
            }
        }
    }

    fn is_empty(&self, state: &State, c: usize) -> bool {
        let place = Some(c as u8);
        state.spaces[..self.spaces].iter().all(|space| {
            !space.is_held_by(c)
                && space.target != place
                && (!self.rules.counts_in_place || space.pin != place)
        })
    }

    /// The clusters controller: a live list of Grants, then one guarded write.
    pub(super) fn drained_steps(&self, state: &State, c: usize, steps: &mut Steps<State>) {
        let cluster = &state.clusters[c];
        let Cluster { drains, drained, empty, .. } = *cluster;
        let mut step = |kind: OfCluster, cluster: Cluster| {
            let mut next = state.clone();
            next.clusters[c] = cluster;
            steps.step(self.of_cluster(kind, c), next);
        };
        let is_due = drains & !drained != 0 && !empty.is_fresh;
        if is_due && (!self.rules.live_list || self.is_empty(state, c)) {
            let empty = Empty { drains, is_fresh: true };
            step(OfCluster::LookEmpty, Cluster { empty, ..*cluster });
        }
        if empty.is_fresh {
            let next = Cluster { drained: empty.drains, empty: Empty::default(), ..*cluster };
            step(OfCluster::SayDrained, next);
        }
        if drained & !drains != 0 {
            let empty = Empty { is_fresh: false, ..empty };
            step(OfCluster::Unsay, Cluster { drained: drained & drains, empty, ..*cluster });
        }
    }

    fn is_busy(&self, cluster: &Cluster) -> bool {
        cluster.is_at_work() || self.rules.counts_drained && cluster.drains != 0
    }

    /// The fleet controller makes a request, and the conductor of its cluster sees it to its end.
    pub(super) fn conductor_steps(&self, state: &State, c: usize, steps: &mut Steps<State>) {
        let cluster = &state.clusters[c];
        let Cluster { drains, drained, request, stage, .. } = *cluster;
        let own = cluster.own_drain();
        let mut step = |kind: OfCluster, cluster: Cluster| {
            let mut next = state.clone();
            next.clusters[c] = cluster;
            steps.step(self.of_cluster(kind, c), next);
        };
        let outdated = Empty { is_fresh: false, ..cluster.empty };
        match stage {
            Stage::None | Stage::Ended => {
                let clusters = &state.clusters[..self.clusters];
                let busy = clusters.iter().filter(|cluster| self.is_busy(cluster)).count();
                if request < self.requests && busy < self.unavailable {
                    let request = request + 1;
                    step(OfCluster::Submit, Cluster { request, stage: Stage::Queued, ..*cluster });
                }
            }
            Stage::Queued => {
                if drains & own == 0 {
                    let drains = drains | own;
                    step(OfCluster::AddDrain, Cluster { drains, empty: outdated, ..*cluster });
                }
                let counts = if self.rules.names_drain { own } else { u8::MAX };
                if drains & own != 0 && drained & counts != 0 {
                    step(OfCluster::Start, Cluster { stage: Stage::Updating, ..*cluster });
                }
                if self.rules.deadline {
                    step(OfCluster::StartDeadline, Cluster { stage: Stage::Ended, ..*cluster });
                }
            }
            Stage::Updating => step(OfCluster::End, Cluster { stage: Stage::Ended, ..*cluster }),
        }
        for bit in (0..self.requests).map(|d| 1 << d).filter(|bit| drains & bit != 0) {
            // TLC counts each reason.
            let reasons = [stage == Stage::Ended, bit != own];
            for _ in reasons.iter().filter(|reason| **reason && self.rules.ends_drain) {
                let drains = drains & !bit;
                step(OfCluster::RemoveDrain, Cluster { drains, empty: outdated, ..*cluster });
            }
        }
    }
}
