//! API servers in memory, for the tests of the rooms: caches that are never behind, and writes that
//! are refused as an API server would refuse them. The real server has tests of its own with every
//! controller; this is for the thousand small cases.

mod patch;
mod server;
mod spoil;

pub use patch::{condition, merge, patched};
pub use server::Server;
pub use spoil::{Dice, spoil, survives};

use crate::{
    Action, Controller, Effect, Event, Index, Kind, LiveReads, MOST_LIVE_READS, Name, Nothing,
    Object, Outside, Place, Read, Right, Selections, Step, Subject, View, Write,
};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// More steps than any of the tests needs: one that takes them all does not come to rest.
const STEPS: usize = 60;

/// What is outside of the API in a test.
pub trait Machine<O: Outside> {
    /// Answers a question.
    fn ask(&self, question: &O::Question) -> O::Answer;
    /// Does something; false: it failed, and may or may not have been done.
    fn perform(&mut self, action: &O::Action) -> bool;
}

/// For controllers that live within the API.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMachine;

impl Machine<Nothing> for NoMachine {
    fn ask(&self, question: &Nothing) -> Nothing {
        match *question {}
    }

    fn perform(&mut self, action: &Nothing) -> bool {
        match *action {}
    }
}

/// The API servers that one controller sees: the caches of what it watches are never behind.
#[derive(Debug)]
pub struct LiveView<'a> {
    /// The time.
    pub now: Timestamp,
    /// The server at each place.
    pub servers: BTreeMap<Place, &'a Server>,
}

impl View for LiveView<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        self.servers.get(&place)?.get(kind, name)
    }

    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        self.servers.get(&place).map(|at| at.list(kind, namespace)).unwrap_or_default()
    }

    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object> {
        self.servers.get(&place).map(|at| at.find(index, value)).unwrap_or_default()
    }

    fn count(&self, place: Place, index: &Index, value: &str) -> usize {
        self.find(place, index, value).len()
    }
}

/// A view of what a controller watches, and of nothing else.
struct Watched<'a, V> {
    view: V,
    by: &'a str,
    watched: BTreeSet<(Place, Kind)>,
}

impl<V: View> Watched<'_, V> {
    fn at(&self, place: Place, kind: &Kind) -> &V {
        let is_watched = self.watched.contains(&(place, kind.clone()));
        assert!(is_watched, "{} looks at {kind} at the {place} and does not watch it", self.by);
        &self.view
    }
}

impl<V: View> View for Watched<'_, V> {
    fn now(&self) -> Timestamp {
        self.view.now()
    }

    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        self.at(place, kind).get(place, kind, name)
    }

    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        self.at(place, kind).list(place, kind, namespace)
    }

    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object> {
        self.at(place, &index.kind).find(place, index, value)
    }

    fn count(&self, place: Place, index: &Index, value: &str) -> usize {
        self.at(place, &index.kind).count(place, index, value)
    }
}

#[allow(clippy::missing_panics_doc, reason = "this is for tests")]
impl LiveView<'_> {
    fn of<T>(
        &self,
        controller: &(impl Controller + ?Sized),
        see: impl FnOnce(&dyn View) -> T,
    ) -> T {
        let watches = controller.watches();
        let selections = Selections::of(&watches);
        let watched = watches.into_iter().map(|watch| (watch.place, watch.kind)).collect();
        see(&Watched { view: selections.narrow(self), by: controller.name(), watched })
    }

    /// All that a controller would be asked about after a start.
    pub fn subjects<C: Controller + ?Sized>(&self, controller: &C) -> BTreeSet<Subject> {
        self.of(controller, |view| {
            let mut subjects = BTreeSet::new();
            for watch in controller.watches() {
                for object in view.list(watch.place, &watch.kind, None) {
                    subjects.extend(controller.subjects(&watch, &object, view));
                }
            }
            subjects
        })
    }

    /// One step of a controller that has read this.
    pub fn step_with<C: Controller + ?Sized>(
        &self,
        controller: &C,
        subject: &str,
        live_reads: &LiveReads<C::Outside>,
    ) -> Step<C::Outside> {
        self.of(controller, |view| controller.step(&Subject::from(subject), view, live_reads))
    }

    /// One step, with the looks that it asks for answered. It is a step that its role allows.
    pub fn step<C: Controller + ?Sized>(
        &self,
        controller: &C,
        subject: &str,
        ask: impl Fn(&Question<C>) -> Answer<C>,
    ) -> Step<C::Outside> {
        let mut live_reads = LiveReads::default();
        for _ in 0..=MOST_LIVE_READS {
            match self.step_with(controller, subject, &live_reads) {
                Step::LiveRead { reads, .. } => {
                    for read in reads {
                        assert_allowed(controller, Right::to_read(&read));
                        self.read_live(read, &ask, &mut live_reads);
                    }
                }
                step => {
                    if let Step::Act(effect) = &step
                        && let Action::Write(write) = &effect.action
                    {
                        assert_allowed(controller, Right::to_write(write));
                    }
                    return step;
                }
            }
        }
        panic!("too many live reads about {subject}");
    }

    /// Makes one live read.
    pub fn read_live<O: Outside>(
        &self,
        read: Read<O>,
        ask: impl Fn(&O::Question) -> O::Answer,
        live_reads: &mut LiveReads<O>,
    ) {
        match read {
            Read::Object(address) => {
                let found = self.get(address.place, &address.kind, &address.name);
                live_reads.objects.insert(address, found);
            }
            Read::List { place, kind, namespace } => {
                let found = self.list(place, &kind, namespace.as_deref());
                live_reads.lists.insert((place, kind, namespace), found);
            }
            Read::Selected { place, kind, selector } => {
                let mut found = self.list(place, &kind, None);
                found.retain(|object| selector.selects(object));
                live_reads.selected.insert((place, kind, selector), found);
            }
            Read::DryRun(dry_run) => {
                let server = self.servers.get(&dry_run.address.place);
                let found = server.map(|server| server.dry_run(&dry_run));
                let nowhere = || Err(server::refusal(404, "NotFound", "there is no such server"));
                live_reads.dry_runs.insert(*dry_run, found.unwrap_or_else(nowhere));
            }
            Read::Ask(question) => {
                let answer = ask(&question);
                live_reads.answers.insert(question, answer);
            }
        }
    }
}

/// What a controller asks outside of the API.
type Question<C> = <<C as Controller>::Outside as Outside>::Question;
/// What it is answered.
type Answer<C> = <<C as Controller>::Outside as Outside>::Answer;

/// The API servers of the tests of one controller.
#[derive(Debug)]
pub struct TestServers {
    /// The time.
    pub now: Timestamp,
    servers: BTreeMap<Place, Server>,
}

/// What happened until a controller came to rest.
#[derive(Debug)]
pub struct Run<O: Outside> {
    /// What it wrote.
    pub writes: Vec<Write>,
    /// What it did outside of the API.
    pub actions: Vec<O::Action>,
    /// What it told people.
    pub events: Vec<Event>,
    /// Why it came to rest.
    pub rests: String,
    /// How long it waits, if it does.
    pub waits_seconds: Option<u64>,
}

impl<O: Outside> Default for Run<O> {
    fn default() -> Self {
        Run {
            writes: Vec::new(),
            actions: Vec::new(),
            events: Vec::new(),
            rests: String::new(),
            waits_seconds: None,
        }
    }
}

#[allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "this is for tests")]
impl TestServers {
    /// A world with what a controller watches, filed as it asks.
    pub fn of<O: Outside>(controller: &dyn Controller<Outside = O>) -> TestServers {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let mut world = TestServers { now, servers: BTreeMap::new() };
        world.show(controller);
        world
    }

    /// Serves what one more controller watches.
    pub fn show<O: Outside>(&mut self, controller: &dyn Controller<Outside = O>) {
        for watch in controller.watches() {
            let server = self.servers.entry(watch.place).or_default();
            server.serve(&watch.kind, &watch.indexes);
        }
    }

    /// The same world with these objects, each at every place that serves its kind.
    #[must_use]
    pub fn with(mut self, objects: impl IntoIterator<Item = Value>) -> TestServers {
        let places: Vec<Place> = self.servers.keys().copied().collect();
        for object in objects {
            places.iter().for_each(|place| self.put(*place, object.clone()));
        }
        self
    }

    /// What its controllers see.
    pub fn view(&self) -> LiveView<'_> {
        let servers = self.servers.iter().map(|(place, server)| (*place, server));
        LiveView { now: self.now, servers: servers.collect() }
    }

    fn at(&mut self, place: Place) -> &mut Server {
        self.servers.entry(place).or_default()
    }

    /// Puts an object there, or a newer version of it. One that no server would show is left out,
    /// and so is one of a kind that nobody watches.
    pub fn put(&mut self, place: Place, object: Value) {
        let server = self.at(place);
        let kind = server.kinds().find(|kind| object["kind"] == *kind.kind).cloned();
        if let Some(kind) = kind {
            server.put(&kind, object);
        }
    }

    /// An object.
    pub fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        self.servers.get(&place)?.get(kind, name)
    }

    /// The objects of a kind, in one namespace or in all.
    pub fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        self.view().list(place, kind, namespace)
    }

    /// Changes an object by a merge patch, as a person would.
    pub fn change(&mut self, place: Place, kind: &Kind, name: &Name, patch: &Value) {
        self.at(place).change(kind, name, patch);
    }

    /// Deletes an object as a person would: one with finalizers is only marked.
    pub fn delete(&mut self, place: Place, kind: &Kind, name: &Name) {
        let now = self.now;
        self.at(place).delete(kind, name, now);
    }

    /// An object in JSON; null: there is none.
    pub fn json(&self, place: Place, kind: &Kind, name: &Name) -> Value {
        self.servers.get(&place).map(|server| server.json(kind, name)).unwrap_or_default()
    }

    /// Lets time pass.
    pub fn pass(&mut self, seconds: i64) {
        self.now = Timestamp::from_second(self.now.as_second() + seconds).unwrap();
    }

    /// All that a controller would be asked about after a start.
    pub fn subjects<C: Controller + ?Sized>(&self, controller: &C) -> BTreeSet<Subject> {
        self.view().subjects(controller)
    }

    /// One step, with the looks that it asks for answered.
    pub fn step<C: Controller + ?Sized>(
        &self,
        controller: &C,
        machine: &dyn Machine<C::Outside>,
        subject: &str,
    ) -> Step<C::Outside> {
        self.view().step(controller, subject, |question| machine.ask(question))
    }

    /// Steps until there is nothing to do; every write is applied and must carry its guards.
    pub fn settle<C: Controller + ?Sized>(
        &mut self,
        controller: &C,
        machine: &mut dyn Machine<C::Outside>,
        subject: &str,
    ) -> Run<C::Outside> {
        let mut run = Run::default();
        for _ in 0..STEPS {
            match self.step(controller, machine, subject) {
                Step::Rest { because } => return Run { rests: because, ..run },
                Step::Wait { because, at_most } => {
                    let waits_seconds = Some(at_most.as_secs());
                    return Run { rests: because, waits_seconds, ..run };
                }
                Step::LiveRead { .. } => unreachable!("looks are answered"),
                Step::Act(effect) => {
                    let Effect { action, because, event, .. } = *effect;
                    assert!(!because.is_empty(), "an effect says why");
                    match action {
                        Action::Write(write) => {
                            self.apply(&write).unwrap_or_else(|why| panic!("{why}: {write:?}"));
                            run.writes.push(write);
                        }
                        Action::Outside(action) => {
                            machine.perform(&action);
                            run.actions.push(action);
                        }
                    }
                    run.events.extend(event);
                }
            }
        }
        panic!("it does not come to rest: {:#?} {:#?}", run.writes, run.actions);
    }

    /// Applies a write as an API server would, or says why it is refused.
    pub fn apply(&mut self, write: &Write) -> Result<(), String> {
        let now = self.now;
        self.at(write.address().place).apply(write, now)
    }
}

/// A controller that says what it may do does nothing else.
pub fn assert_allowed<C: Controller + ?Sized>(
    controller: &C,
    needed: impl IntoIterator<Item = Right>,
) {
    let rights = controller.rights();
    if rights.is_empty() {
        return;
    }
    let watched: Vec<Right> = controller.watches().iter().flat_map(Right::to_watch).collect();
    for right in needed {
        let is_allowed = rights.iter().chain(&watched).any(|has| has.covers(&right));
        assert!(is_allowed, "{} does not say that it needs {right:?}", controller.name());
    }
}
