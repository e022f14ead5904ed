//! A cache of one kind, as plain data: what was listed, kept up by what was watched.

use crate::kind::Name;
use crate::object::Object;
use crate::view::Index;
use filed::Filed;
use kept::{AtHand, Kept};
use std::collections::{BTreeMap, BTreeSet, HashMap};

mod filed;
mod kept;

/// A kind that has no more objects than this, such as the clusters of a fleet, is kept as it is: all
/// of them may be read in every step.
const FEW: usize = 32;

/// The objects of one kind on one server, as far as news of them has come.
#[derive(Debug, Default)]
pub struct Objects {
    by_name: BTreeMap<Name, Kept>,
    at_hand: AtHand,
    indexes: Vec<(Index, HashMap<String, Filed>)>,
    is_filled: bool,
}

impl Objects {
    /// Files the objects by one more index; one of the same name is there once only.
    pub fn file_by(&mut self, index: &Index) {
        if self.indexes.iter().any(|(known, _)| known.name == index.name) {
            return;
        }
        let mut filed = HashMap::new();
        for (name, kept) in &self.by_name {
            refile(&mut filed, name, &[], &(index.values)(&self.at_hand.pass(name, kept)));
        }
        self.indexes.push((index.clone(), filed));
    }

    /// Whether everything was listed once. Before that, an empty cache is not an empty fleet.
    pub fn is_filled(&self) -> bool {
        self.is_filled
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// One object.
    pub fn get(&self, name: &Name) -> Option<Object> {
        Some(self.at_hand.look(name, self.by_name.get(name)?))
    }

    /// The names of all objects, in order.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.by_name.keys()
    }

    /// All objects, or those of one namespace, by name.
    pub fn list(&self, namespace: Option<&str>) -> Vec<Object> {
        let Some(namespace) = namespace else {
            let all = self.by_name.iter();
            return all.map(|(name, kept)| self.at_hand.pass(name, kept)).collect();
        };
        let from = Name::within(namespace, "");
        let names = self.by_name.range(from..);
        names
            .take_while(|(name, _)| name.namespace.as_deref() == Some(namespace))
            .map(|(name, kept)| self.at_hand.look(name, kept))
            .collect()
    }

    /// The objects that an index files under a value, by name.
    pub fn find(&self, index: &str, value: &str) -> Vec<Object> {
        self.find_some(index, value, usize::MAX)
    }

    /// The first few of them.
    pub fn find_some(&self, index: &str, value: &str, at_most: usize) -> Vec<Object> {
        let names = self.filed(index, value).into_iter().flat_map(Filed::iter).take(at_most);
        names.filter_map(|name| self.get(name)).collect()
    }

    /// How many objects an index files under a value.
    pub fn count(&self, index: &str, value: &str) -> usize {
        self.filed(index, value).map_or(0, Filed::len)
    }

    /// The values that an index files objects under, in no order: what is true of any of them, without reading one.
    pub fn values(&self, index: &str) -> impl Iterator<Item = &str> {
        let filed = self.indexes.iter().filter(move |(known, _)| known.name == index);
        filed.flat_map(|(_, filed)| filed.keys()).map(String::as_str)
    }

    fn filed(&self, index: &str, value: &str) -> Option<&Filed> {
        let (_, filed) = self.indexes.iter().find(|(known, _)| known.name == index)?;
        filed.get(value)
    }

    /// An object came or changed; the one that it replaces.
    pub fn put(&mut self, object: Object) -> Option<Object> {
        let name = Name::of(&object);
        let before = self.get(&name);
        let kept = match self.by_name.len() < FEW {
            true => Kept::Whole(object.clone()),
            false => Kept::of(&object),
        };
        match kept {
            Kept::Text(_) => self.at_hand.put(&name, &object),
            Kept::Whole(_) => self.at_hand.remove(&name),
        }
        self.by_name.insert(name.clone(), kept);
        for (index, filed) in &mut self.indexes {
            let old = before.as_deref().map(index.values).unwrap_or_default();
            let new = (index.values)(&object);
            refile(filed, &name, &old, &new);
        }
        before
    }

    /// An object is gone.
    pub fn remove(&mut self, name: &Name) -> Option<Object> {
        let before = self.get(name)?;
        self.by_name.remove(name);
        self.at_hand.remove(name);
        for (index, filed) in &mut self.indexes {
            refile(filed, name, &(index.values)(&before), &[]);
        }
        Some(before)
    }

    /// Everything was listed; the objects that changed, came or went by it, as they are now or, if
    /// they are gone, as they last were.
    pub fn replace(&mut self, objects: Vec<Object>) -> Vec<Object> {
        let listed: BTreeSet<Name> = objects.iter().map(|object| Name::of(object)).collect();
        let gone: Vec<Name> =
            self.by_name.keys().filter(|name| !listed.contains(name)).cloned().collect();
        let mut changed: Vec<Object> = gone.iter().filter_map(|name| self.remove(name)).collect();
        for object in objects {
            let version = object.metadata.resource_version.clone();
            let before = self.put(object.clone());
            if before.is_none_or(|before| before.metadata.resource_version != version) {
                changed.push(object);
            }
        }
        self.is_filled = true;
        changed
    }

    /// Everything is listed for the first time, piece by piece, from here on. Nobody may look before
    /// [`Objects::end_fill`].
    pub fn begin_fill(&mut self) {
        self.by_name.clear();
        self.at_hand = AtHand::default();
        self.indexes.iter_mut().for_each(|(_, filed)| filed.clear());
    }

    /// All pieces were put.
    pub fn end_fill(&mut self) {
        self.is_filled = true;
    }

    /// We wrote an object, and this is what the server made of it. It is taken in at once if the
    /// version that was written over is the one in the cache: then it is surely the next one, and
    /// a controller need not decide once more on what it knows to be old.
    pub fn wrote(&mut self, over: &str, object: Object) -> bool {
        let name = Name::of(&object);
        let is_next = self.get(&name).is_some_and(|before| {
            before.metadata.resource_version.as_deref() == Some(over)
                && before.metadata.uid == object.metadata.uid
        });
        if is_next {
            self.put(object);
        }
        is_next
    }
}

fn refile(filed: &mut HashMap<String, Filed>, name: &Name, old: &[String], new: &[String]) {
    for value in old.iter().filter(|value| !new.contains(value)) {
        // A value that nothing is filed under takes no room: history does not pile up.
        if filed.get_mut(value).is_some_and(|names| names.remove(name)) {
            filed.remove(value);
        }
    }
    // What was filed under a value is there still: to look for it among ten thousand takes time.
    for value in new.iter().filter(|value| !old.contains(value)) {
        match filed.get_mut(value) {
            Some(names) => names.insert(name.clone()),
            None => {
                filed.insert(value.clone(), Filed::One(name.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::{GroupVersion, Kind};
    use kube_core::DynamicObject;
    use serde_json::json;
    use std::sync::Arc;

    const POD: Kind = Kind::namespaced(GroupVersion::new("", "v1"), "Pod", "pods");

    fn by_node() -> Index {
        Index {
            name: "by-node",
            kind: POD,
            values: |pod| {
                pod.data["spec"]["nodeName"].as_str().map(str::to_owned).into_iter().collect()
            },
        }
    }

    fn pod(name: &str, node: &str, version: &str) -> Object {
        let pod: DynamicObject = serde_json::from_value(json!({
            "metadata": {"namespace": "a", "name": name, "uid": name, "resourceVersion": version},
            "spec": {"nodeName": node},
        }))
        .expect("a pod");
        Arc::new(pod)
    }

    fn names(objects: &[Object]) -> Vec<&str> {
        objects.iter().filter_map(|object| object.metadata.name.as_deref()).collect()
    }

    #[test]
    fn an_object_is_filed_where_it_is_and_no_longer_where_it_was() {
        let mut pods = Objects::default();
        pods.file_by(&by_node());
        pods.put(pod("x", "one", "1"));
        pods.put(pod("y", "one", "2"));
        pods.put(pod("x", "two", "3"));
        assert_eq!(names(&pods.find("by-node", "one")), ["y"]);
        assert_eq!(names(&pods.find("by-node", "two")), ["x"]);
        let values = |pods: &Objects| {
            let mut values: Vec<String> = pods.values("by-node").map(str::to_owned).collect();
            values.sort_unstable();
            values
        };
        assert_eq!(values(&pods), ["one", "two"]);
        pods.remove(&Name::within("a", "x"));
        assert_eq!(pods.count("by-node", "two"), 0);
        assert_eq!(values(&pods), ["one"]);
    }

    #[test]
    fn a_list_tells_what_it_changed() {
        let mut pods = Objects::default();
        pods.replace(vec![pod("x", "one", "1"), pod("y", "one", "2")]);
        let changed = pods.replace(vec![pod("x", "one", "1"), pod("z", "one", "3")]);
        assert_eq!(names(&changed), ["y", "z"]);
        assert_eq!(names(&pods.list(Some("a"))), ["x", "z"]);
        assert!(pods.list(Some("b")).is_empty());
    }

    #[test]
    fn of_many_objects_each_is_shown_as_it_was_last_put() {
        let mut pods = Objects::default();
        pods.file_by(&by_node());
        let name = |number: usize| format!("p{number:04}");
        for (version, node) in [("1", "one"), ("2", "two")] {
            for number in 0..500 {
                pods.put(pod(&name(number), node, version));
            }
        }
        for number in (0..500).filter(|number| number % 2 == 0) {
            let gone = pods.remove(&Name::within("a", &name(number)));
            assert_eq!(gone, Some(pod(&name(number), "two", "2")));
        }
        for number in 0..500 {
            let shown = pods.get(&Name::within("a", &name(number)));
            let there = number % 2 == 1;
            assert_eq!(shown, there.then(|| pod(&name(number), "two", "2")));
        }
        assert_eq!((pods.list(None).len(), pods.find("by-node", "two").len()), (250, 250));
        assert_eq!(pods.count("by-node", "one"), 0);
        pods.put(pod(&name(1), "three", "9"));
        assert_eq!(names(&pods.find("by-node", "three")), [name(1)]);
    }

    #[test]
    fn our_own_write_is_taken_in_only_over_the_version_that_it_replaced() {
        let mut pods = Objects::default();
        pods.put(pod("x", "one", "5"));
        assert!(!pods.wrote("4", pod("x", "two", "5")));
        assert!(pods.wrote("5", pod("x", "two", "6")));
        assert!(!pods.wrote("6", pod("gone", "two", "7")));
        assert_eq!(pods.len(), 1);
    }
}
