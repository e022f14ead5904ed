//! What a controller would do next about a subject: the shipped step, on objects that were just read, up to
//! its effect, which is not done. `explain` and `--dry-run` stand on it, so they cannot say anything else
//! than what the controller will do.

use crate::feed;
use crate::live_reads::read_live;
use crate::once::MOST_ROUNDS;
use crate::outside::Driver;
use crate::view::Places;
use interlock_kernel::{
    Address, Controller, Index, Kind, LiveReads, Name, Object, Objects, Place, Selections, Step,
    Subject, View, Watch,
};
use jiff::Timestamp;
use std::collections::HashMap;

/// The next step about a subject. Each object is shown as `shown` makes it: a reader who is no controller
/// can so look past what only says which process acts. It may be shown twice.
pub async fn foresee<C: Controller>(
    controller: &C,
    places: &Places,
    driver: &impl Driver<C::Outside>,
    subject: &Subject,
    shown: impl Fn(Object) -> Object,
) -> Result<Step<C::Outside>, String> {
    let listed = Listed::read(&controller.watches(), places, &shown).await?;
    let selections = Selections::of(&controller.watches());
    let mut live_reads = LiveReads::default();
    // The servers go on meanwhile, as they do while a controller runs.
    for _ in 0..=MOST_ROUNDS {
        let view = selections.narrow(&listed);
        match controller.step(subject, &view, &live_reads) {
            Step::LiveRead { reads, .. } => {
                read_live(places, driver, reads, &mut live_reads).await?;
                for object in live_reads.objects.values_mut() {
                    *object = object.take().map(&shown);
                }
                let lists = live_reads.lists.values_mut();
                for list in lists.chain(live_reads.selected.values_mut()) {
                    *list = std::mem::take(list).into_iter().map(&shown).collect();
                }
            }
            step => return Ok(step),
        }
    }
    Err(format!("{} reads again and again", controller.name()))
}

/// Every object that a controller watches, as it was a moment ago.
pub(crate) struct Listed {
    objects: HashMap<(Place, Kind), Objects>,
    now: Timestamp,
}

impl Listed {
    pub(crate) async fn read(
        watches: &[Watch],
        places: &Places,
        shown: &impl Fn(Object) -> Object,
    ) -> Result<Listed, String> {
        let mut objects: HashMap<(Place, Kind), Objects> = HashMap::new();
        for watch in watches {
            let key = (watch.place, watch.kind.clone());
            if !objects.contains_key(&key) {
                let server = places.server(watch.place);
                let server = server.ok_or_else(|| {
                    format!("no API server is configured for the {}", watch.place)
                })?;
                let list =
                    feed::list_if_served(&server.api(&watch.kind, None), &watch.kind).await?;
                let mut all = Objects::default();
                all.replace(list.into_iter().map(shown).collect());
                objects.insert(key.clone(), all);
            }
            for index in &watch.indexes {
                if let Some(all) = objects.get_mut(&key) {
                    all.file_by(index);
                }
            }
        }
        Ok(Listed { objects, now: Timestamp::now() })
    }

    /// Whether objects of a kind were listed.
    pub(crate) fn has(&self, place: Place, kind: &Kind) -> bool {
        self.of(place, kind).is_some()
    }

    /// Shows another version of an object, or a new one.
    pub(crate) fn put(&mut self, address: &Address, object: Object) {
        let key = (address.place, address.kind.clone());
        self.objects.entry(key).or_default().put(object);
    }

    /// Shows an object no longer.
    pub(crate) fn remove(&mut self, address: &Address) {
        if let Some(all) = self.objects.get_mut(&(address.place, address.kind.clone())) {
            all.remove(&address.name);
        }
    }

    fn of(&self, place: Place, kind: &Kind) -> Option<&Objects> {
        self.objects.get(&(place, kind.clone()))
    }
}

impl View for Listed {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn get(&self, place: Place, kind: &Kind, name: &Name) -> Option<Object> {
        self.of(place, kind)?.get(name)
    }

    fn list(&self, place: Place, kind: &Kind, namespace: Option<&str>) -> Vec<Object> {
        self.of(place, kind).map(|all| all.list(namespace)).unwrap_or_default()
    }

    fn find(&self, place: Place, index: &Index, value: &str) -> Vec<Object> {
        self.of(place, &index.kind).map(|all| all.find(index.name, value)).unwrap_or_default()
    }

    fn count(&self, place: Place, index: &Index, value: &str) -> usize {
        self.of(place, &index.kind).map_or(0, |all| all.count(index.name, value))
    }
}
