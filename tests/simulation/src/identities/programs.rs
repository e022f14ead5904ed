//! The program of identities, as its list says, once or twice.

use super::account::Client;
use super::{PROGRAMS, Tenants};
use crate::Flaw;
use crate::engine::actor::Actor;
use crate::engine::line::Lines;
use crate::engine::{Broken, Engine};
use crate::fleet::Deceived;
use interlock_kernel::{Controller, Outside, Place};
use interlock_programs::{Account, Identities, Program, Visitor};
use interlock_shell::{Driver, Places, Server};
use std::sync::Arc;

impl Engine<Tenants> {
    /// Starts a program, if there is room for one more.
    pub(crate) async fn start_program(&mut self) -> Result<(), Broken> {
        let taken: Vec<usize> = self.world.places.values().copied().collect();
        let free = (0..PROGRAMS).find(|place| !taken.contains(place));
        let Some(place) = free else { return Ok(()) };
        self.numbered += 1;
        self.counts.twins += u64::from(!taken.is_empty());
        let name = if place == 0 { "controllers" } else { "controllers-2" };
        let clock = Arc::clone(&self.clock);
        let hub = Server::new(crate::HUB, self.lines.admin(name, crate::HUB));
        let places = Places::from([(Place::HUB, hub)]);
        let mut actor = Actor::empty(name, places, Arc::new(move || clock.now()), self.numbered);
        actor.is_cut.push((Place::HUB, Arc::default()));
        let driver = Client {
            account: Arc::clone(&self.world.account),
            place,
            gate: Arc::clone(&self.lines.gate),
            flaw: self.world.flaw,
        };
        let flaw = self.world.flaw;
        let mut rehearsal = Rehearsal { actor: &mut actor, lines: &self.lines, driver, flaw };
        Identities { settings: Arc::clone(&self.world.settings) }.visit(&mut rehearsal);
        self.world.places.insert(self.numbered, place);
        self.begins(actor).await
    }
}

/// Wires each controller that it is shown, and lies to those that the flaw is about.
struct Rehearsal<'a> {
    actor: &'a mut Actor,
    lines: &'a Lines,
    driver: Client,
    flaw: Flaw,
}

impl<O: Outside> Visitor<O> for Rehearsal<'_>
where
    Client: Driver<O>,
{
    fn room<C: Controller<Outside = O>>(&mut self, account: Account, controller: C) {
        let driver = self.driver.clone();
        let places = self.actor.places_as(&account.user(None), self.lines);
        match self.flaw.lie_to(controller.name()) {
            Some(lie) => self.actor.wire(Deceived(controller, lie), places, driver),
            None => self.actor.wire(controller, places, driver),
        }
    }
}
