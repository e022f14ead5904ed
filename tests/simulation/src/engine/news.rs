//! What programs know: when news comes to their caches, and how old their first lists are.

use super::actor::{Actor, CacheAt};
use super::{Broken, Engine, Simulated};
use interlock_kernel::Place;

/// For how many events a cache may be without news.
const DEAF: usize = 300;

impl<W: Simulated> Engine<W> {
    /// Fills the caches of a program that starts, from now or from some time since the beginning;
    /// what they are like, in words.
    pub(crate) fn first_lists(&mut self, actor: &mut Actor) -> String {
        let newest = self.truth.newest;
        let behind = |back: u64| newest.saturating_sub(back).max(self.floor);
        let (oldest, place) = match self.chance.below(6) {
            0 => (self.floor, None),
            1 => (behind(30), None),
            // One server answers out of an old cache, and the other one does not.
            2 => (self.before_changes(Place::HUB, actor), Some(Place::HUB)),
            3 => (self.before_changes(Place::CLUSTER, actor), Some(Place::CLUSTER)),
            _ => (newest, None),
        };
        for cache in 0..actor.caches.len() {
            let of = actor.caches[cache].place;
            let version = match place {
                None => oldest + self.chance.below((newest - oldest + 1) as usize) as u64,
                Some(old) if (old == Place::HUB) == (of == Place::HUB) => oldest,
                Some(_) => newest,
            };
            self.fill(actor, cache, version);
        }
        let age = newest - oldest;
        match place {
            _ if age == 0 => "and lists what is there".to_owned(),
            None => format!("and lists what was there up to {age} versions ago"),
            Some(place) => {
                let until = self.for_a_while();
                let is_at_hub = place == Place::HUB;
                self.turn_deaf(actor, until, |cache| (cache.place == Place::HUB) == is_at_hub);
                format!("and lists what was there at the {place} {age} versions ago")
            }
        }
    }

    /// The version before one of the last changes of what decides whether something may run.
    fn before_changes(&self, place: Place, actor: &Actor) -> u64 {
        let (at_hub, at_cluster) = W::DECIDED_BY;
        let kind = if place == Place::HUB { at_hub } else { at_cluster };
        let changes = self.truth.changes(actor.at(place), &kind);
        let back = 1 + self.chance.below(4);
        let change = changes.len().checked_sub(back).map(|place| changes[place]);
        change.unwrap_or(self.floor).saturating_sub(1).max(self.floor)
    }

    fn fill(&mut self, actor: &mut Actor, cache: usize, version: u64) {
        let (place, kind) = (actor.caches[cache].place, &actor.caches[cache].kind);
        let at = actor.at(place);
        let listed = self.truth.all_at(at, kind, version).to_vec();
        self.counts.old_lists += u64::from(version < self.truth.changed(at, kind));
        actor.show(cache, version, listed);
    }

    /// Some event that is not too far away.
    pub(crate) fn for_a_while(&self) -> u64 {
        self.happened + self.chance.below(DEAF) as u64
    }

    /// Some caches of an actor get no news before an event.
    pub(crate) fn turn_deaf(
        &mut self,
        actor: &mut Actor,
        until: u64,
        is_deaf: impl Fn(&CacheAt) -> bool,
    ) {
        for cache in actor.caches.iter_mut().filter(|cache| is_deaf(cache)) {
            cache.deaf_until = until;
            self.counts.deaf_caches += 1;
        }
    }

    /// The caches of an actor that news has not come to, and could come to.
    pub(crate) fn stale(&self, actor: usize) -> Vec<usize> {
        let actor = &self.actors[actor];
        let caches = actor.caches.iter().enumerate();
        let stale = caches.filter(|(_, cache)| {
            let is_deaf = self.is_trouble && cache.deaf_until > self.happened;
            !is_deaf
                && cache.seen < self.truth.changed(actor.at(cache.place), &cache.kind)
                && !actor.is_cut_from(cache.place)
        });
        stale.map(|(place, _)| place).collect()
    }

    /// Brings one cache of an actor to a version.
    fn bring_up(&mut self, actor: usize, cache: usize, version: u64) {
        let actor = &mut self.actors[actor];
        let (place, kind) = (actor.caches[cache].place, &actor.caches[cache].kind);
        let listed = self.truth.all_at(actor.at(place), kind, version).to_vec();
        actor.show(cache, version, listed);
    }

    /// News comes to a cache: all of it, or only some.
    pub(crate) fn news(&mut self) -> Result<(), Broken> {
        let actor = self.chance.below(self.actors.len());
        let stale = if actor < self.actors.len() { self.stale(actor) } else { Vec::new() };
        let Some(&cache) = self.chance.one_of(&stale) else { return Ok(()) };
        let seen = self.actors[actor].caches[cache].seen;
        let newest = self.truth.newest;
        let version = match self.chance.below(4) {
            0 => seen + 1 + self.chance.below((newest - seen) as usize) as u64,
            _ => newest,
        };
        self.bring_up(actor, cache, version);
        Ok(())
    }

    /// All news that can come to an actor comes.
    pub(crate) fn bring_up_all(&mut self, actor: usize) {
        for cache in self.stale(actor) {
            self.bring_up(actor, cache, self.truth.newest);
        }
    }
}
