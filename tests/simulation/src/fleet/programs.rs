//! The programs of the fleet, as their lists say, each controller with the role of its account.

use super::flaws::{Deceived, Flaw};
use super::machine::OnMachine;
use crate::engine::actor::Actor;
use crate::engine::line::Lines;
use interlock_api::placement::{Ref, Syncer};
use interlock_kernel::{Controller, Outside, Place};
use interlock_placement::heartbeat::decide::PERIOD;
use interlock_placement::runtime::Scope;
use interlock_placement::runtime::tokens::Cloud;
use interlock_programs::{Account, Agent, Hub, Machine, Program, Visitor};
use interlock_shell::{Clock, Driver, NoDriver, Places, Server};
use std::sync::Arc;

/// What every program of the simulation begins with.
pub(crate) struct Wings<'a> {
    pub(crate) lines: &'a Lines,
    pub(crate) clock: Clock,
    pub(crate) flaw: Flaw,
}

/// The controllers of the hub.
pub(crate) fn hub(wings: Wings<'_>, instance: u64) -> Actor {
    let Wings { lines, clock, flaw } = wings;
    let hub = Server::new(crate::HUB, lines.admin(crate::HUB, crate::HUB));
    let places = Places::from([(Place::HUB, hub)]);
    let mut actor = Actor::empty(crate::HUB, places, clock, instance);
    actor.is_cut.push((Place::HUB, Arc::default()));
    let mut rehearsal = Rehearsal { actor: &mut actor, lines, of: None, driver: NoDriver, flaw };
    Hub::default().visit(&mut rehearsal);
    actor
}

/// The agents of a cluster.
pub(crate) fn agent(wings: Wings<'_>, name: &str, of: &Ref, driver: &OnMachine) -> Actor {
    let Wings { lines, clock, flaw } = wings;
    let server = |at: &str| Server::new(at, lines.admin(name, at));
    let places = [(Place::HUB, server(crate::HUB)), (Place::CLUSTER, server(&of.name))];
    let places = Places::from(places);
    let mut actor = Actor::empty(name, places, clock, driver.instance);
    actor.is_cut = vec![(Place::HUB, Arc::default()), (Place::CLUSTER, Arc::default())];
    let program = Agent {
        of: of.clone(),
        introduction: Syncer {
            instance: format!("{name}-{}", driver.instance),
            version: "simulated".to_owned(),
            boot_id: driver.machine.boot_id(),
        },
        further: Vec::new(),
        machine: Some(Machine {
            is_root: false,
            has_volumes: driver.disk.is_some(),
            scope: Scope::Synced,
        }),
        heartbeat_every: PERIOD,
        cloud: Cloud::default(),
    };
    let of = Some(of.name.as_str());
    let driver = driver.clone();
    program.visit(&mut Rehearsal { actor: &mut actor, lines, of, driver, flaw });
    actor
}

/// The systems that the people of this simulation use. The controllers of another one would have nothing to do,
/// and take chances away from these: every seed would be another story.
const SYSTEMS: [&str; 2] = ["placement/", "volumes/"];

/// Wires each controller that it is shown, and lies to those that the flaw is about.
struct Rehearsal<'a, H> {
    actor: &'a mut Actor,
    lines: &'a Lines,
    /// The cluster that it is an agent of.
    of: Option<&'a str>,
    driver: H,
    flaw: Flaw,
}

impl<O: Outside, H: Driver<O> + Clone> Visitor<O> for Rehearsal<'_, H> {
    fn room<C: Controller<Outside = O>>(&mut self, account: Account, controller: C) {
        if !SYSTEMS.iter().any(|system| controller.name().starts_with(system)) {
            return;
        }
        let driver = self.driver.clone();
        let places = self.actor.places_as(&account.user(self.of), self.lines);
        match self.flaw.lie_to(controller.name()) {
            Some(lie) => self.actor.wire(Deceived(controller, lie), places, driver),
            None => self.actor.wire(controller, places, driver),
        }
    }
}
