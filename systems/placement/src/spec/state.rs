//! The state of a move: the hub's record and its past, and what each cluster knows and has.

use super::hub::{
    Extent, Hub, MOST_EPOCHS, Past, PinOfGrant, Writes, show_bool, show_set, show_writes, width,
};
use super::{Placement, name_of};
use interlock_checker::{Coder, Rng};

/// The most clusters that fit in the packed state.
pub(crate) const MOST_CLUSTERS: usize = 3;

/// What one cluster knows, has and does; the names of the specification in brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Cluster {
    /// What its syncer last saw of the hub (`view`).
    pub(crate) view: Hub,
    /// The highest epoch closed here (`rel`).
    pub(crate) released: u8,
    /// The epoch that may start now (`perm`).
    pub(crate) permitted: u8,
    /// The epoch whose processes live (`run`).
    pub(crate) running: u8,
    /// The epoch that a node would restart by itself (`was`).
    pub(crate) restarts: u8,
    /// Without power (`off`).
    pub(crate) off: bool,
    /// The epoch whose filling began (`fil`).
    pub(crate) filling: u8,
    /// The epoch that the volume is filled for (`pop`).
    pub(crate) filled: u8,
    /// The epoch that has its final copy (`fin`).
    pub(crate) copied: u8,
    /// What is in the volume (`vol`).
    pub(crate) volume: Writes,
}

impl Cluster {
    fn code(&mut self, extent: Extent, coder: &mut Coder) {
        self.view.code(extent, coder);
        extent.code_epoch(&mut self.released, coder);
        extent.code_epoch(&mut self.permitted, coder);
        extent.code_epoch(&mut self.running, coder);
        extent.code_epoch(&mut self.restarts, coder);
        coder.bool(&mut self.off);
        extent.code_epoch(&mut self.filling, coder);
        extent.code_epoch(&mut self.filled, coder);
        extent.code_epoch(&mut self.copied, coder);
        extent.code_writes(&mut self.volume, coder);
    }

    fn any(extent: Extent, rng: &mut Rng) -> Cluster {
        Cluster {
            view: Hub::any(extent, rng),
            released: extent.any_epoch(rng),
            permitted: extent.any_epoch(rng),
            running: extent.any_epoch(rng),
            restarts: extent.any_epoch(rng),
            off: rng.flip(),
            filling: extent.any_epoch(rng),
            filled: extent.any_epoch(rng),
            copied: extent.any_epoch(rng),
            volume: extent.any_writes(rng),
        }
    }
}

/// The image of an epoch (`img`, `made`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Image {
    pub(crate) writes: Writes,
    pub(crate) made: bool,
}

/// The whole of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct State {
    pub(crate) hub: Hub,
    /// Every value the hub had, where a syncer may list them (`hist`).
    pub(crate) past: Past,
    pub(crate) clusters: [Cluster; MOST_CLUSTERS],
    /// Of epoch 1 and on; epoch 0 has none.
    images: [Image; MOST_EPOCHS],
    /// How many writes there were (`nw`).
    pub(crate) written: u8,
    /// Writes acknowledged and not declared lost (`must`).
    pub(crate) must: Writes,
    /// ForceReleases asked for, a bit for each cluster and epoch (`force`).
    forced: u16,
    pub(crate) faults: u8,
}

impl State {
    pub(crate) fn image(&self, epoch: u8) -> Image {
        self.images[usize::from(epoch) - 1]
    }

    pub(crate) fn set_image(&mut self, epoch: u8, writes: Writes) {
        self.images[usize::from(epoch) - 1] = Image { writes, made: true };
    }

    pub(crate) fn is_forced(&self, cluster: usize, epoch: u8) -> bool {
        epoch != 0 && self.forced & force_bit(cluster, epoch) != 0
    }

    pub(crate) fn force(&mut self, cluster: usize, epoch: u8) {
        self.forced |= force_bit(cluster, epoch);
    }
}

fn force_bit(cluster: usize, epoch: u8) -> u16 {
    1 << (cluster * MOST_EPOCHS + usize::from(epoch) - 1)
}

impl Placement {
    /// The epochs that are remembered.
    pub(super) fn epochs_past(&self, state: &State) -> u8 {
        if self.relist { state.hub.epoch } else { 0 }
    }

    pub(super) fn code_state(&self, state: &mut State, coder: &mut Coder) {
        let extent = self.extent;
        state.hub.code(extent, coder);
        if self.relist {
            state.past.code(extent, state.hub.epoch, PinOfGrant::Inherited, coder);
        }
        for cluster in &mut state.clusters[..extent.clusters] {
            cluster.code(extent, coder);
        }
        for image in &mut state.images[..extent.epochs.into()] {
            extent.code_writes(&mut image.writes, coder);
            coder.bool(&mut image.made);
        }
        coder.u8(&mut state.written, width(extent.writes.into()));
        extent.code_writes(&mut state.must, coder);
        coder.u16(&mut state.forced, (extent.clusters * MOST_EPOCHS) as u32);
        coder.u8(&mut state.faults, self.faults.map_or(0, |faults| width(faults.into())));
    }

    /// The same state with cluster `c` called `places[c]`.
    pub(super) fn rename(&self, state: &State, places: &[usize]) -> State {
        let mut renamed = State {
            hub: state.hub.renamed(places),
            past: state.past.renamed(self.epochs_past(state), places),
            forced: 0,
            ..state.clone()
        };
        for (c, cluster) in state.clusters[..self.extent.clusters].iter().enumerate() {
            let to = places[c];
            renamed.clusters[to] = Cluster { view: cluster.view.renamed(places), ..*cluster };
            for epoch in (1..=self.extent.epochs).filter(|epoch| state.is_forced(c, *epoch)) {
                renamed.force(to, epoch);
            }
        }
        renamed
    }

    pub(super) fn any_state(&self, rng: &mut Rng) -> State {
        let extent = self.extent;
        let mut state = State { hub: Hub::any(extent, rng), ..State::default() };
        state.past = Past::any(extent, self.epochs_past(&state), PinOfGrant::Inherited, rng);
        for (c, cluster) in state.clusters[..extent.clusters].iter_mut().enumerate() {
            *cluster = Cluster::any(extent, rng);
            for epoch in (1..=extent.epochs).filter(|_| rng.flip()) {
                state.forced |= force_bit(c, epoch);
            }
        }
        for image in &mut state.images[..extent.epochs.into()] {
            *image = Image { writes: extent.any_writes(rng), made: rng.flip() };
        }
        state.written = rng.below(usize::from(extent.writes) + 1) as u8;
        state.must = extent.any_writes(rng);
        state.faults = self.faults.map_or(0, |faults| rng.below(usize::from(faults) + 1) as u8);
        state
    }

    pub(super) fn show(&self, state: &State) -> Vec<(&'static str, String)> {
        let Extent { clusters, epochs, .. } = self.extent;
        let per_cluster = |value: &dyn Fn(&Cluster) -> String| {
            let one = |c: usize| format!("{} :> {}", name_of(c), value(&state.clusters[c]));
            format!("({})", (0..clusters).map(one).collect::<Vec<_>>().join(" @@ "))
        };
        let epoch = |field: &dyn Fn(&Cluster) -> u8| per_cluster(&|c| field(c).to_string());
        let per_epoch = |zero: &str, value: &dyn Fn(u8) -> String| {
            let rest = (1..=epochs).map(|e| format!(" @@ {e} :> {}", value(e)));
            format!("(0 :> {zero}{})", rest.collect::<String>())
        };
        let asked = |c: usize| {
            (1..=epochs)
                .filter(move |epoch| state.is_forced(c, *epoch))
                .map(move |epoch| format!("<<{}, {epoch}>>", name_of(c)))
        };
        let mut variables = vec![
            ("hub", state.hub.show()),
            ("hist", state.past.show(self.epochs_past(state))),
            ("view", per_cluster(&|c| c.view.show())),
            ("rel", epoch(&|c| c.released)),
            ("perm", epoch(&|c| c.permitted)),
            ("run", epoch(&|c| c.running)),
            ("was", epoch(&|c| c.restarts)),
            ("off", per_cluster(&|c| show_bool(c.off).to_owned())),
            ("fil", epoch(&|c| c.filling)),
            ("pop", epoch(&|c| c.filled)),
            ("fin", epoch(&|c| c.copied)),
            ("vol", per_cluster(&|c| show_writes(c.volume))),
            ("img", per_epoch("{}", &|e| show_writes(state.image(e).writes))),
            ("made", per_epoch("FALSE", &|e| show_bool(state.image(e).made).to_owned())),
            ("nw", state.written.to_string()),
            ("must", show_writes(state.must)),
            ("force", show_set((0..clusters).flat_map(asked))),
        ];
        if self.faults.is_some() {
            variables.push(("faults", state.faults.to_string()));
        }
        variables
    }
}
