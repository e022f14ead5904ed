//! The hub and the clusters, as far as anything on them can go.

use super::World;
use crate::spec::hub::width;
use interlock_api::placement::{CopyState, Phase};
use interlock_checker::{Coder, Rng};

pub(super) const MOST_CLUSTERS: usize = 2;
pub(super) const MOST_NAMESPACES: usize = 2;
pub(super) const MOST_EPOCHS: u8 = 3;

const PHASES: [Phase; 6] = [
    Phase::Unassigned,
    Phase::Granted,
    Phase::Revoking,
    Phase::Released,
    Phase::Fenced,
    Phase::Deleting,
];

/// A set of clusters, or of epochs.
pub(super) type Bits = u8;

pub(super) fn bit(place: usize) -> Bits {
    1 << place
}

/// Whether an object is at the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Life {
    #[default]
    NotYet,
    There,
    Deleting,
    Gone,
}

const LIVES: [Life; 4] = [Life::NotYet, Life::There, Life::Deleting, Life::Gone];

/// The namespace at the hub. Whoever comes after it has its name and another uid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Namespace {
    /// How many had its name before.
    pub(super) place: u8,
    pub(super) life: Life,
    /// The scheduler's finalizer.
    pub(super) finalizer: bool,
    /// The clusters whose syncers have theirs on it.
    pub(super) syncers: Bits,
    /// The scheduler has seen that there is no grant, and takes its finalizer off next.
    pub(super) looked: bool,
}

/// What the grant says of the data on one cluster: the states of its copies there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Copies(Bits);

/// In the order of the care that they want, as `observe` has it.
const COPIES: [CopyState; 4] =
    [CopyState::Superseded, CopyState::Live, CopyState::Diverged, CopyState::Unclosed];

impl Copies {
    fn bit(state: CopyState) -> Bits {
        match state {
            CopyState::Superseded => 1,
            CopyState::Live => 2,
            CopyState::Diverged => 4,
            CopyState::Unclosed => 8,
        }
    }

    pub(super) fn has(self, state: CopyState) -> bool {
        self.0 & Copies::bit(state) != 0
    }

    pub(super) fn are_none(self) -> bool {
        self.0 == 0
    }

    pub(super) fn with(self, state: CopyState) -> Copies {
        Copies(self.0 | Copies::bit(state))
    }

    pub(super) fn without(self, state: CopyState) -> Copies {
        Copies(self.0 & !Copies::bit(state))
    }

    pub(super) fn and(self, other: Copies) -> Copies {
        Copies(self.0 | other.0)
    }

    /// Data that nobody else may have.
    pub(super) fn are_alone(self) -> bool {
        self.has(CopyState::Diverged) || self.has(CopyState::Unclosed)
    }

    /// Of several, the one that wants most care speaks.
    pub(super) fn spoken(self) -> Option<CopyState> {
        COPIES.into_iter().rev().find(|state| self.has(*state))
    }
}

/// The Grant of one namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Grant {
    pub(super) exists: bool,
    pub(super) phase: Phase,
    pub(super) owner: u8,
    pub(super) epoch: u8,
    pub(super) is_deletion: bool,
    pub(super) is_filled: bool,
    pub(super) copies: [Copies; MOST_CLUSTERS],
    /// The present owner has run for as long as old copies are kept.
    pub(super) is_settled: bool,
    /// A ForceRelease names the present epoch.
    pub(super) is_forced: bool,
    /// The epochs that ever settled.
    pub(super) settled: Bits,
    /// The cluster that is to have it, and one; kept only where the scheduler may hear late.
    pub(super) target: u8,
    /// The cluster that the scheduler saw staying, and one: it is granted next, if nobody writes to
    /// the grant before.
    pub(super) looked: u8,
}

impl Grant {
    pub(super) fn is_held(&self) -> bool {
        self.exists && self.phase.is_held()
    }

    pub(super) fn is_held_by(&self, c: usize) -> bool {
        self.is_held() && usize::from(self.owner) == c
    }

    pub(super) fn has_copies(&self) -> bool {
        self.copies.iter().any(|copies| !copies.are_none())
    }

    /// A copy that only a person can give up.
    pub(super) fn waits_for_a_person(&self) -> bool {
        self.copies.iter().any(|copies| copies.are_alone())
    }
}

/// A WorkloadCluster at the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Registered {
    pub(super) life: Life,
    pub(super) finalizer: bool,
    /// It was seen that no grant is left on it, and its finalizer comes off next.
    pub(super) looked: bool,
    /// A person wants the copies of this namespace forgotten: its place and one.
    pub(super) forget: u8,
    /// It was deleted, and the scheduler has not heard of it.
    pub(super) is_unheard: bool,
}

/// Whose the Grant is, as far as that changes what a syncer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Seen {
    #[default]
    NotMine,
    Granted,
    Revoking,
    Deleting,
}

const SEEN: [Seen; 4] = [Seen::NotMine, Seen::Granted, Seen::Revoking, Seen::Deleting];

/// A Grant in the cache of a syncer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct View {
    pub(super) seen: Seen,
    pub(super) epoch: u8,
    pub(super) is_deletion: bool,
    pub(super) is_filled: bool,
    pub(super) copies: Copies,
    pub(super) is_settled: bool,
}

/// The namespace on a cluster, and what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Here {
    pub(super) epoch: u8,
    pub(super) released: u8,
    /// What may run; 0: nothing.
    pub(super) permitted: u8,
    /// The permit is of an earlier boot.
    pub(super) lapsed: bool,
    pub(super) ran: bool,
    /// What runs; 0: nothing.
    pub(super) runs: u8,
    /// The place of the namespace at the hub whose workload that is.
    pub(super) content: u8,
    /// The epochs whose volumes are here.
    pub(super) volumes: Bits,
    /// Of these, the ones that may have what nobody else has.
    pub(super) alone: Bits,
}

/// One cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Machine {
    pub(super) views: [Option<View>; MOST_NAMESPACES],
    pub(super) here: [Option<Here>; MOST_NAMESPACES],
    pub(super) off: bool,
    /// Nobody runs it any more: its cluster was let go.
    pub(super) is_shut_down: bool,
}

/// A label at the hub: the seed's states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Label {
    #[default]
    Nil,
    Empty,
    Sync,
}

const LABELS: [Label; 3] = [Label::Nil, Label::Empty, Label::Sync];

/// The labels of one object, a cluster each.
pub(super) type Labels = [Label; MOST_CLUSTERS];

/// The whole of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    pub(super) namespace: Namespace,
    pub(super) grants: [Grant; MOST_NAMESPACES],
    pub(super) registered: [Registered; MOST_CLUSTERS],
    pub(super) machines: [Machine; MOST_CLUSTERS],
    /// The seed's `ns`.
    pub(super) ns: Labels,
    /// The seed's `pvc`.
    pub(super) pvc: Labels,
    /// Namespaces whose finalizers a person stripped.
    pub(super) stripped_namespaces: Bits,
    /// Clusters whose finalizer a person stripped.
    pub(super) stripped_clusters: Bits,
    /// For each namespace, the clusters whose copies a person gave up.
    pub(super) forgotten: [Bits; MOST_NAMESPACES],
    pub(super) faults: u8,
}

impl State {
    /// Whether the namespace of that place was, and is not any more.
    pub(super) fn is_gone(&self, place: usize) -> bool {
        let now = usize::from(self.namespace.place);
        place < now || place == now && self.namespace.life == Life::Gone
    }

    pub(super) fn is_there(&self, place: usize) -> bool {
        usize::from(self.namespace.place) == place && self.namespace.life == Life::There
    }

    /// What is being deleted and has no finalizer is gone.
    pub(super) fn collect(&mut self) {
        let namespace = &mut self.namespace;
        if namespace.life == Life::Deleting && !namespace.finalizer && namespace.syncers == 0 {
            *namespace = Namespace { place: namespace.place, life: Life::Gone, ..<_>::default() };
            (self.ns, self.pvc) = <_>::default();
        }
        for registered in &mut self.registered {
            if registered.life == Life::Deleting && !registered.finalizer {
                let is_unheard = registered.is_unheard;
                *registered = Registered { life: Life::Gone, is_unheard, ..<_>::default() };
            }
        }
    }
}

impl World {
    pub(super) fn beginning(&self) -> State {
        let mut state = State::default();
        state.namespace.life = Life::There;
        for (c, registered) in state.registered[..self.clusters].iter_mut().enumerate() {
            if c == 0 || !self.replace {
                *registered =
                    Registered { life: Life::There, finalizer: true, ..Registered::default() };
            }
        }
        state
    }

    fn code_epoch(&self, epoch: &mut u8, coder: &mut Coder) {
        coder.u8(epoch, width(self.epochs.into()));
    }

    fn code_place(&self, place: &mut u8, coder: &mut Coder) {
        coder.u8(place, width(self.namespaces - 1));
    }

    pub(super) fn code_state(&self, state: &mut State, coder: &mut Coder) {
        let clusters = self.clusters;
        let namespace = &mut state.namespace;
        self.code_place(&mut namespace.place, coder);
        coder.of(&mut namespace.life, &LIVES);
        coder.bool(&mut namespace.finalizer);
        coder.u8(&mut namespace.syncers, clusters as u32);
        coder.bool(&mut namespace.looked);
        for grant in &mut state.grants[..self.namespaces] {
            self.code_grant(grant, coder);
        }
        for registered in &mut state.registered[..clusters] {
            coder.of(&mut registered.life, &LIVES);
            coder.bool(&mut registered.finalizer);
            coder.bool(&mut registered.looked);
            coder.u8(&mut registered.forget, width(self.namespaces));
            coder.bool(&mut registered.is_unheard);
        }
        for machine in &mut state.machines[..clusters] {
            self.code_machine(machine, coder);
        }
        for labels in [&mut state.ns, &mut state.pvc] {
            for label in &mut labels[..if self.labels { clusters } else { 0 }] {
                coder.of(label, &LABELS);
            }
        }
        coder.u8(&mut state.stripped_namespaces, self.namespaces as u32);
        coder.u8(&mut state.stripped_clusters, clusters as u32);
        for forgotten in &mut state.forgotten[..self.namespaces] {
            coder.u8(forgotten, clusters as u32);
        }
        coder.u8(&mut state.faults, width(self.faults.into()));
    }

    fn code_grant(&self, grant: &mut Grant, coder: &mut Coder) {
        coder.bool(&mut grant.exists);
        coder.of(&mut grant.phase, &PHASES);
        coder.u8(&mut grant.owner, width(self.clusters - 1));
        self.code_epoch(&mut grant.epoch, coder);
        coder.bool(&mut grant.is_deletion);
        coder.bool(&mut grant.is_filled);
        for copies in &mut grant.copies[..self.clusters] {
            coder.u8(&mut copies.0, COPIES.len() as u32);
        }
        coder.bool(&mut grant.is_settled);
        coder.bool(&mut grant.is_forced);
        coder.u8(&mut grant.settled, self.epochs.into());
        coder.u8(&mut grant.target, width(self.clusters));
        coder.u8(&mut grant.looked, width(self.clusters));
    }

    fn code_machine(&self, machine: &mut Machine, coder: &mut Coder) {
        for view in &mut machine.views[..self.namespaces] {
            code_option(view, coder, |view, coder| {
                coder.of(&mut view.seen, &SEEN);
                self.code_epoch(&mut view.epoch, coder);
                coder.bool(&mut view.is_deletion);
                coder.bool(&mut view.is_filled);
                coder.u8(&mut view.copies.0, COPIES.len() as u32);
                coder.bool(&mut view.is_settled);
            });
        }
        for here in &mut machine.here[..self.namespaces] {
            code_option(here, coder, |here, coder| {
                self.code_epoch(&mut here.epoch, coder);
                self.code_epoch(&mut here.released, coder);
                self.code_epoch(&mut here.permitted, coder);
                coder.bool(&mut here.lapsed);
                coder.bool(&mut here.ran);
                self.code_epoch(&mut here.runs, coder);
                self.code_place(&mut here.content, coder);
                coder.u8(&mut here.volumes, self.epochs.into());
                coder.u8(&mut here.alone, self.epochs.into());
            });
        }
        coder.bool(&mut machine.off);
        coder.bool(&mut machine.is_shut_down);
    }

    pub(super) fn any_state(&self, rng: &mut Rng) -> State {
        let mut state = State {
            namespace: Namespace {
                place: rng.below(self.namespaces) as u8,
                life: LIVES[rng.below(LIVES.len())],
                finalizer: rng.flip(),
                syncers: rng.below(1 << self.clusters) as u8,
                looked: rng.flip(),
            },
            stripped_namespaces: rng.below(1 << self.namespaces) as u8,
            stripped_clusters: rng.below(1 << self.clusters) as u8,
            faults: rng.below(usize::from(self.faults) + 1) as u8,
            ..State::default()
        };
        for grant in &mut state.grants[..self.namespaces] {
            *grant = self.any_grant(rng);
        }
        for forgotten in &mut state.forgotten[..self.namespaces] {
            *forgotten = rng.below(1 << self.clusters) as u8;
        }
        for c in 0..self.clusters {
            state.registered[c] = Registered {
                life: LIVES[rng.below(LIVES.len())],
                finalizer: rng.flip(),
                looked: rng.flip(),
                forget: rng.below(self.namespaces + 1) as u8,
                is_unheard: rng.flip(),
            };
            state.machines[c] = self.any_machine(rng);
            if self.labels {
                state.ns[c] = LABELS[rng.below(LABELS.len())];
                state.pvc[c] = LABELS[rng.below(LABELS.len())];
            }
        }
        state
    }

    fn any_epoch(&self, rng: &mut Rng) -> u8 {
        rng.below(usize::from(self.epochs) + 1) as u8
    }

    fn any_copies(rng: &mut Rng) -> Copies {
        Copies(rng.below(1 << COPIES.len()) as u8)
    }

    fn any_grant(&self, rng: &mut Rng) -> Grant {
        let mut grant = Grant {
            exists: rng.flip(),
            phase: PHASES[rng.below(PHASES.len())],
            owner: rng.below(self.clusters) as u8,
            epoch: self.any_epoch(rng),
            is_deletion: rng.flip(),
            is_filled: rng.flip(),
            copies: <_>::default(),
            is_settled: rng.flip(),
            is_forced: rng.flip(),
            settled: rng.below(1 << self.epochs) as u8,
            target: rng.below(self.clusters + 1) as u8,
            looked: rng.below(self.clusters + 1) as u8,
        };
        for copies in &mut grant.copies[..self.clusters] {
            *copies = World::any_copies(rng);
        }
        grant
    }

    fn any_machine(&self, rng: &mut Rng) -> Machine {
        let mut machine =
            Machine { off: rng.flip(), is_shut_down: rng.flip(), ..Machine::default() };
        for place in 0..self.namespaces {
            let view = View {
                seen: SEEN[rng.below(SEEN.len())],
                epoch: self.any_epoch(rng),
                is_deletion: rng.flip(),
                is_filled: rng.flip(),
                copies: World::any_copies(rng),
                is_settled: rng.flip(),
            };
            let here = Here {
                epoch: self.any_epoch(rng),
                released: self.any_epoch(rng),
                permitted: self.any_epoch(rng),
                lapsed: rng.flip(),
                ran: rng.flip(),
                runs: self.any_epoch(rng),
                content: rng.below(self.namespaces) as u8,
                volumes: rng.below(1 << self.epochs) as u8,
                alone: rng.below(1 << self.epochs) as u8,
            };
            machine.views[place] = rng.flip().then_some(view);
            machine.here[place] = rng.flip().then_some(here);
        }
        machine
    }
}

fn code_option<T: Copy + Default>(
    value: &mut Option<T>,
    coder: &mut Coder,
    code: impl FnOnce(&mut T, &mut Coder),
) {
    let mut is_some = value.is_some();
    let mut inner = value.unwrap_or_default();
    coder.bool(&mut is_some);
    code(&mut inner, coder);
    *value = is_some.then_some(inner);
}
