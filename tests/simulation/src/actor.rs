//! One program of the fleet: the hub's controllers, or the agents of one cluster; with caches, and
//! hands, of its own.

use crate::flaws::{Deceived, Flaw};
use crate::line::Lines;
use crate::machine::OnMachine;
use interlock_api::placement::{Ref, Syncer};
use interlock_kernel::{Controller, Kind, Object, Outside, Place, Subject, View};
use interlock_placement::heartbeat::decide::PERIOD;
use interlock_programs::{Account, Agent, Hub, Machine, Program, Visitor};
use interlock_shell::faults::{Fault, Faults, Point, Seam};
use interlock_shell::{Clock, Ended, Hands, NoHands, Places, Server, Wiring, step_once};
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// A step that is under way.
pub(crate) type Stepping = Pin<Box<dyn Future<Output = Ended> + Send>>;

/// A controller at its place, whichever it is.
pub(crate) trait Room: Send + Sync {
    /// What it is called.
    fn name(&self) -> &'static str;
    /// All that it could take a step about now.
    fn subjects(&self) -> Vec<Subject>;
    /// One step.
    fn step(self: Arc<Self>, subject: Subject) -> Stepping;
}

struct Wired<C: Controller, H>(Wiring<C, H>);

impl<C: Controller, H: Hands<C::Outside>> Room for Wired<C, H> {
    fn name(&self) -> &'static str {
        self.0.controller.name()
    }

    fn subjects(&self) -> Vec<Subject> {
        let Wiring { controller, places, clock, .. } = &self.0;
        let view = places.view(clock());
        let mut subjects = BTreeSet::new();
        for watch in controller.watches() {
            for object in view.list(watch.place, &watch.kind, None) {
                subjects.extend(controller.subjects(&watch, &object, &view));
            }
        }
        if let Some(everything) = controller.everything(&view) {
            let everything: BTreeSet<Subject> = everything.into_iter().collect();
            assert_eq!(everything, subjects, "the shorter way of {} leads elsewhere", self.name());
        }
        subjects.into_iter().collect()
    }

    fn step(self: Arc<Self>, subject: Subject) -> Stepping {
        Box::pin(async move { step_once(&self.0, &subject).await })
    }
}

/// What is to go wrong at the next effect, and what was done in words.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Before or after the next effect.
    pub(crate) next: Mutex<(Fault, Fault)>,
    /// The effects that were about to be done.
    pub(crate) deeds: Mutex<Vec<String>>,
}

struct Planned(Arc<Plan>);

impl Faults for Planned {
    fn before(&self, point: &Point<'_>) -> Fault {
        let words = format!("effect {}: {}", point.number, point.deed);
        self.0.deeds.lock().unwrap_or_else(PoisonError::into_inner).push(words);
        std::mem::take(&mut self.0.next.lock().unwrap_or_else(PoisonError::into_inner).0)
    }

    fn after(&self, _: &Point<'_>) -> Fault {
        std::mem::take(&mut self.0.next.lock().unwrap_or_else(PoisonError::into_inner).1)
    }
}

/// A cache of an actor.
pub(crate) struct CacheAt {
    /// At the hub, or at its cluster.
    pub(crate) place: Place,
    /// Of which kind.
    pub(crate) kind: Kind,
    /// Up to which version of the server it has news.
    pub(crate) seen: u64,
    /// No news comes before this event.
    pub(crate) deaf_until: u64,
}

/// A program.
pub(crate) struct Actor {
    /// `hub`, `west`, `west-2`.
    pub(crate) name: String,
    /// The place of its cluster in the world, if it serves one.
    pub(crate) cluster: Option<usize>,
    /// Tells it from all programs before it.
    pub(crate) instance: u64,
    /// It is stopped, and takes no step, before this event.
    pub(crate) stopped_until: u64,
    /// Its controllers.
    pub(crate) rooms: Vec<Arc<dyn Room>>,
    /// Its caches.
    pub(crate) caches: Vec<CacheAt>,
    /// What goes wrong on purpose.
    pub(crate) plan: Arc<Plan>,
    /// Whether its lines to the hub and to its cluster are cut.
    pub(crate) is_cut: Vec<(Place, Arc<AtomicBool>)>,
    places: Places,
    clock: Clock,
    seam: Seam,
}

impl Actor {
    fn empty(name: &str, places: Places, (clock, instance): (Clock, u64)) -> Actor {
        let plan = Arc::new(Plan::default());
        Actor {
            name: name.to_owned(),
            cluster: None,
            instance,
            stopped_until: 0,
            rooms: Vec::new(),
            caches: Vec::new(),
            seam: Seam::with(Planned(Arc::clone(&plan))),
            plan,
            is_cut: Vec::new(),
            places,
            clock,
        }
    }

    /// The controllers of the hub.
    pub(crate) fn hub(lines: &Lines, (clock, flaw): (&Clock, Flaw), instance: u64) -> Actor {
        let (client, is_cut) = lines.client(crate::HUB, crate::HUB);
        let places = Places::from([(Place::HUB, Server::new(crate::HUB, client))]);
        let mut actor = Actor::empty(crate::HUB, places, (Arc::clone(clock), instance));
        actor.is_cut.push((Place::HUB, is_cut));
        actor.start(&Hub::default(), NoHands, flaw);
        actor
    }

    /// The agents of a cluster.
    pub(crate) fn agents(
        (name, of): (&str, &Ref),
        lines: &Lines,
        (clock, flaw): (&Clock, Flaw),
        hands: &OnMachine,
    ) -> Actor {
        let (hub, hub_cut) = lines.client(name, crate::HUB);
        let (cluster, cluster_cut) = lines.client(name, &of.name);
        let places = Places::from([
            (Place::HUB, Server::new(crate::HUB, hub)),
            (Place::CLUSTER, Server::new(&of.name, cluster)),
        ]);
        let mut actor = Actor::empty(name, places, (Arc::clone(clock), hands.instance));
        actor.is_cut = vec![(Place::HUB, hub_cut), (Place::CLUSTER, cluster_cut)];
        let program = Agent {
            of: of.clone(),
            introduction: Syncer {
                instance: format!("{name}-{}", hands.instance),
                version: "simulated".to_owned(),
                boot_id: hands.machine.boot_id(),
            },
            further: Vec::new(),
            machine: Some(Machine { is_root: false, has_volumes: hands.disk.is_some() }),
            heartbeat_every: PERIOD,
        };
        actor.start(&program, hands.clone(), flaw);
        actor
    }

    /// Wires a program, in the order of its list: the random choices of a seed depend on it.
    fn start<'a, P, H>(&'a mut self, program: &P, hands: H, flaw: Flaw)
    where
        P: Program<Rehearsal<'a, H>>,
    {
        program.visit(&mut Rehearsal { actor: self, hands, flaw });
    }

    fn wire<C: Controller, H: Hands<C::Outside>>(&mut self, controller: C, hands: H) {
        for watch in controller.watches() {
            let Some(server) = self.places.server(watch.place) else { continue };
            server.open(&watch.kind, &watch.indexes);
            let known = |cache: &CacheAt| cache.place == watch.place && cache.kind == watch.kind;
            if !self.caches.iter().any(known) {
                let (place, kind) = (watch.place, watch.kind);
                self.caches.push(CacheAt { place, kind, seen: 0, deaf_until: 0 });
            }
        }
        let mut wiring = Wiring::new(controller, self.places.clone(), hands);
        wiring.clock = Arc::clone(&self.clock);
        wiring.seam = self.seam.clone();
        self.rooms.push(Arc::new(Wired(wiring)));
    }

    /// Who plays a place for it: the hub, or the cluster that it serves.
    pub(crate) fn at(&self, place: Place) -> &'static str {
        match self.cluster {
            Some(cluster) if place == Place::CLUSTER => crate::CLUSTERS[cluster],
            _ => crate::HUB,
        }
    }

    /// Shows one of its caches how everything of its kind was.
    pub(crate) fn show(&mut self, cache: usize, (version, listed): (u64, Vec<Object>)) {
        let CacheAt { place, kind, seen, .. } = &mut self.caches[cache];
        if let Some(server) = self.places.server(*place) {
            server.show(kind, listed);
        }
        *seen = version;
    }

    /// Whether its line to a place is cut.
    pub(crate) fn is_cut_from(&self, place: Place) -> bool {
        let cut = self.is_cut.iter().find(|(of, _)| *of == place);
        cut.is_some_and(|(_, cut)| cut.load(std::sync::atomic::Ordering::Relaxed))
    }
}

/// The systems that the people of this simulation use. The controllers of another one would have nothing to do,
/// and take chances away from these: every seed would be another story.
const SYSTEMS: [&str; 2] = ["placement/", "volumes/"];

/// Wires each controller that it is shown, and lies to those that the flaw is about.
struct Rehearsal<'a, H> {
    actor: &'a mut Actor,
    hands: H,
    flaw: Flaw,
}

impl<O: Outside, H: Hands<O> + Clone> Visitor<O> for Rehearsal<'_, H> {
    fn room<C: Controller<Outside = O>>(&mut self, _: Account, controller: C) {
        if !SYSTEMS.iter().any(|system| controller.name().starts_with(system)) {
            return;
        }
        let hands = self.hands.clone();
        match self.flaw.lie_to(controller.name()) {
            Some(lie) => self.actor.wire(Deceived(controller, lie), hands),
            None => self.actor.wire(controller, hands),
        }
    }
}
