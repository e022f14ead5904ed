//! Parts of packs, read so that a server far away is asked once for each pack and not once for each
//! part.

use crate::store::{File, Kind, Store, StoreError};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// How many packs are kept. Those who read go through them in about the same order, a few at once.
const KEPT: usize = 6;

/// The packs of a repository.
pub(crate) struct Packs {
    store: Arc<dyn Store>,
    kept: Mutex<VecDeque<Slot>>,
}

/// A pack that is here, or that somebody is getting.
#[derive(Clone)]
struct Slot {
    name: String,
    content: Arc<Mutex<Option<Bytes>>>,
}

impl Packs {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Packs { store, kept: Mutex::new(VecDeque::new()) }
    }

    /// So many bytes of a pack, from there on.
    pub(crate) fn read(&self, name: &str, from: u32, bytes: u32) -> Result<Bytes, StoreError> {
        let file = File::new(Kind::Pack, name);
        if !self.store.is_far() {
            return self.store.read_part(file, u64::from(from), bytes as usize);
        }
        let slot = self.slot(name);
        let mut content = slot.content.lock().unwrap_or_else(PoisonError::into_inner);
        let pack = match &*content {
            Some(pack) => pack.clone(),
            None => content.insert(self.store.read(file)?).clone(),
        };
        let (start, end) = (from as usize, from as usize + bytes as usize);
        if end > pack.len() {
            let title = file.title();
            return Err(StoreError::Damaged(format!("{title} is shorter than its index says")));
        }
        Ok(pack.slice(start..end))
    }

    fn slot(&self, name: &str) -> Slot {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.iter().position(|slot| slot.name == name);
        let slot = match place.and_then(|place| kept.remove(place)) {
            Some(slot) => slot,
            None => Slot { name: name.to_owned(), content: Arc::default() },
        };
        kept.push_front(slot.clone());
        kept.truncate(KEPT);
        slot
    }
}
