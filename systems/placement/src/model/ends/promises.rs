//! What is promised of what goes.

use super::World;
use super::actions::{Actor, Deed};
use super::state::{Grant, Here, Label, Labels, Life, State, bit};
use crate::spec::name_of;
use interlock_api::placement::{CopyState, Phase};
use interlock_checker::{Fairness, Formula, Invariant, Property, Reachable, StepRule};

/// Every namespace on every cluster: the cluster, the place of the namespace, and what is there.
fn all_here(state: &State) -> impl Iterator<Item = (usize, usize, &Here)> {
    state.machines.iter().enumerate().flat_map(|(c, machine)| {
        let here = machine.here.iter().enumerate();
        here.filter_map(move |(place, here)| here.as_ref().map(|here| (c, place, here)))
    })
}

fn assigned(labels: &Labels) -> usize {
    labels.iter().filter(|label| **label != Label::Nil).count()
}

const NO_LABELS: &str = "in this size there are no labels";
const ALONE: &str = "in this size there is one cluster only";
const ONE_NAMESPACE: &str = "in this size there is one namespace only";

impl World {
    pub(super) fn why(&self, name: &str) -> Option<&'static str> {
        let family = name.split('(').next().unwrap_or(name);
        match family {
            "DeleteNamespace"
            | "StripNamespace"
            | "RevokeToDelete"
            | "LookForGrant"
            | "TakeNamespaceFinalizerOff"
            | "BeginDeleting"
            | "DeleteGrant"
                if self.settle =>
            {
                Some("in this size the namespace stays")
            }
            "MakeNamespaceAgain" if self.namespaces == 1 => {
                Some("in this size no namespace is made again")
            }
            "DeleteNamespace"
            | "MakeNamespaceAgain"
            | "StripNamespace"
            | "LookForGrant"
            | "BeginDeleting"
            | "DeleteGrant"
            | "Revoke"
            | "RevokeToDelete"
            | "DeleteLeftover"
            | "ForgetCopy"
            | "TakeNamespaceFinalizerOff" => Some("the last namespace stays, and need not move"),
            "DeleteCluster"
            | "TakeClusterFinalizerOff"
            | "LookForGrants"
            | "ShutDown"
            | "TakeDepartedOff"
                if !self.retire =>
            {
                Some("in this size the clusters stay")
            }
            "Target" | "Untarget" | "LookAtCluster" | "Hear" if !self.lag => {
                Some("in this size the scheduler hears at once")
            }
            "RegisterCluster" | "PutClusterFinalizer" => {
                Some("the clusters are there from the beginning, but for one that replaces another")
            }
            "StripCluster" => Some("in this size nobody strips the finalizers of clusters"),
            "AskForce" | "Fence" | "PowerOff" | "PowerOn" | "SettleCopy" if !self.force => {
                Some("this size has no power loss and no ForceRelease")
            }
            "AskForce" | "Fence" | "SettleCopy" if self.faults < 2 => {
                Some("power loss and a ForceRelease are two faults")
            }
            "MirrorNamespace" | "MirrorClaim" if !self.labels => Some(NO_LABELS),
            "Settle" if !self.settle => Some("in this size nothing is kept for a time"),
            "Crash" if !self.crash => Some("in this size nothing crashes"),
            "NoteEpoch" => Some("in this size no cluster gets a namespace twice"),
            _ if self.faults == 0 => Some("in this size there are no faults"),
            _ if self.clusters == 1 => Some(ALONE),
            _ => None,
        }
    }

    pub(super) fn all_invariants(&self) -> Vec<Invariant<State>> {
        let mut invariants = self.invariants_of_owners();
        invariants.extend(self.invariants_of_ends());
        invariants.extend(self.invariants_of_copies());
        invariants.extend(self.seed_invariants());
        invariants
    }

    fn invariants_of_owners(&self) -> Vec<Invariant<State>> {
        let namespaces = self.namespaces;
        vec![
            Invariant::new(
                "UsableByAtMostOne",
                "at most one cluster runs a namespace",
                move |s: &State| {
                    let runs = |place| {
                        let here = all_here(s).filter(move |(_, of, _)| *of == place);
                        here.filter(|(.., here)| here.runs != 0).count()
                    };
                    (0..namespaces).all(|place| runs(place) <= 1)
                },
            )
            .unbreakable_if(self.clusters == 1, ALONE),
            Invariant::new(
                "OnlyTheOwnerRuns",
                "whoever runs is the owner, in the present epoch",
                |s: &State| {
                    all_here(s).all(|(c, place, here)| {
                        let grant = &s.grants[place];
                        here.runs == 0 || grant.is_held_by(c) && grant.epoch == here.runs
                    })
                },
            ),
            Invariant::new(
                "NothingInherited",
                "what runs is the namespace whose volumes it has, not another of its name",
                |s: &State| {
                    all_here(s).all(|(_, place, here)| {
                        here.runs == 0 || usize::from(here.content) == place
                    })
                },
            )
            .unbreakable_if(namespaces == 1, ONE_NAMESPACE),
        ]
    }

    /// Of what can be deleted.
    fn invariants_of_ends(&self) -> Vec<Invariant<State>> {
        if self.settle {
            return Vec::new();
        }
        vec![
            Invariant::new(
                "NamespaceStays",
                "a namespace is at the hub while a cluster has anything of it, unless a person \
                 said otherwise",
                |s: &State| {
                    all_here(s).all(|(c, place, _)| {
                        let is_excused = s.stripped_namespaces & bit(place) != 0
                            || s.forgotten[place] & bit(c) != 0;
                        is_excused || !s.is_gone(place)
                    })
                },
            ),
            Invariant::new(
                "ClusterStays",
                "a cluster is at the hub while it owns a grant or has data of one, unless a person \
                 said otherwise",
                |s: &State| {
                    s.registered.iter().enumerate().all(|(c, registered)| {
                        let is_gone =
                            registered.life == Life::Gone && s.stripped_clusters & bit(c) == 0;
                        !is_gone
                            || s.grants
                                .iter()
                                .all(|g| !g.is_held_by(c) && (!g.exists || g.copies[c].are_none()))
                    })
                },
            ),
            Invariant::new(
                "OwnersCopyStays",
                "the copy of an owner is not forgotten, whoever asks for it",
                |s: &State| {
                    s.grants.iter().all(|grant| {
                        let owners = grant.copies[usize::from(grant.owner)];
                        !grant.is_held() || owners.has(CopyState::Live)
                    })
                },
            ),
        ]
    }

    fn invariants_of_copies(&self) -> Vec<Invariant<State>> {
        vec![Invariant::new(
            "CopiesAreListed",
            "the grant lists every cluster that has data of its namespace",
            |s: &State| {
                all_here(s).all(|(c, place, here)| {
                    let grant = &s.grants[place];
                    let is_listed = grant.exists && !grant.copies[c].are_none();
                    here.volumes == 0 || is_listed || s.forgotten[place] & bit(c) != 0
                })
            },
        )]
    }

    /// The seed's own, as its author meant them.
    fn seed_invariants(&self) -> Vec<Invariant<State>> {
        let unbreakable = |invariant: Invariant<State>| {
            invariant
                .unbreakable_if(self.clusters == 1, ALONE)
                .unbreakable_if(!self.labels, NO_LABELS)
        };
        vec![
            unbreakable(Invariant::new(
                "Inv_NSAtMostOneCluster",
                "the namespace is assigned to at most one cluster",
                |s: &State| assigned(&s.ns) <= 1,
            )),
            unbreakable(Invariant::new(
                "Inv_PVCAtMostOneCluster",
                "the claim is assigned to at most one cluster",
                |s: &State| assigned(&s.pvc) <= 1,
            )),
        ]
    }

    pub(super) fn all_step_rules(&self) -> Vec<StepRule<State>> {
        vec![
            StepRule::new(
                "VolumesOutliveMoves",
                "a volume goes only after a later epoch has settled, or with its namespace, and never \
                 if it is alone in having something; unless a person gave it up",
                |from: &State, to: &State| {
                    all_here(from).all(|(c, place, here)| {
                        let left = to.machines[c].here[place].map_or(0, |here| here.volumes);
                        let gone = here.volumes & !left;
                        let grant = &from.grants[place];
                        let is_ending = grant.exists && grant.phase == Phase::Deleting;
                        // The epochs before the last one that settled.
                        let last = 8 - grant.settled.leading_zeros();
                        let succeeded = match last.checked_sub(1) {
                            Some(before) => (1 << before) - 1,
                            None => 0,
                        };
                        let may_go = if is_ending { u8::MAX } else { succeeded };
                        let is_given_up = from.forgotten[place] & bit(c) != 0;
                        is_given_up || gone & !(may_go & !here.alone) == 0
                    })
                },
            ),
            StepRule::new(
                "EpochOnlyGrows",
                "no epoch is used twice, and each new owner has a new one",
                |from: &State, to: &State| {
                    from.grants.iter().zip(&to.grants).all(|(old, new)| {
                        let is_same = old.exists && new.exists;
                        let changes_hands = new.owner != old.owner && old.epoch != 0;
                        !is_same
                            || new.epoch >= old.epoch
                                && (!changes_hands || new.epoch == old.epoch + 1)
                    })
                },
            ),
            StepRule::new(
                "ReleasedNeverFalls",
                "a closed epoch stays closed while the namespace is there",
                |from: &State, to: &State| {
                    all_here(from).all(|(c, place, here)| {
                        let later = to.machines[c].here[place];
                        later.is_none_or(|later| later.released >= here.released)
                    })
                },
            ),
        ]
    }

    pub(super) fn all_reachable(&self) -> Vec<Reachable<State>> {
        let mut reachable = Vec::new();
        if self.namespaces == 2 {
            reachable.push(Reachable::new(
                "MadeAgain",
                "a namespace that was made again under its name runs, and the first is all gone",
                |s: &State| {
                    let is_all_gone = !s.grants[0].exists && s.stripped_namespaces == 0;
                    is_all_gone && all_here(s).any(|(_, place, here)| place == 1 && here.runs == 1)
                },
            ));
        }
        if self.retire {
            reachable.push(Reachable::new(
                "ClusterGoes",
                "a cluster that has nothing any more goes",
                |s: &State| {
                    let went = |c: usize| s.registered[c].life == Life::Gone;
                    s.stripped_clusters == 0
                        && (0..s.registered.len()).any(went)
                        && s.grants.iter().any(|grant| grant.epoch != 0)
                },
            ));
        }
        if self.settle && self.clusters >= 2 && self.epochs >= 2 {
            reachable.push(Reachable::new(
                "OldVolumesGo",
                "nothing is left where a namespace was before",
                |s: &State| {
                    let grant = &s.grants[0];
                    let before = 1 - usize::from(grant.owner);
                    grant.epoch == 2
                        && grant.is_settled
                        && s.machines[before].here[0].is_none()
                        && grant.copies[before].are_none()
                        && s.forgotten[0] == 0
                },
            ));
        }
        if self.settle && self.force && self.clusters >= 2 && self.epochs >= 2 && self.faults >= 2 {
            reachable.push(Reachable::new(
                "DivergedStays",
                "what is alone in having something is there after its successor has settled",
                |s: &State| {
                    let grant = &s.grants[0];
                    let before = 1 - usize::from(grant.owner);
                    grant.is_settled && grant.copies[before].has(CopyState::Diverged)
                },
            ));
        }
        reachable
    }

    pub(super) fn all_properties(&self) -> Vec<Property<State>> {
        let mut properties = Vec::new();
        if !self.settle {
            properties.push(Property::new(
                "DeletedGoes",
                "a namespace that is deleted goes, unless data of it waits for a person",
                Formula::always_leads_to(
                    |s: &State| {
                        s.namespace.place == 0
                            && s.namespace.life == Life::Deleting
                            && !s.grants[0].waits_for_a_person()
                    },
                    |s: &State| s.is_gone(0),
                ),
            ));
        }
        if self.retire {
            properties.push(Property::for_all(
                "DeletedClusterGoes",
                "a cluster that is deleted goes, once it owns nothing and has no data",
                (0..self.clusters).map(|c| {
                    let has_something = move |s: &State| {
                        let names = |g: &Grant| g.is_held_by(c) || !g.copies[c].are_none();
                        s.grants.iter().any(|grant| grant.exists && names(grant))
                    };
                    Formula::always_leads_to(
                        move |s: &State| {
                            s.registered[c].life == Life::Deleting && !has_something(s)
                        },
                        move |s: &State| s.registered[c].life == Life::Gone || has_something(s),
                    )
                }),
            ));
        }
        if self.namespaces == 2 {
            properties.push(Property::new(
                "OldGrantEnds",
                "the grant of a namespace that was replaced comes to its end",
                Formula::always_leads_to(
                    |s: &State| s.is_there(1) && s.grants[0].exists,
                    |s: &State| !s.grants[0].exists,
                ),
            ));
        }
        if self.settle && self.clusters >= 2 && self.epochs >= 2 {
            properties.push(Property::for_all(
                "OldCopiesGo",
                "a superseded copy whose successor has settled goes",
                (0..self.clusters).map(|c| {
                    Formula::always_leads_to(
                        move |s: &State| {
                            let grant = &s.grants[0];
                            grant.phase == Phase::Granted
                                && grant.is_settled
                                && usize::from(grant.owner) != c
                                && grant.copies[c].spoken() == Some(CopyState::Superseded)
                        },
                        move |s: &State| s.grants[0].copies[c].are_none(),
                    )
                }),
            ));
        }
        if self.labels {
            let world = self.clone();
            properties.push(Property::new(
                "LabelsFollow",
                "in the end the labels say what the grant says",
                Formula::always_eventually(move |s: &State| {
                    let wanted = world.labels_of(&s.grants[0]);
                    s.ns == wanted && s.pvc == wanted
                }),
            ));
        }
        properties
    }

    /// Each controller goes on with each object, and so do caches and power.
    pub(super) fn all_fairness(&self) -> Vec<Fairness> {
        let mut fairness = vec![Fairness::weak("Claims", self.ids_of(Actor::Claims, None, 0))];
        for place in 0..self.namespaces {
            for actor in [Actor::Scheduler, Actor::Fencing] {
                let name = format!("{actor:?}({})", place + 1);
                // Nobody has to wish for another cluster.
                let mut ids = self.ids_of(actor, None, place);
                ids.retain(|id| *id != self.id(Deed::Revoke, 0, place));
                fairness.push(Fairness::weak(name, ids));
            }
        }
        for c in 0..self.clusters {
            let name = name_of(c);
            let retiring =
                (0..self.namespaces).flat_map(|p| self.ids_of(Actor::Clusters, Some(c), p));
            fairness.push(Fairness::weak(format!("Clusters({name})"), retiring));
            fairness
                .push(Fairness::weak(format!("PowerOn({name})"), [self.id(Deed::PowerOn, c, 0)]));
            let hearing = [self.id(Deed::Hear, c, 0)];
            fairness.push(Fairness::weak(format!("Hear({name})"), hearing));
            let departing = [self.id(Deed::TakeDepartedOff, c, 0)];
            fairness.push(Fairness::weak(format!("Departed({name})"), departing));
            for place in 0..self.namespaces {
                for actor in [Actor::Cache, Actor::Syncer] {
                    let name = format!("{actor:?}({name}, {})", place + 1);
                    fairness.push(Fairness::weak(name, self.ids_of(actor, Some(c), place)));
                }
            }
        }
        fairness
    }
}
