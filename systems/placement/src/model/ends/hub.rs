//! The controllers at the hub: what each is told, and what its decision does.

use super::World;
use super::actions::Deed;
use super::flaws::Flaw;
use super::state::{Copies, Grant, Label, Labels, Life, MOST_CLUSTERS, State, bit};
use crate::{claims, clusters, departed, fencing, scheduler};
use clusters::decide as retire;
use interlock_api::placement::{CopyState, ForceOutcome, Phase, RevokedBecause};
use scheduler::decide as schedule;

impl World {
    /// The clusters that are at the hub, in the order in which a decision names them.
    fn known(&self, state: &State) -> Vec<usize> {
        let is_known = |c: &usize| {
            let registered = &state.registered[*c];
            registered.is_unheard || matches!(registered.life, Life::There | Life::Deleting)
        };
        (0..self.clusters).filter(is_known).collect()
    }

    fn standing(&self, state: &State, place: usize) -> schedule::Namespace {
        let namespace = &state.namespace;
        let is_other = usize::from(namespace.place) != place && !self.has(Flaw::NamespaceByName);
        match namespace.life {
            Life::NotYet | Life::Gone => schedule::Namespace::Unknown,
            Life::There | Life::Deleting if is_other => schedule::Namespace::Gone,
            Life::There => schedule::Namespace::Placed,
            Life::Deleting => schedule::Namespace::Deleting,
        }
    }

    /// What the scheduler goes by when a cluster is wished; its cache may not have the grant yet.
    fn scheduler_facts(
        &self,
        state: &State,
        place: usize,
        (wish, is_cached): (Option<usize>, bool),
    ) -> schedule::Facts {
        let known = self.known(state);
        let place_of = |c: usize| known.iter().position(|known| *known == c);
        let grant = &state.grants[place];
        let wish = wish.and_then(place_of);
        let owner = match place_of(grant.owner.into()) {
            _ if grant.epoch == 0 => None,
            Some(owner) => Some(schedule::Owner::Cluster(owner)),
            // Whoever goes by names finds another cluster of that name.
            None if self.has(Flaw::ClusterByName) && !known.is_empty() => {
                Some(schedule::Owner::Cluster(0))
            }
            None => Some(schedule::Owner::Replaced),
        };
        let cluster = |c: &usize| {
            let registered = &state.registered[*c];
            let misfit = match registered.life {
                _ if registered.is_unheard => None,
                Life::Deleting => Some(schedule::Misfit::Deleting),
                _ if !registered.finalizer => Some(schedule::Misfit::NotReady),
                _ => None,
            };
            let is_reachable = !state.machines[*c].off;
            let sight = match self.lag && !self.has(Flaw::LookBelieved) {
                true => (usize::from(grant.looked) == *c + 1).then_some(schedule::Sight::Stays),
                false => Some(schedule::Sight::Stays),
            };
            schedule::Cluster {
                misfit,
                is_reachable,
                is_draining: false,
                grants: 0,
                sight,
                copies: Vec::new(),
            }
        };
        let clusters: Vec<_> = known.iter().map(cluster).collect();
        let is_going = |place: &usize| clusters[*place].misfit == Some(schedule::Misfit::Deleting);
        // Where the target is not kept, it is whatever the scheduler wrote just before.
        let target = match self.lag {
            true => usize::from(grant.target).checked_sub(1).and_then(place_of),
            false => wish.filter(|wish| {
                let is_owner = grant.is_held() && owner == Some(schedule::Owner::Cluster(*wish));
                is_owner || !is_going(wish)
            }),
        };
        schedule::Facts {
            namespace: self.standing(state, place),
            has_finalizer: state.namespace.finalizer,
            has_syncers: state.namespace.syncers != 0 && !self.has(Flaw::SyncersOverlooked),
            grant: (is_cached && grant.exists).then_some(schedule::Grant {
                phase: match grant.phase {
                    Phase::Revoking if self.has(Flaw::GrantWithoutRelease) => Phase::Released,
                    Phase::Granted | Phase::Revoking
                        if owner == Some(schedule::Owner::Replaced)
                            && self.has(Flaw::GoneIsRelease) =>
                    {
                        Phase::Released
                    }
                    phase => phase,
                },
                owner,
                target,
                images: schedule::Images::Anywhere,
                because: None,
                pins: Vec::new(),
                is_written: true,
                has_copies: grant.has_copies() || self.has(Flaw::CopiesNeverGone),
                is_policy_current: true,
                said: schedule::Said::default(),
            }),
            truth: None,
            clusters,
            wish: wish.map_or(schedule::Wish::Unknown, schedule::Wish::On),
            has_room_for_move: true,
            can_copy: true,
            claims: Vec::new(),
            is_ambiguous: false,
        }
    }

    /// What the scheduler does about the grant of a namespace: any wish may be before it.
    pub(super) fn schedule(
        &self,
        state: &State,
        place: usize,
        mut step: impl FnMut(Deed, usize, State),
    ) {
        let mut wishes: Vec<_> = self.known(state).into_iter().map(Some).collect();
        if wishes.is_empty() {
            wishes.push(None);
        }
        for wish in wishes {
            for is_cached in [true, false] {
                if let Some((deed, c, next)) = self.scheduled(state, place, (wish, is_cached)) {
                    step(deed, c, next);
                }
            }
        }
        let namespace = &state.namespace;
        if namespace.looked && usize::from(namespace.place) == place {
            let mut next = state.clone();
            next.namespace.finalizer = false;
            step(Deed::TakeNamespaceFinalizerOff, 0, self.wrote_namespace(next));
        }
    }

    fn scheduled(
        &self,
        state: &State,
        place: usize,
        (wish, is_cached): (Option<usize>, bool),
    ) -> Option<(Deed, usize, State)> {
        use schedule::Decision;
        let mut facts = self.scheduler_facts(state, place, (wish, is_cached));
        let mut decision = schedule::decide(&facts);
        if decision == Decision::LookForNamespace {
            // It is not in the cache because it is not there.
            facts.namespace = schedule::Namespace::Gone;
            decision = schedule::decide(&facts);
        }
        let looks = decision == Decision::LookForGrant;
        if looks {
            let is_granted = state.grants[place].exists && !self.has(Flaw::AbsenceIsNoGrant);
            facts.truth = Some(match is_granted {
                true => schedule::Truth::Granted,
                false => schedule::Truth::NoGrant,
            });
            decision = schedule::decide(&facts);
        }
        let is_its_own = usize::from(state.namespace.place) == place;
        let mut next = state.clone();
        let grant = &mut next.grants[place];
        let mut c = 0;
        let deed = match decision {
            Decision::PutFinalizer if is_its_own => {
                next.namespace.finalizer = true;
                next = self.wrote_namespace(next);
                Deed::PutNamespaceFinalizer
            }
            Decision::CreateGrant if !grant.exists && is_its_own => {
                // Whoever goes by names finds the grant of the one before.
                if self.has(Flaw::NamespaceByName) && state.grants[..place].iter().any(|g| g.exists)
                {
                    return None;
                }
                *grant = Grant { exists: true, ..Grant::default() };
                Deed::CreateGrant
            }
            // The look was taken; the write is guarded by the version of the namespace seen.
            Decision::TakeFinalizerOff if looks => {
                next.namespace.looked = true;
                Deed::LookForGrant
            }
            Decision::TakeFinalizerOff if is_its_own => {
                next.namespace.finalizer = false;
                next = self.wrote_namespace(next);
                Deed::TakeNamespaceFinalizerOff
            }
            Decision::Target(to) if is_cached && self.lag => {
                c = *self.known(state).get(to)?;
                grant.target = c as u8 + 1;
                Deed::Target
            }
            Decision::Untarget if is_cached && self.lag && !self.has(Flaw::TargetKept) => {
                grant.target = 0;
                Deed::Untarget
            }
            Decision::LookAtCluster(at) => {
                c = *self.known(state).get(at)?;
                if state.registered[c].life != Life::There {
                    return None;
                }
                grant.looked = c as u8 + 1;
                Deed::LookAtCluster
            }
            Decision::Grant(giving) if is_cached => {
                c = *self.known(state).get(giving.to)?;
                self.give(grant, place, c)?;
                Deed::Grant
            }
            Decision::Revoke(because) if is_cached => {
                grant.phase = Phase::Revoking;
                grant.is_deletion = because == RevokedBecause::Deletion;
                if grant.is_deletion { Deed::RevokeToDelete } else { Deed::Revoke }
            }
            Decision::BeginDeleting if is_cached => {
                grant.phase = Phase::Deleting;
                grant.is_deletion = false;
                Deed::BeginDeleting
            }
            Decision::DeleteGrant if is_cached => {
                *grant = Grant::default();
                Deed::DeleteGrant
            }
            _ => return None,
        };
        Some((deed, c, next))
    }

    fn give(&self, grant: &mut Grant, place: usize, c: usize) -> Option<()> {
        if grant.epoch == self.epochs_of(place) {
            return None;
        }
        // What is alone in having something is kept beside the new copy.
        let mut copies = grant.copies[c].without(CopyState::Superseded);
        if self.has(Flaw::AloneIsTakenOver) {
            copies = Copies::default();
        }
        grant.copies[c] = copies.with(CopyState::Live);
        *grant = Grant {
            phase: Phase::Granted,
            owner: c as u8,
            epoch: grant.epoch + 1,
            is_deletion: false,
            is_filled: false,
            is_settled: false,
            is_forced: false,
            ..*grant
        };
        Some(())
    }

    /// Every write to the namespace makes one fail that was to be guarded by how it was before.
    pub(super) fn wrote_namespace(&self, mut next: State) -> State {
        next.namespace.looked = false;
        next
    }

    /// What fencing makes of a ForceRelease that names the present epoch.
    pub(super) fn fence(&self, state: &State, place: usize) -> Option<State> {
        let grant = state.grants[place];
        if !grant.exists || !grant.is_forced {
            return None;
        }
        let decision = fencing::decide::decide(&fencing::decide::Facts {
            outcome: ForceOutcome::Pending,
            epoch: grant.epoch.into(),
            grant: Some(fencing::decide::Grant {
                is_same: true,
                is_same_owner: true,
                phase: grant.phase,
                epoch: grant.epoch.into(),
            }),
            is_fresh: true,
            claims: Vec::new(),
        });
        if !matches!(decision, fencing::decide::Decision::Fence(_)) {
            return None;
        }
        let owner = usize::from(grant.owner);
        let mut next = state.clone();
        let fenced = &mut next.grants[place];
        fenced.phase = Phase::Fenced;
        fenced.is_deletion = false;
        fenced.copies[owner] =
            grant.copies[owner].without(CopyState::Live).with(CopyState::Unclosed);
        // What ran may have written after the image that is pinned.
        if let Some(here) = &mut next.machines[owner].here[place]
            && here.ran
        {
            here.alone |= here.volumes & bit(usize::from(grant.epoch) - 1);
        }
        Some(next)
    }

    fn is_empty(&self, state: &State, c: usize) -> bool {
        let has_to_do = |grant: &Grant| {
            let is_to_come = usize::from(grant.target) == c + 1
                && grant.phase != Phase::Deleting
                && !self.has(Flaw::TargetsDoNotHold);
            grant.exists && (grant.is_held_by(c) || !grant.copies[c].are_none() || is_to_come)
        };
        self.has(Flaw::GrantsDoNotHold) || !state.grants.iter().any(has_to_do)
    }

    /// What is done about a cluster at the hub.
    pub(super) fn retire(&self, state: &State, c: usize, mut step: impl FnMut(Deed, usize, State)) {
        use retire::Decision;
        let registered = &state.registered[c];
        if !matches!(registered.life, Life::There | Life::Deleting) {
            return;
        }
        let change = |change: &dyn Fn(&mut super::state::Registered)| {
            let mut next = state.clone();
            change(&mut next.registered[c]);
            // A write makes one fail that was to be guarded by how it was before.
            next.registered[c].looked = false;
            next
        };
        if registered.looked {
            step(Deed::TakeClusterFinalizerOff, 0, change(&|it| it.finalizer = false));
        }
        let asked = usize::from(registered.forget).checked_sub(1);
        let copies = asked.map(|place| {
            let grant = &state.grants[place];
            if grant.exists { grant.copies[c] } else { Copies::default() }
        });
        let mut facts = retire::Facts {
            is_deleting: registered.life == Life::Deleting,
            has_finalizer: registered.finalizer,
            heartbeat: retire::Heartbeat::Noted { seconds_ago: 0 },
            silence_seconds: retire::SILENCE_SECONDS,
            is_runtime_down: false,
            said: retire::Said {
                reachable: Some(retire::Reachable::Heard),
                ready: Some(retire::Ready::Ready),
                is_left: true,
            },
            forget: copies.map(|copies| match copies.without(CopyState::Live).are_none() {
                true if copies.are_none() => Vec::new(),
                true if !self.has(Flaw::OwnersIsForgotten) => vec![CopyState::Live],
                true | false => vec![CopyState::Superseded],
            }),
            // The cache may have anything; what it says is followed by a look.
            grants: retire::Grants { owned: 0, copies: 0, to_come: 0 },
            is_surely_empty: None,
        };
        let mut decision = retire::decide(&facts);
        let looks = decision == Decision::LookForGrants;
        if looks {
            facts.is_surely_empty = Some(self.is_empty(state, c));
            decision = retire::decide(&facts);
        }
        match decision {
            Decision::PutFinalizer => {
                step(Deed::PutClusterFinalizer, 0, change(&|it| it.finalizer = true));
            }
            Decision::TakeFinalizerOff if looks => {
                let mut next = state.clone();
                next.registered[c].looked = true;
                step(Deed::LookForGrants, 0, next);
            }
            Decision::ForgetCopies(_) => {
                let Some(place) = asked else { return };
                let mut next = state.clone();
                let kept = &mut next.grants[place].copies[c];
                let is_kept = kept.has(CopyState::Live) && !self.has(Flaw::OwnersIsForgotten);
                *kept = if is_kept {
                    Copies::default().with(CopyState::Live)
                } else {
                    Copies::default()
                };
                next.forgotten[place] |= bit(c);
                step(Deed::ForgetForAPerson, place, next);
            }
            Decision::RefuseToForget | Decision::TakeWishOff => {
                step(Deed::TakeWishOff, 0, change(&|it| it.forget = 0));
            }
            _ => {}
        }
    }

    /// What becomes of the finalizer of a cluster that is gone.
    pub(super) fn depart(&self, state: &State, c: usize) -> Option<State> {
        use departed::decide::{Decision, Facts, Truth, decide};
        if state.namespace.syncers & bit(c) == 0 {
            return None;
        }
        let truth = Truth {
            is_there: matches!(state.registered[c].life, Life::There | Life::Deleting),
            has_grants: !self.is_empty(state, c),
            has_objects: false,
        };
        // The cache may have anything; what it says is followed by a look.
        let decision = decide(&Facts { has_grants: false, truth: Some(truth) });
        let mut next = state.clone();
        next.namespace.syncers &= !bit(c);
        (decision == Decision::TakeOffNamespace).then(|| self.wrote_namespace(next))
    }

    /// What the labels are to say, as the seed would read it off the grant.
    pub(super) fn labels_of(&self, grant: &Grant) -> Labels {
        let label = match grant.phase {
            Phase::Granted if grant.is_filled => Label::Sync,
            Phase::Granted | Phase::Revoking => Label::Empty,
            Phase::Unassigned | Phase::Released | Phase::Fenced | Phase::Deleting => Label::Nil,
        };
        let mut labels = [Label::Nil; MOST_CLUSTERS];
        if grant.exists {
            labels[usize::from(grant.owner)] = label;
        }
        labels
    }

    /// What an object says after it was brought to say this.
    pub(super) fn mirrored(&self, had: Labels, wanted: Labels) -> Labels {
        let mut labels = wanted;
        if self.has(Flaw::LabelLeftOn) {
            for (label, had) in labels.iter_mut().zip(had) {
                *label = if *label == Label::Nil { had } else { *label };
            }
        }
        labels
    }

    /// What the labels of the namespace and its claim are brought to.
    pub(super) fn mirror(&self, state: &State) -> Option<(Deed, State)> {
        use claims::decide::{Claim, Decision, Facts, Grant as Said, Labels, decide, mirror_of};
        let place = usize::from(state.namespace.place);
        let grant = &state.grants[place];
        if !self.labels || !state.is_there(place) {
            return None;
        }
        let wanted = self.labels_of(grant);
        let said = Said {
            phase: grant.phase,
            has_owner: true,
            is_filled: grant.is_filled,
            has_copies: grant.has_copies(),
        };
        let labels = |is_mirrored: bool| {
            let labels = Labels { say: None, is_leaving_noted: true };
            Labels { say: is_mirrored.then(|| mirror_of(&said, &labels)), ..labels }
        };
        let claim = Claim {
            labels: labels(state.pvc == wanted || self.has(Flaw::ClaimNotMirrored)),
            is_held: true,
            is_deleting: false,
            is_listed: true,
            truth: None,
            is_on_cluster: true,
        };
        let decision = decide(&Facts {
            grant: grant.exists.then_some(said),
            namespace: labels(state.ns == wanted),
            claims: vec![claim],
            missing: Vec::new(),
        });
        let mut next = state.clone();
        let deed = match decision {
            Decision::MirrorNamespace(_) => {
                next.ns = self.mirrored(state.ns, wanted);
                next = self.wrote_namespace(next);
                Deed::MirrorNamespace
            }
            Decision::MirrorClaim(..) => {
                next.pvc = self.mirrored(state.pvc, wanted);
                Deed::MirrorClaim
            }
            _ => return None,
        };
        (next != *state).then_some((deed, next))
    }
}
