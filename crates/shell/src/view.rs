//! What a step may see: the caches of the servers that play a controller's places.

use crate::cache::Cache;
use crate::server::Server;
use interlock_kernel::{Index, Kind, Name, Narrowed, Object, Place, Selections, View};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which server plays which place for a controller.
#[derive(Debug, Clone, Default)]
pub struct Places(Arc<BTreeMap<Place, Server>>);

impl FromIterator<(Place, Server)> for Places {
    fn from_iter<I: IntoIterator<Item = (Place, Server)>>(places: I) -> Self {
        Places(Arc::new(places.into_iter().collect()))
    }
}

impl<const N: usize> From<[(Place, Server); N]> for Places {
    fn from(places: [(Place, Server); N]) -> Self {
        places.into_iter().collect()
    }
}

impl Places {
    /// The server that plays a place.
    pub fn server(&self, place: Place) -> Option<&Server> {
        self.0.get(&place)
    }

    /// The names of the servers, by place.
    pub(crate) fn names(&self) -> BTreeMap<String, String> {
        let name =
            |(place, server): (&Place, &Server)| (place.to_string(), server.name().to_owned());
        self.0.iter().map(name).collect()
    }

    /// What a controller that selects this sees at this time.
    pub(crate) fn view<'a>(
        &'a self,
        selections: &'a Selections,
        now: Timestamp,
    ) -> Narrowed<'a, Caches<'a>> {
        selections.narrow(Caches { places: self, selections, now })
    }
}

/// The caches, as a step sees them. Each look is at the newest that the cache has: two looks in one
/// step may see two versions, as they may on any cache.
#[derive(Debug, Clone, Copy)]
pub struct Caches<'a> {
    places: &'a Places,
    selections: &'a Selections,
    now: Timestamp,
}

impl Caches<'_> {
    /// A cache that is not there is a mistake in the controller: what it would take for an empty
    /// fleet was never read. The step is given up and the mistake is logged.
    fn cache(&self, place: Place, kind: &Kind) -> Arc<Cache> {
        let selector = self.selections.at(place, kind);
        let cache = self.places.server(place).and_then(|server| server.cache(kind, selector));
        match cache {
            Some(cache) => cache,
            None => {
                panic!("a step reads {kind} at the {place}, which its controller does not watch")
            }
        }
    }
}

impl View for Caches<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        self.cache(place, kind).objects().get(name)
    }

    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        self.cache(place, kind).objects().list(namespace)
    }

    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object> {
        self.cache(place, &index.kind).objects().find(index.name, value)
    }

    fn find_some(&self, place: Place, index: &Index, value: &str, at_most: usize) -> Vec<Object> {
        self.cache(place, &index.kind).objects().find_some(index.name, value, at_most)
    }

    fn count(&self, place: Place, index: &Index, value: &str) -> usize {
        self.cache(place, &index.kind).objects().count(index.name, value)
    }
}
