//! What the controllers promise: of every state, of every step, and in the end.

use super::World;
use super::actions::{Actor, At};
use super::state::{Ending, Mark, Phase, State, bit};
use crate::spec::name_of;
use interlock_checker::{Fairness, Formula, Invariant, Property, Reachable, StepRule};

/// Whether a step declares an owner gone.
fn is_fence(from: &State, to: &State) -> bool {
    from.is_held() && to.epoch == from.epoch && to.phase() == Phase::Fenced
}

impl World {
    pub(super) fn why(&self, name: &str) -> Option<&'static str> {
        let family = name.split('(').next().unwrap_or(name);
        match family {
            "Inv_NSAtMostOneCluster" => Some(
                "the seed wrote one label per cluster; one Grant with one owner leaves nothing \
                 that could break it",
            ),
            "AskForce" | "Fence" | "Answer" | "PowerOff" | "PowerOn" | "SettleCopy"
                if !self.force =>
            {
                Some("this size has no power loss and no ForceRelease")
            }
            "Relist" if !self.relist || !self.crash => {
                Some("in this size a syncer never lists the past")
            }
            "Crash" if self.relist => Some("each crash is followed by a list: see Relist"),
            "Answer" if self.faults.is_none() => Some("nothing rests on the answer"),
            "Crash" | "RuntimeCrash" if !self.crash => Some("in this size nothing crashes"),
            "Wish" | "Target" if self.faults.is_none() => {
                Some("with any number of wishes, every wish may come at any time")
            }
            "Exit" if self.faults.is_some() => {
                Some("a process that ends and starts again has nothing to wait for")
            }
            "BeginCopy" if !self.slow => Some("in this size a background copy takes no time"),
            "ListClaims" if self.claims == 1 => Some("in this size no claim is added"),
            _ if self.extent.clusters == 1 => Some("one cluster moves nothing"),
            _ if self.extent.epochs == 1 => Some("one epoch moves nothing"),
            _ => None,
        }
    }

    pub(super) fn all_invariants(&self) -> Vec<Invariant<State>> {
        let mut invariants = invariants_of_owners(self.extent.clusters);
        invariants.extend(invariants_of_data());
        invariants.extend(seed_invariants(self.extent.clusters));
        invariants
    }

    pub(super) fn all_step_rules(&self) -> Vec<StepRule<State>> {
        let mut rules = rules_of_epochs();
        rules.extend(rules_of_force());
        let unfit = self.unfit.then_some(self.extent.clusters);
        rules.push(StepRule::new(
            "RevokedForATarget",
            "nothing is stopped for a cluster that cannot take it",
            move |from: &State, to: &State| {
                let is_revoked = from.phase() == Phase::Granted && to.phase() == Phase::Revoking;
                !is_revoked || to.target != 0 && Some(usize::from(to.target)) != unfit
            },
        ));
        rules.push(StepRule::new(
            "InPlaceStays",
            "volumes that were left in place are granted to their own cluster only",
            |from: &State, to: &State| {
                let is_granted = to.epoch == from.epoch + 1;
                !is_granted || from.pins().1 == 0 || from.owner() == to.owner()
            },
        ));
        rules
    }

    pub(super) fn all_reachable(&self) -> Vec<Reachable<State>> {
        let runs_second =
            |s: &State| s.epoch >= 2 && s.clusters.iter().any(|cluster| cluster.runs() == 2);
        let mut reachable = Vec::new();
        // A move begins with another wish; a force with a power loss and somebody who asks.
        let may_move = self.extent.epochs >= 2 && self.faults.is_none_or(|faults| faults >= 1);
        let may_force = self.force && self.faults.is_none_or(|faults| faults >= 2);
        if may_move && self.extent.clusters >= 2 && !self.unfit {
            reachable.push(Reachable::new(
                "MoveEnds",
                "a namespace comes to run on another cluster, with what was written before",
                move |s: &State| {
                    runs_second(s)
                        && s.tenures[0].owner != s.tenures[1].owner
                        && s.tenures[0].pin != 0
                },
            ));
        }
        if may_force && self.extent.epochs >= 2 {
            reachable.push(Reachable::new(
                "ForceEnds",
                "a namespace runs again after its owner was declared gone",
                move |s: &State| runs_second(s) && s.tenures[0].ending == Ending::Fenced,
            ));
        }
        if may_force {
            reachable.push(Reachable::new(
                "DivergedIsKnown",
                "a copy with writes that no image has is marked as such",
                |s: &State| s.clusters.iter().any(|c| c.lost && c.mark == Mark::Diverged),
            ));
        }
        let may_return = may_move && self.faults.is_none_or(|faults| faults >= 2);
        if may_return && self.extent.clusters >= 2 && !self.unfit {
            reachable.push(Reachable::new(
                "WishComesBack",
                "a namespace stays in place when the wish comes back, and runs again",
                move |s: &State| runs_second(s) && s.tenures[0].in_place != 0,
            ));
        }
        // With no writes there is nothing to have or to lose.
        reachable.retain(|_| self.extent.writes > 0);
        reachable
    }

    pub(super) fn all_properties(&self) -> Vec<Property<State>> {
        if self.faults.is_none() {
            return Vec::new();
        }
        let clusters = || 0..self.extent.clusters;
        let epochs = self.extent.epochs;
        let unfit = self.unfit.then(|| self.extent.clusters - 1);
        let is_met = |s: &State, c: usize| s.is_owned_by(c) && s.clusters[c].runs() == s.epoch;
        let runs = |c: usize| {
            Formula::leads_to(
                move |s: &State| s.is_owned_by(c) && s.phase() == Phase::Granted,
                move |s: &State| is_met(s, c) || s.phase() != Phase::Granted || !s.is_owned_by(c),
            )
        };
        let met = |c: usize| {
            // Where the epochs of this size are used up, nothing can be granted any more.
            let can_be = move |s: &State| {
                s.epoch < epochs || s.is_owned_by(c) && s.phase() == Phase::Granted
            };
            Formula::always_leads_to(
                move |s: &State| usize::from(s.wish) == c && can_be(s),
                move |s: &State| is_met(s, c),
            )
        };
        let answered = |epoch: u8| {
            Formula::leads_to(
                move |s: &State| s.forced & bit(epoch) != 0,
                move |s: &State| s.answered & bit(epoch) != 0,
            )
        };
        let mut properties = vec![
            Property::new(
                "RevokeEnds",
                "a revocation ends",
                Formula::leads_to(
                    |s: &State| s.phase() == Phase::Revoking,
                    |s: &State| s.phase() != Phase::Revoking,
                ),
            ),
            Property::for_all(
                "GrantRuns",
                "a grant runs, unless it is taken back",
                clusters().map(runs),
            ),
            Property::for_all(
                "WishIsMet",
                "a wish that stays is met, if the cluster fits",
                clusters().filter(|c| Some(*c) != unfit).map(met),
            ),
        ];
        if self.force && self.faults.is_some_and(|faults| faults >= 2) {
            properties.push(Property::for_all(
                "ForceIsAnswered",
                "a ForceRelease is answered",
                (1..=epochs).map(answered),
            ));
        }
        properties
    }

    /// Each controller goes on with each object, and so do caches, movers and power.
    pub(super) fn all_fairness(&self) -> Vec<Fairness> {
        if self.faults.is_none() {
            return Vec::new();
        }
        let clusters = 0..self.extent.clusters;
        let scheduler = clusters.clone().flat_map(|c| self.ids_of(Actor::Scheduler, c));
        let mut fairness = vec![Fairness::weak("Scheduler", scheduler)];
        for epoch in 1..=self.extent.epochs {
            fairness.push(Fairness::weak(format!("Fencing({epoch})"), self.ids_of_force(epoch)));
        }
        for c in clusters {
            let name = name_of(c);
            for actor in [Actor::Cache, Actor::Syncer, Actor::Runtime] {
                fairness.push(Fairness::weak(format!("{actor:?}({name})"), self.ids_of(actor, c)));
            }
            let mut movers = vec![At::FillEnd, At::LastImageMade, At::PowerOn];
            if self.slow {
                movers.push(At::Replicate);
            }
            for at in movers {
                fairness.push(Fairness::weak(format!("{at:?}({name})"), [self.id(at, c)]));
            }
        }
        fairness
    }
}

/// Why nobody else can do what only one may.
const ALONE: &str = "in this size there is one cluster only";

fn invariants_of_owners(clusters: usize) -> Vec<Invariant<State>> {
    vec![
        Invariant::new(
            "UsableByAtMostOne",
            "at most one cluster runs the namespace",
            |s: &State| s.clusters.iter().filter(|cluster| cluster.runs() != 0).count() <= 1,
        )
        .unbreakable_if(clusters == 1, ALONE),
        Invariant::new(
            "OnlyTheOwnerRuns",
            "whoever runs is the owner, in the present epoch",
            |s: &State| {
                s.clusters.iter().enumerate().all(|(c, cluster)| {
                    let epoch = cluster.runs();
                    epoch == 0 || s.is_owned_by(c) && s.epoch == epoch
                })
            },
        ),
        Invariant::new("ReleasedIsStill", "between two owners nobody runs", |s: &State| {
            s.is_held() || s.clusters.iter().all(|cluster| cluster.runs() == 0)
        }),
        Invariant::new("ClosedIsStill", "a closed epoch does not run", |s: &State| {
            s.clusters.iter().all(|c| c.runs() == 0 || c.runs() > c.released)
        }),
    ]
}

fn invariants_of_data() -> Vec<Invariant<State>> {
    vec![
        Invariant::new(
            "NoLoss",
            "an owner that runs has every write that was acknowledged and not declared lost",
            |s: &State| {
                s.clusters.iter().all(|cluster| {
                    cluster.runs() == 0
                        || cluster.runs() != s.epoch
                        || s.must & !cluster.volume == 0
                })
            },
        ),
        Invariant::new(
            "PinsHaveEveryWrite",
            "between two owners the pinned images have every write not declared lost",
            |s: &State| s.is_held() || s.must & !s.pins().0 == 0,
        ),
    ]
}

/// The seed's own, as its author meant them, over what stands for the seed's variables.
fn seed_invariants(clusters: usize) -> Vec<Invariant<State>> {
    vec![
        Invariant::new(
            "Inv_NSAtMostOneCluster",
            "the namespace is assigned to at most one cluster",
            move |s: &State| {
                (0..clusters).filter(|c| s.is_held() && s.is_owned_by(*c)).count() <= 1
            },
        )
        .unbreakable("one Grant names one owner, so no state assigns the namespace twice"),
        Invariant::new(
            "Inv_UsableByAtMostOne",
            "at most one cluster believes that it may use the volume",
            move |s: &State| s.clusters[..clusters].iter().filter(|c| c.runs() != 0).count() <= 1,
        )
        .unbreakable_if(clusters == 1, ALONE),
    ]
}

fn rules_of_epochs() -> Vec<StepRule<State>> {
    vec![
        StepRule::new(
            "EpochOnlyGrows",
            "no epoch is used twice, and each new owner has a new one",
            |from: &State, to: &State| {
                let changes_hands = from.owner() != to.owner();
                to.epoch >= from.epoch && (!changes_hands || to.epoch == from.epoch + 1)
            },
        ),
        StepRule::new(
            "ReleasedNeverFalls",
            "a closed epoch stays closed",
            |from: &State, to: &State| {
                let pairs = from.clusters.iter().zip(&to.clusters);
                pairs.into_iter().all(|(old, new)| new.released >= old.released)
            },
        ),
    ]
}

fn rules_of_force() -> Vec<StepRule<State>> {
    vec![
        StepRule::new(
            "LossIsDeclared",
            "an acknowledged write is given up only by a fence, which says so",
            |from: &State, to: &State| from.must & !to.must == 0 || is_fence(from, to),
        ),
        StepRule::new(
            "ForceIsExact",
            "a ForceRelease ends only the grant that it names, by owner and epoch",
            |from: &State, to: &State| {
                !is_fence(from, to)
                    || from.forced & bit(from.epoch) != 0 && from.owner() == to.owner()
            },
        ),
        StepRule::new(
            "DivergedIsMarked",
            "a copy that has writes which no image has is never taken for a superseded one",
            |from: &State, to: &State| {
                from.clusters.iter().zip(&to.clusters).all(|(old, new)| {
                    let is_settled = old.mark == Mark::Unclosed && new.mark == Mark::None;
                    !is_settled || !old.lost
                })
            },
        ),
    ]
}
