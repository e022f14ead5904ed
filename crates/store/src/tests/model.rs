//! The store as it ought to be, in the simplest way: every state at every revision.

use crate::{
    Change, CommitError, Guard, Key, KeyRange, Operation, Page, ReadError, Revision, Transaction,
    Versioned,
};
use std::collections::BTreeMap;

/// One version of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Is {
    pub(crate) created: Revision,
    pub(crate) modified: Revision,
    pub(crate) value: Vec<u8>,
}

/// One change of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Happened {
    pub(crate) revision: Revision,
    pub(crate) key: Key,
    pub(crate) before: Option<Is>,
    pub(crate) after: Option<Is>,
}

type State = BTreeMap<Key, Is>;

/// All that ever was. The state at a revision is at that place in the list.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) states: Vec<State>,
    pub(crate) changes: Vec<Happened>,
    pub(crate) floor: Revision,
}

/// Keys and versions, the revision, and how many more there are.
pub(crate) type Read = (Vec<(Key, Is)>, Revision, usize);

/// What a commit comes to: a revision, or the key whose guard failed and what is there.
pub(crate) type Outcome = Result<Revision, (Key, Option<Is>)>;

impl Model {
    pub(crate) fn new() -> Self {
        Model { states: vec![State::new()], changes: Vec::new(), floor: 0 }
    }

    pub(crate) fn newest(&self) -> Revision {
        self.states.len() as Revision - 1
    }

    pub(crate) fn commit(&mut self, transaction: &Transaction) -> Outcome {
        let mut state = self.states.last().expect("there is always one").clone();
        for guard in &transaction.guards {
            let (key, expected) = match guard {
                Guard::Absent(key) => (key, None),
                Guard::At(key, revision) => (key, Some(*revision)),
            };
            if state.get(key).map(|is| is.modified) != expected {
                return Err((key.clone(), state.get(key).cloned()));
            }
        }
        let revision = self.newest() + 1;
        let mut changes = Vec::new();
        for operation in &transaction.operations {
            let key = operation.key().clone();
            let before = state.get(&key).cloned();
            let after = match operation {
                Operation::Delete(_) => None,
                Operation::Put(_, value) => {
                    let created = before.as_ref().map_or(revision, |is| is.created);
                    Some(Is { created, modified: revision, value: value.clone() })
                }
            };
            match &after {
                Some(is) => state.insert(key.clone(), is.clone()),
                None => state.remove(&key),
            };
            if before.is_some() || after.is_some() {
                changes.push(Happened { revision, key, before, after });
            }
        }
        if changes.is_empty() {
            return Ok(self.newest());
        }
        self.states.push(state);
        self.changes.extend(changes);
        Ok(revision)
    }

    pub(crate) fn range(
        &self,
        range: &KeyRange,
        at: Option<Revision>,
        limit: usize,
    ) -> Result<Read, ReadError> {
        let revision = at.unwrap_or(self.newest());
        if revision > self.newest() {
            return Err(ReadError::NotYet { newest: self.newest() });
        }
        if revision < self.floor {
            return Err(ReadError::Compacted { floor: self.floor });
        }
        let state = self.states[revision as usize].iter();
        let mut items: Vec<_> = state
            .filter(|(key, _)| range.contains(key))
            .map(|(key, is)| (key.clone(), is.clone()))
            .collect();
        let remaining = items.len().saturating_sub(limit);
        items.truncate(limit);
        Ok((items, revision, remaining))
    }

    pub(crate) fn changes_after(&self, range: &KeyRange, after: Revision) -> Vec<Happened> {
        let is_wanted = |it: &&Happened| it.revision > after && range.contains(&it.key);
        self.changes.iter().filter(is_wanted).cloned().collect()
    }
}

/// The store's word for it in the model's terms.
pub(crate) fn is(versioned: &Versioned) -> Is {
    Is {
        created: versioned.created,
        modified: versioned.modified,
        value: versioned.value.bytes().to_vec(),
    }
}

pub(crate) fn page(page: &Page) -> Read {
    let items = page.items.iter().map(|item| (item.key.clone(), is(item))).collect();
    (items, page.revision, page.remaining)
}

pub(crate) fn happened(change: &Change) -> Happened {
    Happened {
        revision: change.revision,
        key: change.key.clone(),
        before: change.before.as_ref().map(is),
        after: change.after.as_ref().map(is),
    }
}

/// A commit's answer in the model's terms; none if the store refused or does not know.
pub(crate) fn outcome(answer: &Result<Revision, CommitError>) -> Option<Outcome> {
    match answer {
        Ok(revision) => Some(Ok(*revision)),
        Err(CommitError::GuardFailed { key, current }) => {
            Some(Err((key.clone(), current.as_ref().map(is))))
        }
        Err(CommitError::Refused(_) | CommitError::OutcomeUnknown) => None,
    }
}
