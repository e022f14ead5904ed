//! A cache and live reads in which some objects look otherwise: what a controller would see that does
//! not look closely enough.

use interlock_kernel::{Index, Kind, LiveReads, Name, Object, Outside, Place, View};
use jiff::Timestamp;
use kube_core::DynamicObject;
use std::sync::Arc;

/// How an object looks; None: it is not seen.
pub(super) type Alter<'a> = &'a dyn Fn(&Object) -> Option<Object>;

/// A view through which objects look otherwise.
pub(super) struct Lie<'a> {
    pub(super) view: &'a dyn View,
    pub(super) alter: Alter<'a>,
}

impl View for Lie<'_> {
    fn now(&self) -> Timestamp {
        self.view.now()
    }
    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        self.view.get(place, kind, name).and_then(|object| (self.alter)(&object))
    }
    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        self.view.list(place, kind, namespace).iter().filter_map(self.alter).collect()
    }
    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object> {
        let is_filed = |object: &Object| (index.values)(object).iter().any(|known| known == value);
        self.list(place, &index.kind, None).into_iter().filter(is_filed).collect()
    }
    fn count(&self, place: Place, index: &Index, value: &str) -> usize {
        self.find(place, index, value).len()
    }
}

/// Live reads in which objects look otherwise.
pub(super) fn live_reads<O: Outside>(live_reads: &LiveReads<O>, alter: Alter<'_>) -> LiveReads<O> {
    let object = |found: &Option<Object>| found.as_ref().and_then(alter);
    LiveReads {
        objects: live_reads.objects.iter().map(|(at, found)| (at.clone(), object(found))).collect(),
        lists: live_reads
            .lists
            .iter()
            .map(|(key, all)| (key.clone(), all.iter().filter_map(alter).collect()))
            .collect(),
        selected: live_reads
            .selected
            .iter()
            .map(|(key, all)| (key.clone(), all.iter().filter_map(alter).collect()))
            .collect(),
        dry_runs: live_reads.dry_runs.clone(),
        answers: live_reads.answers.clone(),
    }
}

/// The same object with something else in it.
pub(super) fn with(object: &Object, change: impl FnOnce(&mut DynamicObject)) -> Object {
    let mut changed = DynamicObject::clone(object);
    change(&mut changed);
    Arc::new(changed)
}
