//! What each controller is told: the world as it can see it, in the words of its `decide`.
//!
//! A flaw tells it something wrong: what a careless `observe` would do.

use super::World;
use super::flaws::Flaw;
use super::state::{Cluster, Last, Mark, Phase, Pod, Process, Running, Seen, Stage, State, View};
use crate::{fencing, runtime, scheduler, syncer};
use interlock_api::placement as api;
use syncer::tenancy as sync;

impl From<Phase> for api::Phase {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Unassigned => api::Phase::Unassigned,
            Phase::Granted => api::Phase::Granted,
            Phase::Revoking => api::Phase::Revoking,
            Phase::Released => api::Phase::Released,
            Phase::Fenced => api::Phase::Fenced,
        }
    }
}

/// The notes of a permit, in the words of the rules.
fn permit(world: &World, running: Running) -> sync::Running {
    match running {
        Running { epoch: 0, .. } => sync::Running::Nothing,
        Running { epoch, lapsed: true } if !world.has(Flaw::BootIgnored) => {
            sync::Running::Lapsed(epoch.into())
        }
        Running { epoch, .. } => sync::Running::Permitted(epoch.into()),
    }
}

impl World {
    /// What the syncer of a cluster goes by before it takes a look at anything.
    pub(super) fn syncer_facts(&self, state: &State, c: usize) -> sync::Facts {
        let cluster = &state.clusters[c];
        let claims = match cluster.view {
            Some(view) if view.epoch != 0 => self.claims_seen(state, c, view),
            _ => Vec::new(),
        };
        let grant = cluster.view.map(|view| self.grant_seen(state, c, view, &claims));
        let is_mine = cluster.view.is_some_and(|view| view.seen != Seen::NotMine);
        let workload = match cluster.pod {
            _ if self.has(Flaw::NothingIsStopped) => sync::Workload::None,
            Pod::Absent => sync::Workload::None,
            Pod::Wanted => sync::Workload::Some,
            Pod::Leaving => sync::Workload::Stopping,
        };
        sync::Facts {
            grant,
            here: self.notes_seen(cluster),
            // A finalizer is put on and taken off without any other effect.
            has_finalizer: is_mine,
            workload,
            claims,
            is_marked_superseded: true,
            leftover: sync::Leftover::None,
            has_objects_to_apply: cluster.pod == Pod::Absent,
            stillness: None,
            truth: None,
        }
    }

    fn grant_seen(
        &self,
        state: &State,
        c: usize,
        view: View,
        claims: &[sync::Claim],
    ) -> sync::Grant {
        let (phase, owner) = match view.seen {
            Seen::NotMine if view.epoch == 0 => (Phase::Unassigned, sync::Party::Nobody),
            // Whose it is then, and how far they are, is nothing to this cluster.
            Seen::NotMine => (Phase::Granted, sync::Party::Other),
            Seen::Granted => (Phase::Granted, sync::Party::Me),
            Seen::Revoking => (Phase::Revoking, sync::Party::Me),
        };
        let target = match usize::from(state.target).checked_sub(1) {
            None => sync::Party::Nobody,
            Some(target) if target == c => sync::Party::Me,
            Some(_) => sync::Party::Other,
        };
        let copy = match state.clusters[c].mark {
            Mark::None => api::CopyState::Superseded,
            Mark::Unclosed => api::CopyState::Unclosed,
            Mark::Diverged => api::CopyState::Diverged,
        };
        sync::Grant {
            phase: phase.into(),
            owner,
            epoch: view.epoch.into(),
            target,
            is_deletion: false,
            is_filled: claims.iter().all(|claim| claim.is_filled),
            copy: Some(copy),
            is_settled: false,
        }
    }

    fn notes_seen(&self, cluster: &Cluster) -> sync::Here {
        if !cluster.has_namespace() {
            return sync::Here::Missing;
        }
        let seen = cluster.view.map(|view| view.seen);
        let blind = self.has(Flaw::ReleasedIgnored) && seen == Some(Seen::Granted);
        let withdrawn =
            self.has(Flaw::LooksBeforeWithdrawing) && seen != Some(Seen::Granted) || cluster.misled;
        sync::Here::Noted(sync::Notes {
            epoch: cluster.epoch.into(),
            released: if blind { 0 } else { cluster.released.into() },
            running: if withdrawn { sync::Running::Nothing } else { permit(self, cluster.running) },
            ran: (cluster.ran && !self.has(Flaw::RanIgnored)).into(),
        })
    }

    fn claims_seen(&self, state: &State, c: usize, view: View) -> Vec<sync::Claim> {
        let (cluster, tenure) = (&state.clusters[c], state.tenure(view.epoch));
        let mut listed = if state.all_listed { self.claims } else { 1 };
        if view.seen == Seen::Granted && self.has(Flaw::UnlistedClaimMade) {
            listed = self.claims;
        }
        if view.seen == Seen::Revoking && self.has(Flaw::FirstClaimOnly) {
            listed = 1;
        }
        let claim = |place: usize| {
            let volume = match cluster.stages[place] {
                _ if cluster.epoch != view.epoch => sync::Volume::Missing,
                Stage::Missing => sync::Volume::Missing,
                Stage::Filling if self.has(Flaw::FilledWhenItExists) => sync::Volume::Filled,
                Stage::Filling => sync::Volume::Filling,
                Stage::Filled => sync::Volume::Filled,
            };
            let is_held = view.epoch == state.epoch && state.held >> place & 1 == 1;
            let last = match tenure.last[place] {
                _ if is_held || self.has(Flaw::NoLastImage) => sync::LastImage::Held,
                // The tag before is to be confirmed first: it is not known which copy a confirmation is
                // of.
                Last::None if tenure.copying >> place & 1 == 1 && !self.has(Flaw::TagSetEarly) => {
                    sync::LastImage::Asked
                }
                Last::None => sync::LastImage::None,
                Last::Asked => sync::LastImage::Asked,
                Last::Made => sync::LastImage::Made,
            };
            sync::Claim { volume, is_filled: tenure.filled >> place & 1 == 1, last }
        };
        (0..usize::from(listed)).map(claim).collect()
    }

    /// What a fresh look at the hub shows to a cluster.
    pub(super) fn truth(&self, state: &State, c: usize) -> sync::Truth {
        let view = if self.has(Flaw::TruthFromCache) {
            state.clusters[c].view.unwrap_or_default()
        } else {
            state.seen_by(c)
        };
        let is_granted = view.seen == Seen::Granted && self.is_filled(state, view.epoch);
        let blind = self.has(Flaw::ForceIgnored) || self.has(Flaw::TruthFromCache);
        sync::Truth {
            granted: is_granted.then_some(view.epoch.into()),
            is_forced: self.has(Flaw::AlwaysForced) || !blind && state.is_forced(c, view.epoch),
        }
    }

    pub(super) fn is_filled(&self, state: &State, epoch: u8) -> bool {
        let listed = if state.all_listed { (1 << self.claims) - 1 } else { 1 };
        state.tenure(epoch).filled & listed == listed
    }

    /// What a fresh look at a cluster shows: pods, and whether the lock is free.
    pub(super) fn stillness(&self, cluster: &Cluster) -> sync::Stillness {
        let is_locked = match cluster.process {
            Process::None => false,
            // Whoever reads the permit first has no lock yet while it thinks about it.
            Process::Looked(_) => !self.has(Flaw::ReadsBeforeLocking),
            Process::Locked | Process::Runs(_) => true,
        };
        let is_locked = is_locked && !self.has(Flaw::LocksIgnored);
        let is_still = cluster.pod == Pod::Absent && !is_locked;
        if is_still || self.has(Flaw::StillnessAssumed) {
            sync::Stillness::Still
        } else {
            sync::Stillness::Astir
        }
    }

    /// What the runtime of a cluster goes by; its cache may still show a pod, and a permit, of old.
    pub(super) fn runtime_facts(
        &self,
        cluster: &Cluster,
        is_stale: bool,
    ) -> runtime::decide::Facts {
        use runtime::decide::{
            Asked, Description, Facts, Lock, Pod as Shown, Process as Shows, Report, Stray,
        };
        let lock = if cluster.process == Process::None { Lock::Free } else { Lock::Mine };
        let pod = match cluster.pod {
            Pod::Wanted => Shown::Wanted,
            _ if is_stale => Shown::Wanted,
            Pod::Absent if lock == Lock::Mine => return Facts::NoPod(Stray::Held),
            Pod::Absent => return Facts::NoPod(Stray::None),
            Pod::Leaving => Shown::Leaving,
        };
        let process = if cluster.runs() == 0 { Shows::None } else { Shows::Lives };
        let is_permitted = matches!(permit(self, cluster.running), sync::Running::Permitted(_));
        Facts::Asked(Asked {
            pod,
            has_finalizer: true,
            process,
            lock,
            is_permit_seen: is_stale || is_permitted,
            is_stray_lock_held: false,
            permit: None,
            description: Description::Complete,
            has_fields_without_effect: false,
            reported: Some(Report::Running),
            is_grace_over: true,
        })
    }

    /// What a fresh look at the notes shows to the runtime.
    pub(super) fn permit_now(&self, cluster: &Cluster) -> runtime::decide::Permit {
        let blind = self.has(Flaw::ReleasedIgnored) || self.has(Flaw::StartIgnoresReleased);
        runtime::decide::Permit {
            // People delete pods and make them again whenever they like, so that it was there just now
            // proves nothing, and no promise of this model rests on it.
            is_pod_there: true,
            running: permit(self, cluster.running),
            released: if blind { 0 } else { cluster.released.into() },
        }
    }

    /// What the scheduler goes by when a cluster is wished, and the owner is heard of or silent.
    pub(super) fn scheduler_facts(
        &self,
        state: &State,
        wish: usize,
        is_silent: bool,
    ) -> scheduler::decide::Facts {
        use scheduler::decide::{
            Cluster, Facts, Grant, Images, Misfit, Namespace, Owner, Said, Sight, Wish,
        };
        let phase = match state.phase() {
            Phase::Granted | Phase::Revoking if is_silent && self.has(Flaw::SilenceIsRelease) => {
                Phase::Released
            }
            Phase::Revoking if self.has(Flaw::GrantWithoutRelease) => Phase::Released,
            phase => phase,
        };
        let (_, in_place) = state.pins();
        let images = match state.owner() {
            Some(owner) if in_place != 0 && !self.has(Flaw::InPlaceIsAnywhere) => {
                Images::Only(owner)
            }
            _ => Images::Anywhere,
        };
        let is_unfit = |place: usize| {
            self.unfit && place + 1 == self.extent.clusters && !self.has(Flaw::FitIgnored)
        };
        let is_heard =
            |place: usize| !state.clusters[place].off && (!is_silent || !state.is_owned_by(place));
        let cluster = |place: usize| Cluster {
            misfit: is_unfit(place).then_some(Misfit::Unschedulable),
            is_reachable: is_heard(place),
            is_draining: false,
            grants: 0,
            // In this world no cluster goes.
            sight: Some(Sight::Stays),
            copies: Vec::new(),
        };
        let wish = match state.owner() {
            Some(owner) if self.has(Flaw::WishIgnored) => owner,
            _ => wish,
        };
        Facts {
            namespace: Namespace::Placed,
            has_finalizer: true,
            has_syncers: true,
            grant: Some(Grant {
                phase: phase.into(),
                owner: state.owner().map(Owner::Cluster),
                // Where the target is not kept, it is whatever the scheduler wrote just before.
                target: if self.keeps_target(state) {
                    usize::from(state.target).checked_sub(1)
                } else {
                    Some(wish)
                },
                images,
                because: None,
                pins: Vec::new(),
                is_written: state.epoch != 0 && state.tenure(state.epoch).filled != 0,
                has_copies: true,
                is_policy_current: true,
                said: Said::default(),
            }),
            truth: None,
            clusters: (0..self.extent.clusters).map(cluster).collect(),
            wish: Wish::On(wish),
            has_room_for_move: true,
            can_copy: true,
            claims: Vec::new(),
            is_ambiguous: false,
        }
    }

    /// A wish that may change at any time may have been anything just before; only while an owner is
    /// leaving does it matter what it was. For what must happen in the end it always does.
    pub(super) fn keeps_target(&self, state: &State) -> bool {
        self.faults.is_some() || state.phase() == Phase::Revoking
    }

    /// What fencing goes by for a ForceRelease that names an epoch and its owner, with a Grant in
    /// its cache that may be of old.
    pub(super) fn fencing_facts(
        &self,
        state: &State,
        named: u8,
        cached: Option<(u8, Phase)>,
        is_fresh: bool,
    ) -> fencing::decide::Facts {
        let grant = cached.map(|(epoch, phase)| fencing::decide::Grant {
            is_same: true,
            is_same_owner: epoch != 0 && state.tenure(epoch).owner == state.tenure(named).owner,
            phase: phase.into(),
            epoch: epoch.into(),
        });
        let any_epoch = self.has(Flaw::ForceForAnyEpoch);
        let epoch = grant.filter(|_| any_epoch).map_or(named.into(), |grant| grant.epoch);
        fencing::decide::Facts {
            outcome: api::ForceOutcome::Pending,
            epoch,
            grant,
            is_fresh: is_fresh || self.has(Flaw::RefusesFromCache),
            claims: Vec::new(),
        }
    }
}
