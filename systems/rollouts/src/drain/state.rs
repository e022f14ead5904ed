//! The variables of a drain, how they are packed and how they are shown.

use super::RolloutsDrain;
use interlock_checker::symmetry::{arrangement, arrangements};
use interlock_checker::{Coder, Rng};

pub(super) const MOST_CLUSTERS: usize = 3;
pub(super) const MOST_SPACES: usize = 2;
pub(super) const CLUSTERS: [&str; MOST_CLUSTERS] = ["a", "b", "c"];
pub(super) const SPACES: [&str; MOST_SPACES] = ["n", "m"];

/// A cluster by its place, or none.
pub(super) type Place = Option<u8>;

/// The phase of a Grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    #[default]
    Granted,
    Revoking,
    Released,
}

const PHASES: [Phase; 3] = [Phase::Granted, Phase::Revoking, Phase::Released];

/// The cluster that the scheduler has read live and is about to grant to; a write on the Grant since makes it outdated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Look {
    pub(super) cluster: Place,
    pub(super) is_fresh: bool,
}

/// A placed namespace: its Grant, and what the scheduler is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Space {
    pub(super) phase: Phase,
    pub(super) owner: u8,
    pub(super) target: Place,
    /// The cluster that keeps its volumes in place.
    pub(super) pin: Place,
    pub(super) look: Look,
}

impl Space {
    pub(super) fn runs(&self) -> bool {
        self.phase == Phase::Granted
    }

    pub(super) fn is_held_by(&self, c: usize) -> bool {
        self.phase != Phase::Released && usize::from(self.owner) == c
    }
}

/// Where the present request of a cluster is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Stage {
    #[default]
    None,
    Queued,
    Updating,
    Ended,
}

const STAGES: [Stage; 4] = [Stage::None, Stage::Queued, Stage::Updating, Stage::Ended];

/// The drains for which the clusters controller has seen the cluster empty, and is about to write so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Empty {
    pub(super) drains: u8,
    pub(super) is_fresh: bool,
}

/// A cluster, its drains (a bit for each request), and its present request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Cluster {
    pub(super) drains: u8,
    /// The drains that Drained names.
    pub(super) drained: u8,
    pub(super) empty: Empty,
    /// 0: there was none yet.
    pub(super) request: u8,
    pub(super) stage: Stage,
}

impl Cluster {
    pub(super) fn is_at_work(&self) -> bool {
        matches!(self.stage, Stage::Queued | Stage::Updating)
    }

    /// The bit of the drain of its present request; 0 where there is no request.
    pub(super) fn own_drain(&self) -> u8 {
        (1 << self.request) >> 1
    }
}

/// The variables of the specification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    pub(super) spaces: [Space; MOST_SPACES],
    pub(super) clusters: [Cluster; MOST_CLUSTERS],
    pub(super) flaps: u8,
}

fn code_place(coder: &mut Coder, place: &mut Place) {
    let mut number = place.map_or(0, |c| c + 1);
    coder.u8(&mut number, 2);
    *place = number.checked_sub(1);
}

impl State {
    pub(super) fn code(&mut self, model: &RolloutsDrain, coder: &mut Coder) {
        let requests = u32::from(model.requests);
        for space in &mut self.spaces[..model.spaces] {
            coder.of(&mut space.phase, &PHASES);
            coder.u8(&mut space.owner, 2);
            code_place(coder, &mut space.target);
            code_place(coder, &mut space.pin);
            code_place(coder, &mut space.look.cluster);
            coder.bool(&mut space.look.is_fresh);
        }
        for cluster in &mut self.clusters[..model.clusters] {
            coder.u8(&mut cluster.drains, requests);
            coder.u8(&mut cluster.drained, requests);
            coder.u8(&mut cluster.empty.drains, requests);
            coder.bool(&mut cluster.empty.is_fresh);
            coder.u8(&mut cluster.request, 2);
            coder.of(&mut cluster.stage, &STAGES);
        }
        coder.u8(&mut self.flaps, 2);
    }

    pub(super) fn describe(&self, model: &RolloutsDrain) -> Vec<(&'static str, String)> {
        let of_spaces = |show: &dyn Fn(&Space) -> String| {
            let all = self.spaces[..model.spaces].iter().zip(SPACES);
            function(all.map(|(space, name)| format!("{name} |-> {}", show(space))))
        };
        let of_clusters = |show: &dyn Fn(&Cluster) -> String| {
            let all = self.clusters[..model.clusters].iter().zip(CLUSTERS);
            function(all.map(|(cluster, name)| format!("{name} |-> {}", show(cluster))))
        };
        vec![
            ("gr", of_spaces(&show_grant)),
            (
                "look",
                of_spaces(&|space| {
                    let Look { cluster, is_fresh } = space.look;
                    format!("[c |-> {}, ok |-> {}]", show_place(cluster), boolean(is_fresh))
                }),
            ),
            ("drains", of_clusters(&|cluster| show_drains(cluster.drains))),
            ("drained", of_clusters(&|cluster| show_drains(cluster.drained))),
            (
                "emp",
                of_clusters(&|cluster| {
                    let Empty { drains, is_fresh } = cluster.empty;
                    format!("[d |-> {}, ok |-> {}]", show_drains(drains), boolean(is_fresh))
                }),
            ),
            ("req", of_clusters(&|cluster| cluster.request.to_string())),
            ("st", of_clusters(&|cluster| format!("\"{:?}\"", cluster.stage))),
            ("flaps", self.flaps.to_string()),
        ]
    }

    /// The state with clusters and namespaces renamed, in the `number`-th way of all.
    pub(super) fn permuted(&self, model: &RolloutsDrain, number: usize) -> State {
        let of_clusters = arrangements(model.clusters);
        let clusters: [_; MOST_CLUSTERS] = arrangement(model.clusters, number % of_clusters);
        let spaces: [_; MOST_SPACES] = arrangement(model.spaces, number / of_clusters);
        let cluster = |c: u8| clusters[usize::from(c)] as u8;
        let mut image = self.clone();
        for (n, space) in self.spaces[..model.spaces].iter().enumerate() {
            image.spaces[spaces[n]] = Space {
                phase: space.phase,
                owner: cluster(space.owner),
                target: space.target.map(cluster),
                pin: space.pin.map(cluster),
                look: Look { cluster: space.look.cluster.map(cluster), ..space.look },
            };
        }
        for c in 0..model.clusters {
            image.clusters[clusters[c]] = self.clusters[c];
        }
        image
    }

    pub(super) fn arbitrary(model: &RolloutsDrain, rng: &mut Rng) -> State {
        let place = |rng: &mut Rng| (rng.below(model.clusters + 1) as u8).checked_sub(1);
        let drains = |rng: &mut Rng| rng.below(1 << model.requests) as u8;
        let flaps = rng.below(usize::from(model.flaps) + 1) as u8;
        let mut state = State { flaps, ..State::default() };
        for space in &mut state.spaces[..model.spaces] {
            *space = Space {
                phase: PHASES[rng.below(PHASES.len())],
                owner: rng.below(model.clusters) as u8,
                target: place(rng),
                pin: place(rng),
                look: Look { cluster: place(rng), is_fresh: rng.flip() },
            };
        }
        for cluster in &mut state.clusters[..model.clusters] {
            *cluster = Cluster {
                drains: drains(rng),
                drained: drains(rng),
                empty: Empty { drains: drains(rng), is_fresh: rng.flip() },
                request: rng.below(usize::from(model.requests) + 1) as u8,
                stage: STAGES[rng.below(STAGES.len())],
            };
        }
        state
    }
}

fn function(entries: impl Iterator<Item = String>) -> String {
    format!("[{}]", entries.collect::<Vec<_>>().join(", "))
}

fn boolean(value: bool) -> &'static str {
    if value { "TRUE" } else { "FALSE" }
}

fn show_place(place: Place) -> String {
    format!("\"{}\"", place.map_or("none", |c| CLUSTERS[usize::from(c)]))
}

fn show_drains(drains: u8) -> String {
    let all = (0..u8::BITS).filter(|d| drains & 1 << d != 0).map(|d| (d + 1).to_string());
    format!("{{{}}}", all.collect::<Vec<_>>().join(", "))
}

fn show_grant(space: &Space) -> String {
    format!(
        "[ph |-> \"{:?}\", own |-> {}, tgt |-> {}, pin |-> {}]",
        space.phase,
        show_place(Some(space.owner)),
        show_place(space.target),
        show_place(space.pin)
    )
}
