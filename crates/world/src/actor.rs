//! A shipped controller whose steps are remembered, by what its cache shows and its live reads find.

use crate::intern::{Interner, Memo};
use crate::server::{Refused, Servers, Version};
use interlock_kernel::{
    Action, Address, Controller, Decided, DryRun, Index, Kind, LiveReads, Name, Object, Outside,
    Place, Read, Selections, Step, Subject, View, Watch, Write,
};
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What is outside of the API, for one kind of question and action. `M` is a machine.
pub trait Driver<M>: Outside {
    /// Answers a question about the machine at a place in the list.
    fn ask(machines: &[&M], here: usize, question: &Self::Question) -> Self::Answer;
    /// That machine after a action.
    fn perform(machines: &[&M], here: usize, action: &Self::Action) -> M;
}

impl<M> Driver<M> for interlock_kernel::Nothing {
    fn ask(_: &[&M], _: usize, question: &Self) -> Self {
        match *question {}
    }
    fn perform(_: &[&M], _: usize, action: &Self) -> M {
        match *action {}
    }
}

/// What a view shows: for each place (0: the hub), the versions of the objects that are watched.
pub(crate) type Shown = Vec<(u8, Version)>;

/// What one live read found, as numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Found {
    Object(Version),
    List(Vec<Version>),
    /// An object as it would be. There is no such version on a server, so nothing makes it old.
    Tried(Result<Version, Refused>),
    Answer(u32),
}

/// A live read that was made, by its number, and what it found.
pub(crate) type Done = Vec<(u32, Found)>;

/// Changes the machine at a place in the list.
pub(crate) type Perform<M> = Arc<dyn Fn(&[&M], usize) -> M + Send + Sync>;

/// What a controller says when it is asked about a subject.
#[derive(Clone)]
pub(crate) enum Thought<M> {
    /// Nothing to do; whether the controller asks again by itself after a while.
    Rest { waits: bool },
    /// These live reads first.
    Read(Arc<Vec<u32>>),
    /// One write.
    Write { write: Arc<Write>, because: Arc<str> },
    /// One action outside of the API.
    Outside { perform: Perform<M>, action: Arc<str>, because: Arc<str> },
}

/// What is true now, for a live read.
pub(crate) struct Live<'a, M> {
    pub(crate) servers: &'a Servers,
    pub(crate) hub: u32,
    pub(crate) cluster: u32,
    pub(crate) machines: &'a [&'a M],
    pub(crate) here: usize,
    /// Whether the policies of a server admit a write of this program.
    pub(crate) admits: &'a dyn Fn(u32, &Write) -> bool,
}

/// A controller of a program, with its types out of basis.
pub trait Actor<M>: Send + Sync {
    /// Its name: `placement/scheduler`.
    #[doc(hidden)]
    fn name(&self) -> &'static str;
    #[doc(hidden)]
    fn inner(&self) -> &dyn Inner<M>;
}

#[doc(hidden)]
#[allow(private_interfaces, reason = "only this crate calls it")]
pub trait Inner<M>: Send + Sync {
    fn watches(&self) -> &[(Place, Kind)];
    /// The number of a view.
    fn view(&self, shown: Shown) -> u32;
    /// What it would be asked about after a start.
    fn subjects(&self, at: At<'_>) -> Arc<Vec<Subject>>;
    /// Whom a change of an object wakes.
    fn woken(&self, place: u8, version: Version, at: At<'_>) -> Vec<Subject>;
    fn think(&self, subject: &Subject, at: At<'_>, done: &Done) -> Thought<M>;
    fn read(&self, read: u32, live: &Live<'_, M>) -> Found;
    /// On which server a read is made; None: outside of the API.
    fn place_of(&self, read: u32) -> Option<Place>;
    /// The kind that a read is about; None: it is about something outside of the API.
    fn kind_of(&self, read: u32) -> Option<Kind>;
    fn show_read(&self, read: u32) -> String;
    /// How often the controller itself was called, and how many views it had.
    fn counts(&self) -> (u64, usize);
}

/// A view at a moment, in a boot of the machine.
#[derive(Clone, Copy)]
#[doc(hidden)]
pub struct At<'a> {
    pub(crate) servers: &'a Servers,
    pub(crate) view: u32,
    pub(crate) now: Timestamp,
    pub(crate) boot: u8,
}

/// The shipped controller that a closure makes, for each boot of its machine anew.
pub fn shipped<M, C>(make: impl Fn(u8) -> C) -> Box<dyn Actor<M>>
where
    M: Clone + 'static,
    C: Controller,
    C::Outside: Driver<M>,
{
    let boots: Vec<C> = (0..BOOTS).map(make).collect();
    let watches: Vec<Watch> = boots[0].watches();
    let watched = watches.iter().map(|watch| (watch.place, watch.kind.clone())).collect();
    let mut places = watches.iter().map(|watch| watch.place).filter(|place| *place != Place::HUB);
    let cluster = places.next().unwrap_or(Place::CLUSTER);
    assert!(places.all(|place| place == cluster), "a controller works on one cluster at most");
    Box::new(Shipped {
        boots,
        watched,
        cluster,
        selections: Selections::of(&watches),
        views: Interner::default(),
        reads: Interner::default(),
        done: Interner::default(),
        answers: Interner::default(),
        answer_values: Memo::default(),
        known: Memo::default(),
        subjects: Memo::default(),
        last: Mutex::new(None),
        calls: AtomicU64::new(0),
    })
}

/// How often a machine starts at most.
pub(crate) const BOOTS: u8 = 3;

struct Shipped<M, C: Controller> {
    boots: Vec<C>,
    watched: Vec<(Place, Kind)>,
    /// What the controller calls the cluster that it works on.
    cluster: Place,
    selections: Selections,
    views: Interner<Shown>,
    reads: Interner<Read<C::Outside>>,
    done: Interner<Done>,
    answers: Interner<String>,
    answer_values: Memo<u32, <C::Outside as Outside>::Answer>,
    known: Memo<Key, Thought<M>>,
    subjects: Memo<(u32, u8), Arc<Vec<Subject>>>,
    /// The last view and its objects: a controller is asked about all its subjects in a row.
    last: Mutex<Option<(u32, Arc<Objects>)>>,
    calls: AtomicU64,
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    view: u32,
    done: u32,
    now: i64,
    boot: u8,
    subject: Subject,
}

impl<M, C> Actor<M> for Shipped<M, C>
where
    M: Clone + 'static,
    C: Controller,
    C::Outside: Driver<M>,
{
    fn name(&self) -> &'static str {
        self.boots[0].name()
    }
    fn inner(&self) -> &dyn Inner<M> {
        self
    }
}

impl<M, C> Shipped<M, C>
where
    M: Clone + 'static,
    C: Controller,
    C::Outside: Driver<M>,
{
    fn place(&self, number: u8) -> Place {
        if number == 0 { Place::HUB } else { self.cluster }
    }

    fn cache(&self, at: At<'_>) -> Cache<'_> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last.as_ref().filter(|(view, _)| *view == at.view).map(|(_, it)| it.clone());
        let objects = known.unwrap_or_else(|| {
            let objects = Arc::new(self.objects(at));
            *last = Some((at.view, Arc::clone(&objects)));
            objects
        });
        Cache { now: at.now, watched: &self.watched, objects }
    }

    fn objects(&self, at: At<'_>) -> Objects {
        let mut objects = Objects::new();
        for (place, version) in self.views.get(at.view).iter() {
            let kind = at.servers.key(at.servers.slot_of(*version)).0.clone();
            let selector = self.selections.at(self.place(*place), &kind);
            let shown = at.servers.object(*version).filter(|object| selector.selects(object));
            objects.entry((*place, kind)).or_default().extend(shown);
        }
        for all in objects.values_mut() {
            all.sort_by_cached_key(|object| Name::of(object));
        }
        objects
    }

    fn live_reads(&self, servers: &Servers, done: &Done) -> LiveReads<C::Outside> {
        let mut live_reads = LiveReads::default();
        let object = |version: &Version| servers.object(*version);
        for (read, found) in done {
            match (&*self.reads.get(*read), found) {
                (Read::Object(address), Found::Object(version)) => {
                    live_reads.objects.insert(address.clone(), object(version));
                }
                (Read::List { place, kind, namespace }, Found::List(versions)) => {
                    let key = (*place, kind.clone(), namespace.clone());
                    live_reads.lists.insert(key, versions.iter().filter_map(object).collect());
                }
                (Read::Selected { place, kind, selector }, Found::List(versions)) => {
                    let key = (*place, kind.clone(), selector.clone());
                    live_reads.selected.insert(key, versions.iter().filter_map(object).collect());
                }
                (Read::DryRun(dry_run), Found::Tried(found)) => {
                    let made = |version: Version| object(&version).ok_or(Refused::NotFound);
                    let found = found.and_then(made).map_err(Refused::said);
                    live_reads.dry_runs.insert(DryRun::clone(dry_run), found);
                }
                (Read::Ask(question), Found::Answer(answer)) => {
                    let answer = self.answer_values.get(answer).expect("it was answered before");
                    live_reads.answers.insert(question.clone(), answer);
                }
                (
                    Read::Object(_)
                    | Read::List { .. }
                    | Read::Selected { .. }
                    | Read::DryRun(_)
                    | Read::Ask(_),
                    _,
                ) => unreachable!("a read finds what it asks for"),
            }
        }
        live_reads
    }

    fn call(&self, subject: &Subject, at: At<'_>, done: &Done) -> Thought<M> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let (cache, live_reads) = (self.cache(at), self.live_reads(at.servers, done));
        match take_step(&self.boots[usize::from(at.boot)], subject, &cache, &live_reads) {
            Step::Rest { .. } => Thought::Rest { waits: false },
            Step::Wait { .. } => Thought::Rest { waits: true },
            Step::LiveRead { reads, .. } => Thought::Read(Arc::new(
                reads.into_iter().map(|read| self.reads.put(read)).collect(),
            )),
            Step::Act(effect) => {
                let because = effect.because.into();
                match effect.action {
                    Action::Write(write) => Thought::Write { write: Arc::new(write), because },
                    Action::Outside(action) => {
                        let text = format!("{action:?}").into();
                        let perform: Perform<M> =
                            Arc::new(move |all, here| C::Outside::perform(all, here, &action));
                        Thought::Outside { perform, action: text, because }
                    }
                }
            }
        }
    }
}

/// A step. In a debug build, every decision is made again on the facts as a record has them: an audit is
/// worth nothing if facts that were read back decide something else.
fn take_step<C: Controller>(
    controller: &C,
    subject: &Subject,
    view: &dyn View,
    live_reads: &LiveReads<C::Outside>,
) -> Step<C::Outside> {
    if !cfg!(debug_assertions) || std::env::var_os("INTERLOCK_JUDGE_TWICE").is_none() {
        return controller.step(subject, view, live_reads);
    }
    let (step, decided) = controller.step_on_record(subject, view, live_reads);
    if let Some(Decided { facts, decision }) = decided {
        let read = |text: &str| serde_json::from_str(text).map_err(|error| error.to_string());
        let again = read(&facts).and_then(|facts| controller.judge(&facts));
        let name = controller.name();
        assert_eq!(again, read(&decision).map(Some), "the facts of {name} as recorded: {facts}");
    }
    step
}

#[allow(private_interfaces, reason = "only this crate calls it")]
impl<M, C> Inner<M> for Shipped<M, C>
where
    M: Clone + 'static,
    C: Controller,
    C::Outside: Driver<M>,
{
    fn watches(&self) -> &[(Place, Kind)] {
        &self.watched
    }

    fn view(&self, shown: Shown) -> u32 {
        self.views.put(shown)
    }

    fn subjects(&self, at: At<'_>) -> Arc<Vec<Subject>> {
        self.subjects.get_or((at.view, at.boot), || {
            let (cache, controller) = (self.cache(at), &self.boots[usize::from(at.boot)]);
            let mut subjects = Vec::new();
            for watch in controller.watches() {
                for object in cache.list(watch.place, &watch.kind, None) {
                    subjects.extend(controller.subjects(&watch, &object, &cache));
                }
            }
            subjects.sort_unstable();
            subjects.dedup();
            Arc::new(subjects)
        })
    }

    fn woken(&self, place: u8, version: Version, at: At<'_>) -> Vec<Subject> {
        let (cache, controller) = (self.cache(at), &self.boots[usize::from(at.boot)]);
        let kind = at.servers.key(at.servers.slot_of(version)).0.clone();
        let place = self.place(place);
        let selector = self.selections.at(place, &kind);
        let shown = at.servers.object(version).filter(|object| selector.selects(object));
        let Some(object) = shown else { return Vec::new() };
        let watches = controller.watches().into_iter();
        let own = watches.filter(|watch| watch.place == place && watch.kind == kind);
        own.flat_map(|watch| controller.subjects(&watch, &object, &cache)).collect()
    }

    fn think(&self, subject: &Subject, at: At<'_>, done: &Done) -> Thought<M> {
        let number = self.done.put(done.clone());
        let now = at.now.as_second();
        let subject_key = Arc::clone(subject);
        let key = Key { view: at.view, done: number, now, boot: at.boot, subject: subject_key };
        self.known.get_or(key, || self.call(subject, at, done))
    }

    fn read(&self, read: u32, live: &Live<'_, M>) -> Found {
        let server = |place: Place| if place == Place::HUB { live.hub } else { live.cluster };
        match &*self.reads.get(read) {
            Read::Object(Address { place, kind, name }) => {
                Found::Object(live.servers.find(server(*place), kind, name))
            }
            Read::List { place, kind, namespace } => {
                Found::List(live.servers.list(server(*place), kind, namespace.as_deref()))
            }
            Read::Selected { place, kind, selector } => {
                let mut found = live.servers.list(server(*place), kind, None);
                found.retain(|version| {
                    live.servers.object(*version).is_some_and(|object| selector.selects(&object))
                });
                Found::List(found)
            }
            Read::DryRun(dry_run) => {
                let (at, write) = (server(dry_run.address.place), dry_run.write());
                let judged =
                    if (live.admits)(at, &write) { Ok(()) } else { Err(Refused::Forbidden) };
                Found::Tried(judged.and_then(|()| live.servers.try_out(at, &write)))
            }
            Read::Ask(question) => {
                let answer = C::Outside::ask(live.machines, live.here, question);
                let number = self.answers.put(format!("{answer:?}"));
                self.answer_values.get_or(number, || answer);
                Found::Answer(number)
            }
        }
    }

    fn place_of(&self, read: u32) -> Option<Place> {
        match &*self.reads.get(read) {
            Read::Object(address) => Some(address.place),
            Read::List { place, .. } | Read::Selected { place, .. } => Some(*place),
            Read::DryRun(dry_run) => Some(dry_run.address.place),
            Read::Ask(_) => None,
        }
    }

    fn kind_of(&self, read: u32) -> Option<Kind> {
        match &*self.reads.get(read) {
            Read::Object(address) => Some(address.kind.clone()),
            Read::List { kind, .. } | Read::Selected { kind, .. } => Some(kind.clone()),
            Read::DryRun(dry_run) => Some(dry_run.address.kind.clone()),
            Read::Ask(_) => None,
        }
    }

    fn show_read(&self, read: u32) -> String {
        match &*self.reads.get(read) {
            Read::Object(address) => format!("reads {address} live"),
            Read::List { place, kind, .. } | Read::Selected { place, kind, .. } => {
                format!("lists {} at the {place} live", kind.plural)
            }
            Read::DryRun(dry_run) => format!("tries to apply {}", dry_run.address),
            Read::Ask(question) => {
                let question = format!("{question:?}");
                format!("asks outside of the API: {}", question.split(' ').next().unwrap_or(""))
            }
        }
    }

    fn counts(&self) -> (u64, usize) {
        (self.calls.load(Ordering::Relaxed), self.views.len())
    }
}

/// The number of a place in what a view shows.
pub(crate) fn number_of(place: Place) -> u8 {
    u8::from(place != Place::HUB)
}

/// The objects of a view, by place and kind, each kind sorted by name.
type Objects = HashMap<(u8, Kind), Vec<Object>>;

/// What a controller is shown.
struct Cache<'a> {
    now: Timestamp,
    watched: &'a [(Place, Kind)],
    objects: Arc<Objects>,
}

impl Cache<'_> {
    fn of(&self, place: Place, kind: &Kind) -> &[Object] {
        let is_watched = self.watched.iter().any(|(p, k)| *p == place && k == kind);
        assert!(is_watched, "a controller looks at {kind} at the {place} and does not watch it");
        self.objects.get(&(number_of(place), kind.clone())).map(Vec::as_slice).unwrap_or_default()
    }
}

impl View for Cache<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }
    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        self.of(place, kind).iter().find(|object| Name::of(object) == *name).cloned()
    }
    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        let is_within =
            |it: &&Object| namespace.is_none_or(|n| it.metadata.namespace.as_deref() == Some(n));
        self.of(place, kind).iter().filter(is_within).cloned().collect()
    }
    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object> {
        let is_filed = |it: &&Object| (index.values)(it).iter().any(|v| v == value);
        self.of(place, &index.kind).iter().filter(is_filed).cloned().collect()
    }
    fn count(&self, place: Place, index: &Index, value: &str) -> usize {
        self.find(place, index, value).len()
    }
}
