//! What a move promises: of every state, of every step, and in the end.

use super::hub::Phase;
use super::state::State;
use super::steps::{FAIR, FENCE};
use super::{Placement, name_of};
use interlock_checker::{Fairness, Formula, Invariant, Property, StepRule};

/// What a label says of a cluster, in the words of the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Nil,
    Empty,
    Sync,
}

impl State {
    /// The seed's `ns[c]`: what the hub's record means for one cluster.
    fn namespace_label(&self, c: usize) -> Label {
        if !self.hub.is_owned_by(c) || !self.hub.is_held() {
            return Label::Nil;
        }
        let is_filled = self.clusters[c].filled == self.hub.epoch;
        if is_filled && self.hub.phase == Phase::Granted { Label::Sync } else { Label::Empty }
    }

    /// The seed's `pvc_state[c]`: whether the cluster uses the volume.
    fn volume_label(&self, c: usize) -> Label {
        if self.clusters[c].running == 0 { Label::Nil } else { Label::Sync }
    }

    fn is_still(&self) -> bool {
        self.clusters.iter().all(|cluster| cluster.running == 0)
    }
}

impl Placement {
    pub(super) fn all_invariants(&self) -> Vec<Invariant<State>> {
        let mut invariants = protocol_invariants();
        invariants.extend(seed_invariants(self.extent.clusters));
        invariants
    }

    pub(super) fn all_properties(&self) -> Vec<Property<State>> {
        if self.faults.is_none() {
            return Vec::new();
        }
        let runs = |c: usize| {
            Formula::leads_to(
                move |s: &State| s.hub.is_owned_by(c) && s.hub.phase == Phase::Granted,
                move |s: &State| {
                    s.clusters[c].running == s.hub.epoch
                        || s.hub.phase != Phase::Granted
                        || !s.hub.is_owned_by(c)
                },
            )
        };
        vec![
            Property::new(
                "RevokeEnds",
                "a revocation ends",
                Formula::leads_to(
                    |s: &State| s.hub.phase == Phase::Revoking,
                    |s: &State| s.hub.phase != Phase::Revoking,
                ),
            ),
            Property::for_all(
                "GrantRuns",
                "a grant runs, unless it is taken back",
                (0..self.extent.clusters).map(runs),
            ),
        ]
    }

    pub(super) fn all_fairness(&self) -> Vec<Fairness> {
        if self.faults.is_none() {
            return Vec::new();
        }
        let mut fairness = vec![Fairness::weak("Fence", [FENCE])];
        for c in 0..self.extent.clusters {
            for at in FAIR {
                let name = format!("{at:?}({})", name_of(c));
                fairness.push(Fairness::weak(name, [self.id(at, c)]));
            }
        }
        fairness
    }
}

fn protocol_invariants() -> Vec<Invariant<State>> {
    vec![
        Invariant::new(
            "UsableByAtMostOne",
            "at most one cluster runs the namespace",
            |s: &State| s.clusters.iter().filter(|cluster| cluster.running != 0).count() <= 1,
        ),
        Invariant::new(
            "OnlyTheOwnerRuns",
            "whoever runs is the owner, in the present epoch",
            |s: &State| {
                s.clusters.iter().enumerate().all(|(c, cluster)| {
                    cluster.running == 0 || s.hub.is_owned_by(c) && s.hub.epoch == cluster.running
                })
            },
        ),
        Invariant::new(
            "NoLoss",
            "an owner that runs has every write that was acknowledged and not declared lost",
            |s: &State| {
                s.clusters.iter().all(|cluster| {
                    cluster.running == 0
                        || cluster.running != s.hub.epoch
                        || s.must & !cluster.volume == 0
                })
            },
        ),
        Invariant::new("ReleasedIsStill", "between two owners nobody runs", |s: &State| {
            s.hub.is_held() || s.is_still()
        }),
        Invariant::new(
            "PinsHaveEveryWrite",
            "between two owners the pinned images have every write not declared lost",
            |s: &State| s.hub.is_held() || s.must & !s.hub.pin == 0,
        ),
        Invariant::new("ClosedIsStill", "a closed epoch does not run", |s: &State| {
            s.clusters.iter().all(|c| c.running == 0 || c.running > c.released)
        }),
    ]
}

/// The seed's own, as its author meant them, over the seed's variables as the protocol has them.
fn seed_invariants(clusters: usize) -> Vec<Invariant<State>> {
    let most_one =
        move |label: &dyn Fn(usize) -> bool| (0..clusters).filter(|c| label(*c)).count() <= 1;
    vec![
        Invariant::new(
            "Inv_NSAtMostOneCluster",
            "the namespace is assigned to at most one cluster",
            move |s: &State| most_one(&|c| s.namespace_label(c) != Label::Nil),
        )
        .unbreakable("one record names one owner, so no state assigns the namespace twice"),
        Invariant::new(
            "Inv_UsableByAtMostOne",
            "at most one cluster believes that it may use the volume",
            move |s: &State| most_one(&|c| s.volume_label(c) == Label::Sync),
        ),
    ]
}

pub(super) fn step_rules() -> Vec<StepRule<State>> {
    let is_fence = |from: &State, to: &State| from.hub.is_held() && to.hub.phase == Phase::Fenced;
    vec![
        StepRule::new(
            "LossIsDeclared",
            "an acknowledged write is given up only by a fence, which says so",
            move |from: &State, to: &State| from.must & !to.must == 0 || is_fence(from, to),
        ),
        StepRule::new(
            "EpochOnlyGrows",
            "no epoch is used twice, and each new owner has a new one",
            |from: &State, to: &State| {
                let (old, new) = (from.hub, to.hub);
                let changes_hands = old.epoch == 0 && new.epoch != 0 || old.owner != new.owner;
                new.epoch >= old.epoch && (!changes_hands || new.epoch == old.epoch + 1)
            },
        ),
        StepRule::new(
            "ReleasedNeverFalls",
            "a closed epoch stays closed",
            |from: &State, to: &State| {
                from.clusters
                    .iter()
                    .zip(&to.clusters)
                    .all(|(old, new)| new.released >= old.released)
            },
        ),
        StepRule::new(
            "ForceIsExact",
            "a ForceRelease ends only the grant that it names, by owner and epoch",
            move |from: &State, to: &State| {
                let (old, new) = (from.hub, to.hub);
                !is_fence(from, to)
                    || from.is_forced(old.owner.into(), old.epoch)
                        && (new.owner, new.epoch) == (old.owner, old.epoch)
            },
        ),
    ]
}
