//! Every step out of a state.

use crate::can_do::{CanDo, Change};
use crate::flight::Stage;
use crate::server::{Changed, Slot, Version, old};
use crate::state::{CLUSTERS, MOST_FLIGHTS, Stale, State};
use crate::system::{Crashes, System};
use crate::world::{ActionOf, Advance, Asked, Engine, Moment, Reacted, Visible};
use interlock_checker::{Action, ActionId, Fairness, Steps};
use interlock_kernel::{Place, Subject};
use std::sync::Arc;

/// More steps than any system takes to where its world begins.
const MOST_STEPS_BEFORE: usize = 500;

/// What a step is: the action's name, who acts, and which numbers it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A controller reads, decides and acts about a subject, all at once.
    Step { actor: usize, subject: usize },
    /// A controller begins a step about a subject, and other things come in between.
    Begin { actor: usize, subject: usize },
    /// A step that is under way goes on.
    Continue { actor: usize, subject: usize },
    /// A cache hears of something that it missed.
    Hear { program: usize },
    /// A program crashes.
    Crash { program: usize },
    /// People or machines do something.
    Move { name: usize },
    /// The clock goes on.
    Time,
}

/// The steps that are under way, by controller and subject.
type UnderWay = [Option<(usize, usize)>; MOST_FLIGHTS];

impl<S: System> Engine<S> {
    /// Every action, in a fixed order.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let mut kinds = Vec::new();
        for (actor, of) in self.actors.iter().enumerate() {
            for subject in 0..of.subjects.len() {
                kinds.push(Kind::Step { actor, subject });
                kinds.push(Kind::Begin { actor, subject });
                kinds.push(Kind::Continue { actor, subject });
            }
        }
        for program in 0..self.programs.len() {
            kinds.push(Kind::Hear { program });
            kinds.push(Kind::Crash { program });
        }
        kinds.extend((0..self.system.moves().len()).map(|name| Kind::Move { name }));
        kinds.push(Kind::Time);
        kinds
    }

    pub(crate) fn id(&self, kind: Kind) -> ActionId {
        let of = |actor: usize, subject: usize| self.first_action[actor] + subject * 3;
        let after_steps = self.first_action[self.actors.len()];
        let after_programs = after_steps + 2 * self.programs.len();
        let id = match kind {
            Kind::Step { actor, subject } => of(actor, subject),
            Kind::Begin { actor, subject } => of(actor, subject) + 1,
            Kind::Continue { actor, subject } => of(actor, subject) + 2,
            Kind::Hear { program } => after_steps + program * 2,
            Kind::Crash { program } => after_steps + program * 2 + 1,
            Kind::Move { name } => after_programs + name,
            Kind::Time => after_programs + self.move_count,
        };
        id as ActionId
    }

    pub(crate) fn action(&self, kind: Kind) -> Action {
        let room = |actor: usize| {
            let name = self.actors[actor].actor.name();
            name.rsplit('/').next().unwrap_or(name)
        };
        let about = |verb: &str, actor: usize, subject: usize| {
            let of = &self.actors[actor];
            let program = &self.programs[of.program].name;
            Action::new(format!("{verb}({}: {})", room(actor), of.subjects.label(subject)), program)
        };
        match kind {
            Kind::Step { actor, subject } => about("Step", actor, subject),
            Kind::Begin { actor, subject } => about("Begin", actor, subject),
            Kind::Continue { actor, subject } => about("Continue", actor, subject),
            Kind::Hear { program } => {
                let name = &self.programs[program].name;
                Action::new(format!("Hear({name})"), name)
            }
            Kind::Crash { program } => {
                let name = &self.programs[program].name;
                Action::new(format!("Crash({name})"), name)
            }
            Kind::Move { name } => {
                let (name, by, _) = self.system.moves()[name];
                Action::new(name, by)
            }
            Kind::Time => Action::new("TimePasses", "clock"),
        }
    }

    /// Each controller goes on with each subject, and caches and machines go on too. A step that is
    /// begun counts only when it is over, so that no behaviour begins for ever.
    pub(crate) fn fairness(&self) -> Vec<Fairness> {
        let mut fairness = Vec::new();
        for (actor, of) in self.actors.iter().enumerate() {
            for subject in 0..of.subjects.len() {
                let ids = [Kind::Step { actor, subject }, Kind::Continue { actor, subject }];
                let program = &self.programs[of.program].name;
                let name =
                    format!("{program}: {}: {}", of.actor.name(), of.subjects.label(subject));
                fairness.push(Fairness::weak(name, ids.map(|kind| self.id(kind))));
            }
        }
        for (program, of) in self.programs.iter().enumerate() {
            let hears = format!("{} hears", of.name);
            fairness.push(Fairness::weak(hears, [self.id(Kind::Hear { program })]));
        }
        if self.times.len() > 1 {
            fairness.push(Fairness::weak("the clock goes on", [self.id(Kind::Time)]));
        }
        for (name, (words, _, must_happen)) in self.system.moves().into_iter().enumerate() {
            if must_happen {
                fairness.push(Fairness::weak(words, [self.id(Kind::Move { name })]));
            }
        }
        fairness
    }

    /// The state in which the world begins: until then controllers and machines act alone, and of all
    /// that they can do the first is done.
    pub(crate) fn begun(&self, first: State) -> State {
        let (kinds, moves) = (self.kinds(), self.system.moves());
        let acts_alone = |action: ActionId| match kinds[action as usize] {
            Kind::Step { .. } => true,
            Kind::Move { name } => moves[name].2,
            Kind::Begin { .. } | Kind::Continue { .. } => false,
            Kind::Hear { .. } | Kind::Crash { .. } | Kind::Time => false,
        };
        let mut state = first;
        for _ in 0..MOST_STEPS_BEFORE {
            if self.system.begins(&self.truths.get(self.truth_number(&state))) {
                return state;
            }
            let mut steps = Steps::default();
            self.next(&state, &mut steps);
            let is_calm = |to: &State| to.stale_count() == 0 && to.flight_count() == 0;
            let mut steps = steps.as_slice().iter();
            let next = steps.find(|step| acts_alone(step.action) && is_calm(&step.to));
            state = next.expect("the controllers come to where the world begins").to;
        }
        panic!("the controllers do not come to where the world begins");
    }

    pub(crate) fn next(&self, state: &State, steps: &mut Steps<State>) {
        if state.trouble != 0 {
            return;
        }
        let mut out = Out { engine: self, from: state, steps };
        let mut under_way = UnderWay::default();
        let flights = state.flights.into_iter().filter(|number| *number != 0);
        for (place, number) in flights.enumerate() {
            under_way[place] = Some(self.continues(number, state, &mut out));
        }
        for program in 0..self.programs.len() {
            self.steps_of(program, &under_way, state, &mut out);
        }
        for stale in state.stale.iter().filter(|stale| stale.program != 0) {
            let mut next = *state;
            next.drop_stale(|other| other == stale);
            out.push(Kind::Hear { program: usize::from(stale.program) - 1 }, next);
        }
        let (may_crash, counts) = match self.hostility.crashes {
            Crashes::None => (false, 0),
            Crashes::AtMost(most) => (state.crashes < u32::from(most), 1),
            Crashes::Any => (true, 0),
        };
        for program in (0..self.programs.len()).filter(|_| may_crash) {
            let next = self.crashed(program, state);
            // A crash that changes nothing need not be counted.
            if next != *state {
                let crashes = state.crashes + counts;
                out.push(Kind::Crash { program }, State { crashes, ..next });
            }
        }
        let has_time = (state.time as usize) + 1 < self.times.len();
        if has_time && self.system.may_pass(&self.scene(state)) {
            out.push(Kind::Time, State { time: state.time + 1, ..*state });
        }
        for found in self.moves(state).iter() {
            let kind = Kind::Move { name: found.name };
            let mut next = State { machines: found.machines, chance: found.chance, ..*state };
            if let Some(machine) = found.restarts {
                for (program, of) in self.programs.iter().enumerate() {
                    let is_there = of.machine == Some(machine);
                    if is_there && !self.system.outlives_its_machine(&of.name) {
                        self.forget(program, &mut next);
                    }
                }
            }
            out.change(kind, found.servers, next);
        }
    }

    /// The steps of a program. One program takes no two steps about one subject at once.
    fn steps_of(&self, program: usize, under_way: &UnderWay, state: &State, out: &mut Out<'_, S>) {
        let has_room = state.flight_count() < self.hostility.flights;
        let may_begin = has_room && self.system.may_be_late(&self.programs[program].name);
        for can in self.can_do(program, state).iter() {
            let (actor, subject) = (can.actor, can.subject);
            if can.trouble != 0 {
                out.push(Kind::Step { actor, subject }, State { trouble: can.trouble, ..*state });
                continue;
            }
            if under_way.contains(&Some((actor, subject))) {
                continue;
            }
            if let Some(change) = can.change {
                let (servers, next) = change.of(state);
                out.change(Kind::Step { actor, subject }, servers, next);
            }
            // One whose effect would be refused now, and so at any time later, need not be late.
            let is_void = can.is_guarded && can.change.is_none();
            if can.begins == 0 || !may_begin || is_void {
                continue;
            }
            let mut next = *state;
            next.add_flight(can.begins);
            out.push(Kind::Begin { actor, subject }, next);
        }
    }

    /// What the controllers of a program can do now. Many states look the same to a program, so it is worked out
    /// once for all of them.
    fn can_do(&self, program: usize, state: &State) -> Arc<Vec<CanDo>> {
        self.can_do.get_or(self.program_moment(program, state), || {
            let actors = self.programs[program].actors.iter();
            Arc::new(actors.flat_map(|actor| self.can_do_of(*actor, state)).collect())
        })
    }

    fn can_do_of(&self, actor: usize, state: &State) -> Vec<CanDo> {
        let reaction = self.reaction(actor, state);
        if reaction.trouble != 0 {
            return vec![CanDo { actor, trouble: reaction.trouble, ..CanDo::default() }];
        }
        let can = |asked: &Asked| {
            let change = match asked.reacted {
                Reacted::Acts(effect) => self.change_by(effect, state),
                Reacted::Rests | Reacted::Waits => None,
            };
            let (subject, begins) = (asked.subject, asked.begins);
            let is_guarded = begins != 0 && self.is_guarded(begins);
            CanDo { actor, subject, change, begins, is_guarded, trouble: 0 }
        };
        reaction.subjects.iter().map(can).collect()
    }

    /// Whether a step has decided on an effect that rests on the version of an object.
    fn is_guarded(&self, flight: u32) -> bool {
        match self.flights.get(flight).stage {
            Stage::Decided(effect) => {
                self.effects.get(&effect).is_some_and(|effect| effect.guard.is_some())
            }
            Stage::Reading { .. } => false,
        }
    }

    /// A step that is under way goes on. Whose it is, and about which subject.
    fn continues(&self, number: u32, state: &State, out: &mut Out<'_, S>) -> (usize, usize) {
        let flight = self.flights.get(number);
        let kind = Kind::Continue { actor: flight.actor, subject: flight.subject };
        let mut next = *state;
        match self.advance(number, state) {
            Advance::Flight(new) => {
                next.replace_flight(number, new);
                out.push(kind, next);
            }
            Advance::Over => {
                next.replace_flight(number, 0);
                out.push(kind, next);
            }
            Advance::Effect(effect) => {
                next.replace_flight(number, 0);
                let (servers, next) = match self.change_by(effect, state) {
                    Some(change) => change.of(&next),
                    None => (next.servers, next),
                };
                out.change(kind, servers, next);
            }
        }
        (flight.actor, flight.subject)
    }

    /// What an effect changes; None: nothing, since it is refused, or has no machine.
    fn change_by(&self, number: u32, state: &State) -> Option<Change> {
        let effect = self.effects.get(&number).expect("it was numbered");
        match &effect.action {
            ActionOf::Write(server, write) => {
                let content = self.landing(state.servers[*server], number, write).ok()?;
                let is_new = content != state.servers[*server];
                is_new.then_some(Change::Server(*server, content))
            }
            ActionOf::Outside(perform, _) => {
                let program = self.actors[effect.actor].program;
                let here = self.programs[program].machine.expect("it is on a machine");
                self.boot(effect.actor, state)?;
                let machine = self.performed(number, perform, here, state);
                let is_new = machine != state.machines[here];
                is_new.then_some(Change::Machine(here, machine))
            }
        }
    }

    /// The servers and machines after an effect; the same if it changes nothing.
    pub(crate) fn after(&self, number: u32, state: &State) -> State {
        let Some(change) = self.change_by(number, state) else { return *state };
        let (servers, after) = change.of(state);
        State { servers, ..after }
    }

    fn crashed(&self, program: usize, state: &State) -> State {
        let mut next = *state;
        self.forget(program, &mut next);
        let of = &self.programs[program];
        if let Some(machine) = of.machine {
            let before = state.machines[machine];
            next.machines[machine] = self.crashed.get_or((program as u32, before), || {
                self.machines.put(self.system.crash(&of.name, &self.machines.get(before)))
            });
        }
        next
    }

    /// A program loses its memory: what it had under way, and its cache, which it fills anew.
    fn forget(&self, program: usize, next: &mut State) {
        for number in next.flights.into_iter().filter(|number| *number != 0) {
            if self.actors[self.flights.get(number).actor].program == program {
                next.replace_flight(number, 0);
            }
        }
        if !self.hostility.relists {
            next.drop_stale(|stale| usize::from(stale.program) == program + 1);
        }
    }
}

/// Where the steps out of a state go.
struct Out<'a, S: System> {
    engine: &'a Engine<S>,
    from: &'a State,
    steps: &'a mut Steps<State>,
}

impl<S: System> Out<'_, S> {
    /// One step; one that changes nothing is none.
    fn push(&mut self, kind: Kind, mut next: State) {
        if next == *self.from {
            return;
        }
        let engine = self.engine;
        let remembers = size_of::<S::Past>() > 0;
        if remembers && (next.servers != self.from.servers || next.machines != self.from.machines) {
            let before = engine.truth_number(self.from);
            let after = engine.truth_number(&next);
            if before != after {
                next.past = engine.remembered.get_or((self.from.past, before, after), || {
                    let (old, new) = (engine.truths.get(before), engine.truths.get(after));
                    let past = engine.pasts.get(self.from.past);
                    engine.pasts.put(engine.system.remember(&past, &old, &new))
                });
            }
        }
        if next.trouble == 0 && engine.hostility.wakes {
            next.trouble = engine.sleeper(kind, self.from, &next);
        }
        self.steps.step(engine.id(kind), next);
    }

    /// Servers change, and every cache either hears of it or misses one of the changes.
    fn change(&mut self, kind: Kind, servers: [u32; 1 + CLUSTERS], mut next: State) {
        let engine = self.engine;
        let may_miss = next.stale_count() < engine.hostility.stale;
        let mut missed: Vec<Stale> = Vec::new();
        for (server, after) in servers.into_iter().enumerate() {
            let before = next.servers[server];
            if before == after {
                continue;
            }
            for number in next.flights.into_iter().filter(|number| *number != 0) {
                let key = (number, server as u32, before, after);
                let outdate = || self.outdated(number, server, &engine.difference(before, after));
                let new = engine.outdated.get_or(key, outdate);
                if new != number {
                    next.replace_flight(number, new);
                }
            }
            if may_miss {
                missed.extend(
                    engine.missed(server, before, after).iter().filter(|it| next.can_miss(it)),
                );
            }
        }
        next.servers = servers;
        self.push(kind, next);
        for stale in missed {
            let mut next = next;
            next.add_stale(stale);
            self.push(kind, next);
        }
    }

    /// A step under way after some objects changed: an effect that would be refused is gone, and
    /// what was read of them is out of date.
    fn outdated(&self, number: u32, server: usize, changed: &Changed) -> u32 {
        let changed: Vec<Slot> = changed.iter().map(|(slot, _)| *slot).collect();
        let engine = self.engine;
        let flight = engine.flights.get(number);
        if let Stage::Decided(effect) = &flight.stage {
            let effect = engine.effects.get(effect).expect("it was numbered");
            let is_void = |(at, slot): (usize, Slot)| at == server && changed.contains(&slot);
            return if effect.guard.is_some_and(is_void) { 0 } else { number };
        }
        let cluster = engine.programs[engine.actors[flight.actor].program].cluster;
        let is_there = |read: u32| match engine.inner(flight.actor).place_of(read) {
            Some(Place::HUB) => server == 0,
            Some(_) => cluster.is_some_and(|cluster| server == 1 + cluster),
            None => false,
        };
        engine.flights.put(flight.outdated(&engine.servers, is_there, &changed))
    }
}

/// A state, and all of it that a controller decides by.
#[derive(Clone, Copy)]
struct Known<'a> {
    state: &'a State,
    moment: Moment,
}

impl<S: System> Engine<S> {
    /// What the cache of some program may miss when a server changes.
    fn missed(&self, server: usize, before: u32, after: u32) -> Arc<Vec<Stale>> {
        self.missed.get_or((server as u32, before, after), || {
            let changed = self.difference(before, after);
            let mut missed = Vec::new();
            for (program, of) in self.programs.iter().enumerate() {
                let is_reachable_here = server == 0 || of.cluster == Some(server - 1);
                if !is_reachable_here || !self.system.may_be_behind(&of.name) {
                    continue;
                }
                let (program, server) = (program as u8 + 1, server as u8);
                let stale = |(slot, was): &(Slot, Version)| Stale {
                    program,
                    server,
                    slot: *slot,
                    version: old(*was),
                };
                let is_seen = |it: &Stale| {
                    of.actors.iter().any(|actor| self.is_seen(*actor, it.place(), it.slot))
                };
                missed.extend(changed.iter().map(stale).filter(is_seen));
            }
            Arc::new(missed)
        })
    }

    /// Whoever gains work by a step must be woken by it: by a change in its cache, or because it
    /// asks again by itself. The number of what is wrong; 0: nothing.
    fn sleeper(&self, kind: Kind, from: &State, to: &State) -> u32 {
        for actor in 0..self.actors.len() {
            if self.system.reads_again(&self.programs[self.actors[actor].program].name) {
                continue;
            }
            let acts = match kind {
                Kind::Step { actor, subject } | Kind::Continue { actor, subject } => {
                    Some((actor, subject))
                }
                // Who starts anew asks about everything.
                Kind::Crash { program } if self.actors[actor].program == program => continue,
                Kind::Begin { .. } => return 0,
                Kind::Hear { .. } | Kind::Crash { .. } | Kind::Move { .. } | Kind::Time => None,
            };
            let before = Known { state: from, moment: self.moment(actor, from) };
            let after = Known { state: to, moment: self.moment(actor, to) };
            if before.moment == after.moment {
                continue;
            }
            let own = acts.filter(|(acting, _)| *acting == actor).map(|(_, subject)| subject);
            if own.is_none() {
                let known = self.slept.get_or((before.moment, after.moment), || {
                    self.asleep(actor, None, before, after)
                });
                if known != 0 {
                    return known;
                }
                continue;
            }
            // After its own effect a controller asks about that subject once more.
            let trouble = self.asleep(actor, own, before, after);
            if trouble != 0 {
                return trouble;
            }
        }
        0
    }

    fn asleep(&self, actor: usize, own: Option<usize>, before: Known<'_>, after: Known<'_>) -> u32 {
        let (from, to) = (before.state, after.state);
        let (was, is) = (self.reaction(actor, from), self.reaction(actor, to));
        let boots = (self.boot(actor, from), self.boot(actor, to));
        if boots.0 != boots.1 {
            return 0;
        }
        let mut woken = None;
        for Asked { subject, reacted, .. } in &is.subjects {
            let gains =
                was.about(*subject) == Reacted::Rests && matches!(reacted, Reacted::Acts(_));
            if !gains || own == Some(*subject) {
                continue;
            }
            let woken = woken.get_or_insert_with(|| self.woken(actor, from, to));
            let name = self.actors[actor].subjects.name(*subject);
            if !woken.contains(&name) {
                let room = self.actors[actor].actor.name();
                return self.troubles.put(format!("{room} has work about {name}, and sleeps"));
            }
        }
        0
    }

    /// Whom the changes in the cache of a controller wake.
    fn woken(&self, actor: usize, from: &State, to: &State) -> Vec<Subject> {
        let Some(Visible { at, objects: new }) = self.visible(actor, to) else { return Vec::new() };
        let old = self.visible(actor, from).map(|visible| visible.objects).unwrap_or_default();
        // As the shell does: by a change of an object, as it was and as it is.
        let added = new.iter().filter(|it| !old.contains(it));
        let removed = old.iter().filter(|it| !new.contains(it));
        let changed = added.chain(removed);
        changed
            .flat_map(|(place, _, version)| self.inner(actor).woken(*place, *version, at))
            .collect()
    }
}
