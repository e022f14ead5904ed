//! One program of the fleet: the hub's controllers, or the agents of one cluster; with caches, and
//! hands, of its own.

use super::line::Lines;
use interlock_kernel::{Controller, Kind, Name, Object, Place, Subject, View, Watch};
use interlock_shell::faults::{Fault, Faults, Point, Seam};
use interlock_shell::{Clock, Driver, Ended, Places, Wiring, step_once};
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

struct Wired<C: Controller, H> {
    wiring: Wiring<C, H>,
    gone: Mutex<Gone>,
}

/// What left the caches of a controller: a shell tells the controller of it once more.
#[derive(Default)]
struct Gone {
    /// What the caches showed last, by watch.
    shown: Vec<Vec<Object>>,
    /// The subjects of objects that are gone, until a step about them has come to rest.
    subjects: BTreeSet<Subject>,
}

impl<C: Controller, H: Driver<C::Outside>> Wired<C, H> {
    fn gone(&self) -> MutexGuard<'_, Gone> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The subjects of what was shown by each watch before, and is not any more.
    fn notice_gone(&self, watches: &[Watch], shown: Vec<Vec<Object>>, view: &impl View) {
        let mut gone = self.gone();
        let before = std::mem::replace(&mut gone.shown, shown);
        for ((watch, before), now) in watches.iter().zip(&before).zip(&gone.shown.clone()) {
            let names: BTreeSet<Name> = now.iter().map(|object| Name::of(object)).collect();
            for object in before.iter().filter(|object| !names.contains(&Name::of(object))) {
                gone.subjects.extend(self.wiring.controller.subjects(watch, object, view));
            }
        }
    }
}

impl<C: Controller, H: Driver<C::Outside>> Room for Wired<C, H> {
    fn name(&self) -> &'static str {
        self.wiring.controller.name()
    }

    fn subjects(&self) -> Vec<Subject> {
        let (controller, view) = (&self.wiring.controller, self.wiring.view());
        let watches = controller.watches();
        let listed = |watch: &Watch| view.list(watch.place, &watch.kind, None);
        let shown: Vec<Vec<Object>> = watches.iter().map(listed).collect();
        let mut subjects = BTreeSet::new();
        for (watch, objects) in watches.iter().zip(&shown) {
            for object in objects {
                subjects.extend(controller.subjects(watch, object, &view));
            }
        }
        if let Some(everything) = controller.everything(&view) {
            let everything: BTreeSet<Subject> = everything.into_iter().collect();
            let missed: Vec<&Subject> = subjects.difference(&everything).collect();
            assert!(missed.is_empty(), "the shorter way of {} misses {missed:?}", self.name());
            // Some of it is in no object: a device is read although nothing says that there is something to read.
            subjects = everything;
        }
        self.notice_gone(&watches, shown, &view);
        subjects.extend(self.gone().subjects.iter().cloned());
        subjects.into_iter().collect()
    }

    fn step(self: Arc<Self>, subject: Subject) -> Stepping {
        // As in a queue of work: what becomes known while the step is under way is for the next one.
        let is_of_gone = self.gone().subjects.remove(&subject);
        Box::pin(async move {
            let ended = step_once(&self.wiring, &subject).await;
            if is_of_gone && !matches!(ended, Ended::Rests) {
                self.gone().subjects.insert(subject);
            }
            ended
        })
    }
}

/// What is to go wrong at the next effect, and what was done in words.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Before or after the next effect.
    pub(crate) next: Mutex<(Fault, Fault)>,
    /// The effects that were about to be done.
    pub(crate) actions: Mutex<Vec<String>>,
}

struct Planned(Arc<Plan>);

impl Faults for Planned {
    fn before(&self, point: &Point<'_>) -> Fault {
        let words = format!("effect {}: {}", point.number, point.action);
        self.0.actions.lock().unwrap_or_else(PoisonError::into_inner).push(words);
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
    /// A program without controllers, on these servers.
    pub(crate) fn empty(name: &str, places: Places, clock: Clock, instance: u64) -> Actor {
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

    /// Its servers for one of its accounts: it looks at the caches of all, and may do what its role
    /// allows.
    pub(crate) fn places_as(&self, user: &str, lines: &Lines) -> Places {
        let servers = self.is_cut.iter().filter_map(|(place, is_cut)| {
            let server = self.places.server(*place)?;
            let client = lines.account(&self.name, user, server.name(), is_cut);
            Some((*place, server.acting_as(client)))
        });
        servers.collect()
    }

    /// One more controller, on its servers. The random choices of a seed depend on the order.
    pub(crate) fn wire<C: Controller, H: Driver<C::Outside>>(
        &mut self,
        controller: C,
        places: Places,
        driver: H,
    ) {
        for watch in controller.watches() {
            let Some(server) = self.places.server(watch.place) else { continue };
            server.open(&watch);
            let known = |cache: &CacheAt| cache.place == watch.place && cache.kind == watch.kind;
            if !self.caches.iter().any(known) {
                let (place, kind) = (watch.place, watch.kind);
                self.caches.push(CacheAt { place, kind, seen: 0, deaf_until: 0 });
            }
        }
        let mut wiring = Wiring::new(controller, places, driver);
        wiring.clock = Arc::clone(&self.clock);
        wiring.seam = self.seam.clone();
        self.rooms.push(Arc::new(Wired { wiring, gone: Mutex::default() }));
    }

    /// Who plays a place for it: the hub, or the cluster or control plane that it serves.
    pub(crate) fn at(&self, place: Place) -> &'static str {
        match self.cluster {
            Some(cluster) if place != Place::HUB => crate::CLUSTERS[cluster],
            _ => crate::HUB,
        }
    }

    /// Shows one of its caches how everything of its kind was.
    pub(crate) fn show(&mut self, cache: usize, version: u64, listed: Vec<Object>) {
        let CacheAt { place, kind, seen, .. } = &mut self.caches[cache];
        if let Some(server) = self.places.server(*place) {
            server.show(kind, &listed);
        }
        *seen = version;
    }

    /// Whether it can talk to some of its servers and not to others.
    pub(crate) fn is_half_cut(&self) -> bool {
        let cut = self.is_cut.iter().filter(|(_, cut)| cut.load(Ordering::Relaxed)).count();
        cut > 0 && cut < self.is_cut.len()
    }

    /// Whether its line to a place is cut.
    pub(crate) fn is_cut_from(&self, place: Place) -> bool {
        let cut = self.is_cut.iter().find(|(of, _)| *of == place);
        cut.is_some_and(|(_, cut)| cut.load(Ordering::Relaxed))
    }
}
