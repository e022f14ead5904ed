//! Documents of policy versions that were read a moment ago. A version never changes, and no other version of
//! the policy ever has its number: it is read once while somebody works on the policy.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A resync does not need documents, so nobody asks again after that.
const KEPT: Duration = Duration::from_secs(60);

/// Documents by the id of the policy, which no other policy ever has, and the version.
#[derive(Debug, Default)]
pub(crate) struct Documents(Mutex<HashMap<(String, String), Kept>>);

#[derive(Debug)]
struct Kept {
    document: String,
    used_at: Duration,
}

impl Documents {
    fn kept(&self) -> MutexGuard<'_, HashMap<(String, String), Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, policy_id: &str, version: &str, now: Duration) -> Option<String> {
        let mut kept = self.kept();
        let known = kept.get_mut(&(policy_id.to_owned(), version.to_owned()))?;
        known.used_at = now;
        Some(known.document.clone())
    }

    pub(crate) fn put(&self, policy_id: &str, version: &str, document: &str, now: Duration) {
        let mut kept = self.kept();
        kept.retain(|_, known| now < known.used_at.saturating_add(KEPT));
        let key = (policy_id.to_owned(), version.to_owned());
        kept.insert(key, Kept { document: document.to_owned(), used_at: now });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_kept_while_it_is_used() {
        let (documents, at) = (Documents::default(), Duration::from_secs);
        documents.put("P1", "v1", "one", at(0));
        assert_eq!(documents.get("P1", "v1", at(50)).as_deref(), Some("one"));
        assert_eq!(documents.get("P1", "v2", at(50)), None);
        assert_eq!(documents.get("P2", "v1", at(50)), None);
        documents.put("P1", "v2", "two", at(109));
        assert_eq!(documents.get("P1", "v1", at(109)).as_deref(), Some("one"));
        documents.put("P1", "v3", "three", at(170));
        assert_eq!(documents.get("P1", "v1", at(170)), None);
    }
}
