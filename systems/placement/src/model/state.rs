//! The world around the controllers: the Grant and its past, and what each cluster has and does.

use super::World;
use crate::spec::hub::{Extent, MOST_EPOCHS, Writes, width};
use interlock_checker::{Coder, Rng};

/// The most clusters that fit in the packed state.
pub(super) const MOST_CLUSTERS: usize = 3;
/// The most claims that a namespace has here.
pub(super) const MOST_CLAIMS: usize = 2;

/// A set of claims: bit `i` stands for claim `i`.
pub(super) type Claims = u8;

/// How an epoch ended, as far as it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Ending {
    #[default]
    Open,
    Released,
    Fenced,
}

const ENDINGS: [Ending; 3] = [Ending::Open, Ending::Released, Ending::Fenced];

/// How far the last image of a claim is, where it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Last {
    #[default]
    None,
    Asked,
    Made,
}

const LASTS: [Last; 3] = [Last::None, Last::Asked, Last::Made];

/// What the Grant said during one epoch, and the images made of it. The phases of an epoch only go
/// forward, so this is every value that the Grant had, as far as a controller can tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tenure {
    pub(super) owner: u8,
    /// Claims that the hub knows to be filled.
    pub(super) filled: Claims,
    pub(super) revoked: bool,
    pub(super) ending: Ending,
    /// What the pins had when it ended: the next epoch begins with that.
    pub(super) pin: Writes,
    /// Which of these pins are volumes left in place.
    pub(super) in_place: Claims,
    /// What the last complete images have.
    pub(super) image: Writes,
    /// The claims of which there is a complete image.
    pub(super) made: Claims,
    /// The images that are asked for after the end.
    pub(super) last: [Last; MOST_CLAIMS],
    /// The claims of which a background copy is under way.
    pub(super) copying: Claims,
    /// What these copies have.
    pub(super) copied: Writes,
}

impl Tenure {
    fn code(&mut self, world: &World, coder: &mut Coder) {
        let extent = world.extent;
        extent.code_cluster(&mut self.owner, coder);
        coder.u8(&mut self.filled, world.claims.into());
        coder.bool(&mut self.revoked);
        coder.of(&mut self.ending, &ENDINGS);
        extent.code_writes(&mut self.pin, coder);
        coder.u8(&mut self.in_place, world.claims.into());
        extent.code_writes(&mut self.image, coder);
        coder.u8(&mut self.made, world.claims.into());
        for last in &mut self.last[..world.claims.into()] {
            coder.of(last, &LASTS);
        }
        if world.slow {
            coder.u8(&mut self.copying, world.claims.into());
            extent.code_writes(&mut self.copied, coder);
        }
    }

    fn any(world: &World, rng: &mut Rng) -> Tenure {
        let extent = world.extent;
        let mut last = [Last::None; MOST_CLAIMS];
        for last in &mut last[..world.claims.into()] {
            *last = LASTS[rng.below(LASTS.len())];
        }
        Tenure {
            owner: extent.any_cluster(rng),
            filled: world.any_claims(rng),
            revoked: rng.flip(),
            ending: ENDINGS[rng.below(ENDINGS.len())],
            pin: extent.any_writes(rng),
            in_place: world.any_claims(rng),
            image: extent.any_writes(rng),
            made: world.any_claims(rng),
            last,
            copying: if world.slow { world.any_claims(rng) } else { 0 },
            copied: if world.slow { extent.any_writes(rng) } else { 0 },
        }
    }
}

/// What is true of the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Unassigned,
    Granted,
    Revoking,
    Released,
    Fenced,
}

/// What the hub says of a copy whose owner was declared gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Mark {
    /// There is nothing to say.
    #[default]
    None,
    Unclosed,
    Diverged,
}

const MARKS: [Mark; 3] = [Mark::None, Mark::Unclosed, Mark::Diverged];

/// What a cluster sees in the Grant: whose it is, as far as that changes what its syncer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Seen {
    /// Another cluster has it, or nobody.
    #[default]
    NotMine,
    Granted,
    Revoking,
}

const SEEN: [Seen; 3] = [Seen::NotMine, Seen::Granted, Seen::Revoking];

/// The Grant in the cache of a syncer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct View {
    pub(super) epoch: u8,
    pub(super) seen: Seen,
}

/// The permit in the notes of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Running {
    /// 0: nothing is permitted.
    pub(super) epoch: u8,
    /// It names a boot before the present one.
    pub(super) lapsed: bool,
}

/// How far the volume of a claim is, for the epoch that is noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Stage {
    #[default]
    Missing,
    Filling,
    Filled,
}

const STAGES: [Stage; 3] = [Stage::Missing, Stage::Filling, Stage::Filled];

/// The process of the workload, and the lock of its volumes: whoever is past `None` has the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Process {
    #[default]
    None,
    /// The runtime has the lock.
    Locked,
    /// It has looked at the permit since, and starts this epoch next.
    Looked(u8),
    /// The process lives, and may write.
    Runs(u8),
}

/// The pod of the workload on a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Pod {
    #[default]
    Absent,
    Wanted,
    Leaving,
}

const PODS: [Pod; 3] = [Pod::Absent, Pod::Wanted, Pod::Leaving];

/// What one cluster knows, has and does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Cluster {
    /// None: the Grant is not in the cache.
    pub(super) view: Option<View>,
    /// The notes: the epoch that arrived last; 0 and nothing closed: there is no namespace.
    pub(super) epoch: u8,
    pub(super) released: u8,
    pub(super) running: Running,
    /// Whether anything was ever permitted.
    pub(super) ran: bool,
    /// A syncer has looked at the hub, and permits the noted epoch next.
    pub(super) permitting: bool,
    /// A syncer has seen that all is still, and closes this epoch next.
    pub(super) closing: u8,
    /// The reply to a permit was lost, and the syncer takes that for a refusal.
    pub(super) misled: bool,
    pub(super) stages: [Stage; MOST_CLAIMS],
    pub(super) volume: Writes,
    pub(super) process: Process,
    pub(super) pod: Pod,
    /// Without power.
    pub(super) off: bool,
    /// It was declared gone with writes that no pin has.
    pub(super) lost: bool,
    /// What the hub says of its copy.
    pub(super) mark: Mark,
}

impl Cluster {
    pub(super) fn has_namespace(&self) -> bool {
        self.epoch != 0 || self.released != 0
    }

    /// The epoch whose processes live.
    pub(super) fn runs(&self) -> u8 {
        match self.process {
            Process::Runs(epoch) => epoch,
            Process::None | Process::Locked | Process::Looked(_) => 0,
        }
    }

    fn code(&mut self, world: &World, coder: &mut Coder) {
        let extent = world.extent;
        code_view(&mut self.view, extent, coder);
        extent.code_epoch(&mut self.epoch, coder);
        extent.code_epoch(&mut self.released, coder);
        extent.code_epoch(&mut self.running.epoch, coder);
        coder.bool(&mut self.running.lapsed);
        coder.bool(&mut self.ran);
        coder.bool(&mut self.permitting);
        extent.code_epoch(&mut self.closing, coder);
        coder.bool(&mut self.misled);
        for stage in &mut self.stages[..world.claims.into()] {
            coder.of(stage, &STAGES);
        }
        extent.code_writes(&mut self.volume, coder);
        code_process(&mut self.process, extent, coder);
        coder.of(&mut self.pod, &PODS);
        coder.bool(&mut self.off);
        coder.bool(&mut self.lost);
        coder.of(&mut self.mark, &MARKS);
    }

    fn any(world: &World, rng: &mut Rng) -> Cluster {
        let extent = world.extent;
        let view = match extent.any_epoch(rng) {
            0 => View::default(),
            epoch => View { epoch, seen: SEEN[rng.below(SEEN.len())] },
        };
        let epoch = extent.any_epoch(rng).max(1);
        let process = match rng.below(4) {
            0 => Process::None,
            1 => Process::Locked,
            2 => Process::Looked(epoch),
            _ => Process::Runs(epoch),
        };
        let mut stages = [Stage::Missing; MOST_CLAIMS];
        for stage in &mut stages[..world.claims.into()] {
            *stage = STAGES[rng.below(STAGES.len())];
        }
        Cluster {
            view: rng.flip().then_some(view),
            epoch: extent.any_epoch(rng),
            released: extent.any_epoch(rng),
            running: Running { epoch: extent.any_epoch(rng), lapsed: rng.flip() },
            ran: rng.flip(),
            permitting: rng.flip(),
            closing: extent.any_epoch(rng),
            misled: rng.flip(),
            stages,
            volume: extent.any_writes(rng),
            process,
            pod: PODS[rng.below(PODS.len())],
            off: rng.flip(),
            lost: rng.flip(),
            mark: MARKS[rng.below(MARKS.len())],
        }
    }
}

fn code_view(view: &mut Option<View>, extent: Extent, coder: &mut Coder) {
    let mut known = view.is_some();
    let mut inner = view.unwrap_or_default();
    coder.bool(&mut known);
    extent.code_epoch(&mut inner.epoch, coder);
    coder.of(&mut inner.seen, &SEEN);
    *view = known.then_some(inner);
}

fn code_process(process: &mut Process, extent: Extent, coder: &mut Coder) {
    let (mut kind, mut epoch) = match *process {
        Process::None => (0, 0),
        Process::Locked => (1, 0),
        Process::Looked(epoch) => (2, epoch),
        Process::Runs(epoch) => (3, epoch),
    };
    coder.u8(&mut kind, 2);
    extent.code_epoch(&mut epoch, coder);
    *process = match kind {
        0 => Process::None,
        1 => Process::Locked,
        2 => Process::Looked(epoch),
        _ => Process::Runs(epoch),
    };
}

/// The whole of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    /// The epoch of the Grant; what else it says is in its tenure.
    pub(super) epoch: u8,
    pub(super) tenures: [Tenure; MOST_EPOCHS],
    /// Who is to have it: a cluster's place and one; 0: it does not say.
    pub(super) target: u8,
    /// Whether every claim of the namespace is listed; at first only the first one is.
    pub(super) all_listed: bool,
    /// Claims whose last image the Grant holds.
    pub(super) held: Claims,
    /// Of these, the ones that stay in place.
    pub(super) kept: Claims,
    pub(super) clusters: [Cluster; MOST_CLUSTERS],
    /// How many writes there were.
    pub(super) written: u8,
    /// Writes acknowledged and not declared lost.
    pub(super) must: Writes,
    /// Epochs for which somebody asked for a ForceRelease of their owner, a bit for each.
    pub(super) forced: u8,
    /// Those that were answered.
    pub(super) answered: u8,
    /// Where the user wants it, if that is kept.
    pub(super) wish: u8,
    pub(super) faults: u8,
}

pub(super) fn bit(epoch: u8) -> u8 {
    1 << (epoch - 1)
}

impl State {
    pub(super) fn tenure(&self, epoch: u8) -> &Tenure {
        &self.tenures[usize::from(epoch) - 1]
    }

    pub(super) fn tenure_mut(&mut self, epoch: u8) -> &mut Tenure {
        &mut self.tenures[usize::from(epoch) - 1]
    }

    pub(super) fn phase(&self) -> Phase {
        if self.epoch == 0 {
            return Phase::Unassigned;
        }
        let tenure = self.tenure(self.epoch);
        match tenure.ending {
            Ending::Released => Phase::Released,
            Ending::Fenced => Phase::Fenced,
            Ending::Open if tenure.revoked => Phase::Revoking,
            Ending::Open => Phase::Granted,
        }
    }

    /// Owned, and not given back.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.phase(), Phase::Granted | Phase::Revoking)
    }

    /// The owner, or the last one.
    pub(super) fn owner(&self) -> Option<usize> {
        (self.epoch != 0).then(|| self.tenure(self.epoch).owner.into())
    }

    pub(super) fn is_owned_by(&self, c: usize) -> bool {
        self.owner() == Some(c)
    }

    pub(super) fn is_forced(&self, c: usize, epoch: u8) -> bool {
        epoch != 0 && self.forced & bit(epoch) != 0 && usize::from(self.tenure(epoch).owner) == c
    }

    /// The pins that an epoch began with, and which of them are in place.
    pub(super) fn incoming(&self, epoch: u8) -> (Writes, Claims) {
        match epoch.checked_sub(2) {
            Some(before) => {
                let tenure = &self.tenures[usize::from(before)];
                (tenure.pin, tenure.in_place)
            }
            None => (0, 0),
        }
    }

    /// The pins of the Grant as it is now.
    pub(super) fn pins(&self) -> (Writes, Claims) {
        match self.phase() {
            Phase::Unassigned => (0, 0),
            Phase::Granted | Phase::Revoking => self.incoming(self.epoch),
            Phase::Released | Phase::Fenced => {
                let tenure = self.tenure(self.epoch);
                (tenure.pin, tenure.in_place)
            }
        }
    }

    /// What a cluster sees that looks at the hub now.
    pub(super) fn seen_by(&self, c: usize) -> View {
        let seen = match self.phase() {
            Phase::Granted if self.is_owned_by(c) => Seen::Granted,
            Phase::Revoking if self.is_owned_by(c) => Seen::Revoking,
            _ => Seen::NotMine,
        };
        View { epoch: self.epoch, seen }
    }

    /// Everything that a cluster could ever have seen, oldest first.
    pub(super) fn past_of(&self, c: usize, mut see: impl FnMut(View)) {
        see(View::default());
        for (epoch, tenure) in (1..=self.epoch).zip(&self.tenures) {
            let is_mine = usize::from(tenure.owner) == c;
            if is_mine {
                see(View { epoch, seen: Seen::Granted });
            }
            if is_mine && tenure.revoked {
                see(View { epoch, seen: Seen::Revoking });
            }
            if !is_mine || tenure.ending != Ending::Open {
                see(View { epoch, seen: Seen::NotMine });
            }
        }
    }
}

impl World {
    pub(super) fn any_claims(&self, rng: &mut Rng) -> Claims {
        rng.below(1 << self.claims) as Claims
    }

    pub(super) fn code_state(&self, state: &mut State, coder: &mut Coder) {
        let extent = self.extent;
        extent.code_epoch(&mut state.epoch, coder);
        for tenure in &mut state.tenures[..extent.epochs.into()] {
            tenure.code(self, coder);
        }
        coder.u8(&mut state.target, width(extent.clusters));
        coder.bool(&mut state.all_listed);
        coder.u8(&mut state.held, self.claims.into());
        coder.u8(&mut state.kept, self.claims.into());
        for cluster in &mut state.clusters[..extent.clusters] {
            cluster.code(self, coder);
        }
        coder.u8(&mut state.written, width(extent.writes.into()));
        extent.code_writes(&mut state.must, coder);
        coder.u8(&mut state.forced, extent.epochs.into());
        coder.u8(&mut state.answered, extent.epochs.into());
        extent.code_cluster(&mut state.wish, coder);
        coder.u8(&mut state.faults, self.faults.map_or(0, |faults| width(faults.into())));
    }

    /// The same state with cluster `c` called `places[c]`.
    pub(super) fn rename(&self, state: &State, places: &[usize]) -> State {
        let mut renamed = state.clone();
        for tenure in &mut renamed.tenures[..state.epoch.into()] {
            tenure.owner = places[usize::from(tenure.owner)] as u8;
        }
        for (c, cluster) in state.clusters[..self.extent.clusters].iter().enumerate() {
            renamed.clusters[places[c]] = *cluster;
        }
        if let Some(target) = usize::from(state.target).checked_sub(1) {
            renamed.target = places[target] as u8 + 1;
        }
        if self.faults.is_some() {
            renamed.wish = places[usize::from(state.wish)] as u8;
        }
        renamed
    }

    pub(super) fn any_state(&self, rng: &mut Rng) -> State {
        let extent = self.extent;
        let mut state = State {
            epoch: extent.any_epoch(rng),
            target: rng.below(extent.clusters + 1) as u8,
            all_listed: rng.flip(),
            held: self.any_claims(rng),
            kept: self.any_claims(rng),
            written: rng.below(usize::from(extent.writes) + 1) as u8,
            must: extent.any_writes(rng),
            forced: rng.below(1 << extent.epochs) as u8,
            answered: rng.below(1 << extent.epochs) as u8,
            wish: if self.faults.is_some() { extent.any_cluster(rng) } else { 0 },
            faults: self.faults.map_or(0, |faults| rng.below(usize::from(faults) + 1) as u8),
            ..State::default()
        };
        for tenure in &mut state.tenures[..state.epoch.into()] {
            *tenure = Tenure::any(self, rng);
        }
        for cluster in &mut state.clusters[..extent.clusters] {
            *cluster = Cluster::any(self, rng);
        }
        state
    }
}
