//! The names that an index has under one value.

use crate::kind::Name;
use std::collections::BTreeSet;
use std::collections::btree_set;

/// At least one name. Many an index has one for each value, and a set for each would take more room
/// than all that is in them.
#[derive(Debug)]
pub(super) enum Filed {
    One(Name),
    Many(BTreeSet<Name>),
}

impl Filed {
    pub(super) fn len(&self) -> usize {
        match self {
            Filed::One(_) => 1,
            Filed::Many(names) => names.len(),
        }
    }

    /// The names, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Name> {
        let (one, many): (Option<&Name>, Option<btree_set::Iter<'_, Name>>) = match self {
            Filed::One(name) => (Some(name), None),
            Filed::Many(names) => (None, Some(names.iter())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    pub(super) fn insert(&mut self, name: Name) {
        match self {
            Filed::One(known) if *known == name => {}
            Filed::One(known) => *self = Filed::Many(BTreeSet::from([known.clone(), name])),
            Filed::Many(names) => {
                names.insert(name);
            }
        }
    }

    /// Takes a name out; whether none is left, so that nothing is to be filed here any more.
    pub(super) fn remove(&mut self, name: &Name) -> bool {
        match self {
            Filed::One(known) => known == name,
            Filed::Many(names) => {
                names.remove(name);
                names.is_empty()
            }
        }
    }
}
