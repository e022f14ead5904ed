//! A step in words: which program, which controller, why, and what it wrote.

use crate::flight::Stage;
use crate::state::{Stale, State};
use crate::steps::Kind;
use crate::system::System;
use crate::world::{ActionOf, Engine, Reacted};
use interlock_checker::ActionId;
use interlock_kernel::Write;

/// More of a write than this is left out of a trace.
const MOST_CHARACTERS: usize = 240;

impl<S: System> Engine<S> {
    /// One step, as a person would tell it.
    pub(crate) fn tell(&self, from: &State, action: ActionId, to: &State) -> String {
        let kind = self.kinds()[usize::from(action)];
        let mut told = match kind {
            Kind::Step { actor, subject } => {
                let reaction = self.reaction(actor, from);
                match reaction.about(subject) {
                    Reacted::Acts(effect) => self.effect_in_words(effect),
                    Reacted::Rests | Reacted::Waits => "nothing to do".to_owned(),
                }
            }
            Kind::Begin { actor, .. } => {
                let begun = to.flights.iter().find(|flight| !from.flights.contains(flight));
                format!("begins: {}", self.flight_in_words(begun.copied(), actor))
            }
            Kind::Continue { actor, subject } => self.goes_on(actor, subject, from, to),
            Kind::Hear { program } => {
                let heard = from.stale.iter().find(|stale| !to.stale.contains(stale));
                let about = heard.map(|stale| self.slot_in_words(stale)).unwrap_or_default();
                format!("the cache of {} hears of {about}", self.programs[program].name)
            }
            Kind::Crash { program } => format!("{} crashes", self.programs[program].name),
            Kind::Move { name } => self.system.moves()[name].0.to_owned(),
            Kind::Time => format!("it is {}", self.times[to.time as usize]),
        };
        for stale in to.stale.iter().filter(|stale| stale.program != 0) {
            let is_known = |known: &Stale| {
                (known.program, known.server, known.slot)
                    == (stale.program, stale.server, stale.slot)
            };
            if !from.stale.iter().any(is_known) {
                let program = &self.programs[usize::from(stale.program) - 1].name;
                let about = self.slot_in_words(stale);
                told.push_str(&format!("; the cache of {program} does not hear of {about} yet"));
            }
        }
        if to.trouble != 0 {
            told.push_str(&format!("; {}", self.troubles.get(to.trouble)));
        }
        told
    }

    fn goes_on(&self, actor: usize, subject: usize, from: &State, to: &State) -> String {
        let flights = from.flights.iter().filter(|flight| **flight != 0);
        let mut mine = flights.map(|flight| self.flights.get(*flight));
        let mine = mine.find(|it| (it.actor, it.subject) == (actor, subject));
        let Some(mine) = mine else { return String::new() };
        match &mine.stage {
            Stage::Decided(effect) => format!("late: {}", self.effect_in_words(*effect)),
            Stage::Reading { left, .. } => match left.first() {
                Some(read) => self.inner(actor).show_read(*read),
                None => {
                    let new = to.flights.iter().find(|flight| !from.flights.contains(flight));
                    format!("decides: {}", self.flight_in_words(new.copied(), actor))
                }
            },
        }
    }

    fn flight_in_words(&self, flight: Option<u32>, actor: usize) -> String {
        let Some(flight) = flight.filter(|flight| *flight != 0) else {
            return "nothing to do".to_owned();
        };
        match &self.flights.get(flight).stage {
            Stage::Decided(effect) => format!("(not yet done) {}", self.effect_in_words(*effect)),
            Stage::Reading { left, .. } => match left.first() {
                Some(read) => format!("wants to: {}", self.inner(actor).show_read(*read)),
                None => "has read all".to_owned(),
            },
        }
    }

    fn effect_in_words(&self, effect: u32) -> String {
        let effect = self.effects.get(&effect).expect("it was numbered");
        let action = match &effect.action {
            ActionOf::Write(_, write) => write_in_words(write),
            ActionOf::Outside(_, action) => cut(action),
        };
        format!("{}: {action}", effect.because)
    }

    fn slot_in_words(&self, stale: &Stale) -> String {
        let key = self.servers.key(stale.slot);
        let server = match stale.server {
            0 => "the hub",
            cluster => self.system.clusters()[usize::from(cluster) - 1],
        };
        format!("{} {} at {server}", key.0, key.1)
    }

    /// What programs believe and are about to do.
    pub(crate) fn show(&self, state: &State) -> Vec<(&'static str, String)> {
        let flights = state.flights.iter().filter(|flight| **flight != 0);
        let under_way: Vec<String> = flights
            .map(|number| {
                let flight = self.flights.get(*number);
                let of = &self.actors[flight.actor];
                let program = &self.programs[of.program].name;
                let words = self.flight_in_words(Some(*number), flight.actor);
                format!("{program}: {words}")
            })
            .collect();
        let stale = state.stale.iter().filter(|stale| stale.program != 0);
        let stale: Vec<String> = stale
            .map(|stale| {
                let program = &self.programs[usize::from(stale.program) - 1].name;
                format!("{program}: {}", self.slot_in_words(stale))
            })
            .collect();
        vec![("under_way", under_way.join("; ")), ("out_of_date", stale.join("; "))]
    }
}

fn write_in_words(write: &Write) -> String {
    let (verb, body) = match write {
        Write::Create { object, .. } => ("create", object.to_string()),
        Write::Patch { change, .. } => ("patch", change.to_string()),
        Write::Apply { object, .. } => ("apply", object.to_string()),
        Write::Delete { .. } => ("delete", String::new()),
    };
    cut(&format!("{verb} {} {body}", write.address()))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
