//! The steps of the world: what people do, what controllers decide, and what goes wrong.

use super::World;
use super::actions::Deed;
use super::state::{Life, Machine, Namespace, Registered, State, bit};
use interlock_api::placement::Phase;
use interlock_checker::Steps;

impl World {
    pub(super) fn steps(&self, state: &State, steps: &mut Steps<State>) {
        let mut moves = Moves { world: self, state, steps };
        moves.people();
        if let Some((deed, next)) = self.mirror(state) {
            moves.step(deed, (0, 0), next);
        }
        for place in 0..self.namespaces {
            self.schedule(state, place, |deed, c, next| moves.step(deed, (c, place), next));
            moves.force(place);
            moves.settle(place);
        }
        for c in 0..self.clusters {
            self.retire(state, c, |deed, place, next| moves.step(deed, (c, place), next));
            if let Some(next) = self.depart(state, c) {
                moves.step(Deed::TakeDepartedOff, (c, 0), next);
            }
            moves.cluster(c);
        }
    }
}

/// The steps out of one state, as they are found.
struct Moves<'a> {
    world: &'a World,
    state: &'a State,
    steps: &'a mut Steps<State>,
}

impl Moves<'_> {
    fn step(&mut self, deed: Deed, (c, place): (usize, usize), mut next: State) {
        for (grant, before) in next.grants.iter_mut().zip(&self.state.grants) {
            // Every write makes one fail that was to be guarded by how it was before.
            if grant != before && deed != Deed::LookAtCluster {
                grant.looked = 0;
            }
        }
        next.collect();
        if next != *self.state {
            self.steps.step(self.world.id(deed, c, place), next);
        }
    }

    /// A step that is a fault, if there may be one more.
    fn fault(&mut self, deed: Deed, about: (usize, usize), change: impl FnOnce(&mut State)) {
        if self.state.faults == self.world.faults {
            return;
        }
        let mut next = self.state.clone();
        change(&mut next);
        if next != *self.state {
            next.faults += 1;
            self.step(deed, about, next);
        }
    }

    /// What people do to namespaces and clusters.
    fn people(&mut self) {
        let (world, state) = (self.world, self.state);
        let place = usize::from(state.namespace.place);
        let is_last = place + 1 == world.namespaces;
        let mut next = state.clone();
        match state.namespace.life {
            Life::There if !is_last || world.is_deleted => {
                next.namespace.life = Life::Deleting;
                next = world.wrote_namespace(next);
                self.step(Deed::DeleteNamespace, (0, place), next);
            }
            Life::Gone if !is_last => {
                let place = state.namespace.place + 1;
                next.namespace = Namespace { place, life: Life::There, ..Namespace::default() };
                self.step(Deed::MakeNamespaceAgain, (0, place.into()), next);
            }
            Life::Deleting if world.strip => {
                self.fault(Deed::StripNamespace, (0, place), |next| {
                    next.namespace.finalizer = false;
                    next.namespace.syncers = 0;
                    next.stripped_namespaces |= bit(place);
                });
            }
            Life::NotYet | Life::There | Life::Deleting | Life::Gone => {}
        }
        for c in 0..world.clusters {
            self.people_at(c);
        }
    }

    fn people_at(&mut self, c: usize) {
        let (world, state) = (self.world, self.state);
        let registered = &state.registered[c];
        let mut next = state.clone();
        match registered.life {
            Life::There if world.retire => {
                next.registered[c] = Registered {
                    life: Life::Deleting,
                    looked: false,
                    is_unheard: world.lag && registered.finalizer,
                    ..*registered
                };
                self.step(Deed::DeleteCluster, (c, 0), next);
            }
            // Its name is free when the one before is gone.
            Life::NotYet if c == 0 || state.registered[c - 1].life == Life::Gone => {
                next.registered[c].life = Life::There;
                self.step(Deed::RegisterCluster, (c, 0), next);
            }
            Life::Deleting if world.strip => {
                self.fault(Deed::StripCluster, (c, 0), |next| {
                    next.registered[c].finalizer = false;
                    next.stripped_clusters |= bit(c);
                });
            }
            // Whoever sees that it was let go takes it away, whatever it still has.
            Life::Gone if state.stripped_clusters & bit(c) == 0 => {
                next.machines[c] = Machine { is_shut_down: true, ..Machine::default() };
                self.step(Deed::ShutDown, (c, 0), next);
            }
            Life::NotYet | Life::There | Life::Deleting | Life::Gone => {}
        }
        if registered.is_unheard {
            let mut next = state.clone();
            next.registered[c].is_unheard = false;
            self.step(Deed::Hear, (c, 0), next);
        }
        if !matches!(registered.life, Life::There | Life::Deleting) || registered.forget != 0 {
            return;
        }
        for place in 0..world.namespaces {
            if state.grants[place].copies[c].are_none() {
                continue;
            }
            self.fault(Deed::AskToForget, (c, place), |next| {
                next.registered[c].forget = place as u8 + 1;
                next.registered[c].looked = false;
            });
        }
    }

    /// Somebody asks for the owner to be declared gone, and has seen that it is without power.
    fn force(&mut self, place: usize) {
        let (world, grant) = (self.world, &self.state.grants[place]);
        let owner = usize::from(grant.owner);
        if world.force && grant.is_held() && !grant.is_forced && self.state.machines[owner].off {
            self.fault(Deed::AskForce, (0, place), |next| next.grants[place].is_forced = true);
        }
        if let Some(next) = world.fence(self.state, place) {
            self.step(Deed::Fence, (0, place), next);
        }
    }

    /// An owner has run for as long as old copies are kept.
    fn settle(&mut self, place: usize) {
        let grant = &self.state.grants[place];
        let here = self.state.machines[usize::from(grant.owner)].here[place];
        let runs = here.is_some_and(|here| here.runs != 0 && here.runs == grant.epoch);
        if !self.world.settle || !grant.exists || grant.phase != Phase::Granted || !runs {
            return;
        }
        let mut next = self.state.clone();
        next.grants[place].is_settled = true;
        next.grants[place].settled |= bit(usize::from(grant.epoch) - 1);
        self.step(Deed::Settle, (0, place), next);
    }

    /// What happens on a cluster, and to it.
    fn cluster(&mut self, c: usize) {
        let (world, state) = (self.world, self.state);
        let machine = &state.machines[c];
        // Nothing runs for a cluster that is to come.
        if state.registered[c].life == Life::NotYet || machine.is_shut_down {
            return;
        }
        if machine.off {
            let mut next = state.clone();
            next.machines[c].off = false;
            return self.step(Deed::PowerOn, (c, 0), next);
        }
        for place in 0..world.namespaces {
            let mut next = state.clone();
            next.machines[c].views[place] = world.seen_by(state, c, place);
            self.step(Deed::Observe, (c, place), next);
            if let Some((deed, next)) = world.sync(state, c, place) {
                self.step(deed, (c, place), next);
            }
        }
        if world.crash {
            self.fault(Deed::Crash, (c, 0), |next| next.machines[c].views = <_>::default());
        }
        let is_active = machine.here.iter().flatten().any(|here| here.permitted != 0);
        let owns = state.grants.iter().any(|grant| grant.is_held_by(c));
        if world.force && (is_active || owns) {
            self.fault(Deed::PowerOff, (c, 0), |next| lose_power(&mut next.machines[c]));
        }
    }
}

fn lose_power(machine: &mut Machine) {
    machine.off = true;
    for here in machine.here.iter_mut().flatten() {
        (here.runs, here.content) = (0, 0);
        here.lapsed = here.permitted != 0;
    }
}
