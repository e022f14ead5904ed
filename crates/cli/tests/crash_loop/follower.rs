//! A watcher that remembers how far it has seen, and resumes there after each restart.

use crate::harness::Client;
use crate::listing::{Address, Found, Listing};
use crate::world::{Alarm, CrashLoop, Life};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex};

/// What is watched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope {
    pub(crate) resource: &'static str,
    pub(crate) path: &'static str,
    /// Only the objects of the root cluster, or all.
    pub(crate) is_wildcard: bool,
}

impl Scope {
    fn covers(&self, at: &Address) -> bool {
        at.resource == self.resource && (self.is_wildcard || at.cluster == "root")
    }
}

/// What a watcher has seen.
pub(crate) struct Follower {
    scope: Scope,
    state: HashMap<Address, Found>,
    seen: HashSet<(Address, u64)>,
    /// Where it began.
    first: u64,
    last: u64,
    /// How often it went on where it had stopped.
    pub(crate) resumed: u64,
}

impl Follower {
    /// A watcher that begins with what is there.
    pub(crate) fn new(scope: Scope, listing: &Listing) -> Self {
        let state: HashMap<_, _> = listing
            .objects
            .iter()
            .filter(|(at, _)| scope.covers(at))
            .map(|(at, found)| (at.clone(), *found))
            .collect();
        let (first, last) = (listing.revision, listing.revision);
        Follower { scope, state, seen: HashSet::new(), first, last, resumed: 0 }
    }

    /// Takes an event in. Each comes after all others, and fits to what was seen before.
    fn take(&mut self, event: &Value) {
        let (sort, object) = (event["type"].as_str().unwrap_or_default(), &event["object"]);
        assert_ne!(sort, "ERROR", "{:?} after {}: {event}", self.scope, self.last);
        let at = Address::of(self.scope.resource, object);
        let found = Found::of(object);
        let was_there = self.state.contains_key(&at);
        let context = || format!("{sort} {at:?} {found:?} after {} in {:?}", self.last, self.scope);
        assert!(found.version > self.last, "seen twice or out of order: {}", context());
        match sort {
            "ADDED" => assert!(!was_there, "added twice, or a deletion was missed: {}", context()),
            "MODIFIED" | "DELETED" => assert!(was_there, "an addition was missed: {}", context()),
            _ => panic!("what is this: {event}"),
        }
        self.last = found.version;
        if sort == "DELETED" {
            self.state.remove(&at);
        } else {
            self.state.insert(at.clone(), found);
            self.seen.insert((at, found.version));
        }
    }

    /// Whether it has seen all that there is.
    pub(crate) fn agrees(&self, listing: &Listing) -> bool {
        let wanted = listing.objects.iter().filter(|(at, _)| self.scope.covers(at));
        let wanted: Vec<_> = wanted.collect();
        wanted.len() == self.state.len()
            && wanted.iter().all(|(at, found)| self.state.get(*at) == Some(*found))
    }

    /// It has seen each version that was acknowledged.
    pub(crate) fn check(&self, acknowledged: &[(Address, u64)]) {
        for version in acknowledged {
            if self.scope.covers(&version.0) && version.1 > self.first {
                assert!(self.seen.contains(version), "{:?} missed {version:?}", self.scope);
            }
        }
    }
}

/// Follows the server through all of its lives.
pub(crate) fn follow(world: &CrashLoop, follower: &Arc<Mutex<Follower>>) {
    let _alarm = Alarm(world);
    let mut last_life = 0;
    while let Some(life) = world.next_life(last_life) {
        last_life = life.number;
        // The end of a life ends the connection; the next one goes on where it stopped.
        let _ = follow_one_life(life, follower);
    }
}

fn follow_one_life(life: Life, follower: &Arc<Mutex<Follower>>) -> io::Result<()> {
    let path = {
        let mut follower = follower.lock().expect("nobody panics with it");
        follower.resumed += 1;
        format!("{}?watch=true&resourceVersion={}", follower.scope.path, follower.last)
    };
    let mut watch = Client::new(life.address).watch(&path)?;
    while let Some(event) = watch.next()? {
        follower.lock().expect("nobody panics with it").take(&event);
    }
    Ok(())
}
