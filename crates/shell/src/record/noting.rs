//! What is noted of a step while it is taken.

use super::{Entry, Recorder};
use interlock_kernel::{
    Action, Decided, Effect, End, Index, Kind, LiveReads, Name, Object, Outside, Part, Place,
    RecordedEffect, Subject, View, Write,
};
use jiff::Timestamp;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A recorder, for one controller on its servers.
#[derive(Clone, Debug)]
pub(crate) struct Noting {
    pub(crate) recorder: Recorder,
    /// The servers, by place.
    pub(crate) at: Arc<BTreeMap<String, String>>,
}

/// A step that is to be recorded. One that is given up half way is recorded as such.
pub(crate) struct Noted {
    recorder: Recorder,
    entry: Option<Entry>,
}

impl Noting {
    /// Begins the record of a step.
    pub(crate) fn begin(&self, controller: &'static str, about: About<'_>) -> Noted {
        let About { subject, round, view, time, decided } = about;
        let entry = Entry {
            time,
            controller,
            at: Arc::clone(&self.at),
            subject: Arc::clone(subject),
            view,
            decided,
            round,
            because: String::new(),
            effect: None,
            end: End::Unknown,
            same: 0,
        };
        Noted { recorder: self.recorder.clone(), entry: Some(entry) }
    }
}

/// What a step is about, and what was decided.
pub(crate) struct About<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) round: usize,
    pub(crate) view: u64,
    pub(crate) time: Timestamp,
    pub(crate) decided: Decided,
}

impl Noted {
    /// The step comes to this.
    pub(crate) fn ends(mut self, end: End, because: &str) {
        if let Some(mut entry) = self.entry.take() {
            entry.end = end;
            because.clone_into(&mut entry.because);
            self.recorder.put(entry);
        }
    }

    /// The step does this next. It is said before it is done: what comes of it may be known to others before this process
    /// can record its end, and the process may die in between.
    pub(crate) fn does(&mut self, effect: RecordedEffect, because: &str) {
        if let Some(entry) = &mut self.entry {
            entry.effect = Some(effect);
            because.clone_into(&mut entry.because);
            self.recorder.put(Entry { end: End::UnderWay, ..entry.clone() });
        }
    }

    /// What came of it, and which version the object has since.
    pub(crate) fn done(mut self, end: End, now: Option<String>) {
        if let Some(mut entry) = self.entry.take() {
            entry.end = end;
            if let Some(effect) = &mut entry.effect {
                effect.now = now;
            }
            self.recorder.put(entry);
        }
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        // Given up while its effect was under way: nobody knows whether it was done.
        if let Some(entry) = self.entry.take() {
            self.recorder.put(entry);
        }
    }
}

/// What an effect is, without what it carries.
pub(crate) fn doing<O: Outside>(effect: &Effect<O>, words: &str) -> RecordedEffect {
    let nothing = RecordedEffect {
        action: words.to_owned(),
        place: None,
        kind: None,
        name: None,
        uid: None,
        seen: None,
        now: None,
    };
    let write = match &effect.action {
        Action::Outside(_) => return nothing,
        Action::Write(write) => write,
    };
    let address = write.address();
    let (action, uid, seen) = match write {
        Write::Create { .. } => ("create", None, None),
        Write::Patch { seen, part, .. } => {
            let action = if *part == Part::Main { "patch" } else { "patch status" };
            (action, Some(seen.uid.clone()), Some(seen.resource_version.clone()))
        }
        Write::Apply { part, uid, resource_version, .. } => {
            let action = if *part == Part::Main { "apply" } else { "apply status" };
            (action, uid.clone(), resource_version.clone())
        }
        Write::Delete { uid, resource_version, .. } => {
            ("delete", Some(uid.clone()), resource_version.clone())
        }
    };
    RecordedEffect {
        action: action.to_owned(),
        place: Some(address.place.to_string()),
        kind: Some(address.kind.to_string()),
        name: Some(address.name.to_string()),
        uid,
        seen,
        now: None,
    }
}

/// A view that notes which versions of which objects were seen in it. In which order does not matter.
pub(crate) struct ViewDigest<V> {
    view: V,
    sum: Cell<u64>,
}

impl<V: View> ViewDigest<V> {
    pub(crate) fn new(view: V) -> Self {
        ViewDigest { view, sum: Cell::new(0) }
    }

    /// The digest of all that was seen, and of what was read live.
    pub(crate) fn with<O: Outside>(&self, live_reads: &LiveReads<O>) -> u64 {
        live_reads.objects.values().flatten().for_each(|object| self.note(object));
        live_reads.lists.values().flatten().for_each(|object| self.note(object));
        live_reads.selected.values().flatten().for_each(|object| self.note(object));
        self.sum.get()
    }

    fn note(&self, object: &Object) {
        let mut hasher = DefaultHasher::new();
        object.metadata.uid.hash(&mut hasher);
        object.metadata.resource_version.hash(&mut hasher);
        self.sum.set(self.sum.get().wrapping_add(hasher.finish()));
    }

    fn all(&self, objects: Vec<Object>) -> Vec<Object> {
        objects.iter().for_each(|object| self.note(object));
        objects
    }
}

impl<V: View> View for ViewDigest<V> {
    fn now(&self) -> Timestamp {
        self.view.now()
    }

    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        let found = self.view.get(place, kind, name);
        found.iter().for_each(|object| self.note(object));
        found
    }

    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        self.all(self.view.list(place, kind, namespace))
    }

    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object> {
        self.all(self.view.find(place, index, value))
    }

    fn find_some(&self, place: Place, index: &Index, value: &str, at_most: usize) -> Vec<Object> {
        self.all(self.view.find_some(place, index, value, at_most))
    }

    fn count(&self, place: Place, index: &Index, value: &str) -> usize {
        let count = self.view.count(place, index, value);
        self.sum.set(self.sum.get().wrapping_add(count as u64));
        count
    }
}
