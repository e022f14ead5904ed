//! The objects of one kind on one server, shared by all who look at them, and who gets the changes.

use interlock_kernel::{Kind, Name, Object, Objects, Selector};
use kube::api::{DynamicObject, TypeMeta};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::{Notify, watch};

/// Gets every object that came, changed or went, after the cache shows it.
type Listener = Arc<dyn Fn(&Change) + Send + Sync>;

/// An object that came, changed or went.
#[derive(Debug)]
pub(crate) struct Change {
    /// As it was known before, if it was.
    pub(crate) before: Option<Object>,
    /// As it is now or, if it is gone, as it last was.
    pub(crate) now: Object,
}

/// The objects of one kind on one server. Locks are held for one look or one change, never longer.
pub struct Cache {
    kind: Kind,
    selector: Selector,
    objects: RwLock<Objects>,
    listeners: Mutex<Listeners>,
    filled: watch::Sender<bool>,
}

#[derive(Default)]
struct Listeners {
    numbered: u64,
    by_number: BTreeMap<u64, Listener>,
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Cache {
    /// A cache that nothing is known of yet.
    pub(crate) fn new(kind: &Kind, selector: &Selector) -> Arc<Cache> {
        Arc::new(Cache {
            kind: kind.clone(),
            selector: selector.clone(),
            objects: RwLock::default(),
            listeners: Mutex::default(),
            filled: watch::Sender::new(false),
        })
    }

    /// The kind of its objects.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Which of them it has.
    pub fn selector(&self) -> &Selector {
        &self.selector
    }

    /// The objects, for one look.
    pub fn objects(&self) -> RwLockReadGuard<'_, Objects> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn change(&self) -> RwLockWriteGuard<'_, Objects> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns once everything was listed.
    pub async fn filled(&self) {
        // The sender lives as long as the cache, so this ends with the list and not with an error.
        let _ = self.filled.subscribe().wait_for(|filled| *filled).await;
    }

    /// Passes all changes to a listener for as long as the subscription is kept.
    pub(crate) fn subscribe(self: &Arc<Self>, listener: Listener) -> Subscription {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.numbered += 1;
        let number = listeners.numbered;
        listeners.by_number.insert(number, listener);
        Subscription { cache: Arc::clone(self), number }
    }

    /// Tells when objects come, go, or change in more than their status.
    pub fn changes(self: &Arc<Self>) -> Changes {
        let changed = Arc::new(Notify::new());
        let (notify, cache) = (Arc::clone(&changed), Arc::downgrade(self));
        let subscription = self.subscribe(Arc::new(move |change: &Change| {
            let Some(cache) = cache.upgrade() else { return };
            let Change { before, now } = change;
            let is_same = |before: &Object| {
                let (before, now) = (&before.metadata, &now.metadata);
                before.uid == now.uid && before.generation == now.generation
            };
            let is_there = cache.objects().get(&Name::of(now)).is_some();
            if !(is_there && before.as_ref().is_some_and(is_same)) {
                notify.notify_one();
            }
        }));
        Changes { changed, _subscription: subscription }
    }

    fn tell(&self, news: &[Change]) {
        let listeners: Vec<Listener> = {
            let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            listeners.by_number.values().cloned().collect()
        };
        for change in news {
            listeners.iter().for_each(|listener| listener(change));
        }
    }

    /// An object came or changed. News that is older than what is known changes nothing: our own
    /// writes are known before the watch speaks of them.
    pub(crate) fn put(&self, object: Object) {
        let mut objects = self.change();
        if objects.get(&Name::of(&object)).is_some_and(|known| !is_older(&known, &object)) {
            return;
        }
        let before = objects.put(Arc::clone(&object));
        drop(objects);
        self.tell(&[Change { before, now: object }]);
    }

    /// An object was deleted.
    pub(crate) fn remove(&self, object: &Object) {
        let name = Name::of(object);
        let mut objects = self.change();
        let known = objects.get(&name).and_then(|known| known.metadata.uid.clone());
        if known.is_some() && known != object.metadata.uid {
            return;
        }
        let before = objects.remove(&name);
        drop(objects);
        self.tell(&[Change { before, now: Arc::clone(object) }]);
    }

    /// Everything was listed. An object that is known in a later version than the list has stays:
    /// we wrote it while the list was on its way.
    pub(crate) fn replace(&self, listed: Vec<Object>) {
        let mut objects = self.change();
        let mut before = BTreeMap::new();
        let mut kept = Vec::with_capacity(listed.len());
        for object in listed {
            let known = objects.get(&Name::of(&object));
            match known {
                Some(known) if !is_older(&known, &object) => kept.push(known),
                known => {
                    before.extend(known.map(|known| (Name::of(&known), known)));
                    kept.push(object);
                }
            }
        }
        let changed = objects.replace(kept).into_iter();
        let news: Vec<Change> =
            changed.map(|now| Change { before: before.remove(&Name::of(&now)), now }).collect();
        drop(objects);
        self.filled.send_replace(true);
        self.tell(&news);
    }

    /// Everything is listed for the first time, from here on: as nobody looks before it is there, no
    /// piece has to wait for the others, and they need not all be held at once.
    pub(crate) fn begin_fill(&self) {
        self.change().begin_fill();
    }

    /// A piece of the first list.
    pub(crate) fn fill(&self, piece: Vec<Object>) {
        let mut objects = self.change();
        for object in piece {
            let known = objects.get(&Name::of(&object));
            if known.is_none_or(|known| is_older(&known, &object)) {
                objects.put(object);
            }
        }
    }

    /// The first list is whole.
    pub(crate) fn end_fill(&self) {
        self.change().end_fill();
        self.filled.send_replace(true);
    }

    /// We wrote an object; whether the cache shows it now. If not, the watch will bring it.
    pub(crate) fn wrote(&self, over: &str, object: &Object) -> bool {
        let mut objects = self.change();
        let before = objects.get(&Name::of(object));
        let is_taken = objects.wrote(over, Arc::clone(object));
        drop(objects);
        if is_taken {
            self.tell(&[Change { before, now: Arc::clone(object) }]);
        }
        is_taken
    }

    /// The server was asked for an object itself. It is taken in only over an older version of the
    /// same object: one that the cache does not have may have been deleted since it was read.
    pub(crate) fn saw(&self, object: Object) {
        let objects = self.objects();
        let is_known = objects
            .get(&Name::of(&object))
            .is_some_and(|known| known.metadata.uid == object.metadata.uid);
        drop(objects);
        if is_known {
            self.put(object);
        }
    }
}

/// Whether what is known is older than what is reported, or another object of the name. Versions of one
/// kind on one server are numbers that grow; where they are not, what is reported last counts.
fn is_older(known: &DynamicObject, told: &DynamicObject) -> bool {
    if known.metadata.uid != told.metadata.uid {
        return true;
    }
    let (known, told) = (&known.metadata.resource_version, &told.metadata.resource_version);
    let number = |version: &Option<String>| version.as_deref().and_then(|v| v.parse::<u64>().ok());
    match (number(known), number(told)) {
        (Some(known), Some(told)) => known < told,
        _ => known != told,
    }
}

/// An object in the form in which caches and looks have it: with its kind, which lists leave out,
/// and without managedFields, which are half of an object and nobody's business here.
pub(crate) fn as_cached(kind: &Kind, mut object: DynamicObject) -> Object {
    object.metadata.managed_fields = None;
    object.types = Some(TypeMeta { api_version: kind.api_version(), kind: kind.kind.to_string() });
    Arc::new(object)
}

/// Tells when objects come, go, or change in more than their status.
pub struct Changes {
    changed: Arc<Notify>,
    _subscription: Subscription,
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Changes")
    }
}

impl Changes {
    /// Returns once something has changed since it returned last.
    pub async fn next(&self) {
        self.changed.notified().await;
    }
}

/// Keeps a listener listening.
pub(crate) struct Subscription {
    cache: Arc<Cache>,
    number: u64,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut listeners = self.cache.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.by_number.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_kernel::GroupVersion;
    use serde_json::json;

    const POD: Kind = Kind::namespaced(GroupVersion::new("", "v1"), "Pod", "pods");

    fn pod(uid: &str, version: &str) -> Object {
        let pod = json!({"metadata": {
            "namespace": "a", "name": "x", "uid": uid, "resourceVersion": version,
            "managedFields": [{"manager": "somebody"}],
        }});
        as_cached(&POD, serde_json::from_value(pod).expect("a pod"))
    }

    fn version(cache: &Cache) -> Option<String> {
        let pod = cache.objects().get(&Name::within("a", "x"));
        pod.and_then(|pod| pod.metadata.resource_version.clone())
    }

    #[test]
    fn news_older_than_our_own_write_changes_nothing() {
        let cache = Cache::new(&POD, &Selector::All);
        cache.replace(vec![pod("u", "5")]);
        assert!(cache.wrote("5", &pod("u", "9")));
        cache.put(pod("u", "7"));
        assert_eq!(version(&cache).as_deref(), Some("9"));
        cache.replace(vec![pod("u", "7")]);
        assert_eq!(version(&cache).as_deref(), Some("9"));
        cache.put(pod("u", "10"));
        assert_eq!(version(&cache).as_deref(), Some("10"));
    }

    #[tokio::test]
    async fn changes_are_reported_but_for_those_of_a_status() {
        let with = |generation: i64, version: &str| {
            let mut pod = (*pod("u", version)).clone();
            pod.metadata.generation = Some(generation);
            Arc::new(pod)
        };
        let cache = Cache::new(&POD, &Selector::All);
        let changes = cache.changes();
        let is_reported = async || {
            let soon = std::time::Duration::from_millis(1);
            tokio::time::timeout(soon, changes.next()).await.is_ok()
        };
        cache.put(with(1, "5"));
        assert!(is_reported().await, "it came");
        cache.put(with(1, "6"));
        assert!(!is_reported().await, "its status changed");
        cache.put(with(2, "7"));
        assert!(is_reported().await, "it changed");
        cache.remove(&with(2, "8"));
        assert!(is_reported().await, "it went");
    }

    #[test]
    fn the_deletion_of_a_namesake_is_not_the_deletion_of_the_object() {
        let cache = Cache::new(&POD, &Selector::All);
        cache.put(pod("new", "8"));
        cache.remove(&pod("old", "7"));
        assert_eq!(version(&cache).as_deref(), Some("8"));
        cache.remove(&pod("new", "9"));
        assert_eq!(version(&cache), None);
    }

    #[test]
    fn an_object_that_the_cache_does_not_have_is_not_taken_in_by_a_look() {
        let cache = Cache::new(&POD, &Selector::All);
        cache.saw(pod("u", "5"));
        assert_eq!(version(&cache), None);
        cache.put(pod("u", "5"));
        cache.saw(pod("u", "6"));
        assert_eq!(version(&cache).as_deref(), Some("6"));
    }

    #[test]
    fn a_listener_gets_how_an_object_was_and_is_until_it_leaves() {
        let cache = Cache::new(&POD, &Selector::All);
        let told = Arc::new(Mutex::new(Vec::new()));
        let listener = Arc::clone(&told);
        let subscription = cache.subscribe(Arc::new(move |change: &Change| {
            let known = change.before.iter().chain([&change.now]);
            let versions = known.filter_map(|object| object.metadata.resource_version.clone());
            listener.lock().expect("not poisoned").extend(versions);
        }));
        cache.put(pod("u", "5"));
        cache.put(pod("u", "6"));
        cache.put(pod("u", "6"));
        drop(subscription);
        cache.put(pod("u", "7"));
        assert_eq!(*told.lock().expect("not poisoned"), ["5", "5", "6"]);
    }

    #[test]
    fn managed_fields_are_not_kept() {
        assert_eq!(pod("u", "5").metadata.managed_fields, None);
    }
}
