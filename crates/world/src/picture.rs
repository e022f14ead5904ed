//! A state as a specification sees it: a decision that nothing can undo any more counts as done.

use crate::actor::Found;
use crate::flight::Stage;
use crate::intern::{Interner, Memo};
use crate::state::State;
use crate::system::System;
use crate::world::{Engine, World, whole};
use interlock_checker::{Model, Refinement, reaches_between};
use interlock_kernel::{Kind, Object, Place};
use std::hash::Hash;
use std::sync::Arc;

/// What a picture is drawn from.
pub struct Basis<S: System> {
    /// What is true.
    pub truth: Arc<S::Truth>,
    /// What is remembered.
    pub past: Arc<S::Past>,
    /// What would be true if an effect that was decided happened now, for each such effect.
    pub decided: Vec<Arc<S::Truth>>,
    /// Steps under way that have not decided yet.
    pub reading: Vec<Reading>,
}

/// A step under way that has read something, and has not decided yet.
pub struct Reading {
    /// The controller: `placement/syncer`.
    pub controller: &'static str,
    /// The cluster that its program works on; None: at the hub.
    pub cluster: Option<usize>,
    /// The objects that it has read live, one by one.
    pub objects: Vec<(Place, Object)>,
    /// The kinds that it has listed live, with what it found.
    pub lists: Vec<(Kind, Vec<Object>)>,
}

/// A state of the world in the words of a specification.
type Picture<S, T> = fn(&S, &Basis<S>) -> T;

/// Whether a way from the first state to the last may lead through the one in between.
type Between<T> = fn(&T, &T, &T) -> bool;

/// How a world is compared with a specification.
pub struct Comparison<S: System, M: Model> {
    /// What the comparison is called.
    pub name: String,
    /// The specification.
    pub specification: M,
    /// How many of its steps one step of the world is at most.
    pub most: usize,
    /// A state of the world in its words.
    pub picture: fn(&S, &Basis<S>) -> M::State,
    /// Whether a way from the first state to the last may lead through the one in between.
    pub between: fn(&M::State, &M::State, &M::State) -> bool,
}

impl<S: System> World<S> {
    /// Every step of the world must be at most so many steps of a specification, or none, as a
    /// picture in its words shows them.
    pub fn refinement<M>(
        &self,
        name: &str,
        specification: M,
        most: usize,
        picture: Picture<S, M::State>,
    ) -> Refinement<State>
    where
        M: Model + 'static,
        M::State: Hash + Eq + 'static,
    {
        let name = name.to_owned();
        let between = |_: &M::State, _: &M::State, _: &M::State| true;
        self.compared(Comparison { name, specification, most, picture, between })
    }

    /// The same, where all ways from a picture to the next would be too many.
    pub fn compared<M>(&self, comparison: Comparison<S, M>) -> Refinement<State>
    where
        M: Model + 'static,
        M::State: Hash + Eq + 'static,
    {
        let Comparison { name, specification, most, picture, between } = comparison;
        let pictures = Arc::new(Pictures {
            engine: Arc::clone(&self.0),
            specification,
            most,
            picture,
            between,
            interned: Interner::default(),
            drawn: Memo::default(),
            compared: Memo::default(),
        });
        let same = Arc::clone(&pictures);
        Refinement {
            name,
            starts: Box::new(move |state| same.is_initial(state)),
            steps: Box::new(move |from, to| pictures.allows(from, to)),
        }
    }
}

/// Every picture once, and every two that follow each other once.
struct Pictures<S: System, M: Model> {
    engine: Arc<Engine<S>>,
    specification: M,
    most: usize,
    picture: Picture<S, M::State>,
    between: Between<M::State>,
    interned: Interner<M::State>,
    drawn: Memo<[u32; 10], u32>,
    compared: Memo<(u32, u32), bool>,
}

impl<S: System, M: Model> Pictures<S, M>
where
    M::State: Hash + Eq,
{
    fn of(&self, state: &State) -> u32 {
        let [hub, a, b, first, second, chance, past, time] = whole(state);
        let [one, other] = state.flights;
        let key = [hub, a, b, first, second, chance, past, time, one, other];
        self.drawn.get_or(key, || {
            let basis = self.engine.basis(state);
            self.interned.put((self.picture)(&self.engine.system, &basis))
        })
    }

    fn is_initial(&self, state: &State) -> bool {
        self.specification.initial().contains(&self.interned.get(self.of(state)))
    }

    fn allows(&self, from: &State, to: &State) -> bool {
        let (from, to) = (self.of(from), self.of(to));
        from == to
            || self.compared.get_or((from, to), || {
                let (from, to) = (self.interned.get(from), self.interned.get(to));
                reaches_between(&self.specification, &from, &to, self.most, self.between)
            })
    }
}

impl<S: System> Engine<S> {
    fn basis(&self, state: &State) -> Basis<S> {
        let mut basis = Basis {
            truth: self.truths.get(self.truth_number(state)),
            past: self.pasts.get(state.past),
            decided: Vec::new(),
            reading: Vec::new(),
        };
        for number in state.flights.into_iter().filter(|number| *number != 0) {
            let flight = self.flights.get(number);
            match &flight.stage {
                Stage::Decided(effect) => {
                    let after = self.after(*effect, state);
                    basis.decided.push(self.truths.get(self.truth_number(&after)));
                }
                Stage::Reading { done, .. } => {
                    let of = &self.actors[flight.actor];
                    let mut reading = Reading {
                        controller: of.actor.name(),
                        cluster: self.programs[of.program].cluster,
                        objects: Vec::new(),
                        lists: Vec::new(),
                    };
                    for (read, found) in done {
                        let place = of.actor.inner().place_of(*read);
                        match (found, place) {
                            (Found::Object(version), Some(place)) => {
                                let object = self.servers.object(*version);
                                reading.objects.extend(object.map(|object| (place, object)));
                            }
                            (Found::List(versions), _) => {
                                let found = versions.iter().copied();
                                let found = found.filter_map(|it| self.servers.object(it));
                                let kind = of.actor.inner().kind_of(*read);
                                reading.lists.extend(kind.map(|kind| (kind, found.collect())));
                            }
                            (Found::Object(_) | Found::Tried(_) | Found::Answer(_), _) => {}
                        }
                    }
                    basis.reading.push(reading);
                }
            }
        }
        basis
    }
}
