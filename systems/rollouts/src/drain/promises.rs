//! What a drain promises, and the rules whose loss each promise must notice.

use super::state::{Cluster, MOST_CLUSTERS, Phase, Space, Stage};
use super::{RolloutsDrain, Rules, State};
use interlock_checker::{Formula, Invariant, Mutant, Property, Reachable};

impl RolloutsDrain {
    /// No cluster for which this is so has a namespace.
    fn none_held_where(&self, counts: fn(&Cluster) -> bool) -> impl Fn(&State) -> bool + use<> {
        let spaces = self.spaces;
        move |s: &State| {
            let is_held = |c: usize| s.spaces[..spaces].iter().any(|space| space.is_held_by(c));
            (0..MOST_CLUSTERS).all(|c| !counts(&s.clusters[c]) || !is_held(c))
        }
    }

    pub(super) fn all_invariants(&self) -> Vec<Invariant<State>> {
        let unavailable = self.unavailable;
        vec![
            Invariant::new(
                "DrainedIsEmpty",
                "no namespace is granted to a cluster that is drained",
                self.none_held_where(|cluster| cluster.drains & cluster.drained != 0),
            ),
            Invariant::new(
                "UpdatedIsEmpty",
                "no namespace is granted to a cluster that is being updated",
                self.none_held_where(|cluster| cluster.stage == Stage::Updating),
            ),
            Invariant::new(
                "FleetBudget",
                "no more clusters are out of service than the fleet allows",
                move |s: &State| {
                    let is_out = |it: &&Cluster| it.drains != 0 || it.stage == Stage::Updating;
                    s.clusters.iter().filter(is_out).count() <= unavailable
                },
            )
            .unbreakable_if(unavailable >= self.clusters, "all clusters may be out of service"),
        ]
    }

    pub(super) fn all_reachable(&self) -> Vec<Reachable<State>> {
        let (clusters, spaces) = (self.clusters, self.spaces);
        let mut reachable =
            vec![Reachable::new("Updated", "a cluster is updated under a drain", |s: &State| {
                s.clusters.iter().any(|it| it.stage == Stage::Updating && it.drains != 0)
            })];
        if spaces >= clusters && self.unavailable >= clusters {
            reachable.push(Reachable::new(
                "Stuck",
                "each cluster drains, and has a namespace that no other one takes",
                move |s: &State| {
                    (0..clusters).all(|c| {
                        let is_held = s.spaces[..spaces].iter().any(|space| space.is_held_by(c));
                        s.clusters[c].drains != 0 && is_held
                    })
                },
            ));
        }
        reachable
    }

    pub(super) fn all_properties(&self) -> Vec<Property<State>> {
        let clusters = 0..self.clusters;
        let mut properties = vec![
            Property::for_all(
                "EveryReqIsProcessed",
                "every request ends",
                clusters.clone().map(|c| {
                    Formula::leads_to(
                        move |s: &State| s.clusters[c].stage == Stage::Queued,
                        move |s: &State| s.clusters[c].stage == Stage::Ended,
                    )
                }),
            ),
            Property::for_all(
                "DrainsEnd",
                "every drain is taken off",
                clusters.map(|c| {
                    Formula::leads_to(
                        move |s: &State| s.clusters[c].drains != 0,
                        move |s: &State| s.clusters[c].drains == 0,
                    )
                }),
            ),
        ];
        if self.unavailable < self.clusters {
            properties.push(Property::for_all(
                "EverySpaceRuns",
                "every namespace is granted again",
                (0..self.spaces).map(|n| {
                    let runs = move |s: &State| Space::runs(&s.spaces[n]);
                    Formula::leads_to(move |s: &State| s.spaces[n].phase != Phase::Granted, runs)
                }),
            ));
        }
        properties
    }

    pub(super) fn all_mutants(&self) -> Vec<Mutant<Self>> {
        let mutant = |name, sentence, broken, change: fn(&mut Rules)| {
            let least = RolloutsDrain {
                requests: self.requests.max(2),
                unavailable: 1,
                flaps: self.flaps.max(1),
                ..self.clone()
            };
            Mutant::new(name, sentence, &[broken], least.without(change))
        };
        let stuck = RolloutsDrain {
            clusters: 2,
            spaces: 2,
            requests: 1,
            unavailable: 2,
            flaps: 0,
            ..self.clone()
        };
        vec![
            mutant(
                "blind-to-drains",
                "the scheduler grants to a cluster without asking whether it drains",
                DRAINED,
                |rules| rules.sees_drains = false,
            ),
            mutant(
                "target-after-look",
                "a cluster is read live before it is noted as the target",
                DRAINED,
                |rules| rules.target_first = false,
            ),
            mutant(
                "drained-from-cache",
                "a cluster is drained without a live list of Grants",
                DRAINED,
                |rules| rules.live_list = false,
            ),
            mutant(
                "in-place-uncounted",
                "a cluster is drained while it keeps volumes in place",
                DRAINED,
                |rules| rules.counts_in_place = false,
            ),
            mutant(
                "drain-not-named",
                "Drained of an earlier drain counts for a later one",
                "UpdatedIsEmpty",
                |rules| rules.names_drain = false,
            ),
            mutant(
                "drained-uncounted",
                "a cluster that still drains is not out of service",
                "FleetBudget",
                |rules| rules.counts_drained = false,
            ),
            Mutant::new(
                "drain-left",
                "a drain is not taken off",
                &["DrainsEnd"],
                self.without(|rules| rules.ends_drain = false),
            ),
            Mutant::new(
                "no-start-deadline",
                "a request waits for its drain for ever",
                &["EveryReqIsProcessed"],
                stuck.without(|rules| rules.deadline = false),
            ),
        ]
    }
}

const DRAINED: &str = "DrainedIsEmpty";
