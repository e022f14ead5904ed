//! Owners: those who share a store. Each has its own part of what is alive, and of history.
//!
//! The owner of a row is what comes before its first slash; rows without one belong to nobody in
//! particular, together. History beyond its budget is taken from those who have most of it, so one
//! writer's flood does not cost the others what they may resume from.

use crate::{KeyRange, Revision};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// One of those who share a store.
#[derive(Default)]
pub(crate) struct Owner {
    name: Box<str>,
    /// Below this, its history is gone.
    floor: AtomicU64,
    live_bytes: AtomicU64,
    history_bytes: AtomicU64,
}

/// The owner of a row.
pub(crate) fn owner_of(row: &str) -> &str {
    row.split_once('/').map_or("", |(owner, _)| owner)
}

/// The owner of all rows of a range, if there is just one.
pub(crate) fn owner_of_range(range: &KeyRange) -> Option<&str> {
    range.prefix.split_once('/').map(|(owner, _)| owner)
}

impl Owner {
    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The oldest revision at which its rows can be read, unless all history below a higher one was
    /// dropped.
    pub(crate) fn floor(&self) -> Revision {
        self.floor.load(Ordering::Acquire)
    }

    /// Moves its floor up, if it is up.
    pub(crate) fn raise_floor(&self, floor: Revision) {
        self.floor.fetch_max(floor, Ordering::AcqRel);
    }

    /// The bytes of its rows and their newest values.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes.load(Ordering::Relaxed)
    }

    /// Counts a change: what is alive after it, and what was before.
    pub(crate) fn count_live(&self, after: u64, before: u64) {
        self.live_bytes.fetch_add(after, Ordering::Relaxed);
        self.live_bytes.fetch_sub(before, Ordering::Relaxed);
    }

    /// Counts history that came into being.
    pub(crate) fn add_history(&self, bytes: u64) {
        self.history_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts history that was dropped.
    pub(crate) fn drop_history(&self, bytes: u64) {
        self.history_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn history_bytes(&self) -> u64 {
        self.history_bytes.load(Ordering::Relaxed)
    }
}

/// All owners that have anything.
#[derive(Default)]
pub(crate) struct Owners(RwLock<HashMap<Box<str>, Arc<Owner>>>);

impl Owners {
    /// An owner, if it has anything.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Owner>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// The owner of a row.
    pub(crate) fn of(&self, row: &str) -> Arc<Owner> {
        let name = owner_of(row);
        if let Some(owner) = self.find(name) {
            return owner;
        }
        let mut owners = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Owner { name: name.into(), ..Owner::default() });
        Arc::clone(owners.entry(name.into()).or_insert_with(new))
    }

    /// Those who have more history than an equal share of a budget, and by how much. What the others
    /// leave of their shares is divided again.
    pub(crate) fn over(&self, budget: u64) -> Vec<(Arc<Owner>, u64)> {
        let owners = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut used: Vec<_> =
            owners.values().map(|owner| (owner.history_bytes(), Arc::clone(owner))).collect();
        drop(owners);
        used.sort_by_key(|(bytes, _)| *bytes);
        let (mut left, count) = (budget, used.len());
        for index in 0..count {
            let share = left / (count - index) as u64;
            if used[index].0 > share {
                let greedy = used.drain(index..);
                return greedy.map(|(bytes, owner)| (owner, bytes - share)).collect();
            }
            left -= used[index].0;
        }
        Vec::new()
    }

    /// Forgets those who have nothing, now that all history below a floor is gone.
    pub(crate) fn forget_empty(&self, floor: Revision) {
        let mut owners = self.0.write().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|_, owner| {
            // Changes that are kept hold their owner.
            Arc::strong_count(owner) > 1 || owner.live_bytes() > 0 || owner.floor() > floor
        });
        if owners.capacity() > 4 * owners.len() + 64 {
            owners.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_have_most_give_first_and_what_others_leave_is_divided_again() {
        let owners = Owners::default();
        for (row, bytes) in [("quiet/a", 10), ("noisy/a", 500), ("loud/a", 300), ("flat", 20)] {
            owners.of(row).add_history(bytes);
        }
        let over = |budget| {
            let mut over: Vec<_> = owners
                .over(budget)
                .into_iter()
                .map(|(owner, excess)| (owner.name().to_owned(), excess))
                .collect();
            over.sort();
            over
        };
        assert!(over(830).is_empty());
        assert_eq!(over(729), [("noisy".to_owned(), 101)]);
        assert_eq!(over(230), [("loud".to_owned(), 200), ("noisy".to_owned(), 400)]);
        assert_eq!(over(0).len(), 4);
    }

    #[test]
    fn a_range_has_one_owner_if_its_prefix_names_it_whole() {
        let owner =
            |prefix: &str| owner_of_range(&KeyRange::prefix("t", prefix)).map(str::to_owned);
        assert_eq!(owner("blue.1/default/"), Some("blue.1".to_owned()));
        assert_eq!(owner("blue.1/"), Some("blue.1".to_owned()));
        assert_eq!(owner("blue.1"), None);
        assert_eq!(owner(""), None);
        assert_eq!((owner_of("blue.1/a/b"), owner_of("flat")), ("blue.1", ""));
    }
}
