//! A world: a system's programs and machines, and everything that was computed about them once.

use crate::actor::{Actor, At, Done, Inner, Live, Perform, Shown, Thought, number_of};
use crate::can_do::CanDo;
use crate::flight::{Flight, Stage};
use crate::intern::{Interner, Memo};
use crate::recent;
use crate::scene::{Objects, Scene};
use crate::server::{Changed, Refused, Servers, Slot, Version};
use crate::state::{CLUSTERS, MOST_FLIGHTS, MOST_STALE, Stale, State};
use crate::subjects::Subjects;
use crate::system::{Hostility, Move, System};
use interlock_kernel::{MOST_LIVE_READS, Place, Write};
use jiff::Timestamp;
use std::sync::Arc;

/// A world of shipped controllers. Copies share all that is known.
#[derive(Clone)]
pub struct World<S: System>(pub(crate) Arc<Engine<S>>);

pub(crate) struct Engine<S: System> {
    /// Which of the worlds of this process it is.
    number: u64,
    pub(crate) system: S,
    pub(crate) servers: Servers,
    pub(crate) programs: Vec<ProgramOf>,
    pub(crate) actors: Vec<ActorOf<S::Machine>>,
    pub(crate) times: Vec<Timestamp>,
    pub(crate) machines: Interner<S::Machine>,
    pub(crate) pasts: Interner<S::Past>,
    pub(crate) truths: Interner<S::Truth>,
    pub(crate) flights: Interner<Flight>,
    effect_numbers: Interner<(usize, usize, String)>,
    pub(crate) effects: Memo<u32, Arc<Effect<S::Machine>>>,
    pub(crate) troubles: Interner<String>,
    /// What a controller watches of what is on a server: first by controller, place and content.
    part_numbers: Memo<(u32, u32, u32), u32>,
    parts: Interner<Vec<(Slot, Version)>>,
    views: Memo<CacheView, u32>,
    /// By what a controller is shown; None: it asks for live reads.
    first_reactions: Memo<CacheView, Option<Arc<Reaction>>>,
    reactions: Memo<Moment, Arc<Reaction>>,
    landings: Memo<(u32, u32), Result<u32, Refused>>,
    performed: Memo<([u32; CLUSTERS], u32), u32>,
    differences: Memo<(u32, u32), Arc<Changed>>,
    moves: Memo<[u32; 8], Arc<Vec<MoveOf>>>,
    truth_of: Memo<[u32; 8], u32>,
    pub(crate) remembered: Memo<(u32, u32, u32), u32>,
    pub(crate) judged: Memo<u32, u64>,
    pub(crate) ruled: Memo<(u32, u32), u64>,
    pub(crate) slept: Memo<(Moment, Moment), u32>,
    seen: Memo<(u32, u32, Slot), bool>,
    advanced: Memo<(u32, Moment), Advance>,
    pub(crate) outdated: Memo<(u32, u32, u32, u32), u32>,
    /// What the controllers of a program can do, by all that the program may see.
    pub(crate) can_do: Memo<Moment, Arc<Vec<CanDo>>>,
    /// What caches may miss when a server changes.
    pub(crate) missed: Memo<(u32, u32, u32), Arc<Vec<Stale>>>,
    /// The machine of a program after a crash.
    pub(crate) crashed: Memo<(u32, u32), u32>,
    pub(crate) hostility: Hostility,
    /// The first action of each controller; the last one is that of the programs.
    pub(crate) first_action: Vec<usize>,
    pub(crate) move_count: usize,
}

/// A program without its controllers.
pub(crate) struct ProgramOf {
    pub(crate) name: String,
    pub(crate) cluster: Option<usize>,
    pub(crate) machine: Option<usize>,
    /// Its controllers, by their places among all.
    pub(crate) actors: Vec<usize>,
}

pub(crate) struct ActorOf<M> {
    pub(crate) actor: Box<dyn Actor<M>>,
    pub(crate) program: usize,
    pub(crate) subjects: Subjects,
    sees_hub: bool,
}

/// All that a controller is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct CacheView {
    actor: u8,
    /// The part of the hub and of its cluster that it watches.
    parts: [u32; 2],
    /// What its cache shows that is out of date.
    stale: [Stale; MOST_STALE],
    time: u32,
    boot: u8,
}

/// All that the reaction of a controller depends on, with whatever it may read live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Moment {
    pub(crate) actor: u8,
    hub: u32,
    cluster: u32,
    machines: [u32; CLUSTERS],
    stale: [Stale; MOST_STALE],
    time: u32,
}

/// What a controller would do now about each of its subjects.
#[derive(Default)]
pub(crate) struct Reaction {
    pub(crate) subjects: Vec<Asked>,
    /// What is wrong with the controller itself; 0: nothing.
    pub(crate) trouble: u32,
}

/// What a controller would do about one subject.
pub(crate) struct Asked {
    pub(crate) subject: usize,
    /// If nothing came in between.
    pub(crate) reacted: Reacted,
    /// The flight of a step that something comes in between, by its number; 0: there is none.
    pub(crate) begins: u32,
}

impl Reaction {
    /// What it would do about a subject, if nothing came in between.
    pub(crate) fn about(&self, subject: usize) -> Reacted {
        let found = self.subjects.iter().find(|asked| asked.subject == subject);
        found.map_or(Reacted::Rests, |asked| asked.reacted)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reacted {
    /// Nothing, until something wakes it.
    Rests,
    /// Nothing now; it asks again by itself.
    Waits,
    /// This effect, by its number.
    Acts(u32),
}

/// What happens to a step that is under way when it goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Advance {
    /// It is under way still, by another number.
    Flight(u32),
    /// Its effect happens.
    Effect(u32),
    /// It ends without one.
    Over,
}

/// One effect of a controller.
pub(crate) struct Effect<M> {
    pub(crate) actor: usize,
    pub(crate) because: Arc<str>,
    pub(crate) action: ActionOf<M>,
    /// The server and slot whose version it rests on: once that changed, it is refused for ever.
    pub(crate) guard: Option<(usize, Slot)>,
}

pub(crate) enum ActionOf<M> {
    Write(usize, Arc<Write>),
    Outside(Perform<M>, Arc<str>),
}

/// A move of people or machines, as numbers.
#[derive(Clone)]
pub(crate) struct MoveOf {
    pub(crate) name: usize,
    pub(crate) servers: [u32; 1 + CLUSTERS],
    pub(crate) machines: [u32; CLUSTERS],
    pub(crate) chance: u32,
    pub(crate) restarts: Option<usize>,
}

impl<S: System> World<S> {
    /// The world of a system.
    pub fn new(system: S) -> World<S> {
        let servers = servers_of(&system);
        World::on(servers, system)
    }

    /// The same world, whose servers show objects in another form than the canonical one: finalizers and conditions in the
    /// other order, and empty fields. It has the same states, or a controller decides by what the canonical form drops.
    pub fn showing_otherwise(system: S) -> World<S> {
        let servers = servers_of(&system).showing_otherwise();
        World::on(servers, system)
    }

    fn on(servers: Servers, system: S) -> World<S> {
        let times = system.times();
        let mut programs = Vec::new();
        let mut actors: Vec<ActorOf<S::Machine>> = Vec::new();
        for program in system.programs() {
            let mut own = Vec::new();
            for (actor, subjects) in program.rooms {
                own.push(actors.len());
                let sees_hub =
                    actor.inner().watches().iter().any(|(place, _)| *place == Place::HUB);
                actors.push(ActorOf { actor, program: programs.len(), subjects, sees_hub });
            }
            let (cluster, machine) = (program.cluster, program.machine);
            programs.push(ProgramOf { name: program.name, cluster, machine, actors: own });
        }
        let (hostility, move_count) = (system.hostility(), system.moves().len());
        assert!(hostility.flights <= MOST_FLIGHTS && hostility.stale <= MOST_STALE);
        let mut first_action = vec![0];
        for of in &actors {
            first_action.push(first_action[first_action.len() - 1] + of.subjects.len() * 3);
        }
        let engine = Engine {
            number: recent::next_world(),
            system,
            servers,
            programs,
            actors,
            times,
            machines: Interner::default(),
            pasts: Interner::default(),
            truths: Interner::default(),
            flights: Interner::default(),
            effect_numbers: Interner::default(),
            effects: Memo::default(),
            troubles: Interner::default(),
            part_numbers: Memo::default(),
            parts: Interner::default(),
            views: Memo::default(),
            first_reactions: Memo::default(),
            reactions: Memo::default(),
            landings: Memo::default(),
            performed: Memo::default(),
            differences: Memo::default(),
            moves: Memo::default(),
            truth_of: Memo::default(),
            remembered: Memo::default(),
            judged: Memo::default(),
            ruled: Memo::default(),
            slept: Memo::default(),
            seen: Memo::default(),
            advanced: Memo::default(),
            outdated: Memo::default(),
            can_do: Memo::default(),
            missed: Memo::default(),
            crashed: Memo::default(),
            hostility,
            first_action,
            move_count,
        };
        // Number 0 stands for nothing.
        engine.troubles.put(String::new());
        engine.parts.put(Vec::new());
        engine.flights.put(Flight { actor: 0, subject: usize::MAX, stage: Stage::Decided(0) });
        World(Arc::new(engine))
    }

    /// The system.
    pub fn system(&self) -> &S {
        &self.0.system
    }

    /// What is true in a state.
    pub fn truth(&self, state: &State) -> Arc<S::Truth> {
        self.0.truths.get(self.0.truth_number(state))
    }

    /// How often the shipped controllers were called.
    pub fn calls(&self) -> u64 {
        self.0.actors.iter().map(|actor| actor.actor.inner().counts().0).sum()
    }

    /// What was counted, for people: by controller, and in all.
    pub fn counts(&self) -> Vec<(String, u64)> {
        let of = |actor: &ActorOf<S::Machine>| {
            let program = &self.0.programs[actor.program].name;
            (format!("{program}: {}", actor.actor.name()), actor.actor.inner().counts().0)
        };
        let mut counts: Vec<(String, u64)> = self.0.actors.iter().map(of).collect();
        let (versions, servers) = self.0.servers.counts();
        counts.push(("versions of objects".to_owned(), versions as u64));
        counts.push(("contents of servers".to_owned(), servers as u64));
        counts.push(("reactions".to_owned(), self.0.reactions.len() as u64));
        counts
    }
}

fn servers_of<S: System>(system: &S) -> Servers {
    let first = system.times().first().copied().unwrap_or_default();
    Servers::new(first.to_string(), system.counts_generations())
}

impl<S: System> Engine<S> {
    pub(crate) fn scene(&self, state: &State) -> Scene<'_, S> {
        Scene {
            servers: &self.servers,
            contents: state.servers,
            machines: state.machines.map(|machine| self.machines.get(machine)),
            chance: state.chance,
            past: self.pasts.get(state.past),
            now: self.times[state.time as usize],
        }
    }

    pub(crate) fn truth_number(&self, state: &State) -> u32 {
        let whole = whole(state);
        if let Some(known) = recent::find(self.number, &whole) {
            return known;
        }
        let truth =
            self.truth_of.get_or(whole, || self.truths.put(self.system.truth(&self.scene(state))));
        recent::keep(self.number, whole, truth);
        truth
    }

    pub(crate) fn inner(&self, actor: usize) -> &dyn Inner<S::Machine> {
        self.actors[actor].actor.inner()
    }

    /// In which boot the machine of a controller is; None: it has no power.
    pub(crate) fn boot(&self, actor: usize, state: &State) -> Option<u8> {
        match self.programs[self.actors[actor].program].machine {
            None => Some(0),
            Some(machine) => self.system.boot(&self.machines.get(state.machines[machine])),
        }
    }

    pub(crate) fn moment(&self, actor: usize, state: &State) -> Moment {
        let of = &self.actors[actor];
        let all = self.program_moment(of.program, state);
        Moment { actor: actor as u8, hub: if of.sees_hub { all.hub } else { 0 }, ..all }
    }

    /// The same of a program: what its controllers may see, and what they may change.
    pub(crate) fn program_moment(&self, program: usize, state: &State) -> Moment {
        let of = &self.programs[program];
        let cluster = of.cluster.map_or(0, |cluster| state.servers[1 + cluster]);
        let machines = of.machine.map_or([0; CLUSTERS], |_| state.machines);
        let (hub, stale) = (state.servers[0], state.stale_of(program));
        Moment { actor: program as u8, hub, cluster, machines, stale, time: state.time }
    }

    /// What a controller would do now. Most decide by what they are shown, which many states have in common.
    pub(crate) fn reaction(&self, actor: usize, state: &State) -> Arc<Reaction> {
        let Some(cache) = self.cache(actor, state) else { return Arc::default() };
        let shown = self.first_reactions.get_or(cache, || self.react(&cache, None));
        shown.unwrap_or_else(|| {
            let react = || self.react(&cache, Some(state)).unwrap_or_default();
            self.reactions.get_or(self.moment(actor, state), react)
        })
    }

    /// None: it asks for live reads, and no state says what they find.
    fn react(&self, cache: &CacheView, state: Option<&State>) -> Option<Arc<Reaction>> {
        let (actor, at) = (usize::from(cache.actor), self.at(cache));
        let of = &self.actors[actor];
        let numbers = match of.subjects.asked(&self.inner(actor).subjects(at)) {
            Ok(numbers) => numbers,
            Err(subject) => {
                let name = of.actor.name();
                let words =
                    format!("{name} is asked about {subject}, for which the world has no room");
                let trouble = self.troubles.put(words);
                return Some(Arc::new(Reaction { subjects: Vec::new(), trouble }));
            }
        };
        let mut subjects = Vec::new();
        for subject in numbers {
            let reacted = self.react_to(actor, subject, at, state)?;
            let is_late = self.hostility.flights > 0;
            let begins = if is_late { self.begin(actor, subject, at) } else { 0 };
            subjects.push(Asked { subject, reacted, begins });
        }
        Some(Arc::new(Reaction { subjects, trouble: 0 }))
    }

    /// The number of the flight with which a step begins; 0: there is nothing to do.
    fn begin(&self, actor: usize, subject: usize, at: At<'_>) -> u32 {
        let name = self.actors[actor].subjects.name(subject);
        let stage = match self.inner(actor).think(&name, at, &Vec::new()) {
            Thought::Rest { .. } => return 0,
            Thought::Read(reads) => Stage::Reading { done: Vec::new(), left: reads.to_vec() },
            thought => Stage::Decided(self.effect(actor, subject, thought)),
        };
        self.flights.put(Flight { actor, subject, stage })
    }

    /// What happens to a step that is under way when it goes on.
    pub(crate) fn advance(&self, number: u32, state: &State) -> Advance {
        let flight = self.flights.get(number);
        match &flight.stage {
            Stage::Decided(effect) => Advance::Effect(*effect),
            Stage::Reading { done, left } => {
                let moment = self.moment(flight.actor, state);
                self.advanced.get_or((number, moment), || self.go_on(&flight, done, left, state))
            }
        }
    }

    /// The next read, or the decision.
    fn go_on(&self, flight: &Flight, done: &Done, left: &[u32], state: &State) -> Advance {
        let Flight { actor, subject, .. } = flight;
        let with = |stage: Stage| {
            Advance::Flight(self.flights.put(Flight { actor: *actor, subject: *subject, stage }))
        };
        if let Some((read, rest)) = left.split_first() {
            let mut done = done.clone();
            done.push((*read, self.read(*actor, *read, state)));
            return with(Stage::Reading { done, left: rest.to_vec() });
        }
        let Some(cache) = self.cache(*actor, state) else { return Advance::Over };
        let at = self.at(&cache);
        let name = self.actors[*actor].subjects.name(*subject);
        match self.inner(*actor).think(&name, at, done) {
            Thought::Rest { .. } => Advance::Over,
            Thought::Read(reads) => {
                with(Stage::Reading { done: done.clone(), left: reads.to_vec() })
            }
            thought => {
                let effect = self.effect(*actor, *subject, thought);
                let guard = self.effects.get(&effect).and_then(|effect| effect.guard);
                // What it rests on was out of date when it decided: it is refused whenever it lands.
                let is_void =
                    guard.is_some_and(|(server, slot)| self.is_stale(*actor, server, slot, state));
                if is_void { Advance::Over } else { with(Stage::Decided(effect)) }
            }
        }
    }

    /// Whether the cache of a controller shows another version of an object than its server has.
    fn is_stale(&self, actor: usize, server: usize, slot: Slot, state: &State) -> bool {
        let stale = state.stale_of(self.actors[actor].program);
        stale
            .iter()
            .any(|it| it.program != 0 && usize::from(it.server) == server && it.slot == slot)
    }

    /// Reads, decides: all at once. None: it would read, and there is no state to read.
    fn react_to(
        &self,
        actor: usize,
        subject: usize,
        at: At<'_>,
        state: Option<&State>,
    ) -> Option<Reacted> {
        let name = self.actors[actor].subjects.name(subject);
        let mut done = Vec::new();
        for _ in 0..=MOST_LIVE_READS {
            match self.inner(actor).think(&name, at, &done) {
                Thought::Rest { waits: false } => return Some(Reacted::Rests),
                Thought::Rest { waits: true } => return Some(Reacted::Waits),
                Thought::Read(reads) => {
                    let state = state?;
                    for read in reads.iter() {
                        done.push((*read, self.read(actor, *read, state)));
                    }
                }
                thought => return Some(Reacted::Acts(self.effect(actor, subject, thought))),
            }
        }
        // The shell would end such a step, too.
        Some(Reacted::Rests)
    }

    pub(crate) fn read(&self, actor: usize, read: u32, state: &State) -> crate::actor::Found {
        let machines = state.machines.map(|machine| self.machines.get(machine));
        let machines: Vec<&S::Machine> = machines.iter().map(|machine| &**machine).collect();
        let of = &self.programs[self.actors[actor].program];
        let is_hub = self.inner(actor).place_of(read) == Some(Place::HUB);
        assert!(
            !is_hub || self.actors[actor].sees_hub,
            "who reads the hub watches something there"
        );
        let admits = |server: u32, write: &Write| self.admits(&of.name, server, write);
        let live = Live {
            servers: &self.servers,
            hub: state.servers[0],
            cluster: of.cluster.map_or(0, |cluster| state.servers[1 + cluster]),
            machines: &machines,
            here: of.machine.unwrap_or(0),
            admits: &admits,
        };
        self.inner(actor).read(read, &live)
    }

    /// The number of an effect.
    pub(crate) fn effect(&self, actor: usize, subject: usize, thought: Thought<S::Machine>) -> u32 {
        let cluster = self.programs[self.actors[actor].program].cluster;
        let (text, action, because) = match thought {
            Thought::Write { write, because } => {
                let server = match write.address().place {
                    Place::HUB => 0,
                    _ => 1 + cluster.expect("who writes to a cluster works on one"),
                };
                (format!("{write:?}"), ActionOf::Write(server, write), because)
            }
            Thought::Outside { perform, action, because } => {
                (action.to_string(), ActionOf::Outside(perform, action), because)
            }
            Thought::Rest { .. } | Thought::Read(_) => unreachable!("it acts"),
        };
        // Number 0 stands for none.
        let number = 1 + self.effect_numbers.put((actor, subject, text));
        self.effects.get_or(number, || {
            let guard = match &action {
                ActionOf::Write(server, write) => self.guard(*server, write),
                ActionOf::Outside(..) => None,
            };
            Arc::new(Effect { actor, because, action, guard })
        });
        number
    }

    fn guard(&self, server: usize, write: &Write) -> Option<(usize, Slot)> {
        match write {
            Write::Patch { address, .. }
            | Write::Apply { address, resource_version: Some(_), .. }
            | Write::Delete { address, resource_version: Some(_), .. } => {
                Some((server, self.servers.slot(&address.kind, &address.name)))
            }
            Write::Create { .. } | Write::Apply { .. } | Write::Delete { .. } => None,
        }
    }

    /// What a controller is shown; None: its machine has no power.
    fn cache(&self, actor: usize, state: &State) -> Option<CacheView> {
        let boot = self.boot(actor, state)?;
        let program = self.actors[actor].program;
        let cluster = self.programs[program].cluster;
        let on_cluster = |cluster: usize| self.part(actor, 1, state.servers[1 + cluster]);
        let mut stale = state.stale_of(program);
        for it in stale.iter_mut().filter(|it| it.program != 0) {
            if !self.is_seen(actor, it.place(), it.slot) {
                *it = Stale::default();
            }
        }
        stale.sort_unstable_by(|one, other| other.cmp(one));
        Some(CacheView {
            actor: actor as u8,
            parts: [self.part(actor, 0, state.servers[0]), cluster.map_or(0, on_cluster)],
            stale,
            time: state.time,
            boot,
        })
    }

    /// The part of a server that a controller watches, by its number.
    fn part(&self, actor: usize, place: u8, content: u32) -> u32 {
        self.part_numbers.get_or((actor as u32, u32::from(place), content), || {
            let content = self.servers.content(content);
            let all = content.objects.iter().map(|(slot, version)| (*slot, *version));
            self.parts.put(all.filter(|(slot, _)| self.is_seen(actor, place, *slot)).collect())
        })
    }

    /// A view of what a controller is shown.
    fn at(&self, cache: &CacheView) -> At<'_> {
        let actor = usize::from(cache.actor);
        let view = self.views.get_or(*cache, || self.inner(actor).view(self.shown(cache)));
        let now = self.times[cache.time as usize];
        At { servers: &self.servers, view, now, boot: cache.boot }
    }

    fn shown(&self, cache: &CacheView) -> Shown {
        let stale = || cache.stale.iter().filter(|stale| stale.program != 0);
        let mut shown = Shown::new();
        for (place, part) in (0..).zip(cache.parts) {
            let is_stale = |slot: Slot| stale().any(|it| (it.place(), it.slot) == (place, slot));
            let part = self.parts.get(part);
            let up_to_date = part.iter().filter(|(slot, _)| !is_stale(*slot));
            shown.extend(up_to_date.map(|(_, version)| (place, *version)));
        }
        let of_old = stale().filter(|it| it.version != 0);
        shown.extend(of_old.map(|it| (it.place(), it.version)));
        shown.sort_unstable();
        shown
    }

    /// Whether a controller watches the kind of a slot.
    pub(crate) fn is_seen(&self, actor: usize, place: u8, slot: Slot) -> bool {
        self.seen.get_or((actor as u32, u32::from(place), slot), || {
            let key = self.servers.key(slot);
            let mut watches = self.inner(actor).watches().iter();
            watches.any(|(watched, kind)| number_of(*watched) == place && *kind == key.0)
        })
    }

    /// A server after a write, by the number of the effect.
    pub(crate) fn landing(&self, server: u32, effect: u32, write: &Write) -> Result<u32, Refused> {
        self.landings.get_or((server, effect), || {
            let effect = self.effects.get(&effect).expect("it was numbered");
            let program = &self.programs[self.actors[effect.actor].program].name;
            match self.admits(program, server, write) {
                true => self.servers.apply(server, write),
                false => Err(Refused::Forbidden),
            }
        })
    }

    /// Whether the policies of a server admit a write of a program.
    fn admits(&self, program: &str, server: u32, write: &Write) -> bool {
        self.system.admits(program, Objects::of(&self.servers, server), write)
    }

    /// A machine after an action, by the number of the effect.
    pub(crate) fn performed(
        &self,
        effect: u32,
        perform: &Perform<S::Machine>,
        here: usize,
        state: &State,
    ) -> u32 {
        self.performed.get_or((state.machines, effect), || {
            let machines = state.machines.map(|machine| self.machines.get(machine));
            let machines: Vec<&S::Machine> = machines.iter().map(|machine| &**machine).collect();
            self.machines.put(perform(&machines, here))
        })
    }

    pub(crate) fn difference(&self, before: u32, after: u32) -> Arc<Changed> {
        self.differences
            .get_or((before, after), || Arc::new(self.servers.difference(before, after)))
    }

    pub(crate) fn moves(&self, state: &State) -> Arc<Vec<MoveOf>> {
        self.moves.get_or(whole(state), || {
            let numbered = |found: Move<S::Machine>| {
                let mut machines = state.machines;
                for (place, machine) in found.machines.into_iter().enumerate() {
                    if let Some(machine) = machine {
                        machines[place] = self.machines.put(machine);
                    }
                }
                let Move { name, servers, chance, restarts, .. } = found;
                MoveOf { name, servers, machines, chance, restarts }
            };
            Arc::new(self.system.next(&self.scene(state)).into_iter().map(numbered).collect())
        })
    }
}

/// All of a state that is true, without what programs believe or are about to do.
pub(crate) fn whole(state: &State) -> [u32; 8] {
    let [hub, a, b] = state.servers;
    let [first, second] = state.machines;
    [hub, a, b, first, second, state.chance, state.past, state.time]
}

impl<S: System> Engine<S> {
    /// What the cache of a controller shows, with the slots; None: its machine has no power.
    pub(crate) fn visible(&self, actor: usize, state: &State) -> Option<Visible<'_>> {
        let cache = self.cache(actor, state)?;
        let shown = self.shown(&cache).into_iter();
        let objects =
            shown.map(|(place, version)| (place, self.servers.slot_of(version), version)).collect();
        Some(Visible { at: self.at(&cache), objects })
    }
}

/// What the cache of a controller shows: place, slot and version of each object.
pub(crate) struct Visible<'a> {
    pub(crate) at: At<'a>,
    pub(crate) objects: Vec<(u8, Slot, Version)>,
}
