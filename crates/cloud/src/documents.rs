//! Documents of policy versions that were read or written. A version never changes, and no other version of the
//! policy ever has its number: it is read once, and then when it was not used for long.

use interlock_identities::outside::PolicyFound;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many bytes of documents are kept. A document has 6,144 characters at most, and most have a few hundred.
const MOST_BYTES: usize = 32 << 20;

/// A version of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    /// The ARN of the policy.
    pub(crate) arn: String,
    /// The id of the policy, which no other policy ever has.
    pub(crate) id: String,
    /// `v3`
    pub(crate) version: String,
}

impl Key {
    pub(crate) fn of(policy: &PolicyFound, version: &str) -> Key {
        let PolicyFound { arn, id, .. } = policy;
        Key { arn: arn.clone(), id: id.clone(), version: version.to_owned() }
    }
}

/// Documents by policy and version.
#[derive(Debug, Default)]
pub(crate) struct Documents(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// By ARN.
    policies: HashMap<String, Policy>,
    bytes: usize,
    /// Counts how often documents were used.
    uses: u64,
}

/// The policy that had an ARN when it was seen last.
#[derive(Debug)]
struct Policy {
    id: String,
    versions: HashMap<String, String>,
    last_used: u64,
}

impl Policy {
    fn bytes(&self) -> usize {
        self.versions.values().map(String::len).sum()
    }
}

impl Documents {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, of: &Key) -> Option<String> {
        let mut kept = self.kept();
        kept.uses += 1;
        let now = kept.uses;
        let policy = kept.policies.get_mut(&of.arn).filter(|policy| policy.id == of.id)?;
        policy.last_used = now;
        policy.versions.get(&of.version).cloned()
    }

    pub(crate) fn put(&self, of: Key, document: &str) {
        self.kept().put(of, document, MOST_BYTES);
    }

    /// A version was made of the policy that has this ARN now. Its id is the one that was read last: if the
    /// policy was replaced since, nobody asks for versions of that id any more.
    pub(crate) fn made(&self, arn: &str, version: &str, document: &str) {
        let mut kept = self.kept();
        let Some(id) = kept.policies.get(arn).map(|policy| policy.id.clone()) else { return };
        kept.put(
            Key { arn: arn.to_owned(), id, version: version.to_owned() },
            document,
            MOST_BYTES,
        );
    }
}

impl Kept {
    fn put(&mut self, of: Key, document: &str, most_bytes: usize) {
        self.uses += 1;
        let last_used = self.uses;
        let new = |id| Policy { id, versions: HashMap::new(), last_used };
        let Key { arn, id, version } = of;
        let policy = self.policies.entry(arn).or_insert_with(|| new(id.clone()));
        if policy.id != id {
            self.bytes -= policy.bytes();
            *policy = new(id);
        }
        policy.last_used = last_used;
        let before = policy.versions.insert(version, document.to_owned());
        self.bytes += document.len();
        self.bytes -= before.map_or(0, |before| before.len());
        if self.bytes > most_bytes {
            self.forget_half();
        }
    }

    /// Forgets those that were not used for longest. Half of them at once, so that it is seldom done.
    fn forget_half(&mut self) {
        let mut used: Vec<u64> = self.policies.values().map(|policy| policy.last_used).collect();
        let half = used.len() / 2;
        let (_, from, _) = used.select_nth_unstable(half);
        let from = *from;
        self.policies.retain(|_, policy| policy.last_used >= from);
        self.bytes = self.policies.values().map(Policy::bytes).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str, version: &str) -> Key {
        Key { arn: "arn".to_owned(), id: id.to_owned(), version: version.to_owned() }
    }

    #[test]
    fn a_document_is_that_of_its_version_and_of_no_other_policy_of_the_same_arn() {
        let documents = Documents::default();
        documents.put(key("P1", "v1"), "one");
        assert_eq!(documents.get(&key("P1", "v1")).as_deref(), Some("one"));
        assert_eq!(documents.get(&key("P1", "v2")), None);
        assert_eq!(documents.get(&key("P2", "v1")), None);
        documents.put(key("P2", "v2"), "two");
        assert_eq!(documents.get(&key("P2", "v2")).as_deref(), Some("two"));
        assert_eq!(documents.get(&key("P2", "v1")), None);
        assert_eq!(documents.kept().bytes, 3);
    }

    #[test]
    fn a_version_that_was_made_is_one_of_the_policy_that_was_read_last() {
        let documents = Documents::default();
        documents.made("arn", "v2", "of nobody");
        assert_eq!(documents.get(&key("", "v2")), None);
        documents.put(key("P1", "v1"), "one");
        documents.put(key("P2", "v1"), "one");
        documents.made("arn", "v2", "two");
        assert_eq!(documents.get(&key("P1", "v2")), None);
        assert_eq!(documents.get(&key("P2", "v2")).as_deref(), Some("two"));
    }

    #[test]
    fn what_was_not_used_for_longest_is_forgotten_when_there_is_too_much() {
        let mut kept = Kept::default();
        let of =
            |policy: usize, version: &str| Key { arn: policy.to_string(), ..key("P", version) };
        for policy in 0..10 {
            kept.put(of(policy, "v1"), "0123456789", 100);
        }
        assert_eq!((kept.policies.len(), kept.bytes), (10, 100));
        // It replaces what it said before: there is not more than before.
        kept.put(of(0, "v1"), "9876543210", 100);
        assert_eq!((kept.policies.len(), kept.bytes), (10, 100));
        kept.put(of(1, "v2"), "0123456789", 100);
        let mut left: Vec<&str> = kept.policies.keys().map(String::as_str).collect();
        left.sort_unstable();
        assert_eq!((left, kept.bytes), (vec!["0", "1", "7", "8", "9"], 60));
    }
}
