//! The syncer of a cluster: what it is told, and what its decision does.

use super::World;
use super::actions::Deed;
use super::flaws::Flaw;
use super::state::{Copies, Here, Life, Seen, State, View, bit};
use crate::syncer::tenancy as sync;
use interlock_api::placement::{CopyState, Phase};

impl World {
    /// Whether an epoch of a grant is this cluster's.
    fn is_mine(&self, owner: u8, c: usize) -> bool {
        usize::from(owner) == c || self.replace && self.has(Flaw::ClusterByName)
    }

    /// What a cluster sees that looks at the hub now.
    pub(super) fn seen_by(&self, state: &State, c: usize, place: usize) -> Option<View> {
        let grant = &state.grants[place];
        if !grant.exists {
            return None;
        }
        let is_mine = grant.epoch != 0 && self.is_mine(grant.owner, c);
        let seen = match grant.phase {
            Phase::Deleting => Seen::Deleting,
            Phase::Granted if is_mine => Seen::Granted,
            Phase::Revoking if is_mine => Seen::Revoking,
            _ => Seen::NotMine,
        };
        let mut copies = grant.copies[c];
        if self.replace && self.has(Flaw::ClusterByName) {
            copies = grant.copies.into_iter().fold(copies, |all, more| all.and(more));
        }
        let is_settled = grant.is_settled || self.has(Flaw::SettledAtOnce);
        Some(View {
            seen,
            epoch: grant.epoch,
            is_deletion: seen == Seen::Revoking && grant.is_deletion,
            is_filled: seen == Seen::Granted && grant.is_filled,
            copies,
            is_settled: seen == Seen::NotMine
                && grant.phase == Phase::Granted
                && is_settled
                && !self.has(Flaw::LeftoverKept),
        })
    }

    /// Where on a cluster a namespace is: whoever goes by names takes what is there of the one before.
    fn slot(&self, state: &State, c: usize, place: usize) -> usize {
        let is_taken = state.machines[c].here[0].is_some();
        if is_taken && self.has(Flaw::NamespaceByName) { 0 } else { place }
    }

    /// Whether the namespace at the hub is the one that the grant is for, as a syncer sees it.
    fn is_its_own(&self, state: &State, place: usize) -> bool {
        usize::from(state.namespace.place) == place || self.has(Flaw::NamespaceByName)
    }

    fn facts(&self, state: &State, c: usize, place: usize) -> sync::Facts {
        let machine = &state.machines[c];
        let here = machine.here[self.slot(state, c, place)];
        let namespace = &state.namespace;
        let is_there = self.is_its_own(state, place) && namespace.life == Life::There;
        let view = machine.views[place].or_else(|| self.imagined(here));
        let claims = match view {
            Some(view) if view.epoch != 0 => self.claims(here, view, is_there),
            _ => Vec::new(),
        };
        let has_finalizer = self.is_its_own(state, place)
            && matches!(namespace.life, Life::There | Life::Deleting)
            && namespace.syncers & bit(c) != 0;
        let is_arriving = view.is_some_and(|view| view.seen == Seen::Granted);
        let may_apply = view.zip(here).is_some_and(|(view, here)| {
            view.seen == Seen::Granted && here.permitted == view.epoch && !here.lapsed
        });
        sync::Facts {
            grant: view.map(|view| self.grant(view, &claims)),
            here: here.map_or(sync::Here::Missing, |here| sync::Here::Noted(notes(&here))),
            has_finalizer: has_finalizer || is_arriving && self.has(Flaw::NoSyncerFinalizer),
            workload: match here {
                Some(here) if here.runs != 0 => sync::Workload::Some,
                _ => sync::Workload::None,
            },
            claims,
            is_marked_superseded: true,
            leftover: match here {
                Some(_) if !self.has(Flaw::LeftoverOverlooked) => sync::Leftover::Some,
                _ => sync::Leftover::None,
            },
            has_objects_to_apply: may_apply && is_there && here.is_some_and(|here| here.runs == 0),
            stillness: None,
            truth: None,
        }
    }

    /// What a syncer goes by that takes absence from its cache for the end of the Grant.
    fn imagined(&self, here: Option<Here>) -> Option<View> {
        let here = here.filter(|_| self.has(Flaw::AbsenceIsTheEnd))?;
        let copies = Copies::default().with(CopyState::Superseded);
        Some(View { seen: Seen::Deleting, epoch: here.epoch, copies, ..View::default() })
    }

    fn claims(&self, here: Option<Here>, view: View, is_there: bool) -> Vec<sync::Claim> {
        let has_volume = here.is_some_and(|here| {
            here.epoch == view.epoch && here.volumes & bit(usize::from(view.epoch) - 1) != 0
        });
        // Nothing is made for a claim that goes with its namespace.
        if !has_volume && !is_there {
            return Vec::new();
        }
        let volume = match has_volume {
            true => sync::Volume::Filled,
            // No empty volume is made in place of one that is missing.
            false if view.is_filled => sync::Volume::Filling,
            false => sync::Volume::Missing,
        };
        let last = sync::LastImage::Held;
        vec![sync::Claim { volume, is_filled: view.is_filled, last }]
    }

    fn grant(&self, view: View, claims: &[sync::Claim]) -> sync::Grant {
        let (phase, owner) = match view.seen {
            Seen::NotMine if view.epoch == 0 => (Phase::Unassigned, sync::Party::Nobody),
            Seen::NotMine => (Phase::Granted, sync::Party::Other),
            Seen::Granted => (Phase::Granted, sync::Party::Me),
            Seen::Revoking => (Phase::Revoking, sync::Party::Me),
            Seen::Deleting => (Phase::Deleting, sync::Party::Other),
        };
        let copy = match view.copies.spoken() {
            Some(CopyState::Diverged) if self.has(Flaw::DivergedIsSuperseded) => {
                Some(CopyState::Superseded)
            }
            copy => copy,
        };
        sync::Grant {
            phase,
            owner,
            epoch: view.epoch.into(),
            target: sync::Party::Other,
            is_deletion: view.is_deletion,
            is_filled: view.is_filled || claims.is_empty(),
            copy,
            is_settled: view.is_settled,
        }
    }

    fn truth(&self, state: &State, c: usize, place: usize) -> sync::Truth {
        let grant = &state.grants[place];
        let is_gone = !(self.is_its_own(state, place) && state.namespace.life == Life::There);
        let is_granted = grant.exists
            && grant.phase == Phase::Granted
            && self.is_mine(grant.owner, c)
            && (grant.is_filled || is_gone);
        sync::Truth {
            granted: is_granted.then_some(grant.epoch.into()),
            is_forced: grant.is_forced,
        }
    }

    /// What the syncer of a cluster does next about one grant.
    pub(super) fn sync(&self, state: &State, c: usize, place: usize) -> Option<(Deed, State)> {
        use sync::Decision;
        let slot = self.slot(state, c, place);
        let mut facts = self.facts(state, c, place);
        let decision = match sync::decide(&facts) {
            Decision::LookWhetherStill => {
                let runs = state.machines[c].here[slot].is_some_and(|here| here.runs != 0);
                facts.stillness =
                    Some(if runs { sync::Stillness::Astir } else { sync::Stillness::Still });
                sync::decide(&facts)
            }
            Decision::LookWhetherGranted => {
                facts.truth = Some(self.truth(state, c, place));
                sync::decide(&facts)
            }
            decision => decision,
        };
        let mut next = state.clone();
        let deed = match decision {
            Decision::Acknowledge
            | Decision::SettleCopy(_)
            | Decision::ForgetCopy
            | Decision::ReportFilled => {
                // A write to the Grant wins only if nobody wrote to it since it was seen.
                let view = state.machines[c].views[place];
                if view.is_none() || view != self.seen_by(state, c, place) {
                    return None;
                }
                told(&mut next, (c, place), decision)
            }
            Decision::PutFinalizer | Decision::TakeFinalizerOff => {
                let namespace = &mut next.namespace;
                if decision == Decision::TakeFinalizerOff {
                    namespace.syncers &= !bit(c);
                } else if self.is_its_own(state, place) && namespace.life == Life::There {
                    namespace.syncers |= bit(c);
                }
                next = self.wrote_namespace(next);
                match decision {
                    Decision::PutFinalizer => Deed::PutFinalizer,
                    _ => Deed::TakeFinalizerOff,
                }
            }
            _ => {
                let content = state.namespace.place;
                done_here(&mut next.machines[c].here[slot], content, decision)?
            }
        };
        (next != *state).then_some((deed, next))
    }
}

fn notes(here: &Here) -> sync::Notes {
    let permitted = here.permitted.into();
    sync::Notes {
        epoch: here.epoch.into(),
        released: here.released.into(),
        running: match here.permitted {
            0 => sync::Running::Nothing,
            _ if here.lapsed => sync::Running::Lapsed(permitted),
            _ => sync::Running::Permitted(permitted),
        },
        ran: here.ran.into(),
    }
}

/// The writes to the Grant.
fn told(next: &mut State, (c, place): (usize, usize), decision: sync::Decision) -> Deed {
    use sync::Decision;
    let grant = &mut next.grants[place];
    let copies = &mut grant.copies[c];
    match decision {
        Decision::Acknowledge => {
            *copies = copies.without(CopyState::Live).with(CopyState::Superseded);
            grant.phase = Phase::Released;
            grant.is_deletion = false;
            Deed::Acknowledge
        }
        Decision::SettleCopy(found) => {
            *copies = copies.without(CopyState::Unclosed).with(found);
            Deed::SettleCopy
        }
        Decision::ReportFilled => {
            grant.is_filled = true;
            Deed::ReportFilled
        }
        _ => {
            *copies = <_>::default();
            Deed::ForgetCopy
        }
    }
}

fn small(epoch: sync::Epoch) -> u8 {
    u8::try_from(epoch).expect("the epochs of a model are few")
}

/// The writes to the cluster itself.
fn done_here(slot: &mut Option<Here>, content: u8, decision: sync::Decision) -> Option<Deed> {
    use sync::Decision;
    let mut here = slot.unwrap_or_default();
    let deed = match decision {
        Decision::Withdraw => {
            (here.permitted, here.lapsed) = (0, false);
            Deed::Withdraw
        }
        Decision::StopOne => {
            (here.runs, here.content) = (0, 0);
            Deed::StopOne
        }
        Decision::Close(epoch) => {
            here.released = here.released.max(small(epoch));
            Deed::Close
        }
        Decision::CreateClosed(epoch) => {
            (here.epoch, here.released) = (small(epoch), small(epoch));
            Deed::CreateClosed
        }
        Decision::CreateHere(epoch) => {
            here.epoch = small(epoch);
            Deed::CreateHere
        }
        Decision::NoteEpoch(epoch) => {
            here.epoch = small(epoch);
            Deed::NoteEpoch
        }
        Decision::CreateClaim(_) => {
            here.volumes |= bit(usize::from(here.epoch) - 1);
            Deed::CreateClaim
        }
        Decision::Permit(epoch) => {
            (here.permitted, here.lapsed, here.ran) = (small(epoch), false, true);
            Deed::Permit
        }
        Decision::ApplyOne => {
            (here.runs, here.content) = (here.permitted, content);
            Deed::ApplyOne
        }
        // One volume at a time, the oldest first, and the namespace last.
        Decision::DeleteLeftover if here.volumes != 0 => {
            here.volumes &= here.volumes - 1;
            here.alone &= here.volumes;
            Deed::DeleteLeftover
        }
        Decision::DeleteLeftover => {
            *slot = None;
            return Some(Deed::DeleteLeftover);
        }
        _ => return None,
    };
    *slot = Some(here);
    Some(deed)
}
