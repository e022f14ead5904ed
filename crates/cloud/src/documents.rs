//! Documents of policy versions that were read or written a moment ago. A version never changes, and no other
//! version of the policy ever has its number: it is read once while somebody works on the policy.

use interlock_identities::outside::PolicyFound;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A resync does not need documents, so nobody asks again after that.
const KEPT: Duration = Duration::from_secs(60);

/// A version of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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

/// Documents by version.
#[derive(Debug, Default)]
pub(crate) struct Documents(Mutex<HashMap<Key, Kept>>);

#[derive(Debug)]
struct Kept {
    document: String,
    used_at: Duration,
}

impl Documents {
    fn kept(&self) -> MutexGuard<'_, HashMap<Key, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, of: &Key, now: Duration) -> Option<String> {
        let mut kept = self.kept();
        let known = kept.get_mut(of)?;
        known.used_at = now;
        Some(known.document.clone())
    }

    pub(crate) fn put(&self, of: Key, document: &str, now: Duration) {
        let mut kept = self.kept();
        kept.retain(|_, known| now < known.used_at.saturating_add(KEPT));
        kept.insert(of, Kept { document: document.to_owned(), used_at: now });
    }

    /// A version was made of the policy that has this ARN now. Its id is the one that was read last: if the
    /// policy was replaced since, nobody asks for versions of that id any more.
    pub(crate) fn made(&self, arn: &str, version: &str, document: &str, now: Duration) {
        let id = {
            let kept = self.kept();
            let of_policy = kept.iter().filter(|(of, _)| of.arn == arn);
            of_policy.max_by_key(|(_, known)| known.used_at).map(|(of, _)| of.id.clone())
        };
        let Some(id) = id else { return };
        self.put(Key { arn: arn.to_owned(), id, version: version.to_owned() }, document, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str, version: &str) -> Key {
        Key { arn: "arn".to_owned(), id: id.to_owned(), version: version.to_owned() }
    }

    #[test]
    fn a_document_is_kept_while_it_is_used() {
        let (documents, at) = (Documents::default(), Duration::from_secs);
        documents.put(key("P1", "v1"), "one", at(0));
        assert_eq!(documents.get(&key("P1", "v1"), at(50)).as_deref(), Some("one"));
        assert_eq!(documents.get(&key("P1", "v2"), at(50)), None);
        assert_eq!(documents.get(&key("P2", "v1"), at(50)), None);
        documents.put(key("P1", "v2"), "two", at(109));
        assert_eq!(documents.get(&key("P1", "v1"), at(109)).as_deref(), Some("one"));
        documents.put(key("P1", "v3"), "three", at(170));
        assert_eq!(documents.get(&key("P1", "v1"), at(170)), None);
    }

    #[test]
    fn a_version_that_was_made_is_one_of_the_policy_that_was_read_last() {
        let (documents, at) = (Documents::default(), Duration::from_secs);
        documents.made("arn", "v2", "of nobody", at(0));
        assert_eq!(documents.get(&key("", "v2"), at(0)), None);
        documents.put(key("P1", "v1"), "one", at(1));
        documents.put(key("P2", "v1"), "one", at(2));
        documents.made("arn", "v2", "two", at(3));
        assert_eq!(documents.get(&key("P1", "v2"), at(4)), None);
        assert_eq!(documents.get(&key("P2", "v2"), at(4)).as_deref(), Some("two"));
    }
}
