//! Deliberate breakages, each of which the simulation must find.

use interlock_api::names::{ANNOTATION_EPOCH, ANNOTATION_RELEASED};
use interlock_kernel::{
    Controller, Index, Kind, Looks, Name, Object, Outside, Place, Read, Step, Subject, View, Watch,
};
use interlock_placement::kinds::{GRANT, NAMESPACE};
use jiff::Timestamp;
use serde_json::json;
use std::sync::Arc;

/// What is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flaw {
    /// Nothing: what is shipped.
    #[default]
    None,
    /// A machine says that a process is gone, and its lock free, as soon as it was told to stop.
    GoneTooEarly,
    /// A scheduler takes what is being revoked for released.
    SchedulerDoesNotWait,
    /// A syncer takes what it is to close for closed.
    SyncerAcknowledgesFirst,
    /// A machine has the same boot id after the power failed.
    BootIdStays,
    /// A syncer permits what its cache shows as granted.
    SyncerBelievesItsCache,
    /// A runtime starts what its cache shows as permitted.
    RuntimeBelievesItsCache,
    /// A person says that a machine is off while it is on.
    FalseAttestation,
}

/// A controller whose looks at API servers are answered by its caches.
pub(crate) struct BelievesItsCache<C>(pub(crate) C);

impl<C: Controller> Controller for BelievesItsCache<C> {
    type Outside = C::Outside;

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn watches(&self) -> Vec<Watch> {
        self.0.watches()
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        self.0.subjects(watch, object, view)
    }

    fn step(
        &self,
        subject: &Subject,
        view: &dyn View,
        looks: &Looks<C::Outside>,
    ) -> Step<C::Outside> {
        let step = self.0.step(subject, view, looks);
        let Step::Look { reads, .. } = &step else { return step };
        match answers(reads, view, looks) {
            Some(believed) => self.0.step(subject, view, &believed),
            None => step,
        }
    }
}

/// What a cache says to these questions; None: some of them only the machine can answer.
fn answers<O: Outside>(reads: &[Read<O>], view: &dyn View, known: &Looks<O>) -> Option<Looks<O>> {
    let only_asks = |read: &Read<O>| match read {
        Read::Ask(question) => !known.answers.contains_key(question),
        Read::Object(_) | Read::List { .. } => false,
    };
    // What is asked at the hub, or of the machine before, is about whether something may run.
    let is_permit = |read: &Read<O>| match read {
        Read::Object(address) => address.place == Place::HUB,
        Read::List { place, .. } => *place == Place::HUB,
        Read::Ask(_) => true,
    };
    if reads.iter().any(only_asks) || !reads.iter().any(is_permit) {
        return None;
    }
    let mut believed = Looks {
        objects: known.objects.clone(),
        lists: known.lists.clone(),
        answers: known.answers.clone(),
    };
    for read in reads {
        match read {
            Read::Object(address) => {
                let seen = view.get(address.place, &address.kind, &address.name);
                believed.objects.insert(address.clone(), seen);
            }
            Read::List { place, kind, namespace } => {
                let seen = view.list(*place, kind, namespace.as_deref());
                believed.lists.insert((*place, kind.clone(), namespace.clone()), seen);
            }
            Read::Ask(_) => {}
        }
    }
    Some(believed)
}

/// How a deceived controller is shown an object.
type Shown = fn((Place, &Kind), Object, &dyn View) -> Object;

/// A controller that is shown something else than there is.
pub(crate) struct Deceived<C>(pub(crate) C, pub(crate) Shown);

/// What is being revoked, as if it were released.
pub(crate) fn as_released((_, kind): (Place, &Kind), object: Object, _: &dyn View) -> Object {
    if *kind != GRANT || object.data["status"]["phase"] != "Revoking" {
        return object;
    }
    let mut object = (*object).clone();
    object.data["status"]["phase"] = json!("Released");
    Arc::new(object)
}

/// A namespace on a cluster that has to be closed, as if it were.
pub(crate) fn as_closed(at: (Place, &Kind), object: Object, view: &dyn View) -> Object {
    if at != (Place::CLUSTER, &NAMESPACE) {
        return object;
    }
    let grant = view.get(Place::HUB, &GRANT, &Name::of(&object));
    let is_revoked = grant.is_some_and(|grant| grant.data["status"]["phase"] == "Revoking");
    let notes = object.metadata.annotations.as_ref();
    let epoch = notes.and_then(|notes| notes.get(ANNOTATION_EPOCH)).cloned();
    let Some(epoch) = epoch.filter(|_| is_revoked) else { return object };
    let mut object = (*object).clone();
    let notes = object.metadata.annotations.get_or_insert_default();
    notes.insert(ANNOTATION_RELEASED.to_owned(), epoch);
    Arc::new(object)
}

impl<C: Controller> Controller for Deceived<C> {
    type Outside = C::Outside;

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn watches(&self) -> Vec<Watch> {
        self.0.watches()
    }

    fn subjects(&self, watch: &Watch, object: &Object, view: &dyn View) -> Vec<Subject> {
        self.0.subjects(watch, object, view)
    }

    fn step(
        &self,
        subject: &Subject,
        view: &dyn View,
        looks: &Looks<C::Outside>,
    ) -> Step<C::Outside> {
        self.0.step(subject, &Deception { view, shown: self.1 }, looks)
    }
}

struct Deception<'a> {
    view: &'a dyn View,
    shown: Shown,
}

impl View for Deception<'_> {
    fn now(&self) -> Timestamp {
        self.view.now()
    }

    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        self.view
            .get(place, kind, name)
            .map(|object| (self.shown)((place, kind), object, self.view))
    }

    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        let objects = self.view.list(place, kind, namespace).into_iter();
        objects.map(|object| (self.shown)((place, kind), object, self.view)).collect()
    }

    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object> {
        let objects = self.view.find(place, index, value).into_iter();
        objects.map(|object| (self.shown)((place, &index.kind), object, self.view)).collect()
    }

    fn count(&self, place: Place, index: &Index, value: &str) -> usize {
        self.view.count(place, index, value)
    }
}
